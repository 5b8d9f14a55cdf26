// What is sent to an upstream, and on whose behalf: the requests that proxy/ makes of its ports and that the adapters of
// upstream/ carry out. Only types.

import type { SessionFacts } from '../protocol/admitted-request.js';
import type { RequestId } from '../protocol/jsonrpc.js';
import type { DisconnectSignal } from '../protocol/transport.js';
import type { AuthorizedRequest } from './authorized-request.js';
import type { Caller } from './principal.js';

export type OutboundRequest = {
  readonly authorized: AuthorizedRequest;
  readonly caller: Caller;
  readonly signal: DisconnectSignal | undefined;
};

/** A session stream to be opened. */
export type OutboundStream = {
  readonly session: SessionFacts;
  readonly caller: Caller;
  readonly signal: DisconnectSignal;
  /** The upstream's own event id, if a stream is resumed after it. */
  readonly lastEventId: string | undefined;
};

/** A request within a session, from or to the server, and the caller on whose behalf the gateway acts on it. */
export type SessionRequest = {
  readonly session: SessionFacts;
  readonly id: RequestId;
  readonly caller: Caller;
};

/** The gateway's own reply to a server request: `pong`, or the error that says why there will be no result. */
export type GatewayReply = 'pong' | { readonly code: number; readonly message: string };
