// What a rule reads of the arguments must be described; what no rule reads may stand in open objects.

import { describe, expect, it } from 'vitest';
import type { RuleDocument } from '../../../src/policy/compile/documents.js';
import { decide } from '../../../src/policy/decide.js';
import type { Catalog, DefinitionStatus, PinnedDefinition } from '../../../src/policy/definitions.js';
import type { Json, JsonObject, Target } from '../../../src/protocol/jsonrpc.js';
import { catalog, policiesOf, principal } from './samples.js';

const SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    owner: { type: 'string' },
    url: { type: 'string' },
    headers: { type: 'object' },
    free: {},
    filter: { type: 'object', properties: { state: { type: 'string' } } },
    labels: { type: 'object', additionalProperties: { type: 'string' } },
    list: { type: 'array', items: { type: 'object', properties: { kind: { type: 'string' } } } },
  },
};
const PINS = catalog({
  tools: { fetch: { inputSchema: SCHEMA } },
  undeclaredArguments: 'any',
});
const TARGET: Target = { kind: 'tool', name: 'fetch' };
const CALLER = principal();
const WHO = { who: { anyone: true }, what: { upstreams: ['github'], tools: ['fetch'] } } as const;
const ALL: RuleDocument = { id: 'all', effect: 'allow', ...WHO };

type Reading = { readonly args?: { readonly [name: string]: JsonObject | boolean } } & {
  readonly when?: string;
};

function verdictOf(rules: readonly RuleDocument[], args: JsonObject, definitions: Catalog = PINS): string {
  const decision = decide(policiesOf(rules), {
    principal: CALLER,
    upstream: 'github',
    target: TARGET,
    args,
    catalog: definitions,
  });
  return decision.verdict === 'allow' ? 'allow' : decision.reason;
}

/** One verdict for a rule that grants, that denies and that requires by what it reads. */
function verdicts(reading: Reading, args: JsonObject): readonly string[] {
  const allow: RuleDocument = { id: 'a', effect: 'allow', ...WHO, ...reading };
  const deny: RuleDocument = { id: 'd', effect: 'deny', ...WHO, ...reading };
  const require: RuleDocument = {
    id: 'r',
    effect: 'require',
    ...WHO,
    ...reading,
    inspect: 'careful',
  };
  return [verdictOf([allow], args), verdictOf([ALL, deny], args), verdictOf([ALL, require], args)];
}

const HOLDS = ['allow', 'denied-by-rule', 'allow'];
const FAILS = ['arguments-invalid', 'allow', 'allow'];
const REFUSED = ['arguments-invalid', 'arguments-invalid', 'arguments-invalid'];
const DEFINITIONS: JsonObject = { $defs: { x: { maxProperties: 3 } } };
const OPEN = { headers: { accept: 'a', 'X-Any': { deep: 1 } }, free: { a: [{ b: 1 }] } };

describe('what no rule reads', () => {
  it.each<[string, Reading]>([
    ['args', { args: { owner: { const: 'acme' } } }],
    ['args with several keywords', { args: { owner: { type: 'string', pattern: '^a', maxLength: 9 } } }],
    ['args with alternatives', { args: { owner: { anyOf: [{ const: 'acme' }, { const: 'b' }] } } }],
    ['when', { when: 'args.owner == "acme"' }],
    ['when, by index', { when: 'args["owner"].startsWith("ac")' }],
    ['has()', { when: 'has(args.owner)' }],
    ['in', { when: '"owner" in args' }],
    ['has() of an open object', { when: 'has(args.headers)' }],
    ['in for an open object', { when: '"headers" in args' }],
    ['the type of an open object', { args: { headers: { type: 'object' } } }],
    ['a scalar in place of an open object', { args: { headers: { not: { const: 'none' } } } }],
  ])('may stand in open objects beside %s [P-10]', (_what, reading) => {
    expect(verdicts(reading, { owner: 'acme', ...OPEN })).toEqual(HOLDS);
    expect(verdicts(reading, { owner: 'acme', ...OPEN, extra: { any: 1 } })).toEqual(HOLDS);
    expect(verdicts(reading, { owner: 'acme', ...OPEN, filter: { other: 1 } })).toEqual(HOLDS);
  });

  it('may stand beside what is read at any depth [P-10]', () => {
    const reading = { when: 'args.filter.state == "open"' };
    const items = { args: { list: { items: { properties: { kind: { const: 'a' } } } } } };
    expect(verdicts(reading, { filter: { state: 'open', more: { x: 1 } } })).toEqual(HOLDS);
    expect(verdicts(reading, { filter: { state: 'shut', more: { x: 1 } } })).toEqual(FAILS);
    expect(verdicts(items, { list: [{ kind: 'a', more: { x: 1 } }] })).toEqual(HOLDS);
    expect(verdicts(items, { list: [{ kind: 'b', more: { x: 1 } }] })).toEqual(FAILS);
  });
});

