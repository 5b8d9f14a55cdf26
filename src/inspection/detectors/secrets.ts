// Finds secrets in one text: by the formats of secret-formats.ts, and by a random value after a name that denotes a
// secret. A secret is found from its first to its last character, whatever its length. Documentation samples are told
// from random values: a value is a sample only where no stretch of it, as long as the shortest random part of its
// format, looks random, or where it is a published sample; a word next to a secret does not make it a sample. Linear.
// Never changes a text and never keeps what it found.
// Source: the ways in which code, configuration and documentation write such values; the sample credentials of the
// vendors' documentation, RFC 6749, RFC 7515 and jwt.io.

import { findCookies, isCookieName } from './cookies.js';
import type { Hit } from './hit.js';
import { AUTH_NAME, HARMLESS_NAME, PASS_NAME, SECRET_NAME } from './known-names.js';
import { withSignedLinks } from './links.js';
import {
  countUnexplained,
  hasRandomWindow,
  isMostlyTerms,
  isPublishedSample,
  isWord,
  MAX_SHORT,
  withoutMarks,
} from './randomness.js';
import { BASIC_CREDENTIALS, SECRET_FORMATS, type SecretFormat } from './secret-formats.js';

/** Whether the name of a member, variable or label denotes a secret. */
export function isSecretName(name: string): boolean {
  const spaced = name.replace(/([a-z0-9])([A-Z])/g, '$1_$2');
  return SECRET_NAME.test(spaced) && !HARMLESS_NAME.test(spaced);
}

const BARE_PASS = /^pass$/i;
/** Whether a value behind this name may be a secret because of it. Whether it is one, the value tells. */
export function mayNameSecret(name: string): boolean {
  return isSecretName(name) || isPassName(name) || AUTH_NAME.test(name) || isCookieName(name);
}

function isPassName(name: string): boolean {
  return PASS_NAME.test(name.replace(/([a-z0-9])([A-Z])/g, '$1_$2'));
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
  // Passes of a renderer or a compiler have names too; a variable in capitals is a setting.
  const isDoubtful = isPassName(name) && !/^[A-Z0-9_]+_PASS$/.test(name);
  if (!hasRandomWindow(value, MIN_NAMED_CHARS, isDoubtful ? RANDOM_WORDLESS : RANDOM_NAMED)) return false;
  if (isNameOfElse(value, name) || isReference(value, next, name)) return false;
  return !isPublishedSample(value) && !isEncodedSample(value, name);
}

/** Whether a value names a resource, a file, a key or a place, or is cut. */
function isNameOfElse(value: string, name: string): boolean {
  const isPassword = PASSWORD_NAME.test(name);
  if (isResourceName(value, isPassword) || (!isPassword && isFileName(value))) return true;
  if (VERSIONED_IMAGE.test(value)) return true;
  return isKeyName(value, name) || isAddressOfSecret(value) || ELIDED.test(value);
}

/** People join words and numbers to passwords, but do not call them secret. */
const PASSWORD_NAME = /(?:password|passwd|passphrase|pwd|pass)$/i;

const FILE_NAME =
  /^((?:[\w-]+\.)*[\w-]+)\.(?:p12|pfx|p7b|p8|jks|bks|keystore|truststore|pem|key|pub|crt|cer|csr|der|json5?|ya?ml|toml|ini|conf|cfg|env|properties|txt|asc|gpg|kdbx|md|xml|zip|go|js|ts|py|rb|php|java|cs|rs|sh)$/i;

/** Whether a value names a file in words, with or without the folders in which it is. */
function isFileName(value: string): boolean {
  const file = value.lastIndexOf('/') + 1;
  const stem = FILE_NAME.exec(value.slice(file))?.[1];
  return (value.slice(0, file) + (stem ?? '/')).split(PARTS).every(isPlainPart) && stem !== undefined;
}

const PARTS = /[-_./]/;
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
  const isNamed = parts.some((part) => SECRET_WORD.test(part) || (!isPassword && RESOURCE_WORD.test(part)));
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

