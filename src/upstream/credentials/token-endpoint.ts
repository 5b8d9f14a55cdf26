// Requests tokens from an authorization server whose token endpoint is configured or read from its metadata.
// Authenticates the gateway as a client and checks every issued token before use. All requests go through the
// guarded fetch: addresses checked, no redirects, bytes and time capped. Never retries.
// RFC 6749 §2.3.1, §5, §5.1; RFC 7518 §3.1; RFC 7523 §2.2; RFC 8414 §3; RFC 8693 §2.2.1; RFC 8707 §2;
// RFC 9068 §2.2.

import { createPrivateKey, type KeyObject } from 'node:crypto';
import {
  type AuthorizationServer,
  allowInsecureRequests,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  customFetch,
  discoveryRequest,
  genericTokenEndpointRequest,
  PrivateKeyJwt,
  processDiscoveryResponse,
  processGenericTokenEndpointResponse,
  ResponseBodyError,
} from 'oauth4webapi';
import type { ClientAuthentication, TokenRequestSettings } from '../../config/settings.js';
import type { Measured } from '../../policy/events.js';
import { type JsonObject, parseObject } from '../../protocol/jsonrpc.js';
import type { FetchRule, GuardedFetch } from '../safe-fetch.js';

/** A token that may be presented. */
export type IssuedToken = {
  readonly kind: 'obtained';
  readonly value: string;
  /** Milliseconds since the epoch. */
  readonly expiresAtMs: number;
};

/** Why there is no token, in text that is safe to log. `isOfCaller`: the server rejected the caller's token. */
export type TokenError = {
  readonly kind: 'error';
  readonly detail: string;
  readonly isOfCaller: boolean;
  /** The error code of RFC 6749 §5.2 or RFC 8693 §2.2.2, if the server answered with a known one. */
  readonly code?: string | undefined;
};

type Algorithm =
  | { readonly name: 'RSA-PSS' | 'RSASSA-PKCS1-v1_5'; readonly hash: 'SHA-256' }
  | { readonly name: 'ECDSA'; readonly namedCurve: string }
  | { readonly name: 'Ed25519' };

const CURVES: ReadonlyMap<string | undefined, string> = new Map([
  ['prime256v1', 'P-256'],
  ['secp384r1', 'P-384'],
  ['secp521r1', 'P-521'],
]);

/**
 * Client authentication by secret or by a signed assertion. The private key leaves this file only as a
 * non-extractable signing key.
 *
 * @throws Error if the key cannot be used, which configuration checks exclude.
 */
async function clientAuthOf(authentication: ClientAuthentication): Promise<ClientAuth> {
  switch (authentication.method) {
    case 'client_secret_basic':
      return ClientSecretBasic(authentication.secret);
    case 'client_secret_post':
      return ClientSecretPost(authentication.secret);
    case 'private_key_jwt':
      return PrivateKeyJwt(await readKey(authentication.key));
  }
}

async function readKey(text: string): Promise<Parameters<typeof PrivateKeyJwt>[0]> {
  const isJwk = text.trimStart().startsWith('{');
  const jwk = isJwk ? (JSON.parse(text) as { readonly [name: string]: unknown }) : {};
  const key = isJwk ? createPrivateKey({ key: jwk, format: 'jwk' }) : createPrivateKey(text);
  const { alg, kid } = jwk;
  const bytes = key.export({ type: 'pkcs8', format: 'der' });
  const signing = await crypto.subtle.importKey('pkcs8', bytes, algorithmOf(key, alg === 'PS256'), false, ['sign']);
  return typeof kid === 'string' ? { key: signing, kid } : { key: signing };
}

