// The ways in which a message reaches its upstream, and the choice between them: directly, over legacy SSE, or
// translated into the other era. This is the one place that decides it; nothing else asks how an upstream is reached,
// and whether a message may be sent was decided before. Also sends the gateway's own messages in a session, within a
// bound.
// Source: MCP 2025-11-25, lifecycle, session management, cancellation and ping; MCP 2024-11-05, lifecycle;
// MCP 2026-07-28, versioning; docs/reference/protocol.md#serving-all-eras.

import { type Catalog, definitionOf } from '../../policy/definitions.js';
import type { GatewayReply, OutboundRequest, OutboundStream, SessionRequest } from '../../policy/obligations.js';
import type { Caller } from '../../policy/principal.js';
import type { AdmittedMessage, SessionFacts } from '../../protocol/admitted-request.js';
import { renderJson } from '../../protocol/json/request-ids.js';
import type { JsonObject } from '../../protocol/jsonrpc.js';
import { INVALID_REQUEST } from '../../protocol/responses.js';
import type { ForwardOutcome, RoutedOutcome } from '../../protocol/transport.js';
import { isTranslated, type SupportedVersions } from '../../protocol/versions/negotiation.js';
import {
  type ClientTraits,
  LATEST_SESSION_VERSION,
  LEGACY_SSE_VERSION,
  SESSION_VERSIONS,
} from '../../protocol/versions/revisions.js';
import { SESSION } from '../../protocol/versions/session.js';
import { STATELESS } from '../../protocol/versions/stateless.js';
import type { SessionUpstream, UpstreamClient } from '../client.js';
import { bodyResponse } from '../response-messages.js';
import type { LegacySseClientSessions } from './legacy-sse/client-sessions.js';
import { type SessionRecovery, withSession } from './lost-sessions.js';
import { errorResponseText } from './message-translation.js';
import type { SessionClients } from './session-over-stateless/session-over-stateless-adapter.js';
import { pingInSession, postInSession } from './stateless-over-session/session-pool.js';
import type { StatelessClients } from './stateless-over-session/stateless-over-session-adapter.js';

/** What is known of the upstream when a message is sent. */
export type UpstreamOffer = {
  /** The versions that it speaks; `undefined` before the first listing. */
  readonly supportedVersions: SupportedVersions | undefined;
  catalogFor(client: ClientTraits): Pick<Catalog, 'statusOf'>;
};

/** One way in which messages reach an upstream. */
type UpstreamAdapter = {
  forward(request: OutboundRequest, offer: UpstreamOffer): Promise<RoutedOutcome>;
  /** The offer is read when the stream is opened, because a session that is not initialized is waited for. */
  openStream(stream: OutboundStream, currentOffer: () => UpstreamOffer): Promise<ForwardOutcome>;
  endSession(session: SessionFacts, caller: Caller): Promise<ForwardOutcome>;
  /** False if the server does not answer a ping in the session, so that it has lost it. */
  pingSession(session: SessionFacts, caller: Caller): Promise<boolean>;
  replyToServer(serverRequest: SessionRequest, reply: GatewayReply): void;
  /** Notifies the server of a session that the response to this request is no longer awaited. */
  cancelAtServer(request: SessionRequest): void;
};

/** Translation for clients of an era or a transport that the upstream does not speak. */
export type TranslatedClients = {
  /** Session-era clients of a stateless upstream. */
  readonly sessions: SessionClients;
  /** Stateless clients of a session-era upstream. */
  readonly stateless: StatelessClients;
  /** Legacy SSE clients of a session-era or stateless upstream. */
  readonly bridged: LegacySseClientSessions;
};

type UpstreamParts = {
  readonly client: UpstreamClient;
  /** The same upstream with sessions: over legacy SSE streams where it speaks HTTP+SSE. */
  readonly sessions: SessionUpstream;
  readonly translation: TranslatedClients;
  /** Whether the upstream speaks HTTP+SSE. */
  readonly isLegacySse: boolean;
  /** For what comes through an aggregate. */
  readonly recovery: SessionRecovery;
};

