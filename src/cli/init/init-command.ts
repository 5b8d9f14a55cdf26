// `sallyport init`: writes a gateway file, a first policy, a key and the lock file for one upstream. What it has to
// know is taken from its options, asked for on a terminal where an option is missing, and refused with the name of
// the option where nobody can be asked. Everything that can fail (the settings, the issuer, the upstream) is checked
// before the first file is written, and a file that exists is never written over.
// docs/reference/commands.md#init-and-dev---save.

import { randomBytes } from 'node:crypto';
import { join, relative, resolve } from 'node:path';
import { Option } from 'commander';
import { errorsOf, hasErrors, renderDiagnostics } from '../../config/diagnostics.js';
import { KEY_BYTES, writeKeyText } from '../../config/key-material.js';
import { loadGateway } from '../../config/load.js';
import type { IssuerSettings, Network, Settings } from '../../config/settings.js';
import { mergeFetched, pendingOf } from '../../pins/approval.js';
import { type Lock, writeLock } from '../../pins/lock.js';
import { escapeForTerminal, quoteForShell } from '../../text/escaping.js';
import { chooseContent } from '../content-choice.js';
import { findObstacles, type NewFile, writeNewFiles } from '../new-files.js';
import { observeTarget, type PinPorts } from '../pin/lock-files.js';
import { type CliIo, type Command, commandLine, EXIT_FINE, EXIT_UNCHECKED, fail } from '../program.js';
import {
  describeGrants,
  gatewayText,
  IGNORED,
  type InitAnswers,
  initPaths,
  policyText,
  resourceOf,
  testText,
} from './files.js';

type InitOptions = {
  readonly dir?: string | undefined;
  readonly url?: string;
  readonly issuer?: string;
  readonly group?: readonly string[];
  readonly name?: string;
  readonly publicUrl?: string;
  readonly audience?: string;
  readonly header?: string;
  readonly scope?: readonly string[];
  readonly allow?: InitAnswers['allow'];
  readonly yes?: boolean;
  readonly offline?: boolean;
};

/** A terminal that a person answers questions on. */
export type Questions = {
  /** The next line; `undefined` at the end of the input. */
  ask(question: string): Promise<string | undefined>;
  close(): void;
};

type QuestionPorts = {
  /** Absent where stdin is no terminal. */
  readonly questions?: (() => Questions) | undefined;
  /** The narrowest network that contains what the host of a URL resolves to. */
  networkOf(url: string): Promise<Network>;
};

const DEFAULT_PUBLIC_URL = 'http://127.0.0.1:8080';
const DEFAULT_NAME = 'mcp';
const NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/;
const IPV4 = /^[0-9.]+$/;
/** Field name and value of a header (RFC 9110 §5.1, §5.5): no control characters. */
const HEADER = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)$/;

type Asked = {
  readonly flag: string;
  readonly question: string;
  readonly given: string | undefined;
  readonly fallback?: string;
  /** What is wrong with an answer; `undefined` if nothing is. */
  readonly findError: (answer: string) => string | undefined;
};

/** Everything that the files need; `undefined` if a mistake or what is missing was printed. */
async function readAnswers(options: InitOptions, io: CliIo, ports: QuestionPorts): Promise<InitAnswers | undefined> {
  const questions = options.yes === true ? undefined : ports.questions?.();
  try {
    const given = await askAll(options, questions, io);
    const header = readHeader(options.header, io);
    if (given === undefined || header === 'invalid') return undefined;
    const [url = '', issuer = '', groups = '', publicUrl = ''] = given;
    const name = options.name ?? nameOf(url);
    if (!NAME.test(name)) {
      io.stderr('error: --name takes lower-case letters, digits, - and _\n');
      return undefined;
    }
    return {
      ...{ name, url, issuer, publicUrl, header },
      groups: options.group?.filter((group) => group.trim() !== '') ?? groupsOf(groups),
      network: await ports.networkOf(url),
      issuerNetwork: await ports.networkOf(issuer),
      audience: options.audience,
      scopes: options.scope ?? [],
      allow: options.allow ?? 'read-only',
    };
  } finally {
    questions?.close();
  }
}

