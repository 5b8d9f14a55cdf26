// Our evaluator beside Ajv, with random schemas of each dialect. Where the two disagree, the difference is one of those
// named below, in which the specification decides against Ajv 8.20.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { Ajv } from 'ajv';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileSchema } from '../../../../src/policy/json-schema/validator.js';
import type { Json, JsonObject } from '../../../../src/protocol/jsonrpc.js';
import { type Dialect, type SchemaCase, schemaCase } from '../../../support/schema-cases.js';

const DRAFT_06 = createRequire(import.meta.url).resolve('ajv/dist/refs/json-schema-draft-06.json');
const OPTIONS = { strict: false, validateFormats: false, logger: false } as const;

/** A new one for each schema, because Ajv keeps what it has compiled. */
function ajvOf(dialect: Dialect): Ajv {
  switch (dialect) {
    case '2020-12':
      return new Ajv2020(OPTIONS);
    case '2019-09':
      return new Ajv2019(OPTIONS);
    case 'draft-07':
      return new Ajv(OPTIONS);
    case 'draft-06':
      return new Ajv(OPTIONS).addMetaSchema(JSON.parse(readFileSync(DRAFT_06, 'utf8')));
  }
}

type Known = (schema: string, value: string, isOurs: boolean) => boolean;

/** Where Ajv is known to read the specification otherwise. */
const AJV_DIFFERS: readonly Known[] = [
  // `contains` of an empty array holds for it where the schema inside refuses no type.
  (schema, value) => schema.includes('"contains"') && value.includes('[]'),
  // 2019-09: `contains` evaluates no item. 2020-12: it evaluates those that match, in an alternative too.
  (schema) => schema.includes('"contains"') && schema.includes('"unevaluatedItems"'),
  // What a failed branch evaluated counts, if there is another alternative in it.
  (schema, _value, isOurs) =>
    /"unevaluated(?:Items|Properties)"/.test(schema) && (!isOurs || /"(?:not|oneOf|if)"/.test(schema)),
];

function verdictOf(validate: (value: unknown) => unknown, value: Json): boolean | undefined {
  try {
    return validate(value) === true;
  } catch {
    // The code that Ajv makes for some combinations throws, as references without end do.
    return undefined;
  }
}

function compiled({ dialect, schema }: SchemaCase): ((value: unknown) => unknown) | undefined {
  try {
    return ajvOf(dialect).compile(schema);
  } catch {
    return undefined;
  }
}

function disagreements(seed: number): readonly JsonObject[] {
  const { dialect, schema, values } = schemaCase(seed);
  const validate = compiled({ dialect, schema, values });
  const ours = compileSchema(schema);
  if (validate === undefined || !ours.ok) return [];
  return values.flatMap((value) => {
    const theirs = verdictOf(validate, value);
    const isValid = ours.schema.check(value).length === 0;
    const texts = [JSON.stringify(schema), JSON.stringify(value)] as const;
    const isKnown = AJV_DIFFERS.some((known) => known(...texts, isValid));
    return theirs === undefined || theirs === isValid || isKnown
      ? []
      : [{ dialect, schema, value, ajv: theirs, ours: isValid }];
  });
}

describe('our evaluator and Ajv', () => {
  it('agree about random schemas of every dialect', { timeout: 120_000 }, () => {
    const seeds = fc.integer({ min: 0, max: 1_000_000 });
    fc.assert(
      fc.property(seeds, (seed) => {
        expect(disagreements(seed)).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    ['an empty array contains nothing', { contains: { else: true } }, [], false],
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
      { c: 'x' },
      false,
    ],
    [
      'contains evaluates what matches in an alternative',
      { allOf: [{ anyOf: [{ contains: { pattern: '^a' } }] }], unevaluatedItems: false },
      [true, 0],
      true,
    ],
    [
      'contains evaluates nothing in 2019-09',
      {
        $schema: 'https://json-schema.org/draft/2019-09/schema',
        contains: {},
        unevaluatedItems: false,
      },
      [1],
      false,
    ],
    ['the empty name may be required', { required: [''] }, {}, false],
  ])('%s', (_what, schema, value, isValid) => {
    const result = compileSchema(schema as JsonObject);
    expect(result.ok && result.schema.check(value as Json).length === 0).toBe(isValid);
  });

  it('agree about a schema at the bounds: it is decided, or takes too much work, and ends', () => {
    const doubling = Object.fromEntries(
      Array.from({ length: 40 }, (_, at) => [
        `d${at}`,
        { anyOf: [{ $ref: `#/$defs/d${at + 1}` }, { $ref: `#/$defs/d${at + 1}` }] },
      ]),
    );
    const hostile: readonly JsonObject[] = [
      { $ref: '#/$defs/d0', $defs: { ...doubling, d40: { const: 1 } } },
      { $ref: '#' },
      { allOf: [{ $ref: '#/allOf/0' }] },
      { properties: { a: { $ref: '#' } }, additionalProperties: { $ref: '#' } },
      { enum: Array.from({ length: 20_000 }, (_, at) => `value ${at}`) },
      {
        items: { items: { items: { uniqueItems: true, contains: { const: 0 }, minContains: 9 } } },
      },
      { patternProperties: { '(a+)+$': {}, '(x|xx)*y': {} } },
      { pattern: '^(?:a?){50}a{50}$' },
    ];
    const values: readonly Json[] = [
      { a: 'a'.repeat(50_000) },
      'a'.repeat(50_000),
      Array.from({ length: 2_000 }, (_, at) => [[[at, at, { a: at }]]]),
      Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`x${at}`, { a: {} }])),
    ];
    for (const schema of hostile) {
      const result = compileSchema(schema);
      for (const value of result.ok ? values : [])
        expect(result.ok && result.schema.check(value)).toBeInstanceOf(Array);
    }
  });
});
