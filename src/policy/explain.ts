// Explains decisions: what comes out of each clause of the rules for a call, in words, and which verdict follows. The
// clauses are those of the compiled rules, and the order is the one of decide.ts. Of a recorded call not everything is
// known: what the record does not say is `unknown` here and never guessed. Pure. docs/reference/policies.md.

import { type Json, type JsonObject, ownMember, type ServerRequestName } from '../protocol/jsonrpc.js';
import { pointerTo } from '../text/json-members.js';
import type { ExpressionReads, Term } from './cel.js';
import type { ArgumentClause, Clause, EvaluationWorld, Outcome, WhoClause } from './clauses.js';
import type { PolicyDocument, RuleDocument } from './compile/documents.js';
import {
  type ArgumentRefusal,
  costFor,
  type EvaluationInput,
  INEXACT,
  inDecidingForm,
  refuseByDefinition,
  unreadable,
} from './conditions.js';
import type { RateLimit } from './decision.js';
import { type ListingOutcomes, type Outcomes, refuseUnlisted, ruleOnCall } from './decision-order.js';
import type { PinnedDefinition } from './definitions.js';
import {
  evaluationInputOf,
  isUnpinnedName,
  type PolicyTarget,
  readPolicyTarget,
  targetPinOf,
} from './policy-target.js';
import type { Principal } from './principal.js';
import type { Reason } from './reasons.js';
import {
  type AllowRule,
  allRules,
  candidatesOf,
  costOf,
  type Matched,
  matchesTarget,
  matchesUnpinned,
  matchesUpstream,
  type PolicyQuery,
  type PolicySet,
  type RequireRule,
  type Rule,
  readsArguments,
} from './rules.js';
import { fitsTerms, hasTerms } from './server-request-content.js';

/** What is known of the arguments of a call: all of them, or what a record says. */
export type KnownArguments =
  | { readonly all: JsonObject }
  | {
      /** The names of the top-level members; `undefined` if there may be others. */
      readonly names: ReadonlySet<string> | undefined;
      /** The values that a member may have, by name; one that is present and not here may have any. */
      readonly values: ReadonlyMap<string, readonly Json[]>;
      /** Length of the JSON text of all arguments. */
      readonly bytes: number;
      /** The pinned definition is known to admit them. */
      readonly areValid: boolean;
      /** Names of members that the gateway would drop now, and that are not among the names. */
      readonly dropped?: readonly string[];
    };

/** Why something is not known; `validity` is whether the definition admits the arguments. */
type UnknownCause =
  | 'groups'
  | 'claims'
  | 'scopes'
  | 'subject'
  | 'client'
  | 'arguments'
  | 'validity'
  | 'content'
  | 'findings';

/** A call as far as it is known. */
export type CallFacts = Pick<PolicyQuery, 'principal' | 'upstream' | 'target' | 'content' | 'findings' | 'catalog'> & {
  readonly args: KnownArguments;
  /** What the caller may have besides what `principal` has. */
  readonly unknown?: ReadonlySet<UnknownCause>;
};

/** A clause of a rule that does not hold, or is not known to. */
type ClauseResult = {
  /** Where it stands in the rule: `['who', 'groups']`, `['args', 'owner']`, `['when']`. */
  readonly path: readonly string[];
  readonly result: Exclude<Outcome, 'holds'>;
  /** One sentence without a full stop. */
  readonly text: string;
  /** JSON pointer into the arguments. */
  readonly pointer?: string;
  readonly cause?: UnknownCause;
  /** Of `scopes`: those that are missing. */
  readonly scopes?: readonly string[];
  /** JSON pointers to the arguments that it reads and that are not known, as far as they can be named. */
  readonly unrecorded?: readonly string[];
};

export type RuleExplanation = {
  readonly id: string;
  readonly effect: Rule['effect'];
  /** The file of the rule and its index there. */
  readonly file: string;
  readonly index: number;
  /** With the terms of `when` that belong to who. */
  readonly who: Outcome;
  readonly what: Outcome;
  /** `args`, the other terms of `when`, and the cost; `holds` for a rule without them. */
  readonly condition: Outcome;
  /** The rule as a whole, of an allow rule with its scopes. */
  readonly state: Outcome;
  readonly clauses: readonly ClauseResult[];
  readonly limit?: RateLimit;
  /** Who has to say yes where it holds. */
  readonly approval?: NonNullable<RequireRule['approval']>;
  /** What the verdict follows from besides the outcomes. */
  readonly basis: {
    readonly rule: Rule;
    /** Why the rule cannot read the arguments. */
    readonly refusal: ArgumentRefusal | undefined;
  };
};

