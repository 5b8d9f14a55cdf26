// Checks the claims of a token whose signature, issuer and type are verified, or for which introspection returned them,
// and reads what a principal is made of. Pure: no clock, no keys, no cache.
// RFC 9068 §2.2 and §4, RFC 7519 §4.1, RFC 8707 §2, RFC 8693 §4.1, RFC 7800 §3.1, RFC 6749 §3.3, RFC 7662 §2.2.

import type { IssuerSettings } from '../config/settings.js';
import { type Actor, type Confirmation, isIdentity } from '../policy/principal.js';
import type { Reason } from '../policy/reasons.js';
import { isObject, type Json, type JsonObject, ownMember } from '../protocol/jsonrpc.js';
import { stepsOf } from '../text/json-members.js';

/**
 * Reads a claim by its configured name: the exact name or, where it begins with `/`, a JSON Pointer into the claims.
 * Dots, colons and other slashes belong to the exact name, so that no name is ambiguous. Undefined where the claim is
 * absent or `null`, by which some issuers say that they have nothing to say. RFC 6901 §3 and §4;
 * docs/reference/authorization.md.
 */
export function claimAt(claims: JsonObject, name: string): Json | undefined {
  return claimIn(claims, name) ?? undefined;
}

function claimIn(claims: JsonObject, name: string): Json | undefined {
  if (!name.startsWith('/')) return ownMember(claims, name);
  let value: Json | undefined = claims;
  for (const step of stepsOf(name)) {
    // Array elements are not addressable, because their positions have no meaning.
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
    value = ownMember(value as JsonObject, step);
  }
  return value;
}

/**
 * A claim by its exact name; `undefined` where it is absent or `null`. Not for what restricts a token, its key and its
 * actors: a token whose issuer wrote null there is not one without them.
 */
function claimOf(claims: JsonObject, name: string): Json | undefined {
  return ownMember(claims, name) ?? undefined;
}

/** SHA-256 in canonical base64url: 43 characters, the last without spare bits. */
const THUMBPRINT = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

/**
 * Reads what a verified token is bound to: `undefined` where it has no confirmation, `unknown` where the confirmation
 * cannot be checked, which makes the token unusable rather than unbound. presented-token.ts verifies the proof. RFC 7800
 * §3.1; RFC 9449 §6.1; RFC 8705 §3.1.
 */
export function readConfirmation(value: Json | undefined): Confirmation | undefined | 'unknown' {
  if (value === undefined) return undefined;
  if (!isObject(value)) return 'unknown';
  const names = Object.keys(value);
  const isKnown = names.every((name) => name === 'jkt' || name === 'x5t#S256');
  if (!isKnown || names.length === 0) return 'unknown';
  const proofKey = value['jkt'];
  const certificate = value['x5t#S256'];
  if (!isThumbprint(proofKey) || !isThumbprint(certificate)) return 'unknown';
  return {
    ...(proofKey === undefined ? {} : { proofKey }),
    ...(certificate === undefined ? {} : { certificate }),
  };
}

/** Whether the value is a thumbprint or absent. */
function isThumbprint(value: Json | undefined): value is string | undefined {
  return value === undefined || (typeof value === 'string' && THUMBPRINT.test(value));
}

/** `unknown`: the caller has groups that the token does not list. Undefined: malformed. */
type Groups = readonly string[] | 'unknown' | undefined;

/**
 * Reads the groups from the first of `names` that the claims contain. An issuer may refer to a source instead of
 * listing the groups, and the gateway fetches none: such groups are unknown, neither empty nor any. OpenID Connect Core
 * §5.6.2 (aggregated and distributed claims).
 */
function readGroups(claims: JsonObject, names: readonly string[]): Groups {
  const claimSources = claimOf(claims, '_claim_names');
  if (claimSources !== undefined && !isObject(claimSources)) return undefined;
  for (const name of names) {
    const value = claimAt(claims, name);
    if (value !== undefined) return readList(value);
    if (claimSources !== undefined && Object.hasOwn(claimSources, name)) return 'unknown';
  }
  // The marker of issuers whose tokens have no space for a source either.
  return claimOf(claims, 'hasgroups') === true && names.includes('groups') ? 'unknown' : [];
}

function readList(value: Json): readonly string[] | undefined {
  return readStrings(Array.isArray(value) ? value : [value], (group) => group !== '');
}

/** Only identity tokens (hashes, nonce) and event tokens carry these. */
const NON_ACCESS_TOKEN_CLAIMS = ['nonce', 'at_hash', 'c_hash', 's_hash', 'events', 'sub_jwk'];

