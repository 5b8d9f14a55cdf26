// Adds one server to a configuration, which is what `init` and `add` do: its entry in the gateway file, its policy with
// tests, its lock file and its secrets. Everything that can fail is checked before the first file is written (the
// settings, the issuer, the server), and either all is written or nothing. A file that exists is never written over; of
// the gateway file nothing but the entry changes. docs/reference/commands.md#init-and-dev---save.

import { join, posix, relative } from 'node:path';
import { errorsOf, hasErrors, renderDiagnostics } from '../../config/diagnostics.js';
import { loadGateway } from '../../config/load.js';
import type { IssuerSettings, Settings } from '../../config/settings.js';
import { mergeFetched } from '../../pins/approval.js';
import { type Lock, writeLock } from '../../pins/lock.js';
import { escapeForTerminal } from '../../text/escaping.js';
import { addToMap, type EntryValue } from '../../text/yaml-edit.js';
import { type ChangedFile, findObstacles, type NewFile, writeNewFiles } from '../new-files.js';
import { observeTarget, type PinPorts } from '../pin/lock-files.js';
import type { CliIo } from '../program.js';
import {
  contentOf,
  describeGrants,
  foundIn,
  type Layout,
  type Proposed,
  policyText,
  proposedBy,
  type ServerAnswers,
  serverPaths,
  stanzaLines,
  testText,
} from './drafts.js';
import { findFit, fitOf, libraryText, readLibrary } from './library.js';

export type AddPorts = Pick<PinPorts, 'files' | 'observe'>;

/** A configuration to which a server is added. */
export type Configuration = {
  /** The folder of its files, an absolute path. */
  readonly folder: string;
  readonly layout: Layout;
  /** The gateway file as it is, or as it begins. */
  readonly text: string;
  /** The gateway file does not exist yet. */
  readonly isNew: boolean;
  /** Files that are written with a new gateway file. */
  readonly begun?: readonly NewFile[];
  /** What must not be committed. */
  readonly ignored: readonly string[];
};

/** Another entry that goes with that of the server, in the gateway file or in another file. */
type Entry = { readonly path: readonly string[]; readonly key: string; readonly value: EntryValue };

export type NewServer = {
  readonly answers: ServerAnswers;
  /** Where its definitions are fetched, if not where the gateway will find it. */
  readonly fetchedAt?: Partial<Pick<ServerAnswers, 'url' | 'socket' | 'network' | 'header'>>;
  /** New files beside those that every server has. */
  readonly files?: readonly NewFile[];
  readonly changed?: readonly ChangedFile[];
  readonly entries?: readonly Entry[];
};

type AddOptions = {
  readonly command: 'init' | 'add';
  readonly isOffline: boolean;
  /** Asks the issuers of a new gateway. Prints why one cannot be used. */
  readonly checkIssuers?: (issuers: Iterable<IssuerSettings>) => Promise<boolean>;
};

/** What was written. */
export type Added = { readonly answers: ServerAnswers; readonly lock?: Lock | undefined };

/** Adds the server; `undefined`, with the reason printed and nothing changed, if that is not possible. */
export async function addServer(
  configuration: Configuration,
  server: NewServer,
  options: AddOptions,
  io: CliIo,
  ports: AddPorts,
): Promise<Added | undefined> {
  const { folder, layout, begun = [], isNew } = configuration;
  const paths = serverPaths(layout, server.answers.name);
  const beside = newFilesOf(server, layout).map(({ path }) => path);
  const own = isNew ? [layout.config, ...begun.map(({ path }) => path)] : [];
  const all = [...own, paths.policy, paths.test, paths.lock, ...beside];
  if (isUnknownPolicy(server.answers, io, ports)) return undefined;
  if (await hasObstacles(folder, all, options.command, io)) return undefined;
  const settings = readSettings(configuration, server, options, io, ports);
  if (settings === undefined) return undefined;
  const isAsked = !options.isOffline && settings !== 'unread';
  const lock = isAsked ? await fetchAll(server, settings, options, io, ports) : undefined;
  return lock === 'failed' ? undefined : writeAll(configuration, server, lock, io, ports);
}

