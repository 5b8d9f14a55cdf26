// The ports that lead to an upstream. This is the one place that decides in which era and over which transport a
// message is sent, and whether it is translated; whether it may be sent was decided before.
// Source: MCP 2024-11-05, lifecycle; MCP 2025-11-25, lifecycle and session management; MCP 2026-07-28, versioning;
// docs/reference/protocol.md §2.

import type { AuthorizedRequest } from '../policy/authorized-request.js';
import { withAdmitted } from '../policy/authorized-request.js';
import { definitionOf } from '../policy/definitions.js';
import type { Caller } from '../policy/principal.js';
import { copyAdmitted } from '../protocol/admission.js';
import type { SessionFacts } from '../protocol/admitted-request.js';

import { INVALID_REQUEST } from '../protocol/errors.js';
import type { JsonObject } from '../protocol/jsonrpc.js';
import { upstreamEraFor } from '../protocol/negotiation.js';
import type { DisconnectSignal, ForwardOutcome, RoutedOutcome } from '../protocol/transport.js';
import {
  LATEST_SESSION_VERSION,
  LEGACY_SSE_VERSION,
  SESSION_VERSIONS,
} from '../protocol/versions/revisions.js';
import type { GatewayReply, Ports, Snapshot, StreamRequest } from '../proxy/ports.js';
import { bodyResponse } from '../upstream/adapters/local-response.js';
import { errorResponseText } from '../upstream/adapters/message-translation.js';
import { sessionHeadersOf } from '../upstream/adapters/stateless-over-session/session-pool.js';
import { messageEndpointOf } from '../upstream/client.js';
import type { UpstreamRuntime } from './upstreams.js';

const NOT_INITIALIZED = 'This session has not begun. Initialize first.';
const INITIALIZED = 'This session has begun. It is initialized once.';

type BridgedMessage = {
  readonly runtime: UpstreamRuntime;
  readonly carried: Snapshot['carried'];
  readonly authorized: AuthorizedRequest;
  readonly by: Caller;
  /** The legacy SSE session of the client. */
  readonly legacySession: SessionFacts;
  /** Aborted when the client's legacy SSE stream ends. */
  readonly signal: DisconnectSignal | undefined;
};

/** Whether the session fits the transport that its upstream has now, which a reload may have changed. */
function matchesTransport(
  { settings }: UpstreamRuntime,
  session: SessionFacts | undefined,
): boolean {
  const isBridged = session?.target.kind === 'bridged';
  return isBridged !== (settings.transport === 'http-sse');
}

type Forward = (inner: AuthorizedRequest) => Promise<RoutedOutcome>;

/**
 * Sends a message of a legacy SSE session to an upstream of another era; `forward` sends it once it belongs to a
 * session of the upstream.
 */
async function forwardBridged(
  bridgedMessage: BridgedMessage,
  forward: Forward,
): Promise<RoutedOutcome> {
  const { runtime, authorized, legacySession } = bridgedMessage;
  const { bridged } = runtime.translation;
  const { message, rule } = authorized.admitted;
  if (rule.method === 'initialize') return openBridged(bridgedMessage, forward);
  const inner = bridged.find(legacySession);
  if (inner === undefined) {
    return message.kind === 'request'
      ? bodyResponse(200, errorResponseText(message.id, NOT_INITIALIZED, INVALID_REQUEST))
      : bodyResponse(400);
  }
  const outcome = await forward(inSession(authorized, inner));
  if (rule.method === 'notifications/initialized') bridged.begin(legacySession);
  return outcome;
}

/** Opens a session at the upstream. A second handshake is refused: it would leave the first session open. */
function openBridged(
  { runtime, carried, authorized, by, legacySession, signal }: BridgedMessage,
  forward: Forward,
): RoutedOutcome | Promise<RoutedOutcome> {
  const { bridged } = runtime.translation;
  const { message } = authorized.admitted;
  if (message.kind === 'request' && bridged.hasOpened(legacySession))
    return bodyResponse(200, errorResponseText(message.id, INITIALIZED, INVALID_REQUEST));
  if (upstreamEraFor('2025', carried) !== '2026') {
    // The oldest version is the nearest to legacy SSE, so the upstream does not send what was added later.
    const [oldest = LATEST_SESSION_VERSION] = carried?.sessions ?? [];
    return bridged.open(authorized, by, oldest, signal);
  }
  const own = bridged.enter(authorized, { kind: 'gateway' }, LEGACY_SSE_VERSION);
  return own === undefined ? bodyResponse(404) : forward(inSession(authorized, own));
}

function inSession(authorized: AuthorizedRequest, session: SessionFacts): AuthorizedRequest {
  const { admitted } = authorized;
  const { version } = session;
  return withAdmitted(authorized, copyAdmitted(admitted, { era: '2025', version, session }));
}

