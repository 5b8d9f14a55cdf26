// Flows: what a caller may not do for a while after what it has received. Here are the labels of targets, the flows that
// name them, whose history counts for a caller, and the decision about a history; the history itself is kept behind
// `FlowStore`. A flow plays no part in lists. Pure. docs/contract.md §4.

import { BoundedMap } from '../state/bounded-map.js';
import type { FlowDocument } from './compile/documents.js';
import { matchesPattern, type Pattern } from './patterns.js';
import type { PrincipalFacts } from './principal.js';

/** The label of every result that is not labelled `trusted`. */
export const UNTRUSTED = 'untrusted';
export const TRUSTED = 'trusted';

export type Flow = Pick<FlowDocument, 'id' | 'to' | 'withinMs'> & {
  readonly policy: string;
  /** All of them must have been received. */
  readonly from: readonly string[];
};

/** Labels of everything of an upstream, or of the tools that match. */
export type LabelRule = {
  readonly upstream: string;
  readonly tools: Pattern | undefined;
  readonly labels: readonly string[];
};

/** What flows say of one target. */
export type TargetFlows = {
  /** The labels that a result of it leaves in the history, of those that a flow looks for. */
  readonly leaves: readonly string[];
  /** The flows that may refuse a request to it. */
  readonly flows: readonly Flow[];
};

export interface FlowSet {
  /** The labels and flows that the policies have: what is said of a target. `kind` is undefined for no target. */
  of(upstream: string, kind: string | undefined, name: string): TargetFlows;
  /** The flows that may refuse a request to some target of an upstream. */
  anyOf(upstream: string): readonly Flow[];
  /** How long a result is remembered, in milliseconds. */
  readonly keepMs: number;
}

/**
 * A result is recorded again only after this time, in milliseconds, so that a stream of many messages costs one record
 * per second. Flows hold for as much longer.
 */
export const RECORD_EVERY_MS = 1_000;
/** Tools per upstream whose flows are kept; a client can send any other name. */
const MAX_KNOWN_TOOLS = 1_000;

export function createFlowSet(flows: readonly Flow[], labels: readonly LabelRule[]): FlowSet {
  const sought = new Set(flows.flatMap(({ from }) => from));
  const known = new BoundedMap<string, TargetFlows>(MAX_KNOWN_TOOLS);

  function find(upstream: string, tool: string | undefined): TargetFlows {
    const found = labelsOf(labels, upstream, tool);
    return {
      leaves: [...found].filter((label) => sought.has(label)).sort(),
      flows: flows.filter(({ to }) => found.has(to)),
    };
  }

  return {
    of(upstream, kind, name) {
      const tool = kind === 'tool' ? name : undefined;
      const key = JSON.stringify([upstream, tool]);
      const before = known.get(key);
      if (before !== undefined) return before;
      const target = find(upstream, tool);
      known.set(key, target);
      return target;
    },
    anyOf(upstream) {
      const given = new Set(
        labels.filter((rule) => rule.upstream === upstream).flatMap((rule) => rule.labels),
      );
      return flows.filter(({ to }) => to === UNTRUSTED || given.has(to));
    },
    keepMs: Math.max(0, ...flows.map(({ withinMs }) => withinMs)) + RECORD_EVERY_MS,
  };
}

/** All labels of a tool, or of what else an upstream has. */
export function labelsOf(
  labels: readonly LabelRule[],
  upstream: string,
  tool: string | undefined,
): ReadonlySet<string> {
  const found = new Set(
    labels
      .filter((rule) => rule.upstream === upstream && matchesTool(rule.tools, tool))
      .flatMap((rule) => rule.labels),
  );
  if (!found.has(TRUSTED)) found.add(UNTRUSTED);
  return found;
}

function matchesTool(tools: Pattern | undefined, tool: string | undefined): boolean {
  return tools === undefined || (tool !== undefined && matchesPattern(tools, tool));
}

/** The newest result with a label: the decision that delivered it, and how long ago, in milliseconds. */
export type FlowMark = { readonly decision: string; readonly ageMs: number };

/** Where the history of callers is kept. Returns synchronously where it can; never throws or rejects. */
export type FlowStore = {
  /** Records that a result with these labels is about to be delivered. False if it cannot be recorded. */
  record(
    histories: readonly string[],
    labels: readonly string[],
    decision: string,
    keepMs: number,
  ): boolean | Promise<boolean>;
  /** The newest mark of each label in any of the histories. */
  read(
    histories: readonly string[],
    labels: readonly string[],
  ): FlowHistory | 'unavailable' | Promise<FlowHistory | 'unavailable'>;
};

export type FlowHistory = ReadonlyMap<string, FlowMark>;

type FlowCaller = Pick<PrincipalFacts, 'issuerUrl' | 'subject' | 'actors'>;

/** The histories that a result for this caller goes into: its subject's, and of its actors what they did for others. */
export function historiesWritten({ issuerUrl, subject, actors }: FlowCaller): readonly string[] {
  return [
    historyOf('own', issuerUrl, subject),
    ...actors.map((actor) => historyOf('for-others', actor.issuer ?? issuerUrl, actor.subject)),
  ];
}

/** The histories that count for this caller: all of its subject's, and of its actors what they read for themselves. */
export function historiesRead({ issuerUrl, subject, actors }: FlowCaller): readonly string[] {
  return [
    historyOf('own', issuerUrl, subject),
    historyOf('for-others', issuerUrl, subject),
    ...actors.map((actor) => historyOf('own', actor.issuer ?? issuerUrl, actor.subject)),
  ];
}

function historyOf(of: 'own' | 'for-others', issuer: string, subject: string): string {
  return JSON.stringify([of, issuer, subject]);
}

/** A flow that refuses a request, the decisions that caused it, and for how much longer. */
export type FlowViolation = {
  readonly flow: Flow;
  readonly causes: readonly string[];
  readonly leftMs: number;
};

/** The first flow that the history violates. */
export function findViolation(
  flows: readonly Flow[],
  history: FlowHistory,
): FlowViolation | undefined {
  for (const flow of flows) {
    const marks = flow.from.flatMap((label) => history.get(label) ?? []);
    const ageMs = Math.max(...marks.map((mark) => mark.ageMs));
    const leftMs = flow.withinMs + RECORD_EVERY_MS - ageMs;
    if (marks.length < flow.from.length || leftMs <= 0) continue;
    return { flow, causes: [...new Set(marks.map(({ decision }) => decision))], leftMs };
  }
  return undefined;
}
