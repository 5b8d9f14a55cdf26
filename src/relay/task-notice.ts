// What a server says of a task unasked: told where the task is this caller's and the caller may still have to
// do with it, judged as the answer to a look at it would be.
// Source: MCP 2025-11-25, tasks (status notification); the Tasks extension (status notifications).

import type { OpenedTask } from '../mcp/admitted.js';
import type { JsonObject, ServerRequestName } from '../mcp/message.js';
import { isTaskId } from '../mcp/tasks.js';
import { decideRequest } from '../policy/decide.js';
import type { Allow } from '../policy/decision.js';
import { responseObligationsOf } from '../settle/settle.js';
import { DROP, drop, type Read, type Subject, type Verdict } from './subject.js';
import { checkTaskState } from './task-state.js';

/** Whether a caller may still have to do with a task, by the rules and pins of now; what that owes. */
export function mayKnowTask(
  { call, principal, era, apps }: Pick<Subject, 'call' | 'principal' | 'era' | 'apps'>,
  { tool }: Pick<OpenedTask, 'tool'>,
): Allow | undefined {
  const { policies, upstream } = call.snapshot;
  const catalogue = call.snapshot.catalogueFor({ era, apps });
  const target = { kind: 'task', tool } as const;
  const query = { principal, upstream, target, args: 'unknown', catalogue } as const;
  const decision = decideRequest(policies, query);
  return decision.verdict === 'allow' ? decision : undefined;
}

/** The notice as its client may have it; `undefined` where nothing passes. */
export async function checkTaskNotification(
  subject: Subject,
  reading: Read,
  task: OpenedTask,
  allowedServerRequests: readonly ServerRequestName[],
): Promise<string | undefined> {
  const allow = mayKnowTask(subject, task);
  if (allow === undefined) return undefined;
  const subjectWithObligations = {
    ...subject,
    responseObligations: responseObligationsOf(allow, task),
  };
  const checked = await checkTaskState(
    { subject: subjectWithObligations, task, allowedServerRequests },
    reading,
    'params',
  );
  return 'reason' in checked ? undefined : checked.text;
}

/** Judges a notice in a session, whose task is known by the server's own id. */
export async function checkSessionTaskNotification(
  subject: Subject,
  reading: Read,
  params: JsonObject | undefined,
): Promise<Verdict> {
  const { call, principal } = subject;
  const id = params?.['taskId'];
  const scope = { upstream: call.incoming.upstream, principal };
  const task = isTaskId(id) ? call.ports.tasks.recall(id, scope) : undefined;
  const text =
    task?.era === '2025' ? await checkTaskNotification(subject, reading, task, []) : undefined;
  if (text !== undefined) return { kind: 'pass', text };
  drop(call, task === undefined ? 'foreign-message' : 'withheld-notice');
  return DROP;
}
