// A result that asks for input first (2026). Each question must be declared by the very request and
// granted by policy, and none may ask for what nobody should give; the state that the upstream wants back
// is sealed. One question that may not pass withholds the whole result, because its dialogue cannot go on.
// Source: MCP 2026-07-28, multi-round-trip requests; elicitation.

import { findElicitationFault } from '../inspect/elicitation.js';
import { setMember } from '../inspect/members.js';
import { type Asking, type KeyedQuestion, readAsking } from '../mcp/asking.js';
import { applyEdits, type JsonReading, readJsonText, removalEdits, spanOf } from '../mcp/json.js';
import type { JsonObject, QuestionName } from '../mcp/message.js';
import type { Reason } from '../policy/reasons.js';
import { refuseWith } from '../policy/refusal.js';
import type { Cleared } from '../settle/settle.js';
import type { Call } from './call.js';
import type { Verdict } from './judge.js';
import { stateSubject } from './retry.js';

type Read = Extract<JsonReading, { readonly ok: true }>;

/** Inspects a text as its own answer is inspected, without the schema of a complete result. */
type Inspect = (reading: Read) => Verdict;

/** A question is never cached, and its state is opaque: neither is content (MCP 2026-07-28, caching). */
const CUT: ReadonlySet<string> = new Set(['requestState', 'ttlMs', 'cacheScope']);

const UNDECLARED: { readonly [name in QuestionName]: Reason } = {
  sampling: 'sampling-forbidden',
  roots: 'roots-forbidden',
  'elicitation/form': 'elicitation-forbidden',
  'elicitation/url': 'elicitation-forbidden',
};

/** Judges a result of type `input_required`. */
export function judgeQuestion(
  call: Call,
  cleared: Cleared,
  { text, result }: { readonly text: string; readonly result: JsonObject },
  inspect: Inspect,
): Verdict {
  const asking = readAsking(result);
  if (asking === undefined) return withhold('upstream-protocol');
  const fault = findFault(asking, cleared);
  if (fault !== undefined) {
    noteWithheld(call, fault.question);
    return withhold(fault.reason);
  }
  const reading = readJsonText(cutMembers(text));
  if (!reading.ok) return withhold('upstream-protocol');
  const verdict = inspect(reading);
  if (verdict.kind !== 'own') return verdict;
  const inspected = verdict.text ?? reading.text;
  if (asking.state === undefined) return { ...verdict, text: inspected };
  const subject = stateSubject(call.incoming.upstream, cleared.admitted);
  const sealed = call.ports.sealState(asking.state, subject, cleared.principal);
  if (sealed === undefined) return withhold('result-too-large');
  return { ...verdict, text: setMember(inspected, ['result'], 'requestState', sealed) };
}

function findFault(
  { questions }: Asking,
  { admitted }: Cleared,
): { readonly reason: Reason; readonly question: KeyedQuestion } | undefined {
  for (const question of questions) {
    const { name, params } = question;
    if (!admitted.askable.includes(name)) return { reason: UNDECLARED[name], question };
    const reason = judgeContent(name, params);
    if (reason !== undefined) return { reason, question };
  }
  return undefined;
}

function judgeContent(name: QuestionName, params: JsonObject): Reason | undefined {
  switch (name) {
    case 'elicitation/form':
      return findElicitationFault('form', params);
    case 'elicitation/url':
      return findElicitationFault('url', params);
    case 'sampling':
    case 'roots':
      return undefined;
  }
}

function cutMembers(text: string): string {
  const span = spanOf(text, ['result']);
  if (span === undefined) return text;
  return applyEdits(
    text,
    removalEdits(text, span, (name) => CUT.has(name)),
  );
}

function noteWithheld(call: Call, { name }: KeyedQuestion): void {
  call.record.findings.push({
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
