// Checks the status of a task before its client sees it, in a response or in a notification. The task gets the
// id that the client knows, and its result, error and input requests are checked as those of its call would have
// been. A status about another task, or with members that its state does not have, is a protocol error.
// Source: MCP 2025-11-25, tasks; tasks (status notification); the Tasks extension (task status, polling,
// notifications).

import { responseObligationsOf } from '../../../policy/authorized-request.js';
import type { Allow } from '../../../policy/decision.js';
import { type CompiledSchema, outputOf as outputSchemaOf } from '../../../policy/definitions.js';
import type { Principal } from '../../../policy/principal.js';
import type { Reason } from '../../../policy/reasons.js';
import type { OpenedTask } from '../../../protocol/admitted-request.js';
import {
  applyEdits,
  type ParsedJson,
  readJsonText,
  setMember,
  spanOf,
} from '../../../protocol/json/json.js';
import {
  isObject,
  type JsonObject,
  readEnvelope,
  type ServerRequestName,
  type TaskUse,
} from '../../../protocol/jsonrpc.js';
import type { ClientTraits } from '../../../protocol/listings.js';
import {
  type InputRequiredResult,
  readInputRequiredResult,
} from '../../../protocol/server-requests.js';
import { isTaskId, type Task, type TaskState } from '../../../protocol/tasks.js';
import { hasTask } from '../../../protocol/versions/detection.js';
import { decideTarget } from '../../authorization.js';
import type { Snapshot } from '../../ports.js';
import { sensitiveFieldsOf } from '../../request-context.js';
import {
  type CheckContext,
  DROP,
  drop,
  inspect,
  type MessageOutcome,
} from '../../response-context.js';
import {
  decideInputRequests,
  limitInputRequests,
  normalizeUrls,
  noteWithheld,
} from '../input-required.js';

/** A message about one task. `allowedServerRequests` is what its server may ask of the recipient. */
type TaskStateContext = {
  readonly checkContext: CheckContext;
  readonly task: OpenedTask;
  readonly allowedServerRequests: readonly ServerRequestName[];
};

/** The text that may pass, or the reason why nothing does. */
type TaskStateVerdict =
  | { readonly text: string; readonly isError: boolean }
  | { readonly reason: Reason };

type EnvelopeMember = 'result' | 'params';
/** The task's result or error: its member name, and the text that the client may have. */
type Payload = { readonly member: string; readonly text: string; readonly isError: boolean };

const PROTOCOL_ERROR = { reason: 'upstream-protocol' } as const;

/** Checks a task in the result of a response, or in the params of a notification. */
export async function checkTaskState(
  context: TaskStateContext,
  reading: ParsedJson,
  holder: EnvelopeMember,
): Promise<TaskStateVerdict> {
  const { checkContext, task } = context;
  const taskObject = isObject(reading.value) ? reading.value[holder] : undefined;
  const read = checkContext.protocol.tasks?.readStatus(taskObject);
  if (read === undefined || !isObject(taskObject) || read.id !== task.id) return PROTOCOL_ERROR;
  const asked = decideServerRequests(context, taskObject, read.state);
  if ('reason' in asked) return asked;
  const envelope = await inspectEnvelope(checkContext, reading, holder, read);
  if ('reason' in envelope) return envelope;
  const payload = await inspectPayload(context, reading.text, holder, read);
  if (payload !== undefined && 'reason' in payload) return payload;
  const withSealedId = setMember(envelope.text, [holder], 'taskId', task.sealed);
  const completed =
    payload === undefined
      ? withSealedId
      : replaceAt(withSealedId, [holder, payload.member], payload.text);
  const text = completed && normalizeUrls(completed, asked.inputRequired, [holder]);
  if (text === undefined) return { reason: 'elicitation-url' };
  const limited = await limitServerRequests(context, asked.decided);
  if (limited !== undefined) return limited;
  return {
    text: withPrivateCacheScope(text, holder, taskObject),
    isError: payload?.isError === true,
  };
}

type AskedInput = {
  readonly inputRequired: InputRequiredResult;
  readonly decided: Parameters<typeof limitInputRequests>[1];
};

const NO_INPUT_REQUESTS: AskedInput = {
  inputRequired: { inputRequests: [], state: undefined },
  decided: [],
};

