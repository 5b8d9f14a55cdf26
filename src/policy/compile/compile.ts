// Compiles policy documents into a set of rules, or into diagnostics: every mistake of every document in one
// run, each with its position. With one error the set grants nothing. Also compares the rules with the lock
// files: names that are not pinned, globs that match nothing, arguments that no pinned schema has. Pins that
// change later make no policy invalid. Reads no file. docs/contract.md, law 4.

import { finishAtOnce, runInTurns, type Turns } from '../../protocol/json/incremental.js';
import { isObject, type Json } from '../../protocol/jsonrpc.js';
import { stepsOf } from '../../text/json-members.js';
import { createSuggester, type nearestCandidate } from '../../text/wording.js';
import type { Expression } from '../cel.js';
import { ANY_TOOL, type KindsAt, kindsInSchema } from '../cel-types.js';
import { promptArguments } from '../conditions.js';
import { type Catalog, describesMember, type PinKind, type PinnedDefinition } from '../definitions.js';
import type { FlowSet, SensitiveSet } from '../information-flow.js';
import { compilePattern, isExactPattern, matchesPattern } from '../patterns.js';
import { textOf } from '../rule-text.js';
import { costOf, createPolicySet, type PolicySet, type Rule } from '../rules.js';
import { observedRules } from '../shadow.js';
import { createCloser } from './closing.js';
import {
  type DefaultsDocument,
  DiagnosticCollector,
  type PolicyContext,
  type PolicyDiagnostic,
  type PolicyDocument,
  type ReportDiagnostic,
  type RuleDocument,
} from './documents.js';
import { compileFlows, compileLabels, compileSensitive } from './information-flow.js';
import { compileRule, namedUpstreams, WHAT_KEYS } from './rule.js';
import { type CheckedRule, PinnedNames, warnOfApprovals, warnOfClientAnswers, warnOfRules } from './warnings.js';

const PINNED_KINDS = ['tool', 'prompt', 'template'] as const satisfies readonly PinKind[];

/**
 * A glob that matches nothing grants nothing in an allow rule, which is probably a mistake. Deny and require rules guard
 * against what may come. docs/contract.md, law 4.
 */
function severityOfGlob({ effect }: RuleDocument): 'warning' | 'note' {
  return effect === 'allow' ? 'warning' : 'note';
}

/** What the checks of all rules have in common. */
type Run = {
  /** Collects upstreams without pins. */
  readonly unpinned: Unpinned;
  /** The first rule that names a budget, by the name. */
  readonly budgets: Map<string, { readonly rule: string; readonly terms: string }>;
  /** A rule of the document at hand has no pins to be compared with, and what is said of that depends on other documents. */
  isUnpinned: boolean;
  readonly suggest: typeof nearestCandidate;
  /** The names of a kind that are pinned. */
  pinnedNames(catalog: Catalog | undefined, kind: PinKind): PinnedNames;
};

function createRun(): Run {
  const known = new Map<Catalog, Map<PinKind, PinnedNames>>();
  return {
    unpinned: new Map(),
    budgets: new Map(),
    isUnpinned: false,
    suggest: createSuggester(),
    pinnedNames(catalog, kind) {
      if (catalog === undefined) return new PinnedNames([]);
      const byKind = known.get(catalog) ?? new Map<PinKind, PinnedNames>();
      known.set(catalog, byKind);
      const names = byKind.get(kind) ?? new PinnedNames(catalog.names(kind));
      byKind.set(kind, names);
      return names;
    },
  };
}

