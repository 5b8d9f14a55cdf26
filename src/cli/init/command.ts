// `sallyport init`: writes a gateway file, a first policy, a key and the lock file for one upstream. Everything that
// can fail (the settings, the issuer, the upstream) is checked before the first file is written, and a file that
// exists is never written over. docs/contract.md §1.

import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { Option } from 'commander';
import { errorsOf, hasErrors, renderDiagnostics } from '../../config/diagnostics.js';
import { KEY_BYTES, writeKeyText } from '../../config/keys.js';
import { loadGateway } from '../../config/load.js';
import type { IssuerSettings, Settings } from '../../config/settings.js';
import { mergeFetched, pendingOf } from '../../pins/approval.js';
import type { Lock } from '../../pins/lock.js';
import { writeLock } from '../../pins/lock-yaml.js';
import { escapeForTerminal, quoteForShell } from '../../text/escaping.js';
import { addIgnored } from '../git-ignore.js';
import { observeTarget, type PinPorts } from '../pin/lock-files.js';
import {
  type CliIo,
  type Command,
  commandLine,
  EXIT_FINE,
  EXIT_UNCHECKED,
  fail,
} from '../program.js';
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
import { type InitOptions, type QuestionPorts, readAnswers } from './questions.js';

export type InitPorts = QuestionPorts &
  Pick<PinPorts, 'files' | 'observe' | 'gitIdentity'> & {
    /** Reads the metadata of an issuer; `error` says why it cannot be used. */
    checkIssuer(
      issuer: IssuerSettings,
    ): Promise<
      { readonly error: string } | { readonly error?: never; readonly isKeycloak: boolean }
    >;
    /** Runs `validate` on a gateway file; resolves with its exit code. */
    validate(file: string): Promise<number>;
  };

type NewFile = { readonly path: string; readonly text: string; readonly isSecret: boolean };

/** Writes the files and validates them. Exit 2: something is missing, exists or cannot be reached; nothing was written. */
export async function runInit(options: InitOptions, io: CliIo, ports: InitPorts): Promise<number> {
  const folder = resolve(io.cwd, options.dir ?? '.');
  const answers = await readAnswers(options, io, ports);
  if (answers === undefined) return EXIT_UNCHECKED;
  const paths = initPaths(answers.name);
  if (hasExistingFiles(folder, answers, io)) return EXIT_UNCHECKED;
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
  const locks =
    pinned === undefined ? [] : [{ path: paths.lock, text: writeLock(pinned), isSecret: false }];
  const error = await writeFiles(folder, [...files, policy, test, ...locks]);
  if (error !== undefined) return fail(`nothing was written: ${error}`, EXIT_UNCHECKED, io);
  const written = [...files, policy, test, ...locks].map(({ path }) => path);
  io.stdout(`written to ${shown(folder, io)}: ${[...written, paths.ignore].join(', ')}\n`);
  if (pinned !== undefined) io.stdout(`${escapeForTerminal(describeGrants(answers, pinned))}\n`);
  const code = await ports.validate(join(folder, paths.config));
  if (code === EXIT_FINE) printNext(folder, answers, fetched, io, ports);
  return code;
}

/** Whether a file exists that `init` would write. Prints which. */
function hasExistingFiles(folder: string, { name }: InitAnswers, io: CliIo): boolean {
  const { config, policy, test, lock, key, header } = initPaths(name);
  const existing = [config, policy, test, lock, key, header]
    .map((path) => join(folder, path))
    .filter((path) => existsSync(path));
  if (existing.length === 0) return false;
  const listed = existing.map((path) => shown(path, io)).join(', ');
  io.stderr(`error: init writes no file over another, and this exists: ${listed}\n`);
  if (existsSync(join(folder, config))) {
    const fetch = commandLine(io, ['pin', 'fetch', '-c', shown(join(folder, config), io), name]);
    io.stderr(
      `To add a server to that gateway, name it under upstreams there, and run: ${fetch}\n`,
    );
  }
  return true;
}

function shown(path: string, io: CliIo): string {
  return escapeForTerminal(relative(io.cwd, path) || '.');
}

/** What issuer and upstream said; empty with --offline. */
type Fetched = { readonly lock?: Lock; readonly isKeycloak?: boolean };

/** The settings of files that are not written yet; `undefined` with the diagnostics printed if they have errors. */
function readNewSettings(
  folder: string,
  files: readonly NewFile[],
  io: CliIo,
  ports: InitPorts,
): Settings | undefined {
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

const OWNER_ONLY_FILE = 0o600;
const OWNER_ONLY_FOLDER = 0o700;

/** Creates the files, all or none; adds to .gitignore what is missing there. Resolves with why that failed. */
async function writeFiles(folder: string, files: readonly NewFile[]): Promise<string | undefined> {
  const created: string[] = [];
  try {
    // What is secret is ignored before it exists.
    await addIgnored(folder, IGNORED);
    for (const { path, text, isSecret } of files) {
      const file = join(folder, path);
      const mode = isSecret ? { mode: OWNER_ONLY_FOLDER } : {};
      await mkdir(dirname(file), { recursive: true, ...mode });
      // Never over a file, and never through a link.
      await writeFile(file, text, { flag: 'wx', ...(isSecret ? { mode: OWNER_ONLY_FILE } : {}) });
      created.push(file);
    }
    return undefined;
  } catch (error) {
    for (const file of created) await rm(file, { force: true });
    return error instanceof Error ? error.message : 'unknown failure';
  }
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
          [
            'read the definitions of the upstream',
            commandLine(io, ['pin', 'fetch', ...config, name]),
          ],
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
    summary:
      'Write a configuration, a first policy and a key for one upstream, and fetch its definitions.',
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
        .option(
          '--group <name>',
          'group that may use what the policy grants; may be repeated',
          collect,
        )
        .option('--name <name>', 'name of the upstream (default: from its URL)')
        .option(
          '--public-url <url>',
          'URL of the gateway as clients see it (default: http://127.0.0.1:8080)',
        )
        .option(
          '--audience <audience>',
          'audience of tokens, if the issuer cannot mint the URL of the gateway',
        )
        .option(
          '--scope <name>',
          'scope that clients request at the issuer; may be repeated',
          collect,
        )
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
