// The laws of policies (docs/contract.md#the-laws) as properties over generated policies, callers, pins and questions.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compilePolicies } from '../../../src/policy/compile/compile.js';
import type { RuleDocument } from '../../../src/policy/compile/documents.js';
import { decide, isListed } from '../../../src/policy/decide.js';
import type { Decision } from '../../../src/policy/decision.js';
import type { Principal } from '../../../src/policy/principal.js';
import type { PolicyQuery } from '../../../src/policy/rules.js';
import { isObject, type JsonObject, type ServerRequestName, type Target } from '../../../src/protocol/jsonrpc.js';
import { CONTEXT, catalog, document, principal } from './samples.js';

const SCHEMA: JsonObject = {
  type: 'object',
  properties: { owner: { type: 'string' }, title: { type: 'string' } },
};

const who = fc.oneof(
  fc.constant({ anyone: true } as const),
  fc.record({ groups: fc.subarray(['eng', 'ops'], { minLength: 1 }) }),
  fc.record({ subjects: fc.subarray(['ada', 'bob'], { minLength: 1 }) }),
  fc.record({ clients: fc.constant(['editor']), groups: fc.constant(['eng']) }),
);

const what = fc
  .record(
    {
      upstreams: fc.constantFrom(['github'], ['mail'], ['*'], ['git*', 'mail']),
      tools: fc.subarray(['t_a', 't_b', 't_*', '*', 're:t_[ab]'], { minLength: 1 }),
      resources: fc.subarray(['repo://acme/**', 'repo://acme/*', 'repo://acme/x'], {
        minLength: 1,
      }),
      prompts: fc.subarray(['p', 'q*'], { minLength: 1 }),
      templates: fc.constant(['repo://{x}']),
      sampling: fc.constant(true as const),
      elicitation: fc.subarray(['form', 'url'] as const, { minLength: 1 }),
      roots: fc.constant(true as const),
    },
    { requiredKeys: [] },
  )
  .map((kinds) => (Object.keys(kinds).some((key) => key !== 'upstreams') ? kinds : { tools: ['*'] }));

function takesArguments(kinds: unknown): boolean {
  return isObject(kinds) && ('tools' in kinds || 'prompts' in kinds);
}

const CONDITIONS = [
  'args.title == "x"',
  'has(args.title) && args.title == "x"',
  'principal.subject == "ada"',
  '"eng" in principal.groups || args.owner == "acme"',
];
const TIGHTENING = ['tool.annotations.destructiveHint', '!tool.annotations.readOnlyHint'];

const args = fc.constantFrom<JsonObject>({ owner: { const: 'acme' } }, { title: true });

const BUDGET = { name: 'spend', per: 'subject', withinMs: 60_000, max: 5 } as const;
const COSTS = ['1.0', 'args.owner == "acme" ? 1.0 : -1.0', 'principal.claims.absent'];
const budget = fc.constantFrom(...COSTS).map((cost) => ({ ...BUDGET, cost }));

const rated = fc.record({
  rate: fc.record({ count: fc.integer({ min: 1, max: 9 }), windowMs: fc.constant(60_000) }),
  per: fc.constantFrom('subject', 'client', 'rule'),
});
const limits = fc.oneof(
  rated,
  budget.map((own) => ({ per: 'subject', budget: own })),
  fc.tuple(rated, budget).map(([first, own]) => ({ ...first, budget: own })),
);

function rule(effect: RuleDocument['effect']): fc.Arbitrary<RuleDocument> {
  const conditions = effect === 'allow' ? CONDITIONS : [...CONDITIONS, ...TIGHTENING];
  const shared = { who, what, args, when: fc.constantFrom(...conditions) };
  const own = {
    allow: { scopes: fc.subarray(['s1', 's2', 's3'], { minLength: 1 }), limits },
    deny: { reason: fc.constant('No.') },
    require: { limits, maxResultBytes: fc.nat(), inspect: fc.constant('careful') },
  }[effect];
  const parts: { readonly [key: string]: fc.Arbitrary<unknown> } = { ...shared, ...own };
  return fc.record(parts, { requiredKeys: ['who', 'what'] }).map((value) => {
    const { args: narrowed, when, ...rest } = value;
    const reading = takesArguments(rest['what']) ? { args: narrowed, when } : {};
    return JSON.parse(JSON.stringify({ ...rest, ...reading, id: 'r', effect })) as RuleDocument;
  });
}

