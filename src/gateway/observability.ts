// Builds metrics, controls and the audit log together, and what records requests: one recorder for those that were refused
// before the pipeline, one for all others.

import { randomUUID } from 'node:crypto';
import { type Audit, createAudit } from '../audit/audit.js';
import { createAuditFile, createAuditStream } from '../audit/file.js';
import { createRecentDecisions, type RecentDecisions } from '../audit/query.js';
import type { EdgeRefusal } from '../http/request-checks.js';
import { redactForRecord } from '../inspection/capture.js';
import { createEvents, type Emit, type Events } from '../policy/events.js';
import { REASONS } from '../policy/reasons.js';
import { openRecord, type RequestRecord } from '../policy/record.js';
import type { Admission, RecordEvent } from '../policy/security-events.js';
import type { AuditPort } from '../proxy/ports.js';
import type { KeyRing } from '../state/keys.js';
import { type Controls, createControls } from '../telemetry/controls.js';
import { createLogListeners } from '../telemetry/event-log.js';
import type { Log } from '../telemetry/log.js';
import { type Build, createMetrics, type Metrics } from '../telemetry/metrics.js';
import { errorCode } from '../text/wording.js';
import type { Version } from './config-version.js';

type RefusalPorts = {
  readonly audit: Pick<Audit, 'edgeRefusal'>;
  readonly emit: Emit;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
};

type RefusalFacts = { readonly id: string; readonly address: string };

/**
 * Creates the recorder of requests that the edge refused before authentication: a decision and an outcome, like every
 * refusal. Anyone can cause them, so they are always counted but written at a bounded rate. A path or method that does
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
    record.decision.reasons.push(reason);
    record.result.http = status;
    emit('ended', { record, totalMs: 0, suppressed: undefined });
    audit.edgeRefusal(record);
  };
}

export type Observability = Pick<Events, 'emit'> & {
  readonly listenerErrors: Events['errors'];
  /** Records a security event in the audit log. */
  readonly record: RecordEvent;
  readonly metrics: Metrics;
  readonly controls: Controls;
  readonly audit: Audit;
  /** Present where the admin listener is configured, which shows them. */
  readonly recent: RecentDecisions | undefined;
  /** Why a sink fails; `undefined` while all work. */
  auditError(): string | undefined;
};

type ObservabilityPorts = {
  readonly build: Build;
  readonly ring: KeyRing;
  readonly log: Log;
  readonly writeStdout: (text: string) => Promise<void>;
  readonly now: () => number;
};

/** Creates metrics, controls and audit log for the first version. The audit log is not opened before its `start`. */
export function createObservability({ settings, hashes }: Version, ports: ObservabilityPorts): Observability {
  const { build, ring, log, now } = ports;
  const metrics = createMetrics(settings, build);
  const instance = randomUUID();
  let auditFailure: string | undefined;
  const recent = settings.admin === undefined ? undefined : createRecentDecisions();
  const audit = createAudit({
    recent,
    settings: settings.audit,
    instance,
    version: build.version,
    versions: hashes,
    signer: ring,
    now,
    meters: metrics,
    mask: redactForRecord,
    newWriter(sink) {
      return sink.type === 'stdout'
        ? createAuditStream(ports.writeStdout)
        : createAuditFile(sink.path, {
            isSynced: settings.audit.durability === 'synced',
            lease: { instance },
          });
    },
    onState(found) {
      auditFailure = found;
    },
  });
  const { emit, errors: listenerErrors } = createEvents(
    [metrics.listeners, createLogListeners(log, redactForRecord)],
    (event, error) =>
      log.write('error', 'an event could not be counted or logged', { name: event, code: errorCode(error) }),
  );
  const controls = createControls({ now, emit });
  return {
    metrics,
    emit,
    listenerErrors,
    record: audit.event,
    controls,
    audit,
    recent,
    auditError: () => auditFailure,
  };
}

/** Creates the port that writes what is known of a request to the audit log, and reports it. */
export function createAuditPort({ audit, emit }: Pick<Observability, 'audit' | 'emit'>, ring: KeyRing): AuditPort {
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
    keyedHash: ring.hmac,
    recordDecision(record) {
      record.isDecisionWritten = true;
      return audit.decision(record);
    },
    closeRecord(record) {
      const totalMs = performance.now() - record.startedMs;
      const suppressed = isAuthnFailure(record) ? writeAuthnFailure(record) : writeOutcome(record, totalMs);
      emit('ended', { record, totalMs, suppressed });
    },
    report(error, decision) {
      emit('failed', { decision, error });
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
