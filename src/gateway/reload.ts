// A reload: all files are read again, and the new version is applied as one or rejected with its diagnostics while the
// running one stays in force. What of it waits for a restart was left out by its reader and is reported here.
// docs/reference/start-and-reload.md#reload.

import { basename } from 'node:path';
import type { Versions } from '../audit/event.js';
import { isAuditFileOf } from '../audit/folder.js';
import { type Diagnostic, fileDiagnostic } from '../config/diagnostics.js';
import type { WatchTargets } from '../config/files.js';
import type { Settings } from '../config/settings.js';
import { LOCK_SUFFIX } from '../pins/lock.js';
import { SIGNATURE_SUFFIX } from '../pins/signature.js';
import type { Emit } from '../policy/events.js';
import type { RecordEvent } from '../policy/security-events.js';
import { errorCode, firstOf } from '../text/wording.js';
import type { NamedPaths, Version, VersionReading } from './config-version.js';
import { counterPaths } from './lock-counters.js';

/** What became of a reload. */
export type ReloadResult = {
  /** One line that says why the files were rejected; absent if they were not. */
  readonly error?: string;
  /** The upstreams whose lock file has not the signatures that it needs. */
  readonly unsigned: ReadonlySet<string>;
  /** Hashes of the files, as far as they could be read. */
  readonly fileHashes: Partial<Versions>;
} & Pick<VersionReading, 'read' | 'named'>;

export type ReloadPorts = {
  readonly read: (inForce: Version) => Promise<VersionReading>;
  /** The last check before a version takes effect. */
  readonly accept: (reading: VersionReading) => Promise<VersionReading>;
  readonly current: () => Version;
  /** Whether the gateway ends: nothing is applied or reported any more. */
  readonly isEnding: () => boolean;
  readonly apply: (next: Version) => void;
  /** Called after each reload. */
  readonly noteResult: (result: ReloadResult) => void;
  readonly record: RecordEvent;
  readonly emit: Emit;
};

/**
 * Creates the reload function. Reloads run one at a time, and each call is followed by a reading that began after it,
 * in order, so that an older reading is never applied over a newer one (SIGHUP and the file watch may both call it).
 * It never rejects, because nobody waits for the reload of a signal: an unexpected error rejects the new version.
 */
export function createReload(ports: ReloadPorts): () => Promise<readonly Diagnostic[]> {
  let last: Promise<readonly Diagnostic[]> = Promise.resolve([]);
  return () => {
    last = last.then(() => reloadVersion(ports)).catch((error: unknown) => rejectFailed(error, ports));
    return last;
  };
}

const NONE: ReadonlySet<string> = new Set();

function rejectFailed(error: unknown, ports: ReloadPorts): readonly Diagnostic[] {
  if (ports.isEnding()) return [];
  const { file } = ports.current().settings;
  const diagnostic = fileDiagnostic(file, 'unreadable', 'the files could not be read again');
  return reject({ diagnostics: [diagnostic] }, `an unexpected error: ${errorCode(error)}`, ports);
}

async function reloadVersion(ports: ReloadPorts): Promise<readonly Diagnostic[]> {
  if (ports.isEnding()) return [];
  const reading = await ports.read(ports.current());
  if (ports.isEnding()) return [];
  if (reading.version === undefined) return reject(reading, INVALID, ports);
  // Counters are remembered only now: if they were raised by a version that is then rejected for another cause, the lock
  // file in force would be refused as older.
  const accepted = await ports.accept(reading);
  if (ports.isEnding()) return [];
  const { version, unsigned = NONE, diagnostics } = accepted;
  const { read, named } = reading;
  if (version === undefined) return reject({ ...accepted, read, named }, INVALID, ports);
  const { fileHashes } = version;
  if (!isSame(ports.current(), version)) {
    ports.apply(version);
    reportReload(undefined, { diagnostics, fileHashes }, ports);
  }
  // Files that are again those in force end what an earlier rejection left behind.
  ports.noteResult({ unsigned, fileHashes, read, named });
  return diagnostics;
}

const INVALID = 'the files have errors';

/**
 * Whether nothing differs that is in force or waits; a new modification time alone is no change. Secrets are not part of
 * the hashes, but the settings that hold them are compared.
 */
function isSame(one: Version, other: Version): boolean {
  if (JSON.stringify(stateOf(one)) !== JSON.stringify(stateOf(other))) return false;
  return one.settings === other.settings || secretsOf(one) === secretsOf(other);
}

function stateOf({ hashes, fileHashes, reload: { pending, lost } }: Version): unknown {
  return [hashes, fileHashes, pending, lost];
}

/** The settings that hold the contents of other files: credentials and certificates. */
function secretsOf({
  settings: { issuers, upstreams, listeners, admin, signing, webhooks, tracing },
}: Version): string {
  return JSON.stringify([[...issuers.values()], [...upstreams.values()], listeners, admin, signing, webhooks, tracing]);
}

