// Moves events into one place, in order, as one chain, with group commit: one write is in flight, what
// arrives meanwhile forms the next group. A promise of `append` resolves when the group is written (for
// files: synced). When a write fails, everything that waits is refused, the chain goes on from the last
// durable line, and the place is opened again at the next event and each second. It never drops
// silently, never reorders, never grows past its queue (docs/contract.md §8; docs/reference/attacks.md case 89).

import { type ChainHead, type CheckpointBounds, CheckpointInterval, startChain } from './chain.js';
import type { EventText } from './event.js';
import {
  type CommitGroup,
  createCommitGroup,
  createGroupBytes,
  createGroupPace,
  type GroupBytes,
  type GroupPace,
  SinkUnavailable,
} from './group-commit.js';

// What an audit sink is given: the place where lines go, and what it builds and tells. Types only.

/** Something that must be written before the next line, because of how the place was found. */
export type LifecycleEvent = {
  readonly event: 'continued' | 'recovered';
  readonly detail: Readonly<Record<string, string | number>>;
};

/** How the place was found. */
export type Preparation = {
  /** The chain to go on with; `undefined` begins a new one. */
  readonly head: ChainHead | undefined;
  readonly lifecycleEvents: readonly LifecycleEvent[];
  /** True when the last bytes in the place are an unfinished line. */
  readonly needsLineEnd: boolean;
};

/** Where lines go. Methods are called one at a time. */
export interface ChainWriter {
  /**
   * Takes the right to write to the place, where it has only one writer, and waits a bounded time for
   * another. Resolves with a sentence where that was in vain; `onWait` is told who has it.
   */
  acquire?(onWait: (holder: string) => void, ending?: AbortSignal): Promise<string | undefined>;
  /** Why nothing can be written, where that is known before a write is tried. */
  currentError?(): string | undefined;
  /** Opens the place, or looks whether it is still the same. `known` is the last durable line. */
  prepare(known: ChainHead | undefined): Promise<Preparation>;
  /** Writes and makes durable. */
  commit(bytes: Buffer): Promise<void>;
  /** After a failure: undoes what it can and lets go. Does not throw. */
  abandon(): Promise<void>;
  close(): Promise<void>;
}

/** What happened to events. */
export type SinkResult = 'written' | 'refused' | 'lost';

type SinkPorts = {
  /** Builds a lifecycle event. */
  readonly lifecycle: (
    event: string,
    detail: Readonly<Record<string, string | number>>,
  ) => EventText;
  /** Builds the signed checkpoint of a head. */
  readonly checkpoint: (head: ChainHead) => EventText;
  /** How soon a checkpoint follows another. */
  readonly bounds: CheckpointBounds;
  readonly newEpoch: () => string;
  readonly monotonicMs: () => number;
  readonly onResult: (result: SinkResult, count: number) => void;
  readonly onWritten: (head: ChainHead) => void;
  /** A checkpoint was written: for a second place. */
  readonly onCheckpoint: (event: EventText) => void;
  /** The code of the fault, or `undefined` when the place works again. */
  readonly onState: (error: string | undefined) => void;
};

/** Events that may wait. */
export const QUEUE_CAPACITY = 10_000;

/** Of those, the part that only calls may use: neither failed logins nor refusals can fill it. */
export const CALL_RESERVE = 2_000;

/** Events in one write. */
const MAX_GROUP_EVENTS = 2_000;

/** A place that does not work is tried again this often. */
const RETRY_EVERY_MS = 1_000;

/** What nobody waits for is written with the next event that somebody waits for, or after this time. */
const KEPT_BACK_MS = 5;

/** A write that takes longer counts as a failure for those who wait. */
const STALL_MS = 5_000;

/** The state before `start`: no fault yet, and nothing to try again. */
const NOT_STARTED = 'not-started';

/** How long closing waits for the last write. */
const CLOSE_WITHIN_MS = 5_000;

type Item =
  | { readonly kind: 'event'; readonly event: EventText; readonly isKept: boolean }
  | { readonly kind: 'checkpoint' };

function codeOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (typeof code === 'string') return code;
  return error instanceof Error ? error.message : 'fault';
}

/** One sink: a queue, a chain and a place. */
export class AuditSink {
  readonly name: string;
  readonly #writer: ChainWriter;
  readonly #ports: SinkPorts;
  readonly #ticker: NodeJS.Timeout;
  #queue: Item[] = [];
  #gathering = createCommitGroup();
  #committing: CommitGroup | undefined;
  #head: ChainHead | undefined;
  #bytes: GroupBytes | undefined;
  /** What follows the last checkpoint; unknown where a chain of another run is gone on with. */
  #interval: CheckpointInterval | undefined;
  readonly #pace: GroupPace;
  #isRunning = false;
  #isKickDue = false;
  #hasWaiters = false;
  #isStarted = false;
  /** Nothing is opened before `start`, whatever comes: another one may still be writing there. */
  #mayOpen = false;
  #isClosed = false;
  #startedMs = 0;
  #error: string | undefined = NOT_STARTED;
  #refused = 0;

