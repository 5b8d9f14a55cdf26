// What a message of a client has to do with tasks: whether its answer may be one, and which one it is about.
// The id of a task is opened for its caller alone; another caller's, another era's, a forged one and an
// expired one are all the same: a task that there is not.
// Source: MCP 2025-11-25, tasks; the Tasks extension of 2026-07-28 (capability negotiation, error handling).

import type { MethodRule, OpenedTask, ProtocolError, TextEdit } from './admitted-request.js';
import { type ErrorContext, INVALID_PARAMS, METHOD_NOT_FOUND, protocolErrorOf } from './errors.js';
import { removalEdits, spanOf } from './json/json.js';
import type { JsonObject, Target } from './jsonrpc.js';
import { readFilter } from './subscriptions.js';
import { declaresTasks, isTaskParam, TASKS_EXTENSION, type TaskUse } from './tasks.js';
import type { AdmissionInput, Call, Classified } from './version-detection.js';
import { CAPABILITIES_KEY } from './versions/stateless.js';

/** What admission knows of a message besides its tasks. */
export type TaskContext = {
  readonly input: Pick<AdmissionInput, 'openTask'>;
  readonly classified: Classified;
  readonly rule: MethodRule;
  readonly call: Call;
  readonly text: string;
  readonly meta: JsonObject | undefined;
  readonly errorContext: ErrorContext;
};

/** `edits` take out a wish that nobody here can grant. */
export type TaskReading = {
  readonly kind: 'read';
  readonly target: Target;
  readonly mayDefer: boolean;
  readonly task: OpenedTask | undefined;
  readonly edits: readonly TextEdit[];
};

const MISSING_CAPABILITY = -32021;
/** What a session's server must have declared, by method. */
const NEEDED_USES: ReadonlyMap<string, TaskUse> = new Map([
  ['tasks/get', 'call'],
  ['tasks/result', 'call'],
  ['tasks/cancel', 'cancel'],
  ['tasks/list', 'list'],
]);

/** Reads them, or says why the message may not pass. */
export function readTasks(context: TaskContext, target: Target): TaskReading | ProtocolError {
  const { classified, call } = context;
  const mayDefer = readMayDefer(context);
  if (classified.era === '2025' && mayDefer && !isTaskParam(call.params?.['task'])) {
    const text = 'task must be an object with a time to live, or without.';
    return protocolErrorOf('invalid-message', INVALID_PARAMS, text, context.errorContext);
  }
  const edits = classified.era === '2025' && mayDefer ? [] : taskParamEdits(context);
  if (target.kind !== 'task') return { kind: 'read', target, mayDefer, task: undefined, edits };
  const task = openTask(context);
  return { kind: 'read', target: { kind: 'task', tool: task?.tool }, mayDefer, task, edits };
}

function usesOf({ classified }: Pick<TaskContext, 'classified'>): readonly TaskUse[] {
  return classified.session?.tasks ?? [];
}

/** In 2026 the client says that it can wait; in a session it wishes for a task, and the server has declared them. */
function readMayDefer(context: TaskContext): boolean {
  const { classified, rule, call, meta } = context;
  if (rule.method !== 'tools/call') return false;
  if (classified.era === '2026') return declaresTasks(meta?.[CAPABILITIES_KEY]);
  return call.params?.['task'] !== undefined && usesOf(context).includes('call');
}

/**
 * The fault of a request that needs tasks to be declared, by its client in 2026, by its server in a session,
 * and they are not.
 */
export function checkDeclared(context: TaskContext): ProtocolError | undefined {
  const { classified, rule, call, meta, errorContext } = context;
  if (classified.era === '2026') {
    const isAbout = rule.subject === 'task' || listensToTasks(rule, call);
    if (!isAbout || declaresTasks(meta?.[CAPABILITIES_KEY])) return undefined;
    const text = 'Missing required client capability';
    const requiredCapabilities = { extensions: { [TASKS_EXTENSION]: {} } };
    const error = protocolErrorOf('invalid-message', MISSING_CAPABILITY, text, errorContext);
    return { ...error, data: { requiredCapabilities } };
  }
  const needed = NEEDED_USES.get(rule.method);
  if (needed === undefined || usesOf(context).includes(needed)) return undefined;
  const text = 'Method not found: the server of this session has not declared it.';
  return protocolErrorOf('method-forbidden', METHOD_NOT_FOUND, text, errorContext, 200);
}

function listensToTasks(rule: MethodRule, { params }: Call): boolean {
  if (rule.response !== 'subscription') return false;
  const filter = readFilter(params?.['notifications']);
  return filter !== undefined && filter.tasks.length > 0;
}

/** Whoever has not declared tasks ignores the wish, and a lax server must not make one of it. */
function taskParamEdits({ call, text }: TaskContext): readonly TextEdit[] {
  const params = call.params?.['task'] === undefined ? undefined : spanOf(text, ['params']);
  return params === undefined ? [] : removalEdits(text, params, (name) => name === 'task');
}

function openTask({ input, classified, call }: TaskContext): OpenedTask | undefined {
  const sealed = call.params?.['taskId'];
  if (typeof sealed !== 'string') return undefined;
  const facts = input.openTask?.(sealed);
  return facts?.era === classified.era ? { ...facts, sealed } : undefined;
}
