// The tasks that callers were given of late, by the server's own id: so that a list, or a word of the server
// about one, can be told by the id that its client knows. One replica's memory, bounded a caller and in all;
// what is not found is not told, and the client, who has the sealed id, asks by it.
// Source: MCP 2025-11-25, tasks (listing, status notifications, related tasks).

import type { OpenedTask } from '../mcp/admitted.js';

/** Tasks of one caller, and of all, past which the oldest are forgotten first. */
export const MAX_TASKS_A_CALLER = 256;
export const MAX_TASKS = 10_000;
/** Questions of one task that are known to have been asked. */
const MAX_ASKED_A_TASK = 64;

type Given = { readonly task: OpenedTask; readonly asked: Set<string> };

export type GivenTasks = {
  /** Enters a task that has just begun: whatever went by its id before is over. */
  begin(caller: string, task: OpenedTask): void;
  /** Enters a task that its caller has shown. */
  add(caller: string, task: OpenedTask): void;
  find(caller: string, id: string): OpenedTask | undefined;
  /** The questions of a task that were put before; of one that is not known none is remembered. */
  inputRequestsOf(
    caller: string,
    id: string,
  ): { has(requestHash: string): boolean; add(question: string): void };
};

/** An empty memory. */
export function createGivenTasks(maxTasks = MAX_TASKS): GivenTasks {
  const callers = new Map<string, Map<string, Given>>();
  let size = 0;

  function forgetOldest(caller: string, tasks: Map<string, Given>): void {
    const [oldest] = tasks.keys();
    if (oldest !== undefined && tasks.delete(oldest)) size -= 1;
    if (tasks.size === 0) callers.delete(caller);
  }

  function enter(caller: string, given: Given): void {
    const before = callers.get(caller);
    if (before?.delete(given.task.id) === true) size -= 1;
    if (before !== undefined && before.size >= MAX_TASKS_A_CALLER) forgetOldest(caller, before);
    const [oldest] = callers;
    if (size >= maxTasks && oldest !== undefined) forgetOldest(...oldest);
    const tasks = callers.get(caller) ?? new Map<string, Given>();
    callers.set(caller, tasks);
    tasks.set(given.task.id, given);
    size += 1;
  }

  return {
    begin: (caller, task) => enter(caller, { task, asked: new Set() }),
    add(caller, task) {
      const known = callers.get(caller)?.get(task.id);
      if (known?.task.sealed === task.sealed) return;
      enter(caller, { task, asked: known?.asked ?? new Set() });
    },
    find: (caller, id) => callers.get(caller)?.get(id)?.task,
    inputRequestsOf(caller, id) {
      const asked = callers.get(caller)?.get(id)?.asked;
      return {
        has: (requestHash) => asked?.has(requestHash) === true,
        add(requestHash) {
          if (asked !== undefined && asked.size < MAX_ASKED_A_TASK) asked.add(requestHash);
        },
      };
    },
  };
}