describe('two members whose names differ only in case', () => {
  const both: JsonObject = {
    type: 'object',
    properties: {
      ...{ path: {}, Path: {}, other: {}, Other: {}, free: {}, '\u212aey': {}, key: {} },
      list: { type: 'array', items: { type: 'object', properties: { kind: {}, KIND: {} } } },
    },
  };
  const declared = catalog({ tools: { fetch: { inputSchema: both } } });
  const verdictsOf = (reading: Reading, args: JsonObject): readonly string[] =>
    (['allow', 'deny'] as const).map((effect) => {
      const rule: RuleDocument = { id: 'x', effect, ...WHO, ...reading };
      return verdictOf(effect === 'allow' ? [rule] : [ALL, rule], args, declared);
    });

  it.each<[string, Reading, JsonObject]>([
    ['args', { args: { path: { const: '/a' } } }, { path: '/a', Path: '/b' }],
    ['when', { when: 'args.path == "/a"' }, { path: '/a', Path: '/b' }],
    ['has()', { when: 'has(args.path)' }, { path: '/a', Path: '/b' }],
    ['a Kelvin sign', { when: 'args.key == "/a"' }, { key: '/a', '\u212aey': '/b' }],
    [
      'items',
      { args: { list: { items: { properties: { kind: { const: 'a' } } } } } },
      { list: [{ kind: 'a', KIND: 'b' }] },
    ],
    ['anyArg', { when: 'anyArg(a, a == "/a")' }, { path: '/a', other: '1', Other: '2' }],
    ['anyArg, deeply', { when: 'anyArg(a, a == "1")' }, { free: [{ x: '1', X: '2' }] }],
  ])('are refused where a rule reads one of them, although both are declared: %s [P-10]', (_what, reading, args) => {
    expect(verdictsOf(reading, args)).toEqual(['arguments-invalid', 'arguments-invalid']);
  });

  it('pass where no rule reads them [P-10]', () => {
    const args = { path: '/a', other: '1', Other: '2', free: { A: 1, a: 2 } };
    expect(verdictsOf({ when: 'args.path == "/a"' }, args)).toEqual(['allow', 'denied-by-rule']);
    expect(verdictsOf({}, args)).toEqual(['allow', 'denied-by-rule']);
  });
});

