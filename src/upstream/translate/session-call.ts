// One streamed answer of a session as its stateless client gets it. A request of the server in mid-call
// ends the client's leg with a result that asks, while the call itself waits; the next leg goes on with it.
// Source: MCP 2026-07-28, multi-round-trip requests; MCP 2025-11-25, transports.

import type { Admitted } from '../../mcp/admitted.js';
import { mayAskFirst } from '../../mcp/asking.js';
import { isObject, type Json, type JsonObject, type QuestionName } from '../../mcp/message.js';
import { readQuestion } from '../../mcp/questions.js';
import { questionResult, type SentAs, tellStateless } from '../../mcp/translate/to-sessions.js';
import type { LeaveSignal, UpstreamAnswer } from '../../mcp/transport.js';
import type { Caller } from '../../policy/caller.js';
import type { StatelessParts } from './for-stateless.js';
import { type Heard, hear } from './messages.js';
import { type Conversation, type Said, streamAnswer } from './own-answer.js';
import type { Parked } from './parking.js';
import type { PooledSession } from './session-pool.js';

/** A call under way in a session. */
export type SessionCall = {
  readonly parts: StatelessParts;
  readonly by: Caller;
  readonly session: PooledSession;
  readonly sent: SentAs;
  /** What its client declared and was granted. */
  readonly askable: readonly QuestionName[];
  /** Gives the call up, and tells the server so. */
  cancel(): void;
  /** The call has its answer. */
  end(): void;
};

const QUESTION_KEY = 'question';
const NO_SUCH_METHOD = { code: -32601, message: 'Method not found' };
const DECLINED = { code: -32603, message: 'The client gave no answer.' };

/** The answer of a call, as it comes. */
export function relayInSession(call: SessionCall, answer: UpstreamAnswer): UpstreamAnswer {
  const heard = hear(answer, call.parts);
  // Told to its end, it is let go by the conversation itself, unless it is parked.
  const ground = { release: () => undefined, abort: () => call.cancel() };
  return streamAnswer(tellLeg(call, heard), ground);
}

/**
 * Goes on with a parked call: its server gets the client's answer, its client the rest. `undefined` where too much
 * is on its way to the server: then nothing has changed.
 */
export function resume(
  { call, rest, question, key }: Parked,
  { admitted, by }: { readonly admitted: Admitted; readonly by: Caller },
  signal: LeaveSignal | undefined,
): Conversation | undefined {
  const { message } = admitted;
  const params = 'params' in message ? message.params : undefined;
  const responses = params?.['inputResponses'];
  const response = isObject(responses) ? responses[key] : undefined;
  const reply: JsonObject = isObject(response) ? { result: response } : { error: DECLINED };
  const said: JsonObject = { jsonrpc: '2.0', id: question, ...reply };
  if (!call.parts.tell(call.session, by, said)) return undefined;
  signal?.addEventListener('abort', call.cancel, { once: true });
  const id = message.kind === 'request' ? message.id : call.sent.id;
  return tellLeg({ ...call, by, sent: { ...call.sent, id } }, rest);
}

/** Tells one leg: up to the answer, or to a question. */
async function* tellLeg(call: SessionCall, rest: AsyncIterator<Heard, unknown>): Conversation {
  let isParked = false;
  try {
    for (;;) {
      const { done, value: heard } = await rest.next();
      if (done === true) return;
      const step = stepOf(call, rest, heard);
      isParked = step.isParked;
      if (step.said !== undefined) yield step.said;
      if (step.isLast) return;
    }
  } finally {
    if (!isParked) {
      call.end();
      await rest.return?.(undefined);
    }
  }
}

type Step = {
  readonly said: Said | undefined;
  readonly isLast: boolean;
  readonly isParked: boolean;
};

/** What becomes of one thing that was heard. */
function stepOf(call: SessionCall, rest: AsyncIterator<Heard, unknown>, heard: Heard): Step {
  if (heard.kind !== 'message') return { said: heard, isLast: false, isParked: false };
  const { text, value } = heard;
  const asked = readServerRequest(value);
  if (asked !== undefined) {
    const question = park(call, rest, asked);
    // One that may not be asked goes on as it came: whoever judges this answer drops it, and records that.
    const said = { kind: 'message', text: question ?? text } as const;
    return { said, isLast: question !== undefined, isParked: question !== undefined };
  }
  const told = value === undefined ? text : tellStateless(text, value, call.sent);
  return {
    said: told === undefined ? undefined : { kind: 'message', text: told },
    isLast: isOwnAnswer(value, call.sent),
    isParked: false,
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

function isOwnAnswer(value: Json | undefined, { sentId }: SentAs): boolean {
  return isObject(value) && value['id'] === sentId && !('method' in value);
}

/** The result that asks; `undefined` where the server was answered here. */
function park(
  call: SessionCall,
  rest: AsyncIterator<Heard, unknown>,
  { id, method, params }: ServerRequest,
): string | undefined {
  const { parts, by, session, sent, askable } = call;
  if (method === 'ping') {
    parts.tell(session, by, { jsonrpc: '2.0', id, result: {} }, true);
    return undefined;
  }
  const name = readQuestion(method, params);
  const mayAsk = name !== undefined && name !== 'malformed' && askable.includes(name);
  const handle =
    mayAsk && mayAskFirst(sent.method)
      ? parts.parking.enter({ call, rest, question: id, key: QUESTION_KEY }, by.principal)
      : undefined;
  if (handle === undefined) {
    parts.tell(session, by, { jsonrpc: '2.0', id, error: NO_SUCH_METHOD }, true);
    return undefined;
  }
  return questionResult(sent.id, QUESTION_KEY, { method, params }, handle);
}
