// Leaves items out of a list that no strict reader could read, so that one of them does not cost the others: nested deeper
// than any walk over a message goes, with a name that readers take differently, or not JSON at all. Works on the text,
// because nothing builds values of what readers could read differently. Linear; does not recurse. Also says what is odd
// about the cursor of a page.
// Source: RFC 8259 §4 and §9; RFC 7493 §2.1 and §2.3.

import { kindOf } from '../text/clause.js';
import type { TextEdit } from './admitted-request.js';
import {
  applyEdits,
  decodeUtf8,
  elementSpans,
  type JsonReading,
  MAX_JSON_DEPTH,
  memberSpans,
  readJson,
  readJsonText,
  spanOf,
} from './json/json.js';
import { type JsonCaps, type JsonError, scanJson } from './json/strict-scan.js';
import type { Json } from './jsonrpc.js';
import { LIST_MEMBERS } from './methods.js';

/** The levels of a response around an item of a list: the message, its result, the list. */
const LEVELS_AROUND_ITEM = 3;

/** The most levels that an item of a list may have. */
export const MAX_ITEM_DEPTH = MAX_JSON_DEPTH - LEVELS_AROUND_ITEM;

/** What is wrong with an item that is left out. */
type ItemError = Exclude<JsonError, 'too-many-values'>;

/** Stand in a list for an item that was left out. As a text it is no definition, and it says why. */
export const LEFT_OUT: { readonly [error in ItemError]: string } = {
  'too-deep': `nested deeper than ${MAX_ITEM_DEPTH} levels`,
  'duplicate-key': 'duplicate member names, or names that some readers take for duplicates',
  'prototype-member': 'a member named __proto__',
  'lone-surrogate': 'half of a surrogate pair in a name',
  'malformed-json': 'not valid JSON',
};

const CAUSES: ReadonlySet<Json> = new Set(Object.values(LEFT_OUT));

/** Why an item was left out, if the entry stands for one. */
export function causeOfLeftOut(entry: Json): string | undefined {
  return typeof entry === 'string' && CAUSES.has(entry) ? entry : undefined;
}

const LISTED: ReadonlySet<string> = new Set(LIST_MEMBERS.values());

/** Whether a member of a result is a list of definitions or resources. */
export function isListMember(name: string): boolean {
  return LISTED.has(name);
}

/** What is wrong with the cursor of a page. One that is no string leads nowhere, and SDK clients reject the page for it. */
export function describeOddCursor({ nextCursor }: { readonly nextCursor?: Json }): string | undefined {
  if (nextCursor === undefined || nextCursor === null || typeof nextCursor === 'string') return undefined;
  return `nextCursor: expected string, got ${kindOf(nextCursor)}`;
}

/** Errors that may be those of one item. Half of a surrogate pair is mended where it stands in a text. */
const ERRORS_OF_ITEMS: ReadonlySet<JsonError> = new Set<JsonError>([
  ...(['too-deep', 'duplicate-key', 'prototype-member', 'malformed-json'] as const),
]);

/** Reads a message of a server as {@link readJson} does; of a list, items that cannot be read are left out. */
export function readServerJson(source: Uint8Array | string, caps: JsonCaps): JsonReading {
  const isText = typeof source === 'string';
  const reading = isText ? readJsonText(source, caps) : readJson(source, caps);
  if (reading.ok || !ERRORS_OF_ITEMS.has(reading.error)) return reading;
  const text = isText ? source : decodeUtf8(source);
  const rest = text && withoutOddItems(text);
  if (rest === undefined || rest === '') return reading;
  // INVARIANT: what is left is read as strictly as any message, whatever was taken for an item.
  const again = readJsonText(rest, caps);
  return again.ok ? { ...again, isReduced: true } : { ...again, rest };
}

/**
 * The text of a response with one of {@link LEFT_OUT} in place of each item of its list that cannot be read; undefined
 * if it has none. Items are found by brackets, strings and commas alone; the rest must be read strictly afterwards.
 */
export function withoutOddItems(text: string): string | undefined {
  const result = spanOf(text, ['result']);
  if (result === undefined) return undefined;
  const lists = memberSpans(text, result).filter(({ name }) => isListMember(name));
  const edits = lists
    .flatMap(({ value }) => elementSpans(text, value))
    .flatMap((item): TextEdit[] => {
      const error = errorOfItem(text.slice(item.start, item.end));
      return error === undefined ? [] : [{ ...item, text: JSON.stringify(LEFT_OUT[error]) }];
    });
  return edits.length === 0 ? undefined : applyEdits(text, edits);
}

/** Names in an item belong to whom they belong to in the message, so that the item can be read alone. */
const ITEM_CAPS: JsonCaps = { maxDepth: MAX_ITEM_DEPTH, maxValues: Number.POSITIVE_INFINITY };

function errorOfItem(item: string): ItemError | undefined {
  const { error } = scanJson(item, ITEM_CAPS);
  // What is behind half of a surrogate pair is found once that is mended.
  if (error === 'lone-surrogate' || error === 'too-many-values') return undefined;
  if (error !== undefined) return error;
  try {
    JSON.parse(item) as Json;
    return undefined;
  } catch {
    return 'malformed-json';
  }
}
