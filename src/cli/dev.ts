// `sallyport dev`: runs a gateway on loopback with the development issuer, for evaluation: in front of a server that is
// reached by HTTP, or of one that a command starts. Writes ordinary files to a temporary folder, pins what the server
// offers at that moment, and serves them; prints the configuration of clients by name, and a line for each decision. Only
// this command can load the issuer; `serve` cannot. Also `sallyport demo-server` and `demo-issuer`, which serve the MCP
// server of the demo and the development issuer alone. docs/reference/commands.md#dev.

import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Option } from 'commander';
import { type AuditRecord, requiredText, valueAt } from '../audit/chain.js';
import { listFilesOf } from '../audit/folder.js';
import { createEventJoiner, describeCause, describeFindings } from '../audit/query.js';
import { IGNORED_AUDIT_FILES } from '../audit/run-name.js';
import { type DemoUpstream, startDemoUpstream } from '../dev/demo-upstream.js';
import {
  DEMO_USERS,
  DESK,
  DEV_TOKEN_HOURS,
  DEV_UPSTREAM,
  DEVELOPER,
  type DemoUser,
  ignoredFiles,
  rewriteDevConfig,
  SAVED_PATHS,
  savedFiles,
  writeDemoFiles,
  writeDevFiles,
  writeDevPolicy,
} from '../dev/files.js';
import { type DevIssuer, startIssuer } from '../dev/issuer.js';
import { LOGIN_CLIENT } from '../dev/issuer-grants.js';
import { runTour } from '../dev/tour.js';
import { isReason, REASONS } from '../policy/reasons.js';
import type { ProcessPorts } from '../stdio/server-process.js';
import { cleanForeign, escapeForTerminal } from '../text/escaping.js';
import { followLines } from './audit/read.js';
import { chooseContent } from './content-choice.js';
import {
  countOffered,
  type DevTarget,
  describeHidden,
  findUrlMistake,
  HTTP_SSE,
  type PinnedOnce,
  pinServer,
  readHeader,
  readOffered,
  startCommand,
  type TargetOptions,
  targetOfUrl,
} from './dev-target.js';
import { findObstacles, writeNewFiles } from './new-files.js';
import {
  type CliIo,
  type Command,
  EXIT_FAILED,
  EXIT_FINE,
  EXIT_UNCHECKED,
  fail,
  failToListen,
  mayColor,
  readPort,
} from './program.js';
import { addLogOptions, type LogOptions, type ServedGateway, type ServePorts } from './serve.js';
import { collectVariable } from './stdio.js';

type DevOptions = LogOptions &
  TargetOptions & {
    readonly upstream?: string;
    readonly demo?: boolean;
    /** Ends after the tour; the exit code tells whether every outcome was as expected. */
    readonly exit?: boolean;
    readonly port?: number;
  };

type DevPorts = ServePorts &
  Pick<ProcessPorts, 'signalGroup' | 'killMarked'> & {
    /** Pins and approves what the upstreams of a gateway file offer now. */
    pin(file: string): Promise<PinnedOnce>;
    /** Fetches a JSON document under the rules for URLs learned at run time; `undefined` if there is none. */
    fetchDocument(url: URL): Promise<unknown>;
  };

const HOST = '127.0.0.1';
/** The same at every start: clients keep the URL of the endpoint. */
const DEFAULT_PORT = 8080;
const ANY_PORT = 0;
/** A signal adds its number. */
const EXIT_BY_SIGNAL = 128;
const SECONDS_PER_HOUR = 3600;
const ADMIN_TOKEN_BYTES = 32;

type DevEnvironment = {
  readonly folder: string;
  readonly ports: { readonly data: number; readonly ops: number; readonly admin: number };
  readonly adminToken: string;
  readonly log: LogOptions;
  readonly io: CliIo;
  /** Resolves with the exit code when a signal ends the program. */
  readonly ended: Promise<number>;
};

