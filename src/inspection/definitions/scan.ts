// Looks for poison in the definitions of one server before anybody approves them: every string of every definition,
// in every reading that a model may take from it, and the definitions together, for what is poisonous only in pieces.
// Finds evidence for a reviewer; what is done about it is decided elsewhere. Deterministic and linear.

import { sha256Hex } from '../../pins/digest.js';
import { MAX_ITEM_DEPTH } from '../../protocol/deep-items.js';
import { isObject, type Json, type JsonObject } from '../../protocol/jsonrpc.js';
import { makeVisible } from '../../text/escaping.js';
import { pointerTo } from '../../text/json-members.js';
import { originalSpan } from '../detectors/decoded-text.js';
import { confusableForm, stripInvisible } from '../detectors/unicode.js';
import type { DefinitionFinding, Match, ScannedDefinition, UnnamedFinding } from './demands.js';
import {
  claimsOf,
  findCarriedOver,
  findDefaults,
  findMarkers,
  findOutOfPlace,
  findSoughtContent,
  VALUE_POINTER,
} from './indicators.js';
import { CLASS } from './lexicon.js';
import { contextParameters } from './parameters.js';
import { type Concealment, hasMixedScripts, type Reading, readingsOf } from './readings.js';
import { findDemands, SENT_ELSEWHERE } from './rules.js';
import { type OwnNames, sentencesOf } from './sentences.js';

export { type DefinitionFinding, isAbout, type ScannedDefinition } from './demands.js';

/** A string of a definition with its place. `isProse` is false for a name, `areNames` true for several in a row. */
type Text = {
  readonly pointer: string;
  readonly value: string;
  readonly isProse: boolean;
  readonly areNames?: boolean;
};

/** Of one definition, with a page of an app and its scripts; the size of a lock file bounds all of them. */
const MAX_CHARACTERS = 2_000_000;
const MAX_STRINGS = 20_000;
const MAX_DEPTH = MAX_ITEM_DEPTH;
/** Marks that may end a sentence, in all readings of one definition. A bundle of scripts of a megabyte has a third. */
const MAX_MARKS = 300_000;
const MAX_EVIDENCE = 200;
const CONTEXT = 24;

