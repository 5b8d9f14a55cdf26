// How two definitions differ: line by line, for a terminal or a report, with control sequences and invisible characters
// escaped; field by field, with a JSON pointer into the definition, the old and the new value and the classes of that
// field alone; leaf by leaf, for a page that also counts what is equal; and the change of a lock file as a patch that
// `git apply` and `patch -p1` take. Pure, with bounded work.
// docs/reference/definitions.md#drift; RFC 6901; GNU diffutils manual, "Detailed Description of Unified Format".

import type { PinKind } from '../policy/definitions.js';
import { isObject, type Json, type JsonObject, ownMember } from '../protocol/jsonrpc.js';
import { escapeForTerminal } from '../text/escaping.js';
import { pointerOf, pointerTo } from '../text/json-members.js';
import { type Change, compareDefinitions, sortMembers } from './comparison.js';

/** Above this product of line counts, both sides are shown completely, one after the other. */
const MAX_TABLE_CELLS = 4_000_000;

type DiffLine = { readonly sign: ' ' | '-' | '+'; readonly text: string };

/** The diff of both definitions, with sorted members and texts split at their own line ends. */
export function diffDefinitions(before: Json | undefined, after: Json | undefined): readonly DiffLine[] {
  return diffLines(definitionLines(before), definitionLines(after));
}

/** Only the changed lines, each with up to `context` unchanged lines around it. */
export function changedLines(lines: readonly DiffLine[], context: number): readonly DiffLine[] {
  const kept = new Set<number>();
  for (const [index, line] of lines.entries()) {
    if (line.sign === ' ') continue;
    for (let near = index - context; near <= index + context; near += 1) kept.add(near);
  }
  return lines.filter((_, index) => kept.has(index));
}

/** The line as printed: its sign and the escaped text. */
export function printDiffLine({ sign, text }: DiffLine): string {
  return `${sign} ${escapeForTerminal(text)}`;
}

function definitionLines(value: Json | undefined): readonly string[] {
  if (value === undefined) return [];
  const lines: string[] = [];
  writeLines('', '', sortMembers(value), lines);
  return lines;
}

function writeLines(indent: string, label: string, value: Json, lines: string[]): void {
  if (typeof value === 'string') {
    const [first = '', ...rest] = value.split('\n');
    lines.push(`${indent}${label}${first}`, ...rest.map((line) => `${indent}  ${line}`));
  } else if (typeof value !== 'object' || value === null || Object.keys(value).length === 0) {
    lines.push(`${indent}${label}${JSON.stringify(value)}`);
  } else {
    writeMembers(indent, label, value, lines);
  }
}

function writeMembers(indent: string, label: string, value: object, lines: string[]): void {
  if (label !== '') lines.push(`${indent}${label.trimEnd()}`);
  const inner = label === '' ? indent : `${indent}  `;
  const isList = Array.isArray(value);
  for (const [key, child] of Object.entries(value)) {
    writeLines(inner, isList ? '- ' : `${key}: `, child, lines);
  }
}

