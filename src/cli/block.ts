// `sallyport block` and `sallyport unblock`: orders to a running gateway, by the API of its admin listener. The token of
// an administrator comes from a file or a variable, never from the command line, where other users could read it.
// docs/reference/commands.md; docs/reference/state.md#revoking-and-blocking.

import { join, resolve } from 'node:path';
import { type Command as Commander, InvalidArgumentError } from 'commander';
import { decodeUtf8, type Files } from '../config/files.js';
import { readDurationMs } from '../config/schema/declarations.js';
import { LOCK_SUFFIX } from '../pins/lock.js';
import { isObject, parseObject } from '../protocol/jsonrpc.js';
import { escapeForTerminal, toVisibleJson } from '../text/escaping.js';
import { describeReadError, nearestCandidate } from '../text/wording.js';
import {
  type CliIo,
  type Command,
  EXIT_FAILED,
  EXIT_FINE,
  type Finish,
  originOf,
  UsageError,
  withConfigOption,
  withUsage,
} from './program.js';

const TOKEN_VARIABLE = 'SALLYPORT_ADMIN_TOKEN';
const PATH = '/api/revocations';
const MS_PER_SECOND = 1_000;
const UNAUTHORIZED = 401;
const ACCEPTED = 202;
const LAST_SUCCESS = 299;

type AdminRequest = {
  readonly method: 'GET' | 'POST' | 'DELETE';
  readonly token: string;
  readonly body?: string;
};

export type BlockPorts = {
  readonly files: Pick<Files, 'readFile'>;
  /** Sends a request; redirects are not followed. Rejects if there is no response in time. */
  readonly ask: (url: string, request: AdminRequest) => Promise<{ readonly status: number; readonly text: string }>;
};

type Options = {
  readonly config?: string;
  readonly url?: string;
  readonly tokenFile?: string;
  readonly json?: boolean;
  readonly note?: string;
  readonly for?: number;
  readonly client?: string;
};

/** What the API shows of a revocation or a block; read with care, because any server may have sent it. */
type Shown = { readonly [member: string]: unknown };

/** What a subcommand names: its arguments, and the order that it sends. */
type Orders = {
  readonly name: string;
  readonly about: string;
  readonly args: readonly (readonly [name: string, about: string])[];
  readonly order: (given: readonly string[], options: Options) => object;
  readonly isBlock: boolean;
};

const ISSUER = ['issuer', 'name or identifier of the issuer'] as const;
const UPSTREAM = ['upstream', 'name of the upstream'] as const;
const SUBJECT = ['subject', 'the subject, as in the audit log'] as const;

/** A command that blocks one kind of target. Its arguments are the members of the block. */
function blockOrders(target: string, about: string, args: Orders['args']): Orders {
  return {
    name: target,
    about,
    args,
    order(given, { for: expiresIn }) {
      const named = Object.fromEntries(args.map(([name], index) => [name, given[index]]));
      return { block: { target, ...named, ...(expiresIn === undefined ? {} : { expiresIn }) } };
    },
    isBlock: true,
  };
}

function itemOrders(target: string, what: string): Orders {
  const about = `Hide and refuse one ${target} of an upstream, for every caller.`;
  return blockOrders(target, about, [UPSTREAM, ['name', what]]);
}