/** Runs until a signal or, with `--exit`, until the tour is over. `command` starts a stdio server. */
async function runDev(options: DevOptions, command: readonly string[], io: CliIo, ports: DevPorts): Promise<number> {
  const mistake = await findMistake(options, command, io);
  if (mistake !== undefined) return fail(mistake, EXIT_UNCHECKED, io);
  const tourOnly = options.demo === true && options.exit === true;
  const wanted = options.port ?? (tourOnly ? ANY_PORT : DEFAULT_PORT);
  const data = await probePort(wanted);
  if (typeof data !== 'number') return failToListen(wanted, data, io);
  // From here on there is something to remove: a folder with secrets, and the process of a command.
  const ended = ports.untilSignal();
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-dev-'));
  try {
    const stage = {
      ...{ folder, io, ended },
      // Port 0: a free port that was looked up beforehand could be taken before the gateway binds it.
      ports: { data, ops: 0, admin: 0 },
      adminToken: randomBytes(ADMIN_TOKEN_BYTES).toString('base64url'),
      log: options,
    };
    return options.demo === true
      ? await runDemo(options.exit === true, stage, ports)
      : await runServer(options, command, stage, ports);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** What is wrong with the options, in one sentence. */
async function findMistake(
  { upstream, demo, header, env = [], save, network }: DevOptions,
  command: readonly string[],
  io: CliIo,
): Promise<string | undefined> {
  const chosen = [upstream !== undefined, demo === true, command.length > 0];
  if (chosen.filter((isChosen) => isChosen).length !== 1)
    return 'say which server: --upstream URL, -- COMMAND for a stdio server, or --demo for one that misbehaves on request';
  const wrongUrl = upstream === undefined ? undefined : findUrlMistake(upstream, network);
  if (wrongUrl !== undefined) return wrongUrl;
  if (upstream === undefined && header !== undefined)
    return '--header is for a server that is reached by HTTP; a command gets environment variables, with --env NAME';
  const unset = env.find((name) => io.env[name] === undefined);
  if (unset !== undefined) return `--env ${escapeForTerminal(unset)}: the variable is not set`;
  if (save === undefined) return undefined;
  if (demo === true) return '--save keeps the setup of a server of your own, not that of the demo';
  const { links, existing } = await findObstacles(resolve(io.cwd, save), SAVED_PATHS);
  const [link] = links;
  const [found] = existing;
  if (link !== undefined)
    return `--save: ${escapeForTerminal(link)} is a link, and none is followed in the folder; nothing was started`;
  return found && `--save: ${escapeForTerminal(found)} exists already; nothing was started`;
}

async function runServer(
  options: DevOptions,
  command: readonly string[],
  stage: DevEnvironment,
  ports: DevPorts,
): Promise<number> {
  const target =
    options.upstream === undefined
      ? await startCommand(options, command, stage.io, ports)
      : targetOfUrl(options.upstream, options);
  try {
    return await runTarget(target, options, stage, ports);
  } finally {
    await target.close();
  }
}

async function runTarget(
  target: DevTarget,
  { save }: DevOptions,
  stage: DevEnvironment,
  ports: DevPorts,
): Promise<number> {
  const { folder, io } = stage;
  const issuer = await startIssuer({
    fetchDocument: ports.fetchDocument,
    users: [{ name: DEVELOPER.subject, ...DEVELOPER }],
  });
  try {
    const publicUrl = `http://127.0.0.1:${stage.ports.data}`;
    const resource = `${publicUrl}${DEV_UPSTREAM.path}`;
    const input = {
      ...{ publicUrl, issuer: issuer.issuer, server: target.server },
      ...{ ports: stage.ports, adminToken: stage.adminToken },
    };
    const files = await writeDevFiles(folder, input);
    const code = await pinServer(target, files, stage, ports.pin);
    if (code !== undefined) return code;
    const { offered, lock } = await readOffered(files);
    const content = chooseContent(lock, { command: target.command, isApproved: true });
    const chosen = { content: content?.lines };
    if (content !== undefined) await rewriteDevConfig(files, { ...input, server: { ...target.server, ...chosen } });
    await writeDevPolicy(files, offered);
    io.stdout(`approved   ${countOffered(offered)} from ${target.shown}\n`);
    for (const line of describeHidden(lock)) io.stdout(`hidden     ${line}\n`);
    io.stdout(`allowed    ${EVERYTHING}\n`);
    io.stdout(`arguments  ${ARGUMENTS}\n`);
    if (content !== undefined) io.stdout(`content    ${content.shown}\n`);
    if (save !== undefined) {
      const dir = resolve(io.cwd, save);
      const server = { ...target.saved.server, ...chosen };
      const setup = { ...target.saved, server, offered, port: stage.ports.data };
      const saved = savedFiles(await readFile(files.lockFile, 'utf8'), setup);
      const ignored = [...IGNORED_AUDIT_FILES, ...ignoredFiles(target.saved.server)];
      // The server may have taken minutes to start, and the folder may have changed.
      const error = await writeNewFiles(dir, saved, ignored);
      if (error !== undefined)
        return fail(`--save: nothing was saved: ${escapeForTerminal(error)}`, EXIT_UNCHECKED, io);
      const configFile = join(dir, saved.at(-1)?.path ?? '');
      io.stdout(`saved      ${escapeForTerminal(configFile)}, with policy and lock file\n`);
      if (target.startedBy !== undefined) io.stdout(`serve it   ${target.startedBy}\n`);
    }
    return await serveFor(files.configFile, stage, ports, async (gateway) => {
      const lifetimeSeconds = DEV_TOKEN_HOURS * SECONDS_PER_HOUR;
      const token = await issuer.mint({ ...DEVELOPER, resource, lifetimeSeconds });
      printAccess(stage, gateway, { name: DEV_UPSTREAM.name, resource, token });
      return await followDecisions(files.auditFile, io, stage.ended);
    });
  } finally {
    await issuer.close();
  }
}

const EVERYTHING = 'all of them, every resource, and what the server requests of clients: sampling, elicitation, roots';
const ARGUMENTS = 'undeclared ones pass, and a string becomes the number, boolean or JSON that the schema expects';

/** Prints a line for each decision until `ended` resolves. */
async function followDecisions(auditFile: string, io: CliIo, ended: Promise<number>): Promise<number> {
  const complete = createEventJoiner();
  const wait = (ms: number): Promise<boolean> =>
    Promise.race([sleep(ms, true, { ref: false }), ended.then(() => false)]);
  for await (const text of followLines(() => listFilesOf(auditFile), wait, true)) {
    const { record } = complete(JSON.parse(text), text.length);
    const line = decisionLine(record);
    if (line !== undefined) io.stdout(`${line}\n`);
  }
  return ended;
}

const VERBS: { readonly [action: string]: string } = {
  forwarded: 'allowed',
  refused: 'refused',
  withheld: 'withheld',
};
const VERB_WIDTH = 8;
const TARGET_WIDTH = 36;
/** A line that is longer says nothing more to a person. */
const MAX_CAUSE_CHARACTERS = 300;

/**
 * One line for an event that is a decision or a change of a definition, with what others wrote made visible;
 * `undefined` for events that are neither.
 */
export function decisionLine(event: AuditRecord): string | undefined {
  const time = visibleAt(event, 'time').slice(11, 19);
  const name = visibleAt(event, 'target', 'name');
  if (event['type'] === 'pin.drift') {
    const what = `${visibleAt(event, 'target', 'kind')} ${name}: ${visibleAt(event, 'detail', 'change')}`;
    return `${time}  ${'changed'.padEnd(VERB_WIDTH)}  ${what}`;
  }
  if (event['type'] !== 'mcp.outcome' && event['type'] !== 'auth.failure') return undefined;
  const isAltered = valueAt(event, 'result', 'altered') === true;
  const verb = isAltered ? 'altered' : (VERBS[visibleAt(event, 'decision', 'action')] ?? 'refused');
  const method = visibleAt(event, 'target', 'method') || 'request';
  const target = `${method} ${name}`.trim().padEnd(TARGET_WIDTH);
  return `${time}  ${verb.padEnd(VERB_WIDTH)}  ${target}  ${whyDecided(event)}`.trimEnd();
}

function visibleAt(event: AuditRecord, ...path: readonly string[]): string {
  return cleanForeign(requiredText(event, ...path));
}

/** Why it was decided so, and what was altered all the same. */
function whyDecided(event: AuditRecord): string {
  const [sent, received] = (['to-upstream', 'to-client'] as const).map((direction) =>
    describeFindings(event, direction),
  );
  const cut = sent === '' ? '' : `in the request: ${sent}`;
  return [whyActed(event), received, cut].filter((part) => part !== '').join('; ');
}

/** The reason of a refusal with its cause, else the rule that allowed it and how much of a list was shown. */
function whyActed(event: AuditRecord): string {
  const reasons = valueAt(event, 'decision', 'reasons');
  const [reason] = Array.isArray(reasons) ? reasons : [];
  if (typeof reason === 'string') {
    const text = isReason(reason) ? REASONS[reason].text : 'unknown reason';
    const cause = cleanForeign(describeCause(event), undefined, MAX_CAUSE_CHARACTERS);
    const message = cause === '' ? text : `${text.replace(/\.$/, '')}: ${cause}`;
    return `${cleanForeign(reason)}: ${message}`;
  }
  const [advertised, visible] = ['advertised', 'visible'].map((one) => valueAt(event, 'result', 'list', one));
  if (typeof advertised === 'number') {
    const cause = cleanForeign(describeCause(event), undefined, MAX_CAUSE_CHARACTERS);
    return `shows ${String(visible)} of ${advertised}${cause && `; ${cause}`}`;
  }
  const rule = visibleAt(event, 'decision', 'rule');
  return rule === '' ? '' : `by rule ${rule}`;
}

async function runDemo(endsAfterTour: boolean, stage: DevEnvironment, ports: DevPorts): Promise<number> {
  const issuer = await startIssuer({
    fetchDocument: ports.fetchDocument,
    users: [
      { name: 'engineer', ...DEMO_USERS.engineer },
      { name: 'support', ...DEMO_USERS.support },
    ],
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
    const pinned = await Promise.race([ports.pin(files.configFile), stage.ended]);
    if (typeof pinned === 'number') return pinned;
    if (pinned.code !== EXIT_FINE) {
      stage.io.stderr(pinned.printed);
      return pinned.code;
    }
    return await serveFor(files.configFile, stage, ports, async (gateway) => {
      const touring = tour(files.resource, files.auditFile, issuer, upstream, stage.io);
      const code = await Promise.race([touring, stage.ended]);
      if (endsAfterTour || code > EXIT_BY_SIGNAL) return code;
      const token = await mintFor(issuer, files.resource, 'engineer');
      printAccess(stage, gateway, { name: DESK.name, resource: files.resource, token });
      return undefined;
    });
  } finally {
    await upstream.close();
    await issuer.close();
  }
}

/** Starts the gateway and runs `afterStart`; then waits for a signal unless that returns an exit code. */
async function serveFor(
  configFile: string,
  stage: DevEnvironment,
  ports: DevPorts,
  afterStart: (gateway: ServedGateway) => Promise<number | undefined>,
): Promise<number> {
  const started = await ports.start(configFile, stage.log);
  if (started.kind === 'refused') {
    const why = started.diagnostics.map(({ message }) => message).join('; ');
    return fail(`the gateway did not start: ${why}`, EXIT_UNCHECKED, stage.io);
  }
  if (started.kind === 'failed') return fail(`the gateway did not start: ${started.message}`, EXIT_FAILED, stage.io);
  try {
    const code = await afterStart(started.gateway);
    return code ?? (await stage.ended);
  } finally {
    await started.gateway.close();
  }
}

function mintFor(
  issuer: DevIssuer,
  resource: string,
  user: DemoUser,
  options: { readonly audience?: string; readonly scopes?: readonly string[] } = {},
): Promise<string> {
  const { audience = resource, ...granted } = options;
  return issuer.mint({ ...DEMO_USERS[user], ...granted, resource: audience });
}

function tour(url: string, auditFile: string, issuer: DevIssuer, upstream: DemoUpstream, io: CliIo): Promise<number> {
  return runTour({
    url,
    upstream,
    mint: (user, options) => mintFor(issuer, url, user, options),
    async readAudit() {
      const texts = await Promise.all((await listFilesOf(auditFile)).map((file) => readFile(file, 'utf8')));
      return texts.flatMap((text) => text.split('\n').filter((line) => line !== ''));
    },
    write: (text) => io.stdout(text),
    hasColor: mayColor(io),
  });
}

type Access = { readonly name: string; readonly resource: string; readonly token: string };

function printAccess(
  { io, folder, adminToken }: DevEnvironment,
  { listening }: ServedGateway,
  { name, resource, token }: Access,
): void {
  const portOf = (wanted: string) => listening.find(({ listener }) => listener === wanted)?.port;
  io.stdout(`
endpoint   ${resource}
console    http://127.0.0.1:${portOf('admin')}/   (paste this token: ${adminToken})
metrics    http://127.0.0.1:${portOf('ops')}/metrics
audit      ${escapeForTerminal(join(folder, 'audit-*.jsonl'))}   (removed at the end)

A client that can log in needs the endpoint alone: the development issuer answers its challenge.
The configurations below present a token instead, which they take from the variable TOKEN:

export TOKEN=${token}

${clientConfigurations(name, resource)}
Press Ctrl-C to end.
`);
}

/** What stands for the token in the configuration of Claude Desktop, which reads no variables. */
export const PASTED = 'PASTE_TOKEN';

/**
 * The server in the configuration of Claude Desktop: a bridge, because its local servers speak stdio. `npm run clients`
 * runs this one.
 */
export function desktopServer(url: string): {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
} {
  // The space stands in the variable: some versions of Claude Desktop split arguments at spaces.
  return {
    command: 'npx',
    args: ['-y', BRIDGE, url, '--header', `Authorization:\${AUTHORIZATION}`],
    env: { AUTHORIZATION: `Bearer ${PASTED}` },
  };
}

const BRIDGE = 'mcp-remote';

/** The options with which the command line of MCP Inspector reaches an endpoint. `npm run clients` uses them. */
export function inspectorOptions(url: string, token: string): readonly string[] {
  return ['--cli', url, '--transport', 'http', '--header', `Authorization: Bearer ${token}`];
}

/**
 * The configuration of each client, under its name. None repeats the token: it is read from the variable TOKEN or asked
 * for where the client can do that, and pasted where it cannot.
 */
export function clientConfigurations(name: string, url: string): string {
  const [asked, read] = [`\${input:token}`, `\${env:TOKEN}`].map((token) => ({
    Authorization: `Bearer ${token}`,
  }));
  const inspected = inspectorOptions(url, '$TOKEN')
    .map((word) => (word.includes(' ') ? `"${word}"` : word))
    .join(' ');
  const input = { type: 'promptString', id: 'token', description: 'token', password: true };
  const clients = [
    ['Claude Code', `claude mcp add --transport http ${name} ${url} --header "Authorization: Bearer $TOKEN"`],
    [
      'Claude Desktop, in claude_desktop_config.json (through mcp-remote; put the token in place of PASTE_TOKEN)',
      JSON.stringify({ mcpServers: { [name]: desktopServer(url) } }),
    ],
    [
      'VS Code, in .vscode/mcp.json (asks for the token)',
      JSON.stringify({
        inputs: [input],
        servers: { [name]: { type: 'http', url, headers: asked } },
      }),
    ],
    [
      'Cursor, in ~/.cursor/mcp.json (reads TOKEN from its environment)',
      JSON.stringify({ mcpServers: { [name]: { url, headers: read } } }),
    ],
    [
      // By tag: on an older Node npx takes an old version, which knows no headers.
      'MCP Inspector, with Node 22.19 or later',
      `npx @modelcontextprotocol/inspector@latest ${inspected} --method tools/list`,
    ],
  ];
  return clients.map(([client, text]) => `${client}\n  ${text}\n`).join('\n');
}

/** The port, or the free one found for `ANY_PORT`, if a listener can be opened there now; otherwise the error. */
function probePort(port: number): Promise<number | NodeJS.ErrnoException> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', resolve);
    probe.listen(port, HOST, () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === 'object' ? (address?.port ?? port) : port));
    });
  });
}

