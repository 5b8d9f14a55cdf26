// The open channels of an upstream: bounded by caller and together, ended when they rest, and nothing stays.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  createLegacySseSessionTable,
  type LegacySseSessionTable,
  MAX_LEGACY_SSE_SESSIONS,
  MAX_LEGACY_SSE_SESSIONS_PER_CALLER,
} from '../../../../../src/upstream/adapters/legacy-sse/legacy-sse-adapter.js';
import {
  createOwnerBufferBudget,
  type LegacySseSession,
} from '../../../../../src/upstream/adapters/legacy-sse/legacy-sse-session.js';

const REST_MS = 1_000;

let table: LegacySseSessionTable;
let closed: string[];

function refuseUse(): never {
  throw new Error('a table has no use for it');
}

const createBudget = () => createOwnerBufferBudget({ bytesLeft: 1 }, 1);

function session(id: string, owner: string | undefined, state: { isIdle: boolean }): LegacySseSession {
  return {
    messageEndpoint: '/',
    owner,
    budget: createBudget(),
    registerRequest: refuseUse,
    cancel: refuseUse,
    drop: refuseUse,
    read: refuseUse,
    isUsed: () => !state.isIdle,
    get isIdle() {
      return state.isIdle;
    },
    isOver: false,
    close: () => void closed.push(id),
  };
}

function enter(id: string, owner: string | undefined, isIdle = false): { isIdle: boolean } {
  const state = { isIdle };
  table.add(id, session(id, owner, state));
  return state;
}

beforeEach(() => {
  vi.useFakeTimers();
  closed = [];
  table = createLegacySseSessionTable(REST_MS, createBudget);
});
afterEach(() => {
  table.close();
  vi.useRealTimers();
});

describe('[LEG-06] the channels of an upstream', () => {
  it('are ended when nobody uses them, and no others', async () => {
    const one = enter('one', 'a');
    enter('other', 'a');
    await vi.advanceTimersByTimeAsync(2 * REST_MS);
    expect(closed).toEqual([]);
    one.isIdle = true;
    await vi.advanceTimersByTimeAsync(REST_MS);
    expect(closed).toEqual(['one']);
    expect(table.find('one')).toBeUndefined();
    expect(table.find('other')).toBeDefined();
  });

  it('are as many for one caller as it may have; one that rests makes room', () => {
    const states = Array.from({ length: MAX_LEGACY_SSE_SESSIONS_PER_CALLER }, (_, at) => enter(`${at}`, 'a'));
    expect(table.acquire('a')).toBeUndefined();
    expect(table.acquire('b')).toBeDefined();
    (states[3] as { isIdle: boolean }).isIdle = true;
    expect(table.acquire('a')).toBeDefined();
    expect(closed).toEqual(['3']);
  });

  it('count from when they are being opened, and no longer where none is opened', () => {
    const rooms = Array.from({ length: MAX_LEGACY_SSE_SESSIONS_PER_CALLER }, () => table.acquire('a'));
    expect(rooms).not.toContain(undefined);
    expect(table.acquire('a')).toBeUndefined();
    expect(table.acquire('b')).toBeDefined();
    rooms[0]?.release();
    expect(table.acquire('a')).toBeDefined();
  });

  it('[LEG-09] of one caller share what it may buffer, from when the first is being opened', () => {
    const [first, second, other] = [table.acquire('a'), table.acquire('a'), table.acquire('b')];
    expect(second?.budget).toBe(first?.budget);
    expect(other?.budget).not.toBe(first?.budget);
    first?.release();
    second?.release();
    const opened = session('one', 'a', { isIdle: false });
    table.add('one', opened);
    expect(table.acquire('a')?.budget).toBe(opened.budget);
    expect(table.acquire(undefined)?.budget).not.toBe(table.acquire(undefined)?.budget);
  });

  it("are not one caller's where the gateway opened them for many", () => {
    for (let at = 0; at <= MAX_LEGACY_SSE_SESSIONS_PER_CALLER; at += 1) enter(`${at}`, undefined, true);
    expect(table.acquire(undefined)).toBeDefined();
    expect(closed).toEqual([]);
  });

  it('are as many together as there may be, whoever rests', () => {
    for (let at = 0; at < MAX_LEGACY_SSE_SESSIONS; at += 1) enter(`${at}`, `owner-${at}`, true);
    expect(table.acquire('somebody else')).toBeUndefined();
    expect(closed).toEqual([]);
    table.close();
    expect([closed.length, table.find('0')]).toEqual([MAX_LEGACY_SSE_SESSIONS, undefined]);
  });
});