function algorithmOf(key: KeyObject, isPss: boolean): Algorithm {
  const { asymmetricKeyType: kind, asymmetricKeyDetails: details } = key;
  if (kind === 'ed25519') return { name: 'Ed25519' };
  if (kind === 'rsa') return { name: isPss ? 'RSA-PSS' : 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' };
  const namedCurve = CURVES.get(details?.namedCurve);
  if (kind !== 'ec' || namedCurve === undefined) throw new Error('this key cannot sign');
  return { name: 'ECDSA', namedCurve };
}

/** The checked members of a token response. `token_type` is in lower case. */
export type TokenResponse = {
  readonly access_token: string;
  readonly token_type: string;
  readonly expires_in?: number | undefined;
  readonly scope?: string | undefined;
  readonly issued_token_type?: unknown;
};

export type TokenRequestContext = {
  readonly request: Pick<TokenRequestSettings, 'scopes' | 'resource' | 'audience' | 'own'>;
  /** The token given in exchange; undefined if none was. */
  readonly subjectToken: string | undefined;
  readonly nowMs: number;
};

type IssuedTokenOutcome =
  | { readonly kind: 'valid'; readonly token: string; readonly expiresAtMs: number }
  | { readonly kind: 'invalid'; readonly why: string };

/** RFC 6750 §2.1. */
const BEARER = /^[A-Za-z0-9._~+/-]{1,8192}=*$/;
const ISSUED_TYPES: ReadonlySet<unknown> = new Set([
  'urn:ietf:params:oauth:token-type:access_token',
  'urn:ietf:params:oauth:token-type:jwt',
]);
/** Lifetime of a token that does not state one, and the longest that any token is kept. */
const DEFAULT_LIFE_MS = 60_000;
const MAX_LIFE_MS = 60 * 60 * 1000;

/**
 * Checks an issued token before use: it must be a bearer token for this upstream and no other audience of the
 * gateway, have no scope that was not requested, and not be the caller's own token returned. For a token that
 * cannot be parsed, the response's description of it is trusted. Pure. Returns the token and its expiry, or a
 * fixed text that says what is wrong.
 */
export function checkIssued(response: TokenResponse, requestContext: TokenRequestContext): IssuedTokenOutcome {
  const why = responseErrorOf(response, requestContext);
  if (why !== undefined) return { kind: 'invalid', why };
  const token = response.access_token;
  const claims = readClaims(token);
  const bad = claims === undefined ? undefined : claimsErrorOf(claims, requestContext);
  if (bad !== undefined) return { kind: 'invalid', why: bad };
  const lifetimeMs = Math.min(lifetimeOf(response, claims), MAX_LIFE_MS);
  const expiresAt = claims?.['exp'];
  const expiresAtMs = Math.min(
    requestContext.nowMs + lifetimeMs,
    typeof expiresAt === 'number' ? expiresAt * 1000 : Number.POSITIVE_INFINITY,
  );
  if (expiresAtMs <= requestContext.nowMs) return { kind: 'invalid', why: 'the issued token has already expired' };
  return { kind: 'valid', token, expiresAtMs };
}

function lifetimeOf({ expires_in: seconds }: TokenResponse, claims: JsonObject | undefined): number {
  if (seconds !== undefined) return seconds * 1000;
  return typeof claims?.['exp'] === 'number' ? MAX_LIFE_MS : DEFAULT_LIFE_MS;
}

function responseErrorOf(response: TokenResponse, { request, subjectToken }: TokenRequestContext): string | undefined {
  if (response.token_type !== 'bearer') return 'the issued token is not a bearer token';
  if (!BEARER.test(response.access_token)) return 'the issued token has characters that a header cannot carry';
  if (subjectToken !== undefined) {
    if (!ISSUED_TYPES.has(response.issued_token_type)) return 'the issued token is not an access token';
    if (response.access_token === subjectToken) return "the token is the caller's own";
  }
  return hasMoreScopes(response.scope, request.scopes)
    ? 'the issued token has scopes that were not requested'
    : undefined;
}

/** If no scope was requested, the server decides (RFC 6749 §3.3). */
function hasMoreScopes(scope: string | undefined, requestContext: readonly string[]): boolean {
  if (scope === undefined || requestContext.length === 0) return false;
  return scope.split(' ').some((one) => one !== '' && !requestContext.includes(one));
}

function claimsErrorOf(claims: JsonObject, { request }: TokenRequestContext): string | undefined {
  const audiences = textsOf(claims['aud']);
  const ownAudiences = [request.resource, request.audience].filter((one) => one !== undefined);
  if (!ownAudiences.every((one) => audiences.includes(one))) return 'the issued token is for another audience';
  if (audiences.some((one) => isGatewayAudience(one, ownAudiences, request.own))) {
    return 'the issued token is for this gateway itself';
  }
  const scopes = [claims['scope'], claims['scp']].flatMap(textsOf).join(' ');
  return hasMoreScopes(scopes, request.scopes) ? 'the issued token has scopes that were not requested' : undefined;
}

/** With such an audience the upstream could call the gateway with the token. */
function isGatewayAudience(
  audience: string,
  ownAudiences: readonly string[],
  { audiences, base }: TokenRequestSettings['own'],
): boolean {
  if (ownAudiences.includes(audience)) return false;
  return audiences.includes(audience) || audience === base || audience.startsWith(`${base}/`);
}

function textsOf(value: unknown): readonly string[] {
  return [value].flat().filter((one): one is string => typeof one === 'string');
}

/** The claims of a readable JWT. The signature is not verified here; that is up to the upstream. */
function readClaims(token: string): JsonObject | undefined {
  const parts = token.split('.');
  if (parts.length !== 3) return undefined;
  return parseObject(Buffer.from(parts[1] ?? '', 'base64url').toString('utf8'));
}

type TokenEndpointPorts = {
  readonly guardedFetch: Pick<GuardedFetch, 'fetchJson' | 'postForm'>;
  readonly now: () => number;
  /** Time limit for one request to the server, including the response. */
  readonly timeoutMs: number;
  readonly onTokenRequest: ReportTokenRequest;
};

/**
 * How long a request for a token took. `error`: a code of RFC 6749, `unavailable` if the server is, `invalid` if its
 * response is.
 */
export type ReportTokenRequest = (grant: 'client_credentials' | 'token_exchange', measured: Measured) => void;

/** The parameters of one grant, besides those of the settings. */
type TokenGrant = {
  readonly type: string;
  readonly parameters: Readonly<Record<string, string>>;
  /** The caller's token, if it is given in exchange. */
  readonly subjectToken: string | undefined;
};

export type TokenEndpoint = {
  /** Requests a token. Never rejects. */
  requestToken(grant: TokenGrant): Promise<IssuedToken | TokenError>;
};

const MAX_RESPONSE_BYTES = 64 * 1024;
/** Metadata are read again after this time. */
const METADATA_AGE_MS = 60 * 60 * 1000;
/** Errors about the grant that was presented (RFC 6749 §5.2) rather than about the gateway. */
const GRANT_ERRORS: ReadonlySet<string> = new Set(['invalid_grant', 'access_denied']);
const KNOWN_ERRORS: ReadonlySet<string> = new Set([
  ...GRANT_ERRORS,
  'invalid_request',
  'invalid_client',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
  'invalid_target',
]);

/** Creates the client of one token endpoint for one set of credentials. */
export function createTokenEndpoint(settings: TokenRequestSettings, ports: TokenEndpointPorts): TokenEndpoint {
  const client = { client_id: settings.clientId };
  const options = {
    [customFetch]: fetchThrough(settings, ports),
    // The guarded fetch enforces this: plain http is possible on loopback, or where it was accepted.
    [allowInsecureRequests]: settings.network === 'loopback' || settings.plaintext === 'accepted',
  };
  let cachedMetadata: { readonly server: AuthorizationServer; readonly atMs: number } | undefined;
  let authentication: Promise<ClientAuth> | undefined;

  async function findServer(): Promise<AuthorizationServer> {
    const { kind, url } = settings.server;
    if (kind === 'token-endpoint') return { issuer: url, token_endpoint: url };
    if (cachedMetadata !== undefined && ports.now() - cachedMetadata.atMs < METADATA_AGE_MS)
      return cachedMetadata.server;
    const server = await readMetadata(new URL(url), options);
    cachedMetadata = { server, atMs: ports.now() };
    return server;
  }

  async function request({ type, parameters, subjectToken }: TokenGrant): Promise<IssuedToken> {
    const server = await findServer();
    authentication ??= clientAuthOf(settings.authentication);
    const response = await genericTokenEndpointRequest(
      server,
      client,
      await authentication,
      type,
      { ...requestedParameters(settings), ...parameters },
      options,
    );
    const tokenResponse = await processGenericTokenEndpointResponse(server, client, response);
    const requestContext = { request: settings, subjectToken, nowMs: ports.now() };
    const checked = checkIssued({ ...tokenResponse }, requestContext);
    if (checked.kind === 'invalid') throw loggableError(checked.why, 'invalid');
    return { kind: 'obtained', value: checked.token, expiresAtMs: checked.expiresAtMs };
  }

  return {
    async requestToken(grant) {
      const startedMs = performance.now();
      let failed: TokenFailure | undefined;
      try {
        return await request(grant);
      } catch (error) {
        failed = failureOf(error);
        return failed.error;
      } finally {
        const measured = { durationMs: performance.now() - startedMs, error: failed?.type ?? '' };
        ports.onTokenRequest(grant.subjectToken === undefined ? 'client_credentials' : 'token_exchange', measured);
      }
    },
  };
}

/** RFC 6749 §3.3; RFC 8707 §2; RFC 8693 §2.1 (`audience`). */
function requestedParameters({ scopes, resource, audience }: TokenRequestSettings): Record<string, string> {
  return {
    ...(scopes.length === 0 ? {} : { scope: scopes.join(' ') }),
    ...(resource === undefined ? {} : { resource }),
    ...(audience === undefined ? {} : { audience }),
  };
}

type Options = {
  readonly [customFetch]: Fetch;
  readonly [allowInsecureRequests]: boolean;
};

/** Tries authorization server metadata first, then OpenID Connect discovery (RFC 8414 §5). */
async function readMetadata(issuer: URL, options: Options): Promise<AuthorizationServer> {
  try {
    const response = await discoveryRequest(issuer, { ...options, algorithm: 'oauth2' });
    return await processDiscoveryResponse(issuer, response);
  } catch {
    const response = await discoveryRequest(issuer, { ...options, algorithm: 'oidc' });
    return processDiscoveryResponse(issuer, response);
  }
}

type Fetch = (
  url: string,
  options: {
    readonly method: string;
    readonly headers: Record<string, string>;
    readonly body?: unknown;
  },
) => Promise<Response>;

function fetchThrough(
  { server, network, plaintext }: TokenRequestSettings,
  { guardedFetch, timeoutMs }: TokenEndpointPorts,
): Fetch {
  const origins = [new URL(server.url).origin];
  const rule: FetchRule = { network, plaintext, origins, maxBytes: MAX_RESPONSE_BYTES, timeoutMs };
  return async (url, { method, headers, body }) => {
    if (method === 'GET') {
      const document = await guardedFetch.fetchJson(new URL(url), rule);
      if (!document.ok) throw loggableError(`the metadata ${document.detail}`, 'unavailable');
      return Response.json(document.value);
    }
    const response = await guardedFetch.postForm(new URL(url), { headers, body: String(body) }, rule);
    if (!response.ok) throw loggableError(`the token endpoint ${response.detail}`, 'unavailable');
    const { status, contentType, bytes } = response;
    return new Response(Buffer.from(bytes), { status, headers: { 'content-type': contentType } });
  };
}

/** `type`: one of few, for metrics. */
type TokenFailure = { readonly error: TokenError; readonly type: string };

type LoggableType = 'unavailable' | 'invalid';

const refusals = new WeakMap<Error, { readonly detail: string; readonly type: LoggableType }>();

/** An error with a text of the gateway's own, which is therefore safe to log. */
function loggableError(detail: string, type: LoggableType): Error {
  const error = new Error(detail);
  refusals.set(error, { detail, type });
  return error;
}

/** Uses fixed texts: what a server writes into its errors must not reach the log. */
function failureOf(thrown: unknown): TokenFailure {
  if (thrown instanceof ResponseBodyError) {
    const code = KNOWN_ERRORS.has(thrown.error) ? thrown.error : undefined;
    const detail = `the token endpoint refused with ${code ?? 'an unknown error code'}`;
    const error: TokenError = { kind: 'error', detail, isOfCaller: GRANT_ERRORS.has(thrown.error), code };
    return { error, type: code ?? 'invalid' };
  }
  const { detail, type } = (thrown instanceof Error ? refusals.get(thrown) : undefined) ?? {
    detail: 'the response of the authorization server is invalid',
    type: 'invalid',
  };
  return { error: { kind: 'error', detail, isOfCaller: false }, type };
}
