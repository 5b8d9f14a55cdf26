// Attacks by whoever was switched off and goes on as an actor of other people's tokens: at every depth of the chain, under
// its own issuer or that of the token, with what it asks and with what it still holds.

import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { startChangingRig } from '../support/changing-rig.js';
import { ADMINS, type Admins, adminsOf } from '../support/deployments.js';
import { expectRefusedLines, UPSTREAM } from '../support/gateway.js';
import { EVERY_KIND, HOLD_ALL, holdEach } from '../support/held-access.js';
import type { JsonObject } from '../support/json.js';
import { PATIENT } from '../support/timing.js';
import { callStateless, openSession, type Reply, requestStateless } from '../support/wire-client.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const FOREIGN = 'https://agents.example';
const ISSUER = 'test';
type Link = JsonObject & { readonly sub: string };

/** The claim of a chain, the current actor first. */
function chain(...links: readonly Link[]): JsonObject | undefined {
  return links.reduceRight<JsonObject | undefined>(
    (act, link) => (act === undefined ? link : { ...link, act }),
    undefined,
  );
}
const others = (count: number): Link[] => Array.from({ length: count }, (_, index) => ({ sub: `service-${index}` }));

async function liftAll(admins: Admins): Promise<void> {
  const token = await admins.token('platform');
  const { body } = await admins.ask('GET', '/api/revocations', { token });
  for (const { id } of body.revocations) await admins.ask('DELETE', `/api/revocations/${id}`, { token });
}

