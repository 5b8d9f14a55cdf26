// `sallyport remove`: takes a server out of a configuration: its entry, and of the files that `add` wrote those that nobody
// has edited. What it leaves is named, and so is what still names the server; where that would be an error of the
// configuration, nothing is removed. docs/reference/commands.md#add-remove-and-list.

import { join, posix } from 'node:path';
import { type Diagnostic, errorsOf } from '../../config/diagnostics.js';
import type { Files } from '../../config/files.js';
import { countReviewed } from '../../pins/approval.js';
import { readLock } from '../../pins/lock-reader.js';
import { escapeForTerminal } from '../../text/escaping.js';
import { countOf } from '../../text/wording.js';
import { linesNaming, removeFromMap, textsOfKey } from '../../text/yaml-edit.js';
import { type ChangedFile, findObstacles, writeNewFiles } from '../new-files.js';
import { checkUpstream } from '../pin/lock-files.js';
import {
  type CliIo,
  type Command,
  EXIT_FAILED,
  EXIT_FINE,
  EXIT_UNCHECKED,
  fail,
  withConfigOption,
} from '../program.js';
import { findDiagnostics, type ValidatePorts } from '../validate.js';
import { shown } from './add-server.js';
import { type ExistingConfiguration, readConfiguration } from './configuration.js';
import { isUnedited, serverPaths } from './drafts.js';
import { STDIO_FILE, stdioServersIn, withoutStdioServer } from './stdio-file.js';

type RemoveOptions = {
  readonly config: string;
  /** Says what would be done. */
  readonly dryRun?: boolean;
  /** Files of the server are removed although they were edited, or have decisions. */
  readonly edited?: boolean;
};

/** What is done, and what is not, with a reason. Paths are relative to the folder. */
type Plan = {
  readonly changed: readonly ChangedFile[];
  readonly left: readonly { readonly path: string; readonly why: string }[];
};

/** Exit 1: something still needs the server; nothing was removed. */
async function runRemove(name: string, options: RemoveOptions, io: CliIo, ports: ValidatePorts): Promise<number> {
  const configuration = readConfiguration(options.config, io, ports.files);
  if (configuration === undefined) return EXIT_UNCHECKED;
  const { outline, folder } = configuration;
  const names = outline.upstreams.map((one) => one.name);
  if (!checkUpstream(name, names, io)) return EXIT_UNCHECKED;
  if (names.length === 1)
    return fail(`${name} is the only server of this gateway, which needs one; add another first`, EXIT_FAILED, io);
  const plan = planRemoval(configuration, name, options.edited === true, ports.files);
  if ('error' in plan) return fail(`nothing was removed: ${escapeForTerminal(plan.error)}`, EXIT_UNCHECKED, io);
  const files = withChanges(folder, plan.changed, ports.files);
  const broken = await findBroken(configuration, files, io, ports);
  const named = findNames(configuration, name, files);
  if (broken.length > 0) {
    io.stderr(`error: nothing was removed: ${name} is still needed:\n`);
    for (const { file, line, message } of broken)
      io.stderr(`  ${shown(file, io)}:${line} ${escapeForTerminal(message)}\n`);
    io.stderr(namesText(named, io));
    for (const { path, why } of plan.left)
      io.stderr(`${shown(join(folder, path), io)} would be left: ${why}; --edited removes it too\n`);
    return EXIT_FAILED;
  }
  const { links } = await findObstacles(
    folder,
    plan.changed.map(({ path }) => path),
  );
  if (links.length > 0)
    return fail(
      `nothing was removed: ${links.map((path) => shown(path, io)).join(', ')} is a link`,
      EXIT_UNCHECKED,
      io,
    );
  const error = options.dryRun === true ? undefined : await writeNewFiles(folder, [], [], plan.changed);
  if (error !== undefined) return fail(`nothing was removed: ${escapeForTerminal(error)}`, EXIT_UNCHECKED, io);
  io.stdout(planText(name, plan, configuration, options.dryRun === true, io));
  io.stdout(namesText(named, io));
  return EXIT_FINE;
}

