// A stdio MCP server that does what a test asks for, as a script for node, and an adapter in front of it. What a client
// sends is written header by header, since `fetch` would not send a foreign Host.

import { type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { redactForRecord } from '../../src/inspection/capture.js';
import type { ProcessEnd, ServerCommand } from '../../src/stdio/server-process.js';
import {
  onlyServer,
  type StdioServer,
  type StdioServerPorts,
  type StdioServerSettings,
  startStdioServer,
} from '../../src/stdio/stdio-server.js';
import type { Json, JsonObject } from './json.js';
import { makeSecret } from './secrets.js';

/** Answers `initialize`; any other method is a thing to do. */
const SCRIPT = `
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
const acts = {
  initialize: ({ id, params }) => send({ id, result: { protocolVersion: params.protocolVersion, capabilities: {}, serverInfo: { name: 's', version: '1' } } }),
  echo: ({ id, params }) => send({ id, result: params ?? {} }),
  raw: ({ id }) => send({ id, result: { line: Buffer.from(current).toString('base64') } }),
  env: ({ id }) => send({ id, result: { env: process.env, pid: process.pid } }),
  silence: () => process.stderr.write('silent\\n'),
  die: () => { process.stderr.write('out of order\\n'); process.exit(3); },
  garbage: ({ id }) => { process.stdout.write('Listening on stdio\\n[1]\\n{"a":1,"a":2}\\n\\n'); send({ id, result: {} }); },
  malformed: ({ id }) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result: 'text' }) + '\\n'),
  endless: () => { const part = 'x'.repeat(1 << 20); const write = () => { while (process.stdout.write(part)); process.stdout.once('drain', write); }; write(); },
  babble: () => { const write = () => { while (process.stdout.write('no message\\n')); process.stdout.once('drain', write); }; write(); },
  stderr: ({ id }) => { process.stderr.write('\\x1b[31mred ' + 'y'.repeat(5000) + '\\n' + 'line\\n'.repeat(2000)); send({ id, result: {} }); },
  write: ({ id, params }) => { process.stderr.write(params.text); setTimeout(() => send({ id, result: {} }), 50); },
  print: ({ id, params }) => { process.stdout.write(params.text); send({ id, result: {} }); },
  progress: ({ id, params }) => { send({ method: 'notifications/progress', params: { progressToken: params._meta.progressToken, progress: 1 } }); send({ id, result: {} }); },
  change: ({ id }) => { send({ method: 'notifications/tools/list_changed' }); send({ id, result: {} }); },
  ask: ({ id }) => { send({ id: 'q1', method: 'roots/list' }); replied = (reply) => send({ id, result: { reply } }); },
  'tools/list': ({ id }) => { send({ id: 'q2', method: 'roots/list' }); replied = (reply) => { answered = reply; }; send({ id, result: { tools: [] } }); },
  answered: ({ id }) => send({ id, result: { answered } }),
  flood: ({ id }) => { for (let i = 0; i < 5000; i += 1) send({ method: 'notifications/message', params: { level: 'info', data: 'z'.repeat(1000) } }); send({ id, result: {} }); },
  longId: ({ id }) => { send({ id: 'q'.repeat(5000), method: 'roots/list' }); replied = (reply) => send({ id, result: { reply } }); },
  deaf: ({ id }) => { setInterval(() => {}, 1000); process.stdin.pause(); send({ id, result: {} }); },
};
let replied = () => {};
let current = '';
let answered = null;
if (process.argv[1] === 'stubborn') process.on('SIGTERM', () => {});
if (process.argv[1] === 'stubborn') setInterval(() => {}, 1000);
if (process.argv[1] === 'refusing') acts.initialize = ({ id }) => send({ id, error: { code: -32602, message: 'No.' } });
if (process.argv[1] === 'old') acts.initialize = ({ id }) => send({ id, result: { protocolVersion: '2024-11-05', capabilities: {}, serverInfo: { name: 's', version: '1' } } });
if (process.argv[1] === 'oldest') acts.initialize = ({ id }) => send({ id, result: { protocolVersion: '2024-10-07', capabilities: {}, serverInfo: { name: 's', version: '1' } } });
if (process.argv[1] === 'marked') process.stdout.write('\\ufeff');
if (process.argv[1] === 'mute') acts.initialize = () => {};
let rest = '';
process.stdin.setEncoding('utf8').on('data', (text) => {
  const lines = (rest + text).split('\\n');
  rest = lines.pop();
  for (const line of lines) {
    const message = JSON.parse(line);
    current = line;
    if (message.method === undefined) replied(message.result ?? message.error);
    else acts[message.method]?.(message);
  }
});
`;

export const STDIO_TOKEN = makeSecret();

/** What a request sends; the headers of a good client where absent. */
export type Sent = {
  readonly method?: 'POST' | 'GET' | 'DELETE' | 'OPTIONS' | 'PUT';
  readonly path?: string;
  readonly session?: string;
  readonly body?: JsonObject | string;
  /** In place of others, or taken away where `undefined`. */
  readonly headers?: { readonly [name: string]: string | readonly string[] | undefined };
};

export type Got = {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly text: string;
  /** The messages of the body, whether it is JSON or an event stream. */
  readonly messages: readonly JsonObject[];
};

export type StdioRig = {
  readonly port: number;
  readonly log: readonly string[];
  readonly ends: readonly ProcessEnd[];
  send(sent: Sent): Promise<Got>;
  /** Opens a session; resolves with its id. */
  open(): Promise<string>;
  /** A request in a session. */
  call(session: string, method: string, params?: JsonObject, id?: string | number): Promise<Got>;
  /** A GET stream, of which more and more can be read. */
  listen(session: string): Promise<{ text(): string; close(): void }>;
  close(): Promise<void>;
};

export const signalGroup: StdioServerPorts['signalGroup'] = (group, signal) => {
  try {
    return process.kill(-group, signal);
  } catch {
    return false;
  }
};

function initialize(id = 0): JsonObject {
  const clientInfo = { name: 'test', version: '1' };
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo };
  return { jsonrpc: '2.0', id, method: 'initialize', params };
}

