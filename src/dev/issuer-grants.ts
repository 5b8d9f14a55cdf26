// The clients and grants of the development issuer, and the key that signs its tokens. Clients are public:
// registered dynamically, or identified by the URL of a metadata document. Grants are authorization code with PKCE
// and refresh tokens: a code works once, for one client, one redirect and one resource; no consent is asked for.
// Besides these clients there is the gateway itself, at which people log in: the issuer asks them who they are. Where
// people have no passwords, other clients are let in unasked. Kept in memory; no HTTP here. RFC 7591 §2 and §3.2.1 (the server may replace requested values), RFC 8252 §7.1 and
// §7.3, draft-ietf-oauth-client-id-metadata-document §3 and §4, MCP 2025-11-25, authorization (clients); RFC 6749
// §4.1, §4.3 and §6, RFC 7636 §4, RFC 8707 §2, RFC 9207 §2, RFC 9700 §4.14.2 (grants); RFC 9068 §2, RFC 7517 §5 (tokens
// and keys).

import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, randomUUID } from 'node:crypto';
import { calculateJwkThumbprint, exportJWK, type JWTPayload, SignJWT } from 'jose';
import { isObject } from '../protocol/jsonrpc.js';
import { BoundedMap } from '../state/bounds.js';

const MAX_CLIENTS = 1_000;
const MAX_REDIRECT_URIS = 10;
const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(['127.0.0.1', '[::1]', 'localhost']);
/** Schemes that a browser would not hand to an application on this machine. */
const FOREIGN_SCHEMES: ReadonlySet<string> = new Set(['https:', 'javascript:', 'data:', 'file:']);

export type PublicClient = {
  readonly id: string;
  readonly redirectUris: readonly string[];
  /** People log in at it with OpenID Connect: each time they are asked who they are. */
  readonly isLogin?: true;
};

/** The gateway as a client of the issuer; any secret will do, because codes are bound to PKCE and to this machine. */
export const LOGIN_CLIENT = 'sallyport-login';
const LOGIN_PATHS = ['/login/callback', '/.well-known/sallyport/approve/callback'];
const GATEWAY: PublicClient = {
  id: LOGIN_CLIENT,
  redirectUris: ['127.0.0.1', 'localhost'].flatMap((host) => LOGIN_PATHS.map((path) => `http://${host}${path}`)),
  isLogin: true,
};

type ClientRegistry = {
  /** The response to a registration, or undefined if the request is invalid. */
  register(metadata: unknown): object | undefined;
  find(id: string): PublicClient | undefined;
};

/** True for hosts of this machine, as written in URLs. */
export function isLoopbackHost(hostname: string): boolean {
  return LOOPBACK_HOSTS.has(hostname);
}

/** Codes are issued without consent, so redirects must stay on this machine. */
function isRedirectUri(value: unknown): value is string {
  if (typeof value !== 'string' || !URL.canParse(value)) return false;
  const { protocol, hostname, hash } = new URL(value);
  if (hash !== '' || FOREIGN_SCHEMES.has(protocol)) return false;
  return protocol !== 'http:' || isLoopbackHost(hostname);
}

/**
 * The redirect URIs of a client's metadata that may receive codes; `undefined` if there are none. Others are
 * left out, as a server may do (RFC 7591 §3.2.1): editors register a web page of theirs beside loopback.
 */
function usableRedirects(metadata: unknown): readonly string[] | undefined {
  const uris = isObject(metadata) ? metadata['redirect_uris'] : undefined;
  if (!Array.isArray(uris) || uris.length === 0 || uris.length > MAX_REDIRECT_URIS) return undefined;
  const usable = uris.filter(isRedirectUri);
  return usable.length === 0 ? undefined : usable;
}

/** A loopback redirect may use any port (RFC 8252 §7.3); anything else is compared exactly. */
function isRegisteredRedirect(client: PublicClient, uri: string): boolean {
  if (client.redirectUris.includes(uri)) return true;
  if (!isRedirectUri(uri) || new URL(uri).protocol !== 'http:') return false;
  const withoutPort = (text: string) => {
    const url = new URL(text);
    url.port = '';
    return url.href;
  };
  return client.redirectUris.some((known) => withoutPort(known) === withoutPort(uri));
}

