// The order of the checks, and what each refusal says, for one question at a time.

import { describe, expect, it, test } from 'vitest';
import type { RuleDocument } from '../../../src/policy/compile/documents.js';
import { decide, decideRequest, isListed, type ListedKind, listsKind } from '../../../src/policy/decide.js';
import type { Decision } from '../../../src/policy/decision.js';
import type { Catalog } from '../../../src/policy/definitions.js';
import type { Principal } from '../../../src/policy/principal.js';
import { matchKey } from '../../../src/policy/rules.js';
import type { JsonObject, Target } from '../../../src/protocol/jsonrpc.js';
import { type CatalogSample, catalog, compiled, policiesOf, principal } from './samples.js';

const ISSUE_SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    owner: { type: 'string' },
    title: { type: 'string' },
    filter: { type: 'object', properties: { state: { type: 'string' } } },
  },
  required: ['owner'],
};

const PINS: CatalogSample = {
  tools: {
    get_issue: {
      inputSchema: ISSUE_SCHEMA,
      definition: { annotations: { destructiveHint: true } },
    },
    list_issues: { inputSchema: { type: 'object' } },
  },
  prompts: { greet: { definition: { arguments: [{ name: 'who', required: true }] } } },
  templates: { 'repo://{owner}/{path}': {} },
};

const ALLOW = {
  id: 'read',
  effect: 'allow',
  who: { groups: ['eng'] },
  what: { upstreams: ['github'], tools: ['get_issue', 'list_*'] },
} as const satisfies RuleDocument;

const ENGINEER = principal({ groups: ['eng'], scopes: ['github:read'] });
const GET_ISSUE: Target = { kind: 'tool', name: 'get_issue' };

type Asked = {
  readonly target?: Target;
  readonly args?: JsonObject | 'unknown';
  readonly who?: Principal;
  readonly catalog?: Catalog;
  readonly upstream?: string;
};

function ask(rules: readonly RuleDocument[], asked: Asked = {}): Decision {
  return decide(policiesOf(rules), {
    principal: asked.who ?? ENGINEER,
    upstream: asked.upstream ?? 'github',
    target: asked.target ?? GET_ISSUE,
    args: asked.args ?? { owner: 'acme' },
    catalog: asked.catalog ?? catalog(PINS),
  });
}

