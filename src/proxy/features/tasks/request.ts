// A request about a task on its way to the server: under the server's own id, in body and header alike, and
// never in an era in which that server was not asked for it.
// Source: MCP 2025-11-25, tasks; the Tasks extension (routing headers); docs/reference/protocol.md §2.3 and §2.4.

import type { Catalogue } from '../../../policy/definitions.js';
import type { Principal } from '../../../policy/principal.js';
import { addFinding } from '../../../policy/record.js';
import { amendAdmitted } from '../../../protocol/admission.js';
import type {
  Admitted,
  OpenedTask,
  ProtocolError,
  TextEdit,
} from '../../../protocol/admitted-request.js';
import type { TaskForm } from '../../../protocol/capabilities.js';
import {
  type ErrorContext,
  INVALID_PARAMS,
  METHOD_NOT_FOUND,
  protocolErrorOf,
} from '../../../protocol/errors.js';
import { encodeHeaderValue } from '../../../protocol/headers.js';
import {
  type JsonReading,
  readJsonText,
  removeMember,
  setMember,
  spanOf,
} from '../../../protocol/json/json.js';
import {
  type Era,
  isObject,
  type Json,
  type JsonObject,
  type Message,
} from '../../../protocol/jsonrpc.js';
import { listedEra } from '../../../protocol/listings.js';
import { eraTowards } from '../../../protocol/negotiation.js';
import { RELATED_TASK_KEY, relatedTaskId, TASK_SESSION_VERSION } from '../../../protocol/tasks.js';
import type { Snapshot, TaskPorts, TaskScope } from '../../ports.js';
import type { Call } from '../../request-context.js';

// The member of `_meta` that says to which task a message belongs: towards a client the id that it knows,
// towards a server its own. What is nobody's task here is named to neither side.
// Source: MCP 2025-11-25, tasks (associating task-related messages).

type Read = Extract<JsonReading, { readonly ok: true }>;

/** A message as it is inspected, without the id of its task; `restore` gives it the one that its client knows. */
export type Unrelated = { readonly reading: Read; restore(text: string): string };

type Known = {
  readonly tasks: TaskPorts;
  readonly scope: TaskScope;
  /** The task that the exchange is about. */
  readonly own: OpenedTask | undefined;
};

const HOLDERS = ['params', 'result'] as const;
/** In place of an id that is none here: its shape holds, and it names nothing. */
const NO_TASK = { taskId: '' };

/** Where a message names its task, and by which id. */
function findRelated(message: unknown): { readonly holder: string; readonly id: Json } | undefined {
  for (const holder of HOLDERS) {
    const held = isObject(message) ? message[holder] : undefined;
    const id = isObject(held) ? relatedTaskId(held['_meta']) : undefined;
    if (id !== undefined) return { holder, id };
  }
  return undefined;
}

/** Whether a message names its task: few do. */
export function namesTask(message: unknown): boolean {
  return findRelated(message) !== undefined;
}

/** Takes the id out of a message of a server, if it names one. */
export function takeRelated(reading: Read, { tasks, scope, own }: Known): Unrelated {
  const related = findRelated(reading.value);
  if (related === undefined) return { reading, restore: (text) => text };
  const { holder, id } = related;
  const path = [holder, '_meta'];
  const task = id === own?.id ? own : typeof id === 'string' ? tasks.recall(id, scope) : undefined;
  const cut = readJsonText(removeMember(reading.text, path, RELATED_TASK_KEY));
  if (!cut.ok) throw new Error('a message without one of its members is a message');
  return {
    reading: cut,
    restore: (text) =>
      task === undefined ? text : setMember(text, path, RELATED_TASK_KEY, { taskId: task.sealed }),
  };
}

/** The edits that give a server its own id back in a message of a client. */
function relatedEdits(
  text: string,
  message: Message,
  openTask: (sealed: string) => { readonly id: string } | undefined,
): readonly TextEdit[] {
  const related = findRelated(message);
  const span = related && spanOf(text, [related.holder, '_meta', RELATED_TASK_KEY]);
  if (related === undefined || span === undefined) return [];
  const task = typeof related.id === 'string' ? openTask(related.id) : undefined;
  const restored = task === undefined ? NO_TASK : { taskId: task.id };
  return [{ ...span, text: JSON.stringify(restored) }];
}

const NOT_TRANSLATED =
  'Tasks are not carried between revisions, and this server speaks another one.';
const NO_TASK_TOOL = 'Method not found: this tool cannot be called as a task.';
const TASK_ONLY_TOOL =
  'This tool can be called as a task only. Tasks are not carried between revisions, and this server speaks another one.';
/** Where a client of 2026 says that it can wait for a task. */
const EXTENSION_PATH =
  '/params/_meta/io.modelcontextprotocol~1clientCapabilities/extensions/io.modelcontextprotocol~1tasks';

/**
 * Why an allowed request may not be about a task, or without one: its server speaks another era, or its tool,
 * by the approved definition, is never a task, or always (MCP 2025-11-25, tasks, tool-level negotiation).
 */
