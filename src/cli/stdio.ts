// `sallyport stdio`: serves one stdio MCP server, or all of a file, over streamable HTTP on loopback or a Unix socket, so
// that a gateway can reach them. A process of its own, beside the gateway: it runs the servers' code, and nothing of the gateway's.
// docs/reference/commands.md#stdio; docs/guides/stdio-servers.md.

import { randomBytes } from 'node:crypto';
import { lstat, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { InvalidArgumentError } from 'commander';
import { redactForRecord } from '../inspection/capture.js';
import type { ProcessPorts } from '../stdio/server-process.js';
import { STDIO_PATH, type StdioServer, startStdioServer } from '../stdio/stdio-server.js';
import { escapeForTerminal, urlHost } from '../text/escaping.js';
import { systemErrorCode } from '../text/wording.js';
import { type CliIo, type Command, EXIT_FAILED, EXIT_UNCHECKED, fail } from './program.js';
import type { ServePorts } from './serve.js';
import { readLoopback } from './servers/stdio-file.js';
import { type Address, type CommandOptions, planOfCommand, planOfFile, type StdioPlan } from './stdio-plan.js';

type StdioOptions = CommandOptions & {
  readonly config?: string;
  readonly maxSessions: number;
};

type StdioPorts = Pick<ServePorts, 'untilSignal'> &
  Pick<ProcessPorts, 'signalGroup' | 'killMarked'> & {
    /** Sets the mask for new files and returns the former one. */
    setUmask(mask: number): number;
  };

const DEFAULT_SESSIONS = 16;
const MAX_SESSIONS = 1_000;
const TOKEN_BYTES = 32;
const MIN_TOKEN_CHARACTERS = 32;
const OWNER_ONLY = 0o600;
/** Leaves a socket to its owner alone. */
const OWNER_ONLY_MASK = 0o177;
/** The shortest limit of any system, without the NUL that ends the path. */
const MAX_SOCKET_PATH_BYTES = 103;
const EXIT_BY_HANGUP = 129;

export const newStdioToken = (): string => randomBytes(TOKEN_BYTES).toString('base64url');

type TokenOutcome = { readonly token: string } | { readonly error: string };

/**
 * Reads the token from a file, or makes one and writes it there. The file holds the value of the header, `Bearer …`,
 * so that the gateway file can refer to it as it is.
 */
async function readOrWriteToken(file: string, io: CliIo): Promise<TokenOutcome> {
  const shown = escapeForTerminal(file);
  const token = newStdioToken();
  try {
    await writeFile(file, `Bearer ${token}\n`, { mode: OWNER_ONLY, flag: 'wx' });
    return { token };
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') return { error: `${shown} cannot be written (${codeOf(error)})` };
  }
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined) return { error: `${shown} cannot be read` };
  const found = /^(?:bearer +)?([\x21-\x7e]+)\s*$/i.exec(text)?.[1] ?? '';
  if (found.length < MIN_TOKEN_CHARACTERS) {
    const rule = `a token of at least ${MIN_TOKEN_CHARACTERS} characters`;
    return { error: `${shown} does not hold ${rule}; remove the file to have one made` };
  }
  const { mode } = await stat(file);
  if ((mode & 0o077) !== 0)
    io.stderr(`warning: ${shown} can be read by other users of this machine; run chmod 600 on it\n`);
  return { token: found };
}

function codeOf(error: unknown): string {
  return systemErrorCode(error) ?? 'no code';
}

/** Whether somebody listens there: `open`, or the code of the error. */
export function probeAddress(address: Address | { readonly socket: string }): Promise<string> {
  const at = 'socket' in address ? { path: address.socket } : address;
  return new Promise<string>((done) => {
    const probe = connect(at, () => done('open'));
    probe.on('error', (error) => done(codeOf(error))).on('connect', () => probe.destroy());
  });
}

/** Removes a socket that nobody listens on any more. Resolves with what prevents listening there. */
async function clearSocket(path: string): Promise<string | undefined> {
  const shown = escapeForTerminal(path);
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH_BYTES)
    return `${shown} is too long for a socket: at most ${MAX_SOCKET_PATH_BYTES} bytes`;
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined) return undefined;
  if (!found.isSocket()) return `${shown} exists and is not a socket`;
  const state = await probeAddress({ socket: path });
  if (state === 'open') return `another process listens on ${shown}`;
  if (state !== 'ECONNREFUSED') return `${shown} cannot be reached (${state})`;
  await rm(path);
  return undefined;
}

/** Leaves what is created meanwhile to its owner alone. The mask is that of the whole process. */
async function asOwner<T>({ setUmask }: Pick<StdioPorts, 'setUmask'>, create: () => Promise<T>): Promise<T> {
  const mask = setUmask(OWNER_ONLY_MASK);
  try {
    return await create();
  } finally {
    setUmask(mask);
  }
}

