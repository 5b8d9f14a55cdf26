// Knows what of a message is content: which members of MCP messages are exempt from inspection, and whose names
// are the protocol's. Every other string and member name of a message towards a client is
// inspected.
// Source: RFC 8259; MCP 2025-11-25 and 2026-07-28, base protocol, tools, resources, prompts, pagination, logging,
// caching; RFC 5424 §6.2.1.

import { isOwnMember } from '../protocol/capabilities.js';
import { isObject, isRequestId, type Json, type JsonObject } from '../protocol/jsonrpc.js';
import { CACHEABLE, isDefinedMethod, LIST_MEMBERS } from '../protocol/methods.js';
import { DEFINED_RESULT_MEMBERS, DEFINED_TASK_MEMBERS, LOG_LEVELS } from '../protocol/params.js';
import { LEGACY_SSE_VERSION, SESSION_VERSIONS, STATELESS_VERSIONS } from '../protocol/versions/revisions.js';
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
  readonly methods?: ReadonlySet<string>;
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
    methods: new Set(['notifications/message']),
    isShaped: oneOf(LOG_LEVELS),
  },
  {
    holder: 'params',
    member: 'progressToken',
    methods: new Set(['notifications/progress']),
    isShaped: isRequestId,
  },
  {
    holder: 'params',
    member: 'requestId',
    methods: new Set(['notifications/cancelled']),
    isShaped: isRequestId,
  },
  { holder: 'result', member: 'nextCursor', methods: PAGINATED_METHODS, isShaped: isCursor },
  {
    holder: 'result',
    member: 'protocolVersion',
    methods: new Set(['initialize']),
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
    methods: CACHEABLE,
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
  { holder, member, methods, isShaped }: ExemptMember,
  requestMethod: string | undefined,
): boolean {
  const envelopeMember = holder === 'envelope' ? message : message[holder];
  if (!isObject(envelopeMember) || !Object.hasOwn(envelopeMember, member)) return false;
  const value = envelopeMember[member];
  return value !== undefined && isShaped(value) && isDefinedFor(methods, message, holder, requestMethod);
}

function isDefinedFor(
  methods: ExemptMember['methods'],
  message: JsonObject,
  holder: ExemptMember['holder'],
  requestMethod: string | undefined,
): boolean {
  if (methods === undefined) return true;
  const method = holder === 'result' ? requestMethod : message['method'];
  return typeof method === 'string' && methods.has(method);
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
export function isFreeForm(step: string | number, parentStep: string | number | undefined): boolean {
  // The server chooses the keys of input requests, and may choose the name of one of these members.
  if (parentStep === 'inputRequests') return false;
  return FREE_FORM_MEMBERS.has(step) || (parentStep === META && step !== SERVER_INFO);
}

/** Whether a member at this path is the protocol's, by the names above it: an icon, or a member of a content block. */
export function isProtocolPlace(path: readonly (string | number)[]): boolean {
  return !path.some((step, at) => isFreeForm(step, path[at - 1]));
}

/** Members of the envelope that hold no content of the server. */
const ENVELOPE: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'method', 'result', 'params', 'error']);
const ERROR_MEMBERS: ReadonlySet<string> = new Set(['code', 'message']);
/** Of notifications and of server requests. */
const PARAMS_MEMBERS: ReadonlySet<string> = new Set([
  ...DEFINED_TASK_MEMBERS.exact,
  ...['progressToken', 'progress', 'total', 'message', 'level', 'logger', 'uri', 'requestId', 'reason'],
  ...['mode', 'url', 'elicitationId', 'messages', 'modelPreferences', 'systemPrompt', 'includeContext'],
  ...['temperature', 'maxTokens', 'stopSequences', 'tools', 'toolChoice', 'task', 'notifications'],
]);
/** Of what a result or params consist of: content, messages, tasks, links, definitions. */
const PART_MEMBERS: ReadonlySet<string> = new Set([
  ...DEFINED_TASK_MEMBERS.exact,
  ...['type', 'text', 'data', 'mimeType', 'annotations', 'uri', 'name', 'title', 'description', 'size'],
  ...['icons', 'src', 'sizes', 'theme', 'resource', 'blob', 'audience', 'priority', 'lastModified'],
  ...['role', 'content', 'id', 'toolUseId', 'isError', 'hints', 'costPriority', 'speedPriority'],
  ...['intelligencePriority', 'mode', 'url', 'message', 'elicitationId', 'execution', 'params', 'method'],
  ...PARAMS_MEMBERS,
]);
/**
 * What a member is. `protocol`: MCP defines it, and what is in it. `structured`: the structured content of the result.
 * `data`: content of the server's own form. `added`: a member that no revision defines. `form`: the schema of a form.
 * `schema`: a schema, or a member of `_meta` of a fixed form.
 */
