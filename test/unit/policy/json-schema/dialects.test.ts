// How schemas are read, by dialect: a table of schemas with values that they admit and values that they do not.

import { describe, expect, it } from 'vitest';
import { compileSchema } from '../../../../src/policy/json-schema/validator.js';
import { keepExactNumbers } from '../../../../src/protocol/json/exact-numbers.js';
import type { Json, JsonObject } from '../../../../src/protocol/jsonrpc.js';

const D4 = 'http://json-schema.org/draft-04/schema#';
const D6 = 'http://json-schema.org/draft-06/schema#';
const D7 = 'http://json-schema.org/draft-07/schema#';
const D19 = 'https://json-schema.org/draft/2019-09/schema';
const D20 = 'https://json-schema.org/draft/2020-12/schema';

type Row = readonly [title: string, schema: JsonObject | boolean, admitted: readonly Json[], refused: readonly Json[]];

const TEXT = { type: 'string' } as const;
const NODE = {
  $dynamicAnchor: 'node',
  type: 'object',
  properties: { next: { $dynamicRef: '#node' } },
};

function nested(depth: number): JsonObject {
  let schema: JsonObject = TEXT;
  for (let level = 0; level < depth; level++) schema = { type: 'object', properties: { a: schema } };
  return schema;
}

function deep(depth: number, leaf: Json): Json {
  let value = leaf;
  for (let level = 0; level < depth; level++) value = { a: value };
  return value;
}

