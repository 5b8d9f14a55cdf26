// Inspections of long texts that a test holds back: they are done in this process in place of another thread.

import { expect, vi } from 'vitest';
import { runJob } from '../../src/inspection/jobs.js';
import { replace } from './seams.js';
import { PATIENT } from './timing.js';

/** Jobs that have begun, and what holds back their outcomes. */
export const jobs = { begun: 0, held: Promise.resolve() };

replace('worker', {
  createInspectionWorker: () => ({
    async run(job) {
      jobs.begun += 1;
      await jobs.held;
      return runJob(job);
    },
    close: async () => undefined,
  }),
});

/** Holds back what begins from now on until it is called. */
export function holdJobs(): () => void {
  let release = (): void => undefined;
  jobs.held = new Promise((resolve) => {
    release = resolve;
  });
  return release;
}

/** Begins it, and waits until one more job has begun. */
export async function beginJob<T>(act: () => T): Promise<{ readonly done: T }> {
  const before = jobs.begun;
  const done = act();
  await vi.waitFor(() => expect(jobs.begun).toBe(before + 1), PATIENT);
  return { done };
}
