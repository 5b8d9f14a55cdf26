// The parts that bear witness: metrics, controls and the audit log, made together because each tells the
// others what it sees.

import { randomUUID } from 'node:crypto';
import type { AuditSettings } from '../config/settings.js';
import { redactForRecord } from '../inspect/redaction.js';
import { type Audit, createAudit } from '../observe/audit.js';
import { createAuditFile, createAuditStream } from '../observe/audit-file.js';
import { type Controls, createControls } from '../observe/controls.js';
import type { Log } from '../observe/log.js';
import { type Build, createMetrics, type Metrics } from '../observe/metrics.js';
import type { KeyRing } from '../state/key-ring.js';
import type { Version } from './version.js';

export type Observability = {
  readonly metrics: Metrics;
  readonly controls: Controls;
  readonly audit: Audit;
  /** Why a sink does not work; `undefined` while all do. */
  auditError(): string | undefined;
};

export type ObservabilityPorts = {
  readonly build: Build;
  readonly ring: KeyRing;
  readonly log: Log;
  readonly writeStdout: (text: string) => Promise<void>;
  readonly now: () => number;
};

/** Makes the witnesses of a first version. The audit is not open before its `start`. */
export function createObservability(
  { settings, hashes }: Version,
  ports: ObservabilityPorts,
): Observability {
  const { build, ring, log, now } = ports;
  const metrics = createMetrics(settings, build);
  const instance = randomUUID();
  let auditFailure: string | undefined;
  const audit = createAudit({
    settings: settings.audit,
    instance,
    version: build.version,
    versions: hashes,
    signer: ring,
    now,
    meters: metrics,
    mask: redactForRecord,
    newWriter: (sink) => newWriter(sink, instance, ports.writeStdout),
    onState(found) {
      auditFailure = found;
    },
  });
  const controls = createControls({
    now,
    onChange({ control, state, reason }) {
      metrics.setControl(control, state);
      log.write(state === 'armed' ? 'info' : 'warn', 'control', { control, state, detail: reason });
    },
    onRemove: metrics.removeControl,
  });
  return { metrics, controls, audit, auditError: () => auditFailure };
}

/** Every group is preceded by a look at the path: what was confirmed must be in the file that is there. */
const CHECK_INTERVAL_MS = 0;

type Sink = AuditSettings['sinks'][number];

function newWriter(
  sink: Sink,
  instance: string,
  writeStdout: ObservabilityPorts['writeStdout'],
): ReturnType<typeof createAuditFile> {
  switch (sink.type) {
    case 'file':
      return createAuditFile(sink.path, {
        checkIntervalMs: CHECK_INTERVAL_MS,
        lease: { instance },
      });
    case 'stdout':
      return createAuditStream(writeStdout);
  }
}
