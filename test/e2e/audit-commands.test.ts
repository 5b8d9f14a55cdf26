// What an operator finds in the audit of a running gateway, by the commands of the built program.
// docs/reference/commands.md#audit.

import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { writeKeyText } from '../../src/config/key-material.js';
import { newestAuditFile, readAudit } from '../support/audit-chain.js';
import { decisionOf } from '../support/gateway.js';
import { buildProgram, type Ended, runSallyport, startSallyport } from '../support/processes.js';
import { PATIENT } from '../support/timing.js';
import { callStateless, type OpenSession } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const execute = promisify(execFile);

/** What a terminal shows as it is. */
const PRINTABLE = /^[\n\x20-\x7e]+$/;
const HOSTILE_NAME = 'x\u001b]0;owned\u0007\u202e';

let folder: string;
let session: OpenSession;
/** The decision about a call of a name that acts on terminals. */
let refused: string;

afterAll(async () => {
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});
const rig = sharedGateway(async () => {
  await buildProgram();
  folder = await mkdtemp(join(tmpdir(), 'sallyport-audit-commands-'));
  const key = join(folder, 'key');
  await writeFile(key, writeKeyText(randomBytes(32)), { mode: 0o600 });
  return {
    audit: 'audit: {sinks: [{type: file, path: ./audit.jsonl}], checkpoint: {every: 1s}}',
    more: `keys: [{file: ${JSON.stringify(key)}}]`,
  };
});
beforeAll(async () => {
  session = await rig.openSession();
  await callStateless(rig.access, 'read_record', { id: 'one' });
  refused = decisionOf(await session.call(HOSTILE_NAME)).id;
  await vi.waitFor(
    async () => {
      const lines = (await rig.gateway.audit()).filter((line) => line['decision']?.id === refused);
      expect(lines).toHaveLength(2);
    },
    { ...PATIENT, interval: 10 },
  );
});

const file = (): string => rig.gateway.folder;
const audit = (...args: readonly string[]): Promise<Ended> => runSallyport(['audit', ...args]);
const readText = (): Promise<string> => readAudit(join(file(), 'audit.jsonl'));
const countLines = ({ stdout }: Ended): number => stdout.split('\n').filter((line) => line !== '').length;

describe('[O-16] the audit of a running gateway', () => {
  it('is printed for people from the place that the gateway file names, and acts on no terminal', async () => {
    const config = join(rig.gateway.folder, 'gateway.yaml');
    const { code, stdout } = await audit('tail', '-c', config);
    expect(code).toBe(0);
    expect(stdout).toMatch(PRINTABLE);
    expect(stdout).toMatch(/alice +target tools\/call read_record +forwarded/);
    expect(stdout).toContain('owned');
    expect((await audit('tail', file(), '--json')).stdout).toMatch(PRINTABLE);
  });

  it('is searched for exact values', async () => {
    const find = async (...filters: readonly string[]): Promise<number> => {
      const found = await audit('query', file(), '--json', ...filters);
      expect(found.code).toBe(0);
      return countLines(found);
    };
    expect(await find('--subject', 'alice', '--type', 'mcp.decision')).toBeGreaterThan(0);
    expect(await find('--subject', 'Alice')).toBe(0);
    expect(await find('--reason', 'tool-unpinned', '--upstream', 'target')).toBe(2);
    expect(await find('--since', '1h', '--reason', 'tool-unpinned')).toBe(2);
  });

  it('is printed with all members, an outcome with those of its decision, which its line leaves out', async () => {
    const filters = ['--type', 'mcp.outcome', '--subject', 'alice'];
    const { stdout } = await audit('query', file(), '--json', ...filters);
    const events = stdout.split('\n').filter((line) => line.includes('"read_record"'));
    expect(JSON.parse(events[0] ?? '')).toMatchObject({
      actor: { sub: 'alice', token: { id: expect.stringMatching(/^[\w-]{43}$/) } },
      client: { ip: '127.0.0.1' },
      args: { digest: expect.stringMatching(/^[\w-]{43}$/), keys: ['id'] },
      decision: { verdict: 'allow', action: 'forwarded', rule: expect.any(String) },
      result: { status: 'ok' },
    });
    const [line = ''] = (await readText())
      .split('\n')
      .filter((one) => one.includes('"mcp.outcome"') && one.includes('"read_record"'));
    expect(Object.keys(JSON.parse(line))).not.toContain('args');
    const pair = (await readText()).split('\n').filter((one) => one.includes(JSON.parse(line).decision.id));
    expect(pair.join('\n').length).toBeLessThan(1_800);
  });

  it('shows both events of a decision, by the id that its caller got', async () => {
    const shown = await audit('show', refused, file(), '--json');
    expect(shown.code).toBe(0);
    const types = shown.stdout.match(/"type":"mcp\.(decision|outcome)"/g);
    expect(types).toEqual(['"type":"mcp.decision"', '"type":"mcp.outcome"']);
    expect(shown.stdout).toMatch(PRINTABLE);
    expect((await audit('show', 'nothing', file())).code).toBe(1);
  });
});

