// The credentials for upstreams. Adds to every request the credential that is configured for its caller or for the gateway
// itself, and the assertion that names the caller. Usually synchronous; a request whose configured credential cannot be
// obtained is not sent. Never presents the caller's own token, and never one credential in place of another.
// A credential comes from a source, one for each type: none, a static header, a token issued to the gateway, or one for
// which the caller's token is exchanged. An upstream has two: one for callers' requests and one for the gateway's own
// listings. Issued tokens are kept in memory only.
// docs/reference/upstream-credentials.md; MCP security best practices (token passthrough); RFC 7519; RFC 7515; RFC 8037
// (EdDSA); RFC 8693 §2, §4.1 and §4.3 (`act`, `client_id`).

import { randomUUID } from 'node:crypto';
import type { ActorToken, ClientAuthentication, UpstreamCredentials, UpstreamIdentity } from '../../config/settings.js';
import { type Actor, type Caller, openToken, ownerKey, type Principal } from '../../policy/principal.js';
import { BoundedMap } from '../../state/bounds.js';
import type { GuardedFetch } from '../safe-fetch.js';
import {
  createTokenEndpoint,
  type IssuedToken,
  type ReportTokenRequest,
  type TokenEndpoint,
  type TokenError,
} from './token-endpoint.js';

/** The state of a credential, for the table of controls. */
type CredentialState = {
  readonly state: 'armed' | 'degraded' | 'off';
  readonly detail: string;
};

/** Supplies the credential header of one upstream: none, a static secret, or an issued token. */
export type CredentialSource = {
  /** The header; synchronous if it is at hand. Never rejects. */
  header(caller: CallerOrGateway): PresentOutcome | Promise<PresentOutcome>;
  /** Reports that the upstream rejected this value of the header. */
  reportRejected(caller: CallerOrGateway, value: string | undefined): void;
  state(): CredentialState;
};

/**
 * Called with each credential before it is presented, so that it is recognized in the upstream's responses.
 * `configured`: in the configuration. `issued`: a token that expires. `prefix`: the common prefix of a series.
 */
export type RegisterCredential = (value: string, kind: 'configured' | 'issued' | 'prefix') => void;

/** The caller on whose behalf a request is sent, or the gateway itself. */
export type CallerOrGateway = Caller | 'gateway';

/** Alternating header names and values, or the reason why nothing may be sent. */
export type PresentOutcome = readonly string[] | 'upstream-credentials';

export type Presenter = {
  /** The headers to add. Never rejects. */
  present(caller: CallerOrGateway): PresentOutcome | Promise<PresentOutcome>;
  /** Reports that the upstream rejected these headers, so that they are not presented again. */
  reportRejected(caller: CallerOrGateway, credentials: readonly string[]): void;
  /** The states of the credential for callers and of the one for the gateway's own requests. */
  states(): readonly CredentialState[];
};

type PresenterSources = {
  readonly callerSource: CredentialSource;
  readonly gatewaySource: CredentialSource;
  /** Creates the assertion; absent if none is configured. */
  readonly signAssertion?: ((caller: CallerOrGateway) => readonly string[]) | undefined;
};

/** Combines the credential sources and the assertion. */
export function createPresenter({ callerSource, gatewaySource, signAssertion }: PresenterSources): Presenter {
  const sourceOf = (caller: CallerOrGateway): CredentialSource => (caller === 'gateway' ? gatewaySource : callerSource);
  function withAssertion(credentials: PresentOutcome, caller: CallerOrGateway): PresentOutcome {
    return signAssertion === undefined || typeof credentials === 'string'
      ? credentials
      : [...credentials, ...signAssertion(caller)];
  }
  return {
    present(caller) {
      const credentials = sourceOf(caller).header(caller);
      return credentials instanceof Promise
        ? credentials.then((resolved) => withAssertion(resolved, caller))
        : withAssertion(credentials, caller);
    },
    reportRejected: (caller, [, value]) => sourceOf(caller).reportRejected(caller, value),
    states: () =>
      callerSource === gatewaySource ? [callerSource.state()] : [callerSource.state(), gatewaySource.state()],
  };
}

