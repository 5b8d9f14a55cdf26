// HTTP+SSE upstreams under exchanged tokens: the channel, what is posted on it, and the gateway's own. And what
// an exchange says of the acting party and of an audience.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { claimsOf, startExchangeRig } from '../support/deployments.js';
import { type RunningGateway, startTestGateway } from '../support/gateway.js';
import { openRawChannel } from '../support/http-sse-clients.js';
import { makeSecretFiles, type SecretFiles } from '../support/secrets.js';
import { type SseRequest, type SseServer, startSseServer } from '../support/sse-server.js';
import { honestAnswer, startTokenServer } from '../support/tokens.js';
import { bearer, callStateless } from '../support/wire-client.js';
import { shared, withStarted } from '../support/with-gateway.js';

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: {
    protocolVersion: '2024-11-05',
    capabilities: {},
    clientInfo: { name: 'raw', version: '1' },
  },
};

describe('a channel of HTTP+SSE', () => {
  let files: SecretFiles;
  let upstream: SseServer;
  let gateway: RunningGateway;
  const server = shared(() => startTokenServer());
  beforeAll(async () => {
    server.obey((request) =>
      honestAnswer(request, {
        claims: { sub: claimsOf(request.form.get('subject_token') ?? '')['sub'] },
      }),
    );
    files = await makeSecretFiles();
    const secret = await files.write('client', 'client secret');
    const own = await files.write('own', 'Own key');
    upstream = await startSseServer();
    gateway = await startTestGateway({
      upstreams: [
        {
          name: 'old',
          url: upstream.url,
          more: [
            'transport: http-sse',
            'identity: {}',
            `credentials: {type: token-exchange, tokenEndpoint: "${server.url}", network: loopback, clientId: g, clientSecret: {file: ${secret}}}`,
            `pinning: {maxAge: 10m, credentials: {type: static, header: X-Own, value: {file: ${own}}}}`,
          ],
        },
      ],
    });
  });
  afterAll(async () => {
    await gateway.close();
    await upstream.close();
    await files.close();
  });

  const subjectOf = ({ headers }: SseRequest): unknown =>
    headers['authorization'] === undefined ? headers['x-own'] : claimsOf(headers['authorization'])['sub'];

  it("[CRD-09] [CRD-10] and what is posted on it are under the caller's token and name", async () => {
    const before = upstream.seen().length;
    expect(new Set(upstream.seen().map(subjectOf))).toEqual(new Set(['Own key']));
    const token = await gateway.token('old', { sub: 'bob' });
    const channel = await openRawChannel(`${gateway.url('old')}/sse`, bearer(token));
    const post = (message: object): Promise<Response> =>
      fetch(new URL(channel.address, gateway.publicUrl), {
        method: 'POST',
        headers: { ...bearer(token), 'content-type': 'application/json' },
        body: JSON.stringify(message),
      });
    await post(INITIALIZE);
    await channel.answer(1);
    await post({ jsonrpc: '2.0', method: 'notifications/initialized' });
    const params = { name: 'echo', arguments: { text: 'hello' } };
    await post({ jsonrpc: '2.0', id: 2, method: 'tools/call', params });
    expect(JSON.stringify(await channel.answer(2))).toContain('hello');
    channel.leave();
    const seen = upstream.seen().slice(before);
    expect(seen.length).toBeGreaterThanOrEqual(4);
    expect(new Set(seen.map(subjectOf))).toEqual(new Set(['bob']));
    const asserted = seen.map(({ headers }) => claimsOf(headers['sallyport-assertion'] ?? ''));
    expect(new Set(asserted.map(({ sub }) => sub))).toEqual(new Set(['bob']));
  });
});

describe('an exchange', () => {
  it('[CRD-05] names the acting party and the audience that are configured', async () => {
    const files = await makeSecretFiles();
    const actor = await files.write('actor', 'actor.token.here');
    await withStarted(
      () =>
        startExchangeRig({
          more: `, audience: records, actorToken: {file: ${actor}}, clientAuthentication: client_secret_post`,
        }),
      async (rig) => {
        try {
          expect((await callStateless(rig.access, 'read_record', { id: 'one' })).status).toBe(200);
          const form = Object.fromEntries(rig.server.seen.at(-1)?.form ?? []);
          expect(form).toMatchObject({
            audience: 'records',
            actor_token: 'actor.token.here',
            actor_token_type: 'urn:ietf:params:oauth:token-type:jwt',
            client_id: 'gateway',
            client_secret: expect.any(String),
          });
          expect(form).not.toHaveProperty('resource');
          for (const secret of ['actor.token.here', String(form['client_secret']), rig.ownValue]) {
            expect(rig.gateway.log()).not.toContain(secret);
            expect(JSON.stringify(await rig.gateway.audit())).not.toContain(secret);
          }
        } finally {
          await files.close();
        }
      },
    );
  });
});
