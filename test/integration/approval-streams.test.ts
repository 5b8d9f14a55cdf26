// Approvals and streams that break off: what is replayed on a resumed stream is no second use, what a server asks there is
// asked of people once, and a form whose stream breaks is still answered. Source: MCP 2025-11-25, transports (resumability
// and redelivery) and elicitation; docs/reference/approvals.md#what-passes-with-a-yes.

import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ADMINS, adminsOf } from '../support/deployments.js';
import { UPSTREAM } from '../support/gateway.js';
import { sseEvent, textResult } from '../support/hostile-acts.js';
import type { JsonObject } from '../support/json.js';
import { openRawSession, postRaw, type RawSession } from '../support/raw-mcp.js';
import { idsOf, isCall, PRIMING, resumeStream, streamed } from '../support/resumed-streams.js';
import { PATIENT } from '../support/timing.js';
import { listenOn } from '../support/wire-client.js';
import { sharedGateway } from '../support/with-gateway.js';

const POLICY = `version: 1
policy: open
rules:
  - {id: all, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: ["*"], elicitation: [form]}}
  - id: ask-reviewer
    effect: require
    who: {anyone: true}
    what: {upstreams: ["*"], tools: [write_record]}
    when: args.text == "by reviewer"
    approval: {by: reviewer}
  - id: ask-caller
    effect: require
    who: {anyone: true}
    what: {upstreams: ["*"], tools: [write_record]}
    when: args.text == "by form"
    approval: {by: caller, proof: client}
  - {id: ask-questions, effect: require, who: {anyone: true}, what: {upstreams: ["*"], elicitation: [form]}, approval: {by: reviewer}}
`;
const rig = sharedGateway({ policies: { open: POLICY }, more: ADMINS });

/** Every test has a caller of its own. */
let count = 0;
let caller = '';
let session: RawSession;
beforeEach(async () => {
  count += 1;
  caller = `caller-${count}`;
  const token = await rig.gateway.token(UPSTREAM, { sub: caller });
  session = await openRawSession(rig.access.url, { token, capabilities: { elicitation: { form: {} } } });
  rig.upstream.forget();
});
afterEach(() => {
  rig.upstream.repent();
});

const write = (text: string) => ({ name: 'write_record', arguments: { id: 'one', text } });
const ask = (text: string, id = 7) => session.ask(id, 'tools/call', write(text));
const resume = (id: string) => resumeStream(rig.access.url, session.headers, id);
const uses = (): number => rig.upstream.uses().length;
const ownAnswer: JsonObject = { jsonrpc: '2.0', id: 7, result: textResult('written') };

/** The upstream breaks the next call off behind a priming event, and replays this to whoever resumes. */
function breakAndReplay(messages: readonly JsonObject[]): void {
  rig.upstream.obey((request) => {
    if (isCall(request)) return streamed([PRIMING]);
    return request.headers['last-event-id'] === 'stream-1/0'
      ? streamed(messages.map((message, at) => sseEvent(message, `stream-1/${at + 1}`)))
      : undefined;
  });
}

/** How often each thing has happened to approvals of this caller. */
async function evidence(): Promise<readonly string[]> {
  const lines = (await rig.gateway.audit()).filter(
    (line) => line['type'].startsWith('approval.') && line['actor'].sub === caller,
  );
  return lines.map((line) => line['type'].slice('approval.'.length));
}

async function grantWaiting(): Promise<void> {
  const admins = adminsOf(rig.gateway);
  const token = await rig.gateway.issuer.mint('https://mcp.example.com/admin', {
    claims: { sub: 'rita', groups: ['leads'], auth_time: Math.floor(Date.now() / 1000) - 5 },
  });
  const { body } = await admins.ask('GET', '/api/approvals', { token });
  const own = body.callers.find((one: { caller: { subject: string } }) => one.caller.subject === caller);
  for (const { id } of own.approvals)
    expect((await admins.ask('POST', `/api/approvals/${id}/grant`, { token, body: {} })).status).toBe(200);
}

