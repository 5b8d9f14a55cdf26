// What `dev --save` writes: nothing over what exists, secrets for their owner alone, and a policy that grants what was
// offered and no more, whatever the server calls its tools.

import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { addIgnored, findObstacles, writeNewFiles } from '../../../src/cli/new-files.js';
import { DISK_FILES } from '../../../src/config/files.js';
import { loadGateway, loadPolicies } from '../../../src/config/load.js';
import {
  DEMO_USERS,
  DESK,
  type DemoFiles,
  type DemoUser,
  HEADER_FILES,
  ignoredFiles,
  type SavedSetup,
  savedFiles,
  savedPaths,
  writeDemoFiles,
} from '../../../src/dev/files.js';
import { compilePolicies } from '../../../src/policy/compile/compile.js';
import { decide } from '../../../src/policy/decide.js';
import type { Catalog } from '../../../src/policy/definitions.js';
import type { Principal } from '../../../src/policy/principal.js';
import type { PolicySet } from '../../../src/policy/rules.js';
import type { JsonObject, Target } from '../../../src/protocol/jsonrpc.js';

const INPUT = {
  publicUrl: 'http://127.0.0.1:8080',
  issuer: 'http://127.0.0.1:8090',
  upstreamUrl: 'http://127.0.0.1:8091/mcp',
  ports: { data: 8080, ops: 9464, admin: 9090 },
};

let dir: string;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'sallyport-demo-'));
});
afterEach(() => rm(dir, { recursive: true }));

function load(files: DemoFiles) {
  return loadGateway(files.configFile, { readFile: DISK_FILES.readFile, env: {} });
}

/** Pins play no part here: the demo fetches them when it starts. */
const UNPINNED: Catalog = {
  upstream: DESK.name,
  mode: 'off',
  undeclaredArguments: 'declared',
  isStopped: false,
  statusOf: () => ({ state: 'unpinned', pinned: undefined, observed: undefined }),
  names: () => [],
  instructions: undefined,
};

function principalOf(user: DemoUser): Principal {
  const { subject, groups, scopes } = DEMO_USERS[user];
  const token = { id: 't', audience: 'a', expiresAt: Infinity, binding: 'none' };
  const identity = { issuer: DESK.issuer, issuerUrl: INPUT.issuer, subject, client: 'tour' };
  return { ...identity, groups, scopes, claims: {}, actors: [], token } as unknown as Principal;
}

function verdict(policies: PolicySet, user: DemoUser, target: Target, args: JsonObject | 'unknown'): string {
  const principal = principalOf(user);
  const question = { principal, upstream: DESK.name, target, args, catalog: UNPINNED };
  const decision = decide(policies, question);
  return decision.verdict === 'allow' ? decision.rule : decision.reason;
}

describe('the files of the demo', () => {
  it('[D-09] are a configuration without a fault', async () => {
    const { settings, diagnostics } = load(await writeDemoFiles(dir, INPUT));
    expect(diagnostics).toEqual([]);
    const desk = settings?.upstreams.get(DESK.name);
    expect(desk?.resource).toBe('http://127.0.0.1:8080/desk');
    expect(desk?.url.href).toBe(INPUT.upstreamUrl);
    expect(desk?.pinning.mode).toBe('strict');
    expect(settings?.admin).toBeUndefined();
  });

  it('[D-09] open the admin listener with a token that only the owner can read', async () => {
    const adminToken = 'x'.repeat(40);
    const { settings, diagnostics } = load(await writeDemoFiles(dir, { ...INPUT, adminToken }));
    expect(diagnostics).toEqual([]);
    expect(settings?.admin?.breakGlassToken).toBe(adminToken);
    expect((await stat(join(dir, 'admin-token'))).mode & 0o077).toBe(0);
  });

  it('[D-09] are a policy without a fault, whose rules say what the tour shows', async () => {
    const { policiesDir } = await writeDemoFiles(dir, INPUT);
    const { documents, diagnostics } = loadPolicies(policiesDir, {
      files: DISK_FILES,
      compile: () => ({ policies: true, diagnostics: [] }),
    });
    expect(diagnostics).toEqual([]);
    const context = {
      hash: 'demo',
      upstreams: [{ name: DESK.name, issuers: [DESK.issuer], strict: true }],
      profiles: ['default'],
      issuers: [DESK.issuer],
    };
    const compiled = compilePolicies(documents, context);
    expect(compiled.diagnostics).toEqual([]);
    const ask = (user: DemoUser, name: string, args: JsonObject = {}) =>
      verdict(compiled.policies, user, { kind: 'tool', name }, args);
    expect(ask('engineer', 'get_ticket', { project: 'web', id: 'T-1' })).toMatch(/read-tickets$/);
    expect(ask('engineer', 'get_ticket', { project: 'finance', id: 'T-4' })).toBe('arguments-invalid');
    expect(ask('engineer', 'get_customer', { id: 'C-1' })).toBe('no-matching-allow');
    expect(ask('support', 'get_customer', { id: 'C-1' })).toMatch(/reads-customers$/);
    expect(ask('support', 'delete_ticket', { id: 'T-1' })).toBe('denied-by-rule');
    const page = (uri: string) => verdict(compiled.policies, 'support', { kind: 'resource', uri }, 'unknown');
    expect(page('desk://handbook/returns')).toMatch(/handbook$/);
    expect(page('desk://internal/salaries')).toMatch(/no-matching-allow|resource-forbidden/);
    expect(documents[0]?.rules.map((rule) => [rule.effect, rule.id])).toEqual([
      ['allow', 'engineers-read-tickets'],
      ['allow', 'engineers-export'],
      ['allow', 'support-reads-customers'],
      ['allow', 'support-answers-tickets'],
      ['allow', 'everyone-reads-the-handbook'],
      ['require', 'small-results'],
      ['deny', 'nobody-deletes'],
    ]);
  });
});

