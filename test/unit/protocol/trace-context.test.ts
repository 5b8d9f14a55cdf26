// What is a trace context and what is none, and where one is put into a message.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readTraceparent, takeTraceMembers, traceparentOf } from '../../../src/protocol/trace-context.js';

const hex = (length: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length });
const id = (length: number) => hex(length).filter((text) => !/^0+$/.test(text));

describe('[TRC-08] a traceparent', () => {
  it('is read as it was written, for any ids', () => {
    fc.assert(
      fc.property(id(32), id(16), fc.boolean(), (traceId, upstreamSpanId, isSampled) => {
        const own = { traceId, spanId: 'unused', upstreamSpanId, isSampled };
        const written = traceparentOf({ ...own, parentId: undefined, isCallers: false, links: [] });
        expect(readTraceparent(written)).toEqual({ traceId, spanId: upstreamSpanId, isSampled });
      }),
    );
  });

  it('of a later version may have more behind it, and its flags may say more', () => {
    const [traceId, spanId] = ['a1'.repeat(16), 'b2'.repeat(8)];
    expect(readTraceparent(`cc-${traceId}-${spanId}-03-more`)).toEqual({ traceId, spanId, isSampled: true });
    expect(readTraceparent(`00-${traceId}-${spanId}-02`)).toEqual({ traceId, spanId, isSampled: false });
  });

  it('is nothing else, whatever it is', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(readTraceparent(text)).toBeUndefined();
      }),
    );
  });
});

it('[TRC-08] what a message says of its trace is taken out of it in any case', () => {
  const meta = { a: 1, traceparent: 'x', TraceState: 'y', BAGGAGE: 'z', progressToken: 2 };
  expect(takeTraceMembers(meta)).toEqual({ traceparent: 'x', rest: { a: 1, progressToken: 2 } });
});
