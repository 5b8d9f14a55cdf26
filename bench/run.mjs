// npm run bench [-- --quick] [-- --pairs] [-- --peer PROGRAM] [-- --seconds N --rounds N]
//               [-- --connections 1,4,8,16,32 --scenario NAME ...]
//               [-- --idle-streams] [-- --tokens]
// npm run bench -- --against DIR [...]: two builds compared, see against.mjs.
// npm run bench -- --hostile [...]: what one upstream may do to the callers of another, see hostile.mjs.
//
// One run on loopback: the gateway with every control armed, against the same upstream reached directly
// and through our own bare pass-through. Samples are interleaved, those with foreign load are taken
// again, medians and ranges are printed, JSON is written. It gates nothing: microseconds belong to this
// machine, and ratios differ between machines too. With --pairs also the gateway before upstreams of the
// other era alone, with --peer another gateway in the era that it speaks.

import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { arch, cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { benchAgainst } from './against.mjs';
import { startGatewayForBench } from './gateway.mjs';
import { benchHostile } from './hostile.mjs';
import { benchIdleStreams } from './idle-streams.mjs';
import { readOptions } from './options.mjs';
import { startPeer } from './peer.mjs';
import { residentMib, start, stop } from './process.mjs';
import { ask, ERAS, LOAD_CORE, MOST_CONNECTIONS, PROXY_CORE, SCENARIOS, sample } from './samples.mjs';
import { benchTokens } from './tokens.mjs';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

function summarize(samples) {
  const of = (key) => samples.map((one) => one[key]).filter((value) => value !== undefined);
  const cpu = of('cpuMicros');
  return {
    cpuMicros: cpu.length === 0 ? undefined : { median: median(cpu), min: Math.min(...cpu), max: Math.max(...cpu) },
    perSecond: median(of('perSecond')),
    p50Ms: median(of('p50')),
    p99Ms: median(of('p99')),
    samples: samples.length,
    disturbed: samples.filter((one) => one.isDisturbed).length,
  };
}

function printRow(cells) {
  console.log(cells.map((cell, index) => (index === 0 ? String(cell).padEnd(34) : String(cell).padStart(13))).join(''));
}

const micros = (summary) => (summary.cpuMicros === undefined ? '-' : summary.cpuMicros.median.toFixed(1));

async function main(options) {
  const { quick, pairs, peer: peerProgram, seconds, rounds } = options;
  const wanted = SCENARIOS.filter(({ name }) => options.scenarios.length === 0 || options.scenarios.includes(name));
  const upstream = await start(here('upstream.mjs'), [], { core: LOAD_CORE });
  const upstreamUrl = `http://127.0.0.1:${upstream.first.port}/mcp`;
  const plain = await start(here('pass-through.mjs'), [upstreamUrl], { core: PROXY_CORE });
  const gateway = await startGatewayForBench(upstreamUrl, PROXY_CORE);
  const others = pairs ? await startPairs() : [];
  const peer = peerProgram && (await startPeer(peerProgram, upstreamUrl, PROXY_CORE));
  const { child: load } = await start(here('load.mjs'), [], { core: LOAD_CORE });
  const targets = [
    { name: 'direct', url: upstreamUrl, load },
    {
      name: 'pass-through',
      url: `http://127.0.0.1:${plain.first.port}/mcp`,
      pid: plain.child.pid,
      load,
    },
    { name: 'gateway', url: gateway.url, token: gateway.token, pid: gateway.child.pid, load },
  ];
  const bystanders = [
    upstream.child.pid,
    load.pid,
    process.pid,
    plain.child.pid,
    gateway.child.pid,
    ...others.flatMap((one) => [one.upstream.pid, one.gateway.child.pid]),
    ...(peer ? [peer.pid] : []),
  ];
  const results = [];
  try {
    const translated = others.map(({ speaks, gateway: { url, token, child } }) => ({
      name: 'translated',
      era: speaks === '2025' ? '2026' : '2025',
      url,
      token,
      pid: child.pid,
      load,
    }));
    // What is compared stands in the same rounds: targets, and eras.
    const compared = ERAS.flatMap((era) => targets.map((target) => ({ ...target, era })));
    const peers = peer ? [{ name: 'peer', era: '2025', ...peer, load }] : [];
    const all = [...compared, ...translated, ...peers];
    await warmUp(all, quick ? 100 : 1_000);
    for (const connections of options.connections) {
      for (const scenario of wanted)
        results.push(...(await measure({ connections, scenario, seconds, rounds }, all, bystanders)));
    }
    report(results);
    reportEras(results);
    await write(results, { seconds, rounds, gatewayMib: residentMib(gateway.child.pid) });
  } finally {
    for (const child of [load, plain.child, upstream.child]) await stop(child);
    await gateway.close();
    await peer?.close();
    for (const other of others) {
      await other.gateway.close();
      await stop(other.upstream);
    }
  }
}

/** Upstreams of one era each, and a gateway before each of them. */
async function startPairs() {
  const started = [];
  for (const speaks of ['2025', '2026']) {
    const { child, first } = await start(here('upstream.mjs'), [speaks], { core: LOAD_CORE });
    const url = `http://127.0.0.1:${first.port}/mcp`;
    const gateway = await startGatewayForBench(url, PROXY_CORE);
    started.push({ speaks, upstream: child, gateway });
  }
  return started;
}

/** Nobody is measured while code is still being compiled for what is asked. */
async function warmUp(targets, ms) {
  for (const scenario of SCENARIOS)
    for (const target of targets) {
      const { load, url, token, era, needsInitialized } = target;
      await ask(load, {
        ...{ url, token, era, ms, needsInitialized, connections: MOST_CONNECTIONS },
        scenario: scenarioFor(target, scenario),
      });
    }
}

/** The scenario as a target names its tool, and as it answers where it relays no events. */
function scenarioFor({ toolPrefix = '', minStreamBytes }, scenario) {
  const { tool, minBytes, isStream } = scenario;
  if (tool === undefined) return scenario;
  return {
    ...scenario,
    tool: `${toolPrefix}${tool}`,
    minBytes: isStream ? (minStreamBytes ?? minBytes) : minBytes,
  };
}

async function measure({ connections, scenario, seconds, rounds }, targets, bystanders) {
  const samples = new Map(targets.map((target) => [target, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const target of targets) {
      const { era } = target;
      const others = bystanders.filter((pid) => pid !== target.pid);
      const job = { era, connections, ms: seconds * 1000, scenario: scenarioFor(target, scenario) };
      samples.get(target).push(await sample(target, job, others));
    }
  }
  return targets.map((target) => ({
    era: target.era,
    connections,
    scenario: scenario.name,
    target: target.name,
    ...summarize(samples.get(target)),
  }));
}

function report(results) {
  printRow(['', 'direct', 'pass-through', 'gateway', 'gateway/pass']);
  const groups = Map.groupBy?.(results, groupOf) ?? groupBy(results);
  for (const [name, rows] of groups) {
    const [direct, plain, secured] = ['direct', 'pass-through', 'gateway'].map((target) =>
      rows.find((row) => row.target === target),
    );
    const ratio = (a, b) => (a === undefined || b === undefined ? '-' : `${(a / b).toFixed(2)}x`);
    printRow([
      `${name}: cpu µs/request`,
      '-',
      micros(plain),
      micros(secured),
      ratio(secured.cpuMicros?.median, plain.cpuMicros?.median),
    ]);
    printRow([
      '  requests a second',
      ...[direct, plain, secured].map((row) => row.perSecond.toFixed(0)),
      ratio(secured.perSecond, plain.perSecond),
    ]);
    printRow([
      '  p50 / p99 ms',
      ...[direct, plain, secured].map((row) => `${row.p50Ms.toFixed(2)}/${row.p99Ms.toFixed(2)}`),
      `${ratio(secured.p50Ms, plain.p50Ms)}/${ratio(secured.p99Ms, plain.p99Ms)}`,
    ]);
    const translated = rows.find((row) => row.target === 'translated');
    if (translated !== undefined)
      printRow([
        '  translated: cpu, against gateway',
        '-',
        '-',
        micros(translated),
        ratio(translated.cpuMicros?.median, secured.cpuMicros?.median),
      ]);
    const peer = rows.find((row) => row.target === 'peer');
    if (peer !== undefined) {
      const latency = `${peer.p50Ms.toFixed(2)}/${peer.p99Ms.toFixed(2)}`;
      const against = (key) => ratio(secured[key], peer[key]);
      printRow([
        '  peer: cpu, gateway against it',
        '-',
        '-',
        micros(peer),
        ratio(secured.cpuMicros?.median, peer.cpuMicros?.median),
      ]);
      printRow(['  peer: requests a second', '-', '-', peer.perSecond.toFixed(0), against('perSecond')]);
      printRow(['  peer: p50 / p99 ms', '-', '-', latency, `${against('p50Ms')}/${against('p99Ms')}`]);
    }
  }
}

/** What sessions cost against the stateless era, in the same rounds. */
function reportEras(results) {
  console.log('');
  for (const stateless of results.filter((row) => row.target === 'gateway' && row.era === '2026')) {
    const { scenario, connections } = stateless;
    const session = results.find(
      (row) =>
        row.target === 'gateway' && row.era === '2025' && row.scenario === scenario && row.connections === connections,
    );
    const ratio = session.cpuMicros?.median / stateless.cpuMicros?.median;
    console.log(`sessions against stateless, ${scenario} x${connections}: ${ratio.toFixed(2)}x`);
  }
}

const groupOf = (row) => `${row.era} ${row.scenario} x${row.connections}`;

function groupBy(rows) {
  const groups = new Map();
  for (const row of rows) groups.set(groupOf(row), [...(groups.get(groupOf(row)) ?? []), row]);
  return groups;
}

async function write(results, settings) {
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  const machine = {
    node: process.version,
    arch: arch(),
    cores: cpus().length,
    cpu: cpus()[0]?.model,
  };
  await mkdir(here('results'), { recursive: true });
  const file = here('results/latest.json');
  await writeFile(file, `${JSON.stringify({ commit, machine, settings, results }, null, 2)}\n`);
  console.log(
    `\ncommit ${commit}, Node ${machine.node}, ${machine.cores} x ${machine.cpu}; ${settings.rounds} rounds of ${settings.seconds} s; gateway ${settings.gatewayMib.toFixed(0)} MiB resident`,
  );
  console.log(`written to ${file}`);
}

const read = readOptions(process.argv.slice(2));
if (read.kind === 'fault') {
  console.error(read.sentence);
  process.exitCode = 1;
} else if (read.kind === 'idle-streams') await benchIdleStreams();
else if (read.kind === 'tokens') await benchTokens();
else if (read.kind === 'hostile') process.exitCode = await benchHostile(read);
else if (read.kind === 'against') process.exitCode = await benchAgainst(read);
else await main(read);
