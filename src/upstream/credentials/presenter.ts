// Adds to every request to an upstream the credential configured for whoever it is sent for, and the
// assertion that names the caller. Usually synchronous; a request whose configured credential cannot be
// obtained is not sent. Never presents the caller's own token, and never one credential in place of another.
// MCP security best practices (token passthrough); RFC 7519; RFC 7515; RFC 8037 (EdDSA); RFC 8693 §4.1 and §4.3 (`act`,
// `client_id`).

import { randomUUID } from 'node:crypto';
import type { UpstreamIdentity } from '../../config/settings.js';
import type { Actor, Caller } from '../../policy/principal.js';

/** The state of a credential, for the table of controls. */
export type CredentialState = {
  readonly state: 'armed' | 'degraded' | 'off';
  readonly detail: string;
};

/** Supplies the credential header of one upstream: none, a static secret, or an issued token. */
export type CredentialSource = {
  /** The header; synchronous if it is at hand. Never rejects. */
  header(caller: CallerOrGateway): PresentOutcome | Promise<PresentOutcome>;
  /** Reports that the upstream rejected this value of the header. */
  reportRejected(caller: CallerOrGateway, value: string | undefined): void;
  state(): CredentialState;
};

/**
 * Called with each credential before it is presented, so that it is recognized in the upstream's responses.
 * `configured`: in the configuration. `issued`: a token that expires. `prefix`: the common prefix of a series.
 */
export type RegisterCredential = (value: string, kind: 'configured' | 'issued' | 'prefix') => void;

const SCHEME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+ +/;

/**
 * The forms in which a credential may reappear: the header value, the value without its scheme
 * (RFC 9110 §11.4), each cookie's value (RFC 6265 §4.2.1), and for Basic the user-pass pair and the password
 * (RFC 7617).
 */
export function encodedFormsOf(header: string, value: string): readonly string[] {
  if (header.toLowerCase() === 'cookie') {
    return [value, ...value.split(/; */).map((pair) => pair.slice(pair.indexOf('=') + 1))];
  }
  const bare = value.replace(SCHEME, '');
  if (!/^basic /i.test(value)) return [value, bare];
  const pair = Buffer.from(bare, 'base64').toString('utf8');
  return [value, bare, pair, pair.slice(pair.indexOf(':') + 1)];
}

const NO_HEADERS: readonly string[] = Object.freeze([]);

/** A source that presents no credential. */
export function createNoCredential(): CredentialSource {
  return {
    header: () => NO_HEADERS,
    reportRejected: () => undefined,
    state: () => ({ state: 'off', detail: 'credentials: none' }),
  };
}

/** A source that always presents the same header. */
export function createStaticCredential(name: string, value: string): CredentialSource {
  const headers: readonly string[] = Object.freeze([name, value]);
  return {
    header: () => headers,
    reportRejected: () => undefined,
    state: () => ({ state: 'armed', detail: '' }),
  };
}

/** The caller on whose behalf a request is sent, or the gateway itself. */
export type CallerOrGateway = Caller | 'gateway';

/** Alternating header names and values, or the reason why nothing may be sent. */
export type PresentOutcome = readonly string[] | 'upstream-credentials';

export type Presenter = {
  /** The headers to add. Never rejects. */
  present(caller: CallerOrGateway): PresentOutcome | Promise<PresentOutcome>;
  /** Reports that the upstream rejected these headers, so that they are not presented again. */
  reportRejected(caller: CallerOrGateway, credentials: readonly string[]): void;
  /** The states of the credential for callers and of the one for the gateway's own requests. */
  states(): readonly CredentialState[];
};

type PresenterSources = {
  readonly callerSource: CredentialSource;
  readonly gatewaySource: CredentialSource;
  /** Creates the assertion; absent if none is configured. */
  readonly signAssertion?: ((caller: CallerOrGateway) => readonly string[]) | undefined;
};

/** Combines the credential sources and the assertion. */
export function createPresenter({
  callerSource,
  gatewaySource,
  signAssertion,
}: PresenterSources): Presenter {
  const sourceOf = (caller: CallerOrGateway): CredentialSource =>
    caller === 'gateway' ? gatewaySource : callerSource;
  function withAssertion(credentials: PresentOutcome, caller: CallerOrGateway): PresentOutcome {
    return signAssertion === undefined || typeof credentials === 'string'
      ? credentials
      : [...credentials, ...signAssertion(caller)];
  }
  return {
    present(caller) {
      const credentials = sourceOf(caller).header(caller);
      return credentials instanceof Promise
        ? credentials.then((resolved) => withAssertion(resolved, caller))
        : withAssertion(credentials, caller);
    },
    reportRejected: (caller, [, value]) => sourceOf(caller).reportRejected(caller, value),
    states: () =>
      callerSource === gatewaySource
        ? [callerSource.state()]
        : [callerSource.state(), gatewaySource.state()],
  };
}

/** Signs with a gateway key that is used for nothing else. */
export type AssertionSigner = {
  readonly keyId: string;
  /** Ed25519 signature, base64url. */
  sign(bytes: Uint8Array): string;
};

type AssertionPorts = {
  readonly identity: UpstreamIdentity;
  /** The gateway's `publicUrl`. */
  readonly issuer: string;
  readonly signer: AssertionSigner;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly onCredential: RegisterCredential;
};

const ASSERTION_TYPE = 'sallyport-assertion+jwt';
/** The `client_id` claim of the gateway's own requests. */
const GATEWAY_CLIENT_ID = 'sallyport';
const MS_PER_SECOND = 1000;

/**
 * Creates the function that signs one assertion and returns the header's name and value. An assertion tells one upstream
 * who the caller is: for that audience only, short-lived, one per request. It is not a credential of the caller and
 * proves nothing to anyone else; the upstream verifies it with the gateway's published keys. A client's own header of
 * that name is never forwarded.
 */
export function createAssertion(
  ports: AssertionPorts,
): (caller: CallerOrGateway) => readonly string[] {
  const { identity, issuer, signer, now, onCredential } = ports;
  const head = encode({ typ: ASSERTION_TYPE, alg: 'EdDSA', kid: signer.keyId });
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
