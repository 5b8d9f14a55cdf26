// npm run bench -- --hostile [--against DIR] [--attack NAME ...] [--runs N]
// What one hostile upstream does to the callers of another, in the default configuration: a good upstream
// and a hostile one behind one gateway; another caller of the good one is measured idle and then during
// each attack of attacks.mjs, together with the longest time for which the event loop was not served and the
// peak of resident memory. Each run has a gateway of its own and ends after a set time, whatever happens.
// With --against the gateway of another build is attacked instead. Exits 1 where a bound is broken.

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { commitOf, faultOfBuild } from './against.mjs';
import { ATTACKS } from './attacks.mjs';
import { brokenBounds } from './bounds.mjs';
import { ENDPOINT, OWN_DIST, startGatewayForBench } from './gateway.mjs';
import { start, stop } from './process.mjs';
import { ask } from './samples.mjs';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const WARM_MS = 1_000;
const IDLE_MS = 1_500;
const ATTACK_MS = 4_000;
/** The caller goes on measuring for so long after the attack: what was begun is still to be paid. */
const AFTER_MS = 500;
/** Idle time is measured again while others keep the machine so busy that the loop waits this long. */
const MAX_IDLE_BLOCK_MS = 50;
const MAX_IDLE_TRIES = 3;
/** Whatever happens, a run is over then: its gateway is killed. */
const MAX_RUN_MS = 40_000;
/** The attack is under way before the caller begins. */
const LEAD_MS = 200;

/** Follows what loop-watch.mjs tells: the longest block since `reset`, one that goes on still included. */
function watchLoop(child) {
  let longest = 0;
  let reportedAtMs = performance.now();
  child.on('message', ({ blockMs }) => {
    longest = Math.max(longest, blockMs);
    reportedAtMs = performance.now();
  });
  return {
    reset() {
      longest = 0;
    },
    longestMs: () => Math.max(longest, performance.now() - reportedAtMs - 200),
  };
}

/** Peak of resident memory in MB; NaN where the process is gone. */
async function peakMb(pid) {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? Number.NaN) * 1.024e-3;
}

/** The other caller alone; `blockMs` tells how busy the machine is. */
async function measureIdle(measure, loop) {
  for (let attempt = 1; ; attempt += 1) {
    loop.reset();
    const idle = await measure(IDLE_MS);
    const blockMs = loop.longestMs();
    if (blockMs <= MAX_IDLE_BLOCK_MS || attempt === MAX_IDLE_TRIES) return { ...idle, blockMs };
  }
}

/** Tokens for so many callers hold the idle streams, none of them more than a caller may have. */
const ATTACKERS = 40;

/** What the attacker is told of the gateway: its callers, and the endpoint with a token for it. */
async function targetOf(gateway) {
  const callers = Array.from({ length: ATTACKERS }, (_, at) => `attacker-${at}`);
  return {
    url: gateway.urlOf('hostile'),
    tokens: await Promise.all(callers.map((name) => gateway.tokenOf(name, 'hostile'))),
    endpoint: {
      path: new URL(gateway.urlOf(ENDPOINT)).pathname,
      token: await gateway.tokenOf('attacker-0', ENDPOINT),
    },
  };
}

async function attackOnce(attack, gateway, { hostile, probe, attacker, beside }) {
  const { child, url, token } = gateway;
  const loop = watchLoop(child);
  const measure = (ms) => ask(probe.child, { url, token, ms });
  await measure(WARM_MS);
  const idle = await measureIdle(measure, loop);
  const target = { ...(await targetOf(gateway)), name: attack.name };
  const { leadMs = LEAD_MS } = attack;
  const ms = leadMs + ATTACK_MS - LEAD_MS;
  await ask(hostile.child, { name: attack.name, ms });
  loop.reset();
  const attacked = ask(attacker.child, { ...target, part: 'attack', ms });
  await sleep(leadMs);
  const second = {
    ...{ ...target, part: 'beside', ms: ATTACK_MS - 2 * LEAD_MS },
    tokens: [await gateway.tokenOf('beside', 'hostile')],
  };
  const asked = attack.beside && ask(beside.child, second);
  const during = await measure(ATTACK_MS - LEAD_MS + AFTER_MS);
  const counts = await ask(hostile.child, {});
  const besides = await asked;
  const run = {
    attack: attack.name,
    idleP50Ms: idle.p50,
    idleP99Ms: idle.p99,
    idleBlockMs: idle.blockMs,
    isBusy: idle.blockMs > MAX_IDLE_BLOCK_MS,
    p50Ms: during.p50,
    p99Ms: during.p99,
    errors: during.errors + idle.errors,
    firstError: idle.firstError ?? during.firstError ?? besides?.firstError,
    blockMs: loop.longestMs(),
    peakMb: await peakMb(child.pid),
    died: child.exitCode !== null || child.signalCode !== null,
  };
  const all = { ...(await attacked), ...counts };
  const measured = { ...run, counts: all, beside: besides, proof: all[attack.proof] };
  return { ...measured, broken: brokenBounds(measured) };
}

