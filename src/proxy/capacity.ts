// What a request takes of the limits before it is read: memory for its body and a concurrency slot of its upstream. Past
// a limit there is a reserve for messages that end or answer something in progress: where all that a caller has in
// progress waits for its reply, the limit must not hold the reply up. Which message it is, is known only once it is read;
// any other that took of the reserve is then refused as if there were none.
// Source: docs/reference/limits.md#what-one-caller-may-use; MCP 2025-11-25, cancellation and elicitation.

import { type Refusal, refuseWith } from '../policy/decision.js';
import type { AdmittedArray } from '../protocol/admission.js';
import { type AdmittedMessage, endsOrAnswers } from '../protocol/admitted-request.js';
import type { Capacity, Incoming } from '../protocol/transport.js';

/** Counts the body as one of its caller. */
export function holdBody({ holdBody: hold }: Pick<Incoming, 'holdBody'>, caller: string): Capacity | undefined {
  return hold === undefined ? 'regular' : hold(caller);
}

/** Takes a slot besides what the body took: of the reserve, where either is. */
export function joinCapacity(body: Capacity | undefined, slot: Capacity | undefined): Capacity | undefined {
  return body === 'reserved' && slot !== undefined ? body : body && slot;
}

/** The refusal of a message that took none of the capacity, or of the reserve without a right to it. */
export function refuseOverLimit(
  capacity: Capacity | undefined,
  admitted: AdmittedMessage | AdmittedArray,
): Refusal | undefined {
  if (capacity === 'regular') return undefined;
  return capacity === 'reserved' && mayUseReserve(admitted) ? undefined : refuseWith('overloaded');
}

function mayUseReserve(admitted: AdmittedMessage | AdmittedArray): boolean {
  return admitted.kind === 'array' ? !admitted.hasRequests : endsOrAnswers(admitted);
}
