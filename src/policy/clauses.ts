// The clauses of a rule, in the order in which they decide: who, upstreams, what, scopes, arguments by name, the terms of
// `when`, the cost. Says what comes out of one clause; decide.ts folds the outcomes into a decision, and explain.ts
// prints them. docs/reference/policies.md.

import { ownMember } from '../protocol/jsonrpc.js';
import { type ConditionResult, conjunctionOf, type Expression, type Term } from './cel.js';
import type { ExpressionFacts } from './cel-language.js';
import type { RuleDocument, WhoDocument } from './compile/documents.js';
import type { CompiledSchema } from './definitions.js';
import type { Principal } from './principal.js';

/** What comes out of a clause, or of all clauses of a rule. `unknown` only where a call is not known in full. */
export type Outcome = ConditionResult | 'unknown';

/** One key of `who`. */
export type WhoClause = {
  readonly part: 'who';
  readonly key: keyof WhoDocument;
  readonly matches: (principal: Principal) => boolean;
};

export type ArgumentClause = {
  readonly part: 'argument';
  readonly name: string;
  readonly schema: CompiledSchema;
};

/** A term of `when`. */
export type TermClause = { readonly part: 'when'; readonly term: Term };

/** What is evaluated with the arguments of a call. */
export type ConditionClause = ArgumentClause | TermClause;

export type Clause =
  | WhoClause
  | { readonly part: 'upstreams' | 'what' | 'cost' }
  | { readonly part: 'scopes'; readonly scopes: readonly string[] }
  | ConditionClause;

/** Of a rule: all clauses, and those that are evaluated apart. */
export type RuleClauses = {
  readonly clauses: readonly Clause[];
  /** The terms of `when` that read the caller alone. They belong to who. */
  readonly callerTerms: readonly TermClause[];
  /** Those that read the item (`tool`) too, and no argument. They belong to who as well. */
  readonly itemTerms: readonly TermClause[];
  readonly conditions: readonly ConditionClause[];
};

type Source = {
  readonly effect: RuleDocument['effect'];
  readonly who: readonly WhoClause[];
  readonly namesUpstreams: boolean;
  readonly scopes: readonly string[];
  readonly args: readonly { readonly name: string; readonly schema: CompiledSchema }[];
  readonly when: Expression | undefined;
  readonly hasCost: boolean;
};

/**
 * The clauses of a rule. Of an allow rule every term that reads nothing but caller and item belongs to who; of a deny
 * rule all terms do or none does, because in CEL a term that is false outweighs one that fails.
 */
export function clausesOf({ effect, who, namesUpstreams, scopes, args, when, hasCost }: Source): RuleClauses {
  const terms = (when?.terms ?? []).map((term): TermClause => ({ part: 'when', term }));
  const ofWho = terms.filter(readsNoArgument);
  const isComplete = args.length === 0 && ofWho.length === terms.length;
  const early = effect === 'allow' || (effect === 'deny' && isComplete) ? ofWho : [];
  const conditions: readonly ConditionClause[] = [
    ...args.map(({ name, schema }) => ({ part: 'argument', name, schema }) as const),
    ...terms.filter((clause) => !early.includes(clause)),
  ];
  return {
    clauses: [
      ...who,
      ...early,
      ...(namesUpstreams ? [{ part: 'upstreams' } as const] : []),
      { part: 'what' },
      ...(scopes.length > 0 ? [{ part: 'scopes', scopes } as const] : []),
      ...conditions,
      ...(hasCost ? [{ part: 'cost' } as const] : []),
    ],
    callerTerms: early.filter(({ term }) => term.reads.toolMembers.size === 0),
    itemTerms: early.filter(({ term }) => term.reads.toolMembers.size > 0),
    conditions,
  };
}

function readsNoArgument({ term: { reads } }: TermClause): boolean {
  const { argumentPaths, readsUri, readsAnyArgument } = reads;
  return argumentPaths.length === 0 && !readsUri && !readsAnyArgument;
}

/** Arguments as a server may read them, and what expressions see of the call with them. */
export type EvaluationWorld = { readonly args: ExpressionFacts['args']; readonly facts: ExpressionFacts };

export function evaluateClause(clause: ConditionClause, { args, facts }: EvaluationWorld): ConditionResult {
  if (clause.part === 'when') return clause.term.evaluate(facts);
  const value = ownMember(args, clause.name);
  return value === undefined || clause.schema.check(value).length > 0 ? 'fails' : 'holds';
}

/** All of them, as `&&` joins them in CEL: one that fails outweighs an error. */
export function evaluateClauses(clauses: readonly ConditionClause[], world: EvaluationWorld): ConditionResult {
  return conjunctionOf(clauses, evaluateClause, world);
}
