import { createHash } from 'node:crypto';
import { appendFile, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createAudit } from '../../../../src/audit/audit.js';
import { readChainLine } from '../../../../src/audit/chain.js';
import { createAuditFile } from '../../../../src/audit/file.js';
import { auditCommand } from '../../../../src/cli/audit/audit-command.js';
import type { AuditFilePorts } from '../../../../src/cli/audit/read.js';
import { buildProgram } from '../../../../src/cli/program.js';
import { AUDIT_SCHEMA } from '../../../../src/config/schema/outputs.js';
import type { Settings } from '../../../../src/config/settings.js';
import { createKeyRing } from '../../../../src/state/derived-keys.js';
import { newestAuditFile } from '../../../support/audit-chain.js';
import { countingMeters, NOW, ring, sampleRecord, versions } from '../../audit/samples.js';
import { makeFirstForm } from '../../audit/sink-rig.js';

const key = { id: 'sample', bytes: createHash('sha256').update('sample').digest() };
const publicKey = ring.publicKeys()[0]?.publicKey ?? '';
const DECISION = sampleRecord().id;

let folder = '';
let path = '';

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-cli-audit-'));
  path = join(folder, 'audit.jsonl');
  const audit = createAudit({
    settings: {
      sinks: [{ type: 'file', path }],
      durability: 'written',
      onFailure: 'block',
      checkpointEveryMs: 3_600_000,
      rotate: { size: 1e9, ageMs: 1e9 },
      retainMs: undefined,
      deliveries: [],
    },
    replica: { instance: 'host-1:8080', host: 'host-1', run: 'run-1' },
    version: '0.1.0',
    versions,
    signer: ring,
    now: () => NOW,
    meters: countingMeters(),
    newWriter: () => createAuditFile(path, { instance: 'run-1' }),
  });
  await audit.start();
  await audit.decision(sampleRecord());
  audit.outcome(sampleRecord(), 20);
  const { target, decision } = sampleRecord();
  const hostile = { ...target, name: 'x\u001b]0;owned\u0007\r\n\u202e', pin: undefined };
  const refused = {
    ...decision,
    verdict: 'deny',
    action: 'refused',
    reasons: ['tool-unpinned'],
  } as const;
  const denied = { ...refused, reasons: [...refused.reasons] };
  audit.outcome(sampleRecord({ id: 'other', target: hostile, decision: denied }), 1);
  await audit.close();
  await rename(await newestAuditFile(path), path);
});

afterEach(() => rm(folder, { recursive: true, force: true }));

async function run(args: readonly string[], ports: Partial<AuditFilePorts> = {}) {
  const out = { code: 0, stdout: '', stderr: '' };
  const io = {
    stdout(text: string) {
      out.stdout += text;
    },
    stderr(text: string) {
      out.stderr += text;
    },
    env: {},
    cwd: folder,
    isTty: false,
  };
  const settings = {
    keys: [key],
    audit: { sinks: [{ type: 'file', path }] },
  } as unknown as Settings;
  const all: AuditFilePorts = {
    loadSettings: (file) =>
      Promise.resolve(
        file === join(folder, 'gateway.yaml')
          ? { settings, diagnostics: '' }
          : { settings: undefined, diagnostics: 'missing.yaml:1:1 error no such file\n' },
      ),
    wait: () => Promise.resolve(false),
    ...ports,
  };
  out.code = await buildProgram(io, [auditCommand(io, all)]).run(['audit', ...args]);
  return out;
}

async function lines(): Promise<string[]> {
  return (await readFile(path, 'latin1')).trimEnd().split('\n');
}

