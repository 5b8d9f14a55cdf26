// Whoever wants a token of the development issuer without a password: by other addresses and names of the machine, by
// redirects, forms of other sites, guesses, and files that lead elsewhere. The program as a user runs it.

import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, stat, symlink } from 'node:fs/promises';
import { request } from 'node:http';
import { connect } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { buildProgram, findFreePort, runSallyport, type Served, startSallyport } from '../support/processes.js';

const REDIRECT = 'http://127.0.0.1:9/callback';
const RESOURCE = 'http://127.0.0.1:8080/mcp';
const LONG = 120_000;

let folder: string;
let port: number;
let base: string;
let password: string;
let issuer: Served;
beforeAll(async () => {
  await buildProgram();
  folder = await mkdtemp(join(tmpdir(), 'sallyport-issuer-'));
  port = await findFreePort();
  base = `http://127.0.0.1:${port}`;
  const added = await runSallyport(['dev-issuer', 'user', 'alice', '--group', 'eng', '--generate'], { cwd: folder });
  password = added.stdout.trim();
  issuer = startSallyport(['dev-issuer', '--port', String(port)], folder);
  await vi.waitFor(() => expect(issuer.stdout()).toContain('listening on'), { timeout: LONG / 2 });
}, LONG);
afterAll(async () => {
  issuer?.signal('SIGTERM');
  await issuer?.ended;
  await rm(folder, { recursive: true, force: true });
});

async function authorizeUrl(changes: Readonly<Record<string, string>> = {}): Promise<string> {
  const registered = await fetch(`${base}/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ redirect_uris: [REDIRECT] }),
  });
  const { client_id: client } = (await registered.json()) as { client_id: string };
  const challenge = createHash('sha256').update(randomBytes(32).toString('base64url')).digest('base64url');
  const parameters = { client_id: client, redirect_uri: REDIRECT, response_type: 'code', resource: RESOURCE };
  const proof = { code_challenge: challenge, code_challenge_method: 'S256', state: 's' };
  return `${base}/authorize?${new URLSearchParams({ ...parameters, ...proof, ...changes })}`;
}

const logIn = (url: string, given: Readonly<Record<string, string>>, headers = {}) =>
  fetch(url, { method: 'POST', redirect: 'manual', headers, body: new URLSearchParams(given) });
const targetOf = (response: Response) => response.headers.get('refresh') ?? response.headers.get('location');

it(
  '[A-64] the issuer is not on other addresses of the machine, nor under another name, and has no option for it',
  async () => {
    const others = Object.values(networkInterfaces()).flatMap((all) => all?.filter(({ internal }) => !internal) ?? []);
    for (const { address, scopeid } of others) {
      if (scopeid) continue;
      const reached = await new Promise((resolve) => {
        const socket = connect({ host: address, port }, () => resolve(true)).on('error', () => resolve(false));
        socket.setTimeout(2_000, () => resolve(false));
        socket.unref();
      });
      expect([address, reached]).toEqual([address, false]);
    }
    const status = await new Promise((resolve, reject) => {
      const named = { host: '127.0.0.1', port, path: '/jwks.json', headers: { host: `rebound.example:${port}` } };
      request(named, (response) => resolve(response.resume().statusCode))
        .on('error', reject)
        .end();
    });
    expect(status).toBe(421);
    const { code, stderr } = await runSallyport(['dev-issuer', '--host', '0.0.0.0'], { cwd: folder });
    expect([code, stderr]).toEqual([2, expect.stringContaining("unknown option '--host'")]);
  },
  LONG,
);

it(
  '[A-65] gives a code for the right password alone, to the redirect that was registered, and to no form of others',
  async () => {
    const url = await authorizeUrl();
    const page = await fetch(url, { redirect: 'manual' });
    const text = await page.text();
    expect([page.status, targetOf(page)]).toEqual([200, null]);
    expect(page.headers.get('content-security-policy')).toMatch(/default-src 'none'.*form-action 'self'/);
    expect(page.headers.get('x-frame-options')).toBe('DENY');
    expect(text).not.toContain('<script');
    expect(text).toContain(REDIRECT);
    const good = { user: 'alice', password };
    for (const wrong of ['https://evil.example/', 'http://127.0.0.1:9/callback/..', '//evil.example', 'javascript:x'])
      for (const answer of [await fetch(await authorizeUrl({ redirect_uri: wrong }), { redirect: 'manual' })])
        expect([wrong, answer.status, targetOf(answer)]).toEqual([wrong, 400, null]);
    for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1:1']) {
      for (const path of [url, `${base}/token`]) {
        const answer = await logIn(path, { ...good, grant_type: 'password', username: 'alice' }, { origin });
        expect([origin, answer.status, targetOf(answer)]).toEqual([origin, 403, null]);
      }
    }
    const injected = await logIn(await authorizeUrl({ login_hint: '"><script>x</script>' }), {
      user: 'a',
      password: 'b',
    });
    expect([injected.status, targetOf(injected)]).toEqual([200, null]);
    expect(await injected.text()).not.toContain('<script');
    const answer = await logIn(url, good, { origin: base });
    expect([answer.status, targetOf(answer)]).toEqual([200, expect.stringContaining(`url=${REDIRECT}?code=`)]);
  },
  LONG,
);

it(
  '[A-66] guesses are slowed down, whether the name exists or not',
  async () => {
    const statuses = async (user: string) => {
      const url = await authorizeUrl();
      const answers = await Promise.all(
        Array.from({ length: 12 }, (_, index) => logIn(url, { user, password: `guess ${index}` })),
      );
      for (const answer of answers) expect(targetOf(answer)).toBeNull();
      return new Set(answers.map(({ status }) => status));
    };
    expect(await statuses('alice')).toContain(429);
    expect(await statuses('nobody')).toContain(429);
  },
  LONG,
);

it(
  '[A-67] nothing is read or written through a link, or where others can read',
  async () => {
    await symlink(join(folder, 'made'), join(folder, 'dangling'));
    const { code, stderr } = await runSallyport(['dev-issuer', '--key', 'dangling'], { cwd: folder });
    expect([code, stderr]).toEqual([2, expect.stringContaining('dangling is a link')]);
    await expect(readFile(join(folder, 'made'))).rejects.toThrow('ENOENT');
    for (const secret of ['users.yaml', 'dev-issuer-key.pem'])
      expect((await stat(join(folder, secret))).mode & 0o777).toBe(0o600);
    expect(await readFile(join(folder, 'users.yaml'), 'utf8')).toContain('"$scrypt$ln=15,r=8,p=3$');
  },
  LONG,
);
