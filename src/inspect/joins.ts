// What a reader joins: the texts of one answer, with the tail of what came before in the same exchange.
// Something secret that is cut in two by such a border is removed from every part of it that is still
// here. Looks only around the borders; the parts themselves were inspected one by one.

import type { TextEdit } from '../mcp/admitted.js';
import { findSensitive, type Wanted } from './sanitize/detect.js';
import { isSurelyClean } from './sanitize/gate.js';
import { isExposedIn } from './sanitize/own-credentials.js';
import type { Hit } from './sanitize/secrets.js';

/** How much of each part around a border is looked at at least, and what is carried to the next message. */
const BORDER_CHARS = 512;
/** A token or a key that reaches a border is looked at from its beginning to its end, up to this many. */
const MAX_BORDER_CHARS = 16 * 1024;

const KEY_BEGINS = '-----BEGIN ';
const KEY_ENDS = '-----END ';

/** Where the stretch before the end of a text begins in which one secret may lie that goes on behind it. */
function tailStart(text: string): number {
  const { length } = text;
  if (length <= BORDER_CHARS) return 0;
  const from = Math.max(0, length - MAX_BORDER_CHARS);
  const near = text.slice(from);
  const key = near.lastIndexOf(KEY_BEGINS);
  if (key >= 0 && near.indexOf(KEY_ENDS, key) < 0) {
    return Math.min(from + key, length - BORDER_CHARS);
  }
  return Math.min(startOfLastWord(text, from), length - BORDER_CHARS);
}

/** Where the last run of characters without white space begins, at `from` at the earliest. */
function startOfLastWord(text: string, from: number): number {
  let start = text.length;
  while (start > from && !isSpace(text.charCodeAt(start - 1))) start--;
  return start;
}

/** As `\s` of a regular expression, without one for each character. */
function isSpace(code: number): boolean {
  if (code < 0xa0) return code === 0x20 || (code >= 0x09 && code <= 0x0d);
  return code === 0xa0 || (code >= 0x1680 && /\s/.test(String.fromCharCode(code)));
}

/** Where the stretch at the start of a text ends in which a secret may lie that began before it. */
function headEnd(text: string): number {
  const { length } = text;
  if (length <= BORDER_CHARS) return length;
  const near = text.slice(0, MAX_BORDER_CHARS);
  const key = near.indexOf(KEY_ENDS);
  if (key >= BORDER_CHARS && !near.slice(0, key).includes(KEY_BEGINS)) {
    return Math.min(length, key + BORDER_CHARS);
  }
  // Lines of a key have no blanks in them.
  const blank = near.indexOf(' ');
  return blank < 0 ? near.length : Math.max(blank, BORDER_CHARS);
}

/** The end of a text, as it is carried to what follows it. */
export function tailOf(text: string): string {
  return text.slice(tailStart(text));
}

/** The start of a text, as it is read behind a tail. */
export function headOf(text: string): string {
  return text.slice(0, headEnd(text));
}

/** A hit across a border: what of it lies in one part. */
export type SplitHit = {
  readonly part: number;
  readonly kind: string;
  readonly start: number;
  readonly end: number;
};

type Segment = { readonly part: number; readonly from: number; readonly text: string };

/** Texts joined as a reader may join them: with nothing, or with a blank, between them. */
const GLUES = ['', ' '] as const;

/**
 * Hits that lie across a border between two parts, cut to the parts. `parts[0]` may be the carried tail.
 */
export function findSplit(parts: readonly string[], wanted: Wanted): readonly SplitHit[] {
  if (parts.length < 2) return [];
  const found: SplitHit[] = [];
  for (const run of borderRuns(parts)) {
    for (const glue of GLUES) found.push(...findInRun(run, glue, wanted));
  }
  return found;
}

/** Stretches of consecutive parts; a long part ends one stretch and begins the next. */
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

function findInRun(run: readonly Segment[], glue: string, wanted: Wanted): SplitHit[] {
  const joined = run.map((segment) => segment.text).join(glue);
  if (isSurelyClean(joined) && !isExposedIn(joined, wanted.own)) return [];
  const places = placesOf(run, glue);
  const split: SplitHit[] = [];
  let first = 0;
  // Hits ascend, so no place is passed over twice.
  for (const hit of findSensitive(joined, wanted)) {
    while ((places[first]?.end ?? hit.start) < hit.start) first++;
    const cuts = cutToParts(places, first, hit);
    if (cuts.length > 1) split.push(...cuts);
  }
  return split;
}

/** Where a segment stands in the joined text. */
type Place = { readonly segment: Segment; readonly start: number; readonly end: number };

function placesOf(run: readonly Segment[], glue: string): readonly Place[] {
  let start = 0;
  return run.map((segment) => {
    const place = { segment, start, end: start + segment.text.length };
    start = place.end + glue.length;
    return place;
  });
}

function cutToParts(places: readonly Place[], first: number, hit: Hit): SplitHit[] {
  const cuts: SplitHit[] = [];
  for (let index = first; index < places.length; index++) {
    const place = places[index];
    if (place === undefined || place.start >= hit.end) break;
    const start = Math.max(hit.start, place.start);
    const end = Math.min(hit.end, place.end);
    if (start >= end) continue;
    const { part, from } = place.segment;
    const offset = from - place.start;
    cuts.push({ part, kind: hit.kind, start: offset + start, end: offset + end });
  }
  return cuts;
}

/** The hits of each part, so that none is looked for in all of them. */
export function groupByPart(hits: readonly SplitHit[]): ReadonlyMap<number, readonly SplitHit[]> {
  const byPart = new Map<number, SplitHit[]>();
  for (const hit of hits) {
    const known = byPart.get(hit.part);
    if (known === undefined) byPart.set(hit.part, [hit]);
    else known.push(hit);
  }
  return byPart;
}

/** One text with cuts replaced; overlapping cuts count once. */
export function cutText(
  text: string,
  cuts: readonly SplitHit[],
  replacement: (kind: string) => string,
): string {
  const edits: TextEdit[] = [];
  for (const cut of [...cuts].sort((one, other) => one.start - other.start)) {
    if (cut.start < (edits.at(-1)?.end ?? 0)) continue;
    edits.push({ start: cut.start, end: cut.end, text: replacement(cut.kind) });
  }
  let kept = '';
  let at = 0;
  for (const edit of edits) {
    kept += text.slice(at, edit.start) + edit.text;
    at = edit.end;
  }
  return kept + text.slice(at);
}
