// The channel of a session of HTTP+SSE: one stream, whose first event says where to post, and on which every
// answer and every word of the server comes. Opened under the same controls as every stream: who, record,
// room; ended with its client, its token, its session or its upstream.
// Source: MCP 2024-11-05, transports, HTTP with SSE; contract §2.

import { setMaxListeners } from 'node:events';
import type { SessionFacts } from '../mcp/admitted.js';
import { BRIDGED_LEGACY_SSE, legacySseAddress, probesForLegacySse } from '../mcp/eras/channels.js';
import { encodeSseMessage } from '../mcp/sse.js';
import type { AwaitedResponses, ClientEnd, UpstreamResponse } from '../mcp/transport.js';
import { LEGACY_SSE_VERSION } from '../mcp/versions.js';
import type { Principal } from '../policy/principal.js';
import { type Refusal, refuseProtocolError, refuseWith } from '../policy/refusal.js';
import { notAcceptable, takesStream } from './acceptance.js';
import { relayBridged } from './bridged-channel.js';
import { type Call, callerOf, noteRefusal } from './call.js';
import { createLegacySseWriter, type LegacySseWriter } from './channel-answer.js';
import { pumpEvents, termsOfStream } from './events.js';
import { holdStream } from './held-stream.js';
import { listen, noteSession, putOnRecord } from './listen.js';
import { reasonOfEnd, STREAM_HEADERS, upkeepOf } from './stream-writer.js';

/** Opens the stream that a GET asks for: a channel, or one of a session. */
export function openStream(call: Call, principal: Principal): Promise<Refusal | undefined> {
  return opensLegacyStream(call) ? openLegacyStream(call, principal) : listen(call, principal);
}

/** True on a channel's own path, and on the upstream's own for a client that probes for this transport. */
function opensLegacyStream({ incoming: { legacySsePath, headers } }: Call): boolean {
  return legacySsePath === 'events' || probesForLegacySse(headers);
}

/** What a channel stands on at the upstream: where messages go, and who tells what is said there. */
type LegacySseUpstream = {
  readonly messageEndpoint: string;
  begin(stream: OpenedLegacyStream): Begun;
  abort(): void;
};

/** A channel on which both sides are: what is owed there apart from every exchange, and what tells it. */
type Begun = {
  readonly awaited: AwaitedResponses | undefined;
  relay(leave: AbortSignal): Promise<void>;
};

type OpenedLegacyStream = {
  readonly call: Call;
  readonly principal: Principal;
  readonly sealed: string;
  readonly session: SessionFacts;
};

/** Opens a channel on both sides and keeps it until one of them leaves. */
async function openLegacyStream(call: Call, principal: Principal): Promise<Refusal | undefined> {
  const { incoming, ports } = call;
  const { upstream } = incoming;
  noteSession(call, { version: LEGACY_SSE_VERSION, upstreamSession: undefined }, 'GET');
  if (!takesStream(incoming)) return refuseProtocolError(notAcceptable({ era: '2024' }));
  if (!ports.hasStreamQuota(upstream, principal)) return refuseWith('overloaded');
  if (!(await putOnRecord(call))) return refuseWith('audit-unavailable');
  const upstreamSide = call.snapshot.legacySse.isDirect ? await openDirect(call) : BRIDGE;
  if ('kind' in upstreamSide) return upstreamSide;
  const facts = { version: LEGACY_SSE_VERSION, upstreamSession: upstreamSide.messageEndpoint };
  const sealed = ports.sealSession(facts, upstream, principal);
  const session = ports.openSession(sealed, upstream, principal);
  if (session === undefined) {
    upstreamSide.abort();
    return refuseWith('internal');
  }
  await serve({ call, principal, sealed, session }, upstreamSide);
  return undefined;
}

async function openDirect(call: Call): Promise<LegacySseUpstream | Refusal> {
  const { incoming, ports } = call;
  const outcome = await ports.legacySse.open(incoming.upstream, callerOf(call), incoming.signal);
  if (outcome.kind === 'fault') return refuseWith(outcome.reason);
  const { messageEndpoint, response } = outcome;
  return {
    messageEndpoint,
    begin({ call: opened, principal, session }) {
      const writer = createLegacySseWriter(opened, principal, session);
      return {
        awaited: writer.awaited,
        relay: (leave) => relayLegacyStream(opened, { answer: response, writer }, leave),
      };
    },
    abort: () => response.abort(),
  };
}

/** The upstream speaks another transport, and its session begins with the client's handshake. */
const BRIDGE: LegacySseUpstream = {
  messageEndpoint: BRIDGED_LEGACY_SSE,
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

async function serve(stream: OpenedLegacyStream, upstreamSide: LegacySseUpstream): Promise<void> {
  const { call, principal, sealed, session } = stream;
  const { outgoing, ports, incoming } = call;
  call.record.client.session = session.hash;
  call.record.result = { ...call.record.result, status: 'ok', http: 200 };
  outgoing.open(200, STREAM_HEADERS);
  const over = new AbortController();
  // Every call under way for the channel listens.
  setMaxListeners(0, over.signal);
  const announce = (method: string): void =>
    void outgoing.write(encodeSseMessage(JSON.stringify({ jsonrpc: '2.0', method })));
  const { awaited, relay } = upstreamSide.begin(stream);
  const leave = ports.legacySse.enter(session, clientEnd(call, over.signal, awaited));
  const address = legacySseAddress(call.snapshot.legacySse.messageUrl, sealed);
  void outgoing.write(encodeSseMessage(address, { event: 'endpoint' }));
  try {
    await holdStream(call, principal, { session: sealed, announce }, relay);
  } finally {
    leave();
    awaited?.close();
    // Nothing can answer in it any more.
    over.abort();
    ports.endSession(sealed, incoming.upstream);
    if (upstreamSide === BRIDGE) await endAtUpstream(stream);
  }
}

/** Answers are written by many exchanges, none of which waits for the others: what is unread is counted. */
function clientEnd(
  { outgoing, snapshot }: Call,
  signal: AbortSignal,
  awaited: AwaitedResponses | undefined,
): ClientEnd {
  const { maxResponseBytes } = snapshot.limits;
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
async function endAtUpstream({ call, session }: OpenedLegacyStream): Promise<void> {
  const ended = await call.ports.forwardSessionEnd(call.incoming.upstream, session, callerOf(call));
  if (ended.kind === 'answer') ended.release();
}

async function relayLegacyStream(
  call: Call,
  {
    answer: response,
    writer,
  }: { readonly answer: UpstreamResponse; readonly writer: LegacySseWriter },
  leave: AbortSignal,
): Promise<void> {
  const abort = (): void => response.abort();
  leave.addEventListener('abort', abort, { once: true });
  if (leave.aborted) abort();
  const end = await pumpEvents(response, termsOfStream(call), async (event) => {
    // Judged under the version that stands now, not the one under which the channel was opened.
    call.snapshot = call.ports.snapshot(call.incoming.upstream) ?? call.snapshot;
    if (event.kind !== 'message') await call.outgoing.write(upkeepOf(event));
    else if (event.data !== '') await writer.write(event.data, leave);
    return call.outgoing.isClosed ? 'stop' : undefined;
  });
  if (end !== 'ended' && end !== 'stopped' && !leave.aborted)
    noteRefusal(call, refuseWith(reasonOfEnd(end)));
}
