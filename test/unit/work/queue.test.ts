// The order of jobs: turns of upstreams and callers, bounds of what waits, and budgets of time.

import { describe, expect, it } from 'vitest';
import { createFairQueue, createWorkBudget, type FairQueue } from '../../../src/work/queue.js';

const MUCH = { burst: Number.POSITIVE_INFINITY, perSecond: 0 };
const BOUNDS = { jobs: 64, chars: 1_000 };

type Given = { readonly threads?: number; readonly msEach?: number };

function queueOf({ threads = 1, msEach = 1_000 }: Given = {}): FairQueue<string> {
  const each = { burst: msEach, perSecond: 0 };
  const budget = createWorkBudget({ each, eachCaller: each, all: MUCH, now: () => 0 });
  return createFairQueue({ bounds: BOUNDS, threads, budget });
}

function add(queue: FairQueue<string>, job: string, chars = 1): boolean {
  const [upstream = '', caller] = job.split('/');
  return queue.add({ job, upstream, caller, chars });
}

/** Runs one job after another to its end, each for as long as `msOf` says. */
function runAll(queue: FairQueue<string>, msOf: (job: string) => number = () => 0): string[] {
  const ran: string[] = [];
  for (let queued = queue.next(); queued !== undefined; queued = queue.next()) {
    ran.push(queued.job);
    queue.end(queued, msOf(queued.job));
  }
  return ran;
}

describe('[PRF-13] the queue of the inspection threads', () => {
  it('gives upstreams a turn each, and the callers of an upstream one each in its turns', () => {
    const queue = queueOf();
    for (const job of ['x/ann/1', 'x/ann/2', 'x/ann/3', 'x/bob/1', 'y/eve/1', 'y/eve/2']) add(queue, job);
    expect(runAll(queue)).toEqual([...['x/ann/1', 'y/eve/1', 'x/bob/1', 'y/eve/2', 'x/ann/2', 'x/ann/3']]);
    expect(queue.next()).toBeUndefined();
  });

  it('puts who used up its time behind all others, upstream or caller, and refuses nobody for it', () => {
    const queue = queueOf({ msEach: 10 });
    for (const job of ['x/ann/1', 'x/ann/2', 'x/ann/3', 'y/eve/1', 'y/eve/2', 'y/eve/3']) add(queue, job);
    const ran = runAll(queue, (job) => (job.startsWith('x') ? 11 : 0));
    expect(ran).toEqual(['x/ann/1', 'y/eve/1', 'y/eve/2', 'y/eve/3', 'x/ann/2', 'x/ann/3']);
    // The caller is the same at another upstream.
    for (const job of ['z/ann/1', 'z/bob/1']) add(queue, job);
    expect(runAll(queue)).toEqual(['z/bob/1', 'z/ann/1']);
  });

  it('runs one job of a caller at an upstream at a time, in order', () => {
    const queue = queueOf({ threads: 4 });
    for (const job of ['x/ann/1', 'x/ann/2', 'x/bob/1']) add(queue, job);
    const [first, second] = [queue.next(), queue.next()];
    expect([first?.job, second?.job, queue.next()]).toEqual(['x/ann/1', 'x/bob/1', undefined]);
    if (first !== undefined) queue.end(first, 0);
    expect(queue.next()?.job).toBe('x/ann/2');
  });

  it('keeps a thread for the others: one upstream, or one caller, never has all of several', () => {
    const queue = queueOf({ threads: 3 });
    for (const job of ['x/ann/1', 'x/bob/1', 'x/eve/1']) add(queue, job);
    expect([queue.next()?.job, queue.next()?.job, queue.next()]).toEqual([...['x/ann/1', 'x/bob/1', undefined]]);
    add(queue, 'y/eve/1');
    expect(queue.next()?.job).toBe('y/eve/1');
    const several = queueOf({ threads: 3 });
    for (const job of ['x/ann/1', 'y/ann/1', 'z/ann/1']) add(several, job);
    expect([several.next()?.job, several.next()?.job, several.next()]).toEqual([...['x/ann/1', 'y/ann/1', undefined]]);
    add(several, 'z/bob/1');
    expect(several.next()?.job).toBe('z/bob/1');
  });

  it('takes a quarter of what may wait for one upstream, and half of that for one caller', () => {
    const queue = queueOf();
    const taken = (caller: string): number =>
      Array.from({ length: 20 }, () => add(queue, `x/${caller}`)).filter(Boolean).length;
    expect([taken('ann'), taken('bob'), taken('eve')]).toEqual([8, 8, 0]);
    expect(add(queue, 'y/eve')).toBe(true);
    const long = queueOf();
    expect([add(long, 'x/ann', 900), add(long, 'x/ann', 1), add(long, 'y/bob', 101)]).toEqual([
      ...[true, false, false],
    ]);
    expect(add(long, 'y/bob', 100)).toBe(true);
    // What ran makes room.
    expect(runAll(long)).toHaveLength(2);
    expect(add(long, 'x/ann', 900)).toBe(true);
  });

  it('has a job that could not run as the next of its caller again', () => {
    const queue = queueOf();
    for (const job of ['x/ann/1', 'x/ann/2']) add(queue, job);
    const first = queue.next();
    if (first !== undefined) queue.putBack(first);
    expect(runAll(queue)).toEqual(['x/ann/1', 'x/ann/2']);
    add(queue, 'x/ann/3');
    expect([queue.drain(), queue.next()]).toEqual([['x/ann/3'], undefined]);
  });
});

