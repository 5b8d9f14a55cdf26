// What follows when an upstream shows something else than before: recorded, counted, logged, and told
// to the clients whose lists it changes (contract §5).

import { PLAIN_SESSION } from '../mcp/listing.js';
import type { LoopScheduler } from '../mcp/loop-turns.js';
import type { Audit } from '../observe/audit.js';
import type { Log } from '../observe/log.js';
import type { Metrics } from '../observe/metrics.js';
import { createDriftWatch, type Drift, type DriftWatch, isInformational } from '../pins/drift.js';
import type { PinKind, PinState } from '../policy/definition.js';
import type { StreamRegistry } from './streams.js';
import type { UpstreamRuntime } from './upstream-runtime.js';
import type { Version } from './version.js';
import type { SnapshotOf } from './view.js';

type DriftPorts = {
  readonly audit: Audit;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly streams: StreamRegistry;
  readonly snapshotOf: SnapshotOf;
  readonly loopScheduler: LoopScheduler;
  readonly now: () => number;
};

/** More differences than these are recorded in turns. */
const MAX_AT_ONCE = 200;

const LIST_CHANGED: { readonly [kind in PinKind]: string } = {
  tool: 'notifications/tools/list_changed',
  prompt: 'notifications/prompts/list_changed',
  template: 'notifications/resources/list_changed',
  resource: 'notifications/resources/list_changed',
};
const PIN_STATES: readonly PinState[] = [
  'approved',
  'pending',
  'unpinned',
  'changed',
  'absent',
  'blocked',
  'invalid',
];

/** Tells of drift. One for the gateway; keeps a watch for each upstream, so that nothing is told twice. */
export function createDriftReport(ports: DriftPorts): {
  /** After a new sight or a new version. */
  report(runtime: UpstreamRuntime, version: Version): void;
} {
  const watches = new Map<string, DriftWatch>();
  return {
    report(runtime, version) {
      const { name } = runtime.settings;
      const watch = watches.get(name) ?? createDriftWatch(name);
      watches.set(name, watch);
      // Without pinning nothing drifts; when it is turned on, what differs then is told.
      const isPinned = modeOf(runtime, version) === 'strict';
      const observed = isPinned ? runtime.observed() : undefined;
      const drifts = watch.report(version.locks.get(name), observed, ports.now());
      for (const drift of drifts.slice(0, MAX_AT_ONCE)) record(drift, ports);
      if (drifts.length > MAX_AT_ONCE) void recordInSlices(name, drifts.slice(MAX_AT_ONCE), ports);
      for (const method of Object.values(LIST_CHANGED)) {
        ports.streams.announce(name, method);
      }
      count(runtime, version, ports);
    },
  };
}

function modeOf({ settings }: UpstreamRuntime, version: Version): 'strict' | 'off' {
  return (version.settings.upstreams.get(settings.name) ?? settings).pinning.mode;
}

/** A server that changes thousands of definitions at once holds nobody up while each is recorded. */
async function recordInSlices(
  upstream: string,
  drifts: readonly Drift[],
  ports: DriftPorts,
): Promise<void> {
  const { loopScheduler } = ports;
  for (const drift of drifts) {
    await loopScheduler.take(upstream);
    const startedMs = performance.now();
    record(drift, ports);
    loopScheduler.spend(startedMs);
  }
}

function record(drift: Drift, { audit, metrics, log }: DriftPorts): void {
  const { upstream, kind, name, change, before, after } = drift;
  if (isInformational(drift)) {
    log.write('info', 'server version changed', { upstream });
    return;
  }
  audit.event({ type: 'pin.drift', upstream, kind, name, change, before, after });
  metrics.drift(upstream, change);
  const what = kind === 'server' ? 'server calls itself otherwise' : 'definition drifted';
  log.write('warn', what, { upstream, detail: change });
}

/** How many tools stand in each state; what is offered without a pin counts as unpinned. */
function count(
  runtime: UpstreamRuntime,
  version: Version,
  { metrics, snapshotOf }: DriftPorts,
): void {
  const catalogue = snapshotOf(runtime, version).catalogueFor(PLAIN_SESSION);
  const counts = new Map<PinState, number>();
  const pinned = new Set(catalogue.names('tool'));
  const seen = (runtime.observed()?.listings ?? []).flatMap((listing) => [
    ...listing.seen.tool.keys(),
  ]);
  for (const name of new Set([...pinned, ...seen])) {
    const { state } = catalogue.standing('tool', name);
    counts.set(state, (counts.get(state) ?? 0) + 1);
  }
  for (const state of PIN_STATES)
    metrics.setTools(runtime.settings.name, state, counts.get(state) ?? 0);
}
