// The file of the stdio servers beside a gateway file, which one process of `sallyport stdio --config` serves to it: what
// `add` reads of it and writes into it. docs/guides/stdio-servers.md.

import { isObject } from '../../protocol/jsonrpc.js';
import { quoteYaml, urlHost } from '../../text/escaping.js';
import { readYaml } from '../../text/yaml.js';
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
  readonly env: ReadonlyMap<string, SecretReference>;
  readonly cwd?: string | undefined;
};

/** Where the adapter listens, and the file of its token, relative to its own. */
export type StdioAddress = {
  readonly at: Pick<ServerAnswers, 'socket'> & { readonly origin: string };
  readonly token: string;
};

/** The file before its first server. */
export const NEW_STDIO_TEXT = `# The stdio servers of the gateway, each at its name: sallyport stdio --config ${STDIO_FILE}
listen: ${LISTEN}
# The gateway presents this token.
token: {file: ${STDIO_TOKEN}}
servers: {}
`;

/** What the file says of the adapter, or in one clause what it lacks. */
export function readStdioAddress(text: string): StdioAddress | { readonly error: string } {
  const read = readYaml(text, LIMITS);
  const value = (read.ok ? read.value : undefined) as Readonly<Record<string, unknown>> | undefined;
  if (!read.ok) return { error: read.mistakes[0]?.message ?? 'it cannot be read' };
  const listen = value?.['listen'];
  const token = value?.['token'] as Readonly<Record<string, unknown>> | undefined;
  if (typeof listen !== 'string') return { error: 'it has no "listen"' };
  const file = isObject(token as never) ? token?.['file'] : undefined;
  if (typeof file !== 'string') return { error: 'it has no "token: {file: …}"' };
  if (listen.startsWith('unix:'))
    return { at: { origin: 'http://localhost', socket: listen.slice('unix:'.length) }, token: file };
  const [, host = '', port = ''] = /^(.+):([0-9]{1,5})$/.exec(listen) ?? [];
  if (port === '') return { error: '"listen" is neither HOST:PORT nor unix:PATH' };
  return { at: { origin: `http://${urlHost(host)}:${port}` }, token: file };
}

/** The file with a server more. */
export function withStdioServer(text: string, name: string, { command, env, cwd }: StdioEntry): YamlEdit {
  if (stdioServersIn(text).includes(name)) return { error: `it has a server named "${name}" already` };
  const variables = [...env].map(([variable, from]) => {
    return `${variable}: ${'env' in from ? `{env: ${from.env}}` : `{file: ${quoteYaml(from.file)}}`}`;
  });
  const value: EntryValue = [
    `command: [${command.map(quoteYaml).join(', ')}]`,
    ...(variables.length === 0 ? [] : [`env: {${variables.join(', ')}}`]),
    ...(cwd === undefined ? [] : [`cwd: ${quoteYaml(cwd)}`]),
  ];
  return addToMap(text, SERVERS, name, value);
}

export function withoutStdioServer(text: string, name: string): YamlEdit {
  return removeFromMap(text, SERVERS, name);
}

/** The names of the servers in the file; none if it cannot be read. */
export function stdioServersIn(text: string): readonly string[] {
  const read = readYaml(text, LIMITS);
  const servers = read.ok ? (read.value as { readonly servers?: unknown } | null)?.servers : undefined;
  return typeof servers === 'object' && servers !== null ? Object.keys(servers) : [];
}
