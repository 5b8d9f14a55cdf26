// The response pipeline: checks the messages of an upstream one at a time, each as a whole. Does the message belong to
// the request, is it supported here, is its content clean? Only what passes reaches a client. Notifications, server
// requests and messages that belong to nothing are checked here too, whether they come with a response or on a stream
// of their own: what is not known to be supported is dropped and recorded. An inspector that throws ends the request
// with a refusal.
// Source: docs/reference/design.md, "How a response finds its plan"; docs/reference/definitions.md;
// docs/reference/responses.md; MCP 2025-11-25 and 2026-07-28, base protocol; MCP 2025-11-25, cancellation; MCP Apps
// extension (SEP-1865).

import { type CompiledSchema, outputOf } from '../policy/definitions.js';
import type { ResponseObligations, RunningRequest } from '../policy/obligations.js';
import type { Principal } from '../policy/principal.js';
import { isAppUri } from '../policy/uris.js';
import type { MethodRule, OpenedTask, SessionFacts, SessionTarget } from '../protocol/admitted-request.js';
import { type ReadOutcome, takeTurn } from '../protocol/json/incremental.js';
import {
  hasInexactNumber,
  type ParsedJson,
  readJsonText,
  replaceAt,
  setMember,
  setPrivate,
  spanOf,
} from '../protocol/json/json.js';
import {
  isJsonRpc,
  isObject,
  isRequestId,
  type Json,
  type JsonObject,
  type RpcError,
  requestIdOf,
  type Target,
} from '../protocol/jsonrpc.js';
import type { UpstreamReading } from '../protocol/lone-surrogates.js';
import { LIST_MEMBERS } from '../protocol/methods.js';
import { cutNullParams } from '../protocol/null-members.js';
import { isInputRetry, paramsOf } from '../protocol/params.js';
import {
  classifyUpstreamMessage,
  METHOD_NOT_FOUND,
  type UpstreamMessage,
  URL_ELICITATION_REQUIRED,
  withId,
} from '../protocol/responses.js';
import { canRequireInput } from '../protocol/server-requests.js';
import { mayBeMessage } from '../protocol/sse.js';
import { filterOfNotification, type ListFilter } from '../protocol/subscriptions.js';
import { findRelatedTask } from '../protocol/tasks.js';
import { type Bytes, joinPieces } from '../protocol/transport.js';
import { errorSeenIn } from '../protocol/upstream-status.js';
import { protocolOfSession } from '../protocol/versions/negotiation.js';
import { mayKnowList, maySee } from './authorization.js';
import { checkInputRequired } from './features/input-required.js';
import { createGateFor, createSessionGate, type NotificationGate } from './features/progress.js';
import { checkServerRequest, checkUrlError } from './features/server-requests.js';
import {
  checkCreatedTask,
  checkSessionTaskNotification,
  checkTaskList,
  checkTaskResponse,
} from './features/task-responses.js';
import {
  countsAsReceived,
  createDelivery,
  cutsErrors,
  cutUnpinnedText,
  type Delivery,
  recordDelivery,
} from './flows.js';
import { isRead, nameOf, type RequestContext, refuseReadError, turnsOf } from './request-context.js';
import {
  ALWAYS_AUTO,
  type CheckContext,
  type CheckPorts,
  DROP,
  drop,
  type Inspection,
  inspect,
  type MessageOutcome,
  noteMending,
  type ResponsePlan,
  readUpstreamMessage,
  respond,
  settleMended,
  taskNamedBy,
  withhold,
  withProfiles,
} from './response-context.js';
import { type FilterInput, filterResponse, recallList } from './response-filter.js';

export type ResponseCheck = {
  /** Checks one message. Synchronous unless the text waits for inspection or the upstream must be listed again. */
  checkBytes(bytes: Bytes): MessageOutcome | Promise<MessageOutcome>;
  checkText(text: string): MessageOutcome | Promise<MessageOutcome>;
  /** Replaces the obligations, after a new decision, for all further messages. */
  setObligations(responseObligations: ResponseObligations): void;
};

type ResultContext = Pick<FilterInput, 'responsePlan' | 'openedSession' | 'bytes'>;

