// Redacts and tags sensitive fields of results, and keeps those of arguments out of records. Edits the text by spans: the
// places that the pointers name, the same places in texts that are JSON, and every other text of the result in which a
// redacted value occurs. docs/contract.md §4; RFC 6901.

import type { CompiledSchema, SchemaError } from '../policy/definitions.js';
import type { Finding } from '../policy/record.js';
import {
  ANY_STEP,
  isStep,
  type SensitiveField,
  type SensitiveFields,
} from '../policy/sensitive.js';
import type { TextEdit } from '../protocol/admitted-request.js';
import {
  applyEdits,
  elementSpans,
  memberSpans,
  removalEdits,
  type Span,
  spanOf,
} from '../protocol/json/json.js';
import type { Json } from '../protocol/jsonrpc.js';
import { isObject, type JsonObject } from '../protocol/jsonrpc.js';
import { placeholder } from './detectors/text-sanitizer.js';
import { createFindingLog, type FindingLog } from './findings.js';
import { parseContainer } from './first-pass.js';
import { type Leaf, type WalkCaps, walkJson } from './json-walk.js';
import { isReaderText, isStructured, nearestName, valueAt } from './message-fields.js';

const DETECTOR = 'sensitive';
const MARKER = placeholder(DETECTOR);
const MARKER_JSON = JSON.stringify(MARKER);
const MARKER_BLOCK = `{"type":"text","text":${MARKER_JSON}}`;

/** What replaces the value of a field: the marker, `null`, or nothing. Each is tried if the one before is invalid. */
type Replacement = 'marker' | 'null' | 'nothing';
const NEXT: Readonly<Record<Replacement, Replacement | undefined>> = {
  marker: 'null',
  null: 'nothing',
  nothing: undefined,
};

/** The fields of a result, each with its replacement. Plain data. */
export type PlannedFields = {
  readonly fields: readonly SensitiveField[];
  readonly replacements: readonly Replacement[];
  readonly labels: readonly string[];
};

/** How often one result is validated. */
const MAX_ATTEMPTS = 16;

/**
 * Finds a replacement for each field so that the result stays valid. `undefined` if there is none: then the result must be
 * withheld.
 */
export function planRedaction(
  message: Json,
  { results: fields, labels }: SensitiveFields,
  output: CompiledSchema | undefined,
): PlannedFields | undefined {
  const replacements = fields.map((): Replacement => 'marker');
  const planned = { fields, replacements, labels };
  const result = valueAt(message, ['result']);
  const structured = isObject(result) ? result['structuredContent'] : undefined;
  if (output === undefined || structured === undefined) return planned;
  if (isObject(result) && result['isError'] === true) return planned;
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    const errors = output.check(redactedCopy(structured, planned));
    if (errors.length === 0) return planned;
    if (!tryOthers(planned.fields, replacements, errors)) break;
  }
  // A result that was invalid before is withheld as such.
  return output.check(structured).length === 0 ? undefined : planned;
}

function redactedCopy(structured: Json, { fields, replacements }: PlannedFields): Json {
  let copy = structured;
  for (const [index, { steps, effect }] of fields.entries()) {
    if (effect === 'tag' || steps[0] !== 'structuredContent') continue;
    const replacement = replacements[index];
    const value = replacement === 'marker' ? MARKER : null;
    copy = mapPlaces(copy, steps.slice(1), () => (replacement === 'nothing' ? undefined : value));
  }
  return copy;
}

