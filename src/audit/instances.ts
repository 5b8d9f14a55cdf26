// What holds between the runs of one instance, a gateway under its name, in streams such as standard output. The first
// line of a file is signed evidence of the file before it; in a stream no run can read what the one before has written. So
// a run that follows another of its instance is accepted only if that one ended with its last line, signed. What ended
// otherwise is named, with the number of its unsigned lines. Pure: it performs no I/O.

import { countOf } from '../text/wording.js';
import type { ChainHead, ReplicaNames } from './chain.js';

type LinePosition = { readonly file: string; readonly line: number };

/** What was read of one chain. */
export type RunFacts = {
  /** `undefined` if no line of the chain that was read names its gateway. */
  readonly names: ReplicaNames | undefined;
  readonly head: ChainHead;
  readonly first: LinePosition;
  readonly last: LinePosition;
  /** How many lines of all chains were read before its first and its last one. */
  readonly order: { readonly first: number; readonly last: number };
  /** The times of its first and last line, in milliseconds since the epoch; NaN if they state none. */
  readonly timesMs: { readonly first: number; readonly last: number };
  readonly lines: number;
  readonly checkpoints: number;
  readonly unsigned: { readonly lines: number; readonly fromSeq: number | undefined };
  readonly firstSeq: number;
  /** The last line is a checkpoint of the line that says that the run ends. */
  readonly hasSignedEnd: boolean;
};

/** A run as the verdict lists it. */
type RunVerdict = Pick<RunFacts, 'lines' | 'checkpoints' | 'firstSeq' | 'hasSignedEnd' | 'head'> & {
  readonly run: string;
  readonly host: string;
  readonly unsigned: number;
};

export type InstanceVerdict = { readonly instance: string; readonly runs: readonly RunVerdict[] };

type Findings = {
  readonly missing: { readonly position: LinePosition; readonly message: string }[];
  readonly unchecked: string[];
  readonly twoWriters: string[];
  readonly notes: string[];
};

/** By the time that they state; the order in which they were read says nothing where they come from several files. */
function byStart(one: RunFacts, other: RunFacts): number {
  return one.timesMs.first - other.timesMs.first || one.order.first - other.order.first;
}

/** The runs of each instance, in the order in which they began. A chain that no line names is alone. */
function groupRuns(runs: readonly RunFacts[]): ReadonlyMap<string, readonly RunFacts[]> {
  const groups = new Map<string, RunFacts[]>();
  for (const run of runs) {
    // No name has a line feed.
    const key = run.names?.instance ?? `\n${run.head.epoch}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [run]);
    else group.push(run);
  }
  for (const group of groups.values()) group.sort(byStart);
  return groups;
}

/** The instances that lines name, and their runs. */
export function instancesOf(runs: readonly RunFacts[]): readonly InstanceVerdict[] {
  return [...groupRuns(runs.filter(({ names }) => names !== undefined))].map(([instance, group]) => ({
    instance,
    runs: group.map(({ names, lines, checkpoints, unsigned, firstSeq, hasSignedEnd, head }) => ({
      ...{ run: names?.run ?? '', host: names?.host ?? '', lines, checkpoints, unsigned: unsigned.lines },
      ...{ firstSeq, hasSignedEnd, head },
    })),
  }));
}

function describeRun({ names, head, first }: RunFacts): string {
  const what = names === undefined ? `chain ${head.epoch}` : `run ${names.run} of ${names.instance}`;
  return `the ${what}, from ${first.file}:${first.line} on,`;
}

function describeUnsigned({ unsigned: { lines, fromSeq } }: RunFacts): string {
  return lines === 0
    ? 'all of its lines that are here are signed'
    : `${countOf(lines, 'line')} at its end ${lines === 1 ? 'is' : 'are'} unsigned, from sequence number ${fromSeq} on`;
}

/** Within a file the order of the lines counts, since a clock may have been set; otherwise their times. */
function isAfter(later: RunFacts, run: RunFacts): boolean {
  if (later.first.file === run.last.file) return later.order.first > run.order.last;
  return later.timesMs.first >= run.timesMs.last;
}

function checkGroup(runs: readonly RunFacts[], found: Findings): void {
  for (const [index, run] of runs.entries()) {
    const next = runs[index + 1];
    if (next !== undefined) comparePair(run, next, found);
    if (!run.hasSignedEnd) checkEnd(run, runs, index, found);
  }
}

/** `next` says that it began after `run`. */
function comparePair(run: RunFacts, next: RunFacts, found: Findings): void {
  const isSameFile = next.last.file === run.first.file;
  if (isSameFile && next.order.last < run.order.first) {
    found.unchecked.push(
      `${describeRun(run)} says that it began before ${describeRun(next)} which stands before it: they were moved, or the clock was set back`,
    );
  } else if (!isAfter(next, run)) {
    found.twoWriters.push(`two gateways of one name: ${describeRun(next)} began before ${describeRun(run)} had ended`);
  }
  if (next.firstSeq > 0) {
    const message = `the lines 0 to ${next.firstSeq - 1} of ${describeRun(next)} are missing, and an earlier run of it is here`;
    found.missing.push({ position: next.first, message });
  }
}

function checkEnd(run: RunFacts, runs: readonly RunFacts[], index: number, found: Findings): void {
  // Whether it had ended by then is said by lines that anybody could have written.
  const next = runs[index + 1];
  if (next === undefined) {
    found.notes.push(
      `${describeRun(run)} has no signed end: it goes on, or was killed, or its end was cut off; ${describeUnsigned(run)}`,
    );
    return;
  }
  found.unchecked.push(
    `${describeRun(run)} has no signed end, and ${describeRun(next)} began after it: it was killed, or its end was cut off; ${describeUnsigned(run)}`,
  );
}

/** Checks the runs of streams. */
export function checkStreams(runs: readonly RunFacts[]): Findings {
  const found: Findings = { missing: [], unchecked: [], twoWriters: [], notes: [] };
  for (const group of groupRuns(runs).values()) checkGroup(group, found);
  return found;
}
