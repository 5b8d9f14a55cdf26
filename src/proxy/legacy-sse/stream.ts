// The stream of a legacy SSE session: its first event names the message endpoint, and all responses and server
// messages arrive on it. It is opened under the same controls as every stream (authentication, record, quota)
// and ends with its client, token, session or upstream. If the upstream speaks another era, the upstream's
// session stream is relayed once it exists, and responses are written by their own requests
// (legacy-sse/messages.ts).
// Source: MCP 2024-11-05, transports, HTTP with SSE; MCP 2025-11-25, transports, listening for messages;
// docs/reference/listeners.md#paths.

import { setMaxListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Refusal, refuseProtocolError, refuseWith } from '../../policy/decision.js';
import { callerKeyOf, type Principal } from '../../policy/principal.js';
import { fold } from '../../policy/record.js';
import { NO_SESSION_ID, type SessionFacts, type SessionTarget } from '../../protocol/admitted-request.js';
import { acceptsEventStream } from '../../protocol/headers.js';
import { notAcceptable } from '../../protocol/responses.js';
import { encodeSseMessage, isEventStream, isExcess, type StreamLimits } from '../../protocol/sse.js';
import type { ClientEnd, ForwardOutcome, PendingResponses, UpstreamResponse } from '../../protocol/transport.js';
import { errorOfStatus } from '../../protocol/upstream-status.js';
import { legacySseAddress, probesForLegacySse } from '../../protocol/versions/legacy-sse.js';
import { LEGACY_SSE_VERSION } from '../../protocol/versions/revisions.js';
import { authorize, enforceStreamQuota, passThrough, type Stages } from '../authorization.js';
import { openSessionStream, resourcesOf, sessionFacts } from '../features/session-streams.js';
import { refusalFacts } from '../record-facts.js';
import { completeRefusal } from '../refusals.js';
import { callerOf, type RequestContext, type VerifiedCall } from '../request-context.js';
import { encodeKeepAlive, longLivedStreamLimits, refuseEnd } from '../sse-response.js';
import { aborted, keepStreamOpen, type RelayPorts, relayHeldStream } from '../stream-lifetime.js';
import { createUnsolicitedCheck } from '../upstream-messages.js';
import { createLegacySseWriter, type LegacySseWriter } from './messages.js';

/** The delay before the upstream's stream is reopened, which a legacy SSE client cannot do itself. */
const REOPEN_DELAY_MS = 1_000;
/** Upper bound of that delay, which doubles with each failure. */
const MAX_REOPEN_DELAY_MS = 30_000;
const CLIENT_ERROR = 400;
const SERVER_ERROR = 500;

/** What a bridged stream needs. */
type BridgedStream = VerifiedCall<RelayPorts> & {
  /** The session in its current form: the allowed server requests are known only after `initialize`. */
  readonly session: () => SessionFacts | undefined;
};

/** Relays until either side leaves. If the upstream loses the session, the client's stream ends too. */
async function relayBridged(bridged: BridgedStream, ended: AbortSignal): Promise<void> {
  const limits = longLivedStreamLimits(bridged.call, ended);
  const position: Position = { lastEventId: undefined, waitMs: REOPEN_DELAY_MS, limits };
  while (!ended.aborted && (await relayNextStream(bridged, ended, position))) {
    await sleep(position.waitMs, undefined, { signal: ended, ref: false }).catch(() => undefined);
  }
}

/** The event after which the upstream's next stream resumes, and the delay before it is opened, in milliseconds. */
type Position = {
  lastEventId: string | undefined;
  waitMs: number;
  /** The limits that the successive upstream streams share. */
  readonly limits: StreamLimits;
};

/** Relays one stream of the upstream, if it offers one. False if no other is to be opened. */
async function relayNextStream(bridged: BridgedStream, ended: AbortSignal, position: Position): Promise<boolean> {
  const outcome = await open(bridged, ended, position.lastEventId);
  if (outcome === undefined) return false;
  position.waitMs = Math.min(2 * position.waitMs, MAX_REOPEN_DELAY_MS);
  if (outcome.kind === 'error') return true;
  if (isEventStream(outcome)) {
    position.waitMs = REOPEN_DELAY_MS;
    return relayStream(bridged, outcome, ended, position);
  }
  if (!isRefusal(outcome.status)) return true;
  if (!(await isSessionAlive(bridged))) return false;
  // A server without such a stream. The client's stays open for what the gateway itself announces.
  await aborted(ended);
  return true;
}

/** Whether the status refuses the stream, rather than asking for another attempt. */
function isRefusal(status: number): boolean {
  return status >= CLIENT_ERROR && status < SERVER_ERROR && errorOfStatus(status) === undefined;
}

async function isSessionAlive({ call, principal, session }: BridgedStream): Promise<boolean> {
  const facts = session();
  if (facts === undefined) return false;
  const caller = callerOf(call, principal);
  return call.ports.upstreams.pingSession(call.incoming.upstream, facts, caller);
}

