// People who sign lock files in tests: keys of each kind, made anew, and envelopes that say whatever a test wants.

import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { publicPartOf } from '../../src/config/key-material.js';
import type { LockSigner } from '../../src/config/settings.js';
import { sha256Hex } from '../../src/pins/digest.js';
import { digestOfKey, type LockStatement, preAuthEncoding, writePayload } from '../../src/pins/signature.js';

export type KeyKind = 'ed25519' | 'P-256' | 'P-384' | 'P-521' | 'rsa';

export type TestSigner = LockSigner & {
  readonly key: KeyObject;
  /** PKCS #8, PEM. */
  readonly privateKey: string;
  sign(bytes: Uint8Array, encoding?: 'der' | 'ieee-p1363'): Uint8Array;
};

function makeKey(kind: KeyKind): KeyObject {
  if (kind === 'ed25519') return generateKeyPairSync('ed25519').privateKey;
  if (kind === 'rsa') return generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  return generateKeyPairSync('ec', { namedCurve: kind }).privateKey;
}

export function makeSigner(name: string, kind: KeyKind = 'ed25519'): TestSigner {
  const key = makeKey(kind);
  return {
    name,
    ...publicPartOf(key),
    key,
    privateKey: key.export({ format: 'pem', type: 'pkcs8' }).toString(),
    sign: (bytes, dsaEncoding = 'der') => new Uint8Array(sign(digestOfKey(key), bytes, { key, dsaEncoding })),
  };
}

/** What a signature of a lock file says. */
export function statementOf(text: string, parts: Partial<LockStatement> = {}): LockStatement {
  const file = { file: 'github.lock.yaml', upstream: 'github', sha256: sha256Hex(text) };
  return { ...file, counter: 1, signedAt: '2026-11-20T10:00:00.000Z', signer: 'alice', ...parts };
}

/** An envelope around any payload. */
export function envelopeOf(
  payload: Uint8Array | LockStatement,
  signers: readonly TestSigner[],
  more: { readonly payloadType?: string; readonly keyid?: string; readonly sig?: string } = {},
): string {
  const bytes = payload instanceof Uint8Array ? payload : writePayload(payload);
  return JSON.stringify({
    payloadType: more.payloadType ?? 'application/vnd.in-toto+json',
    payload: Buffer.from(bytes).toString('base64'),
    signatures: signers.map((signer) => ({
      keyid: more.keyid ?? signer.keyId,
      sig: more.sig ?? Buffer.from(signer.sign(preAuthEncoding(bytes))).toString('base64'),
    })),
  });
}
