// Tasks: work whose result comes after the call that started it. Reads both forms of tasks, and reads and
// writes what either side declares of them. Whose a task is, and what of its content may pass, is decided
// elsewhere.
// Source: MCP 2025-11-25, tasks; the Tasks extension of 2026-07-28 (io.modelcontextprotocol/tasks).

import type { Json } from './jsonrpc.js';
import { isObject, type JsonObject } from './jsonrpc.js';
import { DEFINED_RESULT_MEMBERS, DEFINED_TASK_MEMBERS, hasMisspelledMember } from './params.js';

/** The name of the extension, in the capabilities of both sides (2026). */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

/** The member of `_meta` that names the task a message belongs to (2025-11-25). */
export const RELATED_TASK_KEY = 'io.modelcontextprotocol/related-task';

/** Maximum length of a task id in characters: it travels sealed, also in a header. */
const MAX_TASK_ID_CHARS = 1024;

/** How tasks are declared in a client's revision; `none` if it has none, or its upstream speaks another revision. */
export type TaskForm = 'session' | 'extension' | 'none';

/** The task capabilities that a server can declare in a session. */
export type TaskCapability = 'call' | 'list' | 'cancel';

const TASK_CAPABILITIES: readonly TaskCapability[] = ['call', 'list', 'cancel'];

/** The state of a task. A task has only the content member that belongs to its status. */
export type TaskState =
  | { readonly kind: 'plain' }
  | { readonly kind: 'result'; readonly result: JsonObject }
  | { readonly kind: 'error'; readonly error: JsonObject }
  | { readonly kind: 'input-required'; readonly inputRequests: JsonObject };

/** A task as a server reports it. */
export type Task = {
  readonly id: string;
  /** Milliseconds from its creation; null if unlimited, undefined if the server does not say. */
  readonly ttlMs: number | null | undefined;
  readonly state: TaskState;
};

const STATUSES: ReadonlySet<Json | undefined> = new Set([
  'working',
  'input_required',
  'completed',
  'failed',
  'cancelled',
]);
const PLAIN: TaskState = Object.freeze({ kind: 'plain' });
/** The members with content, by the status that has them. */
const PAYLOADS = { completed: 'result', failed: 'error', input_required: 'inputRequests' } as const;

/** True if the capabilities of a client or a server name the extension (2026). */
export function declaresTasks(capabilities: Json | undefined): boolean {
  const extensions = isObject(capabilities) ? capabilities['extensions'] : undefined;
  return isObject(extensions) && isObject(extensions[TASKS_EXTENSION]);
}

/** The task capabilities that a server of the session era declares (MCP 2025-11-25, tasks, capabilities). */
export function readTaskCapabilities(capabilities: Json | undefined): readonly TaskCapability[] {
  const tasks = isObject(capabilities) ? capabilities['tasks'] : undefined;
  if (!isObject(tasks)) return [];
  const { requests } = tasks;
  const tools = isObject(requests) ? requests['tools'] : undefined;
  if (!isObject(tools) || !isObject(tools['call'])) return [];
  return TASK_CAPABILITIES.filter((use) => use === 'call' || isObject(tasks[use]));
}

/** Writes the task capabilities of a server of the session era. */
export function writeTaskCapabilities(uses: readonly TaskCapability[]): JsonObject {
  const written: Record<string, Json> = {};
  if (uses.includes('list')) written['list'] = {};
  if (uses.includes('cancel')) written['cancel'] = {};
  if (uses.includes('call')) written['requests'] = { tools: { call: {} } };
  return written;
}

export function isTaskId(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MAX_TASK_ID_CHARS;
}

/**
 * Reads a task of 2025-11-25, which reports its status alone: `tasks/result` delivers content, and server
 * requests ask for input.
 * @returns `undefined` if it violates the specification, or has content as a task of the extension has.
 */
