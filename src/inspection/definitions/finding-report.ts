// Records what the scan finds in what upstreams offer, once while it lasts, and says what it withholds for the control of
// an upstream's pins. docs/reference/scan.md; docs/reference/audit.md.

import type { UpstreamSettings } from '../../config/settings.js';
import { type PinName, pinOf } from '../../pins/approval.js';
import type { Observed } from '../../pins/last-seen.js';
import type { Lock } from '../../pins/lock.js';
import type { Emit } from '../../policy/events.js';
import type { RecordEvent } from '../../policy/security-events.js';
import type { DefinitionScan, ScannedItem } from './listing-scan.js';
import type { DefinitionFinding } from './scan.js';

/** An upstream with what its definitions were scanned by, and the lock file in force. */
type ScannedUpstream = {
  readonly settings: Pick<UpstreamSettings, 'name' | 'pinning'>;
  readonly scan: Pick<DefinitionScan, 'found'>;
  lock(): Lock | undefined;
};

type FindingPorts = { readonly record: RecordEvent; readonly emit: Emit };

type FindingReport = {
  /** One function for each item in which something new was found, which records it; false if it was only counted. */
  news(runtime: ScannedUpstream, observed: Observed | undefined, lock: Lock | undefined): readonly (() => boolean)[];
  /** The definitions that the scan would keep from being used, at the last call of `news`. */
  blocked(upstream: string): readonly PinName[];
};

/** What an item that could not be scanned is recorded as. */
const SCAN_FAILED = {
  id: 'scan-failed',
  kind: 'scan-failed',
  tier: 'block',
  pointer: '',
  evidence: '',
  reason: 'The definition could not be scanned.',
} as const;

type RecordedFinding = Omit<DefinitionFinding, 'item' | 'kind'> & { readonly kind: string };

function findingsToRecord({ findings, isFailed }: ScannedItem): readonly RecordedFinding[] {
  return isFailed ? [SCAN_FAILED] : findings;
}

function isBlocking(item: ScannedItem): boolean {
  return findingsToRecord(item).some(({ tier }) => tier === 'block');
}

/** Creates the report of what the scans of all upstreams find. */
export function createFindingReport({ record, emit }: FindingPorts): FindingReport {
  const reported = new Map<string, ReadonlySet<string>>();
  const blocked = new Map<string, readonly PinName[]>();

  /** False if it is only counted. */
  function recordFinding(runtime: ScannedUpstream, item: ScannedItem, finding: RecordedFinding): boolean {
    const { name: upstream, pinning } = runtime.settings;
    const { kind, name } = item;
    const { id, kind: found, tier, pointer, evidence, reason } = finding;
    const action = tier === 'block' && pinning.scan === 'block' ? 'withhold' : 'flag';
    const isPinned = pinOf(runtime.lock(), { kind, name }) !== undefined;
    const suppressed = record({
      ...{ type: 'pin.finding', upstream, kind, name, isPinned },
      ...{ finding: id, found, tier, pointer, evidence, action },
    });
    emit('found', { upstream, kind, name, found, isGrave: tier === 'block', action, reason, suppressed });
    return suppressed !== undefined;
  }

  /** False if all of it is only counted. */
  function recordItem(runtime: ScannedUpstream, item: ScannedItem): boolean {
    return findingsToRecord(item)
      .map((finding) => recordFinding(runtime, item, finding))
      .includes(true);
  }

  return {
    blocked: (upstream) => blocked.get(upstream) ?? [],
    news(runtime, observed, lock) {
      const { name } = runtime.settings;
      const found = runtime.scan.found(observed, lock);
      const keys = found.map((item) => `${item.content} ${findingsToRecord(item).map(({ id }) => id)}`);
      const before = reported.get(name);
      reported.set(name, new Set(keys));
      const blocking = found.filter(isBlocking).map(({ kind, name: item }) => ({ kind, name: item }));
      blocked.set(name, blocking);
      const news = found.filter((_, index) => before?.has(keys[index] ?? '') !== true);
      return news.map((item) => () => recordItem(runtime, item));
    },
  };
}
