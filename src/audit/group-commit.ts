// Lays the lines of one group out as bytes, each linked to the one before, in memory that is used again
// by the next group: an audit line is built once and copied once. Decides nothing; see chain.ts.

import { type ChainHead, HASH_TAIL_LENGTH, hashBytes, openLine, PREFIX_LENGTH } from './chain.js';
import type { EventText } from './event.js';

// Those who wait for one write of the audit: one promise that they share, and how it is refused.

/** Refused: the place cannot be written. */
export class SinkUnavailable extends Error {
  override readonly name = 'SinkUnavailable';
}

/** Those who wait for one write. */
export type CommitGroup = {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
};

/** A group that nobody has joined yet. */
export function createCommitGroup(): CommitGroup {
  let resolve: () => void = () => undefined;
  let reject: (error: Error) => void = () => undefined;
  const promise = new Promise<void>((onDone, onError) => {
    resolve = onDone;
    reject = onError;
  });
  // Those who wait hold the same promise; a group nobody waits for must not end the process.
  promise.catch(() => undefined);
  return { promise, resolve, reject };
}

const FIRST_CAPACITY = 64 * 1024;
/** A larger buffer is given back after its group. */
const MAX_KEPT_CAPACITY = 1024 * 1024;
const LINE_END = 0x0a;

export type GroupBytes = {
  /** Begins a group behind this head; with a line end where the place ends in an unfinished line. */
  begin(head: ChainHead, needsLineEnd: boolean): void;
  /** Adds the next line of the chain. */
  add(event: EventText): void;
  /** The head that the lines so far make. */
  head(): ChainHead;
  /** The bytes so far; good until the next group begins. */
  bytes(): Buffer;
};

/** Makes the memory of one sink, which writes one group at a time. `head` is where its chain begins. */
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
      // Lines are printable ASCII (quoting.ts), so characters and bytes are the same number.
      const open = openLine(head, event);
      makeCapacity(PREFIX_LENGTH + open.length + HASH_TAIL_LENGTH + 1);
      buffer.write(`${head.hash}\n`, length, 'latin1');
      buffer.write(open, length + PREFIX_LENGTH, 'latin1');
      const end = length + PREFIX_LENGTH + open.length;
      const hash = hashBytes(buffer.subarray(length, end));
      // What was hashed begins with the hash before; what is written does not.
      buffer.copyWithin(length, length + PREFIX_LENGTH, end);
      length += open.length;
      length += buffer.write(`,"hash":"${hash}"}}\n`, length, 'latin1');
      head = { epoch: head.epoch, seq: head.seq + 1, hash };
    },
    head: () => head,
    bytes: () => buffer.subarray(0, length),
  };
}

// Decides when the next group of audit lines begins: as soon as all that is ready has been asked for, or,
// where many wait for each write, a moment later, so that a busy gateway writes few large groups instead
// of many small ones, each of which costs a call of the system. Holds nobody longer than that moment.

/** Where many wait for one write, the next begins no sooner than this after it. */
export const GROUP_EVERY_MS = 4;
/** So many waiters of one group make a gateway busy. */
export const MANY_WAITERS = 4;

export type GroupPace = {
  /** One more waits for the next group. */
  join(): void;
  /** Resolves when the next group may begin; undefined where it may at once. */
  untilDue(): Promise<void> | undefined;
  /** A group begins: whoever joins from now on waits for the next. */
  begin(): void;
};

/** The pace of one sink. `monotonicMs` is a clock that never jumps. */
export function createGroupPace(monotonicMs: () => number): GroupPace {
  let waiters = 0;
  let isBusy = false;
  let begunMs = Number.NEGATIVE_INFINITY;
  return {
    join() {
      waiters += 1;
    },
    untilDue() {
      const pauseMs = begunMs + GROUP_EVERY_MS - monotonicMs();
      if (!isBusy || pauseMs <= 0) return undefined;
      return new Promise((resolve) => {
        setTimeout(resolve, pauseMs);
      });
    },
    begin() {
      isBusy = waiters >= MANY_WAITERS;
      waiters = 0;
      begunMs = monotonicMs();
    },
  };
}
