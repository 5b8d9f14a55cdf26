// Inspects texts that a reader joins: the texts of one message, after the end of what was sent before in response
// to the same request. Removes secrets split across a boundary and makes active content inert that only acts once
// the texts are joined. Each text was inspected on its own before; for secrets only the boundaries are searched.

import type { TextEdit } from '../protocol/admitted-request.js';
import { applyEdits } from '../protocol/json/json.js';
import { walkJson } from '../protocol/json/walk.js';
import type { Span } from '../text/span.js';
import { findActiveContent, type Replacement } from './detectors/active-content.js';
import type { Hit } from './detectors/hit.js';
import { isLongRandomRun } from './detectors/secrets.js';
import { findSensitive, type WantedKinds } from './detectors/text-sanitizer.js';
import { isExposedIn } from './detectors/upstream-credentials.js';
import { isSurelyClean } from './prefilter/prefilter.js';

/** How clients join the texts of one result before they render them. */
const CONTENT_SEPARATORS = ['', ' ', '\n', '\n\n'] as const;
/** Content that is still active after this many rounds is given up on, and the message is withheld. */
const MAX_ROUNDS = 6;

type FindCode = (text: string) => readonly Span[];

/** Makes texts inert that act only once a client joins them. Returns undefined where that fails. */
export function neutralizeJoined(texts: readonly string[], findCode: FindCode): readonly string[] | undefined {
  if (isSurelyClean(texts.join(''))) return texts;
  let inert = texts;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const before = inert;
    for (const separator of CONTENT_SEPARATORS) inert = neutralizeWith(inert, separator, findCode);
    if (inert === before) return inert;
  }
  return undefined;
}

function neutralizeWith(texts: readonly string[], separator: string, findCode: FindCode): readonly string[] {
  const joined = texts.join(separator);
  const { found } = findActiveContent(joined, findCode(joined));
  if (found.length === 0) return texts;
  const pieces = found.map((one) => trimUnchanged(joined, one));
  let start = 0;
  let first = 0;
  return texts.map((text) => {
    const end = start + text.length;
    while ((pieces[first]?.end ?? start) < start) first++;
    const ownPieces: TextEdit[] = [];
    for (let index = first; (pieces[index]?.start ?? end + 1) <= end; index++) {
      ownPieces.push(...pieceWithin(pieces[index], start, end));
    }
    start = end + separator.length;
    return applyEdits(text, ownPieces);
  });
}

/** A replacement without the characters at both ends that it leaves unchanged. */
function trimUnchanged(joined: string, { start, end, text }: Replacement): TextEdit {
  const most = Math.min(end - start, text.length);
  let head = 0;
  while (head < most && joined[start + head] === text[head]) head++;
  let tail = 0;
  while (tail < most - head && joined[end - 1 - tail] === text[text.length - 1 - tail]) tail++;
  return { start: start + head, end: end - tail, text: text.slice(head, text.length - tail) };
}

/**
 * Applies replacements to a text that is JSON, so that it stays JSON: within a string as its escapes, and where one
 * reaches beyond the string in which it begins, its first character alone is replaced.
 */
export function editJsonText(json: string, found: readonly Replacement[]): string {
  if (found.length === 0) return json;
  const edits: TextEdit[] = [];
  let next = 0;
  walkJson(json, { maxDepth: Infinity, maxStrings: Infinity }, ({ kind, start, end }) => {
    if (kind === 'number') return;
    for (let one = found[next]; one !== undefined && one.start < end; one = found[++next]) {
      if (one.start <= start) continue;
      const isWithin = one.end < end;
      const {
        start: from,
        end: to,
        text,
      } = isWithin
        ? trimUnchanged(json, one)
        : { start: one.start, end: one.start + 1, text: inertCharacter(json.charAt(one.start)) };
      edits.push({ start: from, end: to, text: JSON.stringify(text).slice(1, -1) });
    }
  });
  return applyEdits(json, edits);
}

/** A character in a form that begins no tag, link, image or address. */
function inertCharacter(character: string): string {
  return character === '<' ? '&lt;' : `${character} `;
}

/** The portion of a replacement within `from` to `to`. Its text goes where the replacement begins. */
function pieceWithin(piece: TextEdit | undefined, from: number, to: number): readonly TextEdit[] {
  if (piece === undefined) return [];
  const { start, end, text } = piece;
  // A pure insertion between two texts is placed at the end of the first.
  const isInsertion = start === end && start > from && start <= to;
  const begins = isInsertion || (start < end && start >= from && start < to);
  if (!begins && !(end > from && start < from)) return [];
  return [
    {
      start: Math.max(start, from) - from,
      end: Math.min(end, to) - from,
      text: begins ? text : '',
    },
  ];
}

/** Minimum number of characters of each text examined around a boundary and carried to the next message. */
const BORDER_CHARS = 512;
/** Maximum number of characters examined for a token or a key that reaches a boundary. */
const MAX_BORDER_CHARS = 16 * 1024;