/** Methods whose response is a task if it has the form of one. */
const MAY_BECOME_TASK: ReadonlySet<string> = new Set(['tools/call', 'tasks/result']);
/** Content that a reviewer has approved byte for byte. */
const APP_CONTENT = ['/result/contents'];
const NO_TARGET: Target = { kind: 'none' };
const ONLY_NO_TARGET: readonly Target[] = Object.freeze([NO_TARGET]);
const NO_ERROR = { isError: false, rpcCode: undefined } as const;

/** Creates the check of every message that answers a request. `opened`: the session that a handshake opens. */
export function createResponseCheck(
  call: RequestContext<CheckPorts>,
  responsePlan: ResponsePlan,
  openedSession: SessionTarget,
): ResponseCheck {
  const { admitted, principal } = responsePlan;
  let notificationGate: NotificationGate | undefined;
  let delivery: Delivery | undefined;
  const context: CheckContext = {
    call,
    responseObligations: responsePlan.responseObligations,
    principal,
    protocol: admitted.protocol,
    apps: admitted.apps,
    session: admitted.session,
    requestMethod: admitted.rule.method,
    target: admitted.target,
    previousTail: '',
    refusedServerRequests: 0,
    // Most responses come without notifications. INVARIANT: no accessor, which would give the object of each request
    // a hidden class of its own and keep it alive into the old generation.
    gate() {
      notificationGate ??= createGateFor(call, admitted);
      return notificationGate;
    },
  };
  const { rule } = admitted;
  const checkResult = RESULT_CHECKS.get(rule.method) ?? RESPONSE_CHECKS[rule.response];
  const id = requestIdOf(admitted.message);

  function checkSource(source: Uint8Array | string): MessageOutcome | Promise<MessageOutcome> {
    return deliver(checkBeforeDelivery(source));
  }

  function deliver(outcome: MessageOutcome | Promise<MessageOutcome>): MessageOutcome | Promise<MessageOutcome> {
    // Without flows, which is read at each message because policies may have changed, nothing is recorded.
    if (call.snapshot.policies.flows === undefined) return outcome;
    delivery ??= createDelivery(call, principal, admitted.target);
    const isAnswer = admitted.target.kind !== 'none' || countsAsReceived(call.snapshot, rule.method);
    return recordDelivery(delivery, outcome, isAnswer);
  }

  function checkBeforeDelivery(source: Uint8Array | string): MessageOutcome | Promise<MessageOutcome> {
    const bytes = typeof source === 'string' ? undefined : source;
    const reading = readUpstreamMessage(call, source, LIST_MEMBERS.has(rule.method));
    return reading instanceof Promise
      ? reading.then((resolved) => checkRead(resolved, bytes))
      : checkRead(reading, bytes);
  }

  function checkRead(reading: UpstreamReading, bytes?: Uint8Array): MessageOutcome | Promise<MessageOutcome> {
    if (!reading.ok || (reading.mended === undefined && reading.isReduced !== true))
      return checkReading(reading, bytes);
    const findings = reading.mended === undefined ? [] : noteMending(call, reading.mended);
    const outcome = checkReading(reading, bytes);
    return outcome instanceof Promise
      ? outcome.then((resolved) => settleMended(resolved, reading.text, findings))
      : settleMended(outcome, reading.text, findings);
  }

  function checkReading(reading: ReadOutcome, bytes?: Uint8Array): MessageOutcome | Promise<MessageOutcome> {
    if (!reading.ok) return { kind: 'refused', refusal: refuseReadError(reading.error, rule.method) };
    if (bytes === undefined && !isJsonRpc(reading.value)) return dropEvent(call);
    const { protocol, version } = admitted;
    const mayRequireInput = canRequireInput(rule.method);
    const mayBecomeTask = MAY_BECOME_TASK.has(rule.method) ? admitted.mayBecomeTask : undefined;
    const message = classifyUpstreamMessage(reading.value, {
      protocol,
      id,
      version,
      mayRequireInput,
      mayBecomeTask,
    });
    switch (message.kind) {
      case 'response-input-required': {
        const inputRequired = { text: reading.text, result: message.result };
        return checkInputRequired(call, responsePlan, inputRequired, (cut, allows) => {
          const strict = withProfiles(context, allows);
          const inspected = inspect(strict, cut, ALWAYS_AUTO);
          return outcomeWhenInspected(inspected, NO_ERROR);
        });
      }
      case 'response-task':
        return checkCreatedTask(context, responsePlan, reading, message.result);
      case 'response-result':
        return checkResult(context, reading, message.result, {
          responsePlan,
          openedSession,
          bytes,
        });
      case 'response-error':
        return checkErrorResponse(reading, message.error);
      case 'foreign':
        return checkForeign(reading, message, bytes);
      case 'notification':
      case 'server-request':
      case 'malformed':
        return checkOtherMessage(context, reading, message);
    }
  }

  function checkErrorResponse(reading: ParsedJson, error: RpcError): MessageOutcome | Promise<MessageOutcome> {
    if (error.code === METHOD_NOT_FOUND && cutsErrors(call.snapshot, rule.method))
      return withOwnError(reading.text, error);
    const facts = { isError: true, rpcCode: error.code };
    if (error.code === URL_ELICITATION_REQUIRED)
      return checkUrlError(context, reading.text, error, (strict) =>
        outcomeWhenInspected(inspect(strict, reading, ALWAYS_AUTO), facts),
      );
    const inspected = inspect(context, reading);
    const outcome = outcomeWhenInspected(inspected, facts);
    return outcome instanceof Promise
      ? outcome.then((resolved) => correctError(context, resolved, reading.text, error))
      : correctError(context, outcome, reading.text, error);
  }

  /** A body that is an error under no id, or under another, answers the request that it was sent for. */
  function checkForeign(
    reading: ParsedJson,
    message: Extract<UpstreamMessage, { readonly kind: 'foreign' }>,
    bytes: Uint8Array | undefined,
  ): MessageOutcome | Promise<MessageOutcome> {
    const error = bytes && errorSeenIn(reading.value, id);
    if (id === undefined || error === undefined || error.isOwn) return checkOtherMessage(context, reading, message);
    const text = withId(reading.text, id);
    const outcome = checkBeforeDelivery(text);
    return outcome instanceof Promise
      ? outcome.then((resolved) => withResponseText(resolved, text))
      : withResponseText(outcome, text);
  }

  return {
    checkBytes(bytes) {
      const recalled = recallList(call, responsePlan, bytes);
      return recalled === undefined ? checkSource(joinPieces(bytes)) : deliver(recalled);
    },
    checkText: (text) => (mayBeMessage(text) ? checkSource(text) : dropEvent(call)),
    setObligations(responseObligations) {
      context.responseObligations = responseObligations;
    },
  };
}

