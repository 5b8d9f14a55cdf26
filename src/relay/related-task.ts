// The member of `_meta` that says to which task a message belongs: towards a client the id that it knows,
// towards a server its own. What is nobody's task here is named to neither side.
// Source: MCP 2025-11-25, tasks (associating task-related messages).

import type { TaskPorts, TaskScope } from '../exchange-ports.js';
import { removeMember, setMember } from '../inspect/members.js';
import type { OpenedTask, TextEdit } from '../mcp/admitted.js';
import { type JsonReading, readJsonText, spanOf } from '../mcp/json.js';
import { isObject, type Json, type Message } from '../mcp/message.js';
import { RELATED_TASK_KEY, relatedTaskId } from '../mcp/tasks.js';

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
export function relatedEdits(
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