/** Gives each field that an error is about its next replacement. False if there is none. */
function tryOthers(
  fields: readonly SensitiveField[],
  replacements: Replacement[],
  errors: readonly SchemaError[],
): boolean {
  const pointers = errors.map(({ pointer, missing }) => {
    const steps = pointer.split('/').slice(1);
    return missing === undefined ? steps : [...steps, missing];
  });
  let hasChanged = false;
  for (const [index, { steps, effect }] of fields.entries()) {
    const next = NEXT[replacements[index] ?? 'nothing'];
    const [root, ...rest] = steps;
    if (next === undefined || effect === 'tag' || root !== 'structuredContent') continue;
    const isConcerned = pointers.some((pointer) =>
      rest.every((step, at) => {
        // A name that the schema does not have is shown as `*`.
        const named = pointer[at] ?? ANY_STEP;
        const isMasked = named === ANY_STEP;
        return isMasked || isStep(step, named.replaceAll('~1', '/').replaceAll('~0', '~'));
      }),
    );
    if (!isConcerned) continue;
    replacements[index] = next;
    hasChanged = true;
  }
  return hasChanged;
}

/** A copy of a value in which the places of a pointer are replaced; where `replace` gives nothing, the member is left out. */
function mapPlaces(
  value: Json,
  steps: readonly string[],
  replace: (value: Json) => Json | undefined,
): Json {
  const [step, ...rest] = steps;
  const replaceChild = (child: Json): Json | undefined =>
    rest.length === 0 ? replace(child) : mapPlaces(child, rest, replace);
  if (Array.isArray(value))
    return value.map((item: Json, index) =>
      isStep(step, index) ? (replaceChild(item) ?? null) : item,
    );
  if (!isObject(value) || (step !== ANY_STEP && !Object.hasOwn(value, step ?? ''))) return value;
  const members = Object.entries(value).flatMap(([name, member]): [string, Json][] => {
    const replaced = isStep(step, name) ? replaceChild(member) : member;
    return replaced === undefined ? [] : [[name, replaced]];
  });
  return Object.fromEntries(members);
}

/** Arguments as they may be recorded: nothing of a sensitive field, in its place or in another argument. Never throws. */
export function hideArguments(args: JsonObject, hidden: SensitiveFields['arguments']): JsonObject {
  try {
    return hideFields(args, hidden);
  } catch {
    return {};
  }
}

function hideFields(args: JsonObject, hidden: SensitiveFields['arguments']): JsonObject {
  const values = new Set<string>();
  let copy: Json = args;
  for (const field of hidden) {
    const steps = field.steps.slice(1);
    if (steps.length === 0) return {};
    copy = mapPlaces(copy, steps, (value) => {
      collectValues(value, values);
      return MARKER;
    });
  }
  const find = createSearch(values);
  const hide = (value: Json): Json => {
    if (typeof value === 'string') return find(value, MIN_VALUE_CHARS).text;
    if (Array.isArray(value)) return value.map(hide);
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [
        find(name, MIN_VALUE_CHARS).text,
        hide(member),
      ]),
    );
  };
  return hide(copy) as JsonObject;
}

/** Shorter values are not searched for: they would occur by chance. */
const MIN_VALUE_CHARS = 4;
/** Shorter values are found only as whole words of prose: the same short value in another member means something else. */
const MIN_PART_CHARS = 8;

/** The texts and numbers of a redacted value that are searched for in other texts. */
function collectValues(value: Json, values: Set<string>): void {
  if (typeof value === 'string') {
    const escaped = JSON.stringify(value).slice(1, -1);
    addValue(value, values);
    addValue(escaped, values);
    addValue(escapeBeyondAscii(escaped), values);
  } else if (typeof value === 'number') addValue(String(value), values);
  else if (Array.isArray(value)) for (const item of value) collectValues(item as Json, values);
  else if (isObject(value)) for (const name in value) collectValues(value[name] ?? null, values);
}

function addValue(text: string, values: Set<string>): void {
  if (text.trim().length >= MIN_VALUE_CHARS) values.add(text);
}

