// Asks several members at once and joins what they answer. A member that is down, late or refuses is missing
// from the answer and never takes the others with it; only where none answers is the whole refused, in the
// words of a member.

import { refuseWith } from '../../policy/refusal.js';
import { isObject, type Json, type RequestId } from '../../protocol/jsonrpc.js';
import { createSseFramer, encodeSseMessage, type SseEvent } from '../../protocol/sse.js';
import { inOnePiece, type Outgoing, type ResponseHeaders } from '../../protocol/transport.js';
import { STREAM_HEADERS } from '../sse-response.js';
import {
  type AggregateContext,
  type BackendRequest,
  refuseAggregate,
  renderAggregateRefusal,
  runBackendRequest,
  type Verified,
} from './requests.js';

// Reads the event stream that a member's exchange writes, event by event: what comes here was judged, and is
// taken apart only to be joined with what others say.

/** Each event was bounded when it was read from its upstream. */
const MAX_EVENT_BYTES = 256 * 1024 * 1024;

const encoder = new TextEncoder();

/** The `write` of an end that hands each event to `take`; its pace is that of whoever takes. */
export function readWritten(take: (event: SseEvent) => void | Promise<void>): Outgoing['write'] {
  const framer = createSseFramer({ maxEventBytes: MAX_EVENT_BYTES });
  return (bytes) => {
    const events = framer.push(typeof bytes === 'string' ? encoder.encode(bytes) : bytes);
    // Invalid framing cannot come from our own writers.
    if ('error' in events) throw new Error('an event stream of our own cannot be read');
    const waits = events.map(take).filter((wait) => wait instanceof Promise);
    return waits.length === 0 ? undefined : Promise.all(waits).then(() => undefined);
  };
}

// Where a member's answer goes that is to be joined with others: the one message that answers the request is
// kept, whatever else its stream says is handed on as it comes.

/** A member's whole answer. Without `text` it has a status and no message, or broke off. */
type BackendResponse = {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: string;
  /** The JSON-RPC message that answers, be it a result or an error. */
  readonly text: string | undefined;
};

/** A member's end of a joined answer. */
type Collected = {
  readonly outgoing: Outgoing;
  /** Settles once the answer has come, or cannot come any more. */
  readonly response: Promise<BackendResponse>;
};

/** The status of an answer that never came. */
const BROKEN_OFF = 0;
const NOTHING: BackendResponse = { status: BROKEN_OFF, headers: {}, body: '', text: undefined };
const decoder = new TextDecoder();

/**
 * Collects the answer to the request `id`. `others` is told of every other message of the stream; `isGone`
 * says that nobody waits any more.
 */
export function collectResponse(
  id: RequestId | undefined,
  isGone: () => boolean,
  others: (text: string) => void | Promise<void>,
): Collected {
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
      // The whole has told the client what there is to tell.
      also: () => undefined,
      send(status, headers, body) {
        const joined = inOnePiece(body);
        const text = typeof joined === 'string' ? joined : decoder.decode(joined);
        const isMessage = headers['content-type']?.startsWith('application/json') === true;
        settle({ status, headers, body: text, text: isMessage ? text : undefined });
      },
      open: () => undefined,
      write: readWritten((event) => {
        if (event.kind !== 'message' || event.data === '') return undefined;
        if (!isResponseTo(id, event.data)) return others(event.data);
        return settle({ status: 200, headers: {}, body: event.data, text: event.data });
      }),
      end: () => settle(NOTHING),
      cut: () => settle(NOTHING),
    },
  };
}

function isResponseTo(id: RequestId | undefined, text: string): boolean {
  const message: Json = JSON.parse(text);
  return isObject(message) && message['method'] === undefined && message['id'] === id;
}

/** How long members that still think are waited for once another has answered. */
const PATIENCE_MS = 10_000;
const JSON_HEADERS = { 'content-type': 'application/json' } as const;
const UNAUTHORIZED = 401;
const NOT_FOUND = 404;
const FIRST_REFUSAL = 400;
const FIRST_SERVER_ERROR = 500;
/** Where a member said nothing that could be passed on. */
const BROKEN = refuseWith('upstream-protocol');

export type BackendOutcome = {
  readonly backendRequest: BackendRequest;
  readonly response: BackendResponse;
};

