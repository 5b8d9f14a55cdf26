// The literals without which no detector matches, looked for all at once: a rolling window of three
// folded characters indexes a table, and only where an anchor can begin is it compared. Each anchor may
// name what must stand near it. Errs only towards "found".

import {
  type Cue,
  type CueAnchor,
  PHRASES,
  STRUCTURE_ANCHORS,
} from '../detectors/injection-phrases.js';
import { SECRET_FORMATS, type SecretFormat } from '../detectors/secret-formats.js';

/** `isJson`: the text is valid JSON, so a quote without a backslash before it ends what is read as one text. */
type Check = (text: string, at: number, length: number, isJson: boolean) => boolean;
type Anchor = {
  readonly text: string;
  readonly check: Check;
  /** What needs the anchor. */
  readonly of: SecretFormat | Cue | undefined;
};

const CLASS_BITS = 5;
const CLASS_MASK = (1 << CLASS_BITS) - 1;
const KEY_MASK = (1 << (3 * CLASS_BITS)) - 1;

/** Not 0 where the key is that of the first three units of an anchor. */
export const ANCHOR_STARTS = new Uint8Array(KEY_MASK + 1);
/** By key: which units may come fourth, a bit for each class; all of them where an anchor has but three. */
const fourths = new Int32Array(KEY_MASK + 1);
const EVERY_CLASS = -1;
/** The literals themselves, lower case. */
const literals: string[] = [];
export const ANCHORS: readonly string[] = literals;
const buckets: (Anchor[] | undefined)[] = Array.from({ length: KEY_MASK + 1 });
const NO_ANCHORS: readonly Anchor[] = [];

/**
 * The key of the last three units, from the key before and the newest unit. Of a unit five bits count,
 * which both cases of a letter share; what they share with other characters, comparing tells apart.
 */
export function nextAnchorKey(key: number, unit: number): number {
  // Literals, not the constants: this runs once a character, and only literals are folded everywhere.
  return ((key << 5) | (unit & 0x1f)) & 0x7fff;
}

/**
 * So many anchors of one text are looked at; past that it is no longer surely clean. A look takes up to a
 * microsecond, one that reads more counts for several, and a text may be nothing but anchors.
 */
export const MAX_ANCHOR_CHECKS = 16_384;
let anchorChecks = 0;

/** What a look behind a name counts for. */
const ASSIGNMENT_CHECKS = 4;
/** A look that searches what is around counts for one more with each so many characters, or where it only crosses them. */
const SEARCHED_PER_CHECK = 16;
const CROSSED_PER_CHECK = 64;

/** Begins the count of looks anew: for each text. */
export function resetAnchorChecks(): void {
  anchorChecks = 0;
}

/** True where an anchor whose first three units end at `at` stands with what it needs near it. */
export function isAnchored(text: string, at: number, key: number, isJson: boolean): boolean {
  if (at < 2 || !mayGoOn(text, at, key)) return false;
  const start = at - 2;
  for (const { text: anchor, check } of buckets[key] ?? NO_ANCHORS) {
    if (!standsAt(text, start, anchor)) continue;
    if (++anchorChecks > MAX_ANCHOR_CHECKS || check(text, start, anchor.length, isJson))
      return true;
  }
  return false;
}

/** Behind the last unit of a text comes NaN, whose class is 0: no anchor goes on there. */
function mayGoOn(text: string, at: number, key: number): boolean {
  return (((fourths[key] ?? 0) >>> (text.charCodeAt(at + 1) & CLASS_MASK)) & 1) === 1;
}

/** Compares without regard to case; the anchor is lower case. */
function standsAt(text: string, at: number, anchor: string): boolean {
  for (let offset = anchor.length - 1; offset >= 0; offset--) {
    const code = text.charCodeAt(at + offset);
    const lower = code >= 0x41 && code <= 0x5a ? code + 0x20 : code;
    if (lower !== anchor.charCodeAt(offset)) return false;
  }
  return true;
}

/** The formats that may stand in a text: those with an anchor in it, and those without any. */
export function formatsIn(text: string): readonly SecretFormat[] {
  const formats = [...WITHOUT_ANCHOR];
  for (const one of ownersIn(text)) if ('pattern' in one) formats.push(one);
  return formats;
}

/** The cues that may stand in a text: those with an anchor in it. */
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
    if (standsAt(text, at, anchor)) owners.add(of);
  }
}

const always: Check = () => true;

/** A token is at least this long behind its prefix. */
const MIN_TOKEN_AHEAD = 8;
const TOKEN_AHEAD = /^[A-Za-z0-9_.=/+%:-]+$/;

