// Tells random values from what people write: words, series, repeats, years and the published samples of documentation.
// A value is random only where a stretch of it has enough characters that these do not explain. Linear. Never keeps
// what it is given.
// Source: the sample credentials of the vendors' documentation, RFC 6265, RFC 6749, RFC 7515, RFC 7617 and jwt.io.

import { sha256Hex } from '../../pins/digest.js';
import { groupBy } from '../../text/grouping.js';

/**
 * `sample`: words that documentation writes in place of a value. `any`: every word. `strict`: every word, except
 * that in a mixed-case value neither the first letter of a word nor a short part between signs counts, and in a
 * single-case value a short part counts only next to a word. Random values of 16 to 30 characters occasionally
 * consist of short pieces that each read like a word.
 */
type Vocabulary = 'sample' | 'any' | 'strict';

// SHA-256 digests of published samples, each after the length of its sample. The samples are not in this
// repository.
const PUBLISHED_SAMPLES: ReadonlySet<string> = new Set([
  // jwt.io, RFC 7515 appendix A.1
  '155 7f75367e7881255134e1375e723d1dea8ad5f6a4fdb79d938df1f1754a830606',
  '149 da816f9f2c16e6c5390e7636cadc40c43551bf0bbcf8f36c65539e6633a9c5e8',
  '172 c794fa6d20c64efb9adf980ae93af472a1679775862d421ffe55d4a57fad5b3e',
  '179 8d4ef6536dc8895f256c1e0d95dcd19763036732d64a095e44a90ed444267ad3',
  // AWS: access keys, then secret keys
  '20 1a5d44a2dca19669d72edf4c4f1c27c4c1ca4b4408fbb17f6ce4ad452d78ddb3',
  '20 cb20d34a7adda2f5d2043836051e242fd4c2b233e02c80c91fe9d5af9b100574',
  '20 c6ea27c534f993d31f0aef882e3d200e7b87470c379ae79c8f9b19d3bd363dc9',
  '40 78314b11be2e581549ac1c4f616563fad3fdf0c3b71678f6e2299182080e0598',
  '40 e21b597ba6b9cafa59d9ebc4d65c0385f5eb3fa56abab2607fa76589ad849a33',
  // Stripe
  '32 2cafc0970149a84f3b9e62eaf169f36f59907a3b3e31f7b82e68c69cd27f7326',
  '32 f2d6ca16515033e5dce14eba840b979d27b5cbae24bb3e5bf484339667f86397',
  // GitHub
  '40 bc3ae723f57c6b9e3fd80b699fcc420f6074b0b1718039669d22631d508ac0a7',
  '40 797c0ce414586cc8eb6929afe947c720e3e4d351dd070a6fe39f630beaab3054',
  '40 82e74299544e00738f9c0acb69b1eb348b3e20ffcfabcb34779bd37590fead6c',
  '40 3543c50b0cb9cea8e55eb1f529b79f043cb250d485fde7b66cabbb5183add7da',
  // Telegram
  '41 731fa294d036e54f19df879bfcd4fe72d967dc6327800c5f74a48414a3f258c9',
  // The Azure storage emulator
  '88 0011cc25eb4320717494d2703e8cba85743e71b500283c21c8b88147992f9059',
  // RFC 7617, RFC 6265 and the pages of MDN on cookies
  '28 cf4d418ed3de92d71f767db5391d5a2dacd40e1ce49e75d1137e2ecf4982d844',
  '26 d05f6bb1aa2e4ccd9e4a1d22f1edbe119406d3d1aa30261d699b4ff2bf72e59b',
  '24 ad62d48d8b069026a2a0d0291f857a77e1975edf610aa3502e8bc71bd96f513a',
  '16 687da00b09c83361bf3a2853b3a0c7d63ca5da870c8d3cdc20905c7aa546840a',
  '16 74add74f531606bedc14d07b97721948d39d82ed7e120e7217f72137614de5c6',
  '15 8d42ac9b5a7c00d48e81ec77bb0f3957f0ba0d932179506c219f6d7360b046c6',
  // RFC 6749
  '22 6c96130f130ab0d6d158397e24d2bcc1c9a5e73ae081f6e983f1c7b545d24a4c',
  '22 00cf4c781dc37003f7c7dd7d4c9a6ef1e0f4c62d9a291aa8bc398774e3fefd32',
]);
const SAMPLE_LENGTHS: ReadonlySet<string> = new Set([...PUBLISHED_SAMPLES].map((entry) => entry.split(' ')[0] ?? ''));

