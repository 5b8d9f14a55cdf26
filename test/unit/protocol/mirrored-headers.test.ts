// Headers that are written from a body say what the body says, to the one reader that compares them.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  compareParamHeaders,
  decodeHeaderValue,
  encodeHeaderValue,
  matchesName,
  statelessHeaders,
} from '../../../src/protocol/headers.js';

const graphemes = fc.string({ unit: 'grapheme' });

describe('a header that is written from a value', () => {
  it('[Y-08] decodes to that value, in visible ASCII', () => {
    fc.assert(
      fc.property(graphemes, (value) => {
        const encoded = encodeHeaderValue(value);
        expect(encoded).toMatch(/^[\x20-\x7e]*$/);
        expect(decodeHeaderValue(encoded)).toBe(value);
      }),
    );
  });

  it.each(['=?base64?eA==?=', ' led', 'trailed ', 'grüße', 'a\nb', ''])(
    '[Y-08] is told from its own encoding: %j',
    (value) => {
      const encoded = encodeHeaderValue(value);
      expect(encoded.startsWith('=?base64?')).toBe(true);
      expect(decodeHeaderValue(encoded)).toBe(value);
    },
  );

  it('[Y-08] agrees with the arguments that it mirrors', () => {
    const mirrored = [
      { header: 'Region', path: ['region'] },
      { header: 'Count', path: ['inner', 'count'] },
      { header: 'Flag', path: ['flag'] },
    ];
    const args = fc.record(
      {
        region: fc.oneof(graphemes, fc.constant(null)),
        inner: fc.record({ count: fc.oneof(fc.maxSafeInteger(), fc.constant(null)) }),
        flag: fc.boolean(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(args, (given) => {
        const params = { name: 'tool', arguments: given };
        const headers = statelessHeaders('2026-07-28', 'tools/call', params, mirrored);
        const written = Object.fromEntries(headers);
        expect(compareParamHeaders(mirrored, given, written)).toBe(true);
        expect(matchesName(written['mcp-name'], 'tool')).toBe(true);
      }),
    );
  });
});
