// The HTTP facts of one exchange, as plain values: what came in and where the answer goes.
// No socket and no framework type crosses this line, so everything behind it can be tested with literals.

import type { Body, Bytes } from './body.js';

/** Who is told that a client has left: a function, or an object that has no need of one for each exchange (DOM, EventListener). */
export type LeaveListener = (() => void) | { handleEvent(): void };

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
export type UnsentError = 'asked-elsewhere' | 'store-unavailable' | 'overloaded';

/** What became of a message that may concern what another replica runs, or that was not sent at all. */
export type RoutedOutcome =
  | ForwardOutcome
  | { readonly kind: 'fault'; readonly reason: UnsentError };
