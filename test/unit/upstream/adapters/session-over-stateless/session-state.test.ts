// The notes of sessions that only the gateway knows: a caller who opens many forgets its own.
// The stream of a session before a stateless upstream: what it leaves behind, however it ends.
// What other replicas say of a session, as it is noted here: bounded, and only where there is something of it.

import { getEventListeners } from 'node:events';
import { describe, expect, it, vi } from 'vitest';
import type { Caller } from '../../../../../src/policy/principal.js';
import type { ForwardOutcome, UpstreamResponse } from '../../../../../src/protocol/transport.js';
import { envelopeOf } from '../../../../../src/upstream/adapters/session-over-stateless/session-over-stateless-adapter.js';
import {
  createReplicaScopedId,
  createSessionStates,
  limitSessionBus,
  listenForSession,
  MAX_MESSAGES_PER_OWNER,
  MAX_RESOURCES,
  MAX_SESSIONS,
  MAX_SESSIONS_PER_CALLER,
  MAX_WAITING_PER_OWNER,
  receiveSessionMessage,
  replicaOf,
  type SessionChange,
  type SessionMessage,
  type SessionStates,
} from '../../../../../src/upstream/adapters/session-over-stateless/session-state.js';
import { bodyResponse, streamResponse } from '../../../../../src/upstream/response-messages.js';

const ANN = 'ann';
const MORE_THAN_ALL = 10_001;

function open(book: SessionStates, who: string, count: number): void {
  for (let at = 0; at < count; at += 1) book.getOrCreate(`${who}-${at}`, who).logLevel = `l${at}`;
}

describe('[H-09] what sessions have said', () => {
  it('is not forgotten for another caller who opens many', () => {
    expect(MORE_THAN_ALL).toBeGreaterThan(MAX_SESSIONS);
    const book = createSessionStates();
    book.getOrCreate('first', ANN).logLevel = 'debug';
    open(book, 'many', MORE_THAN_ALL);
    expect(book.getOrCreate('first', ANN).logLevel).toBe('debug');
  });

  it('is forgotten in the order of its use, of one caller who opens many', () => {
    const book = createSessionStates();
    open(book, ANN, MAX_SESSIONS_PER_CALLER);
    book.getOrCreate('ann-0', ANN);
    book.getOrCreate('one-more', ANN);
    expect([book.find('ann-0')?.logLevel, book.find('ann-1'), book.find('ann-2')?.logLevel]).toEqual([
      'l0',
      undefined,
      'l2',
    ]);
  });

  it('is bounded over all callers: the one used least lately goes', () => {
    const book = createSessionStates();
    book.getOrCreate('first', ANN).logLevel = 'debug';
    for (let at = 0; at < MAX_SESSIONS - 1; at += 1) book.getOrCreate(`s${at}`, `o${at}`);
    expect(book.find('first')?.logLevel).toBe('debug');
    book.getOrCreate('one-more', 'late');
    expect([book.find('first'), book.find('s0')]).toEqual([undefined, expect.anything()]);
  });

  it('ends with its session, whose place is free again and whose requests are given up', () => {
    const book = createSessionStates();
    open(book, ANN, MAX_SESSIONS_PER_CALLER);
    const controller = new AbortController();
    book.getOrCreate('ann-5', ANN).running.set(1, controller);
    book.forget('ann-5');
    expect(controller.signal.aborted).toBe(true);
    book.getOrCreate('one-more', ANN);
    expect([book.find('ann-5'), book.find('ann-0')?.logLevel]).toEqual([undefined, 'l0']);
  });

  it('is of its owner where another replica tells of it, too', () => {
    const book = createSessionStates();
    book.getOrCreate('first', ANN).logLevel = 'debug';
    const news = { kind: 'log-level', level: 'info' } as const;
    for (let at = 0; at < MORE_THAN_ALL; at += 1)
      receiveSessionMessage(book, { session: `s${at}`, owner: 'many', news });
    expect(book.find('first')?.logLevel).toBe('debug');
  });
});

