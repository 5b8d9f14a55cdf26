// Whose a task is: its sealed id opens at the one member that gave it to this caller, and nowhere else.

import type { TaskFacts } from '../../mcp/admitted.js';
import type { Member } from '../../mcp/merge/prefixes.js';
import type { Verified } from './whole.js';

/** The task behind a sealed id, and its member; `undefined` for every id that this caller was not given here. */
export function findTask(
  { whole, principal }: Verified,
  sealed: string,
): { readonly member: Member; readonly task: TaskFacts } | undefined {
  for (const member of whole.endpoint.members) {
    const task = whole.ports.tasks.open(sealed, { upstream: member.upstream, principal });
    if (task !== undefined) return { member, task };
  }
  return undefined;
}
