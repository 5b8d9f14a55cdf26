// Finds a claim by the name that the configuration gives it: the exact name of a claim or, where it begins
// with `/`, a JSON Pointer into the claims. Claims with dots, colons or slashes in them are found by their
// exact name, so that no name has two readings. RFC 6901 §3 and §4; contract §3 (`claims`).

import type { Json, JsonObject } from '../mcp/message.js';

/** The member of that very name; nothing that an object inherits. */
export function own(value: JsonObject, name: string): Json | undefined {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}

/** What stands at a name or pointer; undefined where nothing does. */
export function claimAt(claims: JsonObject, name: string): Json | undefined {
  if (!name.startsWith('/')) return own(claims, name);
  let value: Json | undefined = claims;
  for (const step of name.slice(1).split('/')) {
    // Lists have no names to be found by: an element's place says nothing.
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    value = own(value as JsonObject, step.replaceAll('~1', '/').replaceAll('~0', '~'));
  }
  return value;
}
