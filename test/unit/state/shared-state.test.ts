// The states of one replica and of several, over a store that does as it is told.

import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Json } from '../../../src/protocol/jsonrpc.js';

import type { KeyRing } from '../../../src/state/derived-keys.js';
import { createKeyRing } from '../../../src/state/derived-keys.js';
import { createMemoryState, type GatewayState, MAX_ENDED } from '../../../src/state/memory.js';
import { MAX_MESSAGE_CHARS, MAX_MESSAGES_PER_POLL, SEALED_MESSAGE_TTL_MS } from '../../../src/state/replica-bus.js';
import { createRevocationSet, MAX_REVOCATIONS } from '../../../src/state/revocations.js';
import { createSharedState } from '../../../src/state/shared-state.js';
import type { SealedMessage, StoreLink } from '../../../src/state/store.js';
import {
  callerOf,
  createFakeStore,
  describeState,
  type FakeStore,
  ISSUER,
  ofSubject,
  ofToken,
  revocationOf,
} from '../../support/state.js';

const KEY = { id: 'first', bytes: randomBytes(32) };
const NEXT_KEY = { id: 'next', bytes: randomBytes(32) };
const HOUR_MS = 3_600_000;
const MAX_AGE_MS = 10_000;
const LIMIT = { count: 4, windowMs: 60_000 };

let ring: KeyRing;
let store: FakeStore;
let open: GatewayState[];
let nowMs: number;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  ring = createKeyRing([KEY]);
  store = createFakeStore(Date.now);
  open = [];
  nowMs = 0;
});
afterEach(async () => {
  await Promise.all(open.map((state) => state.close()));
  vi.useRealTimers();
});

type Replica = {
  readonly of?: KeyRing;
  readonly now?: () => number;
  readonly link?: StoreLink;
  /** Most tests are about a store that has always been there. */
  readonly afterLoss?: 'refuse' | 'degrade';
  readonly readiness?: 'lenient' | 'strict';
};

async function replica({
  of = ring,
  now = Date.now,
  link,
  afterLoss = 'degrade',
  readiness = 'lenient',
}: Replica = {}): Promise<GatewayState> {
  const state = createSharedState({
    ring: of,
    now,
    link: link ?? store.link(),
    maxAgeMs: MAX_AGE_MS,
    ...{ afterLoss, readiness },
    nowMs: () => nowMs,
  });
  open.push(state);
  await state.start();
  return state;
}

/** The time of the looks goes on, and with it the clock that measures their age. */
async function pass(ms: number): Promise<void> {
  nowMs += ms;
  await vi.advanceTimersByTimeAsync(ms);
}

describe('[REV-02, REV-03, REV-04, REV-05, REV-06, REV-07]', () => {
  describeState('the memory', async () => createMemoryState({ ring: createKeyRing([KEY]), now: Date.now }));
  describeState('a store', () => replica());
});

describe('[L-93] the counters of lock files in a store', () => {
  const seen = (counter: number) => ({ counter, sha256: `${counter}`.padEnd(64, '0') });
  const countersOf = (state: GatewayState, ...upstreams: readonly string[]) =>
    state.countersOf?.(upstreams).raise(new Map()) ?? Promise.reject(new Error('no store'));

  it('only rise, are known to every replica, and name no upstream', async () => {
    const [one, other] = [await replica(), await replica()];
    await one.countersOf?.(['github']).raise(new Map([['github', seen(3)]]));
    await other.countersOf?.(['github']).raise(new Map([['github', seen(2)]]));
    expect(await countersOf(other, 'github', 'gitlab')).toEqual(new Map([['github', seen(3)]]));
    expect(await countersOf(one, 'gitlab')).toEqual(new Map());
    expect(store.dump()).not.toContain('github');
    expect(createMemoryState({ ring, now: Date.now }).countersOf).toBeUndefined();
  });

  it('are found under an older gateway key', async () => {
    const old = await replica({ of: createKeyRing([KEY]) });
    await old.countersOf?.(['github']).raise(new Map([['github', seen(5)]]));
    const rotated = await replica({ of: createKeyRing([NEXT_KEY, KEY]) });
    expect(await countersOf(rotated, 'github')).toEqual(new Map([['github', seen(5)]]));
    await rotated.countersOf?.(['github']).raise(new Map([['github', seen(6)]]));
    expect(await countersOf(rotated, 'github')).toEqual(new Map([['github', seen(6)]]));
  });

  it('are not known while the store cannot be reached, with a fixed text', async () => {
    const state = await replica();
    store.goDown();
    await expect(countersOf(state, 'github')).rejects.toThrow(/^[a-z ]+$/);
  });
});

