// Shared by the `pin` commands: reads the gateway file and lock files, queries upstreams, and scans definitions that
// nobody has approved, with what a finding keeps from being approved. Reads no policy. Replaces lock files
// atomically, and never overwrites one with errors. Text from upstreams is escaped for terminals.
// docs/reference/commands.md; docs/reference/lock-files.md.

import { join, resolve } from 'node:path';
import {
  type Diagnostic,
  errorsOf,
  fileDiagnostic,
  type ReportFormat,
  renderDiagnostics,
} from '../../config/diagnostics.js';
import type { Files } from '../../config/files.js';
import { type GatewayReading, loadGateway } from '../../config/load.js';
import type { LockSigning, Settings, UpstreamSettings } from '../../config/settings.js';
import { type DefinitionFinding, isAbout, scanDefinitions } from '../../inspection/definitions/scan.js';
import {
  createShadowingIndex,
  type Deployment,
  findShadowingIn,
  type ShadowingException,
  type ShadowingIndex,
} from '../../inspection/definitions/shadowing.js';
import { definitionsOf, definitionsToScan, type PinDigest, type PinName } from '../../pins/approval.js';
import { describeSchemaError, findSchemaErrors, type UnusableDefinition } from '../../pins/catalog.js';
import type { Observed } from '../../pins/last-seen.js';
import { type Approval, LOCK_SUFFIX, type Lock, writeLock } from '../../pins/lock.js';
import { readLock } from '../../pins/lock-reader.js';
import { compileSchema } from '../../policy/json-schema/validator.js';
import { mirroredParameters } from '../../protocol/headers.js';
import { escapeForTerminal, isPasteable } from '../../text/escaping.js';
import { systemErrorCode } from '../../text/wording.js';
import { type CliIo, commandLine, didYouMean } from '../program.js';
import type { Questions } from '../servers/questions.js';

/** What one upstream offers now. */
export type Observation =
  | {
      readonly kind: 'observed';
      readonly observed: Observed;
      /** What of it could not be read, one clause each. */
      readonly notes?: readonly string[];
    }
  | { readonly kind: 'unreachable'; readonly why: string };

export type PinPorts = {
  readonly files: Files;
  /**
   * Replaces the file atomically by what `update` returns, creating its folder; `undefined` writes nothing. No other
   * writer changes the file between the call of `update` and the end. Resolves with the path of the file by which
   * another writer holds it, if that one does not finish. Rejects on failure.
   */
  updateFile(path: string, update: () => string | undefined): Promise<string | undefined>;
  /** Lists an upstream in every era it speaks, with the credentials of `pinning`. Never rejects. */
  observe(upstream: UpstreamSettings, gateway: Pick<Settings, 'keys' | 'publicBase'>): Promise<Observation>;
  /** Milliseconds since the epoch. */
  now(): number;
  /** A terminal on which a person answers questions. */
  readonly questions?: (() => Questions) | undefined;
  /** `user.name <user.email>` of git, if both are configured. */
  gitIdentity?(): string | undefined;
  /** Runs a shell command with this input. Resolves with what it printed, or with why it failed. Never rejects. */
  runCommand?(command: string, input: Uint8Array): Promise<{ readonly printed: string } | { readonly why: string }>;
};

/** A lock file as it is now, with its text; `lock` is undefined if the file does not exist. */
type LockFile = { readonly lock: Lock | undefined; readonly text: string };

/** What can be read of the gateway file. Prints nothing. */
export function readGateway(config: string, io: CliIo, { files }: PinPorts, secrets: 'read' | 'skip'): GatewayReading {
  const { readFile } = files;
  return loadGateway(resolve(io.cwd, config), { readFile, env: io.env, secrets });
}

export type PinFolder = {
  readonly folder: string;
  readonly upstreams: readonly string[];
  /** Whose signatures lock files need, if their keys could be read. */
  readonly signing: LockSigning | undefined;
};

/** The folder of lock files and the names of upstreams, read without any secret. */
export function readOutline(config: string, io: CliIo, ports: PinPorts): PinFolder | undefined {
  const { outline, diagnostics } = readGateway(config, io, ports, 'skip');
  const errors = errorsOf(diagnostics);
  if (outline !== undefined && errors.length === 0) {
    const { pinsDir: folder, signing } = outline;
    const upstreams = outline.upstreams.map(({ name }) => name);
    return { folder, upstreams, signing: signing === 'incomplete' ? undefined : signing };
  }
  printDiagnostics(io, errors);
  return undefined;
}

