// Compiled rules and their indexes by caller, upstream, kind and name. Determines which rules apply to a
// query, never whether it is allowed. Exact names are looked up in maps and patterns tried one by one; the
// rules that match a caller are computed once per principal. docs/reference/policies.md.

import type { JsonObject, ServerRequestName, Target, TaskUse } from '../protocol/jsonrpc.js';
import { isGranted, type ServerRequestGrants } from '../protocol/server-requests.js';
import { BoundedMap } from '../state/bounds.js';
import type { ApprovalRequirement, ApprovalTerms } from './approval-terms.js';
import type { ConditionResult, CostExpression, Expression } from './cel.js';
import type { ExpressionFacts } from './cel-language.js';
import { type EvaluationWorld, evaluateClauses, type Outcome, type RuleClauses, type WhoClause } from './clauses.js';
import type { RuleDocument, WhoDocument } from './compile/documents.js';
import type { Budget, RateLimit } from './decision.js';
import type { ArgumentReads, Catalog, CompiledSchema } from './definitions.js';
import type { FlowSet, SensitiveSet } from './information-flow.js';
import { foldItemName, foldPattern, matchesPattern, type Pattern } from './patterns.js';
import type { Principal } from './principal.js';
import { fitsTerms, hasTerms, type ServerRequestContent, type ServerRequestTerms } from './server-request-content.js';
import { namesUri, type UriReadings } from './uris.js';

/** What is to be decided. A list is a query with unknown arguments (docs/contract.md, law 2). */
export type PolicyQuery = {
  readonly principal: Principal;
  readonly upstream: string;
  readonly target: Target;
  /** `unknown` for lists. Otherwise the arguments of a tool or prompt; `{}` if the client sent none. */
  readonly args: JsonObject | 'unknown';
  /** What a server request contains. Absent if the question is what servers may request of a caller at all. */
  readonly content?: ServerRequestContent | undefined;
  /** Detectors that found something in the arguments. Absent before they were inspected. */
  readonly findings?: readonly string[] | undefined;
  readonly catalog: Catalog;
};

declare const policySetBrand: unique symbol;

/** Compiled, frozen policies. Made by policy/compile/compile.ts. */
export interface PolicySet {
  readonly [policySetBrand]: true;
  /** SHA-256 over the policy files, lower-case hex; supplied by the reader. */
  readonly hash: string;
  readonly ruleCount: number;
  /** Absent where every policy is enforced. */
  readonly shadow?: Shadow;
  /** Absent where no policy has a flow. */
  readonly flows: FlowSet | undefined;
  /** Absent where no policy has sensitive fields. */
  readonly sensitive: SensitiveSet | undefined;
  /** The names of all budgets, sorted. */
  readonly budgets: readonly string[];
  /** How far back flows and budgets look, in milliseconds; 0 without any. */
  readonly historyMs: number;
}

/** What is evaluated beside the rules in force, for the record alone: see shadow.ts. */
export type Shadow = {
  /** The policies with `mode: shadow`, each together with the rules that are enforced. */
  readonly policies: readonly { readonly policy: string; readonly set: PolicySet }[];
  /** With `policies.mode: observe`: the rules that would be enforced. */
  readonly unenforced: PolicySet | undefined;
};

/** The kinds of target that rules name. */
export type TargetKind = 'tool' | 'prompt' | 'resource' | 'template';

export const TARGET_KINDS: readonly TargetKind[] = ['tool', 'prompt', 'resource', 'template'];

