// What holds of tokens that are bound to a key or a certificate, and of the edge that they pass.

import type { Requirement } from './requirement.js';

export const boundRequirements: readonly Requirement[] = [
  {
    id: 'BND-01',
    source: 'RFC 9449 §7.1; docs/reference/attacks.md case 46',
    behaviour: 'The scheme DPoP brings a token in the same one spelling as Bearer.',
  },
  {
    id: 'BND-02',
    source: 'RFC 9449 §7; docs/contract.md §8; MCP security best practices (token passthrough)',
    behaviour:
      'A bound token passes with its proof and is recorded as bound; neither reaches the upstream or a record.',
  },
  {
    id: 'BND-03',
    source: 'RFC 9449 §7.2; docs/reference/attacks.md case 48',
    behaviour:
      'A bound token without its proof is a 401 `token-binding`, however often it was verified before.',
  },
  {
    id: 'BND-04',
    source: 'RFC 9449 §11.1; docs/reference/attacks.md case 48',
    behaviour:
      'One proof passes once: at the same time, for another request and after a reload too.',
  },
  {
    id: 'BND-05',
    source: 'RFC 9449 §4.2 and §4.3; docs/reference/attacks.md case 48',
    behaviour:
      'A proof is one header, fresh, of its type, for this method, this token and the configured URL of this resource; no header of the request changes that URL.',
  },
  {
    id: 'BND-06',
    source: 'RFC 9449 §4.3 and §11.6; RFC 8725 §3',
    behaviour:
      'A proof is signed by the key that the token names: public, strong, of its algorithm, in one spelling.',
  },
  {
    id: 'BND-07',
    source: 'RFC 9449 §7.1',
    behaviour: 'A token that is bound to nothing is refused under the scheme DPoP.',
  },
  {
    id: 'BND-08',
    source: 'RFC 7800 §3.1',
    behaviour: 'A token with a confirmation that cannot be checked is refused under every scheme.',
  },
  {
    id: 'BND-09',
    source: 'RFC 9449 §7; docs/contract.md §3 (streams)',
    behaviour:
      'Every request of a session brings a proof of its own, GET and DELETE too; the elements of an array and the re-checks of an open stream share that of their request.',
  },
  {
    id: 'BND-10',
    source: 'docs/contract.md §10',
    behaviour: 'A session is bound to issuer, subject and client, not to the key of a token.',
  },
  {
    id: 'BND-11',
    source: 'RFC 9728 §2',
    behaviour:
      'The metadata document says which proofs are taken, and what tokens must be bound to.',
  },
  {
    id: 'BND-12',
    source: 'RFC 9449 §8 and §9',
    behaviour:
      'Where nonces are required, a proof without a fresh one of ours is a 401 `use_dpop_nonce` that brings one.',
  },
  {
    id: 'BND-13',
    source: 'RFC 9449 §7; docs/decisions/0015-bound-tokens.md',
    behaviour: 'An upstream that demands proofs takes no other token.',
  },
  {
    id: 'BND-14',
    source: 'RFC 9449 §7.1; RFC 6750 §3',
    behaviour:
      'Challenges are of the scheme that is demanded or was used, with the algorithms of proofs.',
  },
  {
    id: 'BND-15',
    source: 'docs/contract.md §9',
    behaviour:
      'The table of controls says for each upstream whether a binding is demanded, and whether the data listener has TLS.',
  },
  {
    id: 'BND-16',
    source: 'RFC 8705 §3',
    behaviour:
      'A token bound to a certificate passes over a connection that proved it, and is recorded as bound.',
  },
  {
    id: 'BND-17',
    source: 'RFC 8705 §3; docs/reference/attacks.md case 49',
    behaviour:
      'Without that certificate, with another one, or with one that no configured authority signed, it is a 401 `token-binding`.',
  },
  { id: 'BND-18', source: 'RFC 8705 §6.5', behaviour: 'No header stands in for a certificate.' },
  {
    id: 'BND-19',
    source: 'RFC 8705 §3; RFC 9449 §6',
    behaviour: 'A token that names a key and a certificate proves both.',
  },
  {
    id: 'BND-20',
    source: 'RFC 8705 §3; RFC 9728 §2; docs/decisions/0015-bound-tokens.md',
    behaviour:
      'An upstream may demand certificates or any binding; certificates only where the listener asks for them.',
  },
  {
    id: 'BND-21',
    source: 'RFC 9325 §3 and §4',
    behaviour:
      'The data listener speaks TLS 1.2 and 1.3 with forward secrecy, HTTP/1.1 alone, and nothing in the clear.',
  },
  {
    id: 'BND-22',
    source: 'docs/contract.md §3 (reload)',
    behaviour:
      'Certificates are checked before they are used and renewed without a restart; a bad pair is rejected and the old one stays.',
  },
  {
    id: 'BND-23',
    source: 'docs/contract.md §2; docs/contract.md §3',
    behaviour:
      'The ops and admin listeners may have TLS; metrics and the console may demand client certificates, probes do not.',
  },
  {
    id: 'BND-24',
    source: 'WHATWG Fetch §3.2; MCP transports',
    behaviour:
      'A preflight of an allowed origin is answered without a token, with the methods and headers of MCP.',
  },
  {
    id: 'BND-25',
    source: 'docs/contract.md §6; docs/reference/attacks.md case 7',
    behaviour:
      'Every other origin gets a 403 that allows nothing, or the 404 and 421 that everyone gets.',
  },
  {
    id: 'BND-26',
    source: 'WHATWG Fetch §3.2.4; RFC 9728 §5.1',
    behaviour:
      'A page of an allowed origin reads answers and refusals, with the headers that a client needs, and never with credentials of the browser.',
  },
  {
    id: 'BND-27',
    source: 'RFC 9728 §3; docs/contract.md §2',
    behaviour: 'The public documents may be asked for and read by every page.',
  },
  {
    id: 'BND-28',
    source: 'docs/contract.md §2 and §8; docs/reference/attacks.md cases 5 and 8',
    behaviour:
      '`X-Forwarded-For` names the recorded address where a trusted proxy wrote it, and decides nothing.',
  },
  {
    id: 'BND-29',
    source: 'RFC 9449 §11.1; docs/contract.md §10',
    behaviour:
      'What remembers used proofs is bounded and lets nothing pass that it cannot tell about.',
  },
  {
    id: 'BND-30',
    source: 'RFC 9449; RFC 8705',
    behaviour:
      'Tokens that a real authorization server binds to keys and certificates work with clients that know nothing of the gateway.',
  },
  {
    id: 'BND-31',
    source: 'WHATWG Fetch',
    behaviour:
      'In a real browser a page of an allowed origin logs in and calls, and a foreign page does neither.',
  },
];
