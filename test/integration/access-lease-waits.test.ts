// What a caller gets whose request or response waits for inspection, or whose issuer is asked about its token, once
// the ground of it is gone. The rows are those of docs/reference/access-leases.md.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createGate, startChangingRig } from '../support/changing-rig.js';
import { ADMINS, type Admins, adminsOf } from '../support/deployments.js';
import { ALLOW_ALL, type AuditLine, UPSTREAM } from '../support/gateway.js';
import { beginJob, holdJobs, jobs } from '../support/held-jobs.js';
import { onMethod, resultFor, sseEvent, stream, textResult } from '../support/hostile-acts.js';
import { openRawSession, postStateless, type RawSession, sendRaw } from '../support/raw-mcp.js';
import { makeSecret } from '../support/secrets.js';
import { PATIENT } from '../support/timing.js';
import { listenOn } from '../support/wire-client.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

/** Long, and not surely clean: it is inspected on another thread. */
const LONG = 'plain <b> words '.repeat(6000);
const DENIED = ALLOW_ALL.replace('effect: allow', 'effect: deny');

let admins: Admins;
let file: string;
let settings: string;
const rig = sharedGateway({ more: ADMINS });
beforeAll(async () => {
  admins = adminsOf(rig.gateway);
  file = join(rig.gateway.folder, 'gateway.yaml');
  settings = await readFile(file, 'utf8');
});
afterEach(async () => {
  jobs.held = Promise.resolve();
  await writeFile(file, settings);
  await applyPolicy(ALLOW_ALL);
  rig.upstream.repent();
  rig.upstream.forget();
});

async function reload(): Promise<void> {
  const diagnostics = await rig.gateway.reload();
  expect(diagnostics.filter(({ severity }) => severity === 'error')).toEqual([]);
}

async function applyPolicy(text: string): Promise<void> {
  await rig.gateway.writePolicy('open', text);
  await reload();
}

async function revoke(subject: string): Promise<void> {
  const order = { subject: { issuer: 'test', subject } };
  expect((await admins.revoke(order)).status).toBe(201);
}

/** Ends the session as its client does. */
async function end({ headers }: Pick<RawSession, 'headers'>): Promise<void> {
  expect((await fetch(rig.access.url, { method: 'DELETE', headers })).status).toBe(204);
}

async function removeUpstream(): Promise<void> {
  await writeFile(file, settings.replace('  target:\n', '  gone:\n'));
  await reload();
}

type Caller = { readonly subject: string; readonly session: RawSession; readonly endsAt: number };
type Lose = (caller: Caller) => Promise<void>;

const expire: Lose = ({ endsAt }) => sleep(Math.max(0, endsAt - Date.now()) + 20);

async function openCaller(subject: string, livesMs = 60_000): Promise<Caller> {
  const endsAt = Date.now() + livesMs;
  const token = await rig.gateway.token(UPSTREAM, { sub: subject, exp: endsAt / 1000 });
  const session = await openRawSession(rig.access.url, { token });
  rig.upstream.forget();
  return { subject, session, endsAt };
}

const outcomeOf = async (subject: string): Promise<AuditLine | undefined> =>
  (await rig.gateway.audit()).find(
    (line) =>
      line['type'] === 'mcp.outcome' && line['actor']?.sub === subject && line['target'].method === 'tools/call',
  );

async function expectOutcome(subject: string, action: string, reasons: readonly string[]) {
  await expect.poll(async () => (await outcomeOf(subject))?.['decision'], PATIENT).toMatchObject({ action, reasons });
}

const CALL = { name: 'read_record', arguments: { id: LONG } };