function planRemoval(
  configuration: ExistingConfiguration,
  name: string,
  withEdited: boolean,
  files: Files,
): Plan | { readonly error: string } {
  const { text, layout } = configuration;
  const base = posix.dirname(layout.config);
  const config = removeFromMap(text, ['upstreams'], name);
  if ('error' in config) return { error: `${layout.config}: ${config.error}` };
  const stdio = planStdio(configuration, name, files);
  if (stdio !== undefined && 'error' in stdio) return stdio;
  const own = planOwnFiles(configuration, name, withEdited, files);
  // The adapter keeps its token, also where its file has no server any more.
  const kept = new Set(stdio === undefined ? [] : textsOfKey(stdio.file.text ?? '', 'file').map(posix.normalize));
  const ofGateway = secretsOnlyIn(text, config.text).filter((file) => !kept.has(file));
  const secrets = [...ofGateway, ...(stdio === undefined ? [] : stdio.secrets)];
  return {
    changed: [
      ...own.changed,
      ...(stdio === undefined ? [] : [stdio.file]),
      { path: layout.config, before: text, text: config.text },
    ],
    left: [...own.left, ...secrets.map((path) => ({ path: posix.join(base, path), why: 'it holds a secret' }))],
  };
}

function planOwnFiles(
  { layout, folder }: ExistingConfiguration,
  name: string,
  withEdited: boolean,
  files: Files,
): Plan {
  const { policy, test, lock } = serverPaths(layout, name);
  const found = [policy, test, lock].flatMap((path) => {
    const before = readText(join(folder, path), files);
    if (before === undefined) return [];
    return [{ path, before, why: path === lock ? decisionsIn(path, before) : editOf(before) }];
  });
  const isKept = ({ why }: { readonly why: string | undefined }): boolean => why !== undefined && !withEdited;
  return {
    changed: found.filter((one) => !isKept(one)).map(({ path, before }) => ({ path, before })),
    left: found.filter(isKept).map(({ path, why = '' }) => ({ path, why })),
  };
}

function editOf(text: string): string | undefined {
  return isUnedited(text) ? undefined : 'it was edited';
}

/** The file of the adapter without the server, if that is where the server comes from. */
function planStdio(
  { layout, folder }: ExistingConfiguration,
  name: string,
  files: Files,
): { readonly file: ChangedFile; readonly secrets: readonly string[] } | { readonly error: string } | undefined {
  const path = posix.join(posix.dirname(layout.config), STDIO_FILE);
  const before = readText(join(folder, path), files);
  if (before === undefined || !stdioServersIn(before).includes(name)) return undefined;
  const edit = withoutStdioServer(before, name);
  if ('error' in edit) return { error: `${path}: ${edit.error}` };
  return { file: { path, before, text: edit.text }, secrets: secretsOnlyIn(before, edit.text) };
}

function readText(file: string, { readFile }: Files): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(readFile(file));
  } catch {
    return undefined;
  }
}

/** Why a lock file is worth keeping; a file that cannot be read is kept too. */
function decisionsIn(path: string, text: string): string | undefined {
  const { lock } = readLock(path, text);
  if (lock === undefined) return 'it cannot be read';
  const { approved, blocked } = countReviewed(lock);
  return approved + blocked === 0 ? undefined : `it has ${countOf(approved + blocked, 'decision')}`;
}

/** The files of secrets that only the first text refers to. */
function secretsOnlyIn(before: string, after: string): readonly string[] {
  const kept = new Set(textsOfKey(after, 'file').map(posix.normalize));
  const files = new Set(textsOfKey(before, 'file').map(posix.normalize));
  return [...files].filter((file) => !kept.has(file) && !file.startsWith('/'));
}

