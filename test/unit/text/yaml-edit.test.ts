import { describe, expect, it } from 'vitest';
import { addToMap, linesNaming, removeFromMap, type YamlEdit } from '../../../src/text/yaml-edit.js';

const textOf = (edit: YamlEdit): string => ('text' in edit ? edit.text : `error: ${edit.error}`);

/** A file as people write it: aligned comments, quotes of both kinds, an odd order, block scalars, empty lines. */
const FILE = `# The gateway.
version: 1


upstreams:   # ours
    # The first.
    github:
        url:    'https://a.example/mcp'      # aligned
        issuers: [ "idp",idp2 ]
        note: |
            two
            lines

    web: {url: "https://b.example/mcp",
          issuers: [idp]}   # in braces
        # of web
    # later: {}

policies:  {dir: ./policies}   # last
`;

describe('[C-27] an entry of a YAML map', () => {
  it('is added behind the last one, and every other byte stays', () => {
    const added = textOf(addToMap(FILE, ['upstreams'], 'files', ['url: "http://c.example"', '', 'issuers: [idp]']));
    const block = '    files:\n      url: "http://c.example"\n\n      issuers: [idp]\n';
    expect(added).toBe(FILE.replace('    # later: {}\n', `    # later: {}\n${block}`));
    expect(textOf(removeFromMap(added, ['upstreams'], 'files'))).toBe(FILE);
  });

  it.each([
    ['an empty map', 'a: {}  # none\nb: 1\n', 'a:  # none\n  k:\n    x: 1\nb: 1\n'],
    ['no value', 'a:\nb: 1\n', 'a:\n  k:\n    x: 1\nb: 1\n'],
    ['a file without an end of its last line', 'a:\n  b: 1', 'a:\n  b: 1\n  k:\n    x: 1\n'],
    ['lines that end as on Windows', 'a:\r\n  b: 1\r\nc: 2\r\n', 'a:\r\n  b: 1\r\n  k:\r\n    x: 1\r\nc: 2\r\n'],
    ['a list at the end', 'a:\n  b:\n  - 1\n  - {c: 2}\nd: 3\n', 'a:\n  b:\n  - 1\n  - {c: 2}\n  k:\n    x: 1\nd: 3\n'],
    ['an alias elsewhere', 'z: &z {y: 1}\na:\n  b: *z\n', 'z: &z {y: 1}\na:\n  b: *z\n  k:\n    x: 1\n'],
  ])('is added to %s', (_, before, after) => {
    expect(textOf(addToMap(before, ['a'], 'k', ['x: 1']))).toBe(after);
  });

  it('is added between braces on one line', () => {
    expect(textOf(addToMap('e:\n  all:\n    of: {a: {}, b: {}} # two\n', ['e', 'all', 'of'], 'c', '{}'))).toBe(
      'e:\n  all:\n    of: {a: {}, b: {}, c: {}} # two\n',
    );
  });

  it.each([
    ['in braces', 'a: {b: 1}\n', 'not written as indented lines'],
    ['behind an alias', 'z: &z\n  b: 1\na: *z\n', 'not written as indented lines'],
    ['that an alias repeats', 'a: &a\n  b: 1\nc: *a\n', 'without changing something else'],
    ['that is absent', 'c: 1\n', 'no map "a" of its own'],
    ['that is no map', 'a: [1]\n', 'not written as indented lines'],
    ['that ends with kept line ends', 'a:\n  b: |+\n    x\n\nc: 1\n', 'without changing something else'],
  ])('is refused for a map %s', (_, before, error) => {
    expect(textOf(addToMap(before, ['a'], 'k', ['x: 1']))).toContain(error);
  });

  it('is removed with the comments in it, and those around it stay', () => {
    const without = textOf(removeFromMap(FILE, ['upstreams'], 'web'));
    expect(without).toBe(FILE.replace(/ {4}web: [\s\S]*# of web\n/, ''));
    expect(textOf(removeFromMap(FILE, ['upstreams'], 'github'))).toBe(
      FILE.replace(/ {4}github:[\s\S]*lines\n\n(?= {4}web)/, '\n'),
    );
    expect(textOf(removeFromMap('a:\n  k: 1\nb: 2\n', ['a'], 'k'))).toBe('a: {}\nb: 2\n');
    expect(textOf(removeFromMap('a: {k: 1, l: 2}\n', ['a'], 'k'))).toContain('not stand on lines of its own');
    expect(textOf(removeFromMap('a:\n  k: &k 1\n  l: *k\n', ['a'], 'k'))).toContain('without changing something else');
    expect(textOf(removeFromMap(FILE, ['upstreams'], 'none'))).toContain('has no "upstreams.none"');
  });

  it('is found where it is named, and not in comments', () => {
    expect(linesNaming('# web\na: [web, x]\nb:\n  web: 1\n  "c": web/x\n', (text) => /^web/.test(text))).toEqual([
      2, 4, 5,
    ]);
  });
});