const EACH = { burst: 30, perSecond: 50 };
const ALL = { burst: 50, perSecond: 100 };

describe('a budget of work', () => {
  it('[PRF-11] is that of an upstream, and comes back with time', () => {
    let nowMs = 0;
    const budget = createWorkBudget({ each: EACH, all: ALL, now: () => nowMs });
    budget.spend('greedy', 40);
    expect([budget.hasLeft('greedy'), budget.hasLeft('modest')]).toEqual([false, true]);
    nowMs = 190;
    expect(budget.hasLeft('greedy')).toBe(false);
    nowMs = 210;
    expect(budget.hasLeft('greedy')).toBe(true);
    nowMs = 1_000_000;
    expect(budget.hasLeft('greedy')).toBe(true);
    budget.spend('greedy', 31);
    expect(budget.hasLeft('greedy')).toBe(false);
  });

  it('[PRF-11] is that of all: many upstreams cannot take turns to use the loop up', () => {
    let nowMs = 0;
    const budget = createWorkBudget({ each: EACH, all: ALL, now: () => nowMs });
    for (const upstream of ['a', 'b']) budget.spend(upstream, 29);
    expect(budget.hasLeft('c')).toBe(false);
    nowMs = 200;
    expect(budget.hasLeft('c')).toBe(true);
  });

  it('[PRF-13] is that of a caller: half of what an upstream has, at whatever upstreams', () => {
    let nowMs = 0;
    const budget = createWorkBudget({ each: EACH, all: ALL, now: () => nowMs });
    budget.spend('one', 8, 'greedy');
    budget.spend('two', 8, 'greedy');
    expect([budget.hasLeft('three', 'greedy'), budget.hasLeft('three', 'modest')]).toEqual([...[false, true]]);
    expect(budget.hasLeft('three')).toBe(true);
    nowMs = 50;
    expect(budget.hasLeft('three', 'greedy')).toBe(true);
  });

  it('[PRF-13] is kept for a bounded number of callers, and never forgotten while it is used up', () => {
    let nowMs = 0;
    const all = { burst: 1_000_000, perSecond: 0 };
    const budget = createWorkBudget({ each: all, eachCaller: EACH, all, now: () => nowMs });
    budget.spend('one', 1_000, 'greedy');
    for (let index = 0; index < 3_000; index += 1) {
      nowMs += 1;
      expect(budget.hasLeft('one', `modest ${index}`)).toBe(true);
    }
    expect(budget.hasLeft('one', 'greedy')).toBe(false);
  });
});