/** Whether a value is a sample published by a vendor or a standard. */
export function isPublishedSample(value: string): boolean {
  const length = String(value.length);
  return SAMPLE_LENGTHS.has(length) && PUBLISHED_SAMPLES.has(`${length} ${sha256Hex(value)}`);
}

/** Random text has more distinct characters; in a short stretch, at least half as many as its length. */
const MIN_DISTINCT = 5;

/**
 * Whether a stretch of `window` characters has at least `unexplained` characters that belong to neither a word
 * nor a pattern. A shorter value is a single stretch.
 */
export function hasRandomWindow(
  value: string,
  window: number,
  { vocabulary, unexplained }: { readonly vocabulary: Vocabulary; readonly unexplained: number },
): boolean {
  const isKnown = explainedCharacters(value, vocabulary);
  const size = Math.min(window, value.length);
  let open = 0;
  for (let at = 0; at < value.length; at++) {
    open += isKnown[at] === 0 ? 1 : 0;
    if (at >= size) open -= isKnown[at - size] === 0 ? 1 : 0;
    const isRandom = at >= size - 1 && open >= unexplained;
    if (isRandom && isVaried(value.slice(at - size + 1, at + 1))) return true;
  }
  return false;
}

function isVaried(stretch: string): boolean {
  const least = Math.min(MIN_DISTINCT, stretch.length >> 1);
  let seen = '';
  for (let at = 0; at < stretch.length; at++) {
    const unit = stretch.charAt(at);
    if (seen.includes(unit)) continue;
    seen += unit;
    if (seen.length >= least) return true;
  }
  return false;
}

/** Counts the characters of a value that belong to no sample word, pattern or sign. */
export function countUnexplained(value: string): number {
  return explainedCharacters(value, 'sample').reduce((count, known) => count + (known === 0 ? 1 : 0), 0);
}

/** For each character, 0 unless it belongs to a repeat, a series or a word, or is a sign between them. */
function explainedCharacters(value: string, vocabulary: Vocabulary): Uint8Array {
  const known = new Uint8Array(value.length);
  const codes = codesOf(value, known);
  markRepeats(known, codes);
  foldCase(codes);
  markSeries(known, codes);
  markAll(known, value, SAMPLE_TERMS);
  const isDoubtful = vocabulary === 'strict' && /[a-z]/.test(value) && /[A-Z]/.test(value);
  if (vocabulary !== 'sample') markDictionaryTerms(known, value, isDoubtful ? 1 : 0);
  if (YEARS.test(value)) markAll(known, value, YEAR);
  markParts(
    known,
    value,
    vocabulary === 'any' ? 'all' : vocabulary === 'sample' || isDoubtful ? 'none' : 'beside words',
  );
  return known;
}

/** Signs occur between words and within encodings, so they indicate neither. */
const SIGNS = new Set([...'-_.=/+:%,;() \t\n\r\\<>[]{}$*#"\'\u2026'].map((unit) => unit.charCodeAt(0)));

/** The character codes of a value. Marks signs as known. */
function codesOf(value: string, known: Uint8Array): Uint16Array {
  const codes = new Uint16Array(known.length);
  for (let at = 0; at < codes.length; at++) {
    const code = value.charCodeAt(at);
    codes[at] = code;
    if (SIGNS.has(code)) known[at] = 1;
  }
  return codes;
}

function foldCase(codes: Uint16Array): void {
  for (let at = 0; at < codes.length; at++) {
    const folded = (codes[at] ?? 0) | 0x20;
    if (folded >= LETTER_A && folded <= LETTER_Z) codes[at] = folded;
  }
}

function markAll(known: Uint8Array, value: string, pattern: RegExp): void {
  pattern.lastIndex = 0;
  for (let match = pattern.exec(value); match !== null; match = pattern.exec(value)) {
    known.fill(1, match.index, pattern.lastIndex);
  }
}

const MAX_PERIOD = 8;
// Minimum length of a repeat that is not chance, by short period: four times one character, three times two or three.
const MIN_REPEAT = [0, 4, 6, 9];

function markRepeats(known: Uint8Array, codes: Uint16Array): void {
  for (let period = 1; period <= MAX_PERIOD; period++) {
    const least = MIN_REPEAT[period] ?? 2 * period;
    let start = 0;
    for (let at = period; at <= codes.length; at++) {
      if (at < codes.length && codes[at] === codes[at - period]) continue;
      if (at - start >= least && !isChance(codes, start, at, period)) known.fill(1, start, at);
      start = at - period + 1;
    }
  }
}

