// Reaches an upstream of another transport for a client of legacy SSE. The client's session exists before its
// handshake; the handshake opens the session of the upstream, in which everything else is then sent.
// Source: MCP 2024-11-05, lifecycle; MCP 2025-11-25, lifecycle; docs/reference/protocol.md §2.

import { type AuthorizedRequest, withAdmitted } from '../../../policy/authorized-request.js';
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

/** `inSession`: how the session of the upstream is reached; `knownAt`: the same for a session that may be lost. */
type BridgeParts = {
  readonly bridged: LegacySseClientSessions;
  inSession(session: SessionFacts, offer: UpstreamOffer): UpstreamAdapter;
  knownAt(session: SessionFacts): UpstreamAdapter;
};

export function createBridgeAdapter({ bridged, inSession, knownAt }: BridgeParts): UpstreamAdapter {
  function forwardIn(
    inner: SessionFacts,
    { authorized, by, signal }: OutboundRequest,
    offer: UpstreamOffer,
  ): Promise<RoutedOutcome> {
    const request = { authorized: movedTo(inner, authorized), by, signal };
    return inSession(inner, offer).forward(request, offer);
  }

  /** Opens a session at the upstream. A second handshake is refused: it would leave the first session open. */
  async function open(
    request: OutboundRequest,
    legacySession: SessionFacts,
    offer: UpstreamOffer,
  ): Promise<RoutedOutcome> {
    const { authorized, by, signal } = request;
    const { message } = authorized.admitted;
    if (message.kind === 'request' && bridged.hasOpened(legacySession))
      return bodyResponse(200, errorResponseText(message.id, INITIALIZED, INVALID_REQUEST));
    if (!isTranslated(SESSION, offer.supportedVersions)) {
      // The oldest version is the nearest to legacy SSE, so the upstream does not send what was added later.
      const [oldest = LATEST_SESSION_VERSION] = offer.supportedVersions?.sessions ?? [];
      return bridged.open(authorized, by, oldest, signal);
    }
    const own = bridged.enter(authorized, { kind: 'gateway' }, LEGACY_SSE_VERSION);
    return own === undefined ? bodyResponse(404) : forwardIn(own, request, offer);
  }

  return {
    async forward(request, offer) {
      const { message, rule, session } = request.authorized.admitted;
      if (session === undefined) return bodyResponse(404);
      if (rule.method === 'initialize') return open(request, session, offer);
      const inner = bridged.find(session);
      if (inner === undefined) {
        return message.kind === 'request'
          ? bodyResponse(200, errorResponseText(message.id, NOT_INITIALIZED, INVALID_REQUEST))
          : bodyResponse(400);
      }
      const outcome = await forwardIn(inner, request, offer);
      if (rule.method === 'notifications/initialized') bridged.begin(session);
      return outcome;
    },
    async openStream(stream, currentOffer) {
      const inner = await bridged.begun(stream.session, stream.signal);
      return inner === undefined
        ? { kind: 'error', reason: 'upstream-unavailable' }
        : inSession(inner, currentOffer()).openStream({ ...stream, session: inner }, currentOffer);
    },
    endSession(session, by) {
      const inner = bridged.forget(session);
      // A server that gave its session no id has no session to end.
      return inner === undefined || !hasEnd(inner)
        ? Promise.resolve(bodyResponse(200))
        : knownAt(inner).endSession(inner, by);
    },
    replyToServer(serverRequest, reply) {
      const inner = bridged.find(serverRequest.session);
      if (inner !== undefined)
        knownAt(inner).replyToServer({ ...serverRequest, session: inner }, reply);
    },
    cancelAtServer(request) {
      const inner = bridged.find(request.session);
      if (inner !== undefined) knownAt(inner).cancelAtServer({ ...request, session: inner });
    },
  };
}

function hasEnd({ target }: SessionFacts): boolean {
  return target.kind !== 'upstream' || target.id !== undefined;
}

function movedTo(session: SessionFacts, authorized: AuthorizedRequest): AuthorizedRequest {
  const { version } = session;
  const changes = { protocol: SESSION, version, session };
  return withAdmitted(authorized, copyAdmitted(authorized.admitted, changes));
}
