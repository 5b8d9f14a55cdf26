// Reads the bodies of requests under the cap of each and under one cap for all. Nobody is known yet while
// a body is on its way, so no place of an upstream is taken for it; when all together grow past their
// cap, the one that was begun first gives way, which is the one that is sent slowest (attack 10).

import type { IncomingMessage } from 'node:http';

/** Why there is no body: past its cap, its client gone, or given up for the others. */
export type UnreadBody = 'too-large' | 'aborted' | 'crowded-out';

export type BodyReader = {
  /** The bytes of a body of at most `maxBytes`, or why it was not read to its end. Never rejects. */
  read(request: IncomingMessage, maxBytes: number): Promise<Uint8Array | UnreadBody>;
};

/** A reader whose unfinished bodies hold at most `maxTotalBytes` together. */
export function createBodyReader(maxTotalBytes: number): BodyReader {
  /** In the order in which they were begun. */
  const unfinished = new Set<(why: UnreadBody) => void>();
  let totalBytes = 0;

  function makeCapacity(): void {
    for (const give of unfinished) {
      if (totalBytes <= maxTotalBytes) return;
      give('crowded-out');
    }
  }

  return {
    read: (request, maxBytes) =>
      new Promise((resolve) => {
        const declared = Number(request.headers['content-length']);
        const chunks: Uint8Array[] = [];
        let bytes = 0;
        let isOver = false;

        function finish(body: Uint8Array | UnreadBody): void {
          if (isOver) return;
          isOver = true;
          if (unfinished.delete(finish)) totalBytes -= bytes;
          chunks.length = 0;
          request.off('data', take);
          resolve(body);
        }

        function keep(chunk: Uint8Array): void {
          bytes += chunk.byteLength;
          totalBytes += chunk.byteLength;
          chunks.push(chunk);
          unfinished.add(finish);
          if (totalBytes > maxTotalBytes) makeCapacity();
        }

        function take(chunk: Uint8Array): void {
          if (bytes + chunk.byteLength > maxBytes) {
            request.pause();
            finish('too-large');
            // What is whole with its first chunk was never on its way.
          } else if (bytes === 0 && chunk.byteLength === declared) finish(chunk);
          else keep(chunk);
        }

        request.on('data', take);
        request.on('end', () => finish(joinChunks(chunks, bytes)));
        request.on('error', () => finish('aborted'));
        request.on('close', () => finish('aborted'));
      }),
  };
}

function joinChunks(chunks: readonly Uint8Array[], bytes: number): Uint8Array {
  const [first] = chunks;
  return chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks, bytes);
}