describe('audit verify', () => {
  it('[O-15] exits 0 for a whole chain, and notes that its end cannot be known', async () => {
    const { code, stdout, stderr } = await run(['verify', 'audit.jsonl']);
    expect(code).toBe(0);
    expect(stdout).toMatch(
      /^unsigned: 0 lines; without --key, all 6 could .*\ncomplete: the chain of 6 lines with 1 signed checkpoint was verified, head [\w-]+:5:[\w-]{43}\n$/,
    );
    expect(stderr).toContain('only --head can show');
  });

  it('[O-15] exits 1, and names file, line and fault', async () => {
    const all = await lines();
    await writeFile(path, `${all.with(2, (all[2] ?? '').replace('alice', 'malice')).join('\n')}\n`);
    const edited = await run(['verify', 'audit.jsonl']);
    expect([edited.code, edited.stdout]).toEqual([
      1,
      'unsigned: 0 lines; without --key, all 6 could have been rewritten\naudit.jsonl:3 edited: the line was changed: its hash does not match its bytes\n',
    ]);
    await writeFile(path, `${all.toSpliced(2, 1).join('\n')}\n`);
    const missing = await run(['verify', 'audit.jsonl', '--json']);
    expect(missing.code).toBe(1);
    expect(JSON.parse(missing.stdout)).toMatchObject({
      isWhole: false,
      faults: [{ file: 'audit.jsonl', line: 3, kind: 'missing' }],
    });
  });

  it('[O-15] finds truncation against a checkpoint: inline, as JSON, or in a file', async () => {
    const all = await lines();
    const last = readChainLine(all.at(-1) ?? '');
    await writeFile(join(folder, 'witness.jsonl'), `${all.at(-1)}\n`);
    const heads = [`${last?.epoch}:4:${last?.prev}`, all.at(-1) ?? '', 'witness.jsonl'];
    for (const head of heads) expect((await run(['verify', path, '--head', head])).code).toBe(0);
    await writeFile(path, `${all.slice(0, 3).join('\n')}\n`);
    expect((await run(['verify', path])).code).toBe(0);
    for (const head of heads) {
      const { code, stdout } = await run(['verify', path, '--head', head]);
      expect([code, stdout]).toEqual([
        1,
        'unsigned: 3 lines, from sequence number 0 on, could have been rewritten or cut off\naudit.jsonl:3 truncated: cut off: the checkpoint knows line 4, the last line here is 2\n',
      ]);
    }
  });

  it('[O-15] verifies a file of sallyport.audit/1, and takes its head in hex', async () => {
    const { lines: first, head } = makeFirstForm(['started', 'one', 'two']);
    await writeFile(path, `${first.join('\n')}\n`);
    const known = `${head.epoch}:${head.seq}:${head.hash}`;
    expect(head.hash).toMatch(/^[0-9a-f]{64}$/);
    expect((await run(['verify', path, '--head', known])).code).toBe(0);
    await writeFile(path, `${first.slice(0, 2).join('\n')}\n`);
    expect((await run(['verify', path, '--head', known])).stdout).toContain('truncated');
  });

  it('[O-19] says first what is unsigned, and exits 2 for what it could not check', async () => {
    const all = await lines();
    await writeFile(path, `${all.slice(0, 4).join('\n')}\n`);
    const cut = await run(['verify', path, '--key', publicKey]);
    expect(cut.stdout.split('\n')[0]).toBe(
      'unsigned: 4 lines, from sequence number 0 on, could have been rewritten or cut off',
    );
    const audit = createAudit({
      settings: {
        sinks: [{ type: 'file', path }],
        durability: 'written',
        onFailure: 'block',
        checkpointEveryMs: 3_600_000,
        rotate: { size: 1e9, ageMs: 1e9 },
        retainMs: undefined,
        deliveries: [],
      },
      replica: { instance: 'host-1:8080', host: 'host-1', run: 'run-2' },
      version: '0.1.0',
      versions,
      signer: ring,
      now: () => NOW,
      meters: countingMeters(),
      newWriter: () => createAuditFile(path, { instance: 'run-2' }),
    });
    await audit.start();
    await audit.decision(sampleRecord());
    await audit.close();
    const later = await newestAuditFile(path);
    const alone = await run(['verify', later]);
    expect([alone.code, alone.stdout.split('\n')[1]?.split(':', 2).join(':')]).toEqual([
      2,
      'not checked: give --key or the older file',
    ]);
    expect((await run(['verify', later, '--key', publicKey])).code).toBe(0);
    const [continued = ''] = (await readFile(later, 'utf8')).split('\n');
    await writeFile(join(folder, 'begun.jsonl'), `${continued}\n`);
    const begun = await run(['verify', 'begun.jsonl']);
    expect([begun.code, begun.stdout]).toEqual([2, expect.stringContaining('follows audit.jsonl from 3 on')]);
    expect(begun.stderr).not.toContain('follows audit.jsonl');
    await rm(join(folder, 'begun.jsonl'));
    for (const files of [['audit.jsonl', later], [later, 'audit.jsonl'], ['.']]) {
      const both = await run(['verify', ...files]);
      expect([both.code, both.stdout.split('\n')[1]?.slice(0, 9)]).toEqual([0, 'complete:']);
    }
    await writeFile(join(folder, 'stray.jsonl'), 'no record\n');
    const stray = await run(['verify', '.']);
    expect([stray.code, stray.stderr]).toEqual([0, expect.stringContaining('note: stray.jsonl: not read')]);
    await rm(join(folder, 'stray.jsonl'));
    expect(JSON.parse((await run(['verify', later, '--json'])).stdout)).toMatchObject({
      isWhole: false,
      faults: [],
      unchecked: [expect.stringContaining('give --key')],
    });
  });

  it('[O-15] checks signatures against the key that is given, in each form', async () => {
    const other = createKeyRing([{ id: 'x', bytes: Buffer.alloc(32, 9) }]).publicKeys()[0]?.publicKey ?? '';
    const jwk = JSON.stringify({ kty: 'OKP', crv: 'Ed25519', x: publicKey });
    await writeFile(join(folder, 'key.pub'), `sallyport-public-1:${publicKey}\n`);
    for (const given of [publicKey, `sallyport-public-1:${publicKey}`, jwk, 'key.pub']) {
      expect((await run(['verify', path, '--key', given])).code).toBe(0);
    }
    const wrong = await run(['verify', path, '--key', other]);
    expect(wrong.code).toBe(1);
    expect(wrong.stdout).toContain('audit.jsonl:6 signature');
  });

  it.each([
    [['verify']],
    [['verify', 'no-such-file']],
    [['verify', 'audit.jsonl', '--head', 'no-such-file']],
    [['verify', 'audit.jsonl', '--key', 'no-such-key']],
    [['verify', 'audit.jsonl', '--haed', 'x']],
    [['export', '--format', 'cef', 'audit.jsonl']],
    [['export', 'no-such-file']],
    [['export']],
    [['tail']],
    [['tail', '-c', 'missing.yaml']],
    [['query', 'audit.jsonl', '--since', 'yesterday']],
    [['hash', 'value']],
  ])('[O-15] exits 2 for what cannot be done: %j', async (args) => {
    const { code, stdout, stderr } = await run(args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/error/);
  });
});

