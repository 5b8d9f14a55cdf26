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
    (codePoint >= 0x1780 && codePoint <= 0x18af) ||
    (codePoint >= 0xa800 && codePoint <= 0xabff) ||
    (codePoint >= 0xfb50 && codePoint <= 0xfdff) ||
    (codePoint >= 0xfe70 && codePoint <= 0xfefc) ||
    (codePoint >= 0x10a00 && codePoint <= 0x11fff) ||
    (codePoint >= 0x1e900 && codePoint <= 0x1e95f)
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
      !isSeparator(code) &&
      (code < 0xd800 || code > 0xdfff) &&
      isOwnForm(code) &&
      !isConfusable(code);
    known = plain ? SAFE : UNSAFE;
    safety[code] = known;
  }
  return known === SAFE;
}

/** The line and the paragraph separator of Unicode. */
function isSeparator(code: number): boolean {
  return code === 0x2028 || code === 0x2029;
}

const ODD_LINE_END = /\r(?!\n)|[\u2028\u2029]/g;

/**
 * How many line ends of a text some readers do not take for line ends: carriage returns without a line feed, and the separators of
 * Unicode. NEL is counted with what shows nothing.
 */
export function countOddLineEnds(text: string): number {
  if (!text.includes('\r') && !/[\u2028\u2029]/.test(text)) return 0;
  return text.match(ODD_LINE_END)?.length ?? 0;
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
  // The rest of a broken or nested sequence is inert without its first character. NEL is a line end and begins none.
  const bare = stripped.replace(new RegExp(`[${ESC}\u0080-\u0084\u0086-\u009f]`, 'g'), () => {
    count++;
    return '';
  });
  return { text: bare, count };
}

const BEYOND_PRINTABLE = /[^\t\n\r\x20-\x7e]/;

/** What was removed, and how many characters stayed that show nothing and are not needed where they stand. */
type StrippedInvisible = Stripped & { readonly unusual: number };

/** A removal may bring characters together that were apart. After this many rounds nothing invisible stays. */
const MAX_ROUNDS = 4;

/**
 * Removes what hides or reorders text: controls, bidi controls that reorder text written from left to right, tags
 * outside flags, zero-width characters inside words and in a row, and selectors and joiners where nothing takes them.
 * What spelling, emoji and files need stays, and so does a single character that hides nothing. Linear.
 */
export function stripInvisible(text: string): StrippedInvisible {
  let kept = text;
  let count = 0;
  for (let round = 0; ; round++) {
    const stripped = stripOnce(kept, round === MAX_ROUNDS);
    count += stripped.count;
    kept = stripped.text;
    if (stripped.count === 0) return { text: kept, count, unusual: stripped.unusual };
  }
}

function stripOnce(text: string, isLast: boolean): StrippedInvisible {
  const first = text.search(BEYOND_PRINTABLE);
  if (first < 0) return { text, count: 0, unusual: 0 };
  const reordering = findReordering(text);
  let kept = '';
  let [count, unusual, pieceStart] = [0, 0, 0];
  let previous = first > 0 ? codePointBefore(text, first) : 0;
  for (let at = first; at < text.length; ) {
    const code = text.codePointAt(at) ?? 0;
    const end = at + (code > 0xffff ? 2 : 1);
    const role = isInvisible(code) ? roleAt(text, at, { end, previous, reordering, isLast }) : 'needed';
    unusual += Number(role === 'unusual');
    if (role === 'hides') {
      kept += text.slice(pieceStart, at);
      pieceStart = end;
      count++;
    }
    previous = code;
    at = end;
  }
  return { text: count === 0 ? text : kept + text.slice(pieceStart), count, unusual };
}

function roleAt(
  text: string,
  at: number,
  found: Pick<Surroundings, 'previous' | 'reordering'> & {
    readonly end: number;
    readonly isLast: boolean;
  },
): Role {
  const { end, previous, reordering, isLast } = found;
  if (isLast) return 'hides';
  const code = text.codePointAt(at) ?? 0;
  const next = text.codePointAt(end) ?? 0;
  const flag = code >= TAG_BASE && code <= TAG_END && isInFlag(text, at);
  return roleOf({ code, previous, next, at, reordering, flag });
}

