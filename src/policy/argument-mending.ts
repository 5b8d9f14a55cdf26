// What the operator lets the gateway mend in the arguments of a tool before anything else sees them: members that every
// call of some client has and no schema declares are dropped, and strings that stand for a number, a boolean or JSON
// become that. Only an approved definition, or without pinning the listed one, says what is mended. The text is edited
// by spans and read again, so that rules, limits, detectors and digests see what is forwarded and nothing else.
// Source: docs/contract.md §3 (`arguments`).

import type { TextEdit } from '../protocol/admitted-request.js';
import { removalEdits, spanOf } from '../protocol/json/json.js';
import type { JsonObject } from '../protocol/jsonrpc.js';
import { pointerOf } from '../text/json-members.js';
import { targetPinOf } from './decide.js';
import type { Catalog, PinnedDefinition } from './definitions.js';

/** What an upstream's settings let be mended. */
export type MendingSettings = { readonly coerce: boolean; readonly drop: readonly string[] };

export type MendedArguments = {
  readonly edits: readonly TextEdit[];
  /** Pointers into the arguments. */
  readonly dropped: readonly string[];
  readonly coerced: readonly string[];
};

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
  const dropped = drop.filter((one) => Object.hasOwn(args, one) && !isDeclared(pin.described, one));
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

function isDeclared(described: PinnedDefinition | undefined, name: string): boolean {
  return described?.input?.declares?.(name) ?? true;
}
