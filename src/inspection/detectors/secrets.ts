// Finds secrets in one text: by the formats of secret-formats.ts, and by a random value after a name that denotes a
// secret. A secret is found from its first to its last character, whatever its length. Documentation samples are told
// from random values: a value is a sample only where no stretch of it, as long as the shortest random part of its
// format, looks random, or where it is a published sample; a word next to a secret does not make it a sample. Linear.
// Never changes a text and never keeps what it found.
// Source: the ways in which code, configuration and documentation write such values; the sample credentials of the
// vendors' documentation, RFC 6749, RFC 7515 and jwt.io.

import { sha256Hex } from '../../pins/digest.js';
import { groupBy } from '../../text/grouping.js';
import type { Hit } from './hit.js';
import { withSignedLinks } from './links.js';
import { SECRET_FORMATS, type SecretFormat } from './secret-formats.js';

/** Endings of member, variable and label names that denote a secret. */
const SECRET_NAME =
  /(?:^|[^a-z])(?:password|passwd|passphrase|pwd|secret|api[_\- ]?key|apikey|access[_\- ]?key|private[_\- ]?key|secret[_\- ]?key|client[_\- ]?secret|auth[_\- ]?token|access[_\- ]?token|refresh[_\- ]?token|bearer[_\- ]?token|api[_\- ]?token|token|credentials?)$/i;

/** Names of tokens that only continue a list or protect a form. */
const HARMLESS_NAME =
  /(?:next|page|pagination|continuation|cursor|sync|delta|csrf|xsrf|progress|max|count|public|lock)[_\- ]?(?:page)?[_\- ]?(?:token|key|secret)$/i;

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
// character after it where it stands without quotes, as an expression does.
function isSecretValue(written: string, name: string, next?: string): boolean {
  const value = withoutMarks(written);
  if (!mayBeSecretValue(value) || /\s/.test(value)) return false;
  if (!/\d/.test(value) || !/[A-Za-z]/.test(value)) return false;
  const unexplained = { vocabulary: 'sample', unexplained: MIN_NAMED_UNEXPLAINED } as const;
  if (!hasRandomWindow(value, MIN_NAMED_CHARS, unexplained)) return false;
  const isPassword = PASSWORD_NAME.test(name);
  if (isResourceName(value, isPassword) || (!isPassword && isFileName(value))) return false;
  return !isReference(value, next) && !isPublishedSample(value);
}

/** People join words and numbers to passwords, but do not call them secret. */
const PASSWORD_NAME = /(?:password|passwd|passphrase|pwd)$/i;

const FILE_NAME =
  /^((?:[\w-]+\.)*[\w-]+)\.(?:p12|pfx|p7b|p8|jks|bks|keystore|truststore|pem|key|pub|crt|cer|csr|der|json5?|ya?ml|toml|ini|conf|cfg|env|properties|txt|asc|gpg|kdbx|md|xml|zip|go|js|ts|py|rb|php|java|cs|rs|sh)$/i;

/** Whether a value names a file in words. */
function isFileName(value: string): boolean {
  const stem = FILE_NAME.exec(value)?.[1];
  return stem?.split(PARTS).every(isPlainPart) ?? false;
}

const PARTS = /[-_.]/;
const WORD_PART = /^(?:[a-z]+|[A-Z][a-z]+|[A-Z]+)$/;
/** Words with a number behind them, or a number alone. */
const COUNTED_PART = /^((?:[A-Z]?[a-z]+|[A-Z]+)*)\d{0,5}$/;
const MIN_WORD_CHARS = 4;

/** Whether a part of a name is made of words, abbreviations and a number. */
function isPlainPart(part: string): boolean {
  const letters = COUNTED_PART.exec(part)?.[1];
  if (letters === undefined) return false;
  const terms = letters.match(/[A-Z]?[a-z]+|[A-Z]+/g) ?? [];
  return terms.every((word) => word.length < MIN_WORD_CHARS || isWord(word.toLowerCase()));
}

/** What a secret is called. */
const SECRET_WORD = /^(?:secrets?|tokens?|keys?|credentials?|creds?|passwords?)$/i;
/** What else is called in the names of resources that hold secrets. */
const RESOURCE_WORD =
  /^(?:regcred|certs?|certificates?|tls|ssl|ssh|rsa|auth|oauth|oidc|jwt|api|account|bootstrap|config)$/i;

