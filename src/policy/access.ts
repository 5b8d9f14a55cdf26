// Who may use what: what the rules say of an item before there is a call. A call that is not known in full is decided as
// explain.ts decides a recorded one, so that the answer is yes or no only where every call would be answered so; where it
// depends on arguments, on what the token says, on time, on flows or on a person, the rules are named with their
// conditions as they are written. Supposes arguments that the definition admits. Pure. docs/reference/commands.md#access.

import { durationText } from '../text/wording.js';
import { describeTerms } from './approval-terms.js';
import type { RuleDocument } from './compile/documents.js';
import { chooseAlternative } from './decision-order.js';
import {
  type CallFacts,
  explainRules,
  type KnownVerdict,
  type RuleExplanation,
  verdictOf,
  type WrittenRules,
} from './explain.js';
import type { Flow } from './information-flow.js';
import type { Principal } from './principal.js';
import type { Reason } from './reasons.js';
import { type AllowRule, allRules, type PolicyQuery, type PolicySet, type RequireRule } from './rules.js';

/** A rule or flow that matters, and under which conditions. */
export type AccessRule = {
  /** `policy/rule`. */
  readonly id: string;
  /** `allow` grants, `deny` refuses, `require` asks a person or counts, `flow` looks at what was received before. */
  readonly effect: 'allow' | 'deny' | 'require' | 'flow';
  /** All of them; none if it holds for every call. One clause each, with the text of the rule: `args.owner: {"const":"acme"}`, or what its `when` says. */
  readonly conditions: readonly string[];
  /** Who has to say yes. */
  readonly approval?: string;
};

export type Access =
  | { readonly access: 'yes'; readonly rules: readonly AccessRule[] }
  | { readonly access: 'if'; readonly rules: readonly AccessRule[] }
  | { readonly access: 'no'; readonly reason: Reason; readonly rules: readonly AccessRule[] };

/** A caller of whom some things may be open. */
export type SupposedCaller = {
  readonly principal: Principal;
  /** Subject, client, scopes and claims are anybody's: the caller stands for all of a group. */
  readonly isAnyone: boolean;
};

const ANYTHING: CallFacts['args'] = { names: undefined, values: new Map(), bytes: 0, areValid: true };
const OF_ANYONE: NonNullable<CallFacts['unknown']> = new Set(['scopes', 'claims', 'subject', 'client']);

/** What the rules say of this item for this caller. */
export function accessTo(
  policies: PolicySet,
  written: WrittenRules,
  { principal, isAnyone }: SupposedCaller,
  item: Pick<PolicyQuery, 'upstream' | 'target' | 'catalog'>,
): Access {
  const facts: CallFacts = { ...item, principal, args: ANYTHING, ...(isAnyone ? { unknown: OF_ANYONE } : {}) };
  const documents = withBuiltin(policies, written);
  const explained = explainRules(policies, documents, facts);
  const verdict = verdictOf(explained, facts);
  if (verdict.verdict === 'deny') {
    const { reason, rule } = verdict;
    const deciding = explained.find(({ id }) => id === rule);
    return {
      ...{ access: 'no', reason },
      rules: deciding === undefined ? [] : [{ id: deciding.id, effect: deciding.effect, conditions: [] }],
    };
  }
  const concerned = explained.filter(({ who, what, state }) => ![who, what, state].includes('fails'));
  const describe = (one: RuleExplanation) => describeRule(one, documents.get(one.id)?.rule);
  const rules = [
    ...grantingOf(concerned, verdict).map(describe),
    ...concerned.filter(({ effect, state }) => effect === 'deny' && state === 'unknown').map(describe),
    ...concerned.filter(isDemand).map(describe),
    ...flowsTo(policies, item).map(describeFlow),
  ];
  const isPlain = rules.every(({ effect, conditions }) => effect === 'allow' && conditions.length === 0);
  return { access: verdict.verdict === 'allow' && isPlain ? 'yes' : 'if', rules };
}

