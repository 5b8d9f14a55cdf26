// Determines which characters a reader does not see and which a reader takes for plain ASCII, strips invisible
// characters and terminal escape sequences from texts, reads what is hidden in them, and gives names that look alike
// one form.
// Source: Unicode 16.0, Default_Ignorable_Code_Point and Bidi_Control; UAX #9; UAX #15 (NFKC); UTR #36 §3; UTS #39 §4
// (confusable detection); UTS #51 §2; ECMA-48 §5.4 and §8.3.

import { foldName } from '../../text/json-members.js';

/** Inclusive ranges of characters that show nothing or reorder their surroundings. */
const INVISIBLE_RANGES: readonly (readonly [number, number])[] = [
  [0x00, 0x08],
  [0x0b, 0x0c],
  [0x0e, 0x1f],
  [0x7f, 0x9f],
  [0xad, 0xad], // soft hyphen
  [0x34f, 0x34f], // combining grapheme joiner
  [0x61c, 0x61c], // Arabic letter mark
  [0x115f, 0x1160], // Hangul fillers
  [0x17b4, 0x17b5],
  [0x180b, 0x180f],
  [0x200b, 0x200f], // zero width, directional marks
  [0x202a, 0x202e], // bidi embeddings and overrides
  [0x2060, 0x206f], // invisible operators, bidi isolates
  [0x3164, 0x3164], // Hangul filler
  [0xfe00, 0xfe0f], // variation selectors
  [0xfeff, 0xfeff],
  [0xffa0, 0xffa0],
  [0xfff0, 0xfffb],
  [0x1bca0, 0x1bca3],
  [0x1d173, 0x1d17a],
  [0xe0000, 0xe0fff], // tags, supplementary variation selectors
];

const MAX_BMP = 0xffff;

/** Whether a character shows nothing. Tab, line feed and carriage return are not invisible. */
export function isInvisible(codePoint: number): boolean {
  for (const [low, high] of INVISIBLE_RANGES) {
    if (codePoint < low) return false;
    if (codePoint <= high) return true;
  }
  return false;
}

/** Whether an emoji may stand before a variation selector or a joiner (UTS #51, approximately). */
function isEmojiLike(codePoint: number): boolean {
  return (
    (codePoint >= 0x1f000 && codePoint <= 0x1faff) ||
    (codePoint >= 0x2190 && codePoint <= 0x2bff) ||
    codePoint === 0x203c ||
    codePoint === 0x2049 ||
    codePoint === 0x20e3 ||
    codePoint === 0x2122 ||
    codePoint === 0x2139 ||
    codePoint === 0x3030 ||
    codePoint === 0x303d ||
    codePoint === 0x3297 ||
    codePoint === 0x3299 ||
    codePoint === 0xa9 ||
    codePoint === 0xae
  );
}

/** Digits, `#` and `*` take U+FE0F in keycaps. */
function isKeycapBase(codePoint: number): boolean {
  return (codePoint >= 0x30 && codePoint <= 0x39) || codePoint === 0x23 || codePoint === 0x2a;
}

/** Letters of scripts whose spelling needs joiners (Arabic, Syriac, the Indic scripts, Mongolian). */
function needsJoiners(codePoint: number): boolean {
  return (
    (codePoint >= 0x600 && codePoint <= 0x8ff) ||
    (codePoint >= 0x900 && codePoint <= 0xfff) ||
    (codePoint >= 0x1000 && codePoint <= 0x109f) ||
    (codePoint >= 0x1780 && codePoint <= 0x18af)
  );
}

const foldedBmp: (string | undefined)[] = [];

/**
 * The printable ASCII that a reader sees in place of the character under NFKC: full-width digits, mathematical
 * letters, no-break spaces. Without one, the character itself.
 */
export function foldCodePoint(codePoint: number): string {
  if (codePoint > MAX_BMP) return foldUncached(codePoint);
  const known = foldedBmp[codePoint];
  if (known !== undefined) return known;
  const folded = foldUncached(codePoint);
  foldedBmp[codePoint] = folded;
  return folded;
}

const DIGIT_ZEROS = [0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xe50, 0xff10] as const;

