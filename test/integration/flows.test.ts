// Flows through the running gateway: what a caller may not do for a while after what it has received, whichever way it
// was received.

import { afterEach, describe, expect, it } from 'vitest';
import {
  LONG_ANSWERS,
  messagesOf,
  openSessionStreams,
  openStatelessStreams,
  startMergedRig,
  streamOf,
} from '../support/deployments.js';
import { decisionOf, expectRefusedLines, linesOf, textOf, UPSTREAM } from '../support/gateway.js';
import { jsonBody, onMethod, stream } from '../support/hostile-acts.js';
import { openChannelCaller } from '../support/http-sse-clients.js';
import type { JsonObject } from '../support/json.js';
import { answersTo, askThenAnswer, grantQuestions } from '../support/sdk-clients.js';
import {
  type Access,
  callStateless,
  openSession,
  post,
  type Reply,
  requestStateless,
  resultOf,
  sessionHeaders,
  toolNames,
} from '../support/wire-client.js';
import { sharedGateway, withGateway, withStarted } from '../support/with-gateway.js';

const READ = { id: 'one' };
const WRITE = { id: 'x', text: 'y' };
const policyOf = (more: string): string => `version: 1
policy: open
rules:
  - {id: all, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: ["*"], resources: ["**"]}}
${more}`;
const NO_LEAK = `labels: {${UPSTREAM}/write_record: [egress, trusted]}
flows: [{id: no-leak, from: untrusted, to: egress, within: 10m, effect: deny}]
`;

const rig = sharedGateway({ policies: { open: policyOf(NO_LEAK), questions: grantQuestions() } });
afterEach(() => rig.upstream.repent());

/** Tokens outlive the time that a test lets pass. */
const as = async (sub: string, more = {}) => {
  const exp = Math.floor(Date.now() / 1000) + 3_000;
  return rig.as(await rig.gateway.token(UPSTREAM, { sub, exp, ...more }));
};
const read = async (sub: string, more = {}) => callStateless(await as(sub, more), 'read_record', READ);
const write = async (sub: string, more = {}) => callStateless(await as(sub, more), 'write_record', WRITE);

function reasonOf(reply: Reply): unknown {
  return decisionOf(reply).reason;
}

async function expectTainted(reply: Reply, ...causes: readonly Reply[]): Promise<void> {
  expect(reply.status).toBe(200);
  expect(reasonOf(reply)).toBe('tainted-flow');
  const lines = await expectRefusedLines(rig, reply, 'tainted-flow');
  const ids = [];
  for (const cause of causes) ids.push(await idOf(cause));
  expect(lines[0]?.['decision']).toMatchObject({ policy: 'open', rule: 'no-leak', causes: ids });
  for (const id of ids) expect(textOf(resultOf(reply))).toContain(id);
}

/** The decision behind a result that was delivered: the one with its request id. */
async function idOf(reply: Reply): Promise<string> {
  const digest = async () =>
    (await rig.gateway.audit()).findLast(
      (line) => line['type'] === 'mcp.outcome' && line['target']?.name === 'read_record',
    )?.['decision'].id;
  expect(reply.status).toBe(200);
  await expect.poll(digest).toBeDefined();
  return digest();
}

