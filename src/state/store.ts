// The port to a store that replicas share: what is asked of it, in its own words. Everything rejects while
// the store cannot be asked; what then holds is decided by shared-state.ts. What is written is a keyed hash
// or sealed, and ends by itself: `leftMs` is how long it counts. Types only. docs/contract.md §10.

import type { LimitOutcome, LimitWindow } from '../policy/limits.js';
import type { KeyRing } from './keys.js';

/** What changed since the last look. */
export type StoreUpdate = {
  /** Another text after each change of the revocations; empty in a store that knows of none. */
  readonly version: string;
  /** Gateways that looked within the last seconds, this one too. */
  readonly replicas: number;
  /** Sessions that ended, by their keyed hashes, oldest first. */
  readonly ended: readonly { readonly hash: string; readonly leftMs: number }[];
  /** Where the next look goes on. */
  readonly mark: number;
  /** More ended than one look shows. */
  readonly hasMore: boolean;
  /** The words that wait longest for this replica, sealed, in their order. */
  readonly messages: readonly { readonly text: string; readonly at: number }[];
};

/** What a replica knows already. */
export type SeenBefore = {
  /** Where the last look at ended sessions stopped. */
  readonly mark: number;
  /** The words up to this one were read, and are forgotten; 0 for none. */
  readonly readTo: number;
  readonly maxMessages: number;
};

/** A word that is sealed to its reader. */
export type SealedMessage = { readonly replica: string; readonly text: string };

/** All revocations that the store holds, and the ids of those that were lifted. */
export type StoredRevocations = {
  readonly version: string;
  readonly sealed: ReadonlyMap<string, string>;
  readonly lifted: ReadonlySet<string>;
};

export interface StoreLink {
  /** Whether the way there is encrypted, or does not leave this machine. */
  readonly isPrivate: boolean;
  /** Resolves when the first try to connect has ended, either way. */
  opened(): Promise<void>;
  /** A name for what went wrong, in our own words. */
  describe(error: unknown): string;
  poll(replica: string, seen: SeenBefore): Promise<StoreUpdate>;
  revocations(): Promise<StoredRevocations>;
  /** `full`: the store holds as many as are allowed. One that was lifted stays lifted. */
  addRevocation(id: string, sealed: string, leftMs: number): Promise<'added' | 'full'>;
  /** `leftMs` is how long it is remembered that it was lifted. */
  liftRevocation(id: string, leftMs: number): Promise<void>;
  endSession(hash: string, leftMs: number): Promise<void>;
  /**
   * Leaves words in one step, each for one replica, but for those that run no more. `gone`: none of them runs;
   * `full`: too many wait for one that still reads, and none was left.
   */
  enqueueMessages(
    messages: readonly SealedMessage[],
    leftMs: number,
  ): Promise<'left' | 'gone' | 'full'>;
  /** The replicas that run now. */
  replicas(): Promise<readonly string[]>;
  /** Counts a use as `LimitStore` does; `key` is a keyed hash. */
  take(key: string, limit: LimitWindow): Promise<Exclude<LimitOutcome, 'unavailable'>>;
  /** True for the first use. */
  useOnce(keyHash: string, leftMs: number): Promise<boolean>;
  /** Tells that the revocations changed. May be silent: nothing relies on it. */
  onHint(listener: () => void): void;
  close(): Promise<void>;
}

export type StatePorts = {
  readonly ring: KeyRing;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
};
