// What `dev --save` keeps: gateway file, policies, lock files and secrets of the servers that are served, and for commands
// the file that one adapter serves them from. The only server without a name has files of fixed names, and its command is
// not written down, because arguments may be secrets. docs/reference/commands.md#init-and-dev---save.

import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { IGNORED_AUDIT_FILES } from '../audit/run-name.js';
import {
  DEV_UPSTREAM,
  type DevFiles,
  type DevServer,
  HEADER_FILES,
  ignoredFiles,
  savedFiles,
  savedPaths,
} from '../dev/files.js';
import { STDIO_PATH } from '../stdio/stdio-server.js';
import { escapeForTerminal, quoteForShell } from '../text/escaping.js';
import type { WantedServer } from './dev-servers.js';
import { COMMAND_TIMEOUT, type PinnedServer } from './dev-target.js';
import { findObstacles, type NewFile, writeNewFiles } from './new-files.js';
import { type CliIo, commandLine } from './program.js';
import { findSecretWord } from './servers/import-plan.js';
import {
  NEW_STDIO_TEXT,
  type SecretReference,
  STDIO_FILE,
  STDIO_TOKEN,
  withStdioServer,
} from './servers/stdio-file.js';
import { newStdioToken } from './stdio.js';
import { DEFAULT_STDIO_PORT } from './stdio-plan.js';

type StdioServer = Extract<WantedServer, { readonly kind: 'stdio' }>;

/** Whether it is the only server, and was given no name. */
function isPlain(servers: readonly WantedServer[]): boolean {
  return servers.length === 1 && servers[0]?.name === DEV_UPSTREAM.name;
}

function variableFile(server: string, variable: string): string {
  return `secrets/${server}.${variable}`;
}

/** What keeps the servers from being saved, in one sentence; nothing was started yet. */
export async function findSaveMistake(
  servers: readonly WantedServer[],
  save: string,
  io: CliIo,
): Promise<string | undefined> {
  const commands = servers.filter((one): one is StdioServer => one.kind === 'stdio');
  const secret = isPlain(servers) ? undefined : commands.find(({ argv }) => findSecretWord(argv) !== undefined);
  if (secret !== undefined)
    return `--save: argument ${findSecretWord(secret.argv)} of ${secret.name} holds a secret, and ${STDIO_FILE} would show it; find out which variable the server reads instead, and pass that with --env`;
  const { links, existing } = await findObstacles(resolve(io.cwd, save), pathsOf(servers));
  const [link] = links;
  const [found] = existing;
  if (link !== undefined)
    return `--save: ${escapeForTerminal(link)} is a link, and none is followed in the folder; nothing was started`;
  return found && `--save: ${escapeForTerminal(found)} exists already; nothing was started`;
}

/** Every path that saving may write. */
function pathsOf(servers: readonly WantedServer[]): readonly string[] {
  const names = servers.map(({ name }) => name);
  if (isPlain(servers)) return savedPaths(names, Object.values(HEADER_FILES));
  const secrets = servers.flatMap((one) =>
    one.kind === 'http'
      ? [`secrets/${one.name}-header`]
      : [...one.env.keys()].map((variable) => variableFile(one.name, variable)),
  );
  return [...savedPaths(names, secrets), STDIO_FILE, STDIO_TOKEN];
}

export type SaveInput = {
  readonly folder: string;
  readonly port: number;
  readonly wanted: readonly WantedServer[];
  readonly served: readonly PinnedServer[];
  readonly files: DevFiles;
};

