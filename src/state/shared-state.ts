// The state that several replicas share. Revocations and ended sessions are looked at twice a second, and
// at once where the store hints at news, and kept here, so that no request waits for them. Whoever could not
// look for `maxAgeMs` cannot know who was revoked, and refuses every caller until it can. Contract §10.

import type { ReplayStore } from '../policy/replay-store.js';
import type { GatewayState, StatePorts, StoreStatus } from './gateway-state.js';
import {
  createSharedReplicaBus,
  MAX_MESSAGES_PER_POLL,
  MAX_QUEUED_MESSAGES,
} from './replica-words.js';
import { createSharedEnded } from './shared-ended.js';
import { createSharedLimits } from './shared-limits.js';
import { createSharedRevocations } from './shared-revocations.js';
import type { StoreLink, StoreUpdate } from './store-link.js';
import { createStorePoller, type StorePoller } from './store-looks.js';

/** No more words than these stand before one that was left a moment ago. */
const MAX_POLLS_PER_MESSAGE = MAX_QUEUED_MESSAGES / MAX_MESSAGES_PER_POLL + 1;

export type SharedStatePorts = StatePorts & {
  readonly link: StoreLink;
  /** How old the newest look may be. */
  readonly maxAgeMs: number;
  /** A monotonic clock, in milliseconds. */
  readonly nowMs?: () => number;
};

/** The state of a replica among others. It knows nothing before `start`, and refuses until it does. */
export function createSharedState(ports: SharedStatePorts): GatewayState {
  const { ring, now, link, maxAgeMs, nowMs = () => performance.now() } = ports;
  const listeners: (() => void)[] = [];
  let replicas = 1;

  function emitChange(): void {
    for (const follow of listeners) follow();
  }

  const ended = createSharedEnded(now);
  const poller = createStorePoller({
    poll,
    describe: link.describe,
    maxAgeMs,
    nowMs,
    onPoll: emitChange,
  });
  const { noteError } = poller;
  const revocations = createSharedRevocations({
    ...{ ring, now, link },
    onChange: emitChange,
    onError: noteError,
  });
  const { known } = revocations;

  const replicaBus = createSharedReplicaBus({
    ...{ ring, now, link },
    isReachable: () => poller.lastError() === undefined,
    pollUntil: (isReceived) => poller.inTurn(() => pollUntil(isReceived)),
    onError: noteError,
  });

  async function pollFrom(mark: number): Promise<StoreUpdate> {
    const update = await link.poll(replicaBus.self, { mark, ...replicaBus.ask() });
    ended.note(update);
    replicaBus.note(update.messages);
    // Not within this look: it has an end, whatever is said meanwhile.
    if (replicaBus.mayBeMore()) poller.hint();
    return update;
  }

  /** Reads words until it holds. */
  async function pollUntil(isReceived: () => boolean): Promise<void> {
    for (let polls = 0; polls < MAX_POLLS_PER_MESSAGE && !isReceived(); polls += 1) {
      await pollFrom(ended.mark());
      if (!replicaBus.mayBeMore()) return;
    }
  }

  async function poll(): Promise<void> {
    await ended.publish(link);
    let update = await pollFrom(ended.mark());
    while (update.hasMore) update = await pollFrom(update.mark);
    replicas = update.replicas;
    await revocations.follow(update.version);
  }

  const uses: ReplayStore = {
    useOnce(keyHash, expiresAtMs) {
      if (poller.lastError() !== undefined) return 'unavailable';
      return link.useOnce(keyHash, expiresAtMs - now()).catch((error: unknown) => {
        noteError(error);
        return 'unavailable';
      });
    },
  };

  return {
    limits: createSharedLimits({
      link,
      isReachable: () => poller.lastError() === undefined,
      replicas: () => replicas,
      onError: noteError,
      hash: (key) => ring.hmac('limit', key),
    }),
    replays: uses,
    // The hashes of each kind are made under a purpose of their own.
    answeredRequests: uses,
    ended,
    replicaBus,
    revocations: {
      checkPrincipal(principal) {
        if (known.hasCaller(principal)) return 'token-revoked';
        return poller.isStale() ? 'store-unavailable' : undefined;
      },
      isRevoked: known.hasCaller,
      hasSession: known.hasSession,
      add(revocation) {
        if (!known.hasCapacity()) return Promise.resolve('full');
        known.add(revocation);
        emitChange();
        return poller.inTurn(() => revocations.publish(revocation));
      },
      lift: (id) => poller.inTurn(() => revocations.lift(id)),
      list: known.list,
      onChange: (listener) => void listeners.push(listener),
    },
    status: () => statusOf(link, poller),
    async start() {
      link.onHint(poller.hint);
      await link.opened();
      await poller.start();
    },
    async close() {
      await poller.close();
      await link.close();
    },
  };
}

function statusOf({ isPrivate }: StoreLink, poller: StorePoller): StoreStatus {
  const storeError = poller.lastError();
  const isUnreachable = storeError !== undefined;
  if (poller.isStale()) {
    const reason = `callers are refused, the store could not be asked: ${storeError ?? 'too long ago'}`;
    return { state: 'degraded', reason, isUnreachable };
  }
  if (storeError !== undefined)
    return {
      state: 'degraded',
      reason: `the store could not be asked: ${storeError}`,
      isUnreachable,
    };
  if (isPrivate) return { state: 'armed', reason: '', isUnreachable };
  return {
    state: 'degraded',
    reason: 'the connection to the store is not encrypted',
    isUnreachable,
  };
}
