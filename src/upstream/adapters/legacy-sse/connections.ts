// Opens legacy SSE streams to one upstream and the sessions over them, and keeps a bounded table of them. A
// session begins with its stream and the handshake on it, and ends with either; sessions that rest too long
// are ended. The handshake uses the version of legacy SSE, whatever the client requests. A session is never
// shared between principals.
// Source: MCP 2024-11-05, lifecycle and transports (HTTP with SSE); MCP 2025-11-25, session management;
// JSON-RPC 2.0; docs/contract.md §10.

import { randomUUID } from 'node:crypto';
import { withoutToken } from '../../../policy/principal.js';
import {
  changeMembers,
  MAX_JSON_DEPTH,
  readJsonText,
  spanOf,
} from '../../../protocol/json/json.js';
import type { Json } from '../../../protocol/jsonrpc.js';
import {
  isJsonRpcId,
  isObject,
  type JsonObject,
  type RequestId,
} from '../../../protocol/jsonrpc.js';
import type {
  DisconnectSignal,
  ForwardOutcome,
  UpstreamResponse,
} from '../../../protocol/transport.js';
import { LEGACY_SSE_VERSION } from '../../../protocol/versions/revisions.js';
import type { UpstreamClient } from '../../client.js';
import type { CallerOrGateway } from '../../credentials/presenter.js';
import type { MessageReader } from '../../message-reader.js';
import { bodyResponse } from '../local-response.js';
import {
  type BufferBudget,
  type BufferReader,
  createLegacySseSession,
  createOwnerBufferBudget,
  type LegacySseSession,
  type OwnerBufferBudget,
} from './session.js';

/** What a session that is being opened holds. */
type SessionSlot = {
  /** Shared by all sessions of the caller, open or being opened. */
  readonly budget: OwnerBufferBudget;
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
  restMs: number,
  createBudget: () => OwnerBufferBudget,
): LegacySseSessionTable {
  const open = new Map<string, LegacySseSession>();
  /** Sessions that are being opened. */
  const opening = new Set<Pick<LegacySseSession, 'owner' | 'budget'>>();
  const sweeping = setInterval(sweep, Math.max(restMs / SWEEPS_PER_IDLE_TIME, 1));
  sweeping.unref();

  function sweep(): void {
    for (const [id, session] of open) if (!session.isUsed(restMs)) end(id, session);
  }

  function end(id: string, session: LegacySseSession): void {
    open.delete(id);
    session.close();
  }

  /** Ends a resting session of a caller at its limit before a new one is refused. */
  function evictIdleOfOwner(owner: string): boolean {
    const ownedSessions = [...open].filter(([, session]) => session.owner === owner);
    const coming = [...opening].filter((one) => one.owner === owner);
    if (ownedSessions.length + coming.length < MAX_LEGACY_SSE_SESSIONS_PER_CALLER) return true;
    const resting = ownedSessions.find(([, session]) => session.isIdle);
    if (resting !== undefined) end(...resting);
    return resting !== undefined;
  }

  /** A session of the gateway's own has only one caller, and so a budget to itself. */
  function budgetOf(owner: string | undefined): OwnerBufferBudget {
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
export type SentMessage = {
  readonly method: string | undefined;
  /** Absent if the message gets no response. */
  readonly id: RequestId | undefined;
  readonly params: JsonObject;
};

/** Caps for parsing handshake responses; a server's self-description needs no more. */
const HANDSHAKE_CAPS = { maxDepth: MAX_JSON_DEPTH, maxValues: 10_000 };

/** Reads a message that was admitted or built by the gateway. */
export function readSentMessage(text: string): SentMessage {
  const reading = readJsonText(text);
  const value = reading.ok && isObject(reading.value) ? reading.value : {};
  const { method, id, params } = value as { readonly [name: string]: Json | undefined };
  const isRequest = typeof method === 'string' && isJsonRpcId(id);
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
function readResponse(
  text: string,
): { readonly text: string; readonly isResult: boolean } | undefined {
  const reading = readJsonText(text, HANDSHAKE_CAPS);
  if (!reading.ok || !isObject(reading.value) || 'method' in reading.value) return undefined;
  return { text, isResult: isObject(reading.value['result']) };
}

export type LegacySseAdapterSettings = {
  readonly client: UpstreamClient;
  readonly maxResponseBytes: number;
  readonly requestTimeoutMs: number;
  readonly messageReader?: MessageReader | undefined;
  /** The longest silence of a response, and the longest rest of a session. */
  readonly streamIdleMs: number;
  readonly now: () => number;
};

/** Posts a message to the message endpoint. */
export type Post = (
  target: string,
  body: string,
  signal: DisconnectSignal | undefined,
) => Promise<ForwardOutcome>;

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

export type LegacySseConnections = Pick<LegacySseSessionTable, 'find' | 'remove' | 'close'> & {
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
const FIRST_REFUSAL = 300;
const UNAVAILABLE = { kind: 'error', reason: 'upstream-unavailable' } as const;

/** Creates the connections to one upstream; none is open. */
export function createLegacySseConnections(
  settings: LegacySseAdapterSettings,
): LegacySseConnections {
  const budget: BufferBudget = { bytesLeft: MAX_HELD_BYTES };
  const maxOwnBytes = Math.max(MAX_HELD_BYTES / QUOTA_DIVISOR, 2 * settings.maxResponseBytes);
  const table = createLegacySseSessionTable(settings.streamIdleMs, () =>
    createOwnerBufferBudget(budget, maxOwnBytes),
  );
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
  budget: OwnerBufferBudget,
): Promise<ForwardOutcome> {
  const opened = await settings.client.openLegacyStream(
    handshake.caller,
    new AbortController().signal,
  );
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
  const response = await performHandshake(session, handshake, settings.requestTimeoutMs);
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
  const eventBuffer = session.registerRequest({ id, token: undefined });
  if (typeof eventBuffer === 'string') return UNAVAILABLE;
  const posted = await post(
    session.messageEndpoint,
    requestLegacySseVersion(text),
    AbortSignal.timeout(withinMs),
  );
  if (posted.kind === 'error') return posted;
  posted.release();
  if (posted.status >= FIRST_REFUSAL) return bodyResponse(posted.status);
  const reading = eventBuffer.read(0, { isPrimed: false });
  const awaitedResponse =
    reading === undefined ? UNAVAILABLE : await awaitResponse(reading, withinMs);
  session.drop(eventBuffer);
  if (awaitedResponse.kind === 'error') return awaitedResponse;
  const response = bodyResponse(200, withVersion(awaitedResponse.text, params['protocolVersion']));
  const headers = awaitedResponse.isResult
    ? { ...response.headers, 'mcp-session-id': '' }
    : response.headers;
  return { ...response, headers };
}

type AwaitedResponse =
  | { readonly kind: 'text'; readonly text: string; readonly isResult: boolean }
  | Exclude<ForwardOutcome, UpstreamResponse>;

/** Waits for the response itself, skipping the messages before it. */
export async function awaitResponse(
  reading: BufferReader,
  withinMs: number,
): Promise<AwaitedResponse> {
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
    const body = JSON.stringify(message);
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
