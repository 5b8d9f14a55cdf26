// The only table of the MCP methods that the gateway supports, by era and by sender. A method without a row
// is refused in that era and direction.
// Source: MCP 2025-03-26 to 2026-07-28, schema; method names are case-sensitive.

import type { MethodRule } from './admitted-request.js';
import type { Era } from './jsonrpc.js';
import { TASK_SESSION_VERSION } from './tasks.js';
import { STATELESS_VERSIONS } from './versions/revisions.js';

/** The eras with sessions, on either transport. */
const SESSIONS: readonly Era[] = ['2024', '2025'];
/** Elicitation was introduced after legacy SSE. */
const ELICITING: readonly Era[] = ['2025'];
const STATELESS: readonly Era[] = ['2026'];
/** Tasks were introduced by the last revision with sessions. */
const TASKING: readonly Era[] = ['2025', '2026'];
const ALL: readonly Era[] = ['2024', '2025', '2026'];

type Shape = Pick<MethodRule, 'subject' | 'request' | 'response'>;

const UPKEEP: Shape = { subject: 'none', request: 'name-only', response: 'envelope' };
const LIST: Shape = { subject: 'none', request: 'name-only', response: 'filter' };
const CONTENT: Shape = { subject: 'none', request: 'name-only', response: 'inspect' };
const LISTEN: Shape = { subject: 'none', request: 'name-only', response: 'subscription' };
const SERVER_REQUEST: Shape = { subject: 'question', request: 'arguments', response: 'inspect' };
const TASK: Shape = { subject: 'task', request: 'name-only', response: 'task' };
const SUBSCRIPTION: Shape = { subject: 'resource', request: 'name-only', response: 'envelope' };

function request(method: string, eras: readonly Era[], shape: Shape): MethodRule {
  return { method, eras, from: 'client', type: 'request', ...shape };
}

function serverRequest(method: string, eras: readonly Era[]): MethodRule {
  return { method, eras, from: 'server', type: 'request', ...SERVER_REQUEST };
}

function note(
  method: string,
  eras: readonly Era[],
  from: MethodRule['from'],
  shape: Shape,
): MethodRule {
  return { method, eras, from, type: 'notification', ...shape };
}

/** Limits a row to the revisions that have the method. */
function since(versions: readonly string[], rule: MethodRule): MethodRule {
  return { ...rule, versions };
}

const TASK_VERSIONS: readonly string[] = [TASK_SESSION_VERSION, ...STATELESS_VERSIONS];

/** Every method that is supported. */
export const METHODS: readonly MethodRule[] = [
  request('initialize', SESSIONS, LIST),
  request('ping', SESSIONS, UPKEEP),
  request('server/discover', STATELESS, LIST),
  request('tools/list', ALL, LIST),
  request('tools/call', ALL, { subject: 'tool', request: 'arguments', response: 'inspect' }),
  request('resources/list', ALL, LIST),
  request('resources/templates/list', ALL, LIST),
  request('resources/read', ALL, {
    subject: 'resource',
    request: 'name-only',
    response: 'inspect',
  }),
  request('resources/subscribe', SESSIONS, SUBSCRIPTION),
  request('resources/unsubscribe', SESSIONS, SUBSCRIPTION),
  request('prompts/list', ALL, LIST),
  request('prompts/get', ALL, { subject: 'prompt', request: 'arguments', response: 'inspect' }),
  request('completion/complete', ALL, {
    subject: 'reference',
    request: 'arguments',
    response: 'inspect',
  }),
  request('logging/setLevel', SESSIONS, UPKEEP),
  request('subscriptions/listen', STATELESS, LISTEN),
  since(TASK_VERSIONS, request('tasks/get', TASKING, TASK)),
  since(TASK_VERSIONS, request('tasks/cancel', TASKING, TASK)),
  since(TASK_VERSIONS, request('tasks/result', ELICITING, { ...TASK, response: 'inspect' })),
  since(TASK_VERSIONS, request('tasks/list', ELICITING, LIST)),
  request('tasks/update', STATELESS, { ...TASK, request: 'arguments' }),

  note('notifications/initialized', SESSIONS, 'client', UPKEEP),
  note('notifications/cancelled', SESSIONS, 'client', UPKEEP),
  note('notifications/progress', SESSIONS, 'client', UPKEEP),

  note('notifications/roots/list_changed', SESSIONS, 'client', UPKEEP),

  serverRequest('sampling/createMessage', SESSIONS),
  serverRequest('elicitation/create', ELICITING),
  serverRequest('roots/list', SESSIONS),

  note('notifications/cancelled', SESSIONS, 'server', UPKEEP),
  note('notifications/progress', ALL, 'server', CONTENT),
  note('notifications/message', ALL, 'server', CONTENT),
  note('notifications/subscriptions/acknowledged', STATELESS, 'server', UPKEEP),
  note('notifications/tools/list_changed', ALL, 'server', UPKEEP),
  note('notifications/prompts/list_changed', ALL, 'server', UPKEEP),
  note('notifications/resources/list_changed', ALL, 'server', UPKEEP),
  note('notifications/resources/updated', ALL, 'server', UPKEEP),
  note('notifications/elicitation/complete', ELICITING, 'server', UPKEEP),
  since(TASK_VERSIONS, note('notifications/tasks/status', ELICITING, 'server', TASK)),
  note('notifications/tasks', STATELESS, 'server', TASK),
];

/** In 2026 these arrive on the stream of a subscription, and that stream carries no others (subscriptions). */
const NOTIFICATIONS: ReadonlySet<string> = new Set([
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
export const REFUSED: readonly Pick<MethodRule, 'method' | 'from'>[] = [
  { method: 'tasks/get', from: 'server' },
  { method: 'tasks/result', from: 'server' },
  { method: 'tasks/list', from: 'server' },
  { method: 'tasks/cancel', from: 'server' },
  { method: 'notifications/tasks/status', from: 'client' },
];

const DEFINED: ReadonlySet<string> = new Set([...METHODS, ...REFUSED].map(({ method }) => method));

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
  return NOTIFICATIONS.has(method);
}

/**
 * True for a method that any revision of MCP defines: refusing it is `method-forbidden`, otherwise
 * `method-unknown`.
 */
export function isDefinedMethod(method: string): boolean {
  return DEFINED.has(method);
}
