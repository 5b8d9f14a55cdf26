// Sessions of the console: who is logged in, as a sealed cookie that every replica with the same keys opens, and the
// login itself, by OpenID Connect or with the break-glass token. Reads requests and makes responses; tokens are verified
// by the port behind it. docs/reference/listeners.md#the-console.

import { randomUUID } from 'node:crypto';
import type { PlainResponse } from '../http/app.js';
import { type BrowserRequest, createAttempts, createCookies, isFormToken } from '../http/browser.js';
import { createBrowserLogin, type LoginClient, type PendingLogin } from '../http/browser-login.js';
import { foreign, formTokenField, type Html, html, seeOther } from '../http/html.js';
import type { Actor } from '../policy/principal.js';
import { BoundedMap } from '../state/bounds.js';
import { isPagePath, page } from './page-frame.js';

export const ADMIN_ROLES = ['viewer', 'reviewer', 'admin'] as const;
export type AdminRole = (typeof ADMIN_ROLES)[number];

/** What a session cookie says. */
export type AdminSession = {
  readonly id: string;
  /** The name of the issuer; absent for the break-glass token. */
  readonly issuer?: string | undefined;
  readonly subject: string;
  /** All of them: rules name groups of reviewers beside those that have a role. */
  readonly groups: readonly string[];
  /** Whoever logged in for the subject, as its ID token says; absent if nobody did. */
  readonly actors?: readonly Actor[] | undefined;
  /** The value of the claim by which one person is known at several issuers, where one is configured. */
  readonly match?: string | undefined;
  /** When the ID token was issued, in milliseconds since the epoch. */
  readonly issuedAtMs: number;
  /** When the person proved at the issuer who they are, as the ID token says; absent where it does not. */
  readonly authTimeMs?: number | undefined;
  readonly startedAtMs: number;
  readonly refreshedAtMs: number;
};

/** What a browser carries from the page of the login to its end. */
export type ConsoleLogin = PendingLogin & LoginPage;
type LoginPage = {
  readonly id: string;
  /** The path of a page. */
  readonly to?: string | undefined;
};

/** Who logged in. */
type Verified = {
  readonly kind: 'verified';
  readonly subject: string;
  readonly groups: readonly string[];
  readonly actors: readonly Actor[];
  readonly match?: string | undefined;
  readonly issuedAtMs: number;
  readonly authTimeMs?: number | undefined;
};

export type SessionPorts = {
  /** Whether browsers reach the console by https. */
  readonly isSecure: boolean;
  readonly sealSession: (session: AdminSession, expiresAtMs: number) => string;
  readonly openSession: (sealed: string) => AdminSession | undefined;
  readonly sealLogin: (login: ConsoleLogin, expiresAtMs: number) => string;
  readonly openLogin: (sealed: string) => ConsoleLogin | undefined;
  /** A keyed digest of a session's id. */
  readonly formToken: (id: string) => string;
  /** True once for each state, at every replica that shares the store; `unavailable` while that cannot be known. */
  readonly useState: (state: string, expiresAtMs: number) => Promise<boolean | 'unavailable'>;
  readonly endSession: (id: string, expiresAtMs: number) => void;
  /** Whether it was ended, or its subject was revoked. */
  readonly isEnded: (session: AdminSession) => boolean;
  /** The roles under the settings in force; none where the issuer is no longer configured. */
  readonly rolesOf: (session: Pick<AdminSession, 'issuer' | 'groups'>) => readonly AdminRole[];
  readonly isBreakGlass: (token: string) => boolean;
  /** By the issuer's name. */
  readonly logins: {
    readonly names: () => readonly string[];
    readonly get: (issuer: string) => LoginClient<Verified> | undefined;
  };
  readonly now: () => number;
};

const SESSION_COOKIE = 'sallyport-session';
const LOGIN_COOKIE = 'sallyport-login';
const IDLE_MS = 30 * 60 * 1000;
const MAX_AGE_MS = 8 * 60 * 60 * 1000;
/** A cookie is renewed when it is older than this, so that not every response sets one. */
const REFRESH_MS = 60 * 1000;
/** How old the authentication may be that a token or a session states, for its holder to grant (RFC 9470 §2). */
export const MAX_AUTH_AGE_SECONDS = 300;
/** Sessions that a subject may have at one replica. */
export const MAX_SESSIONS_PER_SUBJECT = 10;
const MAX_SUBJECTS = 10_000;
/** The subject of the break-glass token. A person may have the same at an issuer. */
export const BREAK_GLASS_SUBJECT = 'break-glass';

/** What a block says of who made it: the subject, with its issuer where it might be taken for the break-glass token. */
export function authorOf({ issuer, subject }: Pick<AdminSession, 'issuer' | 'subject'>): string {
  const isMistakable = issuer !== undefined && subject === BREAK_GLASS_SUBJECT;
  return isMistakable ? `${subject} (${issuer})` : subject;
}

/** Whoever is logged in. */
export type Visitor = {
  readonly session: AdminSession;
  readonly roles: readonly AdminRole[];
  readonly formToken: string;
  /** The renewed cookie; absent where it is young. */
  readonly setCookie: string | undefined;
};