describe('what a rule reads', () => {
  it.each<[string, Reading, JsonObject]>([
    ['a member of an open object', { when: 'args.headers.host == "a"' }, { headers: { host: 'b' } }],
    ['by has()', { when: 'has(args.headers.host)' }, { headers: { host: 'b' } }],
    ['by in', { when: '"host" in args.headers' }, { headers: { host: 'b' } }],
    ['by a schema', { args: { headers: { required: ['host'] } } }, { headers: { host: 'b' } }],
    [
      'by properties of a schema',
      { args: { headers: { properties: { host: { const: 'a' } } } } },
      { headers: { host: 'b' } },
    ],
    ['an object as a whole', { when: 'args.headers.size() == 0' }, { headers: { host: 'b' } }],
    ['by a variable', { when: 'args.headers.all(k, k == "a")' }, { headers: { host: 'b' } }],
    ['all arguments', { when: 'args.all(k, k == "owner")' }, { owner: 'a', headers: { b: 1 } }],
    ['all arguments in a list', { when: '[args].all(a, has(a.owner))' }, { owner: 'a', extra: 1 }],
    ['by additionalProperties', { args: { headers: { additionalProperties: false } } }, { headers: { b: 1 } }],
    ['by propertyNames', { args: { headers: { propertyNames: { const: 'a' } } } }, { headers: { b: 1 } }],
    ['by maxProperties', { args: { headers: { maxProperties: 0 } } }, { headers: { b: 1 } }],
    ['by a whole value', { args: { headers: { const: { b: 2 } } } }, { headers: { b: 1 } }],
    ['in items', { when: 'args.list.all(one, one.kind == "a")' }, { list: [{ kind: 'b', other: 1 }] }],
    [
      'in items of a schema',
      { args: { list: { items: { properties: { other: { const: 1 } } } } } },
      { list: [{ other: 2 }] },
    ],
    ['by a computed name', { when: 'args.headers["ho" + "st"] == "a"' }, { headers: { host: 'b' } }],
    ['by a name of the caller', { when: 'args[principal.subject] == "a"' }, { headers: { b: 1 } }],
    ['by a leading dot', { when: '.args.headers.host == "a"' }, { headers: { host: 'b' } }],
    ['in a list literal', { when: '[args.headers][0].host == "a"' }, { headers: { host: 'b' } }],
    ['in a map literal', { when: '{"a": args}.a.owner == "b"' }, { owner: 'a', more: 1 }],
    ['in a choice', { when: '(true ? args : {}).owner == "b"' }, { owner: 'a', more: 1 }],
    ['through dyn()', { when: '"host" in dyn(args.headers)' }, { headers: { host: 'b' } }],
    ['by a name that is no literal', { when: 'args.owner in args' }, { owner: 'a', more: 1 }],
    ['by a comparison', { when: 'args.headers == {"a": "b"}' }, { headers: { a: 'c' } }],
    ['by map()', { when: 'args.headers.map(k, k) == ["a"]' }, { headers: { b: 1 } }],
    ...Object.entries<Json>({
      minProperties: 2,
      dependentRequired: { a: ['b'] },
      dependentSchemas: { a: { required: ['b'] } },
      unevaluatedProperties: false,
      patternProperties: { '^a': false },
      $ref: '#/$defs/x',
      contains: { const: 1 },
      allOf: [{ properties: { a: { const: 1 } } }],
      not: { required: ['a'] },
      if: { required: ['a'] },
      else: { properties: { a: { type: 'string' } } },
    }).map(([keyword, value]): [string, Reading, JsonObject] => [
      `by ${keyword}`,
      {
        args: { headers: { [keyword]: value, ...(keyword === '$ref' ? DEFINITIONS : undefined) } },
      },
      { headers: { a: 1 } },
    ]),
  ])('must be described: %s [P-10]', (_what, reading, args) => {
    expect(verdicts(reading, args)).toEqual(REFUSED);
  });

  it.each<[string, JsonObject]>([
    ['in another case', { Owner: 'evil' }],
    ['beside itself', { owner: 'acme', OWNER: 'evil' }],
    ['with separators', { o_w_n_e_r: 'evil' }],
    ['with blanks', { 'owner ': 'evil' }],
    ['in compatibility forms', { '\uff4fwner': 'evil' }],
    ['with what cannot be seen', { 'ow\u200bner': 'evil' }],
    ['through a prototype', JSON.parse('{"__proto__": {"owner": "evil"}}') as JsonObject],
    ['through a constructor', { constructor: { prototype: { owner: 'evil' } } }],
  ])('has one spelling: %s [P-10]', (_what, args) => {
    expect(verdicts({ when: 'has(args.owner) && args.owner == "evil"' }, args)).toEqual(REFUSED);
    expect(verdicts({ args: { owner: { const: 'acme' } } }, args)).toEqual(REFUSED);
  });

  it.each<[string, Reading, JsonObject]>([
    ['with a dot', { when: 'args.filter.all(k, k != "x")' }, { filter: {}, 'filter.x': 1 }],
    ['in brackets', { when: 'args.filter.all(k, k != "x")' }, { filter: {}, 'Filter[x]': 1 }],
    ['with a slash', { when: 'args.filter == {"state": "a"}' }, { 'filter/state': 'b' }],
    ['into a list', { args: { list: { items: { type: 'object' } } } }, { list: [], 'list.0': 1 }],
    ['with an index', { args: { owner: { const: 'acme' } } }, { owner: 'acme', 'owner[0]': 'b' }],
    ['with no index', { args: { owner: { const: 'acme' } } }, { owner: 'acme', 'owner[]': 'b' }],
  ])('is not reached by a path: %s [P-10]', (_what, reading, args) => {
    expect(verdicts(reading, args)).toEqual(REFUSED);
  });

  it('is not meant by a path to something else [P-10]', () => {
    const args = { owner: 'acme', filter: {}, 'more.owner': 1, 'headers.owner': 2, 'filter.b': 3 };
    const when = 'args.owner == "acme" && !has(args.filter.state)';
    expect(verdicts({ when }, args)).toEqual(HOLDS);
    expect(verdicts({ args: { owner: { const: 'acme' } } }, args)).toEqual(HOLDS);
  });

  it('has one spelling below an object, and in objects whose members share a schema [P-10]', () => {
    const state = {
      when: 'has(args.filter) && has(args.filter.state) && args.filter.state == "x"',
    };
    expect(verdicts(state, { filter: { State: 'x' } })).toEqual(REFUSED);
    expect(verdicts(state, { 'filter.state': 'x' })).toEqual(REFUSED);
    const label = { when: 'has(args.labels) && has(args.labels.env) && args.labels.env == "x"' };
    expect(verdicts(label, { labels: { env: 'x', team: 'y' } })).toEqual(HOLDS);
    expect(verdicts(label, { labels: { Env: 'x' } })).toEqual(REFUSED);
  });
});