/** Reports where one compiled rule and the pins disagree, in a step for each definition that it reads. */
function* checkPins(
  rule: Rule,
  written: RuleDocument,
  context: PolicyContext,
  run: Run,
  report: ReportDiagnostic,
): Generator<void> {
  checkUpstreamGlobs(written, context, run, report);
  const { pins, upstreams, invalidLocks } = context;
  const named = namedUpstreams(rule, upstreams);
  const strict = named.filter((upstream) => upstream.strict);
  const areKnown = !strict.some(({ name }) => invalidLocks?.has(name));
  if (pins === undefined || strict.length === 0 || !areKnown) return;
  const isStrict = strict.length === named.length;
  const catalogs = strict.map(({ name }) => pins(name));
  if (catalogs.every((catalog) => catalog === undefined)) {
    const names = strict.map(({ name }) => name);
    run.isUnpinned = true;
    notePinsMissing(written, names, isStrict, run.unpinned, report);
    return;
  }
  const uses = argumentUses(rule, written);
  const matched = PINNED_KINDS.flatMap((kind) =>
    [...(written.what[WHAT_KEYS[kind]] ?? []).entries()].flatMap(([index, text]) => {
      const matches = matchPins(catalogs, kind, text, run);
      const found = uses.length === 0 ? takeOne(matches ?? []) : [...(matches ?? [])];
      if (matches !== undefined && found.length === 0)
        reportUnmatched({ kind, text, index, catalogs, isStrict }, written, run, report);
      return found;
    }),
  );
  yield* checkArguments(rule, uses, matched, run, report);
}

/** A rule with what its file says for all of them. */
function withDefaults(rule: RuleDocument, { issuers, upstreams }: DefaultsDocument): RuleDocument {
  const takesIssuers = issuers !== undefined && takesDefaultIssuers(rule);
  return {
    ...rule,
    ...(takesIssuers ? { who: { ...rule.who, issuers } } : {}),
    ...(upstreams === undefined || rule.what.upstreams ? {} : { what: { ...rule.what, upstreams } }),
  };
}

/** `anyone` means every verified caller, in a file with defaults too. */
function takesDefaultIssuers({ who }: RuleDocument): boolean {
  return who.anyone !== true && who.issuers === undefined && Object.keys(who).length > 0;
}

/** Where the defaults say what a diagnostic of a rule is about, if the rule does not say it itself. */
function pathInDefaults(rule: RuleDocument, path: PolicyDiagnostic['path']) {
  const [first, second, ...rest] = path;
  if (first === 'who' && second === 'issuers' && rule.who.issuers === undefined)
    return ['defaults', 'issuers', ...rest];
  const isUpstream = first === 'what' && second === 'upstreams';
  return isUpstream && rule.what.upstreams === undefined ? ['defaults', 'upstreams', ...rest] : undefined;
}

/** All rules spend one budget, so they must agree on what it is. */
function checkBudget(rule: Rule, { budgets }: Run, report: ReportDiagnostic): void {
  if (rule.effect === 'deny' || rule.budget === undefined) return;
  const { name, per, windowMs, max } = rule.budget;
  const terms = JSON.stringify([per, windowMs, max]);
  const first = budgets.get(name);
  if (first === undefined) budgets.set(name, { rule: rule.id, terms });
  else if (first.terms !== terms) {
    const message = `the budget "${name}" has another per, within or max in the rule "${first.rule}"`;
    report(['limits', 'budget'], 'error', message);
  }
}

/** Exact names that no upstream has are errors of the rule itself. */
function checkUpstreamGlobs(
  written: RuleDocument,
  { upstreams }: PolicyContext,
  { suggest }: Run,
  report: ReportDiagnostic,
): void {
  for (const [index, text] of (written.what.upstreams ?? []).entries()) {
    const compiled = isExactPattern(text) ? undefined : compilePattern(text, 'name');
    if (compiled?.ok !== true) continue;
    const { pattern } = compiled;
    const names = upstreams.map(({ name }) => name);
    if (names.some((name) => matchesPattern(pattern, name))) continue;
    const path = ['what', 'upstreams', index];
    const message = `no upstream matches "${text}"`;
    report(path, severityOfGlob(written), message, nearestGlob(text, names, suggest));
  }
}

/** By upstream without a lock file, how serious that is for the rules so far, and how to report it. */
type Unpinned = Map<string, { readonly rank: number; readonly report: () => void }>;

const SEVERITIES = ['note', 'warning', 'error'] as const;

