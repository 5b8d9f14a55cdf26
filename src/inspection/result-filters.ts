// Filters the results that depend on their caller. From a page of a list, hidden items, names that occur twice, items and
// cursors that clients cannot read, icons from elsewhere and shared cache scopes are removed by span; everything else stays
// byte for byte, so that an approved definition reaches the client as it was reviewed. `isVisible` decides who may see
// what, and filtered pages are cached. From the results of `initialize` and `server/discover`, everything is removed but
// supported capabilities, versions that the gateway enforces policy for, and approved instructions.
// Source: MCP tools/list, prompts/list, resources/list, resources/templates/list; MCP 2025-11-25, lifecycle; MCP
// 2026-07-28, server/discover; docs/reference/definitions.md; docs/reference/responses.md.

import type { SchemaEdit } from '../policy/narrowed-schema.js';
import type { Finding } from '../policy/record.js';
import type { FindShapeError } from '../protocol/definition-shape.js';
import {
  applyEdits,
  elementSpans,
  type IsEqual,
  matchesMessage,
  piecesAtId,
  removeMember,
  type SplitMessage,
  setMember,
  setPrivate,
  spanOf,
  splitAtId,
} from '../protocol/json/json.js';
import { isObject, type Json, type JsonObject, type RequestId } from '../protocol/jsonrpc.js';
import { LISTS, type ListKind } from '../protocol/methods.js';
import { causeOfLeftOut, describeOddCursor } from '../protocol/odd-items.js';
import type { Bytes, Pieces } from '../protocol/transport.js';
import { servedVersion } from '../protocol/versions/revisions.js';
import { BoundedMap } from '../state/bounds.js';
import { clauseName, kindOf } from '../text/clause.js';
import { stepsOf } from '../text/json-members.js';
import type { Span } from '../text/span.js';
import { valueAt } from './exempt-members.js';
import { createFindingLog, type Profile } from './findings.js';
import { hasOddIcons, withoutOddIconsIn } from './icons.js';
import type { InspectionInput, InspectionOutcome, WithholdReason } from './responses.js';

export type ListItem = { readonly name: string; readonly digest: string | undefined };

export type ListInput = {
  readonly text: string;
  readonly value: Json;
  readonly kind: ListKind;
  /** Whether the page says for how long and for whom it may be cached. */
  readonly hasCacheHints: boolean;
  readonly profile: Profile;
  /** Upper bound of `ttlMs` in the response, in milliseconds. */
  readonly listTtlMs: number;
  /** True where the visible items were reviewed byte for byte. Otherwise they are inspected like results. */
  readonly isReviewed: boolean;
  /** Digest of an item's original bytes. An item without a digest never matches a pin. */
  digestOf(item: JsonObject, itemText: string): string | undefined;
  isVisible(item: ListItem): boolean;
  /** What keeps clients from reading a list with this item in it: it is left out, and a finding names the place. */
  readonly findShapeError: FindShapeError;
  /** What of a visible definition is shown otherwise to this caller. */
  editsOf?(definition: JsonObject): readonly SchemaEdit[];
  /** Cuts what this caller may not be given out of the page, before it is inspected. */
  reduce?(text: string): { readonly text: string; readonly findings: readonly Finding[] };
  /** Position of an item in the first listing. Items without a position are sorted to the end. */
  rankOf?(name: string): number | undefined;
};

type WithheldResponse = {
  readonly kind: 'withhold';
  readonly reason: WithholdReason | 'upstream-protocol';
  readonly findings: readonly Finding[];
  /** One clause for the operator that says what was wrong. */
  readonly detail?: string | undefined;
};

const NO_FINDINGS: readonly Finding[] = Object.freeze([]);

function notOfTheProtocol(detail: string): WithheldResponse {
  return { kind: 'withhold', reason: 'upstream-protocol', findings: NO_FINDINGS, detail };
}

export type ListOutcome =
  | {
      readonly kind: 'listed';
      /** Equal to the input where nothing had to be removed. */
      readonly text: string;
      readonly advertised: number;
      readonly visible: number;
      /** Every readable item of the page, including hidden ones and duplicates. */
      readonly items: readonly ListItem[];
      readonly findings: readonly Finding[];
      /** One clause for each item that is no definition, or whose name is given twice. */
      readonly odd: readonly string[];
    }
  | WithheldResponse;