const KEY_BEGINS = '-----BEGIN ';
const KEY_ENDS = '-----END ';

/** Start of the stretch at the end of a text that may hold the first piece of a secret. */
function tailStart(text: string): number {
  const { length } = text;
  if (length <= BORDER_CHARS) return 0;
  const from = Math.max(0, length - MAX_BORDER_CHARS);
  const edgeText = text.slice(from);
  // Searching forwards is several times faster, and nearly no text has one.
  const key = edgeText.includes(KEY_BEGINS) ? edgeText.lastIndexOf(KEY_BEGINS) : -1;
  if (key >= 0 && edgeText.indexOf(KEY_ENDS, key) < 0) {
    return Math.min(from + key, length - BORDER_CHARS);
  }
  return Math.min(startOfLastWord(text, from), length - BORDER_CHARS);
}

/** Start of the last run of characters without white space, but not before `from`. */
function startOfLastWord(text: string, from: number): number {
  let start = text.length;
  while (start > from && !isSpace(text.charCodeAt(start - 1))) start--;
  return start;
}

/** Equivalent to `\s`, without running a regular expression for each character. */
function isSpace(code: number): boolean {
  if (code < 0xa0) return code === 0x20 || (code >= 0x09 && code <= 0x0d);
  return code === 0xa0 || (code >= 0x1680 && /\s/.test(String.fromCharCode(code)));
}

/** End of the stretch at the start of a text that may hold the last piece of a secret. */
function headEnd(text: string): number {
  const { length } = text;
  if (length <= BORDER_CHARS) return length;
  const edgeText = text.slice(0, MAX_BORDER_CHARS);
  const key = edgeText.indexOf(KEY_ENDS);
  if (key >= BORDER_CHARS && !edgeText.slice(0, key).includes(KEY_BEGINS)) {
    return Math.min(length, key + BORDER_CHARS);
  }
  // The lines of a PEM key contain no blanks.
  const blank = edgeText.indexOf(' ');
  return blank < 0 ? edgeText.length : Math.max(blank, BORDER_CHARS);
}

/** The end of a text that is carried to the next message. */
export function tailOf(text: string): string {
  return text.slice(tailStart(text));
}

/** The start of a text that is examined together with the preceding tail. */
export function headOf(text: string): string {
  return text.slice(0, headEnd(text));
}

/** The portion of a hit across a boundary that lies in one text. */
export type SplitHit = {
  readonly part: number;
  readonly kind: string;
  readonly start: number;
  readonly end: number;
};

type Segment = { readonly part: number; readonly from: number; readonly text: string };

/** A reader may join texts with nothing or with a blank between them. */
export const SECRET_SEPARATORS = ['', ' '] as const;

/**
 * Finds secrets and personal data that lie across a boundary between texts, cut to the single texts. `parts[0]`
 * may be the carried tail.
 */
export function findSplit(parts: readonly string[], wantedKinds: WantedKinds): readonly SplitHit[] {
  if (parts.length < 2) return [];
  const found: SplitHit[] = [];
  for (const run of borderRuns(parts)) {
    for (const separator of SECRET_SEPARATORS)
      for (const hit of findInRun(run, separator, wantedKinds)) found.push(hit);
  }
  return found;
}

/** Runs of consecutive texts. A long text ends one run and begins the next. */
function borderRuns(parts: readonly string[]): readonly (readonly Segment[])[] {
  const runs: Segment[][] = [];
  let run: Segment[] = [];
  for (const [part, text] of parts.entries()) {
    if (text === '') continue;
    const from = tailStart(text);
    const head = headOf(text);
    if (head.length >= from) {
      run.push({ part, from: 0, text });
      continue;
    }
    run.push({ part, from: 0, text: head });
    runs.push(run);
    run = [{ part, from, text: text.slice(from) }];
  }
  runs.push(run);
  return runs.filter((one) => one.length > 1);
}

function findInRun(run: readonly Segment[], separator: string, wantedKinds: WantedKinds): SplitHit[] {
  const joined = run.map((segment) => segment.text).join(separator);
  if (isSurelyClean(joined) && !isExposedIn(joined, wantedKinds.own)) return [];
  const joinedRun: JoinedRun = {
    joined,
    spans: spansOf(run, separator),
    alone: new Map(),
    wantedKinds,
  };
  const split: SplitHit[] = [];
  let first = 0;
  // Hits are in ascending order, so `first` never has to move back.
  for (const hit of findSensitive(joined, wantedKinds)) {
    while ((joinedRun.spans[first]?.end ?? hit.start) <= hit.start) first++;
    split.push(...cutsNeeded(joinedRun, first, hit));
  }
  return split;
}