async function open(
  { call, principal, session }: BridgedStream,
  ended: AbortSignal,
  lastEventId: string | undefined,
): Promise<ForwardOutcome | undefined> {
  const facts = session();
  if (facts === undefined) return undefined;
  const { upstream } = call.incoming;
  const outcome = await call.ports.upstreams.openStream(upstream, {
    session: facts,
    caller: callerOf(call, principal),
    signal: ended,
    lastEventId,
    readableOf: resourcesOf(call, principal, facts),
  });
  if (outcome.kind === 'response' && !isEventStream(outcome)) outcome.release();
  return outcome;
}

/** Relays one stream until it ends; false if the gateway ended it because it exceeded a limit. */
async function relayStream(
  { call, principal, session }: BridgedStream,
  response: UpstreamResponse,
  ended: AbortSignal,
  position: Position,
): Promise<boolean> {
  const facts = session();
  if (facts === undefined) {
    response.abort();
    return true;
  }
  const checkUnsolicited = createUnsolicitedCheck(call, principal, facts);
  const { limits } = position;
  const end = await relayHeldStream(call, response, { ended, limits }, async (event) => {
    if (event.kind !== 'message') return;
    position.lastEventId = event.id ?? position.lastEventId;
    // An event without data only moves the position on.
    const text = event.data === '' ? undefined : await checkUnsolicited(event.data);
    // If access was revoked during the check, nothing more is written.
    if (text !== undefined && !ended.aborted) await call.outgoing.write(encodeSseMessage(text));
  });
  if (!isExcess(end) || ended.aborted) return true;
  fold(call.record, refusalFacts(call.record, refuseEnd(call, end)));
  return false;
}

/** The ports that a stream of this transport may use. */
type LegacyPorts = RelayPorts | 'legacySse';

/** Opens the stream that a GET requests: a legacy SSE stream, or one of a session. */
export function openGetStream(call: RequestContext<LegacyPorts>, principal: Principal): Promise<Refusal | undefined> {
  return opensLegacyStream(call) ? openLegacyStream(call, principal) : openSessionStream(call, principal);
}

/** True on the path for legacy SSE, and on the upstream's own path for a client that probes for this transport. */
function opensLegacyStream({ incoming: { legacySsePath, headers } }: RequestContext): boolean {
  return legacySsePath === 'events' || probesForLegacySse(headers);
}

/** The upstream side of a stream: where messages are posted, and how its messages are relayed. */
type LegacySseUpstream = {
  readonly target: SessionTarget;
  begin(stream: OpenedLegacyStream): StartedRelay;
  abort(): void;
};

/** A stream with both sides open: the responses it waits for, and the relay of its messages. */
type StartedRelay = {
  readonly pendingResponses: PendingResponses | undefined;
  relay(leave: AbortSignal): Promise<void>;
  /** Refuses what is waited for, because the gateway stops. */
  refusePending?(): Promise<void>;
};

type OpenedLegacyStream = VerifiedCall<LegacyPorts> & {
  readonly sealed: string;
  readonly session: SessionFacts;
  readonly hold: ClientEnd['hold'];
};

/** Opens the stream on both sides and keeps it until one of them leaves. */
async function openLegacyStream(call: RequestContext<LegacyPorts>, principal: Principal): Promise<Refusal | undefined> {
  const { incoming, ports } = call;
  const { upstream } = incoming;
  const opening = await authorize(call, LEGACY_STREAM, { call, principal });
  if ('kind' in opening) return opening;
  const upstreamSide = call.snapshot.legacySse.isDirect ? await openDirect(opening) : BRIDGE;
  if ('kind' in upstreamSide) return upstreamSide;
  const facts = { version: LEGACY_SSE_VERSION, target: upstreamSide.target };
  const sealed = ports.sessions.seal(facts, upstream, principal);
  const session = ports.sessions.open(sealed, upstream, principal);
  if (session === undefined) {
    upstreamSide.abort();
    return refuseWith('internal');
  }
  const { hold, whenIdle } = createHolds();
  const ended = await serve({ call, principal, sealed, session, hold }, upstreamSide, whenIdle);
  if (ended !== undefined) upstreamSide.abort();
  return ended;
}

/** The session begins with its stream, so there is nothing to decide but whether the client can read one. */
const LEGACY_STREAM: Stages<VerifiedCall<LegacyPorts>> = {
  decide(opening) {
    const { call } = opening;
    const accepts = acceptsEventStream(call.incoming.headers);
    return {
      outcome: accepts ? opening : refuseProtocolError(notAcceptable({})),
      facts: [sessionFacts({ version: LEGACY_SSE_VERSION, target: NO_SESSION_ID }, 'GET')],
    };
  },
  inspect: passThrough,
  enforce: enforceStreamQuota,
};

