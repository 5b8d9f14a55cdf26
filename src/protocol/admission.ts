// Decides whether what a client sent is one valid message of one era, or an array of messages where a revision has
// them. It is a pure classifier that checks in the order of the functions below and refuses with the error code of
// the era. It never looks at who the caller is, what a policy allows, or what a tool is. The elements of an array are
// handled afterwards as if each had been posted alone.
// Source: MCP 2025-11-25 and 2026-07-28, base protocol, transports and tasks; MCP 2025-03-26, base protocol
// (batching); docs/reference/responses.md.

import type {
  AdmittedMessage,
  EventFacts,
  MethodRule,
  OpenedTask,
  ProtocolError,
  SessionFacts,
  TextEdit,
} from './admitted-request.js';
import { ownMetaEdits } from './capabilities.js';
import { NO_PARAM_HEADERS } from './headers.js';
import { keepExactNumbers } from './json/exact-numbers.js';
import {
  decodeUtf8,
  elementSpans,
  type JsonReading,
  MAX_JSON_DEPTH,
  type ParsedJson,
  parseMessage,
  readJson,
  readJsonText,
  replaceLoneSurrogates,
  spanOf,
} from './json/json.js';
import { isUnboundedNumber, MAX_ID_EXPONENT, MAX_ID_NUMBER_CHARACTERS, renderJson } from './json/request-ids.js';
import { isObject, type Json, type JsonObject, type Message, readEnvelope, type Target } from './jsonrpc.js';
import { findMethod, isDefinedMethod } from './methods.js';
import { cutClientNulls } from './null-members.js';
import { readParams } from './params.js';
import {
  type ErrorContext,
  errorContextOf,
  INVALID_REQUEST,
  invalidMessage,
  invalidParams,
  METHOD_NOT_FOUND,
  PARSE_ERROR,
  protocolErrorOf,
} from './responses.js';
import { isTaskParam } from './tasks.js';
import {
  type AdmissionInput,
  type Call,
  type Classified,
  type ClassifiedCall,
  cutUndefinedParams,
  type SessionCheck,
} from './versions/admission-rules.js';
import { checkRepeated, classify, hasTask, protocolOfCall, protocolOfReply } from './versions/negotiation.js';
import { hasArrays } from './versions/revisions.js';
import { checkSession, unknownSession } from './versions/session.js';
import { CLIENT_INFO_KEY, claimsStateless } from './versions/stateless.js';

/** A client's reply to a server request: a result or an error. */
type Reply = Extract<Message, { readonly kind: 'result' | 'error' }>;

/** Only of use to a server that may request roots. */
const ROOTS_CHANGED = 'notifications/roots/list_changed';

const ARGUMENTS = ['params', 'arguments'];

/**
 * Admits the body of a POST, one message, or an array in the revision that has arrays; or says why not. Pure, except
 * for the ports that open sealed values.
 *
 * @returns the message with its edits, or an error with HTTP status, JSON-RPC code and a text that quotes
 * nothing.
 * Source: MCP 2025-03-26, batching; MCP 2025-11-25 and 2026-07-28, transports; docs/reference/responses.md, row
 * "protocol violation".
 */
export function admitPost(input: AdmissionInput): AdmittedMessage | AdmittedArray | ProtocolError {
  const { reading = readJson(input.body) } = input;
  if (!reading.ok) return reading.error === 'lone-surrogate' ? refuseLoneSurrogate(input) : unreadable(reading.error);
  if (!Array.isArray(reading.value)) return admitWithoutNulls(input, reading);
  return input.isLegacySse === true ? batchForbidden() : admitArray(input, reading, reading.value);
}

/** What is read, judged and forwarded has no null in optional members: there it means that they are absent. */
function admitWithoutNulls(input: AdmissionInput, reading: ParsedJson): AdmittedMessage | ProtocolError {
  const { text, value, cut } = cutClientNulls(reading.text, reading.value);
  if (cut.length === 0) return admitReading(input, reading, cut);
  return admitReading({ ...input, body: encoder.encode(text) }, { ...reading, text, value }, cut);
}

const encoder = new TextEncoder();

function admitReading(
  input: AdmissionInput,
  reading: ParsedJson,
  nulls: readonly string[],
): AdmittedMessage | ProtocolError {
  const envelope = readEnvelope(reading.value);
  switch (envelope.kind) {
    case 'request':
    case 'notification':
      return admitCall(input, { ...reading, nulls }, envelope);
    case 'result':
    case 'error':
      return admitReply(input, { text: reading.text, nulls }, envelope);
    case 'batch':
      return batchForbidden();
    case 'malformed':
      return invalidMessage({ id: envelope.id }, malformedText(reading.value));
  }
}

