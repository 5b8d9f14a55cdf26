// The order of a decision, written once: what hides a target, its block and pin, then scopes, arguments, deny rules, the
// alternatives among allow rules, and require rules. `decide` and `explain`
// pass in the outcome of each rule: `decide` evaluates the call, and `explain` has the clauses that it prints, of which
// some may not be known. The reason of a refusal is chosen here, its text stands in reasons.ts.
// docs/contract.md, laws 2 to 5; docs/reference/responses.md.

import { blockRule } from './blocks.js';
import type { Outcome } from './clauses.js';
import type { ArgumentRefusal } from './conditions.js';
import type { Deny } from './decision.js';
import { blockOf, type PolicyTarget, type TargetPin, targetPinOf } from './policy-target.js';
import type { Reason } from './reasons.js';
import type { AllowRule, Candidates, DenyRule, PolicyQuery, RequireRule, Rule } from './rules.js';

/** What the order asks about the caller and the item. */
export type ListingOutcomes = {
  /** What comes out of a deny rule that reads annotations, with those of this pin. */
  hides(
    rule: DenyRule,
    query: Pick<PolicyQuery, 'principal' | 'upstream'>,
    target: PolicyTarget,
    pin: TargetPin,
  ): Outcome;
  /** Takes note of a rule that would have decided here, had its outcome been known. */
  leaveOpen(rule: Rule): void;
};

/** What the order asks about a call. */
export type Outcomes = Pick<ListingOutcomes, 'leaveOpen'> & {
  /** How many of its scopes the caller surely lacks. */
  countMissing(rule: AllowRule): number;
  /** What comes out of the conditions of a rule. An allow rule whose reads cannot be evaluated fails. */
  outcomeOf(rule: Rule): Outcome;
  /** Why the definition does not admit the arguments. */
  refuseArguments(): ArgumentRefusal | undefined;
  /** Why a rule cannot read the arguments. */
  unreadable(rule: Rule): ArgumentRefusal | undefined;
  /** What is to be said of arguments that none of these rules allows. */
  adviseOn(rules: readonly AllowRule[]): ArgumentRefusal;
};

export function deny(reason: Reason, listed: boolean, rule?: Rule, more?: Partial<Deny>): Deny {
  const named = rule && { policy: rule.policy, rule: rule.rule, groups: rule.groups };
  return { verdict: 'deny', reason, listed, ...named, ...more };
}

const REASON_OF = { holds: 'denied-by-rule', error: 'policy-error' } as const;

/** Refuses what is not listed; otherwise its pin. */
export function refuseUnlisted(
  { hiding, allows, failedAllow, annotated }: Candidates,
  query: Pick<PolicyQuery, 'principal' | 'upstream' | 'args' | 'catalog'>,
  target: PolicyTarget,
  outcomes: ListingOutcomes,
): Deny | TargetPin {
  if (hiding !== undefined) return deny(REASON_OF[hiding.outcome], false, hiding.rule);
  if (allows.length === 0)
    return failedAllow === undefined ? deny('no-matching-allow', false) : deny('policy-error', false, failedAllow);
  const block = blockOf(query.catalog, target);
  if (block !== undefined) return deny('blocked', false, undefined, blockRule(block));
  const pin = targetPinOf(query.catalog, target, query.args);
  if (pin.refusal !== undefined) return deny(pin.refusal, false);
  return (annotated.length === 0 ? undefined : refuseByAnnotations(annotated, query, target, outcomes, pin)) ?? pin;
}

/** A list shows one form of a definition, and its annotations hide; a call may be of another form that is approved. */
function refuseByAnnotations(
  rules: readonly DenyRule[],
  query: Parameters<typeof refuseUnlisted>[1],
  target: PolicyTarget,
  outcomes: ListingOutcomes,
  pin: TargetPin,
): Deny | undefined {
  const shown = targetPinOf(query.catalog, target, 'unknown');
  const forms = [{ form: shown, listed: false }, ...(shown.pinned === pin.pinned ? [] : [{ form: pin, listed: true }])];
  for (const { form, listed } of forms) {
    const refused = refuseDenied(rules, (rule) => outcomes.hides(rule, query, target, form), listed, outcomes);
    if (refused !== undefined) return refused;
  }
  return undefined;
}

