// The protocol of the scripted MCP server: classifies one POST by era, checks that era's rules, and computes
// the response from a script of content. Serves the session era and the stateless era. Holds no state, looks
// sessions up through a port, and checks no token. Source: MCP 2025-11-25 and 2026-07-28, server features,
// base protocol, transports (headers and `_meta`), error map.

import { isObject, isRequestId, type JsonObject, type RequestId, type RpcError } from '../protocol/jsonrpc.js';
import {
  HEADER_MISMATCH,
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  PARSE_ERROR,
  RESOURCE_NOT_FOUND,
  UNSUPPORTED_VERSION,
} from '../protocol/responses.js';

/** Eras that a scripted server supports. */
type ServedEra = '2025' | '2026';

/** Session revisions that a scripted server supports, newest last. */
const SERVED_SESSION_VERSIONS = ['2025-03-26', '2025-06-18', '2025-11-25'] as const;

/** Stateless revisions that a scripted server supports. */
const SERVED_STATELESS_VERSIONS = ['2026-07-28'] as const;

export type ListKind = 'tools' | 'prompts' | 'resources' | 'resourceTemplates';

/** The outcome of one tool call: the result, and the progress messages sent before it. */
export type ToolResponse = { readonly result: JsonObject; readonly progress: readonly string[] };

/** The content of a scripted server. `undefined` means that the name or URI is unknown. */
export type ServerContent = {
  readonly serverInfo: JsonObject;
  readonly instructions: string | undefined;
  /** Items per page of a list. */
  readonly pageSize: number;
  /** Sent on cacheable results of the stateless era. */
  readonly cache: { readonly ttlMs: number; readonly cacheScope: string };
  list(kind: ListKind): readonly JsonObject[];
  callTool(name: string, args: JsonObject): ToolResponse | undefined;
  getPrompt(name: string, args: JsonObject): JsonObject | undefined;
  /** The items of `contents`. */
  readResource(uri: string): readonly JsonObject[] | undefined;
};

export type ScriptedResponse =
  | { readonly kind: 'result'; readonly result: JsonObject; readonly progress: readonly string[] }
  | { readonly kind: 'error'; readonly status: number; readonly error: RpcError };

const CAPABILITIES: JsonObject = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true },
};

const LIST_METHODS: ReadonlyMap<string, ListKind> = new Map([
  ['tools/list', 'tools'],
  ['prompts/list', 'prompts'],
  ['resources/list', 'resources'],
  ['resources/templates/list', 'resourceTemplates'],
]);

function ok(result: JsonObject, progress: readonly string[] = []): ScriptedResponse {
  return { kind: 'result', result, progress };
}

function refuse(code: number, message: string, status = 200): ScriptedResponse {
  return { kind: 'error', status, error: { code, message } };
}

function stringMember(params: JsonObject, name: string): string {
  const value = params[name];
  return typeof value === 'string' ? value : '';
}

/** Adds the members that stateless results carry besides their content (MCP 2026-07-28, results and caching). */
function completed(story: ServerContent, era: ServedEra, result: JsonObject, cacheable: boolean): JsonObject {
  if (era === '2025') return result;
  const own = isObject(result['_meta']) ? result['_meta'] : {};
  const meta = { ...own, 'io.modelcontextprotocol/serverInfo': story.serverInfo };
  const caching = cacheable ? story.cache : {};
  return { ...result, ...caching, resultType: 'complete', _meta: meta };
}

function listPage(story: ServerContent, era: ServedEra, kind: ListKind, params: JsonObject): ScriptedResponse {
  const cursor = params['cursor'];
  const match = typeof cursor === 'string' ? /^from-([0-9]{1,6})$/.exec(cursor) : undefined;
  if (cursor !== undefined && !match) return refuse(INVALID_PARAMS, 'Invalid cursor');
  const start = Number(match?.[1] ?? 0);
  const all = story.list(kind);
  const end = start + story.pageSize;
  const page = all.slice(start, end);
  const next = end < all.length ? { nextCursor: `from-${end}` } : {};
  return ok(completed(story, era, { [kind]: page, ...next }, true));
}

