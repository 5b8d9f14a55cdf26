// What a server asks of a client: whether it may, whether what it asks is clean, and under which id the
// client sees it. Each question is an exchange of its own, decided and recorded like one; what may not pass
// is answered to the server in the gateway's name.
// Source: MCP 2025-11-25, sampling, elicitation, roots, ping; contract §4 and §6.

import { checkForm, readLink } from '../inspect/elicitation.js';
import type { SessionFacts, TextEdit } from '../mcp/admitted.js';
import type { UpstreamMessage } from '../mcp/answers.js';
import { applyEdits, spanOf } from '../mcp/json.js';
import { PLAIN_SESSION } from '../mcp/listing.js';
import { isObject, type Json, type JsonObject, type ServerRequestName } from '../mcp/message.js';
import { serverRequestNameOf } from '../mcp/questions.js';
import { sessionEra } from '../mcp/versions.js';
import type { Allow } from '../policy/decision.js';
import { decideServerRequest } from '../policy/grants.js';
import { openRecord } from '../policy/open-record.js';
import { REASONS, type Reason } from '../policy/reasons.js';
import { addFinding, type RequestRecord } from '../policy/record.js';
import { meetLimits } from '../settle/limits.js';
import { responseObligationsOf } from '../settle/settle.js';
import { callerOf, noteRule } from './call.js';
import { profileOf } from './profile.js';
import { DROP, drop, type Read, relatedOf, type Subject, type Verdict } from './subject.js';

type ServerRequest = Extract<UpstreamMessage, { readonly kind: 'server-request' }>;

/** One question on its way: its record is apart from that of the exchange that it came with. */
type ServerRequestContext = {
  readonly subject: Subject;
  readonly session: SessionFacts;
  readonly reading: Read;
  readonly request: ServerRequest;
  readonly name: ServerRequestName;
  readonly record: RequestRecord;
};

/** Refused questions of one stream that are recorded one by one; the rest are findings of the stream. */
const MAX_REFUSED_RECORDS = 64;

const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;
const INTERNAL_ERROR = -32603;

/** What may not be asked does not exist; what is wrong with a question is its params; the rest is ours. */
const CODES: { readonly [reason in Reason]?: number } = {
  'sampling-forbidden': METHOD_NOT_FOUND,
  'roots-forbidden': METHOD_NOT_FOUND,
  'no-matching-allow': METHOD_NOT_FOUND,
  'denied-by-rule': METHOD_NOT_FOUND,
  'elicitation-sensitive': INVALID_PARAMS,
  'elicitation-url': INVALID_PARAMS,
  'upstream-protocol': INVALID_PARAMS,
};

/** Judges one request of a server. What passes has an id that only this client can answer by. */
export async function checkServerRequest(
  subject: Subject,
  reading: Read,
  request: ServerRequest,
): Promise<Verdict> {
  const { call, session } = subject;
  const name = serverRequestNameOf(request.method, request.params);
  if (session === undefined || name === undefined) {
    drop(call, 'server-request');
    if (session !== undefined) respondPlain(subject, session, request);
    return DROP;
  }
  if (name === 'malformed' || request.params?.['task'] !== undefined) {
    return refuseServerRequest(subject, session, request, 'upstream-protocol');
  }
  const record = openServerRequestRecord(subject, session, request, name);
  const context: ServerRequestContext = { subject, session, reading, request, name, record };
  let outcome: string | Reason;
  let isPassed = false;
  try {
    const examined = await examine(context);
    isPassed = typeof examined !== 'string';
    outcome = typeof examined === 'string' ? examined : examined.text;
  } catch (error) {
    call.ports.report(error, record.id);
    outcome = 'internal';
  }
  if (!isPassed) return refuseServerRequest(subject, session, request, outcome as Reason, record);
  record.result.status = 'ok';
  record.result.http = 200;
  record.result.bytes = outcome.length;
  call.ports.closeRecord(record);
  return { kind: 'pass', text: outcome };
}

/** A ping is answered; what nobody may ask here does not exist. */
function respondPlain(
  { call }: Subject,
  session: SessionFacts,
  { id, method }: ServerRequest,
): void {
  const reply =
    method === 'ping' ? 'pong' : { code: METHOD_NOT_FOUND, message: 'Method not found' };
  call.ports.replyToServer(call.incoming.upstream, { session, id, by: callerOf(call) }, reply);
}

/** The order of the controls, as for every message: decide, inspect, settle, record. */
async function examine(context: ServerRequestContext): Promise<Reason | { readonly text: string }> {
  const allow = decide(context);
  if (typeof allow === 'string') return allow;
  const text = await inspectServerRequest(context, allow);
  if (typeof text === 'string') return text;
  const { subject, record, session, request, name } = context;
  const { call, principal } = subject;
  const limited = await meetLimits(allow, principal, call.ports.limits);
  if (limited !== undefined) return limited.reason;
  record.decision.action = 'forwarded';
  if (!(await call.ports.recordDecision(record))) return 'audit-unavailable';
  const scope = { upstream: call.incoming.upstream, principal, session };
  const { id, method } = request;
  const sealed = call.ports.sealServerRequest({ id, method, name }, scope);
  const span = spanOf(text.text, ['id']);
  if (span === undefined) return 'internal';
  return { text: applyEdits(text.text, [{ ...span, text: JSON.stringify(sealed) }]) };
}

