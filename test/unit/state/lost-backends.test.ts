import { describe, expect, it } from 'vitest';
import { createLostBackends } from '../../../src/state/aggregates.js';

describe('[MRG-09] parts of sessions that were lost', () => {
  it('are told a few times a minute, for each caller and member apart', () => {
    let now = 0;
    const lost = createLostBackends(() => now);
    for (let reported = 0; reported < 3; reported += 1) {
      expect(lost.isFrequent('a')).toBe(false);
      lost.note('a');
    }
    expect([lost.isFrequent('a'), lost.isFrequent('b')]).toEqual([true, false]);
    now = 60_000;
    expect(lost.isFrequent('a')).toBe(false);
  });
});