type Surroundings = {
  readonly code: number;
  readonly previous: number;
  readonly next: number;
  readonly at: number;
  readonly reordering: ReadonlySet<number>;
  /** Whether a tag belongs to a flag. */
  readonly flag: boolean;
};

/** `needed`: spelling or the format of files takes it there. `unusual`: it hides nothing. `hides`: it is removed. */
type Role = 'needed' | 'unusual' | 'hides';

function roleOf(around: Surroundings): Role {
  const { code, previous, next, at } = around;
  if (code === FORM_FEED || (code === BOM && at === 0) || around.flag) return 'needed';
  if (code === NEL) return 'unusual';
  if (isBidiControl(code)) return around.reordering.has(at) ? 'hides' : 'unusual';
  if (isSelector(code)) return takesSelector(code, previous, next) ? 'needed' : 'hides';
  if (isInScript(code, previous, next)) return 'needed';
  return isZeroWidth(code) ? roleOfZeroWidth(around) : 'hides';
}

function roleOfZeroWidth({ code, previous, next }: Surroundings): Role {
  if (isJoined(code, previous, next)) return 'needed';
  if (isZeroWidth(previous) || isZeroWidth(next) || isSelector(next)) return 'hides';
  if (code === SOFT_HYPHEN || isMark(code)) return 'unusual';
  return isWordUnit(previous) && isWordUnit(next) ? 'hides' : 'unusual';
}

const FORM_FEED = 0x0c;
const NEL = 0x85;
const BOM = 0xfeff;
const SOFT_HYPHEN = 0xad;
const TAG_END = 0xe007f;

