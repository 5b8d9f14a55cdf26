// How the built program starts and ends on a machine that is not as it wishes: Node is too old, a port is taken,
// the terminal is closed.

import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startDemoUpstream } from '../../src/dev/demo-upstream.js';
import { buildProgram, findFreePort, runSallyport, startSallyport } from '../support/processes.js';
import { untilTestEnds } from '../support/with-gateway.js';

const ROOT = join(import.meta.dirname, '../..');
const LONG = 120_000;
/** Makes a process believe that it runs on another Node, before its own first module. */
const PRETENCE = `data:text/javascript,${encodeURIComponent(
  "Object.defineProperty(process,'versions',{value:{...process.versions,node:'18.20.4'}})",
)}`;
const OLD_NODE = { NODE_OPTIONS: `--import=${PRETENCE}` };
const REFUSAL = 'Sallyport needs Node 20.19 or later; this is Node 18.20.4.\n';

let folder: string;
beforeAll(async () => {
  await buildProgram();
  folder = await mkdtemp(join(tmpdir(), 'sallyport-e2e-start-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('a Node that is too old', () => {
  it('[IN-01] ends the program with one sentence, whatever is asked of it', async () => {
    for (const args of [['--version'], ['serve', '-c', 'nowhere.yaml'], []]) {
      const ended = await runSallyport(args, { env: OLD_NODE });
      expect(ended).toEqual({ code: 2, stdout: '', stderr: REFUSAL });
    }
  });

  it.each(['launch-demo.mjs', 'prepare.mjs'])('[IN-01] ends scripts/%s alike', async (name) => {
    const script = join(ROOT, 'scripts', name);
    const env = { ...process.env, ...OLD_NODE };
    const ended = await new Promise((resolve) => {
      execFile(process.execPath, [script], { env }, (error, stdout, stderr) =>
        resolve({ code: error?.code, stdout, stderr }),
      );
    });
    expect(ended).toEqual({ code: 2, stdout: '', stderr: REFUSAL });
  });

  it.each(['dist/main.js', 'scripts/launch-demo.mjs', 'scripts/node-version.mjs'])(
    '[IN-01] can parse and link %s, which is loaded before the version is known',
    async (name) => {
      const text = await readFile(join(ROOT, name), 'utf8');
      const code = text.replaceAll(/^\s*(?:\/\/|\/?\*).*$/gm, '');
      expect(code).not.toMatch(/\?\.|\?\?|import\.meta\.(?!url)|^await /m);
      const imports = [...code.matchAll(/^import .* from '([^']+)';$/gm)].map(([, from]) => from);
      const known = ['node:child_process', 'node:fs', 'node:url', './node-version.mjs'];
      expect(imports.length).toBeGreaterThan(0);
      expect(imports.filter((from) => !known.includes(from ?? ''))).toEqual([]);
    },
  );
});

describe('the port of dev', () => {
  it('[IN-02] is never silently another one', async () => {
    const holder = createServer().listen(0, '127.0.0.1');
    await once(holder, 'listening');
    const { port } = holder.address() as AddressInfo;
    for (const more of [['--demo'], ['--demo', '--exit'], ['--upstream', 'http://127.0.0.1:9/mcp']]) {
      const { code, stdout, stderr } = await runSallyport(['dev', ...more, '--port', `${port}`]);
      expect(stderr).toBe(`error: port ${port} on 127.0.0.1 is already in use; choose another port with --port\n`);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    }
    for (const name of ['demo-server', 'demo-issuer']) {
      const server = await runSallyport([name, '--port', `${port}`]);
      expect(server.stderr).toContain(`port ${port} on 127.0.0.1 is already in use`);
      expect(server.code).toBe(1);
    }
    holder.close();
  });

  it(
    '[IN-02] [IN-06] is any free one for a tour alone, which prints it, and closes with ten lines',
    async () => {
      // 8080 is taken, by this test or by somebody else.
      const holder = createServer().on('error', () => undefined);
      holder.listen(8080, '127.0.0.1');
      const { code, stdout } = await runSallyport(['dev', '--demo', '--exit'], { cwd: folder });
      holder.close();
      const port = /^Sallyport at http:\/\/127\.0\.0\.1:(\d+)\/desk$/m.exec(stdout)?.[1];
      expect(Number(port)).toBeGreaterThan(0);
      expect(port).not.toBe('8080');
      expect(code).toBe(0);
      const closing = stdout.slice(stdout.indexOf('From the audit log'));
      const rows = closing.match(/^ {2}\d\d:\d\d:\d\d .*$/gm) ?? [];
      expect(rows).toHaveLength(10);
      for (const word of ['arguments-invalid', 'redact', 'token-audience', 'drift', 'tainted-flow'])
        expect(rows.filter((row) => row.includes(word)).length).toBeGreaterThan(0);
      expect(closing).not.toContain('initialize');
      const pages = closing.slice(closing.indexOf('Where to go next')).match(/\S+\.md/g) ?? [];
      expect(pages.length).toBeGreaterThan(1);
      for (const page of pages) await readFile(join(ROOT, page));
    },
    LONG,
  );
});

describe('dev that is ended before its server is listed', () => {
  it(
    '[IN-03] ends the command too and leaves no file behind',
    async () => {
      const temporary = await mkdtemp(join(folder, 'tmp-'));
      const silent = ['-e', 'console.error("pid", process.pid); setInterval(() => {}, 1_000)'];
      const args = ['dev', '--port', String(await findFreePort()), '--', process.execPath];
      const dev = startSallyport([...args, ...silent], folder, { TMPDIR: temporary });
      await expect.poll(dev.stderr, { timeout: LONG / 2 }).toContain('pid ');
      expect(dev.stdout()).toMatch(/^starting +\S+/);
      expect(await readdir(temporary)).toHaveLength(1);
      dev.signal('SIGTERM');
      expect(await dev.ended).toBe(143);
      expect(await readdir(temporary)).toEqual([]);
      const pid = Number(/pid (\d+)/.exec(dev.stderr())?.[1]);
      expect(() => process.kill(pid, 0)).toThrow('ESRCH');
    },
    LONG,
  );

  it(
    '[IN-03] does not wait for a server that does not answer',
    async () => {
      const temporary = await mkdtemp(join(folder, 'tmp-'));
      let asked = 0;
      const silent = createHttpServer(() => {
        asked += 1;
      }).listen(0, '127.0.0.1');
      await once(silent, 'listening');
      const { port } = silent.address() as AddressInfo;
      const args = ['dev', '--upstream', `http://127.0.0.1:${port}/mcp`];
      const free = ['--port', String(await findFreePort())];
      const dev = startSallyport([...args, ...free], folder, { TMPDIR: temporary });
      await expect.poll(() => asked, { timeout: LONG / 2 }).toBeGreaterThan(0);
      dev.signal('SIGTERM');
      expect(await dev.ended).toBe(143);
      expect(await readdir(temporary)).toEqual([]);
      silent.closeAllConnections();
      silent.close();
    },
    LONG,
  );
});

describe('a terminal that is closed', () => {
  it(
    '[IN-03] ends dev',
    async () => {
      const upstream = await untilTestEnds(startDemoUpstream());
      const port = String(await findFreePort());
      const dev = startSallyport(['dev', '--upstream', upstream.url, '--port', port], folder);
      await expect.poll(dev.stdout, { timeout: LONG / 2 }).toContain('Press Ctrl-C');
      dev.signal('SIGHUP');
      expect(await dev.ended).toBe(129);
    },
    LONG,
  );

  it.each([
    ['demo-server', 'demo server', '/mcp\n'],
    [
      'demo-issuer',
      'demo issuer',
      '\npeople     alice (group staff) and rita (group reviewers); nobody has a password\n',
    ],
  ])('[IN-03] ends %s', async (name, shown, more) => {
    const port = String(await findFreePort());
    const server = startSallyport([name, '--port', port], folder);
    await expect.poll(server.stdout).toContain(`${shown} listening on http://127.0.0.1:${port}${more}`);
    server.signal('SIGHUP');
    expect(await server.ended).toBe(129);
  });
});