export type UpstreamAdapters = {
  forMessage(admitted: AdmittedMessage, offer: UpstreamOffer): UpstreamAdapter;
  /** For the stream of a session. */
  forStream(session: SessionFacts, offer: UpstreamOffer): UpstreamAdapter;
  /** For what the gateway itself does in a session, whether or not the upstream still knows it. */
  forSession(session: SessionFacts): UpstreamAdapter;
  /** The session as it is now: what a server may request in a bridged one is known only since its handshake. */
  currentFacts<S extends SessionFacts>(session: S): S;
};

export function createUpstreamAdapters(parts: UpstreamParts): UpstreamAdapters {
  const { client, sessions, translation, isLegacySse, recovery } = parts;
  const count = { inProgress: 0, pings: 0 };
  const direct = createDirectAdapter(client, count, recovery);
  const directSessions = sessions === client ? direct : createDirectAdapter(sessions, count, recovery);
  const sessionOverStateless = overStateless(translation.sessions);
  const statelessOverSession: UpstreamAdapter = {
    ...UNREACHABLE,
    forward: ({ authorized, caller, signal }, { supportedVersions }) =>
      translation.stateless.forward(authorized, caller, supportedVersions?.sessions ?? SESSION_VERSIONS, signal),
  };
  const bridge = createBridgeAdapter({
    clientSessions: translation.bridged,
    adapterInSession: inSession,
    adapterForKnown: forSession,
  });

  /** The way to the session of an upstream; `undefined` stands for the session that a handshake is about to open. */
  function inSession(session: SessionFacts | undefined, { supportedVersions }: UpstreamOffer): UpstreamAdapter {
    const isTranslatedNow = isTranslated(SESSION, supportedVersions);
    if (session === undefined) return isTranslatedNow ? sessionOverStateless : directSessions;
    const isGatewaySession = session.target.kind === 'gateway';
    // The upstream no longer speaks the era of the session.
    if (supportedVersions !== undefined && isTranslatedNow !== isGatewaySession) return UNREACHABLE;
    return isGatewaySession ? sessionOverStateless : directSessions;
  }

  function forSession({ target }: SessionFacts): UpstreamAdapter {
    switch (target.kind) {
      case 'bridged':
        return bridge;
      case 'gateway':
        return sessionOverStateless;
      case 'legacy-sse':
        return direct;
      case 'upstream':
      case 'aggregate':
        return directSessions;
    }
  }

  return {
    forMessage({ protocol, session }, offer) {
      // No server speaks the stateless era over HTTP+SSE, whether or not it was listed.
      if (!protocol.hasSessions)
        return isLegacySse || isTranslated(STATELESS, offer.supportedVersions) ? statelessOverSession : direct;
      if (!protocol.answersOnStream) return inSession(session, offer);
      const isBridged = session?.target.kind === 'bridged';
      // A reload may have changed the transport of the upstream since the session was opened.
      if (isBridged === isLegacySse) return UNREACHABLE;
      return isBridged ? bridge : direct;
    },
    forStream: (session, offer) => (session.target.kind === 'bridged' ? bridge : inSession(session, offer)),
    forSession,
    currentFacts(session) {
      if (session.target.kind !== 'bridged') return session;
      const allowedServerRequests = translation.bridged.allowedServerRequests(session);
      return { ...session, allowedServerRequests };
    },
  };
}

/** Longest time for sending a message of the gateway's own. */
const GATEWAY_MESSAGE_TIMEOUT_MS = 5_000;
/** Such messages in progress at one upstream; a server that sends requests faster gets no reply to the rest. */
const MAX_GATEWAY_MESSAGES = 4;

/** Pings in progress at one upstream; beyond them no session is taken for lost. */
const MAX_PINGS = 4;

/** How many messages of the gateway's own are being sent to one upstream. */
type GatewayMessageCount = { inProgress: number; pings: number };

/** The session in which the gateway sends a message of its own, and on whose behalf. */
type GatewayMessageContext = { readonly session: SessionFacts; readonly caller: Caller };

