// Judges each message of an upstream, one at a time and whole: is it ours, is it carried, is it clean.
// Only what comes out of here reaches a client. An inspector that throws ends the exchange as a refusal.
// Source: architecture, "how a response finds its plan"; contract §6.

import { type Carry, inspectMessage, NO_CARRY } from '../inspect/inspect.js';
import { setPrivate } from '../inspect/members.js';
import type { SessionFacts } from '../mcp/admitted.js';
import { type Answer, readAnswer } from '../mcp/answers.js';
import { type JsonReading, readJson, readJsonText } from '../mcp/json.js';
import type { JsonObject, RequestId } from '../mcp/message.js';
import { isListed } from '../policy/decide.js';
import type { CompiledSchema } from '../policy/definition.js';
import type { Principal } from '../policy/principal.js';
import { addFinding, type Finding } from '../policy/record.js';
import { type Refusal, refuseWith } from '../policy/refusal.js';
import type { Cleared, OwedByAnswer } from '../settle/settle.js';
import type { Call } from './call.js';
import { type Filtering, filterAnswer, recallList } from './filter.js';
import { profileOf } from './profile.js';

/** What becomes of one message. `text` is absent where it may pass byte for byte. */
export type Verdict =
  | {
      readonly kind: 'own';
      readonly text: string | undefined;
      /** In place of a text: a list as it was filtered before. */
      readonly bytes?: Uint8Array;
      readonly headers: { readonly [name: string]: string };
      readonly isError: boolean;
      readonly rpcCode: number | undefined;
    }
  | { readonly kind: 'pass'; readonly text: string | undefined }
  | { readonly kind: 'drop' }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

export type Judge = {
  /** At once, unless a verdict waits for the upstream to be listed again. */
  judgeBytes(bytes: Uint8Array): Verdict | Promise<Verdict>;
  judgeText(text: string): Verdict | Promise<Verdict>;
  /** Judges from now on by what a new decision owes. */
  renew(owed: OwedByAnswer): void;
};

type Waiting = Pick<Filtering, 'cleared' | 'issued' | 'bytes'>;
type Read = Extract<JsonReading, { readonly ok: true }>;
type Inspection = ReturnType<typeof inspectMessage>;
/**
 * `owed` is what rules ask of every message that answers a call;
 * absent on a stream that nobody asked for. `carry` is what this exchange has shown so far: a secret may
 * be cut in two by messages.
 */
type Subject = {
  readonly call: Call;
  owed: OwedByAnswer | undefined;
  readonly principal: Principal;
  readonly era: '2025' | '2026';
  readonly session: SessionFacts | undefined;
  carry: Carry;
};

const MAX_BYTES_A_CHAR = 3;
const DROP: Verdict = { kind: 'drop' };
const NO_HEADERS = {};
const LIST_CHANGED = /^notifications\/(?:tools|prompts|resources)\/list_changed$/;

/** A judge of everything that answers one cleared message. `issued` is the session id of the answer, if any. */
export function createJudge(call: Call, cleared: Cleared, issued: string | undefined): Judge {
  const { admitted, principal } = cleared;
  const subject: Subject = {
    call,
    owed: cleared.owed,
    principal,
    era: admitted.era,
    session: admitted.session,
    carry: NO_CARRY,
  };
  const id = admitted.message.kind === 'request' ? admitted.message.id : undefined;

  function judge(reading: JsonReading, bytes?: Uint8Array): Verdict | Promise<Verdict> {
    if (!reading.ok) return { kind: 'refused', refusal: refuseWith('upstream-protocol') };
    const answer = readAnswer(reading.value, { era: admitted.era, id, version: admitted.version });
    switch (answer.kind) {
      case 'own-result':
        return judgeResult(subject, reading, answer.result, { cleared, issued, bytes });
      case 'own-error':
        return own(inspect(subject, reading), {
          isError: true,
          rpcCode: answer.error.code,
        });
      case 'notification':
      case 'server-request':
      case 'foreign':
      case 'malformed':
        return judgeUnowned(subject, reading, answer);
    }
  }

  return {
    judgeBytes(bytes) {
      return recallList(call, cleared, bytes) ?? judge(readJson(bytes), bytes);
    },
    judgeText: (text) => judge(readJsonText(text)),
    renew(owed) {
      subject.owed = owed;
    },
  };
}

/** Judges a message of a stream that nobody asked for; the text to send, or nothing. */
export async function judgeUnasked(
  call: Call,
  principal: Principal,
  session: SessionFacts,
  data: string,
): Promise<string | undefined> {
  const subject: Subject = {
    call,
    owed: undefined,
    principal,
    era: '2025',
    session,
    carry: NO_CARRY,
  };
  const reading = readJsonText(data);
  if (!reading.ok) return undefined;
  const answer = readAnswer(reading.value, {
    era: '2025',
    id: undefined,
    version: session.version,
  });
  if (answer.kind === 'own-result' || answer.kind === 'own-error') return undefined;
  const verdict = await judgeUnowned(subject, reading, answer);
  return verdict.kind === 'pass' ? (verdict.text ?? data) : undefined;
}

function judgeResult(
  subject: Subject,
  reading: Read,
  result: JsonObject,
  waiting: Waiting,
): Verdict {
  const { cleared } = waiting;
  const { rule } = cleared.admitted;
  const isError = result['isError'] === true;
  if (rule.response === 'filter')
    return filterAnswer({ ...waiting, call: subject.call, reading, result });
  const output = outputOf(subject.call, cleared);
  const verdict = own(inspect(subject, reading, output), { isError, rpcCode: undefined });
  if (subject.era !== '2026' || verdict.kind !== 'own' || !isCacheable(rule.method, result))
    return verdict;
  const inspected = verdict.text ?? reading.text;
  const text = setPrivate(inspected, result, subject.call.view.limits.listTtlMs);
  return text === reading.text ? verdict : { ...verdict, text };
}