/** Signs with a gateway key that is used for nothing else. */
export type AssertionSigner = {
  readonly keyId: string;
  /** Ed25519 signature, base64url. */
  sign(bytes: Uint8Array): string;
};

type AssertionPorts = {
  readonly identity: UpstreamIdentity;
  /** The gateway's `publicUrl`. */
  readonly issuer: string;
  readonly signer: AssertionSigner;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly onCredential: RegisterCredential;
};

const ASSERTION_TYPE = 'sallyport-assertion+jwt';
/** The `client_id` claim of the gateway's own requests. */
const GATEWAY_CLIENT_ID = 'sallyport';
const MS_PER_SECOND = 1000;

/**
 * Creates the function that signs one assertion and returns the header's name and value. An assertion tells one upstream
 * who the caller is: for that audience only, short-lived, one per request. It is not a credential of the caller and
 * proves nothing to anyone else; the upstream verifies it with the gateway's published keys. A client's own header of
 * that name is never forwarded.
 */
export function createAssertion(ports: AssertionPorts): (caller: CallerOrGateway) => readonly string[] {
  const { identity, issuer, signer, now, onCredential } = ports;
  const head = encode({ typ: ASSERTION_TYPE, alg: 'EdDSA', kid: signer.keyId });
  // Every assertion differs, but all begin with the same header and the same first claims, so registering
  // these prefixes is enough to find any assertion in a response.
  onCredential(head, 'prefix');
  const claims = JSON.stringify({ iss: issuer, aud: identity.audience, iat: 0 });
  onCredential(stableBase64urlPrefix(claims.slice(0, claims.lastIndexOf('0'))), 'prefix');
  const ttl = Math.max(1, Math.floor(identity.ttlMs / MS_PER_SECOND));
  return (caller) => {
    const iat = Math.floor(now() / MS_PER_SECOND);
    const claims = { iss: issuer, aud: identity.audience, iat, exp: iat + ttl };
    const subjectClaims = caller === 'gateway' ? gatewayClaims(issuer) : callerClaims(caller);
    const signed = `${head}.${encode({ ...claims, ...subjectClaims })}`;
    return [identity.header, `${signed}.${signer.sign(Buffer.from(signed))}`];
  };
}

