// `sallyport serve`: runs a gateway until it receives a signal, and prints one line per listener when ready. For invalid
// files it prints every diagnostic and opens nothing. All of that goes to standard error: standard output has audit lines
// alone. And `sallyport healthcheck`, which asks the gateway that runs on this machine whether it is alive, for container
// health checks: it connects to loopback only, unless the ops listener is bound to another address or URLs are given, as
// by the chart. docs/reference/commands.md#serve; docs/reference/listeners.md; docs/reference/configuration.md.

import { resolve } from 'node:path';
import { type Command as Commander, InvalidArgumentError, Option } from 'commander';
import { type Diagnostic, renderDiagnostics } from '../config/diagnostics.js';
import type { Files } from '../config/files.js';
import { makeVisible, urlHost } from '../text/escaping.js';
import {
  type CliIo,
  type Command,
  EXIT_FAILED,
  EXIT_FINE,
  EXIT_UNCHECKED,
  fail,
  findConfig,
  originOf,
  readPort,
  UsageError,
  withConfigOption,
  withUsage,
} from './program.js';

/** That of SIGTERM, as a shell reports it. */
const EXIT_TERMINATED = 143;

/** The part of a running gateway that this command uses. */
export type ServedGateway = {
  readonly listening: readonly {
    readonly listener: string;
    readonly host: string;
    readonly port: number;
    readonly isSecure: boolean;
  }[];
  reload(): Promise<unknown>;
  /** The controls in one line, and each in one. */
  controls(): { readonly sum: string; readonly each: readonly string[] };
  shutdownSettings(): { readonly delayMs: number };
  shutDown(delayMs: number): Promise<void>;
  hurry(): void;
  close(): Promise<void>;
};

const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
const LOG_FORMATS = ['json', 'text'] as const;

/** What the process log has and how it is written; an option that is absent has the default of its command. */
export type LogOptions = {
  readonly logLevel?: (typeof LOG_LEVELS)[number];
  readonly logFormat?: (typeof LOG_FORMATS)[number];
};

/** Adds the options of the process log to a command that runs a gateway. */
export function addLogOptions(command: Commander, level: LogOptions['logLevel']): Commander {
  return command
    .addOption(new Option('--log-level <level>', `lowest level that is logged (default: ${level})`).choices(LOG_LEVELS))
    .addOption(
      new Option(
        '--log-format <format>',
        'how log lines are written (default: text on a terminal, json otherwise)',
      ).choices(LOG_FORMATS),
    );
}

export type ServePorts = {
  start(
    file: string,
    log: LogOptions,
  ): Promise<
    | {
        readonly kind: 'started';
        readonly gateway: ServedGateway;
        readonly diagnostics: readonly Diagnostic[];
      }
    | { readonly kind: 'refused'; readonly diagnostics: readonly Diagnostic[] }
    | {
        readonly kind: 'failed';
        readonly message: string;
        readonly diagnostics: readonly Diagnostic[];
      }
  >;
  /** Writes lines as the process log has them, whatever its level is. */
  announce(texts: readonly string[], log: LogOptions): Promise<void>;
  /**
   * Resolves with the exit code on a termination signal. Calls `onReload` on each SIGHUP; without it SIGHUP is a
   * termination signal too. Calls `onNext` at the next signal.
   */
  untilSignal(onReload?: () => void, onNext?: () => void): Promise<number>;
};

type ServeOptions = LogOptions & {
  readonly config: string;
  /** Lists every control at the start. */
  readonly verbose?: boolean;
};

/**
 * Runs the gateway. The exit code is that of the signal that ended it, 2 if files are invalid, and 1 if
 * anything else prevents a complete start; in both error cases nothing stays open.
 */
async function runServe(options: ServeOptions, io: CliIo, ports: ServePorts): Promise<number> {
  const file = resolve(io.cwd, options.config);
  // A signal during the start must end the process too: as PID 1 of a container, it gets no default handler.
  let isEnding = false;
  let running: ServedGateway | undefined;
  const terminated = ports.untilSignal(
    () => void running?.reload(),
    () => running?.hurry(),
  );
  void terminated.then(() => {
    isEnding = true;
  });
  const started = await ports.start(file, options);
  io.stderr(renderDiagnostics(started.diagnostics, 'text', io.cwd));
  if (started.kind === 'refused') {
    const all = `sallyport validate -c ${options.config}`;
    const why = `not started: the configuration has errors (all of them: ${all})`;
    return fail(why, EXIT_UNCHECKED, io);
  }
  if (started.kind === 'failed') {
    if (isEnding) return terminated;
    return fail(`not started: ${makeVisible(started.message)}`, EXIT_FAILED, io);
  }
  const { gateway } = started;
  running = gateway;
  const lines = gateway.listening.map(
    ({ listener, host, port, isSecure }) =>
      `${listener} listening on ${isSecure ? 'https' : 'http'}://${urlHost(host)}:${port}`,
  );
  await ports.announce([...lines, ...controlLines(gateway, options)], options);
  const isRequested = isEnding;
  const code = await terminated;
  // Whoever presses a key waits for no balancer, and one that was never ready is in none.
  const isBalanced = code === EXIT_TERMINATED && !isRequested;
  await gateway.shutDown(isBalanced ? gateway.shutdownSettings().delayMs : 0);
  return code === 0 ? EXIT_FINE : code;
}

