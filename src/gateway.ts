// The composition root: builds every part from one version of the files, wires them, and swaps versions.
// It decides nothing about messages; their way is exchange.ts.

import type { Fault } from './config/fault.js';
import type { Settings } from './config/settings.js';
import { type ConfigWatch, watchConfiguration } from './config/watch.js';
import type { EdgeTables } from './edge/routes.js';
import { refreshControls, removeControls } from './gateway/control-states.js';
import { createDriftReport } from './gateway/drift.js';
import { createEdgeRecorder } from './gateway/edge-refusal.js';
import { createEndpoints, type Endpoints } from './gateway/endpoints.js';
import { createExchange } from './gateway/exchange-of-path.js';
import { createFollowers, type Followers } from './gateway/followers.js';
import { buildIdentity, type Identity } from './gateway/identity.js';
import {
  createListeners,
  ListenerFault,
  type Listeners,
  type Listening,
} from './gateway/listeners.js';
import { createPorts } from './gateway/ports.js';
import { createReload } from './gateway/reload.js';
import { createWordsAbout, hearReplicas } from './gateway/replicas.js';
import { createRevocationDesk } from './gateway/revocation-desk.js';
import { keysOf } from './gateway/run-keys.js';
import { createRuntimes, type Runtimes } from './gateway/runtimes.js';
import { type SharedLoad, shareLoad } from './gateway/shared-load.js';
import { assertionSigner, publishedKeys } from './gateway/signing.js';
import { endWhatIsRevoked, openState } from './gateway/state.js';
import { mayStay } from './gateway/stream-ground.js';
import { createStreamRegistry, type StreamRegistry } from './gateway/streams.js';
import { buildTables } from './gateway/tables.js';
import { loadVersion, type Version, type VersionReading } from './gateway/version.js';
import { createViews, type ViewOf } from './gateway/view.js';
import { targetsOf } from './gateway/watched.js';
import { createWitness, type Witness } from './gateway/witness.js';
import { mirroredParameters } from './mcp/headers.js';
import { faultCode, type Log } from './observe/log.js';
import type { Build } from './observe/metrics.js';
import { createDefinitionCompiler } from './pins/definition-compiler.js';
import { compileSchema } from './policy/schema.js';
import type { GatewayState } from './state/gateway-state.js';
import { createKeyRing, type KeyRing } from './state/key-ring.js';
import { createGuardedFetch, type GuardedFetch } from './upstream/guarded-fetch.js';

export type GatewayOptions = {
  /** Path of the gateway file. */
  readonly file: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: Log;
  /** Version of the program, and of Node. */
  readonly build: Build;
  /** Where a stdout sink of the audit writes; resolves when the text was handed over. */
  readonly writeStdout: (text: string) => Promise<void>;
  readonly now?: () => number;
  /** Aborted when the process is told to end: a start that waits then gives up. */
  readonly ending?: AbortSignal;
};

export type Gateway = {
  /** What is open, for the lines that `serve` prints. */
  readonly listening: readonly Listening[];
  /** Reads the files again: applied whole, or rejected with what is wrong. */
  reload(): Promise<readonly Fault[]>;
  /** Ends listeners, waits for what runs, writes the audit to its end. */
  close(): Promise<void>;
};

export type GatewayStart =
  | { readonly kind: 'started'; readonly gateway: Gateway; readonly faults: readonly Fault[] }
  | { readonly kind: 'refused'; readonly faults: readonly Fault[] }
  /** The files are good, and something else stands in the way: a taken port, or another writer. */
  | { readonly kind: 'failed'; readonly message: string; readonly faults: readonly Fault[] };

/** What changes with a version; everything else lives as long as the process. */
type Current = { version: Version; identity: Identity; tables: EdgeTables };

/** Everything that was built, before anything is open. */
type Assembly = {
  readonly current: Current;
  readonly witness: Witness;
  readonly runtimes: Runtimes;
  readonly streams: StreamRegistry;
  readonly state: GatewayState;
  readonly guarded: GuardedFetch;
  readonly view: ViewOf;
  readonly endpoints: Endpoints;
  readonly load: SharedLoad;
  /** Brings the table of controls up to date. */
  look(): void;
  /** Makes a version the current one, at once. */
  apply(next: Version): void;
  /** Told after each version that was applied. */
  readonly followers: Followers;
};

/** `isServing` once the start is whole, until the end; `isReady` until the gateway is told to end. */
type Phase = { isServing: boolean; isReady: boolean };

