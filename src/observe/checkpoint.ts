// Signed checkpoints: which hash stood at which place of which chain, and when, under the gateway's
// Ed25519 key. A checkpoint kept elsewhere shows that a chain was cut or rewritten since.
// Signed text: `sallyport.checkpoint/1`, epoch, seq, hash and time, each on a line (RFC 8032).

import { createPublicKey, verify } from 'node:crypto';
import type { ChainHead } from './chain.js';

/** A checkpoint as its event carries it in `detail`. */
export type Checkpoint = ChainHead & {
  /** RFC 3339, UTC, milliseconds. */
  readonly time: string;
  readonly keyId: string;
  /** Ed25519, base64url. */
  readonly signature: string;
};

const HASH = /^[0-9a-f]{64}$/;

/** The bytes that are signed. */
export function checkpointBytes(point: ChainHead & { readonly time: string }): Buffer {
  const { epoch, seq, hash, time } = point;
  return Buffer.from(`sallyport.checkpoint/1\n${epoch}\n${seq}\n${hash}\n${time}\n`);
}

/** The `detail` of a checkpoint event. */
export function checkpointDetail(point: Checkpoint): Record<string, string | number> {
  const { epoch, seq, hash, time, keyId, signature } = point;
  return { epoch, seq, hash, at: time, key_id: keyId, signature };
}

/** Reads the `detail` of a checkpoint event; `undefined` when it is none. */
export function readCheckpoint(detail: {
  readonly [name: string]: unknown;
}): Checkpoint | undefined {
  const { epoch, seq, hash, at, key_id: keyId, signature } = detail;
  if (typeof epoch !== 'string' || typeof hash !== 'string' || !HASH.test(hash)) return undefined;
  if (typeof seq !== 'number' || !Number.isSafeInteger(seq)) return undefined;
  if (typeof at !== 'string' || typeof keyId !== 'string' || typeof signature !== 'string') {
    return undefined;
  }
  return { epoch, seq, hash, time: at, keyId, signature };
}

/** True when one of the public keys (raw 32 bytes, base64url) made the signature. Never throws. */
export function isSignedBy(point: Checkpoint, publicKeys: readonly string[]): boolean {
  const signature = Buffer.from(point.signature, 'base64url');
  if (signature.length !== 64) return false;
  const bytes = checkpointBytes(point);
  return publicKeys.some((x) => {
    try {
      const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
      return verify(null, bytes, key, signature);
    } catch {
      return false;
    }
  });
}
