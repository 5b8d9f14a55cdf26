// What the console shows a reviewer: which definitions need one, how each differs from its pin, and what is found in it,
// as `pin diff` does: by the scan together with the others of its server, and by a comparison with those of other
// upstreams, both on another thread. Found when somebody looks, from the observations and lock files in force, and kept
// until either changes. It approves nothing and writes no file. docs/reference/listeners.md#the-console;
// docs/reference/definitions.md.

import { basename, dirname, join, relative } from 'node:path';
import type { Settings } from '../config/settings.js';
import { type DefinitionFinding, isAbout, type ScannedDefinition } from '../inspection/definitions/scan.js';
import type { FormsToCompare } from '../inspection/jobs.js';
import {
  definitionsOf,
  definitionsToScan,
  isSamePin,
  mergeFetched,
  namedPins,
  type PinName,
  pendingOf,
  pinOf,
  trustedPins,
  withPin,
} from '../pins/approval.js';
import { unifiedPatch } from '../pins/diff.js';
import { NO_DIGEST, type PinnedKind, sha256Hex } from '../pins/digest.js';
import { type DriftClasses, isOpen, measure } from '../pins/drift-classes.js';
import { modeOf } from '../pins/drift-report.js';
import {
  approvedVersions,
  emptyLock,
  LOCK_SUFFIX,
  type Lock,
  PIN_KINDS,
  type Pin,
  type PinVersion,
  versionsOf,
  writeLock,
} from '../pins/lock.js';
import { formsNotOffered, type ItemDifference, isInformational } from '../pins/lock-differences.js';
import { type ReviewRow, reviewRow } from '../pins/review-table.js';
import type { Catalog, PinKind } from '../policy/definitions.js';
import { presentationOf } from '../policy/presentation.js';
import type { JsonObject } from '../protocol/jsonrpc.js';
import { isShownAsIs } from '../text/escaping.js';
import type { Runtimes, UpstreamRuntime } from '../upstream/runtimes.js';
import type { DefinitionTasks } from '../work/inspection.js';
import { type ReviewDetail, type ReviewItem, type ReviewPort, reviewCommands, type TableRow } from './review-pages.js';

/** What is read of a configuration version; the exceptions and the deployment go to the comparison as they are. */
type Version = {
  readonly settings: Settings;
  readonly locks: ReadonlyMap<string, Lock>;
  readonly shadowing: unknown;
  readonly deployment: unknown;
};

type ReviewSources = {
  readonly version: () => Version;
  readonly runtimes: Pick<Runtimes, 'get' | 'all'>;
  /** The newest catalog of an upstream, as a plain client sees it. */
  readonly catalogOf: (runtime: UpstreamRuntime) => Catalog;
  readonly classes: DriftClasses;
  /** Runs on another thread, because a hostile definition takes seconds. */
  readonly definitions: DefinitionTasks;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
};

type Definition = JsonObject | string;
/** An item with what it is made of. */
type Entry = {
  readonly item: ReviewItem;
  readonly runtime: UpstreamRuntime;
  readonly old: Definition | undefined;
  readonly offered: Definition | undefined;
};

type Cached = {
  readonly version: Version;
  readonly contentDigest: string | undefined;
  readonly catalog: Catalog;
  readonly revision: number;
  readonly entries: readonly Entry[];
  /** How many definitions have no entry, because there are too many. */
  readonly unlisted: number;
  /** Differences that are not classified yet. */
  readonly open: readonly ItemDifference[];
};

/** Of one upstream: a hostile one may change more definitions at once than anybody reviews. */
const MAX_ENTRIES = 1_000;
/** No patch is made for larger lock files and definitions. */
const MAX_PATCHED = 2_000;
const MAX_PATCH_CHARACTERS = 400_000;
/** States in which an item is refused although it may be as pinned. */
const WITHHELD: ReadonlySet<string> = new Set(['blocked', 'invalid', 'shadowed', 'poisoned']);