describe('audit tail, query and show', () => {
  it('[O-16] prints for people, one line an event, nothing that acts on a terminal', async () => {
    const { code, stdout } = await run(['tail', '-c', 'gateway.yaml']);
    expect(code).toBe(0);
    expect(stdout.trimEnd().split('\n')).toHaveLength(6);
    expect(stdout).toMatch(/^[\n\x20-\x7e]+$/);
    expect(stdout).toContain(`alice  github tools/call get_issue  forwarded engineers-read  ${DECISION}`);
  });

  it('[O-16] makes visible what someone wrote into the file', async () => {
    await writeFile(path, '{"type":"\\u001b[2Jevil\\u202e","time":"x"}\n{"type":"\u009b1m"}\nnot json\n', 'latin1');
    for (const args of [
      ['tail', path],
      ['tail', path, '--json'],
      ['query', path],
    ]) {
      const { stdout } = await run(args);
      expect(stdout).toMatch(/^[\n\x20-\x7e]+$/);
    }
  });

  it('[O-16] follows what is written, over a rotation', async () => {
    const [first = ''] = await lines();
    let turn = 0;
    const { stdout } = await run(['tail', '-f', path, '--json'], {
      async wait() {
        turn += 1;
        if (turn === 1) await appendFile(path, `${first}\n${first.slice(0, 20)}`);
        if (turn === 2) await appendFile(path, `${first.slice(20)}\n`);
        if (turn === 3) await rm(path);
        if (turn === 4) await writeFile(path, `${first}\n`);
        return turn < 6;
      },
    });
    expect(stdout.trimEnd().split('\n')).toHaveLength(6 + 3);
  });

  it.each([
    [['--type', 'mcp.decision'], 1],
    [['--type', 'mcp.outcome'], 2],
    [['--subject', 'alice'], 3],
    [['--subject', 'Alice'], 0],
    [['--upstream', 'github', '--reason', 'tool-unpinned'], 1],
    [['--since', '2026-11-20T09:30:00Z'], 6],
    [['--since', '2026-11-20T09:31:00Z'], 0],
    [['--type', 'mcp.outcome', '--subject', 'alice', '--reason', 'no-matching-allow'], 0],
  ])('[O-16] query %j finds %i', async (filters, count) => {
    const { code, stdout } = await run(['query', path, '--json', ...filters]);
    expect(code).toBe(0);
    expect(stdout.split('\n').filter((line) => line !== '')).toHaveLength(count);
  });

  it('[O-16] shows both events of a decision, or says that there is none', async () => {
    const { code, stdout } = await run(['show', DECISION, path, '--json']);
    expect(code).toBe(0);
    expect(stdout.match(/"type":"mcp\.(decision|outcome)"/g)).toHaveLength(2);
    expect((await run(['show', 'nothing', path])).code).toBe(1);
  });

  it('[O-16] shows in text what an event says, and of an outcome what its decision does not say', async () => {
    const { stdout } = await run(['show', DECISION, path]);
    const [decision, outcome] = stdout.split(/(?<=^\})\n/m).map((text) => JSON.parse(text || '{}'));
    expect(decision).toMatchObject({
      type: 'mcp.decision',
      decision: { id: DECISION, rule: expect.any(String) },
    });
    expect(outcome).toMatchObject({
      type: 'mcp.outcome',
      latency_ms: { total: expect.any(Number) },
    });
    expect(Object.keys(outcome)).not.toEqual(expect.arrayContaining(['actor', 'target', 'args']));
    expect(stdout).not.toMatch(/: (?:null|\[\]|\{\})/);
  });

  it('[O-16] query and show print every event with all its members, an outcome with those of its decision', async () => {
    const joined = {
      gateway: { config: 'c0', policy: 'p0', pins: 'l0' },
      actor: {
        sub: 'alice',
        act: [{ sub: 'agent-7' }],
        token: { id: 'token-digest', binding: 'none' },
        groups_used: [],
      },
      client: { ip: '192.0.2.7', era: '2025', session: 'session-digest' },
      target: { kind: 'tool', definition: 'd'.repeat(64), pin: 'd'.repeat(64), request_id: 7 },
      args: { digest: 'args-digest', bytes: 21, keys: ['owner'], captured: {} },
      decision: { action: 'forwarded', mode: 'enforce', rule: 'engineers-read', reasons: [] },
      findings: [],
      result: { status: 'ok', http: 200, rpc_code: null, list: null },
      latency_ms: { total: 20, upstream: 12 },
      trace: null,
    };
    const [, own = ''] = (await lines()).filter((line) => line.includes(DECISION));
    expect(own).not.toMatch(/engineers-read|args-digest|token-digest/);
    for (const args of [
      ['show', DECISION, path],
      ['query', path, '--json', '--type', 'mcp.outcome', '--subject', 'alice'],
    ]) {
      const { stdout } = await run([...args, ...(args[0] === 'show' ? ['--json'] : [])]);
      const events = stdout.split('\n').filter((line) => line.includes('"mcp.outcome"'));
      expect(JSON.parse(events[0] ?? '')).toMatchObject(joined);
    }
    const { stdout } = await run(['query', path, '--type', 'mcp.outcome']);
    expect(stdout).toContain('forwarded engineers-read');
  });

  it('[O-16] joins an outcome with a decision in the file before, and prints it alone without that', async () => {
    const all = await lines();
    await writeFile(`${path}.1`, `${all.slice(0, 2).join('\n')}\n`);
    await writeFile(path, `${all.slice(2).join('\n')}\n`);
    const rulesOf = async (...files: string[]): Promise<unknown[]> => {
      const asked = ['query', ...files, '--json', '--type', 'mcp.outcome', '--subject', 'alice'];
      const { stdout } = await run(asked);
      const [outcome = ''] = stdout.split('\n');
      const { decision, args } = JSON.parse(outcome);
      return [decision.id, decision.action, decision.rule, args];
    };
    const args = expect.objectContaining({ digest: 'args-digest' });
    expect(await rulesOf(`${path}.1`, path)).toEqual([DECISION, 'forwarded', 'engineers-read', args]);
    expect(await rulesOf(path)).toEqual([DECISION, 'forwarded', null, null]);
  });

  it('[O-16] query prints one line for a request, with its result', async () => {
    const { stdout } = await run(['query', path, '--subject', 'alice']);
    const rows = stdout
      .trimEnd()
      .split('\n')
      .filter((row) => row.includes(DECISION));
    expect(rows).toHaveLength(1);
    expect(rows[0]).toMatch(/ mcp\.outcome .* forwarded engineers-read .* ok in \d+\.\d ms$/);
  });

  it('[O-16] query and show say where an outcome stands without its decision', async () => {
    const show = ['show', DECISION, path];
    expect((await run(show)).stderr).toBe('');
    const all = await lines();
    await writeFile(path, `${all.slice(2).join('\n')}\n`);
    expect((await run(show)).stderr).toContain('1 outcome without the line of its decision');
    // The outcome of the other request has none in either file.
    const { stderr } = await run(['query', path, '--json']);
    expect(stderr).toContain('2 outcomes without the line of their decisions');
    expect((await run(['query', path, '--type', 'checkpoint'])).stderr).toBe('');
  });

  it('[O-16] reads lines of sallyport.audit/1 as they are, and without their decision what an outcome says itself', async () => {
    const first = {
      ...{ schema: 'sallyport.audit/1', id: 'a', time: '2026-11-20T09:30:00.000Z' },
      ...{ type: 'mcp.outcome', gateway: { instance: 'i', epoch: 'e', policy: 'p' } },
      target: { upstream: 'github', definition: null, pin: 'x' },
      decision: {
        id: 'first',
        verdict: 'allow',
        action: 'withheld',
        rule: 'r',
        reasons: ['internal'],
      },
    };
    await writeFile(path, `${JSON.stringify(first)}\n`);
    const { stdout } = await run(['show', 'first', path, '--json']);
    expect(JSON.parse(stdout)).toMatchObject(first);
    const second = {
      ...{ schema: 'sallyport.audit/2', id: 'b', time: first.time, type: 'mcp.outcome' },
      decision: { id: 'second', verdict: 'allow' },
    };
    await writeFile(path, `${JSON.stringify(second)}\n`);
    const alone = await run(['query', path]);
    expect(alone.stdout).toContain('forwarded -  second');
  });
});

