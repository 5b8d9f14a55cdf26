// Finds out whether the answer to a request means that the upstream has lost its session, and for clients of an
// aggregate opens another one in its place: what one backend has lost does not end the session of the client with all
// others. A request is repeated once, and only if it cannot have been executed. Sessions are never shared: each takes the
// place of one session of one caller.
// Source: docs/reference/responses.md; MCP 2025-11-25, session management.

import { type AuthorizedRequest, replaceAdmitted } from '../../policy/obligations.js';
import { type Caller, ownerKey } from '../../policy/principal.js';
import { copyAdmitted } from '../../protocol/admission.js';
import type { SessionFacts } from '../../protocol/admitted-request.js';
import { type RequestId, requestIdOf } from '../../protocol/jsonrpc.js';
import {
  amendResponse,
  type DisconnectSignal,
  type ForwardError,
  type ForwardOutcome,
  type RoutedOutcome,
  type UpstreamResponse,
} from '../../protocol/transport.js';
import { afterPing, errorSeenIn, readUpstreamStatus } from '../../protocol/upstream-status.js';
import { SESSION } from '../../protocol/versions/session.js';
import { OwnedMap } from '../../state/bounds.js';
import { type SessionRef, type SessionUpstream, upstreamIdOf } from '../client.js';
import { createSendRequest, setUnheldTimer } from '../exchange.js';
import { acceptedResponse, bodyResponse, isJson, parseBody } from '../response-messages.js';
import { capabilitiesFor, errorResponseText } from './message-translation.js';
import { openUpstreamSession, pingInSession } from './stateless-over-session/session-pool.js';

export const SESSION_LOST =
  'The session with this server was lost. The call may have been executed, so it was not retried.';

/** Bytes within which an error is read that may say that the session is lost. */
const MAX_ERROR_BYTES = 1024 * 1024;
const PING_TIMEOUT_MS = 5_000;
const FIRST_CLIENT_ERROR = 400;

/**
 * `isUnexecuted`: the server has refused the session before it read the request, so the request may be sent again. After
 * any other answer it may have been executed.
 */
export type LostSession = { readonly kind: 'lost'; readonly isUnexecuted: boolean };

type SentRequest = {
  readonly client: Pick<SessionUpstream, 'request'>;
  readonly session: SessionRef;
  readonly caller: Caller;
  /** The id under which the request left. */
  readonly sentId: RequestId | undefined;
  readonly requestTimeoutMs: number;
};

/** The response, or whether its status and its body say that the session is lost. */
export async function unlessLost(
  response: UpstreamResponse,
  { client, session, caller, sentId, requestTimeoutMs }: SentRequest,
): Promise<UpstreamResponse | LostSession> {
  const { status } = response;
  const namesSession = upstreamIdOf(session) !== undefined;
  if (status < FIRST_CLIENT_ERROR || !namesSession) return response;
  const read = await response.readBody(MAX_ERROR_BYTES, requestTimeoutMs);
  response.release();
  const inbound = isJson(response) ? await parseBody(read) : undefined;
  const value = inbound?.kind === 'message' ? inbound.value : undefined;
  const reading = readUpstreamStatus(status, { error: errorSeenIn(value, sentId), namesSession });
  const settled = await afterPing(reading, () => pingInSession(client, session, caller, PING_TIMEOUT_MS));
  // Without a ping it is certain that the server refused the session before it read the request.
  if (settled === 'lost') return { kind: 'lost', isUnexecuted: reading.kind === 'lost' };
  return amendResponse(response, { readBody: () => read });
}

/** Whether a request may be sent again after its session was lost: a call only if it was not executed. */
export function mayRepeat(method: string, { isUnexecuted }: LostSession): boolean {
  return isUnexecuted || method !== 'tools/call';
}

type RecoverySettings = {
  readonly client: Pick<SessionUpstream, 'forward' | 'openStream' | 'request'>;
  readonly requestTimeoutMs: number;
  readonly handshakeTimeoutMs: number;
  /** Sent to upstreams in `clientInfo`. */
  readonly gatewayVersion: string;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** A session was opened in place of one that was lost. */
  readonly onReopened: () => void;
};

type RequestInSession = {
  readonly authorized: AuthorizedRequest;
  readonly caller: Caller;
  readonly signal: DisconnectSignal | undefined;
};

export type SessionRecovery = {
  /** The session in use in place of this one, or the session itself. */
  current(session: SessionFacts): SessionFacts;
  /** Forwards a request, in another session where the upstream has lost the one that it names. */
  forward(request: RequestInSession, session: SessionFacts): Promise<RoutedOutcome>;
  /** Opens the stream of a session in the same way. One that cannot be resumed there begins anew. */
  openStream(stream: {
    readonly session: SessionFacts;
    readonly caller: Caller;
    readonly signal: DisconnectSignal;
    readonly lastEventId: string | undefined;
  }): Promise<ForwardOutcome>;
  forget(session: SessionFacts): void;
};

