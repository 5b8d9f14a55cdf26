// Checks server requests: whether the server may make one, and whether its content is clean. Each is decided and recorded
// like a client request, in whatever form it comes: as a message of a session, which the client sees under an id of its
// own and whose refusal the gateway answers with an error; or several in one message (the input requests of a result or
// of a task, the links of an error), which passes or is withheld with all of them.
// Source: MCP 2025-11-25, sampling, elicitation, roots, ping; docs/reference/policies.md#server-requests-by-content;
// docs/reference/responses.md.

import { linksToApproval } from '../../inspection/elicitation/approval-requests.js';
import { checkForm, readLink } from '../../inspection/elicitation/requests.js';
import { decideServerRequest } from '../../policy/decide.js';
import { type Allow, type Decision, type Refusal, refuseWith } from '../../policy/decision.js';
import { enforceLimits } from '../../policy/obligations.js';
import type { Principal } from '../../policy/principal.js';
import { REASONS, type Reason } from '../../policy/reasons.js';
import { fold, openRecord, type RecordFacts, type RequestRecord, type Staged } from '../../policy/record.js';
import { readServerRequestContent, type ServerRequestContent } from '../../policy/server-request-content.js';
import { decideShadows } from '../../policy/shadow.js';
import type { ServerRequestFacts, SessionFacts, TextEdit } from '../../protocol/admitted-request.js';
import {
  applyEdits,
  elementSpans,
  type ParsedJson,
  type Path,
  replaceAt,
  spanOf,
  spanWithin,
} from '../../protocol/json/json.js';
import {
  isObject,
  type Json,
  type JsonObject,
  type RequestId,
  type RpcError,
  type ServerRequestName,
  type Target,
} from '../../protocol/jsonrpc.js';
import { INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, type UpstreamMessage } from '../../protocol/responses.js';
import { serverRequestNameOf } from '../../protocol/server-requests.js';
import { PLAIN_SESSION } from '../../protocol/versions/session.js';
import type { Span } from '../../text/span.js';
import {
  type ApprovableServerRequest,
  type FoundApproval,
  findServerRequestApproval,
  NOTHING_ASKED,
} from '../approval.js';
import { authorize, queryFor, type Stages, take } from '../authorization.js';
import type { Snapshot } from '../ports.js';
import { ruleFacts } from '../record-facts.js';
import { callerOf, type PlannedMessage, type RequestContext } from '../request-context.js';
import {
  ALWAYS_AUTO,
  type CheckContext,
  DROP,
  drop,
  inspect,
  type MessageOutcome,
  withhold,
  withProfiles,
} from '../response-context.js';

type ServerRequest = Extract<UpstreamMessage, { readonly kind: 'server-request' }>;

/** One server request being checked. Its record is separate from that of the request it came with. */
type ServerRequestContext = {
  readonly checkContext: CheckContext;
  readonly session: SessionFacts;
  readonly reading: ParsedJson;
  readonly request: ServerRequest;
  readonly name: ServerRequestName;
  readonly record: RequestRecord;
};

/** How many refused server requests of one stream are recorded one by one; the rest are findings of the stream. */
const MAX_REFUSED_RECORDS = 64;

/**
 * Error codes towards the server: a forbidden method does not exist, objectionable content is invalid params,
 * and everything else is an internal error.
 */
const ERROR_CODES: { readonly [reason in Reason]?: number } = {
  'sampling-forbidden': METHOD_NOT_FOUND,
  'roots-forbidden': METHOD_NOT_FOUND,
  'no-matching-allow': METHOD_NOT_FOUND,
  'denied-by-rule': METHOD_NOT_FOUND,
  'elicitation-sensitive': INVALID_PARAMS,
  'elicitation-approval': INVALID_PARAMS,
  'elicitation-url': INVALID_PARAMS,
  'upstream-protocol': INVALID_PARAMS,
};

