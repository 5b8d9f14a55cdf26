// The connections to one upstream: separate pools for calls, for streams, for the gateway's own requests and for what is
// only received, so that open streams never delay calls, slow calls never delay the verification of definitions, and
// nothing delays the messages for which calls wait. Sends
// bytes and returns responses; makes no decisions, never retries, never follows a redirect.
// Request headers are built from an allow-list. Nothing of the client's request is copied by default, so a
// token, cookie or forwarding header cannot pass by accident (MCP security best practices, token passthrough;
// docs/reference/attacks.md cases 8, 9 and 47).
// A stream of legacy SSE is open once its first event, `endpoint`, has named a URL of the upstream's own origin;
// everything after that event is passed on unread (MCP 2024-11-05, transports, HTTP with SSE;
// docs/reference/network.md).

import { type buildConnector, Pool } from 'undici';
import type { AuthorizedRequest } from '../policy/obligations.js';
import type { Caller } from '../policy/principal.js';
import { type AdmittedMessage, endsOrAnswers, type SessionFacts } from '../protocol/admitted-request.js';
import type { HeaderPair } from '../protocol/headers.js';
import { applyEdits } from '../protocol/json/json.js';
import { type ByteSource, EventReader, isEventStream } from '../protocol/sse.js';
import {
  amendResponse,
  type DisconnectSignal,
  type ForwardError,
  type ForwardOutcome,
  type LegacySseOutcome,
  type UpstreamResponse,
} from '../protocol/transport.js';
import { errorOfStatus } from '../protocol/upstream-status.js';
import { readEndpoint } from '../protocol/versions/legacy-sse.js';
import { namesVersionInHeader } from '../protocol/versions/revisions.js';
import { clauseName, clauseUrl, describeStatus, encodingOf } from '../text/clause.js';
import type { TranslatedForm } from './adapters/message-translation.js';
import type { CallerOrGateway, Presenter, PresentOutcome } from './credentials/credentials.js';
import { forwardErrorOfEnd, UNSCHEDULED } from './response-messages.js';
import { createResponseReader, forwardErrorOf, type OpenReservation } from './response-reader.js';

/** Headers as undici takes them: alternating names and values. */
type HeaderList = string[];

const ACCEPT_BOTH = 'application/json, text/event-stream';

/** The headers of every request to an upstream; credentials and the assertion come from the presenter. */
function baseHeaders(accept: string): HeaderList {
  return ['accept', accept, 'accept-encoding', 'identity', 'user-agent', 'sallyport'];
}

/**
 * Headers of a POST with an admitted message. The 2026 headers are the admitted ones, which were compared
 * with the body and therefore agree with it (MCP 2026-07-28, standard headers).
 */
function messageHeaders(admitted: AdmittedMessage): HeaderList {
  const headers = baseHeaders(ACCEPT_BOTH);
  headers.push('content-type', 'application/json');
  if (admitted.protocol.mirrorsBody) {
    headers.push('mcp-protocol-version', admitted.version, 'mcp-method', admitted.rule.method);
    if (admitted.nameHeader !== undefined) headers.push('mcp-name', admitted.nameHeader);
    for (const name in admitted.paramHeaders) headers.push(name, admitted.paramHeaders[name] ?? '');
    return headers;
  }
  pushSession(headers, admitted.session);
  return headers;
}

/** Headers of a POST in the form of another era, which were derived from the body. */
function formHeaders(derived: readonly HeaderPair[]): HeaderList {
  const headers = baseHeaders(ACCEPT_BOTH);
  headers.push('content-type', 'application/json');
  for (const [name, value] of derived) headers.push(name, value);
  return headers;
}

/** Headers of a GET or DELETE within a session. */
function sessionHeaders(session: SessionRef, accept: string): HeaderList {
  const headers = baseHeaders(accept);
  pushSession(headers, session);
  return headers;
}

function pushSession(headers: HeaderList, session: SessionRef | undefined): void {
  if (session === undefined) return;
  const id = upstreamIdOf(session);
  if (id !== undefined) headers.push('mcp-session-id', id);
  if (namesVersionInHeader(session.version)) headers.push('mcp-protocol-version', session.version);
}