type Rejected = Omit<VersionReading, 'version'>;

function reject(rejected: Rejected, why: string, ports: ReloadPorts): readonly Diagnostic[] {
  const { diagnostics, unsigned = NONE, fileHashes = {}, read, named } = rejected;
  reportReload(why, rejected, ports);
  const first = diagnostics.find(({ severity }) => severity === 'error');
  const error = first === undefined ? why : firstLineOf(first);
  ports.noteResult({ error, unsigned, fileHashes, read, named });
  return diagnostics;
}

function firstLineOf({ file, line, column, message }: Diagnostic): string {
  return `${basename(file)}:${line}:${column} ${message.split('\n', 1)[0]}`;
}

/** `why`: of a version that was rejected. */
function reportReload(why: string | undefined, { diagnostics, fileHashes }: Rejected, ports: ReloadPorts): void {
  const { hashes: inForce, reload, closed } = ports.current();
  const { keys: pending, leftOut } = reload.pending;
  const result = why === undefined ? 'applied' : 'rejected';
  const versions = { inForce, files: fileHashes ?? {}, pending, leftOut, closed };
  ports.record({ type: 'config.reload', result, faults: diagnostics.length, versions });
  ports.emit('reloaded', { why, diagnostics, waiting: describePending(ports.current()) });
}

/** One line that says what waits for a restart; `undefined` where nothing does. */
export function describePending({
  reload: { pending },
  closed,
}: Pick<Version, 'reload' | 'closed'>): string | undefined {
  const { keys, leftOut } = pending;
  if (keys.length === 0) return undefined;
  const parts = [
    `these keys keep their values until a restart: ${keys.join(', ')}`,
    ...(leftOut.length === 0
      ? []
      : [`not in use until then, because they need the new values: ${firstOf(leftOut, MAX_NAMED)}`]),
    ...(closed.length === 0 ? [] : [`rules that are closed until then: ${firstOf(closed, MAX_NAMED)}`]),
  ];
  return parts.join('; ');
}

const MAX_NAMED = 10;

/** What needs a restart although no file says so. */
export function describeFixed({ reload: { variables } }: Pick<Version, 'reload'>): string {
  if (variables.length === 0) return '';
  return `secrets from the environment keep their values until a restart: ${firstOf(variables, MAX_NAMED)}`;
}

/** Why what is in force is not what the files say, one clause each. */
export function describeUnsettled(version: Pick<Version, 'reload' | 'closed'>): readonly string[] {
  const pending = describePending(version);
  const { lost } = version.reload;
  return [
    ...(pending === undefined ? [] : [pending]),
    ...(lost.length === 0
      ? []
      : [`these files cannot be read any more, and what they held stays in force: ${firstOf(lost, MAX_NAMED)}`]),
  ];
}

/**
 * What to watch for the next change: the gateway file, the folders that it names, and the certificates of listeners and
 * upstreams, which are renewed without touching the gateway file.
 * @param read what was named when the files were read last, which may have been rejected for want of it.
 */
export function targetsOf(settings: Settings, read?: NamedPaths): WatchTargets {
  const { file, listeners, admin, audit, watchedFiles } = settings;
  const paths = audit.sinks.flatMap((sink) => (sink.type === 'file' ? [sink.path] : []));
  const secured = [listeners.data, listeners.ops, ...(admin === undefined ? [] : [admin.listener])];
  const certificates = secured.flatMap(({ tls }) => tls?.files ?? []);
  const named = read === undefined ? [settings] : [settings, read];
  return {
    files: [...new Set([file, ...certificates, ...watchedFiles, ...(read?.files ?? [])])],
    folders: [
      ...foldersOf(
        named.map(({ policiesDir }) => policiesDir),
        ['.policy.yaml'],
      ),
      ...foldersOf(
        named.map(({ pinsDir }) => pinsDir),
        [LOCK_SUFFIX, SIGNATURE_SUFFIX],
      ),
    ],
    isOwn: isOwnFile(paths),
  };
}

function foldersOf(paths: readonly string[], suffixes: readonly string[]): WatchTargets['folders'] {
  return [...new Set(paths)].flatMap((path) => suffixes.map((suffix) => ({ path, suffix })));
}

/** Asked at every write to a file in a watched folder, and nearly always about the audit file that is being written. */
function isOwnFile(paths: readonly string[]): (file: string) => boolean {
  let lastOwn: string | undefined;
  return (file) => {
    if (file === lastOwn) return true;
    const isOwn = paths.some((path) => isAuditFileOf(path, file) || counterPaths(path).includes(file));
    if (isOwn) lastOwn = file;
    return isOwn;
  };
}