/** A subscription that its upstream ends at once. */
function shortStream(): UpstreamResponse {
  async function* nothing(): AsyncGenerator<never, void> {}
  const source = { release: () => undefined, abort: () => undefined };
  return streamResponse(nothing(), source);
}

async function openStream(response: ForwardOutcome, signal = new AbortController().signal) {
  const notes = createSessionStates().getOrCreate('session', 'ann');
  const stream = await listenForSession(
    {
      maxResponseBytes: 1_000,
      requestTimeoutMs: 1_000,
      client: { subscribe: () => Promise.resolve(response) },
      caller: {} as Caller,
      readableOf: async (uris) => [...uris],
      envelope: envelopeOf('1.0.0', { allowedServerRequests: [], apps: false }, undefined),
    },
    notes,
    signal,
  );
  return { notes, stream };
}

async function listen(response: UpstreamResponse) {
  const { notes, stream } = await openStream(response);
  if (stream.kind === 'error') throw new Error(stream.reason);
  return { notes, stream };
}

describe('[Y-09] a stream', () => {
  it('is not told of news any more once its upstream has ended it', async () => {
    const { notes, stream } = await listen(shortStream());
    expect(notes.listeners.size).toBe(1);
    while ((await stream.next()) instanceof Uint8Array);
    stream.release();
    expect(notes.listeners.size).toBe(0);
  });

  it('is not told of news any more once its client has left, though it was never read', async () => {
    const { notes, stream } = await listen(shortStream());
    stream.abort();
    expect(notes.listeners.size).toBe(0);
  });

  it.each([
    ['refused', { kind: 'error', reason: 'upstream-unavailable' } as const],
    ['answered by no stream', bodyResponse(405)],
    ['ended at once', shortStream()],
  ])('leaves no listener at its client when it is %s', async (_how, response) => {
    const { signal } = new AbortController();
    const { stream } = await openStream(response, signal);
    if (stream.kind === 'response') while ((await stream.next()) instanceof Uint8Array);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});

const SESSION = 'session';
const OWNER = 'ann';
const say = (book: ReturnType<typeof createSessionStates>, news: SessionChange, session = SESSION) =>
  receiveSessionMessage(book, { session, owner: OWNER, news });

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
    for (let index = 0; index <= MAX_RESOURCES; index += 1) say(book, { kind: 'subscribed', uri: `memo://${index}` });
    expect(book.getOrCreate(SESSION, OWNER).resources.size).toBe(MAX_RESOURCES);
  });

  it('reach what runs and what waits in that session alone, and make no notes where there is nothing', () => {
    const book = createSessionStates();
    const settle = vi.fn();
    book.getOrCreate(SESSION, OWNER).waiting.set('here.q', settle);
    const reply = { kind: 'result', text: '{}' } as const;
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
  ])('forgets the session used least lately in which nothing is under way: %s', (_, most, owner) => {
    const book = createSessionStates();
    const asked = book.getOrCreate(SESSION, OWNER);
    asked.waiting.set('here.q', () => undefined);
    for (let index = 0; index < most; index += 1) book.getOrCreate(`another ${index}`, owner(index));
    expect(book.find(SESSION)).toBe(asked);
    expect(book.find('another 0')).toBeUndefined();
    expect(book.find('another 1')).toBeDefined();
    asked.waiting.clear();
    book.getOrCreate('one more', owner(most));
    expect(book.find(SESSION)).toBeUndefined();
  });
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
    const [one, other] = [createReplicaScopedId({ self: 'here' }), createReplicaScopedId({ self: 'here' })];
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
    const wait = () => new Promise<'delivered'>((resolve) => released.push(() => resolve('delivered')));
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
    const once = () => (fails ? Promise.reject(new Error('broken')) : Promise.resolve('delivered' as const));
    const bus = limitSessionBus({ self: 'here', send: once, publish: once });
    for (let index = 0; index < 2 * MAX_MESSAGES_PER_OWNER; index += 1)
      await expect(bus.publish(messageOf('ann'))).rejects.toThrow('broken');
    fails = false;
    expect(await bus.publish(messageOf('ann'))).toBe('delivered');
  });
});
