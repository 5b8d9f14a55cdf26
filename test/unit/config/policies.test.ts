import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { loadPolicies } from '../../../src/config/load.js';
import { compilePolicies } from '../../../src/policy/compile/compile.js';
import type { PolicyDiagnostic, PolicyDocument } from '../../../src/policy/compile/documents.js';
import { rulesFor } from '../../../src/policy/rules.js';
import { principal } from '../policy/samples.js';
import { filesOf, lineOf } from './reading.js';

const FOLDER = '/srv/policies';
const SENSITIVE_POINTER = 'a JSON pointer such as /structuredContent/ssn, /content/*/text or /arguments/ssn';
const GOOD = `version: 1
policy: github
owner: team@example.com
rules:
  - id: read
    effect: allow
    who: {issuers: [corp], groups: [eng]}
    what: {upstreams: [github], tools: [get_issue, "list_*"], resources: ["repo://acme/**"]}
    scopes: [github:read]
    args: {owner: {const: acme}}
    when: args.title.size() < 200
    limits: {rate: 60/min}
  - id: keep
    effect: require
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["delete_*"]}
    limits: {rate: 5/s, per: client}
    inspect: default
    maxResultBytes: 64KiB
    audit: {capture: [/id]}
  - id: no-wipe
    effect: deny
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["wipe_*"]}
    reason: Ask.
`;

type Compile = (documents: readonly PolicyDocument[], hash: string) => readonly PolicyDiagnostic[];

function load(files: Readonly<Record<string, string>>, compile: Compile = () => []) {
  const named = Object.entries(files).map(([name, text]) => [`${FOLDER}/${name}`, text]);
  return loadPolicies(FOLDER, {
    files: filesOf(Object.fromEntries(named)),
    compile: (documents, hash) => ({ policies: 'compiled', diagnostics: compile(documents, hash) }),
  });
}

function linesOf(text: string, compile?: Compile): readonly string[] {
  return load({ 'a.policy.yaml': text }, compile).diagnostics.map(lineOf);
}

describe('[P-18] defaults of a file', () => {
  const text = `version: 1
policy: teams
defaults: {issuers: [corp], upstreams: [github]}
rules:
  - {id: a, effect: allow, who: {subjects: [ada]}, what: {tools: [t]}}
  - {id: b, effect: allow, who: {issuers: [other], subjects: [bob]}, what: {upstreams: [mail], tools: [t]}}
  - {id: c, effect: deny, who: {anyone: true}, what: {tools: [u]}}
`;
  const names = {
    upstreams: ['github', 'mail'].map((name) => ({ name, strict: false })),
    issuers: ['corp', 'other'],
    profiles: [],
  };

  it('are those of rules that name none, and never narrow anyone', () => {
    const compiled = loadPolicies(FOLDER, {
      files: filesOf({ [`${FOLDER}/a.policy.yaml`]: text }),
      compile: (documents, hash) => compilePolicies(documents, { ...names, hash }),
    });
    expect(compiled.diagnostics).toEqual([]);
    const { policies } = compiled;
    if (policies === undefined) throw new Error('not compiled');
    const rulesOf = (issuer: string, subject: string, upstream: string) =>
      rulesFor(policies, principal({ issuer, subject }), upstream).map(({ rule }) => rule);
    expect(rulesOf('corp', 'ada', 'github')).toEqual(['a', 'c']);
    expect(rulesOf('other', 'ada', 'github')).toEqual(['c']);
    expect(rulesOf('corp', 'ada', 'mail')).toEqual([]);
    expect(rulesOf('other', 'bob', 'mail')).toEqual(['b']);
  });

  it('are reported once, where they stand', () => {
    const wrong = text.replace('issuers: [corp], upstreams: [github]', 'upstreams: [gitub]');
    const lines = linesOf(
      wrong,
      (documents, hash) => compilePolicies(documents, { ...names, issuers: ['corp'], hash }).diagnostics,
    );
    expect(lines).toEqual([
      expect.stringMatching(/^3:\d+ .*no upstream is named "gitub"/),
      expect.stringContaining('no issuer is named "other"'),
    ]);
  });
});

