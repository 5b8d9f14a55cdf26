// Active content in pieces: texts of one result that are inert apart and act where a client shows them as
// one. Looks at them as clients join them, and cuts what it finds out of each text that holds a part of it.

import { findActiveContent, type Replacement } from './sanitize/active-content.js';
import { findCode } from './sanitize/code-regions.js';
import { isSurelyClean } from './sanitize/gate.js';

/** How clients join the texts of one result. */
const GLUES = ['', '\n', '\n\n'] as const;
/** What is still active after so many rounds is given up. */
const MAX_ROUNDS = 6;

/** The texts as they are inert together; undefined where they do not become so. */
export function neutralizeJoined(texts: readonly string[]): readonly string[] | undefined {
  if (isSurelyClean(texts.join(''))) return texts;
  let inert = texts;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const before = inert;
    for (const glue of GLUES) inert = neutralizeWith(inert, glue);
    if (inert === before) return inert;
  }
  return undefined;
}

/** Whether a text is data, in which addresses by themselves stay. */
function isData(text: string): boolean {
  if (!/^\s*[[{]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** What was found, without the addresses in texts that are data; all of it in order. */
function withoutData(
  found: readonly Replacement[],
  texts: readonly string[],
  glue: string,
): readonly Replacement[] {
  if (!found.some((one) => one.isBare === true)) return found;
  const data: { start: number; end: number }[] = [];
  let at = 0;
  for (const text of texts) {
    if (isData(text)) data.push({ start: at, end: at + text.length });
    at += text.length + glue.length;
  }
  let next = 0;
  return found.filter((one) => {
    while ((data[next]?.end ?? one.end) <= one.start) next++;
    return one.isBare !== true || (data[next]?.start ?? one.end) >= one.end;
  });
}

type Piece = { readonly start: number; readonly end: number; readonly text: string };

function neutralizeWith(texts: readonly string[], glue: string): readonly string[] {
  const joined = texts.join(glue);
  const found = withoutData(findActiveContent(joined, 'markdown', findCode(joined)), texts, glue);
  if (found.length === 0) return texts;
  const pieces = found.map((one) => shrink(joined, one));
  let start = 0;
  let first = 0;
  return texts.map((text) => {
    const end = start + text.length;
    while ((pieces[first]?.end ?? start) < start) first++;
    const own: Piece[] = [];
    for (let index = first; (pieces[index]?.start ?? end + 1) <= end; index++) {
      own.push(...pieceOf(pieces[index], start, end));
    }
    start = end + glue.length;
    return replaceAll(text, own);
  });
}

/** A replacement without what it leaves as it is at both ends. */
function shrink(joined: string, { start, end, text }: Replacement): Piece {
  const most = Math.min(end - start, text.length);
  let head = 0;
  while (head < most && joined[start + head] === text[head]) head++;
  let tail = 0;
  while (tail < most - head && joined[end - 1 - tail] === text[text.length - 1 - tail]) tail++;
  return { start: start + head, end: end - tail, text: text.slice(head, text.length - tail) };
}

/** What of a replacement falls on the text from `from` to `to`: it stands where it begins. */
function pieceOf(piece: Piece | undefined, from: number, to: number): readonly Piece[] {
  if (piece === undefined) return [];
  const { start, end, text } = piece;
  // What is only put in between two texts stands at the end of the first.
  const isPutIn = start === end && start > from && start <= to;
  const begins = isPutIn || (start < end && start >= from && start < to);
  if (!begins && !(end > from && start < from)) return [];
  return [
    {
      start: Math.max(start, from) - from,
      end: Math.min(end, to) - from,
      text: begins ? text : '',
    },
  ];
}

function replaceAll(text: string, pieces: readonly Piece[]): string {
  let inert = '';
  let at = 0;
  for (const piece of pieces) {
    inert += text.slice(at, piece.start) + piece.text;
    at = piece.end;
  }
  return inert + text.slice(at);
}
