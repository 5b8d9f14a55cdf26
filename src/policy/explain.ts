// Explains decisions: which rules concern a call, which clause of each fails or cannot be known, and which verdict
// follows. The rules are the compiled ones, and conditions are evaluated by the functions that decide.ts uses. Of a
// recorded call not everything is known: what the record does not say is `unknown` here and never guessed. Pure.
// docs/contract.md §4.

import { type Json, type JsonObject, ownMember, type ServerRequestName } from '../protocol/jsonrpc.js';
import { pointerTo } from '../text/json-members.js';
import { type ConditionResult, compileExpression } from './cel.js';
import { STRING_LITERAL } from './cel-language.js';
import type { PolicyDocument, RuleDocument, WhoDocument } from './compile/documents.js';
import {
  costFor,
  type EvaluationInput,
  type EvaluationWorld,
  readsInexact,
  readsUndescribed,
  worldsFor,
} from './conditions.js';
import { decide, evaluationInputOf, type PolicyTarget, readPolicyTarget, targetPinOf } from './decide.js';
import type { RateLimit } from './decision.js';
import type { PinnedDefinition } from './definitions.js';
import type { Principal } from './principal.js';
import type { Reason } from './reasons.js';
import {
  allRules,
  compileWho,
  costOf,
  isUnconditional,
  matchesTarget,
  matchesUpstream,
  type PolicyQuery,
  type PolicySet,
  type Rule,
  readsArguments,
} from './rules.js';
import { fitsTerms, hasTerms } from './server-request-content.js';
import { EVERYTHING } from './shadow.js';

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
type UnknownCause = 'groups' | 'claims' | 'scopes' | 'arguments' | 'validity' | 'content';

/** A call as far as it is known. */
export type CallFacts = Pick<PolicyQuery, 'principal' | 'upstream' | 'target' | 'content' | 'catalog'> & {
  readonly args: KnownArguments;
  /** What the caller may have besides what `principal` has. */
  readonly unknown?: ReadonlySet<UnknownCause>;
};

/** A clause of a rule that does not hold, or is not known to. */
type ClauseResult = {
  /** Where it stands in the rule: `['who', 'groups']`, `['args', 'owner']`, `['when']`. */
  readonly path: readonly string[];
  readonly result: 'fails' | 'error' | 'unknown';
  /** One sentence without a full stop. */
  readonly text: string;
  /** JSON pointer into the arguments. */
  readonly pointer?: string;
  readonly cause?: UnknownCause;
  /** Of `scopes`: those that are missing. */
  readonly scopes?: readonly string[];
};

type RuleState = 'holds' | 'fails' | 'error' | 'unknown';

export type RuleExplanation = {
  readonly id: string;
  readonly effect: Rule['effect'];
  /** The file of the rule and its index there. */
  readonly file: string;
  readonly index: number;
  readonly who: RuleState;
  readonly what: RuleState;
  /** `args` and `when`; `holds` for a rule without both. */
  readonly condition: RuleState;
  /** The rule as a whole, of an allow rule with its scopes. */
  readonly state: RuleState;
  readonly clauses: readonly ClauseResult[];
  readonly limit?: RateLimit;
};

/** What follows from the rules as far as the call is known. */
export type KnownVerdict =
  | { readonly verdict: 'allow'; readonly rule: string }
  | { readonly verdict: 'deny'; readonly reason: Reason; readonly rule?: string }
  | { readonly verdict: 'unknown'; readonly causes: readonly UnknownCause[] };

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
  { file, index, rule: source }: WrittenRule,
  target: PolicyTarget | undefined,
  facts: CallFacts,
): RuleExplanation {
  const what = explainWhat(rule, target, facts);
  const who = explainWho(rule, source, facts);
  const scopes = rule.effect === 'allow' ? explainScopes(rule.scopes, facts) : [];
  const condition =
    stateOf(what) !== 'fails' && target !== undefined ? explainCondition(rule, source, target, facts) : [];
  const clauses = [...who, ...what, ...scopes, ...condition];
  const limit = rule.effect === 'deny' ? undefined : rule.limit;
  return {
    ...{ id: rule.id, effect: rule.effect, file, index },
    who: stateOf(who),
    what: stateOf(what),
    condition: stateOf(condition),
    state: stateOf(clauses),
    clauses,
    ...(limit && { limit }),
  };
}

/** What surely fails decides, even where something else is not known. */
function stateOf(clauses: readonly ClauseResult[]): RuleState {
  const has = (result: ClauseResult['result']): boolean => clauses.some((clause) => clause.result === result);
  if (has('fails')) return 'fails';
  if (has('unknown')) return 'unknown';
  return has('error') ? 'error' : 'holds';
}