async function askAll(
  { url, issuer, group, publicUrl }: InitOptions,
  questions: Questions | undefined,
  io: CliIo,
): Promise<readonly string[] | undefined> {
  const asked: readonly Asked[] = [
    { flag: '--url', question: 'URL of the MCP server', given: url, findError: findUrlError },
    {
      flag: '--issuer',
      question: 'Issuer of the tokens of callers (URL)',
      given: issuer,
      findError: findUrlError,
    },
    {
      flag: '--group',
      question: 'Groups that may use its tools (separated by commas)',
      given: group?.join(','),
      findError: (text) => (groupsOf(text).length === 0 ? 'name one group or more' : undefined),
    },
    {
      flag: '--public-url',
      question: 'URL of the gateway as clients see it',
      given: publicUrl,
      fallback: DEFAULT_PUBLIC_URL,
      findError: findUrlError,
    },
  ];
  const missing = asked.filter(({ given, fallback }) => (given ?? fallback) === undefined);
  if (questions === undefined && missing.length > 0) {
    const flags = missing.map(({ flag }) => flag).join(', ');
    io.stderr(`error: missing: ${flags}; give them as options, or run init on a terminal\n`);
    return undefined;
  }
  const answers: string[] = [];
  for (const one of asked) {
    const answer = await answerTo(one, questions, io);
    if (answer === undefined) return undefined;
    answers.push(answer);
  }
  return answers;
}

async function answerTo(asked: Asked, questions: Questions | undefined, io: CliIo): Promise<string | undefined> {
  const { flag, given, fallback, findError } = asked;
  const known = given ?? (questions === undefined ? fallback : undefined);
  if (known === undefined) return questions && askUntilValid(asked, questions, io);
  const error = findError(known);
  if (error === undefined) return known;
  io.stderr(`error: ${flag}: ${error}\n`);
  return undefined;
}

async function askUntilValid(
  { question, fallback, findError }: Asked,
  questions: Questions,
  io: CliIo,
): Promise<string | undefined> {
  const suffix = fallback === undefined ? '' : ` [${fallback}]`;
  for (;;) {
    const line = await questions.ask(`${question}${suffix}: `);
    if (line === undefined) {
      io.stderr('\nerror: the input ended before the last question; nothing was written\n');
      return undefined;
    }
    const answer = line.trim() || (fallback ?? '');
    const error = findError(answer);
    if (error === undefined) return answer;
    io.stderr(`${error}\n`);
  }
}

function groupsOf(text: string): readonly string[] {
  return text
    .split(',')
    .map((group) => group.trim())
    .filter((group) => group !== '');
}

function findUrlError(text: string): string | undefined {
  // Parsing drops white space, and the text is written into files as it is.
  if (/\s/.test(text) || !URL.canParse(text)) {
    return 'this is not a URL, such as https://mcp.example.com/mcp';
  }
  const { protocol, username, password } = new URL(text);
  if (protocol !== 'https:' && protocol !== 'http:') return 'the URL must be https or http';
  return username === '' && password === '' ? undefined : 'the URL carries credentials; give them with --header';
}

function readHeader(text: string | undefined, io: CliIo): InitAnswers['header'] | 'invalid' {
  if (text === undefined) return undefined;
  const [, name, value] = HEADER.exec(text) ?? [];
  if (name !== undefined && value !== undefined) return { name, value };
  io.stderr("error: --header takes 'Name: value'\n");
  return 'invalid';
}

/** The first label of the host name, which tells upstreams apart in most networks. */
function nameOf(url: string): string {
  const { hostname } = new URL(url);
  if (IPV4.test(hostname) || hostname.startsWith('[') || hostname === 'localhost') {
    return DEFAULT_NAME;
  }
  const label = (hostname.split('.')[0] ?? '').toLowerCase();
  return NAME.test(label) ? label : DEFAULT_NAME;
}

export type InitPorts = QuestionPorts &
  Pick<PinPorts, 'files' | 'observe' | 'gitIdentity'> & {
    /** Reads the metadata of an issuer; `error` says why it cannot be used. */
    checkIssuer(
      issuer: IssuerSettings,
    ): Promise<{ readonly error: string } | { readonly error?: never; readonly isKeycloak: boolean }>;
    /** Runs `validate` on a gateway file; resolves with its exit code. */
    validate(file: string): Promise<number>;
  };

/**
 * Writes the files and validates them. Exit 2: something is missing, exists or cannot be reached; nothing was written.
 */