/** What follows from the rules as far as the call is known. */
export type KnownVerdict =
  | {
      readonly verdict: 'allow';
      readonly rule: string;
      /** The rules that ask a person first; absent where none does. */
      readonly askers?: readonly string[];
      /** Those that may, depending on what inspection finds and on what was counted before. */
      readonly possibleAskers?: readonly string[];
    }
  | { readonly verdict: 'deny'; readonly reason: Reason; readonly rule?: string }
  | {
      readonly verdict: 'unknown';
      readonly causes: readonly UnknownCause[];
      /** JSON pointers to the arguments whose values are missing, as far as they can be named. */
      readonly pointers?: readonly string[];
    };

/** A rule as it was written, with its file and its index there. */
type WrittenRule = {
  readonly file: string;
  readonly index: number;
  readonly rule: RuleDocument;
};
export type WrittenRules = ReadonlyMap<string, WrittenRule>;

/** Every rule as it was written, by its id (`policy/rule`). */
export function writtenRules(documents: readonly PolicyDocument[]): WrittenRules {
  return new Map(
    documents.flatMap(({ file, policy, rules }) =>
      rules.map((rule, index) => [`${policy}/${rule.id}`, { file, index, rule }] as const),
    ),
  );
}

/** Explains every rule for a call, in the order of ids. */
export function explainRules(policies: PolicySet, written: WrittenRules, facts: CallFacts): readonly RuleExplanation[] {
  const target = policyTargetOf(facts);
  return [...allRules(policies)]
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .flatMap((rule) => {
      const source = written.get(rule.id);
      return source === undefined ? [] : [explainRule(rule, source, target, facts)];
    });
}

function policyTargetOf({ target }: CallFacts): PolicyTarget | undefined {
  return target.kind === 'none' ? undefined : readPolicyTarget(target);
}

function explainRule(
  rule: Rule,
  { file, index }: WrittenRule,
  target: PolicyTarget | undefined,
  facts: CallFacts,
): RuleExplanation {
  const { id, effect, clauses: all, conditions } = rule;
  const early = all.filter((clause) => !(conditions as readonly Clause[]).includes(clause));
  const resultsOf = (...parts: readonly Clause['part'][]) =>
    early.filter(({ part }) => parts.includes(part)).flatMap((clause) => explainClause(clause, rule, target, facts));
  const what = resultsOf('upstreams', 'what');
  const who = [...resultsOf('who'), ...(stateOf(what) === 'fails' ? [] : resultsOf('when'))];
  const scopes = resultsOf('scopes');
  const asked = stateOf(what) === 'fails' || target === undefined ? NOTHING : explainConditions(rule, target, facts);
  const clauses = [...who, ...what, ...scopes, ...asked.clauses];
  const limit = effect === 'deny' ? undefined : rule.limit;
  const approval = rule.effect === 'require' ? rule.approval : undefined;
  return {
    ...{ id, effect, file, index },
    who: stateOf(who),
    what: stateOf(what),
    condition: stateOf(asked.clauses),
    state: stateOf(clauses),
    clauses,
    ...(limit && { limit }),
    ...(approval && { approval }),
    basis: { rule, refusal: asked.refusal },
  };
}

/** What surely fails decides, even where something else is not known. */
function stateOf(clauses: readonly ClauseResult[]): Outcome {
  const has = (result: ClauseResult['result']): boolean => clauses.some((clause) => clause.result === result);
  if (has('fails')) return 'fails';
  if (has('unknown')) return 'unknown';
  return has('error') ? 'error' : 'holds';
}

/** A clause that does not depend on the arguments, in words; nothing where it holds. */
function explainClause(
  clause: Clause,
  rule: Rule,
  target: PolicyTarget | undefined,
  facts: CallFacts,
): readonly ClauseResult[] {
  switch (clause.part) {
    case 'who':
      return explainWho(clause, facts);
    case 'when':
      return target === undefined ? [] : explainTerm(clause.term, rule, itemWorld(target, facts), facts);
    case 'upstreams': {
      const text = `the upstream ${quoteAll([facts.upstream])} is not named`;
      return matchesUpstream(rule, facts.upstream) ? [] : [{ path: ['what', 'upstreams'], result: 'fails', text }];
    }
    case 'what':
      return explainWhat(rule, target, facts);
    case 'scopes':
      return explainScopes(clause.scopes, facts);
    default:
      return [];
  }
}

