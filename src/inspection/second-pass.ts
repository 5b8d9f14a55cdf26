// The second, independent check: reads the text that would leave as a client reads it, from its bytes on, and
// reports anything of a class that the first pass had to remove. It shares no walking and no replacing with the
// first pass, uses no prefilter and no offsets, and changes nothing; whatever remains withholds the message.
// It decodes two layers of escapes, percent triplets, character references, base64 and hex.

import { isOwnMember } from '../protocol/capabilities.js';
import { readJsonText } from '../protocol/json/json.js';
import { isObject, type Json, type JsonObject } from '../protocol/jsonrpc.js';
import { stepsOf } from '../text/json-members.js';
import { checkBytes, readableParts, readPayload } from './binary-content.js';
import { findActiveContent } from './detectors/active-content.js';
import { findEncodedRuns } from './detectors/decoded-text.js';
import { findPersonal } from './detectors/pii.js';
import { findSecrets } from './detectors/secrets.js';
import {
  actionFor,
  DECODING_DEPTH,
  numberKind,
  type ResultRules,
  type WantedKinds,
} from './detectors/text-sanitizer.js';
import { stripInvisible, stripTerminalSequences } from './detectors/unicode.js';
import {
  findSentCredentials,
  OWN_CREDENTIAL,
  type SentCredentials,
} from './detectors/upstream-credentials.js';
import { areRemote, exemptIn, ICONS, isFreeForm, isReserved } from './message-fields.js';
import {
  findSureCode,
  hasImage,
  hasLeakingAddress,
  hasLoadingTag,
} from './second-pass-markdown.js';

type RecheckInput = {
  readonly text: string;
  readonly rules: ResultRules;
  readonly approved: ReadonlySet<string>;
  /** The method of the request, where the message is a response. */
  readonly requestMethod?: string | undefined;
  readonly tail: string;
  readonly maxDepth: number;
};

/** Returns the names of the classes that remain, or none. The caller withholds the message where this throws. */
export type Recheck = (input: RecheckInput) => readonly string[];

/** One string or number with the name of its member and its role. */
type CollectedText = {
  readonly text: string;
  readonly name: string | undefined;
  readonly role: 'prose' | 'value' | 'name' | 'number' | 'bytes';
};

/** Everything collected, and the texts that a reader joins: prose, and the values of each structure. */
type CollectedTexts = {
  readonly met: CollectedText[];
  readonly prose: string[];
  /** The prose that a client shows as one text. Payloads are shown apart and not included. */
  readonly shown: string[];
  readonly series: string[][];
  hasRemoteIcons: boolean;
  hasReserved: boolean;
};

/** The classes of which something remains. Unreadable JSON counts as a class of its own. */
export function findRemaining(input: RecheckInput): readonly string[] {
  const read = readJsonText(input.text, {
    maxDepth: input.maxDepth,
    maxValues: Number.POSITIVE_INFINITY,
  });
  if (!read.ok) return ['unreadable'];
  const collected: CollectedTexts = {
    ...{ met: [], prose: [], shown: [], series: [[]] },
    ...{ hasRemoteIcons: false, hasReserved: false },
  };
  const exempt = exemptIn(read.value, input.requestMethod);
  const approved = new Set([...input.approved, ...exempt]);
  collect(read.value, { pointer: '', name: undefined, approved, isFree: false }, collected);
  const remains = new Set<string>(collected.hasRemoteIcons ? ['remote-icons'] : []);
  if (collected.hasReserved) remains.add('reserved-meta');
  for (const one of collected.met) recheckLeaf(one, input.rules, remains);
  recheckJoined(collected, input, remains);
  if (
    isActiveRemoved(input.rules) &&
    collected.shown.length > 1 &&
    isActiveJoined(collected.shown, input.rules.kind)
  ) {
    remains.add('split');
  }
  if (containsOwnCredentials(read.value, input.rules.own)) remains.add(OWN_CREDENTIAL);
  return [...remains];
}

