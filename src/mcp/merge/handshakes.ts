// Makes one handshake out of those of several members: what any of them can, in words that say whose
// instructions are whose. Reads answers that were filtered; what is not named here is not declared.
// Source: MCP 2025-11-25, lifecycle; MCP 2026-07-28, server/discover.

import { servesApps } from '../apps.js';
import { writeExtensions } from '../capabilities.js';
import { isObject, type Json, type JsonObject, type RequestId } from '../message.js';
import { declaresTasks, readTaskUses, writeTaskUses } from '../tasks.js';
import type { Backend } from './prefixes.js';

/** A member's answer to a handshake. */
export type BackendHandshake = { readonly backend: Backend; readonly result: JsonObject };

/** What the endpoint says of itself. */
export type ServerName = { readonly name: string; readonly version: string };

const PLAIN = ['completions', 'logging'];
const WITH_LIST = ['prompts', 'resources', 'tools'];
const SERVER_INFO_KEY = 'io.modelcontextprotocol/serverInfo';

/** The result of an answer, `undefined` where it is an error. */
export function resultOf(text: string): JsonObject | undefined {
  const message: Json = JSON.parse(text);
  const result = isObject(message) ? message['result'] : undefined;
  return isObject(result) ? result : undefined;
}

/**
 * The version of a session with all of them: the oldest that a member answered, because what a client says in
 * it every member understands. Revisions are dates, so they compare as text.
 */
export function oldestVersion(handshakes: readonly BackendHandshake[]): string | undefined {
  const versions = handshakes.flatMap(({ result }) => {
    const version = result['protocolVersion'];
    return typeof version === 'string' ? [version] : [];
  });
  return versions.sort()[0];
}

/** The answer to `initialize`. */
export function joinInitialize(
  handshakes: readonly BackendHandshake[],
  { id, version, server }: { id: RequestId; version: string; server: ServerName },
): string {
  const result = {
    protocolVersion: version,
    capabilities: joinCapabilities(handshakes),
    serverInfo: server,
    ...instructionsOf(handshakes),
  };
  return JSON.stringify({ jsonrpc: '2.0', id, result });
}

/** The answer to `server/discover`: the versions that all of them carry. */
export function joinDiscover(
  handshakes: readonly BackendHandshake[],
  { id, server, isWhole: isComplete }: { id: RequestId; server: ServerName; isWhole: boolean },
): string {
  const times = handshakes.map(({ result }) => result['ttlMs']);
  const ttlMs = Math.min(...times.map((time) => (typeof time === 'number' ? time : 0)));
  const result = {
    supportedVersions: sharedVersions(handshakes),
    capabilities: joinCapabilities(handshakes),
    ...instructionsOf(handshakes),
    resultType: 'complete',
    cacheScope: 'private',
    ttlMs: isComplete ? ttlMs : 0,
    _meta: { [SERVER_INFO_KEY]: server },
  };
  return JSON.stringify({ jsonrpc: '2.0', id, result });
}

function sharedVersions(handshakes: readonly BackendHandshake[]): readonly string[] {
  const [first = [], ...rest] = handshakes.map(({ result }) =>
    textsOf(result['supportedVersions']),
  );
  return first.filter((version) => rest.every((versions) => versions.includes(version)));
}

function textsOf(value: Json | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : [];
}

/** What any of them can. Changes of lists are always told: the gateway itself tells of them. */
function joinCapabilities(handshakes: readonly BackendHandshake[]): JsonObject {
  const declared = handshakes.flatMap(({ result }) => {
    const capabilities = result['capabilities'];
    return isObject(capabilities) ? [capabilities] : [];
  });
  const joined: Record<string, Json> = {};
  for (const name of PLAIN) if (declared.some((one) => isObject(one[name]))) joined[name] = {};
  for (const name of WITH_LIST) {
    const lists = declared.flatMap((one) => (isObject(one[name]) ? [one[name]] : []));
    if (lists.length === 0) continue;
    const maySubscribe = lists.some((one) => isObject(one) && one['subscribe'] === true);
    joined[name] = maySubscribe ? { subscribe: true, listChanged: true } : { listChanged: true };
  }
  const uses = new Set(declared.flatMap(readTaskUses));
  if (uses.size > 0) joined['tasks'] = writeTaskUses([...uses]);
  const extensions = writeExtensions(declared.some(declaresTasks), declared.some(servesApps));
  return { ...joined, ...extensions };
}

/** Each member's approved instructions under a heading that says which names they speak of. */
function instructionsOf(handshakes: readonly BackendHandshake[]): { instructions?: string } {
  const parts = handshakes.flatMap(({ backend, result }) => {
    const instructions = result['instructions'];
    if (typeof instructions !== 'string' || instructions === '') return [];
    return [`# ${backend.upstream} (its names begin with ${backend.prefix})\n\n${instructions}`];
  });
  return parts.length === 0 ? {} : { instructions: parts.join('\n\n') };
}
