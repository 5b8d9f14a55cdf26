// Joins the lists and handshakes of all backends. A page of the aggregate consists of a page of each backend,
// and its cursor holds the position of each. What the caller may see was decided by each backend's own pipeline
// run; items are kept byte for byte except for the prefix of their names. Capabilities are the union of those of the
// backends, and nothing is declared that is not listed here. A backend that does not respond is missing from the
// result; of one that hangs, a list shows the page that the same caller was shown last, if it is no older than
// `pinning.maxAge`, was kept under the version now in force, and every item of it would still be listed.
// Source: MCP 2025-11-25 and 2026-07-28, pagination; MCP 2025-11-25, lifecycle; MCP 2026-07-28, server/discover;
// 2026-07-28, caching.

import { isListed } from '../../policy/decide.js';
import { type Refusal, refuseWith } from '../../policy/decision.js';
import { ownName } from '../../policy/presentation.js';
import { callerKeyOf } from '../../policy/principal.js';
import type { AdmittedMessage } from '../../protocol/admitted-request.js';
import { servesApps, writeExtensions } from '../../protocol/capabilities.js';
import { runInTurns, type Turns, takeTurn } from '../../protocol/json/incremental.js';
import { elementSpans, memberSpans, spanOf } from '../../protocol/json/json.js';
import { renderJson } from '../../protocol/json/request-ids.js';
import { isObject, type Json, type JsonObject, type RequestId, type Target } from '../../protocol/jsonrpc.js';
import { LIST_MEMBERS } from '../../protocol/methods.js';
import { paramsOf } from '../../protocol/params.js';
import { METHOD_NOT_FOUND } from '../../protocol/responses.js';
import { declaresTasks, readTaskCapabilities, writeTaskCapabilities } from '../../protocol/tasks.js';
import type { ProtocolVersion } from '../../protocol/versions/revisions.js';
import type { Span } from '../../text/span.js';
import { countsAsReceived } from '../flows.js';
import type { Backend, ServerName, Snapshot } from '../ports.js';
import {
  type BackendOutcome,
  type BackendRequest,
  type FanOut,
  findFatalOutcome,
  isTimeout,
  refuseParams,
  replaceText,
  requestBackends,
  type VerifiedRequest,
} from './backend-requests.js';
import { backendRequestsOf, endUnusedSessions, sealSessions } from './sessions.js';

type Handshakes = ReturnType<typeof handshakesIn>;

/** Opens a session with all backends (`initialize`), or discovers them, and joins their results. */
export async function joinHandshakes(
  verified: VerifiedRequest,
  { rule, message }: AdmittedMessage,
): Promise<Refusal | undefined> {
  const { context } = verified;
  const { backends, server } = context.aggregate;
  if (message.kind !== 'request') return refuseWith('invalid-message');
  const backendRequests = backends.map((backend) => ({ backend }));
  // A session is without the backends that did not answer its handshake, so that one is always waited for.
  const hanging = rule.method === 'initialize' ? undefined : context.ports.aggregates.hangingBackends;
  const fan = await requestBackends(verified, backendRequests, hanging);
  const handshakes = handshakesIn(fan.outcomes);
  const fatal = findFatalOutcome(verified, fan.outcomes, undefined);
  if (handshakes.length === 0 || fatal !== undefined) {
    endUnusedSessions(verified, fan.pending);
    fan.fail(fatal);
    return undefined;
  }
  if (rule.method === 'initialize') return openJointSession(verified, message.id, handshakes, fan);
  const isComplete = handshakes.length === backends.length;
  fan.send(joinDiscover(handshakes, { id: message.id, server, isComplete }));
  return undefined;
}

function openJointSession(
  verified: VerifiedRequest,
  id: RequestId,
  handshakes: Handshakes,
  fan: FanOut,
): Refusal | undefined {
  const { aggregate, outgoing } = verified.context;
  const { server } = aggregate;
  const version = oldestVersion(handshakes);
  const sealed = version && sealSessions(verified, version, handshakes);
  const isGiven = sealed !== undefined && !outgoing.isClosed;
  const used = isGiven ? handshakes.map((handshake) => handshake.sealed) : [];
  endUnusedSessions(verified, fan.pending, used);
  if (version === undefined || sealed === undefined) return refuseWith('upstream-protocol');
  const text = joinInitialize(handshakes, { id, version, server });
  fan.send(text, { 'mcp-session-id': sealed });
  return undefined;
}

