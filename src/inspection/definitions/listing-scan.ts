// Scans what an upstream offers and nobody approved, before anything of it is shown: complete listings of the gateway's
// own, and without pinning the pages of clients too. Verdicts are kept by the content of a definition. What could not be
// scanned counts as if a reason to withhold it had been found. docs/reference/scan.md.

import type { PinningSettings } from '../../config/settings.js';
import { type PinName, pinOf } from '../../pins/approval.js';
import type { WithheldByScan } from '../../pins/catalog.js';
import { contentOf, digestOnce, sha256Hex } from '../../pins/digest.js';
import { itemsByKind, type Observed, observeText, shownItemsOf } from '../../pins/last-seen.js';
import { approvedVersions, type Lock, nameOf, PIN_KINDS } from '../../pins/lock.js';
import type { PinKind } from '../../policy/definitions.js';
import { runInTurns, type Turns } from '../../protocol/json/incremental.js';
import type { JsonObject } from '../../protocol/jsonrpc.js';
import type { Listing } from '../../protocol/methods.js';
import { BoundedMap } from '../../state/bounds.js';
import { groupBy } from '../../text/grouping.js';
import type { DefinitionFinding, ScannedDefinition } from './scan.js';

/** What the scan found in a definition that is offered now. `isFailed`: it could not be scanned. */
export type ScannedItem = PinName & {
  /** SHA-256 of its content, which is not its digest in the lock file. */
  readonly content: string;
  /** Of the tiers block and review, the gravest first. */
  readonly findings: readonly DefinitionFinding[];
  readonly isFailed: boolean;
};

export type DefinitionScan = {
  /** Scans a complete listing, together with what of it is approved. Never rejects. */
  reviewListing(listing: Listing): Promise<void>;
  /** Scans the definitions of a page that were not scanned in this order yet. Never rejects. */
  scanPage(kind: PinKind, definitions: readonly JsonObject[]): Promise<void>;
  /** Absent if the scan withholds nothing. */
  readonly isWithheld: WithheldByScan | undefined;
  /** Whether the scan keeps a definition from being trusted, which it does until it has seen it. */
  hasBlocked(definition: JsonObject | string): boolean;
  /** What was found in what is offered now and not approved. */
  found(observed: Observed | undefined, lock: Lock | undefined): readonly ScannedItem[];
  /** Differs after each change of what was found. */
  revision(): number;
};

/**
 * Scans the definitions of one server together, on another thread; `text` is JSON of a list of `ScannedDefinition`.
 * `undefined` if the scan did not finish. Never rejects.
 */
export type ScanDefinitions = (text: string, upstream: string) => Promise<readonly DefinitionFinding[] | undefined>;

type ScanPorts = {
  readonly scanDefinitions: ScanDefinitions;
  readonly turns: Turns;
  /** The lock file in force. */
  readonly lock: () => Lock | undefined;
};

type Item = ScannedDefinition & { readonly digest: string };

/** Several times as many as one listing may have. */
const MAX_VERDICTS = 50_000;
/** Of the names and findings that verdicts hold; the upstream decides how long its names and paths are. */
const MAX_VERDICT_CHARS = 32 * 1024 * 1024;
/** Parts of listings that are recognized; a listing of the largest size has some hundred. */
const MAX_PARTS = 4_096;
/** Kept for each definition, the gravest first: one with many is not worse, and all of them are held in memory. */
const MAX_FINDINGS = 8;
/** Definitions that are scanned in one job: a hostile text of this length takes half a second. */
const PART_CHARS = 64 * 1024;

/** Consecutive definitions that are scanned together. The first of `items` is the last of the part before. */
type Part = { readonly items: readonly Item[]; readonly own: readonly Item[] };

/** What one definition breaks off and the next takes up is found, because the parts overlap. */
function divide(items: readonly Item[]): readonly Part[] {
  const parts: Part[] = [];
  let own: Item[] = [];
  let before: Item | undefined;
  let chars = 0;
  const close = (): void => {
    parts.push({ own, items: before === undefined ? own : [before, ...own] });
    before = own.at(-1);
    own = [];
    chars = 0;
  };
  for (const item of items) {
    const more = contentOf(item.definition).chars;
    if (own.length > 0 && chars + more > PART_CHARS) close();
    own.push(item);
    chars += more;
  }
  if (own.length > 0) close();
  return parts;
}

function keyOf(items: readonly Pick<Item, 'kind' | 'name' | 'definition'>[]): string {
  const names = items.map(
    ({ kind, name, definition }) => `${kind} ${JSON.stringify(name)} ${contentOf(definition).hash}`,
  );
  return sha256Hex(names.join('\n'));
}

