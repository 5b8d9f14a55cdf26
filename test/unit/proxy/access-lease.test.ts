// Whether a caller may still have what was allowed once: each cause alone, their order, and that a lease ends once.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Refusal, refuseWith } from '../../../src/policy/decision.js';
import type { Principal } from '../../../src/policy/principal.js';
import type { LoopScheduler } from '../../../src/protocol/json/incremental.js';
import type { AggregateRef } from '../../../src/protocol/transport.js';
import { createLease, type LeasePorts, type LeaseTerms } from '../../../src/proxy/access-lease.js';
import type { AuthnError, Change, OpenLease } from '../../../src/proxy/ports.js';
import type { RequestContext } from '../../../src/proxy/request-context.js';
import { FREE_TURNS } from '../../support/timing.js';
import { principal } from '../policy/samples.js';

const NOW = Date.UTC(2026, 0, 1);
const LIFETIME_MS = 60_000;
const NO_CHANGE: Change = () => undefined;

type Outcome = Principal | AuthnError;

function caller(lifetimeMs = LIFETIME_MS): Principal {
  const { token } = principal();
  return principal({ token: { ...token, expiresAt: NOW + lifetimeMs } });
}

/** What a lease asks, all of which stands; and a lease over it. */
function createRig(
  { loopScheduler = FREE_TURNS, ...more }: Partial<LeaseTerms> & { readonly loopScheduler?: LoopScheduler } = {},
  aggregate?: AggregateRef,
) {
  const entered: OpenLease[] = [];
  const reported: unknown[] = [];
  const ended: string[] = [];
  const rig = {
    ...{ entered, reported, ended },
    changes: 1,
    asked: 0,
    isOpen: true,
    /** Of the aggregate, by its own name. */
    isAggregateOpen: true,
    isThere: true,
    authenticate: (): Outcome | Promise<Outcome> => caller(),
    create(terms: Partial<LeaseTerms> = {}) {
      const lease = createLease(call, { principal: caller(), session: 's', ...more, ...terms });
      lease.onEnd(({ deny }) => void ended.push(deny.reason));
      return lease;
    },
    emit(change: Change = NO_CHANGE) {
      for (const one of [...entered]) one.onChange(change);
    },
  };
  const call = {
    changesAtStart: 1,
    incoming: { id: 'decision', upstream: 'github', aggregate, headers: {} },
    outgoing: {},
    ports: {
      leases: {
        register(lease: OpenLease) {
          entered.push(lease);
          return () => void entered.splice(entered.indexOf(lease), 1);
        },
        countChanges: () => rig.changes,
      },
      sessions: {
        open: (_sealed: string, upstream: string) =>
          (upstream === aggregate?.name ? rig.isAggregateOpen : rig.isOpen) ? {} : undefined,
      },
      upstreams: { snapshot: () => (rig.isThere ? {} : undefined) },
      identity: {
        authenticate() {
          rig.asked += 1;
          return rig.authenticate();
        },
      },
      inspection: { loopScheduler },
      audit: { report: (error: unknown) => void reported.push(error) },
    },
  } as unknown as RequestContext<LeasePorts>;
  return rig;
}

const settled = () => vi.advanceTimersByTimeAsync(0);
const denied = () => refuseWith('denied-by-rule');

beforeEach(() => void vi.useFakeTimers({ now: NOW }));
afterEach(() => void vi.useRealTimers());

