// Evaluates the conditions of a rule, its `args` and its `when`, for one call, and determines which arguments a rule
// reads. Only those must be described by the schema of the tool, and none of them may be present in a second
// spelling; what cannot be determined exactly counts as read entirely. Errors are values for the caller to handle,
// never exceptions. Also says which arguments are refused and what is expected of them.
// Source: docs/contract.md, laws 5 and 7; JSON Schema 2020-12 core §10; docs/reference/design.md, "Bytes".

import { exactNumbersIn } from '../protocol/json/exact-numbers.js';
import { isObject, type Json, type JsonObject, ownMember } from '../protocol/jsonrpc.js';
import { quoteForeignName } from '../text/escaping.js';
import { foldName, pointerTo, stepsOf } from '../text/json-members.js';
import type { ConditionResult, CostExpression, ExpressionReads } from './cel.js';
import { type EvaluationWorld, evaluateClauses, type Outcome } from './clauses.js';
import type { Deny, Violation } from './decision.js';
import {
  type ArgumentReads,
  findUndeclared,
  type PinnedDefinition,
  type SchemaError,
  type UndeclaredArguments,
  type UndeclaredMember,
} from './definitions.js';
import type { Principal } from './principal.js';
import { type AllowRule, costOf, type Rule, readsAnnotations, readsArguments } from './rules.js';
import { conditionTexts, type UriReadings } from './uris.js';

type ReadTree = {
  readsAll: boolean;
  readonly members: Map<string, ReadTree>;
  items: ReadTree | undefined;
};

/** Which arguments the `args` and the expressions of a rule read, as a tree of names; undefined if they read none. */
export function collectReads(
  args: { readonly [name: string]: JsonObject | boolean },
  ...expressions: readonly (Pick<ExpressionReads, 'valuePaths' | 'testedPaths'> | undefined)[]
): ArgumentReads | undefined {
  const root = createTree();
  for (const [name, schema] of Object.entries(args)) addSchema(memberOf(root, name), schema);
  for (const { valuePaths, testedPaths } of expressions.filter((one) => one !== undefined)) {
    for (const path of valuePaths) path.reduce(memberOf, root).readsAll = true;
    for (const path of testedPaths) path.reduce(memberOf, root);
  }
  return root.readsAll || root.members.size > 0 ? finishReads(root) : undefined;
}

function createTree(): ReadTree {
  return { readsAll: false, members: new Map(), items: undefined };
}

function memberOf(tree: ReadTree, name: string): ReadTree {
  const known = tree.members.get(name);
  if (known !== undefined) return known;
  const added = createTree();
  tree.members.set(name, added);
  return added;
}

/** Keywords that read no members of an object by themselves. */
const SHALLOW = new Set([
  ...'type title description default examples deprecated readOnly writeOnly'.split(' '),
  ...'$schema $id $anchor $comment $defs definitions format pattern minLength maxLength'.split(' '),
  ...'multipleOf maximum exclusiveMaximum minimum exclusiveMinimum minItems maxItems'.split(' '),
]);

/** Adds what a schema of the policy reads of the value that it is applied to. */
function addSchema(tree: ReadTree, schema: Json): void {
  if (!isObject(schema)) return;
  for (const [keyword, value] of Object.entries(schema)) {
    if (SHALLOW.has(keyword)) continue;
    const isAdded = KEYWORDS.get(keyword)?.(tree, value) ?? false;
    if (!isAdded) tree.readsAll = true;
  }
}

/** Adds what a keyword reads; returns false if that may be any member. */
type AddKeyword = (tree: ReadTree, value: Json) => boolean;

const addInPlace: AddKeyword = (tree, value) => {
  addSchema(tree, value);
  return true;
};

const addEach: AddKeyword = (tree, value) => {
  if (!Array.isArray(value)) return false;
  for (const one of value as readonly Json[]) addSchema(tree, one);
  return true;
};

const addProperties: AddKeyword = (tree, value) => {
  if (!isObject(value)) return false;
  for (const [name, inner] of Object.entries(value)) addSchema(memberOf(tree, name), inner);
  return true;
};

