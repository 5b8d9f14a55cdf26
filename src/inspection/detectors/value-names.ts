// Finds the name under which a value stands in a text: the member of JSON, the key of a line, a query or an attribute,
// the element of XML, or the heading of a column in CSV, TSV and Markdown tables. It reads backwards from the value and
// never parses the text as a whole, so that the JSON of a truncated or quoted output has names too. Linear over all
// values of one text, if they are asked for in order.
// Source: RFC 8259; RFC 4180; YAML 1.2 §7.4 and §8.2; RFC 3986 §3.4; GFM §4.10 (tables).

import type { Span } from '../../text/span.js';

/**
 * `member`: JSON and the like, where every value has a name that its program chose. `key`: the same in lines of
 * `key: value` and in `key=value`. `label`: what stands before a colon or an equals sign and may be prose. `column`: the
 * heading of a column. `item`: a number in a list of JSON.
 */
export type ValueName = {
  readonly kind: 'member' | 'key' | 'label' | 'column' | 'item';
  readonly name: string;
};

/** Finds the name of the value in a span. Spans must be asked for in ascending order. */
export type FindValueName = (start: number, end: number) => ValueName | undefined;

/** Creates the finder for one text. */
export function createValueNames(text: string): FindValueName {
  const lists: ListMemory = { open: -1, searched: 0 };
  let columns: ColumnReader | undefined;
  return (start, end) => {
    const value = outerSpan(text, start, end);
    if (value === undefined) return undefined;
    const named = pairName(text, value) ?? (value.isComplete ? nameOfComplete(text, value, lists) : undefined);
    if (named !== undefined) return named;
    if (!value.isComplete && !text.startsWith(ALIGNED, value.end)) return undefined;
    columns ??= createColumns(text);
    const heading = columns(value.start, value.end);
    return heading === undefined ? undefined : { kind: 'column', name: heading };
  };
}

/** The name of a value that nothing but a separator follows, apart from the headings of a table. */
function nameOfComplete(text: string, value: OuterSpan, lists: ListMemory): ValueName | undefined {
  return assignedName(text, value) ?? elementName(text, value) ?? listName(text, value, lists);
}

type OuterSpan = {
  readonly start: number;
  readonly end: number;
  readonly isQuoted: boolean;
  /** Nothing stands behind it but what separates values. */
  readonly isComplete: boolean;
};

const MAX_QUOTES = 12;
const QUOTES = new Set([...'"\'`\\']);
/** What ends a value: what separates members and items, or the end of the line. */
const VALUE_END = /^ *(?:$|[\t,;}\])&<|\r\n]|\\[nrt])/;

/** The span with the quotes around it, also escaped ones; undefined where more than this value stands between them. */
function outerSpan(text: string, start: number, end: number): OuterSpan | undefined {
  let from = start;
  while (start - from < MAX_QUOTES && QUOTES.has(text.charAt(from - 1))) from--;
  let to = end;
  if (from < start) {
    while (to - end < MAX_QUOTES && QUOTES.has(text.charAt(to))) to++;
    if (to === end) return undefined;
  }
  const ahead = text.slice(to, to + 40);
  const isComplete = VALUE_END.test(ahead) || /^ {40}/.test(ahead);
  return { start: from, end: to, isQuoted: from < start, isComplete };
}

