// The history of flows: which caller received a result with which label last, and by which decision. In memory it is
// bounded, and full rather than forgetful: a result that cannot be recorded is withheld. In the store, a mark is sealed
// under a keyed hash of its caller and label. docs/reference/flows.md; docs/reference/state.md.

import type { FlowHistory, FlowStore } from '../policy/information-flow.js';
import type { StoreEpoch } from './epoch.js';
import { sealedToken } from './sealed-token.js';
import type { StatePorts, StoreLink } from './store.js';

/** A caller has one mark for each label; each takes about 200 bytes. */
const MAX_MARKS = 100_000;
/** Time between two sweeps of a full table. */
const SWEEP_EVERY_MS = 1_000;

function keyOf(history: string, label: string): string {
  return JSON.stringify([history, label]);
}

/** Milliseconds since the epoch. */
type Mark = { readonly decision: string; readonly atMs: number };
type Found = readonly [label: string, mark: Mark | undefined];

/** The newest mark of each label. */
function newestOf(found: readonly Found[], nowMs: number): FlowHistory {
  const newest = new Map<string, Mark>();
  for (const [label, mark] of found) {
    const known = newest.get(label);
    if (mark !== undefined && (known === undefined || known.atMs < mark.atMs)) newest.set(label, mark);
  }
  return new Map([...newest].map(([label, { decision, atMs }]) => [label, { decision, ageMs: nowMs - atMs }]));
}

function pairsOf(
  histories: readonly string[],
  labels: readonly string[],
): readonly (readonly [history: string, label: string])[] {
  return histories.flatMap((history) => labels.map((label) => [history, label] as const));
}

/** The history of one replica. `now` is in milliseconds since the epoch. */
export function createMemoryFlows(now: () => number, maxMarks = MAX_MARKS): FlowStore {
  const marks = new Map<string, Mark & { readonly untilMs: number }>();
  let sweptAtMs = Number.NEGATIVE_INFINITY;

  function hasCapacity(count: number): boolean {
    if (marks.size + count <= maxMarks) return true;
    const nowMs = now();
    if (nowMs - sweptAtMs < SWEEP_EVERY_MS) return false;
    sweptAtMs = nowMs;
    for (const [key, { untilMs }] of marks) if (untilMs <= nowMs) marks.delete(key);
    return marks.size + count <= maxMarks;
  }

  return {
    record(histories, labels, decision, keepMs) {
      const atMs = now();
      const keys = pairsOf(histories, labels).map((pair) => keyOf(...pair));
      if (!hasCapacity(keys.filter((key) => !marks.has(key)).length)) return false;
      for (const key of keys) marks.set(key, { decision, atMs, untilMs: atMs + keepMs });
      return true;
    },
    read: (histories, labels) =>
      newestOf(
        pairsOf(histories, labels).map(([history, label]) => [label, marks.get(keyOf(history, label))]),
        now(),
      ),
  };
}

/** A mark opens for longer than it counts, whatever the clocks of two replicas say. */
const OPENS_FOR_MS = 60 * 60 * 1_000;
const STORED_MARK = sealedToken<Mark>('flow-mark');

type SharedFlowsPorts = StatePorts & {
  readonly link: Pick<StoreLink, 'setFlowMarks' | 'flowMarks'>;
  readonly epoch: Pick<StoreEpoch, 'lostForMs'>;
  /** False while the store is known not to respond: then no request waits for it. */
  readonly isReachable: () => boolean;
  readonly onError: (error: unknown) => void;
};

/**
 * The history that all replicas share. Without the store nothing is recorded or read, because a history of one replica
 * would not show what the caller has received at another.
 */
export function createSharedFlows(ports: SharedFlowsPorts): FlowStore {
  const { ring, now, link, epoch, isReachable, onError } = ports;

  function openMarks(
    wanted: readonly { readonly hash: string; readonly label: string }[],
    sealed: readonly (string | undefined)[],
  ): readonly Found[] | undefined {
    const found: Found[] = [];
    for (const [index, { hash, label }] of wanted.entries()) {
      const text = sealed[index];
      if (text === undefined) continue;
      const mark = STORED_MARK.open(ring, [hash], text, now());
      // Not written by a gateway with this key: nobody can tell what it would say.
      if (mark === undefined) return undefined;
      found.push([label, mark]);
    }
    return found;
  }

  return {
    async record(histories, labels, decision, keepMs) {
      if (!isReachable()) return false;
      const mark = { decision, atMs: now() };
      const marks = pairsOf(histories, labels).map((pair) => {
        const hash = ring.hmac('flow', keyOf(...pair));
        const sealed = STORED_MARK.seal(ring, [hash], mark, now() + keepMs + OPENS_FOR_MS);
        return { hash, sealed };
      });
      try {
        await link.setFlowMarks(marks, keepMs);
        return true;
      } catch (error) {
        onError(error);
        return false;
      }
    },
    async read(histories, labels, withinMs) {
      if (!isReachable()) return 'unavailable';
      // A replica whose keys are in another order writes under another hash.
      const wanted = pairsOf(histories, labels).flatMap(([history, label]) =>
        ring.hmacAll('flow', keyOf(history, label)).map((hash) => ({ hash, label })),
      );
      try {
        const { marks: sealed, epoch: id } = await link.flowMarks(wanted.map(({ hash }) => hash));
        const lostForMs = epoch.lostForMs(id, withinMs);
        if (lostForMs > 0) return { lostForMs };
        const found = openMarks(wanted, sealed);
        return found === undefined ? 'unavailable' : newestOf(found, now());
      } catch (error) {
        onError(error);
        return 'unavailable';
      }
    },
  };
}
