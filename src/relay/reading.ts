// Reads what an upstream sent as JSON, under the bounds of that upstream, and says why it may not pass where
// it could not be read.

import type { JsonReading } from '../mcp/json.js';
import type { ReadFault, ReadOutcome } from '../mcp/json-reader.js';
import type { Reason } from '../policy/reasons.js';
import { type Refusal, refuseWith } from '../policy/refusal.js';
import type { Call } from './call.js';

/** At once, unless it is large. */
export function readMessage(
  { ports, view, incoming }: Call,
  source: Uint8Array | string,
): ReadOutcome | Promise<ReadOutcome> {
  const { maxValues } = view.limits;
  return ports.readJson(source, { upstream: incoming.upstream, maxValues });
}

/** Whether somebody read it, be it to find that it is none: that is for admission to say. */
export function isRead(outcome: ReadOutcome): outcome is JsonReading {
  return outcome.ok || (outcome.fault !== 'overloaded' && outcome.fault !== 'internal');
}

/** The refusal in place of a message that was not read. */
export function refuseUnread(fault: ReadFault): Refusal {
  return refuseWith(reasonUnread(fault));
}

export function reasonUnread(fault: ReadFault): Reason {
  switch (fault) {
    case 'too-many-values':
      return 'result-too-large';
    case 'overloaded':
    case 'internal':
      return fault;
    case 'malformed-json':
    case 'duplicate-key':
    case 'too-deep':
      return 'upstream-protocol';
  }
}
