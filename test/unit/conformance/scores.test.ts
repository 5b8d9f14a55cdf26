import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareRuns, countPassed, lostChecks, type Run } from '../../../conformance/scores.js';

function runOf(scenarios: Readonly<Record<string, Readonly<Record<string, number>>>>): Run {
  return new Map(Object.entries(scenarios).map(([name, checks]) => [name, new Map(Object.entries(checks))]));
}

const DIRECT = runOf({ listing: { shape: 1, wire: 2 }, eliciting: { asked: 1, answered: 1 } });

describe('the scores of conformance', () => {
  it('[N-01] finds a check that passed directly and less often through the gateway', () => {
    const through = runOf({ listing: { shape: 1, wire: 1 }, eliciting: { asked: 1, answered: 1 } });
    expect(compareRuns(DIRECT, through, {})).toEqual({ losses: ['listing: wire'], stale: [] });
  });

  it('[N-01] finds checks that were not made at all, and scenarios that were not run', () => {
    expect(compareRuns(DIRECT, runOf({ listing: { shape: 1, wire: 2 } }), {}).losses).toEqual([
      'eliciting: asked',
      'eliciting: answered',
    ]);
    expect(compareRuns(DIRECT, runOf({ listing: {}, eliciting: { asked: 1 } }), {}).losses).toEqual([
      'listing: shape',
      'listing: wire',
      'eliciting: answered',
    ]);
  });

  it('[N-01] does not count one check for another', () => {
    const through = runOf({ listing: { shape: 2, wire: 1 }, eliciting: { asked: 2 } });
    expect(compareRuns(DIRECT, through, {}).losses).toEqual(['listing: wire', 'eliciting: answered']);
  });

  it('[N-02] lets a listed loss be, and nothing beside it in its scenario', () => {
    const list = { eliciting: { reason: 'not carried', checks: ['answered'] } };
    const without = runOf({ listing: { shape: 1, wire: 2 }, eliciting: { asked: 1 } });
    expect(compareRuns(DIRECT, without, list)).toEqual({ losses: [], stale: [] });
    const worse = runOf({ listing: { shape: 1, wire: 2 } });
    expect(compareRuns(DIRECT, worse, list).losses).toEqual(['eliciting: asked']);
  });

  it('[N-02] finds an entry whose check is carried, and one that names nothing', () => {
    const list = {
      eliciting: { reason: 'not carried', checks: ['answered', 'no such check'] },
      gone: { reason: 'not carried', checks: [] },
    };
    expect(compareRuns(DIRECT, DIRECT, list)).toEqual({
      losses: [],
      stale: ['gone: no such scenario', 'eliciting: answered', 'eliciting: no such check'],
    });
  });

  it('[N-01, N-02] the list that tells all losses, and only it, leaves nothing to say', () => {
    const checks = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.integer({ min: 1, max: 3 }));
    const runs = fc.dictionary(fc.constantFrom('one', 'two'), checks).map(runOf);
    fc.assert(
      fc.property(runs, runs, (direct, through) => {
        const list = Object.fromEntries(
          [...direct].map(([name, passed]) => [name, { reason: 'r', checks: lostChecks(passed, through.get(name)) }]),
        );
        expect(compareRuns(direct, through, list)).toEqual({ losses: [], stale: [] });
        const { losses } = compareRuns(direct, through, {});
        const lost = [...direct].flatMap(([name, passed]) =>
          lostChecks(passed, through.get(name)).map((id) => `${name}: ${id}`),
        );
        expect(losses).toEqual(lost);
      }),
    );
  });

  it('[N-01] counts every time that a check passed', () => {
    expect(countPassed(DIRECT.get('listing'))).toBe(3);
    expect(countPassed(undefined)).toBe(0);
  });
});
