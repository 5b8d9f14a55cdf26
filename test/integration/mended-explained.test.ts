// What the gateway makes of arguments before it decides, and what `explain`, `test` and `replay` say of the same calls:
// one mechanism, so that the commands say what the gateway does.

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type World, withWorld } from '../compat/rig.js';
import { runCommand } from '../support/commands.js';
import type { JsonObject } from '../support/json.js';
import type { Ended } from '../support/processes.js';
import { post, resultOf, statelessParts } from '../support/wire-client.js';

const TOOLS = [
  {
    name: 'work',
    description: 'Does the work.',
    inputSchema: {
      type: 'object',
      properties: {
        count: { type: 'integer' },
        mode: { type: 'string', default: 'read' },
        size: { type: 'integer', default: 90 },
        filter: { type: 'object', properties: { limit: { type: 'integer' } } },
        title: { type: 'string' },
      },
      required: ['mode'],
    },
  },
];
const RULES = [
  '{id: some, effect: allow, who: {anyone: true}, what: {tools: ["*"]}, args: {mode: {enum: [read, list]}}}',
  `{id: few, effect: deny, who: {anyone: true}, what: {tools: ["*"]}, when: 'has(args.count) && args.count > 5.0'}`,
  `{id: no-progress, effect: deny, who: {anyone: true}, what: {tools: ["*"]}, when: 'anyArg(a, a.contains("plan"))'}`,
  `{id: big, effect: deny, who: {anyone: true}, what: {tools: ["*"]}, when: 'args.size > 100.0'}`,
];
const POLICY = `version: 1\npolicy: p\nrules:\n${RULES.map((one) => `  - ${one}\n`).join('')}`;
const MENDING = 'arguments: {coerce: true, drop: [task_progress]}';
const BIG = '9007199254740993';

/** Arguments, whether they are allowed, and what is printed of them. */
const ROWS: readonly (readonly [args: string, verdict: 'allow' | 'deny', printed: readonly string[]])[] = [
  ['{"mode":"read","size":1}', 'allow', []],
  ['{}', 'allow', ['filled in for the rules /mode: "read"', 'filled in for the rules /size: 90']],
  ['{"mode":"list","size":"5"}', 'allow', ['coerced /size']],
  ['{"count":"6","mode":"read","size":1}', 'deny', ['coerced /count']],
  ['{"count":"5","mode":"read","size":1}', 'allow', ['coerced /count']],
  ['{"task_progress":"the plan","mode":"read","size":1}', 'allow', ['dropped /task_progress']],
  [
    '{"filter":"{\\"limit\\":\\"3\\"}","task_progress":[1],"mode":"read","size":1}',
    'allow',
    ['dropped /task_progress', 'coerced /filter', 'coerced /filter/limit'],
  ],
  ['{"title":"plan","mode":"read","size":1}', 'deny', []],
  ['{"mode":"delete","size":1}', 'deny', []],
  ['{"mode":"read","size":"101"}', 'deny', ['coerced /size']],
  ['{"other":1,"mode":"read","size":1}', 'deny', []],
  [`{"filter":{"limit":${BIG}},"mode":"read","size":1}`, 'deny', []],
  [`{"count":${BIG},"mode":"read","size":1}`, 'deny', []],
];

function within(upstream: readonly string[], test: (world: World) => Promise<void>): Promise<void> {
  const members = ['pinning: {maxAge: 1h}', ...upstream];
  return withWorld({ tools: TOOLS, upstream: members, policies: { p: POLICY } }, test);
}

async function verdictOf({ access }: World, args: string): Promise<string> {
  const { body, headers } = statelessParts('tools/call', { name: 'work', arguments: 'ARGS' });
  const reply = await post(access, JSON.stringify(body).replace('"ARGS"', args), headers);
  return resultOf(reply)['isError'] === true ? 'deny' : 'allow';
}

function forgetful(text: string): JsonObject {
  return JSON.parse(text) as JsonObject;
}

