// Compiles the labels, flows and sensitive fields of policy documents, with every mistake in one run: unknown upstreams,
// tools that are not pinned, labels that nothing has, flows that can refuse nothing, places that a pinned schema does not
// have or that cannot be redacted there. docs/reference/flows.md.

import { isObject, type Json } from '../../protocol/jsonrpc.js';
import { pointerOf } from '../../text/json-members.js';
import { createSuggester, type nearestCandidate } from '../../text/wording.js';
import { type CompiledSchema, describesMember, type PinnedDefinition } from '../definitions.js';
import {
  ANY_STEP,
  createFlowSet,
  createSensitiveSet,
  type Flow,
  type FlowSet,
  fieldSteps,
  isOfArguments,
  type LabelRule,
  type SensitiveField,
  type SensitiveRule,
  type SensitiveSet,
  type ToolSet,
  TRUSTED,
  UNTRUSTED,
} from '../information-flow.js';
import { compilePattern, foldPattern, isExactPattern, matchesPattern, type Pattern } from '../patterns.js';
import { compileFlowApproval } from './approval.js';
import type { Closer } from './closing.js';
import type { DiagnosticCollector, PolicyContext, PolicyDocument, ReportDiagnostic } from './documents.js';

type Suggest = typeof nearestCandidate;

/** The flows of all documents; `undefined` if there are none. */
export function compileFlows(
  documents: readonly PolicyDocument[],
  labels: readonly LabelRule[],
  context: PolicyContext,
  diagnostics: DiagnosticCollector,
  closer: Pick<Closer, 'isFlowClosed'>,
): FlowSet | undefined {
  const suggest = createSuggester();
  const given = new Set([UNTRUSTED, ...labels.flatMap((rule) => rule.labels)]);
  const flows = documents.flatMap((document) =>
    compileDocument(document, given, { context, suggest, closer }, diagnostics),
  );
  warnOfOwnResults(documents, labels, flows, diagnostics);
  noteUnused(documents, flows, diagnostics);
  return flows.length === 0 ? undefined : createFlowSet(flows, labels);
}

/** The key whose names are targets, and how they are checked and reported. */
type TargetRun = {
  readonly key: 'labels' | 'sensitive';
  readonly context: PolicyContext;
  readonly suggest: Suggest;
  readonly report: ReportDiagnostic;
};

/** The labels of all documents. */
export function compileLabels(
  documents: readonly PolicyDocument[],
  context: PolicyContext,
  diagnostics: DiagnosticCollector,
): readonly LabelRule[] {
  const suggest = createSuggester();
  return documents.flatMap(({ file, labels: given = {} }) => {
    const run = { key: 'labels', context, suggest, report: diagnostics.forFile(file) } as const;
    return Object.entries(given).flatMap(([target, labels]) => {
      const compiled = compileTarget(target, labels.includes(TRUSTED), run);
      return compiled === undefined ? [] : [{ ...compiled, labels }];
    });
  });
}

/** `UPSTREAM`, or `UPSTREAM/TOOL`. `grants`: one that is to grant something. */
function compileTarget(target: string, grants: boolean, run: TargetRun): ToolSet | undefined {
  const slash = target.indexOf('/');
  const upstream = slash === -1 ? target : target.slice(0, slash);
  const tool = slash === -1 ? undefined : target.slice(slash + 1);
  if (!isKnownUpstream(upstream, tool, target, run)) return undefined;
  if (tool === undefined) return { upstream, tools: undefined };
  const compiled = compilePattern(tool, 'name');
  if (!compiled.ok || tool === '') {
    const why = compiled.ok ? 'the name of the tool is missing' : compiled.why;
    run.report([run.key, target], 'error', why);
    return undefined;
  }
  const { pattern } = compiled;
  checkTool({ target, upstream, tool, grants, pattern }, run);
  const folded = isStrict(upstream, run.context) ? undefined : foldPattern(pattern);
  return { upstream, tools: pattern, folded };
}

function isKnownUpstream(
  upstream: string,
  tool: string | undefined,
  target: string,
  { key, context, suggest, report }: TargetRun,
): boolean {
  const names = context.upstreams.map(({ name }) => name);
  if (names.includes(upstream)) return true;
  const nearest = suggest(upstream, names);
  const suggestion = tool === undefined || nearest === undefined ? nearest : `${nearest}/${tool}`;
  const form = key === 'labels' ? 'a label is given to UPSTREAM or UPSTREAM/TOOL' : 'write UPSTREAM/TOOL';
  report([key, target], 'error', `no upstream is named "${upstream}"; ${form}`, suggestion);
  return false;
}

