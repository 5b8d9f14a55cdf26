// What the checks of one response's messages share: the response plan, which is the request that the response answers,
// its caller and the obligations on the response; the state of the checks; and the content inspection of a single
// message, whose findings are recorded whether or not it passes. For an ordinary response the plan is the authorized
// request itself; for a resumed stream it is read from the sealed event id, and for legacy SSE from the sealed request
// id. Nothing here decides which request a message belongs to.
// Source: docs/reference/responses.md; docs/reference/design.md, "How a response finds its plan"; MCP 2025-11-25,
// resumability.

import type { ContentKind } from '../config/settings.js';
import { createFindingLog } from '../inspection/findings.js';
import { LARGE_TEXT_CHARS } from '../inspection/jobs.js';
import { type InspectionOutcome, withFurtherFindings } from '../inspection/responses.js';
import { type PlannedFields, planInSteps, planRedaction } from '../inspection/sensitive-fields.js';
import { type Allow, type Refusal, refuseWith } from '../policy/decision.js';
import type { CompiledSchema } from '../policy/definitions.js';
import { type SensitiveFields, uniteFields } from '../policy/information-flow.js';
import { type ResponseObligations, withProfilesOf } from '../policy/obligations.js';
import type { Principal } from '../policy/principal.js';
import type { Reason } from '../policy/reasons.js';
import { addFindings, addInspection, type Finding, fold } from '../policy/record.js';
import type { OpenedTask, RequestFacts, SessionFacts, TaskFacts } from '../protocol/admitted-request.js';
import { exactJson, keepExactNumbers } from '../protocol/json/exact-numbers.js';
import { finishInTurns } from '../protocol/json/incremental.js';
import type { ParsedJson } from '../protocol/json/json.js';
import type { JsonObject, Target } from '../protocol/jsonrpc.js';
import { type Mending, readMended, type UpstreamReading } from '../protocol/lone-surrogates.js';
import { findMethod } from '../protocol/methods.js';
import { progressTokenOf } from '../protocol/params.js';
import { findRelatedTask, isTaskId } from '../protocol/tasks.js';
import type { Pieces } from '../protocol/transport.js';
import { protocolOfSession } from '../protocol/versions/negotiation.js';
import type { ProtocolVersion } from '../protocol/versions/revisions.js';
import { after } from '../text/after.js';
import { versionOf } from './authorization.js';
import type { NotificationGate } from './features/progress.js';
import { type MessageWithoutTask, removeRelatedTask } from './features/task-requests.js';
import type { Deliveries } from './flows.js';
import { readMessage } from './message-reading.js';
import type { AnyPort } from './ports.js';
import {
  contentKindOf,
  type PlannedMessage,
  profileOf,
  type RequestContext,
  sensitiveFieldsOf,
} from './request-context.js';

/** What a response is checked against. An authorized request is one. */
export type ResponsePlan = {
  readonly admitted: PlannedMessage;
  readonly principal: Principal;
  readonly responseObligations: ResponseObligations;
  /** The arguments are not known any more: the version under which the request was decided with them. */
  readonly decidedUnder?: string | undefined;
};

/** Arguments that are longer as JSON are not carried: the ids of events and requests have to stay short. */
const MAX_CARRIED_ARGS = 1024;

/** What is sealed of the request of a plan, by which its response is checked wherever and whenever it comes. */
export function sealedFactsOf(
  { snapshot }: RequestContext,
  { admitted, responseObligations, decidedUnder }: ResponsePlan,
): RequestFacts | undefined {
  const { message, rule, target, mayBecomeTask, task, args } = admitted;
  if (message.kind !== 'request') return undefined;
  const { maxResultBytes, profiles } = responseObligations;
  const text = args && exactJson(args);
  const isLong = text !== undefined && text.length > MAX_CARRIED_ARGS;
  return {
    id: message.id,
    method: rule.method,
    target,
    mayDefer: mayBecomeTask,
    task: task?.sealed,
    maxResultBytes,
    profiles,
    progressToken: progressTokenOf(message),
    args: isLong ? undefined : text,
    decidedUnder: decidedUnder ?? (isLong ? versionOf(snapshot) : undefined),
  };
}

function argumentsIn(text: string | undefined): JsonObject | undefined {
  if (text === undefined) return undefined;
  const args: JsonObject = JSON.parse(text);
  keepExactNumbers(text, { start: 0, end: text.length }, args);
  return args;
}

