// What validation finds in policies: each mistake, its place, its severity, and what was meant.

import { describe, expect, it } from 'vitest';
import type {
  LimitsDocument,
  PolicyContext,
  PolicyDiagnostic,
  RuleDocument,
} from '../../../../src/policy/compile/documents.js';
import type { Catalog } from '../../../../src/policy/definitions.js';
import { catalog, compiled, document } from '../samples.js';

const RULE = {
  id: 'read',
  effect: 'allow',
  who: { anyone: true },
  what: { upstreams: ['github'], tools: ['get_issue'] },
} as const satisfies RuleDocument;

function diagnostics(rule: object, context: Partial<PolicyContext> = {}): readonly Omit<PolicyDiagnostic, 'file'>[] {
  const written = { ...RULE, ...rule } as RuleDocument;
  return compiled([document([written])], context).diagnostics.map(({ file: _file, ...diagnostic }) => diagnostic);
}

function errorAt(...path: (string | number)[]) {
  return expect.objectContaining({ severity: 'error', path: ['rules', 0, ...path] });
}

function warningAt(...path: (string | number)[]) {
  return expect.objectContaining({ severity: 'warning', path: ['rules', 0, ...path] });
}

const ISSUES = catalog({
  tools: {
    get_issue: {
      inputSchema: {
        type: 'object',
        properties: {
          owner: { type: 'string' },
          title: { type: 'string' },
          filter: { properties: { state: {} } },
          lines: { type: 'array', items: { properties: { text: {} } } },
        },
        required: ['owner'],
      },
    },
    list_issues: { inputSchema: { properties: { owner: {} } }, state: 'absent' },
  },
  prompts: { greet: { definition: { arguments: [{ name: 'who' }] } } },
  templates: { 'repo://{x}': {} },
});

const pins = (upstream: string): Catalog | undefined => (upstream === 'github' ? ISSUES : undefined);

describe('names', () => {
  it('finds unknown upstreams, issuers and profiles, and says what was meant [P-50]', () => {
    expect(diagnostics({ what: { upstreams: ['githab'], tools: ['*'] } })).toContainEqual({
      path: ['rules', 0, 'what', 'upstreams', 0],
      severity: 'error',
      message: 'no upstream is named "githab"',
      suggestion: 'github',
    });
    expect(diagnostics({ who: { issuers: ['crop'] } })).toContainEqual(
      expect.objectContaining({ path: ['rules', 0, 'who', 'issuers', 0], suggestion: 'corp' }),
    );
    const require = { effect: 'require', inspect: 'carefull' };
    expect(diagnostics(require)).toContainEqual(
      expect.objectContaining({ path: ['rules', 0, 'inspect'], suggestion: 'careful' }),
    );
    expect(diagnostics({ what: { upstreams: ['x*'], tools: ['*'] } })).toEqual([warningAt('what', 'upstreams', 0)]);
  });

  it('finds policies and rules of one name, and the reserved one [P-50]', () => {
    const twice = compiled([document([RULE], 'a'), document([RULE], 'a')]);
    expect(twice.diagnostics).toMatchObject([{ path: ['policy'], severity: 'error' }]);
    const same = compiled([document([RULE, RULE], 'a')]);
    expect(same.diagnostics).toMatchObject([{ path: ['rules', 1, 'id'], severity: 'error' }]);
    expect(compiled([document([RULE], 'a'), document([RULE], 'b')]).diagnostics).toMatchObject([
      { path: ['rules', 0], severity: 'warning', message: 'this rule says the same as "a/read"' },
    ]);
    // What a file says for all its rules is said by each of them.
    const own = { ...RULE, what: { tools: ['get_issue'] } };
    const of = (upstream: string) => ({ ...document([own], upstream), defaults: { upstreams: [upstream] } });
    expect(compiled([of('github'), of('mail')]).diagnostics).toEqual([]);
    expect(compiled([document([RULE], 'builtin')]).diagnostics).toMatchObject([{ path: ['policy'] }]);
  });

  it('wants issuers named where several could mean different people [P-51]', () => {
    const issuers = ['corp', 'partner'];
    for (const who of [{ groups: ['a'] }, { subjects: ['a'] }, { clients: ['a'] }, { claims: { a: [1] } }]) {
      expect(diagnostics({ who })).toEqual([]);
      expect(diagnostics({ who }, { issuers })).toEqual([errorAt('who')]);
      expect(diagnostics({ who: { ...who, issuers: ['corp'] } }, { issuers })).toEqual([]);
    }
    expect(diagnostics({ who: { issuers: ['partner'] } }, { issuers })).toEqual([warningAt('who', 'issuers')]);
  });
});

