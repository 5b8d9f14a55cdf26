// Requests of a server for input, across the eras. For a stateless client of a session-era server, a server request
// during a call ends the client's response with an input-required result while the call itself is suspended; the
// client's retry resumes it. Suspended calls are bounded in number and time. For a session-era client of a stateless
// server, each input request of an input-required result is sent on the open stream as a server request, and the
// client's replies go back with a retry of the original request. Whether a server request is allowed is checked on its
// way to the client, like every message.
// Source: MCP 2026-07-28, multi-round-trip requests (requestState); MCP 2025-11-25, transports, sampling, elicitation,
// roots.

import { randomUUID } from 'node:crypto';
import { type Caller, type Owner, ownerKey } from '../../policy/principal.js';
import type { AdmittedMessage } from '../../protocol/admitted-request.js';
import { applyEdits, type Path, spanOf } from '../../protocol/json/json.js';
import { renderJson } from '../../protocol/json/request-ids.js';
import {
  isObject,
  isRequestId,
  isResponseTo,
  type Json,
  type JsonObject,
  type RequestId,
  requestIdOf,
  type ServerRequestName,
} from '../../protocol/jsonrpc.js';
import { paramsOf } from '../../protocol/params.js';
import { INTERNAL_ERROR, METHOD_NOT_FOUND } from '../../protocol/responses.js';
import {
  canRequireInput,
  type InputRequest,
  type InputRequiredResult,
  readInputRequiredResult,
  serverRequestNameOf,
} from '../../protocol/server-requests.js';
import {
  type DisconnectSignal,
  type ForwardOutcome,
  onAbort,
  type UpstreamResponse,
} from '../../protocol/transport.js';
import { errorOfStatus } from '../../protocol/upstream-status.js';
import { createQuota } from '../../state/bounds.js';
import {
  type InboundItem,
  type OutboundItem,
  type OutboundItems,
  type ReadBounds,
  readMessages,
  streamResponse,
} from '../response-messages.js';
import {
  errorResponseText,
  type InputRetry,
  inputRequiredResult,
  type SessionResponseContext,
  type TranslatedPages,
  type TranslatedRequest,
  toSessionMessage,
  toStatelessMessage,
} from './message-translation.js';
import {
  createReplicaScopedId,
  type ServerRequestReply,
  type SessionBus,
  type SessionState,
  type TranslationSettings,
} from './session-over-stateless/session-state.js';
import type { PooledSession, SendInSession, SessionPool } from './stateless-over-session/session-pool.js';

export type StatelessSettings = TranslationSettings & { readonly now: () => number };

/** What serving stateless clients on sessions depends on. */
export type StatelessDependencies = StatelessSettings & {
  readonly pool: SessionPool;
  readonly suspendedCalls: SuspendedCalls;
  readonly pages: TranslatedPages;
  readonly sendInSession: SendInSession;
};

/** A call with a pending server request: the rest of its response, and the id of that request. */
export type SuspendedCall = {
  readonly call: SessionCall;
  readonly remainingItems: AsyncIterator<InboundItem, unknown>;
  readonly requestId: RequestId;
  /** The key of the client's response. */
  readonly key: string;
};

/**
 * Suspended calls by handle. A handle is hard to guess and leaves the gateway only sealed to its caller and
 * request. It names this replica, because only this one holds the call's connection.
 */
type SuspendedCalls = {
  /** The handle of the call; `undefined` if the limit per caller or in total is reached. */
  add(suspended: SuspendedCall, caller: Owner): string | undefined;
  /** The call with this handle; it remains suspended. */
  find(handle: string): SuspendedCall | undefined;
  /** Removes the call with this handle and returns it. */
  remove(handle: string): SuspendedCall | undefined;
  close(): void;
};

export const MAX_SUSPENDED_CALLS = 256;
/** Keeps one caller from using up the total. */
export const MAX_SUSPENDED_CALLS_PER_CALLER = 32;
/** How long a call may be suspended until its client retries. Milliseconds. */
const MAX_SUSPENDED_MS = 10 * 60 * 1000;