const anyRule = fc.oneof(
  { weight: 3, arbitrary: rule('allow') },
  { weight: 1, arbitrary: rule('deny') },
  { weight: 1, arbitrary: rule('require') },
);

function named(rules: readonly RuleDocument[], prefix = 'r'): readonly RuleDocument[] {
  return rules.map((written, index) => ({ ...written, id: `${prefix}${index}` }));
}

const rules = fc.array(anyRule, { maxLength: 7 }).map((list) => named(list));

const caller: fc.Arbitrary<Principal> = fc
  .record({
    subject: fc.constantFrom('ada', 'bob', 'eve'),
    client: fc.constantFrom('editor', 'other'),
    groups: fc.subarray(['eng', 'ops']),
    scopes: fc.subarray(['s1', 's2', 's3']),
  })
  .map((parts) => principal(parts));

const target = fc.oneof(
  fc.constantFrom<Target>(
    ...['t_a', 't_b', 'u_c'].map((name) => ({ kind: 'tool', name }) as const),
    ...['p', 'q1', 'z'].map((name) => ({ kind: 'prompt', name }) as const),
    { kind: 'template', uriTemplate: 'repo://{x}' },
  ),
  fc.constantFrom<Target>(
    ...(['sampling', 'elicitation/form', 'elicitation/url', 'roots'] as const).map(
      (name) => ({ kind: 'server-request', name }) as const,
    ),
  ),
  fc.constantFrom<Target>(
    ...['repo://acme/x', 'repo://acme/x/y', 'repo://acme/../x', 'REPO://ACME/%78'].map(
      (uri) => ({ kind: 'resource', uri }) as const,
    ),
  ),
);

const annotations = fc.record({ destructiveHint: fc.boolean(), readOnlyHint: fc.boolean() }, { requiredKeys: [] });

function pins(hints: JsonObject, state: 'approved' | 'changed' = 'approved') {
  const tool = { inputSchema: SCHEMA, definition: { annotations: hints }, state };
  const listed = { definition: { arguments: [{ name: 'owner' }, { name: 'title' }] } };
  return catalog({
    tools: { t_a: tool, t_b: tool, u_c: { inputSchema: SCHEMA } },
    prompts: { p: listed, q1: listed, z: listed },
    templates: { 'repo://{x}': {} },
  });
}

const question: fc.Arbitrary<PolicyQuery> = fc
  .record({
    principal: caller,
    target,
    upstream: fc.constantFrom('github', 'mail', 'unknown'),
    args: fc.constantFrom<JsonObject>(
      {},
      { owner: 'acme' },
      { owner: 'acme', title: 'x' },
      { title: 'y' },
      { owner: 'acme', Owner: 'other' },
      { owner: 7 },
    ),
    hints: annotations,
  })
  .map(({ hints, ...parts }) => ({ ...parts, catalog: pins(hints as JsonObject) }));

function compile(written: readonly RuleDocument[]) {
  const { policies, diagnostics } = compilePolicies([document(written)], CONTEXT);
  expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
  return policies;
}

function answer(written: readonly RuleDocument[], asked: PolicyQuery): Decision {
  return decide(compile(written), asked);
}

function isAllowed(written: readonly RuleDocument[], asked: PolicyQuery): boolean {
  return answer(written, asked).verdict === 'allow';
}

function check<Values extends [unknown, ...unknown[]]>(
  arbitraries: { [Index in keyof Values]: fc.Arbitrary<Values[Index]> },
  predicate: (...values: Values) => void,
): void {
  void fc.assert(fc.property<Values>(...arbitraries, predicate), { numRuns: 150 });
}

describe('law 1: no policy, no access', () => {
  it('lists nothing and allows nothing without rules, but the protocol itself [P-01]', () => {
    check([question], (asked) => {
      expect(isAllowed([], asked)).toBe(false);
      expect(isAllowed([], { ...asked, args: 'unknown' })).toBe(false);
      expect(isAllowed([], { ...asked, target: { kind: 'none' } })).toBe(true);
      expect(decide(compilePolicies([], CONTEXT).policies, asked).verdict).toBe('deny');
    });
  });
});

