// Compiles the sensitive fields of policy documents, with every mistake in one run: unknown upstreams, tools that are not
// pinned, places that a pinned schema does not have or that cannot be redacted there. docs/contract.md §4.

import type { Json } from '../../protocol/jsonrpc.js';
import { isObject } from '../../protocol/jsonrpc.js';
import { createSuggester } from '../../text/edit-distance.js';
import { type CompiledSchema, describesMember, type PinnedDefinition } from '../definitions.js';
import type { LabelRule } from '../flows.js';
import { matchesPattern } from '../patterns.js';
import {
  ANY_STEP,
  createSensitiveSet,
  fieldSteps,
  isOfArguments,
  type SensitiveField,
  type SensitiveRule,
  type SensitiveSet,
} from '../sensitive.js';
import type {
  DiagnosticCollector,
  PolicyContext,
  PolicyDocument,
  ReportDiagnostic,
} from './documents.js';
import { compileTarget, type TargetRun } from './flows.js';

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
    return Object.keys(sensitive).flatMap(
      (target) => compileRule(target, sensitive[target] ?? [], run) ?? [],
    );
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
  const { upstream, tools } = compiled;
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
  return { upstream, tools, fields };
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
  const suggestion = nearest && `/${[root, ...nearest].map(escapeStep).join('/')}`;
  report([], 'warning', message, suggestion);
}

/** Whether a schema describes a place; `*` is an item, a member of any name or, as the last step, every existing member. */
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

function escapeStep(step: string | undefined): string {
  return (step ?? '').replaceAll('~', '~0').replaceAll('/', '~1');
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
  if (step === undefined)
    return [type].flat().some((name) => name === 'number' || name === 'integer');
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