describe('a request whose arguments wait for their inspection', () => {
  it.each<[string, number, string, Lose]>([
    ['whose token has expired', 401, 'token-expired', expire],
    ['whose caller was revoked', 401, 'token-revoked', ({ subject }) => revoke(subject)],
    ['that a rule denies', 200, 'denied-by-rule', () => applyPolicy(DENIED)],
    ['whose upstream was removed', 502, 'upstream-unavailable', removeUpstream],
  ])('row 1: is refused %s, and nothing of it is forwarded', async (what, status, reason, lose) => {
    const caller = await openCaller(`arguments ${what}`, lose === expire ? 2_000 : 60_000);
    const release = holdJobs();
    const { done } = await beginJob(() => caller.session.ask(7, 'tools/call', CALL));
    await lose(caller);
    release();
    expect((await done).status).toBe(status);
    expect(rig.upstream.uses()).toEqual([]);
    await expectOutcome(caller.subject, 'refused', [reason]);
  });

  it('row 1: is refused where its client has ended its session', async () => {
    const caller = await openCaller('arguments, ended');
    const release = holdJobs();
    const { done } = await beginJob(() => caller.session.ask(7, 'tools/call', CALL));
    await end(caller.session);
    release();
    expect((await done).status).toBe(404);
    expect(rig.upstream.uses()).toEqual([]);
    await expectOutcome(caller.subject, 'refused', ['unknown-session']);
  });

  it('row 1: is refused where its session was ended and a file changed', async () => {
    const caller = await openCaller('arguments, ended and changed');
    const release = holdJobs();
    const { done } = await beginJob(() => caller.session.ask(7, 'tools/call', CALL));
    await end(caller.session);
    await applyPolicy(`${ALLOW_ALL}# changed\n`);
    release();
    expect((await done).status).toBe(404);
    expect(rig.upstream.uses()).toEqual([]);
    await expectOutcome(caller.subject, 'refused', ['unknown-session']);
  });
});

describe('a request to an aggregate whose body waits to be read', () => {
  const PADDING = 'x'.repeat(300_000);
  const TOOL = { name: 'l_read_record', arguments: { id: 'one' } };
  const NOBODYS = { name: 'nobody_reads' };
  const LISTEN = { notifications: { toolsListChanged: true } };
  const changing = shared(() => startChangingRig());
  afterEach(() => changing.applySettings());

  const revokeThere = (subject: string): Promise<void> => changing.revokeSubject(subject);
  const distrust = (): Promise<void> => changing.applySettings(['algorithms: [ES256, RS256]', 'algorithms: [RS256]']);

  it.each<[string, string, object, (subject: string) => Promise<void>]>([
    ['whose caller was revoked', 'tools/call', TOOL, revokeThere],
    ['whose caller was revoked', 'tools/list', {}, revokeThere],
    ['whose caller was revoked', 'subscriptions/listen', LISTEN, revokeThere],
    // These the aggregate itself refuses.
    ['for what no backend has, whose caller was revoked', 'tools/call', NOBODYS, revokeThere],
    ['whose caller was revoked', 'resources/read', { uri: 'memo://nobody' }, revokeThere],
    ['whose token is no longer trusted', 'tools/call', TOOL, distrust],
  ])('row 12: is refused %s: %s', async (what, method, params, lose) => {
    const subject = `${what}, ${method}`;
    const token = await changing.gateway.token('all', { sub: subject });
    changing.forget();
    const release = holdJobs();
    const { done } = await beginJob(() =>
      postStateless(changing.access.url, method, { ...params, padding: PADDING }, { token }),
    );
    await lose(subject);
    release();
    expect((await done).status).toBe(401);
    expect([...changing.left.seen(), ...changing.right.seen()]).toEqual([]);
  });

  it('row 12: is passed on where its caller is still good after a change', async () => {
    const token = await changing.gateway.token('all');
    const release = holdJobs();
    const { done } = await beginJob(() =>
      postStateless(changing.access.url, 'tools/call', { ...TOOL, padding: PADDING }, { token }),
    );
    await changing.applyPolicy(`${ALLOW_ALL}# changed\n`);
    release();
    expect((await done).messages).toMatchObject([{ result: { content: [{ type: 'text' }] } }]);
  });
});

describe('a response that waits for its inspection', () => {
  it.each<[string, Lose]>([
    ['token has expired', expire],
    ['caller was revoked', ({ subject }) => revoke(subject)],
    ['session was ended', ({ session }) => end(session)],
  ])('row 15: passes where it is JSON, though its %s', async (what, lose) => {
    const caller = await openCaller(`result, ${what}`, lose === expire ? 2_000 : 60_000);
    rig.upstream.answerCalls(() => textResult(LONG));
    const release = holdJobs();
    const params = { name: 'read_record', arguments: { id: 'one' } };
    const { done } = await beginJob(() => caller.session.ask(7, 'tools/call', params));
    await lose(caller);
    release();
    expect((await done).messages).toMatchObject([{ result: { content: [{ type: 'text' }] } }]);
    await expectOutcome(caller.subject, 'forwarded', []);
  });

  it('row 2: does not pass where it is streamed and its caller was revoked', async () => {
    const caller = await openCaller('result in a stream');
    rig.upstream.obey(onMethod('tools/call', (request) => stream([resultFor(request, textResult(LONG))])));
    const release = holdJobs();
    const params = { name: 'read_record', arguments: { id: 'one' } };
    const { done } = await beginJob(() => caller.session.ask(7, 'tools/call', params));
    await revoke(caller.subject);
    release();
    expect(await done).toMatchObject({ status: 200, text: '' });
    await expectOutcome(caller.subject, 'withheld', ['token-revoked']);
  });
});