describe('law 2: listed', () => {
  /** `who` and `what`, read once more and as plainly as the contract says them. */
  function matches(written: RuleDocument, asked: PolicyQuery): boolean {
    const { groups, subjects, clients } = written.who;
    const { principal: from, target: at } = asked;
    const isCaller =
      (groups?.some((group) => from.groups.includes(group)) ?? true) &&
      (subjects?.includes(from.subject) ?? true) &&
      (clients?.includes(from.client) ?? true);
    const isThere = (written.what.upstreams ?? ['*']).some((pattern) => asGlob(pattern, '[^]*').test(asked.upstream));
    if (!isCaller || !isThere) return false;
    switch (at.kind) {
      case 'tool':
        return (written.what.tools ?? []).some((pattern) => asGlob(pattern, '[^]*').test(at.name));
      case 'prompt':
        return (written.what.prompts ?? []).some((pattern) => asGlob(pattern, '[^]*').test(at.name));
      case 'template':
        return (written.what.templates ?? []).includes(at.uriTemplate);
      case 'task':
        return false;
      case 'resource': {
        const uri = at.uri === 'REPO://ACME/%78' ? 'repo://acme/x' : at.uri;
        if (uri.includes('..')) return false;
        return (written.what.resources ?? []).some((p) => asGlob(p, '[^/]*').test(uri));
      }
      case 'server-request':
        return asks(written, at.name);
      case 'none':
        return false;
    }
  }

  function asks({ what: named }: RuleDocument, name: ServerRequestName): boolean {
    if (name === 'sampling' || name === 'roots') return named[name] === true;
    const modes = Array.isArray(named.elicitation) ? named.elicitation : [];
    return modes.some((mode) => name === `elicitation/${mode}`);
  }

  function asGlob(pattern: string, star: string): RegExp {
    if (pattern.startsWith('re:')) return new RegExp(`^(?:${pattern.slice(3)})$`);
    return new RegExp(`^${pattern.replaceAll('**', '\0').replaceAll('*', star).replaceAll('\0', '[^]*')}$`);
  }

  /** What a `when` of these laws says that reads caller and item alone; undefined for any other. */
  function ofCaller({ when }: RuleDocument, { principal: from, target: at, catalog: known }: PolicyQuery) {
    const { pinned } = at.kind === 'tool' ? known.statusOf('tool', at.name) : {};
    const hints = (pinned?.definition['annotations'] ?? {}) as JsonObject;
    switch (when) {
      case 'principal.subject == "ada"':
        return from.subject === 'ada';
      case 'tool.annotations.destructiveHint':
        return hints['destructiveHint'] ?? 'error';
      case '!tool.annotations.readOnlyHint':
        return hints['readOnlyHint'] === undefined ? 'error' : !hints['readOnlyHint'];
      default:
        return undefined;
    }
  }

  function hides(written: RuleDocument, asked: PolicyQuery): boolean {
    if (written.effect !== 'deny' || written.args !== undefined || !matches(written, asked)) return false;
    const result = ofCaller(written, asked);
    return written.when === undefined || result === true || result === 'error';
  }

  it('is who and what of the allows, less the denies without other conditions, and nothing else [P-02]', () => {
    check([rules, question], (written, asked) => {
      const isGranted = written.some(
        (r) => r.effect === 'allow' && matches(r, asked) && (ofCaller(r, asked) ?? true) === true,
      );
      const isDenied = written.some((r) => hides(r, asked));
      const { principal: from, upstream, target: at } = asked;
      const listed = isListed(compile(written), from, upstream, at, asked.catalog);
      expect(listed).toBe(isGranted && !isDenied);
      expect(answer(written, { ...asked, args: 'unknown' }).verdict === 'allow').toBe(listed);
    });
  });

  it('is implied by callable, and every refusal knows it [P-02]', () => {
    check([rules, question], (written, asked) => {
      const policies = compile(written);
      const called = decide(policies, asked);
      const { principal: from, upstream, target: at } = asked;
      const listed = isListed(policies, from, upstream, at, asked.catalog);
      expect(called.verdict === 'allow' || called.listed).toBe(listed);
    });
  });

  it('hides what has drifted, whatever the rules [P-03]', () => {
    check([rules, question], (written, asked) => {
      const drifted = { ...asked, target: { kind: 'tool', name: 't_a' } as const };
      const question_ = { ...drifted, catalog: pins({}, 'changed') };
      expect(isAllowed(written, question_)).toBe(false);
      expect(isAllowed(written, { ...question_, args: 'unknown' })).toBe(false);
    });
  });
});

