// What the operator lets the gateway mend in the arguments of a tool before anything else sees them: members that every
// call of some client has and no schema declares are dropped, and strings that stand for a number, a boolean or JSON
// become that. Only an approved definition, or without pinning the listed one, says what is mended. The text is edited
// by spans and read again, so that rules, limits, detectors and digests see what is forwarded and nothing else.
// Source: docs/reference/arguments.md.

import type { TextEdit } from '../protocol/admitted-request.js';
import { keepExactNumbers } from '../protocol/json/exact-numbers.js';
import { applyEdits, readJsonText, removalEdits, spanOf } from '../protocol/json/json.js';
import type { JsonError } from '../protocol/json/strict-scan.js';
import { isObject, type Json, type JsonObject } from '../protocol/jsonrpc.js';
import { pointerOf } from '../text/json-members.js';
import type { Catalog, PinnedDefinition } from './definitions.js';
import { targetPinOf } from './policy-target.js';

/** What an upstream's settings let be mended. */
export type MendingSettings = { readonly coerce: boolean; readonly drop: readonly string[] };

export type MendedArguments = {
  readonly edits: readonly TextEdit[];
  /** Pointers into the arguments. */
  readonly dropped: readonly string[];
  readonly coerced: readonly string[];
};

/** How often arguments are mended: dropped, coerced, and coerced again inside of what a string held. */
export const MAX_MENDED = 4;

/** Where the arguments are in a message. */
const ARGUMENTS = ['params', 'arguments'];

/** What is to be mended in a message that calls a tool; undefined if nothing is. */
export function mendArguments(
  { coerce, drop }: MendingSettings,
  catalog: Catalog,
  { name, args, text }: { readonly name: string; readonly args: JsonObject; readonly text: string },
): MendedArguments | undefined {
  const pin = targetPinOf(catalog, { kind: 'tool', name }, args);
  if (pin.refusal !== undefined || pin.described?.input === undefined) return undefined;
  const dropped = droppedOf({ coerce, drop }, pin.described, Object.keys(args));
  const span = spanOf(text, ARGUMENTS);
  if (span === undefined) return undefined;
  if (dropped.length > 0) {
    const edits = removalEdits(text, span, (one) => dropped.includes(one));
    return { edits, dropped: dropped.map((one) => pointerOf([one])), coerced: [] };
  }
  const coercions = (coerce ? pin.described.input.coercions?.(args) : undefined) ?? [];
  if (coercions.length === 0) return undefined;
  const edits = coercions.flatMap(({ path, json }): TextEdit[] => {
    const at = spanOf(text, [...ARGUMENTS, ...path]);
    return at === undefined ? [] : [{ ...at, text: json }];
  });
  return { edits, dropped: [], coerced: coercions.map(({ path }) => pointerOf(path)) };
}

/** The arguments of a call as the gateway reads them, and what it did to them. */
export type ReadArguments = {
  readonly args: JsonObject;
  /** Pointers into the arguments. */
  readonly dropped: readonly string[];
  readonly coerced: readonly string[];
};

/** Reads the JSON of arguments that nobody has sent, as admission would; the error of the reader if it would not. */
export function readArguments(
  json: string,
  mending: MendingSettings | undefined,
  catalog: Catalog,
  name: string | undefined,
): ReadArguments | JsonError | 'no-object' {
  const alone = readJsonText(json);
  if (!alone.ok) return alone.error;
  let text = `{"params":{"arguments":${json}}}`;
  let current = parseArguments(text);
  const dropped: string[] = [];
  const coerced: string[] = [];
  for (let round = 0; typeof current !== 'string' && round < MAX_MENDED; round++) {
    const call = { name: name ?? '', args: current, text };
    const more = mending === undefined || name === undefined ? undefined : mendArguments(mending, catalog, call);
    if (more === undefined) break;
    text = applyEdits(text, more.edits);
    const next = parseArguments(text);
    if (typeof next === 'string') break;
    current = next;
    dropped.push(...more.dropped);
    coerced.push(...more.coerced);
  }
  return typeof current === 'string' ? current : { args: current, dropped, coerced };
}

function parseArguments(text: string): JsonObject | JsonError | 'no-object' {
  const reading = readJsonText(text);
  if (!reading.ok) return reading.error;
  const { params } = reading.value as { readonly params?: Json };
  const args = isObject(params) ? params['arguments'] : undefined;
  const span = spanOf(text, ARGUMENTS);
  if (!isObject(args) || span === undefined) return 'no-object';
  if (reading.suspectNumbers) keepExactNumbers(text, span, args);
  return args;
}

/** Which of the arguments with these names are dropped. */
export function droppedOf(
  { drop }: MendingSettings,
  described: PinnedDefinition | undefined,
  names: Iterable<string>,
): readonly string[] {
  return [...names].filter((one) => drop.includes(one) && !isDeclared(described, one));
}

function isDeclared(described: PinnedDefinition | undefined, name: string): boolean {
  return described?.input?.declares?.(name) ?? true;
}
