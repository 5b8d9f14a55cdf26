// Tokens that a real authorization server binds, in the hands of clients that know nothing of the gateway: an
// OAuth library with proofs and nonces, the official SDK over a fetch that proves, and a client certificate.
// Source: RFC 9449 §5 and §7; RFC 8705 §3; RFC 8707.

import { hash } from 'node:crypto';
import { request as ask } from 'node:https';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { calculateJwkThumbprint, decodeJwt, exportJWK } from 'jose';
import * as oauth from 'oauth4webapi';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CERTIFICATE_HEADER, startOidcProvider } from '../support/authorization-servers.js';
import { type RunningGateway, startTestGateway } from '../support/gateway.js';
import { startSdkV2Server } from '../support/sdk-servers.js';
import { makeAuthority } from '../support/tls.js';
import { statelessParts } from '../support/wire-client.js';
import { shared } from '../support/with-gateway.js';

const INSECURE = { [oauth.allowInsecureRequests]: true } as const;
const CALL = statelessParts('tools/call', { name: 'add', arguments: { a: 2, b: 3 } });
const authority = makeAuthority();
const [own, certificate, other] = [authority.issue(), authority.issue(), authority.issue()];

let gateway: RunningGateway;
let secured: RunningGateway;
let as: oauth.AuthorizationServer;

const issuer = shared(() => startOidcProvider());
const server = shared(() => startSdkV2Server());
beforeAll(async () => {
  const upstreams = (binding: string) => [{ name: 'notes', url: server.url, more: [`binding: ${binding}`] }];
  const issuerUrl = issuer.issuer;
  gateway = await startTestGateway({
    upstreams: upstreams('dpop'),
    listener: ['dpop: {nonce: required}'],
    issuerUrl,
  });
  secured = await startTestGateway({
    upstreams: upstreams('mtls'),
    tls: { cert: own.cert, key: own.key, clientCa: authority.cert },
    issuerUrl,
  });
  const found = await oauth.discoveryRequest(new URL(issuer.issuer), INSECURE);
  as = await oauth.processDiscoveryResponse(new URL(issuer.issuer), found);
});
afterAll(async () => {
  await secured?.close();
  await gateway?.close();
});

/** A token by client credentials, for a resource. */
async function fetchToken(
  client: { readonly clientId: string; readonly clientSecret: string },
  resource: string,
  options: oauth.ClientCredentialsGrantRequestOptions,
): Promise<oauth.TokenEndpointResponse> {
  const known = { client_id: client.clientId };
  const response = await oauth.clientCredentialsGrantRequest(
    as,
    known,
    oauth.ClientSecretBasic(client.clientSecret),
    { resource, scope: 'notes:read' },
    { ...options, ...INSECURE },
  );
  return oauth.processClientCredentialsResponse(as, known, response);
}

describe('a token that a real server binds to a key', () => {
  let keys: Awaited<ReturnType<typeof oauth.generateKeyPair>>;
  let proofs: oauth.DPoPHandle;
  let token: string;
  beforeAll(async () => {
    keys = await oauth.generateKeyPair('ES256', { extractable: true });
    proofs = oauth.DPoP({}, keys);
    const answer = await fetchToken(issuer.machine, gateway.url('notes'), { DPoP: proofs });
    expect(answer.token_type).toBe('dpop');
    token = answer.access_token;
  });

  const use = (DPoP?: oauth.DPoPHandle): Promise<Response> =>
    oauth.protectedResourceRequest(
      token,
      'POST',
      new URL(gateway.url('notes')),
      new Headers({
        ...CALL.headers,
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
      }),
      JSON.stringify(CALL.body),
      { ...(DPoP === undefined ? {} : { DPoP }), ...INSECURE },
    );

  it('[BND-30] says so, and works with an OAuth library that learns the nonce by itself', async () => {
    const jkt = await calculateJwkThumbprint(await exportJWK(keys.publicKey));
    expect(decodeJwt(token)['cnf']).toEqual({ jkt });
    const first = await use(proofs).catch((error: unknown) => error);
    expect(oauth.isDPoPNonceError(first)).toBe(true);
    const answer = await use(proofs);
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain('5');
    // The nonce of the last answer does for the next proof.
    expect((await use(proofs)).status).toBe(200);
  });

  it('[BND-30] is of no use to whoever has the token alone', async () => {
    const thief = oauth.DPoP({}, await oauth.generateKeyPair('ES256'));
    for (const handle of [undefined, thief]) {
      const refused = await use(handle).catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(oauth.WWWAuthenticateChallengeError);
      const { cause } = refused as oauth.WWWAuthenticateChallengeError;
      expect(cause[0]?.scheme).toBe('dpop');
    }
  });

  it('[BND-30] serves the SDK over a fetch that proves each of its requests', async () => {
    const sent: string[] = [];
    async function prove(url: string | URL, init: RequestInit = {}): Promise<Response> {
      const method = init.method ?? 'GET';
      sent.push(method);
      for (let attempt = 0; ; attempt += 1) {
        try {
          return await oauth.protectedResourceRequest(
            token,
            method,
            new URL(url),
            new Headers(init.headers),
            (init.body ?? undefined) as string | undefined,
            { DPoP: proofs, ...INSECURE },
          );
        } catch (error) {
          if (attempt > 0 || !oauth.isDPoPNonceError(error)) throw error;
        }
      }
    }
    const client = new Client({ name: 'bound', version: '1.0.0' });
    const transport = new StreamableHTTPClientTransport(new URL(gateway.url('notes')), {
      fetch: prove,
    });
    await client.connect(transport as Transport);
    const names = (await client.listTools()).tools.map(({ name }) => name);
    expect(names).toContain('add');
    const result = await client.callTool({ name: 'add', arguments: { a: 20, b: 22 } });
    expect(JSON.stringify(result.content)).toContain('42');
    await transport.terminateSession();
    await client.close();
    expect(new Set(sent)).toEqual(new Set(['POST', 'GET', 'DELETE']));
  });
});

describe('a token that a real server binds to a certificate', () => {
  function call(token: string, as?: typeof certificate): Promise<number> {
    return new Promise((resolve, reject) => {
      const identity = as === undefined ? {} : { cert: as.cert, key: as.key };
      const outgoing = ask(
        secured.url('notes'),
        {
          method: 'POST',
          agent: false,
          ca: authority.cert,
          ...identity,
          headers: {
            ...CALL.headers,
            accept: 'application/json, text/event-stream',
            'content-type': 'application/json',
            authorization: `Bearer ${token}`,
          },
        },
        (response) => {
          response.resume();
          resolve(response.statusCode ?? 0);
        },
      );
      outgoing.on('error', reject);
      outgoing.end(JSON.stringify(CALL.body));
    });
  }

  it('[BND-30] works over a connection with that certificate, and over no other', async () => {
    const headers = new Headers({ [CERTIFICATE_HEADER]: encodeURIComponent(certificate.cert) });
    const answer = await fetchToken(issuer.certified, secured.url('notes'), { headers });
    const { access_token: token } = answer;
    expect(decodeJwt(token)['cnf']).toEqual({
      'x5t#S256': hash('sha256', certificate.der, 'base64url'),
    });
    expect(await call(token, certificate)).toBe(200);
    expect(await call(token, other)).toBe(401);
    expect(await call(token)).toBe(401);
  });
});
