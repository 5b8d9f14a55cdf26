// Tasks of both revisions: their ids, what is judged of them, and what of them is not carried.

import type { Requirement } from './requirement.js';

export const taskRequirements: readonly Requirement[] = [
  {
    id: 'TSK-01',
    source: 'Tasks extension, polling; MCP 2025-11-25, tasks; docs/contract.md §10',
    behaviour:
      'The id of a task is sealed for its client wherever it occurs, and the upstream sees its own.',
  },
  {
    id: 'TSK-02',
    source:
      'Tasks extension, error handling; docs/reference/attacks.md case 81; docs/reference/protocol.md §6 row 61',
    behaviour:
      'A task of another caller, upstream or era, a forged or an expired one is -32602 like an unknown one, and nothing is forwarded.',
  },
  {
    id: 'TSK-03',
    source: 'Tasks extension, capability negotiation',
    behaviour:
      'Tasks need the declaration of that very request (2026) or of the server of the session (2025-11-25); a task that nobody could expect is withheld.',
  },
  {
    id: 'TSK-04',
    source: 'docs/reference/protocol.md §4.2 and §6 row 62',
    behaviour:
      'What a task brings, by whatever way, is judged as the answer of its call: content, size, outputSchema, and what rules ask of it.',
  },
  {
    id: 'TSK-05',
    source: 'docs/reference/protocol.md §2.3 and §2.4; MCP 2025-11-25, tasks (capabilities)',
    behaviour:
      'Tasks are declared in the form of the client’s revision, and not at all where the upstream speaks another one.',
  },
  {
    id: 'TSK-06',
    source: 'docs/contract.md §4; docs/reference/protocol.md §5 B6',
    behaviour:
      'Every look at a task is decided by the tool of its call, by the rules and pins of now; whoever may not see the tool has no such task.',
  },
  {
    id: 'TSK-07',
    source: 'Tasks extension, update requests; MCP 2026-07-28, multi-round-trip requests',
    behaviour:
      'Questions of a task pass where the request declares and policy grants them, are counted once, and their answers pass the guard.',
  },
  {
    id: 'TSK-08',
    source: 'MCP 2025-11-25, tasks (listing, security)',
    behaviour: 'A list of tasks shows only those that the caller was given.',
  },
  {
    id: 'TSK-09',
    source:
      'MCP 2025-11-25, tasks (status notification, related tasks); Tasks extension, notifications',
    behaviour:
      'What a server says of a task unasked reaches its caller alone, under the id that the caller knows.',
  },
  {
    id: 'TSK-10',
    source: 'MCP 2024-11-05 to 2026-07-28, schema; docs/reference/protocol.md §4.2',
    behaviour: 'Every method of every revision has a row in its direction, or is refused by name.',
  },
  {
    id: 'TSK-11',
    source:
      'MCP 2025-11-25, tasks (tool-level negotiation, task support and handling); docs/reference/protocol.md §2.3 and §2.4',
    behaviour:
      'A wish for a task that cannot be carried is recorded and the call runs without one; a tool that runs as a task alone is refused with a message that says why.',
  },
];
