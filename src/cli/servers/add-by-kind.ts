// Adds a server that is reached by HTTP, or one that a command starts: its command goes into the file of the adapter, and
// is started once, by the adapter in this process, to fetch its definitions. docs/reference/commands.md#add-remove-and-list.

import { dirname, join, posix } from 'node:path';
import { renderDiagnostics } from '../../config/diagnostics.js';
import type { Network } from '../../config/settings.js';
import { askRegistry, type PinnedCommand, pinPackages } from '../../stdio/packages.js';
import { type ProcessPorts, serverEnvironment } from '../../stdio/server-process.js';
import { escapeForTerminal, makeVisible, quoteForShell } from '../../text/escaping.js';
import { type DevTarget, startCommand } from '../dev-target.js';
import type { NewFile } from '../new-files.js';
import { type PinPorts, readContent } from '../pin/lock-files.js';
import { type CliIo, commandLine } from '../program.js';
import { newStdioToken } from '../stdio.js';
import { type Added, addServer, type NewServer, shown } from './add-server.js';
import type { ExistingConfiguration } from './configuration.js';
import { SECRETS_FOLDER, type ServerAnswers, type ServerHeader } from './drafts.js';
import { findSecretWord } from './import-plan.js';
import type { Questions } from './questions.js';
import type { ServerOptions } from './server-options.js';
import {
  NEW_STDIO_TEXT,
  placeOfListen,
  readStdioFile,
  type SecretReference,
  type SecretSource,
  STDIO_FILE,
  withStdioServer,
} from './stdio-file.js';

export type AddOptions = ServerOptions & {
  readonly config: string;
  /** Names of issuers in the gateway file. */
  readonly issuer?: readonly string[];
  readonly endpoint?: string;
  readonly prefix?: string;
  readonly env?: readonly string[];
  readonly cwd?: string;
  /** The file of a client, whose servers are added. */
  readonly from?: string;
  /** With `from`, the names of the servers to add. */
  readonly yes?: boolean | readonly string[];
};

export type AddCommandPorts = Pick<PinPorts, 'files' | 'observe' | 'gitIdentity'> &
  Pick<ProcessPorts, 'signalGroup' | 'killMarked'> & {
    /** Absent where stdin is no terminal. */
    readonly questions?: (() => Questions) | undefined;
    /** The narrowest network that contains what the host of a URL resolves to. */
    networkOf(url: string): Promise<Network>;
    /** Runs `validate` on a gateway file; resolves with its exit code. */
    validate(file: string): Promise<number>;
  };

/** A command with the values of the variables that it gets. */
export type StdioCommand = {
  readonly argv: readonly string[];
  readonly env: ReadonlyMap<string, SecretSource>;
  /** An absolute path; by default the folder of the gateway file. */
  readonly cwd?: string | undefined;
};

/** Where no variable takes a secret, as with the address of a database, it can stand only on the command line. */
function warnOfSecret(name: string, argv: readonly string[], io: CliIo): void {
  const at = findSecretWord(argv);
  if (at === undefined) return;
  io.stderr(
    `warning: ${name}: argument ${at} seems to hold a secret; it is written to ${STDIO_FILE}, and every user of the machine sees it while the server runs\n`,
  );
}

/** Adds a server of whichever kind; `undefined` with the reason printed. */
export async function addTo(
  configuration: ExistingConfiguration,
  answers: ServerAnswers,
  command: StdioCommand | undefined,
  options: Pick<AddOptions, 'offline' | 'endpoint' | 'prefix'>,
  io: CliIo,
  ports: AddCommandPorts,
): Promise<Added | undefined> {
  const { endpoint, prefix } = options;
  const backend = prefix === undefined ? '{}' : `{prefix: ${prefix}}`;
  const entries =
    endpoint === undefined ? [] : [{ path: ['endpoints', endpoint, 'upstreams'], key: answers.name, value: backend }];
  const how = { command: 'add', isOffline: options.offline === true } as const;
  if (command === undefined) return addServer(configuration, { answers, entries }, how, io, ports);
  warnOfSecret(answers.name, command.argv, io);
  const pinned: PinnedCommand | undefined = how.isOffline
    ? { command: command.argv }
    : await pinCommand(command, configuration, io);
  if (pinned === undefined) return undefined;
  const exact = { ...command, argv: pinned.command };
  const server = stdioServer(configuration, answers, { ...exact, integrity: pinned.integrity }, io, ports);
  if (server === undefined) return undefined;
  if (how.isOffline) return addServer(configuration, { ...server, entries }, how, io, ports);
  io.stdout(`starting   ${makeVisible(escapeForTerminal(exact.argv.map(quoteForShell).join(' ')))}\n`);
  const target = await startOnce({ cwd: dirname(configuration.outline.file), ...exact }, io, ports);
  try {
    const observe: AddCommandPorts['observe'] = async (upstream, gateway) => {
      const seen = await ports.observe(upstream, gateway);
      if (seen.kind === 'observed') return seen;
      return {
        ...seen,
        why: (await target.explain(`error: ${answers.name} could not be listed: ${seen.why}`)) ?? seen.why,
      };
    };
    const found = { ...server, entries, fetchedAt: placeOf(target) };
    return await addServer(configuration, found, how, io, { ...ports, observe });
  } finally {
    await target.close();
  }
}

