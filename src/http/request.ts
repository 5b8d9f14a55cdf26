// Turns a node:http request into plain values: its body, its peer, and whether its client is still there. Bodies are
// read before authentication, under a limit for each and one for all unfinished bodies; if together they exceed it, the
// oldest is dropped, which is the slowest to arrive (docs/reference/attacks.md case 10). A header names the peer's
// address only if a trusted proxy sent it, and never a client certificate, which only the connection itself can prove
// (RFC 8705 §3 and §6.5). Also counts the requests that run at each upstream, in total and of one caller, so that no
// caller takes all concurrency slots from the others, with a reserve beside the limits for what ends or answers a request
// in progress (docs/reference/limits.md#what-one-caller-may-use, `limits.concurrency` and
// `limits.concurrencyPerCaller`).

import { hash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import ipaddr from 'ipaddr.js';
import { type Capacity, DisconnectController, type Incoming, type Shutdown } from '../protocol/transport.js';
import { sessionInQuery } from '../protocol/versions/legacy-sse.js';
import type { ConcurrencyLimit, EdgeRoute, EdgeTables } from './request-checks.js';

/** Why a body was not read: it exceeded its limit, the client disconnected, or others needed the memory. */
export type UnreadBody = 'too-large' | 'aborted' | 'crowded-out';

/** A complete body for as long as its request runs. */
type HeldBody = {
  /** Counts it as one of this caller, who is now known; `undefined` if the caller holds too much already. */
  assign(caller: string): Capacity | undefined;
  release(): void;
};

type BodyReader = {
  /** Reads a body of at most `maxBytes`, or says why it was not read to its end. Never rejects. */
  read(request: IncomingMessage, maxBytes: number): Promise<Uint8Array | UnreadBody>;
  /** Counts a body that was read until it is released. */
  hold(body: Uint8Array): HeldBody;
};

/** What request bodies may hold together: those that are still read, and those whose requests run. In bytes. */
type BodyBudget = { readonly maxTotalBytes: number; readonly maxCallerBytes: number };

/** Smaller bodies are not counted once they were read: the bounds on concurrency are enough. */
const MIN_HELD_BYTES = 64 * 1024;
/**
 * Joining and decoding a larger body takes milliseconds. Those that end together do so in a turn of the loop each, so that a
 * caller with many connections does not block it.
 */
const LARGE_BODY_BYTES = 1024 * 1024;
/** Beside its share, a caller may hold this fraction of it for messages that end or answer a request in progress. */
const BODY_RESERVE = 1 / 4;
const NOT_HELD: HeldBody = { assign: () => 'regular', release: () => undefined };

/**
 * Creates a reader for one budget of memory. Where bodies exceed it together, those that are still read are dropped,
 * the oldest first; a caller who holds a share of it gets no more but the reserve, except a single body of any size.
 */
export function createBodyReader({ maxTotalBytes, maxCallerBytes }: BodyBudget): BodyReader {
  /** In the order in which they were begun. */
  const unfinished = new Set<(why: UnreadBody) => void>();
  const shares = { regular: createShare(maxCallerBytes), reserved: createShare(maxCallerBytes * BODY_RESERVE) };
  let totalBytes = 0;
  let lastTurn = Promise.resolve();

  function waitForTurn(): Promise<void> {
    lastTurn = lastTurn.then(() => new Promise((resolve) => void setImmediate(resolve)));
    return lastTurn;
  }

  function takeShare(caller: string, bytes: number): Capacity | undefined {
    if (shares.regular.take(caller, bytes)) return 'regular';
    return shares.reserved.take(caller, bytes) ? 'reserved' : undefined;
  }

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
        let isComplete = false;

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
        function onEnd(): void {
          if (!isFinished) finish(joinChunks(chunks, bytes));
        }

        function onGone(): void {
          if (!isComplete) finish('aborted');
        }

        request.on('end', () => {
          isComplete = true;
          if (bytes < LARGE_BODY_BYTES) onEnd();
          else void waitForTurn().then(onEnd);
        });
        request.on('error', onGone);
        request.on('close', onGone);
      }),
    hold({ byteLength: bytes }) {
      if (bytes < MIN_HELD_BYTES) return NOT_HELD;
      totalBytes += bytes;
      dropOldest();
      let share: Capacity | undefined;
      let owner = '';
      return {
        assign(caller) {
          owner = caller;
          share ??= takeShare(caller, bytes);
          return share;
        },
        release() {
          totalBytes -= bytes;
          if (share !== undefined) shares[share].give(owner, bytes);
        },
      };
    },
  };
}

