// Records what the edge refused before anyone was known, as every refusal is recorded: a decision and an
// outcome. Because anyone can cause it, it is counted always and written at a bounded rate.

import type { EdgeRefusal } from '../edge/request.js';
import type { Audit } from '../observe/audit.js';
import type { Metrics } from '../observe/metrics.js';
import { openRecord } from '../policy/open-record.js';

type RefusalPorts = {
  readonly audit: Audit;
  readonly metrics: Metrics;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
};

type Facts = { readonly id: string; readonly address: string };

/** Refusals written in one second; the rest is only counted. */
export const EDGE_REFUSALS_PER_SECOND = 50;
const MS_PER_SECOND = 1000;

/**
 * Makes the recorder. A path or method that does not exist names no upstream and no reason: that is no
 * one's exchange, and nothing is recorded.
 */
export function createEdgeRecorder(
  ports: RefusalPorts,
): (refusal: EdgeRefusal, facts: Facts) => void {
  let second = 0;
  let written = 0;

  function mayWrite(): boolean {
    const now = Math.floor(ports.now() / MS_PER_SECOND);
    if (now !== second) {
      second = now;
      written = 0;
    }
    written += 1;
    return written <= EDGE_REFUSALS_PER_SECOND;
  }

  return ({ upstream, reason, status }, { id, address }) => {
    if (upstream === undefined || reason === undefined) return;
    const record = openRecord({
      id,
      upstream,
      httpMethod: 'POST',
      remoteAddress: address,
      receivedAt: ports.now(),
      startedMs: performance.now(),
    });
    record.decision.reasons.push(reason);
    record.result.http = status;
    ports.metrics.recordRequest(record, 0);
    if (!mayWrite()) return;
    void ports.audit.decision(record);
    ports.audit.outcome(record, 0);
  };
}