describe('several replicas', () => {
  it('[REV-10] all know what one was told, after the next look', async () => {
    const [one, other] = [await replica(), await replica()];
    let notified = 0;
    other.revocations.onChange(() => {
      notified += 1;
    });
    const revocation = revocationOf(ofSubject('ada'));
    await one.revocations.add(revocation);
    one.ended.add('session', Date.now() + HOUR_MS, 'owner');
    await pass(1_100);
    expect(other.revocations.checkPrincipal(callerOf())).toBe('token-revoked');
    expect(other.revocations.list()).toEqual([revocation]);
    expect(other.ended.has('session')).toBe(true);
    expect(notified).toBe(1);
    await other.revocations.lift(revocation.id);
    await pass(600);
    expect(one.revocations.checkPrincipal(callerOf())).toBeUndefined();
    const later = await replica();
    expect(later.revocations.list()).toEqual([]);
    expect(later.ended.has('session')).toBe(true);
  });

  it('[REV-10] hear late of a session that ended while its replica was cut off, and not never', async () => {
    let passedMs = 0;
    const now = (): number => Date.now() + passedMs;
    store = createFakeStore(now);
    let isCut = false;
    const link = store.link();
    const unlessCut = <Asked extends unknown[], T>(ask: (...asked: Asked) => Promise<T>) =>
      ((...asked) => (isCut ? Promise.reject(new Error('cut off')) : ask(...asked))) as typeof ask;
    const cut = { poll: unlessCut(link.poll), endSession: unlessCut(link.endSession) };
    const one = await replica({ now, link: { ...link, ...cut } });
    const [other, third] = [await replica({ now }), await replica({ now })];
    isCut = true;
    one.ended.add('early', now() + HOUR_MS, 'owner');
    await pass(600);
    passedMs = 30_000;
    other.ended.add('late', now() + HOUR_MS, 'owner');
    await pass(1_100);
    expect([third.ended.has('late'), third.ended.has('early')]).toEqual([true, false]);
    isCut = false;
    await pass(1_100);
    expect(third.ended.has('early')).toBe(true);
  });

  it('[REV-10] forget no ended session of one caller for those that another ended elsewhere', async () => {
    const [one, other] = [await replica(), await replica()];
    one.ended.add('session', Date.now() + HOUR_MS, 'modest');
    await pass(1_100);
    const link = store.link();
    const { maxPerOwner } = MAX_ENDED;
    const greedy = Array.from({ length: maxPerOwner + 1 }, (_, index) => `greedy-${index}`);
    for (const hash of greedy) await link.endSession({ hash, owner: 'greedy', leftMs: HOUR_MS });
    await pass(1_100);
    for (const { ended } of [one, other]) {
      expect(ended.has('session')).toBe(true);
      expect(greedy.filter(ended.has)).toHaveLength(maxPerOwner);
    }
  });

  it('[REV-10] hear of a revocation at once, where the store hints at it', async () => {
    const [one, other] = [await replica(), await replica()];
    await one.revocations.add(revocationOf(ofToken('token-1')));
    await pass(30);
    expect(other.revocations.checkPrincipal(callerOf())).toBe('token-revoked');
  });

  it('[REV-11] show the store no name, no note and no id', async () => {
    const one = await replica();
    const named = { issuer: ISSUER, tokenId: 'jti-of-the-token' };
    await one.revocations.add(revocationOf({ kind: 'token', digest: 'd', named }));
    // With a full stop, which no random name and no sealed text has.
    await one.revocations.add(revocationOf(ofSubject('ada.lovelace')));
    await one.limits.take('["rule","subject","ada.lovelace"]', LIMIT);
    for (const text of ['ada.lovelace', 'laptop', 'root', 'jti-of', ISSUER]) expect(store.dump()).not.toContain(text);
  });

  it('[REV-11] take nothing from the store that was not sealed by this gateway', async () => {
    const stranger = await replica({ of: createKeyRing([NEXT_KEY]) });
    const one = await replica();
    await stranger.revocations.add(revocationOf(ofSubject('ada')));
    await pass(600);
    expect(one.revocations.checkPrincipal(callerOf())).toBeUndefined();
    expect(one.revocations.list()).toEqual([]);
    // Somebody was to be kept out, perhaps by a replica with a newer key or version, and is not.
    expect(one.status()).toMatchObject({
      state: 'degraded',
      reason: expect.stringContaining('cannot be opened, and are not enforced here: 1;'),
    });
    expect(stranger.status().state).toBe('armed');
  });

  it('[REV-12] know a token by its own id under every key', async () => {
    const revocation = revocationOf({
      kind: 'token',
      digest: ring.hmac('token-id', `${ISSUER}\nj1`),
      named: { issuer: ISSUER, tokenId: 'j1' },
    });
    await (await replica()).revocations.add(revocation);
    const rotated = createKeyRing([NEXT_KEY, KEY]);
    const next = await replica({ of: rotated });
    const id = rotated.hmac('token-id', `${ISSUER}\nj1`);
    expect(next.revocations.checkPrincipal(callerOf({}, { id }))).toBe('token-revoked');
  });

  it('[REV-13] teach a store that has forgotten, and take no loss for a lift', async () => {
    const [one, other] = [await replica(), await replica()];
    const [kept, lifted] = [revocationOf(ofToken('token-1')), revocationOf(ofToken('token-2'))];
    await one.revocations.add(kept);
    await one.revocations.add(lifted);
    await pass(600);
    await other.revocations.lift(lifted.id);
    await pass(600);
    store.forget();
    await pass(1_100);
    const later = await replica();
    for (const state of [one, other, later]) expect(state.revocations.list().map(({ id }) => id)).toEqual([kept.id]);
  });
});