function malformedText(value: Json): string {
  return isObject(value) && isUnboundedNumber(value['id'])
    ? `The id is a number of more than ${MAX_ID_NUMBER_CHARACTERS} characters, or with an exponent beyond ${MAX_ID_EXPONENT}.`
    : 'The body is not a single valid JSON-RPC message.';
}

type UnreadableError = Exclude<Extract<JsonReading, { readonly ok: false }>['error'], 'lone-surrogate'>;

function unreadable(error: UnreadableError): ProtocolError {
  switch (error) {
    case 'malformed-json':
      return protocolErrorOf(error, PARSE_ERROR, 'The body is not valid JSON in UTF-8.', {});
    case 'duplicate-key':
      return protocolErrorOf(error, INVALID_REQUEST, 'An object has duplicate member names.', {});
    case 'prototype-member':
      return invalidMessage({}, PROTOTYPE_MEMBER_TEXT);
    case 'too-deep':
      return invalidMessage({}, `The body is nested deeper than ${MAX_JSON_DEPTH} levels.`);
    case 'too-many-values':
      return invalidMessage({}, 'The body contains too many values.');
  }
}

const PROTOTYPE_MEMBER_TEXT =
  'A member is named "__proto__". Some parsers set the prototype of the object by it, and others take it for an ordinary ' +
  'member. Use another name.';

const LONE_SURROGATE_TEXT =
  'A string contains half of a surrogate pair (an escape from \\ud800 to \\udfff without its other half), which is ' +
  'no character: text was cut inside a character. Send whole characters.';

/**
 * The error for JSON that has half of a surrogate pair: no two parsers make the same text of it, so it is not repaired.
 * The request is read without it, for its id and its era.
 */
function refuseLoneSurrogate({ body, headers, isLegacySse }: AdmissionInput): ProtocolError {
  const reading = readJsonText(replaceLoneSurrogates(decodeUtf8(body) ?? '').text);
  const message = reading.ok ? readEnvelope(reading.value) : undefined;
  if (message?.kind !== 'request') return invalidParams({}, LONE_SURROGATE_TEXT);
  const protocol = protocolOfCall({ headers, isLegacySse }, metaOf(message));
  const status = protocol.statusOfInvalidParams('request');
  return invalidParams({ id: message.id }, LONE_SURROGATE_TEXT, status);
}

/**
 * Admits a client's reply to a server request, or returns an error if no such request is pending. The id must
 * have been issued in the very session that the reply names. The reply is then checked and forwarded under
 * the method rule and target of the server request, and an edit restores the server's own id.
 * Source: MCP 2025-11-25, transports (sending messages to the server: responses); docs/reference/state.md.
 */
function admitReply(
  input: AdmissionInput,
  { text, nulls }: { readonly text: string; readonly nulls: readonly string[] },
  reply: Reply,
): AdmittedMessage | ProtocolError {
  const protocol = protocolOfReply(input);
  if (protocol === undefined) return unexpectedReply();
  const checked = checkRepeated(input, {}) ?? protocol.checkReply(input, {});
  if (checked.kind === 'error') return checked;
  const { session, version } = checked;
  const serverRequestId = typeof reply.id === 'string' ? reply.id : '';
  const serverRequest = input.openServerRequest?.(serverRequestId, session);
  const rule = serverRequest && findMethod(protocol.era, 'server', serverRequest.method);
  const id = spanOf(text, ['id']);
  if (serverRequest === undefined || rule === undefined || id === undefined) return unexpectedReply();
  const meta = reply.kind === 'result' ? reply.result['_meta'] : undefined;
  const cutMeta = ownMetaEdits(text, isObject(meta) ? meta : undefined, 'result', input.isTraced);
  const idEdit = { ...id, text: renderJson(serverRequest.id) };
  return admit({
    kind: 'admitted',
    protocol,
    version,
    message: { ...withResultMeta(reply, cutMeta.rest), id: serverRequest.id },
    serverRequestId,
    rule,
    target: { kind: 'server-request', name: serverRequest.name },
    args: undefined,
    session,
    allowedServerRequests: session.allowedServerRequests ?? [],
    elicitation: session.elicitation ?? [],
    apps: session.apps ?? false,
    mayBecomeTask: false,
    task: undefined,
    bytes: input.body,
    text,
    nameHeader: undefined,
    edits: mergeEdits(cutMeta.edits, [idEdit]),
    paramHeaders: NO_PARAM_HEADERS,
    selfReported: undefined,
    removed: cutMeta.removed,
    traceparent: cutMeta.traceparent,
    undefinedParams: NO_NAMES,
    nulls,
    presented: undefined,
  });
}

