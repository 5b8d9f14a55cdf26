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
  readonly overflow: 'forget' | 'fail';
  readonly now: () => number;
};

/** One reading. It ends when another begins or when its reader leaves. */
export type BufferReader = { readonly conversation: OutboundItems; leave(): void };

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
  readonly isOver: boolean;
  /** When it was last read, or a message last arrived. */
  readonly usedAtMs: number;
  /** Drops everything buffered. */
  drop(): void;
};

export function createEventBuffer(settings: EventBufferSettings): EventBuffer {
  const { key, maxBytes, budget, idleMs, overflow, now } = settings;
  const held: { readonly text: string; readonly bytes: number }[] = [];
  /** Messages dropped before the first of `held`. */
  let droppedCount = 0;
  let bytes = 0;
  let deliveredCount = 0;
  let end: 'complete' | ForwardError | undefined;
  let reader = 0;
  let isRead = false;
  let usedAtMs = now();
  let wake: () => void = () => undefined;

  function take(more: number): void {
    bytes += more;
    budget.bytesLeft -= more;
  }

  function forgetOldest(): void {
    const oldest = held.shift();
    droppedCount += 1;
    take(-(oldest?.bytes ?? 0));
  }

  function forgetAll(): void {
    while (held.length > 0) forgetOldest();
  }

  function isFull(): boolean {
    return bytes > maxBytes || budget.bytesLeft < 0;
  }

  function finish(how: 'complete' | ForwardError): void {
    end ??= how;
    wake();
  }

  function leave(own: number): void {
    if (own !== reader) return;
    reader += 1;
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
    const text = held[at - droppedCount]?.text;
    if (text === undefined) return end === undefined || end === 'complete' ? end : errorItem(end);
    position.at = at + 1;
    deliveredCount = Math.max(deliveredCount, position.at);
    return { kind: 'message', text, eventId: `${key}-${position.at}` };
  }

  /** Waits for this reader's next item; `complete` if the reading is over. */
  async function nextFor(
    own: number,
    position: { at: number },
  ): Promise<OutboundItem | 'complete'> {
    while (own === reader) {
      const found = peek(position);
      if (found !== undefined) return found;
      if (!(await awaitMore()) && own === reader) return errorItem('upstream-timeout');
    }
    return 'complete';
  }

  async function* deliver(own: number, after: number, isPrimed: boolean): OutboundItems {
    if (isPrimed) yield { kind: 'primed', eventId: `${key}-${after}` };
    const position = { at: after };
    for (;;) {
      const outbound = await nextFor(own, position);
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
      held.push({ text, bytes: size });
      take(size);
      usedAtMs = now();
      const mayGo = (): boolean =>
        held.length > 1 && (overflow === 'forget' || droppedCount < deliveredCount);
      while (isFull() && mayGo()) forgetOldest();
      if (isFull()) {
        forgetAll();
        if (overflow === 'fail') finish('upstream-protocol');
      }
      wake();
    },
    end: finish,
    read(after, { isPrimed }) {
      if (after < droppedCount || after > droppedCount + held.length) return undefined;
      reader += 1;
      const own = reader;
      isRead = true;
      usedAtMs = now();
      wake();
      return { conversation: deliver(own, after, isPrimed), leave: () => leave(own) };
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
    get isOver() {
      return end !== undefined;
    },
    get usedAtMs() {
      return usedAtMs;
    },
    drop() {
      forgetAll();
      finish('upstream-unavailable');
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
  readonly isHalfTaken: boolean;
};

/** Creates the quota of one caller, of at most `maxBytes`. */
export function createOwnerBufferBudget(total: BufferBudget, maxBytes: number): OwnerBufferBudget {
  let ownLeft = maxBytes;
  const left = (): number => Math.min(ownLeft, total.bytesLeft);
  return {
    get bytesLeft() {
      return left();
    },
    set bytesLeft(next) {
      const change = next - left();
      ownLeft += change;
      total.bytesLeft += change;
    },
    get isHalfTaken() {
      return ownLeft < maxBytes / 2;
    },
  };
}
