// Turns undici's response callbacks into an upstream response that is read by pulling. Never buffers beyond a
// cap, never decompresses, never follows a redirect. What is buffered until it is complete is bounded for all
// upstreams together, and each may use a fraction of it.
// Back-pressure: a slow reader pauses the socket (undici DispatchController).

import type { Dispatcher } from 'undici';
import type { DisconnectSignal, ForwardError, ForwardOutcome, UpstreamResponse } from '../protocol/transport.js';
import { createRate } from '../state/bounds.js';
import { systemErrorCode } from '../text/wording.js';

/** Chunks and bytes that may be buffered before the socket is paused. */
const MAX_WAITING_CHUNKS = 16;
const MAX_WAITING_BYTES = 256 * 1024;
/** Bytes, and milliseconds, that a released response may take to end before its socket is closed. */
const MAX_RELEASED_BYTES = 64 * 1024;
const RELEASE_WITHIN_MS = 1_000;
/** For scheduling a microtask; queueMicrotask would create an AsyncResource for each. */
const MICROTASK = Promise.resolve();
/** One for all: thousands of exchanges may be given up together, and nobody reads its stack. */
const GIVEN_UP = new Error('exchange given up');
const NO_HEADERS: UpstreamResponse['headers'] = Object.freeze(Object.create(null));

type ReadChunk = Uint8Array | undefined | ForwardError;
type BodyOutcome = Uint8Array | 'too-large' | ForwardError;

/** Opens a reservation for a response that is too long to be buffered without one. */
export type OpenReservation = () => BufferReservation;

/** Bytes that a response may buffer without a reservation. */
const FREE_BYTES = 64 * 1024;
/** The smallest reservation for a response of unknown length. */
const FIRST_RESERVATION_BYTES = 256 * 1024;

/** A pending read of the complete body. `reservedBytes`: how far it may grow without reserving more. */
type PendingBody = {
  readonly maxBytes: number;
  reservedBytes: number;
  isWaiting: boolean;
  size: number;
  readonly done: (value: BodyOutcome) => void;
};

/**
 * Reads one response from undici. `settle` is called once: with the response when its headers have arrived,
 * or with the error. `signal` aborts the exchange at any time until it has ended.
 */
export function createResponseReader(
  settle: (outcome: ForwardOutcome) => void,
  signal?: DisconnectSignal,
  openReservation?: OpenReservation,
): Dispatcher.DispatchHandler {
  return new ResponseReader(settle, signal, openReservation);
}

/** Both undici's handler and the response: one object per exchange. */
class ResponseReader implements Dispatcher.DispatchHandler, UpstreamResponse {
  readonly kind = 'response';
  status = 0;
  headers: UpstreamResponse['headers'] = NO_HEADERS;
  readonly #settle: (outcome: ForwardOutcome) => void;
  readonly #signal: DisconnectSignal | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #settled = false;
  #end: 'open' | 'done' | ForwardError = 'open';
  #chunks: Uint8Array[] = [];
  #pendingRead: ((value: ReadChunk) => void) | undefined;
  /** Bytes discarded since `release`; negative before it. */
  #releasedBytes = -1;
  #pendingBody: PendingBody | undefined;
  readonly #openReservation: OpenReservation | undefined;
  #reservation: BufferReservation | undefined;

  constructor(
    settle: (outcome: ForwardOutcome) => void,
    signal: DisconnectSignal | undefined,
    openReservation: OpenReservation | undefined,
  ) {
    this.#settle = settle;
    this.#signal = signal;
    this.#openReservation = openReservation;
  }

