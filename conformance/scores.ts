// Which checks of a scenario passed on two ways to the same server, and which of them were lost on the
// second. Pure. A loss is a check that passed directly and did not pass through the gateway, whatever
// else it became: a failure, a warning, a skip, or nothing at all, because an earlier step had failed.

import type { RunOutcomes } from './expected.ts';

/** How often each check of a scenario passed, by its id. */
export type Passed = ReadonlyMap<string, number>;

/** Every scenario of one run. */
export type Run = ReadonlyMap<string, Passed>;

/** Checks that are known to be lost, by scenario, with the reason for each scenario. */
export type NotCarried = {
  readonly [scenario: string]: { readonly reason: string; readonly checks: readonly string[] };
};

export type Comparison = {
  /** Lost and not listed: bugs. */
  readonly losses: readonly string[];
  /** Listed and not lost: the list has to shrink. */
  readonly stale: readonly string[];
};

const PASSED = 'SUCCESS';

/** The checks of a run that passed. */
export function passedOf(run: RunOutcomes): Run {
  const passed = [...run].map(([scenario, checks]) => {
    const counts = [...checks].flatMap(([id, statuses]) => {
      const count = statuses.get(PASSED);
      return count === undefined ? [] : [[id, count] as const];
    });
    return [scenario, new Map(counts)] as const;
  });
  return new Map(passed);
}

/** How many checks of a scenario passed. */
export function countPassed(passed: Passed | undefined): number {
  return [...(passed?.values() ?? [])].reduce((sum, count) => sum + count, 0);
}

/** The ids of the checks that passed more often directly than through the gateway. */
export function lostChecks(direct: Passed, through: Passed | undefined): readonly string[] {
  return [...direct].filter(([id, count]) => (through?.get(id) ?? 0) < count).map(([id]) => id);
}

/** Compares two runs under the list of what is not carried. Entries read `scenario: check`. */
export function compareRuns(direct: Run, through: Run, notCarried: NotCarried): Comparison {
  const losses: string[] = [];
  const stale: string[] = [];
  for (const scenario of Object.keys(notCarried)) {
    if (!direct.has(scenario)) stale.push(`${scenario}: no such scenario`);
  }
  for (const [scenario, passed] of direct) {
    const listed = notCarried[scenario]?.checks ?? [];
    const lost = lostChecks(passed, through.get(scenario));
    losses.push(...lost.filter((id) => !listed.includes(id)).map((id) => `${scenario}: ${id}`));
    stale.push(...listed.filter((id) => !lost.includes(id)).map((id) => `${scenario}: ${id}`));
  }
  return { losses, stale };
}
