// Arguments that are left out, so that a server fills in a default that a rule would have stopped, or so that a rule
// takes for absent what the server will read: for each effect, and for what a rule reads.

import { describe, expect, it } from 'vitest';
import { type World, withWorld } from '../compat/rig.js';
import type { JsonObject } from '../support/json.js';
import { isObject } from '../support/json.js';
import { resultOf } from '../support/wire-client.js';

const SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    mode: { type: 'string', default: 'delete' },
    size: { type: 'integer', default: 90 },
    note: { type: 'string', default: 'plain' },
    target: { type: 'object', properties: { path: { type: 'string', default: '/etc' } } },
  },
  required: ['mode', 'size'],
};
const ALLOW = '  - {id: all, effect: allow, who: {anyone: true}, what: {tools: ["*"]}}';

function policy(...rules: readonly string[]): { readonly p: string } {
  return { p: `version: 1\npolicy: p\nrules:\n${rules.join('\n')}\n` };
}

function rule(id: string, effect: string, more: string): string {
  return `  - {id: ${id}, effect: ${effect}, who: {anyone: true}, what: {tools: ["*"]}, ${more}}`;
}

/** Whether each of these calls reached the upstream, with the very arguments that were sent. */
async function outcomes(
  rules: readonly string[],
  calls: readonly JsonObject[],
  upstream: readonly string[] = ['pinning: {maxAge: 1h}'],
  schema = SCHEMA,
): Promise<readonly boolean[]> {
  const reached: boolean[] = [];
  const tools = [{ name: 'work', description: 'Does the work.', inputSchema: schema }];
  await withWorld({ tools, upstream, policies: policy(...rules) }, async (world) => {
    for (const args of calls) reached.push(await isForwarded(world, args));
  });
  return reached;
}

async function isForwarded(world: World, args: JsonObject): Promise<boolean> {
  world.upstream.forget();
  const reply = await world.call('work', args);
  const [use] = world.upstream.uses();
  if (use === undefined) {
    expect(resultOf(reply)['isError']).toBe(true);
    return false;
  }
  const params = use.message?.['params'];
  expect(isObject(params) ? params['arguments'] : undefined).toEqual(args);
  return true;
}

describe('an argument that is left out', () => {
  it('is valid where it has a default, and is forwarded as absent', async () => {
    expect(await outcomes([ALLOW], [{}, { mode: 'read' }, { size: 'x' }])).toEqual([true, true, false]);
  });

  it('does not pass an allow rule by its absence', async () => {
    const byArgs = rule('some', 'allow', 'args: {mode: {enum: [read, list]}}');
    expect(await outcomes([byArgs], [{}, { mode: 'read' }, { mode: 'delete' }])).toEqual([false, true, false]);
    const byWhen = rule('some', 'allow', `when: '!has(args.mode) || args.mode == "read"'`);
    expect(await outcomes([byWhen], [{}, { mode: 'read' }])).toEqual([false, true]);
    const below = rule('some', 'allow', `when: '!has(args.target.path) || args.target.path == "/tmp"'`);
    expect(await outcomes([below], [{ target: {} }, { target: { path: '/tmp' } }])).toEqual([false, true]);
  });

  it('passes an allow rule by its approved default', async () => {
    const byArgs = rule('some', 'allow', 'args: {note: {const: plain}, size: {maximum: 100}}');
    expect(await outcomes([byArgs], [{}, { note: 'other' }, { size: 101 }])).toEqual([true, false, false]);
  });

  it('does not escape a deny rule by its absence, nor by its default', async () => {
    const onDefault = rule('no', 'deny', `when: 'args.mode == "delete"'`);
    expect(await outcomes([ALLOW, onDefault], [{}, { mode: 'read' }])).toEqual([false, true]);
    const onAbsence = rule('no', 'deny', `when: '!has(args.note)'`);
    expect(await outcomes([ALLOW, onAbsence], [{}, { note: 'x' }])).toEqual([false, true]);
    const byArgs = rule('no', 'deny', 'args: {mode: {const: delete}}');
    expect(await outcomes([ALLOW, byArgs], [{}, { mode: 'read' }])).toEqual([false, true]);
    const anyText = rule('no', 'deny', `when: 'anyArg(a, a.contains("/etc"))'`);
    expect(await outcomes([ALLOW, anyText], [{ target: {} }, { target: { path: '/tmp' } }])).toEqual([false, true]);
  });

  it('is no error for a rule that has the default to read', async () => {
    const onOther = rule('no', 'deny', `when: 'args.mode == "format"'`);
    expect(await outcomes([ALLOW, onOther], [{}, { mode: 'format' }])).toEqual([true, false]);
  });

  it('does not escape a require rule', async () => {
    const limited = rule('few', 'require', `when: 'args.size > 50', limits: {rate: 1/h}`);
    expect(await outcomes([ALLOW, limited], [{}, {}, { size: 1 }, { size: 60 }])).toEqual([true, false, true, false]);
  });

  it('costs the dearer of its absence and its default', async () => {
    const spend = (cost: string): readonly string[] => [
      ALLOW,
      rule('spend', 'require', `limits: {budget: {name: b, max: 100, per: subject, within: 1h, cost: '${cost}'}}`),
    ];
    const absentIsCheap = 'has(args.size) ? args.size : 1.0';
    expect(await outcomes(spend(absentIsCheap), [{}, {}, { size: 5 }])).toEqual([true, false, true]);
    const absentIsDear = 'has(args.size) ? 1.0 : 60.0';
    expect(await outcomes(spend(absentIsDear), [{}, {}])).toEqual([true, false]);
  });

  it('counts by both readings where nobody approved the default', async () => {
    const off = ['pinning: {mode: "off"}'];
    const byArgs = rule('some', 'allow', 'args: {note: {const: plain}}');
    expect(await outcomes([byArgs], [{}, { note: 'plain' }], off)).toEqual([false, true]);
    const onDefault = rule('no', 'deny', `when: 'args.mode == "delete"'`);
    expect(await outcomes([ALLOW, onDefault], [{}, { mode: 'read' }], off)).toEqual([false, true]);
  });
});

