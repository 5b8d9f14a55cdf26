// What an upstream was last seen to offer: its complete listings, one per client profile, and the pages
// requested by clients since then. A page can only make a definition differ; only a complete listing that
// began later can show that the definition is restored. docs/reference/definitions.md.

import type { Catalog, PinKind } from '../policy/definitions.js';
import type { JsonObject } from '../protocol/jsonrpc.js';
import {
  type ClientProfile,
  isSameProfile,
  type ListedItem,
  type Listing,
  profileKey,
  type UnavailableKind,
} from '../protocol/methods.js';
import { readTaskCapabilities } from '../protocol/tasks.js';
import { digestListed, digestOnce, formOf, NO_DIGEST, sha256Hex } from './digest.js';
import {
  byKind,
  compareServers,
  digestServer,
  nameOf,
  PIN_KINDS,
  readServer,
  SERVER_MEMBERS,
  type ServerIdentity,
} from './lock.js';

/** One definition as it was seen. */
export type ObservedItem = {
  readonly digest: string;
  /** Absent if only the digest was recorded from a page. */
  readonly definition: JsonObject | undefined;
  /** The name occurred more than once in one listing. */
  readonly isRepeated: boolean;
};

type ListedObservation = ObservedItem & {
  readonly definition: JsonObject;
  /** What the same listing held before it under the name. */
  readonly earlier?: ListedObservation;
};

/** One complete listing for one client profile. */
export type ObservedListing = ClientProfile & {
  readonly verifiedAtMs: number;
  readonly seen: { readonly [kind in PinKind]: ReadonlyMap<string, ListedObservation> };
  /** The kinds of which it is not known what the upstream offers, because their lists have never been read. */
  readonly unread: ReadonlySet<PinKind>;
  readonly instructions: { readonly digest: string; readonly text: string } | undefined;
  readonly capabilities: JsonObject;
  readonly serverInfo: JsonObject | undefined;
  readonly protocolVersions: readonly string[];
  /** Of the content in any order; times are not part of it. */
  readonly contentDigest: string;
};

/** A definition on a client's page that differs from all complete listings. */
type NotedItem = {
  readonly kind: PinKind;
  readonly name: string;
  readonly digest: string;
  /** Also tells apart what has no digest, and what there was no room for. */
  readonly form: string;
  readonly definition: JsonObject | undefined;
  readonly notedAtMs: number;
};

export type Observed = {
  /** At most one per client profile; never empty after a listing. */
  readonly listings: readonly ObservedListing[];
  /** By kind and name; see `noteKey`. */
  readonly noted: ReadonlyMap<string, readonly NotedItem[]>;
  /** Of the listings alone; times are not part of it. */
  readonly listingsDigest: string;
  /**
   * Equal for two complete listings with the same content, and as long as neither pages nor listings show anything new;
   * times are not part of it.
   */
  readonly contentDigest: string;
};

/** Whether the scan keeps a form that a page showed from being used. */
type Withholds = NonNullable<Catalog['withholds']>;

/** The items of one page that a client requested, as the upstream wrote them. */
export type Page = {
  readonly kind: PinKind;
  readonly items: readonly {
    readonly name: string;
    /** `undefined` if the definition has no digest: it then equals no pin. */
    readonly digest: string | undefined;
    /** For classifying the difference. */
    readonly definition?: JsonObject;
  }[];
  readonly atMs: number;
};

/** Definitions recorded per name. A further one replaces the last and counts as different from every pin. */
export const MAX_NOTED_PER_NAME = 4;
/** Begins the form of what replaced the last, which has no digest that could equal a pin. */
const FURTHER = 'further';
/** Beyond this, names that no listing showed are dropped, as they cannot be called. Listed ones are kept. */
export const MAX_NOTED_NAMES = 1000;

/** One listing with its digests. Items with the same name are merged and marked as repeated. */
export function observeListing(listing: Listing): ObservedListing {
  const { instructions } = listing;
  const items = itemsByKind(listing);
  const observed = {
    era: listing.era,
    apps: listing.apps,
    verifiedAtMs: listing.verifiedAtMs,
    seen: byKind((kind) => observeItems(kind, items[kind])),
    unread: unreadKinds(listing),
    instructions: instructions === undefined ? undefined : observeText(instructions),
    capabilities: listing.capabilities,
    serverInfo: listing.serverInfo,
    protocolVersions: listing.protocolVersions,
  };
  return { ...observed, contentDigest: digestListing(observed) };
}

