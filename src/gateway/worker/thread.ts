// The worker thread: runs one inspection job after another with the same code as the event loop. worker.ts starts it
// and handles a job during which it dies.

import { readlinkSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';
import { basename } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { type InspectionJob, type JobResult, runJob } from '../../inspection/jobs.js';

/** What the thread posts: once that it is ready, then each finished job. */
export type ThreadMessage = 'ready' | JobResult;

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

function post(message: ThreadMessage): void {
  parentPort?.postMessage(message);
}

lowerPriority();
parentPort?.on('message', (job: InspectionJob) => post(runJob(job)));
post('ready');
