// npm run bench -- --against DIR [--max-dearer X] [--width W] [--connections 1,32] [--scenario NAME ...]
//                  [--seconds S] [--min-pairs N] [--max-pairs N] [--minutes M]
// Compares this build with the one in DIR, another checkout with its own `dist`: processor time of the
// gateway for each request, this build against the other, as the median of paired ratios with its 95 %
// interval (statistics.mjs). Both run at the same time before the same upstream, on the same core, with the
// same load. A pair is one short sample of each, taken in alternating slices, so that what the machine does
// meanwhile falls on both; which comes first is drawn. A pair that others disturbed is taken again.
//
// Two processes of one build differ by some percent for as long as they live (what was compiled when,
// where memory lies). Pairs of the same two processes would all carry that difference, and the interval
// would be narrow around a wrong value. So both are started anew for every few pairs ("launches").
//
// Exits 1 where a scenario is dearer by more than --max-dearer, 2 where one has no result.

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { arch, cpus } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { OWN_DIST, startGatewayForBench } from './gateway.mjs';
import { cpuMicros, machineBusyMicros, start, stop } from './process.mjs';
import { ask, ERAS, LOAD_CORE, MAX_FOREIGN_SHARE, MOST_CONNECTIONS, PROXY_CORE, SCENARIOS } from './samples.mjs';
import { dearerBy, drawOrders, judgeRatios, wantsMore, widthOf } from './statistics.mjs';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const PAIRS_A_LAUNCH = 8;
/**
 * Processor time that a process has used before it is measured. Until then V8 still compiles: the cost of a
 * 1 KB call falls for the first ten seconds, and longer in the build that has more code.
 */
const WARM_MICROS = 20_000_000;
const WARM_SLICE_MS = 150;
const MAX_WARM_UP_MS = 120_000;
/** Slices of a sample; `true` stands for the build that comes first. */
const SLICES = [true, false, false, true, false, true, true, false];
const MAX_TRIES = 3;
const MAX_FAILURES = 3;
const RESULTS = here('results/against.json');

/** Why the folder cannot be compared with, as one sentence; `undefined` where it can. */
export function faultOfBuild(root) {
  if (!existsSync(join(root, 'dist/main.js')))
    return `${root} has no dist/main.js: run "npm ci && npm run build" there first.`;
  if (!existsSync(join(root, 'node_modules'))) return `${root} has no node_modules: run "npm ci" there first.`;
  if (!existsSync(join(root, 'dist/dev/issuer.js')))
    return `${root} has no dist/dev/issuer.js, so it is no build of this gateway.`;
  return undefined;
}