async function runInit(options: InitOptions, io: CliIo, ports: InitPorts): Promise<number> {
  const folder = resolve(io.cwd, options.dir ?? '.');
  const answers = await readAnswers(options, io, ports);
  if (answers === undefined) return EXIT_UNCHECKED;
  const paths = initPaths(answers.name);
  if (await hasObstacles(folder, answers, io)) return EXIT_UNCHECKED;
  const files = [
    { path: paths.config, text: gatewayText(answers), isSecret: false },
    { path: paths.key, text: `${writeKeyText(randomBytes(KEY_BYTES))}\n`, isSecret: true },
    ...(answers.header === undefined
      ? []
      : [{ path: paths.header, text: `${answers.header.value}\n`, isSecret: true }]),
  ];
  const settings = readNewSettings(folder, files, io, ports);
  if (settings === undefined) return EXIT_UNCHECKED;
  const fetched = options.offline === true ? {} : await fetchAll(answers, settings, io, ports);
  if (fetched === undefined) return EXIT_UNCHECKED;
  const pinned = fetched.lock;
  const policy = { path: paths.policy, text: policyText(answers, pinned), isSecret: false };
  const test = { path: paths.test, text: testText(answers, pinned), isSecret: false };
  const locks = pinned === undefined ? [] : [{ path: paths.lock, text: writeLock(pinned), isSecret: false }];
  // What the tools return is known now.
  const config = { path: paths.config, text: gatewayText(answers, pinned), isSecret: false };
  const all = [config, ...files.slice(1), policy, test, ...locks];
  const error = await writeNewFiles(folder, all, IGNORED);
  if (error !== undefined) return fail(`nothing was written: ${escapeForTerminal(error)}`, EXIT_UNCHECKED, io);
  const written = all.map(({ path }) => path);
  io.stdout(`written to ${shown(folder, io)}: ${[...written, paths.ignore].join(', ')}\n`);
  if (pinned !== undefined) io.stdout(`${escapeForTerminal(describeGrants(answers, pinned))}\n`);
  const content = chooseContent(pinned, { isApproved: false });
  if (content !== undefined) io.stdout(`Content: ${content.shown}\n`);
  const code = await ports.validate(join(folder, paths.config));
  if (code === EXIT_FINE) printNext(folder, answers, fetched, io, ports);
  return code;
}

/** Whether a file or a link is where `init` would write. Prints which. */
async function hasObstacles(folder: string, { name }: InitAnswers, io: CliIo): Promise<boolean> {
  const { config, policy, test, lock, key, header } = initPaths(name);
  const written = [config, policy, test, lock, key, header];
  const { links, existing } = await findObstacles(folder, written);
  const list = (paths: readonly string[]): string => paths.map((path) => shown(path, io)).join(', ');
  if (links.length > 0) io.stderr(`error: init follows no link below the folder, and this is one: ${list(links)}\n`);
  if (existing.length > 0) io.stderr(`error: init writes no file over another, and this exists: ${list(existing)}\n`);
  if (existing.includes(join(folder, config))) {
    const fetch = commandLine(io, ['pin', 'fetch', '-c', shown(join(folder, config), io), name]);
    io.stderr(`To add a server to that gateway, name it under upstreams there, and run: ${fetch}\n`);
  }
  return links.length + existing.length > 0;
}

function shown(path: string, io: CliIo): string {
  return escapeForTerminal(relative(io.cwd, path) || '.');
}

/** What issuer and upstream said; empty with --offline. */
type Fetched = { readonly lock?: Lock; readonly isKeycloak?: boolean };

/** The settings of files that are not written yet; `undefined` with the diagnostics printed if they have errors. */
function readNewSettings(folder: string, files: readonly NewFile[], io: CliIo, ports: InitPorts): Settings | undefined {
  const texts = new Map(files.map(({ path, text }) => [join(folder, path), text]));
  const { settings, diagnostics } = loadGateway(join(folder, files[0]?.path ?? ''), {
    readFile(path) {
      const text = texts.get(path);
      return text === undefined ? ports.files.readFile(path) : new TextEncoder().encode(text);
    },
    env: io.env,
  });
  if (settings !== undefined && !hasErrors(diagnostics)) return settings;
  io.stderr(renderDiagnostics(errorsOf(diagnostics), 'text', io.cwd));
  io.stderr('error: nothing was written: these settings are not valid together\n');
  return undefined;
}

/** Checks the issuer and lists the upstream; what it offers is pending. `undefined` with the reason printed. */
async function fetchAll(
  { name }: InitAnswers,
  settings: Settings,
  io: CliIo,
  ports: InitPorts,
): Promise<Fetched | undefined> {
  const hint = 'nothing was written; to write the files without asking it, add --offline\n';
  let isKeycloak = false;
  for (const issuer of settings.issuers.values()) {
    const checked = await ports.checkIssuer(issuer);
    if (checked.error !== undefined) {
      io.stderr(`error: the issuer ${issuer.issuer} cannot be used: ${checked.error}\n${hint}`);
      return undefined;
    }
    isKeycloak = checked.isKeycloak;
  }
  const upstream = settings.upstreams.get(name);
  if (upstream === undefined) return undefined;
  const observed = await observeTarget({ settings: upstream, gateway: settings }, io, ports);
  if (observed === undefined) {
    io.stderr(hint);
    return undefined;
  }
  const fetched = mergeFetched({ upstream: name, lock: undefined, observed, approval: undefined });
  for (const item of fetched.unusable) {
    io.stderr(`warning: cannot be pinned: ${item.kind} ${escapeForTerminal(item.name)}\n`);
  }
  return { lock: fetched.lock, isKeycloak };
}

