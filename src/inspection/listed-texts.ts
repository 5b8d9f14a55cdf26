// Finds secrets that are split over the strings of a list that stands in a text, such as the lines of an output in JSON:
// a model reads them in a row, as a host shows the texts of a message. What is complete in one string takes nothing of
// its neighbours.
// Source: RFC 8259; the list literals of Python and JavaScript.

import { type DataNode, findData } from '../protocol/json/data-text.js';
import { type NormalizedText, originalSpan, unescapeStretch } from './detectors/decoded-text.js';
import type { Hit } from './detectors/hit.js';
import { formedKindsOf, type WantedKinds } from './detectors/text-sanitizer.js';
import { isExposedIn } from './detectors/upstream-credentials.js';
import { findSplit, SECRET_SEPARATORS } from './joined-text.js';
import { isSurelyClean } from './prefilter/prefilter.js';

const LIST_IN_TEXT = /\[\s{0,64}(?:\{\s{0,64}(["'])[^"'\\]{1,64}\1\s{0,16}:\s{0,16})?["']/;

/** The pieces of secrets that are split over the strings of lists in a text, in order and apart. */
export function findSplitInLists(text: string, wantedKinds: WantedKinds): readonly Hit[] {
  if (!LIST_IN_TEXT.test(text) || !isSplitPossible(text, wantedKinds)) return [];
  const view: NormalizedText = { text, map: undefined };
  const lists: DataNode[][] = [];
  for (const node of findData(text)) collectLists(node, lists);
  const hits = lists.flatMap((strings) => findInList(view, strings, wantedKinds));
  let before = 0;
  return hits
    .sort((one, other) => one.start - other.start)
    .filter(({ start, end }) => {
      const isApart = start >= before;
      if (isApart) before = end;
      return isApart;
    });
}

const SEPARATOR =
  /\\{0,15}["'][\s}\]]{0,64},[\s{[]{0,64}(?:\\{0,15}["'][^"'\\]{1,64}\\{0,15}["']\s{0,64}:\s{0,64}[[\s]{0,64})?\\{0,15}["']/g;

/** To read the data in a text takes long; to see that it is clean where its strings are joined does not. */
function isSplitPossible(text: string, { own }: WantedKinds): boolean {
  return SECRET_SEPARATORS.some((separator) => {
    const joined = text.replace(SEPARATOR, separator);
    return !isSurelyClean(joined) || isExposedIn(joined, own);
  });
}

/** A value, and the list that it belongs to. */
type Visit = { readonly node: DataNode; readonly outer: DataNode[] | undefined };

/** Collects the strings of each list; those of lists in it, and of items with one member, belong to it. */
function collectLists(root: DataNode, lists: DataNode[][]): void {
  // Data may be nested deeper than functions can call themselves.
  const open: Visit[] = [{ node: root, outer: undefined }];
  for (let visit = open.pop(); visit !== undefined; visit = open.pop()) {
    const { node, outer } = visit;
    if (node.kind === 'string') outer?.push(node);
    if (node.items.length === 0) continue;
    const list = listOf(visit);
    if (list !== undefined && list !== outer) lists.push(list);
    for (const { value } of node.items.toReversed()) open.push({ node: value, outer: list });
  }
}

/** The list to which the strings directly below a value belong. */
function listOf({ node, outer }: Visit): DataNode[] | undefined {
  if (node.kind === 'array') return outer ?? [];
  return node.items.length === 1 ? outer : undefined;
}

function findInList(
  view: NormalizedText,
  strings: readonly DataNode[],
  wantedKinds: WantedKinds,
): readonly Hit[] {
  if (strings.length < 2) return [];
  const parts = strings.map((node) => contentOf(view, node));
  const texts = parts.map(({ text }) => text);
  return findSplit(texts, formedKindsOf(wantedKinds)).flatMap(({ part, kind, start, end }) => {
    const content = parts[part];
    const offset = (strings[part]?.start ?? 0) + 1;
    if (content === undefined) return [];
    const span = originalSpan(content, start, end);
    return content.map === undefined
      ? { kind, start: span.start + offset, end: span.end + offset }
      : { kind, ...span };
  });
}

/** What a string says. One that is cut off has no quote at its end. */
function contentOf(view: NormalizedText, { start, end }: DataNode): NormalizedText {
  const { text } = view;
  const quote = text.charAt(start);
  const to = end - start > 1 && text.charAt(end - 1) === quote ? end - 1 : end;
  const raw = text.slice(start + 1, to);
  return raw.includes('\\') ? unescapeStretch(view, start + 1, to) : { text: raw, map: undefined };
}

const BLANK = '(?:\\s|\\\\{1,8}[nrt]){0,64}';
/** A quote in a string of JSON, at any depth, or of a list that is no JSON. */
const QUOTE = `(?:\\\\{1,15}"|')`;
const ONLY_MEMBER = `\\{${BLANK}${QUOTE}[^"'\\\\]{1,64}${QUOTE}${BLANK}:${BLANK}`;
const RAW_LIST_HERE = new RegExp(`\\[${BLANK}(?:${ONLY_MEMBER})?${QUOTE}`, 'y');
const RAW_SEPARATOR = new RegExp(
  `${QUOTE}${BLANK}\\}?${BLANK}\\]?${BLANK},${BLANK}\\[?${BLANK}(?:${ONLY_MEMBER})?${QUOTE}`,
  'g',
);

/** Every message is searched, so only what follows a bracket is given to the regular expression. */
function hasRawList(raw: string): boolean {
  for (let at = raw.indexOf('['); at >= 0; at = raw.indexOf('[', at + 1)) {
    // The elements of a list of the message itself begin with a bare quote, and most lists with a member of the message.
    if (raw.charCodeAt(at + 1) === DOUBLE_QUOTE) continue;
    RAW_LIST_HERE.lastIndex = at;
    if (RAW_LIST_HERE.test(raw)) return true;
  }
  return false;
}

const DOUBLE_QUOTE = 0x22;

/** A message as JSON text in which the strings of each list in a text are joined; none where there is no such list. */
export function withJoinedLists(raw: string): readonly string[] {
  if (!hasRawList(raw)) return [];
  return SECRET_SEPARATORS.map((separator) => raw.replace(RAW_SEPARATOR, separator));
}
