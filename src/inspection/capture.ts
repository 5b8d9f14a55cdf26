// Reads the argument values that policy rules capture for the audit log: found by JSON pointer, with secrets and
// personal data redacted, and read no further than the record needs. Its work is bounded for any input, and it
// never throws. Source: docs/reference/policies.md; docs/reference/audit.md.

import { exactNumbersIn } from '../protocol/json/exact-numbers.js';
import { isObject, type Json, type JsonObject } from '../protocol/jsonrpc.js';
import { stepsOf } from '../text/json-members.js';
import { isSsnName } from './detectors/pii.js';
import { isSecretName, isSecretNumber, mayNameSecret, NAMED_SECRET } from './detectors/secrets.js';
import { type ResultRules, redactText } from './detectors/text-sanitizer.js';
import { isSurelyClean } from './prefilter/prefilter.js';
import { redactionMark } from './redaction-marks.js';
import { containsPresentedToken } from './requests.js';

// Every detector that applies to results, whatever the inspection profile of the upstream says.
const RULES: ResultRules = {
  secrets: 'redact',
  pii: { action: 'redact', kinds: ['card', 'iban', 'ssn'] },
  activeContent: 'off',
  invisible: 'off',
  injection: 'off',
  // A record needs neither the signature of a link nor the user of an address.
  links: 'redact',
};

/**
 * Replaces each secret and each personal datum in a text for the audit log (docs/reference/audit.md) by a placeholder.
 * Where `name`, the member that holds the text, denotes a secret, the whole value is replaced; that would spoil a
 * result, but not a record. Text that cannot be inspected is not recorded. Never throws.
 */
export function redactForRecord(text: string, name?: string): string {
  try {
    if (name !== undefined && text !== '' && isSecretName(name)) return redactionMark(NAMED_SECRET);
    const isNamed = name !== undefined && (mayNameSecret(name) || isSsnName(name));
    return !isNamed && isSurelyClean(text) ? text : redactText(text, RULES, [], name);
  } catch {
    return redactionMark('unread');
  }
}

/** Maximum number of values captured for one decision, however many rules ask for more. */
const MAX_CAPTURED = 64;

/** Characters read of one value. The record keeps far fewer, so a secret among those is read to its end. */
const MAX_READ_CHARACTERS = 1024;
/** Characters read of all values together. They are divided evenly, within the bounds for one value. */
const MAX_READ_IN_SUM = 16 * 1024;
const MIN_READ_CHARACTERS = 256;

const TOKEN = redactionMark('token');
const UNREAD = redactionMark('unread');

/**
 * The value at each pointer (RFC 6901) as text; absent values are left out. Objects and arrays are written as
 * JSON. INVARIANT: the caller's own token is never included, neither in one value nor spread over several.
 */
export function captureArguments(
  args: JsonObject,
  pointers: readonly string[],
  presentedToken: string | undefined,
): Readonly<Record<string, string>> {
  const found = findValues(args, pointers);
  const quota = Math.floor(MAX_READ_IN_SUM / Math.max(1, found.length));
  const limit = Math.min(MAX_READ_CHARACTERS, Math.max(MIN_READ_CHARACTERS, quota));
  const captured: Record<string, string> = {};
  const read: string[] = [];
  for (const one of found) {
    const walk: CaptureState = { charsLeft: limit, read: [], text: '', isRedacted: false };
    captured[one.pointer] = captureValue(one, presentedToken, walk);
    read.push(...walk.read);
  }
  if (read.length < 2 || !containsPresentedToken([read.join('')], presentedToken)) return captured;
  for (const pointer of Object.keys(captured)) captured[pointer] = TOKEN;
  return captured;
}

/** A value and the name of the member that holds it; of a number that its double does not say, the text. */
type FoundValue = {
  readonly pointer: string;
  readonly value: Json;
  readonly name: string;
  readonly literal: string | undefined;
};

function findValues(args: JsonObject, pointers: readonly string[]): readonly FoundValue[] {
  const found: FoundValue[] = [];
  for (const pointer of pointers) {
    const one = found.length < MAX_CAPTURED ? valueAt(args, pointer) : undefined;
    if (one !== undefined) found.push(one);
  }
  return found;
}