describe('[APR-60, Q-10] the result of an approved call', () => {
  it('is replayed as often as its stream is resumed, by one use of the yes', async () => {
    expect((await ask('by reviewer')).text).toContain('approval-required');
    await grantWaiting();
    breakAndReplay([ownAnswer]);
    const [id = ''] = idsOf((await ask('by reviewer')).text);
    for (const turn of [1, 2, 3]) expect([turn, (await resume(id)).messages]).toEqual([turn, [ownAnswer]]);
    expect(uses()).toBe(1);
    expect((await ask('by reviewer', 8)).text).toContain('approval-required');
    expect(uses()).toBe(1);
    await expect.poll(evidence).toEqual(['requested', 'granted', 'used', 'requested']);
  });
});

describe('[APR-60, Q-10] what a server asks on a resumed stream', () => {
  it('is put to a reviewer once, however often it is replayed, and passes once', async () => {
    const params = { mode: 'form', message: 'Which branch?', requestedSchema: { type: 'object', properties: {} } };
    breakAndReplay([{ jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params }, ownAnswer]);
    const [id = ''] = idsOf(
      (await session.ask(7, 'tools/call', { name: 'read_record', arguments: { id: 'one' } })).text,
    );
    for (const turn of [1, 2, 3]) expect([turn, (await resume(id)).messages]).toEqual([turn, [ownAnswer]]);
    await expect.poll(evidence).toEqual(['requested']);
    await grantWaiting();
    expect((await resume(id)).text).toContain('Which branch?');
    expect((await resume(id)).text).not.toContain('Which branch?');
    await expect.poll(evidence).toEqual(['requested', 'granted', 'used', 'requested']);
  });
});

/** A call that is held while its form is shown. */
async function hold() {
  const leave = new AbortController();
  const response = await fetch(rig.access.url, {
    method: 'POST',
    headers: { ...session.headers, 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params: write('by form') }),
    signal: leave.signal,
  });
  const stream = await listenOn(response);
  await expect.poll(() => stream.text(), PATIENT).toContain('elicitation/create');
  const { id } = JSON.parse(/^data: (.*elicitation\/create.*)$/m.exec(stream.text())?.[1] ?? '{}') as { id: string };
  const reply = { jsonrpc: '2.0', id, result: { action: 'accept', content: { approve: true } } };
  return {
    stream,
    leave: () => leave.abort(),
    answer: async () => (await postRaw(rig.access.url, reply, { headers: session.headers })).status,
  };
}

describe('[APR-60, Q-13] a call that is held for a form', () => {
  it('goes on with its yes on a stream that breaks off, is resumed there, and was sent once', async () => {
    breakAndReplay([ownAnswer]);
    const { stream, answer } = await hold();
    expect(await answer()).toBe(202);
    await expect.poll(() => stream.isOver(), PATIENT).toBe(true);
    const [id = ''] = idsOf(stream.text());
    for (const turn of [1, 2]) expect([turn, (await resume(id)).messages]).toEqual([turn, [ownAnswer]]);
    expect(uses()).toBe(1);
    await expect.poll(evidence).toEqual(['requested', 'granted', 'used']);
  });

  it('sends nothing when its stream breaks, and the form is answered all the same, for the call that is repeated', async () => {
    const { stream, leave, answer } = await hold();
    // What is held has begun no stream of its upstream, so that there is nothing behind which it could be resumed.
    expect(idsOf(stream.text())).toEqual([]);
    leave();
    const again = await ask('by form', 8);
    expect(again.text).toContain('It is still waiting.');
    expect(again.text).not.toContain('elicitation/create');
    expect(await answer()).toBe(202);
    expect(uses()).toBe(0);
    expect((await ask('by form', 9)).text).toContain('write_record one');
    expect(uses()).toBe(1);
    await expect.poll(evidence).toEqual(['requested', 'granted', 'used']);
    const next = await hold();
    expect(uses()).toBe(1);
    next.leave();
  });
});
