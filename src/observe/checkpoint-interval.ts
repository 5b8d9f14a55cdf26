// What was written since a checkpoint, counted the same way by the writer, which must not exceed its
// bounds, and by the verifier, which reports it when they were exceeded.

import type { CheckpointBounds } from './checkpoint.js';

/** The verifier allows this many intervals between two checkpoints. */
export const INTERVALS_ALLOWED = 2;

/** The writer waits for its timer this much longer than one interval before it puts a checkpoint in itself. */
const INTERVALS_WRITTEN = 1.5;

/** Lines that the writer keeps free for those that a restart puts before its checkpoint. */
const LINES_KEPT = 10;

/** The lines that follow a checkpoint. */
export class CheckpointInterval {
  readonly bounds: CheckpointBounds;
  lines = 0;
  /**
   * The lines' own time: from line to line, forwards only. A pause without lines (the machine slept, the
   * clock was set, nothing ran) counts as one interval, however long it was: it says nothing of what is
   * missing, and yet a file must not be made of pauses alone.
   */
  ownMs = 0;
  #lastMs: number;

  constructor(bounds: CheckpointBounds, timeMs: number) {
    this.bounds = bounds;
    this.#lastMs = timeMs;
  }

  copy(): CheckpointInterval {
    const same = new CheckpointInterval(this.bounds, this.#lastMs);
    same.lines = this.lines;
    same.ownMs = this.ownMs;
    return same;
  }

  /** Time since the last line. NaN, for a line that states no time, counts as none. */
  pauseBefore(timeMs: number): number {
    const pause = timeMs - this.#lastMs;
    return pause > 0 ? pause : 0;
  }

  add(timeMs: number): void {
    this.lines += 1;
    this.ownMs += Math.min(this.pauseBefore(timeMs), this.bounds.everyMs);
    if (!Number.isNaN(timeMs)) this.#lastMs = timeMs;
  }

  /** True when the writer has to put a checkpoint before a line of this time. */
  isDueBefore(timeMs: number): boolean {
    const { everyMs, everyLines } = this.bounds;
    if (this.lines + 1 > Math.max(1, everyLines - LINES_KEPT)) return true;
    const pause = Math.min(this.pauseBefore(timeMs), everyMs);
    return this.ownMs + pause > INTERVALS_WRITTEN * everyMs;
  }

  /** True when more follows than the verifier allows. */
  isExceeded(): boolean {
    const { everyMs, everyLines } = this.bounds;
    return this.lines > INTERVALS_ALLOWED * everyLines || this.ownMs > INTERVALS_ALLOWED * everyMs;
  }
}