/** Notes upstreams without a lock file: that a rule names nothing pinned there follows from it. */
function notePinsMissing(
  { what, effect }: RuleDocument,
  names: readonly string[],
  isStrict: boolean,
  unpinned: Unpinned,
  report: ReportDiagnostic,
): void {
  const texts = PINNED_KINDS.flatMap((kind) =>
    (what[WHAT_KEYS[kind]] ?? []).map((text) => kind === 'template' || isExactPattern(text)),
  );
  if (texts.length === 0) return;
  const ofGlob = effect === 'allow' ? 'warning' : 'note';
  const severity = isStrict && texts.includes(true) ? 'error' : ofGlob;
  const rank = SEVERITIES.indexOf(severity);
  for (const name of names) {
    if ((unpinned.get(name)?.rank ?? -1) >= rank) continue;
    const message = `nothing is pinned for "${name}", so no tool, prompt or template can be allowed there; run: sallyport pin fetch`;
    unpinned.set(name, { rank, report: () => report(['what'], severity, message) });
  }
}

type Match = { readonly pinned: PinnedDefinition | undefined; readonly isExact: boolean };

/** Something that a rule names; what is pinned of it is read when it is asked for. */
function namedPin(isExact: boolean, read: () => PinnedDefinition | undefined): Match {
  let pinned: { readonly is: PinnedDefinition | undefined } | undefined;
  return {
    isExact,
    get pinned() {
      pinned ??= { is: read() };
      return pinned.is;
    },
  };
}

/** Templates are matched exactly even if they contain a `*`. `undefined` for a pattern that does not compile. */
function matchPins(
  catalogs: readonly (Catalog | undefined)[],
  kind: PinKind,
  text: string,
  { pinnedNames }: Run,
): Iterable<Match> | undefined {
  const isExact = kind === 'template' || isExactPattern(text);
  const compiled = isExact ? ({ ok: true, pattern: { kind: 'exact', text } } as const) : compilePattern(text, 'name');
  if (!compiled.ok) return undefined;
  const { pattern } = compiled;
  return (function* () {
    for (const catalog of catalogs)
      for (const name of pinnedNames(catalog, kind).matching(pattern))
        yield namedPin(isExact, () => catalog?.statusOf(kind, name).pinned);
  })();
}

/** The first of several, if there is one: a rule that reads no arguments needs to know no more. */
function takeOne<Item>(items: Iterable<Item>): readonly Item[] {
  for (const item of items) return [item];
  return [];
}

type Unmatched = {
  readonly kind: PinKind;
  readonly text: string;
  readonly index: number;
  readonly catalogs: readonly (Catalog | undefined)[];
  /** Every upstream of the rule is pinned strictly. */
  readonly isStrict: boolean;
};

function reportUnmatched(
  { kind, text, index, catalogs, isStrict }: Unmatched,
  written: RuleDocument,
  { pinnedNames, suggest }: Run,
  report: ReportDiagnostic,
): void {
  const path = ['what', WHAT_KEYS[kind], index];
  // Read only as far as suggestions are made: there may be thousands of globs and of names.
  const known: Iterable<string> = {
    *[Symbol.iterator]() {
      for (const catalog of catalogs) yield* pinnedNames(catalog, kind);
    },
  };
  if (kind !== 'template' && !isExactPattern(text)) {
    const message = `"${text}" matches no ${kind} that is pinned for the upstreams of this rule`;
    report(path, severityOfGlob(written), message, nearestGlob(text, known, suggest));
    return;
  }
  const message = `no ${kind} named "${text}" is pinned for the upstreams of this rule`;
  report(path, isStrict ? 'error' : 'warning', message, suggest(text, known));
}

/** The glob with the nearest beginning or end that a name has: for `gte_*`, `get_*`. */
function nearestGlob(glob: string, names: Iterable<string>, suggest: Run['suggest']): string | undefined {
  const [, start = '', end = ''] = /^([^*]*)\*([^*]*)$/.exec(glob) ?? [];
  if (start !== '' && end !== '') return undefined;
  const literal = start + end;
  const sign = start === '' ? -1 : 1;
  for (const length of [literal.length, literal.length - 1, literal.length + 1]) {
    if (length <= 1) continue;
    const nearest = suggest(literal, cutNames(names, sign * length));
    if (nearest !== undefined) return start === '' ? `*${nearest}` : `${nearest}*`;
  }
  return undefined;
}

