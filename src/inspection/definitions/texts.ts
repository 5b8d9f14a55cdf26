// Lists what a definition says: every string and every name of a member, each by itself, and then those of one sort in
// a row (the names, the titles, the descriptions, the values, and all together), because a model reads them in a row.
// Pure and bounded.

import type { Json, JsonObject } from '../../protocol/jsonrpc.js';
import { MAX_ITEM_DEPTH } from '../../protocol/odd-items.js';
import { pointerTo } from '../../text/json-members.js';
import { splitName, splitProse } from './splitting.js';

/** A string of a definition with its place. `isProse` is false for a name. */
export type Text = {
  readonly pointer: string;
  readonly value: string;
  readonly isProse: boolean;
};

/** Of one definition, with a page of an app and its scripts; the size of a lock file bounds all of them. */
const MAX_CHARACTERS = 2_000_000;
const MAX_STRINGS = 20_000;
const MAX_DEPTH = MAX_ITEM_DEPTH;

export const NOT_SCANNED = 'so nobody has looked for hidden instructions in it';
const TOO_LONG = `The definition has more than ${MAX_CHARACTERS} characters and is not scanned, ${NOT_SCANNED}.`;
const TOO_MANY_TEXTS = `The definition has more than ${MAX_STRINGS} texts and is not scanned, ${NOT_SCANNED}.`;
const TOO_DEEP = `The definition is nested more than ${MAX_DEPTH} levels deep and is not scanned, ${NOT_SCANNED}.`;

/** What holds the name of the definition itself, or of an argument of a prompt. */
const NAME_POINTER = /^(?:\/arguments\/\d+)?\/name$/;

/** Every string of a definition, and the names of its members; beyond a bound, the sentence that names it. */
export function textsOf(definition: JsonObject | string): readonly Text[] | string {
  const texts: Text[] = [];
  let left = MAX_CHARACTERS;
  const exceeded = (depth: number): string | undefined => {
    if (depth > MAX_DEPTH) return TOO_DEEP;
    if (texts.length > MAX_STRINGS) return TOO_MANY_TEXTS;
    return left < 0 ? TOO_LONG : undefined;
  };
  /** The bound that is passed. */
  const visit = (value: Json | undefined, pointer: string, depth: number): string | undefined => {
    if (typeof value === 'string') {
      left -= value.length;
      texts.push({ pointer, value, isProse: !NAME_POINTER.test(pointer) });
    }
    const passed = exceeded(depth);
    if (passed !== undefined || typeof value !== 'object' || value === null) return passed;
    return visitMembers(value, pointer, depth);
  };
  const visitMembers = (
    value: JsonObject | readonly Json[],
    pointer: string,
    depth: number,
  ): string | undefined => {
    for (const [name, member] of Object.entries(value)) {
      const inner = pointerTo(pointer, name);
      if (!Array.isArray(value)) texts.push({ pointer: inner, value: name, isProse: false });
      left -= name.length;
      const passed = visit(member, inner, depth + 1);
      if (passed !== undefined) return passed;
    }
    return undefined;
  };
  return visit(definition, '', 0) ?? texts;
}

/** Several texts in a row, as words. */
export type Row = {
  readonly value: string;
  /** Where each text begins and ends in it, in order. */
  readonly parts: readonly Part[];
};
export type Part = { readonly pointer: string; readonly start: number; readonly end: number };

/** How much of the beginning and of the end of a text is read together with its neighbours. */
const BORDER = 240;
/** A text of so many words or fewer may be a piece of a sentence although it ends with a full stop. */
const PIECE_SIZE = 8;

/** The names and texts of a definition in rows, as a model reads them: each sort by itself, and all together. */
export function rowsOf(texts: readonly Text[]): readonly Row[] {
  const readable = readableOf(texts);
  const prose = readable.filter(({ isProse }) => isProse);
  const rows = [...sortsOf(readable), prose, readable].filter((row) => row.length > 1);
  // Where there is one sort only, it is the same as all.
  const distinct = rows.filter(
    (row, at) =>
      !rows
        .slice(0, at)
        .some(
          (one) => one.length === row.length && one.every((text, index) => text === row[index]),
        ),
  );
  return distinct.map(toRow);
}

/**
 * The names of several definitions in a row, their titles and their descriptions. A list mixes them, and the title of a
 * definition continues no description of another: `with no arguments`, `Arguments Prompt` is no order.
 */
export function rowsAcross(texts: readonly Text[]): readonly Row[] {
  return sortsOf(readableOf(texts))
    .filter((row) => row.length > 1)
    .map(toRow);
}

function readableOf(texts: readonly Text[]): readonly Text[] {
  return inReadingOrder(texts).filter((text) => !isKeyword(text));
}

/** Names, titles, descriptions, and all other prose. */
function sortsOf(readable: readonly Text[]): readonly (readonly Text[])[] {
  const prose = readable.filter(({ isProse }) => isProse);
  return [
    readable.filter(({ isProse }) => !isProse),
    ...['title', 'description', undefined].map((sort) =>
      prose.filter(({ pointer }) => sortOf(pointer) === sort),
    ),
  ];
}

function sortOf(pointer: string): string | undefined {
  return /\/(title|description)$/.exec(pointer)?.[1];
}

const FIRST = ['/name', '/title', '/description'];

/** What a client shows first comes first. */
function inReadingOrder(texts: readonly Text[]): readonly Text[] {
  const rank = ({ pointer, isProse }: Text): number => {
    const at = FIRST.indexOf(pointer);
    return at < 0 || (!isProse && pointer !== '/name') ? FIRST.length : at;
  };
  return [...texts].sort((one, other) => rank(one) - rank(other));
}

/** Members whose own members are named by the author of a definition. */
const NAMING =
  /\/(?:properties|patternProperties|\$defs|definitions|dependentSchemas|_meta)\/[^/]+$/;
const KEYWORDS: ReadonlySet<string> = new Set(
  'name title description inputSchema outputSchema annotations arguments type properties patternProperties required items prefixItems additionalProperties enum const default examples format pattern anyOf oneOf allOf not if then else $defs definitions $ref $schema $id minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems uniqueItems minProperties maxProperties nullable readOnlyHint destructiveHint idempotentHint openWorldHint uri uriTemplate mimeType icons size'.split(
    ' ',
  ),
);
const TYPES: ReadonlySet<string> = new Set(
  'string number integer boolean object array null'.split(' '),
);

/** What is a word of JSON Schema or of MCP rather than of the author. */
function isKeyword({ pointer, value, isProse }: Text): boolean {
  if (isProse) return TYPES.has(value) || /\/\$(?:schema|ref|id)$/.test(pointer);
  return pointer.endsWith(`/${value}`) && KEYWORDS.has(value) && !NAMING.test(pointer);
}

function toRow(texts: readonly Text[]): Row {
  const parts: Part[] = [];
  let value = '';
  for (const { pointer, value: text, isProse } of texts) {
    const piece = isProse ? pieceOf(splitProse(endsOf(text))) : splitName(text);
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