function callTool(story: ServerContent, era: ServedEra, params: JsonObject): ScriptedResponse {
  const args = isObject(params['arguments']) ? params['arguments'] : {};
  const response = story.callTool(stringMember(params, 'name'), args);
  if (response === undefined) return refuse(INVALID_PARAMS, 'Unknown tool');
  return ok(completed(story, era, response.result, false), response.progress);
}

function getPrompt(story: ServerContent, era: ServedEra, params: JsonObject): ScriptedResponse {
  const args = isObject(params['arguments']) ? params['arguments'] : {};
  const result = story.getPrompt(stringMember(params, 'name'), args);
  if (result === undefined) return refuse(INVALID_PARAMS, 'Unknown prompt');
  return ok(completed(story, era, result, false));
}

function readResource(story: ServerContent, era: ServedEra, params: JsonObject): ScriptedResponse {
  const contents = story.readResource(stringMember(params, 'uri'));
  if (contents !== undefined) return ok(completed(story, era, { contents }, true));
  const code = era === '2025' ? RESOURCE_NOT_FOUND : INVALID_PARAMS;
  return refuse(code, 'Resource not found');
}

function instructionsOf(story: ServerContent): JsonObject {
  return story.instructions === undefined ? {} : { instructions: story.instructions };
}

function initialize(story: ServerContent, params: JsonObject): ScriptedResponse {
  const requestedVersion = stringMember(params, 'protocolVersion');
  const version = SERVED_SESSION_VERSIONS.find((served) => served === requestedVersion) ?? '2025-11-25';
  return ok({
    protocolVersion: version,
    capabilities: CAPABILITIES,
    serverInfo: story.serverInfo,
    ...instructionsOf(story),
  });
}

function discover(story: ServerContent): ScriptedResponse {
  const result = {
    supportedVersions: [...SERVED_STATELESS_VERSIONS],
    capabilities: CAPABILITIES,
    ...instructionsOf(story),
  };
  return ok(completed(story, '2026', result, true));
}

/**
 * Computes the response to one request. Expected failures are values: an unknown name or cursor gives the
 * error and HTTP status that the era requires (MCP 2026-07-28, error map; 404 for methods).
 */
export function respondToRequest(
  story: ServerContent,
  era: ServedEra,
  method: string,
  params: JsonObject,
): ScriptedResponse {
  const kind = LIST_METHODS.get(method);
  if (kind !== undefined) return listPage(story, era, kind, params);
  if (method === 'tools/call') return callTool(story, era, params);
  if (method === 'prompts/get') return getPrompt(story, era, params);
  if (method === 'resources/read') return readResource(story, era, params);
  if (era === '2025' && method === 'initialize') return initialize(story, params);
  if (era === '2025' && method === 'ping') return ok({});
  if (era === '2026' && method === 'server/discover') return discover(story);
  return refuse(METHOD_NOT_FOUND, 'Method not found', era === '2026' ? 404 : 200);
}

/** One HTTP request as received: lower-case header names, repeated ones joined by the HTTP library. */
type ReceivedPost = {
  readonly headers: { readonly [name: string]: string | undefined };
  readonly body: string;
};

export type Classified =
  | {
      readonly kind: 'request';
      readonly era: ServedEra;
      readonly id: RequestId;
      readonly method: string;
      readonly params: JsonObject;
    }
  | { readonly kind: 'notification'; readonly era: ServedEra; readonly method: string }
  | {
      readonly kind: 'refused';
      readonly status: number;
      readonly code: number;
      readonly message: string;
      readonly id: RequestId | undefined;
      readonly supported?: readonly string[];
    };

const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities';