const KINDS_OF_LIST = {
  // The `ui://` resources are those that tools name.
  tools: ['tool', 'resource'],
  prompts: ['prompt'],
  templates: ['template'],
  resources: ['resource'],
} as const satisfies { readonly [list in UnavailableKind['kind']]: readonly PinKind[] };

function unreadKinds({ unavailable = [] }: Listing): ReadonlySet<PinKind> {
  const unread = unavailable.filter(({ hasPrevious = false }) => !hasPrevious);
  return new Set(unread.flatMap(({ kind }) => KINDS_OF_LIST[kind]));
}

/**
 * Whether all listings have read the list of a kind. Otherwise nothing follows from a name that is not offered: neither
 * that it was removed nor that its approval ends.
 */
export function isKindRead(observed: Observed | undefined, kind: PinKind): boolean {
  return (observed?.listings ?? []).every(({ unread }) => !unread.has(kind));
}

/** The items of a listing by the kind of their pins. */
export function itemsByKind({ tools, prompts, templates, resources }: Listing): {
  readonly [kind in PinKind]: readonly ListedItem[];
} {
  return { tool: tools, prompt: prompts, template: templates, resource: resources };
}

/** The instructions of a server with their digest. */
export function observeText(text: string): { readonly digest: string; readonly text: string } {
  return { digest: digestListed('instructions', text, true), text };
}

function observeItems(kind: PinKind, items: readonly ListedItem[]): ReadonlyMap<string, ListedObservation> {
  const seen = new Map<string, ListedObservation>();
  for (const { definition, isExact } of items) {
    const name = nameOf(kind, definition);
    if (name === undefined) continue;
    const digest = digestOnce(kind, definition, isExact);
    const earlier = seen.get(name);
    seen.set(name, {
      ...{ digest, definition, isRepeated: earlier !== undefined },
      ...(earlier && { earlier }),
    });
  }
  return seen;
}

/** Combines listings into an observation; for each client profile, the one verified last is used. */
export function mergeObserved(listings: readonly ObservedListing[]): Observed {
  const latest = new Map<string, ObservedListing>();
  for (const listing of listings) {
    const other = latest.get(profileKey(listing));
    if (other === undefined || other.verifiedAtMs <= listing.verifiedAtMs) latest.set(profileKey(listing), listing);
  }
  return createObservation([...latest.values()], new Map());
}

/**
 * Replaces the listing of a client profile by a complete one. Items recorded from a page are removed once
 * every profile has a listing that began after the page.
 */
export function noteListing(observed: Observed | undefined, listed: ObservedListing): Observed {
  const otherListings = (observed?.listings ?? []).filter((listing) => !isSameProfile(listing, listed));
  const before = observed?.listings.find((listing) => isSameProfile(listing, listed));
  const listings = [...otherListings, before === undefined ? listed : inOrderOf(before, listed)];
  const verifiedAtMs = Math.min(...listings.map((listing) => listing.verifiedAtMs));
  const noted = new Map<string, readonly NotedItem[]>();
  let isAllKept = true;
  for (const [key, items] of observed?.noted ?? []) {
    const kept = items.filter((item) => item.notedAtMs >= verifiedAtMs);
    if (kept.length > 0) noted.set(key, kept);
    isAllKept &&= kept.length === items.length;
  }
  const next = createObservation(listings, noted);
  const isSame = isAllKept && next.listingsDigest === observed?.listingsDigest;
  return isSame ? { ...next, contentDigest: observed.contentDigest } : next;
}

/** Keeps the order of the previous listing and appends new names, so that a mere reordering is not a change. */
function inOrderOf(before: ObservedListing, listed: ObservedListing): ObservedListing {
  const ordered = (kind: PinKind): ReadonlyMap<string, ListedObservation> => {
    const seen = listed.seen[kind];
    const kept = [...before.seen[kind].keys()].flatMap((name) => {
      const observedItem = seen.get(name);
      return observedItem === undefined ? [] : [[name, observedItem] as const];
    });
    // A Map keeps the position of a key that is set again.
    return new Map([...kept, ...seen]);
  };
  return { ...listed, seen: byKind(ordered) };
}