async function openDirect({ call, principal }: VerifiedCall<LegacyPorts>): Promise<LegacySseUpstream | Refusal> {
  const { incoming, ports } = call;
  const caller = callerOf(call, principal);
  const outcome = await ports.upstreams.openLegacyStream(incoming.upstream, caller, incoming.signal);
  if (outcome.kind === 'error') return refuseWith(outcome.reason);
  const { messageEndpoint, response } = outcome;
  return {
    target: { kind: 'legacy-sse', messageEndpoint },
    begin({ session, hold }) {
      const writer = createLegacySseWriter(call, principal, session, hold);
      return {
        pendingResponses: writer.pendingResponses,
        refusePending: writer.refusePending,
        relay: (ended) => relayLegacyStream(call, { response, writer }, ended),
      };
    },
    abort: () => response.abort(),
  };
}

/** The upstream side if the upstream speaks another transport. Its session begins with the client's handshake. */
const BRIDGE: LegacySseUpstream = {
  target: { kind: 'bridged' },
  begin({ call, principal, sealed }) {
    const { ports, incoming } = call;
    const session = (): SessionFacts | undefined => ports.sessions.open(sealed, incoming.upstream, principal);
    return {
      // Each pipeline run waits for its own response.
      pendingResponses: undefined,
      relay: (ended) => relayBridged({ call, principal, session }, ended),
    };
  },
  abort: () => undefined,
};

/** Counts what keeps a stream open; `whenIdle` calls its function once that is nothing. */
function createHolds(): Pick<ClientEnd, 'hold'> & { whenIdle(then: () => void): void } {
  let held = 0;
  let notify: (() => void) | undefined;
  // Not at once: one hold may follow another in the same turn.
  const check = (): void => void setImmediate(() => held === 0 && notify?.());
  return {
    hold() {
      let isHeld = true;
      held += 1;
      return () => {
        if (!isHeld) return;
        isHeld = false;
        held -= 1;
        if (notify !== undefined) check();
      };
    },
    whenIdle(then) {
      notify = then;
      check();
    },
  };
}

async function serve(
  stream: OpenedLegacyStream,
  upstreamSide: LegacySseUpstream,
  whenIdle: (then: () => void) => void,
): Promise<Refusal | undefined> {
  const { call, principal, sealed, session, hold } = stream;
  const { outgoing, ports } = call;
  fold(call.record, { client: { session: session.hash } });
  const streamEnd = new AbortController();
  // Every request in progress on the stream listens to this signal.
  setMaxListeners(0, streamEnd.signal);
  const announce = (method: string): void =>
    void outgoing.write(encodeSseMessage(JSON.stringify({ jsonrpc: '2.0', method })));
  const { pendingResponses, relay, refusePending } = upstreamSide.begin(stream);
  const streamTerms = { principal, session: sealed, announce, whenIdle };
  try {
    return await keepStreamOpen(call, streamTerms, async (ended) => {
      const unregister = ports.legacySse.registerClientEnd(
        session,
        clientEnd(call, streamEnd.signal, pendingResponses, hold),
      );
      const address = legacySseAddress(call.snapshot.legacySse.messageUrl, sealed);
      void outgoing.write(encodeSseMessage(address, { event: 'endpoint' }));
      await relay(ended).finally(unregister);
      if (call.incoming.shutdown?.isCut === true) await refusePending?.();
    });
  } finally {
    pendingResponses?.close();
    // No message can be answered on this stream any more.
    streamEnd.abort();
    ports.sessions.end(sealed, callerKeyOf(principal));
    if (upstreamSide === BRIDGE) await endAtUpstream(stream);
  }
}

/** Many requests write to the stream without waiting for each other, so the characters not yet read are counted. */
function clientEnd(
  { outgoing, snapshot }: RequestContext,
  signal: AbortSignal,
  pendingResponses: PendingResponses | undefined,
  hold: ClientEnd['hold'],
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
    pendingResponses,
    hold,
  };
}

/** Ends the upstream session that was opened for this stream. */
async function endAtUpstream({ call, principal, session }: OpenedLegacyStream): Promise<void> {
  const caller = callerOf(call, principal);
  const ended = await call.ports.upstreams.endSession(call.incoming.upstream, session, caller);
  if (ended.kind === 'response') ended.release();
}

async function relayLegacyStream(
  call: RequestContext<'inspection' | 'upstreams'>,
  { response, writer }: { readonly response: UpstreamResponse; readonly writer: LegacySseWriter },
  ended: AbortSignal,
): Promise<void> {
  const end = await relayHeldStream(call, response, { ended }, async (event) => {
    if (event.kind !== 'message') await call.outgoing.write(encodeKeepAlive(event));
    else if (event.data !== '') await writer.write(event.data, ended);
  });
  if (end !== 'ended' && end !== 'stopped' && !ended.aborted)
    fold(call.record, refusalFacts(call.record, completeRefusal(call, refuseEnd(call, end))));
}
