// Random JSON Schemas of every dialect that Ajv reads, and values that they may accept. A case is made from its number,
// so that one that disagrees can be made again.

import type { Json, JsonObject } from './json.js';

const DIALECTS = {
  '2020-12': 'https://json-schema.org/draft/2020-12/schema',
  '2019-09': 'https://json-schema.org/draft/2019-09/schema',
  'draft-07': 'http://json-schema.org/draft-07/schema#',
  'draft-06': 'http://json-schema.org/draft-06/schema#',
} as const;

export type Dialect = keyof typeof DIALECTS;

export type SchemaCase = {
  readonly dialect: Dialect;
  readonly schema: JsonObject;
  readonly values: readonly Json[];
};

const NAMES = ['a', 'b', 'c', 'ab', '1', ''];
/** Ajv ignores the empty name in lists of required names. */
const REQUIRED = NAMES.filter((name) => name !== '');
const SCALARS: readonly Json[] = [
  ...[null, true, false, 0, 1, 2, -1, 1.5, 3],
  ...['', 'a', 'ab', 'abc', '\u{1f600}', 'b1'],
];
const TYPES = ['null', 'boolean', 'integer', 'number', 'string', 'array', 'object'];
const PATTERNS = ['^a', 'b$', '[0-9]', '^$', 'a|b'];
const DEFINITIONS = ['x', 'y', 'z'];

type Source = {
  below(limit: number): number;
  pick<One>(list: readonly One[]): One;
  some<One>(most: number, make: () => One): readonly One[];
  chance(share: number): boolean;
};

/** Numbers that are the same for the same seed (Mulberry32). */
function sourceOf(seed: number): Source {
  let state = seed * 7919 + 13;
  const random = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number): number => Math.floor(random() * limit);
  return {
    below,
    pick: <One>(list: readonly One[]): One => list[below(list.length)] as One,
    some: <One>(most: number, make: () => One) => Array.from({ length: below(most) }, make),
    chance: (share) => random() < share,
  };
}

function valueIn(source: Source, depth: number): Json {
  const kind = source.below(depth <= 0 ? 3 : 7);
  if (kind < 3) return source.pick(SCALARS);
  const inner = (): Json => valueIn(source, depth - 1);
  if (kind < 5) return source.some(4, inner);
  return Object.fromEntries(source.some(4, () => [source.pick(NAMES), inner()] as const));
}

type Keyword = readonly [name: string, make: (depth: number) => Json];

class SchemaMaker {
  readonly #source: Source;
  readonly #definitions: string;
  readonly #isNew: boolean;
  readonly #keywords: readonly Keyword[];

  constructor(source: Source, dialect: Dialect) {
    this.#source = source;
    this.#isNew = dialect === '2020-12' || dialect === '2019-09';
    this.#definitions = this.#isNew ? '$defs' : 'definitions';
    this.#keywords = [...this.#common(), ...this.#ofDialect(dialect)];
  }