/** Whether a credential of the gateway remains in any member, including exempt and approved ones. */
function containsOwnCredentials(value: Json, own: SentCredentials | undefined): boolean {
  if (own === undefined) return false;
  if (typeof value === 'number') return findSentCredentials(String(value), own).length > 0;
  if (typeof value === 'string') {
    return readingsOf(value, DECODING_DEPTH).some(
      (reading) => findSentCredentials(reading, own).length > 0,
    );
  }
  if (Array.isArray(value)) return value.some((one: Json) => containsOwnCredentials(one, own));
  if (!isObject(value)) return false;
  return Object.entries(value).some(
    ([name, one]) => containsOwnCredentials(name, own) || containsOwnCredentials(one, own),
  );
}

type JsonLocation = {
  readonly pointer: string;
  readonly name: string | undefined;
  /** Members that pass unchanged: reviewed byte for byte, or not content. */
  readonly approved: ReadonlySet<string>;
  /** True below a member whose names are not defined by the protocol. */
  readonly isFree: boolean;
};

function collect(value: Json, parent: JsonLocation, collected: CollectedTexts): void {
  const { pointer, name, approved } = parent;
  if (approved.has(pointer)) return;
  if (typeof value === 'string') collectText(value, parent, collected);
  else if (typeof value === 'number') {
    collected.met.push({ text: String(value), name, role: 'number' });
  } else if (Array.isArray(value)) {
    for (const [index, one] of value.entries()) {
      collect(one, { ...parent, pointer: `${pointer}/${index}` }, collected);
    }
  } else if (isObject(value)) collectMembers(value, parent, collected);
}

function collectMembers(value: JsonObject, parent: JsonLocation, collected: CollectedTexts): void {
  const { pointer, approved } = parent;
  for (const [key, one] of Object.entries(value)) {
    collected.met.push({ text: key, name: undefined, role: 'name' });
    collected.hasReserved ||=
      isOwnMember(key) && !WITHIN_TEXT.test(pointer) && isReserved([...stepsOf(pointer), key]);
    const isBelowFree = parent.isFree || isFreeForm(key, parent.name);
    collected.hasRemoteIcons ||= key === ICONS && !isBelowFree && areRemote(one);
    if (typeof one === 'string' && collectPayload(value, key, one, collected)) continue;
    const location = { pointer: `${pointer}/${key}`, name: key, approved, isFree: isBelowFree };
    collect(one, location, collected);
  }
}

/** True for media and long base64. Collects the texts that any other payload may be decoded to. */
function collectPayload(
  value: JsonObject,
  key: string,
  text: string,
  collected: CollectedTexts,
): boolean {
  const payload = readPayload(value, key, text);
  if (payload === undefined) return false;
  if (payload.kind === 'media') return true;
  if (payload.kind === 'text') collectProse(payload.reading.text, collected);
  const hidden =
    payload.kind === 'bytes' ? [payload.reading.text, ...payload.others] : payload.others;
  for (const one of hidden) collected.met.push({ text: one, name: undefined, role: 'bytes' });
  // A long run of base64 contains the beginnings of tokens by chance, and no client shows it undecoded.
  return payload.kind !== 'none' && text.length > MAX_READ_CHARS && !/\s/.test(text);
}

/** A run of base64 up to this length may be a token. */
const MAX_READ_CHARS = 1024;

const PROSE =
  /^\/(?:result\/(?!structuredContent\/)(?:.{0,4096}\/)?text|error\/message|params\/(?:message|data)|(?:params|result(?:\/task|\/tasks\/\d+)?)\/statusMessage)$/;

function collectText(text: string, parent: JsonLocation, collected: CollectedTexts): void {
  if (PROSE.test(parent.pointer)) {
    collected.shown.push(text);
    collectProse(text, collected);
    return;
  }
  collected.met.push({ text, name: parent.name, role: 'value' });
  if (/^\/(?:json|result\/structuredContent)\b/.test(parent.pointer))
    collected.series.at(-1)?.push(text);
}

