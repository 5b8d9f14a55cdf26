// The life of a caller's tokens with a real authorization server and real clients: opaque tokens that it
// is asked about, refreshes in the middle of a session, and a step up to more scopes.
// RFC 7662, RFC 6749 §6; MCP 2025-11-25 and 2026-07-28, scope challenge handling.

import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { type OidcProvider, startOidcProvider } from '../support/authorization-servers.js';
import { ALLOW_ALL, type RunningGateway, startTestGateway } from '../support/gateway.js';
import { createWalkProvider, finishWalk, registerClient, type WalkProvider } from '../support/oauth-clients.js';
import { connectSdkV1, connectSdkV2, createTransportV1, createTransportV2 } from '../support/sdk-clients.js';
import { type SdkV2Server, startSdkV2Server } from '../support/sdk-servers.js';
import { shared } from '../support/with-gateway.js';

const LIFETIME_SECONDS = 3;

type Stage = {
  readonly issuer: OidcProvider;
  readonly server: SdkV2Server;
  readonly gateway: RunningGateway;
  readonly url: string;
  close(): Promise<void>;
};

async function startStage(
  provider: Parameters<typeof startOidcProvider>[0],
  parts: {
    readonly policy?: string;
    readonly issuer?: (provider: OidcProvider) => readonly string[];
    readonly env?: (provider: OidcProvider) => Readonly<Record<string, string>>;
  } = {},
): Promise<Stage> {
  const issuer = await startOidcProvider(provider);
  const server = await startSdkV2Server();
  const gateway = await startTestGateway({
    upstreams: [
      { name: 'notes', url: server.url, more: ['scopesSupported: ["notes:read"]'] },
      { name: 'other', url: server.url },
    ],
    policies: { open: parts.policy ?? ALLOW_ALL },
    issuerUrl: issuer.issuer,
    ...(parts.issuer === undefined ? {} : { issuer: parts.issuer(issuer) }),
    ...(parts.env === undefined ? {} : { env: parts.env(issuer) }),
  });
  return {
    issuer,
    server,
    gateway,
    url: gateway.url('notes'),
    async close() {
      await gateway.close();
      await server.close();
      await issuer.close();
    },
  };
}

async function logIn(provider: WalkProvider, url: string): Promise<void> {
  await expect(connectSdkV1(url, { provider })).rejects.toThrow(/[Uu]nauthorized/);
  await finishWalk(provider, createTransportV1(url, { provider }));
}

const tokenOf = (provider: WalkProvider): string => provider.facts().tokens?.access_token ?? '';

describe('an opaque token of a real authorization server', () => {
  const stage = shared(() =>
    startStage(
      { format: 'opaque' },
      {
        issuer: ({ machine }) => [`introspection: {clientId: ${machine.clientId}, clientSecret: {env: SECRET}}`],
        env: ({ machine }) => ({ SECRET: machine.clientSecret }),
      },
    ),
  );

  it('[TOK-01] opens what it was issued for, by what the server says of it, and nothing else', async () => {
    const provider = createWalkProvider();
    await logIn(provider, stage.url);
    expect(tokenOf(provider)).not.toContain('.');
    const { client, close } = await connectSdkV1(stage.url, { provider });
    const sum = await client.callTool({ name: 'add', arguments: { a: 1, b: 2 } });
    expect(sum.structuredContent).toEqual({ sum: 3 });
    await close();
    const line = (await stage.gateway.audit()).findLast((one) => one['target']?.name === 'add');
    expect(line?.['actor']).toMatchObject({
      iss: stage.issuer.issuer,
      sub: 'alice',
      client_id: provider.facts().client?.client_id,
      token: { aud: stage.url, scopes: ['notes:read'] },
    });
    const next = connectSdkV1(stage.gateway.url('other'), { token: tokenOf(provider) });
    await expect(next).rejects.toThrow('The token was not issued for this resource.');
    const seen = JSON.stringify(stage.server.seen());
    expect(seen).not.toContain(tokenOf(provider));
    expect(JSON.stringify(await stage.gateway.audit())).not.toContain(tokenOf(provider));
  });
});

