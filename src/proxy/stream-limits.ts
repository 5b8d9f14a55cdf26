// The limits under which the streams of an upstream are read: the response to one request is bounded in
// total bytes, a long-lived stream in bytes per minute.

import type { StreamLimits } from '../protocol/sse-reader.js';
import type { RequestContext } from './request-context.js';

/** Limits for the response to one request: the sum of its bytes is bounded, as for a body. */
export function responseStreamLimits({
  snapshot,
  incoming,
  ports,
}: RequestContext<'inspection'>): StreamLimits {
  const { maxResponseBytes } = snapshot.limits;
  let sum = 0;
  return {
    maxEventBytes: maxResponseBytes,
    count(bytes) {
      sum += bytes;
      return sum > maxResponseBytes ? 'too-large' : undefined;
    },
    upstream: incoming.upstream,
    loopScheduler: ports.inspection.loopScheduler,
  };
}

const MINUTE_MS = 60_000;

/**
 * Limits for a long-lived stream: its bytes are bounded per minute, because its lifetime is not, and all such streams
 * of an upstream share a rate.
 */
export function longLivedStreamLimits(
  { snapshot, incoming, outgoing, ports }: RequestContext<'inspection'>,
  ended: AbortSignal,
): StreamLimits {
  const { maxResponseBytes, maxStreamBytesPerMinute } = snapshot.limits;
  const { upstream } = incoming;
  const { loopScheduler } = ports.inspection;
  let sinceMs = performance.now();
  let sum = 0;
  return {
    maxEventBytes: maxResponseBytes,
    count(bytes) {
      const nowMs = performance.now();
      if (nowMs - sinceMs >= MINUTE_MS) {
        sinceMs = nowMs;
        sum = 0;
      }
      sum += bytes;
      return sum > maxStreamBytesPerMinute ? 'rate-limited' : undefined;
    },
    pace: (bytes) => loopScheduler.pace(upstream, bytes, () => ended.aborted || outgoing.isClosed),
    upstream,
    loopScheduler,
  };
}
