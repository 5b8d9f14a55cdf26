// Reads the bodies of requests under the cap of each and under one cap for all. Nobody is known yet while
// a body is on its way, so no place of an upstream is taken for it; when all together grow past their
// cap, the one that was begun first gives way, which is the one that is sent slowest (docs/reference/attacks.md case
// 10).

import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Incoming, Leaving } from '../protocol/transport.js';
import { sessionInQuery } from '../protocol/versions/legacy-sse.js';
import { certificateOf } from './peer.js';
import type { EdgeRoute } from './routes.js';

/** Why there is no body: past its cap, its client gone, or given up for the others. */
export type UnreadBody = 'too-large' | 'aborted' | 'crowded-out';

type BodyReader = {
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

// Tells that a client's connection ended before its answer did. Decides nothing.

/** The end of one response, for whoever must stop with it. */
export class ClientLeave extends Leaving {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    super();
    this.#response = response;
  }

  override get aborted(): boolean {
    return super.aborted || (this.#response.destroyed && !this.#response.writableFinished);
  }

  protected override watch(): void {
    this.#response.on('close', () => {
      if (!this.#response.writableFinished) this.abort();
    });
  }
}

// One request as the rest of the gateway sees it: plain values out of what node:http read. Where the transport
// puts a value elsewhere, it is moved to where all others have it. Decides nothing.

/** What the edge has found out about a request. */
export type Facts = {
  readonly id: string;
  readonly receivedAt: number;
  readonly startedMs: number;
  readonly route: EdgeRoute;
  readonly query: string;
  readonly repeated: ReadonlySet<string>;
  readonly body: Uint8Array;
  readonly remoteAddress: string;
};

/** The session of HTTP+SSE stands in the query; from here on it stands where other sessions stand. */
function headersOf(
  request: IncomingMessage,
  { route, query, repeated }: Facts,
): Pick<Incoming, 'headers' | 'repeated'> {
  const headers = request.headers as Incoming['headers'];
  if (route.legacySsePath !== 'message') return { headers, repeated };
  const named = { ...headers, 'mcp-session-id': sessionInQuery(query) };
  // Two sessions are one too many.
  return headers['mcp-session-id'] === undefined
    ? { headers: named, repeated }
    : { headers: named, repeated: new Set([...repeated, 'mcp-session-id']) };
}

/** Puts the values together. `enter` takes a place of the upstream's. */
export function toIncoming(
  request: IncomingMessage,
  response: ServerResponse,
  facts: Facts,
  enter: Incoming['enter'],
): Incoming {
  const { headers, repeated } = headersOf(request, facts);
  return {
    id: facts.id,
    upstream: facts.route.upstream,
    httpMethod: request.method === 'GET' ? 'GET' : request.method === 'DELETE' ? 'DELETE' : 'POST',
    legacySsePath: facts.route.legacySsePath,
    headers,
    repeated,
    query: facts.query,
    body: facts.body,
    remoteAddress: facts.remoteAddress,
    clientCertificate: certificateOf(request.socket),
    enter,
    // INVARIANT: a plain value. With an accessor of its own each of these objects would get a hidden class of its
    // own, which slows down whatever reads it and keeps it from being collected young.
    signal: new ClientLeave(response),
    receivedAt: facts.receivedAt,
    startedMs: facts.startedMs,
  };
}
