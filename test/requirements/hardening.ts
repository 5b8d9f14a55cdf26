// What holds against those who wear the gateway down, at its edge and behind it.

import type { Requirement } from './requirement.js';

export const hardeningRequirements: readonly Requirement[] = [
  {
    id: 'H-01',
    source: 'docs/reference/attacks.md case 26; docs/contract.md §3 (limits)',
    behaviour: 'Requests of a server are answered a few at a time, and hold up no call.',
  },
  {
    id: 'H-02',
    source: 'docs/reference/attacks.md case 10',
    behaviour: 'Bodies that are on their way for ever hold up no caller.',
  },
  {
    id: 'H-03',
    source: 'docs/contract.md §6',
    behaviour:
      "Every refusal of the data listener is the gateway's own, in its order, and recorded.",
  },
  {
    id: 'H-04',
    source: 'docs/contract.md §3; docs/reference/attacks.md case 42',
    behaviour: 'A stream ends with the rule, the session or the token that it rests on.',
  },
  {
    id: 'H-05',
    source: 'docs/contract.md §3 (limits)',
    behaviour:
      'What an exchange or a cache holds is bounded, whatever the upstream says, and so is its time.',
  },
  {
    id: 'H-06',
    source: 'docs/contract.md §3',
    behaviour: 'Where nobody authenticates, a request that any proxy passed on is refused.',
  },
  {
    id: 'H-07',
    source: 'docs/contract.md §6; docs/reference/attacks.md case 38',
    behaviour:
      'Only callers who are known take places of an upstream, and few wait to become known.',
  },
  {
    id: 'H-08',
    source: 'docs/contract.md §3',
    behaviour: 'Reloads follow one another: an older reading is never applied over a newer one.',
  },
  {
    id: 'H-09',
    source: 'docs/contract.md §3 (limits)',
    behaviour:
      'What is remembered for callers is shared by caller: who fills a memory forgets its own first.',
  },
];
