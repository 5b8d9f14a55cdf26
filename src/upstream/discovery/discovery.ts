// Keeps the gateway's listing of one upstream's definitions up to date: lists them in every era that the
// upstream speaks, on a timer and on demand, one listing at a time, and reports the results. Does not compare
// definitions with pins and knows nothing of callers' rights.
// Where clients may declare the Apps extension, lists both with and without it: what is offered to one client
// profile proves nothing about the other. An upstream is fresh only if both were verified, and nothing is
// reported before both have been listed or have failed.
// docs/reference/definitions.md. Source: MCP Apps extension (SEP-1865), capability negotiation; MCP 2026-07-28,
// versioning (an upstream may speak one era or both).

import { type ClientProfile, isSameProfile, type Listing, type UnavailableKind } from '../../protocol/methods.js';
import { protocolListedAs } from '../../protocol/versions/negotiation.js';
import { LISTED_ERAS, type ListedEra, perListedEra, SESSION_VERSIONS } from '../../protocol/versions/revisions.js';
import {
  type ByteAllowance,
  type ExchangeError,
  type SendRequest,
  type SetTimer,
  setUnheldTimer,
} from '../exchange.js';
import type { MessageReader } from '../response-messages.js';
import { LISTING_CAPS, type ListingCaps } from './caps.js';
import {
  type EraOutcome,
  type EraPorts,
  endListingSession,
  type ListingSession,
  listSession,
  listStateless,
} from './lists.js';

/** The interval at which an era that is not spoken is probed again. Milliseconds. */
export const PROBE_INTERVAL_MS = 600_000;

type EraState = {
  /** When the last complete listing was verified; `undefined` while the era is not known to be spoken. */
  verifiedAtMs: number | undefined;
  /** When the era was last found not to be spoken. */
  lastUnsupportedAtMs: number | undefined;
};

/**
 * Which eras an upstream speaks, and when each was last verified. An era whose listing fails is removed only if the
 * upstream says that it does not speak it; until then its listing ages.
 */
type SpokenEras = { readonly [era in ListedEra]: EraState };

function createSpokenEras(): SpokenEras {
  const unknown = { verifiedAtMs: undefined, lastUnsupportedAtMs: undefined };
  return perListedEra<EraState>(() => ({ ...unknown }));
}

/** True for an era that was listed and not removed since. */
function isKnown(eras: SpokenEras, era: ListedEra): boolean {
  return eras[era].verifiedAtMs !== undefined;
}

/** True if the upstream is known to speak any era. */
function isAnyKnown(eras: SpokenEras): boolean {
  return LISTED_ERAS.some((era) => isKnown(eras, era));
}

/** The eras to list now: those spoken, and the others at the probe interval. */
function dueEras(eras: SpokenEras, nowMs: number): readonly ListedEra[] {
  return LISTED_ERAS.filter((era) => {
    const { lastUnsupportedAtMs } = eras[era];
    if (isKnown(eras, era) || lastUnsupportedAtMs === undefined || !isAnyKnown(eras)) return true;
    return nowMs - lastUnsupportedAtMs >= PROBE_INTERVAL_MS;
  });
}

/** True if at least one era is spoken and every spoken era was verified within `maxAgeMs`. */
function areVerified(eras: SpokenEras, nowMs: number, maxAgeMs: number): boolean {
  let isAny = false;
  for (const era of LISTED_ERAS) {
    const { verifiedAtMs } = eras[era];
    if (verifiedAtMs === undefined) continue;
    if (nowMs - verifiedAtMs > maxAgeMs) return false;
    isAny = true;
  }
  return isAny;
}

/** Records the outcome of a listing. Returns true if an era that was spoken is gone. */
function recordOutcome(eras: SpokenEras, era: ListedEra, outcome: EraOutcome, nowMs: number): boolean {
  const state = eras[era];
  switch (outcome.kind) {
    case 'listed':
      state.verifiedAtMs = outcome.listing.verifiedAtMs;
      state.lastUnsupportedAtMs = undefined;
      return false;
    case 'not-spoken': {
      const wasKnown = isKnown(eras, era);
      state.verifiedAtMs = undefined;
      state.lastUnsupportedAtMs = nowMs;
      return wasKnown;
    }
    case 'failed':
      return false;
  }
}

