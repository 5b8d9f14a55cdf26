// Runs inspection jobs on worker threads, one at a time on each. A thread is started when a job finds none idle, and
// restarted after it died. A job that ends early always reports how, so that unread text is never taken for clean.
// In the queue upstreams take turns, and the callers of an upstream take turns in its turn, so that whoever sends much
// waits for itself. Those whose jobs took more time than their budget has come after all others. These budgets of time
// are here too; inspection on the event loop has one as well.
// Source: docs/reference/performance.md rule 10.

import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { InspectionJob, JobResult } from '../../inspection/jobs.js';
import { createRate, type RateBounds } from '../../state/bounds.js';
import type { ThreadMessage } from './thread.js';

/**
 * `died`: the thread ended or exceeded the time limit. `full`: too many jobs wait, or this one waited too long.
 * `unavailable`: no thread can be started.
 */
export type JobOutcome = JobResult | { readonly kind: 'died' | 'full' | 'unavailable' };

export type InspectionWorker = {
  /** Jobs of one caller at one upstream run in order; without a caller they are the gateway's own. Never rejects. */
  run(job: InspectionJob, upstream: string, caller?: string): Promise<JobOutcome>;
  /** Ends the threads; running and waiting jobs end as `died`. */
  close(): Promise<void>;
};

export type WorkerOptions = {
  /** The module of the thread; by default the compiled one beside this module. */
  readonly entry?: URL;
  /** Longest time of one job. Texts of megabytes take up to five seconds of processor time, and a busy machine many times that. */
  readonly maxJobMs?: number;
  /** Longest wait before a job starts. */
  readonly maxWaitMs?: number;
  /** Threads at most; by default one for each core but one. */
  readonly threads?: number;
  /** Jobs and characters that may wait; a quarter of it for one upstream, half of that for one caller. */
  readonly maxJobs?: number;
  readonly maxChars?: number;
  /** Called once when no thread can be started, and once when one runs again. Must not throw. */
  readonly onThread?: (isAvailable: boolean) => void;
};

const ENTRY = new URL('./thread.js', import.meta.url);
const MAX_JOB_MS = 30_000;
const MAX_WAIT_MS = 30_000;
const MAX_JOBS = 1024;
const MAX_CHARS = 128 * 1024 * 1024;
/** Inspecting a text that needs more memory than this ends the thread, not the gateway. */
const MAX_HEAP_MB = 512;

/** More threads than this would take memory rather than bring time. */
const MAX_THREADS = 4;
/** A thread besides the first ends when it had nothing to do for this time, and its memory with it. */
const IDLE_MS = 30_000;
/** After one besides the first could not be started, the others do its work for this time. */
const NO_GROWTH_MS = 60_000;

/** One core is the event loop's. */
function defaultThreads(): number {
  return Math.max(1, Math.min(availableParallelism() - 1, MAX_THREADS));
}

/** An upstream may have half of the threads' time without waiting for others that have used less, a caller a quarter. */
function threadBudget(threads: number): WorkBudget {
  return createWorkBudget({
    each: { burst: 1_000, perSecond: 500 * threads },
    all: { burst: Number.POSITIVE_INFINITY, perSecond: 0 },
  });
}

type PendingJob = {
  readonly job: InspectionJob;
  readonly sinceMs: number;
  readonly settle: (end: JobOutcome) => void;
};

type Thread = { readonly worker: Worker; isReady: boolean };

/** The job of a slot, and the timer that ends one that takes too long. */
type RunningJob = {
  readonly queued: QueuedJob<PendingJob>;
  readonly startedMs: number;
  readonly late: NodeJS.Timeout;
};

/** What one thread at a time takes. */
type Slot = {
  thread?: Thread | undefined;
  running?: RunningJob | undefined;
  idle?: NodeJS.Timeout | undefined;
};

