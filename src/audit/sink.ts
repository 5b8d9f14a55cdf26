// Writes events to one sink, in order, as one chain, with group commit: one write is in flight, and events that
// arrive meanwhile form the next group. A promise of `append` resolves when its group is written (and synced, if that is
// configured); all waiters of one write share it. If a write fails, all waiting events are refused, the chain continues
// from the last durable line, and the sink is reopened at the next event and every second. It never drops events
// silently, never reorders them and never exceeds its queue (docs/reference/audit.md; docs/reference/attacks.md case
// 89).

import { systemErrorCode } from '../text/wording.js';
import {
  type ChainHead,
  type CheckpointBounds,
  CheckpointInterval,
  createGroupBytes,
  type GroupBytes,
  type Predecessor,
  startChain,
} from './chain.js';
import type { EventText } from './event.js';

/** What the first line of a file says of it. */
export type FileOpening = {
  readonly file: string;
  /** Why a run goes on in a further file; absent in its first one. */
  readonly why?: string | undefined;
  /** The file before it. */
  readonly after: Predecessor | undefined;
  /** Files without a complete line that were passed over. */
  readonly skipped: readonly string[];
};

/** The state in which the sink was found. */
export type Preparation = {
  /** The head of the chain to continue; `undefined` starts a new one. */
  readonly head: ChainHead | undefined;
  /** Present if nothing was written to the file yet. */
  readonly opening?: FileOpening;
  /** Where lines go cannot be read, so no later run can sign the end of this one. */
  readonly isStream?: boolean | undefined;
};

/** Where lines are written. Its methods are called one at a time. */
export interface ChainWriter {
  /** Opens the sink, or checks that it is unchanged. `known` is the last durable line. */
  prepare(known: ChainHead | undefined): Promise<Preparation>;
  /** Writes the bytes and makes them durable. */
  commit(bytes: Buffer): Promise<void>;
  /** After a failure: undoes what it can and closes. Does not throw. */
  abandon(): Promise<void>;
  close(): Promise<void>;
  /** Present if the sink writes files in a folder, where those of other runs are. */
  readonly folder?: AuditFolder;
}

export type VolumeSpace = { readonly freeBytes: number; readonly totalBytes: number };

/** A file that this process writes, and its bytes of completed writes: what stands behind them may be undone. */
export type OwnFile = { readonly path: string; readonly bytes: number };

/** The folder of a sink. */
export type AuditFolder = {
  /** `undefined` while no file is open. */
  ownFile(): OwnFile | undefined;
  /** What somebody should look at, a sentence each: other writers, and files that somebody else has changed. */
  findWarnings(): Promise<readonly string[]>;
  /** Files that are older than the time for which they are kept, the oldest first. */
  findOld(keptMs: number): AsyncIterable<Predecessor>;
  /** The path of a file of this name. */
  pathOf(file: string): string;
  /** Files that no run writes any more and that are not compressed, as paths, the oldest first. */
  findFinished(): Promise<readonly string[]>;
  /** Compresses one of them. */
  compress(path: string, signal: AbortSignal): Promise<void>;
  /** The space of the volume, in bytes. */
  measureSpace(): Promise<VolumeSpace>;
  /** Removes a file by its name, once a line that says so is written. */
  remove(file: string): Promise<void>;
};

/** What happened to events, for metrics. */
export type SinkResult = 'written' | 'refused' | 'lost';

type SinkPorts = {
  /** Builds a lifecycle event. */
  readonly lifecycle: (event: string, detail: Readonly<Record<string, string | number>>) => EventText;
  /** Builds the first line of a run, or of a further file of it. */
  readonly opening: (event: 'started' | 'continued', opening: FileOpening | undefined) => EventText;
  /** Builds the signed checkpoint of a head. */
  readonly checkpoint: (head: ChainHead) => EventText;
  /** When the next checkpoint is due after another. */
  readonly bounds: CheckpointBounds;
  readonly newEpoch: (isStream: boolean) => string;
  readonly monotonicMs: () => number;
  readonly onResult: (result: SinkResult, count: number) => void;
  readonly onWritten: (head: ChainHead) => void;
  /** How long a write took. `error`: the code of a system error, or `_OTHER`; empty if it succeeded. */
  readonly onWrite: (durationMs: number, error: string) => void;
  /** A checkpoint was written; it is copied to the other sinks. */
  readonly onCheckpoint: (event: EventText) => void;
  /** The error code, or `undefined` when the sink works again. */
  readonly onState: (error: string | undefined) => void;
};

/** Maximum number of queued events. */
export const QUEUE_CAPACITY = 10_000;

/** The part of the queue reserved for calls: neither failed authentications nor refusals can fill it. */
export const CALL_RESERVE = 2_000;

/** Maximum number of events in one write. */
const MAX_GROUP_EVENTS = 2_000;

/** A failed sink is tried again at this interval. */
const RETRY_EVERY_MS = 1_000;

/** Events without a waiter are written with the next event that has one, or after this time. */
const NO_WAITER_DELAY_MS = 5;

