// Decides which server requests (sampling, elicitation, roots) are allowed for a caller, and whether apps may
// be shown. Uses the function of all decisions, over the same rules in the same order; a server request has
// no arguments. Uses no store and no clock. docs/contract.md §4.

import type { ServerRequestName } from '../protocol/jsonrpc.js';
import type { ServerRequestGrants } from '../protocol/server-requests.js';
import { decide, isListed, NO_ARGUMENTS, NO_CATALOG } from './decide.js';
import type { Decision } from './decision.js';
import type { Catalog } from './definitions.js';
import type { Principal } from './principal.js';
import { type PolicyQuery, type PolicySet, readsContent } from './rules.js';
import type { ServerRequestContent } from './server-request-content.js';

/**
 * Decides whether a server may request this of a caller. An allow has the obligations of its rules, limits
 * included. Never throws; an error is a deny.
 */
export function decideServerRequest(
  policies: PolicySet,
  query: Omit<PolicyQuery, 'target' | 'args'> & { readonly name: ServerRequestName },
): Decision {
  const { name, ...rest } = query;
  return decide(policies, { ...rest, target: { kind: 'question', name }, args: NO_ARGUMENTS });
}

/**
 * What servers may request of a caller: admission keeps only these of the capabilities that a client
 * declares. Limits are ignored, because they count the requests that are made.
 */
export function allowedServerRequestsFor(
  policies: PolicySet,
  principal: Principal,
  upstream: string,
): ServerRequestGrants {
  const catalog = { ...NO_CATALOG, upstream };
  const may = (name: ServerRequestName): boolean =>
    decideServerRequest(policies, { principal, upstream, catalog, name }).verdict === 'allow';
  const mayWith = (content: ServerRequestContent): boolean => {
    const query = { principal, upstream, catalog, name: 'sampling', content } as const;
    return decideServerRequest(policies, query).verdict === 'allow';
  };
  const sampling = may('sampling');
  return {
    sampling,
    ...(sampling &&
      readsContent(policies, { principal, upstream }, 'sampling') &&
      cutOfSampling(mayWith)),
    elicitation: { form: may('elicitation/form'), url: may('elicitation/url') },
    roots: may('roots'),
  };
}

/** What a client may not declare of sampling, because every request that used it would be refused. */
function cutOfSampling(
  mayWith: (content: ServerRequestContent) => boolean,
): Pick<ServerRequestGrants, 'withoutSampling'> {
  const hasContext = ['thisServer', 'allServers'].some((includeContext) =>
    mayWith({ includeContext }),
  );
  const withoutSampling = [
    ...(hasContext ? [] : (['context'] as const)),
    ...(mayWith({ tools: 'some' }) ? [] : (['tools'] as const)),
  ];
  return withoutSampling.length === 0 ? {} : { withoutSampling };
}

/**
 * Whether a host may declare for this caller that it shows apps: if the rules let the caller read an app that
 * is in the lock file. Decided by policy alone, regardless of what is currently offered; without pinning, the
 * rules of an app's URI decide when it is read.
 */
export function mayShowApps(
  policies: PolicySet,
  principal: Principal,
  { upstream, mode, names }: Pick<Catalog, 'upstream' | 'mode' | 'names'>,
): boolean {
  if (mode === 'off') return true;
  return names('resource').some((uri) =>
    isListed(policies, principal, upstream, { kind: 'resource', uri }),
  );
}
