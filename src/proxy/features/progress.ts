// Which notices of a server pass by how they come: progress only under a token that is live, and only
// forwards; no more notices a second than a reader could take. What they say is judged elsewhere.
// Source: MCP 2025-11-25, progress and logging (rate limits); docs/reference/protocol.md §4.2.

import type { Admitted, SessionFacts } from '../../protocol/admitted-request.js';
import { isObject, type JsonObject, type Message, type RequestId } from '../../protocol/jsonrpc.js';
import type { Call, FollowedProgress, ProgressCount } from '../request-context.js';

/** Progress and log messages of one exchange, or of one stream, in a second. */
export const MAX_NOTIFICATIONS_PER_SECOND = 100;
const SECOND_MS = 1_000;

const PROGRESS = 'notifications/progress';
const MESSAGE = 'notifications/message';

/** Why a notice is dropped, as findings name it. */
export type NotificationError = 'stale-progress' | 'notice-flood';

/** Judges the notices of one exchange or stream, in the order in which they come. */
export type NotificationGate = {
  /** `undefined` for what may pass. */
  find(method: string, params: JsonObject | undefined): NotificationError | undefined;
};

/** The count of a live token; `undefined` for a token that nobody waits for. */
type CountOf = (token: RequestId) => ProgressCount | undefined;

/** A count that has not begun. */
export function createCount(): ProgressCount {
  return { last: Number.NEGATIVE_INFINITY };
}

/** Enters a request that asked for its progress, for as long as it runs; `undefined` for every other. */
export function followProgress({ ports }: Call, admitted: Admitted): FollowedProgress | undefined {
  const token = tokenOf(admitted.message);
  if (token === undefined || admitted.message.kind !== 'request') return undefined;
  const { last } = createCount();
  const { session } = admitted;
  const hash = session?.hash;
  if (hash === undefined) return { last, end: () => undefined, keep: () => undefined };
  const keep = (): void => ports.keepProgress(hash, token);
  const followed = { last, end: () => leave(), keep };
  const leave = ports.registerProgress(hash, token, followed);
  return followed;
}

/** The gate of what comes with the answer to a request: its own token alone is live. */
export function createResponseGate(message: Message, count = createCount()): NotificationGate {
  const token = tokenOf(message);
  return createGate((named) => (named === token ? count : undefined));
}

/** The gate of what comes with the result of a task: the token of the call that began it is live too. */
export function createTaskGate(
  { ports }: Call,
  { message, session }: Pick<Admitted, 'message' | 'session'>,
  count = createCount(),
): NotificationGate {
  const token = tokenOf(message);
  const hash = session?.hash;
  return createGate((named) => {
    if (named === token) return count;
    return hash === undefined ? undefined : ports.findProgress(hash, named);
  });
}

/** The gate of a stream that nobody asked for: tokens of requests of its session that are under way are live. */
export function createSessionGate({ ports }: Call, { hash = '' }: SessionFacts): NotificationGate {
  return createGate((token) => ports.findProgress(hash, token));
}

/** A gate over live tokens. */
export function createGate(countOf: CountOf): NotificationGate {
  let second = 0;
  let notificationCount = 0;

  function isFlood(method: string): boolean {
    // Of what has changed, each notice is needed; of what goes on, the newest.
    if (method !== PROGRESS && method !== MESSAGE) return false;
    const now = Math.floor(performance.now() / SECOND_MS);
    if (now !== second) notificationCount = 0;
    second = now;
    notificationCount += 1;
    return notificationCount > MAX_NOTIFICATIONS_PER_SECOND;
  }

  return {
    find(method, params) {
      if (method === PROGRESS && !advance(params, countOf)) return 'stale-progress';
      return isFlood(method) ? 'notice-flood' : undefined;
    },
  };
}

/** Counts a step; false for one under no live token, or that is none. */
function advance(params: JsonObject | undefined, countOf: CountOf): boolean {
  const token = params?.['progressToken'];
  const progress = params?.['progress'];
  if (typeof token !== 'string' && typeof token !== 'number') return false;
  const count = countOf(token);
  if (count === undefined || typeof progress !== 'number' || progress <= count.last) return false;
  count.last = progress;
  return true;
}

/** The token under which a request asks for its progress. */
export function tokenOf(message: Message): RequestId | undefined {
  const meta = 'params' in message ? message.params?.['_meta'] : undefined;
  const token = isObject(meta) ? meta['progressToken'] : undefined;
  return typeof token === 'string' || typeof token === 'number' ? token : undefined;
}
