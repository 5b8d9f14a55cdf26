// Checks the params of each method and reads what a request refers to, and its arguments. Members that the
// revision does not define are cut out afterwards (versions/admission-rules.ts). A member that a case-insensitive
// parser would take for a defined one (`Name` for `name`, also if `name` is absent) is refused, never repaired.
// Source: MCP schema, 2025-03-26 to 2026-07-28; CVE-2026-27896; Go encoding/json, System.Text.Json (web).

import { foldName } from '../text/json-members.js';
import type { Json } from './jsonrpc.js';
import {
  isObject,
  isRequestId,
  type JsonObject,
  type Message,
  type RequestId,
  type Target,
  type TaskUse,
} from './jsonrpc.js';
import { canRequireInput } from './server-requests.js';
import { readFilter } from './subscriptions.js';

/** The defined member names of one kind of object, as spelled and case-folded. */
type DefinedMembers = {
  readonly exact: ReadonlySet<string>;
  readonly folded: ReadonlySet<string>;
};

function definedMembers(names: readonly string[]): DefinedMembers {
  return { exact: new Set(names), folded: new Set(names.map(foldName)) };
}

/** The members that some revision defines in the `_meta` of a request. */
export const DEFINED_META_MEMBERS = definedMembers([
  'io.modelcontextprotocol/clientCapabilities',
  'io.modelcontextprotocol/clientInfo',
  'io.modelcontextprotocol/logLevel',
  'io.modelcontextprotocol/protocolVersion',
  'io.modelcontextprotocol/related-task',
  'io.modelcontextprotocol/subscriptionId',
  'progressToken',
]);

/** The members of a reference to a prompt or template, and of the argument to complete. */
const DEFINED_COMPLETION_MEMBERS = definedMembers(['arguments', 'name', 'type', 'uri', 'value']);

/** The members that the result of some method has in some revision. */
export const DEFINED_RESULT_MEMBERS = definedMembers([
  '_meta',
  'cacheScope',
  'capabilities',
  'completion',
  'content',
  'contents',
  'inputRequests',
  'instructions',
  'isError',
  'messages',
  'nextCursor',
  'prompts',
  'protocolVersion',
  'requestState',
  'resources',
  'resourceTemplates',
  'resultType',
  'serverInfo',
  'structuredContent',
  'supportedVersions',
  'task',
  'tasks',
  'tools',
  'ttlMs',
]);

/** The members that a task has in some revision, wherever the task occurs. */
export const DEFINED_TASK_MEMBERS = definedMembers([
  '_meta',
  'cacheScope',
  'createdAt',
  'error',
  'inputRequests',
  'lastUpdatedAt',
  'pollInterval',
  'pollIntervalMs',
  'requestState',
  'result',
  'resultType',
  'status',
  'statusMessage',
  'taskId',
  'ttl',
  'ttlMs',
]);

/** True if the name of a member differs from a defined one only in case. Linear in the names. */
export function hasMisspelledMember(object: JsonObject, { exact, folded }: DefinedMembers): boolean {
  for (const name in object) {
    if (!exact.has(name) && folded.has(foldName(name))) return true;
  }
  return false;
}

/** What the params of a message refer to, or why they are not valid (a sentence of the gateway's own). */
type ParamsReading =
  | { readonly ok: true; readonly target: Target; readonly args: JsonObject | undefined }
  | { readonly ok: false; readonly why: string };

const NOTHING: ParamsReading = { ok: true, target: { kind: 'none' }, args: undefined };
const NO_PARAMS: JsonObject = {};

/** The members that the params of some supported method have. */
const DEFINED_PARAMS_MEMBERS = definedMembers([
  '_meta',
  'argument',
  'arguments',
  'capabilities',
  'clientInfo',
  'context',
  'cursor',
  'inputResponses',
  'level',
  'message',
  'name',
  'notifications',
  'progress',
  'progressToken',
  'protocolVersion',
  'reason',
  'ref',
  'requestId',
  'requestState',
  'task',
  'taskId',
  'total',
  'uri',
]);