export function createReview(sources: ReviewSources): ReviewPort {
  const { version, runtimes, catalogOf, classes } = sources;
  const cache = new WeakMap<UpstreamRuntime, Cached>();
  /** An entry is rebuilt when anything that its detail depends on changes. */
  const details = new WeakMap<Entry, Promise<Made>>();

  function entriesOf(runtime: UpstreamRuntime): readonly Entry[] {
    const { entries, open } = cachedOf(runtime);
    // What could not be classified is tried again when somebody looks.
    if (open.length > 0) void classes.classify(runtime.settings.name, open);
    return entries;
  }

  function cachedOf(runtime: UpstreamRuntime): Cached {
    const current = version();
    const contentDigest = runtime.observed()?.contentDigest;
    const catalog = catalogOf(runtime);
    const known = cache.get(runtime);
    const isSame = known?.version === current && known.contentDigest === contentDigest;
    if (isSame && known.catalog === catalog && known.revision === classes.revision()) return known;
    const differences = differencesOf(runtime, current, classes);
    const all = findAll(runtime, current, catalog, differences);
    const found: Cached = {
      ...{ version: current, contentDigest, catalog, revision: classes.revision() },
      entries: entriesFor(all.slice(0, MAX_ENTRIES), runtime, current, catalog),
      unlisted: Math.max(0, all.length - MAX_ENTRIES),
      open: differences.filter(isOpen),
    };
    cache.set(runtime, found);
    return found;
  }

  /** Made once for what is cached: a scan that does not finish is not tried again at every look. */
  const tables = new WeakMap<Cached, Promise<Table>>();
  function tableOf(runtime: UpstreamRuntime): Promise<Table> {
    const cached = cachedOf(runtime);
    const table = tables.get(cached) ?? makeTable(cached, runtime, sources).catch(() => []);
    tables.set(cached, table);
    return table;
  }

  const all = (): readonly Entry[] => [...runtimes.all()].flatMap(entriesOf);

  return {
    items: () => all().map(({ item }) => item),
    async rows() {
      const tables = await Promise.all([...runtimes.all()].map(tableOf));
      return new Map(tables.flat());
    },
    unlisted: () => [...runtimes.all()].reduce((sum, one) => sum + cachedOf(one).unlisted, 0),
    async detail(id) {
      const entry = all().find(({ item }) => item.id === id);
      if (entry === undefined) return undefined;
      const known = details.get(entry);
      if (known !== undefined) return (await known).detail;
      const current = version();
      const catalog = catalogOf(entry.runtime);
      const made = detailOf(entry, current, catalog, sources);
      details.set(entry, made);
      // What failed is tried again at the next request.
      const isFinal = await made.then(
        (one) => one.isFinal,
        () => false,
      );
      if (!isFinal) details.delete(entry);
      return (await made).detail;
    },
  };
}

type Made = { readonly detail: ReviewDetail; readonly isFinal: boolean };

type Found = Pick<ReviewItem, 'kind' | 'name' | 'changes' | 'before' | 'after'> &
  Pick<Entry, 'old' | 'offered'> &
  Partial<Pick<ReviewItem, 'isFirstUse' | 'isNotOffered'>>;

/**
 * What differs from the lock file. What is trusted on first use does not, and a new version of the server is no drift.
 */
function differencesOf(runtime: UpstreamRuntime, version: Version, classes: DriftClasses): readonly ItemDifference[] {
  if (modeOf(runtime, version) === 'off') return [];
  const lock = runtime.firstUse.lockWith(version.locks.get(runtime.settings.name));
  return classes.find(lock, runtime.observed()).filter((one) => !isInformational(one));
}

/** What drifted first, then what is pending, withheld, trusted, and not offered. */
function findAll(
  runtime: UpstreamRuntime,
  version: Version,
  catalog: Catalog,
  differences: readonly ItemDifference[],
): readonly Found[] {
  if (modeOf(runtime, version) === 'off') return [];
  const lock = version.locks.get(runtime.settings.name);
  const drifted = differences.map(driftedItem);
  const shown = new Set(drifted.map(keyOf));
  const pending = pendingDigests(lock);
  const isNew = (one: Found): boolean => !shown.has(keyOf(one));
  return [
    ...drifted,
    ...pendingIn(lock, pending).filter(isNew),
    ...withheldIn(lock, catalog, shown).filter((one) => !pending.has(one.after ?? '')),
    ...trustedIn(lock, runtime).filter((one) => isNew(one) && !pending.has(one.after ?? '')),
    ...notOfferedIn(lock, runtime, differences),
  ];
}

