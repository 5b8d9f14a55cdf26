// Loaded into a gateway under attack: tells its parent every 100 ms the longest time for which the event
// loop was not served since it last told.

import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

const RESOLUTION_MS = 1;
const EVERY_MS = 100;

if (isMainThread && process.send !== undefined) {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  setInterval(() => {
    process.send({ blockMs: Math.max(0, delay.max / 1e6 - RESOLUTION_MS) });
    delay.reset();
  }, EVERY_MS).unref();
}
