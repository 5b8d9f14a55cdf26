// What callers are shown of a schema where rules narrow the arguments, and that it refuses nothing that is allowed.

import { Ajv2020 } from 'ajv/dist/2020.js';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileSchema } from '../../../src/policy/json-schema/validator.js';
import { narrowInputSchema, type SchemaEdit } from '../../../src/policy/narrowed-schema.js';
import { portablePattern } from '../../../src/policy/patterns.js';
import { setMember } from '../../../src/protocol/json/json.js';
import type { Json, JsonObject } from '../../../src/protocol/jsonrpc.js';
import { policiesOf, principal } from './samples.js';

type Args = { readonly [name: string]: JsonObject | boolean };

/** The edits for a caller whom an allow rule for each of these `args` matches. */
function editsOf(rules: readonly (Args | undefined)[], inputSchema: JsonObject) {
  const allow = { effect: 'allow', who: { anyone: true }, what: { tools: ['t'] } } as const;
  const written = rules.map((args, at) => ({ ...allow, id: `r${at}`, ...(args && { args }) }));
  return narrowInputSchema(policiesOf(written), principal(), 'github', { name: 't', inputSchema });
}

function apply(inputSchema: JsonObject, edits: readonly SchemaEdit[]): JsonObject {
  const text = edits.reduce(
    (shown, { path, keyword, value }) => setMember(shown, path, keyword, value ?? null),
    JSON.stringify({ inputSchema }),
  );
  return (JSON.parse(text) as { inputSchema: JsonObject }).inputSchema;
}

function shown(rules: readonly (Args | undefined)[], inputSchema: JsonObject): JsonObject {
  return apply(inputSchema, editsOf(rules, inputSchema));
}

const STRING = { type: 'string' };

describe('[P-34] a narrowed schema', () => {
  const pin = { type: 'object', properties: { p: STRING, q: STRING, n: { type: 'number' } } };
  const ofP = (rules: readonly Args[], p: JsonObject = STRING) =>
    (shown(rules, { ...pin, properties: { ...pin.properties, p } })['properties'] as JsonObject)['p'];

  it('says which values one rule admits, and which several together do', () => {
    expect(shown([{ p: { const: 'a' } }], pin)).toEqual({
      ...pin,
      required: ['p'],
      properties: { ...pin.properties, p: { ...STRING, const: 'a' } },
    });
    expect(ofP([{ p: { const: 'a' } }, { p: { enum: ['b', 'a'] } }])).toEqual({
      ...STRING,
      enum: ['a', 'b'],
    });
    expect(ofP([{ p: { enum: ['b', 'z'] } }], { enum: ['a', 'b', 'c'] })).toEqual({ enum: ['b'] });
  });

  it('says the hull of ranges, and keeps what the upstream bounds more tightly', () => {
    const rules = [{ p: { minimum: 2, maximum: 5 } }, { p: { const: 9 } }];
    expect(ofP(rules, {})).toEqual({ minimum: 2, maximum: 9 });
    expect(ofP(rules, { minimum: 3, maximum: 20 })).toEqual({ minimum: 3, maximum: 9 });
    const open = [{ p: { exclusiveMinimum: 2 } }, { p: { minimum: 2 } }];
    expect(ofP(open, {})).toEqual({ minimum: 2 });
    expect(ofP([{ p: { maxLength: 3 } }, { p: { maxLength: 5 } }])).toEqual({
      ...STRING,
      maxLength: 5,
    });
    expect(ofP([{ p: { maximum: 3 } }, { p: { minimum: 1 } }], {})).toEqual({});
  });

  it('says a pattern that all rules have, in the syntax that all readers know', () => {
    expect(ofP([{ p: { pattern: '^a.c$' } }])).toEqual({ ...STRING, pattern: '^a[^\\n]c$' });
    expect(ofP([{ p: { pattern: '^a$' } }, { p: { pattern: '^b$' } }])).toEqual(STRING);
    expect(ofP([{ p: { pattern: '^a$' } }], { pattern: '^.$' })).toEqual({ pattern: '^.$' });
  });

  it('reaches into objects, and requires what every rule requires', () => {
    const nested = { ...pin, properties: { f: { properties: { s: STRING } } }, required: ['x'] };
    const args = { f: { properties: { s: { const: 'open' } }, required: ['s'] } };
    expect(shown([args], nested)).toEqual({
      ...nested,
      required: ['x', 'f'],
      properties: {
        f: { properties: { s: { ...STRING, const: 'open' } }, required: ['s'] },
      },
    });
    expect(shown([{ p: true, q: true }, { q: true }], pin)).toEqual({ ...pin, required: ['q'] });
  });

  it('is that of the upstream where nothing is narrowed, or nothing could be said', () => {
    expect(editsOf([], pin)).toEqual([]);
    expect(editsOf([{ p: { const: 'a' } }, undefined], pin)).toEqual([]);
    for (const args of [{ p: { not: { const: 'a' } } }, { p: { const: ['a'] } }, { p: false }]) {
      expect(shown([args], { ...pin, required: ['p'] })).toEqual({ ...pin, required: ['p'] });
    }
    const elsewhere = { properties: { p: { $ref: '#/$defs/p' } }, $defs: { p: STRING } };
    expect(shown([{ p: { const: 'a' } }], elsewhere)).toEqual({ ...elsewhere, required: ['p'] });
    const twice = { properties: { p: STRING, o: { $ref: '#/properties/p' } } };
    expect(editsOf([{ p: { const: 'a' } }], twice)).toEqual([]);
    expect(editsOf([{ p: { const: 'a' } }], { properties: { p: STRING, o: { $ref: '#' } } })).toEqual([]);
  });
});

