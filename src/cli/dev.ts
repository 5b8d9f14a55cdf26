// `sallyport dev`: runs a gateway on loopback with the development issuer, for evaluation: in front of servers that are
// reached by HTTP, that commands start, or that the file of a client has; each on its path, and several together as one.
// Writes ordinary files to a temporary folder, pins what the servers offer at that moment, and serves them; prints the
// configuration of clients by name, and a line for each decision. Only
// this command can load the issuer; `serve` cannot. Also `sallyport demo-server` and `demo-issuer`, which serve the MCP
// server of the demo and the development issuer alone. docs/reference/commands.md#dev.

import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Option } from 'commander';
import { requiredText } from '../audit/chain.js';
import { listFilesOf } from '../audit/folder.js';
import { createEventJoiner } from '../audit/query.js';
import { type DemoUpstream, startDemoUpstream } from '../dev/demo-upstream.js';
import {
  DEMO_USERS,
  DESK,
  DEV_RULE,
  DEV_TOKEN_HOURS,
  DEV_UPSTREAM,
  DEVELOPER,
  type DemoUser,
  type DevFiles,
  endpointOf,
  rewriteDevConfig,
  writeDemoFiles,
  writeDevFiles,
  writeDevPolicy,
} from '../dev/files.js';
import { type DevIssuer, startIssuer } from '../dev/issuer.js';
import { LOGIN_CLIENT } from '../dev/issuer-grants.js';
import { runTour } from '../dev/tour.js';
import type { ProcessPorts } from '../stdio/server-process.js';
import { escapeForTerminal } from '../text/escaping.js';
import { hangingLines } from '../text/terminal.js';
import { followLines } from './audit/read.js';
import { chooseContent } from './content-choice.js';
import { decisionLine } from './dev-lines.js';
import { findSaveMistake, saveSetup } from './dev-save.js';
import {
  collectNamed,
  type Named,
  readHeader,
  readOneOf,
  readServers,
  type ServersOptions,
  splitOperands,
  type WantedServer,
} from './dev-servers.js';
import {
  countOffered,
  type DevTarget,
  findUrlMistake,
  hiddenIn,
  openTargets,
  type PinnedOnce,
  type PinnedServer,
  pinServers,
} from './dev-target.js';
import {
  type CliIo,
  type Command,
  commandLine,
  EXIT_FAILED,
  EXIT_FINE,
  EXIT_UNCHECKED,
  fail,
  failToListen,
  mayColor,
  readPort,
  withUsage,
} from './program.js';
import { addLogOptions, type LogOptions, type ServedGateway, type ServePorts } from './serve.js';
import { askEach, listServers, namedServers } from './servers/import-choice.js';
import type { ImportedServer } from './servers/import-plan.js';
import type { Questions } from './servers/questions.js';
import { TRANSPORTS } from './servers/server-options.js';
import { collectVariable } from './stdio.js';

export type StageOptions = LogOptions & {
  readonly demo?: boolean;
  /** Ends after the tour; the exit code tells whether every outcome was as expected. */
  readonly exit?: boolean;
  readonly port?: number;
};

type DevOptions = StageOptions &
  ServersOptions & {
    /** The file of a client, whose servers are served. */
    readonly from?: string;
    /** With `from`, the names of the servers to serve. */
    readonly yes?: readonly string[];
    /** Folder for the files of a production setup. */
    readonly save?: string;
  };

export type DevPorts = ServePorts &
  Pick<ProcessPorts, 'signalGroup' | 'killMarked'> & {
    /** Pins and approves what the upstreams of a gateway file offer now; `isCareful`: nothing that a person should look at. */
    pin(file: string, isCareful?: boolean): Promise<PinnedOnce>;
    /** Fetches a JSON document under the rules for URLs learned at run time; `undefined` if there is none. */
    fetchDocument(url: URL): Promise<unknown>;
    /** Absent where stdin is no terminal. */
    readonly questions?: (() => Questions) | undefined;
    /** The words of the command line. */
    readonly argv: readonly string[];
  };

/** What the command line says besides options. */
type Operands = { readonly urls: readonly Named<string>[]; readonly command: readonly string[] };

const HOST = '127.0.0.1';
/** The same at every start: clients keep the URL of the endpoint. */
const DEFAULT_PORT = 8080;
const ANY_PORT = 0;
/** A signal adds its number. */
const EXIT_BY_SIGNAL = 128;
const SECONDS_PER_HOUR = 3600;
const ADMIN_TOKEN_BYTES = 32;

