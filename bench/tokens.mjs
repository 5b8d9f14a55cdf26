// Tokens: what one that was seen before costs against one that must be verified, and what a flood of bad
// ones, at twice the rate of good calls, does to those who call with good ones. Gates nothing.

import { createHmac } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createAuthenticator } from '../dist/auth/authenticator.js';
import { createKeySource } from '../dist/auth/issuer.js';
import { startIssuer } from '../dist/dev/issuer.js';
import { createGuardedFetch } from '../dist/upstream/safe-fetch.js';
import { startGatewayForBench } from './gateway.mjs';
import { start, stop } from './process.mjs';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const RESOURCE = 'http://127.0.0.1/mcp';
const FRESH_TOKENS = 2_000;
const HITS = 200_000;
const ROUNDS = 5;
const LOAD_MS = 4_000;
const GOOD_A_SECOND = 400;
const BAD_PER_GOOD = 2;

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

async function benchCache() {
  const issuer = await startIssuer({ users: [{ name: 'bench', groups: [], scopes: [] }] });
  const guarded = createGuardedFetch();
  const settings = {
    name: 'local',
    issuer: issuer.issuer,
    network: 'loopback',
    algorithms: ['ES256'],
    tokenType: 'at+jwt',
    maxLifetimeMs: 86_400_000,
    claims: { client: ['client_id'], scope: ['scope'], groups: ['groups'] },
  };
  const source = createKeySource(settings, { fetchJson: guarded.fetchJson, now: Date.now });
  const { authenticate } = createAuthenticator({
    issuers: new Map([['local', settings]]),
    keySources: new Map([['local', source]]),
    now: Date.now,
    tokenIds: (bytes) => [createHmac('sha256', 'bench').update(bytes).digest('base64url')],
    introspectors: new Map(),
    verifyProof: () => Promise.reject(new Error('no proof is asked for here')),
  });
  const acceptance = { issuers: ['local'], audiences: {}, resource: RESOURCE };
  const ask = (token) =>
    authenticate({ headers: { authorization: `Bearer ${token}` }, repeated: NONE, query: '' }, acceptance);
  const mint = (subject) => issuer.mint({ resource: RESOURCE, subject, scopes: [], groups: [] });
  try {
    const first = await ask(await mint('bench'));
    if ('reason' in first) throw new Error(`a good token was refused: ${first.reason}`);
    const misses = [];
    const hits = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const tokens = [];
      for (let at = 0; at < FRESH_TOKENS; at += 1) tokens.push(await mint(`${round}-${at}`));
      misses.push(await microsEach(tokens.length, async (at) => ask(tokens[at])));
      const [known] = tokens;
      await ask(known);
      const before = process.cpuUsage();
      for (let at = 0; at < HITS; at += 1) ask(known);
      hits.push(microsOf(process.cpuUsage(before)) / HITS);
    }
    const [miss, hit] = [median(misses), median(hits)];
    console.log(
      `token: verified ${miss.toFixed(1)} µs of processor time, seen before ${hit.toFixed(2)} µs: ${(miss / hit).toFixed(0)}x`,
    );
  } finally {
    await guarded.close();
    await issuer.close();
  }
}

const NONE = new Set();
const microsOf = ({ user, system }) => user + system;

async function microsEach(count, run) {
  const before = process.cpuUsage();
  for (let at = 0; at < count; at += 1) await run(at);
  return microsOf(process.cpuUsage(before)) / count;
}

const SCENARIO = { name: '1 KB call', method: 'tools/call', tool: 'echo', minBytes: 900 };

function ask(load, job) {
  return new Promise((resolve, reject) => {
    load.once('message', (answer) => (answer.error === undefined ? resolve(answer) : reject(new Error(answer.error))));
    load.send(job);
  });
}

async function benchFlood() {
  const upstream = await start(here('upstream.mjs'), [], {});
  const gateway = await startGatewayForBench(`http://127.0.0.1:${upstream.first.port}/mcp`);
  const { child: load } = await start(here('load.mjs'), [], {});
  const { child: flood } = await start(here('flood.mjs'), [], {});
  const job = { url: gateway.url, token: gateway.token, era: '2026', scenario: SCENARIO };
  const calls = { ...job, connections: 8, ms: LOAD_MS, perSecond: GOOD_A_SECOND };
  const bad = { ...job, ms: LOAD_MS + 1_000, perSecond: GOOD_A_SECOND * BAD_PER_GOOD };
  try {
    await ask(load, { ...calls, ms: 2_000 });
    const samples = { quiet: [], flooded: [] };
    for (let round = 0; round < ROUNDS; round += 1) {
      samples.quiet.push(await ask(load, calls));
      const flooded = ask(flood, bad);
      await sleep(500);
      samples.flooded.push(await ask(load, calls));
      const { refused, others } = await flooded;
      if (others > 0) throw new Error(`${others} bad tokens were not answered 401 (${refused} were)`);
    }
    for (const [name, of] of Object.entries(samples)) {
      const [p50, p99] = ['p50', 'p99'].map((key) => median(of.map((one) => one[key])));
      console.log(`good calls, ${name}: p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms`);
    }
  } finally {
    await gateway.close();
    for (const child of [load, flood, upstream.child]) await stop(child);
  }
}

/** Prints both; `npm run bench -- --tokens`. */
export async function benchTokens() {
  await benchCache();
  await benchFlood();
}