  constructor(name: string, writer: ChainWriter, ports: SinkPorts) {
    this.name = name;
    this.#writer = writer;
    this.#ports = ports;
    this.#pace = createGroupPace(ports.monotonicMs);
    this.#ticker = setInterval(() => this.#tick(), RETRY_EVERY_MS);
    this.#ticker.unref();
  }

  /** The last durable line. */
  get head(): ChainHead | undefined {
    return this.#head;
  }

  get queueLength(): number {
    return this.#queue.length;
  }

  get isWritable(): boolean {
    return this.#error === undefined && this.#queue.length < QUEUE_CAPACITY;
  }

  /** Takes the right to write; see ChainWriter. Comes before `start`, and writes nothing. */
  async acquire(
    onWait: (holder: string) => void,
    ending?: AbortSignal,
  ): Promise<string | undefined> {
    return this.#writer.acquire?.(onWait, ending);
  }

  /** Opens the place and writes the first line. Rejects with SinkUnavailable. */
  start(): Promise<void> {
    this.#mayOpen = true;
    return this.#wait();
  }

  /** Resolves when the event is durable; rejects with SinkUnavailable when it will not be. */
  append(event: EventText): Promise<void> {
    const isClosed = this.#isClosed || !this.#mayOpen;
    if (isClosed || this.#isStalled() || this.#queue.length >= QUEUE_CAPACITY) {
      this.#ports.onResult('refused', 1);
      return Promise.reject(new SinkUnavailable('the audit queue is full or closed'));
    }
    this.#queue.push({ kind: 'event', event, isKept: false });
    return this.#wait();
  }

  /**
   * Takes an event that nobody waits for, and keeps it over failures. False when there is no room:
   * then it is counted as lost. `mayUseReserve` is for the outcomes of calls.
   */
  enqueue(event: EventText, mayUseReserve: boolean): boolean {
    const capacity = mayUseReserve ? QUEUE_CAPACITY : QUEUE_CAPACITY - CALL_RESERVE;
    if (this.#isClosed || this.#queue.length >= capacity) {
      this.#ports.onResult('lost', 1);
      return false;
    }
    this.#queue.push({ kind: 'event', event, isKept: true });
    this.#kickSoon();
    return true;
  }

