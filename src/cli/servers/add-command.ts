// `sallyport add`: adds a server to a configuration folder, one that is reached by HTTP or one that a command starts. What
// is missing of its options is asked for on a terminal. A command is shown and started once, by the adapter that serves
// stdio servers, to fetch its definitions. docs/reference/commands.md#add-remove-and-list.

import { join, posix } from 'node:path';
import type { Network } from '../../config/settings.js';
import { pendingOf } from '../../pins/approval.js';
import type { ProcessPorts } from '../../stdio/server-process.js';
import { escapeForTerminal, quoteForShell } from '../../text/escaping.js';
import { countOf } from '../../text/wording.js';
import { type DevTarget, startCommand } from '../dev-target.js';
import type { NewFile } from '../new-files.js';
import { type PinPorts, readContent } from '../pin/lock-files.js';
import {
  type CliIo,
  type Command,
  commandLine,
  EXIT_FINE,
  EXIT_UNCHECKED,
  fail,
  withConfigOption,
} from '../program.js';
import { collectVariable, newStdioToken } from '../stdio.js';
import { type Added, addServer, type NewServer, shown } from './add-server.js';
import { type ExistingConfiguration, readConfiguration } from './configuration.js';
import { resourceOf, type ServerAnswers, type ServerHeader, serverPaths } from './drafts.js';
import { type Asked, askAll, groupsAsked, namesIn, type Questions, urlAsked } from './questions.js';
import {
  addServerOptions,
  NAME_RULE,
  optionalAnswers,
  readHeader,
  SERVER_NAME,
  type ServerOptions,
  validNameFor,
} from './server-options.js';
import { NEW_STDIO_TEXT, readStdioAddress, STDIO_FILE, withStdioServer } from './stdio-file.js';

type AddOptions = ServerOptions & {
  readonly config: string;
  /** Names of issuers in the gateway file. */
  readonly issuer?: readonly string[];
  readonly endpoint?: string;
  readonly prefix?: string;
  readonly env?: readonly string[];
  readonly cwd?: string;
  readonly yes?: boolean;
};

export type AddCommandPorts = Pick<PinPorts, 'files' | 'observe' | 'gitIdentity'> &
  Pick<ProcessPorts, 'signalGroup' | 'killMarked'> & {
    /** Absent where stdin is no terminal. */
    readonly questions?: (() => Questions) | undefined;
    /** The narrowest network that contains what the host of a URL resolves to. */
    networkOf(url: string): Promise<Network>;
    /** Runs `validate` on a gateway file; resolves with its exit code. */
    validate(file: string): Promise<number>;
  };

/** A command with the values of the variables that it gets. */
export type StdioCommand = {
  readonly argv: readonly string[];
  readonly env: ReadonlyMap<string, string>;
  readonly cwd?: string | undefined;
};

/** Exit 2: something is missing, exists or cannot be reached; nothing was written. */
async function runAdd(
  name: string,
  argv: readonly string[],
  options: AddOptions,
  io: CliIo,
  ports: AddCommandPorts,
): Promise<number> {
  const mistake = findMistake(name, argv, options, io);
  if (mistake !== undefined) return fail(mistake, EXIT_UNCHECKED, io);
  const configuration = readConfiguration(options.config, io, ports.files);
  if (configuration === undefined) return EXIT_UNCHECKED;
  if (configuration.outline.upstreams.some((one) => one.name === name))
    return fail(`the gateway file has a server named "${name}" already`, EXIT_UNCHECKED, io);
  const env = new Map(options.env?.map((variable) => [variable, io.env[variable] ?? '']));
  const command = argv.length === 0 ? undefined : { argv, env, cwd: options.cwd };
  const answers = await readAnswers(name, command, options, configuration, io, ports);
  if (answers === undefined) return EXIT_UNCHECKED;
  const added = await addTo(configuration, answers, command, options, io, ports);
  if (added === undefined) return EXIT_UNCHECKED;
  const code = await ports.validate(configuration.outline.file);
  if (code === EXIT_FINE) printNext(configuration, added, options.config, io, ports);
  return code;
}

function findMistake(
  name: string,
  argv: readonly string[],
  { url, env = [], cwd, prefix, endpoint }: AddOptions,
  io: CliIo,
): string | undefined {
  if (!SERVER_NAME.test(name)) {
    const valid = validNameFor(name);
    return `the name of a server ${NAME_RULE}${valid === undefined ? '' : `; how about ${valid}?`}`;
  }
  if (url !== undefined && argv.length > 0) return 'a server has a --url, or a command after --, not both';
  if (argv.length === 0 && (env.length > 0 || cwd !== undefined)) return '--env and --cwd are for a command after --';
  if (prefix !== undefined && endpoint === undefined) return '--prefix is for --endpoint';
  const unset = env.find((variable) => io.env[variable] === undefined);
  return unset && `--env ${escapeForTerminal(unset)}: the variable is not set`;
}