/**
 * A server without a method says so in a message of the gateway's own, where its words would begin a flow: clients ask
 * for every list as they connect.
 */
function withOwnError(text: string, { code }: RpcError): MessageOutcome {
  const error = JSON.stringify({ code, message: 'Method not found' });
  const own = replaceAt(text, ['error'], error);
  return own === undefined ? withhold('internal') : { ...respond(own, true, code), isOwn: true };
}

function withResponseText(outcome: MessageOutcome, text: string): MessageOutcome {
  return outcome.kind === 'response' ? { ...outcome, text: outcome.text ?? text } : outcome;
}

/** An event that is no message, such as `ping`: skipped, as SDK clients do, and counted. */
function dropEvent(call: RequestContext): MessageOutcome {
  drop(call, 'not-a-message');
  return DROP;
}

/** Creates the check for the messages of an unsolicited stream. It returns the text to send, or `undefined`. */
export function createUnsolicitedCheck(
  call: RequestContext<CheckPorts>,
  principal: Principal,
  session: SessionFacts,
  gate: NotificationGate = createSessionGate(call, session),
): (data: string) => Promise<string | undefined> {
  const { version } = session;
  const protocol = protocolOfSession(version);
  const context: CheckContext = {
    call,
    responseObligations: undefined,
    principal,
    protocol,
    apps: session.apps ?? false,
    session,
    requestMethod: undefined,
    target: NO_TARGET,
    previousTail: '',
    refusedServerRequests: 0,
    gate: () => gate,
  };
  const record = createRecording(call, principal);
  return async (data) => {
    const reading = await readUnsolicited(call, data);
    if (reading === undefined) return undefined;
    const message = classifyUpstreamMessage(reading.value, { protocol, id: undefined, version });
    if (isResponseMessage(message)) return undefined;
    // Messages of such a stream are independent: no text continues in the next message.
    context.previousTail = '';
    const running = message.kind === 'notification' ? gate.requestOf(message.method, message.params) : undefined;
    const verdict = await checkOtherMessage(contextOf(context, running), reading, message);
    if (verdict.kind !== 'pass') return undefined;
    const isRecorded = await record(message, mayBeAbout(context, running, reading));
    return isRecorded ? (verdict.text ?? reading.text) : undefined;
  };
}

