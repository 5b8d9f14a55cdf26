// Reads lock files: accepts known members only, recomputes each digest from its definition, and requires
// each approval to name the person who gave it. Reports every mistake and never returns a partial lock file.
// docs/reference/lock-files.md; docs/reference/commands.md; docs/reference/start-and-reload.md#reload.

import type { LockSigning } from '../config/settings.js';
import type { PinKind } from '../policy/definitions.js';
import { isObject, type Json, type JsonObject } from '../protocol/jsonrpc.js';
import { describeReadError, nearestCandidate, systemErrorCode } from '../text/wording.js';
import type { YamlPath } from '../text/yaml.js';
import { digestDefinition, type PinnedKind, sha256Hex } from './digest.js';
import {
  type Approval,
  byKind,
  divideLock,
  LOCK_END,
  LOCK_HEADER,
  LOCK_SUFFIX,
  LOCKFILE_VERSION,
  type Lock,
  type LockDiagnostic,
  lockDiagnostic,
  nameMember,
  PIN_KINDS,
  type Pin,
  type Pins,
  type PinVersion,
  readLockSource,
  readServer,
  readWrittenLock,
  SECTIONS,
  SERVER_MEMBERS,
  type ServerIdentity,
} from './lock.js';
import { checkSignatures, type LockText, type SignatureCheck, signatureFileOf } from './signature.js';

export type LockReading =
  | { readonly lock: Lock; readonly diagnostics: readonly [] }
  | { readonly lock: undefined; readonly diagnostics: readonly LockDiagnostic[] };

