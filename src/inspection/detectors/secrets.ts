// Finds secrets in one text: by the formats of secret-formats.ts, and by a random value after a name that denotes
// a secret. A secret is found from its first to its last character, whatever its length. Never changes a text and
// never keeps what it found. Source: the ways in which code, configuration and documentation write such values.

import { countUnexplained, hasRandomWindow, isPublishedSample } from './sample-secrets.js';
import { SECRET_FORMATS, type SecretFormat } from './secret-formats.js';

/** Endings of member, variable and label names that denote a secret. */
const SECRET_NAME =
  /(?:^|[^a-z])(?:password|passwd|passphrase|pwd|secret|api[_\- ]?key|apikey|access[_\- ]?key|private[_\- ]?key|secret[_\- ]?key|client[_\- ]?secret|auth[_\- ]?token|access[_\- ]?token|refresh[_\- ]?token|bearer[_\- ]?token|api[_\- ]?token|token|credentials?)$/i;

/** Names of tokens that only continue a list or protect a form. */
const HARMLESS_NAME =
  /(?:next|page|pagination|continuation|cursor|sync|delta|csrf|xsrf|progress|max|count|public)[_\- ]?(?:page)?[_\- ]?(?:token|key|secret)$/i;

/** Whether the name of a member, variable or label denotes a secret. */
export function isSecretName(name: string): boolean {
  const spaced = name.replace(/([a-z0-9])([A-Z])/g, '$1_$2');
  return SECRET_NAME.test(spaced) && !HARMLESS_NAME.test(spaced);
}

/** A cheap check that excludes paths, URLs and times. */
function mayBeSecretValue(value: string): boolean {
  if (value.length < MIN_NAMED_CHARS) return false;
  return !/^(?:https?:\/\/|\/|\.\/|~\/)/.test(value) && !/^\d{4}-\d\d-\d\dT/.test(value);
}

// Whether a value after a secret's name looks like a secret rather than a word, a type or a sample. `next` is the
// character after it.
function isSecretValue(value: string, next = ''): boolean {
  if (!mayBeSecretValue(value) || /\s/.test(value)) return false;
  if (!/\d/.test(value) || !/[A-Za-z]/.test(value)) return false;
  const unexplained = { vocabulary: 'sample', unexplained: MIN_NAMED_UNEXPLAINED } as const;
  if (!hasRandomWindow(value, MIN_NAMED_CHARS, unexplained)) return false;
  return !isReference(value, next) && !isPublishedSample(value);
}

const MIN_NAMED_CHARS = 8;
/** Characters of such a stretch that must belong to no sample word. */
const MIN_NAMED_UNEXPLAINED = 3;

const CALLED = /^[A-Za-z_$][\w$]*(?:(?:\.|::|->)[A-Za-z_$][\w$]*)*$/;
const VARIABLE =
  /^(?:\$\{{1,2}[^{}]*\}{1,2}|\$[A-Za-z_][A-Za-z0-9_]*|\{\{[^{}]*\}\}|<[^<>]*>|%\([^()]*\)s|\[redacted:[a-z-]+\])$/;
const ENVIRONMENT_REFERENCE =
  /^(?:process\.env|import\.meta\.env|os\.environ|os\.getenv|env|secrets|vars|config|settings|self|this|args|options)\.[A-Za-z_]/;

// Whether a value is code that refers to a secret: a call, a variable or a member. Its parts must be words, so
// that it cannot hide a value.
function isReference(value: string, next: string): boolean {
  const isCall =
    (next === '(' || next === '[') && CALLED.test(value) && /[._]|::|->|[a-z][A-Z]/.test(value);
  if (!isCall && !VARIABLE.test(value) && !ENVIRONMENT_REFERENCE.test(value)) return false;
  const letters = value.replace(/\d{1,3}/g, '');
  return !hasRandomWindow(letters, MIN_NAMED_CHARS, {
    vocabulary: 'any',
    unexplained: MIN_NAMED_UNEXPLAINED + 1,
  });
}