export type DevEnvironment = {
  readonly folder: string;
  readonly ports: { readonly data: number; readonly ops: number; readonly admin: number };
  readonly adminToken: string;
  readonly log: LogOptions;
  readonly io: CliIo;
  /** Resolves with the exit code when a signal ends the program. */
  readonly ended: Promise<number>;
};

/** Runs until a signal or, with `--exit`, until the tour is over. */
async function runDev(options: DevOptions, operands: Operands, io: CliIo, ports: DevPorts): Promise<number> {
  const mistake = findMistake(options, operands);
  if (mistake !== undefined) return fail(mistake, EXIT_UNCHECKED, io);
  if (options.demo === true) return runTourOfDemo(options, io, ports);
  const wanted = await wantedServers(options, operands, io, ports);
  if (typeof wanted === 'number') return wanted;
  const wrong = await findServerMistake(wanted, options, io);
  if (wrong !== undefined) return fail(wrong, EXIT_UNCHECKED, io);
  return onStage(options, io, ports, (stage) => runServers(wanted, options, stage, ports));
}

/** The tour, and then the demo until a signal unless it ends after the tour. */
export function runTourOfDemo(options: StageOptions, io: CliIo, ports: DevPorts): Promise<number> {
  return onStage({ ...options, demo: true }, io, ports, (stage) => runDemo(options.exit === true, stage, ports));
}

