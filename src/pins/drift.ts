// Finds the differences between what an upstream offers and its lock file, and reports each once.
// This is a report and not a control: the catalog hides differing definitions independently of it.
// docs/contract.md §5 (classified and recorded) and §8 (`pin.drift`).

import type { PinKind } from '../policy/definitions.js';
import type { JsonObject } from '../protocol/jsonrpc.js';
import { type Change, compareDefinitions, compareTexts } from './compare.js';
import type { PinnedKind } from './digest.js';
import { type Observed, observedItemsOf, observedNames, observedServers } from './last-seen.js';
import type { ServerIdentity } from './lock.js';
import {
  approvedVersions,
  compareServers,
  digestServer,
  type Lock,
  PIN_KINDS,
  type Pin,
  type PinVersion,
  SERVER_MEMBERS,
  versionsOf,
} from './lock.js';

/** What can differ: what is pinned, and the identity that the server states. */
export type DriftKind = PinnedKind | 'server';

export type Drift = {
  readonly upstream: string;
  readonly kind: DriftKind;
  /** `instructions` or `server` for those kinds, the uriTemplate for templates. Upstream text: escape it. */
  readonly name: string;
  /** The most serious of `changes`. */
  readonly change: Change;
  readonly changes: readonly Change[];
  /** Digests. `before` is the pinned one, absent for new definitions; `after` is absent for removed ones. */
  readonly before: string | undefined;
  readonly after: string | undefined;
  /** Milliseconds since the epoch. */
  readonly at: number;
};

/** A difference with both definitions, for display. */
export type ItemDifference = Omit<Drift, 'at' | 'upstream'> & {
  readonly beforeDefinition: JsonObject | string | undefined;
  readonly afterDefinition: JsonObject | string | undefined;
};

/** Every difference between the lock file and the last observation, in a stable order. */
export function findDifferences(
  lock: Lock | undefined,
  observed: Observed | undefined,
): readonly ItemDifference[] {
  if (observed === undefined) return [];
  const found = PIN_KINDS.flatMap((kind) => {
    const pins = lock?.pins[kind] ?? new Map<string, Pin>();
    const names = new Set([
      ...pins.keys(),
      ...observedNames(observed, kind),
      ...notedNames(observed, kind),
    ]);
    return [...names].sort().flatMap((name) => differencesOf(kind, name, pins.get(name), observed));
  });
  return [
    ...found,
    ...instructionDifferences(lock?.instructions, observed),
    ...serverDifferences(lock?.server, observed),
  ];
}

/** A new server version is reported but is not drift: servers are updated all the time. */
export function isInformational({ change }: Pick<ItemDifference, 'change'>): boolean {
  return change === 'server-version';
}

/** A lock file without a server identity is not compared. */
function serverDifferences(
  known: ServerIdentity | undefined,
  observed: Observed,
): readonly ItemDifference[] {
  if (known === undefined) return [];
  return observedServers(observed).flatMap((seen) => {
    const changes = compareServers(known, seen);
    const [change] = changes;
    if (change === undefined) return [];
    return {
      kind: 'server' as const,
      name: 'server',
      change,
      changes,
      before: digestServer(known),
      after: digestServer(seen),
      beforeDefinition: asDefinition(known),
      afterDefinition: asDefinition(seen),
    };
  });
}

function asDefinition(server: ServerIdentity): JsonObject {
  const members = SERVER_MEMBERS.map((member) => [member, server[member]] as const);
  return Object.fromEntries(members.filter(([, text]) => text !== undefined)) as JsonObject;
}

function notedNames(observed: Observed, kind: PinKind): readonly string[] {
  return [...observed.noted.values()].flatMap((items) =>
    items.flatMap((item) => (item.kind === kind ? item.name : [])),
  );
}

type Offered<Definition> = {
  readonly digest: string;
  readonly definition: Definition | undefined;
};

function differencesOf(
  kind: PinKind,
  name: string,
  pin: Pin | undefined,
  observed: Observed,
): readonly ItemDifference[] {
  const compare = (before: JsonObject | undefined, after: JsonObject | undefined) =>
    compareDefinitions(kind, before, after);
  return differences(kind, name, pin, offeredOf(observed, kind, name), compare);
}

