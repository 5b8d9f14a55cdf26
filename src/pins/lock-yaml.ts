// Reads the YAML of a lock file into plain values with their positions, and writes lock files. Reading
// refuses what a generated file never contains (tags, anchors, merge keys, a second document) and never
// throws. Written files are sorted with one member per line, so that a change is readable in a pull request.
// docs/contract.md §5; YAML 1.2.2, core schema (§10.3), double-quoted scalars (§7.3.1).

import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Pair,
  parseDocument,
} from 'yaml';
import type { Json, JsonObject } from '../protocol/jsonrpc.js';
import { quoteYaml } from '../text/escaping.js';
import type { ServerIdentity } from './lock.js';
import {
  LOCKFILE_VERSION,
  type Lock,
  type Pin,
  type Pins,
  type PinVersion,
  SERVER_MEMBERS,
  versionsOf,
} from './lock.js';

/** Larger lock files are refused unread, in UTF-16 units. */
const MAX_LOCK_LENGTH = 32 * 1024 * 1024;
/** Nesting of the file: the most deeply nested definition and the members around it. */
const MAX_DEPTH = 72;

/** A mistake in a lock file. Same shape as the diagnostics of the other configuration files. */
export type LockDiagnostic = {
  readonly file: string;
  /** Line and column count from 1. */
  readonly line: number;
  readonly column: number;
  readonly severity: 'error';
  readonly rule: 'lock';
  readonly message: string;
  readonly suggestion?: string;
};

export type LockPath = readonly (string | number)[];

type LockSource = {
  /** `undefined` if the text could not be read; the diagnostics explain why. */
  readonly value: Json | undefined;
  readonly diagnostics: readonly LockDiagnostic[];
  /** Creates a diagnostic at a value, or at its key. */
  diagnosticAt(
    path: LockPath,
    message: string,
    at?: 'key' | 'value',
    suggestion?: string,
  ): LockDiagnostic;
};

/** A diagnostic of a whole file. */
export function lockDiagnostic(file: string, message: string): LockDiagnostic {
  return { file, line: 1, column: 1, severity: 'error', rule: 'lock', message };
}

/** The values of one YAML document. Any mistake leaves `value` undefined. */
export function readLockSource(file: string, text: string): LockSource {
  if (text.length > MAX_LOCK_LENGTH) return unreadableLock(file, 'the lock file is too large');
  try {
    return readDocument(file, text);
  } catch {
    // The parser recurses: input built to exhaust the stack is caught here.
    return unreadableLock(file, 'the lock file cannot be read as YAML');
  }
}

function unreadableLock(file: string, message: string): LockSource {
  const diagnostic = lockDiagnostic(file, message);
  return { value: undefined, diagnostics: [diagnostic], diagnosticAt: () => diagnostic };
}

