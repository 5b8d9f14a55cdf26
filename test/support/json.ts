// JSON as it is on the wire, for tests: what they send, and what they read of what comes back.

export type Json = null | boolean | number | string | readonly Json[] | JsonObject;

/** A JSON object. Read members with brackets: `params['name']`. */
export type JsonObject = { readonly [member: string]: Json };

/** A JSON-RPC id: a string or any number, never null. */
export type RequestId = string | number;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
