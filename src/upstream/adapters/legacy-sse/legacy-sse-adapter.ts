// Makes a legacy SSE upstream usable as a session-era one: one SSE stream per session, messages posted to the
// message endpoint that the stream named, and the messages on the stream returned as responses and streams of
// the later transport. Takes the place of the upstream's client, behind every control, and makes no decisions.
// The sessions are in a bounded table. Each begins with its stream and the handshake on it, and ends with either; one
// that is idle too long is ended. The handshake uses the version of legacy SSE, whatever the client requests. A session
// is never shared between principals.
// Source: MCP 2024-11-05, lifecycle and transports (HTTP with SSE); MCP 2025-11-25, transports and session management;
// JSON-RPC 2.0; docs/reference/state.md; docs/reference/protocol.md#serving-all-eras.

import { randomUUID } from 'node:crypto';
import type { AuthorizedRequest } from '../../../policy/obligations.js';
import { type Caller, ownerKey, withoutToken } from '../../../policy/principal.js';
import { applyEdits, changeMembers, MAX_JSON_DEPTH, readJsonText, spanOf } from '../../../protocol/json/json.js';
import { renderJson } from '../../../protocol/json/request-ids.js';
import { isObject, isRequestId, type Json, type JsonObject, type RequestId } from '../../../protocol/jsonrpc.js';
import { progressTokenOf } from '../../../protocol/params.js';
import { INVALID_REQUEST } from '../../../protocol/responses.js';
import {
  amendResponse,
  type DisconnectSignal,
  type ForwardOutcome,
  type UpstreamResponse,
} from '../../../protocol/transport.js';
import { LEGACY_SSE_VERSION } from '../../../protocol/versions/revisions.js';
import {
  type GatewayRequest,
  type SessionRef,
  type SessionUpstream,
  type UpstreamClient,
  upstreamIdOf,
} from '../../client.js';
import type { CallerOrGateway } from '../../credentials/credentials.js';
import { bodyResponse, type MessageReader, streamResponse } from '../../response-messages.js';
import { errorResponseText } from '../message-translation.js';
import {
  type BufferBudget,
  type BufferReader,
  createLegacySseSession,
  createOwnerBufferBudget,
  type LegacySseSession,
  type MessageBuffer,
  type SendError,
} from './legacy-sse-session.js';

const FIRST_REFUSAL = 300;

const NOT_SENT: { readonly [why in SendError]: string } = {
  'id-in-use': 'A request with this id is already pending in this session.',
  'too-many': 'Too many requests are pending in this session.',
};

type LegacySseAdapterSettings = {
  readonly client: UpstreamClient;
  readonly maxResponseBytes: number;
  readonly requestTimeoutMs: number;
  readonly handshakeTimeoutMs: number;
  readonly messageReader?: MessageReader | undefined;
  /** How long a response may be silent, and a session idle. */
  readonly streamIdleMs: number;
  readonly now: () => number;
};

/** Presents a legacy SSE upstream as one with sessions. Opens nothing before the first of them. */
export function createLegacySseUpstreamClient(settings: LegacySseAdapterSettings): SessionUpstream {
  const { client } = settings;
  const connections = createLegacySseConnections(settings);

  /** Sends a caller's message within a session, or as the handshake that opens one. */
  function send(
    authorized: AuthorizedRequest,
    from: MessageToSend & { readonly caller: Caller },
  ): Promise<ForwardOutcome> {
    const post: Post = (target, body, within) =>
      client.forwardAs(authorized, from.caller, { headers: [], body, target }, within, false);
    return sendTo(connections, { ...from, post });
  }

  return {
    forward(authorized, caller, signal) {
      const { admitted, principal } = authorized;
      return send(authorized, {
        caller,
        session: admitted.session === undefined ? undefined : upstreamIdOf(admitted.session),
        text: applyEdits(admitted.text, admitted.edits),
        owner: ownerKey(principal),
        signal,
      });
    },
    forwardAs(authorized, caller, { headers, body }, signal) {
      const session = headers.find(([name]) => name === 'mcp-session-id')?.[1];
      const text = typeof body === 'string' ? body : new TextDecoder().decode(body);
      return send(authorized, {
        caller,
        session,
        text,
        owner: undefined,
        signal,
      });
    },
    subscribe: () => Promise.resolve(bodyResponse(405)),
    openStream(ref, _by, signal) {
      const session = connections.find(upstreamIdOf(ref));
      return Promise.resolve(session === undefined ? bodyResponse(404) : streamOf(session.read(), signal));
    },
    endSession(ref: SessionRef) {
      const id = upstreamIdOf(ref);
      const isKnown = connections.find(id) !== undefined;
      connections.remove(id ?? '');
      return Promise.resolve(bodyResponse(isKnown ? 200 : 404));
    },
    request: (gatewayRequest) => sendGatewayRequest(settings, connections, gatewayRequest),
    close() {
      connections.close();
      return Promise.resolve();
    },
  };
}

