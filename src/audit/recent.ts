// The last decisions, for the console: the texts of the audit events as they are written, kept in memory within bounds
// and read only when somebody looks. What the audit log redacts is redacted here, and what it omits is not here.

import { isObject } from '../protocol/jsonrpc.js';
import { type AuditRecord, valueAt } from './chain.js';
import type { EventText } from './event.js';
import { createEventJoiner } from './query.js';

/** Decisions about verified callers that are shown. */
export const MAX_RECENT = 1_000;
/** The others, apart: anybody can cause them, and they would push out the first. */
export const MAX_RECENT_ANONYMOUS = 100;
/** Of the texts of all events together. */
const MAX_CHARACTERS = 8 * 1024 * 1024;
/** A decision and an outcome. */
const EVENTS_PER_REQUEST = 2;

export type RecentDecisions = {
  /** Keeps the event of a request. */
  note(event: EventText, isVerified: boolean): void;
  /** The decisions, completed by their outcomes as far as they have one, newest first. */
  list(): readonly AuditRecord[];
};

type Ring = { note(event: EventText): void; events(): readonly EventText[] };

/** Keeps the last `max` events, fewer where they are long. The oldest is overwritten, so that nothing is moved. */
function createRing(max: number, maxCharacters: number): Ring {
  const kept: (EventText | undefined)[] = new Array(max).fill(undefined);
  let next = 0;
  let oldest = 0;
  let characters = 0;

  function forgetOldest(): void {
    const forgotten = kept[oldest % max];
    characters -= lengthOf(forgotten);
    kept[oldest % max] = undefined;
    oldest += 1;
  }

  return {
    note(event) {
      if (next - oldest === max) forgetOldest();
      kept[next % max] = event;
      next += 1;
      characters += lengthOf(event);
      while (characters > maxCharacters) forgetOldest();
    },
    events: () =>
      Array.from({ length: next - oldest }, (_, index) => kept[(oldest + index) % max]).filter(
        (event) => event !== undefined,
      ),
  };
}

function lengthOf(event: EventText | undefined): number {
  return event === undefined ? 0 : event.before.length + event.after.length;
}

export function createRecentDecisions(): RecentDecisions {
  const share = MAX_RECENT_ANONYMOUS / (MAX_RECENT + MAX_RECENT_ANONYMOUS);
  const verified = createRing(MAX_RECENT * EVENTS_PER_REQUEST, MAX_CHARACTERS * (1 - share));
  const others = createRing(MAX_RECENT_ANONYMOUS * EVENTS_PER_REQUEST, MAX_CHARACTERS * share);
  return {
    note: (event, isVerified) => (isVerified ? verified : others).note(event),
    list: () =>
      [...decisionsOf(verified.events()), ...decisionsOf(others.events())]
        .reverse()
        .sort((one, other) => compareTexts(timeOf(other), timeOf(one))),
  };
}

/** One record for each decision, in order of the first event that is kept of it. */
function decisionsOf(events: readonly EventText[]): readonly AuditRecord[] {
  const join = createEventJoiner();
  const byId = new Map<unknown, AuditRecord>();
  for (const { before, after } of events) {
    // The sink that writes a line adds the epoch and the chain.
    const event: unknown = JSON.parse(`${before}${after}}`, (name, value: unknown) =>
      name === 'epoch' && value === '' ? undefined : value,
    );
    if (!isObject(event)) continue;
    const { record } = join(event, before.length + after.length);
    const id = valueAt(record, 'decision', 'id');
    // The time shown is that of the decision.
    const time = byId.get(id)?.['time'] ?? record['time'];
    byId.set(id, { ...record, time });
  }
  return [...byId.values()];
}

/** RFC 3339 with equally many digits, which sorts as text. */
function timeOf({ time }: AuditRecord): string {
  return String(time);
}

function compareTexts(one: string, other: string): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}