const addRequired: AddKeyword = (tree, value) => {
  if (!Array.isArray(value)) return false;
  for (const name of value as readonly Json[]) memberOf(tree, String(name));
  return true;
};

const addItems: AddKeyword = (tree, value) => {
  if (Array.isArray(value)) return false;
  tree.items ??= createTree();
  addSchema(tree.items, value);
  return true;
};

/** The keywords whose reads are known. Any other keyword may read everything. */
const KEYWORDS: ReadonlyMap<string, AddKeyword> = new Map([
  ...(['not', 'if', 'then', 'else'] as const).map((name) => [name, addInPlace] as const),
  ...(['allOf', 'anyOf', 'oneOf'] as const).map((name) => [name, addEach] as const),
  ['properties', addProperties],
  ['required', addRequired],
  ['items', addItems],
  ['const', (_tree, value) => isScalar(value)],
  ['enum', (_tree, value) => Array.isArray(value) && value.every(isScalar)],
]);

/** No object and no list equals a scalar, whatever it holds, so comparing with one reads no members. */
function isScalar(value: Json): boolean {
  return typeof value !== 'object' || value === null;
}

function finishReads({ readsAll, members, items }: ReadTree): ArgumentReads {
  const sealed = new Map([...members].map(([name, tree]) => [name, finishReads(tree)] as const));
  const normalizedNames = new Set<string>();
  const fullyRead = new Set<string>();
  for (const [name, { readsAll: readsAllBelow, items: itemsBelow, normalizedNames: below }] of sealed) {
    const normalized = normalizedName(name);
    normalizedNames.add(normalized);
    if (readsAllBelow || itemsBelow !== undefined) fullyRead.add(normalized);
    // Some servers take `filter.state` for the member `state` of `filter`.
    for (const deeper of below) normalizedNames.add(normalized + deeper);
  }
  return {
    readsAll,
    members: sealed,
    items: items === undefined ? undefined : finishReads(items),
    normalizedNames,
    fullyRead,
  };
}

const PLAIN = /^[a-z0-9]+$/;
const NO_LETTER = /[^\p{L}\p{N}]/gu;

/**
 * A form that is equal for names that a lenient reader could confuse: without compatibility forms, case and
 * word separators.
 */
function normalizedName(name: string): string {
  if (PLAIN.test(name)) return name;
  const folded = foldName(name.normalize('NFKC')).replace(NO_LETTER, '');
  return folded === '' ? name : folded;
}

/** Members through which some languages set other members. */
const PROTOTYPE_MEMBERS = new Set(['__proto__', 'constructor', 'prototype']);

/** True if a member could be taken for one that is read, in a value without a known schema. */
function hasAmbiguousName(value: Json, reads: ArgumentReads): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (!isObject(value)) {
    const { items } = reads;
    const list = value as readonly Json[];
    return items !== undefined && list.some((item) => hasAmbiguousName(item, items));
  }
  return Object.keys(value).some((name) => {
    const below = reads.members.get(name);
    return below === undefined ? isAmbiguousWith(name, reads) : hasAmbiguousName(value[name] ?? null, below);
  });
}

/** True for a member that some reader could take for one that is read. */
export function isAmbiguousWith(name: string, reads: ArgumentReads): boolean {
  if (PROTOTYPE_MEMBERS.has(name) || reads.normalizedNames.has(normalizedName(name))) return true;
  const [path, head = ''] = PATH.exec(name) ?? [];
  if (path === undefined) return false;
  const member = normalizedName(head);
  return reads.fullyRead.has(member) || (path.endsWith(']') && reads.normalizedNames.has(member));
}

