// What callers, keys and learned URLs must hold to: each requirement that tests cite as [A-..].

export type Requirement = {
  readonly id: string;
  readonly source: string;
  readonly behaviour: string;
};

const row = (id: string, source: string, behaviour: string): Requirement => ({
  id,
  source,
  behaviour,
});

export const AUTHN_REQUIREMENTS: readonly Requirement[] = [
  row(
    'A-01',
    'docs/contract.md §3; RFC 6890',
    'An address is judged by what it is, in every spelling.',
  ),
  row(
    'A-02',
    'docs/contract.md §3',
    'Learned URLs are fetched with identity encoding, no credentials.',
  ),
  row(
    'A-03',
    'docs/contract.md §3; docs/reference/attacks.md case 14',
    'No redirect is followed; the error names its target.',
  ),
  row(
    'A-04',
    'docs/reference/attacks.md cases 12 and 51',
    'Bytes are capped as received; nothing is inflated.',
  ),
  row(
    'A-05',
    'docs/reference/attacks.md case 51',
    'A fetch ends within its time, to the last byte.',
  ),
  row('A-06', 'docs/reference/attacks.md case 51', 'Only a 200 with JSON in UTF-8 is an answer.'),
  row('A-07', 'docs/contract.md §3', 'Outside loopback a URL is https; none carries credentials.'),
  row(
    'A-08',
    'docs/reference/attacks.md case 84',
    'Literals and names outside the network are refused unsent.',
  ),
  row('A-09', 'docs/reference/attacks.md case 84', 'A name is checked at every connection.'),
  row('A-10', 'docs/contract.md §3', 'A learned URL is of a configured origin or public https.'),
  row('A-11', 'docs/reference/attacks.md case 84', 'The address that was connected to is checked.'),
  row('A-20', 'RFC 6750 §2.1', 'One Authorization header carries one bearer token.'),
  row(
    'A-21',
    'docs/reference/attacks.md case 4; docs/contract.md §2',
    'Two headers, or a token in the query, are refused.',
  ),
  row('A-22', 'RFC 7515 §3.1; RFC 4648 §3.5', 'A token has one spelling; others are refused.'),
  row('A-23', 'docs/reference/attacks.md case 45', 'A token past 8 KiB is refused unread.'),
  row('A-24', 'RFC 9068 §2.2', 'Subject and client are there and fit to be compared.'),
  row('A-25', 'RFC 9068 §2.2; RFC 8693 §4.1', 'A principal carries what its token proves.'),
  row('A-26', 'docs/contract.md §8', 'Records name a token by a keyed digest.'),
  row(
    'A-27',
    'ARCHITECTURE.md, "Types hold the order"',
    'A principal is frozen and has no inherited claims.',
  ),
  row('A-28', 'docs/contract.md §3', 'Without authentication the principal is anonymous.'),
  row('A-29', 'RFC 7517 §4.5; RFC 8725 §3.1', 'A key is chosen by id and algorithm, or alone.'),
  row('A-30', 'RFC 7517 §4 and §5', 'Unfit, secret and ambiguous keys are never used.'),
  row('A-31', 'RFC 8414 §3; MCP 2026-07-28', 'Metadata is looked for in the given order.'),
  row(
    'A-32',
    'RFC 8414 §3.3; docs/contract.md §3',
    'Foreign metadata and foreign keys are discarded.',
  ),
  row('A-33', 'RFC 8707 §2', 'Tokens of a real server are accepted for their resource alone.'),
  row(
    'A-34',
    'docs/reference/performance.md rule 5',
    'A verified token is remembered, bounded, verified once.',
  ),
  row(
    'A-35',
    'docs/reference/authorization.md',
    'What is remembered holds for one upstream and configuration.',
  ),
  row(
    'A-36',
    'docs/reference/authorization.md',
    'Nothing is remembered past expiry or five minutes.',
  ),
  row(
    'A-37',
    'docs/reference/attacks.md case 37',
    'None and symmetric algorithms, and changed tokens, are refused.',
  ),
  row(
    'A-38',
    'docs/reference/attacks.md case 38',
    'A key id opens nothing; floods cost one fetch a cooldown.',
  ),
  row('A-39', 'docs/reference/attacks.md case 39', 'Headers that bring their own key are refused.'),
  row(
    'A-40',
    'docs/reference/attacks.md case 40; RFC 8707 §2',
    'The audience is exactly the resource, and it alone.',
  ),
  row(
    'A-41',
    'docs/reference/attacks.md case 41; RFC 9068 §4',
    'Only the configured type of token is accepted.',
  ),
  row(
    'A-42',
    'docs/reference/attacks.md case 42',
    'Times are there, are numbers, and lie within bounds.',
  ),
  row(
    'A-43',
    'docs/reference/attacks.md case 43',
    'Critical headers and encrypted tokens are refused.',
  ),
  row('A-44', 'docs/reference/attacks.md case 44', 'Keys of one issuer never vouch for another.'),
  row('A-46', 'docs/reference/attacks.md case 46', 'Another spelling of a token is no token.'),
  row(
    'A-48',
    'docs/reference/attacks.md case 48; RFC 7800 §3.1',
    'A key-bound token is refused as a bearer.',
  ),
  row(
    'A-49',
    'docs/reference/attacks.md case 49; RFC 8705 §3',
    'A certificate-bound token is refused as a bearer.',
  ),
  row(
    'A-50',
    'docs/contract.md §6; RFC 6750 §3',
    'A 401 names metadata and scopes, reflects nothing.',
  ),
  row(
    'A-51',
    'docs/reference/attacks.md case 51',
    'Keys rotate unnoticed; outages are bounded, then 503.',
  ),
  row(
    'A-52',
    'docs/reference/attacks.md case 52; RFC 6749 §3.3',
    'Scopes are exact tokens; a 403 names all needed.',
  ),
  row(
    'A-53',
    'docs/reference/attacks.md case 53; RFC 9728 §2',
    'Metadata comes from the configuration alone.',
  ),
  row(
    'A-54',
    'RFC 9728 §3.1; docs/contract.md §2',
    'Metadata is answered with and without the outer path.',
  ),
  row('A-60', 'RFC 6749 §4.1; RFC 8707 §2', 'The development issuer walks the code flow.'),
  row('A-61', 'RFC 7636; RFC 8252 §7.3', 'Its codes need PKCE and go to this machine, once.'),
  row('A-62', 'RFC 6749 §4.4', 'Its machines get tokens for their secret alone.'),
  row('A-63', 'docs/contract.md §1', 'It mints what a demonstration asks for.'),
  row('A-64', 'docs/contract.md §1', 'It is reached from this machine alone.'),
];
