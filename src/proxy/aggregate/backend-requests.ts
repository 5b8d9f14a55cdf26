// Requests to the backends of an aggregate, to one or to several at once. Each goes through the ordinary pipeline
// under the backend's own names, rules, pins, limits and record, with the caller that was verified for the aggregate;
// only the headers that belong to the path are rewritten. Of several, a backend that is down, slow or refuses is
// missing from the joined response and never fails the others; only if none responds is the request refused, with the
// refusal of one backend. Also the context of an aggregate's request, and its refusals before any backend is involved.
// Source: MCP 2026-07-28, transports (standard request headers); MCP 2025-11-25, session management.

import { type Refusal, refuseProtocolError, refuseWith, renderRefusal } from '../../policy/decision.js';
import type { Principal } from '../../policy/principal.js';
import { fold, type RequestRecord } from '../../policy/record.js';
import type { AdmittedMessage, SessionFacts } from '../../protocol/admitted-request.js';
import { encodeHeaderValue } from '../../protocol/headers.js';
import { parseMessage, replaceAt } from '../../protocol/json/json.js';
import { isResponseTo, type RequestId, requestIdOf } from '../../protocol/jsonrpc.js';
import { errorContextOf, INVALID_PARAMS, protocolErrorOf } from '../../protocol/responses.js';
import { createSseFramer, encodeSseMessage, type SseEvent } from '../../protocol/sse.js';
import { type Incoming, joinPieces, type Outgoing, type ResponseHeaders } from '../../protocol/transport.js';
import type { Aggregate, Backend, HandleRequest, HangingBackends, IdentityPort, Ports } from '../ports.js';
import { admissionFacts, overridingFacts } from '../record-facts.js';
import { ACCEPTED, presentedScheme, statusFor } from '../refusals.js';
import { STREAM_HEADERS } from '../sse-response.js';

/** One request of a client to an aggregate. Each backend request has a record of its own. */
export type AggregateContext = {
  readonly incoming: Incoming;
  readonly outgoing: Outgoing;
  readonly ports: Ports;
  readonly run: HandleRequest;
  /** The aggregate of the configuration in force when the request is forwarded. */
  aggregate: Aggregate;
  /** Written only if no backend was involved. */
  readonly record: RequestRecord;
  admitted: AdmittedMessage | undefined;
  /** Gives the id of the request back. */
  releaseId?: (() => void) | undefined;
  /** The session of the request, once it is lost because a backend has lost its own. */
  lostSession: SessionFacts | undefined;
  /** Backend requests were made, and their records are the ones that count. */
  hasBackendRecords: boolean;
};

/** A request whose caller is verified. */
export type VerifiedRequest = { readonly context: AggregateContext; readonly principal: Principal };

/** How the request to one backend differs from the client's. */
export type BackendRequest = {
  readonly backend: Backend;
  /** The backend's sealed session and its version; absent before `initialize`, and in the stateless era. */
  readonly session?: { readonly sealed: string; readonly version: string } | undefined;
  /** The body for this backend; if absent, the client's bytes are used. */
  readonly text?: string;
  /** The value of `Mcp-Name` for this backend, if the client sent that header. */
  readonly name?: string;
  /** The event after which the backend's stream is resumed. */
  readonly lastEventId?: string | undefined;
  /** The request whose response the resumed stream carries. */
  readonly resumedId?: RequestId | undefined;
  /** Needs a decision id of its own, because several backends are involved. */
  readonly isOneOfMany?: boolean;
  /** Ends the backend's session, regardless of the client's request. */
  readonly isEnd?: boolean;
  /** Made by the gateway and not by the client: it takes no concurrency slot and has a record in addition. */
  readonly isUnasked?: boolean;
};

/**
 * The backend that a name belongs to, and the name without its prefix. No prefix begins with another, so there
 * is at most one match; `undefined` for a name with no known prefix, or nothing after it.
 */
export function backendOfName<M extends Backend>(
  backends: readonly M[],
  name: string,
): { readonly backend: M; readonly name: string } | undefined {
  const backend = backends.find(({ prefix }) => name.startsWith(prefix));
  if (backend === undefined || name.length === backend.prefix.length) return undefined;
  return { backend, name: name.slice(backend.prefix.length) };
}