type MemberKind = 'protocol' | 'structured' | 'data' | 'added' | 'form' | 'schema';

const KINDS_BY_PLACE: ReadonlyMap<string, MemberKind> = new Map([
  ['result/structuredContent', 'structured'],
  ['error/data', 'data'],
  ['params/data', 'data'],
]);
/** Wherever the protocol has them. */
const KINDS_BY_NAME: ReadonlyMap<string, MemberKind> = new Map([
  ['structuredContent', 'data'],
  ['metadata', 'data'],
  ['input', 'data'],
  ['arguments', 'data'],
  ['requestedSchema', 'form'],
  ['inputSchema', 'schema'],
  ['outputSchema', 'schema'],
]);

function kindByPlace(path: readonly string[]): MemberKind | undefined {
  return path.length === 2 ? KINDS_BY_PLACE.get(path.join('/')) : undefined;
}

/** No message of any revision has members of the protocol so deep. */
const MAX_PROTOCOL_DEPTH = 12;

/** The kind of the last member of a path of names, where those above it are the protocol's. */
export function memberKindOf(path: readonly string[]): MemberKind {
  if (path.length > MAX_PROTOCOL_DEPTH) return 'added';
  const name = path.at(-1) ?? '';
  const known = kindByParent(name, path.at(-2)) ?? kindByPlace(path) ?? KINDS_BY_NAME.get(name);
  return known ?? (membersAt(path).has(name) ? 'protocol' : 'added');
}

function kindByParent(name: string, parent: string | undefined): MemberKind | undefined {
  if (parent === undefined) return ENVELOPE.has(name) ? 'protocol' : 'added';
  if (parent === META) return isMetaOfProtocol(name) ? 'schema' : 'added';
  // The server chooses the keys of input requests.
  return name === META || parent === 'inputRequests' ? 'protocol' : undefined;
}

function membersAt(path: readonly string[]): ReadonlySet<string> {
  if (path.length > 2) return PART_MEMBERS;
  switch (path[0]) {
    case 'result':
      return RESULT_MEMBERS;
    case 'error':
      return ERROR_MEMBERS;
    default:
      return PARAMS_MEMBERS;
  }
}

const RESULT_MEMBERS: ReadonlySet<string> = new Set([...DEFINED_RESULT_MEMBERS.exact, ...DEFINED_TASK_MEMBERS.exact]);

/** Whether a member of `_meta` is one of MCP's or the gateway's. */
function isMetaOfProtocol(name: string): boolean {
  return name === 'progressToken' || name.startsWith('io.modelcontextprotocol/') || isOwnMember(name);
}

/** Where on a path the protocol's members end: how many steps down, and what the first other member is. */
function endOfProtocol(
  steps: readonly (string | number)[],
): { readonly at: number; readonly kind: MemberKind } | undefined {
  const path: string[] = [];
  for (const [at, step] of steps.entries()) {
    if (typeof step !== 'string') continue;
    path.push(step);
    const kind = memberKindOf(path);
    if (kind !== 'protocol') return { at, kind };
  }
  return undefined;
}

/** Whether a path leads into data of the server: structured content, other data, or a member that it added. */
export function isDataOfServer(steps: readonly (string | number)[]): boolean {
  // Most of a large result.
  if (isStructured(steps)) return true;
  const kind = endOfProtocol(steps)?.kind;
  return kind === 'structured' || kind === 'data' || kind === 'added';
}

/** Whether the name at the end of a path is one that the server chose. */
export function isNameOfServer(steps: readonly (string | number)[]): boolean {
  if (isStructured(steps)) return steps.length > 2;
  const end = endOfProtocol(steps);
  if (end === undefined) return false;
  return end.kind === 'added' || (isDataOfServer(steps) && steps.length > end.at + 1);
}
