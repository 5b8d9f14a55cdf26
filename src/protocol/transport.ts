// The HTTP facts of one exchange, as plain values: what came in and where the answer goes.
// No socket and no framework type crosses this line, so everything behind it can be tested with literals.

// An upstream's answer told in another way: what is not told otherwise is asked of the answer itself.

type Amendments = Partial<Pick<UpstreamResponse, 'status' | 'headers' | 'readBody' | 'next'>>;

/** The same answer but for what is given. */
export function amendResponse(response: UpstreamResponse, changes: Amendments): UpstreamResponse {
  return {
    kind: 'answer',
    status: changes.status ?? response.status,
    headers: changes.headers ?? response.headers,
    readBody: changes.readBody ?? ((maxBytes, withinMs) => response.readBody(maxBytes, withinMs)),
    next: changes.next ?? (() => response.next()),
    hold: (bytes) => response.hold?.(bytes),
    release: () => response.release(),
    abort: () => response.abort(),
  };
}

// The body of a whole answer: in one piece, or in pieces that are kept from one answer to the next and written
// one behind the other, so that nothing is copied for each.

export type Pieces = readonly Uint8Array[];
export type Bytes = Uint8Array | Pieces;
export type Body = Bytes | string;

/** True for a body in pieces. */
export function isInPieces(body: Body): body is Pieces {
  return Array.isArray(body);
}

/** How many bytes they are. */
export function sizeOfBytes(bytes: Bytes): number {
  if (!isInPieces(bytes)) return bytes.byteLength;
  let size = 0;
  for (const piece of bytes) size += piece.byteLength;
  return size;
}

/** The body in one piece. */
export function inOnePiece(body: Bytes): Uint8Array;
export function inOnePiece(body: Body): Uint8Array | string;
export function inOnePiece(body: Body): Uint8Array | string {
  if (!isInPieces(body)) return body;
  const joined = new Uint8Array(sizeOfBytes(body));
  let at = 0;
  for (const piece of body) {
    joined.set(piece, at);
    at += piece.byteLength;
  }
  return joined;
}

// Tells that whoever waited for something waits no more. As an AbortController would, at a small part of its
// cost: one is made for every exchange, and few are ever asked. Decides nothing.

/** The sign, and the way to give it. Listeners are told once, in order, and forgotten. */
export class Leaving implements LeaveSignal {
  #listeners: LeaveListener[] | undefined;
  #hasLeft = false;

  get aborted(): boolean {
    return this.#hasLeft;
  }

