// The composition root: builds every component from one configuration version, wires them, and swaps versions on
// reload. It decides nothing about messages; src/proxy/pipeline.ts handles those.

import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { APPROVALS_PATH } from '../admin/approval-pages.js';
import { createConsole, createUpstreamRows, readReviewGuide } from '../admin/console.js';
import { createDecisionExplainer } from '../admin/decision-explanation.js';
import { createReview } from '../admin/review.js';
import { createRevocationService } from '../admin/revocation-service.js';
import { APPROVAL_BOUNDS, type ApprovalService, createApprovalService } from '../approvals/service.js';
import { createWebhooks, type Webhooks } from '../approvals/webhook.js';
import { createEdgeRecorder } from '../audit/recorder.js';
import { checkSettings } from '../auth/access-settings.js';
import { buildIdentity, type Identity } from '../auth/identity.js';
import { isLoopbackHost } from '../config/checks/addresses.js';
import type { Diagnostic } from '../config/diagnostics.js';
import { type ConfigWatch, watchConfiguration } from '../config/files.js';
import { gatewayKeys } from '../config/key-material.js';
import type { Settings, StateSettings } from '../config/settings.js';
import { createDeliveries, type Deliveries } from '../delivery/deliveries.js';
import type { EdgeTables } from '../http/request-checks.js';
import { redactForRecord } from '../inspection/capture.js';
import { createFindingReport } from '../inspection/definitions/finding-report.js';
import { warmUpInspection } from '../inspection/warm-up.js';
import { createDefinitionCompiler } from '../pins/catalog.js';
import { createDriftClasses, type DriftClasses } from '../pins/drift-classes.js';
import { createDriftReport, recordFirstUse, recordPinDecisions } from '../pins/drift-report.js';
import { createFileKeeper, createStoreKeeper } from '../pins/first-use.js';
import { refuseBlocked } from '../policy/blocks.js';
import { refuseWith } from '../policy/decision.js';
import type { Emit, Measured } from '../policy/events.js';
import { compileSchema } from '../policy/json-schema/validator.js';
import { approvalRules } from '../policy/rules.js';
import { mirroredParameters } from '../protocol/headers.js';
import { runInTurns } from '../protocol/json/incremental.js';
import { PLAIN_SESSION } from '../protocol/versions/session.js';
import { createLeaseRegistry, type LeaseRegistry } from '../proxy/lease-registry.js';
import { createBlockAnnouncer, createStreamRegistry, type StreamRegistry } from '../proxy/stream-registry.js';
import { createKeyRing, type KeyRing } from '../state/derived-keys.js';
import { measureStore } from '../state/measured-store.js';
import { createMemoryState, type GatewayState } from '../state/memory.js';
import { createSessionCount, type SessionCount } from '../state/opened-sessions.js';
import { openRedisLink } from '../state/redis.js';
import { createSharedState } from '../state/shared-state.js';
import type { StatePorts } from '../state/store.js';
import { countControls, describeControl, refreshControls, removeControls } from '../telemetry/controls.js';
import type { Log } from '../telemetry/log.js';
import type { Build } from '../telemetry/metrics.js';
import { cleanForeign } from '../text/escaping.js';
import { firstOf } from '../text/wording.js';
import { assertionSigner } from '../upstream/connection.js';
import {
  createRuntimes,
  createSessionBuses,
  type Runtimes,
  receiveFromReplicas,
  type UpstreamRuntime,
} from '../upstream/runtimes.js';
import { createGuardedFetch, type GuardedFetch } from '../upstream/safe-fetch.js';
import { createCallerPage } from './caller-pages.js';
import type { Version, VersionReading } from './config-version.js';
import { createGauges } from './gauges.js';
import {
  buildTables,
  createListeners,
  isConnectedTo,
  ListenerError,
  type Listeners,
  type Listening,
  publishedKeys,
} from './listeners.js';
import { createLockCounters, type LockCounters } from './lock-counters.js';
import { createLockWork } from './lock-work.js';
import { endOfLife, RECOMMENDED_NODE } from './node-support.js';
import { createObservability, type Observability } from './observability.js';
import { createDispatcher, createPorts } from './ports.js';
import { createReadiness, type Phase, type Readiness, type ReadinessSources } from './readiness.js';
import { createReload, describeFixed, describeUnsettled, type ReloadResult, targetsOf } from './reload.js';
import { createSharedResources, type SharedResources } from './shared-resources.js';
import { type Aggregates, createAggregates, createSnapshots, type SnapshotOf } from './snapshot.js';
import { createTraceExport, type TraceExport } from './trace-export.js';
import { createVersionReader, type VersionReader } from './version-reader.js';

