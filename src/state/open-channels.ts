// The clients' ends of the channels of HTTP+SSE that this replica holds, by session, so that answers and refusals
// reach the stream on which they are awaited. One replica's memory; forgets a channel when it ends.

import type { LeaveSignal } from '../mcp/transport.js';

/** The stream of one client. */
export type ClientEnd = {
  readonly isClosed: boolean;
  /** Writes whole events; resolves when more may be written. */
  write(text: Uint8Array | string): void | Promise<void>;
  /** True while its client leaves so much unread that nothing more is asked for it. */
  readonly isLagging: boolean;
  /** Aborted when the channel ends. */
  readonly signal: LeaveSignal;
};

export type OpenChannels = {
  /** `session` is the keyed hash of the sealed id. The returned function takes the channel out again. */
  enter(session: string, end: ClientEnd): () => void;
  /** `undefined` where no channel of this session is held here. */
  find(session: string): ClientEnd | undefined;
  readonly size: number;
};

/** No channels. */
export function createOpenChannels(): OpenChannels {
  const open = new Map<string, ClientEnd>();
  return {
    enter(session, end) {
      open.set(session, end);
      return () => {
        if (open.get(session) === end) open.delete(session);
      };
    },
    find: (session) => open.get(session),
    get size() {
      return open.size;
    },
  };
}
