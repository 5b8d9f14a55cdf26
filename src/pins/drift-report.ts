// Reports what becomes of definitions: that they drift from their pins, that a new version approves or blocks them, and
// that they are trusted on first use. Drift is recorded, reported and announced to clients whose lists it changes
// (docs/reference/definitions.md#drift).

import type { UpstreamSettings } from '../config/settings.js';
import type { Catalog, PinKind, PinState } from '../policy/definitions.js';
import type { Emit } from '../policy/events.js';
import { compileSchema } from '../policy/json-schema/validator.js';
import type { RecordEvent } from '../policy/security-events.js';
import { mirroredParameters } from '../protocol/headers.js';
import { finishInTurns, type LoopScheduler, takeTurn } from '../protocol/json/incremental.js';
import { isObject } from '../protocol/jsonrpc.js';
import { LIST_CHANGED_NOTIFICATIONS } from '../protocol/subscriptions.js';
import { cleanForeign, type MaskText } from '../text/escaping.js';
import { findDecisions, type PinDecision, type PinName } from './approval.js';
import { compileDefinition } from './catalog.js';
import { type DriftClasses, isOpen } from './drift-classes.js';
import type { FirstUse } from './first-use.js';
import { type Observed, shownItemsOf } from './last-seen.js';
import { approvedVersions, type Lock, PIN_KINDS } from './lock.js';
import {
  createDriftWatch,
  type DriftRound,
  type DriftWatch,
  type ItemDifference,
  isInformational,
} from './lock-differences.js';

/** An upstream with what it offers and what of that is trusted. */
export type PinnedUpstream = {
  readonly settings: UpstreamSettings;
  readonly firstUse: Pick<FirstUse, 'isSettled'>;
  /** The lock file in force, with what is trusted besides. */
  lock(): Lock | undefined;
  observed(): Observed | undefined;
};

/** What is read of a configuration version. */
type PinnedVersion = { readonly settings: { readonly upstreams: ReadonlyMap<string, UpstreamSettings> } };

/** What the scan has found, which is reported together with drift. */
type FindingReport<Upstream> = {
  /** One function for each item in which something new was found, which records it; false if it was only counted. */
  news(upstream: Upstream, observed: Observed | undefined, lock: Lock | undefined): readonly (() => boolean)[];
  /** The definitions that the scan would keep from being used, at the last call of `news`. */
  blocked(upstream: string): readonly PinName[];
};

type DriftPorts<Upstream, Version> = {
  readonly record: RecordEvent;
  readonly emit: Emit;
  /** Announces on the open streams of an upstream that a list changed. */
  readonly announce: (upstream: string, method: string) => void;
  readonly catalogOf: (upstream: Upstream, version: Version) => Catalog;
  readonly classes: DriftClasses;
  readonly findings: FindingReport<Upstream>;
  readonly loopScheduler: LoopScheduler;
  /** Masks what an upstream wrote, for the log and the controls. */
  readonly mask: MaskText;
};

/** Differences and decisions beyond this number are found and recorded in slices of the event loop. */
const MAX_AT_ONCE = 200;

const PIN_STATES: readonly PinState[] = [
  'approved',
  'pending',
  'unpinned',
  'changed',
  'absent',
  'blocked',
  'invalid',
  'poisoned',
];

/** Reports of one upstream that wait; a further one replaces the last of them. */
const MAX_WAITING = 4;

/**
 * One report of what was offered when it was asked for, because something else may be by the time it is made: the new
 * differences found so far, and the steps that find the others.
 */
type Pass<Upstream, Version> = {
  readonly runtime: Upstream;
  readonly version: Version;
  readonly lock: Lock | undefined;
  readonly observed: Observed | undefined;
  readonly steps: Generator<readonly ItemDifference[], void>;
  readonly drifts: ItemDifference[];
};

/** The reports of one upstream that wait for the one that is being made, and the end of them all. */
type Queue<Upstream, Version> = { readonly waiting: Pass<Upstream, Version>[]; readonly ended: Promise<void> };

