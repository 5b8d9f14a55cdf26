// Which events are written and which are only counted: what an upstream, or anyone without a token, can cause at will
// is bounded, so that nobody fills the disk. Decisions never pass here. Nothing that an upstream invents or repeats
// keeps the first drift of a pinned definition from being written. docs/contract.md §8 (rates).

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

/** Names that no lock file has are compared by so many characters: they are kept, and their length is the upstream's. */
const MAX_NAME_CHARACTERS = 256;

/** Of an event that is written, how many before it were only counted; `undefined` if it is only counted itself. */
export type Admission = number | undefined;

type DefinitionEvent = Extract<AuditEvent, { readonly type: 'pin.drift' | 'pin.finding' }>;

/** What was written about the definitions of one upstream since `sinceMs`, and how many events were not. */
type Written = {
  sinceMs: number;
  readonly pinned: Set<string>;
  readonly others: Set<string>;
  readonly suppressed: Map<string, number>;
};

/** Creates the function that admits each event. `now` is in milliseconds. */
export function createEventRate(now: () => number): (event: AuditEvent) => Admission {
  const admitUnauthenticated = createUnauthenticatedRate(now);
  const admitDefinition = createDefinitionRate(now);
  return (event) => {
    switch (event.type) {
      case 'auth.failure':
        return admitUnauthenticated(true);
      case 'admin.action':
        return event.subject === undefined ? admitUnauthenticated(false) : 0;
      case 'pin.drift':
      case 'pin.finding':
        return admitDefinition(event);
      // Once for each definition of one listing, or caused by operators and by the sinks themselves.
      case 'pin.first-use':
      case 'pin.approval':
      case 'pin.block':
      case 'config.reload':
      case 'lifecycle':
      case 'checkpoint':
        return 0;
    }
  };
}

/** `isCounting`: the event says how many were only counted. */
function createUnauthenticatedRate(now: () => number): (isCounting: boolean) => Admission {
  const rate = createRate(
    { burst: AUTH_FAILURES_PER_SECOND, perSecond: AUTH_FAILURES_PER_SECOND },
    now,
  );
  let suppressed = 0;
  return (isCounting) => {
    if (rate.left() < 1) {
      suppressed += 1;
      return undefined;
    }
    rate.spend(1);
    if (!isCounting) return 0;
    const counted = suppressed;
    suppressed = 0;
    return counted;
  };
}

function newWritten(sinceMs: number): Written {
  return { sinceMs, pinned: new Set(), others: new Set(), suppressed: new Map() };
}

function createDefinitionRate(now: () => number): (event: DefinitionEvent) => Admission {
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

  return (event) => {
    const { type, upstream } = event;
    const { pinned, others, suppressed } = writtenOf(upstream);
    const isPinned = isInLock(event);
    const written = isPinned ? pinned : others;
    const key = keyOf(event, isPinned);
    const isFirst = !written.has(key);
    const bucket = `${isPinned ? 'pinned' : 'others'} ${upstream}`;
    const left = rate.left(bucket);
    if (!mayWrite(isPinned, isFirst, left)) {
      suppressed.set(type, (suppressed.get(type) ?? 0) + 1);
      return undefined;
    }
    if (left >= 1) rate.spend(1, bucket);
    written.add(key);
    const counted = suppressed.get(type) ?? 0;
    suppressed.delete(type);
    return counted;
  };
}

/**
 * INVARIANT: the first event of a pinned definition does not depend on what is left. It is bounded all the same, because
 * the names of a lock file are not the upstream's to choose.
 */
function mayWrite(isPinned: boolean, isFirst: boolean, left: number): boolean {
  if (isPinned) return isFirst || left >= 1;
  return left >= (isFirst ? 1 : KEPT_FOR_FIRST + 1);
}

/** Whether the lock file has the name: nothing else says that the upstream did not invent it. */
function isInLock(event: DefinitionEvent): boolean {
  return event.type === 'pin.drift' ? event.before !== undefined : event.isPinned;
}

/** A definition and what happened to it; after another approval, a drift is another one. */
function keyOf(event: DefinitionEvent, isPinned: boolean): string {
  const { type, kind } = event;
  const name = isPinned ? event.name : event.name.slice(0, MAX_NAME_CHARACTERS);
  const what =
    type === 'pin.drift' ? `${event.change} ${event.before ?? ''}` : `${event.found} ${event.tier}`;
  return `${type} ${kind} ${what} ${name}`;
}
