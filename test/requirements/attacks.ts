// What the running gateway does with each attack of the reference: the number of the id is its number.

import type { Requirement } from './requirement.js';

function attack(number: string, behaviour: string): Requirement {
  return { id: `X-${number}`, source: `attacks ${Number(number)}`, behaviour };
}

export const attackRequirements: readonly Requirement[] = [
  attack('01', 'Content-Length beside Transfer-Encoding is 400, and the connection is closed.'),
  attack('04', 'Two credentials in one request are a 401; none of them wins.'),
  attack('12', 'A compressed answer is refused and never inflated.'),
  attack('14', 'A redirect of an upstream is never followed.'),
  attack(
    '17',
    'Members of one name, or of names that fold to one, are refused in both directions.',
  ),
  attack('29', 'Mcp-Name that differs from the body is 400 with -32020.'),
  attack('37', 'A token that nobody signed, or that the public key signed, is a 401.'),
  attack('40', 'Only a token for exactly this resource, and for no other besides, passes.'),
  attack(
    '47',
    "The client's token reaches no upstream and no record, wherever the client puts it.",
  ),
  attack('54', 'A definition that changes in any member is hidden, refused, recorded and counted.'),
  attack(
    '55',
    'A call rests on definitions verified within pinning.maxAge, though no client lists.',
  ),
  attack('68', 'Secrets and personal data are removed from every carrier, also cut in two.'),
  attack('72', 'A secret that chunks or events cut in two never reaches a client whole.'),
  attack('76', 'An inspector that throws withholds what it should have read.'),
  attack('81', "Another caller's session is as unknown as one that never was."),
  attack(
    '82',
    'What depends on the caller leaves as private, and no caller gets the list of another.',
  ),
  attack('86', 'Each call is decided and recorded wholly under one version of the policies.'),
  attack(
    '89',
    'Nothing passes unrecorded while the audit cannot be written; it recovers by itself.',
  ),
];
