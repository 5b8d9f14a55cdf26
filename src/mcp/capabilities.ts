// What of a server's declared capabilities a client may see: what is carried, and nothing else.
// A capability that is not named here is removed, so that no client builds on what would be refused.
// Source: MCP 2025-11-25, lifecycle, capability negotiation; MCP 2026-07-28, server/discover.

import { isObject, type Json, type JsonObject } from './message.js';
import { declaresTasks, readTaskUses, TASKS_EXTENSION, writeTaskUses } from './tasks.js';

const WITH_LIST = ['prompts', 'resources', 'tools'];
const PLAIN = ['completions', 'logging'];

/** How tasks are declared in a client's revision; `none` where it has none, or its upstream speaks another. */
export type TaskForm = 'session' | 'extension' | 'none';

/**
 * The capabilities to declare towards a client. `listChanged` is always declared where there is a list,
 * because the gateway itself announces drift: on the stream of a session, or on a subscription (2026).
 */
export function filterServerCapabilities(capabilities: JsonObject, form: TaskForm): JsonObject {
  const kept: Record<string, Json> = {};
  for (const name of PLAIN) {
    if (isObject(capabilities[name])) kept[name] = {};
  }
  for (const name of WITH_LIST) {
    const declared = capabilities[name];
    if (isObject(declared)) kept[name] = listed(declared, name);
  }
  const uses = form === 'session' ? readTaskUses(capabilities) : [];
  if (uses.length > 0) kept['tasks'] = writeTaskUses(uses);
  if (form === 'extension' && declaresTasks(capabilities))
    kept['extensions'] = { [TASKS_EXTENSION]: {} };
  return kept;
}

function listed(declared: JsonObject, name: string): JsonObject {
  const maySubscribe = name === 'resources' && declared['subscribe'] === true;
  return maySubscribe ? { subscribe: true, listChanged: true } : { listChanged: true };
}