/** Creates the state, in memory or in the shared store; nothing is read from it before its `start`. */
function openState(settings: StateSettings, ports: StatePorts, emit: Emit): GatewayState {
  switch (settings.type) {
    case 'memory':
      return createMemoryState(ports);
    case 'redis':
      return createSharedState({
        ...ports,
        link: measureStore(openRedisLink(settings), (operation, measured) =>
          emit('storeUsed', { operation, ...measured }),
        ),
        maxAgeMs: settings.maxAgeMs,
        afterLoss: settings.afterLoss,
        readiness: settings.readiness,
      });
  }
}

/**
 * Passes on to the leases what every replica learns of the others: revocations and blocks, how old they are, ended
 * sessions. Whose lists a block changes is told so.
 */
function emitStateChanges(
  { revocations, ended }: GatewayState,
  leases: LeaseRegistry,
  announceBlocks: () => void,
): void {
  revocations.onChange(() => {
    leases.emit(({ principal }) => {
      const reason = revocations.checkPrincipal(principal);
      if (reason !== undefined) return refuseWith(reason);
      const block = revocations.blockOf(principal);
      return block === undefined ? undefined : refuseBlocked(block);
    });
    announceBlocks();
  });
  ended.onElsewhere(leases.checkSessions);
}

type GatewayOptions = {
  /** Path of the gateway file. */
  readonly file: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
  /** Version of the program and of Node. */
  readonly build: Build;
  /** Where a stdout sink of the audit log writes; resolves when the text was handed over. */
  readonly writeStdout: (text: string) => Promise<void>;
  readonly now?: () => number;
  /** Names of this machine besides `localhost`, which are served where `publicUrl` is on loopback. */
  readonly localNames?: readonly string[];
};

export type Gateway = {
  /** The open listeners, for the lines that `serve` prints. */
  readonly listening: readonly Listening[];
  /** Reads the files again; the new version is applied completely, or rejected with its diagnostics. Never rejects. */
  reload(): Promise<readonly Diagnostic[]>;
  /**
   * Ends the gateway in order: it is no longer ready, accepts requests for `delayMs` milliseconds, and closes as `close`
   * does, with all of `shutdown.drain` for requests in progress.
   */
  shutDown(delayMs: number): Promise<void>;
  /** Leaves out what is left of the delay and of the time for requests in progress. */
  hurry(): void;
  /** The settings in force. */
  shutdownSettings(): Settings['shutdown'];
  /** The controls in one line, and each in one. */
  controls(): { readonly sum: string; readonly each: readonly string[] };
  /** Closes the listeners, waits a while for requests in progress and writes the rest of the audit log. */
  close(): Promise<void>;
};

export type GatewayStart =
  | {
      readonly kind: 'started';
      readonly gateway: Gateway;
      readonly diagnostics: readonly Diagnostic[];
    }
  | { readonly kind: 'refused'; readonly diagnostics: readonly Diagnostic[] }
  /** The files are valid, but something else prevents the start: a port in use, or another writer of the audit log. */
  | {
      readonly kind: 'failed';
      readonly message: string;
      readonly diagnostics: readonly Diagnostic[];
    };