/** Whether the library has no policy of the name that was given. Prints which there are. */
function isUnknownPolicy({ library = 'none' }: ServerAnswers, io: CliIo, { files }: AddPorts): boolean {
  const known = library === 'none' ? [library] : [...readLibrary(files).keys(), 'none'].sort();
  if (known.includes(library)) return false;
  io.stderr(`error: the library has no policy "${escapeForTerminal(library)}"; it has ${known.join(', ')}\n`);
  return true;
}

/** The policy of the library that was named, or that fits. */
function proposedFor(answers: ServerAnswers, lock: Lock | undefined, { files }: AddPorts): Proposed | undefined {
  const { name, library = '', allow } = answers;
  if (lock === undefined || library === 'none' || (library === '' && allow === 'all')) return undefined;
  const rows = readLibrary(files);
  const row = rows.get(library);
  const isFound = foundIn(lock);
  const fit = row === undefined ? findFit(rows, lock, name, isFound) : fitOf(library, row, lock, isFound);
  return fit && proposedBy(fit, libraryText(fit.name, files), answers);
}

/** The new files of a server but its drafts. */
function newFilesOf({ files = [], answers }: NewServer, layout: Layout): readonly NewFile[] {
  return [...files, ...headerFiles(layout, answers)];
}

async function writeAll(
  configuration: Configuration,
  server: NewServer,
  lock: Lock | undefined,
  io: CliIo,
  ports: AddPorts,
): Promise<Added | undefined> {
  const { folder, layout, begun = [], isNew } = configuration;
  const { answers } = server;
  const paths = serverPaths(layout, answers.name);
  const proposed = proposedFor(answers, lock, ports);
  const config = gatewayWith(configuration, server, io, { lock, proposed });
  if (config === undefined) return undefined;
  const files: NewFile[] = [
    ...(isNew ? [{ path: layout.config, text: config, isSecret: false }] : []),
    ...begun,
    ...newFilesOf(server, layout),
    { path: paths.policy, text: policyText(answers, lock, proposed), isSecret: false },
    { path: paths.test, text: testText(answers, lock, proposed), isSecret: false },
    ...(lock === undefined ? [] : [{ path: paths.lock, text: writeLock(lock), isSecret: false }]),
  ];
  const gateway = { path: layout.config, before: configuration.text, text: config };
  const changed = [...(server.changed ?? []), ...(isNew ? [] : [gateway])];
  const ignored = files.some(({ isSecret }) => isSecret) ? configuration.ignored : [];
  const error = await writeNewFiles(folder, files, ignored, changed);
  if (error !== undefined) {
    io.stderr(`error: nothing was written: ${escapeForTerminal(error)}\n`);
    return undefined;
  }
  const written = [...files, ...changed].map(({ path }) => path);
  const all = [...written, ...(ignored.length > 0 ? ['.gitignore'] : [])];
  io.stdout(`written to ${shown(folder, io)}: ${all.map(escapeForTerminal).join(', ')}\n`);
  if (lock !== undefined) printChoices(answers, lock, proposed, io);
  return { answers, lock };
}

/** The file of the header that the server gets, if its value was given. */
function headerFiles({ config }: Layout, { header }: ServerAnswers): readonly NewFile[] {
  if (header === undefined || !('file' in header.from) || header.from.value === undefined) return [];
  const { file, value } = header.from;
  return [{ path: posix.join(posix.dirname(config), file), text: `${value}\n`, isSecret: true }];
}

function printChoices(answers: ServerAnswers, lock: Lock, proposed: Proposed | undefined, io: CliIo): void {
  io.stdout(`${escapeForTerminal(describeGrants(answers, lock, proposed))}\n`);
  if (answers.content !== undefined) return;
  const content = contentOf(answers, lock, proposed);
  if (content !== undefined) io.stdout(`Content: ${content.shown}\n`);
}