/** True if the gateway file has the upstream; otherwise prints an error with a suggestion. */
export function checkUpstream(name: string, known: readonly string[], io: CliIo): boolean {
  if (known.includes(name)) return true;
  io.stderr(`error: no upstream is named "${escapeForTerminal(name)}"${didYouMean(name, known)}\n`);
  return false;
}

/** The path of an upstream's lock file. */
export function lockFileOf(folder: string, upstream: string): string {
  return join(folder, `${upstream}${LOCK_SUFFIX}`);
}

/** The lock file of an upstream; `invalid` if it has mistakes, which are printed. */
export function readLockFile(folder: string, upstream: string, io: CliIo, ports: PinPorts): LockFile | 'invalid' {
  const file = lockFileOf(folder, upstream);
  const content = readContent(file, ports);
  if (content === 'missing') return { lock: undefined, text: '' };
  if (content === 'unreadable') {
    printDiagnostics(io, [fileDiagnostic(file, 'unreadable', 'the file cannot be read')]);
    return 'invalid';
  }
  const { lock, diagnostics } = readLock(file, content.text);
  if (lock !== undefined) return { lock, text: content.text };
  printDiagnostics(io, diagnostics);
  return 'invalid';
}

/** The text of a file in UTF-8. */
export function readContent(file: string, ports: PinPorts): { readonly text: string } | 'missing' | 'unreadable' {
  try {
    const bytes = ports.files.readFile(file);
    return { text: new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) };
  } catch (error) {
    return systemErrorCode(error) === 'ENOENT' ? 'missing' : 'unreadable';
  }
}

/** Says that a lock file that was changed needs new signatures, where signatures are required. */
export function printSignNext(upstream: string, signing: LockSigning | undefined, config: string, io: CliIo): void {
  if (signing === undefined) return;
  const line = commandLine(io, ['pin', 'sign', '-c', config, upstream]);
  io.stderr(`The lock file has to be signed before it takes effect: ${line} --key FILE\n`);
}

/** The new content of a lock file (`undefined`: unchanged), and what the command reports about it. */
type LockChange<Outcome> = { readonly lock: Lock | undefined; readonly outcome: Outcome };

/**
 * Changes a lock file as it is now, not as it was before an upstream was listed: another command may have written it
 * meanwhile. Writes it if `change` returns a lock that differs. `undefined`, with the reason printed, if that failed.
 */
export async function changeLockFile<Outcome>(
  folder: string,
  upstream: string,
  change: (lock: Lock | undefined) => LockChange<Outcome>,
  io: CliIo,
  ports: PinPorts,
): Promise<{ readonly outcome: Outcome; readonly isChanged: boolean } | undefined> {
  const file = lockFileOf(folder, upstream);
  let changed: { readonly outcome: Outcome; readonly isChanged: boolean } | undefined;
  const update = (): string | undefined => {
    const locked = readLockFile(folder, upstream, io, ports);
    if (locked === 'invalid') return undefined;
    const { lock, outcome } = change(locked.lock);
    const text = lock && writeLock(lock);
    const isChanged = text !== undefined && text !== (locked.lock && writeLock(locked.lock));
    changed = { outcome, isChanged };
    return isChanged ? text : undefined;
  };
  let message = 'the file cannot be written';
  try {
    const holder = await ports.updateFile(file, update);
    if (holder === undefined) return changed;
    message = `another command is writing the file; if none is running, remove ${escapeForTerminal(holder)}`;
  } catch {
    // The message says so.
  }
  printDiagnostics(io, [fileDiagnostic(file, 'unreadable', message)]);
  return undefined;
}

function printDiagnostics(io: CliIo, diagnostics: readonly Diagnostic[]): void {
  io.stderr(renderDiagnostics(diagnostics, 'text', io.cwd));
}

/** A digest in the form that commands accept. */
export function digestText(digest: string | undefined): string {
  return digest === undefined ? 'none' : `sha256:${digest}`;
}

/** Options of every `pin` command. */
export type PinOptions = {
  readonly config: string;
  readonly upstream?: string | undefined;
  readonly json?: boolean;
  /** Of `pin diff` and `pin verify`. */
  readonly format?: ReportFormat;
};

/** An upstream that a command applies to, with its lock file. */
export type PinTarget = {
  readonly settings: UpstreamSettings;
  /** The settings with which the upstream is queried. */
  readonly gateway: Pick<Settings, 'keys' | 'publicBase' | 'pinsDir' | 'signing'>;
  readonly locked: LockFile;
};

