// Settling: limits are met or refuse, a store that fails refuses, and what the answer owes is gathered.

import { describe, expect, it } from 'vitest';
import type { Allow, Obligation, RateLimit } from '../../../src/policy/decision.js';
import { enforce, type LimitOutcome, type LimitStore } from '../../../src/policy/obligations.js';
import type { AdmittedMessage } from '../../../src/protocol/admitted-request.js';
import { principal } from './samples.js';

function allow(...obligations: Obligation[]): Allow {
  return { verdict: 'allow', policy: 'main', rule: 'read', obligations } as unknown as Allow;
}

function rate(rule: string, per: RateLimit['per'] = 'subject'): Obligation {
  return { kind: 'rate', limit: { rule, count: 2, windowMs: 60_000, per } };
}

const MESSAGE = { kind: 'admitted', message: { kind: 'request' } } as unknown as AdmittedMessage;
const ADA = principal({ subject: 'ada' });

function store(answers: readonly (LimitOutcome | Promise<LimitOutcome>)[]) {
  const keys: string[] = [];
  const limits: LimitStore = {
    take(key) {
      keys.push(key);
      return answers[keys.length - 1] ?? 'unavailable';
    },
  };
  return { limits, keys };
}

/** What a use of a limit is counted under. */
function limitKey(limit: RateLimit, caller: typeof ADA): string | undefined {
  const { limits, keys } = store([{ ok: true }]);
  void enforce(allow({ kind: 'rate', limit }), MESSAGE, caller, { limits });
  return keys[0];
}

describe('limits', () => {
  it('clears at once what owes nothing, and asks no store [P-60]', async () => {
    const { limits, keys } = store([]);
    const authorized = await enforce(allow(), MESSAGE, ADA, { limits });
    expect(authorized).toMatchObject({ admitted: MESSAGE, principal: ADA });
    expect(keys).toEqual([]);
  });

  it('takes one use of every limit, and stops at the first that is used up [P-60]', async () => {
    const used = store([{ ok: true }, { ok: false, retryAfterMs: 1200 }, { ok: true }]);
    const outcome = await enforce(allow(rate('a/x'), rate('b/y'), rate('c/z')), MESSAGE, ADA, used);
    expect(outcome).toEqual({
      verdict: 'deny',
      reason: 'rate-limited',
      listed: true,
      policy: 'b',
      rule: 'y',
      advice: 'Try again in 2 seconds.',
      retryAfterSeconds: 2,
    });
    expect(used.keys).toHaveLength(2);
  });

  it('waits for a store that answers with a promise [P-60]', async () => {
    const late = store([Promise.resolve<LimitOutcome>({ ok: true }), { ok: false, retryAfterMs: 1 }]);
    expect(await enforce(allow(rate('a/x'), rate('b/y')), MESSAGE, ADA, late)).toMatchObject({
      reason: 'rate-limited',
      rule: 'y',
      retryAfterSeconds: 1,
    });
    const fine = enforce(allow(rate('a/x')), MESSAGE, ADA, store([Promise.resolve({ ok: true })]));
    expect(await fine).toMatchObject({ principal: ADA });
  });

  it('refuses when the store cannot be asked [P-61]', async () => {
    const refused = { verdict: 'deny', reason: 'store-unavailable', policy: 'a', rule: 'x' };
    expect(await enforce(allow(rate('a/x')), MESSAGE, ADA, store(['unavailable']))).toMatchObject(refused);
    const broken = store([Promise.reject(new Error('connection lost'))]);
    expect(await enforce(allow(rate('a/x')), MESSAGE, ADA, broken)).toMatchObject(refused);
  });

  it('counts callers apart: by issuer, by kind, by exact name [P-62]', () => {
    const limit = (per: RateLimit['per']): RateLimit => ({
      rule: 'a/x',
      count: 1,
      windowMs: 1,
      per,
    });
    const other = principal({ subject: 'ada', issuerUrl: 'https://other.example' });
    const keys = [
      limitKey(limit('subject'), ADA),
      limitKey(limit('subject'), other),
      limitKey(limit('subject'), principal({ subject: 'ada","x' })),
      limitKey(limit('client'), ADA),
      limitKey(limit('client'), principal({ client: 'ada' })),
      limitKey(limit('rule'), ADA),
      limitKey({ ...limit('rule'), rule: 'a/y' }, ADA),
    ];
    expect(new Set(keys).size).toBe(keys.length);
    expect(limitKey(limit('rule'), other)).toBe(limitKey(limit('rule'), ADA));
    expect(limitKey(limit('client'), principal({ subject: 'bob' }))).toBe(limitKey(limit('client'), ADA));
  });
});

describe('what the answer owes', () => {
  it('gathers the least cap and all profiles; what is captured is no matter of the answer [P-63]', async () => {
    const owing = allow(
      { kind: 'max-result-bytes', bytes: 900 },
      { kind: 'inspect', profile: 'careful' },
      { kind: 'max-result-bytes', bytes: 400 },
      { kind: 'inspect', profile: 'strict' },
      { kind: 'capture', pointers: ['/a', '/b'] },
    );
    expect(await enforce(owing, MESSAGE, ADA, store([]))).toMatchObject({
      responseObligations: { maxResultBytes: 400, profiles: ['careful', 'strict'] },
    });
    expect(await enforce(allow(), MESSAGE, ADA, store([]))).toMatchObject({
      responseObligations: { maxResultBytes: undefined, profiles: [] },
    });
  });
});
