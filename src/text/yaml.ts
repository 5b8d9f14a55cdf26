// Reads one YAML 1.2 document of the core schema into plain values with their positions, or describes its mistakes in
// plain English. Never resolves tags, directives or merge keys, never expands aliases without bound, never throws.
// After one syntax error a parser guesses, and most of what it reports then is a consequence, so only the most likely
// cause of the first is described. Never quotes a value, which could be a secret.
// docs/reference/start-and-reload.md#form-of-the-files; docs/reference/lock-files.md: unique keys, one document,
// warnings are errors. YAML 1.2.2 §10.3 (core schema).

import {
  type Document,
  type ErrorCode,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type YAMLError,
  type YAMLMap,
} from 'yaml';

/** Line and column, counted from 1. */
export type Position = { readonly line: number; readonly column: number };

/** A path in a document: keys and list indexes from the root. */
export type YamlPath = readonly (string | number)[];

/**
 * Finds the position of a path; for a path that is not in the file, the position of its nearest ancestor: of its
 * key, or in a generated file of its value.
 */
export type Locate = (path: YamlPath, at: 'key' | 'value') => Position;

type YamlMistake = Position & { readonly message: string };

/** What a document may contain. */
export type YamlLimits = {
  readonly maxDepth: number;
  /** Counted after aliases are followed, which bounds an alias bomb. */
  readonly maxValues: number;
  /**
   * The file was written by this program from JSON of others: it has no anchors, but may have keys and numbers
   * that are errors in a file written by hand.
   */
  readonly isGenerated: boolean;
};

type YamlReading =
  | { readonly ok: true; readonly value: unknown; readonly locate: Locate }
  | { readonly ok: false; readonly mistakes: readonly YamlMistake[] };

const START: Position = { line: 1, column: 1 };
const MAX_ALIASES = 100;
const MAX_QUOTED_KEY = 64;

/** Far beyond what is nested by hand, also with brackets in texts and comments, which are counted too. */
const MAX_OPEN_BRACKETS = 1_000;

/** Where too many brackets are open: the parser would take seconds for a file of nothing else. */
function findOpenBrackets(text: string): Position | undefined {
  let open = 0;
  for (const { 0: bracket, index } of text.matchAll(/[[\]{}]/g)) {
    open = bracket === '[' || bracket === '{' ? open + 1 : Math.max(0, open - 1);
    if (open <= MAX_OPEN_BRACKETS) continue;
    const lines = text.slice(0, index).split('\n');
    return { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 };
  }
  return undefined;
}

/**
 * Characters that end a line for some readers and not for others, and controls, which YAML does not have (YAML 1.2.2 §5.1
 * and §5.4). Behind a comment such a character would hide from the gateway what a reviewer sees on a line of its own.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: controls are what is looked for
const ODD_CHARACTER = /\r(?!\n)|[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]/;

/** Whether a text has one of them. */
export function hasOddCharacter(text: string): boolean {
  return ODD_CHARACTER.test(text);
}

function findOddCharacter(text: string): YamlMistake | undefined {
  const index = text.search(ODD_CHARACTER);
  if (index < 0) return undefined;
  const lines = text.slice(0, index).split('\n');
  const code = text.charCodeAt(index).toString(16).toUpperCase().padStart(4, '0');
  const message = `the character U+${code} ends a line for some readers, or is shown by none; remove it, or write it as an escape in double quotes`;
  return { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1, message };
}

/**
 * The plain values of a YAML document, or its errors: only the first syntax error, because others follow from it, and
 * otherwise all errors. Objects have the ordinary prototype, which cannot be replaced because the key `__proto__` is
 * refused.
 */
export function readYaml(text: string, limits: YamlLimits): YamlReading {
  const odd = findOddCharacter(text);
  if (odd !== undefined) return { ok: false, mistakes: [odd] };
  const open = limits.isGenerated ? undefined : findOpenBrackets(text);
  if (open !== undefined) {
    const message = `more than ${MAX_OPEN_BRACKETS} brackets are open here, one inside the other`;
    return { ok: false, mistakes: [{ ...open, message }] };
  }
  try {
    return readDocument(text, limits);
  } catch {
    // The parser recurses; input built to exhaust the stack is caught here and does not end the process.
    return { ok: false, mistakes: [{ ...START, message: UNREADABLE }] };
  }
}