/** `filter.state`, `filter[state]`, `filter/state`; if nothing but an index follows, the match includes it. */
const PATH = /^([^.[\]/:]+)(?:\[\d*\]$|[.[/:])/;

/** One call, as the input of conditions. */
export type EvaluationInput = EvaluationWorld & {
  readonly principal: Principal;
  /** The definition that describes the arguments: the pin, or without pinning what the upstream listed. */
  readonly described: PinnedDefinition | undefined;
  /**
   * Whether what a rule reads must be described: true for the arguments of tools and prompts. Without pinning
   * it need not be if nothing was listed under the name.
   */
  readonly mustDescribe: boolean;
  readonly undeclaredArguments: UndeclaredArguments;
  /** Cached results, by what is read. */
  readonly undescribed: Map<ArgumentReads, boolean>;
  /** The call with the defaults of absent arguments filled in, once that is known; see `withDefaults`. */
  filled?: EvaluationWorld | 'unknown';
  /** The call with the hints of the tool as rules with `approval` read them, once one does. */
  hinted?: EvaluationInput;
  /** Of a resource. */
  readonly readings: UriReadings | undefined;
  /** Whether somebody approved the defaults, as part of the definition. */
  readonly hasApprovedDefaults: boolean;
};

type EvaluationSource = Omit<EvaluationInput, 'facts' | 'undescribed' | 'filled' | 'hinted' | 'hasApprovedDefaults'> & {
  /** The approved definition only. */
  readonly pinned: PinnedDefinition | undefined;
  readonly upstream: string;
  readonly name: string;
  readonly uri: string | undefined;
  readonly findings: readonly string[] | undefined;
};

const NO_ANNOTATIONS: JsonObject = Object.freeze({});

/** What expressions see as annotations: those of the pin alone. */
export function annotationsOf(pinned: PinnedDefinition | undefined): JsonObject {
  const annotations = pinned?.definition['annotations'];
  return isObject(annotations) ? annotations : NO_ANNOTATIONS;
}

/**
 * The annotations as a rule with `approval` reads them: hints that are absent or malformed have the defaults of MCP, and
 * what is read-only neither destroys nor adds anything when it is repeated, whatever its other hints.
 * Source: MCP 2025-11-25, schema, ToolAnnotations.
 */
export function withDefaultHints(annotations: JsonObject): JsonObject {
  const readOnlyHint = annotations['readOnlyHint'] === true;
  return {
    ...annotations,
    readOnlyHint,
    destructiveHint: !readOnlyHint && annotations['destructiveHint'] !== false,
    idempotentHint: readOnlyHint || annotations['idempotentHint'] === true,
    openWorldHint: annotations['openWorldHint'] !== false,
  };
}

/** The call as a rule sees it that decides whether a person is asked. */
function withHints(rule: Rule, input: EvaluationInput): EvaluationInput {
  if (!readsAnnotations(rule)) return input;
  const { facts } = input;
  input.hinted ??= { ...input, facts: { ...facts, annotations: withDefaultHints(facts.annotations) } };
  return input.hinted;
}

/** Prepares a call. */
export function prepareEvaluation(source: EvaluationSource): EvaluationInput {
  const { principal, args, pinned, upstream, name, uri, findings } = source;
  return {
    principal,
    args,
    described: source.described,
    mustDescribe: source.mustDescribe,
    readings: source.readings,
    undeclaredArguments: source.undeclaredArguments,
    facts: {
      principal,
      upstream,
      name,
      annotations: annotationsOf(pinned),
      args,
      uri,
      findings,
    },
    undescribed: new Map(),
    hasApprovedDefaults: pinned !== undefined && pinned === source.described,
  };
}

/**
 * The call with the defaults of absent arguments filled in, as the server will read it if it keeps its definition; the
 * call itself if there is nothing to fill in. `unknown`: that takes too much work.
 */
function withDefaults(input: EvaluationInput): EvaluationWorld | 'unknown' {
  if (input.filled !== undefined) return input.filled;
  const fill = input.described?.input?.withDefaults;
  const args = fill === undefined ? input.args : fill(input.args);
  const filled = args === undefined ? 'unknown' : args === input.args ? input : withArguments(input, args);
  input.filled = filled;
  return filled;
}

/** A default of the definition that rules read in place of an argument that is absent. */
export type FilledIn = { readonly pointer: string; readonly value: Json };

/** What rules read besides the arguments themselves; undefined if finding it takes too much work. */
export function defaultsFor(
  described: PinnedDefinition | undefined,
  args: JsonObject,
): readonly FilledIn[] | undefined {
  const filled = described?.input?.withDefaults?.(args) ?? undefined;
  if (filled === undefined) return described?.input?.withDefaults === undefined ? [] : undefined;
  return addedIn(args, filled, '');
}

function addedIn(before: Json, after: Json, pointer: string): readonly FilledIn[] {
  if (before === after || typeof before !== 'object' || before === null) return [];
  const known = before as JsonObject;
  return Object.entries(after as JsonObject).flatMap(([name, value]) => {
    const at = pointerTo(pointer, name);
    const old = ownMember(known, name);
    return old === undefined ? [{ pointer: at, value }] : addedIn(old, value, at);
  });
}

function withArguments({ facts }: EvaluationInput, args: JsonObject): EvaluationWorld {
  return { args, facts: { ...facts, args } };
}

/**
 * The forms of the call that decide whether a rule holds. An allow rule holds with the approved defaults filled in, and
 * with defaults that nobody approved only if it holds without them too. A rule that restricts holds if it does in one
 * form or the other.
 */
function worldsFor(rule: Rule, input: EvaluationInput): readonly EvaluationWorld[] | 'unknown' {
  if (!readsArguments(rule)) return [input];
  const filled = withDefaults(input);
  if (filled === 'unknown' || filled === input) return filled === input ? [input] : 'unknown';
  return rule.effect === 'allow' && input.hasApprovedDefaults ? [filled] : [input, filled];
}

/** Evaluates in one form of a call, and says what came out of it. */
type InForm<Result> = {
  readonly evaluate: (rule: Rule, form: EvaluationWorld) => Result;
  readonly outcomeOf: (result: Result) => Outcome;
};

/**
 * What comes out of a rule in the form of the call that decides: with defaults or without, and for each reading of a URI.
 * Undefined if filling in the defaults takes too much work.
 */
export function inDecidingForm<Result>(
  rule: Rule,
  given: EvaluationInput,
  { evaluate, outcomeOf }: InForm<Result>,
): Result | undefined {
  const input = rule.effect === 'require' && rule.approval !== undefined ? withHints(rule, given) : given;
  const worlds = worldsFor(rule, input);
  if (worlds === 'unknown') return undefined;
  const [only] = worlds;
  if (worlds.length === 1 && only !== undefined && !readsManyUris(rule, input)) return evaluate(rule, only);
  // A rule that grants holds in every form, and one that restricts in any of them.
  const deciding = (results: readonly Result[]): Result | undefined => {
    const find = (...outcomes: readonly Outcome[]) => results.find((result) => outcomes.includes(outcomeOf(result)));
    return rule.effect === 'allow' ? (find('fails', 'error') ?? find('unknown')) : (find('holds') ?? find('unknown'));
  };
  const among = (forms: readonly EvaluationWorld[]): Result | undefined => {
    const results = forms.map((form) => evaluate(rule, form));
    // What is absent is read from its default, so an error counts where it remains with the defaults filled in.
    return deciding(results) ?? results.at(-1);
  };
  if (!readsManyUris(rule, input)) return among(worlds);
  const results = conditionTexts(input.readings, rule.effect)
    .map((uri) => among(worlds.map(({ args, facts }) => ({ args, facts: { ...facts, uri } }))))
    .filter((result) => result !== undefined);
  return deciding(results) ?? results.find((result) => outcomeOf(result) === 'error') ?? results.at(-1);
}

function readsManyUris(
  { when }: Rule,
  input: EvaluationInput,
): input is EvaluationInput & { readonly readings: UriReadings } {
  return input.readings !== undefined && when?.reads.readsUri === true;
}

const CONDITIONS: InForm<ConditionResult> = {
  // `args` first: `when` may rely on what they guarantee.
  evaluate: ({ conditions }, form) => evaluateClauses(conditions, form),
  outcomeOf: (result) => result,
};

/** Evaluates `args`, the terms of `when` that are left to the call, and the cost of a rule. */
export function holdsFor(rule: Rule, input: EvaluationInput): ConditionResult {
  const result = inDecidingForm(rule, input, CONDITIONS) ?? 'error';
  // A call that cannot be charged is refused.
  return result !== 'holds' || costOf(rule) === undefined || costFor(rule, input) !== undefined ? result : 'error';
}

/** What a call costs by a rule: of the call as it came and with its defaults, the dearer. Undefined if it has none with them. */
export function costFor(rule: Rule, given: EvaluationInput): number | undefined {
  const input = rule.effect === 'require' && rule.approval !== undefined ? withHints(rule, given) : given;
  const cost = costOf(rule);
  const filled = cost === undefined || !readsArguments(rule) ? input : withDefaults(input);
  if (cost === undefined || filled === 'unknown') return undefined;
  const amounts = urisOf(cost, input).map((uri) => {
    const amount = cost.evaluate({ ...filled.facts, uri });
    const absent = filled === input ? amount : cost.evaluate({ ...input.facts, uri });
    return amount === undefined ? undefined : Math.max(amount, absent ?? amount);
  });
  return amounts.reduce((a, b) => (a === undefined || b === undefined ? undefined : Math.max(a, b)));
}

/** What an expression sees as `uri`, once for each reading that matters to it. */
function urisOf({ reads }: CostExpression, input: EvaluationInput): readonly (string | undefined)[] {
  return input.readings !== undefined && reads.readsUri ? conditionTexts(input.readings, 'require') : [input.facts.uri];
}

/**
 * Like `holdsFor`, for rules that grant. A rule that reads arguments holds only if what it reads is
 * described, so that the upstream finds under these names what the rule found, and is no number that readers round.
 */
export function holdsForAllow(rule: Rule, input: EvaluationInput): ConditionResult {
  return unreadable(rule, input) === undefined ? holdsFor(rule, input) : 'fails';
}

/** Why a rule cannot be evaluated for these arguments: it refuses them if it restricts, and fails if it grants. */
export function unreadable(rule: Rule, input: EvaluationInput): ArgumentRefusal | undefined {
  if (readsUndescribed(rule, input)) return UNDESCRIBED;
  return readsInexact(rule, input) ? INEXACT : undefined;
}

/**
 * True if the arguments have a member that the rule reads and the definition does not describe, or one that
 * could be taken for such a member.
 */
export function readsUndescribed(rule: Rule, input: EvaluationInput): boolean {
  const { reads } = rule;
  if (readsAnyArgument(rule) && hasCaseTwin(input.args)) return true;
  // The record would show one of the two, and the upstream may read the other.
  const captured = rule.effect === 'require' ? rule.captureReads : undefined;
  if (captured !== undefined && hasReadTwin(input.args, captured)) return true;
  if (reads === undefined) return false;
  const known = input.undescribed.get(reads);
  if (known !== undefined) return known;
  const found = hasReadTwin(input.args, reads) || findUndescribed(input, reads);
  input.undescribed.set(reads, found);
  return found;
}

/**
 * True if the arguments have a number where the rule reads one whose double differs from it. What is compared and what
 * the server reads would be two numbers, or three.
 */
export function readsInexact(rule: Rule, { args }: EvaluationInput): boolean {
  if (exactNumbersIn(args) === undefined) return false;
  if (readsAnyArgument(rule)) return true;
  return rule.valueReads !== undefined && hasReadInexact(args, rule.valueReads);
}

function hasReadInexact(value: Json, reads: ArgumentReads): boolean {
  const numbers = typeof value === 'object' && value !== null ? exactNumbersIn(value) : undefined;
  if (numbers === undefined) return false;
  if (reads.readsAll) return true;
  if (Array.isArray(value)) {
    const { items, members } = reads;
    return (value as readonly Json[]).some((one, index) =>
      [items, members.get(String(index))].some((below) => below && (numbers.has(index) || hasReadInexact(one, below))),
    );
  }
  return [...reads.members].some(
    ([name, below]) => numbers.has(name) || hasReadInexact(ownMember(value as JsonObject, name) ?? null, below),
  );
}

function readsAnyArgument(rule: Rule): boolean {
  const cost = costOf(rule);
  return rule.when?.reads.readsAnyArgument === true || cost?.reads.readsAnyArgument === true;
}

/**
 * True if an object of the value has a member that is read beside one whose name differs only in case, whether or not
 * the definition describes both: a reader that folds case takes one for the other (CVE-2026-27896).
 */
function hasReadTwin(value: Json, reads: ArgumentReads): boolean {
  if (reads.readsAll) return hasCaseTwin(value);
  if (Array.isArray(value)) {
    const { items, members } = reads;
    return (value as readonly Json[]).some((one, index) =>
      [items, members.get(String(index))].some((below) => below && hasReadTwin(one, below)),
    );
  }
  if (!isObject(value) || reads.members.size === 0) return false;
  const twins = caseTwinsIn(value);
  for (const [name, below] of reads.members) {
    if (twins?.has(foldName(name)) === true) return true;
    if (hasReadTwin(ownMember(value, name) ?? null, below)) return true;
  }
  return false;
}

/** Whether two members of an object anywhere in the value differ only in case. */
function hasCaseTwin(value: Json): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (isObject(value) && caseTwinsIn(value) !== undefined) return true;
  return Object.values(value).some(hasCaseTwin);
}

