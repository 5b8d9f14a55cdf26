// Opens the record of an exchange: every field has its place from the start, so that all records have
// one shape and a station that never ran leaves "nothing known", not a hole.

import type { Incoming } from '../mcp/transport.js';
import type { RequestRecord } from './record.js';

const NO_GROUPS: readonly string[] = Object.freeze([]);

/** A record in which nothing has been decided: a refusal until a station says otherwise. */
export function openRecord(
  incoming: Pick<
    Incoming,
    'id' | 'receivedAt' | 'startedMs' | 'upstream' | 'aggregate' | 'httpMethod' | 'remoteAddress'
  >,
): RequestRecord {
  return {
    id: incoming.id,
    receivedAt: incoming.receivedAt,
    startedMs: incoming.startedMs,
    upstream: incoming.upstream,
    aggregate: incoming.aggregate,
    httpMethod: incoming.httpMethod,
    versions: undefined,
    isDecisionWritten: false,
    principal: undefined,
    groupsUsed: NO_GROUPS,
    client: {
      ip: incoming.remoteAddress,
      era: undefined,
      version: undefined,
      session: undefined,
      selfReported: undefined,
    },
    target: {
      method: undefined,
      receivedMethod: undefined,
      kind: undefined,
      name: undefined,
      definition: undefined,
      pin: undefined,
      requestId: undefined,
    },
    args: undefined,
    decision: {
      verdict: 'deny',
      action: 'refused',
      stage: 'edge',
      policy: undefined,
      rule: undefined,
      reasons: [],
    },
    findings: [],
    result: {
      status: 'none',
      http: 0,
      rpcCode: undefined,
      bytes: 0,
      digest: undefined,
      list: undefined,
    },
    latency: { auth: 0, policy: 0, inspect: 0, upstream: 0 },
    trace: undefined,
  };
}
