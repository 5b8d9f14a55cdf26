// The grants of the development issuer: authorization code with PKCE and refresh tokens, and the key that signs its
// tokens. A code works once, for one client, one redirect and one resource; no consent is asked for. Kept in memory; no
// HTTP here. RFC 6749 §4.1 and §6, RFC 7636 §4, RFC 8707 §2, RFC 9207 §2, RFC 9700 §4.14.2; RFC 9068 §2, RFC 7517 §5
// (tokens and keys).

import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { BoundedMap } from '../state/bounded-map.js';
import { isRegisteredRedirect, type PublicClient } from './issuer-clients.js';

const CODE_LIFETIME_MS = 60_000;
const MAX_CODES = 1_000;
const S256_CHALLENGE = /^[A-Za-z0-9_-]{43}$/;

/** A user who can log in: named by `login_hint`, or the first. */
export type DevUser = {
  readonly name: string;
  readonly groups: readonly string[];
  readonly scopes: readonly string[];
};

/** The contents of a token. */
export type Grant = {
  readonly subject: string;
  readonly client: string;
  readonly resource: string;
  readonly groups: readonly string[];
  readonly scopes: readonly string[];
};

export type OAuthError = { readonly error: string; readonly error_description: string };

/** Parameters that occur once; a repeated one is an error (RFC 6749 §3.1). */
export type Parameters = ReadonlyMap<string, string>;

type Authorization =
  | { readonly kind: 'redirect'; readonly location: string }
  /** The redirect URI cannot be trusted, so the error is shown to the user. */
  | { readonly kind: 'refused'; readonly error: OAuthError };

type GrantService = {
  /** `client` is the one that the request names; `undefined` if it is unknown. */
  authorize(parameters: Parameters, client: PublicClient | undefined): Authorization;
  redeem(parameters: Parameters, clientId: string): Grant | OAuthError;
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

function findRequestError(parameters: Parameters): OAuthError | undefined {
  if (parameters.get('response_type') !== 'code') {
    return oauthError('unsupported_response_type', 'Only the response type "code" is known.');
  }
  const challenge = parameters.get('code_challenge') ?? '';
  if (parameters.get('code_challenge_method') !== 'S256' || !S256_CHALLENGE.test(challenge)) {
    return oauthError('invalid_request', 'PKCE with S256 is required.');
  }
  if (isResource(parameters.get('resource'))) return undefined;
  return oauthError('invalid_target', 'Name the resource that the token is for.');
}

function redirectTo(
  redirectUri: string,
  response: Readonly<Record<string, string | undefined>>,
): Authorization {
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

/** Creates the grant service. The first of `users` logs in unless `login_hint` names another. */
export function createGrantService(
  issuer: string,
  users: readonly [DevUser, ...DevUser[]],
): GrantService {
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

  function issueCode(parameters: Parameters, clientId: string, redirectUri: string): string {
    const hint = parameters.get('login_hint');
    const user = users.find(({ name }) => name === hint) ?? users[0];
    return keepCode({
      grant: {
        subject: user.name,
        client: clientId,
        resource: parameters.get('resource') ?? '',
        groups: user.groups,
        scopes: grantScopes(parameters.get('scope'), user.scopes),
      },
      redirectUri,
      challenge: parameters.get('code_challenge') ?? '',
      expiresAt: Date.now() + CODE_LIFETIME_MS,
    });
  }

  return {
    authorize(parameters, client) {
      const redirectUri = parameters.get('redirect_uri') ?? '';
      if (client === undefined || !isRegisteredRedirect(client, redirectUri)) {
        const error = oauthError('invalid_client', 'The client or its redirect URI is unknown.');
        return { kind: 'refused', error };
      }
      const common = { state: parameters.get('state'), iss: issuer };
      const requestError = findRequestError(parameters);
      if (requestError !== undefined)
        return redirectTo(redirectUri, { ...requestError, ...common });
      const code = issueCode(parameters, client.id, redirectUri);
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
  };
}

const LIFETIME_MS = 24 * 60 * 60 * 1000;
const MAX_TOKENS = 1_000;

export type RefreshService = {
  /** The refresh token of a new login. */
  issue(grant: Grant): string;
  /** The grant for a new access token, with the refresh token that replaces the presented one. */
  refresh(
    parameters: Parameters,
    clientId: string,
  ): { readonly grant: Grant; readonly refreshToken: string } | OAuthError;
};

type Family = { readonly grant: Grant; readonly untilMs: number; isOver: boolean };

/**
 * Creates the refresh service, without tokens. Each token works once and is replaced; one that is presented
 * again ends all tokens of its login, because either its owner or a thief has used it before. Beyond a
 * thousand tokens, the oldest are removed. RFC 6749 §6, RFC 9700 §4.14.2.
 */
export function createRefreshService(): RefreshService {
  const tokens = new BoundedMap<string, { readonly family: Family; isUsed: boolean }>(MAX_TOKENS);

  function keep(family: Family): string {
    const name = randomBytes(32).toString('base64url');
    tokens.set(name, { family, isUsed: false });
    return name;
  }

  return {
    issue: (grant) => keep({ grant, untilMs: Date.now() + LIFETIME_MS, isOver: false }),
    refresh(parameters, clientId) {
      const shown = tokens.get(parameters.get('refresh_token') ?? '');
      if (shown?.isUsed === true) shown.family.isOver = true;
      const isGood =
        shown !== undefined &&
        !shown.family.isOver &&
        shown.family.untilMs > Date.now() &&
        shown.family.grant.client === clientId;
      if (!isGood) return oauthError('invalid_grant', 'The refresh token is not valid.');
      const { grant } = shown.family;
      if ((parameters.get('resource') ?? grant.resource) !== grant.resource)
        return oauthError('invalid_target', 'The login was for another resource.');
      const scopes = parameters.get('scope')?.split(' ') ?? grant.scopes;
      if (!scopes.every((scope) => grant.scopes.includes(scope)))
        return oauthError('invalid_scope', 'A refresh asks for no more than the login.');
      shown.isUsed = true;
      return { grant: { ...grant, scopes }, refreshToken: keep(shown.family) };
    },
  };
}

export type SignToken = (grant: Grant, lifetimeSeconds: number) => Promise<string>;

/** Generates a key, which lives as long as the process, with its public JWK Set and a signing function. */
export async function createSigner(): Promise<{
  readonly jwks: object;
  readonly signFor: (issuer: string) => SignToken;
}> {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
  const kid = randomUUID();
  const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid, alg: 'ES256', use: 'sig' }] };
  const signFor =
    (issuer: string): SignToken =>
    async ({ subject, client, resource, groups, scopes }, lifetimeSeconds) => {
      const now = Math.floor(Date.now() / 1000);
      // An expired token must have been issued before it expired.
      const issuedAt = Math.min(now, now + lifetimeSeconds - 1);
      return await new SignJWT({ client_id: client, scope: scopes.join(' '), groups })
        .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid })
        .setIssuer(issuer)
        .setSubject(subject)
        .setAudience(resource)
        .setJti(randomUUID())
        .setIssuedAt(issuedAt)
        .setExpirationTime(now + lifetimeSeconds)
        .sign(privateKey);
    };
  return { jwks, signFor };
}
