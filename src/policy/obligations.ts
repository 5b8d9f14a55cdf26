// What an allow still owes: the limits of the alternative that is recorded, and what every matching
// require rule adds. The strictest hold: the least bytes, all profiles, all captures, all rates.
// Contract §4, law 3.

import type { Decision, Obligation } from './decision.js';
import type { AllowRule, RequireRule } from './rules.js';

const NONE: readonly Obligation[] = Object.freeze([]);
const NOTHING: readonly string[] = Object.freeze([]);

/** The alternative with the fewest open obligations; of those, the first, which has the smallest id. */
export function chooseAlternative(holding: readonly AllowRule[]): AllowRule | undefined {
  return holding.find((rule) => rule.limit === undefined) ?? holding[0];
}

/** The obligations of an allow, in an order that depends on nothing but the rules. */
export function collectObligations(
  alternative: AllowRule,
  requires: readonly RequireRule[],
): readonly Obligation[] {
  if (alternative.limit === undefined && requires.length === 0) return NONE;
  const obligations: Obligation[] = [];
  for (const { limit } of [alternative, ...requires]) {
    if (limit !== undefined) obligations.push({ kind: 'rate', limit });
  }
  const caps = requires.flatMap(({ maxResultBytes }) => maxResultBytes ?? []);
  if (caps.length > 0) obligations.push({ kind: 'max-result-bytes', bytes: Math.min(...caps) });
  const profiles = new Set(requires.flatMap(({ profile }) => profile ?? []));
  for (const profile of [...profiles].sort()) obligations.push({ kind: 'inspect', profile });
  const pointers = pointersOf(requires);
  if (pointers.length > 0) obligations.push({ kind: 'capture', pointers });
  return obligations;
}

/** Every pointer that one of the rules names, once, in their order. */
export function pointersOf(requires: readonly RequireRule[]): readonly string[] {
  return [...new Set(requires.flatMap(({ captures }) => captures))].sort();
}

/** What the record keeps of the arguments, by this decision. */
export function capturedBy(decision: Decision): readonly string[] {
  if (decision.verdict === 'deny') return decision.captures ?? NOTHING;
  for (const obligation of decision.obligations)
    if (obligation.kind === 'capture') return obligation.pointers;
  return NOTHING;
}
