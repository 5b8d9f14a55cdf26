// The one table of members that are not content, each with the messages that define it and the shape that it
// has there. A member that stands anywhere else, or holds anything else, is text and inspected as such.
// Source: MCP 2025-11-25 and 2026-07-28, base protocol, pagination, logging, caching; RFC 5424 §6.2.1.

import { isRequestId } from '../mcp/jsonrpc.js';
import { isObject, type Json, type JsonObject } from '../mcp/message.js';
import { isDefinedMethod } from '../mcp/methods.js';
import { LOG_LEVELS } from '../mcp/params.js';
import { LEGACY_SSE_VERSION, SESSION_VERSIONS, STATELESS_VERSIONS } from '../mcp/versions.js';

/** Where a member stands: in the envelope, or in the params or the result of these methods. */
type Row = {
  readonly holder: 'envelope' | 'params' | 'result';
  readonly member: string;
  /** The methods that define it: of a result, those of its request. Absent: every message has it. */
  readonly of?: ReadonlySet<string>;
  readonly isShaped: (value: Json) => boolean;
};

function oneOf(values: Iterable<Json | undefined>): Row['isShaped'] {
  const known: ReadonlySet<Json | undefined> = new Set(values);
  return (value) => known.has(value);
}

const MAX_CURSOR_CHARS = 4096;
const PRINTABLE = /^[\x20-\x7e]*$/;

function isCursor(value: Json): boolean {
  return typeof value === 'string' && value.length <= MAX_CURSOR_CHARS && PRINTABLE.test(value);
}

const PAGING: ReadonlySet<string> = new Set([
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'tasks/list',
]);
const VERSIONS = [LEGACY_SSE_VERSION, ...SESSION_VERSIONS, ...STATELESS_VERSIONS];
/** MCP 2026-07-28, caching: what may be kept, and by whom. */
const CACHEABLE: ReadonlySet<string> = new Set([
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
]);

/**
 * Ids and tokens are those that the client gave, or are replaced by ours; a cursor goes back as it came; the
 * rest are the closed words of the protocol.
 */
const TABLE: readonly Row[] = [
  { holder: 'envelope', member: 'jsonrpc', isShaped: oneOf(['2.0']) },
  { holder: 'envelope', member: 'id', isShaped: isRequestId },
  {
    holder: 'envelope',
    member: 'method',
    isShaped: (value) => typeof value === 'string' && isDefinedMethod(value),
  },
  {
    holder: 'params',
    member: 'level',
    of: new Set(['notifications/message']),
    isShaped: oneOf(LOG_LEVELS),
  },
  {
    holder: 'params',
    member: 'progressToken',
    of: new Set(['notifications/progress']),
    isShaped: isRequestId,
  },
  {
    holder: 'params',
    member: 'requestId',
    of: new Set(['notifications/cancelled']),
    isShaped: isRequestId,
  },
  { holder: 'result', member: 'nextCursor', of: PAGING, isShaped: isCursor },
  {
    holder: 'result',
    member: 'protocolVersion',
    of: new Set(['initialize']),
    isShaped: oneOf(VERSIONS),
  },
  {
    holder: 'result',
    member: 'resultType',
    isShaped: oneOf(['complete', 'input_required', 'task']),
  },
  {
    holder: 'result',
    member: 'cacheScope',
    of: CACHEABLE,
    isShaped: oneOf(['public', 'private']),
  },
];

/**
 * The members of this very message that are not content, as JSON pointers. `answered` is the method of the
 * request that a result answers; where it is not known, none of a result is that only some methods have.
 */
export function exemptIn(message: Json, requestMethod: string | undefined): ReadonlySet<string> {
  const exempt = new Set<string>();
  if (!isObject(message)) return exempt;
  for (const row of TABLE) {
    if (!isExempt(message, row, requestMethod)) continue;
    const { holder, member } = row;
    exempt.add(holder === 'envelope' ? `/${member}` : `/${holder}/${member}`);
  }
  return exempt;
}

function isExempt(
  message: JsonObject,
  { holder, member, of, isShaped }: Row,
  requestMethod: string | undefined,
): boolean {
  const held = holder === 'envelope' ? message : message[holder];
  if (!isObject(held) || !Object.hasOwn(held, member)) return false;
  const value = held[member];
  return value !== undefined && isShaped(value) && isOf(of, message, holder, requestMethod);
}

function isOf(
  of: Row['of'],
  message: JsonObject,
  holder: Row['holder'],
  requestMethod: string | undefined,
): boolean {
  if (of === undefined) return true;
  const method = holder === 'result' ? requestMethod : message['method'];
  return typeof method === 'string' && of.has(method);
}