function valueAt(args: JsonObject, pointer: string): FoundValue | undefined {
  let value: Json = args;
  let name = '';
  let literal: string | undefined;
  for (const key of stepsOf(pointer)) {
    const next = memberOf(value, key);
    if (next === undefined) return undefined;
    // An element of an array takes the name of the array.
    if (!Array.isArray(value)) name = nameOf(key, name);
    literal = literalIn(value, Array.isArray(value) ? Number(key) : key);
    value = next;
  }
  return { pointer, value, name, literal };
}

function literalIn(container: Json, key: string | number): string | undefined {
  const numbers = typeof container === 'object' && container !== null ? exactNumbersIn(container) : undefined;
  return numbers?.get(key);
}

/** The name used to classify a member: everything below a name that denotes a secret is a secret. */
function nameOf(key: string, parentName: string): string {
  return isSecretName(parentName) ? parentName : key;
}

function memberOf(value: Json, key: string): Json | undefined {
  if (Array.isArray(value)) return /^(?:0|[1-9]\d{0,8})$/.test(key) ? value[Number(key)] : undefined;
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

/** Progress through one value: the characters left to read, the strings read, and the text produced. */
type CaptureState = {
  charsLeft: number;
  readonly read: string[];
  text: string;
  isRedacted: boolean;
};

function captureValue(
  { value, name, literal }: FoundValue,
  presentedToken: string | undefined,
  walk: CaptureState,
): string {
  try {
    if (typeof value === 'string') walk.text = readText(value, name, walk);
    else writeJson(value, name, walk, literal);
    if (containsPresentedToken(walk.read, presentedToken)) return TOKEN;
    // A name and a value next to each other may form a secret that neither is alone.
    const captured = typeof value === 'string' ? walk.text : redactForRecord(walk.text);
    return walk.charsLeft > 0 ? captured : withoutTail(captured, walk.isRedacted || captured !== walk.text);
  } catch {
    return UNREAD;
  }
}

/** Drops the last word after a redaction: the text read may end in an unrecognizable piece of a secret. */
function withoutTail(text: string, isRedacted: boolean): string {
  return isRedacted ? `${text.replace(/\S*$/, '')}\u2026` : text;
}

function readText(text: string, name: string, walk: CaptureState): string {
  const head = text.length > walk.charsLeft ? text.slice(0, walk.charsLeft) : text;
  walk.charsLeft -= head.length;
  walk.read.push(head);
  const kept = redactForRecord(head, name);
  if (kept !== head) walk.isRedacted = true;
  return kept;
}

/** Writes a value as JSON until the limit is reached. */
function writeJson(value: Json, name: string, walk: CaptureState, literal?: string): void {
  if (typeof value === 'string') walk.text += JSON.stringify(readText(value, name, walk));
  else if (Array.isArray(value)) writeList(value, name, walk);
  else if (isObject(value)) writeObject(value, name, walk);
  else writePlain(value, name, walk, literal);
}

function writeList(values: readonly Json[], name: string, walk: CaptureState): void {
  walk.text += '[';
  for (const [index, value] of values.entries()) {
    if (walk.charsLeft <= 0) break;
    walk.charsLeft -= 1;
    if (index > 0) walk.text += ',';
    writeJson(value, name, walk, literalIn(values, index));
  }
  walk.text += ']';
}

function writeObject(value: JsonObject, parentName: string, walk: CaptureState): void {
  walk.text += '{';
  let isFirst = true;
  for (const name in value) {
    if (walk.charsLeft <= 0) break;
    walk.charsLeft -= 1;
    walk.text += `${isFirst ? '' : ','}${JSON.stringify(readText(name, '', walk))}:`;
    isFirst = false;
    writeJson(value[name] as Json, nameOf(name, parentName), walk, literalIn(value, name));
  }
  walk.text += '}';
}

/** A number may be a secret because of its name, or a card number. */
function writePlain(value: Json, name: string, walk: CaptureState, text = String(value)): void {
  if (typeof value === 'number' && isSecretNumber(text, name)) {
    walk.isRedacted = true;
    walk.text += JSON.stringify(redactionMark(NAMED_SECRET));
    return;
  }
  const kept = readText(text, typeof value === 'number' ? name : '', walk);
  walk.text += kept === text ? kept : JSON.stringify(kept);
}
