// Collects what detectors saw in one message: detector, place, count, action. Never what was found, and
// no name from the wire that could itself carry something.

import type { Finding } from '../policy/record.js';
import type { Json } from '../protocol/jsonrpc.js';
import type { Note } from './detectors/text-sanitizer.js';
import { findSensitive, type Wanted } from './detectors/text-sanitizer.js';
import type { OwnCredentials } from './detectors/upstream-credentials.js';

/** More findings than these are counted under the message as a whole. */
const MAX_FINDINGS = 64;
const PLAIN_STEP = /^[A-Za-z_$][A-Za-z_.$-]{0,31}$/;

export type FindingLog = {
  add(steps: readonly (string | number)[], note: Note | DropNote): void;
  list(): Finding[];
};

type DropNote = {
  readonly detector: string;
  readonly action: 'drop' | 'block';
  readonly count: number;
};

/** A log for one message in one direction. No path of it names one of our own credentials. */
export function createFindingLog(
  direction: Finding['direction'],
  own?: OwnCredentials | undefined,
): FindingLog {
  const found = new Map<string, Finding>();
  return {
    add(steps, { detector, action, count }) {
      const path = found.size < MAX_FINDINGS ? publicPointer(steps, own) : '';
      const key = `${detector} ${action} ${path}`;
      const known = found.get(key)?.count ?? 0;
      found.set(key, { detector, direction, path, count: known + count, action });
    },
    list: () => [...found.values()],
  };
}

/** A pointer whose steps are numbers and plain words that hold no secret; every other name is `*`. */
function publicPointer(
  steps: readonly (string | number)[],
  own: OwnCredentials | undefined,
): string {
  const wanted: Wanted = { secrets: true, pii: [], own };
  let pointer = '';
  for (const step of steps) {
    const isPlain =
      typeof step === 'number' ||
      (PLAIN_STEP.test(step) && findSensitive(step, wanted).length === 0);
    pointer += `/${isPlain ? step : '*'}`;
  }
  return pointer;
}

/** What a caller is told (docs/contract.md §6): `_meta["dev.sallyport/findings"]`. */
export function publicFindings(findings: readonly Finding[]): Json {
  return findings.map(({ detector, path, count, action }) => ({ detector, path, count, action }));
}
