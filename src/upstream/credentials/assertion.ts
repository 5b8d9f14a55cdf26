// Signs an assertion that tells one upstream who the caller is: for that audience only, short-lived, one per
// request. It is not a credential of the caller and proves nothing to anyone else; the upstream verifies it
// with the gateway's published keys. A client's own header of that name is never forwarded.
// RFC 7519; RFC 7515; RFC 8037 (EdDSA); RFC 8693 §4.1 and §4.3 (`act`, `client_id`).

import { randomUUID } from 'node:crypto';
import type { UpstreamIdentity } from '../../config/settings.js';
import type { Actor, Caller } from '../../policy/principal.js';
import type { CallerOrGateway, RegisterCredential } from './presenter.js';

/** Signs with a gateway key that is used for nothing else. */
export type AssertionSigner = {
  readonly keyId: string;
  /** Ed25519 signature, base64url. */
  sign(bytes: Uint8Array): string;
};

export type AssertionPorts = {
  readonly identity: UpstreamIdentity;
  /** The gateway's `publicUrl`. */
  readonly issuer: string;
  readonly signer: AssertionSigner;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly onCredential: RegisterCredential;
};

const TYPE = 'sallyport-assertion+jwt';
/** The `client_id` claim of the gateway's own requests. */
const GATEWAY_CLIENT_ID = 'sallyport';
const MS_PER_SECOND = 1000;

/** Creates the function that signs one assertion and returns the header's name and value. */
export function createAssertion(
  ports: AssertionPorts,
): (caller: CallerOrGateway) => readonly string[] {
  const { identity, issuer, signer, now, onCredential } = ports;
  const head = encode({ typ: TYPE, alg: 'EdDSA', kid: signer.keyId });
  // Every assertion differs, but all begin with the same header and the same first claims, so registering
  // these prefixes is enough to find any assertion in a response.
  onCredential(head, 'prefix');
  const claims = JSON.stringify({ iss: issuer, aud: identity.audience, iat: 0 });
  onCredential(stableBase64urlPrefix(claims.slice(0, claims.lastIndexOf('0'))), 'prefix');
  const ttl = Math.max(1, Math.floor(identity.ttlMs / MS_PER_SECOND));
  return (caller) => {
    const iat = Math.floor(now() / MS_PER_SECOND);
    const claims = { iss: issuer, aud: identity.audience, iat, exp: iat + ttl };
    const subjectClaims = caller === 'gateway' ? gatewayClaims(issuer) : callerClaims(caller);
    const signed = `${head}.${encode({ ...claims, ...subjectClaims })}`;
    return [identity.header, `${signed}.${signer.sign(Buffer.from(signed))}`];
  };
}

/** The base64url characters that this text determines regardless of what follows it. */
function stableBase64urlPrefix(text: string): string {
  const bytes = Buffer.from(text);
  return bytes.subarray(0, bytes.length - (bytes.length % 3)).toString('base64url');
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function gatewayClaims(issuer: string): Readonly<Record<string, unknown>> {
  return { sub: issuer, sub_iss: issuer, client_id: GATEWAY_CLIENT_ID, jti: randomUUID() };
}

/** The first assertion of a decision has the decision id as `jti`; later ones append a counter. */
function callerClaims(caller: Caller): Readonly<Record<string, unknown>> {
  const { principal, decisionId } = caller;
  const { subject, issuerUrl, client, actors } = principal;
  const jti = caller.assertionCount === 0 ? decisionId : `${decisionId}.${caller.assertionCount}`;
  caller.assertionCount += 1;
  const acting = actClaim(actors);
  return {
    sub: subject,
    // A subject is unique only within its issuer.
    sub_iss: issuerUrl,
    client_id: client,
    decision: decisionId,
    jti,
    ...(acting === undefined ? {} : { act: acting }),
  };
}

/** The actor chain: the current actor is outermost, and each contains the previous one (RFC 8693 §4.1). */
function actClaim(actors: readonly Actor[]): object | undefined {
  return actors.reduceRight<object | undefined>((before, { issuer, subject }) => {
    const actorClaims = issuer === undefined ? { sub: subject } : { iss: issuer, sub: subject };
    return before === undefined ? actorClaims : { ...actorClaims, act: before };
  }, undefined);
}
