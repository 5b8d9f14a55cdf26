// Whose a task is: its sealed id opens at the one member that gave it to this caller, and nowhere else.

import type { TaskFacts } from '../../mcp/admitted.js';
import type { Backend } from '../../mcp/merge/prefixes.js';
import type { Verified } from './whole.js';

/** The task behind a sealed id, and its member; `undefined` for every id that this caller was not given here. */
export function findTask(
  { context, principal }: Verified,
  sealed: string,
): { readonly backend: Backend; readonly task: TaskFacts } | undefined {
  for (const backend of context.aggregate.backends) {
    const task = context.ports.tasks.open(sealed, { upstream: backend.upstream, principal });
    if (task !== undefined) return { backend, task };
  }
  return undefined;
}
