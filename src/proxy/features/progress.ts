// Limits notifications by how they arrive: progress passes only under an active token and only if it increases,
// and progress and log messages have a maximum rate. Their content is checked elsewhere.
// Source: MCP 2025-11-25, progress and logging (rate limits); docs/reference/protocol.md#methods-by-direction.

import type { AuthorizedRequest, RunningRequest } from '../../policy/obligations.js';
import type { AdmittedMessage, SessionFacts } from '../../protocol/admitted-request.js';
import { isRequestId, type JsonObject, type Message, type RequestId, type Target } from '../../protocol/jsonrpc.js';
import { type ProgressCount, progressTokenOf } from '../../protocol/params.js';
import type { Feature, FollowedProgress, RequestContext } from '../request-context.js';

/** Progress and log messages of one response or one stream, per second. */
export const MAX_NOTIFICATIONS_PER_SECOND = 100;
const SECOND_MS = 1_000;

const PROGRESS = 'notifications/progress';
const MESSAGE = 'notifications/message';

/** Why a notification is dropped, in the spelling of findings. */
type NotificationError = 'stale-progress' | 'notice-flood';

/** Checks the notifications of one response or stream, in order of arrival. */
export type NotificationGate = {
  /** Returns `undefined` for a notification that may pass. */
  check(method: string, params: JsonObject | undefined): NotificationError | undefined;
  /** On a stream of its own: the running request whose progress this is. */
  requestOf(method: string, params: JsonObject | undefined): RunningRequest | undefined;
  /** On a stream of its own: what the calls are about that a message of it may belong to. */
  inProgress(): readonly Target[];
};

/** The progress count of an active token; `undefined` for any other token. */
type CountOf = (token: RequestId) => ProgressCount | undefined;
type RequestOf = (token: RequestId) => RunningRequest | undefined;
type InProgress = NotificationGate['inProgress'];

/** A count below every progress value. */
export function createCount(): ProgressCount {
  return { last: Number.NEGATIVE_INFINITY };
}

/**
 * A request that asks for progress notifications, or a call whose tool has sensitive fields or labels that a flow looks for:
 * what belongs to it may come on the stream of its session.
 */
export const FOLLOWED_REQUEST: Feature = {
  begin(call, authorized) {
    call.progress = followRequest(call, authorized);
    return undefined;
  },
};

/** Registers a request while it runs; `undefined` for any other message. */
function followRequest(
  { ports: { progress } }: RequestContext<'progress'>,
  { admitted, responseObligations }: AuthorizedRequest,
): FollowedProgress | undefined {
  if (admitted.message.kind !== 'request') return undefined;
  const token = progressTokenOf(admitted.message);
  const { last } = createCount();
  const { session, target } = admitted;
  const hash = session?.hash;
  const running = { last, target, responseObligations };
  if (hash === undefined) return { ...running, end: () => undefined, keep: () => undefined };
  const keep = (): void => {
    if (token !== undefined) progress.keep(hash, token);
  };
  const followed = { ...running, end: () => unregister(), keep };
  const unregister = progress.register(hash, token, followed);
  return followed;
}

/** The gate for messages that accompany the response to this request. */
export function createGateFor(
  call: RequestContext<'progress'>,
  admitted: Pick<AdmittedMessage, 'message' | 'session' | 'task'>,
): NotificationGate {
  return admitted.task === undefined
    ? createResponseGate(admitted.message, call.progress)
    : createTaskGate(call, admitted, call.progress);
}

/** The gate for messages that accompany the response to a request: only the request's own token is active. */
export function createResponseGate(message: Message, count = createCount()): NotificationGate {
  const token = progressTokenOf(message);
  return createGate((named) => (named === token ? count : undefined));
}

/** The gate for messages that accompany a task's result: the token of the call that created it is active too. */
function createTaskGate(
  { ports: { progress } }: RequestContext<'progress'>,
  { message, session }: Pick<AdmittedMessage, 'message' | 'session'>,
  count = createCount(),
): NotificationGate {
  const token = progressTokenOf(message);
  const hash = session?.hash;
  return createGate((named) => {
    if (named === token) return count;
    return hash === undefined ? undefined : progress.find(hash, named);
  });
}

/** The gate for an unsolicited stream: the tokens of its session's running requests are active. */
export function createSessionGate(
  { ports: { progress } }: RequestContext<'progress'>,
  { hash = '' }: SessionFacts,
): NotificationGate {
  const find = (token: RequestId) => progress.find(hash, token);
  return createGate(find, find, () => progress.inProgress(hash).map(({ target }) => target));
}

const NO_REQUEST: RequestOf = () => undefined;
const NO_TARGETS: readonly Target[] = Object.freeze([]);

/** Creates a gate over the active tokens. */
export function createGate(
  countOf: CountOf,
  requestOf = NO_REQUEST,
  inProgress: InProgress = () => NO_TARGETS,
): NotificationGate {
  let currentSecond = 0;
  let notificationCount = 0;

  function isFlood(method: string): boolean {
    // Every notification of a change is needed; of progress and log messages the newest are enough.
    if (method !== PROGRESS && method !== MESSAGE) return false;
    const now = Math.floor(performance.now() / SECOND_MS);
    if (now !== currentSecond) notificationCount = 0;
    currentSecond = now;
    notificationCount += 1;
    return notificationCount > MAX_NOTIFICATIONS_PER_SECOND;
  }

  return {
    check(method, params) {
      if (method === PROGRESS && !advance(params, countOf)) return 'stale-progress';
      return isFlood(method) ? 'notice-flood' : undefined;
    },
    requestOf(method, params) {
      const token = params?.['progressToken'];
      return method === PROGRESS && isRequestId(token) ? requestOf(token) : undefined;
    },
    inProgress,
  };
}

/** Counts one step of progress; false if it names no active token or does not increase. */
function advance(params: JsonObject | undefined, countOf: CountOf): boolean {
  const token = params?.['progressToken'];
  const progress = params?.['progress'];
  if (typeof token !== 'string' && typeof token !== 'number') return false;
  const count = countOf(token);
  if (count === undefined || typeof progress !== 'number' || progress <= count.last) return false;
  count.last = progress;
  return true;
}
