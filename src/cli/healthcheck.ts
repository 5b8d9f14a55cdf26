// `sallyport healthcheck`: queries the liveness of the gateway on this machine, for container health checks.
// Connects to loopback only, unless the ops listener is bound to another address. docs/contract.md §1 and §2.

import { resolve } from 'node:path';
import type { Files } from '../config/files.js';
import type { Outline } from '../config/load.js';
import {
  type CliIo,
  type Command,
  EXIT_FAILED,
  EXIT_FINE,
  fail,
  originOf,
  readPort,
  withConfigOption,
} from './program.js';

const DEFAULT_OPS_PORT = 9464;
const HEALTHCHECK_TIMEOUT_MS = 2000;

type HealthcheckPorts = {
  readonly files: Pick<Files, 'readFile'>;
  /** The status of a GET; accepts any certificate. Rejects if there is no response in time. */
  readonly fetchStatus: (url: string, timeoutMs: number) => Promise<number>;
};

type HealthcheckOptions = { readonly config?: string; readonly port?: number };

/** Exit 0 if `/livez` responds with 200, else 1, as container runtimes expect. */
export async function runHealthcheck(
  options: HealthcheckOptions,
  io: CliIo,
  ports: HealthcheckPorts,
): Promise<number> {
  const url = `${await readOrigin(options, io, ports)}/livez`;
  try {
    const status = await ports.fetchStatus(url, HEALTHCHECK_TIMEOUT_MS);
    if (status === 200) return EXIT_FINE;
    return fail(`${url} answered ${status}`, EXIT_FAILED, io);
  } catch {
    return fail(`${url} does not answer`, EXIT_FAILED, io);
  }
}

async function readOrigin(
  options: HealthcheckOptions,
  io: CliIo,
  ports: HealthcheckPorts,
): Promise<string> {
  const outline =
    options.config === undefined ? undefined : await readOutline(options.config, io, ports);
  const port = options.port ?? outline?.opsPort ?? DEFAULT_OPS_PORT;
  return originOf(outline?.opsHost ?? '127.0.0.1', port, outline?.isOpsSecure === true);
}

/** Loaded only if a file is named: containers run the check every few seconds, and reading YAML is expensive. */
async function readOutline(
  config: string,
  io: CliIo,
  ports: HealthcheckPorts,
): Promise<Outline | undefined> {
  const { loadGateway } = await import('../config/load.js');
  const { readFile } = ports.files;
  return loadGateway(resolve(io.cwd, config), { readFile, env: io.env, secrets: 'skip' }).outline;
}

export function healthcheckCommand(io: CliIo, ports: HealthcheckPorts): Command {
  return {
    name: 'healthcheck',
    summary: 'Check whether the gateway on this machine is alive.',
    examples: ['sallyport healthcheck', 'sallyport healthcheck -c config/gateway.yaml'],
    configure(command, finish) {
      const description = 'the gateway file, for the address of its ops listener';
      const isNeeded = (): boolean => command.getOptionValue('port') === undefined;
      withConfigOption(command, io, { description, isNeeded, isOptional: true })
        .option('--port <port>', 'port of the ops listener', readPort)
        .action(async (options: HealthcheckOptions) =>
          finish(await runHealthcheck(options, io, ports)),
        );
    },
  };
}
