// Compiles the labels and flows of policy documents, with every mistake in one run: unknown upstreams, tools that are not
// pinned, labels that nothing has, flows that can refuse nothing. docs/contract.md §4.

import { createSuggester, type nearestCandidate } from '../../text/edit-distance.js';
import {
  createFlowSet,
  type Flow,
  type FlowSet,
  type LabelRule,
  TRUSTED,
  UNTRUSTED,
} from '../flows.js';
import { compilePattern, isExactPattern, matchesPattern, type Pattern } from '../patterns.js';
import type {
  DiagnosticCollector,
  PolicyContext,
  PolicyDocument,
  ReportDiagnostic,
} from './documents.js';

type Suggest = typeof nearestCandidate;

/** The flows of all documents; `undefined` if there are none. */
export function compileFlows(
  documents: readonly PolicyDocument[],
  labels: readonly LabelRule[],
  diagnostics: DiagnosticCollector,
): FlowSet | undefined {
  const suggest = createSuggester();
  const given = new Set([UNTRUSTED, ...labels.flatMap((rule) => rule.labels)]);
  const flows = documents.flatMap((document) =>
    compileDocument(document, given, diagnostics, suggest),
  );
  warnOfOwnResults(documents, labels, flows, diagnostics);
  noteUnused(documents, flows, diagnostics);
  return flows.length === 0 ? undefined : createFlowSet(flows, labels);
}

/** The key whose names are targets, and how they are checked and reported. */
export type TargetRun = {
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
export function compileTarget(
  target: string,
  grants: boolean,
  run: TargetRun,
): Pick<LabelRule, 'upstream' | 'tools'> | undefined {
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
  checkTool({ target, upstream, tool, grants, pattern: compiled.pattern }, run);
  return { upstream, tools: compiled.pattern };
}

function isKnownUpstream(
  upstream: string,
  tool: string | undefined,
  target: string,
  { key, context, suggest, report }: TargetRun,
): boolean {
  const names = context.upstreams.map(({ name }) => name);
  if (names.includes(upstream) || context.unknownNames?.has('upstream') === true) return true;
  const nearest = suggest(upstream, names);
  const suggestion = tool === undefined || nearest === undefined ? nearest : `${nearest}/${tool}`;
  const form =
    key === 'labels' ? 'a label is given to UPSTREAM or UPSTREAM/TOOL' : 'write UPSTREAM/TOOL';
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
function severityOf(
  tool: string,
  grants: boolean,
  { areInForce }: PolicyContext,
): 'error' | 'warning' | 'note' {
  if (isExactPattern(tool)) return areInForce === true ? 'warning' : 'error';
  return grants ? 'warning' : 'note';
}

/** The tools that are pinned for an upstream; `undefined` if that is not known, or if it is not pinned strictly. */
function pinnedTools(
  upstream: string,
  { pins, upstreams, invalidLocks }: PolicyContext,
): readonly string[] | undefined {
  const isStrict = upstreams.some(({ name, strict }) => name === upstream && strict);
  if (!isStrict || invalidLocks?.has(upstream)) return undefined;
  return pins?.(upstream)?.names('tool');
}

function compileDocument(
  { file, policy, rules, flows = [] }: PolicyDocument,
  given: ReadonlySet<string>,
  diagnostics: DiagnosticCollector,
  suggest: Suggest,
): readonly Flow[] {
  const report = diagnostics.forFile(file);
  const ids = new Set(rules.map(({ id }) => id));
  return flows.map(({ id, from, to, withinMs }, index): Flow => {
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
    return { policy, id, from: labels, to, withinMs };
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
      const { leaves, flows: refusing } = known.of(
        upstream,
        name === '' ? undefined : 'tool',
        name,
      );
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
        if (!used.has(label))
          report(['labels', target, index], 'note', `no flow names the label "${label}"`);
      }
    }
  }
}
