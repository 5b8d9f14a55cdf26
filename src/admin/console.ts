// Puts the admin listener together: who may use it, how they log in, and their sessions. Also creates the rows of its page
// of upstreams, and reads the guide that it shows. docs/reference/listeners.md#the-console;
// docs/reference/configuration.md.

import { readFileSync } from 'node:fs';
import { isAuthnError } from '../auth/authenticator.js';
import { authTimeOf, personIn } from '../auth/claims.js';
import type { Identity } from '../auth/identity.js';
import { createLogins, type Logins } from '../auth/login.js';
import type { AuthnError } from '../auth/presented-token.js';
import type { AdminSettings, Settings } from '../config/settings.js';
import { isSame } from '../http/browser.js';
import type { HttpListener, ListenerAddress } from '../http/internal-server.js';
import { modeOf } from '../pins/drift-report.js';
import type { ObservedListing } from '../pins/last-seen.js';
import { PIN_KINDS } from '../pins/lock.js';
import type { Catalog } from '../policy/definitions.js';
import type { Principal } from '../policy/principal.js';
import type { KeyRing } from '../state/derived-keys.js';
import type { GatewayState } from '../state/memory.js';
import { sealedToken } from '../state/sealed-token.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { Runtimes, UpstreamRuntime } from '../upstream/runtimes.js';
import type { GuardedFetch } from '../upstream/safe-fetch.js';
import { type AdminPorts, createAdminServer } from './admin-server.js';
import type { TokenHolder } from './api-response.js';
import type { UpstreamRow } from './pages.js';
import {
  ADMIN_ROLES,
  type AdminRole,
  type AdminSession,
  type ConsoleLogin,
  createSessions,
  type SessionPorts,
} from './sessions.js';

const NOTHING_REPEATED: ReadonlySet<string> = new Set();

const SESSION = sealedToken<AdminSession>('admin-session/1');
const LOGIN = sealedToken<ConsoleLogin>('admin-login/1');
const FORM_PURPOSE = 'admin-form';
const END_PURPOSE = 'admin-session-end';
const STATE_PURPOSE = 'admin-login-state';
/** Of what is shared with other uses of the same store. */
const OWNER = 'admin';

type ConsoleSources = Omit<AdminPorts, 'sessions' | 'breakGlassToken' | 'authenticateAdmin' | 'hosts' | 'holderOf'> & {
  readonly identity: () => Identity;
  readonly state: Pick<GatewayState, 'ended' | 'replays' | 'revocations'>;
  readonly guardedFetch: Pick<GuardedFetch, 'fetchJson' | 'postForm'>;
  readonly ring: KeyRing;
  readonly now: () => number;
};

const REVIEW_GUIDE = new URL('../../docs/guides/reviewing-drift.md', import.meta.url);

/** The guide to reviewing drift, as it is installed beside the program. */
export function readReviewGuide(): string | undefined {
  try {
    return readFileSync(REVIEW_GUIDE, 'utf8');
  } catch {
    return undefined;
  }
}

/** Creates the admin listener; it is closed until `start`. */
export function createConsole(admin: AdminSettings, address: ListenerAddress, sources: ConsoleSources): HttpListener {
  return createAdminServer(address, {
    ...sources,
    onAccess({ issuer: name, ...access }) {
      // As in every other event: by its identifier. A name that a reload took away says more than nothing.
      const issuer = name && (sources.identity().issuers.get(name)?.issuer ?? name);
      sources.onAccess({ ...access, issuer });
    },
    breakGlassToken: admin.breakGlassToken,
    hosts: admin.publicUrl === undefined ? [] : [admin.publicUrl.hostname],
    holderOf: (session) => holderOfSession(session, sources.identity()),
    authenticateAdmin: createAdminAccess(admin, sources.identity),
    sessions: createSessions(sessionPorts(admin, sources)),
  });
}

