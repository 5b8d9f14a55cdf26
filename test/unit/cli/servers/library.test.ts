// The policies of policies/library/servers: of the form that `add` relies on, with tests that hold, and harmless for ordinary
// work. The servers are given as their rows say: what they really offered is not kept here.

import { execFileSync } from 'node:child_process';
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runTest } from '../../../../src/cli/policy/test.js';
import {
  adaptPolicy,
  findFit,
  fitOf,
  type Library,
  READ_BY_RULES,
  readLibrary,
} from '../../../../src/cli/servers/library.js';
import { DISK_FILES } from '../../../../src/config/files.js';
import { mergeFetched } from '../../../../src/pins/approval.js';
import { type Lock, writeLock } from '../../../../src/pins/lock.js';
import type { JsonObject } from '../../../../src/protocol/jsonrpc.js';
import { observedOf, toolOf } from '../../pins/samples.js';
import { terminal } from '../console.js';
import { PORTS, ROOT } from '../policy/ports.js';

const SERVERS = join(ROOT, 'policies/library/servers');
const LIBRARY: Library = readLibrary(DISK_FILES);
const NAMES = [...LIBRARY.keys()].sort();

const TEXT = { type: 'string' };
const SCHEMAS: Readonly<Record<string, JsonObject>> = {
  ...{ path: TEXT, address: TEXT, revision: TEXT, text: TEXT, flag: { type: 'boolean' }, number: { type: 'number' } },
  ...{ paths: { type: 'array', items: TEXT }, command: { type: 'array', items: TEXT }, list: { type: 'array' } },
  files: { type: 'array', items: { type: 'object', properties: { path: TEXT, content: TEXT } } },
  ...{ object: { type: 'object' }, any: {} },
};

function toolsOf(name: string, names = Object.keys(LIBRARY.get(name)?.tools ?? {})): readonly JsonObject[] {
  return names.map((tool) => {
    const parameters = Object.entries(LIBRARY.get(name)?.tools[tool] ?? {});
    const properties = Object.fromEntries(parameters.map(([parameter, kind]) => [parameter, SCHEMAS[kind] ?? {}]));
    return toolOf(tool, { inputSchema: { type: 'object', properties, additionalProperties: true } });
  });
}

function lockOf(upstream: string, tools: readonly JsonObject[], isApproved = true): Lock {
  const approval = isApproved ? { at: '2026-11-29T09:00:00.000Z', by: 'reviewer' } : undefined;
  return mergeFetched({ upstream, lock: undefined, observed: observedOf(tools), approval }).lock;
}

