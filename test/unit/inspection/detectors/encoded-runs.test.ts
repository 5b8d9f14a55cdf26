import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findEncodedRuns } from '../../../../src/inspection/detectors/decoded-text.js';

describe('a run of base64', () => {
  test('is decoded in both alphabets, padded or not, and up to a surplus character', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme-ascii', minLength: 24, maxLength: 90 }),
        fc.constantFrom<BufferEncoding>('base64', 'base64url'),
        fc.boolean(),
        (text, encoding, hasSurplus) => {
          const written = Buffer.from(`Key 7 ${text}`).toString(encoding);
          const bare = written.replace(/=+$/, '');
          const isOver = hasSurplus && bare.length % 4 === 0;
          const [run] = findEncodedRuns(isOver ? `${bare}Q` : written);
          expect(run?.decoded).toBe(`Key 7 ${text}`);
        },
      ),
    );
  });
});
