// What rules ask of a person: what the decision says of it, which calls a rule asks about, and what several ask together.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ApprovalRequirement, type ApprovalTerms, demandOf } from '../../../src/policy/approval-terms.js';
import { compilePolicies } from '../../../src/policy/compile/compile.js';
import type { ApprovalDocument, RuleDocument } from '../../../src/policy/compile/documents.js';
import { decideRequest, decideServerRequest, decideWithoutArguments, isListed } from '../../../src/policy/decide.js';
import { approvalOf, type Decision } from '../../../src/policy/decision.js';
import { requireApproval } from '../../../src/policy/obligations.js';
import type { PolicyQuery, PolicySet } from '../../../src/policy/rules.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';
import { call, rules } from './generated.js';
import { type CatalogSample, CONTEXT, catalog, document, policiesOf, principal } from './samples.js';

const TIMES = { expiresMs: 600_000, useMs: 120_000 };
const REVIEWER = { by: 'reviewer', count: 1, ...TIMES } as const satisfies ApprovalDocument;
const ALLOW = {
  id: 'allow',
  effect: 'allow',
  who: { anyone: true },
  what: { tools: ['*'], resources: ['repo://**'], prompts: ['*'], sampling: true },
} as const satisfies RuleDocument;

const CAPPED = {
  id: 'cap',
  effect: 'require',
  who: { anyone: true },
  what: { tools: ['*'] },
  maxResultBytes: 9,
} as const satisfies RuleDocument;

type Require = Partial<Extract<RuleDocument, { effect: 'require' }>>;

function ruleThat(parts: Require = {}): RuleDocument {
  const { id = 'ask' } = parts;
  return { effect: 'require', who: { anyone: true }, what: { tools: ['*'] }, approval: REVIEWER, ...parts, id };
}

type Asked = Partial<Pick<PolicyQuery, 'args' | 'findings' | 'target'>> & { readonly pins?: CatalogSample };

function query({ args = {}, findings, target = { kind: 'tool', name: 't' }, pins }: Asked = {}): PolicyQuery {
  const found = catalog(pins ?? { mode: 'off' });
  return { principal: principal(), upstream: 'github', target, args, findings, catalog: found };
}

function ask(rules: readonly RuleDocument[], asked: Asked = {}): Decision {
  return decideRequest(policiesOf(rules), query(asked));
}

/** The rules that ask; `pending` if there may be more of them. */
function askers(decision: Decision): readonly string[] {
  if (decision.verdict === 'deny') return [`deny: ${decision.reason}`];
  const obligation = approvalOf(decision);
  const rules = (obligation?.requirements ?? []).map(({ rule }) => rule);
  return obligation?.isPending === true ? [...rules, 'pending'] : rules;
}

