// Runs inspection jobs on one worker thread, one at a time. The thread is started with the first job, kept, and
// restarted after it died. Upstreams are served round-robin. A job that ends early always reports how, so that unread
// text is never taken for clean.
// Source: docs/reference/performance.md rule 10.

import { Worker } from 'node:worker_threads';
import type { InspectionJob, JobResult } from '../../inspection/jobs.js';
import { createQuota } from '../../state/quota.js';
import type { ThreadMessage } from './thread.js';

/** How many jobs may wait, and how many characters they may have in total. */
type WaitingBounds = { readonly jobs: number; readonly chars: number };

type FairQueue<T> = {
  /** False where too much waits already, in total or of this upstream. */
  add(waiting: T, upstream: string, chars: number): boolean;
  /** Removes and returns the next entry; `undefined` where none waits. */
  next(): T | undefined;
};

/** One upstream may use the bounds divided by this; one entry is always allowed. */
const QUOTA_DIVISOR = 4;

type Entry<T> = { readonly waiting: T; readonly chars: number };

/**
 * A queue that keeps the order within each upstream and serves upstreams round-robin, so that one that sends much
 * delays only itself.
 */
function createFairQueue<T>(bounds: WaitingBounds): FairQueue<T> {
  /** In round-robin order; no line is empty. */
  const lines = new Map<string, Entry<T>[]>();
  const jobs = createQuota({ total: bounds.jobs, perOwner: bounds.jobs / QUOTA_DIVISOR });
  const chars = createQuota({ total: bounds.chars, perOwner: bounds.chars / QUOTA_DIVISOR });

  return {
    add(waiting, upstream, more) {
      if (!jobs.fits(upstream) || !chars.take(upstream, more)) return false;
      jobs.take(upstream);
      const entry = { waiting, chars: more };
      const line = lines.get(upstream);
      if (line === undefined) lines.set(upstream, [entry]);
      else line.push(entry);
      return true;
    },
    next() {
      const [first] = lines;
      if (first === undefined) return undefined;
      const [upstream, line] = first;
      lines.delete(upstream);
      const entry = line.shift();
      if (line.length > 0) lines.set(upstream, line);
      if (entry === undefined) return undefined;
      jobs.give(upstream);
      chars.give(upstream, entry.chars);
      return entry.waiting;
    },
  };
}

/**
 * `died`: the thread ended or exceeded the time limit. `full`: too many jobs wait, or this one waited too long.
 * `unavailable`: no thread can be started.
 */
export type JobOutcome = JobResult | { readonly kind: 'died' | 'full' | 'unavailable' };

export type InspectionWorker = {
  /** Jobs of one upstream run in order. Never rejects. */
  run(job: InspectionJob, upstream: string): Promise<JobOutcome>;
  /** Ends the thread; running and waiting jobs end as `died`. */
  close(): Promise<void>;
};

export type WorkerOptions = {
  /** The module of the thread; by default the compiled one beside this module. */
  readonly entry?: URL;
  /** Longest time of one job. Hostile texts of megabytes took up to five seconds on a busy machine. */
  readonly maxJobMs?: number;
  /** Longest wait before a job starts. */
  readonly maxWaitMs?: number;
  /** Jobs and characters that may wait; a quarter of it for one upstream, and always one job. */
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

type PendingJob = {
  readonly job: InspectionJob;
  readonly sinceMs: number;
  readonly settle: (end: JobOutcome) => void;
};

type Thread = { readonly worker: Worker; isReady: boolean };

/** Creates a worker; its thread is started with the first job. */
export function createInspectionWorker(options: WorkerOptions = {}): InspectionWorker {
  const { entry = ENTRY, maxJobMs = MAX_JOB_MS, maxWaitMs = MAX_WAIT_MS } = options;
  const { maxJobs = MAX_JOBS, maxChars = MAX_CHARS, onThread } = options;
  const queue = createFairQueue<PendingJob>({ jobs: maxJobs, chars: maxChars });
  let thread: Thread | undefined;
  let running: { readonly waiting: PendingJob; readonly late: NodeJS.Timeout } | undefined;
  let isClosed = false;
  let isAvailable = true;

  function setAvailable(isThereNow: boolean): void {
    if (isAvailable === isThereNow) return;
    isAvailable = isThereNow;
    onThread?.(isAvailable);
  }

  /** The running thread, or a new one. Throws where none can be started. */
  function ensureThread(): Thread {
    if (thread !== undefined) return thread;
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
      } else if (thread === started) finish(posted);
    });
    const gone = (): void => handleThreadEnd(started);
    worker.on('error', gone);
    worker.on('messageerror', gone);
    worker.on('exit', gone);
    // A pending job keeps the process alive; an idle thread does not.
    worker.unref();
    thread = started;
    return started;
  }

  /** Only the running job is lost: waiting jobs get a new thread. */
  function handleThreadEnd(lost: Thread): void {
    if (thread !== lost) return;
    thread = undefined;
    void lost.worker.terminate();
    if (!lost.isReady && !isClosed) setAvailable(false);
    finish({ kind: lost.isReady || isClosed ? 'died' : 'unavailable' });
  }

  function finish(end: JobOutcome): void {
    if (running === undefined) return;
    const { waiting, late } = running;
    clearTimeout(late);
    running = undefined;
    waiting.settle(end);
    startNext();
  }

  function startNext(): void {
    while (running === undefined) {
      const waiting = queue.next();
      if (waiting === undefined) return;
      if (performance.now() - waiting.sinceMs > maxWaitMs) waiting.settle({ kind: 'full' });
      else start(waiting);
    }
  }

  function start(waiting: PendingJob): void {
    try {
      const on = ensureThread();
      on.worker.postMessage(waiting.job);
      const late = setTimeout(() => {
        // Also where the thread never became ready: a thread that hangs at its start must not block jobs, and must be
        // reported.
        if (!on.isReady) setAvailable(false);
        on.isReady = true;
        handleThreadEnd(on);
      }, maxJobMs);
      running = { waiting, late };
    } catch {
      setAvailable(false);
      waiting.settle({ kind: 'unavailable' });
    }
  }

  return {
    run(job, upstream) {
      if (isClosed) return Promise.resolve({ kind: 'died' });
      return new Promise((settle) => {
        const waiting = { job, sinceMs: performance.now(), settle };
        if (queue.add(waiting, upstream, job.input.text.length)) startNext();
        else settle({ kind: 'full' });
      });
    },
    async close() {
      isClosed = true;
      for (let left = queue.next(); left !== undefined; left = queue.next())
        left.settle({ kind: 'died' });
      const current = thread;
      if (current === undefined) return;
      handleThreadEnd(current);
      await current.worker.terminate();
    },
  };
}
