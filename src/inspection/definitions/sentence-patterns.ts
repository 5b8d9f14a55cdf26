// Interprets the rows in rows/: finds patterns of words in sentences whose words are classified (sentences.ts).
//
// A pattern is steps with blanks between them, each at most `gap` words after the one before. A step lists with `|` what
// takes it: a word in any inflection (`ask`), a list of lexicon.ts (`@telling`), a class (`HUMAN`) or any word (`*`). Before it may
// stand `plain:` (in its base form, as an imperative), `inflected:` (in another) or `denied:` (a verb that is denied);
// behind it `&` and what it must also be, `!` and what it must not be, `~` and a form of FORMS.
//
// `when` is terms that all hold, each with `|` between its alternatives, of which `!` denies one: what a step may be,
// anywhere in the sentence; `#` and a name of sentence-conditions.ts; `<` or `>` and a word directly before or behind what was
// found; `/` and the word that begins the next clause.

import { appliedRows, type DetectorRow } from '../detector-row.js';
import type { FindingKind, Match, Tier } from './finding.js';
import { classNamed, LISTS, learnBases } from './lexicon.js';
import { CONDITIONS } from './sentence-conditions.js';
import type { Sentence, Token } from './sentences.js';

/** A row that demands something of the model or says what no definition may say. */
export type RuleRow = DetectorRow & {
  readonly class: FindingKind;
  readonly tier: Tier;
  /** What a reviewer reads. */
  readonly reason: string;
  readonly pattern: string;
  readonly gap?: number;
  readonly when?: string;
};

type RuleText = Pick<RuleRow, 'id' | 'pattern' | 'gap' | 'when' | 'matches' | 'passes' | 'isOff'>;

/** Makes the rows of one kind and tier that tell a reviewer the same. */
export function rules(
  kind: FindingKind,
  tier: Tier,
  reason: string,
  source: string,
  list: readonly RuleText[],
): readonly RuleRow[] {
  return list.map((row) => ({ class: kind, tier, reason, language: 'en', source, ...row }));
}

const DEFAULT_GAP = 6;

