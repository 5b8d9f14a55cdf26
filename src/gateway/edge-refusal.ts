// Records what the edge refused before anyone was known. Like failed logins it is counted always and
// written at a bounded rate, because anyone can cause it.

import type { EdgeRefusal } from '../edge/request.js';
import type { Audit } from '../observe/audit.js';
import type { Metrics } from '../observe/metrics.js';
import { openRecord } from '../policy/open-record.js';

type RefusalPorts = {
  readonly audit: Audit;
  readonly metrics: Metrics;
  readonly now: () => number;
};

/** A path or method that does not exist names no upstream and no reason: that is no one's exchange. */
export function recordEdgeRefusal(
  refusal: EdgeRefusal,
  facts: { readonly id: string; readonly address: string },
  ports: RefusalPorts,
): void {
  const { upstream, reason, status } = refusal;
  if (upstream === undefined || reason === undefined) return;
  const record = openRecord({
    id: facts.id,
    upstream,
    httpMethod: 'POST',
    remoteAddress: facts.address,
    receivedAt: ports.now(),
    startedMs: performance.now(),
  });
  record.decision.reasons.push(reason);
  record.result.http = status;
  ports.metrics.recordExchange(record, 0);
  ports.audit.event({
    type: 'auth.failure',
    upstream,
    reason,
    decisionId: facts.id,
    ip: facts.address,
  });
}
