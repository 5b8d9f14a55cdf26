// The laws of policies (docs/contract.md#the-laws) on the wire: generated policies, callers and requests, for clients
// and upstreams of every revision and transport. What is seen is compared with the plain reading of each law, and with
// what the author's tools decide from the same files. The laws of the decision by itself:
// test/unit/policy/laws.test.ts.

import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Asked, openAuthorTools } from '../support/author-tools.js';
import type { EraCaller } from '../support/eras.js';
import { isObject, type Json, type JsonObject } from '../support/json.js';
import {
  type Claims,
  HINTS,
  INSTRUCTIONS,
  type Item,
  type ItemKind,
  type LawWorld,
  startWorld,
  WAYS,
} from '../support/law-worlds.js';
import { type Reply, resultOf } from '../support/wire-client.js';
import { shared } from '../support/with-gateway.js';

/** Every run tries the same cases; a failure names its seed, the case and the policy. */
const SEED = 20_261_123;
/** Hundreds of requests on a busy machine. */
const TIMEOUT_MS = 120_000;
const CASES = 6;
/** Seen under several policies each; every way has its own. */
const CASES_OF_CHANGE = 1;
/** What changes of a policy take away from, or add to. */
const BASE: Written = {
  ...{ id: 'base', effect: 'allow', who: { anyone: true } },
  what: { tools: ['t_*'], prompts: ['p'], resources: ['repo://acme/*'] },
};

type Who = {
  readonly groups?: readonly string[];
  readonly subjects?: readonly string[];
  readonly clients?: readonly string[];
  readonly claims?: { readonly tier: readonly string[] };
};
type What = {
  readonly upstreams?: readonly string[];
  readonly tools?: readonly string[];
  readonly prompts?: readonly string[];
  readonly resources?: readonly string[];
  readonly templates?: readonly string[];
};
/** A rule as it stands in a file. */
type Written = {
  readonly id: string;
  readonly effect: 'allow' | 'deny' | 'require';
  readonly who: Who & { readonly anyone?: true };
  readonly what: What;
  readonly args?: JsonObject;
  readonly when?: string;
};

const who: fc.Arbitrary<Written['who']> = fc.oneof(
  fc.constant({ anyone: true } as const),
  fc.record({ groups: fc.subarray(['eng', 'ops'], { minLength: 1 }) }),
  fc.record({ subjects: fc.subarray(['ada', 'bob'], { minLength: 1 }) }),
  fc.constant({ clients: ['editor'], groups: ['eng'] }),
  fc.constant({ claims: { tier: ['gold'] } }),
);

/** Patterns that match the upstream with all kinds of items, whichever it is. */
const UPSTREAMS: { readonly [upstream: string]: readonly (readonly string[])[] } = {
  target: [['*'], ['target'], ['re:t.*'], ['x*', 't*t']],
  left: [['*'], ['left'], ['left', 'right'], ['re:le|left', 'r*']],
};

const what: fc.Arbitrary<What> = fc
  .record(
    {
      tools: fc.subarray(['t_a', 't_b', 't_*', '*', 're:[tu]_[bc]'], { minLength: 1 }),
      prompts: fc.subarray(['p', 'q*', '*'], { minLength: 1 }),
      resources: fc.subarray(['repo://acme/**', 'repo://acme/*', 'repo://acme/x'], {
        minLength: 1,
      }),
      templates: fc.constant(['repo://{x}']),
    },
    { requiredKeys: [] },
  )
  .map((kinds) => (Object.keys(kinds).length === 0 ? { tools: ['*'] } : kinds));

const CONDITIONS = [
  'args.title == "x"',
  'has(args.title) && args.title == "x"',
  'principal.subject == "ada"',
  '"eng" in principal.groups || args.owner == "acme"',
  'has(principal.claims.tier) && principal.claims.tier == "gold"',
];
const OF_HINTS = ['tool.annotations.destructiveHint', '!tool.annotations.readOnlyHint'];