function handshakesIn(outcomes: readonly BackendOutcome[]) {
  return outcomes.flatMap(({ backendRequest: { backend }, response: { text, headers } }) => {
    const result = text === undefined ? undefined : resultOf(text);
    const sealed = headers['mcp-session-id'] ?? '';
    return result === undefined ? [] : [{ backend, result, sealed }];
  });
}

/** The limit for all backends' cursors together, since sealed text is bounded (state/sealed-token.ts). */
const MAX_CURSOR_BYTES = 128 * 1024;

const FOREIGN_CURSOR = 'The cursor does not belong to this list.';

const encoder = new TextEncoder();

type Page = BackendPage & { readonly upstream: string };

/** Responds to a list request with the joined pages of the backends. */
export async function joinLists(verified: VerifiedRequest, admitted: AdmittedMessage): Promise<Refusal | undefined> {
  const { protocol, rule, message } = admitted;
  if (message.kind !== 'request') return refuseWith('invalid-message');
  const cursors = openCursors(verified, admitted);
  if (cursors === 'foreign') return refuseParams(admitted, FOREIGN_CURSOR);
  const backendRequests = backendRequestsToSend(verified, admitted, cursors);
  const { hangingBackends } = verified.context.ports.aggregates;
  const fan = await requestBackends(verified, backendRequests, hangingBackends);
  const read = fan.outcomes.map(({ backendRequest, response }) =>
    readPageOf(verified, rule.method, backendRequest, response.text),
  );
  const fresh = (await Promise.all(read)).filter((page) => page !== undefined);
  const pages = await withLastPages(verified, admitted, { backendRequests, fan, fresh, cursors });
  const fatal = findFatalOutcome(verified, fan.outcomes, admitted.session);
  if (fatal !== undefined || (pages.length === 0 && backendRequests.length > 0)) {
    fan.fail(fatal);
    return undefined;
  }
  const answered = new Set(fresh.map(({ upstream }) => upstream));
  const withoutList = fan.outcomes.filter(
    ({ backendRequest, response }) => !answered.has(backendRequest.backend.upstream) && hasNoSuchList(response.text),
  );
  if (rule.method === 'resources/list') noteResources(verified, fresh, withoutList, cursors);
  const isComplete = fresh.length + withoutList.length === backendRequests.length;
  const nextCursor = cursorOf(verified, rule.method, pages);
  fan.send(joinPages(pages, { id: message.id, protocol, method: rule.method, nextCursor, isComplete }));
  return undefined;
}

/** The cursor of each backend's list, by upstream. */
type Cursors = ReadonlyMap<string, string>;

/** Opens the client's cursor: `undefined` on the first page, `foreign` for a cursor that was not issued here. */
function openCursors(
  { context, principal }: VerifiedRequest,
  admitted: AdmittedMessage,
): Cursors | 'foreign' | undefined {
  const cursor = paramsOf(admitted)['cursor'];
  if (typeof cursor !== 'string') return undefined;
  const scope = { upstream: context.aggregate.name, principal, method: admitted.rule.method };
  return context.ports.aggregates.cursors.open(cursor, scope) ?? 'foreign';
}

/** The requests for all backends, or for those whose lists continue. */
function backendRequestsToSend(
  verified: VerifiedRequest,
  admitted: AdmittedMessage,
  cursors: Cursors | undefined,
): readonly BackendRequest[] {
  const backendRequests = backendRequestsOf(verified, admitted);
  return cursors === undefined
    ? backendRequests
    : backendRequests.flatMap((backendRequest) => continueList(backendRequest, admitted, cursors));
}