async function runOnce(attack, dist, others) {
  const { good, hostile } = others;
  const watch = ['--import', here('loop-watch.mjs')];
  const urlOf = ({ first }) => `http://127.0.0.1:${first.port}/mcp`;
  await ask(hostile.child, { name: attack.name, ms: 0 });
  const options = { dist, others: { hostile: urlOf(hostile) } };
  const gateway = await startGatewayForBench(urlOf(good), undefined, watch, options);
  const overdue = setTimeout(() => gateway.child.kill('SIGKILL'), MAX_RUN_MS);
  try {
    return await attackOnce(attack, gateway, others);
  } finally {
    clearTimeout(overdue);
    // It may have minutes of work before it; nothing of it is wanted any more.
    gateway.child.kill('SIGKILL');
    await gateway.close();
  }
}

const HEADINGS = ['idle p99 ms', 'p50 ms', 'p99 ms', 'errors', 'idle block', 'block ms', 'peak MB', 'sent'];

const ms = (value) => (value < 10 ? value.toFixed(1) : value.toFixed(0));

function print(name, figures, verdict) {
  const columns = figures.map((figure) => figure.padStart(12)).join('');
  console.log(`${name.padEnd(26)}${columns}  ${verdict}`.trimEnd());
}

function printRun({ attack, idleP99Ms, p50Ms, p99Ms, errors, idleBlockMs, blockMs, ...run }) {
  const { proof, peakMb: peak, broken, isBusy } = run;
  const figures = [idleP99Ms, p50Ms, p99Ms].map((value) => ms(value ?? Number.NaN));
  const blocks = [idleBlockMs, blockMs].map(ms);
  const verdict = `${broken.length === 0 ? 'kept' : 'broken'}${isBusy ? ' (busy)' : ''}`;
  const cells = [...figures, String(errors), ...blocks, peak.toFixed(0), String(proof)];
  print(attack, cells, verdict);
}

/** Runs the attacks; resolves with the exit code. */
export async function benchHostile(options) {
  const root = options.dir === undefined ? here('..') : resolve(options.dir);
  const error = faultOfBuild(root);
  const isWanted = ({ name }) => options.attacks.length === 0 || options.attacks.includes(name);
  const attacks = ATTACKS.filter(isWanted);
  if (error !== undefined || attacks.length === 0) {
    const names = ATTACKS.map(({ name }) => `"${name}"`).join(', ');
    console.error(error ?? `--attack knows ${names}.`);
    return 1;
  }
  const dist = options.dir === undefined ? OWN_DIST : join(root, 'dist');
  const startedMs = performance.now();
  const others = {};
  const runs = [];
  try {
    others.good = await start(here('upstream.mjs'), [], {});
    for (const [name, { file, niceness }] of Object.entries(PROCESSES))
      others[name] = await start(here(file), [], { niceness });
    print('', HEADINGS, '');
    for (const attack of attacks) {
      for (let count = 0; count < options.runs; count += 1) {
        const run = await runOnce(attack, dist, others);
        printRun(run);
        runs.push(run);
      }
    }
  } finally {
    for (const { child } of Object.values(others)) await stop(child);
  }
  const seconds = (performance.now() - startedMs) / 1000;
  await report(runs, { commit: commitOf(root), seconds });
  return runs.every(({ broken }) => broken.length === 0) ? 0 : 1;
}

/**
 * The attacker and its server would have machines of their own: here they get what the gateway and the other
 * caller leave of the processor, so that a figure is the gateway's and not the scheduler's.
 */
const ATTACKER_NICENESS = 10;
const PROCESSES = {
  hostile: { file: 'hostile-upstream.mjs', niceness: ATTACKER_NICENESS },
  probe: { file: 'probe.mjs' },
  attacker: { file: 'attacker.mjs', niceness: ATTACKER_NICENESS },
  beside: { file: 'attacker.mjs' },
};

async function report(runs, { commit, seconds }) {
  const isBroken = ({ broken }) => broken.length > 0;
  for (const { attack, broken, firstError } of runs.filter(isBroken))
    console.log(`${attack}: ${broken.join('; ')}${firstError === undefined ? '' : ` (first: ${firstError})`}`);
  if (runs.some(({ isBusy }) => isBusy))
    console.log('busy: others kept the machine busy, so the figures are theirs too');
  console.log(
    `commit ${commit}: ${runs.filter(isBroken).length} of ${runs.length} runs broke a bound, ${seconds.toFixed(0)} s`,
  );
  await mkdir(here('results'), { recursive: true });
  const file = here('results/hostile.json');
  await writeFile(file, `${JSON.stringify({ commit, seconds, runs }, null, 2)}\n`);
  console.log(`written to ${file}`);
}