  document(uri: string): JsonObject {
    const definitions = DEFINITIONS.map((name) => [name, this.#schema(1)] as const);
    return {
      $schema: uri,
      ...this.#keywordsAt(3),
      [this.#definitions]: Object.fromEntries(definitions),
    };
  }

  #schema(depth: number): Json {
    const { below, chance, pick } = this.#source;
    const roll = below(100);
    if (roll < 7) return chance(0.6);
    if (depth <= 0) return Object.fromEntries([this.#made(pick(this.#keywords.slice(0, 15)), 0)]);
    if (roll >= 17) return this.#keywordsAt(depth);
    const reference = { $ref: `#/${this.#definitions}/${pick(DEFINITIONS)}` };
    // Ajv reads what stands beside a reference in every dialect.
    return this.#isNew && chance(0.5) ? { ...this.#keywordsAt(depth - 1), ...reference } : reference;
  }

  #keywordsAt(depth: number): JsonObject {
    const { below, pick } = this.#source;
    const chosen = Array.from({ length: 1 + below(3) }, () => pick(this.#keywords));
    return Object.fromEntries(chosen.map((keyword) => this.#made(keyword, depth)));
  }

  #made([name, make]: Keyword, depth: number): readonly [string, Json] {
    return [name, make(depth)];
  }

  #list(depth: number): readonly Json[] {
    return Array.from({ length: 1 + this.#source.below(3) }, () => this.#schema(depth - 1));
  }

  #map(names: readonly string[], make: () => Json): JsonObject {
    const { below, pick } = this.#source;
    const length = 1 + below(3);
    return Object.fromEntries(Array.from({ length }, () => [pick(names), make()] as const));
  }

  #common(): readonly Keyword[] {
    const source = this.#source;
    const { below, chance, pick } = source;
    const count =
      (most: number): Keyword[1] =>
      () =>
        below(most);
    const inner: Keyword[1] = (depth) => this.#schema(depth - 1);
    const list: Keyword[1] = (depth) => this.#list(depth);
    const members: Keyword[1] = (depth) => this.#map(NAMES, () => this.#schema(depth - 1));
    return [
      ['type', () => (chance(0.7) ? pick(TYPES) : distinct([pick(TYPES), pick(TYPES)]))],
      ['enum', () => distinct([valueIn(source, 1), ...source.some(4, () => valueIn(source, 1))])],
      ['const', () => valueIn(source, 1)],
      ['minimum', () => below(4) - 1],
      ['maximum', count(4)],
      ['exclusiveMinimum', () => below(3) - 1],
      ['exclusiveMaximum', count(4)],
      ['multipleOf', () => pick([1, 2, 3, 0.5])],
      ['minLength', count(4)],
      ['maxLength', count(4)],
      ['pattern', () => pick(PATTERNS)],
      ['minItems', count(3)],
      ['maxItems', count(4)],
      ['uniqueItems', () => chance(0.8)],
      ['minProperties', count(3)],
      ['maxProperties', count(4)],
      ['required', () => distinct([pick(REQUIRED), pick(REQUIRED)])],
      ['properties', members],
      ['properties', members],
      ['patternProperties', (depth) => this.#map(PATTERNS, () => this.#schema(depth - 1))],
      ['additionalProperties', (depth) => (chance(0.4) ? false : this.#schema(depth - 1))],
      ['propertyNames', (depth) => this.#schema(Math.min(depth - 1, 1))],
      ['contains', inner],
      ['allOf', list],
      ['anyOf', list],
      ['oneOf', list],
      ['not', inner],
    ];
  }

  #ofDialect(dialect: Dialect): readonly Keyword[] {
    const { below, chance, pick } = this.#source;
    const inner: Keyword[1] = (depth) => this.#schema(depth - 1);
    const closed: Keyword[1] = (depth) => (chance(0.5) ? false : this.#schema(depth - 1));
    const names: Keyword[1] = () => this.#map(NAMES, () => [pick(REQUIRED)]);
    const tuples: readonly Keyword[] =
      dialect === '2020-12'
        ? [
            ['items', inner],
            ['prefixItems', (depth) => this.#list(depth)],
          ]
        : [
            ['items', (depth) => (chance(0.5) ? this.#schema(depth - 1) : this.#list(depth))],
            ['additionalItems', closed],
          ];
    const conditions: readonly Keyword[] = [
      ['if', inner],
      ['then', inner],
      ['else', inner],
    ];
    if (!this.#isNew)
      return [
        ...tuples,
        ...(dialect === 'draft-07' ? conditions : []),
        ['dependencies', (depth) => this.#map(NAMES, () => (chance(0.5) ? [pick(REQUIRED)] : this.#schema(depth - 1)))],
      ];
    const unevaluated: readonly Keyword[] = [
      ['unevaluatedProperties', closed],
      ['unevaluatedItems', closed],
    ];
    return [
      ...tuples,
      ...conditions,
      ['dependentRequired', names],
      ['dependentSchemas', (depth) => this.#map(NAMES, () => this.#schema(depth - 1))],
      ['minContains', () => below(3)],
      ['maxContains', () => 1 + below(3)],
      ...(chance(0.35) ? unevaluated : []),
    ];
  }
}

function distinct(values: readonly Json[]): readonly Json[] {
  return [...new Map(values.map((value) => [JSON.stringify(value), value])).values()];
}

/** The case of a number. */
export function schemaCase(seed: number): SchemaCase {
  const source = sourceOf(seed);
  const dialect = source.pick(Object.keys(DIALECTS) as Dialect[]);
  const schema = new SchemaMaker(source, dialect).document(DIALECTS[dialect]);
  const values = Array.from({ length: 6 }, () => valueIn(source, 3));
  return { dialect, schema, values };
}
