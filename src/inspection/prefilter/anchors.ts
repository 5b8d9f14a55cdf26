// Finds the literals ("anchors") without which no detector matches, all in one pass: a rolling window of three
// folded characters indexes a table, and only where an anchor may begin is it compared. An anchor may have a
// check of its surroundings. INVARIANT: errs only towards a match.

import { drawnLanguage } from '../detectors/drawn-fences.js';
import { type Cue, type CueAnchor, PHRASES, STRUCTURE_ANCHORS } from '../detectors/injection-phrases.js';
import { SECRET_FORMATS, type SecretFormat } from '../detectors/secret-formats.js';
import { statedPattern } from '../detectors/secrets.js';

/** `isJson`: the text is valid JSON, so an unescaped quote ends the string that is read as one text. */
type Check = (text: string, at: number, length: number, isJson: boolean) => boolean;
type Anchor = {
  readonly text: string;
  readonly check: Check;
  /** An occurrence inside a word is ignored. */
  readonly beginsWord: boolean;
  /** The secret format or injection cue that requires the anchor. */
  readonly of: SecretFormat | Cue | undefined;
};

const CLASS_BITS = 5;
const CLASS_MASK = (1 << CLASS_BITS) - 1;
const KEY_MASK = (1 << (3 * CLASS_BITS)) - 1;

/** Nonzero where the key is that of the first three characters of an anchor. */
export const ANCHOR_STARTS = new Uint8Array(KEY_MASK + 1);
// By key: the classes of a fourth character, one bit for each; all bits where an anchor has only three
// characters.
const fourths = new Int32Array(KEY_MASK + 1);
const EVERY_CLASS = -1;
/** The anchors in lower case. */
const anchors: Pick<Anchor, 'text' | 'beginsWord'>[] = [];
export const ANCHORS: readonly Pick<Anchor, 'text' | 'beginsWord'>[] = anchors;
const buckets: (Anchor[] | undefined)[] = Array.from({ length: KEY_MASK + 1 });
const NO_ANCHORS: readonly Anchor[] = [];

/**
 * The key of the last three characters, from the previous key and the newest character. Five bits of a character
 * count, which both cases of a letter share; other characters with the same bits are excluded by comparison.
 */
export function nextAnchorKey(key: number, unit: number): number {
  // Literals instead of the constants: this runs once per character, and V8 folds only literals everywhere.
  return ((key << 5) | (unit & 0x1f)) & 0x7fff;
}

/**
 * Maximum number of anchor checks for one text; a text with more is not surely clean. A check takes up to a
 * microsecond, longer ones count several times, and a text may consist of nothing but anchors.
 */
export const MAX_ANCHOR_CHECKS = 16_384;
let anchorChecks = 0;

/** Cost of checking for an assignment after a name, in checks. */
const ASSIGNMENT_CHECKS = 4;
/** A check that searches its surroundings costs one more per this many characters, or per this many it skips. */
const SEARCHED_PER_CHECK = 16;
const CROSSED_PER_CHECK = 64;

/** Resets the count of anchor checks. Must be called for each text. */
export function resetAnchorChecks(): void {
  anchorChecks = 0;
}

/**
 * Whether an anchor whose first three characters end at `at` occurs there and passes its check. `units`: the characters
 * of the text as bytes, which are read several times faster.
 */
export function isAnchored(text: string, units: Uint8Array, at: number, key: number, isJson: boolean): boolean {
  if (at < 2 || !mayContinue(units, text.length, at, key)) return false;
  const start = at - 2;
  for (const anchor of buckets[key] ?? NO_ANCHORS) {
    if (!standsAt(units, text.length, start, anchor)) continue;
    if (++anchorChecks > MAX_ANCHOR_CHECKS) return true;
    if (anchor.check(text, start, anchor.text.length, isJson)) return true;
  }
  return false;
}

function mayContinue(units: Uint8Array, length: number, at: number, key: number): boolean {
  const next = at + 1 < length ? (units[at + 1] ?? 0) : 0;
  return (((fourths[key] ?? 0) >>> (next & CLASS_MASK)) & 1) === 1;
}