describe('the audit file of a running gateway', () => {
  it('[O-84, C-13] holds events that satisfy the schema that the program prints', async () => {
    const printed = await runSallyport(['schema', 'audit']);
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    const satisfies = ajv.compile(JSON.parse(printed.stdout));
    const lines = (await readText())
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as unknown);
    expect(lines.length).toBeGreaterThan(4);
    expect(lines.filter((line) => !satisfies(line))).toEqual([]);
  });

  it('[O-19] is verified by the public key, and which lines are not signed yet is said first', async () => {
    const printed = await runSallyport(['keys', 'public', join(folder, 'key')]);
    const key = join(folder, 'key.pub');
    await writeFile(key, /^sallyport-public-1:.+$/m.exec(printed.stdout)?.[0] ?? '');
    const isSigned = async (): Promise<boolean> =>
      (await rig.gateway.audit()).some((line) => line['type'] === 'checkpoint');
    await expect.poll(isSigned, PATIENT).toBe(true);
    const verified = await audit('verify', file(), '--key', key);
    expect([verified.code, verified.stdout]).toEqual([
      0,
      expect.stringMatching(
        /^unsigned: \d+ lines?.*\ncomplete: the chain of \d+ lines with [1-9]\d* signed checkpoints? was verified/,
      ),
    ]);
    const stranger = await audit('verify', file(), '--key', randomBytes(32).toString('base64url'));
    expect(stranger.code).toBe(1);
    expect(stranger.stdout).toMatch(/audit-\w+-\w+\.jsonl:\d+ signature/);
  });
});

describe('[O-17] audit hash', () => {
  it('prints the digest by which the events of a call know its arguments, and not the value', async () => {
    const value = { id: randomBytes(8).toString('hex') };
    await session.call('read_record', value);
    const digests = async (): Promise<readonly unknown[]> =>
      (await rig.gateway.audit()).flatMap((line) => line['args']?.digest ?? []);
    const config = join(rig.gateway.folder, 'gateway.yaml');
    const printed = await audit('hash', JSON.stringify(value), '-c', config, '--json');
    expect(printed.code).toBe(0);
    expect(printed.stdout).not.toContain(value.id);
    const rows = JSON.parse(printed.stdout) as { purpose: string; digest: string }[];
    const ofArguments = rows.find(({ purpose }) => purpose === 'arguments')?.digest;
    expect(ofArguments).toMatch(/^[\w-]{43}$/);
    await expect.poll(digests, PATIENT).toContain(ofArguments);
  });
});

// The last: it takes the file away.
describe('a reader that has seen enough', () => {
  it('ends a command without a word, with the code of SIGPIPE', async () => {
    const long = join(folder, 'long.jsonl');
    const text = await readText();
    // Lines that are equal are printed once.
    const copies = Array.from({ length: 200 }, (_, copy) => text.replaceAll('"seq":', `"seq":${copy}`));
    await writeFile(long, copies.join(''));
    const main = JSON.stringify(join(import.meta.dirname, '../../dist/main.js'));
    const command = `{ "$0" ${main} audit query ${JSON.stringify(long)}; echo "code $?" >&2; } | head -1`;
    const { stdout, stderr } = await execute('sh', ['-c', command, process.execPath]);
    expect(stdout.split('\n')).toHaveLength(2);
    expect(stderr).toBe('code 141\n');
  });
});

describe('audit tail', () => {
  it('[O-16] follows the audit of a running gateway over a rotation', async () => {
    const call = async (): Promise<string> => decisionOf(await session.call('no_such_tool')).id;
    // One of the last lines: a checkpoint is written every second.
    const recent = await call();
    const following = startSallyport(['audit', 'tail', '-f', file(), '--json'], folder);
    await expect.poll(following.stdout, PATIENT).toContain(recent);
    await expect.poll(following.stdout, PATIENT).toContain(await call());
    const written = await newestAuditFile(join(file(), 'audit.jsonl'));
    await rename(written, join(folder, 'moved.jsonl'));
    await expect.poll(following.stdout, PATIENT).toContain(await call());
    following.signal('SIGTERM');
    await following.ended.catch(() => undefined);
  });
});
