// What becomes of a server of a client's file: what `add` is given for it, or why it is not added. Secrets leave the
// command line or the URL where that is possible, and a server whose secret cannot leave is refused with the place of it.
// Pure: nothing is written, started or asked. docs/reference/commands.md#add---from.

import { isAbsolute } from 'node:path';
import { hasRandomWindow } from '../../inspection/detectors/randomness.js';
import { findSecrets, isSecretName, mayNameSecret } from '../../inspection/detectors/secrets.js';
import { escapeForTerminal, makeVisible, quoteForShell } from '../../text/escaping.js';
import { type ClientServer, type ClientValue, OddServer, variableFor } from './client-files.js';
import type { ServerHeader } from './drafts.js';
import { findUrlError } from './questions.js';
import { HTTP_SSE, SERVER_NAME, validNameFor } from './server-options.js';
import type { SecretSource } from './stdio-file.js';

export type ImportedServer = {
  /** As the file has it; hostile text. */
  readonly written: string;
  /** What it is called here. */
  readonly name: string;
  /** The whole command or URL on one line, safe on a terminal. */
  readonly shown: string;
  /** What goes elsewhere or is lost, one line each, safe on a terminal. */
  readonly notes: readonly string[];
  readonly url?: string;
  readonly transport?: string | undefined;
  readonly header?: ServerHeader | undefined;
  readonly command?: {
    readonly argv: readonly string[];
    readonly env: ReadonlyMap<string, SecretSource>;
    readonly cwd?: string | undefined;
  };
  /** Variables that have to be set where the value is read. */
  readonly variables: readonly string[];
  /** Whether the file holds a value that was moved to a file of ours. */
  readonly hasSecrets: boolean;
};

export type ImportPlan = ImportedServer | { readonly written: string; readonly refused: string };

/** One line that is safe on a terminal, with everything that cannot be seen. */
export function visible(text: string): string {
  return makeVisible(escapeForTerminal(text));
}

/** Plans each server of a file; `taken` are the names of the servers that the gateway has. */
export function planImport(servers: readonly ClientServer[], taken: Iterable<string>): readonly ImportPlan[] {
  const names = new Map([...taken].map((name) => [name, 'the gateway file has a server of this name already']));
  return servers.map((server) => {
    const written = server.name;
    try {
      const plan = planServer(server, names);
      names.set(plan.name, 'another server of the file has this name');
      return plan;
    } catch (error) {
      if (!(error instanceof OddServer)) throw error;
      return { written, refused: visible(error.message) };
    }
  });
}

/** @throws OddServer with why it cannot be added. */
function planServer(server: ClientServer, names: ReadonlyMap<string, string>): ImportedServer {
  const written = server.name;
  if (server.kind === 'odd') throw new OddServer(server.why);
  const name = SERVER_NAME.test(written) ? written : validNameFor(written);
  if (name === undefined) throw new OddServer('no valid name can be made of its name; rename it in a copy of the file');
  const clash = names.get(name);
  if (clash !== undefined) throw new OddServer(name === written ? clash : `as ${name}: ${clash}`);
  const plan = server.kind === 'http' ? planUrl(server, name) : planCommand(server, name);
  const project = server.project === undefined ? [] : [`it belongs to the project ${visible(server.project)}`];
  const renamed = name === written ? [] : [`it is called ${name} here`];
  return { ...plan, written, name, notes: [...renamed, ...project, ...plan.notes, ...server.notes.map(visible)] };
}

type Planned = Omit<ImportedServer, 'written' | 'name'>;
type HttpServer = Extract<ClientServer, { readonly kind: 'http' }>;
type StdioServer = Extract<ClientServer, { readonly kind: 'stdio' }>;

const CLIENT_VARIABLE = /\$\{[^}]{1,128}\}/;
/** Its default may be a secret. */
const shownVariable = (variable: string): string => visible(variable.replace(/:-.*\}$/s, ':-…}'));

function planUrl({ url, isSse, headers }: HttpServer, name: string): Planned {
  const { plain, user } = splitUser(url);
  const all = [...headers, ...(user === undefined ? [] : [['Authorization', user] as const])];
  checkUrl(plain);
  if (all.length > 1) {
    const listed = all.map(([header]) => visible(header)).join(', ');
    throw new OddServer(`it has ${all.length} headers (${listed}), and the gateway sends one`);
  }
  const [header] = all;
  const kept = { url: plain, shown: visible(plain), transport: isSse ? HTTP_SSE : undefined };
  const notes = notesOnUrl(plain);
  if (header === undefined) return { ...kept, notes, variables: [], hasSecrets: false };
  const [field, value] = header;
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}$/.test(field))
    throw new OddServer(`${visible(field)} is no name of a header`);
  return {
    ...kept,
    header: { name: field, from: headerSource(value, name) },
    notes: [...notes, noteOf(`header ${field}`, value, `secrets/${name}-header`)],
    variables: value.kind === 'variable' ? [value.variable] : [],
    hasSecrets: value.kind === 'text',
  };
}