describe('[C-14] policies are read from a folder', () => {
  it('turns files into documents, units into numbers', () => {
    const { documents, policies, diagnostics, hash } = load({ 'a.policy.yaml': GOOD });
    expect(diagnostics).toEqual([]);
    expect(policies).toBe('compiled');
    expect(hash).toMatch(/^[0-9a-f]{64}$/);
    expect(documents[0]).toMatchObject({ file: `${FOLDER}/a.policy.yaml`, policy: 'github' });
    expect(documents[0]?.rules[0]).toEqual({
      id: 'read',
      effect: 'allow',
      who: { issuers: ['corp'], groups: ['eng'] },
      what: {
        upstreams: ['github'],
        tools: ['get_issue', 'list_*'],
        resources: ['repo://acme/**'],
      },
      scopes: ['github:read'],
      args: { owner: { const: 'acme' } },
      when: 'args.title.size() < 200',
      limits: { rate: { count: 60, windowMs: 60_000 }, per: 'subject' },
    });
    expect(documents[0]?.rules[1]).toMatchObject({
      limits: { rate: { count: 5, windowMs: 1000 }, per: 'client' },
      maxResultBytes: 65_536,
      audit: { capture: ['/id'] },
    });
  });

  it('reads only *.policy.yaml of the folder itself', () => {
    const { documents } = load({
      'a.policy.yaml': GOOD,
      'a.policy.test.yaml': 'x: [',
      'notes.yaml': 'x: [',
      '.hidden.policy.yaml': 'x: [',
    });
    expect(documents).toHaveLength(1);
  });

  it('has one hash for one content, whatever the order of the folder', () => {
    const a = GOOD.replace('policy: github', 'policy: a');
    const one = load({ 'a.policy.yaml': a, 'b.policy.yaml': GOOD }).hash;
    expect(load({ 'b.policy.yaml': GOOD, 'a.policy.yaml': a }).hash).toBe(one);
    expect(load({ 'a.policy.yaml': a, 'b.policy.yaml': `${GOOD}#` }).hash).not.toBe(one);
    expect(load({ 'a.policy.yaml': GOOD, 'b.policy.yaml': a }).hash).not.toBe(one);
  });

  it('warns where no file is, and refuses a folder that cannot be read', () => {
    const none = load({ 'notes.txt': '' });
    expect(none.policies).toBe('compiled');
    expect(none.diagnostics.map(lineOf)).toEqual([
      '1:1 warning the folder has no file whose name ends in .policy.yaml, so nothing is allowed',
    ]);
    const gone = load({});
    expect(gone.policies).toBeUndefined();
    expect(gone.diagnostics[0]?.rule).toBe('unreadable');
  });

  it('gives faults of the compiler their line, column and suggestion', () => {
    const diagnostic: PolicyDiagnostic = {
      file: `${FOLDER}/a.policy.yaml`,
      path: ['rules', 0, 'who', 'issuers', 0],
      severity: 'error',
      message: 'unknown issuer "crop"',
      suggestion: 'corp',
    };
    expect(linesOf(GOOD, () => [diagnostic])).toEqual(['7:21 error unknown issuer "crop"; did you mean "corp"?']);
    expect(load({ 'a.policy.yaml': GOOD }, () => [diagnostic]).policies).toBeUndefined();
    const warning = { ...diagnostic, severity: 'warning' as const };
    expect(load({ 'a.policy.yaml': GOOD }, () => [warning]).policies).toBe('compiled');
  });

  it('reports every file in one run, and still compiles the right ones', () => {
    let compiled: readonly string[] = [];
    const { diagnostics, policies } = load(
      { 'a.policy.yaml': 'version: [', 'b.policy.yaml': GOOD, 'c.policy.yaml': 'version: 1\n' },
      (documents) => {
        compiled = documents.map(({ policy }) => policy);
        return [];
      },
    );
    expect(new Set(diagnostics.map(({ file }) => file)).size).toBe(2);
    expect(compiled).toEqual(['github']);
    expect(policies).toBeUndefined();
  });
});

describe('[C-06] whatever a policy file holds', () => {
  it('is read or refused, never a crash (property)', () => {
    const lines = GOOD.split('\n');
    const written = fc.oneof(
      fc.string(),
      fc.json({ maxDepth: 2 }).map((json) => `rules: ${json}`),
    );
    fc.assert(
      fc.property(fc.nat(lines.length - 1), written, (index, text) => {
        const changed = lines.map((line, at) => (at === index ? text : line)).join('\n');
        const { documents, diagnostics } = load({ 'a.policy.yaml': changed });
        expect(documents.length === 0).toBe(diagnostics.length > 0);
      }),
      { numRuns: 300 },
    );
  });
});