const ROWS: readonly Row[] = [
  ['format is an annotation', { format: 'date-time' }, ['2025-01-01T00:00:00', 'x'], []],
  ['a multiple of a hundredth', { multipleOf: 0.01 }, [4.35, 19.99, 0, 1e21, -0.07], [4.355, 0.001]],
  ['a multiple of a tenth', { multipleOf: 0.1 }, [0.3, 1.1, 5], [0.35]],
  ['a multiple of a large number', { multipleOf: 3 }, [9007199254740990, 3e300], [9007199254740991]],
  [
    'a bound with many digits',
    { minimum: 0.1, maximum: 0.3 },
    [0.1, 0.3, 0.29999999999999993],
    [0.30000000000000004, 0.09999999999999999],
  ],
  ['an integer is any number without a fraction', { type: 'integer' }, [1, -0, 1e300, 9007199254740992], [1.5]],
  ['equal numbers are equal', { enum: [1, 'a', null, [1]] }, [1.0, 'a', null, [1.0]], ['1', true, [true], 0]],
  ['an enum may be empty', { enum: [] }, [], [1, null]],
  ['a large enum', { enum: Array.from({ length: 3000 }, (_, at) => `v${at}`) }, ['v0', 'v2999'], ['v3000']],
  [
    'items are unique by value',
    { uniqueItems: true },
    [
      [1, '1'],
      [{ a: 1 }, { a: 2 }],
    ],
    [
      [1, 1.0],
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
    ],
  ],
  ['seventy objects deep', nested(70), [deep(70, 'x')], [deep(70, 1)]],
  ['an anchor', { $ref: '#n', $defs: { N: { $anchor: 'n', ...TEXT } } }, ['x'], [1]],
  ['a dynamic anchor', NODE, [{ next: { next: {} } }], [{ next: { next: 1 } }]],
  [
    'a dynamic reference leads to the outermost resource',
    {
      $schema: D20,
      $id: 'https://a.example/list',
      $ref: 'tree',
      $defs: {
        own: { $dynamicAnchor: 'item', ...TEXT },
        tree: {
          $id: 'tree',
          type: 'array',
          items: { $dynamicRef: '#item' },
          $defs: { any: { $dynamicAnchor: 'item' } },
        },
      },
    },
    [['x']],
    [[1]],
  ],
  ['an id inside', { $ref: 'https://a.example/t', $defs: { t: { $id: 'https://a.example/t', ...TEXT } } }, ['x'], [1]],
  [
    'an id with a name that only some versions of a URL parser take',
    { $ref: 'https://xn--a.example/t', $defs: { t: { $id: 'https://XN--A.example/t', ...TEXT } } },
    ['x'],
    [1],
  ],
  [
    'a relative id',
    {
      $id: 'https://a.example/s',
      $ref: 't#/$defs/u',
      $defs: { t: { $id: 't', $defs: { u: TEXT } } },
    },
    ['x'],
    [1],
  ],
  [
    'a reference to a place that no keyword makes a schema',
    { $ref: '#/components/schemas/T', components: { schemas: { T: TEXT } } },
    ['x'],
    [1],
  ],
  ['a percent-encoded reference', { $ref: '#/$defs/a%20b', $defs: { 'a b': TEXT } }, ['x'], [1]],
  ['a list of items without a dialect', { items: [TEXT, { type: 'integer' }] }, [['x', 1, null]], [[1]]],
  ['an exclusive bound without a dialect', { maximum: 5, exclusiveMaximum: true }, [4.9], [5]],
  ['a tuple of 2020-12', { $schema: D20, prefixItems: [TEXT], items: false }, [['x'], []], [['x', 1], [1]]],
  ['a tuple of 2019-09', { $schema: D19, items: [TEXT], additionalItems: false }, [['x']], [['x', 1], [1]]],
  [
    'a tuple of draft-07',
    { $schema: D7, items: [TEXT], additionalItems: { type: 'integer' } },
    [['x', 1]],
    [['x', 'y']],
  ],
  ['a tuple of draft-06', { $schema: D6, items: [TEXT, true] }, [['x', 1, 2]], [[1]]],
  ['bounds of draft-04', { $schema: D4, minimum: 1, exclusiveMinimum: true, maximum: 3 }, [2, 3], [1, 4]],
  ['draft-04 knows no const', { $schema: D4, const: 1, id: 'http://a.example/x' }, [1, 2], []],
  [
    'draft-04 references by id',
    { $schema: D4, definitions: { a: { id: '#a', ...TEXT } }, properties: { x: { $ref: '#a' } } },
    [{ x: 'y' }],
    [{ x: 1 }],
  ],
  [
    'draft-07 ignores what stands beside a reference',
    {
      $schema: D7,
      definitions: { a: TEXT },
      properties: { x: { $ref: '#/definitions/a', maxLength: 1 } },
    },
    [{ x: 'long' }],
    [{ x: 1 }],
  ],
  [
    '2020-12 does not',
    { $schema: D20, $defs: { a: TEXT }, properties: { x: { $ref: '#/$defs/a', maxLength: 1 } } },
    [{ x: 'y' }],
    [{ x: 'long' }],
  ],
  [
    'draft-07 knows no unevaluatedProperties',
    { $schema: D7, properties: { a: {} }, unevaluatedProperties: false },
    [{ b: 1 }],
    [],
  ],
  [
    'dependencies of old',
    { $schema: D7, dependencies: { a: ['b'], c: { required: ['d'] } } },
    [{ a: 1, b: 1 }, {}],
    [{ a: 1 }, { c: 1 }],
  ],
  [
    '2019-09 refers to itself',
    {
      $schema: D19,
      $recursiveAnchor: true,
      properties: { a: { $recursiveRef: '#' } },
      additionalProperties: false,
    },
    [{ a: { a: {} } }],
    [{ a: { b: 1 } }],
  ],
  ['what 2019-09 contains stays unevaluated', { $schema: D19, contains: TEXT, unevaluatedItems: false }, [], [['x']]],
  [
    'what 2020-12 contains is evaluated',
    { $schema: D20, contains: TEXT, unevaluatedItems: false },
    [['x']],
    [['x', 1]],
  ],
  [
    'how often an item is contained',
    { contains: TEXT, minContains: 2, maxContains: 3 },
    [['a', 'b', 1]],
    [['a'], ['a', 'b', 'c', 'd']],
  ],
  [
    'a failed branch evaluates nothing',
    {
      anyOf: [
        {
          properties: { c: { type: 'number' } },
          anyOf: [{ properties: { b: {} } }, { properties: { d: {} } }],
        },
        { type: 'object' },
      ],
      unevaluatedProperties: false,
    },
    [{ c: 1 }, {}],
    [{ c: 'x' }, { e: 1 }],
  ],
  [
    'nor does one of several',
    {
      type: 'object',
      properties: { path: TEXT },
      oneOf: [
        {
          required: ['mode'],
          properties: { mode: { const: 'admin' }, force: { type: 'boolean' } },
          anyOf: [{ required: ['user'] }, { required: ['group'] }],
        },
        { properties: { mode: { const: 'plain' } } },
      ],
      unevaluatedProperties: false,
    },
    [{ path: 'x', mode: 'plain' }],
    [{ path: 'x', mode: 'plain', force: true }],
  ],
  [
    'nothing under not is evaluated',
    { not: { not: { properties: { a: {} } } }, unevaluatedProperties: false },
    [{}],
    [{ a: 1 }],
  ],
  [
    'a pattern that cannot be checked accepts',
    {
      properties: { a: { type: 'string', pattern: '^(?!x)' } },
      allOf: [{ properties: { a: { pattern: '(?<=y)z' } } }],
    },
    [{ a: 'x' }],
    [{ a: 1 }],
  ],
];

