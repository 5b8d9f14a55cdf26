// Judges the claims of a token whose signature, issuer and type already hold, or for which its issuer
// answered, and reads from them what a principal is made of. Pure: no clock, no keys, no cache.
// RFC 9068 §2.2 and §4, RFC 7519 §4.1, RFC 8707 §2, RFC 8693 §4.1, RFC 7800 §3.1, RFC 6749 §3.3,
// RFC 7662 §2.2.

import type { IssuerSettings } from '../config/settings.js';
import { isObject, type Json, type JsonObject } from '../mcp/message.js';
import type { Actor, Confirmation } from '../policy/principal.js';
import type { Reason } from '../policy/reasons.js';
import { claimAt, own } from './claim-path.js';
import { readConfirmation } from './confirmation.js';
import { type Groups, readGroups } from './group-claim.js';
import { checkTokenType, isOtherKind } from './token-kind.js';

/** Why a caller could not be verified. */
export type AuthnReason = Extract<
  Reason,
  `token-${string}` | 'keys-unavailable' | 'store-unavailable'
>;

/** How far the issuer's clock may be ahead of ours. An expiry gets no tolerance. */
export const CLOCK_TOLERANCE_MS = 30_000;
/** Added to the configured lifetime, for issuers that round. */
export const LIFETIME_SKEW_MS = 60_000;
const MAX_ACTORS = 8;

/** Printable ASCII without the quotation mark, the backslash and the space (RFC 6749 §3.3). */
const SCOPE_TOKEN = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** What the claims of a good token say. */
export type ClaimFacts = {
  readonly subject: string;
  readonly client: string;
  readonly audience: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number;
  /** Milliseconds since the epoch; `undefined` where the issuer does not say. */
  readonly issuedAt: number | undefined;
  /** As the token has them. */
  readonly scopes: readonly string[];
  readonly groups: Exclude<Groups, undefined>;
  readonly actors: readonly Actor[];
  readonly tokenId: string | undefined;
  /** Undefined where the token is bound to nothing. */
  readonly boundTo: Confirmation | undefined;
};

/**
 * What stands behind the claims. `at+jwt`: a token of that type; `jwt`: one whose type tells nothing;
 * `introspection`: the answer of the issuer, where it may leave more unsaid.
 */
export type ClaimSource = 'at+jwt' | 'jwt' | 'introspection';

export type ClaimRules = {
  readonly issuer: IssuerSettings;
  readonly source: ClaimSource;
  /** Accepted audiences, compared exactly. Empty accepts nothing. */
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

function hasControlCharacter(text: string): boolean {
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return true;
  }
  return false;
}

/** An identity is compared, keyed and logged: it is not empty and holds no control character. */
function readIdentity(value: Json | undefined): string | undefined {
  if (typeof value !== 'string' || value === '' || hasControlCharacter(value)) return undefined;
  return value;
}

function readTime(value: Json | undefined): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value * 1000 : undefined;
}

function checkTimes(claims: JsonObject, { issuer, source, now }: ClaimRules): Times | AuthnReason {
  const expiresAt = readTime(own(claims, 'exp'));
  // An answer need not say since when: what is left of the token is bounded then (RFC 7662 §2.2).
  const lacksIssuedAt = source === 'introspection' && !Object.hasOwn(claims, 'iat');
  const issuedAt = lacksIssuedAt ? now : readTime(own(claims, 'iat'));
  const hasNotBefore = own(claims, 'nbf') !== undefined;
  const notBefore = hasNotBefore ? readTime(own(claims, 'nbf')) : issuedAt;
  if (expiresAt === undefined || issuedAt === undefined || notBefore === undefined) {
    return 'token-malformed';
  }
  if (Math.max(issuedAt, notBefore) > now + CLOCK_TOLERANCE_MS) return 'token-not-yet-valid';
  if (expiresAt <= now) return 'token-expired';
  if (expiresAt - issuedAt > issuer.maxLifetimeMs + LIFETIME_SKEW_MS) return 'token-lifetime';
  return { expiresAt, issuedAt: lacksIssuedAt ? undefined : issuedAt };
}