describe('a store that is down', () => {
  it('[REV-14] is told what was revoked meanwhile, and lifts nothing', async () => {
    const [one, other] = [await replica(), await replica()];
    const before = revocationOf(ofToken('token-2'));
    await one.revocations.add(before);
    store.goDown();
    expect(await one.revocations.add(revocationOf(ofToken('token-1')))).toBe('kept');
    expect(one.revocations.checkPrincipal(callerOf())).toBe('token-revoked');
    expect(await one.revocations.lift(before.id)).toBe('unavailable');
    one.ended.add('session', Date.now() + HOUR_MS, 'owner');
    await pass(600);
    store.comeBack();
    await pass(1_100);
    expect(other.revocations.checkPrincipal(callerOf())).toBe('token-revoked');
    expect(other.revocations.list()).toHaveLength(2);
    expect(other.ended.has('session')).toBe(true);
  });

  it('[REV-15] lets callers pass for as long as is allowed, then nobody, until it is back', async () => {
    const one = await replica();
    let notified = 0;
    one.revocations.onChange(() => {
      notified += 1;
    });
    expect(one.status()).toEqual({ state: 'armed', reason: '', isUnreachable: false });
    store.goDown();
    await pass(MAX_AGE_MS - 1_000);
    expect(one.revocations.checkPrincipal(callerOf())).toBeUndefined();
    expect(one.status()).toMatchObject({ state: 'degraded', isUnreachable: true });
    await pass(2_000);
    expect(one.revocations.checkPrincipal(callerOf())).toBe('store-unavailable');
    expect(one.revocations.isLockedOut(callerOf())).toBe(false);
    expect(one.status().reason).toContain('callers are refused');
    expect(notified).toBe(1);
    store.comeBack();
    await pass(600);
    expect(one.revocations.checkPrincipal(callerOf())).toBeUndefined();
    expect(notified).toBe(2);
  });

  it('[REV-15] at the start lets nobody pass', async () => {
    store.goDown();
    const one = await replica();
    expect(one.revocations.checkPrincipal(callerOf())).toBe('store-unavailable');
    store.comeBack();
    await pass(600);
    expect(one.revocations.checkPrincipal(callerOf())).toBeUndefined();
  });

  it('[REV-16] leaves each replica its share of a limit, less what it used of it', async () => {
    const [one] = [await replica(), await replica()];
    await pass(600);
    expect(await one.limits.take('key', LIMIT)).toEqual({ ok: true });
    store.goDown();
    await pass(600);
    const askedBefore = store.asked.filter((name) => name === 'take').length;
    const answers = [one.limits.take('key', LIMIT), one.limits.take('key', LIMIT)];
    expect(answers).toEqual([{ ok: true }, { ok: false, retryAfterMs: expect.any(Number) }]);
    expect(store.asked.filter((name) => name === 'take')).toHaveLength(askedBefore);
  });

  it('[P-68] leaves no share of a budget', async () => {
    const one = await replica();
    const budget = { count: 100, windowMs: 60_000, amount: 60, isSharedOnly: true };
    expect(await one.limits.take('budget', budget)).toEqual({ ok: true });
    expect(await one.limits.take('budget', budget)).toMatchObject({ ok: false });
    store.goDown();
    const small = { ...budget, amount: 1 };
    expect(await one.limits.take('budget', small)).toBe('unavailable');
    expect(one.limits.take('budget', small)).toBe('unavailable');
  });

  it('[REV-16] that is noticed in mid-call counts there too', async () => {
    const one = await replica();
    store.goDown();
    expect(await one.limits.take('key', { count: 1, windowMs: 60_000 })).toEqual({ ok: true });
    expect(one.status().isUnreachable).toBe(true);
    expect(one.limits.take('key', { count: 1, windowMs: 60_000 })).toMatchObject({ ok: false });
  });

  it('[REV-17] can tell of no use whether it is the first', async () => {
    const one = await replica();
    store.goDown();
    const later = Date.now() + HOUR_MS;
    expect(await one.replays.useOnce('key', later, 'owner')).toBe('unavailable');
    expect(await one.replays.useOnce('key', later, 'owner')).toBe('unavailable');
  });
});

