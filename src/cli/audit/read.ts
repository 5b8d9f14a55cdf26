// `sallyport audit tail`, `query` and `show`: print events of audit files, oldest first. They open files for
// reading only, line by line, and verify nothing. Text output contains no terminal control characters. `--json`
// of `tail` prints the lines as they are, of the others events with all their members
// (docs/reference/commands.md#audit; docs/reference/audit.md).

import { createPublicKey, hash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { basename, dirname, relative, resolve } from 'node:path';
import { type AuditRecord, valueAt } from '../../audit/chain.js';
import { expandAuditPath, listFilesOf, orderStreams } from '../../audit/folder.js';
import {
  createEventJoiner,
  createInstanceGroups,
  createRowPrinter,
  hasId,
  isMatch,
  type JoinedEvent,
  renderAuditRecord,
  renderAuditRow,
  shortenRecord,
} from '../../audit/query.js';
import { hasSeveralInstances, readLinesOf, readNewLines, STDIN, verifyAuditFiles } from '../../audit/reader.js';
import { readRunName } from '../../audit/run-name.js';
import type { ChainVerdict, VerifyOptions } from '../../audit/verify.js';
import { EVENT_TYPES } from '../../config/schema/outputs.js';
import type { Settings } from '../../config/settings.js';
import { ocsfEvent } from '../../delivery/ocsf.js';
import { REASONS } from '../../policy/reasons.js';
import { isObject, parseObject } from '../../protocol/jsonrpc.js';
import { BoundedMap } from '../../state/bounds.js';
import { makeVisible, toAsciiJson } from '../../text/escaping.js';
import { countOf, describeReadError } from '../../text/wording.js';
import { type CliIo, didYouMean, EXIT_FAILED, EXIT_FINE, EXIT_UNCHECKED, fail, UsageError } from '../program.js';

const FOLLOW_EVERY_MS = 250;

export type AuditFilePorts = {
  /** Reads a gateway file. `diagnostics` is complete text for stderr. */
  readonly loadSettings: (
    file: string,
  ) => Promise<{ readonly settings: Settings | undefined; readonly diagnostics: string }>;
  /** Waits; resolves early, with false, when the command is to end. */
  readonly wait: (ms: number) => Promise<boolean>;
};

type FileSelection = { readonly files: readonly string[]; readonly config?: string };

/**
 * The files that arguments of a command stand for, as absolute paths: folders stand for the audit files in them. Each is
 * read once, also if a configured path is named beside the files that it stands for, as a pattern of the shell does.
 */
export async function expandFiles(
  named: readonly string[],
  cwd: string,
  onStray?: (file: string) => void,
): Promise<readonly string[]> {
  const files: string[] = [];
  for (const one of named) files.push(...(one === STDIN ? [STDIN] : await expandAuditPath(resolve(cwd, one), onStray)));
  return orderStreams([...new Set(files)]);
}

/** The audit files to read, as absolute paths, or an error sentence if there are none. */
async function chooseFiles(
  choice: FileSelection,
  io: CliIo,
  ports: AuditFilePorts,
): Promise<readonly string[] | string> {
  if (choice.files.length > 0) return expandFiles(choice.files, io.cwd);
  if (choice.config === undefined) return 'error: name an audit file, or a gateway file with -c\n';
  const { settings, diagnostics } = await ports.loadSettings(resolve(io.cwd, choice.config));
  if (settings === undefined) return diagnostics;
  const paths = settings.audit.sinks.flatMap((sink) => (sink.type === 'file' ? [sink.path] : []));
  const [first] = paths;
  if (first === undefined) return 'error: this gateway writes no audit file\n';
  const files = await listFilesOf(first).catch(() => []);
  // Reading the path itself says best what is wrong with it.
  return files.length === 0 ? [first] : files;
}

/** Throws a usage error for audit files that cannot be read. */
function rejectUnreadable(error: unknown): never {
  const { path, message = 'unreadable' } = (error instanceof Error ? error : {}) as NodeJS.ErrnoException;
  throw new UsageError(`error: ${makeVisible(path === undefined ? message : `${path} ${describeReadError(error)}`)}\n`);
}

/** The files that `--log` names. Throws a usage error if there is none. */
async function logFiles(log: readonly string[], cwd: string): Promise<readonly string[]> {
  const all = await Promise.all(log.map((one) => expandAuditPath(resolve(cwd, one)))).catch(rejectUnreadable);
  return orderStreams([...new Set(all.flat())]);
}

/** The lines of the files that `--log` names. Throws a usage error if they cannot be read. */
export async function* readLog(log: readonly string[], cwd: string): AsyncGenerator<string> {
  const files = await logFiles(log, cwd);
  try {
    yield* readLinesOf(files);
  } catch (error) {
    rejectUnreadable(error);
  }
}

/** Verifies the files that `--log` names; `onLine` gets every line. Throws a usage error if they cannot be read. */
export async function verifyLog(
  log: readonly string[],
  options: VerifyOptions,
  cwd: string,
  onLine: (line: string) => void,
): Promise<ChainVerdict> {
  const nameOf = (file: string): string => relative(cwd, file) || file;
  return verifyAuditFiles(await logFiles(log, cwd), options, { nameOf, onLine }).catch(rejectUnreadable);
}

/** Complete lines that were added to a file. */
async function* newLines(path: string, followed: { offset: number }): AsyncGenerator<string> {
  for (;;) {
    const { lines, start, end } = await readNewLines(path, followed.offset);
    followed.offset = end;
    if (start === end) return;
    yield* lines;
  }
}

/** As many of the newest files are looked at; each writer has one. */
const MAX_FOLLOWED = 32;

/**
 * Complete lines as they are written to files, which `list` names, the newest last: of those that are there already from
 * now on, unless all of them `fromStart`; of others from the beginning. When `wait` resolves with false, what was written until then is the last.
 */
export async function* followLines(
  list: () => Promise<readonly string[]>,
  wait: AuditFilePorts['wait'],
  fromStart = false,
): AsyncGenerator<string> {
  const followed = new Map<string, { offset: number }>();
  for (const file of fromStart ? [] : await list()) followed.set(file, { offset: (await stat(file)).size });
  for (let goesOn = true; goesOn; ) {
    goesOn = await wait(FOLLOW_EVERY_MS);
    const files = await list().catch(() => []);
    for (const file of files.slice(-MAX_FOLLOWED)) {
      const known = followed.get(file) ?? { offset: 0 };
      followed.set(file, known);
      try {
        yield* newLines(file, known);
      } catch {
        // It was taken away meanwhile.
      }
    }
  }
}

/** Names the files to follow: those that were chosen, and newer ones of the same path. */
function followedFiles(files: readonly string[]): () => Promise<readonly string[]> {
  const newest = files.at(-1) ?? '';
  const run = readRunName(basename(newest));
  return async () => {
    const later = await listFilesOf(resolve(dirname(newest), run?.configured ?? basename(newest))).catch(
      (): string[] => [],
    );
    const at = later.indexOf(newest);
    return [...files, ...later.slice(at + 1).filter((file) => !files.includes(file))];
  };
}

/** Lines that `tail` shows before it follows the file. */
const TAIL_LINES = 20;

export type AuditTailOptions = FileSelection & {
  readonly follow?: boolean;
  readonly json?: boolean;
};

export type AuditQueryOptions = FileSelection & {
  readonly type?: string;
  readonly subject?: string;
  readonly upstream?: string;
  readonly reason?: string;
  /** Only outcomes whose client got something else than the upstream sent. */
  readonly altered?: boolean;
  /** Id of an approval. */
  readonly approval?: string;
  /** Id of a trace. */
  readonly trace?: string;
  /** Name of the instance that wrote the event. */
  readonly instance?: string;
  /** RFC 3339, or a duration before now: `90s 30m 6h 7d`. */
  readonly since?: string;
  readonly json?: boolean;
};

export type AuditShowOptions = FileSelection & { readonly id: string; readonly json?: boolean };

const UNIT_MS = new Map([
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);

/** Milliseconds since the epoch of `--since`; `undefined` if it is neither a time nor a duration. */
function readSince(text: string, nowMs: number): number | undefined {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  if (count !== undefined) return nowMs - Number(count) * (UNIT_MS.get(unit ?? '') ?? 0);
  const at = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : at;
}

/** A line, and its event with all its members. */
type FoundEvent = JoinedEvent & { readonly line: string };

function printLine({ line, record }: FoundEvent, io: CliIo, isJson: boolean | undefined): void {
  // The gateway writes printable ASCII; a modified line may contain anything.
  io.stdout(`${isJson ? makeVisible(line) : renderAuditRow(record)}\n`);
}

/** Says of how many outcomes printed here only a part is known. */
function printAlone(count: number, io: CliIo): void {
  if (count === 0) return;
  io.stderr(
    `note: ${countOf(count, 'outcome')} without the line of ${count === 1 ? 'its decision' : 'their decisions'}, which may be in an older file: what only that line says is null or left out here\n`,
  );
}

export function printError(error: unknown, io: CliIo): number {
  const why = error instanceof Error ? error.message : 'unreadable';
  return fail(makeVisible(why), EXIT_UNCHECKED, io);
}

async function withFiles(
  choice: FileSelection,
  io: CliIo,
  ports: AuditFilePorts,
  run: (files: readonly string[]) => Promise<number>,
): Promise<number> {
  const files = await chooseFiles(choice, io, ports);
  if (typeof files === 'string') {
    io.stderr(files);
    return EXIT_UNCHECKED;
  }
  try {
    return await run(files);
  } catch (error) {
    return printError(error, io);
  }
}

type RepeatFilter = { isRepeated(line: string): boolean };

/** Where lines are shown as they stand. */
const NO_FILTER: RepeatFilter = { isRepeated: () => false };

/** The newest lines that are known again. */
const MAX_KNOWN_LINES = 100_000;

/** Finds lines that were delivered more than once, byte for byte, as far as their digests are kept. */
function createRepeatFilter(): RepeatFilter & { note(io: CliIo): void } {
  const known = new BoundedMap<string, true>(MAX_KNOWN_LINES);
  let count = 0;
  return {
    isRepeated(line) {
      const digest = hash('sha256', Buffer.from(line, 'latin1'), 'base64url');
      const isRepeated = known.has(digest);
      if (isRepeated) count += 1;
      else known.set(digest, true);
      return isRepeated;
    },
    note(io) {
      if (count > 0)
        io.stderr(
          `note: ${countOf(count, 'line')} that ${count === 1 ? 'stands' : 'stand'} here again, byte for byte, left out\n`,
        );
    },
  };
}

/** Every event of the lines, with its line. Lines that are not events are skipped, and so is what the filter finds. */
async function* readRecords(
  lines: AsyncIterable<string>,
  repeats: RepeatFilter = NO_FILTER,
  join = createEventJoiner(),
): AsyncGenerator<FoundEvent> {
  for await (const line of lines) {
    if (repeats.isRepeated(line)) continue;
    const record = parseObject(line);
    if (record !== undefined) yield { line, ...join(record, line.length) };
  }
}

async function lastRecords(files: readonly string[]): Promise<readonly FoundEvent[]> {
  let last: FoundEvent[] = [];
  for await (const found of readRecords(readLinesOf(files))) {
    last.push(found);
    if (last.length > TAIL_LINES * 2) last = last.slice(-TAIL_LINES);
  }
  return last.slice(-TAIL_LINES);
}

/** The last events of files, of which older ones are read only if the newer ones have too few. */
async function lastOf(files: readonly string[]): Promise<readonly FoundEvent[]> {
  for (let count = 1; count < files.length && !files.includes(STDIN); count *= 2) {
    const last = await lastRecords(files.slice(-count));
    if (last.length === TAIL_LINES) return last;
  }
  return lastRecords(files);
}

/** Prints the last events and, with `follow`, new ones as they are written. */
export function runAuditTail(options: AuditTailOptions, io: CliIo, ports: AuditFilePorts): Promise<number> {
  return withFiles(options, io, ports, async (files) => {
    for (const found of await lastOf(files)) printLine(found, io, options.json);
    if (!options.follow || files.includes(STDIN)) return EXIT_FINE;
    for await (const found of readRecords(followLines(followedFiles(files), ports.wait)))
      printLine(found, io, options.json);
    return EXIT_FINE;
  });
}

/** Prints every event as one of the Open Cybersecurity Schema Framework, which has the line in `raw_data`. */
export function runAuditExport(choice: FileSelection, io: CliIo, ports: AuditFilePorts): Promise<number> {
  return withFiles(choice, io, ports, async (files) => {
    for await (const { line, record } of readRecords(readLinesOf(files)))
      io.stdout(`${makeVisible(JSON.stringify(ocsfEvent({ text: line, record })))}\n`);
    return EXIT_FINE;
  });
}

/** A filter whose values are fixed, and an error for any other value. */
function findFilterError(
  option: 'type' | 'reason',
  value: string | undefined,
  known: readonly string[],
): string | undefined {
  if (value === undefined || known.includes(value)) return undefined;
  return `--${option}: "${makeVisible(value)}" is not ${option === 'type' ? 'an event type' : 'a reason'}${didYouMean(value, known)}`;
}

/** Names kept of a log, to find out which was meant. */
const MAX_SEEN_NAMES = 10_000;

/** Says of filters by name that no event of the files has this name, whatever the other filters are. */
function createNameCheck({ upstream, subject, instance }: AuditQueryOptions): {
  see(record: AuditRecord): void;
  note(io: CliIo): void;
} {
  const filters = [
    { option: 'upstream', value: upstream, path: ['target', 'upstream'], seen: new Set<string>() },
    { option: 'subject', value: subject, path: ['actor', 'sub'], seen: new Set<string>() },
    { option: 'instance', value: instance, path: ['gateway', 'instance'], seen: new Set<string>() },
  ].filter(({ value }) => value !== undefined);
  return {
    see(record) {
      for (const { value, path, seen } of filters) {
        const name = valueAt(record, ...path);
        const isKept = typeof name === 'string' && (name === value || seen.size < MAX_SEEN_NAMES);
        if (isKept) seen.add(name);
      }
    },
    note(io) {
      for (const { option, value = '', seen } of filters) {
        if (seen.has(value)) continue;
        const text = `no event has the ${option} "${value}"${didYouMean(value, seen)}`;
        io.stderr(`note: ${makeVisible(text)}\n`);
      }
    },
  };
}

/** What prints rows, by instance if there are several; `undefined` where JSON is printed. */
async function createRows(files: readonly string[], { json }: AuditQueryOptions, io: CliIo) {
  if (json === true) return undefined;
  const print = (row: string): void => io.stdout(`${row}\n`);
  if (!(await hasSeveralInstances(files))) return createRowPrinter(print);
  const groups = createInstanceGroups(print);
  const { add, end } = createRowPrinter(groups.add);
  return {
    add,
    end() {
      end();
      groups.end();
    },
  };
}

/** Prints the events that match all filters, as text one line for each request. Exit 0, also if there are none. */
export async function runAuditQuery(options: AuditQueryOptions, io: CliIo, ports: AuditFilePorts): Promise<number> {
  const sinceMs = options.since === undefined ? undefined : readSince(options.since, Date.now());
  if (options.since !== undefined && sinceMs === undefined) {
    return fail('--since takes a time (RFC 3339) or a duration such as 30m', EXIT_UNCHECKED, io);
  }
  const error =
    findFilterError('type', options.type, EVENT_TYPES) ??
    findFilterError('reason', options.reason, Object.keys(REASONS));
  if (error !== undefined) return fail(error, EXIT_UNCHECKED, io);
  const filter = { ...options, sinceMs };
  const names = createNameCheck(options);
  return withFiles(options, io, ports, async (files) => {
    let alone = 0;
    const repeats = createRepeatFilter();
    const rows = await createRows(files, options, io);
    for await (const { record, isAlone } of readRecords(readLinesOf(files), repeats)) {
      names.see(record);
      const isChosen = isMatch(record, filter);
      rows?.add(record, isChosen);
      if (!isChosen) continue;
      alone += Number(isAlone);
      if (rows === undefined) io.stdout(`${toAsciiJson(record)}\n`);
    }
    rows?.end();
    repeats.note(io);
    printAlone(alone, io);
    names.note(io);
    return EXIT_FINE;
  });
}

/** As JSON the complete event; as text, without what was printed of its decision. */
function renderShown(
  record: AuditRecord,
  decided: AuditRecord | undefined,
  { json }: Pick<AuditShowOptions, 'json'>,
): string {
  return json ? toAsciiJson(record) : renderAuditRecord(shortenRecord(record, decided));
}

/** Prints all lines of one event or one decision. Exit 1 if there are none. */
export function runAuditShow(options: AuditShowOptions, io: CliIo, ports: AuditFilePorts): Promise<number> {
  return withFiles(options, io, ports, async (files) => {
    let count = 0;
    let alone = 0;
    let decided: AuditRecord | undefined;
    const repeats = createRepeatFilter();
    for await (const { record, isAlone } of readRecords(readLinesOf(files), repeats)) {
      if (!hasId(record, options.id)) continue;
      count += 1;
      alone += Number(isAlone);
      io.stdout(`${renderShown(record, decided, options)}\n`);
      // The outcome of a decision that was printed repeats most of it.
      decided = record['type'] === 'mcp.decision' ? record : undefined;
    }
    repeats.note(io);
    printAlone(alone, io);
    return count > 0 ? EXIT_FINE : fail('no event and no decision has this id', EXIT_FAILED, io);
  });
}

const PUBLIC_TEXT = /^(?:sallyport-public-1:)?([A-Za-z0-9_-]{43})$/;

/** The raw public keys in a text: lines of `keys public`, a JWK or JWK Set, or PEM. */
function publicKeysOf(text: string): readonly string[] {
  const gatewayKeys = text
    .trim()
    .split('\n')
    .map((line) => PUBLIC_TEXT.exec(line.trim())?.[1]);
  const known = gatewayKeys.filter((key): key is string => key !== undefined);
  if (known.length > 0) return known;
  try {
    if (text.includes('-----BEGIN')) return ed25519(createPublicKey(text).export({ format: 'jwk' }));
    const value: unknown = JSON.parse(text);
    const keys = isObject(value) && 'keys' in value ? value['keys'] : [value];
    return Array.isArray(keys) ? keys.flatMap(ed25519) : [];
  } catch {
    return [];
  }
}

function ed25519(key: unknown): string[] {
  if (!isObject(key)) return [];
  const { crv, x } = key;
  return crv === 'Ed25519' && typeof x === 'string' ? [x] : [];
}

/** The raw public keys of options: given as text, or in files. */
export async function readKeys(texts: readonly string[], cwd: string): Promise<readonly string[]> {
  const all: string[] = [];
  for (const text of texts) {
    const given = publicKeysOf(text);
    const keys = given.length > 0 ? given : publicKeysOf(await readFile(resolve(cwd, text), 'utf8'));
    if (keys.length === 0) throw new Error(`no public key in ${text}`);
    all.push(...keys);
  }
  return all;
}
