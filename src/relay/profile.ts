// The inspection profile of one exchange: the upstream's own, made stricter by what rules ask for.

import { type Profile, strictestProfile } from '../inspect/profile.js';
import type { ResponseObligations } from '../settle/settle.js';
import type { Call } from './call.js';

/** The strictest of the upstream's profile and those that require rules name. */
export function profileOf(
  call: Call,
  responseObligations: ResponseObligations | undefined,
): Profile {
  let { profile } = call.snapshot;
  for (const name of responseObligations?.profiles ?? []) {
    const named = call.snapshot.profiles.get(name);
    if (named === undefined)
      throw new Error('a rule names an inspection profile that is not configured');
    profile = strictestProfile(profile, named);
  }
  return profile;
}