describe('without pinning', () => {
  const off = (standing: Partial<DefinitionStatus>) => ({
    ...catalog({ mode: 'off' }),
    statusOf: (): DefinitionStatus => ({
      state: 'unpinned',
      pinned: undefined,
      observed: 'digest',
      ...standing,
    }),
  });
  const listed = PINS.statusOf('tool', 'fetch').pinned;
  const RULE: RuleDocument = {
    id: 'a',
    effect: 'allow',
    ...WHO,
    args: { owner: { const: 'acme' } },
  };

  it('what was listed describes what a rule reads, and checks all arguments [P-10]', () => {
    const described = off({ listed });
    expect(verdictOf([RULE], { owner: 'acme', ...OPEN }, described)).toBe('allow');
    expect(verdictOf([RULE], { owner: 'acme', Owner: 'b' }, described)).toBe('arguments-invalid');
    expect(verdictOf([ALL], { owner: 7 }, described)).toBe('arguments-invalid');
  });

  it('a listing that cannot be used describes nothing, and without one names have one spelling [P-10]', () => {
    const args = { owner: 'acme', other: 1 };
    expect(verdictOf([RULE], args, off({}))).toBe('arguments-invalid');
    expect(verdictOf([ALL], args, off({}))).toBe('allow');
    const unlisted = off({ observed: undefined });
    expect(verdictOf([RULE], args, unlisted)).toBe('allow');
    expect(verdictOf([RULE], { ...args, Owner: 'b' }, unlisted)).toBe('arguments-invalid');
    const deep = { ...RULE, args: { filter: { properties: { state: { const: 'x' } } } } };
    expect(verdictOf([deep], { filter: { state: 'x', a: 1 } }, unlisted)).toBe('allow');
    expect(verdictOf([deep], { filter: { state: 'x', State: 1 } }, unlisted)).toBe('arguments-invalid');
  });

  it('annotations are read from what was approved alone', () => {
    const open = {
      ...listed,
      definition: { annotations: { readOnlyHint: true } },
    } as PinnedDefinition;
    const deny: RuleDocument = {
      id: 'd',
      effect: 'deny',
      ...WHO,
      when: 'tool.annotations.readOnlyHint != true',
    };
    expect(verdictOf([ALL, deny], {}, off({ listed: open }))).toBe('policy-error');
  });
});
