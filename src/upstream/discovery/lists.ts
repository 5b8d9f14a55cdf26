// Lists an upstream as a client of one era: its self-description, then every page of its lists, then the `ui://`
// resources that its tools refer to. Answers no server requests, holds no caller's rights, and never returns a partial
// list.
// In the session era it declares every capability that a client could be allowed to declare, because servers
// choose which tools to offer by it, and what is not listed could never be approved (docs/contract.md §5).
// For the same reason it declares the Apps extension, in either era, where clients may declare it.
// MCP 2025-11-25 lifecycle; MCP 2026-07-28 server/discover; MCP 2025-11-25 and 2026-07-28, pagination; MCP Apps
// extension (SEP-1865), `_meta.ui.resourceUri`.

import { APPS_CAPABILITIES } from '../../protocol/capabilities.js';
import { encodeHeaderValue } from '../../protocol/headers.js';
import { elementSpans, hasInexactNumber, spanOf } from '../../protocol/json/json.js';
import { isObject, type Json, type JsonObject } from '../../protocol/jsonrpc.js';
import { LISTS, type ListedItem, type Listing } from '../../protocol/methods.js';
import { HEADER_MISMATCH, METHOD_NOT_FOUND, MISSING_CAPABILITY } from '../../protocol/responses.js';
import { LATEST_SESSION_VERSION, STATELESS_VERSIONS } from '../../protocol/versions/revisions.js';
import { SESSION } from '../../protocol/versions/session.js';
import { STATELESS } from '../../protocol/versions/stateless.js';
import { DIRECT_MESSAGE_READER, type MessageReader, runInTurns } from '../response-messages.js';
import {
  type CallOutcome,
  type CallPorts,
  callUpstream,
  endGatewaySession,
  isSessionId,
  type ListingBudget,
  type ListingCaps,
  type ListingError,
  notifyInitialized,
  sessionHeaders,
} from './request.js';

/** `not-spoken`: the upstream responded and does not speak this era. */
export type EraOutcome =
  | { readonly kind: 'listed'; readonly listing: Listing }
  | { readonly kind: 'not-spoken' }
  /** `isSpoken`: the upstream showed that it speaks this era before it failed. */
  | { readonly kind: 'failed'; readonly why: ListingError; readonly isSpoken: boolean };

