// The other caller: calls at a fixed rate, whether or not the calls before were answered, so that a gateway
// that stands still is seen by every call that falls into that time. Driven over IPC by hostile.mjs.

import { Agent } from 'undici';

const STATELESS = '2026-07-28';
const EVERY_MS = 10;
/** A call that takes longer has failed. */
const TIMEOUT_MS = 5_000;
const BODY = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: {
    name: 'echo',
    arguments: { text: 'report' },
    _meta: {
      'io.modelcontextprotocol/protocolVersion': STATELESS,
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
});

/** `undefined` where the call was answered as it must be, else what was wrong. */
async function call(agent, { url, token }, signal) {
  const { origin, pathname: path } = new URL(url);
  const { statusCode, body } = await agent.request({
    origin,
    path,
    method: 'POST',
    signal,
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': STATELESS,
      'mcp-method': 'tools/call',
      'mcp-name': 'echo',
    },
    body: BODY,
  });
  const text = await body.text();
  const isGood = statusCode === 200 && text.includes('"result"') && text.includes('report says');
  return isGood ? undefined : `${statusCode} ${text.slice(0, 200)}`;
}

/** The same, given up in time. */
async function callInTime(agent, job) {
  const controller = new AbortController();
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(() => {
      resolve(`no answer within ${TIMEOUT_MS} ms`);
      controller.abort();
    }, TIMEOUT_MS);
  });
  const error = await Promise.race([call(agent, job, controller.signal).catch(String), late]);
  clearTimeout(timer);
  return error;
}

process.on('message', async (job) => {
  const agent = new Agent({ connections: 256, pipelining: 1 });
  const latencies = [];
  const errors = [];
  const running = [];
  const startedMs = performance.now();
  for (let count = 0; performance.now() - startedMs < job.ms; count += 1) {
    const sentMs = performance.now();
    running.push(
      callInTime(agent, job).then((error) => {
        latencies.push(performance.now() - sentMs);
        if (error !== undefined) errors.push(error);
      }),
    );
    const dueMs = startedMs + (count + 1) * EVERY_MS;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueMs - performance.now())));
  }
  await Promise.all(running);
  await agent.destroy();
  latencies.sort((a, b) => a - b);
  const at = (share) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))];
  process.send({ p50: at(0.5), p99: at(0.99), errors: errors.length, firstError: errors[0] });
});
process.on('disconnect', () => process.exit(0));
process.send?.({ ready: true });