function isBidiControl(code: number): boolean {
  return (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/** Left-to-right, right-to-left and Arabic letter marks. */
function isMark(code: number): boolean {
  return code === 0x200e || code === 0x200f || code === 0x61c;
}

function isZeroWidth(code: number): boolean {
  return (
    (code >= 0x200b && code <= 0x200f) ||
    (code >= 0x2060 && code <= 0x2064) ||
    code === BOM ||
    code === SOFT_HYPHEN ||
    code === 0x61c ||
    code === 0x34f
  );
}

function isSelector(code: number): boolean {
  return (code >= 0xfe00 && code <= 0xfe0f) || (code >= 0xe0100 && code <= 0xe01ef);
}

/** Letters and digits of the scripts before Hebrew: Latin, Greek, Cyrillic, Armenian. No spelling joins these. */
function isWordUnit(code: number): boolean {
  return code < 0x590 && /[\p{L}\p{N}\p{M}_]/u.test(String.fromCodePoint(code));
}

function isHan(code: number): boolean {
  return (
    (code >= 0x3400 && code <= 0x9fff) ||
    (code >= 0xf900 && code <= 0xfaff) ||
    (code >= 0x20000 && code <= 0x3ffff) ||
    (code >= 0x3000 && code <= 0x303f)
  );
}

/** The last selector of ideographs in use; those behind it can spell ASCII. */
const LAST_IDEOGRAPHIC = 0xe010f;

/** Characters with standardized variants: mathematical signs, Myanmar and Phags-pa letters, full-width signs. */
const WITH_VARIANTS: readonly (readonly [number, number])[] = [
  [0x1000, 0x109f],
  [0x2200, 0x22ff],
  [0x2a00, 0x2aff],
  [0xa840, 0xa877],
  [0xff01, 0xff60],
];

/** Whether a variation selector follows a character that has such variants. */
function takesSelector(code: number, previous: number, next: number): boolean {
  if (code === 0xfe0f || code === 0xfe0e) {
    return isEmojiLike(previous) || (isKeycapBase(previous) && next === 0x20e3);
  }
  if (code >= 0xe0100) return code <= LAST_IDEOGRAPHIC && isHan(previous);
  if (code > 0xfe02) return false;
  return isHan(previous) || WITH_VARIANTS.some(([low, high]) => low <= previous && previous <= high);
}

/** Signs that belong to one script and show nothing by themselves, in text of that script. */
function isInScript(code: number, previous: number, next: number): boolean {
  if (code >= 0x180b && code <= 0x180f) return isMongolian(previous);
  if (code === 0x17b4 || code === 0x17b5) return previous >= 0x1780 && previous <= 0x17ff;
  if (code === 0x115f || code === 0x1160) return isJamo(previous) || isJamo(next);
  return code >= 0x1d173 && code <= 0x1d17a && isMusic(previous) && isMusic(next);
}

function isMongolian(code: number): boolean {
  return code >= 0x1820 && code <= 0x18aa;
}

function isJamo(code: number): boolean {
  return code >= 0x1100 && code <= 0x11ff && code !== 0x115f && code !== 0x1160;
}

function isMusic(code: number): boolean {
  return code >= 0x1d100 && code <= 0x1d1ff && !isInvisible(code);
}

/** Whether a joiner stands in an emoji, or beside a letter of a script whose spelling needs it. */
function isJoined(code: number, previous: number, next: number): boolean {
  if (code !== 0x200d && code !== 0x200c) return false;
  if (isZeroWidth(previous) || isZeroWidth(next)) return false;
  if (needsJoiners(previous) || (needsJoiners(next) && !isWordUnit(previous))) return true;
  return code === 0x200d && (isEmojiLike(previous) || previous === 0xfe0f) && isEmojiLike(next);
}

const FLAG = /\u{1f3f4}([\u{e0061}-\u{e007a}]{4,5})\u{e007f}/uy;
/** Tags that a flag takes, in code units. */
const MAX_FLAG_UNITS = 14;
/** England, Scotland, Wales, and the states of the USA, which some fonts have. */
const SUBDIVISION = /^(?:gb(?:eng|sct|wls|nir)|us[a-z]{2})$/;

/** Whether the tag at a position belongs to the flag of a subdivision (UTS #51, annex C). */
function isInFlag(text: string, at: number): boolean {
  const from = Math.max(0, at - MAX_FLAG_UNITS);
  const start = text.slice(from, at).lastIndexOf('\u{1f3f4}');
  if (start < 0) return false;
  FLAG.lastIndex = from + start;
  const tags = FLAG.exec(text)?.[1];
  if (tags === undefined || at >= FLAG.lastIndex) return false;
  const code = [...tags].map((tag) => String.fromCharCode((tag.codePointAt(0) ?? 0) - TAG_BASE));
  return SUBDIVISION.test(code.join(''));
}

const BIDI_CONTROL = /[\u202a-\u202e\u2066-\u2069]/;
const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]|[\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;

/**
 * Positions of the bidi controls that reorder text written from left to right: overrides, and embeddings and isolates
 * from right to left around text without a letter of such a script; with what closes them (UAX #9).
 */
function findReordering(text: string): ReadonlySet<number> {
  const found = new Set<number>();
  if (!BIDI_CONTROL.test(text)) return found;
  let lineStart = 0;
  while (lineStart <= text.length) {
    const end = text.indexOf('\n', lineStart);
    const lineEnd = end < 0 ? text.length : end;
    findReorderingIn(text.slice(lineStart, lineEnd), lineStart, found);
    lineStart = lineEnd + 1;
  }
  return found;
}

function findReorderingIn(line: string, offset: number, found: Set<number>): void {
  if (!BIDI_CONTROL.test(line)) return;
  const hasRightToLeft = RIGHT_TO_LEFT.test(line);
  const open: boolean[] = [];
  for (let at = 0; at < line.length; at++) {
    const code = line.charCodeAt(at);
    if (!isBidiControl(code)) continue;
    const isClosing = code === 0x202c || code === 0x2069;
    const isRemoved = isClosing ? (open.pop() ?? true) : reorders(code, hasRightToLeft);
    if (!isClosing) open.push(isRemoved);
    if (isRemoved) found.add(offset + at);
  }
}

/** Overrides always do; embeddings and isolates from right to left do where nothing is written so. */
function reorders(code: number, hasRightToLeft: boolean): boolean {
  if (code === 0x202d || code === 0x202e) return true;
  return (code === 0x202b || code === 0x2067) && !hasRightToLeft;
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
