// Real authorization servers: one that clients log in at, one that exchanges tokens.

import { createHash, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createRemoteJWKSet, exportJWK, exportPKCS8, generateKeyPair, jwtVerify } from 'jose';
import { type Context, Provider } from 'oidc-provider';
import { canary } from './canary.js';

// A real authorization server for tests: oidc-provider with resource indicators, JWT access tokens,
// authorization code with PKCE, client credentials and dynamic registration. Every login is the test
// user, at once and without a page. Loopback only.

export type OidcProvider = {
  readonly issuer: string;
  /** A client of its own, for client credentials. */
  readonly machine: { readonly clientId: string; readonly clientSecret: string };
  /** A client whose tokens are bound to the certificate that stands in `CERTIFICATE_HEADER`. */
  readonly certified: { readonly clientId: string; readonly clientSecret: string };
  /** A client without a secret, in a page; it returns to `pageUrl`. */
  readonly page: { readonly clientId: string };
  /** A client with a secret that logs people in; it returns to `consoleUrl`. Its ID tokens have the groups. */
  readonly console: { readonly clientId: string; readonly clientSecret: string };
  /** The Authorization headers of all requests for tokens, in order; `undefined` where there was none. */
  readonly presented: readonly (string | undefined)[];
  close(): Promise<void>;
};

/** Scopes that a resource offers unless the test names others. */
const DEFAULT_SCOPES = 'notes:read notes:write';
const INTERACTION_PATH = '/interaction/';
/** What a proxy that ends TLS before the provider would set: percent-encoded PEM. The gateway knows no such header. */
export const CERTIFICATE_HEADER = 'x-test-client-certificate';

async function signingJwks(): Promise<object> {
  const keys = [];
  for (const alg of ['ES256', 'RS256']) {
    const { privateKey } = await generateKeyPair(alg, { extractable: true });
    keys.push({ ...(await exportJWK(privateKey)), alg, use: 'sig', kid: `provider-${alg}` });
  }
  return { keys };
}