/** The beginnings of names or, with a negative length, their ends, each once. */
function* cutNames(names: Iterable<string>, length: number): Iterable<string> {
  const seen = new Set<string>();
  for (const name of names) {
    const part = length < 0 ? name.slice(length) : name.slice(0, length);
    if (!seen.has(part)) yield part;
    seen.add(part);
  }
}

type ArgumentUse = {
  /** The expression asks by has() whether the argument is there, so a tool may lack it. */
  readonly isOptional?: boolean;
  /** What is not there is not captured, so a tool that only a glob names may lack it. */
  readonly isCapture?: boolean;
  readonly path: readonly (string | number)[];
  readonly names: readonly string[];
};

/** The definitions that lack an argument although they should have it. */
function lackingOf(use: ArgumentUse, definitions: readonly Match[]): readonly Match[] {
  const without = definitions.filter(({ pinned }) => !describesPath(pinned, use.names));
  const mayLack = (use.isOptional ?? use.isCapture) === true;
  if (!mayLack || without.length === definitions.length) return without;
  return without.filter(({ pinned, isExact }) => (use.isCapture === true && isExact) || hasFirst(pinned, use));
}

/** Those that have arguments, a step for each, because a schema is compiled when it is read first. */
function* withArguments(matched: readonly Match[]): Generator<void, readonly Match[]> {
  const found: Match[] = [];
  for (const match of matched) {
    if (match.pinned !== undefined && hasArguments(match.pinned)) found.push(match);
    yield;
  }
  return found;
}

function* checkArguments(
  rule: Rule,
  uses: readonly ArgumentUse[],
  matched: readonly Match[],
  { suggest }: Run,
  report: ReportDiagnostic,
): Generator<void> {
  // What is pinned is looked at, and its schema compiled, only for rules that read it.
  if (uses.length === 0 && rule.when === undefined && costOf(rule) === undefined) return;
  const definitions = yield* withArguments(matched);
  if (definitions.length === 0) return;
  for (const use of uses) {
    const lacking = lackingOf(use, definitions);
    if (lacking.length === 0) continue;
    const isError = lacking.length === definitions.length || lacking.some(({ isExact }) => isExact);
    const message = `${lackingNames(lacking)} no argument /${use.names.join('/')} in ${lacking.length === 1 ? 'its pinned schema' : 'their pinned schemas'}`;
    report(use.path, isError ? 'error' : 'warning', message, suggestArgument(definitions, use, suggest));
  }
  yield* checkTypes(rule.when, ['when'], definitions, report);
  yield* checkTypes(costOf(rule), ['limits', 'budget', 'cost'], definitions, report);
  checkGuards(rule, definitions, report);
}

/** Reports what no value of the pinned types could be used for: an error for an exact name, or for all tools. */
function* checkTypes(
  expression: Pick<Expression, 'typeError'> | undefined,
  path: ArgumentUse['path'],
  definitions: readonly Match[],
  report: ReportDiagnostic,
): Generator<void> {
  if (expression === undefined || expression.typeError(ANY_TOOL) !== undefined) return;
  const found: { readonly why: string; readonly match: Match }[] = [];
  for (const match of definitions) {
    const { kind, definition } = match.pinned ?? {};
    const schema = definition?.['inputSchema'];
    const kindsAt: KindsAt = (names) => (kind === 'prompt' ? new Set(['string']) : kindsInSchema(schema, names));
    const why = expression.typeError({ kindsAt, tool: match.pinned?.name });
    if (why !== undefined) found.push({ why, match });
    yield;
  }
  const [first] = found;
  if (first === undefined) return;
  const isError = found.length === definitions.length || found.some(({ match }) => match.isExact);
  const tools = lackingNames(found.map(({ match }) => match)).replace(/ ha(?:s|ve)$/, '');
  report(path, isError ? 'error' : 'warning', `${first.why}, as pinned for ${tools}`);
}