/** The folded names that several members of the object have; undefined if there are none. */
function caseTwinsIn(value: JsonObject): ReadonlySet<string> | undefined {
  const names = Object.keys(value);
  // Of two names that fold alike, one is not in its folded form.
  if (names.every((name) => foldName(name) === name)) return undefined;
  const seen = new Set<string>();
  const twins = new Set<string>();
  for (const name of names) {
    const folded = foldName(name);
    if (seen.has(folded)) twins.add(folded);
    seen.add(folded);
  }
  return twins.size === 0 ? undefined : twins;
}

const NO_NAMES: ReadonlySet<string> = new Set();

function findUndescribed({ args, described, mustDescribe }: EvaluationInput, reads: ArgumentReads): boolean {
  if (described?.input !== undefined) {
    return described.input.firstUndescribed(args, reads) !== undefined;
  }
  if (!mustDescribe) return hasAmbiguousName(args, reads);
  const isPrompt = described?.kind === 'prompt';
  const names = isPrompt ? promptArguments(described.definition) : NO_NAMES;
  return Object.keys(args).some((name) => {
    const isRead = reads.readsAll || reads.members.has(name) || isAmbiguousWith(name, reads);
    return isRead && !names.has(name);
  });
}

/** The names of a prompt's arguments, which prompts list where tools have a schema (MCP, prompts). */
export function promptArguments(definition: JsonObject): ReadonlySet<string> {
  const listed = definition['arguments'];
  const names = new Set<string>();
  for (const argument of Array.isArray(listed) ? listed : []) {
    const name = isObject(argument) ? argument['name'] : undefined;
    if (typeof name === 'string') names.add(name);
  }
  return names;
}

