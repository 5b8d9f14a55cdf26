// Reads JSON of clients and upstreams under the limits of the upstream, and says what replaces a message that was not
// read.

import { type Refusal, refuseWith } from '../policy/decision.js';
import type { Reason } from '../policy/reasons.js';
import type { ReadError, ReadOutcome, Turns } from '../protocol/json/incremental.js';
import type { JsonReading } from '../protocol/json/json.js';
import type { RequestContext } from './request-context.js';

/** Parses JSON under the upstream's limits. Synchronous unless the message is large. */
export function readMessage(
  { ports, snapshot, incoming, callerKey }: RequestContext<'inspection'>,
  source: Uint8Array | string,
  isServerList?: boolean,
): ReadOutcome | Promise<ReadOutcome> {
  const { maxValues } = snapshot.limits;
  return ports.inspection.readJson(source, {
    upstream: incoming.upstream,
    caller: callerKey,
    maxValues,
    isServerList,
  });
}

/** The turns on the event loop of what is done for the upstream of a request. */
export function turnsOf({ incoming, ports }: RequestContext<'inspection'>): Turns {
  return { upstream: incoming.upstream, loopScheduler: ports.inspection.loopScheduler };
}

/** Whether the message was actually parsed. One that is not valid JSON counts: admission reports that. */
export function isRead(outcome: ReadOutcome): outcome is JsonReading {
  return outcome.ok || (outcome.error !== 'overloaded' && outcome.error !== 'internal');
}

/** The refusal that replaces a message that was not read. */
export function refuseReadError(error: ReadError, method?: string): Refusal {
  // In a text it was mended, so that it stands where nothing can be replaced.
  const what = error === 'lone-surrogate' ? 'half of a surrogate pair in its id' : error;
  const detail = method === undefined ? undefined : `${method}: the answer cannot be read (${what})`;
  return refuseWith(reasonOfReadError(error), { detail });
}

export function reasonOfReadError(error: ReadError): Reason {
  switch (error) {
    case 'too-many-values':
      return 'result-too-large';
    case 'overloaded':
    case 'internal':
      return error;
    case 'malformed-json':
    case 'lone-surrogate':
    case 'duplicate-key':
    case 'prototype-member':
    case 'too-deep':
      return 'upstream-protocol';
  }
}