/** Common placeholders. A password shorter than SHORT_PASSWORD needs only one unexplained character. */
const USUAL_PASSWORD = /^(?:pass|pwd|pw|user|admin|root|postgres|guest|test|xxx|abc|foo|bar)$/i;
const SHORT_PASSWORD = 6;

/** Whether a password in a URL or connection string is none of the usual samples. */
function isRealPassword(value: string): boolean {
  if (USUAL_PASSWORD.test(value) || isReference(value, '')) return false;
  const unexplained = countUnexplained(value);
  return unexplained > 2 || (unexplained > 0 && value.length < SHORT_PASSWORD);
}

/** The span of something found in a text. */
export type Hit = { readonly kind: string; readonly start: number; readonly end: number };

/** The kind of a value that is a secret because of its name. */
export const NAMED_SECRET = 'secret';

// Group 1 is the end of the name, group 2 the start of the value; code extends both to their full length.
const ASSIGNMENT =
  /(password|passwd|passphrase|pwd|secret|token|credentials?|key)["'`\\]{0,16}\s{0,4}(?::=|=>|[:=])\s{0,4}["'`\\]{0,16}([^\s"'`<>,;()[\]{}\\]{8,256})/gi;
const VALUE_UNIT = /[^\s"'`<>,;()[\]{}\\&]/;

const MAX_NAME_CHARS = 64;

/** Secrets of the given formats; hits may overlap. Linear in the text for each format. */
export function findFormats(
  text: string,
  formats: readonly SecretFormat[] = SECRET_FORMATS,
): Hit[] {
  const hits: Hit[] = [];
  for (const format of formats) {
    const { pattern, kind } = format;
    pattern.lastIndex = 0;
    for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
      const matched = match.index + match[0].length;
      const start = startOf(text, matched - (match[1] ?? match[0]).length, format);
      const end = endOf(text, matched, format);
      // The whole candidate is checked once, so the search continues after it.
      pattern.lastIndex = Math.max(end, matched);
      const value = text.slice(start, end);
      if (mayBegin(text, start, value, format) && isSecretMatch(value, format)) {
        hits.push({ kind, start, end });
      }
    }
  }
  return hits;
}

const RUN_BEFORE = /[A-Za-z0-9+/]{15}[A-Za-z0-9]$/;
const RUN_CHARS = 16;

/** False where a short prefix occurs by chance within encoded bytes. Words before it are not encoded bytes. */
function mayBegin(text: string, start: number, value: string, format: SecretFormat): boolean {
  const { hasShortPrefix, behindLetters } = format;
  if (hasShortPrefix !== true || start === 0) return true;
  if (!/[A-Za-z0-9]/.test(text.charAt(start - 1))) return true;
  if (behindLetters !== undefined && !behindLetters.test(value)) return false;
  const before = text.slice(Math.max(0, start - RUN_CHARS), start);
  const isWithin = RUN_BEFORE.test(before);
  return !isWithin || !hasRandomWindow(before, RUN_CHARS, { vocabulary: 'any', unexplained: 8 });
}

function startOf(text: string, from: number, { before }: SecretFormat): number {
  let start = from;
  if (before !== undefined) while (start > 0 && before.test(text.charAt(start - 1))) start--;
  return start;
}

function endOf(text: string, from: number, { check, tail }: SecretFormat): number {
  if (check === 'pem') return keyEnd(text, from, tail);
  let end = from;
  while (end < text.length && tail.test(text.charAt(end))) end++;
  return end;
}

const KEY_BEGINS = '-----BEGIN ';
const KEY_ENDS = '-----END ';
const DASHES = '-----';
const MAX_KEY_CHARS = 64 * 1024;

