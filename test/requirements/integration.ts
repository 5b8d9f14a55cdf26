// What the running gateway does as a whole, apart from attacks: witness, probes, reloads, eras.

import type { Requirement } from './requirement.js';

export const integrationRequirements: readonly Requirement[] = [
  {
    id: 'G-01',
    source: 'contract §9; scope: witness',
    behaviour: 'Each metric of the contract moves by what it counts.',
  },
  {
    id: 'G-02',
    source: 'contract §9; attack 91',
    behaviour: 'No name from the wire becomes a label, and series stay bounded.',
  },
  {
    id: 'G-03',
    source: 'contract §2; scope: witness',
    behaviour:
      'Alive is alive; ready means that the audit can be written, whatever upstreams and issuers do.',
  },
  {
    id: 'G-04',
    source: 'contract §3; attacks 65 and 87',
    behaviour:
      'A change of files is applied or rejected within two seconds, whole, and a rejected one leaves the old version and says why.',
  },
  {
    id: 'G-05',
    source: 'contract §6; attacks 13, 26, 75 and 80',
    behaviour:
      'A failing upstream is 502 or 504 with the id of the request, or that error as the last event of a stream.',
  },
  {
    id: 'G-06',
    source: 'contract §5; scope: pins',
    behaviour:
      'A drift is seen though no client lists, announced on open streams, recorded, hidden and refused, or stops the upstream.',
  },
  {
    id: 'G-07',
    source: 'contract §3 and §4',
    behaviour: 'Rates of rules, requests in flight and sizes of bodies are held.',
  },
  {
    id: 'G-08',
    source: 'contract §2; scope: witness',
    behaviour:
      'The admin listener shows the state of every control, and never without a credential.',
  },
  {
    id: 'G-09',
    source: 'contract §6; RFC 6750 §3; RFC 9728 §5.1',
    behaviour: 'Challenges of 401 and 403 are what the contract says, to the byte.',
  },
  {
    id: 'G-10',
    source: 'RFC 9728 §2 and §3; attack 53',
    behaviour: 'The metadata document is made of the configuration alone.',
  },
  {
    id: 'G-11',
    source: 'scope: both eras on one endpoint; MCP 2026-07-28, versioning',
    behaviour:
      'A client of an era that the upstream does not speak is served in its own; a version of no era is refused.',
  },
  {
    id: 'G-12',
    source: 'scope: both eras on one endpoint',
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
    source: 'performance, what follows 8 and 9',
    behaviour: 'One caller holds no more than its share of streams; what ends gives its room back.',
  },
  {
    id: 'G-81',
    source: 'contract §6 and §8',
    behaviour:
      'What the edge refuses is recorded like every refusal, at a bounded rate, and counted always.',
  },
];