/** Checks one server request. If it passes, its id is sealed so that only this client can reply to it. */
export async function checkServerRequest(
  checkContext: CheckContext,
  reading: ParsedJson,
  request: ServerRequest,
): Promise<MessageOutcome> {
  const { call, session } = checkContext;
  const name = serverRequestNameOf(request.method, request.params);
  if (session === undefined || name === undefined) {
    if (session === undefined || request.method !== 'ping') drop(call, 'server-request');
    if (session !== undefined) replyUnsupported(checkContext, session, request);
    return DROP;
  }
  if (name === 'malformed' || request.params?.['task'] !== undefined) {
    return refuseServerRequest(checkContext, session, request, 'upstream-protocol');
  }
  const record = openServerRequestRecord(clientOf(checkContext, session), request, name);
  const context: ServerRequestContext = { checkContext, session, reading, request, name, record };
  let outcome: string | Refusal;
  try {
    const authorized = await authorize({ ports: call.ports, record }, SERVER_REQUEST, context);
    outcome = 'kind' in authorized ? authorized : sealId(context, authorized);
  } catch (error) {
    call.ports.audit.report(error, record.id);
    outcome = refuseWith('internal');
  }
  if (typeof outcome !== 'string')
    return refuseServerRequest(checkContext, session, request, outcome.deny.reason, record);
  closePassed(call, record, outcome);
  return { kind: 'pass', text: outcome };
}

/** Answers a ping; any other method that no server may call does not exist. */
function replyUnsupported(
  { call, principal }: CheckContext,
  session: SessionFacts,
  { id, method }: ServerRequest,
): void {
  const reply = method === 'ping' ? 'pong' : { code: METHOD_NOT_FOUND, message: 'Method not found' };
  const caller = callerOf(call, principal);
  call.ports.upstreams.replyToServer(call.incoming.upstream, { session, id, caller }, reply);
}

/** A server request is decided in the same order as a client's. */
const SERVER_REQUEST: Stages<ServerRequestContext, Allow, InspectedRequest> = {
  decide: decideServerRequestForCaller,
  inspect: async (...subject) => ({ outcome: await inspectServerRequest(...subject) }),
  enforce: enforceServerRequestLimits,
};

/** What may be shown of a server request, under the decision that allows it. */
type InspectedRequest = { readonly allow: Allow; readonly text: string };

function decideServerRequestForCaller({
  checkContext: { call, principal },
  session: { allowedServerRequests = [] },
  request,
  name,
  record,
}: ServerRequestContext): Staged<Allow> {
  const params = request.params ?? {};
  return decideFor({ call, principal, allowedServerRequests }, { name, params }, record);
}

/** What a server requests of its client. */
type RequestContent = { readonly name: ServerRequestName; readonly params: JsonObject };

/** Whether the client declared support, and the rules now in force allow it. */
function decideFor(
  {
    call: { snapshot },
    principal,
    allowedServerRequests,
  }: Pick<AskedClient, 'principal' | 'allowedServerRequests'> & { readonly call: RequestContext },
  { name, params }: RequestContent,
  record: RequestRecord,
): Staged<Allow> {
  const startedMs = performance.now();
  const content = contentOf(name, params);
  const decision = decideForCaller(snapshot, principal, name, content);
  const facts: RecordFacts[] = [
    { ...ruleFacts(record.principal, decision), latency: { policy: performance.now() - startedMs } },
  ];
  if (snapshot.policies.shadow !== undefined) {
    const target = { kind: 'server-request', name } as const;
    const query = queryFor(snapshot, principal, PLAIN_SESSION, { target });
    const { shadow } = decideShadows(snapshot.policies, { ...query, content }, decision);
    facts.push({ decision: { shadow } });
  }
  if (decision.verdict === 'deny') {
    const isForLink = isRefusedForLink(snapshot, principal, name, decision);
    return { outcome: isForLink ? refuseWith('elicitation-url') : forbid(name, decision.reason), facts };
  }
  return { outcome: allowedServerRequests.includes(name) ? decision : forbid(name, 'no-matching-allow'), facts };
}

/** The decision about a server request with this content under the rules now in force. */
function decideForCaller(
  snapshot: Snapshot,
  principal: Principal,
  name: ServerRequestName,
  content: ServerRequestContent | undefined,
): Decision {
  const { policies, upstream } = snapshot;
  const catalog = snapshot.catalogFor(PLAIN_SESSION);
  return decideServerRequest(policies, { principal, upstream, catalog, name, content });
}

/** What rules read of a server request. */
function contentOf(name: ServerRequestName, params: JsonObject): ServerRequestContent {
  return readServerRequestContent(name, params, readLink(params['url']));
}

/** Whether a link is refused for its host alone: links to other hosts are allowed. */
function isRefusedForLink(
  snapshot: Snapshot,
  principal: Principal,
  name: ServerRequestName,
  { verdict }: Decision,
): boolean {
  if (verdict === 'allow' || name !== 'elicitation/url') return false;
  return decideForCaller(snapshot, principal, name, undefined).verdict === 'allow';
}