const NOTHING = { tools: [], prompts: [], templates: [], patterns: [] };

type Offered = SavedSetup['servers'][number]['offered'];

function setup(offered: Partial<Offered> = {}, header = 'X-Api'): SavedSetup {
  const server = {
    name: 'mcp',
    url: 'http://127.0.0.1:8090/mcp',
    network: 'loopback',
    header: { name: header, value: 'a value', file: HEADER_FILES.stdio },
  } as const;
  return { servers: [{ server, offered: { ...NOTHING, ...offered }, lock: 'lock\n' }], port: 8080 };
}

let folder = '';
let saved = '';

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-saved-'));
  saved = join(folder, 'setup');
  await mkdir(saved);
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const ignored = (of = setup()) => ignoredFiles(of.servers.map(({ server }) => server));

function save(of = setup()): Promise<string | undefined> {
  return writeNewFiles(saved, savedFiles(of), ignored(of));
}

describe('dev --save', () => {
  it('keeps the .gitignore file that is there, and adds what must not be committed', async () => {
    const file = join(saved, '.gitignore');
    writeFileSync(file, '/dist\nstdio-token');
    await addIgnored(saved, ignored());
    expect(readFileSync(file, 'utf8')).toBe('/dist\nstdio-token\n/stdio-token\n');
    expect(await save()).toBeUndefined();
    expect(readFileSync(file, 'utf8')).toBe('/dist\nstdio-token\n/stdio-token\n');
  });

  it('finds a secret that it would overwrite, and a link that leads nowhere', async () => {
    const found = () => findObstacles(saved, savedPaths(['mcp'], Object.values(HEADER_FILES)));
    expect(await found()).toEqual({ links: [], existing: [] });
    const link = join(saved, 'gateway.yaml');
    symlinkSync(join(folder, 'elsewhere'), link);
    expect(await found()).toEqual({ links: [link], existing: [] });
    rmSync(link);
    const token = join(saved, 'stdio-token');
    writeFileSync(token, 'in use');
    expect(await found()).toEqual({ links: [], existing: [token] });
  });

  it.each(['stdio-token', 'gateway.yaml', 'policies/mcp.policy.yaml', 'policies/pins/mcp.lock.yaml'])(
    'writes nothing through a link or over a file that came meanwhile: %s',
    async (name) => {
      const other = join(folder, 'other');
      writeFileSync(other, 'before', { mode: 0o644 });
      await mkdir(join(saved, 'policies', 'pins'), { recursive: true });
      symlinkSync(other, join(saved, name));
      expect(await save()).toMatch(/EEXIST/);
      expect(readFileSync(other, 'utf8')).toBe('before');
    },
  );

  it('leaves the secret to its owner, under any name of a header', async () => {
    expect(await save(setup({}, 'true'))).toBeUndefined();
    expect(statSync(join(saved, 'stdio-token')).mode & 0o777).toBe(0o600);
    expect(parse(readFileSync(join(saved, 'gateway.yaml'), 'utf8')).upstreams.mcp.credentials).toEqual({
      ...{ type: 'static', header: 'true', value: { file: './stdio-token' } },
    });
  });

  it('writes no name into a rule that reads as a pattern', async () => {
    const patterns = ['*', 're:.*', 'x*"]\n      tools: ["*'];
    expect(await save(setup({ tools: ['read'], patterns }))).toBeUndefined();
    const policy = readFileSync(join(saved, 'policies', 'mcp.policy.yaml'), 'utf8');
    const [rule] = parse(policy).rules;
    expect(rule.what).toEqual({ upstreams: ['mcp'], tools: ['read'], resources: ['**', '**#**'] });
  });
});