type ToolTarget = {
  readonly target: string;
  readonly upstream: string;
  readonly tool: string;
  readonly grants: boolean;
  readonly pattern: Pattern;
};

function checkTool(
  { target, upstream, tool, grants, pattern }: ToolTarget,
  { key, context, suggest, report }: TargetRun,
): void {
  const known = pinnedTools(upstream, context);
  if (known === undefined || known.some((name) => matchesPattern(pattern, name))) return;
  const isExact = isExactPattern(tool);
  const message = isExact
    ? `no tool named "${tool}" is pinned for "${upstream}"`
    : `"${tool}" matches no tool that is pinned for "${upstream}"`;
  const nearest = isExact ? suggest(tool, known) : undefined;
  const suggestion = nearest === undefined ? undefined : `${upstream}/${nearest}`;
  report([key, target], severityOf(tool, grants, context), message, suggestion);
}

/** A glob also covers what may be offered later. One that is to grant something is probably a mistake. */
function severityOf(tool: string, grants: boolean, { areInForce }: PolicyContext): 'error' | 'warning' | 'note' {
  if (isExactPattern(tool)) return areInForce === true ? 'warning' : 'error';
  return grants ? 'warning' : 'note';
}

/** The tools that are pinned for an upstream; `undefined` if that is not known, or if it is not pinned strictly. */
function pinnedTools(upstream: string, context: PolicyContext): readonly string[] | undefined {
  const { pins, invalidLocks } = context;
  if (!isStrict(upstream, context) || invalidLocks?.has(upstream)) return undefined;
  return pins?.(upstream)?.names('tool');
}

/** Whether only names that are pinned can be allowed at an upstream. */
function isStrict(upstream: string, { upstreams }: PolicyContext): boolean {
  return upstreams.some(({ name, strict }) => name === upstream && strict);
}

function compileDocument(
  { file, policy, rules, flows = [] }: PolicyDocument,
  given: ReadonlySet<string>,
  {
    context,
    suggest,
    closer,
  }: Pick<TargetRun, 'context' | 'suggest'> & { readonly closer: Parameters<typeof compileFlows>[4] },
  diagnostics: DiagnosticCollector,
): readonly Flow[] {
  const report = diagnostics.forFile(file);
  const ids = new Set(rules.map(({ id }) => id));
  return flows.map((written, index): Flow => {
    const { id, from, to, withinMs } = written;
    if (ids.has(id)) {
      const message = `another rule or flow of this policy has the id "${id}"; rename one of the two`;
      report(['flows', index, 'id'], 'error', message);
    }
    ids.add(id);
    const labels = typeof from === 'string' ? [from] : from;
    const checkLabel = (label: string, at: readonly (string | number)[], effect: string): void => {
      if (given.has(label)) return;
      const message = `nothing is labelled "${label}", so this flow ${effect}`;
      report(['flows', index, ...at], 'error', message, suggest(label, given));
    };
    for (const [position, label] of labels.entries()) {
      const at = typeof from === 'string' ? ['from'] : ['from', position];
      checkLabel(label, at, 'never begins');
    }
    checkLabel(to, ['to'], 'refuses nothing');
    const reportFlow: ReportDiagnostic = (path, ...rest) => report(['flows', index, ...path], ...rest);
    const approval = compileFlowApproval(policy, written, context, reportFlow);
    const asks = approval !== undefined && !closer.isFlowClosed(approval);
    return { policy, id, from: labels, to, withinMs, approval: asks ? approval : undefined };
  });
}

/** What a flow refuses may begin that flow by its own result: then only the first of several calls passes. */
function warnOfOwnResults(
  documents: readonly PolicyDocument[],
  labels: readonly LabelRule[],
  flows: readonly Flow[],
  diagnostics: DiagnosticCollector,
): void {
  const known = createFlowSet(flows, labels);
  for (const { file, labels: given = {} } of documents) {
    const report = diagnostics.forFile(file);
    for (const target of Object.keys(given)) {
      const [upstream = '', ...tool] = target.split('/');
      const name = tool.join('/');
      // A glob is labelled like the tool that has its text for a name, and by itself.
      const { leaves, flows: refusing } = known.of(upstream, name === '' ? undefined : 'tool', name);
      const own = refusing.find(({ from }) => from.every((label) => leaves.includes(label)));
      if (own === undefined) continue;
      const message = `the results of "${target}" begin the flow "${own.id}" themselves, so only the first of several calls passes; label it "${TRUSTED}" as well if nobody else writes what it returns`;
      report(['labels', target], 'warning', message);
    }
  }
}