/** What is not known of a server is asked; `undefined` if a mistake or what is missing was printed. */
async function readAnswers(
  name: string,
  command: StdioCommand | undefined,
  options: AddOptions,
  { outline }: ExistingConfiguration,
  io: CliIo,
  ports: Pick<AddCommandPorts, 'questions' | 'networkOf'>,
): Promise<ServerAnswers | undefined> {
  const header = readHeader(options.header, name, io);
  if (header === 'invalid') return undefined;
  const questions = options.yes === true ? undefined : ports.questions?.();
  try {
    const asked = [
      ...(command === undefined ? [urlAsked(options.url)] : []),
      issuersAsked(options.issuer, outline.issuers),
      groupsAsked(options.group),
    ];
    const given = await askAll(asked, questions, 'add', io);
    if (given === undefined) return undefined;
    const [url = '', issuers = '', groups = ''] = command === undefined ? given : ['', ...given];
    return {
      ...{ name, url, header },
      network: command === undefined ? await ports.networkOf(url) : 'loopback',
      issuers: namesIn(issuers),
      groups: options.group?.filter((group) => group.trim() !== '') ?? namesIn(groups),
      ...optionalAnswers(options),
    };
  } finally {
    questions?.close();
  }
}

/** The only issuer of the gateway file needs no question. */
function issuersAsked(given: readonly string[] | undefined, known: readonly string[]): Asked {
  const [only, ...others] = known;
  const unknown = (text: string): string | undefined => namesIn(text).find((name) => !known.includes(name));
  return {
    flag: '--issuer',
    question: `Issuers of the tokens of callers (of ${known.join(', ')}, separated by commas)`,
    given: given?.join(',') ?? (others.length === 0 ? only : undefined),
    findError(text) {
      if (namesIn(text).length === 0) return `name one issuer or more of: ${known.join(', ')}`;
      const name = unknown(text);
      return name && `the gateway file has no issuer "${escapeForTerminal(name)}", but: ${known.join(', ')}`;
    },
  };
}

/** Adds a server of whichever kind; `undefined` with the reason printed. */
export async function addTo(
  configuration: ExistingConfiguration,
  answers: ServerAnswers,
  command: StdioCommand | undefined,
  options: Pick<AddOptions, 'offline' | 'endpoint' | 'prefix'>,
  io: CliIo,
  ports: AddCommandPorts,
): Promise<Added | undefined> {
  const { endpoint, prefix } = options;
  const backend = prefix === undefined ? '{}' : `{prefix: ${prefix}}`;
  const entries =
    endpoint === undefined ? [] : [{ path: ['endpoints', endpoint, 'upstreams'], key: answers.name, value: backend }];
  const how = { command: 'add', isOffline: options.offline === true } as const;
  if (command === undefined) return addServer(configuration, { answers, entries }, how, io, ports);
  const server = stdioServer(configuration, answers, command, io, ports);
  if (server === undefined) return undefined;
  if (how.isOffline) return addServer(configuration, { ...server, entries }, how, io, ports);
  io.stdout(`starting   ${escapeForTerminal(command.argv.map(quoteForShell).join(' '))}\n`);
  const target = await startOnce(command, io, ports);
  try {
    const observe: AddCommandPorts['observe'] = async (upstream, gateway) => {
      const seen = await ports.observe(upstream, gateway);
      if (seen.kind === 'observed') return seen;
      return {
        ...seen,
        why: (await target.explain(`error: ${answers.name} could not be listed: ${seen.why}`)) ?? seen.why,
      };
    };
    const found = { ...server, entries, fetchedAt: placeOf(target) };
    return await addServer(configuration, found, how, io, { ...ports, observe });
  } finally {
    await target.close();
  }
}

/** The adapter in this process, with nothing in the environment of the command but what it needs. */
function startOnce({ argv, env, cwd }: StdioCommand, io: CliIo, ports: AddCommandPorts): Promise<DevTarget> {
  const own = { ...io, env: { ...io.env, ...Object.fromEntries(env) }, cwd: cwd ?? io.cwd };
  return startCommand({ env: [...env.keys()] }, argv, own, ports);
}

/** Where the gateway file of the fetch finds the adapter in this process. The file of the token is never written. */
function placeOf({ server: { url, header } }: DevTarget) {
  const from = { file: 'secrets/stdio.token.once', value: header?.value ?? '' };
  return { url, socket: undefined, network: 'loopback', header: { name: 'Authorization', from } } as const;
}