type Compile = ReturnType<typeof createDefinitionCompiler>;

/** How long a drain waits for exchanges that run. */
const DRAIN_MS = 10_000;
/** How often controls are looked at; a change shows within this time. */
const CONTROLS_EVERY_MS = 1_000;

/**
 * Starts a gateway from its files. Refuses, and opens nothing, when one of them is invalid. A start is whole,
 * or it leaves nothing open.
 */
export async function startGateway(options: GatewayOptions): Promise<GatewayStart> {
  const compile = createDefinitionCompiler({ compileSchema, mirroredParameters });
  const read = (policyInForce?: string) =>
    loadVersion(options.file, { env: options.env, compile }, policyInForce);
  const { version, faults } = await read();
  if (version === undefined) return { kind: 'refused', faults };
  const opened = await openGateway(options, version, compile, read);
  if (typeof opened === 'string') return { kind: 'failed', message: opened, faults };
  return { kind: 'started', gateway: opened, faults };
}

async function openGateway(
  options: GatewayOptions,
  version: Version,
  compile: Compile,
  read: (policyInForce: string) => Promise<VersionReading>,
): Promise<Gateway | string> {
  const ring = createKeyRing(keysOf(version.settings));
  let dataPort = version.settings.listeners.data.port;
  const phase = { isReady: false, isServing: false };
  const assembly = assemble(options, version, compile, ring, () => dataPort);
  const { current, witness, look } = assembly;
  const listeners = openListeners(options, assembly, ring, phase);
  try {
    // The ports first: until they are ours nothing is touched that another gateway may be using.
    const listening = await listeners.open((port) => {
      dataPort = port;
      current.tables = buildTables(version.settings, port, publishedKeys(ring));
    });
    const refused = await startAudit(witness, version.settings, options);
    if (refused !== undefined) {
      await closeAll(assembly, listeners);
      return refused;
    }
    await assembly.state.start();
    witness.metrics.setConfig(version.hashes);
    assembly.runtimes.replace(version.settings);
    look();
    const reload = createReload({
      ...assembly,
      read,
      current: () => current.version,
      log: options.log,
    });
    const watch = await watchFiles(current, reload, options.log);
    // A file that changed between the first reading and the watch would otherwise wait for the next change.
    await reload();
    phase.isServing = true;
    phase.isReady = true;
    return run(assembly, listeners, { listening, reload, watch, phase });
  } catch (error) {
    await closeAll(assembly, listeners);
    if (error instanceof ListenerFault) return error.message;
    throw error;
  }
}

/** Resolves with a sentence where the audit cannot be had, and calls must not go on without it. */
async function startAudit(
  { audit, auditFault }: Witness,
  settings: Settings,
  { log, ending }: GatewayOptions,
): Promise<string | undefined> {
  const refused = await audit.acquire(
    (holder) => log.write('warn', 'waiting for the audit file', { detail: holder }),
    ending,
  );
  if (refused !== undefined) return refused;
  const recorded = await audit.start();
  if (recorded === 'durable' || settings.audit.onFailure === 'continue') return undefined;
  return `the audit cannot be written: ${auditFault() ?? 'the reason is not known'}`;
}

type Started = Pick<Gateway, 'listening' | 'reload'> & {
  readonly watch: ConfigWatch;
  readonly phase: Phase;
};

/** A gateway that has started whole. */
function run(assembly: Assembly, listeners: Listeners, started: Started): Gateway {
  const { listening, reload, watch, phase } = started;
  const looking = setInterval(() => {
    assembly.current.identity.keepFresh();
    assembly.look();
  }, CONTROLS_EVERY_MS);
  looking.unref();
  return {
    listening,
    reload,
    async close() {
      phase.isReady = false;
      clearInterval(looking);
      await watch.close();
      await closeAll(assembly, listeners);
    },
  };
}