function readDocument(text: string, limits: YamlLimits): YamlReading {
  const lines = new LineCounter();
  // Unique keys are checked below: the parser's own check takes quadratic time.
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    merge: false,
    strict: true,
    stringKeys: true,
    uniqueKeys: false,
    prettyErrors: false,
    keepSourceTokens: false,
    lineCounter: lines,
  });
  const mistakes: YamlMistake[] = [];
  const reported = new Set<string>();
  const report = (offset: number, message: string): null => {
    const { line, col } = lines.linePos(offset);
    const mistakeKey = `${line} ${message}`;
    if (reported.has(mistakeKey)) return null;
    reported.add(mistakeKey);
    mistakes.push({ line: Math.max(line, 1), column: Math.max(col, 1), message });
    return null;
  };
  const { isSyntax, found } = describeYamlErrors(text, [...document.errors, ...document.warnings]);
  for (const { offset, message } of found) report(offset, message);
  if (isSyntax) return { ok: false, mistakes };
  if (hasDirective(document)) report(0, 'directives (%YAML, %TAG) are not accepted');
  const reading: Reading = { document, limits, report, values: 0, aliases: 0, open: new Set() };
  const value = readNode(reading, document.contents, 0);
  if (mistakes.length > 0) return { ok: false, mistakes };
  return { ok: true, value, locate: locateIn(document, lines, limits) };
}

function hasDirective(document: Document): boolean {
  const directives = document.directives;
  if (directives === undefined) return false;
  return directives.yaml.explicit === true || Object.keys(directives.tags).length > 1;
}

type Reading = {
  readonly document: Document;
  readonly limits: YamlLimits;
  readonly report: (offset: number, message: string) => null;
  values: number;
  aliases: number;
  /** Nodes being read: an alias to one of them would be infinite recursion. */
  readonly open: Set<unknown>;
};

function readNode(reading: Reading, node: unknown, depth: number): unknown {
  const { maxValues, maxDepth } = reading.limits;
  reading.values += 1;
  if (reading.values === maxValues + 1) {
    reading.report(offsetOf(node), `the file holds more than ${maxValues} values`);
  }
  if (reading.values > maxValues || node === null || node === undefined) return null;
  if (depth > maxDepth) return reading.report(offsetOf(node), `nested more than ${maxDepth} deep`);
  if (isAlias(node)) return readAlias(reading, node, depth);
  const error = markError(reading, node);
  if (error !== undefined) return reading.report(offsetOf(node), error);
  if (isScalar(node)) return readScalar(reading, node.value, offsetOf(node));
  reading.open.add(node);
  const value = isMap(node) ? readMap(reading, node.items, depth) : readList(reading, node, depth);
  reading.open.delete(node);
  return value;
}

/** Why a node may not have the tag or the anchor that it has. */
function markError({ limits }: Reading, node: unknown): string | undefined {
  const { tag, anchor } = node as { readonly tag?: string; readonly anchor?: string };
  if (limits.isGenerated) {
    return tag === undefined && anchor === undefined ? undefined : 'tags and anchors are not accepted';
  }
  return tag === undefined ? undefined : TAGS_REFUSED;
}

function readAlias(reading: Reading, alias: Node, depth: number): unknown {
  const refuse = (message: string): null => reading.report(offsetOf(alias), message);
  if (reading.limits.isGenerated) return refuse('aliases are not accepted');
  reading.aliases += 1;
  if (reading.aliases === MAX_ALIASES + 1) refuse(`more than ${MAX_ALIASES} aliases`);
  if (reading.aliases > MAX_ALIASES) return null;
  const target = isAlias(alias) ? alias.resolve(reading.document) : undefined;
  if (target === undefined) {
    return refuse('no anchor for this alias stands before it; put a glob that begins with * into quotes');
  }
  if (reading.open.has(target)) return refuse('this alias is a part of what it refers to');
  return readNode(reading, target, depth);
}

