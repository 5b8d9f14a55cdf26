// `sallyport demo-server`: serves the MCP server of the demo alone, on loopback, for compose.yaml and for trying a
// configuration of one's own. docs/contract.md §1.

import { startDemoUpstream } from '../dev/demo-upstream.js';
import { type CliIo, type Command, failToListen, readPort } from './program.js';
import type { ServePorts } from './serve.js';

const DEFAULT_PORT = 3001;

/** Runs until a signal ends it. The exit code is that of the signal, or 1 if the port cannot be opened. */
export async function runDemoServer(
  { port = DEFAULT_PORT }: { readonly port?: number },
  io: CliIo,
  ports: Pick<ServePorts, 'untilSignal'>,
): Promise<number> {
  const terminated = ports.untilSignal();
  const server = await startDemoUpstream({ port }).catch((error: NodeJS.ErrnoException) => error);
  if (server instanceof Error) return failToListen(port, server, io);
  io.stdout(`demo server listening on ${server.url}\n`);
  const code = await terminated;
  await server.close();
  return code;
}

export function demoServerCommand(io: CliIo, ports: Pick<ServePorts, 'untilSignal'>): Command {
  return {
    name: 'demo-server',
    summary: 'Serve the MCP server of the demo on loopback, without a gateway.',
    examples: ['sallyport demo-server --port 3001'],
    configure(command, finish) {
      command
        .option('--port <port>', `port of the server (default: ${DEFAULT_PORT})`, readPort)
        .action(async (options: { port?: number }) =>
          finish(await runDemoServer(options, io, ports)),
        );
    },
  };
}
