// The composition root: builds every part from one version of the files, wires them, and swaps versions.
// It decides nothing about messages; their way is exchange.ts.

import { randomBytes, randomUUID } from 'node:crypto';
import type { Fault } from './config/fault.js';
import { readKeyText, writeKeyText } from './config/keys.js';
import type { AuditSettings, GatewayKey, Settings } from './config/settings.js';
import { type ConfigWatch, watchConfiguration } from './config/watch.js';
import { createAdminServer } from './console/admin-server.js';
import { createDataServer } from './edge/server.js';
import { runExchange } from './exchange.js';
import { createAdminAccess } from './gateway/admin-access.js';
import { refreshControls, removeControls } from './gateway/control-states.js';
import { createDriftReport } from './gateway/drift.js';
import { recordEdgeRefusal } from './gateway/edge-refusal.js';
import { buildIdentity } from './gateway/identity.js';
import { createPorts } from './gateway/ports.js';
import { restartReason } from './gateway/restart.js';
import { createRuntimes } from './gateway/runtimes.js';
import { createStreamRegistry } from './gateway/streams.js';
import { buildTables } from './gateway/tables.js';
import { loadVersion, type Version } from './gateway/version.js';
import { createViews } from './gateway/view.js';
import { mirroredParameters } from './mcp/headers.js';
import { createAudit } from './observe/audit.js';
import { createAuditFile, createAuditStream } from './observe/audit-file.js';
import { createControls } from './observe/controls.js';
import { faultCode, type Log } from './observe/log.js';
import { createMetrics } from './observe/metrics.js';
import { createOpsServer } from './observe/ops-server.js';
import { createDefinitionCompiler } from './pins/definition-compiler.js';
import { compileSchema } from './policy/schema.js';
import { createEndedSessions } from './state/ended-sessions.js';
import { createKeyRing } from './state/key-ring.js';
import { createMemoryLimits } from './state/memory-limits.js';
import { createGuardedFetch } from './upstream/guarded-fetch.js';

export type GatewayOptions = {
  /** Path of the gateway file. */
  readonly file: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
  /** Version of the program, and of Node. */
  readonly build: { readonly version: string; readonly node: string };
  /** Where a stdout sink of the audit writes; resolves when the text was handed over. */
  readonly writeStdout: (text: string) => Promise<void>;
  readonly now?: () => number;
};

export type Gateway = {
  /** Ports that are open, for the lines that `serve` prints. */
  readonly listening: readonly {
    readonly listener: 'data' | 'ops' | 'admin';
    readonly host: string;
    readonly port: number;
  }[];
  /** Reads the files again: applied whole, or rejected with what is wrong. */
  reload(): Promise<readonly Fault[]>;
  /** Ends listeners, waits for what runs, writes the audit to its end. */
  close(): Promise<void>;
};

export type GatewayStart =
  | { readonly kind: 'started'; readonly gateway: Gateway; readonly faults: readonly Fault[] }
  | { readonly kind: 'refused'; readonly faults: readonly Fault[] };

/** How long a drain waits for exchanges that run. */
const DRAIN_MS = 10_000;
/** How often controls are looked at; a change shows within this time. */
const CONTROLS_EVERY_MS = 1_000;
const KEY_BYTES = 32;

/** Starts a gateway from its files. Refuses, and opens nothing, when one of them is invalid. */
export async function startGateway(options: GatewayOptions): Promise<GatewayStart> {
  const compile = createDefinitionCompiler({ compileSchema, mirroredParameters });
  const sources = { env: options.env, compile };
  const reading = await loadVersion(options.file, sources);
  if (reading.version === undefined) return { kind: 'refused', faults: reading.faults };
  const gateway = await openGateway(options, reading.version, compile);
  return { kind: 'started', gateway, faults: reading.faults };
}