describe('a decision about a call that a rule asks about', () => {
  it('[AR-02] allows it, and names whom to ask', () => {
    const decision = ask([ALLOW, ruleThat({ reason: 'Gone for good.' })]);
    expect(decision).toMatchObject({ verdict: 'allow', rule: 'allow' });
    if (decision.verdict === 'deny') throw new Error('denied');
    expect(approvalOf(decision)).toEqual({
      kind: 'approval',
      isPending: false,
      beyond: [],
      rules: expect.stringMatching(/^[0-9a-f]{64}$/),
      requirements: [
        {
          rule: 'main/ask',
          text: expect.stringMatching(/^[0-9a-f]{64}$/),
          reason: 'Gone for good.',
          terms: { by: 'reviewer', groups: undefined, count: 1, ...TIMES },
        },
      ],
    });
    expect(requireApproval(decision)).toMatchObject({ reason: 'approval-required', policy: 'main', rule: 'ask' });
  });

  it.each<[string, readonly RuleDocument[]]>([
    ['the allow rule', [{ ...ALLOW, limits: { per: 'subject', rate: { count: 9, windowMs: 9 } } }, ruleThat()]],
    ['the rule that asks', [ALLOW, ruleThat({ reason: 'Other.' })]],
    ['another rule that binds', [ALLOW, CAPPED, ruleThat()]],
  ])('[AR-02] names the rules by a digest that changes with %s', (_, rules) => {
    const digestOf = (decision: Decision) => decision.verdict === 'allow' && approvalOf(decision)?.rules;
    expect(digestOf(ask(rules))).not.toBe(digestOf(ask([ALLOW, ruleThat()])));
    expect(digestOf(ask([...rules].reverse()))).toBe(digestOf(ask(rules)));
  });

  it('[AR-02] names what is asked beyond limits, which then refuse nothing', () => {
    const rate = { count: 3, windowMs: 60_000 };
    const budget = { name: 'spend', cost: 'args.n', per: 'subject', withinMs: 9, max: 5 } as const;
    const soft = ruleThat({
      ...{ limits: { per: 'client', rate, budget } },
      approval: { ...REVIEWER, asks: 'beyond-limits' },
    });
    const hard = { ...CAPPED, limits: { per: 'subject', rate: { count: 9, windowMs: 9 } } } as const;
    const decision = ask([ALLOW, soft, hard], { args: { n: 2 } });
    if (decision.verdict === 'deny') throw new Error('denied');
    expect(decision.obligations.filter(({ kind }) => kind === 'rate' || kind === 'budget')).toEqual([
      { kind: 'rate', limit: { rule: 'main/cap', count: 9, windowMs: 9, per: 'subject' } },
    ]);
    const { requirements, beyond } = approvalOf(decision) ?? {};
    expect(requirements).toEqual([]);
    expect(beyond).toMatchObject([
      {
        requirement: { rule: 'main/ask' },
        limits: [
          { kind: 'rate', limit: { ...rate, per: 'client', rule: 'main/ask' } },
          { kind: 'budget', cost: 2, budget: { name: 'spend', max: 5 } },
        ],
      },
    ]);
    expect(requireApproval(decision)).toBeUndefined();
  });

  it('[AR-02] grants nothing', () => {
    expect(ask([ruleThat()])).toMatchObject({ verdict: 'deny', reason: 'no-matching-allow' });
    const denied: RuleDocument = { id: 'no', effect: 'deny', who: { anyone: true }, what: { tools: ['t'] } };
    expect(ask([ALLOW, ruleThat(), denied])).toMatchObject({ verdict: 'deny', reason: 'denied-by-rule' });
  });

  it('[AR-02] depends on no approval in lists, later responses and tasks', () => {
    const policies: PolicySet = policiesOf([ALLOW, ruleThat()]);
    const { args: _, ...asked } = query();
    expect(isListed(policies, asked.principal, 'github', asked.target)).toBe(true);
    for (const args of ['passed', 'unknown'] as const)
      expect(askers(decideWithoutArguments(policies, asked, args))).toEqual([]);
    const task = { kind: 'task', tool: 't', use: 'update' } as const;
    expect(askers(decideRequest(policies, { ...query(), target: task }))).toEqual([]);
  });

  it('[AR-02] asks about a server request too', () => {
    const policies = policiesOf([ALLOW, ruleThat({ what: { sampling: true } })]);
    const decision = decideServerRequest(policies, { ...query(), name: 'sampling' });
    expect(askers(decision)).toEqual(['main/ask']);
  });
});

