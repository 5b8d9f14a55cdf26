// What holds where a client and its upstream speak different eras.

import type { Requirement } from './requirement.js';

export const translationRequirements: readonly Requirement[] = [
  {
    id: 'Y-01',
    source: 'MCP 2026-07-28, versioning; docs/reference/protocol.md §2.3 and §2.4',
    behaviour: 'A client of each era uses an upstream of each era, and gets the forms of its own.',
  },
  {
    id: 'Y-02',
    source: 'docs/contract.md §4 to §7',
    behaviour: 'Every control holds over every pair of client era and upstream era.',
  },
  {
    id: 'Y-03',
    source: 'MCP 2025-11-25; docs/reference/protocol.md §2.3',
    behaviour:
      "Before a stateless upstream a session is the gateway's own: what only sessions have is answered here.",
  },
  {
    id: 'Y-04',
    source: 'MCP 2026-07-28; docs/reference/protocol.md §2.4',
    behaviour:
      'Sessions with an upstream are pooled by caller, bounded, ended when idle, and opened anew when lost.',
  },
  {
    id: 'Y-05',
    source: 'MCP 2026-07-28, multi-round-trip requests; MCP 2025-11-25, elicitation',
    behaviour:
      'Questions of servers cross between the eras, and answers come back to their caller alone.',
  },
  {
    id: 'Y-06',
    source: 'MCP 2025-11-25 and 2026-07-28, cancellation',
    behaviour:
      'Cancelling means in each era what it means there: a notice cancels for sessions, leaving for the stateless.',
  },
  {
    id: 'Y-07',
    source: 'docs/reference/protocol.md §2.3 and §2.4',
    behaviour: 'What cannot be carried to the other era is refused with a message that says why.',
  },
  {
    id: 'Y-08',
    source: 'MCP 2026-07-28, custom headers and value encoding',
    behaviour: 'Headers that mirror a body are written so that a reader gets the very values back.',
  },
  {
    id: 'Y-09',
    source: 'MCP 2026-07-28, subscriptions; MCP 2025-11-25, resources (subscriptions)',
    behaviour:
      'Notices cross: the stream of a session is a subscription, and a subscription a session.',
  },
  {
    id: 'Y-10',
    source: 'docs/contract.md §10',
    behaviour:
      'A session before a stateless upstream is served by any replica: requests of every kind, its stream and its subscriptions there.',
  },
  {
    id: 'Y-11',
    source: 'docs/contract.md §6 and §10',
    behaviour:
      'What another replica runs, and cannot be handed over, is refused with 409 and a reason: no silence, no false success, no lost session.',
  },
  {
    id: 'Y-12',
    source: 'docs/contract.md §10',
    behaviour:
      'With a store the log level, the subscriptions, the cancellations and the answers of such a session hold at every replica; without one each keeps its own.',
  },
];