/** A response, with whom it concerned. */
type LoginReply = {
  readonly response: PlainResponse;
  readonly subject?: string | undefined;
  /** Of the subject; absent for the break-glass token. */
  readonly issuer?: string | undefined;
  readonly detail?: Readonly<Record<string, string>> | undefined;
};

export type Sessions = {
  /** Who sent a request; `undefined` without a session that is valid now. */
  visitor(request: BrowserRequest): Visitor | undefined;
  /** The page to log in, in place of the page at `path`. */
  loginPage(request: BrowserRequest, path: string, error?: string): PlainResponse;
  /** Sends the browser to an issuer. */
  begin(request: BrowserRequest, issuer: string, query: URLSearchParams): Promise<LoginReply>;
  /** The browser comes back from an issuer. */
  finish(request: BrowserRequest, query: URLSearchParams): Promise<LoginReply>;
  /** The form with the break-glass token. */
  breakGlass(request: BrowserRequest, form: ReadonlyMap<string, string>): LoginReply;
  logOut(visitor: Visitor): LoginReply;
  /** Counts a wrong break-glass token; false once its address has sent too many. */
  mayGuess(request: Pick<BrowserRequest, 'ip'>): boolean;
};

export function createSessions(ports: SessionPorts): Sessions {
  const { now, logins } = ports;
  const cookies = createCookies(ports.isSecure);
  const login = createBrowserLogin<LoginPage, Verified>({
    ...{ cookies, now, useState: ports.useState, seal: ports.sealLogin, open: ports.openLogin, client: logins.get },
    cookieName: () => LOGIN_COOKIE,
  });
  // The way back from an issuer is part of one attempt.
  const mayTry = createAttempts(now);
  const mayGuess = createAttempts(now);
  /** The ids of the last sessions of each subject, the oldest first. */
  const started = new BoundedMap<string, readonly string[]>(MAX_SUBJECTS);

  function sealSession(session: AdminSession): string {
    const endsAtMs = Math.min(session.startedAtMs + MAX_AGE_MS, now() + IDLE_MS);
    return cookies.set(SESSION_COOKIE, ports.sealSession(session, endsAtMs));
  }

  /** INVARIANT: a session has a new id, so that nobody can choose or know it before the login. */
  function start(
    who: Pick<AdminSession, 'issuer' | 'subject' | 'groups' | 'actors' | 'match' | 'issuedAtMs' | 'authTimeMs'>,
    to: string,
  ): LoginReply {
    const { subject, issuer } = who;
    const detail = { issuer: issuer ?? BREAK_GLASS_SUBJECT };
    if (ports.rolesOf(who).length === 0)
      return { response: failed(403, NO_ROLE, [cookies.clear(LOGIN_COOKIE)]), subject, issuer, detail };
    const nowMs = now();
    const session = { id: randomUUID(), ...who, startedAtMs: nowMs, refreshedAtMs: nowMs };
    endOldest(session);
    const headers = { 'set-cookie': [sealSession(session), cookies.clear(LOGIN_COOKIE)] };
    return { response: seeOther(to, headers), subject, issuer, detail };
  }

  function endOldest({ id, issuer, subject }: AdminSession): void {
    const owner = JSON.stringify([issuer, subject]);
    const ids = [...(started.use(owner) ?? []), id];
    const over = ids.splice(0, Math.max(0, ids.length - MAX_SESSIONS_PER_SUBJECT));
    for (const old of over) ports.endSession(old, now() + MAX_AGE_MS);
    started.set(owner, ids);
  }

  function loginPage(request: BrowserRequest, path: string, error?: string): PlainResponse {
    const known = login.pendingOf(request);
    const id = known?.id ?? randomUUID();
    const main = loginForms(pathOf(path), logins.names(), ports.formToken(id), error);
    const challenge = error === undefined ? { 'www-authenticate': 'Bearer' } : {};
    // A login that began in another tab is not disturbed.
    const cookie = known === undefined ? { 'set-cookie': [login.keep({ id })] } : {};
    const status = error === undefined ? 401 : 403;
    return page('Log in', main, { status, headers: { ...challenge, ...cookie } });
  }

  return {
    visitor(request) {
      const sealed = cookies.read(request, SESSION_COOKIE);
      const session = sealed === undefined ? undefined : ports.openSession(sealed);
      if (session === undefined || session.startedAtMs + MAX_AGE_MS <= now()) return undefined;
      if (ports.isEnded(session)) return undefined;
      const roles = ports.rolesOf(session);
      if (roles.length === 0) return undefined;
      const isOld = now() - session.refreshedAtMs > REFRESH_MS;
      const setCookie = isOld ? sealSession({ ...session, refreshedAtMs: now() }) : undefined;
      return { session, roles, formToken: ports.formToken(session.id), setCookie };
    },
    loginPage,
    async begin(request, issuer, query) {
      const detail = { issuer };
      if (logins.get(issuer) === undefined) return { response: failed(404, NO_LOGIN_HERE) };
      if (!mayTry(request.ip)) return { response: failed(429, TOO_MANY), detail };
      const to = pathOf(query.get('to'));
      const askedAgeSeconds = query.has(AGAIN) ? MAX_AUTH_AGE_SECONDS : MAX_AGE_MS / 1000;
      const begun = await login.begin(issuer, { id: randomUUID(), to }, askedAgeSeconds);
      if (typeof begun === 'string') return { response: failed(503, UNAVAILABLE), detail };
      return { response: seeOther(begun.url, { 'set-cookie': [begun.cookie] }), detail };
    },
    async finish(request, query) {
      const ended = await login.finish(request, query);
      if (ended === undefined) return { response: failed(400, NO_LOGIN_PENDING) };
      const { issuer, kept, clear, outcome } = ended;
      if (outcome.kind === 'verified') {
        const { subject, groups, actors, match, issuedAtMs, authTimeMs } = outcome;
        const who = { issuer, subject, groups, actors, match, issuedAtMs, authTimeMs };
        return start(who, pathOf(kept.to));
      }
      const [status, error] = FAILURES[outcome.kind];
      return { response: failed(status, error, [clear]), detail: { issuer } };
    },
    breakGlass(request, form) {
      const pending = login.pendingOf(request);
      const to = pathOf(form.get('to'));
      const isBound = pending !== undefined && isFormToken(form, ports.formToken(pending.id));
      if (!isBound) return { response: loginPage(request, to, FORM_EXPIRED) };
      const token = form.get('token')?.trim() ?? '';
      // The right token is for emergencies: no guesses of others behind the same address may lock it out.
      if (ports.isBreakGlass(token)) return start({ subject: BREAK_GLASS_SUBJECT, groups: [], issuedAtMs: now() }, to);
      return mayGuess(request.ip)
        ? { response: loginPage(request, to, TOKEN_REFUSED) }
        : { response: failed(429, TOO_MANY) };
    },
    mayGuess: ({ ip }) => mayGuess(ip),
    logOut({ session: { id, subject, issuer, startedAtMs } }) {
      ports.endSession(id, startedAtMs + MAX_AGE_MS);
      const headers = { 'set-cookie': [cookies.clear(SESSION_COOKIE)] };
      const main = html`<p>The session has ended at every replica that shares the store.</p>
<p><a class="button" href="/">Log in again</a></p>`;
      return { response: page('Logged out', main, { headers }), subject, issuer };
    },
  };
}

