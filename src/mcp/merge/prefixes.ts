// Names of several servers under one roof: each member's names stand under its prefix towards the client, and
// without it towards the server. Maps back exactly, and edits the name alone; all other bytes stay.

import { applyEdits, spanOf } from '../json.js';

/** A member of an endpoint: an upstream and what stands before its names. */
export type Backend = { readonly upstream: string; readonly prefix: string };

/**
 * The member that a name belongs to, and the member's own name. No prefix begins with another, so there is
 * at most one; `undefined` for a name under no prefix, or one that is nothing but a prefix.
 */
export function backendOfName<M extends Backend>(
  backends: readonly M[],
  name: string,
): { readonly backend: M; readonly name: string } | undefined {
  const backend = backends.find(({ prefix }) => name.startsWith(prefix));
  if (backend === undefined || name.length === backend.prefix.length) return undefined;
  return { backend, name: name.slice(backend.prefix.length) };
}

/** The JSON text with the string at `path` replaced; unchanged where there is none. */
export function withText(text: string, path: readonly (string | number)[], value: string): string {
  const span = spanOf(text, path);
  return span === undefined ? text : applyEdits(text, [{ ...span, text: JSON.stringify(value) }]);
}
