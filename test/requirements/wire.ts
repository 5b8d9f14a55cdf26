// What the HTTP side of both eras must look like, byte for byte where a client or a proxy reads it.

import type { Requirement } from './requirement.js';

export const wireRequirements: readonly Requirement[] = [
  {
    id: 'W-01',
    source: 'RFC 9110 §15.5.6; MCP 2026-07-28, transports, backward compatibility',
    behaviour: 'A 405 names the methods that are served.',
  },
  {
    id: 'W-02',
    source: 'RFC 9110 §8.6',
    behaviour: 'The answer to DELETE has neither a body nor a length.',
  },
  {
    id: 'W-03',
    source: 'docs/contract.md §6, row "overloaded"',
    behaviour: 'An overloaded upstream is 503 with Retry-After and a JSON-RPC error.',
  },
  {
    id: 'W-04',
    source: 'WHATWG HTML §9.2.6; MCP transports',
    behaviour:
      'Events that are not called message are no messages: they neither pass nor break a call.',
  },
  {
    id: 'W-05',
    source: 'docs/contract.md §9, sallyport_overhead_seconds',
    behaviour: 'Time spent waiting for bytes of an upstream is no overhead of the gateway.',
  },
  {
    id: 'W-06',
    source: 'docs/reference/protocol.md §2.2, version negotiation',
    behaviour: 'A refused version is told what this upstream carries, and nothing else.',
  },
  {
    id: 'W-07',
    source: 'docs/contract.md §6, members under dev.sallyport/',
    behaviour: 'Members of _meta in our own name are removed and recorded for every method.',
  },
  {
    id: 'W-08',
    source: 'MCP 2026-07-28, cancellation',
    behaviour: 'A stateless client that leaves is recorded, and not as a failure of the upstream.',
  },
  {
    id: 'W-09',
    source: 'docs/contract.md §8, result.digest',
    behaviour: 'The outcome of a call has the keyed digest of what the client was sent.',
  },
  {
    id: 'W-10',
    source: 'docs/contract.md §2; RFC 7517 §5; RFC 8037 §2',
    behaviour:
      'The data listener shows the public keys that verify checkpoints, and no other part.',
  },
];
