// A reload: the files are read again, whole, and the new version is applied, whole, or rejected with
// what is wrong while the running one stays. Contract §3.

import type { Diagnostic } from '../config/fault.js';
import type { Settings } from '../config/settings.js';
import type { Log } from '../observe/log.js';
import { restartReason } from './restart.js';
import type { Version, VersionReading } from './version.js';
import type { Observability } from './witness.js';

export type ReloadPorts = {
  /** Takes the hash of the policies that run. */
  readonly read: (policyInForce: string) => Promise<VersionReading>;
  readonly current: () => Version;
  /** Swaps everything at once. */
  readonly apply: (next: Version) => void;
  readonly observability: Observability;
  readonly log: Log;
};

/**
 * Reloads one at a time: each call is followed by a reading that began after it, in order, so that an
 * older reading can never be applied over a newer one (SIGHUP and the watch may ask together).
 */
export function createReload(ports: ReloadPorts): () => Promise<readonly Diagnostic[]> {
  let last: Promise<unknown> = Promise.resolve();
  return () => {
    const next = last.then(() => reloadVersion(ports));
    last = next.catch(() => undefined);
    return next;
  };
}

/** Reads and applies, or rejects; resolves with every fault that was found. */
async function reloadVersion(ports: ReloadPorts): Promise<readonly Diagnostic[]> {
  const { version, diagnostics } = await ports.read(ports.current().hashes.policy);
  if (version === undefined) return reject(diagnostics, 'the files have mistakes', ports);
  const current = ports.current();
  const restart = restartReason(current.settings, version.settings);
  if (restart !== undefined) return reject(diagnostics, restart, ports);
  if (isSame(current, version)) return diagnostics;
  ports.apply(version);
  reportReload('applied', diagnostics, ports);
  ports.log.write('info', 'reload applied');
  return diagnostics;
}

/** True where no file differs: a touch is no change. Secrets are not hashed, but settings compare whole. */
function isSame(one: Version, other: Version): boolean {
  const { config, policy, pins } = one.hashes;
  const isUnchanged =
    config === other.hashes.config && policy === other.hashes.policy && pins === other.hashes.pins;
  return isUnchanged && secretsOf(one.settings) === secretsOf(other.settings);
}

/** What holds texts of other files: credentials and certificates. */
function secretsOf({ issuers, upstreams, listeners, admin }: Settings): string {
  return JSON.stringify([[...issuers.values()], [...upstreams.values()], listeners, admin]);
}

function reject(
  diagnostics: readonly Diagnostic[],
  why: string,
  ports: ReloadPorts,
): readonly Diagnostic[] {
  reportReload('rejected', diagnostics, ports);
  ports.log.write('error', 'reload rejected, the running version stays', { detail: why });
  return diagnostics;
}

function reportReload(
  result: 'applied' | 'rejected',
  diagnostics: readonly Diagnostic[],
  ports: ReloadPorts,
): void {
  const { observability, log } = ports;
  observability.metrics.reload(result);
  observability.audit.event({ type: 'config.reload', result, faults: diagnostics.length });
  for (const { file, line, message, severity } of diagnostics) {
    const level = severity === 'error' ? 'error' : 'warn';
    log.write(level, 'configuration fault', { file, line, detail: message });
  }
}