function offeredOf(
  observed: Observed,
  kind: PinKind,
  name: string,
): readonly Offered<JsonObject>[] {
  const listed = observedItemsOf(observed, kind, name);
  if (listed.length > 0) return listed;
  return [...observed.noted.values()].flatMap((items) =>
    items.filter((item) => item.kind === kind && item.name === name),
  );
}

function instructionDifferences(
  pin: Pin<string> | undefined,
  observed: Observed,
): readonly ItemDifference[] {
  const offered = observed.listings.flatMap(({ instructions }) =>
    instructions === undefined
      ? []
      : [{ digest: instructions.digest, definition: instructions.text }],
  );
  return differences('instructions', 'instructions', pin, offered, compareTexts);
}

function differences<Definition extends JsonObject | string>(
  kind: PinnedKind,
  name: string,
  pin: Pin<Definition> | undefined,
  offered: readonly Offered<Definition>[],
  compare: (before: Definition | undefined, after: Definition | undefined) => readonly Change[],
): readonly ItemDifference[] {
  const approved = approvedVersions(pin);
  const versions = approved.length > 0 ? approved : versionsOf(pin);
  // Of several versions, compare with one that is no longer offered: that is the one that changed.
  const isOffered = ({ sha256 }: PinVersion<Definition>): boolean =>
    offered.some(({ digest }) => digest === sha256);
  const base = versions.find((version) => !isOffered(version)) ?? versions[0];
  // Without an approval, only definitions that the lock file does not hold at all are drift.
  const known = new Set(versions.map(({ sha256 }) => sha256));
  if (base !== undefined && offered.length === 0 && approved.length > 0) {
    return [difference(kind, name, base, undefined, compare(base.definition, undefined))];
  }
  const seen = new Map(offered.map((item) => [item.digest, item]));
  return [...seen.values()]
    .filter((item) => !known.has(item.digest))
    .map((item) => {
      const isKnown = base === undefined || item.definition !== undefined;
      const changes = isKnown ? compare(base?.definition, item.definition) : [];
      return difference(kind, name, base, item, changes);
    });
}

function difference<Definition extends JsonObject | string>(
  kind: PinnedKind,
  name: string,
  before: { readonly sha256: string; readonly definition: Definition } | undefined,
  after: Offered<Definition> | undefined,
  changes: readonly Change[],
): ItemDifference {
  const [change = fallbackChange(before, after)] = changes;
  return {
    kind,
    name,
    change,
    changes: changes.length > 0 ? changes : [change],
    before: before?.sha256,
    after: after?.digest,
    beforeDefinition: before?.definition,
    afterDefinition: after?.definition,
  };
}

/** The digests differ but no member does, as with numbers that have no exact form: only notation differs. */
function fallbackChange(before: unknown, after: Offered<unknown> | undefined): Change {
  if (before === undefined) return 'new-tool';
  return after?.definition === undefined ? 'unclassified' : 'notation-only';
}

/** Reports the differences of one upstream that were not reported before. */
export interface DriftWatch {
  /** The differences that did not exist at the last call. */
  report(lock: Lock | undefined, observed: Observed | undefined, atMs: number): readonly Drift[];
  /** What differed at the last call, except for what is informational. */
  differing(): readonly Pick<Drift, 'kind' | 'name'>[];
}

/** Remembers reports while the difference lasts: a restored definition that changes again is reported again. */
export function createDriftWatch(upstream: string): DriftWatch {
  let reported = new Set<string>();
  let differing: readonly Pick<Drift, 'kind' | 'name'>[] = [];
  return {
    differing: () => differing,
    report(lock, observed, atMs) {
      const found = findDifferences(lock, observed);
      // Without the definitions, which would be held as long as they differ.
      differing = found
        .filter((difference) => !isInformational(difference))
        .map(({ kind, name }) => ({ kind, name }));
      const now = new Set<string>();
      const drifts: Drift[] = [];
      for (const { kind, name, change, changes, before, after } of found) {
        const key = JSON.stringify([kind, name, before, after]);
        now.add(key);
        if (reported.has(key)) continue;
        drifts.push({ upstream, kind, name, change, changes, before, after, at: atMs });
      }
      reported = now;
      return drifts;
    },
  };
}
