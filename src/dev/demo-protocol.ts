// What an MCP server answers, apart from HTTP: one request and the story behind it give one answer.
// Serves the session era and the stateless era from the same story. Holds no state and checks no token.
// Source: MCP 2025-11-25 and 2026-07-28, server features and base protocol.

import { isObject, type JsonObject, type RpcError } from '../mcp/message.js';

/** Eras that a scripted server speaks. */
export type ServedEra = '2025' | '2026';

/** Session revisions that the scripted servers speak, newest last. */
export const SERVED_SESSION_VERSIONS = ['2025-03-26', '2025-06-18', '2025-11-25'] as const;

/** Stateless revisions that the scripted servers speak. */
export const SERVED_STATELESS_VERSIONS = ['2026-07-28'] as const;

export type ListKind = 'tools' | 'prompts' | 'resources' | 'resourceTemplates';

/** What one tool call gives: the result and the progress told before it. */
export type ToolResponse = { readonly result: JsonObject; readonly progress: readonly string[] };

/** The content of a scripted server. `undefined` means that the name or URI is unknown. */
export type Story = {
  readonly serverInfo: JsonObject;
  readonly instructions: string | undefined;
  /** Items in a page of any list. */
  readonly pageSize: number;
  /** Sent on cacheable results of the stateless era. */
  readonly cache: { readonly ttlMs: number; readonly cacheScope: string };
  list(kind: ListKind): readonly JsonObject[];
  callTool(name: string, args: JsonObject): ToolResponse | undefined;
  getPrompt(name: string, args: JsonObject): JsonObject | undefined;
  /** The items of `contents`. */
  readResource(uri: string): readonly JsonObject[] | undefined;
};

export type StoryResponse =
  | { readonly kind: 'result'; readonly result: JsonObject; readonly progress: readonly string[] }
  | { readonly kind: 'error'; readonly status: number; readonly error: RpcError };

const INVALID_PARAMS = -32602;
const METHOD_NOT_FOUND = -32601;
const LEGACY_RESOURCE_NOT_FOUND = -32002;

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

function ok(result: JsonObject, progress: readonly string[] = []): StoryResponse {
  return { kind: 'result', result, progress };
}

function refuse(code: number, message: string, status = 200): StoryResponse {
  return { kind: 'error', status, error: { code, message } };
}

function stringMember(params: JsonObject, name: string): string {
  const value = params[name];
  return typeof value === 'string' ? value : '';
}

/** Members that a stateless result carries besides its content (MCP 2026-07-28, results and caching). */
function completed(
  story: Story,
  era: ServedEra,
  result: JsonObject,
  cacheable: boolean,
): JsonObject {
  if (era === '2025') return result;
  const own = isObject(result['_meta']) ? result['_meta'] : {};
  const meta = { ...own, 'io.modelcontextprotocol/serverInfo': story.serverInfo };
  const caching = cacheable ? story.cache : {};
  return { ...result, ...caching, resultType: 'complete', _meta: meta };
}

function listPage(story: Story, era: ServedEra, kind: ListKind, params: JsonObject): StoryResponse {
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

function callTool(story: Story, era: ServedEra, params: JsonObject): StoryResponse {
  const args = isObject(params['arguments']) ? params['arguments'] : {};
  const response = story.callTool(stringMember(params, 'name'), args);
  if (response === undefined) return refuse(INVALID_PARAMS, 'Unknown tool');
  return ok(completed(story, era, response.result, false), response.progress);
}

function getPrompt(story: Story, era: ServedEra, params: JsonObject): StoryResponse {
  const args = isObject(params['arguments']) ? params['arguments'] : {};
  const result = story.getPrompt(stringMember(params, 'name'), args);
  if (result === undefined) return refuse(INVALID_PARAMS, 'Unknown prompt');
  return ok(completed(story, era, result, false));
}

function readResource(story: Story, era: ServedEra, params: JsonObject): StoryResponse {
  const contents = story.readResource(stringMember(params, 'uri'));
  if (contents !== undefined) return ok(completed(story, era, { contents }, true));
  const code = era === '2025' ? LEGACY_RESOURCE_NOT_FOUND : INVALID_PARAMS;
  return refuse(code, 'Resource not found');
}

function instructionsOf(story: Story): JsonObject {
  return story.instructions === undefined ? {} : { instructions: story.instructions };
}

function initialize(story: Story, params: JsonObject): StoryResponse {
  const asked = stringMember(params, 'protocolVersion');
  const version = SERVED_SESSION_VERSIONS.find((served) => served === asked) ?? '2025-11-25';
  return ok({
    protocolVersion: version,
    capabilities: CAPABILITIES,
    serverInfo: story.serverInfo,
    ...instructionsOf(story),
  });
}

function discover(story: Story): StoryResponse {
  const result = {
    supportedVersions: [...SERVED_STATELESS_VERSIONS],
    capabilities: CAPABILITIES,
    ...instructionsOf(story),
  };
  return ok(completed(story, '2026', result, true));
}

/**
 * Answers one request. Expected failures are values: an unknown name or cursor is the error that the
 * era asks for, with the HTTP status that carries it (MCP 2026-07-28, error map; 404 for methods).
 */
export function respondToRequest(
  story: Story,
  era: ServedEra,
  method: string,
  params: JsonObject,
): StoryResponse {
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
