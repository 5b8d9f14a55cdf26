// What keys of a policy file do, each from the file to its effect on the running gateway, where no other test
// shows it. config-effects/policy.ts names these tests.

import { describe, expect, it } from 'vitest';
import { decisionOf, linesOf, textOf } from '../support/gateway.js';
import type { JsonObject } from '../support/json.js';
import { callStateless, requestStateless, resultOf, toolNames } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

/** What one rule names of its callers, by the tool that it grants. */
const WHO: Readonly<Record<string, string>> = {
  by_anyone: 'anyone: true',
  by_issuer: 'issuers: [test]',
  by_other_issuer: 'issuers: [other]',
  by_subject: 'issuers: [test], subjects: [ada]',
  by_client: 'issuers: [test], clients: [terminal]',
  by_group: 'issuers: [test], groups: [readers]',
  by_actor: 'issuers: [test], actors: [agent]',
  by_claim: 'issuers: [test], claims: {tenant: [acme], level: [3]}',
};
const TOOLS: readonly JsonObject[] = [
  ...Object.keys(WHO),
  'asked',
  'elsewhere',
  'counted',
  'narrowed',
  'pay',
  'order',
].map((name) => ({
  name,
  description: 'Does something.',
  inputSchema: {
    type: 'object',
    properties: { id: { type: 'string' }, to: { type: 'string' }, amount: {} },
  },
}));

const POLICY = `version: 1
policy: who-and-what
owner: platform@example.com
rules:
${Object.entries(WHO)
  .map(([tool, who]) => {
    const id = tool.replaceAll('_', '-');
    return `  - {id: ${id}, effect: allow, who: {${who}}, what: {upstreams: [target], tools: [${tool}]}}`;
  })
  .join('\n')}
  - id: asked
    effect: allow
    who: {anyone: true}
    what: {upstreams: [target], tools: [asked]}
    args: {id: {enum: [one, two]}}
    when: args.id != "two" || principal.subject == "ada"
  - {id: counted, effect: allow, who: {issuers: [test], groups: [counting]}, what: {tools: [counted]}, limits: {rate: 1/h, per: rule}}
  - {id: east, effect: allow, who: {issuers: [test], groups: [east]}, what: {tools: [narrowed]}, args: {id: {const: e1}}}
  - {id: west, effect: allow, who: {issuers: [test], groups: [west]}, what: {tools: [narrowed]}, args: {id: {enum: [w1, w2]}}}
  - {id: payments, effect: allow, who: {issuers: [test], groups: [paying]}, what: {tools: [pay]}, limits: {budget: {name: spend, cost: args.amount, per: client, within: 1h, max: 10}}}
  - {id: orders, effect: allow, who: {issuers: [test], groups: [paying]}, what: {tools: [order]}, limits: {budget: {name: spend, cost: "has(args.amount) ? args.amount * 2.0 : 1.0", per: client, within: 1h, max: 10}}}
  - id: not-to-others
    effect: deny
    who: {anyone: true}
    what: {tools: [asked]}
    args: {to: {const: others}}
    reason: Ask the platform team first.
  - id: no-internal-urls
    effect: deny
    who: {anyone: true}
    what: {upstreams: ["*"], tools: ["*"]}
    when: 'anyArg(a, a.contains("://") && !url.isPublic(a)) || (has(args.to) && path.under(args.to, "private"))'
  - id: elsewhere
    effect: allow
    who: {anyone: true}
    what: {upstreams: ["targets-*"], tools: [elsewhere]}
`;

const rig = sharedGateway({
  policies: { who: POLICY },
  issuers: ['other: {issuer: "http://127.0.0.1:9/other", network: loopback, algorithms: [ES256]}'],
  prepare(upstream) {
    upstream.offer(() => TOOLS);
    upstream.answerCalls(() => ({ content: [{ type: 'text', text: 'done' }] }));
  },
});

describe('[P-46, P-47] one rule over the arguments of all tools', () => {
  it.each([
    [{ id: 'http://0x7f.1/' }, true],
    [{ to: 'https://user@example.com/' }, false],
    [{ to: './private/%2e/key' }, true],
    [{ id: 'private/key', to: 'public/key' }, false],
  ])('refuses %j: %s', async (args, isRefused) => {
    const reply = await callStateless(rig.access, 'by_anyone', args);
    expect(resultOf(reply)['isError'] === true).toBe(isRefused);
  });
});

it('[P-16] a tool is granted by the current actor of a delegated token', async () => {
  const listed = async (act: unknown): Promise<boolean> => {
    const access = rig.as(await rig.gateway.token('target', { act }));
    return toolNames(await requestStateless(access, 'tools/list')).includes('by_actor');
  };
  expect(await listed({ sub: 'agent', act: { sub: 'first' } })).toBe(true);
  expect(await listed({ sub: 'first', act: { sub: 'agent' } })).toBe(false);
  expect(await listed(undefined)).toBe(false);
});

