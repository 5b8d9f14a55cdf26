// Produces every reading of a string that a model may take from it: folded, with escapes decoded, with hidden
// characters made readable, reversed, decoded from base64 or hex, and with the words of German, French, Spanish,
// Italian, Portuguese, Russian, Chinese, Japanese and Korean that matter replaced by English ones, so that the rules
// read them (no translation: word order and everything else stay). Reports the means of hiding themselves. Linear.

import {
  decodeEscapes,
  findEncodedRuns,
  foldText,
  type NormalizedText,
  originalSpan,
} from '../detectors/decoded-text.js';
import {
  hiddenText,
  isConfusable,
  REVERSED,
  skeletonOf,
  stripInvisible,
  stripTerminalSequences,
} from '../detectors/unicode.js';
import { foreignVocabulary } from './rows/foreign-vocabulary.js';

/** A text to be judged, and by what it was hidden, if it was. */
export type Reading = {
  readonly text: string;
  /** How positions of the reading map to the string itself; `undefined` for what was decoded. */
  readonly origin: NormalizedText | undefined;
  readonly hiddenBy: Concealment | undefined;
};

/** Means of hiding text from a reviewer. */
export type Concealment =
  | 'tag characters'
  | 'terminal sequences'
  | 'bidirectional controls'
  | 'invisible characters'
  | 'look-alike letters'
  | 'blank space'
  | 'a comment'
  | 'encoding'
  | 'other letter forms';

const MAX_DEPTH = 2;
const PUSHED = /(?:\n[ \t]{0,40}){12}[ \t]{0,40}\S|[ \t\u00a0]{80}[^\s|]/;
const BIDI = /[\u202a-\u202e\u2066-\u2069]/;
/** Words in full-width or mathematical letters, which a reader takes for plain ones. */
const OTHER_FORMS =
  /[\uff41-\uff5a]{3}[^\n]{0,40}[\uff41-\uff5a]{3}|[\u{1d400}-\u{1d7ff}]{3}[^\n]{0,40}[\u{1d400}-\u{1d7ff}]{3}/u;
/** A comment of more than two words. */
const COMMENT = /<!--(?!\s{0,9}\S{0,40}(?:\s\S{0,40})?\s{0,9}-->)/;
const PROSE = /[a-z]{2,24}[ ,]{1,2}[a-z]{2,24}[ ,]{1,2}[a-z]{1,24}/i;

/** All readings of a string, the plain one first, and the means of hiding that it uses. */
export function readingsOf(text: string): {
  readonly readings: readonly Reading[];
  readonly concealments: ReadonlySet<Concealment>;
} {
  const readings: Reading[] = [];
  const concealments = new Set<Concealment>();
  addReadings(text, MAX_DEPTH, undefined, readings, concealments);
  return { readings, concealments };
}

function addReadings(
  text: string,
  depth: number,
  hiddenBy: Concealment | undefined,
  readings: Reading[],
  concealments: Set<Concealment>,
): void {
  for (const found of concealmentsOf(text)) concealments.add(found);
  const isOriginal = hiddenBy === undefined;
  const push = (read: string, by: Concealment | undefined, origin?: NormalizedText): void => {
    if (read.trim() !== '') readings.push({ text: read, origin, hiddenBy: by ?? hiddenBy });
  };
  const folded = foldText(text);
  const decoded = decodeEscapes(folded);
  const keep = ({ text: read }: NormalizedText, origin: NormalizedText): void =>
    push(read, undefined, isOriginal ? origin : undefined);
  keep({ ...folded, text: joinSpaced(skeletonOf(folded.text)) }, folded);
  if (decoded !== folded) keep({ ...decoded, text: skeletonOf(decoded.text) }, decoded);
  const glossed = glossText(decoded);
  if (glossed !== undefined) keep(glossed, glossed);
  for (const { read, by } of unseenTexts(text)) push(read, by);
  if (depth === 0) return;
  for (const run of findEncodedRuns(decoded.text)) {
    if (PROSE.test(run.decoded)) concealments.add('encoding');
    addReadings(run.decoded, depth - 1, 'encoding', readings, concealments);
  }
}

/** What a text says in characters that nobody sees, or in reverse. */
function unseenTexts(text: string): readonly { readonly read: string; readonly by: Concealment }[] {
  const reversed = [...text.matchAll(REVERSED)].map((match) => ({
    read: [...(match[1] ?? '')].reverse().join(''),
    by: 'bidirectional controls' as const,
  }));
  return [{ read: skeletonOf(hiddenText(text)), by: 'tag characters' }, ...reversed];
}

