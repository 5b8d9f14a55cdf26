// Scans what an upstream offers and nobody approved, before anything of it is shown: complete listings of the gateway's
// own, and without pinning the pages of clients too. Verdicts are kept by the content of a definition. What could not be
// scanned counts as if a reason to withhold it had been found. docs/contract.md §5 (`pinning.scan`).

import type { PinningSettings } from '../config/settings.js';
import type { DefinitionFinding, ScannedDefinition } from '../inspection/definitions/scan.js';
import type { PinName } from '../pins/approval.js';
import type { WithheldByScan } from '../pins/catalog.js';
import { digestOnce, type PinnedKind, sha256Hex } from '../pins/digest.js';
import { type Observed, observeText, shownItemsOf } from '../pins/last-seen.js';
import { approvedVersions, type Lock, nameOf } from '../pins/lock.js';
import type { PinKind } from '../policy/definitions.js';
import type { JsonObject } from '../protocol/jsonrpc.js';
import type { Listing } from '../protocol/listings.js';
import { BoundedMap } from '../state/bounded-map.js';
import { type MessageReader, runInTurns } from '../upstream/message-reader.js';

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
  /** Scans the definitions of a page that were not scanned yet. Never rejects. */
  reviewPage(kind: PinKind, definitions: readonly JsonObject[]): Promise<void>;
  /** Absent if the scan withholds nothing. */
  readonly isWithheld: WithheldByScan | undefined;
  /** Whether the scan keeps a definition from being trusted. */
  hasBlocked(definition: JsonObject | string): boolean;
  /** What was found in what is offered now and not approved. */
  found(observed: Observed | undefined, lock: Lock | undefined): readonly ScannedItem[];
  /** Differs after each change of what was found. */
  revision(): number;
};

type ScanPorts = {
  readonly scanDefinitions: (
    text: string,
    upstream: string,
  ) => Promise<readonly DefinitionFinding[] | undefined>;
  readonly messageReader: MessageReader;
  /** The lock file in force. */
  readonly lock: () => Lock | undefined;
};

type Item = ScannedDefinition & { readonly digest: string };

/** Several times as many as one listing may have. */
const MAX_VERDICTS = 50_000;
/** Listings that are recognized: one for each client profile, and a few that alternate. */
const MAX_LISTINGS = 32;
/** Kept for each definition, the gravest first: one with many is not worse, and all of them are held in memory. */
const MAX_FINDINGS = 8;

const contents = new WeakMap<JsonObject, string>();

/** Names a definition by its content, kept with the object, which nobody modifies. */
function contentOf(definition: JsonObject | string): string {
  if (typeof definition === 'string') return sha256Hex(definition);
  const known = contents.get(definition);
  if (known !== undefined) return known;
  const content = sha256Hex(JSON.stringify(definition));
  contents.set(definition, content);
  return content;
}