describe('shape', () => {
  it('finds empty lists and conditions that name nothing [P-52]', () => {
    expect(diagnostics({ who: {} })).toEqual([errorAt('who')]);
    expect(diagnostics({ who: { groups: [] } })).toEqual([errorAt('who', 'groups')]);
    expect(diagnostics({ who: { claims: { a: [] } } })).toEqual([errorAt('who', 'claims', 'a')]);
    expect(diagnostics({ what: { upstreams: ['github'] } })).toEqual([errorAt('what')]);
    expect(diagnostics({ what: { tools: [] } })).toEqual([errorAt('what', 'tools')]);
    expect(diagnostics({ scopes: [] })).toEqual([errorAt('scopes')]);
    expect(diagnostics({ args: {} })).toEqual([errorAt('args')]);
    expect(diagnostics({ effect: 'require', audit: { capture: [] } })).toEqual([errorAt('audit', 'capture')]);
  });

  it('finds patterns, schemas and expressions that do not compile [P-53]', () => {
    expect(diagnostics({ what: { tools: ['re:('] } })).toEqual([errorAt('what', 'tools', 0)]);
    expect(diagnostics({ what: { resources: ['not a uri'] } })).toEqual([errorAt('what', 'resources', 0)]);
    expect(diagnostics({ args: { owner: { type: 'strng' } } })).toEqual([errorAt('args', 'owner')]);
    expect(diagnostics({ args: { owner: { $ref: 'https://evil.example' } } })).toEqual([errorAt('args', 'owner')]);
    expect(diagnostics({ when: 'args.owner ==' })).toEqual([errorAt('when')]);
    expect(diagnostics({ when: '"a" in principal.group' })).toMatchObject([{ suggestion: 'groups' }]);
  });

  it('finds conditions that the targets can never meet [P-53]', () => {
    const what = { resources: ['repo://acme/**'] };
    expect(diagnostics({ what, args: { owner: true } })).toEqual([errorAt('args')]);
    expect(diagnostics({ what, when: 'has(args.owner)' })).toEqual([errorAt('when')]);
    expect(diagnostics({ what: { ...what, tools: ['*'] }, args: { owner: true } })).toEqual([warningAt('args')]);
    expect(diagnostics({ when: 'uri == "x"' })).toEqual([errorAt('when')]);
    expect(diagnostics({ what, when: 'uri.startsWith("repo://acme/a")' })).toEqual([]);
  });

  it('reports everything in one run, and grants nothing with one error [P-54]', () => {
    const { diagnostics: found, policies } = compiled([
      document([RULE, { ...RULE, id: 'b', who: {} }, { ...RULE, id: 'c', when: '(' }], 'a'),
      document([{ ...RULE, what: { tools: [] } }], 'b'),
    ]);
    expect(found.map(({ file, path }) => [file, ...path])).toEqual([
      ['a.policy.yaml', 'rules', 1, 'who'],
      ['a.policy.yaml', 'rules', 2, 'when'],
      ['b.policy.yaml', 'rules', 0, 'what', 'tools'],
    ]);
    expect(policies.ruleCount).toBe(0);
    expect(compiled([RULE]).policies.ruleCount).toBe(1);
  });
});

