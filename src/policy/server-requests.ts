// What a server may ask of a caller: sampling, elicitation, roots; and whether it may show it apps. Decided by
// the function that decides everything, over the same rules in the same order; a question has no arguments.
// Asks no store and no clock. docs/contract.md §4.

import type { ServerRequestName } from '../protocol/jsonrpc.js';
import type { Grants } from '../protocol/server-requests.js';
import { decide, isListed, NO_ARGUMENTS, NO_CATALOGUE } from './decide.js';
import type { Decision } from './decision.js';
import type { Catalogue } from './definitions.js';
import type { Principal } from './principal.js';
import type { PolicyQuery, PolicySet } from './rules.js';

/**
 * Decides whether a server may ask this of a caller. An allow owes what its rules say, limits too.
 * Total: never throws; an error is a deny.
 */
export function decideServerRequest(
  policies: PolicySet,
  asked: Omit<PolicyQuery, 'target' | 'args'> & { readonly name: ServerRequestName },
): Decision {
  const { name, ...rest } = asked;
  return decide(policies, { ...rest, target: { kind: 'question', name }, args: NO_ARGUMENTS });
}

/**
 * What servers may ask of a caller here: what admission leaves of the capabilities that a client declares.
 * Limits play no part, for they count what is asked.
 */
export function grantsFor(policies: PolicySet, principal: Principal, upstream: string): Grants {
  const catalogue = { ...NO_CATALOGUE, upstream };
  const may = (name: ServerRequestName): boolean =>
    decideServerRequest(policies, { principal, upstream, catalogue, name }).verdict === 'allow';
  return {
    sampling: may('sampling'),
    elicitation: { form: may('elicitation/form'), url: may('elicitation/url') },
    roots: may('roots'),
  };
}

/**
 * Whether a host may say for this caller that it shows apps: where the rules let the caller read one that stands
 * in the lock file. By policy alone, whatever is offered at the moment; without pinning the rules of its URI
 * decide when it is read.
 */
export function mayShowApps(
  policies: PolicySet,
  principal: Principal,
  { upstream, mode, names }: Pick<Catalogue, 'upstream' | 'mode' | 'names'>,
): boolean {
  if (mode === 'off') return true;
  return names('resource').some((uri) =>
    isListed(policies, principal, upstream, { kind: 'resource', uri }),
  );
}