describe('[C-15] keys by effect', () => {
  const swap = (part: string, by: string): string => {
    expect(GOOD).toContain(part);
    return GOOD.replace(part, by);
  };
  const more = (key: string): string => `${GOOD}${key}\n`;

  it.each([
    [
      'a reason for an allow',
      swap('scopes: [github:read]', 'reason: x'),
      '9:5 error an allow rule has no key "reason"',
    ],
    ['scopes for a deny', swap('reason: Ask.', 'scopes: [a]'), '25:5 error a deny rule has no key "scopes"'],
    ['limits for a deny', swap('reason: Ask.', 'limits: {rate: 1/s}'), '25:5 error a deny rule has no key "limits"'],
    ['scopes for a require', swap('inspect: default', 'scopes: [a]'), '18:5 error a require rule has no key "scopes"'],
    [
      'an unknown effect',
      swap('effect: allow', 'effect: alow'),
      '6:13 error "alow" is not one of allow, deny, require; did you mean "allow"?',
    ],
    ['a version', swap('version: 1', 'version: 2'), '1:10 error expected 1, found 2'],
    [
      'sampling: false',
      swap('tools: ["wipe_*"]', 'sampling: false'),
      '24:40 error expected true, or a map with includeContext and tools',
    ],
    [
      'a context of sampling',
      swap('tools: ["wipe_*"]', 'sampling: {includeContext: [thisserver]}'),
      '24:58 error "thisserver" is not one of none, thisServer, allServers; did you mean "thisServer"?',
    ],
    [
      'a key of sampling',
      swap('tools: ["wipe_*"]', 'sampling: {tool: [search]}'),
      '24:41 error unknown key "tool"; did you mean "tools"?',
    ],
    [
      'tools of sampling',
      swap('tools: ["wipe_*"]', 'sampling: {tools: true}'),
      '24:48 error expected false or a list of names of tools',
    ],
    [
      'an elicitation',
      swap('tools: ["wipe_*"]', 'elicitation: url'),
      '24:43 error expected a list of form and url, or a map with the hosts of links, found text; did you mean "[url]"?',
    ],
    [
      'an elicitation without hosts',
      swap('tools: ["wipe_*"]', 'elicitation: {url: true}'),
      '24:49 error expected a list of hosts, found true or false',
    ],
    [
      'a use of tasks',
      swap('tools: ["wipe_*"]', 'tasks: [canel]'),
      '24:38 error "canel" is not one of get, list, update, cancel; did you mean "cancel"?',
    ],
    ['no effect', swap('    effect: allow\n', ''), '5:5 error the key "effect" is missing'],
    ['no who', swap('    who: {issuers: [corp], groups: [eng]}\n', ''), '5:5 error the key "who" is missing'],
    ['an empty who', swap('{issuers: [corp], groups: [eng]}', '{}'), '7:10 error this map must not be empty'],
    ['anyone: false', swap('{anyone: true}', '{anyone: false}'), '15:19 error expected true, found false'],
    ['an empty list', swap('groups: [eng]', 'groups: []'), '7:36 error this list must not be empty'],
    [
      'a kind misspelt',
      swap('tools: [get_issue', 'tool: [get_issue'),
      '8:33 error unknown key "tool"; did you mean "tools"?',
    ],
    [
      'a rate without a unit',
      swap('60/min', '60'),
      '12:20 error expected a rate such as 60/min, found a number; did you mean "60/min"?',
    ],
    ['a size', swap('64KiB', '64kb'), '19:21 error expected a size such as 64KiB or 1MiB; did you mean "64KiB"?'],
    ['a pointer', swap('[/id]', '[id]'), '20:23 error expected a JSON pointer such as /id'],
    ['no sensitive field', more('sensitive: {}'), '26:12 error this map must not be empty'],
    [
      'a pointer of neither results nor arguments',
      more('sensitive: {crm/get: [/result/ssn]}'),
      `26:23 error expected ${SENSITIVE_POINTER}, or {pointer, effect}`,
    ],
    [
      'a malformed pointer',
      more('sensitive: {crm/get: [{pointer: /structuredContent/a~2}]}'),
      `26:33 error expected ${SENSITIVE_POINTER}`,
    ],
    [
      'less of content than a text',
      more('sensitive: {crm/get: [/content/0/type]}'),
      `26:23 error expected ${SENSITIVE_POINTER}, or {pointer, effect}`,
    ],
    [
      'an effect',
      more('sensitive: {crm/get: [{pointer: /content, effect: tags}]}'),
      '26:51 error "tags" is not one of redact, tag; did you mean "tag"?',
    ],
    [
      'a rule id',
      swap('id: read', 'id: "Read this"'),
      '5:9 error expected a rule id of lower-case letters, digits, ., - and _',
    ],
  ])('%s', (_, text, line) => expect(linesOf(text)).toContain(line));

  it.each([
    ['by nobody', '{expires: 5m}', 'error the key "by" is missing'],
    ['by someone else', '{by: owner}', 'error "owner" is not one of caller, reviewer'],
    ['a key of the other party', '{by: caller, count: 2}', 'error an approval by the caller has no key "count"'],
    [
      'remembered by a reviewer',
      '{by: reviewer, remember: none}',
      'error an approval by a reviewer has no key "remember"',
    ],
    ['proved by a reviewer', '{by: reviewer, proof: login}', 'error an approval by a reviewer has no key "proof"'],
    ['another proof', '{by: caller, proof: token}', 'error "token" is not one of login, client'],
    ['four persons', '{by: reviewer, count: 4}', 'error expected a whole number from 1 to 3'],
    ['no group', '{by: reviewer, reviewers: {groups: []}}', 'error this list must not be empty'],
    ['remembered by a word', '{by: caller, remember: always}', 'error expected none, or a map with for and same'],
    ['remembered for no time', '{by: caller, remember: {same: [/a]}}', 'error the key "for" is missing'],
    [
      'arguments that are no pointers',
      '{by: caller, remember: {for: 1m, same: [owner]}}',
      'error expected a JSON pointer such as /owner',
    ],
    [
      'a number for a time',
      '{by: caller, expires: 10}',
      'error expected a duration such as 30s, 5m or 1h, found a number; did you mean "10s"?',
    ],
  ])('[AR-01] an approval: %s', (_, written, message) => {
    const lines = linesOf(swap('inspect: default', `approval: ${written}`));
    expect(lines).toEqual([expect.stringContaining(message)]);
    expect(lines[0]).toMatch(/^18:/);
  });

  it('[AR-01] an approval is what a rule and a flow say', () => {
    const text = `version: 1
policy: ask
rules:
  - id: mine
    effect: require
    who: {anyone: true}
    what: {upstreams: [github], tools: [t]}
    approval: {by: caller, proof: client, expires: 5m, use: 30s, remember: {for: 10m, same: [/owner]}}
    reason: It is gone for good.
  - id: theirs
    effect: require
    who: {anyone: true}
    what: {upstreams: [github], tools: [t]}
    limits: {rate: 3/h}
    approval: {by: reviewer, asks: beyond-limits, reviewers: {groups: [ops]}, count: 2, expires: 5m, use: 30s}
labels: {github: [egress]}
flows:
  - id: out
    from: untrusted
    to: egress
    effect: approve
    approval: {by: reviewer, reviewers: {groups: [ops]}, count: 2, expires: 5m, use: 30s}
    reason: It leaves the house.
  - id: own
    from: untrusted
    to: egress
    effect: approve
    approval: {by: caller, proof: login, expires: 5m, use: 30s, remember: none}
`;
    const { policies, diagnostics } = loadPolicies(FOLDER, {
      files: filesOf({ [`${FOLDER}/a.policy.yaml`]: text }),
      compile: (documents, hash) =>
        compilePolicies(documents, { upstreams: [{ name: 'github', strict: false }], issuers: [], profiles: [], hash }),
    });
    expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
    if (policies === undefined) throw new Error('not compiled');
    const times = { expiresMs: 300_000, useMs: 30_000 };
    const [mine, theirs] = rulesFor(policies, principal(), 'github');
    const remember = { forMs: 600_000, same: ['/owner'] };
    const byReviewers = { by: 'reviewer', groups: ['ops'], count: 2, ...times };
    expect(mine).toMatchObject({
      approval: { reason: 'It is gone for good.', terms: { by: 'caller', proof: 'client', remember, ...times } },
    });
    expect(theirs).toMatchObject({ approval: { terms: byReviewers, isBeyondLimits: true } });
    expect(policies.flows?.of('github', 'tool', 't').flows).toMatchObject([
      { approval: { rule: 'ask/out', reason: 'It leaves the house.', terms: byReviewers } },
      { approval: { rule: 'ask/own', terms: { by: 'caller', proof: 'login', remember: undefined, ...times } } },
    ]);
  });

  it('[AR-01] an approval has its defaults, and times in milliseconds', () => {
    const approvals = ['{by: caller}', '{by: reviewer, reviewers: {groups: [ops]}}'].map((written) => {
      const { documents, diagnostics } = load({ 'a.policy.yaml': swap('inspect: default', `approval: ${written}`) });
      expect(diagnostics).toEqual([]);
      return documents[0]?.rules[1];
    });
    const times = { expiresMs: 600_000, useMs: 120_000 };
    expect(approvals).toMatchObject([
      { approval: { by: 'caller', proof: 'login', remember: 'none', ...times } },
      { approval: { by: 'reviewer', reviewers: { groups: ['ops'] }, count: 1, ...times } },
    ]);
  });
});
