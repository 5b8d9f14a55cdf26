// Counts the files and functions of dist/ that run for one plain tools/call, once everything is warm: a gateway
// as the bench starts it, a hundred calls, and then the calls during which V8 counts what runs. Run as a program,
// it does so without a session and in one, prints the files of features that such a call touches, and exits 1 if
// there are any.

import { fileURLToPath } from 'node:url';
import { startGatewayForBench } from '../bench/gateway.mjs';
import { start, stop } from '../bench/process.mjs';

const WARM_CALLS = 100;
const COUNTED_CALLS = 20;
const STATELESS = '2026-07-28';
const IN_SESSIONS = '2025-11-25';

/** Loaded into the gateway: starts counting at the first SIGUSR2, and reports to its parent at the second. */
const COUNTER = `
import { Session } from 'node:inspector';
import { isMainThread } from 'node:worker_threads';
if (isMainThread) {
  const session = new Session();
  session.connect();
  let isCounting = false;
  process.on('SIGUSR2', () => {
    if (isCounting) {
      session.post('Profiler.takePreciseCoverage', (_error, { result }) =>
        process.send(result.filter(({ url }) => url.includes('/dist/'))));
      return;
    }
    isCounting = true;
    session.post('Profiler.enable');
    session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false }, () =>
      process.send('counting'));
  });
}`;

const nextMessage = (child) => new Promise((resolve) => child.once('message', resolve));

async function post({ url, token }, headers, method, params) {
  const response = await fetch(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  const text = await response.text();
  if (!text.includes('"result"')) throw new Error(`${method} failed: ${text.slice(0, 200)}`);
  return response;
}

const CALL = { name: 'echo', arguments: { text: 'report' } };

/** Resolves with a function that sends one call. */
async function openStateless(gateway) {
  const headers = {
    'mcp-protocol-version': STATELESS,
    'mcp-method': 'tools/call',
    'mcp-name': CALL.name,
  };
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': STATELESS,
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  return () => post(gateway, headers, 'tools/call', { ...CALL, _meta });
}

/** The same in a session. */
async function openSession(gateway) {
  const clientInfo = { name: 'warm-call', version: '1' };
  const params = { protocolVersion: IN_SESSIONS, capabilities: {}, clientInfo };
  const opened = await post(gateway, {}, 'initialize', params);
  const headers = {
    'mcp-protocol-version': IN_SESSIONS,
    'mcp-session-id': opened.headers.get('mcp-session-id'),
  };
  return () => post(gateway, headers, 'tools/call', CALL);
}

/** What only messages run that use a feature: all of its files but the table that says so. */
const FEATURE_FILE = /\/dist\/proxy\/((?:features|legacy-sse|aggregate)\/.*)\.js$/;
const FEATURE_TABLE = 'features/table';

/** Resolves with how many functions run for a warm call, in how many files, and with the files of features. */
export async function countWarmCall(open = openStateless) {
  const upstream = await start(fileURLToPath(new URL('../bench/upstream.mjs', import.meta.url)), [], {});
  const hook = ['--import', `data:text/javascript,${encodeURIComponent(COUNTER)}`];
  const upstreamUrl = `http://127.0.0.1:${upstream.first.port}/mcp`;
  const gateway = await startGatewayForBench(upstreamUrl, undefined, hook);
  try {
    const call = await open(gateway);
    for (let count = 0; count < WARM_CALLS; count += 1) await call();
    const counting = nextMessage(gateway.child);
    gateway.child.kill('SIGUSR2');
    await counting;
    for (let count = 0; count < COUNTED_CALLS; count += 1) await call();
    const taken = nextMessage(gateway.child);
    gateway.child.kill('SIGUSR2');
    const scripts = (await taken)
      .map(({ url, functions }) => ({ url, run: functions.filter(isRun) }))
      .filter(({ run }) => run.length > 0);
    const touched = scripts.map(({ url }) => FEATURE_FILE.exec(url)?.[1]);
    return {
      files: scripts.length,
      functions: scripts.flatMap(({ run }) => run).length,
      features: touched.filter((file) => file !== undefined && file !== FEATURE_TABLE),
    };
  } finally {
    await gateway.close();
    await stop(upstream.child);
  }
}

/** What runs in fewer than half of the calls belongs to timers and other requests. */
function isRun({ functionName, ranges }) {
  return functionName !== '' && ranges[0].count * 2 >= COUNTED_CALLS;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const [name, open] of [
    ['without a session', openStateless],
    ['in a session', openSession],
  ]) {
    const { files, functions, features } = await countWarmCall(open);
    console.log(`a warm tools/call ${name}: ${functions} functions in ${files} files`);
    console.log(`of features ${name}: ${features.length === 0 ? 'none' : features.join(', ')}`);
    if (features.length > 0) process.exitCode = 1;
  }
}
