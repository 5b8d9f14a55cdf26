// A result that asks for input first (2026). Each question must be declared by the very request and
// granted by policy, and none may ask for what nobody should give; the state that the upstream wants back
// is sealed. One question that may not pass withholds the whole result, because its dialogue cannot go on.
// Source: MCP 2026-07-28, multi-round-trip requests; elicitation.

import type { AskedOfTask } from '../exchange-ports.js';
import { checkForm, formSize, MAX_FORM_SIZE, readLink } from '../inspect/elicitation.js';
import { setMember } from '../inspect/members.js';
import { type Asking, type KeyedQuestion, readAsking } from '../mcp/asking.js';
import { applyEdits, readJsonText, removalEdits, spanOf } from '../mcp/json.js';
import { PLAIN_SESSION } from '../mcp/listing.js';
import type { JsonObject, QuestionName } from '../mcp/message.js';
import { decideQuestion } from '../policy/grants.js';
import type { Reason } from '../policy/reasons.js';
import { addFinding } from '../policy/record.js';
import { refuseWith } from '../policy/refusal.js';
import { meetLimits } from '../settle/limits.js';
import type { Answered } from './answered.js';
import type { Call } from './call.js';
import { stateSubject } from './retry.js';
import type { Read, Verdict } from './subject.js';

export type { Asking } from '../mcp/asking.js';

/** Inspects a text as its own answer is inspected, without the schema of a complete result. */
type Inspect = (reading: Read) => Verdict | Promise<Verdict>;

/** A question is never cached, and its state is opaque: neither is content (MCP 2026-07-28, caching). */
const CUT: ReadonlySet<string> = new Set(['requestState', 'ttlMs', 'cacheScope']);

const UNDECLARED: { readonly [name in QuestionName]: Reason } = {
  sampling: 'sampling-forbidden',
  roots: 'roots-forbidden',
  'elicitation/form': 'elicitation-forbidden',
  'elicitation/url': 'elicitation-forbidden',
};

/** Judges a result of type `input_required`. */
export async function judgeAsking(
  call: Call,
  cleared: Answered,
  { text, result }: { readonly text: string; readonly result: JsonObject },
  inspect: Inspect,
): Promise<Verdict> {
  const asking = readAsking(result);
  if (asking === undefined) return withhold('upstream-protocol');
  const { principal } = cleared;
  const { askable } = cleared.admitted;
  const fault = await settleQuestions({ call, principal, askable }, asking);
  if (fault !== undefined) {
    noteWithheld(call, fault.question);
    return withhold(fault.reason);
  }
  const reading = readJsonText(cutMembers(text));
  if (!reading.ok) return withhold('upstream-protocol');
  const verdict = await inspect(reading);
  if (verdict.kind !== 'own') return verdict;
  const inspected = showLinks(verdict.text ?? reading.text, asking, ['result']);
  if (inspected === undefined) return withhold('elicitation-url');
  if (asking.state === undefined) return { ...verdict, text: inspected };
  const subject = stateSubject(call.incoming.upstream, cleared.admitted);
  const sealed = call.ports.sealState(asking.state, subject, cleared.principal);
  if (sealed === undefined) return withhold('result-too-large');
  return { ...verdict, text: setMember(inspected, ['result'], 'requestState', sealed) };
}

const NOTHING_ASKED: AskedOfTask = { has: () => false, add: () => undefined };

/** By all that it says: under a key that was used before, another question is another one. */
function hashOf({ ports }: Call, question: KeyedQuestion): string {
  return ports.keyedHash('arguments', JSON.stringify(question));
}

type Fault = { readonly reason: Reason; readonly question: KeyedQuestion };

/** Who is asked, and what may be asked of them by what they declare and were granted. */
type Asked = Pick<Answered, 'principal'> &
  Pick<Answered['admitted'], 'askable'> & { readonly call: Call };

function findFault({ questions }: Asking, askable: Asked['askable']): Fault | undefined {
  let size = 0;
  for (const question of questions) {
    const { name, params } = question;
    if (!askable.includes(name)) return { reason: UNDECLARED[name], question };
    // All forms of one result together are read for no longer than one.
    size += name === 'elicitation/form' ? formSize(params) : 0;
    if (size > MAX_FORM_SIZE) return { reason: 'upstream-protocol', question };
    const reason = judgeContent(name, params);
    if (reason !== undefined) return { reason, question };
  }
  return undefined;
}

/**
 * The first question that may not be put, and why. Each by the rules that stand now, and within their limits:
 * counted when it is asked, and where it is asked again, once.
 */
export async function settleQuestions(
  { call, principal, askable }: Asked,
  asking: Asking,
  asked: AskedOfTask = NOTHING_ASKED,
): Promise<Fault | undefined> {
  const fault = findFault(asking, askable);
  if (fault !== undefined) return fault;
  const { policies, upstream } = call.view;
  const catalogue = call.view.catalogueFor(PLAIN_SESSION);
  for (const question of asking.questions) {
    const { name } = question;
    const decision = decideQuestion(policies, { principal, upstream, catalogue, name });
    if (decision.verdict === 'deny') return { reason: UNDECLARED[name], question };
    const said = asked === NOTHING_ASKED ? '' : hashOf(call, question);
    if (asked.has(said)) continue;
    const limited = await meetLimits(decision, principal, call.ports.limits);
    if (limited !== undefined) return { reason: limited.reason, question };
    asked.add(said);
  }
  return undefined;
}

function judgeContent(name: QuestionName, params: JsonObject): Reason | undefined {
  switch (name) {
    case 'elicitation/form': {
      const fault = checkForm(params);
      return fault === 'malformed' ? 'upstream-protocol' : fault;
    }
    case 'elicitation/url':
      return readLink(params['url']) === undefined ? 'elicitation-url' : undefined;
    case 'sampling':
    case 'roots':
      return undefined;
  }
}

/** Where inspection has cut something out of a link, it held what may not pass; the rest is plain. */
export function showLinks(
  text: string,
  { questions }: Asking,
  holder: readonly string[],
): string | undefined {
  let shown = text;
  for (const { key, name, params } of questions) {
    if (name !== 'elicitation/url') continue;
    const span = spanOf(shown, [...holder, 'inputRequests', key, 'params', 'url']);
    const link = readLink(params['url']);
    if (span === undefined || link === undefined) return undefined;
    if (JSON.parse(shown.slice(span.start, span.end)) !== params['url']) return undefined;
    if (link !== params['url'])
      shown = applyEdits(shown, [{ ...span, text: JSON.stringify(link) }]);
  }
  return shown;
}

function cutMembers(text: string): string {
  const span = spanOf(text, ['result']);
  if (span === undefined) return text;
  return applyEdits(
    text,
    removalEdits(text, span, (name) => CUT.has(name)),
  );
}

/** Notes the question for whose sake a result was withheld. */
export function noteWithheld(call: Call, { name }: KeyedQuestion): void {
  addFinding(call.record.findings, {
    detector: `question:${name}`,
    direction: 'to-client',
    path: '/result/inputRequests',
    count: 1,
    action: 'withhold',
  });
}

function withhold(reason: Reason): Verdict {
  return { kind: 'refused', refusal: refuseWith(reason) };
}