describe('conditions of a rule that asks', () => {
  it.each<[string, Require, Asked, readonly string[]]>([
    ['an argument', { when: 'args.n > 5.0' }, { args: { n: 6 } }, ['main/ask']],
    ['an argument that is fine', { when: 'args.n > 5.0' }, { args: { n: 4 } }, []],
    ['an error, which refuses', { when: 'args.n > 5.0' }, { args: {} }, ['deny: policy-error']],
    ['who', { who: { subjects: ['bob'] } }, {}, []],
    ['another tool', { what: { tools: ['u'] } }, {}, []],
    ['a spelling that nothing pins', { what: { tools: ['T'] } }, {}, ['main/ask']],
    [
      'a resource',
      { what: { resources: ['repo://acme/**'] } },
      { target: { kind: 'resource', uri: 'repo://acme/x' } },
      ['main/ask'],
    ],
    ['findings before inspection', { when: '"email" in findings' }, {}, ['pending']],
    ['findings', { when: '"email" in findings' }, { findings: ['email'] }, ['main/ask']],
    ['other findings', { when: '"email" in findings' }, { findings: ['iban'] }, []],
    ['no findings', { when: 'size(findings) > 0' }, { findings: [] }, []],
    [
      'a kind of findings',
      { when: 'findings.exists(f, f.startsWith("link"))' },
      { findings: ['link-ip'] },
      ['main/ask'],
    ],
    ['findings, where an argument decides', { when: 'args.n > 5.0 && "email" in findings' }, { args: { n: 1 } }, []],
    [
      'findings, where an argument asks',
      { when: 'args.n > 5.0 || "email" in findings' },
      { args: { n: 6 } },
      ['main/ask'],
    ],
    ['findings, and an argument that is missing', { when: 'args.n > 5.0 && "email" in findings' }, {}, ['pending']],
    [
      'findings, and an argument that stays missing',
      { when: 'args.n > 5.0 && "email" in findings' },
      { findings: ['email'] },
      ['deny: policy-error'],
    ],
  ])('[AR-02] %s', (_, parts, asked, rules) => {
    expect(askers(ask([ALLOW, ruleThat(parts)], asked))).toEqual(rules);
  });

  it('[AR-02] refuses a call whose findings nobody looked at', () => {
    const decision = ask([ALLOW, ruleThat({ when: '"email" in findings' })]);
    expect(decision.verdict === 'allow' && requireApproval(decision)).toMatchObject({ reason: 'approval-required' });
  });
});

const HINTS = ['destructiveHint', 'readOnlyHint', 'idempotentHint', 'openWorldHint'] as const;

describe('hints', () => {
  const read = (annotations: JsonObject | undefined, mode: 'strict' | 'off' = 'strict'): string => {
    const definition = annotations === undefined ? {} : { annotations };
    const pins = { mode, tools: { t: { definition, state: mode === 'strict' ? 'approved' : 'unpinned' } } } as const;
    const rules = HINTS.map((hint) => ruleThat({ id: hint.toLowerCase(), when: `tool.annotations.${hint}` }));
    return askers(ask([ALLOW, ...rules], { pins }))
      .join(' ')
      .replaceAll('main/', '')
      .replaceAll('hint', '');
  };

  it.each<[string, JsonObject | undefined, string]>([
    ['none', undefined, 'destructive openworld'],
    ['none of these', { title: 'x' }, 'destructive openworld'],
    [
      'malformed',
      { destructiveHint: 'false', readOnlyHint: 1, idempotentHint: 'true', openWorldHint: null },
      'destructive openworld',
    ],
    ['read-only', { readOnlyHint: true }, 'idempotent openworld readonly'],
    [
      'read-only, and what means nothing then',
      { readOnlyHint: true, destructiveHint: true, idempotentHint: false },
      'idempotent openworld readonly',
    ],
    ['harmless', { destructiveHint: false, openWorldHint: false }, ''],
    [
      'all',
      { destructiveHint: true, readOnlyHint: false, idempotentHint: true, openWorldHint: true },
      'destructive idempotent openworld',
    ],
  ])('[AR-03] of the pinned definition have the defaults of MCP: %s', (_, annotations, hints) => {
    expect(read(annotations)).toBe(hints);
  });

  it('[AR-03] are the word of the server where nothing pins it, and not read', () => {
    expect(read({ readOnlyHint: true, destructiveHint: false, openWorldHint: false }, 'off')).toBe(
      'destructive openworld',
    );
  });

  it('[AR-03] that are absent are an error in other rules that restrict, as before', () => {
    const pins = { tools: { t: { definition: { annotations: {} } } } };
    const capped: RuleDocument = { ...CAPPED, when: 'tool.annotations.destructiveHint' };
    expect(askers(ask([ALLOW, capped], { pins }))).toEqual(['deny: policy-error']);
  });

  it('[AR-03] lift nothing that another rule asks for', () => {
    const pins = { tools: { t: { definition: { annotations: { readOnlyHint: true, destructiveHint: false } } } } };
    const narrowed = ruleThat({ id: 'hinted', when: '!tool.annotations.readOnlyHint' });
    expect(askers(ask([ALLOW, ruleThat(), narrowed], { pins }))).toEqual(['main/ask']);
  });
});