async function enforceServerRequestLimits(
  { checkContext: { call, principal }, request, name, record }: ServerRequestContext,
  inspected: InspectedRequest,
): Promise<Staged<InspectedRequest>> {
  const { allow } = inspected;
  const { method } = request;
  const asked = { principal, allow, record, name, params: textAt(inspected.text, ['params']), method };
  const approval = await limitServerRequest(call, asked);
  if ('kind' in approval) return { outcome: approval };
  return { outcome: (await approval.use()) ?? inspected };
}

/** The yes to a server request, where it needs one, once its limits are met. */
async function limitServerRequest(
  call: RequestContext<'approvals' | 'audit' | 'limits'>,
  asked: ApprovableServerRequest,
): Promise<FoundApproval | Refusal> {
  const { allow, principal, record } = asked;
  if (allow.obligations.length === 0) return NOTHING_ASKED;
  const { ports } = call;
  const approval = take({ ports, record }, await findServerRequestApproval(call, asked));
  if ('kind' in approval) return approval;
  const deny = await enforceLimits([allow], principal, ports.limits);
  return deny === undefined ? approval : { kind: 'refused', stage: 'settle', deny };
}

/** The params of a server request at a place of the text that is forwarded; without any, an empty object. */
function textAt(text: string, path: Path): string {
  const span = spanOf(text, path);
  return span === undefined ? '{}' : text.slice(span.start, span.end);
}

/** Gives the request the id under which only this client can reply to it. */
function sealId(
  { checkContext, session, request, name }: ServerRequestContext,
  { text }: InspectedRequest,
): string | Refusal {
  const { call, principal } = checkContext;
  const scope = { upstream: call.incoming.upstream, principal, session };
  const { id, method } = request;
  const about = subjectOf(checkContext.target);
  const facts = { id, method, name, ...(about !== undefined && { about }) };
  const sealed = call.ports.sessions.serverRequests.seal(facts, scope);
  return replaceAt(text, ['id'], JSON.stringify(sealed)) ?? refuseWith('internal');
}

/** By what the reply is decided (proxy/stages.ts) and flows check it (proxy/flows.ts). */
function subjectOf(target: Target): ServerRequestFacts['about'] {
  switch (target.kind) {
    case 'tool':
    case 'prompt':
    case 'resource':
    case 'template':
      return target;
    case 'task':
      return target.tool === undefined ? undefined : { kind: 'tool', name: target.tool };
    case 'server-request':
    case 'none':
      return undefined;
  }
}

function forbid(name: ServerRequestName, reason: Reason): Refusal {
  if (name === 'sampling') return refuseWith('sampling-forbidden');
  return refuseWith(name === 'roots' ? 'roots-forbidden' : reason);
}

/**
 * Inspects the content as what else comes with the response, and under the profiles that rules about server requests name;
 * and an elicitation's form or URL.
 */
async function inspectServerRequest(
  { checkContext, reading, request, name, record }: ServerRequestContext,
  allow: Allow,
): Promise<InspectedRequest | Refusal> {
  const strict = withProfiles(checkContext, [allow]);
  const ownContext = { ...strict, call: { ...checkContext.call, record } };
  const outcome = await inspect(ownContext, reading, ALWAYS_AUTO);
  if (outcome.kind === 'withhold') return refuseWith(outcome.reason);
  checkContext.previousTail = ownContext.previousTail;
  const params = request.params ?? {};
  const reason = contentErrorOf(name, params);
  if (reason !== undefined) return refuseWith(reason);
  const inspected = outcome.kind === 'changed' ? outcome.text : reading.text;
  if (name !== 'elicitation/url') return { allow, text: inspected };
  const shown = showLinks(inspected, [{ span: spanOf(inspected, ['params', 'url']), url: params['url'] }]);
  return shown === undefined ? refuseWith('elicitation-url') : { allow, text: shown };
}

/** Why the content of a server request may not pass, besides what the content inspection finds. */
export function contentErrorOf(name: ServerRequestName, params: JsonObject): Reason | undefined {
  switch (name) {
    case 'elicitation/form': {
      const formError = checkForm(params);
      return formError === 'malformed' ? 'upstream-protocol' : formError;
    }
    case 'elicitation/url':
      if (readLink(params['url']) === undefined) return 'elicitation-url';
      return linksToApproval(params) ? 'elicitation-approval' : undefined;
    case 'sampling':
    case 'roots':
      return undefined;
  }
}