describe('a schema', () => {
  it.each(ROWS)('%s', (_title, schema, admitted, refused) => {
    const compiled = compileSchema(schema);
    if (!compiled.ok) throw new Error(`${compiled.why} at ${compiled.pointer}`);
    const isAdmitted = (value: Json): boolean => compiled.schema.check(value).length === 0;
    expect(admitted.filter((value) => !isAdmitted(value))).toEqual([]);
    expect(refused.filter(isAdmitted)).toEqual([]);
  });

  const LOOK = '^(?!x)';
  it.each([
    ['not', { properties: { a: { not: { pattern: LOOK } } } }, '/properties/a/not/pattern'],
    ['if', { if: { properties: { a: { pattern: LOOK } } } }, '/if/properties/a/pattern'],
    ['oneOf', { oneOf: [{ pattern: LOOK }, TEXT] }, '/oneOf/0/pattern'],
    ['contains', { contains: { pattern: LOOK } }, '/contains/pattern'],
    ['a name', { patternProperties: { [LOOK]: TEXT } }, `/patternProperties/${LOOK}`],
    ['a reference from there', { not: { $ref: '#/$defs/a' }, $defs: { a: { pattern: LOOK } } }, '/$defs/a/pattern'],
  ])('cannot be used with such a pattern under %s, and says where', (_where, schema, pointer) => {
    expect(compileSchema(schema as JsonObject)).toMatchObject({ ok: false, pointer });
  });

  it('says which patterns it does not check', () => {
    const compiled = compileSchema({ properties: { a: { items: { pattern: LOOK } } } });
    expect(compiled).toMatchObject({
      ok: true,
      unchecked: [{ pointer: '/properties/a/items/pattern', why: expect.stringMatching(/lookahead/) }],
    });
  });

  it.each([
    ['of an unknown type', { properties: { a: { type: 'any' } } }, '/properties/a/type'],
    ['with a list for one schema', { not: [] }, '/not'],
    ['with a reference to nothing', { items: { $ref: '#/$defs/x' } }, '/items/$ref'],
    ['of another dialect', { $schema: 'http://json-schema.org/draft-03/schema#' }, '/$schema'],
  ])('%s is refused with the pointer', (_title, schema, pointer) => {
    expect(compileSchema(schema as JsonObject)).toMatchObject({ ok: false, pointer });
  });
});