/** What changes with a reload; everything else lives as long as the process. */
type Current = {
  version: Version;
  identity: Identity;
  tables: EdgeTables;
  /** Why the last reload was rejected; `undefined` if the files are those in force. */
  reloadError: string | undefined;
  /** The upstreams whose lock file was refused then because of its signatures. */
  unsigned: ReadonlySet<string>;
};

/** The listeners once they are open; until then the data port is the configured one. */
type Opened = { dataPort: number; listening: readonly Listening[] };

/** Everything that is built before anything is opened. */
type Assembly = {
  readonly current: Current;
  readonly observability: Observability;
  readonly runtimes: Runtimes;
  readonly streams: StreamRegistry;
  readonly leases: LeaseRegistry;
  readonly state: GatewayState;
  readonly counters: LockCounters;
  readonly guardedFetch: GuardedFetch;
  readonly snapshotOf: SnapshotOf;
  readonly classes: DriftClasses;
  readonly aggregates: Aggregates;
  readonly sharedResources: SharedResources;
  readonly sessionCount: SessionCount;
  readonly reader: VersionReader;
  readonly approvals: ApprovalService;
  /** Who is told that something waits for a reviewer. */
  readonly webhooks: Webhooks;
  /** Who gets the lines of the audit log. */
  readonly deliveries: Deliveries;
  readonly traces: TraceExport;
  updateControls(): void;
  /** Makes a version the current one, in one synchronous step; what differs from its pins is reported in turns. */
  apply(next: Version): void;
};

/** Where the gateway is between its start and its end. `isEnding`: no version is applied any more. */
type Lifetime = { phase: Phase; isEnding: boolean };

type Compile = ReturnType<typeof createDefinitionCompiler>;

/** How long `close` waits for requests in progress at most: nobody has sent them elsewhere before. */
const MAX_CLOSE_MS = 10_000;
/** Of the hash by which reviewers tell callers apart. */
const CALLER_PURPOSE = 'approval-caller';
/** How often the controls are evaluated; a change shows within this time. */
const CONTROLS_EVERY_MS = 1_000;

/** Starts a gateway from its files. An invalid file refuses the start. A start that fails leaves nothing open. */
export async function startGateway(options: GatewayOptions): Promise<GatewayStart> {
  const compile = createDefinitionCompiler({ compileSchema, mirroredParameters });
  const reader = createVersionReader(options.file, { env: options.env, compile });
  const { version, diagnostics, read } = await reader.read();
  if (version === undefined) return { kind: 'refused', diagnostics };
  const opened = await openGateway(options, version, read, { compile, reader });
  if (typeof opened === 'string') return { kind: 'failed', message: opened, diagnostics };
  return { kind: 'started', gateway: opened, diagnostics };
}