function readScalar(reading: Reading, value: unknown, offset: number): unknown {
  if (typeof value !== 'number') return value;
  const isInexact = Number.isInteger(value) && !Number.isSafeInteger(value);
  if (!Number.isFinite(value) || (isInexact && !reading.limits.isGenerated)) {
    const advice = reading.limits.isGenerated ? '' : ' exactly; quote it to make it text';
    reading.report(offset, `this number cannot be held${advice}`);
  }
  return value;
}

function readMap(reading: Reading, items: readonly Pair[], depth: number): object {
  const map: Record<string, unknown> = {};
  const refused = reading.limits.isGenerated ? ['__proto__'] : ['__proto__', '<<'];
  for (const { key, value } of items) {
    const name = isScalar(key) && markError(reading, key) === undefined ? key.value : undefined;
    if (typeof name !== 'string') {
      reading.report(offsetOf(key), 'a key must be plain text');
    } else if (refused.includes(name)) {
      reading.report(offsetOf(key), `the key ${JSON.stringify(name)} is not accepted`);
    } else if (Object.hasOwn(map, name)) {
      reading.report(
        offsetOf(key),
        `duplicate key ${JSON.stringify(name.slice(0, MAX_QUOTED_KEY))}; remove one of the two`,
      );
    } else {
      map[name] = readNode(reading, value, depth + 1);
    }
  }
  return map;
}

function readList(reading: Reading, node: unknown, depth: number): unknown[] {
  if (!isSeq(node)) return [];
  return node.items.map((item) => readNode(reading, item, depth + 1));
}

function offsetOf(node: unknown): number {
  return (node as Node | null | undefined)?.range?.[0] ?? 0;
}

/** A position lookup over one parsed document. Follows aliases. */
function locateIn(document: Document, lines: LineCounter, limits: YamlLimits): Locate {
  // A file may have thousands of mistakes in one map.
  const pairsByKey = new WeakMap<object, ReadonlyMap<unknown, Pair>>();
  const pairOf: PairOf = (map, key) => {
    const known = pairsByKey.get(map) ?? indexPairs(map.items);
    pairsByKey.set(map, known);
    return known.get(key);
  };
  return (path, at) => {
    let node: unknown = document.contents;
    let key: unknown = document.contents;
    for (const step of path) {
      const next = descend(document, node, step, pairOf);
      if (next === undefined) return positionOf(lines, limits.isGenerated ? node : key);
      key = next.key;
      node = next.value;
    }
    return positionOf(lines, at === 'value' ? (node ?? key) : key);
  };
}

type PairOf = (map: YAMLMap, key: string) => Pair | undefined;

/** The pairs of a map by their keys; of equal keys, the first. */
function indexPairs(items: readonly Pair[]): ReadonlyMap<unknown, Pair> {
  const pairs = new Map<unknown, Pair>();
  for (const pair of items) if (isScalar(pair.key) && !pairs.has(pair.key.value)) pairs.set(pair.key.value, pair);
  return pairs;
}

function descend(
  document: Document,
  parent: unknown,
  step: string | number,
  pairOf: PairOf,
): { key: unknown; value: unknown } | undefined {
  const node = isAlias(parent) ? parent.resolve(document) : parent;
  if (isMap(node)) {
    const pair = pairOf(node, String(step));
    return pair === undefined ? undefined : { key: pair.key, value: pair.value };
  }
  if (isSeq(node) && typeof step === 'number') {
    const item = node.items[step];
    return item === undefined ? undefined : { key: item, value: item };
  }
  return undefined;
}

function positionOf(lines: LineCounter, node: unknown): Position {
  const range = (node as Node | null | undefined)?.range;
  if (!range) return START;
  const { line, col } = lines.linePos(range[0]);
  return line === 0 ? START : { line, column: col };
}

type DescribedError = { readonly offset: number; readonly message: string };

const TAGS_REFUSED = 'tags (!) are not accepted; put a value that begins with ! into quotes';
/** Errors that leave no doubt about the rest of the text: each of them is described. */
const LOCAL_ERRORS: ReadonlySet<ErrorCode> = new Set([
  ...(['MULTIPLE_DOCS', 'TAG_RESOLVE_FAILED', 'BAD_COLLECTION_TYPE'] as const),
  ...(['NON_STRING_KEY', 'BAD_DIRECTIVE'] as const),
]);

