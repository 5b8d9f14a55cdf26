// Signed checkpoints: which hash stood at which place of which chain, when, and how soon the next one is
// due, under the gateway's Ed25519 key. A checkpoint kept elsewhere shows that a chain was cut or
// rewritten since; the bounds show that later checkpoints were taken out.
// Signed text (RFC 8032), each part on a line: `sallyport.checkpoint/2`, epoch, seq, hash, time, the bound
// in milliseconds and the bound in lines. `sallyport.checkpoint/1`, of earlier versions, has no bounds.

import { createPublicKey, verify } from 'node:crypto';
import type { ChainHead } from './chain.js';

/** Lines that may stand between two checkpoints. */
export const MAX_LINES_BETWEEN_CHECKPOINTS = 10_000;

/** The next checkpoint is due after so much time or so many lines, whichever comes first. */
export type CheckpointBounds = { readonly everyMs: number; readonly everyLines: number };

/** What a checkpoint states. Those of earlier versions state no bounds. */
export type CheckpointText = ChainHead & {
  /** RFC 3339, UTC, milliseconds. */
  readonly time: string;
  readonly bounds: CheckpointBounds | undefined;
};

/** A checkpoint as its event carries it in `detail`. */
export type Checkpoint = CheckpointText & {
  readonly keyId: string;
  /** Ed25519, base64url. */
  readonly signature: string;
};

const HASH = /^[0-9a-f]{64}$/;

/** The bytes that are signed. */
export function checkpointBytes({ epoch, seq, hash, time, bounds }: CheckpointText): Buffer {
  const place = `${epoch}\n${seq}\n${hash}\n${time}\n`;
  return Buffer.from(
    bounds === undefined
      ? `sallyport.checkpoint/1\n${place}`
      : `sallyport.checkpoint/2\n${place}${bounds.everyMs}\n${bounds.everyLines}\n`,
  );
}

/** The `detail` of a checkpoint event. */
export function checkpointDetail(point: Checkpoint): Record<string, string | number> {
  const { epoch, seq, hash, time, bounds, keyId, signature } = point;
  const stated =
    bounds === undefined ? {} : { every_ms: bounds.everyMs, every_lines: bounds.everyLines };
  return { epoch, seq, hash, at: time, ...stated, key_id: keyId, signature };
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0;
}

/** Reads the `detail` of a checkpoint event; `undefined` when it is none. */
export function readCheckpoint(detail: {
  readonly [name: string]: unknown;
}): Checkpoint | undefined {
  const { epoch, seq, hash, at, key_id: keyId, signature } = detail;
  const { every_ms: everyMs, every_lines: everyLines } = detail;
  if (typeof epoch !== 'string' || typeof hash !== 'string' || !HASH.test(hash)) return undefined;
  if (typeof seq !== 'number' || !Number.isSafeInteger(seq)) return undefined;
  if (typeof at !== 'string' || typeof keyId !== 'string' || typeof signature !== 'string') {
    return undefined;
  }
  const point = { epoch, seq, hash, time: at, keyId, signature };
  if (everyMs === undefined && everyLines === undefined) return { ...point, bounds: undefined };
  if (!isCount(everyMs) || !isCount(everyLines)) return undefined;
  return { ...point, bounds: { everyMs, everyLines } };
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