/** What came of asking: answers in the order of the members. */
export type FanOut = {
  readonly outcomes: readonly BackendOutcome[];
  /** Sends the joined answer, as the last event where a stream has begun. */
  send(text: string, headers?: Readonly<Record<string, string>>): void;
  /** Answers in the words of one member: of this one, or of any where nothing could be joined. */
  fail(failed?: BackendOutcome): void;
};

/** Asks every part; resolves when all have answered, or those that answered have waited long enough. */
export async function requestBackends(
  verified: Verified,
  backendRequests: readonly BackendRequest[],
): Promise<FanOut> {
  const { context } = verified;
  const { outgoing } = context;
  const id = requestIdOf(context);
  let isOpen = false;
  let isOver = false;
  /** What a member says besides its answer is passed on at once: it may be a question that it waits for. */
  function passOn(text: string): void | Promise<void> {
    if (isOver) return;
    if (!isOpen) outgoing.open(200, STREAM_HEADERS);
    isOpen = true;
    return outgoing.write(encodeSseMessage(text));
  }
  const asked = backendRequests.map(async (backendRequest): Promise<BackendOutcome> => {
    const collected = collectResponse(id, () => isOver || outgoing.isClosed, passOn);
    // A part that ends without a word has answered nothing.
    const run = runBackendRequest(
      verified,
      { ...backendRequest, isOneOfMany: true },
      collected.outgoing,
    );
    void run.then(() => collected.outgoing.end());
    return { backendRequest, response: await collected.response };
  });
  const outcomes = await awaitBackends(asked);
  isOver = true;
  return {
    outcomes,
    send(text, headers = {}) {
      if (isOpen) finish(outgoing, text);
      else outgoing.send(200, { ...JSON_HEADERS, ...headers }, text);
    },
    fail(failed) {
      const { status, headers, body, text } = failed?.response ?? chooseFailure(outcomes);
      if (isOpen) finish(outgoing, text ?? renderAggregateRefusal(context, BROKEN).body);
      else if (status === BROKEN_OFF) refuseAggregate(context, BROKEN);
      else outgoing.send(status, headers, body);
    },
  };
}

function requestIdOf({ admitted }: AggregateContext): RequestId | undefined {
  return admitted?.message.kind === 'request' ? admitted.message.id : undefined;
}

function finish(outgoing: Outgoing, text: string): void {
  void outgoing.write(encodeSseMessage(text));
  outgoing.end();
}

/** All answers, or those that have come once the first good one has waited for the others. */
async function awaitBackends(
  asked: readonly Promise<BackendOutcome>[],
): Promise<readonly BackendOutcome[]> {
  const outcomesByIndex = new Map<number, BackendOutcome>();
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    for (const [index, one] of asked.entries()) {
      void one.then((outcome) => {
        outcomesByIndex.set(index, outcome);
        const { status } = outcome.response;
        if (status !== BROKEN_OFF && status < FIRST_REFUSAL)
          timer ??= setTimeout(resolve, PATIENCE_MS);
      });
    }
  });
  await Promise.race([Promise.all(asked), late]);
  clearTimeout(timer);
  return [...outcomesByIndex.keys()]
    .sort((a, b) => a - b)
    .flatMap((index) => outcomesByIndex.get(index) ?? []);
}

/** A member that could not answer says more than one that knows no such method. */
function chooseFailure(outcomes: readonly BackendOutcome[]): BackendResponse {
  const all = outcomes.map(({ response }) => response);
  const failure = all.find(({ status }) => status >= FIRST_SERVER_ERROR) ?? all[0];
  if (failure === undefined) throw new Error('an endpoint has members');
  return failure;
}

/**
 * The answer of a member that says that the whole must be given up: the caller is not known any more, or the
 * session with this member is lost, which only a new one mends.
 */
export function findFatal(
  { context: { aggregate, ports }, principal }: Verified,
  outcomes: readonly BackendOutcome[],
  hasSession: boolean,
): BackendOutcome | undefined {
  const isReported = (upstream: string): boolean =>
    ports.reportLostBackend(aggregate.name, upstream, principal);
  return (
    outcomes.find(({ response: { status } }) => status === UNAUTHORIZED) ??
    outcomes.find(
      ({ backendRequest, response: { status } }) =>
        hasSession && status === NOT_FOUND && isReported(backendRequest.backend.upstream),
    )
  );
}
