// What the README promises of the command line, done with the built program: every command that needs
// no browser, its output, and its exit codes. docs/reference/commands.md.

import { once } from 'node:events';
import { appendFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DemoUpstream, startDemoUpstream } from '../../src/dev/demo-upstream.js';
import { type DemoFiles, writeDemoFiles } from '../../src/dev/files.js';
import { listFilesOf, readAudit } from '../support/audit-chain.js';
import { buildProgram, findFreePort, runSallyport, type Served, startSallyport } from '../support/processes.js';
import { openRawSession, postStateless } from '../support/raw-mcp.js';
import { PATIENT } from '../support/timing.js';
import { startTestIssuer, type TestIssuer } from '../support/tokens.js';

const ENGINEER = { sub: 'engineer', groups: ['engineering'], scope: 'tickets:read' };

let folder: string;
let desk: DemoUpstream;
let issuer: TestIssuer;
let files: DemoFiles;
let ports: { readonly data: number; readonly ops: number; readonly admin: number };
const config = (): string => files.configFile;

beforeAll(async () => {
  await buildProgram();
  folder = await mkdtemp(join(tmpdir(), 'sallyport-cli-'));
  desk = await startDemoUpstream({ seed: 'cli' });
  issuer = await startTestIssuer({ alg: 'ES256' });
  ports = {
    data: await findFreePort(),
    ops: await findFreePort(),
    admin: await findFreePort(),
  };
  files = await writeDemoFiles(folder, {
    publicUrl: `http://127.0.0.1:${ports.data}`,
    issuer: issuer.issuer,
    upstreamUrl: desk.url,
    ports,
  });
  // No balancer has to notice that it ends.
  await appendFile(config(), 'shutdown: {delay: 0s}\n');
});
afterAll(async () => {
  running?.signal('SIGKILL');
  await desk?.close();
  await issuer?.close();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

let running: Served | undefined;

function startServing(...more: readonly string[]): Served {
  running = startSallyport(['serve', '-c', config(), ...more], folder);
  return running;
}

const listening = (): readonly string[] => [
  `data listening on http://127.0.0.1:${ports.data}`,
  `ops listening on http://127.0.0.1:${ports.ops}`,
];

/** What the lines of the process log say. */
function eventsOf(served: Served): readonly string[] {
  return served
    .stderr()
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { event: string }).event);
}

describe('a mistake on the command line', () => {
  it.each([
    [['serv'], 'serve'],
    [['validate', '-c', 'x', '--stric'], '--strict'],
    [['pin', 'verfy', '-c', 'x'], 'verify'],
  ])('[E-30] %j is answered with what was meant, and 2', async (args, meant) => {
    const { code, stdout, stderr } = await runSallyport(args);
    expect(stderr).toContain(`(Did you mean ${meant}?)`);
    expect([code, stdout]).toEqual([2, '']);
  });

  it('[E-30] help shows examples first and ends with 0', async () => {
    const { code, stdout } = await runSallyport(['validate', '--help']);
    expect(code).toBe(0);
    expect(stdout.startsWith('Examples:')).toBe(true);
  });
});

describe('validate', () => {
  it('[E-31] accepts the file that the package ships', async () => {
    const args = ['validate', '--strict', '-c', 'config/gateway.yaml', '--no-secrets'];
    const { code, stdout, stderr } = await runSallyport(args);
    expect(stdout).not.toContain('error');
    expect(stderr).toContain('0 errors, 0 warnings');
    expect(code).toBe(0);
  });

  it('[E-31] tells every mistake with its place and ends with 1; a missing file is 2', async () => {
    const text = await readFile(config(), 'utf8');
    const bad = join(folder, 'bad.yaml');
    const wrong = text.replace('onFailure: block', 'onFailure: blok').replace('algorithms', 'algoritms');
    await writeFile(bad, wrong);
    const { code, stdout } = await runSallyport(['validate', '-c', bad], { cwd: folder });
    expect(code).toBe(1);
    expect(stdout).toMatch(/^bad\.yaml:\d+:\d+ error .*algoritms.*did you mean "algorithms"\?$/m);
    expect(stdout).toMatch(/^bad\.yaml:\d+:\d+ error .*blok.*did you mean "block"\?$/m);
    const none = await runSallyport(['validate', '-c', join(folder, 'none.yaml')]);
    expect(none.code).toBe(2);
  });
});