/** The command with the exact versions of its packages, as the package manager tells them now; prints what it cannot. */
async function pinCommand(
  { argv, env, cwd }: StdioCommand,
  { outline }: ExistingConfiguration,
  io: CliIo,
): Promise<PinnedCommand | undefined> {
  const own = environmentOf(env, io);
  const where = { cwd: cwd ?? dirname(outline.file), env: serverEnvironment(own, [...env.keys()]) };
  const pinned = await pinPackages(argv, where, askRegistry);
  if (!('error' in pinned)) {
    for (const note of pinned.notes ?? []) io.stderr(`note: ${escapeForTerminal(note)}\n`);
    return pinned;
  }
  io.stderr(
    `error: ${escapeForTerminal(pinned.error)}\nnothing was written; name an exact version in the command, or write it as it is with --offline\n`,
  );
  return undefined;
}

/** The environment of this process with the values that the command is to get. */
function environmentOf(env: StdioCommand['env'], io: CliIo): CliIo['env'] {
  const values = [...env].map(([name, source]) => [name, 'env' in source ? io.env[source.env] : source.value] as const);
  return { ...io.env, ...Object.fromEntries(values) };
}

/** The adapter in this process, with nothing in the environment of the command but what it needs. */
function startOnce({ argv, env, cwd }: StdioCommand, io: CliIo, ports: AddCommandPorts): Promise<DevTarget> {
  const own = { ...io, env: environmentOf(env, io) };
  return startCommand({ name: 'once', cwd: cwd ?? io.cwd, env: [...env.keys()] }, argv, own, ports);
}

/** Where the gateway file of the fetch finds the adapter in this process. The file of the token is never written. */
function placeOf({ server: { url, header } }: DevTarget) {
  const from = { file: 'secrets/stdio.token.once', value: header?.value ?? '' };
  return { url, socket: undefined, network: 'loopback', header: { name: 'Authorization', from } } as const;
}

function fileOf(server: string, variable: string): string {
  return `${SECRETS_FOLDER}/${server}.${variable}`;
}

function referenceTo(source: SecretSource, server: string, variable: string): SecretReference {
  return 'env' in source ? source : { file: fileOf(server, variable) };
}

/** What a stdio server adds to the files: its entry in the file of the adapter, the token of that, and its variables. */
function stdioServer(
  { layout, folder }: ExistingConfiguration,
  answers: ServerAnswers,
  { argv, integrity, env, cwd }: StdioCommand & { readonly integrity?: string | undefined },
  io: CliIo,
  { files }: AddCommandPorts,
): NewServer | undefined {
  const { name } = answers;
  const base = posix.dirname(layout.config);
  const path = posix.join(base, STDIO_FILE);
  const found = readContent(posix.join(folder, path), { files } as PinPorts);
  if (found === 'unreadable') {
    io.stderr(`error: ${STDIO_FILE} cannot be read\n`);
    return undefined;
  }
  const before = found === 'missing' ? NEW_STDIO_TEXT : found.text;
  const read = readStdioFile(join(folder, path), new TextEncoder().encode(before));
  const references = new Map([...env].map(([variable, source]) => [variable, referenceTo(source, name, variable)]));
  const edit = withStdioServer(before, name, { command: argv, integrity, env: references, cwd });
  if (!read.ok) {
    io.stderr(renderDiagnostics(read.diagnostics, 'text', io.cwd));
    return undefined;
  }
  if ('error' in edit) {
    io.stderr(`error: ${STDIO_FILE}: ${edit.error}\n`);
    return undefined;
  }
  const { listen, token } = read.value;
  const at = placeOfListen(listen);
  const secrets = [...env].flatMap(([variable, source]): readonly NewFile[] =>
    'env' in source
      ? []
      : [{ path: posix.join(base, fileOf(name, variable)), text: `${source.value}\n`, isSecret: true }],
  );
  const isNew = found === 'missing';
  const header: ServerHeader = {
    name: 'Authorization',
    from: { file: token, ...(isNew ? { value: `Bearer ${newStdioToken()}` } : {}) },
  };
  return {
    answers: {
      ...answers,
      url: `${at.origin}/${name}`,
      socket: at.socket,
      header,
      command: argv,
      requestTimeout: '2m',
    },
    files: [...secrets, ...(isNew ? [{ path, text: edit.text, isSecret: false }] : [])],
    changed: isNew ? [] : [{ path, before, text: edit.text }],
  };
}

/** The command that starts the adapter of a configuration. */
export function stdioLine(config: string, folder: string, io: CliIo): string {
  const file = shown(join(folder, posix.dirname(config), STDIO_FILE), io);
  return commandLine(io, ['stdio', '--config', file]);
}
