// Reads what a client's message has to do with tasks: whether its response may be one, and which one it
// refers to. The id of a task is opened for its own caller alone; another caller's, another era's, a forged
// and an expired id are all treated as a task that does not exist.
// Source: MCP 2025-11-25, tasks; the Tasks extension of 2026-07-28 (capability negotiation, error handling).

import type { OpenedTask, ProtocolError, TextEdit } from './admitted-request.js';
import { INVALID_PARAMS, protocolErrorOf } from './errors.js';
import { removalEdits, spanOf } from './json/json.js';
import type { Target } from './jsonrpc.js';
import { isTaskParam } from './tasks.js';
import type { ClassifiedCall } from './versions/admission-rules.js';
import { hasTask } from './versions/detection.js';

/** `edits` remove a request for a task that is not available here. */
type TaskReading = {
  readonly kind: 'read';
  readonly target: Target;
  readonly mayBecomeTask: boolean;
  readonly task: OpenedTask | undefined;
  readonly edits: readonly TextEdit[];
};

const NO_EDITS: readonly TextEdit[] = [];

/** Reads what a message has to do with tasks, or returns why it may not pass. */
export function readTasks(context: ClassifiedCall, target: Target): TaskReading | ProtocolError {
  const { classified, rule, call } = context;
  const { protocol } = classified;
  const mayBecomeTask = rule.method === 'tools/call' && protocol.mayBecomeTask(context);
  const isRequested = mayBecomeTask && protocol.tasks?.areRequested === true;
  if (isRequested && !isTaskParam(call.params?.['task'])) {
    const text = 'task must be an object with a time to live, or without.';
    return protocolErrorOf('invalid-message', INVALID_PARAMS, text, context.errorContext);
  }
  const edits = isRequested ? NO_EDITS : taskParamEdits(context);
  if (target.kind !== 'task')
    return { kind: 'read', target, mayBecomeTask, task: undefined, edits };
  const task = openTask(context);
  return { kind: 'read', target: { kind: 'task', tool: task?.tool }, mayBecomeTask, task, edits };
}

/** A server without tasks should ignore the member, but a lax one must not create a task from it. */
function taskParamEdits({ call, text }: ClassifiedCall): readonly TextEdit[] {
  const params = call.params?.['task'] === undefined ? undefined : spanOf(text, ['params']);
  return params === undefined ? NO_EDITS : removalEdits(text, params, (name) => name === 'task');
}

function openTask({ input, classified, call }: ClassifiedCall): OpenedTask | undefined {
  const sealed = call.params?.['taskId'];
  if (typeof sealed !== 'string') return undefined;
  const facts = input.openTask?.(sealed);
  return facts !== undefined && hasTask(classified.protocol, facts)
    ? { ...facts, sealed }
    : undefined;
}
