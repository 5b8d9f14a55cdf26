// Walks the JSON text of a message for inspection, and knows what of it is content: which members of MCP messages are
// exempt, where the text is that clients show, and whose names are the protocol's. Every other string and member name of a
// message towards a client is inspected. The walk reports each with its span, so that a visitor can replace one without
// touching the bytes next to it; it never builds a value and never recurses.
// Source: RFC 8259; MCP 2025-11-25 and 2026-07-28, base protocol, tools, resources, prompts, pagination, logging,
// caching; RFC 5424 §6.2.1.

import { isOwnMember } from '../protocol/capabilities.js';
import { isObject, isRequestId, type Json, type JsonObject } from '../protocol/jsonrpc.js';
import { CACHEABLE, isDefinedMethod, LIST_MEMBERS } from '../protocol/methods.js';
import { LOG_LEVELS } from '../protocol/params.js';
import {
  LEGACY_SSE_VERSION,
  SESSION_VERSIONS,
  STATELESS_VERSIONS,
} from '../protocol/versions/revisions.js';
import { foldName } from '../text/json-members.js';

/** Whether a path lies in structured content, at any depth. */
export function isStructured(steps: readonly (string | number)[]): boolean {
  return steps[0] === 'result' && steps[1] === 'structuredContent';
}

/**
 * Whether a path leads to a member that only the gateway writes: one with its own prefix in `_meta`, at any depth, or in
 * the data of an error. Structured content belongs to the tool, and hosts read no annotations there.
 */
export function isReserved(steps: readonly (string | number)[]): boolean {
  const name = steps.at(-1);
  if (typeof name !== 'string' || !isOwnMember(name)) return false;
  const holder = steps.at(-2);
  if (typeof holder !== 'string' || isStructured(steps)) return false;
  return foldName(holder) === META || (steps.length === 3 && steps[0] === 'error');
}

/** The object or array that a text encodes, if it is JSON. */
export function parseContainer(text: string): Json | undefined {
  const first = text.trimStart()[0];
  if (first !== '{' && first !== '[') return undefined;
  try {
    const value: Json = JSON.parse(text);
    return value;
  } catch {
    return undefined;
  }
}

/** The value at a path, or undefined where there is none. */
export function valueAt(value: Json, steps: readonly (string | number)[]): Json | undefined {
  let at: Json | undefined = value;
  for (const step of steps) {
    if (Array.isArray(at) && typeof step === 'number') at = at[step];
    else if (isObject(at) && typeof step === 'string' && Object.hasOwn(at, step)) at = at[step];
    else return undefined;
  }
  return at;
}

/** The last member name on a path. For a value in an array this is the name of the array. */
export function nearestName(steps: readonly (string | number)[]): string | undefined {
  for (let at = steps.length - 1; at >= 0; at--) {
    const step = steps[at];
    if (typeof step === 'string') return step;
  }
  return undefined;
}

/** An exempt member and where it occurs: in the envelope, or in the `params` or `result` of certain methods. */
type ExemptMember = {
  readonly holder: 'envelope' | 'params' | 'result';
  readonly member: string;
  /** The methods that define the member; for a result, those of its request. Absent: all messages. */
  readonly of?: ReadonlySet<string>;
  readonly isShaped: (value: Json) => boolean;
};

function oneOf(values: Iterable<Json | undefined>): ExemptMember['isShaped'] {
  const known: ReadonlySet<Json | undefined> = new Set(values);
  return (value) => known.has(value);
}

const MAX_CURSOR_CHARS = 4096;
const PRINTABLE = /^[\x20-\x7e]*$/;

function isCursor(value: Json): boolean {
  return typeof value === 'string' && value.length <= MAX_CURSOR_CHARS && PRINTABLE.test(value);
}

const PAGINATED_METHODS: ReadonlySet<string> = new Set([...LIST_MEMBERS.keys(), 'tasks/list']);
const VERSIONS = [LEGACY_SSE_VERSION, ...SESSION_VERSIONS, ...STATELESS_VERSIONS];

