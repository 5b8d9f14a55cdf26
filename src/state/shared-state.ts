// The state that several replicas share. Revocations and ended sessions are looked at twice a second, and
// at once where the store hints at news, and kept here, so that no request waits for them. Whoever could not
// look for `maxAgeMs` cannot know who was revoked, and refuses every caller until it can. Contract §10.

import type { ReplayStore } from '../policy/replay-store.js';
import type { GatewayState, StatePorts, StoreStatus } from './gateway-state.js';
import { createSharedWords, MAX_WORDS, MAX_WORDS_A_LOOK } from './replica-words.js';
import { createSharedEnded } from './shared-ended.js';
import { createSharedLimits } from './shared-limits.js';
import { createSharedRevocations } from './shared-revocations.js';
import type { StoreLink, StoreNews } from './store-link.js';
import { createStoreLooks, type StoreLooks } from './store-looks.js';

/** No more words than these stand before one that was left a moment ago. */
const MAX_LOOKS_FOR_A_WORD = MAX_WORDS / MAX_WORDS_A_LOOK + 1;

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
  const followers: (() => void)[] = [];
  let replicas = 1;

  function tell(): void {
    for (const follow of followers) follow();
  }

  const ended = createSharedEnded(now);
  const looks = createStoreLooks({
    look,
    describe: link.describe,
    maxAgeMs,
    nowMs,
    onTurn: tell,
  });
  const { noteFault } = looks;
  const revocations = createSharedRevocations({
    ...{ ring, now, link },
    onChange: tell,
    onFault: noteFault,
  });
  const { known } = revocations;

  const words = createSharedWords({
    ...{ ring, now, link },
    isReachable: () => looks.fault() === undefined,
    lookUntil: (isHeard) => looks.inTurn(() => lookUntil(isHeard)),
    onFault: noteFault,
  });

  async function lookFrom(mark: number): Promise<StoreNews> {
    const news = await link.look(words.self, { mark, ...words.ask() });
    ended.note(news);
    words.note(news.words);
    // Not within this look: it has an end, whatever is said meanwhile.
    if (words.mayBeMore()) looks.hint();
    return news;
  }

  /** Reads words until it holds. */
  async function lookUntil(isHeard: () => boolean): Promise<void> {
    for (let looked = 0; looked < MAX_LOOKS_FOR_A_WORD && !isHeard(); looked += 1) {
      await lookFrom(ended.mark());
      if (!words.mayBeMore()) return;
    }
  }

  async function look(): Promise<void> {
    await ended.tell(link);
    let news = await lookFrom(ended.mark());
    while (news.hasMore) news = await lookFrom(news.mark);
    replicas = news.replicas;
    await revocations.follow(news.version);
  }

  const uses: ReplayStore = {
    useOnce(keyHash, expiresAtMs) {
      if (looks.fault() !== undefined) return 'unavailable';
      return link.useOnce(keyHash, expiresAtMs - now()).catch((error: unknown) => {
        noteFault(error);
        return 'unavailable';
      });
    },
  };

  return {
    limits: createSharedLimits({
      link,
      isReachable: () => looks.fault() === undefined,
      replicas: () => replicas,
      onFault: noteFault,
      hash: (key) => ring.hmac('limit', key),
    }),
    replays: uses,
    // The hashes of each kind are made under a purpose of their own.
    answered: uses,
    ended,
    words,
    revocations: {
      judge(principal) {
        if (known.hasCaller(principal)) return 'token-revoked';
        return looks.isStale() ? 'store-unavailable' : undefined;
      },
      isRevoked: known.hasCaller,
      hasSession: known.hasSession,
      add(revocation) {
        if (!known.hasRoom()) return Promise.resolve('full');
        known.add(revocation);
        tell();
        return looks.inTurn(() => revocations.share(revocation));
      },
      lift: (id) => looks.inTurn(() => revocations.lift(id)),
      list: known.list,
      onChange: (told) => void followers.push(told),
    },
    status: () => statusOf(link, looks),
    async start() {
      link.onHint(looks.hint);
      await link.opened();
      await looks.start();
    },
    async close() {
      await looks.close();
      await link.close();
    },
  };
}

function statusOf({ isPrivate }: StoreLink, looks: StoreLooks): StoreStatus {
  const fault = looks.fault();
  const isUnreachable = fault !== undefined;
  if (looks.isStale()) {
    const reason = `callers are refused, the store could not be asked: ${fault ?? 'too long ago'}`;
    return { state: 'degraded', reason, isUnreachable };
  }
  if (fault !== undefined)
    return { state: 'degraded', reason: `the store could not be asked: ${fault}`, isUnreachable };
  if (isPrivate) return { state: 'armed', reason: '', isUnreachable };
  return {
    state: 'degraded',
    reason: 'the connection to the store is not encrypted',
    isUnreachable,
  };
}