function readDocument(file: string, text: string): LockSource {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, {
    version: '1.2',
    schema: 'core',
    merge: false,
    stringKeys: true,
    // Checked below, in linear time.
    uniqueKeys: false,
    prettyErrors: false,
    lineCounter,
  });
  const diagnostics: LockDiagnostic[] = [];
  const diagnosticAtOffset = (offset: number, message: string): LockDiagnostic => {
    const { line, col } = lineCounter.linePos(offset);
    return { ...lockDiagnostic(file, message), line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  for (const mistake of [...document.errors, ...document.warnings]) {
    diagnostics.push(diagnosticAtOffset(mistake.pos[0], describeMistake(mistake.message)));
  }
  const refuse = (node: unknown, message: string): null => {
    diagnostics.push(diagnosticAtOffset(offsetOf(node), message));
    return null;
  };
  const value = readNode(document.contents, 0, refuse);
  return {
    value: diagnostics.length === 0 ? value : undefined,
    diagnostics,
    diagnosticAt(path, message, at = 'value', suggestion) {
      const diagnostic = diagnosticAtOffset(offsetOf(findNode(document, path, at)), message);
      return suggestion === undefined ? diagnostic : { ...diagnostic, suggestion };
    },
  };
}

function describeMistake(message: string): string {
  const [first = 'invalid YAML'] = message.split('\n');
  return first.charAt(0).toLowerCase() + first.slice(1);
}

type Refuse = (node: unknown, message: string) => null;

function readNode(node: unknown, depth: number, refuse: Refuse): Json {
  if (depth > MAX_DEPTH) return refuse(node, `nested more than ${MAX_DEPTH} deep`);
  if (node === null || node === undefined) return null;
  if (isAlias(node)) return refuse(node, 'aliases are not accepted');
  if (isNode(node) && isMarked(node)) return refuse(node, 'tags and anchors are not accepted');
  if (isMap(node)) return readMap(node.items, depth, refuse);
  if (isSeq(node)) return node.items.map((item) => readNode(item, depth + 1, refuse));
  return readScalar(node, refuse);
}

function isMarked(node: object): boolean {
  return (
    ('tag' in node && node.tag !== undefined) || ('anchor' in node && node.anchor !== undefined)
  );
}

function readScalar(node: unknown, refuse: Refuse): Json {
  const value = isScalar(node) ? node.value : undefined;
  if (typeof value === 'number') {
    return Number.isFinite(value) ? value : refuse(node, 'this number cannot be held');
  }
  if (typeof value === 'string' || typeof value === 'boolean' || value === null) return value;
  return refuse(node, 'this value is not JSON');
}

function readMap(items: readonly Pair[], depth: number, refuse: Refuse): Json {
  const members: Record<string, Json> = {};
  for (const { key, value } of items) {
    const name = isScalar(key) && !isMarked(key) ? key.value : undefined;
    if (typeof name !== 'string') refuse(key, 'keys are plain text');
    else if (name === '__proto__') refuse(key, 'this key is not accepted');
    else if (Object.hasOwn(members, name)) refuse(key, 'this key stands twice');
    else members[name] = readNode(value, depth + 1, refuse);
  }
  return members;
}

function findNode(document: Document, path: LockPath, at: 'key' | 'value'): unknown {
  const value = document.getIn(path, true);
  if (at === 'value' && isNode(value)) return value;
  const parent = path.length > 1 ? document.getIn(path.slice(0, -1), true) : document.contents;
  const last = path.at(-1);
  const pair = isMap(parent)
    ? parent.items.find(({ key }) => isScalar(key) && key.value === last)
    : undefined;
  return pair?.key ?? parent ?? document.contents;
}

function offsetOf(node: unknown): number {
  return isNode(node) ? (node.range?.[0] ?? 0) : 0;
}

export const LOCK_HEADER =
  '# Written by `sallyport pin`: review the differences, approve with `sallyport pin approve`.\n';
/** The YAML document end marker (YAML 1.2.2 §9.1.2), which proves that the file is not truncated. */
export const LOCK_END = '...';

/** Scalars that are strings in every YAML version when written without quotes. */
const BARE = /^[A-Za-z_][A-Za-z0-9_./-]*$/;
const RESERVED = new Set(['true', 'false', 'null', 'yes', 'no', 'on', 'off', 'y', 'n']);

/** A YAML implicit key ends within 1024 characters (YAML 1.2.2 §8.2.2); longer keys are written explicitly. */
const MAX_IMPLICIT_KEY = 1000;

/**
 * The text of a lock file. Equal locks give equal bytes. Invisible characters are escaped; nothing is left
 * out.
 */
export function writeLock(lock: Lock): string {
  const lines = [
    `lockfileVersion: ${LOCKFILE_VERSION}`,
    `upstream: ${writeText(lock.upstream)}`,
    ...(lock.server === undefined ? [] : member('server', writeServer(lock.server))),
    ...(lock.instructions === undefined ? [] : writeInstructions(lock.instructions)),
    ...writePins('tools', lock.pins.tool),
    ...writePins('prompts', lock.pins.prompt),
    ...writePins('resourceTemplates', lock.pins.template),
    ...(lock.pins.resource.size === 0 ? [] : writePins('resources', lock.pins.resource)),
  ];
  return `${LOCK_HEADER}${lines.join('\n')}\n${LOCK_END}\n`;
}

function writeServer(server: ServerIdentity): Written {
  const block = SERVER_MEMBERS.flatMap((name) => {
    const text = server[name];
    return text === undefined ? [] : member(name, { inline: writeText(text) });
  });
  return { block };
}

function writePins(section: string, pins: Pins): string[] {
  if (pins.size === 0) return [`${section}: {}`];
  const lines = [`${section}:`];
  for (const [name, pin] of [...pins].sort(byName)) {
    lines.push(...indented(member(name, writePin(pin, 'definition'))));
  }
  return lines;
}

function writeInstructions(pin: Pin<string>): string[] {
  return member('instructions', writePin(pin, 'text'));
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

type Written = { readonly inline: string } | { readonly block: readonly string[] };

function writePin(pin: Pin<Json>, content: 'definition' | 'text'): Written {
  const [first = pin, ...variants] = versionsOf(pin);
  const lines = writeVersion(first, content);
  if (variants.length === 0) return { block: [...lines, 'variants: []'] };
  const block = variants.flatMap((variant) => element({ block: writeVersion(variant, content) }));
  return { block: [...lines, 'variants:', ...indented(block)] };
}

function writeVersion(version: PinVersion<Json>, content: 'definition' | 'text'): string[] {
  const { approval } = version;
  return [
    `status: ${version.status}`,
    `sha256: ${JSON.stringify(version.sha256)}`,
    ...(approval === undefined ? [] : member('approval', writeJson(approval))),
    ...member(content, writeJson(version.definition)),
  ];
}

function writeJson(value: Json | JsonObject): Written {
  if (typeof value === 'string') return { inline: writeText(value) };
  if (typeof value !== 'object' || value === null) return { inline: JSON.stringify(value) };
  if (isList(value)) {
    if (value.length === 0) return { inline: '[]' };
    return { block: value.flatMap((item) => element(writeJson(item))) };
  }
  const names = Object.keys(value).sort();
  if (names.length === 0) return { inline: '{}' };
  return { block: names.flatMap((name) => member(name, writeJson(value[name] ?? null))) };
}

function isList(value: readonly Json[] | JsonObject): value is readonly Json[] {
  return Array.isArray(value);
}

function member(name: string, value: Written): string[] {
  const key = writeText(name);
  const start = key.length > MAX_IMPLICIT_KEY ? [`? ${key}`] : [];
  const colon = start.length > 0 ? ':' : `${key}:`;
  if ('inline' in value) return [...start, `${colon} ${value.inline}`];
  return [...start, colon, ...indented(value.block)];
}

function element(value: Written): string[] {
  if ('inline' in value) return [`- ${value.inline}`];
  return value.block.map((line, index) => (index === 0 ? `- ${line}` : `  ${line}`));
}

function indented(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`);
}

function writeText(text: string): string {
  if (BARE.test(text) && !RESERVED.has(text.toLowerCase())) return text;
  return quoteYaml(text);
}
