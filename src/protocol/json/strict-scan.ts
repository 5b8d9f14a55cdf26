// Scans JSON text before it is parsed, in one linear pass: nesting depth, number of values, duplicate
// members, lone surrogates. Names that differ only in case are duplicates where the protocol defines the members, and
// distinct in data, whose names belong to a tool. Checks only what a JSON parser would accept silently; the grammar is
// left to JSON.parse, so nothing here makes invalid text valid. For speed, strings are skipped with indexOf and member
// names are hashed in place.
// Source: RFC 8259 §4, §8.2 and §9; RFC 7493 §2.1 and §2.3.

import { foldName } from '../../text/json-members.js';
import type { Span } from '../../text/span.js';

/** An error in JSON text, or in the bytes that should contain it. */
export type JsonError =
  | 'malformed-json'
  | 'lone-surrogate'
  | 'duplicate-key'
  | 'prototype-member'
  | 'too-deep'
  | 'too-many-values';

/** Limits of JSON text. Values are objects, arrays, strings other than member names, numbers and literals. */
export type JsonCaps = { readonly maxDepth: number; readonly maxValues: number };

/** Objects with more members than this are checked with a set instead of by comparing hashes. */
const MAX_COMPARED_MEMBERS = 8;

/** A number literal of at most this many characters and without an exponent survives a double (DBL_DIG). */
const MAX_EXACT_LENGTH = 15;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const MINUS = 0x2d;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const LETTER_D = 0x64;
const LETTER_E = 0x65;
const LETTER_F = 0x66;
const LETTER_N = 0x6e;
const LETTER_T = 0x74;
const LETTER_U = 0x75;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** The result of a scan that found no error. */
export type Scanned = {
  readonly error?: never;
  readonly suspectNumbers: boolean;
  readonly values: number;
  /** The longest string value without escapes, if it is long enough to matter. */
  readonly longest?: Span | undefined;
};

type ScanOutcome = { readonly error: JsonError } | Scanned;

/** Shorter strings are not worth being parsed around. */
const MIN_LONG_STRING = 4096;

/** Above this many names the columns are released after the scan: the next one hardly needs as many. */
const MAX_KEPT_NAMES = 1024;

type Scan = {
  text: string;
  maxDepth: number;
  maxValues: number;
  values: number;
  at: number;
  /** Position of the next quote and backslash, at or after the position last searched from. */
  quote: number;
  backslash: number;
  depth: number;
  isNameNext: boolean;
  /** The naming in the value of the last name, if it is another than where the name stands. */
  namingNext: Naming | undefined;
  suspectNumbers: boolean;
  /** Escapes so far. */
  escapes: number;
  longest: Span | undefined;
  /** By depth: whether the container is an object, the index of its first name, and its name set once it is large. */
  readonly isObject: boolean[];
  /** By depth. */
  readonly naming: Naming[];
  readonly firstName: number[];
  readonly sets: (Set<string> | undefined)[];
  hasSets: boolean;
  /** The names of all open objects, as a stack of columns. */
  nameCount: number;
  readonly nameHash: number[];
  readonly nameStart: number[];
  readonly nameEnd: number[];
};

/**
 * Scans text that JSON.parse will read afterwards. For valid JSON the result is exact; for other text it may
 * report any error or none. Linear in the length, never recursive.
 *
 * @returns the first error, or the number of values and whether a number literal could lose precision as a
 * double.
 */
export function scanJson(text: string, caps: JsonCaps): ScanOutcome {
  const scan = begin(text, caps);
  while (scan.at < text.length) {
    const error = step(scan, text.charCodeAt(scan.at));
    if (error !== undefined) return end(scan, { error });
  }
  const { suspectNumbers, values, maxValues, longest } = scan;
  return end(scan, values > maxValues ? TOO_MANY_VALUES : { suspectNumbers, values, longest });
}

const TOO_MANY_VALUES: ScanOutcome = Object.freeze({ error: 'too-many-values' });

/** Only one scan runs at a time, so all scans use the same columns. */
const kept: Scan = {
  text: '',
  maxDepth: 0,
  maxValues: 0,
  values: 0,
  at: 0,
  quote: -1,
  backslash: -1,
  depth: 0,
  isNameNext: false,
  namingNext: undefined,
  suspectNumbers: false,
  escapes: 0,
  longest: undefined,
  isObject: [false],
  naming: ['protocol'],
  firstName: [0],
  sets: [undefined],
  hasSets: false,
  nameCount: 0,
  nameHash: [],
  nameStart: [],
  nameEnd: [],
};

