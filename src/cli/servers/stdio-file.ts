// The file of the stdio servers beside a gateway file, which one process of `sallyport stdio --config` serves to it: what
// `add` reads of it and writes into it. docs/guides/stdio-servers.md.

import { isLoopbackHost } from '../../config/checks/addresses.js';
import type { Diagnostic } from '../../config/diagnostics.js';
import { STDIO_SCHEMA } from '../../config/schema/stdio.js';
import { readDocument } from '../../config/schema/validation.js';
import { unpinnedIn } from '../../stdio/packages.js';
import { quoteYaml, urlHost } from '../../text/escaping.js';
import { type Locate, readYaml } from '../../text/yaml.js';
import { addToMap, type EntryValue, removeFromMap, type YamlEdit } from '../../text/yaml-edit.js';
import type { ServerAnswers } from './drafts.js';

export const STDIO_FILE = 'stdio.yaml';
export const STDIO_TOKEN = 'secrets/stdio.token';

const LISTEN = '127.0.0.1:8090';
const LIMITS = { maxDepth: 20, maxValues: 100_000, isGenerated: false };
const SERVERS = ['servers'];

/** Where the value of a variable or header comes from: one that is written to a file, or a variable. */
export type SecretSource = { readonly value: string } | { readonly env: string };

/** Where a file says that a value is; files are relative to it. */
export type SecretReference = { readonly file: string } | { readonly env: string };

/** A stdio server as the file has it. */
export type StdioEntry = {
  readonly command: readonly string[];
  /** That of the package which the command names. */
  readonly integrity?: string | undefined;
  readonly env: ReadonlyMap<string, SecretReference>;
  readonly cwd?: string | undefined;
};

/** Where an adapter listens; the path of a socket is relative to its file. */
export type ListenAddress = { readonly host: string; readonly port: number } | { readonly socket: string };

export type StdioFile = {
  readonly listen: ListenAddress;
  /** The file of the token, relative to this one. */
  readonly token: string;
  readonly servers: ReadonlyMap<string, StdioEntry>;
};

/** The file before its first server. */
export const NEW_STDIO_TEXT = `# The stdio servers of the gateway, each at its name: sallyport stdio --config ${STDIO_FILE}
listen: ${LISTEN}
# The gateway presents this token.
token: {file: ${STDIO_TOKEN}}
servers: {}
`;

export type StdioReading =
  | { readonly ok: true; readonly value: StdioFile; readonly locate: Locate }
  | { readonly ok: false; readonly diagnostics: readonly Diagnostic[] };

/** What the file says, or every mistake in it. */
export function readStdioFile(file: string, bytes: Uint8Array): StdioReading {
  const read = readDocument(STDIO_SCHEMA, file, bytes);
  if (!read.ok) return read;
  const { listen, token, servers } = read.value;
  const address = readListen(listen);
  if ('error' in address) {
    const finding = { severity: 'error', rule: 'wrong-value', message: address.error } as const;
    return { ok: false, diagnostics: [{ file, ...read.locate(['listen'], 'value'), ...finding }] };
  }
  const entries = Object.entries(servers).map(([name, { command, integrity, env = {}, cwd }]) => {
    return [name, { command, integrity, env: new Map(Object.entries(env)), cwd }] as const;
  });
  return { ok: true, value: { listen: address, token: token.file, servers: new Map(entries) }, locate: read.locate };
}

/** An address as the file has it: `HOST:PORT` on loopback or `unix:PATH`. */
function readListen(text: string): ListenAddress | { readonly error: string } {
  if (text.startsWith('unix:') && text.length > 'unix:'.length) return { socket: text.slice('unix:'.length) };
  const address = readLoopback(text);
  if ('error' in address && !address.isPublic) return { error: 'expected HOST:PORT or unix:PATH' };
  return 'port' in address && address.port === 0 ? { error: 'expected a port other than 0' } : address;
}

type NoAddress = { readonly error: string; readonly isPublic?: true };

export function readLoopback(text: string): Exclude<ListenAddress, { readonly socket: string }> | NoAddress {
  const [, host = '', port = ''] = /^(\[[^\]]+\]|[^:]+):([0-9]{1,5})$/.exec(text) ?? [];
  if (host === '' || Number(port) > 65_535) return { error: 'Expected HOST:PORT.' };
  if (!isLoopbackHost(host))
    return { error: 'Only addresses of the loopback, such as 127.0.0.1:8090, are possible.', isPublic: true };
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) };
}

/** Where the gateway reaches the adapter. */
export function placeOfListen(listen: ListenAddress): Pick<ServerAnswers, 'socket'> & { readonly origin: string } {
  return 'socket' in listen
    ? { origin: 'http://localhost', socket: listen.socket }
    : { origin: `http://${urlHost(listen.host)}:${listen.port}` };
}

/** The file with a server more. */
export function withStdioServer(text: string, name: string, { command, integrity, env, cwd }: StdioEntry): YamlEdit {
  if (stdioServersIn(text).includes(name)) return { error: `it has a server named "${name}" already` };
  const variables = [...env].map(([variable, from]) => {
    return `${variable}: ${'env' in from ? `{env: ${from.env}}` : `{file: ${quoteYaml(from.file)}}`}`;
  });
  const value: EntryValue = [
    `command: [${command.map(quoteYaml).join(', ')}]`,
    ...(integrity === undefined ? [] : [`integrity: ${quoteYaml(integrity)}`]),
    ...(variables.length === 0 ? [] : [`env: {${variables.join(', ')}}`]),
    ...(cwd === undefined ? [] : [`cwd: ${quoteYaml(cwd)}`]),
  ];
  return addToMap(text, SERVERS, name, value);
}

export function withoutStdioServer(text: string, name: string): YamlEdit {
  return removeFromMap(text, SERVERS, name);
}

/** The packages without an exact version, each at its command; every mistake of a file that cannot be read. */
export function checkStdioFile(file: string, bytes: Uint8Array): readonly Diagnostic[] {
  const read = readStdioFile(file, bytes);
  if (!read.ok) return read.diagnostics;
  const { locate, value } = read;
  return [...value.servers].flatMap(([name, { command }]) =>
    unpinnedIn(command).map((message): Diagnostic => {
      return { file, ...locate(['servers', name, 'command'], 'value'), severity: 'warning', rule: 'unsafe', message };
    }),
  );
}

/** The names of the servers in the file; none if it cannot be read. */
export function stdioServersIn(text: string): readonly string[] {
  const read = readYaml(text, LIMITS);
  const servers = read.ok ? (read.value as { readonly servers?: unknown } | null)?.servers : undefined;
  return typeof servers === 'object' && servers !== null ? Object.keys(servers) : [];
}
