// The first ten minutes of a user: the built program puts itself in front of a server, prints a token to
// paste, and both a pasted token and a login of an SDK work; every outcome of the tour is as expected.

import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { comparableText, textOfPicture } from '../../scripts/pictures/terminal-svg.mjs';
import { createWalkProvider, finishWalk } from '../support/oauth-clients.js';
import { buildProgram, findFreePort, runSallyport, type Served, startSallyport } from '../support/processes.js';
import { connectSdkV1, connectSdkV2, createTransportV1 } from '../support/sdk-clients.js';
import { type Everything, startEverything } from '../support/sdk-servers.js';
import { STDIO_TOKEN, startStdioRig } from '../support/stdio-server.js';

/** The tour and a start with pins take seconds, and several times that on a busy machine. */
const LONG = 120_000;

const stdioEntry = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js');

/** A port that no other suite on this machine takes for the default too. */
const onFreePort = async (): Promise<string[]> => ['--port', String(await findFreePort())];

let folder: string;
let everything: Everything;
let running: Served | undefined;

beforeAll(async () => {
  await buildProgram();
  folder = await mkdtemp(join(tmpdir(), 'sallyport-e2e-dev-'));
  everything = await startEverything();
});
afterAll(async () => {
  running?.signal('SIGKILL');
  await everything?.close();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

describe('dev', () => {
  it(
    '[E-36] serves an upstream to a pasted token and to a login, and ends with 143',
    async () => {
      const upstream = ['--upstream', everything.url];
      const dev = startSallyport(['dev', ...upstream, ...(await onFreePort())], folder);
      running = dev;
      await expect.poll(dev.stdout, { timeout: LONG / 2 }).toContain('Press Ctrl-C');
      expect((await fetch(/^metrics +(\S+)/m.exec(dev.stdout())?.[1] ?? '')).status).toBe(200);
      const printed = (word: string): string => new RegExp(`^${word} +(\\S+)`, 'm').exec(dev.stdout())?.[1] ?? '';
      const url = printed('endpoint');
      const token = /^export TOKEN=(\S+)$/m.exec(dev.stdout())?.[1] ?? '';
      expect(dev.stdout().split(token)).toHaveLength(2);
      const configuration = /^ {2}(\{"mcpServers":\{"mcp":\{"url".*)$/m.exec(dev.stdout())?.[1];
      expect(JSON.parse(configuration ?? '')).toEqual({
        mcpServers: { mcp: { url, headers: { Authorization: `Bearer \${env:TOKEN}` } } },
      });

      const pasted = await connectSdkV1(url, { token });
      const { tools } = await pasted.client.listTools();
      expect(tools.length).toBeGreaterThan(10);
      await pasted.close();

      const provider = createWalkProvider();
      await expect(connectSdkV1(url, { provider })).rejects.toThrow(/[Uu]nauthorized/);
      await finishWalk(provider, createTransportV1(url, { provider }));
      const { client, close } = await connectSdkV1(url, { provider });
      const sum = await client.callTool({ name: 'get-sum', arguments: { a: 20, b: 22 } });
      expect(JSON.stringify(sum.content)).toContain('42');
      await close();

      dev.signal('SIGTERM');
      expect(await dev.ended).toBe(143);
    },
    LONG,
  );

  it(
    '[E-36] takes the tour, and says that every outcome was as expected',
    async () => {
      const tour = ['dev', '--demo', '--exit', ...(await onFreePort())];
      const { code, stdout } = await runSallyport(tour, { cwd: folder });
      expect(stdout).toMatch(/^✓ (\d+) of \1 outcomes as expected$/m);
      expect(code).toBe(0);
      for (const theme of ['dark', 'light']) {
        const picture = await readFile(join(import.meta.dirname, `../../docs/images/demo-${theme}.svg`), 'utf8');
        const stale = 'the picture shows something else: run node scripts/pictures/record.mjs demo';
        expect(textOfPicture(picture), stale).toBe(comparableText(stdout));
      }
    },
    LONG,
  );

  it(
    '[E-40] starts a stdio server, says what it approved, prints decisions and saves a valid setup',
    async () => {
      const save = ['--save', 'setup with blank'];
      const command = ['--', process.execPath, stdioEntry, 'stdio'];
      await mkdir(join(folder, 'setup with blank'));
      await writeFile(join(folder, 'setup with blank', '.gitignore'), 'mine');
      const dev = startSallyport(['dev', ...save, ...(await onFreePort()), ...command], folder);
      running = dev;
      await expect.poll(dev.stdout, { timeout: LONG / 2 }).toContain('Press Ctrl-C');
      expect(dev.stdout()).toMatch(/^approved +17 tools, 4 prompts, 2 templates from /m);
      expect(dev.stdout()).toMatch(/^audit +\S+audit-\*\.jsonl /m);
      const url = /^endpoint +(\S+)/m.exec(dev.stdout())?.[1] ?? '';
      const token = /^export TOKEN=(\S+)$/m.exec(dev.stdout())?.[1] ?? '';
      for (const connect of [() => connectSdkV1(url, { token }), () => connectSdkV2(url, '2026', { token })]) {
        const { client, close } = await connect();
        const sum = await client.callTool({ name: 'get-sum', arguments: { a: 20, b: 22 } });
        expect(JSON.stringify(sum.content)).toContain('42');
        await close();
      }
      const { client, close } = await connectSdkV1(url, { token });
      await client.callTool({ name: 'no-such-tool', arguments: {} }).catch(() => undefined);
      // What a server takes without loss passes, and what does not fit is named.
      const args = { a: '20', b: 22, task_progress: 'adding' };
      const coerced = await client.callTool({ name: 'get-sum', arguments: args });
      expect(JSON.stringify(coerced.content)).toContain('42');
      const refused = await client.callTool({ name: 'get-sum', arguments: { a: 'x', b: 22 } });
      expect(refused.isError).toBe(true);
      await close();
      await expect.poll(dev.stdout).toMatch(/ in the request: converted coerced-argument$/m);
      await expect.poll(dev.stdout).toMatch(/refused +tools\/call get-sum +arguments-invalid: .*: \/a \(type\)$/m);
      await expect.poll(dev.stdout).toMatch(/^[\d:]{8} {2}allowed +tools\/call get-sum$/m);
      await expect.poll(dev.stdout).toMatch(/^[\d:]{8} {2}refused +tools\/call no-such-tool +\S+: /m);
      dev.signal('SIGTERM');
      expect(await dev.ended).toBe(143);

      const setup = join(folder, 'setup with blank');
      const checked = await runSallyport(['validate', '--strict', '-c', join(setup, 'gateway.yaml')]);
      // A note says which schemas leave arguments undeclared.
      expect(checked.stdout).not.toMatch(/ (?:error|warning) /);
      expect(checked.code).toBe(0);
      const secret = (await readFile(join(setup, 'stdio-token'), 'utf8')).trim();
      expect((await stat(join(setup, 'stdio-token'))).mode & 0o777).toBe(0o600);
      const written = await readFile(join(setup, 'gateway.yaml'), 'utf8');
      expect(written).toContain('value: {file: "./stdio-token"}');
      expect(written).toContain('# As in dev: arguments: {undeclared: observe, coerce: true}\n');
      expect(written).not.toContain(secret.slice('Bearer '.length));
      expect(written).not.toContain(stdioEntry);
      expect(await readFile(join(setup, '.gitignore'), 'utf8')).toBe(
        'mine\n/audit-*.jsonl*\n/audit.jsonl*\n/audit.lock-counters*\n/audit.*.position*\n/stdio-token\n',
      );
      expect(written).toContain(`publicUrl: ${new URL(url).origin}\n`);
      expect(written).toContain(`port: ${new URL(url).port}}`);
      const again = await runSallyport(['dev', ...save, ...(await onFreePort()), ...command], {
        cwd: folder,
      });
      expect([again.code, again.stderr]).toEqual([2, expect.stringContaining('exists already')]);
    },
    LONG,
  );

  it(
    '[E-40] grants no name that a rule would read as a pattern',
    async () => {
      const script = `
        const names = ['plain', 'get_*', 're:.*', '*'];
        const listed = names.map((name) => ({ name, inputSchema: { type: 'object' } }));
        const results = {
          initialize: (p) => ({ protocolVersion: p.protocolVersion, capabilities: { tools: {}, prompts: {} }, serverInfo: { name: 's', version: '1' } }),
          'tools/list': () => ({ tools: listed }),
          'prompts/list': () => ({ prompts: [{ name: 'ask' }, { name: 'reply*' }] }),
        };
        require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
          const { id, method, params } = JSON.parse(line);
          if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: results[method]?.(params) ?? {} }));
        });`;
      const save = ['--save', 'patterns', ...(await onFreePort())];
      const dev = startSallyport(['dev', ...save, '--', process.execPath, '-e', script], folder);
      running = dev;
      await expect.poll(dev.stdout, { timeout: LONG / 2 }).toContain('Press Ctrl-C');
      expect(dev.stdout()).toMatch(/^approved +1 tool, 1 prompt from /m);
      const policy = await readFile(join(folder, 'patterns/policies/mcp.policy.yaml'), 'utf8');
      expect(policy).toContain('      tools: ["plain"]\n      prompts: ["ask"]\n');
      for (const name of ['get_*', 're:.*', '*', 'reply*'])
        expect(policy).toContain(`# No rule can name ${JSON.stringify(name)} exactly`);
      const token = /^export TOKEN=(\S+)$/m.exec(dev.stdout())?.[1] ?? '';
      const url = /^endpoint +(\S+)/m.exec(dev.stdout())?.[1] ?? '';
      const { client, close } = await connectSdkV1(url, { token });
      // While it is tried, everything that is pinned may be used; the saved policy names what it grants.
      expect((await client.listTools()).tools.map(({ name }) => name)).toEqual([...['plain', 'get_*', 're:.*', '*']]);
      await close();
      dev.signal('SIGTERM');
      expect(await dev.ended).toBe(143);
    },
    LONG,
  );

  it(
    '[E-40] sends a header, and keeps its value in a file of its owner',
    async () => {
      const rig = await startStdioRig();
      const upstream = ['--upstream', `http://127.0.0.1:${rig.port}/mcp`];
      const without = await runSallyport(['dev', ...upstream, ...(await onFreePort())], {
        cwd: folder,
      });
      expect([without.code, without.stderr]).toEqual([
        2,
        `error: http://127.0.0.1:${rig.port}/mcp answered 401: it wants credentials; try --header 'Authorization: Bearer TOKEN'\n`,
      ]);
      const header = ['--header', `Authorization: Bearer ${STDIO_TOKEN}`, '--save', 'with-header'];
      const dev = startSallyport(['dev', ...upstream, ...header, ...(await onFreePort())], folder);
      running = dev;
      await expect.poll(dev.stdout, { timeout: LONG / 2 }).toContain('Press Ctrl-C');
      expect(dev.stdout()).toMatch(/^approved +0 tools, 0 prompts from http:/m);
      expect(dev.stdout() + dev.stderr()).not.toContain(STDIO_TOKEN);
      dev.signal('SIGTERM');
      await dev.ended;
      const setup = join(folder, 'with-header');
      const file = join(setup, 'upstream-header');
      expect(await readFile(file, 'utf8')).toBe(`Bearer ${STDIO_TOKEN}\n`);
      expect((await stat(file)).mode & 0o777).toBe(0o600);
      expect(await readFile(join(setup, 'gateway.yaml'), 'utf8')).not.toContain(STDIO_TOKEN);
      const checked = await runSallyport(['validate', '-c', join(setup, 'gateway.yaml')]);
      expect(checked.code).toBe(0);
      await rig.close();
    },
    LONG,
  );

  it(
    '[E-40] says why a command is no server',
    async () => {
      const run = async (...command: readonly string[]) =>
        runSallyport(['dev', ...(await onFreePort()), '--', ...command], { cwd: folder });
      const missing = await run('no-such-program');
      expect([missing.code, missing.stderr]).toEqual([
        2,
        expect.stringContaining(
          'error: no-such-program did not serve MCP: the command "no-such-program" was not found',
        ),
      ]);
      const script = 'console.error("no database"); process.exit(4)';
      const failing = await run(process.execPath, '-e', script);
      expect(failing.code).toBe(2);
      expect(failing.stderr).toContain(
        'did not serve MCP: it ended with exit code 4; its last lines were:\n  no database\n',
      );
      const echoing = await run('cat');
      expect(echoing.code).toBe(2);
      expect(echoing.stderr).toContain('error: cat runs, but did not serve MCP: ');
      expect(echoing.stderr).not.toContain('URL');
    },
    LONG,
  );

  it(
    '[E-40] serves several each on its path and together, and one that does not start costs itself alone',
    async () => {
      await writeFile(
        join(folder, 'tool.cjs'),
        `const [tool, ...words] = process.argv.slice(2);
        console.error('started');
        const results = {
          initialize: (p) => ({ protocolVersion: p.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } }),
          'tools/list': () => ({ tools: [{ name: tool, inputSchema: { type: 'object' } }] }),
          'tools/call': () => ({ content: [{ type: 'text', text: words.join('+') + (process.env.WORD ?? '') }] }),
        };
        require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
          const { id, method, params } = JSON.parse(line);
          if (id !== undefined) console.log(JSON.stringify({ jsonrpc: '2.0', id, result: results[method]?.(params) ?? {} }));
        });`,
      );
      const file = join(folder, 'mcp.json');
      const command = process.execPath;
      const imported = { command, args: [join(folder, 'tool.cjs'), 'third'], env: { WORD: 'from a file' } };
      await writeFile(
        file,
        JSON.stringify({ mcpServers: { third: imported, other: { url: 'http://127.0.0.1:1/mcp' } } }),
      );
      const args = [
        ...['--server', `one=${command} tool.cjs first "two words"`, '--server', 'gone=no-such-program'],
        ...['--save', 'several', '--from', file, '--yes', 'third', ...(await onFreePort())],
        ...['--', command, 'tool.cjs', 'second', '--', 'a', '--', 'b'],
      ];
      const dev = startSallyport(['dev', ...args], folder);
      running = dev;
      await expect.poll(dev.stdout, { timeout: LONG }).toContain('Press Ctrl-C');
      expect(dev.stderr()).toContain('error: gone: no-such-program did not serve MCP');
      expect(dev.stdout()).toMatch(/^approved +one: 1 tool, 0 prompts$/m);
      const url = /^endpoint +(\S+)/m.exec(dev.stdout())?.[1] ?? '';
      const token = /^export TOKEN=(\S+)$/m.exec(dev.stdout())?.[1] ?? '';
      const { client, close } = await connectSdkV1(url, { token });
      const names = (await client.listTools()).tools.map(({ name }) => name).sort();
      expect(names).toEqual(['one_first', 'third_third', 'tool_second']);
      const say = async (name: string) => JSON.stringify((await client.callTool({ name, arguments: {} })).content);
      expect(await say('one_first')).toContain('two words');
      expect(await say('tool_second')).toContain('--+a+--+b');
      expect(await say('third_third')).toContain('from a file');
      await close();
      // The token of one server alone comes from the issuer, by the line that is printed.
      const [, issuer, alone] = /curl -sS (\S+)\/token .* -d resource=(\S+)$/m.exec(dev.stdout()) ?? [];
      const body = new URLSearchParams({ grant_type: 'password', username: 'developer', resource: alone ?? '' });
      const granted = (await (await fetch(`${issuer}/token`, { method: 'POST', body })).json()) as {
        access_token: string;
      };
      const direct = await connectSdkV1(alone ?? '', { token: granted.access_token });
      expect((await direct.client.listTools()).tools).toHaveLength(1);
      await direct.close();
      await expect.poll(dev.stdout).toMatch(/^[\d:]{8} {2}allowed +one tools\/call first$/m);
      // One process for all listings, and one for each of the two clients.
      expect(dev.stderr().match(/^one session \d+: stderr: started$/gm)).toHaveLength(3);
      dev.signal('SIGTERM');
      expect(await dev.ended).toBe(143);
      const setup = join(folder, 'several');
      const checked = await runSallyport(['validate', '--strict', '-c', join(setup, 'gateway.yaml')]);
      expect([checked.code, checked.stdout]).toEqual([0, expect.not.stringMatching(/ (?:error|warning) /)]);
      const adapter = await readFile(join(setup, 'stdio.yaml'), 'utf8');
      expect(adapter).toContain('env: {WORD: {file: "secrets/third.WORD"}}');
      expect(adapter).not.toContain('from a file');
      expect(await readFile(join(setup, '.gitignore'), 'utf8')).toContain('/secrets/');
      expect((await stat(join(setup, 'secrets', 'third.WORD'))).mode & 0o777).toBe(0o600);
    },
    LONG,
  );

  it(
    '[E-36] wants to know which server, and one',
    async () => {
      for (const args of [[], ['--demo', '--upstream', 'http://127.0.0.1:1/'], ['--demo', '--', 'x']]) {
        const { code, stderr } = await runSallyport(['dev', ...(await onFreePort()), ...args]);
        expect(code).toBe(2);
        expect(stderr).toContain('say which servers: --upstream URL, --server COMMAND');
      }
      const { code, stderr } = await runSallyport(['dev', ...(await onFreePort()), '--upstream', '127.0.0.1:3001/mcp']);
      expect(code).toBe(2);
      expect(stderr).toContain('expected a URL such as http://127.0.0.1:3001/mcp');
      // What the gateway file does not take is said, and the server is not asked.
      const secret = await runSallyport(['dev', ...(await onFreePort()), '--upstream', 'http://me:pw@127.0.0.1:1/mcp']);
      expect([secret.code, secret.stderr]).toEqual([
        2,
        expect.stringMatching(/^error: a URL carries no user name or password/),
      ]);
      const plain = await runSallyport(['dev', ...(await onFreePort()), '--upstream', 'http://mcp.example/mcp']);
      expect([plain.code, plain.stderr]).toEqual([
        2,
        expect.stringContaining('for a server in a private network add --network private'),
      ]);
      const half = await runSallyport(['dev', ...(await onFreePort()), '--upstream', 'http://']);
      expect([half.code, half.stderr]).toEqual([2, 'error: --upstream http://: this is not a valid URL\n']);
    },
    LONG,
  );
});
