// What a server may ask of a caller: the union of what allow rules grant, less what deny rules name.
// A question has no arguments: an allow rule that reads them grants none, a deny rule denies whatever
// it reads. Asks no store and no clock. Contract §4.

import { type Grants, NO_GRANTS } from '../mcp/grants.js';
import type { Principal } from './principal.js';
import type { PolicySet } from './question.js';
import { isUnconditional, type Rule, rulesFor } from './rules.js';

// By the list of rules that match, which is the same object for all callers alike; scopes are asked apart.
const known = new WeakMap<readonly Rule[], Grants>();

/** What the rules grant to this caller at this upstream. An error grants nothing. */
export function grantsFor(policies: PolicySet, principal: Principal, upstream: string): Grants {
  try {
    const rules = rulesFor(policies, principal, upstream);
    if (rules.some((rule) => rule.effect === 'allow' && rule.scopes.length > 0)) {
      return combine(rules, principal.scopes);
    }
    const found = known.get(rules) ?? combine(rules, principal.scopes);
    known.set(rules, found);
    return found;
  } catch {
    return NO_GRANTS;
  }
}

function combine(rules: readonly Rule[], scopes: readonly string[]): Grants {
  const granting = rules.filter(
    (rule) =>
      rule.effect === 'allow' &&
      isUnconditional(rule) &&
      rule.scopes.every((scope) => scopes.includes(scope)),
  );
  const denying = rules.filter((rule) => rule.effect === 'deny');
  const isGranted = (names: (grants: Grants) => boolean): boolean =>
    granting.some((rule) => names(rule.grants)) && !denying.some((rule) => names(rule.grants));
  return {
    sampling: isGranted((grants) => grants.sampling),
    elicitation: {
      form: isGranted((grants) => grants.elicitation.form),
      url: isGranted((grants) => grants.elicitation.url),
    },
    roots: isGranted((grants) => grants.roots),
  };
}
