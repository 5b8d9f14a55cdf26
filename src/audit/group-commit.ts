// Group commit of audit lines: the promise that the waiters of one write share, the buffer in which the lines
// of a group are linked, and the pace at which groups start. The buffer is reused, so that a line is built
// once and copied once. See chain.ts for the format.

import { type ChainHead, hashBytes, lineUpToHash } from './chain.js';
import type { EventText } from './event.js';

/** The sink cannot be written. */
export class SinkUnavailable extends Error {
  override readonly name = 'SinkUnavailable';
}

/** The promise shared by all waiters of one write. */
export type CommitGroup = {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
};

/** A group without waiters. */
export function createCommitGroup(): CommitGroup {
  let resolve: () => void = () => undefined;
  let reject: (error: Error) => void = () => undefined;
  const promise = new Promise<void>((onDone, onError) => {
    resolve = onDone;
    reject = onError;
  });
  // Waiters share this promise; without waiters, its rejection must not end the process.
  promise.catch(() => undefined);
  return { promise, resolve, reject };
}

const FIRST_CAPACITY = 64 * 1024;
/** A larger buffer is released after its group. */
const MAX_KEPT_CAPACITY = 1024 * 1024;
const LINE_END = 0x0a;
/** Length of `,"hash":"…"}}` and a line feed. */
const HASH_END_LENGTH = 9 + 43 + 4;

export type GroupBytes = {
  /** Starts a group after this head, with a line feed first if the file ends in an unfinished line. */
  begin(head: ChainHead, needsLineEnd: boolean): void;
  /** Adds the next line of the chain. */
  add(event: EventText): void;
  /** The head after the lines added so far. */
  head(): ChainHead;
  /** The bytes so far; valid until the next group starts. */
  bytes(): Buffer;
};

/** Creates the buffer of one sink, which writes one group at a time. `first` is the head of its chain. */
export function createGroupBytes(first: ChainHead): GroupBytes {
  let buffer = Buffer.allocUnsafe(FIRST_CAPACITY);
  let length = 0;
  let head = first;

  function makeCapacity(more: number): void {
    if (length + more <= buffer.length) return;
    const grown = Buffer.allocUnsafe(Math.max(length + more, 2 * buffer.length));
    buffer.copy(grown, 0, 0, length);
    buffer = grown;
  }

  return {
    begin(known, needsLineEnd) {
      if (buffer.length > MAX_KEPT_CAPACITY) buffer = Buffer.allocUnsafe(FIRST_CAPACITY);
      head = known;
      length = 0;
      if (needsLineEnd) buffer[length++] = LINE_END;
    },
    add(event) {
      // Lines are printable ASCII (text/escaping.ts), so characters and bytes are equal in number.
      const hashed = `${head.hash}\n${lineUpToHash(head, event)}`;
      makeCapacity(hashed.length + HASH_END_LENGTH);
      const end = length + buffer.write(hashed, length, 'latin1');
      const hash = hashBytes(buffer.subarray(length, end));
      // The hashed bytes start with the previous hash; the written ones do not.
      const prefixLength = head.hash.length + 1;
      buffer.copyWithin(length, length + prefixLength, end);
      length = end - prefixLength;
      length += buffer.write(`,"hash":"${hash}"}}\n`, length, 'latin1');
      head = { epoch: head.epoch, seq: head.seq + 1, hash };
    },
    head: () => head,
    bytes: () => buffer.subarray(0, length),
  };
}

/** If many wait for one write, the next starts no sooner than this after it. */
export const MIN_GROUP_INTERVAL_MS = 4;
/** A gateway with this many waiters per group is busy. */
export const BUSY_WAITERS = 4;

export type GroupPace = {
  /** Adds a waiter to the next group. */
  join(): void;
  /** Resolves when the next group may start; `undefined` if it may start at once. */
  untilDue(): Promise<void> | undefined;
  /** Starts a group: later waiters join the next one. */
  begin(): void;
};

/**
 * Creates the pace of one sink. The next group starts as soon as all ready requests have been queued or, if
 * many wait for each write, a moment later, so that a busy gateway makes few large writes instead of many
 * small ones, each of which costs a system call. No request is delayed longer than that moment.
 * `monotonicMs` is a clock that never jumps.
 */
export function createGroupPace(monotonicMs: () => number): GroupPace {
  let waiters = 0;
  let isBusy = false;
  let begunMs = Number.NEGATIVE_INFINITY;
  return {
    join() {
      waiters += 1;
    },
    untilDue() {
      const pauseMs = begunMs + MIN_GROUP_INTERVAL_MS - monotonicMs();
      if (!isBusy || pauseMs <= 0) return undefined;
      return new Promise((resolve) => {
        setTimeout(resolve, pauseMs);
      });
    },
    begin() {
      isBusy = waiters >= BUSY_WAITERS;
      waiters = 0;
      begunMs = monotonicMs();
    },
  };
}