/** Creates the registry. Beyond a thousand registrations, the oldest is removed. */
export function createClientRegistry(): ClientRegistry {
  const clients = new BoundedMap<string, PublicClient>(MAX_CLIENTS);
  return {
    register(metadata) {
      const redirectUris = usableRedirects(metadata);
      if (redirectUris === undefined) return undefined;
      const id = randomUUID();
      clients.set(id, { id, redirectUris });
      return {
        client_id: id,
        client_id_issued_at: Math.floor(Date.now() / 1000),
        redirect_uris: redirectUris,
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
      };
    },
    find: (id) => (id === LOGIN_CLIENT ? GATEWAY : clients.get(id)),
  };
}

/** Fetches a JSON document under the rules for URLs learned at run time; `undefined` if there is none. */
export type FetchDocument = (url: URL) => Promise<unknown>;

const MAX_KNOWN_DOCUMENTS = 100;
const DOCUMENT_LIFETIME_MS = 5 * 60_000;

type KnownDocument = { readonly client: PublicClient; readonly untilMs: number };

/**
 * True if a client id is the URL of a metadata document: https, or http on loopback, with a path, without
 * query, fragment or credentials.
 */
export function isDocumentUrl(id: string): boolean {
  if (!URL.canParse(id)) return false;
  const url = new URL(id);
  const isPlain = url.protocol === 'http:' && isLoopbackHost(url.hostname);
  if (url.protocol !== 'https:' && !isPlain) return false;
  // Identifiers are compared exactly, so only the normalized spelling is accepted.
  const hasMore = url.search !== '' || url.hash !== '' || url.username !== '' || url.password !== '';
  return url.href === id && url.pathname !== '/' && !hasMore;
}

/** Finds clients by their documents, which the given function fetches; cached for five minutes. */
export function createDocumentClients(fetchDocument: FetchDocument): (id: string) => Promise<PublicClient | undefined> {
  const known = new BoundedMap<string, KnownDocument>(MAX_KNOWN_DOCUMENTS);
  return async (id) => {
    const found = known.get(id);
    if (found !== undefined && found.untilMs > Date.now()) return found.client;
    const client = readDocument(id, await fetchDocument(new URL(id)));
    if (client === undefined) return undefined;
    known.set(id, { client, untilMs: Date.now() + DOCUMENT_LIFETIME_MS });
    return client;
  };
}

/**
 * Reads a metadata document. It must state its own URL as client id, only redirects to this machine count,
 * and a document with a secret or a client authentication method is not that of a public client.
 */
function readDocument(id: string, document: unknown): PublicClient | undefined {
  if (!isObject(document)) return undefined;
  const { client_id: named, token_endpoint_auth_method: method = 'none' } = document;
  if (named !== id || method !== 'none' || 'client_secret' in document) return undefined;
  const redirectUris = usableRedirects(document);
  return redirectUris === undefined ? undefined : { id, redirectUris };
}

const CODE_LIFETIME_MS = 60_000;
const MAX_CODES = 1_000;
const S256_CHALLENGE = /^[A-Za-z0-9_-]{43}$/;

/** A user who can log in. */
export type DevUser = {
  readonly name: string;
  readonly groups: readonly string[];
  readonly scopes: readonly string[];
};

/** `paced`: too many have failed lately. `unavailable`: it is not known who has which password. */
export type Verdict =
  | { readonly user: DevUser; readonly why?: never }
  | { readonly user?: never; readonly why: 'wrong' | 'paced' | 'unavailable' };

/** Who can log in. */
export type People = {
  /** Those of now: a user who is gone refreshes nothing. */
  list(): Promise<readonly DevUser[]>;
  /** Absent where nobody has a password: then `login_hint` names who logs in, or it is the first. */
  readonly verify?: (name: string, password: string) => Promise<Verdict>;
};