/** A message to send, and for whom. */
type MessageToSend = {
  readonly caller: CallerOrGateway;
  readonly session: string | undefined;
  readonly text: string;
  readonly owner: string | undefined;
  readonly signal: DisconnectSignal | undefined;
};

async function sendTo(
  connections: LegacySseConnections,
  sending: MessageToSend & { readonly post: Post },
): Promise<ForwardOutcome> {
  const { caller, text, owner, post } = sending;
  const sent = readSentMessage(text);
  if (sent.method === 'initialize' && sent.id !== undefined)
    return connections.open({ ...sent, id: sent.id, caller, text, owner, post });
  const session = connections.find(sending.session);
  if (session === undefined) return bodyResponse(404);
  if (sent.id !== undefined) return sendRequest(session, { ...sending, sent, id: sent.id });
  return sendWithoutResponse(session, sending, sent);
}

/** Sends a notification, or the response to a server request. */
async function sendWithoutResponse(
  session: LegacySseSession,
  { text, signal, post }: MessageToSend & { readonly post: Post },
  { method, params }: SentMessage,
): Promise<ForwardOutcome> {
  const posted = await post(session.messageEndpoint, text, signal);
  const id = params['requestId'];
  if (method === 'notifications/cancelled' && isRequestId(id)) session.cancel(id);
  if (posted.kind === 'error' || posted.status >= FIRST_REFUSAL) return posted;
  posted.release();
  return bodyResponse(202);
}

type LegacySseRequest = MessageToSend & {
  readonly post: Post;
  readonly sent: SentMessage;
  readonly id: RequestId;
};

/** Sends a request; its response is a stream, which ends with its reader. */
async function sendRequest(session: LegacySseSession, sending: LegacySseRequest): Promise<ForwardOutcome> {
  const { signal } = sending;
  const started = await startRequest(session, sending);
  if ('kind' in started) return started;
  const { messageBuffer, reading } = started;
  return streamOf(reading, signal, () => session.drop(messageBuffer));
}

type StartedRequest = { readonly messageBuffer: MessageBuffer; readonly reading: BufferReader };

async function startRequest(
  session: LegacySseSession,
  sending: LegacySseRequest,
): Promise<StartedRequest | ForwardOutcome> {
  const { sent, id, text, signal, post } = sending;
  const messageBuffer = session.registerRequest({ id, token: progressTokenOf(sent) });
  if (typeof messageBuffer === 'string')
    return bodyResponse(200, errorResponseText(id, NOT_SENT[messageBuffer], INVALID_REQUEST));
  const posted = await post(session.messageEndpoint, text, signal);
  if (posted.kind === 'error' || posted.status >= FIRST_REFUSAL) {
    session.drop(messageBuffer);
    return posted;
  }
  posted.release();
  return { messageBuffer, reading: messageBuffer.read() };
}

/** A reading as an event stream. `onEnd` is called when its reader needs nothing more. */
function streamOf(
  { items, leave }: BufferReader,
  signal: DisconnectSignal | undefined,
  onEnd: () => void = () => undefined,
): ForwardOutcome {
  const end = (): void => {
    signal?.removeEventListener('abort', end);
    leave();
    onEnd();
  };
  signal?.addEventListener('abort', end, { once: true });
  if (signal?.aborted === true) end();
  return streamResponse(items, { release: end, abort: end });
}

/**
 * A request of the gateway's own: a handshake, a notification, a response, or a request whose response is
 * returned as one body.
 */