const MAX_NAME_CHARS = 96;
/** A quoted name and its sign, at the end of what precedes a value. */
const QUOTED_NAME = /(["'`])([^"'`\\\r\n]{1,64})\\{0,4}\1\s{0,16}(?::|=>?)\s{0,16}$/;
/** A name without quotes and its sign: one word, or a few on the same line. */
const PLAIN_NAME =
  /(?:^|[^\p{L}\p{N}_.$@ -])[ \t]*(?:[-*+][ \t]+)?([\p{L}_$@][\p{L}\p{N}_.$@ -]{0,47}?)[ \t]{0,8}(?::=|=>|[:=])[ \t]{0,16}$/u;

/** The key of a line that holds one word, a colon and the value, as in YAML; in prose a line begins with a capital. */
const KEY_OF_LINE = /(?:^|[\r\n]|\\n)[ \t]*(?:-[ \t]+)*([\p{Ll}_$][\p{L}\p{N}_.$-]{0,47}):[ \t]+$/u;
/** The key of a pair without blanks around its sign, as in logs, queries and attributes. */
const KEY_OF_PAIR = /(?:^|[^\p{L}\p{N}_.$@-])([\p{L}_$@][\p{L}\p{N}_.$@-]{0,47})=$/u;

/** What ends the value of a pair: the next pair of a query or a log, the end of what it stands in, or a blank. */
const PAIR_END = /^(?:$|[\s&;,|)}\]#"'`<])/;

/** The key of a pair. Behind its value the line may go on with anything. */
function pairName(text: string, { start, end, isQuoted }: OuterSpan): ValueName | undefined {
  if (text.charAt(start - 1) !== '=') return undefined;
  if (!isQuoted && !PAIR_END.test(text.charAt(end))) return undefined;
  const key = KEY_OF_PAIR.exec(text.slice(Math.max(0, start - MAX_NAME_CHARS), start))?.[1];
  return key === undefined ? undefined : { kind: 'key', name: key };
}

function assignedName(text: string, { start }: Pick<OuterSpan, 'start'>): ValueName | undefined {
  const before = text.slice(Math.max(0, start - MAX_NAME_CHARS), start);
  const last = before.trimEnd().at(-1);
  if (last !== ':' && last !== '=' && last !== '>') return undefined;
  const quoted = QUOTED_NAME.exec(before)?.[2];
  if (quoted !== undefined) return { kind: 'member', name: quoted };
  const key = (KEY_OF_LINE.exec(before) ?? KEY_OF_PAIR.exec(before))?.[1];
  if (key !== undefined) return { kind: 'key', name: key };
  const plain = PLAIN_NAME.exec(before)?.[1];
  return plain === undefined ? undefined : { kind: 'label', name: plain };
}

const ELEMENT = /<([A-Za-z_][\w.:-]{0,63})(?:\s[^<>]{0,160})?>\s{0,16}$/;
/** Elements of HTML that hold prose or cells. */
const HTML_ELEMENTS =
  /^(?:a|abbr|article|b|blockquote|body|caption|cite|code|dd|del|div|dt|em|figcaption|h[1-6]|i|ins|kbd|label|li|main|mark|p|pre|q|s|samp|section|small|span|strong|sub|summary|sup|td|th|tt|u)$/i;

/** The element that holds this value and nothing else. A tag before a text is no name. */
function elementName(text: string, { start, end }: OuterSpan): ValueName | undefined {
  const before = text.slice(Math.max(0, start - 256), start);
  if (!/>\s*$/.test(before)) return undefined;
  const name = ELEMENT.exec(before)?.[1];
  if (name === undefined || HTML_ELEMENTS.test(name)) return undefined;
  const isClosed = text
    .slice(end, end + 32 + name.length)
    .trimStart()
    .startsWith(`</${name}`);
  return isClosed ? { kind: 'member', name } : undefined;
}

/** The last opening bracket that was found, and how far it is known to be the innermost one. */
type ListMemory = { open: number; searched: number };

/** The name of the list in which a value is an item, and whether the text is JSON at all where it has none. */
function listName(text: string, value: OuterSpan, lists: ListMemory): ValueName | undefined {
  const open = innermostBracket(text, value.start, lists);
  if (open < 0) return undefined;
  const name = assignedName(text, { start: open });
  if (name !== undefined) return name;
  return value.isQuoted || !/^\s*[[{]/.test(text) ? undefined : { kind: 'item', name: '' };
}

/** Where the list opens that a value is an item of; -1 where it is in none. */
function innermostBracket(text: string, start: number, lists: ListMemory): number {
  let at = start - 1;
  let open = -2;
  for (; at >= lists.searched; at--) {
    const unit = text.charCodeAt(at);
    if (unit === 0x5b) open = at;
    else if (unit === 0x7b || unit === 0x7d || unit === 0x5d) open = -1;
    if (open !== -2) break;
  }
  if (open === -2) open = lists.open;
  lists.open = open;
  lists.searched = Math.max(lists.searched, start);
  return open;
}

type ColumnReader = (start: number, end: number) => string | undefined;

/** Two blanks part the columns that programs align on a terminal. */
const ALIGNED = '  ';
const DELIMITERS = ['|', '\t', ',', ';', ALIGNED] as const;
type Delimiter = (typeof DELIMITERS)[number];
/** A longer line is no row of a table. */
const MAX_ROW_CHARS = 16_384;
/** The line between the heading and the rows of a Markdown table, or of what a database prints. */
const RULE = /^\s*[|+]?\s*:?-{2,}:?(?:\s*[|+]\s*:?-{2,}:?)*\s*[|+]?\s*$/;

/** A line that may hold headings, and how many delimiters of each kind it has. */
type Heading = { readonly line: string; readonly counts: ReadonlyMap<Delimiter, number> };

/** Reads tables from the beginning of a text on. A blank line ends a table. */
function createColumns(text: string): ColumnReader {
  let lineStart = 0;
  let headings: Heading[] = [];

  function advance(to: number): number {
    for (;;) {
      const lineEnd = endOfLine(text, lineStart);
      if (to <= lineEnd) return lineEnd;
      const line = text.slice(lineStart, Math.min(lineEnd, lineStart + MAX_ROW_CHARS));
      if (line.trim() === '') headings = [];
      else if (headings.length < MAX_HEADINGS && !RULE.test(line)) addHeading(headings, line);
      lineStart = lineEnd + 1;
    }
  }

  return (start, end) => {
    const lineEnd = advance(start);
    if (lineEnd - lineStart > MAX_ROW_CHARS || headings.length === 0) return undefined;
    const row = text.slice(lineStart, lineEnd);
    return headingOf(row, start - lineStart, end - lineStart, headings);
  };
}

function endOfLine(text: string, from: number): number {
  const end = text.indexOf('\n', from);
  return end < 0 ? text.length : end;
}

/** A title, a command or a fence may precede the headings. */
const MAX_HEADINGS = 4;

function addHeading(headings: Heading[], line: string): void {
  headings.push({
    line,
    counts: new Map(DELIMITERS.map((delimiter) => [delimiter, cellsOf(line, delimiter).length])),
  });
}

/** The heading above a cell: of the first line of the table that has as many cells as this row. */
function headingOf(row: string, start: number, end: number, headings: readonly Heading[]): string | undefined {
  for (const delimiter of DELIMITERS) {
    const cells = cellsOf(row, delimiter);
    const heading = headings.find(({ counts }) => counts.get(delimiter) === cells.length);
    if (cells.length < 2 || heading === undefined) continue;
    const column = cells.findIndex((cell) => isOnlyContent(row, cell, start, end));
    const above = cellsOf(heading.line, delimiter)[column];
    if (above !== undefined) return nameIn(heading.line.slice(above.start, above.end));
  }
  return isOnlyContent(row, { start: 0, end: row.length }, start, end) ? headingOfOneColumn(headings) : undefined;
}

function nameIn(cell: string): string | undefined {
  const name = cell.replace(/["*`]/g, ' ').trim();
  return /\p{L}/u.test(name) && name.length <= 64 ? name : undefined;
}

function headingOfOneColumn([first]: readonly Heading[]): string | undefined {
  const isName = first !== undefined && /^\s*[A-Za-z]+(?:_[A-Za-z]+)+\s*$/.test(first.line);
  return isName ? first.line.trim() : undefined;
}

function isOnlyContent(row: string, cell: Span, start: number, end: number): boolean {
  return (
    cell.start <= start &&
    end <= cell.end &&
    row.slice(cell.start, start).trim() === '' &&
    row.slice(end, cell.end).trim() === ''
  );
}

function cellsOf(line: string, delimiter: Delimiter): readonly Span[] {
  if (delimiter === ALIGNED)
    return [...line.matchAll(/\S+(?: \S+)*/g)].map(({ 0: cell, index }) => {
      return { start: index, end: index + cell.length };
    });
  const cells: Span[] = [];
  let start = 0;
  let isQuoted = false;
  for (let at = 0; at <= line.length; at++) {
    const unit = line[at];
    if (unit === '"' && delimiter !== '|') isQuoted = !isQuoted;
    if (unit !== undefined && (unit !== delimiter || isQuoted)) continue;
    cells.push({ start, end: at });
    start = at + 1;
  }
  return cells;
}
