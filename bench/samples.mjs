// One sample: what a target was asked in a given time and what processor time it took, with the load that
// others put on the machine meanwhile. The scenarios are here, for all who compare targets by them.

import { cpuMicros, machineBusyMicros } from './process.mjs';

export const PROXY_CORE = 0;
export const LOAD_CORE = 1;
/** Busy time of others, as a share of one core, past which a sample is taken again. */
export const MAX_FOREIGN_SHARE = 0.12;
const MAX_TRIES = 4;

export const SCENARIOS = [
  { name: '1 KB call', method: 'tools/call', tool: 'echo', minBytes: 900 },
  { name: '50-tool list', method: 'tools/list', minBytes: 30_000 },
  { name: '64 KB result', method: 'tools/call', tool: 'page', minBytes: 60_000 },
  {
    name: '10-event stream',
    method: 'tools/call',
    tool: 'stream',
    minBytes: 1_500,
    isStream: true,
  },
  { name: '10 events apart', method: 'tools/call', tool: 'apart', minBytes: 1_500, isStream: true },
];
export const MOST_CONNECTIONS = 32;
export const ERAS = ['2025', '2026'];

export function ask(load, job) {
  return new Promise((resolve, reject) => {
    load.once('message', (answer) => (answer.error === undefined ? resolve(answer) : reject(new Error(answer.error))));
    load.send(job);
  });
}

/** One sample. `bystanders`: processes of ours that are no foreign load. */
async function sampleOnce(target, job, bystanders) {
  const own = () => [target.pid, ...bystanders].reduce((sum, pid) => sum + (cpuMicros(pid) ?? 0), 0);
  const busyBefore = machineBusyMicros();
  const ownBefore = own();
  const cpuBefore = target.pid === undefined ? 0 : cpuMicros(target.pid);
  const startedMs = performance.now();
  const { load, url, token, needsInitialized } = target;
  const answer = await ask(load, { ...job, url, token, needsInitialized });
  const elapsedMicros = (performance.now() - startedMs) * 1000;
  const cpu = target.pid === undefined ? undefined : (cpuMicros(target.pid) - cpuBefore) / answer.requests;
  const foreign = (machineBusyMicros() - busyBefore - (own() - ownBefore)) / elapsedMicros;
  return {
    cpuMicros: cpu,
    perSecond: (answer.requests / elapsedMicros) * 1e6,
    p50: answer.p50,
    p99: answer.p99,
    foreign,
    isDisturbed: foreign > MAX_FOREIGN_SHARE,
  };
}

/** A sample; taken again while others keep the machine busy, a few times at most. */
export async function sample(target, job, bystanders) {
  for (let attempt = 1; ; attempt += 1) {
    const taken = await sampleOnce(target, job, bystanders);
    if (!taken.isDisturbed || attempt === MAX_TRIES) return taken;
  }
}
