// Opens a session with all members of an endpoint, or discovers them: each is asked by its own exchange, and
// what they say of themselves becomes one answer. A member that does not answer is missing from it.
// Source: MCP 2025-11-25, lifecycle; MCP 2026-07-28, server/discover.

import type { Admitted } from '../../mcp/admitted.js';
import {
  joinDiscover,
  joinInitialize,
  oldestVersion,
  resultOf,
} from '../../mcp/merge/handshakes.js';
import type { RequestId } from '../../mcp/message.js';
import { type Refusal, refuseWith } from '../../policy/refusal.js';
import { type BackendOutcome, type FanOut, findFatal, requestBackends } from './fan-out.js';
import { sealTogether } from './sessions.js';
import type { Verified } from './whole.js';

type Handshakes = ReturnType<typeof handshakesIn>;

/** Answers `initialize` or `server/discover`. */
export async function joinHandshakes(
  verified: Verified,
  { rule, message }: Admitted,
): Promise<Refusal | undefined> {
  const { context } = verified;
  const { backends, server } = context.aggregate;
  if (message.kind !== 'request') return refuseWith('invalid-message');
  const backendRequests = backends.map((backend) => ({ backend }));
  const fan = await requestBackends(verified, backendRequests);
  const handshakes = handshakesIn(fan.outcomes);
  const fatal = findFatal(verified, fan.outcomes, false);
  if (handshakes.length === 0 || fatal !== undefined) {
    fan.fail(fatal);
    return undefined;
  }
  if (rule.method === 'initialize') return openTogether(verified, message.id, handshakes, fan);
  const isComplete = handshakes.length === backends.length;
  fan.send(joinDiscover(handshakes, { id: message.id, server, isWhole: isComplete }));
  return undefined;
}

function openTogether(
  verified: Verified,
  id: RequestId,
  handshakes: Handshakes,
  fan: FanOut,
): Refusal | undefined {
  const { server } = verified.context.aggregate;
  const version = oldestVersion(handshakes);
  const sealed = version && sealTogether(verified, version, handshakes);
  if (version === undefined || sealed === undefined) return refuseWith('upstream-protocol');
  const text = joinInitialize(handshakes, { id, version, server });
  fan.send(text, { 'mcp-session-id': sealed ?? '' });
  return undefined;
}

function handshakesIn(outcomes: readonly BackendOutcome[]) {
  return outcomes.flatMap(({ backendRequest: { backend }, response: { text, headers } }) => {
    const result = text === undefined ? undefined : resultOf(text);
    const sealed = headers['mcp-session-id'] ?? '';
    return result === undefined ? [] : [{ backend, result, sealed }];
  });
}
