// Which callers a rule speaks of. Identities are exact strings; keys are ANDed, members of a list ORed.
// Where a token leaves a caller's groups or a claim to another source, a rule that grants does not match
// and a rule that restricts does. Reads the verified principal only. Contract §4 (law 5).

import type { RuleDocument, WhoDocument } from './document.js';
import type { Principal } from './principal.js';

type Claim = string | number | boolean;

/** Compiles `who` into a test for a rule of this effect. A `who` without any key matches nobody. */
export function compileWho(
  who: WhoDocument,
  effect: RuleDocument['effect'],
): (principal: Principal) => boolean {
  const restricts = effect !== 'allow';
  const tests: ((principal: Principal) => boolean)[] = [];
  const { issuers, subjects, clients, groups, claims } = who;
  if (issuers !== undefined) tests.push(among(issuers, (principal) => principal.issuer));
  if (subjects !== undefined) tests.push(among(subjects, (principal) => principal.subject));
  if (clients !== undefined) tests.push(among(clients, (principal) => principal.client));
  if (groups !== undefined) {
    const named = new Set(groups);
    tests.push((principal) =>
      principal.areGroupsUnknown === true
        ? restricts
        : principal.groups.some((group) => named.has(group)),
    );
  }
  for (const [name, values] of Object.entries(claims ?? {})) {
    tests.push(claimAmong(name, values, restricts));
  }
  if (tests.length === 0 && who.anyone !== true) return () => false;
  return (principal) => tests.every((test) => test(principal));
}

function among(
  names: readonly string[],
  read: (principal: Principal) => string,
): (principal: Principal) => boolean {
  const named = new Set(names);
  return (principal) => named.has(read(principal));
}

/** A claim that is a list matches when one of its elements does. */
function claimAmong(
  name: string,
  values: readonly Claim[],
  restricts: boolean,
): (principal: Principal) => boolean {
  const named = new Set<unknown>(values);
  return (principal) => {
    if (isElsewhere(principal, name)) return restricts;
    const claim = Object.hasOwn(principal.claims, name) ? principal.claims[name] : undefined;
    return Array.isArray(claim) ? claim.some((element) => named.has(element)) : named.has(claim);
  };
}

/** The token names a source for the claim and not the claim (OpenID Connect Core §5.6.2). */
function isElsewhere({ claims }: Principal, name: string): boolean {
  if (Object.hasOwn(claims, name) || !Object.hasOwn(claims, '_claim_names')) return false;
  const sources = claims['_claim_names'];
  return typeof sources === 'object' && sources !== null && Object.hasOwn(sources, name);
}
