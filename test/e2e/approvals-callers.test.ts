// The official SDKs before a call that their user has to approve by a login: what each client is given, by what it declares,
// and that the call passes once after the yes, and is asked about again. Source: MCP 2025-11-25, elicitation by URL;
// MCP 2026-07-28, multi-round-trip requests; docs/reference/approvals.md#how-a-client-is-asked.

import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterEach, describe, expect, it } from 'vitest';
import { answerAt, linkIn, startCallerStage } from '../support/caller-stage.js';
import { connectSdkV1, connectSdkV2 } from '../support/sdk-clients.js';
import { shared } from '../support/with-gateway.js';

const POLICY = `version: 1
policy: open
rules:
  - {id: all, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: ["*"]}}
  - id: ask
    effect: require
    who: {issuers: [test]}
    what: {upstreams: ["*"], tools: [write_record]}
    when: args.id != "by form"
    reason: Writes to production.
    approval: {by: caller}
  - id: ask-by-form
    effect: require
    who: {issuers: [test]}
    what: {upstreams: ["*"], tools: [write_record]}
    when: args.id == "by form"
    reason: Writes to production.
    approval: {by: caller, proof: client}
`;
const stage = shared(() => startCallerStage({ policies: { open: POLICY } }));

type Elicitation = { readonly form?: Record<string, never>; readonly url?: Record<string, never> };
type Question = { readonly mode: string; readonly message: string; readonly url: string };
/** What a client does with a question. */
type Answerer = (
  question: Question,
) => Promise<{ action: 'accept' | 'decline' | 'cancel'; content?: Record<string, boolean> }>;
/** A client of whichever SDK, and what became of a call: its result as JSON, or the error. */
type Caller = {
  write(
    id: string,
  ): Promise<{ readonly text: string; readonly code?: number; readonly elicitations?: readonly Question[] }>;
  close(): Promise<void>;
};
type Connect = (elicitation: Elicitation | undefined, answer: Answerer) => Promise<Caller>;

const opened: Caller[] = [];
afterEach(async () => {
  for (const { close } of opened.splice(0)) await close();
  stage.rig.upstream.forget();
});

/** The same call by the client of any SDK. */
function callerOf(
  client: { callTool(params: { name: string; arguments: Record<string, unknown> }): Promise<unknown> },
  close: () => Promise<void>,
): Caller {
  const caller: Caller = {
    close,
    async write(id) {
      try {
        return {
          text: JSON.stringify(await client.callTool({ name: 'write_record', arguments: { id, text: 'two' } })),
        };
      } catch (error) {
        const { message, code, elicitations } = error as Error & { code: number; elicitations: readonly Question[] };
        return { text: message, code, elicitations };
      }
    },
  };
  opened.push(caller);
  return caller;
}

const connectV1: Connect = async (elicitation, answer) => {
  const capabilities = elicitation === undefined ? {} : { elicitation };
  const { client, close } = await connectSdkV1(stage.rig.access.url, { token: stage.token }, { capabilities });
  if (elicitation !== undefined)
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => answer(params as unknown as Question));
  return callerOf(client, close);
};

const connectV2 =
  (era: '2025' | '2026'): Connect =>
  async (elicitation, answer) => {
    const capabilities = elicitation === undefined ? {} : { elicitation };
    const { client, close } = await connectSdkV2(stage.rig.access.url, era, { token: stage.token }, { capabilities });
    if (elicitation !== undefined)
      client.setRequestHandler('elicitation/create', ({ params }) => answer(params as unknown as Question));
    return callerOf(client, close);
  };

const SESSIONS: readonly (readonly [string, Connect])[] = [
  ['SDK v1', connectV1],
  ['SDK v2 with sessions', connectV2('2025')],
];
const ALL: readonly (readonly [string, Connect])[] = [...SESSIONS, ['SDK v2 without sessions', connectV2('2026')]];

const PASSED = (id: string) => expect.stringContaining(`write_record ${id}`);
const writes = (id: string): number =>
  stage.rig.upstream.uses().filter((use) => JSON.stringify(use.message?.['params']).includes(`"id":"${id}"`)).length;
