// The upstream of the bench: node:http and prepared strings, so that what is measured is the proxy.
// Speaks just enough of both eras to be listed, pinned and called. It checks nothing.

import { createServer } from 'node:http';

const CARRIED_SESSION = '2025-11-25';
const STATELESS = '2026-07-28';
const TOOL_COUNT = 50;
/** Between two events that come apart. */
const PAUSE_MS = 1;
/** `2025` or `2026`: the one era that it speaks; both where not given. With `streams` GET is served. */
const [, , ...WANTED] = process.argv;
const ONLY = WANTED.find((word) => word !== 'streams');
const HAS_STREAMS = WANTED.includes('streams');

const sentence = 'Finds the entries that match the given words and returns them with their owners and dates. ';

/** A definition of about 720 bytes, so that fifty of them are a list of 36 KB. */
function tool(name, index) {
  return {
    name,
    title: `Tool number ${index}`,
    description: sentence.repeat(4),
    inputSchema: {
      type: 'object',
      properties: {
        text: { type: 'string', description: 'The words to look for, as the user wrote them.' },
        limit: {
          type: 'integer',
          minimum: 1,
          maximum: 100,
          description: 'How many entries to return at most.',
        },
      },
      required: ['text'],
      additionalProperties: false,
    },
  };
}

const NAMED = ['echo', 'page', 'stream', 'apart'];
const tools = Array.from({ length: TOOL_COUNT }, (_, index) => tool(NAMED[index] ?? `tool_${index}`, index));
const listOf = (era) =>
  JSON.stringify({
    tools,
    ...(era === '2026' ? { resultType: 'complete', ttlMs: 0, cacheScope: 'private' } : {}),
  });
const lists = { 2025: listOf('2025'), 2026: listOf('2026') };

const prose = 'The quick report says that every part arrived on time and that nobody was hurt. ';
const contentOf = (text, era) =>
  JSON.stringify({
    content: [{ type: 'text', text }],
    ...(era === '2026' ? { resultType: 'complete' } : {}),
  });
const texts = { echo: prose.repeat(12), page: prose.repeat(820) };
const results = Object.fromEntries(
  Object.entries(texts).map(([name, text]) => [name, { 2025: contentOf(text, '2025'), 2026: contentOf(text, '2026') }]),
);

const capabilities = { tools: { listChanged: true } };
const serverInfo = { name: 'bench', version: '1.0.0' };

function resultOf(message, era) {
  switch (message.method) {
    case 'initialize':
      return JSON.stringify({ protocolVersion: CARRIED_SESSION, capabilities, serverInfo });
    case 'server/discover':
      return JSON.stringify({
        resultType: 'complete',
        supportedVersions: [STATELESS],
        capabilities,
        ttlMs: 0,
        cacheScope: 'private',
      });
    case 'tools/list':
      return lists[era];
    case 'tools/call':
      return results[message.params.name]?.[era] ?? results.echo[era];
    default:
      return '{}';
  }
}

/** Ten events: nine of progress and the answer. */
function eventsOf({ id, params }, era) {
  const token = JSON.stringify(params._meta?.progressToken ?? 'p');
  const events = [];
  for (let step = 1; step < 10; step += 1) {
    events.push(
      `event: message\ndata: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${token},"progress":${step},"total":10,"message":"Step ${step} of ten is done."}}\n\n`,
    );
  }
  events.push(`event: message\ndata: {"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${results.echo[era]}}\n\n`);
  return events;
}

const STREAMS = { stream: sendAtOnce, apart: sendApart };

/** All of them in one packet, as a server that has its answer at once. */
async function sendAtOnce(response, events) {
  for (const event of events.slice(0, -1)) response.write(event);
  response.end(events.at(-1));
}

/** Each in a packet of its own, a moment after the one before, as a server that tells how far it is. */
async function sendApart(response, events) {
  for (const event of events.slice(0, -1)) {
    response.write(event);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  response.end(events.at(-1));
}

function sendStream(response, message, era) {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  return STREAMS[message.params.name](response, eventsOf(message, era));
}

/** A stream that says nothing more than it must. */
function holdStream(response, first = '') {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
  response.flushHeaders();
  if (first !== '') response.write(first);
}

function acknowledge(response, { id, params }) {
  const message = {
    jsonrpc: '2.0',
    method: 'notifications/subscriptions/acknowledged',
    params: {
      notifications: params.notifications,
      _meta: { 'io.modelcontextprotocol/subscriptionId': id },
    },
  };
  holdStream(response, `event: message\ndata: ${JSON.stringify(message)}\n\n`);
}

/** Held to one era, it knows no request of the other. */
function refuse(response, id) {
  response.writeHead(400, { 'content-type': 'application/json' });
  const error = { code: -32600, message: 'Invalid request' };
  response.end(JSON.stringify({ jsonrpc: '2.0', id, error }));
}

let sessions = 0;
function nextSession() {
  sessions += 1;
  return sessions;
}

const server = createServer((request, response) => {
  if (request.method === 'GET') return HAS_STREAMS ? holdStream(response) : void response.writeHead(405).end();
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    if (request.method === 'DELETE') return void response.writeHead(204).end();
    const message = JSON.parse(Buffer.concat(chunks).toString());
    if (message.id === undefined) return void response.writeHead(202).end();
    const era = message.params?._meta?.['io.modelcontextprotocol/protocolVersion'] === STATELESS ? '2026' : '2025';
    if (ONLY !== undefined && era !== ONLY) return refuse(response, message.id);
    if (message.method === 'subscriptions/listen') return acknowledge(response, message);
    if (message.method === 'tools/call' && message.params.name in STREAMS)
      return void sendStream(response, message, era);
    const body = `{"jsonrpc":"2.0","id":${JSON.stringify(message.id)},"result":${resultOf(message, era)}}`;
    const session = message.method === 'initialize' ? { 'mcp-session-id': `session-${nextSession()}` } : {};
    response.writeHead(200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...session,
    });
    response.end(body);
  });
});
server.keepAliveTimeout = 120_000;
server.listen(0, '127.0.0.1', () => process.send?.({ port: server.address().port }));
process.on('disconnect', () => process.exit(0));
