// Serves session-era clients on a stateless upstream. The session is the gateway's own: what it declared is
// added to every request, and requests that only the session era has are handled here. Changes succeed only
// after every replica has received them, because any of them may serve the session's next request.
// Source: MCP 2025-11-25, ping, logging, resources (subscriptions), cancellation; MCP 2026-07-28, requests
// (`_meta`); docs/reference/state.md#sessions-on-any-replica;
// docs/reference/protocol.md#a-session-in-front-of-a-stateless-upstream.

import type { AuthorizedRequest, OutboundStream } from '../../../policy/obligations.js';
import { type Caller, ownerKey } from '../../../policy/principal.js';
import type { AdmittedMessage, SessionFacts } from '../../../protocol/admitted-request.js';
import type { MirroredParameter } from '../../../protocol/headers.js';
import { applyEdits, spanOf } from '../../../protocol/json/json.js';
import { isObject, type Json, type JsonObject, type RequestId } from '../../../protocol/jsonrpc.js';
import { canRequireInput } from '../../../protocol/server-requests.js';
import { isEventStream } from '../../../protocol/sse.js';
import {
  amendResponse,
  DisconnectController,
  type ForwardOutcome,
  joinPieces,
  type RoutedOutcome,
  type UpstreamResponse,
} from '../../../protocol/transport.js';
import { LEGACY_SSE_VERSION } from '../../../protocol/versions/revisions.js';
import {
  acceptedResponse,
  bodyResponse,
  isJson,
  mentionsInputRequired,
  type OutboundItems,
  readMessages,
  resultResponse,
  streamResponse,
} from '../../response-messages.js';
import { relayWithInputRounds, toSessionItem } from '../input-required.js';
import {
  capabilitiesFor,
  createTranslatedPages,
  discoverForm,
  errorResponseText,
  type RequestEnvelope,
  type SessionResponseContext,
  statelessForm,
  type TranslatedPages,
  toSessionMessage,
  translatedBody,
} from '../message-translation.js';
import {
  applySessionChange,
  createSessionStates,
  listenForSession,
  localSessionBus,
  MAX_RESOURCES,
  receiveSessionMessage,
  replicaOf,
  type ServerRequestReply,
  type SessionBus,
  type SessionChange,
  type SessionMessage,
  type SessionState,
  type SessionStates,
  type TranslationSettings,
} from './session-state.js';

/** The client's self-description in a handshake, in the form that a stateless request carries. */
function handshakeEnvelope(gatewayVersion: string, { admitted }: AuthorizedRequest): RequestEnvelope {
  const params: unknown = JSON.parse(applyEdits(admitted.text, admitted.edits));
  const declared = isObject(params) && isObject(params['params']) ? params['params'] : {};
  const { capabilities, clientInfo } = declared as { readonly [name: string]: Json | undefined };
  const localSession = envelopeOf(gatewayVersion, { allowedServerRequests: [], apps: false }, undefined);
  return {
    ...localSession,
    capabilities: isObject(capabilities) ? capabilities : {},
    clientInfo: isObject(clientInfo) ? clientInfo : localSession.clientInfo,
  };
}

/** The self-description that a session's later requests carry; the gateway is named as the client. */
export function envelopeOf(
  gatewayVersion: string,
  declared: Parameters<typeof capabilitiesFor>[0],
  logLevel: string | undefined,
): RequestEnvelope {
  const clientInfo = { name: 'sallyport', version: gatewayVersion };
  return { capabilities: capabilitiesFor(declared), clientInfo, logLevel };
}

/** A session's state on this replica, and the bus to the other replicas. */
type LocalSession = {
  /** The keyed hash of the sealed session id. */
  readonly session: string;
  readonly owner: string;
  readonly sessionState: SessionState;
  readonly sessionBus: SessionBus;
};

const TOO_MANY = 'This session has reached its limit of resource subscriptions.';
const HANDLED_ELSEWHERE = { kind: 'error', reason: 'asked-elsewhere', isUnsent: true } as const;
const UNDELIVERED = {
  unavailable: { kind: 'error', reason: 'store-unavailable', isUnsent: true },
  overloaded: { kind: 'error', reason: 'overloaded', isUnsent: true },
} as const;

