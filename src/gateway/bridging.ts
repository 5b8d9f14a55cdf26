// Messages of a channel of HTTP+SSE on their way to an upstream of another era: the handshake opens a session
// there, everything else goes on in it. What may leave was decided before, in the form of the channel.
// Source: MCP 2024-11-05, lifecycle; MCP 2025-11-25, lifecycle; mcp-spec.md §2.

import type { Snapshot } from '../exchange-ports.js';
import type { SessionFacts } from '../mcp/admitted.js';
import { eraTowards } from '../mcp/carried.js';
import { BRIDGED_LEGACY_SSE } from '../mcp/eras/channels.js';
import { INVALID_REQUEST } from '../mcp/faults.js';
import { refusal } from '../mcp/translate/to-stateless.js';
import type { LeaveSignal, RoutedOutcome } from '../mcp/transport.js';
import { LATEST_SESSION_VERSION, LEGACY_SSE_VERSION } from '../mcp/versions.js';
import type { Caller } from '../policy/caller.js';
import type { AuthorizedRequest } from '../settle/settle.js';
import { OWN_SESSION } from '../upstream/translate/for-sessions.js';
import { bodyResponse } from '../upstream/translate/own-answer.js';
import type { UpstreamRuntime } from './upstream-runtime.js';

const NOT_INITIALIZED = 'This session has not begun. Initialize first.';
const INITIALIZED = 'This session has begun. It is initialized once.';

export type BridgedMessage = {
  readonly runtime: UpstreamRuntime;
  readonly carried: Snapshot['carried'];
  readonly authorized: AuthorizedRequest;
  readonly by: Caller;
  /** The session of the channel. */
  readonly legacySession: SessionFacts;
  /** Aborted when the channel ends. */
  readonly signal: LeaveSignal | undefined;
};

/** True where the session is of the kind that its upstream has now: a reload may have changed that. */
export function matchesTransport(
  { settings }: UpstreamRuntime,
  session: SessionFacts | undefined,
): boolean {
  const isBridged = session?.upstreamSession === BRIDGED_LEGACY_SSE;
  return isBridged !== (settings.transport === 'http-sse');
}

type Forward = (inner: AuthorizedRequest) => Promise<RoutedOutcome>;

/** Sends a message of a channel; `forward` sends it once it is one of an upstream's session. */
export async function forwardBridged(
  bridgedMessage: BridgedMessage,
  forward: Forward,
): Promise<RoutedOutcome> {
  const { runtime, authorized, legacySession } = bridgedMessage;
  const { bridged } = runtime.translation;
  const { message, rule } = authorized.admitted;
  if (rule.method === 'initialize') return openBridged(bridgedMessage, forward);
  const inner = bridged.find(legacySession);
  if (inner === undefined) {
    return message.kind === 'request'
      ? bodyResponse(200, refusal(message.id, NOT_INITIALIZED, INVALID_REQUEST))
      : bodyResponse(400);
  }
  const outcome = await forward(inSession(authorized, inner));
  if (rule.method === 'notifications/initialized') bridged.begin(legacySession);
  return outcome;
}

/** The handshake. A second one would leave the session of the first behind. */
function openBridged(
  { runtime, carried, authorized, by, legacySession, signal }: BridgedMessage,
  forward: Forward,
): RoutedOutcome | Promise<RoutedOutcome> {
  const { bridged } = runtime.translation;
  const { message } = authorized.admitted;
  if (message.kind === 'request' && bridged.hasOpened(legacySession))
    return bodyResponse(200, refusal(message.id, INITIALIZED, INVALID_REQUEST));
  if (eraTowards('2025', carried) !== '2026') {
    // The version nearest to that of channels: what came later is then not sent.
    const [oldest = LATEST_SESSION_VERSION] = carried?.sessions ?? [];
    return bridged.open(authorized, by, oldest, signal);
  }
  const own = bridged.enter(authorized, OWN_SESSION, LEGACY_SSE_VERSION);
  return own === undefined ? bodyResponse(404) : forward(inSession(authorized, own));
}

function inSession(authorized: AuthorizedRequest, session: SessionFacts): AuthorizedRequest {
  const { admitted } = authorized;
  const { version } = session;
  return { ...authorized, admitted: { ...admitted, era: '2025', version, session } };
}
