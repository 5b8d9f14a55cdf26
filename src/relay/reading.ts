// Reads what an upstream sent as JSON, under the bounds of that upstream, and says why it may not pass where
// it could not be read.

import type { JsonReading } from '../mcp/json.js';
import type { ReadError, ReadOutcome } from '../mcp/json-reader.js';
import type { Reason } from '../policy/reasons.js';
import { type Refusal, refuseWith } from '../policy/refusal.js';
import type { Call } from './call.js';

/** At once, unless it is large. */
export function readMessage(
  { ports, snapshot, incoming }: Call,
  source: Uint8Array | string,
): ReadOutcome | Promise<ReadOutcome> {
  const { maxValues } = snapshot.limits;
  return ports.readJson(source, { upstream: incoming.upstream, maxValues });
}

/** Whether somebody read it, be it to find that it is none: that is for admission to say. */
export function isRead(outcome: ReadOutcome): outcome is JsonReading {
  return outcome.ok || (outcome.error !== 'overloaded' && outcome.error !== 'internal');
}

/** The refusal in place of a message that was not read. */
export function refuseUnread(error: ReadError): Refusal {
  return refuseWith(reasonUnread(error));
}

export function reasonUnread(error: ReadError): Reason {
  switch (error) {
    case 'too-many-values':
      return 'result-too-large';
    case 'overloaded':
    case 'internal':
      return error;
    case 'malformed-json':
    case 'duplicate-key':
    case 'too-deep':
      return 'upstream-protocol';
  }
}
