// What a caller could use when it began something may be switched off before it is over. What the caller then says on
// its account reaches the server no more: the reply to what the server asked during a call, as the retry of the stateless
// era, and the resources that a session has subscribed to. Source: docs/reference/policies.md; docs/reference/state.md.

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  ADMINS,
  type Admins,
  adminsOf,
  askInStream,
  ENDPOINT,
  messagesOf,
  openAt,
  startMergedRig,
  streamOf,
} from '../support/deployments.js';

import { ALLOW_ALL, type RunningGateway, startRig, UPSTREAM } from '../support/gateway.js';
import { onMethod, sseEvent } from '../support/hostile-acts.js';
import type { HostileUpstream, Order } from '../support/hostile-upstream.js';
import type { JsonObject } from '../support/json.js';
import { postRaw } from '../support/raw-mcp.js';
import { ALL_QUESTIONS, FORM_QUESTION, grantQuestions } from '../support/sdk-clients.js';
import { PATIENT } from '../support/timing.js';
import { type Access, bearer, openSession, sessionHeaders } from '../support/wire-client.js';
import { withGateway } from '../support/with-gateway.js';

const RESOURCE = { target: 'resource', name: 'memo://one' };
const POLICIES = { open: ALLOW_ALL, questions: grantQuestions() };
const ANSWER = 'the answer of the user';

type Placed = {
  readonly gateway: RunningGateway;
  readonly upstream: HostileUpstream;
  readonly name: string;
  /** How the names of the upstream begin there. */
  readonly prefix: string;
  readonly access: Access;
  close(): Promise<void>;
};

async function alone(): Promise<Placed> {
  const rig = await startRig({ policies: POLICIES, more: ADMINS });
  return { ...rig, name: UPSTREAM, prefix: '' };
}

async function atEndpoint(): Promise<Placed> {
  const rig = await startMergedRig({ policies: POLICIES, more: ADMINS });
  const { left: upstream } = rig;
  return { ...rig, upstream, name: 'left', prefix: 'l_', close: rig.close };
}

/** Asks in the middle of the request, which is never answered. */
function requestingInput(method: string): Order {
  const question = sseEvent({ jsonrpc: '2.0', id: 'q', ...FORM_QUESTION });
  return onMethod(method, () => ({
    kind: 'chunks',
    contentType: 'text/event-stream',
    chunks: [question],
    ending: 'hold',
  }));
}

async function lift(admins: Admins): Promise<void> {
  const token = await admins.token('platform');
  const { body } = await admins.ask('GET', '/api/revocations', { token });
  for (const { id } of body.revocations) await admins.ask('DELETE', `/api/revocations/${id}`, { token });
}

describe.each([
  ['an upstream', alone],
  [`a backend of the endpoint ${ENDPOINT}`, atEndpoint],
])('the reply to what a server asked, at %s,', (_where, start) => {
  let placed: Placed;
  let admins: Admins;
  beforeAll(async () => {
    placed = await start();
    admins = adminsOf(placed.gateway);
  });
  afterEach(async () => {
    await lift(admins);
    await placed.gateway.writePolicy('deny', 'version: 1\npolicy: deny\nrules: []\n');
    await placed.gateway.reload();
    placed.upstream.repent();
  });
  afterAll(() => placed.close());

  const CALL = (): JsonObject => ({
    name: `${placed.prefix}read_record`,
    arguments: { id: 'one' },
  });
  const READ = (): JsonObject => ({ uri: 'memo://one' });
  const block = async (what: JsonObject): Promise<void> => {
    const { status } = await admins.revoke({ block: { upstream: placed.name, ...what } });
    expect(status).toBe(201);
  };
  const deny = async (what: string): Promise<void> => {
    const rule = `{id: d, effect: deny, who: {anyone: true}, what: {upstreams: ["*"], ${what}}}`;
    await placed.gateway.writePolicy('deny', `version: 1\npolicy: deny\nrules: [${rule}]\n`);
    await placed.gateway.reload();
  };

  async function replyAfter(
    method: string,
    params: JsonObject,
    change: () => Promise<void>,
  ): Promise<{ readonly status: number; readonly received: string }> {
    const { access, upstream } = placed;
    upstream.obey(requestingInput(method));
    const session = await openAt(access, ALL_QUESTIONS);
    const stream = await askInStream(access, session, { id: 5, method, params });
    await expect.poll(() => stream.text(), PATIENT).toContain(FORM_QUESTION.method);
    const [question] = messagesOf(stream);
    await change();
    upstream.forget();
    const headers = { ...bearer(access.token), ...sessionHeaders(session) };
    const result = { action: 'accept', content: { person: ANSWER } };
    const reply = { jsonrpc: '2.0', id: question?.['id'], result };
    const { status } = await postRaw(access.url, reply, { headers });
    stream.leave();
    await expect.poll(() => upstream.seen().length, PATIENT).toBeGreaterThan(0);
    return { status, received: JSON.stringify(upstream.seen().map(({ body }) => body)) };
  }

  it('reaches it while the caller may call the tool', async () => {
    const { status, received } = await replyAfter('tools/call', CALL(), async () => undefined);
    expect([status, received.includes(ANSWER)]).toEqual([202, true]);
  });

  const rows: readonly (readonly [string, string, () => JsonObject, () => Promise<void>])[] = [
    ['a tool is blocked', 'tools/call', CALL, () => block({ target: 'tool', name: 'read_record' })],
    ['a tool is denied', 'tools/call', CALL, () => deny('tools: [read_record]')],
    ['a resource is blocked', 'resources/read', READ, () => block(RESOURCE)],
    ['a resource is denied', 'resources/read', READ, () => deny('resources: ["memo://one"]')],
  ];
  // Which of several backends serves a resource is not known here.
  const met = rows.filter(([, method]) => start === alone || method === 'tools/call');

  it.each(met)('does not once %s, and the server learns that there is none', async (...row) => {
    const [, method, params, change] = row;
    const { status, received } = await replyAfter(method, params(), change);
    expect(status).toBe(400);
    expect(received).not.toContain(ANSWER);
  });
});

describe('a resource that a session has subscribed to', () => {
  it('is not named to a server without sessions once the caller may not read it', () =>
    withGateway({ era: 'stateless', policies: POLICIES }, async (rig) => {
      const deny = (rules: string): Promise<void> =>
        rig.gateway.writePolicy('deny', `version: 1\npolicy: deny\nrules: [${rules}]\n`);
      const listened = async (id: string): Promise<string> => {
        rig.upstream.forget();
        const stream = await streamOf(rig.access, id);
        const asked = () => rig.upstream.seen().find(({ method }) => method === 'subscriptions/listen');
        await expect.poll(asked, PATIENT).toBeDefined();
        stream.leave();
        return asked()?.body ?? '';
      };
      const { id, request } = await openSession(rig.access);
      for (const uri of ['memo://one', 'memo://two']) await request('resources/subscribe', { uri });
      expect(await listened(id)).toContain('["memo://one","memo://two"]');
      await deny('{id: d, effect: deny, who: {anyone: true}, what: {resources: ["memo://two"]}}');
      await rig.gateway.reload();
      expect(await listened(id)).toContain('["memo://one"]');
      await deny('');
      await rig.gateway.reload();
      expect(await listened(id)).toContain('["memo://one","memo://two"]');
    }));
});
