// Rewrites task ids between client and server. A request about a task leaves under the server's own id, in body
// and header alike, and only towards a server of the same era. The related-task member of `_meta` names the task
// by the id that each side knows; an id that is no task of this caller is shown to neither side.
// Source: MCP 2025-11-25, tasks; tasks (associating task-related messages); the Tasks extension (routing
// headers); docs/reference/protocol.md#a-session-in-front-of-a-stateless-upstream;
// docs/reference/protocol.md#a-stateless-client-in-front-of-a-session-upstream.

import type { Catalog } from '../../policy/definitions.js';
import type { Principal } from '../../policy/principal.js';
import type { Finding } from '../../policy/record.js';
import type { CallerScope } from '../../policy/sealed-types.js';
import { amendAdmitted, copyAdmitted } from '../../protocol/admission.js';
import type { AdmittedMessage, OpenedTask, ProtocolError, TextEdit } from '../../protocol/admitted-request.js';
import { encodeHeaderValue } from '../../protocol/headers.js';
import { type ParsedJson, readJsonText, removeMember, setMember, spanOf } from '../../protocol/json/json.js';
import { isObject, type JsonObject, type Message } from '../../protocol/jsonrpc.js';
import { paramsOf } from '../../protocol/params.js';
import {
  type ErrorContext,
  errorContextOf,
  INVALID_PARAMS,
  METHOD_NOT_FOUND,
  protocolErrorOf,
} from '../../protocol/responses.js';
import { findRelatedTask, RELATED_TASK_KEY, type TaskForm } from '../../protocol/tasks.js';
import { hasTask, isTranslated, protocolForUpstream } from '../../protocol/versions/negotiation.js';
import type { ProtocolVersion } from '../../protocol/versions/revisions.js';
import { STATELESS } from '../../protocol/versions/stateless.js';
import type { Snapshot, TaskPort } from '../ports.js';
import type { Feature, RequestContext } from '../request-context.js';

/** A message without its related-task id, for inspection. `restore` inserts the id that the client knows. */
export type MessageWithoutTask = { readonly reading: ParsedJson; restore(text: string): string };

type TaskLookup = {
  readonly tasks: TaskPort;
  readonly scope: CallerScope;
  /** The task that the current request is about. */
  readonly currentTask: OpenedTask | undefined;
};

/** Replaces an id that is no task here: it keeps the shape and names nothing. */
const NO_TASK = { taskId: '' };

/** A message about a task, one whose response may be a task, and one to a server that may insist on a task. */
export const TASK_USE: Feature = {
  checkUse: (call, admitted, catalog) => checkTaskUse(admitted, call.snapshot, catalog),
  prepare: (call, { principal, admitted }) => ({
    outcome: restoreTaskIds(call, principal, admitted),
    facts: [{ findings: strippedTaskParams(call, admitted) }],
  }),
  withoutSealed(content, { task, message }) {
    const { taskId: _, ...withoutId } = content;
    const kept = task === undefined ? content : withoutId;
    const meta = kept['_meta'];
    if (findRelatedTask(message) === undefined || !isObject(meta)) return kept;
    const { [RELATED_TASK_KEY]: __, ...rest } = meta;
    return { ...kept, _meta: rest };
  },
};

/** Removes the related-task id from a server's message, if it has one. */
export function removeRelatedTask(reading: ParsedJson, { tasks, scope, currentTask }: TaskLookup): MessageWithoutTask {
  const related = findRelatedTask(reading.value);
  if (related === undefined) return { reading, restore: (text) => text };
  const { holder, id } = related;
  const path = [holder, '_meta'];
  const task = id === currentTask?.id ? currentTask : typeof id === 'string' ? tasks.recall(id, scope) : undefined;
  const withoutTaskId = readJsonText(removeMember(reading.text, path, RELATED_TASK_KEY));
  if (!withoutTaskId.ok) throw new Error('a message without one of its members is a message');
  return {
    reading: withoutTaskId,
    restore: (text) => (task === undefined ? text : setMember(text, path, RELATED_TASK_KEY, { taskId: task.sealed })),
  };
}

/** The edits that restore the server's own id in a client's message. */
function relatedEdits(
  text: string,
  message: Message,
  openTask: (sealed: string) => { readonly id: string } | undefined,
): readonly TextEdit[] {
  const related = findRelatedTask(message);
  const span = related && spanOf(text, [related.holder, '_meta', RELATED_TASK_KEY]);
  if (related === undefined || span === undefined) return [];
  const task = typeof related.id === 'string' ? openTask(related.id) : undefined;
  const restored = task === undefined ? NO_TASK : { taskId: task.id };
  return [{ ...span, text: JSON.stringify(restored) }];
}

const NOT_TRANSLATED = 'Tasks are not translated between protocol revisions, and this server uses a different one.';
const NO_TASK_TOOL = 'Method not found: this tool cannot be called as a task.';
const TASK_ONLY_TOOL =
  'This tool can only be called as a task. Tasks are not translated between protocol revisions, and this server uses a different one.';
/** Where a 2026-07-28 client declares support for tasks. */
const EXTENSION_PATH =
  '/params/_meta/io.modelcontextprotocol~1clientCapabilities/extensions/io.modelcontextprotocol~1tasks';

/**
 * Why an allowed request may not use a task, or must: its server speaks another era, or the approved definition
 * of the tool forbids or requires tasks (MCP 2025-11-25, tasks, tool-level negotiation).
 */
