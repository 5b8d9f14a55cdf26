import { describe, expect, it } from 'vitest';
import { findDifferences, type RunOutcomes, recordRevision, renderOutcomes } from '../../../conformance/expected.js';
import { passedOf } from '../../../conformance/scores.js';

type Statuses = Readonly<Record<string, number>>;

function runOf(scenarios: Readonly<Record<string, Readonly<Record<string, Statuses>>>>): RunOutcomes {
  const checksOf = (checks: Readonly<Record<string, Statuses>>) =>
    new Map(Object.entries(checks).map(([id, statuses]) => [id, new Map(Object.entries(statuses))]));
  return new Map(Object.entries(scenarios).map(([name, checks]) => [name, checksOf(checks)]));
}

const DIRECT = runOf({
  listing: { shape: { SUCCESS: 2 }, wire: { WARNING: 1, SUCCESS: 1 } },
  eliciting: {},
});
const RECORDED = recordRevision(DIRECT, DIRECT);

describe('[N-07] the record of outcomes', () => {
  it('has a line for each check, and reads back as it was written', () => {
    const text = renderOutcomes({ '2025-11-25': RECORDED });
    expect(text).toContain('"wire": {"direct":"1 SUCCESS, 1 WARNING","gateway":"1 SUCCESS, 1 WARNING"}');
    expect(JSON.parse(text)).toEqual({ '2025-11-25': RECORDED });
    expect(findDifferences(JSON.parse(text)['2025-11-25'], RECORDED)).toEqual([]);
  });

  it('differs by a check that vanishes, appears or changes, on either way', () => {
    const through = runOf({ listing: { shape: { SUCCESS: 1 }, more: { INFO: 3 } }, eliciting: {} });
    expect(findDifferences(RECORDED, recordRevision(DIRECT, through))).toEqual([
      'listing: more: expected no such check, seen none directly and INFO through Sallyport',
      'listing: shape: expected 2 SUCCESS directly and 2 SUCCESS through Sallyport, seen 2 SUCCESS directly and 1 SUCCESS through Sallyport',
      'listing: wire: expected 1 SUCCESS, 1 WARNING directly and 1 SUCCESS, 1 WARNING through Sallyport, seen 1 SUCCESS, 1 WARNING directly and none through Sallyport',
    ]);
  });

  it('differs by a scenario that was not run, and by a new one', () => {
    const other = runOf({ eliciting: {}, telling: {} });
    expect(findDifferences(RECORDED, recordRevision(other, other))).toEqual([
      'listing: recorded, and not run',
      'telling: not recorded',
    ]);
  });

  it('counts as passed what succeeded alone', () => {
    expect([...passedOf(DIRECT)].map(([name, passed]) => [name, Object.fromEntries(passed)])).toEqual([
      ['listing', { shape: 2, wire: 1 }],
      ['eliciting', {}],
    ]);
  });
});
