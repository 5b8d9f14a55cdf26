// One upstream's connections: a pool each for exchanges, for streams and for the gateway's own traffic,
// so that open streams never hold up calls, nor slow calls the verification of definitions.
// Sends bytes and hands answers on; decides nothing, retries nothing, follows nothing.

import type { buildConnector } from 'undici';
import { Pool } from 'undici';
import { applyEdits } from '../mcp/json.js';
import type { TranslatedForm } from '../mcp/translate/to-stateless.js';
import type { ChannelOutcome, ForwardOutcome, LeaveSignal } from '../mcp/transport.js';
import { CHANNEL_VERSION } from '../mcp/versions.js';
import type { Cleared } from '../settle/settle.js';
import { createAnswerReader, faultOf } from './answer.js';
import { awaitEndpoint } from './channel.js';
import type { UpstreamCredentials } from './credentials.js';
import {
  baseHeaders,
  formHeaders,
  type HeaderList,
  messageHeaders,
  sessionHeaders,
} from './headers.js';

/** What a client of an upstream needs to know. Times in milliseconds. */
export type ClientSettings = {
  readonly url: URL;
  readonly credentials: UpstreamCredentials;
  readonly limits: {
    readonly requestTimeoutMs: number;
    readonly streamIdleMs: number;
    readonly concurrency: number;
  };
  /** Connects under the address rules of the upstream's network. */
  readonly connect: buildConnector.connector;
};

export type SessionRef = { readonly version: string; readonly upstreamSession: string | undefined };

/** A request of the gateway's own: a listing, or an answer to a server's request. */
export type OwnRequest = {
  readonly method: 'POST' | 'DELETE';
  /** Path and query; those of the configured URL where absent. */
  readonly target?: string | undefined;
  readonly headers: { readonly [name: string]: string };
  readonly body?: string;
  readonly timeoutMs: number;
};

/** Connections for listings and answers to a server's requests. */
const OWN_CONNECTIONS = 8;
/** Answer headers past this are a protocol fault (attack 13). */
const MAX_HEADER_BYTES = 16 * 1024;

export type UpstreamClient = {
  /** Sends an admitted message that every station has cleared; the signal gives the exchange up. */
  forward(cleared: Cleared, signal: LeaveSignal | undefined): Promise<ForwardOutcome>;
  /** Sends a cleared message in the form of another era. `mayRest`: its answer may wait for somebody. */
  forwardAs(
    cleared: Cleared,
    form: TranslatedForm,
    signal: LeaveSignal | undefined,
    mayRest: boolean,
  ): Promise<ForwardOutcome>;
  /** Opens a stream of the gateway's own asking: it carries no principal's words. */
  subscribe(form: TranslatedForm, signal: LeaveSignal): Promise<ForwardOutcome>;
  /** Opens the session's GET stream, or resumes a stream after an event of the upstream's own. */
  openStream(
    session: SessionRef,
    signal: LeaveSignal,
    lastEventId?: string,
  ): Promise<ForwardOutcome>;
  /**
   * Opens a channel of HTTP+SSE and waits for the address that it wants messages at, under `shown` instead of
   * the upstream's credentials where given. An address of another origin is `upstream-protocol`.
   */
  openChannel(signal: LeaveSignal, shown?: UpstreamCredentials): Promise<ChannelOutcome>;
  /** Ends a session. */
  endSession(session: SessionRef): Promise<ForwardOutcome>;
  /** The gateway's own traffic: it carries no principal's words. */
  request(own: OwnRequest): Promise<ForwardOutcome>;
  close(): Promise<void>;
};

/** What speaks to an upstream in sessions, or without. */
export type SessionUpstream = Omit<UpstreamClient, 'openChannel'>;

type Sent = {
  readonly method: 'POST' | 'GET' | 'DELETE';
  readonly target?: string | undefined;
  readonly headers: HeaderList;
  readonly body?: Uint8Array | string | null | undefined;
};

