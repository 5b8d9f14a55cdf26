// The headers of the stateless era that mirror a body, written from the body: for a message that came
// without them. The counterpart of headers.ts, which compares them.
// Source: MCP 2026-07-28, transports, standard request headers, custom headers and value encoding.

import { argumentAt, decodeHeaderValue, type MirroredParameter, PARAM_PREFIX } from '../headers.js';
import { isObject, type Json, type JsonObject } from '../message.js';

/** A header: lower-case name and value. */
export type HeaderPair = readonly [name: string, value: string];

/** Where the specification has a body name mirrored. */
const NAME_SOURCES: ReadonlyMap<string, 'name' | 'uri'> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
]);
const PLAIN = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
const ENCODED_START = '=?base64?';

/** A value as a header carries it: plain where every reader reads it alike, else its base64 form. */
export function encodeHeaderValue(value: string): string {
  const isPlain = PLAIN.test(value) && !value.startsWith(ENCODED_START);
  if (isPlain && decodeHeaderValue(value) === value) return value;
  let binary = '';
  for (const byte of new TextEncoder().encode(value)) binary += String.fromCharCode(byte);
  return `${ENCODED_START}${btoa(binary)}?=`;
}

/** The headers of a request of the stateless era, `Mcp-Param-*` by what the approved schema mirrors. */
export function statelessHeaders(
  version: string,
  method: string,
  params: JsonObject,
  mirrored: readonly MirroredParameter[],
): readonly HeaderPair[] {
  const headers: HeaderPair[] = [
    ['mcp-protocol-version', version],
    ['mcp-method', method],
  ];
  const name = params[NAME_SOURCES.get(method) ?? ''];
  if (typeof name === 'string') headers.push(['mcp-name', encodeHeaderValue(name)]);
  const args = params['arguments'];
  if (method !== 'tools/call' || !isObject(args)) return headers;
  for (const { header, path } of mirrored) {
    const value = mirrorOf(argumentAt(args, path));
    if (value !== undefined) headers.push([PARAM_PREFIX + header.toLowerCase(), value]);
  }
  return headers;
}

function mirrorOf(value: Json | undefined): string | undefined {
  if (typeof value === 'string') return encodeHeaderValue(value);
  if (typeof value === 'boolean' || Number.isSafeInteger(value)) return String(value);
  return undefined;
}
