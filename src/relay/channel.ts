// The channel of a session of HTTP+SSE: one stream, whose first event says where to post, and on which every
// answer and every word of the server comes. Opened under the same controls as every stream: who, record,
// room; ended with its client, its token, its session or its upstream.
// Source: MCP 2024-11-05, transports, HTTP with SSE; contract §2.

import { setMaxListeners } from 'node:events';
import type { SessionFacts } from '../mcp/admitted.js';
import { BRIDGED_CHANNEL, channelAddress, probesForChannel } from '../mcp/eras/channels.js';
import { encodeSseMessage } from '../mcp/sse.js';
import type { AwaitedAnswers, ClientEnd, UpstreamAnswer } from '../mcp/transport.js';
import { CHANNEL_VERSION } from '../mcp/versions.js';
import type { Principal } from '../policy/principal.js';
import { type Refusal, refuseFault, refuseWith } from '../policy/refusal.js';
import { notAcceptable, takesStream } from './acceptance.js';
import { relayBridged } from './bridged-channel.js';
import { type Call, callerOf, noteRefusal } from './call.js';
import { type ChannelWriter, createChannelWriter } from './channel-answer.js';
import { pumpEvents, termsOfStream } from './events.js';
import { holdStream } from './held-stream.js';
import { listen, noteSession, putOnRecord } from './listen.js';
import { faultOfEnd, STREAM_HEADERS, upkeepOf } from './stream-writer.js';

/** Opens the stream that a GET asks for: a channel, or one of a session. */
export function openStream(call: Call, principal: Principal): Promise<Refusal | undefined> {
  return opensChannel(call) ? openChannel(call, principal) : listen(call, principal);
}

/** True on a channel's own path, and on the upstream's own for a client that probes for this transport. */
function opensChannel({ incoming: { channel, headers } }: Call): boolean {
  return channel === 'events' || probesForChannel(headers);
}

/** What a channel stands on at the upstream: where messages go, and who tells what is said there. */
type Ground = {
  readonly endpoint: string;
  begin(channel: OpenedChannel): Begun;
  abort(): void;
};

/** A channel on which both sides are: what is owed there apart from every exchange, and what tells it. */
type Begun = {
  readonly awaited: AwaitedAnswers | undefined;
  relay(leave: AbortSignal): Promise<void>;
};

type OpenedChannel = {
  readonly call: Call;
  readonly principal: Principal;
  readonly sealed: string;
  readonly session: SessionFacts;
};

/** Opens a channel on both sides and keeps it until one of them leaves. */
async function openChannel(call: Call, principal: Principal): Promise<Refusal | undefined> {
  const { incoming, ports } = call;
  const { upstream } = incoming;
  noteSession(call, { version: CHANNEL_VERSION, upstreamSession: undefined }, 'GET');
  if (!takesStream(incoming)) return refuseFault(notAcceptable({ era: '2024' }));
  if (!ports.hasRoomForStream(upstream, principal)) return refuseWith('overloaded');
  if (!(await putOnRecord(call))) return refuseWith('audit-unavailable');
  const ground = call.view.channel.isDirect ? await openDirect(call) : BRIDGE;
  if ('kind' in ground) return ground;
  const facts = { version: CHANNEL_VERSION, upstreamSession: ground.endpoint };
  const sealed = ports.sealSession(facts, upstream, principal);
  const session = ports.openSession(sealed, upstream, principal);
  if (session === undefined) {
    ground.abort();
    return refuseWith('internal');
  }
  await serve({ call, principal, sealed, session }, ground);
  return undefined;
}

async function openDirect(call: Call): Promise<Ground | Refusal> {
  const { incoming, ports } = call;
  const outcome = await ports.channels.open(incoming.upstream, callerOf(call), incoming.signal);
  if (outcome.kind === 'fault') return refuseWith(outcome.reason);
  const { endpoint, answer } = outcome;
  return {
    endpoint,
    begin({ call: opened, principal, session }) {
      const writer = createChannelWriter(opened, principal, session);
      return {
        awaited: writer.awaited,
        relay: (leave) => relayChannel(opened, { answer, writer }, leave),
      };
    },
    abort: () => answer.abort(),
  };
}

