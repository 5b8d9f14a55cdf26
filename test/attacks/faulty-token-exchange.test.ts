// Case 50: the authorization server that exchanges tokens is down, slow, or answers with something that it
// should not. Nothing leaves, nothing is shown in its place, and the caller's token least of all.

import { afterEach, describe, expect, it, vi } from 'vitest';
import { expectNoTraceOf, startExchangeRig } from '../support/deployments.js';
import { decisionOf, expectNothingForwarded, linesOf } from '../support/gateway.js';
import { honestAnswer, mintJwt, type TokenReply, type TokenRequest } from '../support/tokens.js';
import { callStateless, type Reply } from '../support/wire-client.js';
import { shared } from '../support/with-gateway.js';

const REASON_CODE = 1507;

describe('an exchange that goes wrong', () => {
  let token: string;
  const rig = shared(() =>
    startExchangeRig({
      more: ', scopes: ["records:read"]',
      upstream: ['limits: {requestTimeout: 3s}'],
    }),
  );
  afterEach(() => rig.server.repent());

  /** A caller of its own for each case: what is kept for one says nothing of the next. */
  async function callAs(subject: string): Promise<Reply> {
    token = await rig.gateway.token('target', { sub: subject });
    rig.upstream.forget();
    return callStateless(rig.as(token), 'read_record', { id: 'one' });
  }

  async function expectRefused(reply: Reply): Promise<void> {
    expect(reply.status).toBe(502);
    expect(reply.message?.['error']).toMatchObject({ code: REASON_CODE });
    expectNothingForwarded(rig);
    const lines = await linesOf(rig.gateway, decisionOf(reply).id, 2);
    expect(lines.at(-1)?.['decision'].reasons).toContain('upstream-credentials');
    await expectNoTraceOf(rig, [token]);
  }

  const own = (request: TokenRequest): string => request.form.get('subject_token') ?? '';
  const HOSTILE: readonly (readonly [string, (request: TokenRequest) => TokenReply])[] = [
    ['is down', () => ({ kind: 'destroy' })],
    ['answers too late', () => ({ kind: 'hold' })],
    ['answers with an error', () => ({ kind: 'raw', status: 500, body: '{}' })],
    ['answers with a page', () => ({ kind: 'raw', status: 200, type: 'text/html', body: '<p>in' })],
    ['answers with too much', () => ({ kind: 'raw', status: 200, body: Buffer.alloc(1024 * 1024, 0x20) })],
    [
      'redirects',
      () => ({
        kind: 'raw',
        status: 307,
        headers: { location: `${rig.server.origin}/elsewhere` },
        body: '',
      }),
    ],
    ['refuses the token', () => ({ kind: 'json', status: 400, body: { error: 'invalid_grant' } })],
    ['refuses the gateway', () => ({ kind: 'json', status: 401, body: { error: 'invalid_client' } })],
    ['issues wider scopes', (request) => honestAnswer(request, { answer: { scope: 'records:read admin' } })],
    ['writes wider scopes into the token', (request) => honestAnswer(request, { claims: { scope: 'admin' } })],
    ['issues for another audience', (request) => honestAnswer(request, { claims: { aud: 'https://other.example' } })],
    ['issues for no audience', (request) => honestAnswer(request, { claims: { aud: undefined } })],
    [
      'issues for the gateway',
      (request) =>
        honestAnswer(request, {
          claims: { aud: [request.form.get('resource'), rig.gateway.url('target')] },
        }),
    ],
    ['issues what has expired', (request) => honestAnswer(request, { claims: { exp: 1 } })],
    ['issues for no time', (request) => honestAnswer(request, { answer: { expires_in: 0 } })],
    ['issues for less than no time', (request) => honestAnswer(request, { answer: { expires_in: -5 } })],
    ['issues another type of token', (request) => honestAnswer(request, { answer: { token_type: 'DPoP' } })],
    ['issues no access token', (request) => honestAnswer(request, { answer: { token_type: 'N_A' } })],
    ['does not say what it issued', (request) => honestAnswer(request, { answer: { issued_token_type: undefined } })],
    [
      'issues a refresh token',
      (request) =>
        honestAnswer(request, {
          answer: { issued_token_type: 'urn:ietf:params:oauth:token-type:refresh_token' },
        }),
    ],
    ["gives the caller's token back", (request) => honestAnswer(request, { answer: { access_token: own(request) } })],
    ['issues what breaks a header', (request) => honestAnswer(request, { answer: { access_token: 'a\r\nx-evil: 1' } })],
    ['issues an endless token', (request) => honestAnswer(request, { answer: { access_token: 'a'.repeat(9000) } })],
    ['issues nothing', () => ({ kind: 'json', body: {} })],
    ['answers with a list', () => ({ kind: 'json', body: [mintJwt({})] })],
  ];

  it.each(HOSTILE)('[CRD-06] [CRD-07] where the server %s', async (what, order) => {
    rig.server.obey(order);
    const asked = rig.server.seen.length;
    await expectRefused(await callAs(`user ${what}`));
    expect(rig.server.seen.length).toBe(asked + 1);
  });

  it('[CRD-05] passes where the server is honest, with its token and no other', async () => {
    const reply = await callAs('good');
    expect(reply.status).toBe(200);
    const issued = rig.server.issued.at(-1) ?? '';
    expect(rig.shown()).toEqual([`Bearer ${issued}`]);
    const { form, headers } = rig.server.seen.at(-1) ?? {
      form: new URLSearchParams(),
      headers: {},
    };
    expect(Object.fromEntries(form)).toEqual({
      grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
      subject_token: token,
      subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      requested_token_type: 'urn:ietf:params:oauth:token-type:access_token',
      resource: rig.upstream.url,
      scope: 'records:read',
    });
    expect(headers['authorization']).toMatch(/^Basic /);
    await expectNoTraceOf(rig, [token]);
    await expectNoTraceOf(rig, [issued], { upstream: false });
  });

  it('[CRD-07] asks the server no more often than once a moment while it fails', async () => {
    rig.server.obey(() => ({ kind: 'raw', status: 500, body: '{}' }));
    const asked = rig.server.seen.length;
    await callAs('flood');
    const replies = await Promise.all(
      Array.from({ length: 20 }, () => callStateless(rig.as(token), 'read_record', { id: 'one' })),
    );
    expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 502));
    expect(rig.server.seen.length).toBe(asked + 1);
    expectNothingForwarded(rig);
  });

  it('[CRD-07] names the trouble in the log and in the controls, in its own words', async () => {
    rig.server.obey(() => ({
      kind: 'json',
      status: 400,
      body: { error: 'canary\u001b[31m', error_description: 'canary' },
    }));
    await callAs('named');
    expect(rig.gateway.log()).toContain('credentials for an upstream could not be obtained');
    expect(rig.gateway.log()).toContain('an unknown error code');
    expect(rig.gateway.log()).not.toContain('canary');
    const degraded = 'sallyport_controls{control="upstream-credentials",state="degraded"} 1';
    await vi.waitFor(async () => expect(await rig.gateway.metrics()).toContain(degraded), {
      timeout: 5_000,
    });
    rig.server.repent();
    await callAs('well again');
    const armed = 'sallyport_controls{control="upstream-credentials",state="armed"} 1';
    await vi.waitFor(async () => expect(await rig.gateway.metrics()).toContain(armed), {
      timeout: 5_000,
    });
    const metrics = await rig.gateway.metrics();
    const labels = 'upstream="target",grant="token_exchange"';
    for (const error of ['', 'invalid'])
      expect(metrics).toMatch(
        new RegExp(`sallyport_token_request_duration_seconds_count\\{${labels},error_type="${error}"\\} [1-9]`),
      );
    expect(metrics).not.toContain('canary');
  });
});