/** End of a PEM key: after its END line, else before the first character that cannot be part of a key. */
function keyEnd(text: string, from: number, tail: RegExp): number {
  const body = text.slice(from, from + MAX_KEY_CHARS);
  const end = body.indexOf(KEY_ENDS);
  const next = body.indexOf(KEY_BEGINS);
  if (end >= 0 && (next < 0 || end < next)) {
    const last = body.indexOf(DASHES, end + KEY_ENDS.length);
    // A truncated END line must not take the dashes of the next key.
    if (last >= 0 && last === next) return from + next;
    return from + (last < 0 ? end + KEY_ENDS.length : last + DASHES.length);
  }
  let at = from;
  while (at < text.length && tail.test(text.charAt(at))) at++;
  return at;
}

/** The value without its anchor, which is the same in samples and in secrets. */
function withoutPrefix(value: string, { anchors }: SecretFormat): string {
  const start = value.slice(0, MAX_ANCHOR_CHARS).toLowerCase();
  return value.slice(anchors.find((anchor) => start.startsWith(anchor))?.length ?? 0);
}

const MAX_ANCHOR_CHARS = 24;

/** Share of characters that a random value has outside words and patterns; written text has fewer. */
const RANDOM_RATIO = 1 / 3;
/** A short stretch may contain words by chance, so one unexplained character in eight suffices. */
const SHORT_WINDOW = 24;
const SHORT_RATIO = 0.125;

function isSecretMatch(value: string, format: SecretFormat): boolean {
  const { check, window, hasNoDictionaryTerms } = format;
  if (check === 'password') return isRealPassword(value);
  const vocabulary = hasNoDictionaryTerms === true ? 'sample' : 'strict';
  const unexplained = Math.ceil(window * (window <= SHORT_WINDOW ? SHORT_RATIO : RANDOM_RATIO));
  if (check === 'random') {
    const isRandom = hasRandomWindow(withoutPrefix(value, format), window, {
      vocabulary,
      unexplained,
    });
    return isRandom && !isPublishedSample(value);
  }
  const body = value.replace(/-----[^-]{1,80}-----|\\[nrt]|\s/g, '');
  return body.length >= window && hasRandomWindow(body, window, { vocabulary, unexplained });
}

/** Finds values after names that denote secrets, in prose, code, query strings and configuration. */
export function findAssignments(text: string): Hit[] {
  const hits: Hit[] = [];
  ASSIGNMENT.lastIndex = 0;
  for (let match = ASSIGNMENT.exec(text); match !== null; match = ASSIGNMENT.exec(text)) {
    const nameEnd = match.index + (match[1] ?? '').length;
    const start = match.index + match[0].length - (match[2] ?? '').length;
    // The value may itself contain a name and a value.
    ASSIGNMENT.lastIndex = nameEnd;
    if (!isSecretName(nameEndingAt(text, nameEnd)) || !mayBeSecretValue(match[2] ?? '')) continue;
    const end = valueEnd(text, start);
    const isSecret = isSecretValue(text.slice(start, end), text.charAt(end));
    if (isSecret) hits.push({ kind: NAMED_SECRET, start, end });
    if (isSecret || end - start > MAX_REREAD_CHARS) ASSIGNMENT.lastIndex = end;
  }
  return hits;
}

/** A longer value that was checked as a whole is not searched again. */
const MAX_REREAD_CHARS = 256;

function valueEnd(text: string, start: number): number {
  let end = start;
  while (end < text.length && VALUE_UNIT.test(text.charAt(end))) end++;
  return end;
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

/** All secrets of a text. `name` is the member name before the text, if any. */
export function findSecrets(text: string, name?: string, formats?: readonly SecretFormat[]): Hit[] {
  const hits = findFormats(text, formats);
  for (const hit of findAssignments(text)) hits.push(hit);
  if (name !== undefined && isSecretName(name) && isSecretValue(text)) {
    hits.push({ kind: NAMED_SECRET, start: 0, end: text.length });
  }
  return hits;
}

/** Whether a number of eight digits or more is a secret because of its name. Token counts are not. */
export function isSecretNumber(digits: string, name: string | undefined): boolean {
  if (name === undefined || digits.length < 8 || countUnexplained(digits) < 4) return false;
  return isSecretName(name) && !/token$/i.test(name);
}
