// Classifies a message of an upstream by what the gateway expects: the response to its request, a supported
// notification, a server request, or a message that does not belong to it. Does not look at content.
// Source: JSON-RPC 2.0 §5; MCP 2025-11-25 and 2026-07-28, base protocol, results.

import type { MethodRule } from './admitted-request.js';
import type { Json } from './jsonrpc.js';
import {
  type Era,
  isObject,
  type JsonObject,
  type RequestId,
  type RpcError,
  readEnvelope,
} from './jsonrpc.js';
import { findMethod, isSubscriptionNotification } from './methods.js';
import { DEFINED_RESULT_MEMBERS, hasMisspelledMember } from './params.js';
import { TASK_SESSION_VERSION } from './tasks.js';

/** The response that is expected. On a stream that no request opened, `id` is undefined. */
export type Expectation = {
  readonly era: Era;
  readonly id: RequestId | undefined;
  readonly version: string;
  /** The response is the stream of a subscription (2026). */
  readonly isListening?: boolean;
  /** The response may ask for input (2026, for three methods). */
  readonly mayRequireInput?: boolean;
  /** Whether the response may be a task; undefined for a method that has no tasks. */
  readonly mayDefer?: boolean | undefined;
};

export type UpstreamMessage =
  | { readonly kind: 'own-result'; readonly result: JsonObject }
  /** A result that requires input first; its input requests are not checked here. */
  | { readonly kind: 'own-question'; readonly result: JsonObject }
  /** The outcome comes later: the result is the task that will deliver it. */
  | { readonly kind: 'own-task'; readonly result: JsonObject }
  | { readonly kind: 'own-error'; readonly error: RpcError }
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
 * Classifies one message of an upstream. An id must equal the expected one in type and value. In 2026 a
 * result is complete, or asks for input or is a task where that is possible; any other `resultType` is
 * malformed. In 2025-11-25 a task is in a member of the result.
 * Source: MCP 2026-07-28, base protocol, resultType (absent means complete).
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
      const rule = findMethod(expect.era, 'server', method, expect.version);
      return rule?.type === 'notification' && isExpectedNotification(method, expect)
        ? { kind: 'notification', rule, method, params }
        : { kind: 'foreign' };
    }
    case 'error':
      return isOwn(message.id, expect)
        ? { kind: 'own-error', error: message.error }
        : { kind: 'foreign' };
    case 'result':
      return isOwn(message.id, expect) ? readResult(message.result, expect) : { kind: 'foreign' };
  }
}

function isOwn(id: RequestId | undefined, expect: Expectation): boolean {
  return id !== undefined && id === expect.id;
}

function isExpectedNotification(
  method: string,
  { era, isListening = false }: Expectation,
): boolean {
  return era !== '2026' || isSubscriptionNotification(method) === isListening;
}

function readResult(result: JsonObject, expect: Expectation): UpstreamMessage {
  if (hasMisspelledMember(result, DEFINED_RESULT_MEMBERS)) return { kind: 'malformed' };
  if (expect.era !== '2026') return readSessionResult(result, expect);
  switch (result['resultType']) {
    case undefined:
    case 'complete':
      return { kind: 'own-result', result };
    case 'input_required':
      return expect.mayRequireInput === true
        ? { kind: 'own-question', result }
        : { kind: 'malformed' };
    case 'task':
      return expect.mayDefer === true ? { kind: 'own-task', result } : { kind: 'malformed' };
    default:
      return { kind: 'malformed' };
  }
}

/** A server without tasks answers the call at once, even if a task was requested. */
function readSessionResult(
  result: JsonObject,
  { version, mayDefer }: Expectation,
): UpstreamMessage {
  const isTask =
    version === TASK_SESSION_VERSION && mayDefer !== undefined && isObject(result['task']);
  if (!isTask) return { kind: 'own-result', result };
  return mayDefer === true ? { kind: 'own-task', result } : { kind: 'malformed' };
}
