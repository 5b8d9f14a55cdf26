// Mends messages of upstreams that have half of a surrogate pair, as servers send that cut a text inside a character. In a
// text it becomes U+FFFD, as every decoder of Unicode replaces it. A name, URI, cursor or id would become another one, so
// what it belongs to is left out: an item of a list or of the content, or the member. In place of a definition stands why.
// Where what is left out would be the envelope, the message cannot be mended. Also reads a body behind a byte order mark.
// Source: Unicode 15.1 §3.9 (U+FFFD substitution); RFC 8259 §8.1 and §8.2; RFC 7493 §2.1.

import { after } from '../text/after.js';
import type { Span } from '../text/span.js';
import type { ReadOutcome } from './json/incremental.js';
import {
  applyEdits,
  decodeUtf8,
  elementSpans,
  MAX_JSON_DEPTH,
  type Path,
  removalsAt,
  replaceLoneSurrogates,
  spanOf,
} from './json/json.js';
import { walkJson } from './json/walk.js';
import type { Json } from './jsonrpc.js';
import { isListMember, LEFT_OUT } from './odd-items.js';

/** What was done to a message: the texts that were mended, and the items or members that were left out. */
export type Mending = { readonly replaced: readonly Path[]; readonly leftOut: readonly Path[] };

/** The outcome of reading a message of an upstream. `mended` is set if its text is not the one that arrived. */
export type UpstreamReading = ReadOutcome & { readonly mended?: Mending };

type Read = (source: Uint8Array | string) => ReadOutcome | Promise<ReadOutcome>;

/** Reads a message of an upstream, and mends it where half of a surrogate pair alone keeps it from being read. */
export function readMended(
  source: Uint8Array | string,
  read: (source: Uint8Array | string) => ReadOutcome,
): UpstreamReading;
export function readMended(source: Uint8Array | string, read: Read): UpstreamReading | Promise<UpstreamReading>;
export function readMended(source: Uint8Array | string, read: Read): UpstreamReading | Promise<UpstreamReading> {
  return after(read(source), (reading) => mendReading(source, reading, read));
}

function mendReading(
  source: Uint8Array | string,
  reading: ReadOutcome,
  read: Read,
): UpstreamReading | Promise<UpstreamReading> {
  if (reading.ok) return reading;
  const unmarked = withoutMark(source);
  if (unmarked !== undefined) return after(readMended(unmarked, read), reduced);
  if (reading.error !== 'lone-surrogate') return reading;
  const text = reading.rest ?? (typeof source === 'string' ? source : decodeUtf8(source));
  const mended = text === undefined ? undefined : mendLoneSurrogates(text);
  if (mended === undefined) return reading;
  return after(read(mended.text), (again) => (again.ok ? { ...again, mended } : again));
}

/** Some runtimes write it before a body; a reader may ignore it there (RFC 8259 §8.1). */
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

/** The body behind its one mark, if it has one. */
function withoutMark(source: Uint8Array | string): Uint8Array | undefined {
  if (typeof source === 'string' || !isMarked(source)) return undefined;
  const rest = source.subarray(BYTE_ORDER_MARK.length);
  return isMarked(rest) ? undefined : rest;
}

function isMarked(bytes: Uint8Array): boolean {
  return BYTE_ORDER_MARK.every((byte, at) => bytes[at] === byte);
}

/** What is forwarded has no mark, whatever a client makes of one. */
function reduced(reading: UpstreamReading): UpstreamReading {
  return reading.ok ? { ...reading, isReduced: true } : reading;
}

/** Something to leave out: the member that begins at `start`, or else the element with this index. */
type Target = { readonly path: Path; readonly start: number | undefined };

type Edits = ReturnType<typeof removalsAt>;

/** What is left out is looked up in the text, container by container, so its number is bounded. */
const MAX_TARGETS = 256;
const MAX_HOLDERS = 16;

/** The mended text; undefined where the envelope is hit, or where the text is not JSON for another reason. */
export function mendLoneSurrogates(text: string): (Mending & { readonly text: string }) | undefined {
  const { text: complete, positions } = replaceLoneSurrogates(text);
  const places = isJson(complete) ? placesOf(complete, positions) : undefined;
  if (places === undefined) return undefined;
  const costs = costsOf(places);
  if (costs === undefined) return undefined;
  const leftOut = withoutNested(costs.targets);
  const edits = editsOf(complete, leftOut);
  if (edits === undefined) return undefined;
  return {
    text: applyEdits(complete, edits),
    replaced: costs.replaced.filter((path) => !leftOut.some((one) => isWithin(path, one.path))),
    leftOut: leftOut.map(({ path }) => path),
  };
}

type Costs = { readonly replaced: readonly Path[]; readonly targets: readonly Target[] };