/** The JSON text with the string at `path` replaced; unchanged if there is none. */
export function replaceText(text: string, path: readonly string[], value: string): string {
  return replaceAt(text, path, JSON.stringify(value)) ?? text;
}

/** Runs one backend request through the pipeline. Never rejects; the response goes to `outgoing`. */
export async function runBackendRequest(
  verified: VerifiedRequest,
  backendRequest: BackendRequest,
  outgoing: Outgoing,
): Promise<void> {
  const { context } = verified;
  const { aggregate, incoming } = context;
  const { backend, text, isOneOfMany = false, isEnd = false, isUnasked = false } = backendRequest;
  context.hasBackendRecords ||= !isUnasked;
  const backendIncoming: Incoming = {
    ...incoming,
    ...(isOneOfMany ? partOf(context) : {}),
    trace: context.record.trace && { partOf: context.record.trace, isPassedOn: true },
    httpMethod: isEnd ? 'DELETE' : incoming.httpMethod,
    upstream: backend.upstream,
    aggregate: { name: aggregate.name, session: incoming.headers['mcp-session-id'] },
    headers: headersOf(incoming, backendRequest),
    body: text === undefined ? incoming.body : new TextEncoder().encode(text),
    acquireSlot: (caller) => (isUnasked ? 'regular' : incoming.acquireSlot(caller, backend.upstream)),
  };
  const unregister = registerRequest(context, backendRequest);
  try {
    await context.run(backendIncoming, outgoing, portsOf(verified));
  } finally {
    unregister();
  }
}

/** What a request of its own has, which together with others makes the response to the client's. */
function partOf({ incoming, ports }: AggregateContext): Partial<Incoming> {
  const id = ports.audit.newDecisionId();
  return { id, partOf: incoming.id, startedMs: performance.now(), receivedAt: Date.now() };
}

/** Registers which backend is working on a request of the session until its response is complete. */
function registerRequest(
  { admitted, incoming, ports }: AggregateContext,
  { backend: { upstream }, resumedId }: BackendRequest,
): () => void {
  const session = incoming.headers['mcp-session-id'];
  const id = requestIdOf(admitted?.message) ?? resumedId;
  if (session === undefined || id === undefined) return () => undefined;
  return ports.aggregates.registerBackendRequest(session, id, upstream);
}

/** Replaces the session headers: the aggregate's session id means nothing to a backend, which has its own. */
function headersOf({ headers }: Incoming, { session, name, lastEventId }: BackendRequest): Incoming['headers'] {
  const backendHeaders: Record<string, string | undefined> = { ...headers };
  backendHeaders['mcp-session-id'] = session?.sealed;
  backendHeaders['last-event-id'] = lastEventId;
  if (session !== undefined && headers['mcp-protocol-version'] !== undefined)
    backendHeaders['mcp-protocol-version'] = session.version;
  if (name !== undefined && headers['mcp-name'] !== undefined) backendHeaders['mcp-name'] = encodeHeaderValue(name);
  return backendHeaders;
}

/** The ports of a backend request: those of the gateway, but with the aggregate's snapshots and its verified caller. */
function portsOf({ context, principal }: VerifiedRequest): Ports {
  const { aggregate, ports } = context;
  let isFirst = true;
  const identity: IdentityPort = {
    authenticate(incoming, outgoing) {
      // The caller of the request was just verified; later access checks verify it again.
      if (!isFirst) return ports.identity.authenticate(incoming, outgoing);
      isFirst = false;
      return principal;
    },
  };
  const snapshot = (upstream: string) => ports.aggregates.get(aggregate.name)?.snapshot(upstream);
  return { ...ports, identity, upstreams: { ...ports.upstreams, snapshot } };
}

const NO_TARGET = { kind: 'none' } as const;

/** The refusal of a request whose params are not valid here. */
export function refuseParams({ message }: AdmittedMessage, text: string): Refusal {
  return refuseProtocolError(protocolErrorOf('invalid-message', INVALID_PARAMS, text, errorContextOf(message), 200));
}

