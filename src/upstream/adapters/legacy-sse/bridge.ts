// Reaches an upstream of another transport for a client of legacy SSE. The client's session exists before its
// handshake; the handshake opens the session of the upstream, in which everything else is then sent.
// Source: MCP 2024-11-05, lifecycle; MCP 2025-11-25, lifecycle; docs/reference/protocol.md §2.

import { type AuthorizedRequest, replaceAdmitted } from '../../../policy/authorized-request.js';
import type { OutboundRequest } from '../../../policy/outbound.js';
import { copyAdmitted } from '../../../protocol/admission.js';
import type { SessionFacts } from '../../../protocol/admitted-request.js';
import { INVALID_REQUEST } from '../../../protocol/errors.js';
import type { RoutedOutcome } from '../../../protocol/transport.js';
import { isTranslated } from '../../../protocol/versions/detection.js';
import {
  LATEST_SESSION_VERSION,
  LEGACY_SSE_VERSION,
} from '../../../protocol/versions/revisions.js';
import { SESSION } from '../../../protocol/versions/session.js';
import { bodyResponse } from '../local-response.js';
import { errorResponseText } from '../message-translation.js';
import type { UpstreamAdapter, UpstreamOffer } from '../upstream-adapter.js';
import type { LegacySseClientSessions } from './client-sessions.js';

const NOT_INITIALIZED = 'This session is not initialized. Initialize first.';
const INITIALIZED = 'This session is already initialized.';

/** `adapterInSession`: how the session of the upstream is reached; `adapterForKnown`: the same for a session that may be lost. */
type BridgeParts = {
  readonly clientSessions: LegacySseClientSessions;
  adapterInSession(session: SessionFacts, offer: UpstreamOffer): UpstreamAdapter;
  adapterForKnown(session: SessionFacts): UpstreamAdapter;
};

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
    const gatewaySession = clientSessions.enter(
      authorized,
      { kind: 'gateway' },
      LEGACY_SSE_VERSION,
    );
    return gatewaySession === undefined
      ? bodyResponse(404)
      : forwardIn(gatewaySession, request, offer);
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
      const upstreamSession = await clientSessions.waitUntilInitialized(
        stream.session,
        stream.signal,
      );
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
    replyToServer(serverRequest, reply) {
      const upstreamSession = clientSessions.find(serverRequest.session);
      if (upstreamSession !== undefined)
        adapterForKnown(upstreamSession).replyToServer(
          { ...serverRequest, session: upstreamSession },
          reply,
        );
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

function withSession(session: SessionFacts, authorized: AuthorizedRequest): AuthorizedRequest {
  const { version } = session;
  const changes = { protocol: SESSION, version, session };
  return replaceAdmitted(authorized, copyAdmitted(authorized.admitted, changes));
}
