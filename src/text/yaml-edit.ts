// Adds an entry to a map of a YAML document and removes one, and changes nothing else: the new lines are put between
// the bytes of the old text, so that comments, order and layout stay as they are. What the document says is read
// before and after; an edit that changes more than the one entry is refused, and so is a form in which none is possible.
// docs/reference/commands.md#add-remove-and-list.

import { isMap, isScalar, isSeq, type Node, type Pair, parseDocument, visit, type YAMLMap } from 'yaml';
import { readYaml } from './yaml.js';

/** The new text, or in one clause why there is none. */
export type YamlEdit = { readonly text: string } | { readonly error: string };

/** The value of an entry: on the line of its key, or as lines below it that are not indented. */
export type EntryValue = string | readonly string[];

const LIMITS = { maxDepth: 100, maxValues: 1_000_000, isGenerated: false };
const STEP = 2;

/** The value of a document; `undefined` if it cannot be read. */
function readValue(text: string): unknown {
  const read = readYaml(text, LIMITS);
  return read.ok ? read.value : undefined;
}

type Entry = { readonly pair: Pair; readonly keyStart: number; readonly keyEnd: number };

/** The entry of a map at a path, where every map on the way stands in the file itself, not behind an alias. */
function findEntry(root: unknown, path: readonly string[]): Entry | undefined {
  let node: unknown = root;
  let found: Entry | undefined;
  for (const step of path) {
    if (!isMap(node)) return undefined;
    const pair: Pair | undefined = node.items.find(({ key }) => isScalar(key) && key.value === step);
    const range = (pair?.key as Node | null | undefined)?.range;
    if (pair === undefined || !range) return undefined;
    found = { pair, keyStart: range[0], keyEnd: range[1] };
    node = pair.value;
  }
  return found;
}

/** The column of a position, if only spaces stand before it on its line. */
function indentOf(text: string, position: number): number | undefined {
  const start = text.lastIndexOf('\n', position - 1) + 1;
  return /^ *$/.test(text.slice(start, position)) ? position - start : undefined;
}

/** The end of the last character of a pair, without what follows it on its line. */
function endOfPair({ key, value }: Pair): number {
  const node = value as Node | null | undefined;
  if (isMap(node) && node.flow !== true && node.items.length > 0) return endOfPair(node.items.at(-1) as Pair);
  if (isSeq(node) && node.flow !== true && node.items.length > 0) {
    const last = node.items.at(-1);
    return endOfPair({ key: last, value: last } as Pair);
  }
  return node?.range?.[1] ?? (key as Node | null | undefined)?.range?.[1] ?? 0;
}

/** The start of the line after a position; the length of the text if there is none. */
function nextLine(text: string, position: number): number {
  const end = text.indexOf('\n', position);
  return end < 0 ? text.length : end + 1;
}

/**
 * Where what belongs to an entry ends: behind its last line and the comments below it that are indented at least as
 * much as given, also behind empty lines.
 */
function endOfBlock(text: string, end: number, minIndent: number): number {
  // The end of a block scalar stands behind its line ends.
  const last = text.slice(0, end).trimEnd().length;
  let kept = nextLine(text, last);
  let at = kept;
  while (at < text.length) {
    const next = nextLine(text, at);
    const line = text.slice(at, next);
    const comment = /^( *)#/.exec(line);
    if (comment !== null && (comment[1] ?? '').length >= minIndent) kept = next;
    else if (line.trim() !== '') break;
    at = next;
  }
  return kept;
}

function lineEndOf(text: string): string {
  return text.includes('\r\n') ? '\r\n' : '\n';
}

/** The lines of an entry, each with its end. */
function linesOf(key: string, value: EntryValue, indent: number, lineEnd: string): string {
  const at = ' '.repeat(indent);
  if (typeof value === 'string') return `${at}${key}: ${value}${lineEnd}`;
  const inner = ' '.repeat(indent + STEP);
  const below = value.map((line) => (line === '' ? lineEnd : `${inner}${line}${lineEnd}`));
  return `${at}${key}:${lineEnd}${below.join('')}`;
}

/** `text` with `added` at a position that begins a line, or behind a last line without an end. */
function insertLines(text: string, position: number, added: string, lineEnd: string): string {
  const before = text.slice(0, position);
  const separator = before === '' || before.endsWith('\n') ? '' : lineEnd;
  return `${before}${separator}${added}${text.slice(position)}`;
}

/**
 * Adds an entry at the end of the map at `path`, which must exist and must not have the key. `key` is written as it is.
 */
export function addToMap(text: string, path: readonly string[], key: string, value: EntryValue): YamlEdit {
  const shown = path.join('.');
  const found = findEntry(parseDocument(text, { uniqueKeys: false }).contents, path);
  if (found === undefined) return { error: `it has no map "${shown}" of its own to add to` };
  const edited = withEntry(text, found, key, value);
  if (edited === undefined)
    return { error: `"${shown}" is not written as indented lines, one entry below the other; write it so first` };
  return checked(text, edited, path, (map) => ({ ...map, [key]: undefined }), key) ? { text: edited } : unkept(shown);
}

