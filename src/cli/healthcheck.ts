// `sallyport healthcheck`: asks the gateway of this machine whether it lives, for the container.
// Asks loopback only, unless the ops listener is bound to one other address. Contract §1 and §2.

import { resolve } from 'node:path';
import { InvalidArgumentError } from 'commander';
import { isWildcardHost } from '../config/addresses.js';
import type { Files } from '../config/files.js';
import { loadGateway } from '../config/load.js';
import { type CliIo, type Command, EXIT_FAILED, EXIT_FINE } from './program.js';

export const DEFAULT_OPS_PORT = 9464;
export const HEALTHCHECK_TIMEOUT_MS = 2000;

export type HealthcheckPorts = {
  readonly files: Pick<Files, 'readFile'>;
  /** The status of a GET. Rejects where nothing answers in time. */
  readonly fetchStatus: (url: string, timeoutMs: number) => Promise<number>;
};

export type HealthcheckOptions = { readonly config?: string; readonly port?: number };

/** Exit 0 where `/livez` answers 200, else 1: what container runtimes understand. */
export async function runHealthcheck(
  options: HealthcheckOptions,
  io: CliIo,
  ports: HealthcheckPorts,
): Promise<number> {
  const url = `http://${addressOf(options, io, ports)}/livez`;
  try {
    const status = await ports.fetchStatus(url, HEALTHCHECK_TIMEOUT_MS);
    if (status === 200) return EXIT_FINE;
    io.stderr(`error: ${url} answered ${status}\n`);
  } catch {
    io.stderr(`error: ${url} does not answer\n`);
  }
  return EXIT_FAILED;
}

function addressOf(options: HealthcheckOptions, io: CliIo, ports: HealthcheckPorts): string {
  const outline =
    options.config === undefined
      ? undefined
      : loadGateway(resolve(io.cwd, options.config), {
          readFile: ports.files.readFile,
          env: io.env,
          secrets: 'skip',
        }).outline;
  const host = outline?.opsHost;
  const port = options.port ?? outline?.opsPort ?? DEFAULT_OPS_PORT;
  if (host === undefined || isWildcardHost(host)) return `127.0.0.1:${port}`;
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

const MAX_PORT = 65_535;

function readPort(text: string): number {
  const port = /^[0-9]{1,5}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > MAX_PORT) throw new InvalidArgumentError('Expected a port.');
  return port;
}

export function healthcheckCommand(io: CliIo, ports: HealthcheckPorts): Command {
  return {
    name: 'healthcheck',
    summary: 'Ask the gateway of this machine whether it lives.',
    examples: ['sallyport healthcheck', 'sallyport healthcheck -c config/gateway.yaml'],
    configure(command, finish) {
      command
        .option('-c, --config <file>', 'a gateway file, for the address of its ops listener')
        .option('--port <port>', 'port of the ops listener', readPort)
        .action(async (options: HealthcheckOptions) =>
          finish(await runHealthcheck(options, io, ports)),
        );
    },
  };
}
