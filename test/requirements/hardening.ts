// What holds against those who wear the gateway down, at its edge and behind it.

import type { Requirement } from './requirement.js';

export const hardeningRequirements: readonly Requirement[] = [
  {
    id: 'H-01',
    source: 'attacks 26; contract §3 (limits)',
    behaviour: 'Requests of a server are answered a few at a time, and hold up no call.',
  },
];