/** What a person cannot see of a URL, or should know of it. */
function notesOnUrl(url: string): readonly string[] {
  const { hostname, pathname } = new URL(url);
  return [
    ...(/[^ -~]/.test(url) ? [`its host is ${visible(hostname)}`] : []),
    ...(pathname.split('/').some(looksRandom)
      ? ['its path has a part that may be a secret, and that will stand in the gateway file']
      : []),
  ];
}

/** A text as long as a key that has neither words nor patterns. */
function looksRandom(text: string): boolean {
  return text.length >= 16 && hasRandomWindow(text, 16, { vocabulary: 'strict', unexplained: 6 });
}

/** A URL without its user, who is sent in a header (RFC 7617). */
function splitUser(url: string): { readonly plain: string; readonly user?: ClientValue } {
  const [variable] = CLIENT_VARIABLE.exec(url) ?? [];
  if (variable !== undefined)
    throw new OddServer(`its URL has ${shownVariable(variable)}, which only the client knows`);
  if (!URL.canParse(url)) throw new OddServer('its URL is not valid');
  const parsed = new URL(url);
  const { username, password } = parsed;
  if (username === '' && password === '') return { plain: url };
  parsed.username = '';
  parsed.password = '';
  const text = `Basic ${Buffer.from(`${decode(username)}:${decode(password)}`).toString('base64')}`;
  return { plain: parsed.href, user: { kind: 'text', text } };
}

function checkUrl(url: string): void {
  const secret = secretInUrl(url);
  if (secret !== undefined)
    throw new OddServer(
      `its URL has a secret ${secret}, and a URL cannot refer to a file; find out whether the server takes a header`,
    );
  const wrong = findUrlError(url);
  if (wrong !== undefined) throw new OddServer(wrong);
}

function headerSource(value: ClientValue, name: string): ServerHeader['from'] {
  if (value.kind === 'variable') return { env: value.variable };
  return { file: `secrets/${name}-header`, value: value.text };
}

