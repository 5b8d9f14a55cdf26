// Information flow: what policies say about the data that tools return and take. Labels name upstreams and tools. Flows
// refuse a request because of what its caller has received before, or put it to a person; the histories that count for a caller are kept behind
// `FlowStore`, and lists do not depend on them. Sensitive fields are the places in results and arguments that are
// redacted or tagged; inspection/sensitive-fields.ts finds and replaces their values. Pure.
// Source: RFC 6901; docs/reference/flows.md.

import { BoundedMap } from '../state/bounds.js';
import { stepsOf } from '../text/json-members.js';
import type { ApprovalRequirement } from './approval-terms.js';
import type { FlowDocument } from './compile/documents.js';
import { foldItemName, matchesPattern, type Pattern } from './patterns.js';
import { type Identity, identityOfActor, type PrincipalFacts } from './principal.js';

/** The label of every result that is not labelled `trusted`. */
export const UNTRUSTED = 'untrusted';
export const TRUSTED = 'trusted';

export type Flow = Pick<FlowDocument, 'id' | 'to' | 'withinMs'> & {
  readonly policy: string;
  /** All of them must have been received. */
  readonly from: readonly string[];
  /** Whose yes lifts it for one request; undefined if it refuses. */
  readonly approval: ApprovalRequirement | undefined;
};

/** The tools of an upstream that match, or everything of it. */
export type ToolSet = {
  readonly upstream: string;
  readonly tools: Pattern | undefined;
  /** The same for names in any case, where pins do not say which names there are: a server may take one for another. */
  readonly folded?: Pattern | undefined;
};

/** Labels of everything of an upstream, or of the tools that match. */
export type LabelRule = ToolSet & { readonly labels: readonly string[] };

/** What flows say of one target. */
type TargetFlows = {
  /** The labels that a result of it leaves in the history, of those that a flow looks for. */
  readonly leaves: readonly string[];
  /** The flows that a request to it may violate. */
  readonly flows: readonly Flow[];
};

export interface FlowSet {
  /** The labels and flows that the policies have: what is said of a target. `kind` is undefined for no target. */
  of(upstream: string, kind: string | undefined, name: string): TargetFlows;
  /** The flows that a request to some target of an upstream may violate. */
  anyOf(upstream: string): readonly Flow[];
  /** Whether what an upstream returns besides results of tools leaves labels in the history. */
  isSource(upstream: string): boolean;
  /** What flows ask of persons. */
  readonly requirements: readonly ApprovalRequirement[];
  /** The labels that flows look for, sorted. */
  readonly sought: readonly string[];
  /** How long a result is remembered, in milliseconds. */
  readonly keepMs: number;
}

/**
 * A result is recorded again only after this time, in milliseconds, so that a stream of many messages costs one record
 * per second. Flows hold for as much longer.
 */
export const RECORD_EVERY_MS = 1_000;
/** Tools of which is kept what was found of them; a client can send any other name. */
const MAX_KNOWN_TOOLS = 1_000;

/** Finds something once for each tool of an upstream, or for what else an upstream has. */
function findOnce<Found>(find: (upstream: string, tool: string | undefined) => Found): typeof find {
  const known = new BoundedMap<string, { readonly found: Found }>(MAX_KNOWN_TOOLS);
  return (upstream, tool) => {
    const key = JSON.stringify([upstream, tool]);
    const before = known.get(key);
    if (before !== undefined) return before.found;
    const found = find(upstream, tool);
    known.set(key, { found });
    return found;
  };
}

export function createFlowSet(flows: readonly Flow[], labels: readonly LabelRule[]): FlowSet {
  const sought = new Set(flows.flatMap(({ from }) => from));
  const find = findOnce((upstream, tool): TargetFlows => {
    const found = labelsOf(labels, upstream, tool);
    return {
      leaves: [...found].filter((label) => sought.has(label)).sort(),
      flows: flows.filter(({ to }) => found.has(to)),
    };
  });
  return {
    isSource: (upstream) => find(upstream, undefined).leaves.length > 0,
    of: (upstream, kind, name) => find(upstream, kind === 'tool' ? name : undefined),
    anyOf(upstream) {
      const given = new Set(labels.filter((rule) => rule.upstream === upstream).flatMap((rule) => rule.labels));
      return flows.filter(({ to }) => to === UNTRUSTED || given.has(to));
    },
    requirements: flows.flatMap(({ approval }) => approval ?? []),
    sought: [...sought].sort(),
    keepMs: reachOf(flows),
  };
}

