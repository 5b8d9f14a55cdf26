// Leaves items out of a list that are nested deeper than any walk over a message goes, so that one of them does not cost
// the others. Works on the text, because nothing builds values of such depth. Linear; does not recurse.

import type { TextEdit } from './admitted-request.js';
import {
  applyEdits,
  decodeUtf8,
  type JsonReading,
  MAX_JSON_DEPTH,
  readJson,
  readJsonText,
  skipString,
} from './json/json.js';
import type { JsonCaps } from './json/scan.js';
import { LIST_MEMBERS } from './methods.js';

/** The levels of a response around an item of a list: the message, its result, the list. */
export const LEVELS_AROUND_ITEM = 3;

/** The most levels that an item of a list may have. */
export const MAX_ITEM_DEPTH = MAX_JSON_DEPTH - LEVELS_AROUND_ITEM;

/** Stands in a list for an item that was left out. As a text it is no definition, and it says why. */
export const DEEP_ITEM = `nested deeper than ${MAX_ITEM_DEPTH} levels`;

const LISTED: ReadonlySet<string> = new Set(LIST_MEMBERS.values());

/** Reads a message of a server as {@link readJson} does; of a list, items that are nested too deeply are left out. */
export function readServerJson(source: Uint8Array | string, caps: JsonCaps): JsonReading {
  const isText = typeof source === 'string';
  const reading = isText ? readJsonText(source, caps) : readJson(source, caps);
  if (reading.ok || reading.error !== 'too-deep') return reading;
  const text = isText ? source : decodeUtf8(source);
  const rest = text && withoutDeepItems(text);
  return rest === undefined || rest === '' ? reading : readJsonText(rest, caps);
}

/**
 * The text of a response with {@link DEEP_ITEM} in place of each item of its list that has too many levels; undefined if
 * it has none. Such an item is skipped by its brackets and strings alone; the rest must be read strictly afterwards.
 */
export function withoutDeepItems(text: string): string | undefined {
  const walk: Walk = {
    text,
    names: [],
    edits: [],
    depth: 0,
    deepest: 0,
    itemStart: 0,
    isInList: false,
  };
  for (let at = 0; at < text.length; ) at = step(walk, at);
  return walk.edits.length === 0 ? undefined : applyEdits(text, walk.edits);
}

type Walk = {
  readonly text: string;
  /** The last string at each of the levels around an item: before a container in an object, it is its name. */
  readonly names: string[];
  readonly edits: TextEdit[];
  depth: number;
  /** The most levels since the item began. */
  deepest: number;
  itemStart: number;
  isInList: boolean;
};

function step(walk: Walk, at: number): number {
  const { text, names, depth } = walk;
  const code = text.charCodeAt(at);
  if (code === 0x22) {
    const end = skipString(text, at);
    if (depth < LEVELS_AROUND_ITEM) names[depth] = text.slice(at + 1, end - 1);
    return end;
  }
  if (code === 0x7b || code === 0x5b) open(walk, at, code === 0x5b);
  else if (code === 0x7d || code === 0x5d) close(walk, at + 1);
  return at + 1;
}

function open(walk: Walk, at: number, isArray: boolean): void {
  const { names } = walk;
  walk.depth++;
  if (walk.depth === LEVELS_AROUND_ITEM)
    walk.isInList = isArray && names[1] === 'result' && LISTED.has(names[2] ?? '');
  const isItem = walk.depth === LEVELS_AROUND_ITEM + 1;
  if (isItem) walk.itemStart = at;
  walk.deepest = isItem ? walk.depth : Math.max(walk.deepest, walk.depth);
}

function close(walk: Walk, end: number): void {
  walk.depth--;
  const isItem = walk.depth === LEVELS_AROUND_ITEM && walk.isInList;
  if (isItem && walk.deepest > MAX_JSON_DEPTH)
    walk.edits.push({ start: walk.itemStart, end, text: JSON.stringify(DEEP_ITEM) });
}