/** Takes the steps of some names. False if there are no more. */
function takeSteps({ steps, drifts }: Pick<Pass<unknown, unknown>, 'steps' | 'drifts'>, round: DriftRound): boolean {
  for (let taken = 0; taken < MAX_AT_ONCE; taken += 1) {
    const step = steps.next();
    if (step.done === true) return false;
    for (const difference of step.value) if (round.isNew(difference)) drifts.push(difference);
  }
  return true;
}

/** Takes the steps that are left, in parts. */
function* restOf(pass: Parameters<typeof takeSteps>[0], round: DriftRound): Generator<void, void> {
  while (takeSteps(pass, round)) yield;
}

/** Reports drift. It keeps a watch per upstream, so that no difference is reported twice. */
export function createDriftReport<Upstream extends PinnedUpstream, Version extends PinnedVersion>(
  ports: DriftPorts<Upstream, Version>,
): {
  /**
   * To be called after a new observation or a new configuration version. Resolves once no report of the upstream is being
   * made; nothing if this one is complete already. Never throws or rejects.
   */
  report(runtime: Upstream, version: Version): Promise<void> | undefined;
  /** Why the pins of an upstream are not as they should be, in words that name the items; empty if they are. */
  describe(upstream: UpstreamSettings): readonly string[];
  /** Reports where clients reach an upstream and what of it is pinned. */
  announce(runtime: Upstream, version: Version): void;
} {
  type OwnPass = Pass<Upstream, Version>;
  const watches = new Map<string, DriftWatch>();
  const { findings } = ports;
  const unusable = new Map<string, readonly UnusableItem[]>();
  const queues = new Map<string, Queue<Upstream, Version>>();

  function recordDrifts(upstream: string, drifts: readonly ItemDifference[]): void {
    recordAll(upstream, drifts, (drift) => recordDrift(upstream, drift, ports), ports);
  }

  function beginRound({ runtime }: OwnPass): DriftRound {
    const { name } = runtime.settings;
    const watch = watches.get(name) ?? createDriftWatch();
    watches.set(name, watch);
    return watch.begin();
  }

  /** Finds the first differences at once, and those of thousands of definitions in slices of the event loop. */
  function runPass(pass: OwnPass, waiting: readonly OwnPass[]): Promise<void> | undefined {
    const round = beginRound(pass);
    return takeSteps(pass, round) ? finishInSlices(pass, round, waiting) : endPass(pass, round, waiting);
  }

  async function finishInSlices(pass: OwnPass, round: DriftRound, waiting: readonly OwnPass[]): Promise<void> {
    const turns = { upstream: pass.runtime.settings.name, loopScheduler: ports.loopScheduler };
    await finishInTurns(turns, restOf(pass, round));
    await takeTurn(turns, () => endPass(pass, round, waiting));
  }

  /** The states of thousands of definitions are found in slices too, unless another report finds them anew. */
  function endPass(pass: OwnPass, round: DriftRound, waiting: readonly OwnPass[]): Promise<void> | undefined {
    const { runtime, version } = pass;
    const { name } = runtime.settings;
    round.end();
    reportDrifts(pass);
    const isOver = () => waiting.length > 0;
    return findStates(runtime, version, { ...ports, isOver }, (states) => {
      noteUnusable(
        pass,
        states.filter(({ state }) => state === 'invalid'),
      );
      ports.emit('toolsCounted', { upstream: name, states: countTools(states) });
    });
  }

  /** Reports each definition that cannot be used when it becomes so, with the place and the error. */
  function noteUnusable({ runtime, lock, observed }: OwnPass, items: readonly PinName[]): void {
    const { name: upstream } = runtime.settings;
    const before = unusable.get(upstream) ?? [];
    const known = new Map(before.map((one) => [`${one.kind} ${one.name}`, one]));
    const next = items.map((item): UnusableItem => {
      const detail = describeUnusable(runtime.settings, item, { lock, observed }, ports.mask);
      const isKnown = known.get(`${item.kind} ${item.name}`)?.detail === detail;
      if (!isKnown) ports.emit('unusable', { upstream, kind: item.kind, name: item.name, detail });
      return { ...item, detail };
    });
    unusable.set(upstream, next);
  }

  /** A report that fails does not stop those that wait. */
  async function runAll(upstream: string, running: Promise<void>, waiting: OwnPass[]): Promise<void> {
    const noteError = (error: unknown) => noteFailure(upstream, error);
    await running.catch(noteError);
    for (let pass = waiting.shift(); pass !== undefined; pass = waiting.shift())
      await finishInSlices(pass, beginRound(pass), waiting).catch(noteError);
    queues.delete(upstream);
  }

  function noteFailure(upstream: string, error: unknown): void {
    ports.emit('driftUnreported', { upstream, error });
  }

  function reportDrifts({ runtime, lock, observed, drifts }: OwnPass): void {
    const { name } = runtime.settings;
    recordDrifts(
      name,
      drifts.filter((drift) => !isOpen(drift)),
    );
    void recordLater(name, drifts.filter(isOpen));
    const news = findings.news(runtime, observed, lock);
    recordAll(name, news, (record) => record(), ports);
    for (const method of LIST_CHANGED_NOTIFICATIONS) ports.announce(name, method);
  }

  /** Records what could not be classified at once. */
  async function recordLater(upstream: string, drifts: readonly ItemDifference[]): Promise<void> {
    if (drifts.length > 0) recordDrifts(upstream, await ports.classes.classify(upstream, drifts));
  }

  return {
    describe({ name, pinning }) {
      const problems = [
        ['not as pinned', watches.get(name)?.differing()],
        ['unusable', unusable.get(name)],
        [pinning.scan === 'block' ? 'withheld by the scan' : 'found by the scan', findings.blocked(name)],
      ] as const;
      return problems.flatMap(([what, items = []]) =>
        items.length === 0 ? [] : `${what}: ${describeItems(items, ports.mask)}`,
      );
    },
    report(runtime, version) {
      const { name } = runtime.settings;
      // Without pinning nothing drifts. When pinning is turned on, the differences at that moment are reported.
      const isPinned = modeOf(runtime, version) !== 'off';
      const isKnown = isPinned && runtime.firstUse.isSettled();
      const lock = runtime.lock();
      const observed = runtime.observed();
      const steps = ports.classes.walk(lock, isKnown ? observed : undefined);
      const pass = { runtime, version, lock, observed, steps, drifts: [] };
      const queue = queues.get(name);
      if (queue !== undefined) {
        if (queue.waiting.length >= MAX_WAITING) queue.waiting.pop();
        queue.waiting.push(pass);
        return queue.ended;
      }
      try {
        const waiting: OwnPass[] = [];
        const running = runPass(pass, waiting);
        if (running === undefined) return undefined;
        const ended = runAll(name, running, waiting);
        queues.set(name, { waiting, ended });
        return ended;
      } catch (error) {
        noteFailure(name, error);
        return undefined;
      }
    },
    announce(runtime, version) {
      const { name, resource } = runtime.settings;
      const protocols = (runtime.observed()?.listings ?? []).flatMap((one) => one.protocolVersions);
      const at = { upstream: name, url: resource, protocols: [...new Set(protocols)] };
      if (modeOf(runtime, version) === 'off') {
        ports.emit('reachable', { ...at, pins: undefined });
        return;
      }
      void findStates(runtime, version, ports, (found) => {
        const states = [...found.map(({ state }) => state), ...instructionStates(runtime)];
        ports.emit('reachable', { ...at, pins: countStates(states) });
      });
    },
  };
}

