// What the running gateway does with each attack of the reference: the number of the id is its number.

import type { Requirement } from './requirement.js';

function attack(number: string, behaviour: string): Requirement {
  return { id: `X-${number}`, source: `attacks ${Number(number)}`, behaviour };
}

export const attackRequirements: readonly Requirement[] = [
  attack('01', 'Content-Length beside Transfer-Encoding is 400, and the connection is closed.'),
  attack('02', 'Lengths that are not one plain number are 400.'),
  attack('03', 'Every transfer encoding but chunked on HTTP/1.1 is refused.'),
  attack('04', 'Two credentials in one request are a 401; none of them wins.'),
  attack('05', 'A foreign, second or missing Host, and an absolute form, lead nowhere.'),
  attack('06', 'Every other spelling of a path is an unknown path.'),
  attack('07', 'A foreign Origin is 403 before any token is read.'),
  attack('08', 'What a client says of its way here reaches neither the upstream nor the audit.'),
  attack('09', 'Trailers carry neither credentials nor names.'),
  attack('11', 'A body in any content encoding is 415 and is not inflated.'),
  attack('12', 'A compressed answer is refused and never inflated.'),
  attack('14', 'A redirect of an upstream is never followed.'),
  attack('15', 'A refused request and those behind it on the connection are kept apart.'),
  attack(
    '16',
    'A stateless client that goes away cancels its call upstream, a session client does not, and both are recorded.',
  ),
  attack(
    '17',
    'Members of one name, or of names that fold to one, are refused in both directions.',
  ),
  attack('18', 'Members named after parts of prototypes change nothing and name nothing.'),
  attack('19', 'Depth and number of members are bounded before anything reads them.'),
  attack('20', 'A body that is not one JSON object in strict UTF-8 is 400.'),
  attack('21', 'Numbers that doubles cannot hold are refused; all others pass as written.'),
  attack('23', 'Ids are texts or integers, echoed as they came, and never cross between callers.'),
  attack('24', 'Methods are compared exactly, after decoding.'),
  attack('27', 'Params of another shape are refused before any rule is asked.'),
  attack('28', 'Only application/json in UTF-8 is read.'),
  attack('29', 'Mcp-Name that differs from the body is 400 with -32020.'),
  attack(
    '30',
    'Standard headers that are missing, repeated or differ from the body are 400 with -32020.',
  ),
  attack('31', 'A malformed encoding of Mcp-Name is refused and copied nowhere.'),
  attack('32', 'A name in canonical base64 goes along as it was sent.'),
  attack('33', 'A version that header and body do not share, or that is not carried, is 400.'),
  attack('34', 'A tool whose x-mcp-header annotations are invalid is neither listed nor callable.'),
  attack(
    '35',
    'Mcp-Param headers agree with the arguments by the pinned schema, or the call is 400.',
  ),
  attack('37', 'A token that nobody signed, or that the public key signed, is a 401.'),
  attack('38', 'A key id is only a name, and unknown ones do not drive requests to the issuer.'),
  attack('39', 'Headers of a token that bring a key are never trusted.'),
  attack('40', 'Only a token for exactly this resource, and for no other besides, passes.'),
  attack('41', 'Only access tokens call.'),
  attack('42', 'Times and claims are what they must be, and streams end with their token.'),
  attack('43', 'Critical extensions and encrypted tokens are refused.'),
  attack('44', 'Keys belong to one issuer.'),
  attack('45', 'A token past 8 KiB is refused unread.'),
  attack('46', 'Another spelling of a good token is refused.'),
  attack(
    '47',
    "The client's token reaches no upstream and no record, wherever the client puts it.",
  ),
  attack(
    '51',
    'Key sets that cannot be had are 503, and good keys serve on while an issuer is down.',
  ),
  attack('54', 'A definition that changes in any member is hidden, refused, recorded and counted.'),
  attack(
    '55',
    'A call rests on definitions verified within pinning.maxAge, though no client lists.',
  ),
  attack('56', 'What a caller may not know looks, to the byte, like what does not exist.'),
  attack(
    '57',
    'Every page of a list is filtered, a repeated name is lost, and an endless list verifies nothing.',
  ),
  attack('58', 'A definition shown to one caller counts for all.'),
  attack('59', 'A renamed tool is a new tool.'),
  attack(
    '67',
    'A result satisfies its approved schema or is withheld; text and structure are both cleaned.',
  ),
  attack('68', 'Secrets and personal data are removed from every carrier, also cut in two.'),
  attack('69', 'Secrets in common encodings are found.'),
  attack('70', 'Active content is made inert, and code stays code.'),
  attack('72', 'A secret that chunks or events cut in two never reaches a client whole.'),
  attack('75', 'A result is passed whole or refused whole.'),
  attack('76', 'An inspector that throws withholds what it should have read.'),
  attack('80', 'Errors of tools and pages of servers are cleaned or replaced.'),
  attack('81', "Another caller's session is as unknown as one that never was."),
  attack(
    '82',
    'What depends on the caller leaves as private, and no caller gets the list of another.',
  ),
  attack('85', 'A URI is matched in its normal form and forwarded as it came.'),
  attack('86', 'Each call is decided and recorded wholly under one version of the policies.'),
  attack('88', 'A deny wins over an allow in any order.'),
  attack(
    '89',
    'Nothing passes unrecorded while the audit cannot be written; it recovers by itself.',
  ),
  attack('90', 'Names from the wire stay within one escaped line of the audit and the log.'),
  attack('92', 'What a broken server says stands in no log, audit or metric.'),
  attack('94', 'An end under load answers what was taken and loses no line.'),
];