/** What is mended and what is left out; undefined where the message cannot be kept. */
function costsOf(places: readonly Place[]): Costs | undefined {
  const replaced: Path[] = [];
  const targets = new Map<string, Target>();
  for (const { path, isName, memberStart } of places) {
    const cost = isName ? costOfName(path) : costOfText(path);
    if (cost === 'message') return undefined;
    if (cost === 'text') {
      replaced.push(path);
      continue;
    }
    const start = cost.length === path.length ? memberStart : undefined;
    targets.set(JSON.stringify([cost, start]), { path: cost, start });
  }
  return targets.size > MAX_TARGETS ? undefined : { replaced, targets: [...targets.values()] };
}

/** A name or string that holds one of the positions. `memberStart`: where the last member before its end begins. */
type Place = { readonly path: Path; readonly isName: boolean; readonly memberStart: number };

function placesOf(text: string, positions: readonly number[]): readonly Place[] | undefined {
  const places: Place[] = [];
  let next = 0;
  let memberStart = 0;
  const end = walkJson(text, { maxDepth: MAX_JSON_DEPTH, maxStrings: Infinity }, (leaf) => {
    const isName = leaf.kind === 'name';
    if (isName) memberStart = leaf.start;
    const first = next;
    while ((positions[next] ?? Infinity) < leaf.end) next++;
    if (next > first) places.push({ path: [...leaf.steps], isName, memberStart });
  });
  return end === 'done' ? places : undefined;
}

/** Members of the envelope, and ids that a client or the gateway goes by. */
const ENVELOPE =
  /^(?:jsonrpc|id|method|params\/(?:uri|url|progressToken|requestId|taskId|elicitationId)|result\/(?:taskId|requestState|task\/taskId))$/;
const CURSOR = /^result\/nextCursor$/;
/** An item of a list, and the members that name it. */
const LISTED = /^result\/(?:tools|prompts|resources|resourceTemplates|tasks)\/\d+\//;
const LISTED_NAME =
  /^result\/(?:(?:tools|prompts)\/\d+\/name|resources\/\d+\/uri|resourceTemplates\/\d+\/uriTemplate|tasks\/\d+\/taskId)$/;
/** An item of content, or a message, with the URI or id of a block. */
const BLOCK_NAME =
  /^(?:result\/(?:content|contents|messages)|params\/messages)\/\d+\/(?:content\/(?:\d+\/)?)?(?:resource\/)?(?:uri|id|toolUseId)$/;
const STEPS_OF_ITEM = 3;

/** What half of a pair in a string costs. */
function costOfText(path: Path): 'text' | 'message' | Path {
  const place = path.join('/');
  if (ENVELOPE.test(place)) return 'message';
  if (CURSOR.test(place)) return path;
  if (LISTED_NAME.test(place) || BLOCK_NAME.test(place)) return path.slice(0, STEPS_OF_ITEM);
  return 'text';
}

/** What it costs in the name of a member: the member, or the definition that would not be the same without it. */
function costOfName(path: Path): Path {
  return LISTED.test(path.join('/')) ? path.slice(0, STEPS_OF_ITEM) : path;
}

/** Whether a path is another one or leads on from it. */
function isWithin(path: Path, outer: Path): boolean {
  return path.length >= outer.length && outer.every((step, at) => step === path[at]);
}

function withoutNested(targets: readonly Target[]): readonly Target[] {
  const isNested = ({ path }: Target): boolean =>
    targets.some((outer) => outer.path.length < path.length && isWithin(path, outer.path));
  return targets.filter((target) => !isNested(target));
}

function editsOf(text: string, targets: readonly Target[]): Edits | undefined {
  const holders = new Map<string, Target[]>();
  for (const target of targets) {
    const holder = JSON.stringify(target.path.slice(0, -1));
    const group = holders.get(holder);
    if (group === undefined) holders.set(holder, [target]);
    else group.push(target);
  }
  if (holders.size > MAX_HOLDERS) return undefined;
  const edits: Edits[number][] = [];
  for (const group of holders.values()) {
    const holder = group[0]?.path.slice(0, -1) ?? [];
    const span = spanOf(text, holder);
    if (span === undefined) return undefined;
    if (isList(holder)) {
      edits.push(...replacements(elementSpans(text, span), group));
      continue;
    }
    const starts = new Set(group.map(({ start }) => start));
    const indices = new Set(group.flatMap(({ start, path }) => (start === undefined ? [path.at(-1)] : [])));
    edits.push(...removalsAt(text, span, (start, index) => starts.has(start) || indices.has(index)));
  }
  return edits.sort((one, other) => one.start - other.start);
}

/** Whether the elements at a path are the items of a list, of which each is named where it is left out. */
function isList(path: Path): boolean {
  const [holder, member] = path;
  return path.length === STEPS_OF_ITEM - 1 && holder === 'result' && isListMember(String(member));
}

function replacements(items: readonly Span[], targets: readonly Target[]): Edits {
  const text = JSON.stringify(LEFT_OUT['lone-surrogate']);
  return targets.flatMap(({ path }) => {
    const span = items[Number(path.at(-1))];
    return span === undefined ? [] : [{ ...span, text }];
  });
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text) as Json;
    return true;
  } catch {
    return false;
  }
}