/** Records a message of a stream that has content as received of these targets. False if that fails: it is dropped. */
function createRecording(
  call: RequestContext<'flows'>,
  principal: Principal,
): (message: UpstreamMessage, targets: readonly Target[]) => Promise<boolean> {
  const deliveries = new Map<string | undefined, Delivery>();
  return async (message, targets) => {
    if (!carriesContent(message)) return true;
    for (const target of targets) {
      const tool = target.kind === 'tool' || target.kind === 'task' ? nameOf(target) : undefined;
      const delivery = deliveries.get(tool) ?? createDelivery(call, principal, target);
      deliveries.set(tool, delivery);
      if (await delivery.record()) continue;
      drop(call, 'unrecorded-delivery');
      return false;
    }
    return true;
  };
}

/** What a message that comes without a response may be about: any call in progress, unless it names its own or a task. */
function mayBeAbout(
  context: CheckContext,
  running: RunningRequest | undefined,
  { value }: ParsedJson,
): readonly Target[] {
  if (running !== undefined) return [running.target];
  const isOfTask = taskOf(context, value) !== undefined;
  return isOfTask ? ONLY_NO_TARGET : [NO_TARGET, ...context.gate().inProgress()];
}

/** Progress belongs to a request wherever it arrives, so it is checked as beside the response to that request. */
function contextOf(context: CheckContext, running: RunningRequest | undefined): CheckContext {
  if (running === undefined) return context;
  const { target, responseObligations } = running;
  return { ...context, target, responseObligations };
}

/** Reads one message of such a stream; what cannot be read is dropped and recorded. */
async function readUnsolicited(call: RequestContext<CheckPorts>, data: string): Promise<ParsedJson | undefined> {
  if (!mayBeMessage(data)) {
    drop(call, 'not-a-message');
    return undefined;
  }
  const reading = await readUpstreamMessage(call, data);
  if (reading.ok) {
    if (reading.mended !== undefined) noteMending(call, reading.mended);
    return reading;
  }
  drop(call, isRead(reading) ? 'malformed-message' : 'unread-message');
  return undefined;
}

type ResponseMessage = Extract<
  UpstreamMessage,
  { kind: 'response-result' | 'response-error' | 'response-input-required' | 'response-task' }
>;

function isResponseMessage(message: UpstreamMessage): message is ResponseMessage {
  return message.kind.startsWith('response-');
}

/** Checks a result by its method: only a few methods have a check of their own. */
type ResultCheck = (
  checkContext: CheckContext,
  reading: ParsedJson,
  result: JsonObject,
  context: ResultContext,
) => MessageOutcome | Promise<MessageOutcome>;

const RESULT_CHECKS: ReadonlyMap<string, ResultCheck> = new Map([
  ['ping', checkEmpty],
  ['logging/setLevel', checkEmpty],
  ['tasks/list', (subject, reading) => checkTaskList(subject, reading)],
  ['resources/read', checkResource],
]);

/** The check for the results of methods that are handled alike. */
const RESPONSE_CHECKS: { readonly [response in MethodRule['response']]: ResultCheck } = {
  task: (subject, reading, _result, { responsePlan }) => checkTaskResponse(subject, responsePlan, reading),
  filter: (checkContext, reading, result, context) =>
    filterResponse({ ...context, call: checkContext.call, reading, result }),
  inspect: checkContent,
  envelope: checkContent,
  subscription: checkContent,
};

function checkResource(
  subject: CheckContext,
  reading: ParsedJson,
  result: JsonObject,
  context: ResultContext,
): MessageOutcome | Promise<MessageOutcome> {
  const app = reviewAppContent(subject.call, context.responsePlan, reading, result);
  if (app === 'changed') return withhold('tool-changed');
  const reviewed = app === 'approved' ? APP_CONTENT : undefined;
  return checkContent(subject, reading, result, context, reviewed);
}

