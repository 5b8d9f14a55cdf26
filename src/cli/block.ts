// `sallyport block` and `sallyport unblock`: orders to a running gateway, by the API of its admin listener.
// docs/reference/commands.md; docs/reference/state.md#revoking-and-blocking.

import { join, resolve } from 'node:path';
import { type Command as Commander, InvalidArgumentError } from 'commander';
import { decodeUtf8 } from '../config/files.js';
import { readDurationMs } from '../config/schema/declarations.js';
import { LOCK_SUFFIX } from '../pins/lock.js';
import { isObject } from '../protocol/jsonrpc.js';
import { escapeForTerminal, toVisibleJson } from '../text/escaping.js';
import { nearestCandidate } from '../text/wording.js';
import { type AdminApiPorts, type AdminOptions, createSender, type Shown, withAdminOptions } from './admin-client.js';
import { type CliIo, type Command, EXIT_FINE, type Finish, withUsage } from './program.js';

const PATH = '/api/revocations';
const MS_PER_SECOND = 1_000;
const ACCEPTED = 202;

type Options = AdminOptions & {
  readonly note?: string;
  readonly for?: number;
  readonly client?: string;
};

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
  { files }: AdminApiPorts,
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
  ports: AdminApiPorts,
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

async function runList(options: Options, io: CliIo, ports: AdminApiPorts): Promise<number> {
  const send = await createSender(options, io, ports);
  const { value } = await send(PATH, { method: 'GET' });
  const listed = value['revocations'];
  const rows = Array.isArray(listed) ? listed.filter(isObject) : [];
  if (options.json === true) io.stdout(`${toVisibleJson(rows, 0)}\n`);
  else if (rows.length === 0) io.stderr('note: nothing is blocked or revoked\n');
  else for (const row of rows) io.stdout(describeShown(row));
  return EXIT_FINE;
}

async function runUnblock(ids: readonly string[], options: Options, io: CliIo, ports: AdminApiPorts): Promise<number> {
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

function addOrder(parent: Commander, orders: Orders, finish: Finish, io: CliIo, ports: AdminApiPorts): void {
  const command = parent.command(orders.name).description(orders.about);
  for (const [name, about] of orders.args) command.argument(`<${name}>`, about);
  withAdminOptions(command, io).requiredOption('--note <text>', 'why, for the audit log');
  if (orders.isBlock) command.option('--for <duration>', 'how long (default: until lifted)', readSeconds);
  if (orders.name === 'tokens') command.option('--client <client>', 'only the tokens of this client');
  command.action(async () =>
    finish(await withUsage(io, () => runOrder(orders, command.args, command.opts<Options>(), io, ports))),
  );
}

export function blockCommand(io: CliIo, ports: AdminApiPorts): Command {
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

export function unblockCommand(io: CliIo, ports: AdminApiPorts): Command {
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
