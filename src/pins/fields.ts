// The fields in which two definitions differ: a JSON pointer into the definition, the old and the new value, and the
// classes of that field alone. Pure, with bounded work. docs/contract.md §5; RFC 6901.

import type { PinKind } from '../policy/definitions.js';
import { isObject, type Json, type JsonObject, ownMember } from '../protocol/jsonrpc.js';
import { escapeForTerminal } from '../text/escaping.js';
import { pointerOf, pointerTo } from '../text/json-pointer.js';
import { type Change, compareDefinitions } from './compare.js';
import { type DiffLine, diffDefinitions } from './diff.js';
import { sortMembers } from './schema-comparison.js';

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

function* memberDifferences(
  path: Path,
  name: string,
  before: JsonObject,
  after: JsonObject,
): Generator<Found> {
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
    return value.map((item: Json, index) =>
      index === step ? (replaceAt(item, rest, by) ?? null) : item,
    );
  }
  if (!isObject(value)) return value;
  const own = ownMember(value, String(step)) ?? null;
  const replaced = replaceAt(own, rest, by);
  const others = Object.entries(value).filter(([name]) => name !== String(step));
  const added = replaced === undefined ? [] : [[String(step), replaced] as const];
  return Object.fromEntries([...others, ...added]);
}

/** The lines of a field: what was is marked with `-`, what is with `+`. Strings are quoted, and split at their line ends. */
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

/** A field that differs, by its JSON pointer; a side is absent where the field is not there. */
export type FieldChange = {
  readonly pointer: string;
  readonly before?: string;
  readonly after?: string;
};

/** The fields of two forms of a definition, one by one. */
export type ComparedFields = {
  /** The first of those that differ. */
  readonly fields: readonly FieldChange[];
  /** How many fields differ, and how many do not. */
  readonly differing: number;
  readonly unchanged: number;
  /** False if one form has more fields than are compared. */
  readonly isComplete: boolean;
};

/** A definition with more values than this has no digest. */
const MAX_COMPARED_FIELDS = 20_000;
/** Of all pointers together, which a long name would otherwise repeat for each field below it. */
const MAX_POINTER_CHARACTERS = 4_000_000;
const MAX_FIELD_CHANGES = 200;

/** Compares two forms field by field, for a page. A form that does not exist has no fields. */
export function compareFields(
  before: Definition | undefined,
  after: Definition | undefined,
): ComparedFields {
  const [old, next] = [leavesOf(before), leavesOf(after)];
  const pointers = [...new Set([...old.leaves.keys(), ...next.leaves.keys()])];
  const differing = pointers.filter((one) => old.leaves.get(one) !== next.leaves.get(one));
  const fields = differing.slice(0, MAX_FIELD_CHANGES).map((pointer): FieldChange => {
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
    if (left < 0 || leaves.size >= MAX_COMPARED_FIELDS) return false;
    leaves.set(pointer, typeof value === 'string' ? value : JSON.stringify(value));
    return true;
  };
  const isComplete = definition === undefined || visit(sortMembers(definition), '');
  return { leaves, isComplete };
}