/** What terms see that read nothing but caller and item. */
function itemWorld(target: PolicyTarget, facts: CallFacts): EvaluationWorld {
  return inputOf({ ...facts, args: { all: {} } }, target, {});
}

function explainWhat(rule: Rule, target: PolicyTarget | undefined, facts: CallFacts): readonly ClauseResult[] {
  const fails = (text: string): ClauseResult => ({ path: ['what'], result: 'fails', text });
  if (target === undefined) return [fails('no rule can name this target')];
  const { kind, name } = target;
  const kindText = kind === 'server-request' ? 'server request' : kind;
  return [
    ...(namesTarget(rule, target, facts) ? [] : [fails(`the ${kindText} ${quoteAll([name])} is not named`)]),
    ...(kind === 'server-request' ? explainContent(rule, name, facts.content) : []),
  ];
}

function namesTarget(rule: Rule, target: PolicyTarget, { catalog }: CallFacts): boolean {
  const { kind, name } = target;
  if (kind === 'server-request') return matchesTarget(rule, kind, name);
  const isFolded = rule.effect !== 'allow' && isUnpinnedName(catalog, target);
  return matchesTarget(rule, kind, name, target.readings) || (isFolded && matchesUnpinned(rule, kind, name));
}

/** Whether the conditions on the content of a server request hold. Audit records do not have the content. */
function explainContent(
  { terms, effect }: Rule,
  name: ServerRequestName,
  content: CallFacts['content'],
): readonly ClauseResult[] {
  const path = ['what'];
  if (!hasTerms(terms, name)) return [];
  if (content === undefined) {
    const text = 'what the server request contained is not recorded';
    return [{ path, result: 'unknown', text, cause: 'content' }];
  }
  return fitsTerms(terms, name, content, effect !== 'allow')
    ? []
    : [{ path, result: 'fails', text: 'the rule names this server request with other content' }];
}

/** Names are quoted as they are: the text is for whoever writes the policies. */
function quoteAll(names: readonly (string | number | boolean)[]): string {
  return names.length === 0 ? 'none' : names.map((name) => JSON.stringify(name)).join(', ');
}

/** What has to be known of a caller before a key of `who` can fail. */
const WHO_CAUSES: { readonly [key in WhoClause['key']]?: UnknownCause } = {
  subjects: 'subject',
  clients: 'client',
  groups: 'groups',
  actors: 'claims',
  claims: 'claims',
};

function explainWho({ key, matches }: WhoClause, { principal, unknown }: CallFacts): readonly ClauseResult[] {
  if (matches(principal)) return [];
  const path = ['who', key];
  const text = describeCaller(key, principal);
  const cause = WHO_CAUSES[key];
  if (cause === undefined || unknown?.has(cause) !== true) return [{ path, result: 'fails', text }];
  return [{ path, result: 'unknown', text: `the ${key} of the caller are not recorded`, cause }];
}

function describeCaller(key: WhoClause['key'], principal: Principal): string {
  switch (key) {
    case 'issuers':
      return `the issuer of the caller is ${quoteAll([principal.issuer])}`;
    case 'subjects':
      return `the subject of the caller is ${quoteAll([principal.subject])}`;
    case 'clients':
      return `the client of the caller is ${quoteAll([principal.client])}`;
    case 'groups':
      return principal.areGroupsUnknown === true
        ? 'the token does not list the groups of the caller'
        : `the groups of the caller: ${quoteAll(principal.groups)}`;
    default:
      return `the ${key} of the caller do not match`;
  }
}

function explainScopes(scopes: readonly string[], { principal, unknown }: CallFacts): readonly ClauseResult[] {
  const missing = scopes.filter((scope) => !principal.scopes.includes(scope));
  if (missing.length === 0) return [];
  const path = ['scopes'];
  return unknown?.has('scopes') === true
    ? [{ path, result: 'unknown', text: 'not all scopes are recorded', cause: 'scopes' }]
    : [{ path, result: 'fails', text: `missing: ${missing.join(', ')}`, scopes: missing }];
}

