// The contract of a state, and a shared store in this process.

import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { BlockTarget } from '../../src/policy/blocks.js';
import type { Principal } from '../../src/policy/principal.js';
import { type GatewayState, MAX_ENDED } from '../../src/state/memory.js';
import { type Revocation, type Revoked, UNTIL_LIFTED_MS } from '../../src/state/revocations.js';
import type { EndedSession, SealedMessage, SeenCounter, StoredEntry, StoreLink } from '../../src/state/store.js';

// What every state of a gateway promises, whatever stands behind it. Run against the memory of one replica
// and the fake store with the unit tests, and against a real store with the system tests.

const HOUR_MS = 3_600_000;
export const ISSUER = 'https://idp.example.com';

/** A caller whose token was issued a minute ago, unless told otherwise. */
export function callerOf(
  parts: Partial<Pick<Principal, 'subject' | 'client' | 'actors'>> = {},
  token: Partial<Principal['token']> = {},
): Principal {
  return {
    issuer: 'corp',
    issuerUrl: ISSUER,
    subject: 'ada',
    client: 'editor',
    groups: [],
    scopes: [],
    claims: {},
    actors: [],
    ...parts,
    token: {
      id: 'token-1',
      formerIds: [],
      audience: 'https://mcp.example.com/github',
      expiresAt: Date.now() + HOUR_MS,
      issuedAt: Date.now() - 60_000,
      binding: 'none',
      ...token,
    },
    // A test may make what only authn makes.
  } as unknown as Principal;
}

export function revocationOf(revoked: Revoked, parts: Partial<Revocation> = {}): Revocation {
  return {
    id: randomUUID(),
    revoked,
    by: 'root',
    atMs: Date.now(),
    expiresAtMs: Date.now() + HOUR_MS,
    note: 'a laptop was lost',
    ...parts,
  };
}

export const ofToken = (digest: string): Revoked => ({ kind: 'token', digest });
export const ofSubject = (subject: string, more: { client?: string; until?: number } = {}) =>
  ({
    kind: 'subject',
    issuer: ISSUER,
    subject,
    ...(more.client === undefined ? {} : { client: more.client }),
    issuedUntilMs: more.until ?? Date.now(),
  }) as const;

