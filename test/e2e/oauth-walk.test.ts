// The OAuth walk of both SDKs against a real authorization server and a protected MCP server, before any
// gateway: what the walk needs of a resource server is what the gateway must give.

import { decodeJwt } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import { startOidcProvider } from '../support/authorization-servers.js';
import { canary } from '../support/canary.js';
import { createWalkProvider, finishWalk } from '../support/oauth-clients.js';
import { connectSdkV1, connectSdkV2, createTransportV1, createTransportV2 } from '../support/sdk-clients.js';
import { startSdkV2Server } from '../support/sdk-servers.js';
import { shared } from '../support/with-gateway.js';

const METADATA_PATH = '/.well-known/oauth-protected-resource/mcp';

/** The least of a resource server: metadata, and a challenge where no token was sent. */
function guard(request: Request): Response | undefined {
  const { origin, pathname } = new URL(request.url);
  if (pathname === METADATA_PATH) {
    return Response.json({
      resource: `${origin}/mcp`,
      authorization_servers: [issuer.issuer],
      scopes_supported: ['notes:read'],
    });
  }
  if (request.headers.has('authorization')) return undefined;
  const challenge = `Bearer resource_metadata="${origin}${METADATA_PATH}", scope="notes:read"`;
  return new Response(null, { status: 401, headers: { 'www-authenticate': challenge } });
}

const issuer = shared(() => startOidcProvider());
const server = shared(() => startSdkV2Server({ guard }));
beforeAll(async () => {
  // No gateway stands before it: it may see the tokens that are meant for it.
  canary.watchIssuer(Number(new URL(server.url).port));
});

describe('OAuth walk', () => {
  it('[D-13] takes SDK v1 from a 401 to a call with a token for this resource', async () => {
    const provider = createWalkProvider();
    await expect(connectSdkV1(server.url, { provider })).rejects.toThrow(/[Uu]nauthorized/);
    const { authorizationUrl } = provider.facts();
    expect(authorizationUrl?.searchParams.get('code_challenge_method')).toBe('S256');
    expect(authorizationUrl?.searchParams.get('resource')).toBe(server.url);
    await finishWalk(provider, createTransportV1(server.url, { provider }));
    const claims = decodeJwt(provider.facts().tokens?.access_token ?? '');
    expect(claims.aud).toBe(server.url);
    const { client, close } = await connectSdkV1(server.url, { provider });
    expect((await client.listTools()).tools.length).toBeGreaterThan(0);
    await close();
  });

  it('[D-13] takes SDK v2 the same way in the stateless era', async () => {
    const provider = createWalkProvider();
    await expect(connectSdkV2(server.url, '2026', { provider })).rejects.toThrow();
    await finishWalk(provider, createTransportV2(server.url, { provider }));
    const { client, close } = await connectSdkV2(server.url, '2026', { provider });
    const echoed = await client.callTool({ name: 'echo', arguments: { text: 'walked' } });
    expect(JSON.stringify(echoed.content)).toContain('walked');
    await close();
  });
});
