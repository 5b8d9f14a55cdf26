// Reads one YAML 1.2 document of the core schema into plain values, with the position of each, or into
// mistakes. Never resolves tags, directives or merge keys, never expands aliases without bound, never throws.
// docs/contract.md §3 and §5: unique keys, one document, warnings are errors. YAML 1.2.2 §10.3 (core schema).

import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type YAMLMap,
} from 'yaml';
import { describeYamlErrors, TAGS_REFUSED } from './yaml-errors.js';

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
 * The plain values of a YAML document, or its errors: only the first syntax error, because others follow from it, and
 * otherwise all errors. Objects have the ordinary prototype, which cannot be replaced because the key `__proto__` is
 * refused.
 */
export function readYaml(text: string, limits: YamlLimits): YamlReading {
  const open = limits.isGenerated ? undefined : findOpenBrackets(text);
  if (open !== undefined) {
    const message = `more than ${MAX_OPEN_BRACKETS} brackets are open here, one inside the other`;
    return { ok: false, mistakes: [{ ...open, message }] };
  }
  try {
    return readDocument(text, limits);
  } catch {
    // The parser recurses; input built to exhaust the stack is caught here and does not end the process.
    return { ok: false, mistakes: [{ ...START, message: 'the file cannot be read as YAML' }] };
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
    return tag === undefined && anchor === undefined
      ? undefined
      : 'tags and anchors are not accepted';
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
    return refuse(
      'no anchor for this alias stands before it; put a glob that begins with * into quotes',
    );
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
  for (const pair of items)
    if (isScalar(pair.key) && !pairs.has(pair.key.value)) pairs.set(pair.key.value, pair);
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
