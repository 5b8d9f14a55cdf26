// Responses, of an upstream and of the gateway itself. Classifies a message of an upstream by what the gateway expects:
// the response to its request, a supported notification, a server request, or a message that does not belong to it;
// does not look at content. Makes the errors of admission and the JSON-RPC bodies that the gateway writes itself:
// members are always in the same order, so that two refusals that must be indistinguishable differ in their ids alone,
// and no text quotes the message. Only the request id is repeated, and the requested version if it has the form of one.
// Source: JSON-RPC 2.0 §5 and §5.1; MCP 2025-11-25 and 2026-07-28, base protocol, transports, error codes, tools,
// resources, prompts; docs/reference/responses.md.

import type { MethodRule, ProtocolError } from './admitted-request.js';
import { replaceAt, setMember } from './json/json.js';
import { renderJson } from './json/request-ids.js';
import {
  type Json,
  type JsonObject,
  type Message,
  type RequestId,
  type RpcError,
  readEnvelope,
  type Target,
} from './jsonrpc.js';
import { findMethod } from './methods.js';
import { DEFINED_RESULT_MEMBERS, hasMisspelledMember } from './params.js';
import { APPROVAL_KEY } from './server-requests.js';
import type { ExpectedResult, PromptForm, ProtocolVersion } from './versions/revisions.js';

/** The response that is expected. On a stream that no request opened, `id` is undefined. */
export type Expectation = ExpectedResult & {
  readonly protocol: ProtocolVersion;
  readonly id: RequestId | undefined;
  /** The response is the stream of a subscription (2026). */
  readonly isListening?: boolean;
};

export type UpstreamMessage =
  | { readonly kind: 'response-result'; readonly result: JsonObject }
  /** A result that requires input first; its input requests are not checked here. */
  | { readonly kind: 'response-input-required'; readonly result: JsonObject }
  /** The outcome comes later: the result is the task that will deliver it. */
  | { readonly kind: 'response-task'; readonly result: JsonObject }
  | { readonly kind: 'response-error'; readonly error: RpcError }
  | {
      readonly kind: 'notification';
      readonly rule: MethodRule;
      readonly method: string;
      readonly params: JsonObject | undefined;
    }
  /** A server request; session eras only. It is forwarded, or answered by the gateway. */
  | {
      readonly kind: 'server-request';
      readonly id: RequestId;
      readonly method: string;
      readonly params: JsonObject | undefined;
    }
  /** Well-formed, but unrelated: another id, or a notification that is not supported. To be dropped. */
  | { readonly kind: 'foreign' }
  | { readonly kind: 'malformed' };

/**
 * Classifies one message of an upstream. An id must equal the expected one in type and value. A result is
 * complete, or asks for input or is a task where that is possible.
 * Source: MCP 2026-07-28, base protocol, resultType; MCP 2025-11-25, tasks.
 */
export function classifyUpstreamMessage(value: Json, expect: Expectation): UpstreamMessage {
  const message = readEnvelope(value);
  switch (message.kind) {
    case 'batch':
    case 'malformed':
      return { kind: 'malformed' };
    case 'request':
      return { ...message, kind: 'server-request' };
    case 'notification': {
      const { method, params } = message;
      const { protocol, version, isListening = false } = expect;
      const rule = findMethod(protocol.era, 'server', method, version);
      return rule?.type === 'notification' && protocol.carriesNotification(method, isListening)
        ? { kind: 'notification', rule, method, params }
        : { kind: 'foreign' };
    }
    case 'error':
      return isResponseTo(message.id, expect) ? { kind: 'response-error', error: message.error } : { kind: 'foreign' };
    case 'result':
      return isResponseTo(message.id, expect) ? readResult(message.result, expect) : { kind: 'foreign' };
  }
}

function isResponseTo(id: RequestId | undefined, expect: Expectation): boolean {
  return id !== undefined && id === expect.id;
}

function readResult(result: JsonObject, expect: Expectation): UpstreamMessage {
  if (hasMisspelledMember(result, DEFINED_RESULT_MEMBERS)) return { kind: 'malformed' };
  const kind = expect.protocol.kindOfResult(result, expect);
  return kind === 'malformed' ? { kind } : { kind, result };
}

