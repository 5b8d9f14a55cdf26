// The commands of the guides, from an empty folder, with the program as `npm pack` packs it, installed below a
// prefix of its own. The server is the demo upstream and the issuer the development issuer, both of this process.

import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoUpstream, startDemoUpstream } from '../../src/dev/demo-upstream.js';
import { type DevIssuer, startIssuer } from '../../src/dev/issuer.js';
import { buildProgram } from '../support/processes.js';
import { type GuideBlock, readGuide, runScript, scriptOf } from './guide-commands.js';
import { must } from './programs.js';
import { startRewordedServer } from './reworded-server.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** A token for the server, which a client would get by its login, and a request with it. */
const LOG_IN = `TOKEN=$(curl -sS "$MINT/tickets")
list_tools() {
  curl -sS -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \
    -H 'Accept: application/json, text/event-stream' -H 'MCP-Protocol-Version: 2026-07-28' -H 'Mcp-Method: tools/list' \
    -d '{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"guide","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}' \
    http://127.0.0.1:8080/tickets | tr -d "\\r\\n"
}
`;
/** Adds the rule of the guide to the policy, for a tool that the demo upstream has, and waits until it is in force. */
const ADD_RULE = `
echo "before: $(list_tools)"
printf '%s' "$RULE" >> policies/tickets.policy.yaml
until ! list_tools | grep -q '"get_ticket"'; do sleep 0.2; done
echo "after: $(list_tools)"
`;

let folder: string;
let prefix: string;
let upstream: DemoUpstream;
let issuer: DevIssuer;
let mint: Server;