describe('what is hidden', () => {
  it('hides what no allow rule matches by who and what [P-01]', () => {
    const hidden = { verdict: 'deny', reason: 'no-matching-allow', listed: false };
    expect(ask([])).toEqual(hidden);
    expect(ask([ALLOW], { who: principal({ groups: ['ops'] }) })).toEqual(hidden);
    expect(ask([ALLOW], { target: { kind: 'tool', name: 'Get_issue' } })).toEqual(hidden);
    expect(ask([ALLOW], { target: { kind: 'prompt', name: 'get_issue' } })).toEqual(hidden);
    expect(ask([ALLOW], { upstream: 'mail' })).toEqual(hidden);
    expect(ask([ALLOW], { target: { kind: 'tool', name: 'list_'.repeat(500) } })).toEqual(hidden);
  });

  it('hides what a rule denies whatever the arguments, and says nothing of it [P-02]', () => {
    const deny: RuleDocument = {
      id: 'no',
      effect: 'deny',
      who: { anyone: true },
      what: { tools: ['get_*'] },
      reason: 'Ask #platform.',
    };
    const expected = { verdict: 'deny', reason: 'denied-by-rule', listed: false };
    expect(ask([ALLOW, deny])).toEqual({ ...expected, policy: 'main', rule: 'no' });
    expect(isListed(policiesOf([ALLOW, deny]), ENGINEER, 'github', GET_ISSUE)).toBe(false);
  });

  it('maps every pin state to its reason, after policy and before arguments [P-03]', () => {
    const states = {
      pending: 'tool-unpinned',
      unpinned: 'tool-unpinned',
      absent: 'tool-unpinned',
      changed: 'tool-changed',
      blocked: 'tool-blocked',
      invalid: 'tool-invalid',
    } as const;
    for (const [state, reason] of Object.entries(states)) {
      const pins = catalog({
        tools: { get_issue: { state: state as keyof typeof states, inputSchema: ISSUE_SCHEMA } },
      });
      const refused = { verdict: 'deny', reason, listed: false };
      expect(ask([ALLOW], { catalog: pins, args: {} }), state).toEqual(refused);
      expect(ask([ALLOW], { catalog: pins, args: 'unknown' }), state).toEqual(refused);
      expect(ask([], { catalog: pins })).toMatchObject({ reason: 'no-matching-allow' });
    }
  });

  it('stops everything of a stopped upstream, and asks no pin where pinning is off [P-03]', () => {
    const resources: RuleDocument = {
      ...ALLOW,
      what: { ...ALLOW.what, resources: ['repo://acme/**'] },
    };
    const stopped = catalog({ ...PINS, isStopped: true });
    const resource: Target = { kind: 'resource', uri: 'repo://acme/x' };
    expect(ask([resources], { catalog: stopped })).toMatchObject({ reason: 'tool-changed' });
    expect(ask([resources], { catalog: stopped, target: resource })).toMatchObject({
      reason: 'tool-changed',
    });
    const off = catalog({ mode: 'off' });
    expect(ask([ALLOW], { catalog: off }).verdict).toBe('allow');
  });

  it('refuses what is no URI, and decides the others in all of their readings [P-07]', () => {
    const rules: readonly RuleDocument[] = [
      { ...ALLOW, what: { resources: ['repo://acme/**'] } },
      {
        id: 'no',
        effect: 'deny',
        who: { anyone: true },
        what: { resources: ['repo://acme/x/**'] },
      },
    ];
    const read = (uri: string) => ask(rules, { target: { kind: 'resource', uri }, args: {} });
    expect(read('REPO://ACME/%61').verdict).toBe('allow');
    expect(read('repo://acme/a/../x/y')).toMatchObject({ reason: 'denied-by-rule' });
    expect(read('repo://acme/a b')).toEqual({
      verdict: 'deny',
      reason: 'resource-forbidden',
      listed: false,
    });
    expect(read('repo://acme/a/../b').verdict).toBe('allow');
    expect(read('repo://acme/a%2f../b')).toMatchObject({ reason: 'no-matching-allow' });
    expect(read('repo://acme/b#c')).toMatchObject({ reason: 'no-matching-allow' });
    expect(read('repo://acme/a%2f../x/y')).toMatchObject({ reason: 'denied-by-rule' });
    expect(read('repo://acme/../other')).toMatchObject({ reason: 'no-matching-allow' });
    expect(read('repo://other/a')).toMatchObject({ reason: 'no-matching-allow', listed: false });
  });
});

describe('arguments that nobody declared', () => {
  const withMode = (undeclaredArguments: 'declared' | 'observe' | 'any') => catalog({ ...PINS, undeclaredArguments });
  const args = { owner: 'acme', filter: { state: 'open', evil: true } };

  it('are refused by their name, and recorded by their place in names of the schema [P-32]', () => {
    expect(ask([ALLOW], { args })).toEqual({
      verdict: 'deny',
      reason: 'arguments-invalid',
      listed: true,
      advice: 'The argument "evil" in /filter is not declared. Send only declared arguments.',
      violations: [{ pointer: '/filter/*', keyword: 'undeclared' }],
    });
    expect(ask([ALLOW], { args: { owner: 'acme', filter: { state: 'open' } } }).verdict).toBe('allow');
    const listAll: Target = { kind: 'tool', name: 'list_issues' };
    expect(ask([ALLOW], { args, target: listAll }).verdict).toBe('allow');
  });

  it('pass where they are observed or ignored, unless a rule could be bypassed by them [P-32]', () => {
    const reading: RuleDocument = { ...ALLOW, args: { owner: { const: 'acme' } } };
    for (const mode of ['observe', 'any'] as const) {
      expect(ask([ALLOW], { args, catalog: withMode(mode) }).verdict).toBe('allow');
      const twice = { owner: 'acme', Owner: 'other' };
      expect(ask([reading], { args: twice, catalog: withMode(mode) })).toMatchObject({
        reason: 'arguments-invalid',
      });
    }
  });
});

