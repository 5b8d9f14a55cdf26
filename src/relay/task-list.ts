// The tasks of one caller: of all that a server lists, those that this gateway is known to have given to this
// very caller and that the caller may still see, under the ids that the caller knows. A server that is shared
// cannot tell its callers apart, so what is not known is not shown.
// Source: MCP 2025-11-25, tasks (listing; security: task isolation).

import { setMember } from '../inspect/members.js';
import type { OpenedTask } from '../mcp/admitted.js';
import { applyEdits, elementSpans, readJsonText, spanOf } from '../mcp/json.js';
import type { Json } from '../mcp/message.js';
import { readPlainTask } from '../mcp/tasks.js';
import type { Reason } from '../policy/reasons.js';
import { refuseWith } from '../policy/refusal.js';
import { inspect, type Read, type Subject, type Verdict } from './subject.js';
import { mayKnowTask } from './task-notice.js';

const LIST = ['result', 'tasks'];
const NO_HEADERS = {};

type Kept = { readonly text: string; readonly task: OpenedTask };

/** Judges one page of the list. */
export async function checkTaskList(subject: Subject, { text, value }: Read): Promise<Verdict> {
  const span = spanOf(text, LIST);
  const result = (value as { readonly [name: string]: { readonly [name: string]: Json } })[
    'result'
  ];
  const listed = result?.['tasks'];
  if (span === undefined || !Array.isArray(listed)) return withhold('upstream-protocol');
  const spans = elementSpans(text, span);
  const kept = listed.flatMap((one: Json, index): readonly Kept[] => {
    const at = spans[index];
    const task = knownTask(subject, one);
    if (at === undefined || task === undefined) return [];
    return [{ text: setMember(text.slice(at.start, at.end), [], 'taskId', ''), task }];
  });
  const page = `[${kept.map((one) => one.text).join(',')}]`;
  const cut = readJsonText(applyEdits(text, [{ ...span, text: page }]));
  if (!cut.ok) return withhold('upstream-protocol');
  const outcome = await inspect(subject, cut);
  if (outcome.kind === 'withhold') return withhold(outcome.reason);
  let shown = outcome.kind === 'changed' ? outcome.text : cut.text;
  for (const [index, { task }] of kept.entries())
    shown = setMember(shown, [...LIST, index], 'taskId', task.sealed);
  const { record } = subject.call;
  record.result.list = {
    advertised: listed.length,
    visible: kept.length,
    advertisedBytes: text.length,
    visibleBytes: shown.length,
  };
  return { kind: 'own', text: shown, headers: NO_HEADERS, isError: false, rpcCode: undefined };
}

function knownTask(subject: Subject, value: Json): OpenedTask | undefined {
  const { call, principal } = subject;
  const read = readPlainTask(value);
  const scope = { upstream: call.incoming.upstream, principal };
  const task = read && call.ports.tasks.recall(read.id, scope);
  return task?.era === '2025' && mayKnowTask(subject, task) !== undefined ? task : undefined;
}

function withhold(reason: Reason): Verdict {
  return { kind: 'refused', refusal: refuseWith(reason) };
}