async function openGateway(
  options: GatewayOptions,
  version: Version,
  read: VersionReading['read'],
  { compile, reader }: { readonly compile: Compile; readonly reader: VersionReader },
): Promise<Gateway | string> {
  const ring = createKeyRing(gatewayKeys(version.settings));
  const opened: Opened = { dataPort: version.settings.listeners.data.port, listening: [] };
  const lifetime: Lifetime = { phase: 'starting', isEnding: false };
  const assembly = { ...assemble(options, version, compile, ring, opened), reader };
  const { current, observability, counters, updateControls } = assembly;
  const readiness = createReadiness(() => readinessSources(assembly, lifetime), observability);
  const listeners = openListeners(options, { ...assembly, readiness, lifetime }, ring);
  warmUpInspection();
  try {
    // The ports are opened first: until then nothing is touched that another gateway may be using.
    const listening = await listeners.open((port) => {
      opened.dataPort = port;
      current.tables = buildTables(version.settings, port, publishedKeys(ring), options.localNames);
    });
    opened.listening = listening;
    const refused =
      (await refuseDevelopmentIssuers(version.settings, current.identity)) ??
      (await startAudit(observability, version.settings));
    if (refused !== undefined) {
      await closeAll(assembly, listeners);
      return refused;
    }
    assembly.deliveries.start();
    await assembly.state.start();
    assembly.approvals.start();
    warnOfYoungStore(assembly);
    const old = await refuseOldLocks(version, counters.check);
    if (old !== undefined) {
      await closeAll(assembly, listeners);
      return old;
    }
    const { emit } = observability;
    emit('configured', { ...version.settings, hashes: version.hashes });
    assembly.runtimes.replace(version.settings);
    let watch: ConfigWatch | undefined;
    const noteResult = (result: ReloadResult): void => {
      const { error, unsigned, fileHashes } = result;
      current.reloadError = error;
      current.unsigned = unsigned;
      const isPending = current.version.reload.pending.keys.length > 0;
      emit('filesRead', { areValid: error === undefined, unsigned, hashes: fileHashes, isPending });
      updateControls();
      // Whoever asked for the reload, what is watched is named by the version in force or by the one that was read.
      watch?.noteReading(targetsOf(current.version.settings, result.named), result.read);
    };
    noteResult({ unsigned: new Set(), fileHashes: version.fileHashes });
    const reload = createReload({
      ...assembly,
      read: reader.read,
      accept: (reading) => counters.accept(reading, 'reload'),
      current: () => current.version,
      isEnding: () => lifetime.isEnding,
      apply(next) {
        assembly.apply(next);
        listeners.updateTls(next.settings);
      },
      noteResult,
      ...observability,
    });
    watch = await watchConfiguration({
      targets: targetsOf(version.settings),
      read,
      onChange: () => reload().then(() => undefined),
      onError: (error) => emit('filesUnwatched', { error }),
    });
    // A file that changed between the reading and the watch would otherwise be noticed with the next change only.
    await watch.check();
    const replaced = await refuseOldLocks(current.version, counters.accept);
    if (replaced !== undefined) {
      await watch.close();
      await closeAll(assembly, listeners);
      return replaced;
    }
    lifetime.phase = 'serving';
    warnOfOldNode(options, emit);
    emit('started', { version: options.build.version, file: version.settings.file });
    await waitShortly(() => readiness().isReady);
    return run(assembly, listeners, { listening, reload, watch, lifetime, readiness });
  } catch (error) {
    await closeAll(assembly, listeners);
    if (error instanceof ListenerError) return error.message;
    throw error;
  }
}

/** In most starts the keys of the issuers come within this time, and whoever reads that it runs finds it ready. */
const READY_WITHIN_MS = 250;
const LOOK_EVERY_MS = 10;

async function waitShortly(isDone: () => boolean): Promise<void> {
  for (let waitedMs = 0; waitedMs < READY_WITHIN_MS && !isDone(); waitedMs += LOOK_EVERY_MS) await sleep(LOOK_EVERY_MS);
}

/** The first requests would otherwise be refused before anybody looks at the controls. */
function warnOfYoungStore({ state, current, observability }: Assembly): void {
  const { isYoung, reason } = state.status(current.version.policies.historyMs);
  if (isYoung === true) observability.emit('storeYoung', { reason });
}

function warnOfOldNode({ build, now = Date.now }: GatewayOptions, emit: Emit): void {
  const since = endOfLife(build.node, now());
  if (since === undefined) return;
  emit('nodeOutdated', { detail: `${build.node}, since ${since}: run Sallyport on Node ${RECOMMENDED_NODE}` });
}

/** Resolves with an error message where a lock file is older than one that was seen. */
async function refuseOldLocks(version: Version, check: LockCounters['check']): Promise<string | undefined> {
  const checked = await check({ version, diagnostics: [] }, 'start');
  const [refused] = checked.diagnostics;
  return refused && `${refused.file}: ${refused.message}`;
}

/**
 * Resolves with an error message where others than this machine would be let in by a development issuer. Those listen on
 * loopback; one that cannot be asked now is refused when it can.
 */
