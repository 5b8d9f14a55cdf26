// HTTP requests and responses as plain values: what a client sent, where its response goes, and what an
// upstream returned. No socket and no framework type occurs here, so everything behind it can be tested with
// literals.

import type { SessionTarget } from './admitted-request.js';
import type { TraceContext } from './trace-context.js';

type ResponseChanges = Partial<Pick<UpstreamResponse, 'status' | 'headers' | 'readBody' | 'next'>>;

/** A response with the given changes; everything else is delegated to the original. */
export function amendResponse(response: UpstreamResponse, changes: ResponseChanges): UpstreamResponse {
  return {
    kind: 'response',
    status: changes.status ?? response.status,
    headers: changes.headers ?? response.headers,
    readBody: changes.readBody ?? ((maxBytes, withinMs) => response.readBody(maxBytes, withinMs)),
    next: changes.next ?? (() => response.next()),
    openedSession: response.openedSession,
    reserveBuffer: (bytes) => response.reserveBuffer?.(bytes),
    release: () => response.release(),
    abort: () => response.abort(),
  };
}

/**
 * A body as pieces that are kept from one response to the next and written one after another, which avoids a
 * copy for each response.
 */
export type Pieces = readonly Uint8Array[];
export type Bytes = Uint8Array | Pieces;
export type Body = Bytes | string;

export function isInPieces(body: Body): body is Pieces {
  return Array.isArray(body);
}

export function sizeOfBytes(bytes: Bytes): number {
  if (!isInPieces(bytes)) return bytes.byteLength;
  let size = 0;
  for (const piece of bytes) size += piece.byteLength;
  return size;
}

export function joinPieces(body: Bytes): Uint8Array;
export function joinPieces(body: Body): Uint8Array | string;
export function joinPieces(body: Body): Uint8Array | string {
  if (!isInPieces(body)) return body;
  const joined = new Uint8Array(sizeOfBytes(body));
  let at = 0;
  for (const piece of body) {
    joined.set(piece, at);
    at += piece.byteLength;
  }
  return joined;
}

/**
 * Calls the listener when the signal is aborted, or at once if it already was: a client may leave while its
 * request waits, before anybody listens.
 */
export function onAbort(signal: DisconnectSignal, listener: () => void): void {
  if (signal.aborted) listener();
  else signal.addEventListener('abort', listener, { once: true });
}

/**
 * Signals that the client has left. Behaves as an AbortController at a small part of its cost: one is made
 * for every request, and few are ever used. Listeners are called once, in order, and then dropped.
 */
export class DisconnectController implements DisconnectSignal {
  #listeners: DisconnectListener[] | undefined;
  #hasLeft = false;

  get aborted(): boolean {
    return this.#hasLeft;
  }