function begin(text: string, { maxDepth, maxValues }: JsonCaps): Scan {
  kept.text = text;
  kept.maxDepth = maxDepth;
  kept.maxValues = maxValues;
  kept.values = 0;
  kept.at = 0;
  kept.quote = -1;
  kept.backslash = -1;
  kept.depth = 0;
  kept.isNameNext = false;
  kept.namingNext = undefined;
  kept.suspectNumbers = false;
  kept.escapes = 0;
  kept.longest = undefined;
  kept.nameCount = 0;
  return kept;
}

/** Releases the text and its names, so that no old text is retained and the next scan starts with small columns. */
function end(scan: Scan, outcome: ScanOutcome): ScanOutcome {
  scan.text = '';
  if (scan.hasSets) scan.sets.fill(undefined);
  scan.hasSets = false;
  if (scan.nameHash.length > MAX_KEPT_NAMES) {
    for (const column of [scan.nameHash, scan.nameStart, scan.nameEnd]) column.length = 0;
  }
  return outcome;
}

function step(scan: Scan, code: number): JsonError | undefined {
  switch (code) {
    case QUOTE:
      return takeString(scan);
    case OPEN_BRACE:
      return open(scan, true);
    case OPEN_BRACKET:
      return open(scan, false);
    case CLOSE_BRACE:
    case CLOSE_BRACKET:
      return close(scan);
    case COMMA:
      scan.namingNext = undefined;
      // Every further scalar needs a comma, so the cap on scalars is checked here.
      if (scan.values > scan.maxValues) return 'too-many-values';
      scan.isNameNext = scan.isObject[scan.depth] === true;
      scan.at++;
      return undefined;
  }
  if (code === MINUS || (code >= DIGIT_0 && code <= DIGIT_9)) takeNumber(scan);
  else takeOther(scan, code);
  return undefined;
}

/**
 * White space, a colon, or a letter of a literal. Each of the letters t, f and n occurs once in one literal,
 * and in no other.
 */
function takeOther(scan: Scan, code: number): void {
  if (code >= LETTER_F && (code === LETTER_T || code === LETTER_F || code === LETTER_N)) scan.values++;
  scan.at++;
}

function open(scan: Scan, isObject: boolean): JsonError | undefined {
  if (scan.depth >= scan.maxDepth) return 'too-deep';
  scan.values++;
  if (scan.values > scan.maxValues) return 'too-many-values';
  const naming = scan.namingNext ?? scan.naming[scan.depth] ?? 'protocol';
  scan.namingNext = undefined;
  scan.depth++;
  scan.isObject[scan.depth] = isObject;
  scan.naming[scan.depth] = naming;
  scan.firstName[scan.depth] = scan.nameCount;
  scan.sets[scan.depth] = undefined;
  scan.isNameNext = isObject;
  scan.at++;
  return undefined;
}

function close(scan: Scan): JsonError | undefined {
  if (scan.depth === 0) return 'malformed-json';
  scan.nameCount = scan.firstName[scan.depth] ?? 0;
  scan.depth--;
  scan.isNameNext = false;
  scan.at++;
  return undefined;
}

function takeNumber(scan: Scan): void {
  const { text } = scan;
  scan.values++;
  const start = scan.at;
  let at = start + 1;
  let hasExponent = false;
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if ((code | 0x20) === LETTER_E) hasExponent = true;
    else if (!isNumberPart(code)) break;
  }
  if (hasExponent || at - start > MAX_EXACT_LENGTH) scan.suspectNumbers = true;
  scan.at = at;
}

/** Digits, '+', '-' and '.'. */
function isNumberPart(code: number): boolean {
  return code >= 0x2b && code <= DIGIT_9 && code !== COMMA && code !== 0x2f;
}

