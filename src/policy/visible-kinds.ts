// Whether a caller sees anything of a kind at all, so that a notice about its list concerns them. Drift
// plays no part: whose only tool is hidden for a while must learn that it came back. Asks no store.
// Contract §4, law 2; MCP 2026-07-28, subscriptions.

import { isListed } from './decide.js';
import type { Catalogue } from './definition.js';
import type { Principal } from './principal.js';
import type { PolicySet } from './question.js';
import { rulesFor } from './rules.js';

/** The kinds that have a list of their own. */
export type ListedKind = 'tool' | 'prompt' | 'resource';

/**
 * True where policy lists something of the kind for this caller: a pinned name, or, of what is not
 * pinned by name, whatever an allow rule names.
 */
export function listsKind(
  policies: PolicySet,
  principal: Principal,
  catalogue: Catalogue,
  kind: ListedKind,
): boolean {
  const { upstream } = catalogue;
  if (kind === 'resource' || catalogue.mode === 'off') {
    const kinds = kind === 'resource' ? (['resource', 'template'] as const) : ([kind] as const);
    return rulesFor(policies, principal, upstream).some(
      (rule) => rule.effect === 'allow' && kinds.some((one) => rule.targets[one].length > 0),
    );
  }
  return catalogue
    .names(kind)
    .some((name) => isListed(policies, principal, upstream, { kind, name }));
}