type JoinedRun = {
  readonly joined: string;
  readonly spans: readonly SegmentSpan[];
  /** What was found in single segments, which is asked only of those in which a hit lies. */
  readonly alone: Map<number, readonly Hit[]>;
  readonly wantedKinds: WantedKinds;
};

/**
 * The cuts of a hit that needs the text on both sides of a boundary. What is already complete before a boundary
 * takes nothing behind it, and what is complete behind one takes nothing before it.
 */
function cutsNeeded(run: JoinedRun, first: number, hit: Hit): readonly SplitHit[] {
  const { spans } = run;
  let last = first;
  while ((spans[last + 1]?.start ?? hit.end) < hit.end) last++;
  // What stands before a text may give a secret its name, but takes none from a number that has one of its own.
  if (first === last) return hit.kind === 'card' || isFoundAlone(run, first, hit) ? [] : cutToParts(spans, first, hit);
  const end = lastNeeded(run, { first, last }, hit);
  const upTo = { ...hit, end: Math.min(hit.end, spans[end]?.end ?? hit.end) };
  const isCompleteBehind = (at: number): boolean =>
    isFoundIn(run, upTo, spans[at]?.start ?? 0, upTo.end + CONTEXT_CHARS);
  const start = end - firstThat(0, end - first, (behind) => isCompleteBehind(end - behind));
  if (start === end && isFoundAlone(run, start, hit)) return [];
  const from = Math.max(hit.start, spans[start]?.start ?? hit.start);
  return cutToParts(spans, start, { ...upTo, start: from });
}

/** The segment with which a hit is complete. A key is so with its last line; other secrets may be longer than they must. */
function lastNeeded(
  run: JoinedRun,
  { first, last }: { readonly first: number; readonly last: number },
  hit: Hit,
): number {
  const { joined, spans } = run;
  const value = joined.slice(hit.start, hit.end);
  if (value.startsWith(KEY_BEGINS)) return last;
  const from = hit.start - CONTEXT_CHARS;
  const own = spans[first]?.start ?? 0;
  // A word before the first segment may make something of a piece, which does not complete a secret of its own form.
  let end = firstThat(first, last, (at) => {
    const to = spans[at]?.end ?? 0;
    return isFoundIn(run, hit, own, to) || isFoundIn(run, hit, from, to, hit.kind);
  });
  while (end < last && isLongRandomRun(spans[end + 1]?.segment.text ?? '')) end++;
  return end;
}

/** How far before a value its name may begin. */
const CONTEXT_CHARS = 256;

function isFoundAlone({ spans, alone, wantedKinds }: JoinedRun, index: number, hit: Hit): boolean {
  const span = spans[index];
  if (span === undefined) return false;
  const found = alone.get(index) ?? findSensitive(span.segment.text, wantedKinds);
  alone.set(index, found);
  return found.some((one) => one.start + span.start < hit.end && one.end + span.start > hit.start);
}

/** Whether something of a hit is found if only this stretch of the joined text is read. */
function isFoundIn({ joined, wantedKinds }: JoinedRun, hit: Hit, from: number, to: number, kind?: string): boolean {
  const start = Math.max(0, from);
  const found = findSensitive(joined.slice(start, to), wantedKinds);
  return found.some(
    (one) => one.start + start < hit.end && one.end + start > hit.start && (kind === undefined || one.kind === kind),
  );
}

/** The first number of a range for which something holds that also holds for all greater ones; else the last. */
function firstThat(from: number, to: number, holds: (at: number) => boolean): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The span of a segment in the joined text. */
type SegmentSpan = { readonly segment: Segment; readonly start: number; readonly end: number };

function spansOf(run: readonly Segment[], separator: string): readonly SegmentSpan[] {
  let start = 0;
  return run.map((segment) => {
    const span = { segment, start, end: start + segment.text.length };
    start = span.end + separator.length;
    return span;
  });
}

function cutToParts(spans: readonly SegmentSpan[], first: number, hit: Hit): SplitHit[] {
  const cuts: SplitHit[] = [];
  for (let index = first; index < spans.length; index++) {
    const span = spans[index];
    if (span === undefined || span.start >= hit.end) break;
    const start = Math.max(hit.start, span.start);
    const end = Math.min(hit.end, span.end);
    if (start >= end) continue;
    const { part, from } = span.segment;
    const offset = from - span.start;
    cuts.push({ part, kind: hit.kind, start: offset + start, end: offset + end });
  }
  return cuts;
}

/** Replaces the cuts in one text. Of overlapping cuts only the first is replaced. */
export function cutText(text: string, cuts: readonly SplitHit[], replacement: (kind: string) => string): string {
  const edits: TextEdit[] = [];
  for (const cut of [...cuts].sort((one, other) => one.start - other.start)) {
    if (cut.start < (edits.at(-1)?.end ?? 0)) continue;
    edits.push({ start: cut.start, end: cut.end, text: replacement(cut.kind) });
  }
  return applyEdits(text, edits);
}
