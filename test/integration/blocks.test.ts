// Blocks through the running gateway: what an administrator switches off is refused from the next request on, what is
// open ends, and everyone who looks sees who blocked what, and why.

import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  ADMINS,
  type Admins,
  adminsOf,
  LONG_ANSWERS,
  openSessionStreams,
  openStatelessStreams,
  startMergedRig,
  tokenOf,
} from '../support/deployments.js';
import { expectRefusedLines, UPSTREAM } from '../support/gateway.js';
import { buildProgram, runSallyport } from '../support/processes.js';
import { SOON } from '../support/timing.js';
import { callStateless, errorOf, initialize, requestStateless, toolNames } from '../support/wire-client.js';
import { sharedGateway, withStarted } from '../support/with-gateway.js';

const TOOL = { target: 'tool', upstream: UPSTREAM, name: 'read_record' };

let admins: Admins;

const rig = sharedGateway({ more: ADMINS });
beforeAll(async () => {
  admins = adminsOf(rig.gateway);
});
async function liftAll(all: Admins = admins): Promise<void> {
  const token = await all.token('platform');
  const { body } = await all.ask('GET', '/api/revocations', { token });
  for (const { id } of body.revocations)
    expect((await all.ask('DELETE', `/api/revocations/${id}`, { token })).status).toBe(204);
}
afterEach(async () => {
  rig.upstream.repent();
  await liftAll();
});

async function block(target: object): Promise<string> {
  const reply = await admins.revoke({ block: target });
  expect(reply.status).toBe(201);
  return reply.body.revocation.id;
}

const call = async (subject = 'ada') =>
  callStateless(rig.as(await tokenOf(rig.gateway, subject)), 'read_record', { id: 'one' });
const listed = async () => toolNames(await requestStateless(rig.as(await tokenOf(rig.gateway, 'ada')), 'tools/list'));

describe('a blocked tool', () => {
  it('[REV-61] is hidden and refused as if it were unknown, until it is lifted', async () => {
    const access = rig.as(await tokenOf(rig.gateway, 'ada'));
    const unknown = await callStateless(access, 'no_such_tool', {});
    expect(await listed()).toContain('read_record');
    await block(TOOL);
    rig.upstream.forget();
    const refused = await call();
    expect([refused.status, errorOf(refused)['code']]).toEqual([200, errorOf(unknown)['code']]);
    expect(errorOf(refused)['message']).toBe(errorOf(unknown)['message']);
    expect(rig.upstream.uses()).toEqual([]);
    expect(await listed()).not.toContain('read_record');
    await liftAll();
    expect((await call()).text).not.toContain('error');
    expect(await listed()).toContain('read_record');
  });

  it('[REV-61] is announced to those who listen, and ends the responses of its calls', async () => {
    rig.upstream.obey(LONG_ANSWERS);
    const access = rig.as(await tokenOf(rig.gateway, 'ada'));
    const [answer, listening] = await openStatelessStreams(access);
    const { streams } = await openSessionStreams(access);
    await expect.poll(() => answer?.text()).toContain('working');
    await block(TOOL);
    await expect.poll(() => [answer?.isOver(), streams[1]?.isOver()], SOON).toEqual([true, true]);
    for (const open of [listening, streams[0]])
      await expect.poll(() => open?.text(), SOON).toContain('notifications/tools/list_changed');
  });

  it('[REV-61] is blocked under the endpoint of several upstreams too', () =>
    withStarted(
      () => startMergedRig({ more: ADMINS }),
      async (merged) => {
        const at = adminsOf(merged.gateway);
        const target = { target: 'tool', upstream: 'left', name: 'read_record' };
        expect((await at.revoke({ block: target })).status).toBe(201);
        const names = toolNames(await requestStateless(merged.access, 'tools/list'));
        expect(names).not.toContain('l_read_record');
        expect(names).toContain('right_read_record');
        const refused = await callStateless(merged.access, 'l_read_record', { id: 'one' });
        expect(errorOf(refused)['code']).toBe(-32602);
        await liftAll(at);
        expect((await at.revoke({ block: { target: 'upstream', upstream: 'left' } })).status).toBe(201);
        expect(toolNames(await requestStateless(merged.access, 'tools/list'))).toContain('right_read_record');
        const blocked = await callStateless(merged.access, 'l_read_record', { id: 'one' });
        expect([blocked.status, blocked.text]).toEqual([403, expect.stringContaining('"blocked"')]);
        expect(merged.left.uses()).toEqual([]);
        expect((await callStateless(merged.access, 'right_read_record', { id: 'one' })).status).toBe(200);
        const token = await merged.gateway.token('all', { sub: 'eve' });
        const eve = { target: 'subject', issuer: 'test', subject: 'eve' };
        const { body } = await at.revoke({ block: eve });
        const shut = await callStateless({ ...merged.access, token }, 'right_read_record', {});
        expect(shut.status).toBe(403);
        const [line] = await expectRefusedLines(merged, shut, 'blocked');
        expect(line).toMatchObject({
          actor: { sub: 'eve' },
          decision: { rule: `block:${body.revocation.id}` },
        });
      },
    ));
});

