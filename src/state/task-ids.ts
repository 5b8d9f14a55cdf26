// The ids of tasks, which clients carry sealed for as long as the server keeps the task, within a bound. This replica
// remembers the newest by the server's own id, so that a list or a notification of the server about one can be passed on
// under the id that its client knows. Source: MCP 2025-11-25, tasks (listing, status notifications, related tasks).

import { ownerKey } from '../policy/principal.js';
import type { CallerScope } from '../policy/sealed-types.js';
import type { OpenedTask, TaskFacts } from '../protocol/admitted-request.js';
import type { RememberedInputRequests } from '../protocol/server-requests.js';
import type { KeyRing } from './derived-keys.js';
import { createRecentTable } from './replica-tables.js';
import { MAX_TASK_TTL_MS, TASK_ID } from './sealed-token.js';

/** How much longer an id lives than its task: servers may keep tasks a little longer, and clocks differ. */
export const TASK_GRACE_MS = 60 * 60 * 1000;
/** Tasks of one caller, and in total, beyond which the oldest are forgotten first. */
export const MAX_TASKS_PER_CALLER = 256;
const MAX_TASKS = 10_000;
/** Input requests of one task that are remembered as sent. */
const MAX_INPUT_REQUESTS_PER_TASK = 64;

type KnownTask = { readonly task: OpenedTask; readonly sent: Set<string> };

/** Creates the ids of tasks. `now`: milliseconds since the epoch. */
export function createTaskIds(ring: KeyRing, now: () => number, maxTasks = MAX_TASKS) {
  const ids = TASK_ID(ring, now);
  const known = createRecentTable<KnownTask>({ max: maxTasks, maxPerOwner: MAX_TASKS_PER_CALLER });
  const ownerOf = ({ upstream, principal }: CallerScope): string => ownerKey(principal, upstream);

  /** A task that is reported again, as when its stream is resumed, keeps its id if at least half of its lifetime is left. */
  function idInUse(task: TaskFacts, lifetimeMs: number, scope: CallerScope): string | undefined {
    const given = known.find(ownerOf(scope), task.id)?.task;
    if (given === undefined || !isSame(given, task)) return undefined;
    const isFresh = TASK_ID(ring, () => now() + lifetimeMs / 2).open(given.sealed, scope) !== undefined;
    return isFresh ? given.sealed : undefined;
  }

  return {
    seal(task: TaskFacts, ttlMs: number | null | undefined, scope: CallerScope): string | undefined {
      const lifetimeMs = Math.min((ttlMs ?? MAX_TASK_TTL_MS) + TASK_GRACE_MS, MAX_TASK_TTL_MS);
      const inUse = idInUse(task, lifetimeMs, scope);
      if (inUse !== undefined) return inUse;
      const sealed = ids.seal(task, scope, lifetimeMs);
      // An earlier task with its id has ended.
      if (sealed !== undefined) known.set(ownerOf(scope), task.id, { task: { ...task, sealed }, sent: new Set() });
      return sealed;
    },
    open(sealed: string, scope: CallerScope): TaskFacts | undefined {
      const task = ids.open(sealed, scope);
      if (task === undefined) return undefined;
      const given = known.find(ownerOf(scope), task.id);
      if (given?.task.sealed !== sealed)
        known.set(ownerOf(scope), task.id, { task: { ...task, sealed }, sent: given?.sent ?? new Set() });
      return task;
    },
    recall: (id: string, scope: CallerScope): OpenedTask | undefined => known.find(ownerOf(scope), id)?.task,
    /** Those of an unknown task are not remembered. */
    inputRequestsOf(id: string, scope: CallerScope): RememberedInputRequests {
      const sent = known.find(ownerOf(scope), id)?.sent;
      return {
        has: (requestHash) => sent?.has(requestHash) === true,
        add(requestHash) {
          if (sent !== undefined && sent.size < MAX_INPUT_REQUESTS_PER_TASK) sent.add(requestHash);
        },
      };
    },
  };
}

function isSame(one: object, other: object): boolean {
  return JSON.stringify({ ...one, sealed: '' }) === JSON.stringify({ ...other, sealed: '' });
}