type Candidate = {
  readonly value: JsonObject;
  /** In the list as the upstream sent it. */
  readonly index: number;
  readonly span: Span;
  readonly item: ListItem;
};

/** A page reduced to its visible items, with the text that still has to be inspected. */
type FilteredPage = {
  readonly kind: 'filtered';
  readonly inspectionInput: InspectionInput;
  readonly advertised: number;
  readonly visible: number;
  readonly items: readonly ListItem[];
  /** Items that the caller could be shown and clients could not read, and what was cut out of the page. */
  readonly leftOut: readonly Finding[];
  /** One clause for each item that is no definition, or whose name is given twice. */
  readonly odd: readonly string[];
};

/** Combines a filtered page with the outcome of its inspection. */
export function completeList(page: FilteredPage, inspected: InspectionOutcome): ListOutcome {
  if (inspected.kind === 'withhold') return inspected;
  const { inspectionInput, advertised, visible, items, leftOut, odd } = page;
  const text = inspected.kind === 'changed' ? inspected.text : inspectionInput.text;
  const findings = [...leftOut, ...inspected.findings];
  return { kind: 'listed', text, advertised, visible, items, findings, odd };
}

/** Filters one page, uninspected. `upstream-protocol` where the result is no list of that kind. */
export function filterItems(input: ListInput): FilteredPage | WithheldResponse {
  const { text, value, kind } = input;
  const { member } = LISTS[kind];
  const result = valueAt(value, ['result']);
  const list = isObject(result) ? result[member] : undefined;
  const span = spanOf(text, ['result', member]);
  if (!isObject(result) || !Array.isArray(list) || span === undefined) {
    return notOfTheProtocol(`${member}: expected array, got ${kindOf(list)}`);
  }
  const spans = elementSpans(text, span);
  const odd: string[] = [];
  const candidates = readItems(input, list, spans, odd);
  const single = withoutRepetitions(candidates, input, odd);
  const offered = single.filter(({ item }) => input.isVisible(item));
  const { visible, leftOut } = withoutUnreadable(offered, input);
  const kept = sortByRank(visible, input);
  let filtered = writeShown(text, span, kept, input, kept === visible ? spans.length : undefined);
  if (input.hasCacheHints) filtered = setPrivate(filtered, result, input.listTtlMs);
  const oddCursor = describeOddCursor(result);
  if (oddCursor !== undefined) {
    odd.push(`${member}: ${oddCursor}`);
    filtered = removeMember(filtered, ['result'], 'nextCursor');
  }
  const reduced = input.reduce?.(filtered) ?? { text: filtered, findings: NO_FINDINGS };
  return {
    kind: 'filtered',
    inspectionInput: inspectionInputOf(input, reduced.text),
    advertised: spans.length,
    visible: kept.length,
    items: candidates.map(({ item }) => item),
    leftOut: [...leftOut, ...reduced.findings],
    odd,
  };
}

/**
 * Leaves out what clients cannot read: the official SDKs check a list as a whole, so that one such item costs the caller
 * all others.
 */
function withoutUnreadable(
  offered: readonly Candidate[],
  { kind, findShapeError }: Pick<ListInput, 'kind' | 'findShapeError'>,
): { readonly visible: readonly Candidate[]; readonly leftOut: readonly Finding[] } {
  const log = createFindingLog('to-client');
  const visible = offered.filter(({ value, index }) => {
    const error = findShapeError(kind, value);
    if (error === undefined) return true;
    const steps = ['result', LISTS[kind].member, index, ...placeOf(error.pointer)];
    log.add(steps, { detector: 'definition', action: 'drop', count: 1 });
    return false;
  });
  if (visible.length === offered.length) return { visible: offered, leftOut: NOTHING_FOUND };
  return { visible, leftOut: log.list() };
}

/** The place in the definition, without names that the upstream chose. */
function placeOf(pointer: string): readonly (string | number)[] {
  const steps = stepsOf(pointer);
  return steps.map((step, at) => (steps[at - 1] === 'properties' ? '*' : step));
}

const NOTHING_FOUND: readonly Finding[] = Object.freeze([]);