describe('[P-35] args in lists', () => {
  it('show each caller what its rules leave of one approved definition', async () => {
    const shown = async (groups: readonly string[]): Promise<unknown> => {
      const access = rig.as(await rig.gateway.token('target', { groups }));
      const tools = resultOf(await requestStateless(access, 'tools/list'))['tools'];
      const tool = (tools as readonly JsonObject[]).find(({ name }) => name === 'narrowed');
      return tool?.['inputSchema'];
    };
    const to = { type: 'string' };
    const schemaWith = (id: JsonObject, required: readonly string[] = ['id']) => ({
      type: 'object',
      required,
      properties: { id: { ...id, type: 'string' }, to, amount: {} },
    });
    const east = schemaWith({ const: 'e1' });
    // Twice each: the second list is written from the cache, by the rules of its caller.
    for (const _ of [1, 2]) {
      expect(await shown(['east'])).toEqual(east);
      expect(await shown(['west'])).toEqual(schemaWith({ enum: ['w1', 'w2'] }));
      expect(await shown(['east', 'west'])).toEqual(schemaWith({ enum: ['e1', 'w1', 'w2'] }));
    }
    const access = rig.as(await rig.gateway.token('target', { groups: ['east'] }));
    const called = await callStateless(access, 'narrowed', { id: 'e1' });
    expect(resultOf(called)['isError']).not.toBe(true);
  });
});

describe('[C-24] keys of who and of what', () => {
  it('list a tool for exactly the callers that they name', async () => {
    const listed = async (claims: Readonly<Record<string, unknown>>) => {
      const access = rig.as(await rig.gateway.token('target', claims));
      return [...toolNames(await requestStateless(access, 'tools/list'))].sort();
    };
    const everyone = ['asked', 'by_anyone', 'by_issuer'];
    const as = { sub: 'bob', client_id: 'ide' };
    expect(await listed(as)).toEqual(everyone);
    expect(await listed({ ...as, sub: 'ada' })).toEqual([...everyone, 'by_subject']);
    expect(await listed({ ...as, client_id: 'terminal' })).toEqual([...everyone, 'by_client'].sort());
    expect(await listed({ ...as, groups: ['readers'] })).toEqual([...everyone, 'by_group'].sort());
    expect(await listed({ ...as, tenant: 'acme', level: 3 })).toEqual([...everyone, 'by_claim'].sort());
    expect(await listed({ ...as, tenant: 'acme', level: '3' })).toEqual(everyone);
  });
});

describe('[C-24] keys that read arguments, and what is said of a rule', () => {
  async function call(args: JsonObject, sub = 'bob') {
    const access = rig.as(await rig.gateway.token('target', { sub }));
    const reply = await callStateless(access, 'asked', args);
    const result = resultOf(reply);
    return { text: textOf(result), isRefused: result['isError'] === true, reply };
  }

  it('args and when of an allow let pass what they hold for', async () => {
    expect(await call({ id: 'one' })).toMatchObject({ text: 'done' });
    expect(await call({ id: 'three' })).toMatchObject({ isRefused: true });
    expect(await call({ id: 'two' })).toMatchObject({ isRefused: true });
    expect(await call({ id: 'two' }, 'ada')).toMatchObject({ text: 'done' });
  });

  it('per of a limit says whose calls are counted together', async () => {
    const refused = async (sub: string): Promise<boolean> => {
      const token = await rig.gateway.token('target', { sub, groups: ['counting'] });
      return resultOf(await callStateless(rig.as(token), 'counted'))['isError'] === true;
    };
    expect([await refused('ada'), await refused('bob')]).toEqual([false, true]);
  });

  it('[P-67] a budget is spent over several tools, and a call that cannot be charged is refused', async () => {
    const paid = async (tool: string, amount: unknown, client_id = 'shop'): Promise<string> => {
      const token = await rig.gateway.token('target', { client_id, groups: ['paying'] });
      const args = (amount === undefined ? {} : { amount }) as JsonObject;
      const result = resultOf(await callStateless(rig.as(token), tool, args));
      return result['isError'] === true ? textOf(result) : 'done';
    };
    const broken = 'A policy rule could not be evaluated, so the request was refused.';
    expect(await paid('pay', 4.5)).toBe('done');
    for (const amount of [-1, '3', true, null, [1], undefined]) {
      expect(await paid('pay', amount)).toBe(broken);
    }
    expect(await paid('order', 2.75)).toBe('done');
    expect(await paid('pay', 0)).toBe('done');
    expect(await paid('pay', 0.000001)).toMatch(/budget "spend" is spent\. Try again in \d+ seconds/);
    expect(await paid('order', undefined)).toMatch(/is spent/);
    expect(await paid('pay', 11, 'other')).toMatch(/costs more than the whole budget "spend"/);
    expect(await paid('pay', 10, 'other')).toBe('done');
    await expect
      .poll(async () => (await rig.gateway.metrics()).match(/sallyport_controls\{control="budgets".*1$/gm))
      .toEqual([expect.stringContaining('state="degraded"')]);
  });

  it('reason is what the caller is told, and policy and id what the record says', async () => {
    const { text, isRefused, reply } = await call({ id: 'one', to: 'others' });
    expect([isRefused, text]).toEqual([true, expect.stringContaining('Ask the platform team first.')]);
    const [line] = await linesOf(rig.gateway, decisionOf(reply).id, 2);
    expect(line?.['decision']).toMatchObject({
      policy: 'who-and-what',
      rule: 'not-to-others',
      verdict: 'deny',
    });
  });
});
