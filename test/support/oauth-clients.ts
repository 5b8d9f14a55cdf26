// Clients that log in: by the SDK from a 401 on, and by hand.

import { createHash, randomBytes } from 'node:crypto';
import type { OAuthClientProvider, OAuthDiscoveryState } from '@modelcontextprotocol/sdk/client/auth.js';
import type { OAuthClientInformationMixed, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js';
import { canary } from './canary.js';

// The whole OAuth walk of an SDK client without a browser: 401, metadata, dynamic registration,
// authorization code with PKCE and `resource`, token. Redirects are followed by hand with a cookie jar,
// so that each is seen. Sources: MCP 2025-11-25 authorization; RFC 7636, 7591, 8707, 9728.

export type WalkFacts = {
  /** The URL that the SDK would have opened in a browser. */
  readonly authorizationUrl: URL | undefined;
  readonly client: OAuthClientInformationMixed | undefined;
  readonly tokens: OAuthTokens | undefined;
};

/** A provider in memory, and what it gathered. */
export type WalkProvider = OAuthClientProvider & { facts(): WalkFacts };

export type WalkOptions = {
  /** Where the code arrives; nothing listens there. */
  readonly redirectUrl?: string;
  readonly scope?: string;
  /** The URL of a document by which the client names itself, where the issuer takes such. */
  readonly documentUrl?: string;
  /** Asks for refresh tokens too. */
  readonly refreshes?: boolean;
};

const DEFAULT_REDIRECT = 'http://127.0.0.1:9/callback';
const MAX_REDIRECTS = 15;

/** A provider that keeps everything in memory and never opens a browser. */
export function createWalkProvider(options: WalkOptions = {}): WalkProvider {
  const redirectUrl = options.redirectUrl ?? DEFAULT_REDIRECT;
  let client: OAuthClientInformationMixed | undefined;
  let tokens: OAuthTokens | undefined;
  let verifier = '';
  let authorizationUrl: URL | undefined;
  let discovered: OAuthDiscoveryState | undefined;
  return {
    get redirectUrl() {
      return redirectUrl;
    },
    ...(options.documentUrl === undefined ? {} : { clientMetadataUrl: options.documentUrl }),
    get clientMetadata() {
      return {
        client_name: 'sallyport-test',
        redirect_uris: [redirectUrl],
        grant_types: ['authorization_code', ...(options.refreshes ? ['refresh_token'] : [])],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
        ...(options.scope === undefined ? {} : { scope: options.scope }),
      };
    },
    clientInformation: () => client,
    saveClientInformation: (given) => {
      client = given;
    },
    tokens: () => tokens,
    saveTokens: (given) => {
      canary.recordToken(given.access_token);
      tokens = given;
    },
    redirectToAuthorization: (url) => {
      authorizationUrl = url;
    },
    saveCodeVerifier: (given) => {
      verifier = given;
    },
    codeVerifier: () => verifier,
    saveDiscoveryState: (given) => {
      discovered = given;
    },
    discoveryState: () => discovered,
    facts: () => ({ authorizationUrl, client, tokens }),
  };
}

function storeCookies(jar: Map<string, string>, response: Response): void {
  for (const line of response.headers.getSetCookie()) {
    const [pair = ''] = line.split(';');
    const equals = pair.indexOf('=');
    if (equals > 0) jar.set(pair.slice(0, equals), pair.slice(equals + 1));
  }
}

function cookieHeader(jar: Map<string, string>): Record<string, string> {
  if (jar.size === 0) return {};
  return { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; ') };
}

/**
 * Follows an authorization URL until it leads to the redirect URL, and returns the parameters that
 * arrive there. Throws when the server shows a page or redirects without end: it must approve by itself.
 */
export async function followAuthorization(start: URL, redirectUrl: string): Promise<URLSearchParams> {
  const jar = new Map<string, string>();
  let url = start;
  for (let step = 0; step < MAX_REDIRECTS; step += 1) {
    const response = await fetch(url, { redirect: 'manual', headers: cookieHeader(jar) });
    storeCookies(jar, response);
    const text = await response.text();
    const location = response.headers.get('location');
    if (location === null) {
      throw new Error(`${url.pathname} answered ${response.status}: ${text.slice(0, 200)}`);
    }
    url = new URL(location, url);
    if (url.href.startsWith(redirectUrl)) return url.searchParams;
  }
  throw new Error('too many redirects');
}

/** What the walk needs of a transport of either SDK. */
export type WalkingTransport = { finishAuth(code: string, iss?: string): Promise<void> };

/**
 * The step after the SDK said "unauthorized": follows the recorded authorization URL and hands the code
 * to the transport, which redeems it. A new transport can then connect with the same provider.
 */
export async function finishWalk(provider: WalkProvider, transport: WalkingTransport): Promise<URLSearchParams> {
  const { authorizationUrl } = provider.facts();
  if (authorizationUrl === undefined) throw new Error('the SDK asked for no authorization');
  const answer = await followAuthorization(authorizationUrl, String(provider.redirectUrl));
  const code = answer.get('code');
  if (code === null) throw new Error(`no code: ${answer.get('error') ?? 'no error either'}`);
  await transport.finishAuth(code, answer.get('iss') ?? undefined);
  return answer;
}

/**
 * Registers a client at the authorization server (RFC 7591) without a list of scopes, so that the server
 * decides about each: what an SDK registers is held to the scopes of the first challenge.
 */
export async function registerClient(issuer: string, metadata: object): Promise<OAuthClientInformationMixed> {
  const discovery = await fetch(`${issuer}/.well-known/openid-configuration`);
  const { registration_endpoint: endpoint } = (await discovery.json()) as Record<string, string>;
  const answer = await fetch(endpoint ?? '', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(metadata),
  });
  if (answer.status !== 201) throw new Error(`the registration ended with ${answer.status}`);
  return (await answer.json()) as OAuthClientInformationMixed;
}

// Walks the authorization code flow as a public client does: registration, PKCE, redirects, token.
// It knows issuers by their metadata alone.

type Answer = Readonly<Record<string, unknown>>;

const REDIRECT_URI = 'http://127.0.0.1:1/callback';
const MAX_HOPS = 10;

async function readJson(response: Response): Promise<Answer> {
  const body = (await response.json()) as Answer;
  if (!response.ok) throw new Error(`${response.status} ${JSON.stringify(body)}`);
  return body;
}

/** Follows redirects with cookies until the client's own redirect URI. */
async function followToCallback(start: string): Promise<URL> {
  const cookies = new Map<string, string>();
  let url = new URL(start);
  for (let hop = 0; hop < MAX_HOPS; hop += 1) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, { redirect: 'manual', headers: { cookie } });
    for (const line of response.headers.getSetCookie()) {
      const [pair = ''] = line.split(';');
      const at = pair.indexOf('=');
      cookies.set(pair.slice(0, at), pair.slice(at + 1));
    }
    const location = response.headers.get('location');
    if (location === null) throw new Error(`no redirect: ${response.status}`);
    url = new URL(location, url);
    if (url.href.startsWith(REDIRECT_URI)) return url;
  }
  throw new Error('too many redirects');
}

