// What `replay` and `explain decision` say where the record of a call does not tell how it would be decided now: which fact
// is missing, and how it would be recorded. docs/reference/commands.md#test-explain-and-replay; docs/reference/audit.md.

import type { RecordedCall } from '../../audit/recorded.js';
import type { KnownVerdict } from '../../policy/explain.js';
import { makeVisible } from '../../text/escaping.js';
import { firstOf } from '../../text/wording.js';

type Unknown = Extract<KnownVerdict, { readonly verdict: 'unknown' }>;
type Cause = Unknown['causes'][number];

const MAX_NAMED = 6;

/** Why a line says too little for any decision. */
export const MISSING_TEXTS: { readonly [missing in NonNullable<RecordedCall['missing']>]: string } = {
  issuer: 'an issuer of another URL than those of the gateway file',
  upstream: 'an upstream that the gateway file does not have',
  name: 'a name that was recorded in part only, because it is not pinned',
};

const NAMES: { readonly [cause in Cause]: string } = {
  arguments: 'the values of arguments',
  validity: 'whether the definition admits the arguments',
  subject: 'the subject of the caller',
  client: 'the client of the caller',
  groups: 'the groups of the caller',
  claims: 'other claims of the caller',
  scopes: 'all scopes of the token',
  content: 'what the server request contained',
  findings: 'what inspection found',
};

/** The facts that are missing, in words. */
export function describeCauses({ causes, pointers = [] }: Unknown): string {
  const named = pointers.length === 0 ? NAMES.arguments : `the argument ${firstOf(pointers, MAX_NAMED)}`;
  return causes.map((cause) => (cause === 'arguments' ? named : NAMES[cause])).join(', ');
}

const SHADOW = 'try these policies in shadow (mode: shadow), where each call is decided with all that it has';

/** How the missing facts would be known the next time, one line each. */
export function adviceFor({ causes, pointers = [] }: Unknown): readonly string[] {
  return causes.map((cause) => {
    switch (cause) {
      case 'arguments': {
        const capture = pointers.length === 0 ? ['/NAME'] : pointers;
        return `values of arguments are recorded where a require rule captures them, audit: {capture: [${firstOf(capture, MAX_NAMED)}]}; or ${SHADOW}`;
      }
      case 'groups':
        return `a group of a caller is recorded when a rule in force that names it decides; to know all, ${SHADOW}`;
      case 'scopes':
        return `of opaque tokens not every scope is known later; ${SHADOW}`;
      default:
        return `${NAMES[cause]}: never recorded; ${SHADOW}`;
    }
  });
}

/** The lines for a person; empty without any. */
export function renderAdvice(lines: readonly string[]): string {
  return lines.length === 0
    ? ''
    : `to know it the next time:\n${lines.map((line) => `  ${makeVisible(line)}\n`).join('')}`;
}
