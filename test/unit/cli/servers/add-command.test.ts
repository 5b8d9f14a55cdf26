// `add`, `remove` and `list` on a folder, in process: everything but the server is real.

import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Observation } from '../../../../src/cli/pin/lock-files.js';
import { buildProgram } from '../../../../src/cli/program.js';
import type { AddCommandPorts } from '../../../../src/cli/servers/add-by-kind.js';
import { addCommand } from '../../../../src/cli/servers/add-command.js';
import { initCommand } from '../../../../src/cli/servers/init-command.js';
import { listCommand } from '../../../../src/cli/servers/list-command.js';
import { removeCommand } from '../../../../src/cli/servers/remove-command.js';
import { runValidate } from '../../../../src/cli/validate.js';
import { DISK_FILES } from '../../../../src/config/files.js';
import { compilePolicies } from '../../../../src/policy/compile/compile.js';
import { observedOf, toolOf } from '../../pins/samples.js';
import { terminal } from '../console.js';
import { PORTS as POLICY_PORTS } from '../policy/ports.js';

const READS = { annotations: { readOnlyHint: true } };
const OFFERED = [toolOf('get_page', READS), toolOf('list_pages', READS), toolOf('drop_page')];
const VALIDATE = { files: DISK_FILES, compilePolicies, loadLocks: POLICY_PORTS.loadLocks };

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-add-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

type Given = {
  readonly offers?: Observation;
  readonly observe?: () => Promise<Observation>;
  readonly answers?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Whether the adapter of stdio servers does. */
  readonly isListening?: boolean;
  /** What the admin API answers. */
  readonly controls?: readonly object[];
};

async function run(argv: readonly string[], given: Given = {}) {
  const io = terminal({ cwd: folder, env: given.env ?? {} });
  const asked: string[] = [];
  const answers = [...(given.answers ?? [])];
  const ports: AddCommandPorts = {
    files: DISK_FILES,
    observe: given.observe ?? (async () => given.offers ?? { kind: 'observed', observed: observedOf(OFFERED) }),
    networkOf: async (url) => (url.includes('127.0.0.1') ? 'loopback' : 'public'),
    validate: (config) => runValidate({ config }, io, VALIDATE),
    gitIdentity: () => 'someone',
    signalGroup: () => false,
    killMarked: async () => undefined,
    questions:
      given.answers &&
      (() => ({
        async ask(question) {
          asked.push(question);
          return answers.shift();
        },
        close: () => undefined,
      })),
  };
  const ask = async () => ({ status: 200, text: JSON.stringify({ controls: given.controls ?? [] }) });
  const commands = [
    initCommand(io, { ...ports, checkIssuer: async () => ({ isKeycloak: false }) }),
    addCommand(io, ports),
    removeCommand(io, VALIDATE),
    listCommand(io, { ...POLICY_PORTS, files: DISK_FILES, ask, isListening: async () => given.isListening === true }),
  ];
  const code = await buildProgram(io, commands).run(argv);
  return { code, out: io.out(), err: io.err(), asked };
}

const INIT = [
  ...['init', '--name', 'first', '--url', 'https://first.example.com/mcp', '--group', 'eng'],
  ...['--issuer', 'https://idp.example.com', '--offline'],
];
const ADD = ['add', 'wiki', '--url', 'https://wiki.example.com/mcp', '--group', 'eng', '--group', 'docs'];

const read = (path: string): Promise<string> => readFile(join(folder, path), 'utf8');
/** Every file of the folder with its text and its mode. */
async function snapshot(): Promise<Readonly<Record<string, string>>> {
  const paths = (await readdir(folder, { recursive: true })).sort();
  const entries = paths.map(async (path) => {
    const { mode } = await stat(join(folder, path));
    return [path, `${mode} ${await read(path).catch(() => 'folder')}`] as const;
  });
  return Object.fromEntries(await Promise.all(entries));
}

