// `sallyport init`: writes a gateway file and a key, and adds the first server to it as `sallyport add` does. What it has
// to know is taken from its options, asked for on a terminal where an option is missing, and refused with the name of
// the option where nobody can be asked. Everything that can fail is checked before the first file is written, and a file
// that exists is never written over. docs/reference/commands.md#init-and-dev---save.

import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join, posix, relative, resolve } from 'node:path';
import { KEY_BYTES, writeKeyText } from '../../config/key-material.js';
import type { IssuerSettings, Network } from '../../config/settings.js';
import { pendingOf } from '../../pins/approval.js';
import { escapeForTerminal, quoteForShell } from '../../text/escaping.js';
import { type NewFile, writeNewFiles } from '../new-files.js';
import type { PinPorts } from '../pin/lock-files.js';
import { type CliIo, type Command, commandLine, EXIT_FINE, EXIT_UNCHECKED, fail } from '../program.js';
import { type Added, addServer, hasObstacles, shown } from './add-server.js';
import {
  type GatewayAnswers,
  gatewayText,
  IGNORED,
  ISSUER_NAME,
  KEY_FILE,
  NEW_LAYOUT,
  resourceOf,
  type ServerAnswers,
  serverPaths,
} from './drafts.js';
import { type Asked, askAll, findUrlError, groupsAsked, namesIn, type Questions, urlAsked } from './questions.js';
import {
  addServerOptions,
  NAME_RULE,
  optionalAnswers,
  readHeader,
  SERVER_NAME,
  type ServerOptions,
} from './server-options.js';

type InitOptions = ServerOptions & {
  readonly dir?: string | undefined;
  readonly issuer?: string;
  readonly name?: string;
  readonly publicUrl?: string;
  readonly yes?: boolean;
  /** False: the servers are added later. */
  readonly server?: boolean;
};

type QuestionPorts = {
  /** Absent where stdin is no terminal. */
  readonly questions?: (() => Questions) | undefined;
  /** The narrowest network that contains what the host of a URL resolves to. */
  networkOf(url: string): Promise<Network>;
};

const DEFAULT_PUBLIC_URL = 'http://127.0.0.1:8080';
const DEFAULT_NAME = 'mcp';
const IPV4 = /^[0-9.]+$/;

type Answers = { readonly server: ServerAnswers; readonly gateway: GatewayAnswers };

const issuerAsked = (given: string | undefined): Asked => ({
  ...{ flag: '--issuer', question: 'Issuer of the tokens of callers (URL)', given, findError: findUrlError },
});

const publicUrlAsked = (given: string | undefined): Asked => ({
  ...{ flag: '--public-url', question: 'URL of the gateway as clients see it', given, findError: findUrlError },
  fallback: DEFAULT_PUBLIC_URL,
});

/** What a gateway without servers needs. */
async function readGatewayAnswers(
  options: InitOptions,
  io: CliIo,
  ports: QuestionPorts,
): Promise<GatewayAnswers | undefined> {
  const questions = options.yes === true ? undefined : ports.questions?.();
  try {
    const asked = [issuerAsked(options.issuer), publicUrlAsked(options.publicUrl)];
    const given = await askAll(asked, questions, 'init', io);
    if (given === undefined) return undefined;
    const [issuer = '', publicUrl = ''] = given;
    return { issuer, publicUrl, issuerNetwork: await ports.networkOf(issuer) };
  } finally {
    questions?.close();
  }
}

/** Everything that the files need; `undefined` if a mistake or what is missing was printed. */
async function readAnswers(options: InitOptions, io: CliIo, ports: QuestionPorts): Promise<Answers | undefined> {
  const questions = options.yes === true ? undefined : ports.questions?.();
  try {
    const asked = [
      urlAsked(options.url),
      issuerAsked(options.issuer),
      groupsAsked(options.group),
      publicUrlAsked(options.publicUrl),
    ];
    const given = await askAll(asked, questions, 'init', io);
    if (given === undefined) return undefined;
    const [url = '', issuer = '', groups = '', publicUrl = ''] = given;
    const name = options.name ?? nameOf(url);
    if (!SERVER_NAME.test(name)) {
      io.stderr(`error: --name ${NAME_RULE}\n`);
      return undefined;
    }
    const header = readHeader(options.header, name, io);
    if (header === 'invalid') return undefined;
    return {
      gateway: { issuer, publicUrl, issuerNetwork: await ports.networkOf(issuer) },
      server: {
        ...{ name, url, issuers: [ISSUER_NAME], network: await ports.networkOf(url) },
        groups: options.group?.filter((group) => group.trim() !== '') ?? namesIn(groups),
        header,
        ...optionalAnswers(options),
      },
    };
  } finally {
    questions?.close();
  }
}

