// Speed and memory: what may be asserted of structure, without a clock.
import type { Requirement } from './requirement.js';

export const performanceRequirements: readonly Requirement[] = [
  {
    id: 'PRF-01',
    source: 'architecture, inspection of answers; contract §6',
    behaviour:
      'The fast pass of the prefilter says what the reference says of every text; of JSON, one string is no reason to look at another.',
  },
  {
    id: 'PRF-02',
    source: 'performance: lists; mcp-spec §2',
    behaviour:
      'A translated page whose bytes came before is told again without being read, exactly as it would be told anew.',
  },
  {
    id: 'PRF-03',
    source: 'performance: streams',
    behaviour:
      'What a translated stream brings in one turn is one reading, in order, and its end comes behind all that was said.',
  },
  {
    id: 'PRF-04',
    source: 'MCP 2026-07-28, cancellation; performance: single steps',
    behaviour: 'That a client left is told once, to whoever still listens, without an AbortSignal.',
  },
  {
    id: 'PRF-05',
    source: 'contract §8; performance: group commit',
    behaviour:
      'Decisions that wait at the same time share one synced write and one promise; texts that events share are said exactly.',
  },
  {
    id: 'PRF-06',
    source: 'performance: idle streams',
    behaviour: 'Idle streams that were left keep no timer and no place.',
  },
  {
    id: 'PRF-07',
    source: 'performance, what follows 3 and 10; contract §6',
    behaviour:
      'What content inspection does grows with the length of a text, not with its square, whatever the text.',
  },
  {
    id: 'PRF-08',
    source: 'performance, what follows 10; architecture, inspection of answers',
    behaviour:
      'Long texts that are not surely clean are inspected beside the event loop, with the same outcome; where that fails nothing passes.',
  },
  {
    id: 'PRF-09',
    source: 'performance: comparing two builds',
    behaviour:
      'Two builds are compared by the median of paired ratios and an interval that holds it in 95 of 100 runs; one that is too wide is no result.',
  },
  {
    id: 'PRF-10',
    source: 'performance: one hostile upstream',
    behaviour:
      'A run under attack is judged by the p99 and the errors of another caller, the longest block of the loop and the peak of memory; one that proves nothing is broken.',
  },
  {
    id: 'PRF-11',
    source: 'decision 0022',
    behaviour:
      'Whatever one server sends takes the event loop in short turns: events, large messages, listings and closer looks beyond a budget make nobody else wait.',
  },
  {
    id: 'PRF-12',
    source: 'decision 0022',
    behaviour:
      'Values of a message, bytes of a stream, of a minute and of all answers that are kept are bounded, for each upstream and for all.',
  },
];
