// Lists an upstream as a client of one era: its self-description, then every page of its lists, then the `ui://`
// resources that its tools refer to. Answers no server requests, holds no caller's rights. The kinds of lists are
// independent: one that fails is named and the others are returned; an item that is no definition is named and left
// out. A list itself is returned whole or not at all.
// In the session era it declares every capability that a client could be allowed to declare, because servers
// choose which tools to offer by it, and what is not listed could never be approved (docs/reference/definitions.md).
// For the same reason it declares the Apps extension, in either era, where clients may declare it. MCP 2025-11-25
// lifecycle; MCP 2026-07-28 server/discover; MCP 2025-11-25 and 2026-07-28, pagination; MCP Apps extension (SEP-1865),
// `_meta.ui.resourceUri`.

import { APPS_CAPABILITIES } from '../../protocol/capabilities.js';
import { runInTurns } from '../../protocol/json/incremental.js';
import { elementSpans, hasInexactNumber, spanOf } from '../../protocol/json/json.js';
import { isObject, type Json, type JsonObject } from '../../protocol/jsonrpc.js';
import { LISTS, type ListedItem, type Listing, type UnavailableKind } from '../../protocol/methods.js';
import { causeOfLeftOut, describeOddCursor } from '../../protocol/odd-items.js';
import { HEADER_MISMATCH, METHOD_NOT_FOUND, MISSING_CAPABILITY } from '../../protocol/responses.js';
import { afterPing, readUpstreamStatus } from '../../protocol/upstream-status.js';
import { LATEST_SESSION_VERSION, STATELESS_VERSIONS } from '../../protocol/versions/revisions.js';
import { SESSION } from '../../protocol/versions/session.js';
import { STATELESS } from '../../protocol/versions/stateless.js';
import { clauseName, kindOf } from '../../text/clause.js';
import {
  type ExchangeBudget,
  type ExchangeError,
  type ExchangeOutcome,
  type ExchangePorts,
  endSession,
  errorSeenBy,
  exchange,
  expected,
  openSession,
  pingSession,
  type ServerSession,
  sessionHeaders,
  statelessCall,
} from '../exchange.js';
import { DIRECT_MESSAGE_READER, type MessageReader } from '../response-messages.js';
import type { ListingCaps } from './caps.js';

/** `not-spoken`: the upstream responded and does not speak this era. */
export type EraOutcome =
  | { readonly kind: 'listed'; readonly listing: Listing }
  /** `detail`: one clause that says what it answered instead, for the case that it speaks no era. */
  | { readonly kind: 'not-spoken'; readonly detail?: string | undefined }
  /** `isSpoken`: the upstream showed that it speaks this era before it failed. */
  | {
      readonly kind: 'failed';
      readonly why: ExchangeError;
      readonly isSpoken: boolean;
      readonly detail?: string | undefined;
    };

export type EraPorts = ExchangePorts & {
  readonly caps: ListingCaps;
  /** Time limit for a complete listing, over all its requests. */
  readonly listingTimeoutMs: number;
  /** Sent to upstreams in `clientInfo`. */
  readonly gatewayVersion: string;
  /** Session-era versions, oldest first; the newest is requested. */
  readonly sessionVersions: readonly string[];
  /** Whether the Apps extension is declared. */
  readonly apps: boolean;
  /** The lists that did not answer in the listing before: not waited for as long. */
  readonly silentKinds?: Set<string> | undefined;
  /** Precomputes, in slices, what is expensive about a complete listing. */
  readonly prepare?: ((listing: Listing) => Promise<void>) | undefined;
};

/** A session of the gateway's own, kept between listings. */
export type ListingSession = {
  readonly id: string | undefined;
  readonly version: string;
  readonly openedAtMs: number;
  readonly capabilities: JsonObject;
  readonly serverInfo: JsonObject | undefined;
  readonly instructions: string | undefined;
};

/** A response in an era that the upstream speaks, but in violation of its rules. */
function protocolFailure(detail: string): Extract<EraOutcome, { readonly kind: 'failed' }> {
  return { kind: 'failed', why: 'protocol', isSpoken: true, detail };
}