/** Reads the items; what is no definition is named in `odd`. */
function readItems(input: ListInput, list: readonly Json[], spans: readonly Span[], odd: string[]): Candidate[] {
  const { name: member, member: listName } = LISTS[input.kind];
  const candidates: Candidate[] = [];
  for (const [index, value] of list.entries()) {
    const span = spans[index];
    const name = isObject(value) ? value[member] : undefined;
    if (span === undefined || !isObject(value) || typeof name !== 'string' || name === '') {
      odd.push(`${listName}/${index}: ${causeOfLeftOut(value) ?? `no ${member}`}`);
      continue;
    }
    const digest = input.digestOf(value, input.text.slice(span.start, span.end));
    candidates.push({ value, index, span, item: { name, digest } });
  }
  return candidates;
}

/** An identical item given twice counts once; of items that differ under one name none is shown. */
function withoutRepetitions(
  candidates: readonly Candidate[],
  { text, kind }: ListInput,
  odd: string[],
): readonly Candidate[] {
  const firsts = new Map<string, Candidate>();
  const ambiguous = new Set<string>();
  const textOf = ({ span }: Candidate): string => text.slice(span.start, span.end);
  for (const candidate of candidates) {
    const { name } = candidate.item;
    const first = firsts.get(name);
    if (first === undefined) firsts.set(name, candidate);
    else if (textOf(first) !== textOf(candidate)) ambiguous.add(name);
  }
  if (firsts.size === candidates.length) return candidates;
  for (const name of ambiguous)
    odd.push(`${LISTS[kind].member}: ${clauseName(name)} is given twice with different definitions`);
  return [...firsts.values()].filter(({ item }) => !ambiguous.has(item.name));
}

/** The items in the order of the first listing. Returns the same array where the page already has that order. */
function sortByRank(items: readonly Candidate[], { rankOf }: ListInput): readonly Candidate[] {
  if (rankOf === undefined) return items;
  const ranks = items.map(({ item }) => rankOf(item.name) ?? Number.MAX_SAFE_INTEGER);
  if (ranks.every((rank, at) => at === 0 || (ranks[at - 1] ?? 0) <= rank)) return items;
  const order = new Map(items.map((each, at) => [each, ranks[at] ?? 0]));
  return [...items].sort((a, b) => (order.get(a) ?? 0) - (order.get(b) ?? 0));
}

/**
 * The text with only the kept elements in the array, each as the caller is shown it. Returns the same text where all
 * elements stay as they are.
 */
function writeShown(
  text: string,
  array: Span,
  kept: readonly Candidate[],
  { editsOf }: Pick<ListInput, 'editsOf'>,
  total: number | undefined,
): string {
  let isChanged = kept.length !== total;
  const elements = kept.map(({ value, span }) => {
    const element = text.slice(span.start, span.end);
    const edits = editsOf?.(value) ?? [];
    const hasIcons = hasOddIcons(value);
    if (!hasIcons && edits.length === 0) return element;
    isChanged = true;
    return narrowed(hasIcons ? withoutOddIconsIn(element) : element, edits);
  });
  if (!isChanged) return text;
  return applyEdits(text, [{ ...array, text: `[${elements.join(',')}]` }]);
}

function narrowed(element: string, edits: readonly SchemaEdit[]): string {
  return edits.reduce(
    (shown, { path, keyword, value }) =>
      value === undefined ? removeMember(shown, path, keyword) : setMember(shown, path, keyword, value),
    element,
  );
}

function inspectionInputOf({ kind, isReviewed, profile }: ListInput, text: string): InspectionInput {
  const { method, member } = LISTS[kind];
  let value: Json | undefined;
  return {
    text,
    // Parsed on first use only: a large text is inspected on another thread, which parses it there.
    get value() {
      value ??= JSON.parse(text) as Json;
      return value;
    },
    profile,
    approved: isReviewed ? [`/result/${member}`] : [],
    requestMethod: method,
  };
}

/** A filtered page as it was rendered for one policy key. */
type CachedFilteredPage = {
  readonly advertised: number;
  readonly visible: number;
  readonly findings: readonly Finding[];
  /** The bytes to send, with this JSON-RPC id. */
  render(id: RequestId): Pieces;
};

export interface CachedPage {
  readonly items: readonly ListItem[];
  filtered(policyKey: string): CachedFilteredPage | undefined;
  /** Keeps the filtered text of this page. The text must contain the id that the page arrived with. */
  keepFiltered(
    policyKey: string,
    text: string,
    facts: Pick<CachedFilteredPage, 'advertised' | 'visible' | 'findings'>,
  ): void;
}