/** Creates a worker; its threads are started when jobs need them. */
export function createInspectionWorker(options: WorkerOptions = {}): InspectionWorker {
  const { entry = ENTRY, maxJobMs = MAX_JOB_MS, maxWaitMs = MAX_WAIT_MS } = options;
  const { maxJobs = MAX_JOBS, maxChars = MAX_CHARS, onThread } = options;
  const { threads = defaultThreads() } = options;
  const queue = createFairQueue<PendingJob>({
    bounds: { jobs: maxJobs, chars: maxChars },
    threads,
    budget: threadBudget(threads),
  });
  const slots = Array.from({ length: threads }, (): Slot => ({}));
  let growsAgainAtMs = 0;
  let isClosed = false;
  let isAvailable = true;

  function setAvailable(isThereNow: boolean): void {
    if (isAvailable === isThereNow) return;
    isAvailable = isThereNow;
    onThread?.(isAvailable);
  }

  /** The thread of the slot, or a new one. Throws where none can be started. */
  function ensureThread(slot: Slot): Thread {
    clearTimeout(slot.idle);
    if (slot.thread !== undefined) return slot.thread;
    const worker = new Worker(entry, {
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB },
    });
    const started: Thread = { worker, isReady: false };
    worker.on('message', (posted: ThreadMessage) => {
      if (posted === 'ready') {
        started.isReady = true;
        // The time of the job is that of the thread at work: on a busy machine starting one takes seconds.
        if (slot.thread === started) slot.running?.late.refresh();
        setAvailable(true);
      } else if (slot.thread === started) finish(slot, posted);
    });
    const gone = (): void => handleThreadEnd(slot, started);
    // An error may arrive before an earlier `ready`, which made a thread that a text had ended look like one that cannot
    // be started. The exit that follows comes after every message.
    worker.on('error', () => undefined);
    worker.on('messageerror', gone);
    worker.on('exit', gone);
    // A pending job keeps the process alive; an idle thread does not.
    worker.unref();
    slot.thread = started;
    return started;
  }

  /** Only the running job is lost: waiting jobs get a new thread. */
  function handleThreadEnd(slot: Slot, endedThread: Thread): void {
    if (slot.thread !== endedThread) return;
    slot.thread = undefined;
    void endedThread.worker.terminate();
    if (endedThread.isReady || isClosed) finish(slot, { kind: 'died' });
    else handleFailedStart(slot);
  }

  /** A thread that cannot be started beside others leaves its job to them; without others the event loop has to do it. */
  function handleFailedStart(slot: Slot): void {
    const { running } = slot;
    if (running !== undefined && slots.some(({ thread }) => thread?.isReady === true)) {
      growsAgainAtMs = performance.now() + NO_GROWTH_MS;
      clearTimeout(running.late);
      slot.running = undefined;
      queue.putBack(running.queued);
      startNext();
      return;
    }
    setAvailable(false);
    finish(slot, { kind: 'unavailable' });
  }

  function finish(slot: Slot, end: JobOutcome): void {
    if (slot.running === undefined) return;
    const { queued, startedMs, late: timer } = slot.running;
    clearTimeout(timer);
    slot.running = undefined;
    queue.end(queued, performance.now() - startedMs);
    queued.job.settle(end);
    startNext();
    if (slot.running === undefined && slot !== slots[0]) endWhenIdle(slot);
  }

  function endWhenIdle(slot: Slot): void {
    slot.idle = setTimeout(() => {
      const { thread } = slot;
      if (thread !== undefined && slot.running === undefined) handleThreadEnd(slot, thread);
    }, IDLE_MS).unref();
  }

  /** An idle slot: one that has a thread before one that would have to start it. */
  function findIdle(): Slot | undefined {
    const idle = slots.filter(({ running }) => running === undefined);
    const started = idle.find(({ thread }) => thread !== undefined);
    const mayGrow = idle.length === slots.length || performance.now() >= growsAgainAtMs;
    return started ?? (mayGrow ? idle[0] : undefined);
  }

  function startNext(): void {
    for (let slot = findIdle(); slot !== undefined; slot = findIdle()) {
      const queued = queue.next();
      if (queued === undefined) return;
      if (performance.now() - queued.job.sinceMs <= maxWaitMs) start(slot, queued);
      else {
        queue.end(queued, 0);
        queued.job.settle({ kind: 'full' });
      }
    }
  }

  function start(slot: Slot, queued: QueuedJob<PendingJob>): void {
    try {
      const on = ensureThread(slot);
      on.worker.postMessage(queued.job.job);
      const timer = setTimeout(() => {
        // Also where the thread never became ready: a thread that hangs at its start must not block jobs, and must be
        // reported.
        if (!on.isReady) setAvailable(false);
        on.isReady = true;
        handleThreadEnd(slot, on);
      }, maxJobMs);
      slot.running = { queued, startedMs: performance.now(), late: timer };
    } catch {
      setAvailable(false);
      queue.end(queued, 0);
      queued.job.settle({ kind: 'unavailable' });
    }
  }

  return {
    run(job, upstream, caller) {
      if (isClosed) return Promise.resolve({ kind: 'died' });
      return new Promise((settle) => {
        const pending = { job, sinceMs: performance.now(), settle };
        const { length: chars } = job.input.text;
        if (queue.add({ job: pending, upstream, caller, chars })) startNext();
        else settle({ kind: 'full' });
      });
    },
    async close() {
      isClosed = true;
      for (const { settle } of queue.drain()) settle({ kind: 'died' });
      const ends = slots.map((slot) => {
        const { thread } = slot;
        if (thread === undefined) return undefined;
        handleThreadEnd(slot, thread);
        return thread.worker.terminate();
      });
      await Promise.all(ends);
    },
  };
}

