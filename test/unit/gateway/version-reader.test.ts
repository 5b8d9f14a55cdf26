// Versions are read on a thread of their own where their files are large: with the same result as in place, and with
// none if the thread ends before.

import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { DISK_FILES } from '../../../src/config/files.js';
import type { Version } from '../../../src/gateway/config-version.js';
import { createVersionReader } from '../../../src/gateway/version-reader.js';
import { createDefinitionCompiler } from '../../../src/pins/catalog.js';
import { type Lock, writeLock } from '../../../src/pins/lock.js';
import { compileSchema } from '../../../src/policy/json-schema/validator.js';
import { mirroredParameters } from '../../../src/protocol/headers.js';
import { buildProgram, DYING_THREAD } from '../../support/processes.js';
import { lockOf, pinOf, toolOf } from '../pins/samples.js';

const BUILT = pathToFileURL(join(import.meta.dirname, '../../../dist/gateway/version-thread.js'));
const ABSENT = new URL('data:text/javascript,throw new Error()');
const UNUSABLE = toolOf('broken', { inputSchema: { type: 'object', properties: 7 } });

/** A compiler that says of which tools it has compiled the schemas. */
function compilerOf() {
  const compiled: unknown[] = [];
  const compile = createDefinitionCompiler({
    compileSchema(schema, options) {
      compiled.push(typeof schema === 'object' ? schema['title'] : schema);
      return compileSchema(schema, options);
    },
    mirroredParameters,
  });
  return { compile, compiled };
}

function titled(name: string): ReturnType<typeof toolOf> {
  return toolOf(name, { inputSchema: { type: 'object', title: name, description: 'long '.repeat(1_000) } });
}

function lockFor(upstream: string, ...names: string[]): Lock {
  return { ...lockOf([...names.map((name) => pinOf(titled(name))), pinOf(UNUSABLE)]), upstream };
}

const POLICY = `version: 1
policy: a
rules:
  - id: all
    effect: allow
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["*", "nothing_*"]}
`;

let folder: string;
let file: string;

async function write(name: string, text: string): Promise<void> {
  await writeFile(join(folder, name), text);
}

async function writeLocks(...locks: readonly Lock[]): Promise<void> {
  for (const lock of locks) await write(`policies/pins/${lock.upstream}.lock.yaml`, writeLock(lock));
}