const ORDERS: readonly Orders[] = [
  itemOrders('tool', 'name of the tool at its upstream'),
  itemOrders('prompt', 'name of the prompt at its upstream'),
  itemOrders('template', 'the uriTemplate'),
  itemOrders('resource', 'the URI'),
  blockOrders('upstream', 'Refuse every request to an upstream, and end its open streams.', [UPSTREAM]),
  blockOrders('subject', 'Refuse a subject, also with tokens that are issued later.', [ISSUER, SUBJECT]),
  blockOrders('client', 'Refuse every token that was issued to a client.', [
    ISSUER,
    ['client', 'the client id, as in the audit log'],
  ]),
  blockOrders('everything', 'Refuse every request to every upstream.', []),
  {
    name: 'token',
    about: 'Revoke one token.',
    args: [ISSUER, ['jti', 'the id of the token']],
    order: ([issuer, jti]) => ({ token: { issuer, jti } }),
    isBlock: false,
  },
  {
    name: 'token-digest',
    about: 'Revoke one token by its digest in the audit log.',
    args: [['digest', '`actor.token.id` of an audit event']],
    order: ([digest]) => ({ token: { digest } }),
    isBlock: false,
  },
  {
    name: 'tokens',
    about: 'Revoke all tokens that a subject has now; tokens of a later login work.',
    args: [ISSUER, SUBJECT],
    order: ([issuer, subject], { client }) => ({
      subject: { issuer, subject, ...(client === undefined ? {} : { client }) },
    }),
    isBlock: false,
  },
  {
    name: 'session',
    about: 'Revoke one session.',
    args: [['digest', '`client.session` of an audit event']],
    order: ([digest]) => ({ session: { digest } }),
    isBlock: false,
  },
];

async function readToken(options: Options, io: CliIo, { files }: BlockPorts): Promise<string> {
  const { tokenFile } = options;
  const given = tokenFile === undefined ? io.env[TOKEN_VARIABLE] : readTokenFile(tokenFile, io, files);
  const token = given?.trim().replace(/^bearer +/i, '') ?? '';
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  const where = tokenFile === undefined ? TOKEN_VARIABLE : escapeForTerminal(tokenFile);
  const what = given === undefined || given.trim() === '' ? 'is not set or empty' : 'holds no token';
  throw new UsageError(
    `error: ${where} ${what}; give the token of an administrator with --token-file FILE or ${TOKEN_VARIABLE}\n`,
  );
}

function readTokenFile(file: string, io: CliIo, { readFile }: BlockPorts['files']): string {
  try {
    return decodeUtf8(readFile(resolve(io.cwd, file))) ?? '';
  } catch (error) {
    throw new UsageError(`error: ${escapeForTerminal(file)} ${describeReadError(error)}\n`);
  }
}

/** Where the admin listener is: as given, or on this machine as the gateway file says. */
async function readOrigin(options: Options, io: CliIo, { files }: BlockPorts): Promise<string> {
  const { url, config } = options;
  if (url !== undefined) return url;
  const { loadListeners } = await import('../config/load.js');
  const listeners = loadListeners(resolve(io.cwd, config ?? ''), files.readFile);
  const admin = listeners?.admin;
  if (admin === undefined) {
    const why = listeners === undefined ? 'cannot be read or has errors' : 'has no "admin"';
    throw new UsageError(
      `error: ${escapeForTerminal(config ?? '')} ${why}, so the address of the admin listener is not known; correct it, or give --url\n`,
    );
  }
  return originOf(admin.host, admin.port, admin.tls !== undefined);
}

/** Sends one request and returns what the response holds; every other outcome than success is an error. */
type Send = (
  path: string,
  request: Omit<AdminRequest, 'token'>,
) => Promise<{ readonly status: number; readonly value: Shown }>;

async function createSender(options: Options, io: CliIo, ports: BlockPorts): Promise<Send> {
  const token = await readToken(options, io, ports);
  const origin = await readOrigin(options, io, ports);
  return (path, request) => ask(`${origin}${path}`, { ...request, token }, origin, ports);
}

