// Refuses verified callers who were revoked. It stands behind the verification and before whoever asks
// for it, and keeps nothing: a verdict that is remembered is judged again at every request.

import type { Principal } from '../policy/principal.js';
import type { AuthnReason } from './claims.js';
import { type Authenticator, type AuthnOutcome, isAuthnError } from './verify.js';

/** The same authenticator, but for those of whom `judge` says why they are refused. */
export function refuseRevoked(
  inner: Authenticator,
  check: (principal: Principal) => AuthnReason | undefined,
): Authenticator {
  function refuse(outcome: AuthnOutcome): AuthnOutcome {
    if (isAuthnError(outcome)) return outcome;
    const reason = check(outcome);
    return reason === undefined ? outcome : { reason };
  }
  return {
    authenticate(credentials, acceptance) {
      const outcome = inner.authenticate(credentials, acceptance);
      return outcome instanceof Promise ? outcome.then(refuse) : refuse(outcome);
    },
  };
}