/** Removes a client profile that the upstream no longer serves; `undefined` if no listing is left. */
export function dropListing(observed: Observed | undefined, profile: ClientProfile): Observed | undefined {
  const listings = (observed?.listings ?? []).filter((listing) => !isSameProfile(listing, profile));
  return observed === undefined || listings.length === 0 ? undefined : createObservation(listings, observed.noted);
}

/**
 * Records a page that a client requested. Returns the same object if the page shows nothing that the
 * listings did not, which is the usual case and costs one map lookup per item. The listings are not read again:
 * callers request pages at any rate, and a listing has thousands of items.
 */
export function notePage(observed: Observed, page: Page, withholds: Withholds = () => false): Observed {
  const { kind, atMs: notedAtMs } = page;
  let noted: Map<string, readonly NotedItem[]> | undefined;
  const added: string[] = [];
  for (const { name, digest = NO_DIGEST, definition } of page.items) {
    const form = formOf({ digest, definition });
    if (isShown(observed, kind, name, form)) continue;
    noted ??= new Map(observed.noted);
    const item = { kind, name, digest, form, definition, notedAtMs };
    if (addNoted(observed, noted, item, withholds)) added.push(noteKey(kind, name), form);
  }
  if (noted === undefined) return observed;
  const { listings, listingsDigest, contentDigest } = observed;
  return {
    listings,
    noted,
    listingsDigest,
    contentDigest: added.length === 0 ? contentDigest : sha256Hex(JSON.stringify([contentDigest, added])),
  };
}

function isShown({ listings }: Observed, kind: PinKind, name: string, form: string): boolean {
  return listings.some((listing) => {
    const listed = listing.seen[kind].get(name);
    return listed !== undefined && formOf(listed) === form;
  });
}

/**
 * Returns whether the forms under the name are others than before. Of those that there is no room for, the first and the
 * first that is withheld count as a change: a server may change its definitions at each page, and callers request pages at
 * any rate.
 */
function addNoted(
  observed: Observed,
  noted: Map<string, readonly NotedItem[]>,
  item: NotedItem,
  withholds: Withholds,
): boolean {
  const key = noteKey(item.kind, item.name);
  const items = noted.get(key) ?? [];
  const isUnlisted = !isListed(observed, item.kind, item.name);
  if (isUnlisted && items.length === 0 && noted.size >= MAX_NOTED_NAMES) return false;
  // Seen again: only a listing that begins after this page may clear the item.
  const others = items.filter(({ form }) => form !== item.form);
  if (others.length < MAX_NOTED_PER_NAME) {
    noted.set(key, [...others, item]);
    return others.length === items.length;
  }
  const last = others.at(-1);
  const isWithheld = withholds(item.kind, item.name, item);
  const wasWithheld = last !== undefined && withholds(item.kind, item.name, last);
  // What is withheld must not be forgotten because the server shows something else.
  if (wasWithheld && !isWithheld) return false;
  const further = { ...item, digest: NO_DIGEST, form: `${FURTHER} ${item.form}` };
  noted.set(key, [...others.slice(0, MAX_NOTED_PER_NAME - 1), further]);
  return last?.form.startsWith(FURTHER) !== true || isWithheld !== wasWithheld;
}

function noteKey(kind: PinKind, name: string): string {
  return `${kind} ${name}`;
}

function isListed(observed: Observed, kind: PinKind, name: string): boolean {
  return observed.listings.some((listing) => listing.seen[kind].has(name));
}

/** Everything seen under a name, listings first. Empty if no complete listing contains the name. */
export function observedItemsOf(observed: Observed | undefined, kind: PinKind, name: string): readonly ObservedItem[] {
  if (observed === undefined) return [];
  const listed = observed.listings.flatMap((listing) => listing.seen[kind].get(name) ?? []);
  const noted = listed.length === 0 ? undefined : observed.noted.get(noteKey(kind, name));
  if (noted === undefined) return listed;
  return [...listed, ...noted.map((item) => ({ ...item, isRepeated: false }))];
}

/** Whether further names that only pages show are dropped. */
export function areNotesFull(observed: Observed | undefined): boolean {
  return observed !== undefined && observed.noted.size >= MAX_NOTED_NAMES;
}

/** The forms that one listing held under a name, the last first. */
function formsIn(item: ListedObservation | undefined): readonly ListedObservation[] {
  const forms: ListedObservation[] = [];
  for (let each = item; each !== undefined; each = each.earlier) forms.push(each);
  return forms;
}

