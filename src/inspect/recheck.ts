// The second, independent check: reads the text that would leave as a client reads it, from its bytes on,
// and looks for anything of a class that was to be removed. It shares no walking and no replacing with the
// first pass, uses no prefilter and no offsets, and changes nothing: what remains withholds the message.
// Known depth: two layers of escapes, percent triplets, references, base64 and hex.

import { readJsonText } from '../mcp/json.js';
import { isObject, type Json, type JsonObject } from '../mcp/message.js';
import { EXEMPT_MEMBERS, isMediaPayload } from './carriers.js';
import { numberKind } from './numbers.js';
import { findActiveContent } from './sanitize/active-content.js';
import { DECODING_DEPTH, type Wanted } from './sanitize/detect.js';
import { bytesOfBase64, findEncodedRuns, readable } from './sanitize/encoded.js';
import { stripInvisible, stripTerminalSequences } from './sanitize/invisible.js';
import { findPersonal } from './sanitize/personal.js';
import { actionFor, type ResultRules } from './sanitize/sanitize.js';
import { findSecrets } from './sanitize/secrets.js';

export type RecheckInput = {
  readonly text: string;
  readonly rules: ResultRules;
  readonly approved: ReadonlySet<string>;
  readonly tail: string;
  readonly maxDepth: number;
};

/** What remained: names of classes, or nothing. Throws nothing that the caller need not withhold for. */
export type Recheck = (input: RecheckInput) => readonly string[];

/** One string or number as it was met: behind which name, in what role. */
type Met = {
  readonly text: string;
  readonly name: string | undefined;
  readonly role: 'prose' | 'value' | 'name' | 'number';
};

/** All that was met, and the texts that a reader joins: prose, and the values of each structure. */
type Gathered = { readonly met: Met[]; readonly prose: string[]; readonly series: string[][] };

const TAIL_CHARS = 512;

/** Classes of which something is still there. An unreadable text is a class of its own. */
export function findRemains(input: RecheckInput): readonly string[] {
  const read = readJsonText(input.text, {
    maxDepth: input.maxDepth,
    maxValues: Number.POSITIVE_INFINITY,
  });
  if (!read.ok) return ['unreadable'];
  const gathered: Gathered = { met: [], prose: [], series: [[]] };
  gather(read.value, { pointer: '', name: undefined, approved: input.approved }, gathered);
  const remains = new Set<string>();
  for (const one of gathered.met) judge(one, input.rules, remains);
  judgeJoined(gathered, input, remains);
  return [...remains];
}

type Spot = {
  readonly pointer: string;
  readonly name: string | undefined;
  readonly approved: ReadonlySet<string>;
};

function gather(value: Json, spot: Spot, gathered: Gathered): void {
  const { pointer, name, approved } = spot;
  if (EXEMPT_MEMBERS.includes(pointer) || approved.has(pointer)) return;
  if (typeof value === 'string') gatherText(value, spot, gathered);
  else if (typeof value === 'number') {
    gathered.met.push({ text: String(value), name, role: 'number' });
  } else if (Array.isArray(value)) {
    for (const [index, one] of value.entries()) {
      gather(one, { pointer: `${pointer}/${index}`, name, approved }, gathered);
    }
  } else if (isObject(value)) gatherMembers(value, spot, gathered);
}

function gatherMembers(value: JsonObject, spot: Spot, gathered: Gathered): void {
  const { pointer, approved } = spot;
  for (const [key, one] of Object.entries(value)) {
    gathered.met.push({ text: key, name: undefined, role: 'name' });
    if (typeof one === 'string' && isMediaPayload(value, key, one)) continue;
    const isPayload = typeof one === 'string' && (key === 'blob' || key === 'data');
    const decoded = isPayload ? readable(bytesOfBase64(one)) : undefined;
    if (decoded !== undefined) gatherProse(decoded, gathered);
    gather(one, { pointer: `${pointer}/${key}`, name: key, approved }, gathered);
  }
}

const PROSE =
  /^\/(?:result\/(?!structuredContent\/)(?:.{0,4096}\/)?text|error\/message|params\/(?:message|data)|(?:params|result(?:\/task|\/tasks\/\d+)?)\/statusMessage)$/;

function gatherText(text: string, spot: Spot, gathered: Gathered): void {
  if (PROSE.test(spot.pointer)) {
    gatherProse(text, gathered);
    return;
  }
  gathered.met.push({ text, name: spot.name, role: 'value' });
  if (/^\/(?:json|result\/structuredContent)\b/.test(spot.pointer))
    gathered.series.at(-1)?.push(text);
}