/** Handles a message that concerns only the session; `undefined` for one that the upstream must receive. */
function respondLocally(
  localSession: LocalSession,
  admitted: AdmittedMessage,
): UpstreamResponse | Promise<RoutedOutcome> | undefined {
  const { message } = admitted;
  switch (message.kind) {
    case 'result':
      return deliverReply(localSession, message.id ?? '', {
        kind: 'result',
        text: resultTextOf(admitted),
      });
    case 'error':
      return deliverReply(localSession, message.id ?? '', message);
    case 'notification':
      return message.method === 'notifications/cancelled'
        ? cancelRunning(localSession, message.params?.['requestId'])
        : acceptedResponse();
    case 'request':
      return respondToRequest(localSession, message.id, message.method, message.params ?? {});
  }
}

/** The result of an admitted reply as it is forwarded. */
function resultTextOf({ text, edits }: AdmittedMessage): string {
  const edited = applyEdits(text, edits);
  const span = spanOf(edited, ['result']);
  return span === undefined ? '{}' : edited.slice(span.start, span.end);
}

function respondToRequest(
  localSession: LocalSession,
  id: RequestId,
  method: string,
  params: JsonObject,
): UpstreamResponse | Promise<RoutedOutcome> | undefined {
  const { resources } = localSession.sessionState;
  const uri = String(params['uri']);
  const done = resultResponse(id);
  switch (method) {
    case 'ping':
      return done;
    case 'logging/setLevel':
      return publishChange(localSession, { kind: 'log-level', level: String(params['level']) }, done);
    case 'resources/subscribe':
      if (resources.size >= MAX_RESOURCES && !resources.has(uri))
        return bodyResponse(200, errorResponseText(id, TOO_MANY));
      return publishChange(localSession, { kind: 'subscribed', uri }, done);
    case 'resources/unsubscribe':
      return publishChange(localSession, { kind: 'unsubscribed', uri }, done);
    default:
      return undefined;
  }
}

/** Publishes a change to every replica, including this one, so that the session is the same on each. */
async function publishChange(
  { session, owner, sessionBus }: LocalSession,
  change: SessionChange,
  done: UpstreamResponse,
): Promise<RoutedOutcome> {
  const delivery = await sessionBus.publish({ session, owner, news: change });
  return delivery === 'delivered' ? done : UNDELIVERED[delivery];
}

/** Cancels a request on whichever replica it runs. */
function cancelRunning(localSession: LocalSession, id: Json | undefined): UpstreamResponse | Promise<RoutedOutcome> {
  if (typeof id !== 'string' && typeof id !== 'number') return acceptedResponse();
  const change = { kind: 'cancelled', id } as const;
  if (!localSession.sessionState.running.has(id)) return publishChange(localSession, change, acceptedResponse());
  applySessionChange(localSession.sessionState, change);
  return acceptedResponse();
}

/**
 * Delivers a reply to the server request waiting for it on any replica; refused if none waits. Never rejects.
 */
async function deliverReply(
  { session, owner, sessionState, sessionBus }: LocalSession,
  id: RequestId,
  reply: ServerRequestReply,
): Promise<RoutedOutcome> {
  const resolveReply = sessionState.waiting.get(id);
  if (resolveReply !== undefined) {
    resolveReply(reply);
    return acceptedResponse();
  }
  const owningReplica = replicaOf(id);
  if (owningReplica === sessionBus.self) return HANDLED_ELSEWHERE;
  const delivery = await sessionBus.send(owningReplica, {
    session,
    owner,
    news: { kind: 'answered', id, reply },
  });
  if (delivery === 'delivered') return acceptedResponse();
  return delivery === 'undeliverable' ? HANDLED_ELSEWHERE : UNDELIVERED[delivery];
}

export type SessionClients = {
  forward(
    authorized: AuthorizedRequest,
    caller: Caller,
    mirrored: readonly MirroredParameter[],
  ): Promise<RoutedOutcome>;
  openStream(stream: OutboundStream): Promise<ForwardOutcome>;
  endSession(session: SessionFacts): ForwardOutcome;
  /** The gateway's own reply to a server request. */
  replyToServerRequest(session: SessionFacts, caller: Caller, id: RequestId, reply: ServerRequestReply): void;
  /** Handles a session message from another replica. */
  receive(message: SessionMessage): void;
  /** Ends sessions on this replica that ended elsewhere; `session` is the keyed hash. */
  forgetWhere(isOver: (session: string) => boolean): void;
};