/** Whether a tool has the argument in which something else is missing. */
function hasFirst(pinned: PinnedDefinition | undefined, { names }: ArgumentUse): boolean {
  return describesPath(pinned, names.slice(0, 1));
}

const MAX_LACKING = 4;

/** `the tools "a" and "b" have`: the first few of them. */
function lackingNames(lacking: readonly Match[]): string {
  const names = lacking.flatMap(({ pinned }) => (pinned === undefined ? [] : `"${pinned.name}"`));
  const kind = lacking[0]?.pinned?.kind ?? 'tool';
  if (names.length === 1) return `the ${kind} ${names[0]} has`;
  const shown = names.slice(0, MAX_LACKING).join(', ');
  const rest = names.length - MAX_LACKING;
  return `the ${kind}s ${shown}${rest > 0 ? ` and ${rest} more` : ''} have`;
}

function hasArguments(pinned: PinnedDefinition): boolean {
  return pinned.input !== undefined || pinned.kind === 'prompt';
}

function argumentUses(rule: Rule, written: RuleDocument): readonly ArgumentUse[] {
  const narrowed = Object.entries(written.args ?? {}).flatMap(([name, schema]) =>
    schemaPaths(schema, [name]).map((names) => ({ path: ['args', name], names })),
  );
  const { when } = rule;
  const inWhen = usesOf(when, ['when']).map((use) => ({
    ...use,
    isOptional: when?.reads.unguarded.includes(use.names[0] ?? '') === false,
  }));
  const captured = (rule.effect === 'require' ? rule.captures : []).map((pointer, index) => ({
    path: ['audit', 'capture', index],
    names: stepsOf(pointer),
    isCapture: true,
  }));
  const compared = rememberedIn(rule).map((pointer, index) => ({
    path: ['approval', 'remember', 'same', index],
    names: stepsOf(pointer),
    isCapture: true,
  }));
  const inCost = usesOf(costOf(rule), ['limits', 'budget', 'cost']);
  return [...narrowed, ...inWhen, ...inCost, ...captured, ...compared];
}

/** The arguments that have to be equal so that a yes counts again. */
function rememberedIn(rule: Rule): readonly string[] {
  const terms = rule.effect === 'require' ? rule.approval?.terms : undefined;
  return (terms?.by === 'caller' ? terms.remember?.same : undefined) ?? [];
}

function usesOf(expression: Pick<Expression, 'reads'> | undefined, path: ArgumentUse['path']): readonly ArgumentUse[] {
  const paths = new Map(expression?.reads.argumentPaths.map((names) => [JSON.stringify(names), names]));
  return [...paths.values()].filter(({ length }) => length > 0).map((names) => ({ path, names }));
}

/** The path itself, and the paths below it that the rule's schema names under `properties`. */
function schemaPaths(schema: Json, path: readonly string[]): readonly (readonly string[])[] {
  const properties = isObject(schema) ? schema['properties'] : undefined;
  if (!isObject(properties)) return [path];
  return [path, ...Object.entries(properties).flatMap(([name, at]) => schemaPaths(at, [...path, name]))];
}

/** Whether the pinned definition has an argument at this path. */
function describesPath(pinned: PinnedDefinition | undefined, names: readonly string[]): boolean {
  if (pinned?.input !== undefined) return describesMember(pinned.input, names);
  return pinned !== undefined && promptArguments(pinned.definition).has(names[0] ?? '');
}

function suggestArgument(definitions: readonly Match[], use: ArgumentUse, suggest: Run['suggest']): string | undefined {
  const known = definitions.flatMap(({ pinned }) => {
    const schema = pinned?.definition['inputSchema'];
    const properties = isObject(schema) ? schema['properties'] : undefined;
    if (isObject(properties)) return Object.keys(properties);
    return pinned === undefined ? [] : [...promptArguments(pinned.definition)];
  });
  return use.names.length === 1 ? suggest(use.names[0] ?? '', known) : undefined;
}