type RuleBase = RuleClauses & {
  /** `policy/rule`: unique, and the order in which rules are evaluated. */
  readonly id: string;
  readonly policy: string;
  readonly rule: string;
  readonly matchesWho: (principal: Principal) => boolean;
  /** What it says, as a digest: see rule-text.ts. */
  readonly text: string;
  /** The groups that `who` names; undefined if it names none. */
  readonly groups: readonly string[] | undefined;
  /** Undefined if the rule names no upstream: it then applies to every one. */
  readonly upstreams: readonly Pattern[] | undefined;
  readonly targets: { readonly [kind in TargetKind]: readonly Pattern[] };
  /** The server requests that the rule applies to. */
  readonly grants: ServerRequestGrants;
  /** Its conditions on the content of server requests; absent if it has none. */
  readonly terms?: ServerRequestTerms | undefined;
  /** The uses of tasks that it applies to, besides the tasks of its tools. */
  readonly tasks: readonly TaskUse[];
  readonly args: readonly {
    readonly name: string;
    readonly schema: CompiledSchema;
    /** The schema as the policy has it. */
    readonly written: JsonObject | boolean;
  }[];
  readonly when: Expression | undefined;
  /** What `args` and `when` read of the arguments; undefined if they read nothing of them. */
  readonly reads: ArgumentReads | undefined;
  /** Those of them whose values are read, and not their presence alone. */
  readonly valueReads: ArgumentReads | undefined;
};

/** A budget, and what a call costs of it. */
export type RuleBudget = Budget & { readonly cost: CostExpression };

export type AllowRule = RuleBase & {
  readonly effect: 'allow';
  readonly scopes: readonly string[];
  readonly limit: RateLimit | undefined;
  readonly budget: RuleBudget | undefined;
};

export type DenyRule = RuleBase & { readonly effect: 'deny'; readonly advice: string | undefined };

export type RequireRule = RuleBase & {
  readonly effect: 'require';
  readonly limit: RateLimit | undefined;
  readonly budget: RuleBudget | undefined;
  readonly profile: string | undefined;
  readonly maxResultBytes: number | undefined;
  readonly captures: readonly string[];
  /** What the captures read of the arguments. */
  readonly captureReads: ArgumentReads | undefined;
  /** Who has to say yes, and what the rule tells that person. */
  readonly approval:
    | {
        readonly terms: ApprovalTerms;
        readonly reason: string | undefined;
        /** Only a call that its limits would refuse is asked about. */
        readonly isBeyondLimits: boolean;
      }
    | undefined;
  /** It needs what waits for a restart, and refuses what it matches until then. */
  readonly isClosed?: true;
};

export type Rule = AllowRule | DenyRule | RequireRule;

/** The rules that match one caller and one target by `who` and `what`; each list in the order of ids. */
export type Candidates = {
  readonly allows: readonly AllowRule[];
  /** An allow rule whose terms about caller and item cannot be evaluated, so that it does not match. */
  readonly failedAllow: AllowRule | undefined;
  /** The deny rule that hides the target, because it holds whatever the arguments or cannot be evaluated. */
  readonly hiding: { readonly rule: DenyRule; readonly outcome: 'holds' | 'error' } | undefined;
  /** Deny rules that hide the target if its annotations, which are those of the pin, say so. */
  readonly annotated: readonly DenyRule[];
  /** The deny rules that depend on the arguments. */
  readonly denies: readonly DenyRule[];
  readonly requires: readonly RequireRule[];
};

export function readsArguments(rule: Rule): boolean {
  const expressions = [rule.when, costOf(rule)];
  return rule.reads !== undefined || expressions.some((one) => one?.reads.readsAnyArgument);
}

/** What a call costs by this rule, if the rule has a budget. */
export function costOf(rule: Rule): CostExpression | undefined {
  return rule.effect === 'deny' ? undefined : rule.budget?.cost;
}

/** True for a rule that depends on nothing but `who` and `what`. */
export function isUnconditional(rule: Rule): boolean {
  return rule.args.length === 0 && rule.when === undefined;
}

/** Whether a rule hides what it denies: it depends on nothing but caller and item. */
export function canHide(rule: Rule): boolean {
  return rule.effect === 'deny' && rule.conditions.length === 0;
}

export function readsAnnotations({ when }: Rule): boolean {
  return when?.reads.toolMembers.has('annotations') === true;
}

/** Whether a rule asks depending on what inspection finds in the arguments. */
export function readsFindings({ when }: Rule): boolean {
  return when?.reads.readsFindings === true;
}

/** Whether a rule hides what it denies by the annotations of the item. */
function isAnnotated(rule: Rule): boolean {
  return canHide(rule) && readsAnnotations(rule);
}

export function matchesUpstream(rule: Rule, upstream: string): boolean {
  return rule.upstreams?.some((pattern) => matchesPattern(pattern, upstream)) ?? true;
}