/** How far back these flows look, in milliseconds. */
export function reachOf(flows: readonly Pick<Flow, 'withinMs'>[]): number {
  return Math.max(0, ...flows.map(({ withinMs }) => withinMs)) + RECORD_EVERY_MS;
}

/** All labels of a tool, or of what else an upstream has. */
function labelsOf(labels: readonly LabelRule[], upstream: string, tool: string | undefined): ReadonlySet<string> {
  const found = new Set<string>();
  for (const rule of labels) {
    const match = matchIn(rule, upstream, tool);
    if (match === undefined) continue;
    // What another spelling has been called is no reason to trust this one.
    for (const label of rule.labels) if (match === 'exact' || label !== TRUSTED) found.add(label);
  }
  if (!found.has(TRUSTED)) found.add(UNTRUSTED);
  return found;
}

/** How a tool is one of a set: `folded` where only another spelling of its name is. */
function matchIn(
  { upstream, tools, folded }: ToolSet,
  at: string,
  tool: string | undefined,
): 'exact' | 'folded' | undefined {
  if (upstream !== at) return undefined;
  if (tools === undefined) return 'exact';
  if (tool === undefined) return undefined;
  if (matchesPattern(tools, tool)) return 'exact';
  return folded !== undefined && matchesPattern(folded, foldItemName(tool)) ? 'folded' : undefined;
}

/** The newest result with a label: the decision that delivered it, and how long ago, in milliseconds. */
type FlowMark = { readonly decision: string; readonly ageMs: number };

/** Where the history of callers is kept. Returns synchronously where it can; never throws or rejects. */
export type FlowStore = {
  /** Records that a result with these labels is about to be delivered. False if it cannot be recorded. */
  record(
    histories: readonly string[],
    labels: readonly string[],
    decision: string,
    keepMs: number,
  ): boolean | Promise<boolean>;
  /** The newest mark of each label in any of the histories. `withinMs`: how far back marks are of interest. */
  read(histories: readonly string[], labels: readonly string[], withinMs: number): FlowReading | Promise<FlowReading>;
};

/** Marks were lost, so that for so long nobody can tell what was received, in milliseconds. */
type LostHistory = { readonly lostForMs: number };
export type FlowReading = FlowHistory | LostHistory | 'unavailable';

export type FlowHistory = ReadonlyMap<string, FlowMark>;

type FlowCaller = Pick<PrincipalFacts, 'issuerUrl' | 'subject' | 'actors'>;

/** The histories that a result for this caller goes into: its subject's, and of its actors what they did for others. */
export function historiesWritten(caller: FlowCaller): readonly string[] {
  const { issuerUrl: issuer, subject, actors } = caller;
  return [
    historyOf('own', { issuer, subject }),
    ...actors.map((actor) => historyOf('for-others', identityOfActor(actor, caller))),
  ];
}

/** The histories that count for this caller: all of its subject's, and of its actors what they read for themselves. */
export function historiesRead(caller: FlowCaller): readonly string[] {
  const { issuerUrl: issuer, subject, actors } = caller;
  return [
    historyOf('own', { issuer, subject }),
    historyOf('for-others', { issuer, subject }),
    ...actors.map((actor) => historyOf('own', identityOfActor(actor, caller))),
  ];
}

function historyOf(of: 'own' | 'for-others', { issuer, subject }: Identity): string {
  return JSON.stringify([of, issuer, subject]);
}

/** A flow that a request violates, the decisions that caused it, and for how much longer. */
export type FlowViolation = {
  readonly flow: Flow;
  readonly causes: readonly string[];
  readonly leftMs: number;
};