async function sendGatewayRequest(
  { client }: LegacySseAdapterSettings,
  connections: LegacySseConnections,
  { caller, method, headers, body = '', timeoutMs }: GatewayRequest,
): Promise<ForwardOutcome> {
  const { 'mcp-session-id': id, 'mcp-protocol-version': _, ...shown } = headers;
  if (method === 'DELETE') {
    connections.remove(id ?? '');
    return bodyResponse(200);
  }
  const post: Post = (target, text) =>
    client.request({ caller, method, target, headers: shown, body: text, timeoutMs });
  const sent = readSentMessage(body);
  const session = connections.find(id);
  const signal = AbortSignal.timeout(timeoutMs);
  const sending = {
    caller,
    session: id,
    text: body,
    owner: undefined,
    signal,
    post,
  };
  if (sent.id === undefined || sent.method === 'initialize' || session === undefined)
    return sendTo(connections, sending);
  const started = await startRequest(session, { ...sending, sent, id: sent.id });
  if ('kind' in started) return started;
  const response = await awaitResponse(started.reading, timeoutMs);
  session.drop(started.messageBuffer);
  return response.kind === 'error' ? response : bodyResponse(200, response.text);
}

/** What a session that is being opened holds. */
type SessionSlot = {
  /** Shared by all sessions of the caller, open or being opened. */
  readonly budget: BufferBudget;
  /** Gives the slot back, whether or not a session was entered. */
  release(): void;
};

/** The open sessions, by the id that the gateway gave them. */
export type LegacySseSessionTable = {
  /**
   * Takes a slot for a session that is being opened. `undefined` if the limit of all sessions, or of this caller's, is
   * reached. Without an owner it is a session of the gateway's own, each for a different principal, which its opener
   * bounds.
   */
  acquire(owner: string | undefined): SessionSlot | undefined;
  add(id: string, session: LegacySseSession): void;
  find(id: string | undefined): LegacySseSession | undefined;
  remove(id: string): void;
  close(): void;
};

/** Sessions of one upstream in total, and of one caller there. */
export const MAX_LEGACY_SSE_SESSIONS = 1_000;
export const MAX_LEGACY_SSE_SESSIONS_PER_CALLER = 64;
const SWEEPS_PER_IDLE_TIME = 2;

/**
 * Creates an empty table. `maxIdleMs`: how long a session may be idle before it is ended. `createBudget` is called for a
 * caller's first session.
 */
export function createLegacySseSessionTable(
  maxIdleMs: number,
  createBudget: () => BufferBudget,
): LegacySseSessionTable {
  const open = new Map<string, LegacySseSession>();
  /** Sessions that are being opened. */
  const opening = new Set<Pick<LegacySseSession, 'owner' | 'budget'>>();
  const sweeping = setInterval(sweep, Math.max(maxIdleMs / SWEEPS_PER_IDLE_TIME, 1));
  sweeping.unref();

  function sweep(): void {
    for (const [id, session] of open) if (!session.isUsed(maxIdleMs)) end(id, session);
  }

  function end(id: string, session: LegacySseSession): void {
    open.delete(id);
    session.close();
  }

  /** Ends an idle session of a caller at its limit before a new one is refused. */
  function evictIdleOfOwner(owner: string): boolean {
    const ownedSessions = [...open].filter(([, session]) => session.owner === owner);
    const coming = [...opening].filter((one) => one.owner === owner);
    if (ownedSessions.length + coming.length < MAX_LEGACY_SSE_SESSIONS_PER_CALLER) return true;
    const idle = ownedSessions.find(([, session]) => session.isIdle);
    if (idle !== undefined) end(...idle);
    return idle !== undefined;
  }

  /** A session of the gateway's own has only one caller, and so a budget to itself. */
  function budgetOf(owner: string | undefined): BufferBudget {
    const all = owner === undefined ? [] : [...opening, ...open.values()];
    return all.find((one) => one.owner === owner)?.budget ?? createBudget();
  }

  return {
    acquire(owner) {
      if (owner !== undefined && !evictIdleOfOwner(owner)) return undefined;
      if (open.size + opening.size >= MAX_LEGACY_SSE_SESSIONS) return undefined;
      const slot = { owner, budget: budgetOf(owner) };
      opening.add(slot);
      return { budget: slot.budget, release: () => void opening.delete(slot) };
    },
    add: (id, session) => void open.set(id, session),
    find: (id) => (id === undefined ? undefined : open.get(id)),
    remove(id) {
      const session = open.get(id);
      if (session !== undefined) end(id, session);
    },
    close() {
      clearInterval(sweeping);
      for (const [id, session] of open) end(id, session);
    },
  };
}