/** Everything that policies can grant. No server request is answered: a listing opens no stream for them. */
const SERVER_REQUEST_CAPABILITIES: JsonObject = {
  sampling: {},
  elicitation: { form: {}, url: {} },
  roots: { listChanged: true },
};

/** Maximum age of a session; a new one shows changed instructions and capabilities. Milliseconds. */
const MAX_SESSION_AGE_MS = 600_000;

/** Statuses from `SERVER_ERROR` on, and `TROUBLE_STATUSES`, indicate a server problem, not an unknown era. */
const SERVER_ERROR = 500;
const TROUBLE_STATUSES = new Set([408, 425, 429]);
/** MCP 2026-07-28: header and body disagree, or a capability is missing. Sent only in that era. */
const STATELESS_CODES = new Set([HEADER_MISMATCH, MISSING_CAPABILITY]);

function budgetOf(ports: EraPorts): ExchangeBudget {
  return { bytesLeft: ports.caps.maxBytes, deadlineMs: ports.now() + ports.listingTimeoutMs };
}

function clientInfo(ports: EraPorts): JsonObject {
  return { name: 'sallyport', version: ports.gatewayVersion };
}

/** Lists in the stateless era: `server/discover`, then the pages. */
export async function listStateless(ports: EraPorts, isKnown: boolean): Promise<EraOutcome> {
  const verifiedAtMs = ports.now();
  const budget = budgetOf(ports);
  const declared = { capabilities: ports.apps ? APPS_CAPABILITIES : {}, clientInfo: clientInfo(ports) };
  const sendQuery = (method: string, params: JsonObject, waitMs?: number): Promise<ExchangeOutcome> =>
    exchange(waiting(ports, waitMs), statelessCall(method, params, declared), budget);
  const discovered = await sendQuery('server/discover', {});
  if (discovered.kind !== 'result') return probeFailureOf(discovered, isKnown);
  const { result } = discovered;
  const versions = supportedVersionsIn(result['supportedVersions']);
  const capabilities = result['capabilities'];
  if (versions.length === 0) return { kind: 'not-spoken', detail: describeVersions(result['supportedVersions']) };
  if (!isObject(capabilities)) return { kind: 'not-spoken', detail: expected('capabilities', 'object', capabilities) };
  const instructions = readInstructions(result);
  if (typeof instructions === 'object') return protocolFailure(instructions.malformed);
  const read = await readLists(capabilities, ports, sendQuery);
  if (read.kind !== 'lists') return readFailureOf(read);
  const meta = result['_meta'];
  const serverInfo = isObject(meta) ? meta['io.modelcontextprotocol/serverInfo'] : undefined;
  const listing: Listing = {
    era: STATELESS.listedEra,
    apps: ports.apps,
    verifiedAtMs,
    ...read.lists,
    ...read.notes,
    instructions,
    capabilities,
    serverInfo: isObject(serverInfo) ? serverInfo : undefined,
    protocolVersions: versions,
  };
  await ports.prepare?.(listing);
  return { kind: 'listed', listing };
}

function supportedVersionsIn(offered: Json | undefined): readonly string[] {
  if (!Array.isArray(offered)) return [];
  return STATELESS_VERSIONS.filter((version) => offered.includes(version));
}

function describeVersions(offered: Json | undefined): string {
  if (!Array.isArray(offered)) return expected('supportedVersions', 'array', offered);
  const named = offered.slice(0, MAX_NAMED_VERSIONS).map((one) => clauseName(String(one)));
  return `supportedVersions: ${named.join(', ')} are not supported here`;
}

const MAX_NAMED_VERSIONS = 4;

type SessionListing = {
  readonly outcome: EraOutcome;
  /** The session to keep for the next listing; undefined after a failure. */
  readonly session: ListingSession | undefined;
};

