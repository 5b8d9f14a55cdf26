// Checks responses that create a task, responses to requests about tasks and notifications of their status. The
// client sees each task under an id of its own. The result, error and input requests of a task are checked as those of
// its call would have been; a status about another task, or with members that its state does not have, is a protocol
// error.
// Source: MCP 2025-11-25, tasks (listing; status notification; security: task isolation); the Tasks extension (task
// status, polling, notifications).

import type { Allow } from '../../policy/decision.js';
import { type CompiledSchema, outputOf } from '../../policy/definitions.js';
import { responseObligationsOf } from '../../policy/obligations.js';
import type { Principal } from '../../policy/principal.js';
import type { Reason } from '../../policy/reasons.js';
import { addFindings, fold } from '../../policy/record.js';
import type { OpenedTask } from '../../protocol/admitted-request.js';
import {
  applyEdits,
  elementSpans,
  type ParsedJson,
  readJsonText,
  removalEdits,
  removeMember,
  replaceAt,
  setMember,
  spanOf,
} from '../../protocol/json/json.js';
import { isObject, type Json, type JsonObject, readEnvelope, type TaskUse } from '../../protocol/jsonrpc.js';
import { describeOddCursor } from '../../protocol/odd-items.js';
import { URL_ELICITATION_REQUIRED } from '../../protocol/responses.js';
import { type InputRequiredResult, readInputRequiredResult } from '../../protocol/server-requests.js';
import { isTaskId, readPlainTask, type Task, type TaskState } from '../../protocol/tasks.js';
import { hasTask } from '../../protocol/versions/negotiation.js';
import type { ClientTraits } from '../../protocol/versions/revisions.js';
import { decideTarget } from '../authorization.js';
import { createDeliveries, cutUnpinnedText, sealsCursors, unpinnedTextAt, withCursor } from '../flows.js';
import type { Snapshot } from '../ports.js';
import {
  ALWAYS_AUTO,
  type CheckContext,
  drop,
  dropped,
  inspect,
  type MessageOutcome,
  type ResponsePlan,
  respond,
  withhold,
  withProfiles,
} from '../response-context.js';
import { checkInputRequests, normalizeUrls } from './input-required.js';
import type { AskedClient } from './server-requests.js';

/** The members of an acknowledgement (Tasks extension: an empty result). */
const ACK_MEMBERS: ReadonlySet<string> = new Set(['resultType', '_meta']);

/** Checks a response that creates a task. The client gets an id that is valid for it alone. */
export async function checkCreatedTask(
  checkContext: CheckContext,
  { admitted, responseObligations }: ResponsePlan,
  { text }: ParsedJson,
  result: JsonObject,
): Promise<MessageOutcome> {
  const { call, principal, protocol } = checkContext;
  const { listedEra: era, tasks } = protocol;
  const task = tasks?.readCreated(result);
  if (tasks === undefined || task === undefined || admitted.target.kind !== 'tool')
    return withhold('upstream-protocol');
  const path = tasks.createdAt;
  const { maxResultBytes, profiles } = responseObligations;
  const facts = {
    id: task.id,
    era,
    tool: admitted.target.name,
    maxResultBytes,
    profiles,
  } as const;
  const scope = { upstream: call.incoming.upstream, principal };
  const sealed = call.ports.tasks.seal(facts, task.ttlMs, scope);
  if (sealed === undefined) return withhold('result-too-large');
  // Both the server's id and the sealed one look like secrets, so the text is inspected without either.
  const withoutTaskId = readJsonText(setMember(text, path, 'taskId', ''));
  if (!withoutTaskId.ok) return withhold('upstream-protocol');
  const outcome = await inspect(checkContext, withoutTaskId);
  if (outcome.kind === 'withhold') return withhold(outcome.reason);
  call.progress?.keep();
  const inspected = outcome.kind === 'changed' ? outcome.text : withoutTaskId.text;
  const withSealedId = setMember(inspected, path, 'taskId', sealed);
  return respond(withPrivateCacheScope(withSealedId, 'result', result));
}

