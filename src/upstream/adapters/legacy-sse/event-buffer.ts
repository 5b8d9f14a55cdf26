// Buffers what a legacy SSE server has sent for one request, or for no request, until it is read and for as
// long as it may be read again. The server's stream has no event ids, so they are generated here. Bounded per
// buffer, per caller and per upstream.
// Source: MCP 2024-11-05, transports, HTTP with SSE; MCP 2025-11-25, transports, resumability.

import type { ForwardError } from '../../../protocol/transport.js';
import type { OutboundItem, OutboundItems } from '../local-response.js';

/** The budget shared by all buffers of an upstream. */
export type BufferBudget = { bytesLeft: number };

export type EventBufferSettings = {
  /** The prefix of its event ids. */
  readonly key: string;
  readonly maxBytes: number;
  readonly budget: BufferBudget;
  /** The longest silence that a reader waits through. */
  readonly idleMs: number;
  /**
   * When full, `forget` drops the oldest messages; `fail` drops only read ones, and fails if that is not
   * enough.
   */
  readonly overflow: 'drop-oldest' | 'fail';
  readonly now: () => number;
};

/** One reading. It ends when another begins or when its reader leaves. */
export type BufferReader = { readonly items: OutboundItems; leave(): void };

export type EventBuffer = {
  readonly key: string;
  put(text: string): void;
  /** Ends the buffer, complete or with an error. Only the first end counts. */
  end(how: 'complete' | ForwardError): void;
  /** Reads from the message after the `after`-th; `undefined` if that is no longer buffered. */
  read(after: number, how: { readonly isPrimed: boolean }): BufferReader | undefined;
  /** The number of messages before the first unread one. */
  readonly firstUnread: number;
  /** The buffered size, as UTF-8. */
  readonly bytes: number;
  readonly isRead: boolean;
  readonly hasEnded: boolean;
  /** When it was last read, or a message last arrived. */
  readonly usedAtMs: number;
  /** Drops everything buffered. */
  drop(): void;
};

export function createEventBuffer(settings: EventBufferSettings): EventBuffer {
  const { key, maxBytes, budget, idleMs, overflow, now } = settings;
  const buffered: { readonly text: string; readonly bytes: number }[] = [];
  /** Messages dropped before the first of `buffered`. */
  let droppedCount = 0;
  let bytes = 0;
  let deliveredCount = 0;
  let end: 'complete' | ForwardError | undefined;
  let currentReader = 0;
  let isRead = false;
  let usedAtMs = now();
  let wake: () => void = () => undefined;

  function reserve(more: number): void {
    bytes += more;
    budget.bytesLeft -= more;
  }

  function dropOldest(): void {
    const oldest = buffered.shift();
    droppedCount += 1;
    reserve(-(oldest?.bytes ?? 0));
  }

  function dropAll(): void {
    while (buffered.length > 0) dropOldest();
  }

  function isFull(): boolean {
    return bytes > maxBytes || budget.bytesLeft < 0;
  }

  function close(how: 'complete' | ForwardError): void {
    end ??= how;
    wake();
  }

  function leave(readerId: number): void {
    if (readerId !== currentReader) return;
    currentReader += 1;
    isRead = false;
    usedAtMs = now();
    wake();
  }

  /** True once something may have arrived; false after `idleMs` of silence. */
  function awaitMore(): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), idleMs);
      wake = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }

  /** The item at a position; `complete` after the last one, `undefined` if more may follow. */
  function peek(position: { at: number }): OutboundItem | 'complete' | undefined {
    // Skips what has been dropped meanwhile.
    const at = Math.max(position.at, droppedCount);
    const text = buffered[at - droppedCount]?.text;
    if (text === undefined) return end === undefined || end === 'complete' ? end : errorItem(end);
    position.at = at + 1;
    deliveredCount = Math.max(deliveredCount, position.at);
    return { kind: 'message', text, eventId: `${key}-${position.at}` };
  }

  /** Waits for this reader's next item; `complete` if the reading is over. */
  async function nextFor(
    readerId: number,
    position: { at: number },
  ): Promise<OutboundItem | 'complete'> {
    while (readerId === currentReader) {
      const found = peek(position);
      if (found !== undefined) return found;
      if (!(await awaitMore()) && readerId === currentReader) return errorItem('upstream-timeout');
    }
    return 'complete';
  }

  async function* deliver(readerId: number, after: number, isPrimed: boolean): OutboundItems {
    if (isPrimed) yield { kind: 'primed', eventId: `${key}-${after}` };
    const position = { at: after };
    for (;;) {
      const outbound = await nextFor(readerId, position);
      if (outbound === 'complete') return;
      yield outbound;
      if (outbound.kind === 'error') return;
    }
  }

  return {
    key,
    put(text) {
      if (end !== undefined) return;
      const size = Buffer.byteLength(text);
      buffered.push({ text, bytes: size });
      reserve(size);
      usedAtMs = now();
      const mayDropOldest = (): boolean =>
        buffered.length > 1 && (overflow === 'drop-oldest' || droppedCount < deliveredCount);
      while (isFull() && mayDropOldest()) dropOldest();
      if (isFull()) {
        dropAll();
        if (overflow === 'fail') close('upstream-protocol');
      }
      wake();
    },
    end: close,
    read(after, { isPrimed }) {
      if (after < droppedCount || after > droppedCount + buffered.length) return undefined;
      currentReader += 1;
      const readerId = currentReader;
      isRead = true;
      usedAtMs = now();
      wake();
      return { items: deliver(readerId, after, isPrimed), leave: () => leave(readerId) };
    },
    get firstUnread() {
      return Math.max(droppedCount, deliveredCount);
    },
    get bytes() {
      return bytes;
    },
    get isRead() {
      return isRead;
    },
    get hasEnded() {
      return end !== undefined;
    },
    get usedAtMs() {
      return usedAtMs;
    },
    drop() {
      dropAll();
      close('upstream-unavailable');
    },
  };
}

function errorItem(reason: ForwardError): OutboundItem {
  return { kind: 'error', reason };
}

/**
 * One caller's part of the budget; what is taken from it is also taken from the total. A caller that reads
 * nothing, or never resumes, fills only its own quota and leaves capacity for others. Source:
 * docs/contract.md §10 (never shared between principals).
 */
export type OwnerBufferBudget = BufferBudget & {
  /** True if half of it is used: messages already delivered are then no longer kept. */
  readonly isHalfUsed: boolean;
};

/** Creates the quota of one caller, of at most `maxBytes`. */
export function createOwnerBufferBudget(total: BufferBudget, maxBytes: number): OwnerBufferBudget {
  let ownLeft = maxBytes;
  const remainingBytes = (): number => Math.min(ownLeft, total.bytesLeft);
  return {
    get bytesLeft() {
      return remainingBytes();
    },
    set bytesLeft(next) {
      const change = next - remainingBytes();
      ownLeft += change;
      total.bytesLeft += change;
    },
    get isHalfUsed() {
      return ownLeft < maxBytes / 2;
    },
  };
}