/** The upstreams a command applies to; `undefined` if a mistake was printed. */
export function readTargets(
  options: PinOptions,
  io: CliIo,
  ports: PinPorts,
  isSelected: (upstream: UpstreamSettings) => boolean,
): readonly PinTarget[] | undefined {
  const { settings, diagnostics } = readGateway(options.config, io, ports, 'read');
  if (settings === undefined) {
    printDiagnostics(io, errorsOf(diagnostics));
    return undefined;
  }
  const { upstream: named } = options;
  const all = [...settings.upstreams.values()];
  const names = all.map(({ name }) => name);
  if (named !== undefined && !checkUpstream(named, names, io)) return undefined;
  const selected = all.filter((one) => (named === undefined ? isSelected(one) : one.name === named));
  // Reads all lock files before it gives up, so that one run prints every mistake.
  const targets = selected.flatMap((one): PinTarget[] => {
    const locked = readLockFile(settings.pinsDir, one.name, io, ports);
    return locked === 'invalid' ? [] : [{ settings: one, gateway: settings, locked }];
  });
  return targets.length === selected.length ? targets : undefined;
}

/** What an upstream offers; `undefined`, with the reason printed, if it could not be queried. */
export async function observeTarget(
  { settings, gateway }: Omit<PinTarget, 'locked'>,
  io: CliIo,
  ports: Pick<PinPorts, 'observe'>,
): Promise<Observed | undefined> {
  const observation = await ports.observe(settings, gateway);
  if (observation.kind === 'observed') {
    for (const note of observation.notes ?? []) io.stderr(`note: ${settings.name}: ${escapeForTerminal(note)}\n`);
    return observation.observed;
  }
  // What a process wrote last has lines of its own; none of them begins where ours do.
  const why = observation.why.split('\n').map(escapeForTerminal).join('\n  ');
  io.stderr(`error: ${settings.name} could not be listed: ${why}\n`);
  return undefined;
}

/**
 * Who decides, when and why: `--by`, else the identity that git is configured with, which stderr then names.
 * `undefined` if nobody is named.
 */
export function approvalOf(
  { by, note }: { readonly by?: string; readonly note?: string },
  io: CliIo,
  ports: PinPorts,
): Approval | undefined {
  const name = by ?? ports.gitIdentity?.();
  if (name === undefined || name.trim() === '') return undefined;
  if (by === undefined) {
    io.stderr(`note: by ${escapeForTerminal(name)}, as git is configured; --by names another\n`);
  }
  const at = new Date(ports.now()).toISOString();
  return note === undefined ? { by: name, at } : { by: name, at, note };
}

/** Printed where a decision needs a name and there is none. */
export const NO_NAME = 'error: an approval names who gives it: add --by NAME, or set user.name and user.email in git\n';

const KINDS_WITHOUT_NAME: ReadonlySet<string> = new Set(['instructions', 'server', 'upstream']);

/** An item as it is printed, safe on a terminal. A kind of which there is one has no name of its own. */
export function pinLabel({ kind, name }: { readonly kind: string; readonly name: string }): string {
  return KINDS_WITHOUT_NAME.has(kind) ? kind : `${kind} ${escapeForTerminal(name)}`;
}

/** What the definitions of one upstream are compared with: those of all upstreams, and what is allowed. */
export type OtherUpstreams = {
  readonly index: ShadowingIndex;
  readonly deployment: Deployment;
  readonly exceptions: readonly ShadowingException[];
  /** As in RFC 3339, in UTC. */
  readonly today: string;
};

/**
 * The lock files of all upstreams, read once for a command. One that cannot be read is reported and not compared.
 * `own`: the one upstream that the command reads itself.
 */
export function readOthers(config: string, own: string | undefined, io: CliIo, ports: PinPorts): OtherUpstreams {
  const { outline } = readGateway(config, io, ports, 'skip');
  const folder = outline?.pinsDir;
  const others = (outline?.upstreams ?? []).filter(({ name }) => name !== own);
  const upstreams = others.flatMap(({ name }) => {
    const read = folder === undefined ? 'invalid' : readLockFile(folder, name, io, ports);
    if (read === 'invalid' || read.lock === undefined) return [];
    return [{ upstream: name, definitions: definitionsOf(read.lock) }];
  });
  return {
    index: createShadowingIndex(upstreams),
    deployment: outline?.deployment ?? { upstreams: [], aggregates: [] },
    exceptions: outline?.shadowing ?? [],
    today: new Date(ports.now()).toISOString().slice(0, 10),
  };
}

/** What is found in the given definitions of a lock file, read together with the others of all servers. */
export function scanPins(
  lock: Lock,
  pins: readonly PinDigest[],
  { index, ...others }: OtherUpstreams,
): readonly DefinitionFinding[] {
  const own = { upstream: lock.upstream, definitions: definitionsOf(lock) };
  return [...scanOwn(lock, pins), ...findShadowingIn(index, { own, asked: pins, ...others })];
}

