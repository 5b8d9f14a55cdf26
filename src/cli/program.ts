// What every command is made of: what it may use of the process, and the command line, built from a table of commands
// (usage, help, suggestions, exit codes); the option -c of those that read a gateway file; and the one table of what each
// exit code means, which the page docs/guides/exit-codes.md is rendered from. Depends on no command; process.ts passes
// file and network access to the commands. docs/reference/commands.md: data to stdout, the rest to stderr, exit 0, 1 or
// 2.

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { Command as Commander, CommanderError, InvalidArgumentError } from 'commander';
import { escapeForTerminal, quoteForShell, urlHost } from '../text/escaping.js';
import { nearestCandidate } from '../text/wording.js';

/** The parts of the process that a command may use. */
export type CliIo = {
  stdout(text: string): void;
  stderr(text: string): void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly isTty: boolean;
  /** Columns of the terminal; absent where there is none. */
  readonly columns?: number | undefined;
  /** The words that start this program in a shell, for the commands that it prints; `sallyport` if absent. */
  readonly program?: string;
  readStdin?(): Promise<string>;
};

/** A command line of this program that works when it is pasted into a POSIX shell in the current folder. */
export function commandLine(io: CliIo, args: readonly string[]): string {
  return [io.program ?? 'sallyport', ...args.map(quoteForShell)].join(' ');
}

/** True if output may be coloured: on a terminal without NO_COLOR (https://no-color.org). */
export function mayColor(io: Pick<CliIo, 'env' | 'isTty'>): boolean {
  return io.isTty && (io.env['NO_COLOR'] ?? '') === '';
}

/** Exit codes: checked and fine; checked and failed; not checked (usage, missing file, unreachable). */
export const EXIT_FINE = 0;
export const EXIT_FAILED = 1;
export const EXIT_UNCHECKED = 2;

/** Prints why a command cannot go on, and returns its exit code. */
export function fail(message: string, code: number, io: CliIo): number {
  io.stderr(`error: ${message}\n`);
  return code;
}

/** Why a command cannot go on, as the complete text for stderr, and its exit code. */
export class UsageError extends Error {
  readonly code: number;

  constructor(text: string, code = EXIT_UNCHECKED) {
    super(text);
    this.code = code;
  }
}

/** Runs a command. If it throws a `UsageError`, that is printed and its exit code returned. */
export async function withUsage(io: CliIo, run: () => Promise<number>): Promise<number> {
  try {
    return await run();
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    io.stderr(error.message);
    return error.code;
  }
}

/** Receives the exit code of a command that ran. */
export type Finish = (code: number) => void;

export type Command = {
  readonly name: string;
  readonly summary: string;
  /** Complete command lines, shown first in the help. */
  readonly examples: readonly string[];
  /** Adds arguments, options, subcommands, and the action, which calls `finish`. */
  configure(command: Commander, finish: Finish): void;
};

type CommandTable = readonly Command[];

type Program = {
  /** Runs one command line, given without the program name, and resolves with the exit code. */
  run(argv: readonly string[]): Promise<number>;
};

/** Creates the program with these commands. */
export function buildProgram(io: CliIo, commands: CommandTable, version?: string): Program {
  return { run: (argv) => runOnce(io, commands, version, argv) };
}

async function runOnce(
  io: CliIo,
  commands: CommandTable,
  version: string | undefined,
  argv: readonly string[],
): Promise<number> {
  let code = EXIT_FINE;
  const root = buildRoot(io, version);
  for (const { name, summary, examples, configure } of commands) {
    const command = root.command(name).description(summary);
    showExamples(command, examples);
    configure(command, (finished) => {
      code = finished;
    });
    showExitCodes(command, name);
  }
  try {
    await root.parseAsync(argv, { from: 'user' });
  } catch (error) {
    return codeOf(error, io);
  }
  return code;
}

function buildRoot(io: CliIo, version: string | undefined): Commander {
  const root = new Commander('sallyport');
  root
    .description('A security gateway for MCP servers.')
    .exitOverride()
    .showHelpAfterError('Run with --help for usage.')
    .configureOutput({
      writeOut: (text) => io.stdout(text),
      writeErr: (text) => io.stderr(text),
      outputError: (text, write) => write(escapeLines(text)),
      getOutHasColors: () => mayColor(io),
      getErrHasColors: () => mayColor(io),
    });
  if (version !== undefined) root.version(version);
  return root;
}