/** The difference of two lists of lines. */
function diffLines(before: readonly string[], after: readonly string[]): readonly DiffLine[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) {
    start += 1;
  }
  let end = 0;
  const most = Math.min(before.length, after.length) - start;
  while (end < most && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  return [
    ...signed(' ', before.slice(0, start)),
    ...diffMiddle(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...signed(' ', before.slice(before.length - end)),
  ];
}

function signed(sign: DiffLine['sign'], texts: readonly string[]): readonly DiffLine[] {
  return texts.map((text) => ({ sign, text }));
}

/** Diffs by the longest common subsequence of lines (table of lengths). */
function diffMiddle(before: readonly string[], after: readonly string[]): readonly DiffLine[] {
  if (before.length * after.length > MAX_TABLE_CELLS) {
    return [...signed('-', before), ...signed('+', after)];
  }
  const width = after.length + 1;
  const table = new Uint32Array((before.length + 1) * width);
  for (let row = before.length - 1; row >= 0; row -= 1) {
    for (let column = after.length - 1; column >= 0; column -= 1) {
      const below = table[(row + 1) * width + column] ?? 0;
      const right = table[row * width + column + 1] ?? 0;
      const isSame = before[row] === after[column];
      const diagonal = table[(row + 1) * width + column + 1] ?? 0;
      table[row * width + column] = isSame ? diagonal + 1 : Math.max(below, right);
    }
  }
  return walkTable(before, after, table, width);
}

function walkTable(
  before: readonly string[],
  after: readonly string[],
  table: Uint32Array,
  width: number,
): readonly DiffLine[] {
  const lines: DiffLine[] = [];
  let [row, column] = [0, 0];
  while (row < before.length && column < after.length) {
    const text = before[row] ?? '';
    if (text === after[column]) {
      lines.push({ sign: ' ', text });
      row += 1;
      column += 1;
    } else if ((table[(row + 1) * width + column] ?? 0) >= (table[row * width + column + 1] ?? 0)) {
      lines.push({ sign: '-', text });
      row += 1;
    } else {
      lines.push({ sign: '+', text: after[column] ?? '' });
      column += 1;
    }
  }
  return [...lines, ...signed('-', before.slice(row)), ...signed('+', after.slice(column))];
}

/** The steps from a definition to one of its values. */
type Path = readonly (string | number)[];

export type FieldDifference = {
  readonly path: Path;
  /** RFC 6901; empty for the whole definition. */
  readonly pointer: string;
  /** Absent on the side that does not have it. */
  readonly before?: Json;
  readonly after?: Json;
  /** The classes that the difference of this field alone has. */
  readonly changes: readonly Change[];
};

type Definition = JsonObject | string;

/** Beyond this number of fields the classes of a field are those of the whole difference. */
const MAX_CLASSIFIED = 200;
/** To classify a field, the whole definition is compared; all comparisons together read about this many characters. */
const MAX_CLASSIFIED_CHARACTERS = 4_000_000;

/**
 * The fields that differ, in a stable order. A list differs as one field if its length does, because its elements have no
 * names. Only what both sides have has fields: a new or a removed definition has none.
 */
export function differingFields(
  kind: PinKind | undefined,
  before: Definition | undefined,
  after: Definition | undefined,
  changes: readonly Change[],
): readonly FieldDifference[] {
  if (before === undefined || after === undefined) return [];
  const found = [...differences([], before, after)];
  const chars = JSON.stringify(before).length + JSON.stringify(after).length;
  const most = Math.min(MAX_CLASSIFIED, MAX_CLASSIFIED_CHARACTERS / chars);
  return found.map(({ path, ...values }, index) => {
    const isClassified = index < most && kind !== undefined && isObject(before) && isObject(after);
    const own = isClassified
      ? compareDefinitions(kind, before, replaceAt(before, path, values.after) as JsonObject)
      : changes;
    return {
      path,
      pointer: pointerOf(path),
      ...values,
      changes: own.length > 0 ? own : ['notation-only'],
    };
  });
}

type Found = { readonly path: Path; readonly before?: Json; readonly after?: Json };

function* differences(path: Path, before: Json, after: Json): Generator<Found> {
  if (isObject(before) && isObject(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)]);
    for (const name of [...names].sort()) yield* memberDifferences(path, name, before, after);
  } else if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    for (const [index, item] of (before as readonly Json[]).entries()) {
      yield* differences([...path, index], item, (after as readonly Json[])[index] ?? null);
    }
  } else if (JSON.stringify(before) !== JSON.stringify(after)) yield { path, before, after };
}

function* memberDifferences(path: Path, name: string, before: JsonObject, after: JsonObject): Generator<Found> {
  const at = [...path, name];
  const [old, next] = [ownMember(before, name), ownMember(after, name)];
  if (old === undefined) yield { path: at, ...(next === undefined ? {} : { after: next }) };
  else if (next === undefined) yield { path: at, before: old };
  else yield* differences(at, old, next);
}

/** The value with another one at a path, or without it. */
function replaceAt(value: Json, path: Path, by: Json | undefined): Json | undefined {
  const [step, ...rest] = path;
  if (step === undefined) return by;
  if (Array.isArray(value)) {
    return value.map((item: Json, index) => (index === step ? (replaceAt(item, rest, by) ?? null) : item));
  }
  if (!isObject(value)) return value;
  const own = ownMember(value, String(step)) ?? null;
  const replaced = replaceAt(own, rest, by);
  const others = Object.entries(value).filter(([name]) => name !== String(step));
  const added = replaced === undefined ? [] : [[String(step), replaced] as const];
  return Object.fromEntries([...others, ...added]);
}

/** The lines of a field: `-` marks the old value, `+` the new one. Strings are quoted, and split at their line ends. */
export function fieldLines({ before, after }: FieldDifference): readonly DiffLine[] {
  return diffDefinitions(listed(before), listed(after)).map(({ sign, text }) => {
    return { sign, text: text.replace(/^- /, '') };
  });
}

/** The lines of a value as the items of a list. */
function listed(value: Json | undefined): Json | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== 'string') return JSON.stringify(sortMembers(value), null, 2).split('\n');
  return value.split(/(?<=\n)/).map((line) => {
    return `"${escapeForTerminal(line.replace(/["\\]/g, '\\$&'))}"`;
  });
}

/** A leaf that differs, by its JSON pointer; a side is absent where the leaf is not there. */
type LeafChange = {
  readonly pointer: string;
  readonly before?: string;
  readonly after?: string;
};

