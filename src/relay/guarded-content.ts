// What of a message is its client's own, for the guard: not what the gateway sealed and the client only
// carries, which looks like a secret, was opened before, and leaves as what its server gave.
// Source: MCP 2026-07-28, multi-round-trip requests; tasks of both revisions.

import type { Admitted } from '../mcp/admitted.js';
import { isObject, type JsonObject } from '../mcp/message.js';
import { RELATED_TASK_KEY, relatedTaskId } from '../mcp/tasks.js';
import { paramsOf } from './retry.js';

/** The content of a message as it is guarded. */
export function contentOf(admitted: Admitted): JsonObject {
  const { message, rule, task } = admitted;
  if (message.kind === 'error') return message.error;
  let content = message.kind === 'result' ? message.result : paramsOf(admitted);
  // Of a request alone it was opened; elsewhere a member of this name is what its client wrote.
  if (message.kind === 'request' && content['requestState'] !== undefined)
    content = omit(content, 'requestState');
  if (task !== undefined) content = omit(content, 'taskId');
  const { notifications, _meta: meta } = content as { readonly [name: string]: JsonObject };
  if (rule.response === 'subscription' && isObject(notifications))
    content = { ...content, notifications: omit(notifications, 'taskIds') };
  if (isObject(meta) && relatedTaskId(meta) !== undefined)
    content = { ...content, _meta: omit(meta, RELATED_TASK_KEY) };
  return content;
}

function omit(object: JsonObject, name: string): JsonObject {
  const { [name]: _, ...rest } = object;
  return rest;
}
