// Runs inspection jobs on worker threads, one at a time on each. A thread is started when a job finds none idle, and
// restarted after it died; which job is next decides fair-queue.ts. A job that ends early always reports how, so that
// unread text is never taken for clean.
// Source: docs/reference/performance.md rule 10.

import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { InspectionJob, JobResult } from '../../inspection/jobs.js';
import {
  createFairQueue,
  createWorkBudget,
  type QueuedJob,
  type WorkBudget,
} from './fair-queue.js';
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
  /** Longest time of one job. Hostile texts of megabytes took up to five seconds on a busy machine. */
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
const MAX_JOB_MS = 15_000;
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