function showExamples(command: Commander, examples: readonly string[]): void {
  if (examples.length === 0) return;
  const lines = examples.map((example) => `  ${example}\n`).join('');
  command.addHelpText('before', `Examples:\n${lines}`);
}

/** Adds the exit codes to the help of a command, or of each of its subcommands. */
function showExitCodes(command: Commander, name: string): void {
  for (const child of command.commands) showExitCodes(child, `${name} ${child.name()}`);
  if (command.commands.length > 0) return;
  const lines = exitCodesOf(name).map(([exit, meaning]) => `  ${exit}  ${meaning}\n`);
  command.addHelpText('after', `\nExit codes:\n${lines.join('')}`.trimEnd());
}

/** Commander quotes what it was given as it is. */
function escapeLines(text: string): string {
  return text.split('\n').map(escapeForTerminal).join('\n');
}

function codeOf(error: unknown, io: CliIo): number {
  // Requested help and version exit with 0; every other commander error is a usage error.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_FINE : EXIT_UNCHECKED;
  return fail(error instanceof Error ? error.message : 'unknown failure', EXIT_UNCHECKED, io);
}

/** `; did you mean "…"?`, or nothing where no name is near. Names are not escaped. */
export function didYouMean(name: string, known: Iterable<string>): string {
  const nearest = nearestCandidate(name, known);
  return nearest === undefined ? '' : `; did you mean "${nearest}"?`;
}

const VARIABLE = 'SALLYPORT_CONFIG';
/** The name under which `init` writes a gateway file. */
export const CONFIG_FILE = 'sallyport.yaml';
const DEFAULT_FILES = [CONFIG_FILE, 'config/gateway.yaml'] as const;

const ANY_ADDRESS: ReadonlySet<string> = new Set(['0.0.0.0', '::', '[::]']);

/** The origin under which this machine reaches a listener of its own. */
export function originOf(host: string, port: number, isSecure: boolean): string {
  const at = ANY_ADDRESS.has(host) ? '127.0.0.1' : urlHost(host);
  return `${isSecure ? 'https' : 'http'}://${at}:${port}`;
}

/**
 * The gateway file that is taken without -c, or `undefined` if there is none.
 *
 * @throws Error if the variable is set but empty: a file from the current folder is then not what was meant.
 */
export function findConfig(io: CliIo): string | undefined {
  const named = io.env[VARIABLE];
  if (named === '') {
    throw new Error(`${VARIABLE} is empty; set it to the gateway file, unset it, or use -c FILE`);
  }
  return named ?? DEFAULT_FILES.find((candidate) => existsSync(resolve(io.cwd, candidate)));
}

type ConfigUse = {
  /** Whether the command needs a gateway file with these arguments; by default it always does. */
  readonly isNeeded?: (args: readonly string[]) => boolean;
  /** The command works without a gateway file if there is none. */
  readonly isOptional?: boolean;
  readonly description?: string;
};

/** Adds -c to a command. Before its action runs, the option is filled in. */
export function withConfigOption(command: Commander, io: CliIo, use: ConfigUse = {}): Commander {
  const { description = 'the gateway file', isNeeded = () => true, isOptional = false } = use;
  const fallback = `$${VARIABLE}, else ${DEFAULT_FILES.join(', else ')}`;
  return command.option('-c, --config <file>', `${description} (default: ${fallback})`).hook('preAction', () => {
    if (command.getOptionValue('config') !== undefined || !isNeeded(command.args)) return;
    const found = findConfig(io);
    if (found !== undefined) command.setOptionValue('config', found);
    else if (!isOptional) {
      throw new Error(
        `no gateway file: ${DEFAULT_FILES.join(' and ')} do not exist here; ` +
          `name one with -c FILE or ${VARIABLE}, or write one with: sallyport init`,
      );
    }
  });
}

const MAX_PORT = 65_535;

/**
 * Reads a port from the command line.
 *
 * @throws InvalidArgumentError, which is shown as a usage error.
 */
export function readPort(text: string): number {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > MAX_PORT) throw new InvalidArgumentError('Expected a port.');
  return port;
}

/** Prints why a port of this machine cannot be opened, and returns the exit code. */
export function failToListen(port: number, error: NodeJS.ErrnoException, io: CliIo): number {
  const why = error.code === 'EADDRINUSE' ? 'is already in use' : `cannot be opened (${error.code ?? error.message})`;
  const message = `port ${port} on 127.0.0.1 ${why}; choose another port with --port`;
  return fail(message, EXIT_FAILED, io);
}