export const LOG_LEVELS: ReadonlySet<Json | undefined> = new Set([
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
]);

const READERS: ReadonlyMap<string, (params: JsonObject) => ParamsReading> = new Map([
  ['initialize', readInitialize],
  ['tools/list', readCursor],
  ['resources/list', readCursor],
  ['resources/templates/list', readCursor],
  ['prompts/list', readCursor],
  ['tools/call', (params: JsonObject) => readNamed(params, 'tool')],
  ['prompts/get', (params: JsonObject) => readNamed(params, 'prompt')],
  ['resources/read', readUri],
  ['resources/subscribe', readUri],
  ['resources/unsubscribe', readUri],
  ['completion/complete', readCompletion],
  ['logging/setLevel', readLevel],
  ['subscriptions/listen', readListen],
  ['tasks/get', (params: JsonObject) => readTaskId(params, 'get')],
  ['tasks/result', (params: JsonObject) => readTaskId(params, 'get')],
  ['tasks/cancel', (params: JsonObject) => readTaskId(params, 'cancel')],
  ['tasks/update', readUpdate],
  ['tasks/list', readCursor],
  ['notifications/cancelled', readCancelled],
  ['notifications/progress', readProgress],
]);

/** The params of a message; empty if it has none. */
export function paramsOf({ message }: { readonly message: Message }): JsonObject {
  return ('params' in message ? message.params : undefined) ?? NO_PARAMS;
}

/** The token under which a message asks for progress notifications. */
export function progressTokenOf(message: Message | { readonly params: JsonObject }): RequestId | undefined {
  const meta = 'params' in message ? message.params?.['_meta'] : undefined;
  const token = isObject(meta) ? meta['progressToken'] : undefined;
  return isRequestId(token) ? token : undefined;
}

/** The newest progress of a request. It only increases. */
export type ProgressCount = { last: number };

/** True for a request that answers an input request. Its result must not be cached (MCP 2026-07-28, caching). */
export function isInputRetry(admitted: { readonly message: Message }): boolean {
  const params = paramsOf(admitted);
  return params['inputResponses'] !== undefined || params['requestState'] !== undefined;
}

/** What of a revision decides which members params may have. */
type ParamsRules = { readonly hasInputRequired: boolean };

/**
 * Reads the params of a method of the table. Never looks into arguments: pins and policy check those.
 * Source: MCP 2025-11-25 and 2026-07-28, schema.
 */
export function readParams(method: string, params: JsonObject | undefined, rules: ParamsRules): ParamsReading {
  const given = params ?? NO_PARAMS;
  const why = checkCommonMembers(given) ?? checkInputRetry(method, given, rules);
  if (why !== undefined) return { ok: false, why };
  return READERS.get(method)?.(given) ?? NOTHING;
}

/** An error text for members that any method may have. */
function checkCommonMembers(params: JsonObject): string | undefined {
  if (hasMisspelledMember(params, DEFINED_PARAMS_MEMBERS)) {
    return 'A member of params differs from a defined one only in case.';
  }
  const meta = params['_meta'];
  if (meta === undefined) return undefined;
  if (!isObject(meta)) return '_meta must be an object.';
  if (hasMisspelledMember(meta, DEFINED_META_MEMBERS)) {
    return 'A member of _meta differs from a defined one only in case.';
  }
  const token = meta['progressToken'];
  const isValid = token === undefined || isRequestId(token);
  return isValid ? undefined : 'progressToken must be a string or a number.';
}

/** An error text for the members of an input retry, where the method or the revision has none. */
function checkInputRetry(method: string, params: JsonObject, { hasInputRequired }: ParamsRules): string | undefined {
  const { responses, state } = {
    responses: params['inputResponses'],
    state: params['requestState'],
  };
  if (responses === undefined && state === undefined) return undefined;
  if (method === 'tasks/update' && state === undefined) return undefined;
  if (!hasInputRequired || !canRequireInput(method))
    return 'This request may not contain inputResponses or requestState.';
  if (responses !== undefined && !isObject(responses)) return 'inputResponses must be an object.';
  const isValid = state === undefined || typeof state === 'string';
  return isValid ? undefined : 'requestState must be a string.';
}