/**
 * Whether a rule names a target by its kind and name, whatever the upstream. Resource names are normal forms of URIs; with
 * their readings, one is named as namesUri says.
 */
export function matchesTarget(
  rule: Rule,
  kind: TargetKind | 'server-request',
  name: string | ServerRequestName,
  readings?: UriReadings,
): boolean {
  if (readings !== undefined) return namesUri(rule.targets.resource, readings, rule.effect);
  return kind === 'server-request'
    ? isGranted(rule.grants, name as ServerRequestName)
    : rule.targets[kind].some((pattern) => matchesPattern(pattern, name));
}

/** Like `matchesTarget`, for a name that nothing pins: a rule that restricts holds for it in any case. */
export function matchesUnpinned({ targets }: Rule, kind: TargetKind, name: string): boolean {
  const folded = foldItemName(name);
  return targets[kind].some((pattern) => matchesPattern(foldPattern(pattern), folded));
}

type KindIndex = {
  readonly exact: ReadonlyMap<string, readonly Rule[]>;
  readonly patterned: readonly { readonly rule: Rule; readonly pattern: Pattern }[];
  /** The rules that name some target of the kind. */
  readonly rules: readonly Rule[];
  /** The rules that restrict, with their patterns in the form in which names are compared whatever their case. */
  readonly folded: readonly { readonly rule: Rule; readonly pattern: Pattern }[];
  /** Cached results; bounded, because names come from the wire. */
  readonly known: BoundedMap<string, Candidates>;
  /** The same for names that nothing pins. */
  readonly knownUnpinned: BoundedMap<string, Candidates>;
};

type UpstreamIndex = { readonly [kind in TargetKind]: KindIndex } & {
  readonly rules: readonly Rule[];
  /** Computed when first needed. */
  readonly serverRequests: Map<ServerRequestName, ServerRequestRules>;
};

type ServerRequestRules = {
  readonly named: readonly Rule[];
  readonly all: Candidates;
  /** Some of them say what a server request may contain. */
  readonly readContent: boolean;
};

/** The rules for one set of `who` matches. Shared by all principals with the same matches. */
type PrincipalRules = {
  readonly key: string;
  /** Without those of which a term about the caller is false. */
  readonly rules: readonly Rule[];
  /** Those of which such a term cannot be evaluated. */
  readonly erring: ReadonlySet<Rule>;
  readonly upstreams: Map<string, UpstreamIndex>;
};

const MAX_PRINCIPAL_RULES = 1000;
const MAX_KNOWN_NAMES = 1000;

interface CompiledPolicies extends PolicySet {
  readonly rules: readonly Rule[];
  readonly byPrincipal: WeakMap<Principal, PrincipalRules>;
  readonly byKey: BoundedMap<string, PrincipalRules>;
}

/** What a set has besides rules. */
type PolicySetParts = {
  readonly flows?: FlowSet | undefined;
  readonly sensitive?: SensitiveSet | undefined;
  readonly shadow?: Shadow;
};

/** Makes the compiled set. */
export function createPolicySet(
  hash: string,
  rules: readonly Rule[],
  { flows, sensitive, shadow }: PolicySetParts = {},
): PolicySet {
  const set = {
    flows,
    sensitive,
    hash,
    ruleCount: rules.length,
    ...(shadow && { shadow }),
    budgets: budgetsOf(rules),
    historyMs: Math.max(
      0,
      flows?.keepMs ?? 0,
      ...rules.map((rule) => (rule.effect === 'deny' ? 0 : (rule.budget?.windowMs ?? 0))),
    ),
    rules: Object.freeze([...rules]),
    byPrincipal: new WeakMap(),
    byKey: new BoundedMap(MAX_PRINCIPAL_RULES),
  };
  return Object.freeze(set) as unknown as PolicySet;
}

/** All rules of a set. */
export function allRules(policies: PolicySet): readonly Rule[] {
  return (policies as CompiledPolicies).rules;
}

