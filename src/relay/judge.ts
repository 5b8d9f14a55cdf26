// Judges each message of an upstream, one at a time and whole: is it ours, is it carried, is it clean.
// Only what comes out of here reaches a client. An inspector that throws ends the exchange as a refusal.
// Source: architecture, "how a response finds its plan"; contract §6.

import { NO_CARRY } from '../inspect/inspect.js';
import { setPrivate } from '../inspect/members.js';
import { classifyUpstreamMessage } from '../mcp/answers.js';
import { canRequireInput } from '../mcp/asking.js';
import { type Bytes, inOnePiece } from '../mcp/body.js';
import type { ReadOutcome } from '../mcp/json-reader.js';
import { isObject, type JsonObject, type RpcError } from '../mcp/message.js';
import { type CompiledSchema, definitionOf } from '../policy/definition.js';
import { refuseWith } from '../policy/refusal.js';
import type { ResponseObligations } from '../settle/settle.js';
import type { ResponsePlan } from './answered.js';
import { reviewAppContent } from './app-resource.js';
import { checkInputRequired } from './asking.js';
import { type Call, nameOf } from './call.js';
import { type Filtering, filterResponse, recallList } from './filter.js';
import { createResponseGate, createTaskGate } from './progress.js';
import { readMessage, refuseUnread } from './reading.js';
import { isRetry } from './retry.js';
import { repairError } from './stateless-error.js';
import { type Inspection, inspect, type Read, type Subject, type Verdict } from './subject.js';
import { checkCreatedTask, checkTaskResponse } from './task-answer.js';
import { checkTaskList } from './task-list.js';
import { checkUnowned } from './unowned.js';
import { checkUrlError, URL_ELICITATION_REQUIRED } from './url-error.js';

export type ResponseCheck = {
  /** At once, unless a verdict waits for the upstream to be listed again. */
  checkBytes(bytes: Bytes): Verdict | Promise<Verdict>;
  checkText(text: string): Verdict | Promise<Verdict>;
  /** Judges from now on by what a new decision owes. */
  setObligations(responseObligations: ResponseObligations): void;
};

type Waiting = Pick<Filtering, 'responsePlan' | 'issued' | 'bytes'>;

const NO_HEADERS = {};
/** Methods whose answer would be taken for a task if it looked like one. */
const MAY_DEFER: ReadonlySet<string> = new Set(['tools/call', 'tasks/result']);
/** What a reviewer has approved byte for byte. */
const APP_CONTENT = ['/result/contents'];
const NO_ERROR = { isError: false, rpcCode: undefined } as const;

/** A judge of everything that answers one cleared message. `issued` is the session id of the answer, if any. */
export function createResponseCheck(
  call: Call,
  responsePlan: ResponsePlan,
  issued: string | undefined,
): ResponseCheck {
  const { admitted, principal } = responsePlan;
  const subject: Subject = {
    call,
    responseObligations: responsePlan.responseObligations,
    principal,
    era: admitted.era,
    apps: admitted.apps,
    session: admitted.session,
    requestMethod: admitted.rule.method,
    carry: NO_CARRY,
    refusedServerRequests: 0,
    gate:
      admitted.task === undefined
        ? createResponseGate(admitted.message, call.progress)
        : createTaskGate(call, admitted, call.progress),
  };
  const id = admitted.message.kind === 'request' ? admitted.message.id : undefined;

  function checkSource(source: Uint8Array | string): Verdict | Promise<Verdict> {
    const bytes = typeof source === 'string' ? undefined : source;
    const reading = readMessage(call, source);
    return reading instanceof Promise
      ? reading.then((late) => checkReading(late, bytes))
      : checkReading(reading, bytes);
  }

  function checkReading(reading: ReadOutcome, bytes?: Uint8Array): Verdict | Promise<Verdict> {
    if (!reading.ok) return { kind: 'refused', refusal: refuseUnread(reading.error) };
    const { era, version, rule } = admitted;
    const mayRequireInput = canRequireInput(rule.method);
    const mayDefer = MAY_DEFER.has(rule.method) ? admitted.mayDefer : undefined;
    const message = classifyUpstreamMessage(reading.value, {
      era,
      id,
      version,
      mayRequireInput,
      mayDefer,
    });
    switch (message.kind) {
      case 'own-question': {
        const inputRequired = { text: reading.text, result: message.result };
        return checkInputRequired(call, responsePlan, inputRequired, (cut) =>
          ownOf(inspect(subject, cut), NO_ERROR),
        );
      }
      case 'own-task':
        return checkCreatedTask(subject, responsePlan, reading, message.result);
      case 'own-result':
        return checkResult(subject, reading, message.result, { responsePlan, issued, bytes });
      case 'own-error': {
        const { error } = message;
        const facts = { isError: true, rpcCode: error.code };
        const verdict = ownOf(inspect(subject, reading), facts);
        return verdict instanceof Promise
          ? verdict.then((late) => checkError(subject, late, reading.text, error))
          : checkError(subject, verdict, reading.text, error);
      }
      case 'notification':
      case 'server-request':
      case 'foreign':
      case 'malformed':
        return checkUnowned(subject, reading, message);
    }
  }

  return {
    checkBytes(bytes) {
      return recallList(call, responsePlan, bytes) ?? checkSource(inOnePiece(bytes));
    },
    checkText: checkSource,
    setObligations(responseObligations) {
      subject.responseObligations = responseObligations;
    },
  };
}