/** Reading an optional argument that is missing is an error: warns if the expression does not test for it first. */
function checkGuards(rule: Rule, definitions: readonly Match[], report: ReportDiagnostic): void {
  const guaranteed = new Set(rule.args.map(({ name }) => name));
  const missing = (rule.when?.reads.unguarded ?? []).filter(
    (name) => !guaranteed.has(name) && !definitions.every(({ pinned }) => isRequired(pinned, name)),
  );
  for (const name of missing) {
    const message = `args.${name} may be missing, and reading it then is an error: ask has(args.${name})`;
    report(['when'], 'warning', message);
  }
}

function isRequired(pinned: PinnedDefinition | undefined, name: string): boolean {
  const schema = pinned?.definition['inputSchema'];
  const required = isObject(schema) ? schema['required'] : undefined;
  if (Array.isArray(required) && required.includes(name)) return true;
  const listed = pinned?.definition['arguments'];
  return (
    Array.isArray(listed) &&
    listed.some((entry) => isObject(entry) && entry['name'] === name && entry['required'] === true)
  );
}

/** The policy that is recorded for what the protocol itself allows; no file may use the name. */
const RESERVED_POLICY = 'builtin';

export type CompiledPolicies = {
  readonly policies: PolicySet;
  /** The ids of the rules and flows that are closed until a restart. */
  readonly closed: readonly string[];
  /** Every rule as it is written, whether it is enforced, observed, or closed. */
  readonly compiled: readonly Rule[];
  /** What each document came to, in their order. */
  readonly byDocument: readonly DocumentChecks[];
  readonly diagnostics: readonly PolicyDiagnostic[];
};

/** What was found in a document by itself. Nothing of it can be changed by another document. */
export type DocumentChecks = {
  readonly rules: readonly Rule[];
  /** `undefined` where it depends on other documents too. */
  readonly found: readonly Finding[] | undefined;
};

/** `ofPins`: that rule and pins disagree, which is no error where the policies are in force already. */
type Finding = Omit<PolicyDiagnostic, 'file'> & { readonly ofPins: boolean };

/** What documents came to before, in a context that differs in its hash at most. */
type KnownChecks = ReadonlyMap<PolicyDocument, DocumentChecks>;

const NONE_KNOWN: KnownChecks = new Map();

/**
 * Compiles all documents together. Diagnostics are in the order of the documents. If one of them is an error,
 * `policies` allows nothing at all, and the caller keeps its previous set.
 */
export function compilePolicies(documents: readonly PolicyDocument[], context: PolicyContext): CompiledPolicies {
  return finishAtOnce(compileInSteps(documents, context));
}

/** The same in small steps. `known`: documents that are neither compiled nor compared with the pins again. */
export function* compileInSteps(
  documents: readonly PolicyDocument[],
  context: PolicyContext,
  known: KnownChecks = NONE_KNOWN,
): Generator<void, CompiledPolicies> {
  const diagnostics = new DiagnosticCollector();
  const closer = createCloser(context.closing);
  const rules: Rule[] = [];
  const shadowed: Shadowed[] = [];
  const checked: CheckedRule[] = [];
  const byDocument: DocumentChecks[] = [];
  const policyNames = new Set<string>();
  const run = createRun();
  for (const document of documents) {
    const report = diagnostics.forFile(document.file);
    checkPolicyName(document, policyNames, report);
    const checks = yield* checkDocument(document, context, run, report, known.get(document));
    byDocument.push(checks);
    const own = checks.rules;
    const isEnforced = document.mode !== 'shadow';
    checked.push(...withSources(own, document, isEnforced, report));
    if (isEnforced) rules.push(...closer.rules(own));
    else shadowed.push({ policy: document.policy, rules: own });
    warnOfUnenforced(document, context, report);
  }
  for (const { report } of run.unpinned.values()) report();
  if (!diagnostics.hasErrors) {
    yield* warnOfRules(checked, context);
    warnOfApprovals(documents, context, diagnostics);
  }
  const enforced = documents.filter(({ mode }) => mode !== 'shadow');
  const labels = compileLabels(enforced, context, diagnostics);
  const flows = compileFlows(enforced, labels, context, diagnostics, closer);
  const sensitive = compileSensitive(enforced, labels, context, diagnostics);
  if (!diagnostics.hasErrors) warnOfClientAnswers(checked, flows, context);
  const policies = diagnostics.hasErrors
    ? createPolicySet(context.hash, [])
    : createSet({ rules, shadowed, flows, sensitive }, context);
  const compiled = checked.map(({ rule }) => rule);
  return { policies, closed: closer.closed, compiled, byDocument, diagnostics: diagnostics.all };
}