/** What an expression reads of the caller that a record does not say. */
function unrecordedIn({ principalPaths }: ExpressionReads, { unknown }: CallFacts): ClauseResult | undefined {
  for (const [member] of principalPaths) {
    const cause = CAUSES.get(member ?? '');
    if (cause === undefined || unknown?.has(cause) !== true) continue;
    return { path: ['when'], result: 'unknown', text: `it reads principal.${member}, which is not recorded`, cause };
  }
  return undefined;
}

const CAUSES = new Map<string, UnknownCause>([
  ['groups', 'groups'],
  ['claims', 'claims'],
  ['scopes', 'scopes'],
  ['subject', 'subject'],
  ['client', 'client'],
]);

const FINDINGS_TEXT = 'it reads what inspection finds, which is not known here';

/** A term of `when`. Of several, the text says of which expression it is one. */
function explainTerm(
  term: Term,
  { when }: Rule,
  { facts: seen }: Pick<EvaluationWorld, 'facts'>,
  facts: CallFacts,
): readonly ClauseResult[] {
  const unrecorded = unrecordedIn(term.reads, facts);
  if (unrecorded !== undefined) return [unrecorded];
  const result = term.evaluate(seen);
  if (result === 'holds') return [];
  // Before inspection it is an error to read what was found.
  if (result === 'error' && term.reads.readsFindings && seen.findings === undefined)
    return [{ path: ['when'], result: 'unknown', text: FINDINGS_TEXT, cause: 'findings' }];
  const own = term.text();
  return [{ path: ['when'], result, text: when?.terms.length === 1 ? own : `${own}, of: ${when?.text}` }];
}

/** The clauses that depend on the arguments, and do not hold; and why the rule cannot read the arguments. */
type ExplainedConditions = Pick<RuleExplanation, 'clauses'> & Pick<RuleExplanation['basis'], 'refusal'>;

const NOTHING: ExplainedConditions = { clauses: [], refusal: undefined };

/** How many combinations of possible values are evaluated; with more, the result is unknown. */
const MAX_POSSIBLE = 16;
/** Arguments of at most as many bytes are surely within what expressions may read, in bytes and in values. */
const SURELY_READABLE_BYTES = 4000;

function explainConditions(rule: Rule, target: PolicyTarget, facts: CallFacts): ExplainedConditions {
  const isCapturing = rule.effect === 'require' && rule.captures.length > 0;
  if (rule.conditions.length === 0 && costOf(rule) === undefined && !isCapturing) return NOTHING;
  const possible = possibleArguments(rule, facts);
  const results = possible?.map((args) => conditionsFor(rule, inputOf(facts, target, args), facts));
  const [first = NOTHING] = results ?? [];
  if (results?.every(({ clauses }) => stateOf(clauses) === stateOf(first.clauses)) === true) return first;
  const path = rule.args.length > 0 ? ['args'] : ['when'];
  const text = 'it reads arguments that are not recorded';
  const unrecorded = unrecordedArguments(rule, facts);
  const named = unrecorded.length > 0 && { unrecorded };
  return { clauses: [{ path, result: 'unknown', text, cause: 'arguments', ...named }], refusal: undefined };
}

function inputOf(facts: CallFacts, target: PolicyTarget, args: JsonObject): EvaluationInput {
  return evaluationInputOf(facts, target, args, targetPinOf(facts.catalog, target, args));
}

/**
 * Every form that the arguments may have as far as the rule reads them; `undefined` if there are too many. A member that
 * the rule does not read stands there as null: what it holds makes no difference, while its name may.
 */
function possibleArguments(rule: Rule, { args }: CallFacts): readonly JsonObject[] | undefined {
  if ('all' in args) return [args.all];
  const isEvaluated = rule.conditions.some(({ part }) => part === 'when') || costOf(rule) !== undefined;
  if (isEvaluated && args.bytes > SURELY_READABLE_BYTES) return undefined;
  if (!readsArguments(rule)) return [{}];
  if (rule.reads === undefined || args.names === undefined || rule.reads.readsAll) return undefined;
  const { members } = rule.reads;
  const possible = [...args.names].map((name) => [name, members.has(name) ? args.values.get(name) : [null]] as const);
  return combine(possible);
}