/** A definition that cannot be used, and why, in words that are safe in a log. */
type UnusableItem = PinName & { readonly detail: string };

const MAX_DETAIL = 300;

/** The place and the error, of the approved form if there is one, else of one that is offered. */
function describeUnusable(
  { formats }: Pick<UpstreamSettings, 'formats'>,
  { kind, name }: PinName,
  { lock, observed }: { readonly lock: Lock | undefined; readonly observed: Observed | undefined },
  mask: MaskText,
): string {
  if (kind === 'instructions') return 'unusable';
  const approved = approvedVersions(lock?.pins[kind].get(name)).map((one) => one.definition);
  const offered = shownItemsOf(observed, kind, name).flatMap((one) => one.definition ?? []);
  const tools = { compileSchema, mirroredParameters };
  for (const definition of [...approved, ...offered]) {
    if (!isObject(definition)) continue;
    const compiled = compileDefinition(tools, kind, definition, formats);
    if (!('schemaError' in compiled)) continue;
    const { pointer, why } = compiled.schemaError;
    const clause = `${pointer === '' ? '' : `${pointer.slice(1)}: `}${why}`;
    return cleanForeign(mask(clause)).slice(0, MAX_DETAIL);
  }
  return 'its name is offered more than once';
}

const MAX_DESCRIBED = 3;