/**
 * The plan of a stream that is resumed; `undefined` if its method is no longer supported, or the task that it is about
 * has expired.
 */
export function resumeResponsePlan(
  request: RequestFacts,
  session: SessionFacts,
  principal: Principal,
  openTask: (sealed: string) => TaskFacts | undefined,
): ResponsePlan | undefined {
  const sealed = request.task;
  if (sealed === undefined) return responsePlanOf(request, session, principal);
  const facts = openTask(sealed);
  return facts && responsePlanOf(request, session, principal, { ...facts, sealed });
}

/** The plan for the response to a sealed request; `undefined` if its method is no longer supported. */
export function responsePlanOf(
  request: RequestFacts,
  session: SessionFacts,
  principal: Principal,
  task?: OpenedTask,
): ResponsePlan | undefined {
  const { id, method, target, maxResultBytes, profiles, progressToken } = request;
  const { mayDefer: mayBecomeTask = false, decidedUnder } = request;
  const protocol = protocolOfSession(session.version);
  const rule = findMethod(protocol.era, 'client', method, session.version);
  if (rule?.type !== 'request') return undefined;
  const params = progressToken === undefined ? undefined : { _meta: { progressToken } };
  const message = { kind: 'request', id, method, params } as const;
  const { version, allowedServerRequests = [], elicitation = [], apps = false } = session;
  return {
    admitted: {
      protocol,
      version,
      session,
      rule,
      target,
      args: argumentsIn(request.args),
      message,
      serverRequestId: undefined,
      allowedServerRequests,
      elicitation,
      apps,
      mayBecomeTask,
      task,
    },
    principal,
    responseObligations: { maxResultBytes, profiles },
    decidedUnder,
  };
}

/** The context in which content is also inspected under the profiles that these decisions about it name. */
export function withProfiles(context: CheckContext, allows: readonly Allow[]): CheckContext {
  const responseObligations = withProfilesOf(context.responseObligations, allows);
  return responseObligations === context.responseObligations ? context : { ...context, responseObligations };
}

/** The outcome of checking one message. `text` is absent if the message passes byte for byte. */
export type MessageOutcome =
  | {
      readonly kind: 'response';
      readonly text: string | undefined;
      /** Replaces `text`: a list as it was filtered before. */
      readonly pieces?: Pieces;
      readonly headers: { readonly [name: string]: string };
      readonly isError: boolean;
      readonly rpcCode: number | undefined;
      /** The gateway's own words: nothing of the upstream is in it. */
      readonly isOwn?: true;
    }
  | {
      readonly kind: 'pass';
      readonly text: string | undefined;
      readonly isOwn?: true;
      /** What it is about, if not what its response is about. */
      readonly about?: Target;
    }
  | { readonly kind: 'drop' }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

export type Inspection = InspectionOutcome;

/** The ports that the check of a message may use. */
export type CheckPorts = Exclude<AnyPort, 'aggregates' | 'identity' | 'leases' | 'legacySse' | 'streams'>;

/**
 * The state of one response's checks. `responseObligations` applies to every message that answers a request and
 * is absent on unsolicited streams. `previousTail` is what the inspection remembers of the previous messages, because a
 * secret may be split across two. `refusedServerRequests` counts all that were refused, of which the first 64 are
 * recorded one by one.
 */
export type CheckContext = {
  readonly call: RequestContext<CheckPorts>;
  responseObligations: ResponseObligations | undefined;
  readonly principal: Principal;
  readonly protocol: ProtocolVersion;
  readonly apps: boolean;
  readonly session: SessionFacts | undefined;
  /** The method whose response is checked; `undefined` on unsolicited streams. */
  readonly requestMethod: string | undefined;
  /** What the response is about; kind `none` on unsolicited streams. */
  readonly target: Target;
  previousTail: string;
  refusedServerRequests: number;
  /** What was recorded as received, once something was. */
  deliveries: Deliveries | undefined;
  gate(): NotificationGate;
};

/** No replacement for a sensitive field is valid. */
const UNREDACTABLE: Inspection = {
  kind: 'withhold',
  reason: 'result-content',
  findings: [
    {
      detector: 'sensitive',
      direction: 'to-client',
      path: '/result',
      count: 1,
      action: 'withhold',
    },
  ],
};