/** An empty string is a valid cursor. */
function continueList(
  backendRequest: BackendRequest,
  { text }: AdmittedMessage,
  cursors: Cursors,
): readonly BackendRequest[] {
  const backendCursor = cursors.get(backendRequest.backend.upstream);
  return backendCursor === undefined
    ? []
    : [{ ...backendRequest, text: replaceText(text, ['params', 'cursor'], backendCursor) }];
}

/** Remembers which backend listed which resource, to route later reads by URI. */
function noteResources(
  { context: { aggregate, ports }, principal }: VerifiedRequest,
  pages: readonly Page[],
  withoutList: readonly BackendOutcome[],
  cursors: Cursors | undefined,
): void {
  const empty = withoutList.map(({ backendRequest }) => ({
    upstream: backendRequest.backend.upstream,
    uris: [],
    nextCursor: undefined,
  }));
  for (const { upstream, uris, nextCursor } of [...pages, ...empty]) {
    const page = { upstream, uris, cursor: cursors?.get(upstream), nextCursor };
    ports.aggregates.noteResources(aggregate.name, principal, page);
  }
}

/** What was asked, and which pages came. */
type Answers = {
  readonly backendRequests: readonly BackendRequest[];
  readonly fan: FanOut;
  readonly fresh: readonly Page[];
  readonly cursors: Cursors | undefined;
};

/** The pages in the order of the backends; those that hang have the page that this caller was shown last, if any. */
async function withLastPages(
  verified: VerifiedRequest,
  admitted: AdmittedMessage,
  { backendRequests, fan, fresh, cursors }: Answers,
): Promise<readonly Page[]> {
  const { method } = admitted.rule;
  const pages = backendRequests.map(async (backendRequest) => {
    const { upstream } = backendRequest.backend;
    const position = { upstream, cursor: cursors?.get(upstream) };
    const response = fan.outcomes.find((one) => one.backendRequest === backendRequest)?.response;
    const page = fresh.find((one) => one.upstream === upstream);
    if (page !== undefined && response?.text !== undefined) keepPage(verified, admitted, position, response.text);
    if (response !== undefined && !isTimeout(response)) return page;
    const text = await recallPage(verified, admitted, position);
    return readPageOf(verified, method, backendRequest, text);
  });
  return (await Promise.all(pages)).filter((page) => page !== undefined);
}

async function readPageOf(
  { context }: VerifiedRequest,
  method: string,
  { backend: { upstream, prefix } }: BackendRequest,
  text: string | undefined,
): Promise<Page | undefined> {
  if (text === undefined) return undefined;
  const { loopScheduler } = context.ports.inspection;
  const page = await readPage(text, { method, prefix }, { upstream, loopScheduler });
  return page && { ...page, upstream };
}

function cursorOf({ context, principal }: VerifiedRequest, method: string, pages: readonly Page[]): string | undefined {
  const nextCursors = cursorsThatFit(pages);
  if (nextCursors.length === 0) return undefined;
  const scope = { upstream: context.aggregate.name, principal, method };
  return context.ports.aggregates.cursors.seal(new Map(nextCursors), scope);
}

/** Selects the cursors that fit. A list whose cursor is too long ends here, without ending the others. */
function cursorsThatFit(pages: readonly Page[]): readonly (readonly [string, string])[] {
  const nextCursors = pages.flatMap(({ upstream, nextCursor }) =>
    nextCursor === undefined ? [] : [[upstream, nextCursor] as const],
  );
  let bytesLeft = MAX_CURSOR_BYTES;
  return nextCursors
    .map((entry) => ({ entry, bytes: encoder.encode(JSON.stringify(entry)).byteLength }))
    .sort((one, other) => one.bytes - other.bytes)
    .filter(({ bytes }) => {
      bytesLeft -= bytes;
      return bytesLeft >= 0;
    })
    .map(({ entry }) => entry);
}

/** True if the backend does not implement the list. Then nothing is missing, unlike after a failure. */
function hasNoSuchList(text: string | undefined): boolean {
  const message: Json = text === undefined ? null : JSON.parse(text);
  const error = isObject(message) ? message['error'] : undefined;
  return isObject(error) && error['code'] === METHOD_NOT_FOUND;
}