// The only members that are not content. An exemption holds only where the member is defined and only for a value
// of the defined shape: ids and tokens that the client chose or the gateway replaces, cursors that the client
// returns unchanged, and the fixed values of the protocol.
const EXEMPT_MEMBERS: readonly ExemptMember[] = [
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
  { holder: 'result', member: 'nextCursor', of: PAGINATED_METHODS, isShaped: isCursor },
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
 * The members of this message that are exempt from inspection, as JSON pointers. Without `requestMethod`, the
 * method of the request that a result belongs to, no member is exempt that only some results define.
 */
export function exemptIn(message: Json, requestMethod: string | undefined): ReadonlySet<string> {
  const exempt = new Set<string>();
  if (!isObject(message)) return exempt;
  for (const row of EXEMPT_MEMBERS) {
    if (!isExempt(message, row, requestMethod)) continue;
    const { holder, member } = row;
    exempt.add(holder === 'envelope' ? `/${member}` : `/${holder}/${member}`);
  }
  return exempt;
}

function isExempt(
  message: JsonObject,
  { holder, member, of, isShaped }: ExemptMember,
  requestMethod: string | undefined,
): boolean {
  const envelopeMember = holder === 'envelope' ? message : message[holder];
  if (!isObject(envelopeMember) || !Object.hasOwn(envelopeMember, member)) return false;
  const value = envelopeMember[member];
  return value !== undefined && isShaped(value) && isDefinedFor(of, message, holder, requestMethod);
}

function isDefinedFor(
  of: ExemptMember['of'],
  message: JsonObject,
  holder: ExemptMember['holder'],
  requestMethod: string | undefined,
): boolean {
  if (of === undefined) return true;
  const method = holder === 'result' ? requestMethod : message['method'];
  return typeof method === 'string' && of.has(method);
}

/** Members below which the server, a tool or the user chooses the names. Clients show no icons found there. */
const FREE_FORM_MEMBERS: ReadonlySet<string | number> = new Set([
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
/** The member of `_meta` in which a server of the stateless era (2026-07-28) describes itself. */
const SERVER_INFO = 'io.modelcontextprotocol/serverInfo';

/** Whether names below this step of a path are not the protocol's. `parentStep` is the preceding step. */
export function isFreeForm(
  step: string | number,
  parentStep: string | number | undefined,
): boolean {
  // The server chooses the keys of input requests, and may choose the name of one of these members.
  if (parentStep === 'inputRequests') return false;
  return FREE_FORM_MEMBERS.has(step) || (parentStep === META && step !== SERVER_INFO);
}

/** Whether a member at this path is the protocol's, by the names above it: an icon, or a member of a content block. */
export function isProtocolPlace(path: readonly (string | number)[]): boolean {
  return !path.some((step, at) => isFreeForm(step, path[at - 1]));
}

/**
 * Bounds of a walk. A walk beyond any of them ends with `too-large`. A string counts once for each {@link FREE_LEVELS}
 * levels that it is nested in, because its path may be kept.
 */
export type WalkCaps = { readonly maxDepth: number; readonly maxStrings: number };

/** One leaf. `steps` is its live path (for a name, the path of its member) and must be copied to be kept. */
export type Leaf = {
  readonly kind: 'name' | 'string' | 'number';
  /** Span of the token, quotes included. */
  readonly start: number;
  readonly end: number;
  /** The decoded string, or the literal of a number. */
  readonly value: string;
  readonly steps: readonly (string | number)[];
};

const FREE_LEVELS = 64;

type WalkState = {
  readonly text: string;
  readonly visit: (leaf: Leaf) => void;
  readonly steps: (string | number)[];
  /** Whether the innermost container is an object and the next string is a member name. */
  awaitsName: boolean;
  strings: number;
};

/** Visits the leaves in order. The text must be valid JSON. */
export function walkJson(
  text: string,
  caps: WalkCaps,
  visit: (leaf: Leaf) => void,
): 'done' | 'too-large' {
  const state: WalkState = { text, visit, steps: [], awaitsName: false, strings: 0 };
  for (let at = 0; at < text.length; ) {
    at = readToken(state, at);
    if (state.steps.length > caps.maxDepth || state.strings > caps.maxStrings) return 'too-large';
  }
  return 'done';
}

function readToken(state: WalkState, at: number): number {
  const code = state.text.charCodeAt(at);
  if (code === 0x22) return readString(state, at);
  if (code === 0x2d || (code >= 0x30 && code <= 0x39)) return readNumber(state, at);
  if (code === 0x7b || code === 0x5b) openContainer(state, code === 0x7b);
  else if (code === 0x7d || code === 0x5d) state.steps.pop();
  else if (code === 0x2c) nextElement(state);
  return at + 1;
}

function openContainer(state: WalkState, isObjectStart: boolean): void {
  state.steps.push(isObjectStart ? '' : 0);
  state.awaitsName = isObjectStart;
}

function nextElement(state: WalkState): void {
  const last = state.steps.length - 1;
  const step = state.steps[last];
  if (typeof step === 'number') state.steps[last] = step + 1;
  state.awaitsName = typeof step === 'string';
}

function countOf({ steps }: WalkState): number {
  return 1 + Math.floor(steps.length / (FREE_LEVELS + 1));
}

function readString(state: WalkState, start: number): number {
  const { text } = state;
  const end = stringEnd(text, start);
  const raw = text.slice(start + 1, end - 1);
  const value: string = raw.includes('\\') ? JSON.parse(text.slice(start, end)) : raw;
  state.strings += countOf(state);
  const isName = state.awaitsName && typeof state.steps.at(-1) === 'string';
  if (isName) {
    state.steps[state.steps.length - 1] = value;
    state.awaitsName = false;
  }
  state.visit({ kind: isName ? 'name' : 'string', start, end, value, steps: state.steps });
  return end;
}

function stringEnd(text: string, start: number): number {
  for (let at = start + 1; ; ) {
    const quote = text.indexOf('"', at);
    if (quote < 0) return text.length;
    let slashes = 0;
    while (text.charCodeAt(quote - slashes - 1) === 0x5c) slashes++;
    if (slashes % 2 === 0) return quote + 1;
    at = quote + 1;
  }
}

const NUMBER = /[-+0-9.eE]{1,4096}/y;

function readNumber(state: WalkState, start: number): number {
  NUMBER.lastIndex = start;
  const value = NUMBER.exec(state.text)?.[0] ?? '';
  const end = start + Math.max(1, value.length);
  state.strings += countOf(state);
  state.visit({ kind: 'number', start, end, value, steps: state.steps });
  return end;
}

/** End of the value of the member name that ends at `nameEnd`, including the white space after it. */
export function valueEnd(text: string, nameEnd: number): number {
  let depth = 0;
  let at = nameEnd;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    if (depth === 0 && (code === 0x2c || code === 0x7d)) return at;
    depth += nestingOf(code);
    at = code === 0x22 ? stringEnd(text, at) : at + 1;
  }
  return at;
}

function nestingOf(code: number): number {
  if (code === 0x7b || code === 0x5b) return 1;
  return code === 0x7d || code === 0x5d ? -1 : 0;
}
