// The other thread: does one inspection after another, as it is told, with the very code of the event loop.
// What starts it, and what becomes of a job that it dies of, is inspection-worker.ts.

import { parentPort } from 'node:worker_threads';
import { type DoneJob, doJob, type InspectionJob } from '../inspect/apart.js';

/** What the thread says: once that it is there, then each job done. */
export type Said = 'ready' | DoneJob;

function say(said: Said): void {
  parentPort?.postMessage(said);
}

parentPort?.on('message', (job: InspectionJob) => say(doJob(job)));
say('ready');
