// What records requests: one recorder for those that were refused before the pipeline, one for all others. A decision is
// awaited, and what cannot be recorded is refused; what ended is reported as an event, for metrics and the process log.

import { randomUUID } from 'node:crypto';
import type { Emit } from '../policy/events.js';
import { REASONS, type Reason } from '../policy/reasons.js';
import { fold, openRecord, type RequestRecord } from '../policy/record.js';
import type { Admission } from '../policy/security-events.js';
import type { Audit } from './audit.js';

type RefusalPorts = {
  readonly audit: Pick<Audit, 'edgeRefusal'>;
  readonly emit: Emit;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
};

/** A path or method that does not exist has no reason. */
type EdgeRefusal = {
  readonly upstream: string | undefined;
  readonly reason: Reason | undefined;
  readonly status: number;
};

type RefusalFacts = { readonly id: string; readonly address: string };

/**
 * Creates the recorder of requests that the edge refused before authentication: a decision and an outcome, like every
 * refusal; before the audit log is open, a line of the process log. Anyone can cause them, so they are always counted but
 * written at a bounded rate. A path or method that does
 * not exist has no reason and is not recorded. What was refused before its path was known has an empty upstream.
 */
export function createEdgeRecorder({
  audit,
  emit,
  now,
}: RefusalPorts): (refusal: EdgeRefusal, facts: RefusalFacts) => void {
  return ({ upstream, reason, status }, { id, address }) => {
    if (reason === undefined) return;
    const record = openRecord({
      id,
      upstream: upstream ?? '',
      httpMethod: 'POST',
      remoteAddress: address,
      receivedAt: now(),
      startedMs: performance.now(),
    });
    fold(record, { reason, result: { http: status } });
    emit('ended', { record, totalMs: 0, suppressed: audit.edgeRefusal(record) });
  };
}

type RecorderPorts = { readonly audit: Pick<Audit, 'decision' | 'outcome' | 'event'>; readonly emit: Emit };

type KeyedHash = (purpose: string, text: Uint8Array | string) => string;

/** Creates the port that writes what is known of a request to the audit log, and reports it. */
export function createRequestRecorder({ audit, emit }: RecorderPorts, keyedHash: KeyedHash) {
  function writeAuthnFailure(record: RequestRecord): Admission {
    const [reason = 'internal'] = record.decision.reasons;
    emit('unauthenticated', { reason });
    return audit.event({
      type: 'auth.failure',
      upstream: record.upstream,
      reason,
      decisionId: record.id,
      ip: record.client.ip,
      refusedToken: record.refusedToken,
    });
  }

  function writeOutcome(record: RequestRecord, totalMs: number): Admission {
    if (record.isDecisionWritten !== true) void audit.decision(record, false);
    audit.outcome(record, totalMs);
    return 0;
  }

  return {
    newDecisionId: randomUUID,
    keyedHash,
    /** False if the decision cannot be made durable: then the request is refused (`audit-unavailable`). */
    recordDecision(record: RequestRecord): Promise<boolean> {
      record.isDecisionWritten = true;
      return audit.decision(record);
    },
    closeRecord(record: RequestRecord, hasClientLeft = false): void {
      const totalMs = performance.now() - record.startedMs;
      const suppressed = isAuthnFailure(record) ? writeAuthnFailure(record) : writeOutcome(record, totalMs);
      emit('ended', { record, totalMs, suppressed });
      if (hasClientLeft) emit('clientLeft', { record });
      // Anyone can cause refusals of unknown callers, so those above the rate of the audit log make no span either.
      if (record.trace?.isSampled === true && suppressed !== undefined) emit('traced', { record, totalMs });
    },
    endSpan(record: RequestRecord): void {
      emit('traced', { record, totalMs: performance.now() - record.startedMs });
    },
    report(error: unknown, decision: string, trace?: RequestRecord['trace']): void {
      emit('failed', { decision, trace, error });
    },
  };
}

/**
 * A refusal before authentication succeeded, also because revocations or used proofs could not be looked up: counted and
 * written separately, so that a flood leaves the log usable.
 */
function isAuthnFailure(record: RequestRecord): boolean {
  const [reason] = record.decision.reasons;
  if (record.principal !== undefined || reason === undefined) return false;
  return reason === 'store-unavailable' || REASONS[reason].stage === 'authn';
}
