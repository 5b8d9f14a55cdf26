// The end of a thread. The order of its events depends on how busy the event loop is, so that a
// stand-in sends them.

import { expect, it, vi } from 'vitest';
import { createInspectionWorker } from '../../../src/work/worker.js';

vi.mock('node:worker_threads', async (importOriginal) => {
  const { EventEmitter } = await import('node:events');
  /**
   * Ends with its first job. As Node may do it, its error comes before an earlier message, and its exit last. A job with
   * the text `slow` finds a thread that takes 900 ms to start, and as long for the job.
   */
  class Worker extends EventEmitter {
    unref(): void {}
    async terminate(): Promise<number> {
      return 1;
    }
    postMessage(job: { readonly input: { readonly text: string } }): void {
      if (job.input.text === 'slow') {
        setTimeout(() => this.emit('message', 'ready'), 900);
        setTimeout(() => this.emit('message', { kind: 'definitions', outcome: [] }), 1_800);
        return;
      }
      queueMicrotask(() => {
        this.emit('error', new Error('broken on purpose'));
        this.emit('message', 'ready');
        this.emit('exit', 1);
      });
    }
  }
  return { ...(await importOriginal<typeof import('node:worker_threads')>()), Worker };
});

it('[PRF-08] takes a text that ended its thread for lost, whatever of the thread is seen first', async () => {
  const worker = createInspectionWorker({ threads: 1 });
  const job = { kind: 'definitions', input: { task: 'scan', text: '[]' } } as const;
  // `unavailable` would let the event loop read what has just ended a thread.
  expect(await worker.run(job, 'one', undefined)).toEqual({ kind: 'died' });
  await worker.close();
});

it('[PRF-08] counts the time of a job from when its thread has started', async () => {
  vi.useFakeTimers();
  try {
    const worker = createInspectionWorker({ threads: 1, maxJobMs: 1_000 });
    const job = { kind: 'definitions', input: { task: 'scan', text: 'slow' } } as const;
    const ended = worker.run(job, 'one', undefined);
    await vi.advanceTimersByTimeAsync(1_800);
    expect(await ended).toEqual({ kind: 'definitions', outcome: [] });
    await worker.close();
  } finally {
    vi.useRealTimers();
  }
});
