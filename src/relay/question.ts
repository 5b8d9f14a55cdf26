// What a server asks of a client: whether it may, whether what it asks is clean, and under which id the
// client sees it. Each question is an exchange of its own, decided and recorded like one; what may not pass
// is answered to the server in the gateway's name.
// Source: MCP 2025-11-25, sampling, elicitation, roots, ping; contract §4 and §6.

import { checkForm, readLink } from '../inspect/elicitation.js';
import type { SessionFacts, TextEdit } from '../mcp/admitted.js';
import type { Answer } from '../mcp/answers.js';
import { applyEdits, spanOf } from '../mcp/json.js';
import { PLAIN_SESSION } from '../mcp/listing.js';
import { isObject, type Json, type JsonObject, type QuestionName } from '../mcp/message.js';
import { readQuestion } from '../mcp/questions.js';
import { sessionEra } from '../mcp/versions.js';
import type { Allow } from '../policy/decision.js';
import { decideQuestion } from '../policy/grants.js';
import { openRecord } from '../policy/open-record.js';
import { REASONS, type Reason } from '../policy/reasons.js';
import { addFinding, type ExchangeRecord } from '../policy/record.js';
import { meetLimits } from '../settle/limits.js';
import { owedByAnswer } from '../settle/settle.js';
import { callerOf, noteRule } from './call.js';
import { profileOf } from './profile.js';
import { DROP, drop, type Read, relatedOf, type Subject, type Verdict } from './subject.js';

type ServerRequest = Extract<Answer, { readonly kind: 'server-request' }>;

/** One question on its way: its record is apart from that of the exchange that it came with. */
type Asking = {
  readonly subject: Subject;
  readonly session: SessionFacts;
  readonly reading: Read;
  readonly asked: ServerRequest;
  readonly name: QuestionName;
  readonly record: ExchangeRecord;
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
export async function judgeQuestion(
  subject: Subject,
  reading: Read,
  asked: ServerRequest,
): Promise<Verdict> {
  const { call, session } = subject;
  const name = readQuestion(asked.method, asked.params);
  if (session === undefined || name === undefined) {
    drop(call, 'server-request');
    if (session !== undefined) answerPlain(subject, session, asked);
    return DROP;
  }
  if (name === 'malformed' || asked.params?.['task'] !== undefined) {
    return refuseQuestion(subject, session, asked, 'upstream-protocol');
  }
  const record = openQuestionRecord(subject, session, asked, name);
  const asking: Asking = { subject, session, reading, asked, name, record };
  let outcome: string | Reason;
  let isPassed = false;
  try {
    const examined = await examine(asking);
    isPassed = typeof examined !== 'string';
    outcome = typeof examined === 'string' ? examined : examined.text;
  } catch (error) {
    call.ports.report(error, record.id);
    outcome = 'internal';
  }
  if (!isPassed) return refuseQuestion(subject, session, asked, outcome as Reason, record);
  record.result.status = 'ok';
  record.result.http = 200;
  record.result.bytes = outcome.length;
  call.ports.closeRecord(record);
  return { kind: 'pass', text: outcome };
}

/** A ping is answered; what nobody may ask here does not exist. */
function answerPlain(
  { call }: Subject,
  session: SessionFacts,
  { id, method }: ServerRequest,
): void {
  const answer =
    method === 'ping' ? 'pong' : { code: METHOD_NOT_FOUND, message: 'Method not found' };
  call.ports.answerServer(call.incoming.upstream, { session, id, by: callerOf(call) }, answer);
}

/** The order of the controls, as for every message: decide, inspect, settle, record. */
async function examine(asking: Asking): Promise<Reason | { readonly text: string }> {
  const allow = decide(asking);
  if (typeof allow === 'string') return allow;
  const text = await inspectQuestion(asking, allow);
  if (typeof text === 'string') return text;
  const { subject, record, session, asked, name } = asking;
  const { call, principal } = subject;
  const limited = await meetLimits(allow, principal, call.ports.limits);
  if (limited !== undefined) return limited.reason;
  record.decision.action = 'forwarded';
  if (!(await call.ports.recordDecision(record))) return 'audit-unavailable';
  const place = { upstream: call.incoming.upstream, principal, session };
  const { id, method } = asked;
  const sealed = call.ports.sealQuestion({ id, method, name }, place);
  const span = spanOf(text.text, ['id']);
  if (span === undefined) return 'internal';
  return { text: applyEdits(text.text, [{ ...span, text: JSON.stringify(sealed) }]) };
}

/** Declared by the client when the session was opened, and allowed by the rules that stand now. */
function decide({ subject, session, name, record }: Asking): Allow | Reason {
  const { call, principal } = subject;
  const { policies, upstream } = call.view;
  const startedMs = performance.now();
  const catalogue = call.view.catalogueFor(PLAIN_SESSION);
  const decision = decideQuestion(policies, { principal, upstream, catalogue, name });
  record.latency.policy = performance.now() - startedMs;
  noteRule(record, decision);
  if (decision.verdict === 'deny') return forbidden(name, decision.reason);
  return session.askable?.includes(name) === true ? decision : forbidden(name, 'no-matching-allow');
}

function forbidden(name: QuestionName, reason: Reason): Reason {
  if (name === 'sampling') return 'sampling-forbidden';
  return name === 'roots' ? 'roots-forbidden' : reason;
}

/** The content, under the strictest profile that rules ask for, and what the question itself may hold. */
async function inspectQuestion(
  { subject, reading, asked, name, record }: Asking,
  allow: Allow,
): Promise<Reason | { readonly text: string }> {
  const startedMs = performance.now();
  const owed = owedByAnswer(allow);
  const profile = profileOf(subject.call, owed);
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
  const params = asked.params ?? {};
  switch (name) {
    case 'sampling':
    case 'roots':
      return { text: shown.text };
    case 'elicitation/form': {
      const fault = checkForm(params);
      if (fault === 'malformed') return 'upstream-protocol';
      return fault ?? { text: shown.text };
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
function refuseQuestion(
  subject: Subject,
  session: SessionFacts,
  asked: ServerRequest,
  reason: Reason,
  opened?: ExchangeRecord,
): Verdict {
  const { call } = subject;
  drop(call, 'server-request');
  const code = CODES[reason] ?? INTERNAL_ERROR;
  const message = code === METHOD_NOT_FOUND ? 'Method not found' : REASONS[reason].text;
  const to = { session, id: asked.id, by: callerOf(call) };
  call.ports.answerServer(call.incoming.upstream, to, { code, message });
  subject.refusedQuestions += 1;
  if (subject.refusedQuestions > MAX_REFUSED_RECORDS) return DROP;
  const record = opened ?? openQuestionRecord(subject, session, asked, undefined);
  record.decision.verdict = 'deny';
  record.decision.action = 'refused';
  record.decision.stage = REASONS[reason].stage;
  record.decision.reasons.push(reason);
  record.result.rpcCode = code;
  call.ports.closeRecord(record);
  return DROP;
}

function openQuestionRecord(
  { call, principal }: Subject,
  session: SessionFacts,
  { id, method }: ServerRequest,
  name: QuestionName | undefined,
): ExchangeRecord {
  const { upstream, httpMethod, remoteAddress } = call.incoming;
  const record = openRecord({
    id: call.ports.newDecisionId(),
    receivedAt: Date.now(),
    startedMs: performance.now(),
    upstream,
    httpMethod,
    remoteAddress,
  });
  record.versions = call.view.versions;
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
