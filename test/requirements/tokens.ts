// What tokens prove, of whatever form, and what holds while those who vouch for them are in trouble.

import type { Requirement } from './requirement.js';

const row = (id: string, source: string, behaviour: string): Requirement => ({
  id,
  source,
  behaviour,
});

export const tokenRequirements: readonly Requirement[] = [
  row('TOK-01', 'RFC 7662 §2.2', 'A token that its issuer is asked about passes for what it says.'),
  row('TOK-02', 'RFC 7662 §4', 'Answers are remembered shortly, and floods ask little.'),
  row(
    'TOK-03',
    'docs/contract.md §6; RFC 7662 §4',
    'Who cannot be asked is a 503, shown by the controls.',
  ),
  row('TOK-04', 'RFC 7662 §4', 'A token is shown to its own issuer alone, and by its client.'),
  row(
    'TOK-05',
    'docs/contract.md §3 (audiences)',
    'A mapped audience is exact, and shows as what it is.',
  ),
  row('TOK-06', 'RFC 9068 §5; RFC 8725 §3.11', 'Tokens of other kinds are known by their claims.'),
  row('TOK-07', 'RFC 8693 §4.1', 'Chains of actors are whole in the record, or refused.'),
  row(
    'TOK-08',
    'docs/contract.md §3 (claims)',
    'A claim is found by one name, exact or as a pointer.',
  ),
  row(
    'TOK-09',
    'OpenID Connect Core §5.6.2',
    'Groups that are unknown grant nothing, spare nothing.',
  ),
  row('TOK-10', 'RFC 7515 §3.1; RFC 6750 §2.1', 'A token has one spelling, before any memory.'),
  row(
    'TOK-11',
    'docs/contract.md §7 (keys-unavailable)',
    'Last good keys serve for a bounded age.',
  ),
  row(
    'TOK-12',
    'docs/contract.md §10',
    'A session outlives its tokens, and no stream outlives its own.',
  ),
  row(
    'TOK-13',
    'MCP 2026-07-28, scope challenge handling',
    'A broad scope includes narrower ones.',
  ),
  row('TOK-14', 'RFC 6750 §3.1', 'One challenge names every scope, and clients step up by it.'),
  row('TOK-15', 'RFC 8725 §3.8', 'Of two issuers with one key id, each vouches for its own.'),
  row(
    'TOK-16',
    'docs/contract.md §3',
    'What an issuer says of its tokens is checked before any start.',
  ),
];