/** Lists in the session era, in the kept session or in a new one. */
export async function listSession(
  ports: EraPorts,
  previousSession: ListingSession | undefined,
  isKnown: boolean,
): Promise<SessionListing> {
  if (previousSession !== undefined && ports.now() - previousSession.openedAtMs < MAX_SESSION_AGE_MS) {
    const listed = await listInSession(ports, previousSession);
    if (listed !== 'session-lost') return keepOrEnd(ports, previousSession, listed);
  } else if (previousSession !== undefined) {
    await endListingSession(ports, previousSession);
  }
  const opened = await openListingSession(ports, isKnown);
  if (opened.kind !== 'opened') return { outcome: opened, session: undefined };
  const listed = await listInSession(ports, opened.session);
  const outcome = listed === 'session-lost' ? protocolFailure('the session was lost as soon as it was opened') : listed;
  return keepOrEnd(ports, opened.session, outcome);
}

async function keepOrEnd(ports: EraPorts, session: ListingSession, outcome: EraOutcome): Promise<SessionListing> {
  if (outcome.kind === 'listed') return { outcome, session };
  await endListingSession(ports, session);
  return { outcome, session: undefined };
}

async function listInSession(ports: EraPorts, session: ListingSession): Promise<EraOutcome | 'session-lost'> {
  const verifiedAtMs = ports.now();
  const budget = budgetOf(ports);
  const { version, id } = session;
  const headers = sessionHeaders(version, id);
  const sendQuery: DirectQuery = (method, params, waitMs) =>
    exchange(waiting(ports, waitMs), { protocol: SESSION, version, method, params, headers }, budget);
  const ping = (): Promise<boolean> => pingSession(ports, { version, headers }, budget);
  const sendInSession = id === undefined ? sendQuery : watchingSession(sendQuery, ping);
  const read = await readLists(session.capabilities, ports, sendInSession);
  if (read.kind === 'session-lost') return read.kind;
  if (read.kind === 'lists') {
    const { capabilities, serverInfo, instructions } = session;
    const handshake = { capabilities, serverInfo, instructions };
    const listing: Listing = {
      era: SESSION.listedEra,
      apps: ports.apps,
      verifiedAtMs,
      ...read.lists,
      ...read.notes,
      ...handshake,
      // A server responds with the newest version it speaks, up to the requested one.
      protocolVersions: ports.sessionVersions.filter((older) => older <= version),
    };
    await ports.prepare?.(listing);
    return { kind: 'listed', listing };
  }
  return readFailureOf(read);
}

/** Finds out whether a refusal means that the session is lost, by a ping where it may mean something else too. */
function watchingSession(sendQuery: DirectQuery, ping: () => Promise<boolean>): ListingQuery {
  return async (method, params, waitMs) => {
    const response = await sendQuery(method, params, waitMs);
    if (response.kind !== 'refused') return response;
    const reading = readUpstreamStatus(response.status, { error: errorSeenBy(response), namesSession: true });
    return (await afterPing(reading, ping)) === 'lost' ? { kind: 'session-lost' } : response;
  };
}

type Opened = { readonly kind: 'opened'; readonly session: ListingSession };

async function openListingSession(
  ports: EraPorts,
  isKnown: boolean,
): Promise<Opened | Exclude<EraOutcome, { readonly kind: 'listed' }>> {
  const openedAtMs = ports.now();
  const handshake = {
    version: ports.sessionVersions.at(-1) ?? LATEST_SESSION_VERSION,
    capabilities: { ...SERVER_REQUEST_CAPABILITIES, ...(ports.apps ? APPS_CAPABILITIES : {}) },
    clientInfo: clientInfo(ports),
  };
  const opened = await openSession(ports, handshake, ports.sessionVersions, budgetOf(ports));
  switch (opened.kind) {
    case 'unsupported':
      return { kind: 'not-spoken', detail: opened.detail };
    case 'malformed':
      return protocolFailure(opened.detail);
    case 'refused':
      return opened.isInitialized ? protocolFailure(opened.detail) : probeFailureOf(opened, isKnown);
    case 'failed':
      return opened.isInitialized ? { ...opened, isSpoken: true } : probeFailureOf(opened, isKnown);
    case 'opened':
      return readSession(ports, opened.session, openedAtMs);
  }
}

