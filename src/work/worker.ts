// Runs jobs on worker threads, one at a time on each, in the order of queue.ts. A thread is started when a job finds none
// idle, and restarted after it died. A job that ends early always reports how, so that unread text is never taken for
// clean. Source: docs/reference/performance.md rule 10.

import { availableParallelism } from 'node:os';
import { Worker as NodeWorker } from 'node:worker_threads';
import type { InspectionJob, JobResult } from '../inspection/jobs.js';
import { createFairQueue, createWorkBudget, type QueuedJob, type WorkBudget } from './queue.js';
import type { ResultPart, ThreadMessage } from './thread.js';

/**
 * `died`: the thread ended or exceeded the time limit. `full`: too many jobs wait, or this one waited too long.
 * `unavailable`: no thread can be started.
 */
export type JobFailure = { readonly kind: 'died' | 'full' | 'unavailable' };

export type Worker<Job, Result> = {
  /**
   * Jobs of one caller at one upstream run in order; without a caller they are the gateway's own. Never rejects.
   * @param onPart called with each part of the result that comes before its end. Must not throw.
   */
  run(job: Job, upstream: string, caller?: string, onPart?: (part: unknown) => void): Promise<Result | JobFailure>;
  /** Ends the threads; running and waiting jobs end as `died`. */
  close(): Promise<void>;
};

/** What inspects. */
export type InspectionWorker = Worker<InspectionJob, JobResult>;
export type JobOutcome = JobResult | JobFailure;

type JobTerms<Job> = {
  /** The module of the threads. */
  readonly entry: URL;
  /** How many characters a job holds while it waits. */
  readonly charsOf: (job: Job) => number;
};

export type WorkerOptions = {
  readonly entry?: URL;
  /** Longest time of one job. Texts of megabytes take up to five seconds of processor time, and a busy machine many times that. */
  readonly maxJobMs?: number;
  /** Longest wait before a job starts. */
  readonly maxWaitMs?: number;
  /** Threads at most; by default one for each core but one. */
  readonly threads?: number;
  /** Whether one thread is kept when there is nothing to do; true by default. */
  readonly keepsOne?: boolean;
  /** Memory of a thread; a job that needs more ends it. */
  readonly maxHeapMb?: number;
  /** Jobs and characters that may wait; a quarter of it for one upstream, half of that for one caller. */
  readonly maxJobs?: number;
  readonly maxChars?: number;
  /** Called once when no thread can be started, and once when one runs again. Must not throw. */
  readonly onThread?: (isAvailable: boolean) => void;
};

const INSPECTION_ENTRY = new URL('./inspection-thread.js', import.meta.url);
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

type PendingJob<Job, Result> = {
  readonly job: Job;
  readonly sinceMs: number;
  readonly settle: (end: Result | JobFailure) => void;
  readonly onPart: ((part: unknown) => void) | undefined;
};

type Thread = { readonly worker: NodeWorker; isReady: boolean };

/** The job of a slot, and the timer that ends one that takes too long. */
type RunningJob<Pending> = {
  readonly queued: QueuedJob<Pending>;
  readonly startedMs: number;
  readonly late: NodeJS.Timeout;
};

/** What one thread at a time takes. */
type Slot<Pending> = {
  thread?: Thread | undefined;
  running?: RunningJob<Pending> | undefined;
  idle?: NodeJS.Timeout | undefined;
};

function isPart(posted: { readonly kind: string }): posted is ResultPart {
  return posted.kind === 'part';
}

/** Creates the worker that reads and inspects texts. `entry`: another module of its threads. */
export function createInspectionWorker({ entry = INSPECTION_ENTRY, ...options }: WorkerOptions = {}): InspectionWorker {
  return createWorker<InspectionJob, JobResult>({ ...options, entry, charsOf: ({ input }) => input.text.length });
}

/** Creates a worker; its threads are started when jobs need them. */
export function createWorker<Job, Result extends { readonly kind: string }>(
  options: WorkerOptions & JobTerms<Job>,
): Worker<Job, Result> {
  type Pending = PendingJob<Job, Result>;
  const { entry, charsOf, maxJobMs = MAX_JOB_MS, maxWaitMs = MAX_WAIT_MS } = options;
  const { maxJobs = MAX_JOBS, maxChars = MAX_CHARS, onThread } = options;
  const { threads = defaultThreads(), keepsOne = true, maxHeapMb = MAX_HEAP_MB } = options;
  const queue = createFairQueue<Pending>({
    bounds: { jobs: maxJobs, chars: maxChars },
    threads,
    budget: threadBudget(threads),
  });
  const slots = Array.from({ length: threads }, (): Slot<Pending> => ({}));
  let growsAgainAtMs = 0;
  let isClosed = false;
  let isAvailable = true;

  function setAvailable(isThereNow: boolean): void {
    if (isAvailable === isThereNow) return;
    isAvailable = isThereNow;
    onThread?.(isAvailable);
  }

  /** The thread of the slot, or a new one. Throws where none can be started. */
  function ensureThread(slot: Slot<Pending>): Thread {
    clearTimeout(slot.idle);
    if (slot.thread !== undefined) return slot.thread;
    const worker = new NodeWorker(entry, {
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: maxHeapMb },
    });
    const started: Thread = { worker, isReady: false };
    worker.on('message', (posted: ThreadMessage<Result>) => receive(slot, started, posted));
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

  function receive(slot: Slot<Pending>, from: Thread, posted: ThreadMessage<Result>): void {
    if (posted === 'ready') {
      from.isReady = true;
      // The time of the job is that of the thread at work: on a busy machine starting one takes seconds.
      if (slot.thread === from) slot.running?.late.refresh();
      setAvailable(true);
    } else if (slot.thread !== from) return;
    else if (isPart(posted)) slot.running?.queued.job.onPart?.(posted.part);
    else finish(slot, posted);
  }

  /** Only the running job is lost: waiting jobs get a new thread. */
  function handleThreadEnd(slot: Slot<Pending>, endedThread: Thread): void {
    if (slot.thread !== endedThread) return;
    slot.thread = undefined;
    void endedThread.worker.terminate();
    if (endedThread.isReady || isClosed) finish(slot, { kind: 'died' });
    else handleFailedStart(slot);
  }

  /** A thread that cannot be started beside others leaves its job to them; without others the event loop has to do it. */
  function handleFailedStart(slot: Slot<Pending>): void {
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

  function finish(slot: Slot<Pending>, end: Result | JobFailure): void {
    if (slot.running === undefined) return;
    const { queued, startedMs, late: timer } = slot.running;
    clearTimeout(timer);
    slot.running = undefined;
    queue.end(queued, performance.now() - startedMs);
    queued.job.settle(end);
    startNext();
    if (slot.running === undefined && !(keepsOne && slot === slots[0])) endWhenIdle(slot);
  }

  function endWhenIdle(slot: Slot<Pending>): void {
    slot.idle = setTimeout(() => {
      const { thread } = slot;
      if (thread !== undefined && slot.running === undefined) handleThreadEnd(slot, thread);
    }, IDLE_MS).unref();
  }

  /** An idle slot: one that has a thread before one that would have to start it. */
  function findIdle(): Slot<Pending> | undefined {
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

  function start(slot: Slot<Pending>, queued: QueuedJob<Pending>): void {
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
    run(job, upstream, caller, onPart) {
      if (isClosed) return Promise.resolve({ kind: 'died' });
      return new Promise((settle) => {
        const pending = { job, sinceMs: performance.now(), settle, onPart };
        if (queue.add({ job: pending, upstream, caller, chars: charsOf(job) })) startNext();
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