/** Rules that were compiled before, by the digest of what they say. */
type KnownRules = ReadonlyMap<string, Rule>;

export function knownRules(compiled: readonly Rule[]): KnownRules {
  return new Map(compiled.map((rule) => [rule.text, rule]));
}

/**
 * Compiles documents that were checked already, on another thread: nothing is reported, a rule that says what one said
 * before is not compiled again, and other work is served in between. Rejects where something does not compile after all.
 */
export async function compileChecked(
  documents: readonly PolicyDocument[],
  context: PolicyContext,
  known: KnownRules,
  turns: Turns,
): Promise<Omit<CompiledPolicies, 'diagnostics' | 'byDocument'> & { readonly rulesOf: readonly (readonly Rule[])[] }> {
  const diagnostics = new DiagnosticCollector();
  const closer = createCloser(context.closing);
  const rules: Rule[] = [];
  const shadowed: Shadowed[] = [];
  const rulesOf: (readonly Rule[])[] = [];
  await runInTurns(turns, documents, (document) => {
    const report = diagnostics.forFile(document.file);
    const own = document.rules.map((written) => {
      const rule = withDefaults(written, document.defaults ?? {});
      return known.get(textOf(document.policy, rule)) ?? compileRule(document.policy, rule, context, report);
    });
    rulesOf.push(own);
    if (document.mode === 'shadow') shadowed.push({ policy: document.policy, rules: own });
    else rules.push(...closer.rules(own));
  });
  const enforced = documents.filter(({ mode }) => mode !== 'shadow');
  const labels = compileLabels(enforced, context, diagnostics);
  const flows = compileFlows(enforced, labels, context, diagnostics, closer);
  const sensitive = compileSensitive(enforced, labels, context, diagnostics);
  if (diagnostics.hasErrors) throw new Error('policies that are valid do not compile');
  const policies = createSet({ rules, shadowed, flows, sensitive }, context);
  return { policies, closed: closer.closed, compiled: rulesOf.flat(), rulesOf };
}

/** Compiled rules with what they were compiled from. */
function withSources(
  own: readonly Rule[],
  { rules, defaults = {} }: PolicyDocument,
  isEnforced: boolean,
  report: ReportDiagnostic,
): readonly CheckedRule[] {
  return rules.flatMap((written, index) => {
    const rule = own[index];
    const reportRule: ReportDiagnostic = (path, ...rest) => report(['rules', index, ...path], ...rest);
    return rule === undefined
      ? []
      : [{ rule, written: withDefaults(written, defaults), report: reportRule, isEnforced }];
  });
}

const NOT_ENFORCED =
  'this policy is not enforced: what its rules would decide is only recorded, and its deny rules protect nothing';

const NOT_EVALUATED =
  'this policy is not enforced: its labels, flows and sensitive fields are checked only when it is, and nothing records what they would do';

const FLOWS_UNENFORCED =
  'with "policies.mode: observe" flows refuse nothing, and what callers receive is not remembered; sensitive fields stay in force';

function warnOfUnenforced(document: PolicyDocument, { mode }: PolicyContext, report: ReportDiagnostic): void {
  if (document.mode !== 'shadow') {
    if (mode === 'observe' && document.flows !== undefined) report(['flows'], 'warning', FLOWS_UNENFORCED);
    return;
  }
  report(['mode'], 'warning', NOT_ENFORCED);
  const unused = (['labels', 'flows', 'sensitive'] as const).find((key) => document[key] !== undefined);
  if (unused !== undefined) report([unused], 'warning', NOT_EVALUATED);
}