/** Checks the response to a request about a task. */
export async function checkTaskResponse(
  checkContext: CheckContext,
  { admitted }: ResponsePlan,
  reading: ParsedJson,
): Promise<MessageOutcome> {
  const { rule, task, allowedServerRequests } = admitted;
  if (task === undefined) return withhold('internal');
  if (checkContext.protocol.tasks?.isAcknowledged(rule.method) === true) return acknowledge(checkContext, reading);
  const { version, session } = admitted;
  const context = { checkContext, task, version, session, allowedServerRequests };
  return checkTaskState(context, reading, 'result');
}

/** Passes an acknowledgement and removes every other member, since no check covers what else a server puts there. */
async function acknowledge(checkContext: CheckContext, reading: ParsedJson): Promise<MessageOutcome> {
  const span = spanOf(reading.text, ['result']);
  const edits = span === undefined ? [] : removalEdits(reading.text, span, (name) => !ACK_MEMBERS.has(name));
  const stripped = edits.length === 0 ? reading : readJsonText(applyEdits(reading.text, edits));
  if (!stripped.ok) return withhold('upstream-protocol');
  const outcome = await inspect(checkContext, stripped);
  if (outcome.kind === 'withhold') return withhold(outcome.reason);
  if (outcome.kind === 'changed') return respond(outcome.text);
  return respond(stripped === reading ? undefined : stripped.text);
}

const TASK_LIST = 'tasks/list';
const TASKS_PATH = ['result', 'tasks'];

type VisibleTask = { readonly text: string; readonly task: OpenedTask };

/**
 * Checks one page of a task list. Of the tasks that the server lists, only those pass that this gateway is known
 * to have given to this caller and that the caller may still see, under the caller's ids. A shared server cannot
 * tell its callers apart, so unknown tasks are not shown.
 */
export async function checkTaskList(checkContext: CheckContext, { text, value }: ParsedJson): Promise<MessageOutcome> {
  const span = spanOf(text, TASKS_PATH);
  const result = (value as { readonly [name: string]: { readonly [name: string]: Json } })['result'];
  const listed = result?.['tasks'];
  if (span === undefined || !Array.isArray(listed)) return withhold('upstream-protocol');
  const elements = elementSpans(text, span);
  const visibleTasks = await readVisible(checkContext, listed, (index) => {
    const { start, end } = elements[index] ?? span;
    return setMember(text.slice(start, end), [], 'taskId', '');
  });
  const page = `[${visibleTasks.map((one) => one.text).join(',')}]`;
  const { call } = checkContext;
  const listOfTasks = withoutOddCursor(checkContext, result ?? {}, applyEdits(text, [{ ...span, text: page }]));
  const cut = cutUnpinnedText(call.snapshot, TASK_LIST, listOfTasks);
  addFindings(call.record, cut.findings);
  const isSealed = sealsCursors(call.snapshot);
  const pageWithoutIds = readJsonText(isSealed ? removeMember(cut.text, ['result'], 'nextCursor') : cut.text);
  if (!pageWithoutIds.ok) return withhold('upstream-protocol');
  const outcome = await inspect(checkContext, pageWithoutIds, ALWAYS_AUTO);
  if (outcome.kind === 'withhold') return withhold(outcome.reason);
  if (!(await recordListed(checkContext, visibleTasks))) return withhold('store-unavailable');
  let shown = outcome.kind === 'changed' ? outcome.text : pageWithoutIds.text;
  shown = withSealedIds(shown, visibleTasks);
  if (isSealed) shown = withCursor(call, TASK_LIST, shown, result?.['nextCursor']);
  const list = {
    advertised: listed.length,
    visible: visibleTasks.length,
    advertisedBytes: Buffer.byteLength(text),
    visibleBytes: Buffer.byteLength(shown),
  };
  fold(call.record, { result: { list } });
  return respond(shown);
}

/** The page with the ids that its client knows, all written at once, because there may be thousands. */
function withSealedIds(text: string, visibleTasks: readonly VisibleTask[]): string {
  const span = spanOf(text, TASKS_PATH);
  if (span === undefined) return text;
  const edits = elementSpans(text, span).map(({ start, end }, index) => {
    const sealed = visibleTasks[index]?.task.sealed ?? '';
    return { start, end, text: setMember(text.slice(start, end), [], 'taskId', sealed) };
  });
  return applyEdits(text, edits);
}