/** The contents of a token. */
export type Grant = {
  readonly subject: string;
  readonly client: string;
  readonly resource: string;
  readonly groups: readonly string[];
  readonly scopes: readonly string[];
  /** When the person said who they are, in seconds since the epoch; absent where nobody was asked. */
  readonly authTime?: number;
  /** Of a login with OpenID Connect. */
  readonly nonce?: string | undefined;
};

export type OAuthError = { readonly error: string; readonly error_description: string };

/** Parameters that occur once; a repeated one is an error (RFC 6749 §3.1). */
export type Parameters = ReadonlyMap<string, string>;

type Authorization =
  | { readonly kind: 'redirect'; readonly location: string }
  /** The redirect URI cannot be trusted, so the error is shown to the user. */
  | { readonly kind: 'refused'; readonly error: OAuthError }
  /** The person has to say first who they are. */
  | { readonly kind: 'asked'; readonly redirectUri: string };

type GrantService = {
  /**
   * `client` is the one that the request names; `undefined` if it is unknown. `person` is who has just logged in;
   * `unasked` who is let in without.
   */
  authorize(
    parameters: Parameters,
    client: PublicClient | undefined,
    people: { readonly person?: DevUser | undefined; readonly unasked?: DevUser | undefined },
  ): Authorization;
  redeem(parameters: Parameters, clientId: string): Grant | OAuthError;
  /** What a person gets who logs in at the token endpoint: for terminals, in place of a browser. */
  logIn(parameters: Parameters, person: DevUser): Grant | OAuthError;
};

type Code = {
  readonly grant: Grant;
  readonly redirectUri: string;
  readonly challenge: string;
  readonly expiresAt: number;
};

/** Creates an OAuth error (RFC 6749 §5.2). */
export function oauthError(error: string, description: string): OAuthError {
  return { error, error_description: description };
}

/** True for a grant, false for an error. */
export function isGrant(outcome: Grant | OAuthError): outcome is Grant {
  return 'subject' in outcome;
}

/** Reads parameters; `undefined` if one is repeated. */
export function readParameters(search: URLSearchParams): Parameters | undefined {
  const parameters = new Map<string, string>();
  for (const [name, value] of search) {
    if (parameters.has(name)) return undefined;
    parameters.set(name, value);
  }
  return parameters;
}

/** An absolute URI without a fragment (RFC 8707 §2). */
function isResource(value: string | undefined): value is string {
  return value !== undefined && URL.canParse(value) && !value.includes('#');
}

/** The requested scopes that the user holds; all scopes held if none were requested. */
function grantScopes(requested: string | undefined, held: readonly string[]): readonly string[] {
  if (requested === undefined || requested === '') return held;
  return requested.split(' ').filter((scope) => held.includes(scope));
}

function findRequestError(parameters: Parameters, isLogin: boolean): OAuthError | undefined {
  if (parameters.get('response_type') !== 'code') {
    return oauthError('unsupported_response_type', 'Only the response type "code" is known.');
  }
  const challenge = parameters.get('code_challenge') ?? '';
  if (parameters.get('code_challenge_method') !== 'S256' || !S256_CHALLENGE.test(challenge)) {
    return oauthError('invalid_request', 'PKCE with S256 is required.');
  }
  // An ID token is for the client, whatever the access token beside it is for.
  if (isLogin || isResource(parameters.get('resource'))) return undefined;
  return oauthError('invalid_target', 'Name the resource that the token is for.');
}

function redirectTo(redirectUri: string, response: Readonly<Record<string, string | undefined>>): Authorization {
  const location = new URL(redirectUri);
  for (const [name, value] of Object.entries(response)) {
    if (value !== undefined) location.searchParams.set(name, value);
  }
  return { kind: 'redirect', location: location.href };
}

function isVerifier(verifier: string | undefined, challenge: string): boolean {
  if (verifier === undefined) return false;
  return createHash('sha256').update(verifier).digest('base64url') === challenge;
}