const MISPLACED = 'an anchor or a tag is misplaced; remove it';
const UNREADABLE = 'the file cannot be read as YAML';
const SPACE_AFTER_COLON = 'a space is missing after the colon';
const LACKS_COLON = 'expected "key: value", found text without a colon';
const LACKS_SPACE = /^\s*(?:- +)*[A-Za-z_][\w.-]*:[^\s:]/;

type Describe = (text: string, error: YAMLError) => DescribedError;

/** The same message wherever the error is. */
function always(message: string): Describe {
  return (_, { pos: [offset] }) => ({ offset, message });
}

/** How each error of the parser is described; none is passed on in the parser's own words. */
const DESCRIPTIONS: Readonly<Record<ErrorCode, Describe>> = {
  ALIAS_PROPS: always(MISPLACED),
  BAD_ALIAS: always('an unquoted * or & begins an alias or an anchor; put the value into quotes'),
  BAD_COLLECTION_TYPE: always(TAGS_REFUSED),
  BAD_DIRECTIVE: always('directives (%YAML, %TAG) are not accepted'),
  BAD_DQ_ESCAPE: describeEscape,
  BAD_INDENT: describeIndent,
  BAD_PROP_ORDER: always(MISPLACED),
  BAD_SCALAR_START: describeStart,
  BLOCK_AS_IMPLICIT_KEY: describeNested,
  BLOCK_IN_FLOW: always('inside brackets, write {key: value} instead of indented lines'),
  DUPLICATE_KEY: always('duplicate key'),
  IMPOSSIBLE: always(UNREADABLE),
  KEY_OVER_1024_CHARS: always('this key is longer than 1024 characters'),
  MISSING_CHAR: describeMissing,
  MULTILINE_IMPLICIT_KEY: describeMultiline,
  MULTIPLE_ANCHORS: always(MISPLACED),
  MULTIPLE_DOCS: always('the file holds more than one YAML document'),
  MULTIPLE_TAGS: always(MISPLACED),
  NON_STRING_KEY: always('a key must be plain text'),
  RESOURCE_EXHAUSTION: always(UNREADABLE),
  TAB_AS_INDENT: always('a tab is used for indentation; use spaces'),
  TAG_RESOLVE_FAILED: always(TAGS_REFUSED),
  UNEXPECTED_TOKEN: describeUnexpected,
};

/** The cause of the first syntax error, or all other errors. */
function describeYamlErrors(
  text: string,
  errors: readonly YAMLError[],
): { readonly isSyntax: boolean; readonly found: readonly DescribedError[] } {
  const syntax = errors.filter(({ code }) => !LOCAL_ERRORS.has(code));
  const [first] = [...syntax].sort((a, b) => a.pos[0] - b.pos[0]);
  if (first === undefined) {
    const found = errors.map((error) => DESCRIPTIONS[error.code](text, error));
    return { isSyntax: false, found };
  }
  const cause =
    findConflictMarker(text) ??
    findTab(text, first) ??
    findUnclosed(text, first.pos[0]) ??
    DESCRIPTIONS[first.code](text, first);
  return { isSyntax: true, found: [cause] };
}

const CONFLICT_MARKER = /^(?:<{7}|={7}|>{7}|\|{7})(?= |\r?$)/m;

function findConflictMarker(text: string): DescribedError | undefined {
  const found = CONFLICT_MARKER.exec(text);
  if (found === null) return undefined;
  const message = `the marker "${found[0]}" of an unresolved merge; choose one of the versions and remove all markers`;
  return { offset: found.index, message };
}

/** The first tab in the indentation of the line of the error. */
function findTab(text: string, { pos: [offset] }: YAMLError): DescribedError | undefined {
  const start = lineStart(text, offset);
  const [indent = ''] = /^[ \t]*/.exec(text.slice(start)) ?? [];
  const tab = indent.indexOf('\t');
  if (tab === -1) return undefined;
  return { offset: start + tab, message: 'a tab is used for indentation; use spaces' };
}

