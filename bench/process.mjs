// Starts the processes of a bench, pins them to cores where the machine allows it, and reads their
// processor time from /proc, which counts nanoseconds a thread.

import { fork, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

/** What was started here and still runs: a gateway does not end by itself when its bench does. */
const running = new Set();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

/**
 * Starts a Node program; resolves with its first message. `core` pins all its threads, `niceness` lowers the
 * priority of all of them.
 */
export function start(file, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = fork(file, args, {
      stdio: ['ignore', options.output ?? 'ignore', options.output ?? 'inherit', 'ipc'],
      env: { ...process.env, ...options.env },
      ...programOf(options),
    });
    running.add(child);
    child.once('close', () => running.delete(child));
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`${file} ended with ${code}`)));
    if (options.core !== undefined) pin(child.pid, options.core);
    if (options.expectMessage === false) return resolve({ child, first: undefined });
    child.once('message', (first) => resolve({ child, first }));
  });
}

/** `nice` replaces itself with Node, so that pid and IPC are Node's and every thread inherits the priority. */
function programOf({ execArgv = [], niceness }) {
  if (niceness === undefined) return { execArgv };
  return { execPath: 'nice', execArgv: ['-n', String(niceness), process.execPath, ...execArgv] };
}

function pin(pid, core) {
  spawnSync('taskset', ['-a', '-p', '-c', String(core), String(pid)]);
}

/** Processor time of a process so far, in microseconds; `undefined` where /proc does not tell. */
export function cpuMicros(pid) {
  try {
    let nanos = 0;
    for (const task of readdirSync(`/proc/${pid}/task`)) {
      nanos += Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, 'utf8').split(' ')[0]);
    }
    return nanos / 1000;
  } catch {
    return undefined;
  }
}

/** Busy time of the whole machine so far, in microseconds (user, nice, system, irq, softirq, steal). */
export function machineBusyMicros() {
  const [, ...fields] = readFileSync('/proc/stat', 'utf8').split('\n', 1)[0].split(/\s+/);
  const [user, nice, system, , , irq, softirq, steal] = fields.map(Number);
  return (user + nice + system + irq + softirq + steal) * 10_000;
}

/** Resident memory of a process in MiB. */
export function residentMib(pid) {
  const line = readFileSync(`/proc/${pid}/status`, 'utf8').match(/VmRSS:\s+(\d+) kB/);
  return line === null ? Number.NaN : Number(line[1]) / 1024;
}

/** Ends a child that was started here, and waits for it. */
export function stop(child) {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.removeAllListeners('exit');
    child.once('exit', resolve);
    child.kill('SIGTERM');
    setTimeout(() => child.kill('SIGKILL'), 5_000).unref();
  });
}
