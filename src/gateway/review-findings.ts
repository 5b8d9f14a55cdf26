// Finds what the page of a definition shows as findings, as `pin diff` does: by the scan of the definition together with
// the others of its server, and by a comparison with those of other upstreams. Both run on another thread.
// docs/contract.md §2 and §5.

import type { ReviewItem } from '../admin/review-pages.js';
import type { DefinitionFinding, ScannedDefinition } from '../inspection/definitions/scan.js';
import {
  definitionsOf,
  definitionsToScan,
  isSamePin,
  mergeFetched,
  namedPins,
  type PinName,
  pendingOf,
  pinOf,
} from '../pins/approval.js';
import type { PinnedKind } from '../pins/digest.js';
import { emptyLock, type Lock, PIN_KINDS, versionsOf } from '../pins/lock.js';
import type { JsonObject } from '../protocol/jsonrpc.js';
import type { Version } from './config-version.js';
import type { UpstreamRuntime } from './upstreams.js';
import type { DefinitionTasks } from './worker/inspection.js';

type ItemOffered = {
  readonly item: ReviewItem;
  readonly runtime: Pick<UpstreamRuntime, 'observed'>;
  readonly offered: JsonObject | string | undefined;
};

type FoundInItem = {
  readonly findings: readonly DefinitionFinding[];
  /** Which of the checks were not made, and why, in sentences. */
  readonly unfinished: readonly string[];
  /** Whether another attempt would find the same. */
  readonly isFinal: boolean;
};

type Ports = { readonly definitions: DefinitionTasks; readonly now: () => number };

/** If the definitions of its server are longer together, or more, the definition is read alone. */
const MAX_SIBLING_CHARACTERS = 256 * 1024;
const MAX_SIBLINGS = 2_000;
/** Longer definitions of all other upstreams together are not compared for a page. */
const MAX_OTHERS_CHARACTERS = 4 * 1024 * 1024;

const NOT_SCANNED =
  'The definition could not be scanned now. Load the page again, or run the first command.';
const NOT_COMPARED =
  'The definition could not be compared with those of other upstreams now. Load the page again, or run the first command.';
const ALONE =
  'The other definitions of its server are too long to be read together with it here. The first command does that.';
const OTHERS_TOO_LONG =
  'The definitions of the other upstreams are too long to be compared with it here. The first command does that.';
const NOTHING: FoundInItem = { findings: [], unfinished: [], isFinal: true };

/** What is found in the definition that is offered. */
export async function findInItem(
  { item, runtime, offered }: ItemOffered,
  version: Version,
  ports: Ports,
): Promise<FoundInItem> {
  const { upstream, kind, name, after } = item;
  if (offered === undefined || kind === 'server' || after === item.before) return NOTHING;
  const own = { kind: kind as PinnedKind, name, definition: offered };
  const held = offeredLock(version.locks.get(upstream), runtime, upstream);
  const { scanned: together, all, isAlone } = siblingsOf(own, after, held);
  const [scanned, shadowing] = await Promise.all([
    ports.definitions('scan', together, upstream),
    findShadowing(upstream, own, all, version, ports),
  ]);
  const isOwn = (finding: DefinitionFinding): boolean => isSamePin(finding.item, own);
  const unfinished = [
    ...(scanned === undefined ? [NOT_SCANNED] : []),
    ...(isAlone ? [ALONE] : []),
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
  const scanned = JSON.stringify([
    ...others.filter((one) => isHeld || !isSamePin(one, own)),
    ...beside,
  ]);
  if (scanned.length > MAX_SIBLING_CHARACTERS) return alone;
  return { scanned, all: [...definitionsOf(held), ...beside], isAlone: false };
}

/** The lock file, with what else is offered as pending; `undefined` if that is more than is read for a page. */
function offeredLock(
  lock: Lock | undefined,
  { observed }: ItemOffered['runtime'],
  upstream: string,
): Lock | undefined {
  const now = observed();
  const offered = (now?.listings ?? []).flatMap(({ seen }) =>
    PIN_KINDS.map((one) => seen[one].size),
  );
  const count = offered.reduce((sum, size) => sum + size, namedPins(lock).length);
  if (count > MAX_SIBLINGS) return undefined;
  if (now === undefined) return lock ?? emptyLock(upstream);
  return mergeFetched({ upstream, lock, observed: now, approval: undefined }).lock;
}

/** JSON of the definitions of a lock file, which stay the same as long as it does. */
const texts = new WeakMap<Lock, string>();

function textOf(lock: Lock): string {
  const known = texts.get(lock);
  if (known !== undefined) return known;
  const text = JSON.stringify({ upstream: lock.upstream, definitions: definitionsOf(lock) });
  texts.set(lock, text);
  return text;
}

async function findShadowing(
  upstream: string,
  { kind, name }: PinName,
  definitions: readonly PinName[],
  { settings, locks, shadowing: exceptions }: Version,
  { definitions: run, now }: Ports,
): Promise<Omit<FoundInItem, 'isFinal'>> {
  const others = [...locks.values()]
    .filter((lock) => lock.upstream !== upstream && settings.upstreams.has(lock.upstream))
    .map(textOf);
  const length = others.reduce((sum, text) => sum + text.length, 0);
  if (length > MAX_OTHERS_CHARACTERS) return { findings: [], unfinished: [OTHERS_TOO_LONG] };
  const given = JSON.stringify({
    own: { upstream, definitions },
    asked: [{ kind, name }],
    exceptions,
    today: new Date(now()).toISOString().slice(0, 10),
  });
  const text = `${given.slice(0, -1)},"others":[${others.join()}]}`;
  const found = await run('shadowing', text, upstream);
  return { findings: found ?? [], unfinished: found === undefined ? [NOT_COMPARED] : [] };
}