/** Makes a started state; the test closes it. */
export function describeState(name: string, make: () => Promise<GatewayState>): void {
  describe(`${name}, as a state`, () => {
    let state: GatewayState;
    beforeEach(async () => {
      state = await make();
    });
    afterEach(() => state.close());

    it('[REV-01] refuses a revoked token from then on, and lets others pass', async () => {
      expect(state.revocations.checkPrincipal(callerOf())).toBeUndefined();
      const added = state.revocations.add(revocationOf(ofToken('token-1')));
      expect(state.revocations.checkPrincipal(callerOf())).toBe('token-revoked');
      expect(await added).toBe('shared');
      expect(state.revocations.checkPrincipal(callerOf({}, { id: 'token-2' }))).toBeUndefined();
      const rotated = callerOf({}, { id: 'token-3', formerIds: ['token-1'] });
      expect(state.revocations.checkPrincipal(rotated)).toBe('token-revoked');
    });

    it('[REV-02] refuses what a subject was given before, of one client or of all', async () => {
      const caller = callerOf();
      const later = callerOf({}, { id: 'token-2', issuedAt: Date.now() + 60_000 });
      const untold = callerOf({}, { id: 'token-3', issuedAt: undefined });
      await state.revocations.add(revocationOf(ofSubject('ada', { client: 'other' })));
      expect(state.revocations.checkPrincipal(caller)).toBeUndefined();
      await state.revocations.add(revocationOf(ofSubject('ada')));
      expect([caller, later, untold].map(state.revocations.checkPrincipal)).toEqual([
        ...['token-revoked', undefined, 'token-revoked'],
      ]);
      expect(state.revocations.checkPrincipal(callerOf({ subject: 'bob' }))).toBeUndefined();
    });

    it('shuts out whoever has a revoked or blocked subject as an actor, as a caller and at the console', async () => {
      const { revocations } = state;
      const actors = [{ subject: 'proxy' }, { issuer: ISSUER, subject: 'agent' }];
      const caller = callerOf({ actors });
      const bob = callerOf({ subject: 'bob', actors: [{ issuer: 'https://x', subject: 'agent' }] });
      const isShut = (one: Principal, atMs = 0): boolean => revocations.isLoginShut(one, atMs);
      expect([isShut(caller), isShut(bob)]).toEqual([false, false]);
      const revoked = revocationOf(ofSubject('agent'));
      await revocations.add(revoked);
      expect([caller, bob].map(revocations.checkPrincipal)).toEqual(['token-revoked', undefined]);
      expect([isShut(caller), isShut(caller, Date.now() + 60_000), isShut(bob)]).toEqual([...[true, false, false]]);
      await revocations.lift(revoked.id);
      const block: BlockTarget = { target: 'subject', issuer: ISSUER, subject: 'agent' };
      const blocked = revocationOf({ kind: 'block', block });
      await revocations.add(blocked);
      expect([caller, bob].map(revocations.blockOf)).toEqual([blocked.id, undefined]);
      expect([isShut(caller, Date.now() + 60_000), isShut(bob)]).toEqual([true, false]);
    });

    it('[REV-03] knows a revoked session by any of its digests', async () => {
      await state.revocations.add(revocationOf({ kind: 'session', digest: 's1' }));
      expect(state.revocations.hasSession(['s0', 's1'])).toBe(true);
      expect(state.revocations.hasSession(['s2'])).toBe(false);
    });

    it('[REV-04] lists what is in force, and lifts it', async () => {
      const kept = revocationOf(ofToken('token-1'), { atMs: Date.now() - 5 });
      const lifted = revocationOf(ofToken('token-2'));
      const over = revocationOf(ofToken('token-3'), { expiresAtMs: Date.now() - 1 });
      for (const one of [kept, lifted, over]) await state.revocations.add(one);
      expect(state.revocations.list()).toEqual([lifted, kept]);
      expect(await state.revocations.lift(lifted.id)).toBe('lifted');
      expect(await state.revocations.lift(lifted.id)).toBe('unknown');
      expect(state.revocations.list()).toEqual([kept]);
      expect(state.revocations.checkPrincipal(callerOf({}, { id: 'token-2' }))).toBeUndefined();
    });

    it('[REV-60] blocks subjects and clients with every token, and items of an upstream', async () => {
      const { revocations } = state;
      const block = (target: BlockTarget, parts: Partial<Revocation> = {}) =>
        revocations.add(revocationOf({ kind: 'block', block: target }, parts));
      const later = callerOf({}, { id: 'token-2', issuedAt: Date.now() + 60_000 });
      expect([revocations.blockOf(later), revocations.blocksAt('one')]).toEqual([undefined, undefined]);
      const ids = { subject: randomUUID(), tool: randomUUID(), all: randomUUID() };
      await block({ target: 'subject', issuer: ISSUER, subject: 'ada' }, { id: ids.subject });
      expect(revocations.blockOf(later)).toBe(ids.subject);
      expect(revocations.checkPrincipal(later)).toBeUndefined();
      expect(revocations.blockOf(callerOf({ subject: 'bob' }))).toBeUndefined();
      const { client } = callerOf();
      await block({ target: 'client', issuer: ISSUER, client });
      expect(revocations.blockOf(callerOf({ subject: 'bob' }))).toBeDefined();
      expect(revocations.blocksAt('one')).toBeUndefined();
      await block({ target: 'tool', upstream: 'one', name: 'x' }, { id: ids.tool });
      const blocks = revocations.blocksAt('one');
      const seen = [blocks?.of('tool', 'x'), blocks?.of('prompt', 'x'), blocks?.entire];
      expect(seen).toEqual([ids.tool, undefined, undefined]);
      expect(revocations.blocksAt('other')).toBeUndefined();
      await revocations.add(revocationOf(ofToken('token-9')));
      expect(revocations.blocksAt('one')).toBe(blocks);
      await block({ target: 'everything' }, { id: ids.all });
      expect(revocations.blocksAt('other')?.of('tool', 'x')).toBe(ids.all);
      for (const id of [ids.all, ids.tool, ids.subject]) await revocations.lift(id);
      expect(revocations.blocksAt('one')).toBeUndefined();
    });

    it('[REV-60] tells when a block has expired', async () => {
      const { revocations } = state;
      const block: Revoked = { kind: 'block', block: { target: 'everything' } };
      await revocations.add(revocationOf(block, { expiresAtMs: Date.now() + 30 }));
      expect(revocations.blocksAt('one')).toBeDefined();
      let notified = 0;
      revocations.onChange(() => {
        notified += 1;
      });
      await expect.poll(() => revocations.list()).toEqual([]);
      expect(revocations.blocksAt('one')).toBeUndefined();
      expect(notified).toBe(1);
    });

    it('[REV-60] keeps a block without an end', async () => {
      const block: Revoked = { kind: 'block', block: { target: 'everything' } };
      const added = revocationOf(block, { expiresAtMs: UNTIL_LIFTED_MS });
      expect(await state.revocations.add(added)).toBe('shared');
      expect(state.revocations.list()).toEqual([added]);
    });

    it('[FL-03] remembers the newest result of each label, of any of the histories', async () => {
      const { flows } = state;
      expect(await flows.read(['a', 'b'], ['x', 'y'], 0)).toEqual(new Map());
      expect(await flows.record(['a'], ['x', 'y'], 'first', HOUR_MS)).toBe(true);
      expect(await flows.record(['a', 'b'], ['x'], 'second', HOUR_MS)).toBe(true);
      const history = await flows.read(['a', 'c'], ['x', 'y', 'z'], 0);
      if (history === 'unavailable' || 'lostForMs' in history) throw new Error('not there');
      const decisions = [...history].map(([label, { decision }]) => [label, decision]);
      expect(decisions.sort()).toEqual([
        ['x', 'second'],
        ['y', 'first'],
      ]);
      for (const { ageMs } of history.values()) expect(ageMs).toBeLessThan(HOUR_MS);
      const others = await Promise.all([flows.read(['b'], ['y'], 0), flows.read(['c'], ['x'], 0)]);
      expect(others).toEqual([new Map(), new Map()]);
    });

    it('[REV-05] tells of every change', async () => {
      let notified = 0;
      state.revocations.onChange(() => {
        notified += 1;
      });
      const one = revocationOf(ofToken('token-1'));
      await state.revocations.add(one);
      expect(notified).toBe(1);
      await state.revocations.lift(one.id);
      expect(notified).toBe(2);
    });

    it('[REV-06] remembers ended sessions', () => {
      state.ended.add('hash', Date.now() + HOUR_MS, 'owner');
      expect([state.ended.has('hash'), state.ended.has('other')]).toEqual([true, false]);
    });

    it('[REV-06] forgets for the ended sessions of a caller only older ones of the same caller', () => {
      state.ended.add('hash', Date.now() + HOUR_MS, 'modest');
      for (let count = 0; count <= MAX_ENDED.maxPerOwner; count += 1)
        state.ended.add(`greedy-${count}`, Date.now() + HOUR_MS, 'greedy');
      const has = ['hash', 'greedy-0', 'greedy-1'].map(state.ended.has);
      expect(has).toEqual([true, false, true]);
    });

    it('[REV-07] lets something be used once', async () => {
      const key = randomUUID();
      const use = () => state.replays.useOnce(key, Date.now() + HOUR_MS, 'owner');
      const first = await Promise.all([use(), use(), use()]);
      expect(first.filter((answer) => answer === true)).toHaveLength(1);
      expect(await use()).toBe(false);
      expect(await state.replays.useOnce(randomUUID(), Date.now() + HOUR_MS, 'owner')).toBe(true);
    });

    it('[REV-08] counts a limit exactly, by key', async () => {
      const key = randomUUID();
      const limit = { count: 3, windowMs: 60_000 };
      const answers = [];
      for (let use = 0; use < 5; use += 1) answers.push(await state.limits.take(key, limit));
      const refused = { ok: false, retryAfterMs: expect.any(Number) };
      expect(answers).toEqual([{ ok: true }, { ok: true }, { ok: true }, refused, refused]);
      const { retryAfterMs = 0 } = { ...(answers[4] as object) } as { retryAfterMs?: number };
      expect(retryAfterMs).toBeGreaterThan(50_000);
      expect(retryAfterMs).toBeLessThanOrEqual(64_000);
      expect(await state.limits.take(`${key}-2`, limit)).toEqual({ ok: true });
    });
  });
}

