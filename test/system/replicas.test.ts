// Two gateways and one real store: what is revoked, ended or counted at one holds at the other, and what
// both do while the store is gone.

import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { writeKeyText } from '../../src/config/key-material.js';
import {
  ADMINS,
  type Admins,
  adminsOf,
  idOf,
  LONG_ANSWERS,
  openSessionStreams,
  openStatelessStreams,
} from '../support/deployments.js';
import { type RunningGateway, startTestGateway, UPSTREAM } from '../support/gateway.js';
import { type HostileUpstream, startHostileUpstream } from '../support/hostile-upstream.js';
import { type RedisServer, startRedisServer } from '../support/processes.js';
import { PATIENT, SOON } from '../support/timing.js';
import { startTestIssuer, type TestIssuer } from '../support/tokens.js';
import { type Access, callStateless, openSession, requestInSession } from '../support/wire-client.js';

const LIMITED = `version: 1
policy: open
rules:
  - {id: all, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: ["read_record"], prompts: ["*"], resources: ["**"]}}
  - {id: few, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: ["write_record"]}, limits: {rate: 4/h, per: subject}}
`;
const WRITE = { id: 'x', text: 'y' };
/** Only `read_record` leaves something behind; what was received at any replica counts at each. */
const FLOWS = `version: 1
policy: open
rules:
  - {id: all, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: ["*"]}}
labels: {${UPSTREAM}/write_record: [egress, trusted]}
flows: [{id: no-leak, from: untrusted, to: egress, effect: deny}]
`;

let folder: string;
let redis: RedisServer;
let upstream: HostileUpstream;
let issuer: TestIssuer;
let gateways: readonly [RunningGateway, RunningGateway];
let admins: Admins;

const STATE = 'state: {type: redis, url: {env: REDIS_URL}, maxAge: 2s, commandTimeout: 300ms}';

async function start(state: string = STATE, policy = LIMITED): Promise<RunningGateway> {
  return startTestGateway({
    upstreams: [{ name: UPSTREAM, url: upstream.url, more: ['pinning: {maxAge: 10m}'] }],
    policies: { open: policy },
    issuerUrl: issuer.issuer,
    env: { REDIS_URL: redis.url },
    more: `keys: [{file: ${JSON.stringify(join(folder, 'key'))}}]
${state}
${ADMINS}`,
  });
}

async function accessTo(gateway: RunningGateway, subject: string, jti?: string): Promise<Access> {
  const url = gateway.url(UPSTREAM);
  const claims = { sub: subject, ...(jti === undefined ? {} : { jti }) };
  return { url, token: await issuer.mint(url, { claims }) };
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sallyport-store-'));
  await writeFile(join(folder, 'key'), writeKeyText(randomBytes(32)), { mode: 0o600 });
  redis = await startRedisServer();
  upstream = await startHostileUpstream();
  issuer = await startTestIssuer();
  gateways = [await start(), await start()];
  const [one] = gateways;
  // The issuer that both trust vouches for administrators too.
  admins = adminsOf({ ...one, issuer });
});
afterAll(async () => {
  for (const gateway of gateways ?? []) await gateway.close();
  await issuer?.close();
  await upstream?.close();
  await redis?.close();
  await rm(folder, { recursive: true, force: true });
});

