// Who calls: the verified caller. The type is here so that pure decisions can read it;
// only auth/principal.ts may make one (an architecture test reads the casts).

// On whose behalf something leaves for an upstream: the verified caller, the decision it belongs to, and
// the token that was presented, as a thing that can be carried and not read. Only the token exchange
// opens it (an architecture test reads who does). Decides nothing.
// MCP security best practices (token passthrough); RFC 8693 §2.1.

/** Only this file can name the member: no serializer visits it, and no other code reads it. */
const TOKEN = Symbol('subject token');

/** The caller's token, closed: it shows in no text, no JSON and no log. */
type SubjectToken = { readonly [TOKEN]: string };

export type Caller = {
  readonly principal: Principal;
  /** The decision id of the exchange. */
  readonly decisionId: string;
  /** Absent once nothing more may be exchanged for it: what is at hand must do. */
  readonly token: SubjectToken | undefined;
  /** How often something was signed for it, so that no two assertions share an id. */
  signed: number;
};

/** Closes a token. */
export function closeToken(token: string): SubjectToken {
  return { [TOKEN]: token };
}

/** INVARIANT: called by the token exchange alone, which sends it to the configured server and nowhere else. */
export function openToken(token: SubjectToken): string {
  return token[TOKEN];
}

/** The same caller for what outlives the exchange: the token is not kept. */
export function withoutToken({ principal, decisionId }: Caller): Caller {
  return { principal, decisionId, token: undefined, signed: 0 };
}

declare const principalBrand: unique symbol;

/** One link of an actor chain (RFC 8693 §4.1). */
export type Actor = { readonly issuer?: string; readonly subject: string };

/** What a token is bound to (RFC 7800 §3.1): SHA-256 thumbprints, base64url. Both, where it names both. */
export type Confirmation = {
  /** Of the key that signs proofs (`jkt`, RFC 9449 §6.1). */
  readonly proofKey?: string;
  /** Of the client's certificate (`x5t#S256`, RFC 8705 §3.1). */
  readonly certificate?: string;
};

/** What the challenge of a refused login says of the proof of possession (RFC 9449 §7.1 and §9). */
export type ProofError = 'invalid_token' | 'invalid_dpop_proof' | 'use_dpop_nonce';

/** The verified caller. Every value comes from a token that was verified, none from the client's own words. */
export type Principal = {
  readonly [principalBrand]: true;
  /** The name of the issuer in the configuration, which is what policies name. */
  readonly issuer: string;
  /** The `iss` claim, exactly. */
  readonly issuerUrl: string;
  readonly subject: string;
  readonly client: string;
  /** Empty where they are unknown. */
  readonly groups: readonly string[];
  /** The caller has groups that its token does not name (OpenID Connect Core §5.6.2). */
  readonly areGroupsUnknown?: true;
  /** What the token grants, and what that includes by the configured hierarchy. */
  readonly scopes: readonly string[];
  /** What the token itself says, where the hierarchy added to it. */
  readonly statedScopes?: readonly string[];
  readonly claims: { readonly [name: string]: unknown };
  readonly actors: readonly Actor[];
  readonly token: {
    /** Keyed HMAC of the token's `jti`, or of its bytes where it has none: for records, never the token. */
    readonly id: string;
    /** The same under the older gateway keys, so that what names a token outlives a rotation. */
    readonly formerIds: readonly string[];
    readonly audience: string;
    /** Milliseconds since the epoch. Streams end when it passes. `Infinity` where authentication is none. */
    readonly expiresAt: number;
    /** Milliseconds since the epoch; `undefined` where the issuer does not say. */
    readonly issuedAt: number | undefined;
    readonly binding: 'none' | 'dpop' | 'mtls';
    /** Absent where the token is bound to nothing. */
    readonly boundTo?: Confirmation;
  };
};