/** Runs with a folder of its own, which is removed at the end. */
export async function onStage(
  options: StageOptions,
  io: CliIo,
  ports: DevPorts,
  run: (stage: DevEnvironment) => Promise<number>,
): Promise<number> {
  const tourOnly = options.demo === true && options.exit === true;
  const wanted = options.port ?? (tourOnly ? ANY_PORT : DEFAULT_PORT);
  const data = await probePort(wanted);
  if (typeof data !== 'number') return failToListen(wanted, data, io);
  // From here on there is something to remove: a folder with secrets, and the processes of commands.
  const ended = ports.untilSignal();
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-dev-'));
  try {
    return await run({
      ...{ folder, io, ended },
      // Port 0: a free port that was looked up beforehand could be taken before the gateway binds it.
      ports: { data, ops: 0, admin: 0 },
      adminToken: randomBytes(ADMIN_TOKEN_BYTES).toString('base64url'),
      log: options,
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** What is wrong with the options, in one sentence. */
function findMistake(options: DevOptions, { urls, command }: Operands): string | undefined {
  const { upstream = [], server = [], demo, from, yes, save } = options;
  const isNamed = upstream.length + server.length + urls.length + command.length > 0 || from !== undefined;
  if (isNamed === (demo === true))
    return 'say which servers: --upstream URL, --server COMMAND, --from FILE, -- COMMAND for one that speaks stdio, or --demo alone for one that misbehaves on request';
  if (yes !== undefined && from === undefined) return '--yes says which servers of --from FILE are served';
  if (save !== undefined && demo === true)
    return '--save keeps the setup of a server of your own, not that of the demo';
  return undefined;
}

/** The servers of the command line and of the file; the exit code, with the reason printed, if there are none. */
async function wantedServers(
  options: DevOptions,
  operands: Operands,
  io: CliIo,
  ports: DevPorts,
): Promise<readonly WantedServer[] | number> {
  const isFromFile = options.from !== undefined;
  const named = readServers(operands, options, isFromFile ? undefined : DEV_UPSTREAM.name);
  if ('error' in named) return fail(named.error, EXIT_UNCHECKED, io);
  if (options.from === undefined) return named;
  // A person answers questions only for a gateway that can start.
  const port = options.port ?? DEFAULT_PORT;
  const free = await probePort(port);
  if (typeof free !== 'number') return failToListen(port, free, io);
  const taken = named.map(({ name }) => name);
  const chosen = await chooseFrom(options.from, options.yes, taken, io, ports);
  if (chosen === undefined) return EXIT_UNCHECKED;
  const imported = chosen.flatMap((server) => {
    const unset = server.variables.filter((variable) => io.env[variable] === undefined);
    if (unset.length === 0) return [importedServer(server, io)];
    io.stderr(`error: ${server.name} is left out: ${unset.join(' and ')} is not set\n`);
    return [];
  });
  const all = [...named, ...imported];
  if (all.length > 0) return all;
  return chosen.length === 0 ? EXIT_FINE : EXIT_UNCHECKED;
}

/** Those of a client's file that a person says yes to; `undefined` if a mistake was printed. */
async function chooseFrom(
  from: string,
  yes: readonly string[] | undefined,
  taken: readonly string[],
  io: CliIo,
  ports: DevPorts,
): Promise<readonly ImportedServer[] | undefined> {
  const plans = listServers(from, taken, io);
  if (yes !== undefined) return namedServers(yes, plans, io);
  const questions = ports.questions?.();
  if (questions === undefined) {
    const line = commandLine(io, ['dev', '--from', from, '--yes']);
    io.stdout(`\nTo serve some of them, run on a terminal, or name them: ${line} NAME…\n`);
    return [];
  }
  const question = ({ name, command }: ImportedServer): string =>
    `Serve ${name}? ${command === undefined ? 'It is asked for its definitions' : 'It is started'}.`;
  try {
    return await askEach(plans, { question, io }, questions);
  } finally {
    questions.close();
  }
}

function importedServer({ name, url = '', transport, header, command }: ImportedServer, io: CliIo): WantedServer {
  if (command !== undefined) return { kind: 'stdio', name, ...command };
  const from = header?.from;
  const variable = from !== undefined && 'env' in from ? from.env : undefined;
  const value = from === undefined || 'env' in from ? (io.env[variable ?? ''] ?? '') : (from.value ?? '');
  const sent = header === undefined ? undefined : { name: header.name, value };
  return { kind: 'http', name, url, transport, header: sent, headerVariable: variable };
}

/** What keeps a server from being served or saved, in one sentence. */
async function findServerMistake(
  wanted: readonly WantedServer[],
  { save }: DevOptions,
  io: CliIo,
): Promise<string | undefined> {
  for (const server of wanted) {
    const wrongUrl = server.kind === 'http' ? findUrlMistake(server.url, server.network) : undefined;
    if (wrongUrl !== undefined) return wrongUrl;
    const values = server.kind === 'stdio' ? [...server.env.values()] : [];
    const unset = values.find((from) => 'env' in from && io.env[from.env] === undefined);
    if (unset !== undefined && 'env' in unset) return `--env ${escapeForTerminal(unset.env)}: the variable is not set`;
  }
  return save === undefined ? undefined : await findSaveMistake(wanted, save, io);
}

async function runServers(
  wanted: readonly WantedServer[],
  options: DevOptions,
  stage: DevEnvironment,
  ports: DevPorts,
): Promise<number> {
  const targets = await openTargets(wanted, stage.io, ports);
  try {
    return await runTargets(targets, wanted, options, stage, ports);
  } finally {
    await Promise.all(targets.map((target) => target.close()));
  }
}

async function runTargets(
  targets: readonly DevTarget[],
  wanted: readonly WantedServer[],
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
    const input = {
      ...{ publicUrl, issuer: issuer.issuer, servers: targets.map(({ server }) => server) },
      ...{ ports: stage.ports, adminToken: stage.adminToken },
    };
    const files = await writeDevFiles(folder, input);
    const pinned = await pinServers(targets, files, stage, ports.pin);
    if (typeof pinned === 'number') return pinned;
    const served = pinned.map(withContent);
    const servers = served.map(({ target }) => target.server);
    await rewriteDevConfig(files, { ...input, servers });
    await writeDevPolicy(
      files,
      served.map(({ target, offered }) => ({ name: target.server.name, offered })),
    );
    printServed(served, io);
    if (save !== undefined) {
      const saved = await saveSetup({ folder: save, port: stage.ports.data, wanted, served, files }, io);
      if ('error' in saved)
        return fail(`--save: nothing was saved: ${escapeForTerminal(saved.error)}`, EXIT_UNCHECKED, io);
      for (const line of saved.lines) io.stdout(`${line}\n`);
    }
    return await serveFor(files.configFile, stage, ports, async (gateway) => {
      const lifetimeSeconds = DEV_TOKEN_HOURS * SECONDS_PER_HOUR;
      const endpoint = endpointOf(servers) ?? servers[0]?.name ?? DEV_UPSTREAM.name;
      const resource = `${publicUrl}/${endpoint}`;
      const token = await issuer.mint({ ...DEVELOPER, resource, lifetimeSeconds });
      const others = servers.length === 1 ? [] : servers.map(({ name }) => `${publicUrl}/${name}`);
      printAccess(stage, gateway, { name: endpoint, resource, token, others, issuer: issuer.issuer });
      return await followDecisions(files, served, stage);
    });
  } finally {
    await issuer.close();
  }
}

type ServedServer = PinnedServer & { readonly contentShown?: string | undefined };

/** Adds what its definitions say of the kinds of content that it returns. */
function withContent(pinned: PinnedServer): ServedServer {
  const { target, lock } = pinned;
  const content = chooseContent(lock, { command: target.command, isApproved: true });
  if (content === undefined) return pinned;
  const server = { ...target.server, content: content.lines };
  return { ...pinned, target: { ...target, server }, contentShown: content.shown };
}

/** What is served, with the name of its server where there are several. */
function printServed(served: readonly ServedServer[], io: CliIo): void {
  const isAlone = served.length === 1;
  for (const { target, offered, lock, contentShown } of served) {
    const { name } = target.server;
    const isCommand = target.command !== undefined;
    const from = !isAlone && isCommand ? '' : ` from ${target.shown}`;
    const of = isAlone ? '' : `${name}: `;
    io.stdout(`approved   ${of}${countOffered(offered)}${from}\n`);
    for (const { kind, name: hidden, why } of hiddenIn(lock))
      printLabelled('hidden', `${of}${kind} ${hidden}: ${why}`, io);
    if (contentShown !== undefined) printLabelled('content', `${of}${contentShown}`, io);
  }
  printLabelled('allowed', EVERYTHING, io);
  printLabelled('arguments', ARGUMENTS, io);
}

const LABEL_WIDTH = 11;

/** A sentence, on a terminal in lines that fit. */
function proseText(text: string, { isTty, columns }: CliIo): string {
  return isTty && columns !== undefined ? hangingLines(text, 0, 0, columns).join('\n') : text;
}

/** A line behind its label, on a terminal in lines that fit. */
function printLabelled(label: string, text: string, io: CliIo): void {
  const columns = io.isTty ? io.columns : undefined;
  const lines = columns === undefined ? [text] : hangingLines(text, LABEL_WIDTH, LABEL_WIDTH, columns);
  io.stdout(`${label.padEnd(LABEL_WIDTH)}${lines.join(`\n${' '.repeat(LABEL_WIDTH)}`)}\n`);
}

const EVERYTHING = 'all of them, every resource, and what the server requests of clients: sampling, elicitation, roots';
const ARGUMENTS = 'undeclared ones pass, and a string becomes the number, boolean or JSON that the schema expects';

/** Prints a line for each decision until `ended` resolves. */
async function followDecisions(
  { auditFile }: DevFiles,
  served: readonly ServedServer[],
  { io, ended }: DevEnvironment,
): Promise<number> {
  const complete = createEventJoiner();
  const hidden = hiddenNames(served);
  const wait = (ms: number): Promise<boolean> =>
    Promise.race([sleep(ms, true, { ref: false }), ended.then(() => false)]);
  for await (const text of followLines(() => listFilesOf(auditFile), wait, true)) {
    const { record } = complete(JSON.parse(text), text.length);
    if (record['type'] === 'pin.drift') {
      const at = [record, 'target'] as const;
      hidden.add(requiredText(...at, 'upstream'), requiredText(...at, 'kind'), requiredText(...at, 'name'));
    }
    const line = decisionLine(record, {
      hasColor: mayColor(io),
      columns: io.isTty ? io.columns : undefined,
      namesServers: served.length > 1,
      ownRule: DEV_RULE,
      hiddenAt: hidden.at,
    });
    if (line !== undefined) io.stdout(`${line}\n`);
  }
  return ended;
}

/** The names that lists do not show: those that are not approved, and those that have changed since. */
function hiddenNames(served: readonly ServedServer[]) {
  const names = new Map<string, Set<string>>();
  const keyOf = (server: string, kind: string): string => `${server} ${kind}`;
  function add(server: string, kind: string, name: string): void {
    const known = names.get(keyOf(server, kind));
    if (known === undefined) names.set(keyOf(server, kind), new Set([name]));
    else if (known.size < MAX_HIDDEN) known.add(name);
  }
  for (const { target, lock } of served)
    for (const { kind, name } of hiddenIn(lock)) add(target.server.name, kind, name);
  return { add, at: (server: string, kind: string) => [...(names.get(keyOf(server, kind)) ?? [])] };
}

/** Names that are kept for a server and kind. */
const MAX_HIDDEN = 1_000;

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
    columns: io.isTty ? io.columns : undefined,
  });
}

