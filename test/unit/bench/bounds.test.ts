// The verdict of `npm run bench -- --hostile`: a run that was not measured, or in which nothing attacked, must
// not pass for one that was withstood.

import { describe, expect, it } from 'vitest';
import { ATTACKS } from '../../../bench/attacks.mjs';
import { brokenBounds, type HostileRun, p99Bound } from '../../../bench/bounds.mjs';

const good: HostileRun = {
  idleP99Ms: 5,
  p99Ms: 99,
  errors: 0,
  blockMs: 99,
  peakMb: 599,
  died: false,
  proof: 1,
};

describe('the bounds of a hostile run', () => {
  it('[PRF-10] are kept by a run below all of them', () => {
    expect(brokenBounds(good)).toEqual([]);
  });

  it.each<[string, Partial<HostileRun>]>([
    ['a p99 of 100 ms', { p99Ms: 100 }],
    ['a p99 of three times the idle one', { idleP99Ms: 50, p99Ms: 150 }],
    ['one error', { errors: 1 }],
    ['a block of 100 ms', { blockMs: 100 }],
    ['600 MB', { peakMb: 600 }],
    ['memory that could not be read', { peakMb: Number.NaN }],
    ['a p99 that could not be measured', { p99Ms: Number.NaN }],
    ['a gateway that died', { died: true }],
    ['an attack that did not take place', { proof: 0 }],
    ['a second caller with an error', { beside: { calls: 9, errors: 1 } }],
    ['a second caller that never had an answer', { beside: { calls: 0, errors: 0 } }],
  ])('[PRF-10] are broken by %s', (_what, change) => {
    expect(brokenBounds({ ...good, ...change })).toHaveLength(1);
  });

  it('[PRF-10] allow three times the idle p99 where that is more than 100 ms', () => {
    expect(p99Bound({ idleP99Ms: 50 })).toBe(150);
    expect(brokenBounds({ ...good, idleP99Ms: 50, p99Ms: 149 })).toEqual([]);
  });
});

const UPSTREAM_COUNTS = ['calls', 'lists', 'streams', 'events'];
const CALLER_COUNTS = ['answered', 'refused'];

describe('the attacks', () => {
  it('[PRF-10] have names of their own, a caller, and something that shows that they took place', () => {
    expect(new Set(ATTACKS.map(({ name }) => name)).size).toBe(ATTACKS.length);
    for (const attack of ATTACKS) {
      expect(attack.attack).toBeTypeOf('function');
      expect([...UPSTREAM_COUNTS, ...CALLER_COUNTS]).toContain(attack.proof);
    }
  });
});
