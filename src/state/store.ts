// The port to a store that replicas share; types only. Every method rejects while the store cannot be reached;
// shared-state.ts decides what holds then. What is written is a keyed hash or sealed, and expires: `leftMs` is its
// lifetime in milliseconds. docs/reference/state.md.

import type { LimitOutcome, LimitWindow } from '../policy/obligations.js';
import type { KeyRing } from './derived-keys.js';

/** A session that ended: its keyed hash and that of its owner. */
export type EndedSession = {
  readonly hash: string;
  readonly owner: string;
  readonly leftMs: number;
};

/** What changed since the last poll. */
export type StoreUpdate = {
  /** Differs after each change of the revocations; empty in a store that has none. */
  readonly version: string;
  /** Gateways that polled within the last seconds, including this one. */
  readonly replicas: number;
  /** Sessions that ended, oldest first. */
  readonly ended: readonly EndedSession[];
  /** Since when the store has held what it was given. A store that comes back empty begins another. */
  readonly epoch: { readonly id: string; readonly ageMs: number };
  /** Where the next poll continues. */
  readonly mark: number;
  /** Whether more sessions ended than one poll returns. */
  readonly hasMore: boolean;
  /** The oldest sealed messages that wait for this replica, in order. */
  readonly messages: readonly { readonly text: string; readonly at: number }[];
};

/** What a replica has already seen. */
export type SeenBefore = {
  /** Where the last poll of ended sessions stopped. */
  readonly mark: number;
  /** Messages up to this one were read and are deleted; 0 for none. */
  readonly readTo: number;
  readonly maxMessages: number;
};

/** A message sealed to its recipient. */
export type SealedMessage = { readonly replica: string; readonly text: string };

/** The highest counter of a signed lock file, and the digest of that file. */
export type SeenCounter = { readonly counter: number; readonly sha256: string };

/** All revocations in the store, and the ids of those that were lifted. */
export type StoredRevocations = {
  readonly version: string;
  readonly sealed: ReadonlyMap<string, string>;
  readonly lifted: ReadonlySet<string>;
};

/** How many records of one kind may be open, and how many are kept. */
export type RecordBounds = {
  readonly maxOpen: number;
  readonly maxOpenPerOwner: number;
  readonly maxKept: number;
};

/** A record without its names, as the store keeps it. */
export type StoredRecord = { readonly id: string; readonly revision: number; readonly sealed: string };

/** What is written of a new record; times are milliseconds from now. */
export type StoredEntry = {
  readonly id: string;
  readonly head: string;
  readonly body: string;
  readonly key: string;
  readonly owner: string;
  readonly replaces: string | undefined;
  readonly openMs: number | undefined;
  readonly keptMs: number;
};

export interface StoreLink {
  /** Whether the connection is encrypted or does not leave this machine. */
  readonly isPrivate: boolean;
  /** Resolves when the first attempt to connect has ended, successfully or not. */
  opened(): Promise<void>;
  /** A fixed text for an error, without what the error quotes. */
  describe(error: unknown): string;
  /** Checks that the store runs scripts and takes writes, and changes nothing. Returns its time, in milliseconds. */
  probe(): Promise<number>;
  poll(replica: string, seen: SeenBefore): Promise<StoreUpdate>;
  revocations(): Promise<StoredRevocations>;
  /** `full`: the store holds as many as are allowed. A lifted revocation stays lifted. */
  addRevocation(id: string, sealed: string, leftMs: number): Promise<'added' | 'full'>;
  /** `leftMs`: how long the lift is remembered. */
  liftRevocation(id: string, leftMs: number): Promise<void>;
  endSession(ended: EndedSession): Promise<void>;
  /**
   * Enqueues messages in one step, each for one replica, skipping replicas that no longer run. `gone`: none of them
   * runs; `full`: the queue of a live replica is full, and no message was enqueued.
   */
  enqueueMessages(messages: readonly SealedMessage[], leftMs: number): Promise<'enqueued' | 'gone' | 'full'>;
  /** The replicas that run now. */
  replicas(): Promise<readonly string[]>;
  /** Counts a use as `LimitStore` does; `key` is a keyed hash. With the id of the epoch, empty where there is none. */
  take(
    key: string,
    limit: LimitWindow,
  ): Promise<{
    readonly outcome: Exclude<LimitOutcome, 'unavailable'>;
    readonly epoch: string;
  }>;
  /** Raises counters, by a keyed hash: none if one is older than stored. Returns all that the store has. */
  raiseCounters(counters: ReadonlyMap<string, SeenCounter>, leftMs: number): Promise<ReadonlyMap<string, SeenCounter>>;
  /** Sets each of these marks, by its keyed hash, for `leftMs`. */
  setFlowMarks(marks: readonly { readonly hash: string; readonly sealed: string }[], leftMs: number): Promise<void>;
  /**
   * The sealed mark of each hash, in their order; undefined where there is none. With the id of the epoch, read in the
   * same step, so that no store is taken for one that has no marks because it has just lost them.
   */
  flowMarks(hashes: readonly string[]): Promise<{
    readonly marks: readonly (string | undefined)[];
    readonly epoch: string;
  }>;
  /** True for the first use. */
  useOnce(keyHash: string, leftMs: number): Promise<boolean>;
  /**
   * Keeps a text unless another is kept, and returns the one that is, whose lifetime begins anew. Without a text it
   * keeps nothing.
   */
  keepFirst(keyHash: string, text: string | undefined, leftMs: number): Promise<string | undefined>;
  /** Adds a record to the table of this kind: see `SharedTable.add`. */
  addRecord(kind: string, entry: StoredEntry, bounds: RecordBounds): Promise<'added' | 'changed' | 'full'>;
  /** Replaces the head of a record; `revision` is the one that was read. False where it is another by now. */
  replaceRecord(kind: string, record: StoredRecord, times: Pick<StoredEntry, 'openMs' | 'keptMs'>): Promise<boolean>;
  record(kind: string, id: string): Promise<StoredRecord | undefined>;
  recordIdOf(kind: string, keyHash: string): Promise<string | undefined>;
  aliasRecord(kind: string, keyHash: string, id: string, leftMs: number): Promise<void>;
  recordBody(kind: string, id: string): Promise<string | undefined>;
  /** The newest first. */
  records(kind: string, most: number): Promise<readonly StoredRecord[]>;
  /** Those that are open, whether or not their time is over; those whose time ends first come first. */
  openRecords(kind: string, most: number): Promise<readonly StoredRecord[]>;
  /** Those that are open and whose time is over, the oldest first. */
  overdueRecords(kind: string, most: number): Promise<readonly StoredRecord[]>;
  /** Hints that something changed. Hints may be lost, and nothing relies on them. */
  onHint(listener: () => void): void;
  close(): Promise<void>;
}

export type StatePorts = {
  readonly ring: KeyRing;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
};
