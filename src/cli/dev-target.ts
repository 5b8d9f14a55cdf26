// The server that `sallyport dev` puts the gateway in front of: one that is reached by HTTP, or one that a command
// starts, which the adapter of `sallyport stdio` then serves from this process. Also says why a server could not be
// listed. docs/contract.md §1.

import { join } from 'node:path';
import { InvalidArgumentError } from 'commander';
import { networkOfHost } from '../config/checks/addresses.js';
import { type DevServer, HEADER_FILES } from '../dev/files.js';
import { describeProbe, probeServer } from '../dev/probe.js';
import { STDIO_PATH, startStdioServer } from '../stdio/server.js';
import { type ProcessEnd, type ProcessPorts, serverEnvironment } from '../stdio/server-process.js';
import { escapeForTerminal, quoteForShell } from '../text/escaping.js';
import type { CliIo } from './program.js';
import { DEFAULT_STDIO_PORT, newStdioToken } from './stdio.js';

type Header = { readonly name: string; readonly value: string };

export type TargetOptions = {
  /** A header that the upstream gets with every request. */
  readonly header?: Header;
  readonly transport?: string;
  readonly network?: 'public' | 'private' | 'loopback';
  /** Environment variables that the command gets too. */
  readonly env?: readonly string[];
  /** Folder for the files of a production setup. */
  readonly save?: string;
};

export type DevTarget = {
  readonly server: DevServer;
  /** The server as `--save` writes it, with a line about it. */
  readonly saved: { readonly server: DevServer; readonly note?: string };
  /** The command that serves it to a gateway of its own, safe on a terminal; absent if it is reached by HTTP. */
  readonly startedBy?: string;
  /** What it is called, safe on a terminal. */
  readonly shown: string;
  /** Why it could not be listed, if more is known than the listing printed. */
  explain(printed: string): Promise<string | undefined>;
  close(): Promise<void>;
};

export const HTTP_SSE = 'http-sse';
/** Each client has a session, and so has the gateway's own listing. */
const MAX_SESSIONS = 32;
/** The first start of a command may have to download it. */
const COMMAND_TIMEOUT = '2m';

/** One header, because the gateway file has one for each upstream. */
export function readHeader(text: string, before: Header | undefined): Header {
  if (before !== undefined) throw new InvalidArgumentError('Give one header.');
  const [, name, value] = /^([\w!#$%&'*+.^`|~-]+):[ \t]*(\S.*?)[ \t]*$/.exec(text) ?? [];
  if (name === undefined || value === undefined)
    throw new InvalidArgumentError("Expected 'Name: value'.");
  return { name, value };
}

/** The network of an address; a name is assumed to be public unless `--network` is given. */
export function networkOfUrl(
  url: string,
  given: TargetOptions['network'],
): 'public' | 'private' | 'loopback' {
  const network = given ?? networkOfHost(new URL(url).hostname);
  return network === undefined || network === 'none' ? 'public' : network;
}

export function targetOfUrl(
  upstream: string,
  { header, transport, network }: TargetOptions,
): DevTarget {
  const url = new URL(upstream);
  const server = {
    url: url.href,
    network: networkOfUrl(upstream, network),
    transport,
    header: header && { ...header, file: HEADER_FILES.http },
  };
  return {
    server,
    saved: { server },
    shown: escapeForTerminal(`${url.origin}${url.pathname}`),
    async explain() {
      const probed = { url, header, isLegacySse: transport === HTTP_SSE };
      return describeProbe(probed, await probeServer(probed));
    },
    close: () => Promise.resolve(),
  };
}

/** Starts the adapter; nothing of this process's environment reaches the command but what it needs. */
export async function startCommand(
  { env = [], save = '.' }: TargetOptions,
  [command = '', ...args]: readonly string[],
  io: CliIo,
  signalGroup: ProcessPorts['signalGroup'],
): Promise<DevTarget> {
  let firstEnd: ProcessEnd | undefined;
  const token = newStdioToken();
  const settings = {
    command: { command, args, cwd: io.cwd, env: serverEnvironment(io.env, env) },
    ...{ address: { host: '127.0.0.1', port: 0 }, token, maxSessions: MAX_SESSIONS },
  };
  const adapter = await startStdioServer(settings, {
    signalGroup,
    log: (line) => io.stderr(`${line}\n`),
    onProcessEnd: (end) => {
      firstEnd ??= end;
    },
  });
  const serverAt = (port: number, bearer: string): DevServer => ({
    url: `http://127.0.0.1:${port}${STDIO_PATH}`,
    network: 'loopback',
    header: { name: 'Authorization', value: `Bearer ${bearer}`, file: HEADER_FILES.stdio },
    requestTimeout: COMMAND_TIMEOUT,
  });
  const commandLine = [command, ...args].map(quoteForShell).join(' ');
  const options = [
    `--token-file ${quoteForShell(join(save, HEADER_FILES.stdio))}`,
    ...env.map((name) => `--env ${name}`),
  ].join(' ');
  return {
    server: serverAt(adapter.port ?? 0, token),
    saved: {
      server: serverAt(DEFAULT_STDIO_PORT, newStdioToken()),
      // Arguments may be secrets, and the file holds none.
      note: `Served by: sallyport stdio ${options} -- COMMAND`,
    },
    startedBy: escapeForTerminal(`sallyport stdio ${options} -- ${commandLine}`),
    shown: escapeForTerminal([command, ...args].join(' ')),
    explain: (printed) =>
      Promise.resolve(
        firstEnd === undefined ? describeRunning(command, printed) : describeEnd(command, firstEnd),
      ),
    close: adapter.close,
  };
}

/** Where the server did not speak MCP, the listing advises to look at its URL. A command has none. */
function describeRunning(command: string, printed: string): string | undefined {
  if (!printed.includes('sallyport dev --upstream')) return undefined;
  return `${escapeForTerminal(command)} runs, but did not serve MCP: it answered the request initialize with something else; a stdio server writes nothing but JSON-RPC messages to standard output`;
}

function describeEnd(command: string, { how, lastLines }: ProcessEnd): string {
  const tail = lastLines.map((line) => `\n  ${line}`).join('');
  const last =
    tail === '' ? 'nothing was written to standard error' : `its last lines were:${tail}`;
  return `${escapeForTerminal(command)} did not serve MCP: ${how}; ${last}`;
}
