// Answers that are tasks, and answers about tasks: the one that begins one, a look at how one stands, and the
// bare acknowledgement of an update or a cancellation.
// Source: MCP 2025-11-25, tasks; the Tasks extension.

import { setMember } from '../inspect/members.js';
import { applyEdits, readJsonText, removalEdits, spanOf } from '../mcp/json.js';
import type { JsonObject } from '../mcp/message.js';
import { readCreatedTask, readPlainTask } from '../mcp/tasks.js';
import type { Reason } from '../policy/reasons.js';
import { refuseWith } from '../policy/refusal.js';
import type { ResponsePlan } from './answered.js';
import { inspect, type Read, type Subject, type Verdict } from './subject.js';
import { checkTaskState } from './task-state.js';

const NO_HEADERS = {};
/** What an acknowledgement consists of (Tasks extension: an empty result). */
const ACK_MEMBERS: ReadonlySet<string> = new Set(['resultType', '_meta']);

/** Judges the answer to a call that is a task: its client gets an id that is good for it alone. */
export async function checkCreatedTask(
  subject: Subject,
  { admitted, responseObligations }: ResponsePlan,
  { text }: Read,
  result: JsonObject,
): Promise<Verdict> {
  const { call, principal, era } = subject;
  const path = era === '2026' ? ['result'] : ['result', 'task'];
  const task = era === '2026' ? readCreatedTask(result) : readPlainTask(result['task']);
  if (task === undefined || admitted.target.kind !== 'tool') return withhold('upstream-protocol');
  const { maxResultBytes, profiles } = responseObligations;
  const facts = {
    id: task.id,
    era: era === '2026' ? era : '2025',
    tool: admitted.target.name,
    maxResultBytes,
    profiles,
  } as const;
  const scope = { upstream: call.incoming.upstream, principal };
  const sealed = call.ports.tasks.seal(facts, task.ttlMs, scope);
  if (sealed === undefined) return withhold('result-too-large');
  // The server's id looks like a secret, and ours would too.
  const cut = readJsonText(setMember(text, path, 'taskId', ''));
  if (!cut.ok) return withhold('upstream-protocol');
  const outcome = await inspect(subject, cut);
  if (outcome.kind === 'withhold') return withhold(outcome.reason);
  call.progress?.keep();
  const inspected = outcome.kind === 'changed' ? outcome.text : cut.text;
  const withSealedId = setMember(inspected, path, 'taskId', sealed);
  return own(result['cacheScope'] === undefined ? withSealedId : unshared(withSealedId), false);
}

/** Judges the answer to a request about a task. */
export async function checkTaskResponse(
  subject: Subject,
  { admitted }: ResponsePlan,
  reading: Read,
): Promise<Verdict> {
  const { rule, task, allowedServerRequests } = admitted;
  if (task === undefined) return withhold('internal');
  if (subject.era === '2026' && rule.method !== 'tasks/get') return acknowledge(subject, reading);
  const checked = await checkTaskState({ subject, task, allowedServerRequests }, reading, 'result');
  return 'reason' in checked ? withhold(checked.reason) : own(checked.text, checked.isError);
}

/** Nothing but that it was heard: whatever else a server says here is judged nowhere. */
async function acknowledge(subject: Subject, reading: Read): Promise<Verdict> {
  const span = spanOf(reading.text, ['result']);
  const edits =
    span === undefined ? [] : removalEdits(reading.text, span, (name) => !ACK_MEMBERS.has(name));
  const cut = edits.length === 0 ? reading : readJsonText(applyEdits(reading.text, edits));
  if (!cut.ok) return withhold('upstream-protocol');
  const outcome = await inspect(subject, cut);
  if (outcome.kind === 'withhold') return withhold(outcome.reason);
  if (outcome.kind === 'changed') return own(outcome.text, false);
  return own(cut === reading ? undefined : cut.text, false);
}

function unshared(text: string): string {
  return setMember(text, ['result'], 'cacheScope', 'private');
}

function own(text: string | undefined, isError: boolean): Verdict {
  return { kind: 'own', text, headers: NO_HEADERS, isError, rpcCode: undefined };
}

function withhold(reason: Reason): Verdict {
  return { kind: 'refused', refusal: refuseWith(reason) };
}