/**
 * Records what tasks of a list say of themselves as received of their tools, except where it was cut. What the list itself
 * counts as is recorded with the response.
 */
function recordListed(
  { call, principal }: CheckContext,
  visibleTasks: readonly VisibleTask[],
): boolean | Promise<boolean> {
  if (unpinnedTextAt(call.snapshot) === 'cut') return true;
  const tools = [...new Set(visibleTasks.map(({ task }) => task.tool))];
  return createDeliveries(call, principal).record(tools.map((tool) => ({ kind: 'task', tool, use: 'list' })));
}

async function readVisible(
  checkContext: CheckContext,
  listed: readonly Json[],
  textWithoutId: (index: number) => string,
): Promise<readonly VisibleTask[]> {
  const visibleTasks: VisibleTask[] = [];
  for (const [index, one] of listed.entries()) {
    const known = knownTask(checkContext, one);
    const text = known && (await inspectListed(checkContext, textWithoutId(index), known));
    if (known !== undefined && text !== undefined) visibleTasks.push({ text, task: known.task });
  }
  return visibleTasks;
}

/** A task of a list by what holds for its tool, as in a status of its own; `undefined` if it may not be shown. */
async function inspectListed(
  checkContext: CheckContext,
  text: string,
  { task, allow }: KnownTask,
): Promise<string | undefined> {
  const responseObligations = responseObligationsOf(allow, task);
  const { maxResultBytes, profiles } = responseObligations;
  const isPlain = maxResultBytes === undefined && profiles.length === 0;
  if (isPlain && checkContext.call.snapshot.policies.sensitive === undefined) return text;
  const target = { kind: 'task', tool: task.tool, use: 'list' } as const;
  const page = readJsonText(`{"jsonrpc":"2.0","id":0,"result":{"tasks":[${text}]}}`);
  const context = { ...checkContext, target, responseObligations };
  const outcome = page.ok ? await inspect(context, page) : undefined;
  if (outcome === undefined || outcome.kind === 'withhold') {
    drop(checkContext.call, 'withheld-notice');
    return undefined;
  }
  if (outcome.kind === 'clean') return text;
  const span = spanOf(outcome.text, [...TASKS_PATH, 0]);
  return span && outcome.text.slice(span.start, span.end);
}

/** The page without a cursor that is no string, which SDK clients reject. */
function withoutOddCursor({ call }: CheckContext, result: JsonObject, text: string): string {
  const { nextCursor } = result as { readonly nextCursor?: Json };
  if (nextCursor === undefined || typeof nextCursor === 'string') return text;
  const oddCursor = describeOddCursor(result);
  if (oddCursor !== undefined) fold(call.record, { decision: { detail: `left out: tasks: ${oddCursor}` } });
  return removeMember(text, ['result'], 'nextCursor');
}

/** A task of the caller, and what lets the caller see it. */
type KnownTask = { readonly task: OpenedTask; readonly allow: Allow };

function knownTask(checkContext: CheckContext, value: Json): KnownTask | undefined {
  const { call, principal } = checkContext;
  const read = readPlainTask(value);
  const scope = { upstream: call.incoming.upstream, principal };
  const task = read && call.ports.tasks.recall(read.id, scope);
  if (!hasTask(checkContext.protocol, task)) return undefined;
  const listed = { tool: task.tool, use: 'list' } as const;
  const allow = mayKnowTask(call.snapshot, principal, checkContext, listed);
  return allow && { task, allow };
}

/** A message about one task. `allowedServerRequests` is what its server may ask of the recipient. */
type TaskStateContext = TaskRecipient & {
  readonly checkContext: CheckContext;
  readonly task: OpenedTask;
};

/** Who receives it. */
type TaskRecipient = Pick<AskedClient, 'version' | 'session' | 'allowedServerRequests'>;

type EnvelopeMember = 'result' | 'params';
/** The task's result or error: its member name, and the text that the client may have. */
type Payload = { readonly member: string; readonly text: string; readonly isError: boolean };

const PROTOCOL_ERROR = { reason: 'upstream-protocol' } as const;