function explain(folder: string, args: string): Promise<Ended> {
  return runCommand(['explain', 'call', 'u/work', '--args', args, '-c', 'gateway.yaml'], { cwd: folder });
}

it('explain and test decide as the gateway does, and say what it did to the arguments', async () => {
  await within([MENDING], async (world) => {
    const { folder } = world.gateway;
    const cases: string[] = [];
    for (const [args, verdict, printed] of ROWS) {
      expect([args, await verdictOf(world, args)]).toEqual([args, verdict]);
      const { code, stdout } = await explain(folder, args);
      expect(code).toBe(0);
      expect([args, stdout.split(/[: ]/, 1)[0]]).toEqual([args, verdict]);
      for (const one of printed) expect(stdout).toContain(`\n  ${one}\n`);
      expect(stdout.includes('arguments, as the gateway reads them')).toBe(printed.length > 0);
      if (!args.includes(BIG)) cases.push(caseOf(args, verdict));
    }
    await writeTests(folder, cases);
    const test = () => runCommand(['test', 'tests', '-c', 'gateway.yaml'], { cwd: folder });
    expect(await test()).toMatchObject({ code: 0, stderr: expect.stringContaining('0 failed') });
    await writeTests(folder, [caseOf('{"task_progress":1,"count":"7"}', 'allow')]);
    const failed = await test();
    expect(failed.code).toBe(1);
    expect(failed.stdout).toContain(
      'arguments: dropped /task_progress, coerced /count, filled in for the rules /mode: "read"',
    );
  });
});

function caseOf(args: string, verdict: string): string {
  return `  - {name: ${JSON.stringify(args.slice(0, 40))}, as: ada, call: u/work, args: ${args}, expect: ${verdict}}\n`;
}

async function writeTests(folder: string, cases: readonly string[]): Promise<void> {
  await mkdir(join(folder, 'tests'), { recursive: true });
  const text = `version: 1\nprincipals: {ada: {}}\ncases:\n${cases.join('')}`;
  await writeFile(join(folder, 'tests/a.policy.test.yaml'), text);
}

it('explain refuses what admission refuses', async () => {
  await within([MENDING], async ({ gateway: { folder } }) => {
    for (const [args, why] of [
      ['{"a":1,"a":2}', 'duplicate member names'],
      ['{"a":"\\ud800"}', 'half of a surrogate pair'],
      ['[1]', 'no JSON object'],
      ['{"a":1}} ', 'not valid JSON'],
      ['{},"x":{}', 'not valid JSON'],
    ] as const) {
      const { code, stderr } = await explain(folder, args);
      expect([args, code]).toEqual([args, 2]);
      expect(stderr).toContain(why);
    }
  });
});

it('replay reads recorded arguments as the gateway would read them now', async () => {
  await within(['arguments: any'], async (world) => {
    const { folder } = world.gateway;
    const calls = [
      '{"mode":"read","size":1}',
      '{"mode":"read","size":1,"task_progress":"a plan"}',
      '{"mode":"read","size":1,"count":"3"}',
    ];
    for (const args of calls) await verdictOf(world, args);
    const replayed = async () => {
      const argv = ['replay', '--log', 'audit.jsonl', '--json', '-c', 'gateway.yaml'];
      return forgetful((await runCommand(argv, { cwd: folder })).stdout);
    };
    expect(await replayed()).toMatchObject({ changed: [] });
    const file = join(folder, 'gateway.yaml');
    const text = await readFile(file, 'utf8');
    await writeFile(file, text.replace('arguments: any', MENDING));
    const now = await replayed();
    // What would be dropped or coerced now may be allowed: the record does not tell.
    expect(now).toMatchObject({ changed: [] });
    const unknown = now['unknown'] as unknown as readonly JsonObject[];
    expect(JSON.stringify(unknown)).toContain('the arguments task_progress are dropped');
  });
});
