import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LOCK_HEADER, readLockSource, readWrittenLock, writeLock } from '../../../src/pins/lock.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';
import { lockOf, pinOf, textPin, toolOf, versionOf } from './samples.js';

const FILE = 'github.lock.yaml';

const TEXTS = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom('true', 'null', '~', '1e3', '0x1f', '- a', 'a: b', '#', "'", '', ' a ', 'no', '\t'),
);
const KEYS = TEXTS.filter((key) => key !== '__proto__' && key !== '');
const VALUES: fc.Arbitrary<unknown> = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    TEXTS,
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number + 0),
    fc.integer(),
    fc.constantFrom(true, false, null),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(KEYS, tie('value'), { maxKeys: 3, noNullPrototype: true }),
  ),
})).value;
const LOCK_TEXTS = fc
  .tuple(KEYS, fc.dictionary(KEYS, VALUES, { maxKeys: 3, noNullPrototype: true }), TEXTS)
  .map(([name, more, note]) => writeLock(lockOf([pinOf({ ...(more as JsonObject), name })], textPin(note))));

const SAMPLE = writeLock(
  lockOf([
    pinOf(toolOf('get_issue', { list: [1, [2, 'x'], { a: 'b' }], none: null, 'a: b': -1.5 }), 'approved', [
      versionOf(toolOf('get_issue', { title: 'two\nlines' }), 'pending'),
    ]),
    pinOf(toolOf('other')),
  ]),
);
/** What is put in, and where a piece of a line may come to stand. */
const PIECES = [
  '',
  ' ',
  '  ',
  ':',
  '- ',
  '"',
  '\\',
  '#',
  '\n',
  '\t',
  '0',
  '~',
  '[',
  '{',
  '&a ',
  '*a',
  '!x ',
  '|',
  'é',
  '\r',
];

/** The value by YAML; `undefined` for a mistake. */
function asYaml(text: string): unknown {
  return readLockSource(FILE, text).value;
}

describe('a lock file as it is written', () => {
  it('[L-05] is read as YAML would be', () => {
    expect(readWrittenLock(SAMPLE)).toEqual(asYaml(SAMPLE));
    expect(readWrittenLock(SAMPLE)).toBeDefined();
    fc.assert(
      fc.property(LOCK_TEXTS, (text) => {
        const value = readWrittenLock(text);
        if (value !== undefined) expect(value).toStrictEqual(asYaml(text));
      }),
      { numRuns: 200 },
    );
  });

  it('[L-05] is left to the YAML reader where a change makes it mean something else there', () => {
    const lines = SAMPLE.split('\n');
    fc.assert(
      fc.property(
        fc.nat(SAMPLE.length),
        fc.nat(4),
        fc.oneof(fc.constantFrom(...PIECES), fc.constantFrom(...lines.map((line) => `\n${line}`))),
        (at, cut, piece) => {
          const text = SAMPLE.slice(0, at) + piece + SAMPLE.slice(at + cut);
          const value = readWrittenLock(text);
          if (value !== undefined) expect(value).toStrictEqual(asYaml(text));
        },
      ),
      { numRuns: 1_500 },
    );
  });

  it.each([
    ['another header', SAMPLE.replace('# Written', '# Drawn')],
    ['no end', SAMPLE.replace('...\n', '')],
    ['a comment', SAMPLE.replace('\nprompts', '\n# x\nprompts')],
    ['a key twice', SAMPLE.replace('\nprompts: {}', '\nprompts: {}\nprompts: {}')],
    ['a key that objects have', SAMPLE.replace('  other:', '  __proto__:')],
    ['a nested mistake of indentation', SAMPLE.replace('    status', '     status')],
    ['a second document', SAMPLE.replace('...\n', '---\na: b\n...\n')],
    ['nothing', `${LOCK_HEADER}...\n`],
  ])('[L-05] is no text with %s', (_what, text) => {
    expect(text).not.toBe(SAMPLE);
    expect(readWrittenLock(text)).toBeUndefined();
  });
});
