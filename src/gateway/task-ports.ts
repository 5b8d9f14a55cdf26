// The ids of tasks as callers carry them: sealed for as long as their server keeps them, with a bound, and
// remembered for a while so that what a server says of them can be told.

import type { TaskPorts, TaskScope } from '../exchange-ports.js';
import { createGivenTasks } from '../state/given-tasks.js';
import type { KeyRing } from '../state/key-ring.js';
import { openTask, sealTask } from '../state/task-seal.js';
import { bindingOf } from './sealed-ids.js';

/** The longest life of the id of a task, whatever its server promises. */
export const MAX_TASK_TTL_MS = 7 * 24 * 60 * 60 * 1000;
/** How much longer than its task an id lives: servers may keep tasks a little longer, and clocks differ. */
export const TASK_GRACE_MS = 60 * 60 * 1000;

/** Builds the ports. */
export function createTaskPorts(ring: KeyRing, now: () => number): TaskPorts {
  const given = createGivenTasks();
  return {
    seal(task, ttlMs, scope) {
      const { upstream, principal } = scope;
      const caller = callerOf(scope);
      const binding = bindingOf(upstream, principal);
      const livesMs = Math.min((ttlMs ?? MAX_TASK_TTL_MS) + TASK_GRACE_MS, MAX_TASK_TTL_MS);
      // Told again, as when its stream is resumed, a task keeps the id that its client knows, if that is young.
      const known = given.find(caller, task.id);
      const isYoung = (one: string): boolean =>
        openTask(ring, binding, one, now() + livesMs / 2) !== undefined;
      if (known !== undefined && isSame(known, task) && isYoung(known.sealed)) return known.sealed;
      const sealed = sealTask(ring, binding, task, now() + livesMs);
      if (sealed !== undefined) given.begin(caller, { ...task, sealed });
      return sealed;
    },
    open(sealed, scope) {
      const { upstream, principal } = scope;
      const task = openTask(ring, bindingOf(upstream, principal), sealed, now());
      if (task !== undefined) given.add(callerOf(scope), { ...task, sealed });
      return task;
    },
    recall: (id, scope) => given.find(callerOf(scope), id),
    inputRequestsOf: (id, scope) => given.inputRequestsOf(callerOf(scope), id),
  };
}

/** A caller by identity, not by token: tokens are refreshed. */
function callerOf({ upstream, principal }: TaskScope): string {
  const { issuer, subject, client } = bindingOf(upstream, principal);
  return JSON.stringify([upstream, issuer, subject, client]);
}

function isSame(one: object, other: object): boolean {
  return JSON.stringify({ ...one, sealed: '' }) === JSON.stringify({ ...other, sealed: '' });
}
