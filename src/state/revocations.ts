// The revocations and blocks known to this process, checked with every request without waiting and, for most callers,
// by one lookup of the previous result; and how a revocation is sealed, so that a store sees neither names nor notes
// and cannot forge one. A revocation can only refuse, never allow. An expired entry stays until it is swept, and then
// names nothing that is still valid; a block is in force until then. RFC 7009 §2;
// docs/reference/state.md#revoking-and-blocking.

import {
  type BlockTarget,
  blockedIdentity,
  blocksAt,
  callerBlock,
  type Identities,
  identitiesOf,
  identityKey,
  subjectBlock,
  type UpstreamBlocks,
} from '../policy/blocks.js';
import type { Principal } from '../policy/principal.js';
import type { KeyRing } from './derived-keys.js';
import { sealedToken } from './sealed-token.js';

/** Revocations are made by people: beyond this number another is refused rather than one forgotten. */
export const MAX_REVOCATIONS = 10_000;

export type RevocationSet = {
  /** Whether this caller's token, or every token of its subject or of one of its actors, was revoked. */
  hasCaller(principal: Principal): boolean;
  /**
   * For administrators: whether this caller is known to be revoked, or its subject or an actor to be blocked, however old that
   * knowledge is. A blocked client counts for nothing here: all administrators may use the same one.
   */
  isLockedOut(principal: Principal): boolean;
  /** The same for a login at the console, which has no access token. */
  isLoginShut(login: Identities, issuedAtMs: number): boolean;
  /** The id of the block of this caller: of its subject, of an actor, or of a client of either. */
  blockOf(principal: Principal): string | undefined;
  /** The blocks in force at an upstream; the same object until they change. */
  blocksAt(upstream: string): UpstreamBlocks | undefined;
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
  /** The blocks among them. */
  blocks(): readonly Block[];
};

type Tables = {
  readonly tokens: Set<string>;
  readonly sessions: Set<string>;
  readonly subjects: Map<string, Extract<Revocation['revoked'], { kind: 'subject' }>[]>;
  /** What each block names, by its id; those of callers by what identifies them. */
  readonly blocks: Map<string, BlockTarget>;
  readonly blockedCallers: Map<string, string>;
};

/** The bytes that identify a token id within its issuer (RFC 7519 §4.1.7). */
export function tokenIdBytes(issuer: string, tokenId: string): Buffer {
  return Buffer.from(`${issuer}\n${tokenId}`);
}

/**
 * An empty set. `ring` finds tokens that are named by their own ids; `now` is in milliseconds since the epoch;
 * `onBlockExpired` is called when a block has ended by itself.
 */
export function createRevocationSet(
  ring: Pick<KeyRing, 'hmacAll'>,
  now: () => number,
  onBlockExpired: () => void = () => undefined,
): RevocationSet {
  const known = new Map<string, Revocation>();
  let tables: Tables = emptyTables();
  /** Callers that were checked and found clean, until the set changes. */
  let clean = new WeakSet<Principal>();
  /** By upstream; rebuilt after each change, so that a snapshot is kept while the blocks of its upstream are. */
  const upstreamBlocks = new Map<string, UpstreamBlocks | undefined>();
  let staleBlocks = new Set<string>();

  function noteChange(): void {
    clean = new WeakSet();
    staleBlocks = new Set(upstreamBlocks.keys());
  }

  function rebuild(): void {
    tables = emptyTables();
    noteChange();
    for (const revocation of known.values()) addToTables(tables, revocation, ring);
  }

  function sweep(): void {
    const nowMs = now();
    const expired = [...known.values()].filter(({ expiresAtMs }) => expiresAtMs <= nowMs);
    if (expired.length === 0) return;
    for (const { id } of expired) known.delete(id);
    rebuild();
    if (expired.some(({ revoked }) => revoked.kind === 'block')) onBlockExpired();
  }

  function isClean(principal: Principal): boolean {
    if (known.size === 0 || clean.has(principal)) return true;
    if (isNamed(tables, principal) || callerBlock(tables.blockedCallers, principal) !== undefined) return false;
    clean.add(principal);
    return true;
  }

  return {
    hasCaller: (principal) => !isClean(principal) && isNamed(tables, principal),
    isLockedOut: (principal) =>
      !isClean(principal) &&
      (isNamed(tables, principal) || subjectBlock(tables.blockedCallers, principal) !== undefined),
    isLoginShut: (login, issuedAtMs) =>
      isSubjectRevoked(tables, login, issuedAtMs) || subjectBlock(tables.blockedCallers, login) !== undefined,
    blockOf: (principal) => (isClean(principal) ? undefined : callerBlock(tables.blockedCallers, principal)),
    blocksAt(upstream) {
      if (tables.blocks.size === 0 && upstreamBlocks.size === 0) return undefined;
      const before = upstreamBlocks.get(upstream);
      if (upstreamBlocks.has(upstream) && !staleBlocks.delete(upstream)) return before;
      const found = blocksAt(upstream, tables.blocks);
      const kept = found?.ids === before?.ids ? before : found;
      upstreamBlocks.set(upstream, kept);
      return kept;
    },
    hasSession: (digests) => tables.sessions.size > 0 && digests.some((digest) => tables.sessions.has(digest)),
    add(revocation) {
      if (known.has(revocation.id)) return false;
      known.set(revocation.id, revocation);
      addToTables(tables, revocation, ring);
      noteChange();
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
      return newestFirst([...known.values()]);
    },
    blocks() {
      sweep();
      return tables.blocks.size === 0 ? [] : newestFirst([...known.values()].filter(isBlock));
    },
  };
}

