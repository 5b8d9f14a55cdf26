// Tells an upstream who calls: a signed statement for it alone, good for a moment, one for each request.
// It proves nothing to anybody else and is no credential of the caller's; the upstream verifies it with
// the gateway's published keys. What the client sent under that header never comes this far.
// RFC 7519; RFC 7515; RFC 8037 (EdDSA); RFC 8693 §4.1 and §4.3 (`act`, `client_id`).

import { randomUUID } from 'node:crypto';
import type { UpstreamIdentity } from '../../config/settings.js';
import type { Actor, Caller } from '../../policy/principal.js';
import type { NoteCredential, OnBehalf } from './presenter.js';

/** Signs with a key of the gateway that signs nothing else. */
export type AssertionSigner = {
  readonly keyId: string;
  /** Ed25519, base64url. */
  sign(bytes: Uint8Array): string;
};

export type AssertionPorts = {
  readonly identity: UpstreamIdentity;
  /** The gateway's `publicUrl`. */
  readonly issuer: string;
  readonly signer: AssertionSigner;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly onCredential: NoteCredential;
};

const TYPE = 'sallyport-assertion+jwt';
/** What the gateway's own requests carry as client. */
const OWN_CLIENT = 'sallyport';
const MS_PER_SECOND = 1000;

/** Makes the header that tells on whose behalf a request is sent: its name and its value. */
export function createAssertion(ports: AssertionPorts): (by: OnBehalf) => readonly string[] {
  const { identity, issuer, signer, now, onCredential } = ports;
  const head = encode({ typ: TYPE, alg: 'EdDSA', kid: signer.keyId });
  // Each assertion is another, but all begin alike: with the same header, then with the same claims.
  onCredential(head, 'beginning');
  const claims = JSON.stringify({ iss: issuer, aud: identity.audience, iat: 0 });
  onCredential(beginningOf(claims.slice(0, claims.lastIndexOf('0'))), 'beginning');
  const ttl = Math.max(1, Math.floor(identity.ttlMs / MS_PER_SECOND));
  return (by) => {
    const iat = Math.floor(now() / MS_PER_SECOND);
    const claims = { iss: issuer, aud: identity.audience, iat, exp: iat + ttl };
    const who = by === 'gateway' ? ownClaims(issuer) : callerClaims(by);
    const signed = `${head}.${encode({ ...claims, ...who })}`;
    return [identity.header, `${signed}.${signer.sign(Buffer.from(signed))}`];
  };
}

/** The characters of base64url that a text decides, whatever follows it. */
function beginningOf(text: string): string {
  const bytes = Buffer.from(text);
  return bytes.subarray(0, bytes.length - (bytes.length % 3)).toString('base64url');
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function ownClaims(issuer: string): Readonly<Record<string, unknown>> {
  return { sub: issuer, sub_iss: issuer, client_id: OWN_CLIENT, jti: randomUUID() };
}

/** The decision id is the id of the first; what else is sent for the same decision is counted behind it. */
function callerClaims(caller: Caller): Readonly<Record<string, unknown>> {
  const { principal, decisionId } = caller;
  const { subject, issuerUrl, client, actors } = principal;
  const jti = caller.signed === 0 ? decisionId : `${decisionId}.${caller.signed}`;
  caller.signed += 1;
  const acting = actClaim(actors);
  return {
    sub: subject,
    // A subject is unique within its issuer alone.
    sub_iss: issuerUrl,
    client_id: client,
    decision: decisionId,
    jti,
    ...(acting === undefined ? {} : { act: acting }),
  };
}

/** The chain as it came: the first acts now, each holds who acted before (RFC 8693 §4.1). */
function actClaim(actors: readonly Actor[]): object | undefined {
  return actors.reduceRight<object | undefined>((before, { issuer, subject }) => {
    const own = issuer === undefined ? { sub: subject } : { iss: issuer, sub: subject };
    return before === undefined ? own : { ...own, act: before };
  }, undefined);
}
