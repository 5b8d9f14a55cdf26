// Whether a caller may still have to do with a task, by the rules of the tool that began it.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RuleDocument } from '../../../src/policy/compile/documents.js';
import { decide, decideRequest, isListed } from '../../../src/policy/decide.js';
import type { Decision } from '../../../src/policy/decision.js';
import { responseObligationsOf } from '../../../src/policy/obligations.js';
import type { Principal } from '../../../src/policy/principal.js';
import type { JsonObject, TaskUse } from '../../../src/protocol/jsonrpc.js';
import { type CatalogSample, catalog, compiled, policiesOf, principal } from './samples.js';

const INPUT: JsonObject = {
  type: 'object',
  properties: { owner: { type: 'string' } },
  required: ['owner'],
};
const PINS: CatalogSample = { tools: { build: { inputSchema: INPUT } } };
const WHAT = { upstreams: ['github'], tools: ['build'] };
const ALLOW: RuleDocument = { id: 'a', effect: 'allow', who: { groups: ['eng'] }, what: WHAT };
const ENGINEER = principal({ groups: ['eng'], scopes: [] });

function ask(
  rules: readonly RuleDocument[],
  { tool = 'build', who = ENGINEER, pins = PINS, use = 'get' }: Asked = {},
): Decision {
  const target = { kind: 'task', tool, use } as const;
  return decideRequest(policiesOf(rules), {
    principal: who,
    upstream: 'github',
    target,
    args: 'unknown',
    catalog: catalog(pins),
  });
}

type Asked = {
  readonly tool?: string;
  readonly use?: TaskUse;
  readonly who?: Principal;
  readonly pins?: CatalogSample;
};

describe('a task', () => {
  it('is decided by its tool, though its arguments are gone [TSK-06]', () => {
    expect(ask([ALLOW])).toMatchObject({ verdict: 'allow', rule: 'a', obligations: [] });
    const byArguments = { ...ALLOW, args: { owner: { const: 'acme' } } } satisfies RuleDocument;
    expect(ask([byArguments]).verdict).toBe('allow');
  });

  it('is unknown where its tool is, for whatever reason [TSK-06]', () => {
    const hidden = { verdict: 'deny', listed: false };
    expect(ask([])).toMatchObject({ ...hidden, reason: 'no-matching-allow' });
    expect(ask([ALLOW], { tool: 'other' })).toMatchObject(hidden);
    expect(ask([ALLOW], { who: principal({ groups: [] }) })).toMatchObject(hidden);
    const deny: RuleDocument = { id: 'd', effect: 'deny', who: { anyone: true }, what: WHAT };
    expect(ask([ALLOW, deny])).toMatchObject({ ...hidden, reason: 'denied-by-rule' });
    expect(ask([ALLOW], { pins: { tools: {} } })).toMatchObject({
      ...hidden,
      reason: 'tool-unpinned',
    });
    const question = { upstream: 'github', principal: ENGINEER, args: 'unknown' } as const;
    const unknown = { ...question, target: { kind: 'task', tool: undefined, use: 'get' } } as const;
    expect(decide(policiesOf([ALLOW]), { ...unknown, catalog: catalog(PINS) })).toEqual({
      ...hidden,
      reason: 'unknown-task',
    });
  });

  it('needs the scopes of its tool, and conditions on its caller hold [TSK-06]', () => {
    const scoped: RuleDocument = { ...ALLOW, scopes: ['repo:build'] };
    expect(ask([scoped])).toMatchObject({ reason: 'insufficient-scope', scopes: ['repo:build'] });
    const holder = principal({ groups: ['eng'], scopes: ['repo:build'] });
    expect(ask([scoped], { who: holder }).verdict).toBe('allow');
    const conditional: RuleDocument = {
      id: 'd',
      effect: 'deny',
      who: { anyone: true },
      what: WHAT,
      when: "principal.subject == 'ada'",
    };
    expect(ask([ALLOW, conditional], { who: principal({ groups: ['eng'], subject: 'ada' }) })).toMatchObject({
      reason: 'denied-by-rule',
      listed: false,
    });
    expect(ask([ALLOW, conditional], { who: principal({ groups: ['eng'], subject: 'bob' }) }).verdict).toBe('allow');
  });

  it('owes what rules ask of its answer, and nothing that counts calls [TSK-06]', () => {
    const limited: RuleDocument = {
      ...ALLOW,
      limits: { rate: { count: 1, windowMs: 60_000 }, per: 'subject' },
    };
    const require: RuleDocument = {
      id: 'r',
      effect: 'require',
      who: { anyone: true },
      what: WHAT,
      maxResultBytes: 1024,
      limits: { rate: { count: 1, windowMs: 60_000 }, per: 'subject' },
    };
    const byArguments: RuleDocument = {
      ...require,
      id: 's',
      args: { owner: { const: 'acme' } },
      maxResultBytes: 10,
    };
    const decision = ask([limited, require, byArguments]);
    expect(decision).toMatchObject({
      verdict: 'allow',
      obligations: [{ kind: 'max-result-bytes', bytes: 1024 }],
    });
    if (decision.verdict !== 'allow') throw new Error('it is allowed');
    expect(responseObligationsOf(decision, { maxResultBytes: 10, profiles: ['quiet'] })).toMatchObject({
      maxResultBytes: 10,
      profiles: ['quiet'],
    });
    expect(responseObligationsOf(decision, { maxResultBytes: 4096, profiles: [] }).maxResultBytes).toBe(1024);
  });

  it('is never allowed where its tool is not listed [TSK-06]', () => {
    const rule = fc.record({
      effect: fc.constantFrom('allow' as const, 'deny' as const),
      who: fc.constantFrom({ anyone: true }, { groups: ['eng'] }, { groups: ['ops'] }),
      tools: fc.constantFrom(['build'], ['*'], ['other']),
      isConditional: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(rule, { maxLength: 5 }), fc.constantFrom('eng', 'ops', 'none'), (drawn, group) => {
        const rules = drawn.map(
          ({ effect, who, tools, isConditional }, index): RuleDocument => ({
            id: `r${index}`,
            effect,
            who,
            what: { upstreams: ['github'], tools },
            ...(isConditional ? { args: { owner: { const: 'acme' } } } : {}),
          }),
        );
        const who = principal({ groups: [group] });
        const listed = isListed(policiesOf(rules), who, 'github', { kind: 'tool', name: 'build' }, catalog(PINS));
        expect(ask(rules, { who }).verdict === 'allow').toBe(listed);
      }),
    );
  });
});