/** The roles of a caller, by its groups at one issuer. */
function rolesAt(admin: AdminSettings, issuer: string, groups: readonly string[]): readonly AdminRole[] | undefined {
  const granted = Object.hasOwn(admin.issuers, issuer) ? admin.issuers[issuer]?.roles : undefined;
  return granted && ADMIN_ROLES.filter((role) => granted[role].some((group) => groups.includes(group)));
}

/**
 * Authenticates an administrator: a token of a configured admin issuer, for the admin audience, with a group that has a
 * role. It is verified like a caller's token. Resolves with `undefined` for a token that is not accepted, and with
 * `unavailable` where keys or revocations cannot be read now.
 */
function createAdminAccess(admin: AdminSettings, identity: () => Identity): AdminPorts['authenticateAdmin'] {
  // One frozen object, because the authenticator caches its results by it.
  const acceptance = Object.freeze({
    name: 'admin',
    issuers: Object.keys(admin.issuers),
    audiences: Object.fromEntries(Object.entries(admin.issuers).map(([name, { audience }]) => [name, [audience]])),
    resource: '',
  });
  return async (headers) => {
    const caller = await identity().adminAuthenticator.authenticate(
      { headers, repeated: NOTHING_REPEATED, query: '' },
      acceptance,
    );
    if (isAuthnError(caller)) return isTransient(caller.reason) ? 'unavailable' : undefined;
    const roles = rolesAt(admin, caller.issuer, caller.groups);
    const holder = holderOfToken(caller, identity());
    return roles && { issuer: caller.issuer, subject: caller.subject, roles, holder };
  };
}

function holderOfToken(
  { issuer: name, issuerUrl, subject, client, groups, actors, claims }: Principal,
  identity: Identity,
): TokenHolder {
  const issuer = identity.issuers.get(name);
  // The subject of a token that a client obtained for itself is the client (RFC 9068 §2.2).
  const isOfClient = subject === client;
  const match = issuer && personIn(claims, issuer);
  return {
    person: { issuer: issuerUrl, subject, match },
    groups,
    hasActors: actors.length > 0,
    untold: untoldBy(name, match, identity),
    proof: 'token',
    authenticatedAtMs: isOfClient ? undefined : authTimeOf(claims),
  };
}

/** Why it cannot be told whether this is the caller, or has answered before, under another client or issuer. */
function untoldBy(
  issuer: string,
  match: string | undefined,
  { issuers, hidesPersons }: Pick<Identity, 'issuers' | 'hidesPersons'>,
): TokenHolder['untold'] {
  if (issuers.get(issuer)?.login?.match === undefined) return hidesPersons(issuer) ? 'by-issuer' : undefined;
  return match === undefined ? 'by-token' : undefined;
}

/** Whoever logged in at the console; `undefined` for the break-glass token, or where the issuer is gone. */
function holderOfSession(
  { issuer, subject, groups, actors = [], match, authTimeMs }: AdminSession,
  identity: Identity,
): TokenHolder | undefined {
  const settings = issuer === undefined ? undefined : identity.issuers.get(issuer);
  if (settings === undefined) return undefined;
  return {
    person: { issuer: settings.issuer, subject, match },
    groups,
    hasActors: actors.length > 0,
    untold: untoldBy(settings.name, match, identity),
    proof: 'login',
    authenticatedAtMs: authTimeMs,
  };
}

/** An error that says nothing about the token: a 401 would make its holder log in again. */
function isTransient(reason: AuthnError['reason']): boolean {
  return reason === 'keys-unavailable' || reason === 'store-unavailable';
}

