// Arrays of messages, in the one revision that has them: each element goes its own way.
// Source: MCP 2025-03-26, base protocol (batching) and transports.

import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ALLOW_ALL } from '../support/gateway.js';
import type { JsonObject } from '../support/json.js';
import { openRawSession, postRaw, type RawSession } from '../support/raw-mcp.js';
import { ALL_QUESTIONS, answersTo, askThenAnswer, grantQuestions } from '../support/sdk-clients.js';
import { makeGithubToken } from '../support/secrets.js';
import { PATIENT } from '../support/timing.js';
import { sharedGateway } from '../support/with-gateway.js';

const POLICY = `version: 1
policy: arrays
rules:
  - id: no-writing
    effect: deny
    who: {anyone: true}
    what: {tools: [write_record]}
  - id: scoped
    effect: require
    who: {anyone: true}
    what: {tools: [read_record]}
    limits: {rate: 100/min, per: subject}
`;

let session: RawSession;

const call = (id: number, name = 'read_record', args: JsonObject = { id: 'one' }) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args },
});

const rig = sharedGateway({
  policies: { open: ALLOW_ALL, arrays: POLICY, questions: grantQuestions() },
});
beforeAll(async () => {
  const { url, token = '' } = rig.access;
  session = await openRawSession(url, {
    token,
    version: '2025-03-26',
    capabilities: ALL_QUESTIONS,
  });
  rig.upstream.forget();
});
afterEach(() => {
  rig.upstream.repent();
  rig.upstream.forget();
});

const submit = (body: unknown, headers = session.headers) => postRaw(rig.access.url, body, { headers });

describe('[Q-14, MCP-31] an array', () => {
  it('is decided element by element: what is hidden in it is refused, the rest is answered', async () => {
    const ping = { jsonrpc: '2.0', id: 2, method: 'ping' };
    const secret = call(4, 'read_record', { id: makeGithubToken() });
    const answer = await submit([call(1), ping, call(3, 'write_record'), secret, call(5, 'wipe')]);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('text/event-stream');
    const byId = new Map(answer.messages.map((message) => [message.id, message]));
    expect(byId.get(1)).toMatchObject({ result: { content: [{ text: 'read_record one' }] } });
    expect(byId.get(2)).toMatchObject({ result: {} });
    expect(byId.get(3)).toMatchObject({
      error: { code: -32602, message: 'Unknown tool. Request the list again.' },
    });
    expect(byId.get(4)).toMatchObject({ result: { isError: true } });
    expect(byId.get(5)).toMatchObject({
      error: { code: -32602, message: 'Unknown tool. Request the list again.' },
    });
    expect(answer.messages).toHaveLength(5);
    // Each leaves alone, as the object that it is.
    expect(rig.upstream.seen().map(({ id }) => id)).toEqual([1, 2]);
  });

  it('is recorded element by element', async () => {
    await submit([call(11), call(12, 'write_record')]);
    const linesOf = async (id: number) =>
      (await rig.gateway.audit()).filter((line) => line['target']?.request_id === id);
    for (const [id, verdict, rule] of [
      [11, 'allow', 'all'],
      [12, 'deny', 'no-writing'],
    ] as const) {
      await expect.poll(async () => (await linesOf(id)).length, PATIENT).toBe(2);
      const lines = await linesOf(id);
      expect(lines.map((line) => line['type'])).toEqual(['mcp.decision', 'mcp.outcome']);
      for (const line of lines) expect(line['decision']).toMatchObject({ verdict, rule });
    }
  });

  it('of notifications alone is 202 without a body', async () => {
    const note = { jsonrpc: '2.0', method: 'notifications/initialized' };
    const answer = await submit([note, note]);
    expect([answer.status, answer.text]).toEqual([202, '']);
    expect(rig.upstream.seen()).toHaveLength(2);
  });

  it('of answers is taken apart too, and each needs an id of this session', async () => {
    rig.upstream.obey((request) =>
      request.method === 'tools/call'
        ? askThenAnswer(request, [
            { id: 'q1', method: 'roots/list' },
            { id: 'q2', method: 'roots/list' },
            { id: 'q3', method: 'roots/list' },
          ])
        : undefined,
    );
    const { messages } = await submit([call(1)]);
    const [one, two, three] = messages.filter(({ method }) => method === 'roots/list');
    const reply = (id: unknown) => ({ jsonrpc: '2.0', id, result: { roots: [] } });
    const good = await submit([reply(one.id), reply(two.id)]);
    expect([good.status, good.text]).toEqual([202, '']);
    expect([...answersTo(rig.upstream).keys()]).toEqual(['q1', 'q2']);
    expect((await submit([reply(three.id), reply('q2')])).status).toBe(400);
  });

  it.each([
    ['an empty one', []],
    ['one with initialize', [call(1), { jsonrpc: '2.0', id: 2, method: 'initialize' }]],
    ['one in another', [[call(1)]]],
    ['one id twice', [call(1), call(1)]],
  ])('is 400 whole, and reaches nobody: %s', async (_what, body) => {
    const answer = await submit(body);
    expect(answer.status).toBe(400);
    expect(answer.messages).toMatchObject([{ error: { code: -32600 } }]);
    expect(rig.upstream.seen()).toEqual([]);
  });

  it.each(['2025-06-18', '2025-11-25'])('is 400 in %s', async (version) => {
    const { url, token = '' } = rig.access;
    const other = await openRawSession(url, { token, version });
    rig.upstream.forget();
    expect((await submit([call(1)], other.headers)).status).toBe(400);
    expect(rig.upstream.seen()).toEqual([]);
  });
});
