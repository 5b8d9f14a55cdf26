// A revocation: what is refused from now on, who said so, when and why. It leaves this process only
// sealed, so that a store sees neither names nor notes, and can make none. What does not open is no
// revocation of ours. It decides nothing about callers; see revocation-set.ts. RFC 7009 §2; contract §10.

import type { KeyRing } from './key-ring.js';
import { open, seal } from './seal.js';

const PURPOSE = 'revocation';

/** What is revoked. Tokens and sessions are known by the keyed digests that stand in the audit log. */
export type Revoked =
  | {
      readonly kind: 'token';
      readonly digest: string;
      /** Where the token's own id was given: every key of the ring finds it. */
      readonly named?: { readonly issuer: string; readonly tokenId: string };
    }
  | {
      /** All tokens of a subject that were issued until then, of one client or of all. */
      readonly kind: 'subject';
      readonly issuer: string;
      readonly subject: string;
      readonly client?: string;
      /** Milliseconds since the epoch. */
      readonly issuedUntilMs: number;
    }
  | { readonly kind: 'session'; readonly digest: string };

export type Revocation = {
  readonly id: string;
  readonly revoked: Revoked;
  readonly by: string;
  /** Milliseconds since the epoch; past `expiresAtMs` everything that it names has expired by itself. */
  readonly atMs: number;
  readonly expiresAtMs: number;
  readonly note: string;
};

/** Seals a revocation under its id. */
export function sealRevocation(ring: KeyRing, revocation: Revocation): string {
  const { id, expiresAtMs } = revocation;
  return seal(ring, PURPOSE, [id], JSON.stringify(revocation), expiresAtMs);
}

/** Opens what was sealed under this id; `undefined` for everything else and for what has expired. */
export function openRevocation(
  ring: KeyRing,
  id: string,
  sealed: string,
  nowMs: number,
): Revocation | undefined {
  const payload = open(ring, PURPOSE, [id], sealed, nowMs);
  // The cipher has proved that a gateway with this key wrote it.
  return payload === undefined ? undefined : (JSON.parse(payload.toString('utf8')) as Revocation);
}