async function readSession(
  ports: EraPorts,
  { version, id, result }: ServerSession,
  openedAtMs: number,
): Promise<Opened | Exclude<EraOutcome, { readonly kind: 'listed' }>> {
  const { capabilities, serverInfo } = result as { [name: string]: Json | undefined };
  const instructions = readInstructions(result);
  if (typeof instructions === 'object') {
    await endListingSession(ports, { version, id });
    return protocolFailure(instructions.malformed);
  }
  const session = {
    ...{ id, version, openedAtMs, instructions },
    capabilities: isObject(capabilities) ? capabilities : {},
    serverInfo: isObject(serverInfo) ? serverInfo : undefined,
  };
  return { kind: 'opened', session };
}

/** Ends the gateway's own session. */
export function endListingSession(
  ports: EraPorts,
  { version, id }: Pick<ListingSession, 'version' | 'id'>,
): Promise<void> {
  return endSession(ports, sessionHeaders(version, id));
}

function readInstructions(result: JsonObject): string | { readonly malformed: string } | undefined {
  const instructions = result['instructions'];
  if (instructions === undefined || instructions === null || instructions === '') return undefined;
  return typeof instructions === 'string'
    ? instructions
    : { malformed: expected('instructions', 'string', instructions) };
}

/**
 * Interprets a failed probe. An era that was never spoken counts as not spoken, whatever the refusal. One
 * that was spoken is gone only if the upstream says so, not if it has a server problem.
 */
function probeFailureOf(
  response: Exclude<ExchangeOutcome, { readonly kind: 'result' }>,
  isKnown: boolean,
): Exclude<EraOutcome, { readonly kind: 'listed' }> {
  if (response.kind === 'failed') {
    if (response.why === 'protocol' && !isKnown) return { kind: 'not-spoken', detail: response.detail };
    return { ...response, isSpoken: false };
  }
  const { status, error, detail } = response;
  const isServerFailure =
    status >= SERVER_ERROR || TROUBLE_STATUSES.has(status) || STATELESS_CODES.has(error?.code ?? 0);
  return isServerFailure && isKnown ? protocolFailure(detail) : { kind: 'not-spoken', detail };
}

function readFailureOf(error: ListFailure | SessionLost): Extract<EraOutcome, { readonly kind: 'failed' }> {
  if (error.kind === 'session-lost') return protocolFailure('the session was lost');
  return { kind: 'failed', isSpoken: true, why: error.why, detail: error.detail };
}

/** The ports with this time limit for one request. */
function waiting(ports: EraPorts, waitMs: number | undefined): EraPorts {
  return waitMs === undefined || waitMs >= ports.requestTimeoutMs ? ports : { ...ports, requestTimeoutMs: waitMs };
}

type DirectQuery = (method: string, params: JsonObject, waitMs?: number) => Promise<ExchangeOutcome>;

type SessionLost = { readonly kind: 'session-lost' };

/** Sends one request of the listing. `waitMs`: at most this long, for a kind that did not answer before. */
type ListingQuery = (method: string, params: JsonObject, waitMs?: number) => Promise<ExchangeOutcome | SessionLost>;

/** Resources read per listing. Those beyond it are not read and therefore not pinned. */
const MAX_APP_RESOURCES = 200;
const APP_SCHEME = 'ui://';

/**
 * Reads every `ui://` resource that a tool names, once each, as `{uri, contents}`, in the order of the tools.
 * One that the upstream does not have is left out and named; where the upstream fails, those behind it are not read.
 */
async function readAppResources(
  tools: readonly ListedItem[],
  capabilities: JsonObject,
  sendQuery: ListingQuery,
): Promise<AppResources | SessionLost> {
  if (!isObject(capabilities['resources'])) return { ...NO_ITEMS, failure: undefined };
  const uris = new Set(tools.flatMap(({ definition }) => appResourceOf(definition) ?? []));
  return readEach([...uris].slice(0, MAX_APP_RESOURCES), sendQuery);
}

