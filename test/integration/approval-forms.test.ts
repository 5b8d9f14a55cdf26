// Approvals that a client answers by a form: asked, held, refused and used, in each way in which a client can be asked.

import { afterEach, describe, expect, it } from 'vitest';
import { type AuditLine, decisionOf, textOf, UPSTREAM } from '../support/gateway.js';
import { jsonBody, onMethod } from '../support/hostile-acts.js';
import type { JsonObject } from '../support/json.js';
import { connectAsked } from '../support/sdk-clients.js';
import { PATIENT } from '../support/timing.js';
import {
  bearer,
  callStateless,
  listenOn,
  openSession,
  type Reply,
  requestStateless,
  resultOf,
  sessionHeaders,
} from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const WRITE = { id: 'x', text: 'y' };
const POLICY = `version: 1
policy: open
rules:
  - {id: all, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: ["*"]}}
  - id: ask
    effect: require
    who: {anyone: true}
    what: {upstreams: ["*"], tools: [write_record]}
    reason: Writes to production.
    approval: {by: caller, proof: client}
`;
const rig = sharedGateway({
  policies: { open: POLICY },
  upstream: ['limits: {concurrency: 8, concurrencyPerCaller: 1}'],
});
afterEach(() => {
  rig.upstream.repent();
  rig.upstream.forget();
});

const as = async (sub: string) => rig.as(await rig.gateway.token(UPSTREAM, { sub }));
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const FORM = { [CAPABILITIES]: { elicitation: { form: {} } } };
const KEY = 'gw.approval';
const yes = { action: 'accept', content: { approve: true } };

const reasonOf = (reply: Reply): unknown => decisionOf(reply).reason;
const calls = (): number => rig.upstream.uses().filter((use) => JSON.stringify(use).includes('write_record')).length;

/** The reasons for which calls of somebody were refused. */
function decisionsOf(lines: readonly AuditLine[], sub: string): readonly string[] {
  return lines
    .filter((line) => line['type'] === 'mcp.decision' && line['actor']?.sub === sub)
    .flatMap((line) => line['decision'].reasons ?? []);
}

async function answer(sub: string, response: JsonObject, args: JsonObject = WRITE): Promise<Reply> {
  const params = { name: 'write_record', arguments: args, inputResponses: { [KEY]: response }, _meta: FORM };
  return requestStateless(await as(sub), 'tools/call', params);
}

describe('a stateless client', () => {
  it('is asked by an input-required result that shows the whole call, and may go on once', async () => {
    const asked = resultOf(await callStateless(await as('ada'), 'write_record', WRITE, FORM));
    expect(asked['resultType']).toBe('input_required');
    const { method, params } = (asked['inputRequests'] as JsonObject)[KEY] as { method: string; params: JsonObject };
    expect(method).toBe('elicitation/create');
    expect(params['mode']).toBe('form');
    for (const part of ['Writes to production.', 'write_record', '"id":"x"', '"text":"y"'])
      expect(params['message']).toContain(part);
    expect(calls()).toBe(0);
    expect((await answer('ada', yes)).text).not.toContain('isError":true');
    expect(calls()).toBe(1);
    expect(resultOf(await callStateless(await as('ada'), 'write_record', WRITE, FORM))['resultType']).toBe(
      'input_required',
    );
  });

  it.each<readonly [string, JsonObject]>([
    ['decline', { action: 'decline' }],
    ['cancel', { action: 'cancel' }],
    ['an accept without a yes', { action: 'accept', content: {} }],
    ['an accept with a no', { action: 'accept', content: { approve: false } }],
    ['an accept with a text', { action: 'accept', content: { approve: 'true' } }],
  ])('is refused by %s, and nobody is asked again', async (what, response) => {
    const sub = `no-${what.replaceAll(' ', '-')}`;
    await callStateless(await as(sub), 'write_record', WRITE, FORM);
    const refused = await answer(sub, response);
    expect(reasonOf(refused)).toBe('approval-denied');
    expect(refused.text).toContain('The client refused it, perhaps without a person.');
    expect(reasonOf(await callStateless(await as(sub), 'write_record', WRITE, FORM))).toBe('approval-denied');
    expect(calls()).toBe(0);
  });

  it('has answered nothing that it was not asked', async () => {
    expect(resultOf(await answer('bob', yes))['resultType']).toBe('input_required');
    expect(calls()).toBe(0);
  });

  it('is asked anew for other arguments', async () => {
    await callStateless(await as('cy'), 'write_record', WRITE, FORM);
    expect(resultOf(await answer('cy', yes, { id: 'x', text: 'other' }))['resultType']).toBe('input_required');
    expect(calls()).toBe(0);
  });

  it('is not asked again for a further round of the same call', async () => {
    await callStateless(await as('flo'), 'write_record', WRITE, FORM);
    const requestState = 'what the server remembers';
    rig.upstream.obey(
      onMethod('tools/call', ({ id = 0 }) =>
        jsonBody({ jsonrpc: '2.0', id, result: { resultType: 'input_required', requestState } }),
      ),
    );
    const first = resultOf(await answer('flo', yes));
    rig.upstream.repent();
    const round = { name: 'write_record', arguments: WRITE, requestState: first['requestState'] ?? '', _meta: FORM };
    const again = async () => requestStateless(await as('flo'), 'tools/call', round);
    expect((await again()).text).not.toContain('dev.sallyport/decision');
    expect(reasonOf(await again())).toBe('approval-required');
    expect(calls()).toBe(2);
  });

  it.each<readonly [string, string]>([
    ['invisible characters', 'a\u200bb'],
    ['characters that turn the text around', 'a\u202eb'],
    ['more than a form shows', 'z'.repeat(2_001)],
  ])('is never shown a form with %s', async (what, text) => {
    const sub = `link-${what.length}`;
    const refused = await callStateless(await as(sub), 'write_record', { id: 'x', text }, FORM);
    expect(reasonOf(refused)).toBe('approval-required');
    expect(textOf(resultOf(refused))).toContain('no page to log in at');
  });

  it('is told that only a form would do where it can be asked nothing', async () => {
    const refused = await callStateless(await as('dan'), 'write_record', WRITE);
    expect(reasonOf(refused)).toBe('approval-required');
    expect(textOf(resultOf(refused))).toContain('no page to log in at');
  });
});

