// The open streams of callers: bounds them per caller and upstream and in total, and announces on them that a list has
// changed, also because of a block.

import type { UpstreamBlocks } from '../policy/blocks.js';
import type { Emit } from '../policy/events.js';
import { ownerKey, type Principal } from '../policy/principal.js';
import { type LoopScheduler, runInTurns } from '../protocol/json/incremental.js';
import { LIST_CHANGED_NOTIFICATIONS } from '../protocol/subscriptions.js';
import { createQuota } from '../state/bounds.js';
import type { OpenStream, StreamReservation } from './ports.js';

/** For each caller and upstream. Idle streams are cheap but not free, so one caller must not use up the total. */
export const MAX_STREAMS_A_CALLER = 64;
const MAX_STREAMS = 10_000;

export type StreamRegistry = {
  /** Counts a stream before it is opened; `undefined` if its caller, or all together, have as many as allowed. */
  reserve(upstream: string, principal: Principal): StreamReservation | undefined;
  /** Announces on every stream of an upstream that a list changed. */
  announce(upstream: string, method: string): void;
  /** Ends every stream, also those opened later, and one on which responses come as soon as none is waited for. */
  endAll(): void;
  size(): number;
};

/** A change is announced on so many streams at once, and on further ones in slices of the event loop. */
export const ANNOUNCED_AT_ONCE = 200;

export function createStreamRegistry(emit: Emit, loopScheduler: LoopScheduler): StreamRegistry {
  const open = new Map<OpenStream, string>();
  const quota = createQuota({ total: MAX_STREAMS, perOwner: MAX_STREAMS_A_CALLER });
  /** The changes that are being announced in slices, and whether they came again meanwhile. */
  const underWay = new Map<string, boolean>();
  let haveAllEnded = false;
  const endStream = (stream: OpenStream): void => (stream.endWhenIdle ?? stream.end)();

  /** An upstream may change something every second, which takes less time than telling ten thousand streams. */
  async function announceInSlices(upstream: string, method: string, streams: readonly OpenStream[]): Promise<void> {
    await runInTurns({ upstream, loopScheduler }, streams, (stream) => {
      if (open.has(stream)) stream.announce(method);
    });
  }

  function announce(upstream: string, method: string): void {
    const key = `${upstream} ${method}`;
    if (underWay.has(key)) {
      underWay.set(key, true);
      return;
    }
    const streams: OpenStream[] = [];
    for (const [stream, streamUpstream] of open) if (streamUpstream === upstream) streams.push(stream);
    for (const stream of streams.slice(0, ANNOUNCED_AT_ONCE)) stream.announce(method);
    if (streams.length <= ANNOUNCED_AT_ONCE) return;
    underWay.set(key, false);
    void announceInSlices(upstream, method, streams.slice(ANNOUNCED_AT_ONCE)).finally(() => {
      const isAgain = underWay.get(key) === true;
      underWay.delete(key);
      if (isAgain) announce(upstream, method);
    });
  }

  return {
    reserve(upstream, principal) {
      const holder = ownerKey(principal, upstream);
      if (!quota.take(holder)) return undefined;
      let stream: OpenStream | undefined;
      let isReleased = false;
      return {
        open(opened) {
          stream = opened;
          open.set(opened, upstream);
          emit('streaming', { upstream, delta: 1 });
          // It waited for its upstream when the others were ended.
          if (haveAllEnded) endStream(opened);
        },
        release() {
          if (isReleased) return;
          isReleased = true;
          if (stream !== undefined && open.delete(stream)) emit('streaming', { upstream, delta: -1 });
          quota.give(holder);
        },
      };
    },
    announce,
    endAll() {
      haveAllEnded = true;
      for (const stream of [...open.keys()]) endStream(stream);
    },
    size: () => quota.used,
  };
}

/**
 * Tells the streams of each upstream whose blocks have changed since it was called last that its lists may have
 * changed.
 */
export function createBlockAnnouncer(
  blocksAt: (upstream: string) => UpstreamBlocks | undefined,
  announce: (upstream: string, method: string) => void,
): (upstreams: Iterable<string>) => void {
  const announced = new Map<string, UpstreamBlocks | undefined>();
  return (upstreams) => {
    for (const upstream of upstreams) {
      const blocks = blocksAt(upstream);
      if (announced.get(upstream) === blocks) continue;
      announced.set(upstream, blocks);
      for (const method of LIST_CHANGED_NOTIFICATIONS) announce(upstream, method);
    }
  };
}