/** Settings of the client of one upstream. Times in milliseconds. */
type ClientSettings = {
  readonly url: URL;
  readonly presenter: Presenter;
  readonly limits: {
    readonly requestTimeoutMs: number;
    /** In place of it for handshakes and lists. */
    readonly handshakeTimeoutMs: number;
    readonly streamIdleMs: number;
    readonly concurrency: number;
  };
  /** Reserves buffer space for long responses; default: unbounded. */
  readonly openReservation?: OpenReservation | undefined;
  /** Connects under the address rules of the upstream's network. */
  readonly connect: buildConnector.connector;
};

export type SessionRef = Pick<SessionFacts, 'version' | 'target'>;

/**
 * The id that the upstream issued for the session; `undefined` if it issued none, or if the upstream would not
 * recognize the id.
 */
export function upstreamIdOf({ target }: Pick<SessionFacts, 'target'>): string | undefined {
  return target.kind === 'upstream' ? target.id : undefined;
}

/** A request of the gateway's own: of a listing or handshake, or the response to a server request. */
export type GatewayRequest = {
  readonly caller: CallerOrGateway;
  readonly method: 'POST' | 'DELETE';
  /** Path and query; default: those of the configured URL. */
  readonly target?: string | undefined;
  readonly headers: { readonly [name: string]: string };
  readonly body?: string;
  readonly timeoutMs: number;
  /** Nothing but a receipt is awaited: what waits for it must not wait for listings and handshakes of others. */
  readonly isOneWay?: boolean;
  /** It asks whether the upstream answers at all, for which it must wait for nothing else that is sent. */
  readonly isPing?: boolean;
};

/** Connections for listings and handshakes of the gateway. */
const GATEWAY_CONNECTIONS = 8;
/** Larger response headers are a protocol error (docs/reference/attacks.md case 13). */
const MAX_HEADER_BYTES = 16 * 1024;

export type UpstreamClient = {
  /** Sends an admitted message whose obligations have all been met; the signal aborts the exchange. */
  forward(authorized: AuthorizedRequest, caller: Caller, signal: DisconnectSignal | undefined): Promise<ForwardOutcome>;
  /**
   * Sends an authorized message in the form of another era. `mayWaitForInput`: the response may wait for client
   * input.
   */
  forwardAs(
    authorized: AuthorizedRequest,
    caller: Caller,
    form: TranslatedForm,
    signal: DisconnectSignal | undefined,
    mayWaitForInput: boolean,
  ): Promise<ForwardOutcome>;
  /** Opens a stream with a request of the gateway's own; it carries no text of a principal. */
  subscribe(form: TranslatedForm, caller: Caller, signal: DisconnectSignal): Promise<ForwardOutcome>;
  /** Opens the session's GET stream, or resumes a stream after an event id of the upstream's own. */
  openStream(
    session: SessionRef,
    caller: Caller,
    signal: DisconnectSignal,
    lastEventId?: string,
  ): Promise<ForwardOutcome>;
  /**
   * Opens a legacy SSE stream and waits for the event that names the message endpoint. A message endpoint of
   * another origin is `upstream-protocol`.
   */
  openLegacyStream(caller: CallerOrGateway, signal: DisconnectSignal): Promise<LegacySseOutcome>;
  /** Ends a session. */
  endSession(session: SessionRef, caller: Caller): Promise<ForwardOutcome>;
  /** Sends a request of the gateway's own; it carries no text of a principal. */
  request(gatewayRequest: GatewayRequest): Promise<ForwardOutcome>;
  /** How many responses have come so far, to callers and to the gateway. */
  countResponses(): number;
  /** Breaks off what callers have in progress; only the gateway's own requests can be sent from then on. */
  abortCalls(): void;
  close(): Promise<void>;
};

/** A client of an upstream that appears to speak Streamable HTTP, with sessions or without. */
export type SessionUpstream = Omit<UpstreamClient, 'openLegacyStream' | 'abortCalls' | 'countResponses'>;

type OutboundRequest = {
  readonly caller: CallerOrGateway;
  readonly method: 'POST' | 'GET' | 'DELETE';
  readonly target?: string | undefined;
  readonly headers: HeaderList;
  readonly body?: Uint8Array | string | null | undefined;
  /** How long the first byte of the response may take, if not as long as that of a call. */
  readonly headersTimeout?: number | undefined;
};