async function readEach(uris: readonly string[], sendQuery: ListingQuery): Promise<AppResources | SessionLost> {
  const items: ListedItem[] = [];
  const leftOut: string[] = [];
  for (const uri of uris) {
    const response = await sendQuery('resources/read', { uri });
    if (response.kind === 'session-lost') return response;
    if (response.kind === 'failed') return { kind: 'items', items, leftOut, failure: failureOf(response) };
    const item = response.kind === 'result' ? readItem(uri, response) : undefined;
    if (item !== undefined) items.push(item);
    else leftOut.push(`${clauseName(uri)}: ${describeUnread(response)}`);
  }
  return { kind: 'items', items, leftOut, failure: undefined };
}

function describeUnread(response: Extract<ExchangeOutcome, { kind: 'result' | 'refused' }>): string {
  return response.kind === 'result' ? 'no contents' : response.detail;
}

/** `failure`: why not all of them were read. */
type AppResources = Extract<ListOutcome, { readonly kind: 'items' }> & {
  readonly failure: ListFailure | undefined;
};

/** The `ui://` resource named by a tool's definition, in the current or the older member. */
function appResourceOf(definition: JsonObject): string | undefined {
  const meta = definition['_meta'];
  if (!isObject(meta)) return undefined;
  const ui = meta['ui'];
  const named: Json | undefined = isObject(ui) ? ui['resourceUri'] : meta['ui/resourceUri'];
  return typeof named === 'string' && named.startsWith(APP_SCHEME) ? named : undefined;
}

function readItem(
  uri: string,
  { result, text }: { readonly result: JsonObject; readonly text: string },
): ListedItem | undefined {
  const contents = result['contents'];
  const span = spanOf(text, ['result', 'contents']);
  if (contents === undefined || span === undefined) return undefined;
  return { definition: { uri, contents }, isExact: !hasInexactNumber(text, span) };
}

/** The lists that are read, with the capability that declares each. */
const CAPABILITIES = { tools: 'tools', prompts: 'prompts', templates: 'resources' } as const;

type ListName = keyof typeof CAPABILITIES;

type Lists = { readonly [name in ListName]: readonly ListedItem[] } & {
  /** The `ui://` resources that tools refer to. */
  readonly resources: readonly ListedItem[];
};

/** Why a list could not be read. `detail`: one clause that says what was wrong. */
type ListFailure = {
  readonly kind: 'failed';
  readonly why: ExchangeError;
  readonly detail: string | undefined;
};

/** What the operator has to know of lists that could be read only in part. */
type ListNotes = Pick<Listing, 'unavailable' | 'leftOut'>;

type ListsOutcome =
  | { readonly kind: 'lists'; readonly lists: Lists; readonly notes: ListNotes }
  | ListFailure
  | SessionLost;

/** How long a kind is waited for that did not answer in the listing before. Milliseconds. */
const SILENT_KIND_WAIT_MS = 2_000;
/** Items that are named as left out, over all lists. */
const MAX_LEFT_OUT = 64;
const NAMES = ['tools', 'prompts', 'templates'] as const satisfies readonly ListName[];

/**
 * Reads every page of every list whose capability the upstream declares, and the `ui://` resources of its tools: their
 * content is pinned like a definition, because a host runs it. No other reference is followed. The lists are read side
 * by side, so that one that is not answered delays no other. The reading fails only if no list could be read.
 */