/** Where one page is in the list of a backend. */
type Position = { readonly upstream: string; readonly cursor: string | undefined };

/** Keeps the response of a backend for when it hangs. */
function keepPage(verified: VerifiedRequest, admitted: AdmittedMessage, position: Position, text: string): void {
  const { context, principal } = verified;
  const snapshot = context.aggregate.snapshot(position.upstream);
  if (snapshot === undefined || targetOf(admitted.rule.method, {}, snapshot) === undefined) return;
  const key = keyOf(verified, admitted, position, snapshot);
  context.ports.aggregates.lastPages.keep(callerKeyOf(principal), key, text);
}

/** The response that was kept; `undefined` where there is none that may be shown now. */
async function recallPage(
  verified: VerifiedRequest,
  admitted: AdmittedMessage,
  position: Position,
): Promise<string | undefined> {
  const { context, principal } = verified;
  const { upstream } = position;
  const snapshot = context.aggregate.snapshot(upstream);
  if (snapshot === undefined || !snapshot.isFresh) return undefined;
  // It would be received again, which no record of the backend says.
  if (countsAsReceived(snapshot, admitted.rule.method)) return undefined;
  const key = keyOf(verified, admitted, position, snapshot);
  const text = context.ports.aggregates.lastPages.recall(callerKeyOf(principal), key, upstream);
  if (text === undefined) return undefined;
  const { method } = admitted.rule;
  const catalog = snapshot.catalogFor(admitted);
  const items = listItems(text, method);
  if (items === undefined) return undefined;
  const { loopScheduler } = context.ports.inspection;
  let isShown = true;
  await runInTurns({ upstream, loopScheduler }, items, (item) => {
    const target = targetOf(method, item, snapshot);
    isShown = target !== undefined && isListed(snapshot.policies, principal, upstream, target, catalog);
    return isShown ? undefined : 'stop';
  });
  // What was decided in turns holds for the version under which it was.
  return isShown && context.aggregate.snapshot(upstream)?.id === snapshot.id ? text : undefined;
}

/** The target of an item in rules; `undefined` for lists whose pages are not kept. */
function targetOf(method: string, item: Json, { presentation }: Pick<Snapshot, 'presentation'>): Target | undefined {
  const textAt = (member: string): string => {
    const value = isObject(item) ? item[member] : undefined;
    return typeof value === 'string' ? value : '';
  };
  switch (method) {
    case 'tools/list':
      return { kind: 'tool', name: ownName(presentation, textAt('name')) ?? '' };
    case 'prompts/list':
      return { kind: 'prompt', name: textAt('name') };
    case 'resources/list':
      return { kind: 'resource', uri: textAt('uri') };
    case 'resources/templates/list':
      return { kind: 'template', uriTemplate: textAt('uriTemplate') };
    default:
      return undefined;
  }
}

/** Includes the version in force, so that no page outlives a change of configuration, policy or pins. */
function keyOf(
  { context }: VerifiedRequest,
  { rule, version, apps }: AdmittedMessage,
  { upstream, cursor }: Position,
  { versions }: Snapshot,
): string {
  const { config, policy, pins } = versions;
  return JSON.stringify([
    ...[context.aggregate.name, upstream, rule.method, cursor ?? null, version, apps],
    ...[config, policy, pins],
  ]);
}

/** A backend's result of a handshake. */
type BackendHandshake = { readonly backend: Backend; readonly result: JsonObject };

const CAPABILITIES_WITHOUT_LIST = ['completions', 'logging'];
const CAPABILITIES_WITH_LIST = ['prompts', 'resources', 'tools'];
const SERVER_INFO_KEY = 'io.modelcontextprotocol/serverInfo';

/** The result of a response; `undefined` if it is an error. */
export function resultOf(text: string): JsonObject | undefined {
  const message: Json = JSON.parse(text);
  const result = isObject(message) ? message['result'] : undefined;
  return isObject(result) ? result : undefined;
}