type SuspendedEntry = {
  readonly suspended: SuspendedCall;
  readonly timer: NodeJS.Timeout;
  readonly owner: string;
};

/** Creates an empty table. */
export function createSuspendedCalls(sessionBus: Pick<SessionBus, 'self'>): SuspendedCalls {
  const waiting = new Map<string, SuspendedEntry>();
  const quota = createQuota({
    total: MAX_SUSPENDED_CALLS,
    perOwner: MAX_SUSPENDED_CALLS_PER_CALLER,
  });

  function remove(handle: string): SuspendedCall | undefined {
    const found = waiting.get(handle);
    waiting.delete(handle);
    if (found === undefined) return undefined;
    clearTimeout(found.timer);
    quota.give(found.owner);
    return found.suspended;
  }

  return {
    add(suspended, caller) {
      const owner = ownerKey(caller);
      if (!quota.take(owner)) return undefined;
      const handle = createReplicaScopedId(sessionBus);
      const timer = setTimeout(() => remove(handle)?.call.cancel(), MAX_SUSPENDED_MS);
      timer.unref();
      waiting.set(handle, { suspended, timer, owner });
      return handle;
    },
    find: (handle) => waiting.get(handle)?.suspended,
    remove,
    close() {
      for (const handle of [...waiting.keys()]) remove(handle)?.call.cancel();
    },
  };
}

/** A call in progress in a session. */
export type SessionCall = {
  readonly dependencies: StatelessDependencies;
  readonly caller: Caller;
  readonly session: PooledSession;
  readonly sent: TranslatedRequest;
  /** What its client declared and was granted. */
  readonly allowedServerRequests: readonly ServerRequestName[];
  /** Cancels the call and notifies the server. */
  cancel(): void;
  /** Called when the call has its response. */
  end(): void;
};

const INPUT_REQUEST_KEY = 'request';
const NO_SUCH_METHOD = { code: METHOD_NOT_FOUND, message: 'Method not found' };
const DECLINED = { code: INTERNAL_ERROR, message: 'The client did not reply.' };

/** The response to a call, as it arrives. */
export function relayInSession(call: SessionCall, response: UpstreamResponse): UpstreamResponse {
  const inboundItems = readMessages(response, call.dependencies);
  // At its end the conversation itself releases the response, unless the call is suspended.
  const source = { release: () => undefined, abort: () => call.cancel() };
  return streamResponse(relayUntilInputRequired(call, inboundItems), source);
}

/**
 * Resumes a suspended call: the server gets the client's response, the client the rest of the call's.
 * `undefined` if too much is queued for the server; nothing has changed then.
 */
export function resumeCall(
  { call, remainingItems, requestId, key }: SuspendedCall,
  { admitted, caller }: { readonly admitted: AdmittedMessage; readonly caller: Caller },
  signal: DisconnectSignal | undefined,
): OutboundItems | undefined {
  const responses = paramsOf(admitted)['inputResponses'];
  const hasResult = isObject(responses) && isObject(responses[key]);
  const sent = applyEdits(admitted.text, admitted.edits);
  const reply = hasResult
    ? `"result":${textAt(sent, ['params', 'inputResponses', key])}`
    : `"error":${JSON.stringify(DECLINED)}`;
  const replyText = `{"jsonrpc":"2.0","id":${renderJson(requestId)},${reply}}`;
  if (!call.dependencies.sendInSession(call.session, caller, replyText)) return undefined;
  if (signal !== undefined) onAbort(signal, call.cancel);
  const id = requestIdOf(admitted.message) ?? call.sent.id;
  return relayUntilInputRequired({ ...call, caller, sent: { ...call.sent, id } }, remainingItems);
}

/** What stands in a message, byte for byte, because numbers may be ones that no double holds. */
function textAt(text: string, path: Path): string {
  const span = spanOf(text, path);
  return span === undefined ? '{}' : text.slice(span.start, span.end);
}