/** For an upstream that speaks the era and the transport of its client: messages are sent as they are. */
function createDirectAdapter(
  client: Pick<SessionUpstream, 'forward' | 'openStream' | 'endSession' | 'request'>,
  count: GatewayMessageCount,
  recovery: SessionRecovery,
): UpstreamAdapter {
  const pings = new Map<string, Promise<boolean>>();

  /** Sends a message unless too many are in progress. */
  function send({ session: known, caller }: GatewayMessageContext, message: JsonObject): void {
    const session = recovery.current(known);
    if (count.inProgress >= MAX_GATEWAY_MESSAGES) return;
    count.inProgress += 1;
    const body = renderJson(message);
    const timeoutMs = GATEWAY_MESSAGE_TIMEOUT_MS;
    void postInSession(client, session, { caller, body, timeoutMs }).then(() => {
      count.inProgress -= 1;
    });
  }

  return {
    forward(request) {
      const { authorized, caller, signal, reopensSession = false } = request;
      const { session } = authorized.admitted;
      return reopensSession && session !== undefined
        ? recovery.forward(request, session)
        : client.forward(authorized, caller, signal);
    },
    openStream(stream) {
      const { session, caller, signal, lastEventId, reopensSession = false } = stream;
      return reopensSession ? recovery.openStream(stream) : client.openStream(session, caller, signal, lastEventId);
    },
    endSession(session, caller) {
      const ended = client.endSession(recovery.current(session), caller);
      recovery.forget(session);
      return ended;
    },
    pingSession(named, caller) {
      const session = recovery.current(named);
      // Requests of one session that fail together need one ping.
      const known = pings.get(session.hash ?? '');
      if (known !== undefined) return known;
      if (count.pings >= MAX_PINGS) return Promise.resolve(true);
      count.pings += 1;
      const ping = pingInSession(client, session, caller, GATEWAY_MESSAGE_TIMEOUT_MS).finally(() => {
        count.pings -= 1;
        pings.delete(session.hash ?? '');
      });
      pings.set(session.hash ?? '', ping);
      return ping;
    },
    replyToServer({ session, id, caller }, reply) {
      send({ session, caller }, { jsonrpc: '2.0', id, ...membersOf(reply) });
    },
    cancelAtServer({ session, id, caller }) {
      const params = { requestId: id, reason: 'The response took too long.' };
      send({ session, caller }, { jsonrpc: '2.0', method: 'notifications/cancelled', params });
    },
  };
}

function membersOf(reply: GatewayReply): JsonObject {
  return reply === 'pong' ? { result: {} } : { error: { code: reply.code, message: reply.message } };
}

/** The session is the gateway's own. */
function overStateless(sessions: SessionClients): UpstreamAdapter {
  return {
    forward: ({ authorized, caller }, offer) =>
      sessions.forward(authorized, caller, mirroredParametersOf(offer, authorized.admitted)),
    openStream: (stream) => sessions.openStream(stream),
    endSession: (session) => Promise.resolve(sessions.endSession(session)),
    // A server without sessions has lost none.
    pingSession: () => Promise.resolve(true),
    replyToServer({ session, id, caller }, reply) {
      const error = reply === 'pong' ? undefined : reply;
      sessions.replyToServerRequest(session, caller, id, { kind: 'error', error });
    },
    // In the stateless era closing the connection is the cancellation.
    cancelAtServer: () => undefined,
  };
}

/** The parameters that the tool's schema mirrors into headers. */
function mirroredParametersOf(
  offer: UpstreamOffer,
  { target, apps }: AdmittedMessage,
): Parameters<SessionClients['forward']>[2] {
  if (target.kind !== 'tool') return [];
  const status = offer.catalogFor({ protocol: STATELESS, apps }).statusOf('tool', target.name);
  return definitionOf(status)?.mirrored ?? [];
}

const NOT_FOUND = (): Promise<ReturnType<typeof bodyResponse>> => Promise.resolve(bodyResponse(404));

/** The session does not exist at the upstream. */
const UNREACHABLE: UpstreamAdapter = {
  forward: () => Promise.resolve({ kind: 'error', reason: 'unknown-session', isUnsent: true }),
  openStream: NOT_FOUND,
  endSession: NOT_FOUND,
  pingSession: () => Promise.resolve(false),
  replyToServer: () => undefined,
  cancelAtServer: () => undefined,
};

const NOT_INITIALIZED = 'This session is not initialized. Initialize first.';
const INITIALIZED = 'This session is already initialized.';