export type EraPorts = CallPorts & {
  readonly caps: ListingCaps;
  /** Time limit for a complete listing, over all its requests. */
  readonly listingTimeoutMs: number;
  /** Sent to upstreams in `clientInfo`. */
  readonly gatewayVersion: string;
  /** Session-era versions, oldest first; the newest is requested. */
  readonly sessionVersions: readonly string[];
  /** Whether the Apps extension is declared. */
  readonly apps: boolean;
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
const PROTOCOL_FAILURE = { kind: 'failed', why: 'protocol', isSpoken: true } as const;

/** Everything that policies can grant. No server request is answered: a listing opens no stream for them. */
const SERVER_REQUEST_CAPABILITIES: JsonObject = {
  sampling: {},
  elicitation: { form: {}, url: {} },
  roots: { listChanged: true },
};

/** Maximum age of a session; a new one shows changed instructions and capabilities. Milliseconds. */
const MAX_SESSION_AGE_MS = 600_000;

/** The specification says 404; servers that have lost a session also respond with 400. */
const LOST_STATUSES = new Set([400, 404]);
/** Statuses from `SERVER_ERROR` on, and `TROUBLE_STATUSES`, indicate a server problem, not an unknown era. */
const SERVER_ERROR = 500;
const TROUBLE_STATUSES = new Set([408, 425, 429]);
/** MCP 2026-07-28: header and body disagree, or a capability is missing. Sent only in that era. */
const STATELESS_CODES = new Set([HEADER_MISMATCH, MISSING_CAPABILITY]);

function budgetOf(ports: EraPorts): ListingBudget {
  return { bytesLeft: ports.caps.maxBytes, deadlineMs: ports.now() + ports.listingTimeoutMs };
}

function clientInfo(ports: EraPorts): JsonObject {
  return { name: 'sallyport', version: ports.gatewayVersion };
}

/** Lists in the stateless era: `server/discover`, then the pages. */
export async function listStateless(ports: EraPorts, isKnown: boolean): Promise<EraOutcome> {
  const verifiedAtMs = ports.now();
  const budget = budgetOf(ports);
  const [version = ''] = STATELESS_VERSIONS;
  const sendQuery = (method: string, params: JsonObject): Promise<CallOutcome> =>
    callUpstream(ports, statelessCall(ports, version, method, params), budget);
  const discovered = await sendQuery('server/discover', {});
  if (discovered.kind !== 'result') return probeFailureOf(discovered, isKnown);
  const { result } = discovered;
  const versions = supportedVersionsIn(result['supportedVersions']);
  const capabilities = result['capabilities'];
  if (versions.length === 0 || !isObject(capabilities)) return { kind: 'not-spoken' };
  const instructions = readInstructions(result);
  if (instructions === 'malformed') return PROTOCOL_FAILURE;
  const read = await readLists(capabilities, ports.caps, sendQuery, ports.messageReader);
  if (read.kind !== 'lists') return readFailureOf(read);
  const meta = result['_meta'];
  const serverInfo = isObject(meta) ? meta['io.modelcontextprotocol/serverInfo'] : undefined;
  const listing: Listing = {
    era: STATELESS.listedEra,
    apps: ports.apps,
    verifiedAtMs,
    ...read.lists,
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

function statelessCall(ports: EraPorts, version: string, method: string, params: JsonObject) {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientCapabilities': ports.apps ? APPS_CAPABILITIES : {},
    'io.modelcontextprotocol/clientInfo': clientInfo(ports),
  };
  return {
    protocol: STATELESS,
    version,
    method,
    params: { ...params, _meta: meta },
    headers: { 'mcp-protocol-version': version, 'mcp-method': method, ...nameHeader(params) },
  };
}

/** A read also names its resource in a header (MCP 2026-07-28, standard request headers). */
function nameHeader({ uri }: JsonObject): { readonly [name: string]: string } {
  return typeof uri === 'string' ? { 'mcp-name': encodeHeaderValue(uri) } : {};
}

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
  if (
    previousSession !== undefined &&
    ports.now() - previousSession.openedAtMs < MAX_SESSION_AGE_MS
  ) {
    const listed = await listInSession(ports, previousSession);
    if (listed !== 'session-lost') return keepOrEnd(ports, previousSession, listed);
  } else if (previousSession !== undefined) {
    await endSession(ports, previousSession);
  }
  const opened = await openSession(ports, isKnown);
  if (opened.kind !== 'opened') return { outcome: opened, session: undefined };
  const listed = await listInSession(ports, opened.session);
  const outcome = listed === 'session-lost' ? PROTOCOL_FAILURE : listed;
  return keepOrEnd(ports, opened.session, outcome);
}

async function keepOrEnd(
  ports: EraPorts,
  session: ListingSession,
  outcome: EraOutcome,
): Promise<SessionListing> {
  if (outcome.kind === 'listed') return { outcome, session };
  await endSession(ports, session);
  return { outcome, session: undefined };
}

async function listInSession(
  ports: EraPorts,
  session: ListingSession,
): Promise<EraOutcome | 'session-lost'> {
  const verifiedAtMs = ports.now();
  const budget = budgetOf(ports);
  const { version, id } = session;
  const headers = sessionHeaders(version, id);
  const sendQuery: ListingQuery = (method, params) =>
    callUpstream(ports, { protocol: SESSION, version, method, params, headers }, budget);
  const read = await readLists(session.capabilities, ports.caps, sendQuery, ports.messageReader);
  if (read.kind === 'lists') {
    const { capabilities, serverInfo, instructions } = session;
    const handshake = { capabilities, serverInfo, instructions };
    const listing: Listing = {
      era: SESSION.listedEra,
      apps: ports.apps,
      verifiedAtMs,
      ...read.lists,
      ...handshake,
      // A server responds with the newest version it speaks, up to the requested one.
      protocolVersions: ports.sessionVersions.filter((older) => older <= version),
    };
    await ports.prepare?.(listing);
    return { kind: 'listed', listing };
  }
  const isLost = read.kind === 'refused' && LOST_STATUSES.has(read.status);
  return isLost && id !== undefined ? 'session-lost' : readFailureOf(read);
}

type Opened = { readonly kind: 'opened'; readonly session: ListingSession };

async function openSession(
  ports: EraPorts,
  isKnown: boolean,
): Promise<Opened | Exclude<EraOutcome, { readonly kind: 'listed' }>> {
  const openedAtMs = ports.now();
  const budget = budgetOf(ports);
  const version = ports.sessionVersions.at(-1) ?? LATEST_SESSION_VERSION;
  const params = {
    protocolVersion: version,
    capabilities: { ...SERVER_REQUEST_CAPABILITIES, ...(ports.apps ? APPS_CAPABILITIES : {}) },
    clientInfo: clientInfo(ports),
  };
  const call = { protocol: SESSION, version, method: 'initialize', params, headers: {} };
  const response = await callUpstream(ports, call, budget);
  if (response.kind !== 'result') return probeFailureOf(response, isKnown);
  const session = readSession(response, ports.sessionVersions, openedAtMs);
  if (session === undefined) return { kind: 'not-spoken' };
  if (session === 'malformed') return PROTOCOL_FAILURE;
  const headers = sessionHeaders(session.version, session.id);
  const notified = await notifyInitialized(ports, headers, budget);
  if (notified.kind === 'result') return { kind: 'opened', session };
  await endSession(ports, session);
  return notified.kind === 'failed' ? { ...notified, isSpoken: true } : PROTOCOL_FAILURE;
}

function readSession(
  { result, headers }: Extract<CallOutcome, { readonly kind: 'result' }>,
  versions: readonly string[],
  openedAtMs: number,
): ListingSession | 'malformed' | undefined {
  const version = result['protocolVersion'];
  if (typeof version !== 'string' || !versions.includes(version)) return undefined;
  const { capabilities, serverInfo } = result as { [name: string]: Json | undefined };
  const instructions = readInstructions(result);
  const id = headers['mcp-session-id'];
  if (!isObject(capabilities) || instructions === 'malformed' || !isSessionId(id))
    return 'malformed';
  const reportedInfo = isObject(serverInfo) ? serverInfo : undefined;
  return { id, version, openedAtMs, capabilities, serverInfo: reportedInfo, instructions };
}

/** Ends the gateway's own session. */
export function endSession(ports: EraPorts, { version, id }: ListingSession): Promise<void> {
  return endGatewaySession(ports, sessionHeaders(version, id));
}

function readInstructions(result: JsonObject): string | 'malformed' | undefined {
  const instructions = result['instructions'];
  if (instructions === undefined || instructions === '') return undefined;
  return typeof instructions === 'string' ? instructions : 'malformed';
}

/**
 * Interprets a failed probe. An era that was never spoken counts as not spoken, whatever the refusal. One
 * that was spoken is gone only if the upstream says so, not if it has a server problem.
 */
function probeFailureOf(
  response: Exclude<CallOutcome, { readonly kind: 'result' }>,
  isKnown: boolean,
): Exclude<EraOutcome, { readonly kind: 'listed' }> {
  if (response.kind === 'failed') {
    if (response.why === 'protocol' && !isKnown) return { kind: 'not-spoken' };
    return { ...response, isSpoken: false };
  }
  const { status, error } = response;
  const isServerFailure =
    status >= SERVER_ERROR || TROUBLE_STATUSES.has(status) || STATELESS_CODES.has(error?.code ?? 0);
  return isServerFailure && isKnown ? PROTOCOL_FAILURE : { kind: 'not-spoken' };
}

function readFailureOf(error: ListReadError): Exclude<EraOutcome, { readonly kind: 'listed' }> {
  return error.kind === 'failed' ? { ...error, isSpoken: true } : PROTOCOL_FAILURE;
}

/** Sends one request of the listing. */
type ListingQuery = (method: string, params: JsonObject) => Promise<CallOutcome>;

/** Resources read per listing. Those beyond it are not read and therefore not pinned. */
const MAX_APP_RESOURCES = 200;
const APP_SCHEME = 'ui://';

/**
 * Reads every `ui://` resource that a tool names, once each, as `{uri, contents}`, in the order of the tools.
 * A resource that the upstream does not have is left out; if the upstream fails, the listing fails.
 */
async function readAppResources(
  tools: readonly ListedItem[],
  capabilities: JsonObject,
  sendQuery: ListingQuery,
): Promise<ListOutcome> {
  if (!isObject(capabilities['resources'])) return { kind: 'items', items: [] };
  const uris = new Set(tools.flatMap(({ definition }) => appResourceOf(definition) ?? []));
  const items: ListedItem[] = [];
  for (const uri of [...uris].slice(0, MAX_APP_RESOURCES)) {
    const response = await sendQuery('resources/read', { uri });
    if (response.kind === 'failed') return response;
    const item = response.kind === 'result' ? readItem(uri, response) : undefined;
    if (item !== undefined) items.push(item);
  }
  return { kind: 'items', items };
}

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

/** Why reading ended early. `refused` has the HTTP status of the response. */
type ListReadError =
  | { readonly kind: 'failed'; readonly why: ListingError }
  | { readonly kind: 'refused'; readonly status: number };

type ListsOutcome = { readonly kind: 'lists'; readonly lists: Lists } | ListReadError;

/**
 * Reads every page of every list whose capability the upstream declares, and the `ui://` resources of its tools: their
 * content is pinned like a definition, because a host runs it. No other reference is followed. An absent cursor ends a
 * list and an empty one does not; a repeated cursor and an endless list are refused.
 */
async function readLists(
  capabilities: JsonObject,
  limits: ListingCaps,
  sendQuery: ListingQuery,
  messageReader: MessageReader = DIRECT_MESSAGE_READER,
): Promise<ListsOutcome> {
  const remaining = { pages: limits.maxPages, items: limits.maxItems };
  const lists: Record<ListName, readonly ListedItem[]> = { tools: [], prompts: [], templates: [] };
  for (const name of ['tools', 'prompts', 'templates'] as const) {
    if (!isObject(capabilities[CAPABILITIES[name]])) continue;
    const outcome = await readList(name, remaining, sendQuery, messageReader);
    if (outcome.kind !== 'items') return outcome;
    lists[name] = outcome.items;
  }
  const apps = await readAppResources(lists.tools, capabilities, sendQuery);
  return apps.kind === 'items'
    ? { kind: 'lists', lists: { ...lists, resources: apps.items } }
    : apps;
}

type ListOutcome =
  | { readonly kind: 'items'; readonly items: readonly ListedItem[] }
  | ListReadError;

const PROTOCOL_VIOLATION: ListReadError = { kind: 'failed', why: 'protocol' };

async function readList(
  name: ListName,
  remaining: { pages: number; items: number },
  sendQuery: ListingQuery,
  messageReader: MessageReader,
): Promise<ListOutcome> {
  const items: ListedItem[] = [];
  const seenCursors = new Set<string | undefined>();
  let cursor: string | undefined;
  do {
    remaining.pages -= 1;
    if (remaining.pages < 0 || seenCursors.has(cursor)) return PROTOCOL_VIOLATION;
    seenCursors.add(cursor);
    const response = await sendQuery(LISTS[name].method, cursor === undefined ? {} : { cursor });
    if (response.kind !== 'result') return listReadErrorOf(name, response, cursor);
    const page = await readPage(name, response, messageReader);
    remaining.items -= page?.items.length ?? 0;
    if (page === undefined || remaining.items < 0) return PROTOCOL_VIOLATION;
    items.push(...page.items);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return { kind: 'items', items };
}

/** A server with resources may have no templates, and then need not know the method. */
function listReadErrorOf(
  name: ListName,
  response: Exclude<CallOutcome, { readonly kind: 'result' }>,
  cursor: string | undefined,
): ListOutcome {
  if (response.kind === 'failed') return response;
  const isUnknown = response.error?.code === METHOD_NOT_FOUND && cursor === undefined;
  if (name === 'templates' && isUnknown) return { kind: 'items', items: [] };
  return { kind: 'refused', status: response.status };
}

type ReadPage = { readonly items: readonly ListedItem[]; readonly nextCursor: string | undefined };

/** The members of a response that a page is read from. */
type PageResponse = Pick<
  Extract<CallOutcome, { readonly kind: 'result' }>,
  'result' | 'text' | 'suspectNumbers'
>;

async function readPage(
  name: ListName,
  { result, text, suspectNumbers }: PageResponse,
  messageReader: MessageReader,
): Promise<ReadPage | undefined> {
  const { member, name: nameMember } = LISTS[name];
  const entries = result[member];
  const nextCursor = result['nextCursor'];
  if (!Array.isArray(entries)) return undefined;
  if (nextCursor !== undefined && typeof nextCursor !== 'string') return undefined;
  if (!entries.every((one: Json): one is JsonObject => isNamed(one, nameMember))) return undefined;
  // If no number is suspect, the positions of the items are not needed.
  if (!suspectNumbers)
    return { items: entries.map((definition) => ({ definition, isExact: true })), nextCursor };
  const list = spanOf(text, ['result', member]);
  const spans = list === undefined ? [] : elementSpans(text, list);
  if (spans.length !== entries.length) return undefined;
  const items: ListedItem[] = [];
  await runInTurns(messageReader, entries.entries(), ([index, definition]) => {
    const span = spans[index];
    const isExact = span !== undefined && !hasInexactNumber(text, span);
    items.push({ definition, isExact });
  });
  return { items, nextCursor };
}

function isNamed(definition: Json, nameMember: string): definition is JsonObject {
  if (!isObject(definition)) return false;
  return typeof definition[nameMember] === 'string' && definition[nameMember] !== '';
}