/** The result of a request that is answered by nothing. */
function checkEmpty(
  checkContext: CheckContext,
  reading: ParsedJson,
  result: JsonObject,
  context: ResultContext,
): MessageOutcome | Promise<MessageOutcome> {
  const { call } = checkContext;
  const { text, findings } = cutUnpinnedText(call.snapshot, context.responsePlan.admitted.rule.method, reading.text);
  call.record.findings.push(...findings);
  const left = text === reading.text ? reading : readJsonText(text);
  if (!left.ok) return withhold('internal');
  const kept = left !== reading && isObject(left.value) ? left.value['result'] : result;
  if (!isObject(kept)) return withhold('internal');
  const outcome = checkContent(checkContext, left, kept, context);
  if (left === reading) return outcome;
  return outcome instanceof Promise
    ? outcome.then((resolved) => withResponseText(resolved, text))
    : withResponseText(outcome, text);
}

function checkContent(
  checkContext: CheckContext,
  reading: ParsedJson,
  result: JsonObject,
  context: ResultContext,
  reviewed?: readonly string[],
): MessageOutcome | Promise<MessageOutcome> {
  const { responsePlan } = context;
  const facts = { isError: result['isError'] === true, rpcCode: undefined };
  const output = outputSchemaFor(checkContext.call, responsePlan);
  const inspection = inspect(checkContext, reading, { output, approved: reviewed });
  return inspection instanceof Promise
    ? inspection.then((resolved) =>
        markPrivate(checkContext, responsePlan, reading, outcomeOfInspection(resolved, facts)),
      )
    : markPrivate(checkContext, responsePlan, reading, outcomeOfInspection(inspection, facts));
}

/** Marks a result that may be cached as private to its caller, and bounds its lifetime. */
function markPrivate(
  context: CheckContext,
  { admitted }: ResponsePlan,
  reading: ParsedJson,
  outcome: MessageOutcome,
): MessageOutcome {
  const { rule } = admitted;
  const result = isObject(reading.value) ? reading.value['result'] : undefined;
  if (!isObject(result)) return outcome;
  if (!context.protocol.hasCacheHints || outcome.kind !== 'response' || !isCacheable(rule.method, result))
    return outcome;
  const inspected = outcome.text ?? reading.text;
  const maxTtlMs = isInputRetry(admitted) ? 0 : context.call.snapshot.limits.listTtlMs;
  const text = setPrivate(inspected, result, maxTtlMs);
  return text === reading.text ? outcome : { ...outcome, text };
}

/** What a caller may read depends on the caller, so no shared cache may store it (MCP 2026-07-28, caching). */
function isCacheable(method: string, result: JsonObject): boolean {
  return method === 'resources/read' || result['cacheScope'] !== undefined || result['ttlMs'] !== undefined;
}

/**
 * Corrects an inspected error: the error code that the client's version defines for it, and only versions that
 * the gateway supports. Everything else passes byte for byte.
 * Source: MCP 2026-07-28, error codes and versioning.
 */
function correctError(
  { protocol }: CheckContext,
  outcome: MessageOutcome,
  text: string,
  error: RpcError,
): MessageOutcome {
  if (outcome.kind !== 'response') return outcome;
  const correction = protocol.correctionOf(error);
  let repaired = outcome.text ?? text;
  if (correction.code !== error.code) repaired = setMember(repaired, ['error'], 'code', correction.code);
  if (correction.supported !== undefined)
    repaired = setMember(repaired, ['error', 'data'], 'supported', correction.supported);
  return repaired === text ? outcome : { ...outcome, text: repaired, rpcCode: correction.code };
}

type Facts = { readonly isError: boolean; readonly rpcCode: number | undefined };

function outcomeWhenInspected(
  outcome: Inspection | Promise<Inspection>,
  facts: Facts,
): MessageOutcome | Promise<MessageOutcome> {
  return outcome instanceof Promise
    ? outcome.then((resolved) => outcomeOfInspection(resolved, facts))
    : outcomeOfInspection(outcome, facts);
}

function outcomeOfInspection(outcome: Inspection, { isError, rpcCode }: Facts): MessageOutcome {
  if (outcome.kind === 'withhold') return withhold(outcome.reason);
  return respond(outcome.kind === 'changed' ? outcome.text : undefined, isError, rpcCode);
}

function outputSchemaFor(call: RequestContext, { admitted }: ResponsePlan): CompiledSchema | undefined {
  const { target } = admitted;
  const tool = nameOf(target);
  if ((target.kind !== 'tool' && target.kind !== 'task') || tool === undefined) return undefined;
  return outputOf(call.snapshot.catalogFor(admitted).statusOf('tool', tool));
}

