// `sallyport init`: writes a gateway file and a key, and adds the first server to it as `sallyport add` does. What it has
// to know is taken from its options, asked for on a terminal where an option is missing, and refused with the name of
// the option where nobody can be asked. Everything that can fail is checked before the first file is written, and a file
// that exists is never written over. docs/reference/commands.md#init-and-dev---save.

import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { KEY_BYTES, writeKeyText } from '../../config/key-material.js';
import type { IssuerSettings, Network } from '../../config/settings.js';
import { pendingOf } from '../../pins/approval.js';
import { quoteForShell } from '../../text/escaping.js';
import type { PinPorts } from '../pin/lock-files.js';
import { type CliIo, type Command, commandLine, EXIT_FINE, EXIT_UNCHECKED } from '../program.js';
import { type Added, addServer, shown } from './add-server.js';
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
import { askAll, findUrlError, groupsAsked, namesIn, type Questions, urlAsked } from './questions.js';
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

/** Everything that the files need; `undefined` if a mistake or what is missing was printed. */
async function readAnswers(options: InitOptions, io: CliIo, ports: QuestionPorts): Promise<Answers | undefined> {
  const questions = options.yes === true ? undefined : ports.questions?.();
  try {
    const asked = [
      urlAsked(options.url),
      {
        flag: '--issuer',
        question: 'Issuer of the tokens of callers (URL)',
        given: options.issuer,
        findError: findUrlError,
      },
      groupsAsked(options.group),
      {
        flag: '--public-url',
        question: 'URL of the gateway as clients see it',
        given: options.publicUrl,
        fallback: DEFAULT_PUBLIC_URL,
        findError: findUrlError,
      },
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
    begun: [{ path: KEY_FILE, text: `${writeKeyText(randomBytes(KEY_BYTES))}\n`, isSecret: true }],
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
    ],
    configure(command, finish) {
      addServerOptions(command)
        .argument('[dir]', 'folder to write to (default: the current one)')
        .option('--issuer <url>', 'issuer of the tokens of callers')
        .option('--name <name>', 'name of the upstream (default: from its URL)')
        .option('--public-url <url>', 'URL of the gateway as clients see it (default: http://127.0.0.1:8080)')
        .option('--yes', 'ask no questions')
        .option('--offline', 'ask neither the issuer nor the server')
        .action(async (dir: string | undefined, options: InitOptions) =>
          finish(await runInit({ ...options, dir }, io, ports)),
        );
    },
  };
}