describe.each([
  ['a subject', { target: 'subject', issuer: 'test', subject: 'ada' }, 200],
  ['a client', { target: 'client', issuer: 'test', client: 'test-client' }, 403],
  ['an upstream', { target: 'upstream', upstream: UPSTREAM }, 403],
  ['everything', { target: 'everything' }, 403],
])('a block of %s', (_, target, others) => {
  it('[REV-62] refuses every request with 403, also with a new token, and ends open streams', async () => {
    rig.upstream.obey(LONG_ANSWERS);
    const access = rig.as(await tokenOf(rig.gateway, 'ada'));
    const open = [...(await openStatelessStreams(access)), ...(await openSessionStreams(access)).streams];
    await expect.poll(() => open[0]?.text()).toContain('working');
    const id = await block(target);
    await expect.poll(() => open.map((one) => one.isOver()), SOON).toEqual(open.map(() => true));
    rig.upstream.repent();
    rig.upstream.forget();
    const refused = await call();
    expect(refused.status).toBe(403);
    expect(refused.headers.get('www-authenticate')).toBeNull();
    expect(errorOf(refused)).toMatchObject({ code: 1435 });
    expect((await initialize(rig.as(await tokenOf(rig.gateway, 'ada')))).status).toBe(403);
    expect(rig.upstream.uses()).toEqual([]);
    expect((await call('bob')).status).toBe(others);
    const [line] = await expectRefusedLines(rig, refused, 'blocked');
    expect(line).toMatchObject({
      actor: { sub: 'ada' },
      decision: { reasons: ['blocked'], policy: 'builtin', rule: `block:${id}` },
    });
  });
});

