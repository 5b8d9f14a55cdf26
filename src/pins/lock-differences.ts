// Finds the differences between what an upstream offers and its lock file, and reports each once.
// This is a report and not a control: the catalog hides differing definitions independently of it.
// docs/reference/definitions.md#drift; docs/reference/audit.md.

import type { PinKind } from '../policy/definitions.js';
import type { JsonObject } from '../protocol/jsonrpc.js';
import { digestsOffered, namedPins, type PinDigest } from './approval.js';
import { type Change, compareDefinitions, compareTexts } from './comparison.js';
import type { PinnedKind } from './digest.js';
import { isKindRead, type Observed, observedNames, observedServers, shownItemsOf } from './last-seen.js';
import {
  approvedVersions,
  compareServers,
  digestServer,
  type Lock,
  PIN_KINDS,
  type Pin,
  type PinVersion,
  SERVER_MEMBERS,
  type ServerIdentity,
  versionsOf,
} from './lock.js';

/** What can differ: what is pinned, and the identity that the server states. */
export type DriftKind = PinnedKind | 'server';

/** A difference with both definitions, for display. */
export type ItemDifference = {
  readonly kind: DriftKind;
  /** `instructions` or `server` for those kinds, the uriTemplate for templates. Upstream text: escape it. */
  readonly name: string;
  /** The most serious of `changes`. */
  readonly change: Change;
  readonly changes: readonly Change[];
  /** Digests. `before` is the pinned one, absent for new definitions; `after` is absent for removed ones. */
  readonly before: string | undefined;
  readonly after: string | undefined;
  readonly beforeDefinition: JsonObject | string | undefined;
  readonly afterDefinition: JsonObject | string | undefined;
};

/** Two forms of one definition, of which only the first is in the lock file. */
export type DefinitionPair = {
  readonly kind: PinnedKind;
  readonly before: JsonObject | string;
  readonly after: JsonObject | string;
};

/** The classes of a difference. Takes up to a second for a hostile definition of a megabyte. */
export function classifyPair({ kind, before, after }: DefinitionPair): readonly Change[] {
  if (kind === 'instructions') return compareTexts(before as string, after as string);
  return compareDefinitions(kind, before as JsonObject, after as JsonObject);
}

/** Says which classes the difference of two forms has, given their digests too; none if no member differs. */
type Classify = (pair: DefinitionPair, before: string, after: string) => readonly Change[];

/** Every difference between the lock file and the last observation, in a stable order. */
export function findDifferences(lock: Lock | undefined, observed: Observed | undefined): readonly ItemDifference[] {
  return [...walkDifferences(lock, observed, classifyPair)].flat();
}

/** The same differences in steps, one for each name, so that thousands can be found in slices of the event loop. */
export function* walkDifferences(
  lock: Lock | undefined,
  observed: Observed | undefined,
  classify: Classify,
): Generator<readonly ItemDifference[], void> {
  if (observed === undefined) return;
  for (const kind of PIN_KINDS) {
    const pins = lock?.pins[kind] ?? new Map<string, Pin>();
    const names = new Set([...pins.keys(), ...observedNames(observed, kind), ...notedNames(observed, kind)]);
    const isRead = isKindRead(observed, kind);
    for (const name of [...names].sort()) {
      const offered = shownItemsOf(observed, kind, name);
      if (offered.length === 0 && !isRead) continue;
      yield differences(kind, name, pins.get(name), offered, classify);
    }
  }
  yield instructionDifferences(lock?.instructions, observed, classify);
  yield serverDifferences(lock?.server, observed);
}

/**
 * The approved forms that the upstream does not offer, except those that one of the differences reports already. They
 * stay approved, because they may be for other callers; a reviewer sees them, because a form that was replaced stays
 * usable.
 */
export function formsNotOffered(
  lock: Lock | undefined,
  observed: Observed | undefined,
  differences: readonly ItemDifference[],
): readonly PinDigest[] {
  const shown = new Set(differences.map(({ before }) => before));
  return namedPins(lock).flatMap(({ kind, name, pin }) => {
    const offered = digestsOffered(observed, { kind, name });
    return approvedVersions<JsonObject | string>(pin).flatMap(({ sha256: digest }) =>
      offered === undefined || offered.includes(digest) || shown.has(digest) ? [] : [{ kind, name, digest }],
    );
  });
}

