// Translates messages between the session era and the stateless era, in both directions: requests of a client
// into the form of its upstream, and the upstream's messages into the form of the client. A request has been decided
// before it is translated, and a response is checked afterwards, in the client's own form. Translated list pages are
// cached by the exact bytes received; nothing in the cache depends on the caller.
// Source: MCP 2025-11-25; MCP 2026-07-28, base protocol, server/discover, results, caching, multi-round-trip
// requests.

import type { AdmittedMessage, TextEdit } from '../../protocol/admitted-request.js';
import { APPS_CAPABILITIES } from '../../protocol/capabilities.js';
import { type HeaderPair, type MirroredParameter, statelessHeaders } from '../../protocol/headers.js';
import {
  applyEdits,
  changeMembers,
  matchesMessage,
  memberEdits,
  piecesAtId,
  type SplitMessage,
  spanOf,
  splitAtId,
} from '../../protocol/json/json.js';
import { renderJson } from '../../protocol/json/request-ids.js';
import {
  isObject,
  isResponseTo,
  type Json,
  type JsonObject,
  type RequestId,
  type ServerRequestName,
} from '../../protocol/jsonrpc.js';
import { CACHEABLE, LIST_MEMBERS } from '../../protocol/methods.js';
import { paramsOf, progressTokenOf } from '../../protocol/params.js';
import {
  HEADER_MISMATCH,
  INTERNAL_ERROR,
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  MISSING_CAPABILITY,
  RESOURCE_NOT_FOUND,
  UNSUPPORTED_VERSION,
  URL_ELICITATION_REQUIRED,
} from '../../protocol/responses.js';
import { declaresTasks } from '../../protocol/tasks.js';
import { type Bytes, joinPieces, type UpstreamResponse } from '../../protocol/transport.js';
import { STATELESS_VERSIONS } from '../../protocol/versions/revisions.js';
import { BoundedMap } from '../../state/bounds.js';
import type { Span } from '../../text/span.js';
import { type MessageReader, parseBody } from '../response-messages.js';

/** How a request is sent within an upstream session, and which ids its client gave it. */
export type TranslatedRequest = {
  readonly method: string;
  /** The id of the client's request, and the id it was sent with. */
  readonly id: RequestId;
  readonly sentId: number;
  /** The client's progress token, if it gave one; the token sent is `sentId`. */
  readonly progressToken: RequestId | undefined;
};

const META = 'io.modelcontextprotocol/';
const ENVELOPE: ReadonlySet<string> = new Set([
  `${META}protocolVersion`,
  `${META}clientCapabilities`,
  `${META}clientInfo`,
  `${META}logLevel`,
]);
const INPUT_RETRY_PARAMS: ReadonlySet<string> = new Set(['inputResponses', 'requestState']);
const COMPLETE = { resultType: 'complete' } as const;
const UNCACHED = { ...COMPLETE, ttlMs: 0, cacheScope: 'private' } as const;

/** The ids for an admitted request; its id and token belong to the upstream session, not to the client. */
export function translatedRequestOf(admitted: AdmittedMessage, sentId: number): TranslatedRequest {
  const { message, rule } = admitted;
  if (message.kind !== 'request') throw new Error('only requests are answered');
  return { method: rule.method, id: message.id, sentId, progressToken: progressTokenOf(message) };
}

/** The body of an admitted stateless request, as one of a session. */
export function sessionBody(admitted: AdmittedMessage, { sentId, progressToken }: TranslatedRequest): string {
  const text = applyEdits(admitted.text, admitted.edits);
  const id = spanOf(text, ['id']);
  const edits = idEdits(id, String(sentId));
  const set = progressToken === undefined ? {} : { progressToken: sentId };
  edits.push(...memberEdits(text, { path: ['params', '_meta'], cut: ENVELOPE, set }));
  const body = applyEdits(
    text,
    edits.sort((one, other) => one.start - other.start),
  );
  return changeMembers(body, { path: ['params'], cut: INPUT_RETRY_PARAMS });
}

/** Not a copy of the span with a further member, which would have a hidden class of its own. */
function idEdits(id: Span | undefined, text: string): TextEdit[] {
  return id === undefined ? [] : [{ start: id.start, end: id.end, text }];
}