describe('a flow', () => {
  it('[FL-01, FL-06] refuses the sink after a result, names its decision, and lists stay', async () => {
    expect((await write('ada')).text).not.toContain('isError":true');
    const before = toolNames(await requestStateless(await as('ada'), 'tools/list'));
    const source = await read('ada');
    rig.upstream.forget();
    await expectTainted(await write('ada'), source);
    expect(rig.upstream.uses()).toEqual([]);
    expect(toolNames(await requestStateless(await as('ada'), 'tools/list'))).toEqual(before);
    expect(await rig.gateway.metrics()).toMatch(
      /sallyport_denials_total\{upstream="target",stage="settle",reason="tainted-flow",mode="enforce"\} 1/,
    );
  });

  it('[FL-03] holds for every client and session of the subject, and for nobody else', async () => {
    const session = await openSession(await as('bob', { client_id: 'ide' }));
    expect((await session.call('read_record', READ)).status).toBe(200);
    const refused = await write('bob', { client_id: 'chat' });
    expect(reasonOf(refused)).toBe('tainted-flow');
    expect(reasonOf(await session.call('write_record', WRITE))).toBe('tainted-flow');
    expect((await write('carol')).text).not.toContain('tainted-flow');
  });

  it('[FL-04] follows the actor chain', async () => {
    const act = { sub: 'agent' };
    await read('dora', { act });
    expect(reasonOf(await write('dora'))).toBe('tainted-flow');
    expect(reasonOf(await write('agent'))).toBe('tainted-flow');
    expect((await write('emil', { act })).text).not.toContain('tainted-flow');
  });

  it('[FL-01] begins with an error of the upstream', async () => {
    rig.upstream.obey(
      onMethod('tools/call', ({ id = 0 }) =>
        jsonBody({ jsonrpc: '2.0', id, error: { code: -32000, message: 'do as I say' } }),
      ),
    );
    expect((await read('fred')).text).toContain('do as I say');
    rig.upstream.repent();
    expect(reasonOf(await write('fred'))).toBe('tainted-flow');
  });

  it('[FL-01] begins with an error of the upstream instead of a list', async () => {
    rig.upstream.obey(
      onMethod('prompts/list', ({ id = 0 }) =>
        jsonBody({ jsonrpc: '2.0', id, error: { code: -32000, message: 'do as I say' } }),
      ),
    );
    const list = await requestStateless(await as('frida'), 'prompts/list');
    expect(list.text).toContain('do as I say');
    rig.upstream.repent();
    expect(reasonOf(await write('frida'))).toBe('tainted-flow');
  });

  it('[FL-01] begins with the first message of a stream, in a session too', async () => {
    rig.upstream.obey(LONG_ANSWERS);
    const [answer] = await openStatelessStreams(await as('greta'));
    const { streams } = await openSessionStreams(await as('hugo'));
    await expect.poll(() => `${answer?.text()}`).toContain('working');
    await expect.poll(() => `${streams[1]?.text()}`).toContain('working');
    for (const subject of ['greta', 'hugo']) expect(reasonOf(await write(subject))).toBe('tainted-flow');
    for (const stream of [answer, ...streams]) stream?.leave();
  });

  it('[FL-01] begins with what a server sends unasked, but not with a changed list', async () => {
    const open = async (subject: string, method: string, params: JsonObject) => {
      rig.upstream.obey(({ httpMethod }) =>
        httpMethod === 'GET' ? stream([{ jsonrpc: '2.0', method, params }], 'hold') : undefined,
      );
      const { streams } = await openSessionStreams(await as(subject), 'write_record');
      await expect.poll(() => `${streams[0]?.text()}`).toContain(method);
      const refused = await write(subject);
      for (const each of streams) each.leave();
      return refused.text;
    };
    const log = { level: 'info', data: 'do as I say' };
    expect(await open('ines', 'notifications/message', log)).toContain('"tainted-flow"');
    expect(await open('jana', 'notifications/tools/list_changed', {})).not.toContain('tainted-flow');
  });

  it('[FL-01] begins with results on a channel of HTTP+SSE', () =>
    withGateway(
      {
        policies: { open: policyOf(NO_LEAK) },
        behindChannels: true,
      },
      async (channels) => {
        const caller = await openChannelCaller(channels.access);
        const call = (name: string, args: JsonObject) => caller.request('tools/call', { name, arguments: args });
        expect((await call('write_record', WRITE)).text).not.toContain('tainted-flow');
        expect((await call('read_record', READ)).text).toContain('result');
        expect((await call('write_record', WRITE)).text).toContain('"tainted-flow"');
        caller.channel.leave();
      },
    ));

  it('[FL-01] is not begun by a list or by what is withheld, and not by a trusted result', async () => {
    await requestStateless(await as('gina'), 'tools/list');
    await callStateless(await as('gina'), 'no_such_tool', {});
    for (let count = 0; count < 3; count += 1) expect((await write('gina')).text).not.toContain('tainted-flow');
  });

  it('[FL-01] ends when its time is over', async () => {
    await read('hank');
    expect(reasonOf(await write('hank'))).toBe('tainted-flow');
    rig.passTime(10 * 60_000 + 2_000);
    expect(textOf(resultOf(await write('hank')))).toBe('write_record x');
  });

  it('[FL-01] is in force after a reload, for what was received after it', () =>
    withGateway({ policies: { open: policyOf('') } }, async (other) => {
      const at = other.as(await other.gateway.token(UPSTREAM, { sub: 'ida' }));
      await callStateless(at, 'read_record', READ);
      await other.gateway.writePolicy('open', policyOf(NO_LEAK));
      expect(await other.gateway.reload()).toEqual([]);
      expect((await callStateless(at, 'write_record', WRITE)).text).not.toContain('tainted-flow');
      await callStateless(at, 'read_record', READ);
      expect(reasonOf(await callStateless(at, 'write_record', WRITE))).toBe('tainted-flow');
    }));
});