describe('words between replicas', () => {
  function listen(state: GatewayState): readonly Json[] {
    const received: Json[] = [];
    state.replicaBus.onMessage((word) => received.push(word));
    return received;
  }

  it('[REV-34] reach the one that they are for, once and in their order', async () => {
    const [one, other, third] = [await replica(), await replica(), await replica()];
    const [received, overheard, own] = [listen(other), listen(third), listen(one)];
    for (const word of ['first', 'second'])
      expect(await one.replicaBus.send(other.replicaBus.self, { word })).toBe('delivered');
    await pass(30);
    expect(received).toEqual([{ word: 'first' }, { word: 'second' }]);
    await pass(1_100);
    expect([received.length, overheard, own]).toEqual([2, [], []]);
    expect(await one.replicaBus.publish('to all')).toBe('delivered');
    expect(own).toEqual(['to all']);
    await pass(30);
    expect([received.at(-1), overheard, own]).toEqual(['to all', ['to all'], ['to all']]);
  });

  it('[REV-34] to all are heard everywhere in one order, however soon one follows another', async () => {
    const all = [await replica(), await replica(), await replica()];
    const received = all.map(listen);
    const [one, other, third] = all;
    expect(await one?.replicaBus.publish('first')).toBe('delivered');
    expect(await other?.replicaBus.publish('second')).toBe('delivered');
    await Promise.all([third, one, other, one].map((state, index) => state?.replicaBus.publish(index)));
    await pass(30);
    const [order = []] = received;
    expect(order.slice(0, 2)).toEqual(['first', 'second']);
    expect([...order].sort()).toEqual([0, 1, 2, 3, 'first', 'second']);
    for (const messages of received) expect(messages).toEqual(order);
  });

  it('[REV-34] to all are told to none where one has too much to read, and not called told', async () => {
    const link = store.link();
    const full = { ...link, enqueueMessages: () => Promise.resolve('full' as const) };
    const [one, other] = [await replica({ link: full }), await replica()];
    const [own, received] = [listen(one), listen(other)];
    expect(await one.replicaBus.publish('word')).toBe('unavailable');
    expect(await one.replicaBus.send(other.replicaBus.self, 'word')).toBe('unavailable');
    await pass(600);
    expect([own, received]).toEqual([[], []]);
  });

  it('[REV-34] are not called told by whoever does not hear its own', async () => {
    const link = store.link();
    const deaf: StoreLink = {
      ...link,
      poll: async (...asked) => ({ ...(await link.poll(...asked)), messages: [] }),
    };
    const one = await replica({ link: deaf });
    expect(await one.replicaBus.publish('word')).toBe('unavailable');
  });

  it('[REV-34] come again after a look whose answer was lost, and are still read once', async () => {
    const link = store.link();
    let isLossy = false;
    const lossy: StoreLink = {
      ...link,
      async poll(...asked) {
        const news = await link.poll(...asked);
        if (isLossy) throw new Error('lost');
        return news;
      },
    };
    const [one, other] = [await replica(), await replica({ link: lossy })];
    const received = listen(other);
    isLossy = true;
    await one.replicaBus.send(other.replicaBus.self, 'word');
    await pass(600);
    expect(received).toEqual([]);
    isLossy = false;
    await pass(1_600);
    expect(received).toEqual(['word']);
  });

  it('[REV-34, REV-10] too long for one answer of a slow store are read one by one, and hide no revocation', async () => {
    const link = store.link();
    const slow: StoreLink = {
      ...link,
      async poll(...asked) {
        const news = await link.poll(...asked);
        if (news.messages.length > 3) throw new Error('no answer in time');
        return news;
      },
    };
    const [one, other] = [await replica(), await replica({ link: slow })];
    const received = listen(other);
    const sent = Array.from({ length: 20 }, (_, index) => index);
    for (const word of sent) await one.replicaBus.send(other.replicaBus.self, word);
    await one.revocations.add(revocationOf(ofToken('token-1')));
    await pass(1_100);
    expect(other.revocations.checkPrincipal(callerOf())).toBe('token-revoked');
    await pass(8_000);
    expect(received).toEqual(sent);
    expect(other.status().isUnreachable).toBe(false);
  });

  it('[REV-34] of a flood are read a few at a look, one look after the other', async () => {
    const [one, other] = [await replica(), await replica()];
    const received = listen(other);
    const sent = Array.from({ length: 3 * MAX_MESSAGES_PER_POLL }, (_, index) => index);
    for (const word of sent) await one.replicaBus.send(other.replicaBus.self, word);
    await pass(20);
    expect(received).toHaveLength(MAX_MESSAGES_PER_POLL);
    await pass(100);
    expect(received).toEqual(sent);
  });

  it('[REV-34] are told to nobody where nobody of that name runs, or where they are too long', async () => {
    const [one, other] = [await replica(), await replica()];
    expect(await one.replicaBus.send('nobody', 'word')).toBe('undeliverable');
    const long = 'x'.repeat(MAX_MESSAGE_CHARS);
    expect(await one.replicaBus.send(other.replicaBus.self, long)).toBe('undeliverable');
    expect(await one.replicaBus.send(other.replicaBus.self, long.slice(2))).toBe('delivered');
  });

  it('[REV-34] are read once, by nobody else, not after their time, and not from another gateway', async () => {
    const written: SealedMessage[] = [];
    const link = store.link();
    const keep: StoreLink = {
      ...link,
      async enqueueMessages(messages) {
        written.push(...messages);
        return 'enqueued';
      },
    };
    const [one, other] = [await replica({ link: keep }), await replica()];
    const received = listen(other);
    await one.replicaBus.send('somebody else', 'not for this one');
    await one.replicaBus.send(other.replicaBus.self, 'for this one');
    const stranger = await replica({ of: createKeyRing([NEXT_KEY]), link: keep });
    await stranger.replicaBus.send(other.replicaBus.self, 'by a stranger');
    const early = await replica({ now: () => Date.now() - SEALED_MESSAGE_TTL_MS, link: keep });
    await early.replicaBus.send(other.replicaBus.self, 'too late');
    expect(written).toHaveLength(4);
    expect(JSON.stringify(written)).not.toContain('this one');
    const misled = written.map(({ text }) => ({ replica: other.replicaBus.self, text }));
    await link.enqueueMessages(misled, 60_000);
    await pass(600);
    expect(received).toEqual(['for this one']);
    // A store that gives again what was read changes nothing.
    await link.enqueueMessages(misled, 60_000);
    await pass(600);
    expect(received).toEqual(['for this one']);
  });

  it('[REV-34] are not told while the store is down, and nobody waits for it', async () => {
    const [one, other] = [await replica(), await replica()];
    store.goDown();
    expect(await one.replicaBus.send(other.replicaBus.self, 'word')).toBe('unavailable');
    const asked = store.asked.length;
    expect(await one.replicaBus.publish('word')).toBe('unavailable');
    expect(store.asked).toHaveLength(asked);
  });

  it('[REV-34] have nobody to go to from a replica alone', async () => {
    const alone = createMemoryState({ ring, now: Date.now });
    const { replicaBus } = alone;
    const received = listen(alone);
    expect(await replicaBus.send(replicaBus.self, 'word')).toBe('undeliverable');
    expect(await replicaBus.publish('word')).toBe('delivered');
    expect(received).toEqual(['word']);
  });
});