/** Translates a session-era server's message for a stateless client; `undefined` if it is not forwarded. */
export function toStatelessMessage(text: string, value: Json, sent: TranslatedRequest): string | undefined {
  if (!isObject(value)) return text;
  if (value['method'] === 'notifications/progress') return toStatelessProgress(text, value, sent);
  if (!isResponseTo(value, sent.sentId)) return text;
  const { error, result } = value;
  if (isObject(error) && error['code'] === URL_ELICITATION_REQUIRED) return toUrlElicitation(text, error, sent);
  const id = spanOf(text, ['id']);
  const edits = idEdits(id, renderJson(sent.id));
  if (isObject(result)) {
    const set = CACHEABLE.has(sent.method) ? UNCACHED : COMPLETE;
    edits.push(...memberEdits(text, { path: ['result'], set }));
  }
  return applyEdits(
    text,
    edits.sort((one, other) => one.start - other.start),
  );
}

function toStatelessProgress(
  text: string,
  { params }: JsonObject,
  { sentId, progressToken }: TranslatedRequest,
): string | undefined {
  const isOurs = isObject(params) && params['progressToken'] === sentId;
  if (!isOurs || progressToken === undefined) return undefined;
  return changeMembers(text, { path: ['params'], set: { progressToken } });
}

/** Translates the session era's error that demands visits to URLs into an input-required result. */
function toUrlElicitation(text: string, { data }: JsonObject, { id }: TranslatedRequest): string {
  const elicitations = isObject(data) && Array.isArray(data['elicitations']) ? data['elicitations'] : [];
  const inputRequests: Record<string, InputRequestText> = {};
  for (const [index, one] of elicitations.entries()) {
    const span = spanOf(text, ['error', 'data', 'elicitations', index]);
    if (!isObject(one) || span === undefined) continue;
    const params = changeMembers(text.slice(span.start, span.end), URL_ELICITATION);
    inputRequests[`link${index + 1}`] = { method: 'elicitation/create', params };
  }
  return inputRequiredResult(id, inputRequests);
}

/** What a link of the session era's error becomes as the params of an elicitation. */
const URL_ELICITATION = { path: [], cut: new Set(['elicitationId']), set: { mode: 'url' } };

/** An input request. Its params are JSON as the server wrote them, because its numbers may be ones that no double holds. */
type InputRequestText = { readonly method: string; readonly params: string };

/** The input-required result for server requests, by their keys; `state` identifies the call if it is suspended. */
export function inputRequiredResult(
  id: RequestId,
  inputRequests: { readonly [key: string]: InputRequestText },
  state?: string,
): string {
  const members = Object.entries(inputRequests).map(
    ([key, { method, params }]) => `${JSON.stringify(key)}:{"method":${JSON.stringify(method)},"params":${params}}`,
  );
  const requestState = state === undefined ? '' : `,"requestState":${JSON.stringify(state)}`;
  return (
    `{"jsonrpc":"2.0","id":${renderJson(id)},"result":{"resultType":"input_required",` +
    `"inputRequests":{${members.join(',')}}${requestState}}}`
  );
}

/** The response to server/discover, from the server's handshake. */
export function discoverResult(id: RequestId, handshake: JsonObject): string {
  const { capabilities, instructions, serverInfo } = handshake as {
    readonly [name: string]: Json | undefined;
  };
  const result = {
    ...UNCACHED,
    supportedVersions: STATELESS_VERSIONS,
    capabilities: capabilities ?? {},
    ...(instructions === undefined ? {} : { instructions }),
    ...(serverInfo === undefined ? {} : { _meta: { [`${META}serverInfo`]: serverInfo } }),
  };
  return renderJson({ jsonrpc: '2.0', id, result });
}

/** A message in the form of another era, ready to be sent. */
export type TranslatedForm = {
  readonly headers: readonly HeaderPair[];
  readonly body: string | Uint8Array;
  /** Path and query; default: those of the configured URL. */
  readonly target?: string;
};

/** What a session declares once and a stateless request declares every time. */
export type RequestEnvelope = {
  readonly capabilities: JsonObject;
  readonly clientInfo: JsonObject;
  readonly logLevel: string | undefined;
  /** The trace of the request, which every stateless request names. */
  readonly traceparent?: string | undefined;
};

