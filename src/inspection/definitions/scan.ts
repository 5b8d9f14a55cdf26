// Looks for poison in the definitions of one server before anybody approves them: every string of every definition,
// in every reading that a model may take from it, and the definitions together, for what is poisonous only in pieces.
// Finds evidence for a reviewer; what is done about it is decided elsewhere. Deterministic and linear.

import { sha256Hex } from '../../pins/digest.js';
import { isObject, type JsonObject } from '../../protocol/jsonrpc.js';
import { makeVisible } from '../../text/escaping.js';
import { originalSpan } from '../detectors/decoded-text.js';
import { confusableForm, stripInvisible } from '../detectors/unicode.js';
import { type DefinitionText, toDefinitionText } from '../message-map.js';
import type { DefinitionFinding, Match, ScannedDefinition, UnnamedFinding } from './finding.js';
import {
  claimsOf,
  findCarriedOver,
  findDefaults,
  findMarkers,
  findOutOfPlace,
  findSoughtContent,
} from './indicators.js';
import { CLASS } from './lexicon.js';
import { contextParameters } from './parameters.js';
import { type Concealment, hasMixedScripts, type Reading, readingsOf } from './readings.js';
import { SENT_ELSEWHERE } from './rows/exfiltration.js';
import { findDemands } from './sentence-rules.js';
import { type OwnNames, sentencesOf } from './sentences.js';
import { splitName, splitProse } from './splitting.js';
import { commonPointer, NOT_SCANNED, type Part, partsAcross, type Row, rowsAcross, rowsOf, textsOf } from './texts.js';

export { type DefinitionFinding, isAbout, type ScannedDefinition } from './finding.js';

/** Marks that may end a sentence, in all readings of one definition. A bundle of scripts of a megabyte has a third. */
const MAX_MARKS = 300_000;
const MAX_EVIDENCE = 200;
const CONTEXT = 24;

/** All findings of the definitions of one server, in order of the definitions and without repetitions. */
export function scanDefinitions(definitions: readonly ScannedDefinition[]): readonly DefinitionFinding[] {
  const findings: UnnamedFinding[] = [];
  for (const scanned of definitions) {
    const texts = textsOf(scanned.definition);
    if (typeof texts === 'string') findings.push(notRead(scanned, texts));
    else findings.push(...scanDefinition(scanned, texts));
  }
  findings.push(...lookAlikes(definitions));
  const found = new Set(findings.filter(({ tier }) => tier !== 'note').map(({ item }) => keyOf(item)));
  findings.push(...scanTogether(definitions, found));
  return withoutRepetitions(findings);
}

function keyOf({ kind, name }: { readonly kind: string; readonly name: string }): string {
  return `${kind} ${name}`;
}

/** Names the findings, and leaves out what several readings of one text have in common. */
function withoutRepetitions(findings: readonly UnnamedFinding[]): readonly DefinitionFinding[] {
  const named = new Map<string, DefinitionFinding>();
  for (const finding of findings) {
    const { kind, item, pointer, reason, evidence } = finding;
    const key = JSON.stringify([kind, item.kind, item.name, pointer, reason]);
    const before = named.get(key);
    if (before !== undefined && GRAVITY[before.tier] >= GRAVITY[finding.tier]) continue;
    const id = `${kind}-${sha256Hex(key + evidence).slice(0, ID_DIGITS)}`;
    named.set(key, { id, ...finding });
  }
  return [...named.values()];
}

const ID_DIGITS = 8;
/** Of two findings that tell the same, the graver is kept. */
const GRAVITY: Readonly<Record<DefinitionFinding['tier'], number>> = {
  note: 0,
  review: 1,
  block: 2,
};

const TOO_MANY_SENTENCES = `The definition has more than ${MAX_MARKS} sentences and is not scanned whole, ${NOT_SCANNED}.`;

/** A definition that is not read whole is no definition that may be approved unseen. */
function notRead({ kind, name }: ScannedDefinition, reason: string): UnnamedFinding {
  return {
    kind: 'too-large-to-scan',
    tier: 'block',
    item: { kind, name },
    pointer: '',
    evidence: '',
    reason,
  };
}