/** What a caller may read depends on the caller, so no shared cache may keep it (MCP 2026-07-28, caching). */
function isCacheable(method: string, result: JsonObject): boolean {
  return (
    method === 'resources/read' ||
    result['cacheScope'] !== undefined ||
    result['ttlMs'] !== undefined
  );
}

/** One inspection of one message. What it finds goes on record, whether or not anything passes. */
function inspect(subject: Subject, reading: Read, output?: CompiledSchema): Inspection {
  const { call, owed } = subject;
  const { text, value } = reading;
  const maxBytes = owed?.maxResultBytes;
  if (maxBytes !== undefined && isLarger(text, maxBytes)) {
    return { kind: 'withhold', reason: 'result-too-large', findings: [] };
  }
  const startedMs = performance.now();
  const profile = profileOf(call, owed);
  const outcome = inspectMessage({ text, value, profile, output, carry: subject.carry });
  call.record.latency.inspect += performance.now() - startedMs;
  note(call, outcome.findings);
  if (outcome.kind !== 'withhold') subject.carry = outcome.carry;
  return outcome;
}

/** UTF-8 bytes without encoding: a text is never longer in characters than in bytes, nor past three times as long. */
function isLarger(text: string, maxBytes: number): boolean {
  if (text.length > maxBytes) return true;
  return (
    text.length * MAX_BYTES_A_CHAR > maxBytes &&
    new TextEncoder().encode(text).byteLength > maxBytes
  );
}

function own(
  outcome: Inspection,
  facts: { readonly isError: boolean; readonly rpcCode: number | undefined },
): Verdict {
  switch (outcome.kind) {
    case 'clean':
      return { kind: 'own', text: undefined, headers: NO_HEADERS, ...facts };
    case 'changed':
      return { kind: 'own', text: outcome.text, headers: NO_HEADERS, ...facts };
    case 'withhold':
      return { kind: 'refused', refusal: refuseWith(outcome.reason) };
  }
}

function outputOf(call: Call, { admitted }: Cleared): CompiledSchema | undefined {
  const { era, target } = admitted;
  if (target.kind !== 'tool') return undefined;
  return call.view.catalogueFor(era).standing('tool', target.name).pinned?.output;
}

function judgeUnowned(
  subject: Subject,
  reading: Read,
  answer: Exclude<Answer, { kind: 'own-result' | 'own-error' }>,
): Verdict | Promise<Verdict> {
  const { call, session } = subject;
  switch (answer.kind) {
    case 'notification':
      return judgeNotification(subject, reading, answer);
    case 'server-request':
      drop(call, 'server-request');
      if (session !== undefined) answerServer(call, session, answer.id, answer.method);
      return DROP;
    case 'foreign':
      drop(call, 'foreign-message');
      return DROP;
    case 'malformed':
      drop(call, 'malformed-message');
      return { kind: 'refused', refusal: refuseWith('upstream-protocol') };
  }
}

function answerServer(call: Call, session: SessionFacts, id: RequestId, method: string): void {
  call.ports.answerServer(call.incoming.upstream, session, id, method === 'ping');
}

function judgeNotification(
  subject: Subject,
  reading: Read,
  answer: Extract<Answer, { kind: 'notification' }>,
): Verdict | Promise<Verdict> {
  const { call } = subject;
  if (LIST_CHANGED.test(answer.method)) return passListChanged(call, answer.method);
  if (
    answer.method === 'notifications/resources/updated' &&
    !mayKnowResource(subject, answer.params)
  )
    return DROP;
  if (answer.method === 'notifications/message' && !mayLog(subject)) return DROP;
  const outcome = inspect(subject, reading);
  if (outcome.kind === 'withhold') return DROP;
  return { kind: 'pass', text: outcome.kind === 'changed' ? outcome.text : undefined };
}

async function passListChanged(call: Call, method: string): Promise<Verdict> {
  // Listed again first: a client that asks at once must not be shown what has not been verified.
  await call.ports.noteListChanged(call.incoming.upstream);
  // Said in our own words: what else the upstream put into it is nobody's to read.
  return { kind: 'pass', text: JSON.stringify({ jsonrpc: '2.0', method }) };
}

/** In 2026 a server may log only where the request asked for it (MCP 2026-07-28, logging). */
function mayLog({ call, era }: Subject): boolean {
  if (era !== '2026') return true;
  const message = call.admitted?.message;
  const meta = message !== undefined && 'params' in message ? message.params?.['_meta'] : undefined;
  return typeof meta === 'object' && meta !== null && 'io.modelcontextprotocol/logLevel' in meta;
}

function mayKnowResource(
  { call, principal, era }: Subject,
  params: JsonObject | undefined,
): boolean {
  const uri = params?.['uri'];
  if (typeof uri !== 'string') return false;
  const catalogue = call.view.catalogueFor(era);
  const { policies, upstream } = call.view;
  return isListed(policies, principal, upstream, { kind: 'resource', uri }, catalogue);
}

function drop(call: Call, detector: string): void {
  note(call, [{ detector, direction: 'to-client', path: '', count: 1, action: 'drop' }]);
}

function note(call: Call, findings: readonly Finding[]): void {
  for (const finding of findings) addFinding(call.record.findings, finding);
}
