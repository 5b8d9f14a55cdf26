// What other replicas say of a session, as it is noted here: bounded, and only where there is something of it.

import { describe, expect, it, vi } from 'vitest';
import {
  createReplicaScopedId,
  createSessionStates,
  limitSessionBus,
  MAX_MESSAGES_PER_OWNER,
  MAX_RESOURCES,
  MAX_SESSIONS,
  MAX_SESSIONS_PER_CALLER,
  MAX_WAITING_PER_OWNER,
  receiveSessionMessage,
  replicaOf,
  type SessionChange,
  type SessionMessage,
} from '../../../../../src/upstream/adapters/session-over-stateless/session-state.js';

const SESSION = 'session';
const OWNER = 'ann';
const say = (
  book: ReturnType<typeof createSessionStates>,
  news: SessionChange,
  session = SESSION,
) => receiveSessionMessage(book, { session, owner: OWNER, news });

describe('[Y-12] words about a session', () => {
  it('are noted before its first request comes here', () => {
    const book = createSessionStates();
    say(book, { kind: 'log-level', level: 'debug' });
    say(book, { kind: 'subscribed', uri: 'memo://one' });
    expect(book.getOrCreate(SESSION, OWNER).logLevel).toBe('debug');
    expect([...book.getOrCreate(SESSION, OWNER).resources]).toEqual(['memo://one']);
    expect(book.getOrCreate('another', OWNER).logLevel).toBeUndefined();
  });

  it('are told to its streams where they change something, and only then', () => {
    const book = createSessionStates();
    const changed = vi.fn();
    book.getOrCreate(SESSION, OWNER).listeners.add(changed);
    say(book, { kind: 'subscribed', uri: 'memo://one' });
    say(book, { kind: 'subscribed', uri: 'memo://one' });
    say(book, { kind: 'unsubscribed', uri: 'memo://two' });
    expect(changed).toHaveBeenCalledTimes(1);
    say(book, { kind: 'unsubscribed', uri: 'memo://one' });
    expect(changed).toHaveBeenCalledTimes(2);
  });

  it('subscribe to no more than is kept', () => {
    const book = createSessionStates();
    for (let index = 0; index <= MAX_RESOURCES; index += 1)
      say(book, { kind: 'subscribed', uri: `memo://${index}` });
    expect(book.getOrCreate(SESSION, OWNER).resources.size).toBe(MAX_RESOURCES);
  });

  it('reach what runs and what waits in that session alone, and make no notes where there is nothing', () => {
    const book = createSessionStates();
    const settle = vi.fn();
    book.getOrCreate(SESSION, OWNER).waiting.set('here.q', settle);
    const reply = { kind: 'result', result: {} } as const;
    say(book, { kind: 'answered', id: 'here.q', reply }, 'another');
    say(book, { kind: 'cancelled', id: 1 }, 'another');
    expect(settle).not.toHaveBeenCalled();
    expect(book.find('another')).toBeUndefined();
    say(book, { kind: 'answered', id: 'here.q', reply });
    expect(settle).toHaveBeenCalledWith(reply);
  });
});

describe('[Y-12] a book that is full', () => {
  it.each([
    ['of one caller', MAX_SESSIONS_PER_CALLER, () => OWNER],
    ['of all', MAX_SESSIONS, (index: number) => `caller ${index % 100}`],
  ])(
    'forgets the session used least lately in which nothing is under way: %s',
    (_, most, owner) => {
      const book = createSessionStates();
      const asked = book.getOrCreate(SESSION, OWNER);
      asked.waiting.set('here.q', () => undefined);
      for (let index = 0; index < most; index += 1)
        book.getOrCreate(`another ${index}`, owner(index));
      expect(book.find(SESSION)).toBe(asked);
      expect(book.find('another 0')).toBeUndefined();
      expect(book.find('another 1')).toBeDefined();
      asked.waiting.clear();
      book.getOrCreate('one more', owner(most));
      expect(book.find(SESSION)).toBeUndefined();
    },
  );
});

describe('[REV-33] a book of sessions', () => {
  it('forgets those that ended elsewhere, and ends what runs in them', () => {
    const book = createSessionStates();
    const [gone, kept] = [new AbortController(), new AbortController()];
    book.getOrCreate(SESSION, OWNER).running.set(1, gone);
    book.getOrCreate('another', OWNER).running.set(1, kept);
    book.forgetWhere((session) => session === SESSION);
    expect([gone.signal.aborted, kept.signal.aborted]).toEqual([true, false]);
    expect(book.find(SESSION)).toBeUndefined();
  });
});

describe('[Y-11] a name of something that waits', () => {
  it('says where, and can be guessed by nobody', () => {
    const [one, other] = [
      createReplicaScopedId({ self: 'here' }),
      createReplicaScopedId({ self: 'here' }),
    ];
    expect([replicaOf(one), replicaOf(other)]).toEqual(['here', 'here']);
    expect(one).not.toBe(other);
    expect(replicaOf(7)).toBe('7');
  });
});

describe('[Y-12] the share of an owner', () => {
  const messageOf = (owner: string): SessionMessage => ({
    session: SESSION,
    owner,
    news: { kind: 'log-level', level: 'debug' },
  });

  function slowBus() {
    const released: (() => void)[] = [];
    const wait = () =>
      new Promise<'delivered'>((resolve) => released.push(() => resolve('delivered')));
    return { released, bus: limitSessionBus({ self: 'here', send: wait, publish: wait }) };
  }

  it('is so many words on their way, and so many that wait; others have room', async () => {
    const { released, bus } = slowBus();
    const most = MAX_MESSAGES_PER_OWNER + MAX_WAITING_PER_OWNER;
    const first = Array.from({ length: most }, (_, index) =>
      index % 2 === 0 ? bus.send('there', messageOf('ann')) : bus.publish(messageOf('ann')),
    );
    expect(await bus.publish(messageOf('ann'))).toBe('overloaded');
    expect(await bus.send('there', messageOf('ann'))).toBe('overloaded');
    const other = bus.publish(messageOf('bob'));
    await Promise.resolve();
    expect(released.length).toBe(MAX_MESSAGES_PER_OWNER + 1);
    let isDone = false;
    const all = Promise.all([...first, other]).finally(() => {
      isDone = true;
    });
    while (!isDone) {
      expect(released.length).toBeLessThanOrEqual(MAX_MESSAGES_PER_OWNER + 1);
      for (const release of released.splice(0)) release();
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(new Set(await all)).toEqual(new Set(['delivered']));
    const late = bus.publish(messageOf('ann'));
    await Promise.resolve();
    for (const release of released.splice(0)) release();
    expect(await late).toBe('delivered');
  });

  it('is free again when a word was heard, or could not be told', async () => {
    let fails = true;
    const once = () =>
      fails ? Promise.reject(new Error('broken')) : Promise.resolve('delivered' as const);
    const bus = limitSessionBus({ self: 'here', send: once, publish: once });
    for (let index = 0; index < 2 * MAX_MESSAGES_PER_OWNER; index += 1)
      await expect(bus.publish(messageOf('ann'))).rejects.toThrow('broken');
    fails = false;
    expect(await bus.publish(messageOf('ann'))).toBe('delivered');
  });
});
