// Reads what an unverified token says of itself, only to choose how it is verified: the issuer whose
// keys are asked, the type, the algorithm, the key id. Nothing read here is ever believed.
// RFC 7515 §4.1, RFC 8725 §3.1, §3.10 and §3.11, RFC 9068 §4.

import type { IssuerSettings } from '../config/settings.js';
import { isObject, type JsonObject } from '../mcp/message.js';
import type { AuthnReason } from './claims.js';

/** Header members that would bring a key or change what is verified (RFC 7515 §4.1.2 to §4.1.6, §4.1.11). */
const FORBIDDEN_MEMBERS = ['jku', 'jwk', 'x5u', 'x5c', 'crit', 'b64'];
const MAX_KEY_ID_LENGTH = 256;

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** How one token is to be verified. */
export type TokenPlan = {
  readonly issuer: IssuerSettings;
  readonly header: { readonly kid?: string; readonly alg: string };
};

function readPart(part: string | undefined): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(UTF8.decode(Buffer.from(part ?? '', 'base64url')));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Media types compare without case and with or without `application/` (RFC 7515 §4.1.9). */
function normalizeType(type: string): string {
  const lower = type.toLowerCase();
  return lower.startsWith('application/') ? lower.slice('application/'.length) : lower;
}

function readHeader(header: JsonObject): TokenPlan['header'] | undefined {
  if (FORBIDDEN_MEMBERS.some((member) => Object.hasOwn(header, member))) return undefined;
  const { alg, kid } = header;
  if (typeof alg !== 'string') return undefined;
  if (kid === undefined) return { alg };
  if (typeof kid !== 'string' || kid.length > MAX_KEY_ID_LENGTH) return undefined;
  return { alg, kid };
}

/**
 * Plans the verification of a canonical compact JWS, or says why there is none: the token is judged by
 * that issuer of `issuers` which its `iss` names exactly, and by no other.
 */
export function planVerification(
  token: string,
  issuers: readonly IssuerSettings[],
): TokenPlan | AuthnReason {
  const [headPart, bodyPart] = token.split('.', 2);
  const head = readPart(headPart);
  const claims = readPart(bodyPart);
  const header = head && readHeader(head);
  if (head === undefined || header === undefined || claims === undefined) return 'token-malformed';
  const issuer = issuers.find((candidate) => candidate.issuer === claims['iss']);
  if (issuer === undefined) return 'token-issuer';
  const { typ } = head;
  if (typeof typ !== 'string' || normalizeType(typ) !== normalizeType(issuer.tokenType)) {
    return 'token-type';
  }
  return issuer.algorithms.includes(header.alg) ? { issuer, header } : 'token-signature';
}
