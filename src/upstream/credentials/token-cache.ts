// Keeps tokens that were issued to the gateway until shortly before they end, and asks for the next while
// the last is still good: whoever comes meanwhile waits for nothing. One request at a time for one key; a
// failure is remembered for a moment, so that a flood of calls is no flood of token requests.
// Holds tokens in memory alone, and never gives the token of one key for another.

import type {
  CredentialSource,
  CredentialState,
  NoteCredential,
  OnBehalf,
  Shown,
} from './presenter.js';

/** A token that may be shown, as a header. */
export type Obtained = {
  readonly kind: 'obtained';
  readonly value: string;
  /** Milliseconds since the epoch. */
  readonly untilMs: number;
};

/** Why there is none, in words that are safe to log. `isOfCaller`: the server would not take its token. */
export type TokenError = {
  readonly kind: 'fault';
  readonly detail: string;
  readonly isOfCaller: boolean;
};

export type TokenCachePorts = {
  /** Whose token it is: equal keys share one. */
  keyOf(by: OnBehalf): string;
  /** False where nothing more can be asked for on its behalf. */
  mayRequest(by: OnBehalf): boolean;
  /** Asks the authorization server. Never rejects. */
  ask(by: OnBehalf): Promise<Obtained | TokenError>;
  readonly now: () => number;
  readonly onError: (detail: string) => void;
  readonly onCredential: NoteCredential;
  readonly maxEntries?: number;
};

type Entry = {
  readonly shown: readonly string[];
  readonly refreshAtMs: number;
  readonly untilMs: number;
};

/** Callers whose tokens are kept; of more than these the one obtained first goes. */
const MAX_ENTRIES = 10_000;
/** A token is not shown in its last moments: it must still be good where it arrives. */
const LEEWAY_MS = 5_000;
/** The next is asked for in the last part of a token's life, and at most this long before its end. */
const REFRESH_PART = 0.2;
const MAX_REFRESH_MS = 60_000;
/** After a failure, or after a token was not accepted, the next request waits this long. */
const PAUSE_MS = 1_000;

/** An empty cache. */
export function createTokenCache(ports: TokenCachePorts): CredentialSource {
  const { now, maxEntries = MAX_ENTRIES } = ports;
  const entries = new Map<string, Entry>();
  const pending = new Map<string, Promise<Shown>>();
  const failedUntilMs = new Map<string, number>();
  const droppedUntilMs = new Map<string, number>();
  let state: CredentialState = { state: 'armed', detail: '' };

  function keep(key: string, { value, untilMs }: Obtained): readonly string[] {
    ports.onCredential(value, 'issued');
    const shown: readonly string[] = Object.freeze(['authorization', `Bearer ${value}`]);
    const nowMs = now();
    const lastMs = untilMs - LEEWAY_MS;
    const aheadMs = Math.min((lastMs - nowMs) * REFRESH_PART, MAX_REFRESH_MS);
    const entry = { shown, untilMs: lastMs, refreshAtMs: lastMs - aheadMs };
    if (lastMs > nowMs) setBounded(entries, key, entry, maxEntries);
    else entries.delete(key);
    return shown;
  }

  function fail(key: string, { detail, isOfCaller }: TokenError): Shown {
    setBounded(failedUntilMs, key, now() + PAUSE_MS, maxEntries);
    if (!isOfCaller) state = { state: 'degraded', detail };
    ports.onError(detail);
    return 'upstream-credentials';
  }

  async function askOnce(key: string, by: OnBehalf): Promise<Shown> {
    const response = await ports.ask(by).finally(() => pending.delete(key));
    if (response.kind === 'fault') return fail(key, response);
    failedUntilMs.delete(key);
    state = { state: 'armed', detail: '' };
    return keep(key, response);
  }

  function ask(key: string, by: OnBehalf): Promise<Shown> {
    const known = pending.get(key);
    if (known !== undefined) return known;
    const asked = askOnce(key, by);
    pending.set(key, asked);
    return asked;
  }

  function mayRequest(key: string, by: OnBehalf, nowMs: number): boolean {
    return (failedUntilMs.get(key) ?? 0) <= nowMs && ports.mayRequest(by);
  }

  return {
    header(by) {
      const key = ports.keyOf(by);
      const nowMs = now();
      const entry = entries.get(key);
      if (entry !== undefined && nowMs < entry.untilMs) {
        if (nowMs >= entry.refreshAtMs && mayRequest(key, by, nowMs)) void ask(key, by);
        return entry.shown;
      }
      return mayRequest(key, by, nowMs) ? ask(key, by) : 'upstream-credentials';
    },
    refused(by, value) {
      const key = ports.keyOf(by);
      // What was shown may have been renewed since, and a caller cannot have tokens issued at will.
      if (entries.get(key)?.shown[1] !== value) return;
      if ((droppedUntilMs.get(key) ?? 0) > now()) return;
      setBounded(droppedUntilMs, key, now() + PAUSE_MS, maxEntries);
      entries.delete(key);
    },
    state: () => state,
  };
}

/** The one set first goes where there are too many. */
function setBounded<Value>(map: Map<string, Value>, key: string, value: Value, max: number): void {
  map.delete(key);
  const [first] = map.keys();
  if (map.size >= max && first !== undefined) map.delete(first);
  map.set(key, value);
}
