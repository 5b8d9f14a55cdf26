// Judges one message on the stream of a subscription (2026): is it of this stream, was it asked for, may it
// still be known, is it clean. Answers the text to write and whether the stream ends with it.
// Source: MCP 2026-07-28, subscriptions (subscriptions/listen).

import { NO_CARRY } from '../inspect/inspect.js';
import { removeMember, setMember } from '../inspect/members.js';
import { type Answer, readAnswer } from '../mcp/answers.js';
import { type JsonReading, readJsonText } from '../mcp/json.js';
import type { Json, JsonObject, RequestId } from '../mcp/message.js';
import {
  EMPTY_FILTER,
  filterOfNotice,
  isOfSubscription,
  type ListenFilter,
  readFilter,
  renderNotice,
  saysExactly,
  writeFilter,
} from '../mcp/subscriptions.js';
import type { Reason } from '../policy/reasons.js';
import { addFinding } from '../policy/record.js';
import { refuseWith, renderRefusal } from '../policy/refusal.js';
import { normalizeUri } from '../policy/resource-uri.js';
import type { Cleared } from '../settle/settle.js';
import { type Call, noteRefusal, refusalContext } from './call.js';
import { allowedFilter, type ListenedTasks } from './narrow.js';
import { profileOf } from './profile.js';
import { createAnswerGate } from './progress.js';
import { readMessage, reasonUnread } from './reading.js';
import { drop as noteDrop, type Subject } from './subject.js';
import { tellTaskNotice } from './task-notice.js';

/** One open subscription. `agreed` is what was acknowledged; nothing passes before. */
export type Subscription = {
  readonly call: Call;
  readonly cleared: Cleared;
  readonly id: RequestId;
  readonly requested: ListenFilter;
  /** Tasks that were asked for; `agreed` says which of them are listened to. */
  readonly listened: ListenedTasks;
  agreed: ListenFilter | undefined;
  /** The upstream tells nothing here: the gateway alone keeps it open. */
  isOurs: boolean;
  /** Its result or its failure has been written. */
  isOver: boolean;
  /** Notices of our own so far. */
  told: number;
};

export type Judged = { readonly text: string | undefined; readonly isLast: boolean };

type Read = Extract<JsonReading, { readonly ok: true }>;
type Notification = Extract<Answer, { readonly kind: 'notification' }>;

const NOTHING: Judged = { text: undefined, isLast: false };
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';
const UPDATED = 'notifications/resources/updated';
const TASK_STATUS = 'notifications/tasks';

/** Judges one message of the upstream. */
export async function judgeNotice(subscription: Subscription, data: string): Promise<Judged> {
  const { id, cleared } = subscription;
  const reading = await readMessage(subscription.call, data);
  if (!reading.ok) return fail(subscription, reasonUnread(reading.fault));
  const { version } = cleared.admitted;
  const answer = readAnswer(reading.value, { era: '2026', id, version, isListening: true });
  switch (answer.kind) {
    case 'own-result':
      return judgeEnd(subscription, reading);
    case 'own-error':
      return finish(subscription, reading);
    case 'notification':
      return judgeNotification(subscription, reading, answer);
    case 'server-request':
    case 'foreign':
      return drop(subscription, 'foreign-message');
    case 'own-question':
    case 'own-task':
    case 'malformed':
      return fail(subscription, 'upstream-protocol');
  }
}

/** A server that has nothing to tell may end at once; the gateway goes on where it has. */
async function judgeEnd(subscription: Subscription, reading: Read): Promise<Judged> {
  const { agreed, isOurs } = subscription;
  if (agreed === undefined) return fail(subscription, 'upstream-protocol');
  return isOurs && agreed.lists.length > 0
    ? { text: undefined, isLast: true }
    : finish(subscription, reading);
}

async function finish(subscription: Subscription, reading: Read): Promise<Judged> {
  const text = await inspect(subscription, reading);
  if (text === undefined) return fail(subscription, 'result-content');
  subscription.isOver = true;
  return { text, isLast: true };
}

async function judgeNotification(
  subscription: Subscription,
  reading: Read,
  { method, params }: Notification,
): Promise<Judged> {
  if (!isOfSubscription(params, subscription.id)) return drop(subscription, 'foreign-message');
  const { agreed } = subscription;
  if (method === ACKNOWLEDGED && agreed === undefined)
    return acknowledge(subscription, reading, params);
  if (agreed === undefined || method === ACKNOWLEDGED) return drop(subscription, 'unasked-notice');
  const filter = filterOfNotice(method);
  if (filter !== undefined) {
    const isWanted = allowedNow(subscription, agreed).lists.includes(filter);
    return isWanted ? tellChange(subscription, filter) : drop(subscription, 'unasked-notice');
  }
  if (method === TASK_STATUS) return tellTask(subscription, reading, params?.['taskId']);
  const uri = params?.['uri'];
  if (method !== UPDATED || typeof uri !== 'string' || !mayHearOf(subscription, agreed, uri))
    return drop(subscription, 'unasked-notice');
  const text = await inspect(subscription, reading);
  return text === undefined ? drop(subscription, 'withheld-notice') : { text, isLast: false };
}

