// The authorization code flow at an issuer, for people who log in with a browser: where the browser is sent, and
// who it was that came back. With PKCE, state, nonce and the issuer of the response; the ID token is verified with the
// keys and algorithms of the issuer. It keeps nothing between the two steps but the issuer's metadata.
// RFC 6749 §4.1, RFC 7636, RFC 9207, RFC 9700 §2.1; OpenID Connect Core §3.1.

import * as oauth from 'oauth4webapi';
import type { IssuerSettings, LoginSettings } from '../config/settings.js';
import type { Actor } from '../policy/principal.js';
import { CLOCK_TOLERANCE_MS, checkIdToken } from './claims.js';
import type { Identity } from './identity.js';
import { clientAuthenticationOf, type PostForm } from './introspection.js';
import { discoverMetadata, type FetchJson, isPairwiseOnly, type KeySource, learnedUrlRule } from './issuer.js';
import { planVerification, type SignaturePlan, verifySignature } from './jwt.js';

/** An issuer with a login, and its keys. */
type LoginIssuer = {
  readonly issuer: IssuerSettings & { readonly login: LoginSettings };
  readonly keySource: Pick<KeySource, 'keysFor'>;
};

type LoginPorts = {
  /** Under the settings in force; `undefined` while the issuer is not configured or has no login. */
  readonly current: () => LoginIssuer | undefined;
  readonly fetchJson: FetchJson;
  readonly postForm: PostForm;
  readonly now: () => number;
};

/** What the browser must bring back, and what proves that the code was requested here. */
type Checks = { readonly state: string; readonly nonce: string; readonly verifier: string };

export type VerifiedLogin = {
  readonly kind: 'verified';
  /** The issuer identifier. */
  readonly issuer: string;
  readonly subject: string;
  /** The value of the claim that `login.match` names, where it is configured and the ID token has it as text. */
  readonly match: string | undefined;
  readonly groups: readonly string[];
  readonly actors: readonly Actor[];
  readonly issuedAtMs: number;
  /** When the person proved at the issuer who they are; always present where `maxAgeSeconds` asked for it. */
  readonly authTimeMs: number | undefined;
};
/** `no-auth-time`: the ID token does not say when the person logged in; `old`: that was too long ago. */
type Outcome =
  | VerifiedLogin
  | { readonly kind: 'refused'; readonly cause: LoginCause }
  | { readonly kind: 'unavailable' | 'no-auth-time' | 'old' };

/** What failed: what the browser brought back, the exchange of the code for tokens, or the ID token that came of it. */
export type LoginCause = 'response' | 'exchange' | 'id-token';

export type OidcLogin = {
  /**
   * Where the browser is sent. `unavailable`: the issuer cannot be reached or names no endpoints that may be used.
   * `pairwise`: it would not say who logs in. `askedAgeSeconds`: the issuer is asked for a login that is at most so old, and
   * to say when it was; whether it was, is up to who reads `authTimeMs`.
   */
  begin(
    askedAgeSeconds?: number,
  ): Promise<{ readonly url: string; readonly checks: Checks } | 'unavailable' | 'pairwise'>;
  /** Obtains and verifies the ID token for the response that the browser brings. Never rejects. */
  finish(response: URLSearchParams, checks: Checks): Promise<Outcome>;
};

const MAX_RESPONSE_BYTES = 64 * 1024;
const RESPONSE_TIMEOUT_MS = 5_000;
const METADATA_AGE_MS = 60 * 60 * 1000;
const MS_PER_SECOND = 1000;
/** ID tokens have this type or none; a token of any other type is not an ID token (RFC 8725 §3.11). */
const ID_TOKEN_TYPES = ['JWT', 'none'];
const REFUSED: Outcome = { kind: 'refused', cause: 'id-token' };
const UNAVAILABLE: Outcome = { kind: 'unavailable' };

/** Nothing could be learnt from the issuer. */
class IssuerUnavailable extends Error {
  override readonly name = 'IssuerUnavailable';
}

/** What a login has to prove beside who it is. */
export type LoginDemand = {
  /**
   * The person proved who they are at most so long ago, by `auth_time` (OpenID Connect Core §3.1.2.1): a session that was
   * open before proves nothing. The subject or the matched claim then has to tell one person.
   */
  readonly maxAgeSeconds?: number;
};

