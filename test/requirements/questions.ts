// What must hold of the session era: questions of servers, resumption, arrays, and any replica.

import type { Requirement } from './requirement.js';

export const questionRequirements: readonly Requirement[] = [
  {
    id: 'Q-01',
    source: 'docs/contract.md §4, `what`; laws 1 to 5',
    behaviour:
      'Sampling, elicitation by mode and roots are granted by rules like everything else: nothing without an allow, deny wins, scopes and conditions hold.',
  },
  {
    id: 'Q-02',
    source: 'MCP 2025-11-25 lifecycle, elicitation capabilities',
    behaviour:
      'Of what a client declares, admission cuts exactly what is not granted; an elicitation without its last mode goes whole.',
  },
  {
    id: 'Q-03',
    source: 'docs/reference/protocol.md §6 row 26; docs/contract.md §4',
    behaviour:
      'A question that is not declared or not granted reaches no client: the server gets -32601, the audit log a decision and an outcome with the reason.',
  },
  {
    id: 'Q-04',
    source: 'MCP 2025-11-25 sampling, elicitation, roots',
    behaviour:
      'A granted question passes, on answers and on the stream of the session, under a sealed id; the answer reaches the server under its own id; both are recorded.',
  },
  {
    id: 'Q-05',
    source: 'docs/reference/protocol.md §6 row 57; MCP 2025-11-25 elicitation',
    behaviour:
      'A form that asks for secrets or payment details, by name, title, format, description or message, is refused as `elicitation-sensitive`.',
  },
  {
    id: 'Q-06',
    source: 'docs/reference/protocol.md §6 row 58; MCP 2025-11-25 elicitation, URL mode',
    behaviour:
      'A link is plain https that names nobody and shows its host in ASCII, in questions and in the -32042 error; every other is refused as `elicitation-url`.',
  },
  {
    id: 'Q-07',
    source: 'docs/reference/attacks.md case 25; docs/contract.md §10',
    behaviour:
      'An answer is admitted only under an id that was given out in its own session, to its own caller, at its own upstream, and is 400 otherwise.',
  },
  {
    id: 'Q-08',
    source: 'docs/contract.md §3, inspection of requests',
    behaviour:
      "The content of an answer is guarded like arguments: a secret or the caller's token keeps it, and the server is told that none will come.",
  },
  {
    id: 'Q-09',
    source: 'docs/contract.md §4, law 3; docs/contract.md §3, inspection of results',
    behaviour:
      'The content of a question is inspected under the strictest profile, and its limits are counted once, when it is asked.',
  },
  {
    id: 'Q-10',
    source: 'docs/reference/protocol.md §6 row 35; MCP 2025-11-25 resumability',
    behaviour:
      'Event ids leave sealed; a stream is resumed after one by its owner in its session, and is judged by what it answers.',
  },
  {
    id: 'Q-11',
    source: 'docs/reference/protocol.md §6 row 35; docs/contract.md §10',
    behaviour:
      'An event id that is foreign, altered or made up is 404 like an unknown session, and reaches no upstream.',
  },
  {
    id: 'Q-12',
    source: 'MCP 2025-11-25 transports, polling',
    behaviour:
      'Priming events and retry pass; a stream that its server closes after one ends without an error, and one that has none ends with it.',
  },
  {
    id: 'Q-13',
    source: 'docs/reference/protocol.md §6 row 20; MCP 2025-11-25 transports',
    behaviour:
      'A client that leaves a resumable stream cancels nothing, frees it, and gets the answer when it comes back.',
  },
  {
    id: 'Q-14',
    source: 'docs/reference/protocol.md §6 row 31; MCP 2025-03-26 batching',
    behaviour:
      'An array of a 2025-03-26 session is taken apart: each element is admitted, decided, guarded, recorded and forwarded alone; everywhere else arrays are 400.',
  },
  {
    id: 'Q-15',
    source: 'docs/contract.md §10',
    behaviour:
      'A second gateway with the same key serves a session, answers of its questions and its resumed streams.',
  },
  {
    id: 'Q-16',
    source: 'docs/reference/protocol.md §6 row 33',
    behaviour:
      'Ended, foreign, altered and unknown sessions, and those that the upstream has lost, are one and the same 404.',
  },
  {
    id: 'Q-17',
    source: 'MCP 2025-11-25 cancellation, elicitation, roots',
    behaviour:
      'A server takes back a question under the id that the client knows; completions of links and changed roots pass only where those were granted.',
  },
];