function pendingDigests(lock: Lock | undefined): ReadonlySet<string> {
  return new Set(pendingOf(lock).map(({ digest }) => digest));
}

function entriesFor(
  found: readonly Found[],
  runtime: UpstreamRuntime,
  version: Version,
  catalog: Catalog,
): readonly Entry[] {
  const { name: upstream } = runtime.settings;
  const pending = pendingDigests(version.locks.get(upstream));
  const presentation = presentationOf(version.settings.upstreams.get(upstream)?.tools ?? {});
  return found.map(({ old, offered, isFirstUse = false, isNotOffered = false, ...one }) => {
    const { kind, name, before, after } = one;
    const id = sha256Hex(JSON.stringify([upstream, kind, name, before, after])).slice(0, ID_DIGITS);
    const isPending = after !== undefined && pending.has(after);
    const state = stateOf(catalog, kind, name);
    const shownAs = kind === 'tool' ? presentation?.byTool.get(name)?.name : undefined;
    const item = { ...one, shownAs, id, upstream, state, isPending, isFirstUse, isNotOffered };
    return { item, runtime, old, offered };
  });
}

const ID_DIGITS = 32;

function keyOf({ kind, name }: Pick<ReviewItem, 'kind' | 'name'>): string {
  return `${kind} ${name}`;
}

function driftedItem(difference: ItemDifference): Found {
  const { kind, name, changes, before, after, beforeDefinition, afterDefinition } = difference;
  return { kind, name, changes, before, after, old: beforeDefinition, offered: afterDefinition };
}

function pendingIn(lock: Lock | undefined, pending: ReadonlySet<string>): readonly Found[] {
  return namedPins(lock).flatMap(({ kind, name, pin }) => {
    const [approved] = approvedVersions(pin);
    return versionsOf(pin)
      .filter(({ sha256 }) => pending.has(sha256))
      .map(({ sha256, definition }) => ({
        ...{ kind, name, changes: [], before: approved?.sha256, after: sha256 },
        ...{ old: approved?.definition, offered: definition },
      }));
  });
}

/** What is refused although it is in the lock file and does not differ. */
function withheldIn(lock: Lock | undefined, catalog: Catalog, shown: ReadonlySet<string>): readonly Found[] {
  return PIN_KINDS.flatMap((kind) =>
    catalog
      .names(kind)
      // To find a state, the schema is compiled.
      .filter((name) => !shown.has(keyOf({ kind, name })))
      .filter((name) => WITHHELD.has(catalog.statusOf(kind, name).state))
      .map((name) => {
        const [first] = versionsOf(lock?.pins[kind].get(name));
        const [digest, definition] = [first?.sha256, first?.definition];
        return {
          ...{ kind, name, changes: [], before: digest, after: digest },
          ...{ old: definition, offered: definition },
        };
      }),
  );
}

/** Approved forms that are not offered and that no difference reports. */
function notOfferedIn(
  lock: Lock | undefined,
  runtime: UpstreamRuntime,
  differences: readonly ItemDifference[],
): readonly Found[] {
  return formsNotOffered(lock, runtime.observed(), differences).map(({ kind, name, digest }) => {
    const old = versionsOf(pinOf(lock, { kind, name })).find(({ sha256 }) => sha256 === digest);
    return {
      ...{ kind, name, changes: [], before: digest, after: undefined },
      ...{ old: old?.definition, offered: undefined, isNotOffered: true },
    };
  });
}

/** What is treated as approved because it was offered first. */
function trustedIn(lock: Lock | undefined, { firstUse }: UpstreamRuntime): readonly Found[] {
  const trusted = firstUse.trusted();
  return (trusted === undefined ? [] : trustedPins(lock, trusted)).map((one) => ({
    ...{ kind: one.kind, name: one.name, changes: [], before: undefined, after: one.digest },
    ...{ old: undefined, offered: one.definition, isFirstUse: true },
  }));
}

function isPinKind(kind: string): kind is PinKind {
  return (PIN_KINDS as readonly string[]).includes(kind);
}

/** Instructions and the identity of a server have no state of their own. */
function stateOf(catalog: Catalog, kind: string, name: string): string {
  return isPinKind(kind) ? catalog.statusOf(kind, name).state : 'changed';
}

type Table = readonly (readonly [id: string, TableRow])[];

