// The load: a fixed number of connections, each with a session and request ids of its own, each sending
// its next request when the last one was answered. Bounded by time. Every answer is checked, so that a
// refusal is never measured as speed. With `perSecond` it keeps to that rate. With `keep` its connections
// stay open for the next job of that target. Driven over IPC by run.mjs and against.mjs.

import { Client } from 'undici';

const STATELESS = '2026-07-28';

function bodyOf(scenario, era, id) {
  const call = { name: scenario.tool, arguments: { text: scenario.text ?? 'report' } };
  const params = scenario.tool === undefined ? {} : call;
  if (scenario.isStream) params._meta = { progressToken: 'p' };
  if (era === '2026') {
    params._meta = {
      ...params._meta,
      'io.modelcontextprotocol/protocolVersion': STATELESS,
      'io.modelcontextprotocol/clientCapabilities': {},
    };
  }
  return JSON.stringify({ jsonrpc: '2.0', id, method: scenario.method, params });
}

function headersOf(scenario, era, session, token) {
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  };
  if (token !== undefined) headers.authorization = `Bearer ${token}`;
  if (era === '2026')
    Object.assign(
      headers,
      { 'mcp-protocol-version': STATELESS, 'mcp-method': scenario.method },
      scenario.tool === undefined ? {} : { 'mcp-name': scenario.tool },
    );
  else if (session !== undefined)
    Object.assign(headers, { 'mcp-session-id': session, 'mcp-protocol-version': '2025-11-25' });
  return headers;
}

function exchange(client, path, headers, body) {
  return new Promise((resolve, reject) => {
    let size = 0;
    let tail = '';
    let answered;
    client.dispatch(
      { path, method: 'POST', headers, body },
      {
        onRequestStart() {},
        onResponseStart(_controller, status, names) {
          answered = { status, names };
        },
        onResponseData(_controller, chunk) {
          size += chunk.length;
          tail =
            chunk.length > 400 ? chunk.subarray(-400).toString('latin1') : tail.slice(-400) + chunk.toString('latin1');
        },
        onResponseEnd() {
          resolve({ ...answered, size, tail });
        },
        onResponseError(_controller, error) {
          reject(error);
        },
      },
    );
  });
}

async function openSession(client, path, token) {
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'bench', version: '1' },
    },
  });
  const opened = await exchange(client, path, headersOf({ method: 'initialize' }, '2025', undefined, token), body);
  if (opened.status !== 200) throw new Error(`initialize was answered ${opened.status}: ${opened.tail}`);
  return opened.names['mcp-session-id'];
}

/** Some programs refuse requests before this notification, which ours and the pass-through do not need. */
async function sendInitialized(client, path, session, token) {
  const method = 'notifications/initialized';
  const headers = headersOf({ method }, '2025', session, token);
  await exchange(client, path, headers, JSON.stringify({ jsonrpc: '2.0', method }));
}

async function openConnection(job) {
  const url = new URL(job.url);
  const client = new Client(url.origin, { pipelining: 1 });
  const session = job.era === '2025' ? await openSession(client, url.pathname, job.token) : undefined;
  if (job.needsInitialized) await sendInitialized(client, url.pathname, session, job.token);
  return { client, session, path: url.pathname };
}

async function drive(job, { client, session, path }, latencies, until) {
  const headers = headersOf(job.scenario, job.era, session, job.token);
  const pauseMs = job.perSecond === undefined ? 0 : (1000 * job.connections) / job.perSecond;
  for (let id = 1; performance.now() < until; id += 1) {
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    const startedMs = performance.now();
    const answer = await exchange(client, path, headers, bodyOf(job.scenario, job.era, id));
    latencies.push(performance.now() - startedMs);
    const isRefused = answer.tail.includes('dev.sallyport/decision') || answer.tail.includes('"error"');
    if (answer.status !== 200 || answer.size < job.scenario.minBytes || isRefused) {
      throw new Error(`${job.scenario.name} was answered ${answer.status} with ${answer.size} bytes: ${answer.tail}`);
    }
  }
}

/** Connections that wait for the next job of their target, by url and era. */
const kept = new Map();

async function connectionsFor(job) {
  const key = `${job.url} ${job.era}`;
  const standing = kept.get(key) ?? [];
  const missing = Math.max(0, job.connections - standing.length);
  standing.push(...(await Promise.all(Array.from({ length: missing }, () => openConnection(job)))));
  if (job.keep) kept.set(key, standing);
  return standing.slice(0, job.connections);
}

async function destroyAll(connections) {
  await Promise.all(connections.map(({ client }) => client.destroy()));
}

process.on('message', async (job) => {
  if (job.forget) {
    await destroyAll([...kept.values()].flat());
    kept.clear();
    process.send({});
    return;
  }
  const latencies = [];
  try {
    const connections = await connectionsFor(job);
    const until = performance.now() + job.ms;
    try {
      await Promise.all(connections.map((one) => drive(job, one, latencies, until)));
    } finally {
      if (!job.keep) await destroyAll(connections);
    }
    latencies.sort((a, b) => a - b);
    const at = (share) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? Number.NaN;
    process.send({ requests: latencies.length, p50: at(0.5), p99: at(0.99) });
  } catch (error) {
    process.send({ error: String(error?.message ?? error) });
  }
});
process.on('disconnect', () => process.exit(0));
process.send?.({ ready: true });