type AdapterDependencies = TranslationSettings & {
  readonly sessionStates: SessionStates;
  readonly pages: TranslatedPages;
};
type Request = {
  readonly dependencies: AdapterDependencies;
  readonly authorized: AuthorizedRequest;
  readonly caller: Caller;
  readonly mirrored: readonly MirroredParameter[];
  readonly id: RequestId;
  readonly sessionState: SessionState | undefined;
  readonly cancellation: DisconnectController;
};

/** Creates the adapter of one upstream. */
export function createSessionClients(settings: TranslationSettings): SessionClients {
  const dependencies: AdapterDependencies = {
    ...settings,
    sessionStates: createSessionStates(),
    pages: createTranslatedPages(),
  };
  return {
    forward: (authorized, caller, mirrored) => forward(dependencies, authorized, caller, mirrored),
    openStream({ session, caller, signal, readableOf }) {
      const { sessionState } = localSessionOf(dependencies, session, caller);
      const declared = { allowedServerRequests: [], apps: session.apps ?? false };
      return listenForSession(
        {
          ...dependencies,
          caller,
          readableOf,
          envelope: envelopeOf(dependencies.gatewayVersion, declared, undefined),
        },
        sessionState,
        signal,
      );
    },
    endSession(session) {
      dependencies.sessionStates.forget(keyOf(session));
      return bodyResponse(200);
    },
    replyToServerRequest(session, caller, id, reply) {
      void deliverReply(localSessionOf(dependencies, session, caller), id, reply);
    },
    receive: (message) => receiveSessionMessage(dependencies.sessionStates, message),
    forgetWhere: dependencies.sessionStates.forgetWhere,
  };
}

/** The key of a session's state. State is kept only for sessions that have been opened. */
function keyOf({ hash }: SessionFacts): string {
  if (hash === undefined) throw new Error('only opened sessions are remembered');
  return hash;
}

async function forward(
  dependencies: AdapterDependencies,
  authorized: AuthorizedRequest,
  caller: Caller,
  mirrored: readonly MirroredParameter[],
): Promise<RoutedOutcome> {
  const { message, session } = authorized.admitted;
  const localSession = session === undefined ? undefined : localSessionOf(dependencies, session, caller);
  const response = localSession === undefined ? undefined : respondLocally(localSession, authorized.admitted);
  if (response !== undefined) return response;
  // Without a session only a handshake is admitted.
  if (message.kind !== 'request') return acceptedResponse();
  const { id } = message;
  const sessionState = localSession?.sessionState;
  return send({
    dependencies,
    authorized,
    caller,
    mirrored,
    id,
    sessionState,
    cancellation: new DisconnectController(),
  });
}

function localSessionOf(
  { sessionStates, sessionBus }: AdapterDependencies,
  facts: SessionFacts,
  { principal }: Caller,
): LocalSession {
  const session = keyOf(facts);
  const owner = ownerKey(principal);
  // The session of a legacy SSE client is known only to the replica that holds its stream.
  const isLocalOnly = facts.version === LEGACY_SSE_VERSION;
  return {
    session,
    owner,
    sessionState: sessionStates.getOrCreate(session, owner),
    sessionBus: isLocalOnly ? localSessionBus(sessionBus, sessionStates) : sessionBus,
  };
}

async function send(request: Request): Promise<ForwardOutcome> {
  const { dependencies, authorized, caller, mirrored, id, sessionState, cancellation } = request;
  const { admitted } = authorized;
  const isHandshake = admitted.rule.method === 'initialize';
  const declared = isHandshake
    ? handshakeEnvelope(dependencies.gatewayVersion, authorized)
    : envelopeOf(dependencies.gatewayVersion, admitted, sessionState?.logLevel);
  const envelope = caller.traceparent === undefined ? declared : { ...declared, traceparent: caller.traceparent };
  const form = isHandshake ? discoverForm(id, envelope) : statelessForm(admitted, envelope, mirrored);
  sessionState?.running.set(id, cancellation);
  const outcome = await dependencies.client.forwardAs(authorized, caller, form, cancellation, false);
  if (outcome.kind === 'error') {
    removeRunning(request);
    return outcome;
  }
  const responseContext = responseContextOf(authorized, id);
  const mayRequireInput = canRequireInput(admitted.rule.method) && admitted.allowedServerRequests.length > 0;
  const response = mayRequireInput
    ? await withInputRequired(request, outcome, responseContext, envelope)
    : translateResponse(request, outcome, responseContext);
  return isHandshake && response.kind === 'response' ? { ...response, openedSession: { kind: 'gateway' } } : response;
}

