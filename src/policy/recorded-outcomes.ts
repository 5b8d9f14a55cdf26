// What a recorded decision says of the rules under which it was made: a rule whose text is the same now decides the same
// of that call, whatever the record leaves out of what the rule reads. Pure.
// docs/reference/commands.md#test-explain-and-replay.

import type { Outcome } from './clauses.js';
import type { PolicyDocument } from './compile/documents.js';
import type { RuleExplanation } from './explain.js';

/** The texts of rules that are enforced, with what their file says for all of them, by their ids. */
export type RuleTexts = ReadonlyMap<string, { readonly text: string; readonly isAllow: boolean }>;

export function ruleTexts(documents: readonly PolicyDocument[]): RuleTexts {
  const enforced = documents.filter(({ mode }) => mode !== 'shadow');
  return new Map(
    enforced.flatMap(({ policy, defaults, rules }) =>
      rules.map((rule) => {
        const text = JSON.stringify([defaults, rule]);
        return [`${policy}/${rule.id}`, { text, isAllow: rule.effect === 'allow' }] as const;
      }),
    ),
  );
}

type RecordedDecision = {
  readonly verdict: 'allow' | 'deny';
  readonly reason: string | undefined;
  /** `policy/rule` of the rule that decided. */
  readonly rule: string | undefined;
};

/** Explained rules with what the record implies for those whose text is the same as it was. */
export function withRecorded(
  explained: readonly RuleExplanation[],
  recorded: RecordedDecision,
  before: RuleTexts,
  now: RuleTexts,
): readonly RuleExplanation[] {
  const isSame = (id: string): boolean => before.has(id) && before.get(id)?.text === now.get(id)?.text;
  const areRestrictionsSame = [...before].every(([id, { isAllow }]) => isAllow || isSame(id));
  return explained.map((one) => {
    const implied = isSame(one.id) ? impliedFor(one, recorded, areRestrictionsSame) : undefined;
    // Where the definition refused the arguments, an allow rule that is known to hold allowed nothing all the same.
    return implied !== undefined && (isOpen(one) || implied === DOES_NOT_HOLD) ? { ...one, ...implied } : one;
  });
}

function isOpen({ who, what, condition, state }: RuleExplanation): boolean {
  return [who, what, condition, state].includes('unknown');
}

type Implied = Pick<RuleExplanation, 'condition' | 'clauses'> &
  Partial<Pick<RuleExplanation, 'who' | 'what' | 'state'>>;

const DOES_NOT_HOLD: Implied = { condition: 'fails', clauses: [] };

function matched(condition: Outcome): Implied {
  return { who: 'holds', what: 'holds', condition, state: condition, clauses: [] };
}

function impliedFor(
  { id, effect }: RuleExplanation,
  { verdict, reason, rule }: RecordedDecision,
  areRestrictionsSame: boolean,
): Implied | undefined {
  // No deny rule held, and no require rule failed; of other allow rules nothing follows.
  if (verdict === 'allow') return id === rule ? matched('holds') : effect === 'allow' ? undefined : DOES_NOT_HOLD;
  if (id === rule && reason === 'denied-by-rule') return matched('holds');
  if (id === rule && reason === 'policy-error' && effect !== 'allow') return matched('error');
  return effect === 'allow' && allowsNothing(reason, rule, areRestrictionsSame) ? DOES_NOT_HOLD : undefined;
}

/** Whether it follows from a refusal that no allow rule allowed the call, or that none would now. */
function allowsNothing(reason: string | undefined, rule: string | undefined, areRestrictionsSame: boolean): boolean {
  if (reason === 'no-matching-allow' || reason === 'insufficient-scope') return true;
  // The definition may have refused the arguments, or a rule that restricts and could not read them.
  return areRestrictionsSame && (reason === 'arguments-invalid' || (reason === 'policy-error' && rule !== undefined));
}