/** Creates the grant service. */
export function createGrantService(issuer: string): GrantService {
  const codes = new BoundedMap<string, Code>(MAX_CODES);

  function keepCode(code: Code): string {
    const name = randomBytes(32).toString('base64url');
    codes.set(name, code);
    return name;
  }

  /** A code is spent once it is presented, whatever the outcome. */
  function takeCode(name: string): Code | undefined {
    const code = codes.get(name);
    codes.delete(name);
    return code !== undefined && code.expiresAt > Date.now() ? code : undefined;
  }

  function issueCode(
    parameters: Parameters,
    client: PublicClient,
    redirectUri: string,
    user: DevUser,
    wasAsked: boolean,
  ): string {
    return keepCode({
      grant: {
        subject: user.name,
        client: client.id,
        resource: parameters.get('resource') ?? issuer,
        groups: user.groups,
        scopes: grantScopes(parameters.get('scope'), user.scopes),
        ...(wasAsked ? { authTime: nowSeconds() } : {}),
        ...(client.isLogin === true ? { nonce: parameters.get('nonce') } : {}),
      },
      redirectUri,
      challenge: parameters.get('code_challenge') ?? '',
      expiresAt: Date.now() + CODE_LIFETIME_MS,
    });
  }

  return {
    authorize(parameters, client, { person, unasked }) {
      const redirectUri = parameters.get('redirect_uri') ?? '';
      if (client === undefined || !isRegisteredRedirect(client, redirectUri)) {
        const error = oauthError('invalid_client', 'The client or its redirect URI is unknown.');
        return { kind: 'refused', error };
      }
      const common = { state: parameters.get('state'), iss: issuer };
      const requestError = findRequestError(parameters, client.isLogin === true);
      if (requestError !== undefined) return redirectTo(redirectUri, { ...requestError, ...common });
      const user = person ?? (client.isLogin === true ? undefined : unasked);
      if (user === undefined) return { kind: 'asked', redirectUri };
      const code = issueCode(parameters, client, redirectUri, user, person !== undefined);
      return redirectTo(redirectUri, { code, ...common });
    },
    redeem(parameters, clientId) {
      const code = takeCode(parameters.get('code') ?? '');
      const isOwn =
        code !== undefined &&
        code.grant.client === clientId &&
        code.redirectUri === parameters.get('redirect_uri') &&
        isVerifier(parameters.get('code_verifier'), code.challenge);
      if (!isOwn) return oauthError('invalid_grant', 'The code is not valid.');
      const resource = parameters.get('resource') ?? code.grant.resource;
      if (resource === code.grant.resource) return code.grant;
      return oauthError('invalid_target', 'The code was given for another resource.');
    },
    logIn(parameters, user) {
      const resource = parameters.get('resource');
      if (!isResource(resource)) return oauthError('invalid_target', 'Name the resource that the token is for.');
      return {
        ...{ subject: user.name, client: 'terminal', resource, groups: user.groups },
        ...{ scopes: grantScopes(parameters.get('scope'), user.scopes), authTime: nowSeconds() },
      };
    },
  };
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}

const REFRESH_LIFETIME_MS = 24 * 60 * 60 * 1000;
const MAX_REFRESH_TOKENS = 1_000;

export type RefreshService = {
  /** The refresh token of a new login. */
  issue(grant: Grant): string;
  /**
   * The grant for a new access token, with the refresh token that replaces the presented one. `users` are those of now:
   * groups follow them, and who is gone gets nothing.
   */
  refresh(
    parameters: Parameters,
    clientId: string,
    users: readonly DevUser[],
  ): { readonly grant: Grant; readonly refreshToken: string } | OAuthError;
};

type Family = { readonly grant: Grant; readonly untilMs: number; isOver: boolean };

/**
 * Creates the refresh service, without tokens. Each token works once and is replaced; one that is presented
 * again ends all tokens of its login, because either its owner or a thief has used it before. Beyond a
 * thousand tokens, the oldest are removed. RFC 6749 §6, RFC 9700 §4.14.2.
 */
