// Builds metrics, the process log's listeners, controls and the audit log together, and the events between them and the features.

import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type Audit, createAudit } from '../audit/audit.js';
import { createAuditFile, createAuditStream } from '../audit/file.js';
import { createRecentDecisions, type RecentDecisions } from '../audit/query.js';
import type { VolumeSpace } from '../audit/sink.js';
import { redactForRecord } from '../inspection/capture.js';
import { createEvents, type Events } from '../policy/events.js';
import type { RecordApproval, RecordEvent } from '../policy/security-events.js';
import type { KeyRing } from '../state/derived-keys.js';
import { type Controls, createControls } from '../telemetry/controls.js';
import { createLogListeners } from '../telemetry/event-log.js';
import type { Log } from '../telemetry/log.js';
import { type Build, createMetrics, type Metrics } from '../telemetry/metrics.js';
import { errorCode } from '../text/wording.js';
import type { Version } from './config-version.js';

export type Observability = Pick<Events, 'emit' | 'listen'> & {
  readonly listenerErrors: Events['errors'];
  /** Records a security event in the audit log. */
  readonly record: RecordEvent;
  readonly recordApproval: RecordApproval;
  readonly metrics: Metrics;
  readonly controls: Controls;
  readonly audit: Audit;
  /** Which gateway this is, as in the audit log. */
  readonly replica: { readonly instance: string; readonly host: string };
  /** Present where the admin listener is configured, which shows them. */
  readonly recent: RecentDecisions | undefined;
  /** Why a sink fails; `undefined` while all work. */
  auditError(): string | undefined;
  /** What somebody should look at while all sinks work, such as a second writer. */
  auditWarning(): string | undefined;
  /** The space of the volumes of the audit files, by sink. */
  auditSpace(): ReadonlyMap<string, VolumeSpace>;
};

/** A checkpoint of another gateway may come so much later than it is due. */
const LATE_MS = 10_000;

type ObservabilityPorts = {
  readonly build: Build;
  readonly ring: KeyRing;
  readonly log: Log;
  readonly writeStdout: (text: string) => Promise<void>;
  readonly now: () => number;
  /** Whether a receiver still needs an audit file. */
  readonly isUndelivered: (path: string) => Promise<boolean>;
};

/** Creates metrics, controls and audit log for the first version. The audit log is not opened before its `start`. */
export function createObservability({ settings, hashes }: Version, ports: ObservabilityPorts): Observability {
  const { build, ring, log, now } = ports;
  const metrics = createMetrics(settings, build);
  const run = randomUUID();
  const host = hostname();
  // No two gateways of a host listen on one port.
  const replica = { instance: `${host}:${settings.listeners.data.port}`, host, run };
  let auditFailure: string | undefined;
  let auditWarning: string | undefined;
  const auditSpace = new Map<string, VolumeSpace>();
  const recent = settings.admin === undefined ? undefined : createRecentDecisions();
  const audit = createAudit({
    recent,
    settings: settings.audit,
    replica,
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
            instance: run,
            isSynced: settings.audit.durability === 'synced',
            rotation: { bytes: settings.audit.rotate.size, ageMs: settings.audit.rotate.ageMs },
            quietMs: 2 * settings.audit.checkpointEveryMs + LATE_MS,
            now,
          });
    },
    onState(found) {
      auditFailure = found;
    },
    onWarning(found) {
      auditWarning = found;
    },
    onSpace(sink, space) {
      auditSpace.set(sink, space);
    },
    isUndelivered: ports.isUndelivered,
  });
  const {
    emit,
    listen,
    errors: listenerErrors,
  } = createEvents([metrics.listeners, createLogListeners(log, redactForRecord)], (event, error) =>
    log.write('error', 'an event could not be counted or logged', { name: event, code: errorCode(error) }),
  );
  const controls = createControls({ now, emit });
  return {
    metrics,
    emit,
    listen,
    listenerErrors,
    record: audit.event,
    recordApproval: audit.approval,
    controls,
    audit,
    replica,
    recent,
    auditError: () => auditFailure,
    auditWarning: () => auditWarning,
    auditSpace: () => auditSpace,
  };
}
