// Reads the envelope of one JSON-RPC message: which of the four shapes it is, and nothing else.
// Never looks into params or results; never repairs what is malformed.
// Source: JSON-RPC 2.0 §4 and §5; MCP 2025-11-25 and 2026-07-28, base protocol, messages.

import { isObject, type Json, type JsonObject, type Message, type RequestId } from './message.js';

export type EnvelopeReading =
  | Message
  /** `id` is there when it could be read, so that the answer can name the request. */
  | { readonly kind: 'malformed'; readonly id?: RequestId }
  | { readonly kind: 'batch' };

const REQUEST_MEMBERS = new Set(['jsonrpc', 'id', 'method', 'params']);
const RESULT_MEMBERS = new Set(['jsonrpc', 'id', 'result']);
const ERROR_MEMBERS = new Set(['jsonrpc', 'id', 'error']);
const ERROR_OBJECT_MEMBERS = new Set(['code', 'message', 'data']);

/**
 * Reads an envelope. Exactly one of the shapes request, notification, result and error, no unknown
 * member, `jsonrpc` exactly "2.0", ids strings or safe integers (`null` only on an error). An array is
 * reported as `batch`, whatever it holds.
 * Source: JSON-RPC 2.0 §4, §5, §6; MCP 2025-11-25, base protocol (ids are never null).
 */
export function readEnvelope(value: Json): EnvelopeReading {
  if (Array.isArray(value)) return { kind: 'batch' };
  if (!isObject(value)) return { kind: 'malformed' };
  return readCall(value) ?? readResult(value) ?? readFailure(value) ?? malformed(value);
}

/** True for an id that MCP allows: a string or a safe integer. */
export function isRequestId(value: Json | undefined): value is RequestId {
  return typeof value === 'string' || Number.isSafeInteger(value);
}

function readCall(value: JsonObject): Message | undefined {
  const { method, params, id } = own(value);
  if (typeof method !== 'string' || !isClosed(value, REQUEST_MEMBERS)) return undefined;
  if (params !== undefined && !isObject(params)) return undefined;
  if (id === undefined) return { kind: 'notification', method, params };
  return isRequestId(id) ? { kind: 'request', id, method, params } : undefined;
}

function readResult(value: JsonObject): Message | undefined {
  const { id, result } = own(value);
  if (!isObject(result) || !isRequestId(id)) return undefined;
  return isClosed(value, RESULT_MEMBERS) ? { kind: 'result', id, result } : undefined;
}

function readFailure(value: JsonObject): Message | undefined {
  const { id, error } = own(value);
  if (!isObject(error) || !isClosed(value, ERROR_MEMBERS)) return undefined;
  if (id !== undefined && id !== null && !isRequestId(id)) return undefined;
  const code = error['code'];
  const message = error['message'];
  if (typeof code !== 'number' || !Number.isSafeInteger(code)) return undefined;
  if (typeof message !== 'string' || !hasOnly(error, ERROR_OBJECT_MEMBERS)) return undefined;
  const data = error['data'];
  const failure = data === undefined ? { code, message } : { code, message, data };
  return { kind: 'error', id: id ?? undefined, error: failure };
}

function malformed(value: JsonObject): EnvelopeReading {
  const id = value['id'];
  return isRequestId(id) ? { kind: 'malformed', id } : { kind: 'malformed' };
}

/** The members that an envelope may have. None of the names is on Object.prototype. */
function own(value: JsonObject): {
  readonly method?: Json;
  readonly params?: Json;
  readonly id?: Json;
  readonly result?: Json;
  readonly error?: Json;
} {
  return value;
}

function isClosed(value: JsonObject, allowed: ReadonlySet<string>): boolean {
  return value['jsonrpc'] === '2.0' && hasOnly(value, allowed);
}

function hasOnly(value: JsonObject, allowed: ReadonlySet<string>): boolean {
  for (const name in value) if (!allowed.has(name)) return false;
  return true;
}