/** Declared by the client when the session was opened, and allowed by the rules that stand now. */
function decide({ subject, session, name, record }: ServerRequestContext): Allow | Reason {
  const { call, principal } = subject;
  const { policies, upstream } = call.snapshot;
  const startedMs = performance.now();
  const catalogue = call.snapshot.catalogueFor(PLAIN_SESSION);
  const decision = decideServerRequest(policies, { principal, upstream, catalogue, name });
  record.latency.policy = performance.now() - startedMs;
  noteRule(record, decision);
  if (decision.verdict === 'deny') return forbidden(name, decision.reason);
  return session.allowedServerRequests?.includes(name) === true
    ? decision
    : forbidden(name, 'no-matching-allow');
}

function forbidden(name: ServerRequestName, reason: Reason): Reason {
  if (name === 'sampling') return 'sampling-forbidden';
  return name === 'roots' ? 'roots-forbidden' : reason;
}

/** The content, under the strictest profile that rules ask for, and what the question itself may hold. */
async function inspectServerRequest(
  { subject, reading, request, name, record }: ServerRequestContext,
  allow: Allow,
): Promise<Reason | { readonly text: string }> {
  const startedMs = performance.now();
  const responseObligations = responseObligationsOf(allow);
  const profile = profileOf(subject.call, responseObligations);
  const related = relatedOf(subject, reading);
  const { text, value } = related.reading;
  const { carry } = subject;
  const outcome = await subject.call.ports.inspection.message(
    { text, value, profile, carry },
    subject.call.incoming.upstream,
  );
  record.latency.inspect = performance.now() - startedMs;
  for (const finding of outcome.findings) addFinding(record.findings, finding);
  if (outcome.kind === 'withhold') return outcome.reason;
  subject.carry = outcome.carry;
  const { text: inspected, value: left } = outcome.kind === 'changed' ? outcome : { text, value };
  const shown = { text: related.restore(inspected), value: left };
  const params = request.params ?? {};
  switch (name) {
    case 'sampling':
    case 'roots':
      return { text: shown.text };
    case 'elicitation/form': {
      const formError = checkForm(params);
      if (formError === 'malformed') return 'upstream-protocol';
      return formError ?? { text: shown.text };
    }
    case 'elicitation/url':
      return showLink(params, shown);
  }
}

/** Where inspection has cut something out of a link, it held what may not pass. */
function showLink(
  params: JsonObject,
  shown: { readonly text: string; readonly value: Json },
): Reason | { readonly text: string } {
  const link = readLink(params['url']);
  const left = isObject(shown.value) ? shown.value['params'] : undefined;
  if (link === undefined || !isObject(left) || left['url'] !== params['url']) {
    return 'elicitation-url';
  }
  if (link === params['url']) return { text: shown.text };
  const span = spanOf(shown.text, ['params', 'url']);
  if (span === undefined) return 'elicitation-url';
  const edit: TextEdit = { ...span, text: JSON.stringify(link) };
  return { text: applyEdits(shown.text, [edit]) };
}

/** Nothing of it passes: the server learns an error, the record the reason. */
function refuseServerRequest(
  subject: Subject,
  session: SessionFacts,
  request: ServerRequest,
  reason: Reason,
  opened?: RequestRecord,
): Verdict {
  const { call } = subject;
  drop(call, 'server-request');
  const code = CODES[reason] ?? INTERNAL_ERROR;
  const message = code === METHOD_NOT_FOUND ? 'Method not found' : REASONS[reason].text;
  const to = { session, id: request.id, by: callerOf(call) };
  call.ports.replyToServer(call.incoming.upstream, to, { code, message });
  subject.refusedServerRequests += 1;
  if (subject.refusedServerRequests > MAX_REFUSED_RECORDS) return DROP;
  const record = opened ?? openServerRequestRecord(subject, session, request, undefined);
  record.decision.verdict = 'deny';
  record.decision.action = 'refused';
  record.decision.stage = REASONS[reason].stage;
  record.decision.reasons.push(reason);
  record.result.rpcCode = code;
  call.ports.closeRecord(record);
  return DROP;
}

function openServerRequestRecord(
  { call, principal }: Subject,
  session: SessionFacts,
  { id, method }: ServerRequest,
  name: ServerRequestName | undefined,
): RequestRecord {
  const { upstream, httpMethod, remoteAddress } = call.incoming;
  const record = openRecord({
    id: call.ports.newDecisionId(),
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
    era: sessionEra(session.version),
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
