// Seals what a client carries for the gateway (sessions, request state, event ids, approvals): AES-256-GCM under a key
// of its purpose. Possession of a sealed value proves nothing: every value that it is bound to is associated data,
// compared by the cipher byte by byte. Why something does not open is never reported.
// Layout: version 1 | key tag 8 | expiry ms 6 | nonce 12 | ciphertext | tag 16, as base64url without padding.
// The header, up to the nonce, is in clear text and authenticated (NIST SP 800-38D; docs/contract.md §10).

import { createCipheriv, createDecipheriv, randomFillSync } from 'node:crypto';
import type { KeyRing } from './keys.js';
import { KEY_TAG_BYTES } from './keys.js';

const VERSION = 1;
const EXPIRY_AT = 1 + KEY_TAG_BYTES;
const EXPIRY_BYTES = 6;
const HEAD_BYTES = EXPIRY_AT + EXPIRY_BYTES;
const NONCE_BYTES = 12;
const CIPHERTEXT_AT = HEAD_BYTES + NONCE_BYTES;
const TAG_BYTES = 16;
const LENGTH_BYTES = 4;

/** The longest sealed text that is decoded; longer ones are refused unread. */
export const MAX_SEALED_CHARACTERS = 16_384;

/** Random bytes are drawn in bulk: one call to the generator serves this many nonces. */
const NONCES_AT_ONCE = 256;

const LONE_SURROGATE = /\p{Surrogate}/u;

const nonces = Buffer.alloc(NONCES_AT_ONCE * NONCE_BYTES);
let nextNonce = nonces.length;

function drawNonce(into: Buffer, at: number): void {
  if (nextNonce === nonces.length) {
    randomFillSync(nonces);
    nextNonce = 0;
  }
  nonces.copy(into, at, nextNonce, nextNonce + NONCE_BYTES);
  nonces.fill(0, nextNonce, nextNonce + NONCE_BYTES);
  nextNonce += NONCE_BYTES;
}

/**
 * Header, purpose and bindings, each preceded by its length, so that no two lists give the same bytes. Undefined when a
 * binding is not a well-formed string: a lone surrogate has no UTF-8 encoding, and two strings could become equal.
 */
function associatedBytes(
  head: Buffer,
  purpose: string,
  associated: readonly string[],
): Buffer | undefined {
  let size = head.length + LENGTH_BYTES + Buffer.byteLength(purpose);
  for (const value of associated) {
    if (LONE_SURROGATE.test(value)) return undefined;
    size += LENGTH_BYTES + Buffer.byteLength(value);
  }
  const bytes = Buffer.allocUnsafe(size);
  let at = head.copy(bytes);
  at = putText(bytes, at, purpose);
  for (const value of associated) at = putText(bytes, at, value);
  return bytes;
}

function putText(bytes: Buffer, at: number, text: string): number {
  const length = bytes.write(text, at + LENGTH_BYTES, 'utf8');
  bytes.writeUInt32BE(length, at);
  return at + LENGTH_BYTES + length;
}

/**
 * Seals `payload` for one purpose, bound to `associated` (exact strings, in this order), until `expiresAtMs`
 * (milliseconds since the epoch). The result is base64url: visible ASCII, fit for a header.
 * @throws RangeError for an invalid expiry or a binding with a lone surrogate.
 */
export function seal(
  ring: KeyRing,
  purpose: string,
  associated: readonly string[],
  payload: Uint8Array | string,
  expiresAtMs: number,
): string {
  const { tag, key } = ring.sealingKey(purpose);
  const body = typeof payload === 'string' ? Buffer.from(payload, 'utf8') : payload;
  const sealed = Buffer.allocUnsafe(CIPHERTEXT_AT + body.length + TAG_BYTES);
  sealed.writeUInt8(VERSION, 0);
  tag.copy(sealed, 1);
  sealed.writeUIntBE(Math.floor(expiresAtMs), EXPIRY_AT, EXPIRY_BYTES);
  drawNonce(sealed, HEAD_BYTES);
  const bound = associatedBytes(sealed.subarray(0, HEAD_BYTES), purpose, associated);
  if (bound === undefined) throw new RangeError('a binding must be a well-formed string');
  const cipher = createCipheriv('aes-256-gcm', key, sealed.subarray(HEAD_BYTES, CIPHERTEXT_AT));
  cipher.setAAD(bound);
  cipher.update(body).copy(sealed, CIPHERTEXT_AT);
  cipher.final();
  cipher.getAuthTag().copy(sealed, CIPHERTEXT_AT + body.length);
  return sealed.toString('base64url');
}

/** The tag of the key under which a text that was opened is sealed. */
export function keyTagOf(sealed: string): Uint8Array {
  return Buffer.from(sealed, 'base64url').subarray(1, EXPIRY_AT);
}

/** The bytes of a sealed text, or `undefined` when it is not their canonical encoding. */
function readSealed(text: string, maxCharacters: number): Buffer | undefined {
  if (text.length > maxCharacters) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.length < CIPHERTEXT_AT + TAG_BYTES || bytes[0] !== VERSION) return undefined;
  // INVARIANT: a value has exactly one encoding; otherwise a value revoked by its text would stay valid under another.
  return bytes.toString('base64url') === text ? bytes : undefined;
}

/**
 * Opens what `seal` made for the same purpose and the same bindings. `undefined` for everything else: other purpose,
 * other binding, unknown key, changed byte, expired, not ours, longer than `maxCharacters`. Never throws and does not
 * distinguish the causes.
 */
export function open(
  ring: KeyRing,
  purpose: string,
  associated: readonly string[],
  sealed: string,
  nowMs: number,
  maxCharacters = MAX_SEALED_CHARACTERS,
): Buffer | undefined {
  const bytes = readSealed(sealed, maxCharacters);
  if (bytes === undefined) return undefined;
  const key = ring.openingKey(purpose, bytes.subarray(1, EXPIRY_AT));
  const bound = associatedBytes(bytes.subarray(0, HEAD_BYTES), purpose, associated);
  if (key === undefined || bound === undefined) return undefined;
  const nonce = bytes.subarray(HEAD_BYTES, CIPHERTEXT_AT);
  const end = bytes.length - TAG_BYTES;
  const decipher = createDecipheriv('aes-256-gcm', key.key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(bound);
  decipher.setAuthTag(bytes.subarray(end));
  const payload = decipher.update(bytes.subarray(CIPHERTEXT_AT, end));
  try {
    decipher.final();
  } catch {
    return undefined;
  }
  return bytes.readUIntBE(EXPIRY_AT, EXPIRY_BYTES) > nowMs ? payload : undefined;
}
