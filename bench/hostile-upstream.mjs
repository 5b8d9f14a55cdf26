// The hostile upstream: honest until it is told to attack (so that it can be pinned), then it answers as
// the entry of attacks.mjs says until the time is over. Counts what it did. Driven over IPC by hostile.mjs.

import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { ATTACKS } from './attacks.mjs';

const CARRIED_SESSION = '2025-11-25';
const STATELESS = '2026-07-28';
const LISTEN = 'subscriptions/listen';

const capabilities = { tools: { listChanged: true } };
const HONEST = {
  initialize: {
    protocolVersion: CARRIED_SESSION,
    capabilities,
    serverInfo: { name: 'hostile', version: '1.0.0' },
  },
  'server/discover': {
    supportedVersions: [STATELESS],
    capabilities,
    ttlMs: 0,
    cacheScope: 'private',
  },
  'tools/list': {
    tools: [
      {
        name: 'act',
        description: 'Does what it is asked for.',
        inputSchema: { type: 'object', properties: { text: { type: 'string' } } },
      },
    ],
  },
  'tools/call': { content: [{ type: 'text', text: 'Done.' }] },
};
const PART_OF = { 'tools/call': 'call', 'tools/list': 'list', [LISTEN]: 'stream' };

const counts = { calls: 0, lists: 0, streams: 0, events: 0 };
let attack;
let endMs = 0;

const isOver = () => performance.now() >= endMs;

/** What an entry answers with. */
function replyTo(response, message, isStateless) {
  const envelope = `{"jsonrpc":"2.0","id":${JSON.stringify(message?.id ?? null)},"result":`;
  const cached = message?.method === 'tools/list' ? ',"ttlMs":0,"cacheScope":"private"' : '';
  const ending = isStateless ? `,"resultType":"complete"${cached}}}` : '}}';
  let goOn = () => undefined;
  for (const event of ['drain', 'close']) response.on(event, () => goOn());
  return {
    progressToken: message?.params?._meta?.progressToken ?? 'p',
    text: message?.params?.arguments?.text,
    /** The gateway asks for no progress. */
    isOfCaller: message?.params?._meta?.progressToken !== undefined,
    isOver: () => isOver() || response.destroyed,
    pause: sleep,
    honest: () => honestly(response, message, isStateless),
    /** Says nothing until the time is over or the connection is. */
    async wait() {
      while (!isOver() && !response.destroyed) await sleep(100);
      if (!response.destroyed) honestly(response, message, isStateless);
    },
    /** A whole answer; `text` is its result without the closing brace. */
    result(text) {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write(envelope);
      response.write(text);
      response.end(ending);
    },
    /** One event; resolves when there is room for the next. */
    async event(text) {
      counts.events += 1;
      if (!response.headersSent) beginStream(response);
      if (response.write(`event: message\ndata: ${text}\n\n`)) return sleep(0);
      return new Promise((resolve) => {
        goOn = resolve;
        if (response.destroyed) resolve();
      });
    },
  };
}

function beginStream(response) {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  response.flushHeaders();
}

async function holdStream(response, message, reply) {
  counts.streams += 1;
  beginStream(response);
  if (message !== undefined) {
    const params = {
      notifications: message.params.notifications,
      _meta: { 'io.modelcontextprotocol/subscriptionId': message.id },
    };
    const method = 'notifications/subscriptions/acknowledged';
    await reply.event(JSON.stringify({ jsonrpc: '2.0', method, params }));
  }
  await attack?.stream?.(reply);
}

function honestly(response, message, isStateless) {
  const result = HONEST[message.method] ?? {};
  const more = isStateless ? { resultType: 'complete', ttlMs: 0, cacheScope: 'private' } : {};
  const session = message.method === 'initialize' ? { 'mcp-session-id': 'session-1' } : {};
  response.writeHead(200, { 'content-type': 'application/json', ...session });
  response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result: { ...result, ...more } }));
}

async function answer(request, response, body) {
  if (request.method === 'GET') return holdStream(response, undefined, replyTo(response));
  if (request.method === 'DELETE') return response.writeHead(204).end();
  const message = JSON.parse(body);
  if (message.id === undefined) return response.writeHead(202).end();
  const meta = message.params?._meta ?? {};
  const isStateless = meta['io.modelcontextprotocol/protocolVersion'] === STATELESS;
  const reply = replyTo(response, message, isStateless);
  const part = PART_OF[message.method];
  if (message.method === LISTEN) return holdStream(response, message, reply);
  const act = isOver() ? undefined : attack?.[part];
  if (act === undefined) return honestly(response, message, isStateless);
  counts[`${part}s`] += 1;
  await act(reply);
  if (!response.writableEnded) response.end();
}

const server = createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  response.on('error', () => undefined);
  request.on('end', () => {
    answer(request, response, Buffer.concat(chunks).toString()).catch(() => response.destroy());
  });
});
server.keepAliveTimeout = 120_000;

process.on('message', ({ name, ms }) => {
  if (name === undefined) return process.send({ ...counts });
  attack = ATTACKS.find((one) => one.name === name);
  endMs = performance.now() + ms;
  for (const key of Object.keys(counts)) counts[key] = 0;
  return process.send({ isArmed: true });
});
server.listen(0, '127.0.0.1', () => process.send?.({ port: server.address().port }));
process.on('disconnect', () => process.exit(0));