export function createRefreshService(): RefreshService {
  const tokens = new BoundedMap<string, { readonly family: Family; isUsed: boolean }>(MAX_REFRESH_TOKENS);

  function keep(family: Family): string {
    const name = randomBytes(32).toString('base64url');
    tokens.set(name, { family, isUsed: false });
    return name;
  }

  function isLive({ grant, untilMs, isOver }: Family, clientId: string): boolean {
    return !isOver && untilMs > Date.now() && grant.client === clientId;
  }

  return {
    issue: (grant) => keep({ grant, untilMs: Date.now() + REFRESH_LIFETIME_MS, isOver: false }),
    refresh(parameters, clientId, users) {
      const shown = tokens.get(parameters.get('refresh_token') ?? '');
      if (shown?.isUsed === true) shown.family.isOver = true;
      const user = users.find(({ name }) => name === shown?.family.grant.subject);
      if (shown === undefined || user === undefined || !isLive(shown.family, clientId))
        return oauthError('invalid_grant', 'The refresh token is not valid.');
      const { grant } = shown.family;
      if ((parameters.get('resource') ?? grant.resource) !== grant.resource)
        return oauthError('invalid_target', 'The login was for another resource.');
      const scopes = parameters.get('scope')?.split(' ') ?? grant.scopes;
      if (!scopes.every((scope) => grant.scopes.includes(scope)))
        return oauthError('invalid_scope', 'A refresh asks for no more than the login.');
      shown.isUsed = true;
      const held = { groups: user.groups, scopes: scopes.filter((scope) => user.scopes.includes(scope)) };
      return { grant: { ...grant, ...held }, refreshToken: keep(shown.family) };
    },
  };
}

export type SignToken = (grant: Grant, lifetimeSeconds: number) => Promise<string>;
export type TokenSigners = { readonly sign: SignToken; readonly signIdToken: SignToken };

/**
 * The public JWK Set and the signing functions of a key of the curve P-256; without one, of a new key that lives as long as
 * the process.
 */
export async function createSigner(key?: KeyObject): Promise<{
  readonly jwks: object;
  readonly signFor: (issuer: string) => TokenSigners;
}> {
  const privateKey = key ?? generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  const publicKey = await exportJWK(createPublicKey(privateKey));
  // The same after a restart with the same key (RFC 7638).
  const kid = await calculateJwkThumbprint(publicKey);
  const jwks = { keys: [{ ...publicKey, kid, alg: 'ES256', use: 'sig' }] };
  const token = (issuer: string, subject: string, claims: JWTPayload, typ: string, lifetimeSeconds: number) => {
    const now = nowSeconds();
    // An expired token must have been issued before it expired.
    const issuedAt = Math.min(now, now + lifetimeSeconds - 1);
    return new SignJWT(claims)
      .setProtectedHeader({ alg: 'ES256', typ, kid })
      .setIssuer(issuer)
      .setSubject(subject)
      .setIssuedAt(issuedAt)
      .setExpirationTime(now + lifetimeSeconds)
      .sign(privateKey);
  };
  const signFor = (issuer: string): TokenSigners => ({
    sign({ subject, client, resource, groups, scopes, authTime }, lifetimeSeconds) {
      const own = { aud: resource, jti: randomUUID(), client_id: client, scope: scopes.join(' '), groups };
      return token(issuer, subject, { ...own, ...proof(authTime) }, 'at+jwt', lifetimeSeconds);
    },
    signIdToken({ subject, client, groups, authTime, nonce }, lifetimeSeconds) {
      const own = { aud: client, groups, ...proof(authTime), ...(nonce === undefined ? {} : { nonce }) };
      return token(issuer, subject, own, 'JWT', lifetimeSeconds);
    },
  });
  return { jwks, signFor };
}

function proof(authTime: number | undefined): JWTPayload {
  return authTime === undefined ? {} : { auth_time: authTime };
}