/** The arguments that a rule reads, that the call has and whose values are not known. */
function unrecordedArguments({ reads }: Rule, { args }: CallFacts): readonly string[] {
  if ('all' in args || reads === undefined || args.names === undefined) return [];
  const { names, values } = args;
  const read = reads.readsAll ? [...names] : [...names].filter((name) => reads.members.has(name));
  return read.filter((name) => !values.has(name)).map((name) => pointerTo('', name));
}

function combine(
  possible: readonly (readonly [string, readonly Json[] | undefined])[],
): readonly JsonObject[] | undefined {
  let all: JsonObject[] = [{}];
  for (const [name, values] of possible) {
    if (values === undefined || all.length * values.length > MAX_POSSIBLE) return undefined;
    all = all.flatMap((one) => values.map((value) => ({ ...one, [name]: value })));
  }
  return all;
}

const UNDESCRIBED_TEXT =
  'the arguments have a member that the definition does not describe and that the rule could be read to mean';
const INEXACT_TEXT = 'it reads a number that loses its value when it is read as a double';

/** The clauses that do not hold for these arguments, in the form of them that decides. */
function conditionsFor(rule: Rule, input: EvaluationInput, facts: CallFacts): ExplainedConditions {
  const refusal = unreadable(rule, input);
  if (refusal !== undefined) {
    const result = rule.effect === 'allow' ? 'fails' : 'error';
    const text = refusal === INEXACT ? INEXACT_TEXT : UNDESCRIBED_TEXT;
    return { clauses: [{ path: ['args'], result, text }], refusal };
  }
  const clauses = inDecidingForm(rule, input, {
    evaluate: (_rule, form) => conditionsIn(rule, form, facts),
    outcomeOf: stateOf,
  }) ?? [{ path: ['when'], result: 'error', text: 'filling in defaults takes too much work' }];
  return { clauses: clauses.length > 0 ? clauses : explainCost(rule, input, facts), refusal: undefined };
}

function explainCost(rule: Rule, input: EvaluationInput, facts: CallFacts): readonly ClauseResult[] {
  const cost = costOf(rule);
  if (cost === undefined) return [];
  const path = ['limits', 'budget', 'cost'];
  const unrecorded = unrecordedIn(cost.reads, facts);
  if (unrecorded !== undefined) return [{ ...unrecorded, path }];
  return costFor(rule, input) === undefined ? [{ path, result: 'error', text: 'it is no amount for this call' }] : [];
}

/** Of a rule whose `args` fail, `when` is not evaluated. Of its terms, one that is false outweighs one that fails. */
function conditionsIn(rule: Rule, form: EvaluationWorld, facts: CallFacts): readonly ClauseResult[] {
  const named = rule.conditions.flatMap((clause) => (clause.part === 'argument' ? explainArgument(clause, form) : []));
  if (named.length > 0) return named;
  const terms = rule.conditions.flatMap((clause) =>
    clause.part === 'when' ? explainTerm(clause.term, rule, form, facts) : [],
  );
  const state = stateOf(terms);
  return terms.filter(({ result }) => result === state).slice(0, state === 'unknown' ? undefined : 1);
}

function explainArgument({ name, schema }: ArgumentClause, { args }: EvaluationWorld): readonly ClauseResult[] {
  const path = ['args', name];
  const pointer = pointerTo('', name);
  const value = ownMember(args, name);
  if (value === undefined) return [{ path, result: 'fails', text: 'the argument is missing', pointer }];
  return schema.check(value).map((error) => {
    return { path, result: 'fails', text: error.message, pointer: pointer + error.pointer };
  });
}

/** What comes out of rules as far as it was explained. */
class KnownOutcomes implements Outcomes, ListingOutcomes {
  /** What would have decided, had it been known. */
  readonly open: RuleExplanation[] = [];
  isValidityOpen = false;
  readonly #explained: ReadonlyMap<Rule, RuleExplanation>;
  readonly #facts: CallFacts;
  readonly #described: PinnedDefinition | undefined;

  constructor(explained: readonly RuleExplanation[], facts: CallFacts, described: PinnedDefinition | undefined) {
    this.#explained = new Map(explained.map((one) => [one.basis.rule, one]));
    this.#facts = facts;
    this.#described = described;
  }

  hides(rule: Rule): Outcome {
    const { who, what } = this.#of(rule);
    return what === 'unknown' ? what : who;
  }

  countMissing({ scopes }: AllowRule): number {
    const { principal, unknown } = this.#facts;
    return unknown?.has('scopes') === true ? 0 : scopes.filter((scope) => !principal.scopes.includes(scope)).length;
  }

