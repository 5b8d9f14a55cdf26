// `sallyport dev`: runs a gateway on loopback with the development issuer, for evaluation. Writes ordinary files
// to a temporary folder, pins what the upstream offers at that moment, and serves them. Only this command
// can load the issuer; `serve` cannot. docs/contract.md §1.

import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Option } from 'commander';
import {
  DEMO_USERS,
  DESK,
  DEV_TOKEN_HOURS,
  DEV_UPSTREAM,
  DEVELOPER,
  type DemoUser,
  writeDemoFiles,
  writeDevFiles,
} from '../dev/demo-files.js';
import { type DemoUpstream, startDemoUpstream } from '../dev/demo-upstream.js';
import { type DevIssuer, startIssuer } from '../dev/issuer.js';
import { runTour } from '../dev/tour.js';
import {
  type CliIo,
  type Command,
  EXIT_FAILED,
  EXIT_FINE,
  EXIT_UNCHECKED,
  mayColor,
  readPort,
} from './program.js';
import type { ServedGateway, ServePorts } from './serve.js';

export type DevOptions = {
  readonly upstream?: string;
  readonly demo?: boolean;
  /** Ends after the tour; the exit code tells whether every outcome was as announced. */
  readonly exit?: boolean;
  readonly network?: 'public' | 'private' | 'loopback';
  readonly port?: number;
};

export type DevPorts = ServePorts & {
  /** Pins and approves what the upstreams of a gateway file offer now; resolves with an exit code. */
  pin(file: string): Promise<number>;
  /** Fetches a JSON document under the rules for URLs learned at run time; `undefined` if there is none. */
  fetchDocument(url: URL): Promise<unknown>;
};

const DEFAULT_PORT = 8080;
const SECONDS_PER_HOUR = 3600;
const ADMIN_TOKEN_BYTES = 32;

type DevEnvironment = {
  readonly folder: string;
  readonly ports: { readonly data: number; readonly ops: number; readonly admin: number };
  readonly adminToken: string;
  readonly io: CliIo;
};

