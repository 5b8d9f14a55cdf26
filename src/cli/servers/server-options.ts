// The options that say what a server is and who may use it, which `init` and `add` have in common, and what they become.
// docs/reference/commands.md#init-and-dev---save.

import { type Command as Commander, Option } from 'commander';
import { CONTENT_KINDS } from '../../config/schema/upstream.js';
import type { CliIo } from '../program.js';
import type { ServerAnswers, ServerHeader } from './drafts.js';

export type ServerOptions = {
  readonly url?: string;
  readonly group?: readonly string[];
  readonly audience?: string;
  readonly header?: string;
  readonly scope?: readonly string[];
  readonly allow?: ServerAnswers['allow'];
  readonly transport?: string;
  readonly content?: string;
  readonly library?: string;
  readonly offline?: boolean;
};

/** How servers that are reached by HTTP speak; the first is the default. */
export const TRANSPORTS = ['streamable-http', 'http-sse'] as const;
export const HTTP_SSE = TRANSPORTS[1];

/** The names of servers: paths, files and rules are called after them. */
export const SERVER_NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;
export const NAME_RULE = 'takes lower-case letters, digits, - and _';
const MAX_NAME = 63;

/** Field name and value of a header (RFC 9110 §5.1, §5.5): no control characters. */
const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)$/;
/** Where the value is, as the gateway file says it. */
const REFERENCE = /^\{ *(?:env: *([A-Za-z_][A-Za-z0-9_]*)|file: *([^\s{}'"]+)) *\}$/;

/**
 * The header of an option, with the file that its value is written to; `invalid`, with the form printed but not the value,
 * which is a secret.
 */
export function readHeader(text: string | undefined, server: string, io: CliIo): ServerHeader | undefined | 'invalid' {
  if (text === undefined) return undefined;
  const [, name, value] = HEADER.exec(text) ?? [];
  if (name === undefined || value === undefined) {
    io.stderr("error: --header takes 'Name: value', 'Name: {env: VARIABLE}' or 'Name: {file: PATH}'\n");
    return 'invalid';
  }
  const [, env, file] = REFERENCE.exec(value) ?? [];
  if (env !== undefined) return { name, from: { env } };
  return { name, from: file === undefined ? { file: `secrets/${server}-header`, value } : { file } };
}

/** A valid name that resembles another; `undefined` if nothing of it can be kept. */
export function validNameFor(name: string): string | undefined {
  const valid = name
    .slice(0, MAX_NAME * 4)
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, '-')
    .replace(/^[-_]+|-+$/g, '')
    .slice(0, MAX_NAME);
  return SERVER_NAME.test(valid) ? valid : undefined;
}

/** What the options say of every server; the rest is asked. */
export function optionalAnswers({
  audience,
  scope = [],
  allow = 'read-only',
  transport,
  content,
  library,
}: ServerOptions) {
  return { audience, scopes: scope, allow, transport, content, library };
}

const collect = (value: string, before: readonly string[] = []) => [...before, value];

export function addServerOptions(command: Commander): Commander {
  return command
    .option('--url <url>', 'URL of the MCP server')
    .option('--group <name>', 'group that may use what the policy grants; may be repeated', collect)
    .option('--audience <audience>', 'audience of tokens, if the issuer cannot mint the URL of the gateway')
    .option('--scope <name>', 'scope that clients request at the issuer; may be repeated', collect)
    .option(
      '--header <header>',
      "header that the server requires: 'Name: value', which is kept in a file, 'Name: {env: VARIABLE}' or 'Name: {file: PATH}'",
    )
    .addOption(new Option('--transport <transport>', 'transport other than streamable HTTP').choices([HTTP_SSE]))
    .addOption(
      new Option('--content <kind>', 'what the server returns (default: by its definitions)').choices(CONTENT_KINDS),
    )
    .option('--library <name>', 'policy of the library to begin with, or none (default: one that fits)')
    .addOption(
      new Option('--allow <tools>', 'tools that the policy grants').choices(['read-only', 'all']).default('read-only'),
    );
}