function printNext(
  folder: string,
  answers: InitAnswers,
  { lock, isKeycloak = false }: Fetched,
  io: CliIo,
  ports: InitPorts,
): void {
  const { name, audience, scopes } = answers;
  const paths = initPaths(name);
  const at = (path: string): string => relative(io.cwd, join(folder, path));
  const config = ['-c', at(paths.config)];
  const by = ports.gitIdentity?.() === undefined ? ' --by "$(id -un)"' : '';
  const resource = resourceOf(answers);
  const pending = pendingOf(lock).length;
  const approve = `${commandLine(io, ['pin', 'approve', ...config, name, '--all'])}${by}`;
  const lastSteps = [
    ['start the gateway', commandLine(io, ['serve', ...config])],
    [
      `connect a client, such as Claude Code; the audience of its tokens is ${audience ?? resource}`,
      `claude mcp add --transport http ${name} ${quoteForShell(resource)}`,
    ],
  ];
  const steps =
    lock === undefined
      ? [
          ['read the definitions of the upstream', commandLine(io, ['pin', 'fetch', ...config, name])],
          [
            `name the tools in ${shown(join(folder, paths.policy), io)}, and check it`,
            commandLine(io, ['validate', ...config]),
          ],
          ['review what is pending', commandLine(io, ['pin', 'diff', ...config, name])],
          ['approve what you have reviewed', approve],
          ...lastSteps,
        ]
      : [
          [
            `read ${shown(join(folder, paths.policy), io)} and ${shown(join(folder, paths.lock), io)}, and approve the ${pending} pending definitions`,
            approve,
          ],
          ...lastSteps,
        ];
  const lines = steps.map(([what, line], index) => `${index + 1}. ${what}:\n   ${line}\n`);
  io.stdout(`\nNext:\n${lines.join('')}${isKeycloak ? keycloakNote(scopes) : ''}`);
}

/** Keycloak ignores the resource that a client asks for (RFC 8707), and writes the type JWT unless told otherwise. */
function keycloakNote(scopes: readonly string[]): string {
  const scope =
    scopes.length === 0
      ? 'a client scope, which scopesSupported of the upstream has to name (init: --scope)'
      : `the client scope ${scopes.join(' or ')}`;
  return `
The issuer is a Keycloak. Its tokens have this audience only through ${scope},
and the type at+jwt only for clients with "Use at+jwt as access token header type".
The guide docs/guides/keycloak.md sets up both.
`;
}

export function initCommand(io: CliIo, ports: InitPorts): Command {
  return {
    name: 'init',
    summary: 'Write a configuration, a first policy and a key for one upstream, and fetch its definitions.',
    examples: [
      'sallyport init',
      'sallyport init gateway --url https://mcp.internal/mcp --issuer https://idp.example.com --group eng',
    ],
    configure(command, finish) {
      const collect = (value: string, before: readonly string[] = []) => [...before, value];
      command
        .argument('[dir]', 'folder to write to (default: the current one)')
        .option('--url <url>', 'URL of the MCP server')
        .option('--issuer <url>', 'issuer of the tokens of callers')
        .option('--group <name>', 'group that may use what the policy grants; may be repeated', collect)
        .option('--name <name>', 'name of the upstream (default: from its URL)')
        .option('--public-url <url>', 'URL of the gateway as clients see it (default: http://127.0.0.1:8080)')
        .option('--audience <audience>', 'audience of tokens, if the issuer cannot mint the URL of the gateway')
        .option('--scope <name>', 'scope that clients request at the issuer; may be repeated', collect)
        .option('--header <header>', "header that the server requires: 'Name: value'")
        .addOption(
          new Option('--allow <tools>', 'tools that the policy grants')
            .choices(['read-only', 'all'])
            .default('read-only'),
        )
        .option('--yes', 'ask no questions')
        .option('--offline', 'ask neither the issuer nor the server')
        .action(async (dir: string | undefined, options: InitOptions) =>
          finish(await runInit({ ...options, dir }, io, ports)),
        );
    },
  };
}