describe('a required member with a default', () => {
  const MAY = { defaults: 'may-be-absent' } as const;
  const limit = { type: 'integer', default: 10 };

  it('that may be absent is not named where another member is wrong', () => {
    const properties = { limit, n: { type: 'number' } };
    const schema = { type: 'object', properties, required: ['limit'] };
    const compiled = compileSchema(schema as JsonObject, MAY);
    const errors = compiled.ok ? compiled.schema.check({ n: 'x' }) : [];
    expect(errors).toMatchObject([{ pointer: '/n', keyword: 'type' }]);
  });

  it.each<readonly [string, JsonObject, JsonObject, boolean]>([
    ['may be absent', { properties: { limit }, required: ['limit'] }, {}, true],
    ['counts if it is there', { properties: { limit }, required: ['limit'] }, { limit: 'x' }, false],
    ['that has none may not', { properties: { limit: { type: 'integer' } }, required: ['limit'] }, {}, false],
    ['may be absent below', { properties: { a: { properties: { limit }, required: ['limit'] } } }, { a: {} }, true],
    [
      'has it through a reference',
      { properties: { limit: { $ref: '#/$defs/l' } }, required: ['limit'], $defs: { l: limit } },
      {},
      true,
    ],
    ['has it beside', { allOf: [{ properties: { limit } }, { required: ['limit'] }] }, {}, true],
    [
      'chooses an alternative',
      {
        properties: { mode: { type: 'string', default: 'a' } },
        oneOf: [
          { properties: { mode: { const: 'a' } }, required: ['mode'] },
          { properties: { mode: { const: 'b' } }, required: ['mode'] },
        ],
      },
      {},
      true,
    ],
    ['does not replace another', { properties: { limit, x: {} }, required: ['limit', 'x'] }, {}, false],
  ])('%s', (_title, schema, value, isValid) => {
    const compiled = compileSchema(schema, MAY);
    if (!compiled.ok) throw new Error(compiled.why);
    expect(compiled.schema.check(value).length === 0).toBe(isValid);
    // In results, and in the schemas of rules, required means present.
    const strict = compileSchema(schema);
    if (strict.ok && isValid) expect(strict.schema.check(value)).not.toEqual([]);
  });

  it('is filled in below, into a copy', () => {
    const schema = {
      properties: {
        a: { properties: { b: { default: 1 } } },
        list: { items: { properties: { c: { default: 2 } } } },
        d: { default: {}, properties: { e: { default: 3 } } },
      },
    };
    const compiled = compileSchema(schema, MAY);
    if (!compiled.ok) throw new Error(compiled.why);
    const value = { a: {}, list: [{}, { c: 5 }] };
    expect(compiled.schema.withDefaults?.(value)).toEqual({
      a: { b: 1 },
      list: [{ c: 2 }, { c: 5 }],
      d: { e: 3 },
    });
    expect(value).toEqual({ a: {}, list: [{}, { c: 5 }] });
    const complete = { a: { b: 0 }, d: { e: 0 } };
    expect(compiled.schema.withDefaults?.(complete)).toBe(complete);
  });

  it('ends where a schema has defaults in itself without end', () => {
    const schema = { properties: { a: { $ref: '#', default: {} } } };
    const compiled = compileSchema(schema, MAY);
    if (!compiled.ok) throw new Error(compiled.why);
    expect(JSON.stringify(compiled.schema.withDefaults?.({})).length).toBeLessThan(10_000);
  });
});

it('a name that is only required is declared and described', () => {
  const compiled = compileSchema({ properties: { a: {} }, required: ['zz'] });
  if (!compiled.ok) throw new Error(compiled.why);
  expect(compiled.schema.firstUndeclared?.({ a: 1, zz: 1 })).toBeUndefined();
  expect(compiled.schema.firstUndeclared?.({ a: 1, zz: 1, y: 1 })?.pointer).toBe('/y');
  expect(compiled.schema.firstUndescribed({ zz: 1 })).toBeUndefined();
  expect(compiled.schema.firstUndescribed({ zz: { deep: 1 } })).toBe('/zz/deep');
});

describe('a number that no double holds', () => {
  const compiled = (schema: JsonObject) => {
    const result = compileSchema({ properties: { a: schema } });
    if (!result.ok) throw new Error(result.why);
    return result.schema;
  };

  it.each<readonly [JsonObject, literal: string, isValid: boolean]>([
    [{ type: 'integer' }, '12345678901234567890', true],
    [{ type: 'integer' }, '9007199254740993.5', false],
    [{ multipleOf: 3 }, '9007199254740993', true],
    [{ multipleOf: 2 }, '9007199254740993', false],
    [{ exclusiveMinimum: 9007199254740992 }, '9007199254740993', true],
    [{ maximum: 0.1 }, '0.10000000000000000000001', false],
    [{ enum: [9007199254740992] }, '9007199254740993', false],
    [{ type: 'integer' }, '1e400', true],
  ])('is checked as it is written: %j with %s', (schema, literal, isValid) => {
    const text = `{"b":[ 1, {"x":"\\""}], "a": ${literal} }`;
    const value = JSON.parse(text) as JsonObject;
    expect(keepExactNumbers(text, { start: 0, end: text.length }, value)).toBe(true);
    expect(compiled(schema).check(value).length === 0).toBe(isValid);
  });
});
