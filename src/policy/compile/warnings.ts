// Warns of rules that compile and do not do what their author expects: rules that can never matter, prompts that are
// allowed by a glob, tools that a glob grants although they run code, delete or pay, links to hosts below a public suffix,
// optional members that an expression reads without asking for them, and, where warnings are errors, a deny by type that
// another type passes. Looks up pinned names for thousands of globs over thousands of names. docs/contract.md, law 4.

import { isObject, type Json, type JsonObject } from '../../protocol/jsonrpc.js';
import { firstOf } from '../../text/wording.js';
import type { Term } from '../cel.js';
import type { ExpressionFacts } from '../cel-language.js';
import { annotationsOf, withDefaultHints } from '../conditions.js';
import type { PinnedDefinition } from '../definitions.js';
import { isPublicUrl } from '../hosts.js';
import type { FlowSet } from '../information-flow.js';
import { compileLinear, isExactPattern, matchesPattern, type Pattern } from '../patterns.js';
import { sortedJson } from '../rule-text.js';
import { isUnconditional, matchesTarget, matchesUpstream, type Rule, TARGET_KINDS } from '../rules.js';
import { dangersOf } from '../tool-effect.js';
import type {
  ApprovalDocument,
  DiagnosticCollector,
  PolicyContext,
  PolicyDocument,
  ReportDiagnostic,
  RuleDocument,
  WhoDocument,
} from './documents.js';
import { isList, namedUpstreams, warnOfReviewerGroups } from './rule.js';

/** A compiled rule with what it was compiled from. */
export type CheckedRule = {
  readonly rule: Rule;
  /** With what its file says for all of its rules. */
  readonly written: RuleDocument;
  readonly report: ReportDiagnostic;
  /** Its policy decides. */
  readonly isEnforced: boolean;
};

/** Reports warnings about a rule by itself. */
function warnOfRule(checked: CheckedRule, context: PolicyContext): void {
  const { rule, written, report } = checked;
  warnOfPrompts(written, report);
  warnOfLinkHosts(written, report);
  if (rule.when?.reads.valuePaths.some(({ length }) => length > 1) === true)
    warnOfOptionalMembers(checked, definitionsOf(rule, context));
  warnOfClaims(checked);
  warnOfOpenPaths(written, report);
  if (context.isStrict !== true) return;
  if (rule.effect === 'deny' && rule.args.length > 0) warnOfTypes(checked, definitionsOf(rule, context));
  warnOfSingleResources(written, report);
}

/** Reports warnings about rules, and about what they mean together, in a step for each rule. */
export function* warnOfRules(rules: readonly CheckedRule[], context: PolicyContext): Generator<void, void> {
  const seen = new Map<string, string>();
  const denying = rules
    .filter(({ rule, isEnforced }) => isEnforced && rule.effect === 'deny' && isUnconditional(rule))
    .map(({ rule, written }, place) => ({ rule, who: namedBy(written), place }));
  const denyingAt = byUpstream(denying);
  const dangerous = createDangers(rules, context);
  for (const checked of rules) {
    const { rule, written, report } = checked;
    warnOfRule(checked, context);
    if (context.areGrantsChecked === true) warnOfDangers(checked, dangerous);
    const { id: _, ...same } = written;
    const meaning = sortedJson(same);
    const twin = seen.get(meaning);
    if (twin !== undefined) report([], 'warning', `this rule says the same as "${twin}"`);
    else warnOfDenies(checked, denyingAt(rule));
    seen.set(meaning, twin ?? rule.id);
    yield;
  }
}

/** Warns of rules whose question a client may answer without a person, where that could do harm. */
export function warnOfClientAnswers(
  rules: readonly CheckedRule[],
  flows: FlowSet | undefined,
  context: PolicyContext,
): void {
  for (const { rule, report } of rules) {
    const terms = rule.effect === 'require' ? rule.approval?.terms : undefined;
    if (terms?.by !== 'caller' || terms.proof === 'login') continue;
    const guarded = destructiveIn(rule, context) ?? sinkIn(rule, flows, context);
    if (guarded === undefined) continue;
    const message = `a client may answer this without a person, and the rule guards ${guarded}`;
    report(['approval', 'proof'], 'warning', message, 'login');
  }
}

