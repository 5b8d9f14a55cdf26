// Whether a caller may still have to do with a task, by the tool whose call began it. That call was decided
// with its arguments; here they are gone, so that what reads them has no say any more, and everything else
// is asked again: who, what, scopes, conditions on the caller. Limits count calls, not looks at one.
// Contract §4; MCP 2025-11-25, tasks (security); the Tasks extension.

import { type Call, holdsFor } from './conditions.js';
import type { Obligation } from './decision.js';
import { chooseAlternative, collectObligations } from './obligations.js';
import type { Reason } from './reasons.js';
import {
  type AllowRule,
  type Candidates,
  type RequireRule,
  type Rule,
  readsArguments,
} from './rules.js';

export type TaskVerdict =
  | {
      readonly kind: 'allow';
      readonly rule: AllowRule;
      readonly obligations: readonly Obligation[];
    }
  | { readonly kind: 'deny'; readonly reason: Reason; readonly rule: Rule | undefined };

const REASON_OF = { holds: 'denied-by-rule', error: 'policy-error' } as const;

/** Judges the rules of the tool, of which those that grant have their scopes. */
export function evaluateTaskRules(
  { denies, requires }: Pick<Candidates, 'denies' | 'requires'>,
  entitled: readonly AllowRule[],
  call: Call,
): TaskVerdict {
  for (const rule of denies) {
    const holding = holdsWithout(rule, call);
    if (holding !== 'fails') return { kind: 'deny', reason: REASON_OF[holding], rule };
  }
  const chosen = chooseAlternative(
    entitled.filter((rule) => readsArguments(rule) || holdsFor(rule, call) === 'holds'),
  );
  if (chosen === undefined) return { kind: 'deny', reason: 'no-matching-allow', rule: undefined };
  const binding: RequireRule[] = [];
  for (const rule of requires) {
    const holding = holdsWithout(rule, call);
    if (holding === 'error') return { kind: 'deny', reason: 'policy-error', rule };
    if (holding === 'holds') binding.push(rule);
  }
  const obligations = collectObligations(chosen, binding).filter(
    ({ kind }) => kind === 'max-result-bytes' || kind === 'inspect',
  );
  return { kind: 'allow', rule: chosen, obligations };
}

/** Of a rule that restricts, what it says without arguments; one that reads them has been asked. */
function holdsWithout(rule: Rule, call: Call): ReturnType<typeof holdsFor> {
  return readsArguments(rule) ? 'fails' : holdsFor(rule, call);
}