const GATEWAY = `version: 1
publicUrl: https://mcp.example.com
keys: [{file: ./key}]
issuers:
  corp: {issuer: https://idp.example.com, algorithms: [ES256]}
upstreams:
${NAMES.map((name) => `  ${name}: {url: "https://${name}.example.com/mcp", issuers: [corp]}`).join('\n')}
policies: {dir: ./policies}
pins: {dir: ./pins}
`;

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-library-'));
  for (const one of ['policies', 'pins', 'ordinary']) await mkdir(join(folder, one));
  await writeFile(join(folder, 'gateway.yaml'), GATEWAY);
  for (const name of NAMES) {
    await copyFile(join(SERVERS, `${name}.policy.yaml`), join(folder, 'policies', `${name}.policy.yaml`));
    await writeFile(join(folder, 'pins', `${name}.lock.yaml`), writeLock(lockOf(name, toolsOf(name))));
  }
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const policyOf = (name: string): Promise<string> => readFile(join(SERVERS, `${name}.policy.yaml`), 'utf8');
/** The policy with what changes something granted too. */
const granting = (text: string): string =>
  text
    .replace(/^ {2}# (- id:|(?: {2}(?:effect|who|what|tools| {2}-| {2}tools| {4}-)))/gm, '  $1')
    .replace('[maintainers]', '[staff]');

async function test(tests: string, policies?: string) {
  const io = terminal({ cwd: folder });
  const options = { config: 'gateway.yaml', folder: tests, ...(policies === undefined ? {} : { policies }) };
  const code = await runTest({ ...options, ...(policies === undefined ? { minCoverage: 80 } : {}) }, io, PORTS);
  return { code, out: io.out(), err: io.err() };
}

describe('[LIB-01] the policies of the library', () => {
  it('are those that the rows describe', async () => {
    const files = (await readdir(SERVERS)).sort();
    expect(files).toEqual(NAMES.flatMap((name) => [`${name}.policy.test.yaml`, `${name}.policy.yaml`]).sort());
    expect(NAMES).toHaveLength(15);
  });

  it.each(NAMES)(
    'name every tool of the row and no other, and refuse only by what is a path, an address or the like: %s',
    async (name) => {
      const text = await policyOf(name);
      const named = [...text.matchAll(/^ {2}(?: {6}|# {7})- ([\w-]+)$/gm)].map(([, tool]) => tool);
      const { tools = {} } = LIBRARY.get(name) ?? {};
      expect([...new Set(named)].sort()).toEqual(Object.keys(tools).sort());
      const [, ...denials] = text.split(/^ {4}effect: deny$/m);
      const read = denials.flatMap((rule) => [...rule.matchAll(/\bargs\.(\w+)/g)].map(([, argument = '']) => argument));
      const kinds = new Set(
        Object.values(tools).flatMap((parameters) => read.flatMap((argument) => parameters[argument] ?? [])),
      );
      for (const kind of kinds) expect(READ_BY_RULES).toContain(kind);
      expect(denials.length === 0 || kinds.size > 0).toBe(true);
    },
  );

  it('hold their tests', async () => {
    const { code, out, err } = await test(SERVERS);
    expect([code, out.split('\n').filter((line) => line.includes(' failed '))]).toEqual([0, []]);
    expect(err).toContain(' 0 failed');
  });
});

const OPTIONAL = { type: ['string', 'null'] };
const NULLABLE = {
  type: 'object',
  properties: { repo_path: TEXT, branch_type: TEXT, contains: OPTIONAL, not_contains: OPTIONAL },
};

/** Paths of this repository, messages of its commits, and texts that look like attacks and are not. */
function ordinaryWork() {
  const git = (...args: readonly string[]): readonly string[] =>
    execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' })
      .split('\n')
      .filter((line) => line !== '');
  const paths = git('ls-files')
    .filter((_, index) => index % 4 === 0)
    .slice(0, 280);
  const odd = [
    ...['.env.example', '.env.test', 'src/env.ts', 'app/[...slug]/page.tsx', 'a..b/c', '.npmrc', '.aws/task.json'],
    ...[
      'notes/.ssh.md',
      'src/id_rsa.test.ts',
      'keys/public.pem',
      'credentials.md',
      'sh/run.sh',
      'C:\\Users\\me\\notes.txt',
    ],
    ...['.github/workflows/ci.yaml', '.gitignore', 'Makefile', '.kube/README.md', '...', 'netrc', 'x.env.d.ts'],
  ];
  const messages = git('log', '--format=%s', '-100');
  const shell = [
    '`id`',
    '$(cat /etc/passwd)',
    'rm -rf / && ../../etc',
    'curl http://169.254.169.254 | sh',
    'DROP TABLE users; --',
  ];
  return {
    paths: [...paths, ...odd],
    messages,
    texts: messages.slice(0, 50).map((one, index) => `${one}\n${shell[index % shell.length]}`),
  };
}

describe('[LIB-02] the rules that refuse', () => {
  it('refuse no ordinary work: 300 files, 100 commits and 50 issues', async () => {
    const { paths, messages, texts } = ordinaryWork();
    expect([paths.length, messages.length, texts.length]).toEqual([300, 100, 50]);
    const cases: { call: string; args: JsonObject }[] = [
      ...paths.map((path, index) => ({
        call: 'filesystem/write_file',
        args: { path, content: texts[index % 50] ?? '' },
      })),
      ...paths.slice(-30).map((path) => ({
        call: 'github/create_or_update_file',
        args: { owner: 'o', repo: 'r', path, content: '../.env', message: '`id`', branch: 'x' },
      })),
      ...messages.map((message) => ({ call: 'git/git_commit', args: { repo_path: '/srv/work', message } })),
      ...texts.map((body) => ({
        call: 'github/issue_write',
        args: { method: 'create', owner: 'o', repo: 'r', title: 'x', body },
      })),
      { call: 'git/git_branch', args: { repo_path: '.', branch_type: 'all', contains: null, not_contains: null } },
    ];
    const texted = cases.map(
      ({ call, args }, index) => `  - name: "${index}"
    as: member
    call: ${call}
    args: ${JSON.stringify(args)}
    expect: allow
`,
    );
    const granted = join(folder, 'granted');
    await mkdir(granted);
    for (const name of NAMES) await writeFile(join(granted, `${name}.policy.yaml`), granting(await policyOf(name)));
    const head = 'version: 1\nprincipals:\n  member: {issuer: corp, groups: [staff]}\ncases:\n';
    await writeFile(join(folder, 'ordinary/a.policy.test.yaml'), `${head}${texted.join('')}`);
    // A null where the schema has none is refused by the schema: git's own has one.
    const lock = lockOf(
      'git',
      toolsOf('git').map((tool) =>
        tool['name'] === 'git_branch' ? toolOf('git_branch', { inputSchema: NULLABLE }) : tool,
      ),
    );
    await writeFile(join(folder, 'pins/git.lock.yaml'), writeLock(lock));
    const { code, out, err } = await test('ordinary', 'granted');
    expect(
      out
        .split('\n')
        .filter((line) => line.includes(' failed '))
        .slice(0, 5),
    ).toEqual([]);
    expect([code, err]).toEqual([0, expect.stringContaining(`${cases.length} cases, 0 failed`)]);
  });
});

const NOTHING = (): boolean => false;

describe('[LIB-03] what add proposes', () => {
  it.each(NAMES)('is the policy of the server that offers its tools: %s', (name) => {
    expect(findFit(LIBRARY, lockOf('a', toolsOf(name), false), 'a', NOTHING)?.name).toBe(name);
  });

  it('is nothing for a server with less than 80 % of the tools, or with others of the same names', () => {
    const names = Object.keys(LIBRARY.get('filesystem')?.tools ?? {});
    const propose = (tools: readonly JsonObject[]) =>
      findFit(LIBRARY, lockOf('filesystem', tools, false), 'filesystem', NOTHING)?.name;
    expect(propose(toolsOf('filesystem', names.slice(0, 12)))).toBe('filesystem');
    expect(propose(toolsOf('filesystem', names.slice(0, 11)))).toBeUndefined();
    expect(propose(names.map((name) => toolOf(name)))).toBeUndefined();
  });

  it('is nothing for a server that has one common name among others', () => {
    const tools = toolsOf('postgres');
    expect(findFit(LIBRARY, lockOf('a', tools, false), 'postgres', NOTHING)?.name).toBe('postgres');
    expect(findFit(LIBRARY, lockOf('a', [...tools, toolOf('wipe')], false), 'postgres', NOTHING)).toBeUndefined();
  });

  it('leaves out what is not offered, what has changed and what the scan found, and says why', () => {
    const row = LIBRARY.get('memory');
    if (row === undefined) throw new Error('no row');
    const schema = { type: 'object', properties: { names: { type: 'string' } } };
    const needy = { type: 'object', properties: { query: TEXT, key: TEXT }, required: ['query', 'key'] };
    const tools = [
      ...toolsOf('memory', ['read_graph', 'create_entities']),
      ...[toolOf('open_nodes', { inputSchema: schema }), toolOf('search_nodes', { inputSchema: needy })],
    ];
    const fit = fitOf('memory', row, lockOf('a', tools, false), (tool) => tool === 'create_entities');
    expect([...fit.fitting]).toEqual(['read_graph']);
    expect(Object.fromEntries(fit.leftOut)).toMatchObject({
      open_nodes: 'its "names" is not what it was',
      search_nodes: 'it requires "key", which was not there',
      create_entities: 'the scan of definitions found something in it',
      add_observations: 'it is not offered',
    });
  });

  it('is the text of the library with the names of the gateway, without rules that name nothing any more', async () => {
    const row = LIBRARY.get('filesystem');
    if (row === undefined) throw new Error('no row');
    const fit = fitOf(
      'filesystem',
      row,
      lockOf('a', toolsOf('filesystem', ['read_file', 'list_directory']), false),
      NOTHING,
    );
    const { text, granted } = adaptPolicy(await policyOf('filesystem'), fit, {
      name: 'docs',
      issuers: '[idp]',
      groups: '["a b"]',
    });
    expect(granted).toEqual(['read_file', 'list_directory']);
    expect(text).toContain('policy: docs\ndefaults: {issuers: [idp], upstreams: [docs]}\nrules:\n  - id: docs-read\n');
    expect(text).toContain('    who: {groups: ["a b"]}\n');
    expect(text).not.toContain('write_file');
    expect(text).not.toContain('docs-write');
    expect(text).toContain('  - id: docs-no-climbing\n');
  });
});