/** A tool of the rule that may destroy something, by its pinned hints or because nothing pins it. */
function destructiveIn(rule: Rule, { pins, upstreams }: PolicyContext): string | undefined {
  if (rule.targets.tool.length === 0) return undefined;
  for (const { name: upstream } of namedUpstreams(rule, upstreams)) {
    const catalog = pins?.(upstream);
    if (catalog === undefined) return `tools of "${upstream}", of which no hint is pinned`;
    for (const name of catalog.names('tool').filter((one) => matchesTarget(rule, 'tool', one))) {
      const annotations = withDefaultHints(annotationsOf(catalog.statusOf('tool', name).pinned));
      const isMeant = (rule.when?.terms ?? []).every((term) => mayHold(term, { upstream, name, annotations }));
      if (annotations['destructiveHint'] === true && isMeant) return `"${name}", which may destroy something`;
    }
  }
  return undefined;
}

const NOBODY = { issuer: '', subject: '', client: '', groups: [], scopes: [], claims: {} } as never;

/** Whether a term may hold of a tool, as far as that depends on the tool alone. */
function mayHold({ reads, evaluate }: Term, tool: Pick<ExpressionFacts, 'upstream' | 'name' | 'annotations'>): boolean {
  const { principalPaths, argumentPaths, readsUri, readsAnyArgument, readsFindings } = reads;
  const readsMore = principalPaths.length + argumentPaths.length > 0 || readsUri || readsAnyArgument || readsFindings;
  return readsMore || evaluate({ ...tool, principal: NOBODY, args: {}, uri: undefined }) !== 'fails';
}

/** A target of the rule that a flow leads to. */
function sinkIn(rule: Rule, flows: FlowSet | undefined, { pins, upstreams }: PolicyContext): string | undefined {
  if (flows === undefined) return undefined;
  for (const { name: upstream } of namedUpstreams(rule, upstreams)) {
    const named = rule.targets.tool.flatMap(({ kind, text }) => (kind === 'exact' ? [text] : []));
    const pinned = pins?.(upstream)?.names('tool') ?? [];
    const tools = [...new Set([...named, ...pinned])].filter((name) => matchesTarget(rule, 'tool', name));
    for (const tool of tools)
      if (flows.of(upstream, 'tool', tool).flows.length > 0) return `"${tool}", to which a flow leads`;
    const namesMore = rule.targets.prompt.length + rule.targets.resource.length > 0;
    if (namesMore && flows.of(upstream, undefined, '').flows.length > 0)
      return `what "${upstream}" has, to which a flow leads`;
  }
  return undefined;
}

/** What a prompt returns goes to the model in the name of the user, and a glob grants prompts to come as well. */
function warnOfPrompts({ effect, what }: RuleDocument, report: ReportDiagnostic): void {
  // Whoever allows every tool has chosen to name nothing.
  if (effect !== 'allow' || what.tools?.includes('*') === true) return;
  for (const [index, text] of (what.prompts ?? []).entries()) {
    if (isExactPattern(text)) continue;
    const message = `"${text}" allows prompts by a glob, and prompts speak to the model for the user: name each one`;
    report(['what', 'prompts', index], 'warning', message);
  }
}

/** A tool that runs code, runs commands, deletes or pays, by its name or annotation. */
type Dangerous = { readonly upstream: string; readonly name: string; readonly dangers: readonly string[] };

type Dangers = {
  /** Those of the lock files. Found at the first question, because few policies have a glob that asks for them. */
  all(): readonly Dangerous[];
  /** Whether another rule keeps them from whom this one names, or puts them to a person. */
  isGuarded(tool: Dangerous, written: RuleDocument): boolean;
};

function createDangers(rules: readonly CheckedRule[], { pins, upstreams }: PolicyContext): Dangers {
  let known: readonly Dangerous[] | undefined;
  const guarding = rules
    .filter(({ rule, isEnforced }) => isEnforced && isGuarding(rule))
    .map(({ rule, written }) => ({ rule, who: namedBy(written) }));
  return {
    all() {
      known ??= upstreams.flatMap(({ name: upstream }) => {
        const catalog = pins?.(upstream);
        const names = catalog?.names('tool') ?? [];
        return names.flatMap((name): readonly Dangerous[] => {
          const status = catalog?.statusOf('tool', name);
          const dangers = status?.state === 'blocked' ? [] : dangersOf(name, status?.pinned?.definition);
          return dangers.length === 0 ? [] : [{ upstream, name, dangers }];
        });
      });
      return known;
    },
    isGuarded: ({ upstream, name }, written) =>
      guarding.some(
        ({ rule, who }) =>
          matchesUpstream(rule, upstream) && matchesTarget(rule, 'tool', name) && coversWho(who, written),
      ),
  };
}

