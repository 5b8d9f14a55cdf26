// Sessions that the gateway opens for others: one a key, bounded, and ended when they rest.
// What may be on its way to an upstream of sessions besides calls: by caller, by number and by bytes.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  createOutboundQueue,
  createSessionPool,
  MAX_OUTBOUND_BYTES_PER_CALLER,
  MAX_OUTBOUND_PER_CALLER,
  MAX_OWN_RESPONSES_PER_CALLER,
  type PooledSession,
  type SessionPool,
  type UpstreamSession,
} from '../../../../../src/upstream/adapters/stateless-over-session/session-pool.js';
import { upstreamIdOf } from '../../../../../src/upstream/client.js';
import { principal } from '../../../policy/samples.js';

const IDLE_MS = 1_000;
const CALLER = { principal: principal(), decisionId: 'd', token: undefined, assertionCount: 0 };

let ended: (string | undefined)[];
let opened: number;
let pool: SessionPool;

function open(): Promise<UpstreamSession> {
  opened += 1;
  return Promise.resolve({
    version: '2025-11-25',
    target: { kind: 'upstream', id: `session-${opened}` },
    handshake: {},
    caller: CALLER,
  });
}

async function take(key: string): Promise<PooledSession> {
  const session = await pool.acquire(key, open);
  if (typeof session === 'string') throw new Error(session);
  return session;
}

beforeEach(() => {
  vi.useFakeTimers();
  ended = [];
  opened = 0;
  pool = createSessionPool({
    maxSessions: 2,
    idleMs: IDLE_MS,
    now: Date.now,
    async end(session) {
      ended.push(upstreamIdOf(session));
    },
  });
});
afterEach(async () => {
  await pool.close();
  vi.useRealTimers();
});

describe('a pool of sessions', () => {
  it('[Y-04] opens one for a key, also for those who ask at the same time', async () => {
    const [one, other] = await Promise.all([take('a'), take('a')]);
    expect(one?.target).toBe(other?.target);
    expect(opened).toBe(1);
    expect(one?.nextId()).not.toBe(other?.nextId());
  });

  it('[Y-04] never gives a session to another key', async () => {
    const [one, other] = [await take('a'), await take('b')];
    expect(one.target).not.toEqual(other.target);
  });

  it('[Y-04] ends what rests, and not what is used', async () => {
    const resting = await take('a');
    await take('b');
    resting.release();
    await vi.advanceTimersByTimeAsync(2 * IDLE_MS);
    expect(ended).toEqual([upstreamIdOf(resting)]);
  });

  it('[Y-04] makes room by what rested longest, and has none where all are used', async () => {
    const first = await take('a');
    const second = await take('b');
    expect(await pool.acquire('c', open)).toBe('upstream-unavailable');
    first.release();
    second.release();
    await take('a');
    await take('c');
    expect(ended).toEqual([upstreamIdOf(second)]);
  });

  it('[Y-04] ends what is open and what is still being opened when it is closed, and opens no more', async () => {
    const ready = await take('a');
    let finish = (_session: UpstreamSession | 'upstream-timeout'): void => undefined;
    const opening = (): Promise<UpstreamSession | 'upstream-timeout'> =>
      new Promise((resolve) => {
        finish = resolve;
      });
    const takers = [pool.acquire('b', opening), pool.acquire('b', opening)];
    let isClosed = false;
    const closing = pool.close().then(() => {
      isClosed = true;
    });
    expect(ended).toEqual([upstreamIdOf(ready)]);
    const late = await open();
    expect(isClosed).toBe(false);
    finish(late);
    expect(await Promise.all(takers)).toEqual(['upstream-unavailable', 'upstream-unavailable']);
    await closing;
    expect(ended).toEqual([upstreamIdOf(ready), upstreamIdOf(late)]);
    expect(await pool.acquire('c', open)).toBe('upstream-unavailable');
    expect(opened).toBe(2);
  });

  it('[Y-04] opens another for what was lost or could not be opened', async () => {
    const lost = await take('a');
    pool.forget(lost);
    const next = await take('a');
    expect(next.target).not.toEqual(lost.target);
    // Whoever learns of the loss late does not take the new one away.
    pool.forget(lost);
    expect((await take('a')).target).toBe(next.target);
    expect(await pool.acquire('b', () => Promise.resolve('upstream-timeout'))).toBe('upstream-timeout');
    expect(upstreamIdOf(await take('b'))).toBe(`session-${opened}`);
  });
});

const message = (owner: string, bytes = 1, isFromGateway = false) => ({
  owner,
  bytes,
  isFromGateway,
});

/** How many find a place. */
function fill(queue: ReturnType<typeof createOutboundQueue>, one: ReturnType<typeof message>) {
  const leaves: (() => void)[] = [];
  for (let leave = queue.acquireSlot(one); leave !== undefined; leave = queue.acquireSlot(one)) leaves.push(leave);
  return leaves;
}

describe('[H-05] what is on its way to a server', () => {
  it('is bounded in number for a caller, gives its place back, and leaves room for others', () => {
    const queue = createOutboundQueue();
    const leaves = fill(queue, message('ann'));
    expect(leaves).toHaveLength(MAX_OUTBOUND_PER_CALLER);
    expect(queue.acquireSlot(message('ben'))).toBeDefined();
    leaves[0]?.();
    expect(fill(queue, message('ann'))).toHaveLength(1);
  });

  it('is bounded in bytes, but for one alone', () => {
    const queue = createOutboundQueue();
    const half = MAX_OUTBOUND_BYTES_PER_CALLER / 2;
    expect(fill(queue, message('ann', half))).toHaveLength(2);
    expect(queue.acquireSlot(message('ann'))).toBeUndefined();
    expect(queue.acquireSlot(message('ben', MAX_OUTBOUND_BYTES_PER_CALLER + 1))).toBeDefined();
  });

  it('is little of what the gateway says itself, and leaves room for what clients say', () => {
    const queue = createOutboundQueue();
    expect(fill(queue, message('ann', 1, true))).toHaveLength(MAX_OWN_RESPONSES_PER_CALLER);
    expect(queue.acquireSlot(message('ann'))).toBeDefined();
  });

  it('is bounded over all callers', () => {
    const queue = createOutboundQueue();
    let entered = 0;
    for (let at = 0; at < 100; at += 1) entered += fill(queue, message(`c${at}`)).length;
    expect(entered).toBeLessThan(100 * MAX_OUTBOUND_PER_CALLER);
    expect(queue.acquireSlot(message('late'))).toBeUndefined();
  });
});