  onRequestStart(started: Dispatcher.DispatchController): void {
    this.#controller = started;
    if (this.#signal !== undefined) this.#addAbortListener(this.#signal);
    if (this.#end !== 'open') started.abort(GIVEN_UP);
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
  ): void {
    if (status < 200) return;
    this.#settled = true;
    this.status = status;
    this.headers = flattenHeaders(headers);
    this.#settle(this);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (this.#releasedBytes >= 0) {
      this.#discard(chunk);
      return;
    }
    this.#append(chunk);
    // Waits a microtask, so that further chunks of the same socket read are delivered with the first.
    if (this.#pendingRead !== undefined && this.#chunks.length === 1)
      void MICROTASK.then(() => this.#deliverBuffered());
    if (this.#pendingBody === undefined && this.#isFull()) this.#controller?.pause();
  }

  onResponseEnd(): void {
    this.#removeAbortListener();
    this.#finish('done');
  }

  onResponseError(_controller: unknown, error: unknown): void {
    this.#removeAbortListener();
    const reason = forwardErrorOf(error);
    if (!this.#settled) {
      this.#settled = true;
      // A request is announced when its connection is there and it is about to be written.
      const isUnsent = this.#controller === undefined ? 'no-connection' : undefined;
      this.#settle({ kind: 'error', reason, detail: describeError(reason, error), isUnsent });
    }
    this.#finish(reason);
  }

  readBody(maxBytes: number, withinMs: number): BodyOutcome | Promise<BodyOutcome> {
    // A short response arrived together with its headers, so there is nothing to wait for.
    if (this.#end !== 'open') return this.#bodyOf(maxBytes);
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#fail('upstream-timeout'), withinMs);
      const done = (value: BodyOutcome): void => {
        clearTimeout(timer);
        resolve(value);
      };
      const size = this.#chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);
      const pendingBody = { maxBytes, reservedBytes: FREE_BYTES, isWaiting: false, size, done };
      this.#pendingBody = pendingBody;
      this.#controller?.resume();
      if (size > maxBytes) this.#refuse(pendingBody, 'too-large');
      else if (size > pendingBody.reservedBytes) this.#reserveMore(pendingBody);
    });
  }

  next(): ReadChunk | Promise<ReadChunk> {
    const taken = this.#takeBuffered();
    if (taken !== undefined) return taken;
    if (this.#end !== 'open') return this.#end === 'done' ? undefined : this.#end;
    return new Promise((resolve) => {
      this.#pendingRead = resolve;
    });
  }

  reserveBuffer(bytes: number): undefined | Promise<ReservationOutcome> {
    if (this.#reservation === undefined && bytes <= FREE_BYTES) return undefined;
    this.#reservation ??= this.#openReservation?.();
    return this.#reservation?.reserve(bytes <= FREE_BYTES ? 0 : bytes);
  }

  /** Reads and drops the small remainder so that the socket can be reused; closes the socket beyond a bound. */
  release(): void {
    this.#reservation?.release();
    if (this.#end !== 'open') return;
    this.#chunks = [];
    this.#releasedBytes = 0;
    this.#controller?.resume();
    setTimeout(() => this.abort(), RELEASE_WITHIN_MS).unref();
  }

  abort(): void {
    this.#reservation?.release();
    this.#fail('upstream-unavailable');
  }

  /** Called when the client has left. The object itself listens: a closure per exchange would outlive it. */
  handleEvent(): void {
    this.#controller?.abort(GIVEN_UP);
  }

  #addAbortListener(signal: DisconnectSignal): void {
    if (signal.aborted) this.handleEvent();
    else signal.addEventListener('abort', this, { once: true });
  }

  #removeAbortListener(): void {
    this.#signal?.removeEventListener('abort', this);
  }

  #finish(end: 'done' | ForwardError): void {
    if (this.#end !== 'open') return;
    this.#end = end;
    if (this.#pendingBody !== undefined) this.#finishBody();
    else if (this.#pendingRead !== undefined && this.#chunks.length === 0) this.#deliver(this.#endOfRead());
  }

  #endOfRead(): ReadChunk {
    return this.#end === 'done' || this.#end === 'open' ? undefined : this.#end;
  }

  #deliver(value: ReadChunk): void {
    const pendingRead = this.#pendingRead;
    this.#pendingRead = undefined;
    pendingRead?.(value);
  }

  #finishBody(): void {
    const pendingBody = this.#pendingBody;
    this.#pendingBody = undefined;
    if (pendingBody === undefined) return;
    const body = this.#bodyOf(pendingBody.maxBytes);
    if (typeof body === 'string') this.#reservation?.release();
    pendingBody.done(body);
  }

  /** The body, once the response has ended. */
  #bodyOf(maxBytes: number): BodyOutcome {
    if (this.#end !== 'done') return this.#end === 'open' ? 'upstream-protocol' : this.#end;
    const bytes = joinChunks(this.#chunks);
    return bytes.byteLength > maxBytes ? 'too-large' : bytes;
  }

  #append(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    const pendingBody = this.#pendingBody;
    if (pendingBody === undefined) return;
    pendingBody.size += chunk.byteLength;
    if (pendingBody.size > pendingBody.maxBytes) this.#refuse(pendingBody, 'too-large');
    else if (pendingBody.size > pendingBody.reservedBytes && !pendingBody.isWaiting) this.#reserveMore(pendingBody);
  }

  /** Reserves the declared length if it is known, otherwise twice what has arrived. */
  #reserveMore(pendingBody: PendingBody): void {
    const { maxBytes, size } = pendingBody;
    const declared = Number(this.headers['content-length']);
    const reservationBytes = size <= declared ? declared : Math.max(2 * size, FIRST_RESERVATION_BYTES);
    pendingBody.reservedBytes = Math.min(reservationBytes, maxBytes);
    const reserved = this.reserveBuffer(pendingBody.reservedBytes);
    if (reserved === undefined) return;
    pendingBody.isWaiting = true;
    this.#controller?.pause();
    void reserved.then((outcome) => {
      pendingBody.isWaiting = false;
      if (this.#pendingBody !== pendingBody) return;
      if (outcome === 'overloaded') this.#refuse(pendingBody, outcome);
      else if (pendingBody.size > pendingBody.reservedBytes) this.#reserveMore(pendingBody);
      else this.#controller?.resume();
    });
  }

  #refuse({ done }: PendingBody, error: 'too-large' | 'overloaded'): void {
    this.#pendingBody = undefined;
    this.abort();
    done(error);
  }

  #isFull(): boolean {
    if (this.#chunks.length >= MAX_WAITING_CHUNKS) return true;
    let bytes = 0;
    for (const chunk of this.#chunks) bytes += chunk.byteLength;
    return bytes >= MAX_WAITING_BYTES;
  }

  #discard(chunk: Uint8Array): void {
    this.#releasedBytes += chunk.byteLength;
    if (this.#releasedBytes > MAX_RELEASED_BYTES) this.abort();
  }

  /** Closes the socket and resolves pending reads with the reason. */
  #fail(error: ForwardError): void {
    if (this.#end !== 'open') return;
    this.#end = error;
    this.#controller?.abort(GIVEN_UP);
    this.#deliver(error);
    this.#finishBody();
  }

  /** Everything buffered, joined: what arrived in one socket read is returned as one chunk. */
  #takeBuffered(): Uint8Array | undefined {
    if (this.#chunks.length === 0) return undefined;
    const taken = this.#chunks;
    this.#chunks = [];
    this.#controller?.resume();
    return joinChunks(taken);
  }

  #deliverBuffered(): void {
    const pendingRead = this.#pendingRead;
    if (pendingRead === undefined || this.#chunks.length === 0) return;
    // Taking the chunks resumes the socket, which may end the response; the next read reports that.
    this.#pendingRead = undefined;
    pendingRead(this.#takeBuffered());
  }
}

/** Maps undici's errors to a reason; unknown errors are `upstream-unavailable`. */
export function forwardErrorOf(error: unknown): ForwardError {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT' || code === 'UND_ERR_CONNECT_TIMEOUT') {
    return 'upstream-timeout';
  }
  if (code === 'UND_ERR_HEADERS_OVERFLOW' || (typeof code === 'string' && code.startsWith('HPE_')))
    return 'upstream-protocol';
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return 'upstream-protocol';
  return 'upstream-unavailable';
}

/** What was wrong with the HTTP of a response, by the code of the error. */
function describeError(reason: ForwardError, error: unknown): string | undefined {
  const code = systemErrorCode(error);
  return reason === 'upstream-protocol' ? `invalid HTTP (${code ?? 'no code'})` : undefined;
}

function flattenHeaders(headers: Record<string, string | string[] | undefined>): UpstreamResponse['headers'] {
  const flat: { [name: string]: string | undefined } = Object.create(null);
  for (const name of Object.keys(headers)) {
    const value = headers[name];
    flat[name.toLowerCase()] = Array.isArray(value) ? value.join(',') : value;
  }
  return flat;
}

function joinChunks(chunks: readonly Uint8Array[]): Uint8Array {
  const [first] = chunks;
  if (chunks.length === 1 && first !== undefined) return first;
  let size = 0;
  for (const chunk of chunks) size += chunk.byteLength;
  const joined = Buffer.allocUnsafe(size);
  let offset = 0;
  for (const chunk of chunks) {
    joined.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return joined;
}

/** The outcome of waiting for quota. */
export type ReservationOutcome = 'reserved' | 'overloaded';

/** The reservation of one response, or of one event that is being assembled. */
export type BufferReservation = {
  /** Sets the bytes held in total, more or fewer than before; waits if an increase exceeds the quota. */
  reserve(bytes: number): undefined | Promise<ReservationOutcome>;
  /** Releases everything, and ends a wait with `overloaded`. */
  release(): void;
};

export type ResponseBufferQuota = {
  openReservation(upstream: string): BufferReservation;
  /** Bytes held at present. */
  readonly heldBytes: number;
};

type BufferQuotaBounds = {
  readonly maxBytes?: number;
  /** One upstream may hold the total divided by this. */
  readonly quotaDivisor?: number;
  readonly maxWaitMs?: number;
  /** The rate of one upstream, and its burst. */
  readonly bytesPerSecond?: number;
  readonly burstBytes?: number;
  /** Bytes of each response that do not count against the rate. */
  readonly unmeteredBytes?: number;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
};

const MAX_BUFFERED_BYTES = 128 * 1024 * 1024;
const QUOTA_DIVISOR = 4;
const MAX_WAIT_MS = 5_000;
/** Two responses of the default cap, which take the event loop 30 to 60 ms each. */
const BYTES_PER_SECOND = 16 * 1024 * 1024;
const BURST_BYTES = 1024 * 1024;
const UNMETERED_BYTES = 256 * 1024;
/** Interval at which reservations that wait for their upstream's rate are retried. Milliseconds. */
const RETRY_INTERVAL_MS = 20;

type Reservation = {
  readonly upstream: string;
  bytes: number;
  waiting: { readonly requestedBytes: number; readonly resolve: (outcome: ReservationOutcome) => void } | undefined;
};

/**
 * Bounds the bytes of responses that are buffered until they are complete: one total for all upstreams, of which each
 * upstream may use a fraction. A response that exceeds the quota waits, and is refused after a time limit. A waiting
 * response that already holds bytes cannot block others forever: the oldest may exceed the bound, up to the cap of one
 * response. Because reading, joining and decoding long responses blocks the event loop, each upstream also has a byte
 * rate.
 */
export function createResponseBufferQuota({
  maxBytes = MAX_BUFFERED_BYTES,
  quotaDivisor = QUOTA_DIVISOR,
  maxWaitMs = MAX_WAIT_MS,
  bytesPerSecond = BYTES_PER_SECOND,
  burstBytes = BURST_BYTES,
  unmeteredBytes = UNMETERED_BYTES,
  now = () => performance.now(),
}: BufferQuotaBounds = {}): ResponseBufferQuota {
  const maxOwnBytes = maxBytes / quotaDivisor;
  const rate = createRate({ burst: burstBytes, perSecond: bytesPerSecond }, now);
  let isRetryScheduled = false;
  /** Reservations that hold bytes, oldest first. */
  const holders = new Set<Reservation>();
  /** Waiting reservations by upstream, in the order in which the upstreams are served. */
  const queues = new Map<string, Set<Reservation>>();
  const heldBy = new Map<string, number>();
  let heldBytes = 0;

  function oldestOf(upstream: string): Reservation | undefined {
    for (const reservation of holders) if (reservation.upstream === upstream) return reservation;
    return undefined;
  }

  const pacedBytes = (bytes: number): number => Math.max(0, bytes - unmeteredBytes);

  function fits(reservation: Reservation, requestedBytes: number): boolean {
    const { upstream } = reservation;
    if (pacedBytes(requestedBytes) > 0 && rate.left(upstream) <= 0) return false;
    const more = requestedBytes - reservation.bytes;
    const upstreamBytes = heldBy.get(upstream) ?? 0;
    const [oldest] = holders;
    if (heldBytes + more > maxBytes && oldest !== undefined && oldest !== reservation) return false;
    return upstreamBytes + more <= maxOwnBytes || upstreamBytes === 0 || oldestOf(upstream) === reservation;
  }

  function set(reservation: Reservation, bytes: number): void {
    const { upstream } = reservation;
    const upstreamBytes = (heldBy.get(upstream) ?? 0) + bytes - reservation.bytes;
    if (upstreamBytes > 0) heldBy.set(upstream, upstreamBytes);
    else heldBy.delete(upstream);
    heldBytes += bytes - reservation.bytes;
    const paced = pacedBytes(bytes) - pacedBytes(reservation.bytes);
    if (paced > 0) rate.spend(paced, upstream);
    reservation.bytes = bytes;
    if (bytes > 0) holders.add(reservation);
    else holders.delete(reservation);
  }

  /** Serves upstreams round-robin and, within one, the first that fits. */
  function serve(): void {
    for (let next = nextThatFits(); next !== undefined; next = nextThatFits()) {
      const { upstream, waiting } = next;
      const queue = queues.get(upstream);
      set(next, waiting?.requestedBytes ?? 0);
      dequeue(next);
      waiting?.resolve('reserved');
      // This upstream is served last from now on.
      if (queues.delete(upstream) && queue !== undefined) queues.set(upstream, queue);
    }
  }

  function nextThatFits(): Reservation | undefined {
    for (const queue of queues.values())
      for (const reservation of queue)
        if (reservation.waiting !== undefined && fits(reservation, reservation.waiting.requestedBytes))
          return reservation;
    return undefined;
  }

  /** Only time restores an upstream's rate, so waiting reservations are retried at intervals. */
  function scheduleRetry(): void {
    if (isRetryScheduled) return;
    isRetryScheduled = true;
    setTimeout(() => {
      isRetryScheduled = false;
      serve();
      if (queues.size > 0) scheduleRetry();
    }, RETRY_INTERVAL_MS);
  }

  function dequeue(reservation: Reservation): void {
    reservation.waiting = undefined;
    const queue = queues.get(reservation.upstream);
    queue?.delete(reservation);
    if (queue?.size === 0) queues.delete(reservation.upstream);
  }

  function wait(reservation: Reservation, requestedBytes: number): Promise<ReservationOutcome> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        dequeue(reservation);
        resolve('overloaded');
      }, maxWaitMs);
      reservation.waiting = {
        requestedBytes,
        resolve(outcome) {
          clearTimeout(timer);
          resolve(outcome);
        },
      };
      const queue = queues.get(reservation.upstream);
      if (queue === undefined) queues.set(reservation.upstream, new Set([reservation]));
      else queue.add(reservation);
      scheduleRetry();
    });
  }

  return {
    openReservation(upstream) {
      const reservation: Reservation = { upstream, bytes: 0, waiting: undefined };
      return {
        reserve(bytes) {
          const isMore = bytes > reservation.bytes;
          if (isMore && !fits(reservation, bytes)) return wait(reservation, bytes);
          set(reservation, bytes);
          if (!isMore && queues.size > 0) serve();
          return undefined;
        },
        release() {
          const { waiting } = reservation;
          dequeue(reservation);
          set(reservation, 0);
          waiting?.resolve('overloaded');
          if (queues.size > 0) serve();
        },
      };
    },
    get heldBytes() {
      return heldBytes;
    },
  };
}