/** The refusal for items that do not exist and for items that the caller may not see: the same for both. */
export function refuseNotFound(): Refusal {
  return refuseWith('no-matching-allow', { listed: false });
}

/** Renders a refusal of the aggregate itself. */
function renderAggregateRefusal(
  { admitted, aggregate, incoming }: AggregateContext,
  refusal: Refusal,
): ReturnType<typeof renderRefusal> {
  return renderRefusal(refusal, {
    decisionId: incoming.id,
    protocol: admitted?.protocol,
    requestId: requestIdOf(admitted?.message),
    target: admitted?.target ?? NO_TARGET,
    method: admitted?.rule.method,
    challenge: (reason, scopes, proof) =>
      aggregate.challenge(reason, scopes, { scheme: presentedScheme(incoming), proof }),
  });
}

/** Responds with a refusal of the aggregate itself, if no response has begun, and notes it. */
export function refuseAggregate(context: AggregateContext, refusal: Refusal): void {
  const { admitted, outgoing, record } = context;
  context.hasBackendRecords = false;
  if (admitted !== undefined) fold(record, admissionFacts(context.ports.audit, admitted));
  const { stage, deny } = refusal;
  fold(record, { decision: { verdict: 'deny', stage, ...overridingFacts(deny) }, reason: deny.reason });
  const rendered = renderAggregateRefusal(context, refusal);
  const status = statusFor({ admitted }, rendered.status);
  const isDropped = status === ACCEPTED;
  const bytes = isDropped ? 0 : Buffer.byteLength(rendered.body);
  fold(record, { result: { http: status, rpcCode: rendered.rpcCode, bytes } });
  if (isDropped) outgoing.send(status, { 'sallyport-decision': context.incoming.id }, '');
  else outgoing.send(status, rendered.headers, rendered.body);
}

/** A bound for the framer only; each event was already bounded when it was read from its upstream. */
const MAX_EVENT_BYTES = 256 * 1024 * 1024;

const encoder = new TextEncoder();

/**
 * Creates the `write` of an `Outgoing` that passes each event to `onEvent`. The events were checked by the
 * backend's own pipeline and are parsed only to be joined with those of others. Back-pressure is that of `onEvent`.
 */
export function createEventWriter(onEvent: (event: SseEvent) => void | Promise<void>): Outgoing['write'] {
  const framer = createSseFramer({ maxEventBytes: MAX_EVENT_BYTES });
  return (bytes) => {
    const events = framer.push(typeof bytes === 'string' ? encoder.encode(bytes) : bytes);
    // Invalid framing cannot come from our own writers.
    if ('error' in events) throw new Error('an event stream of our own cannot be read');
    const waits = events.map(onEvent).filter((wait) => wait instanceof Promise);
    return waits.length === 0 ? undefined : Promise.all(waits).then(() => undefined);
  };
}

/** A backend's complete response. Without `text` it has a status and no JSON-RPC message, or broke off. */
type BackendResponse = {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: string;
  /** The JSON-RPC response, a result or an error. */
  readonly text: string | undefined;
};

/** Collects the response of one backend. */
type ResponseCollector = {
  readonly outgoing: Outgoing;
  /** Resolves once the response has arrived, or cannot arrive any more. */
  readonly response: Promise<BackendResponse>;
};

/** The status of a response that never arrived. */
const NO_STATUS = 0;
const NO_RESPONSE: BackendResponse = { status: NO_STATUS, headers: {}, body: '', text: undefined };
const decoder = new TextDecoder();

/**
 * Collects the response to the request `id`. Every other message of the stream is passed to `onOtherMessage` as it
 * arrives; `isGone` says that the response is no longer needed.
 */