export interface PageCache {
  /** The page kept under the key, if these bytes equal its bytes except for the id. */
  find(key: string, bytes: Bytes, id: RequestId): CachedPage | undefined;
  /** Keeps a page; undefined where its id has an unusual spelling that could not be recognized again. */
  keep(
    key: string,
    page: { readonly bytes: Uint8Array; readonly text: string; readonly id: RequestId },
    items: readonly ListItem[],
  ): CachedPage | undefined;
}

type PageCacheOptions = {
  readonly maxPages: number;
  /** For pages and forms together. The least recently used go first; a larger page is not kept. */
  readonly maxBytes: number;
  /** Maximum number of filtered forms of one page. */
  readonly maxFilteredPages: number;
  readonly isEqual: IsEqual;
};

type CacheEntry = { readonly halves: SplitMessage; readonly page: CachedPage };

/**
 * Caches pages and drops the least recently used. A page that only differs in its JSON-RPC id keeps its digests
 * and one filtered form for each policy key.
 * INVARIANT: a key names everything that its value depends on: upstream, era and cursor for a page; policy, pins
 * and principal for a filtered form.
 * Source: docs/reference/responses.md; MCP 2026-07-28, caching.
 */
export function createPageCache(options: PageCacheOptions): PageCache {
  const pages = new BoundedMap<string, CacheEntry>(options.maxPages, options.maxBytes);
  return {
    find(key, bytes, id) {
      const kept = pages.get(key);
      if (kept === undefined || !matchesMessage(kept.halves, bytes, id, options.isEqual)) return undefined;
      pages.use(key);
      return kept.page;
    },
    keep(key, { bytes, text, id }, items) {
      const halves = splitAtId(text, id);
      pages.delete(key);
      if (halves === undefined || !matchesMessage(halves, bytes, id, options.isEqual)) return undefined;
      const page = createPage(items, id, options.maxFilteredPages, (formBytes) => {
        if (pages.get(key) === kept) pages.set(key, kept, bytes.byteLength + formBytes);
      });
      const kept: CacheEntry = { halves, page };
      pages.set(key, kept, bytes.byteLength);
      return page;
    },
  };
}

/** `onForms` is called with the bytes of all filtered forms. */
function createPage(
  items: readonly ListItem[],
  id: RequestId,
  maxForms: number,
  onForms: (bytes: number) => void,
): CachedPage {
  const forms = new BoundedMap<string, CachedFilteredPage>(maxForms);
  return {
    items,
    filtered: (policyKey) => forms.get(policyKey),
    keepFiltered(policyKey, text, facts) {
      const halves = splitAtId(text, id);
      if (halves === undefined) return;
      const bytes = halves.head.byteLength + halves.tail.byteLength;
      forms.set(policyKey, { ...facts, render: (other) => piecesAtId(halves, other) }, bytes);
      onForms(forms.weight);
    },
  };
}

export type HandshakeInput = {
  readonly text: string;
  readonly value: Json;
  readonly method: 'initialize' | 'server/discover';
  readonly profile: Profile;
  /** Versions of this era that both the gateway and the upstream support. */
  readonly carriedVersions: readonly string[];
  /** The approved text. Undefined where none was approved or where the caller may list nothing. */
  readonly instructions: string | undefined;
  readonly listTtlMs: number;
  /** The capability filter of the era (protocol/capabilities.ts). */
  filterCapabilities(capabilities: JsonObject): JsonObject;
  /** As of a list. */
  readonly reduce?: ListInput['reduce'];
};

export type HandshakeOutcome =
  | {
      readonly kind: 'passed';
      /** Equal to the input where nothing had to change. */
      readonly text: string;
      readonly findings: readonly Finding[];
      /** True where instructions other than the approved ones arrived and were removed. */
      readonly hadOtherInstructions: boolean;
    }
  | WithheldResponse;

/** A response reduced to what is carried, with the text that still has to be inspected. */
type FilteredHandshake = {
  readonly kind: 'filtered';
  readonly inspectionInput: InspectionInput;
  readonly cut: readonly Finding[];
  readonly hadOtherInstructions: boolean;
};