/** Longest time for sending a reply of the gateway to a server request. */
const OWN_RESPONSE_TIMEOUT_MS = 5_000;
/** Such replies in progress at one upstream; a server that sends requests faster gets no reply to the rest. */
const MAX_OWN_RESPONSES = 4;

type ForwardingPorts = Pick<
  Ports,
  'forward' | 'openStream' | 'forwardSessionEnd' | 'replyToServer' | 'giveUp' | 'notePage'
>;

/** How messages of a session reach the upstream; `lost` where the upstream no longer speaks the era of the session. */
type Route = 'direct' | 'translated' | 'lost';

type OutboundRequest = {
  readonly authorized: AuthorizedRequest;
  readonly by: Caller;
  readonly signal: DisconnectSignal | undefined;
};

/** The session in which the gateway sends a message of its own, and on whose behalf. */
type OwnMessageContext = { readonly session: SessionFacts; readonly by: Caller };

/** A reload may have removed the upstream since the message was allowed. */
const NOT_RUNNING = { kind: 'fault', reason: 'upstream-unavailable' } as const;

export function createForwarding(
  findRuntime: (upstream: string) => UpstreamRuntime | undefined,
  snapshotOf: (runtime: UpstreamRuntime) => Snapshot,
): ForwardingPorts {
  const ownMessagesInProgress = new WeakMap<UpstreamRuntime, number>();

  function routeOf(runtime: UpstreamRuntime, session: SessionFacts): Route {
    const { carried } = snapshotOf(runtime);
    const isOwn = session.target.kind === 'gateway';
    if (carried === undefined) return isOwn ? 'translated' : 'direct';
    const isTranslated = upstreamEraFor('2025', carried) === '2026';
    if (isTranslated !== isOwn) return 'lost';
    return isOwn ? 'translated' : 'direct';
  }

  function forwardInSession(
    runtime: UpstreamRuntime,
    { authorized, by, signal }: OutboundRequest,
  ): Promise<RoutedOutcome> {
    const { session } = authorized.admitted;
    const snapshot = snapshotOf(runtime);
    const route = session === undefined ? undefined : routeOf(runtime, session);
    if (route === 'lost') return Promise.resolve(bodyResponse(404));
    const isTranslated =
      route === 'translated' || (route === undefined && needsTranslation(snapshot));
    return isTranslated
      ? runtime.translation.sessions.forward(
          authorized,
          by,
          mirroredParametersOf(snapshot, authorized),
        )
      : runtime.sessions.forward(authorized, by, signal);
  }

  function openInSession(
    runtime: UpstreamRuntime,
    { session, by, signal, lastEventId }: StreamRequest,
  ): Promise<ForwardOutcome> {
    switch (routeOf(runtime, session)) {
      case 'direct':
        return runtime.sessions.openStream(session, by, signal, lastEventId);
      case 'translated':
        return runtime.translation.sessions.openStream(session, by, signal);
      case 'lost':
        return Promise.resolve(bodyResponse(404));
    }
  }

  /** Sends a message of the gateway itself in a session, unless too many are in progress. */
  function sendToServer(
    runtime: UpstreamRuntime,
    { session, by }: OwnMessageContext,
    message: JsonObject,
  ): void {
    const inProgress = ownMessagesInProgress.get(runtime) ?? 0;
    if (inProgress >= MAX_OWN_RESPONSES) return;
    ownMessagesInProgress.set(runtime, inProgress + 1);
    void sendOwnMessage(runtime, { session, by }, JSON.stringify(message)).then(() => {
      ownMessagesInProgress.set(runtime, (ownMessagesInProgress.get(runtime) ?? 1) - 1);
    });
  }

  return {
    forward(upstream, authorized, by, signal) {
      const runtime = findRuntime(upstream);
      if (runtime === undefined) return Promise.resolve(NOT_RUNNING);
      const { era, session } = authorized.admitted;
      const outbound = { authorized, by, signal };
      if (era === '2026') return forwardStateless(runtime, snapshotOf(runtime), outbound);
      if (era === '2025') return forwardInSession(runtime, outbound);
      if (!matchesTransport(runtime, session)) return Promise.resolve(bodyResponse(404));
      if (session?.target.kind !== 'bridged') return runtime.client.forward(authorized, by, signal);
      const { carried } = snapshotOf(runtime);
      const parts = { ...outbound, runtime, carried, legacySession: session };
      return forwardBridged(parts, (inner) =>
        forwardInSession(runtime, { ...outbound, authorized: inner }),
      );
    },
    async openStream(upstream, asked) {
      const { session, signal } = asked;
      const runtime = findRuntime(upstream);
      if (runtime === undefined) return NOT_RUNNING;
      if (session.target.kind !== 'bridged') return openInSession(runtime, asked);
      const inner = await runtime.translation.bridged.begun(session, signal);
      return inner === undefined
        ? { kind: 'fault', reason: 'upstream-unavailable' }
        : openInSession(runtime, { ...asked, session: inner });
    },
    async forwardSessionEnd(upstream, session, by) {
      const runtime = findRuntime(upstream);
      if (runtime === undefined) return NOT_RUNNING;
      const { sessions, translation } = runtime;
      const isBridged = session.target.kind === 'bridged';
      const inner = isBridged ? translation.bridged.forget(session) : session;
      if (inner === undefined) return bodyResponse(200);
      if (inner.target.kind === 'gateway') return translation.sessions.endSession(inner);
      // A server that gave its session no id has no session to end.
      return isBridged && !hasUpstreamId(inner)
        ? bodyResponse(200)
        : sessions.endSession(inner, by);
    },
    replyToServer(upstream, { session, id, by }, own) {
      const runtime = findRuntime(upstream);
      const inner = runtime && upstreamSessionOf(runtime, session);
      if (runtime === undefined || inner === undefined) return;
      if (inner.target.kind !== 'gateway')
        return sendToServer(
          runtime,
          { session: inner, by },
          { jsonrpc: '2.0', id, ...responseOf(own) },
        );
      const error = own === 'pong' ? undefined : own;
      return runtime.translation.sessions.replyToServerRequest(inner, by, id, {
        kind: 'error',
        error,
      });
    },
    giveUp(upstream, { session, id, by }) {
      const runtime = findRuntime(upstream);
      const inner = runtime && upstreamSessionOf(runtime, session);
      // In the stateless era closing the connection is the cancellation.
      if (runtime === undefined || inner === undefined || inner.target.kind === 'gateway') return;
      const params = { requestId: id, reason: 'The exchange took too long.' };
      const message = { jsonrpc: '2.0', method: 'notifications/cancelled', params } as const;
      sendToServer(runtime, { session: inner, by }, message);
    },
    notePage: (upstream, page) => findRuntime(upstream)?.notePage(page),
  };
}