describe('the reports of validate', () => {
  it('[C-16] are text for people, and JSON and SARIF for programs, and say the same', async () => {
    const bad = join(folder, 'report.yaml');
    await writeFile(bad, (await readFile(config(), 'utf8')).replace('algorithms', 'algoritms'));
    const report = async (format: string): Promise<string> => {
      const args = ['validate', '-c', bad, '--format', format];
      const { code, stdout } = await runSallyport(args, { cwd: folder });
      expect(code).toBe(1);
      return stdout;
    };
    const isMeant = /^report\.yaml:(\d+):(\d+) error .*"algorithms"\?$/m;
    const [, line, column] = isMeant.exec(await report('text')) ?? [];
    const all = JSON.parse(await report('json'))['faults'] as Record<string, unknown>[];
    const found = all.find(({ suggestion }) => suggestion === 'algorithms');
    expect(found).toMatchObject({
      ...{ file: 'report.yaml', line: Number(line), column: Number(column), severity: 'error' },
    });
    const [run] = JSON.parse(await report('sarif'))['runs'];
    expect(run.results).toContainEqual({
      ruleId: found?.['rule'],
      ruleIndex: expect.any(Number),
      level: 'error',
      message: { text: `${found?.['message']}; did you mean "algorithms"?` },
      locations: [
        {
          physicalLocation: {
            artifactLocation: { uri: 'report.yaml' },
            region: { startLine: Number(line), startColumn: Number(column) },
          },
        },
      ],
    });
  });
});

describe('keys and schema', () => {
  it('[E-32] makes a key, and prints public parts that tell nothing of it', async () => {
    const one = await runSallyport(['keys', 'new']);
    expect([one.code, one.stderr]).toEqual([0, '']);
    const file = join(folder, 'key');
    await writeFile(file, one.stdout, { mode: 0o600 });
    const { code, stdout } = await runSallyport(['keys', 'public', file, '--json']);
    expect(code).toBe(0);
    const [key] = (JSON.parse(stdout) as { keys: Record<string, unknown>[] }).keys;
    expect(key).toMatchObject({ kty: 'OKP', crv: 'Ed25519' });
    expect(key).not.toHaveProperty('d');
    const secret = one.stdout.trim().split(':').at(-1) ?? one.stdout;
    expect(stdout).not.toContain(secret);
  });

  it('[E-32] prints the schema of the gateway file', async () => {
    const { code, stdout } = await runSallyport(['schema', 'gateway']);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toHaveProperty('$schema');
  });
});

