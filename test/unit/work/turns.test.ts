// Long work on the event loop: at once while little was done, then in turns, whoever has more of it.

import { afterEach, describe, expect, it, vi } from 'vitest';
import type { UpstreamSettings } from '../../../src/config/settings.js';
import { runInTurns } from '../../../src/protocol/json/incremental.js';
import { messageReaderOf } from '../../../src/upstream/connection.js';
import { createLoopScheduler } from '../../../src/work/turns.js';

/** Turns whose loop goes round when the test says so. */
function turnsByHand() {
  const due: (() => void)[] = [];
  const turns = createLoopScheduler({ sliceMs: 10, later: (run) => due.push(run) });
  return {
    turns,
    due,
    /** One turn of the loop, and what follows from it. */
    async goRound() {
      due.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    },
  };
}

describe('turns on the event loop', () => {
  it('[PRF-11] are not waited for while little was done, and cost no timer', () => {
    const { turns, due } = turnsByHand();
    turns.recordTime(performance.now() - 9);
    expect(turns.waitForTurn('one')).toBeUndefined();
    expect(due).toEqual([]);
  });

  it('[PRF-11] are not waited for after a listing or a translation that did little', async () => {
    const { turns, due } = turnsByHand();
    const readJson = () => ({ ok: false, error: 'internal' }) as const;
    const settings = { name: 'one', limits: { maxValues: 1 } } as UpstreamSettings;
    const messageReader = messageReaderOf(settings, { readJson, loopScheduler: turns });
    await runInTurns(messageReader, [1, 2, 3], () => undefined);
    expect(turns.waitForTurn('other')).toBeUndefined();
    expect(due).toEqual([]);
  });

  it('[PRF-11] go from one upstream to the next, however many wait of one', async () => {
    const { turns, goRound } = turnsByHand();
    const came: string[] = [];
    const wait = (upstream: string): void =>
      void turns.waitForTurn(upstream)?.then(() => {
        came.push(upstream);
      });
    turns.recordTime(performance.now() - 10);
    for (let each = 0; each < 4; each += 1) wait('greedy');
    wait('modest');
    expect(came).toEqual([]);
    for (let round = 0; round < 5; round += 1) await goRound();
    expect(came).toEqual(['greedy', 'modest', 'greedy', 'greedy', 'greedy']);
  });

  it('[PRF-11] go to whoever has used less time, however long one piece of the other takes', async () => {
    const { turns, goRound } = turnsByHand();
    const came: string[] = [];
    const work = async (upstream: string, ms: number, times: number): Promise<void> => {
      for (let each = 0; each < times; each += 1) {
        await turns.waitForTurn(upstream);
        came.push(upstream);
        turns.recordTime(performance.now() - ms);
      }
    };
    turns.recordTime(performance.now() - 10);
    for (let each = 0; each < 3; each += 1) void work('greedy', 30, 1);
    void work('modest', 11, 3);
    for (let round = 0; round < 6; round += 1) await goRound();
    expect(came).toEqual(['greedy', 'modest', 'modest', 'modest', 'greedy', 'greedy']);
  });

  it('[PRF-11] are given one at a time, and nobody overtakes who waits', async () => {
    const { turns, goRound } = turnsByHand();
    turns.recordTime(performance.now() - 10);
    let given = 0;
    for (const upstream of ['a', 'b', 'c'])
      void turns.waitForTurn(upstream)?.then(() => {
        given += 1;
      });
    await goRound();
    expect(given).toBe(1);
    // Little was done in this turn of the loop, but others were there first.
    expect(turns.waitForTurn('d')).toBeInstanceOf(Promise);
    await goRound();
    await goRound();
    await goRound();
    expect(given).toBe(3);
    expect(turns.waitForTurn('e')).toBeUndefined();
  });
});

describe('the bytes of long-lived streams', () => {
  afterEach(() => void vi.useRealTimers());

  const MIB = 1024 * 1024;
  const open = (): boolean => false;

  /** Which of these waits are over. */
  function watch(waits: readonly (Promise<void> | undefined)[]): boolean[] {
    const over = waits.map((wait) => wait === undefined);
    waits.forEach((wait, at) => void wait?.then(() => over.fill(true, at, at + 1)));
    return over;
  }

  it('[PRF-12] are handled at once up to a burst, then at the rate of their upstream', async () => {
    vi.useFakeTimers();
    const { pace } = createLoopScheduler({ streamBytesPerSecond: MIB });
    const over = watch([1, 1, 1].map((mib) => pace('hostile', mib * MIB, open)));
    expect(over).toEqual([true, true, false]);
    await vi.advanceTimersByTimeAsync(999);
    expect(over).toEqual([true, true, false]);
    await vi.advanceTimersByTimeAsync(1);
    expect(over).toEqual([true, true, true]);
  });

  it('[PRF-12] wait for those of no other upstream', () => {
    const { pace } = createLoopScheduler({ streamBytesPerSecond: MIB });
    for (let count = 0; count < 100; count += 1) void pace('hostile', MIB, open);
    expect(pace('good', MIB, open)).toBeUndefined();
  });

  it('[PRF-12] of a stream that was closed wait no longer', async () => {
    vi.useFakeTimers();
    const { pace } = createLoopScheduler({ streamBytesPerSecond: MIB });
    let isClosed = false;
    void pace('hostile', 100 * MIB, open);
    const over = watch([pace('hostile', 1, () => isClosed), pace('hostile', 1, open)]);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(over).toEqual([false, false]);
    isClosed = true;
    await vi.advanceTimersByTimeAsync(500);
    expect(over).toEqual([true, false]);
  });
});
