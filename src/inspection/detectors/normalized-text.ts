// Produces views of a text as its reader sees it, with a map back to the original, so that what a detector finds
// in a view can be removed from the original. Never decides what is harmful.
// Source: UAX #15 (NFKC); RFC 3986 §2.1; HTML §13.2.5.72 (character references); ECMA-262 §12.9.4.

import { foldCodePoint, isInvisible } from './unicode.js';

/** `starts[i]` and `ends[i]` are the original span of code unit `i`. No map where the view equals the text. */
export type NormalizedText = {
  readonly text: string;
  readonly map: { readonly starts: Int32Array; readonly ends: Int32Array } | undefined;
};

/** The original span of a view's code units from `start` to `end`. Requires `start < end`. */
export function originalSpan(
  normalized: NormalizedText,
  start: number,
  end: number,
): { readonly start: number; readonly end: number } {
  if (normalized.map === undefined) return { start, end };
  return { start: normalized.map.starts[start] ?? start, end: normalized.map.ends[end - 1] ?? end };
}

const BEYOND_PRINTABLE = /[^\t\n\r\x20-\x7e]/;

/** Drops invisible characters and folds compatibility forms of ASCII to ASCII. Linear. */
export function foldText(text: string): NormalizedText {
  if (!BEYOND_PRINTABLE.test(text)) return { text, map: undefined };
  const out = createOutput();
  let isChanged = false;
  for (let at = 0; at < text.length; ) {
    const code = text.codePointAt(at) ?? 0;
    const own = code > 0xffff ? text.slice(at, at + 2) : text.charAt(at);
    const folded = code > 0x7e || code < 0x20 ? foldVisible(code, own) : own;
    isChanged ||= folded !== own;
    out.put(folded, at, at + own.length);
    at += own.length;
  }
  return isChanged ? out.toNormalizedText(undefined) : { text, map: undefined };
}

function foldVisible(code: number, own: string): string {
  if (code === 0x09 || code === 0x0a || code === 0x0d) return own;
  return isInvisible(code) ? '' : foldCodePoint(code);
}

/** Named references to characters that detectors look for. Others stay as written. */
const NAMED_REFERENCES: ReadonlyMap<string, string> = new Map([
  ['amp', '&'],
  ['excl', '!'],
  ['dollar', '$'],
  ['percnt', '%'],
  ['ast', '*'],
  ['midast', '*'],
  ['comma', ','],
  ['semi', ';'],
  ['quest', '?'],
  ['hat', '^'],
  ['underbar', '_'],
  ['grave', '`'],
  ['diacriticalgrave', '`'],
  ['lcub', '{'],
  ['lbrace', '{'],
  ['rcub', '}'],
  ['rbrace', '}'],
  ['vert', '|'],
  ['verbar', '|'],
  ['verticalline', '|'],
  ['lbrack', '['],
  ['rbrack', ']'],
  ['fjlig', 'fj'],
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
  ['apos', "'"],
  ['colon', ':'],
  ['lowbar', '_'],
  ['period', '.'],
  ['sol', '/'],
  ['bsol', '\\'],
  ['equals', '='],
  ['hyphen', '-'],
  ['dash', '-'],
  ['plus', '+'],
  ['num', '#'],
  ['commat', '@'],
  ['lpar', '('],
  ['rpar', ')'],
  ['lsqb', '['],
  ['rsqb', ']'],
  ['nbsp', ' '],
  ['shy', ''],
  ['zwnj', ''],
  ['zwj', ''],
  ['lrm', ''],
  ['rlm', ''],
  ['nobreak', ''],
  ['zerowidthspace', ''],
  ['invisibletimes', ''],
  ['invisiblecomma', ''],
  ['applyfunction', ''],
  ['tab', '\t'],
  ['newline', '\n'],
]);

const ESCAPE =
  /%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\u\{[0-9A-Fa-f]{1,6}\}|\\x[0-9A-Fa-f]{2}|&#[0-9]{1,7};?|&#[xX][0-9A-Fa-f]{1,6};?|&[A-Za-z]{2,16};/g;

/**
 * Decodes percent triplets, `\u` and `\x` escapes and character references once; percent triplets only to ASCII.
 * Returns the same view where nothing is decoded. Linear.
 */
export function decodeEscapes(normalized: NormalizedText): NormalizedText {
  const { text } = normalized;
  ESCAPE.lastIndex = 0;
  let match = ESCAPE.exec(text);
  if (match === null) return normalized;
  const out = createOutput();
  let at = 0;
  let isChanged = false;
  while (match !== null) {
    const decoded = decodeOne(match[0]);
    if (decoded !== undefined) {
      out.copy(text, at, match.index);
      out.put(decoded, match.index, ESCAPE.lastIndex);
      at = ESCAPE.lastIndex;
      isChanged = true;
    }
    match = ESCAPE.exec(text);
  }
  if (!isChanged) return normalized;
  out.copy(text, at, text.length);
  return out.toNormalizedText(normalized.map);
}

function decodeOne(encoded: string): string | undefined {
  if (encoded.startsWith('%')) return fromCode(Number.parseInt(encoded.slice(1), 16), 0x7f);
  if (encoded.startsWith('\\')) {
    return fromCode(Number.parseInt(encoded.replace(/[\\ux{}]/g, ''), 16), 0x10ffff);
  }
  if (encoded.startsWith('&#')) {
    const isHex = encoded[2] === 'x' || encoded[2] === 'X';
    const digits = encoded.slice(isHex ? 3 : 2).replace(';', '');
    return fromCode(Number.parseInt(digits, isHex ? 16 : 10), 0x10ffff);
  }
  return NAMED_REFERENCES.get(encoded.slice(1, -1).toLowerCase());
}

function fromCode(code: number, max: number): string | undefined {
  return code <= max ? String.fromCodePoint(code) : undefined;
}

type Output = {
  put(text: string, start: number, end: number): void;
  copy(text: string, from: number, to: number): void;
  toNormalizedText(outer: NormalizedText['map']): NormalizedText;
};

function createOutput(): Output {
  const pieces: string[] = [];
  const starts: number[] = [];
  const ends: number[] = [];
  return {
    put(text, start, end) {
      pieces.push(text);
      for (let unit = 0; unit < text.length; unit++) {
        starts.push(start);
        ends.push(end);
      }
    },
    copy(text, from, to) {
      if (from === to) return;
      pieces.push(text.slice(from, to));
      for (let unit = from; unit < to; unit++) {
        starts.push(unit);
        ends.push(unit + 1);
      }
    },
    toNormalizedText(outer) {
      const map = { starts: new Int32Array(starts.length), ends: new Int32Array(ends.length) };
      // A manual loop: `Int32Array.from` takes many times as long.
      for (let at = 0; at < starts.length; at++) {
        const start = starts[at] ?? 0;
        const end = ends[at] ?? 0;
        map.starts[at] = outer?.starts[start] ?? start;
        map.ends[at] = outer?.ends[end - 1] ?? end;
      }
      return { text: pieces.join(''), map };
    },
  };
}
