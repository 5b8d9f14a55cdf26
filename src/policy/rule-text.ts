// What a rule says, as one digest: equal for rules that say the same, whatever the order of their keys. A yes that was given
// under a rule is void when its text changes. Pure.

import { createHash } from 'node:crypto';
import { isObject } from '../protocol/jsonrpc.js';

/** JSON with the members of every object in the order of their names. */
export function sortedJson(value: unknown): string {
  return JSON.stringify(value, sortMembers);
}

/** The order of keys means nothing. */
function sortMembers(_key: string, value: unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** SHA-256 of what a rule or flow says, lower-case hex. `written` has its defaults. */
export function textOf(policy: string, written: object): string {
  return sha256(sortedJson([policy, written]));
}

/** One digest of the texts of several rules, in any order. */
export function digestOfTexts(texts: readonly string[]): string {
  return sha256([...texts].sort().join('\n'));
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
