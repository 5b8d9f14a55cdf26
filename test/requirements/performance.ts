// Speed and memory: what may be asserted of structure, without a clock.
import type { Requirement } from './requirement.js';

export const performanceRequirements: readonly Requirement[] = [
  {
    id: 'PRF-01',
    source: 'architecture, inspection of answers; contract §6',
    behaviour:
      'The fast pass of the prefilter says what the reference says of every text; of JSON, one string is no reason to look at another.',
  },
];
