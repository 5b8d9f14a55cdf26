// The caller of the hostile upstream: does what the entry of attacks.mjs says, again and again, until its
// time is over; then it drops every connection. What it is answered is nobody's concern. Driven over IPC.

import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent } from 'undici';
import { ATTACKS } from './attacks.mjs';

const STATELESS = '2026-07-28';
const SESSION = '2025-11-25';
const _meta = {
  progressToken: 'p',
  'io.modelcontextprotocol/protocolVersion': STATELESS,
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** What an attack may do, until `signal` ends it. */
function callerOf({ url, token }, agent, signal) {
  const { origin, pathname: path } = new URL(url);
  let id = 0;

  /** Sends one request; resolves with its headers once all of the answer was read. */
  async function send(method, headers, message) {
    const answer = await agent.request({
      origin,
      path,
      method,
      signal,
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'application/json, text/event-stream',
        ...(message === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      body: message === undefined ? null : JSON.stringify({ jsonrpc: '2.0', ...message }),
    });
    for await (const _chunk of answer.body);
    return answer.headers;
  }

  function ask(method, params) {
    id += 1;
    const headers = { 'mcp-protocol-version': STATELESS, 'mcp-method': method };
    if (params.name !== undefined) headers['mcp-name'] = params.name;
    return send('POST', headers, { id, method, params: { ...params, _meta } });
  }

  /** A session of its own and its GET stream. */
  async function holdGet() {
    const params = {
      protocolVersion: SESSION,
      capabilities: {},
      clientInfo: { name: 'attacker', version: '1' },
    };
    const opened = await send('POST', {}, { id: 0, method: 'initialize', params });
    const session = { 'mcp-session-id': opened['mcp-session-id'], 'mcp-protocol-version': SESSION };
    await send('GET', session);
  }

  return {
    /** So many calls at the same time; resolves when all were answered. */
    callAtOnce: (count) =>
      Promise.allSettled(
        Array.from({ length: count }, () =>
          ask('tools/call', { name: 'act', arguments: { text: 'go' } }),
        ),
      ),
    /** So many streams of either era; resolves when all have ended. */
    holdStreams: (count) =>
      Promise.allSettled(
        Array.from({ length: count }, () => [
          holdGet(),
          ask('subscriptions/listen', { notifications: { toolsListChanged: true } }),
        ]).flat(),
      ),
  };
}

/** Between two rounds: where all is refused, it is the upstream that attacks, no flood of calls. */
const PAUSE_MS = 250;

process.on('message', async ({ name, url, token, ms }) => {
  const agent = new Agent({ connections: 256, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
  const { attack } = ATTACKS.find((one) => one.name === name);
  const controller = new AbortController();
  const { signal } = controller;
  setTimeout(() => controller.abort(), ms);
  setMaxListeners(0, signal);
  const caller = callerOf({ url, token }, agent, signal);
  while (!signal.aborted) {
    await attack(caller);
    await sleep(PAUSE_MS);
  }
  await agent.destroy();
  process.send({});
});
process.on('disconnect', () => process.exit(0));
process.send?.({ ready: true });
