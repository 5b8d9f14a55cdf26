// Merges the handshakes and list pages of several backends into one, and maps names to backends by their prefix.
// Capabilities are the union of those of the backends, and nothing is declared that is not listed here. Reads
// responses that were already checked and filtered; items are kept byte for byte except for the prefix of their
// names.
// Source: MCP 2025-11-25, lifecycle; MCP 2026-07-28, server/discover; MCP 2025-11-25 and 2026-07-28, pagination;
// 2026-07-28, caching.

import { servesApps, writeExtensions } from '../../protocol/capabilities.js';
import { elementSpans, replaceAt, spanOf } from '../../protocol/json/json.js';
import { isObject, type Json, type JsonObject, type RequestId } from '../../protocol/jsonrpc.js';
import { LIST_MEMBERS } from '../../protocol/methods.js';
import {
  declaresTasks,
  readTaskCapabilities,
  writeTaskCapabilities,
} from '../../protocol/tasks.js';
import type { ProtocolVersion } from '../../protocol/versions/revisions.js';

/** A backend's result of a handshake. */
type BackendHandshake = { readonly backend: Backend; readonly result: JsonObject };

/** The name under which the aggregate presents itself to clients. */
export type ServerName = { readonly name: string; readonly version: string };

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
  return JSON.stringify({ jsonrpc: '2.0', id, result });
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
  return JSON.stringify({ jsonrpc: '2.0', id, result });
}

function sharedVersions(handshakes: readonly BackendHandshake[]): readonly string[] {
  const [first = [], ...rest] = handshakes.map(({ result }) =>
    textsOf(result['supportedVersions']),
  );
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
  for (const name of CAPABILITIES_WITHOUT_LIST)
    if (declared.some((one) => isObject(one[name]))) joined[name] = {};
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

/** A backend: an upstream and the prefix of its names in the aggregate. */
export type Backend = { readonly upstream: string; readonly prefix: string };

/**
 * The backend that a name belongs to, and the name without its prefix. No prefix begins with another, so there
 * is at most one match; `undefined` for a name with no known prefix, or nothing after it.
 */
export function backendOfName<M extends Backend>(
  backends: readonly M[],
  name: string,
): { readonly backend: M; readonly name: string } | undefined {
  const backend = backends.find(({ prefix }) => name.startsWith(prefix));
  if (backend === undefined || name.length === backend.prefix.length) return undefined;
  return { backend, name: name.slice(backend.prefix.length) };
}

/** The JSON text with the string at `path` replaced; unchanged if there is none. */
export function replaceText(text: string, path: readonly string[], value: string): string {
  return replaceAt(text, path, JSON.stringify(value)) ?? text;
}

/** The member that holds a list's items, by its method. */
const JOINED_LISTS: ReadonlyMap<string, string> = new Map<string, string>([
  ...LIST_MEMBERS,
  ['tasks/list', 'tasks'],
]);
/** Lists whose items have names that take a prefix: resources have URIs, and tasks have sealed ids. */
const NAMED_LISTS: ReadonlySet<string> = new Set(['tools/list', 'prompts/list']);

/** One backend's page of a list, ready to be joined. */
export type BackendPage = {
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
export function listItems(text: string, method: string): readonly Json[] | undefined {
  const list = resultOf(text)?.[JOINED_LISTS.get(method) ?? ''];
  return Array.isArray(list) ? list : undefined;
}

/** Reads a backend's response; `undefined` if it is an error. */
export function readPage(text: string, method: string, prefix: string): BackendPage | undefined {
  const member = JOINED_LISTS.get(method);
  const result = resultOf(text);
  const list = member === undefined ? undefined : result?.[member];
  if (member === undefined || result === undefined || !Array.isArray(list)) return undefined;
  const span = spanOf(text, ['result', member]);
  const spans = span === undefined ? [] : elementSpans(text, span);
  const isNamed = NAMED_LISTS.has(method);
  const { nextCursor, ttlMs } = { nextCursor: result['nextCursor'], ttlMs: result['ttlMs'] };
  return {
    items: spans.map(({ start, end }, index) =>
      itemText(text.slice(start, end), list[index] ?? null, isNamed, prefix),
    ),
    uris: method === 'resources/list' ? list.flatMap(uriOf) : [],
    nextCursor: typeof nextCursor === 'string' ? nextCursor : undefined,
    ttlMs: typeof ttlMs === 'number' ? ttlMs : 0,
  };
}

function itemText(text: string, item: Json, isNamed: boolean, prefix: string): string {
  const name = isNamed && isObject(item) ? item['name'] : undefined;
  return typeof name === 'string' ? replaceText(text, ['name'], prefix + name) : text;
}

function uriOf(item: Json): readonly string[] {
  const uri = isObject(item) ? item['uri'] : undefined;
  return typeof uri === 'string' ? [uri] : [];
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
  const members = [
    `${JSON.stringify(JOINED_LISTS.get(method))}:[${pages.flatMap(({ items }) => items).join(',')}]`,
  ];
  if (nextCursor !== undefined) members.push(`"nextCursor":${JSON.stringify(nextCursor)}`);
  if (protocol.hasCacheHints) {
    const ttlMs = isComplete && pages.length > 0 ? Math.min(...pages.map((page) => page.ttlMs)) : 0;
    members.push('"resultType":"complete"', '"cacheScope":"private"', `"ttlMs":${ttlMs}`);
  }
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{${members.join(',')}}}`;
}
