// Lock files: their types (definitions that were seen, approved and blocked, and the server identity) with the common
// accessors of pins, and their YAML, which never contains tags, anchors, merge keys or a second document. Written files
// are sorted with one member per line, so that a change is readable in a pull request. lock-reader.ts reads them.
// docs/reference/lock-files.md; MCP 2025-11-25 lifecycle (`serverInfo`); MCP 2026-07-28 server/discover; YAML 1.2.2,
// double-quoted scalars (§7.3.1).

import type { PinKind } from '../policy/definitions.js';
import type { Json, JsonObject } from '../protocol/jsonrpc.js';
import { quoteYaml } from '../text/escaping.js';
import { hasOddCharacter, readYaml, type YamlLimits, type YamlPath } from '../text/yaml.js';
import type { Change } from './comparison.js';
import { MAX_DEFINITION_DEPTH, sha256Hex } from './digest.js';
import { readWrittenLines } from './written-lock.js';

export const LOCKFILE_VERSION = 1;
export const LOCK_SUFFIX = '.lock.yaml';
export const PIN_KINDS = ['tool', 'prompt', 'template', 'resource'] as const satisfies readonly PinKind[];

/** `pending`: seen and not yet reviewed. Only `approved` grants anything. */
export type PinStatus = 'pending' | 'approved' | 'blocked';

/** Who approved or blocked this digest, when (RFC 3339, UTC) and why. */
export type Approval = {
  readonly by: string;
  readonly at: string;
  readonly note?: string;
  /** The findings of the scan that were accepted with an approval. */
  readonly accepted?: readonly string[];
};

/** One definition with its review status. */
export type PinVersion<Definition> = {
  readonly status: PinStatus;
  /** Lower-case hex, recomputed from the definition when the file is read. */
  readonly sha256: string;
  readonly approval: Approval | undefined;
  /** Who blocked it; absent if it is not blocked, or if that was not recorded. */
  readonly block?: Approval | undefined;
  readonly definition: Definition;
};

/** The entry of one name in the lock file. If the first version is blocked, the name is blocked. */
export type Pin<Definition = JsonObject> = PinVersion<Definition> & {
  readonly variants: readonly PinVersion<Definition>[];
};

export type Pins = ReadonlyMap<string, Pin>;

export type Lock = {
  readonly upstream: string;
  /** The identity that the server states; absent in files written without it. */
  readonly server: ServerIdentity | undefined;
  readonly instructions: Pin<string> | undefined;
  /** By name; templates by their `uriTemplate`, resources by their `uri`. */
  readonly pins: { readonly [kind in PinKind]: Pins };
};

/** A value for each kind. */
export function byKind<Value>(of: (kind: PinKind) => Value): { readonly [kind in PinKind]: Value } {
  return {
    tool: of('tool'),
    prompt: of('prompt'),
    template: of('template'),
    resource: of('resource'),
  };
}

/** The sections of a lock file. */
export const SECTIONS = {
  tool: 'tools',
  prompt: 'prompts',
  template: 'resourceTemplates',
  resource: 'resources',
} as const satisfies { readonly [kind in PinKind]: string };

/** An empty lock file, which is equivalent to a missing one. */
export function emptyLock(upstream: string): Lock {
  const pins = byKind(() => new Map());
  return { upstream, server: undefined, instructions: undefined, pins };
}

/** The member of a definition that holds its name. */
export function nameMember(kind: PinKind): 'name' | 'uriTemplate' | 'uri' {
  switch (kind) {
    case 'tool':
    case 'prompt':
      return 'name';
    case 'template':
      return 'uriTemplate';
    case 'resource':
      return 'uri';
  }
}

/** The name of a definition, or `undefined` if it has none. */
export function nameOf(kind: PinKind, definition: JsonObject): string | undefined {
  const name = definition[nameMember(kind)];
  return typeof name === 'string' && name !== '' ? name : undefined;
}

/** The versions of a pin in order: the first, then the variants. */
export function versionsOf<Definition>(pin: Pin<Definition> | undefined): readonly PinVersion<Definition>[] {
  return pin === undefined ? [] : [pin, ...pin.variants];
}

/** The approved definitions of a pin; none if the name is blocked. */
export function approvedVersions<Definition>(pin: Pin<Definition> | undefined): readonly PinVersion<Definition>[] {
  if (pin === undefined || pin.status === 'blocked') return [];
  return versionsOf(pin).filter((version) => version.status === 'approved');
}