/**
 * What a refusal says of arguments: advice, which is sentences that a model can act on, and violations for the
 * record. Both are built from positions and names of schemas and rules, never from values or names that came over the
 * wire.
 */
export type ArgumentRefusal = Pick<Deny, 'advice' | 'violations'>;

/** Why the definition does not admit the arguments, if it does not. */
export function refuseByDefinition({
  described,
  args,
  undeclaredArguments,
}: Pick<EvaluationInput, 'described' | 'args' | 'undeclaredArguments'>): ArgumentRefusal | undefined {
  const errors = described?.input?.check(args) ?? [];
  if (errors.length > 0) return refuseInvalid(errors);
  const undeclared = undeclaredArguments === 'declared' ? findUndeclared(described, args) : undefined;
  return undeclared && refuseUndeclared(undeclared);
}

/** Of arguments that do not satisfy the approved schema. */
function refuseInvalid(errors: readonly SchemaError[]): ArgumentRefusal {
  const sentences = errors.map(({ pointer, message, undeclared }) =>
    undeclared === undefined
      ? `The ${pointer === '' ? 'object of arguments' : `argument at ${pointer}`} ${message}.`
      : sentenceOfUndeclared(undeclared, pointer),
  );
  return { advice: sentences.join(' '), violations: violationsOf(errors) };
}

