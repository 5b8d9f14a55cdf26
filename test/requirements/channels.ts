// What must hold of HTTP+SSE, the transport of 2024-11-05, towards clients and towards upstreams.

import type { Requirement } from './requirement.js';

const TRANSPORT = 'MCP 2024-11-05, transports, HTTP with SSE';

export const channelRequirements: readonly Requirement[] = [
  {
    id: 'V-01',
    source: `${TRANSPORT}; docs/contract.md §2`,
    behaviour:
      'A client of HTTP+SSE connects at `<path>/sse`, or at `<path>` when it probes by GET, lists what it may see and calls it.',
  },
  {
    id: 'V-02',
    source: 'docs/contract.md §6; ARCHITECTURE.md, "How a response finds its plan"',
    behaviour:
      'Results are filtered and redacted, and refusals come on the stream, under the ids that the client gave.',
  },
  {
    id: 'V-03',
    source: 'docs/reference/protocol.md §4; ARCHITECTURE.md, "How a response finds its plan"',
    behaviour:
      'Progress passes, and a cancellation names the request by the id that the server knows.',
  },
  {
    id: 'V-04',
    source: 'docs/contract.md §4; MCP 2024-11-05, sampling',
    behaviour:
      'A question of a server passes where it is declared and granted; elsewhere the gateway answers it.',
  },
  {
    id: 'V-05',
    source: 'docs/contract.md §8',
    behaviour: 'Streams, messages and answers are on record in the era 2024.',
  },
  {
    id: 'V-06',
    source: 'docs/contract.md §10',
    behaviour: 'A client that leaves frees the stream of the server, and its session is unknown.',
  },
  {
    id: 'V-07',
    source:
      'docs/reference/protocol.md §1.1; docs/contract.md §3 (an endpoint event is of its own origin)',
    behaviour:
      'An upstream whose stream does not begin with an address of its own origin is `upstream-protocol`, for clients and for the listing, and nothing is sent to that address.',
  },
  {
    id: 'V-08',
    source: 'docs/reference/protocol.md §1.1; docs/contract.md §2',
    behaviour:
      'The address that clients are given is built from `publicUrl` and the path; no header of a request changes it.',
  },
  {
    id: 'V-09',
    source: 'docs/reference/protocol.md §1.1; docs/contract.md §8',
    behaviour:
      'The session in a query, ours and the upstream’s, stands in no log, metric, record or error.',
  },
  {
    id: 'V-10',
    source: 'docs/contract.md §10; docs/reference/protocol.md §5 B5',
    behaviour:
      'A session in the hands of another caller, changed, missing or beside another one is refused as an unknown one; nothing of it reaches the upstream.',
  },
  {
    id: 'V-11',
    source: 'docs/contract.md §2 and §6; docs/reference/protocol.md §2.1',
    behaviour:
      'Each path takes its own method alone, nobody comes in without a token, and no refusal looks like one of another era.',
  },
  {
    id: 'V-12',
    source: 'docs/contract.md §10',
    behaviour:
      'Any replica takes a message for a stream that another one holds; what it must refuse, it refuses by its status.',
  },
  {
    id: 'V-13',
    source: 'ARCHITECTURE.md, "How a response finds its plan"',
    behaviour:
      'An answer passes once, in its own session, under an id that was given out there; every other is dropped and recorded.',
  },
];
