// Plans the verification of a token and verifies its signature. What an unverified token says of itself is used only to
// choose how it is verified: the issuer whose keys or introspection endpoint are used, the type, the algorithm and the
// key id. Nothing of it is trusted before that.
// RFC 7515 §3.1, §4.1, §5.2 and Appendix C, RFC 4648 §3.5, RFC 7519 §7.2, RFC 8725 §3.1, §3.10 and §3.11, RFC 9068 §4,
// RFC 7662 §4.

import { type CryptoKey, errors, jwtVerify } from 'jose';
import type { IssuerSettings } from '../config/settings.js';
import type { TokenFacts } from '../policy/record.js';
import { type Json, type JsonObject, parseObject } from '../protocol/jsonrpc.js';
import { type AuthnReason, CLOCK_TOLERANCE_MS, type ClaimSource } from './claims.js';
import type { Header } from './issuer.js';

/** Three parts: unsecured tokens have an empty third, encrypted ones have five (RFC 7516 §3.1). */
const COMPACT_JWS = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/;

/** Last characters that leave no spare bit set, by the length of the part modulo 4. */
const CANONICAL_ENDS: readonly (string | undefined)[] = [
  'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_',
  undefined,
  'AQgw',
  'AEIMQUYcgkosw048',
];

/** Whether no part between dots has a spare bit set. */
export function hasCanonicalParts(text: string): boolean {
  for (let start = 0; start <= text.length; ) {
    const dot = text.indexOf('.', start);
    const end = dot === -1 ? text.length : dot;
    const isCanonical = CANONICAL_ENDS[(end - start) % 4]?.includes(text.charAt(end - 1));
    if (end > start && isCanonical !== true) return false;
    start = end + 1;
  }
  return true;
}

/** True for a compact JWS in canonical encoding. */
export function isCompactJws(text: string): boolean {
  return COMPACT_JWS.test(text) && hasCanonicalParts(text);
}

export type Verification<Plan = TokenPlan> = {
  readonly token: string;
  readonly plan: Plan;
  readonly audiences: readonly string[];
};

const CLAIM_REASONS: ReadonlyMap<string, AuthnReason> = new Map([
  ['typ', 'token-type'],
  ['iss', 'token-issuer'],
  ['aud', 'token-audience'],
]);

/** The reason for an error of jose; undefined when the error says nothing about the token. */
function reasonOf(error: unknown): AuthnReason | undefined {
  if (error instanceof errors.JWTExpired) return 'token-expired';
  if (error instanceof errors.JWTClaimValidationFailed) {
    // Other reasons mean that the claim is absent or not a number.
    if (error.claim === 'nbf' && error.reason === 'check_failed') return 'token-not-yet-valid';
    return CLAIM_REASONS.get(error.claim) ?? 'token-malformed';
  }
  if (error instanceof errors.JWSSignatureVerificationFailed) return 'token-signature';
  if (error instanceof errors.JOSEAlgNotAllowed) return 'token-signature';
  return error instanceof errors.JOSEError ? 'token-malformed' : undefined;
}

/**
 * Verifies the signature with the first of the keys that made it, and type, issuer, audience and times as far as jose does; claims.ts checks all
 * of these but the signature again, more strictly. Returns the claims, or why the token is refused. `now` is in
 * milliseconds since the epoch. Rejects only for an error that says nothing about the token.
 */
export async function verifySignature(
  verification: Verification<SignaturePlan>,
  keys: readonly CryptoKey[],
  now: number,
): Promise<JsonObject | AuthnReason> {
  let outcome: JsonObject | AuthnReason = 'token-signature';
  for (const key of keys) {
    outcome = await verifyWith(verification, key, now);
    if (outcome !== 'token-signature') break;
  }
  return outcome;
}

async function verifyWith(
  { token, plan, audiences }: Verification<SignaturePlan>,
  key: CryptoKey,
  now: number,
): Promise<JsonObject | AuthnReason> {
  try {
    const { payload } = await jwtVerify(token, key, {
      algorithms: [plan.header.alg],
      issuer: plan.issuer.issuer,
      audience: [...audiences],
      ...(plan.issuer.tokenType === 'none' ? {} : { typ: plan.issuer.tokenType }),
      requiredClaims: ['exp', 'iat', 'sub', 'aud', 'iss'],
      clockTolerance: CLOCK_TOLERANCE_MS / 1000,
      currentDate: new Date(now),
    });
    // jose parsed it from JSON, so its members are JSON.
    return payload as JsonObject;
  } catch (error) {
    const reason = reasonOf(error);
    if (reason === undefined) throw error;
    return reason;
  }
}

/** Header members that would supply a key or change what is verified (RFC 7515 §4.1.2 to §4.1.6, §4.1.11). */
const FORBIDDEN_MEMBERS = ['jku', 'jwk', 'x5u', 'x5c', 'crit', 'b64'];
const MAX_KEY_ID_LENGTH = 256;