async function refuseDevelopmentIssuers(
  { publicUrl, issuers }: Settings,
  { keySources }: Identity,
): Promise<string | undefined> {
  if (isLoopbackHost(publicUrl.hostname)) return undefined;
  const near = [...keySources].filter(([name]) => {
    const issuer = issuers.get(name);
    return issuer !== undefined && isLoopbackHost(new URL(issuer.issuer).hostname);
  });
  await Promise.all(near.map(([, source]) => source.refresh()));
  const [found] = near.filter(([, source]) => source.status().isDevelopment);
  return found && `the issuer "${found[0]}" cannot be used: ${found[1].status().failure ?? 'it is for development'}`;
}

/** Resolves with an error message where the audit log cannot be written and calls must not be served without it. */
async function startAudit({ audit, auditError }: Observability, settings: Settings): Promise<string | undefined> {
  if ((await audit.start()) || settings.audit.onFailure === 'continue') return undefined;
  return `the audit log cannot be written: ${auditError() ?? 'the reason is not known'}`;
}

type Started = Pick<Gateway, 'listening' | 'reload'> & {
  readonly watch: ConfigWatch;
  readonly lifetime: Lifetime;
  readonly readiness: () => Readiness;
};

/** A gateway whose start has completed. */
function run(assembly: Assembly, listeners: Listeners, started: Started): Gateway {
  const { listening, reload, watch, lifetime, readiness } = started;
  const { emit } = assembly.observability;
  const controlsTimer = setInterval(() => {
    assembly.current.identity.keepFresh();
    assembly.counters.retry();
    assembly.updateControls();
    if (readiness().isWaiting) fetchAwaitedKeys(assembly);
  }, CONTROLS_EVERY_MS);
  controlsTimer.unref();
  const hurried = new AbortController();
  async function end(delayMs: number, drainMs: number): Promise<void> {
    lifetime.phase = 'stopping';
    emit('stopping', { delayMs, drainMs });
    readiness();
    listeners.announceClose();
    if (delayMs > 0) await sleep(delayMs, undefined, hurried).catch(() => undefined);
    clearInterval(controlsTimer);
    // A reload that runs ends when it can, and has no effect: requests in progress have all of the time that is left.
    lifetime.isEnding = true;
    void watch.close();
    void assembly.reader.close();
    await closeAll(assembly, listeners, hurried.signal.aborted ? 0 : drainMs);
    emit('stopped', {});
  }
  const settings = (): Settings['shutdown'] => assembly.current.version.settings.shutdown;
  let ending: Promise<void> | undefined;
  return {
    listening,
    reload,
    controls() {
      const rows = assembly.observability.controls.snapshot();
      return { sum: countControls(rows), each: rows.map(describeControl) };
    },
    shutdownSettings: settings,
    shutDown(delayMs) {
      ending ??= end(delayMs, settings().drainMs);
      return ending;
    },
    hurry() {
      hurried.abort();
      listeners.cutData();
    },
    close() {
      ending ??= end(0, Math.min(settings().drainMs, MAX_CLOSE_MS));
      return ending;
    },
  };
}