describe('two replicas', () => {
  it('[REV-31, REV-10] end the streams of whom the other has revoked soon', async () => {
    const [, other] = gateways;
    upstream.obey(LONG_ANSWERS);
    const access = await accessTo(other, 'ada');
    const streams = [...(await openStatelessStreams(access)), ...(await openSessionStreams(access)).streams];
    await expect.poll(() => streams[0]?.text(), PATIENT).toContain('working');
    const order = { token: { issuer: 'test', jti: idOf(access.token ?? '') } };
    expect((await admins.revoke(order)).body.shared).toBe(true);
    await expect.poll(() => streams.map((stream) => stream.isOver()), SOON).toEqual([true, true, true, true]);
    upstream.repent();
    expect((await callStateless(access, 'read_record', { id: 'one' })).status).toBe(401);
  });

  it('[REV-31] know of a session that ended at the other', async () => {
    const [one, other] = gateways;
    const jti = 'of-both';
    const [here, there] = [await accessTo(one, 'bob', jti), await accessTo(other, 'bob', jti)];
    const session = await openSession(here);
    const ask = async () => (await requestInSession(there, session.id, 'tools/list')).status;
    expect(await ask()).toBe(200);
    await session.end();
    await expect.poll(ask, SOON).toBe(404);
  });

  it('[REV-31] share a limit', async () => {
    const replies = [];
    for (let use = 0; use < 6; use += 1) {
      const access = await accessTo(gateways[use % 2 === 0 ? 0 : 1], 'carol');
      replies.push(await callStateless(access, 'write_record', WRITE));
    }
    const refused = replies.map(({ text }) => text.includes('"rate-limited"'));
    expect(refused).toEqual([false, false, false, false, true, true]);
  });

  it('[REV-30, REV-29] refuse callers without news, show it, and go on when the store is back', async () => {
    const [one] = gateways;
    upstream.obey(LONG_ANSWERS);
    const access = await accessTo(one, 'dora');
    const streams = await openStatelessStreams(access);
    await expect.poll(() => streams[0]?.text(), PATIENT).toContain('working');
    upstream.repent();
    await redis.stop();
    const call = () => callStateless(access, 'read_record', { id: 'one' });
    // For as long as its knowledge is new enough, nothing waits for the store.
    expect((await call()).status).toBe(200);
    await expect.poll(async () => (await call()).status, PATIENT).toBe(503);
    upstream.forget();
    const reply = await call();
    expect(reply.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    expect(reply.message?.['error']).toMatchObject({ code: 1509 });
    expect(upstream.uses()).toEqual([]);
    await expect.poll(() => streams.map((stream) => stream.isOver()), PATIENT).toEqual([true, true]);
    const reasons = async () => (await one.audit()).flatMap((line) => line['decision']?.reasons ?? []);
    await expect.poll(reasons, PATIENT).toContain('store-unavailable');
    await expect.poll(one.metrics, PATIENT).toContain('sallyport_controls{control="store",state="degraded"} 1');
    expect(await one.metrics()).toMatch(/^sallyport_store_degraded 1$/m);

    const token = await admins.token('leads');
    const list = await admins.ask('GET', '/api/revocations', { token });
    expect(list.status).toBe(200);
    const kept = await admins.revoke({ subject: { issuer: 'test', subject: 'eve' } });
    expect([kept.status, kept.body.shared]).toEqual([202, false]);

    await redis.start();
    await expect.poll(async () => (await call()).status, PATIENT).toBe(200);
    const [, other] = gateways;
    const eve = await accessTo(other, 'eve');
    await expect.poll(async () => (await callStateless(eve, 'read_record', { id: 'one' })).status, PATIENT).toBe(401);
    await expect.poll(one.metrics, PATIENT).toContain('sallyport_controls{control="store",state="armed"} 1');
    expect(await one.metrics()).toMatch(/^sallyport_store_degraded 0$/m);
    for (const gateway of gateways) expect(gateway.log()).not.toContain(redis.url.split('@')[0]);
  });
});

describe('three replicas', () => {
  let third: RunningGateway;
  beforeAll(async () => {
    third = await start();
  });
  afterAll(() => third?.close());
  afterEach(() => upstream.repent());

  it('[REV-65] hide and refuse what one of them has blocked, and serve it again', async () => {
    const all = [...gateways, third];
    const call = async (gateway: RunningGateway) =>
      (await callStateless(await accessTo(gateway, 'ivan'), 'read_record', { id: 'one' })).text;
    const refused = async () => (await Promise.all(all.map(call))).map((text) => text.includes('"error"'));
    expect(await refused()).toEqual([false, false, false]);
    const target = { target: 'tool', upstream: UPSTREAM, name: 'read_record' };
    const made = await admins.revoke({ block: target });
    expect(made.body.shared).toBe(true);
    await expect.poll(refused, SOON).toEqual([true, true, true]);
    await admins.ask('DELETE', `/api/revocations/${made.body.revocation.id}`, {
      token: await admins.token('platform'),
    });
    await expect.poll(refused, SOON).toEqual([false, false, false]);
  });

  it('[REV-65] end the open streams of a blocked upstream, and a replica that starts later refuses', async () => {
    upstream.obey(LONG_ANSWERS);
    const access = await accessTo(third, 'judy');
    const streams = [...(await openStatelessStreams(access)), ...(await openSessionStreams(access)).streams];
    await expect.poll(() => streams[0]?.text(), PATIENT).toContain('working');
    const made = await admins.revoke({ block: { target: 'upstream', upstream: UPSTREAM } });
    await expect.poll(() => streams.map((stream) => stream.isOver()), SOON).toEqual([true, true, true, true]);
    const later = await start();
    const status = async () =>
      (await callStateless(await accessTo(later, 'judy'), 'read_record', { id: 'one' })).status;
    expect(await status()).toBe(403);
    await admins.ask('DELETE', `/api/revocations/${made.body.revocation.id}`, {
      token: await admins.token('platform'),
    });
    upstream.repent();
    await expect.poll(status, SOON).toBe(200);
    await later.close();
  });
});

describe('three replicas with flows', () => {
  const replicas: RunningGateway[] = [];
  beforeAll(async () => {
    for (let count = 0; count < 3; count += 1)
      replicas.push(
        // The server of these tests has just begun empty.
        await start(STATE.replace('maxAge: 2s', 'maxAge: 10m, afterLoss: degrade'), FLOWS),
      );
  });
  afterAll(async () => {
    for (const replica of replicas) await replica.close();
  });
  const callAt = async (index: number, tool: string, subject: string) => {
    const replica = replicas[index];
    if (replica === undefined) throw new Error('there is no such replica');
    const args = tool === 'read_record' ? { id: 'one' } : WRITE;
    return (await callStateless(await accessTo(replica, subject), tool, args)).text;
  };

  it('[FL-08] refuse after what was received at another, at once, and others are served', async () => {
    for (const index of [0, 1, 2]) expect(await callAt(index, 'write_record', 'kim')).not.toContain('isError":true');
    expect(await callAt(0, 'read_record', 'kim')).not.toContain('isError":true');
    for (const index of [0, 1, 2]) {
      expect(await callAt(index, 'write_record', 'kim')).toContain('"tainted-flow"');
      expect(await callAt(index, 'write_record', 'leo')).not.toContain('tainted-flow');
    }
    const keys = await redis.command('KEYS', '{sallyport}:flow:*');
    expect(keys).not.toContain('kim');
    expect(keys).not.toContain('untrusted');
  });

  it('[FL-05] withhold results and refuse what a flow concerns while the store is away', async () => {
    redis.pause();
    try {
      expect(await callAt(1, 'read_record', 'mia')).toContain('"store-unavailable"');
      expect(await callAt(2, 'write_record', 'mia')).toContain('"store-unavailable"');
    } finally {
      redis.resume();
    }
    // Who has received nothing is served again; of a result that was withheld, the store may have been told.
    const served = async () => callAt(1, 'write_record', 'noa');
    await expect.poll(served, PATIENT).not.toContain('"isError":true');
  });
});

describe('[C-24] a replica', () => {
  let replica: RunningGateway | undefined;
  afterEach(async () => {
    redis.resume();
    await replica?.close();
  });

  it('waits for the store as long as its commandTimeout says', async () => {
    replica = await start('state: {type: redis, url: {env: REDIS_URL}, maxAge: 10m, commandTimeout: 1m}');
    const access = await accessTo(replica, 'grace');
    await callStateless(access, 'read_record', { id: 'one' });
    redis.pause();
    const limited = callStateless(access, 'write_record', WRITE);
    expect(await Promise.race([limited, sleep(1_500, 'waits')])).toBe('waits');
    redis.resume();
    expect((await limited).status).toBe(200);
  });

  it('keeps what it shares under its prefix', async () => {
    replica = await start('state: {type: redis, url: {env: REDIS_URL}, prefix: sallyport.elsewhere, maxAge: 2s}');
    // Its user in the store has rights for the names of the other prefix alone.
    const access = await accessTo(replica, 'heidi');
    const call = async () => (await callStateless(access, 'read_record', { id: 'one' })).status;
    await expect.poll(call, PATIENT).toBe(503);
    const keys = await redis.command('KEYS', '{sallyport.elsewhere}:*');
    expect(keys).toContain('*0');
  });
});