function newestFirst<One extends Revocation>(all: readonly One[]): readonly One[] {
  return [...all].sort((one, other) => other.atMs - one.atMs);
}

function isBlock(revocation: Revocation): revocation is Block {
  return revocation.revoked.kind === 'block';
}

function emptyTables(): Tables {
  return {
    ...{ tokens: new Set(), sessions: new Set(), subjects: new Map() },
    ...{ blocks: new Map(), blockedCallers: new Map() },
  };
}

function addToTables(tables: Tables, { id, revoked }: Revocation, ring: Pick<KeyRing, 'hmacAll'>): void {
  switch (revoked.kind) {
    case 'token': {
      tables.tokens.add(revoked.digest);
      if (revoked.named === undefined) return;
      const { issuer, tokenId } = revoked.named;
      for (const digest of ring.hmacAll('token-id', tokenIdBytes(issuer, tokenId))) tables.tokens.add(digest);
      return;
    }
    case 'subject': {
      const key = identityKey('subject', revoked.issuer, revoked.subject);
      tables.subjects.set(key, [...(tables.subjects.get(key) ?? []), revoked]);
      return;
    }
    case 'session':
      tables.sessions.add(revoked.digest);
      return;
    case 'block': {
      const { block } = revoked;
      tables.blocks.set(id, block);
      const identity = blockedIdentity(block);
      if (identity !== undefined) tables.blockedCallers.set(identity, id);
    }
  }
}

function isNamed(tables: Tables, principal: Principal): boolean {
  const { token } = principal;
  if (tables.tokens.has(token.id)) return true;
  if (token.formerIds.some((id) => tables.tokens.has(id))) return true;
  return isSubjectRevoked(tables, principal, token.issuedAt);
}

/** Whether what was issued then, for the subject or through one of its actors, was revoked. */
function isSubjectRevoked({ subjects }: Tables, caller: Identities, issuedAtMs: number | undefined): boolean {
  if (subjects.size === 0) return false;
  return identitiesOf(caller).some(({ subject, through }) =>
    subjects.get(subject)?.some(
      (revoked) =>
        (revoked.client === undefined || through.includes(revoked.client)) &&
        // A token that does not say when it was issued may have been issued before.
        (issuedAtMs === undefined || issuedAtMs <= revoked.issuedUntilMs),
    ),
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
  | { readonly kind: 'session'; readonly digest: string }
  | { readonly kind: 'block'; readonly block: BlockTarget };

/**
 * When a block ends that nothing but lifting ends, in milliseconds since the epoch: the store demands an expiry, and
 * this one is the first moment of the year 9000, which six bytes hold.
 */
export const UNTIL_LIFTED_MS = Date.UTC(9000, 0, 1);

export type Revocation = {
  readonly id: string;
  readonly revoked: Revoked;
  readonly by: string;
  /** Milliseconds since the epoch; after `expiresAtMs` everything that it names has expired by itself. */
  readonly atMs: number;
  readonly expiresAtMs: number;
  readonly note: string;
};

export type Block = Revocation & { readonly revoked: { readonly kind: 'block' } };

/** A revocation as it is kept in the store, bound to its id. */
export const STORED_REVOCATION = sealedToken<Revocation>('revocation');

/** When a block ends by itself (RFC 3339); `undefined` if only lifting ends it. */
export function endOf(expiresAtMs: number): string | undefined {
  return expiresAtMs >= UNTIL_LIFTED_MS ? undefined : new Date(expiresAtMs).toISOString();
}
