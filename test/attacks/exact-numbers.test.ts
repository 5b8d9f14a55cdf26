// Numbers in arguments that a double does not hold: a rule would compare one number and the server read another. They
// pass as they came where nothing reads them, the approved schema compares their decimals, and a rule that reads one
// refuses it.

import { describe, expect, it } from 'vitest';
import { type World, withWorld } from '../compat/rig.js';
import type { JsonObject } from '../support/json.js';
import { PATIENT } from '../support/timing.js';
import { errorOf, post, requestInSession, resultOf, sessionHeaders, statelessParts } from '../support/wire-client.js';

const SCHEMA: JsonObject = {
  type: 'object',
  properties: {
    id: { type: 'integer' },
    small: { type: 'integer', maximum: 9007199254740992 },
    even: { type: 'integer', multipleOf: 2 },
    ratio: { type: 'number' },
    one: { enum: [9007199254740992] },
    list: { type: 'array', items: { type: 'integer' }, uniqueItems: true },
    filter: { type: 'object', properties: { id: { type: 'integer' }, limit: { type: 'integer' } } },
    text: { type: 'string' },
    size: { type: 'integer', default: 1 },
  },
};
const TOOLS = [{ name: 'work', description: 'Does the work.', inputSchema: SCHEMA }];
const ALLOW = '  - {id: all, effect: allow, who: {anyone: true}, what: {tools: ["*"]}}';
const BIG = '9007199254740993';

function rule(id: string, effect: string, more: string): string {
  return `  - {id: ${id}, effect: ${effect}, who: {anyone: true}, what: {tools: ["*"]}, ${more}}`;
}

function world(rules: readonly string[], test: (world: World) => Promise<void>): Promise<void> {
  const policies = { p: `version: 1\npolicy: p\nrules:\n${rules.join('\n')}\n` };
  return withWorld({ tools: TOOLS, upstream: ['pinning: {maxAge: 1h}'], policies }, test);
}

/** What the upstream got of arguments that are sent as this text; the advice of the refusal if it got nothing. */
async function sent({ upstream, access }: World, args: string): Promise<string> {
  upstream.forget();
  const { body, headers } = statelessParts('tools/call', { name: 'work', arguments: 'ARGS' });
  const reply = await post(access, JSON.stringify(body).replace('"ARGS"', args), headers);
  const [use] = upstream.uses();
  if (use !== undefined) {
    expect(use.body).toContain(`"arguments":${args}`);
    return 'passed';
  }
  expect(resultOf(reply)['isError']).toBe(true);
  return reply.text;
}

const ROUNDED = /number that a policy reads and that loses its value/;

