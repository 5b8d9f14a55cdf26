// Turns input-required results into server requests for a session-era client: each input request is sent on
// the open stream, and the client's replies go back with a retry of the original request. Whether a server
// request is allowed is checked on its way to the client, like every message.
// Source: MCP 2026-07-28, multi-round-trip requests; MCP 2025-11-25, sampling, elicitation, roots.

import { randomUUID } from 'node:crypto';
import { isObject, type Json, type JsonObject, type RequestId } from '../../../protocol/jsonrpc.js';
import {
  type InputRequest,
  type InputRequiredResult,
  readInputRequiredResult,
} from '../../../protocol/server-requests.js';
import {
  type DisconnectSignal,
  errorOfStatus,
  type ForwardOutcome,
  type UpstreamResponse,
} from '../../../protocol/transport.js';
import { type InboundItem, type ReadBounds, readMessages } from '../../message-reader.js';
import type { OutboundItem, OutboundItems } from '../local-response.js';
import {
  errorResponseText,
  type InputRetry,
  type SessionResponseContext,
  toSessionMessage,
} from '../message-translation.js';
import type { ServerRequestReply, SessionState } from './session-state.js';
import { createReplicaScopedId, type SessionBus } from './session-state.js';

/** What the rounds of one request need. */
type InputRequiredContext = {
  readonly reader: SessionResponseContext;
  readonly sessionState: SessionState;
  readonly sessionBus: Pick<SessionBus, 'self'>;
  /** Aborted when the response is no longer wanted. */
  readonly signal: DisconnectSignal;
  readonly bounds: ReadBounds;
  /** Retries the request with the client's responses. */
  sendRetry(retry: InputRetry): Promise<ForwardOutcome>;
  /** Called once, at the end. */
  removeRunning(): void;
};

/** Maximum number of retries of one request. */
const MAX_INPUT_ROUNDS = 32;
/** How long a client may take to reply. Milliseconds. */
const REPLY_TIMEOUT_MS = 30 * 60 * 1000;
/** Pending server requests per session. */
const MAX_WAITING = 64;

const UNANSWERED = 'A request of this server was not answered, so there is no result.';
const TOO_MANY_ROUNDS = 'This server requested input too many times.';
const MALFORMED = 'This server requested input in an unsupported form, or too much at once.';

/** How one response ended: with an input-required result, or complete. */
type Round = { readonly result: JsonObject } | undefined;

/** Relays the response and all rounds that follow from it. */
export async function* relayWithInputRounds(
  first: UpstreamResponse,
  context: InputRequiredContext,
): OutboundItems {
  const { id } = context.reader;
  let response = first;
  let sentId: RequestId = id;
  try {
    for (let rounds = 0; rounds < MAX_INPUT_ROUNDS; rounds += 1) {
      const round = yield* relayRound(response, { ...context.reader, sentId }, context.bounds);
      if (round === undefined) return;
      const retry = yield* nextRetry(round.result, context);
      if (retry === undefined) return;
      sentId = retry.id;
      const outcome = await context.sendRetry(retry);
      if (outcome.kind === 'error') return yield outcome;
      const reason = errorOfStatus(outcome.status);
      if (reason !== undefined) {
        outcome.release();
        return yield { kind: 'error', reason };
      }
      response = outcome;
    }
    yield outboundText(errorResponseText(id, TOO_MANY_ROUNDS));
  } finally {
    context.removeRunning();
  }
}

function outboundText(text: string): OutboundItem {
  return { kind: 'message', text };
}

/** Translates a received item for a session-era client. */
export function toSessionItem(inbound: InboundItem, reader: SessionResponseContext): OutboundItem {
  if (inbound.kind !== 'message') return inbound;
  const { text, value } = inbound;
  return value === undefined
    ? { kind: 'message', text }
    : outboundText(toSessionMessage(text, value, reader));
}