/** Values that issuers write into the claim `typ` of access tokens; other tokens carry other values. */
const ACCESS_TYPES: ReadonlySet<unknown> = new Set(['bearer', 'dpop', 'at+jwt', 'jwt']);

/** Values of `token_use` of access tokens; some issuers write the name of RFC 7009 §2.1. */
const ACCESS_USES: ReadonlySet<unknown> = new Set(['access', 'access_token']);

function lower(value: unknown): unknown {
  return typeof value === 'string' ? value.toLowerCase() : value;
}

/**
 * True when the claims show that the token is not an access token, where its type does not say so: identity tokens,
 * logout tokens, refresh tokens and tokens of unknown kinds. The heuristic can only refuse a token, never accept one.
 * RFC 9068 §2.1 and §5, RFC 8725 §3.11 and §3.12; OpenID Connect Core §2, Back-Channel Logout §2.4.
 */
function isNotAccessToken(
  claims: JsonObject,
  facts: { readonly client: string; readonly audience: string; readonly hasScopes: boolean },
): boolean {
  if (NON_ACCESS_TOKEN_CLAIMS.some((name) => claimOf(claims, name) !== undefined)) return true;
  const type = claimOf(claims, 'typ');
  if (type !== undefined && !ACCESS_TYPES.has(lower(type))) return true;
  const use = claimOf(claims, 'token_use');
  if (use !== undefined && !ACCESS_USES.has(use)) return true;
  // An identity token is for the client itself, and grants nothing (OpenID Connect Core §2).
  return facts.audience === facts.client && !facts.hasScopes;
}

/**
 * RFC 7662 §2.2 (`token_type`): a bearer token, explicitly or by default, or a DPoP token with its confirmation (RFC
 * 9449 §6.2).
 */
function checkTokenType(claims: JsonObject): 'token-type' | 'token-binding' | undefined {
  const type = lower(claimOf(claims, 'token_type'));
  if (type === undefined || type === 'bearer') return undefined;
  if (type !== 'dpop') return 'token-type';
  return Object.hasOwn(claims, 'cnf') ? undefined : 'token-binding';
}

/** Why a caller could not be verified. */
export type AuthnReason = Extract<Reason, `token-${string}` | 'keys-unavailable' | 'store-unavailable'>;

/** How far the issuer's clock may be ahead of ours. An expiry gets no tolerance. */
export const CLOCK_TOLERANCE_MS = 30_000;
/** Added to the configured lifetime, for issuers that round. */
export const LIFETIME_SKEW_MS = 60_000;
const MAX_ACTORS = 8;

/** Printable ASCII without the quotation mark, the backslash and the space (RFC 6749 §3.3). */
const SCOPE_TOKEN = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** The facts in the claims of a valid token. */
export type ClaimFacts = {
  readonly subject: string;
  readonly client: string;
  readonly audience: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  /** Milliseconds since the epoch; `undefined` where the issuer does not say. */
  readonly issuedAt: number | undefined;
  /** As written in the token. */
  readonly scopes: readonly string[];
  readonly groups: Exclude<Groups, undefined>;
  readonly actors: readonly Actor[];
  readonly tokenId: string | undefined;
  /** Undefined where the token is not sender-constrained. */
  readonly boundTo: Confirmation | undefined;
};

/**
 * Where the claims come from. `at+jwt`: a token of that type; `jwt`: a token of an unspecific type; `introspection`:
 * the issuer's introspection response, which may omit more claims.
 */
export type ClaimSource = 'at+jwt' | 'jwt' | 'introspection';

type ClaimRules = {
  readonly issuer: IssuerSettings;
  readonly source: ClaimSource;
  /** Accepted audiences, compared exactly. An empty list accepts nothing. */
  readonly audiences: readonly string[];
  /** Milliseconds since the epoch. */
  readonly now: number;
};

type Times = Pick<ClaimFacts, 'expiresAt' | 'issuedAt'>;

/** The first of several claims that is present. */
function firstOf(claims: JsonObject, names: readonly string[]): Json | undefined {
  for (const name of names) {
    const value = claimAt(claims, name);
    if (value !== undefined) return value;
  }
  return undefined;
}

function readIdentity(value: Json | undefined): string | undefined {
  return typeof value === 'string' && isIdentity(value) ? value : undefined;
}

function readTime(value: Json | undefined): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value * 1000 : undefined;
}

/** When the person was authenticated (OpenID Connect Core §2; RFC 9068 §2.2.1), in milliseconds since the epoch. */
export function authTimeOf(claims: { readonly [name: string]: unknown }): number | undefined {
  const value = Object.hasOwn(claims, 'auth_time') ? claims['auth_time'] : undefined;
  return typeof value === 'number' ? readTime(value) : undefined;
}