/** Saves; resolves with the lines to print, or with why nothing was saved. */
export async function saveSetup(
  { folder, port, wanted, served, files }: SaveInput,
  io: CliIo,
): Promise<{ readonly error: string } | { readonly lines: readonly string[] }> {
  const plain = isPlain(wanted) ? wanted[0] : undefined;
  const shared = `Bearer ${newStdioToken()}`;
  const saved = await Promise.all(
    served.map(async ({ target: { server }, offered }) => {
      const lock = await readFile(files.lockFileOf(server.name), 'utf8');
      const command = wanted.find((one): one is StdioServer => one.kind === 'stdio' && one.name === server.name);
      const note = plain?.kind === 'stdio' ? plainNote(plain, folder) : undefined;
      return { server: savedServer(server, command, plain !== undefined, shared), offered, lock, note };
    }),
  );
  const commands = served.flatMap(({ target: { server } }) => {
    const found = wanted.find((one): one is StdioServer => one.kind === 'stdio' && one.name === server.name);
    return found === undefined ? [] : [found];
  });
  const adapter = plain === undefined ? adapterFiles(commands, io.cwd) : { files: [] };
  if ('error' in adapter) return adapter;
  const dir = resolve(io.cwd, folder);
  const all = [...adapter.files, ...savedFiles({ servers: saved, port })];
  const secrets = all.some(({ path, isSecret }) => isSecret && path.startsWith('secrets/')) ? ['/secrets/'] : [];
  const ignored = new Set([...IGNORED_AUDIT_FILES, ...ignoredFiles(saved.map(({ server }) => server)), ...secrets]);
  // The servers may have taken minutes to start, and the folder may have changed.
  const error = await writeNewFiles(dir, all, [...ignored]);
  if (error !== undefined) return { error };
  const configFile = join(dir, all.at(-1)?.path ?? '');
  const what = saved.length === 1 ? 'policy and lock file' : 'policies and lock files';
  const lines = [`saved      ${escapeForTerminal(configFile)}, with ${what}`];
  if (plain?.kind === 'stdio') lines.push(`serve it   ${plainLine(plain, folder)}`);
  else if (commands.length > 0)
    lines.push(`serve them ${escapeForTerminal(commandLine(io, ['stdio', '--config', join(folder, STDIO_FILE)]))}`);
  return { lines };
}

/** The server as a gateway of its own reaches it. */
function savedServer(server: DevServer, command: StdioServer | undefined, isAlone: boolean, shared: string): DevServer {
  const { header } = server;
  if (command === undefined) {
    const file = isAlone ? HEADER_FILES.http : `secrets/${server.name}-header`;
    return header === undefined ? server : { ...server, header: { ...header, file } };
  }
  const origin = `http://127.0.0.1:${DEFAULT_STDIO_PORT}`;
  const own = isAlone
    ? { url: `${origin}${STDIO_PATH}`, value: `Bearer ${newStdioToken()}`, file: HEADER_FILES.stdio }
    : { url: `${origin}/${server.name}`, value: shared, file: STDIO_TOKEN };
  return {
    ...server,
    url: own.url,
    header: { name: 'Authorization', value: own.value, file: own.file },
    requestTimeout: COMMAND_TIMEOUT,
  };
}

/** The file of the adapter with its commands, and the values of their variables that are in no variable here. */
function adapterFiles(
  commands: readonly StdioServer[],
  here: string,
): { readonly files: readonly NewFile[] } | { readonly error: string } {
  if (commands.length === 0) return { files: [] };
  let text = NEW_STDIO_TEXT;
  const secrets: NewFile[] = [];
  for (const { name, argv, env, cwd = here } of commands) {
    const references = [...env].map(([variable, from]): readonly [string, SecretReference] => {
      if ('env' in from) return [variable, from];
      const file = variableFile(name, variable);
      secrets.push({ path: file, text: `${from.value}\n`, isSecret: true });
      return [variable, { file }];
    });
    const edit = withStdioServer(text, name, { command: argv, env: new Map(references), cwd });
    if ('error' in edit) return { error: `${STDIO_FILE}: ${edit.error}` };
    text = edit.text;
  }
  return { files: [...secrets, { path: STDIO_FILE, text, isSecret: false }] };
}

function plainOptions({ env }: StdioServer, folder: string): string {
  const file = quoteForShell(join(folder, HEADER_FILES.stdio));
  return [`--token-file ${file}`, ...[...env.keys()].map((name) => `--env ${name}`)].join(' ');
}

/** Arguments may be secrets, and the file holds none. */
function plainNote(server: StdioServer, folder: string): string {
  return `Served by: sallyport stdio ${plainOptions(server, folder)} -- COMMAND`;
}

function plainLine(server: StdioServer, folder: string): string {
  const line = server.argv.map(quoteForShell).join(' ');
  return escapeForTerminal(`sallyport stdio ${plainOptions(server, folder)} -- ${line}`);
}
