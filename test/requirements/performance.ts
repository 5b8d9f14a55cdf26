// Speed and memory: what may be asserted of structure, without a clock.
import type { Requirement } from './requirement.js';

export const performanceRequirements: readonly Requirement[] = [
  {
    id: 'PRF-01',
    source: 'docs/decisions/0013-places-before-looks.md; docs/contract.md §6',
    behaviour:
      'The fast pass of the prefilter says what the reference says of every text; of JSON, one string is no reason to look at another.',
  },
  {
    id: 'PRF-02',
    source: 'docs/reference/performance.md rule 4; docs/reference/protocol.md §2',
    behaviour:
      'A translated page whose bytes came before is told again without being read, exactly as it would be told anew.',
  },
  {
    id: 'PRF-03',
    source: 'docs/reference/performance.md, "How it is kept low"',
    behaviour:
      'What a translated stream brings in one turn is one reading, in order, and its end comes behind all that was said.',
  },
  {
    id: 'PRF-04',
    source: 'MCP 2026-07-28, cancellation; docs/reference/performance.md, "How it is kept low"',
    behaviour: 'That a client left is told once, to whoever still listens, without an AbortSignal.',
  },
  {
    id: 'PRF-05',
    source: 'docs/contract.md §8; docs/reference/performance.md rule 6',
    behaviour:
      'Decisions that wait at the same time share one synced write and one promise; texts that events share are said exactly.',
  },
  {
    id: 'PRF-06',
    source: 'docs/reference/performance.md rule 9',
    behaviour: 'Idle streams that were left keep no timer and no place.',
  },
  {
    id: 'PRF-07',
    source: 'docs/reference/performance.md rules 3 and 10; docs/contract.md §6',
    behaviour:
      'What content inspection does grows with the length of a text, not with its square, whatever the text.',
  },
  {
    id: 'PRF-08',
    source:
      'docs/reference/performance.md rule 10; docs/decisions/0021-long-texts-beside-the-loop.md',
    behaviour:
      'Long texts that are not surely clean are inspected beside the event loop, with the same outcome; where that fails nothing passes.',
  },
  {
    id: 'PRF-09',
    source: 'docs/reference/performance.md',
    behaviour:
      'Two builds are compared by the median of paired ratios and an interval that holds it in 95 of 100 runs; one that is too wide is no result.',
  },
  {
    id: 'PRF-10',
    source: 'docs/reference/performance.md, "One hostile server"',
    behaviour:
      'A run under attack is judged by the p99 and the errors of another caller, the longest block of the loop and the peak of memory; one that proves nothing is broken.',
  },
  {
    id: 'PRF-11',
    source: 'docs/decisions/0022-bounds-for-one-server.md',
    behaviour:
      'Whatever one server sends takes the event loop in short turns: events, large messages, listings and closer looks beyond a budget make nobody else wait.',
  },
  {
    id: 'PRF-12',
    source: 'docs/decisions/0022-bounds-for-one-server.md',
    behaviour:
      'Values of a message, bytes of a stream, of a minute and of all answers that are kept are bounded, for each upstream and for all.',
  },
];