/** Whether a file or a link is where something would be written. Prints which. */
export async function hasObstacles(
  folder: string,
  written: readonly string[],
  command: AddOptions['command'],
  io: CliIo,
): Promise<boolean> {
  const { links, existing } = await findObstacles(folder, written);
  const list = (paths: readonly string[]): string => paths.map((path) => shown(path, io)).join(', ');
  if (links.length > 0)
    io.stderr(`error: ${command} follows no link below the folder, and this is one: ${list(links)}\n`);
  if (existing.length > 0)
    io.stderr(`error: ${command} writes no file over another, and this exists: ${list(existing)}\n`);
  return links.length + existing.length > 0;
}

export function shown(path: string, io: CliIo): string {
  return escapeForTerminal(relative(io.cwd, path) || '.');
}

/** The gateway file with the server in it; `undefined`, with the reason printed, where that cannot be. */
function gatewayWith(
  { text, layout }: Configuration,
  { answers, entries = [] }: Pick<NewServer, 'answers' | 'entries'>,
  io: CliIo,
  { lock, proposed }: { readonly lock?: Lock | undefined; readonly proposed?: Proposed | undefined } = {},
): string | undefined {
  const own = { path: ['upstreams'], key: answers.name, value: stanzaLines(answers, lock, proposed) };
  let edited = text;
  for (const { path, key, value } of [own, ...entries]) {
    const edit = addToMap(edited, path, key, value);
    if ('error' in edit) {
      io.stderr(`error: nothing was written: ${escapeForTerminal(layout.config)}: ${edit.error}\n`);
      return undefined;
    }
    edited = edit.text;
  }
  return edited;
}

/**
 * The settings with the server, as it is reached now, before anything is written; `undefined` with the diagnostics
 * printed if they have errors. Without asking the server, no secret of a gateway that exists is read.
 */
function readSettings(
  configuration: Configuration,
  server: NewServer,
  { isOffline }: AddOptions,
  io: CliIo,
  ports: AddPorts,
): Settings | 'unread' | undefined {
  const { folder, layout, begun = [], isNew } = configuration;
  const answers = isOffline ? server.answers : { ...server.answers, ...server.fetchedAt };
  const config = gatewayWith(configuration, { ...server, answers }, io);
  if (config === undefined) return undefined;
  const written = [{ path: layout.config, text: config }, ...begun, ...newFilesOf({ ...server, answers }, layout)];
  const texts = new Map(written.map(({ path, text }) => [join(folder, path), text]));
  const isUnread = isOffline && !isNew;
  const { settings, diagnostics } = loadGateway(join(folder, layout.config), {
    readFile(path) {
      const text = texts.get(path);
      return text === undefined ? ports.files.readFile(path) : new TextEncoder().encode(text);
    },
    env: io.env,
    secrets: isUnread ? 'skip' : 'read',
  });
  if (!hasErrors(diagnostics) && (settings !== undefined || isUnread)) return settings ?? 'unread';
  io.stderr(renderDiagnostics(errorsOf(diagnostics), 'text', io.cwd));
  io.stderr('error: nothing was written: these settings are not valid together\n');
  return undefined;
}

/** Checks the issuers of a new gateway and lists the server; what it offers is pending. Prints what failed. */
async function fetchAll(
  { answers: { name } }: NewServer,
  settings: Settings,
  { checkIssuers }: AddOptions,
  io: CliIo,
  ports: AddPorts,
): Promise<Lock | 'failed'> {
  const hint = 'nothing was written; to write the files without asking it, add --offline\n';
  if (checkIssuers !== undefined && !(await checkIssuers(settings.issuers.values()))) {
    io.stderr(hint);
    return 'failed';
  }
  const upstream = settings.upstreams.get(name);
  if (upstream === undefined) return 'failed';
  const observed = await observeTarget({ settings: upstream, gateway: settings }, io, ports);
  if (observed === undefined) {
    io.stderr(hint);
    return 'failed';
  }
  const fetched = mergeFetched({ upstream: name, lock: undefined, observed, approval: undefined });
  for (const item of fetched.unusable) {
    io.stderr(`warning: cannot be pinned: ${item.kind} ${escapeForTerminal(item.name)}\n`);
  }
  return fetched.lock;
}