/** Relays until the call's response or until a server request suspends the call. */
async function* relayUntilInputRequired(
  call: SessionCall,
  remainingItems: AsyncIterator<InboundItem, unknown>,
): OutboundItems {
  let isSuspended = false;
  try {
    for (;;) {
      const { done, value: inbound } = await remainingItems.next();
      if (done === true) return;
      const step = stepOf(call, remainingItems, inbound);
      isSuspended = step.isSuspended;
      if (step.outbound !== undefined) yield step.outbound;
      if (step.isLast) return;
    }
  } finally {
    if (!isSuspended) {
      call.end();
      await remainingItems.return?.(undefined);
    }
  }
}

type StreamStep = {
  readonly outbound: OutboundItem | undefined;
  readonly isLast: boolean;
  readonly isSuspended: boolean;
};

/** Decides what one received item becomes. */
function stepOf(
  call: SessionCall,
  remainingItems: AsyncIterator<InboundItem, unknown>,
  inbound: InboundItem,
): StreamStep {
  if (inbound.kind !== 'message') {
    if (inbound.kind === 'error' && inbound.reason === 'upstream-timeout') call.cancel();
    return { outbound: inbound, isLast: false, isSuspended: false };
  }
  const { text, value } = inbound;
  const serverRequest = readServerRequest(text, value);
  if (serverRequest !== undefined) {
    const inputRequired = suspendCall(call, remainingItems, serverRequest);
    if (serverRequest.method === 'ping') return { outbound: undefined, isLast: false, isSuspended: false };
    // A disallowed server request is relayed unchanged; the check of this response drops and records it.
    const outbound = { kind: 'message', text: inputRequired ?? text } as const;
    return {
      outbound,
      isLast: inputRequired !== undefined,
      isSuspended: inputRequired !== undefined,
    };
  }
  const translated = value === undefined ? text : toStatelessMessage(text, value, call.sent);
  return {
    outbound: translated === undefined ? undefined : { kind: 'message', text: translated },
    isLast: isResponseTo(value, call.sent.sentId),
    isSuspended: false,
  };
}

type ServerRequest = {
  readonly id: string | number;
  readonly method: string;
  readonly params: JsonObject | undefined;
  /** The params as the server wrote them. */
  readonly paramsText: string;
};

function readServerRequest(text: string, value: Json | undefined): ServerRequest | undefined {
  if (!isObject(value)) return undefined;
  const { id, method, params } = value as { readonly [name: string]: Json | undefined };
  if (typeof method !== 'string' || !isRequestId(id)) return undefined;
  if (!isObject(params)) return { id, method, params: undefined, paramsText: '{}' };
  return { id, method, params, paramsText: textAt(text, ['params']) };
}

/** Suspends the call and returns the input-required result; `undefined` if the gateway replied itself. */
function suspendCall(
  call: SessionCall,
  remainingItems: AsyncIterator<InboundItem, unknown>,
  { id, method, params, paramsText }: ServerRequest,
): string | undefined {
  const { dependencies, caller, session, sent, allowedServerRequests } = call;
  if (method === 'ping') {
    dependencies.sendInSession(session, caller, { jsonrpc: '2.0', id, result: {} }, true);
    return undefined;
  }
  const name = serverRequestNameOf(method, params);
  const mayRequireInput = name !== undefined && name !== 'malformed' && allowedServerRequests.includes(name);
  const handle =
    mayRequireInput && canRequireInput(sent.method)
      ? dependencies.suspendedCalls.add(
          { call, remainingItems, requestId: id, key: INPUT_REQUEST_KEY },
          caller.principal,
        )
      : undefined;
  if (handle === undefined) {
    dependencies.sendInSession(session, caller, { jsonrpc: '2.0', id, error: NO_SUCH_METHOD }, true);
    return undefined;
  }
  const inputRequest = { method, params: paramsText };
  return inputRequiredResult(sent.id, { [INPUT_REQUEST_KEY]: inputRequest }, handle);
}

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
const MAX_WAITING_SERVER_REQUESTS = 64;

