// Writes the JSON-RPC bodies that the gateway makes itself, always with members in the same order, so
// that two refusals that must not be told apart differ in their ids alone.
// Nothing here takes text from the wire except the request id.
// Source: JSON-RPC 2.0 §5; MCP 2025-11-25 and 2026-07-28, tools, resources, prompts; contract §6.

import { INVALID_PARAMS, METHOD_NOT_FOUND } from './faults.js';
import type { Era, Json, RequestId, Target } from './message.js';

/** The member of `data` and `_meta` that names the decision behind a refusal. */
export const DECISION_MEMBER = 'dev.sallyport/decision';

/** Session eras have a code of their own for resources (MCP 2025-11-25, resources, error handling). */
const RESOURCE_NOT_FOUND = -32002;

/** Names a decision; `reason` only where the caller may know that the thing exists. */
export type DecisionNote = { readonly id: string; readonly reason: string };

/** A JSON-RPC error. Without an id there is no `id` member (MCP transports: "an error without id"). */
export function renderError(
  id: RequestId | undefined,
  code: number,
  message: string,
  data?: Json,
): string {
  const error = data === undefined ? { code, message } : { code, message, data };
  return JSON.stringify({ jsonrpc: '2.0', id, error });
}

/**
 * The era's "not found" of a kind of thing: what a caller gets for what does not exist and, byte for
 * byte but for ids, for what it may not see. Sent with HTTP 200.
 */
export function renderNotFound(
  era: Era | undefined,
  target: Target,
  id: RequestId | undefined,
  decisionId: string,
): string {
  const [code, message] = notFound(era, target.kind);
  return renderError(id, code, message, { [DECISION_MEMBER]: { id: decisionId } });
}

/** A refused tool call that the caller may know about: a result that a model can act on, HTTP 200. */
export function renderToolRefusal(
  era: Era | undefined,
  id: RequestId | undefined,
  text: string,
  decision: DecisionNote,
): string {
  const refusal = {
    content: [{ type: 'text', text }],
    isError: true,
    _meta: decisionData(decision),
  };
  const result = era === '2026' ? { resultType: 'complete', ...refusal } : refusal;
  return JSON.stringify({ jsonrpc: '2.0', id, result });
}

/** A refusal of another method that the caller may know about: an error with our own code, HTTP 200. */
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

function notFound(era: Era | undefined, kind: Target['kind']): readonly [number, string] {
  switch (kind) {
    case 'tool':
      return [INVALID_PARAMS, 'Unknown tool'];
    case 'prompt':
      return [INVALID_PARAMS, 'Unknown prompt'];
    case 'resource':
      return [era === '2026' ? INVALID_PARAMS : RESOURCE_NOT_FOUND, 'Resource not found'];
    case 'template':
      return [INVALID_PARAMS, 'Unknown resource template'];
    case 'task':
      return [INVALID_PARAMS, 'Task not found'];
    case 'question':
    case 'none':
      return [METHOD_NOT_FOUND, 'Method not found'];
  }
}
