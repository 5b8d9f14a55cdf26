import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runTest, type TestOptions } from '../../../../src/cli/policy/test.js';
import { DISK_FILES } from '../../../../src/config/files.js';
import { terminal } from '../console.js';
import { PORTS, ROOT, TEAMS, TEAMS_POLICIES } from './ports.js';

const FOLDER = join(ROOT, 'tests');

const OTHER = join(ROOT, 'other');

/** Runs the tests of one file, which is given as text; so is the policy of the folder `other`. */
async function test(text: string, options: Partial<TestOptions> = {}, policy = '') {
  const io = terminal({ cwd: ROOT });
  const files = {
    readFile: (path: string) =>
      path.startsWith(FOLDER) || path.startsWith(OTHER)
        ? new TextEncoder().encode(path.startsWith(OTHER) ? policy : text)
        : DISK_FILES.readFile(path),
    listFolder: (path: string) =>
      path === OTHER
        ? ['x.policy.yaml']
        : path === FOLDER
          ? ['a.policy.test.yaml', 'other.yaml']
          : DISK_FILES.listFolder(path),
  };
  const code = await runTest({ ...TEAMS, folder: 'tests', ...options }, io, { ...PORTS, files });
  return { code, out: io.out(), err: io.err() };
}

const HEAD = `version: 1
principals:
  lead: {groups: [support-leads], scopes: [payments:refund]}
cases:
`;

const REFUND = `  - name: a refund
    as: lead
    call: payments/refund
    args: {invoice: I-1, amount: 51}
`;

describe('[POL-04] test', () => {
  it('runs the tests of the example, which exercise every rule', async () => {
    const io = terminal({ cwd: ROOT });
    const options = { ...TEAMS, folder: TEAMS_POLICIES, minCoverage: 100 };
    expect(await runTest(options, io, PORTS)).toBe(0);
    expect(io.out()).toBe('');
    expect(io.err()).toMatch(/^\d+ cases, 0 failed, 16 of 16 rules decisive \(100 %\)\n$/);
  });

  it('says what was decided instead, and which rules no case is decided by', async () => {
    const { code, out, err } = await test(`${HEAD}${REFUND}    expect: allow\n`);
    expect(code).toBe(1);
    expect(out).toContain(
      'tests/a.policy.test.yaml:5:5 failed a refund: expected allow, decided deny: arguments-invalid' +
        ' (The argument "amount" is not allowed by a policy rule: must be at most 50.)\n',
    );
    expect(out).toContain('no case is decided by finance/refunds\n');
    expect(err).toBe('1 case, 1 failed, 0 of 16 rules decisive (0 %)\n');
  });

  it('compares reason and rule, and takes limits as it is told', async () => {
    const small = REFUND.replace('51', '50');
    const passed = await test(`${HEAD}${small}    expect: allow\n    rule: support/small-refunds\n`);
    expect(passed.code).toBe(0);
    const exhausted = `${HEAD}${small}    limits: exhausted\n    expect: deny\n    reason: rate-limited\n    rule: house/money-leaves-a-trace\n`;
    expect(await test(exhausted)).toMatchObject({ code: 0 });
    const wrong = await test(`${HEAD}${small}    expect: allow\n    rule: finance/refunds\n`);
    expect(wrong.out).toContain('expected the rule finance/refunds, decided allow by support/small-refunds');
  });

  it('compares lists in both directions', async () => {
    const list = (expectation: string) => test(`${HEAD}  - {name: list, as: lead, list: payments, ${expectation}}\n`);
    expect(await list('items: [refund]')).toMatchObject({ code: 0 });
    expect((await list('items: []')).out).toContain('listed, but not expected: "refund"');
    expect((await list('contains: [get_invoice]')).out).toContain('not listed: "get_invoice"');
    expect((await list('lacks: [refund]')).code).toBe(1);
  });

  it('fails where fewer rules are exercised than demanded', async () => {
    const text = `${HEAD}${REFUND}    expect: deny\n`;
    expect(await test(text, { minCoverage: 50 })).toMatchObject({
      code: 1,
      err: '1 case, 0 failed, 0 of 16 rules decisive (0 %); at least 50 % are demanded\n',
    });
  });

  it('does not count rules about which there are no cases, and names them', async () => {
    const policy = (what: string) =>
      `version: 1\npolicy: x\nrules:\n  - {id: it, effect: allow, who: {issuers: [corp], groups: [eng]}, what: {upstreams: [payments], ${what}}}\n`;
    const text = `${HEAD}${REFUND}    expect: deny\n`;
    const options = { policies: 'other', minCoverage: 100 };
    for (const what of ['elicitation: [form]', 'sampling: true', 'tasks: [get]'])
      expect(await test(text, options, policy(what))).toEqual({
        code: 0,
        out: 'not counted: x/it names only server requests or tasks, which have no cases\n',
        err: '1 case, 0 failed, 0 of 0 rules decisive (100 %)\n',
      });
    const both = await test(text, options, policy('roots: true, tools: [get_invoice]'));
    expect(both).toMatchObject({ code: 1, out: 'no case is decided by x/it\n' });
  });

  it('writes JUnit XML and JSON', async () => {
    const text = `${HEAD}${REFUND.replace('a refund', '"<refund> & \\"more\\""')}    expect: allow\n`;
    const { out } = await test(text, { format: 'junit' });
    expect(out).toContain('<testsuites name="sallyport" tests="1" failures="1">');
    expect(out).toContain('<testcase name="&lt;refund&gt; &amp; &quot;more&quot;"');
    const json = JSON.parse((await test(text, { format: 'json' })).out);
    expect(json.results).toHaveLength(1);
    expect(json.coverage).toMatchObject({ decisive: [], percent: 0 });
  });

  it.each([
    [
      `${REFUND.replace('as: lead', 'as: laed')}    expect: deny`,
      '6:9 error no principal is named "laed"; did you mean "lead"?',
    ],
    [
      `${REFUND.replace('payments/', 'payment/')}    expect: deny`,
      '7:11 error no upstream is named "payment"; did you mean "payments"?',
    ],
    [
      `${REFUND}    expect: deny\n    reason: denied-by-rul`,
      '10:13 error no reason is named "denied-by-rul"; did you mean "denied-by-rule"?',
    ],
    [
      `${REFUND}    expect: deny\n    rule: finance/refund`,
      '10:11 error no rule is named "finance/refund"; did you mean "finance/refunds"?',
    ],
    [`${REFUND}    expct: deny`, '9:5 error a case has no key "expct"; did you mean "expect"?'],
    [REFUND, '5:5 error this case expects nothing; add "expect"'],
    [`${REFUND}    items: []`, '9:12 error "items" is not possible in a case with "call"'],
    [`${REFUND}    list: payments`, '5:5 error a case has exactly one of call, get, read, list'],
  ])('reports a mistake with its place: %j', async (text, message) => {
    const { code, err } = await test(HEAD + text);
    expect(code).toBe(2);
    expect(err).toContain(`tests/a.policy.test.yaml:${message}\n`);
  });
});