/** Bytes that each caller may hold; a single body may be of any size. */
function createShare(maxBytes: number) {
  const heldBy = new Map<string, number>();
  return {
    take(caller: string, bytes: number): boolean {
      const held = heldBy.get(caller) ?? 0;
      if (held > 0 && held + bytes > maxBytes) return false;
      heldBy.set(caller, held + bytes);
      return true;
    },
    give(caller: string, bytes: number): void {
      const left = (heldBy.get(caller) ?? bytes) - bytes;
      if (left > 0) heldBy.set(caller, left);
      else heldBy.delete(caller);
    },
  };
}

function joinChunks(chunks: readonly Uint8Array[], bytes: number): Uint8Array {
  const [first] = chunks;
  return chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks, bytes);
}

/** How long requests of disconnected clients are aborted without a pause. Milliseconds of the event loop. */
const LEAVE_SLICE_MS = 2;
/** More aborts than fit into a slice. */
const MAX_LEAVES_A_TURN = 64;
/** The pause between two turns, so that aborts take no more than a third of the event loop. Milliseconds. */
const LEAVE_PAUSE_MS = 4;

/**
 * Aborts the requests of clients that have disconnected: at once or, if thousands disconnect together, in turns, between
 * which the event loop serves other events. Most of what a request holds is released in promises that settle after its
 * abort. Each abort has an immediate of its own, so that they settle before the next one and their time counts too.
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

/** Builds the request, with its concurrency slots of the upstream; `holdBody` holds memory for the body. */
export function toIncoming(
  request: IncomingMessage,
  response: ServerResponse,
  facts: EdgeFacts,
  slots: Pick<ConcurrencySlots, 'acquire' | 'keep'>,
  holdBody?: Incoming['holdBody'],
  shutdown?: Shutdown,
): Incoming {
  const { headers, repeated } = headersOf(request, facts);
  return {
    id: facts.id,
    upstream: facts.route.upstream,
    httpMethod: request.method === 'GET' ? 'GET' : request.method === 'DELETE' ? 'DELETE' : 'POST',
    legacySsePath: facts.route.legacySsePath,
    hasTrailingSlash: facts.route.hasTrailingSlash,
    headers,
    repeated,
    query: facts.query,
    body: facts.body,
    remoteAddress: facts.remoteAddress,
    clientCertificate: certificateOf(request.socket),
    acquireSlot: slots.acquire,
    keepSlots: slots.keep,
    holdBody,
    // INVARIANT: a plain value. With an accessor of its own, each of these objects would get its own hidden
    // class, which slows down whatever reads it and keeps it from being collected young.
    signal: new ClientDisconnect(response),
    receivedAt: facts.receivedAt,
    startedMs: facts.startedMs,
    shutdown,
  };
}

/** The concurrency slots that one request holds: at most one of each upstream it involves, all released together. */
type ConcurrencySlots = {
  /** Acquires a slot of the path's own upstream or of a backend; `undefined` if none is free for this caller. */
  acquire(caller: string, backend?: string): Capacity | undefined;
  /** Leaves them to whoever calls what it returns. */
  keep(): () => void;
  release(): void;
};

/** Slots of one upstream in use. No caller's count is zero. */
type SlotsInUse = { total: number; readonly byCaller: Map<string, number> };

/** The requests that run at one upstream, by the capacity that they take. */
type Running = { readonly [capacity in Capacity]: SlotsInUse };

type HeldSlot = { readonly running: Running; readonly capacity: Capacity; readonly caller: string };

/** Counts running requests by upstream, whatever path they came on, and by caller within each upstream. */
export function createConcurrencyLimits(): { forOne(route: EdgeRoute): ConcurrencySlots } {
  const runningAt = new Map<string, Running>();

  function runningOf(upstream: string): Running {
    const known = runningAt.get(upstream);
    if (known !== undefined) return known;
    const running = { regular: noSlots(), reserved: noSlots() };
    runningAt.set(upstream, running);
    return running;
  }

  return {
    forOne(route) {
      const held: HeldSlot[] = [];
      return {
        acquire(caller, upstream = route.upstream) {
          const running = runningOf(upstream);
          for (const one of held) if (one.running === running) return one.capacity;
          const capacity = take(running, caller, route.backends?.get(upstream) ?? route);
          if (capacity !== undefined) held.push({ running, capacity, caller });
          return capacity;
        },
        keep() {
          const kept = held.splice(0);
          return () => giveAllBack(kept);
        },
        release: () => giveAllBack(held),
      };
    },
  };
}