type Shadowed = { readonly policy: string; readonly rules: readonly Rule[] };

function createSet(
  compiled: {
    readonly rules: readonly Rule[];
    readonly shadowed: readonly Shadowed[];
    readonly flows: FlowSet | undefined;
    readonly sensitive: SensitiveSet | undefined;
  },
  { hash, mode }: PolicyContext,
): PolicySet {
  const { rules, shadowed, flows, sensitive } = compiled;
  const isObserved = mode === 'observe';
  if (shadowed.length === 0 && !isObserved) return createPolicySet(hash, rules, { flows, sensitive });
  const policies = shadowed.map(({ policy, rules: own }) => {
    return { policy, set: createPolicySet(hash, [...rules, ...own]) };
  });
  const unenforced = isObserved ? createPolicySet(hash, rules) : undefined;
  return createPolicySet(hash, isObserved ? observedRules(rules) : rules, {
    flows: isObserved ? undefined : flows,
    sensitive,
    shadow: { policies, unenforced },
  });
}

function checkPolicyName(document: PolicyDocument, known: Set<string>, report: ReportDiagnostic): void {
  if (known.has(document.policy)) {
    report(['policy'], 'error', `another file has a policy named "${document.policy}"`);
  }
  if (document.policy === RESERVED_POLICY) report(['policy'], 'error', 'this name is reserved');
  known.add(document.policy);
}

/** Compiles a document and compares it with the pins, or reports what was found of it before. */
function* checkDocument(
  document: PolicyDocument,
  context: PolicyContext,
  run: Run,
  report: ReportDiagnostic,
  known: DocumentChecks | undefined,
): Generator<void, DocumentChecks> {
  const say = ({ path, severity, message, suggestion, ofPins }: Finding): void => {
    const isSoftened = ofPins && severity === 'error' && context.areInForce === true;
    report(path, isSoftened ? 'warning' : severity, message, suggestion);
  };
  if (known?.found === undefined) return yield* compileDocument(document, context, run, say);
  for (const finding of known.found) say(finding);
  // All documents spend the same budgets.
  for (const [index, rule] of known.rules.entries())
    checkBudget(rule, run, (path, ...rest) => report(['rules', index, ...path], ...rest));
  yield;
  return known;
}

function* compileDocument(
  document: PolicyDocument,
  context: PolicyContext,
  run: Run,
  say: (finding: Finding) => void,
): Generator<void, DocumentChecks> {
  const rules: Rule[] = [];
  const found: Finding[] = [];
  const ids = new Set<string>();
  const { defaults = {} } = document;
  const reported = new Set<string>();
  run.isUnpinned = false;
  for (const [index, own] of document.rules.entries()) {
    const written = withDefaults(own, defaults);
    const find = (ofPins: boolean, note: (finding: Finding) => void): ReportDiagnostic => {
      return (path, severity, message, suggestion) => {
        const fromDefaults = pathInDefaults(own, path);
        const key = JSON.stringify([fromDefaults, message]);
        const more = suggestion === undefined ? {} : { suggestion };
        const finding = { path: fromDefaults ?? ['rules', index, ...path], severity, message, ofPins, ...more };
        if (fromDefaults === undefined || !reported.has(key)) note(finding);
        reported.add(key);
      };
    };
    const note = (finding: Finding): void => {
      found.push(finding);
      say(finding);
    };
    const reportRule = find(false, note);
    if (ids.has(written.id)) {
      const message = `another rule of this policy has the id "${written.id}"; rename one of the two`;
      reportRule(['id'], 'error', message);
    }
    ids.add(written.id);
    const rule = compileRule(document.policy, written, context, reportRule);
    yield* checkPins(rule, written, context, run, find(true, note));
    checkBudget(rule, run, find(false, say));
    rules.push(rule);
    yield;
  }
  return { rules, found: run.isUnpinned ? undefined : found };
}
