// `sallyport serve`: runs a gateway until it is told to end. One line for each listener when ready; a
// file with mistakes is reported whole, and then nothing is opened. docs/contract.md §1 and §3.

import { resolve } from 'node:path';
import type { Diagnostic } from '../config/diagnostics.js';
import { renderDiagnostics } from '../config/diagnostics.js';
import { makeVisible } from '../text/escaping.js';
import { type CliIo, type Command, EXIT_FAILED, EXIT_FINE, EXIT_UNCHECKED } from './program.js';

/** A gateway as this command needs it. */
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
  /** `ending` is aborted when the process is told to end meanwhile. */
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
  /** Resolves with the exit code when the process was told to end; calls `onReload` at each SIGHUP. */
  untilSignal(onReload: () => void): Promise<number>;
};

/**
 * Serves. The exit code is that of the signal that ended it; 2 when the files are wrong; 1 when something
 * else stands in the way of a whole start, and then nothing is left open.
 */
export async function runServe(
  options: { readonly config: string },
  io: CliIo,
  ports: ServePorts,
): Promise<number> {
  const file = resolve(io.cwd, options.config);
  // Told to end while it starts, it ends as well: as the first process of a container, nothing else ends it.
  const ending = new AbortController();
  let running: ServedGateway | undefined;
  const terminated = ports.untilSignal(() => void running?.reload());
  void terminated.then(() => ending.abort());
  const started = await ports.start(file, ending.signal);
  io.stderr(renderDiagnostics(started.diagnostics, 'text', io.cwd));
  if (started.kind === 'refused') {
    io.stderr(
      `error: nothing was started; mend the file, or run: sallyport validate -c ${options.config}\n`,
    );
    return EXIT_UNCHECKED;
  }
  if (started.kind === 'failed') {
    if (ending.signal.aborted) return terminated;
    io.stderr(`error: nothing was started: ${makeVisible(started.message)}\n`);
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

/** The command `serve`. */
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