function unexpectedReply(): ProtocolError {
  return invalidMessage({}, 'No request is waiting for this response.');
}

function admitCall(
  input: AdmissionInput,
  reading: ParsedJson & { readonly nulls: readonly string[] },
  call: Call,
): AdmittedMessage | ProtocolError {
  const meta = metaOf(call);
  const errorContext = errorContextOf(call);
  const classified = classify({ input, call, meta, errorContext });
  if (classified.kind === 'error') return classified;
  const { protocol, version, session } = classified;
  const rule = findRule(classified, call, errorContext);
  if ('kind' in rule) return rule;
  if (rule.method === ROOTS_CHANGED && !protocol.mayNotifyRoots(input, session)) {
    const refusedStatus = protocol.statusOfRefusedMethod(call.kind);
    return refuseMethod('method-forbidden', errorContext, refusedStatus);
  }
  const context = { input, classified, rule, call, text: reading.text, meta, errorContext };
  const undeclared = protocol.checkTasksDeclared(context);
  if (undeclared !== undefined) return undeclared;
  const params = readParams(rule.method, call.params, protocol);
  const status = protocol.statusOfInvalidParams(call.kind);
  if (!params.ok) return invalidParams(errorContext, params.why, status);
  if (reading.suspectNumbers) keepNumbers(reading.text, params.args);
  const paramHeaders = protocol.readMirrorHeaders(context);
  if (isProtocolError(paramHeaders)) return paramHeaders;
  const tasks = readTasks(context, params.target);
  if (tasks.kind === 'error') return tasks;
  const cutMeta = ownMetaEdits(reading.text, meta, 'params', input.isTraced);
  const { hasNoTask } = tasks;
  const cutParams = cutUndefinedParams(call, version, { text: reading.text, hasNoTask });
  const cut = protocol.cutCapabilities(context);
  return admit({
    kind: 'admitted',
    protocol,
    version,
    message: cutMeta.rest === undefined ? cutParams.call : withParamsMeta(cutParams.call, cutMeta.rest),
    serverRequestId: undefined,
    rule,
    target: tasks.target,
    args: params.args,
    session,
    allowedServerRequests: cut.allowedServerRequests,
    elicitation: cut.elicitation,
    apps: cut.apps,
    mayBecomeTask: tasks.mayBecomeTask,
    task: tasks.task,
    bytes: input.body,
    text: reading.text,
    nameHeader: protocol.mirrorsBody ? input.headers['mcp-name']?.trim() : undefined,
    edits: mergeAllEdits(cut.edits, cutMeta.edits, cutParams.edits),
    paramHeaders,
    selfReported: readSelfReported(call, meta),
    removed: cutMeta.removed,
    traceparent: cutMeta.traceparent,
    undefinedParams: cutParams.names,
    nulls: reading.nulls,
    presented: undefined,
  });
}

const NO_NAMES: readonly string[] = [];

function withParamsMeta(call: Call, meta: JsonObject): Call {
  return { ...call, params: { ...call.params, _meta: meta } };
}

function withResultMeta(reply: Reply, meta: JsonObject | undefined): Reply {
  return meta === undefined || reply.kind !== 'result' ? reply : { ...reply, result: { ...reply.result, _meta: meta } };
}

// INVARIANT: casts to AdmittedMessage are in this file alone.
function admit(message: { readonly [key in Exclude<keyof AdmittedMessage, symbol>]: AdmittedMessage[key] }) {
  return message as AdmittedMessage;
}

function mergeAllEdits(
  cut: readonly TextEdit[],
  metaEdits: readonly TextEdit[],
  params: readonly TextEdit[],
): readonly TextEdit[] {
  return metaEdits.length + params.length === 0 ? cut : mergeEdits(cut, [...metaEdits, ...params]);
}

/** Adds the edits that restoring sealed values, or narrowing by policy, requires. */
export function amendAdmitted(admitted: AdmittedMessage, edits: readonly TextEdit[]): AdmittedMessage {
  return edits.length === 0 ? admitted : copyAdmitted(admitted, { edits: mergeEdits(admitted.edits, edits) });
}