function concealmentsOf(text: string): readonly Concealment[] {
  const found: Concealment[] = [];
  if (hiddenText(text) !== '') found.push('tag characters');
  if (stripTerminalSequences(text).count > 0) found.push('terminal sequences');
  if (BIDI.test(text)) found.push('bidirectional controls');
  const { count, unusual } = stripInvisible(text);
  if (count + unusual > 0) found.push('invisible characters');
  if (hasMixedScripts(text)) found.push('look-alike letters');
  if (PUSHED.test(text)) found.push('blank space');
  if (OTHER_FORMS.test(text)) found.push('other letter forms');
  if (COMMENT.test(text)) found.push('a comment');
  return found;
}

/** Whether a word mixes Latin letters with letters of other scripts that look like them. */
export function hasMixedScripts(text: string): boolean {
  if (!/[^\x20-\x7e\s]/.test(text)) return false;
  return text.split(/[^A-Za-z\u0250-\u1fff\ua640-\ua7ff]+/).some((token) => {
    const units = [...token].map((unit) => unit.charCodeAt(0));
    return /[A-Za-z]/.test(token) && units.some((code) => code > 0x7f && isConfusable(code));
  });
}

const SPACED = /(?<![a-z0-9])(?:[a-z][ .\-_*]){3,400}[a-z](?![a-z0-9])/gi;

/** Where the letters of a word have other marks between them, a blank parts the words: `r.e.a.d t.h.e f.i.l.e`. */
function joinRun(run: string): string {
  const parts = /[.\-_*]/.test(run) ? run.split(/ +/) : [run];
  return parts
    .map((word) => word.replace(/[ .\-_*]/g, ''))
    .join(' ')
    .padEnd(run.length);
}

/** A text of single characters, with wider gaps between its words. */
const ALL_SPACED = /(?<!\S)(?:\S {1,3}){15,2000}\S(?!\S)/g;

/** Letters that are set apart are joined: `i g n o r e`. A double gap parts the words. The length stays. */
function joinSpaced(spaced: string): string {
  const text = spaced.replace(ALL_SPACED, (run) =>
    run
      .split(/ {2,3}/)
      .map((word) => word.replaceAll(' ', ''))
      .join(' ')
      .padEnd(run.length),
  );
  return text.replace(SPACED, joinRun);
}

const dictionary = foreignVocabulary(false);
/** The same for languages without blanks between words, by characters. */
const terms = foreignVocabulary(true);
const MAX_TERM = Math.max(...[...terms.keys()].map(({ length }) => length));
const MIN_WORD = 3;
const MIN_STEM = 4;
const MAX_WORD = 24;
/** Fewer known words are a coincidence. */
const MIN_GLOSSED = 3;

const WORD = /[\p{L}]+|[^\p{L}]+/gu;
const UNSPACED = /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]/;

/** The text with its foreign words replaced; `undefined` where there are too few of them. */
function glossText(text: NormalizedText): NormalizedText | undefined {
  const out = new Gloss(text);
  for (const match of text.text.matchAll(WORD)) {
    const [piece] = match;
    if (UNSPACED.test(piece)) glossUnspaced(piece, match.index, out);
    else out.put(piece, glossOf(piece), match.index);
  }
  return out.finish();
}

function glossOf(word: string): string | undefined {
  if (word.length < MIN_WORD || word.length > MAX_WORD) return undefined;
  const lower = word.toLowerCase();
  const exact = dictionary.get(lower);
  if (exact !== undefined) return exact;
  for (let end = lower.length; end >= MIN_STEM; end--) {
    const english = dictionary.get(`${lower.slice(0, end)}*`);
    if (english !== undefined) return english;
  }
  return undefined;
}

function glossUnspaced(piece: string, from: number, out: Gloss): void {
  for (let at = 0; at < piece.length; ) {
    let length = Math.min(MAX_TERM, piece.length - at);
    while (length > 1 && !terms.has(piece.slice(at, at + length))) length--;
    const term = piece.slice(at, at + length);
    out.put(term, terms.get(term), from + at);
    at += length;
  }
}

class Gloss {
  readonly #read: NormalizedText;
  #text = '';
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #glossed = new Set<string>();

  constructor(read: NormalizedText) {
    this.#read = read;
  }

  put(piece: string, english: string | undefined, from: number): void {
    const written = english === undefined ? piece : ` ${english} `;
    if (english !== undefined) this.#glossed.add(english);
    for (let at = 0; at < written.length; at++) {
      const isOwn = english === undefined;
      const start = isOwn ? from + at : from;
      const span = originalSpan(this.#read, start, isOwn ? start + 1 : from + piece.length);
      this.#starts.push(span.start);
      this.#ends.push(span.end);
    }
    this.#text += written;
  }

  finish(): NormalizedText | undefined {
    if (this.#glossed.size < MIN_GLOSSED) return undefined;
    const map = { starts: Int32Array.from(this.#starts), ends: Int32Array.from(this.#ends) };
    return { text: this.#text.replace(/[。！？；]/g, ';').replace(/[、，：]/g, ','), map };
  }
}
