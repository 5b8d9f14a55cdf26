// Compares what a definition claims with its name: that it changes nothing, and which scopes it needs.

import type { Json, JsonObject } from '../../protocol/jsonrpc.js';
import { makeVisible } from '../../text/escaping.js';
import { pointerTo } from '../../text/json-pointer.js';
import type { ScannedDefinition, UnnamedFinding } from './finding.js';

const CHANGES =
  /^(?:create|write|update|insert|put|post|set|add|edit|modify|exec|run|move|rename|upload|merge|push)(?:_|-|[A-Z]|$)/;
/** What cannot be taken back, or leaves the server. */
const GRAVE =
  /^(?:delete|remove|drop|destroy|wipe|purge|send|transfer|pay|execute|deploy|kill|revoke|terminate)(?:_|-|[A-Z]|$)/;
const READS =
  /^(?:get|list|read|search|find|fetch|describe|show|count|lookup|view|query)(?:_|-|[A-Z]|$)/;
/** A scope that allows more than reading, by one of its parts. */
const WIDE_SCOPE =
  /(?:^|[.:/_-])(?:write|admin|delete|manage|full|all|\*|readwrite|root|owner|send|modify)(?:$|[.:/_-])/i;
const MAX_DEPTH = 6;
const MAX_EVIDENCE = 200;

/** Claims that do not agree with the name. The annotations of MCP are claims as well. */
export function claimsOf(scanned: ScannedDefinition): readonly UnnamedFinding[] {
  const { definition, kind } = scanned;
  if (typeof definition === 'string' || kind !== 'tool') return [];
  return [...readOnlyClaim(scanned, definition), ...scopeClaims(scanned, definition)];
}

function readOnlyClaim(
  { kind, name }: ScannedDefinition,
  definition: JsonObject,
): UnnamedFinding[] {
  const annotations = definition['annotations'];
  const isReadOnly = isObject(annotations) && annotations['readOnlyHint'] === true;
  if (!isReadOnly || !(CHANGES.test(name) || GRAVE.test(name))) return [];
  return [
    {
      kind: 'false-annotation',
      tier: GRAVE.test(name) ? 'review' : 'note',
      item: { kind, name },
      pointer: '/annotations/readOnlyHint',
      evidence: makeVisible(name).slice(0, MAX_EVIDENCE),
      reason: 'It claims to change nothing, and its name says otherwise.',
    },
  ];
}

/** Scopes for more than reading, required by a tool that only reads by its name. */
function scopeClaims({ kind, name }: ScannedDefinition, definition: JsonObject): UnnamedFinding[] {
  if (!READS.test(name)) return [];
  const scopes: (readonly [string, string])[] = [];
  for (const [member, value] of Object.entries(definition)) {
    if (member !== 'inputSchema' && member !== 'outputSchema') {
      collectScopes(value, member, `/${member}`, MAX_DEPTH, scopes);
    }
  }
  return scopes
    .filter(([, scope]) => WIDE_SCOPE.test(scope))
    .map(([pointer, scope]) => ({
      kind: 'excess-scope',
      tier: 'review',
      item: { kind, name },
      pointer,
      evidence: makeVisible(scope).slice(0, MAX_EVIDENCE),
      reason: 'By its name it reads, and it requires a scope for more than reading.',
    }));
}

/** The scopes below a member that is named after them, with their pointers. */
function collectScopes(
  value: Json | undefined,
  member: string,
  pointer: string,
  depth: number,
  found: (readonly [string, string])[],
): void {
  const isScope = /^(?:required|oauth)?_?scopes?$/i.test(member);
  if (typeof value === 'string') {
    if (isScope) for (const scope of value.split(' ')) found.push([pointer, scope]);
    return;
  }
  if (typeof value !== 'object' || value === null || depth === 0) return;
  for (const [name, inner] of Object.entries(value)) {
    const owner = Array.isArray(value) ? member : name;
    collectScopes(inner, owner, pointerTo(pointer, name), depth - 1, found);
  }
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
