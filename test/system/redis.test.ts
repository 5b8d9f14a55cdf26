// The store against a real redis-server: the same promises as in memory, with the rights of the
// documentation and no more, through a pause, an end and a loss.

import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createKeyRing } from '../../src/state/derived-keys.js';
import { type GatewayState, MAX_ENDED } from '../../src/state/memory.js';
import { openRedisLink } from '../../src/state/redis.js';
import { MAX_MESSAGE_CHARS } from '../../src/state/replica-bus.js';
import { createSharedState } from '../../src/state/shared-state.js';
import type { StoreLink } from '../../src/state/store.js';
import type { Json } from '../support/json.js';
import { type RedisServer, startRedisServer } from '../support/processes.js';
import { callerOf, describeState, ofSubject, ofToken, revocationOf } from '../support/state.js';
import { PATIENT, SOON } from '../support/timing.js';

const MAX_AGE_MS = 2_000;
const ring = createKeyRing([{ id: 'first', bytes: randomBytes(32) }]);

let redis: RedisServer;
let open: GatewayState[] = [];

beforeAll(async () => {
  redis = await startRedisServer();
});
afterEach(async () => {
  await Promise.all(open.map((state) => state.close()));
  open = [];
});
afterAll(() => redis?.close());

function openLink(prefix: string): StoreLink {
  return openRedisLink({
    type: 'redis',
    url: redis.url,
    // The rights name one prefix; what stands behind it keeps the tests apart.
    prefix: `sallyport}:${prefix}`,
    commandTimeoutMs: 300,
    maxAgeMs: MAX_AGE_MS,
  });
}

async function replica(
  prefix: string = randomUUID(),
  // Each prefix has just begun.
  afterLoss: 'refuse' | 'degrade' = 'degrade',
): Promise<GatewayState> {
  const link = openLink(prefix);
  const state = createSharedState({
    ...{ ring, now: Date.now, link, maxAgeMs: MAX_AGE_MS },
    afterLoss,
  });
  open.push(state);
  await state.start();
  return state;
}

describeState('Redis', () => replica());

