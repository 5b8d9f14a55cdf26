// Caches tokens issued to the gateway until shortly before they expire, and refreshes a token while it is
// still valid, so that requests do not wait. At most one token request runs per key, and a failure is
// remembered briefly so that a flood of calls does not become a flood of token requests. Tokens are kept in
// memory only. INVARIANT: a token is never returned for another key.

import { BoundedMap } from '../../state/bounded-map.js';
import type {
  CallerOrGateway,
  CredentialSource,
  CredentialState,
  PresentOutcome,
  RegisterCredential,
} from './presenter.js';

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
};

export type TokenCachePorts = {
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

type Entry = {
  readonly headers: readonly string[];
  readonly refreshAtMs: number;
  readonly expiresAtMs: number;
};

/** Maximum number of cached tokens; beyond it the oldest is evicted. */
const MAX_ENTRIES = 10_000;
/** How long before its expiry a token is no longer presented: it must still be valid on arrival. */
const LEEWAY_MS = 5_000;
/** A token is refreshed in this last fraction of its lifetime, and at most this long before its end. */
const REFRESH_FRACTION = 0.2;
const MAX_REFRESH_MS = 60_000;
/** Wait before the next request after a failure, and between evictions of rejected tokens. */
const PAUSE_MS = 1_000;

export function createTokenCache(ports: TokenCachePorts): CredentialSource {
  const { now, maxEntries = MAX_ENTRIES } = ports;
  const entries = new BoundedMap<string, Entry>(maxEntries);
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