function foldUncached(codePoint: number): string {
  for (const zero of DIGIT_ZEROS) {
    if (codePoint >= zero && codePoint <= zero + 9) return String(codePoint - zero);
  }
  // Dashes between groups of digits have no compatibility mapping. Longer dashes do not occur there.
  if ((codePoint >= 0x2010 && codePoint <= 0x2013) || codePoint === 0x2212) return '-';
  const own = String.fromCodePoint(codePoint);
  if (codePoint >= 0xd800 && codePoint <= 0xdfff) return own;
  const folded = own.normalize('NFKC');
  return /^[\x20-\x7e]+$/.test(folded) ? folded : own;
}

/** The ellipsis folds to dots, but no detector looks for three dots in a row. */
function isOwnForm(code: number): boolean {
  return code === 0x2026 || foldCodePoint(code).charCodeAt(0) === code;
}

const SAFE = 1;
const UNSAFE = 2;
const safety = new Uint8Array(MAX_BMP + 1);

/** Whether a BMP character beyond ASCII cannot be mistaken for another one by any detector. */
export function isPlainBeyondAscii(code: number): boolean {
  let known = safety[code];
  if (known === 0 || known === undefined) {
    const plain =
      !isInvisible(code) &&
      (code < 0xd800 || code > 0xdfff) &&
      isOwnForm(code) &&
      !isConfusable(code);
    known = plain ? SAFE : UNSAFE;
    safety[code] = known;
  }
  return known === SAFE;
}

/** A text and the number of characters or sequences removed from it. */
type Stripped = { readonly text: string; readonly count: number };

const ESC = '\u001b';
const CSI = '\u009b';
const BEL = '\u0007';
const ST = '\u009c';

// CSI; then OSC, DCS, SOS, PM and APC with their strings; then the two-character sequences. A string stops at the
// next escape character, so no position is read twice.
const TERMINAL_SEQUENCE = new RegExp(
  `(?:${ESC}\\[|${CSI})[0-?]{0,64}[ -/]{0,16}[@-~]` +
    `|(?:${ESC}[\\]PX^_]|[\u0090\u0098\u009d-\u009f])[^${BEL}${ESC}${ST}]{0,4096}(?:${BEL}|${ESC}\\\\|${ST})` +
    `|${ESC}[ -/]{0,4}[0-~]`,
  'g',
);

const TERMINAL_START = new RegExp(`[${ESC}\u0080-\u009f]`);

/** The length of the terminal sequence at a position, or 0. */
export function terminalSequenceAt(text: string, at: number): number {
  SEQUENCE_HERE.lastIndex = at;
  return SEQUENCE_HERE.test(text) ? SEQUENCE_HERE.lastIndex - at : 0;
}

const SEQUENCE_HERE = new RegExp(TERMINAL_SEQUENCE, 'y');

/** Removes terminal escape sequences. Text that a sequence would hide becomes visible. */
export function stripTerminalSequences(text: string): Stripped {
  if (!TERMINAL_START.test(text)) return { text, count: 0 };
  let count = 0;
  const stripped = text.replace(TERMINAL_SEQUENCE, () => {
    count++;
    return '';
  });
  // The rest of a broken or nested sequence is inert without its first character.
  const bare = stripped.replace(new RegExp(`[${ESC}\u0080-\u009f]`, 'g'), () => {
    count++;
    return '';
  });
  return { text: bare, count };
}

const BEYOND_PRINTABLE = /[^\t\n\r\x20-\x7e]/;

/**
 * Removes invisible and bidi characters, tags, variation selectors and controls, except those that spelling
 * needs: U+FE0E and U+FE0F after an emoji, and joiners in an emoji or between letters of joining scripts. Linear.
 */
export function stripInvisible(text: string): Stripped {
  const first = text.search(BEYOND_PRINTABLE);
  if (first < 0) return { text, count: 0 };
  let kept = text.slice(0, first);
  let count = 0;
  let pieceStart = first;
  let previous = first > 0 ? codePointBefore(text, first) : 0;
  for (let at = first; at < text.length; ) {
    const code = text.codePointAt(at) ?? 0;
    const width = code > 0xffff ? 2 : 1;
    if (isInvisible(code) && !isNeeded(code, previous, text.codePointAt(at + 1) ?? 0)) {
      kept += text.slice(pieceStart, at);
      pieceStart = at + width;
      count++;
    } else {
      previous = code;
    }
    at += width;
  }
  return count === 0 ? { text, count } : { text: kept + text.slice(pieceStart), count };
}