async function openGateway(
  options: GatewayOptions,
  first: Version,
  compile: ReturnType<typeof createDefinitionCompiler>,
): Promise<Gateway> {
  const { log, now = Date.now } = options;
  let version = first;
  const { settings } = first;
  const ring = createKeyRing(keysOf(settings));
  const metrics = createMetrics(settings, options.build);
  let auditFault: string | undefined;
  const audit = createAudit({
    settings: settings.audit,
    instance: randomUUID(),
    version: options.build.version,
    versions: first.hashes,
    signer: ring,
    now,
    meters: metrics,
    newWriter: (sink) => newWriter(sink, options.writeStdout),
    onState(fault) {
      auditFault = fault;
    },
  });
  const controls = createControls({
    now,
    onChange(row) {
      metrics.setControl(row.control, row.state);
      log.write(row.state === 'armed' ? 'info' : 'warn', 'control', {
        control: row.control,
        state: row.state,
        detail: row.reason,
      });
    },
    onRemove: metrics.removeControl,
  });
  const guarded = createGuardedFetch();
  let identity = buildIdentity(settings, { fetchJson: guarded.fetchJson, now, ring });
  const streams = createStreamRegistry(metrics.openStreams);
  const view = createViews(compile);
  const drift = createDriftReport({ audit, metrics, log, streams, view, now });
  const runtimes = createRuntimes({
    gatewayVersion: options.build.version,
    now,
    metrics,
    log,
    onSight: (runtime) => drift.tell(runtime, version),
  });
  const ports = createPorts({
    version: () => version,
    runtime: runtimes.get,
    view,
    authenticator: () => identity.authenticator,
    ring,
    audit,
    metrics,
    log,
    limits: createMemoryLimits(),
    ended: createEndedSessions(now),
    streams,
    now,
  });

  let listenPort = settings.listeners.data.port;
  let tables = buildTables(settings, listenPort);
  const data = createDataServer({
    tables: () => tables,
    async exchange(incoming, outgoing) {
      metrics.inflight(incoming.upstream, 1);
      await runExchange(incoming, outgoing, ports);
      metrics.inflight(incoming.upstream, -1);
    },
    refused: (refusal, id, address) =>
      recordEdgeRefusal(refusal, { id, address }, { audit, metrics, now }),
  });
  let isOpen = false;
  const ops = createOpsServer(settings.listeners.ops, {
    renderMetrics: metrics.render,
    isReady: () => isOpen && audit.isWritable(),
  });
  const admin =
    settings.admin === undefined
      ? undefined
      : createAdminServer(settings.admin.listener, {
          breakGlassToken: settings.admin.breakGlassToken,
          authenticateAdmin: createAdminAccess(settings.admin, () => identity.authenticator),
          controls() {
            look();
            return controls.snapshot();
          },
          onAccess: ({ subject, action, status, ip }) =>
            audit.event({ type: 'admin.action', subject, action, status, ip }),
        });

  function look(): void {
    refreshControls(controls, metrics, {
      settings: version.settings,
      identity,
      runtimes: runtimes.all(),
      auditFault,
    });
  }

  async function apply(next: Version): Promise<void> {
    const before = version;
    version = next;
    identity = buildIdentity(next.settings, { fetchJson: guarded.fetchJson, now, ring }, identity);
    await runtimes.replace(next.settings);
    tables = buildTables(next.settings, listenPort);
    metrics.setNames(next.settings);
    metrics.setConfig(next.hashes);
    audit.setVersions(next.hashes);
    removeControls(controls, before.settings, next.settings);
    streams.endWhere(
      ({ upstream, principal }) => !mayStay(next.settings, upstream, principal.issuer),
    );
    for (const runtime of runtimes.all()) drift.tell(runtime, next);
    look();
  }

  async function reload(): Promise<readonly Fault[]> {
    const reading = await loadVersion(options.file, { env: options.env, compile });
    const restart =
      reading.version === undefined
        ? undefined
        : restartReason(version.settings, reading.version.settings);
    const next = restart === undefined ? reading.version : undefined;
    if (next !== undefined) await apply(next);
    const result = next === undefined ? 'rejected' : 'applied';
    metrics.reload(result);
    audit.event({ type: 'config.reload', result, faults: reading.faults.length });
    if (restart !== undefined) log.write('error', 'reload rejected', { detail: restart });
    for (const { file, line, message, severity } of reading.faults)
      log.write(severity === 'error' ? 'error' : 'warn', 'configuration fault', {
        file,
        line,
        detail: message,
      });
    log.write(
      next === undefined ? 'error' : 'info',
      next === undefined ? 'reload rejected, the running version stays' : 'reload applied',
    );
    return reading.faults;
  }

  await audit.start();
  metrics.setConfig(first.hashes);
  await runtimes.replace(settings);
  look();
  const looking = setInterval(look, CONTROLS_EVERY_MS);
  looking.unref();
  const { host } = settings.listeners.data;
  listenPort = await data.listen(host, listenPort);
  tables = buildTables(settings, listenPort);
  const opsPort = (await ops.start()).port;
  const adminPort = (await admin?.start())?.port;
  const watch: ConfigWatch = await watchConfiguration({
    targets: targetsOf(settings),
    onChange: async () => {
      await reload();
      watch.retarget(targetsOf(version.settings));
    },
    onError: (error) => log.write('error', 'reload failed', { code: faultCode(error) }),
  });
  isOpen = true;

  return {
    listening: [
      { listener: 'data', host, port: listenPort },
      { listener: 'ops', host: settings.listeners.ops.host, port: opsPort },
      ...(adminPort === undefined || settings.admin === undefined
        ? []
        : [{ listener: 'admin' as const, host: settings.admin.listener.host, port: adminPort }]),
    ],
    reload,
    async close() {
      isOpen = false;
      clearInterval(looking);
      await watch.close();
      streams.endWhere(() => true);
      await data.close(DRAIN_MS);
      await runtimes.close();
      await admin?.close();
      audit.event({ type: 'lifecycle', event: 'stopped' });
      await audit.close();
      await ops.close();
      await guarded.close();
    },
  };
}

/** On loopback a missing key is made for the run; configuration refuses that anywhere else. */
function keysOf(settings: Settings): readonly GatewayKey[] {
  if (settings.keys.length > 0) return settings.keys;
  const made = readKeyText(writeKeyText(randomBytes(KEY_BYTES)));
  return made === undefined ? [] : [made];
}

function newWriter(
  sink: AuditSettings['sinks'][number],
  writeStdout: (text: string) => Promise<void>,
): ReturnType<typeof createAuditFile> {
  switch (sink.type) {
    case 'file':
      return createAuditFile(sink.path);
    case 'stdout':
      return createAuditStream(writeStdout);
  }
}

function mayStay(settings: Settings, upstream: string, issuer: string): boolean {
  const found = settings.upstreams.get(upstream);
  return found !== undefined && (found.authentication === 'none' || found.issuers.includes(issuer));
}

function targetsOf(settings: Settings): Parameters<typeof watchConfiguration>[0]['targets'] {
  return {
    files: [settings.file],
    folders: [
      { path: settings.policiesDir, suffix: '.policy.yaml' },
      { path: settings.pinsDir, suffix: '.lock.yaml' },
    ],
  };
}
