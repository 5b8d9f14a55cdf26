// Checks server requests: whether the server may make one, whether its content is clean, and under which id the
// client sees it. Each is decided and recorded like a client request. If it may not pass, the gateway itself
// answers the server with an error.
// Source: MCP 2025-11-25, sampling, elicitation, roots, ping; docs/contract.md §4 and §6.

import { checkForm, readLink } from '../../inspection/elicitation/requests.js';
import { decideServerRequest } from '../../policy/decide.js';
import { type Allow, type Decision, type Refusal, refuseWith } from '../../policy/decision.js';
import { enforceLimits } from '../../policy/obligations.js';
import type { Principal } from '../../policy/principal.js';
import { REASONS, type Reason } from '../../policy/reasons.js';
import { openRecord, type RequestRecord } from '../../policy/record.js';
import {
  readServerRequestContent,
  type ServerRequestContent,
} from '../../policy/server-request-content.js';
import { decideShadows } from '../../policy/shadow.js';
import type { ServerRequestFacts, SessionFacts } from '../../protocol/admitted-request.js';
import { type ParsedJson, replaceAt, spanOf } from '../../protocol/json/json.js';
import {
  isObject,
  type Json,
  type JsonObject,
  type RpcError,
  type ServerRequestName,
  type Target,
} from '../../protocol/jsonrpc.js';
import {
  INTERNAL_ERROR,
  INVALID_PARAMS,
  METHOD_NOT_FOUND,
  type UpstreamMessage,
} from '../../protocol/responses.js';
import { serverRequestNameOf } from '../../protocol/server-requests.js';
import { protocolOfSession } from '../../protocol/versions/negotiation.js';
import { PLAIN_SESSION } from '../../protocol/versions/session.js';
import { authorize, queryFor, type Stages } from '../authorization.js';
import type { Snapshot } from '../ports.js';
import { callerOf, noteRule } from '../request-context.js';
import {
  type CheckContext,
  DROP,
  drop,
  inspect,
  type MessageOutcome,
  OF_SERVER_REQUESTS,
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
  const record = openServerRequestRecord(checkContext, session, request, name);
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
  record.result.status = 'ok';
  record.result.http = 200;
  record.result.bytes = Buffer.byteLength(outcome);
  call.ports.audit.closeRecord(record);
  return { kind: 'pass', text: outcome };
}

/** Answers a ping; any other method that no server may call does not exist. */
function replyUnsupported(
  { call, principal }: CheckContext,
  session: SessionFacts,
  { id, method }: ServerRequest,
): void {
  const reply =
    method === 'ping' ? 'pong' : { code: METHOD_NOT_FOUND, message: 'Method not found' };
  const caller = callerOf(call, principal);
  call.ports.upstreams.replyToServer(call.incoming.upstream, { session, id, caller }, reply);
}

/** A server request is decided in the same order as a client's. */
const SERVER_REQUEST: Stages<ServerRequestContext, Allow, InspectedRequest> = {
  decide: decideServerRequestForCaller,
  inspect: inspectServerRequest,
  enforce: enforceServerRequestLimits,
};

/** What may be shown of a server request, under the decision that allows it. */
type InspectedRequest = { readonly allow: Allow; readonly text: string };

/** Whether the client declared support when the session was opened, and the rules now in force allow it. */
function decideServerRequestForCaller({
  checkContext,
  session,
  request,
  name,
  record,
}: ServerRequestContext): Allow | Refusal {
  const startedMs = performance.now();
  const { snapshot } = checkContext.call;
  const content = contentOf(name, request.params ?? {});
  const decision = decideForCaller(snapshot, checkContext.principal, name, content);
  record.latency.policy = performance.now() - startedMs;
  noteRule(record, decision);
  if (snapshot.policies.shadow !== undefined) {
    const target = { kind: 'question', name } as const;
    const query = queryFor(snapshot, checkContext.principal, PLAIN_SESSION, { target });
    record.decision.shadow = decideShadows(
      snapshot.policies,
      { ...query, content },
      decision,
    ).shadow;
  }
  if (decision.verdict === 'deny') {
    const isForLink = isRefusedForLink(snapshot, checkContext.principal, name, decision);
    return isForLink ? refuseWith('elicitation-url') : forbid(name, decision.reason);
  }
  return session.allowedServerRequests?.includes(name) === true
    ? decision
    : forbid(name, 'no-matching-allow');
}

