// When calls to an upstream are refused because it hangs, and when no longer.

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createBreaker } from '../../../src/upstream/breaker.js';
import type { GatewayRequest } from '../../../src/upstream/client.js';
import { pingUpstream } from '../../../src/upstream/runtimes.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function rig() {
  const state: { answers: boolean | undefined; responses: number; pings: number } = {
    ...{ answers: false, responses: 0, pings: 0 },
  };
  const changes: boolean[] = [];
  const breaker = createBreaker({
    async ping() {
      state.pings += 1;
      return state.answers;
    },
    countResponses: () => state.responses,
    onChange: (isOpen) => changes.push(isOpen),
  });
  return { state, changes, breaker };
}

const settle = () => vi.advanceTimersByTimeAsync(0);

describe('[X-96] a breaker', () => {
  it('pings nobody before a request timed out, and is closed while pings are answered', async () => {
    const { state, changes, breaker } = rig();
    state.answers = true;
    await settle();
    expect(state.pings).toBe(0);
    for (let round = 0; round < 5; round += 1) {
      breaker.noteTimeout();
      await settle();
    }
    expect([state.pings, breaker.status.isOpen, changes]).toEqual([5, false, []]);
  });

  it('is closed where anything else was answered during the ping', async () => {
    const { state, breaker } = rig();
    breaker.noteTimeout();
    state.responses += 1;
    await settle();
    expect(breaker.status.isOpen).toBe(false);
  });

  it('opens with the ping that times out, asks ever less often, and closes with the first answer', async () => {
    const { state, changes, breaker } = rig();
    breaker.noteTimeout();
    breaker.noteTimeout();
    await settle();
    expect([breaker.status.isOpen, state.pings]).toEqual([true, 1]);
    const pings: number[] = [];
    for (let second = 1; second <= 40; second += 1) {
      const before = state.pings;
      await vi.advanceTimersByTimeAsync(1_000);
      if (state.pings > before) pings.push(second);
    }
    expect(pings).toEqual([1, 3, 8, 18, 28, 38]);
    state.answers = true;
    await vi.advanceTimersByTimeAsync(10_000);
    expect([breaker.status.isOpen, changes]).toEqual([false, [true, false]]);
    const { pings: last } = state;
    await vi.advanceTimersByTimeAsync(60_000);
    expect(state.pings).toBe(last);
  });

  it('closes when the upstream was listed, and is asked no more', async () => {
    const { state, changes, breaker } = rig();
    breaker.noteTimeout();
    await settle();
    breaker.noteListed();
    await vi.advanceTimersByTimeAsync(60_000);
    expect([breaker.status.isOpen, state.pings, changes]).toEqual([false, 1, [true, false]]);
  });

  it('is moved by no ping that could not be sent', async () => {
    const { state, changes, breaker } = rig();
    state.answers = undefined;
    breaker.noteTimeout();
    await settle();
    expect([breaker.status.isOpen, changes]).toEqual([false, []]);
    state.answers = false;
    breaker.noteTimeout();
    await settle();
    state.answers = undefined;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(breaker.status.isOpen).toBe(true);
    state.answers = true;
    await vi.advanceTimersByTimeAsync(10_000);
    expect(breaker.status.isOpen).toBe(false);
  });

  it('closes where something was answered between two pings', async () => {
    const { state, breaker } = rig();
    breaker.noteTimeout();
    await settle();
    expect(breaker.status.isOpen).toBe(true);
    state.responses += 1;
    await vi.advanceTimersByTimeAsync(1_000);
    expect([breaker.status.isOpen, state.pings]).toEqual([false, 1]);
  });

  it('pings no more once it is closed for good', async () => {
    const { state, changes, breaker } = rig();
    breaker.noteTimeout();
    await settle();
    breaker.close();
    breaker.noteTimeout();
    await vi.advanceTimersByTimeAsync(60_000);
    expect([state.pings, changes]).toEqual([1, [true, false]]);
  });
});

describe('[X-96] a ping', () => {
  it('waits for nothing else that is sent, and says nothing of an upstream to which it could not be sent', async () => {
    const requests: GatewayRequest[] = [];
    const client = (isUnsent: boolean) => ({
      async request(sent: GatewayRequest) {
        requests.push(sent);
        return { kind: 'error', reason: 'upstream-unavailable', isUnsent } as const;
      },
    });
    // Both have taken longer than they may.
    expect(await pingUpstream(client(true), 0)).toBeUndefined();
    expect(await pingUpstream(client(false), 0)).toBe(false);
    expect(requests.map(({ isPing }) => isPing)).toEqual([true, true]);
  });
});
