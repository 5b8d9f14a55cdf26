// Keeps structured content valid after a redaction: where the output schema does not admit the mark of a redaction, the
// value becomes `null`, or its member is left out, or a number becomes 0 or a power of ten of the same length. Only
// values that were redacted are replaced.
// Source: MCP, tools, outputSchema.

import type { CompiledSchema } from '../policy/definitions.js';
import type { TextEdit } from '../protocol/admitted-request.js';
import { applyEdits, MAX_JSON_DEPTH, removalEdits, spanOf } from '../protocol/json/json.js';
import { walkJson } from '../protocol/json/walk.js';
import type { Json } from '../protocol/jsonrpc.js';
import { groupBy } from '../text/grouping.js';
import { pointerOf } from '../text/json-members.js';
import { valueAt } from './exempt-members.js';

type Steps = readonly (string | number)[];

/** A redacted value. `steps` begin below the structured content. */
type Place = {
  readonly start: number;
  readonly end: number;
  readonly steps: Steps;
  readonly before: Json;
  /** What stands there now, as JSON. */
  readonly mark: string;
};

const STRUCTURED: Steps = ['result', 'structuredContent'];
const MARK = '[redacted:';
/** What becomes of a value; its member is left out where there is no JSON for it. */
type Replacement = { readonly json: string | undefined };
const NULL: Replacement = { json: 'null' };
const NOTHING: Replacement = { json: undefined };
const ZERO: Replacement = { json: '0' };

/** The schema is asked about the whole content for each group of alike places. */
const MAX_GROUPS = 64;
/** Members are left out one by one. */
const MAX_LEFT_OUT = 64;

/**
 * Replaces marks that the schema does not admit. `original` is the message before the redaction, and `text` after it;
 * returns the text that may satisfy the schema, or undefined where nothing can be replaced.
 */
export function replaceInadmissible(original: Json, text: string, output: CompiledSchema): string | undefined {
  const structured = valueAt(original, STRUCTURED);
  if (structured === undefined) return undefined;
  // The members of all items of a list are replaced alike.
  const groups = [...groupBy(redactedPlaces(original, text), ({ steps }) => patternOf(steps))];
  if (groups.length === 0 || groups.length > MAX_GROUPS) return undefined;
  const changes = groups.flatMap(([, places]) => {
    const replacement = replacementFor(structured, places, output);
    return replacement === undefined ? [] : places.map((place) => ({ place, ...replacement }));
  });
  const edits = changes.flatMap(({ place: { start, end }, json }): TextEdit[] =>
    json === undefined ? [] : [{ start, end, text: json }],
  );
  const leftOut = changes.filter(({ json }) => json === undefined);
  const removals = removalsOf(
    text,
    leftOut.map(({ place }) => place),
  );
  const all = [...edits, ...removals].sort((one, other) => one.start - other.start);
  return all.length === 0 ? undefined : applyEdits(text, all);
}

/** Edits that remove members, all of one object at once. */
function removalsOf(text: string, places: readonly Place[]): readonly TextEdit[] {
  const byHolder = groupBy(places, ({ steps }) => pointerOf(steps.slice(0, -1)));
  return [...byHolder.values()].flatMap((members) => {
    const [first] = members;
    const names = new Set(members.map(({ steps }) => steps.at(-1)));
    const holder = spanOf(text, [...STRUCTURED, ...(first?.steps.slice(0, -1) ?? [])]);
    return holder === undefined ? [] : removalEdits(text, holder, (name) => names.has(name));
  });
}

function patternOf(steps: Steps): string {
  return pointerOf(steps.map((step) => (typeof step === 'number' ? '*' : step)));
}

function redactedPlaces(original: Json, text: string): readonly Place[] {
  const places: Place[] = [];
  const caps = { maxDepth: MAX_JSON_DEPTH, maxStrings: Infinity };
  walkJson(text, caps, ({ kind, start, end, value, steps }) => {
    if (kind !== 'string' || !value.includes(MARK) || !isStructured(steps)) return;
    const before = valueAt(original, steps);
    if (before === undefined || before === value) return;
    const mark = text.slice(start, end);
    places.push({ start, end, steps: steps.slice(STRUCTURED.length), before, mark });
  });
  return places;
}

function isStructured(steps: Steps): boolean {
  return steps.length > STRUCTURED.length && STRUCTURED.every((step, at) => steps[at] === step);
}

/** The first replacement with which the original stays valid; undefined where the mark itself may stay. */
function replacementFor(structured: Json, places: readonly Place[], output: CompiledSchema): Replacement | undefined {
  const copy = structuredClone(structured);
  for (const { steps, mark } of places) setAt(copy, steps, mark);
  if (output.check(copy).length === 0) return undefined;
  for (const replacement of optionsFor(places)) {
    for (const { steps } of places) setAt(copy, steps, replacement.json);
    if (output.check(copy).length === 0) return replacement;
  }
  return undefined;
}

function optionsFor(places: readonly Place[]): readonly Replacement[] {
  const isLeftOut = places.length <= MAX_LEFT_OUT && places.every(({ steps }) => isMember(steps));
  const options = isLeftOut ? [NULL, NOTHING] : [NULL];
  const numbers = places.map(({ before }) => before).filter((one) => typeof one === 'number');
  if (numbers.length < places.length) return options;
  const digits = Math.min(...numbers.map((one) => String(Math.abs(one)).length));
  return [...options, ZERO, { json: `1${'0'.repeat(digits - 1)}` }];
}

function isMember(steps: Steps): boolean {
  return typeof steps.at(-1) === 'string';
}

function setAt(value: Json, steps: Steps, json: string | undefined): void {
  const holder = valueAt(value, steps.slice(0, -1));
  const key = steps.at(-1);
  if (holder === null || typeof holder !== 'object' || key === undefined) return;
  if (json === undefined) Reflect.deleteProperty(holder, key);
  else Reflect.set(holder, key, JSON.parse(json));
}