describe('[O-16] audit query', () => {
  it('prints events that satisfy the schema, also where the line of a decision is missing', async () => {
    const isValid = new Ajv2020({ strict: false }).compile(AUDIT_SCHEMA);
    const all = await lines();
    for (const file of [all, all.slice(2)]) {
      await writeFile(path, `${file.join('\n')}\n`);
      const events = (await run(['query', path, '--json'])).stdout.trimEnd().split('\n');
      for (const event of events) {
        // The ids of these samples are short.
        isValid(JSON.parse(event.replaceAll('"other"', `"${DECISION}"`)));
        expect(isValid.errors).toBeNull();
      }
    }
  });

  it('leaves out the stage of what was forwarded and the address of a lone outcome', async () => {
    const find = async (): Promise<Record<string, Record<string, unknown>>> => {
      const filters = ['--type', 'mcp.outcome', '--subject', 'alice'];
      const { stdout } = await run(['query', path, '--json', ...filters]);
      return JSON.parse(stdout.split('\n')[0] ?? '');
    };
    const joined = await find();
    expect(Object.keys(joined['decision'] ?? {})).not.toContain('stage');
    expect(joined['client']).toHaveProperty('ip', '192.0.2.7');
    await writeFile(path, `${(await lines()).slice(2).join('\n')}\n`);
    const alone = await find();
    expect(Object.keys(alone['client'] ?? {})).not.toContain('ip');
    expect(alone['client']).toHaveProperty('era', null);
  });

  it('refuses a type or a reason that no event has, and says which was meant', async () => {
    expect(await run(['query', path, '--reason', 'tool-unpined'])).toEqual({
      code: 2,
      stdout: '',
      stderr: 'error: --reason: "tool-unpined" is not a reason; did you mean "tool-unpinned"?\n',
    });
    const type = await run(['query', path, '--type', 'mcp.decisions']);
    expect([type.code, type.stderr]).toEqual([
      2,
      'error: --type: "mcp.decisions" is not an event type; did you mean "mcp.decision"?\n',
    ]);
  });

  it('notes a name that no event has, which is no error', async () => {
    expect(await run(['query', path, '--upstream', 'githb', '--subject', 'alicia'])).toEqual({
      code: 0,
      stdout: '',
      stderr:
        'note: no event has the upstream "githb"; did you mean "github"?\nnote: no event has the subject "alicia"; did you mean "alice"?\n',
    });
    // The name exists; nothing else matches.
    const none = ['query', path, '--upstream', 'github', '--type', 'pin.drift'];
    expect((await run(none)).stderr).toBe('');
  });
});

describe('audit hash', () => {
  it('[O-17] prints the digest that events hold for a value', async () => {
    const { code, stdout } = await run(['hash', 'a-value', '-c', 'gateway.yaml']);
    expect(code).toBe(0);
    expect(stdout).toContain(`${ring.hmac('arguments', 'a-value')}  arguments  sample\n`);
    expect(stdout).toContain(`${ring.hmac('token-id', 'a-value')}  token-id  sample\n`);
    expect(stdout).not.toContain('a-value');
  });
});