describe('[C-27] add', () => {
  it('adds the first server of a gateway that has none, which validate says', async () => {
    const empty = await run(['init', '--no-server', '--issuer', 'https://idp.example.com', '--yes']);
    expect([empty.code, empty.out]).toEqual([0, expect.stringContaining('warning there is no server yet')]);
    const { code, err } = await run(ADD);
    expect([code, err]).toEqual([0, expect.stringContaining('0 errors, 0 warnings')]);
  });

  it('adds a server like that of init, and remove takes exactly that away', async () => {
    await run(INIT);
    const config = (await read('sallyport.yaml')).replace('upstreams:\n', 'upstreams:   # of the team\n');
    await writeFile(join(folder, 'sallyport.yaml'), config);
    await chmod(join(folder, 'sallyport.yaml'), 0o640);
    const before = await snapshot();
    const { code, out, err } = await run([...ADD, '--scope', 'wiki:read', '--content', 'text']);
    expect([code, err]).toEqual([0, expect.stringContaining('0 errors')]);
    const stanza = `  wiki:
    url: "https://wiki.example.com/mcp"
    network: public
    issuers: [idp]
    # Clients request these scopes at the issuer.
    scopesSupported: ["wiki:read"]
    content: {kind: text}
`;
    expect(await read('sallyport.yaml')).toBe(config.replace('\npolicies:', `${stanza}\npolicies:`));
    expect(await read('policies/wiki.policy.yaml')).toContain('groups: ["eng", "docs"]');
    expect(out).toContain('pin approve -c sallyport.yaml wiki --all');
    expect(out).toContain('serves it at http://127.0.0.1:8080/wiki within two seconds');
    expect(out.split('\nNext:')[1]?.trim().split('\n').length).toBeLessThan(6);

    const dry = await run(['remove', 'wiki', '--dry-run']);
    expect([dry.code, dry.out]).toEqual([0, expect.stringContaining('would remove wiki from sallyport.yaml\n')]);
    const removed = await run(['remove', 'wiki']);
    expect([removed.code, removed.out]).toEqual([
      0,
      'removed wiki from sallyport.yaml\nremoved policies/wiki.policy.yaml, policies/wiki.policy.test.yaml, policies/pins/wiki.lock.yaml\n',
    ]);
    const { 'policies/pins': _, ...left } = await snapshot();
    expect(left).toEqual(before);
  });

  it('asks for what is missing, and refuses what is wrong without writing anything', async () => {
    await run(INIT);
    const asked = await run(['add', 'wiki', '--offline'], { answers: ['https://wiki.example.com/mcp', 'eng, docs'] });
    expect([asked.code, asked.asked.length]).toEqual([0, 2]);
    expect(await read('policies/wiki.policy.yaml')).toContain('groups: ["eng", "docs"]');
    const before = await snapshot();
    for (const [argv, message, given = {}] of [
      [['add', 'wiki', '--url', 'https://a.example'], 'has a server named "wiki" already'],
      [['add', 'Wiki Pages!', '--url', 'https://a.example'], 'how about wiki-pages?'],
      [['add', 'other'], 'missing: --url, --group;'],
      [['add', 'other', '--url', 'http://a.example', '--group', 'x'], 'plain http'],
      [['add', 'other', '--url', 'https://a.example', '--group', 'x', '--issuer', 'idq'], 'no issuer "idq", but: idp'],
      [['add', 'other', '--url', 'https://a.example', '--', 'npx'], 'not both'],
      [['add', 'other', '--group', 'x', '--env', 'NO_SUCH', '--', 'npx'], 'NO_SUCH: the variable is not set'],
      [['add', 'other', '--url', 'https://a.example', '--group', 'x', '--endpoint', 'all'], 'no map "endpoints.all'],
      [[...ADD.with(1, 'other'), '--header', 'X-Key'], "--header takes 'Name: value'"],
      [ADD.with(1, 'other'), 'other could not be listed: timeout', { offers: { kind: 'unreachable', why: 'timeout' } }],
    ] as const) {
      const { code, err } = await run(argv, given);
      expect([code, err]).toEqual([2, expect.stringContaining(message)]);
    }
    expect(await snapshot()).toEqual(before);
  });

  it('takes back what it had written where it cannot write the rest', async () => {
    await run(INIT);
    // Another process is writing the gateway file.
    await writeFile(join(folder, 'sallyport.yaml.new'), '');
    const before = await snapshot();
    const { code, err } = await run([...ADD, '--header', 'X-Key: value of nobody']);
    expect([code, err]).toEqual([2, expect.stringContaining('sallyport.yaml.new exists: another process is writing')]);
    expect(await snapshot()).toEqual(before);
    await rm(join(folder, 'sallyport.yaml.new'));
    await symlink(join(folder, 'elsewhere'), join(folder, 'policies/wiki.policy.yaml'));
    expect((await run(ADD)).err).toContain('policies/wiki.policy.yaml');
  });

  it('keeps a header in a file, or refers to where it is', async () => {
    await run(INIT);
    await run([...ADD, '--header', 'X-Key: value of nobody', '--offline']);
    expect(await read('secrets/wiki-header')).toBe('value of nobody\n');
    expect(await read('sallyport.yaml')).toContain('header: "X-Key", value: {file: ./secrets/wiki-header}}');
    await run([...ADD.with(1, 'docs'), '--header', 'X-Key: {env: DOCS_KEY}', '--offline']);
    expect(await read('sallyport.yaml')).toContain('header: "X-Key", value: {env: DOCS_KEY}}');
    const removed = await run(['remove', 'wiki']);
    expect(removed.out).toContain('left secrets/wiki-header: it holds a secret\n');
  });

  it('adds it to an endpoint of several servers', async () => {
    await run(INIT);
    const endpoint = 'endpoints:\n  all:\n    issuers: [idp]\n    upstreams:\n      first: {}\n';
    await writeFile(join(folder, 'sallyport.yaml'), `${await read('sallyport.yaml')}${endpoint}`);
    const { code } = await run([...ADD, '--endpoint', 'all', '--prefix', 'w_', '--offline']);
    expect(code).toBe(0);
    expect(await read('sallyport.yaml')).toContain(`${endpoint}      wiki: {prefix: w_}\n`);
    const before = await snapshot();
    const removed = await run(['remove', 'wiki']);
    expect([removed.code, removed.err]).toEqual([
      1,
      expect.stringContaining('nothing was removed: wiki is still needed'),
    ]);
    expect(removed.err).toMatch(/still named by:\n {2}sallyport\.yaml:\d+\n/);
    expect(await snapshot()).toEqual(before);
  });

  it('writes a stdio server into stdio.yaml, with its variables in files', async () => {
    await run(INIT);
    const env = { API_KEY: 'key of nobody' };
    const command = ['--', 'npx', '-y', 'server@1.2.3', '/srv/my files'];
    const { code, out } = await run(
      ['add', 'files', '--group', 'eng', '--env', 'API_KEY', '--cwd', '/srv', '--offline', ...command],
      { env },
    );
    expect(code).toBe(0);
    const first = `  files:
    command: ["npx", "-y", "server@1.2.3", "/srv/my files"]
    env: {API_KEY: {file: "secrets/files.API_KEY"}}
    cwd: "/srv"
`;
    expect(await read('stdio.yaml')).toContain(`servers:\n${first}`);
    expect(await read('secrets/files.API_KEY')).toBe('key of nobody\n');
    expect((await stat(join(folder, 'secrets/files.API_KEY'))).mode & 0o777).toBe(0o600);
    expect(await read('secrets/stdio.token')).toMatch(/^Bearer [\w-]{43}\n$/);
    expect(await read('sallyport.yaml')).toContain(`  files:
    url: "http://127.0.0.1:8090/files"
    network: loopback
    issuers: [idp]
    # The server gets this credential; the caller's token is never forwarded.
    credentials: {type: static, header: "Authorization", value: {file: ./secrets/stdio.token}}
`);
    expect(out).toContain('sallyport stdio --config stdio.yaml');
    const token = await read('secrets/stdio.token');
    await run(['add', 'git', '--group', 'eng', '--offline', '--', 'uvx', 'mcp-server-git']);
    expect(await read('stdio.yaml')).toContain(`${first}  git:\n    command: ["uvx", "mcp-server-git"]\n`);
    expect(await read('secrets/stdio.token')).toBe(token);
    const address = 'postgresql://reader:word@127.0.0.1/db';
    const database = await run(['add', 'db', '--group', 'eng', '--offline', '--', 'server-db', address]);
    expect(database.err).toContain('warning: db: argument 1 seems to hold a secret; it is written to stdio.yaml');
    await run(['remove', 'db']);
    const hint = 'Nothing listens on 127.0.0.1:8090, the adapter of files, git.\nStart it: ';
    const listed = await run(['list']);
    expect(listed.out).toContain(hint);
    expect(listed.out).toMatch(/ stdio --config stdio\.yaml$/m);
    expect((await run(['list'], { isListening: true })).out).not.toContain('Start it');
    const removed = await run(['remove', 'files']);
    expect(removed.out).toContain('removed files from stdio.yaml and sallyport.yaml\n');
    expect(removed.out).toContain('left secrets/files.API_KEY: it holds a secret\n');
    expect((await run(['remove', 'git'])).out).not.toContain('stdio.token');
    expect(await read('stdio.yaml')).not.toContain('files:');
  });
});

