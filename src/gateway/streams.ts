// The open streams of clients: who holds one, so that a change can be announced there and a stream
// whose reason is gone can be ended.

import type { OpenStream } from '../exchange-ports.js';
import type { Principal } from '../policy/principal.js';

/** Idle streams are cheap and not free: one caller's must not be everyone's. */
export const MAX_STREAMS_A_CALLER = 64;
export const MAX_STREAMS = 10_000;

/** A caller by identity, not by token: tokens are refreshed. */
function holderOf(upstream: string, { issuerUrl, subject, client }: Principal): string {
  return JSON.stringify([upstream, issuerUrl, subject, client]);
}

export type StreamRegistry = {
  /** False when this caller, or everyone together, holds as many streams as allowed. */
  hasCapacity(upstream: string, principal: Principal): boolean;
  register(stream: OpenStream): () => void;
  /** Tells every stream of an upstream that a list changed. */
  announce(upstream: string, method: string): void;
  /** Ends the streams for which `isGone` holds. */
  endWhere(isGone: (stream: OpenStream) => boolean): void;
  readonly size: number;
};

/** `count` is told of every stream that opens (1) and ends (-1). */
export function createStreamRegistry(
  count: (upstream: string, delta: 1 | -1) => void,
): StreamRegistry {
  const open = new Set<OpenStream>();
  const held = new Map<string, number>();

  function hold(stream: OpenStream, delta: 1 | -1): void {
    const holder = holderOf(stream.upstream, stream.principal);
    const now = (held.get(holder) ?? 0) + delta;
    if (now > 0) held.set(holder, now);
    else held.delete(holder);
    count(stream.upstream, delta);
  }

  return {
    hasCapacity(upstream, principal) {
      const own = held.get(holderOf(upstream, principal)) ?? 0;
      return open.size < MAX_STREAMS && own < MAX_STREAMS_A_CALLER;
    },
    register(stream) {
      open.add(stream);
      hold(stream, 1);
      return () => {
        if (open.delete(stream)) hold(stream, -1);
      };
    },
    announce(upstream, method) {
      for (const stream of open) if (stream.upstream === upstream) stream.announce(method);
    },
    endWhere(isGone) {
      for (const stream of [...open]) if (isGone(stream)) stream.end();
    },
    get size() {
      return open.size;
    },
  };
}
