// `sallyport serve`: runs a gateway until it receives a signal, and prints one line per listener when ready. For
// invalid files it prints every diagnostic and opens nothing. docs/contract.md §1 and §3.

import { resolve } from 'node:path';
import type { Diagnostic } from '../config/diagnostics.js';
import { renderDiagnostics } from '../config/diagnostics.js';
import { makeVisible } from '../text/escaping.js';
import { type CliIo, type Command, EXIT_FAILED, EXIT_FINE, EXIT_UNCHECKED } from './program.js';

/** The part of a running gateway that this command uses. */
export type ServedGateway = {
  readonly listening: readonly {
    readonly listener: string;
    readonly host: string;
    readonly port: number;
    readonly isSecure: boolean;
  }[];
  reload(): Promise<unknown>;
  close(): Promise<void>;
};

export type ServePorts = {
  /** `ending` is aborted if the process receives a termination signal during the start. */
  start(
    file: string,
    ending?: AbortSignal,
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
  /** Resolves with the exit code on a termination signal; calls `onReload` on each SIGHUP. */
  untilSignal(onReload: () => void): Promise<number>;
};

/**
 * Runs the gateway. The exit code is that of the signal that ended it, 2 if files are invalid, and 1 if
 * anything else prevents a complete start; in both error cases nothing stays open.
 */
export async function runServe(
  options: { readonly config: string },
  io: CliIo,
  ports: ServePorts,
): Promise<number> {
  const file = resolve(io.cwd, options.config);
  // A signal during the start must end the process too: as PID 1 of a container, it gets no default handler.
  const ending = new AbortController();
  let running: ServedGateway | undefined;
  const terminated = ports.untilSignal(() => void running?.reload());
  void terminated.then(() => ending.abort());
  const started = await ports.start(file, ending.signal);
  io.stderr(renderDiagnostics(started.diagnostics, 'text', io.cwd));
  if (started.kind === 'refused') {
    io.stderr(
      `error: not started: the configuration has errors (all of them: sallyport validate -c ${options.config})\n`,
    );
    return EXIT_UNCHECKED;
  }
  if (started.kind === 'failed') {
    if (ending.signal.aborted) return terminated;
    io.stderr(`error: not started: ${makeVisible(started.message)}\n`);
    return EXIT_FAILED;
  }
  const { gateway } = started;
  running = gateway;
  for (const { listener, host, port, isSecure } of gateway.listening) {
    const scheme = isSecure ? 'https' : 'http';
    io.stdout(
      `${listener} listening on ${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}\n`,
    );
  }
  const code = await terminated;
  await gateway.close();
  return code === 0 ? EXIT_FINE : code;
}

export function serveCommand(io: CliIo, ports: ServePorts): Command {
  return {
    name: 'serve',
    summary: 'Run the gateway.',
    examples: ['sallyport serve -c config/gateway.yaml'],
    configure(command, finish) {
      command
        .requiredOption('-c, --config <file>', 'the gateway file')
        .action(async (options: { config: string }) => finish(await runServe(options, io, ports)));
    },
  };
}
