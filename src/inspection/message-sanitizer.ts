// Sanitizes a message towards the client: looks at every string, member name and number, and returns edits of the text.
// What no edit covers stays untouched. JSON inside a text is treated like the structured content that it may repeat, so
// that both copies agree.

import type { TextEdit } from '../protocol/admitted-request.js';
import { applyEdits } from '../protocol/json/json.js';
import { type Leaf, valueEnd, type WalkCaps, walkJson } from '../protocol/json/walk.js';
import { isObject, type Json, type JsonObject } from '../protocol/jsonrpc.js';
import { groupBy } from '../text/grouping.js';
import { pointerOf } from '../text/json-members.js';
import { checkBytes, type Payload, readableParts, readPayload } from './binary-content.js';
import { findActiveContent } from './detectors/active-content.js';
import { findMarkdownCode } from './detectors/markdown-code.js';
import { isInertSvg, neutralizeSvg } from './detectors/svg.js';
import { scriptSchemeColon } from './detectors/targets.js';
import {
  actionFor,
  detectorOf,
  findSensitive,
  formedKindsOf,
  type NoteFinding,
  numberKind,
  type ResultRules,
  redactText,
  type SanitizeText,
  type WantedKinds,
  wantedKindsOf,
} from './detectors/text-sanitizer.js';
import { findSentCredentials } from './detectors/upstream-credentials.js';
import { isProtocolPlace, isReserved, nearestName, parseContainer, valueAt } from './exempt-members.js';
import type { FindingLog } from './findings.js';
import { areOdd, ICONS, withoutOddIcons } from './icons.js';
import { cutText, editJsonText, findSplit, neutralizeJoined, type SplitHit } from './joined-text.js';
import { findSplitInLists } from './listed-texts.js';
import { ADDRESSES, isStructure, ordersOf, type Place, placeOf } from './message-map.js';
import { redactionMark } from './redaction-marks.js';
import { canShowSource, type ShownSources, sourceEdits, sourceText, svgIn } from './svg-images.js';

type PassInput = {
  readonly text: string;
  readonly value: Json;
  readonly rules: ResultRules;
  readonly caps: WalkCaps & { readonly maxWork: number };
  readonly log: FindingLog;
  readonly sanitize: SanitizeText;
  /** Members of the message that were reviewed byte for byte, such as `/result/tools`. */
  readonly approved: ReadonlySet<string>;
  /** Members that are not content (exempt-members.ts). */
  readonly exempt: ReadonlySet<string>;
  /** The end of the text sent before in response to the same request. */
  readonly tail: string;
};

export type Pass = {
  readonly kind: 'passed';
  readonly edits: readonly TextEdit[];
  readonly isBlocked: boolean;
  /** The original texts that a reader joins: the rest of a removed secret may follow in the next message. */
  readonly readerTexts: readonly string[];
};

type Steps = readonly (string | number)[];
type TextLeaf = {
  readonly start: number;
  readonly end: number;
  readonly steps: Steps;
  text: string;
  readonly original: string;
};

type TextGroup = { readonly isReader: boolean; readonly parts: TextLeaf[] };

type PassState = {
  readonly input: PassInput & {
    /** The whole message, where `value` is that of a text. */
    readonly message: Json;
  };
  /** The path of the text whose JSON is being walked, or undefined while the message itself is walked. */
  readonly within: Steps | undefined;
  readonly edits: Map<number, TextEdit>;
  /** The texts that are joined, by their groups (message-map.ts). */
  readonly groups: Map<string, TextGroup>;
  /** The original texts that a later message may continue. */
  readonly continued: string[];
  /** What is shown in place of images that would act. */
  readonly sources: ShownSources;
  isBlocked: boolean;
  changedNames: number;
  /** Everything before this offset is already removed and is skipped. */
  removedUntil: number;
  /** The last removal of reserved members. Members next to each other are removed as one. */
  reserved: TextEdit | undefined;
  /** Characters given to detectors so far, shared with the walks of nested texts. */
  readonly budgetUsed: { chars: number };
};

