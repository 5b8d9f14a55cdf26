// Finds secrets in one text: by the shapes of secret-formats.ts, and by a name that says "secret"
// beside a value that looks random. Never changes a text and never keeps what it found.

import { SECRET_FORMATS, type SecretCheck, type SecretFormat } from './secret-formats.js';
import {
  isJwt,
  isMixed,
  isPlaceholder,
  isRealPassword,
  isSecretName,
  isSecretValue,
} from './secret-values.js';

/** A stretch of a text that holds something to be removed. */
export type Hit = { readonly kind: string; readonly start: number; readonly end: number };

/** The kind of a value that is a secret by its name. */
export const NAMED_SECRET = 'secret';

const ACCEPTS: { readonly [check in SecretCheck]: (value: string) => boolean } = {
  none: () => true,
  mixed: isMixed,
  jwt: isJwt,
  'key-body': (value) => !/\.{3}|x{4}|<|example/i.test(value),
  password: isRealPassword,
};

// Group 1 is the name, group 2 the value, which ends the match. A name is read to its start by hand.
const ASSIGNMENT =
  /(password|passwd|passphrase|pwd|secret|token|credentials?|key)["'`\\]{0,4}\s{0,4}(?::=|=>|[:=])\s{0,4}["'`\\]{0,4}([^\s"'`<>,;()[\]{}\\]{8,256})/gi;

const MAX_NAME_CHARS = 64;

/** Secrets of the formats given, without overlaps resolved. Linear in the text for each format. */
export function findFormats(
  text: string,
  formats: readonly SecretFormat[] = SECRET_FORMATS,
): Hit[] {
  const hits: Hit[] = [];
  for (const format of formats) {
    const { pattern } = format;
    pattern.lastIndex = 0;
    for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
      const secret = match[1] ?? match[0];
      const end = match.index + match[0].length;
      if (ACCEPTS[format.check](secret)) {
        hits.push({ kind: format.kind, start: end - secret.length, end });
      }
    }
  }
  return hits;
}

/** Values behind names that say "secret", in prose, code, query strings and configuration. */
export function findAssignments(text: string): Hit[] {
  const hits: Hit[] = [];
  ASSIGNMENT.lastIndex = 0;
  for (let match = ASSIGNMENT.exec(text); match !== null; match = ASSIGNMENT.exec(text)) {
    const value = (match[2] ?? '').split('&', 1)[0] ?? '';
    const start = match.index + match[0].length - (match[2] ?? '').length;
    const name = nameEndingAt(text, match.index + (match[1] ?? '').length);
    if (isSecretName(name) && isSecretValue(value)) {
      hits.push({ kind: NAMED_SECRET, start, end: start + value.length });
    } else {
      // The value may itself hold a name and a value.
      ASSIGNMENT.lastIndex = match.index + (match[1] ?? '').length;
    }
  }
  return hits;
}

function nameEndingAt(text: string, end: number): string {
  let start = end;
  while (
    start > 0 &&
    end - start < MAX_NAME_CHARS &&
    /[A-Za-z0-9_-]/.test(text.charAt(start - 1))
  ) {
    start--;
  }
  return text.slice(start, end);
}

/** All secrets of a text. `name` is the member name that the text stands behind, if any. */
export function findSecrets(text: string, name?: string, formats?: readonly SecretFormat[]): Hit[] {
  const hits = findFormats(text, formats);
  for (const hit of findAssignments(text)) hits.push(hit);
  if (name !== undefined && isSecretName(name) && isSecretValue(text)) {
    hits.push({ kind: NAMED_SECRET, start: 0, end: text.length });
  }
  return hits;
}

/** True for a number of eight digits or more behind a name that says "secret" (not behind a count). */
export function isSecretNumber(digits: string, name: string | undefined): boolean {
  if (name === undefined || digits.length < 8 || isPlaceholder(digits)) return false;
  return isSecretName(name) && !/token$/i.test(name);
}