function rule(effect: Written['effect'], names: LawWorld['items']): fc.Arbitrary<Written> {
  const upstreams = UPSTREAMS[names[0]?.upstream ?? ''] ?? [];
  const conditions = effect === 'allow' ? CONDITIONS : [...CONDITIONS, ...OF_HINTS];
  const own = {
    allow: { scopes: fc.subarray(['s1', 's2'], { minLength: 1 }) },
    deny: { reason: fc.constant('No.') },
    require: { maxResultBytes: fc.constant(100_000), audit: fc.constant({ capture: ['/owner'] }) },
  }[effect];
  const all: { readonly [key: string]: fc.Arbitrary<unknown> } = {
    args: fc.constantFrom<JsonObject>({ owner: { const: 'acme' } }, { title: true }),
    when: fc.constantFrom(...conditions),
    ...own,
  };
  // Seldom enough that some calls are allowed.
  const parts = Object.fromEntries(
    Object.entries(all).map(([key, value]) => [
      key,
      fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value }),
    ]),
  );
  return fc.tuple(who, what, fc.constantFrom(...upstreams), fc.record(parts)).map(([from, kinds, at, more]) => {
    const { args, when, audit, ...rest } = more;
    const reads = kinds.tools !== undefined || kinds.prompts !== undefined;
    const written = { id: 'r', effect, who: from, what: { ...kinds, upstreams: at }, ...rest };
    return JSON.parse(JSON.stringify(reads ? { ...written, args, when, audit } : written)) as Written;
  });
}

function named(rules: readonly Written[], prefix = 'r'): readonly Written[] {
  return rules.map((written, index) => ({ ...written, id: `${prefix}${index}` }));
}

const claims: fc.Arbitrary<Claims> = fc
  .record({
    sub: fc.constantFrom('ada', 'bob', 'eve'),
    client_id: fc.constantFrom('editor', 'other'),
    groups: fc.subarray(['eng', 'ops']),
    scopes: fc.subarray(['s1', 's2']),
    tier: fc.constantFrom(undefined, 'gold'),
  })
  .map(({ scopes, tier, ...rest }) => ({
    ...rest,
    scope: scopes.join(' '),
    ...(tier === undefined ? {} : { tier }),
  }));

/** A request about an item, or about something that looks like one. */
type Question = {
  readonly upstream: string;
  readonly target: Asked['target'];
  readonly method: 'tools/call' | 'prompts/get' | 'resources/read';
  readonly params: JsonObject;
  readonly args: JsonObject;
};

function ask(kind: ItemKind, upstream: string, name: string, wire: string, args: JsonObject) {
  if (kind === 'resource')
    return {
      ...{ upstream, args: {} },
      target: { kind, uri: name },
      method: 'resources/read',
      params: { uri: wire },
    } as const;
  const target = { kind: kind === 'prompt' ? kind : 'tool', name } as const;
  const method = kind === 'prompt' ? 'prompts/get' : 'tools/call';
  return { upstream, target, method, params: { name: wire, arguments: args }, args } as const;
}

const ARGUMENTS: readonly JsonObject[] = [{}, { owner: 'acme' }, { owner: 'acme', title: 'x' }, { title: 'y' }];
const INVALID: readonly JsonObject[] = [{ owner: 7 }, { owner: 'acme', other: 'x' }];

/** Every item with every kind of arguments. */
function questionsOf(items: readonly Item[]): readonly Question[] {
  return items.flatMap(({ kind, upstream, name, wire }) => {
    if (kind === 'template') return [];
    const all = kind === 'tool' ? [...ARGUMENTS, ...INVALID] : ARGUMENTS;
    const given = kind === 'resource' ? [{}] : all;
    return given.map((args) => ask(kind, upstream, name, wire, args));
  });
}

