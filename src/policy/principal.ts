// The verified caller, and the caller together with its token, on whose behalf requests are sent to an
// upstream. The type is here so that pure decisions can read it; only auth/principal.ts makes one. The token
// can be carried but not read: only the token exchange opens it. An architecture test checks both.
// MCP security best practices (token passthrough); RFC 8693 §2.1.

/** Private to this file, so that no serializer visits the member and no other code can read it. */
const TOKEN = Symbol('subject token');

/** The caller's token in a form that appears in no text, no JSON and no log. */
type SubjectToken = { readonly [TOKEN]: string };

/** On whose behalf requests are sent to an upstream, and under which decision. */
export type Caller = {
  readonly principal: Principal;
  /** The decision id of the request. */
  readonly decisionId: string;
  /** Undefined once it may not be exchanged any more: only credentials that were already obtained can be used. */
  readonly token: SubjectToken | undefined;
  /** The trace in which the request is sent on (W3C Trace Context), if it is traced. */
  readonly traceparent?: string | undefined;
  /** How many assertions were signed for the caller, so that no two share an id. */
  assertionCount: number;
};

export function closeToken(token: string): SubjectToken {
  return { [TOKEN]: token };
}

// INVARIANT: called by the token exchange alone, which sends the token to the configured server and nowhere
// else.
export function openToken(token: SubjectToken): string {
  return token[TOKEN];
}

/** The same caller without the token, for what outlives the request. */
export function withoutToken({ principal, decisionId }: Caller): Caller {
  return { principal, decisionId, token: undefined, assertionCount: 0 };
}

/** A private member cannot be written, and a spread leaves it out, so a value is made only where the casts are. */
declare class PrincipalBrand {
  private readonly brand: never;
}

/** One link of an actor chain (RFC 8693 §4.1). */
export type Actor = {
  readonly issuer?: string;
  readonly subject: string;
  /** The client through which it acts, if the link names one. */
  readonly client?: string;
};

/** An identity: a subject is unique only within its issuer. */
export type Identity = { readonly issuer: string; readonly subject: string };

/** The issuer of an actor: its own, or that of the token where the link names none. */
export function identityOfActor(
  { issuer, subject }: Actor,
  { issuerUrl }: Pick<PrincipalFacts, 'issuerUrl'>,
): Identity {
  return { issuer: issuer ?? issuerUrl, subject };
}

/** The member of its metadata by which an issuer says that it is for development on one machine. */
export const DEVELOPMENT_MEMBER = 'sallyport_development';

/** What a token is bound to (RFC 7800 §3.1): SHA-256 thumbprints, base64url. Both, if it names both. */
export type Confirmation = {
  /** Thumbprint of the key that signs proofs (`jkt`, RFC 9449 §6.1). */
  readonly proofKey?: string;
  /** Thumbprint of the client's certificate (`x5t#S256`, RFC 8705 §3.1). */
  readonly certificate?: string;
};

/** The error of a failed proof of possession, as its challenge names it (RFC 9449 §7.1 and §9). */
export type ProofError = 'invalid_token' | 'invalid_dpop_proof' | 'use_dpop_nonce';

/** What a verified token says of its caller, for records: nothing can be decided or sent in the name of facts alone. */
export type PrincipalFacts = {
  /** The name of the issuer in the configuration, which is what policies name. */
  readonly issuer: string;
  /** The `iss` claim, exactly. */
  readonly issuerUrl: string;
  readonly subject: string;
  readonly client: string;
  /** Empty if they are unknown. */
  readonly groups: readonly string[];
  /** The caller has groups that the token does not list (OpenID Connect Core §5.6.2). */
  readonly areGroupsUnknown?: true;
  /** The scopes that the token grants, and those that the configured hierarchy includes in them. */
  readonly scopes: readonly string[];
  /** The scopes that the token itself states, if the hierarchy added to them. */
  readonly statedScopes?: readonly string[];
  readonly claims: { readonly [name: string]: unknown };
  readonly actors: readonly Actor[];
  readonly token: {
    /** Keyed HMAC of the token's `jti`, or of its bytes if it has none: for records, which never contain the token. */
    readonly id: string;
    /** The same under previous gateway keys, so that a reference to the token survives a key rotation. */
    readonly formerIds: readonly string[];
    readonly audience: string;
    /** Milliseconds since the epoch. Streams end when it passes. `Infinity` if authentication is none. */
    readonly expiresAt: number;
    /** Milliseconds since the epoch; `undefined` if the issuer does not state it. */
    readonly issuedAt: number | undefined;
    readonly binding: 'none' | 'dpop' | 'mtls';
    /** Absent if the token is bound to nothing. */
    readonly boundTo?: Confirmation;
  };
};

/** The verified caller. Every value comes from a verified token, none from what the client says of itself. */
export type Principal = PrincipalBrand & PrincipalFacts;

/** Makes the principal of facts that nobody has verified, to say what would be decided for such a caller. */
export type SupposePrincipal = (facts: PrincipalFacts) => Principal;

/** Who a token was issued to, whichever token it is. */
export type Owner = Pick<PrincipalFacts, 'issuerUrl' | 'subject' | 'client'>;

/** Identifies a caller in a table, by identity and not by token, because tokens are refreshed; `terms` narrow it. */
export function ownerKey({ issuerUrl, subject, client }: Owner, ...terms: readonly unknown[]): string {
  return JSON.stringify([issuerUrl, subject, client, ...terms]);
}

const callerKeys = new WeakMap<Principal, string>();

/** The key of a caller without further terms. Made once for each principal. */
export function callerKeyOf(principal: Principal): string {
  const known = callerKeys.get(principal);
  if (known !== undefined) return known;
  const key = ownerKey(principal);
  callerKeys.set(principal, key);
  return key;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: controls are what is refused
const NO_IDENTITY = /[\0-\x1f\x7f-\x9f]|\p{Surrogate}/u;

/**
 * Whether a text can name somebody. An identity is compared, used as a key and logged, so it must not be empty, hold a
 * control character or, in UTF-8, equal another one.
 */
export function isIdentity(text: string): boolean {
  return text !== '' && !NO_IDENTITY.test(text);
}