export const PARSE_ERROR = -32700;
export const INVALID_REQUEST = -32600;
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;
export const INTERNAL_ERROR = -32603;
/** Sessions have a separate code for resources (MCP 2025-11-25, resources, error handling). */
export const RESOURCE_NOT_FOUND = -32002;
export const HEADER_MISMATCH = -32020;
export const MISSING_CAPABILITY = -32021;
export const UNSUPPORTED_VERSION = -32022;
/** The user must visit a page first (MCP 2025-11-25, elicitation). */
export const URL_ELICITATION_REQUIRED = -32042;
/** The gateway's own code for a session that cannot be opened; outside -32768..-32000. */
export const UNKNOWN_SESSION = 1404;

/** What is known of the message that an error belongs to: its request id. */
export type ErrorContext = { readonly id?: RequestId | undefined };

/** The context of an error about this message. */
export function errorContextOf(message: Message): ErrorContext {
  return message.kind === 'request' ? { id: message.id } : {};
}

// The form of a version: anything else that was requested is not repeated.
const VERSION_FORM = /^[A-Za-z0-9.-]{1,32}$/;

/** A protocol error with status 400, the default of docs/reference/responses.md. */
export function protocolErrorOf(
  reason: ProtocolError['reason'],
  code: number,
  message: string,
  errorContext: ErrorContext,
  status = 400,
): ProtocolError {
  const error: ProtocolError = { kind: 'error', reason, status, code, message };
  return errorContext.id === undefined ? error : { ...error, id: errorContext.id };
}

/** 400 / -32600: not one valid message. */
export function invalidMessage(errorContext: ErrorContext, message: string): ProtocolError {
  return protocolErrorOf('invalid-message', INVALID_REQUEST, message, errorContext);
}

/** -32602: the envelope is valid, the params are not. The era says with which status (`statusOfInvalidParams`). */
export function invalidParams(errorContext: ErrorContext, message: string, status?: number): ProtocolError {
  return protocolErrorOf('invalid-message', INVALID_PARAMS, message, errorContext, status);
}

/** 400 / -32020: a header is missing, repeated, malformed or differs from the body. */
export function headerMismatch(errorContext: ErrorContext, message: string): ProtocolError {
  return protocolErrorOf('header-mismatch', HEADER_MISMATCH, message, errorContext);
}

/** 400 / -32020: a header that mirrors an argument is unreadable, or two readers could see two values in it. */
export function malformedParamHeader(errorContext: ErrorContext): ProtocolError {
  return headerMismatch(errorContext, 'A header that mirrors an argument is repeated or malformed.');
}

/** 406: the client accepts no media type of the response (RFC 9110 §15.5.7). */
export function notAcceptable(errorContext: ErrorContext): ProtocolError {
  const text = 'The Accept header excludes every media type of the response.';
  return protocolErrorOf('invalid-message', INVALID_REQUEST, text, errorContext, 406);
}

/** 400 with `data.supported` and `data.requested`: -32022, or -32602 inside a session. */
export function unsupportedVersion(
  errorContext: ErrorContext,
  requested: string,
  supported: readonly string[],
  code: number = UNSUPPORTED_VERSION,
): ProtocolError {
  const error = protocolErrorOf('unsupported-version', code, 'Unsupported protocol version', errorContext);
  const echo = VERSION_FORM.test(requested) ? requested : '';
  return { ...error, data: { supported, requested: echo } };
}

/** What the gateway has a client ask its user: to open a page, or for a plain yes. `id`: of the approval. */
export type UserPrompt =
  | { readonly mode: 'url'; readonly url: string; readonly message: string; readonly id: string }
  | { readonly mode: 'form'; readonly message: string; readonly id: string };

/** The member of `data` and `_meta` that names the decision behind a refusal. */
export const DECISION_MEMBER = 'dev.sallyport/decision';

/** Names a decision and its reason; only for a caller that may know that the target exists. */
type DecisionNote = { readonly id: string; readonly reason: string };

/** Renders a JSON-RPC error. Without an id there is no `id` member (MCP transports: "an error without id"). */
export function renderError(id: RequestId | undefined, code: number, message: string, data?: Json): string {
  const error = data === undefined ? { code, message } : { code, message, data };
  return renderJson({ jsonrpc: '2.0', id, error });
}