export const DROP: MessageOutcome = { kind: 'drop' };
export const NO_HEADERS = {};

/** A response that passed; without `text` byte for byte. */
export function respond(
  text: string | undefined,
  isError = false,
  rpcCode?: number,
): Extract<MessageOutcome, { readonly kind: 'response' }> {
  return { kind: 'response', text, headers: NO_HEADERS, isError, rpcCode };
}

/** Nothing of the message passes. */
export function withhold(reason: Reason, detail?: string): MessageOutcome {
  return { kind: 'refused', refusal: refuseWith(reason, { detail }) };
}

const MAX_BYTES_A_CHAR = 3;

/** What an inspection depends on besides its context. */
type InspectionTerms = {
  /** The approved schema of what the message returns. */
  readonly output?: CompiledSchema | undefined;
  /** Members that a reviewer has approved. */
  readonly approved?: readonly string[] | undefined;
  /** What a server requests of its client is of no tool's kind. */
  readonly kind?: ContentKind;
};
const NO_TERMS: InspectionTerms = {};
/** Of a list, of a server request, and of a message that contains some. */
export const ALWAYS_AUTO: InspectionTerms = { kind: 'auto' };

/**
 * Inspects one message and records its findings, whether or not it passes. The id of the task that it belongs to
 * is not inspected: it is replaced by the id that the client was given. Synchronous unless the text is long and
 * not surely clean; until the promise resolves, the next message of the same response must wait.
 */
export function inspect(
  context: CheckContext,
  reading: ParsedJson,
  terms: InspectionTerms = NO_TERMS,
): Inspection | Promise<Inspection> {
  const fields = fieldsOf(context, reading);
  if (findRelatedTask(reading.value) === undefined) return inspectContent(context, reading, terms, fields);
  const related = relatedOf(context, reading);
  const outcome = inspectContent(context, related.reading, terms, fields);
  return after(outcome, (resolved) => withTask(related, resolved));
}

/** Puts the task id that the client knows into the inspected message. */
function withTask(related: MessageWithoutTask, outcome: Inspection): Inspection {
  if (outcome.kind === 'withhold') return outcome;
  const text = related.restore(outcome.kind === 'changed' ? outcome.text : related.reading.text);
  return { ...outcome, kind: 'changed', text, value: JSON.parse(text) };
}

/**
 * The sensitive fields of the tools that a message may be about: the one that its response is about, and that of the
 * task that it names. A message that comes without a response and names neither may be about any call in progress of its
 * session. Most versions have no such fields of any tool.
 */
function fieldsOf(context: CheckContext, { value }: ParsedJson): SensitiveFields | undefined {
  const { call, target, requestMethod } = context;
  if (call.snapshot.policies.sensitive === undefined) return undefined;
  const own = sensitiveFieldsOf(call, target);
  const task = taskNamedBy(context, findRelatedTask(value)?.id);
  const ofTask = task && sensitiveFieldsOf(call, { kind: 'tool', name: task.tool });
  if (requestMethod !== undefined || target.kind !== 'none' || task !== undefined) return uniteFields([own, ofTask]);
  return uniteFields(
    context
      .gate()
      .inProgress()
      .map((one) => sensitiveFieldsOf(call, one)),
  );
}

/** The caller's task that the server's own id names. */
export function taskNamedBy({ call, principal }: CheckContext, id: unknown): OpenedTask | undefined {
  const scope = { upstream: call.incoming.upstream, principal };
  return isTaskId(id) ? call.ports.tasks.recall(id, scope) : undefined;
}

/** The message without its task id. */
export function relatedOf({ call, principal }: CheckContext, reading: ParsedJson): MessageWithoutTask {
  const scope = { upstream: call.incoming.upstream, principal };
  return removeRelatedTask(reading, {
    tasks: call.ports.tasks,
    scope,
    currentTask: call.admitted?.task,
  });
}