/** Collects a text that a client shows. JSON is read both as the text and as the values in it. */
function collectProse(text: string, collected: CollectedTexts): void {
  const inner = parseJsonText(text);
  collected.prose.push(text);
  collected.met.push({ text, name: undefined, role: inner === undefined ? 'prose' : 'value' });
  if (inner === undefined) return;
  collected.series.push([]);
  const location = {
    pointer: TEXT_POINTER,
    name: undefined,
    approved: NOTHING_APPROVED,
    isFree: true,
  };
  collect(inner, location, collected);
  collected.series.push([]);
}

/** Where the values of a text that is JSON are. */
const TEXT_POINTER = '/json';
const WITHIN_TEXT = /^\/json(?:\/|$)/;
const NOTHING_APPROVED: ReadonlySet<string> = new Set();

function parseJsonText(text: string): Json | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    const value: Json = JSON.parse(text);
    return value;
  } catch {
    return undefined;
  }
}

function recheckLeaf(met: CollectedText, rules: ResultRules, remains: Set<string>): void {
  const wantedKinds = removedByRules(rules);
  if (met.role === 'number') {
    const kind = numberKind(met.text, met.name, wantedKinds);
    if (kind !== undefined) remains.add(kind);
    return;
  }
  if (met.role === 'bytes') {
    for (const { detector, action } of checkBytes(readableParts(met.text), rules)) {
      if (action !== 'flag') remains.add(detector);
    }
    return;
  }
  recheckSensitive(met.text, met.name, wantedKinds, remains);
  recheckShape(met, rules, remains);
}

function recheckShape(
  { text, role }: CollectedText,
  rules: ResultRules,
  remains: Set<string>,
): void {
  const { invisible } = rules;
  if (rules.kind !== 'code' && stripTerminalSequences(text).count > 0)
    remains.add('terminal-escape');
  if ((invisible === 'strip' || invisible === 'block') && stripInvisible(text).count > 0) {
    remains.add('invisible');
  }
  if (isActiveRemoved(rules) && isActive(text, role === 'prose', rules.kind))
    remains.add('active-content');
}

function isActiveRemoved({ activeContent }: ResultRules): boolean {
  return activeContent === 'neutralize' || activeContent === 'block';
}

/** Whether a text is active where it is shown. Code, and links made of bare addresses, exist only in prose. */
function isActive(text: string, isProse: boolean, kind: ResultRules['kind']): boolean {
  const code = isProse && kind !== 'markup' ? findSureCode(text) : [];
  if (hasImage(text, code) || hasLoadingTag(text, code)) return true;
  if (isProse && hasLeakingAddress(text, code)) return true;
  return findActiveContent(text, isProse ? 'markdown' : 'value', code).length > 0;
}

/** How clients join the texts of one result before they render them. */
const CONTENT_SEPARATORS = ['', ' ', '\n', '\n\n'] as const;

/** Whether texts that are inert apart become active when a client shows them as one. */
function isActiveJoined(texts: readonly string[], kind: ResultRules['kind']): boolean {
  const mayHoldData = texts.some((text) => parseJsonText(text) !== undefined);
  return CONTENT_SEPARATORS.some((separator) => {
    const joined = texts.join(separator);
    const code = kind === 'markup' ? [] : findSureCode(joined);
    if (hasImage(joined, code) || hasLoadingTag(joined, code)) return true;
    if (!mayHoldData && hasLeakingAddress(joined, code)) return true;
    const found = findActiveContent(joined, 'markdown', code);
    return (
      found.some((one) => one.isBare !== true) || !allTouchData(found, texts, separator.length)
    );
  });
}