/** Creates the scan of one upstream. */
export function createDefinitionScan({ scan }: Pick<PinningSettings, 'scan'>, ports: ScanPorts): DefinitionScan {
  const verdicts = new BoundedMap<string, ScannedItem>(MAX_VERDICTS, MAX_VERDICT_CHARS);
  const scannedParts = new BoundedMap<string, true>(MAX_PARTS);
  const { turns } = ports;
  let revision = 0;
  let listings: Promise<void> = Promise.resolve();

  function isBlocked(content: string): boolean {
    const verdict = verdicts.get(content);
    return verdict?.isFailed === true || verdict?.findings[0]?.tier === 'block';
  }

  function scanItems(items: readonly ScannedDefinition[]): Promise<readonly DefinitionFinding[] | undefined> {
    const definitions = items.map(({ kind, name, definition }) => ({ kind, name, definition }));
    return ports.scanDefinitions(JSON.stringify(definitions), turns.upstream);
  }

  /** Scans definitions in parts, and notes what was found in those of them that count. */
  async function review(items: readonly Item[], counts: (item: Item) => boolean): Promise<void> {
    await runInTurns(turns, items, ({ definition }) => void contentOf(definition));
    const startedMs = performance.now();
    const parts = divide(items);
    const due = parts.filter((part) => part.own.some(counts) && !isReviewed(part, counts));
    turns.loopScheduler.recordTime(startedMs);
    if (due.length === 0) return;
    // Names are compared with all others of the server, however many parts its definitions have.
    const named = parts.length === 1 ? [] : await scanItems(items.map(nameAlone));
    for (const part of due) {
      const found = await scanItems(part.items);
      if (found !== undefined && named !== undefined) scannedParts.set(keyOf(part.items), true);
      note(part.own.filter(counts), found && named && [...found, ...named]);
    }
    revision += 1;
  }

  /** One that failed is scanned again with the next listing. */
  function isReviewed({ items, own }: Part, counts: (item: Item) => boolean): boolean {
    const isKnown = ({ definition }: Item) => verdicts.get(contentOf(definition).hash)?.isFailed === false;
    return scannedParts.has(keyOf(items)) && own.filter(counts).every(isKnown);
  }

  function note(items: readonly Item[], found: readonly DefinitionFinding[] | undefined): void {
    const byName = groupBy(found ?? [], ({ item }) => `${item.kind} ${item.name}`);
    for (const { kind, name, definition } of items) {
      const content = contentOf(definition).hash;
      const findings = gravest(byName.get(`${kind} ${name}`) ?? []);
      // What was found beside some neighbours stays found beside others: the upstream decides who is listed with whom.
      if (verdicts.get(content)?.findings[0]?.tier === 'block' && findings[0]?.tier !== 'block') continue;
      const verdict = { kind, name, content, findings, isFailed: found === undefined };
      verdicts.set(content, verdict, JSON.stringify(verdict).length);
    }
  }

  function isUnapproved(lock: Lock | undefined): (item: Item) => boolean {
    return ({ kind, name, digest }) => approvedDigests(lock, { kind, name }).every((approved) => approved !== digest);
  }

  return {
    async reviewListing(listing) {
      if (scan === 'off') return;
      const items = itemsOf(listing);
      const counts = isUnapproved(ports.lock());
      if (!items.some(counts)) return;
      // One after the other: what is listed in both eras is mostly the same, and is then scanned once. Where a review
      // fails nothing is noted, and what was not scanned is withheld.
      listings = listings.then(() => review(items, counts)).catch(() => undefined);
      await listings;
    },
    async scanPage(kind, definitions) {
      if (scan === 'off') return;
      const items: Item[] = [];
      await runInTurns(turns, definitions, (definition) => {
        const name = nameOf(kind, definition);
        if (name === undefined) return;
        items.push({ kind, name, definition, digest: digestOnce(kind, definition, true) });
      });
      // Together, because a page may have other neighbours than the listing of the gateway.
      const counts = isUnapproved(ports.lock());
      if (items.some(counts)) await review(items, counts);
    },
    isWithheld:
      scan === 'block'
        ? (definition, mustBeScanned) => {
            const content = definition && contentOf(definition).hash;
            if (content === undefined || !verdicts.has(content)) return mustBeScanned;
            return isBlocked(content);
          }
        : undefined,
    hasBlocked(definition) {
      const content = contentOf(definition).hash;
      return scan === 'block' && (!verdicts.has(content) || isBlocked(content));
    },
    found(observed, lock) {
      if (observed === undefined) return [];
      return [...verdicts.values()].filter(
        ({ kind, name, content, findings, isFailed }) =>
          (isFailed || findings.length > 0) &&
          // If a reviewer has blocked the name, there is nothing left to report.
          pinOf(lock, { kind, name })?.status !== 'blocked' &&
          offeredForms(observed, { kind, name }).some(
            ({ digest, definition }) =>
              definition !== undefined &&
              contentOf(definition).hash === content &&
              !approvedDigests(lock, { kind, name }).includes(digest),
          ),
      );
    },
    revision: () => revision,
  };
}

function nameAlone({ kind, name }: Item): ScannedDefinition {
  return { kind, name, definition: { name } };
}

function gravest(findings: readonly DefinitionFinding[]): readonly DefinitionFinding[] {
  const ofTier = (tier: DefinitionFinding['tier']) => findings.filter((one) => one.tier === tier);
  return [...ofTier('block'), ...ofTier('review')].slice(0, MAX_FINDINGS);
}

function itemsOf(listing: Listing): Item[] {
  const { instructions } = listing;
  const listed = itemsByKind(listing);
  const items = PIN_KINDS.flatMap((kind) =>
    listed[kind].flatMap(({ definition, isExact }) => {
      const name = nameOf(kind, definition);
      return name === undefined ? [] : [{ kind, name, definition, digest: digestOnce(kind, definition, isExact) }];
    }),
  );
  if (instructions === undefined) return items;
  const { digest } = observeText(instructions);
  const named = { kind: 'instructions', name: 'instructions' } as const;
  return [...items, { ...named, definition: instructions, digest }];
}

function approvedDigests(lock: Lock | undefined, pin: PinName): readonly string[] {
  return approvedVersions(pinOf(lock, pin)).map(({ sha256 }) => sha256);
}

type Offered = { readonly digest: string; readonly definition: JsonObject | string | undefined };

function offeredForms(observed: Observed, { kind, name }: PinName): readonly Offered[] {
  if (kind !== 'instructions') return shownItemsOf(observed, kind, name);
  return observed.listings.flatMap(({ instructions }) =>
    instructions === undefined ? [] : [{ digest: instructions.digest, definition: instructions.text }],
  );
}
