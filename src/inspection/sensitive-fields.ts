// Redacts and tags sensitive fields of results, and keeps those of arguments out of records. Edits the text by spans: the
// places that the pointers name, the same places in data within texts, and every other text of the result in which a
// redacted value occurs. Names and texts are read without what some reader skips. docs/reference/sensitive-fields.md;
// RFC 6901.

import type { CompiledSchema, SchemaError } from '../policy/definitions.js';
import { ANY_STEP, type SensitiveField, type SensitiveFields } from '../policy/information-flow.js';
import type { Finding } from '../policy/record.js';
import type { TextEdit } from '../protocol/admitted-request.js';
import { type DataNode, findData } from '../protocol/json/data-text.js';
import { applyEdits, elementSpans, memberSpans, removalEdits, removalsOf, spanOf } from '../protocol/json/json.js';
import { type Leaf, type WalkCaps, walkJson } from '../protocol/json/walk.js';
import { isObject, type Json, type JsonObject } from '../protocol/jsonrpc.js';
import { foldName, pointerTo, stepsOf } from '../text/json-members.js';
import type { Span } from '../text/span.js';
import {
  decodeEscapes,
  foldText,
  foldView,
  type NormalizedText,
  originalSpan,
  unescapeStretch,
} from './detectors/decoded-text.js';
import { DECODING_DEPTH } from './detectors/text-sanitizer.js';
import {
  isDataOfServer,
  isNameOfServer,
  isStructured,
  memberKindOf,
  nearestName,
  parseContainer,
  valueAt,
} from './exempt-members.js';
import { createFindingLog, type FindingLog } from './findings.js';
import { placeOf } from './message-map.js';
import { type MarkKeys, redactionMark } from './redaction-marks.js';

const DETECTOR = 'sensitive';
/** What records say in place of a value. Only marks in results have a tag. */
const RECORDED = redactionMark(DETECTOR);

/** A member name as it is compared: whatever its case and normal form, and without what some reader skips. */
function foldFieldName(name: string): string {
  return foldName(foldText(name).text.normalize().trim());
}

function isStep(step: string | undefined, name: string | number): boolean {
  return step === ANY_STEP || foldFieldName(step ?? '') === foldFieldName(String(name));
}

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
  /** The mark that replaces values. */
  readonly mark: string;
};

/**
 * Finds a replacement for each field so that the result stays valid. `undefined` if there is none: then the result must
 * be withheld. In steps, because each asks the schema about the whole result, which may be large.
 */
export function* planInSteps(
  message: Json,
  { results: fields, labels }: SensitiveFields,
  output: CompiledSchema | undefined,
  marks?: MarkKeys,
): Generator<void, PlannedFields | undefined> {
  const replacements = fields.map((): Replacement => 'marker');
  const planned = { fields, replacements, labels, mark: redactionMark(DETECTOR, marks) };
  const structured = checkedContent(message);
  if (output === undefined || structured === undefined) return planned;
  const places: Place[] = [];
  const copy = copyWithPlaces(structured, createTree(redactedFrom(fields)), places);
  // Each attempt but the last gives a field its next replacement.
  for (;;) {
    for (const place of places) replaceAt(place, planned);
    const errors = output.check(copy);
    if (errors.length === 0) return planned;
    if (!tryOthers(fields, replacements, errors)) break;
    yield;
  }
  // A result that was invalid before is withheld as such.
  return output.check(structured).length === 0 ? undefined : planned;
}

/** The structured content that has to satisfy an output schema. */
function checkedContent(message: Json): Json | undefined {
  const result = valueAt(message, ['result']);
  return isObject(result) && result['isError'] !== true ? result['structuredContent'] : undefined;
}