function removeRunning({ sessionState, id, cancellation }: Request): void {
  if (sessionState?.running.get(id) === cancellation) sessionState.running.delete(id);
}

function responseContextOf({ admitted }: AuthorizedRequest, id: RequestId): SessionResponseContext {
  return { method: admitted.rule.method, version: admitted.version, id, sentId: id };
}

/** Translates a response that cannot require input; a single body stays a single body. */
function translateResponse(
  request: Request,
  response: UpstreamResponse,
  responseContext: SessionResponseContext,
): UpstreamResponse {
  if (isEventStream(response)) {
    return streamResponse(translateStream(request, response, responseContext), {
      release() {
        removeRunning(request);
        response.release();
      },
      abort() {
        removeRunning(request);
        response.abort();
      },
    });
  }
  removeRunning(request);
  const { pages, messageReader } = request.dependencies;
  const page = {
    method: responseContext.method,
    ids: { source: responseContext.sentId, translated: responseContext.id },
    messageReader,
    translate: (text: string, value: Json) => toSessionMessage(text, value, responseContext),
  };
  return amendResponse(response, {
    status: statusOf(response),
    headers: {
      'content-type': response.headers['content-type'],
      'retry-after': response.headers['retry-after'],
      'www-authenticate': response.headers['www-authenticate'],
    },
    readBody: translatedBody(response, pages, page),
  });
}

/**
 * The status as a session-era client may be shown it, which reads it together with the body. A 404 would mean that the
 * session is lost, which a server without sessions cannot know.
 */
function statusOf(response: UpstreamResponse): number {
  const { status } = response;
  if (status !== NOT_FOUND) return status;
  return isJson(response) ? BAD_REQUEST : BAD_GATEWAY;
}

const BAD_REQUEST = 400;
const NOT_FOUND = 404;
const BAD_GATEWAY = 502;

async function* translateStream(
  request: Request,
  response: UpstreamResponse,
  responseContext: SessionResponseContext,
): OutboundItems {
  try {
    for await (const inbound of readMessages(response, request.dependencies))
      yield toSessionItem(inbound, responseContext);
  } finally {
    removeRunning(request);
  }
}

/** Translates a response that may require input. Its body is read first: input requests make it a stream. */
async function withInputRequired(
  request: Request,
  response: UpstreamResponse,
  responseContext: SessionResponseContext,
  envelope: RequestEnvelope,
): Promise<ForwardOutcome> {
  const { dependencies, authorized, caller, mirrored, sessionState, cancellation } = request;
  let first = response;
  if (isJson(response) && response.status === 200) {
    const body = await response.readBody(dependencies.maxResponseBytes, dependencies.requestTimeoutMs);
    if (typeof body === 'string') {
      removeRunning(request);
      return { kind: 'error', reason: body === 'too-large' ? 'upstream-protocol' : body };
    }
    const bytes = joinPieces(body);
    response.release();
    first = bodyResponse(200, bytes);
    if (!mentionsInputRequired(bytes)) return translateResponse(request, first, responseContext);
  } else if (!isEventStream(response)) return translateResponse(request, response, responseContext);
  if (sessionState === undefined) return translateResponse(request, first, responseContext);
  const items = relayWithInputRounds(first, {
    reader: responseContext,
    sessionState,
    sessionBus: dependencies.sessionBus,
    signal: cancellation,
    bounds: dependencies,
    sendRetry: (retry) =>
      dependencies.client.forwardAs(
        authorized,
        caller,
        statelessForm(authorized.admitted, envelope, mirrored, retry),
        cancellation,
        false,
      ),
    removeRunning: () => removeRunning(request),
  });
  const stop = (): void => {
    // A generator that was never started does not run its `finally` block.
    removeRunning(request);
    cancellation.abort();
  };
  return streamResponse(items, { release: stop, abort: stop });
}