/** The commit of a checkout, with "-dirty" where files differ from it. */
export function commitOf(root) {
  try {
    const args = ['-C', root, 'describe', '--always', '--dirty', '--exclude=*'];
    return execFileSync('git', args, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return 'unknown';
  }
}

function cellsOf({ connections, scenarios }) {
  const isWanted = ({ name }) => scenarios.length === 0 || scenarios.includes(name);
  return connections.flatMap((count) =>
    ERAS.flatMap((era) =>
      SCENARIOS.filter(isWanted).map((scenario) => ({
        era,
        connections: count,
        scenario,
        pairs: [],
      })),
    ),
  );
}

/** Ratios of a cell by launch. */
function ratiosOf(cell) {
  const launches = new Map();
  for (const { own, other, launch: number } of cell.pairs)
    launches.set(number, [...(launches.get(number) ?? []), own / other]);
  return [...launches.values()];
}

/** Both builds, freshly started one after the other. */
async function launch(dists, upstreamUrl, load) {
  const [first, second] = drawOrders(2)[0] ? ['own', 'other'] : ['other', 'own'];
  const gateways = {};
  async function close() {
    await ask(load, { forget: true });
    for (const gateway of Object.values(gateways)) await gateway.close();
  }
  try {
    for (const name of [first, second]) {
      const build = { dist: dists[name] };
      gateways[name] = await startGatewayForBench(upstreamUrl, PROXY_CORE, [], build);
    }
  } catch (error) {
    await close();
    throw error;
  }
  const targetOf = ({ url, token, child }) => ({ url, token, pid: child.pid, load });
  return { own: targetOf(gateways.own), other: targetOf(gateways.other), close };
}

/** Both in turns: V8 gives memory back while a process is idle, so the one warmed first would begin behind. */
async function warmUp(targets, cells) {
  const untilMs = performance.now() + MAX_WARM_UP_MS;
  const isCold = ({ pid }) => cpuMicros(pid) < WARM_MICROS;
  do {
    for (const { era, scenario } of cells) {
      const job = { era, scenario, connections: MOST_CONNECTIONS, ms: WARM_SLICE_MS, keep: true };
      for (const { load, url, token } of targets) await ask(load, { ...job, url, token });
    }
  } while (targets.some(isCold) && performance.now() < untilMs);
}

/** Processor time of a request to both builds, taken at the same time in slices. */
async function takeOnce(targets, job, bystanders) {
  const pids = [...bystanders, targets.own.pid, targets.other.pid];
  const ours = () => pids.reduce((sum, pid) => sum + cpuMicros(pid), 0);
  const order = drawOrders(2)[0] ? ['own', 'other'] : ['other', 'own'];
  const spent = { own: 0, other: 0 };
  const requests = { own: 0, other: 0 };
  const foreignBefore = machineBusyMicros() - ours();
  const startedMs = performance.now();
  for (const isFirst of SLICES) {
    const name = order[isFirst ? 0 : 1];
    const { url, token, pid, load } = targets[name];
    const before = cpuMicros(pid);
    const answer = await ask(load, { ...job, url, token });
    spent[name] += cpuMicros(pid) - before;
    requests[name] += answer.requests;
  }
  const elapsedMicros = (performance.now() - startedMs) * 1000;
  return {
    own: spent.own / requests.own,
    other: spent.other / requests.other,
    foreign: (machineBusyMicros() - ours() - foreignBefore) / elapsedMicros,
  };
}

/** A pair; taken again while others disturb it and `retakes` allows, then the least disturbed one. */
async function takePair(targets, cell, seconds, bystanders, retakes) {
  const { era, connections, scenario } = cell;
  const ms = (seconds * 1000 * 2) / SLICES.length;
  const job = { era, connections, scenario, ms, keep: true };
  let best;
  for (let attempt = 1; ; attempt += 1) {
    const pair = await takeOnce(targets, job, bystanders);
    if (best === undefined || pair.foreign < best.foreign) best = pair;
    if (!isDisturbed(best) || attempt === MAX_TRIES || retakes.left === 0) return best;
    retakes.left -= 1;
  }
}

const isDisturbed = (pair) => pair.foreign > MAX_FOREIGN_SHARE;

async function measureLaunch(targets, open, options, { bystanders, retakes, number }) {
  await warmUp([targets.own, targets.other], open);
  for (const cell of open) {
    for (let count = 0; count < PAIRS_A_LAUNCH; count += 1) {
      const pair = await takePair(targets, cell, options.seconds, bystanders, retakes);
      cell.pairs.push({ ...pair, launch: number });
    }
  }
}

/**
 * Fills the cells with pairs, launch by launch, until all have a result or are at their bound, or the time is
 * over. A launch that fails (a machine so busy that a gateway is not ready in time) costs its pairs alone.
 */
async function measureAll(cells, options, dists, onLaunch) {
  const upstream = await start(here('upstream.mjs'), [], { core: LOAD_CORE });
  const { child: load } = await start(here('load.mjs'), [], { core: LOAD_CORE });
  const url = `http://127.0.0.1:${upstream.first.port}/mcp`;
  const bystanders = [upstream.child.pid, load.pid, process.pid];
  const retakes = { left: cells.length * options.minPairs };
  const endMs = performance.now() + options.minutes * 60_000;
  let failures = 0;
  try {
    for (let number = 1; performance.now() < endMs && failures < MAX_FAILURES; number += 1) {
      const open = cells.filter((cell) => wantsMore(ratiosOf(cell), options));
      if (open.length === 0) return;
      console.error(`launch ${number}: ${open.length} of ${cells.length} want more pairs`);
      try {
        const targets = await launch(dists, url, load);
        try {
          await measureLaunch(targets, open, options, { bystanders, retakes, number });
        } finally {
          await targets.close();
        }
      } catch (error) {
        failures += 1;
        console.error(`launch ${number} failed: ${error.message}`);
      }
      await onLaunch(number);
    }
  } finally {
    for (const child of [load, upstream.child]) await stop(child);
  }
}

const SAYS = { result: '', dearer: 'dearer', none: 'no result' };

function printTable(rows) {
  const print = (cells) =>
    console.log(
      cells
        .map((cell, at) => (at === 0 ? cell.padEnd(28) : cell.padStart(12)))
        .join('')
        .trimEnd(),
    );
  print(['', 'ratio', 'low', 'high', 'width', 'pairs', 'disturbed', '']);
  for (const { name, median, interval, kind, pairs, disturbed } of rows)
    print([
      name,
      median.toFixed(3),
      interval?.low.toFixed(3) ?? '-',
      interval?.high.toFixed(3) ?? '-',
      interval === undefined ? '-' : `${widthOf(interval).toFixed(1)} pt`,
      String(pairs),
      String(disturbed),
      SAYS[kind],
    ]);
}

function rowOf(cell, options) {
  return {
    name: `${cell.era} ${cell.scenario.name} x${cell.connections}`,
    ...judgeRatios(ratiosOf(cell), options),
    pairs: cell.pairs.length,
    disturbed: cell.pairs.filter(isDisturbed).length,
  };
}

/** Writes what there is, also while a run goes on; resolves with the rows of the table. */
async function write(cells, options, facts) {
  const machine = {
    node: process.version,
    arch: arch(),
    cores: cpus().length,
    cpu: cpus()[0]?.model,
  };
  const rows = cells.map((cell) => rowOf(cell, options));
  const scenarios = rows.map((row, at) => ({ ...row, samples: cells[at].pairs }));
  await mkdir(here('results'), { recursive: true });
  const text = JSON.stringify({ ...facts, options, machine, scenarios }, null, 2);
  await writeFile(RESULTS, `${text}\n`);
  return rows;
}

/** Runs the comparison; resolves with the exit code. */
export async function benchAgainst(options) {
  const ownRoot = here('..');
  const otherRoot = resolve(options.dir);
  const cells = cellsOf(options);
  const names = SCENARIOS.map(({ name }) => `"${name}"`).join(', ');
  const error =
    faultOfBuild(ownRoot) ?? faultOfBuild(otherRoot) ?? (cells.length === 0 ? `--scenario knows ${names}.` : undefined);
  if (error !== undefined) {
    console.error(error);
    return 1;
  }
  const startedMs = performance.now();
  const dists = { own: OWN_DIST, other: join(otherRoot, 'dist') };
  const facts = { own: commitOf(ownRoot), other: commitOf(otherRoot), launches: 0, seconds: 0 };
  await measureAll(cells, options, dists, (launches) => {
    facts.launches = launches;
    facts.seconds = Math.round((performance.now() - startedMs) / 1000);
    return write(cells, options, facts);
  });
  const rows = await write(cells, options, facts);
  console.log(`processor time of a request, ${facts.own} / ${facts.other}: median, 95 % interval`);
  printTable(rows);
  console.log(`${facts.launches} launches of both, ${facts.seconds} s; written to ${RESULTS}`);
  for (const { name, kind, interval } of rows)
    if (kind === 'dearer')
      console.log(`${name}: dearer by ${dearerBy(interval).toFixed(1)} % (${options.maxDearer} % allowed)`);
  if (rows.some(({ kind }) => kind === 'dearer')) return 1;
  return rows.some(({ kind }) => kind === 'none') ? 2 : 0;
}