const MAX_PAIR_CHARS = 512;

/** Sanitizes a message. Returns `too-large` where the walk exceeds a bound. */
export function sanitizeMessage(input: PassInput): Pass | { readonly kind: 'too-large' } {
  const state = createPassState({ ...input, message: input.value }, undefined, { chars: 0 });
  const end = walkJson(input.text, input.caps, (leaf) => visitValue(state, leaf));
  if (end === 'too-large' || state.budgetUsed.chars > input.caps.maxWork) return { kind: 'too-large' };
  for (const [group, { isReader, parts }] of state.groups) {
    for (const read of ordersOf(group, parts))
      removeSplitSecrets(state, read, isReader ? input.tail : '', isStructure(group));
    if (isReader) neutralizeJoinedTexts(state, parts);
  }
  const { edits, removed } = sourceEdits(input.text, input.caps, state.sources);
  for (const start of removed) state.edits.delete(start);
  for (const edit of edits) state.edits.set(edit.start, edit);
  return {
    kind: 'passed',
    edits: sortEdits(state.edits),
    isBlocked: state.isBlocked,
    readerTexts: state.continued,
  };
}

function createPassState(
  input: PassState['input'],
  within: Steps | undefined,
  budgetUsed: { chars: number },
): PassState {
  return {
    input,
    within,
    edits: new Map(),
    groups: new Map(),
    continued: [],
    sources: new Map(),
    isBlocked: false,
    changedNames: 0,
    removedUntil: 0,
    reserved: undefined,
    budgetUsed,
  };
}

function visitValue(state: PassState, leaf: Leaf): void {
  const { steps } = leaf;
  if (leaf.start < state.removedUntil) return;
  const isMessage = state.within === undefined;
  // Approved content is no exception: only the gateway writes these members.
  if (isMessage && leaf.kind === 'name' && isReserved(steps)) removeReserved(state, leaf);
  else if (isMessage && (isExempt(state, steps) || isApproved(state, steps))) {
    if (leaf.kind === 'string' && steps.length > 1) visitExempt(state, leaf);
  } else visitContent(state, leaf);
}

function visitContent(state: PassState, leaf: Leaf): void {
  if (leaf.kind === 'name' && hasOddIcons(state, leaf)) removeIcons(state, leaf);
  else if (leaf.kind === 'name') visitName(state, leaf);
  else if (leaf.kind === 'number') visitNumber(state, leaf);
  else visitString(state, leaf);
}

const MAX_EXEMPT_DEPTH = 2;

function isExempt(state: PassState, steps: Steps): boolean {
  return steps.length <= MAX_EXEMPT_DEPTH && state.input.exempt.has(pointerOf(steps));
}

/** The gateway's own credentials must not leave anywhere, not even in members exempt from all other detectors. */
function visitExempt(state: PassState, leaf: Leaf): void {
  const text = redactOwnCredentials(state, leaf.value, leaf.steps);
  if (text !== leaf.value) addEdit(state, leaf.start, leaf.end, JSON.stringify(text));
}

function redactOwnCredentials(state: PassState, text: string, steps: Steps): string {
  const { own } = state.input.rules;
  if (own === undefined) return text;
  let kept = text;
  for (const hit of [...findSensitive(text, { secrets: false, pii: [], own })].reverse()) {
    const action = actionFor(hit, state.input.rules);
    addNote(state, steps, { detector: detectorOf(hit.kind), action, count: 1 });
    kept = kept.slice(0, hit.start) + redactionMark(hit.kind, state.input.rules.marks) + kept.slice(hit.end);
  }
  return kept;
}

function isApproved(state: PassState, steps: Steps): boolean {
  const { approved } = state.input;
  return approved.size > 0 && steps.length >= 2 && approved.has(`/${steps[0]}/${steps[1]}`);
}

