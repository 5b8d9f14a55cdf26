// The stateless era, 2026-07-28: every request names its version and capabilities in `_meta`, and
// headers that mirror the body. Body and headers must agree; nothing here ever picks one of the two.
// Source: MCP 2026-07-28, base protocol (`_meta`), transports (standard request headers), versioning.

import type { ProtocolError } from '../admitted-request.js';
import { type CapabilityCut, type CutTerms, cutCapabilities } from '../capabilities.js';
import {
  type ErrorContext,
  headerMismatch,
  INVALID_PARAMS,
  invalidParams,
  METHOD_NOT_FOUND,
  UNSUPPORTED_VERSION,
  unsupportedVersion,
} from '../errors.js';
import { type HeaderMap, matchesName, matchesPlain } from '../headers.js';
import { isObject, type JsonObject, type Message, type RpcError } from '../jsonrpc.js';
import { LOG_LEVELS } from '../params.js';
import { STATELESS_VERSIONS } from './revisions.js';

// The errors of the stateless era: which HTTP status belongs to which code, so that a client of two eras
// knows what it has reached, and which codes such a server may not use. Values only.
// Source: MCP 2026-07-28, transports (HTTP status codes), error codes, backward compatibility.

const OK = 200;
const BAD_REQUEST = 400;
const SERVER_ERROR = 500;

const STATUSES: ReadonlyMap<number, number> = new Map([
  [-32020, BAD_REQUEST],
  [-32021, BAD_REQUEST],
  [UNSUPPORTED_VERSION, BAD_REQUEST],
  [METHOD_NOT_FOUND, 404],
]);
/** Not found, in session eras. */
const RESOURCE_NOT_FOUND = -32002;

/**
 * The status of an answer: where the specification fixes one, that one; else what came, unless a client
 * would take it for the answer of another era.
 */
export function statusOfResponse(status: number, code: number | undefined): number {
  if (code === undefined) return OK;
  const fixed = STATUSES.get(code);
  if (fixed !== undefined) return fixed;
  return status === BAD_REQUEST || status >= SERVER_ERROR ? status : OK;
}

/** What is made of an error: the code that this era has for it, and the versions that may be offered. */
export function repairOf(error: RpcError): {
  readonly code: number;
  readonly supported?: readonly string[];
} {
  const { code, data } = error;
  if (code === RESOURCE_NOT_FOUND) return { code: INVALID_PARAMS };
  if (code !== UNSUPPORTED_VERSION || !isObject(data)) return { code };
  const offered = data['supported'];
  if (!Array.isArray(offered)) return { code };
  // An era that is not policed here is not offered here.
  const supported = STATELESS_VERSIONS.filter((version) => offered.includes(version));
  return supported.length === offered.length ? { code } : { code, supported };
}

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
