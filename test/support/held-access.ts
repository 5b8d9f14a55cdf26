// What a caller can hold at the gateway beyond one request, one of each kind: responses that are streamed or
// resumed, streams of sessions, subscriptions, legacy SSE streams, and the same at an aggregate. Each is held by a
// subject of its own, so that its audit events are found by name.

import { expect, vi } from 'vitest';
import { ENDPOINT, type MergedRig } from './deployments.js';
import type { AuditLine, RunningGateway } from './gateway.js';
import { onMethod, stream } from './hostile-acts.js';
import { type Act, type HostileRequest, type Order, paramsOf } from './hostile-upstream.js';
import type { JsonObject } from './json.js';
import { openRawSession, sendRaw } from './raw-mcp.js';
import { PATIENT } from './timing.js';
import { type Access, bearer, type Listening, listenOn, statelessParts } from './wire-client.js';

/** What begins is waited for in hooks too, where `expect.poll` is not to be had. */
const WAITING = { ...PATIENT, interval: 5 } as const;
const LISTEN = 'subscriptions/listen';
const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
/** The argument of a call whose response breaks off and is resumed. */
const RESUMED = 'resumed';
const PRIMING = 'id: event-0\nretry: 250\ndata: \n\n';
const PROGRESS = {
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken: 1, progress: 1, message: 'working' },
};

export const EVERY_KIND = [
  'stateless response',
  'session response',
  'session stream',
  'resumed response',
  'subscription',
  'legacy SSE stream',
  'response on a legacy SSE stream',
  'aggregate response',
  'aggregate session stream',
  'aggregate subscription',
] as const;

export type Kind = (typeof EVERY_KIND)[number];

/** Something that was allowed and is still held. */
export type Held = {
  readonly kind: Kind;
  readonly subject: string;
  readonly token: string;
  /** The session that it belongs to, as its client knows it. */
  readonly session: string | undefined;
  readonly listening: Listening;
};

function acknowledge(request: HostileRequest): Act {
  const params = {
    notifications: paramsOf(request)['notifications'] ?? {},
    _meta: { [SUBSCRIPTION_ID]: request.id ?? null },
  };
  return stream([{ jsonrpc: '2.0', method: ACKNOWLEDGED, params }], 'hold');
}

function begin(request: HostileRequest): Act {
  const args = paramsOf(request)['arguments'] as JsonObject | undefined;
  return args?.['id'] === RESUMED
    ? { kind: 'chunks', contentType: 'text/event-stream', chunks: [PRIMING], ending: 'end' }
    : stream([PROGRESS], 'hold');
}

/** An upstream that begins every response and stream, and ends none. */
export const HOLD_ALL: Order = (request) =>
  onMethod('tools/call', begin)(request) ??
  onMethod(LISTEN, acknowledge)(request) ??
  (request.httpMethod === 'GET' ? stream([PROGRESS], 'hold') : undefined);

function callOf(name: string, id = 'one'): JsonObject {
  return { name, arguments: { id }, _meta: { progressToken: 1 } };
}

function postStateless({ url, token }: Access, method: string, params: JsonObject) {
  const { headers, body } = statelessParts(method, params);
  return sendRaw(url, body, { headers: { ...headers, ...bearer(token) } });
}

function subscribe(access: Access): Promise<Response> {
  return postStateless(access, LISTEN, { notifications: { toolsListChanged: true } });
}

type Opened = Pick<Held, 'listening' | 'session'>;

async function openInSession(
  { url, token = '' }: Access,
  ask: (headers: Readonly<Record<string, string>>) => Promise<Response>,
): Promise<Opened> {
  const session = await openRawSession(url, { token });
  return { session: session.id, listening: await listenOn(await ask(session.headers)) };
}

function respondInSession(access: Access, tool: string): Promise<Opened> {
  const body = { jsonrpc: '2.0', id: 7, method: 'tools/call', params: callOf(tool) };
  return openInSession(access, (headers) => sendRaw(access.url, body, { headers }));
}

function streamSession({ url }: Access, headers: Readonly<Record<string, string>>) {
  return fetch(url, { headers: { ...headers, accept: 'text/event-stream' } });
}

async function resume(access: Access, headers: Readonly<Record<string, string>>): Promise<Response> {
  const params = callOf('read_record', RESUMED);
  const body = { jsonrpc: '2.0', id: 7, method: 'tools/call', params };
  const broken = await (await sendRaw(access.url, body, { headers })).text();
  const id = /^id: (.*)$/m.exec(broken)?.[1] ?? '';
  return streamSession(access, { ...headers, 'last-event-id': id });
}