/** Relays one response up to its end or to an input-required result. */
async function* relayRound(
  response: UpstreamResponse,
  reader: SessionResponseContext,
  bounds: ReadBounds,
): AsyncGenerator<OutboundItem, Round> {
  for await (const inbound of readMessages(response, bounds)) {
    const result = inputRequiredResultOf(inbound, reader.sentId);
    if (result !== undefined) return { result };
    yield toSessionItem(inbound, reader);
    if (isOwnResponse(inbound, reader.sentId)) return undefined;
  }
  return undefined;
}

function isOwnResponse(inbound: InboundItem, sentId: RequestId): boolean {
  return inbound.kind === 'message' && isObject(inbound.value) && inbound.value['id'] === sentId;
}

/** Sends the server requests and returns the retry; `undefined` if the client got an error instead. */
async function* nextRetry(
  result: JsonObject,
  context: InputRequiredContext,
): AsyncGenerator<OutboundItem, InputRetry | undefined> {
  const { id } = context.reader;
  const inputRequired = readInputRequiredResult(result);
  const free = MAX_WAITING - context.sessionState.waiting.size;
  if (inputRequired === undefined || inputRequired.inputRequests.length > free) {
    yield outboundText(errorResponseText(id, MALFORMED));
    return undefined;
  }
  const responses = yield* requestInput(inputRequired, context);
  if (responses !== undefined) return { id: randomUUID(), responses, state: inputRequired.state };
  yield outboundText(errorResponseText(id, UNANSWERED));
  return undefined;
}

function inputRequiredResultOf(inbound: InboundItem, sentId: RequestId): JsonObject | undefined {
  if (inbound.kind !== 'message' || !isObject(inbound.value) || inbound.value['id'] !== sentId)
    return undefined;
  const result = inbound.value['result'];
  return isObject(result) && result['resultType'] === 'input_required' ? result : undefined;
}

/** Sends the server requests and waits for all replies; `undefined` if one will not come. */
async function* requestInput(
  { inputRequests }: InputRequiredResult,
  { sessionState, sessionBus, signal }: InputRequiredContext,
): AsyncGenerator<OutboundItem, JsonObject | undefined> {
  const sentRequests = inputRequests.map((inputRequest) => ({
    id: createReplicaScopedId(sessionBus),
    inputRequest,
  }));
  const replies = sentRequests.map(({ id }) => waitForReply(sessionState, id, signal));
  try {
    for (const { id, inputRequest } of sentRequests)
      yield outboundText(requestText(id, inputRequest));
    const responses: Record<string, Json> = {};
    for (const [index, { inputRequest }] of sentRequests.entries()) {
      const reply = await replies[index]?.reply;
      if (reply?.kind !== 'result') return undefined;
      responses[inputRequest.key] = reply.result;
    }
    return responses;
  } finally {
    for (const { end } of replies) end();
  }
}

function requestText(id: string, { name, params }: InputRequest): string {
  return JSON.stringify({ jsonrpc: '2.0', id, method: METHODS[name], params });
}

const METHODS: { readonly [name in InputRequest['name']]: string } = {
  sampling: 'sampling/createMessage',
  'elicitation/form': 'elicitation/create',
  'elicitation/url': 'elicitation/create',
  roots: 'roots/list',
};

function waitForReply(
  sessionState: SessionState,
  id: string,
  signal: DisconnectSignal,
): { readonly reply: Promise<ServerRequestReply>; end(): void } {
  const noReply: ServerRequestReply = { kind: 'error', error: undefined };
  let settle: (reply: ServerRequestReply) => void = () => undefined;
  const reply = new Promise<ServerRequestReply>((resolve) => {
    settle = resolve;
  });
  const resolveWithoutReply = (): void => settle(noReply);
  const timer = setTimeout(resolveWithoutReply, REPLY_TIMEOUT_MS);
  timer.unref();
  if (signal.aborted) resolveWithoutReply();
  signal.addEventListener('abort', resolveWithoutReply, { once: true });
  sessionState.waiting.set(id, settle);
  return {
    reply,
    end() {
      clearTimeout(timer);
      signal.removeEventListener('abort', resolveWithoutReply);
      sessionState.waiting.delete(id);
      resolveWithoutReply();
    },
  };
}
