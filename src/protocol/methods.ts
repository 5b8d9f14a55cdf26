// The only table of the MCP methods that the gateway supports, by era and by sender. A method without a row is refused
// in that era and direction. Also what the lists among them have in common, and the types of one complete listing: all
// pages of what an upstream offers, as the gateway itself listed them with one client profile. upstream/ makes listings
// and pins/ compares them; neither imports the other.
// Source: MCP 2025-03-26 to 2026-07-28, schema; method names are case-sensitive.

import type { MethodRule } from './admitted-request.js';
import type { JsonObject } from './jsonrpc.js';
import { type Era, type ListedEra, STATELESS_VERSIONS, TASK_SESSION_VERSION } from './versions/revisions.js';

/** The eras with sessions, on either transport. */
const SESSION_ERAS: readonly Era[] = ['2024', '2025'];
/** Elicitation was introduced after legacy SSE. */
const ELICITATION_ERAS: readonly Era[] = ['2025'];
const STATELESS_ERAS: readonly Era[] = ['2026'];
/** Tasks were introduced by the last revision with sessions. */
const TASK_ERAS: readonly Era[] = ['2025', '2026'];
const ALL_ERAS: readonly Era[] = ['2024', '2025', '2026'];

type Handling = Pick<MethodRule, 'targetKind' | 'request' | 'response'>;

const PROTOCOL_ONLY: Handling = { targetKind: 'none', request: 'name-only', response: 'envelope' };
const FILTERED_RESPONSE: Handling = {
  targetKind: 'none',
  request: 'name-only',
  response: 'filter',
};
const CONTENT_NOTIFICATION: Handling = {
  targetKind: 'none',
  request: 'name-only',
  response: 'inspect',
};
const SUBSCRIPTION_REQUEST: Handling = {
  targetKind: 'none',
  request: 'name-only',
  response: 'subscription',
};
const SERVER_REQUEST: Handling = {
  targetKind: 'server-request',
  request: 'arguments',
  response: 'inspect',
};
const TASK: Handling = { targetKind: 'task', request: 'name-only', response: 'task' };
const RESOURCE_SUBSCRIPTION: Handling = {
  targetKind: 'resource',
  request: 'name-only',
  response: 'envelope',
};

function request(method: string, eras: readonly Era[], handling: Handling): MethodRule {
  return { method, eras, from: 'client', type: 'request', ...handling };
}

function serverRequest(method: string, eras: readonly Era[]): MethodRule {
  return { method, eras, from: 'server', type: 'request', ...SERVER_REQUEST };
}

function notification(method: string, eras: readonly Era[], from: MethodRule['from'], handling: Handling): MethodRule {
  return { method, eras, from, type: 'notification', ...handling };
}

/** Limits a row to the revisions that have the method. */
function limitToVersions(versions: readonly string[], rule: MethodRule): MethodRule {
  return { ...rule, versions };
}

/** Marks a request that ends or answers something which is in progress. */
function endingOrAnswering(rule: MethodRule): MethodRule {
  return { ...rule, endsOrAnswers: true };
}

const TASK_VERSIONS: readonly string[] = [TASK_SESSION_VERSION, ...STATELESS_VERSIONS];