describe('a number that a double does not hold', () => {
  it.each([
    [`{"id":${BIG}}`, true],
    ['{"id": 123456789012345678901234567890 , "text":"x"}', true],
    ['{"ratio":0.1000000000000000055}', true],
    ['{"ratio":1e400}', true],
    [`{"list":[9007199254740992,${BIG}]}`, true],
    [`{"filter":{"id":-${BIG}}}`, true],
    // As decimals, and not as doubles.
    [`{"small":${BIG}}`, false],
    [`{"even":${BIG}}`, false],
    ['{"even":9007199254740994000000002}', true],
    [`{"one":${BIG}}`, false],
    ['{"id":9007199254740993.5}', false],
    [`{"list":[${BIG},${BIG}]}`, false],
    [`{"text":${BIG}}`, false],
  ])('is checked by the approved schema as it is written: %s', async (args, isForwarded) => {
    await world([ALLOW], async (started) => {
      expect((await sent(started, args)) === 'passed').toBe(isForwarded);
    });
  });

  const BUDGET = 'name: b, max: 100, per: subject, within: 1h';
  it.each([
    ['args of a deny', rule('no', 'deny', 'args: {id: {const: 9007199254740991}}')],
    ['a deny', rule('no', 'deny', `when: 'has(args.id) && args.id == 9007199254740992.0'`)],
    ['a require', rule('few', 'require', `when: 'args.id > 5.0', limits: {rate: 1/h}`)],
    ['anyArg', rule('no', 'deny', `when: 'anyArg(a, a == "9007199254740992")'`)],
    ['all arguments', rule('no', 'deny', `when: 'args.exists(name, args[name] == 1.0)'`)],
    ['a cost', rule('spend', 'require', `limits: {budget: {${BUDGET}, cost: 'args.id'}}`)],
  ])('is refused where %s reads it', async (_what, written) => {
    await world([ALLOW, written], async (started) => {
      expect(await sent(started, `{"id":${BIG}}`)).toMatch(ROUNDED);
      expect(await sent(started, '{"id":9007199254740993}')).toMatch(ROUNDED);
      // A refusal does not wait for its line.
      const violations = async (): Promise<readonly unknown[]> =>
        (await started.gateway.audit()).flatMap((line) => {
          const args = (line['args'] ?? {}) as JsonObject;
          return args['violations'] ?? [];
        });
      await expect.poll(violations, PATIENT).toContainEqual({ pointer: '', keyword: 'inexact' });
    });
  });

  it('fails an allow rule that reads it', async () => {
    const byArgs = rule('some', 'allow', 'args: {id: {type: integer, maximum: 9007199254740991}}');
    const byWhen = rule('other', 'allow', `when: 'has(args.filter) && args.filter.limit < 10.0'`);
    await world([byArgs, byWhen], async (started) => {
      expect(await sent(started, `{"id":${BIG}}`)).toMatch(ROUNDED);
      expect(await sent(started, `{"filter":{"limit":${BIG}}}`)).toMatch(ROUNDED);
      expect(await sent(started, '{"id":5}')).toBe('passed');
      // What only another rule reads fails that one alone.
      expect(await sent(started, `{"id":${BIG},"filter":{"limit":1}}`)).toBe('passed');
    });
  });

  it('passes beside what rules read', async () => {
    const rules = [
      ALLOW,
      rule('no', 'deny', `when: 'has(args.filter) && args.filter.limit == 1.0'`),
      rule('not', 'deny', `args: {filter: {properties: {limit: {const: 2}}, required: [limit]}}`),
      rule('nor', 'deny', `when: 'has(args.id) && args.text == "x"'`),
      rule('spend', 'require', `limits: {budget: {${BUDGET}, cost: 'args.size'}}`),
    ];
    await world(rules, async (started) => {
      expect(await sent(started, `{"text":"y","filter":{"id":${BIG},"limit":3}}`)).toBe('passed');
      expect(await sent(started, `{"text":"y","id":${BIG},"filter":{"limit":3}}`)).toBe('passed');
    });
  });

  it('is recorded and told apart as it is written', async () => {
    const captured = rule('log', 'require', 'audit: {capture: [/id, /list]}');
    await world([ALLOW, captured], async (started) => {
      expect(await sent(started, `{"id":${BIG},"list":[${BIG},1]}`)).toBe('passed');
      expect(await sent(started, `{"id":9007199254740992,"list":[${BIG},1]}`)).toBe('passed');
      const recorded = (await started.gateway.audit())
        .filter((line) => line['type'] === 'mcp.decision')
        .map((line) => (line['args'] ?? {}) as JsonObject)
        .filter(({ captured: values }) => values !== undefined);
      expect(recorded.map((one) => one['captured'])).toEqual([
        { '/id': BIG, '/list': `[${BIG},1]` },
        { '/id': '9007199254740992', '/list': `[${BIG},1]` },
      ]);
      expect(new Set(recorded.map((one) => one['digest'])).size).toBe(2);
    });
  });

  it('passes in a session too', async () => {
    await world([ALLOW], async (started) => {
      const session = await started.openSession();
      started.upstream.forget();
      const call = { name: 'work', arguments: { id: 1 } };
      const text = JSON.stringify({ jsonrpc: '2.0', id: 9, method: 'tools/call', params: call });
      await post(started.access, text.replace('{"id":1}', `{"id":${BIG}}`), {
        ...sessionHeaders(session.id),
      });
      expect(started.upstream.uses()[0]?.body).toContain(`"arguments":{"id":${BIG}}`);
      const other = await requestInSession(started.access, session.id, 'tools/call', {
        name: 'work',
        arguments: { id: 1.5 },
      });
      expect(resultOf(other)['isError']).toBe(true);
    });
  });

  it('is refused in a large body and in a batch as well', async () => {
    const no = rule('no', 'deny', 'args: {id: {const: 9007199254740991}}');
    await world([ALLOW, no], async (started) => {
      const { access, upstream } = started;
      const text = 'x'.repeat(600_000);
      expect(await sent(started, `{"id":${BIG},"text":"${text}"}`)).toMatch(ROUNDED);
      expect(await sent(started, `{"text":"${text}","filter":{"id":${BIG}}}`)).toBe('passed');
      const version = '2025-03-26';
      const clientInfo = { name: 'raw', version: '1' };
      const params = { protocolVersion: version, capabilities: {}, clientInfo };
      const opening = { jsonrpc: '2.0', id: 0, method: 'initialize', params };
      const opened = await post(access, JSON.stringify(opening));
      const session = { 'mcp-session-id': opened.headers.get('mcp-session-id') ?? '' };
      upstream.forget();
      const call = (id: number, args: string): string =>
        `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"work","arguments":${args}}}`;
      const batch = `[${call(1, `{"id":${BIG}}`)},${call(2, `{"filter":{"id":${BIG}}}`)}]`;
      const reply = await post(access, batch, { ...session, 'mcp-protocol-version': version });
      expect(reply.text).toMatch(ROUNDED);
      expect(upstream.uses().map(({ body }) => body.includes(`{"filter":{"id":${BIG}}}`))).toEqual([true]);
    });
  });

  it('is treated like any other number in a reply that is written again for another era', async () => {
    await world([ALLOW], async ({ access }) => {
      const { body, headers } = statelessParts('tools/call', {
        name: 'work',
        inputResponses: { a: 'N' },
      });
      const answerTo = async (number: string) => {
        const reply = await post(access, JSON.stringify(body).replace('"N"', number), headers);
        const { code, message } = errorOf(reply);
        return [reply.status, code, message];
      };
      expect(await answerTo(BIG)).toEqual(await answerTo('7'));
    });
  });
});