describe('pin', () => {
  const pin = (word: string, ...more: string[]) =>
    runSallyport(['pin', word, '-c', config(), ...more], { cwd: folder });
  const lock = (): Promise<string> => readFile(join(files.pinsDir, 'desk.lock.yaml'), 'utf8');

  const by = ['--by', 'reviewer'];

  it('[E-33] fetches what is pending, and approves by name', async () => {
    const fetched = await pin('fetch');
    expect(fetched.code).toBe(0);
    expect(fetched.stderr).toContain(' pin diff -c ');
    expect(fetched.stdout).toMatch(/desk: 0 approved, \d+ pending/);
    const approved = await pin('fetch', '--approve', ...by, '--note', 'first review');
    expect(approved.stdout).toMatch(/desk: \d+ approved, 0 pending/);
    expect(await lock()).toContain('by: reviewer');
    const same = await pin('verify');
    expect([same.code, same.stdout]).toEqual([0, 'desk: as pinned\n']);
  });

  it('[E-33] shows and checks a drift, and approves what was reviewed and nothing else', async () => {
    desk.misbehave({ drift: 'description' });
    const differs = await pin('diff');
    expect(differs.code).toBe(0);
    expect(differs.stdout).toMatch(/get_ticket/);
    const verified = await pin('verify', '--json');
    expect(verified.code).toBe(1);
    expect(verified.stdout).toContain('get_ticket');

    const again = await pin('fetch');
    const digest = /pending tool get_ticket (sha256:[0-9a-f]{64})/.exec(again.stdout)?.[1] ?? '';
    const wrong = `sha256:${'0'.repeat(64)}`;
    expect((await pin('approve', 'desk', 'get_ticket', '--digest', wrong, ...by)).code).toBe(1);
    const good = await pin('approve', 'desk', 'get_ticket', '--digest', digest, ...by);
    expect([good.code, good.stdout]).toEqual([
      0,
      `approved desk tool get_ticket ${digest}\ndesk: 1 approved, none left pending\n`,
    ]);
    expect((await pin('verify')).code).toBe(0);
    desk.behave();
  });

  it('[E-33] [POL-11] blocks a name, which access then says, and asks about one that it does not know', async () => {
    const blocked = await pin('block', 'desk', 'get_ticket');
    expect([blocked.code, blocked.stdout]).toEqual([0, 'blocked desk tool get_ticket\n']);
    expect(await lock()).toContain('status: blocked');
    const asked = ['access', '-c', config(), '--tool', 'get_ticket', '--group', 'engineering', '--format', 'csv'];
    const { stdout } = await runSallyport(asked, { cwd: folder });
    expect(stdout).toContain(',desk,get_ticket,,no,tool-blocked,');
    const unknown = await pin('block', 'dsk', 'get_ticket');
    expect(unknown.code).toBe(2);
    expect(unknown.stderr).toContain('did you mean "desk"?');
    await rm(join(files.pinsDir, 'desk.lock.yaml'));
  });

  it('[E-33] ends with 2 where the upstream cannot be asked', async () => {
    const text = await readFile(config(), 'utf8');
    const gone = join(folder, 'gone.yaml');
    await writeFile(gone, text.replace(desk.url, `http://127.0.0.1:${await findFreePort()}/mcp`));
    const { code, stderr } = await runSallyport(['pin', 'verify', '-c', gone], { cwd: folder });
    expect(code).toBe(2);
    expect(stderr).toContain('desk could not be listed');
  });
});

