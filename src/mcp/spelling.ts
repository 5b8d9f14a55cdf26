// Decides whether an object has a member that a case-insensitive parser takes for a defined one although
// we do not: `Name` for `name`, also where `name` is absent. Such an object is refused, never repaired.
// Source: MCP schema, 2025-03-26 to 2026-07-28; CVE-2026-27896; Go encoding/json, System.Text.Json (web).

import { foldName } from './case-folding.js';
import type { JsonObject } from './message.js';

/** The defined names of one kind of object, by their folded form. */
export type DefinedMembers = {
  readonly exact: ReadonlySet<string>;
  readonly folded: ReadonlySet<string>;
};

function definedMembers(names: readonly string[]): DefinedMembers {
  return { exact: new Set(names), folded: new Set(names.map(foldName)) };
}

/** What some revision defines in the `_meta` of a request. */
export const DEFINED_META_MEMBERS = definedMembers([
  'io.modelcontextprotocol/clientCapabilities',
  'io.modelcontextprotocol/clientInfo',
  'io.modelcontextprotocol/logLevel',
  'io.modelcontextprotocol/protocolVersion',
  'io.modelcontextprotocol/related-task',
  'io.modelcontextprotocol/subscriptionId',
  'progressToken',
]);

/** What a reference to a prompt or template, or the argument to complete, consists of. */
export const DEFINED_COMPLETION_MEMBERS = definedMembers([
  'arguments',
  'name',
  'type',
  'uri',
  'value',
]);

/** What the result of some method of some revision consists of. */
export const DEFINED_RESULT_MEMBERS = definedMembers([
  '_meta',
  'cacheScope',
  'capabilities',
  'completion',
  'content',
  'contents',
  'inputRequests',
  'instructions',
  'isError',
  'messages',
  'nextCursor',
  'prompts',
  'protocolVersion',
  'requestState',
  'resources',
  'resourceTemplates',
  'resultType',
  'serverInfo',
  'structuredContent',
  'supportedVersions',
  'task',
  'tasks',
  'tools',
  'ttlMs',
]);

/** What a task of some revision consists of, wherever it stands. */
export const DEFINED_TASK_MEMBERS = definedMembers([
  '_meta',
  'cacheScope',
  'createdAt',
  'error',
  'inputRequests',
  'lastUpdatedAt',
  'pollInterval',
  'pollIntervalMs',
  'requestState',
  'result',
  'resultType',
  'status',
  'statusMessage',
  'taskId',
  'ttl',
  'ttlMs',
]);

/** True when a member is a defined one but for its case. Linear in the names. */
export function isMisspelt(object: JsonObject, { exact, folded }: DefinedMembers): boolean {
  for (const name in object) {
    if (!exact.has(name) && folded.has(foldName(name))) return true;
  }
  return false;
}