beforeAll(async () => {
  await buildProgram();
  folder = await mkdtemp(join(tmpdir(), 'version-reader-'));
  file = join(folder, 'gateway.yaml');
  await mkdir(join(folder, 'policies/pins'), { recursive: true });
  await write('key', Buffer.alloc(32, 7).toString('base64'));
  await write(
    'gateway.yaml',
    `version: 1
publicUrl: http://127.0.0.1:8080
keys: [{file: ./key}]
issuers: {own: {issuer: "https://id.example.com", algorithms: [ES256]}}
upstreams:
  one: {url: "https://one.example.com/mcp", path: /one, issuers: [own]}
  two: {url: "https://two.example.com/mcp", path: /two, issuers: [own], formats: assertion}
policies: {dir: ./policies}
audit: {sinks: [{type: stdout, durability: handed-over}]}
`,
  );
  await write('policies/a.policy.yaml', POLICY);
}, 120_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

const NAMES = Array.from({ length: 20 }, (_, index) => `tool_${index}`);

describe('[H-08] a reload of large files', () => {
  it('is read on another thread as in place, and a schema is compiled at its first use', async () => {
    await writeLocks(lockFor('one', ...NAMES), lockFor('two', 'other'));
    const { compile, compiled } = compilerOf();
    const reader = createVersionReader(file, { env: {}, compile, entry: BUILT });
    const { version: first, diagnostics } = await reader.read();
    if (first === undefined) throw new Error(JSON.stringify(diagnostics));
    const atStart = compiled.length;
    // Each is checked once, although policies and warnings read it too.
    expect(compiled.filter((title) => title !== undefined).sort()).toEqual([...NAMES, 'other'].sort());
    await writeLocks(lockFor('one', ...NAMES, 'new'));
    const beside = await reader.read(first);
    await reader.close();
    expect(compiled).toHaveLength(atStart);
    const here = await createVersionReader(file, { env: {}, compile: compilerOf().compile }).read(undefined);
    const { policies, compiled: rules, ...read } = beside.version ?? {};
    expect(read).toEqual({ ...here.version, policies: undefined, compiled: undefined });
    expect(rules?.map(({ text }) => text)).toEqual(here.version?.compiled.map(({ text }) => text));
    expect(policies?.hash).toBe(first.policies.hash);
    expect(beside.diagnostics.map(({ message }) => message).join()).toContain('"nothing_*" matches no tool');
    // What did not change is not sent again.
    expect(beside.version?.locks.get('two')).toBe(first.locks.get('two'));
    const pinned = (name: string) => {
      const version = beside.version?.locks.get('one')?.pins.tool.get(name);
      return version && compile('tool', name, version);
    };
    expect(pinned('broken')).toBeUndefined();
    expect([pinned('new')?.input?.check({}), compiled.at(-1)]).toEqual([[], 'new']);
  }, 60_000);

  it.each([
    ['is rejected if the thread ends before it is done', DYING_THREAD, 1_000, 'the thread that read the files ended'],
    ['is read in place if no thread can be started', ABSENT, 1_000, undefined],
    ['is read in place if it is small', DYING_THREAD, 1, undefined],
  ])('%s', async (_what, entry, times, message) => {
    await writeLocks(lockFor('one', ...NAMES.slice(0, 2)), lockFor('two', 'other'));
    const reader = createVersionReader(file, { env: {}, compile: compilerOf().compile, entry });
    const { version, diagnostics } = await reader.read();
    if (version === undefined) throw new Error(JSON.stringify(diagnostics));
    await write(
      'policies/b.policy.yaml',
      `${'# long\n'.repeat(times * 20)}${POLICY.replace('policy: a', 'policy: b')}`,
    );
    const again = await reader.read(version);
    await reader.close();
    await rm(join(folder, 'policies/b.policy.yaml'));
    const errors = again.diagnostics.filter(({ severity }) => severity === 'error');
    if (message === undefined) expect([again.version?.hashes.pins, errors]).toEqual([version.hashes.pins, []]);
    else expect([again.version, errors[0]?.message]).toEqual([undefined, expect.stringContaining(message)]);
  });
});

describe('[H-08] a reload of policies beside large files', () => {
  const DENY = POLICY.replace('policy: a', 'policy: deny').replace('effect: allow', 'effect: deny');
  const compile = compilerOf().compile;

  /** As while Git replaces a file: it is listed, and gone when it is read, and there again afterwards. */
  function vanishOnce(path: string): void {
    const { readFile: read } = DISK_FILES;
    let isGone = true;
    vi.spyOn(DISK_FILES, 'readFile').mockImplementation((one) => {
      if (one !== path || !isGone) return read(one);
      isGone = false;
      throw Object.assign(new Error('gone'), { code: 'ENOENT' });
    });
  }

  /** A reader whose thread cannot read, so that what it returns was read in place. */
  async function started(entry = DYING_THREAD) {
    await rm(join(folder, 'policies/deny.policy.yaml'), { force: true });
    await write('policies/a.policy.yaml', POLICY);
    await write('key', Buffer.alloc(32, 7).toString('base64'));
    await writeLocks(lockFor('one', ...NAMES), lockFor('two', 'other'));
    const reader = createVersionReader(file, { env: {}, compile, entry });
    const { version, diagnostics } = await reader.read();
    if (version === undefined) throw new Error(JSON.stringify(diagnostics));
    return { reader, version };
  }

  async function freshly() {
    const { version, diagnostics } = await createVersionReader(file, { env: {}, compile }).read();
    return { version: comparable(version), diagnostics };
  }

  function comparable(version: Version | undefined) {
    return { ...version, policies: undefined, compiled: version?.compiled.map(({ text }) => text) };
  }

  it('reads no more than the policies that changed, and comes to what reading everything does', async () => {
    const { reader, version: first } = await started();
    await write('policies/deny.policy.yaml', DENY);
    const added = await reader.read(first);
    const { version: fresh, diagnostics } = await freshly();
    expect(comparable(added.version)).toEqual(fresh);
    // The same warning of the document that was kept, at its place, and of the one that was added.
    const messages = diagnostics.filter(({ rule }) => rule === 'policy');
    expect(messages.map(({ file: at }) => at).join()).toMatch(/a\.policy.*deny\.policy/);
    expect(added.diagnostics).toEqual(expect.arrayContaining(messages));
    expect(added.version?.settings).toBe(first.settings);
    if (added.version === undefined) throw new Error('not read');
    // What several documents say together is found again.
    await write('policies/deny.policy.yaml', DENY.replace('policy: deny', 'policy: other'));
    const renamed = await reader.read(added.version);
    expect([renamed.version?.compiled.map(({ id }) => id), renamed.read?.digests.size]).toEqual([
      ['a/all', 'other/all'],
      added.read?.digests.size,
    ]);
    await rm(join(folder, 'policies/deny.policy.yaml'));
    const removed = await reader.read(renamed.version);
    expect(comparable(removed.version)).toEqual(comparable(first));
    await reader.close();
  });

  it.each<[string, () => Promise<void>]>([
    ['a secret', () => write('key', Buffer.alloc(32, 8).toString('base64'))],
    ['a lock file', () => writeLocks(lockFor('one', ...NAMES, 'new'))],
    ['a lock file more', () => writeLocks(lockFor('three', 'new'))],
    ['a lock file less', () => rm(join(folder, 'policies/pins/two.lock.yaml'))],
    ['a mistake', () => write('policies/a.policy.yaml', POLICY.replace('who', 'whom'))],
    ['a name that another document has', () => write('policies/deny.policy.yaml', POLICY)],
    ['a tool that is not pinned', () => write('policies/a.policy.yaml', POLICY.replace('"*", "n', '"none", "n'))],
    ['nothing', async () => undefined],
    ['a policy that is away for a moment', async () => vanishOnce(join(folder, 'policies/a.policy.yaml'))],
  ])('everything is read again after a change of %s', async (what, change) => {
    const { reader, version } = await started();
    if (!/^(?:a mistake|a name|a tool|nothing)/.test(what)) await write('policies/deny.policy.yaml', DENY);
    await change();
    const { version: next, diagnostics } = await reader.read(version);
    await reader.close();
    await rm(join(folder, 'policies/pins/three.lock.yaml'), { force: true });
    vi.restoreAllMocks();
    expect([next, diagnostics.map(({ message }) => message).join()]).toEqual([
      undefined,
      expect.stringContaining('the thread that read the files ended'),
    ]);
  });

  it('and where the folder of policies cannot be listed', async () => {
    const before = await readFile(file, 'utf8');
    const elsewhere = 'policies: {dir: ./elsewhere}\npins: {dir: ./policies/pins}\n';
    await write('gateway.yaml', before.replace('policies: {dir: ./policies}\n', elsewhere));
    await mkdir(join(folder, 'elsewhere'));
    await write('elsewhere/a.policy.yaml', POLICY);
    const { reader, version } = await started();
    await rm(join(folder, 'elsewhere'), { recursive: true });
    const { version: next } = await reader.read(version);
    await write('gateway.yaml', before);
    await reader.close();
    expect([version.compiled.length, next]).toEqual([1, undefined]);
  });

  it('and of the gateway file, by which policies are checked', async () => {
    const { reader, version } = await started();
    const before = await readFile(file, 'utf8');
    await write('gateway.yaml', before.replace('path: /one,', 'path: /one, pinning: {mode: off},'));
    await write('policies/deny.policy.yaml', DENY);
    const { version: next } = await reader.read(version);
    await write('gateway.yaml', before);
    await reader.close();
    expect(next).toBeUndefined();
  });

  it('goes on from what the thread read', async () => {
    const { reader, version } = await started(BUILT);
    await writeLocks(lockFor('one', ...NAMES, 'new'));
    const beside = await reader.read(version);
    // From here on no thread reads anything.
    await reader.close();
    await write('policies/deny.policy.yaml', DENY);
    const added = await reader.read(beside.version);
    const { version: fresh } = await freshly();
    expect(comparable(added.version)).toEqual(fresh);
    expect(added.version?.locks).toBe(beside.version?.locks);
  }, 60_000);
});