function withEntry(
  text: string,
  { pair, keyStart, keyEnd }: Entry,
  key: string,
  value: EntryValue,
): string | undefined {
  const parentIndent = indentOf(text, keyStart);
  const map = pair.value as Node | null;
  const lineEnd = lineEndOf(text);
  if (isEmpty(map)) {
    if (parentIndent === undefined) return undefined;
    const colon = text.indexOf(':', keyEnd) + 1;
    const end = Math.max(colon, map?.range?.[1] ?? colon);
    const emptied = `${text.slice(0, colon)}${text.slice(end)}`;
    const added = linesOf(key, value, parentIndent + STEP, lineEnd);
    return insertLines(emptied, nextLine(emptied, colon), added, lineEnd);
  }
  if (!isMap(map) || map.flow === true) return isMap(map) ? withFlowEntry(text, map, key, value) : undefined;
  const [first] = map.items;
  const firstStart = (first?.key as Node | null | undefined)?.range?.[0];
  const indent = firstStart === undefined ? undefined : indentOf(text, firstStart);
  if (indent === undefined) return undefined;
  const position = endOfBlock(text, endOfPair(map.items.at(-1) as Pair), indent);
  return insertLines(text, position, linesOf(key, value, indent, lineEnd), lineEnd);
}

function isEmpty(node: Node | null): boolean {
  return node === null || (isScalar(node) && node.value === null) || (isMap(node) && node.items.length === 0);
}

/** Before the brace that closes a map on one line. */
function withFlowEntry(text: string, map: YAMLMap, key: string, value: EntryValue): string | undefined {
  const end = (map.range?.[1] ?? 0) - 1;
  if (typeof value !== 'string' || text[end] !== '}') return undefined;
  const before = text.slice(0, end).trimEnd();
  return `${before}${before.endsWith(',') ? '' : ','} ${key}: ${value}${text.slice(before.length)}`;
}

function unkept(shown: string): YamlEdit {
  return { error: `"${shown}" cannot be edited without changing something else; edit it by hand` };
}

/** Whether the entry of a key is all in which two documents differ. */
function checked(
  before: string,
  after: string,
  path: readonly string[],
  withKey: (map: object) => object,
  key: string,
): boolean {
  const [one, other] = [readValue(before), readValue(after)];
  if (one === undefined || other === undefined) return false;
  const drop = (value: unknown, [step, ...rest]: readonly string[]): unknown => {
    const map = (value ?? {}) as Readonly<Record<string, unknown>>;
    if (step === undefined) return { ...withKey(map), [key]: undefined };
    return { ...map, [step]: drop(map[step], rest) };
  };
  return JSON.stringify(drop(one, path)) === JSON.stringify(drop(other, path));
}

/** Removes the entry of a key from the map at `path`, with the comments in it. A map that is empty then is `{}`. */
export function removeFromMap(text: string, path: readonly string[], key: string): YamlEdit {
  const shown = [...path, key].join('.');
  const root = parseDocument(text, { uniqueKeys: false }).contents;
  const parent = findEntry(root, path);
  const found = findEntry(root, [...path, key]);
  if (parent === undefined || found === undefined) return { error: `it has no "${shown}" of its own` };
  const map = parent.pair.value as YAMLMap;
  const indent = indentOf(text, found.keyStart);
  if (map.flow === true || indent === undefined)
    return { error: `"${shown}" does not stand on lines of its own; remove it by hand` };
  const start = found.keyStart - indent;
  const end = skipEmptyLine(text, start, endOfBlock(text, endOfPair(found.pair), indent + 1));
  const isLast = map.items.length === 1;
  const colon = text.indexOf(':', parent.keyEnd) + 1;
  const kept = isLast ? `${text.slice(0, colon)} {}${text.slice(colon, start)}` : text.slice(0, start);
  const edited = `${kept}${text.slice(end)}`;
  return checked(text, edited, path, (value) => value, key) ? { text: edited } : unkept(shown);
}

/** Of two empty lines around what is removed, one is enough. */
function skipEmptyLine(text: string, start: number, end: number): number {
  const next = nextLine(text, end);
  const isAround = /\n[ \t]*\r?\n$/.test(text.slice(0, start)) && text.slice(end, next).trim() === '';
  return isAround ? next : end;
}

/** The lines of a document, counted from 1, on which a scalar reads as it is asked for. Comments do not count. */
export function linesNaming(text: string, isMeant: (scalar: string) => boolean): readonly number[] {
  const lines = new Set<number>();
  visit(parseDocument(text, { uniqueKeys: false }), {
    Scalar(_, { value, range }) {
      if (typeof value === 'string' && isMeant(value)) lines.add(text.slice(0, range?.[0] ?? 0).split('\n').length);
    },
  });
  return [...lines].sort((one, other) => one - other);
}

/** The texts that a key has, wherever it stands in a document. */
export function textsOfKey(text: string, name: string): readonly string[] {
  const found: string[] = [];
  visit(parseDocument(text, { uniqueKeys: false }), {
    Pair(_, { key, value }) {
      if (isScalar(key) && key.value === name && isScalar(value) && typeof value.value === 'string')
        found.push(value.value);
    },
  });
  return found;
}
