// `sallyport list`: the servers of a configuration in a table: their state, their tools, what of their definitions is
// approved, whether they drifted, and how many tools each group sees, by the function that decides what a list shows. The
// state comes from a running gateway if its admin API is configured and a token is given, otherwise from the files; the
// output says which. Asks no server; of the adapter of stdio servers it is looked whether somebody listens there. docs/reference/commands.md#add-remove-and-list.

import { dirname, join, relative, resolve } from 'node:path';
import { countReviewed, pendingOf } from '../../pins/approval.js';
import { isObject } from '../../protocol/jsonrpc.js';
import { escapeForTerminal, toVisibleJson, urlHost } from '../../text/escaping.js';
import { wrapText } from '../../text/wording.js';
import { type AdminApiPorts, type AdminOptions, createSender, withAdminOptions } from '../admin-client.js';
import { type PinPorts, readLockFile } from '../pin/lock-files.js';
import { countListed, groupCallers } from '../policy/callers.js';
import { openWorkspace, type WorkspacePorts } from '../policy/workspace.js';
import { type CliIo, type Command, commandLine, EXIT_FINE, UsageError, withUsage } from '../program.js';
import { type ListenAddress, readStdioFile, STDIO_FILE, type StdioReading } from './stdio-file.js';

export type ListPorts = WorkspacePorts &
  Pick<AdminApiPorts, 'ask'> & {
    /** Whether somebody listens there; the path of a socket is absolute. */
    isListening(address: ListenAddress): Promise<boolean>;
  };

/** A row of the table. */
type ServerRow = {
  readonly name: string;
  /** `configured` without a gateway that was asked. */
  readonly state: 'configured' | 'up' | 'degraded' | 'away' | 'not loaded';
  /** Why the state is what it is, if it is neither `configured` nor `up`. */
  readonly why?: string;
  readonly tools: number;
  /** Of definitions of every kind. */
  readonly approved: number;
  readonly pending: number;
  readonly blocked: number;
  /** Whether something is not as it was approved; absent where no gateway was asked. */
  readonly drift?: boolean;
  /** How many tools a caller of a group sees now; without a group, every caller. */
  readonly who: readonly { readonly issuer: string; readonly group?: string; readonly tools: number }[];
};

type ListOptions = AdminOptions & { readonly config: string };

async function runList(options: ListOptions, io: CliIo, ports: ListPorts): Promise<number> {
  const workspace = await openWorkspace({ config: options.config, areModesKept: true }, io, ports);
  const asked = await askGateway(options, io, ports);
  const callers = groupCallers(workspace, ports);
  const { upstreams, pinsDir } = workspace.outline;
  const rows = upstreams.map(({ name }): ServerRow => {
    const read = readLockFile(pinsDir, name, io, ports as unknown as PinPorts);
    const lock = read === 'invalid' ? undefined : read.lock;
    const counts = lock === undefined ? { approved: 0, blocked: 0 } : countReviewed(lock);
    return {
      name,
      ...(asked.controls === undefined ? { state: 'configured' } : stateOf(name, asked.controls)),
      ...{ tools: lock?.pins.tool.size ?? 0, ...counts, pending: pendingOf(lock).length },
      who: callers.map((caller) => ({
        ...{ issuer: caller.issuer, ...(caller.group === undefined ? {} : { group: caller.group }) },
        tools: countListed(name, caller, workspace, ports),
      })),
    };
  });
  const adapter = await findAdapter(options.config, rows, io, ports);
  io.stdout(options.json === true ? jsonText(rows, asked.source, adapter) : tableText(rows, asked.source, adapter));
  return EXIT_FINE;
}

/** The adapter of the stdio servers, where nobody reaches it. */
type AbsentAdapter = { readonly servers: readonly string[]; readonly listen: string; readonly start: string };

/** Absent if there is none, a gateway reaches a server of it, or somebody listens where it would. */
async function findAdapter(
  config: string,
  rows: readonly ServerRow[],
  io: CliIo,
  { files, isListening }: ListPorts,
): Promise<AbsentAdapter | undefined> {
  const file = join(dirname(resolve(io.cwd, config)), STDIO_FILE);
  let read: StdioReading;
  try {
    read = readStdioFile(file, files.readFile(file));
  } catch {
    return undefined;
  }
  if (!read.ok) return undefined;
  const { listen, servers } = read.value;
  const served = rows.filter(({ name }) => servers.has(name));
  if (served.length === 0 || served.some(({ state }) => state === 'up' || state === 'degraded')) return undefined;
  const address = 'socket' in listen ? { socket: resolve(dirname(file), listen.socket) } : listen;
  if (await isListening(address)) return undefined;
  return {
    servers: served.map(({ name }) => name),
    listen: 'socket' in listen ? `unix:${listen.socket}` : `${urlHost(listen.host)}:${listen.port}`,
    start: commandLine(io, ['stdio', '--config', relative(io.cwd, file)]),
  };
}

type Control = { readonly state: string; readonly reason: string };