/** `adapterInSession`: how the session of the upstream is reached; `adapterForKnown`: the same if it may be lost. */
type BridgeParts = {
  readonly clientSessions: LegacySseClientSessions;
  adapterInSession(session: SessionFacts, offer: UpstreamOffer): UpstreamAdapter;
  adapterForKnown(session: SessionFacts): UpstreamAdapter;
};

/**
 * Reaches an upstream of another transport for a client of legacy SSE. The client's session exists before its
 * handshake; the handshake opens the session of the upstream, in which everything else is then sent.
 */
export function createBridgeAdapter({
  clientSessions,
  adapterInSession,
  adapterForKnown,
}: BridgeParts): UpstreamAdapter {
  function forwardIn(
    upstreamSession: SessionFacts,
    { authorized, caller, signal }: OutboundRequest,
    offer: UpstreamOffer,
  ): Promise<RoutedOutcome> {
    const request = { authorized: withSession(upstreamSession, authorized), caller, signal };
    return adapterInSession(upstreamSession, offer).forward(request, offer);
  }

  /** Opens a session at the upstream. A second handshake is refused: it would leave the first session open. */
  async function open(
    request: OutboundRequest,
    legacySession: SessionFacts,
    offer: UpstreamOffer,
  ): Promise<RoutedOutcome> {
    const { authorized, caller, signal } = request;
    const { message } = authorized.admitted;
    if (message.kind === 'request' && clientSessions.hasOpened(legacySession))
      return bodyResponse(200, errorResponseText(message.id, INITIALIZED, INVALID_REQUEST));
    if (!isTranslated(SESSION, offer.supportedVersions)) {
      // The oldest version is the nearest to legacy SSE, so the upstream does not send what was added later.
      const [oldest = LATEST_SESSION_VERSION] = offer.supportedVersions?.sessions ?? [];
      return clientSessions.open(authorized, caller, oldest, signal);
    }
    const gatewaySession = clientSessions.enter(authorized, { kind: 'gateway' }, LEGACY_SSE_VERSION);
    return gatewaySession === undefined ? bodyResponse(404) : forwardIn(gatewaySession, request, offer);
  }

  return {
    async forward(request, offer) {
      const { message, rule, session } = request.authorized.admitted;
      if (session === undefined) return bodyResponse(404);
      if (rule.method === 'initialize') return open(request, session, offer);
      const upstreamSession = clientSessions.find(session);
      if (upstreamSession === undefined) {
        return message.kind === 'request'
          ? bodyResponse(200, errorResponseText(message.id, NOT_INITIALIZED, INVALID_REQUEST))
          : bodyResponse(400);
      }
      const outcome = await forwardIn(upstreamSession, request, offer);
      if (rule.method === 'notifications/initialized') clientSessions.markInitialized(session);
      return outcome;
    },
    async openStream(stream, currentOffer) {
      const upstreamSession = await clientSessions.waitUntilInitialized(stream.session, stream.signal);
      return upstreamSession === undefined
        ? { kind: 'error', reason: 'upstream-unavailable' }
        : adapterInSession(upstreamSession, currentOffer()).openStream(
            { ...stream, session: upstreamSession },
            currentOffer,
          );
    },
    endSession(session, caller) {
      const upstreamSession = clientSessions.forget(session);
      // A server that gave its session no id has no session to end.
      return upstreamSession === undefined || !canBeEnded(upstreamSession)
        ? Promise.resolve(bodyResponse(200))
        : adapterForKnown(upstreamSession).endSession(upstreamSession, caller);
    },
    pingSession(session, caller) {
      const upstreamSession = clientSessions.find(session);
      return upstreamSession === undefined
        ? Promise.resolve(false)
        : adapterForKnown(upstreamSession).pingSession(upstreamSession, caller);
    },
    replyToServer(serverRequest, reply) {
      const upstreamSession = clientSessions.find(serverRequest.session);
      if (upstreamSession !== undefined)
        adapterForKnown(upstreamSession).replyToServer({ ...serverRequest, session: upstreamSession }, reply);
    },
    cancelAtServer(request) {
      const upstreamSession = clientSessions.find(request.session);
      if (upstreamSession !== undefined)
        adapterForKnown(upstreamSession).cancelAtServer({ ...request, session: upstreamSession });
    },
  };
}

function canBeEnded({ target }: SessionFacts): boolean {
  return target.kind !== 'upstream' || target.id !== undefined;
}