const NESTED: JsonObject = {
  type: 'object',
  properties: {
    config: { anyOf: [{ $ref: '#/$defs/Config' }, { type: 'null' }] },
    kind: { type: 'string', default: 'all' },
    mode: { type: 'string' },
  },
  if: { properties: { kind: { const: 'all' } }, required: ['kind'] },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { properties: { mode: { default: 'delete' } } },
  else: { properties: { mode: { default: 'read' } } },
  $defs: {
    Config: {
      type: 'object',
      properties: { mode: { type: 'string', default: 'delete' } },
      required: ['mode'],
    },
  },
};

describe('a default in an alternative', () => {
  it('is filled in where the alternative requires it, and closes the object', async () => {
    const onDefault = rule('no', 'deny', `when: 'has(args.config.mode) && args.config.mode != "read"'`);
    const calls = [{ config: {} }, { config: { mode: 'read' } }, { config: null }];
    expect(await outcomes([ALLOW, onDefault], calls, undefined, NESTED)).toEqual([false, true, true]);
    const byWhen = rule(
      'some',
      'allow',
      `when: '!has(args.config) || !has(args.config.mode) || args.config.mode == "read"'`,
    );
    expect(await outcomes([byWhen], calls.slice(0, 2), undefined, NESTED)).toEqual([false, true]);
    expect(await outcomes([ALLOW], [{ config: { other: 1 } }], undefined, NESTED)).toEqual([false]);
  });

  it('is that of the branch which a default chooses', async () => {
    const onDefault = rule('no', 'deny', `args: {mode: {const: delete}}`);
    const calls = [{}, { kind: 'one' }, { mode: 'read' }];
    expect(await outcomes([ALLOW, onDefault], calls, undefined, NESTED)).toEqual([false, true, true]);
  });

  it('is unknown where two alternatives disagree', async () => {
    const schema = {
      type: 'object',
      properties: { note: { type: 'string' } },
      anyOf: [
        { properties: { mode: { type: 'string', default: 'read' } } },
        { properties: { mode: { type: 'string', default: 'delete' } } },
      ],
    };
    const some = rule('some', 'allow', `when: '!has(args.mode) || args.mode == "read"'`);
    expect(await outcomes([some], [{}, { mode: 'read' }], undefined, schema)).toEqual([false, true]);
    expect(await outcomes([ALLOW], [{}], undefined, schema)).toEqual([true]);
  });
});

describe('a name that differs only in case', () => {
  it('is refused beside an argument that the audit log captures', async () => {
    const schema = {
      type: 'object',
      properties: { amount: { type: 'integer' }, Amount: { type: 'integer' } },
    };
    const captured = rule('log', 'require', 'audit: {capture: [/amount]}');
    const calls = [{ amount: 1, Amount: 9 }, { amount: 1 }];
    expect(await outcomes([ALLOW, captured], calls, undefined, schema)).toEqual([false, true]);
    expect(await outcomes([ALLOW], calls, undefined, schema)).toEqual([true, true]);
  });
});
