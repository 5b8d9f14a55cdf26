// What a server of HTTP+SSE has said to one exchange, or to no exchange, until somebody reads it, and as long as
// it may be read again: its channel has no ids of events, so they are made here. Bounded in bytes.
// Source: MCP 2024-11-05, transports, HTTP with SSE; MCP 2025-11-25, transports, resumability.

import type { ForwardError } from '../../../protocol/transport.js';
import type { Conversation, OutboundItem } from '../local-response.js';

/** Bytes that all mailboxes of an upstream hold together. */
export type Ledger = { bytesLeft: number };

export type EventBufferSettings = {
  /** Stands in the ids of its events. */
  readonly key: string;
  readonly maxBytes: number;
  readonly ledger: Ledger;
  /** Longest silence that a reader waits through. */
  readonly idleMs: number;
  /** `forget`: past the bound the oldest goes. `fail`: past it nothing more is told. */
  readonly overflow: 'forget' | 'fail';
  readonly now: () => number;
};

/** One reading: it ends when another begins, or when its reader leaves. */
export type Reading = { readonly conversation: Conversation; leave(): void };

export type EventBuffer = {
  readonly key: string;
  put(text: string): void;
  /** Nothing more comes: all was said, or why not. The first end counts. */
  end(how: 'complete' | ForwardError): void;
  /** Reads from the message after the `after`-th; `undefined` where that is no longer held. */
  read(after: number, how: { readonly isPrimed: boolean }): Reading | undefined;
  /** Messages before the first that nobody has read. */
  readonly unread: number;
  /** What is held, in characters. */
  readonly bytes: number;
  readonly isRead: boolean;
  readonly isOver: boolean;
  /** When somebody read it last, or something came. */
  readonly usedAtMs: number;
  /** Gives up what is held. */
  drop(): void;
};

/** An empty one. */
export function createEventBuffer(settings: EventBufferSettings): EventBuffer {
  const { key, maxBytes, ledger, idleMs, overflow, now } = settings;
  const held: string[] = [];
  /** Messages that were held before the first of `held`. */
  let gone = 0;
  let bytes = 0;
  let taken = 0;
  let end: 'complete' | ForwardError | undefined;
  let reader = 0;
  let isRead = false;
  let usedAtMs = now();
  let wake: () => void = () => undefined;

  function forgetOldest(): void {
    const text = held.shift() ?? '';
    gone += 1;
    bytes -= text.length;
    ledger.bytesLeft += text.length;
  }

  function forgetAll(): void {
    while (held.length > 0) forgetOldest();
  }

  function isFull(): boolean {
    return bytes > maxBytes || ledger.bytesLeft < 0;
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

  /** True once something may have come; false after a silence that is too long. */
  function awaitMore(): Promise<boolean> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), idleMs);
      wake = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }

  /** What stands at a place; `complete` behind the last of all, `undefined` where more is to come. */
  function peek(position: { at: number }): OutboundItem | 'complete' | undefined {
    // What was forgotten meanwhile is passed over.
    const at = Math.max(position.at, gone);
    const text = held[at - gone];
    if (text === undefined) return end === undefined || end === 'complete' ? end : errorItem(end);
    position.at = at + 1;
    taken = Math.max(taken, position.at);
    return { kind: 'message', text, eventId: `${key}-${position.at}` };
  }

  /** The next to be told to this reader, once there is one; nothing more where it is over. */
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

  async function* deliver(own: number, after: number, isPrimed: boolean): Conversation {
    if (isPrimed) yield { kind: 'primed', eventId: `${key}-${after}` };
    const position = { at: after };
    for (;;) {
      const outbound = await nextFor(own, position);
      if (outbound === 'complete') return;
      yield outbound;
      if (outbound.kind === 'fault') return;
    }
  }

  return {
    key,
    put(text) {
      if (end !== undefined) return;
      held.push(text);
      bytes += text.length;
      ledger.bytesLeft -= text.length;
      usedAtMs = now();
      const mayGo = (): boolean => held.length > 1 && (overflow === 'forget' || gone < taken);
      while (isFull() && mayGo()) forgetOldest();
      if (isFull()) {
        forgetAll();
        if (overflow === 'fail') finish('upstream-protocol');
      }
      wake();
    },
    end: finish,
    read(after, { isPrimed }) {
      if (after < gone || after > gone + held.length) return undefined;
      reader += 1;
      const own = reader;
      isRead = true;
      usedAtMs = now();
      wake();
      return { conversation: deliver(own, after, isPrimed), leave: () => leave(own) };
    },
    get unread() {
      return Math.max(gone, taken);
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
  return { kind: 'fault', reason };
}

// What one caller's channels may hold of what all channels of an upstream may: whoever reads nothing, or comes
// back for nothing, fills its own share, and the answers of others have room. Counts, and holds nothing.
// Source: docs/contract.md §10 (never shared between principals).

/** A part of a ledger. What is taken of it is taken of the whole. */
export type OwnerLedger = Ledger & {
  /** True where half of it is taken: nothing is held any more that was told already. */
  readonly isHalfTaken: boolean;
};

/** The share of one caller, of at most `maxBytes`. */
export function ownerLedgerOf(total: Ledger, maxBytes: number): OwnerLedger {
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
