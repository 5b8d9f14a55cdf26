// The literals without which no detector matches, looked for all at once: a rolling window of three
// folded characters indexes a table, and only where an anchor can begin is it compared. Each anchor may
// name what must stand near it. Errs only towards "found".

import { type Cue, type CueAnchor, PHRASES, STRUCTURE_ANCHORS } from './injection-cues.js';
import { SECRET_FORMATS, type SecretFormat } from './secret-formats.js';

type Check = (text: string, at: number, length: number) => boolean;
type Anchor = {
  readonly text: string;
  readonly check: Check;
  /** What needs the anchor. */
  readonly of: SecretFormat | Cue | undefined;
};

const CLASS_BITS = 5;
const KEY_MASK = (1 << (3 * CLASS_BITS)) - 1;
const DIGIT_CLASS = 27;
const CLASSED_SIGNS = ['_', '-', '.', '/'];

const classes = new Uint8Array(0x10000);
for (let letter = 0; letter < 26; letter++) {
  classes[0x41 + letter] = letter + 1;
  classes[0x61 + letter] = letter + 1;
}
for (let digit = 0; digit < 10; digit++) classes[0x30 + digit] = DIGIT_CLASS;
for (const [index, sign] of CLASSED_SIGNS.entries()) {
  classes[sign.charCodeAt(0)] = DIGIT_CLASS + 1 + index;
}

const isStart = new Uint8Array(KEY_MASK + 1);
const buckets = new Map<number, Anchor[]>();

/** The class of a UTF-16 unit among anchors, below 32. */
export function anchorClass(code: number): number {
  return classes[code] ?? 0;
}

/** The key of the last three units, from the key before and the class of the newest. */
export function nextAnchorKey(key: number, unitClass: number): number {
  return ((key << CLASS_BITS) | unitClass) & KEY_MASK;
}

/** True where an anchor whose first three units end at `at` stands with what it needs near it. */
export function isAnchored(text: string, at: number, key: number): boolean {
  return isStart[key] === 1 && hasAnchor(text, at - 2, key);
}

function hasAnchor(text: string, at: number, key: number): boolean {
  if (at < 0) return false;
  for (const anchor of buckets.get(key) ?? []) {
    if (standsAt(text, at, anchor.text) && anchor.check(text, at, anchor.text.length)) return true;
  }
  return false;
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
    key = nextAnchorKey(key, anchorClass(text.charCodeAt(at)));
    if (isStart[key] === 1) addOwners(text, at - 2, key, owners);
  }
  return owners;
}

const WITHOUT_ANCHOR = SECRET_FORMATS.filter((format) => format.anchors.length === 0);

function addOwners(text: string, at: number, key: number, owners: Set<SecretFormat | Cue>): void {
  for (const { text: anchor, of } of buckets.get(key) ?? []) {
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
  if (format.kind === 'connection-password') return isAssigned;
  const isCued = format.pattern.source.includes('(') && format.pattern.flags.includes('i');
  return isCued || WITHOUT_AHEAD.has(format.kind) ? always : hasTokenAhead;
}

function hasCredentialsAhead(text: string, at: number): boolean {
  return /^:\/\/[^\s/?#@"'<>]{0,302}@/.test(text.slice(at, at + 306));
}

/** An assignment within the few characters behind a name, raw or escaped. */
function isAssigned(text: string, at: number): boolean {
  return /^[A-Za-z]{3,12}["'`\\]{0,8}(?:\s|\\[nrt]){0,8}[:=]/.test(text.slice(at, at + 48));
}

function isAssignedKey(text: string, at: number): boolean {
  return (
    /(?:api|access|private|secret|client|auth)[_\- ]?$/i.test(
      text.slice(Math.max(0, at - 9), at),
    ) && isAssigned(text, at)
  );
}

const DANGEROUS_DATA = /^data:\s{0,4}(?:text|image|application|[;,])/i;

/** How far from its anchor a cue may reach, in raw characters. */
const CUE_REACH = 320;
/** Longer stretches without a word are folded to one blank before cues are judged. */
const WORDLESS = /[^A-Za-z0-9]{12}/;

function cueCheck(near: CueAnchor['near']): Check {
  if (near === undefined) return always;
  return (text, at, length) => {
    const around = text.slice(Math.max(0, at - CUE_REACH), at + length + CUE_REACH);
    return near.test(around) || WORDLESS.test(around);
  };
}

function addAnchor(text: string, check: Check, of?: SecretFormat | Cue): void {
  let key = 0;
  for (let at = 0; at < 3; at++) {
    key = (key << CLASS_BITS) | (classes[text.charCodeAt(at)] ?? 0);
  }
  const bucket = buckets.get(key) ?? [];
  bucket.push({ text, check, of });
  buckets.set(key, bucket);
  isStart[key] = 1;
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
addAnchor('data:', (text, at) => DANGEROUS_DATA.test(text.slice(at, at + 24)));
for (const cue of PHRASES) {
  for (const anchor of cue.anchors) addAnchor(anchor.text, cueCheck(anchor.near), cue);
}
for (const anchor of STRUCTURE_ANCHORS) addAnchor(anchor.text, cueCheck(anchor.near));