describe.each([
  ['that verifies its caller anew', true],
  ['of a stream that is held', false],
] as const)('a lease %s', (_what, isReverified) => {
  it('stands while nothing that it asks has changed', async () => {
    const rig = createRig({ isReverified });
    const lease = rig.create({ grant: () => undefined });
    rig.emit();
    await settled();
    expect([lease.ended(), rig.ended, rig.entered.length]).toEqual([undefined, [], 1]);
    lease.release();
    expect(rig.entered).toEqual([]);
  });

  it.each([500, LIFETIME_MS])('[H-04] ends when its token expires, after %s ms', (lifetimeMs) => {
    const rig = createRig({ isReverified });
    rig.create({ principal: caller(lifetimeMs) });
    vi.advanceTimersByTime(lifetimeMs - 1);
    expect(rig.ended).toEqual([]);
    vi.advanceTimersByTime(1);
    expect([rig.ended, rig.entered]).toEqual([['token-expired'], []]);
  });

  it.each([
    ['its session is unknown', 'unknown-session', { isOpen: false }, undefined],
    ['its upstream is gone', 'upstream-unavailable', { isThere: false }, undefined],
    ['it is no longer granted', 'denied-by-rule', {}, denied],
    ['session and upstream are gone', 'unknown-session', { isOpen: false, isThere: false }, denied],
    ['upstream and grant are gone', 'upstream-unavailable', { isThere: false }, denied],
  ])('[H-04] ends at a change where %s', async (_why, reason, state, grant) => {
    const rig = createRig({ isReverified });
    const lease = rig.create({ grant });
    Object.assign(rig, state);
    rig.emit();
    await settled();
    expect([lease.ended()?.deny.reason, rig.ended]).toEqual([reason, [reason]]);
  });

  it('ends with an internal error where a question throws', async () => {
    const rig = createRig({ isReverified });
    const error = new Error('a bug');
    rig.create({
      grant() {
        throw error;
      },
    });
    rig.emit();
    await settled();
    expect([rig.ended, rig.reported]).toEqual([['internal'], [error]]);
  });

  it('ends with its session at once, and once', async () => {
    const rig = createRig({ isReverified });
    rig.create();
    const [entered] = rig.entered;
    entered?.end(refuseWith('unknown-session'));
    entered?.end(refuseWith('internal'));
    rig.isThere = false;
    rig.emit();
    await vi.advanceTimersByTimeAsync(LIFETIME_MS);
    expect(rig.ended).toEqual(['unknown-session']);
  });

  it('[REV-33] ends where its session is asked about and has ended, and not otherwise', () => {
    const rig = createRig({ isReverified });
    rig.create({ grant: denied });
    rig.isThere = false;
    rig.entered[0]?.checkSession();
    expect(rig.ended).toEqual([]);
    rig.isOpen = false;
    rig.entered[0]?.checkSession();
    expect(rig.ended).toEqual(['unknown-session']);
  });

  it('[REV-33] ends where the session of its aggregate has ended, or its own', () => {
    for (const over of [{ isAggregateOpen: false }, { isOpen: false }]) {
      const rig = createRig({ isReverified }, { name: 'all', session: 'of all' });
      rig.create();
      rig.entered[0]?.checkSession();
      expect(rig.ended).toEqual([]);
      Object.assign(rig, over);
      rig.entered[0]?.checkSession();
      expect(rig.ended).toEqual(['unknown-session']);
      expect(rig.entered).toEqual([]);
    }
  });

  it('never ends after its release', async () => {
    const rig = createRig({ isReverified });
    const lease = rig.create({ grant: denied });
    const [entered] = rig.entered;
    lease.release();
    entered?.end(refuseWith('unknown-session'));
    await vi.advanceTimersByTimeAsync(LIFETIME_MS);
    expect([lease.ended(), rig.ended]).toEqual([undefined, []]);
  });

  it('has ended from the start where its session ended while its request was under way', () => {
    const rig = createRig({ isReverified });
    rig.isOpen = false;
    const lease = rig.create();
    expect([lease.ended()?.deny.reason, rig.ended]).toEqual(['unknown-session', ['unknown-session']]);
  });

  it('verifies its caller at the start where something changed while its request was under way', async () => {
    const rig = createRig({ isReverified });
    rig.changes = 2;
    rig.authenticate = () => ({ reason: 'token-revoked' });
    const lease = rig.create();
    await lease.pending();
    expect([lease.ended()?.deny.reason, rig.ended]).toEqual(['token-revoked', ['token-revoked']]);
  });
});