describe('a refresh in the middle of a session', () => {
  const stage = shared(() => startStage({ lifetimeSeconds: LIFETIME_SECONDS, refreshes: true }));

  it('[TOK-12] goes on with the session it had, and streams end with the token that opened them', async () => {
    const provider = createWalkProvider({ refreshes: true });
    await logIn(provider, stage.url);
    const { client, transport, close } = await connectSdkV1(stage.url, { provider });
    const [session, first] = [transport.sessionId, tokenOf(provider)];
    expect(session).toBeTruthy();
    const echo = (text: string) => client.callTool({ name: 'echo', arguments: { text } });
    expect((await echo('before')).content).toEqual([{ type: 'text', text: 'before' }]);
    const stream = await fetch(stage.url, {
      headers: {
        authorization: `Bearer ${first}`,
        'mcp-session-id': session ?? '',
        'mcp-protocol-version': '2025-11-25',
        accept: 'text/event-stream',
      },
    });
    expect(stream.status).toBe(200);
    // Its end comes by itself: nobody closes it.
    await stream.text();
    await sleep(100);
    expect((await echo('after')).content).toEqual([{ type: 'text', text: 'after' }]);
    expect(tokenOf(provider)).not.toBe(first);
    expect(transport.sessionId).toBe(session);
    await close();
    const started = (await stage.gateway.audit()).filter(
      (line) => line['type'] === 'mcp.decision' && line['target'].method === 'initialize',
    );
    expect(started).toHaveLength(1);
    const failed = (await stage.gateway.audit()).filter((line) => line['type'] === 'auth.failure');
    expect(failed.map((line) => line['decision'].reasons[0])).toContain('token-expired');
  }, 20_000);
});

describe('a step up', () => {
  const POLICY = `version: 1
policy: open
rules:
  - {id: read, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: [echo]}, scopes: ["notes:read"]}
  - {id: add, effect: allow, who: {anyone: true}, what: {upstreams: ["*"], tools: [add]}, scopes: ["notes:read", "notes:write"]}
`;
  const stage = shared(() => startStage({}, { policy: POLICY }));

  /** A provider whose client may ask for any scope. */
  async function registered(): Promise<WalkProvider> {
    const provider = createWalkProvider();
    const client = await registerClient(stage.issuer.issuer, provider.clientMetadata);
    await provider.saveClientInformation?.(client);
    return provider;
  }

  const ECHO = { name: 'echo', arguments: { text: 'read' } };
  const ADD = { name: 'add', arguments: { a: 1, b: 2 } };
  const scopesAsked = (provider: WalkProvider): readonly string[] =>
    (provider.facts().authorizationUrl?.searchParams.get('scope') ?? '').split(' ').sort();

  it('[TOK-14] takes SDK v1 from a refused call to a token with all that it needs', async () => {
    const provider = await registered();
    await logIn(provider, stage.url);
    expect(scopesAsked(provider)).toEqual(['notes:read']);
    const { client, close } = await connectSdkV1(stage.url, { provider });
    expect((await client.callTool(ECHO)).isError).toBeFalsy();
    await expect(client.callTool(ADD)).rejects.toThrow(/[Uu]nauthorized|scope/);
    // One challenge, once: not a scope at a time.
    expect(scopesAsked(provider)).toEqual(['notes:read', 'notes:write']);
    await finishWalk(provider, createTransportV1(stage.url, { provider }));
    await close();
    const again = await connectSdkV1(stage.url, { provider });
    expect((await again.client.callTool(ADD)).structuredContent).toEqual({ sum: 3 });
    expect((await again.client.callTool(ECHO)).isError).toBeFalsy();
    await again.close();
  });

  it('[TOK-14] takes SDK v2 the same way, statelessly', async () => {
    const provider = await registered();
    await expect(connectSdkV2(stage.url, '2026', { provider })).rejects.toThrow();
    await finishWalk(provider, createTransportV2(stage.url, { provider }));
    const { client, close } = await connectSdkV2(stage.url, '2026', { provider });
    expect((await client.callTool(ECHO)).isError).toBeFalsy();
    await expect(client.callTool(ADD)).rejects.toThrow();
    expect(scopesAsked(provider)).toEqual(['notes:read', 'notes:write']);
    await finishWalk(provider, createTransportV2(stage.url, { provider }));
    await close();
    const again = await connectSdkV2(stage.url, '2026', { provider });
    expect((await again.client.callTool(ADD)).structuredContent).toEqual({ sum: 3 });
    await again.close();
  });
});