describe('pins', () => {
  it('finds names that nothing is pinned under; elsewhere it warns [P-55]', () => {
    const what = (tools: readonly string[], upstreams = ['github']) => ({
      what: { upstreams, tools },
    });
    expect(diagnostics(what(['get_issue', 'list_issues']), { pins })).toEqual([]);
    expect(diagnostics(what(['get_isue']), { pins })).toEqual([
      {
        path: ['rules', 0, 'what', 'tools', 0],
        severity: 'error',
        message: 'no tool named "get_isue" is pinned for the upstreams of this rule',
        suggestion: 'get_issue',
      },
    ]);
    expect(diagnostics(what(['old_tool']), { pins })).toEqual([errorAt('what', 'tools', 0)]);
    // Pinned for one of the strict upstreams is enough; nothing is known of one that is not strict.
    expect(diagnostics(what(['get_issue'], ['*']), { pins })).toEqual([]);
    const upstreams = [
      { name: 'github', issuers: ['corp'], strict: true },
      { name: 'mail', issuers: ['corp'], strict: false },
    ];
    expect(diagnostics(what(['send'], ['*']), { pins, upstreams })).toEqual([warningAt('what', 'tools', 0)]);
    expect(diagnostics(what(['send'], ['mail']), { pins, upstreams })).toEqual([]);
    expect(diagnostics(what(['get_issue'], ['mail']), { pins })).toEqual([errorAt('what')]);
    expect(diagnostics(what(['get_isue']))).toEqual([]);
  });

  it('warns of globs that match nothing, and holds prompts and templates to their pins [P-55]', () => {
    const check = (what: object) => diagnostics({ what: { upstreams: ['github'], ...what } }, { pins });
    expect(check({ tools: ['list_*', 'wipe_*'] })).toEqual([warningAt('what', 'tools', 1)]);
    expect(check({ tools: ['re:list_.*'] })).toEqual([]);
    expect(check({ prompts: ['greet'], templates: ['repo://{x}'] })).toEqual([]);
    expect(check({ prompts: ['great'] })).toMatchObject([{ severity: 'error', suggestion: 'greet' }]);
    expect(check({ templates: ['repo://{y}'] })).toEqual([errorAt('what', 'templates', 0)]);
    expect(check({ resources: ['repo://acme/**'] })).toEqual([]);
  });

  it('finds argument paths that the pinned schema does not have [P-56]', () => {
    const check = (rule: object) => diagnostics(rule, { pins });
    expect(check({ args: { owner: { const: 'a' }, filter: { properties: { state: true } } } })).toEqual([]);
    expect(check({ args: { ownr: true } })).toEqual([
      {
        path: ['rules', 0, 'args', 'ownr'],
        severity: 'error',
        message: 'the tool "get_issue" has no argument /ownr in its pinned schema',
        suggestion: 'owner',
      },
    ]);
    expect(check({ args: { filter: { properties: { sate: true } } } })).toEqual([errorAt('args', 'filter')]);
    expect(check({ when: 'has(args.filter) && args.filter.sate == "x"' })).toEqual([errorAt('when')]);
    expect(check({ effect: 'require', audit: { capture: ['/owner', '/repo'] } })).toEqual([
      errorAt('audit', 'capture', 1),
    ]);
    const inLists = ['/lines/0', '/lines/70/text', '/lines/0/txt', '/lines/first'];
    expect(check({ effect: 'require', audit: { capture: inLists } })).toEqual([
      errorAt('audit', 'capture', 2),
      errorAt('audit', 'capture', 3),
    ]);
    const globbed = { what: { upstreams: ['github'], tools: ['*_issue', 'list_*'] } };
    expect(check({ ...globbed, args: { title: true } })).toEqual([warningAt('args', 'title')]);
  });

  it('lets a tool lack an argument that a rule asks for by has(), or reads by anyArg [P-47]', () => {
    const check = (when: string) =>
      diagnostics({ what: { upstreams: ['github'], tools: ['*_issue', 'list_*'] }, when }, { pins });
    expect(check('has(args.title) && args.title == "x"')).toEqual([]);
    expect(check('anyArg(a, a == "x")')).toEqual([]);
    expect(check('args.title == "x"')).toEqual([warningAt('when'), warningAt('when')]);
    expect(check('has(args.titel) && args.titel == "x"')).toEqual([errorAt('when')]);
  });

  it('finds budgets that disagree, cost nothing that could be read, or limit nothing [P-53]', () => {
    const budget = { name: 'b', cost: '1.0', per: 'subject', withinMs: 1000, max: 5 } as const;
    const per = 'subject' as const;
    const of = (id: string, limits: LimitsDocument): RuleDocument => ({
      id,
      effect: 'allow',
      who: { anyone: true },
      what: { tools: ['get_issue'] },
      limits,
    });
    const errors = (...rules: RuleDocument[]) =>
      compiled([document(rules)])
        .diagnostics.filter(({ severity }) => severity === 'error')
        .map(({ path, message }) => [path.slice(2), message]);
    expect(errors(of('a', { per, budget }), of('b', { per, budget }))).toEqual([]);
    expect(errors(of('a', { per, budget }), of('b', { per, budget: { ...budget, max: 6 } }))).toEqual([
      [['limits', 'budget'], 'the budget "b" has another per, within or max in the rule "main/a"'],
    ]);
    expect(errors(of('a', { per, budget: { ...budget, cost: 'amount' } }))).toEqual([
      [['limits', 'budget', 'cost'], expect.stringContaining('unknown name "amount"')],
    ]);
    expect(errors(of('a', { per }))).toEqual([[['limits'], 'nothing is limited: write rate, budget or both']]);
  });

  it('warns where an argument is read that may be missing [P-57]', () => {
    const check = (rule: object) => diagnostics(rule, { pins });
    expect(check({ when: 'args.title.size() < 5' })).toEqual([warningAt('when')]);
    expect(check({ when: 'args.owner.size() < 5' })).toEqual([]);
    expect(check({ when: 'has(args.title) && args.title.size() < 5' })).toEqual([]);
    expect(check({ when: 'args.title.size() < 5', args: { title: true } })).toEqual([]);
  });

  it('reports thousands of names that are pinned no more, after an upstream renamed all its tools [P-50]', () => {
    const name = (index: number) => `a_tool_with_quite_a_long_name_and_number_${index}`;
    const names = Array.from({ length: 2_000 }, (_, index) => name(index));
    const tools = Object.fromEntries(names.map((one) => [`${one}_v2`, {}]));
    const what = { upstreams: ['github'], tools: names };
    const pinned = catalog({ tools });
    const found = diagnostics({ what }, { pins: () => pinned });
    expect(found).toHaveLength(names.length);
    expect(found[0]).toMatchObject({ severity: 'error', suggestion: `${name(0)}_v2` });
  });
});