/** All steps of a plan at once. */
export function planRedaction(...args: Parameters<typeof planInSteps>): PlannedFields | undefined {
  const steps = planInSteps(...args);
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

/** A place of fields in a copy. */
type Place = {
  readonly holder: Json[] | { [name: string]: Json };
  readonly key: string | number;
  readonly fields: readonly number[];
};

/** A value in which only the places and what holds them are copied. */
function copyWithPlaces(value: Json, tree: FieldTree, places: Place[]): Json {
  const copyMember = (holder: Place['holder'], key: string | number, member: Json): Json => {
    const next = tree.below(key);
    if (next === undefined) return member;
    if (next.ended.length === 0) return copyWithPlaces(member, next, places);
    places.push({ holder, key, fields: next.ended });
    return member;
  };
  if (Array.isArray(value)) {
    const copy: Json[] = [...value];
    for (const [index, item] of copy.entries()) copy[index] = copyMember(copy, index, item);
    return copy;
  }
  if (!isObject(value)) return value;
  const copy: { [name: string]: Json } = { ...value };
  for (const name of Object.keys(copy)) copy[name] = copyMember(copy, name, copy[name] ?? null);
  return copy;
}

function replaceAt({ holder, key, fields }: Place, { replacements, mark }: PlannedFields): void {
  const [first = 0] = fields;
  const isLeftOut = fields.some((field) => replacements[field] === 'nothing');
  const value = replacements[first] === 'marker' ? mark : null;
  if (Array.isArray(holder)) holder[Number(key)] = value;
  else if (isLeftOut) Reflect.deleteProperty(holder, key);
  else holder[key] = value;
}

/** Gives each field that an error is about its next replacement. False if there is none. */
function tryOthers(
  fields: readonly SensitiveField[],
  replacements: Replacement[],
  errors: readonly SchemaError[],
): boolean {
  const pointers = errors.map(({ pointer, missing }) => {
    const steps = stepsOf(pointer);
    return missing === undefined ? steps : [...steps, missing];
  });
  const open = fields.flatMap(({ steps: [root, ...steps], effect }, field) => {
    const next = NEXT[replacements[field] ?? 'nothing'];
    const isOpen = next !== undefined && effect === 'redact' && root === 'structuredContent';
    return isOpen ? [{ field, steps, next }] : [];
  });
  // An error about what holds fields, such as a union, says less than one about a field itself.
  const concerns = (pointer: readonly string[], steps: readonly string[]): boolean =>
    steps.every((step, at) => {
      // A name that the schema does not have is shown as `*`.
      const named = pointer[at] ?? ANY_STEP;
      return named === ANY_STEP || isStep(step, named);
    });
  const isAt = (pointer: readonly string[], steps: readonly string[]): boolean =>
    pointer.length >= steps.length && concerns(pointer, steps);
  const exact = open.filter(({ steps }) => pointers.some((pointer) => isAt(pointer, steps)));
  const around = open.filter(({ steps }) => pointers.some((pointer) => concerns(pointer, steps)));
  const concerned = exact.length > 0 ? exact : around;
  for (const { field, next } of concerned) replacements[field] = next;
  return concerned.length > 0;
}

/** Where the sensitive values of arguments stand: JSON pointers into them. */
export function sensitivePointers(args: Json, hidden: SensitiveFields['arguments']): readonly string[] {
  return pointersIn(args, createTree(hidden.map(({ steps }, field) => ({ field, steps: steps.slice(1) }))), '');
}

function pointersIn(value: Json, tree: FieldTree, pointer: string): readonly string[] {
  if (tree.ended.length > 0) return [pointer];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    const next = tree.below(Array.isArray(value) ? Number(name) : name);
    return next === undefined ? [] : pointersIn(member, next, pointerTo(pointer, name));
  });
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
  const active = hidden.map(({ steps }, field) => ({ field, steps: steps.slice(1) }));
  const tree = createTree(active);
  if (tree.ended.length > 0) return {};
  const places: Place[] = [];
  const copy = copyWithPlaces(args, tree, places);
  for (const { holder, key } of places) {
    collectValues(JSON.stringify(Reflect.get(holder, key)), values);
    Reflect.set(holder, key, RECORDED);
  }
  const find = createSearch(values, RECORDED);
  const hide = (value: Json): Json => {
    if (typeof value === 'string') return find(value, MIN_VALUE_CHARS).text;
    if (Array.isArray(value)) return value.map(hide);
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [find(name, MIN_VALUE_CHARS).text, hide(member)]),
    );
  };
  return hide(copy) as JsonObject;
}

/** Shorter values are not searched for: they would occur by chance. */
const MIN_VALUE_CHARS = 4;
/** Shorter values are found only as whole words of prose: the same short value in another member means something else. */
const MIN_PART_CHARS = 8;

const UNBOUNDED: WalkCaps = { maxDepth: Infinity, maxStrings: Infinity };

/** The texts and numbers of a redacted value, given as JSON, that are searched for in other texts. */
function collectValues(json: string, values: Set<string>): void {
  walkJson(json, UNBOUNDED, ({ kind, value }) => {
    if (kind === 'name') return;
    if (kind === 'number') {
      addValue(value, values);
      // A text may have it as a double is written, and the result 1.50 or more digits than a double has.
      addValue(String(Number(value)), values);
      return;
    }
    addWritings(value, values);
  });
}

/** A text in the forms in which programs write it into other texts: JSON, URLs and HTML, and in each normal form. */
function addWritings(value: string, values: Set<string>): void {
  for (const text of [value, value.normalize('NFC'), value.normalize('NFD')]) {
    const escaped = JSON.stringify(text).slice(1, -1);
    const forHtml = text.replace(/[&<>"']/g, (sign) => HTML_REFERENCES.get(sign) ?? sign);
    for (const writing of [text, escaped, escapeBeyondAscii(escaped), forHtml]) addValue(writing, values);
    const forUrl = encodeURIComponent(text.replace(/\p{Cs}/gu, '\ufffd'));
    addValue(forUrl, values);
    addValue(forUrl.replaceAll('%20', '+'), values);
    addValue(text.replaceAll(' ', '+'), values);
  }
}

/** As most programs write them. */
const HTML_REFERENCES: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
  ["'", '&#39;'],
]);

function addValue(value: string, values: Set<string>): void {
  const { text } = foldText(value);
  if (text.trim().length >= MIN_VALUE_CHARS) values.add(text);
}