describe('sessions that end', () => {
  it('[REV-33] are told of once, where they did not end', async () => {
    const [one, other] = [await replica(), await replica()];
    let [here, there] = [0, 0];
    one.ended.onElsewhere(() => {
      here += 1;
    });
    other.ended.onElsewhere(() => {
      there += other.ended.has('session') ? 1 : 0;
    });
    one.ended.add('session', Date.now() + HOUR_MS, 'owner');
    await pass(3_000);
    expect([here, there]).toEqual([0, 1]);
  });
});

describe('the set of revocations', () => {
  it('[REV-18] is bounded: one more is refused, and none is forgotten', async () => {
    const state = createMemoryState({ ring, now: Date.now });
    for (let index = 0; index < MAX_REVOCATIONS; index += 1)
      await state.revocations.add(revocationOf(ofToken(`t-${index}`)));
    expect(await state.revocations.add(revocationOf(ofToken('token-1')))).toBe('full');
    expect(state.revocations.checkPrincipal(callerOf({}, { id: 't-0' }))).toBe('token-revoked');
    expect(state.revocations.checkPrincipal(callerOf())).toBeUndefined();
  });

  it('[REV-01] finds a caller that was clean a moment ago', () => {
    const known = createRevocationSet(ring, Date.now);
    const caller = callerOf();
    known.add(revocationOf(ofToken('token-0')));
    expect([known.hasCaller(caller), known.hasCaller(caller)]).toEqual([false, false]);
    known.add(revocationOf(ofToken('token-1')));
    expect(known.hasCaller(caller)).toBe(true);
  });
});