  outcomeOf(rule: Rule): Outcome {
    const { who, what, condition, clauses } = this.#of(rule);
    const isOpen = clauses.some(({ path, result }) => path[0] === 'scopes' && result === 'unknown');
    if (condition === 'fails') return condition;
    return isOpen || who === 'unknown' || what === 'unknown' ? 'unknown' : condition;
  }

  refuseArguments(): ArgumentRefusal | undefined {
    const { args, catalog } = this.#facts;
    const described = this.#described;
    if ('all' in args) return refuseByDefinition({ described, args: args.all, ...catalog });
    this.isValidityOpen = described?.input !== undefined && !args.areValid;
    return undefined;
  }

  unreadable(rule: Rule): ArgumentRefusal | undefined {
    const { who, what, basis } = this.#of(rule);
    return who === 'unknown' || what === 'unknown' ? undefined : basis.refusal;
  }

  adviseOn(): ArgumentRefusal {
    return {};
  }

  leaveOpen(rule: Rule): void {
    this.open.push(this.#of(rule));
  }

  #of(rule: Rule): RuleExplanation {
    const found = this.#explained.get(rule);
    if (found === undefined) throw new Error(`${rule.id} was not explained`);
    return found;
  }
}

/**
 * The verdict that follows from explained rules. Where everything is known, it is the one of `decide` for a request; where
 * a part is not known that could change it, it is `unknown`.
 */
export function verdictOf(rules: readonly RuleExplanation[], facts: CallFacts): KnownVerdict {
  const target = policyTargetOf(facts);
  if (target === undefined) return verdictWithoutRules(facts.target);
  const args = 'all' in facts.args ? facts.args.all : 'unknown';
  const { described } = targetPinOf(facts.catalog, target, args);
  const outcomes = new KnownOutcomes(rules, facts, described);
  const candidates = candidatesOf(rules.flatMap(matchedOf));
  const pin = refuseUnlisted(candidates, { ...facts, args }, target, outcomes);
  const ruling = 'verdict' in pin ? pin : ruleOnCall(candidates, outcomes);
  if ('verdict' in ruling) {
    const { reason, policy, rule } = ruling;
    return { verdict: 'deny', reason, ...(rule !== undefined && { rule: `${policy}/${rule}` }) };
  }
  const causesOf = ({ clauses }: RuleExplanation) => clauses.flatMap(({ cause }) => cause ?? []);
  const pending = outcomes.open.filter((one) => causesOf(one).join() === 'findings');
  if (pending.length === outcomes.open.length && !outcomes.isValidityOpen) {
    const idsOf = (isBeyondLimits: boolean) =>
      ruling.requires.filter(({ approval }) => approval?.isBeyondLimits === isBeyondLimits).map(({ id }) => id);
    const askers = idsOf(false);
    const possibleAskers = [...pending.map(({ id }) => id), ...idsOf(true)];
    return {
      verdict: 'allow',
      rule: ruling.rule.id,
      ...(askers.length > 0 && { askers }),
      ...(possibleAskers.length > 0 && { possibleAskers }),
    };
  }
  const causes = outcomes.open.flatMap(causesOf);
  if (outcomes.isValidityOpen) causes.push('validity');
  const pointers = outcomes.open.flatMap(({ clauses }) => clauses.flatMap(({ unrecorded }) => unrecorded ?? []));
  const named = [...new Set(pointers)].sort();
  return { verdict: 'unknown', causes: [...new Set(causes)].sort(), ...(named.length > 0 && { pointers: named }) };
}

function verdictWithoutRules({ kind }: CallFacts['target']): KnownVerdict {
  if (kind === 'none') return { verdict: 'allow', rule: 'builtin/protocol' };
  return { verdict: 'deny', reason: kind === 'task' ? 'unknown-task' : 'resource-forbidden' };
}

/** A rule that may concern the call, and what comes out of its who. */
function matchedOf({ who, what, effect, basis: { rule } }: RuleExplanation): readonly Matched[] {
  if (who === 'fails' || what === 'fails') return [];
  // Where its who cannot be evaluated, an allow rule does not match, whatever else is not known.
  const isOpen = what === 'unknown' && !(effect === 'allow' && who === 'error');
  return [{ rule, outcome: isOpen ? 'unknown' : who }];
}