/**
 * The version's "not found" for a kind of target: the response for what does not exist and, byte for byte
 * except for ids, for what the caller may not see. Sent with HTTP 200.
 */
export function renderNotFound(
  protocol: ProtocolVersion | undefined,
  target: Target,
  id: RequestId | undefined,
  decisionId: string,
): string {
  const [code, message] = notFound(protocol, target.kind);
  return renderError(id, code, message, { [DECISION_MEMBER]: { id: decisionId } });
}

/** A refused tool call that the caller may know about: a tool result that a model can act on, HTTP 200. */
export function renderToolRefusal(
  protocol: ProtocolVersion | undefined,
  id: RequestId | undefined,
  text: string,
  decision: DecisionNote,
): string {
  const refusal = {
    content: [{ type: 'text', text }],
    isError: true,
    _meta: decisionData(decision),
  };
  const result = { ...protocol?.completeResult, ...refusal };
  return renderJson({ jsonrpc: '2.0', id, result });
}

/** The answer by which a client asks its user (MCP 2026-07-28, multi-round-trip requests; 2025-11-25, elicitation). */
export function renderPrompt(
  form: PromptForm,
  id: RequestId | undefined,
  prompt: UserPrompt,
  { text, decision }: { readonly text: string; readonly decision: DecisionNote },
): { readonly body: string; readonly rpcCode: number | undefined } {
  if (form === 'error') {
    const elicitations = prompt.mode === 'url' ? [elicitationOf(prompt, prompt.id)] : [];
    const data = { elicitations, ...decisionData(decision) };
    return { body: renderError(id, URL_ELICITATION_REQUIRED, text, data), rpcCode: URL_ELICITATION_REQUIRED };
  }
  const inputRequests = { [APPROVAL_KEY]: { method: 'elicitation/create', params: elicitationOf(prompt) } };
  const result = { resultType: 'input_required', inputRequests, _meta: decisionData(decision) };
  return { body: renderJson({ jsonrpc: '2.0', id, result }), rpcCode: undefined };
}

/** The params of an elicitation. `elicitationId` belongs to the revision that has the error. */
export function elicitationOf(prompt: UserPrompt, elicitationId?: string): JsonObject {
  const { mode, message } = prompt;
  if (mode === 'url') return { mode, message, url: prompt.url, ...(elicitationId !== undefined && { elicitationId }) };
  return {
    ...{ mode, message },
    requestedSchema: {
      type: 'object',
      properties: { approve: { type: 'boolean', title: 'Approve this request', default: false } },
      required: ['approve'],
    },
  };
}

/** A refusal of another method that the caller may know about: an error with the gateway's own code, HTTP 200. */
export function renderMethodRefusal(
  id: RequestId | undefined,
  code: number,
  text: string,
  decision: DecisionNote,
): string {
  return renderError(id, code, text, decisionData(decision));
}

function decisionData(decision: DecisionNote): { readonly [member: string]: Json } {
  return { [DECISION_MEMBER]: { id: decision.id, reason: decision.reason } };
}

function notFound(protocol: ProtocolVersion | undefined, kind: Target['kind']): readonly [number, string] {
  switch (kind) {
    case 'tool':
      return [INVALID_PARAMS, 'Unknown tool. Request the list again.'];
    case 'prompt':
      return [INVALID_PARAMS, 'Unknown prompt. Request the list again.'];
    case 'resource':
      return [protocol?.resourceNotFoundCode ?? RESOURCE_NOT_FOUND, 'Resource not found. Request the list again.'];
    case 'template':
      return [INVALID_PARAMS, 'Unknown resource template. Request the list again.'];
    case 'task':
      return [INVALID_PARAMS, 'Task not found'];
    case 'server-request':
    case 'none':
      return [METHOD_NOT_FOUND, 'Method not found'];
  }
}

/** An error under the id of the request that it answers. */
export function withId(text: string, id: RequestId | undefined): string {
  if (id === undefined) return text;
  return replaceAt(text, ['id'], renderJson(id)) ?? setMember(text, [], 'id', id);
}