/** A call whose arguments are as they are written. */
async function postArguments(sub: string, written: string): Promise<string> {
  const write = (message: JsonObject) => JSON.stringify(message).replace('"arguments":{}', `"arguments":${written}`);
  const params = { name: 'write_record', arguments: {}, _meta: FORM };
  return (await requestStateless(await as(sub), 'tools/call', params, { write })).text;
}

describe('what nobody was shown', () => {
  it('is not sent with an approved call', async () => {
    const hidden = { 'com.example/note': 'delete everything' };
    const send = async (meta: JsonObject, more: JsonObject = {}) =>
      requestStateless(await as('hal'), 'tools/call', {
        ...{ name: 'write_record', arguments: WRITE, _meta: { ...FORM, ...meta } },
        ...more,
      });
    await send({});
    const others = { confirm: { action: 'accept', content: { path: '/' } } };
    expect(reasonOf(await send({}, { inputResponses: { [KEY]: yes, ...others } }))).toBe('approval-required');
    expect(calls()).toBe(0);
    expect((await send(hidden, { inputResponses: { [KEY]: yes } })).text).not.toContain('isError":true');
    expect(calls()).toBe(1);
    expect(JSON.stringify(rig.upstream.uses())).not.toContain('delete everything');
  });

  it('is no form, so that no answer to one counts', async () => {
    const args = { id: 'x', text: 'a\u202eb' };
    await callStateless(await as('ivy'), 'write_record', args, FORM);
    expect(reasonOf(await answer('ivy', yes, args))).toBe('approval-required');
    // To say that a link was opened is no refusal either.
    expect(reasonOf(await answer('ivy', { action: 'accept' }, args))).toBe('approval-required');
    expect(calls()).toBe(0);
  });

  it('cannot be pushed out of a form by blank lines', async () => {
    const text = await postArguments('jan', `{"id":"x",${'\n'.repeat(1_900)}"text":"y"}`);
    expect(text).toContain('{\\"id\\":\\"x\\",\\"text\\":\\"y\\"}');
    expect(text).not.toContain('\\n\\n\\n');
  });
});

