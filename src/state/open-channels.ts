// The clients' ends of the channels of HTTP+SSE that this replica holds, by session, so that a refusal reaches
// the stream on which its answer is awaited. One replica's memory; forgets a channel when it ends.

export type OpenChannels = {
  /** `session` is the keyed hash of the sealed id. The returned function takes the channel out again. */
  enter(session: string, write: (json: string) => void): () => void;
  /** False where no channel of this session is held here. */
  say(session: string, json: string): boolean;
};

/** No channels. */
export function createOpenChannels(): OpenChannels {
  const open = new Map<string, (json: string) => void>();
  return {
    enter(session, write) {
      open.set(session, write);
      return () => {
        if (open.get(session) === write) open.delete(session);
      };
    },
    say(session, json) {
      const write = open.get(session);
      write?.(json);
      return write !== undefined;
    },
  };
}
