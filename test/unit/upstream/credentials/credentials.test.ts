// What is kept of issued tokens: for whom, how long, and what happens when they end or are not accepted.

import { beforeEach, describe, expect, it } from 'vitest';
import {
  type CallerOrGateway,
  type CredentialSource,
  createTokenCache,
  type PresentOutcome,
} from '../../../../src/upstream/credentials/credentials.js';
import type { IssuedToken, TokenError } from '../../../../src/upstream/credentials/token-endpoint.js';
import { principal } from '../../policy/samples.js';

const START_MS = 1_000_000;
const LIFE_MS = 600_000;

let nowMs: number;
let asked: string[];
let answer: (by: string) => Promise<IssuedToken | TokenError>;
let errors: string[];
let mayAsk: boolean;

function caller(subject: string): CallerOrGateway {
  return {
    principal: principal({ subject }),
    decisionId: 'd',
    token: undefined,
    assertionCount: 0,
  };
}

function nameOf(by: CallerOrGateway): string {
  return by === 'gateway' ? 'gateway' : by.principal.subject;
}

function obtained(value: string, lifeMs = LIFE_MS): IssuedToken {
  return { kind: 'obtained', value, expiresAtMs: nowMs + lifeMs };
}

function cacheOf(maxEntries = 10): CredentialSource {
  return createTokenCache({
    keyOf: nameOf,
    mayRequest: () => mayAsk,
    requestToken(by) {
      asked.push(nameOf(by));
      return answer(nameOf(by));
    },
    now: () => nowMs,
    onError: (detail) => errors.push(detail),
    onCredential: () => undefined,
    maxEntries,
  });
}

beforeEach(() => {
  nowMs = START_MS;
  asked = [];
  errors = [];
  mayAsk = true;
  let issued = 0;
  answer = async (by) => {
    issued += 1;
    return obtained(`${by}-${issued}`);
  };
});

const BOB = caller('bob');
const bearer = (value: string): PresentOutcome => ['authorization', `Bearer ${value}`];

describe('a token that is kept', () => {
  it('[CRD-08] is shown at once, without a promise', async () => {
    const cache = cacheOf();
    expect(await cache.header(BOB)).toEqual(bearer('bob-1'));
    const again = cache.header(BOB);
    expect(again).not.toBeInstanceOf(Promise);
    expect(again).toEqual(bearer('bob-1'));
    expect(asked).toEqual(['bob']);
  });

  it('[CRD-08] is asked for once, whoever waits meanwhile', async () => {
    const cache = cacheOf();
    const shown = await Promise.all([cache.header(BOB), cache.header(BOB), cache.header(BOB)]);
    expect(new Set(shown.map(String))).toEqual(new Set([String(bearer('bob-1'))]));
    expect(asked).toEqual(['bob']);
  });

  it('[CRD-08] is never shown for another', async () => {
    const cache = cacheOf();
    await cache.header(BOB);
    expect(await cache.header(caller('eve'))).toEqual(bearer('eve-2'));
    expect(await cache.header('gateway')).toEqual(bearer('gateway-3'));
  });

  it('[CRD-08] is renewed while it is good, and shown until then', async () => {
    const cache = cacheOf();
    await cache.header(BOB);
    nowMs += LIFE_MS - 60_000;
    expect(cache.header(BOB)).toEqual(bearer('bob-1'));
    expect(cache.header(BOB)).toEqual(bearer('bob-1'));
    await new Promise((resolve) => setImmediate(resolve));
    expect(asked).toEqual(['bob', 'bob']);
    expect(cache.header(BOB)).toEqual(bearer('bob-2'));
  });

  it('[CRD-08] stays good where its renewal fails, and is not asked for all the time', async () => {
    const cache = cacheOf();
    await cache.header(BOB);
    nowMs += LIFE_MS - 60_000;
    answer = async () => ({ kind: 'error', detail: 'down', isOfCaller: false });
    for (let turn = 0; turn < 5; turn += 1) {
      expect(cache.header(BOB)).toEqual(bearer('bob-1'));
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(asked).toEqual(['bob', 'bob']);
    expect(cache.state()).toEqual({ state: 'degraded', detail: 'down' });
  });

  it('[CRD-08] is not shown in its last moments', async () => {
    const cache = cacheOf();
    await cache.header(BOB);
    nowMs += LIFE_MS - 1_000;
    expect(await cache.header(BOB)).toEqual(bearer('bob-2'));
  });

  it('[CRD-08] that ends at once is shown once', async () => {
    const cache = cacheOf();
    answer = async () => obtained('short', 2_000);
    expect(await cache.header(BOB)).toEqual(bearer('short'));
    answer = async () => obtained('next', 2_000);
    expect(await cache.header(BOB)).toEqual(bearer('next'));
  });

  it('[CRD-08] goes where there are too many, the oldest first', async () => {
    const cache = cacheOf(2);
    for (const name of ['one', 'two', 'three']) await cache.header(caller(name));
    expect(cache.header(caller('three'))).not.toBeInstanceOf(Promise);
    expect(cache.header(caller('two'))).not.toBeInstanceOf(Promise);
    expect(await cache.header(caller('one'))).toEqual(bearer('one-4'));
  });
});

describe('a token that is not accepted', () => {
  it('[CRD-08] is dropped, and the next request gets another', async () => {
    const cache = cacheOf();
    await cache.header(BOB);
    cache.reportRejected(BOB, 'Bearer bob-1');
    expect(await cache.header(BOB)).toEqual(bearer('bob-2'));
  });

  it('[CRD-08] is not dropped for one that was shown before it', async () => {
    const cache = cacheOf();
    await cache.header(BOB);
    cache.reportRejected(BOB, 'Bearer bob-0');
    expect(cache.header(BOB)).toEqual(bearer('bob-1'));
  });

  it('[CRD-08] [CRD-07] is dropped once a moment, so that nobody has tokens issued at will', async () => {
    const cache = cacheOf();
    await cache.header(BOB);
    cache.reportRejected(BOB, 'Bearer bob-1');
    await cache.header(BOB);
    cache.reportRejected(BOB, 'Bearer bob-2');
    expect(cache.header(BOB)).toEqual(bearer('bob-2'));
    nowMs += 1_000;
    cache.reportRejected(BOB, 'Bearer bob-2');
    expect(await cache.header(BOB)).toEqual(bearer('bob-3'));
  });
});

describe('a token that cannot be had', () => {
  beforeEach(() => {
    answer = async () => ({ kind: 'error', detail: 'down', isOfCaller: false });
  });

  it('[CRD-07] is not asked for again at once, and then it is', async () => {
    const cache = cacheOf();
    expect(await cache.header(BOB)).toBe('upstream-credentials');
    expect(cache.header(BOB)).toBe('upstream-credentials');
    expect(asked).toEqual(['bob']);
    nowMs += 1_000;
    answer = async () => obtained('well');
    expect(await cache.header(BOB)).toEqual(bearer('well'));
    expect(cache.state().state).toBe('armed');
  });

  it('[CRD-07] is told, and shows in the state unless it is the fault of a caller', async () => {
    const cache = cacheOf();
    answer = async () => ({ kind: 'error', detail: 'not this one', isOfCaller: true });
    await cache.header(BOB);
    expect(errors).toEqual(['not this one']);
    expect(cache.state().state).toBe('armed');
  });

  it('[CRD-09] is not asked for where nothing may be asked', () => {
    mayAsk = false;
    expect(cacheOf().header(BOB)).toBe('upstream-credentials');
    expect(asked).toEqual([]);
  });
});
