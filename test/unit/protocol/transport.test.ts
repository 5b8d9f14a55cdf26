// A body in pieces is the same body.

import { describe, expect, it } from 'vitest';
import { isInPieces, joinPieces, sizeOfBytes } from '../../../src/protocol/transport.js';

describe('a body', () => {
  it('in pieces is as long as all of them, and one behind the other in one piece', () => {
    const pieces = ['{"id":', '7', '}'].map((text) => Buffer.from(text));
    expect(isInPieces(pieces)).toBe(true);
    expect(sizeOfBytes(pieces)).toBe(8);
    expect(Buffer.from(joinPieces(pieces)).toString()).toBe('{"id":7}');
    expect(Buffer.from(joinPieces([])).toString()).toBe('');
  });

  it('in one piece stays what it is', () => {
    const bytes = new Uint8Array([1, 2]);
    expect([isInPieces(bytes), isInPieces('text')]).toEqual([false, false]);
    expect(sizeOfBytes(bytes)).toBe(2);
    expect(joinPieces(bytes)).toBe(bytes);
    expect(joinPieces('text')).toBe('text');
  });
});
