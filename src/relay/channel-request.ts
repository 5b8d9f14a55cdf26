// A request on its way to a server of HTTP+SSE: it leaves under a sealed id, by which whoever holds the stream
// knows what its answer is judged by. A cancellation names the request by the same id.
// Source: MCP 2024-11-05, transports; architecture, "how a response finds its plan".

import { amendAdmitted } from '../mcp/admit.js';
import type { Admitted } from '../mcp/admitted.js';
import { invalidParams } from '../mcp/faults.js';
import { spanOf } from '../mcp/json.js';
import type { RequestId } from '../mcp/message.js';
import type { AwaitedResponses } from '../mcp/transport.js';
import type { Allow } from '../policy/decision.js';
import type { Principal } from '../policy/principal.js';
import { type Refusal, refuseProtocolError, refuseWith } from '../policy/refusal.js';
import { responseObligationsOf } from '../settle/settle.js';
import type { Call } from './call.js';
import { timeLeftMs } from './open-answer.js';
import { tokenOf } from './progress.js';

/** The message under the id that the server is to know it by. */
export function addressRequest(
  call: Call,
  principal: Principal,
  admitted: Admitted,
  allow: Allow,
): Admitted | Refusal {
  const { message } = admitted;
  if (message.kind === 'notification') return addressCancellation(call, admitted);
  if (message.kind !== 'request') return admitted;
  if (awaitedOf(call, admitted)?.isFull === true) return refuseWith('overloaded');
  const { maxResultBytes, profiles } = responseObligationsOf(allow);
  const sealed = seal(call, principal, admitted, {
    id: message.id,
    method: admitted.rule.method,
    target: admitted.target,
    maxResultBytes,
    profiles,
    progressToken: tokenOf(message),
    allowedServerRequests:
      admitted.rule.method === 'initialize' ? admitted.allowedServerRequests : [],
    sentAt: Date.now(),
  });
  if (sealed !== undefined) return underSealed(admitted, sealed);
  const errorContext = { era: admitted.era, id: message.id };
  return refuseProtocolError(
    invalidParams(errorContext, 'The id and the name of what it asks for are too long.'),
  );
}

/**
 * What the server has taken under a sealed id is waited for where this replica holds the stream; what was
 * cancelled is waited for no longer.
 */
export function awaitLateResponse(call: Call, admitted: Admitted): void {
  const { message, rule } = admitted;
  const isCancellation = rule.method === 'notifications/cancelled';
  if (message.kind !== 'request' && !isCancellation) return;
  const awaited = awaitedOf(call, admitted);
  const sealed = sealedAt(admitted, isCancellation ? ['params', 'requestId'] : ['id']);
  if (sealed === undefined) return;
  if (isCancellation) awaited?.drop(sealed);
  else awaited?.add(sealed, timeLeftMs(call));
}

/** What stands there as it left; `undefined` where it left as it came. */
function sealedAt({ text, edits }: Admitted, path: readonly string[]): string | undefined {
  const span = spanOf(text, path);
  const edit = edits.find(({ start }) => start === span?.start);
  return edit === undefined ? undefined : String(JSON.parse(edit.text));
}

/** What the channel still owes, where this replica holds it. */
function awaitedOf({ ports }: Call, { era, session }: Admitted): AwaitedResponses | undefined {
  return era === '2024' && session !== undefined
    ? ports.legacySse.find(session)?.awaited
    : undefined;
}

/** The sealed id is its progress token too: whoever holds the stream knows by it whose progress it is. */
function underSealed(admitted: Admitted, sealed: string): Admitted {
  const addressed = replace(admitted, ['id'], sealed);
  return tokenOf(admitted.message) === undefined
    ? addressed
    : replace(addressed, ['params', '_meta', 'progressToken'], sealed);
}

function seal(
  { ports, incoming }: Call,
  principal: Principal,
  { session }: Admitted,
  sent: Parameters<Call['ports']['legacySse']['sealRequest']>[0],
): string | undefined {
  if (session === undefined) throw new Error('a message of HTTP+SSE has a session');
  return ports.legacySse.sealRequest(sent, { upstream: incoming.upstream, principal, session });
}

/** What this replica did not send stays as it is: no server knows it by the id of the client. */
function addressCancellation(call: Call, admitted: Admitted): Admitted {
  const { message, session, rule } = admitted;
  if (rule.method !== 'notifications/cancelled' || session === undefined) return admitted;
  const id = 'params' in message ? message.params?.['requestId'] : undefined;
  const sealed = isId(id) ? call.ports.legacySse.recallRequest(id, session) : undefined;
  return sealed === undefined ? admitted : replace(admitted, ['params', 'requestId'], sealed);
}

function isId(value: unknown): value is RequestId {
  return typeof value === 'string' || typeof value === 'number';
}

function replace(admitted: Admitted, path: readonly string[], sealed: string): Admitted {
  const span = spanOf(admitted.text, path);
  if (span === undefined) throw new Error('an admitted message has what was read of it');
  return amendAdmitted(admitted, [{ ...span, text: JSON.stringify(sealed) }]);
}