/** Decides the input requests of a task, all of which may have been answered by now. */
function decideServerRequests(
  { checkContext, allowedServerRequests }: TaskStateContext,
  taskObject: JsonObject,
  state: TaskState,
): AskedInput | { readonly reason: Reason } {
  if (state.kind !== 'input-required' || Object.keys(state.inputRequests).length === 0)
    return NO_INPUT_REQUESTS;
  const inputRequired = readInputRequiredResult(taskObject);
  if (inputRequired === undefined) return PROTOCOL_ERROR;
  const { call, principal } = checkContext;
  const decided = decideInputRequests({ call, principal, allowedServerRequests }, inputRequired);
  if (!('reason' in decided)) return { inputRequired, decided };
  noteWithheld(call, decided.inputRequest);
  return { reason: decided.reason };
}

/** Counts the input requests of a task, which are repeated at every poll and counted once. */
async function limitServerRequests(
  { checkContext: { call, principal }, task }: TaskStateContext,
  decided: AskedInput['decided'],
): Promise<{ readonly reason: Reason } | undefined> {
  if (decided.length === 0) return undefined;
  const scope = { upstream: call.incoming.upstream, principal };
  const rememberedRequests = call.ports.tasks.inputRequestsOf(task.id, scope);
  const limited = await limitInputRequests({ call, principal }, decided, rememberedRequests);
  if (limited === undefined) return undefined;
  noteWithheld(call, limited.inputRequest);
  return { reason: limited.reason };
}

/** Inspects all but the result or error, which is checked separately, and the id, which looks like a secret. */
async function inspectEnvelope(
  checkContext: CheckContext,
  reading: ParsedJson,
  holder: EnvelopeMember,
  { state }: Task,
): Promise<{ readonly text: string } | { readonly reason: Reason }> {
  let text = setMember(reading.text, [holder], 'taskId', '');
  if (state.kind === 'result' || state.kind === 'error')
    text = replaceAt(text, [holder, state.kind], '{}') ?? text;
  const withoutTaskId = readJsonText(text);
  if (!withoutTaskId.ok) return PROTOCOL_ERROR;
  const outcome = await inspect(checkContext, withoutTaskId);
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
  const isError = state.kind === 'error' || state.result['isError'] === true;
  const sensitive = sensitiveFieldsOf(checkContext.call, {
    kind: 'task',
    tool: task.tool,
    use: 'get',
  });
  const output = outputOf(checkContext, task);
  const outcome = await inspect(checkContext, reading, output, [], sensitive);
  if (outcome.kind === 'withhold') return { reason: outcome.reason };
  const inspected = outcome.kind === 'changed' ? outcome.text : asResponse;
  const payloadSpan = spanOf(inspected, [member]);
  if (payloadSpan === undefined) return PROTOCOL_ERROR;
  return { member, text: inspected.slice(payloadSpan.start, payloadSpan.end), isError };
}

function outputOf(checkContext: CheckContext, { tool }: OpenedTask): CompiledSchema | undefined {
  return outputSchemaOf(checkContext.call.snapshot.catalogFor(checkContext).statusOf('tool', tool));
}

function replaceAt(text: string, path: readonly string[], value: string): string | undefined {
  const span = spanOf(text, path);
  return span === undefined ? undefined : applyEdits(text, [{ ...span, text: value }]);
}

/**
 * A task belongs to one caller, so a declared cache scope becomes `private`. `ttlMs` is the lifetime of the
 * task, not of a cache entry, although its server may mean it as one.
 */
function withPrivateCacheScope(
  text: string,
  holder: EnvelopeMember,
  taskObject: JsonObject,
): string {
  return taskObject['cacheScope'] === undefined
    ? text
    : setMember(text, [holder], 'cacheScope', 'private');
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
  allowedServerRequests: readonly ServerRequestName[],
): Promise<string | undefined> {
  const { call, principal } = checkContext;
  const allow = mayKnowTask(call.snapshot, principal, checkContext, task);
  if (allow === undefined) return undefined;
  const contextWithObligations = {
    ...checkContext,
    responseObligations: responseObligationsOf(allow, task),
  };
  const checked = await checkTaskState(
    { checkContext: contextWithObligations, task, allowedServerRequests },
    reading,
    'params',
  );
  return 'reason' in checked ? undefined : checked.text;
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
  const text = hasTask(checkContext.protocol, task)
    ? await checkTaskNotification(checkContext, reading, task, [])
    : undefined;
  if (text !== undefined) return { kind: 'pass', text };
  drop(call, task === undefined ? 'foreign-message' : 'withheld-notice');
  return DROP;
}