const askNobody: Answerer = async () => {
  throw new Error('nobody is asked on a stream');
};

/** The call passes once after the yes at this link, and the next one is asked about at another link. */
async function passesOnce(caller: Caller, id: string, link: string, again: (seen: Seen) => string): Promise<void> {
  expect(link).not.toBe('');
  expect(writes(id)).toBe(0);
  expect(await answerAt(link, 'grant')).toContain('You approved this request.');
  expect((await caller.write(id)).text).toEqual(PASSED(id));
  expect(writes(id)).toBe(1);
  const next = again(await caller.write(id));
  expect(next).not.toBe('');
  expect(next).not.toBe(link);
  expect(writes(id)).toBe(1);
}
type Seen = Awaited<ReturnType<Caller['write']>>;

describe.each(ALL)('%s', (name, connect) => {
  it.each<readonly [string, Elicitation | undefined]>([
    ['nothing', undefined],
    ['forms alone', { form: {} }],
  ])('that declares %s is given the link in the result of its tool', async (what, elicitation) => {
    const id = `${name}, ${what}`;
    const caller = await connect(elicitation, askNobody);
    const asked = await caller.write(id);
    expect(JSON.parse(asked.text)).toMatchObject({ isError: true });
    expect((await caller.write(id)).text).toContain('It is still waiting.');
    await passesOnce(caller, id, linkIn(asked.text), ({ text }) => linkIn(text));
  });

  it('asks its user by a form where the rule takes the answer of a client, and passes once', async () => {
    const asked: Question[] = [];
    const caller = await connect({ form: {} }, async (question) => {
      asked.push(question);
      return { action: 'accept', content: { approve: true } };
    });
    for (const count of [1, 2]) {
      expect((await caller.write('by form')).text).toEqual(PASSED('by form'));
      expect([asked.length, writes('by form')]).toEqual([count, count]);
    }
    expect(asked[0]?.message).toContain('write_record');
    expect(asked[0]?.message).toContain('"two"');
  });
});

describe.each(SESSIONS)('%s', (name, connect) => {
  it('that declares links is given one by an error -32042, which the SDK reads', async () => {
    const id = `${name}, links`;
    const caller = await connect({ form: {}, url: {} }, askNobody);
    const linkOf = ({ code, elicitations }: Seen) => {
      expect(code).toBe(-32042);
      expect(elicitations).toMatchObject([{ mode: 'url', message: expect.stringContaining('approve') }]);
      return elicitations?.[0]?.url ?? '';
    };
    await passesOnce(caller, id, linkOf(await caller.write(id)), linkOf);
  });
});

describe('SDK v2 without sessions', () => {
  it('that declares links shows one, and its own repetition of the call passes after the yes', async () => {
    const links: string[] = [];
    const caller = await connectV2('2026')({ url: {} }, async ({ mode, url }) => {
      expect(mode).toBe('url');
      links.push(url);
      await answerAt(url, 'grant');
      return { action: 'accept' };
    });
    for (const count of [1, 2]) {
      expect((await caller.write('shown')).text).toEqual(PASSED('shown'));
      expect([links.length, writes('shown')]).toEqual([count, count]);
    }
    expect(new Set(links).size).toBe(2);
  });

  it.each<readonly ['accept' | 'decline' | 'cancel', string, string]>([
    ['accept', 'approval-required', 'It is still waiting.'],
    ['decline', 'approval-denied', ''],
    ['cancel', 'approval-denied', ''],
  ])('that says %s without a login is refused, and nothing is sent', async (action, reason, advice) => {
    const caller = await connectV2('2026')({ url: {} }, async () => ({ action }));
    const { text } = await caller.write(action);
    expect(text).toContain(reason);
    expect(text).toContain(advice);
    expect(writes(action)).toBe(0);
  });

  it('whose user refuses at the link is refused', async () => {
    const caller = await connectV2('2026')({ url: {} }, async ({ url }) => {
      await answerAt(url, 'deny');
      return { action: 'accept' };
    });
    expect((await caller.write('refused')).text).toContain('approval-denied');
    expect((await caller.write('refused')).text).toContain('approval-denied');
    expect(writes('refused')).toBe(0);
  });
});