type SensitiveEntries = NonNullable<PolicyDocument['sensitive']>[string];

function hasTag(entries: SensitiveEntries): boolean {
  return entries.some((entry) => typeof entry === 'object' && entry.effect === 'tag');
}

/** A label that no flow names refuses nothing, and is seen only in results that are tagged. */
function noteUnused(
  documents: readonly PolicyDocument[],
  flows: readonly Flow[],
  diagnostics: DiagnosticCollector,
): void {
  if (documents.some(({ sensitive = {} }) => Object.values(sensitive).some(hasTag))) return;
  const used = new Set([TRUSTED, UNTRUSTED, ...flows.flatMap(({ from, to }) => [...from, to])]);
  for (const { file, labels = {} } of documents) {
    const report = diagnostics.forFile(file);
    for (const [target, given] of Object.entries(labels)) {
      for (const [index, label] of given.entries()) {
        if (!used.has(label)) report(['labels', target, index], 'note', `no flow names the label "${label}"`);
      }
    }
  }
}

/** The sensitive fields of all documents; `undefined` if there are none. */
export function compileSensitive(
  documents: readonly PolicyDocument[],
  labels: readonly LabelRule[],
  context: PolicyContext,
  diagnostics: DiagnosticCollector,
): SensitiveSet | undefined {
  const suggest = createSuggester();
  const rules = documents.flatMap(({ file, sensitive = {} }) => {
    const report = diagnostics.forFile(file);
    const run: TargetRun = { key: 'sensitive', context, suggest, report };
    return Object.keys(sensitive).flatMap((target) => compileRule(target, sensitive[target] ?? [], run) ?? []);
  });
  return rules.length === 0 ? undefined : createSensitiveSet(rules, labels);
}

function compileRule(
  target: string,
  entries: NonNullable<PolicyDocument['sensitive']>[string],
  run: TargetRun,
): SensitiveRule | undefined {
  const compiled = compileTarget(target, false, run);
  if (compiled === undefined) return undefined;
  const { upstream, tools, folded } = compiled;
  if (tools === undefined) {
    run.report(['sensitive', target], 'error', 'the name of the tool is missing', `${target}/*`);
    return undefined;
  }
  const catalog = run.context.pins?.(upstream);
  const pinned = (catalog?.names('tool') ?? []).flatMap((name) =>
    matchesPattern(tools, name) ? (catalog?.statusOf('tool', name).pinned ?? []) : [],
  );
  const fields = entries.map((entry, index): SensitiveField => {
    const { pointer, effect = 'redact' } = typeof entry === 'string' ? { pointer: entry } : entry;
    const field = { pointer, effect, steps: fieldSteps(pointer) };
    const path = ['sensitive', target, index, ...(typeof entry === 'string' ? [] : ['pointer'])];
    const report: ReportDiagnostic = (_, ...rest) => run.report(path, ...rest);
    checkField(field, report);
    checkPinned(field, pinned, run.suggest, report);
    return field;
  });
  return { upstream, tools, folded, fields };
}

function checkField(field: SensitiveField, report: ReportDiagnostic): void {
  const { pointer, effect, steps } = field;
  if (effect === 'tag' && isOfArguments(field)) {
    const message = `${pointer} cannot be tagged, because only results are sent to the client; without "effect", the argument is kept out of the audit log`;
    report([], 'error', message);
  }
  if (effect === 'redact' && steps.length === 1 && steps[0] === 'structuredContent') {
    const message =
      'structured content cannot be redacted as a whole, because it must stay an object; name its members';
    report([], 'error', message, '/structuredContent/*');
  }
}

/** Compares a field with the pinned tools that match. Of several, one that has the place is enough. */
function checkPinned(
  field: SensitiveField,
  tools: readonly PinnedDefinition[],
  suggest: TargetRun['suggest'],
  report: ReportDiagnostic,
): void {
  const [root, ...names] = field.steps;
  if (root === 'content' || names.length === 0 || tools.length === 0) return;
  const isArgument = isOfArguments(field);
  const written = isArgument ? 'inputSchema' : 'outputSchema';
  const schemas = tools.flatMap(({ name, definition, input, output }) => {
    const schema = isArgument ? input : output;
    return schema === undefined ? [] : [{ name, schema, written: definition[written] }];
  });
  const described = schemas.filter(({ schema }) => describesPlace(schema, names));
  if (described.length === 0) {
    reportMissing(field, { tools, schema: schemas[0]?.written, written, suggest }, report);
    return;
  }
  if (isArgument || field.effect === 'tag') return;
  const refusing = described.filter(({ written: schema }) => refusesMarkers(schema, names));
  for (const { name } of refusing) {
    const message = `the pinned outputSchema of the tool "${name}" requires ${field.pointer} and admits neither text nor null there, so every result with it is withheld`;
    report([], 'warning', message);
  }
  if (refusing.length === 0 && described.some(({ written: one }) => isNumber(one, names))) {
    const message = `other members that repeat the number ${field.pointer} as a number keep it; name such members too`;
    report([], 'note', message);
  }
}