/**
 * What is agreed: of resources, what both sides name; of lists, all that was asked for and allowed, because
 * the gateway tells of them where the upstream does not.
 */
async function acknowledge(
  subscription: Subscription,
  reading: Read,
  params: JsonObject | undefined,
): Promise<Judged> {
  const honored = readFilter(params?.['notifications']);
  if (honored === undefined) return fail(subscription, 'upstream-protocol');
  const { requested, listened } = subscription;
  const agreed = {
    lists: requested.lists,
    uris: requested.uris.filter((uri) => honored.uris.includes(uri)),
    tasks: requested.tasks.filter((sealed) =>
      honored.tasks.includes(listened.get(sealed)?.id ?? ''),
    ),
  };
  const inspected = await inspect(subscription, withoutTasks(reading, honored));
  if (inspected === undefined) return fail(subscription, 'result-content');
  subscription.agreed = agreed;
  subscription.isOurs = honored.lists.length + honored.uris.length + honored.tasks.length === 0;
  const isExact = saysExactly(params?.['notifications'], agreed);
  const text = isExact
    ? inspected
    : setMember(inspected, ['params'], 'notifications', writeFilter(agreed));
  return { text, isLast: false };
}

/** The ids of a server look like secrets, and none of them is told. */
function withoutTasks(reading: Read, { tasks }: ListenFilter): Read {
  if (tasks.length === 0) return reading;
  const cut = readJsonText(removeMember(reading.text, ['params', 'notifications'], 'taskIds'));
  return cut.ok ? cut : reading;
}

/** How a task stands, told as the answer to a look at it would be. */
async function tellTask(
  subscription: Subscription,
  reading: Read,
  id: Json | undefined,
): Promise<Judged> {
  const { call, cleared, listened, agreed } = subscription;
  const sealed = agreed?.tasks.find((one) => listened.get(one)?.id === id);
  const task = sealed === undefined ? undefined : listened.get(sealed);
  if (task === undefined) return drop(subscription, 'unasked-notice');
  const { principal, admitted } = cleared;
  const subject: Subject = {
    call,
    owed: undefined,
    principal,
    era: '2026',
    apps: admitted.apps,
    session: undefined,
    answered: undefined,
    carry: NO_CARRY,
    refusedQuestions: 0,
    gate: createAnswerGate(admitted.message),
  };
  const text = await tellTaskNotice(subject, reading, task, admitted.askable);
  return text === undefined ? drop(subscription, 'withheld-notice') : { text, isLast: false };
}

/** Listed again first: a client that asks at once must not be shown what has not been verified. */
async function tellChange(
  subscription: Subscription,
  filter: ListenFilter['lists'][number],
): Promise<Judged> {
  const { call, id } = subscription;
  const before = subscription.told;
  await call.ports.noteListChanged(call.incoming.upstream);
  // The new sight of the upstream was announced here already.
  if (subscription.told !== before) return NOTHING;
  // Said in our own words: what else the upstream put into it is nobody's to read.
  return { text: renderNotice(id, filter), isLast: false };
}

/** A resource that is subscribed to, or one below it, that the caller may read now. */
function mayHearOf(subscription: Subscription, { uris }: ListenFilter, uri: string): boolean {
  const named = normalizeUri(uri);
  if (named === undefined) return false;
  const isSubscribed = uris.some((one) => {
    const above = normalizeUri(one);
    if (above === undefined) return false;
    return named === above || named.startsWith(above.endsWith('/') ? above : `${above}/`);
  });
  return isSubscribed && allowedNow(subscription, { ...EMPTY_FILTER, uris: [uri] }).uris.length > 0;
}

function allowedNow({ call, cleared, listened }: Subscription, filter: ListenFilter): ListenFilter {
  return allowedFilter(call, cleared.principal, filter, listened);
}

async function inspect(
  { call, cleared }: Subscription,
  { text, value }: Read,
): Promise<string | undefined> {
  const profile = profileOf(call, cleared.owed);
  const outcome = await call.ports.inspection.message(
    { text, value, profile },
    call.incoming.upstream,
  );
  for (const finding of outcome.findings) addFinding(call.record.findings, finding);
  switch (outcome.kind) {
    case 'clean':
      return text;
    case 'changed':
      return outcome.text;
    case 'withhold':
      return undefined;
  }
}

function drop({ call }: Subscription, detector: string): Judged {
  noteDrop(call, detector);
  return NOTHING;
}

/** In a stream that has begun, a refusal is the last event (contract §6). */
function fail(subscription: Subscription, reason: Reason): Judged {
  const { call } = subscription;
  const refusal = refuseWith(reason);
  noteRefusal(call, refusal);
  const rendered = renderRefusal(refusal, refusalContext(call));
  call.record.result.rpcCode = rendered.rpcCode;
  subscription.isOver = true;
  return { text: rendered.body, isLast: true };
}