function checkResult(
  subject: Subject,
  reading: Read,
  result: JsonObject,
  waiting: Waiting,
): Verdict | Promise<Verdict> {
  const { responsePlan } = waiting;
  const { rule } = responsePlan.admitted;
  const facts = { isError: result['isError'] === true, rpcCode: undefined };
  if (rule.response === 'task') return checkTaskResponse(subject, responsePlan, reading);
  if (rule.method === 'tasks/list') return checkTaskList(subject, reading);
  if (rule.response === 'filter')
    return filterResponse({ ...waiting, call: subject.call, reading, result });
  const app = reviewAppContent(subject.call, responsePlan, reading, result);
  if (app === 'changed') return { kind: 'refused', refusal: refuseWith('tool-changed') };
  const output = outputOf(subject.call, responsePlan);
  const reviewed = app === 'approved' ? APP_CONTENT : undefined;
  const inspection = inspect(subject, reading, output, reviewed);
  return inspection instanceof Promise
    ? inspection.then((late) => keepPrivate(subject, responsePlan, reading, own(late, facts)))
    : keepPrivate(subject, responsePlan, reading, own(inspection, facts));
}

/** A result as its caller alone may have it. */
function keepPrivate(
  subject: Subject,
  { admitted }: ResponsePlan,
  reading: Read,
  verdict: Verdict,
): Verdict {
  const { rule } = admitted;
  const result = isObject(reading.value) ? reading.value['result'] : undefined;
  if (!isObject(result)) return verdict;
  if (subject.era !== '2026' || verdict.kind !== 'own' || !isCacheable(rule.method, result))
    return verdict;
  const inspected = verdict.text ?? reading.text;
  const maxTtlMs = isRetry(admitted) ? 0 : subject.call.snapshot.limits.listTtlMs;
  const text = setPrivate(inspected, result, maxTtlMs);
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

/** An error as its client may have it, once it was inspected. */
function checkError(subject: Subject, verdict: Verdict, text: string, error: RpcError): Verdict {
  if (error.code === URL_ELICITATION_REQUIRED) return checkUrlError(subject, verdict, text, error);
  return subject.era === '2026' ? repairError(verdict, text, error) : verdict;
}

type Facts = { readonly isError: boolean; readonly rpcCode: number | undefined };

function ownOf(
  outcome: Inspection | Promise<Inspection>,
  facts: Facts,
): Verdict | Promise<Verdict> {
  return outcome instanceof Promise
    ? outcome.then((late) => own(late, facts))
    : own(outcome, facts);
}

function own(outcome: Inspection, facts: Facts): Verdict {
  switch (outcome.kind) {
    case 'clean':
      return { kind: 'own', text: undefined, headers: NO_HEADERS, ...facts };
    case 'changed':
      return { kind: 'own', text: outcome.text, headers: NO_HEADERS, ...facts };
    case 'withhold':
      return { kind: 'refused', refusal: refuseWith(outcome.reason) };
  }
}

function outputOf(call: Call, { admitted }: ResponsePlan): CompiledSchema | undefined {
  const { target } = admitted;
  const tool = nameOf(target);
  if ((target.kind !== 'tool' && target.kind !== 'task') || tool === undefined) return undefined;
  return definitionOf(call.snapshot.catalogueFor(admitted).standing('tool', tool))?.output;
}