function isGuarding(rule: Rule): boolean {
  if (rule.effect === 'deny') return isUnconditional(rule);
  return rule.effect === 'require' && rule.approval !== undefined && !rule.approval.isBeyondLimits;
}

/** Tools named in a message. */
const MAX_NAMED = 5;

/** Who writes `*` seldom means the tool that runs commands. A pattern that says so itself, such as `delete_*`, does. */
function warnOfDangers({ rule, written, report }: CheckedRule, dangerous: Dangers): void {
  if (rule.effect !== 'allow' || rule.targets.tool.every(({ kind }) => kind === 'exact')) return;
  const isNamed = ({ name }: Dangerous): boolean => written.what.tools?.includes(name) === true;
  for (const [index, text] of (written.what.tools ?? []).entries()) {
    const pattern = rule.targets.tool.find((one) => one.text === text);
    if (pattern === undefined || pattern.kind === 'exact') continue;
    const named = dangersOf(text);
    const found = dangerous.all().filter((tool) => {
      const { upstream, name, dangers } = tool;
      const isMeant = isNamed(tool) || dangers.every((one) => named.includes(one));
      const isGranted = matchesUpstream(rule, upstream) && matchesPattern(pattern, name);
      return isGranted && !isMeant && !dangerous.isGuarded(tool, written);
    });
    if (found.length === 0) continue;
    const tools = found.map(({ upstream, name, dangers }) => `${upstream}/${name} (${dangers.join(', ')})`);
    const message = `"${text}" also grants ${firstOf(tools, MAX_NAMED)}: name the tools that are meant instead, or name these as well; a deny rule or an approval for them is enough too`;
    report(['what', 'tools', index], 'warning', message);
  }
}

/** A server may have other names for one resource than those that can be told from its URI. */
function warnOfSingleResources({ effect, what }: RuleDocument, report: ReportDiagnostic): void {
  if (effect !== 'deny') return;
  for (const [index, text] of (what.resources ?? []).entries()) {
    if (!isExactPattern(text)) continue;
    const message = `"${text}" denies one resource by its URI, and a server may return the same under another name (a link, an alias, another case): deny the folder, or allow only what is meant; a block of one resource has the same limits`;
    report(['what', 'resources', index], 'warning', message);
  }
}

/** Reports warnings about the rules and flows that ask a reviewer. */
export function warnOfApprovals(
  documents: readonly PolicyDocument[],
  context: PolicyContext,
  diagnostics: DiagnosticCollector,
): void {
  for (const { file, rules, flows = [] } of documents) {
    const report = diagnostics.forFile(file);
    for (const [index, rule] of rules.entries())
      if (rule.effect === 'require')
        warnOfReviewers(rule.approval, context, (path, ...rest) => report(['rules', index, ...path], ...rest));
    for (const [index, { approval }] of flows.entries())
      warnOfReviewers(approval, context, (path, ...rest) => report(['flows', index, ...path], ...rest));
  }
}

/** Whether anybody can review, and whether a reviewer can be told from the caller. */
function warnOfReviewers(
  approval: ApprovalDocument | undefined,
  { reviewing }: Pick<PolicyContext, 'reviewing'>,
  report: ReportDiagnostic,
): void {
  if (approval?.by !== 'reviewer') return;
  warnOfReviewerGroups(approval.reviewers?.groups, report);
  if (reviewing === undefined) return;
  const { canReview, unmatched } = reviewing;
  if (!canReview)
    report(
      ['approval', 'by'],
      'warning',
      'nobody can review: no group of admin.issuers has the role reviewer or admin',
    );
  if (unmatched.length === 0) return;
  const message = `reviewers and callers have different issuers, and one person cannot be told at ${unmatched.join(' and ')}: name the claim that tells it in "login.match" of each`;
  report(['approval', 'by'], 'warning', message);
}

