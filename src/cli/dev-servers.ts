// Which servers the command line of `dev` names: by URL, by a command after `--`, by commands in one word each. An option
// that is about one server names it (`NAME=VALUE`) where there are several. Pure: nothing is started, asked or read.
// docs/reference/commands.md#dev.

import { InvalidArgumentError } from 'commander';
import { splitCommandLine } from '../text/command-line.js';
import { escapeForTerminal } from '../text/escaping.js';
import { validNameFor } from './servers/server-options.js';
import type { SecretSource } from './servers/stdio-file.js';

/** A value with the name of a server before it, or without. */
export type Named<T> = { readonly name?: string | undefined; readonly value: T };

export type Header = { readonly name: string; readonly value: string };
export type Network = 'public' | 'private' | 'loopback';

/** A server that is to be served. */
export type WantedServer = {
  readonly name: string;
} & (
  | {
      readonly kind: 'http';
      readonly url: string;
      readonly header?: Header | undefined;
      /** The variable that the value of the header was read from. */
      readonly headerVariable?: string | undefined;
      readonly transport?: string | undefined;
      readonly network?: Network | undefined;
    }
  | {
      readonly kind: 'stdio';
      readonly argv: readonly string[];
      readonly env: ReadonlyMap<string, SecretSource>;
      readonly cwd?: string | undefined;
    }
);

export type ServersOptions = {
  readonly upstream?: readonly Named<string>[];
  readonly server?: readonly Named<string>[];
  readonly header?: readonly Named<Header>[];
  readonly transport?: readonly Named<string>[];
  readonly network?: readonly Named<Network>[];
  readonly env?: readonly Named<string>[];
};

const NAMED = /^([a-z0-9][a-z0-9_-]{0,62})=([\s\S]*)$/;

/** `NAME=VALUE` or `VALUE`. */
export function readNamed(text: string): Named<string> {
  const [, name, value] = NAMED.exec(text) ?? [];
  return name === undefined || value === undefined ? { value: text } : { name, value };
}

/** Collects `[NAME=]VALUE`, with what `read` makes of the value. */
export function collectNamed<T>(read: (text: string) => T): (text: string, before?: readonly Named<T>[]) => Named<T>[] {
  return (text, before = []) => {
    const { name, value } = readNamed(text);
    return [...before, { name, value: read(value) }];
  };
}

