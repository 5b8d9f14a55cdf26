// The inspection profile of one exchange: the upstream's own, made stricter by what rules ask for.

import { type Profile, strictestProfile } from '../inspect/profile.js';
import type { OwedByAnswer } from '../settle/settle.js';
import type { Call } from './call.js';

/** The strictest of the upstream's profile and those that require rules name. */
export function profileOf(call: Call, owed: OwedByAnswer | undefined): Profile {
  let { profile } = call.view;
  for (const name of owed?.profiles ?? []) {
    const named = call.view.profiles.get(name);
    if (named === undefined)
      throw new Error('a rule names an inspection profile that is not configured');
    profile = strictestProfile(profile, named);
  }
  return profile;
}