/** What each rule and each asking flow says, by its id; without those that are closed until a restart. */
export function openTexts(policies: PolicySet): ReadonlyMap<string, string> {
  const isOpen = (rule: Rule): boolean => rule.effect !== 'require' || rule.isClosed !== true;
  return new Map([
    ...allRules(policies)
      .filter(isOpen)
      .map(({ id, text }) => [id, text] as const),
    ...(policies.flows?.requirements ?? []).map(({ rule, text }) => [rule, text] as const),
  ]);
}

/** The rules and flows that ask persons for approvals, and whom. */
export function approvalRules(policies: PolicySet): readonly Pick<ApprovalRequirement, 'rule' | 'terms'>[] {
  const ofRules = allRules(policies).flatMap((rule) =>
    rule.effect === 'require' && rule.approval !== undefined ? [{ rule: rule.id, terms: rule.approval.terms }] : [],
  );
  return [...ofRules, ...(policies.flows?.requirements ?? [])];
}

function budgetsOf(rules: readonly Rule[]): readonly string[] {
  const names = rules.flatMap((rule) => (rule.effect === 'deny' ? [] : (rule.budget?.name ?? [])));
  return Object.freeze([...new Set(names)].sort());
}

/**
 * Identifies which rules match this caller by `who`: callers with the same key see the same lists under this
 * set. Does not depend on scopes unless a rule reads them in `when` (docs/contract.md, law 2).
 */
export function matchKey(policies: PolicySet, principal: Principal): string {
  return principalRulesOf(policies as CompiledPolicies, principal).key;
}

/**
 * The rules that match a caller by `who` and apply to an upstream: the same array, by identity, for all
 * callers with the same key.
 */
export function rulesFor(policies: PolicySet, principal: Principal, upstream: string): readonly Rule[] {
  return upstreamIndex(principalRulesOf(policies as CompiledPolicies, principal), upstream).rules;
}

/** The rules that match by `who` and `what` and apply to a server request with this content. */
export function findServerRequestRules(
  policies: PolicySet,
  query: Pick<PolicyQuery, 'principal' | 'upstream' | 'content'>,
  name: ServerRequestName,
): Candidates {
  const { named, all, readContent } = serverRequestRules(policies, query, name);
  if (!readContent) return all;
  const fits = ({ terms, effect }: Rule): boolean => fitsTerms(terms, name, query.content, effect !== 'allow');
  return candidatesAmong(named.filter(fits), erringFor(policies, query.principal), query, '');
}

function erringFor(policies: PolicySet, principal: Principal): ReadonlySet<Rule> {
  return principalRulesOf(policies as CompiledPolicies, principal).erring;
}

/** Whether some rule for this caller and upstream has conditions on the content of such a server request. */
export function readsContent(
  policies: PolicySet,
  query: Pick<PolicyQuery, 'principal' | 'upstream'>,
  name: ServerRequestName,
): boolean {
  return serverRequestRules(policies, query, name).readContent;
}

function serverRequestRules(
  policies: PolicySet,
  { principal, upstream }: Pick<PolicyQuery, 'principal' | 'upstream'>,
  name: ServerRequestName,
): ServerRequestRules {
  const { rules, serverRequests } = upstreamIndex(principalRulesOf(policies as CompiledPolicies, principal), upstream);
  const known = serverRequests.get(name);
  if (known !== undefined) return known;
  const named = rules.filter((rule) => isGranted(rule.grants, name));
  const readContent = named.some(({ terms }) => hasTerms(terms, name));
  const all = candidatesAmong(named, erringFor(policies, principal), { principal, upstream }, '');
  const found = { named, all, readContent };
  serverRequests.set(name, found);
  return found;
}

/** The rules that apply to a use of a task: those of its tool, and those that name the use. */
export function findTaskRules(
  policies: PolicySet,
  { principal, upstream }: Pick<PolicyQuery, 'principal' | 'upstream'>,
  tool: string,
  use: TaskUse,
): Candidates {
  const principalRules = principalRulesOf(policies as CompiledPolicies, principal);
  const index = upstreamIndex(principalRules, upstream);
  const named = index.rules.filter(({ tasks }) => tasks.includes(use));
  if (named.length === 0) return findCandidates(policies, principal, upstream, 'tool', tool);
  const all = new Set([...matchingRules(index.tool, tool, false), ...named]);
  return candidatesAmong(all, principalRules.erring, { principal, upstream }, tool);
}