/** What is found in the given definitions, read together with the others of their server. */
export function scanOwn(lock: Lock, pins: readonly PinDigest[]): readonly DefinitionFinding[] {
  const found = scanDefinitions(definitionsToScan(lock, pins));
  const names = new Set(pins.map(({ kind, name }) => `${kind} ${name}`));
  return found.filter(({ item: { kind, name } }) => names.has(`${kind} ${name}`));
}

/**
 * The findings that keep a definition from being approved: those of the tier block, and where it is approved together
 * with others, without being named, also those that a person has to look at.
 */
export function blockingFindings(
  findings: readonly DefinitionFinding[],
  pin: PinName,
  { accepted = [], isNamed = false }: { accepted?: readonly string[]; isNamed?: boolean } = {},
): readonly DefinitionFinding[] {
  return findings.filter(
    (finding) =>
      (finding.tier === 'block' || (finding.tier === 'review' && !isNamed)) &&
      isAbout(finding, pin) &&
      !accepted.includes(finding.id),
  );
}

/**
 * One finding, indented under its definition. The evidence has no character that acts on a terminal; of what was not
 * read there is none.
 */
function findingLine({ id, tier, pointer, evidence, reason }: DefinitionFinding): string {
  const place = pointer === '' ? '' : ` ${escapeForTerminal(pointer)}`;
  const quoted = evidence === '' ? '' : `: ${JSON.stringify(escapeForTerminal(evidence))}`;
  return `  ${tier} ${id}${place}${quoted}\n    ${reason}\n`;
}

/** The findings of one definition that a reviewer is shown; notes are left to JSON. */
export function findingsText(findings: readonly DefinitionFinding[], pin: DefinitionFinding['item']): string {
  return findings
    .filter(({ tier, item: { kind, name } }) => {
      return tier !== 'note' && kind === pin.kind && name === pin.name;
    })
    .map(findingLine)
    .join('');
}

const COMPILERS = { compileSchema, mirroredParameters };

/** What of a lock file cannot be used, shown or checked, as the gateway would find it. */
export function schemaErrorsIn(
  lock: Lock | undefined,
  { formats }: Pick<UpstreamSettings, 'formats'>,
  withPending = false,
): readonly UnusableDefinition[] {
  return findSchemaErrors(lock, COMPILERS, formats, withPending);
}

/** Names each such definition with the place and the error; one that is only not checked as a whole in a note. */
export function printSchemaErrors(upstream: string, schemaErrors: readonly UnusableDefinition[], io: CliIo): void {
  for (const schemaError of schemaErrors) {
    const severity = schemaError.effect === 'unchecked' ? 'note' : 'warning';
    const text = escapeForTerminal(describeSchemaError(schemaError));
    io.stderr(`${severity}: ${upstream} ${pinLabel(schemaError)} ${text}\n`);
  }
}

/** A definition that was not approved, and what was found in it. */
export type HeldBack = { readonly pin: PinDigest; readonly findings: readonly DefinitionFinding[] };

/** Says why definitions were not approved, and how they are approved nevertheless. */
export function printWithheld(upstream: string, config: string, withheld: readonly HeldBack[], io: CliIo): void {
  const target = ['pin', 'approve', '-c', config, upstream];
  const found = withheld.flatMap(({ findings }) => findings);
  const wide = new Map(found.filter(({ item }) => item.kind === 'upstream').map((one) => [one.id, one]));
  for (const finding of wide.values()) {
    const count = withheld.filter(({ findings }) => findings.includes(finding)).length;
    const what = count === 1 ? 'definition is' : 'definitions are';
    io.stderr(`error: ${upstream}: ${count} ${what} not approved, because the scan found in them:\n`);
    io.stderr(findingLine(finding));
    const line = commandLine(io, [...target, '--all', '--accept', finding.id]);
    io.stderr(`To approve them all the same, run: ${line}\n`);
  }
  for (const { pin, findings } of withheld) {
    const own = findings.filter(({ item }) => item.kind !== 'upstream');
    if (own.length === 0) continue;
    const label = `${upstream} ${pinLabel(pin)}`;
    io.stderr(`error: ${label} is not approved, because the scan found in it:\n`);
    io.stderr(own.map(findingLine).join(''));
    if (!isPasteable(pin.name)) continue;
    const accept = findings.flatMap(({ id }) => ['--accept', id]);
    const line = commandLine(io, [
      ...[...target, pin.name, '--kind', pin.kind, '--digest', digestText(pin.digest)],
      ...accept,
    ]);
    io.stderr(`If a review shows that this is meant well, run: ${line}\n`);
  }
}