describe('what is listed', () => {
  it('asks scopes first and names all of the alternative with the fewest missing [P-08]', () => {
    const rules: readonly RuleDocument[] = [
      { ...ALLOW, id: 'a', scopes: ['x:1', 'x:2', 'x:3'] },
      { ...ALLOW, id: 'b', scopes: ['github:read', 'github:write'] },
    ];
    expect(ask(rules, { args: { nonsense: 1 } })).toEqual({
      verdict: 'deny',
      reason: 'insufficient-scope',
      listed: true,
      policy: 'main',
      groups: ['eng'],
      rule: 'b',
      scopes: ['github:read', 'github:write'],
    });
    expect(ask(rules, { args: 'unknown' }).verdict).toBe('allow');
  });

  it('asks for the scope of an alternative whose arguments hold, before blaming arguments [P-08]', () => {
    const rules: readonly RuleDocument[] = [
      { ...ALLOW, id: 'a', args: { owner: { const: 'acme' } } },
      { ...ALLOW, id: 'b', args: { owner: { const: 'other' } }, scopes: ['other:read'] },
    ];
    expect(ask(rules, { args: { owner: 'other' } })).toMatchObject({
      reason: 'insufficient-scope',
      scopes: ['other:read'],
    });
    expect(ask(rules, { args: { owner: 'third' } })).toMatchObject({ reason: 'arguments-invalid' });
  });

  it('holds arguments to the pinned schema, with advice that a model can act on [P-09]', () => {
    expect(ask([ALLOW], { args: {} })).toEqual({
      verdict: 'deny',
      reason: 'arguments-invalid',
      listed: true,
      advice: 'The object of arguments lacks the member "owner".',
      violations: [{ pointer: '/owner', keyword: 'required' }],
    });
    expect(ask([ALLOW], { args: { owner: 7 } })).toMatchObject({
      advice: 'The argument at /owner must be string.',
      violations: [{ pointer: '/owner', keyword: 'type' }],
    });
    // Of a policy: what a rule allows of an argument, and what it cannot read.
    const rule: RuleDocument = { ...ALLOW, args: { owner: { enum: ['acme'] } } };
    expect(ask([rule], { args: { owner: 'secret' } })).toMatchObject({
      violations: [{ pointer: '/owner', keyword: 'enum' }],
    });
    expect(ask([rule], { args: { owner: 'acme', Owner: 'secret' } })).toMatchObject({
      violations: [{ pointer: '/*', keyword: 'undeclared' }],
    });
  });

  it('refuses members that the pin does not describe where a rule reads them [P-10]', () => {
    const reading: RuleDocument = { ...ALLOW, args: { owner: { const: 'acme' } } };
    const deep: RuleDocument = {
      ...ALLOW,
      when: 'args.owner == "acme" && args.filter.state == "x"',
    };
    const extra = { owner: 'acme', Owner: 'evil' };
    const nested = { owner: 'acme', filter: { state: 'x', State: 'x' } };
    const open = catalog({ ...PINS, undeclaredArguments: 'any' });
    expect(ask([ALLOW], { args: extra, catalog: open }).verdict).toBe('allow');
    for (const [rule, args] of [
      [reading, extra],
      [deep, nested],
    ] as const) {
      const refused = ask([rule], { args, catalog: open });
      expect(refused).toMatchObject({ reason: 'arguments-invalid', listed: true });
      expect(JSON.stringify(refused)).not.toMatch(/Owner|State|evil/);
    }
    // An allow that reads arguments takes nothing away from one that does not.
    expect(ask([ALLOW, { ...reading, id: 'r' }], { args: extra, catalog: open }).verdict).toBe('allow');
    const deny: RuleDocument = {
      id: 'd',
      effect: 'deny',
      who: { anyone: true },
      what: { tools: ['get_issue'] },
      when: 'args.owner == "other"',
    };
    expect(ask([ALLOW, deny], { args: extra, catalog: open })).toMatchObject({
      reason: 'arguments-invalid',
    });
    expect(ask([ALLOW, deny]).verdict).toBe('allow');
  });

  it('describes the arguments of prompts by their list [P-10]', () => {
    const rule: RuleDocument = {
      ...ALLOW,
      what: { prompts: ['greet'] },
      when: 'args.who.size() < 9',
    };
    const target: Target = { kind: 'prompt', name: 'greet' };
    expect(ask([rule], { target, args: { who: 'ada' } }).verdict).toBe('allow');
    expect(ask([rule], { target, args: { who: 'ada', Who: 'x' } })).toMatchObject({
      reason: 'arguments-invalid',
    });
  });

  it('lets a deny with conditions win, with its reason as advice [P-11]', () => {
    const deny: RuleDocument = {
      id: 'no',
      effect: 'deny',
      who: { anyone: true },
      what: { tools: ['get_issue'] },
      args: { owner: { const: 'secret' } },
      reason: 'Not that owner.',
    };
    expect(ask([ALLOW, deny], { args: { owner: 'secret' } })).toEqual({
      verdict: 'deny',
      reason: 'denied-by-rule',
      listed: true,
      policy: 'main',
      rule: 'no',
      advice: 'Not that owner.',
    });
    expect(ask([ALLOW, deny]).verdict).toBe('allow');
    expect(ask([ALLOW, deny], { args: 'unknown' }).verdict).toBe('allow');
  });

  it('says which argument a rule does not allow, without the value [P-09]', () => {
    const rule: RuleDocument = { ...ALLOW, args: { owner: { const: 'acme' } } };
    expect(ask([rule], { args: { owner: 'evil-value' } })).toMatchObject({
      reason: 'arguments-invalid',
      advice: 'The argument "owner" is not allowed by a policy rule: must be the one allowed value.',
    });
    const other: RuleDocument = { ...ALLOW, args: { title: true } };
    expect(ask([other])).toMatchObject({
      advice: 'The argument "title" is required by a policy rule.',
    });
  });
});