/** JSON as Python writes it by default, without characters beyond ASCII. */
function escapeBeyondAscii(text: string): string {
  return text.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Replaces the values that have at least `minChars` characters. */
type Search = (
  text: string,
  minChars: number,
) => { readonly text: string; readonly count: number; readonly edits: readonly TextEdit[] };

/** Characters compared in one result. Values and texts may be chosen so that nearly every comparison fails late. */
const MAX_COMPARED_CHARS = 16 * 1024 * 1024;

class TooLarge extends Error {}

/** Creates the search that replaces all occurrences of the values in a text. Throws beyond its bound. */
function createSearch(values: ReadonlySet<string>, mark: string): Search {
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

  function spansIn(view: NormalizedText, minChars: number, found: Span[]): void {
    for (let at = 0; at <= view.text.length - minChars; ) {
      const length = lengthAt(view.text, at, minChars);
      if (length > 0) found.push(originalSpan(view, at, at + length));
      at += Math.max(1, length);
    }
  }

  /** The spans in a view, and in what its percent triplets and references stand for. */
  function decodedSpansIn(view: NormalizedText, minChars: number, found: Span[]): void {
    spansIn(view, minChars, found);
    let last = view;
    for (let depth = 0; depth < DECODING_DEPTH; depth++) {
      const next = decodeEscapes(last);
      if (next === last) return;
      spansIn(next, minChars, found);
      last = next;
    }
  }

  return (text, minChars) => {
    if (values.size === 0) return { text, count: 0, edits: [] };
    const found: Span[] = [];
    let view = foldText(text);
    decodedSpansIn(view, minChars, found);
    for (let depth = 0; depth < MAX_ESCAPES && view.text.includes('\\'); depth++) {
      view = foldView(unescapeStretch(view, 0, view.text.length));
      decodedSpansIn(view, minChars, found);
    }
    if (found.length === 0) return { text, count: 0, edits: [] };
    const spans = mergeSpans(found);
    const edits = spans.map(({ start, end }) => ({ start, end, text: mark }));
    return { text: applyEdits(text, edits), count: spans.length, edits };
  };
}

/** How many lists may hold one another around structured content. */
const MAX_LISTS = 4;

/** How often a text may have been written into a string of another one. */
const MAX_ESCAPES = 6;

/** Spans in order, those that overlap as one. */
function mergeSpans(spans: readonly Span[]): readonly Span[] {
  const merged: Span[] = [];
  for (const span of [...spans].sort((one, other) => one.start - other.start)) {
    const last = merged.at(-1);
    if (last === undefined || span.start >= last.end) merged.push(span);
    else if (span.end > last.end) merged[merged.length - 1] = { start: last.start, end: span.end };
  }
  return merged;
}

function startKey(text: string, at: number): number {
  return text.charCodeAt(at) * 0x10000 + text.charCodeAt(at + 1);
}

const LETTER_OR_DIGIT = /[\p{L}\p{N}]/u;

function isWord(text: string, start: number, end: number): boolean {
  return !LETTER_OR_DIGIT.test(text.charAt(start - 1)) && !LETTER_OR_DIGIT.test(text.charAt(end));
}

/** A message with its fields redacted, and the pointers of the fields to tag that it has. */
type Redacted = {
  readonly text: string;
  readonly tagged: readonly string[];
  readonly findings: readonly Finding[];
};

/** Fields with the steps that are left below a value. */
type Active = readonly { readonly field: number; readonly steps: readonly string[] }[];

/** Fields by what is below a value. Each part is made once, however many values have it. */
type FieldTree = {
  /** The fields that the value itself is. */
  readonly ended: readonly number[];
  readonly isOpen: boolean;
  /** Undefined if no field leads to this member or index. */
  readonly below: (child: string | number) => FieldTree | undefined;
};

function createTree(active: Active): FieldTree {
  const open = active.filter(({ steps }) => steps.length > 0);
  const names = new Set(open.map(({ steps: [step] }) => foldFieldName(step ?? '')));
  const known = new Map<string, FieldTree | undefined>();
  return {
    ended: active.filter(({ steps }) => steps.length === 0).map(({ field }) => field),
    isOpen: open.length > 0,
    below(child) {
      const folded = foldFieldName(String(child));
      const name = names.has(folded) ? folded : ANY_STEP;
      if (known.has(name)) return known.get(name);
      const next = open.flatMap(({ field, steps: [step, ...steps] }) => (isStep(step, name) ? [{ field, steps }] : []));
      const tree = next.length === 0 ? undefined : createTree(next);
      known.set(name, tree);
      return tree;
    },
  };
}

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

/** The fields in a text that is JSON: structured content, or a list on the way to a field, or an item of it. */
type TextTrees = {
  readonly root: FieldTree;
  readonly list: FieldTree;
  readonly item: FieldTree;
  /** Those that begin with a name, by which one of their members is known where it stands alone. */
  readonly added: FieldTree;
};

/** Redacts the fields of one message. `too-large` beyond a bound. */
export function redactFields(text: string, planned: PlannedFields, caps: WalkCaps): Redacted | 'too-large' {
  const { fields } = planned;
  const counts = fields.map(() => 0);
  const values = new Set<string>();
  const walk: Walk = { planned, text, places: [], edits: [], counts, values };
  const root = spanOf(text, ['result']);
  if (root !== undefined) visit(walk, root, createTree(fields.map(({ steps }, field) => ({ field, steps }))));
  const replaced = new Set(walk.places.map(({ start }) => start));
  visitOthers({ walk, trees: treesOf(fields), replaced }, spanOf(text, []) ?? NOWHERE, []);
  const leaves = readLeaves(walk, caps);
  if (leaves === 'too-large') return leaves;
  const log = createFindingLog('to-client');
  noteFields(fields, counts, log);
  try {
    redactLeaves(walk, leaves, { caps, log });
  } catch (error) {
    if (error instanceof TooLarge) return 'too-large';
    throw error;
  }
  return {
    text: applyEdits(text, sortEdits(walk)),
    tagged: fields.flatMap(({ effect, pointer }, field) => (effect === 'tag' && counts[field] !== 0 ? [pointer] : [])),
    findings: log.list(),
  };
}

const NOWHERE: Span = { start: 0, end: 0 };

type OthersVisit = {
  readonly walk: Walk;
  readonly trees: TextTrees;
  /** Where what is replaced begins. */
  readonly replaced: ReadonlySet<number>;
};

/**
 * Reads as data what a message has beside the members that the protocol defines: the data of errors and log messages,
 * the parts of server requests that are data, what is added in `_meta`, and members that no revision defines.
 */
function visitOthers(others: OthersVisit, span: Span, above: readonly string[]): void {
  const { walk, trees, replaced } = others;
  const { text } = walk;
  if (replaced.has(span.start)) return;
  for (const element of elementSpans(text, span)) visitOthers(others, element, above);
  for (const { name, value } of memberSpans(text, span)) {
    const path = [...above, name];
    switch (memberKindOf(path)) {
      case 'protocol':
        visitOthers(others, value, path);
        break;
      case 'data':
        visitCopy(walk, value, trees);
        break;
      case 'added':
        visitAdded(walk, name, value, trees);
        break;
      case 'form':
        visitForm(walk, value, trees);
        break;
      case 'structured':
      case 'schema':
        break;
    }
  }
}

/** A member that a server added may be one of structured content, hold structured content, or hold what holds it. */
function visitAdded(walk: Walk, name: string, value: Span, trees: TextTrees): void {
  const before = walk.places.length;
  const next = trees.added.below(name);
  if (next !== undefined) visit(walk, value, next);
  if (walk.places.length === before) visitWithin(walk, value, trees);
}

/** Like a copy, which any value in it may be down to some depth. */
function visitWithin(walk: Walk, span: Span, trees: TextTrees, depth = 0): void {
  const { text, places } = walk;
  const isList = text[span.start] === '[';
  if (!isList && text[span.start] !== '{') return;
  const before = places.length;
  visit(walk, span, trees.root);
  if (places.length === before) visit(walk, span, isList ? trees.list : trees.item);
  if (places.length > before || depth >= MAX_LISTS) return;
  for (const { value } of memberSpans(text, span)) visitWithin(walk, value, trees, depth + 1);
  for (const element of elementSpans(text, span)) visitWithin(walk, element, trees, depth + 1);
}

/** Leaves out the values with which a form is filled in. What else it has says what is asked for. */
function visitForm(walk: Walk, span: Span, trees: TextTrees): void {
  const { text, planned, counts, values } = walk;
  const properties = memberSpans(text, span).find(({ name }) => name === 'properties');
  if (properties === undefined) return;
  for (const { name, value } of memberSpans(text, properties.value)) {
    const ended = trees.added.below(name)?.ended ?? [];
    const filled = memberSpans(text, value).find((member) => member.name === 'default');
    if (filled === undefined || !ended.some((field) => planned.fields[field]?.effect === 'redact')) continue;
    for (const field of ended) counts[field] = (counts[field] ?? 0) + 1;
    collectValues(text.slice(filled.value.start, filled.value.end), values);
    walk.places.push({ start: filled.start, end: filled.value.end });
    walk.edits.push(...removalEdits(text, value, (member) => member === 'default'));
  }
}

function sortEdits({ edits }: Walk): readonly TextEdit[] {
  return edits.sort((one, other) => one.start - other.start);
}

function noteFields(fields: readonly SensitiveField[], counts: readonly number[], log: FindingLog): void {
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
function visit(walk: Walk, span: Span, tree: FieldTree): void {
  const { planned, text, counts } = walk;
  for (const field of tree.ended) counts[field] = (counts[field] ?? 0) + 1;
  const redacted = tree.ended.find((field) => planned.fields[field]?.effect === 'redact');
  if (redacted !== undefined) {
    redactPlace(walk, span, redacted);
    return;
  }
  if (!tree.isOpen) return;
  for (const [index, element] of elementSpans(text, span).entries()) {
    const next = tree.below(index);
    if (next !== undefined) visit(walk, element, next);
  }
  visitMembers(walk, span, tree);
}

function visitMembers(walk: Walk, span: Span, tree: FieldTree): void {
  const { planned, text, counts } = walk;
  const leftOut = new Set<string>();
  for (const { name, start, value } of memberSpans(text, span)) {
    const next = tree.below(name);
    const ending = next?.ended.find((field) => leavesOut(planned, field));
    if (ending !== undefined) {
      leftOut.add(name);
      counts[ending] = (counts[ending] ?? 0) + 1;
      collectValues(text.slice(value.start, value.end), walk.values);
      walk.places.push({ start, end: value.end });
    } else if (next !== undefined) visit(walk, value, next);
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
  if (!isContent) collectValues(text.slice(start, end), values);
  const mark = JSON.stringify(planned.mark);
  const marker = isContent && steps.length === 2 ? `{"type":"text","text":${mark}}` : mark;
  const replacement = planned.replacements[field] === 'marker' ? marker : 'null';
  walk.places.push({ start, end });
  walk.edits.push({ start, end, text: replacement });
}

type TextLeaf = Leaf & {
  /** The value with the fields redacted, where it is JSON. */
  readonly redacted: string;
  readonly isJson: boolean;
};

/** Members of content that are not text for a reader: replacing a part of one would make the result invalid. */
const NOT_TEXT: ReadonlySet<string | undefined> = new Set([
  'data',
  'blob',
  'resultType',
  'cacheScope',
  'progressToken',
]);
/** What members of content say that are of the protocol. What they say otherwise is text like any other. */
const OF_THE_PROTOCOL: ReadonlyMap<string | undefined, RegExp> = new Map([
  ['type', /^(?:text|image|audio|resource|resource_link|tool_use|tool_result)$/],
  ['audience', /^(?:user|assistant)$/],
  [
    'mimeType',
    /^(?:text\/(?:plain|html|css|csv|markdown|xml|javascript)|image\/(?:png|jpeg|gif|webp|svg\+xml|bmp|tiff|x-icon)|audio\/(?:wav|mpeg|ogg|webm|mp4|flac)|video\/(?:mp4|mpeg|webm|ogg)|application\/(?:json|xml|pdf|zip|gzip|yaml|javascript|typescript|octet-stream))(?:; ?charset=[a-z0-9-]+)?$/i,
  ],
]);
/** In place of a time, which has to stay one. */
const NO_TIME = '1970-01-01T00:00:00Z';

/** The texts of a result outside the places, with the fields of those that are JSON redacted. */
function readLeaves(walk: Walk, caps: WalkCaps): readonly TextLeaf[] | 'too-large' {
  const leaves: TextLeaf[] = [];
  const trees = treesOf(walk.planned.fields);
  const places = [...walk.places].sort((one, other) => one.start - other.start);
  let next = 0;
  const end = walkJson(walk.text, caps, (leaf) => {
    while ((places[next]?.end ?? leaf.end) <= leaf.start) next++;
    if ((places[next]?.start ?? leaf.end) <= leaf.start || !isSearched(leaf)) return;
    leaves.push(readLeaf(walk, leaf, trees));
  });
  return end === 'too-large' ? end : readJoined(walk, leaves, trees);
}

/** Reads the texts that a host joins as one, since data may begin in one of them and end in another. */
function readJoined(outer: Walk, leaves: readonly TextLeaf[], trees: TextTrees): readonly TextLeaf[] {
  const read = new Map<number, TextLeaf>();
  for (const joined of groupsOf(leaves)) {
    const text = joined.map(({ value }) => value).join('');
    if (joined.length < 2 || !mayHoldField(outer, text)) continue;
    const walk: Walk = { ...outer, counts: [] };
    const edits = findDataEdits(walk, text, trees);
    for (const [field, count] of walk.counts.entries())
      outer.counts[field] = Math.max(outer.counts[field] ?? 0, count ?? 0);
    for (const leaf of readAgain(walk, joined, edits, trees)) read.set(leaf.start, leaf);
  }
  return read.size === 0 ? leaves : leaves.map((leaf) => read.get(leaf.start) ?? leaf);
}

/** The texts that a host joins, group by group. */
function groupsOf(leaves: readonly TextLeaf[]): Iterable<readonly TextLeaf[]> {
  const groups = new Map<string, TextLeaf[]>();
  for (const leaf of leaves) {
    const { role, group } = placeOf(leaf.steps);
    if (leaf.kind !== 'string' || role !== 'reader' || group === undefined) continue;
    const known = groups.get(group);
    if (known === undefined) groups.set(group, [leaf]);
    else known.push(leaf);
  }
  return groups.values();
}

/** The texts that the edits of the joined text change. No value is new in what is found in them behind these. */
function readAgain(
  outer: Walk,
  joined: readonly TextLeaf[],
  edits: readonly TextEdit[],
  trees: TextTrees,
): readonly TextLeaf[] {
  const alone: Walk = { ...outer, counts: [], values: new Set() };
  let end = 0;
  return joined.flatMap((leaf) => {
    const start = end;
    end += leaf.value.length;
    const pieces = piecesWithin(edits, { start, end });
    if (pieces.length === 0) return [];
    return { ...leaf, redacted: redactText(alone, applyEdits(leaf.value, pieces), trees) };
  });
}

/** What edits of a joined text do to one of its texts; the first of them that an edit touches gets its mark. */
function piecesWithin(edits: readonly TextEdit[], { start, end }: Span): readonly TextEdit[] {
  return edits.flatMap((edit) => {
    const isEmpty = edit.start === edit.end;
    if (edit.start >= end || (isEmpty ? edit.start < start : edit.end <= start)) return [];
    return {
      start: Math.max(edit.start, start) - start,
      end: Math.min(edit.end, end) - start,
      text: edit.start >= start ? edit.text : '',
    };
  });
}

function treesOf(fields: readonly SensitiveField[]): TextTrees {
  const roots = redactedFrom(fields);
  const items = redactedFrom(fields, (steps) => beginnings(steps, false));
  return {
    root: createTree(roots),
    list: createTree(redactedFrom(fields, (steps) => beginnings(steps, true))),
    item: createTree(items),
    added: createTree([...roots, ...items].filter(({ steps: [first] }) => first !== ANY_STEP)),
  };
}

function readLeaf(walk: Walk, leaf: Leaf, trees: TextTrees): TextLeaf {
  const { kind, value } = leaf;
  const isJson = kind === 'string' && parseContainer(value) !== undefined;
  const redacted = kind === 'string' ? redactText(walk, value, trees) : value;
  return { ...leaf, steps: [...leaf.steps], redacted, isJson };
}

function isSearched({ kind, steps, value }: Leaf): boolean {
  if (kind === 'number') return isAnnotation(steps);
  if (kind === 'name') return isNameOfServer(steps);
  if (isDataOfServer(steps)) return true;
  const name = nearestName(steps);
  return !NOT_TEXT.has(name) && OF_THE_PROTOCOL.get(name)?.test(value) !== true;
}

/** Whether a path leads into the annotations of content. */
function isAnnotation(steps: Leaf['steps']): boolean {
  return !isStructured(steps) && steps.includes('annotations');
}

/** Redacts the fields of all data in a text. What is valid JSON as a whole stays valid. */
function redactText(outer: Walk, value: string, trees: TextTrees): string {
  if (!mayHoldField(outer, value)) return value;
  const isJson = parseContainer(value) !== undefined;
  return applyEdits(value, findDataEdits(outer, value, trees, isJson));
}

/** Whether a text may hold data with a field: it has an opening bracket and a name, unless that is escaped. */
function mayHoldField({ planned: { fields } }: Walk, value: string): boolean {
  const { text } = foldText(value);
  if (!/[[{]|\\u/.test(text)) return false;
  if (text.includes('\\u')) return true;
  const lower = text.normalize().toLowerCase();
  return fields.some(({ steps, effect }) => {
    const last = steps.at(-1) ?? ANY_STEP;
    return effect === 'redact' && (last === ANY_STEP || lower.includes(foldText(last).text.normalize().toLowerCase()));
  });
}

/** What is done about fields in a text. */
type DataEdit = TextEdit & { readonly fields: readonly number[] };

/** The reading of one text that has data in it, by views of it in which less and less is escaped. */
type DataReading = {
  readonly outer: Walk;
  readonly trees: TextTrees;
  readonly edits: DataEdit[];
  /** The values that were redacted, which nothing is sought in. */
  readonly redacted: Set<DataNode>;
  /** How a quote is written at this place, and how often it is escaped there. */
  readonly quote: string;
  readonly escapes: number;
  /** How many levels of escapes were decoded in the text, or the string of it, as a whole. */
  readonly level: number;
  /**
   * Whether the text is JSON, and all around it: then every list is data, escapes stand in strings alone, and what may
   * repeat structured content is not counted again.
   */
  readonly isJson: boolean;
};

/** The edits that redact the fields of all data in a text, in order and apart. */
function findDataEdits(outer: Walk, text: string, trees: TextTrees, isJson = false): readonly TextEdit[] {
  const edits: DataEdit[] = [];
  const place = { quote: '"', escapes: 0, level: 0, isJson };
  readText({ outer, trees, edits, redacted: new Set(), ...place }, foldText(text));
  const kept: DataEdit[] = [];
  for (const edit of edits.sort((one, other) => one.start - other.start)) {
    const before = kept.at(-1)?.end ?? 0;
    if (edit.end <= before) continue;
    kept.push({ ...edit, start: Math.max(edit.start, before) });
    for (const field of edit.fields) outer.counts[field] = (outer.counts[field] ?? 0) + 1;
  }
  return kept;
}

const QUOTE_IN_HTML = /&(?:quot|apos|#0*3[49]|#x0*2[27]);/i;

function readText(reading: DataReading, view: NormalizedText): void {
  readData(reading, view);
  // Data in HTML, as in an attribute or a listing. In JSON that is in one of the strings, which are read by themselves.
  if (!reading.isJson && QUOTE_IN_HTML.test(view.text)) readData({ ...reading, quote: '&quot;' }, decodeEscapes(view));
}

function readData(reading: DataReading, view: NormalizedText): void {
  for (const node of findData(view.text)) {
    visitOutermost(reading, view, node);
    readStrings(reading, view, node);
  }
  // What is escaped, whole or in part, is read once more without one level of its escapes.
  if (reading.isJson || reading.level >= MAX_ESCAPES || !/\\["'u\\]/.test(view.text)) return;
  const inner = foldView(unescapeStretch(view, 0, view.text.length));
  readData({ ...escaped(reading), level: reading.level + 1 }, inner);
}

function escaped(reading: DataReading): DataReading {
  const quote = JSON.stringify(reading.quote).slice(1, -1);
  return { ...reading, quote, escapes: reading.escapes + 1 };
}

/** Data may be structured content as a whole, or else one of its lists or an item of one. */
function visitOutermost(reading: DataReading, view: NormalizedText, node: DataNode, depth = 0): void {
  const { trees, edits } = reading;
  const before = edits.length;
  const isList = node.kind === 'array';
  visitNode(reading, view, { node, tree: trees.root });
  if (edits.length > before) return;
  if (!isList || reading.isJson || isDataList(view, node)) {
    visitNode(reading, view, { node, tree: isList ? trees.list : trees.item });
  }
  if (!isList || edits.length > before || depth >= MAX_LISTS) return;
  for (const { value } of node.items) visitOutermost(reading, view, value, depth + 1);
}

/** Whether a list in a text is data and no reference, index or mark: it has structure, or only quoted texts. */
function isDataList({ text }: NormalizedText, { start, items }: DataNode): boolean {
  if (/[\w\])]$/.test(text.slice(Math.max(0, start - 1), start))) return false;
  return (
    items.every(({ value: { kind } }) => kind === 'string') ||
    items.some(({ value: { items: inner } }) => inner.length > 0)
  );
}

type NodeVisit = {
  readonly node: DataNode;
  readonly tree: FieldTree;
  readonly name?: DataNode | undefined;
};

function visitNode(reading: DataReading, view: NormalizedText, { node, tree, name }: NodeVisit): void {
  const { planned } = reading.outer;
  const redacted = tree.ended.find((field) => planned.fields[field]?.effect === 'redact');
  if (redacted !== undefined) {
    if (isOfLevel(reading, view, name ?? node)) redactNode(reading, view, { node, tree, name }, redacted);
    return;
  }
  if (tree.isOpen) visitItems(reading, view, node, tree);
}

function visitItems(reading: DataReading, view: NormalizedText, node: DataNode, tree: FieldTree): void {
  const { planned } = reading.outer;
  /** The members that are left out, each with the fields that it is. */
  const leftOut = new Map<number, readonly number[]>();
  for (const [index, { name, value }] of node.items.entries()) {
    const next = tree.below(name === undefined ? index : contentOf(view, name));
    if (next === undefined) continue;
    const isGone = name && next.ended.some((field) => leavesOut(planned, field));
    if (!isGone) visitNode(reading, view, { node: value, tree: next, name });
    else if (isOfLevel(reading, view, name)) leftOut.set(index, next.ended);
  }
  if (leftOut.size > 0) removeItems(reading, view, node, leftOut);
}

/** Leaves members out with the commas that would be left over. */
function removeItems(
  { edits, outer, isJson, redacted }: DataReading,
  view: NormalizedText,
  { items }: DataNode,
  leftOut: ReadonlyMap<number, readonly number[]>,
): void {
  for (const index of leftOut.keys()) {
    const item = items[index];
    if (item === undefined) continue;
    redacted.add(item.value);
    collectNode(view, item.value, outer.values);
  }
  let fields = isJson ? [] : [...leftOut.values()].flat();
  const spans = items.map(({ name, value: { start, end } }) => ({
    start: name?.start ?? start,
    end,
  }));
  for (const { start, end } of removalsOf(spans, (index) => leftOut.has(index))) {
    edits.push({ ...originalSpan(view, start, end), text: '', fields });
    fields = [];
  }
}

/** Whether the quote of a name or text is written with the escapes of this level: others were read before. */
function isOfLevel({ level, escapes }: DataReading, view: NormalizedText, { start, kind }: DataNode): boolean {
  if (level === 0) return true;
  const quote = originalSpan(view, start, start + 1);
  return kind === 'string' && quote.end - quote.start >= 2 ** escapes;
}

/** The content of a string, decoded. */
function contentOf(view: NormalizedText, node: DataNode): string {
  const { start, end } = contentSpan(view, node);
  return view.text.slice(start, end).includes('\\')
    ? unescapeStretch(view, start, end).text
    : view.text.slice(start, end);
}

/** The span within the quotes of a string, or of a name without quotes. */
function contentSpan({ text }: NormalizedText, { kind, start, end }: DataNode): Span {
  if (kind !== 'string') return { start, end };
  const isClosed = end - start > 1 && text[end - 1] === text[start];
  return { start: start + 1, end: isClosed ? end - 1 : end };
}

function redactNode(
  { edits, quote, outer, isJson, redacted }: DataReading,
  view: NormalizedText,
  { node, tree, name }: NodeVisit,
  field: number,
): void {
  const { mark, replacements } = outer.planned;
  redacted.add(node);
  const fields = isJson ? [] : tree.ended;
  collectNode(view, node, outer.values);
  // Outside JSON nothing demands that an item of a list be valid.
  const isMarked = replacements[field] === 'marker' || (name === undefined && !isJson);
  if (isMarked && node.kind === 'string') {
    edits.push({ ...originalContent(view, node), text: mark, fields });
    return;
  }
  const text = isMarked ? `${quote}${mark}${quote}` : 'null';
  edits.push({ ...originalSpan(view, node.start, node.end), text, fields });
}

/** What stands between the quotes of a string, with what some reader skips at its ends. */
function originalContent(view: NormalizedText, node: DataNode): Span {
  const { start, end } = contentSpan(view, node);
  const inner = originalSpan(view, node.start, start).end;
  const outer = originalSpan(view, end, node.end);
  return { start: inner, end: end < node.end ? outer.start : outer.end };
}

/** The texts and numbers of a redacted value, which are searched for in other texts. */
function collectNode(view: NormalizedText, node: DataNode, values: Set<string>): void {
  for (const { kind, start, end } of leavesOf(node)) {
    const text = view.text.slice(start, end);
    if (kind === 'string') addWritings(contentOf(view, { kind, start, end, items: [] }), values);
    else if (/\d/.test(text)) {
      addValue(text, values);
      addValue(String(Number(text)), values);
    }
  }
}

/** The strings and scalars of data but those in some values, in order. Without recursion: a text may nest without end. */
function leavesOf(node: DataNode, but?: ReadonlySet<DataNode>): readonly DataNode[] {
  const leaves: DataNode[] = [];
  const open = [node];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    if (but?.has(one)) continue;
    if (one.kind === 'string' || one.kind === 'scalar') leaves.push(one);
    for (let at = one.items.length - 1; at >= 0; at--) {
      const item = one.items[at];
      if (item !== undefined) open.push(item.value);
    }
  }
  return leaves;
}

/**
 * Reads the strings of data as texts of their own, each at the level at which its quotes are written. Those with escapes
 * are read once, where no escapes around them were decoded.
 */
function readStrings(reading: DataReading, view: NormalizedText, node: DataNode): void {
  for (const leaf of leavesOf(node, reading.redacted)) {
    if (leaf.kind !== 'string') continue;
    const { start, end } = contentSpan(view, leaf);
    const content = view.text.slice(start, end);
    if (!/[[{]|\\u/.test(content) || (reading.level > 0 && content.includes('\\'))) continue;
    if (!isOfLevel(reading, view, leaf)) continue;
    const inner = foldView(unescapeStretch(view, start, end));
    const isJson = reading.isJson && parseContainer(inner.text) !== undefined;
    const within = view.text[leaf.start] === '"' ? escaped(reading) : reading;
    readText({ ...within, level: 0, isJson }, inner);
  }
}

/** Redacts in what may repeat structured content: as a whole, or else as one of its lists or an item of one. */
function visitCopy(walk: Walk, span: Span, trees: TextTrees, depth = 0): void {
  const before = walk.places.length;
  visit(walk, span, trees.root);
  if (walk.places.length > before) return;
  const isList = walk.text[span.start] === '[';
  visit(walk, span, isList ? trees.list : trees.item);
  if (!isList || walk.places.length > before || depth >= MAX_LISTS) return;
  // Servers also write several structured contents as one list.
  for (const element of elementSpans(walk.text, span)) visitCopy(walk, element, trees, depth + 1);
}

/** The fields of structured content that are redacted, with all of their steps or those from given positions on. */
function redactedFrom(
  fields: readonly SensitiveField[],
  startsOf: (steps: readonly string[]) => readonly number[] = () => [0],
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

/** The texts without the values that begin in one of them and end in another, where a host joins them. */
function withoutSplitValues(leaves: readonly TextLeaf[], find: Search): readonly TextLeaf[] {
  const left = new Map<number, TextLeaf>();
  for (const joined of groupsOf(leaves)) {
    if (joined.length < 2) continue;
    const text = joined.map(({ redacted }) => redacted).join('');
    const { edits } = find(text, MIN_PART_CHARS);
    let end = 0;
    const spans = joined.map(({ redacted }): Span => {
      const start = end;
      end += redacted.length;
      return { start, end };
    });
    const split = edits.filter((edit) => spans.some((span) => edit.start < span.end && span.end < edit.end));
    for (const [index, leaf] of joined.entries()) {
      const pieces = piecesWithin(split, spans[index] ?? NOWHERE);
      if (pieces.length > 0) left.set(leaf.start, { ...leaf, redacted: applyEdits(leaf.redacted, pieces) });
    }
  }
  return left.size === 0 ? leaves : leaves.map((leaf) => left.get(leaf.start) ?? leaf);
}

/** Replaces the redacted values in all other texts. */
function redactLeaves(
  walk: Walk,
  leaves: readonly TextLeaf[],
  { caps, log }: { readonly caps: WalkCaps; readonly log: FindingLog },
): void {
  const find = createSearch(walk.values, walk.planned.mark);
  let changedNames = 0;
  for (const leaf of withoutSplitValues(leaves, find)) {
    const { kind, start, end, steps, value, redacted, isJson } = leaf;
    const minChars = isStructured(steps) ? MIN_PART_CHARS : MIN_VALUE_CHARS;
    const { text, count } = isJson ? searchJson(redacted, find, caps) : find(redacted, minChars);
    if (text === value) continue;
    // A name on the way may itself be such a value.
    const shown = steps.map((step) => (find(String(step), MIN_VALUE_CHARS).count > 0 ? '*' : step));
    log.add(shown, { detector: DETECTOR, action: 'redact', count: Math.max(1, count) });
    if (kind === 'name') changedNames++;
    // Two different names in one object must not become equal.
    const written = kind === 'name' && changedNames > 1 ? `${text}#${changedNames}` : text;
    walk.edits.push({ start, end, text: writtenAt(kind, steps, written) });
  }
}

/** A text in JSON as it may stand there. Annotations have a number and a time of their own. */
function writtenAt(kind: Leaf['kind'], steps: Leaf['steps'], text: string): string {
  if (kind === 'number') return '0';
  return JSON.stringify(nearestName(steps) === 'lastModified' && isAnnotation(steps) ? NO_TIME : text);
}

/** The search in a text that is JSON, whose writer may have escaped any character in any way. */
function searchJson(json: string, find: Search, caps: WalkCaps): ReturnType<Search> {
  const edits: TextEdit[] = [];
  let found = 0;
  const outcome = walkJson(json, caps, ({ start, end, value }) => {
    const { text, count } = find(value, MIN_PART_CHARS);
    if (count > 0) edits.push({ start, end, text: JSON.stringify(text) });
    found += count;
  });
  if (outcome === 'too-large') throw new TooLarge();
  return { text: applyEdits(json, edits), count: found, edits };
}