/** The upstream speaks another transport, and its session begins with the client's handshake. */
const BRIDGE: Ground = {
  endpoint: BRIDGED_CHANNEL,
  begin({ call, principal, sealed }) {
    const { ports, incoming } = call;
    const session = (): SessionFacts | undefined =>
      ports.openSession(sealed, incoming.upstream, principal);
    return {
      // The exchanges themselves wait.
      awaited: undefined,
      relay: (leave) => relayBridged({ call, principal, session }, leave),
    };
  },
  abort: () => undefined,
};

async function serve(channel: OpenedChannel, ground: Ground): Promise<void> {
  const { call, principal, sealed, session } = channel;
  const { outgoing, ports, incoming } = call;
  call.record.client.session = session.hash;
  call.record.result = { ...call.record.result, status: 'ok', http: 200 };
  outgoing.open(200, STREAM_HEADERS);
  const over = new AbortController();
  // Every call under way for the channel listens.
  setMaxListeners(0, over.signal);
  const announce = (method: string): void =>
    void outgoing.write(encodeSseMessage(JSON.stringify({ jsonrpc: '2.0', method })));
  const { awaited, relay } = ground.begin(channel);
  const leave = ports.channels.enter(session, clientEnd(call, over.signal, awaited));
  const address = channelAddress(call.view.channel.messageUrl, sealed);
  void outgoing.write(encodeSseMessage(address, { event: 'endpoint' }));
  try {
    await holdStream(call, principal, { session: sealed, announce }, relay);
  } finally {
    leave();
    awaited?.close();
    // Nothing can answer in it any more.
    over.abort();
    ports.endSession(sealed, incoming.upstream);
    if (ground === BRIDGE) await endAtUpstream(channel);
  }
}

/** Answers are written by many exchanges, none of which waits for the others: what is unread is counted. */
function clientEnd(
  { outgoing, view }: Call,
  signal: AbortSignal,
  awaited: AwaitedAnswers | undefined,
): ClientEnd {
  const { maxResponseBytes } = view.limits;
  let unread = 0;
  return {
    get isClosed() {
      return outgoing.isClosed;
    },
    get isLagging() {
      return unread > maxResponseBytes;
    },
    write(text) {
      const written = outgoing.write(text);
      if (written === undefined) return;
      unread += text.length;
      return written.then(() => {
        unread -= text.length;
      });
    },
    signal,
    awaited,
  };
}

/** The session that was opened for the channel ends with it. */
async function endAtUpstream({ call, session }: OpenedChannel): Promise<void> {
  const ended = await call.ports.forwardSessionEnd(call.incoming.upstream, session, callerOf(call));
  if (ended.kind === 'answer') ended.release();
}

async function relayChannel(
  call: Call,
  { answer, writer }: { readonly answer: UpstreamAnswer; readonly writer: ChannelWriter },
  leave: AbortSignal,
): Promise<void> {
  const abort = (): void => answer.abort();
  leave.addEventListener('abort', abort, { once: true });
  if (leave.aborted) abort();
  const end = await pumpEvents(answer, termsOfStream(call), async (event) => {
    // Judged under the version that stands now, not the one under which the channel was opened.
    call.view = call.ports.view(call.incoming.upstream) ?? call.view;
    if (event.kind !== 'message') await call.outgoing.write(upkeepOf(event));
    else if (event.data !== '') await writer.write(event.data, leave);
    return call.outgoing.isClosed ? 'stop' : undefined;
  });
  if (end !== 'ended' && end !== 'stopped' && !leave.aborted)
    noteRefusal(call, refuseWith(faultOfEnd(end)));
}
