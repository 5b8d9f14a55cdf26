// Finds the values of cookies that open a session, in the headers `Cookie` and `Set-Cookie` and wherever code, logs and
// commands write them. A cookie that only counts visits or keeps a choice is not a secret. Linear.
// Source: RFC 6265 §4.1.1 and §4.2.1; RFC 9110 §5.6.2 (tokens).

import type { Hit } from './hit.js';
import { COOKIE_NAME } from './known-names.js';
import { hasRandomWindow, isPublishedSample, withoutMarks } from './randomness.js';

/** The kind in placeholders and findings. */
const COOKIE = 'cookie';

const HEADER = /(set-)?cookies?(?:["'`\\]{0,16}\s{0,4}[:=]\s{0,4}|\s{1,4})["'`\\]{0,16}/gi;
const PAIR = /[ \t]{0,8}([A-Za-z0-9!#$%&'*+.^_`|~-]{1,128})=("?)([^\s;,"'`\\<>]{0,8192})\2[ \t]{0,8}/y;

/** Whether a member of this name holds cookies. */
export function isCookieName(name: string): boolean {
  return COOKIE_NAME.test(name);
}

/** The values of cookies in a text; `name` is the member that holds it, if any. */
export function findCookies(text: string, name?: string): Hit[] {
  const hits: Hit[] = [];
  const own = name === undefined ? null : COOKIE_NAME.exec(name);
  if (own !== null) readPairs(text, 0, own[1] !== undefined, hits);
  HEADER.lastIndex = 0;
  for (let match = HEADER.exec(text); match !== null; match = HEADER.exec(text)) {
    // The header may stand in prose: `the cookie sid=...`.
    HEADER.lastIndex = readPairs(text, HEADER.lastIndex, match[1] !== undefined, hits);
  }
  return hits;
}

/** Reads the pairs of a header; of `Set-Cookie` the first, which attributes follow. Returns where they end. */
function readPairs(text: string, from: number, isOne: boolean, hits: Hit[]): number {
  let at = from;
  for (;;) {
    PAIR.lastIndex = at;
    const pair = PAIR.exec(text);
    if (pair === null) return at;
    const [all, name = '', quote = '', value = ''] = pair;
    const start = at + all.indexOf('=') + 1 + quote.length;
    if (isSessionCookie(name, value)) hits.push({ kind: COOKIE, start, end: start + value.length });
    at += all.length;
    if (isOne || text.charAt(at) !== ';') return at;
    at++;
  }
}

/** What counts visits, keeps a choice or protects a form. */
const HARMLESS =
  /^(?:_ga|_gid|_gat|_gcl|_gac|_fbp|_fbc|_hj|_pk_|_uet|__utm|_clck|_clsk|ajs_|amp_|optimizely|intercom-|mp_|ph_|datadome)|(?:csrf|xsrf)|(?:lang|language|locale|theme|tz|timezone|consent|currency|country|region|version|experiment|visitor|device|variant)/i;
const MIN_VALUE_CHARS = 12;
const RANDOM_COOKIE = { vocabulary: 'any', unexplained: 8 } as const;

function isSessionCookie(name: string, written: string): boolean {
  const value = withoutMarks(written);
  if (value.length < MIN_VALUE_CHARS || HARMLESS.test(name)) return false;
  if (!/\d/.test(value) || !/[A-Za-z]/.test(value)) return false;
  return hasRandomWindow(value, MIN_VALUE_CHARS, RANDOM_COOKIE) && !isPublishedSample(value);
}