function hasTokenAhead(text: string, at: number, length: number): boolean {
  const ahead = text.slice(at + length, at + length + MIN_TOKEN_AHEAD);
  return ahead.length === MIN_TOKEN_AHEAD && TOKEN_AHEAD.test(ahead);
}

/** Formats that begin with their anchor are followed by the token itself. */
const WITHOUT_AHEAD: ReadonlySet<string> = new Set([
  'azure-client-secret',
  'mailchimp-key',
  'private-key',
  'bearer-token',
]);

function checkOf(format: SecretFormat): Check {
  if (format.kind === 'url-credentials') return hasCredentialsAhead;
  if (format.kind === 'connection-password') return isConnectionPassword;
  const isCued = format.pattern.source.includes('(') && format.pattern.flags.includes('i');
  return isCued || WITHOUT_AHEAD.has(format.kind) ? always : hasTokenAhead;
}

/** So many characters of a user name and its password may stand before their host. */
const MAX_CREDENTIALS = 17_388;
const CREDENTIALS_END = unitsIn('/?#@"\'<>');

function hasCredentialsAhead(text: string, at: number): boolean {
  if (!text.startsWith('://', at)) return false;
  const from = at + 3;
  const end = crossTo(text, from, from + MAX_CREDENTIALS, CREDENTIALS_END);
  return text[end] === '@';
}

/** A user name before a host is shorter, or more than is worth reading. */
const MAX_USER_NAME = 512;
const USER_NAME_END = unitsIn('/?#@<');
const JSON_USER_NAME_END = unitsIn('/?#@<"');

/** True before a user name, or what is too long to tell. Crossed once: a long text may be nothing but hosts. */
function hasUserNameAhead(text: string, at: number, length: number, isJson: boolean): boolean {
  const from = at + length;
  const reach = from + MAX_USER_NAME;
  const ends = isJson ? JSON_USER_NAME_END : USER_NAME_END;
  const end = crossTo(text, from, reach, ends, isJson);
  return end >= reach || text[end] === '@';
}

function unitsIn(signs: string): Uint8Array {
  const units = new Uint8Array(128);
  for (let at = 0; at < signs.length; at++) units[signs.charCodeAt(at)] = 1;
  return units;
}

/** The first place from `from` where a blank or one of the units stands, or the end; it may lie past `to`. */
function crossTo(
  text: string,
  from: number,
  to: number,
  ends: Uint8Array,
  hasEscapes = false,
): number {
  const last = Math.min(to, text.length);
  let at = from;
  while (at < last) {
    const unit = text.charCodeAt(at);
    if (unit < 128 ? ends[unit] === 1 || (unit <= 0x20 && isBlank(text, at)) : isBlank(text, at))
      break;
    at += hasEscapes && unit === BACKSLASH ? 2 : 1;
  }
  anchorChecks += Math.floor((at - from) / CROSSED_PER_CHECK);
  return at;
}

function isBlank(text: string, at: number): boolean {
  return /\s/.test(text.charAt(at));
}

/** An assignment within the few characters behind a name, raw, or escaped once or twice. */
const ASSIGNED = /^[A-Za-z]{3,12}["'`\\]{0,8}(?:\s|\\{1,4}[nrt]){0,8}[:=](?![=>:])/;

/**
 * What may stand behind the sign and is no secret: a quoted value shorter than one, a short word, a short
 * number, an object. It must end in what no value goes on over, and hold no escape.
 */
const HARMLESS_VALUE =
  /^\s{0,8}(?:"[\w.-]{0,7}"[\s,;)}\]]|[A-Za-z_./-]{1,7}[\s,;)}\]]|\d{1,7}[\s,;)}\]]|\{)/;

/** Ends of names that only continue a list or tell of progress (an escaped line end is no letter of one). */
const HARMLESS_BEFORE =
  /(?<!\\)(?:next|page|continuation|cursor|sync|delta|csrf|xsrf|progress)[_-]?$/i;

/** Name, quotes and escaped blanks at their longest, and the sign. */
const ASSIGNMENT_REACH = 64;
const VALUE_REACH = 24;

function isAssigned(text: string, at: number): boolean {
  const end = signEnd(text, at);
  if (end === 0 || HARMLESS_BEFORE.test(text.slice(Math.max(0, at - 16), at))) return false;
  return end < 0 || !HARMLESS_VALUE.test(text.slice(end, end + VALUE_REACH));
}

/** Where the sign behind a name ends; 0 where there is none, negative where it is of several characters. */
function signEnd(text: string, at: number): number {
  anchorChecks += ASSIGNMENT_CHECKS;
  const ahead = text.slice(at, at + ASSIGNMENT_REACH);
  const assigned = ASSIGNED.exec(ahead);
  if (assigned !== null) return at + assigned[0].length;
  return LONG_SIGN.test(ahead) ? -1 : 0;
}

