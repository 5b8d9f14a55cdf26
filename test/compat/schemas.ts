// Schemas that servers publish, and the arguments and results that go with them.

import { expect } from 'vitest';
import type { JsonObject } from '../support/json.js';
import { isObject } from '../support/json.js';
import { post, resultOf, statelessParts } from '../support/wire-client.js';
import { type CompatRow, type World, withWorld } from './rig.js';

const PINNED = 'pinning: {maxAge: 1h}';

/** The official SDKs take no other `type` of an input schema. */
function tool(inputSchema: JsonObject, more: JsonObject = {}): JsonObject {
  const typed = { type: 'object', ...inputSchema };
  return { name: 'work', description: 'Does the work.', inputSchema: typed, ...more };
}

/** Whether a call with these arguments reaches the upstream as it was sent. */
async function isForwarded(world: World, args: JsonObject): Promise<boolean> {
  world.upstream.forget();
  const reply = await world.call('work', args);
  const params = world.upstream.uses()[0]?.message?.['params'];
  if (params === undefined) expect(resultOf(reply)['isError']).toBe(true);
  else expect(isObject(params) ? params['arguments'] : undefined).toEqual(args);
  return params !== undefined;
}

type Calls = { readonly passes: readonly JsonObject[]; readonly fails: readonly JsonObject[] };

/** Proves for an approved tool with this schema which calls pass and which do not. */
function calls(inputSchema: JsonObject, { passes, fails }: Calls, upstream = [PINNED]) {
  return () =>
    withWorld({ tools: [tool(inputSchema)], upstream }, async (world) => {
      for (const args of passes) expect([args, await isForwarded(world, args)]).toEqual([args, true]);
      for (const args of fails) expect([args, await isForwarded(world, args)]).toEqual([args, false]);
    });
}

/** Proves that a tool with this schema is neither listed nor callable. */
function unusable(inputSchema: JsonObject, upstream: readonly string[]) {
  return () =>
    withWorld(
      { tools: [tool(inputSchema), { ...tool({ type: 'object' }), name: 'other' }], upstream },
      async (world) => {
        const listed = resultOf(await world.request('tools/list'))['tools'];
        expect((listed as unknown as readonly JsonObject[]).map(({ name }) => name)).toEqual(['other']);
        await world.call('work', {});
        expect(world.upstream.uses()).toEqual([]);
      },
    );
}

const WHEN = { properties: { when: { type: 'string', format: 'date-time' } } };
const TUPLE = { items: [{ type: 'integer' }, { type: 'string' }] };
const LOOK_AHEAD = { properties: { a: { type: 'string', pattern: '^(?!x)' } } };

/** A schema of objects, one inside the other. */
function nested(objects: number): JsonObject {
  let schema: JsonObject = { type: 'object' };
  for (let level = 1; level < objects; level++)
    schema = { type: 'object', properties: { a: schema }, additionalProperties: false };
  return schema;
}

/** Arguments for it. */
function filled(objects: number): JsonObject {
  let value: JsonObject = {};
  for (let level = 1; level < objects; level++) value = { a: value };
  return value;
}

/** Proves which tools are listed beside one that is nested too deeply, and what is said of that one. */
function tooDeep(upstream: readonly string[]) {
  return () =>
    withWorld(
      {
        tools: [tool(nested(70)), { ...tool(nested(400)), name: 'deep' }],
        upstream,
      },
      async (world) => {
        const listed = resultOf(await world.request('tools/list'))['tools'];
        expect(listed).toMatchObject([{ name: 'work' }]);
        expect(await isForwarded(world, filled(70))).toBe(true);
        expect(world.gateway.log()).toContain('tools/1: nested deeper than 256 levels');
        world.upstream.forget();
        await world.call('deep', {});
        if (upstream.includes(PINNED)) expect(world.upstream.uses()).toEqual([]);
      },
    );
}

