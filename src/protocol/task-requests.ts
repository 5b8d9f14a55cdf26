// Reads what a client's message has to do with tasks: whether its response may be one, and which one it
// refers to. The id of a task is opened for its own caller alone; another caller's, another era's, a forged
// and an expired id are all treated as a task that does not exist.
// Source: MCP 2025-11-25, tasks; the Tasks extension of 2026-07-28 (capability negotiation, error handling).

import type { OpenedTask, ProtocolError } from './admitted-request.js';
import { INVALID_PARAMS, protocolErrorOf } from './errors.js';
import type { Target } from './jsonrpc.js';
import { isTaskParam } from './tasks.js';
import type { ClassifiedCall } from './versions/admission-rules.js';
import { hasTask } from './versions/detection.js';

type TaskReading = {
  readonly kind: 'read';
  readonly target: Target;
  readonly mayBecomeTask: boolean;
  readonly task: OpenedTask | undefined;
  /**
   * A task cannot be requested here. A server without tasks should ignore such a request, but a lax one must not
   * create a task from it.
   */
  readonly hasNoTask: boolean;
};

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
  const hasNoTask = !isRequested;
  if (target.kind !== 'task')
    return { kind: 'read', target, mayBecomeTask, task: undefined, hasNoTask };
  const task = openTask(context);
  const ofTool = { ...target, tool: task?.tool };
  return { kind: 'read', target: ofTool, mayBecomeTask, task, hasNoTask };
}

function openTask({ input, classified, call }: ClassifiedCall): OpenedTask | undefined {
  const sealed = call.params?.['taskId'];
  if (typeof sealed !== 'string') return undefined;
  const facts = input.openTask?.(sealed);
  return facts !== undefined && hasTask(classified.protocol, facts)
    ? { ...facts, sealed }
    : undefined;
}
