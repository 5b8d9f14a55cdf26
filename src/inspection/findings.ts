// What detectors found in one message (detector, path, count and action), and the profiles that say what is done about
// it. Findings never contain the content that was found, nor a member name of the message that could itself carry such
// content. docs/contract.md, law 3.

import type { InspectionProfile } from '../config/settings.js';
import type { Finding } from '../policy/record.js';
import type { Json } from '../protocol/jsonrpc.js';
import { stricterKind } from './content-kind.js';
import { findSensitive, type NoteFinding, type WantedKinds } from './detectors/text-sanitizer.js';
import type { SentCredentials } from './detectors/upstream-credentials.js';

/** Findings beyond this number are counted under the empty path, which denotes the whole message. */
const MAX_FINDINGS = 64;
const PLAIN_STEP = /^[A-Za-z_$][A-Za-z_.$-]{0,31}$/;

export type FindingLog = {
  add(steps: readonly (string | number)[], note: NoteFinding | DropNote): void;
  list(): Finding[];
};

type DropNote = {
  readonly detector: string;
  readonly action: 'drop' | 'block';
  readonly count: number;
};

/** Creates the log of one message. No path in it contains one of the gateway's own credentials. */
export function createFindingLog(
  direction: Finding['direction'],
  ownCredentials?: SentCredentials | undefined,
): FindingLog {
  const found = new Map<string, Finding>();
  return {
    add(steps, { detector, action, count }) {
      const path = found.size < MAX_FINDINGS ? publicPointer(steps, ownCredentials) : '';
      const key = `${detector} ${action} ${path}`;
      const known = found.get(key)?.count ?? 0;
      found.set(key, { detector, direction, path, count: known + count, action });
    },
    list: () => [...found.values()],
  };
}

/** A JSON pointer that keeps array indexes and plain names without a secret; every other name becomes `*`. */
function publicPointer(steps: readonly (string | number)[], ownCredentials: SentCredentials | undefined): string {
  const wanted: WantedKinds = { secrets: true, pii: [], own: ownCredentials };
  let pointer = '';
  for (const step of steps) {
    const isPlain = typeof step === 'number' || (PLAIN_STEP.test(step) && findSensitive(step, wanted).length === 0);
    pointer += `/${isPlain ? step : '*'}`;
  }
  return pointer;
}

/** The findings as the caller sees them in `_meta["dev.sallyport/findings"]` (docs/reference/responses.md). */
export function publicFindings(findings: readonly Finding[]): Json {
  return findings.map(({ detector, path, count, action }) => ({ detector, path, count, action }));
}

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
    request: {
      ...stricterMarks(one.request, other.request),
      secrets: stricter(one.request.secrets, other.request.secrets),
      links: stricter(one.request.links ?? 'flag', other.request.links ?? 'flag'),
    },
    result: {
      secrets: stricter(a.secrets, b.secrets),
      links: stricter(a.links ?? 'flag', b.links ?? 'flag'),
      pii: {
        action: stricter(a.pii.action, b.pii.action),
        kinds: [...new Set([...activeKinds(a), ...activeKinds(b)])],
      },
      activeContent: stricter(a.activeContent, b.activeContent),
      invisible: stricter(a.invisible, b.invisible),
      injection: stricter(a.injection, b.injection),
      kind: stricterKind(a.kind, b.kind),
    },
  };
}

function stricterMarks(
  { marks: one }: Profile['request'],
  { marks: other }: Profile['request'],
): Pick<Profile['request'], 'marks'> {
  if (one === undefined) return other === undefined ? {} : { marks: other };
  return { marks: other === undefined ? one : stricter(one, other) };
}

function activeKinds(rules: Profile['result']): Profile['result']['pii']['kinds'] {
  return rules.pii.action === 'off' ? [] : rules.pii.kinds;
}