/** The retry of a request after input was required: a new id, the responses, and the server's state. */
export type InputRetry = {
  readonly id: RequestId;
  /** JSON of an object, as the client wrote it. */
  readonly responses: string;
  readonly state: string | undefined;
};

const [VERSION = ''] = STATELESS_VERSIONS;
/** Members of a result that the session era does not have. */
const STATELESS_RESULT_MEMBERS: ReadonlySet<string> = new Set(['resultType', 'ttlMs', 'cacheScope']);
const STATELESS_AND_STRUCTURED_MEMBERS: ReadonlySet<string> = new Set([
  ...STATELESS_RESULT_MEMBERS,
  'structuredContent',
]);
/** Codes that only the stateless era has: about headers, a capability, and a version. */
const STATELESS_CODES: ReadonlyMap<number, number> = new Map([
  [HEADER_MISMATCH, INVALID_REQUEST],
  [MISSING_CAPABILITY, INVALID_PARAMS],
  [UNSUPPORTED_VERSION, INVALID_PARAMS],
]);

/** The capabilities that declare these server requests, and the Apps extension or not. */
export function capabilitiesFor({
  allowedServerRequests,
  apps,
}: {
  readonly allowedServerRequests: readonly ServerRequestName[];
  readonly apps: boolean;
}): JsonObject {
  const capabilities: Record<string, Json> = {};
  const modes: Record<string, Json> = {};
  if (allowedServerRequests.includes('sampling')) capabilities['sampling'] = {};
  if (allowedServerRequests.includes('roots')) capabilities['roots'] = {};
  if (allowedServerRequests.includes('elicitation/form')) modes['form'] = {};
  if (allowedServerRequests.includes('elicitation/url')) modes['url'] = {};
  if (Object.keys(modes).length > 0) capabilities['elicitation'] = modes;
  return apps ? { ...capabilities, ...APPS_CAPABILITIES } : capabilities;
}

/** The server/discover request sent in place of an `initialize`. */
export function discoverForm(id: RequestId, envelope: RequestEnvelope): TranslatedForm {
  return gatewayForm('server/discover', id, {}, envelope);
}

/** A request of the gateway's own, or one that the gateway writes itself. */
export function gatewayForm(
  method: string,
  id: RequestId,
  params: JsonObject,
  envelope: RequestEnvelope,
): TranslatedForm {
  const body = { jsonrpc: '2.0', id, method, params: { ...params, _meta: envelopeOf(envelope) } };
  return { headers: statelessHeaders(VERSION, method, params, []), body: renderJson(body) };
}

/** An admitted session request as a stateless one; `retry` if it responds to an input-required result. */
export function statelessForm(
  admitted: AdmittedMessage,
  envelope: RequestEnvelope,
  mirrored: readonly MirroredParameter[],
  retry?: InputRetry,
): TranslatedForm {
  const { text, edits, message, rule } = admitted;
  const headers = statelessHeaders(VERSION, rule.method, paramsOf(admitted), mirrored);
  const params = 'params' in message ? message.params : undefined;
  let body = setMeta(applyEdits(text, edits), params, envelopeOf(envelope));
  if (retry !== undefined) body = withInputRetry(body, retry);
  return { headers, body };
}

/** Sets members of `_meta` in the text of a message with these params, which may lack `_meta` or be absent. */
export function setMeta(text: string, params: Json | undefined, meta: JsonObject): string {
  if (!isObject(params)) return changeMembers(text, { path: [], set: { params: { _meta: meta } } });
  return isObject(params['_meta'])
    ? changeMembers(text, { path: ['params', '_meta'], set: meta })
    : changeMembers(text, { path: ['params'], set: { _meta: meta } });
}

function withInputRetry(text: string, { id, responses, state }: InputRetry): string {
  const set = { inputResponses: {}, ...(state === undefined ? {} : { requestState: state }) };
  const body = changeMembers(text, { path: ['params'], set });
  const place = spanOf(body, ['params', 'inputResponses']);
  const answered = place === undefined ? body : applyEdits(body, [{ ...place, text: responses }]);
  return changeMembers(answered, { path: [], set: { id } });
}