/** `tool "a", prompt "b" and 3 more`. */
function describeItems(
  items: readonly (Pick<ItemDifference, 'kind' | 'name'> & { readonly detail?: string })[],
  mask: MaskText,
): string {
  const shown = items.slice(0, MAX_DESCRIBED).map(({ kind, name, detail }) => {
    const item = kind === name ? kind : `${kind} "${cleanForeign(mask(name))}"`;
    return detail === undefined ? item : `${item} (${detail})`;
  });
  const rest = items.length - MAX_DESCRIBED;
  return `${shown.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`;
}

/** Read from the version in force, because an earlier one may have started the runtime. */
export function modeOf(
  { settings }: Pick<PinnedUpstream, 'settings'>,
  version: PinnedVersion,
): UpstreamSettings['pinning']['mode'] {
  return (version.settings.upstreams.get(settings.name) ?? settings).pinning.mode;
}

type SliceOwner = {
  readonly loopScheduler: LoopScheduler;
  /** Once it holds, nothing further is recorded. */
  readonly isOver?: () => boolean;
};

function recordAll<Item>(
  upstream: string,
  items: readonly Item[],
  record: (item: Item) => unknown,
  owner: SliceOwner,
): void {
  for (const item of items.slice(0, MAX_AT_ONCE)) record(item);
  const rest = items.slice(MAX_AT_ONCE);
  if (rest.length > 0) void recordInSlices(upstream, rest, record, owner);
}

/**
 * Records in slices, so that a server that changes thousands of definitions at once does not block the event loop. Waits
 * for no turn after what was only counted, `false`, so that it does not delay the records of what is written.
 */
async function recordInSlices<Item>(
  upstream: string,
  items: readonly Item[],
  record: (item: Item) => unknown,
  { loopScheduler, isOver }: SliceOwner,
): Promise<void> {
  let counted = MAX_AT_ONCE;
  for (const item of items) {
    if (counted >= MAX_AT_ONCE) {
      counted = 0;
      await loopScheduler.waitForTurn(upstream);
      if (isOver?.() === true) return;
    }
    const startedMs = performance.now();
    counted = record(item) === false ? counted + 1 : MAX_AT_ONCE;
    loopScheduler.recordTime(startedMs);
  }
}

const DECISION_EVENTS = { approved: 'pin.approval', blocked: 'pin.block' } as const;

/** The lock files of a configuration version; `pins` is a hash of all of them. */
type LockedVersion = { readonly locks: ReadonlyMap<string, Lock>; readonly hashes: { readonly pins: string } };

type RecordPorts = Pick<DriftPorts<never, never>, 'record' | 'loopScheduler'>;

/** Records what the lock files of a new version approve and block that those of the version before did not. */
export function recordPinDecisions(before: LockedVersion, next: LockedVersion, ports: RecordPorts): void {
  if (before.hashes.pins === next.hashes.pins) return;
  for (const [upstream, lock] of next.locks) {
    const decisions = findDecisions(before.locks.get(upstream), lock);
    const recordOne = ({ kind, name, digest, decision, record: given }: PinDecision) =>
      ports.record({
        type: DECISION_EVENTS[decision],
        ...{ upstream, kind, name, digest, by: given?.by, note: given?.note },
      });
    recordAll(upstream, decisions, recordOne, ports);
  }
}

