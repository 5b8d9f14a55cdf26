// `sallyport dev-issuer`: an issuer of one's own for `serve` on this machine, as a process of its own: it serves the
// users of a file, whose passwords it checks, and signs with the key of a file. `dev-issuer user` writes a user into that
// file, `dev-issuer token` logs in at the running issuer for a terminal. It listens on loopback, and no option changes
// that. Passwords are read from the terminal or from standard input, and are no arguments, which other users of the
// machine can read. docs/reference/commands.md#dev-issuer.

import { basename, dirname, join, resolve } from 'node:path';
import type { Command as Commander } from 'commander';
import { startIssuer } from '../dev/issuer.js';
import { LOGIN_CLIENT } from '../dev/issuer-grants.js';
import { hashPassword, newPassword } from '../dev/passwords.js';
import {
  findGrantMistake,
  isUserName,
  NAME_RULE,
  openKeyFile,
  peopleOf,
  readUsersFile,
  writeUser,
} from '../dev/users-file.js';
import { DEVELOPMENT_MEMBER } from '../policy/principal.js';
import { isObject, parseObject } from '../protocol/jsonrpc.js';
import { cleanForeign, escapeForTerminal, quoteForShell } from '../text/escaping.js';
import { countOf } from '../text/wording.js';
import { createGuardedFetch, type GuardedFetch } from '../upstream/safe-fetch.js';
import { addIgnored } from './new-files.js';
import {
  type CliIo,
  type Command,
  commandLine,
  EXIT_FAILED,
  EXIT_FINE,
  EXIT_UNCHECKED,
  fail,
  failToListen,
  readPort,
} from './program.js';
import type { ServePorts } from './serve.js';

type IssuerPorts = Pick<ServePorts, 'untilSignal'> & {
  fetchDocument(url: URL): Promise<unknown>;
  /** A line of standard input, which a terminal does not show; `undefined` at its end. */
  readPassword(question: string): Promise<string | undefined>;
};

const DEFAULT_PORT = 9000;
const DEFAULT_USERS = 'users.yaml';
const KEY_FILE = 'dev-issuer-key.pem';
const MIN_PASSWORD = 8;
const MAX_PASSWORD = 1024;

type ServeOptions = { readonly users: string; readonly key?: string; readonly port: number };

/** Runs until a signal ends it. */
async function runIssuer({ users, key, port }: ServeOptions, io: CliIo, ports: IssuerPorts): Promise<number> {
  const terminated = ports.untilSignal();
  const usersFile = resolve(io.cwd, users);
  const known = await readUsersFile(usersFile);
  if ('why' in known) {
    const add = commandLine(io, ['dev-issuer', 'user', 'NAME', '--group', 'GROUP']);
    const remedy = known.isAbsent === true ? `; this writes it: ${add}` : '';
    return fail(`the users file ${shown(users)} ${known.why}${remedy}`, EXIT_UNCHECKED, io);
  }
  const keyFile = key === undefined ? join(dirname(usersFile), KEY_FILE) : resolve(io.cwd, key);
  // First, so that the key is ignored by Git before it exists.
  if (key === undefined) await addIgnored(dirname(usersFile), [`/${KEY_FILE}`]).catch(() => undefined);
  const opened = await openKeyFile(keyFile);
  if ('why' in opened) return fail(`the key file ${shown(keyFile)} ${opened.why}`, EXIT_UNCHECKED, io);
  const people = peopleOf(usersFile, Date.now, (why) =>
    io.stderr(`error: nobody can log in: the users file ${shown(users)} ${why}\n`),
  );
  const started = startIssuer({ users: people, key: opened.key, fetchDocument: ports.fetchDocument, port });
  const issuer = await started.catch((error: NodeJS.ErrnoException) => error);
  if (issuer instanceof Error) return failToListen(port, issuer, io);
  const [first = { name: 'NAME' }] = known.users;
  const portOption = port === DEFAULT_PORT ? [] : ['--port', String(port)];
  const token = commandLine(io, ['dev-issuer', 'token', '--user', first.name, ...portOption, '--resource', 'AUDIENCE']);
  io.stdout(`development issuer listening on ${issuer.issuer}
users      ${countOf(known.users.length, 'user')} in ${shown(users)}, which is read again at each login
key        ${shown(keyFile)}${opened.isNew ? ', which is new' : ''}
logins     client id ${LOGIN_CLIENT}, with any client secret
tokens     ${token}
`);
  const code = await terminated;
  await issuer.close();
  return code;
}

function shown(path: string): string {
  return escapeForTerminal(path);
}

type UserOptions = {
  readonly users: string;
  readonly group?: readonly string[];
  readonly scope?: readonly string[];
  readonly generate?: boolean;
};