/** Checks a task in the result of a response, or in the params of a notification. */
async function checkTaskState(
  context: TaskStateContext,
  reading: ParsedJson,
  holder: EnvelopeMember,
): Promise<MessageOutcome> {
  const { checkContext, task } = context;
  const taskObject = isObject(reading.value) ? reading.value[holder] : undefined;
  const read = checkContext.protocol.tasks?.readStatus(taskObject);
  if (read === undefined || !isObject(taskObject) || read.id !== task.id) return withhold('upstream-protocol');
  const inputRequired = inputRequiredIn(taskObject, read.state);
  if (inputRequired === undefined) return withhold('upstream-protocol');
  const inspectState = (allows: readonly Allow[]): Promise<MessageOutcome> =>
    inspectTaskState(context, reading, { holder, taskObject, read, inputRequired, allows });
  if (inputRequired.inputRequests.length === 0) return inspectState([]);
  const { call, principal, protocol } = checkContext;
  const { allowedServerRequests, version, session } = context;
  const client = { call, principal, protocol, version, session, allowedServerRequests };
  // All of them may have been answered by now, and they are repeated at every poll.
  const scope = { upstream: call.incoming.upstream, principal };
  const remembered = call.ports.tasks.inputRequestsOf(task.id, scope);
  const asked = { ...inputRequired, text: reading.text, holder };
  return checkInputRequests(client, asked, inspectState, remembered);
}

/** What a task asks for; `undefined` if it is malformed. */
function inputRequiredIn(taskObject: JsonObject, state: TaskState): InputRequiredResult | undefined {
  return state.kind !== 'input-required' || Object.keys(state.inputRequests).length === 0
    ? NO_INPUT_REQUESTS
    : readInputRequiredResult(taskObject);
}

const NO_INPUT_REQUESTS: InputRequiredResult = { inputRequests: [], state: undefined };

type ReadTask = {
  readonly holder: EnvelopeMember;
  readonly taskObject: JsonObject;
  readonly read: Task;
  readonly inputRequired: InputRequiredResult;
  readonly allows: readonly Allow[];
};

async function inspectTaskState(
  context: TaskStateContext,
  reading: ParsedJson,
  { holder, taskObject, read, inputRequired, allows }: ReadTask,
): Promise<MessageOutcome> {
  const { checkContext, task } = context;
  const envelopeContext = withProfiles(checkContext, allows);
  const envelope = await inspectEnvelope(envelopeContext, reading, holder, read);
  if ('reason' in envelope) return withhold(envelope.reason);
  const payload = await inspectPayload(context, reading.text, holder, read);
  if (payload !== undefined && 'reason' in payload) return withhold(payload.reason);
  const withSealedId = setMember(envelope.text, [holder], 'taskId', task.sealed);
  const completed =
    payload === undefined ? withSealedId : replaceAt(withSealedId, [holder, payload.member], payload.text);
  const text = completed && normalizeUrls(completed, inputRequired, [holder]);
  if (text === undefined) return withhold('elicitation-url');
  return respond(withPrivateCacheScope(text, holder, taskObject), payload?.isError === true);
}

/** Inspects all but the result or error, which is checked separately, and the id, which looks like a secret. */
async function inspectEnvelope(
  checkContext: CheckContext,
  reading: ParsedJson,
  holder: EnvelopeMember,
  { state }: Task,
): Promise<{ readonly text: string } | { readonly reason: Reason }> {
  let text = setMember(reading.text, [holder], 'taskId', '');
  if (state.kind === 'result' || state.kind === 'error') text = replaceAt(text, [holder, state.kind], '{}') ?? text;
  const withoutTaskId = readJsonText(text);
  if (!withoutTaskId.ok) return PROTOCOL_ERROR;
  const terms = state.kind === 'input-required' ? ALWAYS_AUTO : undefined;
  const outcome = await inspect(checkContext, withoutTaskId, terms);
  switch (outcome.kind) {
    case 'withhold':
      return { reason: outcome.reason };
    case 'changed':
      return { text: outcome.text };
    case 'clean':
      return { text };
  }
}

