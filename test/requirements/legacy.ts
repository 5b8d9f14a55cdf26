// What holds where the transport of 2024-11-05 meets later eras, and of the bounds of exchanges and streams.

import type { Requirement } from './requirement.js';

const TRANSPORT = 'MCP 2024-11-05, transports, HTTP with SSE';

export const legacyRequirements: readonly Requirement[] = [
  {
    id: 'LEG-01',
    source: `${TRANSPORT}; docs/contract.md §2; docs/reference/protocol.md §2`,
    behaviour:
      'A client of HTTP+SSE uses upstreams of sessions and of the stateless era: its answers come on its channel, in its own form.',
  },
  {
    id: 'LEG-02',
    source: `${TRANSPORT}; docs/reference/protocol.md §2`,
    behaviour:
      'Clients of sessions and of the stateless era use an upstream of HTTP+SSE, each in its own form.',
  },
  {
    id: 'LEG-03',
    source:
      'MCP 2025-11-25, transports (disconnection, resumability); docs/reference/protocol.md §6, rows 20 and 35',
    behaviour:
      'Over a channel too a session’s client that leaves cancels nothing, and its answer can be resumed, by itself alone.',
  },
  {
    id: 'LEG-04',
    source: 'MCP 2025-11-25, cancellation, listening for messages; JSON-RPC 2.0 §4',
    behaviour:
      'Cancellations, notices and answers that nobody asked for go where they belong, and an id is under way once.',
  },
  {
    id: 'LEG-05',
    source: 'MCP 2024-11-05, sampling and roots; docs/contract.md §4',
    behaviour:
      'Questions cross where both revisions have them and it is clear whose they are; all others are refused to the server.',
  },
  {
    id: 'LEG-06',
    source: 'docs/contract.md §10',
    behaviour:
      'A channel, its session and its calls end together, also when nobody uses them; nothing of them stays, here or upstream.',
  },
  {
    id: 'LEG-07',
    source: 'MCP 2026-07-28, cancellation; docs/reference/protocol.md §6, row 19',
    behaviour: 'A stateless client that leaves cancels its call at an upstream of HTTP+SSE.',
  },
  {
    id: 'LEG-08',
    source: 'docs/contract.md §8 and §10; docs/reference/protocol.md §5 B5',
    behaviour:
      'A session of a channel is none elsewhere, on no other replica, and its exchanges are recorded in its own era.',
  },
  {
    id: 'LEG-09',
    source: 'MCP 2025-11-25, transports, resumability',
    behaviour:
      'What a channel says to an exchange is told once and in order over any breaks, within bounds that are given back.',
  },
  {
    id: 'LEG-10',
    source: 'MCP 2025-11-25, lifecycle (timeouts); docs/reference/protocol.md §6, row 64',
    behaviour:
      'An exchange ends after `limits.exchangeMax` whatever it is told, its upstream request with it; streams of sessions do not.',
  },
  {
    id: 'LEG-11',
    source: 'WHATWG HTML §9.2.7; MCP 2026-07-28, transports',
    behaviour: 'Every open stream that is silent for `limits.keepAlive` says that it lives.',
  },
  {
    id: 'LEG-12',
    source: 'MCP 2025-11-25, transports; RFC 9110 §12.5.1',
    behaviour:
      'A client gets no type that its Accept leaves out: JSON alone where it takes no stream, 406 where nothing is left.',
  },
  {
    id: 'LEG-13',
    source: 'MCP 2025-11-25, progress and logging; docs/reference/protocol.md §6, rows 59 and 60',
    behaviour:
      'Progress names a live token and increases, and notices come no faster than a reader takes; what else comes is dropped and recorded.',
  },
];