/** A short name demands nothing by itself. */
function isWithinName({ isName }: DefinitionText, matched: string): boolean {
  return isName && matched.split(' ').length < MIN_NAME_TOKENS;
}

const MIN_NAME_TOKENS = 3;

function scanDefinition(scanned: ScannedDefinition, texts: readonly DefinitionText[]): UnnamedFinding[] {
  const own = ownNamesOf(scanned);
  const budget = { marks: MAX_MARKS };
  const matched = texts.flatMap((text) => scanText(scanned, text, own, budget));
  const joined = rowsOf(texts).flatMap((row) => scanRow(scanned, row));
  if (budget.marks < 0) matched.push(notRead(scanned, TOO_MANY_SENTENCES));
  return [...matched, ...joined, ...contextParameters(scanned), ...claimsOf(scanned)];
}

function ownNamesOf({ name, definition }: ScannedDefinition): OwnNames {
  const parameters = new Set<string>();
  if (typeof definition === 'string') return { name, parameters };
  const properties = memberOf(memberOf(definition, 'inputSchema'), 'properties');
  for (const property of Object.keys(properties ?? {})) parameters.add(property);
  const list = definition['arguments'];
  if (Array.isArray(list)) {
    for (const one of list) if (isObject(one) && typeof one['name'] === 'string') parameters.add(one['name']);
  }
  return { name, parameters };
}

function memberOf(value: JsonObject | undefined, name: string): JsonObject | undefined {
  const member = value?.[name];
  return isObject(member) ? member : undefined;
}

const REASON_OF: Readonly<Record<Concealment, string>> = {
  'tag characters': 'It carries text in characters that nobody sees.',
  'terminal sequences': 'It has terminal sequences, which can hide text.',
  'bidirectional controls': 'It has controls that show text in another order.',
  'invisible characters': 'It has characters that nobody sees.',
  'look-alike letters': 'It has tokens that mix letters of several scripts.',
  'blank space': 'It pushes text out of sight with blank space.',
  'a comment': 'It has a comment, which a rendered view does not show.',
  encoding: 'It carries encoded text.',
  'other letter forms': 'It has letters in forms that look like plain ones.',
};
const BLOCKED: ReadonlySet<Concealment> = new Set(['tag characters', 'terminal sequences', 'bidirectional controls']);

/** A page of an app has comments and indentation, which hide nothing from a reviewer of its source. */
const USUAL_IN_MARKUP: ReadonlySet<Concealment> = new Set(['a comment', 'blank space']);
/** Its scripts have control characters in strings and regular expressions; an escape may begin a terminal sequence. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
const CONTROLS_OF_SCRIPTS = /[\u0001-\u001a\u001c-\u001f]/g;

/** Whether text is hidden from a reviewer of the source of a page by this means. */
function hidesInMarkup(page: string, by: Concealment): boolean {
  if (by !== 'invisible characters') return !USUAL_IN_MARKUP.has(by);
  const { count, unusual } = stripInvisible(page.replace(CONTROLS_OF_SCRIPTS, ''));
  return count + unusual > 0;
}

/** What is left of the work on one definition. */
type Budget = { marks: number };

function scanText(scanned: ScannedDefinition, text: DefinitionText, own: OwnNames, budget: Budget): UnnamedFinding[] {
  const item = { kind: scanned.kind, name: scanned.name };
  const { pointer, value } = text;
  const { readings, concealments } = readingsOf(value);
  const isMarkup = scanned.kind === 'resource';
  const unusual = [...concealments].filter((one) => !isMarkup || hidesInMarkup(value, one));
  const hidden = unusual.map((concealment) => ({
    kind: 'hidden-text' as const,
    tier: BLOCKED.has(concealment) ? ('block' as const) : ('review' as const),
    item,
    pointer,
    evidence: quote(value, firstUnusual(value), value.length),
    reason: REASON_OF[concealment],
  }));
  const worded = readings.flatMap((reading) => splitText(reading, text));
  const read = worded.filter(({ reading }) => {
    budget.marks -= countMarks(reading.text);
    return budget.marks >= 0;
  });
  const demanded = read.flatMap(({ reading, plain }) =>
    findMatches(reading, text, own)
      // Words that stand in the plain text are judged there.
      .filter(({ start, end }) => plain?.includes(reading.text.slice(start, end)) !== true)
      .map((match) => {
        const { tier, reason } = graverIfHidden(reading, match);
        const evidence = evidenceOf(value, reading, match);
        return { kind: match.kind, tier, item, pointer, evidence, reason };
      }),
  );
  return [...hidden, ...demanded];
}

