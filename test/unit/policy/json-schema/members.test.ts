// Which members of a value no schema declares: one by one, and for generated schemas.

import { Ajv2020 } from 'ajv/dist/2020.js';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { UndeclaredMember } from '../../../../src/policy/definitions.js';
import { compileSchema } from '../../../../src/policy/json-schema/validator.js';
import { isObject, type Json, type JsonObject } from '../../../../src/protocol/jsonrpc.js';

function undeclared(schema: JsonObject, value: Json): UndeclaredMember | undefined {
  const result = compileSchema(schema);
  if (!result.ok) throw new Error(result.why);
  expect(result.schema.check(value)).toEqual([]);
  return result.schema.firstUndeclared?.(value);
}

function pointer(schema: JsonObject, value: Json): string | undefined {
  return undeclared(schema, value)?.pointer;
}

function isDecidedBySchema(schema: JsonObject): boolean {
  const result = compileSchema(schema);
  return result.ok && result.schema.firstUndeclared === undefined;
}

const TEXT = { type: 'string' };

describe('[P-32] the arguments as a whole', () => {
  it('are described by properties, also by none', () => {
    expect(pointer({ properties: { a: TEXT } }, { a: 'x' })).toBeUndefined();
    expect(pointer({ properties: { a: TEXT } }, { a: 'x', b: 1 })).toBe('/b');
    expect(pointer({ type: 'object', properties: {} }, { b: 1 })).toBe('/b');
  });

  it('are open without properties, or where the schema says so', () => {
    for (const schema of [
      { type: 'object' },
      {},
      { properties: { a: TEXT }, additionalProperties: true },
      { properties: { a: TEXT }, additionalProperties: { type: 'integer' } },
      { properties: { a: TEXT }, patternProperties: { '^x_': TEXT } },
      { properties: { a: TEXT }, unevaluatedProperties: { type: 'integer' } },
      { required: ['b'] },
    ]) {
      expect(pointer(schema, { b: 1 })).toBeUndefined();
      expect(isDecidedBySchema(schema)).toBe(true);
    }
    expect(isDecidedBySchema({ properties: { a: TEXT }, additionalProperties: false })).toBe(true);
  });

  it('take what a reference or all of several schemas declare', () => {
    const schema = {
      $ref: '#/$defs/base',
      allOf: [{ properties: { b: TEXT } }],
      $defs: { base: { properties: { a: TEXT } } },
    };
    expect(pointer(schema, { a: 'x', b: 'y' })).toBeUndefined();
    expect(pointer(schema, { a: 'x', c: 'y' })).toBe('/c');
    const draft7 = { $schema: 'http://json-schema.org/draft-07/schema#', ...schema };
    expect(pointer(draft7, { a: 'x', b: 'y' })).toBe('/b');
  });

  it('take of alternatives only what one that holds declares', () => {
    const kinds = ['file', 'url'].map((kind) => ({
      properties: { kind: { const: kind }, [kind]: TEXT },
      required: ['kind'],
    }));
    for (const keyword of ['oneOf', 'anyOf']) {
      expect(pointer({ [keyword]: kinds }, { kind: 'file', file: 'x' })).toBeUndefined();
      expect(pointer({ [keyword]: kinds }, { kind: 'file', url: 'x' })).toBe('/url');
    }
    const tested = {
      properties: { kind: TEXT },
      if: kinds[0] ?? {},
      // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema.
      then: { properties: { size: { type: 'integer' } } },
      else: kinds[1] ?? {},
    };
    expect(pointer(tested, { kind: 'file', file: 'x', size: 1 })).toBeUndefined();
    expect(pointer(tested, { kind: 'file', url: 'x' })).toBe('/url');
    expect(pointer(tested, { kind: 'url', url: 'x' })).toBeUndefined();
    expect(pointer(tested, { kind: 'url', url: 'x', size: 1 })).toBe('/size');
  });

  it('take what a member brings with it', () => {
    const schema = {
      properties: { card: TEXT },
      dependentSchemas: { card: { properties: { address: TEXT } } },
    };
    expect(pointer(schema, { card: '1', address: 'x' })).toBeUndefined();
    expect(pointer(schema, { address: 'x' })).toBe('/address');
  });

  it('declare nothing by what is excluded', () => {
    const schema = { properties: { a: TEXT }, not: { properties: { b: TEXT }, required: ['b'] } };
    expect(pointer(schema, { a: 'x', c: 1 })).toBe('/c');
  });
});

describe('[P-32] objects inside', () => {
  const inner = { properties: { state: TEXT } };

  it('are described by properties, and open by none or an empty list of them', () => {
    const schema = { properties: { filter: inner, free: { properties: {} }, any: {} } };
    expect(pointer(schema, { filter: { state: 'x' }, free: { b: 1 }, any: { c: 1 } })).toBe(undefined);
    expect(pointer(schema, { filter: { state: 'x', b: 1 } })).toBe('/filter/b');
  });

  it('are found in lists, under patterns and under additional members', () => {
    expect(pointer({ properties: { l: { items: inner } } }, { l: [{}, { b: 1 }] })).toBe('/l/1/b');
    const tuple = { properties: { l: { prefixItems: [true, inner], items: inner } } };
    expect(pointer(tuple, { l: [{ b: 1 }, { state: 'x' }, { b: 1 }] })).toBe('/l/2/b');
    expect(pointer({ patternProperties: { '^x': inner } }, { x1: { b: 1 } })).toBe('/x1/b');
    expect(pointer({ additionalProperties: inner }, { y: { b: 1 } })).toBe('/y/b');
    const some = { properties: { l: { items: inner, contains: { properties: { b: TEXT } } } } };
    expect(pointer(some, { l: [{ state: 'x', b: 'y' }] })).toBeUndefined();
  });

  it('take what any schema of the same place declares', () => {
    const schema = {
      allOf: [{ properties: { p: { properties: { x: TEXT } } } }, { properties: { p: { properties: { y: TEXT } } } }],
    };
    expect(pointer(schema, { p: { x: '1', y: '2' } })).toBeUndefined();
    expect(pointer(schema, { p: { z: 1 } })).toBe('/p/z');
  });

  it('are read through a schema that refers to itself', () => {
    const tree = { properties: { name: TEXT, children: { items: { $ref: '#' } } } };
    expect(pointer(tree, { children: [{ children: [{ name: 'x' }] }] })).toBeUndefined();
    expect(pointer(tree, { children: [{ children: [{ b: 1 }] }] })).toBe('/children/0/children/0/b');
  });
});