/** The base64url characters that this text determines regardless of what follows it. */
function stableBase64urlPrefix(text: string): string {
  const bytes = Buffer.from(text);
  return bytes.subarray(0, bytes.length - (bytes.length % 3)).toString('base64url');
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function gatewayClaims(issuer: string): Readonly<Record<string, unknown>> {
  return { sub: issuer, sub_iss: issuer, client_id: GATEWAY_CLIENT_ID, jti: randomUUID() };
}

/** The first assertion of a decision has the decision id as `jti`; later ones append a counter. */
function callerClaims(caller: Caller): Readonly<Record<string, unknown>> {
  const { principal, decisionId } = caller;
  const { subject, issuerUrl, client, actors } = principal;
  const jti = caller.assertionCount === 0 ? decisionId : `${decisionId}.${caller.assertionCount}`;
  caller.assertionCount += 1;
  const acting = actClaim(actors);
  return {
    sub: subject,
    // A subject is unique only within its issuer.
    sub_iss: issuerUrl,
    client_id: client,
    decision: decisionId,
    jti,
    ...(acting === undefined ? {} : { act: acting }),
  };
}

/** The actor chain: the current actor is outermost, and each contains the previous one (RFC 8693 §4.1). */
function actClaim(actors: readonly Actor[]): object | undefined {
  return actors.reduceRight<object | undefined>((before, { issuer, subject }) => {
    const actorClaims = issuer === undefined ? { sub: subject } : { iss: issuer, sub: subject };
    return before === undefined ? actorClaims : { ...actorClaims, act: before };
  }, undefined);
}

type CredentialPorts = {
  readonly guardedFetch: Pick<GuardedFetch, 'fetchJson' | 'postForm'>;
  readonly now: () => number;
  /** The upstream's request timeout; obtaining credentials may not take longer. */
  readonly requestTimeoutMs: number;
  /** Called with the reason why a token could not be obtained, in text that is safe to log. */
  readonly onError: (detail: string) => void;
  readonly onCredential: RegisterCredential;
  readonly onTokenRequest: ReportTokenRequest;
};

/** The longest wait for an authorization server. */
const MAX_TOKEN_WAIT_MS = 10_000;

/**
 * Creates the source for these credentials and registers their secrets. No token is requested before it is
 * needed.
 */
export function createCredentialSource(credentials: UpstreamCredentials, ports: CredentialPorts): CredentialSource {
  const timeoutMs = Math.min(ports.requestTimeoutMs, MAX_TOKEN_WAIT_MS);
  noteConfigured(credentials, ports.onCredential);
  switch (credentials.type) {
    case 'none':
      return createNoCredential();
    case 'static':
      return createStaticCredential(credentials.header, credentials.value);
    case 'client-credentials': {
      const endpoint = createTokenEndpoint(credentials.request, { ...ports, timeoutMs });
      return createTokenCache({
        ...ports,
        keyOf: () => '',
        mayRequest: () => true,
        requestToken: () =>
          endpoint.requestToken({
            type: 'client_credentials',
            parameters: {},
            subjectToken: undefined,
          }),
      });
    }
    case 'token-exchange': {
      const endpoint = createTokenEndpoint(credentials.request, { ...ports, timeoutMs });
      return createTokenExchange(endpoint, credentials.actor, ports);
    }
  }
}

/** Registers every configured secret except private keys, which are used only to sign. */
function noteConfigured(credentials: UpstreamCredentials, note: RegisterCredential): void {
  switch (credentials.type) {
    case 'none':
      return;
    case 'static':
      for (const encodedForm of encodedFormsOf(credentials.header, credentials.value)) {
        note(encodedForm, 'configured');
      }
      return;
    case 'token-exchange':
      if (credentials.actor !== undefined) note(credentials.actor.token, 'configured');
      noteClient(credentials.request.authentication, note);
      return;
    case 'client-credentials':
      noteClient(credentials.request.authentication, note);
  }
}

function noteClient(authentication: ClientAuthentication, note: RegisterCredential): void {
  if (authentication.method !== 'private_key_jwt') note(authentication.secret, 'configured');
}

const SCHEME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ +/;

/**
 * The forms in which a credential may reappear: the header value, the value without its scheme
 * (RFC 9110 §11.4), each cookie's value (RFC 6265 §4.2.1), and for Basic the user-pass pair and the password
 * (RFC 7617).
 */
function encodedFormsOf(header: string, value: string): readonly string[] {
  if (header.toLowerCase() === 'cookie') {
    return [value, ...value.split(/; */).map((pair) => pair.slice(pair.indexOf('=') + 1))];
  }
  const bare = value.replace(SCHEME, '');
  if (!/^basic /i.test(value)) return [value, bare];
  const pair = Buffer.from(bare, 'base64').toString('utf8');
  return [value, bare, pair, pair.slice(pair.indexOf(':') + 1)];
}

const NO_HEADERS: readonly string[] = Object.freeze([]);

/** A source that presents no credential. */
function createNoCredential(): CredentialSource {
  return {
    header: () => NO_HEADERS,
    reportRejected: () => undefined,
    state: () => ({ state: 'off', detail: 'credentials: none' }),
  };
}

/** A source that always presents the same header. */
function createStaticCredential(name: string, value: string): CredentialSource {
  const headers: readonly string[] = Object.freeze([name, value]);
  return {
    header: () => headers,
    reportRejected: () => undefined,
    state: () => ({ state: 'armed', detail: '' }),
  };
}

const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:';

/** The members of a request by which a token is exchanged for an access token. */
function exchangeGrant(subjectToken: string, actor: ActorToken | undefined) {
  const acting: Readonly<Record<string, string>> =
    actor === undefined ? {} : { actor_token: actor.token, actor_token_type: TOKEN_TYPE + actor.type };
  return {
    type: TOKEN_EXCHANGE,
    parameters: {
      subject_token: subjectToken,
      subject_token_type: `${TOKEN_TYPE}access_token`,
      requested_token_type: `${TOKEN_TYPE}access_token`,
      ...acting,
    },
    subjectToken,
  };
}

/** No token of anybody. */
const NO_TOKEN = 'sallyport-validate';
/** What a server says of a subject token that is none (RFC 8693 §2.2.2), and of one that it does not accept. */
const REFUSALS_OF_NO_TOKEN: ReadonlySet<string | undefined> = new Set([
  'invalid_request',
  'invalid_grant',
  'access_denied',
]);

/**
 * Asks to exchange a text that is no token, which shows whether the server is there and accepts this client, and issues
 * nothing. Resolves with what is wrong; `undefined` if nothing is.
 */
export async function tryTokenExchange(
  { request, actor }: Extract<UpstreamCredentials, { readonly type: 'token-exchange' }>,
  ports: Pick<CredentialPorts, 'guardedFetch' | 'now' | 'requestTimeoutMs'>,
): Promise<string | undefined> {
  const timeoutMs = Math.min(ports.requestTimeoutMs, MAX_TOKEN_WAIT_MS);
  const endpoint = createTokenEndpoint(request, { ...ports, timeoutMs, onTokenRequest: () => undefined });
  const response = await endpoint.requestToken(exchangeGrant(NO_TOKEN, actor));
  if (response.kind === 'obtained') return 'the token endpoint exchanged a text that is no token';
  return REFUSALS_OF_NO_TOKEN.has(response.code) ? undefined : response.detail;
}

/**
 * Exchanges a caller's token for one that is issued for one upstream. This is the only place where a caller's token is
 * unsealed: it goes into the body of the request to the configured server and nowhere else. An issued token is used
 * only for the token it was exchanged for, and no longer than that token is valid. The gateway itself has no token to
 * exchange.
 */
function createTokenExchange(
  endpoint: TokenEndpoint,
  actor: ActorToken | undefined,
  ports: Pick<TokenCachePorts, 'now' | 'onError' | 'onCredential'>,
): CredentialSource {
  const keys = new WeakMap<Principal, string>();

  /** INVARIANT: a different token of the same caller may have different rights, so it has a different key. */
  function keyOf(caller: CallerOrGateway): string {
    if (caller === 'gateway') return '';
    const { principal } = caller;
    let key = keys.get(principal);
    if (key === undefined) {
      const { id, binding, audience, expiresAt } = principal.token;
      key = ownerKey(principal, principal.scopes, id, binding, audience, expiresAt);
      keys.set(principal, key);
    }
    return key;
  }

  return createTokenCache({
    ...ports,
    keyOf,
    mayRequest: (caller) => caller !== 'gateway' && caller.token !== undefined,
    async requestToken(caller) {
      if (caller === 'gateway' || caller.token === undefined)
        return {
          kind: 'error',
          detail: 'the request carries no token that could be exchanged',
          isOfCaller: true,
        };
      const subjectToken = openToken(caller.token);
      const response = await endpoint.requestToken(exchangeGrant(subjectToken, actor));
      if (response.kind === 'error') return response;
      return {
        ...response,
        expiresAtMs: Math.min(response.expiresAtMs, caller.principal.token.expiresAt),
      };
    },
  });
}

type TokenCachePorts = {
  /** The cache key; equal keys share one token. */
  keyOf(caller: CallerOrGateway): string;
  /** False if no token can be requested on this behalf. */
  mayRequest(caller: CallerOrGateway): boolean;
  /** Requests a token from the authorization server. Never rejects. */
  requestToken(caller: CallerOrGateway): Promise<IssuedToken | TokenError>;
  readonly now: () => number;
  readonly onError: (detail: string) => void;
  readonly onCredential: RegisterCredential;
  readonly maxEntries?: number;
};

type CachedToken = {
  readonly headers: readonly string[];
  readonly refreshAtMs: number;
  readonly expiresAtMs: number;
};

/** Maximum number of cached tokens; beyond it the oldest is evicted. */
const MAX_CACHED_TOKENS = 10_000;
/** How long before its expiry a token is no longer presented: it must still be valid on arrival. */
const LEEWAY_MS = 5_000;
/** A token is refreshed in this last fraction of its lifetime, and at most this long before its end. */
const REFRESH_FRACTION = 0.2;
const MAX_REFRESH_MS = 60_000;
/** Wait before the next request after a failure, and between evictions of rejected tokens. */
const PAUSE_MS = 1_000;

/**
 * Caches tokens until shortly before they expire, and refreshes a token while it is still valid, so that requests do
 * not wait. At most one token request runs per key, and a failure is remembered briefly so that a flood of calls does
 * not become a flood of token requests. INVARIANT: a token is never returned for another key.
 */
export function createTokenCache(ports: TokenCachePorts): CredentialSource {
  const { now, maxEntries = MAX_CACHED_TOKENS } = ports;
  const entries = new BoundedMap<string, CachedToken>(maxEntries);
  const pending = new Map<string, Promise<PresentOutcome>>();
  const failedUntilMs = new BoundedMap<string, number>(maxEntries);
  const evictionPausedUntilMs = new BoundedMap<string, number>(maxEntries);
  let state: CredentialState = { state: 'armed', detail: '' };

  function store(key: string, { value, expiresAtMs }: IssuedToken): readonly string[] {
    ports.onCredential(value, 'issued');
    const headers: readonly string[] = Object.freeze(['authorization', `Bearer ${value}`]);
    const nowMs = now();
    const lastMs = expiresAtMs - LEEWAY_MS;
    const aheadMs = Math.min((lastMs - nowMs) * REFRESH_FRACTION, MAX_REFRESH_MS);
    const entry = { headers, expiresAtMs: lastMs, refreshAtMs: lastMs - aheadMs };
    if (lastMs > nowMs) entries.set(key, entry);
    else entries.delete(key);
    return headers;
  }

  function fail(key: string, { detail, isOfCaller }: TokenError): PresentOutcome {
    failedUntilMs.set(key, now() + PAUSE_MS);
    if (!isOfCaller) state = { state: 'degraded', detail };
    ports.onError(detail);
    return 'upstream-credentials';
  }

  async function requestOnce(key: string, caller: CallerOrGateway): Promise<PresentOutcome> {
    const response = await ports.requestToken(caller).finally(() => pending.delete(key));
    if (response.kind === 'error') return fail(key, response);
    failedUntilMs.delete(key);
    state = { state: 'armed', detail: '' };
    return store(key, response);
  }

  function requestShared(key: string, caller: CallerOrGateway): Promise<PresentOutcome> {
    const known = pending.get(key);
    if (known !== undefined) return known;
    const request = requestOnce(key, caller);
    pending.set(key, request);
    return request;
  }

  function mayRequest(key: string, caller: CallerOrGateway, nowMs: number): boolean {
    return (failedUntilMs.get(key) ?? 0) <= nowMs && ports.mayRequest(caller);
  }

  return {
    header(caller) {
      const key = ports.keyOf(caller);
      const nowMs = now();
      const entry = entries.get(key);
      if (entry !== undefined && nowMs < entry.expiresAtMs) {
        if (nowMs >= entry.refreshAtMs && mayRequest(key, caller, nowMs)) void requestShared(key, caller);
        return entry.headers;
      }
      return mayRequest(key, caller, nowMs) ? requestShared(key, caller) : 'upstream-credentials';
    },
    reportRejected(caller, value) {
      const key = ports.keyOf(caller);
      // The rejected token may have been replaced since, and a caller must not be able to have tokens issued
      // at will.
      if (entries.get(key)?.headers[1] !== value) return;
      if ((evictionPausedUntilMs.get(key) ?? 0) > now()) return;
      evictionPausedUntilMs.set(key, now() + PAUSE_MS);
      entries.delete(key);
    },
    state: () => state,
  };
}