/** The first label of the host name, which tells upstreams apart in most networks. */
function nameOf(url: string): string {
  const { hostname } = new URL(url);
  if (IPV4.test(hostname) || hostname.startsWith('[') || hostname === 'localhost') {
    return DEFAULT_NAME;
  }
  const label = (hostname.split('.')[0] ?? '').toLowerCase();
  return SERVER_NAME.test(label) ? label : DEFAULT_NAME;
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
  if (options.server === false) return runEmptyInit(folder, options, io, ports);
  const answers = await readAnswers(options, io, ports);
  if (answers === undefined) return EXIT_UNCHECKED;
  const { gateway, server } = answers;
  let isKeycloak = false;
  const checkIssuers = async (issuers: Iterable<IssuerSettings>): Promise<boolean> => {
    for (const issuer of issuers) {
      const checked = await ports.checkIssuer(issuer);
      if (checked.error !== undefined) {
        io.stderr(`error: the issuer ${issuer.issuer} cannot be used: ${checked.error}\n`);
        return false;
      }
      isKeycloak = checked.isKeycloak;
    }
    return true;
  };
  const configuration = {
    ...{ folder, layout: NEW_LAYOUT, ignored: IGNORED, text: gatewayText(gateway), isNew: true },
    begun: [newKey()],
  };
  const how = { command: 'init', isOffline: options.offline === true, checkIssuers } as const;
  const config = join(folder, NEW_LAYOUT.config);
  const added = await addServer(configuration, { answers: server }, how, io, ports);
  if (added === undefined) {
    if (existsSync(config)) printAdd(folder, server, io);
    return EXIT_UNCHECKED;
  }
  const code = await ports.validate(config);
  if (code === EXIT_FINE) printNext(folder, answers, added, isKeycloak, io, ports);
  return code;
}

function newKey(): NewFile {
  return { path: KEY_FILE, text: `${writeKeyText(randomBytes(KEY_BYTES))}\n`, isSecret: true };
}

/** Writes a gateway to which `add` adds its servers, such as those of a client's file. Nobody is asked yet. */
async function runEmptyInit(folder: string, options: InitOptions, io: CliIo, ports: InitPorts): Promise<number> {
  const gateway = await readGatewayAnswers(options, io, ports);
  if (gateway === undefined) return EXIT_UNCHECKED;
  const files = [
    { path: NEW_LAYOUT.config, text: gatewayText(gateway), isSecret: false },
    { path: posix.join(NEW_LAYOUT.policies, 'README.md'), text: POLICIES_NOTE, isSecret: false },
    newKey(),
  ];
  const paths = files.map(({ path }) => path);
  if (await hasObstacles(folder, paths, 'init', io)) return EXIT_UNCHECKED;
  const error = await writeNewFiles(folder, files, IGNORED);
  if (error !== undefined) return fail(`nothing was written: ${escapeForTerminal(error)}`, EXIT_UNCHECKED, io);
  io.stdout(`written to ${shown(folder, io)}: ${[...paths, '.gitignore'].map(escapeForTerminal).join(', ')}\n`);
  const config = join(folder, NEW_LAYOUT.config);
  const code = await ports.validate(config);
  const add = (...more: readonly string[]): string =>
    `   ${commandLine(io, ['add', '-c', relative(io.cwd, config), ...more])}\n`;
  io.stdout(`\nNext: add a server that is reached by its URL, one that a command starts, or those that a client has:
${add('NAME', '--group', 'GROUP', '--url', 'URL')}${add('NAME', '--group', 'GROUP', '--', 'COMMAND')}${add('--from', 'mcp.json', '--group', 'GROUP')}`);
  return code;
}

const POLICIES_NOTE = `# Policies

Who may use what: one file of rules a server, \`NAME.policy.yaml\`, and the approved definitions in \`pins/\`. \`sallyport add\` writes
both, and \`sallyport validate\` checks them.
`;

/** Where there is a gateway file already, a server is added to it. */
function printAdd(folder: string, { name, url }: ServerAnswers, io: CliIo): void {
  const config = shown(join(folder, NEW_LAYOUT.config), io);
  io.stderr(`To add a server to that gateway, run: ${commandLine(io, ['add', '-c', config, name, '--url', url])}\n`);
}

function printNext(
  folder: string,
  { server, gateway }: Answers,
  { lock }: Added,
  isKeycloak: boolean,
  io: CliIo,
  ports: InitPorts,
): void {
  const { name, audience, scopes } = server;
  const paths = serverPaths(NEW_LAYOUT, name);
  const config = ['-c', relative(io.cwd, join(folder, NEW_LAYOUT.config))];
  const by = ports.gitIdentity?.() === undefined ? ' --by "$(id -un)"' : '';
  const resource = resourceOf(gateway.publicUrl, name);
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
      'sallyport init gateway --no-server --issuer https://idp.example.com',
    ],
    configure(command, finish) {
      addServerOptions(command)
        .argument('[dir]', 'folder to write to (default: the current one)')
        .option('--issuer <url>', 'issuer of the tokens of callers')
        .option('--name <name>', 'name of the upstream (default: from its URL)')
        .option('--public-url <url>', 'URL of the gateway as clients see it (default: http://127.0.0.1:8080)')
        .option('--no-server', 'write a gateway without a server; add adds them')
        .option('--yes', 'ask no questions')
        .option('--offline', 'ask neither the issuer nor the server')
        .action(async (dir: string | undefined, options: InitOptions) =>
          finish(await runInit({ ...options, dir }, io, ports)),
        );
    },
  };
}