function assemble(
  options: GatewayOptions,
  version: Version,
  compile: Compile,
  ring: KeyRing,
  dataPort: () => number,
): Assembly {
  const { log, build, writeStdout, now = Date.now } = options;
  const { settings } = version;
  const witness = createWitness(version, { build, ring, log, writeStdout, now });
  const guarded = createGuardedFetch();
  const state = openState(settings.state, { ring, now });
  const identityPorts = { ...guarded, ...state, now, ring };
  const identity = buildIdentity(settings, identityPorts);
  const tablesOf = (of: Settings) => buildTables(of, dataPort(), publishedKeys(ring));
  const current: Current = { version, identity, tables: tablesOf(settings) };
  const streams = createStreamRegistry(witness.metrics.openStreams);
  const followers = createFollowers();
  endWhatIsRevoked(state, { ring }, streams, followers.tell);
  const view = createViews(compile);
  const load = shareLoad(log, (upstream) => runtimes.ownCredentials(upstream));
  const drift = createDriftReport({ ...witness, ...load, log, streams, view, now });
  const runtimes = createRuntimes({
    gatewayVersion: build.version,
    wordsAbout: createWordsAbout(state.words),
    now,
    guarded,
    ...load,
    signer: assertionSigner(ring),
    metrics: witness.metrics,
    log,
    onSight: (runtime) => drift.tell(runtime, current.version),
  });
  hearReplicas(state, runtimes);
  const endpoints = createEndpoints({
    version: () => current.version,
    runtime: runtimes.get,
    view,
    gatewayVersion: build.version,
  });
  function look(): void {
    const {
      version: { settings: shown },
      identity: known,
    } = current;
    const auditFault = witness.auditFault();
    const sources = { settings: shown, identity: known, runtimes, endpoints, auditFault };
    refreshControls(witness.controls, witness.metrics, { ...sources, store: state.status() });
  }
  function apply(next: Version): void {
    const before = current.version;
    current.version = next;
    current.identity = buildIdentity(next.settings, identityPorts, current.identity);
    current.tables = tablesOf(next.settings);
    runtimes.replace(next.settings);
    witness.metrics.setNames(next.settings);
    witness.metrics.setConfig(next.hashes);
    witness.audit.setVersions(next.hashes);
    removeControls(witness.controls, before.settings, next.settings);
    streams.endWhere((stream) => !mayStay(stream, before.settings, next.settings));
    for (const runtime of runtimes.all()) drift.tell(runtime, next);
    followers.tell();
    look();
  }
  const shared = { state, guarded, view, endpoints, load, look, apply, followers };
  return { current, witness, runtimes, streams, ...shared };
}

function openListeners(
  { log, now = Date.now }: GatewayOptions,
  assembly: Assembly,
  ring: KeyRing,
  phase: Phase,
): Listeners {
  const { current, witness, runtimes, state, endpoints, look, followers } = assembly;
  const { metrics, audit, controls } = witness;
  const recordRefusal = createEdgeRecorder({ audit, metrics, now });
  let versions = 0;
  followers.follow(() => {
    versions += 1;
  });
  const ports = createPorts({
    ...assembly,
    ...assembly.load,
    version: () => current.version,
    runtime: runtimes.get,
    identity: () => current.identity,
    ring,
    audit,
    metrics,
    log,
    onVersion: followers.follow,
    countVersions: () => versions,
    now,
  });
  const listeners = createListeners(current.version.settings, {
    witness,
    authenticator: () => current.identity.adminAuthenticator,
    isReady: () => phase.isReady && audit.isWritable(),
    revocations: createRevocationDesk({
      ...{ ring, now, revocations: state.revocations },
      settings: () => current.version.settings,
    }),
    controls() {
      look();
      return controls.snapshot();
    },
    data: {
      tables: () => (phase.isServing ? current.tables : undefined),
      exchange: createExchange(ports, endpoints, metrics.inflight),
      refused: (refusal, id, address) => recordRefusal(refusal, { id, address }),
    },
  });
  followers.follow(() => listeners.renew(current.version.settings));
  return listeners;
}

async function watchFiles(
  current: Current,
  reload: () => Promise<unknown>,
  log: Log,
): Promise<ConfigWatch> {
  const watch = await watchConfiguration({
    targets: targetsOf(current.version.settings),
    async onChange() {
      await reload();
      watch.retarget(targetsOf(current.version.settings));
    },
    onError: (error) => log.write('error', 'reload failed', { code: faultCode(error) }),
  });
  return watch;
}

/** Callers first, then upstreams, then the witnesses: what happens last is still recorded. */
async function closeAll(assembly: Assembly, listeners: Listeners): Promise<void> {
  const { streams, runtimes, state, witness, guarded, load } = assembly;
  streams.endWhere(() => true);
  await listeners.closeData(DRAIN_MS);
  await load.inspection.close();
  await runtimes.close();
  await state.close();
  await witness.audit.close();
  await listeners.closeRest();
  await guarded.close();
}