/** Suffixes below which anybody can register a name: of one label, and the usual ones of two below a country. */
const REGISTRY_SUFFIX = /^(?:[^.]+|(?:ac|co|com|edu|gov|net|or|org)\.[a-z]{2})$/;

/** Anybody can register a name below a public suffix, and an address has no names below it. */
function warnOfLinkHosts({ effect, what }: RuleDocument, report: ReportDiagnostic): void {
  const { elicitation = {} } = what;
  const hosts = isList(elicitation) ? [] : elicitation.url;
  for (const [index, written] of (hosts ?? []).entries()) {
    if (!written.startsWith('*.')) continue;
    const path = ['what', 'elicitation', 'url', index];
    const suffix = written.slice(2).replace(/:\d+$/, '');
    if (/^(?:\[.*\]|[0-9.]+)$/.test(suffix))
      report(path, 'warning', `"${written}" matches nothing, because no name is below an address`);
    else if (effect === 'allow' && REGISTRY_SUFFIX.test(suffix) && isPublicUrl(`https://name.${suffix}/`) === true)
      report(
        path,
        'warning',
        `"${written}" allows links to every host below "${suffix}", where anybody can register a name: name the domains that are meant`,
      );
  }
}

/** The pinned tools and prompts that the rule names. */
function definitionsOf(rule: Rule, { pins, upstreams }: PolicyContext): PinnedDefinition[] {
  const named = namedUpstreams(rule, upstreams);
  return named.flatMap(({ name: upstream }) => {
    const catalog = pins?.(upstream);
    const names = catalog?.names('tool').filter((name) => matchesTarget(rule, 'tool', name));
    return (names ?? []).flatMap((name) => catalog?.statusOf('tool', name).pinned ?? []);
  });
}

/** Reading a member that is missing is an error; those of the top level are checked with the pins. */
function warnOfOptionalMembers({ rule, written, report }: CheckedRule, definitions: readonly PinnedDefinition[]): void {
  const reads = rule.when?.reads;
  const isTested = (path: readonly string[]): boolean =>
    reads?.testedPaths.some((tested) => path.every((name, at) => tested[at] === name)) === true;
  const reported = new Set<string>();
  for (const path of reads?.valuePaths ?? []) {
    for (let length = 2; length <= path.length; length += 1) {
      const read = path.slice(0, length);
      const text = `args.${read.join('.')}`;
      const isOptional = definitions.some(({ definition }) => mayLack(definition['inputSchema'], read));
      const isGuaranteed = mayLack({ properties: written.args ?? {} }, read) === false;
      if (!isOptional || isGuaranteed || isTested(read) || reported.has(text)) continue;
      reported.add(text);
      const message = `${text} may be missing, and reading it then is an error: ask has(${text})`;
      report(['when'], 'warning', message);
    }
  }
}

/** Whether the last member of a path is described and not required; `undefined` if the schema does not show it. */
function mayLack(schema: Json | undefined, path: readonly string[]): boolean | undefined {
  let at: Json | undefined = schema;
  for (const name of path.slice(0, -1)) at = propertyOf(at, name);
  const last = path.at(-1) ?? '';
  if (!isObject(at) || propertyOf(at, last) === undefined) {
    const required = isObject(at) ? at['required'] : undefined;
    return Array.isArray(required) && required.includes(last) ? false : undefined;
  }
  const { required } = at as { required?: Json };
  return !(Array.isArray(required) && required.includes(last));
}

