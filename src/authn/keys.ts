// Keeps the keys of one issuer: fetched when first asked for, again when old or when a token names an
// unknown one, and kept for a bounded time while the issuer cannot be reached.
// Keys belong to one issuer; no set is ever asked for another's token. It verifies nothing.
// RFC 8414 §3.3, RFC 7517 §5; OpenID Connect Core §10.1.1 (rotation).

import type { CryptoKey } from 'jose';
import type { IssuerSettings } from '../config/settings.js';
import { discover, type FetchJson, learnedUrlRule } from './discovery.js';
import { type KeySet, readKeySet, selectKey } from './key-set.js';

const MAX_KEY_SET_BYTES = 64 * 1024;
const KEY_SET_TIMEOUT_MS = 5_000;
/** Keys older than this, or than half of what they may become, are fetched again while they serve. */
const REFRESH_AGE_MS = 10 * 60_000;
/** Where the keys live is asked again after this, and after each failure. */
const DISCOVERY_AGE_MS = 60 * 60_000;
/** Between two fetches that unknown key ids cause. */
const UNKNOWN_KEY_COOLDOWN_MS = 30_000;
/** Requests that may wait for a fetch; each holds its body, and nobody knows yet who sent it. */
const MAX_WAITING = 64;
/** Between two attempts while the issuer fails. */
const FAILURE_PAUSE_MS = 5_000;
/** The longest pause between attempts that no request asked for: it doubles up to this. */
const MAX_IDLE_PAUSE_MS = 60_000;

/** `unknown`: the issuer does not publish such a key. `unavailable`: that cannot be known now. */
export type KeyLookup =
  | { readonly kind: 'key'; readonly key: CryptoKey; readonly generation: number }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'unavailable' };

export type KeySourceStatus = {
  /** `degraded`: there are no keys, or the last attempt to fetch them failed. */
  readonly state: 'armed' | 'degraded';
  /** Milliseconds since the epoch. */
  readonly lastSuccessAt: number | undefined;
  /** Why the last attempt failed. Holds no text of the issuer but the target of a redirect. */
  readonly failure: string | undefined;
};

export type KeySource = {
  /** The key for a token's header. At most one fetch runs at a time. */
  keysFor(header: Header): Promise<KeyLookup>;
  /** Fetches now, for a warm start. True when the keys are there. */
  refresh(): Promise<boolean>;
  /** To be called now and then: fetches ahead of need, so that an outage finds keys that are young. */
  keepFresh(): void;
  /**
   * Grows when the set of keys changes: what was verified before is to be verified again. `undefined`
   * while no keys may serve: what they verified does not outlive them.
   */
  generation(): number | undefined;
  status(): KeySourceStatus;
};

/** What a token says of the key that signed it. */
type Header = { readonly kid?: string; readonly alg: string };

type Ports = { readonly fetchJson: FetchJson; readonly now: () => number };

type State = {
  keys: KeySet | undefined;
  fingerprint: string | undefined;
  generation: number;
  jwksUri: { readonly url: URL; readonly foundAt: number } | undefined;
  lastSuccessAt: number | undefined;
  lastFailureAt: number | undefined;
  failures: number;
  failure: string | undefined;
  unknownKeyFetchAt: number | undefined;
};

function hasPassed(since: number | undefined, durationMs: number, now: number): boolean {
  return since === undefined || now - since >= durationMs;
}

/** Fetches the set once and notes how it went; undefined when it went well, else why not. */
async function fetchKeySet(
  issuer: IssuerSettings,
  ports: Ports,
  state: State,
): Promise<string | undefined> {
  if (
    state.jwksUri === undefined ||
    hasPassed(state.jwksUri.foundAt, DISCOVERY_AGE_MS, ports.now())
  ) {
    const discovery = await discover(issuer, 'jwks_uri', ports.fetchJson);
    if (!discovery.ok) return discovery.detail;
    state.jwksUri = { url: discovery.url, foundAt: ports.now() };
  }
  const outcome = await ports.fetchJson(state.jwksUri.url, {
    ...learnedUrlRule(issuer),
    maxBytes: MAX_KEY_SET_BYTES,
    timeoutMs: KEY_SET_TIMEOUT_MS,
  });
  if (!outcome.ok) return `the key set ${outcome.detail}`;
  const reading = await readKeySet(outcome.value, issuer.algorithms);
  if (!reading.ok) return reading.detail;
  if (state.fingerprint !== reading.fingerprint) state.generation += 1;
  state.keys = reading.keys;
  state.fingerprint = reading.fingerprint;
  return undefined;
}