type Missing = {
  readonly tools: readonly PinnedDefinition[];
  /** The first schema of these tools. */
  readonly schema: Json | undefined;
  readonly written: 'inputSchema' | 'outputSchema';
  readonly suggest: TargetRun['suggest'];
};

/** Reports a place that no schema of the tools has. */
function reportMissing(
  { pointer, steps: [root, ...names] }: SensitiveField,
  { tools, schema, written, suggest }: Missing,
  report: ReportDiagnostic,
): void {
  const [only] = tools.length === 1 ? tools : [];
  if (schema === undefined) {
    const who = only === undefined ? 'the tools that match have' : `the tool "${only.name}" has`;
    const message = `${who} no pinned ${written}, so whether ${pointer} exists cannot be checked`;
    report([], 'note', message);
    return;
  }
  const message =
    only === undefined
      ? `no pinned ${written} of the tools that match describes ${pointer}`
      : `the pinned ${written} of the tool "${only.name}" does not describe ${pointer}`;
  const nearest = nearestPlace(schema, names, suggest);
  const suggestion = nearest && pointerOf([root ?? '', ...nearest]);
  report([], 'warning', message, suggestion);
}

/**
 * Whether a schema describes a place; `*` is an item, a member of any name or, as the last step, every existing member.
 */
function describesPlace(schema: CompiledSchema, names: readonly string[]): boolean {
  const asList = names.map((step) => (step === ANY_STEP ? '0' : step));
  if (describesMember(schema, asList) || describesMember(schema, names)) return true;
  const holder = names.slice(0, -1);
  return names.at(-1) === ANY_STEP && (holder.length === 0 || describesPlace(schema, holder));
}

/** The place with its first unknown name replaced by the most similar one of the schema. */
function nearestPlace(
  schema: Json | undefined,
  [step, ...rest]: readonly string[],
  suggest: TargetRun['suggest'],
): readonly string[] | undefined {
  if (step === undefined || !isObject(schema)) return undefined;
  const { properties, items } = schema;
  const member = isObject(properties) ? properties[step] : step === ANY_STEP ? items : undefined;
  if (member === undefined) {
    const nearest = suggest(step, Object.keys(isObject(properties) ? properties : {}));
    return nearest === undefined ? undefined : [nearest, ...rest];
  }
  const nearest = nearestPlace(member, rest, suggest);
  return nearest && [step, ...nearest];
}

/** Whether a schema certainly admits no replacement for a redacted value. False where it is not certain. */
function refusesMarkers(schema: Json | undefined, steps: readonly string[]): boolean {
  const [step, ...rest] = steps;
  if (!isObject(schema)) return false;
  if (step === undefined) return !admitsText(schema) && !admits(schema, 'null');
  const { properties, items } = schema;
  const member = isObject(properties) ? properties[step] : undefined;
  if (member === undefined) return step === ANY_STEP && refusesMarkers(items, rest);
  const { required } = schema;
  const isRequired = Array.isArray(required) && required.includes(step);
  return (rest.length > 0 || isRequired) && refusesMarkers(member, rest);
}

/** Whether a schema says that there is a number at a place. */
function isNumber(schema: Json | undefined, [step, ...rest]: readonly string[]): boolean {
  if (!isObject(schema)) return false;
  const { properties, items, type } = schema;
  if (step === undefined) return [type].flat().some((name) => name === 'number' || name === 'integer');
  const member = isObject(properties) ? properties[step] : undefined;
  return isNumber(member ?? (step === ANY_STEP ? items : undefined), rest);
}

function admitsText(schema: { readonly [keyword: string]: Json }): boolean {
  const isNarrowed = 'enum' in schema || 'const' in schema || 'pattern' in schema;
  return admits(schema, 'string') && !isNarrowed;
}

function admits({ type }: { readonly [keyword: string]: Json }, name: string): boolean {
  return type === undefined || type === name || (Array.isArray(type) && type.includes(name));
}