function visitName(state: PassState, leaf: Leaf): void {
  const text = sanitizeLeaf(state, leaf.value, leaf.steps, undefined, 'value');
  if (text === leaf.value) return;
  // Two different names in one object must not become equal.
  state.changedNames++;
  const name = state.changedNames === 1 ? text : `${text}#${state.changedNames}`;
  addEdit(state, leaf.start, leaf.end, JSON.stringify(name));
}

function hasOddIcons({ within, input }: PassState, { value, steps }: Leaf): boolean {
  if (value !== ICONS || within !== undefined || !isProtocolPlace(steps)) return false;
  const icons = valueAt(input.value, steps);
  return icons !== undefined && areOdd(icons);
}

/** Keeps the member even where no icon is left, so that clients that expect it do not fail. */
function removeIcons(state: PassState, leaf: Leaf): void {
  const { text } = state.input;
  const end = valueEnd(text, leaf.end);
  const left = withoutOddIcons(text.slice(text.indexOf(':', leaf.end) + 1, end));
  addEdit(state, leaf.end, end, `:${left.text}`);
  state.removedUntil = end;
  addNote(state, leaf.steps, { detector: 'remote-icons', action: 'drop', count: left.dropped });
}

/** Removes a member under the gateway's own prefix, with the comma that would be left over. */
function removeReserved(state: PassState, leaf: Leaf): void {
  const { text } = state.input;
  const { reserved } = state;
  const end = valueEnd(text, leaf.end);
  const isNext = reserved !== undefined && reserved.end === lastBefore(text, leaf.start) + 1;
  let start = isNext ? reserved.start : leaf.start;
  if (isNext) state.edits.delete(start);
  const isLast = text[end] !== ',';
  const before = lastBefore(text, start);
  if (isLast && text[before] === ',') start = before;
  state.reserved = { start, end: isLast ? end : end + 1, text: '' };
  state.edits.set(start, state.reserved);
  state.removedUntil = end;
  const holder = leaf.steps.slice(0, -1);
  state.input.log.add(holder, { detector: 'reserved-meta', action: 'drop', count: 1 });
}

/** The position of the last character before `at` that is not white space. */
function lastBefore(text: string, at: number): number {
  let before = at - 1;
  while (text.charCodeAt(before) <= 0x20) before--;
  return before;
}

function visitNumber(state: PassState, leaf: Leaf): void {
  const kind = numberKind(leaf.value, nearestName(leaf.steps), wantedKindsOf(state.input.rules));
  if (kind === undefined) return;
  const action = actionFor({ kind, start: 0, end: 0 }, state.input.rules);
  addNote(state, leaf.steps, { detector: detectorOf(kind), action, count: 1 });
  if (action === 'redact')
    addEdit(state, leaf.start, leaf.end, JSON.stringify(redactionMark(kind, state.input.rules.marks)));
}

function visitString(state: PassState, leaf: Leaf): void {
  const { start, end, value } = leaf;
  const isMessage = state.within === undefined;
  const encoded = isMessage ? (visitSvgText(state, leaf) ?? visitPayload(state, leaf)) : undefined;
  const { role, group, isContinued } = isMessage ? placeOf(leaf.steps) : IN_JSON;
  // Where a text that a client shows is JSON, its strings are inspected like structured content.
  const clean = encoded ?? sanitizeValue(state, leaf, role === 'reader' ? 'markdown' : 'value');
  const text = isMessage ? breakScriptAddress(state, leaf, clean) : clean;
  if (isContinued) state.continued.push(value);
  if (group !== undefined) {
    const part = { start, end, steps: [...leaf.steps], text, original: value };
    const known = state.groups.get(group);
    if (known === undefined) state.groups.set(group, { isReader: role === 'reader', parts: [part] });
    else known.parts.push(part);
  }
  if (text !== value) addEdit(state, start, end, JSON.stringify(text));
}