/**
 * The protocol version of the joint session: the oldest that a backend negotiated, because every backend
 * understands messages of that version. Revisions are dates, so they compare as text.
 */
export function oldestVersion(handshakes: readonly BackendHandshake[]): string | undefined {
  const versions = handshakes.flatMap(({ result }) => {
    const version = result['protocolVersion'];
    return typeof version === 'string' ? [version] : [];
  });
  return versions.sort()[0];
}

/** The joined response to `initialize`. */
export function joinInitialize(
  handshakes: readonly BackendHandshake[],
  { id, version, server }: { id: RequestId; version: string; server: ServerName },
): string {
  const result = {
    protocolVersion: version,
    capabilities: joinCapabilities(handshakes),
    serverInfo: server,
    ...instructionsOf(handshakes),
  };
  return renderJson({ jsonrpc: '2.0', id, result });
}

/** The joined response to `server/discover`, with the versions that all backends support. */
export function joinDiscover(
  handshakes: readonly BackendHandshake[],
  { id, server, isComplete }: { id: RequestId; server: ServerName; isComplete: boolean },
): string {
  const times = handshakes.map(({ result }) => result['ttlMs']);
  const ttlMs = Math.min(...times.map((time) => (typeof time === 'number' ? time : 0)));
  const result = {
    supportedVersions: sharedVersions(handshakes),
    capabilities: joinCapabilities(handshakes),
    ...instructionsOf(handshakes),
    resultType: 'complete',
    cacheScope: 'private',
    ttlMs: isComplete ? ttlMs : 0,
    _meta: { [SERVER_INFO_KEY]: server },
  };
  return renderJson({ jsonrpc: '2.0', id, result });
}

function sharedVersions(handshakes: readonly BackendHandshake[]): readonly string[] {
  const [first = [], ...rest] = handshakes.map(({ result }) => textsOf(result['supportedVersions']));
  return first.filter((version) => rest.every((versions) => versions.includes(version)));
}

function textsOf(value: Json | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : [];
}

/** The capabilities of any backend. List changes are always declared: the gateway announces them itself. */
function joinCapabilities(handshakes: readonly BackendHandshake[]): JsonObject {
  const declared = handshakes.flatMap(({ result }) => {
    const capabilities = result['capabilities'];
    return isObject(capabilities) ? [capabilities] : [];
  });
  const joined: Record<string, Json> = {};
  for (const name of CAPABILITIES_WITHOUT_LIST) if (declared.some((one) => isObject(one[name]))) joined[name] = {};
  for (const name of CAPABILITIES_WITH_LIST) {
    const lists = declared.flatMap((one) => (isObject(one[name]) ? [one[name]] : []));
    if (lists.length === 0) continue;
    const maySubscribe = lists.some((one) => isObject(one) && one['subscribe'] === true);
    joined[name] = maySubscribe ? { subscribe: true, listChanged: true } : { listChanged: true };
  }
  const uses = new Set(declared.flatMap(readTaskCapabilities));
  if (uses.size > 0) joined['tasks'] = writeTaskCapabilities([...uses]);
  const extensions = writeExtensions(declared.some(declaresTasks), declared.some(servesApps));
  return { ...joined, ...extensions };
}

/** Each backend's approved instructions, under a heading that says which name prefix they refer to. */
function instructionsOf(handshakes: readonly BackendHandshake[]): { instructions?: string } {
  const parts = handshakes.flatMap(({ backend, result }) => {
    const instructions = result['instructions'];
    if (typeof instructions !== 'string' || instructions === '') return [];
    return [`# ${backend.upstream} (its names begin with ${backend.prefix})\n\n${instructions}`];
  });
  return parts.length === 0 ? {} : { instructions: parts.join('\n\n') };
}

/** The member with the items, by the method of each list that can be joined. */
const JOINED_LISTS: ReadonlyMap<string, string> = new Map<string, string>([...LIST_MEMBERS, ['tasks/list', 'tasks']]);
/** Lists whose items have names that take a prefix: resources have URIs, and tasks have sealed ids. */
const NAMED_LISTS: ReadonlySet<string> = new Set(['tools/list', 'prompts/list']);