/** How many jobs may wait, and how many characters they may have in total. */
type WaitingBounds = { readonly jobs: number; readonly chars: number };

/** A job and whose it is; without a caller it is the gateway's own. */
type QueuedJob<T> = {
  readonly job: T;
  readonly upstream: string;
  readonly caller: string | undefined;
  readonly chars: number;
};

export type FairQueue<T> = {
  /** False where too much waits already: in total, of this upstream, or of this caller. */
  add(queued: QueuedJob<T>): boolean;
  /** Removes and returns the next job that may start, which then runs until `end`; `undefined` where none may. */
  next(): QueuedJob<T> | undefined;
  /** Reports that a job that `next` returned has ended after this time. */
  end(queued: QueuedJob<T>, ms: number): void;
  /** Returns a job that `next` had returned and that could not run; it is the next of its caller again. */
  putBack(queued: QueuedJob<T>): void;
  /** Removes and returns all jobs that wait. */
  drain(): readonly T[];
};

/** One upstream may use the bounds divided by this, and one caller half of that; one job is always allowed. */
const UPSTREAM_DIVISOR = 4;
const CALLER_DIVISOR = 2 * UPSTREAM_DIVISOR;
/** The line of jobs without a caller. No caller's key is empty. */
const NOBODY = '';

type Amount = { jobs: number; chars: number };
type CallerLine<T> = Amount & { readonly queued: QueuedJob<T>[]; isRunning: boolean };
type UpstreamLine<T> = Amount & { readonly lines: Map<string, CallerLine<T>>; running: number };

type QueueOptions = {
  readonly bounds: WaitingBounds;
  /** Jobs that may run at once. */
  readonly threads: number;
  /** Of the time on the threads. */
  readonly budget: WorkBudget;
};

/**
 * Creates a queue that keeps the order of each caller's jobs at an upstream and runs one of them at a time. One upstream
 * or caller never occupies all threads, unless there is only one.
 */
