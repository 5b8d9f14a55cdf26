// Who the upstream is, what it is shown, and how it learns who calls.

import type { Requirement } from './requirement.js';

export const credentialRequirements: readonly Requirement[] = [
  {
    id: 'CRD-01',
    source: 'docs/contract.md §3 (`tls`); docs/reference/attacks.md case 84',
    behaviour:
      'An upstream is reached only if its certificate is of the configured authority, carries the name and, where keys are pinned, has one of them.',
  },
  {
    id: 'CRD-02',
    source: 'docs/contract.md §3 (`tls`); RFC 8446 §4.4.2',
    behaviour: 'The gateway shows its client certificate to the upstream that asks for it.',
  },
  {
    id: 'CRD-03',
    source: 'docs/contract.md §3 (`credentials`)',
    behaviour: 'What credentials, TLS and identity need is checked before the start, in one run.',
  },
  {
    id: 'CRD-04',
    source: 'RFC 6749 §4.4; RFC 7523 §2.2; RFC 8707 §2',
    behaviour:
      'Client credentials are got from a real authorization server, by secret or by key, for the resource of the upstream.',
  },
  {
    id: 'CRD-05',
    source: 'RFC 8693 §2; RFC 8707 §2',
    behaviour:
      "A caller's token is exchanged for one of the upstream, at the configured server alone; the caller's own stands nowhere else.",
  },
  {
    id: 'CRD-06',
    source: 'RFC 8693 §2.2.1; RFC 9068 §4; docs/reference/attacks.md case 50',
    behaviour:
      'What an authorization server issues is judged: type, audience, scopes, end; a token that is wrong is shown to nobody.',
  },
  {
    id: 'CRD-07',
    source: 'docs/reference/attacks.md case 50; docs/contract.md §7 (`upstream-credentials`)',
    behaviour:
      'Without its credential nothing leaves, and nothing else takes its place; a flood of calls is no flood of token requests.',
  },
  {
    id: 'CRD-08',
    source: 'docs/reference/upstream-credentials.md',
    behaviour:
      'A token is kept for one caller and one token of his, shown at once, renewed while it is good, and dropped when the upstream does not accept it.',
  },
  {
    id: 'CRD-09',
    source: 'docs/contract.md §10; MCP security best practices (token passthrough)',
    behaviour:
      "Streams, their ends, answers to servers and translated sessions are under the caller's credential, the gateway's listings under its own.",
  },
  {
    id: 'CRD-10',
    source: 'RFC 7519; RFC 8037; docs/contract.md §2 (key set)',
    behaviour:
      'An upstream can verify who calls by an assertion of its own, signed for one request with a published key.',
  },
  {
    id: 'CRD-11',
    source: 'docs/reference/attacks.md cases 8, 9, 47',
    behaviour:
      'Only listed headers pass in either direction: none that a client invents, none that an upstream sends besides.',
  },
  {
    id: 'CRD-12',
    source: 'docs/contract.md §5, §8',
    behaviour:
      'What a server calls itself is remembered in the lock file; another name is drift, another version is shown.',
  },
  {
    id: 'CRD-13',
    source: 'docs/contract.md §9',
    behaviour:
      'The controls say of each upstream what it is shown and whether it is told who calls.',
  },
  {
    id: 'CRD-14',
    source: 'docs/reference/detectors.md',
    behaviour:
      "The gateway's own upstream credentials never come back: in no message of that upstream, plain, in base64, hex or percent form, whatever the profile says.",
  },
];
