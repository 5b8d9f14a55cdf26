// Arguments as a person reads them who has to approve them: exact, visible, and never shortened without a word.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { shownJson } from '../../../src/approvals/shown-json.js';

const shownOf = (text: string, hidden: readonly string[] = []) => ({
  ...{ text, hidden, notes: new Map<string, readonly string[]>(), revealed: '?show=sensitive' },
  linkTo: (pointer: string, from = 0) => `?part=${encodeURIComponent(pointer)}&from=${from}`,
});

const show = (text: string, pointer = '', from = 0, hidden: readonly string[] = []): string =>
  String(shownJson(shownOf(text, hidden), pointer, from) ?? '');

const plain = (markup: string): string =>
  markup
    .replace(/<span class="code-point">[^<]*<\/span>/g, '')
    .replace(/<[^>]+>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&');

/** Reads back what a page shows: escapes of what cannot be seen become what they stand for. */
const readBack = (markup: string): unknown =>
  JSON.parse(
    plain(markup).replace(/(\\*)\\u\{([0-9a-f]+)\}/g, (found, before: string, code: string) =>
      before.length % 2 === 1
        ? found
        : before + JSON.stringify(String.fromCodePoint(Number.parseInt(code, 16))).slice(1, -1),
    ),
  );

describe('arguments', () => {
  it('that fit are shown so that they can be read back', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        const text = JSON.stringify(value);
        fc.pre(text.length < 1_500);
        expect(readBack(show(text))).toEqual(JSON.parse(text));
      }),
    );
  });

  it('have names of members of which letters that look like others are marked', () => {
    expect(show('{"p\u0430th": "/etc", "path": "/tmp"}')).toContain('code-point');
    expect(show('{"path": "/tmp"}')).not.toContain('code-point');
  });

  it('have names that count towards what a page holds', () => {
    const text = JSON.stringify({ ['n'.repeat(70_000)]: 1, after: 2 });
    expect(plain(show(text))).not.toContain('"after"');
    expect(show(text)).toContain('show them');
  });

  it('keep numbers and the order of members as they are written', () => {
    const markup = plain(show('{"b":12345678901234567890.10,"a":1e400,"2":-0,"1":1.0}'));
    expect(markup.match(/[^\s{},"]+(?=,?\n)/g)).toEqual(['12345678901234567890.10', '1e400', '-0', '1.0']);
    expect(markup.match(/"\w"/g)).toEqual(['"b"', '"a"', '"2"', '"1"']);
  });

  it.each([
    ['\u202e', '\\u{202e}'],
    ['\u200b', '\\u{200b}'],
    ['\u00a0', '\\u{a0}'],
    ['\u2800', '\\u{2800}'],
    ['\ufe0f', '\\u{fe0f}'],
    ['\u{e0041}', '\\u{e0041}'],
    ['\n', '\\n'],
    ['\u2028', '\\u{2028}'],
    ['\u0007', '\\u0007'],
    ['\\u{202e}', '\\\\u{202e}'],
    ['e\u0301\u0301\u0301\u0301', 'e\\u{301}\\u{301}\\u{301}\\u{301}'],
    ['e\u0301', 'e\u0301'],
    ['\u05d0\u05d1', '\u05d0\u05d1'],
  ])('show %j as %s, in texts and in names', (text, shown) => {
    const markup = plain(show(JSON.stringify({ [`n${text}`]: `v${text}` })));
    expect(markup).toContain(`"n${shown}"`);
    expect(markup).toContain(`"v${shown}"`);
  });

  it('mark letters that look like others, and no word of another language', () => {
    expect(show('"p\u0430ypal"')).toContain('<mark>\u0430</mark><span class="code-point">U+0430</span>');
    expect(show('"\u0430\u0440\u0440"')).toContain('<mark>');
    expect(show('"\u0437\u0434\u0440\u0430\u0432\u0441\u0442\u0432\u0443\u0439 caf\u00e9"')).not.toContain('<mark>');
  });

  it('name what is too long, with its size and a link, and show all that stands behind it', () => {
    const members = Object.fromEntries(Array.from({ length: 12_000 }, (_, at) => [`m${at}`, at]));
    const text = JSON.stringify({ text: 'line\n'.repeat(10_000), members, after: 'the end' });
    const first = plain(show(text));
    expect(first).toContain('a text of 50000 characters in 10001 lines');
    expect(first).toContain('an object with 12000 members');
    expect(first).toContain('the end');
    expect(plain(show(text, '/text')).match(/line\\n\n/g)).toHaveLength(10_000);
    const seen = new Set<string>();
    for (let from: number | undefined = 0; from !== undefined; ) {
      const markup = show(text, '/members', from);
      for (const [, name = ''] of plain(markup).matchAll(/"(m\d+)":/g)) seen.add(name);
      const next = [...markup.matchAll(/from=(\d+)/g)].map(([, at]) => Number(at)).filter((at) => at > (from ?? 0));
      [from] = next;
    }
    expect(seen.size).toBe(12_000);
  });

  it('show a hundred thousand members in one page of bounded size', () => {
    const text = `{${Array.from({ length: 100_000 }, (_, at) => `"${at}":0`).join(',')}}`;
    const markup = show(text);
    expect(markup.length).toBeLessThan(100_000);
    expect(plain(markup)).toContain('401 to 100000 of 100000');
  });

  it('nested deeply lead on by links', () => {
    const text = `${'['.repeat(200)}${']'.repeat(200)}`;
    expect(plain(show(text))).toContain('a list with 1 item');
    expect(show(text, '/0'.repeat(150))).not.toBe('');
  });

  it('hide what is sensitive, and all below it, until it is asked for', () => {
    const text = '{"a":{"b":"secret"},"ab":"open"}';
    for (const pointer of ['', '/a', '/a/b']) {
      const markup = show(text, pointer, 0, ['/a']);
      expect(markup).not.toContain('secret');
      expect(markup).toContain('?show=sensitive');
    }
    expect(show(text, '', 0, ['/a'])).toContain('open');
    expect(show(text)).toContain('secret');
  });

  it('have no part where there is none', () => {
    for (const pointer of ['/x', '/a/0', '/list/9', '/list/x', '/__proto__'])
      expect(shownJson(shownOf('{"a":"b","list":[1]}'), pointer)).toBeUndefined();
  });
});