beforeAll(async () => {
  await buildProgram();
  folder = await mkdtemp(join(tmpdir(), 'sallyport-guides-'));
  prefix = join(folder, 'prefix');
  await must('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: ROOT });
  const packed = (await readdir(folder)).find((name) => name.endsWith('.tgz')) ?? '';
  await must('npm', ['install', '--global', '--prefix', prefix, join(folder, packed)], {
    cwd: folder,
  });
  upstream = await startDemoUpstream();
  issuer = await startIssuer({
    users: [{ name: 'alice', groups: ['eng'], scopes: [] }],
  });
  mint = createServer((request, response) => {
    const resource = `http://127.0.0.1:8080${request.url}`;
    void issuer
      .mint({ resource, subject: 'alice', groups: ['eng'], scopes: [] })
      .then((token) => response.end(token));
  });
  await new Promise<void>((resolve) => mint.listen(0, '127.0.0.1', resolve));
});

afterAll(async () => {
  mint?.close();
  await issuer?.close();
  await upstream?.close();
  await rm(folder, { recursive: true, force: true });
});

async function emptyFolder(name: string): Promise<string> {
  const cwd = join(folder, name);
  await mkdir(cwd);
  return cwd;
}

function envOfReader(): Readonly<Record<string, string>> {
  const { port } = mint.address() as AddressInfo;
  return {
    ...{ MCP_URL: upstream.url, ISSUER: issuer.issuer, GROUP: 'eng', SCOPE: 'tickets:read' },
    MINT: `http://127.0.0.1:${port}`,
  };
}

/** A repository with the configuration of one server whose definitions are approved. */
const PREPARE = `git init -q --bare remote.git
git init -q -b main repository
cd repository
git config user.name Alice
git config user.email alice@example.com
git remote add origin ../remote.git
mkdir policies
printf 'version: 1\npolicy: tickets\nrules: []\n' > policies/tickets.policy.yaml
cat > sallyport.yaml <<END
version: 1
publicUrl: http://127.0.0.1:8080
upstreams:
  tickets: {url: "$SERVER", network: loopback, authentication: none}
policies: {dir: ./policies}
pins: {dir: ./policies/pins}
END
sallyport pin fetch --approve
`;
const CONFIGURE =
  "sed -i 's#^pins: .*#pins: {dir: ./policies/pins, signers: {alice: {publicKey: {file: ./alice.pub.pem}}}}#' sallyport.yaml";
const DRIFT = `git add sallyport.yaml policies alice.pub.pem
git commit -qm "The first pins"
curl -sS "\${SERVER%/mcp}/reword"
`;
const REVIEW = `DIGEST=$(sallyport pin diff tickets | sed -n 's/.*-> sha256:\\([0-9a-f]*\\).*/\\1/p')`;
const CHECK = `sallyport pin verify
sallyport pin verify --format sarif >/dev/null
echo "pushed: $(git --git-dir=../remote.git log -1 --format=%s main)"
`;

/** The rule of the quickstart, about a tool of the demo upstream. */
async function ruleOfQuickstart(): Promise<string> {
  const page = await readFile(join(ROOT, 'docs/guides/quickstart.md'), 'utf8');
  const [, rule = ''] = /```yaml\n( {2}- id: no-passwords[\s\S]*?)```/.exec(page) ?? [];
  const [tool, args] = ['tools: [echo]', '    args: {message: {enum: [password]}}\n'];
  expect(rule).toContain(tool);
  expect(rule).toContain(args);
  return rule.replace(tool, 'tools: [get_ticket]').replace(args, '');
}

describe('[GU-01] the guides', () => {
  it('rotation: a new key is created, and its public part printed', async () => {
    const blocks = await readGuide('rotation.md');
    expect(blocks).toHaveLength(2);
    const cwd = await emptyFolder('rotation');
    const printed = await runScript(scriptOf(blocks), { cwd, prefix, env: envOfReader() });
    expect(printed.trim().split('\n')).toHaveLength(1);
  });

  it('[GU-09] reviewing drift: from a drift to a signed approval that is pushed, and back', async () => {
    const [look, approve, sign, push, keys, signAll, rollback] =
      await readGuide('reviewing-drift.md');
    const [before, after] = ['Reads one ticket', 'Reads one ticket and its state'];
    const server = await startRewordedServer(upstream.url, before, after);
    const cwd = await emptyFolder('reviewing-drift');
    const parts = [
      ...[PREPARE, keys, CONFIGURE, signAll, DRIFT, look, REVIEW, approve, sign, push],
      ...[CHECK, rollback, 'sallyport validate'],
    ];
    const blocks = parts.map((part) =>
      typeof part === 'object' ? part : { isServing: false, text: part ?? 'exit 9' },
    );
    const env = { SERVER: server.url };
    const printed = await runScript(scriptOf(blocks), { cwd, prefix, env });
    server.close();
    expect(printed).toContain('signed tickets: counter 1');
    expect(printed).toMatch(/tickets tool get_ticket: description/);
    expect(printed).toContain('signed tickets: counter 2');
    expect(printed).toContain('tickets: as pinned');
    expect(printed).toContain('pushed: Approve get_ticket of tickets');
    expect(printed).toContain('signed tickets: counter 3');
  });

  it('[GU-02] quickstart: installed, looked at, configured, approved, served and refused', async () => {
    const blocks = await readGuide('quickstart.md');
    expect(blocks.length).toBeGreaterThan(6);
    const cwd = await emptyFolder('quickstart');
    const between = ({ text }: GuideBlock): string => {
      if (text.includes('sallyport init')) return LOG_IN;
      return text.includes('curl') ? ADD_RULE : '';
    };
    const env = { ...envOfReader(), RULE: await ruleOfQuickstart() };
    const printed = await runScript(scriptOf(blocks, between), { cwd, prefix, env });
    expect(printed).toContain('401 Unauthorized');
    expect(printed).toMatch(/^before: .*"get_ticket"/m);
    expect(printed).toMatch(/^after: .*"tools":/m);
    expect(printed).not.toMatch(/^after: .*"get_ticket"/m);
    // The request without a token has its line in the audit log.
    expect(printed).toContain('token-missing');
  });
});
