// Messages of a channel of HTTP+SSE on their way to an upstream of another era: the handshake opens a session
// there, everything else goes on in it. What may leave was decided before, in the form of the channel.
// Source: MCP 2024-11-05, lifecycle; MCP 2025-11-25, lifecycle; mcp-spec.md §2.

import type { View } from '../exchange-ports.js';
import type { SessionFacts } from '../mcp/admitted.js';
import { eraTowards } from '../mcp/carried.js';
import { BRIDGED_CHANNEL } from '../mcp/eras/channels.js';
import { INVALID_REQUEST } from '../mcp/faults.js';
import { refusal } from '../mcp/translate/to-stateless.js';
import type { LeaveSignal, PlacedOutcome } from '../mcp/transport.js';
import { CHANNEL_VERSION, LATEST_SESSION_VERSION } from '../mcp/versions.js';
import type { Caller } from '../policy/caller.js';
import type { Cleared } from '../settle/settle.js';
import { OWN_SESSION } from '../upstream/translate/for-sessions.js';
import { wholeAnswer } from '../upstream/translate/own-answer.js';
import type { UpstreamRuntime } from './upstream-runtime.js';

const NOT_INITIALIZED = 'This session has not begun. Initialize first.';
const INITIALIZED = 'This session has begun. It is initialized once.';

export type BridgedMessage = {
  readonly runtime: UpstreamRuntime;
  readonly carried: View['carried'];
  readonly cleared: Cleared;
  readonly by: Caller;
  /** The session of the channel. */
  readonly channel: SessionFacts;
  /** Aborted when the channel ends. */
  readonly signal: LeaveSignal | undefined;
};

/** True where the session is of the kind that its upstream has now: a reload may have changed that. */
export function isPlaced(
  { settings }: UpstreamRuntime,
  session: SessionFacts | undefined,
): boolean {
  const isBridged = session?.upstreamSession === BRIDGED_CHANNEL;
  return isBridged !== (settings.transport === 'http-sse');
}

type Forward = (inner: Cleared) => Promise<PlacedOutcome>;

/** Sends a message of a channel; `forward` sends it once it is one of an upstream's session. */
export async function forwardBridged(
  bridgedMessage: BridgedMessage,
  forward: Forward,
): Promise<PlacedOutcome> {
  const { runtime, cleared, channel } = bridgedMessage;
  const { bridged } = runtime.translation;
  const { message, rule } = cleared.admitted;
  if (rule.method === 'initialize') return openBridged(bridgedMessage, forward);
  const inner = bridged.find(channel);
  if (inner === undefined) {
    return message.kind === 'request'
      ? wholeAnswer(200, refusal(message.id, NOT_INITIALIZED, INVALID_REQUEST))
      : wholeAnswer(400);
  }
  const outcome = await forward(inSession(cleared, inner));
  if (rule.method === 'notifications/initialized') bridged.begin(channel);
  return outcome;
}

/** The handshake. A second one would leave the session of the first behind. */
function openBridged(
  { runtime, carried, cleared, by, channel, signal }: BridgedMessage,
  forward: Forward,
): PlacedOutcome | Promise<PlacedOutcome> {
  const { bridged } = runtime.translation;
  const { message } = cleared.admitted;
  if (message.kind === 'request' && bridged.hasOpened(channel))
    return wholeAnswer(200, refusal(message.id, INITIALIZED, INVALID_REQUEST));
  if (eraTowards('2025', carried) !== '2026') {
    // The version nearest to that of channels: what came later is then not sent.
    const [oldest = LATEST_SESSION_VERSION] = carried?.sessions ?? [];
    return bridged.open(cleared, by, oldest, signal);
  }
  const own = bridged.enter(cleared, OWN_SESSION, CHANNEL_VERSION);
  return own === undefined ? wholeAnswer(404) : forward(inSession(cleared, own));
}

function inSession(cleared: Cleared, session: SessionFacts): Cleared {
  const { admitted } = cleared;
  const { version } = session;
  return { ...cleared, admitted: { ...admitted, era: '2025', version, session } };
}