/** Longer definitions have no row: it is read between two requests. */
const MAX_ROW_CHARACTERS = 16 * 1024;
/** Of one upstream. */
const MAX_ROWS = 500;

async function makeTable(
  { entries, version }: Pick<Cached, 'entries' | 'version'>,
  runtime: UpstreamRuntime,
  sources: ReviewSources,
): Promise<Table> {
  const shown = entries.filter(isReadable).slice(0, MAX_ROWS);
  if (shown.length === 0) return [];
  const findings = await findInAll(runtime, version, sources);
  return shown.flatMap((entry) => {
    const row = rowOf(entry, findings ?? []);
    return row === undefined ? [] : [[entry.item.id, { row, areFindingsKnown: findings !== undefined }] as const];
  });
}

function isReadable({ offered }: Entry): boolean {
  return offered !== undefined && measure(offered, MAX_ROW_CHARACTERS) <= MAX_ROW_CHARACTERS;
}

function rowOf(entry: Entry, findings: readonly DefinitionFinding[]): ReviewRow | undefined {
  const { item, offered } = entry;
  const { kind, name, before, after, changes, shownAs } = item;
  if (offered === undefined || kind === 'server' || !isReadable(entry)) return undefined;
  const pin = { kind: kind as PinnedKind, name, digest: after ?? '' };
  const own = findings.filter((one) => isAbout(one, pin));
  const isChanged = before !== undefined && before !== after;
  return reviewRow({ ...pin, definition: offered, findings: own, shownAs, isChanged, changes });
}

/** What the scan finds in all that an upstream offers and nobody has approved; `undefined` if that is too long. */
async function findInAll(
  runtime: UpstreamRuntime,
  version: Version,
  ports: Pick<ReviewSources, 'definitions' | 'now'>,
): Promise<readonly DefinitionFinding[] | undefined> {
  const { name: upstream } = runtime.settings;
  const held = offeredLock(version.locks.get(upstream), runtime, upstream);
  if (held === undefined) return undefined;
  const pending = pendingOf(held);
  const scanned = JSON.stringify(definitionsToScan(held, pending));
  if (scanned.length > MAX_SIBLING_CHARACTERS) return undefined;
  const [found, shadowing] = await Promise.all([
    ports.definitions('scan', scanned, upstream),
    findShadowing(upstream, pending, definitionsOf(held), version, ports),
  ]);
  return found === undefined || shadowing.unfinished.length > 0 ? undefined : [...found, ...shadowing.findings];
}

async function detailOf(entry: Entry, version: Version, catalog: Catalog, sources: ReviewSources): Promise<Made> {
  const { item, old, offered } = entry;
  const lock = version.locks.get(item.upstream);
  const forms: FormsToCompare = { before: old, after: offered };
  const [comparison, { findings, unfinished, isFinal }] = await Promise.all([
    sources.definitions('fields', JSON.stringify(forms), item.upstream),
    findInItem(entry, version, sources),
  ]);
  const detail = {
    item,
    comparison,
    findings,
    unfinished,
    clientSees: clientSees(item, catalog),
    ...reviewCommands(item, findings, {
      folder: dirname(pathInRepository(version.settings, item.upstream)),
      hasLockFile: lock !== undefined,
      hasDigest: item.after !== NO_DIGEST,
    }),
    patch: patchOf(entry, lock, version),
    row: rowOf(entry, findings),
  };
  return { detail, isFinal: isFinal && comparison !== undefined };
}

const HIDDEN = 'It is in no list, and a request for it is answered as if it did not exist';
const REFUSED_AS: Readonly<Record<string, string>> = {
  changed: `${HIDDEN} (tool-changed).`,
  pending: `${HIDDEN} (tool-unpinned).`,
  unpinned: `${HIDDEN} (tool-unpinned).`,
  blocked: `${HIDDEN} (tool-blocked).`,
  invalid: `${HIDDEN} (tool-invalid).`,
  poisoned: `${HIDDEN} (tool-poisoned).`,
  shadowed: `${HIDDEN} (tool-shadowed).`,
  absent: `${HIDDEN}, because the upstream does not offer it.`,
  approved: 'It is listed and can be called in a form that was approved, as far as policy allows.',
};

