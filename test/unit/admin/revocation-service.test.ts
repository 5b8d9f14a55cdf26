import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createRevocationService } from '../../../src/admin/revocation-service.js';
import type { IssuerSettings, Settings } from '../../../src/config/settings.js';
import { createKeyRing } from '../../../src/state/derived-keys.js';
import { createMemoryState } from '../../../src/state/memory.js';
import { callerOf, ISSUER } from '../../support/state.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const ring = createKeyRing([{ id: 'first', bytes: randomBytes(32) }]);

function deskOf(issuer: Partial<IssuerSettings>) {
  const { revocations } = createMemoryState({ ring, now: Date.now });
  const corp = { name: 'corp', issuer: ISSUER, maxLifetimeMs: HOUR_MS, ...issuer };
  const settings = { issuers: new Map([['corp', corp]]) } as unknown as Settings;
  const desk = createRevocationService({
    ring,
    now: Date.now,
    revocations,
    settings: () => settings,
  });
  return { desk, revocations };
}

const order = { kind: 'subject', issuer: 'corp', subject: 'ada', client: undefined } as const;

describe('the desk of revocations', () => {
  it.each([
    ['as long as a token may live', {}, HOUR_MS],
    ['far longer where nobody says since when tokens are', { introspection: {} }, 24 * DAY_MS],
  ])('[REV-23] keeps a revocation %s', async (_, issuer, leastMs) => {
    const { desk } = deskOf(issuer as Partial<IssuerSettings>);
    await desk.revoke({ ...order, note: 'why' }, 'root');
    const left = Date.parse(desk.list()[0]?.expires ?? '') - Date.now();
    expect(left).toBeGreaterThan(leastMs - 1_000);
    expect(left).toBeLessThan(leastMs + 5 * 60_000);
  });

  it('[REV-23] takes in what an issuer may have issued by a clock that is ahead', async () => {
    const { desk, revocations } = deskOf({});
    await desk.revoke({ ...order, note: 'why' }, 'root');
    const issued = (inMs: number) => callerOf({}, { issuedAt: Date.now() + inMs });
    expect(revocations.checkPrincipal(issued(29_000))).toBe('token-revoked');
    expect(revocations.checkPrincipal(issued(31_000))).toBeUndefined();
  });
});