describe('what is blocked', () => {
  it('[REV-63] shows in the control, the metric, the list and the audit log', async () => {
    const token = await admins.token('leads', 'lea');
    const body = { note: 'INC-7', block: { ...TOOL, expiresIn: 60 } };
    const made = await admins.ask('POST', '/api/revocations', { token, body });
    const { id, expires } = made.body.revocation;
    expect(Date.parse(expires) - Date.now()).toBeGreaterThan(50_000);
    const viewer = await admins.token('sec');
    const list = await admins.ask('GET', '/api/revocations', { token: viewer });
    expect(list.body.revocations).toEqual([
      { id, kind: 'block', ...TOOL, by: 'lea', note: 'INC-7', at: expect.any(String), expires },
    ]);
    const { body: shown } = await admins.ask('GET', '/api/controls', { token: viewer });
    const control = shown.controls.find((row: { control: string }) => row.control === 'blocks');
    expect(control.reason).toContain('tool "read_record" of target is blocked');
    expect(control.reason).toContain('by "lea": "INC-7"');
    expect(await rig.gateway.metrics()).toContain('sallyport_blocks{target="tool"} 1');
    const recorded = async () =>
      (await rig.gateway.audit()).find((line) => line['type'] === 'admin.action' && line['detail']?.revocation === id);
    await expect.poll(recorded).toMatchObject({
      actor: { sub: 'lea' },
      detail: { kind: 'block', ...TOOL, note: 'INC-7' },
    });
  });

  it('[REV-64] is blocked, listed and lifted by the command line', async () => {
    await buildProgram();
    const admin = rig.gateway.gateway.listening.find(({ listener }) => listener === 'admin');
    const run = async (group: 'leads' | 'platform', ...args: string[]) =>
      runSallyport([...args, '--url', `http://127.0.0.1:${admin?.port}`], {
        env: { SALLYPORT_ADMIN_TOKEN: await admins.token(group) },
      });
    const made = await run('leads', 'block', 'tool', UPSTREAM, 'read_record', '--note', 'INC-7');
    expect([made.code, made.stderr]).toEqual([0, '']);
    const [id = ''] = made.stdout.split(' ');
    expect(await listed()).not.toContain('read_record');
    expect((await run('leads', 'block', 'list')).stdout).toBe(made.stdout);
    const refused = await run('leads', 'unblock', id);
    expect([refused.code, refused.stderr]).toEqual([1, 'error: Your role does not allow this.\n']);
    expect((await run('platform', 'unblock', id)).code).toBe(0);
    expect(await listed()).toContain('read_record');
  });

  it('[E-65] is in the state of the controls that assure reads from the gateway', async () => {
    await buildProgram();
    await block(TOOL);
    const admin = rig.gateway.gateway.listening.find(({ listener }) => listener === 'admin');
    const origin = `http://127.0.0.1:${admin?.port}`;
    const env = { SALLYPORT_ADMIN_TOKEN: await admins.token('leads') };
    const { code, stdout } = await runSallyport(['assure', '--url', origin, '--source', 'cosai', '--json'], { env });
    const report = JSON.parse(stdout);
    expect([code, report.basis, report.rows.length]).toEqual([0, { kind: 'live', origin }, 12]);
    const supply = report.rows.find(({ id }: { id: string }) => id === 'MCP-T11');
    const blocks = supply.controls.find(({ kind }: { kind: string }) => kind === 'blocks');
    expect(blocks.states[0].reason).toContain('tool "read_record" of target is blocked');
  });

  it('[REV-60] is served again when the time of its block is over, and told so', async () => {
    const access = rig.as(await tokenOf(rig.gateway, 'ada'));
    await block({ ...TOOL, expiresIn: 1 });
    const [, listening] = await openStatelessStreams(access, 'write_record');
    expect(await listed()).not.toContain('read_record');
    await expect.poll(() => listening?.text(), { timeout: 5_000 }).toContain('notifications/tools/list_changed');
    expect(await listed()).toContain('read_record');
    listening?.leave();
  });

  it('[REV-62] refuses a blocked administrator, and everything leaves the console open', async () => {
    const token = await admins.token('leads', 'eve');
    const ask = async () => (await admins.ask('GET', '/api/revocations', { token })).status;
    await block({ target: 'everything' });
    await block({ target: 'client', issuer: 'test', client: 'test-client' });
    expect(await ask()).toBe(200);
    await block({ target: 'subject', issuer: 'test', subject: 'eve' });
    expect(await ask()).toBe(401);
  });

  it.each([
    ['an unknown target', { target: 'server' }],
    ['no target', {}],
    ['a member too many', { target: 'everything', upstream: UPSTREAM }],
    ['an unknown upstream', { target: 'upstream', upstream: 'other' }],
    ['an unknown issuer', { target: 'client', issuer: 'other', client: 'x' }],
    ['no name', { target: 'tool', upstream: UPSTREAM }],
    ['no URI', { target: 'resource', upstream: UPSTREAM, name: 'a b' }],
    ['no lifetime', { ...TOOL, expiresIn: 0 }],
    ['a broken lifetime', { ...TOOL, expiresIn: 1.5 }],
    ['an endless lifetime', { ...TOOL, expiresIn: 1e9 }],
  ])('[REV-27] is not named by an order with %s', async (_, target) => {
    expect((await admins.revoke({ block: target })).status).toBe(400);
  });
});