describe('whoever was switched off', () => {
  let admins: Admins;
  const rig = sharedGateway({ more: ADMINS });
  beforeAll(async () => {
    admins = adminsOf(rig.gateway);
  });
  afterEach(() => liftAll(admins));

  const as = async (sub: string, more: object = {}) => rig.as(await rig.gateway.token(UPSTREAM, { sub, ...more }));
  const call = async (sub: string, act: object | undefined, more: object = {}): Promise<Reply> =>
    callStateless(await as(sub, { act, ...more }), 'read_record', { id: 'one' });
  const order = async (one: object): Promise<string> => {
    const { status, body } = await admins.revoke(one);
    expect(status).toBe(201);
    return body.revocation.id;
  };

  const blockSubject = (issuer = ISSUER) => ({
    block: { target: 'subject', issuer, subject: 'agent' },
  });
  const blockClient = { block: { target: 'client', issuer: ISSUER, client: 'agent' } };
  const revoke = (more: object = {}) => ({
    subject: { issuer: ISSUER, subject: 'agent', ...more },
  });

  it.each([
    ['the current actor', blockSubject(), chain({ sub: 'agent' }), 403],
    ['the actor before', blockSubject(), chain({ sub: 'proxy' }, { sub: 'agent' }), 403],
    ['the first of eight', blockSubject(), chain(...others(7), { sub: 'agent' }), 403],
    ['the current of eight', blockSubject(), chain({ sub: 'agent' }, ...others(7)), 403],
    ['of another issuer', blockSubject(FOREIGN), chain({ sub: 'agent', iss: FOREIGN }), 403],
    ['of another issuer, before', blockSubject(FOREIGN), chain({ sub: 'proxy' }, { sub: 'agent', iss: FOREIGN }), 403],
    ['a client, which is an actor by its id', blockClient, chain({ sub: 'agent' }), 403],
    ['a client, which the link names', blockClient, chain({ sub: 'x1', client_id: 'agent' }), 403],
    ['a client, before', blockClient, chain(...others(3), { sub: 'x1', azp: 'agent' }), 403],
    ['the subject of revoked tokens', revoke(), chain({ sub: 'agent' }), 401],
    ['the same, before', revoke(), chain(...others(7), { sub: 'agent' }), 401],
    ['the same, of one client', revoke({ client: 'ide' }), chain({ sub: 'agent', azp: 'ide' }), 401],
    [
      'the same, of the client of the token',
      revoke({ client: 'test-client' }),
      chain(...others(2), { sub: 'agent' }),
      401,
    ],
  ])('gets nothing as an actor: %s', async (_, what, act, status) => {
    expect((await call('ada', act)).status).toBe(200);
    const id = await order(what);
    rig.upstream.forget();
    const refused = await call('ada', act);
    expect(refused.status).toBe(status);
    expect(rig.upstream.uses()).toEqual([]);
    if (status === 403) {
      const [line] = await expectRefusedLines(rig, refused, 'blocked');
      expect(line).toMatchObject({ actor: { sub: 'ada' }, decision: { rule: `block:${id}` } });
    }
    // Nobody else loses anything by it.
    expect((await call('ada', undefined)).status).toBe(200);
    expect((await call('ada', chain({ sub: 'other-agent' }))).status).toBe(200);
    await liftAll(admins);
    expect((await call('ada', act)).status).toBe(200);
  });

  it.each([
    ['an actor of that name of another issuer', blockSubject(), chain({ sub: 'agent', iss: FOREIGN })],
    ['an actor of that name of this issuer', blockSubject(FOREIGN), chain({ sub: 'agent' })],
    ['an actor through another client', blockClient, chain({ sub: 'agent', client_id: 'ide' })],
    ['an actor of another client', revoke({ client: 'chat' }), chain({ sub: 'agent', azp: 'ide' })],
    ['whoever only may become one', blockSubject(), undefined],
  ])('shuts out no more than it names: %s', async (_, what, act) => {
    await order(what);
    const may_act = { sub: 'agent' };
    expect((await call('ada', act, { may_act })).status).toBe(200);
  });

  it('gets nothing in a session that it began, or of a task', async () => {
    const act = chain({ sub: 'proxy' }, { sub: 'agent' });
    const access = await as('ada', { act });
    const session = await openSession(access);
    expect((await session.call('read_record', { id: 'one' })).status).toBe(200);
    await order(blockSubject());
    expect((await session.call('read_record', { id: 'one' })).status).toBe(403);
    const asked = [
      ...['tools/list', 'resources/list', 'prompts/list', 'server/discover'],
      ...['tasks/get', 'tasks/update', 'tasks/cancel', 'subscriptions/listen', 'resources/read'],
    ];
    for (const method of asked)
      expect((await requestStateless(access, method, { taskId: 'x', uri: 'x' })).status).toBe(403);
  });

  it('revoked, keeps the tokens that it gets later, as a person does', async () => {
    await order(revoke());
    const iat = Math.floor(Date.now() / 1000);
    expect((await call('ada', chain({ sub: 'agent' }), { iat: iat + 25 })).status).toBe(401);
    rig.passTime(90_000);
    expect((await call('ada', chain({ sub: 'agent' }), { iat: iat + 85 })).status).toBe(200);
  });

  it('opens no admin listener as an actor of an administrator', async () => {
    const claims = {
      sub: 'root',
      groups: ['platform'],
      act: chain(...others(2), { sub: 'agent' }),
    };
    const audience = claimOf(await admins.token('platform'), 'aud');
    const token = await rig.gateway.issuer.mint(audience, { claims });
    const ask = async () => (await admins.ask('GET', '/api/revocations', { token })).status;
    expect(await ask()).toBe(200);
    await order(blockClient);
    expect(await ask()).toBe(200);
    await order(blockSubject());
    expect(await ask()).toBe(401);
  });

  it('is named as a mistake where its issuer is almost a configured one', async () => {
    const { issuer } = rig.gateway.issuer;
    for (const near of [`${issuer}/`, issuer.replace('http:', 'https:'), issuer.toUpperCase()])
      expect((await admins.revoke(blockSubject(near))).status).toBe(400);
    const { body } = await admins.revoke(blockSubject(FOREIGN));
    expect(body.warning).toContain('only actors');
  });
});

function claimOf(token: string, name: string): string {
  return JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))[name];
}

describe('what an actor still holds', () => {
  const rig = shared(() => startChangingRig());

  it.each([
    ['blocked', { block: { target: 'subject', issuer: ISSUER, subject: 'agent' } }],
    ['revoked', { subject: { issuer: ISSUER, subject: 'agent' } }],
  ])('ends where the actor is %s, and what others hold stays', async (name, order) => {
    for (const upstream of [rig.left, rig.right]) upstream.obey(HOLD_ALL);
    const act = chain({ sub: 'proxy' }, { sub: 'agent' });
    const held = await holdEach(rig, EVERY_KIND, `${name} ada`, { act: act ?? null });
    const kept = await holdEach(rig, EVERY_KIND, `${name} bob`, { act: { sub: 'proxy' } });
    const admins = adminsOf(rig.gateway);
    expect((await admins.revoke(order)).status).toBe(201);
    for (const { kind, listening } of held.values())
      await vi.waitFor(() => expect([kind, listening.isOver()]).toEqual([kind, true]), PATIENT);
    for (const { kind, listening } of kept.values()) expect([kind, listening.isOver()]).toEqual([kind, false]);
    await liftAll(admins);
    for (const { listening } of kept.values()) listening.leave();
  });
});