/** The decision about a server request with this content under the rules now in force. */
export function decideForCaller(
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
export function contentOf(name: ServerRequestName, params: JsonObject): ServerRequestContent {
  return readServerRequestContent(name, params, readLink(params['url']));
}

/** Whether a link is refused for its host alone: links to other hosts are allowed. */
export function isRefusedForLink(
  snapshot: Snapshot,
  principal: Principal,
  name: ServerRequestName,
  { verdict }: Decision,
): boolean {
  if (verdict === 'allow' || name !== 'elicitation/url') return false;
  return decideForCaller(snapshot, principal, name, undefined).verdict === 'allow';
}

async function enforceServerRequestLimits(
  { checkContext: { call, principal } }: ServerRequestContext,
  inspected: InspectedRequest,
): Promise<InspectedRequest | Refusal> {
  const limited = await enforceLimits([inspected.allow], principal, call.ports.limits);
  return limited === undefined ? inspected : { kind: 'refused', stage: 'settle', deny: limited };
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
  const sealed = call.ports.sessions.sealServerRequest(facts, scope);
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
    case 'question':
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
  const outcome = await inspect(ownContext, reading, OF_SERVER_REQUESTS);
  if (outcome.kind === 'withhold') return refuseWith(outcome.reason);
  checkContext.previousTail = ownContext.previousTail;
  const params = request.params ?? {};
  const reason = contentErrorOf(name, params);
  if (reason !== undefined) return refuseWith(reason);
  const inspected = outcome.kind === 'changed' ? outcome.text : reading.text;
  if (name !== 'elicitation/url') return { allow, text: inspected };
  const shown = showLink(inspected, ['params', 'url'], params['url']);
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
      return readLink(params['url']) === undefined ? 'elicitation-url' : undefined;
    case 'sampling':
    case 'roots':
      return undefined;
  }
}

/**
 * The text with the URL at `path` in its normalized form; `undefined` if `url`, which was received there, may not be
 * shown, or if the content inspection changed it, since it then contained something that must not pass.
 */
export function showLink(
  text: string,
  path: readonly (string | number)[],
  url: Json | undefined,
): string | undefined {
  const link = readLink(url);
  const span = spanOf(text, path);
  if (link === undefined || span === undefined) return undefined;
  if (JSON.parse(text.slice(span.start, span.end)) !== url) return undefined;
  return link === url ? text : replaceAt(text, path, JSON.stringify(link));
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
  const record = openedRecord ?? openServerRequestRecord(checkContext, session, request, undefined);
  record.decision.verdict = 'deny';
  record.decision.action = 'refused';
  record.decision.stage = REASONS[reason].stage;
  record.decision.reasons.push(reason);
  record.result.rpcCode = code;
  call.ports.audit.closeRecord(record);
  return DROP;
}

function openServerRequestRecord(
  { call, principal }: CheckContext,
  session: SessionFacts,
  { id, method }: ServerRequest,
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
  record.versions = call.snapshot.versions;
  record.principal = principal;
  record.client = {
    ...call.record.client,
    era: protocolOfSession(session.version).era,
    version: session.version,
  };
  record.client.session = session.hash;
  record.target.method = method;
  record.target.kind = 'question';
  record.target.name = name;
  record.target.requestId = id;
  record.decision.stage = 'decide';
  return record;
}

/**
 * Checks the error by which a 2025-11-25 server says that the user must open URLs first: in the order in which a server
 * request is checked, for each URL. It passes only if URL elicitation is allowed and every URL may be shown; otherwise
 * the whole error is withheld. `inspect` inspects the error in the context that it is given.
 * Source: MCP 2025-11-25, elicitation, URL elicitation required error.
 */
export async function checkUrlError(
  checkContext: CheckContext,
  text: string,
  error: RpcError,
  inspectError: (context: CheckContext) => MessageOutcome | Promise<MessageOutcome>,
): Promise<MessageOutcome> {
  const links = linksOf(error.data);
  const allows = links && decideLinks(checkContext, links);
  if (links === undefined || allows === undefined) return withhold('elicitation-url');
  const inspected = await inspectError(withProfiles(checkContext, allows));
  if (inspected.kind !== 'response') return inspected;
  let shown: string | undefined = inspected.text ?? text;
  for (const [index, { url }] of links.entries())
    shown = shown && showLink(shown, ['error', 'data', 'elicitations', index, 'url'], url);
  if (shown === undefined) return withhold('elicitation-url');
  const { call, principal } = checkContext;
  for (const allow of allows) {
    const limited = await enforceLimits([allow], principal, call.ports.limits);
    if (limited !== undefined) return withhold(limited.reason);
  }
  return shown === text ? inspected : { ...inspected, text: shown };
}

function linksOf(data: Json | undefined): readonly JsonObject[] | undefined {
  const listed = isObject(data) ? data['elicitations'] : undefined;
  if (!Array.isArray(listed)) return undefined;
  return listed.map((one: Json) => (isObject(one) ? one : {}));
}

/** The decision that allows each link; `undefined` if one may not be shown. */
function decideLinks(
  { call, principal, session }: CheckContext,
  links: readonly JsonObject[],
): readonly Allow[] | undefined {
  if (session?.allowedServerRequests?.includes('elicitation/url') !== true) return undefined;
  const decide = (content: ServerRequestContent | undefined): Decision =>
    decideForCaller(call.snapshot, principal, 'elicitation/url', content);
  if (decide(undefined).verdict === 'deny') return undefined;
  const allows: Allow[] = [];
  for (const link of links) {
    const decision = decide(contentOf('elicitation/url', link));
    if (decision.verdict === 'deny') return undefined;
    allows.push(decision);
  }
  return allows;
}