/** The recorded members of `serverInfo`, in the order in which they are written. */
export const SERVER_MEMBERS = ['name', 'title', 'version', 'websiteUrl'] as const;

/**
 * The identity that a server states, truncated at `MAX_SERVER_MEMBER_LENGTH`. Upstream text: escape it. It hides
 * nothing: a stated name proves nothing, and the server is authenticated by its certificate. A change is
 * nevertheless worth a review.
 */
export type ServerIdentity = { readonly name: string } & {
  readonly [member in (typeof SERVER_MEMBERS)[number]]?: string | undefined;
};

const MAX_SERVER_MEMBER_LENGTH = 256;
/** An unpaired surrogate, which cannot be written as UTF-8. */
const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const SERVER_DIGEST_DOMAIN = 'sallyport.server/1\n';

/** Reads `serverInfo`; `undefined` if it has no name. */
export function readServer(serverInfo: JsonObject | undefined): ServerIdentity | undefined {
  const name = serverMember(serverInfo, 'name');
  if (name === undefined) return undefined;
  const stated = SERVER_MEMBERS.flatMap((member) => {
    const text = serverMember(serverInfo, member);
    return text === undefined ? [] : [[member, text] as const];
  });
  return { name, ...Object.fromEntries(stated) };
}

function serverMember(info: JsonObject | undefined, member: string): string | undefined {
  const value = info?.[member];
  if (typeof value !== 'string' || value === '') return undefined;
  return value.slice(0, MAX_SERVER_MEMBER_LENGTH).replace(LONE_SURROGATE, '\ufffd');
}

/** Distinguishes identities in records. */
export function digestServer(server: ServerIdentity): string {
  return sha256Hex(SERVER_DIGEST_DOMAIN + JSON.stringify(SERVER_MEMBERS.map((member) => server[member] ?? null)));
}

/** The change between two identities: `server-version` if only the version differs. */
export function compareServers(before: ServerIdentity, after: ServerIdentity): readonly Change[] {
  const differing = SERVER_MEMBERS.filter((member) => before[member] !== after[member]);
  if (differing.length === 0) return [];
  return differing.every((member) => member === 'version') ? ['server-version'] : ['server'];
}