/** Creates the connection pools of one upstream. Nothing connects before the first request. */
export function createUpstreamClient(settings: ClientSettings): UpstreamClient {
  const { url, presenter, limits } = settings;
  const path = url.pathname + url.search;
  const poolOptions = {
    connect: settings.connect,
    pipelining: 1,
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: limits.requestTimeoutMs,
    bodyTimeout: limits.streamIdleMs,
  };
  const calls = new Pool(url.origin, { ...poolOptions, connections: limits.concurrency });
  /** For whatever its sender bounds: long-lived responses, and messages for which calls in progress may wait. */
  const streams = new Pool(url.origin, { ...poolOptions, connections: null });
  forgetAborted(streams);
  const gatewayPool = new Pool(url.origin, { ...poolOptions, connections: GATEWAY_CONNECTIONS });
  /** For what the gateway sends in sessions, and for their ends: calls and handshakes may wait for them. */
  const receipts = new Pool(url.origin, { ...poolOptions, connections: limits.concurrency });
  const pings = new Pool(url.origin, { ...poolOptions, connections: 1 });

  let responses = 0;

  /** INVARIANT: the configured credential is obtained first; without it nothing is sent. */
  function dispatch(pool: Pool, sent: OutboundRequest, signal?: DisconnectSignal): Promise<ForwardOutcome> {
    const credentials = presenter.present(sent.caller);
    return credentials instanceof Promise
      ? credentials.then((resolved) => send(pool, sent, resolved, signal))
      : send(pool, sent, credentials, signal);
  }

  function send(
    pool: Pool,
    { caller, method, target = path, headers, body = null, headersTimeout }: OutboundRequest,
    credentials: PresentOutcome,
    signal: DisconnectSignal | undefined,
  ): Promise<ForwardOutcome> {
    if (typeof credentials === 'string') return Promise.resolve({ kind: 'error', reason: credentials, isUnsent: true });
    headers.push(...credentials);
    if (caller !== 'gateway' && caller.traceparent !== undefined) headers.push('traceparent', caller.traceparent);
    return new Promise((resolve) => {
      if (signal?.aborted === true) return resolve({ kind: 'error', reason: 'upstream-unavailable', isUnsent: true });
      const settleOnce = (outcome: ForwardOutcome): void => {
        if (outcome.kind === 'response') responses += 1;
        if (isCredentialRejected(outcome)) presenter.reportRejected(caller, credentials);
        resolve(checkResponse(outcome, url));
      };
      const reader = createResponseReader(settleOnce, signal, settings.openReservation);
      try {
        pool.dispatch({ path: target, method, headers, body, headersTimeout: headersTimeout ?? null }, reader);
      } catch (error) {
        resolve({ kind: 'error', reason: forwardErrorOf(error) });
      }
    });
  }

  /**
   * A long-lived response must not occupy a connection for calls, and a message must not wait for one that ends or answers
   * calls which occupy them all.
   */
  function poolOf(admitted: AdmittedMessage, isLongLived: boolean): Pool {
    return isLongLived || endsOrAnswers(admitted) ? streams : calls;
  }

  function timeoutOf({ rule }: AdmittedMessage): number | undefined {
    return rule.response === 'filter' ? limits.handshakeTimeoutMs : undefined;
  }

  return {
    forward(authorized, caller, signal) {
      const { admitted } = authorized;
      const body = admitted.edits.length === 0 ? admitted.bytes : applyEdits(admitted.text, admitted.edits);
      const pool = poolOf(admitted, admitted.rule.response === 'subscription');
      const headers = messageHeaders(admitted);
      const target = messageEndpointOf(admitted.session);
      const headersTimeout = timeoutOf(admitted);
      const sent = { caller, method: 'POST', target, headers, body, headersTimeout } as const;
      return dispatch(pool, sent, signal);
    },
    forwardAs(authorized, caller, form, signal, mayWaitForInput) {
      const pool = poolOf(authorized.admitted, mayWaitForInput);
      const headers = formHeaders(form.headers);
      const { body, target } = form;
      const headersTimeout = timeoutOf(authorized.admitted);
      const sent = { caller, method: 'POST', target, headers, body, headersTimeout } as const;
      return dispatch(pool, sent, signal);
    },
    subscribe(form, caller, signal) {
      const headers = formHeaders(form.headers);
      return dispatch(streams, { caller, method: 'POST', headers, body: form.body }, signal);
    },
    openStream(session, caller, signal, lastEventId) {
      const headers = sessionHeaders(session, 'text/event-stream');
      if (lastEventId !== undefined) headers.push('last-event-id', lastEventId);
      return dispatch(streams, { caller, method: 'GET', headers }, signal);
    },
    async openLegacyStream(caller, signal) {
      const headers = baseHeaders('text/event-stream');
      const opened = await dispatch(streams, { caller, method: 'GET', headers }, signal);
      return awaitEndpoint(opened, url, limits.handshakeTimeoutMs);
    },
    endSession(session, caller) {
      const headers = sessionHeaders(session, 'application/json');
      return dispatch(receipts, { caller, method: 'DELETE', headers });
    },
    request({ caller, method, target, headers: sent, body, timeoutMs, isOneWay = method === 'DELETE', isPing }) {
      const headers: HeaderList = [];
      for (const name in sent) headers.push(name, sent[name] ?? '');
      headers.push('accept-encoding', 'identity');
      const pool = isPing === true ? pings : isOneWay ? receipts : gatewayPool;
      return dispatch(pool, { caller, method, target, headers, body }, AbortSignal.timeout(timeoutMs));
    },
    countResponses: () => responses,
    abortCalls() {
      for (const pool of [calls, streams]) pool.destroy().catch(() => undefined);
    },
    async close() {
      await Promise.all([calls, streams, gatewayPool, receipts, pings].map((pool) => pool.destroy()));
    },
  };
}

