// Text in the charsets of WHATWG Encoding is read alike on every version of Node.

import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { decodeStrictly } from '../../../src/inspection/charsets.js';
import { createRandom } from '../../support/active-content.js';

const read = (label: string, hex: string): string | undefined => decodeStrictly(Buffer.from(hex, 'hex'), label)?.text;

/** Every encoding of the standard but `replacement`, which decodes nothing. */
const LABELS = [
  ...['utf-8', 'utf-16le', 'utf-16be', 'ibm866', 'koi8-r', 'koi8-u', 'macintosh', 'x-mac-cyrillic'],
  ...[2, 3, 4, 5, 6, 7, 8, '8-i', 10, 13, 14, 15, 16].map((part) => `iso-8859-${part}`),
  ...[874, 1250, 1251, 1252, 1253, 1254, 1255, 1256, 1257, 1258].map((page) => `windows-${page}`),
  ...['gbk', 'gb18030', 'big5', 'euc-jp', 'iso-2022-jp', 'shift_jis', 'euc-kr', 'x-user-defined'],
];

describe('[I-53] a charset', () => {
  it.each([
    ['windows-1252', '938094859220', '\u201c\u20ac\u201d\u2026\u2019 '],
    ['cp1252', '818d8f909dff', '\x81\x8d\x8f\x90\x9d\u00ff'],
    ['l1', '80', '\u20ac'],
    ['ibm866', '1a1c7f80', '\x1a\x1c\x7f\u0410'],
    ['koi8-u', 'aebe', '\u045e\u040e'],
    ['windows-874', 'a1', '\u0e01'],
    ['windows-874', 'a1db', undefined],
    ['windows-1253', 'aa', undefined],
    ['windows-1255', 'ca', '\u05ba'],
    ['gbk', 'a2e3c4e3', '\u20ac\u4f60'],
    ['gbk', 'ff', undefined],
    ['iso-8859-16', '41', undefined],
    ['x-user-defined', '41', undefined],
    ['utf-7', '41', undefined],
  ])('%s of %s', (label, hex, text) => expect(read(label, hex)).toBe(text));

  it('has the same characters on every version of Node', () => {
    const digest = createHash('sha256');
    const { below } = createRandom(20_261_128);
    for (const label of LABELS) {
      for (let byte = 0; byte <= 0xff; byte += 1)
        digest.update(`${label} ${read(label, Buffer.of(byte).toString('hex'))}\n`);
      for (let run = 0; run < 1_000; run += 1) {
        const bytes = Array.from({ length: 2 + below(5) }, () => (below(3) > 0 ? 0x80 + below(0x80) : below(0x80)));
        digest.update(`${read(label, Buffer.from(bytes).toString('hex'))}\n`);
      }
    }
    expect(digest.digest('hex').slice(0, 16)).toBe('d82d7bafdf2e5b30');
  });
});