describe('law 3: order and alternatives', () => {
  it('decides the same in every order of rules and files [P-12]', () => {
    const shuffled = rules.chain((written) =>
      fc.tuple(
        fc.constant(written),
        fc.shuffledSubarray([...written], { minLength: written.length }),
        fc.nat({ max: 7 }),
        fc.boolean(),
      ),
    );
    check([shuffled, question], ([written, other, cut, isSwapped], asked) => {
      expect(answer(other, asked)).toEqual(answer(written, asked));
      const files = [document(written.slice(0, cut), 'a'), document(written.slice(cut), 'b')];
      const inOrder = compilePolicies(files, CONTEXT).policies;
      const inOther = compilePolicies(isSwapped ? [...files].reverse() : files, CONTEXT).policies;
      expect(decide(inOther, asked)).toEqual(decide(inOrder, asked));
    });
  });

  it('never grants by adding a deny or a require [P-11]', () => {
    const added = fc.oneof(rule('deny'), rule('require'));
    check([rules, added, question], (written, extra, asked) => {
      const [named_] = named([extra], 'added');
      if (named_ === undefined || !isAllowed([...written, named_], asked)) return;
      expect(isAllowed(written, asked)).toBe(true);
    });
  });

  it('never takes away by adding an allow [P-12]', () => {
    check([rules, rule('allow'), question], (written, extra, asked) => {
      if (!isAllowed(written, asked)) return;
      const [named_] = named([extra], 'added');
      expect(isAllowed(named_ === undefined ? [] : [...written, named_], asked)).toBe(true);
    });
  });

  it('owes what the require rules ask for, whichever allow is recorded [P-13]', () => {
    check([rules, rule('allow'), question], (written, extra, asked) => {
      const before = answer(written, asked);
      const after = answer([...written, ...named([extra], 'added')], asked);
      if (before.verdict === 'deny' || after.verdict === 'deny') return;
      const standing = (decision: typeof before) =>
        decision.obligations.filter((owed) => {
          if (owed.kind === 'budget') return owed.rule !== `main/${decision.rule}`;
          return owed.kind !== 'rate' || owed.limit.rule !== `main/${decision.rule}`;
        });
      expect(standing(after)).toEqual(standing(before));
    });
  });
});

describe('law 4: names and pins', () => {
  const listed = { definition: { arguments: [{ name: 'owner' }, { name: 'title' }] } };
  const pinned = fc.record({
    tools: fc.subarray(['t_a', 't_b', 'u_c']),
    prompts: fc.subarray(['p', 'q1']),
    templates: fc.subarray(['repo://{x}']),
  });
  type Pinned = typeof pinned extends fc.Arbitrary<infer Names> ? Names : never;

  function catalogWith(names: Pinned, upstream = 'github') {
    const each = <Sample>(list: readonly string[], sample: Sample) =>
      Object.fromEntries(list.map((name) => [name, sample]));
    return catalog({
      upstream,
      tools: each(names.tools, { inputSchema: SCHEMA }),
      prompts: each(names.prompts, listed),
      templates: each(names.templates, {}),
    });
  }

  function namesMissing({ what: named_ }: RuleDocument, names: Pinned): boolean {
    const isExact = (text: string): boolean => !text.startsWith('re:') && !text.includes('*');
    return (['tools', 'prompts', 'templates'] as const).some((kind) =>
      (named_[kind] ?? []).some((text) => isExact(text) && !names[kind].includes(text)),
    );
  }

  it('makes an error of an exact name that is not pinned, and of nothing that changes later [P-55]', () => {
    check([rules, pinned, question], (written, names, asked) => {
      const context = { ...CONTEXT, pins: (upstream: string) => catalogWith(names, upstream) };
      const compiled = (areInForce: boolean) => compilePolicies([document(written)], { ...context, areInForce });
      const errors = compiled(false).diagnostics.filter(({ severity }) => severity === 'error');
      expect(errors.length > 0).toBe(written.some((one) => namesMissing(one, names)));
      const { policies, diagnostics } = compiled(true);
      expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
      // In force, a rule about what is pinned no more matches nothing, and everything else is decided as before.
      const now = { ...asked, catalog: catalogWith(names) };
      expect(decide(policies, now)).toEqual(decide(compile(written), now));
      const isGone = asked.target.kind === 'tool' && !names.tools.includes(asked.target.name);
      if (isGone) expect(decide(policies, now).verdict).toBe('deny');
    });
  });
});

