// What each status of an upstream means, by rule and in order (docs/reference/responses.md).

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  afterPing,
  type ErrorSeen,
  errorSeenIn,
  isAliveByPing,
  readRetryAfter,
  readUpstreamStatus,
} from '../../../src/protocol/upstream-status.js';

const OWN: ErrorSeen = { code: -32602, isOwn: true };
const OWN_UNKNOWN: ErrorSeen = { code: -32601, isOwn: true };
const STRAY: ErrorSeen = { code: -32000, isOwn: false };

type Row = readonly [
  status: number,
  error: ErrorSeen | undefined,
  namesSession: boolean,
  reading: ReturnType<typeof readUpstreamStatus>,
];

const ANSWER = { kind: 'answer', unlessLost: false } as const;
const DOUBTFUL = (otherwise: 'stray-error' | 'invalid') => ({ kind: 'lost-if-ping-fails', otherwise }) as const;

const ROWS: readonly Row[] = [
  [401, OWN, true, { kind: 'credentials' }],
  [403, STRAY, false, { kind: 'credentials' }],
  [407, undefined, true, { kind: 'credentials' }],
  [429, OWN, true, { kind: 'busy' }],
  [429, STRAY, false, { kind: 'busy' }],
  [503, undefined, true, { kind: 'busy' }],
  [400, OWN, true, ANSWER],
  [404, OWN_UNKNOWN, true, ANSWER],
  [404, OWN, false, ANSWER],
  [404, OWN, true, { kind: 'answer', unlessLost: true }],
  [409, OWN, true, ANSWER],
  [404, undefined, true, { kind: 'lost' }],
  [404, STRAY, true, { kind: 'lost' }],
  [400, undefined, true, DOUBTFUL('invalid')],
  [400, STRAY, true, DOUBTFUL('stray-error')],
  [400, STRAY, false, { kind: 'stray-error' }],
  [404, STRAY, false, { kind: 'stray-error' }],
  [422, STRAY, true, { kind: 'stray-error' }],
  [400, undefined, false, { kind: 'invalid' }],
  [404, undefined, false, { kind: 'invalid' }],
  [418, undefined, true, { kind: 'invalid' }],
  [500, OWN, true, { kind: 'failure' }],
  [404, { code: undefined, isOwn: true }, true, ANSWER],
  [500, { code: undefined, isOwn: true }, true, ANSWER],
  [500, STRAY, true, { kind: 'unavailable' }],
  [502, undefined, false, { kind: 'unavailable' }],
  [200, undefined, true, { kind: 'success' }],
  [201, undefined, false, { kind: 'success' }],
  [202, undefined, false, { kind: 'invalid' }],
  [205, undefined, false, { kind: 'invalid' }],
  [302, undefined, true, { kind: 'invalid' }],
  [999, undefined, true, { kind: 'invalid' }],
];

describe('the status of an upstream', () => {
  it.each(ROWS)('%d with %j in a session: %j', (status, error, namesSession, reading) => {
    expect(readUpstreamStatus(status, { error, namesSession })).toEqual(reading);
  });

  it('loses no session outside one, and none by another status than 400 and 404', () => {
    const error = fc.option(fc.record({ code: fc.integer({ min: -33000, max: 0 }), isOwn: fc.boolean() }), {
      nil: undefined,
    });
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 999 }), error, fc.boolean(), (status, seen, named) => {
        const reading = readUpstreamStatus(status, { error: seen, namesSession: named });
        const mayLose =
          reading.kind === 'lost' ||
          reading.kind === 'lost-if-ping-fails' ||
          (reading.kind === 'answer' && reading.unlessLost);
        expect(mayLose && (!named || ![400, 404].includes(status))).toBe(false);
      }),
    );
  });
});

describe('an error in the body', () => {
  it.each([
    [
      { jsonrpc: '2.0', id: 7, error: { code: -1, message: 'a' } },
      { code: -1, isOwn: true },
    ],
    [
      { jsonrpc: '2.0', id: '7', error: { code: -1, message: 'a' } },
      { code: -1, isOwn: false },
    ],
    [
      { jsonrpc: '2.0', id: null, error: { code: -1, message: 'a' } },
      { code: -1, isOwn: false },
    ],
    [
      { jsonrpc: '2.0', error: { code: -1, message: 'a' } },
      { code: -1, isOwn: false },
    ],
    [{ error: 'not found' }, undefined],
    [
      { jsonrpc: '2.0', id: 7, result: {} },
      { code: undefined, isOwn: true },
    ],
    [{ jsonrpc: '2.0', id: 8, result: {} }, undefined],
    [[], undefined],
  ])('%j', (value, seen) => {
    expect(errorSeenIn(value, 7)).toEqual(seen);
  });
});

describe('the answer to a ping', () => {
  it.each([
    [200, undefined, true, true],
    [200, OWN_UNKNOWN, true, true],
    [404, OWN_UNKNOWN, true, true],
    [400, OWN, true, true],
    [429, undefined, false, true],
    [401, undefined, false, true],
    [404, undefined, false, false],
    [404, OWN, true, false],
    [400, STRAY, false, false],
    [500, undefined, false, false],
    [200, undefined, false, false],
  ])('%d with %j', (status, error, hasResponse, isAlive) => {
    expect(isAliveByPing(status, error, hasResponse)).toBe(isAlive);
  });
});

describe('what holds after a ping', () => {
  it.each([
    [404, undefined, 'lost', 'lost', 0],
    [400, undefined, 'invalid', 'lost', 1],
    [400, STRAY, 'stray-error', 'lost', 1],
    [404, OWN, 'answer', 'lost', 1],
    [400, OWN, 'answer', 'answer', 0],
    [500, undefined, 'unavailable', 'unavailable', 0],
  ])('%d with %j', async (status, error, ifAlive, ifNot, pings) => {
    let asked = 0;
    const settle = (isAlive: boolean) =>
      afterPing(readUpstreamStatus(status, { error, namesSession: true }), () => {
        asked += 1;
        return Promise.resolve(isAlive);
      });
    expect([await settle(true), await settle(false), asked]).toEqual([ifAlive, ifNot, 2 * pings]);
  });
});

describe('Retry-After', () => {
  it.each([
    ['7', '7'],
    ['Wed, 21 Oct 2026 07:28:00 GMT', 'Wed, 21 Oct 2026 07:28:00 GMT'],
    ['-1', undefined],
    ['soon', undefined],
    ['7, 8', undefined],
    [undefined, undefined],
  ])('%s', (sent, read) => {
    expect(readRetryAfter(sent)).toBe(read);
  });
});
