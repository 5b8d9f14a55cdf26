// Gathers the events that one reading of an upstream yields, so that they leave as one write of the
// socket. Keeps their order, holds nothing past that reading, and hands the client's pace on.

import type { Outgoing } from '../mcp/transport.js';

export type GatheredWrites = {
  add(text: string): void;
  /** Writes what was gathered; a promise where the client lags. */
  flush(): void | Promise<void>;
};

/** Gathers writes to an open stream. Whoever adds must flush. */
export function gatherWrites(outgoing: Pick<Outgoing, 'write'>): GatheredWrites {
  let gathered = '';
  return {
    add(text) {
      gathered += text;
    },
    flush() {
      if (gathered === '') return;
      const text = gathered;
      gathered = '';
      return outgoing.write(text);
    },
  };
}