async function ask(url: string, request: AdminRequest, origin: string, ports: BlockPorts): ReturnType<Send> {
  let response: Awaited<ReturnType<BlockPorts['ask']>>;
  try {
    response = await ports.ask(url, request);
  } catch {
    throw new UsageError(
      `error: ${escapeForTerminal(origin)} does not answer; is the gateway running, with its admin listener there?\n`,
    );
  }
  const { status, text } = response;
  const value: Shown | undefined = parseObject(text);
  if (status <= LAST_SUCCESS && (value !== undefined || text === '')) {
    return { status, value: value ?? {} };
  }
  const why = value?.['error'];
  if (typeof why === 'string') throw new UsageError(`error: ${escapeForTerminal(why)}\n`, EXIT_FAILED);
  const what =
    status === UNAUTHORIZED
      ? 'the gateway does not accept this token'
      : `${escapeForTerminal(origin)} answered ${status}`;
  throw new UsageError(`error: ${what}\n`);
}

/** The members that name what a revocation or a block is about. */
const NAMED = ['upstream', 'name', 'issuer', 'subject', 'client', 'digest'] as const;

function describeShown(shown: Shown): string {
  const kind = shown['kind'] === 'block' ? shown['target'] : `${String(shown['kind'])} (revoked)`;
  const names = NAMED.flatMap((name) => (typeof shown[name] === 'string' ? [shown[name]] : []));
  const until = typeof shown['expires'] === 'string' ? `until ${shown['expires']}` : 'until lifted';
  const parts = [shown['id'], kind, ...names, until, `by ${String(shown['by'])}:`, shown['note']];
  return `${parts.map((part) => escapeForTerminal(String(part))).join(' ')}\n`;
}

/** Warns of a name that is not in the lock file: a misspelt one blocks nothing that exists. */
async function warnOfUnknownName(
  { target, upstream, name, id }: Shown,
  options: Options,
  io: CliIo,
  { files }: BlockPorts,
): Promise<void> {
  if (target !== 'tool' && target !== 'prompt' && target !== 'template') return;
  const { loadGateway } = await import('../config/load.js');
  const { readFile } = files;
  const file = resolve(io.cwd, options.config ?? '');
  const { pinsDir } = loadGateway(file, { readFile, env: io.env, secrets: 'skip' }).outline ?? {};
  if (pinsDir === undefined || typeof name !== 'string' || typeof upstream !== 'string') return;
  const { readLock } = await import('../pins/lock-reader.js');
  let text: string | undefined;
  try {
    text = decodeUtf8(files.readFile(join(pinsDir, `${upstream}${LOCK_SUFFIX}`)));
  } catch {
    return;
  }
  const known = readLock('', text ?? '').lock?.pins[target];
  if (known === undefined || known.has(name)) return;
  const nearest = nearestCandidate(name, [...known.keys()]);
  const meant = nearest === undefined ? '.' : `; did you mean "${escapeForTerminal(nearest)}"?`;
  io.stderr(
    `warning: the lock file of ${escapeForTerminal(upstream)} has no ${target} "${escapeForTerminal(name)}"${meant} The block is in force for this name; to lift it, run: sallyport unblock ${escapeForTerminal(String(id))}\n`,
  );
}

async function runOrder(
  { order }: Orders,
  given: readonly string[],
  options: Options,
  io: CliIo,
  ports: BlockPorts,
): Promise<number> {
  const send = await createSender(options, io, ports);
  const body = JSON.stringify({ note: options.note, ...order(given, options) });
  const { status, value } = await send(PATH, { method: 'POST', body });
  const made = value['revocation'];
  if (options.json === true) io.stdout(`${toVisibleJson(value, 0)}\n`);
  else io.stdout(describeShown(isObject(made) ? made : {}));
  if (options.url === undefined && isObject(made)) await warnOfUnknownName(made, options, io, ports);
  const warning = value['warning'];
  if (typeof warning === 'string') io.stderr(`warning: ${escapeForTerminal(warning)}\n`);
  if (status === ACCEPTED)
    io.stderr(
      'warning: the shared store cannot be reached, so this is in force on one replica only until it is back\n',
    );
  return EXIT_FINE;
}