/** Inspects the result or error as a message of its own, in the form in which the call would have been answered. */
async function inspectPayload(
  { checkContext, task }: TaskStateContext,
  text: string,
  holder: EnvelopeMember,
  { state }: Task,
): Promise<Payload | { readonly reason: Reason } | undefined> {
  if (state.kind !== 'result' && state.kind !== 'error') return undefined;
  const member = state.kind;
  const span = spanOf(text, [holder, member]);
  if (span === undefined) return PROTOCOL_ERROR;
  const asResponse = `{"jsonrpc":"2.0","id":0,"${member}":${text.slice(span.start, span.end)}}`;
  const reading = readJsonText(asResponse);
  if (!reading.ok || readEnvelope(reading.value).kind !== member) return PROTOCOL_ERROR;
  if (state.kind === 'error' && state.error['code'] === URL_ELICITATION_REQUIRED) return { reason: 'elicitation-url' };
  const isError = state.kind === 'error' || state.result['isError'] === true;
  const output = outputSchemaFor(checkContext, task);
  const outcome = await inspect(checkContext, reading, { output });
  if (outcome.kind === 'withhold') return { reason: outcome.reason };
  const inspected = outcome.kind === 'changed' ? outcome.text : asResponse;
  const payloadSpan = spanOf(inspected, [member]);
  if (payloadSpan === undefined) return PROTOCOL_ERROR;
  return { member, text: inspected.slice(payloadSpan.start, payloadSpan.end), isError };
}

function outputSchemaFor(checkContext: CheckContext, { tool }: OpenedTask): CompiledSchema | undefined {
  return outputOf(checkContext.call.snapshot.catalogFor(checkContext).statusOf('tool', tool));
}

/**
 * A task belongs to one caller, so a declared cache scope becomes `private`. `ttlMs` is the lifetime of the
 * task, not of a cache entry, although its server may mean it as one.
 */
function withPrivateCacheScope(text: string, holder: EnvelopeMember, taskObject: JsonObject): string {
  return taskObject['cacheScope'] === undefined ? text : setMember(text, [holder], 'cacheScope', 'private');
}

/** Whether the current rules and pins still allow the caller this use of a task; if so, the decision. */
export function mayKnowTask(
  snapshot: Snapshot,
  principal: Principal,
  client: ClientTraits,
  { tool, use = 'get' }: Pick<OpenedTask, 'tool'> & { readonly use?: TaskUse },
): Allow | undefined {
  const target = { kind: 'task', tool, use } as const;
  const decision = decideTarget(snapshot, principal, client, { target });
  return decision.verdict === 'allow' ? decision : undefined;
}

/** Checks a status notification like the response to a poll. Returns the text for the client, or `undefined`. */
export async function checkTaskNotification(
  checkContext: CheckContext,
  reading: ParsedJson,
  task: OpenedTask,
  recipient: TaskRecipient,
): Promise<string | undefined> {
  const { call, principal } = checkContext;
  const allow = mayKnowTask(call.snapshot, principal, checkContext, task);
  if (allow === undefined) return undefined;
  const contextOfTask: CheckContext = {
    ...checkContext,
    target: { kind: 'task', tool: task.tool, use: 'get' },
    responseObligations: responseObligationsOf(allow, task),
  };
  const context = { checkContext: contextOfTask, task, ...recipient };
  const checked = await checkTaskState(context, reading, 'params');
  return checked.kind === 'response' ? checked.text : undefined;
}

/** Checks a status notification in a session, which names its task by the server's own id. */
export async function checkSessionTaskNotification(
  checkContext: CheckContext,
  reading: ParsedJson,
  params: JsonObject | undefined,
): Promise<MessageOutcome> {
  const { call, principal } = checkContext;
  const id = params?.['taskId'];
  const scope = { upstream: call.incoming.upstream, principal };
  const task = isTaskId(id) ? call.ports.tasks.recall(id, scope) : undefined;
  const { protocol, session } = checkContext;
  const recipient = { version: session?.version ?? '', session, allowedServerRequests: [] };
  const text = hasTask(protocol, task)
    ? await checkTaskNotification(checkContext, reading, task, recipient)
    : undefined;
  if (text !== undefined) return { kind: 'pass', text };
  return dropped(call, task === undefined ? 'foreign-message' : 'withheld-notice');
}
