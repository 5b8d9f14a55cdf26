// What the runs of the official conformance suite must find, and what they found and must not come back.

import type { Requirement } from './requirement.js';

export const conformanceRequirements: readonly Requirement[] = [
  {
    id: 'N-01',
    source: 'docs/reference/protocol.md §7',
    behaviour:
      'A check that passes directly and not through the gateway is found, whatever it became on the way.',
  },
  {
    id: 'N-02',
    source: 'docs/reference/protocol.md §7',
    behaviour:
      'What is not carried is listed check by check; an entry that is carried after all is a failure.',
  },
  {
    id: 'N-03',
    source: 'docs/reference/protocol.md §6 row 12; MCP 2026-07-28, transports, standard headers',
    behaviour:
      'A client of both eras may send its mirroring headers in a session; none of them reaches the upstream.',
  },
  {
    id: 'N-04',
    source: 'MCP 2025-11-25 tools; JSON Schema 2020-12 core §8.2.2',
    behaviour: 'A tool whose schema names a place by $anchor is listed, called and checked.',
  },
  {
    id: 'N-05',
    source: 'MCP 2026-07-28, versioning; server/discover',
    behaviour:
      'For an upstream of both eras, -32022 names the versions that server/discover names, and no other.',
  },
  {
    id: 'N-06',
    source: 'docs/reference/protocol.md §6 row 3 and §7; MCP 2025-11-25, transports',
    behaviour:
      'A notification is answered with 202 and nothing else, whatever 2xx the upstream gave: no scenario notices.',
  },
  {
    id: 'N-07',
    source: 'docs/reference/protocol.md §7',
    behaviour:
      'The outcome of every check, directly and through the gateway, is on record: one that vanishes, appears or changes is a failure.',
  },
];
