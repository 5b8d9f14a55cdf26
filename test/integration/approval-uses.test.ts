// What a yes lifts beyond the request that it was given for, and what it leaves refused: one that is remembered, and one to
// a call that a flow would refuse.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ADMINS, adminsOf } from '../support/deployments.js';
import { decisionOf, UPSTREAM } from '../support/gateway.js';
import type { JsonObject } from '../support/json.js';
import { askThenAnswer } from '../support/sdk-clients.js';
import { PATIENT } from '../support/timing.js';
import {
  callStateless,
  openSession,
  post,
  type Reply,
  requestStateless,
  sessionHeaders,
} from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const policy = (reason: string) => `version: 1
policy: ask
labels: {${UPSTREAM}/write_record: [egress, trusted]}
rules:
  - {id: all, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: ["*"], resources: ["**"], elicitation: [form]}}
  - id: often
    effect: require
    who: {groups: [often]}
    what: {upstreams: ["*"], tools: [write_record, read_record]}
    approval: {by: caller, proof: client, remember: {for: 10m, same: [/id]}}
    reason: ${reason}
flows:
  - {id: leaves, from: untrusted, to: egress, within: 10m, effect: approve, approval: {by: reviewer}}
`;
const rig = sharedGateway({ policies: { ask: policy('It is for good.') }, more: ADMINS });
afterEach(() => rig.upstream.repent());

type Claims = Readonly<Record<string, unknown>>;
let caller = '';
let callers = 0;
beforeEach(() => {
  callers += 1;
  caller = `caller-${callers}`;
  rig.upstream.forget();
});

const WRITE: JsonObject = { id: 'x', text: 'y' };
const FORM = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: { form: {} } } };
const YES = { 'gw.approval': { action: 'accept', content: { approve: true } } };

const as = async (claims: Claims = {}) => rig.as(await rig.gateway.token(UPSTREAM, { sub: caller, ...claims }));

/** Passed, asked by a form, or the reason for which it was refused. */
function outcomeOf(reply: Reply): unknown {
  if (reply.text.includes('gw.approval')) return 'asked';
  return reply.text.includes('dev.sallyport/decision') ? decisionOf(reply).reason : 'passed';
}

/** The lines of the audit log about uses of a yes by this caller. */
async function usesOf(sub = caller) {
  return (await rig.gateway.audit()).filter((line) => line['type'] === 'approval.used' && line['actor'].sub === sub);
}

describe('[APR-60] a yes that is remembered', () => {
  const send = async (args: JsonObject, { claims = {}, tool = 'write_record', more = {} } = {}) =>
    outcomeOf(
      await requestStateless(await as({ groups: ['often'], ...claims }), 'tools/call', {
        ...{ name: tool, arguments: args, _meta: FORM },
        ...more,
      }),
    );

  beforeEach(async () => {
    expect(await send(WRITE)).toBe('asked');
    expect(await send(WRITE, { more: { inputResponses: YES } })).toBe('passed');
  });

  it.each<readonly [string, Parameters<typeof send>, string]>([
    ['other arguments beside those that have to be equal', [{ ...WRITE, text: 'other' }], 'passed'],
    ['the same arguments', [WRITE], 'passed'],
    ['another value of what has to be equal', [{ ...WRITE, id: 'X' }], 'asked'],
    ['a value of another type', [{ ...WRITE, id: 'x ' }], 'asked'],
    ['another client', [WRITE, { claims: { client_id: 'another' } }], 'asked'],
    ['an actor', [WRITE, { claims: { act: { sub: 'agent-7' } } }], 'asked'],
    ['another subject', [WRITE, { claims: { sub: 'somebody' } }], 'asked'],
    ['another tool', [{ id: 'x' }, { tool: 'read_record' }], 'asked'],
  ])('counts for %s or not', async (_, sent, outcome) => {
    expect(await send(...sent)).toBe(outcome);
  });

  it('counts again and again, each time with a line that names it, and not under another text of the rule', async () => {
    for (const text of ['1', '2']) expect(await send({ ...WRITE, text })).toBe('passed');
    await expect.poll(async () => (await usesOf()).length, PATIENT).toBe(3);
    const [first, ...again] = await usesOf();
    expect(again.map((line) => [line['approval'].id, line['approval'].remembered])).toEqual([
      [first?.['approval'].id, true],
      [first?.['approval'].id, true],
    ]);
    await rig.gateway.writePolicy('ask', policy('It is for ever.'));
    await rig.gateway.reload();
    expect(await send({ ...WRITE, text: '3' })).toBe('asked');
  });
});

describe('[APR-60] a yes to a call that a flow would refuse', () => {
  const read = async () => callStateless(await as(), 'read_record', { id: 'one' });
  const write = async () => callStateless(await as(), 'write_record', WRITE);

  async function approve(reply: Reply): Promise<void> {
    const id = /Approval ([\w-]{16,})/.exec(reply.text)?.[1] ?? '';
    const claims = { sub: 'rita', groups: ['leads'], auth_time: Math.floor(Date.now() / 1000) - 5 };
    const token = await rig.gateway.token(UPSTREAM, { aud: 'https://mcp.example.com/admin', ...claims });
    const answered = await adminsOf(rig.gateway).ask('POST', `/api/approvals/${id}/grant`, { token, body: {} });
    expect(answered.status).toBe(200);
  }

  it('lifts it once, and the caller has still received what it received', async () => {
    await read();
    const asked = await write();
    expect(outcomeOf(asked)).toBe('approval-required');
    await approve(asked);
    expect([outcomeOf(await write()), outcomeOf(await write())]).toEqual(['passed', 'approval-required']);
    expect(outcomeOf(await callStateless(await as(), 'write_record', { ...WRITE, text: 'z' }))).toBe(
      'approval-required',
    );
  });

  it('does not lift it for the reply to what the server asks meanwhile', async () => {
    await read();
    await approve(await write());
    const FORM_REQUEST = { message: 'x', requestedSchema: { type: 'object', properties: {} } };
    rig.upstream.obey((request) =>
      request.method === 'tools/call'
        ? askThenAnswer(request, [{ id: 'q', method: 'elicitation/create', params: FORM_REQUEST }], 1)
        : undefined,
    );
    const access = await as();
    const session = await openSession(access, { elicitation: {} });
    const { messages } = await session.call('write_record', WRITE);
    const asked = messages.find((message) => message['method'] === 'elicitation/create');
    expect(asked).toBeDefined();
    const reply = { jsonrpc: '2.0', id: asked?.['id'] ?? null, result: { action: 'accept', content: {} } };
    const refused = await post(access, JSON.stringify(reply), sessionHeaders(session.id));
    expect(refused.text).toContain('tainted-flow');
    const sent = rig.upstream.seen().map(({ message }) => JSON.stringify(message));
    expect(sent.filter((text) => text.includes('"action":"accept"'))).toEqual([]);
  });
});
