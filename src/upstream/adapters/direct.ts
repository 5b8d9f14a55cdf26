// Reaches an upstream that speaks the era and the transport of its client: messages are sent as they are. Also
// sends the gateway's own messages in a session, within a bound.
// Source: MCP 2024-11-05 and 2025-11-25, cancellation and ping.

import type { GatewayReply } from '../../policy/outbound.js';
import type { Caller } from '../../policy/principal.js';
import type { SessionFacts } from '../../protocol/admitted-request.js';
import type { JsonObject } from '../../protocol/jsonrpc.js';
import { messageEndpointOf, type SessionUpstream } from '../client.js';
import { sessionHeadersOf } from './stateless-over-session/session-pool.js';
import type { UpstreamAdapter } from './upstream-adapter.js';

/** Longest time for sending a message of the gateway's own. */
const OWN_MESSAGE_TIMEOUT_MS = 5_000;
/** Such messages in progress at one upstream; a server that sends requests faster gets no reply to the rest. */
const MAX_OWN_MESSAGES = 4;

/** How many messages of the gateway's own are being sent to one upstream. */
export type OwnMessageCount = { inProgress: number };

/** The session in which the gateway sends a message of its own, and on whose behalf. */
type OwnMessageContext = { readonly session: SessionFacts; readonly by: Caller };

export function createDirectAdapter(
  client: Pick<SessionUpstream, 'forward' | 'openStream' | 'endSession' | 'request'>,
  count: OwnMessageCount,
): UpstreamAdapter {
  /** Sends a message unless too many are in progress. */
  function send(context: OwnMessageContext, message: JsonObject): void {
    if (count.inProgress >= MAX_OWN_MESSAGES) return;
    count.inProgress += 1;
    void sendOwnMessage(client, context, JSON.stringify(message)).then(() => {
      count.inProgress -= 1;
    });
  }

  return {
    forward: ({ authorized, by, signal }) => client.forward(authorized, by, signal),
    openStream: ({ session, by, signal, lastEventId }) =>
      client.openStream(session, by, signal, lastEventId),
    endSession: (session, by) => client.endSession(session, by),
    replyToServer({ session, id, by }, reply) {
      send({ session, by }, { jsonrpc: '2.0', id, ...membersOf(reply) });
    },
    cancelAtServer({ session, id, by }) {
      const params = { requestId: id, reason: 'The response took too long.' };
      send({ session, by }, { jsonrpc: '2.0', method: 'notifications/cancelled', params });
    },
  };
}

/** A legacy SSE session has a message endpoint of its own. */
async function sendOwnMessage(
  client: Pick<SessionUpstream, 'request'>,
  { session, by }: OwnMessageContext,
  body: string,
): Promise<void> {
  const target = messageEndpointOf(session);
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...(target === undefined ? sessionHeadersOf(session) : {}),
  };
  const timeoutMs = OWN_MESSAGE_TIMEOUT_MS;
  const outcome = await client.request({ by, method: 'POST', target, headers, body, timeoutMs });
  if (outcome.kind === 'response') outcome.release();
}

function membersOf(reply: GatewayReply): JsonObject {
  return reply === 'pong'
    ? { result: {} }
    : { error: { code: reply.code, message: reply.message } };
}