/** A reading of a text as words; `plain` is the text that is also read as it is. */
type Worded = { readonly reading: Reading; readonly plain?: string };

/** A name as its words; prose as it is, and as its words where they touch or are in shreds. */
function splitText(reading: Reading, { isName }: DefinitionText): readonly Worded[] {
  const split = isName ? splitName(reading.text) : splitProse(reading.text);
  if (split === reading.text) return [{ reading }];
  const read = { ...reading, text: split, origin: undefined };
  return isName ? [{ reading: read }] : [{ reading }, { reading: read, plain: reading.text }];
}

/** Belongs to no definition, and no words are its own. */
const NOBODY: OwnNames = { name: '', parameters: new Set() };

type Spread = Pick<UnnamedFinding, 'kind' | 'tier' | 'evidence' | 'reason'> & {
  readonly parts: readonly Part[];
};

/** What names and texts demand only if they are read in a row. */
function findSpread(row: Row): readonly Spread[] {
  return readingsOf(row.value).readings.flatMap(({ origin, hiddenBy, text }) => {
    if (origin === undefined || hiddenBy !== undefined) return [];
    return sentencesOf(text, NOBODY, 1)
      .flatMap(findDemands)
      .flatMap(({ kind, tier, reason, start, end }) => {
        const span = originalSpan(origin, start, end);
        const parts = partsAcross(row, span.start, span.end);
        if (tier === 'note' || parts.length === 0) return [];
        return [{ kind, tier, reason, parts, evidence: quote(row.value, span.start, span.end) }];
      });
  });
}

function scanRow({ kind, name }: ScannedDefinition, row: Row): readonly UnnamedFinding[] {
  return findSpread(row).map(({ parts, reason, ...spread }) => ({
    ...spread,
    item: { kind, name },
    pointer: commonPointer(parts),
    reason: `${reason} The words are spread over several names or texts.`,
  }));
}

function countMarks(text: string): number {
  let marks = 0;
  for (let at = 0; at < text.length; at += 1) if (MARKS.has(text.charCodeAt(at))) marks += 1;
  return marks;
}

const MARKS: ReadonlySet<number> = new Set([...'.!?;\n\u2022'].map((mark) => mark.charCodeAt(0)));

/** Nobody hides what is harmless. */
function graverIfHidden({ hiddenBy }: Reading, { tier, reason }: Match): Pick<Match, 'tier' | 'reason'> {
  if (hiddenBy === undefined) return { tier, reason };
  return {
    tier: tier === 'review' ? 'block' : tier,
    reason: `${reason} It is hidden by ${hiddenBy}.`,
  };
}

function findMatches(reading: Reading, text: DefinitionText, own: OwnNames): readonly Match[] {
  const prose = reading.text;
  // The words of a name are not the subject of the tool because it has that name.
  const named = text.isName ? NOBODY : own;
  const sentences = sentencesOf(prose, named, text.role === 'value' ? 1 : 0);
  const speaksOfSecrets = sentences.some(({ mask }) => (mask & CONFIDENTIAL) !== 0 && (mask & CLASS.negation) === 0);
  const matches = sentences.flatMap(findDemands).flatMap((match) => {
    if (isWithinName(text, prose.slice(match.start, match.end))) return [];
    const isGrave = speaksOfSecrets && match.reason === SENT_ELSEWHERE;
    return isGrave ? { ...match, tier: 'review' as const } : match;
  });
  const { pointer } = text;
  const placed = [...findOutOfPlace(text, sentences), ...findSoughtContent(pointer, sentences)];
  return [
    ...matches,
    ...findCarriedOver(sentences),
    ...placed,
    ...findDefaults(pointer, sentences),
    ...findMarkers(reading.text, own.parameters, sentences),
  ];
}

