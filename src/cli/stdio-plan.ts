// What `sallyport stdio` serves and where: one command of the command line, or each server of a file at its name. What a
// server of a file needs is read before each of its starts, so that one that lacks something costs itself alone.
// docs/reference/commands.md#stdio.

import { readFile, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { renderDiagnostics } from '../config/diagnostics.js';
import { DISK_FILES } from '../config/files.js';
import { readReferredText } from '../config/secrets.js';
import { askRegistry, refusePackage } from '../stdio/packages.js';
import { type ServerCommand, serverEnvironment } from '../stdio/server-process.js';
import type { ServedServer } from '../stdio/server-sessions.js';
import { onlyServer, type StdioServerSettings } from '../stdio/stdio-server.js';
import { escapeForTerminal } from '../text/escaping.js';
import { describeReadError } from '../text/wording.js';
import type { CliIo } from './program.js';
import { readStdioFile, type StdioEntry } from './servers/stdio-file.js';

export type Address = { readonly host: string; readonly port: number };

export type StdioPlan = {
  readonly servers: StdioServerSettings['servers'];
  /** A socket has an absolute path. */
  readonly address: Address | { readonly socket: string };
  /** The file of the token, as an absolute path; without one, a token is made and printed. */
  readonly tokenFile: string | undefined;
};

/** What is wrong, as it is printed. */
export type NoPlan = { readonly error: string };

export type CommandOptions = {
  readonly listen?: Address;
  readonly socket?: string;
  readonly tokenFile?: string;
  readonly env?: readonly string[];
};

export const DEFAULT_STDIO_PORT = 8090;
const DEFAULT_ADDRESS: Address = { host: '127.0.0.1', port: DEFAULT_STDIO_PORT };

/** One command, at the path of the only server. */
export function planOfCommand(
  [command = '', ...args]: readonly string[],
  { listen, socket, tokenFile, env = [] }: CommandOptions,
  io: CliIo,
): StdioPlan | NoPlan {
  if (listen !== undefined && socket !== undefined) return errorOf('--listen or --socket, not both');
  const unset = env.find((name) => io.env[name] === undefined);
  if (unset !== undefined) return errorOf(`--env ${escapeForTerminal(unset)}: the variable is not set`);
  return {
    servers: onlyServer({ command, args, cwd: io.cwd, env: serverEnvironment(io.env, env) }),
    address: socket === undefined ? (listen ?? DEFAULT_ADDRESS) : { socket: resolve(io.cwd, socket) },
    tokenFile: tokenFile === undefined ? undefined : resolve(io.cwd, tokenFile),
  };
}

/** Every server of a file, each at its name. */
export async function planOfFile(path: string, options: CommandOptions, io: CliIo): Promise<StdioPlan | NoPlan> {
  const own = (['listen', 'socket', 'tokenFile', 'env'] as const).find((key) => options[key] !== undefined);
  if (own !== undefined) {
    const option = own === 'tokenFile' ? 'token-file' : own;
    return errorOf(`--${option} is for a command after --; of the servers of a file, the file says it`);
  }
  const file = resolve(io.cwd, path);
  const shown = escapeForTerminal(file);
  let bytes: Uint8Array;
  try {
    bytes = await readFile(file);
  } catch (error) {
    return errorOf(`${shown} ${describeReadError(error)}`);
  }
  const read = readStdioFile(file, bytes);
  if (!read.ok) return { error: renderDiagnostics(read.diagnostics, 'text', io.cwd) };
  const { listen, token, servers } = read.value;
  if (servers.size === 0) return errorOf(`${shown} has no server; sallyport add NAME -- COMMAND adds one`);
  const folder = dirname(file);
  return {
    servers: new Map([...servers].map(([name, entry]) => [`/${name}`, servedAs(name, entry, folder, io)])),
    address: 'socket' in listen ? { socket: resolve(folder, listen.socket) } : listen,
    tokenFile: resolve(folder, token),
  };
}

function errorOf(message: string): NoPlan {
  return { error: `error: ${message}\n` };
}

function servedAs(name: string, entry: StdioEntry, folder: string, io: CliIo): ServedServer {
  return { label: `${name} `, prepare: () => prepareServer(entry, folder, io) };
}

/** What is run now, or why nothing is. */
async function prepareServer(
  { command: [program = '', ...args], integrity, env, cwd = '.' }: StdioEntry,
  folder: string,
  io: CliIo,
): Promise<ServerCommand | { readonly error: string }> {
  const where = resolve(folder, cwd);
  const found = await stat(where).catch(() => undefined);
  if (found?.isDirectory() !== true) return { error: `its folder ${escapeForTerminal(where)} is not there` };
  const values: Record<string, string> = {};
  for (const [variable, reference] of env) {
    const read = readReferredText(reference, { files: DISK_FILES, env: io.env, folder });
    if ('error' in read) return { error: `its variable ${variable} has no value: ${escapeForTerminal(read.error)}` };
    values[variable] = read.value;
  }
  const command = { command: program, args, cwd: where, env: { ...serverEnvironment(io.env, []), ...values } };
  const refused = integrity === undefined ? undefined : await refusePackage(command, integrity, askRegistry);
  return refused === undefined ? command : { error: refused };
}