export function devCommand(io: CliIo, ports: DevPorts): Command {
  return {
    name: 'dev',
    summary: 'Run a gateway on loopback with a development issuer.',
    examples: [
      'sallyport dev --upstream http://127.0.0.1:3001/mcp',
      "sallyport dev --upstream https://mcp.example.com/mcp --header 'Authorization: Bearer TOKEN'",
      'sallyport dev -- npx -y @modelcontextprotocol/server-filesystem DIR',
      'sallyport dev --demo',
      'sallyport dev --demo --exit    # only the tour; exit 1 if an outcome differs',
    ],
    configure(command, finish) {
      command
        .argument('[command...]', 'the command that starts a stdio server, after --')
        .option('--upstream <url>', 'the MCP server to put the gateway in front of')
        .option('--header <header>', "'Name: value', sent to the upstream", readHeader)
        .addOption(
          new Option('--transport <transport>', 'how the upstream speaks').choices(['streamable-http', HTTP_SSE]),
        )
        .option('--env <name>', 'environment variable that the command gets too', collectVariable)
        .option('--save <dir>', 'keep gateway file, policy and lock file in this folder')
        .addOption(
          new Option('--network <network>', 'which addresses the host of the upstream may have').choices([
            'public',
            'private',
            'loopback',
          ]),
        )
        .option('--demo', 'start a demo server that misbehaves on request and run the tour')
        .option('--exit', 'exit after the tour')
        .option('--port <port>', `port of the endpoint (default: ${DEFAULT_PORT})`, readPort)
        .action(async (serverCommand: string[], options: DevOptions) =>
          finish(await runDev(options, serverCommand, io, ports)),
        );
      addLogOptions(command, 'error');
    },
  };
}