async function readLists(
  capabilities: JsonObject,
  ports: Pick<EraPorts, 'caps' | 'messageReader' | 'silentKinds'>,
  sendQuery: ListingQuery,
): Promise<ListsOutcome> {
  const { caps, messageReader = DIRECT_MESSAGE_READER, silentKinds = new Set<string>() } = ports;
  const remaining = { pages: caps.maxPages, items: caps.maxItems };
  const declared = NAMES.filter((name) => isObject(capabilities[CAPABILITIES[name]]));
  const outcomes = await Promise.all(
    declared.map((name) => {
      const waitMs = silentKinds.has(name) ? SILENT_KIND_WAIT_MS : undefined;
      const send: ListingQuery = (method, params) => sendQuery(method, params, waitMs);
      return readList(name, remaining, send, messageReader);
    }),
  );
  const lists: Record<ListName, readonly ListedItem[]> = { tools: [], prompts: [], templates: [] };
  const unavailable: UnavailableKind[] = [];
  const leftOut: string[] = [];
  let failure: ListFailure | undefined;
  for (const [at, name] of declared.entries()) {
    const outcome = outcomes[at];
    if (outcome === undefined || outcome.kind === 'session-lost') return { kind: 'session-lost' };
    silentKinds.delete(name);
    if (outcome.kind === 'items') {
      lists[name] = outcome.items;
      leftOut.push(...outcome.leftOut);
      continue;
    }
    if (outcome.why === 'timeout') silentKinds.add(name);
    failure ??= outcome;
    unavailable.push({ kind: name, why: outcome.why, detail: outcome.detail ?? outcome.why });
  }
  if (failure !== undefined && unavailable.length === declared.length) return failure;
  const apps = await readAppResources(lists.tools, capabilities, sendQuery);
  if (apps.kind === 'session-lost') return apps;
  leftOut.push(...apps.leftOut);
  unavailable.push(...unavailableApps(apps));
  return {
    kind: 'lists',
    lists: { ...lists, resources: apps.items },
    notes: { unavailable, leftOut: leftOut.slice(0, MAX_LEFT_OUT) },
  };
}

function unavailableApps({ failure }: AppResources): readonly UnavailableKind[] {
  if (failure === undefined) return [];
  const { why, detail = why } = failure;
  return [{ kind: 'resources', why, detail }];
}

type ListOutcome =
  | {
      readonly kind: 'items';
      readonly items: readonly ListedItem[];
      /** One clause for each item that is no definition. */
      readonly leftOut: readonly string[];
    }
  | ListFailure
  | SessionLost;

const NO_ITEMS = { kind: 'items', items: [], leftOut: [] } as const satisfies ListOutcome;

function violation(detail: string): ListFailure {
  return { kind: 'failed', why: 'protocol', detail };
}

/**
 * Reads one list to its end. An absent cursor ends it and an empty one does not; so does one that is no string, and a
 * cursor or a page that is repeated, because what follows would repeat too.
 */
async function readList(
  name: ListName,
  remaining: { pages: number; items: number },
  sendQuery: ListingQuery,
  messageReader: MessageReader,
): Promise<ListOutcome> {
  const items: ListedItem[] = [];
  const leftOut: string[] = [];
  const seenCursors = new Set<string | undefined>();
  const seenPages = new Set<string>();
  let cursor: string | undefined;
  do {
    seenCursors.add(cursor);
    const page = await nextPage(name, cursor, { remaining, sendQuery, messageReader });
    if ('kind' in page) return page;
    if (page.items.length > 0 && seenPages.has(page.text)) break;
    seenPages.add(page.text);
    items.push(...page.items);
    leftOut.push(...page.leftOut);
    cursor = page.nextCursor;
  } while (cursor !== undefined && !seenCursors.has(cursor));
  return { kind: 'items', ...withoutRepetitions(name, items, leftOut) };
}

/** Reads the page behind a cursor, or says why there is none. */
async function nextPage(
  name: ListName,
  cursor: string | undefined,
  { remaining, sendQuery, messageReader }: PageReading,
): Promise<ReadPage | ListOutcome> {
  const { method } = LISTS[name];
  remaining.pages -= 1;
  if (remaining.pages < 0) return violation(`${method}: too many pages`);
  const response = await sendQuery(method, cursor === undefined ? {} : { cursor });
  if (response.kind === 'session-lost') return response;
  if (response.kind !== 'result') return outcomeOfRefusal(response, cursor);
  const page = await readPage(name, response, messageReader);
  if (typeof page === 'string') return violation(page);
  remaining.items -= page.items.length;
  return remaining.items < 0 ? violation(`${method}: too many items`) : page;
}

type PageReading = {
  readonly remaining: { pages: number; items: number };
  readonly sendQuery: ListingQuery;
  readonly messageReader: MessageReader;
};