function hasUpstreamId({ target }: SessionFacts): boolean {
  return target.kind === 'upstream' && target.id !== undefined;
}

/** The session that the upstream knows. */
function upstreamSessionOf(
  { translation }: UpstreamRuntime,
  session: SessionFacts,
): SessionFacts | undefined {
  return session.target.kind === 'bridged' ? translation.bridged.find(session) : session;
}

function needsTranslation({ carried }: Snapshot): boolean {
  return upstreamEraFor('2025', carried) === '2026';
}

function forwardStateless(
  { client, translation, settings }: UpstreamRuntime,
  { carried }: Snapshot,
  { authorized, by, signal }: OutboundRequest,
): Promise<RoutedOutcome> {
  // No server speaks the stateless era over HTTP+SSE, whether or not it was listed.
  const isDirect = settings.transport === 'http-sse';
  if (!isDirect && (carried === undefined || upstreamEraFor('2026', carried) === '2026'))
    return client.forward(authorized, by, signal);
  const versions = carried?.sessions ?? SESSION_VERSIONS;
  return translation.stateless.forward(authorized, by, versions, signal);
}

type Mirrored = Parameters<UpstreamRuntime['translation']['sessions']['forward']>[2];

/** The parameters that the tool's schema mirrors into headers. */
function mirroredParametersOf(
  snapshot: Snapshot,
  { admitted: { target, apps } }: AuthorizedRequest,
): Mirrored {
  if (target.kind !== 'tool') return [];
  const standing = snapshot.catalogueFor({ era: '2026', apps }).standing('tool', target.name);
  return definitionOf(standing)?.mirrored ?? [];
}

/** Sends a message of the gateway itself. A legacy SSE session without a bridge has its own message endpoint. */
async function sendOwnMessage(
  { client, sessions }: UpstreamRuntime,
  { session, by }: OwnMessageContext,
  body: string,
): Promise<void> {
  const target = messageEndpointOf(session);
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...(target === undefined ? sessionHeadersOf(session) : {}),
  };
  const timeoutMs = OWN_RESPONSE_TIMEOUT_MS;
  const own = { by, method: 'POST', target, headers, body, timeoutMs } as const;
  const sender = session.version === LEGACY_SSE_VERSION ? client : sessions;
  const outcome = await sender.request(own);
  if (outcome.kind === 'answer') outcome.release();
}

function responseOf(own: GatewayReply): JsonObject {
  return own === 'pong' ? { result: {} } : { error: { code: own.code, message: own.message } };
}
