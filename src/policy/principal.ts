// Who calls: the verified caller. The type is here so that pure decisions can read it;
// only authn/principal.ts may make one (an architecture test reads the casts).

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