/**
 * Meanings by exit code: 129, 130, 141 and 143 are those of SIGHUP, SIGINT, SIGPIPE and SIGTERM, as a shell reports
 * them.
 */
type ExitCodes = { readonly [code in 0 | 1 | 2 | 129 | 130 | 141 | 143]?: string };

const DONE = 'Success.';
const NOT_DONE =
  'Not done or not checked: a usage error, an error in a file that the command needs, an unreadable file, or an unreachable server.';

const ADMIN_CODES = {
  1: 'The gateway refused: the role does not allow it, or there is no such issuer, upstream or id.',
  2: 'Not done: a usage error, no token, an address that is not known, or a gateway that does not answer or does not accept the token.',
} as const;

const APPROVAL_CODES = {
  1: 'The gateway refused: the role, the person or the token does not allow it, there is no such id, or the request no longer waits.',
  2: ADMIN_CODES[2],
} as const;

const NEEDS_CONFIG = 'The gateway file cannot be read or has errors';

/** By the words of the command. A command that is not here has the general codes 0 and 2. */
export const EXIT_CODES: { readonly [command: string]: ExitCodes } = {
  serve: {
    1: 'The start failed: a listener, a file or the audit log is not available.',
    2: 'The configuration has errors; nothing was started.',
    130: 'Ended by SIGINT, after draining.',
    143: 'Ended by SIGTERM, after draining.',
  },
  init: {
    0: 'The files were written and are valid.',
    1: 'The files were written, but `validate` found errors.',
    2: 'Nothing was written: an option is missing or invalid, a file exists already, or the issuer or the upstream cannot be reached.',
  },
  add: {
    0: 'The server was added, and the configuration is valid.',
    1: 'The server was added, but `validate` found errors; with `--from`, or a chosen server was not added.',
    2: 'Nothing was written: an option is missing or invalid, the name or a file exists already, the gateway file has errors or cannot be edited, or the server cannot be listed.',
  },
  remove: {
    0: 'The server was removed, or with `--dry-run` could be.',
    1: 'Nothing was removed: an endpoint or a rule still needs the server, or it is the only one.',
  },
  dev: {
    0: 'With --exit: every outcome of the tour was as expected.',
    1: 'An outcome of the tour was not as expected, or the gateway could not start.',
    2: 'No server could be listed, or an option or a file is wrong.',
    129: 'Ended because the terminal was closed.',
    130: 'Ended by SIGINT.',
    143: 'Ended by SIGTERM.',
  },
  demo: {
    0: 'With --exit or --scene: every outcome was as expected.',
    1: 'An outcome was not as expected, or the gateway could not start.',
    2: 'There is no such scene, or an option is wrong.',
    129: 'Ended because the terminal was closed.',
    130: 'Ended by SIGINT.',
    143: 'Ended by SIGTERM.',
  },
  stdio: {
    1: 'The address is in use, or cannot be listened on.',
    129: 'Ended because the terminal was closed.',
    130: 'Ended by SIGINT.',
    143: 'Ended by SIGTERM.',
  },
  'demo-server': {
    1: 'The port is in use.',
    129: 'Ended because the terminal was closed.',
    130: 'Ended by SIGINT.',
    143: 'Ended by SIGTERM.',
  },
  'demo-issuer': {
    1: 'The port is in use.',
    129: 'Ended because the terminal was closed.',
    130: 'Ended by SIGINT.',
    143: 'Ended by SIGTERM.',
  },
  'dev-issuer': {
    1: 'The port is in use.',
    2: 'The users file or the key file cannot be used.',
    129: 'Ended because the terminal was closed.',
    130: 'Ended by SIGINT.',
    143: 'Ended by SIGTERM.',
  },
  'dev-issuer user': {
    0: 'The user was written to the users file.',
    2: 'Nothing was written: a name, a password or a group is invalid, or the users file cannot be used.',
  },
  'dev-issuer token': {
    0: 'The token was printed.',
    1: 'The issuer refused: a wrong name or password, too many failed logins, or a resource that is no URL.',
    2: 'No development issuer answers.',
  },
  validate: {
    0: 'No errors; with --online, no try failed.',
    1: 'Errors, or a try of --online that failed; with --strict, warnings too.',
    2: 'A file cannot be read.',
  },
  test: {
    0: 'Every case is decided as expected.',
    1: 'A case is decided differently, or a smaller share of the rules than `--min-coverage` decides a case.',
    2: 'A gateway file, policy, lock file or test file cannot be read or has errors.',
  },
  'explain call': {
    0: 'The decision was explained, whether it allows or denies.',
    2: 'A gateway file, policy or lock file cannot be read or has errors, or the call is not described in full.',
  },
  'explain decision': {
    0: 'The decision was explained.',
    1: 'The audit files have no such decision, or policy rules did not make it.',
    2: 'A gateway file, policy, lock file or audit file cannot be read or has errors.',
  },
  access: {
    0: 'The table was printed, whoever may use what.',
    2: 'A gateway file, policy or lock file cannot be read or has errors, or no such tool or caller is known.',
  },
  replay: {
    0: 'No decision is known to change; with `--suggest`, the policy was printed.',
    1: 'Decisions would change.',
    2: 'A gateway file, policy or lock file has errors, or an audit file cannot be read or was altered.',
  },
  'pin fetch': {
    0: 'The lock files contain the definitions of the upstreams.',
    1: 'A definition cannot be pinned, or was not approved because of a finding of the scan; all others were written.',
    2: `${NEEDS_CONFIG}, a lock file cannot be read or written, or an upstream could not be listed.`,
  },
  'pin diff': {
    0: 'Everything was compared, with or without differences.',
    2: `${NEEDS_CONFIG}, or an upstream could not be listed.`,
  },
  'pin verify': {
    0: 'No drift. Pending definitions are printed but do not count.',
    1: 'Drift, or a lock file without the required signatures.',
    2: `No drift was found, but not everything could be checked. ${NEEDS_CONFIG}, or an upstream could not be listed.`,
  },
  'pin approve': {
    0: 'Every named definition is approved, or was not pending.',
    1: 'A definition was refused: it is not in the lock file, is blocked, has changed, or has a finding of the scan that was not accepted.',
    2: `${NEEDS_CONFIG}, no approver is named, or a name or digest is ambiguous.`,
  },
  'pin block': {
    0: 'The name is blocked.',
    1: 'The lock file has no such name.',
    2: `${NEEDS_CONFIG}, or the lock file cannot be read or written.`,
  },
  'pin sign': {
    0: 'Every named lock file has a valid signature with the key.',
    1: 'A lock file does not exist, or its counter is not known.',
    2: `${NEEDS_CONFIG}, the key cannot be used, or a lock file cannot be read or its signature written.`,
  },
  'audit tail': { 2: 'No audit file is named, or it cannot be read.' },
  'audit query': { 2: 'No audit file is named, or it cannot be read.' },
  'audit show': {
    1: 'No event and no decision has this id.',
    2: 'No audit file is named, or it cannot be read.',
  },
  'audit verify': {
    0: 'The chain is complete, and all of it was checked.',
    1: 'The chain was altered or is damaged.',
    2: 'Not checked: an older file or a key is missing, or a file cannot be read.',
  },
  'audit hash': { 2: `${NEEDS_CONFIG}, or names no key.` },
  ...Object.fromEntries(
    [
      ...['tool', 'prompt', 'template', 'resource', 'upstream', 'subject', 'client', 'everything'],
      ...['token', 'token-digest', 'tokens', 'session'],
    ].map((target) => [`block ${target}`, ADMIN_CODES]),
  ),
  'block list': { 2: ADMIN_CODES[2] },
  unblock: ADMIN_CODES,
  'approvals list': { 2: ADMIN_CODES[2] },
  ...Object.fromEntries(['show', 'grant', 'deny'].map((verb) => [`approvals ${verb}`, APPROVAL_CODES])),
  assure: {
    0: 'The rows were printed, whatever the state of the controls.',
    1: 'The gateway refused: the role does not allow it.',
    2: `${NEEDS_CONFIG}, or a gateway that was to be asked does not answer or does not accept the token.`,
  },
  'keys public': {
    1: 'The file is not a gateway key, or the gateway file has errors.',
    2: 'The file cannot be read.',
  },
  healthcheck: {
    0: 'The gateway answers.',
    1: 'The gateway does not answer, or not with 200.',
    2: 'Several gateways run on this machine, and none was named.',
  },
};

/** The codes of one command in ascending order: its own, and 0 and 2, which every command has. */
export function exitCodesOf(command: string): readonly (readonly [string, string])[] {
  return Object.entries({ 0: DONE, 2: NOT_DONE, ...EXIT_CODES[command] });
}
