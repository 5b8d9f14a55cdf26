// Checks responses that create a task and responses to requests about tasks: the status of a task, the
// acknowledgement of an update or a cancellation, and the list of a caller's tasks.
// Source: MCP 2025-11-25, tasks; tasks (listing; security: task isolation); the Tasks extension.

import type { Reason } from '../../../policy/reasons.js';
import { refuseWith } from '../../../policy/refusal.js';
import type { OpenedTask } from '../../../protocol/admitted-request.js';
import {
  applyEdits,
  elementSpans,
  type ParsedJson,
  readJsonText,
  removalEdits,
  setMember,
  spanOf,
} from '../../../protocol/json/json.js';
import type { Json, JsonObject } from '../../../protocol/jsonrpc.js';
import { readPlainTask } from '../../../protocol/tasks.js';
import { hasTask } from '../../../protocol/versions/detection.js';
import { sensitiveFieldsOf } from '../../request-context.js';
import { type CheckContext, inspect, type MessageOutcome } from '../../response-context.js';
import type { ResponsePlan } from '../../response-plan.js';
import { checkTaskState, mayKnowTask } from './status.js';

const NO_HEADERS = {};
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
  const sensitive = sensitiveFieldsOf(call, admitted.target);
  const outcome = await inspect(checkContext, withoutTaskId, undefined, [], sensitive);
  if (outcome.kind === 'withhold') return withhold(outcome.reason);
  call.progress?.keep();
  const inspected = outcome.kind === 'changed' ? outcome.text : withoutTaskId.text;
  const withSealedId = setMember(inspected, path, 'taskId', sealed);
  return passedResponse(
    result['cacheScope'] === undefined ? withSealedId : markPrivate(withSealedId),
    false,
  );
}

/** Checks the response to a request about a task. */
export async function checkTaskResponse(
  checkContext: CheckContext,
  { admitted }: ResponsePlan,
  reading: ParsedJson,
): Promise<MessageOutcome> {
  const { rule, task, allowedServerRequests } = admitted;
  if (task === undefined) return withhold('internal');
  if (checkContext.protocol.tasks?.isAcknowledged(rule.method) === true)
    return acknowledge(checkContext, reading);
  const checked = await checkTaskState(
    { checkContext, task, allowedServerRequests },
    reading,
    'result',
  );
  return 'reason' in checked
    ? withhold(checked.reason)
    : passedResponse(checked.text, checked.isError);
}

/** Passes an acknowledgement and removes every other member, since no check covers what else a server puts there. */
async function acknowledge(
  checkContext: CheckContext,
  reading: ParsedJson,
): Promise<MessageOutcome> {
  const span = spanOf(reading.text, ['result']);
  const edits =
    span === undefined ? [] : removalEdits(reading.text, span, (name) => !ACK_MEMBERS.has(name));
  const stripped = edits.length === 0 ? reading : readJsonText(applyEdits(reading.text, edits));
  if (!stripped.ok) return withhold('upstream-protocol');
  const outcome = await inspect(checkContext, stripped);
  if (outcome.kind === 'withhold') return withhold(outcome.reason);
  if (outcome.kind === 'changed') return passedResponse(outcome.text, false);
  return passedResponse(stripped === reading ? undefined : stripped.text, false);
}

function markPrivate(text: string): string {
  return setMember(text, ['result'], 'cacheScope', 'private');
}

function passedResponse(text: string | undefined, isError: boolean): MessageOutcome {
  return { kind: 'response', text, headers: NO_HEADERS, isError, rpcCode: undefined };
}

function withhold(reason: Reason): MessageOutcome {
  return { kind: 'refused', refusal: refuseWith(reason) };
}

const LIST = ['result', 'tasks'];

type VisibleTask = { readonly text: string; readonly task: OpenedTask };

/**
 * Checks one page of a task list. Of the tasks that the server lists, only those pass that this gateway is known
 * to have given to this caller and that the caller may still see, under the caller's ids. A shared server cannot
 * tell its callers apart, so unknown tasks are not shown.
 */
export async function checkTaskList(
  checkContext: CheckContext,
  { text, value }: ParsedJson,
): Promise<MessageOutcome> {
  const span = spanOf(text, LIST);
  const result = (value as { readonly [name: string]: { readonly [name: string]: Json } })[
    'result'
  ];
  const listed = result?.['tasks'];
  if (span === undefined || !Array.isArray(listed)) return withhold('upstream-protocol');
  const spans = elementSpans(text, span);
  const visibleTasks = listed.flatMap((one: Json, index): readonly VisibleTask[] => {
    const itemSpan = spans[index];
    const task = knownTask(checkContext, one);
    if (itemSpan === undefined || task === undefined) return [];
    return [{ text: setMember(text.slice(itemSpan.start, itemSpan.end), [], 'taskId', ''), task }];
  });
  const page = `[${visibleTasks.map((one) => one.text).join(',')}]`;
  const pageWithoutIds = readJsonText(applyEdits(text, [{ ...span, text: page }]));
  if (!pageWithoutIds.ok) return withhold('upstream-protocol');
  const outcome = await inspect(checkContext, pageWithoutIds);
  if (outcome.kind === 'withhold') return withhold(outcome.reason);
  let shown = outcome.kind === 'changed' ? outcome.text : pageWithoutIds.text;
  for (const [index, { task }] of visibleTasks.entries())
    shown = setMember(shown, [...LIST, index], 'taskId', task.sealed);
  const { record } = checkContext.call;
  record.result.list = {
    advertised: listed.length,
    visible: visibleTasks.length,
    advertisedBytes: Buffer.byteLength(text),
    visibleBytes: Buffer.byteLength(shown),
  };
  return { kind: 'response', text: shown, headers: NO_HEADERS, isError: false, rpcCode: undefined };
}

function knownTask(checkContext: CheckContext, value: Json): OpenedTask | undefined {
  const { call, principal } = checkContext;
  const read = readPlainTask(value);
  const scope = { upstream: call.incoming.upstream, principal };
  const task = read && call.ports.tasks.recall(read.id, scope);
  if (!hasTask(checkContext.protocol, task)) return undefined;
  const listed = { tool: task.tool, use: 'list' } as const;
  const allow = mayKnowTask(call.snapshot, principal, checkContext, listed);
  return allow === undefined ? undefined : task;
}
