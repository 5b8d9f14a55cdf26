// Reads and changes the little of a message that a channel needs to know: its kind, its id, its token, and the
// version in a handshake. Pure.
// Source: MCP 2024-11-05, lifecycle; JSON-RPC 2.0.

import { MAX_JSON_DEPTH, readJsonText, spanOf } from '../../mcp/json.js';
import { isObject, type Json, type JsonObject, type RequestId } from '../../mcp/message.js';
import { changeMembers } from '../../mcp/translate/members.js';
import { LEGACY_SSE_VERSION } from '../../mcp/versions.js';

/** A message of the gateway's own, or of a client, as far as a channel reads it. */
export type SentMessage = {
  readonly method: string | undefined;
  /** Absent in what is not answered. */
  readonly id: RequestId | undefined;
  readonly params: JsonObject;
};

/** What a server says of itself needs no more. */
const HANDSHAKE_CAPS = { maxDepth: MAX_JSON_DEPTH, maxValues: 10_000 };

/** Reads a message that was admitted, or made here. */
export function readSent(text: string): SentMessage {
  const reading = readJsonText(text);
  const value = reading.ok && isObject(reading.value) ? reading.value : {};
  const { method, id, params } = value as { readonly [name: string]: Json | undefined };
  const isAnswered = typeof method === 'string' && isId(id);
  return {
    method: typeof method === 'string' ? method : undefined,
    id: isAnswered ? id : undefined,
    params: isObject(params) ? params : {},
  };
}

/** The token under which a request asks for its progress. */
export function tokenIn({ params }: SentMessage): RequestId | undefined {
  const meta = params['_meta'];
  const token = isObject(meta) ? meta['progressToken'] : undefined;
  return isId(token) ? token : undefined;
}

/** A handshake in the version of channels. */
export function requestLegacySseVersion(text: string): string {
  return spanOf(text, ['params']) === undefined
    ? text
    : changeMembers(text, { path: ['params'], set: { protocolVersion: LEGACY_SSE_VERSION } });
}

/** The answer to a handshake: in the version that was asked for where the server speaks that of channels. */
export function withVersion(text: string, asked: Json | undefined): string {
  const reading = readJsonText(text, HANDSHAKE_CAPS);
  const result = reading.ok && isObject(reading.value) ? reading.value['result'] : undefined;
  if (!isObject(result) || result['protocolVersion'] !== LEGACY_SSE_VERSION) return text;
  return changeMembers(text, { path: ['result'], set: { protocolVersion: asked ?? null } });
}

/** A message that is an answer; `undefined` for a notice or a question. */
export function readResponse(
  text: string,
): { readonly text: string; readonly isResult: boolean } | undefined {
  const reading = readJsonText(text, HANDSHAKE_CAPS);
  if (!reading.ok || !isObject(reading.value) || 'method' in reading.value) return undefined;
  return { text, isResult: isObject(reading.value['result']) };
}

function isId(value: Json | undefined): value is RequestId {
  return typeof value === 'string' || typeof value === 'number';
}