/** Puts the colon of a script in brackets where a host may make a link of it. */
function breakScriptAddress(state: PassState, { steps }: Leaf, text: string): string {
  const { activeContent } = state.input.rules;
  if (activeContent === 'off' || !ADDRESSES.has(steps.at(-1)) || !isProtocolPlace(steps)) return text;
  const colon = scriptSchemeColon(text);
  if (colon === undefined) return text;
  addNote(state, steps, { detector: 'active:link', action: ACTIVE_ACTIONS[activeContent], count: 1 });
  return activeContent === 'neutralize' ? `${text.slice(0, colon.start)}[:]${text.slice(colon.end)}` : text;
}

/** The strings of a text that is JSON: data, which is joined in order. */
const IN_JSON: Place = { role: 'value', group: 'json', isContinued: false };

/** Inspects a string alone and after its name: a secret may be split between them. */
function sanitizeValue(state: PassState, leaf: Leaf, reading: 'markdown' | 'value' = 'value'): string {
  const name = nearestName(leaf.steps);
  const text =
    reading === 'markdown'
      ? sanitizeProse(state, leaf.value, leaf.steps, name)
      : sanitizeLeaf(state, leaf.value, leaf.steps, name, 'value');
  if (name === undefined || text.length > MAX_PAIR_CHARS) return text;
  // The protocol calls it so, whatever the text is.
  if (state.within === undefined && placeOf(leaf.steps).isContinued) return text;
  const wanted = wantedKindsOf(state.input.rules);
  // No program splits personal data between a name and its value; a name before it may make a number of a text one.
  for (const splitHit of findSplit([name, text], { ...wanted, pii: [] })) {
    if (splitHit.part !== 1) continue;
    const action = actionFor(splitHit, state.input.rules);
    addNote(state, leaf.steps, { detector: detectorOf(splitHit.kind), action, count: 1 });
    if (action === 'redact') return redactionMark(splitHit.kind, state.input.rules.marks);
  }
  return text;
}

function sanitizeProse(state: PassState, written: string, steps: Steps, name?: string): string {
  const parsed = parseContainer(written);
  if (parsed === undefined) return sanitizeLeaf(state, written, steps, name, 'markdown');
  const isCopy = isStructuredCopy(state, parsed);
  const text = isCopy ? written : redactLists(state, written, steps);
  const value = text === written ? parsed : parseContainer(text);
  // Data that only some readers see may lie across the strings of what is JSON.
  if (value === undefined) return sanitizeLeaf(state, text, steps, name, 'markdown');
  const inner = createPassState({ ...state.input, text, value }, state.within ?? [...steps], state.budgetUsed);
  if (walkJson(text, state.input.caps, (leaf) => visitValue(inner, leaf)) === 'too-large') {
    state.isBlocked = true;
  }
  // Strings of data are not joined by those who show the data, but a copy of structured content is read like it.
  if (isCopy) {
    for (const { parts } of inner.groups.values()) removeSplitSecrets(inner, parts, '', true);
  }
  state.isBlocked ||= inner.isBlocked;
  return neutralizeJson(state, applyEdits(text, sortEdits(inner.edits)), steps);
}

function isStructuredCopy({ input }: PassState, copy: Json): boolean {
  const structured = valueAt(input.message, ['result', 'structuredContent']);
  return structured !== undefined && JSON.stringify(structured) === JSON.stringify(copy);
}

/** Makes content inert that acts where a client shows the JSON itself, such as a tag that begins in one string. */
function neutralizeJson(state: PassState, text: string, steps: Steps): string {
  const { activeContent } = state.input.rules;
  if (activeContent === 'off') return text;
  const { found } = findActiveContent(text, []);
  const action = ACTIVE_ACTIONS[activeContent];
  for (const { kind } of found) addNote(state, steps, { detector: `active:${kind}`, action, count: 1 });
  return activeContent === 'neutralize' ? editJsonText(text, found) : text;
}

const ACTIVE_ACTIONS = { neutralize: 'neutralize', flag: 'flag', block: 'withhold' } as const;

