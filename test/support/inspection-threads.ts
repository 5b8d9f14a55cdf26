// Threads of inspections for tests: the built one, and such as fail in one way each.

import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** The thread as it is built; whoever uses it builds the program first. */
export const BUILT_THREAD: URL = pathToFileURL(
  join(import.meta.dirname, '../../dist/gateway/worker/thread.js'),
);

function thread(onJob: string): URL {
  const code = `import { parentPort } from 'node:worker_threads';
    parentPort.on('message', (job) => { ${onJob} });
    parentPort.postMessage('ready');`;
  return new URL(`data:text/javascript,${encodeURIComponent(code)}`);
}

/** Ends with the first job. */
export const DYING_THREAD: URL = thread('process.exit(0)');
/** Throws at the first job. */
export const THROWING_THREAD: URL = thread('throw new Error("broken on purpose")');
/** Takes more memory than it may have. */
export const HUNGRY_THREAD: URL = thread(
  'const held = []; for (;;) held.push(new Array(1e6).fill(held.length));',
);
/** Never answers, and lets nobody else. */
export const HANGING_THREAD: URL = thread('for (;;);');
/** Never comes to say that it is ready. */
export const MUTE_THREAD: URL = new URL('data:text/javascript,setInterval(() => {}, 1000)');
/** Is not there. */
export const MISSING_THREAD: URL = new URL('file:///nowhere/inspection-thread.js');
/** Ends before it is ready. */
export const STILLBORN_THREAD: URL = new URL('data:text/javascript,throw new Error("not today")');
