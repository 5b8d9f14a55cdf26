// Who may open the admin listener: a token of a configured admin issuer, for the admin audience, whose
// groups hold a role. The same verification as for callers, with an audience of its own.

import type { AuthnError } from '../authn/binding.js';
import { type Authenticator, isAuthnError } from '../authn/verify.js';
import type { AdminSettings } from '../config/settings.js';
import type { AdminPorts } from '../console/admin-server.js';
import type { AdminRole } from '../console/revocation-api.js';

const ROLES: readonly AdminRole[] = ['viewer', 'reviewer', 'admin'];
const NOTHING_REPEATED: ReadonlySet<string> = new Set();

/**
 * Verifies an admin's headers: `undefined` for a token that is not accepted, `unavailable` where nobody can tell
 * now, because keys or revocations cannot be had.
 */
export function createAdminAccess(
  admin: AdminSettings,
  authenticator: () => Authenticator,
): AdminPorts['authenticateAdmin'] {
  // One frozen acceptance: what was verified is remembered by it.
  const acceptance = Object.freeze({
    name: 'admin',
    issuers: Object.keys(admin.issuers),
    audiences: Object.fromEntries(
      Object.entries(admin.issuers).map(([name, { audience }]) => [name, [audience]]),
    ),
    resource: '',
  });
  return async (headers) => {
    const caller = await authenticator().authenticate(
      { headers, repeated: NOTHING_REPEATED, query: '' },
      acceptance,
    );
    if (isAuthnError(caller)) return isPassing(caller.reason) ? 'unavailable' : undefined;
    const granted = admin.issuers[caller.issuer]?.roles;
    if (granted === undefined) return undefined;
    const roles = ROLES.filter((role) =>
      granted[role].some((group) => caller.groups.includes(group)),
    );
    return { subject: caller.subject, roles };
  };
}

/** A fault that says nothing of the token: a 401 would send its holder into logging in again. */
function isPassing(reason: AuthnError['reason']): boolean {
  return reason === 'keys-unavailable' || reason === 'store-unavailable';
}
