// One streamed answer of a session as its stateless client gets it. A request of the server in mid-call
// ends the client's leg with a result that asks, while the call itself waits; the next leg goes on with it.
// Source: MCP 2026-07-28, multi-round-trip requests; MCP 2025-11-25, transports.

import type { Admitted } from '../../mcp/admitted.js';
import { canRequireInput } from '../../mcp/asking.js';
import { isObject, type Json, type JsonObject, type ServerRequestName } from '../../mcp/message.js';
import { serverRequestNameOf } from '../../mcp/questions.js';
import {
  inputRequiredResult,
  type SentAs,
  toStatelessMessage,
} from '../../mcp/translate/to-sessions.js';
import type { LeaveSignal, UpstreamResponse } from '../../mcp/transport.js';
import type { Caller } from '../../policy/caller.js';
import type { StatelessParts } from './for-stateless.js';
import { type InboundItem, readMessages } from './messages.js';
import { type Conversation, type OutboundItem, streamResponse } from './own-answer.js';
import type { SuspendedCall } from './parking.js';
import type { PooledSession } from './session-pool.js';

/** A call under way in a session. */
export type SessionCall = {
  readonly parts: StatelessParts;
  readonly by: Caller;
  readonly session: PooledSession;
  readonly sent: SentAs;
  /** What its client declared and was granted. */
  readonly allowedServerRequests: readonly ServerRequestName[];
  /** Gives the call up, and tells the server so. */
  cancel(): void;
  /** The call has its answer. */
  end(): void;
};

const INPUT_REQUEST_KEY = 'question';
const NO_SUCH_METHOD = { code: -32601, message: 'Method not found' };
const DECLINED = { code: -32603, message: 'The client gave no answer.' };

/** The answer of a call, as it comes. */
export function relayInSession(call: SessionCall, response: UpstreamResponse): UpstreamResponse {
  const inboundItems = readMessages(response, call.parts);
  // Told to its end, it is let go by the conversation itself, unless it is parked.
  const source = { release: () => undefined, abort: () => call.cancel() };
  return streamResponse(relayUntilInputRequired(call, inboundItems), source);
}

/**
 * Goes on with a parked call: its server gets the client's answer, its client the rest. `undefined` where too much
 * is on its way to the server: then nothing has changed.
 */
export function resume(
  { call, rest, requestId, key }: SuspendedCall,
  { admitted, by }: { readonly admitted: Admitted; readonly by: Caller },
  signal: LeaveSignal | undefined,
): Conversation | undefined {
  const { message } = admitted;
  const params = 'params' in message ? message.params : undefined;
  const responses = params?.['inputResponses'];
  const response = isObject(responses) ? responses[key] : undefined;
  const reply: JsonObject = isObject(response) ? { result: response } : { error: DECLINED };
  const replyMessage: JsonObject = { jsonrpc: '2.0', id: requestId, ...reply };
  if (!call.parts.sendInSession(call.session, by, replyMessage)) return undefined;
  signal?.addEventListener('abort', call.cancel, { once: true });
  const id = message.kind === 'request' ? message.id : call.sent.id;
  return relayUntilInputRequired({ ...call, by, sent: { ...call.sent, id } }, rest);
}

/** Tells one leg: up to the answer, or to a question. */
async function* relayUntilInputRequired(
  call: SessionCall,
  rest: AsyncIterator<InboundItem, unknown>,
): Conversation {
  let isSuspended = false;
  try {
    for (;;) {
      const { done, value: inbound } = await rest.next();
      if (done === true) return;
      const step = stepOf(call, rest, inbound);
      isSuspended = step.isSuspended;
      if (step.outbound !== undefined) yield step.outbound;
      if (step.isLast) return;
    }
  } finally {
    if (!isSuspended) {
      call.end();
      await rest.return?.(undefined);
    }
  }
}

type Step = {
  readonly outbound: OutboundItem | undefined;
  readonly isLast: boolean;
  readonly isSuspended: boolean;
};

/** What becomes of one thing that was heard. */
function stepOf(
  call: SessionCall,
  rest: AsyncIterator<InboundItem, unknown>,
  inbound: InboundItem,
): Step {
  if (inbound.kind !== 'message') return { outbound: inbound, isLast: false, isSuspended: false };
  const { text, value } = inbound;
  const asked = readServerRequest(value);
  if (asked !== undefined) {
    const inputRequired = suspend(call, rest, asked);
    // One that may not be asked goes on as it came: whoever judges this answer drops it, and records that.
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
    isLast: isOwnResponse(value, call.sent),
    isSuspended: false,
  };
}

type ServerRequest = {
  readonly id: string | number;
  readonly method: string;
  readonly params: JsonObject | undefined;
};

function readServerRequest(value: Json | undefined): ServerRequest | undefined {
  if (!isObject(value)) return undefined;
  const { id, method, params } = value as { readonly [name: string]: Json | undefined };
  if (typeof method !== 'string' || !(typeof id === 'string' || typeof id === 'number'))
    return undefined;
  return { id, method, params: isObject(params) ? params : undefined };
}

function isOwnResponse(value: Json | undefined, { sentId }: SentAs): boolean {
  return isObject(value) && value['id'] === sentId && !('method' in value);
}

/** The result that asks; `undefined` where the server was answered here. */
function suspend(
  call: SessionCall,
  rest: AsyncIterator<InboundItem, unknown>,
  { id, method, params }: ServerRequest,
): string | undefined {
  const { parts, by, session, sent, allowedServerRequests } = call;
  if (method === 'ping') {
    parts.sendInSession(session, by, { jsonrpc: '2.0', id, result: {} }, true);
    return undefined;
  }
  const name = serverRequestNameOf(method, params);
  const mayRequireInput =
    name !== undefined && name !== 'malformed' && allowedServerRequests.includes(name);
  const handle =
    mayRequireInput && canRequireInput(sent.method)
      ? parts.suspendedCalls.enter(
          { call, rest, requestId: id, key: INPUT_REQUEST_KEY },
          by.principal,
        )
      : undefined;
  if (handle === undefined) {
    parts.sendInSession(session, by, { jsonrpc: '2.0', id, error: NO_SUCH_METHOD }, true);
    return undefined;
  }
  return inputRequiredResult(sent.id, INPUT_REQUEST_KEY, { method, params }, handle);
}