function noteOf(what: string, value: ClientValue, file: string, shown = ''): string {
  return value.kind === 'text'
    ? `${visible(what)}${shown} goes to ${file}`
    : `${visible(what)} is read from ${value.variable}, which has to be set: ${visible(value.why)}`;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Where in a URL a secret is, without it. */
function secretInUrl(url: string): string | undefined {
  const parameters = [...new URL(url).searchParams];
  const named = parameters.find(
    ([name, value]) =>
      value !== '' && (isSecretName(name) || findSecrets(value, name).length > 0 || looksRandom(value)),
  );
  if (named !== undefined) return `in the parameter ${visible(named[0])}`;
  return findSecrets(url).length > 0 ? 'in it' : undefined;
}

function planCommand({ command, env, cwd }: StdioServer, name: string): Planned {
  if (cwd !== undefined && !isAbsolute(cwd))
    throw new OddServer(
      `its "cwd" is ${visible(cwd)}, which only the client can resolve; write an absolute path in a copy of the file`,
    );
  const moved = withoutDockerValues(command, env);
  for (const at of moved.command.keys()) checkWord(moved.command, at, moved.env);
  const odd = [...moved.env.keys()].find((variable) => !/^[A-Za-z_][A-Za-z0-9_]*$/.test(variable));
  if (odd !== undefined) throw new OddServer(`${visible(odd)} is no name of a variable`);
  const values = [...moved.env].filter(([, value]) => value.kind !== 'text' || value.text !== '');
  return {
    command: { argv: moved.command, env: new Map(values.map(([variable, value]) => [variable, sourceOf(value)])), cwd },
    shown: visible(moved.command.map(quoteForShell).join(' ')),
    notes: [
      ...(cwd === undefined ? [] : [`it runs in ${visible(cwd)}`]),
      ...values.map(([variable, value]) =>
        noteOf(variable, value, `secrets/${name}.${variable}`, shownValue(variable, value)),
      ),
    ],
    variables: values.flatMap(([, value]) => (value.kind === 'variable' ? [value.variable] : [])),
    hasSecrets: values.some(([, value]) => value.kind === 'text'),
  };
}

/** Variables that decide which program runs and what it loads or contacts. */
const STEERING =
  /^(?:PATH|HOME|IFS|ENV|SHELL|BASH_ENV|PROMPT_COMMAND|XDG_.*|NODE_.*|npm_config_.*|(?:LD|DYLD|PYTHON|UV|PIP|GIT|DENO|BUN|PERL5?|RUBY|GEM|BUNDLE|GO|CARGO|DOCKER|SSL)_?.*|.*_PROXY|(?:_|JDK_)?JAVA_.*)$/i;
const LEADS_TO = /^(?:[-./~]|[A-Za-z]:\\|[a-z][a-z0-9+.-]*:)/i;

/**
 * The value of a variable that steers a program, for a person who says yes to it.
 * @throws OddServer where a value that has to be seen holds a secret.
 */
function shownValue(variable: string, value: ClientValue): string {
  if (value.kind !== 'text') return '';
  const { text } = value;
  const isSecret = isSecretName(variable) || findSecrets(text, variable).length > 0 || URL_PASSWORD.test(text);
  if (!STEERING.test(variable)) return LEADS_TO.test(text) && !isSecret ? ` (${visible(text)})` : '';
  if (!isSecret) return ` (${visible(text)})`;
  if (isSecretName(variable)) return '';
  throw new OddServer(
    `${visible(variable)} decides what its program loads or contacts, and its value holds a secret that cannot be shown; take the secret out of it in a copy of the file`,
  );
}

function sourceOf(value: ClientValue): SecretSource {
  return value.kind === 'text' ? { value: value.text } : { env: value.variable };
}

function checkWord(argv: readonly string[], at: number, env: ReadonlyMap<string, ClientValue>): void {
  const place = at === 0 ? 'its command' : `argument ${at}`;
  const [variable] = CLIENT_VARIABLE.exec(argv[at] ?? '') ?? [];
  if (variable !== undefined && !env.has(variable.slice(2, -1)))
    throw new OddServer(
      `${place} has ${shownVariable(variable)}, which only the client knows; write the value in a copy of the file`,
    );
  if (isSecretAt(argv, at))
    throw new OddServer(
      `${place} holds a secret, which a command line shows to every user of the machine and cannot refer to; find out which variable the server reads instead`,
    );
}

const URL_PASSWORD = /\b[a-z][a-z0-9+.-]*:\/\/[^/?#@\s:]*:[^/?#@\s]+@/i;
const HEADER_OPTION = /^(?:H|headers?)$/;

/** Whether a word is a secret by its form, by the option before it, or behind its own sign. */
function isSecretAt(argv: readonly string[], at: number): boolean {
  const word = argv[at] ?? '';
  if (findSecrets(word).length > 0 || URL_PASSWORD.test(word)) return true;
  const before = argv[at - 1] ?? '';
  const [, option, value] = /^-{0,2}([A-Za-z][\w.-]*)=(.+)$/s.exec(word) ?? [];
  if (option !== undefined && value !== undefined && isSecretBehind(option, value)) return true;
  const named = /^-{1,2}([A-Za-z][\w.-]*)$/.exec(before)?.[1];
  return named !== undefined && !/^(?:--|-.$)/.test(word) && isSecretBehind(named, word);
}

/** Which word of a command line is a secret. */
export function findSecretWord(argv: readonly string[]): number | undefined {
  const at = argv.findIndex((_, index) => isSecretAt(argv, index));
  return at < 0 ? undefined : at;
}

function isSecretBehind(option: string, value: string): boolean {
  return HEADER_OPTION.test(option) ? isSecretHeader(value) : isSecretFor(option, value);
}

function isSecretHeader(line: string): boolean {
  const [, field = ''] = /^([\w-]+)\s*:\s*\S/.exec(line) ?? [];
  return /^(?:proxy-)?authorization$/i.test(field) || mayNameSecret(field) || isSecretName(field.replaceAll('-', '_'));
}

/** The path of a file, as opposed to a key that begins with a slash. */
const PLAIN_PATH = /^(?:[~.]{1,2}\/|(?=\/(?:.+\/|.*\.)))[\w./@ -]*$/;

/** What follows an option called after a secret is one, but for the path of a file or the name of a variable. */
function isSecretFor(option: string, value: string): boolean {
  if (findSecrets(value, variableFor(option)).length > 0) return true;
  return isSecretName(option.replaceAll('-', '_')) && !PLAIN_PATH.test(value) && !/^(?:\$|https?:|$)/.test(value);
}

const CONTAINER_TOOLS = /(?:^|\/)(?:docker|podman|nerdctl)$/;

/**
 * A container gets the variables of `-e NAME=VALUE` from the environment instead, where `-e NAME` reads them: that takes
 * the values out of the command line.
 */
function withoutDockerValues(
  command: readonly string[],
  env: ReadonlyMap<string, ClientValue>,
): { readonly command: readonly string[]; readonly env: ReadonlyMap<string, ClientValue> } {
  const all = new Map(env);
  if (!CONTAINER_TOOLS.test(command[0] ?? '')) return { command, env: all };
  const argv = command.map((word, at) => {
    const isValue = /^(?:-e|--env)$/.test(command[at - 1] ?? '');
    const [, option = '', name, value] = /^(--env=|-e)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$/s.exec(word) ?? [];
    if (name === undefined || value === undefined || (option === '' && !isValue)) return word;
    // What follows the image belongs to the program in the container, so that only secrets are moved.
    if (CLIENT_VARIABLE.test(value) || all.has(name) || !isSecretFor(name, value)) return word;
    all.set(name, { kind: 'text', text: value });
    return `${option}${name}`;
  });
  return { command: argv, env: all };
}
