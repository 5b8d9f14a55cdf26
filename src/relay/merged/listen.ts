// One subscription to several members (2026): each has its own exchange and its own stream, the client one.
// It is acknowledged once, with what any of them agreed to, and ends when the last of them ends. Every notice
// was judged by its member's exchange before it comes here.
// Source: MCP 2026-07-28, subscriptions (subscriptions/listen).

import type { Admitted } from '../../mcp/admitted.js';
import type { Body } from '../../mcp/body.js';
import { isObject, type Json, type JsonObject, type RequestId } from '../../mcp/message.js';
import { encodeSseComment, encodeSseMessage } from '../../mcp/sse.js';
import {
  EMPTY_FILTER,
  LIST_FILTERS,
  type ListenFilter,
  readFilter,
  renderAcknowledged,
  renderFinalResponse,
} from '../../mcp/subscriptions.js';
import type { Outgoing, ResponseHeaders } from '../../mcp/transport.js';
import { type Refusal, refuseWith } from '../../policy/refusal.js';
import { STREAM_HEADERS } from '../stream-writer.js';
import { runBackendRequest } from './part.js';
import { backendRequestsOf } from './sessions.js';
import type { Verified } from './whole.js';
import { readWritten } from './written-events.js';

const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
/** How long members are waited for once one has agreed; what a later one says is passed on all the same. */
const PATIENCE_MS = 10_000;
/** The stream towards the client, and what is known of the members' streams. */
type Joined = {
  readonly outgoing: Outgoing;
  readonly id: RequestId;
  /** What members agreed to so far. */
  readonly agreed: ListenFilter[];
  /** Notices that came before every member had agreed. */
  readonly early: string[];
  /** Members that have neither agreed nor failed. */
  undecided: number;
  isOpen: boolean;
  /** A member ended its stream in good order. */
  isComplete: boolean;
  failure: { status: number; headers: ResponseHeaders; body: Body } | undefined;
  timer: NodeJS.Timeout | undefined;
};

/** Listens to every member that lets the caller listen. */
export async function listenTogether(
  verified: Verified,
  admitted: Admitted,
): Promise<Refusal | undefined> {
  const { context } = verified;
  if (admitted.message.kind !== 'request') return refuseWith('invalid-message');
  const backendRequests = backendRequestsOf(verified, admitted);
  const joined: Joined = {
    outgoing: context.outgoing,
    id: admitted.message.id,
    agreed: [],
    early: [],
    undecided: backendRequests.length,
    isOpen: false,
    isComplete: false,
    failure: undefined,
    timer: undefined,
  };
  await Promise.all(
    backendRequests.map((backendRequest) => {
      const end = backendRequestOf(joined);
      return runBackendRequest(
        verified,
        { ...backendRequest, isOneOfMany: true },
        end.outgoing,
      ).then(end.decide);
    }),
  );
  clearTimeout(joined.timer);
  return finish(joined);
}

/** A member's end. `decide` says that it will agree to nothing any more. */
function backendRequestOf(joined: Joined): { readonly outgoing: Outgoing; decide(): void } {
  let isDecided = false;
  function decide(): void {
    if (isDecided) return;
    isDecided = true;
    joined.undecided -= 1;
    if (joined.undecided === 0) acknowledge(joined);
  }
  const outgoing: Outgoing = {
    get isClosed() {
      return joined.outgoing.isClosed;
    },
    // The whole has told the client what there is to tell.
    also: () => undefined,
    send(status, headers, body) {
      joined.failure ??= { status, headers, body };
      decide();
    },
    open: () => undefined,
    write: readWritten((event) => {
      if (event.kind === 'message') return take(joined, event.data, decide);
      const isKeptAlive = event.kind === 'comment' && joined.isOpen;
      return isKeptAlive ? joined.outgoing.write(encodeSseComment('')) : undefined;
    }),
    end: decide,
    cut: () => joined.outgoing.cut(),
  };
  return { outgoing, decide };
}

function take(joined: Joined, text: string, decide: () => void): void | Promise<void> {
  const message: Json = JSON.parse(text);
  if (!isObject(message)) return;
  if (message['method'] === ACKNOWLEDGED) {
    joined.agreed.push(filterOf(message));
    joined.timer ??= setTimeout(() => acknowledge(joined), PATIENCE_MS);
    return decide();
  }
  if (message['method'] === undefined) {
    // A result ends this member's stream in good order, an error does not; the others go on.
    joined.isComplete ||= message['result'] !== undefined;
    if (message['error'] !== undefined)
      joined.failure ??= {
        status: 200,
        headers: { 'content-type': 'application/json' },
        body: text,
      };
    return;
  }
  if (joined.isOpen) return joined.outgoing.write(encodeSseMessage(text));
  joined.early.push(text);
}

function filterOf(message: JsonObject): ListenFilter {
  const params = message['params'];
  return readFilter(isObject(params) ? params['notifications'] : undefined) ?? EMPTY_FILTER;
}

/** The first message of the stream: what any member agreed to. Nothing where none did. */
function acknowledge(joined: Joined): void {
  const { agreed, early, id, outgoing } = joined;
  if (joined.isOpen || agreed.length === 0) return;
  joined.isOpen = true;
  const together: ListenFilter = {
    lists: LIST_FILTERS.filter((filter) => agreed.some(({ lists }) => lists.includes(filter))),
    uris: [...new Set(agreed.flatMap(({ uris }) => uris))],
    tasks: agreed.flatMap(({ tasks }) => tasks),
  };
  outgoing.open(200, STREAM_HEADERS);
  void outgoing.write(encodeSseMessage(renderAcknowledged(id, together)));
  for (const text of early.splice(0)) void outgoing.write(encodeSseMessage(text));
}

function finish({ isComplete, isOpen, failure, id, outgoing }: Joined): Refusal | undefined {
  if (!isOpen) {
    if (failure === undefined) return refuseWith('upstream-protocol');
    outgoing.send(failure.status, failure.headers, failure.body);
    return undefined;
  }
  if (isComplete) void outgoing.write(encodeSseMessage(renderFinalResponse(id)));
  outgoing.end();
  return undefined;
}
