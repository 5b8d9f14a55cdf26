// The answers that a channel still owes its client. What was posted ended with 202 long before; whoever holds
// the stream waits for what comes under its id, and no longer than an exchange may take.
// Source: MCP 2024-11-05, transports, HTTP with SSE; MCP 2025-11-25, lifecycle (timeouts).

import type { AwaitedResponses } from '../mcp/transport.js';

/** Requests of one channel that may wait for their answers at once. */
export const MAX_AWAITED = 1024;

type AwaitedResponseEvents = {
  /** True for an id whose answer came before it was waited for: servers answer before their 202 is read. */
  hasCome(id: string): boolean;
  /** Told of each id whose answer did not come in time, once. */
  onLate(id: string): void;
};

/** Waits for nothing yet. */
export function createAwaitedResponses({
  hasCome,
  onLate,
}: AwaitedResponseEvents): AwaitedResponses {
  const awaited = new Map<string, NodeJS.Timeout>();

  function drop(id: string): void {
    clearTimeout(awaited.get(id));
    awaited.delete(id);
  }

  return {
    get isFull() {
      return awaited.size >= MAX_AWAITED;
    },
    add(id, withinMs) {
      if (hasCome(id)) return;
      drop(id);
      const late = (): void => {
        awaited.delete(id);
        onLate(id);
      };
      awaited.set(id, setTimeout(late, withinMs));
    },
    drop,
    close() {
      for (const id of [...awaited.keys()]) drop(id);
    },
  };
}
