// Reads request bodies, under a limit for each and one for all unfinished bodies, and turns a node:http request
// into plain values. Bodies are read before authentication, so they take no concurrency slot of an upstream; if
// together they exceed their limit, the oldest is dropped, which is the slowest to arrive
// (docs/reference/attacks.md case 10).

import type { IncomingMessage, ServerResponse } from 'node:http';
import { DisconnectController, type Incoming } from '../protocol/transport.js';
import { sessionInQuery } from '../protocol/versions/legacy-sse.js';
import { certificateOf } from './peer.js';
import type { EdgeRoute } from './routes.js';

/** Why a body was not read: it exceeded its limit, the client disconnected, or others needed the memory. */
export type UnreadBody = 'too-large' | 'aborted' | 'crowded-out';

type BodyReader = {
  /** Reads a body of at most `maxBytes`, or says why it was not read to its end. Never rejects. */
  read(request: IncomingMessage, maxBytes: number): Promise<Uint8Array | UnreadBody>;
};

/** Creates a reader whose unfinished bodies hold at most `maxTotalBytes` together. */
export function createBodyReader(maxTotalBytes: number): BodyReader {
  /** In the order in which they were begun. */
  const unfinished = new Set<(why: UnreadBody) => void>();
  let totalBytes = 0;

  function dropOldest(): void {
    for (const finish of unfinished) {
      if (totalBytes <= maxTotalBytes) return;
      finish('crowded-out');
    }
  }

  return {
    read: (request, maxBytes) =>
      new Promise((resolve) => {
        const declared = Number(request.headers['content-length']);
        const chunks: Uint8Array[] = [];
        let bytes = 0;
        let isFinished = false;

        function finish(body: Uint8Array | UnreadBody): void {
          if (isFinished) return;
          isFinished = true;
          if (unfinished.delete(finish)) totalBytes -= bytes;
          chunks.length = 0;
          request.off('data', onData);
          resolve(body);
        }

        function append(chunk: Uint8Array): void {
          bytes += chunk.byteLength;
          totalBytes += chunk.byteLength;
          chunks.push(chunk);
          unfinished.add(finish);
          if (totalBytes > maxTotalBytes) dropOldest();
        }

        function onData(chunk: Uint8Array): void {
          if (bytes + chunk.byteLength > maxBytes) {
            request.pause();
            finish('too-large');
            // A body that is complete with its first chunk never counts as unfinished.
          } else if (bytes === 0 && chunk.byteLength === declared) finish(chunk);
          else append(chunk);
        }

        request.on('data', onData);
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

/** Time on the event loop, in milliseconds, after which clients that left meanwhile have to wait to be told of. */
const LEAVE_SLICE_MS = 2;
/** More than fit into a slice. */
const MAX_LEAVES_A_TURN = 64;
/** Between two such turns: what gives back may wait, and takes no more than a third of the loop. */
const LEAVE_PAUSE_MS = 4;

/**
 * Tells those who listen that clients have left: at once, and where thousands leave together in turns, between which the
 * event loop serves other events. What a client held open takes a while to be given back, most of it in promises that
 * settle afterwards: each client has an immediate of its own, behind which they do, so that the slice counts them.
 */
function createLeaveTurns(): (disconnect: DisconnectController) => void {
  const left: DisconnectController[] = [];
  let startedMs: number | undefined;
  /** Immediates of the next turn that have not run. */
  let due = 0;
  let hasBegun = false;

  function isWithinSlice(): boolean {
    const nowMs = performance.now();
    startedMs ??= nowMs;
    return nowMs - startedMs < LEAVE_SLICE_MS;
  }

  function scheduleTurn(): void {
    if (due > 0) return;
    due = Math.max(1, Math.min(left.length, MAX_LEAVES_A_TURN));
    if (left.length === 0) beginTurn();
    else setTimeout(beginTurn, LEAVE_PAUSE_MS);
  }

  function beginTurn(): void {
    hasBegun = false;
    for (let count = 0; count < due; count += 1) setImmediate(abortNext);
  }

  function abortNext(): void {
    due -= 1;
    if (!hasBegun) startedMs = undefined;
    hasBegun = true;
    if (left.length > 0 && isWithinSlice()) left.shift()?.abort();
    if (left.length > 0) scheduleTurn();
    else if (due === 0) startedMs = undefined;
  }

  return (disconnect) => {
    if (left.length === 0 && isWithinSlice()) disconnect.abort();
    else left.push(disconnect);
    scheduleTurn();
  };
}

const abortInTurn = createLeaveTurns();

/** Aborts when the client's connection closes before its response was finished. */
export class ClientDisconnect extends DisconnectController {
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
      if (!this.#response.writableFinished) abortInTurn(this);
    });
  }
}

/** What the checks before authentication found out about a request. */
export type EdgeFacts = {
  readonly id: string;
  readonly receivedAt: number;
  readonly startedMs: number;
  readonly route: EdgeRoute;
  readonly query: string;
  readonly repeated: ReadonlySet<string>;
  /** Set once it was read. */
  body: Uint8Array;
  readonly remoteAddress: string;
};

/** Moves the session id of a legacy SSE message from the query to the header where other eras have it. */
function headersOf(
  request: IncomingMessage,
  { route, query, repeated }: EdgeFacts,
): Pick<Incoming, 'headers' | 'repeated'> {
  const headers = request.headers as Incoming['headers'];
  if (route.legacySsePath !== 'message') return { headers, repeated };
  const named = { ...headers, 'mcp-session-id': sessionInQuery(query) };
  // A session id in both places is ambiguous, so the header is marked as repeated and refused.
  return headers['mcp-session-id'] === undefined
    ? { headers: named, repeated }
    : { headers: named, repeated: new Set([...repeated, 'mcp-session-id']) };
}

/** Builds the request. `acquireSlot` acquires a concurrency slot of the upstream. */
export function toIncoming(
  request: IncomingMessage,
  response: ServerResponse,
  facts: EdgeFacts,
  acquireSlot: Incoming['acquireSlot'],
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
    acquireSlot,
    // INVARIANT: a plain value. With an accessor of its own, each of these objects would get its own hidden
    // class, which slows down whatever reads it and keeps it from being collected young.
    signal: new ClientDisconnect(response),
    receivedAt: facts.receivedAt,
    startedMs: facts.startedMs,
  };
}