/** A longer name is cut: it comes from the caller, who sees it again. */
const MAX_SHOWN_NAME = 64;

/** Names the argument to its sender, who knows it; `holder` is the masked pointer of the object that has it. */
function sentenceOfUndeclared(name: string, holder: string): string {
  const where = holder === '' ? '' : ` in ${holder}`;
  return `The argument ${quoteForeignName(name, MAX_SHOWN_NAME)}${where} is not declared.`;
}

/** The errors of a schema as the record keeps them; `owner` is the pointer of what was checked. */
function violationsOf(errors: readonly SchemaError[], owner = ''): readonly Violation[] {
  return errors.map(({ pointer, keyword, missing }) => ({
    pointer: missing === undefined ? owner + pointer : pointerTo(owner + pointer, missing),
    keyword,
  }));
}

/**
 * Of arguments that a rule reads and the definition does not describe. They are named in the record by the keys of the
 * arguments, which are escaped; a pointer would repeat them.
 */
export const UNDESCRIBED: ArgumentRefusal = {
  advice:
    'The arguments contain a member that the definition does not describe, or two whose names differ only in case, ' +
    'and a policy reads it. Send only described members, each once.',
  violations: [{ pointer: '', keyword: 'undescribed' }],
};

/** Of a number that a rule reads and that is not the same to every reader. */
export const INEXACT: ArgumentRefusal = {
  advice:
    'The arguments contain a number that a policy reads and that loses its value when it is read as a double, such as ' +
    'an integer beyond 2^53. Send a number of fewer digits.',
  violations: [{ pointer: '', keyword: 'inexact' }],
};

