// Lists what a definition says by the map of its strings: each by itself, and then those of one group in a row (the
// names, the titles, the descriptions, the values, and all together), because a model reads them in a row. Pure and
// bounded.

import { walkValue } from '../../protocol/json/walk.js';
import type { JsonObject } from '../../protocol/jsonrpc.js';
import { MAX_ITEM_DEPTH } from '../../protocol/odd-items.js';
import type { Span } from '../../text/span.js';
import { type DefinitionText, definitionTextsAt } from '../message-map.js';
import { splitName, splitProse } from './splitting.js';

/** Of one definition, with a page of an app and its scripts; the size of a lock file bounds all of them. */
const MAX_CHARACTERS = 2_000_000;
const MAX_STRINGS = 20_000;
const MAX_DEPTH = MAX_ITEM_DEPTH;

export const NOT_SCANNED = 'so nobody has looked for hidden instructions in it';
const TOO_LONG = `The definition has more than ${MAX_CHARACTERS} characters and is not scanned, ${NOT_SCANNED}.`;
const TOO_MANY_TEXTS = `The definition has more than ${MAX_STRINGS} texts and is not scanned, ${NOT_SCANNED}.`;
const TOO_DEEP = `The definition is nested more than ${MAX_DEPTH} levels deep and is not scanned, ${NOT_SCANNED}.`;

/** Every string of a definition, and the names of its members; beyond a bound, the sentence that names it. */
export function textsOf(definition: JsonObject | string): readonly DefinitionText[] | string {
  const texts: DefinitionText[] = [];
  let characters = 0;
  /** The bound that is passed. */
  let passed: string | undefined;
  walkValue(definition, [], (value, steps) => {
    if (passed !== undefined) return false;
    characters += String(steps.at(-1) ?? '').length;
    if (typeof value === 'string') characters += value.length;
    texts.push(...definitionTextsAt(value, steps));
    if (steps.length > MAX_DEPTH) passed = TOO_DEEP;
    else if (texts.length > MAX_STRINGS) passed = TOO_MANY_TEXTS;
    else if (characters > MAX_CHARACTERS) passed = TOO_LONG;
    return passed === undefined;
  });
  return passed ?? texts;
}

/** Several texts in a row, as words. */
export type Row = {
  readonly value: string;
  /** Where each text begins and ends in it, in order. */
  readonly parts: readonly Part[];
};
export type Part = Span & { readonly pointer: string };

/** How much of the beginning and of the end of a text is read together with its neighbours. */
const BORDER = 240;
/** A text of so many words or fewer may be a piece of a sentence although it ends with a full stop. */
const PIECE_SIZE = 8;

/** The names and texts of a definition in rows, as a model reads them: each sort by itself, and all together. */
export function rowsOf(texts: readonly DefinitionText[]): readonly Row[] {
  const readable = readableOf(texts);
  const prose = readable.filter(({ isName }) => !isName);
  const rows = [...sortsOf(readable), prose, readable].filter((row) => row.length > 1);
  // Where there is one sort only, it is the same as all.
  const distinct = rows.filter(
    (row, at) =>
      !rows.slice(0, at).some((one) => one.length === row.length && one.every((text, index) => text === row[index])),
  );
  return distinct.map(toRow);
}

/**
 * The names of several definitions in a row, their titles and their descriptions. A list mixes them, and the title of a
 * definition continues no description of another: `with no arguments`, `Arguments Prompt` is no order.
 */
export function rowsAcross(texts: readonly DefinitionText[]): readonly Row[] {
  return sortsOf(readableOf(texts))
    .filter((row) => row.length > 1)
    .map(toRow);
}

function readableOf(texts: readonly DefinitionText[]): readonly DefinitionText[] {
  return inReadingOrder(texts).filter(({ group }) => group !== undefined);
}

/** Names, titles, descriptions, and all other prose. */
function sortsOf(readable: readonly DefinitionText[]): readonly (readonly DefinitionText[])[] {
  return SORTS.map((sort) => readable.filter(({ group }) => group === sort));
}

const SORTS = ['name', 'title', 'description', 'other'] as const;
const FIRST = ['/name', '/title', '/description'];

/** What a client shows first comes first. */
function inReadingOrder(texts: readonly DefinitionText[]): readonly DefinitionText[] {
  const rank = ({ pointer, isName }: DefinitionText): number => {
    const at = FIRST.indexOf(pointer);
    return at < 0 || (isName && pointer !== '/name') ? FIRST.length : at;
  };
  return [...texts].sort((one, other) => rank(one) - rank(other));
}

function toRow(texts: readonly DefinitionText[]): Row {
  const parts: Part[] = [];
  let value = '';
  for (const { pointer, value: text, isName } of texts) {
    const piece = isName ? splitName(text) : pieceOf(splitProse(endsOf(text)));
    if (piece === '') continue;
    if (value !== '') value += ' ';
    parts.push({ pointer, start: value.length, end: value.length + piece.length });
    value += piece;
  }
  return { value, parts };
}

/** The beginning and the end of a text, which is all that a neighbour completes. */
function endsOf(text: string): string {
  if (text.length <= 2 * BORDER) return text;
  return `${text.slice(0, BORDER)}\n\n${text.slice(-BORDER)}`;
}

/** A few words without the full stop at their end. */
function pieceOf(text: string): string {
  const trimmed = text.trim();
  if (trimmed.length > PIECE_SIZE * 25 || trimmed.split(/\s+/).length > PIECE_SIZE) return trimmed;
  return trimmed.replace(/[.!?;\u2026]+$/, '');
}

/** The parts of a row that a span touches, if they are several: what is in one part is read there. */
export function partsAcross({ parts }: Row, start: number, end: number): readonly Part[] {
  const from = firstEndingAfter(parts, start);
  const across: Part[] = [];
  for (let at = from; at < parts.length; at += 1) {
    const part = parts[at];
    if (part === undefined || part.start >= end) break;
    across.push(part);
  }
  return across.length > 1 ? across : [];
}

function firstEndingAfter(parts: readonly Part[], position: number): number {
  let low = 0;
  let high = parts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((parts[middle]?.end ?? 0) > position) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The pointer to what holds all of these parts. */
export function commonPointer(parts: readonly Part[]): string {
  const [first = [], ...others] = parts.map(({ pointer }) => pointer.split('/'));
  const same = first.findIndex((step, at) => others.some((other) => other[at] !== step));
  return first.slice(0, same < 0 ? first.length : same).join('/');
}
