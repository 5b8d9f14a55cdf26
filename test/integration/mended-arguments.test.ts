// What the gateway mends in arguments where the operator says so, and how the schemas of an upstream are read: from a
// file to what the upstream gets and what the records say.

import { describe, expect, it } from 'vitest';
import { type World, type WorldOptions, withWorld } from '../compat/rig.js';
import type { Json, JsonObject } from '../support/json.js';
import { isObject } from '../support/json.js';
import { resultOf } from '../support/wire-client.js';

const SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    count: { type: 'integer' },
    ratio: { type: 'number' },
    deep: { type: 'boolean' },
    names: { type: 'array', items: { type: 'string' } },
    filter: { type: 'object', properties: { limit: { type: 'integer' } } },
    title: { type: 'string' },
    either: { type: ['string', 'integer'] },
    when: { type: 'string', format: 'date' },
    maybe: { type: ['integer', 'null'] },
  },
};

function tool(name: string, inputSchema: JsonObject): JsonObject {
  return { name, description: `Does ${name}.`, inputSchema };
}

const TOOLS = [tool('work', SCHEMA)];

/** The arguments that reached the upstream, as text; undefined for a call that was refused. */
async function sent(world: World, args: JsonObject): Promise<string | undefined> {
  world.upstream.forget();
  const reply = await world.call('work', args);
  const [use] = world.upstream.uses();
  if (use === undefined) {
    expect(resultOf(reply)['isError']).toBe(true);
    return undefined;
  }
  const params = use.message?.['params'];
  return JSON.stringify(isObject(params) ? params['arguments'] : undefined);
}

const PINNED = 'pinning: {maxAge: 1h}';

function within(upstream: string, test: (world: World) => Promise<void>, more: WorldOptions = {}) {
  return withWorld({ tools: TOOLS, upstream: [PINNED, upstream], ...more }, test);
}

async function findingsOf({ gateway }: World, detector: string): Promise<readonly unknown[]> {
  const lines = await gateway.audit();
  const found = lines.flatMap((line) => (line['findings'] ?? []) as readonly JsonObject[]);
  return [
    ...new Set(found.filter((one) => one['detector'] === detector).map((one) => `${one['path']} ${one['action']}`)),
  ];
}