/** A piece that mixes cases or letters and digits is there twice by chance; three times it is a pattern. */
function isChance(codes: Uint16Array, start: number, end: number, period: number): boolean {
  if (end - start >= 3 * period) return false;
  return new Set(Array.from(codes.subarray(start, start + period), kindOf)).size > 1;
}

function kindOf(code: number): 'digit' | 'upper' | 'lower' | 'other' {
  if (isDigit(code)) return 'digit';
  if (code >= UPPER_A && code <= UPPER_Z) return 'upper';
  return code >= LETTER_A && code <= LETTER_Z ? 'lower' : 'other';
}

const MIN_SERIES = 4;
/** The same directly after something known. */
const MIN_NEXT_SERIES = 3;

/** Letters or digits that count up or down, such as 1234, FEDC and the 90 between 789 and 012. */
function markSeries(known: Uint8Array, codes: Uint16Array): void {
  for (const step of [1, -1]) {
    let start = 0;
    for (let at = 1; at <= codes.length; at++) {
      if (at < codes.length && isNextInSeries(codes[at - 1] ?? 0, codes[at] ?? 0, step)) continue;
      if (at - start >= leastSeries(known, start)) known.fill(1, start, at);
      start = at;
    }
  }
}

function leastSeries(known: Uint8Array, start: number): number {
  return start > 0 && known[start - 1] === 1 ? MIN_NEXT_SERIES : MIN_SERIES;
}

const ZERO = 0x30;
const NINE = 0x39;
const UPPER_A = 0x41;
const UPPER_Z = 0x5a;
const LETTER_A = 0x61;
const LETTER_Z = 0x7a;

function isNextInSeries(before: number, code: number, step: number): boolean {
  if (step > 0 && before === NINE && (code === ZERO || code === LETTER_A)) return true;
  if (step < 0 && before === ZERO && code === NINE) return true;
  return code - before === step;
}

// Words that documentation, tests and code write in place of a value. Matched in any case, also inside other
// letters.
const SAMPLE_TERMS = termPattern(
  [
    'placeholder|example|sample|dummy|fake|mock|demo|test|xxx|your|my|insert|replace|enter|paste|change|changeme',
    'here|goes|this|with|real|some|custom|default|invalid|redacted|hidden|todo|null|none|undefined|value|string',
    'password|passw0rd|p@ssw0rd|p@ssword|p4ssw0rd|pa55word|passwd|pass|s3cret|s3cr3t|secret|token|credential|credentials|key|api|access|refresh',
    'client|auth|authorization|bearer|oauth2?|account|username|user|admin|root|guest|postgres|project|org|name|id',
    'local|localhost|development|production|staging|super|strong|secure|random|generated|private|public',
    'length|characters?|chars?|least|minimum|long|process|environ|getenv|env|config|settings|vars',
    'b64decode|b64encode|b64|base64url|base64|utf8|sha1|sha256|sha384|sha512|md5|uint8|int32|int64|uint32',
    'ed25519|x25519|rs256|hs256|es256|p256|oauth2|decode|encode|buffer|array|digest|bytes?|uuid4?',
    'hashed|secr3t|p@ss|abc123xyz|abc123|blahblah|monkey|letmein|iloveyou|trustno1|changeit',
    'qwerty|asdf|foobar|foo|bar|baz|lorem|ipsum|deadbeef|cafebabe|openai|anthropic|github|google|azure|stripe|slack',
  ]
    .join('|')
    .split('|'),
);

// One pattern for many words, longest first, grouped by first letter because most characters begin no word.
function termPattern(terms: readonly string[]): RegExp {
  const sorted = [...terms].sort((one, other) => other.length - one.length);
  const byFirst = groupBy(sorted, (word) => word.charAt(0));
  const branches = [...byFirst].map(([first, alike]) => `${first}(?:${alike.map((word) => word.slice(1)).join('|')})`);
  return new RegExp(branches.join('|'), 'gi');
}