describe('errors in rules', () => {
  const broken = 'args.title == "x"';

  it('denies for an error in a deny or require rule [P-05]', () => {
    const what = { tools: ['get_issue'] };
    const rules: readonly RuleDocument[] = [
      { id: 'd', effect: 'deny', who: { anyone: true }, what, when: broken },
      { id: 'q', effect: 'require', who: { anyone: true }, what, when: broken, maxResultBytes: 5 },
    ];
    for (const rule of rules) {
      expect(ask([ALLOW, rule])).toMatchObject({
        reason: 'policy-error',
        listed: true,
        rule: rule.id,
      });
    }
  });

  it('passes over an allow rule with an error, and names it if nothing else allows [P-05]', () => {
    const failing: RuleDocument = { ...ALLOW, id: 'f', when: broken };
    expect(ask([failing])).toMatchObject({ reason: 'policy-error', rule: 'f', listed: true });
    expect(ask([failing, ALLOW])).toMatchObject({ verdict: 'allow', rule: 'read' });
    expect(ask([failing], { args: { owner: 'a', title: 'x' } }).verdict).toBe('allow');
  });

  it('ends in a refusal when anything throws [P-05]', () => {
    const thrower = { ...catalog(PINS), statusOf: () => JSON.parse('{') as never };
    expect(ask([ALLOW], { catalog: thrower })).toEqual({
      verdict: 'deny',
      reason: 'policy-error',
      listed: false,
    });
  });
});

describe('what an allow owes', () => {
  const rate = (count: number) => ({ rate: { count, windowMs: 60_000 }, per: 'subject' as const });

  it('records the alternative with the fewest obligations, then the smallest id [P-12]', () => {
    const limited: RuleDocument = { ...ALLOW, id: 'a', limits: rate(1) };
    expect(ask([limited, { ...ALLOW, id: 'z' }, { ...ALLOW, id: 'c' }])).toEqual({
      verdict: 'allow',
      policy: 'main',
      groups: ['eng'],
      rule: 'c',
      text: expect.stringMatching(/^[0-9a-f]{64}$/),
      obligations: [],
    });
    expect(ask([{ ...limited, id: 'b' }, limited])).toMatchObject({
      rule: 'a',
      obligations: [{ kind: 'rate', limit: { rule: 'main/a', count: 1, windowMs: 60_000, per: 'subject' } }],
    });
  });

  it('adds what every matching require rule asks for, the strictest of each [P-13]', () => {
    const base = { effect: 'require', who: { anyone: true }, what: { tools: ['*'] } } as const;
    const decision = ask([
      ALLOW,
      {
        ...base,
        id: 'q1',
        maxResultBytes: 900,
        inspect: 'careful',
        audit: { capture: ['/owner'] },
      },
      { ...base, id: 'q2', maxResultBytes: 500, inspect: 'default', limits: rate(3) },
      { ...base, id: 'q3', audit: { capture: ['/title', '/owner'] }, args: { owner: true } },
      { ...base, id: 'q4', maxResultBytes: 1, args: { owner: { const: 'other' } } },
    ]);
    expect(decision).toMatchObject({
      verdict: 'allow',
      rule: 'read',
      obligations: [
        { kind: 'rate', limit: { rule: 'main/q2', count: 3 } },
        { kind: 'max-result-bytes', bytes: 500 },
        { kind: 'inspect', profile: 'careful' },
        { kind: 'inspect', profile: 'default' },
        { kind: 'capture', pointers: ['/owner', '/title'] },
      ],
    });
  });
});

