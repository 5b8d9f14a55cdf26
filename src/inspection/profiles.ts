// Combines inspection profiles into the strictest of them: a rule may ask for a stricter profile than its
// upstream's, never for a laxer one (docs/contract.md §4, law 3).

import type { InspectionProfile } from '../config/settings.js';

export type Profile = InspectionProfile;

const SEVERITY = ['off', 'flag', 'redact', 'neutralize', 'strip', 'block'] as const;

function stricter<Action extends (typeof SEVERITY)[number]>(one: Action, other: Action): Action {
  return SEVERITY.indexOf(other) > SEVERITY.indexOf(one) ? other : one;
}

/** The stricter action of each detector family; the kinds of personal data are united. */
export function strictestProfile(one: Profile, other: Profile): Profile {
  const { result: a } = one;
  const { result: b } = other;
  return {
    name: one.name === other.name ? one.name : `${one.name}+${other.name}`,
    request: { secrets: stricter(one.request.secrets, other.request.secrets) },
    result: {
      secrets: stricter(a.secrets, b.secrets),
      pii: {
        action: stricter(a.pii.action, b.pii.action),
        kinds: [...new Set([...activeKinds(a), ...activeKinds(b)])],
      },
      activeContent: stricter(a.activeContent, b.activeContent),
      invisible: stricter(a.invisible, b.invisible),
      injection: stricter(a.injection, b.injection),
    },
  };
}

function activeKinds(rules: Profile['result']): Profile['result']['pii']['kinds'] {
  return rules.pii.action === 'off' ? [] : rules.pii.kinds;
}