/** The flows that the history violates, in their order. */
export function findViolations(flows: readonly Flow[], history: FlowHistory): readonly FlowViolation[] {
  return flows.flatMap((flow) => {
    const marks = flow.from.flatMap((label) => history.get(label) ?? []);
    const ageMs = Math.max(...marks.map((mark) => mark.ageMs));
    const leftMs = flow.withinMs + RECORD_EVERY_MS - ageMs;
    if (marks.length < flow.from.length || leftMs <= 0) return [];
    return [{ flow, causes: [...new Set(marks.map(({ decision }) => decision))], leftMs }];
  });
}

/** What has to be approved so that a request may go on which violates these flows; or the first of them that refuses. */
export function liftViolations(violations: readonly FlowViolation[]): FlowViolation | readonly ApprovalRequirement[] {
  const refusing = violations.find(({ flow }) => flow.approval === undefined);
  return refusing ?? violations.flatMap(({ flow }) => flow.approval ?? []);
}

/** A place in the results or the arguments of a tool. */
export type SensitiveField = {
  /** As the policy writes it. */
  readonly pointer: string;
  /** The decoded steps of the pointer. `*` is every item of an array and every member of an object. */
  readonly steps: readonly string[];
  readonly effect: 'redact' | 'tag';
};

/** What is sensitive of one tool, by all policies together. Plain data. */
export type SensitiveFields = {
  readonly results: readonly SensitiveField[];
  /** What is not recorded of the arguments. */
  readonly arguments: readonly SensitiveField[];
  /** The labels of the tool. */
  readonly labels: readonly string[];
};

/** The fields of the tools that match, as one policy lists them. */
export type SensitiveRule = ToolSet & {
  readonly tools: Pattern;
  readonly fields: readonly SensitiveField[];
};

export interface SensitiveSet {
  /** What is sensitive of a tool; `undefined` if nothing is. */
  of(upstream: string, tool: string): SensitiveFields | undefined;
}

export const ANY_STEP = '*';
const ARGUMENTS = 'arguments';

/** The steps of the pointer of a field. A block of content is the least that is replaced of content. */
export function fieldSteps(pointer: string): readonly string[] {
  const steps = stepsOf(pointer);
  return steps.length === 1 && steps[0] === 'content' ? ['content', ANY_STEP] : steps;
}

export function isOfArguments({ steps }: Pick<SensitiveField, 'steps'>): boolean {
  return steps[0] === ARGUMENTS;
}

/** Whether a step of a field is a member name or an index. */
export function isStep(step: string | undefined, child: string | number): boolean {
  return step === ANY_STEP || step === String(child);
}

export function createSensitiveSet(rules: readonly SensitiveRule[], labels: readonly LabelRule[]): SensitiveSet {
  return {
    of: findOnce((upstream, tool) => {
      const matching = rules.filter((rule) => matchIn(rule, upstream, tool) !== undefined);
      if (matching.length === 0) return undefined;
      const fields = uniqueFields(matching.flatMap((rule) => rule.fields));
      return {
        results: fields.filter((field) => !isOfArguments(field)),
        arguments: fields.filter(isOfArguments),
        labels: [...labelsOf(labels, upstream, tool)].sort(),
      };
    }),
  };
}

/** What is sensitive of any of several tools. */
export function uniteFields(all: readonly (SensitiveFields | undefined)[]): SensitiveFields | undefined {
  const given = all.filter((one) => one !== undefined);
  const [first] = given;
  if (first === undefined || given.every((one) => one === first)) return first;
  return {
    results: uniqueFields(given.flatMap((one) => one.results)),
    arguments: uniqueFields(given.flatMap((one) => one.arguments)),
    labels: [...new Set(given.flatMap((one) => one.labels))].sort(),
  };
}

/** Each pointer once: if one policy redacts what another tags, it is redacted. */
function uniqueFields(fields: readonly SensitiveField[]): readonly SensitiveField[] {
  const byPointer = new Map<string, SensitiveField>();
  for (const field of fields)
    if (byPointer.get(field.pointer)?.effect !== 'redact') byPointer.set(field.pointer, field);
  return [...byPointer.values()];
}
