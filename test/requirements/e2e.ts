// What must hold between real clients and real servers, with the whole gateway between them.

import type { Requirement } from './requirement.js';

export const e2eRequirements: readonly Requirement[] = [
  {
    id: 'E-01',
    source: 'MCP 2025-11-25 lifecycle; docs/contract.md §10',
    behaviour:
      'Both SDKs open a session: sealed id, capabilities that are carried and no others, approved instructions; ping works.',
  },
  {
    id: 'E-02',
    source: 'MCP 2025-11-25 tools, pagination',
    behaviour:
      'In sessions, tools are listed over all pages and called by both SDKs: text, structured content, images.',
  },
  {
    id: 'E-03',
    source: 'MCP 2025-11-25 progress',
    behaviour: 'Progress reaches the clients of both SDKs in streamed answers, in order.',
  },
  {
    id: 'E-04',
    source: 'MCP 2025-11-25 cancellation',
    behaviour:
      'A call of a session is cancelled by a notification, which is carried; its stream ends soon, though the server keep it open, and the session stays usable.',
  },
  {
    id: 'E-05',
    source: 'MCP 2025-11-25 prompts, resources, completion',
    behaviour:
      'Prompts, resources, templates and completions are listed, got, read and completed by both SDKs.',
  },
  {
    id: 'E-06',
    source: 'MCP 2025-11-25 logging, resource subscriptions, GET stream',
    behaviour:
      'Log messages and updates of subscribed resources reach both SDKs on the stream of their session.',
  },
  {
    id: 'E-07',
    source: 'MCP 2025-11-25 session management; docs/contract.md §10',
    behaviour:
      'DELETE ends a session, which is then 404; a session outlives a token of its caller and is unknown to others.',
  },
  {
    id: 'E-08',
    source: 'docs/reference/protocol.md §4, capabilities',
    behaviour:
      'Sampling, elicitation and roots are gone from the capabilities that an upstream sees, in both eras.',
  },
  {
    id: 'E-09',
    source: 'MCP 2025-11-25 and 2026-07-28, receiving messages',
    behaviour:
      'A request of a server reaches no client: -32601 in session eras (ping is answered), dropped in 2026; recorded.',
  },
  {
    id: 'E-10',
    source: 'MCP 2026-07-28 server/discover',
    behaviour:
      'SDK v2 in the stateless era discovers versions, capabilities that are carried, and approved instructions, without a session.',
  },
  {
    id: 'E-11',
    source: 'MCP 2026-07-28 tools, prompts, resources, custom headers',
    behaviour:
      'SDK v2 in the stateless era lists, calls, gets and reads; a mirrored parameter is compared with the body and carried on.',
  },
  {
    id: 'E-12',
    source: 'MCP 2026-07-28 progress',
    behaviour: 'Progress reaches SDK v2 in the streamed answers of the stateless era.',
  },
  {
    id: 'E-13',
    source: 'MCP 2026-07-28 caching; docs/contract.md §6',
    behaviour: 'Lists leave as private and live at most as long as the gateway allows.',
  },
  {
    id: 'E-14',
    source: 'MCP 2026-07-28 cancellation',
    behaviour: 'A stateless client that leaves cancels the request of the upstream.',
  },
  {
    id: 'E-15',
    source: 'CONTRIBUTING.md',
    behaviour: 'SDK v2 held to sessions works with a server on SDK v2 that issues none.',
  },
  {
    id: 'E-16',
    source: 'MCP 2026-07-28 versioning',
    behaviour: 'SDK v2 held to the stateless era uses the reference server of sessions.',
  },
  {
    id: 'E-17',
    source: 'MCP 2026-07-28 backward compatibility',
    behaviour: 'Both SDKs held to sessions use a server of the stateless era alone.',
  },
  {
    id: 'E-18',
    source: 'MCP 2026-07-28 backward compatibility, detection',
    behaviour: 'SDK v2 that finds the era by itself ends usable before each kind of upstream.',
  },
  {
    id: 'E-19',
    source: 'MCP transports',
    behaviour:
      'An event of a streamed answer arrives before the upstream ends; comments are kept, event ids leave sealed.',
  },
  {
    id: 'E-20',
    source: 'docs/reference/protocol.md §6 rows 19 and 20',
    behaviour:
      'A client of sessions that disconnects cancels nothing; a stateless client that disconnects cancels.',
  },
  {
    id: 'E-21',
    source: 'docs/contract.md §5',
    behaviour:
      'A drift is hidden and announced on open streams, whether the upstream announces it or the gateway finds it.',
  },
  {
    id: 'E-22',
    source: 'ARCHITECTURE.md, "Bytes"; MCP 2025-11-25',
    behaviour:
      'With everything allowed, lists and plain results of sessions are those of the upstream, byte for byte.',
  },
  {
    id: 'E-23',
    source: 'ARCHITECTURE.md, "Bytes"; MCP 2026-07-28',
    behaviour:
      'With everything allowed, stateless lists and results are those of the upstream, but for caching.',
  },
  {
    id: 'E-24',
    source: 'RFC 7591, 7636, 8414, 8707, 9728',
    behaviour:
      'Both SDKs walk from the 401 of the gateway to a call, with a real authorization server found by discovery.',
  },
  {
    id: 'E-25',
    source: 'RFC 8707; RFC 6750 §3.1; MCP authorization, step-up; docs/contract.md §6',
    behaviour:
      'A token opens one resource and reaches no upstream; a missing scope is named in a 403 and suffices once granted.',
  },
  {
    id: 'E-26',
    source: 'ARCHITECTURE.md, "Bytes"',
    behaviour:
      'An answer without findings leaves byte for byte; around a redaction every other byte stays.',
  },
  {
    id: 'E-27',
    source:
      'docs/contract.md §4, laws 1 and 2; docs/contract.md §6; docs/reference/protocol.md §6 row 27',
    behaviour:
      'Callers of one upstream get their own lists and their own answers, one after another and at once.',
  },
  {
    id: 'E-28',
    source: 'docs/contract.md §6, row "listed; arguments invalid or not allowed"',
    behaviour: 'A refused argument is a result with isError that both SDKs hand to their user.',
  },
  {
    id: 'E-29',
    source:
      'docs/reference/detectors.md; docs/contract.md §6, row "content withheld from a result"',
    behaviour: 'Both eras read the rest of a result around a placeholder, and the findings.',
  },
  {
    id: 'E-30',
    source: 'docs/contract.md §1',
    behaviour:
      'Unknown words are answered with what was meant and exit 2; help has examples first.',
  },
  {
    id: 'E-31',
    source: 'docs/contract.md §1, validate',
    behaviour:
      'validate accepts the examples, tells every mistake with its place, and ends with 0, 1 or 2.',
  },
  {
    id: 'E-32',
    source: 'docs/contract.md §1, keys and schema',
    behaviour: 'keys new, keys public and schema print what they should, and no secret twice.',
  },
  {
    id: 'E-33',
    source: 'docs/contract.md §1 and §5, pin',
    behaviour:
      'pin fetch, diff, verify, approve and block work on lock files, with the exit codes that CI needs.',
  },
  {
    id: 'E-34',
    source: 'docs/contract.md §1, serve and audit verify',
    behaviour:
      'serve prints a line a listener, reloads at SIGHUP, drains at SIGTERM and ends with 143, refuses bad files whole; its audit verifies, and no longer once altered.',
  },
  {
    id: 'E-35',
    source: 'docs/contract.md §1, SIGTERM drains',
    behaviour:
      'A drain answers what runs and waits for nothing else: neither idle connections nor silent ones.',
  },
  {
    id: 'E-36',
    source: 'docs/contract.md §1, dev',
    behaviour:
      'dev puts the gateway in front of a server: a pasted token and a login of an SDK both work; the tour ends as announced.',
  },
  {
    id: 'E-37',
    source: 'docs/contract.md §3, "decided under one version"; docs/contract.md §5',
    behaviour:
      'An exchange whose caller took time to verify is decided under what was listed meanwhile: the first request after a start sees what is pinned.',
  },
  {
    id: 'E-38',
    source: 'docs/reference/protocol.md §2.1, outcome matrix',
    behaviour:
      'Until an upstream was asked in every era, nothing is told of any: no client is sent to another era by a listing that is half done.',
  },
  {
    id: 'E-39',
    source: 'docs/contract.md §1, serve',
    behaviour:
      'A start whose port is taken names listener, address and port, ends with 1, leaves nothing open and touches no audit.',
  },
];