/** How many controls are armed, degraded and off, at the levels that log what is in order. */
function controlLines(gateway: ServedGateway, { verbose, logLevel = 'info' }: ServeOptions): readonly string[] {
  const { sum, each } = gateway.controls();
  if (verbose === true) return [...each, sum];
  return logLevel === 'warn' || logLevel === 'error' ? [] : [`${sum}; --verbose lists them`];
}

export function serveCommand(io: CliIo, ports: ServePorts): Command {
  return {
    name: 'serve',
    summary: 'Run the gateway.',
    examples: ['sallyport serve -c config/gateway.yaml'],
    configure(command, finish) {
      addLogOptions(withConfigOption(command, io), 'info')
        .option('--verbose', 'list every control at the start')
        .action(async (options: ServeOptions) => finish(await runServe(options, io, ports)));
    },
  };
}

const DEFAULT_OPS_PORT = 9464;
const HEALTHCHECK_TIMEOUT_MS = 2000;

type HealthcheckPorts = {
  readonly files: Pick<Files, 'readFile'>;
  /** The status of a GET, with another `Host` if given; accepts any certificate. Rejects if nothing answers in time. */
  readonly fetchStatus: (url: string, timeoutMs: number, host?: string) => Promise<number>;
  /** The gateway files of the gateways that run on this machine, as absolute paths, where they are known. */
  readonly servedConfigs: () => Promise<readonly string[]>;
};

type HealthcheckOptions = {
  readonly config?: string;
  readonly port?: number;
  readonly url?: readonly string[];
  readonly host?: string;
};

/** Exit 0 if every URL, by default `/livez` of this machine, responds with 200, else 1, as container runtimes expect. */
export async function runHealthcheck(options: HealthcheckOptions, io: CliIo, ports: HealthcheckPorts): Promise<number> {
  for (const url of options.url ?? [`${await readOpsOrigin(options, io, ports)}/livez`]) {
    const status = await ports.fetchStatus(url, HEALTHCHECK_TIMEOUT_MS, options.host).catch(() => undefined);
    if (status === undefined) return fail(`${url} does not answer`, EXIT_FAILED, io);
    if (status !== 200) return fail(`${url} answered ${status}`, EXIT_FAILED, io);
  }
  return EXIT_FINE;
}

/** Where the ops listener is reached. */
async function readOpsOrigin(options: HealthcheckOptions, io: CliIo, ports: HealthcheckPorts): Promise<string> {
  const config = options.config ?? (options.port === undefined ? await findServedConfig(io, ports) : undefined);
  const ops = config === undefined ? undefined : await readOpsListener(resolve(io.cwd, config), ports);
  const port = options.port ?? ops?.port ?? DEFAULT_OPS_PORT;
  return originOf(ops?.host ?? '127.0.0.1', port, ops?.tls !== undefined);
}

/** That of the gateway that runs, else the one that `serve` would take here, which of several has to be one of them. */
async function findServedConfig(io: CliIo, { servedConfigs }: HealthcheckPorts): Promise<string | undefined> {
  const served = await servedConfigs();
  if (served.length === 1) return served[0];
  const near = findConfig(io);
  if (served.length === 0 || (near !== undefined && served.includes(resolve(io.cwd, near)))) return near;
  const files = makeVisible([...served].sort().join(', '));
  throw new UsageError(`error: several gateways run on this machine (${files}); name one with -c FILE or --port\n`);
}

/**
 * The gateway file that the arguments of a process name, if it runs `serve` of this program; the first argument is the
 * one that runs the program, as node.
 */
export function configOfServe(given: readonly string[], isProgram: (path: string) => boolean): string | undefined {
  const [, program = '', command, ...options] = given;
  if (command !== 'serve' || !isProgram(program)) return undefined;
  const index = options.findIndex((option) => option === '-c' || option === '--config');
  if (index !== -1) return options[index + 1];
  const joined = options.find((option) => /^(?:-c.|--config=)/.test(option));
  return joined?.replace(/^(?:--config=|-c=?)/, '');
}

/** Loaded only if a file is named: containers run the check every few seconds, and reading YAML is expensive. */
async function readOpsListener(file: string, { files }: HealthcheckPorts) {
  const { loadListeners } = await import('../config/load.js');
  return loadListeners(file, files.readFile)?.ops;
}

/** @throws InvalidArgumentError, which is shown as a usage error. */
function collectUrl(text: string, before: readonly string[] = []): readonly string[] {
  if (!URL.canParse(text) || !/^https?:\/\//.test(text)) throw new InvalidArgumentError('Expected a URL.');
  return [...before, text];
}

export function healthcheckCommand(io: CliIo, ports: HealthcheckPorts): Command {
  return {
    name: 'healthcheck',
    summary: 'Check whether the gateway on this machine is alive.',
    examples: [
      'sallyport healthcheck',
      'sallyport healthcheck -c config/gateway.yaml',
      'sallyport healthcheck --url http://gateway-metrics:9464/readyz',
    ],
    configure(command, finish) {
      const description =
        'the gateway file, for the address of its ops listener; by default that of the gateway that runs';
      command
        .option('-c, --config <file>', description)
        .option('--port <port>', 'port of the ops listener', readPort)
        .option('--url <url>', 'ask this URL of a gateway elsewhere instead; may be repeated', collectUrl)
        .option('--host <host>', 'host of publicUrl, which the data listener expects where the URL has another')
        .action(async (options: HealthcheckOptions) =>
          finish(await withUsage(io, () => runHealthcheck(options, io, ports))),
        );
    },
  };
}