/** `approved`: byte for byte what was reviewed. `none`: not such a resource, so it has to be inspected. */
type AppContent = 'approved' | 'changed' | 'none';

/**
 * Compares content that a host runs with its pin: a `ui://` resource passes unchanged if it was approved, and is refused
 * otherwise. A difference updates the catalog for all callers, like a changed definition. Without pinning nothing is
 * compared.
 */
function reviewAppContent(
  call: RequestContext<'inspection' | 'upstreams'>,
  { admitted }: ResponsePlan,
  { text }: ParsedJson,
  result: JsonObject,
): AppContent {
  const { target } = admitted;
  if (target.kind !== 'resource') return 'none';
  const { uri } = target;
  const catalog = call.snapshot.catalogFor(admitted);
  if (!isAppUri(uri) || catalog.mode === 'off') return 'none';
  const contents = result['contents'] ?? null;
  const span = spanOf(text, ['result', 'contents']);
  const isExact = span !== undefined && !hasInexactNumber(text, span);
  const definition = { uri, contents };
  const digest = call.ports.inspection.digest('resource', definition, isExact);
  if (digest === catalog.statusOf('resource', uri).pinned?.digest) return 'approved';
  const item = { name: uri, digest, definition };
  const page = { kind: 'resource' as const, items: [item] };
  call.ports.upstreams.notePage(call.incoming.upstream, page);
  return 'changed';
}

/** Notifications that are rebuilt carry nothing of the upstream; a cancellation has a reason in its own words. */
function carriesContent(message: UpstreamMessage): boolean {
  return message.kind !== 'notification' || filterOfNotification(message.method) === undefined;
}

/** Checks one message that is not the response itself. It leaves without `params` that is null. */
function checkOtherMessage(
  context: CheckContext,
  received: ParsedJson,
  message: Exclude<UpstreamMessage, ResponseMessage>,
): MessageOutcome | Promise<MessageOutcome> {
  const reading = cutNullParams(received);
  const outcome = recordOfTask(context, reading, checkWithoutNull(context, reading, message));
  if (reading === received) return outcome;
  const { text } = reading;
  return outcome instanceof Promise ? outcome.then((resolved) => withText(resolved, text)) : withText(outcome, text);
}

/** A message that names a task is received of its tool, beside whatever response it comes. */
function recordOfTask(
  context: CheckContext,
  reading: ParsedJson,
  outcome: MessageOutcome | Promise<MessageOutcome>,
): MessageOutcome | Promise<MessageOutcome> {
  const { call, principal } = context;
  if (call.snapshot.policies.flows === undefined) return outcome;
  if (outcome instanceof Promise) return outcome.then((resolved) => recordOfTask(context, reading, resolved));
  const task = outcome.kind === 'pass' ? taskOf(context, reading.value) : undefined;
  if (task === undefined) return outcome;
  const target = { kind: 'task', tool: task.tool, use: 'get' } as const;
  return recordDelivery(createDelivery(call, principal, target), outcome, true);
}

/** The caller's task that a message is about: by its status, or because it names it as related. */
function taskOf(context: CheckContext, value: Json): OpenedTask | undefined {
  const params = isObject(value) && value['method'] === TASK_STATUS ? value['params'] : undefined;
  const id = isObject(params) ? params['taskId'] : findRelatedTask(value)?.id;
  return taskNamedBy(context, id);
}

const TASK_STATUS = 'notifications/tasks/status';

/** What passes as it was read leaves as this text. */
function withText(outcome: MessageOutcome, text: string): MessageOutcome {
  return outcome.kind === 'pass' ? { ...outcome, text: outcome.text ?? text } : outcome;
}

function checkWithoutNull(
  context: CheckContext,
  reading: ParsedJson,
  message: Exclude<UpstreamMessage, ResponseMessage>,
): MessageOutcome | Promise<MessageOutcome> {
  const { call } = context;
  switch (message.kind) {
    case 'notification':
      return checkNotification(context, reading, message);
    case 'server-request':
      return checkServerRequest(context, reading, message);
    case 'foreign':
      drop(call, 'foreign-message');
      return DROP;
    case 'malformed':
      drop(call, 'malformed-message');
      return withhold('upstream-protocol', `${context.requestMethod ?? 'a stream'}: the message is not valid JSON-RPC`);
  }
}

