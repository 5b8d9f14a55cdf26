// Finds secrets that are split over the strings of a list that stands in a text, such as the lines of an output in JSON:
// a model reads them in a row, as a host shows the texts of a message. What is complete in one string takes nothing of
// its neighbours. The prefilter sees the same lists in the text of a message.
// Source: RFC 8259; the list literals of Python and JavaScript.

import { type DataNode, findData } from '../protocol/json/data-text.js';
import { type NormalizedText, originalSpan, unescapeStretch } from './detectors/decoded-text.js';
import type { Hit } from './detectors/hit.js';
import { formedKindsOf, type WantedKinds } from './detectors/text-sanitizer.js';
import { isExposedIn } from './detectors/upstream-credentials.js';
import { findSplit, SECRET_SEPARATORS } from './joined-text.js';
import { isSurelyClean } from './prefilter/prefilter.js';

/** How a list begins, and what stands between two strings of it or of lists beside each other. */
type ListSigns = { readonly begin: RegExp; readonly separator: RegExp };

/** White space, which a string of JSON has as an escape. */
const BLANK = '\\s|\\\\{1,8}[nrt]';

/** `first` is the quote that a list begins with, `quote` any in it. */
function signsOf(first: string, quote: string): ListSigns {
  const memberIn = (sign: string): string => `${sign}[^"'\\\\]{1,64}${sign}(?:${BLANK}){0,64}:(?:${BLANK}|\\[){0,64}`;
  const begin = `\\[(?:${BLANK}){0,64}(?:\\{(?:${BLANK}){0,64}${memberIn(first)})?${first}`;
  const between = `(?:${BLANK}|[}\\]]){0,64},(?:${BLANK}|[[{]){0,64}`;
  return {
    begin: new RegExp(begin, 'y'),
    separator: new RegExp(`${quote}${between}(?:${memberIn(quote)})?${quote}`, 'g'),
  };
}

const IN_TEXT = signsOf(`["']`, `\\\\{0,15}["']`);
const OF_TEXT = `(?:\\\\{1,15}"|')`;
const IN_MESSAGE = signsOf(OF_TEXT, OF_TEXT);

const DOUBLE_QUOTE = 0x22;

/** A text in which the strings of each list are joined; none where there is no list. */
function joinLists(text: string, { begin, separator }: ListSigns): readonly string[] {
  for (let at = text.indexOf('['); at >= 0; at = text.indexOf('[', at + 1)) {
    // A list of the message itself begins with a bare quote, and every message is searched.
    if (begin === IN_MESSAGE.begin && text.charCodeAt(at + 1) === DOUBLE_QUOTE) continue;
    begin.lastIndex = at;
    if (begin.test(text)) return SECRET_SEPARATORS.map((joined) => text.replace(separator, joined));
  }
  return [];
}

/** A message as JSON text in which the strings of each list in a text are joined; none where there is no such list. */
export function withJoinedLists(raw: string): readonly string[] {
  return joinLists(raw, IN_MESSAGE);
}

/** The pieces of secrets that are split over the strings of lists in a text, in order and apart. */
export function findSplitInLists(text: string, wantedKinds: WantedKinds): readonly Hit[] {
  // To read the data in a text takes long; to see that it is clean where its strings are joined does not.
  const isClean = (joined: string): boolean => isSurelyClean(joined) && !isExposedIn(joined, wantedKinds.own);
  if (joinLists(text, IN_TEXT).every(isClean)) return [];
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

function findInList(view: NormalizedText, strings: readonly DataNode[], wantedKinds: WantedKinds): readonly Hit[] {
  if (strings.length < 2) return [];
  const parts = strings.map((node) => contentOf(view, node));
  const texts = parts.map(({ text }) => text);
  return findSplit(texts, formedKindsOf(wantedKinds)).flatMap(({ part, kind, start, end }) => {
    const content = parts[part];
    const offset = (strings[part]?.start ?? 0) + 1;
    if (content === undefined) return [];
    const span = originalSpan(content, start, end);
    return content.map === undefined ? { kind, start: span.start + offset, end: span.end + offset } : { kind, ...span };
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