describe('[P-34] a pattern', () => {
  it.each([
    ['(?i)a', undefined],
    ['[[:alpha:]]', undefined],
    ['\\pL', undefined],
    ['\\Aa\\z', undefined],
    ['\\bword\\b', undefined],
    ['[\\s-z]', undefined],
    ['[]a]', undefined],
    ['(?:a|b){2}', '(?:a|b){2}'],
    ['\\S[\\s]', '[^\\t\\n\\f\\r ][\\t\\n\\f\\r ]'],
    ['[\\\\s.]', '[\\\\s.]'],
    ['^\\d\\.\\d$', '^\\d\\.\\d$'],
  ])('%s is shown as %s', (pattern, text) => {
    expect(portablePattern(pattern)).toBe(text);
  });
});

describe('[P-34] for generated rules and schemas', () => {
  const values: readonly Json[] = [
    ...['', 'a', 'abc', 'a\rc', 'a\nc', 'a\u2028c', 'a c', 'a\u00a0c', 'A', '1', '\u{1f600}'],
    ...[0, 1, 2, 2.5, 7, -1, true, null, [], ['a'], [1, 2, 3], {}, { p: 'a' }, { p: 2, q: 'abc' }],
  ];
  const value = fc.constantFrom(...values);
  const scalar = value.filter((one) => one === null || typeof one !== 'object');
  const small = fc.constantFrom(0, 1, 2, 3, 7);
  const patterns = fc.constantFrom(
    ...['^a.c$', '^[^\\s]+$', '\\s', '(?i)^a', '^\\S*$', '[\\w-]', '^.?$', '^[^a]$', 'a|\\d'],
  );
  const names = fc.subarray(['p', 'q', 'r']);
  const schemaOf = (pattern: fc.Arbitrary<string>) =>
    fc.letrec<{ schema: JsonObject }>((tie) => ({
      schema: fc
        .record(
          {
            const: value,
            enum: fc.uniqueArray(scalar, { minLength: 1, maxLength: 4 }),
            minimum: small,
            exclusiveMinimum: small,
            maximum: small,
            exclusiveMaximum: small,
            minLength: small,
            maxLength: small,
            minItems: small,
            maxItems: small,
            pattern,
            required: names,
            not: fc.constant<JsonObject>({ const: 'a' }),
            properties: fc.dictionary(fc.constantFrom('p', 'q'), tie('schema'), { maxKeys: 2 }),
          },
          { requiredKeys: [] },
        )
        .chain((full) =>
          fc
            .shuffledSubarray(Object.keys(full), {
              maxLength: Math.min(2, Object.keys(full).length),
            })
            .map(
              (kept): JsonObject =>
                Object.fromEntries(Object.entries(full as JsonObject).filter(([key]) => kept.includes(key))),
            ),
        ),
    })).schema;
  // A pattern of the upstream is shown as it is, however its readers read it.
  const own = schemaOf(fc.constantFrom('^a', '[a-z]$'));
  const args = fc.dictionary(
    fc.constantFrom('p', 'q'),
    fc.oneof({ weight: 8, arbitrary: schemaOf(patterns) }, { weight: 1, arbitrary: fc.boolean() }),
    { minKeys: 1, maxKeys: 2 },
  );
  const pin = fc.record({
    type: fc.constant('object'),
    properties: fc.record({ p: own, q: own, r: own }, { requiredKeys: ['p'] }),
    required: names,
  });
  const call = fc.dictionary(fc.constantFrom('p', 'q', 'r'), value, { maxKeys: 3 });

  function compile(written: JsonObject | boolean): (one: Json) => boolean {
    const compiled = compileSchema(written);
    return (one) => compiled.ok && compiled.schema.check(one).length === 0;
  }

  it('admits whatever the approved schema and one rule admit, and says it in properties alone', () => {
    let allowed = 0;
    let narrowed = 0;
    const ajv = new Ajv2020({ strict: false, validateSchema: false });
    void fc.assert(
      fc.property(
        fc.array(args, { minLength: 1, maxLength: 3 }),
        pin,
        fc.array(call, { minLength: 12, maxLength: 12 }),
        (rules, written, calls) => {
          const edits = editsOf(rules, written as JsonObject);
          if (edits.length > 0) narrowed += 1;
          for (const { path, keyword } of edits) {
            expect(path[0]).toBe('inputSchema');
            expect(['allOf', 'anyOf', 'oneOf', 'not', 'if', '$ref']).not.toContain(keyword);
            if (path.length === 1) expect(keyword).toBe('required');
          }
          const isPinned = compile(written as JsonObject);
          const alternatives = rules.map((rule) =>
            Object.entries(rule).map(([name, of]) => [name, compile(of)] as const),
          );
          const admitsShown = ajv.compile(apply(written as JsonObject, edits));
          for (const one of calls) {
            const isAllowed =
              isPinned(one) &&
              alternatives.some((rule) =>
                rule.every(([name, holds]) => Object.hasOwn(one, name) && holds(one[name] ?? null)),
              );
            if (!isAllowed) continue;
            allowed += 1;
            expect(admitsShown(one)).toBe(true);
          }
        },
      ),
      { numRuns: 250 },
    );
    expect(allowed).toBeGreaterThan(0);
    expect(narrowed).toBeGreaterThan(0);
  });
});