/** The access token that a user's login at `issuer` gives for `resource`. */
export async function walkCodeFlow(
  issuer: string,
  request: { readonly resource: string; readonly scope: string },
): Promise<string> {
  const metadata = await readJson(await fetch(`${issuer}/.well-known/oauth-authorization-server`));
  const client = await readJson(
    await fetch(String(metadata['registration_endpoint']), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        client_name: 'walk',
        application_type: 'native',
        redirect_uris: [REDIRECT_URI],
        token_endpoint_auth_method: 'none',
      }),
    }),
  );
  const verifier = randomBytes(32).toString('base64url');
  const common = { client_id: String(client['client_id']), redirect_uri: REDIRECT_URI };
  const authorize = new URLSearchParams({
    ...common,
    response_type: 'code',
    scope: request.scope,
    state: 'xyz',
    resource: request.resource,
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  });
  const callback = await followToCallback(`${metadata['authorization_endpoint']}?${authorize}`);
  const code = callback.searchParams.get('code');
  if (code === null) throw new Error(`no code: ${callback.search}`);
  const answer = await readJson(
    await fetch(String(metadata['token_endpoint']), {
      method: 'POST',
      body: new URLSearchParams({
        ...common,
        grant_type: 'authorization_code',
        code,
        code_verifier: verifier,
        resource: request.resource,
      }),
    }),
  );
  return String(answer['access_token']);
}