/** The configured type of issuers whose access tokens carry none. */
const NO_TYPE = 'none';
const ACCESS_TOKEN_TYPE = 'at+jwt';
/** Types of access tokens; a token of any other type is not sent for introspection. */
const INTROSPECTABLE_TYPES: readonly unknown[] = [undefined, 'jwt', ACCESS_TOKEN_TYPE];

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** How one token is verified: with a key of its issuer, or by introspection. */
type TokenPlan =
  | {
      readonly kind: 'signature';
      readonly issuer: IssuerSettings;
      readonly header: Header;
      readonly source: Exclude<ClaimSource, 'introspection'>;
    }
  | { readonly kind: 'introspection'; readonly issuer: IssuerSettings };

export type SignaturePlan = Extract<TokenPlan, { readonly kind: 'signature' }>;

/** The JSON object that the bytes of a token or proof encode; `undefined` if they do not encode one. */
export function readObject(bytes: Uint8Array): JsonObject | undefined {
  try {
    return parseObject(UTF8.decode(bytes));
  } catch {
    return undefined;
  }
}

function readPart(part = ''): JsonObject | undefined {
  return readObject(Buffer.from(part, 'base64url'));
}

/** Media types are compared without case and with or without `application/` (RFC 7515 §4.1.9). */
function normalizeType(type: string): string {
  const lower = type.toLowerCase();
  return lower.startsWith('application/') ? lower.slice('application/'.length) : lower;
}

function readHeader(header: JsonObject): SignaturePlan['header'] | undefined {
  if (FORBIDDEN_MEMBERS.some((member) => Object.hasOwn(header, member))) return undefined;
  const { alg, kid } = header;
  if (typeof alg !== 'string') return undefined;
  if (kid === undefined) return { alg };
  if (typeof kid !== 'string' || kid.length > MAX_KEY_ID_LENGTH) return undefined;
  return { alg, kid };
}

function isConfiguredType(typ: Json | undefined, configured: string): boolean {
  if (configured === NO_TYPE) return typ === undefined;
  return typeof typ === 'string' && normalizeType(typ) === normalizeType(configured);
}

/** Checks type, algorithm and key id of a token that is verified with its issuer's keys. */
function planSignature(head: JsonObject, issuer: IssuerSettings): TokenPlan | AuthnReason {
  const header = readHeader(head);
  if (header === undefined) return 'token-malformed';
  if (!isConfiguredType(head['typ'], issuer.tokenType)) return 'token-type';
  if (!issuer.algorithms.includes(header.alg)) return 'token-signature';
  const isTyped = normalizeType(issuer.tokenType) === ACCESS_TOKEN_TYPE;
  return { kind: 'signature', issuer, header, source: isTyped ? 'at+jwt' : 'jwt' };
}

const MAX_RECORDED_AUDIENCES = 4;
const MAX_RECORDED = 256;

/**
 * What a token says of itself, unverified, for the record of its refusal: nothing but these three, and nothing of an
 * opaque token. The audit log escapes, masks and cuts the texts.
 */
export function presentedFacts(token: string): TokenFacts {
  const [headPart, bodyPart] = isCompactJws(token) ? token.split('.', 2) : [];
  const { typ } = readPart(headPart) ?? {};
  const { iss, aud } = readPart(bodyPart) ?? {};
  const listed = (Array.isArray(aud) ? (aud as readonly Json[]) : [aud]).filter(isText);
  return {
    ...(isText(iss) ? { issuer: shorten(iss) } : {}),
    ...(listed.length === 0 ? {} : { audience: shorten(listed.slice(0, MAX_RECORDED_AUDIENCES).join(' ')) }),
    ...(isText(typ) ? { type: shorten(typ) } : {}),
  };
}

/** A copy, which does not hold the long text: refusals are cached. */
function shorten(text: string): string {
  if (text.length <= MAX_RECORDED) return text;
  return Buffer.from(text.slice(0, MAX_RECORDED)).toString();
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function planIntrospection(head: JsonObject, issuer: IssuerSettings): TokenPlan | AuthnReason {
  const { typ } = head;
  const type = typeof typ === 'string' ? normalizeType(typ) : typ;
  return INTROSPECTABLE_TYPES.includes(type) ? { kind: 'introspection', issuer } : 'token-type';
}

/**
 * Plans the verification of a canonical token, or returns why it is refused. A JWT is verified only by the issuer of
 * `issuers` that its `iss` names exactly. An opaque token is sent to the one issuer with introspection, where there is
 * one.
 */
export function planVerification(token: string, issuers: readonly IssuerSettings[]): TokenPlan | AuthnReason {
  const introspecting = issuers.find((issuer) => issuer.introspection !== undefined);
  const [headPart, bodyPart] = isCompactJws(token) ? token.split('.', 2) : [];
  const head = readPart(headPart);
  const claims = readPart(bodyPart);
  if (head === undefined || claims === undefined) {
    return introspecting === undefined ? 'token-malformed' : { kind: 'introspection', issuer: introspecting };
  }
  const issuer = issuers.find((candidate) => candidate.issuer === claims['iss']);
  // INVARIANT: a JWT of an issuer that is not configured is never sent for introspection.
  if (issuer === undefined) return readHeader(head) === undefined ? 'token-malformed' : 'token-issuer';
  return issuer.introspection === undefined ? planSignature(head, issuer) : planIntrospection(head, issuer);
}