/** Occurrences that are ignored are not counted as checks either, because the SIMD pass does not return them. */
function standsAt(units: Uint8Array, length: number, at: number, anchor: Anchor): boolean {
  return matchesUnits(units, length, at, anchor.text) && !(anchor.beginsWord && isWithinWord(units, at));
}

/** Like {@link matchesAt}. The bytes after the end of the text in `units` belong to another text. */
function matchesUnits(units: Uint8Array, length: number, at: number, anchor: string): boolean {
  if (at + anchor.length > length) return false;
  for (let offset = anchor.length - 1; offset >= 0; offset--) {
    const code = units[at + offset] ?? 0;
    const lower = code >= 0x41 && code <= 0x5a ? code + 0x20 : code;
    if (lower !== anchor.charCodeAt(offset)) return false;
  }
  return true;
}

/** Compares case-insensitively. The anchor is in lower case. */
function matchesAt(text: string, at: number, anchor: string): boolean {
  for (let offset = anchor.length - 1; offset >= 0; offset--) {
    const code = text.charCodeAt(at + offset);
    const lower = code >= 0x41 && code <= 0x5a ? code + 0x20 : code;
    if (lower !== anchor.charCodeAt(offset)) return false;
  }
  return true;
}

/** The secret formats that may occur in a text: those with an anchor in it and those without anchors. */
export function formatsIn(text: string): readonly SecretFormat[] {
  const formats = [...WITHOUT_ANCHOR];
  for (const one of ownersIn(text)) if ('pattern' in one) formats.push(one);
  return formats;
}

/** The injection cues that may occur in a text: those with an anchor in it. */
export function cuesIn(text: string): readonly Cue[] {
  const cues: Cue[] = [];
  for (const one of ownersIn(text)) if ('phrase' in one) cues.push(one);
  return cues;
}

function ownersIn(text: string): ReadonlySet<SecretFormat | Cue> {
  const owners = new Set<SecretFormat | Cue>();
  let key = 0;
  for (let at = 0; at < text.length; at++) {
    key = nextAnchorKey(key, text.charCodeAt(at));
    if (ANCHOR_STARTS[key] === 1) addOwners(text, at - 2, key, owners);
  }
  return owners;
}

const WITHOUT_ANCHOR = SECRET_FORMATS.filter((format) => format.anchors.length === 0);

function addOwners(text: string, at: number, key: number, owners: Set<SecretFormat | Cue>): void {
  for (const { text: anchor, of } of buckets[key] ?? NO_ANCHORS) {
    if (of === undefined || owners.has(of) || at < 0) continue;
    if (matchesAt(text, at, anchor)) owners.add(of);
  }
}

const always: Check = () => true;

/** Minimum length of a token after its prefix. */
const MIN_TOKEN_AHEAD = 8;
const TOKEN_AHEAD = /^[A-Za-z0-9_.=/+%:-]+$/;

function hasTokenAhead(text: string, at: number, length: number): boolean {
  const ahead = text.slice(at + length, at + length + MIN_TOKEN_AHEAD);
  return ahead.length === MIN_TOKEN_AHEAD && TOKEN_AHEAD.test(ahead);
}

/** Formats whose anchor is not directly followed by the token. */
const WITHOUT_AHEAD: ReadonlySet<string> = new Set([
  'azure-client-secret',
  'mailchimp-key',
  'private-key',
  'bearer-token',
]);

const BLANK = '(?:\\s|\\\\{1,4}[nrt])';
const MAYBE_QUOTED = `["'\\\\]{0,16}`;

function startsWith(source: string): Check {
  const pattern = new RegExp(source, 'iy');
  return (text, at) => {
    pattern.lastIndex = at;
    return pattern.test(text);
  };
}

/** Formats of which the surroundings of the anchor show whether it may be one. */
const BY_FORM: ReadonlyMap<string, Check> = new Map([
  ['basic', startsWith(`basic${BLANK}{1,8}[a-z0-9+/_-]{8}`)],
  ['auth', startsWith(`auth${MAYBE_QUOTED}${BLANK}{0,8}[:=]>?${BLANK}{0,8}${MAYBE_QUOTED}[a-z0-9+/_-]{8}`)],
  ['machine', startsWith(`machine${BLANK}{1,16}[^\\s\\\\]{1,255}${BLANK}{1,16}(?:login|account|password)${BLANK}`)],
  ['default', startsWith(`default${BLANK}{1,16}login${BLANK}`)],
]);

