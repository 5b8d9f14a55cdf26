// The stateless era beyond its lists and calls: subscriptions, dialogues, statuses.
import type { Requirement } from './requirement.js';

export const statelessRequirements: readonly Requirement[] = [
  {
    id: 'T-01',
    source: 'docs/reference/protocol.md §6 row 21; MCP 2026-07-28 subscriptions',
    behaviour:
      'A subscription is acknowledged first, with the agreed subset; what its caller may not listen to never reaches the upstream.',
  },
  {
    id: 'T-02',
    source: 'docs/reference/protocol.md §6 row 21',
    behaviour:
      'Only notices that were asked for pass, with the id of their subscription, clean and in order; all else is dropped and recorded.',
  },
  {
    id: 'T-03',
    source: 'docs/contract.md §5; MCP 2026-07-28 subscriptions',
    behaviour: 'Drift and reloads are told on subscriptions, in their own form and to who asked.',
  },
  {
    id: 'T-04',
    source: 'docs/contract.md §5',
    behaviour:
      'Where the upstream knows no subscriptions, the gateway serves list changes by itself.',
  },
  {
    id: 'T-05',
    source: 'docs/reference/protocol.md §6 row 19; docs/contract.md §3',
    behaviour:
      'A client that leaves cancels its subscription; a graceful end passes; the stream ends with its token and with the rule that allowed it, and takes no place of a call.',
  },
  {
    id: 'T-06',
    source: 'docs/reference/protocol.md §6 row 23',
    behaviour:
      'Questions come as answers to three methods only; elsewhere they are a protocol fault.',
  },
  {
    id: 'T-07',
    source: 'docs/reference/protocol.md §6 row 26; docs/contract.md §4',
    behaviour:
      'A question passes where policy grants it and this very request declared it; else the result is withheld.',
  },
  {
    id: 'T-08',
    source: 'docs/reference/protocol.md §6 rows 57 and 58',
    behaviour: 'Forms that ask for secrets and links that are not plain https are withheld.',
  },
  {
    id: 'T-09',
    source: 'docs/reference/protocol.md §6 rows 24 and 25; docs/contract.md §10',
    behaviour:
      'The state of an upstream is sealed towards the client and restored byte for byte, for the same caller, request and time alone.',
  },
  {
    id: 'T-10',
    source: 'docs/reference/protocol.md §4',
    behaviour:
      'Answers are guarded like arguments; keys of our own reach neither side; members of a dialogue stand on three methods only.',
  },
  {
    id: 'T-11',
    source: 'docs/reference/protocol.md §6 row 28',
    behaviour: 'Nothing of a dialogue is cached: no question, and no result of a retry.',
  },
  {
    id: 'T-12',
    source: 'docs/reference/protocol.md §1.3, error map',
    behaviour: 'Each error has the status and the code that the era has for it.',
  },
  {
    id: 'T-13',
    source: 'docs/reference/protocol.md §2.1 and §2.6',
    behaviour: 'A client of two eras never falls back by mistake.',
  },
];
