// A real redis-server on a free port of loopback, without persistence, with a password, ended by its own
// process object. For the system tests: a missing program fails them.

import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from './free-port.js';

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
  ...['+zremrangebyscore', '+zremrangebyrank', '+hset', '+hdel', '+hgetall', '+hincrby'],
  ...['+pexpire', '+pexpireat', '+publish', '+subscribe', '+time', '+hello', '+select'],
] as const;

/** Starts the server; its user `gateway` has {@link GATEWAY_RIGHTS}. */
export async function startRedisServer(): Promise<RedisServer> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-redis-'));
  const port = await findFreePort();
  const [password, rootPassword] = [
    randomBytes(12).toString('hex'),
    randomBytes(12).toString('hex'),
  ];
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
        (line) =>
          `*${line.length}\r\n${line.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`).join('')}`,
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
