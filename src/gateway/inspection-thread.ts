// The other thread: does one inspection after another, as it is told, with the very code of the event loop.
// What starts it, and what becomes of a job that it dies of, is inspection-worker.ts.

import { readlinkSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';
import { basename } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { type DoneJob, doJob, type InspectionJob } from '../inspect/apart.js';

/** What the thread says: once that it is there, then each job done. */
export type Said = 'ready' | DoneJob;

/** So much nicer than the event loop, the thread has a third of its weight where both want the same core. */
const NICER_BY = 5;

/**
 * Lets the event loop go first. Linux has a priority for each thread and names this one in /proc; elsewhere,
 * and where /proc is not mounted, the thread stays as it is.
 */
function lowerPriority(): void {
  try {
    const thread = Number(basename(readlinkSync('/proc/thread-self')));
    setPriority(thread, Math.min(getPriority(thread) + NICER_BY, constants.priority.PRIORITY_LOW));
  } catch {
    // Inspection works without it, only less politely.
  }
}

function say(said: Said): void {
  parentPort?.postMessage(said);
}

lowerPriority();
parentPort?.on('message', (job: InspectionJob) => say(doJob(job)));
say('ready');
