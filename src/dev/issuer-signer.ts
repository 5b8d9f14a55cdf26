// The key of the development issuer and the tokens that it signs. The key lives as long as the process.
// RFC 9068 §2, RFC 7517 §5.

import { randomUUID } from 'node:crypto';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import type { Grant } from './issuer-grants.js';

export type SignToken = (grant: Grant, lifetimeSeconds: number) => Promise<string>;

/** Makes a key, its public set, and what signs with it in the name of an issuer. */
export async function createSigner(): Promise<{
  readonly jwks: object;
  readonly signFor: (issuer: string) => SignToken;
}> {
  const { privateKey, publicKey } = await generateKeyPair('ES256', { extractable: true });
  const kid = randomUUID();
  const jwks = { keys: [{ ...(await exportJWK(publicKey)), kid, alg: 'ES256', use: 'sig' }] };
  const signFor =
    (issuer: string): SignToken =>
    async ({ subject, client, resource, groups, scopes }, lifetimeSeconds) => {
      const now = Math.floor(Date.now() / 1000);
      // A token that has expired was issued before it did.
      const issuedAt = Math.min(now, now + lifetimeSeconds - 1);
      return await new SignJWT({ client_id: client, scope: scopes.join(' '), groups })
        .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid })
        .setIssuer(issuer)
        .setSubject(subject)
        .setAudience(resource)
        .setJti(randomUUID())
        .setIssuedAt(issuedAt)
        .setExpirationTime(now + lifetimeSeconds)
        .sign(privateKey);
    };
  return { jwks, signFor };
}
