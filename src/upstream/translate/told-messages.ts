// How much may be on its way to an upstream of sessions besides calls: answers to its questions, subscriptions,
// cancellations. Each waits for a connection and is held until it has left; a caller's share is never everyone's.
// Source: contract §3 (limits).

import type { JsonObject } from '../../mcp/message.js';
import type { Caller } from '../../policy/caller.js';
import type { TranslationSettings } from './for-sessions.js';
import { headersIn } from './open-session.js';
import { ownerOf } from './session-notes.js';
import type { UpstreamSession } from './session-pool.js';

/** Messages under way, of one caller and of all, and their bytes. */
export const MAX_OUTBOUND_PER_CALLER = 1_024;
const MAX_OUTBOUND = 8_192;
export const MAX_OUTBOUND_BYTES_PER_CALLER = 4 * 1024 * 1024;
const MAX_OUTBOUND_BYTES = 64 * 1024 * 1024;
/** What the gateway itself answers in one caller's sessions; a server that asks faster goes unanswered. */
export const MAX_OWN_A_CALLER = 16;

type Usage = { count: number; bytes: number };

/** A message: whose, how long, and whether it is the gateway's own answer. */
export type OutboundMessage = {
  readonly owner: string;
  readonly bytes: number;
  readonly isOwn: boolean;
};

export type OutboundQueue = {
  /** Takes a place, which the returned function gives back; `undefined` where there is none. */
  enter(message: OutboundMessage): (() => void) | undefined;
};

/** Nothing under way. */
export function createOutboundQueue(): OutboundQueue {
  const all: Usage = { count: 0, bytes: 0 };
  const usageByOwner = new Map<string, Usage>();

  function take(usage: Usage, count: number, bytes: number): void {
    usage.count += count;
    usage.bytes += bytes;
  }

  return {
    enter({ owner, bytes, isOwn }) {
      const own = usageByOwner.get(owner) ?? { count: 0, bytes: 0 };
      const maxOwn = isOwn ? MAX_OWN_A_CALLER : MAX_OUTBOUND_PER_CALLER;
      const hasCapacity =
        fits(own, bytes, maxOwn, MAX_OUTBOUND_BYTES_PER_CALLER) &&
        fits(all, bytes, MAX_OUTBOUND, MAX_OUTBOUND_BYTES);
      if (!hasCapacity) return undefined;
      usageByOwner.set(owner, own);
      for (const usage of [own, all]) take(usage, 1, bytes);
      return () => {
        for (const usage of [own, all]) take(usage, -1, -bytes);
        if (own.count === 0) usageByOwner.delete(owner);
      };
    },
  };
}

/** One alone may be as long as a request may: it was taken from a client within its limit. */
function fits(usage: Usage, bytes: number, maxCount: number, maxBytes: number): boolean {
  return usage.count === 0 || (usage.count < maxCount && usage.bytes + bytes <= maxBytes);
}

/**
 * Says something in a caller's session; what is answered is not read. False where too much is on its way: then it
 * is not said. `isOwn`: an answer of the gateway's own, which may go unsaid.
 */
export type SendInSession = (
  session: Pick<UpstreamSession, 'version' | 'upstreamSession'>,
  by: Caller,
  message: JsonObject,
  isOwn?: boolean,
) => boolean;

/** Says things to one upstream. */
export function createSessionSender({
  client,
  requestTimeoutMs: timeoutMs,
}: Pick<TranslationSettings, 'client' | 'requestTimeoutMs'>): SendInSession {
  const outboundQueue = createOutboundQueue();
  return (session, by, message, isOwn = false) => {
    const body = JSON.stringify(message);
    const bytes = Buffer.byteLength(body);
    const leave = outboundQueue.enter({ owner: ownerOf(by.principal), bytes, isOwn });
    if (leave === undefined) return false;
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...headersIn(session),
    };
    void client.request({ by, method: 'POST', headers, body, timeoutMs }).then((outcome) => {
      leave();
      if (outcome.kind === 'answer') outcome.release();
    });
    return true;
  };
}
