// The stateless era, 2026-07-28: every request names its version and capabilities in `_meta`, and
// headers that mirror the body. Body and headers must agree; nothing here ever picks one of the two.
// Source: MCP 2026-07-28, base protocol (`_meta`), transports (standard request headers), versioning.

import type { ProtocolError } from '../admitted.js';
import { type ErrorContext, headerMismatch, invalidParams, unsupportedVersion } from '../faults.js';
import { type HeaderMap, matchesName, matchesPlain } from '../headers.js';
import { isObject, type JsonObject, type Message } from '../message.js';
import { LOG_LEVELS } from '../params.js';
import { type CapabilityCut, type CutTerms, cutCapabilities } from '../removal.js';
import { STATELESS_VERSIONS } from '../versions.js';

const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';
export const CAPABILITIES_KEY = 'io.modelcontextprotocol/clientCapabilities';
const LOG_LEVEL_KEY = 'io.modelcontextprotocol/logLevel';

/** Where a stateless request tells the name and version of its client. */
export const CLIENT_INFO_KEY = 'io.modelcontextprotocol/clientInfo';

const ENVELOPE_KEYS = [VERSION_KEY, CAPABILITIES_KEY, CLIENT_INFO_KEY, LOG_LEVEL_KEY];

/** What Mcp-Name mirrors; on other methods it has no source and must be absent. */
export const NAME_SOURCES: ReadonlyMap<string, 'name' | 'uri' | 'taskId'> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
]);

type Call = Extract<Message, { readonly kind: 'request' | 'notification' }>;

/**
 * True when a body or its version header claims this era. A server that decides by either must never
 * see a message that was judged by the rules of another era.
 */
export function claimsStateless(meta: JsonObject | undefined, headers: HeaderMap): boolean {
  const header = headers['mcp-protocol-version']?.trim();
  if (header !== undefined && STATELESS_VERSIONS.includes(header)) return true;
  return meta !== undefined && ENVELOPE_KEYS.some((key) => Object.hasOwn(meta, key));
}

/**
 * Checks what every message of this era must show: one version in body and header, no session, the
 * method mirrored, the required members of `_meta`.
 *
 * @returns the version, or the first fault in the order of the specification's error map.
 */
export function checkStateless(
  call: Call,
  meta: JsonObject | undefined,
  headers: HeaderMap,
  supported: readonly string[],
  errorContext: ErrorContext,
): { readonly kind: 'stateless'; readonly version: string } | ProtocolError {
  if (headers['mcp-session-id'] !== undefined) {
    return headerMismatch(errorContext, 'A stateless request may not name a session.');
  }
  const version = meta?.[VERSION_KEY];
  if (typeof version !== 'string') {
    return invalidParams(errorContext, '_meta must name the protocol version.');
  }
  if (!matchesPlain(headers['mcp-protocol-version'], version)) {
    return headerMismatch(
      errorContext,
      'MCP-Protocol-Version is missing or differs from the body.',
    );
  }
  if (!STATELESS_VERSIONS.includes(version))
    return unsupportedVersion(errorContext, version, supported);
  if (call.kind === 'request' && !matchesPlain(headers['mcp-method'], call.method)) {
    return headerMismatch(errorContext, 'Mcp-Method is missing or differs from the body.');
  }
  return checkEnvelope(meta, errorContext) ?? { kind: 'stateless', version };
}

/**
 * Checks that `Mcp-Name` is there exactly where the body has a name to mirror, and equals it.
 * Source: MCP 2026-07-28, transports, standard request headers.
 */
export function checkNameHeader(
  method: string,
  params: JsonObject | undefined,
  headers: HeaderMap,
  errorContext: ErrorContext,
): ProtocolError | undefined {
  const source = NAME_SOURCES.get(method);
  const header = headers['mcp-name'];
  if (source === undefined) {
    return header === undefined
      ? undefined
      : headerMismatch(errorContext, 'Mcp-Name has no source in the body.');
  }
  const name = params?.[source];
  return typeof name === 'string' && matchesName(header, name)
    ? undefined
    : headerMismatch(errorContext, 'Mcp-Name is missing or differs from the body.');
}

/** The edits of a stateless request: its capabilities that are not carried or not granted. */
export function cutStateless(
  text: string,
  meta: JsonObject | undefined,
  terms: CutTerms,
): CapabilityCut {
  const path = ['params', '_meta', CAPABILITIES_KEY];
  return cutCapabilities(text, path, meta?.[CAPABILITIES_KEY], terms);
}

function checkEnvelope(
  meta: JsonObject | undefined,
  errorContext: ErrorContext,
): ProtocolError | undefined {
  if (!isObject(meta?.[CAPABILITIES_KEY])) {
    return invalidParams(errorContext, '_meta must hold the capabilities of the client.');
  }
  const client = meta?.[CLIENT_INFO_KEY];
  if (client !== undefined && !isObject(client)) {
    return invalidParams(errorContext, 'clientInfo must be an object.');
  }
  const level = meta?.[LOG_LEVEL_KEY];
  if (level !== undefined && !LOG_LEVELS.has(level)) {
    return invalidParams(errorContext, 'logLevel is not a log level.');
  }
  return undefined;
}