/** @throws InvalidArgumentError, which is shown as a usage error. */
export function readHeader(text: string): Header {
  const [, name, value] = /^([\w!#$%&'*+.^`|~-]+):[ \t]*(\S.*?)[ \t]*$/.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError("Expected 'Name: value'.");
  return { name, value };
}

/** One of a few words. */
export function readOneOf<T extends string>(choices: readonly T[]): (text: string) => T {
  return (text) => {
    const found = choices.find((choice) => choice === text);
    if (found === undefined) throw new InvalidArgumentError(`Allowed choices are ${choices.join(', ')}.`);
    return found;
  };
}

const IS_URL = /^(?:[a-z0-9][a-z0-9_-]{0,62}=)?https?:\/\//;

/** URLs that stand alone on the command line, and the one command: everything behind the first `--`. */
export function splitOperands(
  operands: readonly string[],
  argv: readonly string[],
): { readonly urls: readonly Named<string>[]; readonly command: readonly string[] } | { readonly error: string } {
  const at = argv.indexOf('--');
  const behind = at < 0 ? [] : argv.slice(at + 1);
  const before = operands.slice(0, operands.length - behind.length);
  const [first = ''] = before;
  if (IS_URL.test(first)) {
    const other = before.find((one) => !IS_URL.test(one));
    if (other !== undefined)
      return { error: `${escapeForTerminal(other)}: expected another URL; a command follows --` };
    return { urls: before.map(readNamed), command: behind };
  }
  if (before.length > 0 && behind.length > 0)
    return { error: `${escapeForTerminal(first)}: the command follows --, and nothing of it stands before` };
  const command = before.length > 0 ? before : behind;
  return IS_URL.test(command[0] ?? '')
    ? { error: 'a URL stands before --, and behind it the command of a stdio server' }
    : { urls: [], command };
}

type Draft = { readonly name: string | undefined; readonly shown: string } & (
  | { readonly kind: 'http'; readonly url: string }
  | { readonly kind: 'stdio'; readonly argv: readonly string[] }
);

/** The servers of the command line with what is said of each, or one sentence about what is wrong. */
export function readServers(
  { urls, command }: { readonly urls: readonly Named<string>[]; readonly command: readonly string[] },
  options: ServersOptions,
  /** The name of the only one; `undefined` where there are others, from a file. */
  onlyName: string | undefined,
): readonly WantedServer[] | { readonly error: string } {
  const byUrl = [...(options.upstream ?? []), ...urls].map(({ name, value }): Draft => {
    return { kind: 'http', name, url: value, shown: `--upstream ${value}` };
  });
  const byCommand = (options.server ?? []).map(readCommand);
  const mistake = byCommand.find((one) => 'error' in one);
  if (mistake !== undefined && 'error' in mistake) return mistake;
  const last: Draft = { kind: 'stdio', name: undefined, argv: command, shown: '-- COMMAND' };
  const drafts = [...byUrl, ...byCommand, ...(command.length > 0 ? [last] : [])];
  const named = withNames(
    drafts.filter((one): one is Draft => !('error' in one)),
    onlyName,
  );
  return 'error' in named ? named : withOptions(named, options);
}

/** A command in one word of the command line. */
function readCommand({ name, value }: Named<string>): Draft | { readonly error: string } {
  const split = splitCommandLine(value);
  const shown = `--server ${name === undefined ? '' : `${name}=`}…`;
  if ('error' in split) return { error: `${shown}: ${split.error}` };
  const [program] = split.argv;
  if (program === undefined) return { error: `${shown}: the command is empty` };
  if (/^[A-Za-z_]\w*=/.test(program)) return { error: `${shown}: no variable is set here; --env NAME passes one on` };
  return { kind: 'stdio', name, argv: split.argv, shown };
}

type NamedDraft = Draft & { readonly name: string };

function withNames(
  drafts: readonly Draft[],
  onlyName: string | undefined,
): readonly NamedDraft[] | { readonly error: string } {
  const isOnly = drafts.length === 1 && onlyName !== undefined;
  const taken = new Set<string>();
  const named: NamedDraft[] = [];
  for (const draft of drafts) {
    const name = draft.name ?? (isOnly ? onlyName : nameOf(draft));
    if (name === undefined || taken.has(name)) return { error: describeName(draft, name) };
    taken.add(name);
    named.push({ ...draft, name });
  }
  return named;
}

function describeName({ shown, kind, name: given }: Draft, name: string | undefined): string {
  const form = kind === 'http' ? '--upstream NAME=URL' : "--server NAME='COMMAND'";
  const why = name === undefined ? 'it needs a name' : `two servers are called ${name}`;
  return `${escapeForTerminal(shown)}: ${why}; ${given === undefined ? 'give it one' : 'give it another'}: ${form}`;
}

/** A name for a server that was given none, where there are several. */
function nameOf(draft: Draft): string | undefined {
  return draft.kind === 'http' ? nameOfUrl(draft.url) : nameOfCommand(draft.argv);
}

function nameOfUrl(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const { hostname, pathname, port } = new URL(text);
  const isAddress = /^[\d.]+$|^\[/.test(hostname);
  const labels = isAddress ? [] : hostname.split('.').slice(0, Math.max(1, hostname.split('.').length - 1));
  const parts = [...labels, ...pathname.split('/')].filter((one) => !/^(?:www|mcp|api|sse|localhost|)$/.test(one));
  const found = parts.map(validNameFor).find((one) => one !== undefined);
  return found ?? (port === '' ? undefined : `port-${port}`);
}

const RUNNERS = /^(?:npx|uvx|uv|bunx|pnpm|yarn|dlx|run|tool|exec|node|deno|python3?|docker|podman)$/;

/** The package or program, without what says that it is an MCP server. */
function nameOfCommand(argv: readonly string[]): string | undefined {
  const [program = ''] = argv;
  const named = argv.find((one) => !one.startsWith('-') && !RUNNERS.test(one.replace(/^.*\//, '')));
  // A script on the command line is no name.
  const word = named === undefined || /\s/.test(named) ? program : named;
  const parts = word.replace(/(?<=.)(?:@|==)[^/]*$/, '').split('/');
  // Of the path of an entry, the package.
  const base = parts.findLast(
    (one) => !/^(?:(?:index|main|server|cli)\.[cm]?[jt]s|dist|build|lib|bin|src)?$/.test(one),
  );
  const plain = (base ?? word).replace(/\.[cm]?[jt]s$|\.py$/, '');
  const short = plain.replace(/^(?:mcp-server-|server-|mcp-)(?=.)/, '');
  return validNameFor(short.replace(/(?<=.)(?:-mcp-server|-mcp|-server)$/, ''));
}

/** Adds to each server what the options say of it. */
function withOptions(
  drafts: readonly NamedDraft[],
  { header = [], transport = [], network = [], env = [] }: ServersOptions,
): readonly WantedServer[] | { readonly error: string } {
  const given = [
    { flag: '--header', kind: 'http', form: "NAME='Name: value'", values: header },
    { flag: '--transport', kind: 'http', form: 'NAME=TRANSPORT', values: transport },
    { flag: '--network', kind: 'http', form: 'NAME=NETWORK', values: network },
    { flag: '--env', kind: 'stdio', form: 'NAME=VARIABLE', values: env },
  ] as const;
  for (const one of given) {
    const error = findMisplaced(one, drafts);
    if (error !== undefined) return { error };
  }
  const of = <T>(values: readonly Named<T>[], name: string): readonly T[] =>
    values.filter((one) => (one.name ?? name) === name).map(({ value }) => value);
  return drafts.map((draft) => {
    const { name } = draft;
    if (draft.kind === 'stdio')
      return { kind: 'stdio', name, argv: draft.argv, env: new Map(of(env, name).map((one) => [one, { env: one }])) };
    const [ownHeader] = of(header, name);
    const [ownTransport] = of(transport, name);
    const [ownNetwork] = of(network, name);
    return { kind: 'http', name, url: draft.url, header: ownHeader, transport: ownTransport, network: ownNetwork };
  });
}

type Given = {
  readonly flag: string;
  readonly kind: Draft['kind'];
  readonly form: string;
  readonly values: readonly Named<unknown>[];
};

/** Why a value belongs to no server, or to which of several is not said. */
function findMisplaced(given: Given, drafts: readonly NamedDraft[]): string | undefined {
  const { flag, kind, values } = given;
  const names = drafts.filter((one) => one.kind === kind).map(({ name }) => name);
  const misplaced = values.map(({ name }) => describeMisplaced(name, names, given)).find((why) => why !== undefined);
  if (misplaced !== undefined || flag === '--env') return misplaced;
  const counted = values.map(({ name = '' }) => name);
  const isTwice = counted.some((name, at) => counted.indexOf(name) !== at || (name !== '' && counted.includes('')));
  return isTwice ? `${flag}: give it once for a server` : undefined;
}

function describeMisplaced(
  name: string | undefined,
  names: readonly string[],
  { flag, kind, form }: Given,
): string | undefined {
  if (names.length === 0)
    return kind === 'http'
      ? `${flag} is for a server that is reached by HTTP; a command gets environment variables, with --env NAME`
      : `${flag} is for a server that a command starts; one that is reached by HTTP gets a header, with --header`;
  const listed = names.join(', ');
  if (name === undefined)
    return names.length > 1 ? `${flag}: say which server it is for (${listed}): ${flag} ${form}` : undefined;
  return names.includes(name) ? undefined : `${flag}: there is no server "${name}" that it could be for, but ${listed}`;
}