/** Records what is trusted because it was offered first. */
export function recordFirstUse(trusted: Lock, ports: RecordPorts): void {
  const { upstream } = trusted;
  const recordOne = ({ kind, name, digest }: PinDecision) =>
    ports.record({ type: 'pin.first-use', upstream, kind, name, digest });
  recordAll(upstream, findDecisions(undefined, trusted), recordOne, ports);
}

/** False if it is only counted. */
function recordDrift(
  upstream: string,
  drift: ItemDifference,
  { record, emit }: Pick<DriftPorts<never, never>, 'record' | 'emit'>,
): boolean {
  const { kind, name, change, before, after } = drift;
  if (isInformational(drift)) {
    emit('serverUpdated', { upstream });
    return true;
  }
  const suppressed = record({
    type: 'pin.drift',
    upstream,
    kind,
    name,
    change,
    before,
    after,
  });
  emit('drifted', { upstream, kind, name, change, isPinned: before !== undefined, suppressed });
  return suppressed !== undefined;
}

type ItemState = PinName & { readonly kind: PinKind; readonly state: PinState };

/**
 * Finds the pin states of all items that are pinned or offered; one that is offered without a pin is unpinned. At once
 * where they are few, else in slices of the event loop, because the schema of each is compiled.
 */
function findStates<Upstream extends PinnedUpstream, Version>(
  runtime: Upstream,
  version: Version,
  ports: Pick<DriftPorts<Upstream, Version>, 'catalogOf'> & SliceOwner,
  report: (states: readonly ItemState[]) => void,
): Promise<void> | undefined {
  const catalog = ports.catalogOf(runtime, version);
  const listings = runtime.observed()?.listings ?? [];
  const items = PIN_KINDS.flatMap((kind) => {
    const offered = listings.flatMap((listing) => [...listing.seen[kind].keys()]);
    return [...new Set([...catalog.names(kind), ...offered])].map((name) => ({ kind, name }));
  });
  const states: ItemState[] = [];
  const find = ({ kind, name }: (typeof items)[number]): void => {
    states.push({ kind, name, state: catalog.statusOf(kind, name).state });
  };
  if (items.length <= MAX_AT_ONCE) {
    for (const item of items) find(item);
    report(states);
    return undefined;
  }
  return recordInSlices(runtime.settings.name, items, find, ports).then(() => {
    if (states.length === items.length) report(states);
  });
}

/** The state of the instructions, which count as one item like in `pin`, if they are pinned or offered. */
function instructionStates(runtime: PinnedUpstream): readonly PinState[] {
  const pin = runtime.lock()?.instructions;
  const offered = (runtime.observed()?.listings ?? []).flatMap((one) => one.instructions ?? []);
  const approved = approvedVersions(pin).map(({ sha256 }) => sha256);
  if (pin?.status === 'blocked') return ['blocked'];
  if (approved.length > 0) {
    if (offered.length === 0) return ['absent'];
    return [offered.every(({ digest }) => approved.includes(digest)) ? 'approved' : 'changed'];
  }
  if (pin !== undefined) return ['pending'];
  return offered.length > 0 ? ['unpinned'] : [];
}

/** Counts the tools in each pin state. */
function countTools(states: readonly ItemState[]): ReadonlyMap<PinState, number> {
  return countStates(states.flatMap(({ kind, state }) => (kind === 'tool' ? [state] : [])));
}

function countStates(states: readonly PinState[]): ReadonlyMap<PinState, number> {
  const counts = new Map<PinState, number>(PIN_STATES.map((state) => [state, 0]));
  for (const state of states) counts.set(state, (counts.get(state) ?? 0) + 1);
  return counts;
}
