// Tasks: work whose answer comes after the call that began it. How both forms of them are written, what of
// them either side declares, and which texts are one. Reads values; whose a task is, and what of its content
// may pass, is decided elsewhere.
// Source: MCP 2025-11-25, tasks; the Tasks extension of 2026-07-28 (io.modelcontextprotocol/tasks).

import { isObject, type Json, type JsonObject } from './jsonrpc.js';
import { DEFINED_RESULT_MEMBERS, DEFINED_TASK_MEMBERS, isMisspelt } from './params.js';

/** The name of the extension, in the capabilities of both sides (2026). */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

/** The member of `_meta` that says to which task a message belongs (2025-11-25). */
export const RELATED_TASK_KEY = 'io.modelcontextprotocol/related-task';

/** The revision of sessions that has tasks. */
export const TASK_SESSION_VERSION = '2025-11-25';

/** Longest id of a task that is carried, in characters: it travels sealed, in a header too. */
const MAX_TASK_ID_CHARS = 1024;

/** What a server declares of tasks in a session. */
export type TaskUse = 'call' | 'list' | 'cancel';

export const TASK_USES: readonly TaskUse[] = ['call', 'list', 'cancel'];

/** How a task stands. The member of each that holds more is the one of the same state, and no other. */
export type TaskState =
  | { readonly kind: 'plain' }
  | { readonly kind: 'result'; readonly result: JsonObject }
  | { readonly kind: 'error'; readonly error: JsonObject }
  | { readonly kind: 'asking'; readonly inputRequests: JsonObject };

/** A task as a server tells of it. */
export type Task = {
  readonly id: string;
  /** Milliseconds from its creation; null for ever, undefined where nothing is said. */
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
/** Members that hold content, by the status that has them. */
const PAYLOADS = { completed: 'result', failed: 'error', input_required: 'inputRequests' } as const;

/** Whether the capabilities of a client or a server name the extension (2026). */
export function declaresTasks(capabilities: Json | undefined): boolean {
  const extensions = isObject(capabilities) ? capabilities['extensions'] : undefined;
  return isObject(extensions) && isObject(extensions[TASKS_EXTENSION]);
}

/** What the capabilities of a server of sessions declare of tasks (MCP 2025-11-25, tasks, capabilities). */
export function readTaskUses(capabilities: Json | undefined): readonly TaskUse[] {
  const tasks = isObject(capabilities) ? capabilities['tasks'] : undefined;
  if (!isObject(tasks)) return [];
  const { requests } = tasks;
  const tools = isObject(requests) ? requests['tools'] : undefined;
  if (!isObject(tools) || !isObject(tools['call'])) return [];
  return TASK_USES.filter((use) => use === 'call' || isObject(tasks[use]));
}

/** The same as a capability. */
export function writeTaskUses(uses: readonly TaskUse[]): JsonObject {
  const written: Record<string, Json> = {};
  if (uses.includes('list')) written['list'] = {};
  if (uses.includes('cancel')) written['cancel'] = {};
  if (uses.includes('call')) written['requests'] = { tools: { call: {} } };
  return written;
}

/** True for what may be the id of a task. */
export function isTaskId(value: Json | undefined): value is string {
  return typeof value === 'string' && value !== '' && value.length <= MAX_TASK_ID_CHARS;
}

/**
 * Reads a task of 2025-11-25, which tells of its state alone: content is brought by `tasks/result`, and what
 * is asked by questions.
 * @returns `undefined` where it breaks the specification, or has what a task of the extension has.
 */
export function readPlainTask(value: Json | undefined): Task | undefined {
  if (!isObject(value) || isMisspelt(value, DEFINED_TASK_MEMBERS)) return undefined;
  if (Object.values(PAYLOADS).some((member) => isObject(value[member]))) return undefined;
  const { taskId, status, ttl } = value as { readonly [name: string]: Json };
  if (!isTaskId(taskId) || !STATUSES.has(status) || !isTtl(ttl)) return undefined;
  return { id: taskId, ttlMs: ttl, state: PLAIN };
}

/**
 * Reads a task of the extension, which has its result, its error or its questions with it.
 * @returns `undefined` where it breaks the specification, or has content that its status does not have.
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
  if (isMisspelt(value, DEFINED_TASK_MEMBERS) || value['requestState'] !== undefined)
    return undefined;
  const { taskId, status, ttlMs } = value as { readonly [name: string]: Json };
  if (!isTaskId(taskId) || !STATUSES.has(status) || !isTtl(ttlMs)) return undefined;
  return { id: taskId, ttlMs };
}

/** Reads the seed of a task of the extension: the answer to its call has no content yet. */
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
      return isObject(inputRequests) ? { kind: 'asking', inputRequests } : undefined;
    default:
      return PLAIN;
  }
}

/** The result of a call, which can neither ask nor be put off once more. */
function isComplete(result: JsonObject): boolean {
  const type = result['resultType'];
  return (type === undefined || type === 'complete') && !isMisspelt(result, DEFINED_RESULT_MEMBERS);
}

function isTtl(ttl: Json | undefined): ttl is number | null | undefined {
  return ttl === undefined || ttl === null || (typeof ttl === 'number' && ttl >= 0);
}

/** A wish of a client for a task (2025-11-25): an object, with a time to live or without. */
export function isTaskParam(value: Json | undefined): boolean {
  return isObject(value) && (value['ttl'] === undefined || isTtl(value['ttl']));
}

/** The id that `_meta` of a message names as its task; `undefined` where it names none. */
export function relatedTaskId(meta: Json | undefined): Json | undefined {
  const related = isObject(meta) ? meta[RELATED_TASK_KEY] : undefined;
  if (related === undefined) return undefined;
  return isObject(related) ? (related['taskId'] ?? '') : '';
}