  addEventListener(_type: 'abort', listener: LeaveListener): void {
    if (this.aborted) return;
    if (this.#listeners === undefined) {
      this.#listeners = [];
      this.watch();
    }
    if (!this.#listeners.includes(listener)) this.#listeners.push(listener);
  }

  removeEventListener(_type: 'abort', listener: LeaveListener): void {
    const listeners = this.#listeners ?? [];
    const at = listeners.indexOf(listener);
    if (at !== -1) listeners.splice(at, 1);
  }

  /** Tells everyone who listens; of a second time nobody hears. */
  abort(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    const listeners = this.#listeners ?? [];
    // One at a time: whoever goes while others are told is not told any more.
    for (let next = listeners.shift(); next !== undefined; next = listeners.shift()) notify(next);
  }

  /** Called before the first listener is entered: nobody hears of an end before somebody listens. */
  protected watch(): void {
    // Whoever gives the sign itself has nothing to watch.
  }
}

function notify(listener: LeaveListener): void {
  if (typeof listener === 'function') listener();
  else listener.handleEvent();
}

/** Who is told that a client has left: a function, or an object that has no need of one for each exchange (DOM, EventListener). */
type LeaveListener = (() => void) | { handleEvent(): void };

/** That a client has left, as an AbortSignal tells it. */
export type LeaveSignal = {
  readonly aborted: boolean;
  addEventListener(
    type: 'abort',
    listener: LeaveListener,
    options?: { readonly once: boolean },
  ): void;
  removeEventListener(type: 'abort', listener: LeaveListener): void;
};

/** The answers that a channel still owes its client: what was posted for them ended long before. */
export type AwaitedResponses = {
  /** Nothing more is sent for this channel before something of it is answered. */
  readonly isFull: boolean;
  /** Waits for the answer under this id, up to `withinMs`. */
  add(id: string, withinMs: number): void;
  /** It came, or nobody wants it any more. */
  drop(id: string): void;
  /** Waits for nothing any more. */
  close(): void;
};

/** One HTTP request on an upstream's path, after the edge has checked Host, Origin, size and type. */
export type Incoming = {
  /** The decision id: a lower-case UUID, the same in the audit log, in errors and in headers. */
  readonly id: string;
  /** On the path of an endpoint its name, until the message is a member's. */
  readonly upstream: string;
  /** The endpoint of several upstreams that it came through. */
  readonly aggregate?: string | undefined;
  /** The path of HTTP+SSE below the upstream's own that was asked for; absent on the upstream's own. */
  readonly legacySsePath?: 'events' | 'message' | undefined;
  readonly httpMethod: 'POST' | 'GET' | 'DELETE';
  /** Lower-case names. A header that was sent more than once is listed in `repeated`. */
  readonly headers: { readonly [name: string]: string | undefined };
  readonly repeated: ReadonlySet<string>;
  /** The query string without `?`, or empty. Never logged. */
  readonly query: string;
  /** The bytes of the body, exactly as received. Empty for GET and DELETE. */
  readonly body: Uint8Array;
  /** Who asks: the peer, or whom a trusted proxy names. For records alone. */
  readonly remoteAddress: string;
  /** Thumbprint of the client certificate that the connection proved (`x5t#S256`, RFC 8705 §3.1). */
  readonly clientCertificate?: string | undefined;
  /**
   * What proved the caller's key was judged with the request of which this is a part, or a moment ago; it
   * is good for one use, and is not asked for again.
   */
  readonly isProofUsed?: boolean;
  /**
   * Takes one of the places that the upstream's exchanges share, for as long as this one runs; false
   * where none is left. Asked once it is known who calls, so that nobody else can fill them. `member` names
   * the upstream where the path is that of an endpoint.
   */
  enter(backend?: string): boolean;
  /** Aborted when the client's connection ends before the answer does. */
  readonly signal: LeaveSignal;
  /** Milliseconds since the epoch, and a monotonic reading in milliseconds, both at arrival. */
  readonly receivedAt: number;
  readonly startedMs: number;
};

/** Headers of an answer. Names are lower-case. */
export type ResponseHeaders = { readonly [name: string]: string };

/** Where the answer goes. Exactly one of `send` and `open` is called, once. */
export interface Outgoing {
  /** True once the client is gone or the answer has ended. */
  readonly isClosed: boolean;
  /** A header that goes with the answer, whoever answers. To be called before the answer begins. */
  also(name: string, value: string): void;
  /** A whole answer. An empty body sends no content type. */
  send(status: number, headers: ResponseHeaders, body: Body): void;
  /** Opens an event stream: headers now, body by `write`. */
  open(status: number, headers: ResponseHeaders): void;
  /** Bytes of an open stream; resolves when more may be written (back-pressure). */
  write(bytes: Uint8Array | string): void | Promise<void>;
  end(): void;
  /** Breaks the connection off; what still waits to be written is dropped. */
  cut(): void;
}

/** The client's end of a channel of HTTP+SSE: what is written are whole events. */
export type ClientEnd = Pick<Outgoing, 'isClosed' | 'write'> & {
  /** True while so much is unread that nothing more is asked for it. */
  readonly isLagging: boolean;
  /** Aborted when the channel ends. */
  readonly signal: LeaveSignal;
  /** Where answers come apart from every exchange. */
  readonly awaited: AwaitedResponses | undefined;
};

/** Why no usable answer came from an upstream. `overloaded`: there is no room to keep it. */
export type ForwardError =
  | 'overloaded'
  | 'upstream-unavailable'
  | 'upstream-timeout'
  | 'upstream-protocol'
  | 'upstream-credentials';

/** All bytes of an answer, or why they are not there. */
export type ResponseBody = Bytes | 'too-large' | ForwardError;

/** An upstream's answer whose headers have arrived. Exactly one of `whole` and `next` may be used. */
export type UpstreamResponse = {
  readonly kind: 'answer';
  readonly status: number;
  /** Lower-case names. Of a header sent twice, the values joined by a comma. */
  readonly headers: { readonly [name: string]: string | undefined };
  /**
   * All bytes, at once where they are there; or `too-large` past `maxBytes` and a fault past `withinMs` (the socket is then closed), or
   * why they ended early.
   */
  readBody(maxBytes: number, withinMs: number): ResponseBody | Promise<ResponseBody>;
  /** Bytes as they come; `undefined` at the end, a fault when they ended early. */
  next(): Uint8Array | undefined | ForwardError | Promise<Uint8Array | undefined | ForwardError>;
  /**
   * Holds room for so many bytes of it that are kept, in place of what was held before; waits where there is
   * none. What an answer holds, and its whole bytes, are given back by `release` or `abort`.
   */
  hold?(bytes: number): undefined | Promise<'held' | 'overloaded'>;
  /** Nothing more of it is wanted: what little is left is dropped, and the socket serves again. */
  release(): void;
  /** Gives the exchange up: the socket is closed, which is how the 2026 era cancels. */
  abort(): void;
};

/** An upstream's end of a channel of HTTP+SSE: the path that it wants messages at, and what it says from then on. */
export type LegacySseOutcome =
  | {
      readonly kind: 'channel';
      readonly messageEndpoint: string;
      readonly response: UpstreamResponse;
    }
  | { readonly kind: 'fault'; readonly reason: ForwardError };

export type ForwardOutcome =
  | UpstreamResponse
  | { readonly kind: 'fault'; readonly reason: ForwardError };

/**
 * Why nothing was sent: it concerns what another replica runs, or ran, or the replicas could not be told of it; or
 * too much for its caller is on its way (`overloaded`).
 */
type UnsentError = 'asked-elsewhere' | 'store-unavailable' | 'overloaded';

/** What became of a message that may concern what another replica runs, or that was not sent at all. */
export type RoutedOutcome =
  | ForwardOutcome
  | { readonly kind: 'fault'; readonly reason: UnsentError };