function inspectContent(
  context: CheckContext,
  reading: ParsedJson,
  { output, approved, kind }: InspectionTerms,
  fields: SensitiveFields | undefined,
): Inspection | Promise<Inspection> {
  const { call, responseObligations } = context;
  const { text, value } = reading;
  const maxBytes = responseObligations?.maxResultBytes;
  if (maxBytes !== undefined && isLarger(text, maxBytes)) {
    return { kind: 'withhold', reason: 'result-too-large', findings: [] };
  }
  const startedMs = performance.now();
  const profile = profileOf(call, responseObligations, kind ?? contentKindOf(call, context.target, context));
  const { previousTail, requestMethod } = context;
  const inspectPlanned = (sensitive: PlannedFields | undefined): Inspection | Promise<Inspection> => {
    if (fields !== undefined && sensitive === undefined) return UNREDACTABLE;
    const input = {
      text,
      value,
      profile,
      output,
      previousTail,
      approved,
      requestMethod,
      sensitive,
    };
    return call.ports.inspection.message(input, call.incoming.upstream, call.callerKey);
  };
  const outcome = after(fields && redactionFor(call, reading, fields, output), inspectPlanned);
  return after(outcome, (resolved) => recordInspected(context, resolved, startedMs));
}

/** What stands for sensitive fields. A large result takes its turns on the event loop. */
function redactionFor(
  { ports: { inspection }, incoming: { upstream } }: RequestContext<CheckPorts>,
  { text, value }: ParsedJson,
  fields: SensitiveFields,
  output: CompiledSchema | undefined,
): PlannedFields | undefined | Promise<PlannedFields | undefined> {
  const { marks } = inspection;
  if (text.length <= LARGE_TEXT_CHARS) return planRedaction(value, fields, output, marks);
  const { loopScheduler } = inspection;
  return finishInTurns({ loopScheduler, upstream }, planInSteps(value, fields, output, marks));
}

function recordInspected(context: CheckContext, outcome: Inspection, startedMs: number): Inspection {
  const { call } = context;
  addInspection(call.record, outcome.findings, performance.now() - startedMs);
  if (outcome.kind !== 'withhold') context.previousTail = outcome.previousTail;
  return outcome;
}

/** Compares UTF-8 bytes, mostly without encoding: a text has one to three bytes per character. */
function isLarger(text: string, maxBytes: number): boolean {
  if (text.length > maxBytes) return true;
  return text.length * MAX_BYTES_A_CHAR > maxBytes && new TextEncoder().encode(text).byteLength > maxBytes;
}

/** Reads a message of an upstream. Half of a surrogate pair in it is mended before anything is checked. */
export function readUpstreamMessage(
  call: RequestContext<'inspection'>,
  source: Uint8Array | string,
  isServerList?: boolean,
): UpstreamReading | Promise<UpstreamReading> {
  return readMended(source, (text) => readMessage(call, text, isServerList));
}

/** Items that the record names as left out. */
const MAX_NAMED_ITEMS = 5;

/** Records what was mended in a message; the findings, for its caller. */
export function recordMending(call: RequestContext, mended: Mending): readonly Finding[] {
  const { replaced, leftOut } = mended;
  const log = createFindingLog('to-client');
  for (const path of leftOut) log.add(path, { detector: 'lone-surrogate', action: 'drop', count: 1 });
  const places = log.list().map(({ path }) => path);
  if (places.length > 0)
    fold(call.record, {
      decision: {
        detail: `left out, because of half of a surrogate pair: ${places.slice(0, MAX_NAMED_ITEMS).join('; ')}`,
      },
    });
  for (const path of replaced) log.add(path, { detector: 'lone-surrogate', action: 'strip', count: 1 });
  const findings = log.list();
  addFindings(call.record, findings);
  return findings;
}

/**
 * The outcome of a message whose text is not the one that arrived: what passes is the text that was read, and a result
 * tells its caller what was mended in it.
 */
export function settleMended(outcome: MessageOutcome, text: string, findings: readonly Finding[]): MessageOutcome {
  switch (outcome.kind) {
    case 'response':
      return outcome.pieces === undefined
        ? { ...outcome, text: withFindings(outcome.text ?? text, findings) }
        : outcome;
    case 'pass':
      return { ...outcome, text: outcome.text ?? text };
    case 'drop':
    case 'refused':
      return outcome;
  }
}

function withFindings(text: string, findings: readonly Finding[]): string {
  return findings.length === 0 ? text : withFurtherFindings(text, findings);
}

/** The outcome of a message that is dropped, which is recorded. */
export function dropped(call: RequestContext, detector: string): MessageOutcome {
  drop(call, detector);
  return DROP;
}

/** Records that a message was dropped. */
export function drop(call: RequestContext, detector: string): void {
  addFindings(call.record, [{ detector, direction: 'to-client', path: '', count: 1, action: 'drop' }]);
}