describe('for all policies and calls, a rule that asks', () => {
  const CONDITIONS = ['args.title == "x"', 'has(args.owner)', 'tool.annotations.destructiveHint', 'size(findings) > 0'];
  const added = fc
    .record({
      when: fc.option(fc.constantFrom(...CONDITIONS), { nil: undefined }),
      tools: fc.subarray(['t_a', 't_*', '*'], { minLength: 1 }),
    })
    .map(({ when, tools }) => ruleThat({ id: 'z-added', what: { tools }, ...(when !== undefined && { when }) }));
  const inspected = fc.constantFrom(undefined, [], ['secret:x']);
  const decideBoth = (documents: readonly RuleDocument[], rule: RuleDocument, query: PolicyQuery) => {
    const context = { ...CONTEXT, isStrict: false };
    const [before, after] = [documents, [...documents, rule]].map((all) =>
      decideRequest(compilePolicies([document(all)], context).policies, query),
    );
    if (before === undefined || after === undefined) throw new Error('not decided');
    return { before, after };
  };
  const unasked = (decision: Decision) =>
    decision.verdict === 'allow' && decision.obligations.filter(({ kind }) => kind !== 'approval');

  it('[AR-02] turns no refusal into an allow, and changes nothing else of what is allowed', () => {
    let asked = 0;
    void fc.assert(
      fc.property(rules, fc.boolean(), added, call, inspected, (others, isOpen, rule, query, findings) => {
        const documents = isOpen ? [ALLOW, ...others] : others;
        const { before, after } = decideBoth(documents, rule, { ...query, findings });
        if (before.verdict === 'deny') expect(after.verdict).toBe('deny');
        if (after.verdict === 'deny') return;
        expect(unasked(after)).toEqual(unasked(before));
        expect([after.policy, after.rule]).toEqual([before.policy, before.rule]);
        asked += askers(after).length;
      }),
      { numRuns: 150 },
    );
    expect(asked).toBeGreaterThan(5);
  });

  it('[AR-03] asks whatever hints there are, and beside any rule that reads them', () => {
    const hints = fc.record(
      Object.fromEntries(
        HINTS.map((hint) => [hint, fc.constantFrom<JsonObject[string]>(true, false, 'false', null, 1)]),
      ),
      { requiredKeys: [] },
    );
    const hinted = fc
      .constantFrom(
        'tool.annotations.destructiveHint',
        '!tool.annotations.readOnlyHint',
        'tool.annotations.openWorldHint',
      )
      .map((when) => ruleThat({ id: 'hinted', when }));
    void fc.assert(
      fc.property(hints, hinted, fc.constantFrom('strict', 'off'), (annotations, rule, mode) => {
        const state = mode === 'strict' ? 'approved' : 'unpinned';
        const pins = { mode, tools: { t: { definition: { annotations: annotations as JsonObject }, state } } } as const;
        expect(askers(ask([ALLOW, ruleThat(), rule], { pins }))).toContain('main/ask');
        // Where nothing is pinned, a server lifts nothing by any word of its own.
        if (mode === 'off') expect(askers(ask([ALLOW, rule], { pins }))).toEqual(['main/hinted']);
      }),
    );
  });
});