describe('replicas at a real store', () => {
  it('[L-93] raise the counters of lock files, never lower them, and let them expire', async () => {
    const prefix = randomUUID();
    const [one, other] = [await replica(prefix), await replica(prefix)];
    const seen = (counter: number) => ({ counter, sha256: `${counter}`.padEnd(64, 'a') });
    const upstreams = ['github', 'gitlab'];
    const raise = (state: GatewayState, counter: number) =>
      state.countersOf?.(upstreams).raise(new Map([['github', seen(counter)]]));
    await raise(one, 10);
    expect(await raise(other, 9)).toEqual(new Map([['github', seen(10)]]));
    expect(await raise(other, 11)).toEqual(new Map([['github', seen(11)]]));
    expect(await one.countersOf?.(upstreams).raise(new Map())).toEqual(new Map([['github', seen(11)]]));
    const left = await redis.command('PTTL', `{sallyport}:${prefix}}:pins:counters`);
    expect(Number(/\d+/.exec(left)?.[0])).toBeGreaterThan(399 * 24 * 3_600_000);
  });

  it('[REV-10] hear of a revocation, a lift and an ended session soon', async () => {
    const prefix = randomUUID();
    const [one, other] = [await replica(prefix), await replica(prefix)];
    const revocation = revocationOf(ofSubject('ada'));
    expect(await one.revocations.add(revocation)).toBe('shared');
    one.ended.add('session', Date.now() + 3_600_000, 'owner');
    await expect.poll(() => other.revocations.checkPrincipal(callerOf()), SOON).toBe('token-revoked');
    await expect.poll(() => other.ended.has('session'), SOON).toBe(true);
    expect(await other.revocations.lift(revocation.id)).toBe('lifted');
    await expect.poll(() => one.revocations.list(), SOON).toEqual([]);
  });

  it('[REV-10] keep of one caller only so many ended sessions, the newest, and all of others', async () => {
    const prefix = randomUUID();
    const link = openLink(prefix);
    const one = await replica(prefix);
    const leftMs = 3_600_000;
    await link.endSession({ hash: 'session', owner: 'modest', leftMs });
    const { maxPerOwner } = MAX_ENDED;
    for (let count = 0; count <= maxPerOwner; count += 1)
      await link.endSession({ hash: `greedy-${count}`, owner: 'greedy', leftMs: leftMs + count });
    const kept = await redis.command('ZCARD', `{sallyport}:${prefix}}:sessions:ended`);
    expect(kept).toContain(`:${maxPerOwner + 1}`);
    await expect.poll(() => one.ended.has('session'), SOON).toBe(true);
    await link.close();
    const later = await replica(prefix);
    expect([0, 1].map((count) => later.ended.has(`greedy-${count}`))).toEqual([false, true]);
    expect(later.ended.has('session')).toBe(true);
  });

  it('[REV-10] remember all sessions that ended under a version which stored no owner', async () => {
    const prefix = randomUUID();
    const hashes = Array.from({ length: MAX_ENDED.maxPerOwner + 1 }, (_, count) => `old-${count}`);
    const untilMs = Date.now() + 3_600_000;
    const entries = hashes.flatMap((hash, count) => [String(untilMs + count), hash]);
    const key = `{sallyport}:${prefix}}:sessions:ended`;
    await redis.command('ZADD', key, ...entries);
    await redis.command('PEXPIRE', key, '3600000');
    const one = await replica(prefix);
    expect(hashes.filter((hash) => !one.ended.has(hash))).toEqual([]);
  });

  it('[REV-34] read words for them once, in their order, and no more than are kept', async () => {
    const prefix = randomUUID();
    const [one, other] = [await replica(prefix), await replica(prefix)];
    const received: Json[] = [];
    other.replicaBus.onMessage((word) => received.push(word));
    const sent = Array.from({ length: 20 }, (_, index) => index);
    for (const word of sent) expect(await one.replicaBus.send(other.replicaBus.self, word)).toBe('delivered');
    await expect.poll(() => received.length, SOON).toBe(sent.length);
    expect(received).toEqual(sent);
    expect(await one.replicaBus.send(randomUUID(), 'word')).toBe('undeliverable');
    const { self } = other.replicaBus;
    // Forgotten with the look after the one that read them.
    await expect.poll(() => redis.command('KEYS', '*:words:*'), SOON).not.toContain(self);
    await other.close();
    open = open.filter((state) => state !== other);
    const answers = [];
    for (let word = 0; word < 300; word += 1) answers.push(await one.replicaBus.send(self, word));
    expect(answers.filter((answer) => answer === 'delivered')).toHaveLength(256);
    expect(answers.at(-1)).toBe('unavailable');
    expect(await one.replicaBus.publish('word')).toBe('unavailable');
    // It runs no more, and keeps nobody from telling the others.
    const soon = { timeout: 6_000, interval: 100 };
    await expect.poll(() => one.replicaBus.publish('word'), soon).toBe('delivered');
  });

  it('[REV-34] read the longest words of a flood without losing sight of the store', async () => {
    const prefix = randomUUID();
    const [one, other] = [await replica(prefix), await replica(prefix)];
    const received: number[] = [];
    other.replicaBus.onMessage((word) => received.push(Number(String(word).slice(0, 3))));
    const long = '\u20ac'.repeat(MAX_MESSAGE_CHARS - 5);
    const sent = Array.from({ length: 40 }, (_, index) => 100 + index);
    for (const index of sent)
      expect(await one.replicaBus.send(other.replicaBus.self, `${index}${long}`)).toBe('delivered');
    await expect.poll(() => received.length, PATIENT).toBe(sent.length);
    expect(received).toEqual(sent);
    expect(other.status().isUnreachable).toBe(false);
  });

  it('[REV-34] hear what is told to all in one order', async () => {
    const prefix = randomUUID();
    const all = [await replica(prefix), await replica(prefix), await replica(prefix)];
    const received = all.map(({ replicaBus }) => {
      const own: Json[] = [];
      replicaBus.onMessage((word) => own.push(word));
      return own;
    });
    const sent = Array.from({ length: 60 }, (_, index) => index);
    const outcomes = await Promise.all(sent.map((index) => all[index % 3]?.replicaBus.publish(index)));
    expect(new Set(outcomes)).toEqual(new Set(['delivered']));
    await expect.poll(() => received.map(({ length }) => length), PATIENT).toEqual([60, 60, 60]);
    expect(received[1]).toEqual(received[0]);
    expect(received[2]).toEqual(received[0]);
  });

  it('keep records that they change one after the other, each once, and that end by themselves', async () => {
    const prefix = randomUUID();
    const bounds = { maxOpen: 30, maxOpenPerOwner: 3, maxKept: 40, maxBody: 1_000, maxBodies: 10_000 };
    const [one, other] = [await replica(prefix), await replica(prefix)].map((state) =>
      state.tableOf<string, string>('note', bounds),
    );
    if (one === undefined || other === undefined) throw new Error('two replicas');
    const add = (table: typeof one, id: string, owner = id, openMs = 60_000, key = id) =>
      table.add({
        ...{ id, head: `head of ${id}`, body: `body of ${id}`, key, owner, replaces: undefined },
        ...{ openUntilMs: Date.now() + openMs, keptUntilMs: Date.now() + 120_000 },
      });
    const added = await Promise.all([add(one, 'a', 'ann', 60_000, 'key'), add(other, 'b', 'ann', 60_000, 'key')]);
    expect([...added].sort()).toEqual(['added', 'changed']);
    const kept = await other.findByKey('key');
    if (kept === undefined || kept === 'unavailable') throw new Error('not found');
    expect(await one.bodyOf(kept.id)).toBe(`body of ${kept.id}`);
    const times = { openUntilMs: Date.now() + 60_000, keptUntilMs: Date.now() + 120_000 };
    const used = await Promise.all(
      Array.from({ length: 20 }, (_, use) => (use % 2 === 0 ? one : other).replace(kept, `use ${use}`, times)),
    );
    expect(used.filter((done) => done === true)).toHaveLength(1);
    expect(used.filter((done) => done === false)).toHaveLength(19);
    for (const id of ['c', 'd']) expect(await add(one, id, 'ann')).toBe('added');
    expect(await add(other, 'e', 'ann')).toBe('full');
    expect(await add(other, 'f', 'eve', 50)).toBe('added');
    await new Promise((resolve) => setTimeout(resolve, 100));
    const idsOf = (found: Awaited<ReturnType<typeof one.list>>) =>
      found === 'unavailable' ? found : found.map(({ id }) => id);
    expect(idsOf(await one.list(2))).toEqual(['f', 'd']);
    expect(idsOf(await one.overdue(9))).toEqual(['f']);
    expect([...idsOf(await one.open(9))].sort()).toEqual([kept.id, 'c', 'd', 'f'].sort());
    expect(await one.alias('other key', 'c', Date.now() + 60_000)).toBe(true);
    expect(await other.findByKey('other key')).toMatchObject({ id: 'c', head: 'head of c' });
    for (let count = 0; count < 50; count += 1) await add(one, `n${count}`, `o${count}`, 1);
    expect(idsOf(await other.list(100)).length).toBeLessThanOrEqual(40);
    await redis.stop();
    expect(await one.find('c')).toBe('unavailable');
    await redis.start();
    await expect.poll(() => other.find('c'), PATIENT).toBeUndefined();
  });

  it('[REV-08, REV-16] count a limit together, and exactly, however many ask at once', async () => {
    const prefix = randomUUID();
    const states = [await replica(prefix), await replica(prefix)];
    const limit = { count: 20, windowMs: 60_000 };
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, use) => states[use % 2]?.limits.take('key', limit)),
    );
    expect(answers.filter((answer) => typeof answer === 'object' && answer.ok)).toHaveLength(20);
  });

  it('[REV-08] let a use of a limit go when its window has passed', async () => {
    const one = await replica();
    const limit = { count: 1, windowMs: 320 };
    expect(await one.limits.take('key', limit)).toEqual({ ok: true });
    expect(await one.limits.take('key', limit)).toMatchObject({ ok: false });
    await expect.poll(() => one.limits.take('key', limit), { interval: 50 }).toEqual({ ok: true });
    const charge = (amount: number) =>
      one.limits.take('spend', { count: 1e15, windowMs: 60_000, amount, isSharedOnly: true });
    const charged = await Promise.all(Array.from({ length: 12 }, () => charge(1e14 + 0.0)));
    expect(charged.map((outcome) => outcome !== 'unavailable' && outcome.ok)).toEqual([
      ...Array.from({ length: 10 }, () => true),
      ...[false, false],
    ]);
    expect(await charge(0)).toEqual({ ok: true });
    expect(await charge(1)).toMatchObject({ ok: false });
  });

  it('[REV-11] leave nothing there without an end, and no name', async () => {
    // Names of keys are digits and letters up to f; the name that is looked for is not.
    const prefix = randomUUID();
    const one = await replica(prefix);
    await one.revocations.add(revocationOf(ofSubject('lovelace')));
    one.ended.add('session', Date.now() + 3_600_000, 'owner');
    await one.limits.take('["rule","subject","lovelace"]', { count: 1, windowMs: 60_000 });
    await one.replays.useOnce('use', Date.now() + 60_000, 'owner');
    expect(await one.firstUses?.keep('lovelace', 'lovelace offers')).toBe('lovelace offers');
    expect(await one.firstUses?.keep('lovelace', 'another')).toBe('lovelace offers');
    expect(await one.firstUses?.find('nobody')).toBeUndefined();
    await expect.poll(() => redis.command('KEYS', '*:sessions:ended')).toContain('sessions:ended');
    const [first, second] = [await replica(prefix), await replica(prefix)];
    const { self } = second.replicaBus;
    await second.close();
    expect(await first.replicaBus.send(self, { subject: 'lovelace' })).toBe('delivered');
    const script = `local endless = {} for _, key in ipairs(redis.call('KEYS', '*')) do if redis.call('PTTL', key) < 0 then endless[#endless + 1] = key end end return endless`;
    expect(await redis.command('EVAL', script, '0')).toContain('*0');
    const all = await redis.command('KEYS', '*');
    expect(all).toContain(':revocations:sealed');
    expect(all).toContain(`:words:${self}`);
    expect(all).not.toContain('lovelace');
  });

  it('know of no history after it was emptied, and share the epoch that begins then', async () => {
    const windowMs = 400;
    const make = (prefix: string) => replica(prefix, 'refuse');
    const [prefix, elsewhere] = [randomUUID(), randomUUID()];
    const [one, other] = [await make(prefix), await make(prefix)];
    const ask = async (state: GatewayState) => [
      await state.flows.read(['a'], ['x'], windowMs),
      await state.limits.take('spend', { count: 1e6, windowMs, isSharedOnly: true }),
    ];
    const known = [new Map(), { ok: true }];
    const lost = [{ lostForMs: expect.any(Number) }, { ok: false, retryAfterMs: expect.any(Number), isLost: true }];
    for (const state of [one, other]) {
      await expect.poll(() => ask(state), PATIENT).toEqual(known);
      expect(state.status(windowMs).state).toBe('armed');
    }
    await redis.command('FLUSHALL');
    for (const state of [one, other]) expect(await ask(state)).toEqual(lost);
    await expect.poll(() => ask(one), PATIENT).toEqual(known);
    expect(await ask(await make(prefix))).toEqual(known);
    expect(await ask(await make(elsewhere))).toEqual(lost);
  });

  it('[REV-15, REV-17] refuse while it is silent for too long, wait for nobody, and go on after', async () => {
    const one = await replica();
    redis.pause();
    try {
      const beganMs = performance.now();
      await one.limits.take('key', { count: 9, windowMs: 60_000 });
      expect(one.status().isUnreachable).toBe(true);
      expect(await one.replays.useOnce('use', Date.now() + 60_000, 'owner')).toBe('unavailable');
      expect(one.limits.take('key', { count: 9, windowMs: 60_000 })).toEqual({ ok: true });
      expect(performance.now() - beganMs).toBeLessThan(MAX_AGE_MS);
      await expect.poll(() => one.revocations.checkPrincipal(callerOf()), PATIENT).toBe('store-unavailable');
      expect(one.status().reason).toContain('no answer in time');
    } finally {
      redis.resume();
    }
    await expect.poll(() => one.revocations.checkPrincipal(callerOf()), PATIENT).toBeUndefined();
    expect(one.status()).toMatchObject({ state: 'armed', isUnreachable: false });
  });

  it('[REV-13, REV-14] tell a store that has lost everything what they know', async () => {
    const prefix = randomUUID();
    const [one, other] = [await replica(prefix), await replica(prefix)];
    await one.revocations.add(revocationOf(ofToken('token-1')));
    await redis.stop();
    expect(await one.revocations.add(revocationOf(ofSubject('bob')))).toBe('kept');
    await redis.start();
    const bob = callerOf({ subject: 'bob' }, { id: 'token-2' });
    await expect.poll(() => other.revocations.checkPrincipal(bob), PATIENT).toBe('token-revoked');
    const later = await replica(prefix);
    expect(later.revocations.checkPrincipal(callerOf())).toBe('token-revoked');
  });

  it('[E-64] are tried with the rights of a gateway, which leaves nothing there, and say why they take no writes', async () => {
    const link = openLink(randomUUID());
    await link.opened();
    const before = await redis.command('DBSIZE');
    const askedMs = Date.now();
    const statedMs = await link.probe();
    expect(statedMs).toBeGreaterThanOrEqual(askedMs - 1);
    expect(statedMs).toBeLessThanOrEqual(Date.now());
    expect(await redis.command('DBSIZE')).toBe(before);
    await redis.command('CONFIG', 'SET', 'min-replicas-to-write', '1');
    const refused = await link.probe().then(
      () => 'taken',
      (error: unknown) => link.describe(error),
    );
    await redis.command('CONFIG', 'SET', 'min-replicas-to-write', '0');
    await link.close();
    expect(refused).toContain('(NOREPLICAS)');
  });

  it('[REV-15] with a password that is not accepted let nobody pass, and say why', async () => {
    const link = openRedisLink({
      type: 'redis',
      url: redis.url.replace(/:[^:@]+@/, ':wrong@'),
      prefix: 'sallyport',
      commandTimeoutMs: 300,
      maxAgeMs: MAX_AGE_MS,
    });
    const one = createSharedState({ ring, now: Date.now, link, maxAgeMs: MAX_AGE_MS });
    open.push(one);
    await one.start();
    expect(one.revocations.checkPrincipal(callerOf())).toBe('store-unavailable');
    await expect.poll(() => one.status().reason, PATIENT).toContain('WRONGPASS');
  });
});