/** The leaves of two forms of a definition, one by one: the values that contain no others. */
export type ComparedLeaves = {
  /** The first of those that differ. */
  readonly fields: readonly LeafChange[];
  /** How many leaves differ, and how many do not. */
  readonly differing: number;
  readonly unchanged: number;
  /** False if one form has more leaves than are compared. */
  readonly isComplete: boolean;
};

/** A definition with more values than this has no digest. */
const MAX_COMPARED_LEAVES = 20_000;
/** Of all pointers together, which a long name would otherwise repeat for each leaf below it. */
const MAX_POINTER_CHARACTERS = 4_000_000;
const MAX_LEAF_CHANGES = 200;

/** Compares two forms leaf by leaf, for a page. A form that does not exist has no leaves. */
export function compareLeaves(before: Definition | undefined, after: Definition | undefined): ComparedLeaves {
  const [old, next] = [leavesOf(before), leavesOf(after)];
  const pointers = [...new Set([...old.leaves.keys(), ...next.leaves.keys()])];
  const differing = pointers.filter((one) => old.leaves.get(one) !== next.leaves.get(one));
  const fields = differing.slice(0, MAX_LEAF_CHANGES).map((pointer): LeafChange => {
    const [one, other] = [old.leaves.get(pointer), next.leaves.get(pointer)];
    return {
      pointer,
      ...(one === undefined ? {} : { before: one }),
      ...(other === undefined ? {} : { after: other }),
    };
  });
  return {
    fields,
    differing: differing.length,
    unchanged: pointers.length - differing.length,
    isComplete: old.isComplete && next.isComplete,
  };
}

/** The leaves of a definition by their pointers, in order. */
function leavesOf(definition: Definition | undefined): {
  readonly leaves: ReadonlyMap<string, string>;
  readonly isComplete: boolean;
} {
  const leaves = new Map<string, string>();
  let left = MAX_POINTER_CHARACTERS;
  const visit = (value: Json, pointer: string): boolean => {
    const isBranch = typeof value === 'object' && value !== null && Object.keys(value).length > 0;
    if (isBranch) {
      return Object.entries(value).every(([name, member]) => {
        return visit(member, pointerTo(pointer, name));
      });
    }
    left -= pointer.length;
    if (left < 0 || leaves.size >= MAX_COMPARED_LEAVES) return false;
    leaves.set(pointer, typeof value === 'string' ? value : JSON.stringify(value));
    return true;
  };
  const isComplete = definition === undefined || visit(sortMembers(definition), '');
  return { leaves, isComplete };
}

const CONTEXT_LINES = 3;

/** The patch from `before` (`undefined`: no such file) to `after`, which differ and end with a line end. */
export function unifiedPatch(path: string, before: string | undefined, after: string): string {
  const lines = diffLines(before === undefined ? [] : linesOf(before), linesOf(after));
  const from = before === undefined ? '/dev/null' : `a/${path}`;
  return [`--- ${from}`, `+++ b/${path}`, ...hunksOf(lines), ''].join('\n');
}

function linesOf(text: string): readonly string[] {
  return text.replace(/\n$/, '').split('\n');
}

/** The changed lines with their context; changes that are near each other share a hunk. */
function hunksOf(lines: readonly DiffLine[]): readonly string[] {
  const shown: string[] = [];
  let [oldLine, newLine, end] = [1, 1, 0];
  for (const [start, last] of spansOf(lines)) {
    const skipped = start - end;
    const hunk = lines.slice(start, last);
    const [removed, added] = [countOf(hunk, '-'), countOf(hunk, '+')];
    const [oldCount, newCount] = [hunk.length - added, hunk.length - removed];
    oldLine += skipped;
    newLine += skipped;
    shown.push(
      `@@ -${rangeOf(oldLine, oldCount)} +${rangeOf(newLine, newCount)} @@`,
      ...hunk.map(({ sign, text }) => sign + text),
    );
    oldLine += oldCount;
    newLine += newCount;
    end = last;
  }
  return shown;
}

/** An empty range names the line before it. */
function rangeOf(line: number, count: number): string {
  return `${count === 0 ? line - 1 : line},${count}`;
}

function countOf(lines: readonly DiffLine[], wanted: DiffLine['sign']): number {
  return lines.filter(({ sign }) => sign === wanted).length;
}

/** From and to of each hunk in `lines`. */
function spansOf(lines: readonly DiffLine[]): readonly (readonly [number, number])[] {
  const spans: [number, number][] = [];
  for (const [index, { sign }] of lines.entries()) {
    if (sign === ' ') continue;
    const from = Math.max(0, index - CONTEXT_LINES);
    const to = Math.min(lines.length, index + 1 + CONTEXT_LINES);
    const before = spans.at(-1);
    if (before !== undefined && from <= before[1]) before[1] = to;
    else spans.push([from, to]);
  }
  return spans;
}
