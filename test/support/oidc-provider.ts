// A real authorization server for tests: oidc-provider with resource indicators, JWT access tokens,
// authorization code with PKCE, client credentials and dynamic registration. Every login is the test
// user, at once and without a page. Loopback only.

import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair } from 'jose';
import { type Context, Provider } from 'oidc-provider';
import { canary } from './canary.js';

export type OidcProvider = {
  readonly issuer: string;
  /** A client of its own, for client credentials. */
  readonly machine: { readonly clientId: string; readonly clientSecret: string };
  close(): Promise<void>;
};

/** Scopes that a resource offers unless the test names others. */
const DEFAULT_SCOPES = 'notes:read notes:write';
const INTERACTION_PATH = '/interaction/';

async function signingJwks(): Promise<object> {
  const keys = [];
  for (const alg of ['ES256', 'RS256']) {
    const { privateKey } = await generateKeyPair(alg, { extractable: true });
    keys.push({ ...(await exportJWK(privateKey)), alg, use: 'sig', kid: `provider-${alg}` });
  }
  return { keys };
}

function listOf(value: string | readonly string[] | undefined): readonly string[] {
  if (value === undefined) return [];
  return typeof value === 'string' ? [value] : value;
}

/** Starts the provider on a free port. `user` is who every login is. */
export async function startOidcProvider(
  options: {
    readonly user?: string;
    readonly groups?: readonly string[];
    readonly scopes?: string;
  } = {},
): Promise<OidcProvider> {
  const { user = 'alice', groups = ['eng'], scopes = DEFAULT_SCOPES } = options;
  const machine = { clientId: 'test-machine', clientSecret: randomBytes(16).toString('hex') };
  const jwks = await signingJwks();

  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const issuer = `http://127.0.0.1:${port}`;
  canary.watchIssuer(port);

  const provider: Provider = new Provider(issuer, {
    jwks,
    clients: [
      {
        client_id: machine.clientId,
        client_secret: machine.clientSecret,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      },
    ],
    cookies: { keys: [randomBytes(16).toString('hex')] },
    scopes: ['openid', 'offline_access', ...scopes.split(' ')],
    pkce: { required: () => true },
    ttl: { AccessToken: 600, ClientCredentials: 600, Session: 600, Interaction: 600, Grant: 600 },
    findAccount: (_context: Context, accountId: string) => ({
      accountId,
      claims: () => ({ sub: accountId }),
    }),
    extraTokenClaims: () => ({ groups }),
    interactions: { url: (_context: Context, { uid }: { uid: string }) => INTERACTION_PATH + uid },
    async loadExistingGrant({ oidc }: Context) {
      const { clientId } = oidc.client;
      const grant = new provider.Grant({ accountId: oidc.session.accountId, clientId });
      grant.addOIDCScope(`openid offline_access ${scopes}`);
      for (const resource of listOf(oidc.params.resource)) {
        grant.addResourceScope(resource, scopes);
      }
      await grant.save();
      return grant;
    },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        useGrantedResource: () => true,
        getResourceServerInfo: (_context: Context, resource: string) => ({
          scope: scopes,
          audience: resource,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
  });

  const answer = provider.callback();
  server.on('request', (request, response) => {
    if (request.url?.startsWith(INTERACTION_PATH) !== true) {
      answer(request, response);
      return;
    }
    provider
      .interactionFinished(request, response, { login: { accountId: user }, consent: {} })
      .catch(() => response.writeHead(500).end());
  });

  return {
    issuer,
    machine,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