export function createFairQueue<T>({ bounds, threads, budget }: QueueOptions): FairQueue<T> {
  const maxRunning = Math.max(1, threads - 1);
  /** Both levels are in round-robin order. A line without jobs is kept only while one of its jobs runs. */
  const upstreams = new Map<string, UpstreamLine<T>>();
  const runningByCaller = new Map<string, number>();
  const waiting: Amount = { jobs: 0, chars: 0 };

  function linesOf({ upstream, caller = NOBODY }: QueuedJob<T>): [UpstreamLine<T>, CallerLine<T>] {
    const all = upstreams.get(upstream) ?? { ...noAmount(), lines: new Map(), running: 0 };
    const own = all.lines.get(caller) ?? { ...noAmount(), queued: [], isRunning: false };
    upstreams.set(upstream, all);
    all.lines.set(caller, own);
    return [all, own];
  }

  function fits(more: number, all: UpstreamLine<T>, own: CallerLine<T>, isOwned: boolean): boolean {
    return (
      waiting.jobs < bounds.jobs &&
      waiting.chars + more <= bounds.chars &&
      isWithinShare(all, more, UPSTREAM_DIVISOR) &&
      (!isOwned || isWithinShare(own, more, CALLER_DIVISOR))
    );
  }

  function isWithinShare({ jobs, chars }: Amount, more: number, divisor: number): boolean {
    return jobs === 0 || (jobs < bounds.jobs / divisor && chars + more <= bounds.chars / divisor);
  }

  function count({ chars }: QueuedJob<T>, amounts: readonly Amount[], sign: 1 | -1): void {
    for (const amount of amounts) {
      amount.jobs += sign;
      amount.chars += sign * chars;
    }
  }

  function forgetIfOver({ upstream, caller = NOBODY }: QueuedJob<T>): void {
    const [all, own] = [upstreams.get(upstream), upstreams.get(upstream)?.lines.get(caller)];
    if (all === undefined || own === undefined || own.jobs > 0 || own.isRunning) return;
    all.lines.delete(caller);
    if (all.lines.size === 0) upstreams.delete(upstream);
  }

  function mayStart({ upstream, caller }: QueuedJob<T>, isWithinBudget: boolean): boolean {
    const running = caller === undefined ? 0 : (runningByCaller.get(caller) ?? 0);
    return running < maxRunning && budget.hasLeft(upstream, caller) === isWithinBudget;
  }

  function findIn(all: UpstreamLine<T>, isWithinBudget: boolean): QueuedJob<T> | undefined {
    if (all.running >= maxRunning) return undefined;
    for (const { queued, isRunning } of all.lines.values()) {
      const [first] = queued;
      if (first !== undefined && !isRunning && mayStart(first, isWithinBudget)) return first;
    }
    return undefined;
  }

  function findNext(isWithinBudget: boolean): QueuedJob<T> | undefined {
    for (const all of upstreams.values()) {
      const found = findIn(all, isWithinBudget);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  function setRunning(queued: QueuedJob<T>, change: 1 | -1): void {
    const [all, own] = linesOf(queued);
    own.isRunning = change === 1;
    all.running += change;
    const { caller } = queued;
    if (caller === undefined) return;
    const running = (runningByCaller.get(caller) ?? 0) + change;
    if (running === 0) runningByCaller.delete(caller);
    else runningByCaller.set(caller, running);
  }

  /** Moves the upstream to the end of the queue, and the caller to the end of those of the upstream. */
  function passTurn({ upstream, caller = NOBODY }: QueuedJob<T>): void {
    const all = upstreams.get(upstream);
    const own = all?.lines.get(caller);
    if (all === undefined || own === undefined) return;
    all.lines.delete(caller);
    all.lines.set(caller, own);
    upstreams.delete(upstream);
    upstreams.set(upstream, all);
  }

  return {
    add(queued) {
      const [all, own] = linesOf(queued);
      if (!fits(queued.chars, all, own, queued.caller !== undefined)) {
        forgetIfOver(queued);
        return false;
      }
      own.queued.push(queued);
      count(queued, [waiting, all, own], 1);
      return true;
    },
    next() {
      const queued = findNext(true) ?? findNext(false);
      if (queued === undefined) return undefined;
      const [all, own] = linesOf(queued);
      own.queued.shift();
      count(queued, [waiting, all, own], -1);
      setRunning(queued, 1);
      passTurn(queued);
      return queued;
    },
    end(queued, ms) {
      setRunning(queued, -1);
      forgetIfOver(queued);
      budget.spend(queued.upstream, ms, queued.caller);
    },
    putBack(queued) {
      setRunning(queued, -1);
      const [all, own] = linesOf(queued);
      own.queued.unshift(queued);
      count(queued, [waiting, all, own], 1);
    },
    drain() {
      const lines = [...upstreams.values()].flatMap((all) => [...all.lines.values()]);
      const left = lines.flatMap(({ queued }) => queued.splice(0));
      for (const line of [...upstreams.values(), ...lines, waiting]) Object.assign(line, noAmount());
      return left.map(({ job }) => job);
    },
  };
}

function noAmount(): Amount {
  return { jobs: 0, chars: 0 };
}

/**
 * The time that inspection may take, per upstream, per caller and in total. Work without a caller (the gateway's own
 * listings) is charged to its upstream alone.
 */
export type WorkBudget = {
  hasLeft(upstream: string, caller?: string): boolean;
  /** Records time that was spent, in milliseconds. What is left may become negative. */
  spend(upstream: string, ms: number, caller?: string): void;
};

type BudgetOptions = {
  /** In milliseconds of work. */
  readonly each?: RateBounds;
  /** By default half of what an upstream has, so that no caller uses up the budget of an upstream. */
  readonly eachCaller?: RateBounds;
  readonly all?: RateBounds;
  /** A monotonic clock, in milliseconds. */
  readonly now?: () => number;
};

const RATE_PER_UPSTREAM: RateBounds = { burst: 30, perSecond: 50 };
const TOTAL_RATE: RateBounds = { burst: 50, perSecond: 150 };

/** Creates the budget of the event loop, or one of other rates. */
export function createWorkBudget({
  each = RATE_PER_UPSTREAM,
  eachCaller = { burst: each.burst / 2, perSecond: each.perSecond / 2 },
  all = TOTAL_RATE,
  now = () => performance.now(),
}: BudgetOptions = {}): WorkBudget {
  const total = createRate(all, now);
  const perUpstream = createRate(each, now);
  const perCaller = createRate(eachCaller, now);
  return {
    hasLeft: (upstream, caller) =>
      total.left() > 0 && perUpstream.left(upstream) > 0 && (caller === undefined || perCaller.left(caller) > 0),
    spend(upstream, ms, caller) {
      if (ms === 0) return;
      total.spend(ms);
      perUpstream.spend(ms, upstream);
      if (caller !== undefined) perCaller.spend(ms, caller);
    },
  };
}