/**
 * The rules that match by `who` and `what`. Resource names are normal forms of URIs, and are decided by their `readings`.
 * Where no pin says which names there are (`isUnpinned`), rules that restrict hold for a name in any case: a server may
 * take it for the same.
 */
export function findCandidates(
  policies: PolicySet,
  principal: Principal,
  upstream: string,
  kind: TargetKind,
  name: string,
  { readings, isUnpinned = false }: { readonly readings?: UriReadings | undefined; readonly isUnpinned?: boolean } = {},
): Candidates {
  const principalRules = principalRulesOf(policies as CompiledPolicies, principal);
  const index = upstreamIndex(principalRules, upstream)[kind];
  const key = readings?.written ?? name;
  const cache = isUnpinned ? index.knownUnpinned : index.known;
  const known = cache.get(key);
  if (known !== undefined) return known;
  const matching =
    readings === undefined
      ? matchingRules(index, name, isUnpinned)
      : new Set(index.rules.filter((rule) => matchesTarget(rule, kind, name, readings)));
  const item = kind === 'tool' || kind === 'prompt' ? name : '';
  const candidates = candidatesAmong(matching, principalRules.erring, { principal, upstream }, item);
  cache.set(key, candidates);
  return candidates;
}

function principalRulesOf(policies: CompiledPolicies, principal: Principal): PrincipalRules {
  const known = policies.byPrincipal.get(principal);
  if (known !== undefined) return known;
  const erring = new Set<Rule>();
  const caller = worldOf(principal, { upstream: '', name: '' });
  const rules = policies.rules.filter((rule) => {
    if (!rule.matchesWho(principal)) return false;
    const outcome = evaluateClauses(rule.callerTerms, caller);
    if (outcome === 'error') erring.add(rule);
    return outcome !== 'fails';
  });
  const key = [keyOf(policies.rules, rules), ...[...erring].map(({ id }) => id), ...readOf(principal, rules)].join(
    '\n',
  );
  let principalRules = policies.byKey.get(key);
  if (principalRules === undefined) {
    principalRules = { key, rules, erring, upstreams: new Map() };
    policies.byKey.set(key, principalRules);
  }
  policies.byPrincipal.set(principal, principalRules);
  return principalRules;
}

const NOTHING: JsonObject = Object.freeze({});

/** What terms about caller and item see. */
function worldOf(
  principal: Principal,
  { upstream, name, annotations = NOTHING }: Pick<ExpressionFacts, 'upstream' | 'name'> & Partial<ExpressionFacts>,
): EvaluationWorld {
  return { args: NOTHING, facts: { principal, upstream, name, annotations, args: NOTHING, uri: undefined } };
}

/** The values of the caller that terms about the item read: callers who differ in them may see other items. */
function readOf(principal: Principal, rules: readonly Rule[]): readonly string[] {
  const paths = rules.flatMap(({ itemTerms }) => itemTerms.flatMap(({ term }) => term.reads.principalPaths));
  return paths.map(([member = '', ...rest]) => {
    if (member === 'groups' && principal.areGroupsUnknown === true) return '?';
    let at: unknown = principal;
    for (const name of [member, ...rest])
      at = typeof at === 'object' && at !== null && Object.hasOwn(at, name) ? (at as JsonObject)[name] : undefined;
    return JSON.stringify(at) ?? '-';
  });
}

/** One bit per rule, four bits per character. */
function keyOf(all: readonly Rule[], matching: readonly Rule[]): string {
  const digits = new Uint8Array(Math.ceil(all.length / 4));
  const set = new Set(matching);
  for (const [index, rule] of all.entries()) {
    if (set.has(rule)) digits[index >> 2] = (digits[index >> 2] ?? 0) | (1 << (index & 3));
  }
  return Array.from(digits, (digit) => digit.toString(16)).join('');
}

