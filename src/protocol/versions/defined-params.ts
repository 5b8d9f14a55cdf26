// The members of `params` that each revision defines for each method of clients, and the edits that cut out all
// others: what a revision does not define is read by no check here, and could mean anything to a server.
// Source: MCP schema, 2024-11-05 to 2026-07-28; docs/contract.md §3.

import type { TextEdit } from '../admitted-request.js';
import { removalEdits, spanOf } from '../json/json.js';
import type { Json } from '../jsonrpc.js';
import type { Call } from './admission-rules.js';

/** A member, with the first revision that has it unless all have. */
type Member = { readonly since?: string };
type Members = { readonly [name: string]: Member };

const ALWAYS: Member = {};
const INPUT_RETRY: Members = {
  inputResponses: { since: '2026-07-28' },
  requestState: { since: '2026-07-28' },
};
const CURSOR: Members = { cursor: ALWAYS };
const RESOURCE: Members = { uri: ALWAYS };
const TASK: Members = { taskId: ALWAYS };

const MEMBERS: ReadonlyMap<string, Members> = new Map<string, Members>([
  ['initialize', { protocolVersion: ALWAYS, capabilities: ALWAYS, clientInfo: ALWAYS }],
  ['tools/list', CURSOR],
  ['prompts/list', CURSOR],
  ['resources/list', CURSOR],
  ['resources/templates/list', CURSOR],
  ['tasks/list', CURSOR],
  ['tools/call', { name: ALWAYS, arguments: ALWAYS, ...INPUT_RETRY }],
  ['prompts/get', { name: ALWAYS, arguments: ALWAYS, ...INPUT_RETRY }],
  ['resources/read', { ...RESOURCE, ...INPUT_RETRY }],
  ['resources/subscribe', RESOURCE],
  ['resources/unsubscribe', RESOURCE],
  ['completion/complete', { ref: ALWAYS, argument: ALWAYS, context: { since: '2025-06-18' } }],
  ['logging/setLevel', { level: ALWAYS }],
  ['subscriptions/listen', { notifications: ALWAYS }],
  ['tasks/get', TASK],
  ['tasks/result', TASK],
  ['tasks/cancel', TASK],
  ['tasks/update', { ...TASK, inputResponses: ALWAYS }],
  ['notifications/cancelled', { requestId: ALWAYS, reason: ALWAYS }],
  [
    'notifications/progress',
    { progressToken: ALWAYS, progress: ALWAYS, total: ALWAYS, message: { since: '2025-03-26' } },
  ],
]);

/** Methods without a row have no members but `_meta`. */
const NO_MEMBERS: Members = {};

/** A message without the members of its params that were cut, and the edits that cut them out of its text. */
export type ParamsCut = {
  readonly call: Call;
  readonly names: readonly string[];
  readonly edits: readonly TextEdit[];
};

const NO_NAMES: readonly string[] = [];
const NO_EDITS: readonly TextEdit[] = [];

/**
 * Cuts out what the revision does not define for the method. With `hasNoTask` also a request for a task, which is not
 * available here: it stays in the message, and features/tasks/ records it.
 */
export function cutUndefinedParams(
  call: Call,
  version: string,
  { text, hasNoTask }: { readonly text: string; readonly hasNoTask: boolean },
): ParamsCut {
  const { params, method } = call;
  if (params === undefined) return { call, names: NO_NAMES, edits: NO_EDITS };
  const defined = MEMBERS.get(method) ?? NO_MEMBERS;
  const isUndefined = (name: string): boolean =>
    name !== 'task' && !isDefined(defined, name, version);
  const isCut = (name: string): boolean => isUndefined(name) || (name === 'task' && hasNoTask);
  const span = Object.keys(params).some(isCut) ? spanOf(text, ['params']) : undefined;
  if (span === undefined) return { call, names: NO_NAMES, edits: NO_EDITS };
  const names: string[] = [];
  const kept: [string, Json][] = [];
  // One pass: there may be tens of thousands.
  for (const name of Object.keys(params)) {
    if (isUndefined(name)) names.push(name);
    else kept.push([name, params[name] ?? null]);
  }
  return {
    call: { ...call, params: Object.fromEntries(kept) },
    names,
    edits: removalEdits(text, span, isCut),
  };
}

function isDefined(defined: Members, name: string, version: string): boolean {
  if (name === '_meta') return true;
  const member = Object.hasOwn(defined, name) ? defined[name] : undefined;
  return member !== undefined && (member.since === undefined || version >= member.since);
}
