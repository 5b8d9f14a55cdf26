// The API of the admin listener of a running gateway, for commands: where it is, with whose token, and what comes back. The
// token of an administrator comes from a file or a variable, never from the command line, where other users could read
// it. docs/reference/commands.md.

import { resolve } from 'node:path';
import { type Command as Commander, InvalidArgumentError } from 'commander';
import { decodeUtf8, type Files } from '../config/files.js';
import { parseObject } from '../protocol/jsonrpc.js';
import { escapeForTerminal } from '../text/escaping.js';
import { describeReadError } from '../text/wording.js';
import { type CliIo, EXIT_FAILED, originOf, UsageError, withConfigOption } from './program.js';

/** The variable from which the token of an administrator is read. */
export const TOKEN_VARIABLE = 'SALLYPORT_ADMIN_TOKEN';
const UNAUTHORIZED = 401;
const LAST_SUCCESS = 299;

type AdminRequest = {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly token: string;
  readonly body?: string;
};

export type AdminApiPorts = {
  readonly files: Pick<Files, 'readFile'>;
  /** Sends a request; redirects are not followed. Rejects if there is no response in time. */
  readonly ask: (url: string, request: AdminRequest) => Promise<{ readonly status: number; readonly text: string }>;
};

/** The options of every command that uses the API. */
export type AdminOptions = {
  readonly config?: string;
  readonly url?: string;
  readonly tokenFile?: string;
  readonly json?: boolean;
};

/** What the API shows of something; read with care, because any server may have sent it. */
export type Shown = { readonly [member: string]: unknown };

async function readToken(options: AdminOptions, io: CliIo, { files }: AdminApiPorts): Promise<string> {
  const { tokenFile } = options;
  const given = tokenFile === undefined ? io.env[TOKEN_VARIABLE] : readTokenFile(tokenFile, io, files);
  const token = given?.trim().replace(/^bearer +/i, '') ?? '';
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  const where = tokenFile === undefined ? TOKEN_VARIABLE : escapeForTerminal(tokenFile);
  const what = given === undefined || given.trim() === '' ? 'is not set or empty' : 'holds no token';
  throw new UsageError(
    `error: ${where} ${what}; give the token of an administrator with --token-file FILE or ${TOKEN_VARIABLE}\n`,
  );
}

function readTokenFile(file: string, io: CliIo, { readFile }: AdminApiPorts['files']): string {
  try {
    return decodeUtf8(readFile(resolve(io.cwd, file))) ?? '';
  } catch (error) {
    throw new UsageError(`error: ${escapeForTerminal(file)} ${describeReadError(error)}\n`);
  }
}

/** Where the admin listener is: as given, or on this machine as the gateway file says. */
export async function readOrigin(options: AdminOptions, io: CliIo, { files }: AdminApiPorts): Promise<string> {
  const { url, config } = options;
  if (url !== undefined) return url;
  const { loadListeners } = await import('../config/load.js');
  const listeners = loadListeners(resolve(io.cwd, config ?? ''), files.readFile);
  const admin = listeners?.admin;
  if (admin === undefined) {
    const why = listeners === undefined ? 'cannot be read or has errors' : 'has no "admin"';
    throw new UsageError(
      `error: ${escapeForTerminal(config ?? '')} ${why}, so the address of the admin listener is not known; correct it, or give --url\n`,
    );
  }
  return originOf(admin.host, admin.port, admin.tls !== undefined);
}

/** Sends one request and returns what the response holds; every other outcome than success is an error. */
export type Send = (
  path: string,
  request: Omit<AdminRequest, 'token'>,
) => Promise<{ readonly status: number; readonly value: Shown }>;

export async function createSender(options: AdminOptions, io: CliIo, ports: AdminApiPorts): Promise<Send> {
  const token = await readToken(options, io, ports);
  const origin = await readOrigin(options, io, ports);
  return (path, request) => ask(`${origin}${path}`, { ...request, token }, origin, ports);
}

async function ask(url: string, request: AdminRequest, origin: string, ports: AdminApiPorts): ReturnType<Send> {
  let response: Awaited<ReturnType<AdminApiPorts['ask']>>;
  try {
    response = await ports.ask(url, request);
  } catch {
    throw new UsageError(
      `error: ${escapeForTerminal(origin)} does not answer; is the gateway running, with its admin listener there?\n`,
    );
  }
  const { status, text } = response;
  const value: Shown | undefined = parseObject(text);
  if (status <= LAST_SUCCESS && (value !== undefined || text === '')) {
    return { status, value: value ?? {} };
  }
  const why = value?.['error'];
  if (typeof why === 'string') throw new UsageError(`error: ${escapeForTerminal(why)}\n`, EXIT_FAILED);
  const what =
    status === UNAUTHORIZED
      ? 'the gateway does not accept this token'
      : `${escapeForTerminal(origin)} answered ${status}`;
  throw new UsageError(`error: ${what}\n`);
}

function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.pathname !== '/')
    throw new InvalidArgumentError('Expected the origin of the admin listener, such as https://host:9090.');
  return url.origin;
}

/** `needed`: when a gateway file is; by default only for the address of its admin listener. */
export function withAdminOptions(command: Commander, io: CliIo, needed: 'always' | 'for-address' = 'for-address') {
  const isNeeded = (): boolean => needed === 'always' || command.getOptionValue('url') === undefined;
  const description = 'the gateway file, for the address of its admin listener';
  return withConfigOption(command, io, { description, isNeeded })
    .option('--url <url>', 'origin of the admin listener, instead of the gateway file', readUrl)
    .option('--token-file <file>', `file with a token of an administrator (default: $${TOKEN_VARIABLE})`)
    .option('--json', 'print JSON');
}