/** Creates the login at one issuer. It connects to nothing until it is used. */
export function createOidcLogin(
  redirectUri: string,
  { current, fetchJson, postForm, now }: LoginPorts,
  { maxAgeSeconds }: LoginDemand = {},
): OidcLogin {
  let cached:
    | {
        readonly issuer: IssuerSettings;
        readonly server: oauth.AuthorizationServer;
        readonly atMs: number;
      }
    | undefined;

  async function serverOf(issuer: IssuerSettings): Promise<oauth.AuthorizationServer | undefined> {
    if (cached?.issuer === issuer && now() - cached.atMs < METADATA_AGE_MS) return cached.server;
    const endpoints = ['authorization_endpoint', 'token_endpoint'] as const;
    const found = await discoverMetadata(issuer, endpoints, fetchJson);
    if (!found.ok) return undefined;
    // The members that are read have the form of the metadata, or are refused by the library.
    const server = found.metadata as unknown as oauth.AuthorizationServer;
    cached = { issuer, server, atMs: now() };
    return server;
  }

  /** The guarded fetch decides which addresses may be reached, and whether by plain http. */
  async function post(issuer: IssuerSettings, url: string, headers: Headers, body: string) {
    const rule = {
      ...learnedUrlRule(issuer),
      maxBytes: MAX_RESPONSE_BYTES,
      timeoutMs: RESPONSE_TIMEOUT_MS,
    };
    const outcome = await postForm(new URL(url), { headers, body }, rule);
    if (!outcome.ok || outcome.status >= 500) throw new IssuerUnavailable();
    const { status, contentType, bytes } = outcome;
    return new Response(new Uint8Array(bytes), {
      status,
      headers: { 'content-type': contentType },
    });
  }

  async function idTokenFor(
    issuer: LoginIssuer['issuer'],
    server: oauth.AuthorizationServer,
    parameters: URLSearchParams,
    { nonce, verifier }: Checks,
  ): Promise<string | undefined> {
    const client: oauth.Client = { client_id: issuer.login.clientId };
    const answer = await oauth.authorizationCodeGrantRequest(
      server,
      client,
      clientAuthenticationOf(issuer.login),
      parameters,
      redirectUri,
      verifier,
      {
        [oauth.allowInsecureRequests]: true,
        [oauth.customFetch]: (url, { headers, body }) => post(issuer, url, headers, String(body)),
      },
    );
    // The age of the login is checked here, where it can be said what is wrong with it.
    const tokens = await oauth.processAuthorizationCodeResponse(server, client, answer, {
      expectedNonce: nonce,
      requireIdToken: true,
    });
    return tokens.id_token;
  }

  async function verify(token: string, nonce: string, { issuer, keySource }: LoginIssuer): Promise<Outcome> {
    const plan = planOf(token, issuer);
    if (plan === undefined) return REFUSED;
    const lookup = await keySource.keysFor(plan.header);
    if (lookup.kind === 'unavailable') return UNAVAILABLE;
    if (lookup.kind === 'unknown') return REFUSED;
    const { clientId } = issuer.login;
    const claims = await verifySignature({ token, plan, audiences: [clientId] }, lookup.keys, now());
    const facts =
      typeof claims === 'string' ? undefined : checkIdToken(claims, { issuer, clientId, nonce, now: now() });
    return facts === undefined ? REFUSED : (refuseAge(facts.authTime) ?? verified(facts, issuer));
  }

  function refuseAge(authTime: number | undefined): Outcome | undefined {
    if (maxAgeSeconds === undefined) return undefined;
    // One later than now would be counted from then.
    if (authTime === undefined || authTime > now() + CLOCK_TOLERANCE_MS) return { kind: 'no-auth-time' };
    const isOld = authTime + maxAgeSeconds * MS_PER_SECOND + CLOCK_TOLERANCE_MS <= now();
    return isOld ? { kind: 'old' } : undefined;
  }

  /** Where people log in; `pairwise` where nobody could tell who did. */
  async function endpointOf(issuer: LoginIssuer['issuer']): Promise<URL | 'unavailable' | 'pairwise'> {
    const server = await serverOf(issuer).catch(() => undefined);
    if (server?.authorization_endpoint === undefined) return 'unavailable';
    const url = new URL(server.authorization_endpoint);
    if (!mayBeVisited(url, issuer)) return 'unavailable';
    const isKnown = maxAgeSeconds === undefined || issuer.login.match !== undefined || !isPairwiseOnly(server);
    return isKnown ? url : 'pairwise';
  }

  return {
    async begin(askedAgeSeconds = maxAgeSeconds) {
      const known = current();
      if (known === undefined) return 'unavailable';
      const url = await endpointOf(known.issuer);
      if (typeof url === 'string') return url;
      const { clientId, scopes } = known.issuer.login;
      const checks = {
        state: oauth.generateRandomState(),
        nonce: oauth.generateRandomNonce(),
        verifier: oauth.generateRandomCodeVerifier(),
      };
      const parameters = {
        response_type: 'code',
        client_id: clientId,
        redirect_uri: redirectUri,
        scope: scopes.join(' '),
        state: checks.state,
        nonce: checks.nonce,
        code_challenge: await oauth.calculatePKCECodeChallenge(checks.verifier),
        code_challenge_method: 'S256',
        ...(askedAgeSeconds === undefined ? {} : { max_age: String(askedAgeSeconds) }),
      };
      for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
      return { url: url.href, checks };
    },
    async finish(response, checks) {
      let reached: LoginCause = 'response';
      try {
        const known = current();
        const server = known && (await serverOf(known.issuer));
        if (known === undefined || server === undefined) return UNAVAILABLE;
        const client: oauth.Client = { client_id: known.issuer.login.clientId };
        const parameters = oauth.validateAuthResponse(server, client, response, checks.state);
        reached = 'id-token';
        const token = await idTokenFor(known.issuer, server, parameters, checks);
        return token === undefined ? REFUSED : await verify(token, checks.nonce, known);
      } catch (error) {
        // The library throws for every response that it refuses; its texts may quote the issuer.
        return error instanceof IssuerUnavailable ? UNAVAILABLE : { kind: 'refused', cause: causeOf(error, reached) };
      }
    },
  };
}

