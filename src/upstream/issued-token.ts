// Judges what an authorization server issued, before it is shown to anybody: that it is a bearer token for
// the upstream and for no one else of ours, with no right that was not asked for, and that it is not the
// caller's own token come back. A token that cannot be read is taken as the server describes it.
// RFC 6749 §5.1, RFC 8693 §2.2.1, RFC 8707 §2, RFC 9068 §2.2. Pure.

import type { TokenRequestSettings } from '../config/settings.js';
import { isObject, type JsonObject } from '../mcp/message.js';

/** The members of a token response that are judged. `token_type` in lower case. */
export type TokenResponse = {
  readonly access_token: string;
  readonly token_type: string;
  readonly expires_in?: number | undefined;
  readonly scope?: string | undefined;
  readonly issued_token_type?: unknown;
};

export type TokenRequestContext = {
  readonly request: Pick<TokenRequestSettings, 'scopes' | 'resource' | 'audience' | 'own'>;
  /** The token that was given in exchange; absent where none was. */
  readonly subjectToken: string | undefined;
  readonly nowMs: number;
};

export type IssuedTokenOutcome =
  | { readonly kind: 'good'; readonly token: string; readonly untilMs: number }
  | { readonly kind: 'bad'; readonly why: string };

/** RFC 6750 §2.1. */
const BEARER = /^[A-Za-z0-9._~+/-]{1,8192}=*$/;
const ISSUED_TYPES: ReadonlySet<unknown> = new Set([
  'urn:ietf:params:oauth:token-type:access_token',
  'urn:ietf:params:oauth:token-type:jwt',
]);
/** A token of which nothing says how long it lives, and the longest that one is kept. */
const DEFAULT_LIFE_MS = 60_000;
const MAX_LIFE_MS = 60 * 60 * 1000;

/** The token and its end, or in fixed words what is wrong with it. */
export function checkIssued(
  response: TokenResponse,
  asked: TokenRequestContext,
): IssuedTokenOutcome {
  const why = responseErrorOf(response, asked);
  if (why !== undefined) return { kind: 'bad', why };
  const token = response.access_token;
  const claims = readClaims(token);
  const bad = claims === undefined ? undefined : claimsErrorOf(claims, asked);
  if (bad !== undefined) return { kind: 'bad', why: bad };
  const lifeMs = Math.min(lifeOf(response, claims), MAX_LIFE_MS);
  const expiresAt = claims?.['exp'];
  const untilMs = Math.min(
    asked.nowMs + lifeMs,
    typeof expiresAt === 'number' ? expiresAt * 1000 : Number.POSITIVE_INFINITY,
  );
  if (untilMs <= asked.nowMs) return { kind: 'bad', why: 'the token has expired' };
  return { kind: 'good', token, untilMs };
}

function lifeOf({ expires_in: seconds }: TokenResponse, claims: JsonObject | undefined): number {
  if (seconds !== undefined) return seconds * 1000;
  return typeof claims?.['exp'] === 'number' ? MAX_LIFE_MS : DEFAULT_LIFE_MS;
}

function responseErrorOf(
  response: TokenResponse,
  { request, subjectToken }: TokenRequestContext,
): string | undefined {
  if (response.token_type !== 'bearer') return 'the token is no bearer token';
  if (!BEARER.test(response.access_token)) return 'the token cannot stand in a header';
  if (subjectToken !== undefined) {
    if (!ISSUED_TYPES.has(response.issued_token_type)) return 'the token is of another type';
    if (response.access_token === subjectToken) return "the token is the caller's own";
  }
  return isWider(response.scope, request.scopes)
    ? 'the token has scopes beyond those asked for'
    : undefined;
}

/** Where nothing was asked for, the server decides (RFC 6749 §3.3). */
function isWider(scope: string | undefined, asked: readonly string[]): boolean {
  if (scope === undefined || asked.length === 0) return false;
  return scope.split(' ').some((one) => one !== '' && !asked.includes(one));
}

function claimsErrorOf(claims: JsonObject, { request }: TokenRequestContext): string | undefined {
  const audiences = textsOf(claims['aud']);
  const wanted = [request.resource, request.audience].filter((one) => one !== undefined);
  if (!wanted.every((one) => audiences.includes(one))) return 'the token has another audience';
  if (audiences.some((one) => isOwn(one, wanted, request.own))) {
    return 'the token is one for the gateway itself';
  }
  const scopes = [claims['scope'], claims['scp']].flatMap(textsOf).join(' ');
  return isWider(scopes, request.scopes)
    ? 'the token has scopes beyond those asked for'
    : undefined;
}

/** With such an audience the upstream could come back with the token as its caller. */
function isOwn(
  audience: string,
  wanted: readonly string[],
  { audiences, base }: TokenRequestSettings['own'],
): boolean {
  if (wanted.includes(audience)) return false;
  return audiences.includes(audience) || audience === base || audience.startsWith(`${base}/`);
}

function textsOf(value: unknown): readonly string[] {
  return [value].flat().filter((one): one is string => typeof one === 'string');
}

/** The claims of a JWT that anybody can read; its signature is for the upstream to verify. */
function readClaims(token: string): JsonObject | undefined {
  const parts = token.split('.');
  if (parts.length !== 3) return undefined;
  try {
    const claims: unknown = JSON.parse(Buffer.from(parts[1] ?? '', 'base64url').toString('utf8'));
    return isObject(claims) ? claims : undefined;
  } catch {
    return undefined;
  }
}
