// The client side of DPoP for tests: a key, and proofs that are good unless a test says otherwise.
// Source: RFC 9449 §4.2.

import { hash, randomUUID } from 'node:crypto';
import {
  type CryptoKey,
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  type JWK,
  SignJWT,
} from 'jose';

export type ProofOptions = {
  /** Without it the proof names no token. */
  readonly token?: string;
  /** `undefined` removes a member that is there by default. */
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly header?: Readonly<Record<string, unknown>>;
  /** Signs in place of the key that the header shows. */
  readonly signer?: CryptoKey;
};

export type ProofHolder = {
  /** Thumbprint of the key (RFC 7638): what a bound token names. */
  readonly thumbprint: string;
  readonly publicJwk: JWK;
  readonly privateJwk: JWK;
  readonly privateKey: CryptoKey;
  prove(method: string, uri: string, options?: ProofOptions): Promise<string>;
};

function present(record: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined));
}

/** A holder of a new key. */
export async function makeProofHolder(alg = 'ES256', size?: number): Promise<ProofHolder> {
  const { publicKey, privateKey } = await generateKeyPair(alg, {
    extractable: true,
    ...(size === undefined ? {} : { modulusLength: size }),
  });
  const publicJwk = await exportJWK(publicKey);
  return {
    thumbprint: await calculateJwkThumbprint(publicJwk),
    publicJwk,
    privateJwk: await exportJWK(privateKey),
    privateKey,
    prove(method, uri, { token, claims = {}, header = {}, signer = privateKey } = {}) {
      const ath = token === undefined ? undefined : hash('sha256', token, 'base64url');
      const iat = Math.floor(Date.now() / 1000);
      const body = { jti: randomUUID(), htm: method, htu: uri, iat, ath };
      return new SignJWT(present({ ...body, ...claims }))
        .setProtectedHeader(
          present({ typ: 'dpop+jwt', alg, jwk: publicJwk, ...header }) as { alg: string },
        )
        .sign(signer, { crit: { exp: true } });
    },
  };
}

/** Good headers of one request with a bound token. */
export async function proofHeaders(
  holder: ProofHolder,
  {
    method = 'POST',
    url,
    token,
  }: { readonly method?: string; readonly url: string; readonly token: string },
  options: ProofOptions = {},
): Promise<{ readonly authorization: string; readonly dpop: string }> {
  return {
    authorization: `DPoP ${token}`,
    dpop: await holder.prove(method, url, { token, ...options }),
  };
}