function propertyOf(schema: Json | undefined, name: string): Json | undefined {
  const properties = isObject(schema) ? schema['properties'] : undefined;
  return isObject(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
}

const IS_IDENTIFIER = /^[A-Za-z_]\w*$/;

/** No token has to have a claim. */
function warnOfClaims({ rule, report }: CheckedRule): void {
  const { principalPaths = [], testedPrincipalPaths = [] } = rule.when?.reads ?? {};
  const claimsIn = (paths: readonly (readonly string[])[]) =>
    new Set(paths.flatMap(([member, name]) => (member === 'claims' && name !== undefined ? [name] : [])));
  const tested = claimsIn(testedPrincipalPaths);
  for (const name of claimsIn(principalPaths)) {
    if (tested.has(name)) continue;
    const isIdentifier = IS_IDENTIFIER.test(name);
    const text = isIdentifier ? `principal.claims.${name}` : `principal.claims[${JSON.stringify(name)}]`;
    const test = isIdentifier ? `has(${text})` : `${JSON.stringify(name)} in principal.claims`;
    report(['when'], 'warning', `${text} may be missing, and reading it then is an error: ask ${test}`);
  }
}

/** The literal start of an anchored pattern; the sign before a quantifier belongs to what may repeat. */
const LITERAL_START = /^\^((?:(?:[^\\.*+?()[\]{}|$^]|\\[^A-Za-z0-9])(?![*+?{]))*)/;
const OUTSIDE = '../../etc/x';

/** A pattern that reads the start of a path lets the rest climb out of the folder. */
function warnOfOpenPaths({ effect, args = {} }: RuleDocument, report: ReportDiagnostic): void {
  if (effect !== 'allow') return;
  for (const [name, schema] of Object.entries(args)) {
    for (const pattern of patternsIn(schema)) {
      const [, literal = ''] = LITERAL_START.exec(pattern) ?? [];
      const start = literal.replaceAll('\\', '');
      const folder = start.replace(/[^/]*$/, '');
      const regex = compileLinear(pattern);
      if (folder === '' || folder.includes('://') || !regex.ok) continue;
      const example = [`${folder}${OUTSIDE}`, `${start}/../${OUTSIDE}`].find((path) => regex.regex.test(path));
      if (example === undefined) continue;
      const message = `"${pattern}" admits ${example}: say which characters may follow and end it with $, or ask path.under(args.${name}, "${folder}") in when`;
      report(['args', name], 'warning', message);
    }
  }
}

/** The patterns for texts in a schema, at any depth. */
function patternsIn(schema: unknown): readonly string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  return Object.entries(schema).flatMap(([key, value]) =>
    key === 'pattern' && typeof value === 'string' ? [value] : patternsIn(value),
  );
}

/** A value of a type that the rule does not name is not denied, and a server may take it for one that is. */
function warnOfTypes({ written, report }: CheckedRule, definitions: readonly PinnedDefinition[]): void {
  const admits = (name: string): readonly (readonly string[] | undefined)[] =>
    definitions.length === 0
      ? [undefined]
      : definitions.map(({ definition }) => typesOf(propertyOf(definition['inputSchema'], name)));
  for (const [name, schema] of Object.entries(written.args ?? {})) {
    const denied = typesOf(schema);
    if (denied === undefined) continue;
    const passes = admits(name).some((types) => types === undefined || types.some((type) => !coversType(denied, type)));
    if (!passes) continue;
    const message = `${denied.join(' or ')} is denied, and another type, such as an array, passes: leave "type" out, or name all types that the tool admits`;
    report(['args', name, 'type'], 'warning', message);
  }
}

function typesOf(schema: Json | JsonObject | boolean | undefined): readonly string[] | undefined {
  const type = isObject(schema) ? schema['type'] : undefined;
  if (typeof type === 'string') return [type];
  return Array.isArray(type) ? type.filter((one): one is string => typeof one === 'string') : undefined;
}

function coversType(types: readonly string[], type: string): boolean {
  return types.includes(type) || (type === 'integer' && types.includes('number'));
}

/** A rule with the values of its `who` by key. Prepared once, because thousands of rules are compared with each other. */
type Denying = {
  readonly rule: Rule;
  readonly who: readonly (readonly [keyof WhoDocument, ReadonlySet<unknown>])[];
  /** Among those that deny. */
  readonly place: number;
};

/**
 * The deny rules that may cover a rule, in their order: one that names upstreams one by one covers only what names the
 * same.
 */
function byUpstream(denying: readonly Denying[]): (rule: Rule) => readonly Denying[] {
  const isExact = ({ rule }: Denying): boolean => rule.upstreams?.every(({ kind }) => kind === 'exact') === true;
  const everywhere = denying.filter((one) => !isExact(one));
  const at = new Map<string, Denying[]>();
  for (const one of denying.filter(isExact))
    for (const { text } of one.rule.upstreams ?? []) {
      const own = at.get(text);
      if (own === undefined) at.set(text, [one]);
      else own.push(one);
    }
  return ({ upstreams }) => {
    const own = at.get(upstreams?.[0]?.text ?? '') ?? [];
    return own.length === 0 ? everywhere : [...everywhere, ...own].sort((a, b) => a.place - b.place);
  };
}

function namedBy({ who }: RuleDocument): Denying['who'] {
  const keys = Object.keys(who).filter((key) => key !== 'anyone') as (keyof WhoDocument)[];
  return keys.map((key) => {
    const named = who[key];
    // Claims are never found to cover others.
    return [key, new Set<unknown>(Array.isArray(named) ? named : [])];
  });
}

/** What an unconditional deny rule denies is never listed or called, whatever another rule says of it. */
function warnOfDenies({ rule, written, report }: CheckedRule, denying: readonly Denying[]): void {
  const covering = denying.find(
    (other) => other.rule !== rule && coversWho(other.who, written) && coversWhat(other.rule, rule),
  );
  if (covering === undefined) return;
  const message = `this rule can never matter: "${covering.rule.id}" denies everything that it names, to everybody that it names`;
  report([], 'warning', message);
}

function coversWho(wide: Denying['who'], { who }: RuleDocument): boolean {
  return wide.every(([key, all]) => {
    const some = who[key];
    return Array.isArray(some) && some.every((name) => all.has(name));
  });
}

function coversWhat(wide: Rule, narrow: Rule): boolean {
  const areThere =
    wide.upstreams === undefined ||
    (narrow.upstreams !== undefined && coversPatterns(wide.upstreams, narrow.upstreams));
  const { sampling, elicitation, roots } = narrow.grants;
  const namesMore = sampling || roots || elicitation.form || elicitation.url || narrow.tasks.length > 0;
  return (
    (areThere || wide.upstreams?.some(({ text }) => text === '*') === true) &&
    !namesMore &&
    TARGET_KINDS.every((kind) => coversPatterns(wide.targets[kind], narrow.targets[kind]))
  );
}

/** Whether what one list of patterns matches is surely matched by another. */
function coversPatterns(wide: readonly Pattern[], narrow: readonly Pattern[]): boolean {
  return narrow.every((pattern) =>
    wide.some((other) => {
      if (other.text === pattern.text && other.kind === pattern.kind) return true;
      if (other.kind === 'pattern' && other.text === '**') return true;
      return pattern.kind === 'exact'
        ? matchesPattern(other, pattern.text)
        : other.kind === 'pattern' && other.text === '*' && !pattern.text.includes('/');
    }),
  );
}

export class PinnedNames implements Iterable<string> {
  readonly #names: ReadonlySet<string>;
  #byStart: readonly string[] | undefined;
  /** Reversed and sorted, so that names with the same end are adjacent. */
  #byEnd: readonly string[] | undefined;

  constructor(names: Iterable<string>) {
    this.#names = new Set(names);
  }

  [Symbol.iterator](): Iterator<string> {
    return this.#names.values();
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** The names that match, found one by one as they are read. */
  *matching(pattern: Pattern): Iterable<string> {
    const { kind, text } = pattern;
    if (kind === 'exact') {
      if (this.#names.has(text)) yield text;
      return;
    }
    // The text between stars is compared first, because this is cheapest.
    const literal = text.startsWith('re:') ? '' : longest(text.split('*'));
    for (const name of this.#candidates(text)) if (name.includes(literal) && matchesPattern(pattern, name)) yield name;
  }

  #candidates(glob: string): Iterable<string> {
    if (glob.startsWith('re:')) return this.#names;
    const start = glob.slice(0, glob.indexOf('*'));
    const end = glob.slice(glob.lastIndexOf('*') + 1);
    if (start === '' && end === '') return this.#names;
    if (start.length >= end.length) {
      this.#byStart ??= [...this.#names].sort();
      return startingWith(this.#byStart, start);
    }
    this.#byEnd ??= [...this.#names].map(backwards).sort();
    return startingWith(this.#byEnd, backwards(end)).map(backwards);
  }
}

function longest(texts: readonly string[]): string {
  return texts.reduce((found, text) => (text.length > found.length ? text : found), '');
}

function backwards(text: string): string {
  return text.split('').reverse().join('');
}

/** The texts of a sorted list that begin with `start`. */
function startingWith(sorted: readonly string[], start: string): readonly string[] {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? '') < start) low = middle + 1;
    else high = middle;
  }
  let end = low;
  while (sorted[end]?.startsWith(start) === true) end += 1;
  return sorted.slice(low, end);
}
