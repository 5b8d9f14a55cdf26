// A login with a browser, from the way to an issuer to the way back: a sealed cookie carries it, the state that comes back
// is compared with it and used once at every replica. The tokens are verified by the client behind it, and who may have a
// session is up to the listener. OpenID Connect Core §3.1; RFC 6749 §10.12; RFC 9700 §4.7; docs/reference/listeners.md#logins.

import { type BrowserRequest, type Cookies, isSame } from './browser.js';

/** `state`, `nonce` and the PKCE verifier. */
export type LoginChecks = {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
};

/** What a browser carries from the begin of a login to its end, beside what the listener adds. */
export type PendingLogin = {
  readonly issuer?: string | undefined;
  readonly checks?: LoginChecks | undefined;
};

/** Why nobody logged in. `no-auth-time` and `old`: it is not proved that it was a moment ago, where that was asked for. */
type Failure =
  | { readonly kind: 'unavailable' | 'no-auth-time' | 'old' }
  | { readonly kind: 'refused'; readonly cause: 'response' | 'exchange' | 'id-token' };

/** The authorization code flow at one issuer. */
export type LoginClient<Verified> = {
  /** Where the browser is sent, or why it is not. */
  begin(
    askedAgeSeconds?: number,
  ): Promise<{ readonly url: string; readonly checks: LoginChecks } | 'unavailable' | 'pairwise'>;
  /** Checks the response that the browser brings back, and obtains and verifies the ID token. */
  finish(response: URLSearchParams, checks: LoginChecks): Promise<Verified | Failure>;
};

export type LoginPorts<Kept, Verified> = {
  readonly cookies: Cookies;
  /** The name of the cookie of a login, by its state: one for all, or one for each. */
  readonly cookieName: (state: string) => string;
  readonly seal: (pending: PendingLogin & Kept, expiresAtMs: number) => string;
  readonly open: (sealed: string) => (PendingLogin & Kept) | undefined;
  /** True once for each state, at every replica that shares the store; `unavailable` while that cannot be known. */
  readonly useState: (state: string, expiresAtMs: number) => Promise<boolean | 'unavailable'>;
  readonly client: (issuer: string) => LoginClient<Verified> | undefined;
  readonly now: () => number;
};

/** How long somebody may take at the issuer. */
export const LOGIN_MS = 10 * 60 * 1000;

type Ended<Kept, Verified> = {
  readonly issuer: string;
  readonly kept: Kept;
  readonly clear: string;
  readonly outcome: Verified | Failure | { readonly kind: 'used' };
};

export type BrowserLogin<Kept, Verified> = {
  /** The way to an issuer, with the cookie to set; `unknown` without a login there. */
  begin(
    issuer: string,
    kept: Kept,
    askedAgeSeconds?: number,
  ): Promise<{ readonly url: string; readonly cookie: string } | 'unknown' | 'unavailable' | 'pairwise'>;
  /** The way back; `undefined` where no such login began in this browser. */
  finish(request: BrowserRequest, query: URLSearchParams): Promise<Ended<Kept, Verified> | undefined>;
  pendingOf(request: BrowserRequest, state?: string): (PendingLogin & Kept) | undefined;
  /** The cookie of a login, or of the page in front of it. */
  keep(pending: PendingLogin & Kept): string;
};

export function createBrowserLogin<Kept extends object, Verified>(
  ports: LoginPorts<Kept, Verified>,
): BrowserLogin<Kept, Verified> {
  const { cookies, cookieName, now } = ports;

  function pendingOf(request: BrowserRequest, state = ''): (PendingLogin & Kept) | undefined {
    const sealed = cookies.read(request, cookieName(state));
    return sealed === undefined ? undefined : ports.open(sealed);
  }

  function keep(pending: PendingLogin & Kept): string {
    const name = cookieName(pending.checks?.state ?? '');
    return cookies.set(name, ports.seal(pending, now() + LOGIN_MS), LOGIN_MS);
  }

  /** The state is compared before it is used up: whoever does not know it cannot end the login of another. */
  function begunLogin(request: BrowserRequest, state: string) {
    const kept = pendingOf(request, state);
    const { issuer, checks } = kept ?? {};
    if (kept === undefined || issuer === undefined || checks === undefined || !isSame(state, checks.state))
      return undefined;
    const client = ports.client(issuer);
    return client && { issuer, checks, client, kept, clear: cookies.clear(cookieName(state)) };
  }

  return {
    pendingOf,
    keep,
    async begin(issuer, kept, askedAgeSeconds) {
      const client = ports.client(issuer);
      if (client === undefined) return 'unknown';
      const begun = await client.begin(askedAgeSeconds);
      if (typeof begun === 'string') return begun;
      return { url: begun.url, cookie: keep({ ...kept, issuer, checks: begun.checks }) };
    },
    async finish(request, query) {
      const begun = begunLogin(request, query.get('state') ?? '');
      if (begun === undefined) return undefined;
      const { client, checks, ...ended } = begun;
      const isFirst = await ports.useState(checks.state, now() + LOGIN_MS);
      if (isFirst === 'unavailable') return { ...ended, outcome: { kind: 'unavailable' } };
      return { ...ended, outcome: isFirst ? await client.finish(query, checks) : { kind: 'used' } };
    },
  };
}
