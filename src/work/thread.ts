// The inside of a worker thread: runs one job after another. worker.ts starts it and handles a job during which it dies.

import { readlinkSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';
import { basename } from 'node:path';
import { parentPort } from 'node:worker_threads';

/** Of a result, what comes before its end. */
export type ResultPart = { readonly kind: 'part'; readonly part: unknown };

/** What a thread posts: once that it is ready, then of each job its parts and its result. */
export type ThreadMessage<Result> = 'ready' | ResultPart | Result;

/** With a nice value this much higher, the thread gets a third of the event loop's weight on a shared core. */
const NICER_BY = 5;

/**
 * Gives the event loop precedence. Linux has a priority per thread and names the current thread in /proc; on other
 * systems, and where /proc is not mounted, the priority stays unchanged.
 */
function lowerPriority(): void {
  try {
    const thread = Number(basename(readlinkSync('/proc/thread-self')));
    setPriority(thread, Math.min(getPriority(thread) + NICER_BY, constants.priority.PRIORITY_LOW));
  } catch {
    // Inspection works without it, but competes equally with the event loop.
  }
}

/** Runs the jobs that are posted to this thread. One that throws or rejects ends it. */
export function serveJobs<Job, Result>(
  run: (job: Job, postPart: (part: unknown) => void) => Result | Promise<Result>,
): void {
  lowerPriority();
  const post = (message: ThreadMessage<Result>): void => parentPort?.postMessage(message);
  parentPort?.on('message', async (job: Job) => post(await run(job, (part) => post({ kind: 'part', part }))));
  post('ready');
}
