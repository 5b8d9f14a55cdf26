// A reload: all files are read again, and the new version is applied completely or rejected with its diagnostics while
// the running one stays in force. docs/reference/start-and-reload.md#reload.

import { basename } from 'node:path';
import { isAuditFileOf } from '../audit/folder.js';
import { type Diagnostic, fileDiagnostic } from '../config/diagnostics.js';
import type { watchConfiguration } from '../config/files.js';
import type { ListenerSettings, Settings } from '../config/settings.js';
import { LOCK_SUFFIX } from '../pins/lock.js';
import { SIGNATURE_SUFFIX } from '../pins/signature.js';
import type { Emit } from '../policy/events.js';
import type { RecordEvent } from '../policy/security-events.js';
import { errorCode } from '../text/wording.js';
import type { Version, VersionReading } from './config-version.js';
import { counterPaths } from './lock-counters.js';

/**
 * Names the changed settings that a reload cannot apply, because sockets, keys and audit chains are opened once;
 * `undefined` where there are none. Such a reload is rejected, so that the change is not believed to be in force.
 */
export function restartReason(before: Settings, after: Settings): string | undefined {
  const fixed: readonly [string, unknown, unknown][] = [
    ['publicUrl', before.publicBase, after.publicBase],
    ['listeners', addresses(before), addresses(after)],
    ['keys', before.keys.map((key) => key.id), after.keys.map((key) => key.id)],
    ['state', before.state, after.state],
    ['audit', before.audit, after.audit],
    ['admin', adminWithoutCertificates(before), adminWithoutCertificates(after)],
    ['metrics', before.metrics, after.metrics],
  ];
  const changed = fixed.filter(([, one, other]) => JSON.stringify(one) !== JSON.stringify(other)).map(([name]) => name);
  return changed.length === 0 ? undefined : `a change of ${changed.join(', ')} needs a restart`;
}

function addresses({ listeners }: Settings): unknown {
  return [addressOf(listeners.data), addressOf(listeners.ops)];
}

/** Certificates may change while a listener is open; whether it uses TLS and asks for client certificates may not. */
function addressOf({ host, port, tls }: ListenerSettings): unknown {
  return [host, port, tls !== undefined, tls?.clientCa !== undefined];
}

function adminWithoutCertificates({ admin }: Settings): unknown {
  return admin && { ...admin, listener: addressOf(admin.listener) };
}

export type ReloadPorts = {
  readonly read: (inForce: Version) => Promise<VersionReading>;
  /** The last check before a version takes effect. */
  readonly accept: (reading: VersionReading) => Promise<VersionReading>;
  readonly current: () => Version;
  readonly apply: (next: Version) => void;
  /**
   * Called after each reload: with one line that says why it was rejected, or with nothing, and with the upstreams whose
   * lock file has not the signatures that it needs.
   */
  readonly noteResult: (error: string | undefined, unsigned: ReadonlySet<string>) => void;
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
  const { file } = ports.current().settings;
  const diagnostic = fileDiagnostic(file, 'unreadable', 'the files could not be read again');
  return reject([diagnostic], `an unexpected error: ${errorCode(error)}`, NONE, ports);
}

async function reloadVersion(ports: ReloadPorts): Promise<readonly Diagnostic[]> {
  const reading = await ports.read(ports.current());
  if (reading.version === undefined) return rejectInvalid(reading, ports);
  const current = ports.current();
  const restart = restartReason(current.settings, reading.version.settings);
  if (restart !== undefined) return reject(reading.diagnostics, restart, reading.unsigned ?? NONE, ports);
  // Counters are remembered only now: if they were raised by a version that is then rejected for another cause, the lock
  // file in force would be refused as older.
  const accepted = await ports.accept(reading);
  const { version, unsigned = NONE, diagnostics } = accepted;
  if (version === undefined) return rejectInvalid(accepted, ports);
  if (!isSame(current, version)) {
    ports.apply(version);
    reportReload(undefined, diagnostics, ports);
  }
  // Files that are again those in force end what an earlier rejection left behind.
  ports.noteResult(undefined, unsigned);
  return diagnostics;
}

function rejectInvalid({ diagnostics, unsigned = NONE }: VersionReading, ports: ReloadPorts): readonly Diagnostic[] {
  return reject(diagnostics, 'the files have errors', unsigned, ports);
}

/**
 * Whether no file differs; a new modification time alone is no change. Secrets are not part of the hashes, but the
 * settings that hold them are compared.
 */
function isSame(one: Version, other: Version): boolean {
  const isUnchanged = JSON.stringify(one.hashes) === JSON.stringify(other.hashes);
  return isUnchanged && secretsOf(one.settings) === secretsOf(other.settings);
}

/** The settings that hold the contents of other files: credentials and certificates. */
function secretsOf({ issuers, upstreams, listeners, admin, signing }: Settings): string {
  return JSON.stringify([[...issuers.values()], [...upstreams.values()], listeners, admin, signing]);
}

function reject(
  diagnostics: readonly Diagnostic[],
  why: string,
  unsigned: ReadonlySet<string>,
  ports: ReloadPorts,
): readonly Diagnostic[] {
  reportReload(why, diagnostics, ports);
  const first = diagnostics.find(({ severity }) => severity === 'error');
  ports.noteResult(first === undefined ? why : firstLineOf(first), unsigned);
  return diagnostics;
}

function firstLineOf({ file, line, column, message }: Diagnostic): string {
  return `${basename(file)}:${line}:${column} ${message.split('\n', 1)[0]}`;
}

/** `why`: of a version that was rejected. */
function reportReload(why: string | undefined, diagnostics: readonly Diagnostic[], ports: ReloadPorts): void {
  const result = why === undefined ? 'applied' : 'rejected';
  ports.record({ type: 'config.reload', result, faults: diagnostics.length });
  ports.emit('reloaded', { why, diagnostics });
}

/**
 * What to watch for the next change: the gateway file, the folders that it names, and the certificates of listeners and
 * upstreams, which are renewed without touching the gateway file.
 */
export function targetsOf(settings: Settings): Parameters<typeof watchConfiguration>[0]['targets'] {
  const { file, policiesDir, pinsDir, listeners, admin, audit, watchedFiles } = settings;
  const paths = audit.sinks.flatMap((sink) => (sink.type === 'file' ? [sink.path] : []));
  const secured = [listeners.data, listeners.ops, ...(admin === undefined ? [] : [admin.listener])];
  return {
    files: [file, ...new Set([...secured.flatMap(({ tls }) => tls?.files ?? []), ...watchedFiles])],
    folders: [
      { path: policiesDir, suffix: '.policy.yaml' },
      { path: pinsDir, suffix: LOCK_SUFFIX },
      { path: pinsDir, suffix: SIGNATURE_SUFFIX },
    ],
    isOwn: isOwnFile(paths),
  };
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