/** Names that readers may take for one that is offered (law 6). */
function lookAlikes(items: readonly Item[]): readonly Question[] {
  return items.flatMap(({ kind, upstream, name, wire }) => {
    if (kind !== 'tool') return [];
    const others = [wire.toUpperCase(), `${wire}\u200b`, wire.replace('a', 'а'), `${wire}x`];
    return others.filter((other) => other !== wire).map((other) => ask(kind, upstream, `${name}?`, other, {}));
  });
}

/** How one URI can be spelt. */
const SPELLINGS = ['rePO://ACME/%78', 'repo://acme/y/../x', 'repo://acme/./x'];

/** What a caller sees: `allowed`, `hidden`, `challenge`, or the reason of a refusal. */
type Answer = string;
type Seen = {
  readonly lists: { readonly [kind in ItemKind]: readonly string[] };
  readonly answers: readonly Answer[];
};

const LIST_OF = {
  tool: ['tools/list', 'tools', 'name'],
  prompt: ['prompts/list', 'prompts', 'name'],
  resource: ['resources/list', 'resources', 'uri'],
  template: ['resources/templates/list', 'resourceTemplates', 'uriTemplate'],
} as const;
const KINDS = ['tool', 'prompt', 'resource', 'template'] as const;
const NOT_FOUND: ReadonlySet<Json | undefined> = new Set([-32602, -32002]);

function answerOf(reply: Reply): Answer {
  if (reply.status === 403 && reply.headers.has('www-authenticate')) return 'challenge';
  const { error } = reply.message ?? {};
  const result = resultOf(reply);
  const holder = isObject(error) ? error['data'] : result['_meta'];
  const decision = isObject(holder) ? holder['dev.sallyport/decision'] : undefined;
  const reason = isObject(decision) ? decision['reason'] : undefined;
  if (typeof reason === 'string') return reason;
  if (isObject(error)) return NOT_FOUND.has(error['code']) ? 'hidden' : JSON.stringify(error);
  return Object.keys(result).length === 0 ? reply.text : 'allowed';
}

async function listOf(caller: EraCaller, kind: ItemKind): Promise<readonly string[]> {
  const [method, member, key] = LIST_OF[kind];
  const items = resultOf(await caller.request(method))[member];
  if (!Array.isArray(items)) return [`no list of ${kind}`];
  return (items as readonly JsonObject[]).map((item) => String(item[key])).sort();
}

async function see(caller: EraCaller, questions: readonly Question[]): Promise<Seen> {
  // An endpoint reads a URI that several upstreams might serve from the one that listed it.
  const lists = {
    tool: await listOf(caller, 'tool'),
    prompt: await listOf(caller, 'prompt'),
    resource: await listOf(caller, 'resource'),
    template: await listOf(caller, 'template'),
  };
  const answers: Answer[] = [];
  for (const { method, params } of questions) answers.push(answerOf(await caller.request(method, params)));
  return { lists, answers };
}

/** `who`, `what` and law 2, as plainly as the contract says them. */
function isListed(rules: readonly Written[], from: Claims, item: Item): boolean {
  const applies = ({ who: by, what: about }: Written): boolean =>
    (by.groups?.some((group) => from.groups.includes(group)) ?? true) &&
    (by.subjects?.includes(from.sub) ?? true) &&
    (by.clients?.includes(from.client_id) ?? true) &&
    (by.claims?.tier.includes(from.tier ?? '') ?? true) &&
    (about.upstreams ?? ['*']).some((pattern) => asGlob(pattern).test(item.upstream)) &&
    namesOf(about, item.kind).some((pattern) => asGlob(pattern, item.kind).test(item.name));
  const result = ({ when }: Written): Json | undefined => ofCaller(when, from, item);
  const hides = (one: Written): boolean => !one.args && (!one.when || result(one) === true || result(one) === 'error');
  return (
    rules.some((one) => one.effect === 'allow' && applies(one) && (result(one) ?? true) === true) &&
    !rules.some((one) => one.effect === 'deny' && hides(one) && applies(one))
  );
}

