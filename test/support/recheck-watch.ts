// Runs with every test file: what is inspected again after an edit must find nothing new, because the first inspection
// reads the same. A test that provokes such a disagreement takes it with `takeDisagreements`.

import { subscribe } from 'node:diagnostics_channel';
import { afterAll, afterEach, expect } from 'vitest';

/** The name of the channel on which src/inspection/responses.ts publishes. */
const CHANNEL = 'sallyport:inspection.disagreement';

// Files share a process, and each of them runs this file anew.
const shared = globalThis as { disagreements?: string[] };
shared.disagreements ??= startWatch();
const { disagreements } = shared;

function startWatch(): string[] {
  const seen: string[] = [];
  subscribe(CHANNEL, (detectors) => {
    seen.push(...(detectors as string[]));
  });
  return seen;
}

/** The disagreements since the last call or test, which the caller expected. */
export function takeDisagreements(): readonly string[] {
  return disagreements.splice(0);
}

function expectNone(): void {
  expect(takeDisagreements()).toEqual([]);
}

afterEach(expectNone);
afterAll(expectNone);
