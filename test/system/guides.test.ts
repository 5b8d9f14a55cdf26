// The commands of the guides, from an empty folder, with the program as `npm pack` packs it, installed below a prefix of
// its own. The ports are those of the guides. Something stands in for what cannot be had here: Keycloak, Claude Code,
// packages that npx would fetch, and a cluster.

import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import type { Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { startDemoUpstream } from '../../src/dev/demo-upstream.js';
import { buildProgram } from '../support/processes.js';
import { makeSigner } from '../support/signers.js';
import { type GuideBlock, markingError, readPages, runScript, scriptOf, shellBlocks, tried } from './guide-commands.js';
import { startKeycloakStandIn } from './keycloak-stand-in.js';
import { helmProgram, must } from './programs.js';
import { startRewordedServer } from './reworded-server.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const ISSUER = 'http://127.0.0.1:8180/realms/mcp';

/** A repository with the configuration of one server whose definitions are approved. */
const APPROVED_REPOSITORY = `git init -q --bare remote.git
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
sallyport pin fetch --approve`;
/** A signer in the gateway file. */
const ADD_SIGNER =
  "sed -i 's#^pins: .*#pins: {dir: ./policies/pins, signers: {alice: {publicKey: {file: ./alice.pub.pem}}}}#' sallyport.yaml";
/** The server words a description differently than the pins that are committed. */
const DRIFT = `git add sallyport.yaml policies alice.pub.pem
git commit -qm 'The first pins'
curl -sS "\${SERVER%/mcp}/reword"`;
const READ_DIGEST = "DIGEST=$(sallyport pin diff tickets | sed -n 's/.*-> sha256:\\([0-9a-f]*\\).*/\\1/p')";
const CHECK_PUSHED = `sallyport pin verify
sallyport pin verify --format sarif >/dev/null
echo "pushed: $(git --git-dir=../remote.git log -1 --format=%s main)"`;
/** The demo, whose tour has a call that a flow refuses. Ends when a cause of it is known. */
const FLOW_OF_DEMO = `mkdir demo
TMPDIR="$PWD/demo" background 'sallyport dev --demo'
export SALLYPORT_CONFIG=$(echo demo/sallyport-dev-*/gateway.yaml)
CAUSE_ID=
until [ -n "$CAUSE_ID" ]; do
  CAUSE_ID=$(sallyport audit query --reason tainted-flow --json | sed -n 's/.*"causes":\\["\\([^"]*\\)".*/\\1/p' | tail -1)
done`;

/** A gateway that takes orders of an administrator, and whose server cannot be reached. */
const ADMINISTERED = `mkdir policies
printf 'version: 1\\npolicy: none\\nrules: []\\n' > policies/none.policy.yaml
(umask 077; openssl rand -base64 33 > admin.token)
cat > sallyport.yaml <<END
version: 1
publicUrl: http://127.0.0.1:8080
issuers: {corp: {issuer: http://127.0.0.1:9, network: loopback, algorithms: [ES256]}}
upstreams: {github: {url: http://127.0.0.1:9/mcp, network: loopback, issuers: [corp]}}
policies: {dir: ./policies}
admin: {breakGlass: {token: {file: ./admin.token}}}
END
background 'sallyport serve'`;

/** What the reader of the guide to approvals does in a browser: `answer LINK PERSON VERDICT`, and `review PERSON`. */
const IN_A_BROWSER = `header() { tr -d '\\r' | sed -n "s/^$1: //Ip"; }
field() { sed -n 's/.*name="form" value="\\([^"]*\\)".*/\\1/p' | head -1; }
web() { curl -sS -b "$JAR" -c "$JAR" "$@"; }
heading() { sed -n 's/.*<h1>\\(.*\\)<\\/h1>.*/page: \\1/p' page.html; }
answer() {
  JAR=$(mktemp ./jar.XXXXXX)
  issuer=$(web -o /dev/null -D - -H 'Origin: http://127.0.0.1:8080' -d do=login "$1" | header refresh | sed 's/^0; url=//')
  web -L -o page.html "$(web -o /dev/null -D - -d "user=$2" "$issuer" | header refresh | sed 's/^0; url=//')"
  heading
  web -H 'Origin: http://127.0.0.1:8080' --data-urlencode "form=$(field < page.html)" -d "do=$3" "$1" -o page.html
  heading
}
review() {
  JAR=$(mktemp ./jar.XXXXXX)
  issuer=$(web -o /dev/null -D - http://127.0.0.1:9090/login/with/demo | header location)
  web -L -o page.html "$(web -o /dev/null -D - -d "user=$1" "$issuer" | header refresh | sed 's/^0; url=//')"
  first=$(web -L http://127.0.0.1:9090/ | sed -n 's/.*href="\\(\\/approvals\\/[0-9a-f]\\{32\\}\\)".*/\\1/p' | head -1)
  web "http://127.0.0.1:9090$first" -o page.html
  web -L -o page.html -H 'Origin: http://127.0.0.1:9090' --data-urlencode "form=$(grep /grant page.html | field)" "http://127.0.0.1:9090$first/grant"
  heading
}
link() { delete_ticket "$1" | grep -o 'http://127.0.0.1:8080/.well-known[^" ]*'; }`;

let folder: string;
let reader: string;
let pages: ReadonlyMap<string, string>;
let keycloak: Server;

beforeAll(async () => {
  pages = await readPages();
  await buildProgram();
  folder = await mkdtemp(join(tmpdir(), 'sallyport-guides-'));
  await must('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: ROOT });
  const packed = (await readdir(folder)).find((name) => name.endsWith('.tgz')) ?? '';
  const prefix = join(folder, 'prefix');
  await must('npm', ['install', '--global', '--prefix', prefix, join(folder, packed)], {
    cwd: folder,
  });
  await mkdir(join(folder, 'stand-ins'));
  const standIn = join(ROOT, 'test/system/guide-stand-ins.mjs');
  for (const name of ['aws', 'npm', 'npx', 'uvx', 'claude', 'kubectl', 'helm', 'answers'])
    await writeFile(join(folder, 'stand-ins', name), `#!/bin/sh\nexec node '${standIn}' ${name} "$@"\n`, {
      mode: 0o755,
    });
  reader = await emptyFolder('reader');
  keycloak = await startKeycloakStandIn(reader);
});

afterAll(async () => {
  keycloak?.close();
  await rm(folder, { recursive: true, force: true });
});

async function emptyFolder(name: string): Promise<string> {
  const cwd = join(folder, name);
  await mkdir(cwd);
  return cwd;
}

/** The blocks of a page that are tried. */
function blocksOf(page: string): readonly GuideBlock[] {
  return shellBlocks(page, pages.get(page) ?? '').filter(({ ways }) => ways !== undefined);
}

/** The block of a page that contains a text. */
function blockWith(page: string, text: string): GuideBlock {
  const found = blocksOf(page).filter((block) => block.text.includes(text));
  expect(found, `${page}: ${text}`).toHaveLength(1);
  return found[0] as GuideBlock;
}

function runGuide(
  cwd: string,
  parts: readonly (GuideBlock | string)[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const programs = [join(folder, 'stand-ins'), join(folder, 'prefix/bin')];
  const settings = {
    ...{ CLONE: ROOT, HELM: helmProgram(), CHART: join(ROOT, 'helm') },
    npm_config_prefix: join(folder, 'linked'),
    NODE_COMPILE_CACHE: join(folder, 'compiled'),
    ...env,
  };
  return runScript(scriptOf(parts), { cwd, programs, env: settings });
}

/** The examples of a page in a language. */
function examplesOf(page: string, language: string): readonly string[] {
  const fence = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm');
  return [...(pages.get(page) ?? '').matchAll(fence)].map(([, text = '']) => text);
}

/** The decision id of the last event that an audit query with these options finds. */
function decisionOf(options: string): string {
  return `DECISION_ID=$(sallyport audit query --json ${options} | tail -1 | sed 's/.*"decision":{"id":"\\([^"]*\\)".*/\\1/')`;
}

describe('[GU-01] the guides', () => {
  it('have no shell block that is neither run nor says that it is not', () => {
    const blocks = [...pages].flatMap(([page, text]) => shellBlocks(page, text));
    expect(blocks.length).toBeGreaterThan(40);
    expect(blocks.flatMap((block) => markingError(block) ?? [])).toEqual([]);
    const unmarked = '```sh\nnpm install\n```\n';
    expect(shellBlocks('x', unmarked).map(markingError)).toEqual([expect.stringContaining('x 1')]);
    const bare = '   ```\n   docker run x\n   ```\n\n```\nHTTP/1.1 401\n```\n';
    expect(shellBlocks('x', bare).map(markingError)).toHaveLength(1);
  });

  it('have examples for clients that are JSON', () => {
    const examples = examplesOf('connect-clients.md', 'json');
    expect(examples.length).toBeGreaterThan(4);
    for (const example of examples) expect(() => JSON.parse(example)).not.toThrow();
  });

  it('[GU-02] lead from an empty folder to a server under policy, and to what one does with it', async () => {
    const quickstart = (text: string) => blockWith('quickstart.md', text);
    const keycloakStep = (text: string) => blockWith('keycloak.md', text);
    const rotation = blocksOf('rotation.md');
    const urls = ['json', 'sh'].flatMap((language) =>
      examplesOf('connect-clients.md', language).flatMap(
        (text) => text.match(/https?:\/\/(?:mcp\.example\.com|127\.0\.0\.1:8080)[^\s"]*/g) ?? [],
      ),
    );
    const rule = examplesOf('quickstart.md', 'yaml').find((text) => text.includes('no-passwords'));
    const several = blocksOf('several-servers.md');
    const observability = blocksOf('observability.md');
    const [admin] = examplesOf('observability.md', 'yaml');
    const call = 'inspector --method tools/call --tool-name echo --tool-arg message=password';
    const printed = await runGuide(
      reader,
      [
        keycloakStep('mcp-realm.json'),
        quickstart('PORT=3001'),
        quickstart('npm install -g .'),
        'mkdir other && cd other',
        keycloakStep('sallyport init'),
        'cd ..',
        quickstart('dev-issuer user'),
        quickstart('dev-issuer --users'),
        quickstart('export MCP_URL'),
        quickstart('sallyport dev "$MCP_URL"'),
        quickstart('sallyport init'),
        quickstart('sallyport pin diff'),
        quickstart('sallyport pin approve'),
        quickstart('sallyport validate'),
        quickstart('sallyport serve'),
        quickstart('curl'),
        'cd ..',
        keycloakStep('TOKEN='),
        quickstart('dev-issuer token'),
        'cd my-gateway',
        quickstart('inspector() {'),
        'printf %s "$RULE" >> policies/tickets.policy.yaml',
        `until ! ${call} >/dev/null; do sleep 0.3; done`,
        quickstart(call),
        quickstart('sallyport audit query'),
        ...several,
        'until answers http://127.0.0.1:8080/desk 2>/dev/null; do sleep 0.3; done',
        keycloakStep('claude mcp add'),
        ...blocksOf('connect-clients.md'),
        `answers ${[...new Set(urls)].join(' ')}`,
        decisionOf('. --reason denied-by-rule'),
        ...observability.slice(0, 1),
        'printf %s "$ADMIN" >> sallyport.yaml',
        quickstart('sallyport serve'),
        ...observability.slice(1),
        ...blocksOf('troubleshooting.md'),
        // In a container the listeners are on every address, and paths are those of the page.
        "sed 's/host: 127.0.0.1/host: 0.0.0.0/' sallyport.yaml > gateway.yaml",
        ...(examplesOf('container-and-cluster.md', 'yaml')[0] ?? '')
          .trim()
          .split('\n')
          .map((line) => `sed -i 's#^${line.split(':')[0]}: .*#${line}#' gateway.yaml`),
        ...blocksOf('container-and-cluster.md'),
        ...rotation.slice(0, 1),
        "sed -i 's#^keys: .*#keys: [{file: ./sallyport-key-2}, {file: ./secrets/sallyport-key}]#' sallyport.yaml",
        quickstart('sallyport serve'),
        ...rotation.slice(1, 2),
        'answers http://127.0.0.1:8080/tickets',
        'until cat audit-*.jsonl 2>/dev/null | grep -q .; do sleep 0.1; done',
        ...rotation.slice(2),
      ],
      {
        ...{ RULE: rule ?? '', ADMIN: admin ?? '' },
      },
    );
    expect([rotation, several, observability].map(({ length }) => length)).toEqual([3, 5, 3]);
    expect(printed).toContain('desk: 10 approved, none left pending');
    expect(printed).toMatch(/^desk +configured 7 +10 +0 +0 +\?$/m);
    expect(printed).toContain('removed files from stdio.yaml and sallyport.yaml');
    expect(printed).toContain('"control":"pins:desk","state":"armed"');
    expect(printed).toContain('401 Unauthorized');
    expect(printed).toContain('Echo: hello');
    expect(printed).toContain('Passwords are not sent to this server.');
    // The request without a token, and the call, have their lines in the audit log.
    expect(printed).toContain('token-missing');
    expect(printed).toMatch(/mcp\.outcome .* echo {2}refused denied-by-rule/);
    expect(printed).toContain('kind: Deployment');
    expect(printed).toContain('complete: the chain of ');
  });

  it('lead from a stdio server to a gateway in front of it, over a port or a socket', async () => {
    const cwd = await emptyFolder('stdio');
    const blocks = blocksOf('stdio-servers.md');
    const audit = blocks.findIndex(({ text }) => text.includes('audit show'));
    expect(audit).toBeGreaterThan(0);
    const printed = await runGuide(
      cwd,
      [
        ...blocks.slice(0, audit),
        'answers http://127.0.0.1:8080/mcp',
        `until sallyport audit query setup | grep -q token-missing; do sleep 0.1; done`,
        decisionOf('setup --reason token-missing'),
        ...blocks.slice(audit),
        'test -S run/git.sock',
      ],
      { ISSUER, GROUP: 'eng' },
    );
    expect(printed).toContain('token-missing');
    expect(printed).toContain('written to gateway: sallyport.yaml');
  });

  it('lead from the file of a client to a server that is read, approved and served', async () => {
    const cwd = await emptyFolder('ten-servers');
    const [init, ...others] = blocksOf('ten-servers.md');
    const servers = { tickets: { url: 'http://127.0.0.1:3001/mcp' } };
    await writeFile(join(cwd, 'mcp.json'), JSON.stringify({ mcpServers: servers }));
    const printed = await runGuide(
      cwd,
      [
        "background 'sallyport demo-server'",
        ...(init === undefined ? [] : [init]),
        'sallyport add --from ../mcp.json --group eng --yes tickets',
        ...others,
        'answers http://127.0.0.1:8080/tickets',
      ],
      { ISSUER },
    );
    expect(printed).toContain('tickets: 10 approved, none left pending');
    expect(printed).toMatch(/^tickets\/delete_ticket +- +-$/m);
  });

  it('show a visitor of the repository the demo, a server by its URL and one by its command, and an attack', async () => {
    const cwd = await emptyFolder('visitor');
    const blocks = blocksOf('README.md');
    expect(blocks).toHaveLength(3);
    const printed = await runGuide(cwd, [
      'mkdir notes',
      blockWith('quickstart.md', 'PORT=3001'),
      ...blocks,
      'cat log.*',
      ...blocksOf('attacks-live.md'),
    ]);
    expect(printed).toMatch(/^tool-shadowing +\S/m);
    expect(printed).toContain('\nPath escape\n');
    expect(printed).toContain('tools, 4 prompts, 2 templates from http://127.0.0.1:3001/mcp');
    expect(printed).toContain('from npx -y @modelcontextprotocol/server-filesystem');
  });

  it('block and lift at a running gateway', async () => {
    const cwd = await emptyFolder('blocks');
    const [block, unblock, ...more] = blocksOf('state.md');
    const printed = await runGuide(cwd, [
      ADMINISTERED,
      ...(block === undefined ? [] : [block]),
      'ID=$(sallyport block list | sed -n "s/ tool .*//p")',
      ...(unblock === undefined ? [] : [unblock]),
      'sallyport block list',
    ]);
    expect(more).toEqual([]);
    expect(printed).toMatch(/^[0-9a-f-]{36} tool github create_issue until lifted /m);
    expect(printed).toMatch(/^[0-9a-f-]{36} lifted\n(?!.* tool github)/ms);
  });

  it('print the pin of the key of a certificate', async () => {
    const printed = await runGuide(await emptyFolder('pin'), [
      'openssl req -x509 -newkey rsa:2048 -nodes -keyout server.key -out server.pem -subj /CN=mcp.internal 2>&1',
      ...blocksOf('upstream-credentials.md'),
    ]);
    expect(printed).toMatch(/^[0-9a-f]{64} {2}-$/m);
  });

  it('install, start and look at a clone', async () => {
    const cwd = await emptyFolder('clone');
    const opt = join(cwd, 'opt');
    const install = blocksOf('install.md').map((block) => ({
      ...block,
      text: block.text.replaceAll('/opt/sallyport', opt),
    }));
    try {
      const printed = await runGuide(cwd, [...install, ...blocksOf('CONTRIBUTING.md')]);
      expect(printed).toMatch(/^✓ (\d+) of \1 outcomes as expected$/m);
      const { version } = JSON.parse(await must('npm', ['pkg', 'get', '--json'], { cwd: ROOT }));
      expect(printed.split('\n').filter((line) => line === version)).toHaveLength(3);
    } finally {
      for (const name of await readdir(ROOT)) if (/^sallyport-.*\.tgz$/.test(name)) await rm(join(ROOT, name));
    }
  });

  it('[POL-10] write, test, explain, replay and shadow a policy', async () => {
    const cwd = await emptyFolder('writing-policies');
    const blocks = blocksOf('writing-policies.md');
    expect(blocks.length).toBeGreaterThan(6);
    const printed = await runGuide(cwd, blocks);
    const [shown = ''] = examplesOf('writing-policies.md', 'text');
    for (const part of shown.split('…\n')) expect(printed).toContain(part);
    expect(printed).toContain('recorded: deny: arguments-invalid\n');
    expect(printed).toMatch(/would change: 1 × finn .* deny: denied-by-rule by finance\/no-large-refunds/);
    expect(printed).toContain('exit code 1: decisions would change');
    expect(printed).toContain('policy: "support"');
    expect(printed).toContain('tighter.policy.yaml:3:7 warning this policy is not enforced');
  });

  it('lead from the refusal of a flow to what caused it', async () => {
    const cwd = await emptyFolder('flows');
    const printed = await runGuide(cwd, [FLOW_OF_DEMO, ...blocksOf('flows.md')]);
    const [, cause] = /"reasons":\["tainted-flow"\],"causes":\["([^"]+)"/.exec(printed) ?? [];
    expect(printed).toContain(`"id": "${cause}"`);
  });

  it('lead from an empty folder to calls that were approved by their caller and by a reviewer', async () => {
    const blocks = blocksOf('approvals.md');
    expect(blocks).toHaveLength(13);
    const printed = await runGuide(await emptyFolder('approvals'), [
      ...blocks.slice(0, 6),
      IN_A_BROWSER,
      'answer "$(link T-101)" alice grant',
      ...blocks.slice(6, 8),
      'answer "$(link T-101)" rita grant',
      'answer "$(link T-102)" alice deny; delete_ticket T-102',
      ...blocks.slice(8, 9),
      'review rita',
      ...blocks.slice(9),
    ]);
    for (const ticket of ['T-101', 'T-103', 'T-104']) expect(printed.split(`Deleted ${ticket}.`)).toHaveLength(2);
    expect(printed).not.toContain('Deleted T-102');
    for (const text of ['page: Approved', 'page: Not found', 'page: Refused', '"reason":"approval-denied"'])
      expect(printed).toContain(text);
    for (const type of ['requested', 'granted', 'used']) expect(printed).toContain(`approval.${type}`);
  });

  it('[GU-09] lead from a drift to a signed approval that is pushed, and back', async () => {
    const blocks = blocksOf('reviewing-drift.md');
    expect(blocks).toHaveLength(8);
    const at = (index: number) => blocks.slice(index, index + 1);
    const demo = await startDemoUpstream();
    const [before, after] = ['Reads one ticket', 'Reads one ticket and its state'];
    const server = await startRewordedServer(demo.url, before, after);
    const parts = [
      ...[APPROVED_REPOSITORY, ...at(4), ADD_SIGNER, ...at(5), DRIFT, ...at(0), READ_DIGEST],
      ...[...blocks.slice(1, 4), CHECK_PUSHED, ...at(7), 'sallyport validate'],
      ...['cp ../kms.pub.pem .', ...at(6)],
    ];
    try {
      const cwd = await emptyFolder('reviewing-drift');
      const kms = makeSigner('kms', 'P-256');
      await writeFile(join(cwd, 'kms.pem'), kms.privateKey, { mode: 0o600 });
      await writeFile(join(cwd, 'kms.pub.pem'), kms.publicKey);
      const env = { SERVER: server.url, KMS_KEY: join(cwd, 'kms.pem') };
      const printed = await runGuide(cwd, parts, env);
      expect(printed).toContain('signed tickets: counter 1');
      expect(printed).toMatch(/tickets tool get_ticket: description/);
      expect(printed).toContain('signed tickets: counter 2');
      expect(printed).toContain('tickets: as pinned');
      expect(printed).toContain('pushed: Approve get_ticket of tickets');
      expect(printed).toContain('signed tickets: counter 3');
      expect(printed).toMatch(/signed tickets: counter 3, .*, 2 signatures/);
    } finally {
      server.close();
      await demo.close();
    }
  });

  it('[GU-09] have a workflow whose steps succeed without drift, and fail with it after a report', async () => {
    const text = examplesOf('reviewing-drift.md', 'yaml').find((one) => one.startsWith('name: pins'));
    const { on, jobs } = parse(text ?? '', { version: '1.2', uniqueKeys: true, strict: true });
    expect(Object.keys(on)).toEqual(['pull_request', 'schedule']);
    expect(Object.keys(jobs)).toEqual(['verify']);
    const steps: readonly { run?: string; uses?: string }[] = jobs.verify.steps;
    for (const { run, uses } of steps) expect([run, uses].filter(Boolean)).toHaveLength(1);
    for (const { uses = 'a/b@v1' } of steps) expect(uses).toMatch(/^[\w-]+(?:\/[\w-]+)+@v\d+$/);
    // As the runner of GitHub does, each in a shell of its own.
    const shells = steps.flatMap(({ run }) => (run === undefined ? [] : [`bash -e <<'END'\n${run}\nEND`]));
    expect(shells).toHaveLength(3);
    const demo = await startDemoUpstream();
    const server = await startRewordedServer(demo.url, 'Reads one ticket', 'Reads any ticket');
    const [last = ''] = shells.slice(-1);
    const parts = [
      APPROVED_REPOSITORY,
      "printf 'keys: [{file: ./secrets/sallyport-key}]\\n' >> sallyport.yaml",
      ...[...shells, 'cp pins.sarif before.sarif', `curl -sS "\${SERVER%/mcp}/reword"`],
      `! ${last}`,
      'echo "REPORTS"; cat before.sarif; echo "NEXT"; cat pins.sarif',
    ];
    try {
      const cwd = await emptyFolder('workflow');
      const printed = await runGuide(cwd, parts, { SERVER: server.url });
      const [before = '', after = ''] = (printed.split('REPORTS')[1] ?? '').split('NEXT');
      expect(JSON.parse(before).runs[0].results).toEqual([]);
      expect(JSON.parse(after).runs[0].results).toMatchObject([{ ruleId: 'description', level: 'error' }]);
    } finally {
      server.close();
      await demo.close();
    }
  });

  it('have no block that is said to be tried and is not', () => {
    const all = [...pages.keys()].flatMap((page) => blocksOf(page).map(({ id }) => id));
    expect([...tried()].sort()).toEqual(all.sort());
  });
});