describe('what several rules ask together', () => {
  type Parts = Partial<Record<keyof ApprovalTerms | 'count' | 'groups' | 'proof' | 'remember', unknown>>;
  const requirement = (terms: Parts, rule = 'p/r', reason?: string): ApprovalRequirement => ({
    ...{ rule, text: 'x', reason },
    terms: { ...TIMES, ...terms } as ApprovalTerms,
  });
  const caller = (terms: Parts = {}, ...more: [rule?: string, reason?: string]) =>
    requirement({ by: 'caller', proof: 'login', remember: undefined, ...terms }, ...more);
  const reviewer = (terms: Parts = {}, ...more: [rule?: string, reason?: string]) =>
    requirement({ by: 'reviewer', groups: undefined, count: 1, ...terms }, ...more);
  const remember = (forMs: number, same?: readonly string[]) => ({ remember: { forMs, same } });
  const LOGIN = { proof: 'login', remember: undefined };

  it('[AR-02] is nothing without any', () => {
    expect(demandOf([])).toBeUndefined();
  });

  it.each<[string, readonly ApprovalRequirement[], object]>([
    [
      'one',
      [caller({}, 'p/a', 'A.')],
      { rules: ['p/a'], reasons: ['A.'], caller: LOGIN, reviewer: undefined, ...TIMES },
    ],
    [
      'rules in order, and each reason once',
      [caller({}, 'p/b', 'B.'), caller({}, 'p/c', 'B.'), caller({}, 'p/a', 'A.')],
      { rules: ['p/a', 'p/b', 'p/c'], reasons: ['A.', 'B.'] },
    ],
    ['a login over a client', [caller({ proof: 'client' }), caller()], { caller: LOGIN }],
    ['a client alone', [caller({ proof: 'client' })], { caller: { proof: 'client' } }],
    ['both parties', [caller(), reviewer()], { caller: LOGIN, reviewer: { groups: [], count: 1 } }],
    ['the most persons', [reviewer({ count: 3 }), reviewer({ count: 2 })], { reviewer: { count: 3 } }],
    [
      'a group of each list',
      [reviewer({ groups: ['a', 'b'] }), reviewer(), reviewer({ groups: ['c'] })],
      { reviewer: { groups: [['a', 'b'], ['c']] } },
    ],
    [
      'the shortest times',
      [caller({ expiresMs: 5, useMs: 9 }), reviewer({ expiresMs: 7, useMs: 3 })],
      { expiresMs: 5, useMs: 3 },
    ],
    ['a yes that one does not remember', [caller(remember(5)), caller()], { caller: { remember: undefined } }],
    [
      'a yes that all remember, for the shorter time',
      [caller(remember(5)), caller(remember(3))],
      { caller: { remember: { forMs: 3, same: undefined } } },
    ],
    [
      'arguments that are equal for each',
      [caller(remember(5, ['/b'])), caller(remember(5, ['/a', '/b']))],
      { caller: { remember: { forMs: 5, same: ['/a', '/b'] } } },
    ],
    [
      'all arguments for one',
      [caller(remember(5, ['/b'])), caller(remember(5))],
      { caller: { remember: { forMs: 5, same: undefined } } },
    ],
    ['nothing remembered beside a reviewer', [caller(remember(5)), reviewer()], { caller: { remember: undefined } }],
  ])('[AR-02] is %s', (_, requirements, demand) => {
    expect(demandOf(requirements)).toMatchObject(demand);
    const reversed = demandOf([...requirements].reverse());
    expect(reversed?.caller).toEqual(demandOf(requirements)?.caller);
    expect(reversed?.rules).toEqual(demandOf(requirements)?.rules);
  });
});