/** Runs until a signal or, with `--exit`, until the tour is over. */
export async function runDev(options: DevOptions, io: CliIo, ports: DevPorts): Promise<number> {
  if ((options.demo === true) === (options.upstream !== undefined)) {
    io.stderr('error: no upstream: give --upstream URL, or --demo for a demo server\n');
    return EXIT_UNCHECKED;
  }
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-dev-'));
  try {
    const data = await freePort(options.port ?? DEFAULT_PORT);
    const stage = {
      folder,
      io,
      // Port 0: a free port that was looked up beforehand could be taken before the gateway binds it.
      ports: { data, ops: 0, admin: 0 },
      adminToken: randomBytes(ADMIN_TOKEN_BYTES).toString('base64url'),
    };
    return options.upstream === undefined
      ? await runDemo(options.exit === true, stage, ports)
      : await runUpstream(options.upstream, options.network, stage, ports);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function runUpstream(
  upstreamUrl: string,
  network: DevOptions['network'],
  stage: DevEnvironment,
  ports: DevPorts,
): Promise<number> {
  const issuer = await startIssuer({
    fetchDocument: ports.fetchDocument,
    users: [
      {
        name: DEVELOPER.subject,
        ...DEVELOPER,
        groups: [...DEVELOPER.groups],
        scopes: [...DEVELOPER.scopes],
      },
    ],
  });
  try {
    const publicUrl = `http://127.0.0.1:${stage.ports.data}`;
    const { configFile, resource } = await writeDevFiles(stage.folder, {
      publicUrl,
      issuer: issuer.issuer,
      upstreamUrl,
      network: network ?? networkOf(upstreamUrl),
      ports: stage.ports,
      adminToken: stage.adminToken,
    });
    return await serveFor(configFile, stage, ports, async (gateway) => {
      const token = await issuer.mint({
        resource,
        subject: DEVELOPER.subject,
        groups: DEVELOPER.groups,
        scopes: [],
        lifetimeSeconds: DEV_TOKEN_HOURS * SECONDS_PER_HOUR,
      });
      printAccess(stage, gateway, { name: DEV_UPSTREAM.name, resource, token });
      return undefined;
    });
  } finally {
    await issuer.close();
  }
}

async function runDemo(
  endsAfterTour: boolean,
  stage: DevEnvironment,
  ports: DevPorts,
): Promise<number> {
  const issuer = await startIssuer({
    fetchDocument: ports.fetchDocument,
    users: [demoUser('engineer'), demoUser('support')],
  });
  const upstream = await startDemoUpstream({});
  try {
    const publicUrl = `http://127.0.0.1:${stage.ports.data}`;
    const files = await writeDemoFiles(stage.folder, {
      publicUrl,
      issuer: issuer.issuer,
      upstreamUrl: upstream.url,
      ports: stage.ports,
      adminToken: stage.adminToken,
    });
    return await serveFor(files.configFile, stage, ports, async (gateway) => {
      const code = await tour(files.resource, files.auditFile, issuer, upstream, stage.io);
      if (endsAfterTour) return code;
      const token = await mintFor(issuer, files.resource, 'engineer');
      printAccess(stage, gateway, { name: DESK.name, resource: files.resource, token });
      return undefined;
    });
  } finally {
    await upstream.close();
    await issuer.close();
  }
}

/** Pins, starts the gateway and runs `play`; then waits for a signal unless `play` returns an exit code. */
async function serveFor(
  configFile: string,
  stage: DevEnvironment,
  ports: DevPorts,
  afterStart: (gateway: ServedGateway) => Promise<number | undefined>,
): Promise<number> {
  const pinned = await ports.pin(configFile);
  if (pinned !== EXIT_FINE) return pinned;
  const started = await ports.start(configFile);
  if (started.kind === 'refused') {
    stage.io.stderr(
      `error: the gateway did not start: ${started.diagnostics.map((diagnostic) => diagnostic.message).join('; ')}\n`,
    );
    return EXIT_UNCHECKED;
  }
  if (started.kind === 'failed') {
    stage.io.stderr(`error: the gateway did not start: ${started.message}\n`);
    return EXIT_FAILED;
  }
  try {
    const code = await afterStart(started.gateway);
    return code ?? (await ports.untilSignal(() => void started.gateway.reload()));
  } finally {
    await started.gateway.close();
  }
}

function demoUser(name: DemoUser): {
  name: string;
  subject: string;
  groups: string[];
  scopes: string[];
} {
  const { subject, groups, scopes } = DEMO_USERS[name];
  return { name, subject, groups: [...groups], scopes: [...scopes] };
}

function mintFor(
  issuer: DevIssuer,
  resource: string,
  user: DemoUser,
  options: { readonly audience?: string; readonly scopes?: readonly string[] } = {},
): Promise<string> {
  const { subject, groups, scopes } = DEMO_USERS[user];
  return issuer.mint({
    resource: options.audience ?? resource,
    subject,
    groups,
    scopes: options.scopes ?? scopes,
  });
}

function tour(
  url: string,
  auditFile: string,
  issuer: DevIssuer,
  upstream: DemoUpstream,
  io: CliIo,
): Promise<number> {
  return runTour({
    url,
    upstream,
    mint: (user, options) => mintFor(issuer, url, user, options),
    async readAudit() {
      const text = await readFile(auditFile, 'utf8');
      return text.split('\n').filter((line) => line !== '');
    },
    write: (text) => io.stdout(text),
    hasColor: mayColor(io),
  });
}

type Access = { readonly name: string; readonly resource: string; readonly token: string };

function printAccess(
  { io, adminToken }: DevEnvironment,
  { listening }: ServedGateway,
  { name, resource, token }: Access,
): void {
  const portOf = (wanted: string) => listening.find(({ listener }) => listener === wanted)?.port;
  const client = {
    mcpServers: {
      [name]: { type: 'http', url: resource, headers: { Authorization: `Bearer ${token}` } },
    },
  };
  io.stdout(`
endpoint   ${resource}
token      ${token}
console    http://127.0.0.1:${portOf('admin')}/   (paste this token: ${adminToken})
metrics    http://127.0.0.1:${portOf('ops')}/metrics

client configuration:
${JSON.stringify(client, null, 2)}

Clients that can log in need no token: the development issuer answers the challenge.
Press Ctrl-C to end.
`);
}

/** Loopback by name or literal; anything else is assumed public unless `--network` is given. */
function networkOf(url: string): 'public' | 'loopback' {
  const host = URL.canParse(url) ? new URL(url).hostname : '';
  return host === 'localhost' || host === '[::1]' || host.startsWith('127.')
    ? 'loopback'
    : 'public';
}

/** The preferred port if it is free, otherwise any free port. */
function freePort(preferred: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', () =>
      preferred === 0 ? reject(new Error('no free port on loopback')) : resolve(freePort(0)),
    );
    probe.listen(preferred, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() =>
        resolve(typeof address === 'object' && address !== null ? address.port : preferred),
      );
    });
  });
}

export function devCommand(io: CliIo, ports: DevPorts): Command {
  return {
    name: 'dev',
    summary: 'Run a gateway on loopback with a development issuer.',
    examples: [
      'sallyport dev --upstream http://127.0.0.1:3001/mcp',
      'sallyport dev --demo',
      'sallyport dev --demo --exit    # only the tour; exit 1 if an outcome differs',
    ],
    configure(command, finish) {
      command
        .option('--upstream <url>', 'the MCP server to put the gateway in front of')
        .addOption(
          new Option(
            '--network <network>',
            'which addresses the host of the upstream may have',
          ).choices(['public', 'private', 'loopback']),
        )
        .option('--demo', 'start a demo server that misbehaves on request and run the tour')
        .option('--exit', 'exit after the tour')
        .option('--port <port>', 'port of the data listener', readPort)
        .action(async (options: DevOptions) => finish(await runDev(options, io, ports)));
    },
  };
}