/** Whether all of these findings, in order, touch texts that are data, in which bare addresses may stay. */
function allTouchData(
  found: readonly { readonly start: number; readonly end: number }[],
  texts: readonly string[],
  separator: number,
): boolean {
  const data: { readonly start: number; readonly end: number }[] = [];
  let at = 0;
  for (const text of texts) {
    if (found.length > 0 && parseJsonText(text) !== undefined)
      data.push({ start: at, end: at + text.length });
    at += text.length + separator;
  }
  let next = 0;
  return found.every((one) => {
    while ((data[next]?.end ?? one.end) <= one.start) next++;
    return (data[next]?.start ?? one.end) < one.end;
  });
}

/** The classes found by content that the rules remove. */
function removedByRules(rules: ResultRules): WantedKinds {
  const isRemoved = (kind: string): boolean =>
    actionFor({ kind, start: 0, end: 0 }, rules) !== 'flag';
  return {
    secrets: rules.secrets !== 'off' && isRemoved('secret'),
    pii: rules.pii.action === 'off' ? [] : rules.pii.kinds.filter(isRemoved),
    own: rules.own,
  };
}

function recheckSensitive(
  text: string,
  name: string | undefined,
  wantedKinds: WantedKinds,
  remains: Set<string>,
): void {
  for (const reading of readingsOf(text, DECODING_DEPTH)) {
    const hits = wantedKinds.secrets ? findSecrets(reading, name) : [];
    for (const { kind } of hits.concat(findPersonal(reading, wantedKinds.pii, name)))
      remains.add(kind);
  }
}

const ESCAPE = /\\u\{([0-9a-f]{1,6})\}|\\u([0-9a-f]{4})|\\x([0-9a-f]{2})|%([0-7][0-9a-f])/gi;

/** The readings of a text: normalized, unescaped and decoded. */
function readingsOf(text: string, depth: number): string[] {
  const plain = text
    .normalize('NFKC')
    .replace(/\p{Default_Ignorable_Code_Point}|(?![\t\n\r])\p{Cc}/gu, '');
  const readings = [plain];
  if (depth === 0) return readings;
  const unescaped = plain
    .replace(ESCAPE, (match, brace, u, x, p) =>
      characterOf(Number.parseInt(brace ?? u ?? x ?? p, 16), match),
    )
    .replace(/&#x([0-9a-f]{1,6});?/gi, (match, hex) => characterOf(Number.parseInt(hex, 16), match))
    .replace(/&#(\d{1,7});?/g, (match, decimal) => characterOf(Number(decimal), match));
  if (unescaped !== plain) readings.push(...readingsOf(unescaped, depth - 1));
  for (const { decoded } of findEncodedRuns(plain))
    readings.push(...readingsOf(decoded, depth - 1));
  return readings;
}

function characterOf(code: number, otherwise: string): string {
  return code <= 0x10ffff ? String.fromCodePoint(code) : otherwise;
}

// Checks prose as a reader joins it, with what came before, and the values of each structure one after another.
function recheckJoined(collected: CollectedTexts, input: RecheckInput, remains: Set<string>): void {
  const wantedKinds = removedByRules(input.rules);
  const prose = input.tail === '' ? collected.prose : [input.tail, ...collected.prose];
  for (const texts of [prose, ...collected.series]) {
    if (texts.length < 2) continue;
    for (const separator of ['', ' ']) {
      for (const kind of newKinds(texts, separator, wantedKinds)) remains.add(kind);
    }
  }
}

/** Returns `split` where the joined text has more hits than its pieces have separately. */
function newKinds(
  texts: readonly string[],
  separator: string,
  wantedKinds: WantedKinds,
): readonly string[] {
  const count = (text: string): number => {
    const secrets = wantedKinds.secrets ? findSecrets(text) : [];
    const own = findSentCredentials(text, wantedKinds.own);
    return own.length + secrets.length + findPersonal(text, wantedKinds.pii).length;
  };
  const joined = texts.join(separator).normalize('NFKC');
  let apart = 0;
  for (const text of texts) apart += count(text.normalize('NFKC'));
  return count(joined) > apart ? ['split'] : [];
}
