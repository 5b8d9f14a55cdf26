import { describe, expect, test } from 'vitest';
import { STATELESS } from '../../../../src/protocol/versions/stateless.js';

const { correctionOf, statusOfResponse } = STATELESS;

describe('the status of an answer', () => {
  test.each<[number, number | undefined, number]>([
    [200, undefined, 200],
    [404, undefined, 200],
    [200, -32020, 400],
    [200, -32021, 400],
    [404, -32022, 400],
    [200, -32601, 404],
    [400, -32601, 404],
    [200, -32602, 200],
    [400, -32602, 400],
    [404, -32602, 200],
    [200, -32603, 200],
    [500, -32603, 500],
    [201, -32603, 200],
    [418, 7, 200],
  ])('[T-12] that came as %s with code %s is %s', (status, code, expected) => {
    expect(statusOfResponse(status, code)).toBe(expected);
  });
});

describe('an error', () => {
  test('[T-12] has the codes of this era, and offers no version that is not policed', () => {
    const message = 'x';
    expect(correctionOf({ code: -32002, message })).toEqual({ code: -32602 });
    expect(correctionOf({ code: -32021, message })).toEqual({ code: -32021 });
    const supported = ['2026-07-28', '2027-01-01', '2024-11-05'];
    expect(correctionOf({ code: -32022, message, data: { supported } })).toEqual({
      code: -32022,
      supported: ['2026-07-28'],
    });
    expect(correctionOf({ code: -32022, message, data: { supported: ['2026-07-28'] } })).toEqual({
      code: -32022,
    });
  });
});
