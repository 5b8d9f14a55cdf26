// Starts the gateway in front of the upstreams as an operator would: files on disk, a development issuer,
// pins fetched and approved by its own command, every control armed.

import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startIssuer } from '../dist/dev/issuer.js';
import { approveAt } from './approve.mjs';
import { freePort, run, runToEnd, serve } from './process.mjs';

const MAIN = fileURLToPath(new URL('../dist/main.js', import.meta.url));

/** The development issuer takes any secret of the gateway, and asks for no password. */
const LOGIN = 'login: {clientId: sallyport-login, clientSecret: {file: ./login-secret}}';
const USER = 'caller';

function configuration({ data, ops, issuer }, upstreams) {
  const members = upstreams.map(({ name, url }) => `  ${name}: {url: "${url}", network: loopback, issuers: [dev]}\n`);
  return `version: 1
publicUrl: http://127.0.0.1:${data}
listeners:
  data: {host: 127.0.0.1, port: ${data}}
  ops: {host: 127.0.0.1, port: ${ops}}
issuers:
  dev: {issuer: "${issuer}", network: loopback, algorithms: [ES256], ${LOGIN}}
upstreams:
${members.join('')}policies: {dir: ./policies}
pins: {dir: ./pins}
audit: {sinks: [{type: file, path: ./audit.jsonl}]}
`;
}

function toolsOf({ call, leak, approved }) {
  return [call, leak, approved].flatMap((tool) => (tool === undefined ? [] : [`"${tool.name}"`])).join(', ');
}

function policy(upstreams) {
  const rules = upstreams.map(
    ({ name, call, leak, approved }) => `  - id: ${name}-calls
    effect: allow
    who: {anyone: true}
    what: {upstreams: [${name}], tools: [${toolsOf({ call, leak, approved })}]}
`,
  );
  const asking = upstreams.filter(({ approved }) => approved !== undefined);
  const asks = asking.map(
    ({ name, approved }) => `  - id: ${name}-asks
    effect: require
    who: {anyone: true}
    what: {upstreams: [${name}], tools: ["${approved.name}"]}
    approval: {by: caller}
`,
  );
  return `version: 1\npolicy: clients\nrules:\n${rules.join('')}${asks.join('')}`;
}

/**
 * Approves everything. Upstreams that serve the same records in several languages are nearly copies of each other, which
 * is left to a person: what is named is approved.
 */
async function pinAll(file, upstreams) {
  const by = ['--by', 'clients', '--note', 'clients'];
  await runToEnd(process.execPath, [MAIN, 'pin', 'fetch', '-c', file, '--approve', ...by]);
  for (const { name, call, leak, hidden, approved } of upstreams) {
    const names = [call.name, leak.name, hidden, ...(approved === undefined ? [] : [approved.name])];
    await run(process.execPath, [MAIN, 'pin', 'approve', '-c', file, name, ...names, ...by]);
  }
}

/** Starts issuer and gateway; `access` gives the endpoint of an upstream and a token for it. */
export async function startGateway(upstreams) {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-clients-'));
  const issuer = await startIssuer({ users: [{ name: USER, groups: [], scopes: [] }] });
  const [data, ops] = [await freePort(), await freePort()];
  const file = join(folder, 'gateway.yaml');
  await mkdir(join(folder, 'policies'));
  await mkdir(join(folder, 'pins'));
  await writeFile(file, configuration({ data, ops, issuer: issuer.issuer }, upstreams));
  await writeFile(join(folder, 'policies/clients.policy.yaml'), policy(upstreams));
  await writeFile(join(folder, 'login-secret'), randomBytes(24).toString('base64url'), { mode: 0o600 });
  await pinAll(file, upstreams);
  const served = await serve(process.execPath, [MAIN, 'serve', '-c', file], {
    url: `http://127.0.0.1:${ops}/readyz`,
  });
  return {
    async access(name) {
      const url = `http://127.0.0.1:${data}/${name}`;
      return { url, token: await issuer.mint({ resource: url }) };
    },
    /** The caller logs in at the link of an approval, and says yes. */
    approve: (link) => approveAt(link, USER),
    async close() {
      await served.close();
      await issuer.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