function clientSees({ kind, state }: ReviewItem, catalog: Catalog): string {
  if (catalog.isStopped)
    return 'Nothing of this upstream: pinning.onDrift is stop-upstream, and a definition differs from its pin.';
  if (kind === 'server') return 'No difference: what a server calls itself hides nothing.';
  if (kind === 'instructions') return 'No instructions: they are removed as long as they differ.';
  return REFUSED_AS[state] ?? `${HIDDEN}.`;
}

/**
 * Adds the definition to the lock file as `pin fetch` would; `undefined` where that changes nothing, or cannot be
 * shown.
 */
function patchOf({ item, offered }: Entry, lock: Lock | undefined, { settings }: Version): string | undefined {
  const { kind, after, isPending, upstream } = item;
  const isNew = after !== undefined && after !== NO_DIGEST && after !== item.before && !isPending;
  const isLarge = isTooLong(lock, offered);
  if (!isNew || isLarge || kind === 'server' || offered === undefined) return undefined;
  const text = writeLock(withPending(lock ?? emptyLock(upstream), item, after, offered));
  const patch = unifiedPatch(pathInRepository(settings, upstream), lock && writeLock(lock), text);
  const isCopied = patch.length <= MAX_PATCH_CHARACTERS && patch.split('\n').every(isShownAsIs);
  return isCopied ? patch : undefined;
}

function isTooLong(lock: Lock | undefined, offered: Definition | undefined): boolean {
  const pins = namedPins(lock);
  const held = pins.flatMap(({ pin }) => versionsOf(pin).map(({ definition }) => definition));
  let left = MAX_PATCH_CHARACTERS;
  return (
    pins.length > MAX_PATCHED ||
    [offered ?? '', ...held].some((definition) => {
      left -= measure(definition, left);
      return left < 0;
    })
  );
}

function withPending(lock: Lock, { kind, name }: ReviewItem, sha256: string, definition: Definition): Lock {
  const version = { status: 'pending' as const, sha256, approval: undefined };
  if (typeof definition === 'string') {
    const pin = withVersion(lock.instructions, { ...version, definition });
    return { ...lock, instructions: pin };
  }
  if (!isPinKind(kind)) return lock;
  const pin = withVersion(lock.pins[kind].get(name), { ...version, definition });
  return withPin(lock, kind, name, pin);
}

function withVersion<Content>(pin: Pin<Content> | undefined, version: PinVersion<Content>): Pin<Content> {
  if (pin === undefined) return { ...version, variants: [] };
  return { ...pin, variants: [...pin.variants, version] };
}

/** The path of a lock file from the root of a repository that holds the configuration and the policies. */
function pathInRepository({ file, pinsDir }: Version['settings'], upstream: string): string {
  const path = relative(dirname(file), join(pinsDir, `${upstream}${LOCK_SUFFIX}`));
  return path.replaceAll('\\', '/').replace(/^(?:\.\.\/)+/, '') || basename(path);
}

type ItemFindings = {
  readonly findings: readonly DefinitionFinding[];
  /** Which of the checks were not made, and why, in sentences. */
  readonly unfinished: readonly string[];
  /** Whether another attempt would find the same. */
  readonly isFinal: boolean;
};

/** If the definitions of its server are longer together, or more, the definition is read alone. */
const MAX_SIBLING_CHARACTERS = 256 * 1024;
const MAX_SIBLINGS = 2_000;
/** Longer definitions of all other upstreams together are not compared for a page. */
const MAX_OTHERS_CHARACTERS = 4 * 1024 * 1024;

const NOT_SCANNED = 'The definition could not be scanned now. Load the page again, or run the first command.';
const NOT_COMPARED =
  'The definition could not be compared with those of other upstreams now. Load the page again, or run the first command.';
const READ_ALONE =
  'The other definitions of its server are too long to be read together with it here. The first command does that.';
const OTHERS_TOO_LONG =
  'The definitions of the other upstreams are too long to be compared with it here. The first command does that.';
const NOTHING_FOUND: ItemFindings = { findings: [], unfinished: [], isFinal: true };