/** A login that was a moment ago, for what a session that is open already does not prove. */
const AGAIN = 'again';

/** Where somebody logs in again at the same issuer, and comes back to a page. */
export function loginAgainPath(issuer: string, to: string): string {
  return `/login/with/${issuer}?to=${encodeURIComponent(to)}&${AGAIN}`;
}

const NO_ROLE = 'You are logged in at the issuer, but none of your groups has a role here.';
const NO_LOGIN_HERE = 'There is no login by this name.';
const NO_LOGIN_PENDING = 'This login has expired, was already used, or began in another browser.';
const TOO_MANY = 'There were too many attempts from your address. Try again in a minute.';
const UNAVAILABLE = 'The issuer or the shared store cannot be reached now. Try again later.';
const REFUSED = 'The issuer did not log you in, or its response could not be verified.';
const FORM_EXPIRED = 'The form had expired. Enter the token again.';
const TOKEN_REFUSED = 'The token was not accepted.';

const FAILURES = {
  used: [400, NO_LOGIN_PENDING],
  'no-auth-time': [403, REFUSED],
  old: [403, REFUSED],
  refused: [403, REFUSED],
  unavailable: [503, UNAVAILABLE],
} as const;

function failed(status: number, error: string, cookies: readonly string[] = []): PlainResponse {
  const main = html`<p class="panel error" role="alert">${error}</p>
<p><a class="button" href="/">Log in</a></p>`;
  const headers = cookies.length === 0 ? {} : { 'set-cookie': [...cookies] };
  return page('Login failed', main, { status, headers });
}

function loginForms(to: string, issuers: readonly string[], formToken: string, error: string | undefined): Html {
  const query = to === '/' ? '' : `?to=${encodeURIComponent(to)}`;
  const links = issuers.map(
    (name) => html`<p><a class="button" href="/login/with/${name}${query}">Log in with ${foreign(name)}</a></p>`,
  );
  return html`${error === undefined ? undefined : html`<p class="panel error" role="alert">${error}</p>`}
<p>The console shows what waits for a reviewer, the state of the controls, drift and pending definitions, and recent decisions.</p>
${links}
<h2>Break-glass token</h2>
<p>For when no issuer can be reached. Its use is recorded.</p>
<form class="stack" method="post" action="/login">${formTokenField(formToken)}<input type="hidden" name="to" value="${to}">
<div><label for="token">Token</label><input id="token" name="token" type="password" autocomplete="off" required></div>
<button>Log in with the token</button></form>`;
}

/** INVARIANT: a login leads to a page of the console and nowhere else. */
function pathOf(asked: string | null | undefined): string {
  return typeof asked === 'string' && isPagePath(asked) ? asked : '/';
}
