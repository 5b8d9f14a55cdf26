// The clients' ends of the channels of HTTP+SSE that this replica holds, by session, so that answers and refusals
// reach the stream on which they are awaited. One replica's memory; forgets a channel when it ends.

/** `End` is the stream of one client. */
export type OpenLegacyStreams<End> = {
  /** `session` is the keyed hash of the sealed id. The returned function takes the channel out again. */
  enter(session: string, end: End): () => void;
  /** `undefined` where no channel of this session is held here. */
  find(session: string): End | undefined;
  readonly size: number;
};

/** No channels. */
export function createOpenLegacyStreams<End>(): OpenLegacyStreams<End> {
  const open = new Map<string, End>();
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