function checkOf(format: SecretFormat, anchor: string): Check {
  const byForm = BY_FORM.get(anchor);
  if (byForm !== undefined) return byForm;
  if (format.kind === 'pgpass-password') return always;
  if (format.kind === 'url-credentials') return hasCredentialsAhead;
  if (format.kind === 'connection-password') return isConnectionPassword;
  const isCued = format.pattern.source.includes('(') && format.pattern.flags.includes('i');
  return isCued || WITHOUT_AHEAD.has(format.kind) ? always : hasTokenAhead;
}

/** Maximum number of characters of a user name and password before their host. */
const MAX_CREDENTIALS = 17_388;
const CREDENTIALS_END = unitsIn('/?#@"\'<>');

function hasCredentialsAhead(text: string, at: number): boolean {
  if (!text.startsWith('://', at)) return false;
  const from = at + 3;
  const end = skipTo(text, from, from + MAX_CREDENTIALS, CREDENTIALS_END);
  return text[end] === '@';
}

/** A user name before a host is shorter; reading further costs too much. */
const MAX_USER_NAME = 512;
const USER_NAME_END = unitsIn('/?#@');
const JSON_USER_NAME_END = unitsIn('/?#@"');

// True before a user name or a text too long to tell. Each host is crossed once, since a long text may be all
// hosts.
function hasUserNameAhead(text: string, at: number, length: number, isJson: boolean): boolean {
  const from = at + length;
  const reach = from + MAX_USER_NAME;
  const ends = isJson ? JSON_USER_NAME_END : USER_NAME_END;
  const end = skipTo(text, from, reach, ends, isJson);
  return end >= reach || text[end] === '@';
}

function unitsIn(signs: string): Uint8Array {
  const units = new Uint8Array(128);
  for (let at = 0; at < signs.length; at++) units[signs.charCodeAt(at)] = 1;
  return units;
}

/** The first position from `from` with white space or one of the units, or the end. It may lie beyond `to`. */
function skipTo(text: string, from: number, to: number, ends: Uint8Array, hasEscapes = false): number {
  const last = Math.min(to, text.length);
  let at = from;
  while (at < last) {
    const unit = text.charCodeAt(at);
    if (unit < 128 ? ends[unit] === 1 || (unit <= 0x20 && isBlank(text, at)) : isBlank(text, at)) break;
    at += hasEscapes && unit === BACKSLASH ? 2 : 1;
  }
  anchorChecks += Math.floor((at - from) / CROSSED_PER_CHECK);
  return at;
}

function isBlank(text: string, at: number): boolean {
  return /\s/.test(text.charAt(at));
}

/** An assignment within the few characters after a name, raw or escaped once or twice. */
const ASSIGNED = /^[A-Za-z]{3,12}["'`*\\]{0,8}(?:\s|\\{1,4}[nrt]){0,8}[:=](?![=>:])/;

// Values after the sign that are no secrets: short quoted values, words and numbers, and objects. Each must end
// with a character that no value continues after, and hold no escape.
const HARMLESS_VALUE = /^\s{0,8}(?:"[\w.-]{0,7}"[\s,;)}\]]|[A-Za-z_./-]{1,7}[\s,;)}\]]|\d{1,7}[\s,;)}\]]|\{)/;

/** Prefixes of names for paging, progress or CSRF tokens (an escaped line end is not part of a name). */
const HARMLESS_BEFORE = /(?<!\\)(?:next|page|continuation|cursor|sync|delta|csrf|xsrf|progress)[_-]?$/i;

/** The maximum length of name, quotes, escaped blanks and the sign. */
const ASSIGNMENT_REACH = 64;
const VALUE_REACH = 24;

function isNamed(text: string, at: number): boolean {
  return isAssigned(text, at) || isStated(text, at) || isOption(text, at);
}

