// Lines that stand in a log more than once, byte for byte, because whoever delivered them did so at least once. A line is
// known again by its hash, and what leads to it by the hashes that each line states of the one before: so a run of lines
// that ends at a known one is known as a whole, and no more is kept than the hashes of a few lines. What leads to no known
// line was moved, or is not what was read before. Pure: it performs no I/O.

import { BoundedMap } from '../state/bounds.js';
import type { ChainHead, ChainLine } from './chain.js';

type LinePosition = { readonly file: string; readonly line: number };

/** Lines of one chain whose hashes are kept: those of `lifecycle` and checkpoints, the newest. */
const MAX_KEPT = 10_000;
/** Parts of repeated lines that wait for a line that is known. */
const MAX_PENDING = 100;

/** Repeated lines in a row that no known line confirms yet. */
type Part = { first: LinePosition; count: number; seq: number; hash: string };

export type RepeatFinding = { readonly position: LinePosition; readonly kind: 'replaced' | 'reordered' };

/** The repeated lines of one chain. */
export class Repeats {
  readonly #kept = new BoundedMap<number, string>(MAX_KEPT);
  #part: Part | undefined;
  readonly #pending: Part[] = [];
  #count = 0;

  /** How many lines stood there before. */
  get count(): number {
    return this.#count;
  }

  /** Keeps the hash of a line that was read for the first time. */
  keep({ type, seq, hash }: ChainLine): void {
    if (type === 'lifecycle' || type === 'checkpoint') this.#kept.set(seq, hash);
  }

  /** Takes an unchanged line at or before the head of its chain. Returns what is wrong with it. */
  take({ seq, prev, hash }: ChainLine, head: ChainHead, position: LinePosition): RepeatFinding | undefined {
    const part = this.#partOf(seq, prev, position);
    part.count += 1;
    part.seq = seq;
    part.hash = hash;
    this.#absorb(part);
    const known = seq === head.seq ? head.hash : this.#kept.get(seq);
    if (known === undefined) return undefined;
    if (known !== hash) {
      part.count -= 1;
      return { position, kind: 'replaced' };
    }
    this.#count += part.count;
    part.count = 0;
    return undefined;
  }

  /** What no known line has confirmed. */
  end(): readonly RepeatFinding[] {
    const parts = [...this.#pending, ...(this.#part === undefined ? [] : [this.#part])];
    return parts.filter(({ count }) => count > 0).map(({ first }) => ({ position: first, kind: 'reordered' }));
  }

  #partOf(seq: number, prev: string, position: LinePosition): Part {
    const part = this.#part;
    if (part !== undefined && part.seq === seq - 1 && part.hash === prev) {
      if (part.count === 0) part.first = position;
      return part;
    }
    // Without bounds, lines that lead nowhere would be kept as often as somebody writes them.
    if (part !== undefined && part.count > 0 && this.#pending.length < MAX_PENDING) this.#pending.push(part);
    this.#part = { first: position, count: 0, seq, hash: '' };
    return this.#part;
  }

  /** A part that ends with the same line is confirmed with this one. */
  #absorb(part: Part): void {
    const index = this.#pending.findIndex(({ seq, hash }) => seq === part.seq && hash === part.hash);
    const [other] = index < 0 ? [] : this.#pending.splice(index, 1);
    if (other === undefined) return;
    part.count += other.count;
    part.first = other.first;
  }
}
