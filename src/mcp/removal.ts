// What is cut out of a client's message before it leaves: capabilities that nothing here carries, and
// members of `_meta` in our own name. Cuts are edits of the text, so all else leaves byte for byte.
// Source: MCP 2025-11-25 lifecycle; MCP 2026-07-28 base protocol, `_meta`; contract §6.

import type { TextEdit } from './admitted.js';
import { foldName } from './case-folding.js';
import { removalEdits, spanOf } from './json.js';
import { isObject, type Json, type JsonObject } from './message.js';

/** Members of `_meta` under this prefix are ours alone and never cross from one side to the other. */
export const OWN_PREFIX = 'dev.sallyport/';

/** Capabilities of a client that would let a server ask it something, or defer an answer. */
const REMOVED_CAPABILITIES: ReadonlySet<string> = new Set([
  'sampling',
  'elicitation',
  'roots',
  'tasks',
  'extensions',
]);

/** True for a capability that is not carried, in whatever case it is written. */
export function isRemovedCapability(name: string): boolean {
  return REMOVED_CAPABILITIES.has(foldName(name));
}

/** True for a member of `_meta` in our own name, in whatever case it is written. */
export function isOwnMember(name: string): boolean {
  return name.length >= OWN_PREFIX.length && foldName(name).startsWith(OWN_PREFIX);
}

/** Edits that cut the capabilities that are not carried out of the object at `path`. */
export function capabilityEdits(
  text: string,
  path: readonly string[],
  capabilities: Json | undefined,
): readonly TextEdit[] {
  if (!isObject(capabilities)) return [];
  if (!Object.keys(capabilities).some(isRemovedCapability)) return [];
  const span = spanOf(text, path);
  return span === undefined ? [] : removalEdits(text, span, isRemovedCapability);
}

/** Edits that cut our own members out of `params._meta`, and the names that they had. */
export function ownMetaEdits(
  text: string,
  meta: JsonObject | undefined,
): { readonly edits: readonly TextEdit[]; readonly removed: readonly string[] } {
  const removed = meta === undefined ? [] : Object.keys(meta).filter(isOwnMember);
  const span = removed.length === 0 ? undefined : spanOf(text, ['params', '_meta']);
  if (span === undefined) return { edits: [], removed };
  return { edits: removalEdits(text, span, isOwnMember), removed };
}
