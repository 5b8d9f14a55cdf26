import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  type ExplainCallOptions,
  explainCommand,
  runExplainCall,
  runExplainDecision,
} from '../../../../src/cli/policy/explain.js';
import { buildProgram } from '../../../../src/cli/program.js';
import { writeLock } from '../../../../src/pins/lock.js';
import { GOOD } from '../../config/reading.js';
import { lockOf, pinOf, toolOf } from '../../pins/samples.js';
import { terminal } from '../console.js';
import { PORTS, ROOT, TEAMS, TEAMS_POLICIES } from './ports.js';

async function explain(options: Omit<ExplainCallOptions, 'config'>) {
  const io = terminal({ cwd: ROOT });
  const code = await runExplainCall({ ...TEAMS, ...options }, io, PORTS);
  return { code, out: io.out(), err: io.err() };
}

async function explainJson(options: Omit<ExplainCallOptions, 'config' | 'json'>) {
  return JSON.parse((await explain({ ...options, json: true })).out);
}

describe('[POL-01] explain call', () => {
  it('names the clause of each rule that fails, with its place', async () => {
    const { code, out } = await explain({
      target: 'payments/refund',
      group: ['support-leads'],
      args: '{"invoice":"I-1","amount":99}',
    });
    expect(code).toBe(0);
    expect(out).toContain('deny: insufficient-scope by support/small-refunds, listed for this caller\n');
    expect(out).toContain(
      `    args.amount /amount: must be at most 50  (${TEAMS_POLICIES}/support.policy.yaml:34:20)\n`,
    );
    expect(out).toContain('who.groups: the groups of the caller: "support-leads"');
    expect(out).toContain(`    scopes: missing: payments:refund  (${TEAMS_POLICIES}/support.policy.yaml:`);
    expect(out).not.toContain('the least');
  });

  it('takes the caller as JSON or as options, and says which verdict which rule gives', async () => {
    const caller = { groups: ['eng'], scopes: ['code:read', 'code:write'] };
    const target = 'code/get_file';
    const args = '{"repository":"r","path":"p"}';
    const byJson = await explainJson({ target, args, as: JSON.stringify(caller) });
    const byOptions = await explainJson({
      ...{ target, args },
      group: caller.groups,
      scope: caller.scopes,
    });
    expect(byJson).toEqual(byOptions);
    expect(byJson).toMatchObject({ verdict: 'allow', rule: 'engineering/read-code', listed: true });
  });

  it('decides about trust on first use as far as the lock file does', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sallyport-explain-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const pinned = pinOf(toolOf('get_issue'));
    const blocked = { ...pinOf(toolOf('delete_issue')), status: 'blocked' as const };
    mkdirSync(join(folder, 'policies/pins'), { recursive: true });
    const lock = writeLock({ ...lockOf([pinned, blocked]), upstream: 'github' });
    writeFileSync(join(folder, 'policies/pins/github.lock.yaml'), lock);
    const rule = '{id: all, effect: allow, who: {anyone: true}, what: {upstreams: [github], tools: ["*"]}}';
    writeFileSync(join(folder, 'policies/p.policy.yaml'), `version: 1\npolicy: p\nrules:\n  - ${rule}\n`);
    const config = GOOD.replace('[corp]\n', '[corp]\n    pinning: {mode: trust-on-first-use}\n');
    writeFileSync(join(folder, 'gateway.yaml'), config);
    const verdictOf = async (name: string) => {
      const io = terminal({ cwd: folder });
      const given = { config: 'gateway.yaml', target: `github/${name}`, json: true, args: '{}' };
      await runExplainCall(given, io, PORTS);
      expect(io.err()).toContain('what the gateway trusted on first use at github');
      const { verdict, reason } = JSON.parse(io.out());
      return [verdict, reason];
    };
    expect(await verdictOf('get_issue')).toEqual(['allow', undefined]);
    expect(await verdictOf('delete_issue')).toEqual(['deny', 'tool-blocked']);
    expect(await verdictOf('list_issues')).toEqual(['allow', undefined]);
  });

  it('names the sensitive fields of the tool', async () => {
    const { out } = await explain({ target: 'crm/get_customer', group: ['support'] });
    expect(out).toContain('sensitive fields:\n  redact /structuredContent/ssn\n  redact /structuredContent/birthday\n');
    expect(await explainJson({ target: 'crm/update_customer' })).toMatchObject({
      sensitive: [{ pointer: '/arguments/fields/*', effect: 'not recorded' }],
    });
    expect(await explainJson({ target: 'crm/find_customer' })).not.toHaveProperty('sensitive');
  });

  it('names the term of an expression that fails', async () => {
    const { out } = await explain({
      target: 'code/create_pull_request',
      as: '{"groups":["eng"],"scopes":["code:read","code:write"]}',
      args: '{"repository":"r","title":"t","base":"release"}',
    });
    expect(out).toContain('when: !has(args.base) || args.base != "release", of: args.title.size()');
  });

  it('reads a resource by its URI, and a prompt by its name', async () => {
    const target = 'handbook/handbook://pages/holidays';
    expect(await explainJson({ target })).toMatchObject({ verdict: 'allow' });
    const prompt = await explainJson({ target: 'tickets/summarize_ticket' });
    expect(prompt.rules.find((rule: { id: string }) => rule.id === 'support/work-on-tickets')).toMatchObject({
      what: 'holds',
      who: 'fails',
    });
  });

  const ID = '0b7e9f0e-6f5d-4a43-9d1c-2d7c3f1d8a11';
  const ALLOWED = { target: 'code/get_file', group: ['eng'], scope: ['code:read'] };
  const withBlocks = async (rows: unknown) => {
    const folder = mkdtempSync(join(tmpdir(), 'sallyport-explain-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const blocks = join(folder, 'blocks.json');
    writeFileSync(blocks, typeof rows === 'string' ? rows : JSON.stringify(rows));
    const args = '{"repository":"r","path":"p"}';
    return explain({ ...ALLOWED, subject: 'ada', client: 'desk', args, blocks });
  };
  const issuer = 'https://idp.example.com';

  it.each([
    [{ target: 'tool', upstream: 'code', name: 'get_file' }, ', hidden from this caller'],
    [{ target: 'upstream', upstream: 'code' }, ', listed'],
    [{ target: 'subject', issuer, subject: 'ada' }, ', listed'],
    [{ target: 'client', issuer, client: 'desk' }, ', listed'],
    [{ target: 'everything' }, ', listed'],
  ])('says that %j blocks the call', async (block, seen) => {
    const { code, out } = await withBlocks([{ id: ID, kind: 'block', ...block, by: 'lea' }]);
    expect(code).toBe(0);
    expect(out).toContain(`deny: blocked by builtin/block:${ID}${seen}`);
    expect(out).toContain('see the block: sallyport block list\n');
    expect(out).not.toContain('not known here');
  });

  it.each([
    { target: 'tool', upstream: 'code', name: 'create_pull_request' },
    { target: 'prompt', upstream: 'code', name: 'get_file' },
    { target: 'upstream', upstream: 'crm' },
    { target: 'subject', issuer, subject: 'bob' },
    { target: 'subject', issuer: 'https://other.example.com', subject: 'ada' },
    { target: 'client', issuer, client: 'ada' },
  ])('says that %j does not', async (block) => {
    const { out } = await withBlocks([{ id: ID, kind: 'block', ...block }]);
    expect(out).toContain('allow by engineering/read-code\n');
  });

  it('names the flows that may refuse the call', async () => {
    const policies = mkdtempSync(join(tmpdir(), 'sallyport-explain-'));
    onTestFinished(() => rmSync(policies, { recursive: true }));
    const flow = 'flows: [{id: no-leak, from: untrusted, to: egress, effect: deny}]\n';
    const labels = 'labels: {code/create_pull_request: [egress]}\n';
    const text = `version: 1\npolicy: p\nrules: []\n${labels}${flow}`;
    writeFileSync(join(policies, 'p.policy.yaml'), text);
    const sink = { target: 'code/create_pull_request', policies };
    const { flows } = await explainJson(sink);
    expect(flows).toEqual([{ policy: 'p', id: 'no-leak', from: ['untrusted'], withinMs: 600_000 }]);
    expect((await explain(sink)).out).toContain(
      '  p/no-leak  refuses it for 10 minutes after results labelled untrusted\n',
    );
    expect((await explainJson({ target: 'code/get_file', policies })).flows).toEqual([]);
  });

  it('says that it does not know blocks, and what is wrong with a file of them', async () => {
    const { out } = await explain(ALLOWED);
    expect(out).toContain('blocks are not known here; to include them, give the output of');
    expect((await explainJson(ALLOWED)).areBlocksKnown).toBe(false);
    expect(await withBlocks('{')).toMatchObject({ code: 2, err: expect.stringContaining('JSON') });
    const { code, err } = await withBlocks({ revocations: [] });
    expect([code, err]).toEqual([2, expect.stringContaining('sallyport block list --json')]);
  });

  it.each([
    [{ target: 'cmr/get_customer' }, 'error: no upstream is named "cmr"; did you mean "crm"?\n'],
    [{ target: 'refund' }, 'error: expected UPSTREAM/NAME, such as github/get_issue\n'],
    [
      { target: 'crm/get_customer', as: '{"gruops":[]}' },
      'error: the caller at gruops: a caller has no key "gruops"; did you mean "groups"?\n',
    ],
    [{ target: 'crm/get_customer', issuer: 'crop' }, 'error: no issuer is named "crop"; did you mean "corp"?\n'],
    [{ target: 'crm/get_customer', args: '{' }, 'error: --args is not valid JSON; quote it for the shell\n'],
  ])('says what is wrong with %j', async (options, message) => {
    expect(await explain(options)).toEqual({ code: 2, out: '', err: message });
  });

  it('writes nothing as JSON that a terminal could act on', async () => {
    const options = { target: 'payments/refund', args: '{"invoice":"\u009b31m","amount":9}' };
    const group = ['support-leads\u009b2J', 'a\u202eb'];
    const { out } = await explain({ ...options, group, json: true });
    expect(out).not.toMatch(/[\u007f-\u009f\u202e]/);
    expect(JSON.stringify(JSON.parse(out))).toContain('support-leads\u009b2J');
  });

  it('notes a name that nobody pinned, and which was meant', async () => {
    const { code, err } = await explain({ target: 'payments/refunds' });
    expect(code).toBe(0);
    expect(err).toBe('note: no tool named "refunds" is pinned for payments; did you mean "refund"?\n');
    expect((await explain({ target: 'payments/refund' })).err).toBe('');
  });

  it('runs as a command', async () => {
    const io = terminal({ cwd: ROOT });
    const argv = ['explain', 'call', 'crm/export_customers', '-c', TEAMS.config];
    expect(await buildProgram(io, [explainCommand(io, PORTS)]).run(argv)).toBe(0);
    expect(io.out()).toContain('deny: denied-by-rule by house/no-exports, hidden');
  });
});

/** Explains the one decision of an audit file. */
async function explainRecorded(decision: object, args: object = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-explain-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const log = join(folder, 'audit.jsonl');
  const record = {
    ...{ schema: 'sallyport.audit/2', id: 'e-1', time: '2026-11-20T09:00:00.000Z' },
    type: 'mcp.decision',
    gateway: { policy: 'p' },
    actor: {
      iss: 'https://idp.example.com',
      sub: 'lea',
      client_id: 'desk',
      token: { id: 't', scopes: [] },
    },
    target: { upstream: 'payments', method: 'tools/call', kind: 'tool', name: 'refund', pin: 'x' },
    args,
    decision: { id: 'd-1', verdict: 'deny', action: 'refused', ...decision },
    chain: { seq: 1, prev: '', hash: '' },
  };
  writeFileSync(log, `${JSON.stringify(record)}\n`);
  const io = terminal({ cwd: ROOT });
  const options = { ...TEAMS, log: [log] };
  const code = await runExplainDecision({ ...options, id: 'd-1' }, io, PORTS);
  return { code, out: io.out(), err: io.err() };
}

describe('[POL-01] explain decision', () => {
  it('names the decisions because of which a flow refused', async () => {
    const flow = {
      policy: 'house',
      rule: 'no-leak',
      reasons: ['tainted-flow'],
      causes: ['c-1', 'c-2'],
    };
    expect(await explainRecorded(flow)).toMatchObject({
      code: 0,
      out: expect.stringMatching(
        /recorded: deny: tainted-flow by house\/no-leak\n[^\n]+\n.*\n {2}sallyport audit show c-1\n {2}sallyport audit show c-2\n$/,
      ),
    });
  });

  it('names the block that refused', async () => {
    const blocked = { policy: 'builtin', rule: 'block:b-1', reasons: ['blocked'] };
    expect((await explainRecorded(blocked)).out).toMatch(
      /recorded: deny: blocked by builtin\/block:b-1\n.*sallyport block list\n$/s,
    );
  });

  it('names the arguments that were refused, by pointer and keyword', async () => {
    const violations = [
      { pointer: '/amount', keyword: 'maximum' },
      { pointer: '', keyword: 'undeclared' },
    ];
    const refused = { reasons: ['arguments-invalid'] };
    const { out } = await explainRecorded(refused, { keys: ['invoice'], bytes: 9, violations });
    expect(out).toContain('  /amount fails "maximum"\n  the object of arguments fails "undeclared"\n');
  });

  it('reads a captured number as a number', async () => {
    const captured = { '/amount': '80', '/invoice': 'I-1' };
    const args = { bytes: 30, keys: ['invoice', 'amount'], captured };
    const { out } = await explainRecorded({ reasons: ['arguments-invalid'] }, args);
    expect(out).toContain('args.amount /amount: must be at most 50');
  });

  it('names an audit file that does not exist', async () => {
    const io = terminal({ cwd: ROOT });
    const options = { ...TEAMS, id: 'd-1', log: ['/none/audit.jsonl'] };
    expect(await runExplainDecision(options, io, PORTS)).toBe(2);
    expect(io.err()).toBe('error: /none/audit.jsonl does not exist\n');
  });
});

describe('[AR-05] explain call, with rules that ask', () => {
  const POLICY = `version: 1
policy: ask
rules:
  - {id: all, effect: allow, who: {anyone: true}, what: {upstreams: [payments], tools: [refund]}}
  - id: money
    effect: require
    who: {anyone: true}
    what: {upstreams: [payments], tools: [refund]}
    when: args.amount > 10.0
    approval: {by: reviewer, reviewers: {groups: [finance, board]}, count: 2}
  - id: secrets
    effect: require
    who: {anyone: true}
    what: {upstreams: [payments], tools: [refund]}
    when: size(findings) > 0
    approval: {by: caller, expires: 90s, remember: {for: 1h, same: [/invoice]}}
labels: {payments/refund: [money]}
flows:
  - {id: out, from: untrusted, to: money, within: 10m, effect: approve, approval: {by: caller}}
`;

  async function explainApproval(amount: number, json = false) {
    const folder = mkdtempSync(join(tmpdir(), 'sallyport-asking-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, 'a.policy.yaml'), POLICY);
    return explain({
      ...{ target: 'payments/refund', policies: folder, args: JSON.stringify({ invoice: 'I-1', amount }) },
      ...(json && { json }),
    });
  }

  it('says for each rule that binds whom it asks, and how the verdict depends on that', async () => {
    const { out } = await explainApproval(11);
    expect(out).toMatch(/^allow by ask\/all, once approved: ask\/money\n/);
    const lines = out.split('\n').map((line) => line.trim());
    expect(lines).toContain('needs approval (by reviewer of group finance or board, 2 people, within 10m)');
    expect(lines).toContain(
      'may need approval (by the caller, after a login, within 90s, remembered for 1h while /invoice stay equal)',
    );
    expect(lines.find((line) => line.startsWith('ask/out'))).toBe(
      'ask/out  needs approval (by the caller, after a login, within 10m) for 10 minutes after results labelled untrusted',
    );
  });

  it('says nothing of rules that do not bind', async () => {
    const { out } = await explainApproval(9);
    expect(out).toMatch(/^allow by ask\/all\n/);
    expect(out).not.toContain('2 people');
  });

  it('has the rules in JSON too', async () => {
    const shown = JSON.parse((await explainApproval(11, true)).out);
    expect(shown).toMatchObject({ verdict: 'allow', askers: ['ask/money'] });
    const money = shown.rules.find(({ id }: { readonly id: string }) => id === 'ask/money');
    expect(money.approval.terms).toMatchObject({ by: 'reviewer', groups: ['finance', 'board'], count: 2 });
  });
});
