// What an audit sink is given: the place where lines go, and what it builds and tells. Types only.

import type { EventText } from './audit-event.js';
import type { ChainHead } from './chain.js';
import type { CheckpointBounds } from './checkpoint.js';

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

export type SinkPorts = {
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