function takeString(scan: Scan): JsonError | undefined {
  const start = scan.at + 1;
  const escapesBefore = scan.escapes;
  const end = endOfString(scan, start);
  if (end < 0) return end === LONE_SURROGATE ? 'lone-surrogate' : 'malformed-json';
  scan.at = end + 1;
  if (!scan.isNameNext) {
    scan.values++;
    if (end - start >= MIN_LONG_STRING && scan.escapes === escapesBefore) noteLongString(scan, start, end);
    return undefined;
  }
  scan.isNameNext = false;
  return takeName(scan, start, end);
}

function noteLongString(scan: Scan, start: number, end: number): void {
  const { longest } = scan;
  if (longest === undefined || end - start > longest.end - longest.start) scan.longest = { start, end };
}

/** Instead of a position: half of a surrogate pair without the other half, which is no character. */
const LONE_SURROGATE = -2;

/** The position of the closing quote; -1 if there is none, or {@link LONE_SURROGATE}. */
function endOfString(scan: Scan, start: number): number {
  const { text } = scan;
  let at = start;
  for (;;) {
    if (scan.quote < at) scan.quote = indexOrEnd(text, '"', at);
    if (scan.backslash < at) scan.backslash = indexOrEnd(text, '\\', at);
    if (scan.quote < scan.backslash) return scan.quote;
    if (scan.backslash === text.length) return -1;
    scan.escapes++;
    at = afterEscape(text, scan.backslash);
    if (at < 0) return at;
  }
}

function indexOrEnd(text: string, needle: string, from: number): number {
  const found = text.indexOf(needle, from);
  return found < 0 ? text.length : found;
}

/** The position after the escape (or pair of escapes) at `at`, or {@link LONE_SURROGATE}. */
function afterEscape(text: string, at: number): number {
  const half = surrogateHalf(text, at);
  if (half === 'none') return at + 2;
  return half === 'high' && surrogateHalf(text, at + 6) === 'low' ? at + 12 : LONE_SURROGATE;
}

/** Which half of a surrogate pair the escape at `at` is; its last two digits do not matter. */
function surrogateHalf(text: string, at: number): 'high' | 'low' | 'none' {
  if (text.charCodeAt(at) !== BACKSLASH || text.charCodeAt(at + 1) !== LETTER_U) return 'none';
  if ((text.charCodeAt(at + 2) | 0x20) !== LETTER_D) return 'none';
  const digit = text.charCodeAt(at + 3) | 0x20;
  if (digit === 0x38 || digit === 0x39 || digit === 0x61 || digit === 0x62) return 'high';
  return digit >= 0x63 && digit <= 0x66 ? 'low' : 'none';
}

function takeName(scan: Scan, start: number, end: number): JsonError | undefined {
  const { text } = scan;
  let hash = 0;
  for (let at = start; at < end; at++) {
    let code = text.charCodeAt(at);
    if (code > 0x7f || code === BACKSLASH) return takeUnusualName(scan, start, end);
    if (code >= 0x41 && code <= 0x5a) code |= 0x20;
    hash = (Math.imul(hash, 31) + code) & 0x3fffffff;
  }
  scan.namingNext = namingBelow(scan, start, end);
  // Assigning to `__proto__` would set the prototype, so a plain object cannot hold such a member.
  if (end - start === 9 && text.startsWith('__proto__', start)) return 'prototype-member';
  return addName(scan, start, end, hash);
}

/**
 * Whose the names of an object are. `protocol`: those that MCP or JSON-RPC define, compared as the laxest parser would.
 * `data`: those of a tool or a schema, compared exactly (RFC 8259 §4). `mixed`: data beside members of the protocol.
 */
type Naming = 'protocol' | 'mixed' | 'data';

/**
 * Members whose value has names of its own: those of messages, and those of JSON Schema that hold names of properties or
 * examples of values. Not `arguments` as a list, which describes the arguments of a prompt.
 */
const NAMING_BELOW: ReadonlyMap<string, Naming> = new Map<string, Naming>([
  ...['_meta', 'data'].map((name) => [name, 'mixed'] as const),
  ...['arguments', 'structuredContent', 'input', 'metadata'].map((name) => [name, 'data'] as const),
  ...['properties', 'patternProperties', '$defs', 'definitions'].map((name) => [name, 'data'] as const),
  ...['dependentSchemas', 'dependentRequired', 'default', 'const', 'enum', 'examples'].map(
    (name) => [name, 'data'] as const,
  ),
]);
const NAMING_LENGTHS: ReadonlySet<number> = new Set([...NAMING_BELOW.keys()].map(({ length }) => length));