describe('[TSK-06] a rule that names uses of tasks', () => {
  const USES = ['get', 'list', 'update', 'cancel'] as const;
  const rule = (effect: RuleDocument['effect'], tasks: readonly TaskUse[], more: object = {}) =>
    ({ id: 't', effect, who: { anyone: true }, what: { tasks }, ...more }) as RuleDocument;
  const allowed = (rules: readonly RuleDocument[], asked: Asked = {}) =>
    USES.filter((use) => ask(rules, { ...asked, use }).verdict === 'allow');

  it('denies these, and neither the others nor calls', () => {
    const rules = [ALLOW, rule('deny', ['cancel', 'update'])];
    expect(allowed(rules)).toEqual(['get', 'list']);
    expect(ask(rules, { use: 'cancel' })).toMatchObject({
      reason: 'denied-by-rule',
      listed: false,
    });
    const call = { principal: ENGINEER, upstream: 'github', catalog: catalog(PINS) } as const;
    const target = { kind: 'tool', name: 'build' } as const;
    const decision = decide(policiesOf(rules), { ...call, target, args: { owner: 'a' } });
    expect(decision.verdict).toBe('allow');
  });

  it('grants these to whoever may not call the tool, as long as nothing denies them', () => {
    const visitor = { who: principal({ groups: [] }) };
    expect(allowed([ALLOW, rule('allow', ['get'])], visitor)).toEqual(['get']);
    expect(allowed([rule('allow', ['get']), rule('deny', ['get'], { id: 'd' })])).toEqual([]);
    const deny = { id: 'd', effect: 'deny', who: { anyone: true }, what: WHAT } as const;
    expect(allowed([rule('allow', ['get']), deny])).toEqual([]);
    expect(allowed([rule('allow', ['get'])], { pins: { tools: {} } })).toEqual([]);
    expect(allowed([rule('allow', ['get'], { scopes: ['tasks'] })])).toEqual([]);
  });

  it('is of its upstreams, and of the tools that "when" names', () => {
    const elsewhere = { what: { upstreams: ['mail'], tasks: ['get'] } };
    expect(allowed([ALLOW, rule('deny', ['get'], elsewhere)])).toEqual([...USES]);
    const when = 'tool.name.startsWith("build")';
    expect(allowed([ALLOW, rule('deny', ['get'], { when })])).not.toContain('get');
    expect(allowed([ALLOW, rule('deny', ['get'], { when: `!${when}` })])).toContain('get');
  });

  it('adds to what rules ask of the answer', () => {
    const decision = ask([ALLOW, rule('require', ['get'], { maxResultBytes: 7 })]);
    expect(decision).toMatchObject({ obligations: [{ kind: 'max-result-bytes', bytes: 7 }] });
    expect(ask([ALLOW, rule('require', ['list'], { maxResultBytes: 7 })])).toMatchObject({
      obligations: [],
    });
  });

  it('has no arguments, and limits nothing on its own', () => {
    const errors = (written: RuleDocument) =>
      compiled([written]).diagnostics.flatMap(({ severity, path }) =>
        severity === 'error' ? [path.slice(2).join('.')] : [],
      );
    const args = { owner: { const: 'acme' } };
    expect(errors(rule('allow', ['get'], { args }))).toEqual(['args']);
    const mixed = { what: { ...WHAT, tasks: ['get'] } };
    expect(errors(rule('allow', ['get'], { args, ...mixed }))).toEqual(['args']);
    expect(errors(rule('deny', ['get'], { when: 'args.owner == "x"' }))).toEqual(['when']);
    const limits = { rate: { count: 1, windowMs: 1000 }, per: 'subject' };
    expect(errors(rule('allow', ['get'], { limits }))).toEqual(['limits']);
    expect(errors(rule('allow', ['get'], { limits, ...mixed }))).toEqual([]);
  });
});
