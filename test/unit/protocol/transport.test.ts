// A body in pieces is the same body.
// That somebody waits no more is told once, to everyone who listens then, and to nobody who came too late.

import { describe, expect, it, vi } from 'vitest';
import { DisconnectController, isInPieces, joinPieces, sizeOfBytes } from '../../../src/protocol/transport.js';

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

describe('leaving', () => {
  it('is told once, in order, to functions and to objects', () => {
    const leaving = new DisconnectController();
    const notified: string[] = [];
    leaving.addEventListener('abort', () => notified.push('first'));
    leaving.addEventListener('abort', { handleEvent: () => void notified.push('second') });
    expect(leaving.aborted).toBe(false);
    leaving.abort();
    leaving.abort();
    expect(leaving.aborted).toBe(true);
    expect(notified).toEqual(['first', 'second']);
  });

  it('is not told to who went before it, or came after it', () => {
    const leaving = new DisconnectController();
    const [gone, late, twice] = [vi.fn(), vi.fn(), vi.fn()];
    leaving.removeEventListener('abort', gone);
    leaving.addEventListener('abort', gone);
    leaving.addEventListener('abort', twice);
    leaving.addEventListener('abort', twice);
    leaving.removeEventListener('abort', gone);
    leaving.abort();
    leaving.addEventListener('abort', late);
    expect([gone, late, twice].map((one) => one.mock.calls.length)).toEqual([0, 0, 1]);
  });

  it('is not told to who goes, or comes, while others are told', () => {
    const leaving = new DisconnectController();
    const [gone, late, last] = [vi.fn(), vi.fn(), vi.fn()];
    leaving.addEventListener('abort', () => {
      leaving.removeEventListener('abort', gone);
      leaving.addEventListener('abort', late);
    });
    leaving.addEventListener('abort', gone);
    leaving.addEventListener('abort', last);
    leaving.abort();
    expect([gone, late, last].map((one) => one.mock.calls.length)).toEqual([0, 0, 1]);
  });
});