/** The parts of a sent message that legacy SSE needs. */
type SentMessage = {
  readonly method: string | undefined;
  /** Absent if the message gets no response. */
  readonly id: RequestId | undefined;
  readonly params: JsonObject;
};

/** Caps for parsing handshake responses; a server's self-description needs no more. */
const HANDSHAKE_CAPS = { maxDepth: MAX_JSON_DEPTH, maxValues: 10_000 };

/** Reads a message that was admitted or built by the gateway. */
function readSentMessage(text: string): SentMessage {
  const reading = readJsonText(text);
  const value = reading.ok && isObject(reading.value) ? reading.value : {};
  const { method, id, params } = value as { readonly [name: string]: Json | undefined };
  const isRequest = typeof method === 'string' && isRequestId(id);
  return {
    method: typeof method === 'string' ? method : undefined,
    id: isRequest ? id : undefined,
    params: isObject(params) ? params : {},
  };
}

/** Sets the version of legacy SSE in an `initialize` request. */
function requestLegacySseVersion(text: string): string {
  return spanOf(text, ['params']) === undefined
    ? text
    : changeMembers(text, { path: ['params'], set: { protocolVersion: LEGACY_SSE_VERSION } });
}

/** Sets the requested version in a handshake response whose server speaks legacy SSE's version. */
function withVersion(text: string, requestedVersion: Json | undefined): string {
  const reading = readJsonText(text, HANDSHAKE_CAPS);
  const result = reading.ok && isObject(reading.value) ? reading.value['result'] : undefined;
  if (!isObject(result) || result['protocolVersion'] !== LEGACY_SSE_VERSION) return text;
  return changeMembers(text, {
    path: ['result'],
    set: { protocolVersion: requestedVersion ?? null },
  });
}

/** Reads a message that is a response; `undefined` for a notification or a server request. */
function readResponse(text: string): { readonly text: string; readonly isResult: boolean } | undefined {
  const reading = readJsonText(text, HANDSHAKE_CAPS);
  if (!reading.ok || !isObject(reading.value) || 'method' in reading.value) return undefined;
  return { text, isResult: isObject(reading.value['result']) };
}

/** Posts a message to the message endpoint. */
type Post = (target: string, body: string, signal: DisconnectSignal | undefined) => Promise<ForwardOutcome>;

/** An `initialize` that opens a session. */
type Handshake = {
  readonly text: string;
  readonly id: RequestId;
  readonly params: JsonObject;
  /** The session's owner; `undefined` for a session of the gateway's own, which its opener counts. */
  readonly owner: string | undefined;
  /** On whose behalf the stream is opened and the gateway sends its own messages. */
  readonly caller: CallerOrGateway;
  readonly post: Post;
};

type LegacySseConnections = Pick<LegacySseSessionTable, 'find' | 'remove' | 'close'> & {
  /** Resolves with the handshake's response, which has a session id if a session was opened. */
  open(handshake: Handshake): Promise<ForwardOutcome>;
};

/** Maximum buffered over all sessions of one upstream. */
const MAX_HELD_BYTES = 128 * 1024 * 1024;
/** One caller may buffer the total divided by this, or two responses if that is more. */
const QUOTA_DIVISOR = 4;
/** Time limit for the gateway's own responses to the server. Milliseconds. */
const GATEWAY_RESPONSE_TIMEOUT_MS = 5_000;
/** Such responses under way on one stream; a server that asks faster gets no response. */
const MAX_GATEWAY_RESPONSES = 4;
const UNAVAILABLE = { kind: 'error', reason: 'upstream-unavailable' } as const;

/** Creates the connections to one upstream; none is open. */
function createLegacySseConnections(settings: LegacySseAdapterSettings): LegacySseConnections {
  const budget: BufferBudget = { bytesLeft: MAX_HELD_BYTES };
  const maxOwnBytes = Math.max(MAX_HELD_BYTES / QUOTA_DIVISOR, 2 * settings.maxResponseBytes);
  const table = createLegacySseSessionTable(settings.streamIdleMs, () => createOwnerBufferBudget(budget, maxOwnBytes));
  return {
    find: table.find,
    remove: table.remove,
    close: table.close,
    async open(handshake) {
      const slot = table.acquire(handshake.owner);
      if (slot === undefined) return UNAVAILABLE;
      try {
        return await openSession(table, handshake, settings, slot.budget);
      } finally {
        slot.release();
      }
    },
  };
}