function causeOf(error: unknown, reached: LoginCause): LoginCause {
  const isRefusal = error instanceof oauth.ResponseBodyError || error instanceof oauth.WWWAuthenticateChallengeError;
  return isRefusal ? 'exchange' : reached;
}

/** The logins of several issuers, by the issuer's name, as the settings in force have them. */
export type Logins = {
  readonly names: () => readonly string[];
  readonly get: (issuer: string) => OidcLogin | undefined;
};

type LoginsPorts = Omit<LoginPorts, 'current'> & {
  /** The identity in force. */
  readonly identity: () => Pick<Identity, 'issuers' | 'keySources'>;
};

/** Creates the logins of the issuers that `isServed` names. A reload may add, change or take away the login of one. */
export function createLogins(
  redirectUri: string,
  isServed: (issuer: string) => boolean,
  { identity, ...ports }: LoginsPorts,
  demand: LoginDemand = {},
): Logins {
  const created = new Map<string, OidcLogin>();
  function currentOf(name: string): LoginIssuer | undefined {
    const { issuers, keySources } = identity();
    const [issuer, keySource] = [issuers.get(name), keySources.get(name)];
    return issuer && keySource && hasLogin(issuer) ? { issuer, keySource } : undefined;
  }
  return {
    names: () => [...identity().issuers.keys()].filter((name) => isServed(name) && currentOf(name) !== undefined),
    get(name) {
      if (!isServed(name) || currentOf(name) === undefined) return undefined;
      const known =
        created.get(name) ?? createOidcLogin(redirectUri, { ...ports, current: () => currentOf(name) }, demand);
      created.set(name, known);
      return known;
    },
  };
}

function hasLogin(issuer: IssuerSettings): issuer is LoginIssuer['issuer'] {
  return issuer.login !== undefined;
}

function verified(
  { issuedAt, authTime, groups, ...person }: NonNullable<ReturnType<typeof checkIdToken>>,
  { issuer }: IssuerSettings,
): VerifiedLogin {
  // Groups that the token does not list give no role.
  const known = groups === 'unknown' ? [] : groups;
  return { kind: 'verified', issuer, ...person, groups: known, issuedAtMs: issuedAt, authTimeMs: authTime };
}

type Headers = Readonly<Record<string, string>>;

/** A browser is sent to https, and to plain http only where the issuer itself is reached so. */
function mayBeVisited({ protocol, origin }: URL, { issuer }: IssuerSettings): boolean {
  return protocol === 'https:' || (protocol === 'http:' && origin === new URL(issuer).origin);
}

/** INVARIANT: the algorithm and the header are checked as those of the issuer's access tokens are. */
function planOf(token: string, issuer: IssuerSettings): SignaturePlan | undefined {
  for (const tokenType of ID_TOKEN_TYPES) {
    const plan = planVerification(token, [{ ...issuer, tokenType, introspection: undefined }]);
    if (typeof plan !== 'string' && plan.kind === 'signature') return plan;
  }
  return undefined;
}
