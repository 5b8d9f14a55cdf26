// Reads a text without the markup within its words, as a renderer of HTML shows it: a word that a tag or a comment
// interrupts is one word to whoever sees it. Markup that separates what stands around it, such as a line break, a cell
// or a picture, stays, and so does all markup beside a blank. Never changes a text, never decides what is harmful.
// Source: HTML §13.2.5 (tags, comments, bogus comments) and §15.3 (which elements are shown in a line).

import { createViewBuilder, type NormalizedText } from './decoded-text.js';

/**
 * `empty`: what shows nothing by itself, which is comments, possible line breaks and elements without content. `any`:
 * also the tags around a part of a word.
 */
export type DroppedMarkup = 'empty' | 'any';

/** Elements that separate the texts around them, or show something themselves. */
const SEPARATING = new Set(
  (
    'address applet area article aside audio blockquote body br button canvas caption center col ' +
    'colgroup dd details dialog dir div dl dt embed fieldset figcaption figure footer form ' +
    'frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe ' +
    'image img input legend li listing main map math menu meter nav noembed noframes ' +
    'noscript object ol optgroup option p plaintext pre progress q rt search section select ' +
    'summary svg table tbody td textarea tfoot th thead title tr ul video xmp'
  ).split(' '),
);
/** Elements that have no content. */
const VOID = new Set('wbr base link meta param source track keygen basefont bgsound command spacer'.split(' '));

const BLANK = /^\s?$/;
const NO_ROW = { dropEnd: -1, end: -1 } as const;
const MARKUP_START = /<[A-Za-z/!?]/;

/** The view without the markup within its words; the same view where there is none. Linear. */
export function dropMarkup(view: NormalizedText, dropped: DroppedMarkup): NormalizedText {
  const { text } = view;
  if (!MARKUP_START.test(text)) return view;
  const reader: Reader = { text, nextSign: -1, hasComments: true };
  const out = createViewBuilder();
  let from = 0;
  for (let at = text.indexOf('<'); at >= 0; ) {
    // Most markup begins behind a blank, where it is not read.
    const { dropEnd, end } = BLANK.test(text.charAt(at - 1)) ? NO_ROW : readRow(reader, at, dropped);
    if (dropEnd > at && isWithinWord(text, at, dropEnd)) {
      out.copy(text, from, at);
      from = dropEnd;
    }
    at = text.indexOf('<', Math.max(end, at + 1));
  }
  if (from === 0) return view;
  out.copy(text, from, text.length);
  return out.toNormalizedText(view.map);
}

/** Whether no blank and no end of the text is beside a stretch. */
function isWithinWord(text: string, start: number, end: number): boolean {
  return start > 0 && end < text.length && !/\s/.test(text.charAt(start - 1) + text.charAt(end));
}

/** `nextSign`: where the next `>` is, as far as it is known. */
type Reader = { readonly text: string; nextSign: number; hasComments: boolean };

type Markup = {
  readonly end: number;
  /** The element, in lower case; undefined for a comment. */
  readonly name: string | undefined;
  readonly isEnd: boolean;
};

/** The longest row that is dropped. */
const MAX_ROW = 256;

/** The end of the markup in a row that is dropped from here on, `at` where there is none; and that of what was read. */
function readRow(
  reader: Reader,
  at: number,
  dropped: DroppedMarkup,
): { readonly dropEnd: number; readonly end: number } {
  const open: string[] = [];
  let [end, dropEnd] = [at, at];
  for (let count = 0; count < MAX_ROW; count += 1) {
    const markup = readMarkup(reader, end);
    if (markup === undefined || !isPlacedIn(open, markup, dropped)) break;
    ({ end } = markup);
    if (dropped === 'any' || open.length === 0) dropEnd = end;
  }
  return { dropEnd, end };
}

/** Whether markup may be dropped behind the elements that are open, which it then changes. */
function isPlacedIn(open: string[], { name, isEnd }: Markup, dropped: DroppedMarkup): boolean {
  if (name === undefined || VOID.has(name)) return true;
  if (SEPARATING.has(name)) return false;
  if (!isEnd) open.push(name);
  else if (open.pop() !== name) return dropped === 'any';
  return true;
}

const TAG = /<(\/?)([A-Za-z][^\s/>]{0,63})/y;
/** What follows the name, with values in quotes. A tag that goes on longer ends at the next `>`. */
const MAX_PLAIN_CHARS = 256;
const REST_OF_TAG = /(?:[^"'>]|"[^"]{0,256}"|'[^']{0,256}'){0,256}>/y;

function readMarkup(reader: Reader, at: number): Markup | undefined {
  const { text } = reader;
  if (text[at] !== '<') return undefined;
  TAG.lastIndex = at;
  const [matched, slash, name] = TAG.exec(text) ?? [];
  if (matched !== undefined && name !== undefined) {
    const next = signAfter(reader, at);
    if (next < 0) return undefined;
    const from = at + matched.length;
    const isPlain = next - from < MAX_PLAIN_CHARS && !/["']/.test(text.slice(from, next));
    REST_OF_TAG.lastIndex = from;
    const end = !isPlain && REST_OF_TAG.test(text) ? REST_OF_TAG.lastIndex : next + 1;
    return { end, name: name.toLowerCase(), isEnd: slash !== '' };
  }
  const end = endOfComment(reader, at);
  return end === undefined ? undefined : { end, name: undefined, isEnd: false };
}

function endOfComment(reader: Reader, at: number): number | undefined {
  const { text } = reader;
  if (text.startsWith('<!--', at)) {
    const short = /^-?>/.exec(text.slice(at + 4, at + 6))?.[0];
    if (short !== undefined) return at + 4 + short.length;
    const end = reader.hasComments ? text.indexOf('-->', at + 4) : -1;
    reader.hasComments = end >= 0;
    return end < 0 ? undefined : end + 3;
  }
  if (!/^<(?:[!?]|\/[^A-Za-z])/.test(text.slice(at, at + 3))) return undefined;
  const end = signAfter(reader, at);
  return end < 0 ? undefined : end + 1;
}

/** Where the next `>` is; -1 without one. */
function signAfter(reader: Reader, at: number): number {
  if (reader.nextSign < at) {
    const next = reader.text.indexOf('>', at);
    reader.nextSign = next < 0 ? Infinity : next;
  }
  return reader.nextSign === Infinity ? -1 : reader.nextSign;
}

/** Emphasis, code, empty links and escapes of Markdown. */
const MARKS = /(?:\*{1,3}|`{1,3}|~{1,2}|\\|\[\]\([^()\s]{0,64}\))+/g;
const TOKEN = /^[\w+/=-]{2}$/;

/** The view without the marks of Markdown within its words, as its renderers show it (CommonMark §2.4 and §6). */
export function dropMarks(view: NormalizedText): NormalizedText {
  const { text } = view;
  const out = createViewBuilder();
  let from = 0;
  for (const { 0: marks, index } of text.matchAll(MARKS)) {
    const end = index + marks.length;
    if (!TOKEN.test(text.charAt(index - 1) + text.charAt(end))) continue;
    // A letter or digit behind a backslash is no escape of Markdown.
    if (marks.endsWith('\\') && /[A-Za-z0-9]/.test(text.charAt(end))) continue;
    out.copy(text, from, index);
    from = end;
  }
  if (from === 0) return view;
  out.copy(text, from, text.length);
  return out.toNormalizedText(view.map);
}