/** A URL of a server request: where it stands in the text that may be shown, and as it was received there. */
export type ShownLink = { readonly span: Span | undefined; readonly url: Json | undefined };

/**
 * The text with its URLs in their normalized form; `undefined` if one of them may not be shown, or if the content
 * inspection changed it, since it then contained something that must not pass. The text may be long, so that all are
 * written at once.
 */
export function showLinks(text: string, links: readonly ShownLink[]): string | undefined {
  const edits: TextEdit[] = [];
  for (const { span, url } of links) {
    const link = readLink(url);
    if (link === undefined || span === undefined) return undefined;
    if (JSON.parse(text.slice(span.start, span.end)) !== url) return undefined;
    if (link !== url) edits.push({ ...span, text: JSON.stringify(link) });
  }
  return applyEdits(
    text,
    edits.sort((one, other) => one.start - other.start),
  );
}

/** Drops the server request: the server gets an error, and the record the reason. */
function refuseServerRequest(
  checkContext: CheckContext,
  session: SessionFacts,
  request: ServerRequest,
  reason: Reason,
  openedRecord?: RequestRecord,
): MessageOutcome {
  const { call, principal } = checkContext;
  drop(call, 'server-request');
  const code = ERROR_CODES[reason] ?? INTERNAL_ERROR;
  const message = code === METHOD_NOT_FOUND ? 'Method not found' : REASONS[reason].text;
  const to = { session, id: request.id, caller: callerOf(call, principal) };
  call.ports.upstreams.replyToServer(call.incoming.upstream, to, { code, message });
  checkContext.refusedServerRequests += 1;
  // A decision that was written is followed by its outcome.
  const mustClose = openedRecord?.isDecisionWritten === true;
  if (checkContext.refusedServerRequests > MAX_REFUSED_RECORDS && !mustClose) return DROP;
  const record = openedRecord ?? openServerRequestRecord(clientOf(checkContext, session), request, undefined);
  fold(record, { result: { rpcCode: code } });
  closeRefused(call, record, reason);
  return DROP;
}

/** Closes the record of a server request that did not pass. */
function closeRefused({ ports }: RequestContext<'audit'>, record: RequestRecord, reason: Reason): void {
  fold(record, { decision: { verdict: 'deny', action: 'refused', stage: REASONS[reason].stage }, reason });
  ports.audit.closeRecord(record);
}

/** Closes the record of one that passed. */
function closePassed({ ports }: RequestContext<'audit'>, record: RequestRecord, text: string): void {
  fold(record, { result: { status: 'ok', http: 200, bytes: Buffer.byteLength(text) } });
  ports.audit.closeRecord(record);
}

function openServerRequestRecord(
  { call, principal, protocol, version, session }: RecordedClient,
  { id, method }: { readonly id?: RequestId; readonly method: string },
  name: ServerRequestName | undefined,
): RequestRecord {
  const { upstream, httpMethod, remoteAddress } = call.incoming;
  const record = openRecord({
    id: call.ports.audit.newDecisionId(),
    receivedAt: Date.now(),
    startedMs: performance.now(),
    upstream,
    httpMethod,
    remoteAddress,
  });
  fold(record, {
    versions: call.snapshot.versions,
    caller: { principal },
    client: { ...call.record.client, era: protocol.era, version, session: session?.hash },
    target: { method, kind: 'question', name, requestId: id },
    decision: { stage: 'decide' },
  });
  return record;
}

function clientOf({ call, principal, protocol }: CheckContext, session: SessionFacts): RecordedClient {
  return { call, principal, protocol, version: session.version, session };
}

/** Whose client a record of a server request names. */
type RecordedClient = Pick<PlannedMessage, 'protocol' | 'version'> & {
  readonly call: RequestContext<'audit'>;
  readonly principal: Principal;
  readonly session: SessionFacts | undefined;
};

/** The client that is asked: what it declared and was granted. */
export type AskedClient = Omit<RecordedClient, 'call'> & {
  readonly call: RequestContext<'approvals' | 'audit' | 'limits'>;
  readonly allowedServerRequests: readonly ServerRequestName[];
};

/** The server requests that one message contains, and how the rest of it is checked. */
type ContainedRequests<Request extends RequestContent> = {
  readonly requests: readonly Request[];
  /** What is wrong with their content, all of them together. */
  findError(): { readonly request: Request; readonly reason: Reason } | undefined;
  /** Inspects the message as a whole, also under the profiles that the decisions name. */
  inspect(allows: readonly Allow[]): MessageOutcome | Promise<MessageOutcome>;
  /** The message before it is inspected. */
  readonly text: string;
  /** Where the params of a request stand in it. */
  pathOf(request: Request): Path;
  /** One that was made and recorded before, and is repeated, is neither counted nor recorded again. */
  isRepeated?(request: Request): boolean;
  noteCounted?(request: Request): void;
};

