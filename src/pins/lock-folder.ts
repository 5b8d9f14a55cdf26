// Reads all lock files of a folder and the one hash that names their version.
// Never guesses: a file with a mistake gives faults and no lock, and the caller keeps what it had.
// Contract §5 and §3 (a reload is whole or not at all).

import { sha256Hex } from './digest.js';
import { LOCK_SUFFIX, type Lock } from './lock.js';
import { readLock } from './lock-reader.js';
import { type LockDiagnostic, lockDiagnostic } from './lock-source.js';

/** How the folder is read. Both throw, or reject, where that fails. */
export type LockPorts = {
  readFile(path: string): string | Uint8Array | Promise<string | Uint8Array>;
  readDir(path: string): readonly string[] | Promise<readonly string[]>;
};

export type LockFolder = {
  /** By upstream. Only files without a fault. */
  readonly locks: ReadonlyMap<string, Lock>;
  /** SHA-256 over the names and texts of the files, lower-case hex. */
  readonly hash: string;
  readonly diagnostics: readonly LockDiagnostic[];
};

/**
 * The lock files `<upstream>.lock.yaml` of a folder. A folder that does not exist holds none, and no
 * lock file means no pins; a folder or file that exists and cannot be read is a fault.
 */
export async function loadLocks(folder: string, ports: LockPorts): Promise<LockFolder> {
  const locks = new Map<string, Lock>();
  const diagnostics: LockDiagnostic[] = [];
  const versions: string[] = [];
  for (const name of await listFiles(folder, ports, diagnostics)) {
    const file = `${folder}/${name}`;
    const text = await readText(file, ports);
    if (text === undefined) {
      diagnostics.push(lockDiagnostic(file, 'the lock file cannot be read as UTF-8 text'));
      continue;
    }
    versions.push(`${JSON.stringify(name)} ${sha256Hex(text)}`);
    const reading = readLock(file, text);
    if (reading.lock === undefined) diagnostics.push(...reading.diagnostics);
    else locks.set(reading.lock.upstream, reading.lock);
  }
  return { locks, hash: sha256Hex(versions.join('\n')), diagnostics };
}

async function listFiles(
  folder: string,
  ports: LockPorts,
  diagnostics: LockDiagnostic[],
): Promise<readonly string[]> {
  try {
    const names = await ports.readDir(folder);
    return names.filter((name) => name.endsWith(LOCK_SUFFIX)).sort();
  } catch (error) {
    if (isMissing(error)) return [];
    diagnostics.push(lockDiagnostic(folder, 'the folder of lock files cannot be read'));
    return [];
  }
}

function isMissing(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'code' in error && error.code === 'ENOENT';
}

async function readText(file: string, ports: LockPorts): Promise<string | undefined> {
  try {
    const content = await ports.readFile(file);
    if (typeof content === 'string') return content;
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(content);
  } catch {
    return undefined;
  }
}
