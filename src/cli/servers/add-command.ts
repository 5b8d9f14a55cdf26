// `sallyport add`: adds a server to a configuration folder, one that is reached by HTTP or one that a command starts, or the
// servers of a client's file. What is missing of its options is asked for on a terminal.
// docs/reference/commands.md#add-remove-and-list.

import { join, resolve } from 'node:path';
import { pendingOf } from '../../pins/approval.js';
import { escapeForTerminal } from '../../text/escaping.js';
import { countOf } from '../../text/wording.js';
import {
  type CliIo,
  type Command,
  commandLine,
  EXIT_FINE,
  EXIT_UNCHECKED,
  fail,
  UsageError,
  withConfigOption,
  withUsage,
} from '../program.js';
import { collectVariable } from '../stdio.js';
import { type AddCommandPorts, type AddOptions, addTo, type StdioCommand, stdioLine } from './add-by-kind.js';
import { type Added, shown } from './add-server.js';
import { type ExistingConfiguration, readConfiguration } from './configuration.js';
import { resourceOf, type ServerAnswers, serverPaths } from './drafts.js';
import { runImport } from './import-command.js';
import { askAll, groupsAsked, issuersAsked, namesIn, urlAsked } from './questions.js';
import {
  addServerOptions,
  NAME_RULE,
  optionalAnswers,
  readHeader,
  SERVER_NAME,
  validNameFor,
} from './server-options.js';
import { STDIO_FILE } from './stdio-file.js';

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
  if (configuration.outline.issuers.length === 0)
    return fail(
      'the gateway file has no issuer, whose tokens callers present; add one under "issuers" first',
      EXIT_UNCHECKED,
      io,
    );
  const command = argv.length === 0 ? undefined : commandOf(argv, options, io);
  const answers = await readAnswers(name, command, options, configuration, io, ports);
  if (answers === undefined) return EXIT_UNCHECKED;
  const added = await addTo(configuration, answers, command, options, io, ports);
  if (added === undefined) return EXIT_UNCHECKED;
  const code = await ports.validate(configuration.outline.file);
  if (code === EXIT_FINE) printNext(configuration, added, options.config, io, ports);
  return code;
}

function commandOf(argv: readonly string[], { env = [], cwd }: AddOptions, io: CliIo): StdioCommand {
  const values = env.map((variable) => [variable, { value: io.env[variable] ?? '' }] as const);
  return { argv, env: new Map(values), cwd: cwd === undefined ? undefined : resolve(io.cwd, cwd) };
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
    // The next command asks the server.
    ...(command === undefined
      ? []
      : [
          [
            `start the adapter of ${STDIO_FILE}, or start it anew, in a terminal of its own:`,
            stdioLine(layout.config, folder, io),
          ],
        ]),
    lock === undefined
      ? [`${read}, then fetch the definitions:`, commandLine(io, ['pin', 'fetch', ...of])]
      : [`${read}, then approve the ${countOf(pendingOf(lock).length, 'pending definition')}:`, approve],
  ];
  const steps = lines.map(([what, line], index) => `${index + 1}. ${what}\n   ${line}\n`);
  io.stdout(
    `\nNext:\n${steps.join('')}A running gateway serves it at ${resourceOf(outline.publicUrl, name)} within two seconds.\n`,
  );
}

export function addCommand(io: CliIo, ports: AddCommandPorts): Command {
  return {
    name: 'add',
    summary: 'Add a server to a configuration: its entry, a first policy with tests, and its definitions.',
    examples: [
      'sallyport add github --url https://github-mcp.internal/mcp --group eng',
      'sallyport add files --group eng -- npx -y @modelcontextprotocol/server-filesystem@2026.8.31 /srv/files',
      'sallyport add --from mcp.json --group eng --yes files github',
    ],
    configure(command, finish) {
      const collect = (value: string, before: readonly string[] = []) => [...before, value];
      addServerOptions(withConfigOption(command, io))
        .argument('[name]', 'name of the server: its path, and what its files are called')
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
        .option(
          '--from <file>',
          'file of a client: mcp.json, or that of Claude Desktop, Claude Code, VS Code or Cursor',
        )
        .option('--yes [names...]', 'ask no questions; with --from, the servers to add')
        .option('--offline', 'do not ask the server, and start no command')
        .action(async (name: string | undefined, argv: string[], options: AddOptions) =>
          finish(await withUsage(io, () => runOneOrMany(name, argv, options, io, ports))),
        );
    },
  };
}

function runOneOrMany(
  name: string | undefined,
  argv: readonly string[],
  options: AddOptions,
  io: CliIo,
  ports: AddCommandPorts,
): Promise<number> {
  const { from, yes } = options;
  if (from !== undefined) {
    const own = (['url', 'header', 'env', 'cwd', 'prefix', 'transport'] as const).find(
      (key) => options[key] !== undefined,
    );
    if (own !== undefined) throw new UsageError(`error: --${own} is for one server, and --from may have several\n`);
    if (name === undefined) return runImport({ ...options, from }, io, ports);
    throw new UsageError('error: --from takes the names of servers with --yes: add --from FILE --yes NAME…\n');
  }
  if (name === undefined || Array.isArray(yes))
    throw new UsageError(
      'error: say which server: add NAME --url URL, add NAME -- COMMAND, or add --from FILE; the name stands before --yes\n',
    );
  return runAdd(name, argv, options, io, ports);
}
