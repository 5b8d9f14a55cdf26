// Builds the command line from a table of commands: usage, help, suggestions and exit codes. It does not
// depend on any command and does no work of its own; process.ts passes file and network access to the commands.
// docs/contract.md §1: data to stdout, the rest to stderr, exit 0, 1 or 2.

import { Command as Commander, CommanderError, InvalidArgumentError, type Option } from 'commander';
import { nearestCandidate } from '../text/edit-distance.js';
import { escapeForTerminal, quoteForShell } from '../text/escaping.js';
import { exitCodesOf } from './exit-codes.js';

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
  const why =
    error.code === 'EADDRINUSE'
      ? 'is already in use'
      : `cannot be opened (${error.code ?? error.message})`;
  const message = `port ${port} on 127.0.0.1 ${why}; choose another port with --port`;
  return fail(message, EXIT_FAILED, io);
}

const ALWAYS_KNOWN = ['--help', '--version'];

/**
 * Describes the first long option that its command does not have; `undefined` if all are known. Called before
 * parsing, because commander would first report a missing required option, usually the misspelt one.
 */
export function describeUnknownOption(
  root: Commander,
  argv: readonly string[],
): string | undefined {
  let command = root;
  let isValue = false;
  for (const arg of argv) {
    if (arg === '--') return undefined;
    const option: Option | undefined = isValue ? undefined : findOption(command, arg);
    const isArgument = !isValue && option === undefined;
    if (isArgument && looksLikeOption(arg)) return describe(command, arg);
    if (isArgument) command = descend(command, arg);
    isValue = option !== undefined && takesNext(option, arg);
  }
  return undefined;
}

function descend(command: Commander, word: string): Commander {
  return command.commands.find((one) => one.name() === word) ?? command;
}

function findOption(command: Commander, arg: string): Option | undefined {
  const name = arg.split('=', 1)[0];
  return command.options.find(({ long, short }) => long === name || short === name);
}

function takesNext(option: Option, arg: string): boolean {
  return option.required && !arg.includes('=');
}

function looksLikeOption(arg: string): boolean {
  return arg.startsWith('--') && !ALWAYS_KNOWN.includes(arg);
}

function describe(command: Commander, arg: string): string {
  const name = arg.split('=', 1)[0] ?? arg;
  const known = command.options.flatMap(({ long }) => long ?? []);
  const nearest = nearestCandidate(name, known);
  return `error: unknown option '${name}'${nearest === undefined ? '' : `; did you mean "${nearest}"?`}`;
}

/** The parts of the process that a command may use. */
export type CliIo = {
  stdout(text: string): void;
  stderr(text: string): void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly isTty: boolean;
  /** The words that start this program in a shell, for the commands that it prints; `sallyport` if absent. */
  readonly program?: string;
  readStdin?(): Promise<string>;
};

/** A command line of this program that works when it is pasted into a POSIX shell in the current folder. */
export function commandLine(io: CliIo, args: readonly string[]): string {
  return [io.program ?? 'sallyport', ...args.map(quoteForShell)].join(' ');
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

/** True if output may be coloured: on a terminal without NO_COLOR (https://no-color.org). */
export function mayColor(io: Pick<CliIo, 'env' | 'isTty'>): boolean {
  return io.isTty && (io.env['NO_COLOR'] ?? '') === '';
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
  const unknownOption = describeUnknownOption(root, argv);
  if (unknownOption !== undefined) {
    io.stderr(`${escapeForTerminal(unknownOption)}\nRun with --help for usage.\n`);
    return EXIT_UNCHECKED;
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
      outputError: (text, write) => write(suggestChoice(suggestCommand(text))),
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

/** Rewrites commander's "(Did you mean --strict?)" to the wording of all other diagnostics. */
function suggestCommand(text: string): string {
  return text.replace(
    /\n\(Did you mean (?:one of )?([^?\n]+)\?\)/,
    (_, candidates: string) => `; did you mean "${candidates.split(', ').join('" or "')}"?`,
  );
}

/** Adds what was probably meant where an option or argument is none of its choices. */
function suggestChoice(text: string): string {
  return text.replace(
    /'([^']*)' is invalid(?: for argument '[^']*')?\. Allowed choices are ([^\n]+)\.$/m,
    (message, given: string, choices: string) => {
      const nearest = nearestCandidate(given, choices.split(', '));
      return nearest === undefined ? message : `${message} Did you mean "${nearest}"?`;
    },
  );
}

function codeOf(error: unknown, io: CliIo): number {
  // Requested help and version exit with 0; every other commander error is a usage error.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_FINE : EXIT_UNCHECKED;
  return fail(error instanceof Error ? error.message : 'unknown failure', EXIT_UNCHECKED, io);
}