/** The files as they would be. */
function withChanges(folder: string, changed: readonly ChangedFile[], files: Files): Files {
  const texts = new Map(changed.map(({ path, text }) => [join(folder, path), text]));
  return {
    ...files,
    readFile(path) {
      if (!texts.has(path)) return files.readFile(path);
      const text = texts.get(path);
      if (text === undefined) throw Object.assign(new Error('removed'), { code: 'ENOENT' });
      return new TextEncoder().encode(text);
    },
    listFolder: (path) => files.listFolder(path).filter((name) => !isRemoved(join(path, name))),
  };
  function isRemoved(path: string): boolean {
    return texts.has(path) && texts.get(path) === undefined;
  }
}

/** The errors that the files do not have now. */
async function findBroken(
  { outline }: ExistingConfiguration,
  files: Files,
  io: CliIo,
  ports: ValidatePorts,
): Promise<readonly Diagnostic[]> {
  const errorsWith = async (read: Files) =>
    errorsOf(await findDiagnostics({ config: outline.file, secrets: false }, io, { ...ports, files: read }));
  const known = new Set((await errorsWith(ports.files)).map(({ file, message }) => `${file} ${message}`));
  return (await errorsWith(files)).filter(({ file, message }) => !known.has(`${file} ${message}`));
}

type Named = { readonly file: string; readonly lines: readonly number[] };

/** Where endpoints, policies and tests name the server, alone or before the name of a tool. */
function findNames({ outline }: ExistingConfiguration, name: string, files: Files): readonly Named[] {
  const isMeant = (scalar: string): boolean => scalar === name || scalar.startsWith(`${name}/`);
  let policies: readonly string[] = [];
  try {
    policies = files.listFolder(outline.policiesDir).filter((file) => /\.policy(?:\.test)?\.yaml$/.test(file));
  } catch {
    // A gateway may have no policy yet.
  }
  const all = [outline.file, ...policies.map((file) => join(outline.policiesDir, file))];
  return all.flatMap((file): Named[] => {
    const lines = linesNaming(readText(file, files) ?? '', isMeant);
    return lines.length === 0 ? [] : [{ file, lines }];
  });
}

function namesText(named: readonly Named[], io: CliIo): string {
  const places = named.flatMap(({ file, lines }) => lines.map((line) => `  ${shown(file, io)}:${line}\n`));
  return places.length === 0 ? '' : `still named by:\n${places.join('')}`;
}

function planText(
  name: string,
  { changed, left }: Plan,
  { folder, layout }: ExistingConfiguration,
  isDry: boolean,
  io: CliIo,
): string {
  const at = (path: string): string => shown(join(folder, path), io);
  const removed = changed.filter(({ text }) => text === undefined).map(({ path }) => at(path));
  const edited = changed.filter(({ text }) => text !== undefined).map(({ path }) => at(path));
  const lines = [
    `${isDry ? 'would remove' : 'removed'} ${name} from ${edited.join(' and ')}`,
    ...(removed.length === 0 ? [] : [`${isDry ? 'would remove' : 'removed'} ${removed.join(', ')}`]),
    ...left.map(({ path, why }) => `left ${at(path)}: ${why}`),
    ...(edited.length > 1
      ? [`the adapter of ${at(posix.join(posix.dirname(layout.config), STDIO_FILE))} has to be started anew`]
      : []),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

export function removeCommand(io: CliIo, ports: ValidatePorts): Command {
  return {
    name: 'remove',
    summary: 'Remove a server from a configuration, with the files of it that nobody has edited.',
    examples: ['sallyport remove github --dry-run', 'sallyport remove github'],
    configure(command, finish) {
      withConfigOption(command, io)
        .argument('<name>', 'name of the server')
        .option('--dry-run', 'only say what would be removed, and what would be left')
        .option('--edited', 'remove its policy, tests and lock file also if they were edited or have decisions')
        .action(async (name: string, options: RemoveOptions) => finish(await runRemove(name, options, io, ports)));
    },
  };
}
