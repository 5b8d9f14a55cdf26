// Makes a legacy SSE upstream usable as a session-era one: one SSE stream per session, messages posted to the
// message endpoint that the stream named, and the messages on the stream returned as responses and streams of
// the later transport. Takes the place of the upstream's client, behind every control, and makes no
// decisions.
// Source: MCP 2024-11-05, transports, HTTP with SSE; MCP 2025-11-25, transports;
// docs/reference/protocol.md §2.

import type { AuthorizedRequest } from '../../../policy/obligations.js';
import { type Caller, ownerKey } from '../../../policy/principal.js';
import { applyEdits } from '../../../protocol/json/json.js';
import { isJsonRpcId, type RequestId } from '../../../protocol/jsonrpc.js';
import { progressTokenOf } from '../../../protocol/params.js';
import { INVALID_REQUEST } from '../../../protocol/responses.js';
import type { DisconnectSignal, ForwardOutcome } from '../../../protocol/transport.js';
import {
  type GatewayRequest,
  type SessionRef,
  type SessionUpstream,
  upstreamIdOf,
} from '../../client.js';
import type { CallerOrGateway } from '../../credentials/presenter.js';
import { bodyResponse, streamResponse } from '../local-response.js';
import { errorResponseText } from '../message-translation.js';
import {
  awaitResponse,
  createLegacySseConnections,
  type LegacySseAdapterSettings,
  type LegacySseConnections,
  type Post,
  readSentMessage,
  type SentMessage,
} from './connections.js';
import type { BufferReader, EventBuffer, LegacySseSession, SendError } from './session.js';

/** From this version on a stream begins with an event id after which it can be resumed. */
const FIRST_PRIMED_VERSION = '2025-11-25';
const FIRST_REFUSAL = 300;

const NOT_SENT: { readonly [why in SendError]: string } = {
  'id-in-use': 'A request with this id is already pending in this session.',
  'too-many': 'Too many requests are pending in this session.',
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
        version: admitted.version,
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
        version: undefined,
      });
    },
    subscribe: () => Promise.resolve(bodyResponse(405)),
    openStream(ref, _by, signal, lastEventId) {
      const session = connections.find(upstreamIdOf(ref));
      if (session === undefined) return Promise.resolve(bodyResponse(404));
      const reading = session.read(lastEventId, ref.version >= FIRST_PRIMED_VERSION);
      // The event is no longer buffered, so this stream cannot be resumed; the session remains open.
      return Promise.resolve(reading === undefined ? bodyResponse(400) : streamOf(reading, signal));
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

/** A message to send, and for whom. `version`: of the client, if the response may be resumed. */
type MessageToSend = {
  readonly caller: CallerOrGateway;
  readonly session: string | undefined;
  readonly text: string;
  readonly owner: string | undefined;
  readonly signal: DisconnectSignal | undefined;
  readonly version: string | undefined;
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
  if (posted.kind === 'error') return posted;
  posted.release();
  const id = params['requestId'];
  if (method === 'notifications/cancelled' && isJsonRpcId(id)) session.cancel(id);
  return bodyResponse(posted.status < FIRST_REFUSAL ? 202 : posted.status);
}

type LegacySseRequest = MessageToSend & {
  readonly post: Post;
  readonly sent: SentMessage;
  readonly id: RequestId;
};

/** Sends a request; its response is a stream that a client can leave and resume. */
async function sendRequest(
  session: LegacySseSession,
  sending: LegacySseRequest,
): Promise<ForwardOutcome> {
  const { signal, version } = sending;
  const started = await startRequest(session, sending);
  if ('kind' in started) return started;
  const { eventBuffer, reading } = started;
  const drop = (): void => session.drop(eventBuffer);
  // Aborted rather than merely disconnected: no client will resume it.
  signal?.addEventListener('abort', drop, { once: true });
  return streamOf(reading, signal, () => {
    signal?.removeEventListener('abort', drop);
    // A client whose connection has just broken may not have received it yet.
    if (version === undefined) drop();
    else session.keepDelivered(eventBuffer);
  });
}

type StartedRequest = { readonly eventBuffer: EventBuffer; readonly reading: BufferReader };

async function startRequest(
  session: LegacySseSession,
  sending: LegacySseRequest,
): Promise<StartedRequest | ForwardOutcome> {
  const { sent, id, text, signal, version, post } = sending;
  const eventBuffer = session.registerRequest({ id, token: progressTokenOf(sent) });
  if (typeof eventBuffer === 'string')
    return bodyResponse(200, errorResponseText(id, NOT_SENT[eventBuffer], INVALID_REQUEST));
  const posted = await post(session.messageEndpoint, text, signal);
  if (posted.kind === 'response') posted.release();
  if (posted.kind === 'error' || posted.status >= FIRST_REFUSAL) {
    session.drop(eventBuffer);
    return posted.kind === 'error' ? posted : bodyResponse(posted.status);
  }
  const isPrimed = version !== undefined && version >= FIRST_PRIMED_VERSION;
  const reading = eventBuffer.read(0, { isPrimed });
  return reading === undefined
    ? { kind: 'error', reason: 'upstream-protocol' }
    : { eventBuffer, reading };
}

/** A reading as an event stream. `onDone` is called when its reader needs nothing more. */
function streamOf(
  { items, leave }: BufferReader,
  signal: DisconnectSignal | undefined,
  onDone: () => void = () => undefined,
): ForwardOutcome {
  signal?.addEventListener('abort', leave, { once: true });
  if (signal?.aborted === true) leave();
  const end = (): void => {
    signal?.removeEventListener('abort', leave);
    leave();
  };
  return streamResponse(items, {
    release() {
      end();
      onDone();
    },
    abort: end,
  });
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
    version: undefined,
    post,
  };
  if (sent.id === undefined || sent.method === 'initialize' || session === undefined)
    return sendTo(connections, sending);
  const started = await startRequest(session, { ...sending, sent, id: sent.id });
  if ('kind' in started) return started;
  const response = await awaitResponse(started.reading, timeoutMs);
  session.drop(started.eventBuffer);
  return response.kind === 'error' ? response : bodyResponse(200, response.text);
}
