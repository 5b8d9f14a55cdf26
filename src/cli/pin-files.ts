// What the `pin` commands read and write: the gateway file, lock files, and what upstreams offer now.
// Reads no policy. Writes a lock file whole or not at all, and never over one that has a mistake.
// Contract §1 (`pin`) and §5.

import { join, resolve } from 'node:path';
import { type Diagnostic, fileDiagnostic } from '../config/fault.js';
import type { Files } from '../config/files.js';
import { loadGateway } from '../config/load.js';
import { renderDiagnostics } from '../config/report.js';
import type { Settings, UpstreamSettings } from '../config/settings.js';
import { nearestCandidate } from '../config/suggestion.js';
import { LOCK_SUFFIX, type Lock } from '../pins/lock.js';
import { readLock } from '../pins/lock-reader.js';
import { writeLock } from '../pins/lock-writer.js';
import type { Observed } from '../pins/observed.js';
import type { CliIo } from './program.js';

/** What one upstream offers now. */
export type Observation =
  | { readonly kind: 'observed'; readonly observed: Observed }
  | { readonly kind: 'unreachable'; readonly why: string };

export type PinPorts = {
  readonly files: Files;
  /** Replaces the file at once (a new file, then a rename), making its folder. Rejects on failure. */
  writeFile(path: string, text: string): Promise<void>;
  /** Lists an upstream in every era it speaks, with the credentials of `pinning`. Never rejects. */
  observe(
    upstream: UpstreamSettings,
    gateway: Pick<Settings, 'keys' | 'publicBase'>,
  ): Promise<Observation>;
  /** Milliseconds since the epoch. */
  now(): number;
};

/** A lock file as it is now: `lock` is undefined where there is none yet. */
export type LockFile = { readonly file: string; readonly lock: Lock | undefined };

/** The settings of the gateway file; mistakes are printed, and then there are none. */
export function readSettings(config: string, io: CliIo, ports: PinPorts): Settings | undefined {
  const file = resolve(io.cwd, config);
  const { settings, diagnostics } = loadGateway(file, {
    readFile: ports.files.readFile,
    env: io.env,
  });
  const errors = diagnostics.filter((diagnostic) => diagnostic.severity === 'error');
  if (settings !== undefined) return settings;
  printDiagnostics(io, errors);
  return undefined;
}

/** The same, but silent: where the upstream need not be asked, secrets need not be there. */
export function trySettings(config: string, io: CliIo, ports: PinPorts): Settings | undefined {
  const file = resolve(io.cwd, config);
  return loadGateway(file, { readFile: ports.files.readFile, env: io.env }).settings;
}

export type PinFolder = { readonly folder: string; readonly upstreams: readonly string[] };

/** Where lock files stand and which upstreams there are, without reading a secret. */
export function readFolder(config: string, io: CliIo, ports: PinPorts): PinFolder | undefined {
  const file = resolve(io.cwd, config);
  const sources = { readFile: ports.files.readFile, env: io.env, secrets: 'skip' as const };
  const { outline, diagnostics } = loadGateway(file, sources);
  const errors = diagnostics.filter((diagnostic) => diagnostic.severity === 'error');
  if (outline?.pinsDir !== undefined && errors.length === 0) {
    return { folder: outline.pinsDir, upstreams: outline.upstreams.map(({ name }) => name) };
  }
  const missing = fileDiagnostic(file, 'missing-key', 'pins.dir is missing');
  printDiagnostics(io, errors.length > 0 ? errors : [missing]);
  return undefined;
}

/** True for an upstream of the gateway file; otherwise says what was perhaps meant. */
export function checkUpstream(name: string, known: readonly string[], io: CliIo): boolean {
  if (known.includes(name)) return true;
  const near = nearestCandidate(name, known);
  const suggestionText = near === undefined ? '' : `; did you mean ${JSON.stringify(near)}?`;
  io.stderr(`error: no upstream has this name${suggestionText}\n`);
  return false;
}

/** The lock file of an upstream; `invalid` where it has mistakes, which are printed. */
export function readLockFile(
  folder: string,
  upstream: string,
  io: CliIo,
  ports: PinPorts,
): LockFile | 'invalid' {
  const file = join(folder, `${upstream}${LOCK_SUFFIX}`);
  const content = readContent(file, ports);
  if (content === 'missing') return { file, lock: undefined };
  if (content === 'unreadable') {
    printDiagnostics(io, [fileDiagnostic(file, 'unreadable', 'the file cannot be read')]);
    return 'invalid';
  }
  const { lock, diagnostics } = readLock(file, content.text);
  if (lock !== undefined) return { file, lock };
  printDiagnostics(io, diagnostics);
  return 'invalid';
}

function readContent(
  file: string,
  ports: PinPorts,
): { readonly text: string } | 'missing' | 'unreadable' {
  try {
    const bytes = ports.files.readFile(file);
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) };
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    return isMissing ? 'missing' : 'unreadable';
  }
}

/** Writes a lock file; false, with the reason printed, where that failed. */
export async function writeLockFile(
  file: string,
  lock: Lock,
  io: CliIo,
  ports: PinPorts,
): Promise<boolean> {
  try {
    await ports.writeFile(file, writeLock(lock));
    return true;
  } catch {
    printDiagnostics(io, [fileDiagnostic(file, 'unreadable', 'the file cannot be written')]);
    return false;
  }
}

function printDiagnostics(io: CliIo, diagnostics: readonly Diagnostic[]): void {
  io.stderr(renderDiagnostics(diagnostics, 'text', io.cwd));
}
