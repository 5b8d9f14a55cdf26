// What a client of sessions says to its session alone, where the upstream has none: answered here once every
// replica was told, because any of them may serve the session next.
// Source: MCP 2025-11-25, ping, logging, resources (subscriptions), cancellation; contract §10.

import type { Admitted } from '../../mcp/admitted.js';
import type { Json, JsonObject, RequestId } from '../../mcp/message.js';
import { refusal } from '../../mcp/translate/to-stateless.js';
import type { RoutedOutcome, UpstreamResponse } from '../../mcp/transport.js';
import { acceptedResponse, bodyResponse, resultResponse } from './own-answer.js';
import { MAX_RESOURCES, type ServerRequestReply, type SessionState } from './session-notes.js';
import {
  applySessionChange,
  replicaOf,
  type SessionBus,
  type SessionChange,
} from './session-words.js';

/** A session as it stands at this replica, and the way to the others. */
export type OwnSession = {
  /** The keyed hash of its sealed id. */
  readonly session: string;
  readonly owner: string;
  readonly sessionState: SessionState;
  readonly sessionBus: SessionBus;
};

const TOO_MANY = 'This session has subscribed to as many resources as are kept.';
const RUNS_ELSEWHERE = { kind: 'fault', reason: 'asked-elsewhere' } as const;
const UNDELIVERED = {
  unavailable: { kind: 'fault', reason: 'store-unavailable' },
  overloaded: { kind: 'fault', reason: 'overloaded' },
} as const;

/** The answer to what a client of sessions says to its session alone; `undefined` for what its upstream must hear. */
export function respondHere(
  own: OwnSession,
  message: Admitted['message'],
): UpstreamResponse | Promise<RoutedOutcome> | undefined {
  switch (message.kind) {
    case 'result':
    case 'error':
      return takeReply(own, message.id ?? '', message);
    case 'notification':
      return message.method === 'notifications/cancelled'
        ? cancelRunning(own, message.params?.['requestId'])
        : acceptedResponse();
    case 'request':
      return respondToRequest(own, message.id, message.method, message.params ?? {});
  }
}

function respondToRequest(
  own: OwnSession,
  id: RequestId,
  method: string,
  params: JsonObject,
): UpstreamResponse | Promise<RoutedOutcome> | undefined {
  const { resources } = own.sessionState;
  const uri = String(params['uri']);
  const done = resultResponse(id);
  switch (method) {
    case 'ping':
      return done;
    case 'logging/setLevel':
      return spread(own, { kind: 'log-level', level: String(params['level']) }, done);
    case 'resources/subscribe':
      if (resources.size >= MAX_RESOURCES && !resources.has(uri))
        return bodyResponse(200, refusal(id, TOO_MANY));
      return spread(own, { kind: 'subscribed', uri }, done);
    case 'resources/unsubscribe':
      return spread(own, { kind: 'unsubscribed', uri }, done);
    default:
      return undefined;
  }
}

/** Tells every replica, this one too: a session that stands differently elsewhere would lie to its client. */
async function spread(
  { session, owner, sessionBus }: OwnSession,
  news: SessionChange,
  done: UpstreamResponse,
): Promise<RoutedOutcome> {
  const delivery = await sessionBus.publish({ session, owner, news });
  return delivery === 'told' ? done : UNDELIVERED[delivery];
}

/** Gives a request up, wherever it runs. */
function cancelRunning(
  own: OwnSession,
  id: Json | undefined,
): UpstreamResponse | Promise<RoutedOutcome> {
  if (typeof id !== 'string' && typeof id !== 'number') return acceptedResponse();
  const news = { kind: 'cancelled', id } as const;
  if (!own.sessionState.running.has(id)) return spread(own, news, acceptedResponse());
  applySessionChange(own.sessionState, news);
  return acceptedResponse();
}

/** Gives an answer to whoever asked, be it another replica; it is refused where nobody waits for it. Never rejects. */
export async function takeReply(
  { session, owner, sessionState, sessionBus }: OwnSession,
  id: RequestId,
  reply: ServerRequestReply,
): Promise<RoutedOutcome> {
  const settle = sessionState.waiting.get(id);
  if (settle !== undefined) {
    settle(reply);
    return acceptedResponse();
  }
  const owningReplica = replicaOf(id);
  if (owningReplica === sessionBus.self) return RUNS_ELSEWHERE;
  const delivery = await sessionBus.send(owningReplica, {
    session,
    owner,
    news: { kind: 'answered', id, reply },
  });
  if (delivery === 'told') return acceptedResponse();
  return delivery === 'nobody' ? RUNS_ELSEWHERE : UNDELIVERED[delivery];
}
