import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MAX_FILE_BYTES, MAX_VALUES, readYamlFile } from '../../../../src/config/schema/validation.js';
import { lineOf } from '../reading.js';

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
const valuesOf = (text: string): unknown => {
  const { source, diagnostics } = readYamlFile('x.yaml', encode(text));
  expect(diagnostics).toEqual([]);
  return source?.value;
};
const linesOf = (text: string): readonly string[] => {
  const { source, diagnostics } = readYamlFile('x.yaml', encode(text));
  expect(source === undefined).toBe(diagnostics.length > 0);
  return diagnostics.map(lineOf);
};

describe('[C-02] YAML 1.2 core, one document', () => {
  it('reads scalars as the core schema says', () => {
    expect(valuesOf('a: yes\nb: 012\nc: 0x10\nd: 0o17\ne: true\nf: ~\ng: 1e3\nh: "12"\n')).toEqual({
      ...{ a: 'yes', b: 12, c: 16, d: 15, e: true, f: null, g: 1000, h: '12' },
    });
    expect(valuesOf('a: 2026-11-20\nb: 12:30:00\nc: on\n')).toEqual({
      ...{ a: '2026-11-20', b: '12:30:00', c: 'on' },
    });
  });

  it('says what is wrong behind a very long run of spaces', () => {
    expect(linesOf(`a: ${' '.repeat(MAX_FILE_BYTES - 100)}[\n`)).toEqual([
      expect.stringContaining('the bracket [ is opened here and never closed'),
    ]);
  });

  it('refuses a run of open brackets before it is parsed', () => {
    expect(linesOf(`a: 1\nb: ${'['.repeat(1_002)}\n`)).toEqual([
      expect.stringContaining('2:1004 error more than 1000 brackets are open here'),
    ]);
    const closed = Array(1_100).fill("- '[' # ]").join('\n');
    expect(valuesOf(closed)).toHaveLength(1_100);
  });

  it('follows aliases', () => {
    expect(valuesOf('a: &x {b: 1}\nc: *x\n')).toEqual({ a: { b: 1 }, c: { b: 1 } });
  });

  it.each([
    ['a second document', 'a: 1\n---\nb: 2\n', '2:1 error the file holds more than one YAML document'],
    ['a key that stands twice', 'a: 1\nb:\n  c: 1\n  c: 2\n', '4:3 error duplicate key "c"; remove one of the two'],
    [
      'a known tag',
      'a: !!str 12\n',
      '1:10 error tags (!) are not accepted; put a value that begins with ! into quotes',
    ],
    [
      'a tagged map',
      'a: !!map\n  b: 1\n',
      '2:3 error tags (!) are not accepted; put a value that begins with ! into quotes',
    ],
    ['a merge key', 'a:\n  <<: {b: 1}\n', '2:3 error the key "<<" is not accepted'],
    ['a prototype', 'a:\n  __proto__: {b: 1}\n', '2:3 error the key "__proto__" is not accepted'],
    ['a quoted prototype', '{"__proto__": 1}', '1:2 error the key "__proto__" is not accepted'],
    ['a key that is a map', '? {a: 1}\n: b\n', '1:3 error a key must be plain text'],
    ['a cycle', 'a: &x [*x]\n', '1:8 error this alias is a part of what it refers to'],
    ['a directive', '%YAML 1.1\n---\na: yes\n', '1:1 error directives (%YAML, %TAG) are not accepted'],
    ['a tag directive', '%TAG ! tag:x:\n---\na: 1\n', '1:1 error directives (%YAML, %TAG) are not accepted'],
    ['a tab', 'a:\n\t- b\n', '2:1 error a tab is used for indentation; use spaces'],
    ['infinity', 'a: .inf\n', '1:4 error this number cannot be held exactly; quote it to make it text'],
    [
      'a number too large',
      'a: 9007199254740993\n',
      '1:4 error this number cannot be held exactly; quote it to make it text',
    ],
  ])('refuses %s', (_, text, line) => expect(linesOf(text)).toContain(line));

  it('makes the warning of an unknown tag an error', () => {
    expect(linesOf('a: !secret x\n')).toContain(
      '1:4 error tags (!) are not accepted; put a value that begins with ! into quotes',
    );
  });

  it('finds several mistakes in one run', () => {
    expect(linesOf('a: 1\na: 2\nb: !!int 3\n__proto__: 1\n')).toHaveLength(3);
  });

  it('bounds alias bombs', () => {
    const levels = Array.from({ length: 9 }, (_, level) => {
      const inner = Array(9).fill(level === 0 ? 'x' : `*l${level - 1}`);
      return `l${level}: &l${level} [${inner.join(', ')}]`;
    });
    expect(linesOf(levels.join('\n')).length).toBeGreaterThan(0);
  });

  it('bounds size, depth, number of values and encoding', () => {
    expect(linesOf('#'.repeat(MAX_FILE_BYTES + 1))[0]).toMatch(/larger than/);
    expect(linesOf('['.repeat(200) + ']'.repeat(200)).join()).toMatch(/nested more than 64 deep/);
    expect(linesOf(`[${'1,'.repeat(MAX_VALUES + 1)}]`).join()).toMatch(/more than 100000 values/);
    const { diagnostics } = readYamlFile('x.yaml', new Uint8Array([0x61, 0x3a, 0x20, 0xff]));
    expect(diagnostics.map(lineOf)).toEqual(['1:1 error the file is not UTF-8 text']);
  });

  it('survives text that is built to exhaust the stack', () => {
    for (const text of ['['.repeat(20_000), '{a: '.repeat(20_000), '- '.repeat(20_000)]) {
      expect(linesOf(text).length).toBeGreaterThan(0);
    }
  });

  it('changes no prototype whatever it reads', () => {
    for (const text of ['{"constructor": {"prototype": {"x": 1}}}', 'toString: 1']) valuesOf(text);
    expect(({} as Record<string, unknown>)['x']).toBeUndefined();
  });

  it('throws for no text at all (property)', () => {
    const piece = fc.constantFrom(
      ...['a: ', '- ', '\n', '  ', '{', '}', '[', ']', '&x ', '*x', '!t ', '? ', ': ', '|', '>'],
      ...['"', "'", '#', '%YAML 1.1\n', '---\n', '...\n', '<<: ', '__proto__: ', '\t', '1e400', ','],
    );
    const text = fc.oneof(
      fc.string(),
      fc.array(piece, { maxLength: 40 }).map((all) => all.join('')),
    );
    fc.assert(
      fc.property(text, (any) => {
        const { source, diagnostics } = readYamlFile('x.yaml', encode(any));
        expect(source === undefined).toBe(diagnostics.length > 0);
        for (const { line, column } of diagnostics) expect(Math.min(line, column)).toBeGreaterThan(0);
      }),
      { numRuns: 500 },
    );
  });

  it('says what is wrong in words of its own, whatever the mistake (property)', () => {
    const lines = ['a: {b: 1}', 'c:', '  - d: "e"', '    f: [g, h]', "i: 'j k'", 'l: m n'];
    const piece = fc.constantFrom(...[':', ' ', '"', "'", '[', ']', '{', '}', ',', '\t', '- ', '*']);
    const change = fc.record({ line: fc.nat(lines.length - 1), at: fc.nat(12), piece });
    const theirs = /implicit|compact|flow|scalar|token|indicator|collection|sequence|node|mapping/i;
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 3 }), (changes) => {
        const text = [...lines];
        for (const { line, at, piece: added } of changes) {
          const before = text[line] ?? '';
          text[line] = before.slice(0, at) + added + before.slice(at);
        }
        for (const line of readYamlFile('x.yaml', encode(text.join('\n'))).diagnostics)
          expect(line.message).not.toMatch(theirs);
      }),
      { numRuns: 1000 },
    );
  });

  it('throws for no bytes at all (property)', () => {
    fc.assert(fc.property(fc.uint8Array(), (bytes) => void readYamlFile('x.yaml', bytes)));
  });
});

describe('[C-03] positions', () => {
  const text = 'a:\n  b: [1, 22, 3]\nc: &x\n  d: 4\ne: *x\n';
  const locate = readYamlFile('x.yaml', encode(text)).source?.locate;
  it.each([
    [['a'], 'key', 1, 1],
    [['a', 'b'], 'key', 2, 3],
    [['a', 'b', 1], 'value', 2, 10],
    [['c', 'd'], 'value', 4, 6],
    [['e', 'd'], 'value', 4, 6],
    [['a', 'missing'], 'key', 1, 1],
    [['a', 'b', 9], 'value', 2, 3],
    [[], 'value', 1, 1],
  ] as const)('%j as %s stands at %i:%i', (path, at, line, column) => {
    expect(locate?.(path, at)).toEqual({ line, column });
  });
});
