// Reads the YAML of a lock file, which never contains tags, anchors, merge keys or a second document, and writes
// lock files. Written files are sorted with one member per line, so that a change is readable in a pull request.
// docs/contract.md §5; YAML 1.2.2, double-quoted scalars (§7.3.1).

import type { Json, JsonObject } from '../protocol/jsonrpc.js';
import { quoteYaml } from '../text/escaping.js';
import { readYaml, type YamlLimits, type YamlPath } from '../text/yaml.js';
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
/** The depth is that of the most deeply nested definition and the members around it. */
const LIMITS: YamlLimits = {
  maxDepth: 72,
  maxValues: Number.POSITIVE_INFINITY,
  isGenerated: true,
};

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

type LockSource =
  | { readonly value: undefined; readonly diagnostics: readonly LockDiagnostic[] }
  | {
      readonly value: Json;
      /** Creates a diagnostic at a value, or at its key. */
      diagnosticAt(
        path: YamlPath,
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
  if (text.length > MAX_LOCK_LENGTH) {
    return { value: undefined, diagnostics: [lockDiagnostic(file, 'the lock file is too large')] };
  }
  const reading = readYaml(text, LIMITS);
  if (!reading.ok) {
    const diagnostics = reading.mistakes.map(({ message, line, column }) => {
      return { ...lockDiagnostic(file, message), line, column };
    });
    return { value: undefined, diagnostics };
  }
  return {
    // The core schema has no values but those of JSON.
    value: reading.value as Json,
    diagnosticAt(path, message, at = 'value', suggestion) {
      const diagnostic = { ...lockDiagnostic(file, message), ...reading.locate(path, at) };
      return suggestion === undefined ? diagnostic : { ...diagnostic, suggestion };
    },
  };
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

function writeServer(server: ServerIdentity): WrittenPin {
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

type WrittenPin = { readonly inline: string } | { readonly block: readonly string[] };

function writePin(pin: Pin<Json>, content: 'definition' | 'text'): WrittenPin {
  const [first = pin, ...variants] = versionsOf(pin);
  const lines = writeVersion(first, content);
  if (variants.length === 0) return { block: [...lines, 'variants: []'] };
  const block = variants.flatMap((variant) => element({ block: writeVersion(variant, content) }));
  return { block: [...lines, 'variants:', ...indented(block)] };
}

function writeVersion(version: PinVersion<Json>, content: 'definition' | 'text'): string[] {
  const { approval, block } = version;
  return [
    `status: ${version.status}`,
    `sha256: ${JSON.stringify(version.sha256)}`,
    ...(approval === undefined ? [] : member('approval', writeJson(approval))),
    ...(block === undefined ? [] : member('block', writeJson(block))),
    ...member(content, writeJson(version.definition)),
  ];
}

function writeJson(value: Json | JsonObject): WrittenPin {
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

function member(name: string, value: WrittenPin): string[] {
  const key = writeText(name);
  const start = key.length > MAX_IMPLICIT_KEY ? [`? ${key}`] : [];
  const colon = start.length > 0 ? ':' : `${key}:`;
  if ('inline' in value) return [...start, `${colon} ${value.inline}`];
  return [...start, colon, ...indented(value.block)];
}

function element(value: WrittenPin): string[] {
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