describe('keys of arguments', () => {
  it('undeclared is what the words are short for', async () => {
    const outcomes: unknown[] = [];
    for (const written of ['{undeclared: refuse}', '{undeclared: observe}', '{undeclared: any}', '{}'])
      await within(`arguments: ${written}`, async (world) => {
        outcomes.push([written, (await sent(world, { other: 1 })) !== undefined]);
        const found = await findingsOf(world, 'undeclared-argument');
        expect(found).toEqual(written.includes('observe') ? ['/params/arguments/other flag'] : []);
      });
    expect(outcomes).toEqual([
      ['{undeclared: refuse}', false],
      ['{undeclared: observe}', true],
      ['{undeclared: any}', true],
      ['{}', false],
    ]);
  });

  it('coerce turns strings into what the schema admits', async () => {
    const rows: readonly (readonly [JsonObject, string | undefined])[] = [
      [{ count: '5' }, '{"count":5}'],
      [{ count: '5.0' }, '{"count":5}'],
      [{ count: '-12' }, '{"count":-12}'],
      [{ ratio: '1e3' }, '{"ratio":1000}'],
      [{ deep: 'true' }, '{"deep":true}'],
      [{ names: '["a","b"]' }, '{"names":["a","b"]}'],
      [{ filter: '{"limit": 3}' }, '{"filter":{"limit":3}}'],
      [{ filter: '{"limit": "3"}' }, '{"filter":{"limit":3}}'],
      [{ filter: { limit: '3' }, title: '7' }, '{"filter":{"limit":3},"title":"7"}'],
      [{ maybe: 'null' }, '{"maybe":null}'],
      // A string that the schema admits is what it is.
      [{ title: '5', either: '5' }, '{"title":"5","either":"5"}'],
      // What is no JSON, or would not be the same for every reader, is refused.
      ...['5x', ' 5', '05', '+5', '5.5', '0x5', '', '9007199254740993', '1e400', '"5"'].map(
        (count) => [{ count }, undefined] as const,
      ),
      ...['True', 'yes', '1'].map((deep) => [{ deep }, undefined] as const),
      ...['["a"', '[1,]', '{"a":1,"a":2}', '["\\ud800"]'].map((names) => [{ names }, undefined] as const),
    ];
    await within('arguments: {coerce: true}', async (world) => {
      for (const [args, expected] of rows) expect([args, await sent(world, args)]).toEqual([args, expected]);
    });
  });

  it('coerce records what it changed, and rules see what is forwarded', async () => {
    const policies = {
      p: 'version: 1\npolicy: p\nrules:\n  - {id: some, effect: allow, who: {anyone: true}, what: {tools: ["*"]}, args: {count: {type: integer, maximum: 5}}}\n',
    };
    await within(
      'arguments: {coerce: true}',
      async (world) => {
        expect(await sent(world, { count: '5' })).toBe('{"count":5}');
        expect(await sent(world, { count: '6' })).toBeUndefined();
        expect(await findingsOf(world, 'coerced-argument')).toEqual(['/params/arguments/count coerce']);
      },
      { policies },
    );
  });

  it('without coerce nothing is changed', async () => {
    await within('arguments: {drop: [other]}', async (world) => {
      expect(await sent(world, { count: '5' })).toBeUndefined();
    });
  });

  it('drop removes what no schema declares', async () => {
    await within('arguments: {drop: [task_progress, title]}', async (world) => {
      const token = 'x'.repeat(8);
      expect(await sent(world, { task_progress: token, count: 1 })).toBe('{"count":1}');
      expect(await sent(world, { count: 1, task_progress: { a: ['b'] } })).toBe('{"count":1}');
      expect(await sent(world, { task_progress: 1 })).toBe('{}');
      // What the tool has is its own.
      expect(await sent(world, { title: 'x', task_progress: 1 })).toBe('{"title":"x"}');
      expect(await sent(world, { other: 1 })).toBeUndefined();
      expect(await findingsOf(world, 'dropped-argument')).toEqual(['/params/arguments/task_progress drop']);
    });
  });

  it('dropped arguments reach no rule, and the rest of the bytes stays', async () => {
    const policies = {
      p: [
        'version: 1',
        'policy: p',
        'rules:',
        '  - {id: all, effect: allow, who: {anyone: true}, what: {tools: ["*"]}}',
        `  - {id: no, effect: deny, who: {anyone: true}, what: {tools: ["*"]}, when: 'anyArg(a, a.contains("secret plan"))'}`,
        '',
      ].join('\n'),
    };
    await within(
      'arguments: {drop: [task_progress]}',
      async (world) => {
        expect(await sent(world, { task_progress: 'secret plan', ratio: 1.5 })).toBe('{"ratio":1.5}');
        expect(await sent(world, { title: 'secret plan' })).toBeUndefined();
      },
      { policies },
    );
  });
});

it('formats says whether a format is asserted', async () => {
  const outcomes: unknown[] = [];
  for (const formats of ['annotation', 'assertion'])
    await within(`formats: ${formats}`, async (world) => {
      const isSent = async (when: string) => (await sent(world, { when })) !== undefined;
      outcomes.push([formats, await isSent('tomorrow'), await isSent('2026-02-28')]);
    });
  expect(outcomes).toEqual([
    ['annotation', true, true],
    ['assertion', false, true],
  ]);
});

describe('a refused argument', () => {
  const textOf = async (world: World, args: JsonObject): Promise<Json> => {
    const reply = await world.call('work', args);
    const content = resultOf(reply)['content'] as unknown as readonly JsonObject[];
    return content[0]?.['text'] ?? null;
  };
  const closed = { ...SCHEMA, additionalProperties: false };

  it.each([
    ['described', SCHEMA],
    ['closed', closed],
  ])('is named where the schema is %s, escaped and cut', async (_how, schema) => {
    await withWorld({ tools: [tool('work', schema)], upstream: [PINNED] }, async (world) => {
      expect(await textOf(world, { task_progress: 1 })).toContain('The argument "task_progress" is not declared.');
      const odd = `a"b\u202e${'c'.repeat(200)}`;
      const text = String(await textOf(world, { [odd]: 1 }));
      expect(text).toContain('The argument "a\\"b\\u{202e}ccc');
      expect(text).not.toContain('\u202e');
      expect(text.length).toBeLessThan(400);
    });
  });
});
