// A request about a task on its way to the server: under the server's own id, in body and header alike, and
// never in an era in which that server was not asked for it.
// Source: MCP 2025-11-25, tasks; the Tasks extension (routing headers); mcp-spec.md §2.3 and §2.4.

import type { View } from '../exchange-ports.js';
import { amendAdmitted } from '../mcp/admit.js';
import type { Admitted, ProtocolFault } from '../mcp/admitted.js';
import type { TaskForm } from '../mcp/capabilities.js';
import { eraTowards } from '../mcp/carried.js';
import { faultOf, METHOD_NOT_FOUND } from '../mcp/faults.js';
import { spanOf } from '../mcp/json.js';
import { listedEra } from '../mcp/listing.js';
import { type Era, isObject, type JsonObject } from '../mcp/message.js';
import { TASK_SESSION_VERSION } from '../mcp/tasks.js';
import { encodeHeaderValue } from '../mcp/translate/mirrored-headers.js';
import type { Catalogue } from '../policy/definition.js';
import type { Principal } from '../policy/principal.js';
import type { Call } from './call.js';
import { namesTask, relatedEdits } from './related-task.js';

const NOT_TRANSLATED =
  'Tasks are not carried between revisions, and this server speaks another one.';
const NO_TASK_TOOL = 'Method not found: this tool cannot be called as a task.';

/**
 * Why an allowed request may not be about a task: its server speaks another era, or its tool, by the approved
 * definition, is never a task (MCP 2025-11-25, tasks, tool-level negotiation).
 */
export function checkTaskUse(
  { era, rule, target, message, mayDefer }: Admitted,
  { carried, channel }: Pick<View, 'carried' | 'channel'>,
  catalogue: Catalogue,
): ProtocolFault | undefined {
  const place = { era, id: message.kind === 'request' ? message.id : undefined };
  const status = era === '2026' ? 404 : 200;
  const isElsewhere = channel.isDirect || eraTowards(listedEra(era), carried) !== era;
  if (rule.subject === 'task' && isElsewhere)
    return faultOf('method-forbidden', METHOD_NOT_FOUND, NOT_TRANSLATED, place, status);
  if (era !== '2025' || !mayDefer || target.kind !== 'tool') return undefined;
  const { pinned } = catalogue.standing('tool', target.name);
  if (pinned === undefined || supportsTasks(pinned.definition)) return undefined;
  return faultOf('method-forbidden', METHOD_NOT_FOUND, NO_TASK_TOOL, place, status);
}

/** How a client is told of the tasks of its server. Where the upstream speaks another era than the client, nobody has tasks (mcp-spec.md §2.3 and §2.4). */
export function taskForm({ view }: Call, era: Era, result: JsonObject): TaskForm {
  const isTranslated = era === '2024' || eraTowards(era, view.carried) !== era;
  if (isTranslated || view.channel.isDirect) return 'none';
  if (era === '2026') return 'extension';
  return result['protocolVersion'] === TASK_SESSION_VERSION ? 'session' : 'none';
}

function supportsTasks({ execution }: JsonObject): boolean {
  const support = isObject(execution) ? execution['taskSupport'] : undefined;
  return support === 'optional' || support === 'required';
}

/** The message under the ids that its server knows. */
export function addressTask(call: Call, principal: Principal, admitted: Admitted): Admitted {
  const { task, text, message } = admitted;
  if (task === undefined && !namesTask(message)) return admitted;
  const place = { upstream: call.incoming.upstream, principal };
  const edits = relatedEdits(text, message, (sealed) => call.ports.tasks.open(sealed, place));
  if (task === undefined) return amendAdmitted(admitted, edits);
  const span = spanOf(text, ['params', 'taskId']);
  if (span === undefined) throw new Error('a request about a task has its id');
  const own = { ...span, text: JSON.stringify(task.id) };
  const nameHeader = admitted.era === '2026' ? encodeHeaderValue(task.id) : undefined;
  return { ...amendAdmitted(admitted, [...edits, own]), nameHeader };
}