/** A legacy SSE stream with a session on it; `message` is posted there last. */
async function openLegacy({ url, token }: Access, message: JsonObject | undefined): Promise<Opened> {
  const listening = await listenOn(
    await fetch(`${url}/sse`, { headers: { accept: 'text/event-stream', ...bearer(token) } }),
  );
  const address = (): string | undefined => /^data: (http\S+)$/m.exec(listening.text())?.[1];
  await vi.waitFor(() => expect(address()).toBeDefined(), WAITING);
  const say = async (posted: JsonObject): Promise<void> => {
    const response = await sendRaw(address() ?? '', posted, { headers: bearer(token) });
    expect([response.status, await response.text()]).toEqual([202, '']);
  };
  const clientInfo = { name: 'held', version: '1' };
  const params = { protocolVersion: '2024-11-05', capabilities: {}, clientInfo };
  await say({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
  await vi.waitFor(() => expect(listening.text()).toContain('"protocolVersion"'), WAITING);
  await say({ jsonrpc: '2.0', method: 'notifications/initialized' });
  if (message !== undefined) await say(message);
  return { session: new URL(address() ?? '').searchParams.values().next().value, listening };
}

const LEGACY_CALL = {
  jsonrpc: '2.0',
  id: 7,
  method: 'tools/call',
  params: callOf('read_record'),
};

async function open(kind: Kind, access: Access): Promise<Opened> {
  const alone = async (response: Promise<Response>): Promise<Opened> => ({
    session: undefined,
    listening: await listenOn(await response),
  });
  switch (kind) {
    case 'stateless response':
      return alone(postStateless(access, 'tools/call', callOf('read_record')));
    case 'subscription':
    case 'aggregate subscription':
      return alone(subscribe(access));
    case 'session response':
      return respondInSession(access, 'read_record');
    case 'aggregate response':
      return respondInSession(access, 'l_read_record');
    case 'session stream':
    case 'aggregate session stream':
      return openInSession(access, (headers) => streamSession(access, headers));
    case 'resumed response':
      return openInSession(access, (headers) => resume(access, headers));
    case 'legacy SSE stream':
      return openLegacy(access, undefined);
    case 'response on a legacy SSE stream':
      return openLegacy(access, LEGACY_CALL);
  }
}

/** What shows that it was allowed: only then may a test take its ground away. */
function hasBegun(kind: Kind, { listening }: Opened): boolean {
  switch (kind) {
    case 'subscription':
    case 'aggregate subscription':
      return listening.text().includes(ACKNOWLEDGED);
    case 'legacy SSE stream':
      return true;
    // The upstream's first event has come: a stream of a session carries no progress of nobody's request.
    case 'session stream':
    case 'aggregate session stream':
      return true;
    case 'stateless response':
    case 'session response':
    case 'resumed response':
    case 'response on a legacy SSE stream':
    case 'aggregate response':
      return listening.text().includes('working');
  }
}

/** The path that it is held on. */
export function placeOf(kind: Kind): string {
  return kind.startsWith('aggregate') ? ENDPOINT : 'left';
}

/** Opens one of each of these kinds, of callers with these claims. */
export async function holdEach(
  { gateway }: MergedRig,
  kinds: readonly Kind[],
  name: string,
  claims: JsonObject = {},
): Promise<ReadonlyMap<Kind, Held>> {
  const held = kinds.map(async (kind): Promise<readonly [Kind, Held]> => {
    const place = placeOf(kind);
    const subject = `${name} ${kind}`;
    const token = await gateway.token(place, { ...claims, sub: subject });
    const opened = await open(kind, { url: gateway.url(place), token });
    await vi.waitFor(() => expect(hasBegun(kind, opened)).toBe(true), WAITING);
    return [kind, { kind, subject, token, ...opened }];
  });
  return new Map(await Promise.all(held));
}

/** What came before its ground was lost, and what every stream is told when something changes. */
const PASSING = /^notifications\/(?:progress|subscriptions\/acknowledged|(?:tools|prompts|resources)\/list_changed)$/;

/** The messages that came, but for those and the answer to a handshake. */
export function messagesOf({ listening }: Held): readonly JsonObject[] {
  return listening
    .text()
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice('data: '.length)) as JsonObject)
    .filter(({ method, id }) => id !== 0 && !PASSING.test(String(method)));
}

/** The outcomes on record of what a subject did, by method. */
export async function outcomesOf(
  gateway: RunningGateway,
  { subject }: Pick<Held, 'subject'>,
  method: string,
): Promise<readonly AuditLine[]> {
  return (await gateway.audit()).filter(
    (line) => line['type'] === 'mcp.outcome' && line['actor']?.sub === subject && line['target'].method === method,
  );
}