/**
 * Drops the client of each exchange that was aborted: undici would connect it again, only to find that its request is
 * over, and keep it. In a pool without a limit on connections no request waits for a client, so dropping one is safe.
 */
function forgetAborted(pool: Pool): void {
  pool.on('disconnect', (origin, [, client], error) => {
    if (client === undefined || error.code !== 'UND_ERR_INFO' || error.message !== 'aborted') return;
    // Removes it from the pool, which would otherwise choose it for the next exchange.
    pool.emit('connectionError', origin, [client], error);
    void client.destroy(error);
  });
}

/** The message endpoint of a legacy SSE session; undefined, for the configured URL, elsewhere. */
export function messageEndpointOf(session: SessionRef | undefined): string | undefined {
  return session?.target.kind === 'legacy-sse' ? session.target.messageEndpoint : undefined;
}

/** True if the upstream rejected the credential (RFC 6750 §3.1). */
function isCredentialRejected(outcome: ForwardOutcome): boolean {
  return outcome.kind === 'response' && (outcome.status === 401 || outcome.status === 403);
}

/**
 * Redirects are not followed and content encodings not decoded: both are protocol errors
 * (docs/reference/attacks.md cases 12 and 14).
 */
function checkResponse(outcome: ForwardOutcome, url: URL): ForwardOutcome {
  if (outcome.kind === 'error') return outcome;
  const { status } = outcome;
  const encoding = encodingOf(outcome);
  const isRedirect = status >= 300 && status < 400;
  if (encoding === undefined && !isRedirect) return outcome;
  outcome.abort();
  // An error, and a receipt, say what they mean by their status; only the text of an error is lost.
  if (status >= 400 || RECEIPTS.has(status)) return amendResponse(outcome, WITHOUT_BODY);
  const { location } = outcome.headers;
  if (encoding !== undefined) return protocolError(`content-encoding: ${clauseName(encoding)}`);
  return protocolError(
    location === undefined ? `${status} without a location` : `redirect to ${clauseUrl(location, url.href)}`,
  );
}

/** Successes that have no content: accepted, no content, reset content. */
const RECEIPTS: ReadonlySet<number> = new Set([202, 204, 205]);
const NO_BYTES = new Uint8Array();
const WITHOUT_BODY = {
  readBody: () => Promise.resolve(NO_BYTES),
  next: () => Promise.resolve(undefined),
} as const;

function protocolError(detail: string): Extract<ForwardOutcome, { readonly kind: 'error' }> {
  return { kind: 'error', reason: 'upstream-protocol', detail };
}