export function collectResponse(
  id: RequestId | undefined,
  isGone: () => boolean,
  onOtherMessage: (text: string) => void | Promise<void>,
): ResponseCollector {
  let settle: (response: BackendResponse) => void = () => undefined;
  const response = new Promise<BackendResponse>((resolve) => {
    settle = resolve;
  });
  return {
    response,
    outgoing: {
      get isClosed() {
        return isGone();
      },
      // Such headers are sent to the client by the aggregate itself.
      addHeader: () => undefined,
      send(status, headers, body) {
        const joined = joinPieces(body);
        const text = typeof joined === 'string' ? joined : decoder.decode(joined);
        const isMessage = headers['content-type']?.startsWith('application/json') === true;
        settle({ status, headers, body: text, text: isMessage ? text : undefined });
      },
      open: () => undefined,
      write: createEventWriter((event) => {
        if (event.kind !== 'message' || event.data === '') return undefined;
        if (!isResponseTo(parseMessage(event.data), id)) return onOtherMessage(event.data);
        return settle({ status: 200, headers: {}, body: event.data, text: event.data });
      }),
      end: () => settle(NO_RESPONSE),
      disconnect: () => settle(NO_RESPONSE),
    },
  };
}

/** How long the other backends are waited for once one has responded. */
export const SLOW_BACKEND_WAIT_MS = 10_000;
export const JSON_HEADERS = { 'content-type': 'application/json' } as const;
/** How long those that are known to hang are waited for once all others have ended. */
const HANGING_BACKEND_WAIT_MS = 500;
const GATEWAY_TIMEOUT = 504;
const UNAUTHORIZED = 401;
const NOT_FOUND = 404;
const FIRST_CLIENT_ERROR_STATUS = 400;
const FIRST_SERVER_ERROR_STATUS = 500;
/** The refusal if no backend sent anything that can be relayed. */
const NO_USABLE_RESPONSE = refuseWith('upstream-protocol', {
  detail: 'no backend of the endpoint gave an answer that could be relayed',
});

export type BackendOutcome = {
  readonly backendRequest: BackendRequest;
  readonly response: BackendResponse;
};

export type FanOut = {
  /** What the backends returned in time, in the order of the backends. */
  readonly outcomes: readonly BackendOutcome[];
  /** What each backend returns, however late. */
  readonly pending: readonly Promise<BackendOutcome>[];
  /** Sends the joined response, as the last event if a stream has been opened. */
  send(text: string, headers?: Readonly<Record<string, string>>): void;
  /** Sends the failure of one backend: the given one, or any if nothing could be joined. */
  fail(failed?: BackendOutcome): void;
};

/**
 * Runs all backend requests, for at most `SLOW_BACKEND_WAIT_MS` (see `awaitBackends`) after the first success. Where
 * `hanging` is given, a backend costs that time once and is then waited for only shortly, until it answers in time.
 */
export async function requestBackends(
  verified: VerifiedRequest,
  backendRequests: readonly BackendRequest[],
  hanging: HangingBackends = NEVER_HANGING,
): Promise<FanOut> {
  const { context } = verified;
  const { outgoing } = context;
  const id = requestIdOf(context.admitted?.message);
  let isOpen = false;
  let isOver = false;
  /** Relays other messages at once, because the backend may wait for the reply to one of them. */
  function relayMessage(text: string): void | Promise<void> {
    if (isOver) return;
    if (!isOpen) outgoing.open(200, STREAM_HEADERS);
    isOpen = true;
    return outgoing.write(encodeSseMessage(text));
  }
  const pending = backendRequests.map(async (backendRequest): Promise<BackendOutcome> => {
    const collected = collectResponse(id, () => isOver || outgoing.isClosed, relayMessage);
    // A backend request that ends without a response counts as broken off.
    const run = runBackendRequest(verified, { ...backendRequest, isOneOfMany: true }, collected.outgoing);
    void run.then(() => collected.outgoing.end());
    return { backendRequest, response: await collected.response };
  });
  const startedMs = performance.now();
  for (const one of pending) void one.then((outcome) => noteEnd(hanging, outcome, performance.now() - startedMs));
  const names = backendRequests.map(({ backend }) => backend.upstream);
  const outcomes = await awaitBackends(pending, (index) => hanging.has(names[index] ?? ''));
  isOver = true;
  const ended = new Set(outcomes.map(({ backendRequest }) => backendRequest.backend.upstream));
  for (const name of names) if (!ended.has(name)) hanging.note(name, true);
  return {
    outcomes,
    pending,
    send(text, headers = {}) {
      if (isOpen) finish(outgoing, text);
      else outgoing.send(200, { ...JSON_HEADERS, ...headers }, text);
    },
    fail(failed) {
      const { status, headers, body, text } = failed?.response ?? chooseFailure(outcomes);
      if (isOpen) finish(outgoing, text ?? renderAggregateRefusal(context, NO_USABLE_RESPONSE).body);
      else if (status === NO_STATUS) refuseAggregate(context, NO_USABLE_RESPONSE);
      else outgoing.send(status, headers, body);
    },
  };
}