describe('what is captured of a refusal', () => {
  const capturing = (id: string, capture: readonly string[], more: object = {}): RuleDocument =>
    ({
      ...{ id, effect: 'require', who: { anyone: true }, what: { tools: ['*'] } },
      audit: { capture },
      ...more,
    }) as RuleDocument;

  it('is what the matching require rules name, whatever refuses [O-09]', () => {
    const elsewhere = capturing('q3', ['/other'], { args: { owner: { const: 'other' } } });
    const unclear = capturing('q4', ['/unclear'], { when: 'args.missing == 1' });
    const rules = [capturing('q1', ['/title']), capturing('q2', ['/owner', '/title']), elsewhere];
    const refused = { verdict: 'deny', captures: ['/owner', '/title'] };
    expect(ask(rules)).toMatchObject({ ...refused, reason: 'no-matching-allow' });
    const no: RuleDocument = { ...ALLOW, id: 'no', effect: 'deny' } as RuleDocument;
    expect(ask([ALLOW, no, ...rules])).toMatchObject({ ...refused, reason: 'denied-by-rule' });
    // A condition that cannot be evaluated leaves nothing out of the record.
    expect(ask([...rules, unclear])).toMatchObject({ captures: ['/owner', '/title', '/unclear'] });
    expect(ask([no])).not.toHaveProperty('captures');
  });
});