/** Every method that is supported. */
export const METHODS: readonly MethodRule[] = [
  request('initialize', SESSION_ERAS, FILTERED_RESPONSE),
  request('ping', SESSION_ERAS, PROTOCOL_ONLY),
  request('server/discover', STATELESS_ERAS, FILTERED_RESPONSE),
  request('tools/list', ALL_ERAS, FILTERED_RESPONSE),
  request('tools/call', ALL_ERAS, {
    targetKind: 'tool',
    request: 'arguments',
    response: 'inspect',
  }),
  request('resources/list', ALL_ERAS, FILTERED_RESPONSE),
  request('resources/templates/list', ALL_ERAS, FILTERED_RESPONSE),
  request('resources/read', ALL_ERAS, {
    targetKind: 'resource',
    request: 'name-only',
    response: 'inspect',
  }),
  request('resources/subscribe', SESSION_ERAS, RESOURCE_SUBSCRIPTION),
  endingOrAnswering(request('resources/unsubscribe', SESSION_ERAS, RESOURCE_SUBSCRIPTION)),
  request('prompts/list', ALL_ERAS, FILTERED_RESPONSE),
  request('prompts/get', ALL_ERAS, {
    targetKind: 'prompt',
    request: 'arguments',
    response: 'inspect',
  }),
  request('completion/complete', ALL_ERAS, {
    targetKind: 'reference',
    request: 'arguments',
    response: 'inspect',
  }),
  request('logging/setLevel', SESSION_ERAS, PROTOCOL_ONLY),
  request('subscriptions/listen', STATELESS_ERAS, SUBSCRIPTION_REQUEST),
  limitToVersions(TASK_VERSIONS, request('tasks/get', TASK_ERAS, TASK)),
  limitToVersions(TASK_VERSIONS, endingOrAnswering(request('tasks/cancel', TASK_ERAS, TASK))),
  limitToVersions(TASK_VERSIONS, request('tasks/result', ELICITATION_ERAS, { ...TASK, response: 'inspect' })),
  limitToVersions(TASK_VERSIONS, request('tasks/list', ELICITATION_ERAS, FILTERED_RESPONSE)),
  endingOrAnswering(request('tasks/update', STATELESS_ERAS, { ...TASK, request: 'arguments' })),

  notification('notifications/initialized', SESSION_ERAS, 'client', PROTOCOL_ONLY),
  notification('notifications/cancelled', SESSION_ERAS, 'client', PROTOCOL_ONLY),
  notification('notifications/progress', SESSION_ERAS, 'client', PROTOCOL_ONLY),

  notification('notifications/roots/list_changed', SESSION_ERAS, 'client', PROTOCOL_ONLY),

  serverRequest('sampling/createMessage', SESSION_ERAS),
  serverRequest('elicitation/create', ELICITATION_ERAS),
  serverRequest('roots/list', SESSION_ERAS),

  notification('notifications/cancelled', SESSION_ERAS, 'server', PROTOCOL_ONLY),
  notification('notifications/progress', ALL_ERAS, 'server', CONTENT_NOTIFICATION),
  notification('notifications/message', ALL_ERAS, 'server', CONTENT_NOTIFICATION),
  notification('notifications/subscriptions/acknowledged', STATELESS_ERAS, 'server', PROTOCOL_ONLY),
  notification('notifications/tools/list_changed', ALL_ERAS, 'server', PROTOCOL_ONLY),
  notification('notifications/prompts/list_changed', ALL_ERAS, 'server', PROTOCOL_ONLY),
  notification('notifications/resources/list_changed', ALL_ERAS, 'server', PROTOCOL_ONLY),
  notification('notifications/resources/updated', ALL_ERAS, 'server', PROTOCOL_ONLY),
  notification('notifications/elicitation/complete', ELICITATION_ERAS, 'server', PROTOCOL_ONLY),
  limitToVersions(TASK_VERSIONS, notification('notifications/tasks/status', ELICITATION_ERAS, 'server', TASK)),
  notification('notifications/tasks', STATELESS_ERAS, 'server', TASK),
];

/** In 2026 these arrive on the stream of a subscription, and that stream carries no others (subscriptions). */
const SUBSCRIPTION_NOTIFICATIONS: ReadonlySet<string> = new Set([
  'notifications/subscriptions/acknowledged',
  'notifications/tools/list_changed',
  'notifications/prompts/list_changed',
  'notifications/resources/list_changed',
  'notifications/resources/updated',
  'notifications/tasks',
]);

/**
 * Methods that some revision defines and the gateway refuses, by sender. Server requests never become tasks
 * here: the tasks capability of clients is removed, so no client has a task that a server could ask about.
 */
export const REFUSED_METHODS: readonly Pick<MethodRule, 'method' | 'from'>[] = [
  { method: 'tasks/get', from: 'server' },
  { method: 'tasks/result', from: 'server' },
  { method: 'tasks/list', from: 'server' },
  { method: 'tasks/cancel', from: 'server' },
  { method: 'notifications/tasks/status', from: 'client' },
];

const DEFINED_METHODS: ReadonlySet<string> = new Set([...METHODS, ...REFUSED_METHODS].map(({ method }) => method));

const RULES: { readonly [era in Era]: { readonly [from in MethodRule['from']]: Rules } } = {
  '2024': { client: rulesOf('2024', 'client'), server: rulesOf('2024', 'server') },
  '2025': { client: rulesOf('2025', 'client'), server: rulesOf('2025', 'server') },
  '2026': { client: rulesOf('2026', 'client'), server: rulesOf('2026', 'server') },
};

type Rules = ReadonlyMap<string, MethodRule>;

