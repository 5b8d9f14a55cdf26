// Which characters a reader does not see, and which ones a reader takes for plain ASCII.
// Own ranges, judged a code point at a time; never looks at a whole text.
// Source: Unicode 16.0, Default_Ignorable_Code_Point and Bidi_Control; UAX #15 (NFKC); UTS #51.

/** Inclusive ranges of characters that show nothing or reorder what stands around them. */
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

/** True for a character that shows nothing. Tab, line feed and carriage return are not among them. */
export function isInvisible(codePoint: number): boolean {
  for (const [low, high] of INVISIBLE_RANGES) {
    if (codePoint < low) return false;
    if (codePoint <= high) return true;
  }
  return false;
}

/** True where an emoji may stand before a variation selector or a joiner (UTS #51, coarse). */
export function isEmojiLike(codePoint: number): boolean {
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
export function isKeycapBase(codePoint: number): boolean {
  return (codePoint >= 0x30 && codePoint <= 0x39) || codePoint === 0x23 || codePoint === 0x2a;
}

/** Letters of scripts whose spelling needs joiners (Arabic, Syriac, the Indic scripts, Mongolian). */
export function needsJoiners(codePoint: number): boolean {
  return (
    (codePoint >= 0x600 && codePoint <= 0x8ff) ||
    (codePoint >= 0x900 && codePoint <= 0xfff) ||
    (codePoint >= 0x1000 && codePoint <= 0x109f) ||
    (codePoint >= 0x1780 && codePoint <= 0x18af)
  );
}

const foldedBmp: (string | undefined)[] = [];

/**
 * The printable ASCII that a reader sees in place of the character under NFKC: full-width digits,
 * mathematical letters, no-break spaces. The character itself where there is none.
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
  // Dashes that separate groups of digits have no compatibility mapping; the long ones never do.
  if ((codePoint >= 0x2010 && codePoint <= 0x2013) || codePoint === 0x2212) return '-';
  const own = String.fromCodePoint(codePoint);
  if (codePoint >= 0xd800 && codePoint <= 0xdfff) return own;
  const folded = own.normalize('NFKC');
  return /^[\x20-\x7e]+$/.test(folded) ? folded : own;
}

/** The ellipsis folds to dots, of which three in a row are in nothing that is looked for. */
function isOwnForm(code: number): boolean {
  return code === 0x2026 || foldCodePoint(code).charCodeAt(0) === code;
}

const SAFE = 1;
const UNSAFE = 2;
const safety = new Uint8Array(MAX_BMP + 1);

/** True for a character of the BMP beyond ASCII that no detector can mistake for something else. */
export function isPlainBeyondAscii(code: number, isConfusable: (code: number) => boolean): boolean {
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