const CONFIDENTIAL = CLASS.secret | CLASS.store | CLASS.context;

function evidenceOf(original: string, reading: Reading, { start, end }: Match): string {
  if (reading.origin === undefined) return quote(reading.text, start, end);
  const span = originalSpan(reading.origin, start, end);
  return quote(original, span.start, span.end);
}

/** Quotes a span with its surroundings: every character visible, bounded. */
function quote(text: string, start: number, end: number): string {
  const from = Math.max(0, start - CONTEXT);
  const to = Math.min(text.length, Math.min(end, start + MAX_EVIDENCE) + CONTEXT);
  const shown = makeVisible(text.slice(from, to));
  return shown.length > MAX_EVIDENCE ? `${shown.slice(0, MAX_EVIDENCE - 1)}\u2026` : shown;
}

function firstUnusual(text: string): number {
  return Math.max(0, text.search(/[^\t\n\r\x20-\x7e]|<!--|\n[ \t]*\n[ \t]*\n/));
}

/** Names that look like another name of the same server, or that mix scripts. */
function lookAlikes(definitions: readonly ScannedDefinition[]): UnnamedFinding[] {
  const seen = new Map<string, string>();
  return definitions.flatMap(({ kind, name }) => {
    const form = `${kind} ${confusableForm(name)}`;
    const other = seen.get(form);
    if (other === undefined) seen.set(form, name);
    const isTwin = other !== undefined && other !== name && hasForeignLetter(name + other);
    if (!isTwin && !hasMixedScripts(name)) return [];
    const reason = isTwin
      ? `Its name looks like that of another definition of this server, ${quote(other, 0, other.length)}.`
      : 'Its name mixes letters of several scripts.';
    const evidence = escapeBeyondAscii(name);
    return [
      {
        kind: 'look-alike-name',
        tier: 'block',
        item: { kind, name },
        pointer: '/name',
        evidence,
        reason,
      },
    ];
  });
}

function hasForeignLetter(text: string): boolean {
  return /[^\x20-\x7e]/.test(text);
}

function escapeBeyondAscii(text: string): string {
  return text.replace(/[^\x20-\x7e]/gu, (one) => `\\u{${(one.codePointAt(0) ?? 0).toString(16)}}`);
}

/** What only the definitions together say: words that are spread over their names, titles and descriptions. */
function scanTogether(definitions: readonly ScannedDefinition[], found: ReadonlySet<string>): UnnamedFinding[] {
  const texts = definitions.flatMap((one, at) =>
    headOf(one).map((text) => ({ ...text, pointer: `/${at}${text.pointer}` })),
  );
  return rowsAcross(texts).flatMap((row) =>
    findSpread(row).flatMap(({ parts, reason, ...spread }) => {
      const places = parts.map(({ pointer }) => PLACE.exec(pointer));
      const items = new Set(places.map((place) => definitions[Number(place?.[1])]));
      const last = definitions[Number(places.at(-1)?.[1])];
      const isKnown = [...items].some((one) => one === undefined || found.has(keyOf(one)));
      if (items.size < 2 || isKnown || last === undefined) return [];
      const { kind, name, definition } = last;
      const pointer = typeof definition === 'string' ? '' : (places.at(-1)?.[2] ?? '');
      const fullReason = `${reason} The words begin in the definition before it.`;
      return [{ ...spread, item: { kind, name }, pointer, reason: fullReason }];
    }),
  );
}

const PLACE = /^\/(\d+)(.*)$/s;

/** What a definition is called and said to be. */
function headOf({ name, definition }: ScannedDefinition): readonly DefinitionText[] {
  const { title, description } = typeof definition === 'string' ? { title: '', description: definition } : definition;
  const texts = [
    toDefinitionText('/name', name, true),
    toDefinitionText('/title', typeof title === 'string' ? title : '', false),
    toDefinitionText('/description', typeof description === 'string' ? description : '', false),
  ];
  return texts.filter(({ value }) => value !== '');
}