/** A base64 payload as it may leave: media unchanged, everything else sanitized as the text that it encodes. */
function visitPayload(state: PassState, leaf: Leaf): string | undefined {
  const member = leaf.steps.at(-1);
  if (member !== 'data' && member !== 'blob') return undefined;
  const block = valueAt(state.input.value, leaf.steps.slice(0, -1));
  const payload = isObject(block) ? readPayload(block, member, leaf.value) : undefined;
  if (!isObject(block) || payload === undefined) return undefined;
  if (payload.kind === 'media') return replaceOwnCredentials(state, leaf);
  const svg = activeSvg(state, leaf, block, payload);
  // The block shows the text in place of the image.
  if (showSource(state, leaf, block, svg) !== undefined) return leaf.value;
  const inert = svg === undefined ? undefined : neutralizeSvg(svg);
  const written = rewritePayload(state, leaf, payload, inert);
  const left = written === leaf.value ? payload : readPayload(block, member, written);
  if (left !== undefined && left.kind !== 'media') withholdOtherReadings(state, leaf, left.others);
  const clean = isRunOfBase64(payload, written) ? written : sanitizeValue(state, { ...leaf, value: written });
  return replaceOwnCredentials(state, { ...leaf, value: clean });
}

/** A word or a token may be valid base64: a client that does not decode it sees the string as it is. */
function isRunOfBase64({ kind }: Payload, written: string): boolean {
  return kind !== 'none' && written.length > MAX_TOKEN_CHARS && !/\s/.test(written);
}

/** A text that is declared as an SVG image, as what is shown in its place; undefined for every other string. */
function visitSvgText(state: PassState, leaf: Leaf): string | undefined {
  if (leaf.steps.at(-1) !== 'text') return undefined;
  const block = valueAt(state.input.value, leaf.steps.slice(0, -1));
  if (!isObject(block)) return undefined;
  const svg = activeSvg(state, leaf, block, undefined);
  return showSource(state, leaf, block, svg);
}

/** The SVG image in a string of a block, if it acts and the rules change it. */
function activeSvg(
  state: PassState,
  { steps, value }: Leaf,
  block: JsonObject,
  payload: Payload | undefined,
): string | undefined {
  const { activeContent } = state.input.rules;
  const svg = svgIn(block, String(steps.at(-1)), value, payload);
  if (svg === undefined || activeContent === 'off') return undefined;
  state.budgetUsed.chars += svg.length;
  if (state.budgetUsed.chars > state.input.caps.maxWork || isInertSvg(svg)) return undefined;
  addNote(state, steps, {
    detector: 'active:svg',
    action: ACTIVE_ACTIONS[activeContent],
    count: 1,
  });
  return activeContent === 'neutralize' ? svg : undefined;
}

/** Lets a block show the source of its image as a text, where the protocol has one at this place. */
function showSource(state: PassState, { steps }: Leaf, block: JsonObject, svg: string | undefined): string | undefined {
  const holder = steps.slice(0, -1);
  const member = String(steps.at(-1));
  if (svg === undefined || !isProtocolPlace(holder) || !canShowSource(block, member)) return undefined;
  const text = sanitizeProse(state, sourceText(svg), [...steps]);
  state.sources.set(pointerOf(holder), { block, text });
  return text;
}

/** No secret of only base64 characters is longer than this. */
const MAX_TOKEN_CHARS = 1024;

type ReadablePayload = Exclude<Payload, { readonly kind: 'media' }>;

function rewritePayload(state: PassState, leaf: Leaf, payload: ReadablePayload, inert: string | undefined): string {
  if (payload.kind === 'none') return inert ?? leaf.value;
  const text = inert ?? payload.reading.text;
  const isPassable = payload.kind === 'bytes' && inert === undefined;
  if (isPassable && !containsForbiddenContent(state, leaf.steps, text)) return leaf.value;
  const sanitizedText = sanitizeProse(state, text, leaf.steps);
  if (sanitizedText === payload.reading.text) return leaf.value;
  const written = payload.rewrite(sanitizedText);
  if (written === undefined) addNote(state, leaf.steps, UNENCODABLE);
  return written ?? leaf.value;
}