function checkNotification(
  context: CheckContext,
  reading: ParsedJson,
  message: Extract<UpstreamMessage, { kind: 'notification' }>,
): MessageOutcome | Promise<MessageOutcome> {
  const filter = filterOfNotification(message.method);
  if (filter !== undefined) return passListChanged(context, message.method, filter);
  if (message.method === 'notifications/cancelled') return checkCancellation(context, reading, message.params);
  if (message.method === TASK_STATUS) return checkSessionTaskNotification(context, reading, message.params);
  const concerns = concernsClient(context, message);
  return concerns instanceof Promise
    ? concerns.then((resolved) => passNotification(context, reading, message, resolved))
    : passNotification(context, reading, message, concerns);
}

function passNotification(
  context: CheckContext,
  reading: ParsedJson,
  message: Extract<UpstreamMessage, { kind: 'notification' }>,
  concerns: boolean,
): MessageOutcome | Promise<MessageOutcome> {
  const { call } = context;
  if (!concerns) {
    drop(call, 'unasked-notice');
    return DROP;
  }
  const notificationError = context.gate().check(message.method, message.params);
  if (notificationError !== undefined) {
    drop(call, notificationError);
    return DROP;
  }
  const outcome = inspect(context, reading);
  return outcome instanceof Promise
    ? outcome.then((resolved) => passInspected(call, resolved))
    : passInspected(call, outcome);
}

function passInspected(call: RequestContext, outcome: Inspection): MessageOutcome {
  if (outcome.kind === 'withhold') {
    drop(call, 'withheld-notice');
    return DROP;
  }
  return { kind: 'pass', text: outcome.kind === 'changed' ? outcome.text : undefined };
}

async function passListChanged(context: CheckContext, method: string, filter: ListFilter): Promise<MessageOutcome> {
  const { call, principal } = context;
  // The upstream is listed again first, because a client that lists at once must not be shown unverified
  // definitions.
  await call.ports.upstreams.noteListChanged(call.incoming.upstream);
  if (!mayKnowList(call.snapshot, principal, context, filter)) {
    drop(call, 'unasked-notice');
    return DROP;
  }
  // Rebuilt rather than forwarded: anything else that the upstream put into the notification must not pass.
  return { kind: 'pass', text: JSON.stringify({ jsonrpc: '2.0', method }) };
}

function concernsClient(
  context: CheckContext,
  { method, params }: Extract<UpstreamMessage, { kind: 'notification' }>,
): boolean | Promise<boolean> {
  switch (method) {
    case 'notifications/resources/updated':
      return mayKnowResource(context, params);
    case 'notifications/message':
      return mayLog(context);
    case 'notifications/elicitation/complete':
      return context.session?.allowedServerRequests?.includes('elicitation/url') === true;
    default:
      return true;
  }
}

/** Passes on the cancellation of a server request. The server names its own id; the client knows the sealed one. */
async function checkCancellation(
  context: CheckContext,
  reading: ParsedJson,
  params: JsonObject | undefined,
): Promise<MessageOutcome> {
  const { call, session } = context;
  const id = params?.['requestId'];
  const sealed =
    isRequestId(id) && session !== undefined ? call.ports.sessions.serverRequests.recall(id, session) : undefined;
  const outcome = sealed === undefined ? undefined : await inspect(context, reading);
  if (sealed === undefined || outcome === undefined || outcome.kind === 'withhold') {
    drop(call, sealed === undefined ? 'foreign-message' : 'withheld-notice');
    return DROP;
  }
  const text = outcome.kind === 'changed' ? outcome.text : reading.text;
  const withSealedId = replaceAt(text, ['params', 'requestId'], JSON.stringify(sealed));
  return withSealedId === undefined ? DROP : { kind: 'pass', text: withSealedId };
}

/** In 2026-07-28 a server may log only if the request asked for it (MCP 2026-07-28, logging). */
function mayLog({ call, protocol }: CheckContext): boolean {
  return protocol.mayLog(call.admitted && paramsOf(call.admitted)['_meta']);
}

/** Decided in a turn of its own, because a URI may have many readings and a stream many such notifications. */
function mayKnowResource(context: CheckContext, params: JsonObject | undefined): boolean | Promise<boolean> {
  const uri = params?.['uri'];
  if (typeof uri !== 'string') return false;
  const { call, principal } = context;
  return takeTurn(turnsOf(call), () => maySee(call.snapshot, principal, context, { kind: 'resource', uri }));
}
