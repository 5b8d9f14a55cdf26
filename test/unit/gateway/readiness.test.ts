// When the gateway is ready, as a table: what is so at a look, and what was so before.

import { describe, expect, it } from 'vitest';
import { assessReadiness, createReadiness, type ReadinessSources } from '../../../src/gateway/readiness.js';
import type { Emit } from '../../../src/policy/events.js';

const WAIT_MS = 60_000;
const NO_STORE = { state: 'off', reason: '', isUnreachable: false, isReady: true } as const;
const AWAY = { state: 'degraded', reason: 'away', isUnreachable: true, isReady: false } as const;
const REFUSING = { ...AWAY, isReady: true, refusesCallers: true } as const;
const NOTHING = { issuers: [], upstreams: [] };
const ISSUER = { issuers: ['corp'], upstreams: [] };
const BOTH = { issuers: ['corp'], upstreams: ['github', 'jira'] };

const fine: ReadinessSources = {
  phase: 'serving',
  isAuditWritable: true,
  store: NO_STORE,
  awaited: NOTHING,
  waitMs: WAIT_MS,
};

describe('[G-03] readiness', () => {
  it.each([
    ['is there with all that it needs', {}, 0, true, ''],
    ['is not there before the start is complete', { phase: 'starting' }, 0, false, 'the gateway is starting'],
    ['ends when the gateway stops', { phase: 'stopping' }, 0, false, 'the gateway is stopping'],
    ['needs the audit log', { isAuditWritable: false }, 0, false, 'the audit log cannot be written'],
    ['needs the store', { store: AWAY }, 0, false, 'the shared store: away'],
    ['needs the store however long that takes', { store: AWAY }, WAIT_MS * 9, false, 'the shared store: away'],
    [
      'stays, weaker, where calls are refused without the store',
      { store: REFUSING },
      0,
      true,
      'the shared store: away',
    ],
    ['waits for keys', { awaited: ISSUER }, WAIT_MS - 1, false, 'waiting for the keys of 1 issuer'],
    [
      'waits for required upstreams too',
      { awaited: BOTH },
      0,
      false,
      'waiting for the keys of 1 issuer and 2 required upstreams',
    ],
    [
      'waits for them no longer than it may',
      { awaited: ISSUER },
      WAIT_MS,
      true,
      'started without the keys of 1 issuer',
    ],
    [
      'waits for none where the wait is 0',
      { awaited: ISSUER, waitMs: 0 },
      0,
      true,
      'started without the keys of 1 issuer',
    ],
  ] as const)('%s', (_, sources, ageMs, isReady, reason) => {
    const progress = { servingSinceMs: 1_000, hasBeenReady: false };
    const look = assessReadiness({ ...fine, ...sources }, progress, 1_000 + ageMs);
    expect([look.isReady, look.reasons.join('; ')]).toEqual([isReady, reason]);
  });

  it('no longer waits for issuers and upstreams once it has been ready', () => {
    const progress = { servingSinceMs: 1_000, hasBeenReady: true };
    expect(assessReadiness({ ...fine, awaited: BOTH }, progress, 1_001).isReady).toBe(true);
    expect(assessReadiness({ ...fine, store: AWAY }, progress, 1_001).isReady).toBe(false);
  });

  it('reports each change once, with the names that the probe does not tell', () => {
    let awaited = BOTH;
    let nowMs = 0;
    const reported: unknown[] = [];
    const emit: Emit = (_, event) => void reported.push(event);
    const look = createReadiness(() => ({ ...fine, awaited }), { emit, nowMs: () => nowMs });
    expect([look(), look()].map(({ isReady }) => isReady)).toEqual([false, false]);
    awaited = { issuers: [], upstreams: ['jira'] };
    look();
    nowMs = WAIT_MS;
    look();
    awaited = NOTHING as typeof BOTH;
    look();
    expect(reported).toEqual([
      {
        isReady: false,
        detail: 'waiting for the keys of 1 issuer (corp) and 2 required upstreams (github, jira)',
        isExpected: true,
      },
      { isReady: false, detail: 'waiting for 1 required upstream (jira)', isExpected: true },
      { isReady: true, detail: 'started without 1 required upstream (jira)', isExpected: false },
      { isReady: true, detail: '', isExpected: false },
    ]);
  });
});