/** What is found in the definition that is offered. */
async function findInItem(
  { item, runtime, offered }: Entry,
  version: Version,
  ports: Pick<ReviewSources, 'definitions' | 'now'>,
): Promise<ItemFindings> {
  const { upstream, kind, name, after } = item;
  if (offered === undefined || kind === 'server' || after === item.before) return NOTHING_FOUND;
  const own = {
    ...{ kind: kind as PinnedKind, name, definition: offered },
    ...(after === undefined ? {} : { digest: after }),
  };
  const held = offeredLock(version.locks.get(upstream), runtime, upstream);
  const { scanned: together, all, isAlone } = siblingsOf(own, after, held);
  const [scanned, shadowing] = await Promise.all([
    ports.definitions('scan', together, upstream),
    findShadowing(upstream, [own], all, version, ports),
  ]);
  const isOwn = (finding: DefinitionFinding): boolean => isAbout(finding, own);
  const unfinished = [
    ...(scanned === undefined ? [NOT_SCANNED] : []),
    ...(isAlone ? [READ_ALONE] : []),
    ...shadowing.unfinished,
  ];
  return {
    findings: [...(scanned ?? []), ...shadowing.findings].filter(isOwn),
    unfinished,
    isFinal: unfinished.every((why) => why !== NOT_SCANNED && why !== NOT_COMPARED),
  };
}

/** What the definition is read with, as JSON, and all definitions of its server, if they are not too long. */
function siblingsOf(
  own: ScannedDefinition,
  digest: string | undefined,
  held: Lock | undefined,
): { readonly scanned: string; readonly all: readonly PinName[]; readonly isAlone: boolean } {
  const alone = { scanned: JSON.stringify([own]), all: [own], isAlone: true };
  if (held === undefined) return alone;
  const isHeld = versionsOf(pinOf(held, own)).some(({ sha256 }) => sha256 === digest);
  const beside = isHeld ? [] : [own];
  const others = definitionsToScan(held, pendingOf(held));
  const scanned = JSON.stringify([...others.filter((one) => isHeld || !isSamePin(one, own)), ...beside]);
  if (scanned.length > MAX_SIBLING_CHARACTERS) return alone;
  return { scanned, all: [...definitionsOf(held), ...beside], isAlone: false };
}

/** The lock file, with what else is offered as pending; `undefined` if that is more than is read for a page. */
function offeredLock(lock: Lock | undefined, { observed }: UpstreamRuntime, upstream: string): Lock | undefined {
  const now = observed();
  const offered = (now?.listings ?? []).flatMap(({ seen }) => PIN_KINDS.map((one) => seen[one].size));
  const count = offered.reduce((sum, size) => sum + size, namedPins(lock).length);
  if (count > MAX_SIBLINGS) return undefined;
  if (now === undefined) return lock ?? emptyLock(upstream);
  return mergeFetched({ upstream, lock, observed: now, approval: undefined }).lock;
}

/** JSON of the definitions of a lock file, which stay the same as long as it does. */
const definitionTexts = new WeakMap<Lock, string>();

function definitionsText(lock: Lock): string {
  const known = definitionTexts.get(lock);
  if (known !== undefined) return known;
  const text = JSON.stringify({ upstream: lock.upstream, definitions: definitionsOf(lock) });
  definitionTexts.set(lock, text);
  return text;
}

async function findShadowing(
  upstream: string,
  asked: readonly PinName[],
  definitions: readonly PinName[],
  { settings, locks, shadowing: exceptions, deployment }: Version,
  { definitions: run, now }: Pick<ReviewSources, 'definitions' | 'now'>,
): Promise<Omit<ItemFindings, 'isFinal'>> {
  const others = [...locks.values()]
    .filter((lock) => lock.upstream !== upstream && settings.upstreams.has(lock.upstream))
    .map(definitionsText);
  const length = others.reduce((sum, text) => sum + text.length, 0);
  if (length > MAX_OTHERS_CHARACTERS) return { findings: [], unfinished: [OTHERS_TOO_LONG] };
  const given = JSON.stringify({
    own: { upstream, definitions },
    asked: asked.map(({ kind, name }) => ({ kind, name })),
    exceptions,
    deployment,
    today: new Date(now()).toISOString().slice(0, 10),
  });
  const text = `${given.slice(0, -1)},"others":[${others.join()}]}`;
  const found = await run('shadowing', text, upstream);
  return { findings: found ?? [], unfinished: found === undefined ? [NOT_COMPARED] : [] };
}
