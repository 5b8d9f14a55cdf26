// Reports what the scan finds in definitions that nobody approved: recorded and counted once while it lasts, and named
// in the control of the upstream's pins. docs/contract.md §5 (`pinning.scan`) and §8 (`pin.finding`).

import type { Audit } from '../audit/audit.js';
import type { DefinitionFinding } from '../inspection/definitions/scan.js';
import { type PinName, pinOf } from '../pins/approval.js';
import type { Observed } from '../pins/last-seen.js';
import type { Lock } from '../pins/lock.js';
import type { Log } from '../telemetry/log.js';
import type { Metrics } from '../telemetry/metrics.js';
import type { ScannedItem } from './definition-scan.js';
import type { UpstreamRuntime } from './upstreams.js';

type FindingPorts = {
  readonly audit: Audit;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly mask: (name: string) => string;
};

type FindingReport = {
  /** Returns the items in which something new was found; `record` writes what was found in one of them. */
  news(
    runtime: UpstreamRuntime,
    observed: Observed | undefined,
    lock: Lock | undefined,
  ): readonly ScannedItem[];
  /** False if all of it is only counted. */
  record(runtime: UpstreamRuntime, item: ScannedItem): boolean;
  /** The definitions that the scan would keep from being used, at the last call of `news`. */
  blocked(upstream: string): readonly PinName[];
};

/** What an item that could not be scanned is recorded as. */
const FAILED = {
  id: 'scan-failed',
  kind: 'scan-failed',
  tier: 'block',
  pointer: '',
  evidence: '',
  reason: 'The definition could not be scanned.',
} as const;

type Recorded = Omit<DefinitionFinding, 'item' | 'kind'> & { readonly kind: string };

function recordedOf({ findings, isFailed }: ScannedItem): readonly Recorded[] {
  return isFailed ? [FAILED] : findings;
}

function isBlocking(item: ScannedItem): boolean {
  return recordedOf(item).some(({ tier }) => tier === 'block');
}

export function createFindingReport({ audit, metrics, log, mask }: FindingPorts): FindingReport {
  const reported = new Map<string, ReadonlySet<string>>();
  const blocked = new Map<string, readonly PinName[]>();

  /** False if it is only counted. */
  function recordFinding(runtime: UpstreamRuntime, item: ScannedItem, finding: Recorded): boolean {
    const { name: upstream, pinning } = runtime.settings;
    const { kind, name } = item;
    const { id, kind: found, tier, pointer, evidence, reason } = finding;
    const action = tier === 'block' && pinning.scan === 'block' ? 'withhold' : 'flag';
    const isPinned = pinOf(runtime.lock(), { kind, name }) !== undefined;
    const suppressed = audit.event({
      ...{ type: 'pin.finding', upstream, kind, name, isPinned },
      ...{ finding: id, found, tier, pointer, evidence, action },
    });
    metrics.definitionFinding(upstream, found, action);
    if (suppressed === undefined) return false;
    if (tier === 'block')
      log.write('warn', 'the scan found a reason to withhold a definition that nobody approved', {
        ...{ upstream, kind, name: mask(name), detail: `${found}: ${reason}` },
        ...(suppressed > 0 && { suppressed }),
      });
    return true;
  }

  return {
    blocked: (upstream) => blocked.get(upstream) ?? [],
    news(runtime, observed, lock) {
      const { name } = runtime.settings;
      const found = runtime.scan.found(observed, lock);
      const keys = found.map((item) => `${item.content} ${recordedOf(item).map(({ id }) => id)}`);
      const before = reported.get(name);
      reported.set(name, new Set(keys));
      const blocking = found
        .filter(isBlocking)
        .map(({ kind, name: item }) => ({ kind, name: item }));
      blocked.set(name, blocking);
      return found.filter((_, index) => before?.has(keys[index] ?? '') !== true);
    },
    record: (runtime, item) =>
      recordedOf(item)
        .map((finding) => recordFinding(runtime, item, finding))
        .includes(true),
  };
}