async function runList(options: Options, io: CliIo, ports: BlockPorts): Promise<number> {
  const send = await createSender(options, io, ports);
  const { value } = await send(PATH, { method: 'GET' });
  const listed = value['revocations'];
  const rows = Array.isArray(listed) ? listed.filter(isObject) : [];
  if (options.json === true) io.stdout(`${toVisibleJson(rows, 0)}\n`);
  else if (rows.length === 0) io.stderr('note: nothing is blocked or revoked\n');
  else for (const row of rows) io.stdout(describeShown(row));
  return EXIT_FINE;
}

async function runUnblock(ids: readonly string[], options: Options, io: CliIo, ports: BlockPorts): Promise<number> {
  const send = await createSender(options, io, ports);
  for (const id of ids) {
    await send(`${PATH}/${encodeURIComponent(id)}`, { method: 'DELETE' });
    if (options.json !== true) io.stdout(`${escapeForTerminal(id)} lifted\n`);
  }
  if (options.json === true) io.stdout(`${JSON.stringify({ lifted: ids })}\n`);
  return EXIT_FINE;
}

function readSeconds(text: string): number {
  const ms = readDurationMs(text);
  if (ms === undefined || ms < MS_PER_SECOND)
    throw new InvalidArgumentError('Expected a duration such as 30m, 2h or 7d, at most 24d.');
  return Math.ceil(ms / MS_PER_SECOND);
}

function readUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.pathname !== '/')
    throw new InvalidArgumentError('Expected the origin of the admin listener, such as https://host:9090.');
  return url.origin;
}

function withAdminOptions(command: Commander, io: CliIo): Commander {
  const isNeeded = (): boolean => command.getOptionValue('url') === undefined;
  const description = 'the gateway file, for the address of its admin listener';
  return withConfigOption(command, io, { description, isNeeded })
    .option('--url <url>', 'origin of the admin listener, instead of the gateway file', readUrl)
    .option('--token-file <file>', `file with a token of an administrator (default: $${TOKEN_VARIABLE})`)
    .option('--json', 'print JSON');
}

function addOrder(parent: Commander, orders: Orders, finish: Finish, io: CliIo, ports: BlockPorts): void {
  const command = parent.command(orders.name).description(orders.about);
  for (const [name, about] of orders.args) command.argument(`<${name}>`, about);
  withAdminOptions(command, io).requiredOption('--note <text>', 'why, for the audit log');
  if (orders.isBlock) command.option('--for <duration>', 'how long (default: until lifted)', readSeconds);
  if (orders.name === 'tokens') command.option('--client <client>', 'only the tokens of this client');
  command.action(async () =>
    finish(await withUsage(io, () => runOrder(orders, command.args, command.opts<Options>(), io, ports))),
  );
}

export function blockCommand(io: CliIo, ports: BlockPorts): Command {
  return {
    name: 'block',
    summary: 'Block a tool, an upstream, a subject, a client or everything at a running gateway.',
    examples: [
      'sallyport block tool github create_issue --note "INC-7" --token-file admin.token',
      'sallyport block subject corp ada --note "laptop was lost" --for 2h',
      'sallyport block everything --note "INC-7"',
      'sallyport block list',
    ],
    configure(command, finish) {
      for (const orders of ORDERS) addOrder(command, orders, finish, io, ports);
      const list = command.command('list').description('List what is blocked or revoked.');
      withAdminOptions(list, io).action(async (options: Options) =>
        finish(await withUsage(io, () => runList(options, io, ports))),
      );
    },
  };
}

export function unblockCommand(io: CliIo, ports: BlockPorts): Command {
  return {
    name: 'unblock',
    summary: 'Lift blocks and revocations by their ids.',
    examples: ['sallyport unblock 0b7e9f0e-6f5d-4a43-9d1c-2d7c3f1d8a11'],
    configure(command, finish) {
      withAdminOptions(command.argument('<ids...>', 'ids, as `block list` prints them'), io).action(
        async (ids: string[], options: Options) =>
          finish(await withUsage(io, () => runUnblock(ids, options, io, ports))),
      );
    },
  };
}