function envelopeOf({ capabilities, clientInfo, logLevel, traceparent }: RequestEnvelope): JsonObject {
  return {
    [`${META}protocolVersion`]: VERSION,
    [`${META}clientCapabilities`]: capabilities,
    [`${META}clientInfo`]: clientInfo,
    ...(logLevel === undefined ? {} : { [`${META}logLevel`]: logLevel }),
    ...(traceparent === undefined ? {} : { traceparent }),
  };
}

/** What is needed to translate a response for a session-era client. */
export type SessionResponseContext = {
  readonly method: string;
  readonly version: string;
  /** The id of the client's request, and the id it was sent with. */
  readonly id: RequestId;
  readonly sentId: RequestId;
};

/** Translates a message of a stateless server for its session-era client. `text` is valid JSON of `value`. */
export function toSessionMessage(text: string, value: Json, context: SessionResponseContext): string {
  if (!isObject(value) || value['id'] !== context.sentId) return text;
  if (isObject(value['error'])) return toSessionError(text, value['error'], context);
  const result = value['result'];
  if (!isObject(result)) return text;
  const type = result['resultType'] ?? 'complete';
  if (type === 'input_required') return errorResponseText(context.id, INPUT_REQUIRED);
  if (type !== 'complete') return errorResponseText(context.id, UNKNOWN_RESULT);
  if (context.method === 'initialize') return initializeResult(result, context);
  const structured = result['structuredContent'];
  const cut =
    structured === undefined || isObject(structured) ? STATELESS_RESULT_MEMBERS : STATELESS_AND_STRUCTURED_MEMBERS;
  return withId(applyEdits(text, memberEdits(text, { path: ['result'], cut })), context);
}

const INPUT_REQUIRED =
  'This server requires input of a kind that this client has not declared or that policy does not allow.';
const UNKNOWN_RESULT = 'This server returned a kind of result that session-based revisions do not have.';

/** An error of the gateway's own in place of a response that cannot be translated. */
export function errorResponseText(id: RequestId, message: string, code = INTERNAL_ERROR): string {
  return renderJson({ jsonrpc: '2.0', id, error: { code, message } });
}

function toSessionError(text: string, error: JsonObject, context: SessionResponseContext): string {
  const { code } = error as { readonly code?: Json };
  if (requiresTask(error)) return errorResponseText(context.id, TASK_ONLY, METHOD_NOT_FOUND);
  const sessionCode =
    code === INVALID_PARAMS && context.method === 'resources/read'
      ? RESOURCE_NOT_FOUND
      : STATELESS_CODES.get(Number(code));
  const changed =
    sessionCode === undefined ? text : changeMembers(text, { path: ['error'], set: { code: sessionCode } });
  return withId(changed, context);
}

const TASK_ONLY =
  'This server only runs this as a task. Tasks are not translated between protocol revisions, and it uses a different one.';

/**
 * A stateless-era server that runs a call only as a task requires a capability that no session declares; in
 * the session era that is a method that is not found (MCP 2025-11-25, tasks, tool-level negotiation).
 */
function requiresTask({ code, data }: JsonObject): boolean {
  return code === MISSING_CAPABILITY && isObject(data) && declaresTasks(data['requiredCapabilities']);
}

function withId(text: string, { id, sentId }: SessionResponseContext): string {
  return id === sentId ? text : changeMembers(text, { path: [], set: { id } });
}

function initializeResult(result: JsonObject, { id, version }: SessionResponseContext): string {
  const meta = result['_meta'];
  const server = isObject(meta) ? meta[`${META}serverInfo`] : undefined;
  const { capabilities, instructions } = result as { readonly [name: string]: Json | undefined };
  const sessionResult = {
    protocolVersion: version,
    capabilities: isObject(capabilities) ? capabilities : {},
    serverInfo: isObject(server) ? server : UNNAMED,
    ...(instructions === undefined ? {} : { instructions }),
  };
  return renderJson({ jsonrpc: '2.0', id, result: sessionResult });
}

/** Servers of the stateless era need not name themselves; the session era requires a name. */
const UNNAMED = { name: 'upstream', version: '0' };

