// Reads what a client's message has to do with tasks: whether its response may be one, and which one it
// refers to. The id of a task is opened for its own caller alone; another caller's, another era's, a forged
// and an expired id are all treated as a task that does not exist.
// Source: MCP 2025-11-25, tasks; the Tasks extension of 2026-07-28 (capability negotiation, error handling).

import type { MethodRule, OpenedTask, ProtocolError, TextEdit } from './admitted-request.js';
import { type ErrorContext, INVALID_PARAMS, METHOD_NOT_FOUND, protocolErrorOf } from './errors.js';
import { removalEdits, spanOf } from './json/json.js';
import type { JsonObject, Target } from './jsonrpc.js';
import { readFilter } from './subscriptions.js';
import { declaresTasks, isTaskParam, TASKS_EXTENSION, type TaskCapability } from './tasks.js';
import type { AdmissionInput, Call, Classified } from './version-detection.js';
import { CAPABILITIES_KEY } from './versions/stateless.js';

/** What admission knows of a message before its tasks are read. */
export type TaskContext = {
  readonly input: Pick<AdmissionInput, 'openTask'>;
  readonly classified: Classified;
  readonly rule: MethodRule;
  readonly call: Call;
  readonly text: string;
  readonly meta: JsonObject | undefined;
  readonly errorContext: ErrorContext;
};

/** `edits` remove a request for a task that is not available here. */
export type TaskReading = {
  readonly kind: 'read';
  readonly target: Target;
  readonly mayDefer: boolean;
  readonly task: OpenedTask | undefined;
  readonly edits: readonly TextEdit[];
};

const MISSING_CAPABILITY = -32021;
/** The task capability that a session's server must have declared, by method. */
const REQUIRED_TASK_CAPABILITIES: ReadonlyMap<string, TaskCapability> = new Map([
  ['tasks/get', 'call'],
  ['tasks/result', 'call'],
  ['tasks/cancel', 'cancel'],
  ['tasks/list', 'list'],
]);

/** Reads what a message has to do with tasks, or returns why it may not pass. */
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

function taskCapabilitiesOf({
  classified,
}: Pick<TaskContext, 'classified'>): readonly TaskCapability[] {
  return classified.session?.tasks ?? [];
}

/**
 * In 2026 the client declares that it supports tasks; in a session it requests one, and the server must
 * support that.
 */
function readMayDefer(context: TaskContext): boolean {
  const { classified, rule, call, meta } = context;
  if (rule.method !== 'tools/call') return false;
  if (classified.era === '2026') return declaresTasks(meta?.[CAPABILITIES_KEY]);
  return call.params?.['task'] !== undefined && taskCapabilitiesOf(context).includes('call');
}

/**
 * The error of a request that requires tasks to be declared, by its client in 2026 or by its server in a
 * session, when they are not.
 */
export function checkTasksDeclared(context: TaskContext): ProtocolError | undefined {
  const { classified, rule, call, meta, errorContext } = context;
  if (classified.era === '2026') {
    const isAbout = rule.subject === 'task' || listensToTasks(rule, call);
    if (!isAbout || declaresTasks(meta?.[CAPABILITIES_KEY])) return undefined;
    const text = 'Missing required client capability';
    const requiredCapabilities = { extensions: { [TASKS_EXTENSION]: {} } };
    const error = protocolErrorOf('invalid-message', MISSING_CAPABILITY, text, errorContext);
    return { ...error, data: { requiredCapabilities } };
  }
  const needed = REQUIRED_TASK_CAPABILITIES.get(rule.method);
  if (needed === undefined || taskCapabilitiesOf(context).includes(needed)) return undefined;
  const text = 'Method not found: the server of this session has not declared it.';
  return protocolErrorOf('method-forbidden', METHOD_NOT_FOUND, text, errorContext, 200);
}

function listensToTasks(rule: MethodRule, { params }: Call): boolean {
  if (rule.response !== 'subscription') return false;
  const filter = readFilter(params?.['notifications']);
  return filter !== undefined && filter.tasks.length > 0;
}

/** A server without tasks should ignore the member, but a lax one must not create a task from it. */
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
