// The tasks that callers were given of late, by the server's own id: so that a list, or a word of the server
// about one, can be told by the id that its client knows. One replica's memory, bounded a caller and in all;
// what is not found is not told, and the client, who has the sealed id, asks by it.
// Source: MCP 2025-11-25, tasks (listing, status notifications, related tasks).

import type { OpenedTask } from '../mcp/admitted.js';

/** Tasks of one caller, and callers, past which the oldest are forgotten first. */
export const MAX_TASKS_A_CALLER = 256;
export const MAX_TASK_CALLERS = 4096;
/** Questions of one task that are known to have been asked. */
const MAX_ASKED_A_TASK = 256;

type Given = { readonly task: OpenedTask; readonly asked: Set<string> };

export type GivenTasks = {
  /** Enters a task that has just begun: whatever went by its id before is over. */
  begin(caller: string, task: OpenedTask): void;
  /** Enters a task that its caller has shown. */
  add(caller: string, task: OpenedTask): void;
  find(caller: string, id: string): OpenedTask | undefined;
  /** The questions of a task that were put before; of one that is not known none is remembered. */
  asked(
    caller: string,
    id: string,
  ): { has(question: string): boolean; add(question: string): void };
};

/** An empty memory. */
export function createGivenTasks(): GivenTasks {
  const callers = new Map<string, Map<string, Given>>();

  function tasksOf(caller: string): Map<string, Given> {
    const known = callers.get(caller);
    if (known !== undefined) return known;
    const made = new Map<string, Given>();
    makeRoom(callers, MAX_TASK_CALLERS);
    callers.set(caller, made);
    return made;
  }

  return {
    begin(caller, task) {
      const tasks = tasksOf(caller);
      tasks.delete(task.id);
      makeRoom(tasks, MAX_TASKS_A_CALLER);
      tasks.set(task.id, { task, asked: new Set() });
    },
    add(caller, task) {
      const tasks = tasksOf(caller);
      if (tasks.get(task.id)?.task.sealed === task.sealed) return;
      makeRoom(tasks, MAX_TASKS_A_CALLER);
      tasks.set(task.id, { task, asked: tasks.get(task.id)?.asked ?? new Set() });
    },
    find: (caller, id) => callers.get(caller)?.get(id)?.task,
    asked(caller, id) {
      const asked = callers.get(caller)?.get(id)?.asked;
      return {
        has: (question) => asked?.has(question) === true,
        add(question) {
          if (asked !== undefined && asked.size < MAX_ASKED_A_TASK) asked.add(question);
        },
      };
    },
  };
}

function makeRoom(map: Map<string, unknown>, max: number): void {
  const [oldest] = map.keys();
  if (map.size >= max && oldest !== undefined) map.delete(oldest);
}
