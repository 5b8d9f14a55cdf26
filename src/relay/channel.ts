// The channel of a session of HTTP+SSE: one stream, whose first event says where to post, and on which every
// answer and every word of the server comes. Opened under the same controls as every stream: who, record,
// room; ended with its client, its token, its session or its upstream.
// Source: MCP 2024-11-05, transports, HTTP with SSE; contract §2.

import type { ProtocolFault, SessionFacts } from '../mcp/admitted.js';
import { channelAddress } from '../mcp/eras/channels.js';
import { faultOf, INVALID_REQUEST } from '../mcp/faults.js';
import { encodeSseMessage } from '../mcp/sse.js';
import type { LeaveSignal, UpstreamAnswer } from '../mcp/transport.js';
import { CHANNEL_VERSION } from '../mcp/versions.js';
import type { Principal } from '../policy/principal.js';
import { type Refusal, refuseWith } from '../policy/refusal.js';
import { type Call, noteRefusal } from './call.js';
import { createChannelWriter } from './channel-answer.js';
import { pumpEvents } from './events.js';
import { holdStream } from './held-stream.js';
import { listen, noteSession, putOnRecord } from './listen.js';
import { faultOfEnd, STREAM_HEADERS, upkeepOf } from './stream-writer.js';

/** Opens the stream that a GET asks for: a channel, or one of a session. */
export function openStream(call: Call, principal: Principal): Promise<Refusal | undefined> {
  return opensChannel(call) ? openChannel(call, principal) : listen(call, principal);
}

/**
 * True on a channel's own path, and on the upstream's own for a client that probes for this transport
 * (MCP 2025-11-25, transports, backwards compatibility).
 */
function opensChannel({ incoming, view }: Call): boolean {
  const { channel, headers } = incoming;
  if (view.channel === undefined || headers['mcp-session-id'] !== undefined) return false;
  return channel === 'events' || headers['accept']?.includes('text/event-stream') === true;
}

/**
 * The fault of a message on a path that takes none: before an upstream of HTTP+SSE all are posted to channels.
 * Its code is none by which a client would take this for a server of another era.
 */
export function findMisplaced({ incoming, view }: Call): ProtocolFault | undefined {
  const isPlaced = (view.channel !== undefined) === (incoming.channel === 'message');
  if (isPlaced) return undefined;
  const text = 'This server speaks HTTP+SSE: open a stream by GET.';
  const fault = faultOf('method-forbidden', INVALID_REQUEST, text, { era: undefined }, 405);
  return { ...fault, allowed: 'GET' };
}

/** Opens a channel on both sides and keeps it until one of them leaves. */
async function openChannel(call: Call, principal: Principal): Promise<Refusal | undefined> {
  const { incoming, outgoing, ports } = call;
  const { upstream } = incoming;
  noteSession(call, { version: CHANNEL_VERSION, upstreamSession: undefined }, 'GET');
  if (!ports.hasRoomForStream(upstream, principal)) return refuseWith('overloaded');
  if (!(await putOnRecord(call))) return refuseWith('audit-unavailable');
  const outcome = await ports.channels.open(upstream, incoming.signal);
  if (outcome.kind === 'fault') return refuseWith(outcome.reason);
  const facts = { version: CHANNEL_VERSION, upstreamSession: outcome.endpoint };
  const sealed = ports.sealSession(facts, upstream, principal);
  const session = ports.openSession(sealed, upstream, principal);
  const { channel } = call.view;
  if (session === undefined || channel === undefined) {
    outcome.answer.abort();
    return refuseWith('internal');
  }
  call.record.client.session = session.hash;
  call.record.result = { ...call.record.result, status: 'ok', http: 200 };
  outgoing.open(200, STREAM_HEADERS);
  const say = (json: string): void => void outgoing.write(encodeSseMessage(json));
  const announce = (method: string): void => say(JSON.stringify({ jsonrpc: '2.0', method }));
  const leave = ports.channels.enter(session, say);
  const address = channelAddress(channel.messageUrl, sealed);
  void outgoing.write(encodeSseMessage(address, { event: 'endpoint' }));
  try {
    await holdStream(call, principal, { session: sealed, announce }, (signal) =>
      relayChannel(call, principal, session, outcome.answer, signal),
    );
  } finally {
    leave();
    // Nothing can answer in it any more.
    ports.endSession(sealed, upstream);
  }
  return undefined;
}

async function relayChannel(
  call: Call,
  principal: Principal,
  session: SessionFacts,
  answer: UpstreamAnswer,
  leave: LeaveSignal,
): Promise<void> {
  const abort = (): void => answer.abort();
  leave.addEventListener('abort', abort, { once: true });
  if (leave.aborted) abort();
  const write = createChannelWriter(call, principal, session);
  const end = await pumpEvents(answer, call.view.limits.maxResponseBytes, async (event) => {
    // Judged under the version that stands now, not the one under which the channel was opened.
    call.view = call.ports.view(call.incoming.upstream) ?? call.view;
    if (event.kind !== 'message') await call.outgoing.write(upkeepOf(event));
    else if (event.data !== '') await write(event.data);
    return call.outgoing.isClosed ? 'stop' : undefined;
  });
  if (end !== 'ended' && end !== 'stopped' && !leave.aborted)
    noteRefusal(call, refuseWith(faultOfEnd(end)));
}