/** An identical definition given twice counts once. One that differs is named; the catalog shows neither of the two. */
function withoutRepetitions(
  name: ListName,
  items: readonly ListedItem[],
  leftOut: readonly string[],
): { readonly items: readonly ListedItem[]; readonly leftOut: readonly string[] } {
  const { name: nameMember } = LISTS[name];
  const texts = new Map<string, Set<string>>();
  const kept = items.filter(({ definition }) => {
    const itemName = String(definition[nameMember]);
    const text = JSON.stringify(definition);
    const known = texts.get(itemName);
    if (known === undefined) {
      texts.set(itemName, new Set([text]));
      return true;
    }
    const isNew = !known.has(text);
    known.add(text);
    return isNew;
  });
  if (kept.length === items.length && texts.size === items.length) return { items, leftOut };
  const repeated = [...texts]
    .filter(([, forms]) => forms.size > 1)
    .map(([itemName]) => `${name}: ${clauseName(itemName)} is given twice with different definitions`);
  return { items: kept, leftOut: [...leftOut, ...repeated] };
}

/** A server need not know the method of a list that is empty, whatever status says so. */
function outcomeOfRefusal(
  response: Exclude<ExchangeOutcome, { readonly kind: 'result' }>,
  cursor: string | undefined,
): ListOutcome {
  if (response.kind === 'failed') return failureOf(response);
  if (response.error?.code === METHOD_NOT_FOUND && cursor === undefined) return NO_ITEMS;
  return violation(response.detail);
}

function failureOf({ why, detail }: Extract<ExchangeOutcome, { kind: 'failed' }>): ListFailure {
  return { kind: 'failed', why, detail };
}

type ReadPage = {
  readonly items: readonly ListedItem[];
  readonly leftOut: readonly string[];
  readonly nextCursor: string | undefined;
  /** The items as text, by which a repeated page is recognized. */
  readonly text: string;
};

/** The members of a response that a page is read from. */
type PageResponse = Pick<Extract<ExchangeOutcome, { readonly kind: 'result' }>, 'result' | 'text' | 'suspectNumbers'>;

/** The page, or one clause that says why it cannot be read as one. */
async function readPage(
  name: ListName,
  { result, text, suspectNumbers }: PageResponse,
  messageReader: MessageReader,
): Promise<ReadPage | string> {
  const { member, name: nameMember } = LISTS[name];
  const entries = result[member];
  const nextCursor = cursorIn(result);
  const oddCursor = describeOddCursor(result);
  if (!Array.isArray(entries)) return expected(member, 'array', entries);
  const pageText = JSON.stringify(entries);
  const leftOut: string[] = oddCursor === undefined ? [] : [`${member}: ${oddCursor}`];
  const definitions = new Map<number, JsonObject>();
  for (const [index, entry] of entries.entries()) {
    const odd = describeOdd(entry, nameMember);
    if (odd !== undefined) leftOut.push(`${member}/${index}: ${odd}`);
    else if (isObject(entry)) definitions.set(index, entry);
  }
  // If no number is suspect, the positions of the items are not needed.
  if (!suspectNumbers) {
    const items = [...definitions.values()].map((definition) => ({ definition, isExact: true }));
    return { items, leftOut, nextCursor, text: pageText };
  }
  const list = spanOf(text, ['result', member]);
  const spans = list === undefined ? [] : elementSpans(text, list);
  if (spans.length !== entries.length) return `${member}: the list cannot be read by position`;
  const items: ListedItem[] = [];
  await runInTurns(messageReader, definitions, ([index, definition]) => {
    const span = spans[index];
    const isExact = span !== undefined && !hasInexactNumber(text, span);
    items.push({ definition, isExact });
  });
  return { items, leftOut, nextCursor, text: pageText };
}

function cursorIn({ nextCursor }: { readonly nextCursor?: Json }): string | undefined {
  return typeof nextCursor === 'string' ? nextCursor : undefined;
}

/** What is wrong with an item of a list; `undefined` for a definition. */
export function describeOdd(entry: Json, nameMember: string): string | undefined {
  if (!isObject(entry)) return causeOfLeftOut(entry) ?? `expected object, got ${kindOf(entry)}`;
  const named = entry[nameMember];
  if (named === undefined || named === null || named === '') return `no ${nameMember}`;
  return typeof named === 'string' ? undefined : expected(nameMember, 'string', named);
}