async function fetchAndNote(issuer: IssuerSettings, ports: Ports, state: State): Promise<boolean> {
  const failure = await fetchKeySet(issuer, ports, state).catch(() => 'the keys could not be read');
  state.failure = failure;
  if (failure === undefined) {
    state.lastSuccessAt = ports.now();
    state.lastFailureAt = undefined;
    state.failures = 0;
    return true;
  }
  state.lastFailureAt = ports.now();
  state.failures += 1;
  state.jwksUri = undefined;
  return false;
}

/** The keys that may serve now; undefined when there are none or they are too old. */
function currentKeys(state: State, maxAgeMs: number, now: number): KeySet | undefined {
  return hasPassed(state.lastSuccessAt, maxAgeMs, now) ? undefined : state.keys;
}

/** Makes the key source of one issuer. It opens nothing until it is asked, and needs no closing. */
export function createKeySource(issuer: IssuerSettings, ports: Ports): KeySource {
  const state: State = {
    keys: undefined,
    fingerprint: undefined,
    generation: 0,
    jwksUri: undefined,
    lastSuccessAt: undefined,
    lastFailureAt: undefined,
    failures: 0,
    failure: undefined,
    unknownKeyFetchAt: undefined,
  };
  const { keysMaxAgeMs } = issuer;
  const refreshAgeMs = Math.min(REFRESH_AGE_MS, keysMaxAgeMs / 2);
  let running: Promise<boolean> | undefined;
  let waiting = 0;

  function refresh(): Promise<boolean> {
    running ??= fetchAndNote(issuer, ports, state).finally(() => {
      running = undefined;
    });
    return running;
  }

  function mayRetry(): boolean {
    return running !== undefined || hasPassed(state.lastFailureAt, FAILURE_PAUSE_MS, ports.now());
  }

  /** Keys that are too old to serve are waited for; those that are merely old are not. */
  async function freshKeys(): Promise<KeySet | undefined> {
    const keys = currentKeys(state, keysMaxAgeMs, ports.now());
    if (keys === undefined) {
      if (mayRetry()) await refresh();
      return currentKeys(state, keysMaxAgeMs, ports.now());
    }
    // `refresh` notes its failures and does not reject.
    if (isDue() && mayRetry()) void refresh();
    return keys;
  }

  function isDue(): boolean {
    return state.failure !== undefined || hasPassed(state.lastSuccessAt, refreshAgeMs, ports.now());
  }

  function keepFresh(): void {
    const pauseMs = Math.min(FAILURE_PAUSE_MS * 2 ** (state.failures - 1), MAX_IDLE_PAUSE_MS);
    const hasWaited = state.failures === 0 || hasPassed(state.lastFailureAt, pauseMs, ports.now());
    if (isDue() && hasWaited) void refresh();
  }

  function mayAskForUnknownKey(): boolean {
    if (state.failure !== undefined) return mayRetry();
    return hasPassed(state.unknownKeyFetchAt, UNKNOWN_KEY_COOLDOWN_MS, ports.now());
  }

  /** A flood of unknown key ids costs one fetch a cooldown, whoever sends it. */
  async function searchUnknownKey(header: Header): Promise<CryptoKey | undefined> {
    if (running !== undefined) {
      // It may have begun before the key was published, so what it brings is not the last word.
      await running;
      const key = state.keys && selectKey(state.keys, header);
      if (key !== undefined) return key;
    }
    if (mayAskForUnknownKey()) {
      state.unknownKeyFetchAt = ports.now();
      await refresh();
    }
    return state.keys && selectKey(state.keys, header);
  }

  async function lookUp(header: Header): Promise<KeyLookup> {
    const keys = await freshKeys();
    if (keys === undefined) return { kind: 'unavailable' };
    const key = selectKey(keys, header);
    if (key !== undefined) return { kind: 'key', key, generation: state.generation };
    const found = await searchUnknownKey(header);
    if (found !== undefined) return { kind: 'key', key: found, generation: state.generation };
    // With the issuer silent, nobody can say that the key does not exist.
    return state.failure === undefined ? { kind: 'unknown' } : { kind: 'unavailable' };
  }

  function isAtHand(header: Header): boolean {
    const keys = currentKeys(state, keysMaxAgeMs, ports.now());
    return keys !== undefined && selectKey(keys, header) !== undefined;
  }

  return {
    async keysFor(header) {
      if (isAtHand(header)) return lookUp(header);
      if (waiting >= MAX_WAITING) return { kind: 'unavailable' };
      waiting += 1;
      try {
        return await lookUp(header);
      } finally {
        waiting -= 1;
      }
    },
    refresh,
    keepFresh,
    generation: () =>
      currentKeys(state, keysMaxAgeMs, ports.now()) === undefined ? undefined : state.generation,
    status: () => ({
      state:
        state.failure === undefined && currentKeys(state, keysMaxAgeMs, ports.now()) !== undefined
          ? 'armed'
          : 'degraded',
      lastSuccessAt: state.lastSuccessAt,
      failure: state.failure,
    }),
  };
}