/** For each letter, the letters that follow it in words. */
const LETTER_SUCCESSORS: readonly string[] = [
  'bcdfgiklmnprstuvwxy',
  'aeilorsu',
  'acehiklorstuy',
  'adegilorsuy',
  'abcdefgilmnopqrstvwxy',
  'aefilortuy',
  'aeghilnorsu',
  'aeiortu',
  'abcdefglmnoprstvxz',
  'aeos',
  'aeils',
  'adeilostuvy',
  'abeimopsu',
  'acdefgiklnostuvy',
  'abcdfgiklmnoprstuvwy',
  'aehiloprstu',
  'u',
  'acdefgiklmnorstuvy',
  'acefhiklnopstuwy',
  'acehiloprstuwy',
  'abcdegilmnprst',
  'aeio',
  'aehinors',
  'ceipt',
  'einps',
  'ae',
];

/** Words as written, including those joined in camelCase. */
const WORD = /[A-Z][a-z]{3,}|[a-z]{4,}|[A-Z]{4,}/g;
/** One letter pair in this many may be a rare one. */
const RARE_PAIRS = 6;

/** Marks words, leaving the first `skipped` letters of each unmarked. */
function markDictionaryTerms(known: Uint8Array, value: string, skipped: number): void {
  WORD.lastIndex = 0;
  for (let match = WORD.exec(value); match !== null; match = WORD.exec(value)) {
    if (isWord(match[0].toLowerCase())) known.fill(1, match.index + skipped, WORD.lastIndex);
  }
}

export function isWord(word: string): boolean {
  let rare = 0;
  for (let at = 1; at < word.length; at++) {
    const successors = LETTER_SUCCESSORS[word.charCodeAt(at - 1) - LETTER_A] ?? '';
    if (!successors.includes(word.charAt(at))) rare++;
  }
  return rare * RARE_PAIRS <= word.length - 1 && /[aeiouy]/.test(word);
}

const YEARS = /19|20/;
const YEAR = /(?<!\d)(?:19|20)\d\d(?!\d)/g;
/** A part between signs that counts by itself: a short word or a short number. */
const SHORT_PART = /^(?:[a-z]{1,5}|[A-Z]{1,5}|[A-Z][a-z]{1,2}|\d{1,4})$/;
export const MAX_SHORT = 5;
const MAX_COUNT_DIGITS = 3;

/** Which short parts count as known. */
type ShortParts = 'none' | 'beside words' | 'all';
/** Marks a short part, which does not make its neighbours count as next to a word. */
const SHORT_MARK = 2;

/** Whether a word ends before the sign in front of a part, or begins after the sign behind it. */
function isBesideWord(known: Uint8Array, value: string, start: number, end: number): boolean {
  return [start - 2, end + 1].some((at) => known[at] === 1 && isAlphanumeric(value.charCodeAt(at)));
}

/** Marks short parts between signs, and the numbers that end enumerated words. */
function markParts(known: Uint8Array, value: string, short: ShortParts): void {
  let start = 0;
  for (let at = 0; at <= value.length; at++) {
    if (at < value.length && isAlphanumeric(value.charCodeAt(at))) continue;
    const isShort = short !== 'none' && at - start <= MAX_SHORT;
    if (isShort && SHORT_PART.test(value.slice(start, at))) {
      if (short === 'all' || isBesideWord(known, value, start, at)) known.fill(SHORT_MARK, start, at);
    }
    markCount(known, value, at);
    start = at + 1;
  }
}

/** Marks a number of few digits after a word or at the start of the value. */
function markCount(known: Uint8Array, value: string, end: number): void {
  let start = end;
  while (start > 0 && end - start <= MAX_COUNT_DIGITS && isDigit(value.charCodeAt(start - 1))) {
    start--;
  }
  if (end - start > MAX_COUNT_DIGITS) return;
  if (start === 0 || known[start - 1] === 1) known.fill(1, start, end);
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}

function isAlphanumeric(code: number): boolean {
  return isDigit(code) || ((code | 0x20) >= LETTER_A && (code | 0x20) <= LETTER_Z);
}

/** Whether at least half of what is not blank belongs to words. */
export function isMostlyTerms(text: string): boolean {
  const known = new Uint8Array(text.length);
  markAll(known, text, SAMPLE_TERMS);
  markDictionaryTerms(known, text, 0);
  const count = known.reduce((sum, one) => sum + one, 0);
  return count * 2 >= text.replaceAll(' ', '').length;
}

/** A value without the marks of redactions, whose tags look random. */
export function withoutMarks(value: string): string {
  return value.includes('[redacted:') ? value.replace(REDACTION, '') : value;
}

const REDACTION = /\[redacted:[a-z0-9-]{1,40}(?:#[a-z2-7]{4})?\]/g;
