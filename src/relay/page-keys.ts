// By what a page of a list is found again: what was asked for, and on what its filtered form depends.

import type { RequestId } from '../mcp/message.js';
import { matchKey } from '../policy/rules.js';
import type { ResponsePlan } from './answered.js';
import type { Call } from './call.js';

/** The id of the request that a page answers. */
export function idOf({ admitted }: ResponsePlan): RequestId | undefined {
  return admitted.message.kind === 'request' ? admitted.message.id : undefined;
}

/** Which page of which list a client asked for. */
export function pageKey(call: Call, { admitted }: ResponsePlan): string {
  const params = 'params' in admitted.message ? admitted.message.params : undefined;
  return JSON.stringify([
    call.incoming.upstream,
    admitted.era,
    admitted.apps,
    admitted.rule.method,
    params?.['cursor'] ?? null,
  ]);
}

/** What the filtered form of a page depends on besides its bytes: the view, and the rules that match. */
export function viewerKey(call: Call, { principal, responseObligations }: ResponsePlan): string {
  return `${call.snapshot.id} ${matchKey(call.snapshot.policies, principal)} ${responseObligations.profiles.join(' ')}`;
}