/** What may differ between an admitted message and its copy. */
type AdmittedChanges = Partial<
  Pick<
    AdmittedMessage,
    | 'protocol'
    | 'version'
    | 'message'
    | 'session'
    | 'allowedServerRequests'
    | 'elicitation'
    | 'nameHeader'
    | 'paramHeaders'
    | 'edits'
    | 'nulls'
    | 'presented'
  >
>;

/** A copy of an admitted message for another session or transport, or with other edits. */
export function copyAdmitted(admitted: AdmittedMessage, changes: AdmittedChanges): AdmittedMessage {
  return { ...admitted, ...changes } as AdmittedMessage;
}

function findRule(
  { protocol, version }: Classified,
  call: Call,
  errorContext: ErrorContext,
): MethodRule | ProtocolError {
  const rule = findMethod(protocol.era, 'client', call.method, version);
  if (rule?.type === call.kind) return rule;
  if (rule?.type === 'request') {
    return invalidMessage(errorContext, 'This method is a request and needs an id.');
  }
  const reason = isDefinedMethod(call.method) ? 'method-forbidden' : 'method-unknown';
  return refuseMethod(reason, errorContext, protocol.statusOfRefusedMethod(call.kind));
}

function refuseMethod(
  reason: 'method-forbidden' | 'method-unknown',
  errorContext: ErrorContext,
  status: number,
): ProtocolError {
  return protocolErrorOf(reason, METHOD_NOT_FOUND, 'Method not found', errorContext, status);
}

function isProtocolError(value: AdmittedMessage['paramHeaders'] | ProtocolError): value is ProtocolError {
  return value['kind'] === 'error';
}

/** Keeps the numbers of arguments as they are written, for what compares them. */
function keepNumbers(text: string, args: JsonObject | undefined): void {
  const span = args && spanOf(text, ARGUMENTS);
  if (span !== undefined && args !== undefined) keepExactNumbers(text, span, args);
}

function mergeEdits(one: readonly TextEdit[], other: readonly TextEdit[]): readonly TextEdit[] {
  return [...one, ...other].sort((left, right) => left.start - right.start);
}

function metaOf(call: Call): JsonObject | undefined {
  const meta = call.params?.['_meta'];
  return isObject(meta) ? meta : undefined;
}

function readSelfReported(call: Call, meta: JsonObject | undefined): AdmittedMessage['selfReported'] {
  const client: Json | undefined = call.method === 'initialize' ? call.params?.['clientInfo'] : meta?.[CLIENT_INFO_KEY];
  if (!isObject(client)) return undefined;
  const { name, version } = { name: client['name'], version: client['version'] };
  if (typeof name !== 'string' || typeof version !== 'string') return undefined;
  return { name, version };
}

/** A session stream that may be opened; `resumed` is set if it continues after an event of an earlier stream. */
type StreamCheck =
  | (Extract<SessionCheck, { readonly kind: 'session' }> & { readonly resumed?: EventFacts })
  | ProtocolError;

/** Opens the id of an event of this session and caller; `undefined` for any other id. */
type OpenEvent = (id: string, session: SessionFacts) => EventFacts | undefined;

/**
 * Admits a GET that opens or resumes a stream of a session; only the session era has one. There is no stream
 * without a session, and an event id of another session, caller or gateway gets the error of an unknown
 * session.
 * Source: MCP 2025-11-25, transports, listening for messages and resumability.
 */
export function admitStreamOpen(input: Omit<AdmissionInput, 'body'> & { readonly openEvent?: OpenEvent }): StreamCheck {
  const checked = admitWithoutBody(input, true);
  const id = input.headers['last-event-id'];
  if (checked.kind === 'error' || id === undefined) return checked;
  const resumed = input.openEvent?.(id, checked.session);
  return resumed === undefined ? unknownSession({}) : { ...checked, resumed };
}

/**
 * Admits a DELETE that ends a session; only the session era has one. Without a session there is nothing to
 * end.
 * Source: MCP 2025-11-25, transports, session management.
 */
export function admitSessionEnd(input: Omit<AdmissionInput, 'body'>): SessionCheck {
  return admitWithoutBody(input, false);
}

function admitWithoutBody(input: Omit<AdmissionInput, 'body'>, mayResume: boolean): SessionCheck {
  const { headers } = input;
  if (claimsStateless(undefined, headers) || headers['mcp-session-id'] === undefined)
    return protocolErrorOf('method-forbidden', INVALID_REQUEST, 'Method not allowed', {}, 405);
  return checkRepeated(input, {}) ?? checkSession(headers, input.openSession, {}, mayResume);
}