/** A value of which a sentence says that it is the secret has a digit. */
const STATED = new RegExp(`[a-z]{3,12}?${statedPattern(BLANK)}[^\\s"]{0,256}?\\d`, 'iy');
const OPTION_AHEAD = /[a-z]{3,12}(?:\s|\\{1,4}[nrt]){1,8}(?:\\{0,8}["'])?[^\s"]{0,256}?\d/iy;

/** A word follows, as in a sentence. */
const WORD_AHEAD = new RegExp(`[a-z]{3,12}["'\`*)\\]\\\\]{0,8}${BLANK}{1,4}[^\\s.,;:!?|(){}<>=]`, 'iy');

function isStated(text: string, at: number): boolean {
  WORD_AHEAD.lastIndex = at;
  if (!WORD_AHEAD.test(text)) return false;
  anchorChecks += STATED_CHECKS;
  STATED.lastIndex = at;
  return STATED.test(text);
}

/** Cost of reading the sentence behind a name, in checks. */
const STATED_CHECKS = 8;
const OPTION_NAME = /(?:^|[^A-Za-z0-9-])--[A-Za-z0-9_-]{0,62}$/;

function isOption(text: string, at: number): boolean {
  OPTION_AHEAD.lastIndex = at;
  return OPTION_NAME.test(text.slice(Math.max(0, at - 66), at)) && OPTION_AHEAD.test(text);
}

function isAssigned(text: string, at: number): boolean {
  const end = signEnd(text, at);
  if (end === 0 || HARMLESS_BEFORE.test(text.slice(Math.max(0, at - 16), at))) return false;
  return end < 0 || !HARMLESS_VALUE.test(text.slice(end, end + VALUE_REACH));
}

/** End of the sign after a name; 0 where there is none, negative where it has several characters. */
function signEnd(text: string, at: number): number {
  anchorChecks += ASSIGNMENT_CHECKS;
  const ahead = text.slice(at, at + ASSIGNMENT_REACH);
  const assigned = ASSIGNED.exec(ahead);
  if (assigned !== null) return at + assigned[0].length;
  return LONG_SIGN.test(ahead) ? -1 : 0;
}

const LONG_SIGN = /^[A-Za-z]{3,12}["'`*\\]{0,8}(?:\s|\\{1,4}[nrt]){0,8}[:=]/;

function isNamedKey(text: string, at: number): boolean {
  return (
    /(?:api|access|private|secret|client|auth)[_\- \t]?$/i.test(text.slice(Math.max(0, at - 9), at)) &&
    isNamed(text, at)
  );
}

/** An option of a command with a user name, on the same line or on one that continues it. */
const USER_OPTION = /[\s\S]{0,4096}?[\s"'nrt]-(?:[a-z#]{0,8}u|-user|-proxy-user)[^:]{0,300}:/iy;

function hasUserOption(text: string, at: number, length: number): boolean {
  anchorChecks += COMMAND_CHECKS;
  USER_OPTION.lastIndex = at + length;
  return USER_OPTION.test(text);
}

/** Cost of reading a command, in checks. */
const COMMAND_CHECKS = 256;

/** A cookie, or several, behind the name of the header. */
const COOKIES_AHEAD = new RegExp(
  `cookies?(?:["'\`\\\\]{0,8}${BLANK}{0,8}[:=]${BLANK}{0,8}|${BLANK}{1,4})[["'\`\\\\\\s]{0,24}[a-z0-9!#$%&'*+.^_\`|~-]{1,128}=`,
  'iy',
);

function isCookieHeader(text: string, at: number): boolean {
  COOKIES_AHEAD.lastIndex = at;
  return COOKIES_AHEAD.test(text);
}

/** A password in a connection string, where four characters suffice. */
function isConnectionPassword(text: string, at: number): boolean {
  return /^(?:password|pwd)(?:\s|\\{1,4}[nrt]){0,4}=/i.test(text.slice(at, at + ASSIGNMENT_REACH));
}

/** As much of the info string of a fence is read as its language may take, behind blanks that may be escaped. */
const INFO_REACH = 96;
const FENCE_START = /^(?:[`~:]|\\t)*/;

const DANGEROUS_DATA = /^data:\s{0,4}(?:text|image|application|[;,])/i;

/** How far from its anchor a cue may reach, in raw characters. */
const CUE_REACH = 320;
/** Stretches of this many characters without a letter or digit are folded to one blank before cues are matched. */
const WORDLESS_CHARS = 12;

/** Whether a text has such a stretch. Looks at each twelfth character, and back from one that is in no word. */
export function hasWordlessStretch(text: string): boolean {
  let start = 0;
  while (start + WORDLESS_CHARS <= text.length) {
    let at = start + WORDLESS_CHARS - 1;
    while (at >= start && !isLetterOrDigit(text.charCodeAt(at))) at--;
    if (at < start) return true;
    start = at + 1;
  }
  return false;
}

function isLetterOrDigit(unit: number): boolean {
  const letter = unit | 0x20;
  return (letter >= 0x61 && letter <= 0x7a) || (unit >= 0x30 && unit <= 0x39);
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** A quote without a preceding backslash is not part of a JSON string. */
function isStringBoundary(text: string, at: number): boolean {
  return text.charCodeAt(at) === QUOTE && text.charCodeAt(at - 1) !== BACKSLASH;
}

/** The text that a cue with this anchor may cover; in JSON, at most the string around it. */
function reachOf(text: string, at: number, length: number, isJson: boolean): string {
  const start = Math.max(0, at - CUE_REACH);
  const end = Math.min(text.length, at + length + CUE_REACH);
  const around = text.slice(start, end);
  // In long texts few have a quote, and searching for one is several times faster.
  if (!isJson || !around.includes('"')) return around;
  let from = at;
  while (from > start && !isStringBoundary(text, from - 1)) from--;
  let to = at + length;
  while (to < end && !isStringBoundary(text, to)) to++;
  return text.slice(from, to);
}

function cueCheck(companion: CueAnchor['companion']): Check {
  if (companion === undefined) return always;
  return (text, at, length, isJson) => {
    const around = reachOf(text, at, length, isJson);
    anchorChecks += Math.floor(around.length / SEARCHED_PER_CHECK);
    // A word on its own has nothing near it.
    return around.length > length && (companion.test(around) || hasWordlessStretch(around));
  };
}

/** True after a letter or a digit, unless it is the letter of an escape. */
function isWithinWord(units: Uint8Array, at: number): boolean {
  if (at === 0 || (at > 1 && units[at - 2] === BACKSLASH)) return false;
  return isLetterOrDigit(units[at - 1] ?? 0);
}

function addAnchor(text: string, check: Check, of?: SecretFormat | Cue, beginsWord = false): void {
  anchors.push({ text, beginsWord });
  let key = 0;
  for (let at = 0; at < 3; at++) key = nextAnchorKey(key, text.charCodeAt(at));
  const bucket = buckets[key] ?? [];
  bucket.push({ text, check, beginsWord, of });
  buckets[key] = bucket;
  ANCHOR_STARTS[key] = 1;
  const fourth = text.length > 3 ? 1 << (text.charCodeAt(3) & CLASS_MASK) : EVERY_CLASS;
  fourths[key] = (fourths[key] ?? 0) | fourth;
}

for (const format of SECRET_FORMATS) {
  for (const anchor of format.anchors) addAnchor(anchor, checkOf(format, anchor), format);
}
for (const name of ['password', 'passwd', 'passphrase', 'pwd', 'secret', 'token', 'credential']) {
  addAnchor(name, isNamed);
}
addAnchor('key', isNamedKey);
addAnchor('pass', (text, at) => !/[A-Za-z]/.test(text.charAt(at + 4)) && isAssigned(text, at));
addAnchor('cookie', isCookieHeader);
addAnchor('curl', hasUserOption, undefined, true);
for (const anchor of ['javascript:', 'vbscript:', 'livescript:', 'ssn', 'ss#', 'social', 'dev.sallyport/']) {
  addAnchor(anchor, always);
}
addAnchor('://', hasUserNameAhead);
addAnchor('www.', hasUserNameAhead);
for (const fence of ['```', '~~~', ':::']) {
  addAnchor(fence, (text, at) => drawnLanguage(text.slice(at, at + INFO_REACH).replace(FENCE_START, '')) !== undefined);
}
addAnchor('data:', (text, at) => DANGEROUS_DATA.test(text.slice(at, at + 24)));
for (const cue of PHRASES) {
  // Phrases consist of whole words.
  for (const { text, companion } of cue.anchors) addAnchor(text, cueCheck(companion), cue, true);
}
for (const anchor of STRUCTURE_ANCHORS) addAnchor(anchor.text, cueCheck(anchor.companion));