type OpenMark = { readonly mark: string; readonly offset: number; readonly column: number };

const CLOSING: ReadonlyMap<string, string> = new Map([
  ['[', ']'],
  ['{', '}'],
]);

/** A bracket or a quote that opens before the error and is not closed before the map around it goes on. */
function findUnclosed(text: string, before: number): DescribedError | undefined {
  const open: OpenMark[] = [];
  const describe = ({ mark, offset }: OpenMark): DescribedError | undefined => {
    const name = CLOSING.has(mark) ? 'bracket' : 'quote';
    return offset > before ? undefined : { offset, message: `the ${name} ${mark} is opened here and never closed` };
  };
  let offset = 0;
  for (const line of text.split('\n')) {
    const column = keyColumn(line);
    const last = open.at(-1);
    if (last !== undefined && line.trim() !== '' && column <= last.column && isEntry(line)) {
      return describe(last);
    }
    const unclosed = scanLine(line, offset, column, open);
    if (unclosed !== undefined) return describe(unclosed);
    offset += line.length + 1;
  }
  const last = open.at(-1);
  return last && describe(last);
}

/**
 * A quote or a bracket where a value may begin, a closing bracket, or a comment. What stands before is looked at
 * last, so that a long run of spaces is not looked at again from each of them.
 */