type TaskReading = {
  readonly kind: 'read';
  readonly target: Target;
  readonly mayBecomeTask: boolean;
  readonly task: OpenedTask | undefined;
  /**
   * A task cannot be requested here. A server without tasks should ignore such a request, but a lax one must not
   * create a task from it.
   */
  readonly hasNoTask: boolean;
};

/**
 * Reads what a message has to do with tasks: whether its response may be one, and which one it refers to; or returns
 * why it may not pass. The id of a task is opened for its own caller alone; another caller's, another era's, a forged
 * and an expired id are all treated as a task that does not exist.
 */
function readTasks(context: ClassifiedCall, target: Target): TaskReading | ProtocolError {
  const { classified, rule, call } = context;
  const { protocol } = classified;
  const mayBecomeTask = rule.method === 'tools/call' && protocol.mayBecomeTask(context);
  const isRequested = mayBecomeTask && protocol.tasks?.areRequested === true;
  if (isRequested && !isTaskParam(call.params?.['task'])) {
    const text = 'task must be an object with a time to live, or without.';
    return invalidParams(context.errorContext, text, protocol.statusOfInvalidParams(call.kind));
  }
  const hasNoTask = !isRequested;
  if (target.kind !== 'task') return { kind: 'read', target, mayBecomeTask, task: undefined, hasNoTask };
  const task = openTask(context);
  const ofTool = { ...target, tool: task?.tool };
  return { kind: 'read', target: ofTool, mayBecomeTask, task, hasNoTask };
}

function openTask({ input, classified, call }: ClassifiedCall): OpenedTask | undefined {
  const sealed = call.params?.['taskId'];
  if (typeof sealed !== 'string') return undefined;
  const facts = input.openTask?.(sealed);
  return facts !== undefined && hasTask(classified.protocol, facts) ? { ...facts, sealed } : undefined;
}

/** Maximum number of messages in one array; each is decided, counted and recorded on its own. */
export const MAX_ARRAY_ELEMENTS = 64;

/** An array whose elements may be admitted one by one. */
export type AdmittedArray = {
  readonly kind: 'array';
  readonly session: SessionFacts;
  /** The elements as received, in order. */
  readonly elements: readonly string[];
  /** Whether any of them is a request, so that there is something to respond to. */
  readonly hasRequests: boolean;
};

/**
 * Admits an array of a 2025-03-26 session: not empty, not too long, objects only, no `initialize`, no id
 * twice. Everywhere else an array is refused with 400. Later revisions have no arrays (removed in 2025-06-18).
 */
function admitArray(
  input: AdmissionInput,
  { text, suspectNumbers }: ParsedJson,
  value: readonly Json[],
): AdmittedArray | ProtocolError {
  const { headers } = input;
  if (claimsStateless(undefined, headers) || headers['mcp-session-id'] === undefined) return batchForbidden();
  const repeated = checkRepeated(input, {});
  if (repeated !== undefined) return repeated;
  const opened = checkSession(headers, input.openSession, {});
  if (opened.kind === 'error') return opened;
  const { session } = opened;
  if (!hasArrays(session.version)) return batchForbidden();
  if (value.length === 0 || value.length > MAX_ARRAY_ELEMENTS) return batchForbidden();
  const spans = elementSpans(text, { start: text.indexOf('['), end: text.length });
  const elements = spans.map(({ start, end }) => text.slice(start, end));
  if (!areIndependent(suspectNumbers ? elements.map(parseMessage) : value)) return batchForbidden();
  const hasRequests = elements.some((element, index) => {
    const { value: one } = cutClientNulls(element, value[index] ?? null);
    return readEnvelope(one).kind === 'request';
  });
  return { kind: 'array', session, elements, hasRequests };
}

/** True if every element is an object that can be handled independently of the others. */
function areIndependent(value: readonly Json[]): boolean {
  const ids = new Set<string>();
  for (const element of value) {
    if (!isObject(element) || element['method'] === 'initialize') return false;
    if (element['method'] === undefined || element['id'] === undefined) continue;
    const id = JSON.stringify(element['id']);
    if (ids.has(id)) return false;
    ids.add(id);
  }
  return true;
}

/** The error for an array that is not accepted. */
function batchForbidden(): ProtocolError {
  const text = 'Batches are not accepted. Send one message per request.';
  return protocolErrorOf('batch-forbidden', INVALID_REQUEST, text, {});
}
