// What two callers of one upstream see of it, side by side and at once, with the SDKs that people use:
// each its own list, its own answers, and refusals that a model can act on. docs/reference/policies.md;
// docs/reference/responses.md.

import { randomInt } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { openRawSession } from '../support/raw-mcp.js';
import { connectSdkV1, connectSdkV2 } from '../support/sdk-clients.js';
import { startSdkV2Server } from '../support/sdk-servers.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const POLICY = `version: 1
policy: desks
rules:
  - id: alice
    effect: allow
    who: {issuers: [test], subjects: [alice]}
    what: {upstreams: [modern], tools: [echo, slow, get_secret], prompts: [greet]}
  - id: bob
    effect: allow
    who: {issuers: [test], subjects: [bob]}
    what: {upstreams: [modern], tools: [add]}
    args: {a: {maximum: 10}}
  - id: bob-reads
    effect: allow
    who: {issuers: [test], subjects: [bob]}
    what: {upstreams: [modern], tools: [echo], resources: ["memo://notes/**"]}
`;
const SEEN_BY = { alice: ['echo', 'get_secret', 'slow'], bob: ['add', 'echo'] } as const;
const PARALLEL_CALLS = 40;

type Caller = keyof typeof SEEN_BY;

/** A key in the format of a cloud provider, made for this run alone. */
function makeAccessKey(): string {
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
  const drawn = Array.from({ length: 16 }, () => letters[randomInt(letters.length)]);
  return ['AK', 'IA', ...drawn].join('');
}

const secret = makeAccessKey();

function tokenOf(caller: Caller): Promise<string> {
  return gateway.token('modern', { sub: caller, client_id: `client-of-${caller}` });
}

async function openAs(caller: Caller, era: '2025' | '2026') {
  return connectSdkV2(gateway.url('modern'), era, { token: await tokenOf(caller) });
}

const server = shared(() => startSdkV2Server({ secret }));
const gateway = sharedGateway(() => ({
  upstreams: [{ name: 'modern', url: server.url }],
  policies: { desks: POLICY },
}));

describe('two callers', () => {
  it.each(['2025', '2026'] as const)(
    '[E-27] see their own lists of one upstream in era %s, whoever asks first and however often',
    async (era) => {
      for (const caller of ['alice', 'bob', 'alice', 'bob'] as const) {
        const { client, close } = await openAs(caller, era);
        const { tools } = await client.listTools();
        expect(tools.map((tool) => tool.name).sort()).toEqual(SEEN_BY[caller]);
        const { prompts } = await client.listPrompts();
        expect(prompts).toHaveLength(caller === 'alice' ? 1 : 0);
        await close();
      }
    },
  );

  it('[E-27] get "unknown" for what only the other may use, and the upstream hears nothing', async () => {
    const { client, close } = await openAs('alice', '2026');
    const before = server.seen().filter((one) => one.body.includes('tools/call')).length;
    const hidden = client.callTool({ name: 'add', arguments: { a: 1, b: 2 } });
    await expect(hidden).rejects.toMatchObject({
      code: -32602,
      message: expect.stringMatching(/[Uu]nknown tool/),
    });
    const invented = client.callTool({ name: 'no_such_tool', arguments: {} });
    await expect(invented).rejects.toMatchObject({ code: -32602 });
    expect(server.seen().filter((one) => one.body.includes('tools/call'))).toHaveLength(before);
    await close();
  });

  it.each(['2025', '2026'] as const)(
    '[E-28] are told in era %s why arguments are refused, as a result that a model reads',
    async (era) => {
      const { client, close } = await openAs('bob', era);
      await client.listTools();
      const good = await client.callTool({ name: 'add', arguments: { a: 10, b: 2 } });
      expect(good.structuredContent).toEqual({ sum: 12 });
      const refused = await client.callTool({ name: 'add', arguments: { a: 11, b: 2 } });
      expect(refused.isError).toBe(true);
      expect(refused._meta?.['dev.sallyport/decision']).toMatchObject({
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        reason: 'arguments-invalid',
      });
      await close();
    },
  );

  it('[E-28] are told by SDK v1 the same, though the tool promises structured content', async () => {
    const { client, close } = await connectSdkV1(gateway.url('modern'), {
      token: await tokenOf('bob'),
    });
    await client.listTools();
    const refused = await client.callTool({ name: 'add', arguments: { a: 'ten', b: 2 } });
    expect(refused.isError).toBe(true);
    await close();
  });

  it.each(['2025', '2026'] as const)(
    '[E-29] read in era %s what is left of a result, and what was withheld',
    async (era) => {
      const { client, close } = await openAs('alice', era);
      const result = await client.callTool({ name: 'get_secret', arguments: {} });
      const [block] = result.content as { text: string }[];
      expect(block?.text).toMatch(/^The key is \[redacted:[a-z-]+#[a-z2-7]{4}\]\.$/);
      expect(JSON.stringify(result)).not.toContain(secret);
      expect(result._meta?.['dev.sallyport/findings']).toHaveLength(1);
      const log = JSON.stringify(await gateway.audit()) + gateway.log();
      expect(log).not.toContain(secret);
      await close();
    },
  );
});

describe('many calls at once', () => {
  it.each(['2025', '2026'] as const)('[E-27] each get their own answer in era %s', async (era) => {
    const [alice, bob] = [await openAs('alice', era), await openAs('bob', era)];
    const calls = Array.from({ length: PARALLEL_CALLS }, async (_, index) => {
      const { client } = index % 2 === 0 ? alice : bob;
      const sent = `number ${index}`;
      const result = await client.callTool({ name: 'echo', arguments: { text: sent } });
      expect(result.content).toEqual([{ type: 'text', text: sent }]);
    });
    await Promise.all(calls);
    await alice.close();
    await bob.close();
  });

  it('[E-27] keep apart equal request ids of two sessions', async () => {
    const url = gateway.url('modern');
    const sessions = await Promise.all(
      (['alice', 'bob'] as const).map(async (caller) => openRawSession(url, { token: await tokenOf(caller) })),
    );
    const answers = await Promise.all(
      sessions.map((session, index) =>
        session.ask(1, 'tools/call', { name: 'echo', arguments: { text: `session ${index}` } }),
      ),
    );
    expect(answers.map((answer) => answer.messages.at(-1).result.content[0].text)).toEqual(['session 0', 'session 1']);
  });
});
