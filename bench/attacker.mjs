// The caller of the hostile upstream: does what the entry of attacks.mjs says, again and again, until its
// time is over; then it drops every connection, and tells how it was answered. A second one is the `beside` of the
// entry. Driven over IPC.

import { randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent } from 'undici';
import { ATTACKS } from './attacks.mjs';

const STATELESS = '2026-07-28';
const SESSION = '2025-11-25';
const NOTIFICATIONS = { toolsListChanged: true };
const _meta = {
  progressToken: 'p',
  'io.modelcontextprotocol/protocolVersion': STATELESS,
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** A token like a good one, which nobody signed: another one each time, so that none is known. */
function badToken(token, count) {
  const [header, payload] = token.split('.');
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString());
  const other = Buffer.from(JSON.stringify({ ...claims, jti: `bad-${count}` })).toString('base64url');
  return `${header}.${other}.${randomBytes(64).toString('base64url')}`;
}

/** What an attack may do, until `signal` ends it. `counts` are told afterwards. */
function callerOf({ url, tokens, endpoint }, agent, { signal, counts }) {
  const { origin, pathname: path } = new URL(url);
  const [own] = tokens;
  let id = 0;

  /** Sends one request; resolves with its status, headers and text once all of the answer was read. */
  async function send(method, headers, body, to = { path, token: own }) {
    const answer = await agent.request({
      ...{ origin, method, signal, path: to.path, body: body ?? null },
      headers: {
        authorization: `Bearer ${to.token}`,
        accept: 'application/json, text/event-stream',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
    });
    if (to.opened !== undefined) to.opened();
    const text = await answer.body.text();
    counts.answered += 1;
    if (answer.statusCode >= 400) counts.refused += 1;
    return { status: answer.statusCode, headers: answer.headers, text };
  }

  /** `argumentsText` is JSON. */
  function ask(method, params, to, argumentsText) {
    id += 1;
    const headers = { 'mcp-protocol-version': STATELESS, 'mcp-method': method };
    if (params.name !== undefined) headers['mcp-name'] = params.name;
    const message = JSON.stringify({ jsonrpc: '2.0', id, method, params: { ...params, _meta } });
    const body =
      argumentsText === undefined
        ? message
        : message.replace('"params":{', () => `"params":{"arguments":${argumentsText},`);
    return send('POST', headers, body, to);
  }

  /** A session of its own and its GET stream. */
  async function holdGet() {
    const params = {
      protocolVersion: SESSION,
      capabilities: {},
      clientInfo: { name: 'attacker', version: '1' },
    };
    const message = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
    const { headers: opened } = await send('POST', {}, message);
    const session = { 'mcp-session-id': opened['mcp-session-id'], 'mcp-protocol-version': SESSION };
    await send('GET', session);
  }

  const listen = (to) => ask('subscriptions/listen', { notifications: NOTIFICATIONS }, to);
  const many = (count, one) => Promise.allSettled(Array.from({ length: count }, (_, at) => one(at)));

  return {
    /** So many calls at the same time; resolves when all were answered. */
    callAtOnce: (count, argumentsText = '{"text":"go"}') =>
      many(count, () => ask('tools/call', { name: 'act' }, undefined, argumentsText)),
    /** One call; what is wrong with its answer counts as an error. */
    async call(text) {
      const answer = await ask('tools/call', { name: 'act', arguments: { text } });
      counts.calls += 1;
      if (answer.status === 200 && answer.text.includes('Done.')) return;
      counts.errors += 1;
      counts.firstError ??= `${answer.status} ${answer.text.slice(0, 200)}`;
    },
    /** Pages of the list of tools, after a while and then again and again: so many at the same time. */
    followPages: (count, afterMs) =>
      many(count, async () => {
        await sleep(afterMs);
        while (!signal.aborted) {
          id += 1;
          await ask('tools/list', { cursor: String(id) });
        }
      }),
    /** So many lists of the endpoint at the same time. */
    listEndpoint: (count) => many(count, () => ask('tools/list', {}, endpoint)),
    /** As many requests as so many connections bring, each with another bad token. */
    floodWithBadTokens: (count) =>
      many(count, async () => {
        while (!signal.aborted) {
          id += 1;
          await ask('tools/list', {}, { path, token: badToken(own, id) });
        }
      }),
    /** So many streams of either era; resolves when all have ended. */
    holdStreams: (count) => many(count, () => Promise.allSettled([holdGet(), listen()])),
    /** So many streams on which nothing comes, a few of each caller, opened one after the other by each. */
    holdIdle: (count) =>
      many(tokens.length, async (at) => {
        const held = [];
        for (let stream = 0; stream < count / tokens.length; stream += 1)
          await new Promise((opened) => {
            held.push(listen({ path, token: tokens[at], opened }).then(opened, opened));
          });
        await Promise.allSettled(held);
      }),
  };
}

/** Between two rounds: where all is refused, it is the upstream that attacks, no flood of calls. */
const PAUSE_MS = 250;

process.on('message', async ({ name, part, url, tokens, endpoint, ms }) => {
  const agent = new Agent({ connections: 4096, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });
  const act = ATTACKS.find((one) => one.name === name)[part];
  const controller = new AbortController();
  const { signal } = controller;
  setTimeout(() => controller.abort(), ms);
  setMaxListeners(0, signal);
  const counts = { answered: 0, refused: 0, calls: 0, errors: 0 };
  const caller = callerOf({ url, tokens, endpoint }, agent, { signal, counts });
  while (!signal.aborted) {
    // What is cut off by the end of the time is no error.
    await act(caller).catch(() => undefined);
    await sleep(PAUSE_MS);
  }
  await agent.destroy();
  process.send(counts);
});
process.on('disconnect', () => process.exit(0));
process.send?.({ ready: true });