/** A text that is JSON is read both as the text and as the values in it. */
function gatherProse(text: string, gathered: Gathered): void {
  const inner = parsed(text);
  gathered.prose.push(text);
  gathered.met.push({ text, name: undefined, role: inner === undefined ? 'prose' : 'value' });
  if (inner === undefined) return;
  gathered.series.push([]);
  gather(inner, { pointer: '/json', name: undefined, approved: NOTHING_APPROVED }, gathered);
  gathered.series.push([]);
}

const NOTHING_APPROVED: ReadonlySet<string> = new Set();

function parsed(text: string): Json | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    const value: Json = JSON.parse(text);
    return value;
  } catch {
    return undefined;
  }
}

function judge(met: Met, rules: ResultRules, remains: Set<string>): void {
  const wanted = removed(rules);
  if (met.role === 'number') {
    const kind = numberKind(met.text, met.name, wanted);
    if (kind !== undefined) remains.add(kind);
    return;
  }
  judgeSensitive(met.text, met.name, wanted, remains);
  judgeShape(met, rules, remains);
}

function judgeShape({ text, role }: Met, rules: ResultRules, remains: Set<string>): void {
  const { activeContent, invisible } = rules;
  if (stripTerminalSequences(text).count > 0) remains.add('terminal-escape');
  if ((invisible === 'strip' || invisible === 'block') && stripInvisible(text).count > 0) {
    remains.add('invisible');
  }
  if (activeContent !== 'neutralize' && activeContent !== 'block') return;
  const reading = role === 'prose' ? 'markdown' : 'value';
  if (findActiveContent(text, reading).length > 0) remains.add('active-content');
}

/** What the rules remove, as far as it is found by content. */
function removed(rules: ResultRules): Wanted {
  const isRemoved = (kind: string): boolean =>
    actionFor({ kind, start: 0, end: 0 }, rules) !== 'flag';
  return {
    secrets: rules.secrets !== 'off' && isRemoved('secret'),
    pii: rules.pii.action === 'off' ? [] : rules.pii.kinds.filter(isRemoved),
  };
}

function judgeSensitive(
  text: string,
  name: string | undefined,
  wanted: Wanted,
  remains: Set<string>,
): void {
  for (const reading of readingsOf(text, DECODING_DEPTH)) {
    const hits = wanted.secrets ? findSecrets(reading, name) : [];
    for (const { kind } of hits.concat(findPersonal(reading, wanted.pii, name))) remains.add(kind);
  }
}

const ESCAPE = /\\u\{([0-9a-f]{1,6})\}|\\u([0-9a-f]{4})|\\x([0-9a-f]{2})|%([0-7][0-9a-f])/gi;

/** The text as it may be read: normalized, unescaped, decoded. */
function readingsOf(text: string, depth: number): string[] {
  const plain = text
    .normalize('NFKC')
    .replace(/\p{Default_Ignorable_Code_Point}|(?![\t\n\r])\p{Cc}/gu, '');
  const readings = [plain];
  if (depth === 0) return readings;
  const unescaped = plain
    .replace(ESCAPE, (whole, brace, u, x, p) =>
      characterOf(Number.parseInt(brace ?? u ?? x ?? p, 16), whole),
    )
    .replace(/&#x([0-9a-f]{1,6});?/gi, (whole, hex) => characterOf(Number.parseInt(hex, 16), whole))
    .replace(/&#(\d{1,7});?/g, (whole, decimal) => characterOf(Number(decimal), whole));
  if (unescaped !== plain) readings.push(...readingsOf(unescaped, depth - 1));
  for (const { decoded } of findEncodedRuns(plain))
    readings.push(...readingsOf(decoded, depth - 1));
  return readings;
}

function characterOf(code: number, otherwise: string): string {
  return code <= 0x10ffff ? String.fromCodePoint(code) : otherwise;
}

/** Texts as a reader joins them, with what came before; values as they stand one behind the other. */
function judgeJoined(gathered: Gathered, input: RecheckInput, remains: Set<string>): void {
  const wanted = removed(input.rules);
  const tail = input.tail.slice(-TAIL_CHARS);
  const prose = tail === '' ? gathered.prose : [tail, ...gathered.prose];
  for (const texts of [prose, ...gathered.series]) {
    if (texts.length < 2) continue;
    for (const glue of ['', ' ']) {
      for (const kind of newKinds(texts, glue, wanted)) remains.add(kind);
    }
  }
}

/** Kinds that the joined text shows more often than its parts do. */
function newKinds(texts: readonly string[], glue: string, wanted: Wanted): readonly string[] {
  const count = (text: string): number => {
    const secrets = wanted.secrets ? findSecrets(text) : [];
    return secrets.length + findPersonal(text, wanted.pii).length;
  };
  const joined = texts.join(glue).normalize('NFKC');
  let apart = 0;
  for (const text of texts) apart += count(text.normalize('NFKC'));
  return count(joined) > apart ? ['split'] : [];
}