/** What a condition of these laws says that reads caller and item alone; undefined for any other. */
function ofCaller(when: string | undefined, from: Claims, { kind, name }: Item): Json | undefined {
  const hints = kind === 'tool' ? (HINTS[name] ?? {}) : {};
  const { destructiveHint = 'error', readOnlyHint } = hints;
  switch (when) {
    case 'principal.subject == "ada"':
      return from.sub === 'ada';
    case 'has(principal.claims.tier) && principal.claims.tier == "gold"':
      return from.tier === 'gold';
    case 'tool.annotations.destructiveHint':
      return destructiveHint;
    case '!tool.annotations.readOnlyHint':
      return readOnlyHint === undefined ? 'error' : !readOnlyHint;
    default:
      return undefined;
  }
}

function namesOf({ tools, prompts, resources, templates }: What, kind: ItemKind) {
  return { tool: tools, prompt: prompts, resource: resources, template: templates }[kind] ?? [];
}

function asGlob(pattern: string, kind: ItemKind = 'tool'): RegExp {
  if (kind === 'template') return new RegExp(`^${pattern.replaceAll(/[{}]/g, (brace) => `\\${brace}`)}$`);
  if (pattern.startsWith('re:')) return new RegExp(`^(?:${pattern.slice(3)})$`);
  const star = kind === 'resource' ? '[^/]*' : '[^]*';
  const glob = pattern.replaceAll('**', '\0').replaceAll('*', star).replaceAll('\0', '[^]*');
  return new RegExp(`^${glob}$`);
}

function text(rules: readonly Written[]): string {
  return `version: 1\npolicy: laws\nrules: ${JSON.stringify(rules)}\n`;
}

