// Filters the responses to `initialize` and `server/discover`: only carried capabilities, only versions that the
// gateway enforces policy for, and instructions only as approved.
// Source: MCP 2025-11-25, lifecycle; MCP 2026-07-28, server/discover; docs/contract.md §5 (instructions).

import type { Finding } from '../policy/record.js';
import { removeMember, setMember, setPrivate } from '../protocol/json/json.js';
import { isObject, type Json, type JsonObject } from '../protocol/jsonrpc.js';
import { hasRemoteIcons, valueAt } from './message-fields.js';
import type { Profile } from './profiles.js';
import type { InspectionInput, InspectionOutcome, WithholdReason } from './responses.js';

export type HandshakeInput = {
  readonly text: string;
  readonly value: Json;
  readonly method: 'initialize' | 'server/discover';
  readonly profile: Profile;
  /** Versions of this era that both the gateway and the upstream support. */
  readonly carriedVersions: readonly string[];
  /** The approved text. Undefined where none was approved or where the caller may list nothing. */
  readonly instructions: string | undefined;
  readonly listTtlMs: number;
  /** The capability filter of the era (protocol/capabilities.ts). */
  filterCapabilities(capabilities: JsonObject): JsonObject;
};

export type HandshakeOutcome =
  | {
      readonly kind: 'passed';
      /** Equal to the input where nothing had to change. */
      readonly text: string;
      readonly findings: readonly Finding[];
      /** True where instructions other than the approved ones arrived and were removed. */
      readonly hadOtherInstructions: boolean;
    }
  | {
      readonly kind: 'withhold';
      readonly reason: WithholdReason | 'upstream-protocol';
      readonly findings: readonly Finding[];
    };

/** A response reduced to what is carried, with the text that still has to be inspected. */
export type FilteredHandshake = {
  readonly kind: 'filtered';
  readonly inspectionInput: InspectionInput;
  readonly hadOtherInstructions: boolean;
};

/** Combines a filtered handshake with the outcome of its inspection. */
export function completeHandshake(
  { inspectionInput, hadOtherInstructions }: FilteredHandshake,
  inspected: InspectionOutcome,
): HandshakeOutcome {
  if (inspected.kind === 'withhold') return inspected;
  const text = inspected.kind === 'changed' ? inspected.text : inspectionInput.text;
  return { kind: 'passed', text, findings: inspected.findings, hadOtherInstructions };
}

/** Filters a handshake response, uninspected. `upstream-protocol` where it names no carried version. */
export function reduceHandshake(
  input: HandshakeInput,
): FilteredHandshake | Extract<HandshakeOutcome, { readonly kind: 'withhold' }> {
  const result = valueAt(input.value, ['result']);
  const text = isObject(result) ? withCarriedVersions(input, result) : undefined;
  if (!isObject(result) || text === undefined) {
    return { kind: 'withhold', reason: 'upstream-protocol', findings: [] };
  }
  const instructions = result['instructions'];
  const isApproved = instructions !== undefined && instructions === input.instructions;
  let filtered = filterMembers(input, text, result);
  if (instructions !== undefined && !isApproved) {
    filtered = removeMember(filtered, ['result'], 'instructions');
  }
  const inspectionInput = {
    text: filtered,
    value: JSON.parse(filtered),
    profile: input.profile,
    approved: isApproved ? ['/result/instructions'] : [],
    requestMethod: input.method,
  };
  return {
    kind: 'filtered',
    inspectionInput,
    hadOtherInstructions: instructions !== undefined && !isApproved,
  };
}

/** The text reduced to carried versions, or undefined where none is left. */
function withCarriedVersions(input: HandshakeInput, result: JsonObject): string | undefined {
  const { text, method, carriedVersions } = input;
  if (method === 'initialize') {
    const version = result['protocolVersion'];
    return typeof version === 'string' && carriedVersions.includes(version) ? text : undefined;
  }
  const versions = result['supportedVersions'];
  if (!Array.isArray(versions)) return undefined;
  const carried = versions.filter(
    (version: Json): version is string =>
      typeof version === 'string' && carriedVersions.includes(version),
  );
  if (carried.length === 0) return undefined;
  if (carried.length === versions.length) return text;
  return setMember(text, ['result'], 'supportedVersions', carried);
}

function filterMembers(input: HandshakeInput, text: string, result: JsonObject): string {
  let filtered = text;
  const capabilities = isObject(result['capabilities']) ? result['capabilities'] : {};
  const kept = input.filterCapabilities(capabilities);
  if (JSON.stringify(kept) !== JSON.stringify(result['capabilities'])) {
    filtered = setMember(filtered, ['result'], 'capabilities', kept);
  }
  if (input.method === 'server/discover') filtered = setPrivate(filtered, result, input.listTtlMs);
  for (const path of SERVER_INFO_PATHS) {
    const holder = valueAt(result, path.slice(1));
    if (isObject(holder) && hasRemoteIcons(holder))
      filtered = removeMember(filtered, path, 'icons');
  }
  return filtered;
}

const SERVER_INFO_PATHS: readonly (readonly string[])[] = [
  ['result', 'serverInfo'],
  ['result', '_meta', 'io.modelcontextprotocol/serverInfo'],
];