function explainWhat(
  rule: Rule,
  target: PolicyTarget | undefined,
  { upstream, content }: CallFacts,
): readonly ClauseResult[] {
  const fails = (path: readonly string[], text: string): ClauseResult => {
    return { path: ['what', ...path], result: 'fails', text };
  };
  if (target === undefined) return [fails([], 'no rule can name this target')];
  const { kind, name } = target;
  const kindText = kind === 'question' ? 'server request' : kind;
  return [
    ...(matchesUpstream(rule, upstream)
      ? []
      : [fails(['upstreams'], `the upstream ${quoteAll([upstream])} is not named`)]),
    ...(matchesTarget(rule, kind, name, kind === 'question' ? undefined : target.readings)
      ? []
      : [fails([], `the ${kindText} ${quoteAll([name])} is not named`)]),
    ...(kind === 'question' ? explainContent(rule, name, content) : []),
  ];
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

type WhoKey = keyof WhoDocument;

/** What a record always says of a caller. Any other key of `who` may hold for reasons that it does not say. */
const RECORDED_KEYS: ReadonlySet<string> = new Set(['anyone', 'issuers', 'subjects', 'clients']);

const whoTests = new WeakMap<object, ReturnType<typeof compileWho>>();

/** Whether one key of `who` alone matches. Compiled once: a log has many calls. */
function matchesKey({ who, effect }: RuleDocument, key: WhoKey, principal: Principal): boolean {
  const value = who[key];
  if (typeof value !== 'object') return compileWho({ [key]: value }, effect)(principal);
  const test = whoTests.get(value) ?? compileWho({ [key]: value }, effect);
  whoTests.set(value, test);
  return test(principal);
}

function explainWho(rule: Rule, source: RuleDocument, facts: CallFacts): readonly ClauseResult[] {
  const { principal, unknown } = facts;
  if (rule.matchesWho(principal)) return [];
  const failed = (Object.keys(source.who) as WhoKey[]).filter((key) => !matchesKey(source, key, principal));
  return failed.map((key) => {
    const path = ['who', key];
    const text = describeCaller(key, principal);
    if (RECORDED_KEYS.has(key) || unknown === undefined) return { path, result: 'fails', text };
    const cause = key === 'groups' ? 'groups' : 'claims';
    return { path, result: 'unknown', text: `the ${key} of the caller are not recorded`, cause };
  });
}

function describeCaller(key: WhoKey, principal: Principal): string {
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

const UNDESCRIBED: ClauseResult = {
  path: ['args'],
  result: 'error',
  text: 'the arguments have a member that the definition does not describe and that the rule could be read to mean',
};

const INEXACT: ClauseResult = {
  path: ['args'],
  result: 'error',
  text: 'it reads a number that loses its value when it is read as a double',
};

/** How many combinations of possible values are evaluated; with more, the result is unknown. */
const MAX_WORLDS = 16;
/** Arguments of at most as many bytes are surely within what expressions may read, in bytes and in values. */
const SURELY_READABLE_BYTES = 4000;
/** What an expression may read of a recorded caller: everything else of `principal` is not in the record. */
const RECORDED_READS = /\bprincipal\s*\.\s*(?:issuer|subject|client|scopes)\b/g;

function explainCondition(
  rule: Rule,
  source: RuleDocument,
  target: PolicyTarget,
  facts: CallFacts,
): readonly ClauseResult[] {
  const cost = costOf(rule);
  if (isUnconditional(rule) && cost === undefined) return [];
  const path = rule.args.length > 0 ? ['args'] : ['when'];
  const expressions = [source.when, costTextOf(source)].filter((one) => one !== undefined);
  if (facts.unknown !== undefined && /principal|\\/.test(expressions.join(' ').replace(RECORDED_READS, '')))
    return [
      {
        path: ['when'],
        result: 'unknown',
        text: 'it reads what is not recorded of the caller',
        cause: 'claims',
      },
    ];
  const worlds = worldsOf(rule, facts);
  const results = worlds?.map((args) => evaluateIn(rule, source, inputOf(facts, target, args)));
  const [first = []] = results ?? [];
  const isSame = results?.every((one) => stateOf(one) === stateOf(first));
  return isSame === true
    ? first
    : [
        {
          path,
          result: 'unknown',
          text: 'it reads arguments that are not recorded',
          cause: 'arguments',
        },
      ];
}

function costTextOf(source: RuleDocument): string | undefined {
  return source.effect === 'deny' ? undefined : source.limits?.budget?.cost;
}

function inputOf(facts: CallFacts, target: PolicyTarget, args: JsonObject): EvaluationInput {
  const { principal, upstream, target: asked, catalog } = facts;
  const pin = targetPinOf(catalog, target, args);
  return evaluationInputOf({ principal, upstream, target: asked, args, catalog }, target, args, pin);
}

/**
 * Every form that the arguments may have as far as the rule reads them; `undefined` if there are too many. A member that
 * the rule does not read stands there as null: what it holds makes no difference, while its name may.
 */
function worldsOf(rule: Rule, { args }: CallFacts): readonly JsonObject[] | undefined {
  if ('all' in args) return [args.all];
  const isEvaluated = rule.when !== undefined || costOf(rule) !== undefined;
  if (isEvaluated && args.bytes > SURELY_READABLE_BYTES) return undefined;
  if (!readsArguments(rule)) return [{}];
  if (rule.reads === undefined || args.names === undefined || rule.reads.readsAll) return undefined;
  const { members } = rule.reads;
  const possible = [...args.names].map((name) => [name, members.has(name) ? args.values.get(name) : [null]] as const);
  return combine(possible);
}

function combine(
  possible: readonly (readonly [string, readonly Json[] | undefined])[],
): readonly JsonObject[] | undefined {
  let worlds: JsonObject[] = [{}];
  for (const [name, values] of possible) {
    if (values === undefined || worlds.length * values.length > MAX_WORLDS) return undefined;
    worlds = worlds.flatMap((world) => values.map((value) => ({ ...world, [name]: value })));
  }
  return worlds;
}

/**
 * The clauses that do not hold for these arguments, in the form of them that decides: as conditions.ts evaluates the
 * rule, with the defaults of absent arguments filled in, or without them.
 */
function evaluateIn(rule: Rule, document: RuleDocument, input: EvaluationInput): readonly ClauseResult[] {
  const unread = [
    ...(readsUndescribed(rule, input) ? [UNDESCRIBED] : []),
    ...(readsInexact(rule, input) ? [INEXACT] : []),
  ].slice(0, 1);
  if (unread.length > 0) return rule.effect === 'allow' ? unread.map((one) => ({ ...one, result: 'fails' })) : unread;
  const worlds = worldsFor(rule, input);
  if (worlds === 'unknown')
    return [{ path: ['when'], result: 'error', text: 'filling in defaults takes too much work' }];
  const forms = worlds.map((world) => conditionsIn(rule, document, world));
  const isAllow = rule.effect === 'allow';
  const failing = forms.find((clauses) => clauses.length > 0 === isAllow) ?? forms.at(-1) ?? [];
  if (failing.length > 0) return failing;
  if (costOf(rule) === undefined || costFor(rule, input) !== undefined) return [];
  return [{ path: ['limits', 'budget', 'cost'], result: 'error', text: 'it is no amount for this call' }];
}

/** Of a rule whose `args` fail, `when` is not evaluated. */
function conditionsIn(rule: Rule, { when }: RuleDocument, world: EvaluationWorld): readonly ClauseResult[] {
  const failing = rule.args.flatMap(({ name, schema }): ClauseResult[] => {
    const path = ['args', name];
    const pointer = pointerTo('', name);
    const value = ownMember(world.args, name);
    if (value === undefined) return [{ path, result: 'fails', text: 'the argument is missing', pointer }];
    return schema.check(value).map((error) => {
      return { path, result: 'fails', text: error.message, pointer: pointer + error.pointer };
    });
  });
  if (failing.length > 0) return failing;
  const result = rule.when === undefined ? 'holds' : rule.when.evaluate(world.facts);
  if (result === 'holds') return [];
  return [{ path: ['when'], result, text: firstFailing(when ?? '', result, world) }];
}

/** The first of the terms that an expression joins by `&&` which does not hold; of any other, all of it. */
function firstFailing(text: string, result: ConditionResult, { facts }: EvaluationWorld): string {
  const terms = termsOf(text);
  const failing = terms.find((term) => {
    const compiled = compileExpression(term);
    return !compiled.ok || compiled.expression.evaluate(facts) !== 'holds';
  });
  const compiled = failing === undefined ? undefined : compileExpression(failing);
  const isCause = compiled?.ok === true && compiled.expression.evaluate(facts) === result;
  return failing !== undefined && isCause && terms.length > 1 ? `${failing}, of: ${text}` : text;
}

/** The terms of a conjunction; the whole text where another operator binds less than `&&` does. */
function termsOf(text: string): readonly string[] {
  let depth = 0;
  let start = 0;
  const terms: string[] = [];
  const code = text.replace(STRING_LITERAL, (literal) => 's'.repeat(literal.length));
  for (let at = 0; at < code.length; at += 1) {
    const mark = code.charAt(at);
    if ('([{'.includes(mark)) depth += 1;
    else if (')]}'.includes(mark)) depth -= 1;
    else if (depth > 0) continue;
    else if (mark === '?' || mark === '|') return [text];
    else if (mark === '&') {
      terms.push(text.slice(start, at).trim());
      at += 1;
      start = at + 1;
    }
  }
  return [...terms, text.slice(start).trim()];
}

/**
 * The verdict that follows from explained rules, in the order of decide.ts. Where everything is known, it is the one of
 * `decide` for a request; where a part is not known that could change it, it is `unknown`.
 */
export function verdictOf(rules: readonly RuleExplanation[], facts: CallFacts): KnownVerdict {
  const target = policyTargetOf(facts);
  if (target === undefined) return verdictWithoutRules(facts.target);
  const concerned = rules.filter(({ what, who }) => what !== 'fails' && who !== 'fails');
  const allows = concerned.filter(({ effect }) => effect === 'allow');
  if (allows.length === 0) return { verdict: 'deny', reason: 'no-matching-allow' };
  const pin = targetPinOf(facts.catalog, target, 'all' in facts.args ? facts.args.all : 'unknown');
  const validity = validityOf(facts, pin.described);
  return refusalOf(concerned, allows, pin.refusal, validity) ?? verdictOfPossible(concerned, allows, validity);
}

function verdictWithoutRules({ kind }: CallFacts['target']): KnownVerdict {
  if (kind === 'none') return { verdict: 'allow', rule: 'builtin/protocol' };
  return { verdict: 'deny', reason: kind === 'task' ? 'unknown-task' : 'resource-forbidden' };
}

/** The refusal that follows whatever is not known. */
function refusalOf(
  concerned: readonly RuleExplanation[],
  allows: readonly RuleExplanation[],
  pinRefusal: Reason | undefined,
  validity: RuleState,
): KnownVerdict | undefined {
  const refusing = concerned.find(doesRefuse);
  if (refusing !== undefined) return { verdict: 'deny', reason: reasonOf(refusing), rule: refusing.id };
  if (pinRefusal !== undefined) return { verdict: 'deny', reason: pinRefusal };
  if (!allows.some(mayHold)) return { verdict: 'deny', reason: reasonOfFailed(allows) };
  return validity === 'fails' ? { verdict: 'deny', reason: 'arguments-invalid' } : undefined;
}

/** Whether a rule that concerns a call surely refuses it. */
export function doesRefuse({ effect, who, what, state }: RuleExplanation): boolean {
  if (effect === 'allow' || who !== 'holds' || what !== 'holds') return false;
  return state === 'error' || (effect === 'deny' && state === 'holds');
}

function mayHold({ state }: RuleExplanation): boolean {
  return state === 'holds' || state === 'unknown';
}

/** Whether a rule could refuse if what is not known was known; a require rule does where it cannot be evaluated. */
function mayRefuse({ effect, state, condition }: RuleExplanation): boolean {
  if (effect === 'deny') return state === 'unknown';
  return effect === 'require' && (condition === 'unknown' || condition === 'error');
}

function verdictOfPossible(
  concerned: readonly RuleExplanation[],
  allows: readonly RuleExplanation[],
  validity: RuleState,
): KnownVerdict {
  const sure = allows.find(({ state }) => state === 'holds');
  const open = [...(sure === undefined ? allows.filter(mayHold) : []), ...concerned.filter(mayRefuse)];
  if (sure !== undefined && open.length === 0 && validity === 'holds') return { verdict: 'allow', rule: sure.id };
  const causes = open.flatMap(({ clauses }) => clauses.flatMap(({ cause }) => cause ?? []));
  if (validity === 'unknown') causes.push('validity');
  return { verdict: 'unknown', causes: [...new Set(causes)].sort() };
}

/** Whether the definition admits the arguments. */
function validityOf(facts: CallFacts, described: PinnedDefinition | undefined): RuleState {
  const { args, target } = facts;
  if (described?.input === undefined || target.kind === 'question') return 'holds';
  if (!('all' in args)) return args.areValid ? 'holds' : 'unknown';
  const decision = decide(EVERYTHING, { ...facts, args: args.all });
  return decision.verdict === 'deny' && decision.reason === 'arguments-invalid' ? 'fails' : 'holds';
}

function reasonOf({ effect, state, clauses }: RuleExplanation): Reason {
  if (clauses.includes(UNDESCRIBED) || clauses.includes(INEXACT)) return 'arguments-invalid';
  return effect === 'deny' && state === 'holds' ? 'denied-by-rule' : 'policy-error';
}

/** Why no alternative holds; of several reasons the one that is nearest to an allow. */
function reasonOfFailed(allows: readonly RuleExplanation[]): Reason {
  if (allows.some(({ state }) => state === 'error')) return 'policy-error';
  const isForScope = allows.every(({ clauses }) => clauses.some(({ path }) => path[0] === 'scopes'));
  return isForScope ? 'insufficient-scope' : 'arguments-invalid';
}
