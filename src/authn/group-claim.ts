// Reads the groups of a caller, or says that they are unknown: an issuer may name a source for a claim in
// place of the claim, and the gateway asks no source. Unknown groups are neither empty nor any.
// OpenID Connect Core §5.6.2 (aggregated and distributed claims).

import { isObject, type Json, type JsonObject } from '../mcp/message.js';
import { claimAt, own } from './claim-path.js';

/** `unknown`: the caller has groups, and the token does not say which. Undefined: malformed. */
export type Groups = readonly string[] | 'unknown' | undefined;

/** The groups under the first of `names` that the claims hold or promise elsewhere. */
export function readGroups(claims: JsonObject, names: readonly string[]): Groups {
  const elsewhere = own(claims, '_claim_names');
  if (elsewhere !== undefined && !isObject(elsewhere)) return undefined;
  for (const name of names) {
    const value = claimAt(claims, name);
    if (value !== undefined) return readList(value);
    if (elsewhere !== undefined && Object.hasOwn(elsewhere, name)) return 'unknown';
  }
  // The mark of issuers whose tokens have no room for a source either.
  return own(claims, 'hasgroups') === true && names.includes('groups') ? 'unknown' : [];
}

function readList(value: Json): readonly string[] | undefined {
  const list: readonly Json[] = Array.isArray(value) ? (value as readonly Json[]) : [value];
  const groups: string[] = [];
  for (const group of list) {
    if (typeof group !== 'string' || group === '') return undefined;
    groups.push(group);
  }
  return groups;
}