/** Sessions that are remembered, in all and per caller. One that is forgotten is opened again when it is used. */
const MAX_REOPENED = 10_000;
const MAX_REOPENED_PER_CALLER = 1_000;
const NOT_FOUND = 404;

type Reopened = {
  /** In place of which session of the upstream. */
  readonly lostId: string | undefined;
  readonly opening: Promise<SessionFacts | ForwardError>;
  session: SessionFacts | undefined;
};

/** Creates the recovery of one upstream. Sessions are kept in the memory of this replica; another opens its own. */
export function createSessionRecovery(settings: RecoverySettings): SessionRecovery {
  const { client, requestTimeoutMs } = settings;
  const reopened = new OwnedMap<string, Reopened>({
    max: MAX_REOPENED,
    maxPerOwner: MAX_REOPENED_PER_CALLER,
  });

  function current(session: SessionFacts): SessionFacts {
    return reopened.get(session.hash ?? '')?.session ?? session;
  }

  /** Opens one session for all requests that found the same one lost. */
  function reopen(session: SessionFacts, lost: SessionFacts, caller: Caller): Promise<SessionFacts | ForwardError> {
    const key = session.hash ?? '';
    const known = reopened.get(key);
    if (known !== undefined && known.lostId === upstreamIdOf(lost)) return known.opening;
    if (known?.session !== undefined && known.session !== lost) return Promise.resolve(known.session);
    const opening = openInPlaceOf(session, caller, settings);
    const entry: Reopened = { lostId: upstreamIdOf(lost), opening, session: undefined };
    reopened.set(key, entry, ownerKey(caller.principal));
    return opening.then((opened) => {
      // A server that does not open one now is asked again by the next request.
      if (typeof opened === 'string') {
        if (reopened.get(key) === entry) reopened.delete(key);
      } else {
        entry.session = opened;
        settings.onReopened();
      }
      return opened;
    });
  }

  return {
    current,
    async forward({ authorized, caller, signal }, session) {
      const { message, rule } = authorized.admitted;
      const used = current(session);
      const outcome = await client.forward(inSession(used, session, authorized), caller, signal);
      if (outcome.kind === 'error') return outcome;
      const sentId = requestIdOf(message);
      const sent = { client, session: used, caller, sentId, requestTimeoutMs };
      const read = await unlessLost(outcome, sent);
      if (read.kind === 'response') return read;
      const opened = await reopen(session, used, caller);
      if (typeof opened === 'string') return { kind: 'error', reason: opened };
      // What is no request concerned the session that is lost.
      if (message.kind !== 'request') return acceptedResponse();
      if (!mayRepeat(rule.method, read)) return bodyResponse(200, errorResponseText(message.id, SESSION_LOST));
      return client.forward(inSession(opened, session, authorized), caller, signal);
    },
    async openStream({ session, caller, signal, lastEventId }) {
      const used = current(session);
      // Events of the session that is lost mean nothing in another.
      const eventId = used === session ? lastEventId : undefined;
      const outcome = await client.openStream(used, caller, signal, eventId);
      const namesSession = upstreamIdOf(used) !== undefined;
      if (outcome.kind === 'error' || outcome.status !== NOT_FOUND || !namesSession) return outcome;
      // A server without a GET route answers the same.
      if (await pingInSession(client, used, caller, PING_TIMEOUT_MS)) return outcome;
      outcome.release();
      const opened = await reopen(session, used, caller);
      if (typeof opened === 'string') return { kind: 'error', reason: opened };
      return client.openStream(opened, caller, signal, undefined);
    },
    forget: (session) => reopened.delete(session.hash ?? ''),
  };
}

function inSession(used: SessionFacts, session: SessionFacts, authorized: AuthorizedRequest): AuthorizedRequest {
  return used === session ? authorized : withSession(used, authorized);
}

/** The request in another session of the session era. */
export function withSession(session: SessionFacts, authorized: AuthorizedRequest): AuthorizedRequest {
  const { version } = session;
  const changes = { protocol: SESSION, version, session };
  return replaceAdmitted(authorized, copyAdmitted(authorized.admitted, changes));
}

/** Opens a session with what the client of another declared and was granted there, in the same revision. */
async function openInPlaceOf(
  session: SessionFacts,
  caller: Caller,
  { client, handshakeTimeoutMs, gatewayVersion, now }: RecoverySettings,
): Promise<SessionFacts | ForwardError> {
  const { version, allowedServerRequests = [], apps = false } = session;
  const ports = {
    request: createSendRequest(client, caller),
    now,
    requestTimeoutMs: handshakeTimeoutMs,
    setTimer: setUnheldTimer,
  };
  const opened = await openUpstreamSession(ports, {
    version,
    capabilities: capabilitiesFor({ allowedServerRequests, apps }),
    clientInfo: { name: 'sallyport', version: gatewayVersion },
    logLevel: undefined,
  });
  if (typeof opened === 'string') return opened;
  // The client speaks the revision that it negotiated.
  return opened.version === version ? { ...session, target: opened.target } : 'upstream-protocol';
}
