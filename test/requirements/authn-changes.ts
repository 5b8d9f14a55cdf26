// What was verified or proved once, and what it stands on afterwards: keys, authorities, settings.

import type { Requirement } from './requirement.js';

export const authnChangeRequirements: readonly Requirement[] = [
  {
    id: 'ACH-01',
    source: 'docs/contract.md §7 (keys-unavailable)',
    behaviour: 'A remembered token is good no longer than keys may serve: then it is a 503 too.',
  },
  {
    id: 'ACH-02',
    source: 'RFC 8705 §3; docs/contract.md §3 (reload)',
    behaviour:
      'What a connection proved to authorities of clients that a reload takes away counts no more, on connections that are open as well.',
  },
  {
    id: 'ACH-03',
    source: 'docs/contract.md §3 (reload)',
    behaviour:
      'A stream ends with a reload that changes what a token of its caller must be, and with no other.',
  },
  {
    id: 'ACH-04',
    source: 'RFC 7515 §5.2; RFC 8725 §3.4; docs/contract.md §8 (token id)',
    behaviour:
      'A signed token without an id is known by what was signed: a twin of its signature makes no other token of it.',
  },
  {
    id: 'ACH-05',
    source: 'docs/reference/attacks.md case 10',
    behaviour: 'Requests that wait for the verdict on one token are bounded; the rest are 503.',
  },
  {
    id: 'ACH-06',
    source: 'RFC 7662 §4; docs/contract.md §3 (reload)',
    behaviour: 'Callers whom an issuer vouched for stay known to it over a reload.',
  },
  {
    id: 'ACH-07',
    source: 'RFC 7662 §4; docs/reference/attacks.md case 38',
    behaviour: 'Questions that hang hold up none of those that room is kept for.',
  },
  {
    id: 'ACH-08',
    source: 'RFC 9449 §11.1; docs/contract.md §10',
    behaviour: 'A proof is used once at all replicas, also while the gateway key is changed.',
  },
];
