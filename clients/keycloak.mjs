// Runs a gateway behind a real Keycloak and says what each kind of its tokens gets. Needs the folder of an
// unpacked distribution in KEYCLOAK_HOME, from 26.2 on, and Java; no part of `npm test` or `npm run clients`.
// Usage: npm run build && KEYCLOAK_HOME=… node clients/keycloak.mjs

import { randomUUID } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { makeRealm } from './keycloak-realm.mjs';
import { freePort, run, serve } from './process.mjs';
import { startDesk } from './upstreams.mjs';

const MAIN = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const ANSWER_AGE_MS = 1_000;
const STARTED_WITHIN_MS = 300_000;

const POLICY = `version: 1
policy: keycloak
rules:
  - id: engineers
    effect: allow
    who: {groups: [eng]}
    what: {upstreams: [desk], tools: [search_docs]}
    scopes: ["notes:read"]
`;

/** Built first, so that what is started is the server itself and ends when it is told to. */
async function startKeycloak(home, password) {
  const program = join(home, 'bin/kc.sh');
  const [port, management] = [await freePort(), await freePort()];
  const base = `http://127.0.0.1:${port}`;
  await run(program, ['build', '--db=dev-file']);
  const where = ['--http-host=127.0.0.1', `--http-port=${port}`];
  const server = await serve(
    program,
    [
      ...['start', '--optimized', '--http-enabled=true', '--hostname-strict=false', '--cache=local', ...where],
      `--http-management-port=${management}`,
    ],
    {
      url: `${base}/realms/master`,
      withinMs: STARTED_WITHIN_MS,
      hasChildren: true,
      env: { KC_BOOTSTRAP_ADMIN_USERNAME: 'admin', KC_BOOTSTRAP_ADMIN_PASSWORD: password },
    },
  );
  return { base, close: server.close };
}

/** A gateway whose issuer is verified as `verification` says. */
async function startGateway(folder, { port, desk, issuer, secret, verification }) {
  const file = join(folder, 'gateway.yaml');
  const ops = await freePort();
  await mkdir(join(folder, 'policies/pins'), { recursive: true });
  await writeFile(join(folder, 'policies/keycloak.policy.yaml'), POLICY);
  await writeFile(join(folder, 'client-secret'), secret);
  await writeFile(
    file,
    `version: 1
publicUrl: http://127.0.0.1:${port}
listeners: {data: {port: ${port}}, ops: {port: ${ops}}}
issuers:
  keycloak: {issuer: "${issuer}", network: loopback, ${verification}}
upstreams:
  desk: {url: "${desk.url}", network: loopback, issuers: [keycloak], scopesSupported: ["notes:read"]}
policies: {dir: ./policies}
`,
  );
  const by = ['--approve', '--by', 'clients', '--note', 'clients'];
  await run(process.execPath, [MAIN, 'pin', 'fetch', '-c', file, ...by]);
  return await serve(process.execPath, [MAIN, 'serve', '-c', file], {
    url: `http://127.0.0.1:${ops}/readyz`,
  });
}

/** The status of a call with a token. */
async function call(url, token, desk) {
  const body = {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: {
      ...desk.call,
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'clients', version: '1' },
        'io.modelcontextprotocol/clientCapabilities': {},
      },
    },
  };
  const answer = await fetch(url, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': desk.call.name,
    },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  return answer.status === 200 && !text.includes(desk.expect) ? 'no answer' : answer.status;
}

/** Prints one line a case; counts what is not as expected. */
function createReport() {
  let failures = 0;
  return {
    expect(what, status, expected) {
      if (status !== expected) failures += 1;
      const verdict = status === expected ? 'ok' : `FAILED, expected ${expected}`;
      console.log(`${what}: ${status} ${verdict}`);
    },
    failures: () => failures,
  };
}

async function tellKeys(realm, ask, report) {
  const both = await realm.logIn('openid notes:read');
  report.expect('keys: a second audience (scope roles)', await ask(both.access_token), 401);
  await realm.dropRoles();
  const tokens = await realm.logIn('openid notes:read');
  report.expect('keys: an access token', await ask(tokens.access_token), 200);
  report.expect('keys: an identity token', await ask(tokens.id_token), 401);
  report.expect('keys: a refresh token', await ask(tokens.refresh_token), 401);
  const bare = await realm.logIn('openid');
  report.expect('keys: a token for no resource', await ask(bare.access_token), 401);
  await realm.rotate();
  const next = await realm.logIn('openid notes:read');
  report.expect('keys: a token by a new key', await ask(next.access_token), 200);
}

async function tellAnswers(realm, ask, report) {
  const tokens = await realm.logIn('openid notes:read');
  report.expect('introspection: an access token', await ask(tokens.access_token), 200);
  report.expect('introspection: an identity token', await ask(tokens.id_token), 401);
  report.expect('introspection: a refresh token', await ask(tokens.refresh_token), 401);
  await realm.logOut(tokens.refresh_token);
  await sleep(2 * ANSWER_AGE_MS);
  report.expect('introspection: after the logout', await ask(tokens.access_token), 401);
}

const home = process.env.KEYCLOAK_HOME;
if (home === undefined) {
  console.error('KEYCLOAK_HOME is not set');
  process.exit(2);
}
const report = createReport();
const password = randomUUID();
const folder = await mkdtemp(join(tmpdir(), 'sallyport-keycloak-'));
const closers = [() => rm(folder, { recursive: true, force: true })];
try {
  const keycloak = await startKeycloak(home, password);
  closers.push(keycloak.close);
  const desk = await startDesk();
  closers.push(desk.close);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/desk`;
  const realm = await makeRealm(keycloak.base, password, url);
  const ask = (token) => call(url, token, desk);
  const parts = { port, desk, issuer: realm.issuer, secret: realm.secret };
  const byKeys = await startGateway(folder, { ...parts, verification: 'algorithms: [RS256]' });
  await tellKeys(realm, ask, report).finally(byKeys.close);
  const client = 'clientId: sallyport, clientSecret: {file: ./client-secret}';
  const verification = `introspection: {${client}, cacheTtl: ${ANSWER_AGE_MS}ms}`;
  const byAsking = await startGateway(folder, { ...parts, verification });
  await tellAnswers(realm, ask, report).finally(byAsking.close);
} finally {
  for (const close of closers.reverse()) await close();
}
process.exitCode = report.failures() === 0 ? 0 : 1;