function upstreamIndex(principalRules: PrincipalRules, upstream: string): UpstreamIndex {
  const known = principalRules.upstreams.get(upstream);
  if (known !== undefined) return known;
  const rules = principalRules.rules.filter((rule) => matchesUpstream(rule, upstream));
  const index = {
    tool: indexKind(rules, 'tool'),
    prompt: indexKind(rules, 'prompt'),
    resource: indexKind(rules, 'resource'),
    template: indexKind(rules, 'template'),
    rules,
    serverRequests: new Map(),
  };
  principalRules.upstreams.set(upstream, index);
  return index;
}

function indexKind(rules: readonly Rule[], kind: TargetKind): KindIndex {
  const exact = new Map<string, Rule[]>();
  const patterned: { rule: Rule; pattern: Pattern }[] = [];
  for (const rule of rules) {
    for (const pattern of rule.targets[kind]) {
      if (pattern.kind === 'pattern') patterned.push({ rule, pattern });
      else exact.set(pattern.text, [...(exact.get(pattern.text) ?? []), rule]);
    }
  }
  const named = rules.filter((rule) => rule.targets[kind].length > 0);
  const restricting = named.filter(({ effect }) => effect !== 'allow');
  const folded = restricting.flatMap((rule) =>
    rule.targets[kind].map((pattern) => ({ rule, pattern: foldPattern(pattern) })),
  );
  return {
    exact,
    patterned,
    rules: named,
    folded,
    known: new BoundedMap(MAX_KNOWN_NAMES),
    knownUnpinned: new BoundedMap(MAX_KNOWN_NAMES),
  };
}

function matchingRules(index: KindIndex, name: string, isUnpinned: boolean): ReadonlySet<Rule> {
  const found = new Set(index.exact.get(name));
  const inOneCase = isUnpinned ? foldItemName(name) : name;
  for (const { rule, pattern } of isUnpinned ? index.folded : [])
    if (matchesPattern(pattern, inOneCase)) found.add(rule);
  for (const { rule, pattern } of index.patterned) {
    if (!found.has(rule) && matchesPattern(pattern, name)) found.add(rule);
  }
  return found;
}

/** Sorts the rules that match a caller and an item, of which some are decided by these alone. */
function candidatesAmong(
  matching: Iterable<Rule>,
  erring: ReadonlySet<Rule>,
  { principal, upstream }: Pick<PolicyQuery, 'principal' | 'upstream'>,
  name: string,
): Candidates {
  const world = worldOf(principal, { upstream, name });
  const sorted = [...matching].sort((a, b) => (a.id < b.id ? -1 : 1));
  const matched = sorted.map((rule): Matched => {
    const outcome = isAnnotated(rule) ? 'holds' : evaluateClauses(rule.itemTerms, world);
    return { rule, outcome: outcome === 'holds' && erring.has(rule) ? 'error' : outcome };
  });
  return candidatesOf(matched.filter(({ outcome }) => outcome !== 'fails'));
}

/** A rule that may match, and what comes out of the terms that belong to its who. */
export type Matched = { readonly rule: Rule; readonly outcome: Outcome };

/** Sorts rules, which are in the order of their ids. */
export function candidatesOf(matched: readonly Matched[]): Candidates {
  const rulesOf = <Effect extends Rule['effect']>(effect: Effect, isMeant = (_outcome: Outcome) => true) =>
    matched.flatMap(({ rule, outcome }) =>
      rule.effect === effect && isMeant(outcome) ? [rule as Extract<Rule, { effect: Effect }>] : [],
    );
  const failed = (outcome: Outcome): boolean => outcome === 'error';
  const [failedAllow] = rulesOf('allow', failed);
  const hides = (rule: DenyRule): boolean => canHide(rule) && !isAnnotated(rule);
  const denying = rulesOf('deny', (outcome) => outcome === 'holds').find(hides);
  const failing = rulesOf('deny', failed).find(hides);
  return {
    allows: rulesOf('allow', (outcome) => outcome !== 'error'),
    failedAllow,
    hiding: denying ? { rule: denying, outcome: 'holds' } : failing && { rule: failing, outcome: 'error' },
    annotated: rulesOf('deny').filter(isAnnotated),
    denies: rulesOf('deny').filter((rule) => !isAnnotated(rule)),
    requires: rulesOf('require'),
  };
}