/** Opens the pools of one upstream. Nothing connects before the first request. */
export function createUpstreamClient(settings: ClientSettings): UpstreamClient {
  const { url, credentials, limits } = settings;
  const path = url.pathname + url.search;
  const shared = {
    connect: settings.connect,
    pipelining: 1,
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: limits.requestTimeoutMs,
    bodyTimeout: limits.streamIdleMs,
  };
  const calls = new Pool(url.origin, { ...shared, connections: limits.concurrency });
  const streams = new Pool(url.origin, { ...shared, connections: null });
  const own = new Pool(url.origin, { ...shared, connections: OWN_CONNECTIONS });

  function dispatch(
    pool: Pool,
    { method, target = path, headers, body = null }: Sent,
    signal?: LeaveSignal,
  ): Promise<ForwardOutcome> {
    return new Promise((resolve) => {
      if (signal?.aborted === true)
        return resolve({ kind: 'fault', reason: 'upstream-unavailable' });
      const settleOnce = (outcome: ForwardOutcome): void => resolve(checkAnswer(outcome));
      const reader = createAnswerReader(settleOnce, signal);
      try {
        pool.dispatch({ path: target, method, headers, body }, reader);
      } catch (error) {
        resolve({ kind: 'fault', reason: faultOf(error) });
      }
    });
  }

  return {
    forward(cleared, signal) {
      const { admitted } = cleared;
      const body =
        admitted.edits.length === 0 ? admitted.bytes : applyEdits(admitted.text, admitted.edits);
      // What lives on holds up no call.
      const pool = admitted.rule.response === 'subscription' ? streams : calls;
      const headers = messageHeaders(admitted, credentials);
      const target = addressOf(admitted.session);
      return dispatch(pool, { method: 'POST', target, headers, body }, signal);
    },
    forwardAs(_cleared, form, signal, mayRest) {
      const pool = mayRest ? streams : calls;
      const headers = formHeaders(form.headers, credentials);
      return dispatch(
        pool,
        { method: 'POST', target: form.target, headers, body: form.body },
        signal,
      );
    },
    subscribe(form, signal) {
      const headers = formHeaders(form.headers, credentials);
      return dispatch(streams, { method: 'POST', headers, body: form.body }, signal);
    },
    openStream(session, signal, lastEventId) {
      const headers = sessionHeaders(session, credentials, 'text/event-stream');
      if (lastEventId !== undefined) headers.push('last-event-id', lastEventId);
      return dispatch(streams, { method: 'GET', headers }, signal);
    },
    async openChannel(signal, shown = credentials) {
      const headers = baseHeaders('text/event-stream', shown);
      const opened = await dispatch(streams, { method: 'GET', headers }, signal);
      return awaitEndpoint(opened, url, limits.requestTimeoutMs);
    },
    endSession(session) {
      const headers = sessionHeaders(session, credentials, 'application/json');
      return dispatch(calls, { method: 'DELETE', headers });
    },
    request({ method, target, headers: sent, body, timeoutMs }) {
      const headers: HeaderList = [];
      for (const name in sent) headers.push(name, sent[name] ?? '');
      headers.push('accept-encoding', 'identity');
      return dispatch(own, { method, target, headers, body }, AbortSignal.timeout(timeoutMs));
    },
    async close() {
      await Promise.all([calls.destroy(), streams.destroy(), own.destroy()]);
    },
  };
}

/** Where a session of HTTP+SSE wants its messages; elsewhere the configured URL. */
export function addressOf(session: SessionRef | undefined): string | undefined {
  return session?.version === CHANNEL_VERSION ? session.upstreamSession : undefined;
}

/** Redirects are not followed and encodings not undone: both are protocol faults (attacks 12 and 14). */
function checkAnswer(outcome: ForwardOutcome): ForwardOutcome {
  if (outcome.kind === 'fault') return outcome;
  const encoding = outcome.headers['content-encoding'];
  const isEncoded = encoding !== undefined && encoding !== 'identity';
  if (!isEncoded && (outcome.status < 300 || outcome.status >= 400)) return outcome;
  outcome.abort();
  return { kind: 'fault', reason: 'upstream-protocol' };
}