const LOCK_KEYS = ['lockfileVersion', 'upstream', 'server', 'instructions', ...Object.values(SECTIONS)];
const VERSION_KEYS = ['status', 'sha256', 'approval', 'block', 'definition'];
const TEXT_KEYS = ['status', 'sha256', 'approval', 'block', 'text'];
const BLOCK_KEYS = ['by', 'at', 'note'];
const APPROVAL_KEYS = [...BLOCK_KEYS, 'accepted'];
const STATUSES = ['pending', 'approved', 'blocked'] as const;
/** The upstream that a file with mistakes is for, whatever its name. */
const STATED_UPSTREAM = /^upstream: ["']?([a-z0-9_-]+)/m;
const MAX_QUOTED_KEY = 64;
const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/;

type Reading = {
  report(path: YamlPath, message: string, at?: 'key' | 'value', suggestion?: string): undefined;
};

/**
 * Reads a lock file, or reports every mistake in it.
 * @param file its name in diagnostics; if it ends in `.lock.yaml`, it must match the upstream's name.
 */
export function readLock(file: string, text: string): LockReading {
  return readAsWritten(file, text) ?? readAsYaml(file, text);
}

/** A lock file without a mistake in the form in which this program writes it, which most are; `undefined` for another. */
function readAsWritten(file: string, text: string): LockReading | undefined {
  const value = readWrittenLock(text);
  if (value === undefined) return undefined;
  let isFaulty = false;
  const report = (): undefined => {
    isFaulty = true;
  };
  const lock = readFile({ report }, value, upstreamOfFile(file));
  return lock === undefined || isFaulty ? undefined : { lock, diagnostics: [] };
}

function readAsYaml(file: string, text: string): LockReading {
  const source = readLockSource(file, text);
  if (source.value === undefined) return { lock: undefined, diagnostics: source.diagnostics };
  const diagnostics: LockDiagnostic[] = [];
  const reading: Reading = {
    report(...args) {
      diagnostics.push(source.diagnosticAt(...args));
      return undefined;
    },
  };
  if (isCutOff(text)) {
    reading.report([], 'ends before its end mark (...): a part of the file is missing');
  }
  const lock = readFile(reading, source.value, upstreamOfFile(file));
  if (lock !== undefined && diagnostics.length === 0) return { lock, diagnostics: [] };
  return { lock: undefined, diagnostics };
}

/**
 * Reads a lock file of any size: `read` gets its parts one after another, and returns what `readLock` does. One that has
 * a mistake, or was not written by this program, is read whole.
 */
export async function readLockInParts(
  text: string,
  read: (part: string) => Promise<LockReading>,
): Promise<LockReading> {
  const locks: Lock[] = [];
  for (const part of divideLock(text) ?? []) {
    const { lock } = await read(part);
    if (lock === undefined) return read(text);
    locks.push(lock);
  }
  const lock = joinParts(locks);
  return lock === undefined ? read(text) : { lock, diagnostics: [] };
}

/** `undefined` if there is none, or a name is in two of them. */
function joinParts(locks: readonly Lock[]): Lock | undefined {
  const [first] = locks;
  if (first === undefined) return undefined;
  const pins = byKind((kind) => new Map(locks.flatMap((lock) => [...lock.pins[kind]])));
  const held = (lock: Pick<Lock, 'pins'>): number => PIN_KINDS.reduce((sum, kind) => sum + lock.pins[kind].size, 0);
  if (held({ pins }) < locks.reduce((sum, lock) => sum + held(lock), 0)) return undefined;
  const server = locks.find((lock) => lock.server !== undefined)?.server;
  const instructions = locks.find((lock) => lock.instructions !== undefined)?.instructions;
  return { upstream: first.upstream, server, instructions, pins };
}

/** A file with our header must have our end mark: a file truncated between two members is still valid YAML. */
function isCutOff(text: string): boolean {
  return text.startsWith(LOCK_HEADER) && !text.trimEnd().endsWith(`\n${LOCK_END}`);
}

function upstreamOfFile(file: string): string | undefined {
  const base = file.split(/[\\/]/).at(-1) ?? '';
  return base.endsWith(LOCK_SUFFIX) ? base.slice(0, -LOCK_SUFFIX.length) : undefined;
}

function readFile(reading: Reading, value: Json, expected: string | undefined): Lock | undefined {
  const root = readObject(reading, [], value, LOCK_KEYS);
  if (root === undefined) return undefined;
  if (root['lockfileVersion'] !== LOCKFILE_VERSION) {
    reading.report(
      ['lockfileVersion'],
      `must be ${LOCKFILE_VERSION}; a file with another version was written by another version of Sallyport`,
    );
  }
  const upstream = readText(reading, ['upstream'], root['upstream']) ?? '';
  if (expected !== undefined && upstream !== expected && upstream !== '') {
    const message = `"${upstream}" differs from the name of the file, "${expected}${LOCK_SUFFIX}"`;
    reading.report(['upstream'], message);
  }
  return {
    upstream,
    server: readServerMember(reading, root['server']),
    instructions: readInstructions(reading, root['instructions']),
    pins: byKind((kind) => readSection(reading, kind, root[SECTIONS[kind]])),
  };
}

function readSection(reading: Reading, kind: PinKind, value: Json | undefined): Pins {
  const section = SECTIONS[kind];
  const pins = new Map<string, Pin>();
  if (value === undefined) return pins;
  if (!isObject(value)) {
    reading.report([section], 'must be a map of names');
    return pins;
  }
  for (const [name, entry] of Object.entries(value)) {
    const path = [section, name];
    const pin = readPin(reading, path, entry, VERSION_KEYS, (at, member) =>
      readVersion(reading, at, member, kind, name),
    );
    if (pin !== undefined) pins.set(name, pin);
  }
  return pins;
}

function readServerMember(reading: Reading, value: Json | undefined): ServerIdentity | undefined {
  if (value === undefined || value === null) return undefined;
  const entry = readObject(reading, ['server'], value, SERVER_MEMBERS);
  if (entry === undefined) return undefined;
  for (const member of SERVER_MEMBERS) {
    if (entry[member] === undefined && member !== 'name') continue;
    readText(reading, ['server', member], entry[member]);
  }
  return readServer(entry);
}

function readInstructions(reading: Reading, value: Json | undefined): Pin<string> | undefined {
  if (value === undefined || value === null) return undefined;
  return readPin(reading, ['instructions'], value, TEXT_KEYS, (at, member) => readTextVersion(reading, at, member));
}

type ReadVersion<Definition> = (path: YamlPath, value: JsonObject) => PinVersion<Definition> | undefined;

function readPin<Definition>(
  reading: Reading,
  path: YamlPath,
  value: Json,
  keys: readonly string[],
  read: ReadVersion<Definition>,
): Pin<Definition> | undefined {
  const entry = readObject(reading, path, value, [...keys, 'variants']);
  if (entry === undefined) return undefined;
  const first = read(path, entry);
  const listed = entry['variants'] ?? [];
  if (!Array.isArray(listed)) return reading.report([...path, 'variants'], 'must be a list');
  const variants: PinVersion<Definition>[] = [];
  const seen = new Set([first?.sha256]);
  for (const [index, item] of (listed as readonly Json[]).entries()) {
    const at = [...path, 'variants', index];
    const variant = readObject(reading, at, item, keys);
    const version = variant === undefined ? undefined : read(at, variant);
    if (version === undefined) continue;
    if (seen.has(version.sha256)) reading.report(at, 'this definition stands twice');
    seen.add(version.sha256);
    variants.push(version);
  }
  return first === undefined ? undefined : { ...first, variants };
}

function readVersion(
  reading: Reading,
  path: YamlPath,
  entry: JsonObject,
  kind: PinKind,
  name: string,
): PinVersion<JsonObject> | undefined {
  const review = readReview(reading, path, entry, undefined);
  const definition = entry['definition'];
  if (!isObject(definition)) {
    return reading.report([...path, 'definition'], 'must be the whole definition');
  }
  const member = nameMember(kind);
  if (definition[member] !== name) {
    reading.report([...path, 'definition', member], 'differs from the name it is listed under');
  }
  const sha256 = checkDigest(reading, path, kind, definition, entry['sha256']);
  if (review === undefined || sha256 === undefined) return undefined;
  return { ...review, sha256, definition };
}

function readTextVersion(reading: Reading, path: YamlPath, entry: JsonObject): PinVersion<string> | undefined {
  // Instructions may be pinned by digest and text alone; their presence in the file is the approval.
  const review = readReview(reading, path, entry, 'approved');
  const text = entry['text'];
  if (typeof text !== 'string') return reading.report([...path, 'text'], 'must be a text');
  const sha256 = checkDigest(reading, path, 'instructions', text, entry['sha256']);
  if (review === undefined || sha256 === undefined) return undefined;
  return { ...review, sha256, definition: text };
}

type Review = Pick<PinVersion<never>, 'status' | 'approval' | 'block'>;

function readReview(
  reading: Reading,
  path: YamlPath,
  entry: JsonObject,
  absent: 'approved' | undefined,
): Review | undefined {
  const value = entry['status'] ?? absent;
  const status = STATUSES.find((candidate) => candidate === value);
  const approval = readApproval(reading, [...path, 'approval'], entry['approval']);
  const block = readApproval(reading, [...path, 'block'], entry['block'], BLOCK_KEYS);
  if (status === undefined) {
    const nearest = typeof value === 'string' ? nearestCandidate(value, STATUSES) : undefined;
    const at = [...path, 'status'];
    return reading.report(at, `must be one of ${STATUSES.join(', ')}`, 'value', nearest);
  }
  if (status === 'approved' && entry['approval'] === undefined && absent === undefined) {
    return reading.report(path, 'is approved without an approval', 'key');
  }
  if (block === undefined) return { status, approval };
  if (status === 'blocked') return { status, approval, block };
  return reading.report([...path, 'block'], 'says who blocked it, but it is not blocked', 'key');
}

function readApproval(
  reading: Reading,
  path: YamlPath,
  value: Json | undefined,
  keys: readonly string[] = APPROVAL_KEYS,
): Approval | undefined {
  if (value === undefined || value === null) return undefined;
  const entry = readObject(reading, path, value, keys);
  if (entry === undefined) return undefined;
  const by = readText(reading, [...path, 'by'], entry['by']);
  const at = readText(reading, [...path, 'at'], entry['at']);
  const note = entry['note'];
  if (at !== undefined && (!RFC_3339.test(at) || Number.isNaN(Date.parse(at)))) {
    reading.report([...path, 'at'], 'must be a time of RFC 3339');
  }
  if (note !== undefined && typeof note !== 'string') {
    reading.report([...path, 'note'], 'must be a text');
  }
  const accepted = readAccepted(reading, [...path, 'accepted'], entry['accepted']);
  if (by === undefined || at === undefined) return undefined;
  return {
    ...{ by, at },
    ...(typeof note === 'string' ? { note } : {}),
    ...(accepted === undefined ? {} : { accepted }),
  };
}

function readAccepted(reading: Reading, path: YamlPath, value: Json | undefined): readonly string[] | undefined {
  if (value === undefined) return undefined;
  const isList = Array.isArray(value) && value.every((one) => typeof one === 'string');
  return isList ? value : reading.report(path, 'must be a list of findings');
}

function checkDigest(
  reading: Reading,
  path: YamlPath,
  kind: PinnedKind,
  definition: Json,
  value: Json | undefined,
): string | undefined {
  const at = [...path, 'sha256'];
  const digest = digestDefinition(kind, definition);
  if (!digest.ok) return reading.report(path, `has no canonical form (${digest.why})`, 'key');
  if (value !== digest.digest) {
    const item = path.slice(0, 2).join('/');
    const message = `this digest does not match the definition of ${item}, whose digest is ${digest.digest}: the file was changed by hand; restore it, or delete it and run: sallyport pin fetch`;
    return reading.report(at, message);
  }
  return digest.digest;
}

function readText(reading: Reading, path: YamlPath, value: Json | undefined): string | undefined {
  if (typeof value === 'string' && value !== '') return value;
  return reading.report(path, 'must be a text that is not empty');
}

function readObject(reading: Reading, path: YamlPath, value: Json, keys: readonly string[]): JsonObject | undefined {
  if (!isObject(value)) return reading.report(path, 'must be a map');
  const meant: Record<string, Json> = {};
  for (const [key, member] of Object.entries(value)) {
    const isKnown = keys.includes(key);
    const nearest = isKnown ? undefined : nearestCandidate(key, keys);
    if (!isKnown) {
      const message = `unknown key ${JSON.stringify(key.slice(0, MAX_QUOTED_KEY))}`;
      reading.report([...path, key], message, 'key', nearest);
    }
    // A misspelt key is read as the one that was probably meant, so that it is not missing, too.
    const name = nearest === undefined || Object.hasOwn(value, nearest) ? key : nearest;
    meant[name] = member;
  }
  return meant;
}

/** File access to the folder. Both functions throw or reject on failure. */
type LockPorts = {
  readFile(path: string): string | Uint8Array | Promise<string | Uint8Array>;
  readDir(path: string): readonly string[] | Promise<readonly string[]>;
  /** Called with each lock that was read, and the SHA-256 of its text, before the next file is. */
  onLock?(lock: Lock, text: string): void;
};

/** What the signatures of a lock file vouch for. */
export type SignedLock = { readonly counter: number; readonly sha256: string };

type LockFolder = {
  /** By upstream. Contains only files without a diagnostic. */
  readonly locks: ReadonlyMap<string, Lock>;
  /** By upstream, if signatures are required: what is signed as it must be. */
  readonly signed: ReadonlyMap<string, SignedLock>;
  /** The upstreams whose file is not signed as it must be, which a diagnostic says. */
  readonly unsigned: ReadonlySet<string>;
  /** SHA-256 of the text of each of these locks, by upstream. */
  readonly texts: ReadonlyMap<string, string>;
  /** SHA-256 over the names and texts of the files, lower-case hex: the version of the lock files. */
  readonly hash: string;
  /** The upstreams whose file has a mistake, by its name. */
  readonly invalid: ReadonlySet<string>;
  readonly diagnostics: readonly LockDiagnostic[];
};

/**
 * Reads the lock files `<upstream>.lock.yaml` of a folder. A missing folder or file means no pins; a folder
 * or file that exists but cannot be read is an error. A file with a mistake yields diagnostics and no lock,
 * and the caller keeps its previous one.
 * @param signing whose signatures every file needs; none if absent.
 */
export async function loadLocks(folder: string, ports: LockPorts, signing?: LockSigning): Promise<LockFolder> {
  const locks = new Map<string, Lock>();
  const diagnostics: LockDiagnostic[] = [];
  const versions: string[] = [];
  const invalid = new Set<string>();
  const texts: LockText[] = [];
  const hashes = new Map<string, string>();
  for (const name of await listFiles(folder, ports, diagnostics)) {
    const file = `${folder}/${name}`;
    const upstream = name.slice(0, -LOCK_SUFFIX.length);
    const read = await readLockText(file, ports);
    if ('why' in read) {
      diagnostics.push(lockDiagnostic(file, `the lock file ${read.why}`));
      invalid.add(upstream);
      continue;
    }
    const { text } = read;
    texts.push({ file: name, upstream, text });
    const sha256 = sha256Hex(text);
    versions.push(`${JSON.stringify(name)} ${sha256}`);
    const reading = readLock(file, text);
    if (reading.lock === undefined) {
      diagnostics.push(...reading.diagnostics);
      invalid.add(upstream);
      const [, stated] = STATED_UPSTREAM.exec(text) ?? [];
      if (stated !== undefined) invalid.add(stated);
    } else {
      locks.set(reading.lock.upstream, reading.lock);
      hashes.set(reading.lock.upstream, sha256);
      ports.onLock?.(reading.lock, sha256);
    }
  }
  const checked = await checkFiles(texts, folder, ports, signing);
  diagnostics.push(...checked.diagnostics);
  const { signed, unsigned } = checked;
  const hash = sha256Hex([...versions, ...checked.versions].join('\n'));
  return { locks, texts: hashes, signed, unsigned, hash, invalid, diagnostics };
}

/** Checks the signatures of lock files, whether they can be read or not. */
async function checkFiles(
  files: readonly LockText[],
  folder: string,
  ports: LockPorts,
  signing: LockSigning | undefined,
): Promise<Pick<LockFolder, 'signed' | 'unsigned' | 'diagnostics'> & { versions: string[] }> {
  const signed = new Map<string, SignedLock>();
  const unsigned = new Set<string>();
  const diagnostics: LockDiagnostic[] = [];
  const versions: string[] = [];
  if (signing === undefined) return { signed, unsigned, diagnostics, versions };
  for (const lock of files) {
    const name = signatureFileOf(lock.file);
    const envelope = await readEnvelopeText(`${folder}/${name}`, ports);
    versions.push(JSON.stringify([name, envelope]));
    const check: SignatureCheck =
      'why' in envelope
        ? { ok: false, why: `is not signed: ${name} ${envelope.why}` }
        : checkSignatures(lock, envelope.text, signing);
    if (check.ok) {
      const { counter, sha256 } = check.statement;
      signed.set(lock.upstream, { counter, sha256 });
    } else {
      unsigned.add(lock.upstream);
      diagnostics.push(lockDiagnostic(`${folder}/${lock.file}`, `the lock file ${check.why}`));
    }
  }
  return { signed, unsigned, diagnostics, versions };
}

/** The text of a signature file; `text` is undefined if there is none. */
async function readEnvelopeText(
  file: string,
  { readFile }: LockPorts,
): Promise<{ readonly text: string | undefined } | { readonly why: string }> {
  try {
    const content = await readFile(file);
    return { text: typeof content === 'string' ? content : Buffer.from(content).toString('utf8') };
  } catch (error) {
    return systemErrorCode(error) === 'ENOENT' ? { text: undefined } : { why: describeReadError(error) };
  }
}

async function listFiles(folder: string, ports: LockPorts, diagnostics: LockDiagnostic[]): Promise<readonly string[]> {
  try {
    const names = await ports.readDir(folder);
    return names.filter((name) => name.endsWith(LOCK_SUFFIX)).sort();
  } catch (error) {
    if (systemErrorCode(error) === 'ENOENT') return [];
    const message = `the folder of lock files ${describeReadError(error)}`;
    diagnostics.push(lockDiagnostic(folder, message));
    return [];
  }
}

async function readLockText(
  file: string,
  ports: LockPorts,
): Promise<{ readonly text: string } | { readonly why: string }> {
  let content: string | Uint8Array;
  try {
    content = await ports.readFile(file);
  } catch (error) {
    return { why: describeReadError(error) };
  }
  if (typeof content === 'string') return { text: content };
  try {
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content) };
  } catch {
    return { why: 'is not UTF-8 text' };
  }
}