const LONG_SIGN = /^[A-Za-z]{3,12}["'`\\]{0,8}(?:\s|\\{1,4}[nrt]){0,8}[:=]/;

function isAssignedKey(text: string, at: number): boolean {
  return (
    /(?:api|access|private|secret|client|auth)[_\- ]?$/i.test(
      text.slice(Math.max(0, at - 9), at),
    ) && isAssigned(text, at)
  );
}

/** A password within a connection string, where four characters are enough for one. */
function isConnectionPassword(text: string, at: number): boolean {
  return /^(?:password|pwd)(?:\s|\\{1,4}[nrt]){0,4}=/i.test(text.slice(at, at + ASSIGNMENT_REACH));
}

const DANGEROUS_DATA = /^data:\s{0,4}(?:text|image|application|[;,])/i;

/** How far from its anchor a cue may reach, in raw characters. */
const CUE_REACH = 320;
/** Longer stretches without a word are folded to one blank before cues are judged. */
const WORDLESS = /[^A-Za-z0-9]{12}/;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** A quote with no backslash before it is no part of a string of JSON. */
function isBorder(text: string, at: number): boolean {
  return text.charCodeAt(at) === QUOTE && text.charCodeAt(at - 1) !== BACKSLASH;
}

/** What a cue with this anchor may reach; in JSON no further than the string that it stands in. */
function reachOf(text: string, at: number, length: number, isJson: boolean): string {
  let start = Math.max(0, at - CUE_REACH);
  let end = Math.min(text.length, at + length + CUE_REACH);
  if (isJson) {
    let from = at;
    while (from > start && !isBorder(text, from - 1)) from--;
    let to = at + length;
    while (to < end && !isBorder(text, to)) to++;
    start = from;
    end = to;
  }
  return text.slice(start, end);
}

function cueCheck(near: CueAnchor['near']): Check {
  if (near === undefined) return always;
  return (text, at, length, isJson) => {
    const around = reachOf(text, at, length, isJson);
    anchorChecks += Math.floor(around.length / SEARCHED_PER_CHECK);
    // A word by itself has nothing near it.
    return around.length > length && (near.test(around) || WORDLESS.test(around));
  };
}

/** Phrases are made of whole words, so an anchor within a word is none of theirs. */
function phraseCheck(near: CueAnchor['near']): Check {
  const check = cueCheck(near);
  return (text, at, length, isJson) => !isWithinWord(text, at) && check(text, at, length, isJson);
}

/** True behind a letter or a digit, unless it is the letter of an escape. */
function isWithinWord(text: string, at: number): boolean {
  if (at === 0 || text.charCodeAt(at - 2) === BACKSLASH) return false;
  const before = text.charCodeAt(at - 1);
  const letter = before | 0x20;
  return (letter >= 0x61 && letter <= 0x7a) || (before >= 0x30 && before <= 0x39);
}

function addAnchor(text: string, check: Check, of?: SecretFormat | Cue): void {
  literals.push(text);
  let key = 0;
  for (let at = 0; at < 3; at++) key = nextAnchorKey(key, text.charCodeAt(at));
  const bucket = buckets[key] ?? [];
  bucket.push({ text, check, of });
  buckets[key] = bucket;
  ANCHOR_STARTS[key] = 1;
  const fourth = text.length > 3 ? 1 << (text.charCodeAt(3) & CLASS_MASK) : EVERY_CLASS;
  fourths[key] = (fourths[key] ?? 0) | fourth;
}

for (const format of SECRET_FORMATS) {
  for (const anchor of format.anchors) addAnchor(anchor, checkOf(format), format);
}
for (const name of ['password', 'passwd', 'passphrase', 'pwd', 'secret', 'token', 'credential']) {
  addAnchor(name, isAssigned);
}
addAnchor('key', isAssignedKey);
for (const anchor of [
  'javascript:',
  'vbscript:',
  'livescript:',
  'ssn',
  'ss#',
  'social',
  'dev.sallyport/',
]) {
  addAnchor(anchor, always);
}
addAnchor('://', hasUserNameAhead);
addAnchor('www.', hasUserNameAhead);
addAnchor('data:', (text, at) => DANGEROUS_DATA.test(text.slice(at, at + 24)));
for (const cue of PHRASES) {
  for (const anchor of cue.anchors) addAnchor(anchor.text, phraseCheck(anchor.near), cue);
}
for (const anchor of STRUCTURE_ANCHORS) addAnchor(anchor.text, cueCheck(anchor.near));