// A shared store in this process, for tests of what stands before a store: it counts with a clock that the
// test holds, forgets when it is told to, and is down when it is told to.

export type FakeStore = {
  /** A connection to it. */
  link(): StoreLink;
  goDown(): void;
  comeBack(): void;
  /** Loses all that it held, as a store without persistence does at its restart. */
  forget(): void;
  /** What it holds, as whoever reads it would see it. */
  dump(): string;
  /** Commands so far, by name. */
  readonly asked: string[];
};

type FakeRecord = Pick<StoredEntry, 'id' | 'body' | 'owner'> & {
  readonly kind: string;
  head: string;
  revision: number;
  /** Undefined once it is not open. */
  openUntilMs: number | undefined;
  keptUntilMs: number;
};

/** The tables of records of a store. */
function createFakeRecords(now: () => number) {
  const kept = new Map<string, FakeRecord>();
  const keys = new Map<string, { readonly id: string; readonly untilMs: number }>();
  const untilOf = (leftMs: number | undefined) => (leftMs === undefined ? undefined : now() + leftMs);
  const storedOf = ({ id, revision, head }: FakeRecord) => ({ id, revision, sealed: head });
  const ofKind = (kind: string) => [...kept.values()].filter((one) => one.kind === kind && one.keptUntilMs > now());
  const recordOf = (kind: string, id: string) => ofKind(kind).find((one) => one.id === id);
  const idOf = (kind: string, keyHash: string) => {
    const { id, untilMs = 0 } = keys.get(`${kind} ${keyHash}`) ?? {};
    return untilMs > now() ? id : undefined;
  };
  const alias = (kind: string, keyHash: string, id: string, leftMs: number) =>
    void keys.set(`${kind} ${keyHash}`, { id, untilMs: now() + leftMs });

  return {
    tables: [kept, keys] as const,
    idOf,
    alias,
    add(...[kind, entry, bounds]: Parameters<StoreLink['addRecord']>): 'added' | 'changed' | 'full' {
      const { id, key, owner, body, head, replaces, openMs, keptMs } = entry;
      if (idOf(kind, key) !== replaces) return 'changed';
      const open = ofKind(kind).filter(({ openUntilMs = 0 }) => openUntilMs > now());
      const own = open.filter((one) => one.owner === owner);
      if (open.length >= bounds.maxOpen || own.length >= bounds.maxOpenPerOwner) return 'full';
      const times = { openUntilMs: untilOf(openMs), keptUntilMs: now() + keptMs };
      kept.set(`${kind} ${id}`, { kind, id, owner, body, head, revision: 1, ...times });
      alias(kind, key, id, keptMs);
      return 'added';
    },
    replace(...[kind, { id, revision, sealed }, times]: Parameters<StoreLink['replaceRecord']>): boolean {
      const record = recordOf(kind, id);
      if (record?.revision !== revision) return false;
      const { openMs, keptMs } = times;
      Object.assign(record, { head: sealed, revision: revision + 1 });
      Object.assign(record, { openUntilMs: untilOf(openMs), keptUntilMs: now() + keptMs });
      return true;
    },
    find(kind: string, id: string) {
      const record = recordOf(kind, id);
      return record && storedOf(record);
    },
    bodyOf: (kind: string, id: string) => recordOf(kind, id)?.body,
    all: (kind: string) => ofKind(kind).reverse().map(storedOf),
    open: (kind: string) =>
      ofKind(kind)
        .filter(({ openUntilMs }) => openUntilMs !== undefined)
        .sort((one, other) => (one.openUntilMs ?? 0) - (other.openUntilMs ?? 0))
        .map(storedOf),
    overdue: (kind: string) =>
      ofKind(kind)
        .filter(({ openUntilMs }) => openUntilMs !== undefined && openUntilMs <= now())
        .map(storedOf),
  };
}