/** Why a message may not pass that contains server requests. Without `request`, the cause is not a server request. */
type ContainedRefusal<Request> = {
  readonly kind: 'refused';
  readonly reason: Reason;
  readonly request: Request | undefined;
  /** Rules refuse it, or its client did not declare it. */
  readonly isForbidden: boolean;
};

type Passed = Exclude<MessageOutcome, { readonly kind: 'refused' }>;

/** One of them, with its record. */
type Part<Request> = {
  readonly request: Request;
  readonly record: RequestRecord;
  readonly isNew: boolean;
};

type Containment<Request extends RequestContent> = {
  readonly client: AskedClient;
  readonly contained: ContainedRequests<Request>;
  readonly parts: readonly Part<Request>[];
  /** The one that is refused. */
  refused?: Part<Request> | undefined;
  /** Rules refuse it, or its client did not declare it. */
  isForbidden?: boolean;
};

/** What may be shown of the message, under the decisions that allow its parts. */
type InspectedParts = { readonly allows: readonly Allow[]; readonly outcome: Passed };

/**
 * Takes the server requests of one message through the stages, and the message with them: it passes only if all of them
 * do, because the exchange could not go on without one. Each has a record of its own.
 */
export async function checkContained<Request extends RequestContent>(
  client: AskedClient,
  contained: ContainedRequests<Request>,
): Promise<Passed | ContainedRefusal<Request>> {
  const { ports } = client.call;
  const parts = contained.requests.map((request): Part<Request> => {
    const method = METHODS[request.name];
    const record = openServerRequestRecord(client, { method }, request.name);
    return { request, record, isNew: contained.isRepeated?.(request) !== true };
  });
  const state: Containment<Request> = { client, contained, parts };
  const asked = parts.filter(({ isNew }) => isNew).map(({ record }) => record);
  let authorized: InspectedParts | Refusal;
  try {
    authorized = await authorize<Containment<Request>, Allowed, InspectedParts, InspectedParts>(
      { ports, records: asked },
      {
        decide: () => ({ outcome: decideParts(state) }),
        inspect: async (_state, allowed) => ({ outcome: await inspectParts(state, allowed) }),
        enforce: async (_state, inspected) => ({ outcome: await limitParts(state, inspected) }),
      },
      state,
    );
  } catch (error) {
    ports.audit.report(error, client.call.incoming.id);
    authorized = refuseWith('internal');
  }
  if ('kind' in authorized) return refuseParts(state, authorized);
  for (const { request, record, isNew } of parts)
    if (isNew) closePassed(client.call, record, JSON.stringify(request.params));
  return authorized.outcome;
}

type Allowed = { readonly allows: readonly Allow[] };

/** Each is decided in a record of its own. */
function decideParts<Request extends RequestContent>(state: Containment<Request>): Allowed | Refusal {
  const { ports } = state.client.call;
  const allows: Allow[] = [];
  for (const part of state.parts) {
    const decision = take({ ports, record: part.record }, decideFor(state.client, part.request, part.record));
    if ('kind' in decision) {
      state.refused = part;
      state.isForbidden = decision.deny.reason !== 'elicitation-url';
      return decision;
    }
    allows.push(decision);
  }
  return { allows };
}

async function inspectParts<Request extends RequestContent>(
  state: Containment<Request>,
  { allows }: Allowed,
): Promise<InspectedParts | Refusal> {
  const { contained, parts } = state;
  const error = contained.findError();
  if (error !== undefined) {
    state.refused = parts.find(({ request }) => request === error.request);
    return refuseWith(error.reason);
  }
  const outcome = await contained.inspect(allows);
  return outcome.kind === 'refused' ? outcome.refusal : { allows, outcome };
}

