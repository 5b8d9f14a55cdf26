// Reads one YAML 1.2 document of the core schema into plain values, with the position of each, or into
// diagnostics; and looks up values in trees whose shape may be wrong. Never resolves tags, directives or merge
// keys, never expands aliases without bound, never throws. docs/contract.md §3: unique keys, one document,
// warnings are errors. YAML 1.2.2 §10.3 (core schema).

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
} from 'yaml';
import {
  type Diagnostic,
  type FilePath,
  fileDiagnostic,
  type PathDiagnostic,
} from './diagnostics.js';

/** Line and column, counted from 1. */
export type Position = { readonly line: number; readonly column: number };

/** Finds the position of a path; for a path that is not in the file, the position of its nearest ancestor. */
export type Locate = (path: FilePath, at: 'key' | 'value') => Position;

const START: Position = { line: 1, column: 1 };

/** A position lookup over one parsed document. Follows aliases. */
function locateIn(document: Document, lines: LineCounter): Locate {
  return (path, at) => {
    let node: unknown = document.contents;
    let key: unknown;
    for (const step of path) {
      const next = descend(document, node, step);
      if (next === undefined) return positionOf(lines, key ?? document.contents);
      key = next.key;
      node = next.value;
    }
    return positionOf(lines, at === 'value' ? (node ?? key) : (key ?? node));
  };
}

/** Gives a diagnostic that has a path its file, line and column. */
export function locateDiagnostic(
  file: string,
  locate: Locate,
  diagnostic: PathDiagnostic,
): Diagnostic {
  const { path, at, ...rest } = diagnostic;
  return { file, ...locate(path, at), ...rest };
}

function descend(
  document: Document,
  parent: unknown,
  step: string | number,
): { key: unknown; value: unknown } | undefined {
  const node = isAlias(parent) ? parent.resolve(document) : parent;
  if (isMap(node)) {
    const pair = node.items.find((item) => isScalar(item.key) && item.key.value === String(step));
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

type Tree = { readonly [key: string]: unknown };

/**
 * The map at a path, or an empty one. This and the following lookups skip values of the wrong shape, so that
 * one run of the checks finds every mistake.
 */
export function mapAt(root: unknown, path: FilePath): Tree {
  const value = valueAt(root, path);
  return isTree(value) ? value : {};
}

/** The text items of the list at a path, with their indexes. */
export function textsAt(root: unknown, path: FilePath): readonly (readonly [number, string])[] {
  const value = valueAt(root, path);
  if (!Array.isArray(value)) return [];
  return value.flatMap((item: unknown, index) =>
    typeof item === 'string' ? [[index, item] as const] : [],
  );
}

/** The text at a path, if it is text and not empty. */
export function textAt(root: unknown, path: FilePath): string | undefined {
  const value = valueAt(root, path);
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The value at a path, or `undefined` if the path does not exist. */
export function valueAt(root: unknown, path: FilePath): unknown {
  let value = root;
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step))
      return undefined;
    value = (value as Readonly<Record<string | number, unknown>>)[step];
  }
  return value;
}

function isTree(value: unknown): value is Tree {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export const MAX_FILE_BYTES = 1024 * 1024;
/** Counted after aliases are followed, which bounds an alias bomb. */
export const MAX_VALUES = 100_000;
const MAX_ALIASES = 100;
const MAX_DEPTH = 64;

type YamlFile = { readonly value: unknown; readonly locate: Locate };

/**
 * The plain values of a YAML file. `source` is `undefined` if there is any error; `diagnostics` then has
 * the errors. Objects have the ordinary prototype: a key `__proto__` is refused, so it cannot be replaced.
 */
export function readYaml(
  file: string,
  bytes: Uint8Array,
): { readonly source: YamlFile | undefined; readonly diagnostics: readonly Diagnostic[] } {
  if (bytes.byteLength > MAX_FILE_BYTES) {
    return refuse(fileDiagnostic(file, 'yaml', `the file is larger than ${MAX_FILE_BYTES} bytes`));
  }
  const text = decode(bytes);
  if (text === undefined) return refuse(fileDiagnostic(file, 'yaml', 'the file is not UTF-8 text'));
  try {
    return readText(file, text);
  } catch {
    // The parser recurses; input built to exhaust the stack is caught here and does not end the process.
    return refuse(fileDiagnostic(file, 'yaml', 'the file cannot be read as YAML'));
  }
}

function refuse(diagnostic: Diagnostic): { source: undefined; diagnostics: readonly Diagnostic[] } {
  return { source: undefined, diagnostics: [diagnostic] };
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

function readText(
  file: string,
  text: string,
): { source: YamlFile | undefined; diagnostics: readonly Diagnostic[] } {
  const lineCounter = new LineCounter();
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
    lineCounter,
  });
  const diagnostics: Diagnostic[] = [];
  const report = (offset: number, message: string): void => {
    const { line, col } = lineCounter.linePos(offset);
    const position = { line: Math.max(line, 1), column: Math.max(col, 1) };
    diagnostics.push({ file, ...position, severity: 'error', rule: 'yaml', message });
  };
  for (const yamlError of [...document.errors, ...document.warnings]) {
    report(yamlError.pos[0], describeMistake(yamlError.code, yamlError.message));
  }
  if (hasDirective(document)) report(0, 'directives (%YAML, %TAG) are not accepted');
  const reading: Reading = { document, report, values: 0, aliases: 0, open: new Set() };
  const value = readNode(reading, document.contents, 0);
  if (diagnostics.length > 0) return { source: undefined, diagnostics };
  return { source: { value, locate: locateIn(document, lineCounter) }, diagnostics };
}