/** A new server version is reported but is not drift: servers are updated all the time. */
export function isInformational({ change }: Pick<ItemDifference, 'change'>): boolean {
  return change === 'server-version';
}

/** A lock file without a server identity is not compared. */
function serverDifferences(known: ServerIdentity | undefined, observed: Observed): readonly ItemDifference[] {
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

function instructionDifferences(
  pin: Pin<string> | undefined,
  observed: Observed,
  classify: Classify,
): readonly ItemDifference[] {
  const offered = observed.listings.flatMap(({ instructions }) =>
    instructions === undefined ? [] : [{ digest: instructions.digest, definition: instructions.text }],
  );
  return differences('instructions', 'instructions', pin, offered, classify);
}

function differences<Definition extends JsonObject | string>(
  kind: PinnedKind,
  name: string,
  pin: Pin<Definition> | undefined,
  offered: readonly Offered<Definition>[],
  classify: Classify,
): readonly ItemDifference[] {
  const approved = approvedVersions(pin);
  const versions = approved.length > 0 ? approved : versionsOf(pin);
  // Of several versions, compare with one that is no longer offered: that is the one that changed.
  const isOffered = ({ sha256 }: PinVersion<Definition>): boolean => offered.some(({ digest }) => digest === sha256);
  const base = versions.find((version) => !isOffered(version)) ?? versions[0];
  // Without an approval, only definitions that the lock file does not hold at all are drift.
  const known = new Set(versions.map(({ sha256 }) => sha256));
  if (base !== undefined && offered.length === 0 && approved.length > 0) {
    return [difference(kind, name, base, undefined, ['removed'])];
  }
  const seen = new Map(offered.map((item) => [item.digest, item]));
  return [...seen.values()]
    .filter((item) => !known.has(item.digest))
    .map((item) => {
      if (base === undefined) return difference(kind, name, base, item, ['new-tool']);
      if (item.definition === undefined) return difference(kind, name, base, item, ['unclassified']);
      const pair = { kind, before: base.definition, after: item.definition };
      const changes = classify(pair, base.sha256, item.digest);
      // The digests differ but no member does, as with numbers that have no exact form.
      return difference(kind, name, base, item, changes.length > 0 ? changes : ['notation-only']);
    });
}

function difference<Definition extends JsonObject | string>(
  kind: PinnedKind,
  name: string,
  before: { readonly sha256: string; readonly definition: Definition } | undefined,
  after: Offered<Definition> | undefined,
  changes: readonly Change[],
): ItemDifference {
  return {
    kind,
    name,
    change: changes[0] ?? 'unclassified',
    changes,
    before: before?.sha256,
    after: after?.digest,
    beforeDefinition: before?.definition,
    afterDefinition: after?.definition,
  };
}

/** Remembers which differences of one upstream were reported. */
export interface DriftWatch {
  /** Begins a report of all differences that exist now. Each report ends before the next begins. */
  begin(): DriftRound;
  /** What differed in the last report, except for what is informational. */
  differing(): readonly Pick<ItemDifference, 'kind' | 'name'>[];
}

export type DriftRound = {
  /** Whether the difference did not exist in the report before. */
  isNew(difference: ItemDifference): boolean;
  end(): void;
};

/** Remembers reports while the difference lasts: a restored definition that changes again is reported again. */
export function createDriftWatch(): DriftWatch {
  let reported = new Set<string>();
  let differing: readonly Pick<ItemDifference, 'kind' | 'name'>[] = [];
  return {
    differing: () => differing,
    begin() {
      const keys = new Set<string>();
      // Without the definitions, which would be held as long as they differ.
      const found: Pick<ItemDifference, 'kind' | 'name'>[] = [];
      return {
        isNew(difference) {
          const { kind, name, before, after } = difference;
          const key = `${kind} ${before} ${after} ${name}`;
          keys.add(key);
          if (!isInformational(difference)) found.push({ kind, name });
          return !reported.has(key);
        },
        end() {
          reported = keys;
          differing = found;
        },
      };
    },
  };
}
