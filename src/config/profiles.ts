// The inspection profiles that exist beside `default` without being written: `strict`, for content that strangers write,
// and `developer`, for people who need texts as they are. A profile of the same name in the gateway file takes the place
// of one of these. docs/guides/content.md shows what each does.

import { PII_KINDS } from './schema/gateway.js';
import type { InspectionProfile } from './settings.js';

const STRICT = {
  name: 'strict',
  request: { secrets: 'block', links: 'block', marks: 'block' },
  result: {
    secrets: 'redact',
    links: 'redact',
    pii: { action: 'redact', kinds: PII_KINDS },
    activeContent: 'neutralize',
    invisible: 'strip',
    injection: 'block',
  },
} as const;

const DEVELOPER = {
  name: 'developer',
  request: { secrets: 'block', links: 'flag' },
  result: {
    secrets: 'redact',
    links: 'flag',
    pii: { action: 'flag', kinds: PII_KINDS },
    activeContent: 'flag',
    invisible: 'flag',
    injection: 'flag',
  },
} as const;

/** By name; no file defines them. */
export const BUILT_IN_PROFILES: readonly InspectionProfile[] = Object.freeze([STRICT, DEVELOPER]);

/** The names of all profiles that exist, with those that the gateway file has. */
export function profileNames(written: Iterable<string>): readonly string[] {
  return [...new Set(['default', ...BUILT_IN_PROFILES.map(({ name }) => name), ...written])];
}