const DEFAULT_DEMO_PORT = 3001;

/** Runs until a signal ends it. The exit code is that of the signal, or 1 if the port cannot be opened. */
async function runDemoServer(
  { port = DEFAULT_DEMO_PORT }: { readonly port?: number },
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
        .option('--port <port>', `port of the server (default: ${DEFAULT_DEMO_PORT})`, readPort)
        .action(async (options: { port?: number }) => finish(await runDemoServer(options, io, ports)));
    },
  };
}

const DEFAULT_ISSUER_PORT = 9000;
/** One person who calls, and one who reviews. */
const ISSUER_USERS = [
  { name: 'alice', groups: ['staff'], scopes: [] },
  { name: 'rita', groups: ['reviewers'], scopes: [] },
] as const;

/** Runs until a signal ends it. The exit code is that of the signal, or 1 if the port cannot be opened. */
async function runDemoIssuer(
  { port = DEFAULT_ISSUER_PORT }: { readonly port?: number },
  io: CliIo,
  ports: Pick<DevPorts, 'untilSignal' | 'fetchDocument'>,
): Promise<number> {
  const terminated = ports.untilSignal();
  const started = startIssuer({ users: ISSUER_USERS, fetchDocument: ports.fetchDocument, port });
  const issuer = await started.catch((error: NodeJS.ErrnoException) => error);
  if (issuer instanceof Error) return failToListen(port, issuer, io);
  const people = ISSUER_USERS.map(({ name, groups }) => `${name} (group ${groups.join(', ')})`);
  io.stdout(`demo issuer listening on ${issuer.issuer}
people     ${people.join(' and ')}; nobody has a password
logins     client id ${LOGIN_CLIENT}, with any client secret
tokens     curl -sS ${issuer.issuer}/token -d grant_type=password -d username=${ISSUER_USERS[0].name} -d resource=AUDIENCE
`);
  const code = await terminated;
  await issuer.close();
  return code;
}

export function demoIssuerCommand(io: CliIo, ports: Pick<DevPorts, 'untilSignal' | 'fetchDocument'>): Command {
  return {
    name: 'demo-issuer',
    summary: 'Serve the development issuer on loopback, without a gateway.',
    examples: ['sallyport demo-issuer --port 9000'],
    configure(command, finish) {
      command
        .option('--port <port>', `port of the issuer (default: ${DEFAULT_ISSUER_PORT})`, readPort)
        .action(async (options: { port?: number }) => finish(await runDemoIssuer(options, io, ports)));
    },
  };
}