describe('a "when" that reads caller and item alone belongs to who', () => {
  const BY_SUBJECT = 'principal.subject == "ada"';
  const FAILS = 'principal.claims.absent == 1';
  const OF_ARGS = 'args.owner == "acme"';
  const HINT = 'tool.annotations.destructiveHint';
  const allow = (when: string, more: object = {}) => ({ ...ALLOW, when, ...more }) as RuleDocument;
  const deny = (when: string, more: object = {}) =>
    ({ ...{ id: 'no', effect: 'deny', who: { anyone: true }, what: ALLOW.what }, when, ...more }) as RuleDocument;
  const ada = principal({ groups: ['eng'], subject: 'ada' });
  const bob = principal({ groups: ['eng'], subject: 'bob' });
  const OTHER = { owner: 'other' };

  /** The rules, who asks with which arguments, whether the item is listed, and what the call is. */
  const ROWS: readonly (readonly [string, readonly RuleDocument[], Principal, JsonObject, boolean, string])[] = [
    ['an allow that is true', [allow(BY_SUBJECT)], ada, OTHER, true, 'allow'],
    ['an allow that is false', [allow(BY_SUBJECT)], bob, OTHER, false, 'no-matching-allow'],
    ['an allow that fails', [allow(FAILS)], ada, OTHER, false, 'policy-error'],
    ['an allow that fails beside one that lists', [allow(FAILS), { ...ALLOW, id: 'z' }], ada, OTHER, true, 'allow'],
    [
      'an allow by the name of the tool',
      [allow('tool.name.startsWith("list_")')],
      ada,
      OTHER,
      false,
      'no-matching-allow',
    ],
    [
      'the part of an allow that is false',
      [allow(`${BY_SUBJECT} && ${OF_ARGS}`)],
      bob,
      OTHER,
      false,
      'no-matching-allow',
    ],
    ['the other part of it', [allow(`${OF_ARGS} && ${BY_SUBJECT}`)], ada, OTHER, true, 'arguments-invalid'],
    ['both parts of it', [allow(`${OF_ARGS} && (${BY_SUBJECT})`)], ada, { owner: 'acme' }, true, 'allow'],
    ['parts joined otherwise', [allow(`${BY_SUBJECT} || ${OF_ARGS}`)], bob, OTHER, true, 'arguments-invalid'],
    [
      'a part that fails beside one that is false',
      [allow(`${FAILS} && false`)],
      ada,
      OTHER,
      false,
      'no-matching-allow',
    ],
    [
      'an allow with args',
      [allow(BY_SUBJECT, { args: { owner: { const: 'acme' } } })],
      bob,
      OTHER,
      false,
      'no-matching-allow',
    ],
    ['a deny that is true', [ALLOW, deny(BY_SUBJECT)], ada, OTHER, false, 'denied-by-rule'],
    ['a deny that is false', [ALLOW, deny(BY_SUBJECT)], bob, OTHER, true, 'allow'],
    ['a deny that fails', [ALLOW, deny(FAILS)], ada, OTHER, false, 'policy-error'],
    [
      'a deny that fails beside one that is true',
      [ALLOW, deny(FAILS), deny('true', { id: 'p' })],
      ada,
      OTHER,
      false,
      'denied-by-rule',
    ],
    ['a deny by annotations', [ALLOW, deny(HINT)], ada, OTHER, false, 'denied-by-rule'],
    [
      'a deny by annotations that are absent',
      [ALLOW, deny('tool.annotations.idempotentHint')],
      ada,
      OTHER,
      false,
      'policy-error',
    ],
    ['a deny by annotations that do not hold', [ALLOW, deny(`!${HINT}`)], ada, OTHER, true, 'allow'],
    ['a deny with another part', [ALLOW, deny(`${BY_SUBJECT} && ${OF_ARGS}`)], ada, OTHER, true, 'allow'],
    [
      'a deny with both parts true',
      [ALLOW, deny(`${BY_SUBJECT} && ${OF_ARGS}`)],
      ada,
      { owner: 'acme' },
      true,
      'denied-by-rule',
    ],
    [
      'a deny with a part that fails and one that is false',
      [ALLOW, deny(`${FAILS} && ${OF_ARGS}`)],
      ada,
      OTHER,
      true,
      'allow',
    ],
    [
      'a deny with a part that fails and one that is true',
      [ALLOW, deny(`${FAILS} && ${OF_ARGS}`)],
      ada,
      { owner: 'acme' },
      true,
      'policy-error',
    ],
    ['a deny with args', [ALLOW, deny(BY_SUBJECT, { args: { owner: { const: 'acme' } } })], ada, OTHER, true, 'allow'],
    ['a require', [ALLOW, deny(FAILS, { effect: 'require', maxResultBytes: 9 })], ada, OTHER, true, 'policy-error'],
  ];

  it.each(ROWS)('%s [P-02]', (_, rules, who, args, isShown, outcome) => {
    const decision = ask(rules, { who, args });
    expect(decision.verdict === 'allow' ? 'allow' : decision.reason).toBe(outcome);
    expect(ask(rules, { who, args: 'unknown' }).verdict === 'allow').toBe(isShown);
    expect(isListed(policiesOf(rules), who, 'github', GET_ISSUE, catalog(PINS))).toBe(isShown);
    if (decision.verdict === 'deny') expect(decision.listed).toBe(isShown);
  });

  it('says of a definition that has drifted that it has, whatever its annotations [P-03]', () => {
    const drifted = catalog({ tools: { get_issue: { ...PINS.tools?.['get_issue'], state: 'changed' } } });
    expect(ask([ALLOW, deny(HINT)], { catalog: drifted })).toMatchObject({ reason: 'tool-changed', listed: false });
  });

  it('gives callers who differ in what rules read keys of their own, and no others [P-14]', () => {
    const keyUnder = (rules: readonly RuleDocument[]) => {
      const policies = policiesOf(rules);
      return (parts: Parameters<typeof principal>[0]) => matchKey(policies, principal({ groups: ['eng'], ...parts }));
    };
    const bySubject = keyUnder([allow(BY_SUBJECT)]);
    expect(bySubject({ subject: 'ada' })).not.toBe(bySubject({ subject: 'bob' }));
    expect(bySubject({ subject: 'bob' })).toBe(bySubject({ subject: 'eve', scopes: ['any'] }));
    const byName = keyUnder([allow('tool.name.startsWith(principal.claims.prefix)')]);
    expect(byName({ claims: { prefix: 'get' } })).not.toBe(byName({ claims: { prefix: 'list' } }));
    expect(byName({ claims: { prefix: 'get' } })).toBe(byName({ claims: { prefix: 'get', jti: 'x' }, subject: 'eve' }));
    const failing = keyUnder([deny(FAILS)]);
    expect(failing({})).not.toBe(failing({ claims: { absent: 1 } }));
  });

  it('names the kinds of which something is listed [T-01]', () => {
    const tools = (rules: readonly RuleDocument[], who: Principal) =>
      listsKind(policiesOf(rules), who, catalog(PINS), 'tool');
    expect(tools([allow(BY_SUBJECT)], ada)).toBe(true);
    expect(tools([allow(BY_SUBJECT)], bob)).toBe(false);
    expect(tools([{ ...ALLOW, what: { tools: ['get_issue'] } }, deny(HINT)], ada)).toBe(false);
    expect(tools([{ ...ALLOW, what: { tools: ['get_issue'] } }, deny(`!${HINT}`)], ada)).toBe(true);
  });
});

