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
const GATEWAY_MESSAGE_TIMEOUT_MS = 5_000;
/** Such messages in progress at one upstream; a server that sends requests faster gets no reply to the rest. */
const MAX_GATEWAY_MESSAGES = 4;

/** How many messages of the gateway's own are being sent to one upstream. */
export type GatewayMessageCount = { inProgress: number };

/** The session in which the gateway sends a message of its own, and on whose behalf. */
type GatewayMessageContext = { readonly session: SessionFacts; readonly caller: Caller };

export function createDirectAdapter(
  client: Pick<SessionUpstream, 'forward' | 'openStream' | 'endSession' | 'request'>,
  count: GatewayMessageCount,
): UpstreamAdapter {
  /** Sends a message unless too many are in progress. */
  function send(context: GatewayMessageContext, message: JsonObject): void {
    if (count.inProgress >= MAX_GATEWAY_MESSAGES) return;
    count.inProgress += 1;
    void sendGatewayMessage(client, context, JSON.stringify(message)).then(() => {
      count.inProgress -= 1;
    });
  }

  return {
    forward: ({ authorized, caller, signal }) => client.forward(authorized, caller, signal),
    openStream: ({ session, caller, signal, lastEventId }) =>
      client.openStream(session, caller, signal, lastEventId),
    endSession: (session, caller) => client.endSession(session, caller),
    replyToServer({ session, id, caller }, reply) {
      send({ session, caller }, { jsonrpc: '2.0', id, ...membersOf(reply) });
    },
    cancelAtServer({ session, id, caller }) {
      const params = { requestId: id, reason: 'The response took too long.' };
      send({ session, caller }, { jsonrpc: '2.0', method: 'notifications/cancelled', params });
    },
  };
}

/** A legacy SSE session has a message endpoint of its own. */
async function sendGatewayMessage(
  client: Pick<SessionUpstream, 'request'>,
  { session, caller }: GatewayMessageContext,
  body: string,
): Promise<void> {
  const target = messageEndpointOf(session);
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    ...(target === undefined ? sessionHeadersOf(session) : {}),
  };
  const timeoutMs = GATEWAY_MESSAGE_TIMEOUT_MS;
  const outcome = await client.request({
    caller,
    method: 'POST',
    target,
    headers,
    body,
    timeoutMs,
  });
  if (outcome.kind === 'response') outcome.release();
}

function membersOf(reply: GatewayReply): JsonObject {
  return reply === 'pong'
    ? { result: {} }
    : { error: { code: reply.code, message: reply.message } };
}