/** `now` is the store's clock, in milliseconds since the epoch. */
export function createFakeStore(now: () => number): FakeStore {
  let isDown = false;
  let changes = 0;
  let epoch: { readonly id: string; readonly atMs: number } | undefined;
  const asked: string[] = [];
  const listeners = new Set<() => void>();
  const sealed = new Map<string, { text: string; untilMs: number }>();
  const lifted = new Map<string, number>();
  const ended = new Map<string, EndedSession & { readonly untilMs: number }>();
  const uses = new Map<string, number[]>();
  const used = new Map<string, number>();
  const counters = new Map<string, SeenCounter>();
  const flowMarks = new Map<string, { readonly text: string; readonly untilMs: number }>();
  const kept = new Map<string, string>();
  const replicas = new Set<string>();
  const records = createFakeRecords(now);
  const messages = new Map<string, { readonly text: string; readonly at: number }[]>();
  let lastAt = 0;

  async function ask<T>(name: string, run: () => T): Promise<T> {
    asked.push(name);
    if (isDown) throw new Error('down');
    return run();
  }

  function change(): void {
    changes += 1;
    for (const listener of listeners) listener();
  }

  /** Forgets what was read, and shows the next. */
  function messagesFor(replica: string, readTo: number, most: number) {
    const kept = (messages.get(replica) ?? []).filter(({ at }) => at > readTo);
    messages.set(replica, kept);
    return kept.slice(0, most);
  }

  function leave({ replica, text }: SealedMessage): void {
    lastAt += 1;
    messages.set(replica, [...(messages.get(replica) ?? []), { text, at: lastAt }]);
  }

  const link = (): StoreLink => ({
    isPrivate: true,
    opened: () => Promise.resolve(),
    describe: () => 'no connection',
    probe: () => ask('look', now),
    poll: (replica, { mark, readTo, maxMessages }) =>
      ask('look', () => {
        replicas.add(replica);
        epoch ??= { id: randomUUID(), atMs: now() };
        const shown = [...ended.values()].filter(({ untilMs }) => untilMs >= Math.max(mark, now()));
        return {
          version: changes === 0 ? '' : String(changes),
          replicas: replicas.size,
          ended: shown.map((one) => ({ ...one, leftMs: one.untilMs - now() })),
          mark: shown.reduce((latest, { untilMs }) => Math.max(latest, untilMs), mark),
          hasMore: false,
          epoch: { id: epoch.id, ageMs: now() - epoch.atMs },
          messages: messagesFor(replica, readTo, maxMessages),
        };
      }),
    revocations: () =>
      ask('revocations', () => ({
        version: String(changes),
        sealed: new Map([...sealed].map(([id, { text }]) => [id, text])),
        lifted: new Set(lifted.keys()),
      })),
    addRevocation: (id, text, leftMs) =>
      ask('addRevocation', () => {
        if (sealed.has(id) || lifted.has(id)) return 'added';
        sealed.set(id, { text, untilMs: now() + leftMs });
        change();
        return 'added';
      }),
    liftRevocation: (id, leftMs) =>
      ask('liftRevocation', () => {
        sealed.delete(id);
        lifted.set(id, now() + leftMs);
        change();
      }),
    endSession: (session) =>
      ask('endSession', () => {
        ended.set(session.hash, { ...session, untilMs: now() + session.leftMs });
      }),
    enqueueMessages: (given) =>
      ask('enqueueMessages', () => {
        const reachable = given.filter(({ replica }) => replicas.has(replica));
        for (const word of reachable) leave(word);
        if (reachable.length > 0) for (const listener of listeners) listener();
        return reachable.length > 0 ? 'enqueued' : 'gone';
      }),
    replicas: () => ask('replicas', () => [...replicas]),
    take: (key, { count, windowMs, amount = 1 }) =>
      ask('take', () => {
        const within = (uses.get(key) ?? []).filter((atMs) => atMs > now() - windowMs);
        if (within.length + amount > count)
          return {
            outcome: { ok: false, retryAfterMs: windowMs },
            epoch: epoch?.id ?? '',
          } as const;
        uses.set(key, [...within, ...Array.from({ length: amount }, now)]);
        return { outcome: { ok: true }, epoch: epoch?.id ?? '' } as const;
      }),
    setFlowMarks: (marks, leftMs) =>
      ask('setFlowMarks', () => {
        for (const { hash, sealed: text } of marks) flowMarks.set(hash, { text, untilMs: now() + leftMs });
      }),
    flowMarks: (hashes) =>
      ask('flowMarks', () => ({
        marks: hashes.map((hash) => {
          const { text, untilMs } = flowMarks.get(hash) ?? { text: undefined, untilMs: 0 };
          return untilMs > now() ? text : undefined;
        }),
        epoch: epoch?.id ?? '',
      })),
    useOnce: (keyHash, leftMs) =>
      ask('useOnce', () => {
        const isKnown = (used.get(keyHash) ?? 0) > now();
        if (!isKnown) used.set(keyHash, now() + leftMs);
        return !isKnown;
      }),
    raiseCounters: (raised) =>
      ask('raiseCounters', () => {
        const isOlder = ([hash, { counter, sha256 }]: readonly [string, SeenCounter]): boolean => {
          const known = counters.get(hash);
          if (known === undefined || counter > known.counter) return false;
          return counter < known.counter || sha256 !== known.sha256;
        };
        if ([...raised].some(isOlder)) return new Map(counters);
        for (const [hash, seen] of raised) counters.set(hash, seen);
        return new Map(counters);
      }),
    keepFirst: (keyHash, text) =>
      ask('keepFirst', () => {
        if (text !== undefined && !kept.has(keyHash)) kept.set(keyHash, text);
        return kept.get(keyHash);
      }),
    addRecord: (...given) => ask('addRecord', () => records.add(...given)),
    replaceRecord: (...given) => ask('replaceRecord', () => records.replace(...given)),
    record: (...given) => ask('record', () => records.find(...given)),
    recordIdOf: (kind, keyHash) => ask('recordIdOf', () => records.idOf(kind, keyHash)),
    aliasRecord: (...given) => ask('aliasRecord', () => records.alias(...given)),
    recordBody: (...given) => ask('recordBody', () => records.bodyOf(...given)),
    records: (kind, most) => ask('records', () => records.all(kind).slice(0, most)),
    openRecords: (kind, most) => ask('openRecords', () => records.open(kind).slice(0, most)),
    overdueRecords: (kind, most) => ask('overdueRecords', () => records.overdue(kind).slice(0, most)),
    onHint: (listener) => void listeners.add(listener),
    close: () => Promise.resolve(),
  });

  return {
    link,
    asked,
    goDown() {
      isDown = true;
    },
    comeBack() {
      isDown = false;
    },
    forget() {
      for (const table of [sealed, lifted, ended, uses, used, messages, flowMarks, counters, kept, ...records.tables])
        table.clear();
      epoch = undefined;
      changes = 0;
    },
    dump: () =>
      JSON.stringify(
        [sealed, lifted, ended, uses, used, messages, flowMarks, counters, kept, ...records.tables].map((table) => [
          ...table,
        ]),
      ),
  };
}