  /** Writes a signed checkpoint of the chain as it then is. */
  checkpoint(): void {
    if (this.#isClosed || !this.#mayOpen) return;
    if (this.#queue.length >= QUEUE_CAPACITY - CALL_RESERVE) return;
    this.#queue.push({ kind: 'checkpoint' });
    this.#kick();
  }

  /** Resolves when what waits now is written or cannot be; waits a bounded time. */
  async drain(): Promise<void> {
    if (!this.#isStarted || this.#isClosed) return;
    const written = this.#wait().catch(() => undefined);
    await Promise.race([written, this.#closingTime()]);
  }

  /** Writes what waits, a last checkpoint and the end of the run, and lets go. Waits a bounded time. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    if (!this.#mayOpen || (!this.#isStarted && this.#queue.length === 0)) {
      this.#isClosed = true;
      clearInterval(this.#ticker);
      return this.#writer.close();
    }
    this.enqueue(this.#ports.lifecycle('stopped', {}), true);
    this.#queue.push({ kind: 'checkpoint' });
    this.#isClosed = true;
    const last = this.#wait().catch(() => undefined);
    await Promise.race([last, this.#closingTime()]);
    clearInterval(this.#ticker);
    if (this.#queue.length > 0) this.#ports.onResult('lost', this.#queue.length);
    this.#queue = [];
    if (!this.#isRunning) await this.#writer.close().catch(() => undefined);
  }

  #closingTime(): Promise<void> {
    return new Promise((resolve) => {
      setTimeout(resolve, CLOSE_WITHIN_MS).unref();
    });
  }

  #wait(): Promise<void> {
    const { promise } = this.#gathering;
    this.#pace.join();
    this.#hasWaiters = true;
    this.#kick();
    return promise;
  }

  #kick(): void {
    if (this.#isRunning || !this.#mayOpen) return;
    this.#isRunning = true;
    void this.#run();
  }

  #kickSoon(): void {
    if (this.#isRunning || this.#isKickDue) return;
    this.#isKickDue = true;
    setTimeout(() => {
      this.#isKickDue = false;
      if (this.#queue.length > 0) this.#kick();
    }, KEPT_BACK_MS);
  }

  #isStalled(): boolean {
    return this.#committing !== undefined && this.#ports.monotonicMs() - this.#startedMs > STALL_MS;
  }

  #tick(): void {
    if (this.#isStalled()) {
      this.#refuse(new SinkUnavailable('stalled'));
      this.#setError('stalled');
    } else if (this.#error !== undefined && this.#error !== NOT_STARTED) {
      this.#kick();
    } else {
      const error = this.#writer.currentError?.();
      if (error !== undefined) this.#setError(error);
    }
  }

  /** Writes groups until nothing waits or a write fails. */
  async #run(): Promise<void> {
    // What all the sockets that are ready ask for belongs to the same group.
    await new Promise((resolve) => setImmediate(resolve));
    let isWorking = true;
    do {
      const pause = this.#pace.untilDue();
      if (pause !== undefined) await pause;
      this.#pace.begin();
      const items = this.#queue.splice(0, MAX_GROUP_EVENTS);
      const group = this.#takeGroup();
      this.#startedMs = this.#ports.monotonicMs();
      try {
        await this.#write(items);
        group.resolve();
      } catch (error) {
        isWorking = false;
        await this.#fail(items, error);
      }
      this.#committing = undefined;
    } while ((isWorking && this.#queue.length > 0) || this.#hasWaiters);
    this.#isRunning = false;
  }

  /** The waiters of this group; those whose events did not fit into it go on waiting. */
  #takeGroup(): CommitGroup {
    const group = this.#gathering;
    this.#committing = group;
    if (this.#queue.length === 0) {
      this.#gathering = createCommitGroup();
      this.#hasWaiters = false;
      return group;
    }
    // Only the last part of a split group tells its waiters.
    return { ...group, resolve: () => undefined };
  }

  async #write(items: readonly Item[]): Promise<void> {
    const found = await this.#writer.prepare(this.#head);
    const head = found.head ?? startChain(this.#ports.newEpoch());
    this.#bytes ??= createGroupBytes(head);
    const group = this.#bytes;
    group.begin(head, found.needsLineEnd);
    const points: EventText[] = [];
    let interval = head.seq === this.#head?.seq ? this.#interval?.copy() : undefined;
    const addPoint = (): void => {
      const point = this.#ports.checkpoint(group.head());
      points.push(point);
      group.add(point);
      interval = new CheckpointInterval(this.#ports.bounds, point.timeMs);
    };
    const add = (event: EventText): void => {
      if (interval?.isDueBefore(event.timeMs)) addPoint();
      interval?.add(event.timeMs);
      group.add(event);
    };
    for (const event of this.#openingEvents(found)) {
      // A new chain is known from its beginning.
      if (group.head().seq < 0) interval = new CheckpointInterval(this.#ports.bounds, event.timeMs);
      interval?.add(event.timeMs);
      group.add(event);
    }
    // How much an earlier run left unsigned is not known: nothing more is added to it.
    if (interval === undefined) addPoint();
    for (const item of items) {
      if (item.kind === 'event') add(item.event);
      else addPoint();
    }
    const bytes = group.bytes();
    if (bytes.length > 0) await this.#writer.commit(bytes);
    this.#interval = interval;
    this.#done(group.head(), items.length, points);
  }

  #openingEvents(found: Preparation): EventText[] {
    const { lifecycle } = this.#ports;
    // INVARIANT: a recovery is the very next line after what was torn.
    const events = found.lifecycleEvents.map((lifecycleEvent) =>
      lifecycle(lifecycleEvent.event, lifecycleEvent.detail),
    );
    if (!this.#isStarted) events.push(lifecycle('started', {}));
    else if (this.#error !== undefined) {
      events.push(lifecycle('resumed', { after: this.#error, refused: this.#refused }));
    }
    return events;
  }

  #done(head: ChainHead, count: number, points: readonly EventText[]): void {
    this.#head = head;
    this.#isStarted = true;
    this.#refused = 0;
    this.#setError(undefined);
    if (count > 0) this.#ports.onResult('written', count);
    this.#ports.onWritten(head);
    for (const point of points) this.#ports.onCheckpoint(point);
  }

  async #fail(items: readonly Item[], error: unknown): Promise<void> {
    await this.#writer.abandon();
    const waiting = [...items, ...this.#queue];
    this.#queue = waiting.filter((item) => item.kind === 'event' && item.isKept);
    const refused = waiting.filter((item) => item.kind === 'event' && !item.isKept).length;
    this.#refused += refused;
    if (refused > 0) this.#ports.onResult('refused', refused);
    this.#setError(codeOf(error));
    this.#refuse(new SinkUnavailable(codeOf(error)));
  }

  #refuse(error: SinkUnavailable): void {
    this.#committing?.reject(error);
    this.#gathering.reject(error);
    this.#gathering = createCommitGroup();
    this.#hasWaiters = false;
  }

  #setError(error: string | undefined): void {
    if (this.#error === error) return;
    this.#error = error;
    this.#ports.onState(error);
  }
}