export const rows: readonly CompatRow[] = [
  {
    id: 'numbers-beyond-a-double',
    area: 'schemas',
    source: 'RFC 8259 §6, JSON Schema 2020-12 core §4.2.2',
    given: 'A client sends an integer beyond 2^53, such as an id of thirty digits, as an argument.',
    verdict: 'accepts',
    sees: 'It passes byte for byte where no rule reads it, and is checked by the schema as a decimal.',
    run: () =>
      withWorld(
        {
          tools: [tool({ properties: { id: { type: 'integer', maximum: 9007199254740992 } } })],
          upstream: [PINNED],
        },
        async ({ access, upstream }) => {
          const { body, headers } = statelessParts('tools/call', { name: 'work', arguments: {} });
          const send = (id: string) =>
            post(access, JSON.stringify(body).replace('"arguments":{}', `"arguments":{"id":${id}}`), headers);
          await send('9007199254740993');
          expect(upstream.uses()).toEqual([]);
          await send('-123456789012345678901234567890');
          expect(upstream.uses()[0]?.body).toContain('{"id":-123456789012345678901234567890}');
        },
      ),
  },
  {
    id: 'deep-schema',
    area: 'schemas',
    source: 'a schema nested 70 objects deep, and one nested 400 deep',
    given: 'A list has a tool whose schema is 70 objects deep, and one that is nested beyond any use.',
    verdict: 'accepts',
    sees: 'The first is listed, pinned and called; the second is left out and named in the log.',
    run: tooDeep([PINNED]),
  },
  {
    id: 'deep-schema-unpinned',
    area: 'schemas',
    source: 'a schema nested 70 objects deep, and one nested 400 deep',
    given: 'The same two tools are offered where definitions are not pinned.',
    verdict: 'accepts',
    sees: 'The first is listed and called; the second is left out and named in the log.',
    run: tooDeep(['pinning: {mode: "off"}']),
  },
  {
    id: 'format-is-an-annotation',
    area: 'schemas',
    source: 'Ilmar7786/marzban-sdk#112, Wh1isper/mcp-email-server#64, JSON Schema 2020-12 §7.2.1',
    given: 'An argument or a structured result does not have the format that its schema names.',
    verdict: 'accepts',
    sees: 'The call and the result pass; an operator may ask for assertion with `formats: assertion`.',
    run: () =>
      withWorld(
        {
          tools: [tool(WHEN, { outputSchema: { type: 'object', ...WHEN } })],
          upstream: [PINNED],
          result: () => ({
            content: [{ type: 'text', text: 'done' }],
            structuredContent: { when: '2026-09-02T14:00:57.764445' },
          }),
        },
        async ({ call }) => {
          const result = resultOf(await call('work', { when: '2025-01-01T00:00:00' }));
          expect(result['structuredContent']).toEqual({ when: '2026-09-02T14:00:57.764445' });
        },
      ),
  },
  {
    id: 'default-of-a-required-argument',
    area: 'schemas',
    source: 'Zod and Pydantic, JSON Schema 2020-12 validation §9.2',
    given: 'A schema requires an argument that has a default, and a client leaves it out.',
    verdict: 'accepts',
    sees: 'The call passes as it came; rules are decided with the default and without it.',
    run: calls(
      {
        properties: { limit: { type: 'integer', default: 10 }, path: { type: 'string' } },
        required: ['limit', 'path'],
      },
      { passes: [{ path: 'x' }, { path: 'x', limit: 1 }], fails: [{ limit: 1 }] },
    ),
  },
  {
    id: 'name-that-is-only-required',
    area: 'schemas',
    source: 'JSON Schema 2020-12 validation §6.5.3',
    given: 'A schema requires a member that it does not have under `properties`.',
    verdict: 'accepts',
    sees: 'The member counts as declared.',
    run: calls(
      { properties: { a: {} }, required: ['zz'] },
      { passes: [{ zz: 1 }], fails: [{ a: 1 }, { zz: 1, y: 1 }] },
    ),
  },
  {
    id: 'anchors-and-dynamic-references',
    area: 'schemas',
    source: 'JSON Schema 2020-12 core §8.2',
    given: 'A schema refers to itself by `$anchor`, `$dynamicRef` or a relative `$id`.',
    verdict: 'accepts',
    sees: 'References inside the document are resolved; nothing is fetched.',
    run: calls(
      {
        $id: 'https://tools.example/work',
        properties: {
          a: { $ref: '#n' },
          tree: { $ref: '#/$defs/tree' },
          b: { $ref: 'other' },
        },
        $defs: {
          N: { $anchor: 'n', type: 'integer' },
          tree: {
            $dynamicAnchor: 't',
            type: 'object',
            properties: { next: { $dynamicRef: '#t' } },
          },
          other: { $id: 'other', type: 'string' },
        },
      },
      {
        passes: [{ a: 1, b: 'x', tree: { next: { next: {} } } }],
        fails: [{ a: 'x' }, { b: 1 }, { tree: { next: { next: 1 } } }],
      },
    ),
  },
  {
    id: 'large-enum',
    area: 'schemas',
    source: 'JSON Schema 2020-12 validation §6.1.2',
    given: 'A schema lists 3,000 strings in one enum.',
    verdict: 'accepts',
    sees: 'Each of them passes, and nothing else.',
    run: calls(
      { properties: { a: { enum: Array.from({ length: 3000 }, (_, at) => `v${at}`) } } },
      { passes: [{ a: 'v2999' }], fails: [{ a: 'v3000' }] },
    ),
  },
  {
    id: 'tuple-without-a-dialect',
    area: 'schemas',
    source: 'getsentry/sentry-mcp',
    given: 'A schema without `$schema` writes a tuple as a list under `items`.',
    verdict: 'accepts',
    sees: 'It is read by the newest dialect that can read it.',
    run: calls(
      { properties: { headers: { type: 'array', items: TUPLE } } },
      { passes: [{ headers: [[1, 'x']] }], fails: [{ headers: [['x', 1]] }] },
    ),
  },
  ...['04', '06', '07'].map(
    (draft): CompatRow => ({
      id: `draft-${draft}-declared`,
      area: 'schemas',
      source: 'claude-code#90549, mcp-openmsx#22',
      given: `A schema names draft-${draft} and uses what only older dialects have.`,
      verdict: 'accepts',
      sees: 'It is read by that dialect and shown unchanged.',
      run: calls(
        {
          $schema: `http://json-schema.org/draft-${draft}/schema#`,
          properties: {
            a: { items: [{ type: 'integer' }], additionalItems: false },
            b: { $ref: '#/definitions/b', maxLength: 1 },
          },
          definitions: { b: { type: 'string' } },
        },
        { passes: [{ a: [1] }, { b: 'long' }], fails: [{ a: ['x'] }, { a: [1, 2] }, { b: 1 }] },
      ),
    }),
  ),
  {
    id: 'decimal-arithmetic',
    area: 'schemas',
    source: 'JSON Schema 2020-12 core §4.2.2',
    given: 'A price must be a multiple of 0.01.',
    verdict: 'accepts',
    sees: 'Numbers are computed with as decimals, so that 4.35 and 19.99 pass.',
    run: calls(
      { properties: { price: { multipleOf: 0.01 } } },
      { passes: [{ price: 4.35 }, { price: 19.99 }], fails: [{ price: 4.355 }] },
    ),
  },
  {
    id: 'result-with-a-number-that-no-double-holds',
    area: 'schemas',
    source: 'RFC 8259 §6',
    given: 'A structured result has a number of sixteen digits, of which its schema wants a multiple of 3.',
    verdict: 'accepts',
    sees: 'It is checked as it is written and arrives byte for byte.',
    run: () => {
      const schema = { type: 'object', properties: { n: { type: 'integer', multipleOf: 3 } } };
      return withWorld(
        {
          tools: [tool({ type: 'object' }, { outputSchema: schema })],
          upstream: [PINNED],
          order: ({ method, id }) =>
            method === 'tools/call'
              ? {
                  kind: 'http',
                  status: 200,
                  headers: { 'content-type': 'application/json' },
                  body: `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"resultType":"complete","content":[],"structuredContent":{"n":9007199254740993}}}`,
                }
              : undefined,
        },
        async ({ call }) => {
          expect((await call('work')).text).toContain('{"n":9007199254740993}');
        },
      );
    },
  },
  {
    id: 'pattern-with-look-around',
    area: 'schemas',
    source: 'JSON Schema 2020-12 core §6.4',
    given: 'A pattern uses what no expression of linear time can say.',
    verdict: 'accepts',
    sees: 'The pattern is not checked, the rest of the schema is.',
    run: calls(LOOK_AHEAD, { passes: [{ a: 'x' }], fails: [{ a: 1 }] }),
  },
  ...([PINNED, 'pinning: {mode: "off"}'] as const).map(
    (pinning, at): CompatRow => ({
      id: at === 0 ? 'pattern-that-decides-by-failing' : 'pattern-that-decides-by-failing-unpinned',
      area: 'schemas',
      source: 'docs/reference/arguments.md#schemas',
      given: `Such a pattern stands under \`not\`${at === 0 ? '' : ', and nothing is pinned'}.`,
      verdict: 'refuses',
      sees: 'The tool is neither listed nor callable, because its arguments could not be checked.',
      run: unusable({ properties: { a: { not: { pattern: '^(?!x)' } } } }, [pinning]),
    }),
  ),
  {
    id: 'unevaluated-properties-in-a-failed-branch',
    area: 'schemas',
    source: 'JSON Schema 2020-12 core §11.3',
    given: 'Only a branch that fails declares a member of an object with `unevaluatedProperties: false`.',
    verdict: 'refuses',
    sees: 'The object is closed in arguments whatever `arguments` says, and in results.',
    run: () => {
      const schema = {
        type: 'object',
        anyOf: [
          {
            properties: { c: { type: 'number' } },
            anyOf: [{ properties: { b: {} } }, { properties: { d: {} } }],
          },
          { type: 'object' },
        ],
        unevaluatedProperties: false,
      };
      return withWorld(
        {
          tools: [tool(schema, { outputSchema: schema })],
          upstream: [PINNED, 'arguments: any'],
          result: () => ({ content: [], structuredContent: { c: 'x' } }),
        },
        async (world) => {
          expect(await isForwarded(world, { c: 'x' })).toBe(false);
          const result = resultOf(await world.call('work', { c: 1 }));
          expect(result['structuredContent']).toBeUndefined();
        },
      );
    },
  },
  {
    id: 'undeclared-argument-is-named',
    area: 'schemas',
    source: 'cline#9919, cline#10426',
    given: 'A client adds an argument that the tool does not declare.',
    verdict: 'refuses',
    sees: 'The refusal names the argument; with `arguments: {drop: [task_progress]}` it is removed.',
    run: async () => {
      const work = tool({ properties: { a: { type: 'string' } } });
      const args = { a: 'x', task_progress: '- [ ] one' };
      await withWorld({ tools: [work], upstream: [PINNED] }, async ({ call }) => {
        expect(JSON.stringify(resultOf(await call('work', args)))).toContain(
          'The argument \\"task_progress\\" is not declared.',
        );
      });
      await withWorld({ tools: [work], upstream: [PINNED] }, async ({ call }) => {
        const [first = {}] = resultOf(await call('work', { 'a"b\u200bc\\d\n': 1 }))[
          'content'
        ] as unknown as readonly JsonObject[];
        expect(first['text']).toContain(String.raw`The argument "a\"b\u{200b}c\\d\n" is not declared.`);
      });
      const upstream = [PINNED, 'arguments: {drop: [task_progress]}'];
      await withWorld({ tools: [work], upstream }, async (world) => {
        await world.call('work', args);
        const params = world.upstream.uses()[0]?.message?.['params'];
        expect(isObject(params) ? params['arguments'] : undefined).toEqual({ a: 'x' });
      });
    },
  },
  {
    id: 'string-for-a-number',
    area: 'schemas',
    source: 'qwen-code#4966, Teamwork/mcp#385, openclaw#96718, fastmcp#1946',
    given: 'A model sends `"5"` for an integer, `"true"` for a boolean or a list as text.',
    verdict: 'mends',
    sees: 'With `arguments: {coerce: true}` it becomes what it says, if nothing is lost; otherwise it is refused.',
    run: async () => {
      const work = tool({
        properties: { n: { type: 'integer' }, b: { type: 'boolean' }, l: { type: 'array' } },
      });
      const args = { n: '5', b: 'true', l: '["x"]' };
      await withWorld({ tools: [work], upstream: [PINNED] }, async (world) => {
        expect(await isForwarded(world, args)).toBe(false);
      });
      const upstream = [PINNED, 'arguments: {coerce: true}'];
      await withWorld({ tools: [work], upstream }, async (world) => {
        await world.call('work', args);
        const params = world.upstream.uses()[0]?.message?.['params'];
        const sent = isObject(params) ? params['arguments'] : undefined;
        expect(sent).toEqual({ n: 5, b: true, l: ['x'] });
      });
    },
  },
];
