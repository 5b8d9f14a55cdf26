// What the running gateway does as a whole, apart from attacks: witness, probes, reloads, eras.

import type { Requirement } from './requirement.js';

export const integrationRequirements: readonly Requirement[] = [
  {
    id: 'G-01',
    source: 'docs/contract.md §9',
    behaviour: 'Each metric of the contract moves by what it counts.',
  },
  {
    id: 'G-02',
    source: 'docs/contract.md §9; docs/reference/attacks.md case 91',
    behaviour: 'No name from the wire becomes a label, and series stay bounded.',
  },
  {
    id: 'G-03',
    source: 'docs/contract.md §2',
    behaviour:
      'Alive is alive; ready means that the audit can be written, whatever upstreams and issuers do.',
  },
  {
    id: 'G-04',
    source: 'docs/contract.md §3; docs/reference/attacks.md cases 65 and 87',
    behaviour:
      'A change of files is applied or rejected within two seconds, whole, and a rejected one leaves the old version and says why.',
  },
  {
    id: 'G-05',
    source: 'docs/contract.md §6; docs/reference/attacks.md cases 13, 26, 75 and 80',
    behaviour:
      'A failing upstream is 502 or 504 with the id of the request, or that error as the last event of a stream.',
  },
  {
    id: 'G-06',
    source: 'docs/contract.md §5',
    behaviour:
      'A drift is seen though no client lists, announced on open streams, recorded, hidden and refused, or stops the upstream.',
  },
  {
    id: 'G-07',
    source: 'docs/contract.md §3 and §4',
    behaviour: 'Rates of rules, requests in flight and sizes of bodies are held.',
  },
  {
    id: 'G-08',
    source: 'docs/contract.md §2',
    behaviour:
      'The admin listener shows the state of every control, and never without a credential.',
  },
  {
    id: 'G-09',
    source: 'docs/contract.md §6; RFC 6750 §3; RFC 9728 §5.1',
    behaviour: 'Challenges of 401 and 403 are what the contract says, to the byte.',
  },
  {
    id: 'G-10',
    source: 'RFC 9728 §2 and §3; docs/reference/attacks.md case 53',
    behaviour: 'The metadata document is made of the configuration alone.',
  },
  {
    id: 'G-11',
    source: 'MCP 2026-07-28, versioning',
    behaviour:
      'A client of an era that the upstream does not speak is served in its own; a version of no era is refused.',
  },
  {
    id: 'G-12',
    source: 'docs/reference/protocol.md §2',
    behaviour:
      'What is not carried is refused in both directions, and its capabilities reach neither side.',
  },
  {
    id: 'G-13',
    source: 'MCP 2025-11-25, transports, protocol version header',
    behaviour: 'A session keeps the version that it was opened with.',
  },
  {
    id: 'G-80',
    source: 'docs/reference/performance.md rules 8 and 9',
    behaviour: 'One caller holds no more than its share of streams; what ends gives its room back.',
  },
  {
    id: 'G-81',
    source: 'docs/contract.md §6 and §8',
    behaviour:
      'What the edge refuses is recorded like every refusal, at a bounded rate, and counted always.',
  },
];