describe('a token that its issuer is asked about', () => {
  const asked = sharedGateway({
    issuer: ['introspection: {clientId: gateway, clientSecret: {env: CLIENT}, cacheTtl: 1ms}'],
    env: { CLIENT: makeSecret() },
  });

  it('rows 2 and 4: is asked about again when files change, by a response and by no held stream', async () => {
    let active = true;
    asked.gateway.issuer.answerAbout(() => {
      const exp = Math.floor(Date.now() / 1000) + 60;
      const good = { sub: 'alice', client_id: 'ide', aud: asked.access.url, exp };
      return active ? { active, ...good } : { active };
    });
    const token = makeSecret();
    const { headers } = await openRawSession(asked.access.url, { token });
    const begun = {
      jsonrpc: '2.0',
      method: 'notifications/message',
      params: { level: 'info', data: 'begun' },
    };
    asked.upstream.obey((request) =>
      request.httpMethod === 'GET' || request.method === 'tools/call' ? stream([begun], 'hold') : undefined,
    );
    const call = {
      jsonrpc: '2.0',
      id: 7,
      method: 'tools/call',
      params: { ...CALL, arguments: { id: 'one' } },
    };
    const { url } = asked.access;
    const response = await listenOn(await sendRaw(url, call, { headers }));
    const held = await listenOn(await fetch(url, { headers: { ...headers, accept: 'text/event-stream' } }));
    await expect
      .poll(() => [response.text(), held.text()], PATIENT)
      .toEqual([...[expect.stringContaining('begun'), expect.stringContaining('begun')]]);
    active = false;
    // Nobody asks the issuer by himself.
    await asked.gateway.metrics();
    expect([response.isOver(), held.isOver()]).toEqual([false, false]);
    await asked.gateway.writePolicy('open', `${ALLOW_ALL}# changed\n`);
    await asked.gateway.reload();
    await expect.poll(() => response.isOver(), PATIENT).toBe(true);
    expect(response.text()).not.toContain('error');
    expect(held.isOver()).toBe(false);
    const outcome = async () =>
      (await asked.gateway.audit()).find(
        (line) => line['type'] === 'mcp.outcome' && line['target'].method === 'tools/call',
      )?.['decision'];
    await expect.poll(outcome, PATIENT).toMatchObject({
      ...{ action: 'withheld', reasons: ['token-signature'] },
    });
  });

  it('row 2: what comes meanwhile waits for the answer, and is not written where none comes', async () => {
    const { issuer } = asked.gateway;
    const exp = Math.floor(Date.now() / 1000) + 60;
    const good = { sub: 'bob', client_id: 'ide', aud: asked.access.url, exp };
    issuer.answerAbout(() => ({ active: true, ...good }));
    const { url } = asked.access;
    const { headers } = await openRawSession(url, { token: makeSecret() });
    const { passed, open: release } = createGate();
    asked.upstream.obey(
      onMethod('tools/call', (request) => ({
        ...{ kind: 'chunks', contentType: 'text/event-stream', ending: 'end', gate: passed },
        chunks: [': begun\n\n', sseEvent(resultFor(request, textResult('late')))],
      })),
    );
    const params = { ...CALL, arguments: { id: 'one' } };
    const call = { jsonrpc: '2.0', id: 7, method: 'tools/call', params };
    const response = await listenOn(await sendRaw(url, call, { headers }));
    issuer.misbehave('silent', 'introspection');
    const before = issuer.hits.get('/introspect') ?? 0;
    await asked.gateway.writePolicy('open', `${ALLOW_ALL}# changed again\n`);
    await asked.gateway.reload();
    await expect.poll(() => issuer.hits.get('/introspect') ?? 0, PATIENT).toBeGreaterThan(before);
    release();
    // Time enough for what the upstream sends to come.
    for (let turn = 0; turn < 3; turn += 1) await asked.gateway.metrics();
    issuer.hangUp();
    await expect.poll(() => response.isOver(), PATIENT).toBe(true);
    expect(response.text()).not.toContain('late');
  });
});
