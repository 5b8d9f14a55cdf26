// Sends a request to several backends at once and collects their responses. A backend that is down, slow or
// refuses is missing from the joined response and never fails the others; only if none responds is the request
// refused, with the refusal of one backend.

import { refuseWith } from '../../policy/refusal.js';
import type { SessionFacts } from '../../protocol/admitted-request.js';
import type { Json } from '../../protocol/jsonrpc.js';
import { isObject, type RequestId } from '../../protocol/jsonrpc.js';
import { createSseFramer, encodeSseMessage, type SseEvent } from '../../protocol/sse.js';
import { joinPieces, type Outgoing, type ResponseHeaders } from '../../protocol/transport.js';
import type { HangingBackends } from '../ports.js';
import { STREAM_HEADERS } from '../sse-response.js';
import {
  type AggregateContext,
  type BackendRequest,
  refuseAggregate,
  renderAggregateRefusal,
  runBackendRequest,
  type VerifiedRequest,
} from './requests.js';

/** A bound for the framer only; each event was already bounded when it was read from its upstream. */
const MAX_EVENT_BYTES = 256 * 1024 * 1024;

const encoder = new TextEncoder();

/**
 * Creates the `write` of an `Outgoing` that passes each event to `onEvent`. The events were checked by the
 * backend's own pipeline and are parsed only to be joined with those of others. Back-pressure is that of `onEvent`.
 */
export function createEventWriter(
  onEvent: (event: SseEvent) => void | Promise<void>,
): Outgoing['write'] {
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
 * arrives; `mustEnd` says that the response is no longer needed.
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
        if (!isResponseTo(id, event.data)) return onOtherMessage(event.data);
        return settle({ status: 200, headers: {}, body: event.data, text: event.data });
      }),
      end: () => settle(NO_RESPONSE),
      disconnect: () => settle(NO_RESPONSE),
    },
  };
}

function isResponseTo(id: RequestId | undefined, text: string): boolean {
  const message: Json = JSON.parse(text);
  return isObject(message) && message['method'] === undefined && message['id'] === id;
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
const NO_USABLE_RESPONSE = refuseWith('upstream-protocol');

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
  const id = requestIdOf(context);
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
    const run = runBackendRequest(
      verified,
      { ...backendRequest, isOneOfMany: true },
      collected.outgoing,
    );
    void run.then(() => collected.outgoing.end());
    return { backendRequest, response: await collected.response };
  });
  const startedMs = performance.now();
  for (const one of pending)
    void one.then((outcome) => noteEnd(hanging, outcome, performance.now() - startedMs));
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
      if (isOpen)
        finish(outgoing, text ?? renderAggregateRefusal(context, NO_USABLE_RESPONSE).body);
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
  else if (response.status !== NO_STATUS && tookMs < SLOW_BACKEND_WAIT_MS)
    hanging.note(backend.upstream, false);
}

/** True if the backend did not answer its own request in time. */
export function isTimeout({ status }: BackendResponse): boolean {
  return status === GATEWAY_TIMEOUT;
}

function requestIdOf({ admitted }: AggregateContext): RequestId | undefined {
  return admitted?.message.kind === 'request' ? admitted.message.id : undefined;
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
  const isDone = (_one: unknown, index: number): boolean =>
    arrived[index] !== undefined || isHanging(index);
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
      status === NOT_FOUND &&
      ports.aggregates.reportLostBackend(aggregate.name, backend.upstream, principal),
  );
  if (lost !== undefined) context.lostSession = session;
  return lost;
}