/** Larger lock files are refused unread, in UTF-16 units. */
const MAX_LOCK_LENGTH = 32 * 1024 * 1024;
/** The depth is that of the most deeply nested definition and the members around it. */
const YAML_LIMITS: YamlLimits = {
  maxDepth: MAX_DEFINITION_DEPTH + 8,
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
      diagnosticAt(path: YamlPath, message: string, at?: 'key' | 'value', suggestion?: string): LockDiagnostic;
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
  const reading = readYaml(text, YAML_LIMITS);
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

/** The values of a lock file as this program writes it; `undefined` if it is in another form. */
export function readWrittenLock(text: string): Json | undefined {
  const end = `\n${LOCK_END}\n`;
  if (text.length > MAX_LOCK_LENGTH || !text.startsWith(LOCK_HEADER) || !text.endsWith(end)) return undefined;
  if (hasOddCharacter(text)) return undefined;
  return readWrittenLines(text.slice(LOCK_HEADER.length, 1 - end.length), YAML_LIMITS.maxDepth);
}

export const LOCK_HEADER =
  '# Written by `sallyport pin`: review the differences, approve with `sallyport pin approve`.\n';
/** The YAML document end marker (YAML 1.2.2 §9.1.2), which proves that the file is not truncated. */
export const LOCK_END = '...';

/** What is read, written or checked of a lock file in one job: some ten to fifty milliseconds of work. */
const PART_CHARS = 64 * 1024;
const SECTION_HEADS: ReadonlySet<string> = new Set(Object.values(SECTIONS).map((one) => `${one}:`));
const TOP_MEMBER = /^([A-Za-z]+):/;
/** The members that a file has once and each of its parts repeats. */
const HEAD_MEMBER = /^(?:lockfileVersion|upstream):/;
const BEFORE_MEMBER = /\n(?=\S)/;
/** Longer names are explicit keys, whose value is in a line that begins with a colon. */
const BEFORE_PIN = /\n(?= {2}[^\s:#-])/;

/**
 * Divides a long lock file into smaller ones, each with some of its pins, which together say the same; `undefined` if it
 * is short, or is not in the form in which lock files are written. INVARIANT: every value that is written ends where its
 * line does.
 */
export function divideLock(text: string): readonly string[] | undefined {
  const end = `\n${LOCK_END}\n`;
  const isLong = text.length > PART_CHARS && text.length <= MAX_LOCK_LENGTH;
  if (!isLong || !text.startsWith(LOCK_HEADER) || !text.endsWith(end)) return undefined;
  const members = text.slice(LOCK_HEADER.length, -end.length).split(BEFORE_MEMBER);
  const names = members.map((one) => TOP_MEMBER.exec(one)?.[1]);
  if (names.includes(undefined) || new Set(names).size < names.length) return undefined;
  const head = members.filter((one) => HEAD_MEMBER.test(one));
  const others = members.filter((one) => !HEAD_MEMBER.test(one));
  return others.flatMap(divideMember).map((part) => asLines([...head, part]));
}

function divideMember(member: string): readonly string[] {
  const [head = '', ...pins] = member.split(BEFORE_PIN);
  if (!SECTION_HEADS.has(head)) return [member];
  const parts: string[] = [];
  let part = head;
  for (const pin of pins) {
    if (part.length > PART_CHARS) {
      parts.push(part);
      part = head;
    }
    part += `\n${pin}`;
  }
  return [...parts, part];
}

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
  return lockText(
    lock,
    sectionsOf(lock).map(({ pins }) => writePins(pins)),
  );
}

/** What is written of one pin: its name and all its versions. */
export type NamedPin = readonly [name: string, pin: Pin];

/** The lines of pins in a lock file. */
export function writePins(pins: readonly NamedPin[]): string {
  return pins.map(([name, pin]) => asLines(indented(member(name, writePin(pin, 'definition'))))).join('');
}

/** Writes a lock file of any size: `write` gets JSON of some of its pins at a time, and returns what `writePins` does. */
export async function writeLockInParts(lock: Lock, write: (pins: string) => Promise<string>): Promise<string> {
  const written: string[] = [];
  for (const { pins } of sectionsOf(lock)) {
    let text = '';
    for (const part of jsonParts(pins)) text += await write(part);
    written.push(text);
  }
  return lockText(lock, written);
}

/** JSON lists of the items, in order, each not much longer than a part of a lock file. */
export function* jsonParts(items: Iterable<unknown>): Generator<string> {
  let texts: string[] = [];
  let chars = 0;
  for (const item of items) {
    const text = JSON.stringify(item);
    texts.push(text);
    chars += text.length;
    if (chars <= PART_CHARS) continue;
    yield `[${texts.join()}]`;
    [texts, chars] = [[], 0];
  }
  if (texts.length > 0) yield `[${texts.join()}]`;
}

function lockText(lock: Lock, sections: readonly string[]): string {
  const { server, instructions } = lock;
  const head = [
    `lockfileVersion: ${LOCKFILE_VERSION}`,
    `upstream: ${writeText(lock.upstream)}`,
    ...(server === undefined ? [] : member('server', writeServer(server))),
    ...(instructions === undefined ? [] : member('instructions', writePin(instructions, 'text'))),
  ];
  const members = sectionsOf(lock).map(
    ({ section, pins }, at) => `${section}:${pins.length === 0 ? ' {}' : ''}\n${sections[at] ?? ''}`,
  );
  return `${LOCK_HEADER}${asLines(head)}${members.join('')}${LOCK_END}\n`;
}

/** The sections of a lock file, each with its pins in order. A section for resources that has none is left out. */
function sectionsOf({ pins }: Lock): readonly { readonly section: string; readonly pins: readonly NamedPin[] }[] {
  const kinds: readonly PinKind[] = [
    'tool',
    'prompt',
    'template',
    ...(pins.resource.size > 0 ? ['resource' as const] : []),
  ];
  return kinds.map((kind) => ({ section: SECTIONS[kind], pins: [...pins[kind]].sort(byName) }));
}

function asLines(lines: readonly string[]): string {
  return `${lines.join('\n')}\n`;
}

function writeServer(server: ServerIdentity): WrittenPin {
  const block = SERVER_MEMBERS.flatMap((name) => {
    const text = server[name];
    return text === undefined ? [] : member(name, { inline: writeText(text) });
  });
  return { block };
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