function checkTimes(claims: JsonObject, { issuer, source, now }: ClaimRules): Times | AuthnReason {
  const expiresAt = readTime(claimOf(claims, 'exp'));
  // An introspection response may omit `iat` (RFC 7662 §2.2); then the remaining lifetime is bounded instead.
  const lacksIssuedAt = source === 'introspection' && claimOf(claims, 'iat') === undefined;
  const issuedAt = lacksIssuedAt ? now : readTime(claimOf(claims, 'iat'));
  const hasNotBefore = claimOf(claims, 'nbf') !== undefined;
  const notBefore = hasNotBefore ? readTime(claimOf(claims, 'nbf')) : issuedAt;
  if (expiresAt === undefined || issuedAt === undefined || notBefore === undefined) {
    return 'token-malformed';
  }
  if (Math.max(issuedAt, notBefore) > now + CLOCK_TOLERANCE_MS) return 'token-not-yet-valid';
  if (expiresAt <= now) return 'token-expired';
  if (expiresAt - issuedAt > issuer.maxLifetimeMs + LIFETIME_SKEW_MS) return 'token-lifetime';
  return { expiresAt, issuedAt: lacksIssuedAt ? undefined : issuedAt };
}

/** The lifetime by which a token was refused with `token-lifetime`, in milliseconds. */
export function lifetimeOf(claims: JsonObject, now: number): number {
  const issuedAt = readTime(claimOf(claims, 'iat')) ?? now;
  return (readTime(claimOf(claims, 'exp')) ?? now) - issuedAt;
}

/** A token for several audiences can be replayed by each of them at the others, so it is refused. */
function acceptedAudience(value: Json | undefined, accepted: readonly string[]): string | undefined {
  const audience = Array.isArray(value) && value.length === 1 ? value[0] : value;
  if (typeof audience !== 'string') return undefined;
  return accepted.includes(audience) ? audience : undefined;
}

/** Scopes as one string with single spaces, or as a list. Undefined when they are neither. */
function readScopes(value: Json | undefined): readonly string[] | undefined {
  if (value === undefined || value === '') return [];
  const tokens: Json = typeof value === 'string' ? value.split(' ') : value;
  return readStrings(tokens, (token) => SCOPE_TOKEN.test(token));
}

function readStrings(value: Json, isGood: (text: string) => boolean): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const texts: string[] = [];
  for (const member of value as readonly Json[]) {
    if (typeof member !== 'string' || !isGood(member)) return undefined;
    texts.push(member);
  }
  return texts;
}

/** The chain of actors for the subject, the current one first. `clientNames`: the claims that may name a client. */
function readActors(value: Json | undefined, clientNames: readonly string[]): readonly Actor[] | undefined {
  const actors: Actor[] = [];
  let link = value;
  while (link !== undefined) {
    if (!isObject(link) || actors.length === MAX_ACTORS) return undefined;
    const subject = readIdentity(claimOf(link, 'sub'));
    const hasIssuer = claimOf(link, 'iss') !== undefined;
    const issuer = readIdentity(claimOf(link, 'iss'));
    if (subject === undefined || (hasIssuer && issuer === undefined)) return undefined;
    const client = readIdentity(firstOf(link, clientNames));
    actors.push({
      ...(issuer === undefined ? {} : { issuer }),
      subject,
      ...(client === undefined ? {} : { client }),
    });
    link = ownMember(link, 'act');
  }
  return actors;
}

/** Undefined when the claim is absent, null when it is not a valid identifier. */
function readTokenId(value: Json | undefined): string | undefined | null {
  return value === undefined ? undefined : (readIdentity(value) ?? null);
}

/** An introspection response may omit `iss`, because it comes from the issuer (RFC 7662 §2.2). */
function isOfIssuer(claims: JsonObject, { issuer, source }: ClaimRules): boolean {
  const named = claimOf(claims, 'iss');
  return named === issuer.issuer || (named === undefined && source === 'introspection');
}

/**
 * Checks `claims` and reads them, or returns why the token is refused. The confirmation is read here and its proof is
 * verified elsewhere, at every request; a confirmation that cannot be verified refuses the token (RFC 7800 §3.1).
 */