/** The rules that the gateway makes itself are in no file (`policies.mode: observe`). */
function withBuiltin(policies: PolicySet, written: WrittenRules): WrittenRules {
  const missing = allRules(policies).filter(({ id }) => !written.has(id));
  if (missing.length === 0) return written;
  const documents = missing.map(({ id, rule, effect }) => {
    return [id, { file: '', index: 0, rule: { id: rule, effect, who: {}, what: {} } as RuleDocument }] as const;
  });
  return new Map([...written, ...documents]);
}

/** The rule that would be recorded; where none holds for every call, all that may. */
function grantingOf(concerned: readonly RuleExplanation[], verdict: KnownVerdict): readonly RuleExplanation[] {
  const granting = concerned.filter(({ effect, state }) => effect === 'allow' && state !== 'error');
  if (verdict.verdict === 'allow') return granting.filter(({ id }) => id === verdict.rule);
  const certain = granting.filter(({ state }) => state === 'holds');
  const chosen = chooseAlternative(certain.map(({ basis }) => basis.rule as AllowRule));
  return chosen === undefined ? granting : certain.filter(({ id }) => id === chosen.id);
}

/** Whether a rule asks, counts, or may fail to be evaluated, which refuses. */
function isDemand({ effect, state, limit, approval, basis: { rule } }: RuleExplanation): boolean {
  if (effect !== 'require') return false;
  return (
    state === 'unknown' || limit !== undefined || approval !== undefined || (rule as RequireRule).budget !== undefined
  );
}

function describeRule(one: RuleExplanation, document: RuleDocument | undefined): AccessRule {
  const { id, effect, approval } = one;
  const beyond = approval?.isBeyondLimits === true ? ', for what its limits would refuse' : '';
  return {
    ...{ id, effect, conditions: [...conditionsOf(one, document), ...limitsOf(one)] },
    ...(approval && { approval: `${describeTerms(approval.terms)}${beyond}` }),
  };
}

/** The parts of a rule that are open, as they are written. */
function conditionsOf({ clauses }: RuleExplanation, document: RuleDocument | undefined): readonly string[] {
  if (document === undefined) return [];
  const { who, args = {}, when } = document;
  const open = clauses.filter(({ result }) => result === 'unknown');
  const texts = open.flatMap(({ path: [part, key], scopes }): readonly string[] => {
    if (part === 'who') return [`${key}: ${JSON.stringify(who[key as keyof typeof who])}`];
    if (part === 'scopes') return [`the token has ${wordOf(document, scopes)}`];
    if (part === 'limits') return [];
    return [
      ...Object.entries(args).map(([name, schema]) => `args.${name}: ${JSON.stringify(schema)}`),
      ...(when === undefined ? [] : [when]),
    ];
  });
  return [...new Set(texts)];
}

function wordOf(document: RuleDocument, missing: readonly string[] | undefined): string {
  const scopes = document.effect === 'allow' ? (document.scopes ?? []) : [];
  const named = missing ?? scopes;
  return `the scope${named.length === 1 ? '' : 's'} ${named.join(', ')}`;
}

function limitsOf({ limit, basis: { rule } }: RuleExplanation): readonly string[] {
  const budget = rule.effect === 'deny' ? undefined : rule.budget;
  return [
    ...(limit === undefined ? [] : [`at most ${limit.count} in ${durationText(limit.windowMs)} per ${limit.per}`]),
    ...(budget === undefined
      ? []
      : [`budget ${budget.name}: at most ${budget.max} in ${durationText(budget.windowMs)} per ${budget.per}`]),
  ];
}

function flowsTo(
  { flows }: PolicySet,
  { upstream, target }: Pick<PolicyQuery, 'upstream' | 'target'>,
): readonly Flow[] {
  return flows?.of(upstream, target.kind, 'name' in target ? target.name : '').flows ?? [];
}

function describeFlow({ policy, id, from, withinMs, approval }: Flow): AccessRule {
  const condition = `for ${durationText(withinMs)} after results labelled ${from.join(' and ')}`;
  return {
    ...{ id: `${policy}/${id}`, effect: 'flow', conditions: [condition] },
    ...(approval && { approval: describeTerms(approval.terms) }),
  };
}
