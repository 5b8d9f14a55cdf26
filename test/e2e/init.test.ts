// From nothing to an allowed and a refused call, by the commands that `init` prints, and from there to a second server.
// docs/reference/commands.md#init-and-dev---save; docs/reference/commands.md#add-remove-and-list.

import { execFile } from 'node:child_process';
import { access, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoUpstream, startDemoUpstream } from '../../src/dev/demo-upstream.js';
import { buildProgram, findFreePort, runSallyport, type Served, startSallyport } from '../support/processes.js';
import { postStateless } from '../support/raw-mcp.js';
import { makeSecret } from '../support/secrets.js';
import { PATIENT } from '../support/timing.js';
import { startTestIssuer, type TestIssuer } from '../support/tokens.js';

const shell = promisify(execFile);

let folder: string;
let desk: DemoUpstream;
let issuer: TestIssuer;
let running: Served | undefined;
let adapter: Served | undefined;
beforeAll(async () => {
  await buildProgram();
  folder = await mkdtemp(join(tmpdir(), 'sallyport-init-'));
  desk = await startDemoUpstream({ seed: 'init' });
  issuer = await startTestIssuer({ alg: 'ES256' });
});
afterAll(async () => {
  running?.signal('SIGKILL');
  adapter?.signal('SIGTERM');
  await desk?.close();
  await issuer?.close();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

/** Several starts of the program, and of a server. */
const SLOW = { timeout: 120_000 };
const adminToken = makeSecret();
const EVERYTHING = fileURLToPath(
  new URL('../../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url),
);

const sdk = (path: string): string =>
  JSON.stringify(createRequire(import.meta.url).resolve(`@modelcontextprotocol/sdk/server/${path}`));
/** A second stdio server, with the SDK. */
const CLOCK = `
const { McpServer } = require(${sdk('mcp.js')});
const { StdioServerTransport } = require(${sdk('stdio.js')});
const server = new McpServer({ name: 'clock', version: '1.0.0' });
const told = { content: [{ type: 'text', text: 'half past' }] };
server.registerTool('tell_time', { description: 'Tells the time.', annotations: { readOnlyHint: true } }, () => told);
server.connect(new StdioServerTransport());`;

/** The command of a numbered step, as printed. */
function stepOf(output: string, number: number): string {
  return new RegExp(`^${number}\\. .*\\n +(.*)$`, 'm').exec(output)?.[1] ?? '';
}

describe('[E-42] init', () => {
  let publicUrl: string;
  let printed: string;

  it('leads to approved definitions by the command that it prints', SLOW, async () => {
    publicUrl = `http://127.0.0.1:${await findFreePort()}`;
    const { code, stdout, stderr } = await runSallyport(
      [
        ...['init', '--url', desk.url, '--issuer', issuer.issuer, '--name', 'desk'],
        ...['--group', 'engineering', '--public-url', publicUrl],
      ],
      { cwd: folder },
    );
    expect([code, stderr]).toEqual([0, '0 errors, 0 warnings, 1 note\n']);
    expect(stdout).toMatch(/desk\.lock\.yaml:1:1 note \d+ definitions of desk are pending, /);
    printed = stdout;
    // Pasted as it is printed.
    const approved = await shell('bash', ['-c', stepOf(printed, 1)], { cwd: folder });
    expect(approved.stdout).toMatch(/^desk: \d+ approved, none left pending$/m);
    const strict = await runSallyport(['validate', '--strict'], { cwd: folder });
    expect([strict.code, strict.stdout]).toEqual([0, '']);
  });

  it('leads to a gateway that allows what the policy names, and nothing else', SLOW, async () => {
    // The port of the ops listener may be in use on a machine that runs other tests.
    const file = join(folder, 'sallyport.yaml');
    const config = await readFile(file, 'utf8');
    const ports = { ops: await findFreePort(), admin: await findFreePort() };
    const listeners = `port: ${ports.ops}}\n  admin: {host: 127.0.0.1, port: ${ports.admin}`;
    const admin = 'admin: {breakGlass: {token: {env: ADMIN_TOKEN}}}';
    await writeFile(file, `${config.replace('port: 9464', listeners)}\nshutdown: {delay: 0s}\n${admin}\n`);
    expect(stepOf(printed, 2)).toMatch(/ serve -c sallyport\.yaml$/);
    running = startSallyport(['serve'], folder, { ADMIN_TOKEN: adminToken });
    await expect.poll(running.stderr, SLOW).toContain('ops listening');
    const resource = `${publicUrl}/desk`;
    expect(stepOf(printed, 3)).toBe(`claude mcp add --transport http desk ${resource}`);
    const token = await issuer.mint(resource, {
      claims: { sub: 'engineer', groups: ['engineering'], scope: '' },
    });
    const call = async (name: string, args: object) => {
      const options = { name, arguments: args };
      const { messages } = await postStateless(resource, 'tools/call', options, { token });
      return messages.at(-1);
    };
    await expect
      .poll(async () => (await call('get_ticket', { project: 'web', id: 'T-101' })).result, PATIENT)
      .toMatchObject({ structuredContent: { id: 'T-101' } });
    expect((await call('delete_ticket', { id: 'T-101' })).error.code).toBe(-32602);
  });

  it(
    '[E-44] [STD-08] add brings a stdio server to the running gateway; list shows both; remove leaves the file as it was',
    SLOW,
    async () => {
      const before = await readFile(join(folder, 'sallyport.yaml'), 'utf8');
      const env = { ADMIN_TOKEN: adminToken, SALLYPORT_ADMIN_TOKEN: adminToken };
      const command = ['--', process.execPath, EVERYTHING, 'stdio'];
      const added = await runSallyport(['add', 'tools', '--group', 'engineering', ...command], { cwd: folder, env });
      expect([added.code, added.stdout]).toEqual([0, expect.stringMatching(/approve the \d+ pending definitions:/)]);
      expect(await readFile(join(folder, 'policies/tools.policy.yaml'), 'utf8')).toContain('- "echo"');
      await expect
        .poll(async () => JSON.parse((await runSallyport(['list', '--json'], { cwd: folder, env })).stdout), PATIENT)
        .toMatchObject({
          state: 'the running gateway',
          servers: [
            { name: 'desk', state: 'up', pending: 0, drift: false },
            // Nobody has started its adapter.
            { name: 'tools', state: 'away', approved: 0 },
          ],
        });
      const clock = ['add', 'clock', '--group', 'engineering', '--', process.execPath, '-e', CLOCK];
      expect((await runSallyport(clock, { cwd: folder, env })).code).toBe(0);
      // Its port may be in use on a machine that runs other tests.
      const port = await findFreePort();
      for (const name of ['stdio.yaml', 'sallyport.yaml']) {
        const text = await readFile(join(folder, name), 'utf8');
        await writeFile(join(folder, name), text.replaceAll('127.0.0.1:8090', `127.0.0.1:${port}`));
      }
      adapter = startSallyport(['stdio', '--config', 'stdio.yaml'], folder);
      await expect.poll(adapter.stdout, PATIENT).toContain('servers       /tools, /clock\n');
      for (const name of ['tools', 'clock'])
        await runSallyport(['pin', 'approve', name, '--all', '--by', 'someone'], { cwd: folder, env });
      for (const [name, tool, args] of [
        ['tools', 'echo', { message: 'half past' }],
        ['clock', 'tell_time', {}],
      ] as const) {
        const resource = `${publicUrl}/${name}`;
        const claims = { sub: 'engineer', groups: ['engineering'], scope: '' };
        const token = await issuer.mint(resource, { claims });
        await expect
          .poll(async () => {
            const options = { name: tool, arguments: args };
            return JSON.stringify((await postStateless(resource, 'tools/call', options, { token })).messages.at(-1));
          }, PATIENT)
          .toContain('half past');
      }
      adapter.signal('SIGTERM');
      expect(await adapter.ended).toBe(143);
      await runSallyport(['remove', 'clock', '--edited'], { cwd: folder, env });
      const removed = await runSallyport(['remove', 'tools', '--edited'], { cwd: folder, env });
      expect([removed.code, removed.stdout]).toEqual([0, expect.stringContaining('removed tools from stdio.yaml and')]);
      expect(await readFile(join(folder, 'sallyport.yaml'), 'utf8')).toBe(before);
      running?.signal('SIGTERM');
      expect(await running?.ended).toBe(143);
    },
  );

  it('[E-45] add --from adds what was named in the file of a client, and starts nothing else', SLOW, async () => {
    const started = join(folder, 'started');
    const secret = makeSecret();
    const servers = {
      page: { url: desk.url, headers: { 'X-Api-Key': secret } },
      local: { command: process.execPath, args: ['-e', `require('fs').writeFileSync(${JSON.stringify(started)}, '')`] },
    };
    const file = join(folder, 'mcp.json');
    await writeFile(file, `// of a client\n${JSON.stringify({ servers })}`);
    const args = ['add', '--from', 'mcp.json', '--group', 'engineering', '--yes', 'page'];
    const { code, stdout } = await runSallyport(args, { cwd: folder, env: { ADMIN_TOKEN: adminToken } });
    expect([code, stdout]).toEqual([
      0,
      expect.stringContaining('mcp.json was not changed and still holds the secrets'),
    ]);
    expect(await readFile(join(folder, 'secrets/page-header'), 'utf8')).toBe(`${secret}\n`);
    expect(await readFile(join(folder, 'policies/pins/page.lock.yaml'), 'utf8')).toContain('get_ticket');
    expect(await readFile(file, 'utf8')).toContain(secret);
    expect(stdout).not.toContain(secret);
    await expect(access(started)).rejects.toThrow();
  });

  it('changes nothing when it is run again', async () => {
    const key = await readFile(join(folder, 'secrets/sallyport-key'), 'utf8');
    const args = ['init', '--url', desk.url, '--issuer', issuer.issuer, '--group', 'x'];
    const { code, stderr } = await runSallyport([...args, '--name', 'desk'], { cwd: folder });
    expect(code).toBe(2);
    expect(stderr).toContain('this exists: sallyport.yaml, ');
    expect(await readFile(join(folder, 'secrets/sallyport-key'), 'utf8')).toBe(key);
  });

  it('asks the issuer for metadata that names it, and says what came back', async () => {
    const args = ['init', 'other', '--url', desk.url, '--issuer', `${issuer.issuer}/`];
    const { code, stderr } = await runSallyport([...args, '--group', 'x'], { cwd: folder });
    expect(code).toBe(2);
    expect(stderr).toContain(`names the issuer "${issuer.issuer}"`);
    await expect(access(join(folder, 'other'))).rejects.toThrow();
  });

  it('recognizes a Keycloak by its metadata, and writes the scopes that were named', async () => {
    const server = createServer((_request, response) => {
      const realm = `http://127.0.0.1:${(server.address() as AddressInfo).port}/realms/mcp`;
      const token_endpoint = `${realm}/protocol/openid-connect/token`;
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ issuer: realm, token_endpoint }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    try {
      const realm = `http://127.0.0.1:${(server.address() as AddressInfo).port}/realms/mcp`;
      const args = ['init', 'keycloak', '--url', desk.url, '--issuer', realm, '--group', 'x'];
      const { code, stdout } = await runSallyport([...args, '--scope', 'a:b'], { cwd: folder });
      expect(code).toBe(0);
      expect(stdout).toContain('The issuer is a Keycloak.');
      expect(printed).not.toContain('Keycloak');
      expect(await readFile(join(folder, 'keycloak/sallyport.yaml'), 'utf8')).toContain('scopesSupported: ["a:b"]');
    } finally {
      server.close();
    }
  });
});