function noSlots(): SlotsInUse {
  return { total: 0, byCaller: new Map() };
}

function take({ regular, reserved }: Running, caller: string, limit: ConcurrencyLimit): Capacity | undefined {
  if (takeOf(regular, caller, limit)) return 'regular';
  return takeOf(reserved, caller, reserveOf(limit)) ? 'reserved' : undefined;
}

/** The least that a caller has of the reserve. */
const MIN_RESERVED_PER_CALLER = 8;

/**
 * The reserve of a limit: each caller may send at once as many messages that end or answer a request as it may have
 * requests in progress. All together have at least twice as many, so that no caller takes all of it from the others.
 */
function reserveOf({ concurrency, concurrencyPerCaller }: ConcurrencyLimit): ConcurrencyLimit {
  if (concurrency === 0) return { concurrency, concurrencyPerCaller };
  const perCaller = Math.max(concurrencyPerCaller, MIN_RESERVED_PER_CALLER);
  return { concurrency: Math.max(concurrency, 2 * perCaller), concurrencyPerCaller: perCaller };
}

function takeOf(used: SlotsInUse, caller: string, limit: ConcurrencyLimit): boolean {
  const own = used.byCaller.get(caller) ?? 0;
  if (used.total >= limit.concurrency || own >= limit.concurrencyPerCaller) return false;
  used.total += 1;
  used.byCaller.set(caller, own + 1);
  return true;
}

function giveAllBack(held: HeldSlot[]): void {
  for (const { running, capacity, caller } of held.splice(0)) giveBack(running[capacity], caller);
}

function giveBack(used: SlotsInUse, caller: string): void {
  const own = (used.byCaller.get(caller) ?? 1) - 1;
  used.total -= 1;
  if (own === 0) used.byCaller.delete(caller);
  else used.byCaller.set(caller, own);
}

/** How many trusted proxies in a row are skipped. */
const MAX_HOPS = 32;

/**
 * Follows `X-Forwarded-For` from its end as long as the proxies that wrote it are trusted. The first address
 * that is not trusted, or is not valid, ends it. `trusted` holds addresses and CIDR ranges.
 */
export function createAddressOf(trusted: readonly string[]): EdgeTables['addressOf'] {
  if (trusted.length === 0) return (peer) => peer;
  const ranges = trusted.map((each) =>
    each.includes('/') ? ipaddr.parseCIDR(each) : hostRangeOf(ipaddr.process(each)),
  );
  const isTrusted = (address: ipaddr.IPv4 | ipaddr.IPv6): boolean =>
    ranges.some(([base, bits]) => base.kind() === address.kind() && address.match(base, bits));

  return (peer, forwardedFor) => {
    const named = (forwardedFor ?? '').split(',');
    let address = peer;
    for (let hop = 0; hop < MAX_HOPS; hop += 1) {
      if (!ipaddr.isValid(address) || !isTrusted(ipaddr.process(address))) return address;
      const next = named.pop()?.trim() ?? '';
      if (!ipaddr.isValid(next)) return address;
      address = ipaddr.process(next).toString();
    }
    return address;
  };
}

function hostRangeOf(address: ipaddr.IPv4 | ipaddr.IPv6): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}

const clientCertificates = new WeakMap<Socket, { readonly thumbprint: string | undefined }>();

/** Discards the client certificate of this connection, because the trusted authorities were replaced. */
export function discardCertificate(socket: Socket): void {
  clientCertificates.set(socket, { thumbprint: undefined });
}

/**
 * The SHA-256 thumbprint (`x5t#S256`) of the client certificate of this connection, if it was signed by a
 * configured authority; `undefined` for any other connection. The TLS handshake has proved possession of its
 * key.
 */
function certificateOf(socket: Socket): string | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  const known = clientCertificates.get(socket);
  if (known !== undefined) return known.thumbprint;
  const raw = socket.authorized ? socket.getPeerX509Certificate()?.raw : undefined;
  const thumbprint = raw === undefined ? undefined : hash('sha256', raw, 'base64url');
  clientCertificates.set(socket, { thumbprint });
  return thumbprint;
}