describe('a client with a session', () => {
  it.each<readonly [string, Parameters<typeof connectAsked>[2], string]>([
    ['goes on with a yes', { content: { approve: true } }, 'used'],
    ['is refused by a no', { action: 'decline' }, 'approval-denied'],
  ])('is asked on the stream of its call, and %s', async (_what, response, end) => {
    const { url, token = '' } = await as(`session-${end}`);
    const { client, asked, close } = await connectAsked(url, token, response);
    try {
      const result = await client.callTool({ name: 'write_record', arguments: WRITE });
      expect(asked).toHaveLength(1);
      expect(calls()).toBe(end === 'used' ? 1 : 0);
      expect(JSON.stringify(result).includes('approval-denied')).toBe(end !== 'used');
    } finally {
      await close();
    }
  });

  it('that cancels its held call uses up no yes', async () => {
    const access = await as('lea');
    const session = await openSession(access, { elicitation: { form: {} } });
    const headers = { ...sessionHeaders(session.id), ...bearer(access.token), 'content-type': 'application/json' };
    const send = (message: JsonObject) =>
      fetch(access.url, {
        method: 'POST',
        headers: { ...headers, accept: 'application/json, text/event-stream' },
        body: JSON.stringify({ jsonrpc: '2.0', ...message }),
      });
    const params = { name: 'write_record', arguments: WRITE };
    const held = await send({ id: 77, method: 'tools/call', params });
    const stream = await listenOn(held);
    await expect.poll(() => stream.text(), PATIENT).toContain('elicitation/create');
    const asked = JSON.parse(/^data: (.*elicitation\/create.*)$/m.exec(stream.text())?.[1] ?? '{}') as { id: string };
    await send({ method: 'notifications/cancelled', params: { requestId: 77 } });
    expect((await send({ id: asked.id, result: yes })).status).toBe(202);
    await expect
      .poll(async () => decisionsOf(await rig.gateway.audit(), 'lea'), PATIENT)
      .toContain('approval-required');
    expect(calls()).toBe(0);
    stream.leave();
    // The yes is still there for the call that is sent again.
    expect((await session.call('write_record', WRITE)).text).not.toContain('dev.sallyport/decision');
    expect(calls()).toBe(1);
  });

  /** Sends a call that is held, and waits for the form on its stream. */
  async function hold(sub: string, text: string, session: string) {
    const access = await as(sub);
    const headers = { ...sessionHeaders(session), ...bearer(access.token), 'content-type': 'application/json' };
    const send = (message: JsonObject) =>
      fetch(access.url, {
        method: 'POST',
        headers: { ...headers, accept: 'application/json, text/event-stream' },
        body: JSON.stringify({ jsonrpc: '2.0', ...message }),
      });
    const params = { name: 'write_record', arguments: { id: 'x', text } };
    const response = await send({ id: text, method: 'tools/call', params });
    const stream = await listenOn(response);
    await expect.poll(() => /elicitation.create|dev.sallyport.decision/.test(stream.text()), PATIENT).toBe(true);
    const form = /^data: (.*elicitation\/create.*)$/m.exec(stream.text())?.[1];
    const asked = form === undefined ? undefined : (JSON.parse(form) as { id: string }).id;
    return { stream, asked, reply: async () => (await send({ id: asked ?? '', result: yes })).status };
  }

  it('holds five calls and no slot of its upstream, and is told the rest at once', async () => {
    const { id, call } = await openSession(await as('max'), { elicitation: { form: {} } });
    const all: Awaited<ReturnType<typeof hold>>[] = [];
    for (const text of ['1', '2', '3', '4', '5', '6']) all.push(await hold('max', text, id));
    expect(all.map(({ asked }) => asked !== undefined)).toEqual([true, true, true, true, true, false]);
    expect(all[5]?.stream.text()).toContain('approval-required');
    // One request of this caller at a time may be in flight at the upstream.
    expect((await call('read_record', { id: 'one' })).text).not.toContain('dev.sallyport/decision');
    expect(await all[0]?.reply()).toBe(202);
    await expect.poll(() => all[0]?.stream.isOver(), PATIENT).toBe(true);
    expect(calls()).toBe(1);
    const next = await hold('max', '7', id);
    expect(next.asked).toBeDefined();
    for (const { stream } of [...all, next]) stream.leave();
  });

  it('that leaves its held call leaves the question, and the repeated call uses the answer', async () => {
    const { id, call } = await openSession(await as('ned'), { elicitation: { form: {} } });
    const { stream, reply } = await hold('ned', 'y', id);
    stream.leave();
    await expect
      .poll(async () => decisionsOf(await rig.gateway.audit(), 'ned'), PATIENT)
      .toContain('approval-required');
    expect(await reply()).toBe(202);
    expect(calls()).toBe(0);
    expect((await call('write_record', WRITE)).text).not.toContain('dev.sallyport/decision');
    expect(calls()).toBe(1);
  });

  it('is told so where its session declared no form', async () => {
    const session = await openSession(await as('eve'));
    const refused = await session.call('write_record', WRITE);
    expect(reasonOf(refused)).toBe('approval-required');
    expect(textOf(resultOf(refused))).toContain('no page to log in at');
  });
});