/** One backend's page of a list, ready to be joined. */
type BackendPage = {
  readonly items: readonly string[];
  /** The URIs of the items, if they are resources. */
  readonly uris: readonly string[];
  readonly nextCursor: string | undefined;
  readonly ttlMs: number;
};

/** True for methods whose responses can be joined. */
export function isList(method: string): boolean {
  return JOINED_LISTS.has(method);
}

/** The items of a response that is a list; `undefined` for any other. */
function listItems(text: string, method: string): readonly Json[] | undefined {
  const list = resultOf(text)?.[JOINED_LISTS.get(method) ?? ''];
  return Array.isArray(list) ? list : undefined;
}

/** Reads a backend's response in turns, because a page may be long; `undefined` if it is an error. */
export async function readPage(
  text: string,
  { method, prefix }: { readonly method: string; readonly prefix: string },
  turns: Turns,
): Promise<BackendPage | undefined> {
  const list = await takeTurn(turns, () => listIn(text, method));
  if (list === undefined) return undefined;
  const items: string[] = [];
  const uris: string[] = [];
  await runInTurns(turns, list.spans, ({ start, end }) => {
    const item = text.slice(start, end);
    const name = NAMED_LISTS.has(method) ? stringAt(item, spanOf(item, ['name'])) : undefined;
    const uri = method === 'resources/list' ? stringAt(item, spanOf(item, ['uri'])) : undefined;
    items.push(name === undefined ? item : replaceText(item, ['name'], prefix + name));
    if (uri !== undefined) uris.push(uri);
  });
  return { items, uris, nextCursor: list.nextCursor, ttlMs: list.ttlMs };
}

/** Finds the items of a list without building their values. */
function listIn(text: string, method: string) {
  const result = spanOf(text, ['result']);
  const members = result === undefined ? [] : memberSpans(text, result);
  const memberAt = (wanted: string | undefined): Span | undefined => members.find(({ name }) => name === wanted)?.value;
  const list = memberAt(JOINED_LISTS.get(method));
  if (list === undefined || text[list.start] !== '[') return undefined;
  const ttl = memberAt('ttlMs');
  const ttlMs: unknown = ttl && JSON.parse(text.slice(ttl.start, ttl.end));
  return {
    spans: elementSpans(text, list),
    nextCursor: stringAt(text, memberAt('nextCursor')),
    ttlMs: typeof ttlMs === 'number' ? ttlMs : 0,
  };
}

function stringAt(text: string, span: Span | undefined): string | undefined {
  if (span === undefined || text[span.start] !== '"') return undefined;
  const value: string = JSON.parse(text.slice(span.start, span.end));
  return value;
}

/** What the joined response contains besides its items. */
type JoinedList = {
  readonly id: RequestId;
  readonly protocol: Pick<ProtocolVersion, 'completeResult' | 'hasCacheHints'>;
  readonly method: string;
  /** The aggregate's own cursor, if any backend has more pages. */
  readonly nextCursor: string | undefined;
  /** False if a backend is missing. The list may be complete again soon, so it is not to be cached. */
  readonly isComplete: boolean;
};

/** Joins all pages into one response. It depends on the caller, so it is marked as private. */
export function joinPages(pages: readonly BackendPage[], list: JoinedList): string {
  const { id, protocol, method, nextCursor, isComplete } = list;
  const members = [`${JSON.stringify(JOINED_LISTS.get(method))}:[${pages.flatMap(({ items }) => items).join(',')}]`];
  if (nextCursor !== undefined) members.push(`"nextCursor":${JSON.stringify(nextCursor)}`);
  if (protocol.hasCacheHints) {
    const ttlMs = isComplete && pages.length > 0 ? Math.min(...pages.map((page) => page.ttlMs)) : 0;
    members.push('"resultType":"complete"', '"cacheScope":"private"', `"ttlMs":${ttlMs}`);
  }
  return `{"jsonrpc":"2.0","id":${renderJson(id)},"result":{${members.join(',')}}}`;
}