describe('requests and lists', () => {
  it('never decides a request as if it were a list [P-04]', () => {
    const rule: RuleDocument = {
      ...ALLOW,
      what: { resources: ['repo://acme/**'] },
      scopes: ['repo:read'],
    };
    const question = {
      principal: ENGINEER,
      upstream: 'github',
      target: { kind: 'resource', uri: 'repo://acme/x' },
      args: 'unknown',
      catalog: catalog(PINS),
    } as const;
    expect(decide(policiesOf([rule]), question).verdict).toBe('allow');
    expect(decideRequest(policiesOf([rule]), question)).toMatchObject({
      reason: 'insufficient-scope',
    });
  });

  it('lets every verified principal use the protocol itself, with no policy at all [P-01]', () => {
    expect(ask([], { target: { kind: 'none' }, who: principal() })).toEqual({
      verdict: 'allow',
      policy: 'builtin',
      rule: 'protocol',
      text: '',
      obligations: [],
    });
  });

  it('gives callers one key exactly when the same rules match them by who [P-14]', () => {
    const { policies } = compiled([
      { ...ALLOW, id: 'a' },
      { ...ALLOW, id: 'b', who: { subjects: ['ada'] } },
      { ...ALLOW, id: 'c', who: { claims: { level: [3] } } },
    ]);
    const key = (parts: Parameters<typeof principal>[0]) => matchKey(policies, principal(parts));
    expect(key({ groups: ['eng'], subject: 'x' })).toBe(key({ groups: ['eng', 'ops'], subject: 'y', scopes: ['any'] }));
    expect(key({ groups: ['eng'] })).not.toBe(key({ groups: ['eng'], subject: 'x' }));
    expect(key({ claims: { level: [1, 3] } })).toBe(key({ claims: { level: 3 } }));
    expect(key({ claims: { level: '3' } })).not.toBe(key({ claims: { level: 3 } }));
  });
});

describe('visible kinds', () => {
  const KINDS: readonly ListedKind[] = ['tool', 'prompt', 'resource'];

  function seen(rules: readonly RuleDocument[], sample: CatalogSample = {}): readonly ListedKind[] {
    const pins = { tools: { read: {} }, prompts: { greet: {} }, ...sample };
    return KINDS.filter((kind) => listsKind(policiesOf(rules), principal(), catalog(pins), kind));
  }

  function allow(what: RuleDocument['what'], id = 'one'): RuleDocument {
    return { id, effect: 'allow', who: { anyone: true }, what };
  }

  describe('the kinds that a caller sees something of', () => {
    test('[T-01] are none without a rule, and those that allow rules list', () => {
      expect(seen([])).toEqual([]);
      expect(seen([allow({ tools: ['read'] })])).toEqual(['tool']);
      expect(seen([allow({ prompts: ['*'] })])).toEqual(['prompt']);
      expect(seen([allow({ resources: ['memo://**'] })])).toEqual(['resource']);
      expect(seen([allow({ templates: ['memo://{id}'] })])).toEqual(['resource']);
      expect(seen([allow({ upstreams: ['mail'], tools: ['read'] })])).toEqual([]);
      expect(seen([allow({ tools: ['other*'] })])).toEqual([]);
    });

    test('[T-01] are not those whose every name is denied', () => {
      const deny: RuleDocument = {
        id: 'two',
        effect: 'deny',
        who: { anyone: true },
        what: { tools: ['*'] },
      };
      expect(seen([allow({ tools: ['read'] }), deny])).toEqual([]);
    });

    test('[T-01] stay while a definition has drifted, and follow patterns without pins', () => {
      expect(seen([allow({ tools: ['read'] })], { tools: { read: { state: 'changed' } } })).toEqual(['tool']);
      expect(seen([allow({ tools: ['any*'] })], { mode: 'off', tools: {} })).toEqual(['tool']);
    });
  });
});