/** A write that takes longer counts as failed for its waiters. */
const STALL_MS = 5_000;

/** The state while a write does not return. */
const STALLED = 'stalled';

/** The state before `start`: neither working nor to be retried. */
const NOT_STARTED = 'not-started';

/** How long `close` waits for the last write. */
const CLOSE_WITHIN_MS = 5_000;

type Item =
  | { readonly kind: 'event'; readonly event: EventText; readonly isKept: boolean }
  | { readonly kind: 'checkpoint' };

function codeOf(error: unknown): string {
  return systemErrorCode(error) ?? (error instanceof Error ? error.message : 'fault');
}

/** The sink cannot be written. */
export class SinkUnavailable extends Error {
  override readonly name = 'SinkUnavailable';
}

/** The promise shared by all waiters of one write. */
type CommitGroup = {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
};

/** A group without waiters. */
function createCommitGroup(): CommitGroup {
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

/** A group of fewer events waits for further ones while the event loop brings them: each write costs as much as several. */
const SMALL_GROUP = 16;

/** Turns of the event loop that a group waits at most. */
const MAX_GATHERING_TURNS = 12;

/** Resolves when the event loop has served every socket that is ready. An idle loop does so at once: this is no timer. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** One sink: a queue, a chain and a writer. */
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
  /** The lines since the last checkpoint; unknown if the chain of an earlier run is continued. */
  #interval: CheckpointInterval | undefined;
  #isRunning = false;
  #isKickDue = false;
  #hasWaiters = false;
  #isStarted = false;
  /** False before `start`, so that a start that fails leaves no file. */
  #mayOpen = false;
  #isClosed = false;
  #startedMs = 0;
  #error: string | undefined = NOT_STARTED;
  /** Events refused since the last line that gave their number. */
  #refused = 0;

  constructor(name: string, writer: ChainWriter, ports: SinkPorts) {
    this.name = name;
    this.#writer = writer;
    this.#ports = ports;
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

  get folder(): AuditFolder | undefined {
    return this.#writer.folder;
  }

  /** Opens the sink and writes the first line. Rejects with SinkUnavailable. */
  start(): Promise<void> {
    this.#mayOpen = true;
    return this.#wait();
  }

  /** Resolves when the event is durable; rejects with SinkUnavailable if it will not be. */
  append(event: EventText): Promise<void> {
    const isClosed = this.#isClosed || !this.#mayOpen;
    const isStalled = this.#isStalled();
    if (isClosed || isStalled || this.#queue.length >= QUEUE_CAPACITY) {
      if (isStalled && this.#error !== STALLED) this.#refuseStalled();
      if (isStalled) this.#refused += 1;
      this.#ports.onResult('refused', 1);
      return Promise.reject(new SinkUnavailable('the audit queue is full or closed'));
    }
    this.#queue.push({ kind: 'event', event, isKept: false });
    return this.#wait();
  }

  /**
   * Queues an event without a waiter, and keeps it across failures. Returns false if the queue is full; the
   * event is then counted as lost. `mayUseReserve` is for the outcomes of calls.
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

  /** Writes a signed checkpoint of the chain as it is when the checkpoint's turn comes. */
  checkpoint(): void {
    if (this.#isClosed || !this.#mayOpen) return;
    if (this.#queue.length >= QUEUE_CAPACITY - CALL_RESERVE) return;
    this.#queue.push({ kind: 'checkpoint' });
    this.#kick();
  }

  /** Resolves when all queued events are written or have failed; waits a bounded time. */
  async drain(): Promise<void> {
    if (!this.#isStarted || this.#isClosed) return;
    const written = this.#wait().catch(() => undefined);
    await Promise.race([written, this.#closingTime()]);
  }

  /** Writes the queued events, the end of the run and a last checkpoint, and closes. Waits a bounded time. */
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
    }, NO_WAITER_DELAY_MS);
  }

  #isStalled(): boolean {
    return this.#committing !== undefined && this.#ports.monotonicMs() - this.#startedMs > STALL_MS;
  }

  #tick(): void {
    if (this.#isStalled()) this.#refuseStalled();
    else if (this.#error !== undefined && this.#error !== NOT_STARTED) this.#kick();
  }

  /** Writes groups until the queue is empty or a write fails. */
  async #run(): Promise<void> {
    let isWorking = true;
    do {
      await this.#gather();
      const items = this.#queue.splice(0, MAX_GROUP_EVENTS);
      const group = this.#takeGroup();
      this.#startedMs = this.#ports.monotonicMs();
      try {
        await this.#write(items);
        this.#ports.onWrite(this.#ports.monotonicMs() - this.#startedMs, '');
        group.resolve();
      } catch (error) {
        isWorking = false;
        this.#ports.onWrite(this.#ports.monotonicMs() - this.#startedMs, systemErrorCode(error) ?? '_OTHER');
        await this.#fail(items, error);
      }
      this.#committing = undefined;
    } while ((isWorking && this.#queue.length > 0) || this.#hasWaiters);
    this.#isRunning = false;
  }

  /** Waits while the sockets that are ready bring further events, which belong to the same group. */
  async #gather(): Promise<void> {
    let known = -1;
    for (let turn = 0; turn < MAX_GATHERING_TURNS; turn += 1) {
      const { length } = this.#queue;
      if (length === known || (turn > 0 && length >= SMALL_GROUP)) return;
      known = length;
      await nextTurn();
    }
  }

  /** The waiters of this group; those whose events did not fit into it continue to wait. */
  #takeGroup(): CommitGroup {
    const group = this.#gathering;
    this.#committing = group;
    if (this.#queue.length === 0) {
      this.#gathering = createCommitGroup();
      this.#hasWaiters = false;
      return group;
    }
    // Waiters of a split group are resolved with its last part.
    return { ...group, resolve: () => undefined };
  }

  async #write(items: readonly Item[]): Promise<void> {
    const found = await this.#writer.prepare(this.#head);
    const { head, isNewStream } = this.#beginningOf(found);
    this.#bytes ??= createGroupBytes(head);
    const group = this.#bytes;
    group.begin(head);
    const checkpoints: EventText[] = [];
    let interval = head.seq === this.#head?.seq ? this.#interval?.copy() : undefined;
    const addCheckpoint = (): void => {
      const point = this.#ports.checkpoint(group.head());
      checkpoints.push(point);
      group.add(point);
      interval = new CheckpointInterval(this.#ports.bounds, point.timeMs);
    };
    const add = (event: EventText): void => {
      if (interval?.isDueBefore(event.timeMs)) addCheckpoint();
      interval?.add(event.timeMs);
      group.add(event);
    };
    const opening = this.#openingEvents(found);
    const reported = { error: this.#error, refused: this.#refused };
    for (const event of opening) {
      // A new chain is known from its first line.
      if (group.head().seq < 0) interval = new CheckpointInterval(this.#ports.bounds, event.timeMs);
      interval?.add(event.timeMs);
      group.add(event);
    }
    // How much an earlier run left unsigned is unknown, so a checkpoint comes before further events. In a stream, where
    // nothing else vouches for a run, its beginning is signed at once.
    if (interval === undefined || isNewStream) addCheckpoint();
    for (const item of items) {
      if (item.kind === 'event') add(item.event);
      else addCheckpoint();
    }
    const bytes = group.bytes();
    if (bytes.length > 0) await this.#writer.commit(bytes);
    this.#interval = interval;
    this.#reportStall(reported);
    this.#done(group.head(), items.length, checkpoints);
  }

  #beginningOf({ head, isStream = false }: Preparation): { readonly head: ChainHead; readonly isNewStream: boolean } {
    const isNewStream = isStream && !this.#isStarted;
    return { head: head ?? startChain(this.#ports.newEpoch(isStream)), isNewStream };
  }

  /** A write that stalls has begun before anything was refused because of it, so the next one says so. */
  #reportStall(reported: { readonly error: string | undefined; readonly refused: number }): void {
    this.#refused -= reported.refused;
    const isNew = reported.error !== STALLED || this.#refused > 0;
    if (this.#error !== STALLED || !isNew || this.#isClosed) return;
    this.#queue.unshift({ kind: 'event', event: this.#resumed(STALLED), isKept: true });
    this.#refused = 0;
  }

  #openingEvents(found: Preparation): EventText[] {
    const { opening } = this.#ports;
    if (!this.#isStarted) return [opening('started', found.opening)];
    // INVARIANT: the first line of a file is the one that links it to the file before it.
    const events = found.opening === undefined ? [] : [opening('continued', found.opening)];
    if (this.#error !== undefined) events.push(this.#resumed(this.#error));
    return events;
  }

  #resumed(after: string): EventText {
    return this.#ports.lifecycle('resumed', { after, refused: this.#refused });
  }

  #done(head: ChainHead, count: number, checkpoints: readonly EventText[]): void {
    this.#head = head;
    this.#isStarted = true;
    this.#setError(undefined);
    if (count > 0) this.#ports.onResult('written', count);
    this.#ports.onWritten(head);
    for (const point of checkpoints) this.#ports.onCheckpoint(point);
  }

  async #fail(items: readonly Item[], error: unknown): Promise<void> {
    await this.#writer.abandon();
    this.#dropWaiting([...items, ...this.#queue]);
    this.#queue = this.#queue.filter((item) => item.kind === 'event');
    this.#setError(codeOf(error));
    this.#refuse(new SinkUnavailable(codeOf(error)));
  }

  /** Refuses all that waits for a write that does not return. What it writes is refused or written with it. */
  #refuseStalled(): void {
    this.#dropWaiting(this.#queue);
    this.#setError(STALLED);
    this.#refuse(new SinkUnavailable(STALLED));
  }

  /** Drops the events of these that have a waiter, and counts them before it is refused. */
  #dropWaiting(items: readonly Item[]): void {
    this.#queue = items.filter((item) => item.kind !== 'event' || item.isKept);
    const refused = items.length - this.#queue.length;
    this.#refused += refused;
    if (refused > 0) this.#ports.onResult('refused', refused);
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