// Replaces bytes that are not read as text where they hold a credential of the gateway. An image with a
// credential in it cannot be repaired.
function replaceOwnCredentials(state: PassState, { value, steps }: Leaf): string {
  const [hit] = findSentCredentials(value, state.input.rules.own);
  if (hit === undefined) return value;
  const action = actionFor(hit, state.input.rules);
  addNote(state, steps, { detector: detectorOf(hit.kind), action, count: 1 });
  return redactionMark(hit.kind, state.input.rules.marks);
}

const UNENCODABLE = { detector: 'encoding', action: 'withhold', count: 1 } as const;

// Whether bytes that are hardly text hold something that must not pass. Flags are recorded and change nothing.
function containsForbiddenContent(state: PassState, steps: Steps, text: string): boolean {
  const notes = detectInBytes(state, text);
  if (notes.some(({ action }) => action !== 'flag')) return true;
  for (const one of notes) addNote(state, steps, one);
  return false;
}

// Withholds what only some clients would decode and is forbidden: it cannot be edited for those clients alone.
function withholdOtherReadings(state: PassState, leaf: Leaf, others: readonly string[]): void {
  for (const text of others) {
    for (const one of detectInBytes(state, text)) {
      if (one.action !== 'flag') addNote(state, leaf.steps, { ...one, action: 'withhold' });
    }
  }
}

function detectInBytes(state: PassState, text: string): readonly NoteFinding[] {
  const { rules, caps } = state.input;
  const parts = readableParts(text);
  for (const { length } of parts) state.budgetUsed.chars += length;
  return state.budgetUsed.chars > caps.maxWork ? NO_NOTES : checkBytes(parts, rules);
}

const NO_NOTES: readonly NoteFinding[] = [];

function sanitizeLeaf(
  state: PassState,
  text: string,
  steps: Steps,
  name: string | undefined,
  reading: 'markdown' | 'value',
): string {
  const { rules, sanitize, caps } = state.input;
  state.budgetUsed.chars += text.length;
  if (state.budgetUsed.chars > caps.maxWork) return text;
  const sanitized = sanitize(redactLists(state, text, steps), rules, { name, reading });
  for (const one of sanitized.notes) addNote(state, steps, one);
  return sanitized.text;
}

/** Redacts what is split over the strings of a list in a text. */
function redactLists(state: PassState, text: string, steps: Steps): string {
  const { rules } = state.input;
  const edits: TextEdit[] = [];
  for (const hit of findSplitInLists(text, wantedKindsOf(rules))) {
    const action = actionFor(hit, rules);
    addNote(state, steps, { detector: detectorOf(hit.kind), action, count: 1 });
    if (action !== 'redact') continue;
    edits.push({ start: hit.start, end: hit.end, text: redactionMark(hit.kind, rules.marks) });
  }
  return edits.length === 0 ? text : applyEdits(text, edits);
}

function addNote(state: PassState, steps: Steps, one: Parameters<FindingLog['add']>[1]): void {
  state.input.log.add(state.within ?? steps, one);
  if (one.action === 'withhold') state.isBlocked = true;
}

function addEdit(state: PassState, start: number, end: number, text: string): void {
  state.edits.set(start, { start, end, text });
}

// Removes from each text the piece of a secret that continues in a neighbouring text. Compares the original
// texts, because the other piece may already have been removed.
function removeContinuedSecrets(state: PassState, parts: readonly TextLeaf[], tail: string, wanted: WantedKinds): void {
  const before = tail === '' ? [] : [tail];
  const originals = parts.map((part) => part.original);
  for (const hit of findSplit([...before, ...originals], wanted)) {
    const part = parts[hit.part - before.length];
    const action = actionFor(hit, state.input.rules);
    if (part === undefined || action === 'flag') continue;
    const text = withoutStretch(part, hit, redactionMark(hit.kind, state.input.rules.marks));
    if (text === part.text) continue;
    addNote(state, part.steps, { detector: detectorOf(hit.kind), action, count: 1 });
    if (action !== 'redact') continue;
    part.text = redactAgain(state, part, text);
    addEdit(state, part.start, part.end, JSON.stringify(part.text));
  }
}