const NAMED_METHODS: ReadonlyMap<string, 'name' | 'uri'> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
]);

const ENCODED_VALUE = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/;

function refusePost(status: number, code: number, message: string, id?: RequestId): Classified & { kind: 'refused' } {
  return { kind: 'refused', status, code, message, id };
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function decodeName(header: string): string {
  const match = ENCODED_VALUE.exec(header);
  return match ? Buffer.from(match[1] ?? '', 'base64').toString('utf8') : header;
}

/** The first rule of the stateless era that the request violates. */
function findStatelessError(
  received: ReceivedPost,
  method: string,
  params: JsonObject,
  meta: JsonObject,
  id: RequestId | undefined,
): (Classified & { kind: 'refused' }) | undefined {
  const version = meta[VERSION_KEY];
  if (typeof version !== 'string') return refusePost(400, INVALID_PARAMS, 'The version is missing', id);
  if (!SERVED_STATELESS_VERSIONS.some((served) => served === version)) {
    const error = refusePost(400, UNSUPPORTED_VERSION, 'Unsupported protocol version', id);
    return { ...error, supported: SERVED_STATELESS_VERSIONS };
  }
  if (!isObject(meta[CAPABILITIES_KEY])) {
    return refusePost(400, INVALID_PARAMS, 'The client capabilities are missing', id);
  }
  const expected = [
    ['mcp-protocol-version', version],
    ['mcp-method', method],
  ] as const;
  if (expected.some(([name, value]) => received.headers[name] !== value)) {
    return refusePost(400, HEADER_MISMATCH, 'A header differs from the body', id);
  }
  const member = NAMED_METHODS.get(method);
  if (member === undefined) return undefined;
  const header = received.headers['mcp-name'];
  if (header !== undefined && decodeName(header) === params[member]) return undefined;
  return refusePost(400, HEADER_MISMATCH, 'Mcp-Name differs from the body', id);
}

function finish(era: ServedEra, id: RequestId | undefined, method: string, params: JsonObject): Classified {
  if (id === undefined) return { kind: 'notification', era, method };
  return { kind: 'request', era, id, method, params };
}

/** The first rule of the session era that the request violates. */
function findSessionError(
  received: ReceivedPost,
  method: string,
  id: RequestId | undefined,
  hasSession: (sessionId: string) => boolean,
): (Classified & { kind: 'refused' }) | undefined {
  const session = received.headers['mcp-session-id'];
  if (method === 'initialize') {
    return session === undefined ? undefined : refusePost(400, INVALID_REQUEST, 'initialize takes no session', id);
  }
  if (session === undefined) return refusePost(400, INVALID_REQUEST, 'A session is required', id);
  return hasSession(session) ? undefined : refusePost(404, -32001, 'Session not found', id);
}

/** Classifies a message and its era, or gives the refusal that the era requires. */
export function classifyPost(received: ReceivedPost, hasSession: (sessionId: string) => boolean): Classified {
  const value = parse(received.body);
  if (value === undefined) return refusePost(400, PARSE_ERROR, 'Parse error');
  if (!isObject(value) || value['jsonrpc'] !== '2.0') return refusePost(400, INVALID_REQUEST, 'Invalid request');
  const method = value['method'];
  const { id: sent } = value;
  const id = isRequestId(sent) ? sent : undefined;
  if (typeof method !== 'string') return refusePost(400, INVALID_REQUEST, 'Responses are not expected', id);
  const params = isObject(value['params']) ? value['params'] : {};
  const meta = isObject(params['_meta']) ? params['_meta'] : {};
  const header = received.headers['mcp-protocol-version'];
  const isStateless = VERSION_KEY in meta || SERVED_STATELESS_VERSIONS.some((served) => served === header);
  const error = isStateless
    ? findStatelessError(received, method, params, meta, id)
    : findSessionError(received, method, id, hasSession);
  return error ?? finish(isStateless ? '2026' : '2025', id, method, params);
}
