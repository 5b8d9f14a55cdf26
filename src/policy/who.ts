// Which callers a rule speaks of. Identities are exact strings; keys are ANDed, members of a list ORed.
// Reads the verified principal only. Contract §4.

import type { WhoDocument } from './document.js';
import type { Principal } from './principal.js';

type Claim = string | number | boolean;

/** Compiles `who` into a test. A `who` without any key matches nobody. */
export function compileWho(who: WhoDocument): (principal: Principal) => boolean {
  const tests: ((principal: Principal) => boolean)[] = [];
  const { issuers, subjects, clients, groups, claims } = who;
  if (issuers !== undefined) tests.push(among(issuers, (principal) => principal.issuer));
  if (subjects !== undefined) tests.push(among(subjects, (principal) => principal.subject));
  if (clients !== undefined) tests.push(among(clients, (principal) => principal.client));
  if (groups !== undefined) {
    const named = new Set(groups);
    tests.push((principal) => principal.groups.some((group) => named.has(group)));
  }
  for (const [name, values] of Object.entries(claims ?? {})) tests.push(claimAmong(name, values));
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
function claimAmong(name: string, values: readonly Claim[]): (principal: Principal) => boolean {
  const named = new Set<unknown>(values);
  return (principal) => {
    const claim = Object.hasOwn(principal.claims, name) ? principal.claims[name] : undefined;
    return Array.isArray(claim) ? claim.some((element) => named.has(element)) : named.has(claim);
  };
}