describe.each(WAYS)('the laws, for a client of %s before %s', (client, behind) => {
  /** Each way has cases of its own. */
  const seed = SEED + WAYS.findIndex(([one, other]) => one === client && other === behind);
  const world = shared(() => startWorld(client, behind));

  async function apply(rules: readonly Written[]): Promise<void> {
    expect(await world.apply(text(rules)), text(rules)).toEqual([]);
  }

  /** Runs with each of these callers; `see` is what one sees of the questions now. */
  async function withCallers(
    all: readonly Claims[],
    run: (callers: readonly { readonly claims: Claims; readonly caller: EraCaller }[]) => Promise<void>,
  ): Promise<void> {
    const callers = [];
    for (const one of all) callers.push({ claims: one, caller: await world.connect(one) });
    try {
      await run(callers);
    } finally {
      for (const { caller } of callers) caller.leave();
    }
  }

  function check<Values extends [unknown, ...unknown[]]>(
    numRuns: number,
    arbitraries: { [Index in keyof Values]: fc.Arbitrary<Values[Index]> },
    predicate: (...values: Values) => Promise<void>,
  ): Promise<void> {
    const property = fc.asyncProperty<Values>(...arbitraries, predicate);
    // The requests of a case cost time, so a failure is shown as it was found.
    return fc.assert(property, { seed: seed + numRuns, numRuns, endOnFailure: true });
  }

  const ADA: Claims = { sub: 'ada', client_id: 'editor', groups: ['eng'], scope: 's1 s2' };
  const BOB: Claims = { ...ADA, sub: 'bob' };

  it('[P-01] law 1: without a rule there is the protocol, and nothing else', async () => {
    await apply([]);
    const questions = questionsOf(world.items);
    await withCallers([ADA], async ([one]) => {
      expect(one?.caller.opened).toHaveProperty('capabilities');
      expect(one?.caller.opened).not.toHaveProperty('instructions');
      const seen = one && (await see(one.caller, questions));
      expect(seen?.lists).toEqual({ tool: [], prompt: [], resource: [], template: [] });
      expect(new Set(seen?.answers)).toEqual(new Set(['hidden']));
    });
    await apply([{ id: 'r', effect: 'allow', who: { subjects: ['ada'] }, what: { prompts: ['p'] } }]);
    await withCallers([ADA, BOB], async ([ada, bob]) => {
      expect(JSON.stringify(ada?.caller.opened['instructions'])).toContain(INSTRUCTIONS);
      expect(bob?.caller.opened).not.toHaveProperty('instructions');
    });
  });

  it.each([
    ['of policies as they are', CASES, false],
    ['of policies that change', CASES_OF_CHANGE, true],
  ])(
    '[P-02, P-05, P-06, P-11, P-12, P-15] laws 2, 3, 5, 6 and 7, %s',
    async (_, cases, changes) => {
      const { items } = world;
      const everything = [...questionsOf(items), ...lookAlikes(items)];
      const home = items[0]?.upstream ?? '';
      // An endpoint knows a URI as an upstream lists it, and asks nobody about one that two of them may serve.
      const spellings = ['repo://acme/x', ...(behind === 'endpoint' ? [] : SPELLINGS)];
      const spelt = spellings.map((uri) => ask('resource', home, uri, uri, {}));
      const rules = fc
        .array(
          fc.oneof(
            { weight: 5, arbitrary: rule('allow', items) },
            { weight: 2, arbitrary: rule('deny', items) },
            { weight: 1, arbitrary: rule('require', items) },
          ),
          { minLength: 3, maxLength: 7 },
        )
        .map((list) => (changes ? [BASE, ...named(list)] : named(list)));
      const restricting = fc.oneof(rule('deny', items), rule('require', items));
      const asked = fc.subarray([...everything], { minLength: 10, maxLength: 10 });
      const callers = fc.uniqueArray(claims, {
        ...{ minLength: 2, maxLength: 2 },
        selector: (one) => JSON.stringify(one),
      });
      let allowed = 0;
      let refused = 0;

      await check<[readonly Written[], Written, Written, readonly Claims[], readonly Question[]]>(
        cases,
        [rules, restricting, rule('allow', items), callers, asked],
        async (written, less, more, all, sampled) => {
          const questions = [...sampled, ...spelt];
          await withCallers(all, async (connected) => {
            const seen = async (under: readonly Written[]): Promise<readonly Seen[]> => {
              await apply(under);
              const found: Seen[] = [];
              for (const { caller } of connected) found.push(await see(caller, questions));
              return found;
            };
            const before = await seen(written);
            const predict = await openAuthorTools(world.config);
            for (const [index, { claims: from }] of connected.entries()) {
              const { lists, answers } = before[index] as Seen;
              // Law 2: lists are who and what, and what may be called is listed.
              for (const kind of KINDS) {
                const expected = items.filter((one) => one.kind === kind && isListed(written, from, one));
                expect(lists[kind], `${kind}s for ${JSON.stringify(from)}`).toEqual(
                  expected.map(({ wire }) => wire).sort(),
                );
              }
              const caller = {
                ...{ issuer: 'test', subject: from.sub, client: from.client_id },
                ...{ groups: from.groups, scopes: from.scope.split(' ').filter(Boolean) },
                claims: from.tier === undefined ? {} : { tier: from.tier },
              };
              for (const [at, question] of questions.entries()) {
                const about = `${JSON.stringify(question.params)} for ${JSON.stringify(from)}`;
                expect(answers[at], about).toBe(predict(caller, question));
                const { name } = question.params;
                if (answers[at] === 'allowed' && typeof name === 'string')
                  expect(lists[question.method === 'tools/call' ? 'tool' : 'prompt']).toContain(name);
                if (answers[at] === 'hidden') refused += 1;
                if (answers[at] === 'allowed') allowed += 1;
              }
              // Law 6: one URI has one answer, however it is spelt.
              expect(new Set(answers.slice(-spelt.length)).size).toBe(1);
            }
            if (!changes) return;
            // Law 3: the order is of no account.
            expect(await seen([...written].reverse())).toEqual(before);
            // Law 3: a deny or a require takes away, an allow gives.
            expectLess(await seen([...written, ...named([less], 'less')]), before);
            expectLess(before, await seen([...written, ...named([more], 'more')]));
            // Law 5: a failing deny or require refuses all, a failing allow changes nothing. A deny about the caller alone
            // hides what it names.
            const failing: Omit<Written, 'effect'> = {
              ...{ id: 'f', what: { tools: ['*'], prompts: ['*'] } },
              who: { anyone: true },
              when: 'principal.claims.absent',
            };
            for (const effect of ['deny', 'require'] as const) {
              const now = await seen([...written, { ...failing, effect }]);
              for (const [index, { lists, answers }] of now.entries()) {
                const hidden = effect === 'deny' ? { tool: [], prompt: [] } : {};
                expect(lists).toEqual({ ...before[index]?.lists, ...hidden });
                for (const [at, answer] of answers.entries()) {
                  if (questions[at]?.method === 'resources/read') continue;
                  if (effect === 'deny') expect(answer).toBe('hidden');
                  else if (before[index]?.answers[at] === 'allowed') expect(answer).toBe('policy-error');
                  else expect(answer).not.toBe('allowed');
                }
              }
            }
            const granted = await seen([...written, { ...failing, effect: 'allow' }]);
            for (const [index, { answers }] of granted.entries()) {
              const calls = (list: readonly Answer[] = []) => list.map((one) => one === 'allowed');
              expect(calls(answers)).toEqual(calls(before[index]?.answers));
            }
            // Law 7: rules that read annotations only take away.
            const readsHints = ({ when }: Written): boolean => when?.includes('annotations') ?? false;
            if (written.some(readsHints)) expectLess(before, await seen(written.filter((one) => !readsHints(one))));
          });
        },
      );
      if (!changes) expect([allowed > 0, refused > 0]).toEqual([true, true]);
    },
    TIMEOUT_MS,
  );

  /** Whatever the one may call and see, the other may. */
  function expectLess(less: readonly Seen[], more: readonly Seen[]): void {
    for (const [index, { lists, answers }] of less.entries()) {
      for (const kind of KINDS) expect(more[index]?.lists[kind]).toEqual(expect.arrayContaining([...lists[kind]]));
      for (const [at, answer] of answers.entries())
        if (answer === 'allowed') expect(more[index]?.answers[at]).toBe('allowed');
    }
  }

  it('[P-55, P-52, P-50] law 4: a policy with a mistake changes nothing, and pins that change make none', async () => {
    const { items } = world;
    const questions = questionsOf(items);
    const open: Written = {
      ...{ id: 'r', effect: 'allow', who: { anyone: true } },
      what: { tools: ['t_a', 't_b'], prompts: ['*'], resources: ['**'] },
    };
    await apply([open]);
    const mistakes: readonly What[] = [
      { tools: ['t_q'] },
      { prompts: ['P'] },
      { templates: ['repo://{y}'] },
      { tools: [] },
      { upstreams: ['nowhere'], tools: ['*'] },
    ];
    await withCallers([ADA], async ([one]) => {
      if (one === undefined) return;
      const before = await see(one.caller, questions);
      expect(before.answers).toContain('allowed');
      for (const mistake of mistakes) {
        const deny: Written = { ...open, id: 'd', effect: 'deny', what: { tools: ['*'] } };
        const wrong = { ...open, id: 'w', what: mistake };
        expect((await world.apply(text([deny, wrong]))).length).toBeGreaterThan(0);
      }
      expect(await see(one.caller, questions)).toEqual(before);
      if (world.changeTool === undefined) return;
      world.changeTool('t_b');
      // Law 7: a claim of the server that a tool only reads, which nobody approved, opens nothing.
      const hints = 'has(tool.annotations.destructiveHint) && tool.annotations.destructiveHint';
      await apply([open, { ...open, id: 'd', effect: 'deny', what: { tools: ['*'] }, when: hints }]);
      const after = await see(one.caller, questions);
      expect(after.lists.tool).toEqual(['t_a']);
      for (const [at, { params }] of questions.entries())
        expect(after.answers[at]).toBe(params['name'] === 't_b' ? 'hidden' : before.answers[at]);
    });
  });
});