/** The name of a variable of the environment. */
const VARIABLE_NAME = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+(?:-\d)?$/;
/** What says, in Kubernetes and in its operators, under which name a secret is kept. */
const REFERRING_NAME = /^(?:- )?(?:secret[_-]?key|secret|credentials?)$/i;
const MAX_KEY_DIGITS = 2;

/** Whether a value is a name under which a secret is kept: words and at most two digits, as in `API_TOKEN_2`. */
function isKeyName(value: string, name: string): boolean {
  if (!VARIABLE_NAME.test(value) && !REFERRING_NAME.test(name)) return false;
  if (!/[-_]/.test(value) || value.replace(/\D/g, '').length > MAX_KEY_DIGITS) return false;
  return value.split(/[-_]/).every(isPlainTerm);
}

/** Schemes of addresses at which managers of secrets keep them. */
const ADDRESS = /^(?:urn|op|vault|ssm|secret|secretref|keyvault|awssm|gcpsm):[^:]/;
const ADDRESS_PARTS = /[-_./:#?=]+/;
/** A resource of AWS: the service, the region and the account, and the name that it has there. */
const ARN = /^arn:aws[a-z-]{0,16}:[a-z0-9-]{1,32}:[a-z0-9-]{0,24}:\d{0,12}:/;
/** What AWS adds to the names of secrets. */
const ARN_SUFFIX = /-[A-Za-z0-9]{6}$/;

/** What stands before the type of a resource of AWS in its address. */
const BEFORE_TYPE = /arn:aws[a-z-]{0,16}:secretsmanager:[a-z0-9-]{0,24}:\d{0,12}:$/;
const MAX_ARN_START = 96;

/** Whether a value says in words where a secret is kept: `urn:k8s:secret:redis:password`. */
function isAddressOfSecret(value: string): boolean {
  if (ARN.test(value)) return isPlainName(value.replace(ARN, '').replace(ARN_SUFFIX, ''));
  return ADDRESS.test(value) && value.split(ADDRESS_PARTS).every(isPlainTerm);
}

/** Whether a part of a name is made of words, samples, abbreviations and a number, or is Kubernetes' short name. */
function isPlainTerm(part: string): boolean {
  return /^k8s$/i.test(part) || isPlainPart(part) || countUnexplained(part) === 0;
}

/** The version and the digest of an image, whose name may end in `secret` or `token`. */
const VERSIONED_IMAGE = /^v?\d{1,4}(?:\.\d{1,4}){0,3}@sha256:[0-9a-f]{64}$/;

/** A value of which only the two ends are shown. */
const ELIDED = /^[A-Za-z0-9+/=_-]{1,7}(?:\.{3}|\u2026)[A-Za-z0-9+/=_-]{0,7}$/;

const BASE64_VALUE = /^(?:[A-Za-z0-9+/]{4})+(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const WRITTEN = /^[ -~]+\n?$/;

/** Whether a value is base64 of words, as manifests of Kubernetes have their samples: `bXlwYXNzd29yZA==`. */
function isEncodedSample(value: string, name: string): boolean {
  if (value.length > MAX_ENCODED_SAMPLE || !BASE64_VALUE.test(value)) return false;
  const text = Buffer.from(value, 'base64').toString('latin1');
  if (!WRITTEN.test(text) || (text.match(/[A-Za-z ]/g)?.length ?? 0) < text.length * WORDY) return false;
  const sample = text.trim();
  if (hasRandomWindow(sample, MIN_NAMED_CHARS, RANDOM_ENCODED)) return false;
  return !isSecretValue(sample, name);
}

const MAX_ENCODED_SAMPLE = 128;
/** The share of letters in what is written in words. */
const WORDY = 3 / 4;
const RANDOM_ENCODED = { vocabulary: 'any', unexplained: 2 } as const;

/** The shortest value that counts because of its name; also the length of the stretch that has to look random. */
const MIN_NAMED_CHARS = 8;
/** Characters of that stretch that must belong to no sample word. */
const MIN_NAMED_UNEXPLAINED = 3;
const RANDOM_NAMED = { vocabulary: 'sample', unexplained: MIN_NAMED_UNEXPLAINED } as const;
/** The same where words explain a value too. */
const RANDOM_WORDLESS = { vocabulary: 'any', unexplained: 5 } as const;

const CALLED = /^[A-Za-z_$][\w$]*(?:(?:\.|::|->)[A-Za-z_$][\w$]*)*$/;
const VARIABLE = /^(?:\$\{{1,2}[^{}]*\}{1,2}|\$[A-Za-z_][A-Za-z0-9_]*|\{\{[^{}]*\}\}|<[^<>]*>|%\([^()]*\)s)$/;
const ENVIRONMENT_REFERENCE =
  /^(?:process\.env|import\.meta\.env|os\.environ|os\.getenv|env|secrets|vars|config|settings|self|this|args|options)\.[A-Za-z_]/;

// Whether a value is code that refers to a secret: a call, a composite literal, a variable or a member. Its parts must
// be words, so that it cannot hide a value.
function isReference(value: string, next: string | undefined, name?: string): boolean {
  // A variable that has the name of the member.
  if (next === ',' && value === name) return true;
  const isExpression =
    next !== undefined &&
    CALLED.test(value) &&
    COMPOUND_NAME.test(value) &&
    (/^[([{]/.test(next) || (isNameOfSecret(value) && (/^[,;)]/.test(next) || value.includes('.'))));
  if (isExpression) {
    const names = value.replace(VERSIONED_PACKAGE, '');
    return (
      isMostlyTerms(names.replace(/[^A-Za-z]/g, ' ')) &&
      isPlainName(names.replace(ABBREVIATION, ''), MIN_NAMED_CHARS - 2)
    );
  }
  if (!VARIABLE.test(value) && !ENVIRONMENT_REFERENCE.test(value)) return false;
  return isPlainName(value);
}

/** A package of an interface with a version before one of its types, as Kubernetes names them: `corev1.`. */
const VERSIONED_PACKAGE = /^[a-z]{0,8}v\d{1,2}(?:(?:alpha|beta)\d{1,2})?[a-z]{0,8}\.(?=[A-Z])/;

/** A short run of capitals, or small letters behind a digit, between the words of an identifier. */
const ABBREVIATION = /(?<![A-Z])[A-Z]{2,5}(?=[A-Z][a-z]|[\d_.]|$)|(?<=\d)[a-z]{1,3}(?=[A-Z_.])/g;

/** A member of something, or several words in one identifier. */
const COMPOUND_NAME = /[._]|::|->|[a-z0-9][A-Z]/;

/** Whether an identifier, or the last member of a path, is itself called a secret. */
function isNameOfSecret(path: string): boolean {
  const name = (path.split(/\.|::|->/).at(-1) ?? '').replace(/\d$/, '');
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
 * Whether a password in a URL or connection string is neither a usual sample nor a variable nor the user name.
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

/** The user name of a line of `.pgpass`, or of an entry of `.netrc`. */
const USER_BEFORE =
  /(?:^|[\s:="',\\])([^\s:"',=\\]{1,128}):$|\slogin\s{1,16}(\S{1,128})\s[^\n]{0,64}\n?\s{0,16}password\s{1,16}["']?$/i;

/** The user name before the password of an address, or among the other settings of a connection string. */
function userOf(text: string, start: number): string | undefined {
  const before = text.slice(Math.max(0, start - MAX_USER_CHARS), start);
  const written = /:\/\/([^\s/?#:@"'<>]{0,1000}):$/.exec(before) ?? USER_BEFORE.exec(before);
  if (written !== null) return written[1] ?? written[2];
  const around = before + text.slice(start, start + MAX_USER_CHARS);
  return /(?:^|[;\s"'])(?:user id|userid|user name|username|user|uid)\s{0,2}=\s{0,2}([^;"'\s]{1,128})/i.exec(
    around,
  )?.[1];
}

const MAX_USER_CHARS = 1024;

/** The kind of a value that is a secret because of its name. */
export const NAMED_SECRET = 'secret';

/** The end of a name that may denote a secret. What follows decides. */
const NAME_END = /(?:pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|key)(?=[\s"'`*)\]\\:=])/gi;
/** Between a name and its value: quotes, also escaped in nested JSON, the marks of bold text, blanks and a sign. */
const SIGN = /["'`*\\]{0,16}\s{0,4}(?::=|=>|[:=])(?:\*\*)?\s{0,4}["'`\\]{0,16}/y;
const VALUE_UNIT = /[^\s"'`<>,;()[\]{}\\&]/;

const MAX_NAME_CHARS = 64;

/** Secrets of the given formats; hits may overlap. Linear in the text for each format. */
export function findFormats(text: string, formats: readonly SecretFormat[] = SECRET_FORMATS): Hit[] {
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
  if (check === 'random-password') return isSecretValue(value, 'password');
  if (check === 'basic') return areBasicCredentials(value);
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

/** Whether base64 is a user name and a password of which one is real (RFC 7617 §2). */
function areBasicCredentials(encoded: string): boolean {
  if (isPublishedSample(encoded)) return false;
  const pair = Buffer.from(encoded, 'base64').toString('utf8');
  const colon = pair.indexOf(':');
  if (colon < 0 || NOT_WRITTEN.test(pair)) return false;
  const [user, password] = [pair.slice(0, colon), pair.slice(colon + 1)];
  return isRealPassword(password, user) || isSecretValue(user, '');
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: a user name and a password have no controls
const NOT_WRITTEN = /[\0-\x1f\x7f\ufffd]/;

const CURL = /(?<![\w.-])curl(?:\.exe)?["']?[\s,]/gi;
/** Up to the end of the line, or of the last one that a backslash continues. */
const COMMAND = /(?:[^\r\n\\]|\\\r?\n|\\){0,4096}/y;
const USER_OPTION =
  /(?<=[\s"'])-(?:[A-Za-z#]{0,8}[uU]|-user|-proxy-user)[\s=,"'\\]{0,8}([^\s:"'/@\\]{1,256}):([^\s"'\\]{3,256})/g;

/** The passwords of `curl -u user:password`. */
function findCommandPasswords(text: string): Hit[] {
  const hits: Hit[] = [];
  CURL.lastIndex = 0;
  for (let match = CURL.exec(text); match !== null; match = CURL.exec(text)) {
    const from = CURL.lastIndex - 1;
    COMMAND.lastIndex = from;
    const command = COMMAND.exec(text)?.[0] ?? '';
    for (const { 0: all, 1: user = '', 2: password = '', index } of command.matchAll(USER_OPTION)) {
      const end = from + index + all.length;
      if (isRealPassword(password, user)) hits.push({ kind: COMMAND_PASSWORD, start: end - password.length, end });
    }
    CURL.lastIndex = Math.max(CURL.lastIndex, from + command.length);
  }
  return hits;
}

const COMMAND_PASSWORD = 'command-password';

/** How far from its id the secret of an AWS key may stand. */
const BESIDE_CHARS = 160;
const AWS_SECRET = /(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])/g;
const RANDOM_AWS = { vocabulary: 'strict', unexplained: 14 } as const;

/** The secrets that stand beside the ids of AWS keys, as in a table or a list, without a name of their own. */
function findBesideIds(text: string, found: readonly Hit[]): Hit[] {
  const hits: Hit[] = [];
  let from = 0;
  for (const { kind, start, end } of found) {
    if (kind !== 'aws-access-key') continue;
    from = Math.max(from, start - BESIDE_CHARS);
    // One character more on each side shows whether a run begins and ends there.
    const base = Math.max(0, from - 1);
    for (const { 0: value, index } of text.slice(base, end + BESIDE_CHARS + 1).matchAll(AWS_SECRET)) {
      from = base + index + value.length;
      const isMixed = /[\d+/]/.test(value) && hasBothCases(value);
      if (isMixed && hasRandomWindow(value, value.length, RANDOM_AWS) && !isPublishedSample(value))
        hits.push({ kind: 'aws-secret-key', start: from - value.length, end: from });
    }
    from = Math.max(from, end);
  }
  return hits;
}

/** Finds values after names that denote secrets, in prose, code, query strings, commands and configuration. */
export function findAssignments(text: string): Hit[] {
  const hits: Hit[] = [];
  NAME_END.lastIndex = 0;
  for (let match = NAME_END.exec(text); match !== null; match = NAME_END.exec(text)) {
    const nameEnd = NAME_END.lastIndex;
    const found = assignedValue(text, nameEnd) ?? spokenValue(text, nameEnd);
    if (found === undefined) continue;
    const { start, end, isSecret } = found;
    if (isSecret) hits.push({ kind: NAMED_SECRET, start, end });
    // The value may itself contain a name and a value.
    if (isSecret || end - start > MAX_REREAD_CHARS) NAME_END.lastIndex = Math.max(nameEnd, end);
  }
  return hits;
}

/** A longer value that was checked as a whole is not searched again. */
const MAX_REREAD_CHARS = 256;

type NamedValue = { readonly start: number; readonly end: number; readonly isSecret: boolean };

/** The value that is assigned to a name. */
function assignedValue(text: string, nameEnd: number): NamedValue | undefined {
  SIGN.lastIndex = nameEnd;
  if (!SIGN.test(text)) return undefined;
  const start = SIGN.lastIndex;
  const name = nameEndingAt(text, nameEnd);
  const isQuoted = /["'`\\]/.test(text.charAt(start - 1));
  if (!mayBeAssigned(name, isQuoted)) return undefined;
  const plain = assignedEnd(text, start, isQuoted);
  const value = text.slice(start, plain);
  if (isElsewhere(text, nameEnd - name.length, nameEnd, start, plain)) return undefined;
  const isRead = mayBeSecretValue(value);
  const isSecret = isRead && isSecretValue(value, name, isQuoted ? undefined : text.charAt(plain));
  const longest = isQuoted ? quotedEnd(text, start) : lineEnd(text, nameEnd - name.length, start);
  if (longest > plain && ((isQuoted && isSecret) || isSignedValue(text, start, plain, longest)))
    return { start, end: longest, isSecret: true };
  return isRead ? { start, end: plain, isSecret } : undefined;
}

/** The end of a value. The colon of a sentence, `error for token: x: not found`, is not of it. */
function assignedEnd(text: string, start: number, isQuoted: boolean): number {
  const end = valueEnd(text, start);
  const isClause = !isQuoted && text.charAt(end - 1) === ':' && /\s/.test(text.charAt(end));
  return isClause && end - 1 > start ? end - 1 : end;
}

const ASSIGNED = /[ \t]{1,4}(?::=|\+=|=(?!=))/y;

/** Whether what follows a name is the name of an AWS resource, or on the next line a variable that is set. */
function isElsewhere(text: string, nameStart: number, nameEnd: number, start: number, end: number): boolean {
  if (text.startsWith('secret:', nameStart)) {
    const before = text.slice(Math.max(0, nameStart - MAX_ARN_START), nameStart);
    if (BEFORE_TYPE.test(before) && isPlainName(text.slice(start, end).replace(ARN_SUFFIX, ''))) return true;
  }
  if (!text.slice(nameEnd, start).includes('\n')) return false;
  ASSIGNED.lastIndex = end;
  return CALLED.test(text.slice(start, end)) && ASSIGNED.test(text);
}

/** Whether a secret may be assigned to a name. A result of tests says `PASS:`. */
function mayBeAssigned(name: string, isQuoted: boolean): boolean {
  return isSecretName(name) || (isPassName(name) && (isQuoted || !BARE_PASS.test(name)));
}

/**
 * Whether a value is random to its end, with signs that end a value elsewhere. One in which words stand between the signs
 * is code, and another setting may follow behind a sign.
 */
function isSignedValue(text: string, start: number, plain: number, end: number): boolean {
  const value = withoutMarks(text.slice(start, end));
  if (!mayBeSecretValue(value) || VARIABLE.test(value) || isFollowedBySetting(value)) return false;
  if (isCode(value)) return false;
  const rest = text.slice(plain, end);
  if (plain - start >= MIN_NAMED_CHARS && !hasRandomWindow(rest, MIN_REST_CHARS, RANDOM_REST)) return false;
  return hasRandomWindow(value.replace(/[^A-Za-z0-9]/g, ''), SIGNED_CHARS, RANDOM_SIGNED);
}

/** A call, a literal or an element of a list. */
const CODE = /^&?(?:\[\])?[A-Za-z_][\w.]*[([{][\w.]*[)\]}][,;]?$/;

/** Whether a value is code that is made of words. */
function isCode(value: string): boolean {
  if (!CODE.test(value) || !isMostlyTerms(value.replace(/[^A-Za-z]+/g, ' '))) return false;
  return value.split(/[^A-Za-z0-9]+/).every((part) => isPlainTerm(part.replace(ABBREVIATION, '')));
}

const NEXT_SETTING = /[;&|,?]([A-Za-z_.-]{3,64})[=:]/;

function isFollowedBySetting(value: string): boolean {
  const name = NEXT_SETTING.exec(value)?.[1];
  return name?.split(/[_.-]/).some((part) => isWord(part.toLowerCase())) ?? false;
}

const MIN_REST_CHARS = 6;
const RANDOM_REST = { vocabulary: 'any', unexplained: 1 } as const;
const SIGNED_CHARS = 20;
const RANDOM_SIGNED = { vocabulary: 'any', unexplained: 12 } as const;
const MAX_QUOTED_CHARS = 512;

/** The end of a value in quotes, which may be escaped; the start where no quote ends it on its line. */
function quotedEnd(text: string, start: number): number {
  let slashes = start - 1;
  while (slashes > 0 && text.charAt(slashes - 1) === '\\') slashes--;
  const closing = text.slice(slashes, start);
  const ahead = text.slice(start, start + MAX_QUOTED_CHARS);
  const end = ahead.indexOf(closing);
  return end < 0 || /\s/.test(ahead.slice(0, end)) ? start : start + end;
}

/** What may stand before the name of a setting that has a line of its own. */
const LINE_START = /(?:^|[\r\n])[ \t]*(?:export[ \t]+|-[ \t]+|ENV[ \t]+)?$/;
const MAX_LINE_START = 32;
/** A value that ends with its line. */
const LINE_VALUE = /[^\s"'`\\]{8,512}(?=[ \t]*(?:[\r\n]|$))/y;

/** The end of a value without quotes that ends with the line of its setting; the start of any other. */
function lineEnd(text: string, nameStart: number, start: number): number {
  if (!LINE_START.test(text.slice(Math.max(0, nameStart - MAX_LINE_START), nameStart))) return start;
  LINE_VALUE.lastIndex = start;
  return LINE_VALUE.test(text) ? LINE_VALUE.lastIndex : start;
}

/** The value behind a name and a blank: of an option of a command, or in a sentence. */
function spokenValue(text: string, nameEnd: number): NamedValue | undefined {
  if (!BEHIND_NAME.test(text.charAt(nameEnd))) return undefined;
  const name = nameEndingAt(text, nameEnd);
  if (!isSecretName(name)) return undefined;
  return name.startsWith('--') ? optionValue(text, nameEnd, name) : statedValue(text, nameEnd);
}

const BEHIND_NAME = /[\s"'`*)\]\\]/;
const OPTION = /[ \t]{1,4}["']?/y;

/** The value behind a long option: `--password X`. */
function optionValue(text: string, nameEnd: number, name: string): NamedValue | undefined {
  OPTION.lastIndex = nameEnd;
  if (!OPTION.test(text)) return undefined;
  const start = OPTION.lastIndex;
  const end = valueEnd(text, start);
  if (!mayBeSecretValue(text.slice(start, end))) return undefined;
  return { start, end, isSecret: isSecretValue(text.slice(start, end), name, ' ') };
}

/** The value of which a sentence says that it is the secret: `the password for staging is X`. */
function statedValue(text: string, nameEnd: number): NamedValue | undefined {
  const match = STATED.exec(text.slice(nameEnd, nameEnd + MAX_STATED_CHARS));
  if (match === null) return undefined;
  const written = (match[1] ?? '').replace(/[.,;:!?)\]}]+$/, '');
  const start = nameEnd + match[0].length - (match[1] ?? '').length;
  return { start, end: start + written.length, isSecret: isStatedSecret(written) };
}

const MAX_STATED_CHARS = 400;
const STATED = new RegExp(`^${statedPattern('\\s')}([^\\s"'\`*<>\u201c\u201d\u2018\u2019]{8,256})`, 'i');

/** What stands between a name and the value of which a sentence says that it is the secret. */
export function statedPattern(blank: string): string {
  const word = `${blank}{1,4}[^\\s.,;:!?|(){}<>=]{1,32}`;
  const verb = '(?:is|was|are|be|to|now|as)';
  return `["'\`*)\\]\\\\]{0,8}(?:${word}){0,8}?${blank}{1,4}${verb}(?:${blank}{1,4}(?:now|set|reset|changed|to|currently|still)){0,3}:?${blank}{1,4}["'\`*(\u201c\u2018\\\\]{0,8}`;
}

const RANDOM_STATED = { vocabulary: 'any', unexplained: 4 } as const;
/** Digests and versions, which documentation names as well. */
const STATED_ELSE =
  /^(?:v?\d+\.\d|(?:sha\d{1,3}|md5)\b|(?:0x)?[0-9a-f]+$|[\w.-]+\.\w{2,4}$|[\w.-]+@[\w-]+\.)|[:/].*[:/]|[({[]/i;

/** Whether a word of a sentence has the form of a secret. */
function isStatedSecret(value: string): boolean {
  if (!isSecretValue(value, 'secret') || STATED_ELSE.test(value)) return false;
  return hasRandomWindow(value, MIN_NAMED_CHARS, RANDOM_STATED);
}

function valueEnd(text: string, start: number): number {
  let end = start;
  while (end < text.length && VALUE_UNIT.test(text.charAt(end))) end++;
  return end;
}

/** The name that ends at a position, with the word before it where that makes it one: `API key`, `next token`. */
function nameEndingAt(text: string, end: number): string {
  let start = end;
  while (start > 0 && end - start < MAX_NAME_CHARS && /[A-Za-z0-9_-]/.test(text.charAt(start - 1))) {
    start--;
  }
  const before = WORD_BEFORE.exec(text.slice(Math.max(0, start - MAX_WORD_BEFORE), start))?.[0];
  const name = text.slice(start, end);
  return before !== undefined && /^(?:key|token|secret)$/i.test(name) ? before + name : name;
}

const MAX_WORD_BEFORE = 24;
const WORD_BEFORE = /[A-Za-z0-9_-]+[ \t]$/;

/** The secrets of a text that their form shows, or their place beside an id. */
export function findFormed(text: string, formats?: readonly SecretFormat[]): readonly Hit[] {
  const found = findFormats(text, formats);
  return withSignedLinks(text, [...found, ...findBesideIds(text, found)]);
}

/**
 * All secrets of a text. `name` is the member name before the text, if any. What only opens a signed link has a kind of
 * its own (links.ts).
 */
export function findSecrets(text: string, name?: string, formats?: readonly SecretFormat[]): Hit[] {
  const found = findFormats(text, formats);
  const ends = new Map(found.map((hit) => [hit.start, hit.end]));
  // A spread of hundreds of thousands of hits would be too many arguments.
  for (const hit of findBesideIds(text, found)) found.push(hit);
  for (const hit of findAssignments(text)) {
    const end = ends.get(hit.start);
    if (end === undefined || !isCompleteAt(text, end, hit)) found.push(hit);
  }
  for (const hit of findCommandPasswords(text)) found.push(hit);
  for (const hit of findCookies(text, name)) found.push(hit);
  const hits = [...withSignedLinks(text, found)];
  if (name !== undefined) {
    const kind = kindOfNamed(text, name);
    if (kind !== undefined) hits.push({ kind, start: 0, end: text.length });
  }
  return hits;
}

/** The kind of a whole text that is a secret because of the member that holds it. */
function kindOfNamed(text: string, name: string): string | undefined {
  if ((isSecretName(name) || isPassName(name)) && isSecretValue(text, name)) return NAMED_SECRET;
  const isPair = AUTH_NAME.test(name) && BASIC_VALUE.test(text) && areBasicCredentials(text);
  return isPair ? BASIC_CREDENTIALS : undefined;
}

const BASIC_VALUE = /^[A-Za-z0-9+/_-]{8,2000}={0,2}$/;

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
