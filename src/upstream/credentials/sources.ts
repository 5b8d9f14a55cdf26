// The sources of credentials, one for each type: none, a static header, a token issued to the gateway, or one for
// which the caller's token is exchanged. An upstream has two: one for callers' requests and one for the gateway's own
// listings. Neither is ever used in place of the other. Issued tokens are kept in memory only.
// docs/contract.md §3 (`credentials`, `pinning.credentials`); RFC 8693 §2.

import type {
  ActorToken,
  ClientAuthentication,
  UpstreamCredentials,
} from '../../config/settings.js';
import { openToken, ownerKey, type Principal } from '../../policy/principal.js';
import { BoundedMap } from '../../state/bounded-map.js';
import type { GuardedFetch } from '../safe-fetch.js';
import {
  type CallerOrGateway,
  type CredentialSource,
  type CredentialState,
  createNoCredential,
  createStaticCredential,
  encodedFormsOf,
  type PresentOutcome,
  type RegisterCredential,
} from './presenter.js';
import {
  createTokenEndpoint,
  type IssuedToken,
  type TokenEndpoint,
  type TokenError,
} from './token-endpoint.js';

type CredentialPorts = {
  readonly guardedFetch: Pick<GuardedFetch, 'fetchJson' | 'postForm'>;
  readonly now: () => number;
  /** The upstream's request timeout; obtaining credentials may not take longer. */
  readonly requestTimeoutMs: number;
  /** Called with the reason why a token could not be obtained, in text that is safe to log. */
  readonly onError: (detail: string) => void;
  readonly onCredential: RegisterCredential;
};

/** The longest wait for an authorization server. */
const MAX_TOKEN_WAIT_MS = 10_000;

/**
 * Creates the source for these credentials and registers their secrets. No token is requested before it is
 * needed.
 */
export function createCredentialSource(
  credentials: UpstreamCredentials,
  ports: CredentialPorts,
): CredentialSource {
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

const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const TOKEN_TYPE = 'urn:ietf:params:oauth:token-type:';

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
  const acting: Readonly<Record<string, string>> =
    actor === undefined
      ? {}
      : { actor_token: actor.token, actor_token_type: TOKEN_TYPE + actor.type };

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
      const response = await endpoint.requestToken({
        type: TOKEN_EXCHANGE,
        parameters: {
          subject_token: subjectToken,
          subject_token_type: `${TOKEN_TYPE}access_token`,
          requested_token_type: `${TOKEN_TYPE}access_token`,
          ...acting,
        },
        subjectToken,
      });
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
        if (nowMs >= entry.refreshAtMs && mayRequest(key, caller, nowMs))
          void requestShared(key, caller);
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