/** What a provider says and does whose subjects differ by client (OpenID Connect Core §8.1). */
const PAIRWISE = {
  subjectTypes: ['pairwise' as const],
  pairwiseIdentifier: (_context: Context, accountId: string, { clientId }: { readonly clientId: string }) =>
    createHash('sha256').update(`${clientId} ${accountId}`).digest('hex'),
};

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
    /** What access tokens look like. `opaque`: the machine may ask about them. Default JWTs. */
    readonly format?: 'jwt' | 'opaque';
    /** How long access tokens live. Default ten minutes. */
    readonly lifetimeSeconds?: number;
    /** Clients that ask for it get a refresh token with every code. */
    readonly refreshes?: boolean;
    readonly pageUrl?: string;
    readonly consoleUrl?: string;
    /** Each client knows a person by a subject of its own; the claim `person` tells who it is. */
    readonly pairwise?: boolean;
  } = {},
): Promise<OidcProvider> {
  const { user = 'alice', groups = ['eng'], scopes = DEFAULT_SCOPES, pageUrl } = options;
  const { format = 'jwt', lifetimeSeconds = 600, refreshes = false } = options;
  const machine = { clientId: 'test-machine', clientSecret: randomBytes(16).toString('hex') };
  const certified = { clientId: 'test-certified', clientSecret: randomBytes(16).toString('hex') };
  const page = { clientId: 'test-page' };
  const console = { clientId: 'test-console', clientSecret: randomBytes(16).toString('hex') };
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
      {
        client_id: certified.clientId,
        client_secret: certified.clientSecret,
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
        tls_client_certificate_bound_access_tokens: true,
      },
      {
        client_id: page.clientId,
        application_type: 'native',
        grant_types: ['authorization_code'],
        redirect_uris: [pageUrl ?? 'http://127.0.0.1:9/page'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
      },
      {
        client_id: console.clientId,
        client_secret: console.clientSecret,
        grant_types: ['authorization_code'],
        redirect_uris: [options.consoleUrl ?? 'http://127.0.0.1:9/console'],
        response_types: ['code'],
        id_token_signed_response_alg: 'ES256',
      },
    ],
    ...(options.pairwise === true ? PAIRWISE : {}),
    claims: { openid: ['sub', 'groups', 'person'] },
    // Otherwise the groups would be at the userinfo endpoint alone.
    conformIdTokenClaims: false,
    clientBasedCORS: () => true,
    cookies: { keys: [randomBytes(16).toString('hex')] },
    scopes: ['openid', 'offline_access', ...scopes.split(' ')],
    pkce: { required: () => true },
    ttl: {
      AccessToken: lifetimeSeconds,
      ClientCredentials: lifetimeSeconds,
      RefreshToken: 600,
      ...{ Session: 600, Interaction: 600, Grant: 600 },
    },
    ...(refreshes ? { issueRefreshToken: () => true } : {}),
    findAccount: (_context: Context, accountId: string) => ({
      accountId,
      claims: () => ({ sub: accountId, groups, person: `person-${accountId}` }),
    }),
    extraTokenClaims: () => ({ groups, person: `person-${user}` }),
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
      introspection: { enabled: true },
      mTLS: {
        enabled: true,
        certificateBoundAccessTokens: true,
        getCertificate: (context: Context) => {
          const pem = decodeURIComponent(context.get(CERTIFICATE_HEADER));
          return pem === '' ? undefined : pem;
        },
      },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        useGrantedResource: () => true,
        getResourceServerInfo: (_context: Context, resource: string) => ({
          scope: scopes,
          audience: resource,
          accessTokenFormat: format,
          ...(format === 'jwt' ? { jwt: { sign: { alg: 'ES256' } } } : {}),
        }),
      },
    },
  });

  const answer = provider.callback();
  const presented: (string | undefined)[] = [];
  server.on('request', (request, response) => {
    if (request.url === '/token') presented.push(request.headers.authorization);
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
    certified,
    page,
    console,
    presented,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

// A real authorization server for what the gateway presents upstream: oidc-provider with client credentials,
// resource indicators, secrets and keys of clients, and token exchange as a grant of its own, which trusts
// the tokens of one issuer. Loopback only.

export type ExchangeProvider = {
  readonly issuer: string;
  readonly clients: {
    readonly basic: { readonly id: string; readonly secret: string };
    readonly post: { readonly id: string; readonly secret: string };
    /** PKCS #8 in PEM. */
    readonly key: { readonly id: string; readonly pem: string };
  };
  /** The URL of the key set that upstreams verify tokens by. */
  readonly jwksUri: string;
  /** Trusts tokens of this issuer as subjects. */
  trust(issuer: string, jwksUri: string): void;
  /** What was asked at the token endpoint: grant types, in order. */
  readonly grants: string[];
  close(): Promise<void>;
};

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const GRANTS = ['client_credentials', EXCHANGE];
const SCOPES = 'records:read records:write';
const PARAMETERS = [
  'subject_token',
  'subject_token_type',
  'requested_token_type',
  'actor_token',
  'actor_token_type',
  'resource',
  'scope',
];

type Subject = { readonly issuer: string; readonly keys: ReturnType<typeof createRemoteJWKSet> };

/** Starts it on a free port; `ttlSeconds` is the life of its tokens. */
export async function startExchangeProvider(ttlSeconds = 600): Promise<ExchangeProvider> {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  const client = await generateKeyPair('ES256', { extractable: true });
  const clients = {
    basic: { id: 'gateway-basic', secret: randomBytes(16).toString('hex') },
    post: { id: 'gateway-post', secret: randomBytes(16).toString('hex') },
    key: { id: 'gateway-key', pem: await exportPKCS8(client.privateKey) },
  };
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  // What is exchanged is shown to it (RFC 8693 §2.1).
  canary.watchIssuer(port);
  const issuer = `http://127.0.0.1:${port}`;
  const common = {
    grant_types: GRANTS,
    redirect_uris: [],
    response_types: [],
    id_token_signed_response_alg: 'ES256',
  };
  const resourceServer = (audience: string) => ({
    scope: SCOPES,
    audience,
    accessTokenTTL: ttlSeconds,
    accessTokenFormat: 'jwt',
    jwt: { sign: { alg: 'ES256' } },
  });
  const provider: Provider = new Provider(issuer, {
    jwks: {
      keys: [{ ...(await exportJWK(privateKey)), alg: 'ES256', use: 'sig', kid: 'exchange' }],
    },
    clients: [
      {
        ...common,
        client_id: clients.basic.id,
        client_secret: clients.basic.secret,
        token_endpoint_auth_method: 'client_secret_basic',
      },
      {
        ...common,
        client_id: clients.post.id,
        client_secret: clients.post.secret,
        token_endpoint_auth_method: 'client_secret_post',
      },
      {
        ...common,
        client_id: clients.key.id,
        token_endpoint_auth_method: 'private_key_jwt',
        jwks: { keys: [{ ...(await exportJWK(client.publicKey)), alg: 'ES256', use: 'sig' }] },
      },
    ],
    cookies: { keys: [randomBytes(16).toString('hex')] },
    scopes: SCOPES.split(' '),
    ttl: { AccessToken: ttlSeconds, ClientCredentials: ttlSeconds },
    findAccount: (_context: Context, accountId: string) => ({
      accountId,
      claims: () => ({ sub: accountId }),
    }),
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        useGrantedResource: () => true,
        getResourceServerInfo: (_context: Context, resource: string) => resourceServer(resource),
      },
    },
  });

  let trusted: Subject | undefined;
  provider.registerGrantType(
    EXCHANGE,
    async (context) => {
      const { subject_token: subject = '', resource = '', scope } = context.oidc.params;
      if (trusted === undefined) throw new Error('nobody is trusted');
      const verified = await jwtVerify(subject, trusted.keys, { issuer: trusted.issuer }).catch(() => undefined);
      if (verified === undefined) {
        context.status = 400;
        context.body = { error: 'invalid_grant' };
        return;
      }
      const accountId = verified.payload.sub ?? '';
      const target = String(resource);
      const token = new provider.AccessToken({ accountId, client: context.oidc.client, scope });
      token.resourceServer = new provider.ResourceServer(target, resourceServer(target));
      context.body = {
        access_token: await token.save(),
        issued_token_type: ACCESS_TOKEN,
        token_type: 'Bearer',
        expires_in: ttlSeconds,
        ...(scope === undefined ? {} : { scope }),
      };
    },
    PARAMETERS,
  );

  const grants: string[] = [];
  provider.use(async (context, next) => {
    await next();
    if (context.path === '/token') grants.push(String(context.oidc?.params?.grant_type));
  });
  server.on('request', provider.callback());
  return {
    issuer,
    clients,
    jwksUri: `${issuer}/jwks`,
    grants,
    trust(subjectIssuer, jwksUri) {
      trusted = { issuer: subjectIssuer, keys: createRemoteJWKSet(new URL(jwksUri)) };
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
