// The one table of members that are not content, each with the messages that define it and the shape that it
// has there. A member that stands anywhere else, or holds anything else, is text and inspected as such.
// Source: MCP 2025-11-25 and 2026-07-28, base protocol, pagination, logging, caching; RFC 5424 §6.2.1.

import { isObject, isRequestId, type Json, type JsonObject } from '../protocol/jsonrpc.js';
import { isDefinedMethod } from '../protocol/methods.js';
import { LOG_LEVELS } from '../protocol/params.js';
import {
  LEGACY_SSE_VERSION,
  SESSION_VERSIONS,
  STATELESS_VERSIONS,
} from '../protocol/versions/revisions.js';

// Where in a message a reader finds text that is read as one. Every string and every member name of a message
// towards a client is inspected, but for the few members of exempt.ts.
// Source: MCP 2025-11-25 and 2026-07-28, base protocol, tools, resources, prompts.

/** A path as a JSON pointer (RFC 6901). */
export function pointerOf(steps: readonly (string | number)[]): string {
  let pointer = '';
  for (const step of steps) {
    pointer += `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`;
  }
  return pointer;
}

/** The text of a block, an error, a progress note, a log line or a task: what a reader reads as one text. */
export function isReaderText(steps: readonly (string | number)[]): boolean {
  const last = steps.at(-1);
  if (last === 'statusMessage') return isOfTask(steps);
  if (steps.length === 2) {
    if (steps[0] === 'error') return last === 'message';
    return steps[0] === 'params' && (last === 'message' || last === 'data');
  }
  return last === 'text' && steps[0] === 'result' && steps[1] !== 'structuredContent';
}

/** How a task stands, alone, within the answer that began it, or in a list. */
function isOfTask([holder, member, ...rest]: readonly (string | number)[]): boolean {
  if (rest.length === 0) return holder === 'result' || holder === 'params';
  if (holder !== 'result') return false;
  return rest.length === 1 ? member === 'task' : rest.length === 2 && member === 'tasks';
}

/** True for strings of structured content, at any depth. */
export function isStructured(steps: readonly (string | number)[]): boolean {
  return steps[0] === 'result' && steps[1] === 'structuredContent';
}

/** The value at a path; undefined where there is none. */
export function valueAt(value: Json, steps: readonly (string | number)[]): Json | undefined {
  let at: Json | undefined = value;
  for (const step of steps) {
    if (Array.isArray(at) && typeof step === 'number') at = at[step];
    else if (isObject(at) && typeof step === 'string' && Object.hasOwn(at, step)) at = at[step];
    else return undefined;
  }
  return at;
}

/** The last member name on a path: what a value in an array stands behind. */
export function nearestName(steps: readonly (string | number)[]): string | undefined {
  for (let at = steps.length - 1; at >= 0; at--) {
    const step = steps[at];
    if (typeof step === 'string') return step;
  }
  return undefined;
}

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

// Icons that a client would fetch from elsewhere, or that may hold script, wherever a message may have icons.
// What a server, a tool or a user is free to fill as it likes has none that a client shows.
// Source: MCP 2025-11-25, base protocol (icons).

export const ICONS = 'icons';

const QUIET_ICON = /^data:image\/(?:png|jpe?g|gif|webp);base64,[A-Za-z0-9+/]*={0,2}$/;

/** True for an object with icons of which not all are pictures in data URLs. */
export function hasRemoteIcons(holder: { readonly [name: string]: Json }): boolean {
  const icons = holder[ICONS];
  return icons !== undefined && areRemote(icons);
}

/** True for a value of `icons` that is anything but a list of pictures in data URLs. */
export function areRemote(icons: Json): boolean {
  if (!Array.isArray(icons)) return true;
  return !icons.every((icon: Json) => {
    const source = isObject(icon) ? icon['src'] : undefined;
    return typeof source === 'string' && QUIET_ICON.test(source);
  });
}

/** Members below which names are not the protocol's: schemas, arguments, and what a tool or a log tells. */
const FREE: ReadonlySet<string | number> = new Set([
  'structuredContent',
  'inputSchema',
  'outputSchema',
  'requestedSchema',
  'arguments',
  'input',
  'metadata',
  'data',
]);
const META = '_meta';
/** The member of `_meta` in which a server of 2026 names itself. */
const SERVER_INFO = 'io.modelcontextprotocol/serverInfo';

/** Whether names below this step of a path are nobody's but their author's; `above` is the step before it. */
export function isFree(step: string | number, above: string | number | undefined): boolean {
  return FREE.has(step) || (above === META && step !== SERVER_INFO);
}

/** Whether a member called `icons` is one of the protocol, by its path. */
export function isProtocolIcons(path: readonly (string | number)[]): boolean {
  return !path.some((step, at) => isFree(step, path[at - 1]));
}