function rulesOf(era: Era, from: MethodRule['from']): Rules {
  const rows = METHODS.filter((rule) => rule.from === from && rule.eras.includes(era));
  return new Map(rows.map((rule) => [rule.method, rule]));
}

/** The row of a method, matched exactly; `undefined` means refused. With a `version`, only what that revision has. */
export function findMethod(
  era: Era,
  from: MethodRule['from'],
  method: string,
  version?: string,
): MethodRule | undefined {
  const rule = RULES[era][from].get(method);
  if (rule?.versions === undefined || version === undefined) return rule;
  return rule.versions.includes(version) ? rule : undefined;
}

/** True for a notification of 2026 that only the stream of a subscription may carry. */
export function isSubscriptionNotification(method: string): boolean {
  return SUBSCRIPTION_NOTIFICATIONS.has(method);
}

/**
 * True for a method that any revision of MCP defines: refusing it is `method-forbidden`, otherwise
 * `method-unknown`.
 */
export function isDefinedMethod(method: string): boolean {
  return DEFINED_METHODS.has(method);
}

/** The lists of what a server offers: their method, the member with the items, and the member that names an item. */
export const LISTS = {
  tools: { method: 'tools/list', member: 'tools', name: 'name' },
  prompts: { method: 'prompts/list', member: 'prompts', name: 'name' },
  templates: {
    method: 'resources/templates/list',
    member: 'resourceTemplates',
    name: 'uriTemplate',
  },
  resources: { method: 'resources/list', member: 'resources', name: 'uri' },
} as const;

export type ListKind = keyof typeof LISTS;

/** The member of a result that holds the items, by the method of the list. */
export const LIST_MEMBERS: ReadonlyMap<string, string> = new Map(
  Object.values(LISTS).map(({ method, member }) => [method, member]),
);

/** The methods whose results say for how long and for whom they may be cached (MCP 2026-07-28, caching). */
export const CACHEABLE: ReadonlySet<string> = new Set([
  'server/discover',
  ...Object.values(LISTS).map(({ method }) => method),
  'resources/read',
]);

/**
 * The profile that the gateway lists with: what an upstream offers may depend on the era in which it is
 * asked, and on whether the Apps extension was declared.
 */
export type ClientProfile = { readonly era: ListedEra; readonly apps: boolean };

/** Equal for equal profiles. */
export function profileKey({ era, apps }: ClientProfile): string {
  return `${era} ${apps}`;
}

export function isSameProfile(one: ClientProfile, other: ClientProfile): boolean {
  return profileKey(one) === profileKey(other);
}

/** One definition of a list, as it appeared on its page. */
export type ListedItem = {
  readonly definition: JsonObject;
  /** False if a number in its text loses precision as a double. */
  readonly isExact: boolean;
};

/** One page of the resources that a backend of an aggregate listed. Without `nextCursor` it is the last page. */
export type ListedPage = {
  readonly upstream: string;
  readonly uris: readonly string[];
  /** The cursor that the page was requested with. */
  readonly cursor: string | undefined;
  readonly nextCursor: string | undefined;
};

/** A kind of list that the upstream declares and that could not be read. */
export type UnavailableKind = {
  /** `resources`: the `ui://` resources that tools refer to. */
  readonly kind: 'tools' | 'prompts' | 'templates' | 'resources';
  readonly why: string;
  /** One clause that says what was wrong. */
  readonly detail: string;
  /** What was listed before stands in for it. Otherwise it is not known what the upstream offers of the kind. */
  readonly hasPrevious?: boolean;
};

/** Every page of every kind that the upstream offers to this profile. */
export type Listing = ClientProfile & {
  /** When the listing began, in milliseconds since the epoch: nothing in it was verified earlier. */
  readonly verifiedAtMs: number;
  readonly tools: readonly ListedItem[];
  readonly prompts: readonly ListedItem[];
  readonly templates: readonly ListedItem[];
  /** Content of the `ui://` resources that tools refer to, as `{uri, contents}`. */
  readonly resources: readonly ListedItem[];
  readonly instructions: string | undefined;
  readonly capabilities: JsonObject;
  readonly serverInfo: JsonObject | undefined;
  /** Versions of this era that both the upstream and the gateway support. */
  readonly protocolVersions: readonly string[];
  /** Kinds whose items here were not verified: those of an earlier listing, or none. */
  readonly unavailable?: readonly UnavailableKind[] | undefined;
  /** One clause for each item that is no definition, or whose name is given twice. */
  readonly leftOut?: readonly string[] | undefined;
};