describe('validate --online', () => {
  it('[E-64] tries what the files name, says why it failed and what to do, and changes nothing', async () => {
    await runSallyport(['pin', 'fetch', '-c', config(), '--approve', '--by', 'reviewer'], { cwd: folder });
    const away = `http://127.0.0.1:${await findFreePort()}`;
    const extended = (await readFile(config(), 'utf8'))
      .replace(
        'issuers:',
        `issuers:\n  misnamed: {issuer: "${issuer.issuer}/", network: loopback, algorithms: [ES256]}`,
      )
      .replace('upstreams:', `upstreams:\n  gone: {url: "${away}/mcp", network: loopback, issuers: [dev]}`);
    const file = join(folder, 'online.yaml');
    await writeFile(file, `${extended}tracing: {otlp: {url: "${away}/v1/traces", network: loopback}}\n`);
    const contents = async (): Promise<readonly string[]> => [
      ...(await readdir(folder, { recursive: true })),
      await readFile(join(files.pinsDir, 'desk.lock.yaml'), 'utf8'),
    ];
    const before = await contents();
    desk.misbehave({ drift: 'description' });
    const { code, stdout, stderr } = await runSallyport(['validate', '-c', file, '--online'], { cwd: folder });
    desk.behave();
    expect(await contents()).toEqual(before);
    await rm(join(files.pinsDir, 'desk.lock.yaml'));
    expect(code).toBe(1);
    const printed = stdout.slice(stdout.indexOf('failed '));
    expect(printed).toMatch(
      /^failed {4}issuer misnamed: the metadata names another issuer: .*; write issuers\.misnamed\.issuer/m,
    );
    expect(printed).toMatch(
      /^failed {4}upstream gone: it cannot be reached.*ECONNREFUSED.*; start it, or open the way/m,
    );
    expect(printed).toMatch(
      /^failed {4}pins of desk: 1 difference: tool get_ticket \(.*; look at it with: sallyport pin diff desk/m,
    );
    expect(printed).toMatch(/^failed {4}trace receiver: could not be reached \(ECONNREFUSED\)/m);
    expect(printed).toMatch(/^ok {8}upstream desk: speaks .*2025-11-25, 2026-07-28; \d+ tools/m);
    for (const line of [
      'ok        issuer dev: metadata and keys',
      'ok        clock of upstream desk: agrees with this machine',
      'not tried pins of gone: the upstream could not be listed',
      'not tried store: state.type is memory',
    ])
      expect(printed.split('\n')).toContain(line);
    expect(stderr).toMatch(/\nonline: 4 failed, \d+ not tried, \d+ ok\n$/);
  });
});

describe('serve', () => {
  it('[E-34] refuses a file with mistakes, all of them told, and opens nothing', async () => {
    const bad = join(folder, 'bad-serve.yaml');
    await writeFile(bad, (await readFile(config(), 'utf8')).replace('version: 1', 'version: 9'));
    const { code, stdout, stderr } = await runSallyport(['serve', '-c', bad], { cwd: folder });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('bad-serve.yaml:');
    expect(stderr).toContain('not started: the configuration has errors');
  });

  it('[E-34] prints a line a listener, serves, reloads at SIGHUP, drains at SIGTERM, ends with 143', async () => {
    const pinned = ['pin', 'fetch', '-c', config(), '--approve', '--by', 'reviewer'];
    expect((await runSallyport(pinned, { cwd: folder })).code).toBe(0);
    const served = startServing();
    await expect.poll(served.stderr, PATIENT).toContain('ops listening');
    expect(eventsOf(served)).toEqual(expect.arrayContaining([...listening()]));
    // What is in order is said in sum.
    expect(eventsOf(served)).toContainEqual(expect.stringMatching(/^controls: \d+ armed, .*; --verbose lists them$/));
    expect(eventsOf(served)).not.toContain('control is armed');
    expect(served.stdout()).toBe('');
    const ready = await fetch(`http://127.0.0.1:${ports.ops}/readyz`);
    expect(ready.status).toBe(200);
    const token = await issuer.mint(files.resource, { claims: ENGINEER });
    const session = await openRawSession(files.resource, { token });
    const args = { project: 'web', id: 'T-101' };
    const call = { name: 'get_ticket', arguments: args };
    const ticket = await session.ask(2, 'tools/call', call);
    expect(ticket.messages.at(-1).result.structuredContent).toMatchObject({ id: 'T-101' });
    const hidden = await postStateless(
      files.resource,
      'tools/call',
      { name: 'delete_ticket', arguments: {} },
      { token },
    );
    expect(hidden.messages.at(-1).error.code).toBe(-32602);

    const health = ['healthcheck', '-c', config()];
    expect((await runSallyport(health, { cwd: folder })).code).toBe(0);
    const policy = join(files.policiesDir, 'desk.policy.yaml');
    await writeFile(policy, `${await readFile(policy, 'utf8')}\n# Read again.\n`);
    served.signal('SIGHUP');
    await expect.poll(served.stderr, PATIENT).toContain('configuration reloaded');

    // A call that still runs when the signal comes is answered before the program ends.
    desk.misbehave({ paceMs: 150 });
    const slow = session.ask(3, 'tools/call', {
      name: 'export_all',
      arguments: {},
      _meta: { progressToken: 'p' },
    });
    await expect.poll(() => desk.seen().some((one) => one.name === 'export_all'), PATIENT).toBe(true);
    served.signal('SIGTERM');
    const answered = await slow;
    expect(answered.messages.at(-1)).toMatchObject({ id: 3 });
    expect(answered.messages.at(-1).result).toBeDefined();
    expect(await served.ended).toBe(143);
    // No terminal reads along.
    for (const line of served.stderr().trim().split('\n')) expect(JSON.parse(line)).toHaveProperty('event');
    expect((await runSallyport(health, { cwd: folder })).code).not.toBe(0);
    const written = served.stderr() + (await readAudit(files.auditFile));
    expect(written).not.toContain(token);
    desk.behave();
  });

  it('[E-43] accepts requests for its delay after SIGTERM, and ends at once at the next', async () => {
    const patient = join(folder, 'patient.yaml');
    const text = (await readFile(config(), 'utf8')).replace('delay: 0s', 'delay: 10m, drain: 10m');
    await writeFile(patient, text);
    running = startSallyport(['serve', '-c', patient], folder);
    await expect.poll(running.stderr, PATIENT).toContain('ops listening');
    expect((await runSallyport(['healthcheck'], { cwd: dirname(folder) })).code).toBe(0);
    running.signal('SIGTERM');
    const readyz = async () => (await fetch(`http://127.0.0.1:${ports.ops}/readyz`)).text();
    await expect.poll(readyz, PATIENT).toBe('not ready\nthe gateway is stopping\n');
    const headers = { 'content-type': 'application/json' };
    const served = await fetch(files.resource, { method: 'POST', headers, body: '{}' });
    expect([served.status, served.headers.get('connection')]).toEqual([401, 'close']);
    running.signal('SIGTERM');
    expect(await running.ended).toBe(143);
    expect(running.stderr()).toContain('gateway stopped');
  });

  it('[E-34] logs as text where that is asked for, and from a level on', async () => {
    const text = startServing('--log-format', 'text', '--log-level', 'debug');
    const desks = `upstream=desk url=${files.resource} `;
    await expect.poll(text.stderr, PATIENT).toContain(desks);
    expect(text.stderr()).toContain('Z info  upstream is reachable upstream=desk ');
    text.signal('SIGTERM');
    await text.ended;
    expect(text.stderr().endsWith('Z info  gateway stopped\n')).toBe(true);
    const quiet = startServing('--log-level', 'error');
    await expect.poll(quiet.stderr, PATIENT).toContain('ops listening');
    quiet.signal('SIGTERM');
    expect(await quiet.ended).toBe(143);
    expect([quiet.stdout(), eventsOf(quiet)]).toEqual(['', listening()]);
    const wrong = await runSallyport(['serve', '-c', config(), '--log-level', 'loud'], {
      cwd: folder,
    });
    expect([wrong.code, wrong.stdout]).toEqual([2, '']);
    expect(wrong.stderr).toContain('--log-level');
  });

  it('[E-39] ends with 1 where a port is taken, and says which', async () => {
    const before = await readAudit(files.auditFile);
    const taken = createServer().listen(ports.ops, '127.0.0.1');
    await once(taken, 'listening');
    const { code, stdout, stderr } = await runSallyport(['serve', '-c', config()], { cwd: folder });
    taken.close();
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain(
      `error: not started: the ops listener cannot listen on 127.0.0.1:${ports.ops}: the port is already in use`,
    );
    expect(await readAudit(files.auditFile)).toBe(before);
  });

  it('[E-34] leaves an audit that verifies, and does not once a line is gone', async () => {
    const verify = (...more: string[]) =>
      runSallyport(['audit', 'verify', dirname(files.auditFile), ...more], { cwd: folder });
    const verdict = await verify();
    expect(verdict.stdout).toMatch(
      /^unsigned: 0 lines.*\ncomplete: the chain of \d+ lines with \d+ signed checkpoints? was verified, head /,
    );
    expect(verdict.stderr).toContain('note:');
    expect(verdict.code).toBe(0);
    const runs = await listFilesOf(files.auditFile);
    const texts = await Promise.all(runs.map((run) => readFile(run, 'latin1')));
    const ofCalls = texts.findIndex((text) => text.includes('"get_ticket"'));
    const [file = '', lines = []] = [runs[ofCalls], texts[ofCalls]?.split('\n')];
    const types = new Set(lines.filter((line) => line !== '').map((line) => JSON.parse(line).type as string));
    expect([...types]).toEqual(expect.arrayContaining(['mcp.decision', 'mcp.outcome', 'lifecycle', 'checkpoint']));
    const queried = await runSallyport(['audit', 'query', files.auditFile, '--subject', 'engineer', '--json'], {
      cwd: folder,
    });
    expect(queried.stdout).toContain('get_ticket');
    const at = lines.findIndex((line) => line.includes('"get_ticket"'));
    await writeFile(file, lines.toSpliced(at, 1).join('\n'));
    const broken = await verify();
    expect(broken.code).toBe(1);
    expect(broken.stdout).toContain(`${basename(file)}:${at + 1}`);
    expect((await verify('--head', 'nonsense')).code).toBe(2);
  });
});