/** A rule that holds outweighs one that cannot be evaluated. */
function refuseDenied(
  rules: readonly DenyRule[],
  outcomeOf: (rule: DenyRule) => Outcome,
  listed: boolean,
  outcomes: Pick<Outcomes, 'leaveOpen'>,
): Deny | undefined {
  let failed: DenyRule | undefined;
  for (const rule of rules) {
    const outcome = outcomeOf(rule);
    if (outcome === 'holds') {
      const advice = listed && rule.advice !== undefined ? { advice: rule.advice } : {};
      return deny('denied-by-rule', listed, rule, advice);
    }
    if (outcome === 'error') failed ??= rule;
    if (outcome === 'unknown') outcomes.leaveOpen(rule);
  }
  return failed === undefined ? undefined : deny('policy-error', listed, failed);
}

/** The allow rule that is recorded, and the require rules that bind. */
export type Granted = { readonly rule: AllowRule; readonly requires: readonly RequireRule[] };

/** The caller may see the target: every refusal from here on may state its reason. */
export function ruleOnCall(candidates: Candidates, outcomes: Outcomes): Deny | Granted {
  const { allows, denies } = candidates;
  const entitled = allows.filter((rule) => outcomes.countMissing(rule) === 0);
  if (entitled.length === 0) return denyForScope(allows, outcomes);
  return (
    refuseArguments(candidates, outcomes) ??
    refuseDenied(denies, (rule) => outcomes.outcomeOf(rule), true, outcomes) ??
    ruleOnAlternatives(candidates, entitled, outcomes)
  );
}

function refuseArguments({ denies, requires }: Candidates, outcomes: Outcomes): Deny | undefined {
  const invalid = outcomes.refuseArguments();
  if (invalid !== undefined) return deny('arguments-invalid', true, undefined, invalid);
  // An allow rule that reads such a member fails by itself; a restricting rule must not be bypassed.
  for (const rules of [denies, requires])
    for (const rule of rules) {
      const refusal = outcomes.unreadable(rule);
      if (refusal !== undefined) return deny('arguments-invalid', true, undefined, refusal);
    }
  return undefined;
}

function ruleOnAlternatives(
  candidates: Candidates,
  entitled: readonly AllowRule[],
  outcomes: Outcomes,
): Deny | Granted {
  const found = entitled.map((rule) => outcomes.outcomeOf(rule));
  const those = (wanted: Outcome) => entitled.filter((_rule, index) => found[index] === wanted);
  const satisfied = those('holds');
  const possible = satisfied.length > 0 ? [] : those('unknown');
  for (const rule of possible) outcomes.leaveOpen(rule);
  const chosen = chooseAlternative(satisfied.length > 0 ? satisfied : possible);
  if (chosen !== undefined) return applyRequires(chosen, candidates.requires, outcomes);
  const [failed] = those('error');
  if (failed !== undefined) return deny('policy-error', true, failed);
  const lacking = candidates.allows.filter(
    (rule) => outcomes.countMissing(rule) > 0 && outcomes.outcomeOf(rule) === 'holds',
  );
  if (lacking.length > 0) return denyForScope(lacking, outcomes);
  return deny('arguments-invalid', true, undefined, outcomes.adviseOn(entitled));
}

/** The alternative with the fewest open obligations; of those, the first, which has the smallest id. */
export function chooseAlternative(satisfied: readonly AllowRule[]): AllowRule | undefined {
  const open = ({ limit, budget }: AllowRule): number => (limit === undefined ? 0 : 1) + (budget === undefined ? 0 : 1);
  return satisfied.reduce<AllowRule | undefined>(
    (best, rule) => (best === undefined || open(rule) < open(best) ? rule : best),
    undefined,
  );
}

function applyRequires(chosen: AllowRule, rules: readonly RequireRule[], outcomes: Outcomes): Deny | Granted {
  const requires: RequireRule[] = [];
  for (const rule of rules) {
    const outcome = outcomes.outcomeOf(rule);
    if (outcome === 'error') return deny('policy-error', true, rule);
    if (outcome === 'holds' && rule.isClosed === true) return deny('restart-pending', true, rule);
    if (outcome === 'holds') requires.push(rule);
    if (outcome === 'unknown') outcomes.leaveOpen(rule);
  }
  return { rule: chosen, requires };
}

/** Refuses for missing scopes; names every scope of the alternative that lacks the fewest (RFC 6750 §3.1). */
function denyForScope(rules: readonly AllowRule[], outcomes: Pick<Outcomes, 'countMissing' | 'outcomeOf'>): Deny {
  const satisfied = rules.filter((rule) => outcomes.outcomeOf(rule) === 'holds');
  const [nearest] = [...(satisfied.length > 0 ? satisfied : rules)].sort(
    (a, b) => outcomes.countMissing(a) - outcomes.countMissing(b),
  );
  return deny('insufficient-scope', true, nearest, { scopes: nearest?.scopes ?? [] });
}
