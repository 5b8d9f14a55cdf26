// What of a server's declared capabilities a client may see: what is carried, and nothing else.
// A capability that is not named here is removed, so that no client builds on what would be refused.
// Source: MCP 2025-11-25, lifecycle, capability negotiation; MCP 2026-07-28, server/discover.

import { type Era, isObject, type Json, type JsonObject } from './message.js';

const WITH_LIST = ['prompts', 'resources', 'tools'];
const PLAIN = ['completions', 'logging'];

/**
 * The capabilities to declare towards a client. In session eras `listChanged` is always declared where
 * there is a list, because the gateway itself announces drift; in 2026 changes are told only by
 * `subscriptions/listen`, which is not carried, so `listChanged` and `subscribe` go.
 */
export function filterServerCapabilities(era: Era, capabilities: JsonObject): JsonObject {
  const kept: Record<string, Json> = {};
  for (const name of PLAIN) {
    if (isObject(capabilities[name])) kept[name] = {};
  }
  for (const name of WITH_LIST) {
    const declared = capabilities[name];
    if (isObject(declared)) kept[name] = era === '2026' ? {} : listed(declared, name);
  }
  return kept;
}

function listed(declared: JsonObject, name: string): JsonObject {
  const maySubscribe = name === 'resources' && declared['subscribe'] === true;
  return maySubscribe ? { subscribe: true, listChanged: true } : { listChanged: true };
}
