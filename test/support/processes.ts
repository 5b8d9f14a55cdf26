// Programs that tests start: the built program, a Redis, threads; and free ports for them.

import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { canary } from './canary.js';

// A TCP port on loopback that was free a moment ago, for programs that cannot listen on 0 and tell.

/** Below the range from which systems take the ports of outgoing connections. */
const FIRST_PORT = 12_000;
/** Each worker of the test runner takes ports of its own, because a port is opened a while after it was found. */
const PORTS_A_WORKER = 2_500;
const WORKERS = 8;
/** Most of what a worker may give; it begins anew then. */
const MAX_GIVEN = PORTS_A_WORKER / 2;

const worker = Number(process.env['VITEST_POOL_ID'] ?? 0) % WORKERS;
const first = FIRST_PORT + worker * PORTS_A_WORKER;
const given = new Set<number>();

/** Finds a port that is free now, where no outgoing connection will take it in between. */
export async function findFreePort(): Promise<number> {
  if (given.size > MAX_GIVEN) given.clear();
  for (;;) {
    const port = randomInt(first, first + PORTS_A_WORKER);
    if (given.has(port)) continue;
    given.add(port);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}

// The built program as a user runs it: built when it is older than its source, run as a child process,
// ended by its own process object.

const ROOT = join(import.meta.dirname, '../..');
const MAIN = join(ROOT, 'dist/main.js');
/** So that one that hangs ends; what takes its time on a busy machine is no fault. */
const RUN_TIMEOUT_MS = 120_000;

/** Where Node 24 keeps what it has compiled: tests start the same program hundreds of times. */
const COMPILED = 'NODE_COMPILE_CACHE';

export type Ended = { readonly code: number; readonly stdout: string; readonly stderr: string };

export type Served = {
  /** Everything printed so far. */
  stdout(): string;
  stderr(): string;
  signal(name: 'SIGTERM' | 'SIGHUP' | 'SIGKILL'): void;
  /** Resolves with the exit code. */
  readonly ended: Promise<number>;
};

type Running = { readonly child: ChildProcess; readonly out: { stdout: string; stderr: string } };

function newestSource(): number {
  const entries = readdirSync(join(ROOT, 'src'), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .reduce((newest, { parentPath, name }) => {
      return Math.max(newest, statSync(join(parentPath, name)).mtimeMs);
    }, 0);
}

function start(args: readonly string[], env: Readonly<Record<string, string>>, cwd: string): Running {
  const child = spawn(process.execPath, [...args], {
    cwd,
    env: { PATH: process.env['PATH'], [COMPILED]: process.env[COMPILED], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const out = { stdout: '', stderr: '' };
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    out.stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    out.stderr += text;
  });
  return { child, out };
}

async function end({ child, out }: Running): Promise<Ended> {
  const timer = setTimeout(() => child.kill('SIGKILL'), RUN_TIMEOUT_MS);
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  clearTimeout(timer);
  canary.recordSeen('the output of the program', `${out.stdout}\n${out.stderr}`);
  if (code === null) throw new Error(`ended by ${signal}: ${out.stderr}`);
  return { code, ...out };
}

/** Builds `dist/` unless it is newer than every source. */
export async function buildProgram(): Promise<void> {
  if (existsSync(MAIN) && statSync(MAIN).mtimeMs >= newestSource()) return;
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  const built = await end(start([compiler], {}, ROOT));
  if (built.code !== 0) throw new Error(`the build failed: ${built.stdout}${built.stderr}`);
}

/** Runs `sallyport ARGS` to its end, in the folder of the project unless told otherwise. */
export function runSallyport(
  args: readonly string[],
  options: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<Ended> {
  return end(start([MAIN, ...args], options.env ?? {}, options.cwd ?? ROOT));
}

/** Starts `sallyport ARGS` and leaves it running. */
export function startSallyport(
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
): Served {
  const running = start([MAIN, ...args], env, cwd);
  const { child, out } = running;
  const ended = end(running).then(({ code }) => code);
  ended.catch(() => undefined);
  return {
    stdout: () => out.stdout,
    stderr: () => out.stderr,
    signal: (name) => void child.kill(name),
    ended,
  };
}

// A real redis-server on a free port of loopback, without persistence, with a password, ended by its own
// process object. For the system tests: a missing program fails them.

export type RedisServer = {
  readonly url: string;
  /** Stops answering without closing a connection, and goes on. */
  pause(): void;
  resume(): void;
  /** Ends it, with all that it held. */
  stop(): Promise<void>;
  /** Starts it again, empty. */
  start(): Promise<void>;
  /** Sends one command and returns all that is answered at once, as RESP. */
  command(...terms: readonly string[]): Promise<string>;
  close(): Promise<void>;
};

/** The rights that a gateway needs and no more: the words of docs/reference/state.md. */
export const GATEWAY_RIGHTS = [
  ...['~{sallyport}:*', '&{sallyport}:*', '-@all', '+evalsha', '+eval', '+set', '+get'],
  ...['+zadd', '+zscore', '+zcount', '+zcard', '+zrange', '+zrevrange', '+zrangebyscore', '+zrem'],
  ...['+zremrangebyscore', '+zremrangebyrank', '+hset', '+hdel', '+hget', '+hmget', '+hgetall'],
  ...['+hincrby', '+pttl', '+pexpire', '+pexpireat', '+publish', '+subscribe', '+time', '+hello', '+select'],
] as const;

/** Starts the server; its user `gateway` has {@link GATEWAY_RIGHTS}. */
export async function startRedisServer(): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-redis-'));
  const port = await findFreePort();
  const [password, rootPassword] = [randomBytes(12).toString('hex'), randomBytes(12).toString('hex')];
  const file = join(folder, 'redis.conf');
  const lines = [
    ...[`port ${port}`, 'bind 127.0.0.1', `dir ${folder}`, 'save ""', 'appendonly no'],
    ...[`requirepass ${rootPassword}`, `user gateway on >${password} ${GATEWAY_RIGHTS.join(' ')}`],
  ];
  await writeFile(file, `${lines.join('\n')}\n`, { mode: 0o600 });
  let child: ChildProcess | undefined;

  async function start(): Promise<void> {
    child = spawn('redis-server', [file], { stdio: ['ignore', 'pipe', 'ignore'] });
    let printed = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
    let failure: unknown;
    child.once('error', (error) => {
      failure = error;
    });
    while (!(await command('PING').catch(() => '')).includes('PONG')) {
      if (failure !== undefined || child.exitCode !== null)
        throw new Error(`redis-server does not run: ${String(failure)} ${printed}`);
      await sleep(20);
    }
  }

  function command(...terms: readonly string[]): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1');
      let text = '';
      socket.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      socket.on('error', reject).on('close', () => resolve(text));
      const sent = [['AUTH', rootPassword], terms, ['QUIT']].map(
        (line) => `*${line.length}\r\n${line.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`,
      );
      socket.write(sent.join(''));
    });
  }

  async function stop(): Promise<void> {
    if (child === undefined || child.exitCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  await start();
  return {
    url: `redis://gateway:${password}@127.0.0.1:${port}`,
    pause: () => void child?.kill('SIGSTOP'),
    resume: () => void child?.kill('SIGCONT'),
    stop,
    start,
    command,
    async close() {
      await stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

// Threads of inspections for tests: the built one, and such as fail in one way each.

/** The thread as it is built; whoever uses it builds the program first. */
export const BUILT_THREAD: URL = pathToFileURL(join(import.meta.dirname, '../../dist/work/inspection-thread.js'));

function thread(onJob: string): URL {
  const code = `import { parentPort, threadId } from 'node:worker_threads';
    parentPort.on('message', (job) => { ${onJob} });
    parentPort.postMessage('ready');`;
  return new URL(`data:text/javascript,${encodeURIComponent(code)}`);
}

/** Ends with the first job. */
export const DYING_THREAD: URL = thread('process.exit(0)');
/** Throws at the first job. */
export const THROWING_THREAD: URL = thread('throw new Error("broken on purpose")');
/** Takes more memory than it may have. */
export const HUNGRY_THREAD: URL = thread('const held = []; for (;;) held.push(new Array(1e6).fill(held.length));');
/** Never answers, and lets nobody else. */
export const HANGING_THREAD: URL = thread('for (;;);');
/** Does what the text of a job says: `die`, `hang`, `slow`, or answers at once with its id. */
export const SCRIPTED_THREAD: URL = thread(
  `const { text } = job.input;
  if (text === 'die') process.exit(0);
  while (text === 'hang');
  const answer = () => parentPort.postMessage({ kind: 'read', thread: threadId });
  if (text === 'slow') setTimeout(answer, 200);
  else answer();`,
);
/** Never comes to say that it is ready. */
export const MUTE_THREAD: URL = new URL('data:text/javascript,setInterval(() => {}, 1000)');
/** Is not there. */
export const MISSING_THREAD: URL = new URL('file:///nowhere/inspection-thread.js');
/** Ends before it is ready. */
export const STILLBORN_THREAD: URL = new URL('data:text/javascript,throw new Error("not today")');
