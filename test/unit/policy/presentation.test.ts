// What a presentation makes of definitions, calls and catalogs, and when it cannot be applied.

import { describe, expect, it } from 'vitest';
import type { Catalog, DefinitionStatus } from '../../../src/policy/definitions.js';
import {
  calledTool,
  presentationError,
  presentationOf,
  presentDefinition,
  presentedCatalog,
  toOwnForm,
  type WrittenPresentation,
  withheldIn,
} from '../../../src/policy/presentation.js';
import { applyEdits, removeMember, setMember } from '../../../src/protocol/json/json.js';
import type { JsonObject } from '../../../src/protocol/jsonrpc.js';

const WRITTEN: WrittenPresentation = {
  make_v2: {
    name: 'make',
    description: 'Makes.',
    parameters: { fixed: { value: { a: [1] } }, absent: { default: null }, gone: { hide: true } },
  },
  swap_a: { name: 'swap_b', parameters: {} },
  swap_b: { name: 'swap_a', parameters: {} },
};

function presentation(written: WrittenPresentation = WRITTEN) {
  const made = presentationOf(written);
  if (made === undefined) throw new Error('nothing is presented');
  return made;
}

function make() {
  const tool = presentation().byTool.get('make_v2');
  if (tool === undefined) throw new Error('it is not presented');
  return tool;
}

function definition(schema: JsonObject = {}, name = 'make_v2'): JsonObject {
  const properties = { fixed: {}, absent: {}, gone: {}, free: {} };
  return { name, inputSchema: { type: 'object', properties, required: ['fixed', 'absent', 'free'], ...schema } };
}

describe('the names of a presentation', () => {
  it('are those of clients, and the others are unknown', () => {
    expect(presentationOf({})).toBeUndefined();
    const called = (name: string) => {
      const found = calledTool(presentation(), name);
      return typeof found === 'string' ? found : found.tool;
    };
    expect(['make', 'make_v2', 'other', 'swap_a', 'swap_b', '__proto__'].map(called)).toEqual([
      ...['make_v2', 'unknown', 'as-is', 'swap_b', 'swap_a', 'as-is'],
    ]);
  });
});

describe('a call in the form of the server', () => {
  const own = (text: string): string => {
    const params = (JSON.parse(text) as { params: { arguments?: JsonObject } }).params;
    return applyEdits(text, toOwnForm(make(), text, params.arguments ?? {}).edits);
  };

  it('has its name and what is absent, and keeps every other byte', () => {
    expect(own('{"params": {"arguments": {"free": 1.50}, "name":"m\\u0061ke"}, "id": 1}')).toBe(
      '{"params": {"arguments": {"fixed":{"a":[1]},"absent":null,"free": 1.50}, "name":"make_v2"}, "id": 1}',
    );
    expect(own('{"params":{"name":"make","arguments":{}}}')).toBe(
      '{"params":{"name":"make_v2","arguments":{"fixed":{"a":[1]},"absent":null}}}',
    );
    expect(own('{"params":{"name":"make"}}')).toBe(
      '{"params":{"arguments":{"fixed":{"a":[1]},"absent":null},"name":"make_v2"}}',
    );
    expect(own('{"params":{"name":"make","arguments":{"absent":9007199254740993}}}')).toBe(
      '{"params":{"name":"make_v2","arguments":{"fixed":{"a":[1]},"absent":9007199254740993}}}',
    );
  });

  it('names the first parameter that no client may send', () => {
    expect(withheldIn(make(), ['free', 'absent'])).toBeUndefined();
    expect(withheldIn(make(), ['free', 'GONE'])).toBe('gone');
    expect(withheldIn(make(), ['fixed'])).toBe('fixed');
  });
});

describe('[PRE-01] a definition as it is presented', () => {
  const shown = (one: JsonObject, narrowing: Parameters<typeof presentDefinition>[2] = []): unknown =>
    JSON.parse(
      presentDefinition(make(), one, narrowing).reduce(
        (text, { path, keyword, value }) =>
          value === undefined ? removeMember(text, path, keyword) : setMember(text, path, keyword, value),
        JSON.stringify(one),
      ),
    );

  it('has the name, the description, and the parameters that clients may send', () => {
    expect(shown(definition())).toEqual({
      name: 'make',
      description: 'Makes.',
      inputSchema: { type: 'object', properties: { absent: { default: null }, free: {} }, required: ['free'] },
    });
    expect(shown(definition({ required: ['fixed'] }))).not.toHaveProperty('inputSchema.required');
  });

  it('requires what rules require, without what is filled in', () => {
    const narrowing = [
      { path: ['inputSchema', 'properties', 'fixed'], keyword: 'const', value: 1 },
      { path: ['inputSchema'], keyword: 'required', value: ['fixed', 'free', 'absent'] },
    ];
    expect(shown(definition({ required: [] }), narrowing)).toMatchObject({ inputSchema: { required: ['free'] } });
  });
});

