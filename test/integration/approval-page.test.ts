// The page on which callers answer, on a running gateway behind a real OpenID Connect provider: from a call to its link, the
// login, the yes and the repeated call; also where each client knows the person by another subject.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CallerStage, linkIn, startCallerStage } from '../support/caller-stage.js';
import { formTokenOf, sendOnce, TestBrowser } from '../support/console-rig.js';
import { decisionOf, startRig, UPSTREAM } from '../support/gateway.js';
import type { JsonObject } from '../support/json.js';
import { callStateless, errorOf, openSession, requestStateless, resultOf } from '../support/wire-client.js';

const POLICY = `version: 1
policy: open
rules:
  - {id: all, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: ["*"]}}
  - id: ask
    effect: require
    who: {issuers: [test]}
    what: {upstreams: ["*"], tools: [write_record, read_record]}
    reason: Writes to production.
    approval: {by: caller}
sensitive:
  ${UPSTREAM}/read_record: [/arguments/id]
`;
const ARGUMENTS = { id: 'one', text: 'two' };

const startStage = (pairwise: boolean, login = '') => startCallerStage({ policies: { open: POLICY }, pairwise, login });

const call = ({ rig, token }: CallerStage) => callStateless(rig.as(token), 'write_record', ARGUMENTS);
const uses = ({ rig }: CallerStage): number =>
  rig.upstream.uses().filter((use) => JSON.stringify(use).includes('write_record')).length;

/** Calls, and finds the link in what the client is told. */
async function askFor(stage: CallerStage): Promise<string> {
  const reply = await call(stage);
  expect(decisionOf(reply).reason).toBe('approval-required');
  return linkIn(reply.text);
}

describe.each([
  ['the same subject for all clients', false, ''],
  ['another subject for each client, and a claim', true, ', match: person'],
])('an issuer with %s', (_what, pairwise, more) => {
  let stage: CallerStage;
  beforeAll(async () => {
    stage = await startStage(pairwise, more);
  });
  afterAll(() => stage?.close());

  it('lets its caller approve a call, which then passes once', async () => {
    const link = await askFor(stage);
    expect(uses(stage)).toBe(0);
    const browser = new TestBrowser();
    expect((await browser.open(link)).body).toContain('Log in to answer');
    const page = await browser.submit(link, { do: 'login' });
    expect(page.body).toContain('Do you approve this request?');
    for (const shown of ['Writes to production.', 'write_record', '&quot;one&quot;', '&quot;two&quot;'])
      expect(page.body).toContain(shown);
    const asked = new URL(browser.visited.find((one) => one.startsWith(stage.provider.issuer)) ?? '');
    expect(asked.searchParams.get('max_age')).toBe('300');
    const done = await browser.submit(link, { form: formTokenOf(page), do: 'grant' });
    expect(done.body).toContain('You approved this request.');
    expect((await call(stage)).text).not.toContain('"isError":true');
    expect(uses(stage)).toBe(1);
    expect(await askFor(stage)).not.toBe(link);
  });

  it('gives the link to a client that shows links, in the form of its revision', async () => {
    const url = { elicitation: { url: {} } };
    const meta = { 'io.modelcontextprotocol/clientCapabilities': url };
    const send = (text: string, more: JsonObject = {}) =>
      requestStateless(stage.rig.as(stage.token), 'tools/call', {
        ...{ name: 'write_record', arguments: { id: 'one', text }, _meta: meta, ...more },
      });
    const asked = resultOf(await send('by a result'));
    expect(asked).toMatchObject({
      resultType: 'input_required',
      inputRequests: { 'gw.approval': { method: 'elicitation/create', params: { mode: 'url' } } },
    });
    const opened = { inputResponses: { 'gw.approval': { action: 'accept' } } };
    expect(decisionOf(await send('by a result', opened)).reason).toBe('approval-required');
    const session = await openSession(stage.rig.as(stage.token), url);
    const error = errorOf(await session.call('write_record', { id: 'one', text: 'by an error' }));
    expect(error['code']).toBe(-32042);
    const [elicitation] = (error['data'] as { elicitations: readonly { url: string; elicitationId: string }[] })
      .elicitations;
    expect(elicitation?.url).toContain(`/.well-known/sallyport/approve/${elicitation?.elicitationId}`);
    const again = await session.call('write_record', { id: 'one', text: 'by an error' });
    expect(again.text).toContain('It is still waiting.');
    expect(uses(stage)).toBe(1);
  });

  it('leaves the cause of a refused login in the log, bounded and in words of the gateway', async () => {
    const link = await askFor(stage);
    const headers = { 'content-type': 'application/x-www-form-urlencoded', origin: new URL(link).origin };
    const begun = await sendOnce(link, { method: 'POST', headers, body: 'do=login' });
    const state = /state=([\w-]+)/.exec(begun.body)?.[1] ?? '';
    const cookie = [begun.headers['set-cookie']]
      .flat()
      .map((one) => one?.split(';')[0])
      .join('; ');
    const back = `${link.replace(/[0-9a-f]{32}$/, 'callback')}?error=access_denied&error_description=evil-text&state=${state}`;
    const statuses = [];
    for (let count = 0; count < 15; count += 1) statuses.push((await sendOnce(back, { headers: { cookie } })).status);
    expect(statuses).toEqual([403, ...Array.from({ length: 14 }, () => 400)]);
    const lines = stage.rig.gateway
      .log()
      .split('\n')
      .filter((line) => line.includes('a login to answer an approval was'));
    expect(lines[0]).toContain('the issuer refused, or what the browser brought back');
    expect(lines[1]).toContain('taken a second time');
    expect(lines).toHaveLength(10);
    expect(stage.rig.gateway.log()).not.toContain('evil-text');
  });

  it('shows a sensitive argument when the person asks for it, and not before', async () => {
    const value = 'number-of-ann';
    const link = linkIn((await callStateless(stage.rig.as(stage.token), 'read_record', { id: value })).text);
    const browser = new TestBrowser();
    const page = await browser.submit(link, { do: 'login' });
    expect(page.body).toContain('Show what is marked as sensitive');
    for (const path of ['', '?part=/id', '?part=']) expect((await browser.open(link + path)).body).not.toContain(value);
    for (const path of ['?show=sensitive', '?show=sensitive&part=/id'])
      expect((await browser.open(link + path)).body).toContain(value);
  });

  it('keeps what its caller refused from passing', async () => {
    const link = await askFor(stage);
    const browser = new TestBrowser();
    const page = await browser.submit(link, { do: 'login' });
    await browser.submit(link, { form: formTokenOf(page), do: 'deny' });
    const refused = await call(stage);
    expect([decisionOf(refused).reason, refused.text.includes('A person refused it.')]).toEqual([
      'approval-denied',
      true,
    ]);
    expect((await browser.open(link)).body).toContain('it was refused');
  });
});

it('an issuer that says that it has another subject for each client is refused without a claim', async () => {
  const stage = await startStage(true);
  const link = await askFor(stage);
  const page = await new TestBrowser().submit(link, { do: 'login' });
  expect([page.status, page.body.includes('would not tell who you are')]).toEqual([503, true]);
  await stage.close();
});

it('a gateway without logins has no such page', async () => {
  const rig = await startRig({});
  const { origin } = new URL(rig.access.url);
  const [page, other] = [
    await sendOnce(`${origin}/.well-known/sallyport/approve/${'0'.repeat(32)}`),
    await sendOnce(`${origin}/no-such-path`),
  ];
  expect([page.status, page.body]).toEqual([other.status, other.body]);
  expect(page.status).toBe(404);
  await rig.close();
});
