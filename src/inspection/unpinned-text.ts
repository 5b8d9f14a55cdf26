// What a server words freely in a list, a handshake or another result about no item, and no pin holds: names, titles and
// descriptions of resources, what it calls itself, status messages, `_meta`, and members that no revision defines. Cut
// out where an upstream is the source of a flow, so that connecting to it brings nothing that a flow looks for.
// Definitions are left as they are, because pins hold them. Pure.
// Source: MCP schema, 2024-11-05 to 2026-07-28; docs/contract.md §4, labels and flows.

import { applyEdits, removalEdits, replaceAt, spanOf } from '../protocol/json/json.js';
import { isObject, type Json, type JsonObject } from '../protocol/jsonrpc.js';
import { valueAt } from './message-fields.js';

/** What is left of a value; `undefined` if nothing is. `server`: the name of the upstream in the configuration. */
type Reduce = (value: Json, server: string) => Json | undefined;
type Members = { readonly [name: string]: Reduce };

const keep: Reduce = (value) => value;
const isNumber: Reduce = (value) => (typeof value === 'number' ? value : undefined);
/** Only what is written exactly so: it has no room for other text. */
function matching(pattern: RegExp): Reduce {
  return (value) => (typeof value === 'string' && pattern.test(value) ? value : undefined);
}
function objectOf(members: Members): Reduce {
  return (value, server) => (isObject(value) ? reduce(value, members, server) : undefined);
}
function listOf(each: Reduce): Reduce {
  return (value, server) =>
    Array.isArray(value) ? value.flatMap((one) => each(one, server) ?? []) : undefined;
}

const TIME = matching(/^[\d:.+TZ-]{1,40}$/);
const ROLES = listOf(matching(/^(?:user|assistant)$/));
const VERSION = matching(/^v?\d[\w.+-]{0,31}$/);
const MEDIA_TYPE = matching(/^[a-z]+\/[a-z0-9][a-z0-9.+-]{0,63}(?:; ?charset=[\w-]{1,20})?$/i);

function resourceOf(value: Json, server: string): Json | undefined {
  const uri = isObject(value) ? value['uri'] : undefined;
  if (!isObject(value) || typeof uri !== 'string') return undefined;
  return { uri, name: uri, ...reduce(value, RESOURCE, server) };
}

const RESOURCE: Members = {
  mimeType: MEDIA_TYPE,
  size: isNumber,
  annotations: objectOf({ audience: ROLES, priority: isNumber, lastModified: TIME }),
};
/** The id is sealed, and replaced where it is not. */
const TASK: Members = {
  taskId: keep,
  status: keep,
  createdAt: TIME,
  lastUpdatedAt: TIME,
  ttl: (value) => (value === null || typeof value === 'number' ? value : undefined),
  pollInterval: isNumber,
};

function serverOf(value: Json, server: string): Json {
  const version = isObject(value) ? VERSION(value['version'] ?? null, server) : undefined;
  return { name: server, version: version ?? '0' };
}

const SERVER_INFO_KEY = 'io.modelcontextprotocol/serverInfo';
/** Of any result about no item. */
const COMMON: Members = {
  resultType: matching(/^complete$/),
  cacheScope: matching(/^(?:private|public)$/),
  ttlMs: isNumber,
};
const LIST: Members = { ...COMMON, nextCursor: keep };
const RESULTS: ReadonlyMap<string, Members> = new Map<string, Members>([
  [
    'initialize',
    { protocolVersion: keep, capabilities: keep, instructions: keep, serverInfo: serverOf },
  ],
  [
    'server/discover',
    {
      ...COMMON,
      supportedVersions: keep,
      capabilities: keep,
      instructions: keep,
      _meta: objectOf({ [SERVER_INFO_KEY]: serverOf }),
    },
  ],
  ['tools/list', { ...LIST, tools: keep }],
  ['prompts/list', { ...LIST, prompts: keep }],
  ['resources/templates/list', { ...LIST, resourceTemplates: keep }],
  ['resources/list', { ...LIST, resources: listOf(resourceOf) }],
  ['tasks/list', { ...LIST, tasks: listOf(objectOf(TASK)) }],
  ['ping', COMMON],
  ['logging/setLevel', COMMON],
]);

/** Methods whose results are about no item, so that nothing of them is recorded as received. */
export function isAboutNothing(method: string): boolean {
  return RESULTS.has(method);
}

/** The text of a response without such text; the same text if it has none. */
export function withoutUnpinnedText(text: string, method: string, server: string): string {
  const members = RESULTS.get(method);
  const result = valueAt(JSON.parse(text), ['result']);
  const span = spanOf(text, ['result']);
  if (members === undefined || !isObject(result) || span === undefined) return text;
  const left = reduce(result, members, server);
  let reduced = applyEdits(
    text,
    removalEdits(text, span, (name) => !Object.hasOwn(left, name)),
  );
  for (const [name, value] of Object.entries(left)) {
    // What stays as it is is not written again: definitions are shown byte for byte as they were approved.
    if (value !== result[name])
      reduced = replaceAt(reduced, ['result', name], JSON.stringify(value)) ?? reduced;
  }
  return reduced;
}

function reduce(object: JsonObject, members: Members, server: string): JsonObject {
  const left: Record<string, Json> = {};
  for (const [name, value] of Object.entries(object)) {
    const kept = Object.hasOwn(members, name) ? members[name]?.(value, server) : undefined;
    if (kept !== undefined) left[name] = kept;
  }
  return left;
}