async function limitParts<Request extends RequestContent>(
  state: Containment<Request>,
  inspected: InspectedParts,
): Promise<InspectedParts | Refusal> {
  const { client, contained, parts } = state;
  const { outcome } = inspected;
  const text = (outcome.kind === 'response' ? outcome.text : undefined) ?? contained.text;
  const passed: { readonly part: (typeof parts)[number]; readonly approval: FoundApproval }[] = [];
  for (const [index, part] of parts.entries()) {
    const allow = inspected.allows[index];
    if (allow === undefined || !part.isNew) continue;
    const { record } = part;
    const { name } = part.request;
    const params = textAt(text, contained.pathOf(part.request));
    const asked = { principal: client.principal, allow, record, name, params, method: METHODS[name] };
    const approval = await limitServerRequest(client.call, asked);
    if ('kind' in approval) {
      state.refused = part;
      return approval;
    }
    passed.push({ part, approval });
  }
  // The message passes with all of them or not at all, so that no yes is used before each has one.
  for (const { part, approval } of passed) {
    const unused = await approval.use();
    if (unused !== undefined) {
      state.refused = part;
      return unused;
    }
    contained.noteCounted?.(part.request);
  }
  return inspected;
}

/** Records the one that is refused, or all of them if the message is. */
function refuseParts<Request extends RequestContent>(
  { client, parts, refused, isForbidden = false }: Containment<Request>,
  { deny: { reason } }: Refusal,
): ContainedRefusal<Request> {
  const recorded = refused === undefined ? parts.filter(({ isNew }) => isNew) : [refused];
  for (const { record } of recorded) closeRefused(client.call, record, reason);
  return { kind: 'refused', reason, request: refused?.request, isForbidden };
}

const METHODS: { readonly [name in ServerRequestName]: string } = {
  sampling: 'sampling/createMessage',
  roots: 'roots/list',
  'elicitation/form': 'elicitation/create',
  'elicitation/url': 'elicitation/create',
};

/** A message with more links is withheld, as a result with more input requests is. */
const MAX_LINKS = 64;

/**
 * Checks the error by which a 2025-11-25 server says that the user must open URLs first. It passes only if URL
 * elicitation is allowed and every URL may be shown; otherwise the whole error is withheld. `inspectError` inspects the
 * error in the context that it is given.
 * Source: MCP 2025-11-25, elicitation, URL elicitation required error.
 */
export async function checkUrlError(
  checkContext: CheckContext,
  text: string,
  error: RpcError,
  inspectError: (context: CheckContext) => MessageOutcome | Promise<MessageOutcome>,
): Promise<MessageOutcome> {
  const { call, principal, protocol, session } = checkContext;
  const links = linksOf(error.data);
  if (links === undefined || session === undefined) return withhold('elicitation-url');
  const { version, allowedServerRequests = [] } = session;
  if (links.length === 0 && !allowedServerRequests.includes('elicitation/url')) return withhold('elicitation-url');
  const client = { call, principal, protocol, version, session, allowedServerRequests };
  const requests = links.map((params) => ({ name: 'elicitation/url', params }) as const);
  const checked = await checkContained(client, {
    requests,
    text,
    pathOf: (request) => ['error', 'data', 'elicitations', requests.indexOf(request)],
    // A link that is no URL is refused where links are written.
    findError: () => requests.flatMap(ownNameErrorOf).at(0),
    async inspect(allows) {
      const inspected = await inspectError(withProfiles(checkContext, allows));
      return inspected.kind === 'response' ? showDemandedLinks(inspected, text, links) : inspected;
    },
  });
  if (checked.kind !== 'refused') return checked;
  return withhold(checked.isForbidden ? 'elicitation-url' : checked.reason);
}

function showDemandedLinks(
  inspected: Extract<MessageOutcome, { readonly kind: 'response' }>,
  text: string,
  links: readonly JsonObject[],
): MessageOutcome {
  const before = inspected.text ?? text;
  const list = spanOf(before, ['error', 'data', 'elicitations']);
  const spans = list === undefined ? [] : elementSpans(before, list);
  const shown = showLinks(
    before,
    links.map(({ url }, index) => ({ span: spanWithin(before, spans[index], ['url']), url })),
  );
  if (shown === undefined) return withhold('elicitation-url');
  return shown === text ? inspected : { ...inspected, text: shown };
}

/** A link of a server that speaks as only the gateway does. */
function ownNameErrorOf(request: RequestContent): readonly { readonly request: never; readonly reason: Reason }[] {
  const reason = contentErrorOf(request.name, request.params);
  return reason === 'elicitation-approval' ? [{ request: request as never, reason }] : [];
}

function linksOf(data: Json | undefined): readonly JsonObject[] | undefined {
  const listed = isObject(data) ? data['elicitations'] : undefined;
  if (!Array.isArray(listed) || listed.length > MAX_LINKS) return undefined;
  return listed.map((one: Json) => (isObject(one) ? one : {}));
}
