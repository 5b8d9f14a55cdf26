// Reads what an upstream says, against what was asked: its own answer, a notification that is carried,
// a request of its own, or something that belongs nowhere. Content is not looked at here.
// Source: JSON-RPC 2.0 §5; MCP 2025-11-25 and 2026-07-28, base protocol, results.

import type { MethodRule } from './admitted.js';
import { readEnvelope } from './jsonrpc.js';
import type { Era, Json, JsonObject, RequestId, RpcError } from './message.js';
import { findMethod } from './methods.js';
import { isMisspelt, RESULT_SPELLING } from './spelling.js';

/** What the exchange waits for. On a stream that nobody asked for, `id` is undefined. */
export type Expectation = {
  readonly era: Era;
  readonly id: RequestId | undefined;
  readonly version: string;
};

export type Answer =
  | { readonly kind: 'own-result'; readonly result: JsonObject }
  | { readonly kind: 'own-error'; readonly error: RpcError }
  | {
      readonly kind: 'notification';
      readonly rule: MethodRule;
      readonly method: string;
      readonly params: JsonObject | undefined;
    }
  /** A request of the server's own; it is passed on, or answered by the gateway, in session eras alone. */
  | {
      readonly kind: 'server-request';
      readonly id: RequestId;
      readonly method: string;
      readonly params: JsonObject | undefined;
    }
  /** Well-formed, but not ours: another id, or a notification that is not carried. To be dropped. */
  | { readonly kind: 'foreign' }
  | { readonly kind: 'malformed' };

/**
 * Classifies one message of an upstream. An id must equal the expected one in type and value.
 * In 2026 a result must be complete: any other `resultType` is malformed here, since neither questions
 * nor tasks are carried.
 * Source: MCP 2026-07-28, base protocol, resultType (absent means complete).
 */
export function readAnswer(value: Json, expect: Expectation): Answer {
  const message = readEnvelope(value);
  switch (message.kind) {
    case 'batch':
    case 'malformed':
      return { kind: 'malformed' };
    case 'request':
      return { ...message, kind: 'server-request' };
    case 'notification': {
      const { method, params } = message;
      const rule = findMethod(expect.era, 'server', method);
      return rule?.type === 'notification'
        ? { kind: 'notification', rule, method, params }
        : { kind: 'foreign' };
    }
    case 'error':
      return isOwn(message.id, expect)
        ? { kind: 'own-error', error: message.error }
        : { kind: 'foreign' };
    case 'result':
      return isOwn(message.id, expect)
        ? readResult(message.result, expect.era)
        : { kind: 'foreign' };
  }
}

function isOwn(id: RequestId | undefined, expect: Expectation): boolean {
  return id !== undefined && id === expect.id;
}

function readResult(result: JsonObject, era: Era): Answer {
  if (isMisspelt(result, RESULT_SPELLING)) return { kind: 'malformed' };
  const type = result['resultType'];
  const isComplete = era !== '2026' || type === undefined || type === 'complete';
  return isComplete ? { kind: 'own-result', result } : { kind: 'malformed' };
}
