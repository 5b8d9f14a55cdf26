// What holds of revocations and of the store that replicas share.

import type { Requirement } from './requirement.js';

export const revocationRequirements: readonly Requirement[] = [
  {
    id: 'REV-01',
    source: 'docs/contract.md §10; RFC 7009 §2',
    behaviour:
      'A revoked token is refused by its digest, also by one under a former key, and a clean caller is looked up once.',
  },
  {
    id: 'REV-02',
    source: 'docs/contract.md §10',
    behaviour:
      'A revoked subject is refused with every token that was issued before, of one client or of all; a token that does not say when it was issued counts as issued before.',
  },
  {
    id: 'REV-03',
    source: 'docs/contract.md §10',
    behaviour: 'A revoked session is known by its digest under any key.',
  },
  {
    id: 'REV-04',
    source: 'docs/contract.md §10',
    behaviour:
      'Revocations in force are listed, the newest first, and can be lifted; what has expired is gone.',
  },
  {
    id: 'REV-05',
    source: 'docs/contract.md §10',
    behaviour: 'Whoever asks is told of every change of the revocations.',
  },
  {
    id: 'REV-06',
    source: 'docs/contract.md §10',
    behaviour: 'A session that has ended stays ended.',
  },
  {
    id: 'REV-07',
    source: 'docs/contract.md §10; RFC 9449 §11.1',
    behaviour: 'Of uses at the same time exactly one is the first.',
  },
  {
    id: 'REV-08',
    source: 'docs/contract.md §4 (limits), §10',
    behaviour: 'A limit is counted exactly, by key, and a use goes when its window has passed.',
  },
  {
    id: 'REV-10',
    source: 'docs/contract.md §10',
    behaviour:
      'What one replica is told of revocations, lifts and ended sessions, the others know within two seconds.',
  },
  {
    id: 'REV-11',
    source: 'docs/contract.md §10',
    behaviour:
      'The store sees digests and sealed texts alone, each with an end, and can make no revocation.',
  },
  {
    id: 'REV-12',
    source: 'docs/contract.md §10',
    behaviour: 'A token that was revoked by its own id is found under every gateway key.',
  },
  {
    id: 'REV-13',
    source: 'docs/contract.md §10',
    behaviour:
      'A store that has lost its memory is taught by the replicas; a loss is taken for no lift.',
  },
  {
    id: 'REV-14',
    source: 'docs/contract.md §10',
    behaviour:
      'What is revoked while the store is down is in force here and told later; nothing is lifted then.',
  },
  {
    id: 'REV-15',
    source: 'docs/contract.md §10',
    behaviour:
      'A replica that could not look at the store for longer than `state.maxAge` refuses every caller until it can.',
  },
  {
    id: 'REV-16',
    source: 'docs/contract.md §10',
    behaviour:
      'Limits fall back to the share of a replica while the store cannot be asked, and nobody waits for it.',
  },
  {
    id: 'REV-17',
    source: 'docs/contract.md §10',
    behaviour: 'While the store cannot be asked nobody can tell of a use whether it is the first.',
  },
  {
    id: 'REV-18',
    source: 'docs/decisions/0017-revocations-are-known-here.md',
    behaviour: 'The revocations are bounded: one more is refused, and none is forgotten.',
  },
  {
    id: 'REV-20',
    source: 'docs/contract.md §3',
    behaviour: 'The settings of the store are read, checked and never shown.',
  },
  {
    id: 'REV-21',
    source: 'docs/contract.md §7 (token-revoked); RFC 6750 §3.1',
    behaviour:
      'A token that was revoked is refused from the next request on, whatever was remembered of it.',
  },
  {
    id: 'REV-22',
    source: 'docs/contract.md §10',
    behaviour:
      'Every open stream of a revoked token ends within two seconds, and so does what the upstream does for it.',
  },
  {
    id: 'REV-23',
    source: 'docs/contract.md §10',
    behaviour:
      'A revoked subject is refused for as long as a token of before can live, with the tolerance of clocks.',
  },
  {
    id: 'REV-24',
    source: 'docs/contract.md §10; MCP 2025-11-25, session management',
    behaviour: 'A revoked session is unknown and its streams end; its caller may open another.',
  },
  {
    id: 'REV-25',
    source: 'docs/contract.md §2, §8',
    behaviour: 'The list shows who revoked what, when and why, and nothing secret.',
  },
  {
    id: 'REV-26',
    source: 'docs/contract.md §2, §3 (admin)',
    behaviour:
      'Viewers look, reviewers revoke, admins lift; no order that a page of another origin could send is taken.',
  },
  {
    id: 'REV-27',
    source: 'docs/decisions/0017-revocations-are-known-here.md',
    behaviour:
      'An order that is not exactly understood is refused, and no body is read past its bound.',
  },
  {
    id: 'REV-28',
    source: 'docs/contract.md §8 (admin.action)',
    behaviour: 'Every action of an administrator is recorded with whom it was about.',
  },
  {
    id: 'REV-29',
    source: 'docs/contract.md §2',
    behaviour: 'A revoked administrator is refused, but a store that is down shuts none out.',
  },
  {
    id: 'REV-30',
    source: 'docs/contract.md §6, §10',
    behaviour:
      'Without news of revocations calls get 503 with `store-unavailable`, streams end, and controls and metrics say so.',
  },
  {
    id: 'REV-31',
    source: 'docs/contract.md §10',
    behaviour: 'Replicas with one store share limits, ended sessions and revocations end to end.',
  },
  {
    id: 'REV-32',
    source: 'docs/contract.md §10',
    behaviour:
      'The chart allows more than one replica with a shared store alone, and one audit file for each.',
  },
  {
    id: 'REV-33',
    source: 'docs/contract.md §10; MCP 2025-11-25, session management',
    behaviour:
      'A session that was ended at one replica ends its open streams and answers at the others within two seconds.',
  },
  {
    id: 'REV-34',
    source: 'docs/contract.md §10',
    behaviour:
      'A word for another replica is sealed, read by that replica alone and once, and bounded in size, number and time.',
  },
  {
    id: 'REV-40',
    source: 'docs/reference/attacks.md cases 47, 92; RFC 9700 §4.10',
    behaviour:
      'No token of a caller, nor a part of its signature, is ever seen by an upstream or stands in a log, a metric, an audit file, an error or any answer.',
  },
  {
    id: 'REV-50',
    source: 'docs/contract.md §1 (dev); MCP 2025-11-25, authorization',
    behaviour:
      'Clients of the official SDKs log in at the development issuer with no manual step, by registration or by document, and refresh.',
  },
  {
    id: 'REV-51',
    source: 'RFC 6749 §6; RFC 9700 §4.14.2',
    behaviour:
      'The development issuer refreshes a login once a refresh token, for its client, resource and scopes; a reuse ends the login.',
  },
  {
    id: 'REV-52',
    source: 'MCP 2025-11-25, authorization (client ID metadata documents)',
    behaviour:
      'The development issuer knows clients by the document that their id names exactly, and sends codes to this machine alone.',
  },
];