it('[P-21] shows names of the schema alone', () => {
  const schema = { properties: { 'a/b': { properties: { c: TEXT } } } };
  expect(undeclared(schema, { 'a/b': { evil: 1 } })).toEqual({
    pointer: '/a~1b/evil',
    shown: '/a~1b/*',
  });
});

it('[P-32] tries alternatives, however many there are', () => {
  const oneOf = Array.from({ length: 150 }, (_, at) => ({
    properties: { kind: { const: at }, [`m${at}`]: TEXT },
    required: ['kind'],
  }));
  expect(pointer({ oneOf }, { kind: 5, m5: 'x' })).toBeUndefined();
  expect(pointer({ oneOf }, { kind: 5, m6: 'x' })).toBe('/m6');
  expect(pointer({ oneOf }, { kind: 140, m140: 'x' })).toBeUndefined();
  expect(pointer({ oneOf }, { kind: 140, other: 'x' })).toBe('/other');
});

describe('[P-32] against the annotations of the specification', () => {
  const name = fc.constantFrom('a', 'b', 'c', 'd');
  const leaf = fc.constantFrom<JsonObject>({}, { type: 'string' }, { const: 'x' }, { minimum: 1 });
  const plain = fc
    .record(
      {
        properties: fc.dictionary(name, leaf, { minKeys: 1, maxKeys: 3 }),
        required: fc.subarray(['a', 'b', 'c']),
        additionalProperties: fc.constantFrom<Json>(true, {}),
      },
      { requiredKeys: [] },
    )
    .map((schema): JsonObject => ({ ...schema }));
  const { schema } = fc.letrec<{ schema: JsonObject }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      { weight: 2, arbitrary: plain },
      fc
        .tuple(
          plain,
          fc.constantFrom('allOf', 'anyOf', 'oneOf'),
          fc.array(tie('schema'), { minLength: 1, maxLength: 3 }),
        )
        .map(([base, keyword, list]): JsonObject => ({ ...base, [keyword]: list })),
      fc
        .tuple(plain, tie('schema'), tie('schema'), tie('schema'))
        // biome-ignore lint/suspicious/noThenProperty: the keyword of JSON Schema.
        .map(([base, a, b, c]): JsonObject => ({ ...base, if: a, then: b, else: c })),
      fc
        .tuple(plain, name, tie('schema'))
        .map(([base, key, other]): JsonObject => ({ ...base, dependentSchemas: { [key]: other } })),
      fc.tuple(plain, tie('schema')).map(([base, other]): JsonObject => ({ ...base, not: other })),
    ),
  }));
  const value = fc.dictionary(name, fc.constantFrom<Json>('x', 'y', 0, 7), { maxKeys: 4 });
  const ajv = new Ajv2020({ strict: false });

  function holds(written: JsonObject, of: JsonObject): boolean {
    return ajv.validate(written, of);
  }

  /** The members that a schema which holds has evaluated (core §10.2, §10.3.2, §11.1): Ajv miscounts some of them. */
  function evaluated(written: JsonObject, of: JsonObject): ReadonlySet<string> {
    if (written['additionalProperties'] !== undefined) return new Set(Object.keys(of));
    const inPlace = [...listOf(written['allOf'])];
    for (const keyword of ['anyOf', 'oneOf']) {
      inPlace.push(...listOf(written[keyword]).filter((one) => holds(one, of)));
    }
    const { if: test, then: met, else: unmet, dependentSchemas } = written;
    if (isObject(test)) {
      const chosen = holds(test, of) ? [test, met] : [unmet];
      inPlace.push(...chosen.filter((one) => isObject(one)));
    }
    for (const [key, one] of Object.entries(isObject(dependentSchemas) ? dependentSchemas : {})) {
      if (key in of && isObject(one)) inPlace.push(one);
    }
    const properties = isObject(written['properties']) ? Object.keys(written['properties']) : [];
    // A name that is only required is declared as well.
    const required = (written['required'] ?? []) as readonly string[];
    return new Set([...properties, ...required, ...inPlace.flatMap((one) => [...evaluated(one, of)])]);
  }

  function listOf(list: Json | undefined): readonly JsonObject[] {
    return Array.isArray(list) ? list.filter(isObject) : [];
  }

  it('refuses the same members', () => {
    let refused = 0;
    void fc.assert(
      fc.property(schema, fc.array(value, { minLength: 6, maxLength: 6 }), (written, values) => {
        const described = { properties: {}, ...written };
        const result = compileSchema(described);
        if (!result.ok) return;
        for (const each of values) {
          if (result.schema.check(each).length > 0) continue;
          const known = evaluated(described, each);
          const other = Object.keys(each).find((one) => !known.has(one));
          if (other !== undefined) refused += 1;
          const found = result.schema.firstUndeclared?.(each);
          expect(found?.pointer).toBe(other === undefined ? undefined : `/${other}`);
        }
      }),
      { numRuns: 300 },
    );
    expect(refused).toBeGreaterThan(0);
  });
});
