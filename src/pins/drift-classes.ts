// Classifies how definitions differ from their pins. Short ones are compared at once; all others on another thread,
// because a hostile definition of a megabyte takes a second. Until then, and where that fails, a difference is
// `unclassified`, and as visible as any other. docs/reference/definitions.md#drift.

import type { Json } from '../protocol/jsonrpc.js';
import { BoundedMap } from '../state/bounds.js';
import type { Change } from './comparison.js';
import { formOf } from './digest.js';
import type { Observed } from './last-seen.js';
import type { Lock } from './lock.js';
import { classifyPair, type DefinitionPair, type ItemDifference, walkDifferences } from './lock-differences.js';

/**
 * Classifies on another thread; `text` is JSON of a list of `DefinitionPair`. `undefined` if that did not finish. Never
 * rejects.
 */
type ClassifyPairs = (
  task: 'classes',
  text: string,
  upstream: string,
) => Promise<readonly (readonly Change[])[] | undefined>;

export type DriftClasses = {
  /** Every difference, those whose classes are not known as `unclassified`. */
  find(lock: Lock | undefined, observed: Observed | undefined): readonly ItemDifference[];
  /** The same differences in steps, for slices of the event loop. */
  walk(lock: Lock | undefined, observed: Observed | undefined): Generator<readonly ItemDifference[], void>;
  /**
   * The same differences with their classes, as far as they can be found; at once where too many classifications of the
   * upstream are under way. Never rejects.
   */
  classify(upstream: string, found: readonly ItemDifference[]): Promise<readonly ItemDifference[]>;
  /** Differs after each change of what is known. */
  revision(): number;
};

/** Pairs of forms; more than one listing has. */
const MAX_KNOWN = 20_000;
/** Of all pairs that are compared at once: hostile text of this length takes some 20 ms. */
const AT_ONCE_CHARS = 16 * 1024;
/** What it costs to find that a pair is too long. */
const MEASURED_CHARS = 256;
/** Of the pairs in one job. */
const PART_CHARS = 64 * 1024;
/** What could not be classified is tried again after this time. */
const RETRY_AFTER_MS = 60_000;
/**
 * Classifications of one upstream under way: each holds the definitions of a listing, and delays the records of the
 * next.
 */
const MAX_UNDER_WAY = 3;

type OpenDifference = { readonly difference: ItemDifference; readonly pair: DefinitionPair };

/** Whether the difference has classes that are not known yet. */
export function isOpen(difference: ItemDifference): boolean {
  return openOf(difference) !== undefined;
}

function openOf(difference: ItemDifference): OpenDifference | undefined {
  const { kind, change, beforeDefinition: before, afterDefinition: after } = difference;
  if (change !== 'unclassified' || kind === 'server') return undefined;
  if (before === undefined || after === undefined) return undefined;
  return { difference, pair: { kind, before, after } };
}

export function createDriftClasses(
  classifyPairs: ClassifyPairs,
  nowMs: () => number = () => performance.now(),
): DriftClasses {
  const known = new BoundedMap<string, readonly Change[]>(MAX_KNOWN);
  const failedAtMs = new BoundedMap<string, number>(MAX_KNOWN);
  /** Of each upstream how many are under way, and the last of them: the next one finds what it has found. */
  const queues = new Map<string, { underWay: number; last: Promise<void> }>();
  let revision = 0;

  function isDue({ difference }: OpenDifference): boolean {
    const key = keyOfDifference(difference);
    const failed = failedAtMs.get(key) ?? Number.NEGATIVE_INFINITY;
    return !known.has(key) && nowMs() - failed >= RETRY_AFTER_MS;
  }

  async function classifyPart(upstream: string, part: readonly OpenDifference[]): Promise<void> {
    const text = JSON.stringify(part.map(({ pair }) => pair));
    const outcome = await classifyPairs('classes', text, upstream);
    for (const [index, { difference }] of part.entries()) {
      const key = keyOfDifference(difference);
      const changes = outcome?.[index];
      if (changes === undefined) failedAtMs.set(key, nowMs());
      else known.set(key, changes);
    }
    revision += 1;
  }

  async function classifyAll(upstream: string, open: readonly OpenDifference[]): Promise<void> {
    for (const part of divide(open.filter(isDue))) await classifyPart(upstream, part);
  }

  function walk(lock: Lock | undefined, observed: Observed | undefined): Generator<readonly ItemDifference[], void> {
    let left = AT_ONCE_CHARS;
    return walkDifferences(lock, observed, (pair, before, after) => {
      const key = keyOf(before, after, pair.after);
      const changes = known.get(key);
      if (changes !== undefined) return changes;
      if (left <= 0) return ['unclassified'];
      const chars = measure(pair.before, left) + measure(pair.after, left);
      const isShort = chars <= left;
      left -= isShort ? chars : MEASURED_CHARS;
      if (!isShort) return ['unclassified'];
      const found = classifyPair(pair);
      known.set(key, found);
      return found;
    });
  }

  return {
    walk,
    find: (lock, observed) => [...walk(lock, observed)].flat(),
    async classify(upstream, found) {
      const open = found.flatMap((difference) => openOf(difference) ?? []);
      const queue = queues.get(upstream) ?? { underWay: 0, last: Promise.resolve() };
      queues.set(upstream, queue);
      if (open.length > 0 && queue.underWay < MAX_UNDER_WAY) {
        queue.underWay += 1;
        const classified = queue.last.then(() => classifyAll(upstream, open)).catch(() => undefined);
        queue.last = classified.then(() => {
          queue.underWay -= 1;
        });
        await queue.last;
      }
      return found.map((difference) => {
        const changes = isOpen(difference) ? known.get(keyOfDifference(difference)) : undefined;
        if (changes === undefined) return difference;
        // The digests differ but no member does.
        const [change = 'notation-only'] = changes;
        return { ...difference, change, changes: changes.length > 0 ? changes : [change] };
      });
    },
    revision: () => revision,
  };
}

/** Names a pair by its digests; a form without one by its content. */
function keyOf(
  before: string | undefined,
  after: string | undefined,
  definition: DefinitionPair['after'] | undefined,
): string {
  return `${before} ${after && formOf({ digest: after, definition })}`;
}

function keyOfDifference({ before, after, afterDefinition }: ItemDifference): string {
  return keyOf(before, after, afterDefinition);
}

/** Pairs that are compared in one job, so that one that cannot be compared keeps few others from it. */
function divide(open: readonly OpenDifference[]): readonly (readonly OpenDifference[])[] {
  const parts: OpenDifference[][] = [];
  let chars = Number.POSITIVE_INFINITY;
  for (const one of open) {
    const more = measure(one.pair.before, PART_CHARS) + measure(one.pair.after, PART_CHARS);
    if (chars + more > PART_CHARS) {
      parts.push([]);
      chars = 0;
    }
    parts.at(-1)?.push(one);
    chars += more;
  }
  return parts;
}

/** About the length of a value as JSON, or more than `max`: no more of it is read. */
export function measure(value: Json, max: number): number {
  const open: Json[] = [value];
  let chars = 0;
  for (let next = open.pop(); next !== undefined && chars <= max; next = open.pop()) {
    chars += typeof next === 'string' ? next.length : VALUE_CHARS;
    if (typeof next !== 'object' || next === null) continue;
    for (const [name, member] of Object.entries(next)) {
      chars += name.length;
      open.push(member);
      if (chars > max) break;
    }
  }
  return chars;
}

const VALUE_CHARS = 8;