/** `detail`: one clause that says what was wrong. `isSpoken`: it was reached, and spoke MCP before it failed. */
export type ListingFailure = {
  readonly why: ExchangeError;
  readonly detail?: string | undefined;
  readonly isSpoken?: boolean;
};

/**
 * Why a finished round failed in this era, or `undefined` if it did not. Not speaking an era is no failure
 * while the upstream speaks the other.
 */
function failureOf(eras: SpokenEras, era: ListedEra, outcome: EraOutcome, nowMs: number): ListingFailure | undefined {
  switch (outcome.kind) {
    case 'listed':
      return undefined;
    case 'not-spoken':
      return isAnyKnown(eras) ? undefined : { why: 'protocol', detail: outcome.detail };
    case 'failed':
      if (outcome.isSpoken || isKnown(eras, era) || !isAnyKnown(eras))
        return { why: outcome.why, detail: outcome.detail, isSpoken: outcome.isSpoken };
      // The other era responds and this one never did: treat it as not spoken. An upstream that was only
      // overloaded is probed again with the next listing.
      if (outcome.why !== 'unavailable') eras[era].lastUnsupportedAtMs = nowMs;
      return undefined;
  }
}

type ListerSettings = {
  readonly maxAgeMs: number;
  readonly requestTimeoutMs: number;
  readonly gatewayVersion: string;
  /** Session-era versions on this transport, oldest first. Default: those of Streamable HTTP. */
  readonly sessionVersions?: readonly string[] | undefined;
  /** Whether the Apps extension is declared. Default: false. */
  readonly apps?: boolean;
  readonly caps?: ListingCaps;
};

export type ListerPorts = {
  readonly request: SendRequest;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly setTimer?: SetTimer;
  /** Returns a number from 0 to 1, for the jitter of the timer. */
  readonly random?: () => number;
  /**
   * Parses responses; default: {@link DIRECT_MESSAGE_READER}. The allowance bounds the bytes read per minute;
   * default: unbounded.
   */
  readonly messageReader?: MessageReader | undefined;
  readonly allowance?: ByteAllowance | undefined;
  readonly prepare?: EraPorts['prepare'];
  /** Called with each complete listing of one era. */
  readonly onListing: (listing: Listing) => void;
  /** The upstream no longer speaks an era that it spoke before. */
  readonly onEraGone?: (era: ListedEra) => void;
  /** No listing in an era that the upstream speaks, or in any era. The previous listing keeps aging. */
  readonly onFailure?: (era: ListedEra, failure: ListingFailure) => void;
  /** Every era that was due has been listed or has failed. */
  readonly onRoundEnd?: () => void;
};

/** The minimum interval between listings that no call waits for, and after a failure. Milliseconds. */
export const MIN_INTERVAL_MS = 1000;
/** The fraction of the maximum age after which the timer lists, and its jitter in either direction. */
const REFRESH_FRACTION = 0.5;
const JITTER_FRACTION = 0.1;
/** The longest time between two listings by the timer, however old definitions may become. Milliseconds. */
const MAX_INTERVAL_MS = 3_600_000;
/** The time after a failed listing: a server that comes back may have changed. Milliseconds. */
const RETRY_INTERVAL_MS = 10_000;
/** The same after one in which a kind of list was unavailable. */
const PARTIAL_RETRY_INTERVAL_MS = 60_000;

/** The gateway as a client of one upstream on its own behalf. Sends nothing before it is started or queried. */
export class Lister {
  readonly #maxAgeMs: number;
  readonly #ports: ListerPorts;
  readonly #eraPorts: EraPorts;
  readonly #eras = createSpokenEras();
  #session: ListingSession | undefined;
  #running: Promise<void> | undefined;
  #following: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #startedAtMs = Number.NEGATIVE_INFINITY;
  #hasFailed = false;
  #isPartial = false;
  /** The last listing of each era, whose items stand in for those of a kind that is unavailable. */
  readonly #previous = new Map<ListedEra, Listing>();
  #isClosed = false;
  #cancelTimer: () => void = () => undefined;
  #endWait: () => void = () => undefined;