/** JSON as Python writes it by default, without characters beyond ASCII. */
function escapeBeyondAscii(text: string): string {
  return text.replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Replaces the values that have at least `minChars` characters. */
type Search = (text: string, minChars: number) => { readonly text: string; readonly count: number };

/** Characters compared in one result. Values and texts may be chosen so that nearly every comparison fails late. */
const MAX_COMPARED_CHARS = 16 * 1024 * 1024;

class TooLarge extends Error {}

/** Creates the search that replaces all occurrences of the values in a text. Throws beyond its bound. */
function createSearch(values: ReadonlySet<string>): Search {
  const lengthsByStart = new Map<number, number[]>();
  for (const value of values) {
    const start = startKey(value, 0);
    const lengths = lengthsByStart.get(start) ?? [];
    if (!lengths.includes(value.length)) lengths.push(value.length);
    lengthsByStart.set(start, lengths);
  }
  for (const lengths of lengthsByStart.values()) lengths.sort((one, other) => other - one);
  let compared = 0;

  function isAt(text: string, at: number, length: number): boolean {
    compared += length;
    if (compared > MAX_COMPARED_CHARS) throw new TooLarge();
    const end = at + length;
    if (end > text.length || !values.has(text.slice(at, end))) return false;
    return length >= MIN_PART_CHARS || isWord(text, at, end);
  }

  function lengthAt(text: string, at: number, minChars: number): number {
    const lengths = lengthsByStart.get(startKey(text, at)) ?? [];
    return lengths.find((length) => length >= minChars && isAt(text, at, length)) ?? 0;
  }

  return (text, minChars) => {
    if (values.size === 0) return { text, count: 0 };
    let kept = '';
    let from = 0;
    let count = 0;
    for (let at = 0; at <= text.length - minChars; ) {
      const length = lengthAt(text, at, minChars);
      if (length === 0) at++;
      else {
        kept += text.slice(from, at) + MARKER;
        from = at += length;
        count++;
      }
    }
    return count === 0 ? { text, count } : { text: kept + text.slice(from), count };
  };
}

function startKey(text: string, at: number): number {
  return text.charCodeAt(at) * 0x10000 + text.charCodeAt(at + 1);
}

const LETTER_OR_DIGIT = /[\p{L}\p{N}]/u;

function isWord(text: string, start: number, end: number): boolean {
  return !LETTER_OR_DIGIT.test(text.charAt(start - 1)) && !LETTER_OR_DIGIT.test(text.charAt(end));
}

/** A message with its fields redacted, and the pointers of the fields to tag that it has. */
export type Redacted = {
  readonly text: string;
  readonly tagged: readonly string[];
  readonly findings: readonly Finding[];
};

/** Fields with the steps that are left below a value. */
type Active = readonly { readonly field: number; readonly steps: readonly string[] }[];

/** One text in which places are sought: the message, or a text of it that is JSON. */
type Walk = {
  readonly planned: PlannedFields;
  readonly text: string;
  /** What is replaced or left out. */
  readonly places: Span[];
  readonly edits: TextEdit[];
  /** How often each field was found. */
  readonly counts: number[];
  readonly values: Set<string>;
};

/** Redacts the fields of one message. `too-large` beyond a bound. */
export function redactFields(
  text: string,
  planned: PlannedFields,
  caps: WalkCaps,
): Redacted | 'too-large' {
  const { fields } = planned;
  const counts = fields.map(() => 0);
  const values = new Set<string>();
  const walk: Walk = { planned, text, places: [], edits: [], counts, values };
  const root = spanOf(text, ['result']);
  if (root === undefined) return { text, tagged: [], findings: [] };
  visit(
    walk,
    root,
    fields.map(({ steps }, field) => ({ field, steps })),
  );
  const leaves = readLeaves(walk, caps);
  if (leaves === 'too-large') return leaves;
  const log = createFindingLog('to-client');
  noteFields(fields, counts, log);
  try {
    redactLeaves(walk, leaves, log);
  } catch (error) {
    if (error instanceof TooLarge) return 'too-large';
    throw error;
  }
  const edits = walk.edits.sort((one, other) => one.start - other.start);
  return {
    text: applyEdits(text, edits),
    tagged: fields.flatMap(({ effect, pointer }, field) =>
      effect === 'tag' && counts[field] !== 0 ? [pointer] : [],
    ),
    findings: log.list(),
  };
}

function noteFields(
  fields: readonly SensitiveField[],
  counts: readonly number[],
  log: FindingLog,
): void {
  for (const [field, { steps, effect }] of fields.entries()) {
    const count = counts[field] ?? 0;
    const action = effect === 'tag' ? 'flag' : 'redact';
    if (count > 0) log.add(['result', ...steps.map(asStep)], { detector: DETECTOR, action, count });
  }
}

/** Array indexes are shown as they are. */
function asStep(step: string): string | number {
  return /^(?:0|[1-9]\d*)$/.test(step) ? Number(step) : step;
}

/** Finds the places below a value. The outermost of several is redacted, and with it what is inside. */
function visit(walk: Walk, span: Span, active: Active): void {
  const { planned, text, counts } = walk;
  const ended = active.filter(({ steps }) => steps.length === 0);
  for (const { field } of ended) counts[field] = (counts[field] ?? 0) + 1;
  const redacted = ended.find(({ field }) => planned.fields[field]?.effect === 'redact');
  if (redacted !== undefined) {
    redactPlace(walk, span, redacted.field);
    return;
  }
  const open = active.filter(({ steps }) => steps.length > 0);
  if (open.length === 0) return;
  const below = (child: string | number): Active =>
    open.flatMap(({ field, steps: [step, ...rest] }) =>
      isStep(step, child) ? [{ field, steps: rest }] : [],
    );
  for (const [index, element] of elementSpans(text, span).entries())
    visit(walk, element, below(index));
  const leftOut = new Set<string>();
  for (const { name, start, value } of memberSpans(text, span)) {
    const next = below(name);
    const ending = next.find(({ field, steps }) => steps.length === 0 && leavesOut(planned, field));
    if (ending === undefined) visit(walk, value, next);
    else {
      leftOut.add(name);
      counts[ending.field] = (counts[ending.field] ?? 0) + 1;
      collectValues(JSON.parse(text.slice(value.start, value.end)), walk.values);
      walk.places.push({ start, end: value.end });
    }
  }
  if (leftOut.size > 0) walk.edits.push(...removalEdits(text, span, (name) => leftOut.has(name)));
}

function leavesOut({ fields, replacements }: PlannedFields, field: number): boolean {
  return fields[field]?.effect === 'redact' && replacements[field] === 'nothing';
}

function redactPlace(walk: Walk, { start, end }: Span, field: number): void {
  const { planned, text, values } = walk;
  const steps = planned.fields[field]?.steps ?? [];
  const isContent = steps[0] === 'content';
  const isBlock = isContent && steps.length === 2;
  if (!isContent) collectValues(JSON.parse(text.slice(start, end)), values);
  const marker = isBlock ? MARKER_BLOCK : MARKER_JSON;
  const replacement = planned.replacements[field] === 'marker' ? marker : 'null';
  walk.places.push({ start, end });
  walk.edits.push({ start, end, text: replacement });
}

type TextLeaf = Span & {
  readonly kind: 'name' | 'string';
  readonly steps: Leaf['steps'];
  readonly value: string;
  /** The value with the fields redacted, where it is JSON. */
  readonly redacted: string;
  /** Part of structured content, or JSON. */
  readonly isData: boolean;
};

/** Members of content that are not text for a reader: replacing a part of one would make the result invalid. */
const NOT_TEXT: ReadonlySet<string | undefined> = new Set([
  'type',
  'mimeType',
  'data',
  'blob',
  'audience',
  'lastModified',
  'resultType',
  'cacheScope',
]);

/** The texts of a result outside the places, with the fields of those that are JSON redacted. */
function readLeaves(walk: Walk, caps: WalkCaps): readonly TextLeaf[] | 'too-large' {
  const leaves: TextLeaf[] = [];
  const places = [...walk.places].sort((one, other) => one.start - other.start);
  let next = 0;
  const end = walkJson(walk.text, caps, (leaf) => {
    while ((places[next]?.end ?? leaf.end) <= leaf.start) next++;
    if ((places[next]?.start ?? leaf.end) <= leaf.start || !isSearched(leaf)) return;
    leaves.push(readLeaf(walk, leaf));
  });
  return end === 'too-large' ? end : leaves;
}

function readLeaf(walk: Walk, leaf: Leaf): TextLeaf {
  const { start, end, value } = leaf;
  const steps = [...leaf.steps];
  const kind = leaf.kind === 'name' ? 'name' : 'string';
  const json = kind === 'string' ? redactJsonText(walk, leaf) : undefined;
  const isData = json !== undefined || isStructured(steps);
  return { kind, start, end, steps, value, redacted: json ?? value, isData };
}

function isSearched({ kind, steps }: Leaf): boolean {
  if (steps[0] !== 'result' || steps.length < 2) return false;
  if (isStructured(steps)) return kind !== 'number' && steps.length > 2;
  return kind === 'string' && !NOT_TEXT.has(nearestName(steps));
}

/**
 * Redacts the fields in a text that is JSON: structured content, or a list on the way to a field, or an item of it.
 * `undefined` for any other text.
 */
function redactJsonText(outer: Walk, { steps, value }: Leaf): string | undefined {
  if (!isReaderText(steps) || parseContainer(value) === undefined) return undefined;
  const { planned, counts, values } = outer;
  const walk: Walk = { planned, text: value, places: [], edits: [], counts: [...counts], values };
  const span = spanOf(value, []) ?? { start: 0, end: 0 };
  const isList = value[span.start] === '[';
  visit(
    walk,
    span,
    activeFrom(planned, () => [0]),
  );
  if (walk.places.length === 0)
    visit(
      walk,
      span,
      activeFrom(planned, (steps) => beginnings(steps, isList)),
    );
  return applyEdits(
    value,
    walk.edits.sort((one, other) => one.start - other.start),
  );
}

/** The fields of structured content that are redacted, with the steps from each of the given positions on. */
function activeFrom(
  { fields }: PlannedFields,
  startsOf: (steps: readonly string[]) => readonly number[],
): Active {
  return fields.flatMap(({ steps: [root, ...rest], effect }, field) =>
    root === 'structuredContent' && effect === 'redact'
      ? startsOf(rest).map((at) => ({ field, steps: rest.slice(at) }))
      : [],
  );
}

/** Where in the steps of a field a text may begin: servers also write a list without what holds it, or item by item. */
function beginnings(steps: readonly string[], isList: boolean): readonly number[] {
  const lists = steps.flatMap((step, at) => (step === ANY_STEP ? [at] : []));
  return isList ? lists : lists.map((at) => at + 1).filter((at) => at < steps.length);
}

/** Replaces the redacted values in all other texts. */
function redactLeaves(walk: Walk, leaves: readonly TextLeaf[], log: FindingLog): void {
  const find = createSearch(walk.values);
  let changedNames = 0;
  for (const { kind, start, end, steps, value, redacted, isData } of leaves) {
    const { text, count } = find(redacted, isData ? MIN_PART_CHARS : MIN_VALUE_CHARS);
    if (text === value) continue;
    // A name on the way may itself be such a value.
    const shown = steps.map((step) => (find(String(step), MIN_VALUE_CHARS).count > 0 ? '*' : step));
    log.add(shown, { detector: DETECTOR, action: 'redact', count: Math.max(1, count) });
    if (kind === 'name') changedNames++;
    // Two different names in one object must not become equal.
    const written = kind === 'name' && changedNames > 1 ? `${text}#${changedNames}` : text;
    walk.edits.push({ start, end, text: JSON.stringify(written) });
  }
}