async function openSession(
  table: LegacySseSessionTable,
  handshake: Handshake,
  settings: LegacySseAdapterSettings,
  budget: BufferBudget,
): Promise<ForwardOutcome> {
  const opened = await settings.client.openLegacyStream(handshake.caller, new AbortController().signal);
  if (opened.kind === 'error') return opened;
  const id = randomUUID();
  const { messageEndpoint, response: upstreamResponse } = opened;
  const session = createLegacySseSession({
    messageEndpoint,
    response: upstreamResponse,
    owner: handshake.owner,
    bounds: settings,
    idleMs: settings.streamIdleMs,
    budget,
    now: settings.now,
    sendMessage: createMessageSender(settings, handshake.caller, messageEndpoint),
    onEnd: () => table.remove(id),
  });
  const response = await performHandshake(session, handshake, settings.handshakeTimeoutMs);
  const isOpened = response.kind === 'response' && response.headers['mcp-session-id'] !== undefined;
  // If the stream ended with its handshake, no request would ever get a response.
  if (!isOpened || session.isOver) {
    session.close();
    return isOpened ? UNAVAILABLE : response;
  }
  table.add(id, session);
  return { ...response, headers: { ...response.headers, 'mcp-session-id': id } };
}

/** Performs the handshake. A success has an empty session id, which the caller replaces. */
async function performHandshake(
  session: LegacySseSession,
  { text, id, params, post }: Handshake,
  withinMs: number,
): Promise<ForwardOutcome> {
  const messageBuffer = session.registerRequest({ id, token: undefined });
  if (typeof messageBuffer === 'string') return UNAVAILABLE;
  const posted = await post(session.messageEndpoint, requestLegacySseVersion(text), AbortSignal.timeout(withinMs));
  if (posted.kind === 'error') return posted;
  // A session id here opens nothing.
  if (posted.status >= FIRST_REFUSAL)
    return amendResponse(posted, { headers: { ...posted.headers, 'mcp-session-id': undefined } });
  posted.release();
  const awaitedResponse = await awaitResponse(messageBuffer.read(), withinMs);
  session.drop(messageBuffer);
  if (awaitedResponse.kind === 'error') return awaitedResponse;
  const response = bodyResponse(200, withVersion(awaitedResponse.text, params['protocolVersion']));
  const headers = awaitedResponse.isResult ? { ...response.headers, 'mcp-session-id': '' } : response.headers;
  return { ...response, headers };
}

type AwaitedResponse =
  | { readonly kind: 'text'; readonly text: string; readonly isResult: boolean }
  | Exclude<ForwardOutcome, UpstreamResponse>;

/** Waits for the response itself, skipping the messages before it. */
async function awaitResponse(reading: BufferReader, withinMs: number): Promise<AwaitedResponse> {
  const timer = setTimeout(reading.leave, withinMs);
  try {
    for await (const outbound of reading.items) {
      if (outbound.kind === 'error') return outbound;
      const response = outbound.kind === 'message' ? readResponse(outbound.text) : undefined;
      if (response !== undefined) return { kind: 'text', ...response };
    }
    return { kind: 'error', reason: 'upstream-timeout' };
  } finally {
    clearTimeout(timer);
    reading.leave();
  }
}

function createMessageSender(
  { client }: LegacySseAdapterSettings,
  opener: CallerOrGateway,
  target: string,
): (message: JsonObject) => void {
  // A stream outlives the exchange that opened it: issued credentials are kept, not the caller's token.
  const caller = opener === 'gateway' ? opener : withoutToken(opener);
  const headers = { 'content-type': 'application/json' };
  let pendingCount = 0;
  return (message) => {
    if (pendingCount >= MAX_GATEWAY_RESPONSES) return;
    pendingCount += 1;
    const body = renderJson(message);
    const request = {
      caller,
      method: 'POST',
      target,
      headers,
      body,
      timeoutMs: GATEWAY_RESPONSE_TIMEOUT_MS,
    } as const;
    void client.request(request).then((outcome) => {
      pendingCount -= 1;
      if (outcome.kind === 'response') outcome.release();
    });
  };
}