  addEventListener(_type: 'abort', listener: DisconnectListener): void {
    if (this.aborted) return;
    if (this.#listeners === undefined) {
      this.#listeners = [];
      this.watch();
    }
    if (!this.#listeners.includes(listener)) this.#listeners.push(listener);
  }

  removeEventListener(_type: 'abort', listener: DisconnectListener): void {
    const listeners = this.#listeners ?? [];
    const at = listeners.indexOf(listener);
    if (at !== -1) listeners.splice(at, 1);
  }

  /** Calls every listener; a second call has no effect. */
  abort(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    const listeners = this.#listeners ?? [];
    // One at a time: a listener that is removed in the meantime is not called.
    for (let next = listeners.shift(); next !== undefined; next = listeners.shift()) notify(next);
  }

  /** Called before the first listener is added: before that nothing needs to be watched. */
  protected watch(): void {
    // Not needed where abort() is called directly.
  }
}

function notify(listener: DisconnectListener): void {
  if (typeof listener === 'function') listener();
  else listener.handleEvent();
}

/** Called when a client has left: a function, or an object, which saves a closure per exchange (DOM, EventListener). */
type DisconnectListener = (() => void) | { handleEvent(): void };

/** Reports that a client has left, with the interface of an AbortSignal. */
export type DisconnectSignal = {
  readonly aborted: boolean;
  addEventListener(type: 'abort', listener: DisconnectListener, options?: { readonly once: boolean }): void;
  removeEventListener(type: 'abort', listener: DisconnectListener): void;
};

/** The responses that are still due on a legacy SSE session: the POSTs of their requests ended long before. */
export type PendingResponses = {
  /** While true, no further request is sent for this session until a response arrives. */
  readonly isFull: boolean;
  /** Waits for the response with this id, up to `withinMs`; `release` is called once nothing is waited for. */
  add(id: string, withinMs: number, release?: () => void): void;
  /** The response has arrived or is no longer wanted. */
  drop(id: string): void;
  /** The ids of those that are waited for. */
  ids(): readonly string[];
  /** Stops waiting for all of them. */
  close(): void;
};

/** An aggregate, and the sealed id of the client's session there, which contains the ids of the backend sessions. */
export type AggregateRef = { readonly name: string; readonly session: string | undefined };

/**
 * Whose room a request takes: that of the limits, or of the reserve beside them, which is for messages that end or answer
 * what is in progress. Where every request in progress waits for such a message, the limits alone would make it wait for
 * ever.
 */
export type Capacity = 'regular' | 'reserved';

/** One HTTP request on an upstream's path, after the HTTP layer has checked Host, Origin, size and type. */
export type Incoming = {
  /** The decision id: a lower-case UUID, the same in the audit log, in errors and in headers. */
  readonly id: string;
  /** The decision id of the HTTP request that this is a part of: an element of a batch, or one of several backends. */
  readonly partOf?: string | undefined;
  /**
   * The trace of that request. `isPassedOn`: the message is the one whose `_meta` it was read from, so that it is not read
   * again.
   */
  readonly trace?: { readonly partOf: TraceContext; readonly isPassedOn: boolean } | undefined;
  /** The name of the upstream; on the path of an aggregate its name, until the message is assigned to a backend. */
  readonly upstream: string;
  /** The aggregate that the request came through. */
  readonly aggregate?: AggregateRef | undefined;
  /** The legacy SSE path below the upstream's own that was requested; absent on the upstream's own path. */
  readonly legacySsePath?: 'events' | 'message' | undefined;
  /** The path was requested with a slash behind it: a proof of possession names it so. */
  readonly hasTrailingSlash?: boolean | undefined;
  readonly httpMethod: 'POST' | 'GET' | 'DELETE';
  /** Lower-case names. A header that was sent more than once is listed in `repeated`. */
  readonly headers: { readonly [name: string]: string | undefined };
  readonly repeated: ReadonlySet<string>;
  /** The query string without `?`, or empty. Never logged. */
  readonly query: string;
  /** The bytes of the body, exactly as received. Empty for GET and DELETE. */
  readonly body: Uint8Array;
  /** The address of the peer, or the one that a trusted proxy names. For records only. */
  readonly remoteAddress: string;
  /** Thumbprint of the client certificate that the connection was authenticated with (`x5t#S256`, RFC 8705 §3.1). */
  readonly clientCertificate?: string | undefined;
  /**
   * The proof of possession was already verified, for this request or for the one that it belongs to. A proof
   * can be used only once, so it is not verified again.
   */
  readonly isProofUsed?: boolean;
  /**
   * Takes one of the concurrency slots of the upstream for as long as this request runs; `undefined` if none is
   * left for it. Called only after the caller is authenticated, so that unauthenticated clients cannot fill the
   * slots; `caller` identifies it, and may have no more than its quota of them. `backend` names the upstream if
   * the path is that of an aggregate. A second call for the same upstream returns what the first one took.
   */
  acquireSlot(caller: string, backend?: string): Capacity | undefined;
  /**
   * Keeps the slots of a request whose response comes elsewhere, after this one has ended. What it returns gives them
   * back. Absent for a part of another request, which holds them.
   */
  readonly keepSlots?: (() => () => void) | undefined;
  /**
   * Counts the memory of the body for this caller as long as the request runs; `undefined` if the caller holds too much.
   * Absent for a part of another request, which holds the body.
   */
  readonly holdBody?: ((caller: string) => Capacity | undefined) | undefined;
  /** Aborted when the client's connection ends before the response does. */
  readonly signal: DisconnectSignal;
  /** Time of arrival: milliseconds since the epoch, and a monotonic reading in milliseconds. */
  readonly receivedAt: number;
  readonly startedMs: number;
  /** Of the listener on which the request came; absent where it came on none. */
  readonly shutdown?: Shutdown | undefined;
};

/** How far a listener that closes has come; one object for all of its requests. */
export type Shutdown = {
  /** Connections are told to close with their next response. */
  readonly isAnnounced: boolean;
  /** What still runs is being ended: that an upstream does not answer now is not its failure. */
  readonly isCut: boolean;
  /** Aborted then. */
  readonly cut: DisconnectSignal;
};

/** Response headers by lower-case name. */
export type ResponseHeaders = { readonly [name: string]: string };

/** Where the response is written. Exactly one of `send` and `open` is called, once. */
export interface Outgoing {
  /** True once the client is gone or the response has ended. */
  readonly isClosed: boolean;
  /** Adds a header to the response, regardless of which code sends it. Must be called before the response begins. */
  addHeader(name: string, value: string): void;
  /** Sends a complete response. An empty body has no content type. */
  send(status: number, headers: ResponseHeaders, body: Body): void;
  /** Opens an event stream: headers now, body by `write`. */
  open(status: number, headers: ResponseHeaders): void;
  /** Writes to an open stream; resolves when more may be written (back-pressure). */
  write(bytes: Uint8Array | string): void | Promise<void>;
  end(): void;
  /** Closes the connection; what is not yet written is dropped. */
  disconnect(): void;
}

/** The client's end of a legacy SSE session. Only complete events are written. */
export type ClientEnd = Pick<Outgoing, 'isClosed' | 'write'> & {
  /** True while so much is unread that no further request is accepted for it. */
  readonly isLagging: boolean;
  /** Aborted when the stream of the session ends. */
  readonly signal: DisconnectSignal;
  /** The responses that arrive after the POST of their request has ended. */
  readonly pendingResponses: PendingResponses | undefined;
  /** Keeps the stream open while the gateway stops, until the returned function is called. */
  hold(): () => void;
};

/** Why there is no usable response of an upstream. `overloaded`: there is no space to buffer it. */
export type ForwardError =
  | 'overloaded'
  | 'upstream-unavailable'
  | 'upstream-timeout'
  | 'upstream-protocol'
  | 'upstream-credentials';

/** All bytes of a response, or why they are not available. */
export type ResponseBody = Bytes | 'too-large' | ForwardError;

/** A response of an upstream whose headers have arrived. Only one of `readBody` and `next` may be used. */
export type UpstreamResponse = {
  readonly kind: 'response';
  readonly status: number;
  /** By lower-case name. The values of a header that was sent twice are joined by a comma. */
  readonly headers: { readonly [name: string]: string | undefined };
  /** The session that an adapter opened for the handshake, in place of the upstream. */
  readonly openedSession?: SessionTarget | undefined;
  /**
   * All bytes, synchronously if they are already there. `too-large` past `maxBytes`, an error past `withinMs`
   * milliseconds (the socket is then closed), or why the body ended early.
   */
  readBody(maxBytes: number, withinMs: number): ResponseBody | Promise<ResponseBody>;
  /** The next bytes; `undefined` at the end, an error if the body ended early. */
  next(): Uint8Array | undefined | ForwardError | Promise<Uint8Array | undefined | ForwardError>;
  /**
   * Reserves buffer space for this many bytes of the response in total, in place of what was reserved before;
   * waits if there is none. `release` and `abort` give back the reservation and the space of the complete
   * body.
   */
  reserveBuffer?(bytes: number): undefined | Promise<'reserved' | 'overloaded'>;
  /** Nothing more is needed: the little that is left is dropped, and the socket is used again. */
  release(): void;
  /** Abandons the request: the socket is closed, which is how the 2026 era cancels. */
  abort(): void;
};

/** The opened legacy SSE stream of an upstream: its message endpoint, and the events that follow. */
export type LegacySseOutcome =
  | {
      readonly kind: 'opened';
      readonly messageEndpoint: string;
      readonly response: UpstreamResponse;
    }
  | { readonly kind: 'error'; readonly reason: ForwardError; readonly detail?: string | undefined };

/** `detail`: one clause for the operator that says what was wrong, escaped and cut; never sent to a client. */
export type ForwardOutcome =
  | UpstreamResponse
  | {
      readonly kind: 'error';
      readonly reason: ForwardError;
      readonly detail?: string | undefined;
      /** It is known that nothing was sent; `no-connection`: although it was tried. */
      readonly isUnsent?: boolean | 'no-connection' | undefined;
    };

/**
 * Why nothing was sent. `unknown-session`: no way leads to the session any more. `asked-elsewhere`: the message concerns a request that another replica handles or
 * handled. `store-unavailable`: the replicas could not be notified. `overloaded`: the caller has too much in
 * flight.
 */
type UnsentError = 'asked-elsewhere' | 'store-unavailable' | 'overloaded' | 'unknown-session';

/** The outcome of a message that may concern a request of another replica, or that was not sent at all. */
export type RoutedOutcome =
  | ForwardOutcome
  | { readonly kind: 'error'; readonly reason: UnsentError; readonly detail?: undefined; readonly isUnsent: true };