const NEVER_HANGING: HangingBackends = { has: () => false, note: () => undefined };

/** A backend stops counting as hanging once it answers within the time that a list waits. */
function noteEnd(
  hanging: HangingBackends,
  { backendRequest: { backend }, response }: BackendOutcome,
  tookMs: number,
): void {
  if (isTimeout(response)) hanging.note(backend.upstream, true);
  else if (response.status !== NO_STATUS && tookMs < SLOW_BACKEND_WAIT_MS) hanging.note(backend.upstream, false);
}

/** True if the backend did not answer its own request in time. */
export function isTimeout({ status }: BackendResponse): boolean {
  return status === GATEWAY_TIMEOUT;
}

function finish(outgoing: Outgoing, text: string): void {
  void outgoing.write(encodeSseMessage(text));
  outgoing.end();
}

/**
 * Waits for all responses, but no longer than `SLOW_BACKEND_WAIT_MS` after the first successful one, and no longer than
 * `HANGING_BACKEND_WAIT_MS` once only backends that hang are missing.
 */
async function awaitBackends(
  pendingOutcomes: readonly Promise<BackendOutcome>[],
  isHanging: (index: number) => boolean,
): Promise<readonly BackendOutcome[]> {
  const arrived: (BackendOutcome | undefined)[] = pendingOutcomes.map(() => undefined);
  let timer: NodeJS.Timeout | undefined;
  let shortTimer: NodeJS.Timeout | undefined;
  const isDone = (_one: unknown, index: number): boolean => arrived[index] !== undefined || isHanging(index);
  const slowBackendTimeout = new Promise<void>((resolve) => {
    for (const [index, one] of pendingOutcomes.entries()) {
      void one.then((outcome) => {
        arrived[index] = outcome;
        const { status } = outcome.response;
        if (status !== NO_STATUS && status < FIRST_CLIENT_ERROR_STATUS)
          timer ??= setTimeout(resolve, SLOW_BACKEND_WAIT_MS);
        if (timer !== undefined && pendingOutcomes.every(isDone))
          shortTimer ??= setTimeout(resolve, HANGING_BACKEND_WAIT_MS);
      });
    }
  });
  await Promise.race([Promise.all(pendingOutcomes), slowBackendTimeout]);
  clearTimeout(timer);
  clearTimeout(shortTimer);
  return arrived.filter((outcome) => outcome !== undefined);
}

/** Prefers a server error over a 4xx: a backend that could not respond says more than one that lacks the method. */
function chooseFailure(outcomes: readonly BackendOutcome[]): BackendResponse {
  const all = outcomes.map(({ response }) => response);
  const failure = all.find(({ status }) => status >= FIRST_SERVER_ERROR_STATUS) ?? all[0];
  if (failure === undefined) throw new Error('an aggregate has backends');
  return failure;
}

/**
 * A response because of which the whole request must fail: the caller is no longer authenticated, or the session
 * with this backend is lost, which only a new session can repair.
 */
export function findFatalOutcome(
  { context, principal }: VerifiedRequest,
  outcomes: readonly BackendOutcome[],
  session: SessionFacts | undefined,
): BackendOutcome | undefined {
  const { aggregate, ports } = context;
  const unauthorized = outcomes.find(({ response: { status } }) => status === UNAUTHORIZED);
  if (unauthorized !== undefined || session === undefined) return unauthorized;
  const lost = outcomes.find(
    ({ backendRequest: { backend }, response: { status } }) =>
      status === NOT_FOUND && ports.aggregates.reportLostBackend(aggregate.name, backend.upstream, principal),
  );
  if (lost !== undefined) context.lostSession = session;
  return lost;
}
