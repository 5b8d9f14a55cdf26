// Narrows a subscription (2026-07-28) to what its caller may receive: list changes if the caller sees an item of
// that kind, updates of resources that the caller may read, and the status of the caller's own tasks. The rest
// is removed from the request.
// Source: MCP 2026-07-28, subscriptions; docs/contract.md §4, law 2.

import type { Principal } from '../../policy/principal.js';
import { addFinding } from '../../policy/record.js';
import { amendAdmitted } from '../../protocol/admission.js';
import type { AdmittedMessage, OpenedTask } from '../../protocol/admitted-request.js';
import { spanOf } from '../../protocol/json/json.js';
import { paramsOf } from '../../protocol/params.js';
import {
  EMPTY_FILTER,
  type ListFilter,
  matchesExactly,
  readFilter,
  type SubscriptionFilter,
  writeFilter,
} from '../../protocol/subscriptions.js';
import { hasTask, isTranslated } from '../../protocol/versions/negotiation.js';
import { STATELESS } from '../../protocol/versions/stateless.js';
import { decideTarget, mayKnowList } from '../authorization.js';
import type { Snapshot } from '../ports.js';
import type { RequestContext } from '../request-context.js';
import { mayKnowTask } from './task-responses.js';

/** What may be seen is the same for every client of the era. */
const SUBSCRIBER = { protocol: STATELESS, apps: false } as const;

/** The message, with its filter reduced to what the caller may receive. */
export function narrowSubscription(
  call: RequestContext<'tasks'>,
  principal: Principal,
  admitted: AdmittedMessage,
): AdmittedMessage {
  const rawFilter = paramsOf(admitted)['notifications'];
  const requested = readFilter(rawFilter) ?? EMPTY_FILTER;
  const subscribedTasks = openSubscribedTasks(call, principal, requested.tasks);
  const allowed = allowedFilter(call.snapshot, principal, requested, subscribedTasks);
  if (allowed.tasks.length === 0 && matchesExactly(rawFilter, allowed)) return admitted;
  const span = spanOf(admitted.text, ['params', 'notifications']);
  if (span === undefined) throw new Error('an admitted subscription has notifications');
  if (!matchesExactly(rawFilter, allowed)) {
    addFinding(call.record.findings, {
      detector: 'subscription',
      direction: 'to-upstream',
      path: '/params/notifications',
      count: 1,
      action: 'strip',
    });
  }
  const sent = {
    ...allowed,
    tasks: allowed.tasks.map((sealed) => subscribedTasks.get(sealed)?.id ?? ''),
  };
  return amendAdmitted(admitted, [{ ...span, text: JSON.stringify(writeFilter(sent)) }]);
}

/** The tasks in the filter, by the ids that the client knows. */
export type SubscribedTasks = ReadonlyMap<string, OpenedTask>;

/** Those of the given ids that are tasks of this caller at this upstream. */
export function openSubscribedTasks(
  { incoming, ports, snapshot }: RequestContext<'tasks'>,
  principal: Principal,
  ids: readonly string[],
): SubscribedTasks {
  const opened = new Map<string, OpenedTask>();
  // No tasks exist if the upstream speaks another era.
  if (isTranslated(STATELESS, snapshot.supportedVersions)) return opened;
  for (const sealed of ids) {
    const facts = ports.tasks.open(sealed, { upstream: incoming.upstream, principal });
    if (facts !== undefined && hasTask(STATELESS, facts)) opened.set(sealed, { ...facts, sealed });
  }
  return opened;
}

/** Whether the caller may be told of changes of a list. */
export function mayKnowChanges(
  snapshot: Snapshot,
  principal: Principal,
  filter: ListFilter,
): boolean {
  return mayKnowList(snapshot, principal, SUBSCRIBER, filter);
}

/** Whether the current rules allow this caller a list, a URI or a task of a filter. */
function rulesFor(snapshot: Snapshot, principal: Principal, subscribedTasks: SubscribedTasks) {
  return {
    list: (filter: ListFilter) => mayKnowChanges(snapshot, principal, filter),
    uri(uri: string) {
      const target = { kind: 'resource', uri } as const;
      return decideTarget(snapshot, principal, SUBSCRIBER, { target }).verdict === 'allow';
    },
    task(sealed: string) {
      const task = subscribedTasks.get(sealed);
      return task !== undefined && mayKnowTask(snapshot, principal, SUBSCRIBER, task) !== undefined;
    },
  };
}

/** The part of a filter that the current rules allow this caller. */
export function allowedFilter(
  snapshot: Snapshot,
  principal: Principal,
  { lists, uris, tasks }: SubscriptionFilter,
  subscribedTasks: SubscribedTasks,
): SubscriptionFilter {
  const allows = rulesFor(snapshot, principal, subscribedTasks);
  return {
    lists: lists.filter(allows.list),
    uris: uris.filter(allows.uri),
    tasks: tasks.filter(allows.task),
  };
}

/** Whether any of it is allowed. Decided for many streams at once, so it stops at the first that is. */
export function isAnyAllowed(
  snapshot: Snapshot,
  principal: Principal,
  { lists, uris, tasks }: SubscriptionFilter,
  subscribedTasks: SubscribedTasks,
): boolean {
  const allows = rulesFor(snapshot, principal, subscribedTasks);
  return lists.some(allows.list) || uris.some(allows.uri) || tasks.some(allows.task);
}
