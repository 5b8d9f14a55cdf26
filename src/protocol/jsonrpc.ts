// The message types of JSON-RPC 2.0 as MCP uses it, and the reader of one envelope: which of the four shapes
// it has, and nothing else. Never looks into params or results; never repairs what is malformed.
// Source: JSON-RPC 2.0 §4 and §5; MCP 2025-11-25 and 2026-07-28, base protocol, messages.

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

/** A JSON object. Read members with brackets: `params['name']`. */
export type JsonObject = { readonly [member: string]: Json };

/** A JSON-RPC id: a string or any number (see json/request-ids.ts for numbers that no double holds), never null. */
export type RequestId = string | number;

/** The JSON-RPC error object. */
export type RpcError = { readonly code: number; readonly message: string; readonly data?: Json };

/** A message with a valid envelope: exactly one of the four shapes and no unknown member. */
export type Message =
  | {
      readonly kind: 'request';
      readonly id: RequestId;
      readonly method: string;
      readonly params: JsonObject | undefined;
    }
  | {
      readonly kind: 'notification';
      readonly method: string;
      readonly params: JsonObject | undefined;
    }
  | { readonly kind: 'result'; readonly id: RequestId; readonly result: JsonObject }
  | { readonly kind: 'error'; readonly id: RequestId | undefined; readonly error: RpcError };

/** What a server may request of a client, as policies name it; elicitation by its mode. */
export type ServerRequestName = 'sampling' | 'elicitation/form' | 'elicitation/url' | 'roots';

/** What a client does with a task, as policies name it; `get` is its status and its result. */
export type TaskUse = 'get' | 'list' | 'update' | 'cancel';

/** What a request refers to: the thing that a policy rule and a pin can name. */
export type Target =
  | { readonly kind: 'tool'; readonly name: string }
  | { readonly kind: 'prompt'; readonly name: string }
  | { readonly kind: 'resource'; readonly uri: string }
  | { readonly kind: 'template'; readonly uriTemplate: string }
  | { readonly kind: 'server-request'; readonly name: ServerRequestName }
  /** A task; `tool` is the tool whose call created it, undefined if the caller has no such task. */
  | {
      readonly kind: 'task';
      readonly tool: string | undefined;
      readonly use: TaskUse;
      /** Whether the use counts as a call, although its method does not by itself. */
      readonly isCounted?: true;
    }
  | { readonly kind: 'none' };

/** True for a plain JSON object (not null, not an array). */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether a value calls itself a JSON-RPC message, or is an array, which may hold some. */
export function isJsonRpc(value: Json): boolean {
  return Array.isArray(value) || (isObject(value) && 'jsonrpc' in value);
}

/** The id of a request; `undefined` for any other message. */
export function requestIdOf(message: Message | undefined): RequestId | undefined {
  return message?.kind === 'request' ? message.id : undefined;
}

/** Whether a message is the response to the request with this id; an absent id is that of no request. */
export function isResponseTo(message: Json | undefined, id: RequestId | undefined): message is JsonObject {
  return isObject(message) && message['id'] === id && !('method' in message);
}

/** Parses a JSON object; `undefined` for any other text. Not for messages, which json.ts reads. */
export function parseObject(text: string): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** An own member of that exact name, never an inherited one: names come from clients and upstreams. */
export function ownMember(object: JsonObject, name: string): Json | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

type EnvelopeReading =
  | Message
  /** `id` is present if it could be read, so that the response can name the request. */
  | { readonly kind: 'malformed'; readonly id?: RequestId }
  | { readonly kind: 'batch' };

const REQUEST_MEMBERS = new Set(['jsonrpc', 'id', 'method', 'params']);
const RESULT_MEMBERS = new Set(['jsonrpc', 'id', 'result']);
const ERROR_MEMBERS = new Set(['jsonrpc', 'id', 'error']);
const ERROR_OBJECT_MEMBERS = new Set(['code', 'message', 'data']);

/**
 * Reads an envelope. It must have exactly one of the shapes request, notification, result and error, no
 * unknown member, `jsonrpc` exactly "2.0", and an id that is a string or a number (`null` only on an error). An array is reported as `batch`, whatever it contains.
 * Source: JSON-RPC 2.0 §4, §5, §6; MCP 2025-11-25, base protocol (ids are never null).
 */
export function readEnvelope(value: Json): EnvelopeReading {
  if (Array.isArray(value)) return { kind: 'batch' };
  if (!isObject(value)) return { kind: 'malformed' };
  return readCall(value) ?? readResult(value) ?? readFailure(value) ?? malformed(value);
}

/** True for a string or a number, as ids and progress tokens are (JSON-RPC 2.0 §4). */
export function isRequestId(value: unknown): value is RequestId {
  return typeof value === 'string' || typeof value === 'number';
}

function readCall(value: JsonObject): Message | undefined {
  const { method, id, ...members } = envelopeMembers(value);
  // What many libraries write for no params.
  const params = members.params ?? undefined;
  if (typeof method !== 'string' || !isClosed(value, REQUEST_MEMBERS)) return undefined;
  if (params !== undefined && !isObject(params)) return undefined;
  if (id === undefined) return { kind: 'notification', method, params };
  return isRequestId(id) ? { kind: 'request', id, method, params } : undefined;
}

function readResult(value: JsonObject): Message | undefined {
  const { id, result } = envelopeMembers(value);
  if (!isObject(result) || !isRequestId(id)) return undefined;
  return isClosed(value, RESULT_MEMBERS) ? { kind: 'result', id, result } : undefined;
}

function readFailure(value: JsonObject): Message | undefined {
  const { id, error } = envelopeMembers(value);
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

/** The members that an envelope may have. None of these names is on Object.prototype. */
function envelopeMembers(value: JsonObject): {
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