/** What stood beside a removed piece may be complete without it. */
function redactAgain(state: PassState, part: TextLeaf, text: string): string {
  if (text === part.text) return text;
  const { steps } = part;
  const notes: NoteFinding[] = [];
  const kept = redactText(text, state.input.rules, notes, nearestName(steps));
  for (const one of notes) if (one.action !== 'flag') addNote(state, steps, one);
  return kept;
}

/** The text of a part without the given stretch of its original, as far as that is still there. */
function withoutStretch({ text, original }: TextLeaf, { start, end }: SplitHit, replacement: string): string {
  if (text === original) return text.slice(0, start) + replacement + text.slice(end);
  if (start === 0) {
    const same = Math.min(end, commonStart(text, original));
    return same === 0 ? text : replacement + text.slice(same);
  }
  if (end < original.length) return text;
  const same = Math.min(original.length - start, commonEnd(text, original));
  return same === 0 ? text : text.slice(0, text.length - same) + replacement;
}

function commonStart(one: string, other: string): number {
  let at = 0;
  while (at < one.length && at < other.length && one[at] === other[at]) at++;
  return at;
}

function commonEnd(one: string, other: string): number {
  let at = 0;
  while (at < one.length && at < other.length && one.at(-1 - at) === other.at(-1 - at)) at++;
  return at;
}

/**
 * Removes secrets that are split by the boundaries between texts. Nobody shows the values of a structure as one text:
 * two numbers of it that stand beside each other are no card, although a secret may be put together from its pieces.
 */
function removeSplitSecrets(state: PassState, parts: readonly TextLeaf[], tail: string, areValues = false): void {
  const all = wantedKindsOf(state.input.rules);
  const wanted = areValues ? formedKindsOf(all) : all;
  removeContinuedSecrets(state, parts, tail, wanted);
  const offset = tail === '' ? 0 : 1;
  const texts = parts.map((part) => part.text);
  const hits = findSplit(offset === 0 ? texts : [tail, ...texts], wanted);
  const byPart = groupBy(hits, ({ part }) => part);
  for (const [index, part] of parts.entries()) {
    const splitHits = byPart.get(index + offset) ?? [];
    if (splitHits.length === 0) continue;
    for (const splitHit of splitHits) {
      const action = actionFor(splitHit, state.input.rules);
      addNote(state, part.steps, { detector: detectorOf(splitHit.kind), action, count: 1 });
    }
    const removed = splitHits.filter((splitHit) => actionFor(splitHit, state.input.rules) === 'redact');
    const { marks } = state.input.rules;
    const cut = cutText(part.text, removed, (kind) => redactionMark(kind, marks));
    part.text = redactAgain(state, part, cut);
    if (part.text !== part.original) addEdit(state, part.start, part.end, JSON.stringify(part.text));
  }
}

/** Makes content inert that only acts where a client shows the texts as one. */
function neutralizeJoinedTexts(state: PassState, parts: readonly TextLeaf[]): void {
  const { activeContent, kind } = state.input.rules;
  if (activeContent === 'off' || parts.length < 2) return;
  const joined = neutralizeJoined(
    parts.map((part) => part.text),
    kind === 'markup' ? () => [] : findMarkdownCode,
  );
  if (joined === undefined) {
    state.isBlocked = true;
    return;
  }
  for (const [index, part] of parts.entries()) {
    const text = joined[index];
    if (text === undefined || text === part.text) continue;
    addNote(state, part.steps, {
      detector: 'active:split',
      action: ACTIVE_ACTIONS[activeContent],
      count: 1,
    });
    if (activeContent !== 'neutralize') continue;
    part.text = text;
    addEdit(state, part.start, part.end, JSON.stringify(text));
  }
}

function sortEdits(edits: ReadonlyMap<number, TextEdit>): readonly TextEdit[] {
  return [...edits.values()].sort((one, other) => one.start - other.start);
}