/** The controls of the running gateway by name, or nothing with why it was not asked. */
async function askGateway(
  options: ListOptions,
  io: CliIo,
  ports: ListPorts,
): Promise<{ readonly controls?: ReadonlyMap<string, Control>; readonly source: string }> {
  try {
    const send = await createSender(options, io, ports);
    const { value } = await send('/api/controls', { method: 'GET' });
    const rows = Array.isArray(value['controls']) ? value['controls'] : [];
    const controls = new Map(
      rows
        .filter(isObject)
        .map((row) => [String(row['control']), { state: String(row['state']), reason: String(row['reason']) }]),
    );
    return { controls, source: 'the running gateway' };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const [why = ''] = error.message
      .replace(/^error: /, '')
      .trim()
      .split(';');
    return { source: `the files; a running gateway was not asked: ${why}` };
  }
}

/** As the table of controls words it (src/telemetry/controls.ts). */
const AWAY = /the upstream has not been listed yet|could not be verified within|answers neither/;
const DRIFT = /(?:^|; )not as pinned: /;

function stateOf(name: string, controls: ReadonlyMap<string, Control>): Pick<ServerRow, 'state' | 'why' | 'drift'> {
  const [pins, ...others] = ['pins', 'upstream-connection', 'upstream-credentials'].map((kind) =>
    controls.get(`${kind}:${name}`),
  );
  if (pins === undefined) return { state: 'not loaded', why: 'the running gateway does not have this server' };
  const degraded = [pins, ...others].filter((control) => control?.state === 'degraded');
  const why = degraded
    .map((control) => control?.reason ?? '')
    .filter((reason) => reason !== '')
    .join('; ');
  const drift = DRIFT.test(pins.reason);
  if (degraded.length === 0) return { state: 'up', drift };
  return { state: AWAY.test(why) ? 'away' : 'degraded', why, drift };
}

function jsonText(servers: readonly ServerRow[], source: string, away: AbsentAdapter | undefined): string {
  return `${toVisibleJson({ state: source, servers, ...(away === undefined ? {} : { adapterAway: away }) })}\n`;
}

const MAX_NAME_WIDTH = 27;

/** The table, with the callers that see something below each row, in lines of at most 80 columns. */
function tableText(rows: readonly ServerRow[], source: string, away: AbsentAdapter | undefined): string {
  const width = Math.min(MAX_NAME_WIDTH, Math.max('SERVER'.length, ...rows.map(({ name }) => name.length)));
  const head = line('SERVER', ['STATE', 'TOOLS', 'APPROVED', 'PENDING', 'BLOCKED', 'DRIFT'], width);
  const hasIssuers = new Set(rows.flatMap(({ who }) => who.map(({ issuer }) => issuer))).size > 1;
  const lines = rows.flatMap((row) => [
    line(row.name, [row.state, row.tools, row.approved, row.pending, row.blocked, driftOf(row)].map(String), width),
    ...wrapText(`who: ${whoText(row, hasIssuers)}`),
    ...(row.why === undefined ? [] : wrapText(`why: ${escapeForTerminal(row.why)}`)),
  ]);
  const adapter =
    away === undefined
      ? []
      : [
          ...wrapText(
            `Nothing listens on ${escapeForTerminal(away.listen)}, the adapter of ${away.servers.join(', ')}.`,
            '',
          ),
          `Start it: ${away.start}`,
        ];
  return `${[head, ...lines, '', ...wrapText(`State from ${source}.`, ''), ...adapter].join('\n')}\n`;
}

function driftOf({ drift }: ServerRow): string {
  if (drift === undefined) return '?';
  return drift ? 'yes' : 'no';
}

const COLUMNS = [11, 7, 10, 9, 9, 5];

function line(name: string, cells: readonly string[], width: number): string {
  const shown = name.length > width ? `${name.slice(0, width - 1)}…` : name;
  return `${shown.padEnd(width)}  ${cells.map((cell, at) => cell.padEnd(COLUMNS[at] ?? 0)).join('')}`.trimEnd();
}

/** Without a group, what every caller sees; it is said only where that is something, or nobody sees anything. */
function whoText({ who, pending }: ServerRow, hasIssuers: boolean): string {
  const seen = who.filter(({ tools }) => tools > 0);
  if (seen.length === 0) return pending > 0 ? 'nobody sees a tool before it is approved' : 'nobody sees a tool';
  const everyone = new Map(seen.filter(({ group }) => group === undefined).map(({ issuer, tools }) => [issuer, tools]));
  return seen
    .filter(({ group, issuer, tools }) => group === undefined || tools !== everyone.get(issuer))
    .map(({ group, issuer, tools }) => {
      const at = hasIssuers ? `${issuer}/` : '';
      return `${group === undefined ? `${at}everybody` : `${at}${escapeForTerminal(group)}`} ${tools}`;
    })
    .join(', ');
}

export function listCommand(io: CliIo, ports: ListPorts): Command {
  return {
    name: 'list',
    summary: 'List the servers of a configuration: state, tools, approvals, drift, and who sees how many.',
    examples: ['sallyport list', 'sallyport list --json'],
    configure(command, finish) {
      withAdminOptions(command, io, 'always').action(async (options: ListOptions) =>
        finish(await withUsage(io, () => runList(options, io, ports))),
      );
    },
  };
}
