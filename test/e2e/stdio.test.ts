// `sallyport stdio` as a user runs it: token file and socket, a gateway file's view of them, and the end.

import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { buildProgram, findFreePort, runSallyport, type Served, startSallyport } from '../support/processes.js';
import { connectSdkV1 } from '../support/sdk-clients.js';
import { isGone } from '../support/stdio-server.js';

const entry = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js');
const COMMAND = ['--', process.execPath, entry, 'stdio'];
const START = { timeout: 60_000 };
const LONG = 120_000;

let folder: string;
const running: Served[] = [];

beforeAll(buildProgram, LONG);
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-stdio-'));
});
afterEach(async () => {
  for (const one of running.splice(0)) {
    one.signal('SIGTERM');
    await one.ended;
  }
  await rm(folder, { recursive: true, force: true });
});

async function start(...options: readonly string[]): Promise<Served> {
  const served = startSallyport(['stdio', ...options, ...COMMAND], folder);
  running.push(served);
  await expect.poll(served.stdout, START).toContain('upstream ');
  return served;
}

function statusOver(socketPath: string): Promise<number> {
  return new Promise((resolve, reject) => {
    request({ socketPath, path: '/mcp', method: 'POST' }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    })
      .on('error', reject)
      .end();
  });
}

describe('[STD-07] sallyport stdio', () => {
  it(
    'serves an SDK with the token of its file, keeps the token, and ends its server',
    async () => {
      const port = await findFreePort();
      const listen = ['--listen', `127.0.0.1:${port}`, '--token-file', 'token'];
      const served = await start(...listen);
      const file = join(folder, 'token');
      expect((await stat(file)).mode & 0o777).toBe(0o600);
      const header = (await readFile(file, 'utf8')).trim();
      expect(header).toMatch(/^Bearer [\w-]{43}$/);
      expect(served.stdout()).not.toContain(header.slice('Bearer '.length));
      const { client, transport, close } = await connectSdkV1(`http://127.0.0.1:${port}/mcp`, {
        headers: { authorization: header },
      });
      const result = await client.callTool({ name: 'get-env', arguments: {} });
      const [content] = result.content as readonly { text: string }[];
      const variables = Object.keys(JSON.parse(content?.text ?? '{}') as object);
      expect(variables).toEqual(['PATH', 'SALLYPORT_STDIO_ADAPTER']);
      expect(transport.sessionId).toMatch(/^[\w-]{32}$/);
      await close();

      const busy = await runSallyport(['stdio', ...listen, ...COMMAND], { cwd: folder });
      expect(busy.code).toBe(1);
      expect(busy.stderr).toContain(`127.0.0.1:${port} is in use by another process`);
      expect((await readFile(file, 'utf8')).trim()).toBe(header);
      served.signal('SIGTERM');
      expect(await served.ended).toBe(143);
    },
    LONG,
  );

  it(
    'leaves no process behind, and ends when its terminal does',
    async () => {
      const port = await findFreePort();
      const pidFile = join(folder, 'pid');
      const script = `require('node:fs').writeFileSync(${JSON.stringify(pidFile)}, String(process.pid)); setInterval(() => {}, 1000)`;
      const served = startSallyport(
        ['stdio', '--listen', `127.0.0.1:${port}`, '--', process.execPath, '-e', script],
        folder,
      );
      running.push(served);
      await expect.poll(served.stdout, START).toContain('token ');
      const token = /^token +(\S+)$/m.exec(served.stdout())?.[1] ?? '';
      void connectSdkV1(`http://127.0.0.1:${port}/mcp`, { token }).catch(() => undefined);
      await expect.poll(() => readFile(pidFile, 'utf8').catch(() => ''), START).not.toBe('');
      const pid = Number(await readFile(pidFile, 'utf8'));
      served.signal('SIGHUP');
      expect(await served.ended).toBe(129);
      expect(await isGone(pid)).toBe(true);
    },
    LONG,
  );

  it(
    'ends though its server started a process in a session of its own that holds every stream, and ends that too',
    async () => {
      const port = await findFreePort();
      const pidFile = join(folder, 'pid');
      const options = "{ detached: true, stdio: 'inherit' }";
      const script = `const held = require('node:child_process').spawn('sleep', ['300'], ${options}); require('node:fs').writeFileSync(${JSON.stringify(pidFile)}, String(held.pid)); setInterval(() => {}, 1000)`;
      const served = startSallyport(
        ['stdio', '--listen', `127.0.0.1:${port}`, '--', process.execPath, '-e', script],
        folder,
      );
      running.push(served);
      await expect.poll(served.stdout, START).toContain('token ');
      const token = /^token +(\S+)$/m.exec(served.stdout())?.[1] ?? '';
      void connectSdkV1(`http://127.0.0.1:${port}/mcp`, { token }).catch(() => undefined);
      await expect.poll(() => readFile(pidFile, 'utf8').catch(() => ''), START).not.toBe('');
      served.signal('SIGTERM');
      const held = Number(await readFile(pidFile, 'utf8'));
      expect(await served.ended).toBe(143);
      expect(await isGone(held)).toBe(true);
    },
    LONG,
  );

  it(
    'listens on a socket of its owner, in place of a stale one, and not of one in use',
    async () => {
      const path = join(folder, 'server.sock');
      const options = ['--socket', 'server.sock', '--token-file', 'token'];
      const first = await start(...options);
      expect((await stat(path)).mode & 0o777).toBe(0o600);
      expect(await statusOver(path)).toBe(401);
      const second = await runSallyport(['stdio', ...options, ...COMMAND], { cwd: folder });
      expect(second.code).toBe(1);
      expect(second.stderr).toContain('another process listens on');
      first.signal('SIGKILL');
      await first.ended.catch(() => undefined);
      running.length = 0;
      expect((await stat(path)).isSocket()).toBe(true);
      await start(...options);
      expect(await statusOver(path)).toBe(401);
    },
    LONG,
  );

  it(
    'says what is wrong, and exits',
    async () => {
      const run = (...args: readonly string[]) => runSallyport(['stdio', ...args, ...COMMAND], { cwd: folder });
      await writeFile(join(folder, 'short'), 'Bearer abc\n');
      await writeFile(join(folder, 'plain'), '');
      const cases = [
        [2, 'Only addresses of the loopback', '--listen', '0.0.0.0:8090'],
        [2, 'Expected HOST:PORT', '--listen', '8090'],
        [2, 'the name of a variable, without a value', '--env', 'KEY=value'],
        [2, '--env NO_SUCH_NAME: the variable is not set', '--env', 'NO_SUCH_NAME'],
        [2, 'Expected a number from 1 to 1000', '--max-sessions', '0'],
        [2, 'does not hold a token of at least 32 characters', '--token-file', 'short'],
        [2, '--listen or --socket, not both', '--listen', '127.0.0.1:0', '--socket', 'x'],
        [1, 'plain exists and is not a socket', '--socket', 'plain'],
        [1, 'is too long for a socket', '--socket', 'x'.repeat(120)],
      ] as const;
      for (const [code, text, ...args] of cases) {
        const { stderr, code: ended } = await run(...args);
        expect(stderr).toContain(text);
        expect([text, ended]).toEqual([text, code]);
      }
      const none = await runSallyport(['stdio'], { cwd: folder });
      expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('give a command after --')]);
    },
    LONG,
  );

  it(
    '[STD-09] starts no package whose integrity is another than the one that was added, and its siblings',
    async () => {
      const port = await findFreePort();
      const integrity = (letter: string) => `sha512-${letter.repeat(86)}==`;
      const stated = JSON.stringify({ version: '1.2.3', 'dist.integrity': integrity('A') });
      await mkdir(join(folder, 'bin'));
      await writeFile(join(folder, 'bin/npm'), `#!/bin/sh\necho '${stated}'\n`, { mode: 0o755 });
      await writeFile(join(folder, 'bin/npx'), `#!/bin/sh\nexec ${process.execPath} ${entry} stdio\n`, { mode: 0o755 });
      const server = (letter: string) => `{command: [npx, -y, server@1.2.3], integrity: "${integrity(letter)}"}`;
      await writeFile(
        join(folder, 'stdio.yaml'),
        `listen: 127.0.0.1:${port}\ntoken: {file: token}\nservers:\n  same: ${server('A')}\n  other: ${server('B')}\n`,
      );
      const path = `${join(folder, 'bin')}:${process.env['PATH']}`;
      const served = startSallyport(['stdio', '--config', 'stdio.yaml'], folder, { PATH: path });
      running.push(served);
      await expect.poll(served.stdout, START).toContain('servers ');
      const token = (await readFile(join(folder, 'token'), 'utf8')).replace('Bearer ', '').trim();
      const open = (name: string) => connectSdkV1(`http://127.0.0.1:${port}/${name}`, { token });
      await expect(open('other')).rejects.toThrow(/the registry has another server@1\.2\.3/);
      const { client, close } = await open('same');
      expect((await client.listTools()).tools.length).toBeGreaterThan(0);
      await close();
    },
    LONG,
  );

  it(
    'warns of a token file that others can read',
    async () => {
      await start('--listen', '127.0.0.1:0', '--token-file', 'token');
      await chmod(join(folder, 'token'), 0o644);
      const again = await start('--listen', '127.0.0.1:0', '--token-file', 'token');
      expect(again.stderr()).toContain('can be read by other users');
    },
    LONG,
  );
});