/** The members of the protocol in `_meta` and in the `data` of an error, folded; all with the prefix are, too. */
const MIXED_MEMBERS: ReadonlySet<string> = new Set([
  ...['progresstoken', 'supported', 'requested', 'elicitations', 'requiredcapabilities'],
]);
const PROTOCOL_PREFIX = 'io.modelcontextprotocol/';

function isOfProtocol(folded: string): boolean {
  return MIXED_MEMBERS.has(folded) || folded.startsWith(PROTOCOL_PREFIX);
}

/** The naming below a member whose name ends at `end`; undefined if it is that of the object the member is in. */
function namingBelow(scan: Scan, start: number, end: number): Naming | undefined {
  const { text, depth } = scan;
  switch (scan.naming[depth]) {
    case 'data':
      return undefined;
    case 'mixed':
      return isOfProtocol(foldName(readName(text, start, end) ?? '')) ? 'protocol' : 'data';
  }
  if (!NAMING_LENGTHS.has(end - start)) return undefined;
  const name = text.slice(start, end);
  return name === 'arguments' && beginsList(text, end + 1) ? undefined : NAMING_BELOW.get(name);
}

/** Whether the value of the member whose name ends at `from` is a list. */
function beginsList(text: string, from: number): boolean {
  let at = from;
  while (text.charCodeAt(at) <= 0x20 || text.charCodeAt(at) === COLON) at++;
  return text.charCodeAt(at) === OPEN_BRACKET;
}

function takeUnusualName(scan: Scan, start: number, end: number): JsonError | undefined {
  const name = readName(scan.text, start, end);
  if (name === undefined) return 'malformed-json';
  if (name === '__proto__') return 'prototype-member';
  // Parsers written in C end a name at NUL, so such a name may duplicate any other.
  if (name.includes('\0')) return 'duplicate-key';
  scan.namingNext = namingBelow(scan, start, end);
  const folded = foldName(name);
  let hash = 0;
  for (let at = 0; at < folded.length; at++) {
    hash = (Math.imul(hash, 31) + folded.charCodeAt(at)) & 0x3fffffff;
  }
  return addName(scan, start, end, hash);
}

function readName(text: string, start: number, end: number): string | undefined {
  const raw = text.slice(start, end);
  if (!raw.includes('\\')) return raw;
  try {
    return String(JSON.parse(`"${raw}"`));
  } catch {
    return undefined;
  }
}

function addName(scan: Scan, start: number, end: number, hash: number): JsonError | undefined {
  const set = scan.sets[scan.depth];
  if (set !== undefined) return addToSet(set, comparedName(scan, start, end));
  const first = scan.firstName[scan.depth] ?? 0;
  for (let at = first; at < scan.nameCount; at++) {
    if (scan.nameHash[at] !== hash) continue;
    const other = comparedName(scan, scan.nameStart[at] ?? 0, scan.nameEnd[at] ?? 0);
    if (other === comparedName(scan, start, end)) return 'duplicate-key';
  }
  scan.nameHash[scan.nameCount] = hash;
  scan.nameStart[scan.nameCount] = start;
  scan.nameEnd[scan.nameCount] = end;
  scan.nameCount++;
  if (scan.nameCount - first > MAX_COMPARED_MEMBERS) {
    scan.sets[scan.depth] = setOf(scan, first);
    scan.hasSets = true;
  }
  return undefined;
}

function setOf(scan: Scan, first: number): Set<string> {
  const set = new Set<string>();
  for (let at = first; at < scan.nameCount; at++) {
    set.add(comparedName(scan, scan.nameStart[at] ?? 0, scan.nameEnd[at] ?? 0));
  }
  return set;
}

function addToSet(set: Set<string>, compared: string): JsonError | undefined {
  if (set.has(compared)) return 'duplicate-key';
  set.add(compared);
  return undefined;
}

/** A name in the form in which it must be the only one of its object. */
function comparedName({ text, naming, depth }: Scan, start: number, end: number): string {
  const name = readName(text, start, end) ?? '';
  if (naming[depth] === 'data') return name;
  const folded = foldName(name);
  return naming[depth] === 'protocol' || isOfProtocol(folded) ? folded : name;
}