/** Translates a notification of a subscription for a session's stream; `undefined` if it is not forwarded. */
export function toSessionNotification(text: string, value: Json): string | undefined {
  if (!isObject(value) || typeof value['method'] !== 'string' || 'id' in value) return undefined;
  if (value['method'] === 'notifications/subscriptions/acknowledged') return undefined;
  const cut = new Set([`${META}subscriptionId`]);
  return changeMembers(text, { path: ['params', '_meta'], cut });
}

const MAX_CACHED_PAGES = 64;
/** A larger page is translated each time. */
const MAX_CACHED_PAGE_BYTES = 512 * 1024;

/** The request id in the received message and the one in its translation. */
type TranslationIds = { readonly source: RequestId; readonly translated: RequestId };

/** A message as received and as translated, both as text. */
export type TranslatedPage = { readonly source: string; readonly translated: string };

export type TranslatedPages = {
  /**
   * Translates these bytes; `translateAnew` is called if the page is not cached, and returns undefined if the
   * bytes are not JSON or have no translation. They are then returned unchanged.
   */
  translate(
    method: string,
    bytes: Uint8Array,
    ids: TranslationIds,
    translateAnew: () => Promise<TranslatedPage | undefined>,
  ): Bytes | Promise<Bytes>;
};

const encoder = new TextEncoder();

type CachedTranslation = { readonly source: SplitMessage; readonly translated: SplitMessage };

/**
 * Creates the cache of one upstream, so that a repeated page, as nearly every page is, is not parsed and translated
 * again. Per method and length it keeps the newest page. The translation depends only on the bytes, the method and the
 * ids.
 */
export function createTranslatedPages(): TranslatedPages {
  const pages = new BoundedMap<string, CachedTranslation>(MAX_CACHED_PAGES);
  const keyOf = (method: string, length: number, id: RequestId): string =>
    `${method} ${length - renderJson(id).length}`;

  function recall(method: string, bytes: Uint8Array, ids: TranslationIds): Bytes | undefined {
    const cached = pages.get(keyOf(method, bytes.length, ids.source));
    if (cached === undefined || !matchesMessage(cached.source, bytes, ids.source, isEqual)) return undefined;
    return piecesAtId(cached.translated, ids.translated);
  }

  function store(method: string, page: TranslatedPage, ids: TranslationIds): void {
    const source = splitAtId(page.source, ids.source);
    const translated = splitAtId(page.translated, ids.translated);
    if (source === undefined || translated === undefined) return;
    const length = source.head.length + source.tail.length;
    if (length > MAX_CACHED_PAGE_BYTES) return;
    pages.set(`${method} ${length}`, { source, translated });
  }

  return {
    translate(method, bytes, ids, translateAnew) {
      const isList = LIST_MEMBERS.has(method);
      const known = isList ? recall(method, bytes, ids) : undefined;
      if (known !== undefined) return known;
      return translateAnew().then((page) => {
        if (page === undefined) return bytes;
        if (isList) store(method, page, ids);
        return encoder.encode(page.translated);
      });
    },
  };
}

/** How the body of one response is translated. */
type BodyTranslation = {
  readonly method: string;
  readonly ids: TranslationIds;
  readonly messageReader: MessageReader | undefined;
  /** Undefined if the message has no translation. */
  translate(text: string, value: Json): string | undefined;
};

/** Reads a complete body and translates its message. What is not JSON stays: the check of the response refuses it. */
export function translatedBody(
  response: UpstreamResponse,
  pages: TranslatedPages,
  { method, ids, messageReader, translate }: BodyTranslation,
): UpstreamResponse['readBody'] {
  return async (maxBytes, withinMs) => {
    const body = await response.readBody(maxBytes, withinMs);
    if (typeof body === 'string') return body;
    const bytes = joinPieces(body);
    return pages.translate(method, bytes, ids, async () => {
      const inbound = await parseBody(bytes, messageReader);
      if (inbound.kind !== 'message' || inbound.value === undefined) return undefined;
      const translated = translate(inbound.text, inbound.value);
      return translated === undefined ? undefined : { source: inbound.text, translated };
    });
  };
}

function isEqual(one: Uint8Array, other: Uint8Array): boolean {
  return Buffer.compare(one, other) === 0;
}
