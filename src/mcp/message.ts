// The shapes of JSON-RPC 2.0 as MCP uses it: what a message is, once its envelope has been read.
// Types only; reading bytes is jsonrpc.ts, judging them is admit.ts.
// Source: JSON-RPC 2.0 §4 and §5; MCP 2025-11-25 and 2026-07-28, base protocol.

/** Any JSON value. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

/** A JSON object. Read members with brackets: `params['name']`. */
export type JsonObject = { readonly [member: string]: Json };

/** `2024` is HTTP+SSE, `2025` the session era (2025-03-26 to 2025-11-25), `2026` the stateless era. */
export type Era = '2024' | '2025' | '2026';

/** A JSON-RPC id. MCP forbids null and fractional ids. */
export type RequestId = string | number;

/** The JSON-RPC error object. */
export type RpcError = { readonly code: number; readonly message: string; readonly data?: Json };

/** A message whose envelope holds: exactly one of the four shapes and no unknown member. */
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

/** What a server may ask of a client, as policies name it. Elicitation by its mode. */
export type ServerRequestName = 'sampling' | 'elicitation/form' | 'elicitation/url' | 'roots';

/** What a request asks for: the thing that a policy rule and a pin can name. */
export type Target =
  | { readonly kind: 'tool'; readonly name: string }
  | { readonly kind: 'prompt'; readonly name: string }
  | { readonly kind: 'resource'; readonly uri: string }
  | { readonly kind: 'template'; readonly uriTemplate: string }
  | { readonly kind: 'question'; readonly name: ServerRequestName }
  /** What a call began; `tool` is undefined where the caller has no such task. */
  | { readonly kind: 'task'; readonly tool: string | undefined }
  | { readonly kind: 'none' };

/** True for a plain JSON object (not null, not an array). */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