function readListen(params: JsonObject): ParamsReading {
  return readFilter(params['notifications']) === undefined
    ? wrong('notifications must say what to listen to.')
    : NOTHING;
}

/** The sealed id says whose task it is and which tool it belongs to. */
function readTaskId(params: JsonObject, use: TaskUse): ParamsReading {
  const id = params['taskId'];
  if (typeof id !== 'string') return wrong('taskId must be a string.');
  return { ok: true, target: { kind: 'task', tool: undefined, use }, args: undefined };
}

function readUpdate(params: JsonObject): ParamsReading {
  return isObject(params['inputResponses']) ? readTaskId(params, 'update') : wrong('inputResponses must be an object.');
}

function readInitialize(params: JsonObject): ParamsReading {
  if (typeof params['protocolVersion'] !== 'string') return wrong('protocolVersion must be a string.');
  if (!isObject(params['capabilities'])) return wrong('capabilities must be an object.');
  const client = params['clientInfo'];
  if (client !== undefined && !isObject(client)) return wrong('clientInfo must be an object.');
  return NOTHING;
}

function readCursor({ cursor }: JsonObject): ParamsReading {
  return cursor === undefined || typeof cursor === 'string' ? NOTHING : wrong('cursor must be a string.');
}

function readNamed(params: JsonObject, kind: 'tool' | 'prompt'): ParamsReading {
  const name = params['name'];
  if (typeof name !== 'string' || name === '') return wrong('name must be a string.');
  const args = params['arguments'] ?? NO_PARAMS;
  if (!isObject(args) || params['arguments'] === null) return wrong('arguments must be an object.');
  return { ok: true, target: { kind, name }, args };
}

function readUri(params: JsonObject): ParamsReading {
  const uri = params['uri'];
  if (typeof uri !== 'string' || uri === '') return wrong('uri must be a string.');
  return { ok: true, target: { kind: 'resource', uri }, args: undefined };
}

function readCompletion(params: JsonObject): ParamsReading {
  const { argument, context } = { argument: params['argument'], context: params['context'] };
  const isNamed =
    isObject(argument) &&
    !hasMisspelledMember(argument, DEFINED_COMPLETION_MEMBERS) &&
    typeof argument['name'] === 'string' &&
    typeof argument['value'] === 'string';
  if (!isNamed) return wrong('argument must have a name and a value.');
  if (context !== undefined && !isContext(context)) return wrong('context must be an object.');
  const target = readReference(params['ref']);
  return target === undefined ? wrong('ref must name a prompt or a resource.') : { ok: true, target, args: undefined };
}

function isContext(context: Json): boolean {
  if (!isObject(context) || hasMisspelledMember(context, DEFINED_COMPLETION_MEMBERS)) return false;
  return context['arguments'] === undefined || isObject(context['arguments']);
}

function readReference(ref: Json | undefined): Target | undefined {
  if (!isObject(ref) || hasMisspelledMember(ref, DEFINED_COMPLETION_MEMBERS)) return undefined;
  const name = ref['name'];
  const uri = ref['uri'];
  if (ref['type'] === 'ref/prompt' && typeof name === 'string' && uri === undefined) {
    return { kind: 'prompt', name };
  }
  if (ref['type'] === 'ref/resource' && typeof uri === 'string' && name === undefined) {
    return { kind: 'template', uriTemplate: uri };
  }
  return undefined;
}

function readLevel(params: JsonObject): ParamsReading {
  return LOG_LEVELS.has(params['level']) ? NOTHING : wrong('level is not a log level.');
}

function readCancelled(params: JsonObject): ParamsReading {
  return isRequestId(params['requestId']) ? NOTHING : wrong('requestId must be a request id.');
}

function readProgress(params: JsonObject): ParamsReading {
  const isValid = isRequestId(params['progressToken']) && typeof params['progress'] === 'number';
  return isValid ? NOTHING : wrong('progressToken and progress are required.');
}

function wrong(why: string): ParamsReading {
  return { ok: false, why };
}