/** Serves until a signal. Exit 1: it could not listen; 2: an option or a file is wrong. */
async function runStdio(
  options: StdioOptions,
  command: readonly string[],
  io: CliIo,
  ports: StdioPorts,
): Promise<number> {
  const { config, maxSessions } = options;
  if ((config === undefined) === (command.length === 0))
    return fail('give a command after --, or the file of several servers with --config', EXIT_UNCHECKED, io);
  const plan = config === undefined ? planOfCommand(command, options, io) : await planOfFile(config, options, io);
  if ('error' in plan) {
    io.stderr(plan.error);
    return EXIT_UNCHECKED;
  }
  const { address, servers, tokenFile } = plan;
  const token = tokenFile === undefined ? { token: newStdioToken() } : await readOrWriteToken(tokenFile, io);
  if ('error' in token) return fail(token.error, EXIT_UNCHECKED, io);
  const taken = 'socket' in address ? await clearSocket(address.socket) : undefined;
  if (taken !== undefined) return fail(taken, EXIT_FAILED, io);
  const log = (line: string): void => io.stderr(`${line}\n`);
  let server: StdioServer;
  try {
    const settings = { servers, address, token: token.token, maxSessions };
    const start = () => startStdioServer(settings, { ...ports, log, redact: redactForRecord });
    server = await ('socket' in address ? asOwner(ports, start) : start());
  } catch (error) {
    return fail(describeListenError(error, address), EXIT_FAILED, io);
  }
  io.stdout(config === undefined ? accessText(server, address, token.token, tokenFile) : serversText(plan));
  const code = await untilEnd(ports);
  await server.close();
  return code;
}

/** The gateway file has the upstreams already. */
function serversText({ address, servers, tokenFile = '' }: StdioPlan): string {
  const at =
    'socket' in address ? escapeForTerminal(address.socket) : `http://${urlHost(address.host)}:${address.port}`;
  return `listening on  ${at}
servers       ${[...servers.keys()].join(', ')}
token file    ${escapeForTerminal(tokenFile)}
`;
}

/** A terminal that goes away ends the program; there is nothing to reload. */
function untilEnd({ untilSignal }: StdioPorts): Promise<number> {
  return new Promise((done) => {
    void untilSignal(() => done(EXIT_BY_HANGUP)).then(done);
  });
}

function describeListenError(error: unknown, address: Address | { socket: string }): string {
  const code = codeOf(error);
  if ('socket' in address) return `the socket ${escapeForTerminal(address.socket)} cannot be made (${code})`;
  const where = `${address.host}:${address.port}`;
  return code === 'EADDRINUSE'
    ? `${where} is in use by another process; choose another with --listen HOST:PORT`
    : `cannot listen on ${where} (${code})`;
}

function accessText(
  { port }: StdioServer,
  address: Address | { socket: string },
  token: string,
  tokenFile: string | undefined,
): string {
  const isSocket = 'socket' in address;
  const url = `http://${isSocket ? 'localhost' : `${urlHost(address.host)}:${port}`}${STDIO_PATH}`;
  const where = isSocket
    ? `url: ${url}, socket: ${JSON.stringify(address.socket)}`
    : `url: ${JSON.stringify(url)}, network: loopback`;
  const reference = tokenFile === undefined ? '{env: STDIO_TOKEN}' : `{file: ${JSON.stringify(tokenFile)}}`;
  const secret =
    tokenFile === undefined ? `token         ${token}\n` : `token file    ${escapeForTerminal(tokenFile)}\n`;
  return `listening on  ${isSocket ? escapeForTerminal(address.socket) : url}
${secret}upstream      {${where}, credentials: {type: static, header: Authorization, value: ${reference}}}
${tokenFile === undefined ? `              with STDIO_TOKEN set to "Bearer" and the token\n` : ''}`;
}

function readAddress(text: string): Address {
  const address = readLoopback(text);
  if ('error' in address) throw new InvalidArgumentError(address.error);
  return address;
}

function readSessions(text: string): number {
  const sessions = /^[0-9]{1,4}$/.test(text) ? Number(text) : 0;
  if (sessions < 1 || sessions > MAX_SESSIONS)
    throw new InvalidArgumentError(`Expected a number from 1 to ${MAX_SESSIONS}.`);
  return sessions;
}

/** Collects the names of variables. A value does not belong on a command line, which others can read. */
export function collectVariable(name: string, names: readonly string[] = []): readonly string[] {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
    throw new InvalidArgumentError('Expected the name of a variable, without a value.');
  return [...names, name];
}

export function stdioCommand(io: CliIo, ports: StdioPorts): Command {
  return {
    name: 'stdio',
    summary: 'Serve stdio MCP servers over HTTP on loopback, for a gateway.',
    examples: [
      'sallyport stdio --config stdio.yaml',
      'sallyport stdio --token-file stdio-token -- npx -y @modelcontextprotocol/server-filesystem DIR',
      'sallyport stdio --socket /run/mcp/git.sock --token-file token -- uvx mcp-server-git',
    ],
    configure(command, finish) {
      command
        .argument('[command...]', 'the command that starts the server, after --')
        .option('--config <file>', 'file of several servers, such as stdio.yaml: each is served at /NAME')
        .option('--listen <host:port>', 'address on loopback (default: 127.0.0.1:8090)', readAddress)
        .option('--socket <path>', 'Unix socket to listen on instead, for its owner alone')
        .option('--token-file <file>', 'file of the bearer token; written if it does not exist')
        .option('--env <name>', 'environment variable that the server gets too', collectVariable)
        .option('--max-sessions <count>', 'sessions of each server at a time', readSessions, DEFAULT_SESSIONS)
        .action(async (serverCommand: string[], options: StdioOptions) => {
          finish(await runStdio(options, serverCommand, io, ports));
        });
    },
  };
}
