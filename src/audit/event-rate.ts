// Which events are written and which are only counted: what an upstream, or anyone without a token, can cause at will
// is bounded, so that nobody fills the disk. Decisions never pass here. Nothing that an upstream invents or repeats
// keeps the first drift of a pinned definition from being written. docs/contract.md §8 (rates).

import { createHash } from 'node:crypto';
import { createRate, type RateBounds } from '../state/quota.js';
import type { AuditEvent } from './event.js';

/** Failed authentications written per second; the others are counted in the next event that is written. */
export const AUTH_FAILURES_PER_SECOND = 50;

/** Events about definitions of one upstream: of those in its lock file, and again of all others. */
export const DEFINITION_EVENTS: RateBounds = { burst: 1_000, perSecond: 1 };

/** What is left of the rate of other definitions for those that were not written lately. */
const KEPT_FOR_FIRST = DEFINITION_EVENTS.burst / 2;

/** After this time an event counts as the first of its definition and kind again. Milliseconds. */
export const FIRST_EVENT_MS = 3_600_000;

/** Of an event that is written, how many before it were only counted; `undefined` if it is only counted itself. */
export type Admission = number | undefined;

/** Queues the event with the number of those that were only counted. False if no sink has room: the event is lost. */
type Write = (suppressed: number) => boolean;

type DefinitionEvent = Extract<AuditEvent, { readonly type: 'pin.drift' | 'pin.finding' }>;

/** What was written about the definitions of one upstream since `sinceMs`, and how many events were not. */
type Written = {
  sinceMs: number;
  readonly pinned: Set<string>;
  readonly others: Set<string>;
  readonly suppressed: Map<string, number>;
};

/**
 * Creates the function that writes each event, or only counts it. What is lost uses up the rate, but was not written: the
 * number of those that were only counted stays, and the next event of its definition and kind is still the first.
 * `now` is in milliseconds.
 */
export function createEventRate(now: () => number): (event: AuditEvent, write: Write) => Admission {
  const admitUnauthenticated = createUnauthenticatedRate(now);
  const admitDefinition = createDefinitionRate(now);
  function always(write: Write): Admission {
    write(0);
    return 0;
  }
  return (event, write) => {
    switch (event.type) {
      case 'auth.failure':
        return admitUnauthenticated(true, write);
      case 'admin.action':
        return event.subject === undefined ? admitUnauthenticated(false, write) : always(write);
      case 'pin.drift':
      case 'pin.finding':
        return admitDefinition(event, write);
      // Once for each definition of one listing, or caused by operators and by the sinks themselves.
      case 'pin.first-use':
      case 'pin.approval':
      case 'pin.block':
      case 'config.reload':
      case 'lifecycle':
      case 'checkpoint':
        return always(write);
    }
  };
}

/** `isCounting`: the event says how many were only counted. */
function createUnauthenticatedRate(
  now: () => number,
): (isCounting: boolean, write: Write) => Admission {
  const rate = createRate(
    { burst: AUTH_FAILURES_PER_SECOND, perSecond: AUTH_FAILURES_PER_SECOND },
    now,
  );
  let suppressed = 0;
  return (isCounting, write) => {
    if (rate.left() < 1) {
      suppressed += 1;
      return undefined;
    }
    rate.spend(1);
    const counted = isCounting ? suppressed : 0;
    if (write(counted)) suppressed -= counted;
    return counted;
  };
}

function newWritten(sinceMs: number): Written {
  return { sinceMs, pinned: new Set(), others: new Set(), suppressed: new Map() };
}

function createDefinitionRate(
  now: () => number,
): (event: DefinitionEvent, write: Write) => Admission {
  const rate = createRate(DEFINITION_EVENTS, now);
  const upstreams = new Map<string, Written>();

  function writtenOf(upstream: string): Written {
    const atMs = now();
    const known = upstreams.get(upstream) ?? newWritten(atMs);
    upstreams.set(upstream, known);
    // A clock that was set back must not keep what was written from ever being forgotten.
    if (atMs - known.sinceMs >= FIRST_EVENT_MS || atMs < known.sinceMs) {
      known.sinceMs = atMs;
      known.pinned.clear();
      known.others.clear();
    }
    return known;
  }

  return (event, write) => {
    const { type, upstream } = event;
    const names = isInLock(event) ? 'pinned' : 'others';
    const { suppressed, [names]: written } = writtenOf(upstream);
    const key = keyOf(event);
    const bucket = `${names} ${upstream}`;
    const left = rate.left(bucket);
    const counted = suppressed.get(type) ?? 0;
    const mayBeWritten = mayWrite(names, !written.has(key), left);
    if (mayBeWritten && left >= 1) rate.spend(1, bucket);
    if (mayBeWritten && write(counted)) {
      written.add(key);
      suppressed.set(type, 0);
      return counted;
    }
    // What is lost is logged within the rate alone: it is the first of its definition each time.
    if (mayBeWritten && left >= 1) return counted;
    suppressed.set(type, counted + 1);
    return undefined;
  };
}

/**
 * INVARIANT: the first event of a pinned definition does not depend on what is left. It is bounded all the same, because
 * the names of a lock file are not the upstream's to choose.
 */
function mayWrite(names: 'pinned' | 'others', isFirst: boolean, left: number): boolean {
  if (names === 'pinned') return isFirst || left >= 1;
  return left >= (isFirst ? 1 : KEPT_FOR_FIRST + 1);
}

/** Whether the lock file has the name: nothing else says that the upstream did not invent it. */
function isInLock(event: DefinitionEvent): boolean {
  return event.type === 'pin.drift' ? event.before !== undefined : event.isPinned;
}

/**
 * A definition and what happened to it; after another approval, a drift is another one. A digest, because it is kept, and
 * the length of the name is the upstream's.
 */
function keyOf(event: DefinitionEvent): string {
  const { type, kind, name } = event;
  const what =
    type === 'pin.drift' ? `${event.change} ${event.before ?? ''}` : `${event.found} ${event.tier}`;
  return createHash('sha256').update(`${type} ${kind} ${what} ${name}`).digest('base64');
}
