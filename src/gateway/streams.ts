// The open streams of clients: who holds one, so that a change can be announced there and a stream
// whose reason is gone can be ended.

import type { OpenStream } from '../exchange-ports.js';

export type StreamRegistry = {
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
  return {
    register(stream) {
      open.add(stream);
      count(stream.upstream, 1);
      return () => {
        if (open.delete(stream)) count(stream.upstream, -1);
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