/**
 * Of an argument that the definition does not declare. Names of members that no schema has are the caller's: they are
 * shown to the caller, and not recorded.
 */
export function refuseUndeclared({ pointer, shown }: UndeclaredMember): ArgumentRefusal {
  const name = stepsOf(pointer).at(-1);
  const holder = shown.slice(0, shown.lastIndexOf('/'));
  const sentence =
    name === undefined ? 'The arguments take too much work to check.' : sentenceOfUndeclared(name, holder);
  return {
    advice: `${sentence} Send only declared arguments.`,
    violations: [{ pointer: shown, keyword: 'undeclared' }],
  };
}

const NOT_ALLOWED_ADVICE = 'A policy rule does not allow these arguments.';

/** Of arguments that no alternative allows: the first argument of the first alternative that fails. */
export function refuseAlternatives(rules: readonly AllowRule[], input: EvaluationInput): ArgumentRefusal {
  const rule = rules[0];
  const filled = withDefaults(input);
  const { args } = filled === 'unknown' ? input : filled;
  for (const { name, schema } of rule?.args ?? []) {
    const value = Object.hasOwn(args, name) ? args[name] : undefined;
    if (value === undefined) {
      const violations = [{ pointer: pointerTo('', name), keyword: 'required' }];
      return { advice: `The argument "${name}" is required by a policy rule.`, violations };
    }
    const errors = schema.check(value);
    const [error] = errors;
    if (error !== undefined) {
      const where = error.pointer === '' ? '' : ` at ${error.pointer}`;
      const advice = `The argument "${name}"${where} is not allowed by a policy rule: ${error.message}.`;
      return { advice, violations: violationsOf(errors, pointerTo('', name)) };
    }
  }
  return { advice: NOT_ALLOWED_ADVICE };
}