/** What a stdio server adds to the files: its entry in the file of the adapter, the token of that, and its variables. */
function stdioServer(
  { layout, folder }: ExistingConfiguration,
  answers: ServerAnswers,
  { argv, env, cwd }: StdioCommand,
  io: CliIo,
  { files }: AddCommandPorts,
): NewServer | undefined {
  const { name } = answers;
  const base = posix.dirname(layout.config);
  const path = posix.join(base, STDIO_FILE);
  const found = readContent(posix.join(folder, path), { files } as PinPorts);
  if (found === 'unreadable') {
    io.stderr(`error: ${STDIO_FILE} cannot be read\n`);
    return undefined;
  }
  const before = found === 'missing' ? NEW_STDIO_TEXT : found.text;
  const address = readStdioAddress(before);
  const variables = [...env].map(([variable, value]) => ({ variable, value, file: `secrets/${name}.${variable}` }));
  const entry = { command: argv, env: new Map(variables.map(({ variable, file }) => [variable, file])), cwd };
  const edit = withStdioServer(before, name, entry);
  if ('error' in address || 'error' in edit) {
    const why = 'error' in address ? address.error : 'error' in edit ? edit.error : '';
    io.stderr(`error: ${STDIO_FILE}: ${why}\n`);
    return undefined;
  }
  const secrets = variables.map(
    ({ file, value }): NewFile => ({ path: posix.join(base, file), text: `${value}\n`, isSecret: true }),
  );
  const isNew = found === 'missing';
  const header: ServerHeader = {
    name: 'Authorization',
    from: { file: address.token, ...(isNew ? { value: `Bearer ${newStdioToken()}` } : {}) },
  };
  return {
    answers: {
      ...answers,
      url: `${address.at.origin}/${name}`,
      socket: address.at.socket,
      header,
      command: argv,
      requestTimeout: '2m',
    },
    files: [...secrets, ...(isNew ? [{ path, text: edit.text, isSecret: false }] : [])],
    changed: isNew ? [] : [{ path, before, text: edit.text }],
  };
}

/** What to do next, in a few lines. */
function printNext(
  { layout, outline, folder }: ExistingConfiguration,
  { answers, lock }: Added,
  config: string,
  io: CliIo,
  ports: AddCommandPorts,
): void {
  const { name, command } = answers;
  const paths = serverPaths(layout, name);
  const by = ports.gitIdentity?.() === undefined ? ' --by "$(id -un)"' : '';
  const of = ['-c', config, name];
  const approve = `${commandLine(io, ['pin', 'approve', ...of, '--all'])}${by}`;
  const read = `read ${[paths.policy, ...(lock === undefined ? [] : [paths.lock])].map((path) => shown(join(folder, path), io)).join(' and ')}`;
  const lines = [
    lock === undefined
      ? [`${read}, then fetch the definitions:`, commandLine(io, ['pin', 'fetch', ...of])]
      : [`${read}, then approve the ${countOf(pendingOf(lock).length, 'pending definition')}:`, approve],
    ...(command === undefined
      ? []
      : [[`start the adapter of ${STDIO_FILE}, or start it anew:`, stdioLine(layout.config, folder, io)]]),
  ];
  const steps = lines.map(([what, line], index) => `${index + 1}. ${what}\n   ${line}\n`);
  io.stdout(
    `\nNext:\n${steps.join('')}A running gateway serves it at ${resourceOf(outline.publicUrl, name)} within two seconds.\n`,
  );
}

function stdioLine(config: string, folder: string, io: CliIo): string {
  const file = shown(join(folder, posix.dirname(config), STDIO_FILE), io);
  return commandLine(io, ['stdio', '--config', file]);
}

export function addCommand(io: CliIo, ports: AddCommandPorts): Command {
  return {
    name: 'add',
    summary: 'Add a server to a configuration: its entry, a first policy with tests, and its definitions.',
    examples: [
      'sallyport add github --url https://github-mcp.internal/mcp --group eng',
      'sallyport add files --group eng -- npx -y @modelcontextprotocol/server-filesystem@2026.8.31 /srv/files',
    ],
    configure(command, finish) {
      const collect = (value: string, before: readonly string[] = []) => [...before, value];
      addServerOptions(withConfigOption(command, io))
        .argument('<name>', 'name of the server: its path, and what its files are called')
        .argument('[command...]', 'the command that starts a stdio server, after --')
        .option('--issuer <name>', 'issuer in the gateway file, if it has several; may be repeated', collect)
        .option('--endpoint <name>', 'endpoint of several servers that gets this one too')
        .option('--prefix <prefix>', 'prefix of its tools there (default: its name and _)')
        .option(
          '--env <name>',
          'environment variable that the command gets too; its value is kept in a file',
          collectVariable,
        )
        .option('--cwd <folder>', 'folder that the command is started in')
        .option('--yes', 'ask no questions')
        .option('--offline', 'do not ask the server, and start no command')
        .action(async (name: string, argv: string[], options: AddOptions) =>
          finish(await runAdd(name, argv, options, io, ports)),
        );
    },
  };
}