/** Whether a value is words and small numbers joined by dashes that name a secret, such as `http-01-token`. */
function isResourceName(value: string, isPassword: boolean): boolean {
  const parts = value.split(PARTS);
  const isNamed = parts.some(
    (part) => SECRET_WORD.test(part) || (!isPassword && RESOURCE_WORD.test(part)),
  );
  if (!isNamed || parts.length < 3) return false;
  let named = 0;
  let digits = 0;
  for (const part of parts) {
    if (/^\d{1,5}$/.test(part)) digits += part.length;
    else if (!WORD_PART.test(part)) return false;
    else if (isWord(part.toLowerCase()) || RESOURCE_WORD.test(part)) named += part.length;
    else if (part.length > MAX_SHORT) return false;
  }
  return digits < named;
}

/** A value without the marks of redactions, whose tags look random. */
function withoutMarks(value: string): string {
  return value.includes('[redacted:') ? value.replace(REDACTION, '') : value;
}

const REDACTION = /\[redacted:[a-z0-9-]{1,40}(?:#[a-z2-7]{4})?\]/g;

/** The shortest value that counts because of its name; also the length of the stretch that has to look random. */
const MIN_NAMED_CHARS = 8;
/** Characters of that stretch that must belong to no sample word. */
const MIN_NAMED_UNEXPLAINED = 3;

const CALLED = /^[A-Za-z_$][\w$]*(?:(?:\.|::|->)[A-Za-z_$][\w$]*)*$/;
const VARIABLE =
  /^(?:\$\{{1,2}[^{}]*\}{1,2}|\$[A-Za-z_][A-Za-z0-9_]*|\{\{[^{}]*\}\}|<[^<>]*>|%\([^()]*\)s)$/;
const ENVIRONMENT_REFERENCE =
  /^(?:process\.env|import\.meta\.env|os\.environ|os\.getenv|env|secrets|vars|config|settings|self|this|args|options)\.[A-Za-z_]/;

// Whether a value is code that refers to a secret: a call, a composite literal, a variable or a member. Its parts must
// be words, so that it cannot hide a value.
function isReference(value: string, next: string | undefined): boolean {
  const isExpression =
    next !== undefined &&
    CALLED.test(value) &&
    COMPOUND_NAME.test(value) &&
    (/^[([{]/.test(next) ||
      (isNameOfSecret(value) && (/^[,;)]/.test(next) || value.includes('.'))));
  if (isExpression) {
    return (
      isMostlyTerms(value.replace(/[^A-Za-z]/g, ' ')) &&
      isPlainName(value.replace(ABBREVIATION, ''), MIN_NAMED_CHARS - 2)
    );
  }
  if (!VARIABLE.test(value) && !ENVIRONMENT_REFERENCE.test(value)) return false;
  return isPlainName(value);
}

/** A short run of capitals, or small letters behind a digit, between the words of an identifier. */
const ABBREVIATION = /(?<![A-Z])[A-Z]{2,5}(?=[A-Z][a-z]|[\d_.]|$)|(?<=\d)[a-z]{1,3}(?=[A-Z_.])/g;

/** A member of something, or several words in one identifier. */
const COMPOUND_NAME = /[._]|::|->|[a-z0-9][A-Z]/;

/** Whether an identifier, or the last member of a path, is itself called a secret. */
function isNameOfSecret(path: string): boolean {
  const name = path.split(/\.|::|->/).at(-1) ?? '';
  return isSecretName(name) || /(?:^|[a-z0-9_])(?:Pass|Pw|_pass|_pw)$|^(?:pass|pw)$/.test(name);
}

/** Whether a name consists of words, so that it hides no value. */
function isPlainName(value: string, unexplained = MIN_NAMED_UNEXPLAINED + 1): boolean {
  const letters = value.replace(/\d{1,3}/g, '');
  return !hasRandomWindow(letters, MIN_NAMED_CHARS, { vocabulary: 'any', unexplained });
}

/** Whether a text, up to the first blank, is longer than a digest and as random as a secret. */
export function isLongRandomRun(text: string): boolean {
  const run = /^\S*/.exec(text)?.[0] ?? '';
  if (run.length <= MAX_DIGEST_CHARS) return false;
  return hasRandomWindow(run, 24, { vocabulary: 'any', unexplained: 8 });
}

/** SHA-256 in hex. */
const MAX_DIGEST_CHARS = 64;

/** Passwords of examples, of the images of databases, and of local setups. */
const USUAL_PASSWORD =
  /^(?:pass|passw|pwd|pw|user|admin|root|postgres|guest|test|xxx|abc|xyz|foo|bar|app|db|dbpass|mysql|maria|mariadb|mongo|mongodb|redis|rabbit|rabbitmq|minio|minioadmin|elastic|neo4j|airflow|django|laravel|wordpress|grafana|keycloak|vagrant|docker|dev|prod|stage|me|hello|welcome|letmein|qwerty|hunter2|[0-9*x.\u2022-]{1,12})$/i;
const SHORT_PASSWORD = 6;

/** Variables and placeholders in a value. A default in `${NAME:-default}` is kept. */
const VARIABLES =
  /\$\{{1,2}[^{}]{0,128}\}{1,2}|\$\([^()]{0,128}\)|\$(?:env:)?[A-Za-z_]\w{0,63}|#\{[^{}]{0,128}\}|\{{1,2}[^{}]{0,128}\}{1,2}|\[[A-Za-z_ -]{1,64}\]|%\([^()]{0,64}\)[sd]|%[A-Za-z_]\w{0,63}%|%[sdv](?![0-9A-Za-z])/g;
const DEFAULT_VALUE = /^\$\{\w{1,64}:?[-=](.*)\}$/;

/**
 * Whether a password in a URL or connection string is none of the usual samples, no variable and not the user name.
 * Beside a mark, the password itself is gone: what is left must look like a secret on its own.
 */
function isRealPassword(written: string, user: string | undefined): boolean {
  const value = withoutMarks(written);
  if (value === '' || (value !== written && !isSecretValue(value, 'password'))) return false;
  if (user !== undefined && /^(?:anonymous|anon)$/i.test(user)) return false;
  if (user !== undefined && user.toLowerCase() === value.toLowerCase()) return false;
  const fixed = value.replace(VARIABLES, (variable) => {
    const byDefault = DEFAULT_VALUE.exec(variable)?.[1];
    if (byDefault !== undefined) return byDefault;
    return isPlainName(variable) ? '' : variable;
  });
  if (fixed === '' || USUAL_PASSWORD.test(fixed)) return false;
  if (isReference(value, undefined)) return false;
  const unexplained = countUnexplained(fixed);
  return unexplained > 2 || (unexplained > 0 && fixed.length < SHORT_PASSWORD);
}

/** The user name before the password of an address, or among the other settings of a connection string. */
function userOf(text: string, start: number): string | undefined {
  const before = text.slice(Math.max(0, start - MAX_USER_CHARS), start);
  const inAddress = /:\/\/([^\s/?#:@"'<>]{0,1000}):$/.exec(before)?.[1];
  if (inAddress !== undefined) return inAddress;
  const around = before + text.slice(start, start + MAX_USER_CHARS);
  return /(?:^|[;\s"'])(?:user id|userid|user name|username|user|uid)\s{0,2}=\s{0,2}([^;"'\s]{1,128})/i.exec(
    around,
  )?.[1];
}

const MAX_USER_CHARS = 1024;

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
      if (mayBegin(text, start, value, format) && isSecretMatch(text, start, value, format)) {
        hits.push({ kind, start, end });
      }
    }
  }
  return hits;
}

/** Encoded bytes: base64 and base64url. */
const ENCODED = /[A-Za-z0-9+/_-]/;
const RUN_CHARS = 16;
/** Before that many characters, zero bytes and pieces that look like words do not matter. */
const LONG_RUN_CHARS = 32;
const ZEROS_CHARS = 40;
const ZEROS_RATIO = 1 / 6;

/**
 * False where a short prefix occurs by chance within encoded bytes, which a font, a picture or a program in a text is.
 * Words before it are not encoded bytes.
 */
function mayBegin(text: string, start: number, value: string, format: SecretFormat): boolean {
  const { hasShortPrefix, behindLetters } = format;
  if (hasShortPrefix !== true) return true;
  const last = text.charAt(start - 1);
  const isBehindLetter = /[A-Za-z0-9]/.test(last);
  if (isBehindLetter && behindLetters !== undefined && !behindLetters.test(value)) return false;
  // A value of one case, such as hex, is no piece of longer base64.
  if (!hasBothCases(withoutPrefix(value, format))) return true;
  if (hasZeroBytes(value)) return false;
  // At the beginning of encoded bytes, four given characters are no chance.
  if (!ENCODED.test(last) && format.anchors.every(({ length }) => length > 3)) return true;
  if (goesOnEncoded(text, start, value)) return false;
  if (!isBehindLetter) return !/[+/]/.test(last) || !isLongEncoded(text, start);
  return !isWithinEncoded(text, start);
}

/** Whether encoded bytes stand directly before a position. */
function isWithinEncoded(text: string, start: number): boolean {
  if (isLongEncoded(text, start) || isInData(text, start)) return true;
  const before = text.slice(Math.max(0, start - RUN_CHARS), start);
  return before.length === RUN_CHARS && isEncodedRun(before);
}

function hasBothCases(value: string): boolean {
  return /[a-z]/.test(value) && /[A-Z]/.test(value);
}

function isEncodedRun(run: string): boolean {
  return /^[A-Za-z0-9+/]*$/.test(run) && hasRandomWindow(run, RUN_CHARS, ENCODED_BYTES);
}

const ENCODED_BYTES = { vocabulary: 'any', unexplained: 8 } as const;

/** Encoded zeros are a row of `A`; a random value has one in sixty characters. */
function hasZeroBytes(value: string): boolean {
  if (value.length < ZEROS_CHARS) return false;
  return value.split('A').length - 1 > value.length * ZEROS_RATIO;
}

/** Whether base64 that no token contains, a plus or a slash, stands behind a value, and goes on. */
function goesOnEncoded(text: string, start: number, value: string): boolean {
  const end = start + value.length;
  const sign = text.charAt(end);
  // No encoding has these signs beside dashes, underscores and points.
  if ((sign !== '+' && sign !== '/') || /[-_.]/.test(value)) return false;
  // Parts of a path or of a query are no encoding.
  if (sign === '/' && /[/=]/.test(text.charAt(start - 1))) return false;
  const behind = text.slice(end + 1, end + 1 + RUN_CHARS);
  if (behind.length < RUN_CHARS || !hasBothCases(behind)) return false;
  return isEncodedRun(behind);
}

/** Whether a long run of base64 in both cases ends before a position, and is not made of words. */
function isLongEncoded(text: string, end: number): boolean {
  const run = text.slice(Math.max(0, end - LONG_RUN_CHARS), end);
  if (run.length < LONG_RUN_CHARS || !/^[A-Za-z0-9+/_-]*$/.test(run)) return false;
  if (!hasBothCases(run) || !/[0-9+/]/.test(run)) return false;
  return !isMostlyTerms(run);
}

/** Whether at least half of what is not blank belongs to words. */
function isMostlyTerms(text: string): boolean {
  const known = new Uint8Array(text.length);
  markAll(known, text, SAMPLE_TERMS);
  markDictionaryTerms(known, text, 0);
  const count = known.reduce((sum, one) => sum + one, 0);
  return count * 2 >= text.replaceAll(' ', '').length;
}

/** Whether a position is within the bytes of a `data:` address. */
function isInData(text: string, at: number): boolean {
  let from = at;
  while (from > 0 && at - from < LONG_RUN_CHARS && ENCODED.test(text.charAt(from - 1))) from--;
  return from < at && text.slice(Math.max(0, from - 7), from) === 'base64,';
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

function isSecretMatch(text: string, start: number, value: string, format: SecretFormat): boolean {
  const { check, window, hasNoDictionaryTerms } = format;
  if (check === 'password') return isRealPassword(value, userOf(text, start));
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
    const name = nameEndingAt(text, nameEnd);
    if (!isSecretName(name) || !mayBeSecretValue(match[2] ?? '')) continue;
    const end = valueEnd(text, start);
    const next = nextOfExpression(text, start, end);
    const isSecret = isSecretValue(text.slice(start, end), name, next);
    if (isSecret) hits.push({ kind: NAMED_SECRET, start, end });
    if (isSecret || end - start > MAX_REREAD_CHARS) ASSIGNMENT.lastIndex = end;
  }
  return hits;
}

/** The character behind a value that stands without quotes. */
function nextOfExpression(text: string, start: number, end: number): string | undefined {
  return /["'`\\]/.test(text.charAt(start - 1)) ? undefined : text.charAt(end);
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

/**
 * All secrets of a text. `name` is the member name before the text, if any. What only opens a signed link has a kind of
 * its own (links.ts).
 */
export function findSecrets(text: string, name?: string, formats?: readonly SecretFormat[]): Hit[] {
  const found = findFormats(text, formats);
  const ends = new Map(found.map((hit) => [hit.start, hit.end]));
  for (const hit of findAssignments(text)) {
    const end = ends.get(hit.start);
    if (end === undefined || !isCompleteAt(text, end, hit)) found.push(hit);
  }
  const hits = [...withSignedLinks(text, found)];
  if (name !== undefined && isSecretName(name) && isSecretValue(text, name)) {
    hits.push({ kind: NAMED_SECRET, start: 0, end: text.length });
  }
  return hits;
}

/**
 * Whether a value behind a name is complete where one of a known format ends: what follows cannot belong to the format,
 * and is no secret by itself. `password=TOKEN|next` loses the token alone.
 */
function isCompleteAt(text: string, end: number, named: Hit): boolean {
  if (end >= named.end || FORMAT_UNIT.test(text.charAt(end))) return false;
  return !isSecretValue(text.slice(end + 1, named.end), '', text.charAt(named.end));
}

/** The characters of which the formats consist. */
const FORMAT_UNIT = /[A-Za-z0-9+/=_.~%:-]/;

/** Whether a number of eight digits or more is a secret because of its name. Token counts are not. */
export function isSecretNumber(digits: string, name: string | undefined): boolean {
  if (name === undefined || digits.length < 8 || countUnexplained(digits) < 4) return false;
  return isSecretName(name) && !/token$/i.test(name);
}

/**
 * `sample`: words that documentation writes in place of a value. `any`: every word. `strict`: every word, except
 * that in a mixed-case value neither the first letter of a word nor a short part between signs counts, and in a
 * single-case value a short part counts only next to a word. Random values of 16 to 30 characters occasionally
 * consist of short pieces that each read like a word.
 */
type Vocabulary = 'sample' | 'any' | 'strict';

// SHA-256 digests of published samples, each after the length of its sample. The samples are not in this
// repository.
const PUBLISHED_SAMPLES: ReadonlySet<string> = new Set([
  // jwt.io, RFC 7515 appendix A.1
  '155 7f75367e7881255134e1375e723d1dea8ad5f6a4fdb79d938df1f1754a830606',
  '149 da816f9f2c16e6c5390e7636cadc40c43551bf0bbcf8f36c65539e6633a9c5e8',
  '172 c794fa6d20c64efb9adf980ae93af472a1679775862d421ffe55d4a57fad5b3e',
  '179 8d4ef6536dc8895f256c1e0d95dcd19763036732d64a095e44a90ed444267ad3',
  // AWS: access keys, then secret keys
  '20 1a5d44a2dca19669d72edf4c4f1c27c4c1ca4b4408fbb17f6ce4ad452d78ddb3',
  '20 cb20d34a7adda2f5d2043836051e242fd4c2b233e02c80c91fe9d5af9b100574',
  '20 c6ea27c534f993d31f0aef882e3d200e7b87470c379ae79c8f9b19d3bd363dc9',
  '40 78314b11be2e581549ac1c4f616563fad3fdf0c3b71678f6e2299182080e0598',
  '40 e21b597ba6b9cafa59d9ebc4d65c0385f5eb3fa56abab2607fa76589ad849a33',
  // Stripe
  '32 2cafc0970149a84f3b9e62eaf169f36f59907a3b3e31f7b82e68c69cd27f7326',
  '32 f2d6ca16515033e5dce14eba840b979d27b5cbae24bb3e5bf484339667f86397',
  // GitHub
  '40 bc3ae723f57c6b9e3fd80b699fcc420f6074b0b1718039669d22631d508ac0a7',
  '40 797c0ce414586cc8eb6929afe947c720e3e4d351dd070a6fe39f630beaab3054',
  '40 82e74299544e00738f9c0acb69b1eb348b3e20ffcfabcb34779bd37590fead6c',
  '40 3543c50b0cb9cea8e55eb1f529b79f043cb250d485fde7b66cabbb5183add7da',
  // Telegram
  '41 731fa294d036e54f19df879bfcd4fe72d967dc6327800c5f74a48414a3f258c9',
  // The Azure storage emulator
  '88 0011cc25eb4320717494d2703e8cba85743e71b500283c21c8b88147992f9059',
  // RFC 6749
  '22 6c96130f130ab0d6d158397e24d2bcc1c9a5e73ae081f6e983f1c7b545d24a4c',
  '22 00cf4c781dc37003f7c7dd7d4c9a6ef1e0f4c62d9a291aa8bc398774e3fefd32',
]);
const SAMPLE_LENGTHS: ReadonlySet<string> = new Set(
  [...PUBLISHED_SAMPLES].map((entry) => entry.split(' ')[0] ?? ''),
);

/** Whether a value is a sample published by a vendor or a standard. */
function isPublishedSample(value: string): boolean {
  const length = String(value.length);
  return SAMPLE_LENGTHS.has(length) && PUBLISHED_SAMPLES.has(`${length} ${sha256Hex(value)}`);
}

/** Random text has more distinct characters; in a short stretch, at least half as many as its length. */
const MIN_DISTINCT = 5;

/**
 * Whether a stretch of `window` characters has at least `unexplained` characters that belong to neither a word
 * nor a pattern. A shorter value is a single stretch.
 */
function hasRandomWindow(
  value: string,
  window: number,
  { vocabulary, unexplained }: { readonly vocabulary: Vocabulary; readonly unexplained: number },
): boolean {
  const isKnown = explainedCharacters(value, vocabulary);
  const size = Math.min(window, value.length);
  let open = 0;
  for (let at = 0; at < value.length; at++) {
    open += isKnown[at] === 0 ? 1 : 0;
    if (at >= size) open -= isKnown[at - size] === 0 ? 1 : 0;
    const isRandom = at >= size - 1 && open >= unexplained;
    if (isRandom && isVaried(value.slice(at - size + 1, at + 1))) return true;
  }
  return false;
}

function isVaried(stretch: string): boolean {
  const least = Math.min(MIN_DISTINCT, stretch.length >> 1);
  let seen = '';
  for (let at = 0; at < stretch.length; at++) {
    const unit = stretch.charAt(at);
    if (seen.includes(unit)) continue;
    seen += unit;
    if (seen.length >= least) return true;
  }
  return false;
}

/** Counts the characters of a value that belong to no sample word, pattern or sign. */
function countUnexplained(value: string): number {
  return explainedCharacters(value, 'sample').reduce(
    (count, known) => count + (known === 0 ? 1 : 0),
    0,
  );
}

/** For each character, 0 unless it belongs to a repeat, a series or a word, or is a sign between them. */
function explainedCharacters(value: string, vocabulary: Vocabulary): Uint8Array {
  const known = new Uint8Array(value.length);
  const codes = codesOf(value, known);
  markRepeats(known, codes);
  foldCase(codes);
  markSeries(known, codes);
  markAll(known, value, SAMPLE_TERMS);
  const isDoubtful = vocabulary === 'strict' && /[a-z]/.test(value) && /[A-Z]/.test(value);
  if (vocabulary !== 'sample') markDictionaryTerms(known, value, isDoubtful ? 1 : 0);
  if (YEARS.test(value)) markAll(known, value, YEAR);
  markParts(
    known,
    value,
    vocabulary === 'any' ? 'all' : vocabulary === 'sample' || isDoubtful ? 'none' : 'beside words',
  );
  return known;
}

/** Signs occur between words and within encodings, so they indicate neither. */
const SIGNS = new Set(
  [...'-_.=/+:%,;() \t\n\r\\<>[]{}$*#"\'\u2026'].map((unit) => unit.charCodeAt(0)),
);

/** The character codes of a value. Marks signs as known. */
function codesOf(value: string, known: Uint8Array): Uint16Array {
  const codes = new Uint16Array(known.length);
  for (let at = 0; at < codes.length; at++) {
    const code = value.charCodeAt(at);
    codes[at] = code;
    if (SIGNS.has(code)) known[at] = 1;
  }
  return codes;
}

function foldCase(codes: Uint16Array): void {
  for (let at = 0; at < codes.length; at++) {
    const folded = (codes[at] ?? 0) | 0x20;
    if (folded >= LETTER_A && folded <= LETTER_Z) codes[at] = folded;
  }
}

function markAll(known: Uint8Array, value: string, pattern: RegExp): void {
  pattern.lastIndex = 0;
  for (let match = pattern.exec(value); match !== null; match = pattern.exec(value)) {
    known.fill(1, match.index, pattern.lastIndex);
  }
}

const MAX_PERIOD = 8;
// Minimum length of a repeat that is not chance, by short period: four times one character, three times two or three.
const MIN_REPEAT = [0, 4, 6, 9];

function markRepeats(known: Uint8Array, codes: Uint16Array): void {
  for (let period = 1; period <= MAX_PERIOD; period++) {
    const least = MIN_REPEAT[period] ?? 2 * period;
    let start = 0;
    for (let at = period; at <= codes.length; at++) {
      if (at < codes.length && codes[at] === codes[at - period]) continue;
      if (at - start >= least && !isChance(codes, start, at, period)) known.fill(1, start, at);
      start = at - period + 1;
    }
  }
}

/** A piece that mixes cases or letters and digits is there twice by chance; three times it is a pattern. */
function isChance(codes: Uint16Array, start: number, end: number, period: number): boolean {
  if (end - start >= 3 * period) return false;
  return new Set(Array.from(codes.subarray(start, start + period), kindOf)).size > 1;
}

function kindOf(code: number): 'digit' | 'upper' | 'lower' | 'other' {
  if (isDigit(code)) return 'digit';
  if (code >= UPPER_A && code <= UPPER_Z) return 'upper';
  return code >= LETTER_A && code <= LETTER_Z ? 'lower' : 'other';
}

const MIN_SERIES = 4;
/** The same directly after something known. */
const MIN_NEXT_SERIES = 3;

/** Letters or digits that count up or down, such as 1234, FEDC and the 90 between 789 and 012. */
function markSeries(known: Uint8Array, codes: Uint16Array): void {
  for (const step of [1, -1]) {
    let start = 0;
    for (let at = 1; at <= codes.length; at++) {
      if (at < codes.length && isNextInSeries(codes[at - 1] ?? 0, codes[at] ?? 0, step)) continue;
      if (at - start >= leastSeries(known, start)) known.fill(1, start, at);
      start = at;
    }
  }
}

function leastSeries(known: Uint8Array, start: number): number {
  return start > 0 && known[start - 1] === 1 ? MIN_NEXT_SERIES : MIN_SERIES;
}

const ZERO = 0x30;
const NINE = 0x39;
const UPPER_A = 0x41;
const UPPER_Z = 0x5a;
const LETTER_A = 0x61;
const LETTER_Z = 0x7a;

function isNextInSeries(before: number, code: number, step: number): boolean {
  if (step > 0 && before === NINE && (code === ZERO || code === LETTER_A)) return true;
  if (step < 0 && before === ZERO && code === NINE) return true;
  return code - before === step;
}

// Words that documentation, tests and code write in place of a value. Matched in any case, also inside other
// letters.
const SAMPLE_TERMS = termPattern(
  [
    'placeholder|example|sample|dummy|fake|mock|demo|test|xxx|your|my|insert|replace|enter|paste|change|changeme',
    'here|goes|this|with|real|some|custom|default|invalid|redacted|hidden|todo|null|none|undefined|value|string',
    'password|passw0rd|p@ssw0rd|p@ssword|p4ssw0rd|pa55word|passwd|pass|s3cret|s3cr3t|secret|token|credential|credentials|key|api|access|refresh',
    'client|auth|authorization|bearer|oauth2?|account|username|user|admin|root|guest|postgres|project|org|name|id',
    'local|localhost|development|production|staging|super|strong|secure|random|generated|private|public',
    'length|characters?|chars?|least|minimum|long|process|environ|getenv|env|config|settings|vars',
    'b64decode|b64encode|b64|base64url|base64|utf8|sha1|sha256|sha384|sha512|md5|uint8|int32|int64|uint32',
    'ed25519|x25519|rs256|hs256|es256|p256|oauth2|decode|encode|buffer|array|digest|bytes|uuid4?',
    'qwerty|asdf|foobar|foo|bar|baz|lorem|ipsum|deadbeef|cafebabe|openai|anthropic|github|google|azure|stripe|slack',
  ]
    .join('|')
    .split('|'),
);

// One pattern for many words, longest first, grouped by first letter because most characters begin none of them.
function termPattern(terms: readonly string[]): RegExp {
  const sorted = [...terms].sort((one, other) => other.length - one.length);
  const byFirst = groupBy(sorted, (word) => word.charAt(0));
  const branches = [...byFirst].map(
    ([first, alike]) => `${first}(?:${alike.map((word) => word.slice(1)).join('|')})`,
  );
  return new RegExp(branches.join('|'), 'gi');
}

/** For each letter, the letters that follow it in words. */
const LETTER_SUCCESSORS: readonly string[] = [
  'bcdfgiklmnprstuvwxy',
  'aeilorsu',
  'acehiklorstuy',
  'adegilorsuy',
  'abcdefgilmnopqrstvwxy',
  'aefilortuy',
  'aeghilnorsu',
  'aeiortu',
  'abcdefglmnoprstvxz',
  'aeos',
  'aeils',
  'adeilostuvy',
  'abeimopsu',
  'acdefgiklnostuvy',
  'abcdfgiklmnoprstuvwy',
  'aehiloprstu',
  'u',
  'acdefgiklmnorstuvy',
  'acefhiklnopstuwy',
  'acehiloprstuwy',
  'abcdegilmnprst',
  'aeio',
  'aehinors',
  'ceipt',
  'einps',
  'ae',
];

/** Words as written, including those joined in camelCase. */
const WORD = /[A-Z][a-z]{3,}|[a-z]{4,}|[A-Z]{4,}/g;
/** One letter pair in this many may be a rare one. */
const RARE_PAIRS = 6;

/** Marks words, leaving the first `skipped` letters of each unmarked. */
function markDictionaryTerms(known: Uint8Array, value: string, skipped: number): void {
  WORD.lastIndex = 0;
  for (let match = WORD.exec(value); match !== null; match = WORD.exec(value)) {
    if (isWord(match[0].toLowerCase())) known.fill(1, match.index + skipped, WORD.lastIndex);
  }
}

function isWord(word: string): boolean {
  let rare = 0;
  for (let at = 1; at < word.length; at++) {
    const successors = LETTER_SUCCESSORS[word.charCodeAt(at - 1) - LETTER_A] ?? '';
    if (!successors.includes(word.charAt(at))) rare++;
  }
  return rare * RARE_PAIRS <= word.length - 1 && /[aeiouy]/.test(word);
}

const YEARS = /19|20/;
const YEAR = /(?<!\d)(?:19|20)\d\d(?!\d)/g;
/** A part between signs that counts by itself: a short word or a short number. */
const SHORT_PART = /^(?:[a-z]{1,5}|[A-Z]{1,5}|[A-Z][a-z]{1,2}|\d{1,4})$/;
const MAX_SHORT = 5;
const MAX_COUNT_DIGITS = 3;

/** Which short parts count as known. */
type ShortParts = 'none' | 'beside words' | 'all';
/** Marks a short part, which does not make its neighbours count as next to a word. */
const SHORT_MARK = 2;

/** Whether a word ends before the sign in front of a part, or begins after the sign behind it. */
function isBesideWord(known: Uint8Array, value: string, start: number, end: number): boolean {
  return [start - 2, end + 1].some((at) => known[at] === 1 && isAlphanumeric(value.charCodeAt(at)));
}

/** Marks short parts between signs, and the numbers that end enumerated words. */
function markParts(known: Uint8Array, value: string, short: ShortParts): void {
  let start = 0;
  for (let at = 0; at <= value.length; at++) {
    if (at < value.length && isAlphanumeric(value.charCodeAt(at))) continue;
    const isShort = short !== 'none' && at - start <= MAX_SHORT;
    if (isShort && SHORT_PART.test(value.slice(start, at))) {
      if (short === 'all' || isBesideWord(known, value, start, at))
        known.fill(SHORT_MARK, start, at);
    }
    markCount(known, value, at);
    start = at + 1;
  }
}

/** Marks a number of few digits after a word or at the start of the value. */
function markCount(known: Uint8Array, value: string, end: number): void {
  let start = end;
  while (start > 0 && end - start <= MAX_COUNT_DIGITS && isDigit(value.charCodeAt(start - 1))) {
    start--;
  }
  if (end - start > MAX_COUNT_DIGITS) return;
  if (start === 0 || known[start - 1] === 1) known.fill(1, start, end);
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}

function isAlphanumeric(code: number): boolean {
  return isDigit(code) || ((code | 0x20) >= LETTER_A && (code | 0x20) <= LETTER_Z);
}