describe('law 5: errors', () => {
  const failing = {
    who: { anyone: true },
    what: { tools: ['*'], prompts: ['*'] },
    when: 'principal.claims.absent',
  } as const;

  it('denies for a failing deny or require, and ignores a failing allow where another holds [P-05]', () => {
    check([rules, question], (written, asked) => {
      if (asked.target.kind !== 'tool' && asked.target.kind !== 'prompt') return;
      if (asked.args === 'unknown') return;
      for (const effect of ['deny', 'require'] as const) {
        expect(isAllowed([...written, { ...failing, id: 'f', effect }], asked)).toBe(false);
      }
      const grant = { ...failing, id: 'f', effect: 'allow' } as const;
      expect(isAllowed([...written, grant], asked)).toBe(isAllowed(written, asked));
      // Where it is the only grant, the reason is the error. It reads the caller alone, so that nothing is listed.
      const alone = answer([grant], { ...asked, upstream: 'github' });
      expect(alone).toMatchObject({ reason: 'policy-error', listed: false });
    });
  });
});

describe('law 6: exact strings', () => {
  it('matches an exact name by itself alone [P-06]', () => {
    const name = fc.string({
      maxLength: 6,
      unit: fc.constantFrom('a', 'A', 'е', 'e', '_', '\u200b', '.'),
    });
    check([name, name], (written, asked) => {
      if (written === '') return;
      const allowed = isListed(
        compile([{ id: 'r', effect: 'allow', who: { anyone: true }, what: { tools: [written] } }]),
        principal(),
        'github',
        { kind: 'tool', name: asked },
      );
      expect(allowed).toBe(written === asked);
    });
  });

  it('decides all spellings of one URI alike [P-07]', () => {
    const spelled = fc.constantFrom('x', '%78', './x', 'y/../x', '%79/%2e%2E/%78');
    check([rules, caller, spelled], (written, from, spelling) => {
      const policies = compile(written);
      const read = (uri: string) => isListed(policies, from, 'github', { kind: 'resource', uri });
      expect(read(`rePO://ACME/${spelling}`)).toBe(read('repo://acme/x'));
    });
  });
});

describe('law 7: annotations tighten', () => {
  it('allows nothing by annotations that the rules without them do not allow [P-15]', () => {
    const readsHints = (written: RuleDocument): boolean => written.when?.includes('annotations') ?? false;
    check([rules, question], (written, asked) => {
      if (!isAllowed(written, asked)) return;
      const without = written.filter((r) => !readsHints(r));
      expect(isAllowed(without, asked)).toBe(true);
    });
  });

  it('refuses an allow rule that reads them, however it is written [P-15]', () => {
    for (const when of ['tool.annotations.x', 'has(tool.annotations.x)', 'tool["annotations"].x == 1']) {
      const written: RuleDocument = {
        id: 'r',
        effect: 'allow',
        who: { anyone: true },
        what: { tools: ['*'] },
        when,
      };
      const { diagnostics, policies } = compilePolicies([document([written])], CONTEXT);
      expect(diagnostics).toMatchObject([{ path: ['rules', 0, 'when'], severity: 'error' }]);
      expect(policies.ruleCount).toBe(0);
    }
  });
});