describe('[AR-05] test, with rules that ask', () => {
  const LIBRARY = join(ROOT, 'policies/library');
  const BOTH = join(ROOT, 'policies/both');
  const RULES = 'approvals.policy.yaml';

  /** The policies of the example beside those of the library. */
  const files = {
    ...DISK_FILES,
    readFile: (path: string) =>
      DISK_FILES.readFile(
        path === join(BOTH, RULES) ? join(LIBRARY, RULES) : path.replace(BOTH, join(ROOT, TEAMS_POLICIES)),
      ),
    listFolder: (path: string) =>
      path === BOTH ? [...DISK_FILES.listFolder(join(ROOT, TEAMS_POLICIES)), RULES] : DISK_FILES.listFolder(path),
  };

  it('runs the tests of the library', async () => {
    const io = terminal({ cwd: ROOT });
    const options = { ...TEAMS, folder: 'policies/library', policies: 'policies/both' };
    expect(await runTest(options, io, { ...PORTS, files })).toBe(0);
    expect(io.err()).toMatch(/^7 cases, 0 failed, /);
    // No tool of the example has a name that the rule looks for.
    const never = io
      .out()
      .split('\n')
      .filter((line) => line.includes('approvals/'));
    expect(never).toEqual(['no case is decided by approvals/ask-by-name']);
  });

  const APPROVING = `version: 1
policy: ask
rules:
  - {id: all, effect: allow, who: {anyone: true}, what: {upstreams: [payments], tools: [refund]}}
  - {id: a, effect: require, who: {anyone: true}, what: {upstreams: [payments], tools: [refund]}, approval: {by: reviewer}}
  - {id: b, effect: require, who: {anyone: true}, what: {upstreams: [payments], tools: [refund]}, when: size(findings) > 0, approval: {by: reviewer}}
`;

  it.each([
    ['that is taken for granted', 'expect: allow', 'expected allow, decided approve by ask/a'],
    ['that is taken for a refusal', 'expect: deny', 'expected deny, decided approve by ask/a'],
    ['by another rule', 'expect: approve\n    rule: ask/b', 'expected the rule ask/b, decided approve by ask/a'],
    ['by one of two rules', 'expect: approve\n    rule: ask/b\n    findings: [x]', undefined],
    ['that is expected', 'expect: approve\n    rule: ask/a\n    limits: exhausted', undefined],
  ])('compares an approval %s', async (_, expected, failure) => {
    const options = { policies: 'other' };
    const { out } = await test(`${HEAD}${REFUND}    ${expected}\n`, options, APPROVING);
    expect(
      out
        .split('\n')
        .filter((line) => line.includes('failed'))
        .join(),
    ).toBe(failure === undefined ? '' : `tests/a.policy.test.yaml:5:5 failed a refund: ${failure}`);
  });

  it('has no reason for an approval', async () => {
    const { err } = await test(`${HEAD}${REFUND}    expect: approve\n    reason: approval-required\n`);
    expect(err).toContain('only a refusal has a reason');
  });
});