/** Whether spelling needs an invisible character between its two neighbours. */
function isNeeded(code: number, previous: number, next: number): boolean {
  if (code === 0xfe0f || code === 0xfe0e) {
    return isEmojiLike(previous) || (isKeycapBase(previous) && next === 0x20e3);
  }
  if (code !== 0x200d && code !== 0x200c) return false;
  if (needsJoiners(previous) && needsJoiners(next)) return true;
  return code === 0x200d && (isEmojiLike(previous) || previous === 0xfe0f) && isEmojiLike(next);
}

function codePointBefore(text: string, at: number): number {
  const low = text.charCodeAt(at - 1);
  const isPair = low >= 0xdc00 && low <= 0xdfff && at > 1;
  return isPair ? (text.codePointAt(at - 2) ?? low) : low;
}

/** A small table of Cyrillic, Greek, Armenian and Cherokee letters that look like Latin ones (UTS #39 §4). */
const PAIRS =
  'аa еe оo рp сc уy хx іi ѕs јj ԁd һh ԛq ԝw ӏl ѵv гr тt мm кk вb нh пn ѡw ꙅs ԍg ғf ҫc ' +
  'АA ВB ЕE КK МM НH ОO РP СC ТT УY ХX ІI ЅS ЈJ ԌG ҮY ѴV ԚQ ԜW ' +
  'αa εe ιi κk νv οo ρp τt υu χx ωw ηn γy ϲc ' +
  'ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX ' +
  'օo ոn սu ցg հh ѐe ёe ıi ɑa ɡg ɩi ʟl ʀr ᴀa ʙb ᴄc ᴅd ᴇe ꜰf ɢg ʜh ɪi ᴊj ᴋk ᴍm ɴn ᴏo ᴘp ꜱs ᴛt ᴜu ᴠv ᴡw ʏy ᴢz ' +
  'ᎪA ᏴB ᏟC ᎠD ᎬE ᏀG ᎻH ᎥI ᎫJ ᏦK ᏞL ᎷM ᏢP ᏒR ᏚS ᎢT ᏙV ᎳW';

const LOOKALIKES: ReadonlyMap<string, string> = new Map(
  PAIRS.split(' ').map((pair) => [pair.slice(0, -1), pair.slice(-1)]),
);

/** Whether a UTF-16 code unit looks like a Latin letter without being one. */
export function isConfusable(code: number): boolean {
  return LOOKALIKES.has(String.fromCharCode(code));
}

const NON_ASCII = /[^\x20-\x7e\s]/;

/** The text with look-alikes replaced by Latin letters. For comparison with cues only; never shown or sent. */
export function skeletonOf(text: string): string {
  if (!NON_ASCII.test(text)) return text;
  let read = '';
  for (const unit of text) read += LOOKALIKES.get(unit) ?? unit;
  return read;
}

const NO_LETTER = /[^\p{L}\p{N}]/gu;
const DIGITS: ReadonlyMap<string, string> = new Map([
  ['0', 'o'],
  ['1', 'l'],
]);

/** The form in which names that look alike are equal. A name without letters and digits is returned unchanged. */
export function confusableForm(name: string): string {
  const letters = skeletonOf(name.normalize('NFKD')).replace(NO_LETTER, '');
  if (letters === '') return name;
  // Capital letters resemble other letters than small ones do, so the skeleton is taken before and after folding.
  const folded = foldName(skeletonOf(foldName(letters)));
  return folded.replace(/[01]/g, (digit) => DIGITS.get(digit) ?? digit);
}

/** Text that controls show in reverse. */
export const REVERSED = /\u202e([^\u202c\n]{1,2000})/g;

const TAG_BASE = 0xe0000;

/** ASCII hidden in invisible tag characters or variation selectors (U+E0000 block). */
export function hiddenText(text: string): string {
  if (!text.includes('\udb40')) return '';
  let hidden = '';
  for (const unit of text) {
    const code = unit.codePointAt(0) ?? 0;
    if (code >= TAG_BASE + 0x20 && code <= TAG_BASE + 0x7e) {
      hidden += String.fromCharCode(code - TAG_BASE);
    } else if (code >= 0xe0100 && code <= 0xe01ef) {
      hidden += String.fromCharCode(code - 0xe0100 + 16);
    }
  }
  return hidden.length > 8 ? hidden : '';
}