/** Everything seen under a name, also where only pages showed it, which no pin can match. */
export function shownItemsOf(
  observed: Observed | undefined,
  kind: PinKind,
  name: string,
): readonly Pick<ObservedItem, 'digest' | 'definition'>[] {
  const listed = (observed?.listings ?? []).flatMap((each) => formsIn(each.seen[kind].get(name)));
  return [...listed, ...(observed?.noted.get(noteKey(kind, name)) ?? [])];
}

/**
 * Whether a form that a page shows is one that no listing has shown yet, and no page showed one that nobody approved: a
 * server that shows such forms to some callers is not listed sooner because it shows others an approved one.
 */
export function isListingBehind(
  observed: Observed | undefined,
  { kind, name, digest }: { readonly kind: PinKind; readonly name: string; readonly digest: string },
  approved: readonly string[],
): boolean {
  const listed = (observed?.listings ?? []).flatMap((each) => each.seen[kind].get(name) ?? []);
  if (listed.some((item) => item.digest === digest)) return false;
  const noted = observed?.noted.get(noteKey(kind, name)) ?? [];
  return noted.every((item) => approved.includes(item.digest));
}

/** The last item recorded with a definition from a page after `afterMs`, for a listed name. */
export function lastNoted(
  observed: Observed | undefined,
  kind: PinKind,
  name: string,
  afterMs: number,
): NotedItem | undefined {
  const items = observed?.noted.get(noteKey(kind, name)) ?? [];
  return items
    .filter((item) => item.notedAtMs > afterMs && item.definition !== undefined)
    .reduce<NotedItem | undefined>(
      (last, item) => (last === undefined || item.notedAtMs >= last.notedAtMs ? item : last),
      undefined,
    );
}

/** The names of a kind in the complete listings, each once. */
export function observedNames(observed: Observed | undefined, kind: PinKind): ReadonlySet<string> {
  return new Set((observed?.listings ?? []).flatMap((listing) => [...listing.seen[kind].keys()]));
}

function createObservation(listings: readonly ObservedListing[], noted: Observed['noted']): Observed {
  const ordered = [...listings].sort((a, b) => (profileKey(a) < profileKey(b) ? -1 : 1));
  const listingsDigest = sha256Hex(ordered.map((listing) => listing.contentDigest).join());
  const pages = [...noted].map(([key, items]) => [key, items.map(({ form }) => form).sort()]);
  pages.sort(([a], [b]) => ((a ?? '') < (b ?? '') ? -1 : 1));
  const contentDigest = sha256Hex(JSON.stringify([listingsDigest, pages]));
  return { listings: ordered, noted, listingsDigest, contentDigest };
}

function digestListing(listing: Omit<ObservedListing, 'contentDigest'>): string {
  const { instructions } = listing;
  const content = [
    profileKey(listing),
    listing.protocolVersions,
    readTaskCapabilities(listing.capabilities),
    instructions === undefined ? null : formOf({ ...instructions, definition: instructions.text }),
    SERVER_MEMBERS.map((member) => listing.serverInfo?.[member] ?? null),
    PIN_KINDS.filter((kind) => listing.unread.has(kind)),
    PIN_KINDS.map((kind) =>
      [...listing.seen[kind]]
        .map(([name, item]) => `${formsIn(item).map(formOf).join(' ')} ${item.isRepeated} ${name}`)
        .sort(),
    ),
  ];
  return sha256Hex(JSON.stringify(content));
}

/** Every server identity that was seen, each once: it can differ between client profiles. */
export function observedServers(observed: Observed | undefined): readonly ServerIdentity[] {
  const seen = new Map<string, ServerIdentity>();
  for (const { serverInfo } of observed?.listings ?? []) {
    const server = readServer(serverInfo);
    if (server !== undefined) seen.set(digestServer(server), server);
  }
  return [...seen.values()];
}

/** The server identity after a listing: except for its version, it changes only with an approval. */
export function mergeServer(
  known: ServerIdentity | undefined,
  observed: Observed,
  isApproved: boolean,
): ServerIdentity | undefined {
  const [seen] = observedServers(observed);
  if (known === undefined || seen === undefined) return known ?? seen;
  const [change] = compareServers(known, seen);
  return isApproved || change === 'server-version' ? seen : known;
}
