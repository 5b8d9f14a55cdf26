// The whole OAuth walk of both SDKs through the running gateway, with an authorization server that knows
// nothing of it. Sources: MCP 2025-11-25 authorization; RFC 7591, 7636, 8414, 8707, 9068, 9728.

import { decodeJwt } from 'jose';
import { describe, expect, it } from 'vitest';
import { startOidcProvider } from '../support/authorization-servers.js';
import { createWalkProvider, finishWalk, registerClient, type WalkProvider } from '../support/oauth-clients.js';
import { postStateless } from '../support/raw-mcp.js';
import { connectSdkV1, connectSdkV2, createTransportV1, createTransportV2 } from '../support/sdk-clients.js';
import { startSdkV2Server } from '../support/sdk-servers.js';
import { shared, sharedGateway } from '../support/with-gateway.js';

const POLICY = `version: 1
policy: readers
rules:
  - id: readers
    effect: allow
    who: {issuers: [test], groups: [eng]}
    what: {upstreams: ["*"], tools: [echo, add]}
    scopes: ["notes:read"]
  - id: writers
    effect: allow
    who: {anyone: true}
    what: {upstreams: [notes], tools: [slow]}
    scopes: ["notes:write"]
`;

const issuer = shared(() => startOidcProvider());
const server = shared(() => startSdkV2Server());
const gateway = sharedGateway(() => {
  const more = ['scopesSupported: ["notes:read"]'];
  return {
    upstreams: [
      { name: 'notes', url: server.url, more },
      { name: 'other', url: server.url, more },
    ],
    policies: { readers: POLICY },
    issuerUrl: issuer.issuer,
  };
});

/** Walks with SDK v1: refused first, then with a token. */
async function walk(provider: WalkProvider, url: string): Promise<void> {
  await expect(connectSdkV1(url, { provider })).rejects.toThrow(/[Uu]nauthorized/);
  await finishWalk(provider, createTransportV1(url, { provider }));
}

async function walkFor(upstream: string): Promise<string> {
  const provider = createWalkProvider();
  await walk(provider, gateway.url(upstream));
  return provider.facts().tokens?.access_token ?? '';
}

describe('OAuth walk through the gateway', () => {
  it('[E-24] begins with a 401 that names the metadata, and metadata that name the server', async () => {
    const url = gateway.url('notes');
    const { status, headers } = await postStateless(url, 'tools/list');
    expect(status).toBe(401);
    const challenge = headers.get('www-authenticate') ?? '';
    const place = /resource_metadata="([^"]+)"/.exec(challenge)?.[1] ?? '';
    expect(place).toBe(`${gateway.publicUrl}/.well-known/oauth-protected-resource/notes`);
    expect(challenge).toContain('scope="notes:read"');
    expect(challenge).not.toContain('error=');
    const document = await (await fetch(place)).json();
    expect(document).toMatchObject({
      resource: url,
      authorization_servers: [issuer.issuer],
      scopes_supported: ['notes:read'],
    });
  });

  it('[E-24] takes SDK v1 from a 401 to a call with a token for this resource alone', async () => {
    const provider = createWalkProvider();
    const url = gateway.url('notes');
    await expect(connectSdkV1(url, { provider })).rejects.toThrow(/[Uu]nauthorized/);
    const { authorizationUrl, client: registered } = provider.facts();
    expect(registered?.client_id).toBeTruthy();
    expect(authorizationUrl?.searchParams.get('code_challenge_method')).toBe('S256');
    expect(authorizationUrl?.searchParams.get('resource')).toBe(url);
    await finishWalk(provider, createTransportV1(url, { provider }));
    const claims = decodeJwt(provider.facts().tokens?.access_token ?? '');
    expect(claims).toMatchObject({ aud: url, iss: issuer.issuer, scope: 'notes:read' });
    const { client, close } = await connectSdkV1(url, { provider });
    const sum = await client.callTool({ name: 'add', arguments: { a: 1, b: 2 } });
    expect(sum.structuredContent).toEqual({ sum: 3 });
    await close();
    const line = (await gateway.audit()).findLast((one) => one['target']?.name === 'add');
    expect(line?.['actor']).toMatchObject({ sub: 'alice' });
  });

  it('[E-24] takes SDK v2 the same way in the stateless era', async () => {
    const provider = createWalkProvider();
    const url = gateway.url('notes');
    await expect(connectSdkV2(url, '2026', { provider })).rejects.toThrow();
    await finishWalk(provider, createTransportV2(url, { provider }));
    const { client, close } = await connectSdkV2(url, '2026', { provider });
    const echoed = await client.callTool({ name: 'echo', arguments: { text: 'walked' } });
    expect(echoed.content).toEqual([{ type: 'text', text: 'walked' }]);
    await close();
  });

  it('[E-25] gives a token that opens no other door and reaches nothing behind this one', async () => {
    const token = await walkFor('notes');
    const call = { name: 'echo', arguments: { text: 'mine' } };
    const here = await postStateless(gateway.url('notes'), 'tools/call', call, { token });
    expect(here.status).toBe(200);
    const next = await postStateless(gateway.url('other'), 'tools/call', call, { token });
    expect(next.status).toBe(401);
    expect(next.headers.get('www-authenticate')).toContain('error="invalid_token"');
    for (const { headers, body } of server.seen()) {
      expect(JSON.stringify(headers) + body).not.toContain(token);
      expect(headers['authorization']).toBeUndefined();
    }
  });

  it('[E-25] asks for the scope that is missing, and lets pass once it is granted', async () => {
    const call = { name: 'slow', arguments: { steps: 1 } };
    const url = gateway.url('notes');
    const short = await postStateless(url, 'tools/call', call, { token: await walkFor('notes') });
    expect(short.status).toBe(403);
    const challenge = short.headers.get('www-authenticate') ?? '';
    expect(challenge).toContain('error="insufficient_scope"');
    expect(challenge).toContain('notes:write');
    const provider = createWalkProvider();
    // Registered without a list of scopes, so that the authorization server decides about each.
    provider.saveClientInformation?.(await registerClient(issuer.issuer, provider.clientMetadata));
    await walk(provider, url);
    const { client, close } = await connectSdkV1(url, { provider });
    // The SDK answers the challenge by asking the user for more; the second walk grants it.
    await expect(client.callTool(call)).rejects.toThrow(/[Uu]nauthorized|scope/);
    expect(provider.facts().authorizationUrl?.searchParams.get('scope')).toContain('notes:write');
    await finishWalk(provider, createTransportV1(url, { provider }));
    await close();
    const again = await connectSdkV1(url, { provider });
    const done = await again.client.callTool(call);
    expect(JSON.stringify(done.content)).toContain('done after 1');
    await again.close();
  });
});
