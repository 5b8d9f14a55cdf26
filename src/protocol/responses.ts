// Classifies a message of an upstream by what the gateway expects: the response to its request, a supported
// notification, a server request, or a message that does not belong to it. Does not look at content.
// Source: JSON-RPC 2.0 §5; MCP 2025-11-25 and 2026-07-28, base protocol, results.

import type { MethodRule } from './admitted-request.js';
import type { Json } from './jsonrpc.js';
import { type JsonObject, type RequestId, type RpcError, readEnvelope } from './jsonrpc.js';
import { findMethod } from './methods.js';
import { DEFINED_RESULT_MEMBERS, hasMisspelledMember } from './params.js';
import type { ExpectedResult, ProtocolVersion } from './versions/revisions.js';

/** The response that is expected. On a stream that no request opened, `id` is undefined. */
type Expectation = ExpectedResult & {
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
      return isResponseTo(message.id, expect)
        ? { kind: 'response-error', error: message.error }
        : { kind: 'foreign' };
    case 'result':
      return isResponseTo(message.id, expect)
        ? readResult(message.result, expect)
        : { kind: 'foreign' };
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
