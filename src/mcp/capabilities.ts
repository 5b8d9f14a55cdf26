// What of a server's declared capabilities a client may see: what is carried, and nothing else.
// A capability that is not named here is removed, so that no client builds on what would be refused.
// Source: MCP 2025-11-25, lifecycle, capability negotiation; MCP 2026-07-28, server/discover.

import { APPS_EXTENSION, servesApps } from './apps.js';
import { isObject, type Json, type JsonObject } from './message.js';
import { declaresTasks, readTaskUses, TASKS_EXTENSION, writeTaskUses } from './tasks.js';

const WITH_LIST = ['prompts', 'resources', 'tools'];
const PLAIN = ['completions', 'logging'];

/** How tasks are declared in a client's revision; `none` where it has none, or its upstream speaks another. */
export type TaskForm = 'session' | 'extension' | 'none';

/**
 * The capabilities to declare towards a client. `listChanged` is always declared where there is a list,
 * because the gateway itself announces drift: on the stream of a session, or on a subscription (2026).
 * `apps`: the client has declared the Apps extension, and is told whether its server has.
 */
export function filterServerCapabilities(
  capabilities: JsonObject,
  { form, apps }: { readonly form: TaskForm; readonly apps: boolean },
): JsonObject {
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
  const hasTasks = form === 'extension' && declaresTasks(capabilities);
  return { ...kept, ...writeExtensions(hasTasks, apps && servesApps(capabilities)) };
}

function listed(declared: JsonObject, name: string): JsonObject {
  const maySubscribe = name === 'resources' && declared['subscribe'] === true;
  return maySubscribe ? { subscribe: true, listChanged: true } : { listChanged: true };
}

/** The extensions that a server is said to have, as a member of its capabilities; nothing where it has none. */
export function writeExtensions(
  hasTasks: boolean,
  hasApps: boolean,
): { readonly extensions?: JsonObject } {
  const extensions: Record<string, Json> = {};
  if (hasTasks) extensions[TASKS_EXTENSION] = {};
  if (hasApps) extensions[APPS_EXTENSION] = {};
  return Object.keys(extensions).length === 0 ? {} : { extensions };
}