function assemble(
  options: GatewayOptions,
  version: Version,
  compile: Compile,
  ring: KeyRing,
  opened: Opened,
): Omit<Assembly, 'reader'> {
  const { log, build, writeStdout, now = Date.now } = options;
  const { settings } = version;
  const isUndelivered = async (path: string): Promise<boolean> => !(await deliveries.hasDelivered(path));
  const observability = createObservability(version, { build, ring, log, writeStdout, now, isUndelivered });
  const isOwnListener = (socket: Socket): boolean => isConnectedTo(opened.listening, socket);
  const guardedFetch = createGuardedFetch({ isOwnListener });
  const state = openState(settings.state, { ring, now }, observability.emit);
  const deliveries = createDeliveries(settings.audit, {
    ...{ now, isOwnListener },
    emit: observability.emit,
    ownFile: observability.audit.ownFile,
  });
  const onLeftOut = (issuer: string, clauses: readonly string[]): void => {
    for (const detail of clauses) observability.emit('issuerIncomplete', { issuer, detail });
  };
  const onIntrospected = (issuer: string, measured: Measured): void =>
    observability.emit('introspected', { issuer, ...measured });
  const refusesDevelopment = !isLoopbackHost(settings.publicUrl.hostname);
  const identityPorts = { ...guardedFetch, ...state, now, ring, onLeftOut, onIntrospected, refusesDevelopment };
  const identity = buildIdentity(settings, identityPorts);
  const tablesOf = (from: Settings) => buildTables(from, opened.dataPort, publishedKeys(ring), options.localNames);
  const current: Current = {
    ...{ version, identity, tables: tablesOf(settings) },
    reloadError: undefined,
    unsigned: new Set(),
  };
  const counters = createLockCounters({ state, settings });
  const ownCredentialsOf = (upstream: string) => runtimes.ownCredentials(upstream);
  const sharedResources = createSharedResources(observability.emit, ownCredentialsOf, ring);
  const streams = createStreamRegistry(observability.emit, sharedResources.loopScheduler);
  const leases = createLeaseRegistry();
  const { blocksAt } = state.revocations;
  const announceBlocks = createBlockAnnouncer(blocksAt, streams.announce);
  emitStateChanges(state, leases, () => announceBlocks(current.version.settings.upstreams.keys()));
  const snapshotOf = createSnapshots(compile, blocksAt);
  const { definitions } = sharedResources.inspection;
  const formatsAt = (upstream: string) => current.version.settings.upstreams.get(upstream)?.formats;
  const classes = createDriftClasses(definitions);
  const drift = createDriftReport<UpstreamRuntime, Version>({
    ...observability,
    ...sharedResources,
    classes,
    findings: createFindingReport(observability),
    announce: streams.announce,
    catalogOf: (runtime, under) => snapshotOf(runtime, under).pinned,
    mask: redactForRecord,
  });
  const runtimes = createRuntimes({
    gatewayVersion: build.version,
    sessionBusOf: createSessionBuses(state.replicaBus),
    scanDefinitions: sharedResources.inspection.scanDefinitions,
    lockOf: (upstream) => current.version.locks.get(upstream),
    firstUseKeeper:
      state.firstUses === undefined
        ? createFileKeeper(() => current.version.settings.pinsDir)
        : createStoreKeeper(state.firstUses),
    onFirstUse: (trusted) => recordFirstUse(trusted, { ...observability, ...sharedResources }),
    lockWork: createLockWork({ definitions, compile, formatsAt }),
    now,
    guardedFetch,
    isOwnListener,
    ...sharedResources,
    signer: assertionSigner(ring),
    emit: observability.emit,
    onObserved: (runtime) => drift.report(runtime, current.version),
    onReachable: (runtime) => drift.announce(runtime, current.version),
  });
  receiveFromReplicas(state, runtimes);
  const aggregates = createAggregates({
    version: () => current.version,
    runtime: runtimes.get,
    snapshotOf,
    gatewayVersion: build.version,
  });
  const sessionCount = createSessionCount(now);
  const reportGauges = createGauges({
    emit: observability.emit,
    settings: () => current.version.settings,
    runtimes: runtimes.all,
    sessions: sessionCount,
  });
  function describePresentation(upstream: string): readonly string[] {
    const runtime = runtimes.get(upstream);
    const problems = runtime === undefined ? [] : snapshotOf(runtime, current.version).presentationProblems();
    const named = problems.map(
      ({ tool, why }) => `tool ${JSON.stringify(cleanForeign(redactForRecord(tool)))} (${why})`,
    );
    return named.length === 0 ? [] : [`not presentable: ${firstOf(named, MAX_DESCRIBED)}`];
  }
  function updateControls(): void {
    const { settings: shown, policies } = current.version;
    refreshControls(observability.controls, observability.emit, {
      listenerErrors: observability.listenerErrors().keys(),
      settings: shown,
      identity: current.identity,
      runtimes,
      aggregates,
      auditError: observability.auditError() ?? observability.auditWarning(),
      deliveries: deliveries.states(),
      auditSpace: observability.auditSpace(),
      nowMs: now(),
      describePins: (upstream) => [...drift.describe(upstream), ...describePresentation(upstream.name)],
      budgets: policies.budgets,
      approvals: approvalRules(policies),
      reloadError: current.reloadError,
      unsettled: describeUnsettled(current.version),
      fixed: describeFixed(current.version),
      unsigned: current.unsigned,
      counterError: counters.error(),
      shadow: policies.shadow,
      store: state.status(policies.historyMs),
      blocks: state.revocations.blocks(),
      tracingError: traces.error(),
    });
    reportGauges();
  }
  function apply(next: Version): void {
    const before = current.version;
    // Of hundreds of upstreams nothing is made anew where policies alone have changed.
    const areSame = next.settings === before.settings;
    // First, because what an upstream that goes has shown last is reported under the version that it was shown under.
    if (!areSame) runtimes.replace(next.settings);
    current.version = next;
    if (!areSame) current.identity = buildIdentity(next.settings, identityPorts, current.identity);
    if (!areSame) current.tables = tablesOf(next.settings);
    webhooks.use(next.settings.webhooks);
    traces.use(next.settings.tracing);
    observability.emit('configured', { ...next.settings, hashes: next.hashes });
    observability.audit.setVersions(next.hashes);
    recordPinDecisions(before, next, { ...observability, ...sharedResources });
    removeControls(observability.controls, before.settings, next.settings);
    leases.emit((lease) => checkSettings(lease, before.settings, next.settings));
    const turns = { upstream: '', loopScheduler: sharedResources.loopScheduler };
    void runInTurns(turns, [...runtimes.all()], (runtime) => {
      // A version that replaces this one meanwhile reports all of them.
      if (current.version !== next) return 'stop';
      void drift.report(runtime, next);
      // What a lock file approves is not scanned: what it approves no longer has to be now.
      const { mode } = runtime.settings.pinning;
      if (mode !== 'strict' && before.hashes.pins !== next.hashes.pins)
        runtime.noteListChanged().catch(() => undefined);
      return undefined;
    });
  }
  const approvals = createApprovalService({
    table: state.tableOf('approval', APPROVAL_BOUNDS),
    now,
    record: observability.recordApproval,
    emit: observability.emit,
    useOnce: state.claimedReplies.useOnce,
    limits: state.limits,
    isAsked: () => approvalRules(current.version.policies).length > 0,
  });
  const webhooks = createWebhooks((ca) => createGuardedFetch({ isOwnListener, tls: { ca } }), {
    emit: observability.emit,
    now,
    hashCaller: ({ issuer, subject }) => ring.hmac(CALLER_PURPOSE, JSON.stringify([issuer, subject])),
    linkTo: (id) => new URL(`${APPROVALS_PATH}/${id}`, settings.admin?.publicUrl ?? settings.publicUrl).href,
  });
  webhooks.use(settings.webhooks);
  const traces = createTraceExport({
    ...{ build, ring, emit: observability.emit, replica: observability.replica },
    open: (ca) => createGuardedFetch({ isOwnListener, tls: { ca } }),
  });
  traces.use(settings.tracing);
  observability.listen({
    traced: traces.add,
    approval({ change, approval }) {
      if (change === 'requested') webhooks.notify(approval);
    },
  });
  const shared = {
    approvals,
    webhooks,
    deliveries,
    traces,
    state,
    counters,
    guardedFetch,
    snapshotOf,
    classes,
    aggregates,
    sharedResources,
    sessionCount,
    updateControls,
    apply,
  };
  return { current, observability, runtimes, streams, leases, ...shared };
}