describe('a store that comes back empty', () => {
  const WINDOW_MS = 60_000;
  const BUDGET = { count: 4, windowMs: WINDOW_MS, isSharedOnly: true };
  let storeNowMs: number;
  beforeEach(() => {
    storeNowMs = Date.now();
    store = createFakeStore(() => storeNowMs);
  });
  async function passEverywhere(ms: number): Promise<void> {
    storeNowMs += ms;
    await pass(ms);
  }
  const askAll = async (state: GatewayState, windowMs = WINDOW_MS) => ({
    flows: await state.flows.read(['a'], ['x'], windowMs),
    budget: await state.limits.take('budget', { ...BUDGET, windowMs }),
    rate: await state.limits.take('rate', { count: 1_000, windowMs }),
  });
  const isLost = (leftMs: number) => ({
    flows: { lostForMs: leftMs },
    budget: { ok: false, retryAfterMs: leftMs, isLost: true },
    rate: { ok: true },
  });
  const KNOWN = { flows: new Map(), budget: { ok: true }, rate: { ok: true } };

  it('has no history of flows and budgets until each of their windows has passed', async () => {
    const one = await replica({ afterLoss: 'refuse' });
    expect(await askAll(one)).toEqual(isLost(WINDOW_MS));
    await passEverywhere(WINDOW_MS - 1_000);
    expect(await askAll(one)).toEqual(isLost(1_000));
    expect(await askAll(one, 30_000)).toEqual(KNOWN);
    await passEverywhere(1_000);
    expect(await askAll(one)).toEqual(KNOWN);
    // A replica that starts later finds the epoch that the first one began.
    expect(await askAll(await replica({ afterLoss: 'refuse' }))).toEqual(KNOWN);
    expect(one.status(WINDOW_MS).state).toBe('armed');
  });

  it('is found empty at the next question, before any poll, and by every replica', async () => {
    const [one, other] = [await replica({ afterLoss: 'refuse' }), await replica({ afterLoss: 'refuse' })];
    await passEverywhere(WINDOW_MS);
    await one.flows.record(['a'], ['x'], 'first', HOUR_MS);
    expect(await askAll(other)).toMatchObject({ flows: expect.any(Map), budget: { ok: true } });
    store.forget();
    for (const state of [one, other]) expect(await askAll(state)).toEqual(isLost(WINDOW_MS));
    await passEverywhere(600);
    for (const state of [one, other]) expect((await askAll(state)).budget).toMatchObject({ ok: false, isLost: true });
    expect(one.status(WINDOW_MS)).toMatchObject({
      state: 'degraded',
      reason: expect.stringContaining('began empty'),
    });
    expect(one.status(0).state).toBe('armed');
    await passEverywhere(WINDOW_MS);
    for (const state of [one, other]) expect(await askAll(state)).toEqual(KNOWN);
  });

  it('keeps its epoch over a break of the connection', async () => {
    const one = await replica({ afterLoss: 'refuse' });
    await passEverywhere(WINDOW_MS);
    store.goDown();
    await passEverywhere(MAX_AGE_MS * 2);
    expect(await one.flows.read(['a'], ['x'], WINDOW_MS)).toBe('unavailable');
    store.comeBack();
    await passEverywhere(1_100);
    expect(await askAll(one)).toEqual(KNOWN);
  });

  it('refuses nothing where the operator prefers that, and says so', async () => {
    const one = await replica({ afterLoss: 'degrade' });
    expect(await askAll(one)).toEqual(KNOWN);
    store.forget();
    expect(await askAll(one)).toEqual(KNOWN);
    await passEverywhere(600);
    expect(one.status(WINDOW_MS)).toMatchObject({
      state: 'degraded',
      reason: expect.stringContaining('state.afterLoss: degrade'),
    });
  });

  it.each([
    ['lenient', true],
    ['strict', false],
  ] as const)(
    'is waited for before a replica is ready; later, %s readiness without it is %s',
    async (readiness, isReadyWithout) => {
      store.goDown();
      const one = await replica({ readiness });
      expect(one.isReady()).toBe(false);
      await passEverywhere(MAX_AGE_MS * 2);
      expect(one.isReady()).toBe(false);
      store.comeBack();
      await passEverywhere(1_100);
      expect(one.isReady()).toBe(true);
      store.goDown();
      await passEverywhere(MAX_AGE_MS / 2);
      expect(one.isReady()).toBe(true);
      await passEverywhere(MAX_AGE_MS);
      expect([one.isReady(), one.status().state]).toEqual([isReadyWithout, 'degraded']);
      expect(one.revocations.checkPrincipal(callerOf())).toBe('store-unavailable');
      store.comeBack();
      await passEverywhere(1_100);
      expect(one.isReady()).toBe(true);
    },
  );
});