const MARK = /["'[{](?<=(?:^\s*|[[{,]\s*|[:?-]\s+).)|[\]}]|#(?<=(?:^|\s)#)/g;

/**
 * Follows quotes and brackets through one line, and returns a bracket in the place of whose end another one is
 * closed. A quote in `open` is the last entry.
 */
function scanLine(line: string, start: number, column: number, open: OpenMark[]): OpenMark | undefined {
  let at = closeQuote(line, 0, open);
  while (at !== undefined) {
    MARK.lastIndex = at;
    const { 0: mark = '#', index = 0 } = MARK.exec(line) ?? {};
    if (mark === '#') return undefined;
    if (mark === ']' || mark === '}') {
      const closed = open.pop();
      if (closed !== undefined && CLOSING.get(closed.mark) !== mark) return closed;
    } else open.push({ mark, offset: start + index, column });
    at = closeQuote(line, index + 1, open);
  }
  return undefined;
}

/** Where to go on: behind the end of the quote that is open, if one is, or not in this line. */
function closeQuote(line: string, from: number, open: OpenMark[]): number | undefined {
  const mark = open.at(-1)?.mark;
  if (mark === undefined || CLOSING.has(mark)) return from;
  const end = endOfQuote(line, from, mark);
  if (end !== undefined) open.pop();
  return end;
}

/** The index behind the closing quote, if it is in the line. */
function endOfQuote(line: string, from: number, mark: string): number | undefined {
  const content = mark === '"' ? /(?:\\.|[^"\\])*"/y : /[^']*'/y;
  content.lastIndex = from;
  return content.test(line) ? content.lastIndex : undefined;
}

/** The column of the key of a line, behind the dashes of lists. */
function keyColumn(line: string): number {
  return (/^\s*(?:- +)*/.exec(line)?.[0] ?? '').length;
}

/** A line that begins an entry of a map or of a list. */
function isEntry(line: string): boolean {
  return /^\s*(?:- |[A-Za-z_][\w.-]*:(?:\s|$))/.test(line);
}

function lineStart(text: string, offset: number): number {
  return offset === 0 ? 0 : text.lastIndexOf('\n', offset - 1) + 1;
}

function lineAt(text: string, offset: number): string {
  const start = lineStart(text, offset);
  const end = text.indexOf('\n', start);
  return text.slice(start, end === -1 ? undefined : end);
}

const SAME_ITEM_COLUMN = 'the items of one list must start in the same column';
const SAME_COLUMN = 'the keys of one map must start in the same column';

/** A map or a list where only one line may stand: a colon too many, or wrong indentation. */
function describeNested(text: string, error: YAMLError): DescribedError {
  const [offset] = error.pos;
  const start = lineStart(text, offset);
  const line = lineAt(text, offset);
  if (/^\s*- /.test(line)) {
    return { offset: start + line.search(/\S/), message: `wrong indentation: ${SAME_ITEM_COLUMN}` };
  }
  if (!/:(?:\s|$)/.test(line.slice(offset - start))) return describeMultiline(text, error);
  const message = 'a value that contains a colon and a space must be in quotes, because ": " begins a map';
  return { offset, message };
}

/** A value that goes on in the next line as if it were a key: the next line is indented more than its own key. */
function describeMultiline(text: string, { pos: [offset] }: YAMLError): DescribedError {
  const line = lineAt(text, offset);
  const next = lineStart(text, offset) + line.length + 1;
  if (LACKS_SPACE.test(line)) return { offset, message: SPACE_AFTER_COLON };
  if (!line.includes(':')) return { offset, message: LACKS_COLON };
  const indent = keyColumn(line);
  const below = keyColumn(lineAt(text, next));
  const [, key] = /^\s*(?:- +)*([A-Za-z_][\w.-]{0,63}):\s/.exec(line) ?? [];
  if (key === undefined || below <= indent || next >= text.length) {
    return { offset, message: `wrong indentation: a key must be in one line, and ${SAME_COLUMN}` };
  }
  const message = `wrong indentation: this line is indented by ${spaces(below)}, but the key "${key}" above, indented by ${spaces(indent)}, has a value already; ${SAME_COLUMN}`;
  return { offset: next + below, message };
}

function spaces(count: number): string {
  return count === 1 ? '1 space' : `${count} spaces`;
}

function describeIndent(text: string, { pos: [offset], message }: YAMLError): DescribedError {
  const line = lineAt(text, offset);
  const at = line.trim() === '' ? offset : lineStart(text, offset) + keyColumn(line);
  const found = (why: string): DescribedError => ({
    offset: at,
    message: `wrong indentation: ${why}`,
  });
  if (/sequence items/.test(message)) return found(SAME_ITEM_COLUMN);
  if (/block scalar/i.test(message)) return found('a text after | or > must be indented evenly');
  return found(SAME_COLUMN);
}

function describeEscape(text: string, { pos: [offset] }: YAMLError): DescribedError {
  const message = `the escape ${text.slice(offset, offset + 2)} does not exist in double quotes; write the backslash twice, or use single quotes`;
  return { offset, message };
}

function describeStart(text: string, { pos: [offset] }: YAMLError): DescribedError {
  return {
    offset,
    message: `a value must not begin with ${text.charAt(offset)}; put it into quotes`,
  };
}

function describeMissing(text: string, { pos: [offset], message }: YAMLError): DescribedError {
  const line = lineAt(text, offset);
  const found = (why: string): DescribedError => ({ offset, message: why });
  if (/^Comments/.test(message)) {
    return found('a space is missing before #; put a value that contains # into quotes');
  }
  if (/^Missing space after :/.test(message)) return found(SPACE_AFTER_COLON);
  if (/^Missing ,/.test(message)) return found('a comma is missing before this');
  if (/^Missing closing/.test(message)) return found('the closing quote is missing');
  if (/must end with/.test(message)) return found('the closing bracket is missing');
  if (/^Sequence item/.test(message)) {
    return found('this line must begin with "- ", like the items of the list above');
  }
  if (LACKS_SPACE.test(line)) return found(SPACE_AFTER_COLON);
  if (/^Implicit map keys/.test(message)) {
    return found(LACKS_COLON);
  }
  return found('a space or a separator is missing here');
}

function describeUnexpected(text: string, { pos: [offset], message }: YAMLError): DescribedError {
  const mark = text.charAt(offset);
  const found = (why: string): DescribedError => ({ offset, message: why });
  if (mark === ']' || mark === '}') return found(`the bracket ${mark} closes nothing; remove it`);
  if (mark === ',') return found('a comma has nothing to separate; remove it');
  if (/^Block scalar header/.test(message)) {
    return found('unexpected text after | or >; the text begins in the next line');
  }
  return found('unexpected text after the value; put the whole value into one pair of quotes');
}