function checkTaskUse(
  admitted: AdmittedMessage,
  snapshot: Pick<Snapshot, 'supportedVersions' | 'legacySse'>,
  catalog: Catalog,
): ProtocolError | undefined {
  const { protocol, rule, message } = admitted;
  const errorContext = errorContextOf(message);
  if (rule.targetKind === 'task' && isTranslatedForTasks(protocol, snapshot)) {
    const status = protocol.statusOfRefusedMethod('request');
    return protocolErrorOf('method-forbidden', METHOD_NOT_FOUND, NOT_TRANSLATED, errorContext, status);
  }
  return rule.method === 'tools/call' ? checkTaskCall(admitted, snapshot, catalog, errorContext) : undefined;
}

/** Most calls neither request a task nor can be required to; for those the definition is not looked up. */
function checkTaskCall(
  admitted: AdmittedMessage,
  snapshot: Pick<Snapshot, 'supportedVersions'>,
  catalog: Catalog,
  errorContext: ErrorContext,
): ProtocolError | undefined {
  const { protocol } = admitted;
  const requestsTask = protocol.tasks?.areRequested === true && admitted.mayBecomeTask;
  const mayBeRequired = mayRequireTask(protocol, snapshot);
  if (!requestsTask && !mayBeRequired) return undefined;
  const support = taskSupport(admitted, catalog);
  if (mayBeRequired && support === 'required')
    return protocolErrorOf('method-forbidden', INVALID_PARAMS, TASK_ONLY_TOOL, errorContext, 200);
  if (requestsTask && support === 'forbidden')
    return protocolErrorOf('method-forbidden', METHOD_NOT_FOUND, NO_TASK_TOOL, errorContext, 200);
  return undefined;
}

/** True if client and upstream speak different eras; then no tasks are available. */
function isTranslatedForTasks(
  protocol: ProtocolVersion,
  { supportedVersions, legacySse }: Pick<Snapshot, 'supportedVersions' | 'legacySse'>,
): boolean {
  return protocol.tasks === undefined || legacySse.isDirect || isTranslated(protocol, supportedVersions);
}

/**
 * Whether the upstream may insist on a task: a session-era server that declared tasks refuses a plain call of a
 * tool that requires one, and otherwise ignores `taskSupport` (MCP 2025-11-25, tasks, tool-level negotiation). A
 * stateless server reports this itself.
 */
function mayRequireTask(
  protocol: ProtocolVersion,
  { supportedVersions }: Pick<Snapshot, 'supportedVersions'>,
): boolean {
  if (protocol.tasks?.areRequested === true) return false;
  const { tasks } = protocolForUpstream(protocol, supportedVersions);
  return tasks?.areRequested === true && supportedVersions?.tasks?.includes('call') === true;
}

/**
 * A request for a task that is not forwarded. The call then runs without one, as a receiver without tasks has to run it
 * (MCP 2025-11-25, tasks, task support and handling), and as a 2026-07-28 server may if the client declares no support.
 */
function strippedTaskParams({ snapshot }: RequestContext, admitted: AdmittedMessage): readonly Finding[] {
  const { protocol, mayBecomeTask } = admitted;
  const isRequested = mayBecomeTask && protocol.tasks?.areRequested === true;
  if (isRequested) return [];
  const paths = paramsOf(admitted)['task'] === undefined ? [] : ['/params/task'];
  if (mayBecomeTask && isTranslatedForTasks(protocol, snapshot)) paths.push(EXTENSION_PATH);
  return paths.map((path) => ({ detector: 'task-wish', direction: 'to-upstream', path, count: 1, action: 'strip' }));
}

/**
 * How a server's tasks are declared to the client; never between eras
 * (docs/reference/protocol.md#a-session-in-front-of-a-stateless-upstream).
 */
export function taskForm({ snapshot }: RequestContext, protocol: ProtocolVersion, handshake: JsonObject): TaskForm {
  if (isTranslatedForTasks(protocol, snapshot)) return 'none';
  return protocol.tasks?.formIn(handshake) ?? 'none';
}

/** The task support that the approved definition of a tool declares; `undefined` without a definition. */
function taskSupport({ target }: AdmittedMessage, catalog: Catalog): 'forbidden' | 'optional' | 'required' | undefined {
  if (target.kind !== 'tool') return undefined;
  const { pinned } = catalog.statusOf('tool', target.name);
  if (pinned === undefined) return undefined;
  const { execution } = pinned.definition;
  const support = isObject(execution) ? execution['taskSupport'] : undefined;
  return support === 'optional' || support === 'required' ? support : 'forbidden';
}

/** The message with the task ids that its server knows. */
function restoreTaskIds(
  call: RequestContext<'tasks'>,
  principal: Principal,
  admitted: AdmittedMessage,
): AdmittedMessage {
  const { task, text, message } = admitted;
  const scope = { upstream: call.incoming.upstream, principal };
  const edits = relatedEdits(text, message, (sealed) => call.ports.tasks.open(sealed, scope));
  if (task === undefined) return amendAdmitted(admitted, edits);
  const span = spanOf(text, ['params', 'taskId']);
  if (span === undefined) throw new Error('a request about a task has its id');
  const idEdit = { ...span, text: JSON.stringify(task.id) };
  const nameHeader = admitted.protocol.mirrorsBody ? encodeHeaderValue(task.id) : undefined;
  return copyAdmitted(amendAdmitted(admitted, [...edits, idEdit]), { nameHeader });
}

/** A task in the filter of a subscription, if it is one of this caller at this upstream. */
export function openSubscribedTask(
  { incoming, ports, snapshot }: RequestContext<'tasks'>,
  principal: Principal,
  sealed: string,
): OpenedTask | undefined {
  // No tasks exist if the upstream speaks another era.
  if (isTranslated(STATELESS, snapshot.supportedVersions)) return undefined;
  const facts = ports.tasks.open(sealed, { upstream: incoming.upstream, principal });
  return facts !== undefined && hasTask(STATELESS, facts) ? { ...facts, sealed } : undefined;
}