describe('a lease that verifies its caller anew', () => {
  it('ends before all else with what is wrong with its caller', async () => {
    const rig = createRig({ isReverified: true });
    rig.create({ grant: denied });
    rig.authenticate = () => ({ reason: 'token-issuer' });
    rig.isOpen = false;
    rig.emit();
    await settled();
    expect(rig.ended).toEqual(['token-issuer']);
  });

  it('is pending until its caller is verified, and grants to the caller as verified last', async () => {
    const rig = createRig({ isReverified: true });
    const later = caller();
    const granted: Principal[] = [];
    const lease = rig.create({
      grant(_snapshot, by) {
        granted.push(by);
        return undefined;
      },
    });
    expect(lease.pending()).toBeUndefined();
    let verify = (_outcome: Outcome): void => undefined;
    rig.authenticate = () =>
      new Promise((resolve) => {
        verify = resolve;
      });
    rig.emit();
    const pending = lease.pending();
    expect(pending).toBeDefined();
    verify(later);
    await pending;
    expect([lease.pending(), granted]).toEqual([undefined, [later]]);
    expect(granted[0]).toBe(later);
  });

  it('heeds the newest verification alone, however late an older one ends', async () => {
    const rig = createRig({ isReverified: true });
    const verify: ((outcome: Outcome) => void)[] = [];
    rig.authenticate = () => new Promise((resolve) => void verify.push(resolve));
    const lease = rig.create();
    rig.emit();
    rig.emit();
    const pending = lease.pending();
    verify[0]?.({ reason: 'token-audience' });
    await settled();
    expect([lease.pending(), rig.ended]).toEqual([pending, []]);
    verify[1]?.(caller());
    await pending;
    expect([lease.pending(), lease.ended()]).toEqual([undefined, undefined]);
  });

  it('is no longer pending once it ends for another reason, which stays', async () => {
    const rig = createRig({ isReverified: true });
    let verify = (_outcome: Outcome): void => undefined;
    rig.authenticate = () =>
      new Promise((resolve) => {
        verify = resolve;
      });
    const lease = rig.create({ grant: denied });
    rig.emit();
    const pending = lease.pending();
    rig.entered[0]?.end(refuseWith('unknown-session'));
    await pending;
    verify({ reason: 'token-revoked' });
    await settled();
    expect(rig.ended).toEqual(['unknown-session']);
  });

  it('ends with an internal error where its caller cannot be verified', async () => {
    const rig = createRig({ isReverified: true });
    rig.authenticate = () => Promise.reject(new Error('the issuer broke off'));
    rig.create();
    rig.emit();
    await settled();
    expect([rig.ended, rig.reported.length]).toEqual([['internal'], 1]);
  });
});

describe('a lease of a stream that is held', () => {
  it('ends for the reason that a change gives, before all else and without asking an issuer', () => {
    const rig = createRig();
    const given: OpenLease[] = [];
    rig.create({ grant: denied });
    rig.isOpen = false;
    rig.emit((lease) => {
      given.push(lease);
      return refuseWith('token-revoked');
    });
    expect([rig.ended, rig.asked]).toEqual([['token-revoked'], 0]);
    expect(given).toMatchObject([{ upstream: 'github', session: 's' }]);
  });

  it('answers whenever it is asked', () => {
    const rig = createRig();
    let isGranted = true;
    const lease = rig.create({ grant: () => (isGranted ? undefined : denied()) });
    expect(lease.check()).toBeUndefined();
    isGranted = false;
    expect(lease.check()?.deny.reason).toBe('denied-by-rule');
    expect([rig.ended, rig.asked]).toEqual([['denied-by-rule'], 0]);
  });
});

describe('leases that a change is passed to at once', () => {
  it('are each decided in a turn of their own, and wait for it', async () => {
    const turns: (() => void)[] = [];
    const waitForTurn = () => new Promise<void>((resolve) => turns.push(resolve));
    const rig = createRig({ isReverified: true, loopScheduler: { ...FREE_TURNS, waitForTurn } });
    const leases = [rig.create(), rig.create({ grant: denied })];
    rig.emit();
    await settled();
    expect([turns.length, leases.map((lease) => lease.pending() !== undefined), rig.ended]).toEqual([
      2,
      [true, true],
      [],
    ]);
    for (const next of turns) next();
    await settled();
    expect([leases.map((lease) => lease.pending()), rig.ended]).toEqual([[undefined, undefined], ['denied-by-rule']]);
  });

  it('end once a grant that takes its turns has refused, unless a newer one was asked for', async () => {
    const grants: ((refusal: Refusal | undefined) => void)[] = [];
    const grant = () => new Promise<Refusal | undefined>((resolve) => grants.push(resolve));
    const rig = createRig();
    rig.create({ grant });
    rig.emit();
    rig.emit();
    grants[0]?.(denied());
    await settled();
    expect(rig.ended).toEqual([]);
    grants[1]?.(denied());
    await settled();
    expect(rig.ended).toEqual(['denied-by-rule']);
  });
});