describe('[PRE-06] what cannot be presented', () => {
  const NEEDED = 'its parameter "gone" is required, and is hidden without a value';
  const depends = (keyword: string) =>
    `its parameter "fixed" cannot be hidden, because "${keyword}" of its schema may depend on it`;

  const fills = (keyword: string) =>
    `its parameter "absent" cannot be filled in, because "${keyword}" of its schema may depend on it`;

  it.each<readonly [string | undefined, JsonObject]>([
    [undefined, {}],
    [undefined, { anyOf: [{ required: ['free'] }], additionalProperties: false }],
    [undefined, { required: ['gone'], properties: { fixed: {}, absent: {}, gone: { default: 1 } } }],
    [NEEDED, { required: ['gone'] }],
    ['it has no parameter "absent"', { properties: { fixed: {}, gone: {} } }],
    ['it has no parameter "fixed"', { properties: null }],
    [
      'its parameter "FIXED" differs from "fixed" only in case',
      { properties: { fixed: {}, FIXED: {}, absent: {}, gone: {} } },
    ],
    [depends('oneOf'), { oneOf: [{ properties: { fixed: { const: 1 } } }] }],
    [depends('not'), { not: { required: ['fixed'] } }],
    [depends('dependentRequired'), { dependentRequired: { free: ['fixed'] } }],
    [depends('allOf'), { allOf: [{ $ref: '#/$defs/a' }], $defs: { a: {} } }],
    [depends('minProperties'), { minProperties: 2 }],
    [depends('maxProperties'), { maxProperties: 2 }],
    [depends('oneOf'), { oneOf: [{ maxProperties: 1 }, { required: ['free'] }] }],
    [depends('enum'), { enum: [{ free: 1 }] }],
    [depends('allOf'), { allOf: [{ properties: { free: {} }, additionalProperties: false }] }],
    [fills('dependentRequired'), { dependentRequired: { absent: ['free'] } }],
    [fills('oneOf'), { oneOf: [{ required: ['absent'] }, { required: ['free'] }] }],
    // What is counted or listed below another parameter does not concern these.
    [undefined, { anyOf: [{ properties: { free: { minProperties: 1, enum: [{ a: 1 }] } } }] }],
    [depends('propertyNames'), { propertyNames: { pattern: '^f' } }],
    [
      'its parameter "fixed" cannot be hidden, because a part of its schema refers to another part',
      { properties: { fixed: {}, absent: {}, gone: {}, free: { $ref: '#/properties/fixed' } } },
    ],
  ])('%s', (why, schema) => {
    expect(presentationError(make(), definition(schema))).toBe(why);
  });

  it('is found once for a definition and its presentation', () => {
    let reads = 0;
    const { inputSchema } = definition();
    const counted = {
      get inputSchema() {
        reads += 1;
        return inputSchema;
      },
    } as JsonObject;
    const own = make();
    for (let call = 0; call < 3; call += 1) expect(presentationError(own, counted)).toBeUndefined();
    expect(reads).toBe(1);
  });

  it('is a tool under the name of another that the lock file has, though no client is shown it', () => {
    const both = catalog('strict', { make_v2: definition(), make: definition({}, 'make') });
    const changed: Catalog = {
      ...both,
      statusOf(kind, name) {
        const status = both.statusOf(kind, name);
        return name === 'make' ? { ...status, state: 'changed' } : status;
      },
    };
    const presented = presentedCatalog(changed, presentation());
    expect(['make_v2', 'make'].map((name) => presented.statusOf('tool', name).state)).toEqual(['shadowed', 'changed']);
  });

  function catalog(mode: Catalog['mode'], offered: Readonly<Record<string, JsonObject>>): Catalog {
    const statusOf = (_kind: string, name: string): DefinitionStatus => {
      const one = offered[name];
      if (one === undefined) return { state: 'unpinned', pinned: undefined, observed: undefined };
      const form = {
        kind: 'tool',
        name,
        digest: 'd',
        definition: one,
        input: undefined,
        output: undefined,
        mirrored: [],
      } as const;
      return mode === 'off'
        ? { state: 'unpinned', pinned: undefined, listed: form, observed: 'd' }
        : { state: 'approved', pinned: form, observed: 'd' };
    };
    const rest = { upstream: 'u', undeclaredArguments: 'declared', isStopped: false, instructions: undefined } as const;
    return { ...rest, mode, statusOf, names: () => Object.keys(offered) };
  }

  it.each(['strict', 'off'] as const)('is hidden with mode %s, and so is whatever has its name', (mode) => {
    const states = (offered: Readonly<Record<string, JsonObject>>, names: readonly string[]) => {
      const presented = presentedCatalog(catalog(mode, offered), presentation());
      return names.map((name) => presented.statusOf('tool', name).state);
    };
    const fine = mode === 'off' ? 'unpinned' : 'approved';
    const tool = definition();
    const other = definition({}, 'make');
    expect(states({ make_v2: tool, other }, ['make_v2', 'other'])).toEqual([fine, fine]);
    expect(states({ make_v2: tool, make: other }, ['make_v2', 'make'])).toEqual(['shadowed', 'shadowed']);
    expect(states({ make_v2: definition({ required: ['gone'] }) }, ['make_v2'])).toEqual(['invalid']);
    expect(states({ make: other }, ['make'])).toEqual(['shadowed']);
    expect(states({ swap_a: tool, swap_b: tool }, ['swap_a', 'swap_b'])).toEqual([fine, fine]);
  });
});