const UNANSWERED = 'A request of this server was not answered, so there is no result.';
const TOO_MANY_ROUNDS = 'This server requested input too many times.';
const MALFORMED = 'This server requested input in an unsupported form, or too much at once.';

/** How one response ended: with an input-required result, or complete. */
type Round = { readonly result: JsonObject; readonly text: string } | undefined;

/** Relays the response and all rounds that follow from it. */
export async function* relayWithInputRounds(first: UpstreamResponse, context: InputRequiredContext): OutboundItems {
  const { id } = context.reader;
  let response = first;
  let sentId: RequestId = id;
  try {
    for (let rounds = 0; rounds < MAX_INPUT_ROUNDS; rounds += 1) {
      const round = yield* relayRound(response, { ...context.reader, sentId }, context.bounds);
      if (round === undefined) return;
      const retry = yield* nextRetry(round, context);
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
  return value === undefined ? { kind: 'message', text } : outboundText(toSessionMessage(text, value, reader));
}

/** Relays one response up to its end or to an input-required result. */
async function* relayRound(
  response: UpstreamResponse,
  reader: SessionResponseContext,
  bounds: ReadBounds,
): AsyncGenerator<OutboundItem, Round> {
  for await (const inbound of readMessages(response, bounds)) {
    const result = inputRequiredResultOf(inbound, reader.sentId);
    if (result !== undefined) return result;
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
  { result, text }: NonNullable<Round>,
  context: InputRequiredContext,
): AsyncGenerator<OutboundItem, InputRetry | undefined> {
  const { id } = context.reader;
  const inputRequired = readInputRequiredResult(result);
  const free = MAX_WAITING_SERVER_REQUESTS - context.sessionState.waiting.size;
  if (inputRequired === undefined || inputRequired.inputRequests.length > free) {
    yield outboundText(errorResponseText(id, MALFORMED));
    return undefined;
  }
  const responses = yield* requestInput(inputRequired, text, context);
  if (responses !== undefined) return { id: randomUUID(), responses, state: inputRequired.state };
  yield outboundText(errorResponseText(id, UNANSWERED));
  return undefined;
}

function inputRequiredResultOf(inbound: InboundItem, sentId: RequestId): Round {
  if (inbound.kind !== 'message' || !isObject(inbound.value) || inbound.value['id'] !== sentId) return undefined;
  const result = inbound.value['result'];
  return isObject(result) && result['resultType'] === 'input_required' ? { result, text: inbound.text } : undefined;
}

/** Sends the server requests and waits for all replies, in JSON by key; `undefined` if one will not come. */
async function* requestInput(
  { inputRequests }: InputRequiredResult,
  text: string,
  { sessionState, sessionBus, signal }: InputRequiredContext,
): AsyncGenerator<OutboundItem, string | undefined> {
  const sentRequests = inputRequests.map((inputRequest) => ({
    id: createReplicaScopedId(sessionBus),
    inputRequest,
  }));
  const replies = sentRequests.map(({ id }) => waitForReply(sessionState, id, signal));
  try {
    for (const { id, inputRequest } of sentRequests) yield outboundText(requestText(id, inputRequest, text));
    const responses: string[] = [];
    for (const [index, { inputRequest }] of sentRequests.entries()) {
      const reply = await replies[index]?.reply;
      if (reply?.kind !== 'result') return undefined;
      responses.push(`${JSON.stringify(inputRequest.key)}:${reply.text}`);
    }
    return `{${responses.join(',')}}`;
  } finally {
    for (const { end } of replies) end();
  }
}

/** The server request for one of the input requests of a result, whose text this is. */
function requestText(id: string, { key, name }: InputRequest, text: string): string {
  const params = textAt(text, ['result', 'inputRequests', key, 'params']);
  const method = SERVER_REQUEST_METHODS[name];
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"${method}","params":${params}}`;
}

const SERVER_REQUEST_METHODS: { readonly [name in InputRequest['name']]: string } = {
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