/** Creates the scan of one upstream. */
export function createDefinitionScan(
  { scan }: Pick<PinningSettings, 'scan'>,
  ports: ScanPorts,
): DefinitionScan {
  const verdicts = new BoundedMap<string, ScannedItem>(MAX_VERDICTS);
  const scannedListings = new BoundedMap<string, true>(MAX_LISTINGS);
  const { messageReader } = ports;
  let revision = 0;

  function isBlocked(content: string): boolean {
    const verdict = verdicts.get(content);
    return verdict?.isFailed === true || verdict?.findings[0]?.tier === 'block';
  }

  /** Scans the items together and notes what was found in some of them. */
  async function scanTogether(items: readonly Item[], noted: readonly Item[]): Promise<boolean> {
    const parts: string[] = [];
    await runInTurns(messageReader, items, ({ kind, name, definition }) => {
      parts.push(JSON.stringify({ kind, name, definition }));
    });
    const found = await ports.scanDefinitions(`[${parts.join(',')}]`, messageReader.upstream);
    const byName = new Map<string, DefinitionFinding[]>();
    for (const finding of found ?? []) {
      const { kind, name } = finding.item;
      const key = `${kind} ${name}`;
      byName.set(key, [...(byName.get(key) ?? []), finding]);
    }
    for (const { kind, name, definition } of noted) {
      const content = contentOf(definition);
      const findings = gravest(byName.get(`${kind} ${name}`) ?? []);
      verdicts.set(content, { kind, name, content, findings, isFailed: found === undefined });
    }
    revision += 1;
    return found !== undefined;
  }

  function isUnapproved(lock: Lock | undefined): (item: Item) => boolean {
    return ({ kind, name, digest }) =>
      approvedDigests(lock, { kind, name }).every((approved) => approved !== digest);
  }

  return {
    async reviewListing(listing) {
      if (scan === 'off') return;
      const items = itemsOf(listing);
      const unapproved = items.filter(isUnapproved(ports.lock()));
      if (unapproved.length === 0) return;
      const names: string[] = [];
      await runInTurns(messageReader, items, ({ kind, name, definition }) => {
        names.push(`${kind} ${JSON.stringify(name)} ${contentOf(definition)}`);
      });
      const key = sha256Hex(names.join('\n'));
      const isKnown = unapproved.every(({ definition }) => verdicts.has(contentOf(definition)));
      if (isKnown && scannedListings.has(key)) return;
      scannedListings.delete(key);
      // One that failed is scanned again with the next listing.
      if (await scanTogether(items, unapproved)) scannedListings.set(key, true);
    },
    async reviewPage(kind, definitions) {
      if (scan === 'off') return;
      const items: Item[] = [];
      await runInTurns(messageReader, definitions, (definition) => {
        const verdict = verdicts.get(contentOf(definition));
        const name = nameOf(kind, definition);
        if (name === undefined || verdict?.isFailed === false) return;
        items.push({ kind, name, definition, digest: digestOnce(kind, definition, true) });
      });
      const unapproved = items.filter(isUnapproved(ports.lock()));
      if (unapproved.length > 0) await scanTogether(unapproved, unapproved);
    },
    isWithheld:
      scan === 'block'
        ? (definition, mustBeScanned) => {
            const content = definition && contentOf(definition);
            if (content === undefined || !verdicts.has(content)) return mustBeScanned;
            return isBlocked(content);
          }
        : undefined,
    hasBlocked: (definition) => scan === 'block' && isBlocked(contentOf(definition)),
    found(observed, lock) {
      if (observed === undefined) return [];
      return [...verdicts.values()].filter(
        ({ kind, name, content, findings, isFailed }) =>
          (isFailed || findings.length > 0) &&
          !isBlockedByReview(lock, { kind, name }) &&
          offered(observed, { kind, name }).some(
            ({ digest, definition }) =>
              definition !== undefined &&
              contentOf(definition) === content &&
              !approvedDigests(lock, { kind, name }).includes(digest),
          ),
      );
    },
    revision: () => revision,
  };
}

function gravest(findings: readonly DefinitionFinding[]): readonly DefinitionFinding[] {
  const of = (tier: DefinitionFinding['tier']) => findings.filter((one) => one.tier === tier);
  return [...of('block'), ...of('review')].slice(0, MAX_FINDINGS);
}

function itemsOf({ tools, prompts, templates, resources, instructions }: Listing): Item[] {
  const lists = [
    ['tool', tools],
    ['prompt', prompts],
    ['template', templates],
    ['resource', resources],
  ] as const;
  const items = lists.flatMap(([kind, list]) =>
    list.flatMap(({ definition, isExact }) => {
      const name = nameOf(kind, definition);
      return name === undefined
        ? []
        : [{ kind, name, definition, digest: digestOnce(kind, definition, isExact) }];
    }),
  );
  if (instructions === undefined) return items;
  const { digest } = observeText(instructions);
  const named = { kind: 'instructions', name: 'instructions' } as const;
  return [...items, { ...named, definition: instructions, digest }];
}

function pinOf(lock: Lock | undefined, { kind, name }: PinName) {
  return kind === 'instructions' ? lock?.instructions : lock?.pins[kind].get(name);
}

function approvedDigests(lock: Lock | undefined, pin: PinName): readonly string[] {
  const found = pinOf(lock, pin);
  if (found === undefined) return [];
  return approvedVersions<unknown>(found).map(({ sha256 }) => sha256);
}

/** A reviewer has decided about the name: there is nothing left to report. */
function isBlockedByReview(lock: Lock | undefined, pin: PinName): boolean {
  return pinOf(lock, pin)?.status === 'blocked';
}

type Offered = { readonly digest: string; readonly definition: JsonObject | string | undefined };

function offered(
  observed: Observed,
  { kind, name }: { kind: PinnedKind; name: string },
): readonly Offered[] {
  if (kind !== 'instructions') return shownItemsOf(observed, kind, name);
  return observed.listings.flatMap(({ instructions }) =>
    instructions === undefined
      ? []
      : [{ digest: instructions.digest, definition: instructions.text }],
  );
}
