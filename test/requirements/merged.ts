// What must hold of an endpoint of several upstreams.

import type { Requirement } from './requirement.js';

export const mergedRequirements: readonly Requirement[] = [
  {
    id: 'MRG-01',
    source: 'docs/reference/protocol.md §6 row 49; docs/contract.md §4, law 2',
    behaviour:
      'A list of an endpoint holds what each member lets the caller see, byte for byte but for the prefix of its name, in the order of the members.',
  },
  {
    id: 'MRG-02',
    source: 'docs/reference/protocol.md §6 row 49; docs/reference/attacks.md case 60',
    behaviour:
      'A name maps back to exactly one member by its prefix; the member sees its own name, in the body and in `Mcp-Name`, and every other byte as sent.',
  },
  {
    id: 'MRG-03',
    source: 'docs/contract.md §8; docs/decisions/0011-endpoints-of-several-upstreams.md',
    behaviour:
      'Rules, pins and records are those of the member; the record names the endpoint too.',
  },
  {
    id: 'MRG-04',
    source: 'docs/contract.md §6, no oracle; docs/reference/attacks.md case 60',
    behaviour:
      'An unprefixed name, a hidden tool under its prefix and a forged prefix are answered as unknown, and no upstream sees them; challenges are those of the endpoint.',
  },
  {
    id: 'MRG-05',
    source: 'docs/decisions/0011-endpoints-of-several-upstreams.md; MCP 2025-11-25, resources',
    behaviour:
      'A resource is read from the one member that may serve it to the caller; where several may and none is known to have listed it, it is refused with a message.',
  },
  {
    id: 'MRG-06',
    source:
      'docs/contract.md §6, row "upstream down"; docs/decisions/0011-endpoints-of-several-upstreams.md',
    behaviour:
      'A member that is down takes its own items away and its calls get 502 or 504; lists and sessions of the others come.',
  },
  {
    id: 'MRG-07',
    source: 'RFC 8707 §2; RFC 9728 §3; docs/contract.md §2',
    behaviour:
      'An endpoint is a resource with an audience and metadata of its own; its tokens open no member, and those of members not the endpoint.',
  },
  {
    id: 'MRG-08',
    source: 'MCP 2025-11-25, lifecycle; MCP 2026-07-28, server/discover',
    behaviour:
      'A handshake opens or discovers all members and declares what any of them can; instructions stand under headings.',
  },
  {
    id: 'MRG-09',
    source:
      'MCP 2025-11-25, session management; docs/contract.md §10; docs/reference/attacks.md case 81',
    behaviour:
      'A session of an endpoint is its own caller’s alone, no member’s, ends with all members at once, and is lost when a member has lost its part.',
  },
  {
    id: 'MRG-10',
    source: 'MCP 2025-03-26, batching; MCP 2025-11-25, cancellation and progress',
    behaviour:
      'Arrays are taken apart, cancellations reach every member, and what belongs to no member in particular is refused with a message.',
  },
  {
    id: 'MRG-11',
    source: 'MCP 2025-11-25, transports (server requests); docs/contract.md §10',
    behaviour:
      'A question of a member reaches the client, in a list too, and its answer that member alone.',
  },
  {
    id: 'MRG-12',
    source: 'MCP 2025-11-25, resumability; docs/reference/protocol.md §6 row 35',
    behaviour:
      'The stream of a session joins those of all members, and goes on after an event at the member that it came from.',
  },
  {
    id: 'MRG-13',
    source: 'docs/reference/protocol.md §6 row 55; MCP 2025-11-25, pagination',
    behaviour:
      'Every page of every member is reached, each item once, by cursors that are sealed to caller and list; the empty text is a cursor.',
  },
  {
    id: 'MRG-14',
    source: 'docs/reference/attacks.md case 60; docs/reference/protocol.md §6 row 49',
    behaviour:
      'Names of two members that look alike are refused before a start and hidden afterwards, both, as `tool-shadowed`, and the controls say so.',
  },
  {
    id: 'MRG-15',
    source: 'docs/contract.md §5; docs/reference/attacks.md case 54',
    behaviour: 'A definition that drifts at one member is hidden and refused there alone.',
  },
  {
    id: 'MRG-16',
    source: 'MCP 2026-07-28, subscriptions; docs/reference/protocol.md §6 rows 19 and 21',
    behaviour:
      'A subscription is acknowledged once, with what any member agreed to, carries the notices of all, and ends at all when its client leaves.',
  },
  {
    id: 'MRG-17',
    source: 'docs/contract.md §3 (reload)',
    behaviour:
      'A reload adds and removes endpoints and members; streams and sessions that went through them end.',
  },
  {
    id: 'MRG-18',
    source: 'docs/reference/clients.md',
    behaviour:
      'Official clients of both eras use an endpoint over official servers of both eras: tools, prompts, resources, completion, progress, sampling.',
  },
  {
    id: 'MRG-19',
    source: 'docs/contract.md §3 (`limits.concurrency`)',
    behaviour:
      'A request at an endpoint takes a place of each member that it asks, and gives it back.',
  },
  {
    id: 'MRG-20',
    source: 'docs/contract.md §3 (`serve` refuses to start when)',
    behaviour:
      'An endpoint is refused whose issuers a member does not accept, which is open where a member is not, whose path, audience or name is taken, or whose prefixes cannot be told apart.',
  },
  {
    id: 'MRG-21',
    source: 'MCP 2025-11-25, tasks; the Tasks extension; docs/reference/attacks.md case 81',
    behaviour:
      'A task begun at an endpoint is asked for at the member that began it, for the caller that began it; to everyone else it is unknown.',
  },
  {
    id: 'MRG-22',
    source: 'RFC 9449 §11.1; docs/contract.md §6, no or bad token',
    behaviour:
      'An endpoint demands the binding of tokens that satisfies all its members; a proof is judged once, however many members are asked, and is good for nothing else.',
  },
  {
    id: 'MRG-23',
    source: 'docs/contract.md §10; docs/decisions/0011-endpoints-of-several-upstreams.md',
    behaviour:
      'A session of an endpoint that is revoked by the digest of any member is unknown as a whole from then on, and the streams of all its members end.',
  },
  {
    id: 'MRG-24',
    source:
      'docs/decisions/0011-endpoints-of-several-upstreams.md; MCP 2025-11-25, pagination, resources',
    behaviour:
      'A member can neither end the lists of others by a cursor of its own, nor be read in the place of one whose template gives a resource.',
  },
  {
    id: 'MRG-25',
    source: 'MCP 2025-11-25, cancellation; docs/decisions/0011-endpoints-of-several-upstreams.md',
    behaviour:
      'A cancellation reaches the members that work on the request; where none is known here, all of them, by its id alone.',
  },
  {
    id: 'MRG-26',
    source:
      'MCP 2025-11-25, transports, backwards compatibility; docs/decisions/0011-endpoints-of-several-upstreams.md',
    behaviour:
      'A client of HTTP+SSE that looks for a channel at an endpoint is refused with 404 below it and 405 on it, and told what to use instead.',
  },
];