/** Writes a user; a password that was generated is printed. */
async function runUser(name: string, options: UserOptions, io: CliIo, ports: IssuerPorts): Promise<number> {
  const { users, group, scope, generate } = options;
  if (!isUserName(name)) return fail(NAME_RULE, EXIT_UNCHECKED, io);
  const mistake = findGrantMistake({ groups: group ?? [], scopes: scope ?? [] });
  if (mistake !== undefined) return fail(mistake, EXIT_UNCHECKED, io);
  const password = generate === true ? newPassword() : await ports.readPassword(`Password of ${name}: `);
  if (password === undefined || password.length < MIN_PASSWORD || password.length > MAX_PASSWORD) {
    const message = `a password has ${MIN_PASSWORD} to ${MAX_PASSWORD} characters; --generate makes one`;
    return fail(message, EXIT_UNCHECKED, io);
  }
  const file = resolve(io.cwd, users);
  await addIgnored(dirname(file), [`/${basename(file)}`]).catch(() => undefined);
  const before = await readUsersFile(file);
  const isKnown = 'users' in before && before.users.some((user) => user.name === name);
  const error = await writeUser(file, {
    ...{ name, hash: await hashPassword(password) },
    ...{ groups: group, scopes: scope },
  });
  if (error !== undefined) return fail(`the users file ${shown(users)} ${error}`, EXIT_UNCHECKED, io);
  if (generate === true) io.stdout(`${password}\n`);
  const written = isKnown ? `${name} has another password now in` : `${name} is written to`;
  io.stderr(`${written} ${shown(users)}\n`);
  return EXIT_FINE;
}

type TokenOptions = {
  readonly user: string;
  readonly resource: string;
  readonly scope?: readonly string[];
  readonly port: number;
};

const RULE = { network: 'loopback', maxBytes: 64 * 1024, timeoutMs: 30_000 } as const;

/** Logs in at the running issuer, and prints the access token alone. */
async function runToken(options: TokenOptions, io: CliIo, ports: IssuerPorts): Promise<number> {
  const issuer = `http://127.0.0.1:${options.port}`;
  const guarded = createGuardedFetch();
  try {
    // A password goes to nothing that does not say what it is.
    const metadata = await guarded.fetchJson(new URL(`${issuer}/.well-known/oauth-authorization-server`), RULE);
    if (!metadata.ok || !isObject(metadata.value) || metadata.value[DEVELOPMENT_MEMBER] !== true) {
      const start = commandLine(io, ['dev-issuer', '--port', String(options.port)]);
      return fail(`no development issuer answers at ${issuer}; this starts one: ${start}`, EXIT_UNCHECKED, io);
    }
    const password = await ports.readPassword(`Password of ${escapeForTerminal(options.user)}: `);
    if (password === undefined || password === '') return fail('no password was given', EXIT_UNCHECKED, io);
    return await logIn(issuer, options, password, guarded, io);
  } finally {
    await guarded.close();
  }
}

async function logIn(
  issuer: string,
  { user, resource, scope }: TokenOptions,
  password: string,
  { postForm }: GuardedFetch,
  io: CliIo,
): Promise<number> {
  const form = { grant_type: 'password', username: user, password, resource, scope: (scope ?? []).join(' ') };
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const body = new URLSearchParams(form).toString();
  const answer = await postForm(new URL(`${issuer}/token`), { headers, body }, RULE);
  if (!answer.ok) return fail(`the issuer ${answer.detail}`, EXIT_UNCHECKED, io);
  const { access_token: token, error_description: why } = parseObject(new TextDecoder().decode(answer.bytes)) ?? {};
  if (typeof token === 'string') {
    io.stdout(`${token}\n`);
    return EXIT_FINE;
  }
  const reason = typeof why === 'string' ? cleanForeign(why) : `status ${answer.status}`;
  return fail(`no token for ${quoteForShell(user)}: ${reason}`, EXIT_FAILED, io);
}

function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

export function devIssuerCommand(io: CliIo, ports: IssuerPorts): Command {
  return {
    name: 'dev-issuer',
    summary: 'Serve a development issuer with users of a file on loopback, for serve.',
    examples: [
      'sallyport dev-issuer user alice --group eng',
      'sallyport dev-issuer --users users.yaml',
      'sallyport dev-issuer token --user alice --resource http://127.0.0.1:8080/mcp',
    ],
    configure(command, finish) {
      // Options that the command itself has too are taken by it, wherever they stand: those of a subcommand include its.
      const usersOption = ['--users <file>', 'users with hashes of their passwords, mode 0600', DEFAULT_USERS] as const;
      const portOption = ['--port <port>', 'port of the issuer', readPort, DEFAULT_PORT] as const;
      command
        .option(...usersOption)
        .option('--key <file>', `key that signs, mode 0600 (default: ${KEY_FILE} beside the users file)`)
        .option(...portOption)
        .action(async (options: ServeOptions) => finish(await runIssuer(options, io, ports)));
      command
        .command('user')
        .description('Add a user, or set the password of one.')
        .argument('<name>', 'name of the user')
        .option(...usersOption)
        .option('--group <group>', 'group of the user; may be repeated', collect)
        .option('--scope <scope>', 'scope that the user may be given; may be repeated', collect)
        .option('--generate', 'generate the password and print it')
        .action(async (name: string, _options: unknown, self: Commander) =>
          finish(await runUser(name, self.optsWithGlobals<UserOptions>(), io, ports)),
        );
      command
        .command('token')
        .description('Log in at the running issuer and print an access token.')
        .requiredOption('--user <name>', 'name of the user')
        .requiredOption('--resource <url>', 'endpoint that the token is for')
        .option('--scope <scope>', 'scope to ask for; may be repeated', collect)
        .option(...portOption)
        .action(async (_options: unknown, self: Commander) =>
          finish(await runToken(self.optsWithGlobals<TokenOptions>(), io, ports)),
        );
    },
  };
}
