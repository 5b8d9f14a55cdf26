// The subscriptions of 2026: what a client listens to, and the messages that the gateway itself writes on
// such a stream. Reads and writes values; who may listen to what is decided elsewhere.
// Source: MCP 2026-07-28, subscriptions (subscriptions/listen).

import { renderJson } from './json/request-ids.js';
import type { Json } from './jsonrpc.js';
import { isObject, type JsonObject, type RequestId } from './jsonrpc.js';

/** The member of `_meta` that names the request that opened the stream of a message. */
const SUBSCRIPTION_ID_KEY = 'io.modelcontextprotocol/subscriptionId';

/** The lists whose changes can be listened to, by their member of the filter. */
export const LIST_FILTERS = ['toolsListChanged', 'promptsListChanged', 'resourcesListChanged'] as const;

export type ListFilter = (typeof LIST_FILTERS)[number];

/** What a client listens to. */
export type SubscriptionFilter = {
  readonly lists: readonly ListFilter[];
  readonly uris: readonly string[];
  /** Ids of tasks (Tasks extension). */
  readonly tasks: readonly string[];
};

export const EMPTY_FILTER: SubscriptionFilter = Object.freeze({ lists: [], uris: [], tasks: [] });

const LIST_CHANGED_METHODS: { readonly [filter in ListFilter]: string } = {
  toolsListChanged: 'notifications/tools/list_changed',
  promptsListChanged: 'notifications/prompts/list_changed',
  resourcesListChanged: 'notifications/resources/list_changed',
};
/** The notifications of changed lists, each once. */
export const LIST_CHANGED_NOTIFICATIONS: readonly string[] = Object.values(LIST_CHANGED_METHODS);
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
/** Maximum number of resources that one stream may listen to. */
const MAX_URIS = 512;
/** Maximum length of all of them together, since each is parsed whenever something is decided about the stream. */
const MAX_URI_CHARS = 64 * 1024;
/** Maximum number of tasks that one stream may listen to. */
const MAX_TASKS = 512;

/** The member of the filter that a list-changed notification belongs to; `undefined` for any other method. */
export function filterOfNotification(method: string): ListFilter | undefined {
  return LIST_FILTERS.find((filter) => LIST_CHANGED_METHODS[filter] === method);
}

/** Reads `notifications`. Unknown members are ignored; `undefined` if a known one is malformed. */
export function readFilter(value: Json | undefined): SubscriptionFilter | undefined {
  if (!isObject(value)) return undefined;
  const lists: ListFilter[] = [];
  for (const filter of LIST_FILTERS) {
    const isWanted = value[filter] ?? false;
    if (typeof isWanted !== 'boolean') return undefined;
    if (isWanted) lists.push(filter);
  }
  const uris = readNames(value['resourceSubscriptions'], MAX_URIS);
  const tasks = readNames(value['taskIds'], MAX_TASKS);
  if (uris === undefined || tasks === undefined) return undefined;
  const uriChars = uris.reduce((sum, uri) => sum + uri.length, 0);
  return uriChars > MAX_URI_CHARS ? undefined : { lists, uris, tasks };
}

function readNames(value: Json | undefined, max: number): readonly string[] | undefined {
  if (value === undefined) return [];
  if (!Array.isArray(value) || value.length > max) return undefined;
  const names = value.filter((name): name is string => typeof name === 'string' && name !== '');
  return names.length === value.length ? names : undefined;
}

/** Writes a filter as the value of `notifications`; what is not listened to is absent. */
export function writeFilter({ lists, uris, tasks }: SubscriptionFilter): JsonObject {
  const written: Record<string, Json> = {};
  for (const filter of lists) written[filter] = true;
  if (uris.length > 0) written['resourceSubscriptions'] = uris;
  if (tasks.length > 0) written['taskIds'] = tasks;
  return written;
}

/** True if `notifications` is exactly this filter and has no unknown member. */
export function matchesExactly(value: Json | undefined, filter: SubscriptionFilter): boolean {
  const read = readFilter(value);
  if (read === undefined || !isObject(value)) return false;
  const known = new Set<string>([...LIST_FILTERS, 'resourceSubscriptions', 'taskIds']);
  return (
    Object.keys(value).every((name) => known.has(name)) &&
    JSON.stringify(writeFilter(read)) === JSON.stringify(writeFilter(filter))
  );
}

/** The part of a filter that another does not have. */
export function filterWithout(filter: SubscriptionFilter, other: SubscriptionFilter): SubscriptionFilter {
  const [lists, uris, tasks] = [new Set(other.lists), new Set(other.uris), new Set(other.tasks)];
  return {
    lists: filter.lists.filter((one) => !lists.has(one)),
    uris: filter.uris.filter((one) => !uris.has(one)),
    tasks: filter.tasks.filter((one) => !tasks.has(one)),
  };
}

/** The member of `_meta` that says what of a subscription was left out because a server of the endpoint refused it. */
const LEFT_OUT_KEY = 'dev.sallyport/left-out';

/** What was left out of a subscription, and the errors that say why. */
export type LeftOut = { readonly filter: SubscriptionFilter; readonly errors: readonly JsonObject[] };

/** The first message of a stream: the filter that was accepted. */
export function renderAcknowledged(id: RequestId, filter: SubscriptionFilter, leftOut?: LeftOut): string {
  const omission = leftOut && {
    [LEFT_OUT_KEY]: { notifications: writeFilter(leftOut.filter), errors: leftOut.errors },
  };
  const params = { notifications: writeFilter(filter), _meta: { [SUBSCRIPTION_ID_KEY]: id, ...omission } };
  return renderJson({ jsonrpc: '2.0', method: ACKNOWLEDGED, params });
}

/** A list-changed notification of the gateway's own. */
export function renderListChanged(id: RequestId, filter: ListFilter): string {
  const params = { _meta: { [SUBSCRIPTION_ID_KEY]: id } };
  return renderJson({ jsonrpc: '2.0', method: LIST_CHANGED_METHODS[filter], params });
}

/** The result that ends a stream normally. */
export function renderFinalResponse(id: RequestId): string {
  const result = { resultType: 'complete', _meta: { [SUBSCRIPTION_ID_KEY]: id } };
  return renderJson({ jsonrpc: '2.0', id, result });
}

/** True if a notification names the subscription on whose stream it came. */
export function belongsToSubscription(params: JsonObject | undefined, id: RequestId): boolean {
  const meta = params?.['_meta'];
  return isObject(meta) && meta[SUBSCRIPTION_ID_KEY] === id;
}