/** Tools that a control names. */
const MAX_DESCRIBED = 3;

/** While a start waits for keys, they are asked for more often than an issuer that is away otherwise is. */
function fetchAwaitedKeys({ current: { identity } }: Assembly): void {
  for (const source of identity.keySources.values())
    if (source.status().lastSuccessAt === undefined) void source.refresh();
}

/** What readiness depends on, as it is now. */
function readinessSources(
  { current, observability, state, runtimes }: Assembly,
  { phase }: Lifetime,
): ReadinessSources {
  const { settings } = current.version;
  const required = [...settings.upstreams.values()].filter((upstream) => upstream.required);
  return {
    phase,
    isAuditWritable: observability.audit.isWritable(),
    store: { ...state.status(), isReady: state.isReady() },
    awaited: {
      issuers: [...current.identity.statuses()].flatMap(([name, issuer]) =>
        issuer.state === 'armed' || issuer.lastSuccessAt !== undefined ? [] : [name],
      ),
      upstreams: required.flatMap(({ name }) => (runtimes.get(name)?.observed() === undefined ? [name] : [])),
    },
    waitMs: settings.startup.waitMs,
  };
}

type Opening = Assembly & { readonly readiness: () => Readiness; readonly lifetime: Lifetime };

function openListeners({ now = Date.now }: GatewayOptions, assembly: Opening, ring: KeyRing): Listeners {
  const { current, observability, state, updateControls, readiness, lifetime } = assembly;
  const { audit, controls, emit, metrics } = observability;
  const recordRefusal = createEdgeRecorder({ audit, emit, now });
  const ports = createPorts({
    ...assembly,
    version: () => current.version,
    identity: () => current.identity,
    ring,
    now,
  });
  const catalogOf = (runtime: UpstreamRuntime) => assembly.snapshotOf(runtime, current.version).pinned;
  const reviewed = { ...assembly, version: () => current.version, catalogOf };
  return createListeners(current.version.settings, {
    observability,
    readiness,
    createConsole: (admin, address) =>
      createConsole(admin, address, {
        ...{ ring, now, state, guardedFetch: assembly.guardedFetch },
        identity: () => current.identity,
        approvals: assembly.approvals,
        controls() {
          updateControls();
          return controls.snapshot();
        },
        upstreams: createUpstreamRows(reviewed, metrics),
        review: createReview({
          ...{ ...reviewed, now },
          definitions: assembly.sharedResources.inspection.definitions,
        }),
        decisions: () => observability.recent?.list() ?? [],
        explain: createDecisionExplainer({
          version: () => current.version,
          catalogAt(upstream) {
            const runtime = assembly.runtimes.get(upstream);
            // What is not presentable is explained as it is decided, and not by its pin.
            return runtime && assembly.snapshotOf(runtime, current.version).catalogFor(PLAIN_SESSION);
          },
        }),
        guide: readReviewGuide,
        knownNames: () => ({
          upstreams: [...current.version.settings.upstreams.keys()],
          issuers: [...current.version.settings.issuers.keys()],
        }),
        revocations: createRevocationService({
          ...{ ring, now, revocations: state.revocations },
          settings: () => current.version.settings,
        }),
        onAccess: (access) => observability.record({ type: 'admin.action', ...access }),
      }),
    data: {
      tables: () => current.tables,
      isStarting: () => lifetime.phase === 'starting',
      answerPage: createCallerPage({
        ...{ ring, now, state, emit, guardedFetch: assembly.guardedFetch, desk: assembly.approvals },
        publicBase: current.version.settings.publicBase,
        identity: () => current.identity,
      }),
      handle: createDispatcher(ports, emit),
      reportRefusal: (refusal, id, address) => recordRefusal(refusal, { id, address }),
    },
  });
}

/** Closes clients first, then upstreams, then the audit log, so that what happens last is still recorded. */
async function closeAll(assembly: Assembly, listeners: Listeners, drainMs = 0): Promise<void> {
  const { streams, runtimes, state, observability, guardedFetch, sharedResources, reader } = assembly;
  streams.endAll();
  await listeners.closeData(drainMs, runtimes.abortCalls);
  await Promise.all([sharedResources.inspection.close(), reader.close()]);
  await runtimes.close();
  assembly.approvals.close();
  assembly.webhooks.close();
  await assembly.traces.close();
  await state.close();
  await observability.audit.close();
  await assembly.deliveries.close();
  await listeners.closeRest();
  await guardedFetch.close();
}