export function checkTaskUse(
  admitted: Admitted,
  snapshot: Pick<Snapshot, 'carried' | 'legacySse'>,
  catalogue: Catalogue,
): ProtocolError | undefined {
  const { era, rule, message } = admitted;
  const errorContext = { era, id: message.kind === 'request' ? message.id : undefined };
  if (rule.subject === 'task' && isElsewhere(era, snapshot)) {
    const status = era === '2026' ? 404 : 200;
    return protocolErrorOf(
      'method-forbidden',
      METHOD_NOT_FOUND,
      NOT_TRANSLATED,
      errorContext,
      status,
    );
  }
  return rule.method === 'tools/call'
    ? checkTaskCall(admitted, snapshot, catalogue, errorContext)
    : undefined;
}

/** Most calls neither wish for a task nor may have to, and then no definition is asked. */
function checkTaskCall(
  admitted: Admitted,
  snapshot: Pick<Snapshot, 'carried'>,
  catalogue: Catalogue,
  errorContext: ErrorContext,
): ProtocolError | undefined {
  const requestsTask = admitted.era === '2025' && admitted.mayDefer;
  const mayBeDemanded = demandsTasks(admitted.era, snapshot);
  if (!requestsTask && !mayBeDemanded) return undefined;
  const support = taskSupport(admitted, catalogue);
  if (mayBeDemanded && support === 'required')
    return protocolErrorOf('method-forbidden', INVALID_PARAMS, TASK_ONLY_TOOL, errorContext, 200);
  if (requestsTask && support === 'forbidden')
    return protocolErrorOf('method-forbidden', METHOD_NOT_FOUND, NO_TASK_TOOL, errorContext, 200);
  return undefined;
}

/** Nobody has tasks where client and upstream speak different eras. */
function isElsewhere(
  era: Era,
  { carried, legacySse }: Pick<Snapshot, 'carried' | 'legacySse'>,
): boolean {
  return legacySse.isDirect || eraTowards(listedEra(era), carried) !== era;
}

/**
 * A server of sessions refuses a plain call of a tool that requires a task, if it has declared tasks; else its
 * definitions demand none (MCP 2025-11-25, tasks, tool-level negotiation). One without sessions says it itself.
 */
function demandsTasks(era: Era, { carried }: Pick<Snapshot, 'carried'>): boolean {
  const isOfSessions = era !== '2025' && eraTowards(listedEra(era), carried) === '2025';
  return isOfSessions && carried?.tasks?.includes('call') === true;
}

/**
 * Records a wish for a task that is not carried. The call runs without one, as a receiver without tasks has to
 * run it (MCP 2025-11-25, tasks, task support and handling), and as a server may that is told of none (2026).
 */
export function noteTaskParam(call: Call, { era, message, mayDefer }: Admitted): void {
  const taskParam = 'params' in message ? message.params?.['task'] : undefined;
  if (taskParam !== undefined && !(era === '2025' && mayDefer)) noteCut(call, '/params/task');
  if (era === '2026' && mayDefer && isElsewhere(era, call.snapshot)) noteCut(call, EXTENSION_PATH);
}

function noteCut({ record }: Call, path: string): void {
  const direction = 'to-upstream';
  addFinding(record.findings, {
    detector: 'task-wish',
    direction,
    path,
    count: 1,
    action: 'strip',
  });
}

/**
 * How a client is told of the tasks of its server. Between eras nobody has tasks (docs/reference/protocol.md §2.3 and
 * §2.4).
 */
export function taskForm({ snapshot }: Call, era: Era, result: JsonObject): TaskForm {
  if (isElsewhere(era, snapshot)) return 'none';
  if (era === '2026') return 'extension';
  return result['protocolVersion'] === TASK_SESSION_VERSION ? 'session' : 'none';
}

/** What the approved definition of a tool says of tasks; without one nothing is known. */
function taskSupport(
  { target }: Admitted,
  catalogue: Catalogue,
): 'forbidden' | 'optional' | 'required' | undefined {
  if (target.kind !== 'tool') return undefined;
  const { pinned } = catalogue.standing('tool', target.name);
  if (pinned === undefined) return undefined;
  const { execution } = pinned.definition;
  const support = isObject(execution) ? execution['taskSupport'] : undefined;
  return support === 'optional' || support === 'required' ? support : 'forbidden';
}

/** The message under the ids that its server knows. */
export function addressTask(call: Call, principal: Principal, admitted: Admitted): Admitted {
  const { task, text, message } = admitted;
  if (task === undefined && !namesTask(message)) return admitted;
  const scope = { upstream: call.incoming.upstream, principal };
  const edits = relatedEdits(text, message, (sealed) => call.ports.tasks.open(sealed, scope));
  if (task === undefined) return amendAdmitted(admitted, edits);
  const span = spanOf(text, ['params', 'taskId']);
  if (span === undefined) throw new Error('a request about a task has its id');
  const own = { ...span, text: JSON.stringify(task.id) };
  const nameHeader = admitted.era === '2026' ? encodeHeaderValue(task.id) : undefined;
  return { ...amendAdmitted(admitted, [...edits, own]), nameHeader };
}