function messagesOf(type: string | undefined, text: string): readonly JsonObject[] {
  if (type === 'application/json') return [JSON.parse(text) as JsonObject];
  const data = [...text.matchAll(/^data: (.*)$/gm)].map(([, json]) => json ?? '');
  return data.map((json) => JSON.parse(json) as JsonObject);
}

function open(rig: { readonly port: number; readonly socketPath?: string }, sent: Sent) {
  const { method = 'POST', path = '/mcp', session, body } = sent;
  const headers: OutgoingHttpHeaders = {
    authorization: `Bearer ${STDIO_TOKEN}`,
    accept: 'application/json, text/event-stream',
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    ...(session === undefined ? {} : { 'mcp-session-id': session }),
  };
  for (const [name, value] of Object.entries(sent.headers ?? {})) {
    if (value === undefined) delete headers[name];
    else headers[name] = value as string;
  }
  const options = { host: '127.0.0.1', ...rig, method, path, headers, agent: false };
  const sending = request(options);
  sending.end(typeof body === 'object' ? JSON.stringify(body) : body);
  return new Promise<IncomingMessage>((resolve, reject) => {
    sending.on('response', resolve).on('error', reject);
  });
}

type Way = 'stubborn' | 'refusing' | 'mute' | 'old' | 'oldest' | 'marked';

/** The scripted server. */
export function scriptedCommand(way?: Way): ServerCommand {
  const env = { PATH: process.env['PATH'] ?? '' };
  return { command: process.execPath, args: ['-e', SCRIPT, way ?? 'plain'], cwd: process.cwd(), env };
}

/** Starts the scripted server behind an adapter. `way` changes how it behaves from the start. */
export async function startStdioRig(
  options: Partial<StdioServerSettings> & {
    readonly command?: ServerCommand;
    readonly way?: Way;
    readonly now?: () => number;
  } = {},
): Promise<StdioRig> {
  const { way, now, command, ...more } = options;
  const log: string[] = [];
  const ends: ProcessEnd[] = [];
  const adapter: StdioServer = await startStdioServer(
    {
      servers: onlyServer(command ?? scriptedCommand(way)),
      ...{ address: { host: '127.0.0.1', port: 0 }, token: STDIO_TOKEN, maxSessions: 4 },
      ...more,
    },
    {
      signalGroup,
      redact: redactForRecord,
      killMarked: () => Promise.resolve(),
      log: (line) => log.push(line),
      onProcessEnd: (end) => ends.push(end),
      ...(now === undefined ? {} : { now }),
    },
  );
  const port = adapter.port ?? 0;

  async function send(sent: Sent): Promise<Got> {
    const response = await open({ port }, sent);
    let text = '';
    for await (const chunk of response.setEncoding('utf8')) text += chunk;
    const { headers, statusCode: status = 0 } = response;
    return {
      status,
      headers,
      text,
      messages: text === '' ? [] : messagesOf(headers['content-type'], text),
    };
  }

  return {
    port,
    log,
    ends,
    send,
    async open() {
      const { headers } = await send({ body: initialize() });
      const session = String(headers['mcp-session-id']);
      const initialized = { jsonrpc: '2.0', method: 'notifications/initialized' };
      await send({ session, body: initialized });
      return session;
    },
    call: (session, method, params = {}, id = 1) => send({ session, body: { jsonrpc: '2.0', id, method, params } }),
    async listen(session) {
      const response = await open({ port }, { method: 'GET', session });
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('error', () => undefined);
      if (response.statusCode !== 200) {
        response.destroy();
        throw new Error(`the stream was refused: ${response.statusCode}`);
      }
      return { text: () => text, close: () => void response.destroy() };
    },
    close: () => adapter.close(),
  };
}

export const INITIALIZE: JsonObject = initialize();

/** The one message of a response. */
export function only({ messages }: Got): { readonly [member: string]: Json | undefined } {
  const [message] = messages;
  if (message === undefined || messages.length !== 1) throw new Error(`${messages.length} messages`);
  return message;
}

/** True once no process has this id. */
export async function isGone(pid: number, withinMs = 10_000): Promise<boolean> {
  for (let waitedMs = 0; waitedMs < withinMs; waitedMs += 50) {
    try {
      process.kill(pid, 0);
    } catch {
      return true;
    }
    await sleep(50);
  }
  return false;
}