/** A token for several audiences can be replayed by each of them at the others, so it is refused. */
function readAudience(value: Json | undefined, accepted: readonly string[]): string | undefined {
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

function readStrings(
  value: Json,
  isGood: (text: string) => boolean,
): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const texts: string[] = [];
  for (const member of value as readonly Json[]) {
    if (typeof member !== 'string' || !isGood(member)) return undefined;
    texts.push(member);
  }
  return texts;
}

/** The chain of those who act for the subject, the current one first. */
function readActors(value: Json | undefined): readonly Actor[] | undefined {
  const actors: Actor[] = [];
  let link = value;
  while (link !== undefined) {
    if (!isObject(link) || actors.length === MAX_ACTORS) return undefined;
    const subject = readIdentity(own(link, 'sub'));
    const hasIssuer = own(link, 'iss') !== undefined;
    const issuer = readIdentity(own(link, 'iss'));
    if (subject === undefined || (hasIssuer && issuer === undefined)) return undefined;
    actors.push(issuer === undefined ? { subject } : { issuer, subject });
    link = own(link, 'act');
  }
  return actors;
}

/** Undefined when the claim is absent, null when it is no identity. */
function readTokenId(value: Json | undefined): string | undefined | null {
  return value === undefined ? undefined : (readIdentity(value) ?? null);
}

/** An answer about a token may leave out who issued it: its issuer was asked (RFC 7662 §2.2). */
function isOfIssuer(claims: JsonObject, { issuer, source }: ClaimRules): boolean {
  const named = own(claims, 'iss');
  return named === issuer.issuer || (named === undefined && source === 'introspection');
}

/**
 * Judges `claims` and reads them, or says why the token is refused. What it is bound to is read here and
 * proved elsewhere, at every request; a confirmation that nobody could prove is a refusal (RFC 7800 §3.1).
 */
export function checkClaims(claims: JsonObject, rules: ClaimRules): ClaimFacts | AuthnReason {
  const boundTo = readConfirmation(own(claims, 'cnf'));
  if (boundTo === 'unknown') return 'token-binding';
  if (!isOfIssuer(claims, rules)) return 'token-issuer';
  const type = rules.source === 'introspection' ? checkTokenType(claims) : undefined;
  if (type !== undefined) return type;
  const audience = readAudience(own(claims, 'aud'), rules.audiences);
  if (audience === undefined) return 'token-audience';
  const times = checkTimes(claims, rules);
  if (typeof times === 'string') return times;
  const facts = readFacts(claims, rules, audience, times);
  if (facts === undefined) return 'token-malformed';
  const hasScopes = firstOf(claims, rules.issuer.claims.scope) !== undefined;
  const isOther = rules.source !== 'at+jwt' && isOtherKind(claims, { ...facts, hasScopes });
  return isOther ? 'token-type' : { ...facts, boundTo };
}

function readFacts(
  claims: JsonObject,
  { issuer: { claims: names }, source }: ClaimRules,
  audience: string,
  times: Times,
): Omit<ClaimFacts, 'boundTo'> | undefined {
  const subject = readIdentity(own(claims, 'sub'));
  const client = readIdentity(firstOf(claims, names.client));
  if (subject === undefined || client === undefined) return undefined;
  const scopes = readScopes(firstOf(claims, names.scope));
  const groups = readGroups(claims, names.groups);
  const actors = readActors(own(claims, 'act'));
  if (scopes === undefined || groups === undefined || actors === undefined) return undefined;
  const tokenId = readTokenId(own(claims, 'jti'));
  // RFC 9068 §2.2: tokens of that type have an identifier.
  if (tokenId === null || (tokenId === undefined && source === 'at+jwt')) return undefined;
  return { subject, client, audience, ...times, scopes, groups, actors, tokenId };
}