type Access = {
  readonly name: string;
  readonly resource: string;
  readonly token: string;
  /** The endpoints of the servers, each alone. */
  readonly others?: readonly string[];
  readonly issuer?: string;
};

function printAccess(
  { io, folder, adminToken }: DevEnvironment,
  { listening }: ServedGateway,
  { name, resource, token, others = [], issuer = '' }: Access,
): void {
  const portOf = (wanted: string) => listening.find(({ listener }) => listener === wanted)?.port;
  const [first = ''] = others;
  const alone = others.map((url) => `           ${url}\n`).join('');
  const tokens =
    others.length === 0
      ? ''
      : `\nThis token is for ${resource}. For a server alone:\n  curl -sS ${issuer}/token -d grant_type=password -d username=${DEVELOPER.subject} -d resource=${first}\n`;
  io.stdout(`
endpoint   ${resource}${others.length === 0 ? '' : '   (all as one)'}
${alone}console    http://127.0.0.1:${portOf('admin')}/   (paste this token: ${adminToken})
metrics    http://127.0.0.1:${portOf('ops')}/metrics
audit      ${escapeForTerminal(join(folder, 'audit-*.jsonl'))}   (removed at the end)

${proseText('A client that can log in needs the endpoint alone: the development issuer answers its challenge.', io)}
${proseText('The configurations below present a token instead, which they take from the variable TOKEN:', io)}

export TOKEN=${token}
${tokens}
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
      'sallyport dev http://127.0.0.1:3001/mcp',
      "sallyport dev --upstream https://mcp.example.com/mcp --header 'Authorization: Bearer TOKEN'",
      'sallyport dev -- npx -y @modelcontextprotocol/server-filesystem DIR',
      "sallyport dev --upstream web=http://127.0.0.1:3001/mcp --server time='uvx mcp-server-time'",
      'sallyport dev --from mcp.json',
      'sallyport dev --demo',
      'sallyport dev --demo --exit    # only the tour; exit 1 if an outcome differs',
    ],
    configure(command, finish) {
      const networks = ['public', 'private', 'loopback'] as const;
      command
        .argument('[servers...]', 'URLs of MCP servers, or behind -- the command that starts a stdio server')
        .option(
          '--upstream <[name=]url>',
          'an MCP server to put the gateway in front of; may be repeated',
          collectNamed(String),
        )
        .option(
          '--server <[name=]command>',
          'a stdio server; may be repeated. The command is split by the quotes of a shell, and none is run: no variables, no patterns of files, no pipes',
          collectNamed(String),
        )
        .option(
          '--from <file>',
          'the servers of mcp.json, or of the file of Claude Desktop, Claude Code, VS Code or Cursor; asks about each',
        )
        .option('--yes <names...>', 'with --from, the servers to serve, without a question')
        .option(
          '--header <[name=]header>',
          "'Name: value', sent to the upstream; of several, NAME='Name: value'",
          collectNamed(readHeader),
        )
        .addOption(
          new Option('--transport <[name=]transport>', 'how the upstream speaks')
            .choices(TRANSPORTS)
            .argParser(collectNamed(readOneOf(TRANSPORTS))),
        )
        .option(
          '--env <[name=]variable>',
          'environment variable that the command gets too; of several commands, NAME=VARIABLE',
          collectNamed((text) => collectVariable(text)[0] ?? ''),
        )
        .option('--save <dir>', 'keep gateway file, policies and lock files in this folder')
        .addOption(
          new Option('--network <[name=]network>', 'which addresses the host of the upstream may have')
            .choices(networks)
            .argParser(collectNamed(readOneOf(networks))),
        )
        .option('--demo', 'start a demo server that misbehaves on request and run the tour')
        .option('--exit', 'exit after the tour')
        .option('--port <port>', `port of the endpoint (default: ${DEFAULT_PORT})`, readPort)
        .action(async (given: string[], options: DevOptions) => {
          const operands = splitOperands(given, ports.argv);
          const run = async (): Promise<number> =>
            'error' in operands ? fail(operands.error, EXIT_UNCHECKED, io) : runDev(options, operands, io, ports);
          finish(await withUsage(io, run));
        });
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