describe('[STD-09] add with a package', () => {
  const stub = async (program: string, script: string) => {
    await mkdir(join(folder, 'bin'), { recursive: true });
    await writeFile(join(folder, 'bin', program), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  };
  const env = () => ({ PATH: `${join(folder, 'bin')}:/usr/bin:/bin` });
  const integrity = `sha512-${'A'.repeat(86)}==`;
  const add = (...more: readonly string[]) =>
    run(['add', 'memory', '--group', 'eng', ...more, '--', 'npx', '-y', '@scope/memory'], { env: env() });

  it('writes its exact version and integrity, and says where it cannot, writing nothing', async () => {
    await run(INIT);
    await stub('npm', 'echo "no network" >&2; exit 1');
    const before = await snapshot();
    const failed = await add();
    expect([failed.code, failed.err]).toEqual([
      2,
      expect.stringContaining('npm does not tell the version of @scope/memory: no network'),
    ]);
    expect(failed.err).toContain('name an exact version in the command, or write it as it is with --offline');
    expect(await snapshot()).toEqual(before);
    await stub('npm', `echo '${JSON.stringify({ version: '1.2.3', 'dist.integrity': integrity })}'`);
    const { code, out, err } = await add();
    expect([code, err]).toEqual([0, expect.stringContaining('0 errors')]);
    expect(out).toContain('starting   npx -y @scope/memory@1.2.3\n');
    const written = `    command: ["npx", "-y", "@scope/memory@1.2.3"]\n    integrity: "${integrity}"\n`;
    expect(await read('stdio.yaml')).toContain(written);
  });

  it('is warned of by validate without a version, at its place, and refused by --strict', async () => {
    await run(INIT);
    expect((await add('--offline')).out).toMatch(/stdio\.yaml:\d+:\d+ warning "@scope\/memory" names no exact version/);
    const io = terminal({ cwd: folder });
    expect(await runValidate({ config: 'sallyport.yaml', strict: true, secrets: false }, io, VALIDATE)).toBe(1);
    await writeFile(join(folder, 'stdio.yaml'), (await read('stdio.yaml')).replace('servers:', 'server:'));
    const mistaken = terminal({ cwd: folder });
    expect(await runValidate({ config: 'sallyport.yaml', secrets: false }, mistaken, VALIDATE)).toBe(1);
    expect(mistaken.out()).toContain('did you mean "servers"?');
  });
});

describe('[C-27] remove', () => {
  it('keeps what was edited or decided, and names what would break without the server', async () => {
    await run(INIT);
    await run(ADD);
    expect((await run(['remove', 'wikis'])).err).toContain('did you mean "wiki"?');
    const policy = join(folder, 'policies/wiki.policy.yaml');
    await writeFile(policy, `${await read('policies/wiki.policy.yaml')}# edited\n`);
    const refused = await run(['remove', 'wiki']);
    expect([refused.code, refused.err]).toEqual([
      1,
      expect.stringContaining('policies/wiki.policy.yaml would be left: it was edited; --edited'),
    ]);
    const lock = 'policies/pins/wiki.lock.yaml';
    const by = 'status: blocked\n    block:\n      at: "2026-11-20T09:00:00.000Z"\n      by: "reviewer"';
    await writeFile(join(folder, lock), (await read(lock)).replace('status: pending', by));
    const { code, out } = await run(['remove', 'wiki', '--edited']);
    expect([code, out]).toEqual([0, expect.stringContaining(`${lock}\n`)]);
    expect((await run(['remove', 'first'])).err).toContain('first is the only server');
  });
});

describe('[C-27] list', () => {
  it('counts what each group sees, and says where the state is from', async () => {
    await run(INIT);
    await run(ADD);
    const lock = 'policies/pins/wiki.lock.yaml';
    const approved = (await read(lock)).replaceAll(
      'status: pending',
      'status: approved\n    approval:\n      at: "2026-11-20T09:00:00.000Z"\n      by: "reviewer"',
    );
    await writeFile(join(folder, lock), approved);
    const policy = await read('policies/wiki.policy.yaml');
    const own =
      '  - id: docs\n    effect: allow\n    who: {issuers: [idp], groups: [docs]}\n    what: {upstreams: [wiki], tools: [drop_page]}\n';
    await writeFile(join(folder, 'policies/wiki.policy.yaml'), `${policy}${own}`);
    const plain = await run(['list', '-c', 'sallyport.yaml']);
    expect(plain.out.split('\n').slice(0, 5)).toEqual([
      'SERVER  STATE      TOOLS  APPROVED  PENDING  BLOCKED  DRIFT',
      'first   configured 0      0         0        0        ?',
      '  who: nobody sees a tool',
      'wiki    configured 3      3         0        0        ?',
      '  who: docs 3, eng 2',
    ]);
    expect(plain.out).toContain('a running gateway was not asked');
    for (const one of plain.out.split('\n')) expect(one.length).toBeLessThanOrEqual(80);
    const controls = [
      { control: 'pins:wiki', state: 'degraded', reason: 'not as pinned: tool get_page' },
      { control: 'upstream-connection:wiki', state: 'armed', reason: '' },
      { control: 'pins:first', state: 'degraded', reason: 'the upstream has not been listed yet' },
    ];
    const given = { controls, env: { SALLYPORT_ADMIN_TOKEN: 'token' } };
    const live = await run(['list', '-c', 'sallyport.yaml', '--url', 'http://127.0.0.1:1', '--json'], given);
    const { state, servers } = JSON.parse(live.out);
    expect(state).toBe('the running gateway');
    expect(servers).toMatchObject([
      { name: 'first', state: 'away', drift: false },
      { name: 'wiki', state: 'degraded', drift: true, tools: 3, approved: 3, pending: 0 },
    ]);
    expect(servers[1].who).toContainEqual({ issuer: 'idp', group: 'eng', tools: 2 });
  });
});

describe('[C-29] add --from', () => {
  const FILE = {
    mcpServers: {
      'My Wiki': { url: 'https://wiki.example.com/mcp', headers: { 'X-Key': 'value of nobody' } },
      files: {
        command: 'npx',
        args: ['-y', 'server@1.2.3', '/srv\u200b'],
        env: { MODE: 'fast', REGION: '${env:NO_SUCH}' },
      },
      odd: { command: 7 },
    },
  };
  const source = async (): Promise<void> => writeFile(join(folder, 'mcp.json'), JSON.stringify(FILE));

  it('lists what it found and does nothing before a yes', async () => {
    await run(INIT);
    await source();
    const before = await snapshot();
    const observed: string[] = [];
    const offers = async () => {
      observed.push('asked');
      return { kind: 'unreachable', why: 'never' } as const;
    };
    const { code, out } = await run(['add', '--from', 'mcp.json'], { observe: offers });
    expect(code).toBe(0);
    expect(out).toContain('mcp.json has 3 servers. Nothing is started and nobody is contacted before a yes.\n');
    expect(out).toContain('inside the working folder');
    expect(out).toContain(
      'My Wiki: https://wiki.example.com/mcp\n  it is called my-wiki here\n  header X-Key goes to secrets/my-wiki-header\n',
    );
    expect(out).toContain("files: npx -y server@1.2.3 '/srv\\u{200b}'\n");
    expect(out).toContain('odd: not possible: its command is no text\n');
    expect(out).not.toContain('value of nobody');
    const no = await run(['add', '--from', 'mcp.json'], { answers: ['', 'no'], observe: offers });
    expect([no.code, no.asked]).toEqual([
      0,
      [
        'Add my-wiki? It is asked for its definitions. [y/N] ',
        'Add files? It is started once for its definitions. [y/N] ',
      ],
    ]);
    const mixed = await run(['add', '--from', 'mcp.json', '--url', 'https://a.example'], { observe: offers });
    expect([mixed.code, mixed.err]).toEqual([2, expect.stringContaining('error: --url is for one server')]);
    const unknown = await run(['add', '--from', 'mcp.json', '--group', 'eng', '--yes', 'my-wiki', 'odd'], {
      observe: offers,
    });
    expect([unknown.code, unknown.err]).toEqual([
      2,
      expect.stringContaining('odd cannot be added: its command is no text; nothing was added'),
    ]);
    expect([observed, await snapshot()]).toEqual([[], before]);
  });

  it('adds those that are named, with secrets in files, and leaves the source alone', async () => {
    await run(INIT);
    await source();
    const given = await readFile(join(folder, 'mcp.json'), 'utf8');
    const { out } = await run(['add', '--from', 'mcp.json', '--group', 'eng', '--yes', 'my-wiki', 'files']);
    // Not started: a variable that it needs is not set.
    expect(out).toContain('not asked  because NO_SUCH is not set\n');
    expect(await read('secrets/my-wiki-header')).toBe('value of nobody\n');
    expect(await read('secrets/files.MODE')).toBe('fast\n');
    for (const path of ['secrets/my-wiki-header', 'secrets/files.MODE'])
      expect((await stat(join(folder, path))).mode & 0o777).toBe(0o600);
    expect(await read('stdio.yaml')).toContain('env: {MODE: {file: "secrets/files.MODE"}, REGION: {env: NO_SUCH}}\n');
    expect(await read('policies/my-wiki.policy.yaml')).toContain('- "get_page"');
    expect(await read('mcp.json')).toBe(given);
    expect(out.trim().split('\n').at(-1)).toMatch(/^mcp\.json was not changed and still holds the secrets/);
    const again = await run(['add', '--from', 'mcp.json']);
    expect(again.out).toContain(
      'My Wiki: not possible: as my-wiki: the gateway file has a server of this name already',
    );
  });

  it('writes no secret over a file or through a link', async () => {
    await run(INIT);
    await source();
    await writeFile(join(folder, 'secrets/files.MODE'), 'mine');
    await symlink(join(folder, 'elsewhere'), join(folder, 'secrets/my-wiki-header'));
    const { code, err } = await run(['add', '--from', 'mcp.json', '--group', 'eng', '--yes', 'my-wiki', 'files']);
    expect(code).toBe(1);
    expect(err).toContain('this is one: secrets/my-wiki-header\nerror: my-wiki was not added\n');
    expect(err).toContain('this exists: secrets/files.MODE\nerror: files was not added\n');
    expect(await read('secrets/files.MODE')).toBe('mine');
  });
});
