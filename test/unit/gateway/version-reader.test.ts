// Versions are read on a thread of their own where their files are large: with the same result as in place, and with
// none if the thread ends before.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
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