/** What an annotated deny rule says of an item with these annotations. */
export function evaluateAnnotated(
  { callerTerms, itemTerms }: Rule,
  principal: Principal,
  item: Pick<ExpressionFacts, 'upstream' | 'name' | 'annotations'>,
): ConditionResult {
  return evaluateClauses([...callerTerms, ...itemTerms], worldOf(principal, item));
}

type Claim = string | number | boolean;

/**
 * Compiles `who` into a test for a rule of this effect, which reads the verified principal only. Identities
 * are exact strings; keys are ANDed, the elements of a list ORed. If a token leaves a caller's groups or a
 * claim to another source, a rule that grants does not match and a rule that restricts does
 * (docs/contract.md, law 5). A `who` without any key matches no caller.
 */
export function compileWho(who: WhoDocument, effect: RuleDocument['effect']): (principal: Principal) => boolean {
  return matchesAll(whoClauses(who, effect));
}

export function matchesAll(clauses: readonly WhoClause[]): (principal: Principal) => boolean {
  return (principal) => clauses.every(({ matches }) => matches(principal));
}

/** `who` by its keys. */
export function whoClauses(who: WhoDocument, effect: RuleDocument['effect']): readonly WhoClause[] {
  const restricts = effect !== 'allow';
  const clauses: WhoClause[] = [];
  const add = (key: WhoClause['key'], matches: WhoClause['matches']) => clauses.push({ part: 'who', key, matches });
  const { issuers, subjects, clients, groups, actors, claims } = who;
  if (issuers !== undefined)
    add(
      'issuers',
      among(issuers, (principal) => principal.issuer),
    );
  if (subjects !== undefined)
    add(
      'subjects',
      among(subjects, (principal) => principal.subject),
    );
  if (clients !== undefined)
    add(
      'clients',
      among(clients, (principal) => principal.client),
    );
  if (groups !== undefined) add('groups', groupAmong(groups, restricts));
  if (actors !== undefined) add('actors', actorAmong(actors, restricts));
  const tests = Object.entries(claims ?? {}).map(([name, values]) => claimAmong(name, values, restricts));
  if (tests.length > 0) add('claims', (principal) => tests.every((test) => test(principal)));
  if (clauses.length === 0 && who.anyone !== true) add('anyone', () => false);
  return clauses;
}

function groupAmong(names: readonly string[], restricts: boolean): WhoClause['matches'] {
  const named = new Set(names);
  return ({ areGroupsUnknown, groups }) =>
    areGroupsUnknown === true ? restricts : groups.some((group) => named.has(group));
}

function among(names: readonly string[], read: (principal: Principal) => string): (principal: Principal) => boolean {
  const named = new Set(names);
  return (principal) => named.has(read(principal));
}

/**
 * Compares the current actor alone: earlier ones are for information (RFC 8693 §4.1). A rule that grants does not match
 * an actor of another issuer, who may have the same name.
 */
function actorAmong(names: readonly string[], restricts: boolean): (principal: Principal) => boolean {
  const named = new Set(names);
  return ({ actors: [actor], issuerUrl }) =>
    actor !== undefined &&
    named.has(actor.subject) &&
    (restricts || actor.issuer === undefined || actor.issuer === issuerUrl);
}

/** A claim that is a list matches when one of its elements does. */
function claimAmong(name: string, values: readonly Claim[], restricts: boolean): (principal: Principal) => boolean {
  const named = new Set<unknown>(values);
  return (principal) => {
    if (isDistributedClaim(principal, name)) return restricts;
    const claim = Object.hasOwn(principal.claims, name) ? principal.claims[name] : undefined;
    return Array.isArray(claim) ? claim.some((element) => named.has(element)) : named.has(claim);
  };
}

/** True if the token names a source for the claim and not the claim itself (OpenID Connect Core §5.6.2). */
function isDistributedClaim({ claims }: Principal, name: string): boolean {
  if (Object.hasOwn(claims, name) || !Object.hasOwn(claims, '_claim_names')) return false;
  const sources = claims['_claim_names'];
  return typeof sources === 'object' && sources !== null && Object.hasOwn(sources, name);
}
