// Edits of single members of an object inside JSON text: what a translation adds, replaces and cuts, so
// that all else crosses byte for byte. Never serializes what was there.
// Source: JSON-RPC 2.0 §4 and §5; RFC 8259.

import type { TextEdit } from '../admitted.js';
import { applyEdits, memberSpans, removalEdits, type Span, spanOf } from '../json.js';
import type { JsonObject } from '../message.js';

type Path = readonly (string | number)[];
const NOTHING: JsonObject = {};

/** What becomes of one object: members that go, and members that stand in it afterwards with new values. */
export type MemberChange = {
  readonly path: Path;
  readonly cut?: ReadonlySet<string>;
  readonly set?: JsonObject;
};

/** The edits of one object of valid JSON text; none where no object stands at the path. */
export function memberEdits(
  text: string,
  { path, cut, set = NOTHING }: MemberChange,
): readonly TextEdit[] {
  const object = spanOf(text, path);
  if (object === undefined || text[object.start] !== '{') return [];
  return objectEdits(text, object, (name) => cut?.has(name) === true, set);
}

/** As {@link memberEdits}, applied at once. */
export function changeMembers(text: string, change: MemberChange): string {
  return applyEdits(text, memberEdits(text, change));
}

function objectEdits(
  text: string,
  object: Span,
  isCut: (name: string) => boolean,
  set: JsonObject,
): readonly TextEdit[] {
  const goes = (name: string): boolean => isCut(name) || Object.hasOwn(set, name);
  const removals = removalEdits(text, object, goes);
  const added = Object.entries(set).map(
    ([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`,
  );
  if (added.length === 0) return removals;
  const isEmpty = memberSpans(text, object).every((member) => goes(member.name));
  const at = object.start + 1;
  return [{ start: at, end: at, text: `${added.join(',')}${isEmpty ? '' : ','}` }, ...removals];
}