function describeMistake(code: string, message: string): string {
  if (code === 'MULTIPLE_DOCS') return 'the file holds more than one YAML document';
  if (code === 'TAG_RESOLVE_FAILED') return 'tags (!) are not accepted';
  const [first = 'invalid YAML'] = message.split('\n');
  return first.charAt(0).toLowerCase() + first.slice(1);
}

function hasDirective(document: Document): boolean {
  const directives = document.directives;
  if (directives === undefined) return false;
  return directives.yaml.explicit === true || Object.keys(directives.tags).length > 1;
}

type Reading = {
  readonly document: Document;
  readonly report: (offset: number, message: string) => void;
  values: number;
  aliases: number;
  /** Nodes being read: an alias to one of them would be infinite recursion. */
  readonly open: Set<unknown>;
};

function readNode(reading: Reading, node: unknown, depth: number): unknown {
  reading.values += 1;
  if (reading.values === MAX_VALUES + 1) {
    reading.report(offsetOf(node), `the file holds more than ${MAX_VALUES} values`);
  }
  if (reading.values > MAX_VALUES || node === null || node === undefined) return null;
  if (depth > MAX_DEPTH) {
    reading.report(offsetOf(node), `nested more than ${MAX_DEPTH} deep`);
    return null;
  }
  if (isAlias(node)) return readAlias(reading, node, depth);
  if ((node as Node & { tag?: string }).tag !== undefined) {
    reading.report(offsetOf(node), 'tags (!) are not accepted');
    return null;
  }
  if (isScalar(node)) return readScalar(reading, node.value, offsetOf(node));
  reading.open.add(node);
  const value = isMap(node) ? readMap(reading, node.items, depth) : readList(reading, node, depth);
  reading.open.delete(node);
  return value;
}

function readAlias(reading: Reading, alias: Node, depth: number): unknown {
  reading.aliases += 1;
  const target = isAlias(alias) ? alias.resolve(reading.document) : undefined;
  if (reading.aliases === MAX_ALIASES + 1) {
    reading.report(offsetOf(alias), `more than ${MAX_ALIASES} aliases`);
  }
  if (reading.aliases > MAX_ALIASES) return null;
  if (target === undefined || reading.open.has(target)) {
    reading.report(offsetOf(alias), 'this alias names nothing that is complete before it');
    return null;
  }
  return readNode(reading, target, depth);
}

function readScalar(reading: Reading, value: unknown, offset: number): unknown {
  if (typeof value !== 'number') return value;
  if (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))) {
    reading.report(offset, 'this number cannot be held exactly; quote it to make it text');
  }
  return value;
}

function readMap(reading: Reading, items: readonly Pair[], depth: number): object {
  const map: Record<string, unknown> = {};
  for (const { key, value } of items) {
    const name = isScalar(key) ? key.value : undefined;
    if (typeof name !== 'string' || (key as Node & { tag?: string }).tag !== undefined) {
      reading.report(offsetOf(key), 'keys are plain text');
    } else if (name === '__proto__' || name === '<<') {
      reading.report(offsetOf(key), `the key ${JSON.stringify(name)} is not accepted`);
    } else if (Object.hasOwn(map, name)) {
      reading.report(offsetOf(key), 'this key stands twice');
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