/** The first event contains only a URL. */
const MAX_ENDPOINT_EVENT_BYTES = 8 * 1024;
/** The first event and all comments before it. */
const MAX_OPENING_BYTES = 64 * 1024;
const LF = 10;
const CR = 13;

type FirstEvent = { readonly messageEndpoint: string; readonly remaining: Uint8Array };

/**
 * Reads a stream up to its first event. `timeoutMs` bounds the wait, whatever else arrives meanwhile.
 *
 * @returns the message endpoint as path and query, and the rest of the stream; otherwise an error.
 */
export async function awaitEndpoint(opened: ForwardOutcome, base: URL, timeoutMs: number): Promise<LegacySseOutcome> {
  if (opened.kind === 'error') return opened;
  const refused = openingErrorOf(opened);
  if (refused !== undefined) {
    opened.release();
    return { kind: 'error', reason: refused, detail: describeStatus(opened, 'GET') };
  }
  let isTimedOut = false;
  const timer = setTimeout(() => {
    isTimedOut = true;
    opened.abort();
  }, timeoutMs);
  const first = await readFirstEvent(opened);
  clearTimeout(timer);
  if (isTimedOut) return { kind: 'error', reason: 'upstream-timeout' };
  if (typeof first === 'string') return { kind: 'error', reason: first };
  const messageEndpoint = readEndpoint(first.messageEndpoint, base);
  if (messageEndpoint !== undefined)
    return { kind: 'opened', messageEndpoint, response: continueAfter(opened, first.remaining) };
  opened.abort();
  return protocolError('endpoint: not a URL of the same origin');
}

function openingErrorOf(opened: UpstreamResponse): ForwardError | undefined {
  const { status } = opened;
  const error = errorOfStatus(status);
  if (error !== undefined) return error;
  if (status >= 500) return 'upstream-unavailable';
  return isEventStream(opened) ? undefined : 'upstream-protocol';
}

async function readFirstEvent(response: UpstreamResponse): Promise<FirstEvent | ForwardError> {
  const lines = byLine(response);
  let bytes = 0;
  const reader = new EventReader(lines, {
    maxEventBytes: MAX_ENDPOINT_EVENT_BYTES,
    count(more) {
      bytes += more;
      return bytes > MAX_OPENING_BYTES ? 'too-large' : undefined;
    },
    upstream: '',
    loopScheduler: UNSCHEDULED,
  });
  for (;;) {
    const events = await reader.read();
    if (typeof events === 'string') return forwardErrorOfEnd(events);
    const event = events.find((one) => one.kind === 'message');
    if (event?.kind !== 'message') continue;
    if (event.event === 'endpoint') return { messageEndpoint: event.data, remaining: lines.remaining() };
    response.abort();
    return 'upstream-protocol';
  }
}

/** Cuts the chunks behind each line, so that what follows the first event is left for the checks of the stream. */
function byLine(response: UpstreamResponse): ByteSource & { remaining(): Uint8Array } {
  let unread: Uint8Array = new Uint8Array();

  function nextLine(): Uint8Array {
    let end = 0;
    while (end < unread.length && unread[end] !== LF && unread[end] !== CR) end += 1;
    const line = unread.subarray(0, end + 1);
    unread = unread.subarray(end + 1);
    return line;
  }

  function startChunk(chunk: Awaited<ReturnType<ByteSource['next']>>): typeof chunk {
    if (typeof chunk !== 'object') return chunk;
    unread = chunk;
    return nextLine();
  }

  return {
    next() {
      if (unread.length > 0) return nextLine();
      const pulled = response.next();
      return pulled instanceof Promise ? pulled.then(startChunk) : startChunk(pulled);
    },
    remaining: () => unread,
    release: () => response.release(),
    abort: () => response.abort(),
  };
}

function continueAfter(response: UpstreamResponse, remaining: Uint8Array): UpstreamResponse {
  let unread: Uint8Array | undefined = remaining.length > 0 ? remaining : undefined;
  return amendResponse(response, {
    next() {
      if (unread === undefined) return response.next();
      const chunk = unread;
      unread = undefined;
      return Promise.resolve(chunk);
    },
  });
}
