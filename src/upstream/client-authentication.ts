// How the gateway proves itself to an authorization server: by a secret, or by a key that signs an
// assertion. The key leaves this file only as something that can sign.
// RFC 6749 §2.3.1; RFC 7523 §2.2; RFC 7518 §3.1.

import { createPrivateKey, type KeyObject } from 'node:crypto';
import { type ClientAuth, ClientSecretBasic, ClientSecretPost, PrivateKeyJwt } from 'oauth4webapi';
import type { ClientAuthentication } from '../config/settings.js';

type Algorithm =
  | { readonly name: 'RSA-PSS' | 'RSASSA-PKCS1-v1_5'; readonly hash: 'SHA-256' }
  | { readonly name: 'ECDSA'; readonly namedCurve: string }
  | { readonly name: 'Ed25519' };

const CURVES: ReadonlyMap<string | undefined, string> = new Map([
  ['prime256v1', 'P-256'],
  ['secp384r1', 'P-384'],
  ['secp521r1', 'P-521'],
]);

/**
 * The authentication of the settings.
 *
 * @throws Error where the key cannot be used, which the configuration's checks exclude.
 */
export async function clientAuthOf(authentication: ClientAuthentication): Promise<ClientAuth> {
  switch (authentication.method) {
    case 'client_secret_basic':
      return ClientSecretBasic(authentication.secret);
    case 'client_secret_post':
      return ClientSecretPost(authentication.secret);
    case 'private_key_jwt':
      return PrivateKeyJwt(await readKey(authentication.key));
  }
}

async function readKey(text: string): Promise<Parameters<typeof PrivateKeyJwt>[0]> {
  const isJwk = text.trimStart().startsWith('{');
  const written = isJwk ? (JSON.parse(text) as { readonly [name: string]: unknown }) : {};
  const key = isJwk ? createPrivateKey({ key: written, format: 'jwk' }) : createPrivateKey(text);
  const { alg, kid } = written;
  const bytes = key.export({ type: 'pkcs8', format: 'der' });
  const signing = await crypto.subtle.importKey(
    'pkcs8',
    bytes,
    algorithmOf(key, alg === 'PS256'),
    false,
    ['sign'],
  );
  return typeof kid === 'string' ? { key: signing, kid } : { key: signing };
}

function algorithmOf(key: KeyObject, isPss: boolean): Algorithm {
  const { asymmetricKeyType: kind, asymmetricKeyDetails: details } = key;
  if (kind === 'ed25519') return { name: 'Ed25519' };
  if (kind === 'rsa') return { name: isPss ? 'RSA-PSS' : 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' };
  const namedCurve = CURVES.get(details?.namedCurve);
  if (kind !== 'ec' || namedCurve === undefined) throw new Error('this key cannot sign');
  return { name: 'ECDSA', namedCurve };
}
