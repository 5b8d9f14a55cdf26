// Removes what a reader does not see: invisible and bidi characters, tags, variation selectors,
// controls, and the escape sequences of terminals. What spelling needs stays: U+FE0E and U+FE0F after an
// emoji, a joiner inside an emoji or between letters of scripts that join.
// Source: UTS #51 §2; UAX #9; UTR #36 §3; ECMA-48 §5.4 and §8.3.

import { isEmojiLike, isInvisible, isKeycapBase, needsJoiners } from './code-points.js';

/** A text without what was removed, and how many characters or sequences that were. */
export type Stripped = { readonly text: string; readonly count: number };

const ESC = '\u001b';
const CSI = '\u009b';
const BEL = '\u0007';
const ST = '\u009c';

// CSI; then OSC, DCS, SOS, PM and APC with their strings; then the two-character sequences. A string
// stops at the next escape character, so no position is read twice.
const TERMINAL_SEQUENCE = new RegExp(
  `(?:${ESC}\\[|${CSI})[0-?]{0,64}[ -/]{0,16}[@-~]` +
    `|(?:${ESC}[\\]PX^_]|[\u0090\u0098\u009d-\u009f])[^${BEL}${ESC}${ST}]{0,4096}(?:${BEL}|${ESC}\\\\|${ST})` +
    `|${ESC}[ -/]{0,4}[0-~]`,
  'g',
);

const TERMINAL_START = new RegExp(`[${ESC}\u0080-\u009f]`);

/** Removes the escape sequences of terminals. Text that a sequence would hide becomes visible. */
export function stripTerminalSequences(text: string): Stripped {
  if (!TERMINAL_START.test(text)) return { text, count: 0 };
  let count = 0;
  const stripped = text.replace(TERMINAL_SEQUENCE, () => {
    count++;
    return '';
  });
  // What is left of a broken or nested sequence is inert once its first character is gone.
  const bare = stripped.replace(new RegExp(`[${ESC}\u0080-\u009f]`, 'g'), () => {
    count++;
    return '';
  });
  return { text: bare, count };
}

const BEYOND_PRINTABLE = /[^\t\n\r\x20-\x7e]/;

/** Removes invisible characters. Linear. */
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

/** Whether spelling needs an invisible character between the characters kept around it. */
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