  constructor(settings: ListerSettings, ports: ListerPorts) {
    this.#maxAgeMs = settings.maxAgeMs;
    this.#ports = ports;
    this.#eraPorts = {
      request: ports.request,
      now: ports.now,
      setTimer: ports.setTimer ?? setUnheldTimer,
      requestTimeoutMs: settings.requestTimeoutMs,
      listingTimeoutMs: Math.max(settings.maxAgeMs, settings.requestTimeoutMs),
      caps: settings.caps ?? LISTING_CAPS,
      gatewayVersion: settings.gatewayVersion,
      sessionVersions: settings.sessionVersions ?? SESSION_VERSIONS,
      apps: settings.apps ?? false,
      messageReader: ports.messageReader,
      allowance: ports.allowance,
      silentKinds: new Set(),
      prepare: ports.prepare,
    };
  }

  /** Lists now, and from then on by timer. */
  start(): void {
    // A callback that throws is an error of its owner; the next listing must still be scheduled.
    this.#list().catch(() => this.#schedule());
  }

  isFresh(maxAgeMs = this.#maxAgeMs): boolean {
    return areVerified(this.#eras, this.#ports.now(), maxAgeMs);
  }

  /**
   * Resolves with `fresh` if every era that the upstream speaks was verified within `maxAgeMs`, after listing
   * where needed. Concurrent calls share one listing. After a failure there is no new attempt within the
   * minimum interval.
   */
  async ensureFresh(maxAgeMs = this.#maxAgeMs): Promise<'fresh' | 'stale'> {
    if (this.isFresh(maxAgeMs)) return 'fresh';
    const wasRunning = this.#running !== undefined;
    const isTooSoon = this.#ports.now() - this.#startedAtMs < MIN_INTERVAL_MS;
    if (wasRunning || !this.#hasFailed || !isTooSoon) await this.#list();
    // The listing already under way may have started too early to count.
    if (wasRunning && !this.#hasFailed && !this.isFresh(maxAgeMs)) await this.#list();
    return this.isFresh(maxAgeMs) ? 'fresh' : 'stale';
  }

  /**
   * Lists anew and resolves with `fresh` if every era that the upstream speaks was verified by a listing that began
   * after this call. Calls that arrive while a listing runs share the next one.
   */
  async verifyNow(): Promise<'fresh' | 'stale'> {
    const sinceMs = this.#ports.now();
    this.#next ??= this.#listNext();
    await this.#next;
    return areVerified(this.#eras, sinceMs, 0) ? 'fresh' : 'stale';
  }

  /** Handles a list-changed notification. Resolves after the next listing; bursts cause a single listing. */
  noteListChanged(): Promise<void> {
    this.#following ??= this.#listAfterNow();
    return this.#following;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelTimer();
    this.#endWait();
    if (this.#running === undefined) await this.#endOwnSession();
  }

  #list(): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    this.#running ??= this.#listAll().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #listAll(): Promise<void> {
    this.#startedAtMs = this.#ports.now();
    this.#hasFailed = false;
    this.#isPartial = false;
    const due = dueEras(this.#eras, this.#startedAtMs);
    // While no era is known, outcomes are recorded together: one era alone would look like all that is
    // spoken.
    const isFirst = !isAnyKnown(this.#eras);
    const outcomes = await Promise.all(due.map((era) => this.#listEra(era, isFirst)));
    if (this.#isClosed) return this.#endOwnSession();
    if (isFirst) for (const { era, outcome } of outcomes) this.#enter(era, outcome);
    for (const { era, outcome } of outcomes) {
      const failure = failureOf(this.#eras, era, outcome, this.#ports.now());
      if (failure === undefined) continue;
      this.#hasFailed = true;
      this.#ports.onFailure?.(era, failure);
    }
    this.#schedule();
    this.#ports.onRoundEnd?.();
  }

  async #listEra(era: ListedEra, isFirst: boolean): Promise<{ era: ListedEra; outcome: EraOutcome }> {
    const outcome = await this.#requestListing(era, isKnown(this.#eras, era));
    if (!isFirst && !this.#isClosed) this.#enter(era, outcome);
    return { era, outcome };
  }

  #enter(era: ListedEra, outcome: EraOutcome): void {
    const isGone = recordOutcome(this.#eras, era, outcome, this.#ports.now());
    if (isGone) this.#ports.onEraGone?.(era);
    if (outcome.kind !== 'listed') return;
    const listing = withPrevious(outcome.listing, this.#previous.get(era));
    this.#previous.set(era, listing);
    this.#isPartial ||= (listing.unavailable ?? []).length > 0;
    this.#ports.onListing(listing);
  }

  async #requestListing(era: ListedEra, isSpoken: boolean): Promise<EraOutcome> {
    if (!protocolListedAs(era).hasSessions) return listStateless(this.#eraPorts, isSpoken);
    const listed = await listSession(this.#eraPorts, this.#session, isSpoken);
    this.#session = listed.session;
    return listed.outcome;
  }

  async #endOwnSession(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    if (session !== undefined) await endListingSession(this.#eraPorts, session);
  }

  #schedule(): void {
    this.#cancelTimer();
    if (this.#isClosed) return;
    const random = this.#ports.random ?? Math.random;
    const fraction = REFRESH_FRACTION + JITTER_FRACTION * (2 * random() - 1);
    const partialMs = this.#isPartial ? PARTIAL_RETRY_INTERVAL_MS : MAX_INTERVAL_MS;
    const longestMs = this.#hasFailed ? RETRY_INTERVAL_MS : partialMs;
    const delayMs = Math.min(Math.max(this.#maxAgeMs * fraction, MIN_INTERVAL_MS), longestMs);
    this.#cancelTimer = this.#eraPorts.setTimer(() => this.start(), delayMs);
  }

  /** Runs a listing that starts after this moment. */
  async #listNext(): Promise<void> {
    await this.#running?.catch(() => undefined);
    // A call that arrives from now on needs a listing of its own.
    this.#next = undefined;
    await this.#list();
  }

  /** Runs a listing that starts after this moment, but not before the minimum interval has passed. */
  async #listAfterNow(): Promise<void> {
    await this.#running?.catch(() => undefined);
    const waitMs = this.#startedAtMs + MIN_INTERVAL_MS - this.#ports.now();
    if (waitMs > 0 && !this.#isClosed) await this.#wait(waitMs);
    this.#following = undefined;
    await this.#list();
  }

  #wait(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#eraPorts.setTimer(resolve, delayMs);
      this.#endWait = () => {
        cancel();
        resolve();
      };
    });
  }
}

/**
 * A kind that is unavailable keeps the items that were listed last, so that nothing counts as removed; they are not
 * verified, and whoever asks for them is refused.
 */
function withPrevious(listing: Listing, previous: Listing | undefined): Listing {
  if ((listing.unavailable ?? []).length === 0 || previous === undefined) return listing;
  const wasListed = (kind: UnavailableKind['kind']): boolean =>
    (previous.unavailable ?? []).every((one) => one.kind !== kind || one.hasPrevious === true);
  const unavailable = (listing.unavailable ?? []).map((one) =>
    wasListed(one.kind) ? { ...one, hasPrevious: true } : one,
  );
  const kept = unavailable.map(({ kind }) => [kind, previous[kind]] as const);
  const areRead = unavailable.every(({ kind }) => kind !== 'tools' && kind !== 'resources');
  const resources = areRead ? listing.resources : previous.resources;
  return { ...listing, ...Object.fromEntries(kept), resources, unavailable };
}

export type OneListing =
  | { readonly kind: 'listed'; readonly listings: readonly Listing[] }
  | ({ readonly kind: 'unreachable' } & ListingFailure);

/** Lists once in every era that the upstream speaks and closes everything: for the command line. */
export async function listOnce(
  settings: Omit<ListerSettings, 'maxAgeMs'>,
  ports: Pick<ListerPorts, 'request' | 'now' | 'setTimer'>,
): Promise<OneListing> {
  const listings: Listing[] = [];
  const failures: ListingFailure[] = [];
  const lister = new Lister(
    { ...settings, maxAgeMs: settings.requestTimeoutMs },
    {
      ...ports,
      onListing: (listing) => listings.push(listing),
      onFailure: (_, failure) => failures.push(failure),
    },
  );
  await lister.ensureFresh();
  await lister.close();
  const [failure] = failures;
  if (failure === undefined && listings.length > 0) return { kind: 'listed', listings };
  return { kind: 'unreachable', why: 'protocol', ...failure };
}

/** `apps`: clients may declare the extension. */
export type DiscoverySettings = Omit<ListerSettings, 'apps'> & { readonly apps: boolean };

export type DiscoveryPorts = Omit<ListerPorts, 'request' | 'onListing' | 'onEraGone'> & {
  /** Called with complete listings: those of the first round all at once, later ones one at a time. */
  readonly onListings: (listings: readonly Listing[]) => void;
  /** Opens a connection to the upstream. Each client profile has its own, as a listing may hold a session. */
  readonly openRequest: () => SendRequest;
  /** The upstream no longer speaks this era to this client profile. */
  readonly onProfileGone: (clientProfile: ClientProfile) => void;
};

/** Without the extension, and if clients may declare it, also with it. */
function appsVariantsOf(apps: boolean): readonly boolean[] {
  return apps ? [false, true] : [false];
}

type DiscoveryLister = Pick<Lister, keyof Lister> & {
  /** Something was listed, and the last listing of no client profile failed. */
  isUp(): boolean;
};

/** Creates the lister of one upstream. Sends nothing before it is started or queried. */
export function createDiscoveryLister(settings: DiscoverySettings, ports: DiscoveryPorts): DiscoveryLister {
  const appsVariants = appsVariantsOf(settings.apps);
  // Nothing has been listed yet.
  const failing = new Set(appsVariants);
  const firstRound = createFirstRound(appsVariants, ports);
  const listers = appsVariants.map(
    (apps) =>
      new Lister(
        { ...settings, apps },
        {
          ...ports,
          request: ports.openRequest(),
          onListing(listing) {
            failing.delete(apps);
            firstRound.add(listing);
          },
          onEraGone: (era) => firstRound.drop({ era, apps }),
          onFailure(era, failure) {
            failing.add(apps);
            ports.onFailure?.(era, failure);
          },
          onRoundEnd: () => firstRound.end(apps),
        },
      ),
  );
  const isFresh: Lister['isFresh'] = (maxAgeMs) => listers.every((lister) => lister.isFresh(maxAgeMs));
  return {
    isFresh,
    isUp: () => failing.size === 0,
    start() {
      for (const lister of listers) lister.start();
    },
    async ensureFresh(maxAgeMs) {
      await Promise.all(listers.map((lister) => lister.ensureFresh(maxAgeMs)));
      return isFresh(maxAgeMs) ? 'fresh' : 'stale';
    },
    async verifyNow() {
      const verified = await Promise.all(listers.map((lister) => lister.verifyNow()));
      return verified.every((one) => one === 'fresh') ? 'fresh' : 'stale';
    },
    async noteListChanged() {
      await Promise.all(listers.map((lister) => lister.noteListChanged()));
    },
    async close() {
      await Promise.all(listers.map((lister) => lister.close()));
    },
  };
}

/**
 * Holds the listings of the first round until every client profile has finished, because one alone would look
 * like everything there is. If nothing was listed, the next round counts as the first again.
 */
function createFirstRound(
  appsVariants: readonly boolean[],
  { onListings, onProfileGone }: Pick<DiscoveryPorts, 'onListings' | 'onProfileGone'>,
): { add(listing: Listing): void; drop(gone: ClientProfile): void; end(apps: boolean): void } {
  const awaited = new Set(appsVariants);
  // The newest listing of each profile: one may be listed many times before the other finishes.
  let firstRoundListings: readonly Listing[] | undefined = [];
  const listingsExcept = (clientProfile: ClientProfile) =>
    firstRoundListings?.filter((listing) => !isSameProfile(listing, clientProfile));
  return {
    add(listing) {
      const others = listingsExcept(listing);
      if (others === undefined) onListings([listing]);
      else firstRoundListings = [...others, listing];
    },
    drop(gone) {
      firstRoundListings = listingsExcept(gone);
      onProfileGone(gone);
    },
    end(apps) {
      awaited.delete(apps);
      if (firstRoundListings === undefined || awaited.size > 0) return;
      const listings = firstRoundListings;
      if (listings.length === 0) {
        for (const variant of appsVariants) awaited.add(variant);
        return;
      }
      firstRoundListings = undefined;
      onListings(listings);
    },
  };
}

/** Lists once for every client profile and closes everything: for the command line. */
export async function listProfilesOnce(
  settings: Omit<DiscoverySettings, 'maxAgeMs'>,
  { openRequest, now }: Pick<DiscoveryPorts, 'openRequest' | 'now'>,
): Promise<OneListing> {
  const listings: Listing[] = [];
  for (const apps of appsVariantsOf(settings.apps)) {
    const listed = await listOnce({ ...settings, apps }, { request: openRequest(), now });
    if (listed.kind === 'unreachable') return listed;
    listings.push(...listed.listings);
  }
  return { kind: 'listed', listings };
}