/** Combines a filtered handshake with the outcome of its inspection. */
export function completeHandshake(
  { inspectionInput, cut, hadOtherInstructions }: FilteredHandshake,
  inspected: InspectionOutcome,
): HandshakeOutcome {
  if (inspected.kind === 'withhold') return inspected;
  const text = inspected.kind === 'changed' ? inspected.text : inspectionInput.text;
  const findings = [...cut, ...inspected.findings];
  return { kind: 'passed', text, findings, hadOtherInstructions };
}

/** Filters a handshake response, uninspected. `upstream-protocol` where it names no carried version. */
export function reduceHandshake(input: HandshakeInput): FilteredHandshake | WithheldResponse {
  const result = valueAt(input.value, ['result']);
  const text = isObject(result) ? withCarriedVersions(input, result) : undefined;
  if (!isObject(result) || text === undefined) {
    return notOfTheProtocol(describeHandshake(input, result));
  }
  // Null is absence, and is cut with the other nulls.
  const instructions = result['instructions'] ?? undefined;
  const isApproved = instructions !== undefined && instructions === input.instructions;
  let filtered = filterMembers(input, text, result);
  if (instructions !== undefined && !isApproved) {
    filtered = removeMember(filtered, ['result'], 'instructions');
  }
  const { text: reduced, findings } = input.reduce?.(filtered) ?? {
    text: filtered,
    findings: NO_FINDINGS,
  };
  const inspectionInput = {
    text: reduced,
    value: JSON.parse(reduced),
    profile: input.profile,
    approved: isApproved ? ['/result/instructions'] : [],
    requestMethod: input.method,
  };
  return {
    kind: 'filtered',
    inspectionInput,
    cut: findings,
    hadOtherInstructions: instructions !== undefined && !isApproved,
  };
}

/** Why a handshake cannot be served: its version, or what came in its place. */
function describeHandshake({ method }: HandshakeInput, result: Json | undefined): string {
  const member = method === 'initialize' ? 'protocolVersion' : 'supportedVersions';
  const value = isObject(result) ? result[member] : undefined;
  const isExpected = method === 'initialize' ? typeof value === 'string' : Array.isArray(value);
  return isExpected
    ? `${member}: ${clauseName(String(value))} is not supported here`
    : `${member}: got ${kindOf(value)}`;
}

/** The text reduced to carried versions, or undefined where none is left. */
function withCarriedVersions(input: HandshakeInput, result: JsonObject): string | undefined {
  const { text, method, carriedVersions } = input;
  if (method === 'initialize') {
    const version = result['protocolVersion'];
    if (typeof version !== 'string') return undefined;
    const served = servedVersion(version, carriedVersions);
    if (served === undefined || served === version) return served && text;
    return setMember(text, ['result'], 'protocolVersion', served);
  }
  const versions = result['supportedVersions'];
  if (!Array.isArray(versions)) return undefined;
  const carried = versions.filter(
    (version: Json): version is string => typeof version === 'string' && carriedVersions.includes(version),
  );
  if (carried.length === 0) return undefined;
  if (carried.length === versions.length) return text;
  return setMember(text, ['result'], 'supportedVersions', carried);
}

function filterMembers(input: HandshakeInput, text: string, result: JsonObject): string {
  let filtered = text;
  const capabilities = isObject(result['capabilities']) ? result['capabilities'] : {};
  const kept = input.filterCapabilities(capabilities);
  if (JSON.stringify(kept) !== JSON.stringify(result['capabilities'])) {
    filtered = setMember(filtered, ['result'], 'capabilities', kept);
  }
  if (input.method === 'server/discover') filtered = setPrivate(filtered, result, input.listTtlMs);
  for (const path of SERVER_INFO_PATHS) {
    const holder = valueAt(result, path.slice(1));
    if (!isObject(holder) || !hasOddIcons(holder)) continue;
    const span = spanOf(filtered, path);
    if (span === undefined) continue;
    const left = withoutOddIconsIn(filtered.slice(span.start, span.end));
    filtered = applyEdits(filtered, [{ ...span, text: left }]);
  }
  return filtered;
}

const SERVER_INFO_PATHS: readonly (readonly string[])[] = [
  ['result', 'serverInfo'],
  ['result', '_meta', 'io.modelcontextprotocol/serverInfo'],
];