export function checkClaims(claims: JsonObject, rules: ClaimRules): ClaimFacts | AuthnReason {
  const boundTo = readConfirmation(ownMember(claims, 'cnf'));
  if (boundTo === 'unknown') return 'token-binding';
  if (!isOfIssuer(claims, rules)) return 'token-issuer';
  const type = rules.source === 'introspection' ? checkTokenType(claims) : undefined;
  if (type !== undefined) return type;
  const audience = acceptedAudience(claimOf(claims, 'aud'), rules.audiences);
  if (audience === undefined) return 'token-audience';
  const times = checkTimes(claims, rules);
  if (typeof times === 'string') return times;
  const facts = readFacts(claims, rules, audience, times);
  if (facts === undefined) return 'token-malformed';
  const hasScopes = firstOf(claims, rules.issuer.claims.scope) !== undefined;
  const isOther = rules.source !== 'at+jwt' && isNotAccessToken(claims, { ...facts, hasScopes });
  return isOther ? 'token-type' : { ...facts, boundTo };
}

/**
 * The value by which one person is known in several tokens (`issuers.<n>.login.match`); `undefined` where it is not
 * configured, or the token has no such text.
 */
export function personIn(
  claims: { readonly [name: string]: unknown },
  { login }: Pick<IssuerSettings, 'login'>,
): string | undefined {
  return login?.match === undefined ? undefined : readIdentity(claimAt(claims as JsonObject, login.match));
}

/** The same of each actor, the current one first: what the issuer says of it stands beside its subject (RFC 8693 §4.1). */
export function personsActing(
  claims: { readonly [name: string]: unknown },
  issuer: Pick<IssuerSettings, 'login'>,
): readonly (string | undefined)[] {
  const persons: (string | undefined)[] = [];
  let link = claims['act'];
  while (isObject(link as Json) && persons.length < MAX_ACTORS) {
    persons.push(personIn(link as JsonObject, issuer));
    link = ownMember(link as JsonObject, 'act');
  }
  return persons;
}

/** What is read of an ID token. */
type IdentityFacts = {
  readonly subject: string;
  readonly match: string | undefined;
  readonly groups: Exclude<Groups, undefined>;
  readonly actors: readonly Actor[];
  /** Milliseconds since the epoch. */
  readonly issuedAt: number;
  /** When the person proved who they are, in milliseconds since the epoch; `undefined` where the token does not say. */
  readonly authTime: number | undefined;
};

/**
 * Checks the claims of an ID token whose signature and times are verified, and reads them; `undefined` if it is not the
 * response to this login of this client. It has one audience, like every token here, and its lifetime does not matter,
 * because it is used at once. OpenID Connect Core §2 and §3.1.3.7.
 */
export function checkIdToken(
  claims: JsonObject,
  {
    issuer,
    clientId,
    nonce,
    now,
  }: Pick<ClaimRules, 'issuer' | 'now'> & { readonly clientId: string; readonly nonce: string },
): IdentityFacts | undefined {
  const party = claimOf(claims, 'azp');
  const isForClient =
    claimOf(claims, 'iss') === issuer.issuer &&
    acceptedAudience(claimOf(claims, 'aud'), [clientId]) !== undefined &&
    (party === undefined || party === clientId);
  // Only ID tokens carry the nonce of a login, so that no other token is taken for one.
  if (!isForClient || claimOf(claims, 'nonce') !== nonce) return undefined;
  const subject = readIdentity(claimOf(claims, 'sub'));
  const issuedAt = readTime(claimOf(claims, 'iat'));
  const groups = readGroups(claims, issuer.claims.groups);
  const actors = readActors(ownMember(claims, 'act'), issuer.claims.client);
  if (subject === undefined || issuedAt === undefined) return undefined;
  if (groups === undefined || actors === undefined) return undefined;
  // One issued later than now would outlive a revocation.
  if (issuedAt > now + CLOCK_TOLERANCE_MS) return undefined;
  const authTime = readTime(claimOf(claims, 'auth_time'));
  return { subject, groups, actors, issuedAt, authTime, match: personIn(claims, issuer) };
}

function readFacts(
  claims: JsonObject,
  { issuer: { claims: names }, source }: ClaimRules,
  audience: string,
  times: Times,
): Omit<ClaimFacts, 'boundTo'> | undefined {
  const subject = readIdentity(claimOf(claims, 'sub'));
  const client = readIdentity(firstOf(claims, names.client));
  if (subject === undefined || client === undefined) return undefined;
  const scopes = readScopes(firstOf(claims, names.scope));
  const groups = readGroups(claims, names.groups);
  const actors = readActors(ownMember(claims, 'act'), names.client);
  if (scopes === undefined || groups === undefined || actors === undefined) return undefined;
  const tokenId = readTokenId(claimOf(claims, 'jti'));
  // RFC 9068 §2.2: tokens of that type have an identifier.
  if (tokenId === null || (tokenId === undefined && source === 'at+jwt')) return undefined;
  return { subject, client, audience, ...times, scopes, groups, actors, tokenId };
}