/** Forms of a word, by the name that follows `~`. */
const FORMS: { readonly [name: string]: RegExp } = {
  /** Begins what the model must not do: not `without`, and not `does not`, which says what the tool does. */
  forbidding: /^(?:don't|dont|never|do)$/,
  /** A file by its path; a key by its name may be what a parameter takes. */
  path: /[./~_]|^printenv$/,
  /** An address that gets something: a mailbox, a number, a URL that takes data. */
  receiver: /[@?={<]|^\+/,
  /** A tool that gives out secrets or what was said, by the parts of its name. */
  vault:
    /^(?:get|read|export|dump|show|fetch|load)_(?:\w{1,40}_)?(?:secret|credential|password|private|env|mailbox|keychain)s?(?:_|$)/,
  /** A variable of the environment with a secret, by its name. */
  variable: /^[a-z0-9]+(?:_[a-z0-9]+)*_(?:key|token|secret|password)$/,
};

type TokenTest = (token: Token) => boolean;

/** What takes a step. Only a sentence with one of the words or classes can have such a word. */
type Step = {
  readonly mask: number;
  readonly bases: ReadonlySet<string>;
  /** Any word may take it, as far as these say. */
  readonly isAny: boolean;
  readonly test: TokenTest;
};

/** The words of a name in a pattern: a list, a class or one word. */
function headOf(name: string): { readonly mask: number; readonly bases: readonly string[] } {
  if (name.startsWith('@')) {
    const list = LISTS[name.slice(1)];
    if (list === undefined) throw new Error(`no list of words is named ${name}`);
    return { mask: 0, bases: list.split(' ') };
  }
  if (name === ANY) return { mask: 0, bases: [] };
  if (/^[A-Z]+$/.test(name)) return { mask: classNamed(name), bases: [] };
  return { mask: 0, bases: [name] };
}

/** Any word, of which only the form counts. */
const ANY = '*';

function isTokenOf(name: string): TokenTest {
  if (name === ANY) return () => true;
  const { mask, bases } = headOf(name);
  learnBases(bases);
  const accepted = new Set(bases);
  return (token) => (token.mask & mask) !== 0 || accepted.has(token.base);
}

const never: TokenTest = () => false;

/** What may stand before a word in a step. */
const MARKS: { readonly [mark: string]: TokenTest } = {
  plain: ({ isBase }) => isBase,
  inflected: ({ isBase }) => !isBase,
  denied: ({ isDenied }) => isDenied === true,
};

/** What stands behind a word in a step: what it must be too, what it must not be, or its form. */
function restrictionOf(sign: string, name: string): TokenTest {
  if (sign !== '~') {
    const is = isTokenOf(name);
    return sign === '!' ? (token) => !is(token) : is;
  }
  const form = FORMS[name];
  if (form === undefined) throw new Error(`no form is named ${name}`);
  return ({ base }) => form.test(base);
}

const ALTERNATIVE = /^((?:(?:plain|inflected|denied):)*)(\*|@?[A-Za-z][\w'-]*|e\.g)((?:[&!~]@?[\w'-]+)*)$/;

/** One alternative of a step; the words and classes of which it needs one are added to `mask` and `bases`. */
function parseAlternative(text: string): { readonly head: string; readonly test: TokenTest; readonly isBare: boolean } {
  const [, marks = '', head = '', more = ''] = ALTERNATIVE.exec(text) ?? [];
  if (head === '') throw new Error(`not a step of a pattern: ${text}`);
  const tests = [isTokenOf(head)];
  for (const mark of marks.split(':').filter(Boolean)) tests.push(MARKS[mark] ?? never);
  for (const [, sign = '', name = ''] of more.matchAll(/([&!~])(@?[\w'-]+)/g)) tests.push(restrictionOf(sign, name));
  return { head, test: (token) => tests.every((one) => one(token)), isBare: tests.length === 1 };
}

/** A step as it is written, with `|` between its alternatives. */
function parseStep(text: string): Step {
  let mask = 0;
  let bareMask = 0;
  const bases = new Set<string>();
  const bare = new Set<string>();
  const others: TokenTest[] = [];
  for (const { head, test, isBare } of text.split('|').map(parseAlternative)) {
    const own = headOf(head);
    mask |= own.mask;
    for (const base of own.bases) bases.add(base);
    if (!isBare) others.push(test);
    else {
      bareMask |= own.mask;
      for (const base of own.bases) bare.add(base);
    }
  }
  const test: TokenTest = (token) =>
    (token.mask & bareMask) !== 0 || bare.has(token.base) || others.some((one) => one(token));
  return { mask, bases, isAny: text.includes(ANY), test };
}

/** What was found: positions of the first and the last word. */
type Found = { readonly first: number; readonly last: number };
type Condition = (sentence: Sentence, found: Found) => boolean;

/** One term of `when`. `needed`: what the sentence must have, where that is all that the term says. */
type Term = { readonly isMet: Condition; readonly needed: Step | undefined };

function parseTerm(text: string): Term {
  const alternatives = text.split('|');
  if (alternatives.every((one) => /^[@A-Za-z]/.test(one))) {
    const needed = parseStep(text);
    return { isMet: (sentence) => hasToken(sentence, needed), needed };
  }
  const tests = alternatives.map(parseCondition);
  return { isMet: (sentence, found) => tests.some((test) => test(sentence, found)), needed: undefined };
}

function parseCondition(text: string): Condition {
  if (text.startsWith('!')) {
    const denied = parseCondition(text.slice(1));
    return (sentence, found) => !denied(sentence, found);
  }
  const rest = text.slice(1);
  if (text.startsWith('#')) {
    const condition = CONDITIONS[rest];
    if (condition === undefined) throw new Error(`no condition is named ${rest}`);
    return (sentence, { first }) => condition(sentence, first);
  }
  if (text.startsWith('/')) return ({ tokens }) => tokens.at(-1)?.condition === rest;
  const step = parseStep(/^[<>]/.test(text) ? rest : text);
  const isAt = ({ tokens }: Sentence, at: number): boolean => {
    const token = tokens[at];
    return token !== undefined && step.test(token);
  };
  if (text.startsWith('<')) return (sentence, { first }) => isAt(sentence, first - 1);
  if (text.startsWith('>')) return (sentence, { last }) => isAt(sentence, last + 1);
  return (sentence) => hasToken(sentence, step);
}

function hasToken(sentence: Sentence, step: Step): boolean {
  return mayHave(sentence, step) && sentence.tokens.some(step.test);
}

/** Whether a sentence has what a `when` says; nothing was found in it before. */
export function sentenceTest(when: string): (sentence: Sentence) => boolean {
  const terms = when.split(' ').map(parseTerm);
  return (sentence) => terms.every(({ isMet }) => isMet(sentence, { first: 0, last: 0 }));
}

/** Whether the steps of a pattern stand in a sentence. */
export function occurs(pattern: string, gap: number): (sentence: Sentence) => boolean {
  const steps = pattern.split(' ').map(parseStep);
  return (sentence) =>
    steps.every((step) => mayHave(sentence, step)) && findSteps(steps, gap, sentence.tokens) !== undefined;
}

type Rule = {
  readonly row: RuleRow;
  readonly steps: readonly Step[];
  readonly terms: readonly Term[];
  /** What a sentence must have to meet it: its steps, and the terms that say no more. */
  readonly needed: readonly Step[];
};

function compileRow(row: RuleRow): Rule {
  const steps = row.pattern.split(' ').map(parseStep);
  const terms = row.when === undefined ? [] : row.when.split(' ').map(parseTerm);
  return { row, steps, terms, needed: [...steps, ...terms.flatMap(({ needed }) => needed ?? [])] };
}

/** Finds what rows find in a sentence, at most one match each. */
export type SentenceFinder = (sentence: Sentence) => readonly Match[];

/** Makes the finder of the rows that are applied. */
export function createFinder(rows: readonly RuleRow[]): SentenceFinder {
  const list = appliedRows(rows).map(compileRow);
  const index = indexOf(list);
  return (sentence) => {
    if (sentence.mask === 0 && sentence.tokens.length === 1) return [];
    const found: Match[] = [];
    for (const at of candidatesFor(sentence, index)) {
      const rule = list[at];
      const match = rule === undefined ? undefined : findRule(rule, sentence);
      if (match !== undefined) found.push(match);
    }
    return found;
  };
}

/** The rules by what one of their steps takes, so that of a long list only those are tried that a sentence may meet. */
type Index = {
  readonly byBase: ReadonlyMap<string, readonly number[]>;
  /** By the number of the bit of a class. */
  readonly byClass: ReadonlyMap<number, readonly number[]>;
};

function indexOf(list: readonly Rule[]): Index {
  const byBase = new Map<string, number[]>();
  const byClass = new Map<number, number[]>();
  for (const [at, { needed }] of list.entries()) {
    const narrowest = needed.reduce((best, step) => (widthOf(step) < widthOf(best) ? step : best));
    for (const base of narrowest.bases) addTo(byBase, base, at);
    for (const bit of bitsOf(narrowest.mask)) addTo(byClass, bit, at);
  }
  return { byBase, byClass };
}

/** A class stands for many words. */
const CLASS_WIDTH = 20;

function widthOf({ bases, mask, isAny }: Step): number {
  if (isAny) return Number.POSITIVE_INFINITY;
  return bases.size + CLASS_WIDTH * bitsOf(mask).length;
}

function addTo<Key>(map: Map<Key, number[]>, key: Key, value: number): void {
  const known = map.get(key);
  if (known === undefined) map.set(key, [value]);
  else known.push(value);
}

function bitsOf(mask: number): readonly number[] {
  const bits: number[] = [];
  for (let rest = mask; rest !== 0; rest &= rest - 1) bits.push(lowestBit(rest));
  return bits;
}

function lowestBit(mask: number): number {
  return 31 - Math.clz32(mask & -mask);
}

const NO_CANDIDATES: readonly number[] = [];

/** The rules that a sentence may meet, in the order of the rows. */
function candidatesFor({ mask, bases }: Sentence, { byBase, byClass }: Index): readonly number[] {
  let found: Set<number> | undefined;
  const add = (list: readonly number[] = NO_CANDIDATES): void => {
    if (list.length === 0) return;
    found ??= new Set();
    for (const at of list) found.add(at);
  };
  for (const base of bases) add(byBase.get(base));
  for (let rest = mask; rest !== 0; rest &= rest - 1) add(byClass.get(lowestBit(rest)));
  return found === undefined ? NO_CANDIDATES : [...found].sort((one, other) => one - other);
}

function findRule({ row, steps, terms, needed }: Rule, sentence: Sentence): Match | undefined {
  const { tokens } = sentence;
  if (steps.length > tokens.length || !needed.every((step) => mayHave(sentence, step))) return undefined;
  const found = findSteps(steps, row.gap ?? DEFAULT_GAP, tokens);
  if (found === undefined || !terms.every(({ isMet }) => isMet(sentence, found))) return undefined;
  const { class: kind, tier, reason } = row;
  return { kind, tier, reason, start: tokens[found.first]?.start ?? 0, end: tokens[found.last]?.end ?? 0 };
}

/** Whether the sentence has a word or a class without which no word of it takes the step. */
function mayHave({ mask, bases }: Sentence, step: Step): boolean {
  if (step.isAny || (mask & step.mask) !== 0) return true;
  for (const base of step.bases) if (bases.has(base)) return true;
  return false;
}

/** How far the steps have come: the word that took a step last, and the one that took the first. */
type Reached = { readonly at: number; readonly first: number };

/** Reads each word once for each step, and keeps of each step the word nearest to the next. */
function findSteps(steps: readonly Step[], gap: number, tokens: readonly Token[]): Found | undefined {
  const reached: (Reached | undefined)[] = [];
  for (const [at, token] of tokens.entries()) {
    advance(steps, gap, token, at, reached);
    const done = reached[steps.length - 1];
    if (done !== undefined) return { first: done.first, last: at };
  }
  return undefined;
}

function advance(
  steps: readonly Step[],
  gap: number,
  token: Token,
  at: number,
  reached: (Reached | undefined)[],
): void {
  for (let step = steps.length - 1; step >= 0; step--) {
    if (steps[step]?.test(token) !== true) continue;
    const before = step === 0 ? { at, first: at } : reached[step - 1];
    if (before !== undefined && at - before.at <= gap) reached[step] = { at, first: before.first };
  }
}