export function readPlainTask(value: Json | undefined): Task | undefined {
  if (!isObject(value) || hasMisspelledMember(value, DEFINED_TASK_MEMBERS)) return undefined;
  if (Object.values(PAYLOADS).some((member) => isObject(value[member]))) return undefined;
  const { taskId, status, ttl } = value as { readonly [name: string]: Json };
  if (!isTaskId(taskId) || !STATUSES.has(status) || !isTtl(ttl)) return undefined;
  return { id: taskId, ttlMs: ttl, state: PLAIN };
}

/**
 * Reads a task of the extension, which contains its result, its error or its input requests.
 * @returns `undefined` if it violates the specification, or has content that does not belong to its status.
 */
export function readDetailedTask(value: JsonObject): Task | undefined {
  const head = readHead(value);
  const state = head && readState(value);
  if (head === undefined || state === undefined) return undefined;
  for (const [status, member] of Object.entries(PAYLOADS)) {
    if (status !== value['status'] && value[member] !== undefined) return undefined;
  }
  return { ...head, state };
}

function readHead(value: JsonObject): Omit<Task, 'state'> | undefined {
  if (hasMisspelledMember(value, DEFINED_TASK_MEMBERS) || value['requestState'] !== undefined) return undefined;
  const { taskId, status, ttlMs } = value as { readonly [name: string]: Json };
  if (!isTaskId(taskId) || !STATUSES.has(status) || !isTtl(ttlMs)) return undefined;
  return { id: taskId, ttlMs };
}

/** Reads a new task of the extension: the response to its call has no content yet. */
export function readCreatedTask(value: JsonObject): Task | undefined {
  const { result, error, inputRequests } = value as { readonly [name: string]: Json };
  if (result !== undefined || error !== undefined || inputRequests !== undefined) return undefined;
  const head = readHead(value);
  return head && { ...head, state: PLAIN };
}

function readState(value: JsonObject): TaskState | undefined {
  const { status, result, error, inputRequests } = value as { readonly [name: string]: Json };
  switch (status) {
    case 'completed':
      return isObject(result) && isComplete(result) ? { kind: 'result', result } : undefined;
    case 'failed':
      return isObject(error) ? { kind: 'error', error } : undefined;
    case 'input_required':
      return isObject(inputRequests) ? { kind: 'input-required', inputRequests } : undefined;
    default:
      return PLAIN;
  }
}

/** True for the result of a call, which can neither ask for input nor be deferred again. */
function isComplete(result: JsonObject): boolean {
  const type = result['resultType'];
  return (type === undefined || type === 'complete') && !hasMisspelledMember(result, DEFINED_RESULT_MEMBERS);
}

function isTtl(ttl: Json | undefined): ttl is number | null | undefined {
  return ttl === undefined || ttl === null || (typeof ttl === 'number' && ttl >= 0);
}

/** True for a client's valid request for a task (2025-11-25): an object, with or without a time to live. */
export function isTaskParam(value: Json | undefined): boolean {
  return isObject(value) && (value['ttl'] === undefined || isTtl(value['ttl']));
}

/** The member under which a message names its task in `_meta`, and the id; `undefined` if it names none. */
export function findRelatedTask(
  message: unknown,
): { readonly holder: 'params' | 'result'; readonly id: Json } | undefined {
  if (!isObject(message)) return undefined;
  for (const holder of HOLDERS) {
    const envelopeMember = message[holder];
    const id = isObject(envelopeMember) ? relatedTaskId(envelopeMember['_meta']) : undefined;
    if (id !== undefined) return { holder, id };
  }
  return undefined;
}

const HOLDERS = ['params', 'result'] as const;

/** The task id in the `_meta` of a message: `undefined` if it names no task, empty if it is malformed. */
function relatedTaskId(meta: Json | undefined): Json | undefined {
  const related = isObject(meta) ? meta[RELATED_TASK_KEY] : undefined;
  if (related === undefined) return undefined;
  return isObject(related) ? (related['taskId'] ?? '') : '';
}