/** All findings of the definitions of one server, in order of the definitions and without repetitions. */
export function scanDefinitions(
  definitions: readonly ScannedDefinition[],
): readonly DefinitionFinding[] {
  const findings: UnnamedFinding[] = [];
  for (const scanned of definitions) {
    const texts = textsOf(scanned.definition);
    if (typeof texts === 'string') findings.push(notRead(scanned, texts));
    else findings.push(...scanDefinition(scanned, texts));
  }
  findings.push(...lookAlikes(definitions));
  const found = new Set(
    findings.filter(({ tier }) => tier !== 'note').map(({ item }) => keyOf(item)),
  );
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

const NOT_SCANNED = 'so nobody has looked for hidden instructions in it';
const TOO_LONG = `The definition has more than ${MAX_CHARACTERS} characters and is not scanned, ${NOT_SCANNED}.`;
const TOO_MANY_TEXTS = `The definition has more than ${MAX_STRINGS} texts and is not scanned, ${NOT_SCANNED}.`;
const TOO_DEEP = `The definition is nested more than ${MAX_DEPTH} levels deep and is not scanned, ${NOT_SCANNED}.`;
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

/** Every string of a definition, and the names of its members; beyond a bound, the sentence that names it. */
export function textsOf(definition: JsonObject | string): readonly Text[] | string {
  const texts: Text[] = [];
  let left = MAX_CHARACTERS;
  const exceeded = (depth: number): string | undefined => {
    if (depth > MAX_DEPTH) return TOO_DEEP;
    if (texts.length > MAX_STRINGS) return TOO_MANY_TEXTS;
    return left < 0 ? TOO_LONG : undefined;
  };
  /** The bound that is passed. */
  const visit = (value: Json | undefined, pointer: string, depth: number): string | undefined => {
    if (typeof value === 'string') {
      left -= value.length;
      texts.push({ pointer, value, isProse: true });
    }
    const passed = exceeded(depth);
    if (passed !== undefined || typeof value !== 'object' || value === null) return passed;
    return visitMembers(value, pointer, depth);
  };
  const visitMembers = (
    value: JsonObject | readonly Json[],
    pointer: string,
    depth: number,
  ): string | undefined => {
    const joined = joinedStrings(value);
    const areNames = !Array.isArray(value);
    if (joined !== undefined) texts.push({ pointer, value: joined, isProse: true, areNames });
    for (const [name, member] of Object.entries(value)) {
      const inner = pointerTo(pointer, name);
      if (areNames) texts.push({ pointer: inner, value: name, isProse: false });
      left -= name.length;
      const passed = visit(member, inner, depth + 1);
      if (passed !== undefined) return passed;
    }
    return undefined;
  };
  return visit(definition, '', 0) ?? texts;
}

/** Between two names that are read as one text. */
const NAME_BORDER = ', ';

/** A short name demands nothing by itself, and neither does one of several in a row. */
function isWithinName({ isProse, areNames }: Text, matched: string): boolean {
  if (areNames) return !matched.includes(NAME_BORDER);
  return !isProse && matched.split(' ').length < MIN_NAME_TOKENS;
}

const MIN_NAME_TOKENS = 5;

/** What stands in pieces: the strings of an array in a row, or the names of an object's members. */
function joinedStrings(value: JsonObject | readonly Json[]): string | undefined {
  const parts = Array.isArray(value)
    ? value.filter((one): one is string => typeof one === 'string')
    : Object.keys(value).map((name) =>
        name.replace(/([a-z])([A-Z])/g, '$1 $2').replaceAll('_', ' '),
      );
  return parts.length > 1 ? parts.join(Array.isArray(value) ? ' ' : NAME_BORDER) : undefined;
}

function scanDefinition(scanned: ScannedDefinition, texts: readonly Text[]): UnnamedFinding[] {
  const own = ownNamesOf(scanned);
  const budget = { marks: MAX_MARKS };
  const matched = texts.flatMap((text) => scanText(scanned, text, own, budget));
  if (budget.marks < 0) matched.push(notRead(scanned, TOO_MANY_SENTENCES));
  return [...matched, ...contextParameters(scanned), ...claimsOf(scanned)];
}

function ownNamesOf({ name, definition }: ScannedDefinition): OwnNames {
  const parameters = new Set<string>();
  if (typeof definition === 'string') return { name, parameters };
  const properties = memberOf(memberOf(definition, 'inputSchema'), 'properties');
  for (const property of Object.keys(properties ?? {})) parameters.add(property);
  const list = definition['arguments'];
  if (Array.isArray(list)) {
    for (const one of list)
      if (isObject(one) && typeof one['name'] === 'string') parameters.add(one['name']);
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
const BLOCKED: ReadonlySet<Concealment> = new Set([
  'tag characters',
  'terminal sequences',
  'bidirectional controls',
]);

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

function scanText(
  scanned: ScannedDefinition,
  text: Text,
  own: OwnNames,
  budget: Budget,
): UnnamedFinding[] {
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
  const read = readings.filter((reading) => {
    budget.marks -= countMarks(reading.text);
    return budget.marks >= 0;
  });
  const demanded = read.flatMap((reading) =>
    findMatches(reading, text, own).map((match) => {
      const { tier, reason } = graverIfHidden(reading, match);
      return {
        kind: match.kind,
        tier,
        item,
        pointer,
        evidence: evidenceOf(value, reading, match),
        reason,
      };
    }),
  );
  return [...hidden, ...demanded];
}

function countMarks(text: string): number {
  let marks = 0;
  for (let at = 0; at < text.length; at += 1) if (MARKS.has(text.charCodeAt(at))) marks += 1;
  return marks;
}

const MARKS: ReadonlySet<number> = new Set([...'.!?;\n\u2022'].map((mark) => mark.charCodeAt(0)));

/** Nobody hides what is harmless. */
function graverIfHidden(
  { hiddenBy }: Reading,
  { tier, reason }: Match,
): Pick<Match, 'tier' | 'reason'> {
  if (hiddenBy === undefined) return { tier, reason };
  return {
    tier: tier === 'review' ? 'block' : tier,
    reason: `${reason} It is hidden by ${hiddenBy}.`,
  };
}

function findMatches(reading: Reading, text: Text, own: OwnNames): readonly Match[] {
  const prose = text.isProse ? reading.text : reading.text.replaceAll('_', ' ');
  const sentences = sentencesOf(prose, own, VALUE_POINTER.test(text.pointer) ? 1 : 0);
  const speaksOfSecrets = sentences.some(
    ({ mask }) => (mask & CONFIDENTIAL) !== 0 && (mask & CLASS.negation) === 0,
  );
  const matches = sentences.flatMap(findDemands).flatMap((match) => {
    if (isWithinName(text, prose.slice(match.start, match.end))) return [];
    const isGrave = speaksOfSecrets && match.reason === SENT_ELSEWHERE;
    return isGrave ? { ...match, tier: 'review' as const } : match;
  });
  const { pointer } = text;
  const placed = [...findOutOfPlace(pointer, sentences), ...findSoughtContent(pointer, sentences)];
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

/** How much of the end of one description and the beginning of the next is read as one text. */
const BORDER = 240;

/** What only the definitions together say: a sentence that one breaks off and the next takes up. */
function scanTogether(
  definitions: readonly ScannedDefinition[],
  found: ReadonlySet<string>,
): UnnamedFinding[] {
  const findings: UnnamedFinding[] = [];
  let before: { text: string; item: ScannedDefinition } | undefined;
  for (const item of definitions) {
    const text = descriptionOf(item);
    if (text === undefined) continue;
    const isKnown =
      before !== undefined && (found.has(keyOf(before.item)) || found.has(keyOf(item)));
    const isBrokenOff = before !== undefined && !/[.!?:)\]}`*]\s*$/.test(before.text);
    if (before !== undefined && !isKnown && isBrokenOff && /^\s*[^A-Z\s]/.test(text)) {
      findings.push(...scanBorder(before.text, text, item));
    }
    before = { text, item };
  }
  return findings;
}

function descriptionOf({ definition }: ScannedDefinition): string | undefined {
  const text = typeof definition === 'string' ? definition : definition['description'];
  return typeof text === 'string' && text.trim() !== '' ? text : undefined;
}

function scanBorder(before: string, after: string, item: ScannedDefinition): UnnamedFinding[] {
  const tail = before.slice(-BORDER);
  const joined = `${tail} ${after.slice(0, BORDER)}`;
  const own = ownNamesOf(item);
  return readingsOf(joined).readings.flatMap((reading) =>
    sentencesOf(reading.text, own)
      .flatMap(findDemands)
      .filter(
        ({ tier, start, end }) => tier !== 'note' && start < tail.length && end > tail.length + 1,
      )
      .map(({ kind, tier, reason, start, end }) => ({
        kind,
        tier,
        item: { kind: item.kind, name: item.name },
        pointer: typeof item.definition === 'string' ? '' : '/description',
        evidence: quote(reading.text, start, end),
        reason: `${reason} The sentence begins in the definition before it.`,
      })),
  );
}
