// The revocations known to this process, checked with every request without waiting and, for most callers, by one
// lookup of the previous result; and how a revocation is sealed, so that a store sees neither names nor notes and
// cannot forge one. A revocation can only refuse, never allow. An expired entry stays until it is swept, and then names
// nothing that is still valid. RFC 7009 §2; docs/contract.md §10.

import type { Principal } from '../policy/principal.js';
import type { KeyRing } from './keys.js';
import { sealedToken } from './sealed-token.js';

/** Revocations are made by people: beyond this number another is refused rather than one forgotten. */
export const MAX_REVOCATIONS = 10_000;

export type RevocationSet = {
  /** Whether this caller's token, or every token of its subject, was revoked. */
  hasCaller(principal: Principal): boolean;
  /** Whether one of these is the keyed digest of a revoked session. */
  hasSession(digests: readonly string[]): boolean;
  /** False for one that is known. Those of other replicas are added regardless of the bound. */
  add(revocation: Revocation): boolean;
  /** False where no further one may be made. */
  hasCapacity(): boolean;
  remove(id: string): boolean;
  get(id: string): Revocation | undefined;
  /** Those in force, newest first. */
  list(): readonly Revocation[];
};

type Tables = {
  readonly tokens: Set<string>;
  readonly sessions: Set<string>;
  readonly subjects: Map<string, Extract<Revocation['revoked'], { kind: 'subject' }>[]>;
};

/** The bytes that identify a token id within its issuer (RFC 7519 §4.1.7). */
export function tokenIdBytes(issuer: string, tokenId: string): Buffer {
  return Buffer.from(`${issuer}\n${tokenId}`);
}

/** An empty set. `ring` finds tokens that are named by their own ids; `now` is in milliseconds since the epoch. */
export function createRevocationSet(
  ring: Pick<KeyRing, 'hmacAll'>,
  now: () => number,
): RevocationSet {
  const known = new Map<string, Revocation>();
  let tables: Tables = emptyTables();
  /** Callers that were checked and found clean, until the set changes. */
  let clean = new WeakSet<Principal>();

  function rebuild(): void {
    tables = emptyTables();
    clean = new WeakSet();
    for (const revocation of known.values()) addToTables(tables, revocation, ring);
  }

  function sweep(): void {
    const nowMs = now();
    let isChanged = false;
    for (const [id, { expiresAtMs }] of known)
      if (expiresAtMs <= nowMs) isChanged = known.delete(id) || isChanged;
    if (isChanged) rebuild();
  }

  return {
    hasCaller(principal) {
      if (known.size === 0 || clean.has(principal)) return false;
      if (isNamed(tables, principal)) return true;
      clean.add(principal);
      return false;
    },
    hasSession: (digests) =>
      tables.sessions.size > 0 && digests.some((digest) => tables.sessions.has(digest)),
    add(revocation) {
      if (known.has(revocation.id)) return false;
      known.set(revocation.id, revocation);
      addToTables(tables, revocation, ring);
      clean = new WeakSet();
      return true;
    },
    hasCapacity() {
      sweep();
      return known.size < MAX_REVOCATIONS;
    },
    remove(id) {
      const wasKnown = known.delete(id);
      if (wasKnown) rebuild();
      return wasKnown;
    },
    get: (id) => known.get(id),
    list() {
      sweep();
      return [...known.values()].sort((one, other) => other.atMs - one.atMs);
    },
  };
}

function emptyTables(): Tables {
  return { tokens: new Set(), sessions: new Set(), subjects: new Map() };
}

function subjectKey(issuer: string, subject: string): string {
  return JSON.stringify([issuer, subject]);
}

function addToTables(
  tables: Tables,
  { revoked }: Revocation,
  ring: Pick<KeyRing, 'hmacAll'>,
): void {
  switch (revoked.kind) {
    case 'token': {
      tables.tokens.add(revoked.digest);
      if (revoked.named === undefined) return;
      const { issuer, tokenId } = revoked.named;
      for (const digest of ring.hmacAll('token-id', tokenIdBytes(issuer, tokenId)))
        tables.tokens.add(digest);
      return;
    }
    case 'subject': {
      const key = subjectKey(revoked.issuer, revoked.subject);
      tables.subjects.set(key, [...(tables.subjects.get(key) ?? []), revoked]);
      return;
    }
    case 'session':
      tables.sessions.add(revoked.digest);
  }
}

function isNamed(tables: Tables, { token, issuerUrl, subject, client }: Principal): boolean {
  if (tables.tokens.has(token.id)) return true;
  if (token.formerIds.some((id) => tables.tokens.has(id))) return true;
  const ofSubject = tables.subjects.get(subjectKey(issuerUrl, subject));
  if (ofSubject === undefined) return false;
  return ofSubject.some(
    (revoked) =>
      (revoked.client === undefined || revoked.client === client) &&
      // A token that does not say when it was issued may have been issued before.
      (token.issuedAt === undefined || token.issuedAt <= revoked.issuedUntilMs),
  );
}

/** What is revoked. Tokens and sessions are identified by the keyed digests in the audit log. */
export type Revoked =
  | {
      readonly kind: 'token';
      readonly digest: string;
      /** Where the token's own id was given: it is found under every key of the ring. */
      readonly named?: { readonly issuer: string; readonly tokenId: string };
    }
  | {
      /** All tokens of a subject issued until then, of one client or of all. */
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
  /** Milliseconds since the epoch; after `expiresAtMs` everything that it names has expired by itself. */
  readonly atMs: number;
  readonly expiresAtMs: number;
  readonly note: string;
};

/** A revocation as it is kept in the store, bound to its id. */
export const STORED_REVOCATION = sealedToken<Revocation>('revocation');