function sessionPorts(admin: AdminSettings, sources: ConsoleSources): SessionPorts {
  const { ring, now, state } = sources;
  const { breakGlassToken } = admin;
  // A session that began with another break-glass token does not open.
  const bound = [ring.hmac(FORM_PURPOSE, breakGlassToken ?? '')];
  const boundOf = (issuer: string | undefined): readonly string[] => (issuer === undefined ? bound : []);
  const isSecure = admin.publicUrl?.protocol === 'https:';
  return {
    isSecure,
    sealSession: (session, expiresAtMs) => SESSION.seal(ring, boundOf(session.issuer), session, expiresAtMs),
    openSession: (sealed) => SESSION.open(ring, [], sealed, now()) ?? SESSION.open(ring, bound, sealed, now()),
    sealLogin: (login, expiresAtMs) => LOGIN.seal(ring, [], login, expiresAtMs),
    openLogin: (sealed) => LOGIN.open(ring, [], sealed, now()),
    formToken: (id) => ring.hmac(FORM_PURPOSE, id),
    useState: async (used, expiresAtMs) => state.replays.useOnce(ring.hmac(STATE_PURPOSE, used), expiresAtMs, OWNER),
    endSession: (id, expiresAtMs) => state.ended.add(ring.hmac(END_PURPOSE, id), expiresAtMs, OWNER),
    isEnded: (session) => ring.hmacAll(END_PURPOSE, session.id).some(state.ended.has) || isRevoked(session, sources),
    rolesOf({ issuer, groups }) {
      if (issuer !== undefined) return rolesAt(admin, issuer, groups) ?? [];
      return breakGlassToken === undefined ? [] : ADMIN_ROLES;
    },
    isBreakGlass: (token) => breakGlassToken !== undefined && breakGlassToken !== '' && isSame(token, breakGlassToken),
    logins: loginsOf(admin, sources),
    now,
  };
}

function loginsOf({ publicUrl, issuers }: AdminSettings, { guardedFetch, identity, now }: ConsoleSources): Logins {
  if (publicUrl === undefined) return { names: () => [], get: () => undefined };
  const redirectUri = new URL('/login/callback', publicUrl).href;
  return createLogins(redirectUri, (name) => Object.hasOwn(issuers, name), { ...guardedFetch, identity, now });
}

/** Whether the subject or an actor was blocked, or its tokens for the console revoked after the login. */
function isRevoked(
  { issuer: name, subject, actors = [], issuedAtMs }: AdminSession,
  { identity, state }: ConsoleSources,
): boolean {
  if (name === undefined) return false;
  const { issuer: issuerUrl, login } = identity().issuers.get(name) ?? {};
  const client = login?.clientId;
  if (issuerUrl === undefined || client === undefined) return true;
  return state.revocations.isLoginShut({ issuerUrl, subject, client, actors }, issuedAtMs);
}

type RowSources = {
  readonly version: () => { readonly settings: Settings };
  readonly runtimes: Pick<Runtimes, 'all'>;
  /** The newest catalog of an upstream, as a plain client sees it. */
  readonly catalogOf: (runtime: UpstreamRuntime) => Catalog;
};

/** Creates the rows of the page upstreams, one for each upstream. */
export function createUpstreamRows(
  { version, runtimes, catalogOf }: RowSources,
  metrics: Pick<Metrics, 'loadOf'>,
): () => readonly UpstreamRow[] {
  return () => {
    const current = version();
    return [...runtimes.all()].map((runtime) => {
      const { name, resource: url } = runtime.settings;
      const pinning = modeOf(runtime, current);
      const catalog = catalogOf(runtime);
      const listings = runtime.observed()?.listings ?? [];
      return {
        ...{ name, url, pinning, load: metrics.loadOf(name) },
        isUp: runtime.isUp(),
        isFresh: pinning === 'off' || runtime.isFresh(),
        protocols: [...new Set(listings.flatMap((one) => one.protocolVersions))],
        states: statesIn(catalog, listings),
      };
    });
  };
}

/** Counts definitions by the state of their pin. Concrete resources are not pinned but where a definition needs them. */
function statesIn(catalog: Catalog, listings: readonly ObservedListing[]): ReadonlyMap<string, number> {
  const states = new Map<string, number>();
  for (const kind of PIN_KINDS) {
    const offered = listings.flatMap(({ seen }) => [...seen[kind].keys()]);
    const names = [...catalog.names(kind), ...(kind === 'resource' ? [] : offered)];
    for (const name of new Set(names)) {
      const { state } = catalog.statusOf(kind, name);
      states.set(state, (states.get(state) ?? 0) + 1);
    }
  }
  return states;
}