describe('a reply to a server request', () => {
  const FORM = {
    method: 'elicitation/create',
    params: { message: 'x', requestedSchema: { type: 'object', properties: {} } },
  };
  const REPLIES = {
    'elicitation/create': { action: 'accept', content: {} },
    'roots/list': { roots: [] },
  };
  const CAPABILITIES = { elicitation: {}, roots: {} };
  /** The message that the upstream got in reply. */
  const got = (id: string) => answersTo(rig.upstream).get(id);

  /** Posts the reply to the first of these requests. */
  async function reply(at: Access, session: string, messages: readonly JsonObject[]) {
    const request = messages.find((message) => 'method' in message && 'id' in message);
    const method = request?.['method'] as keyof typeof REPLIES;
    const body = { jsonrpc: '2.0', id: request?.['id'] ?? null, result: REPLIES[method] };
    return post(at, JSON.stringify(body), sessionHeaders(session));
  }

  async function during(subject: string, tool: string, args: JsonObject): Promise<Reply> {
    rig.upstream.obey((request) =>
      request.method === 'tools/call' ? askThenAnswer(request, [{ id: `of ${subject}`, ...FORM }], 1) : undefined,
    );
    const at = await as(subject);
    const { id, call } = await openSession(at, CAPABILITIES);
    const { messages } = await call(tool, args);
    rig.upstream.repent();
    await read(subject);
    return reply(at, id, messages);
  }

  it('[FL-01] of a sink is refused like its call, and the server hears that none will come', async () => {
    const refused = await during('kim', 'write_record', WRITE);
    await expectRefusedLines(rig, refused, 'tainted-flow');
    await expect.poll(() => got('of kim')).toMatchObject({ error: { code: -32603 } });
  });

  it('[FL-01] of another tool passes', async () => {
    expect((await during('lars', 'read_record', READ)).status).toBe(202);
    expect(got('of lars')).toMatchObject({ result: REPLIES['elicitation/create'] });
  });

  it('[FL-01] on the stream of a session may be one of a sink, but roots repeat nothing', async () => {
    const send = async (subject: string, request: JsonObject) => {
      rig.upstream.obey(({ httpMethod }) =>
        httpMethod === 'GET' ? stream([{ jsonrpc: '2.0', id: subject, ...request }], 'hold') : undefined,
      );
      const at = await as(subject);
      const { id } = await openSession(at, CAPABILITIES);
      const listening = await streamOf(at, id);
      await expect.poll(() => listening.text()).toContain(`${request['method']}`);
      await read(subject);
      const sent = await reply(at, id, messagesOf(listening));
      listening.leave();
      return sent;
    };
    expect((await send('mona', { method: 'roots/list' })).status).toBe(202);
    await expectRefusedLines(rig, await send('nils', FORM), 'tainted-flow');
    expect(got('nils')).not.toHaveProperty('result');
  });
});

describe('a flow over several upstreams', () => {
  it('[FL-03] needs each of its labels, and holds at the endpoint of all and at their own paths', async () => {
    const policy = policyOf(`labels:
  left/read_record: [sensitive, trusted]
  right/read_record: [untrusted]
  "*/write_record": [egress]
`).replace('"*/write_record"', 'left/write_record');
    await withStarted(
      () =>
        startMergedRig({
          policies: {
            open: `${policy}flows: [{id: no-leak, from: [sensitive, untrusted], to: egress, effect: deny}]\n`,
          },
        }),
      async (merged) => {
        const { gateway, access } = merged;
        const own = async (upstream: string) => ({
          url: gateway.url(upstream),
          token: await gateway.token(upstream),
        });
        const post = () => callStateless(access, 'l_write_record', WRITE);
        await callStateless(await own('left'), 'read_record', READ);
        await callStateless(access, 'l_read_record', READ);
        expect((await post()).text).not.toContain('tainted-flow');
        const source = await callStateless(access, 'right_read_record', READ);
        expect(source.status).toBe(200);
        const refused = await post();
        expect(reasonOf(refused)).toBe('tainted-flow');
        const [line] = await linesOf(gateway, decisionOf(refused).id, 1);
        expect(line?.['decision'].causes).toHaveLength(2);
        const atOwn = await callStateless(await own('left'), 'write_record', WRITE);
        expect(reasonOf(atOwn)).toBe('tainted-flow');
      },
    );
  });
});
