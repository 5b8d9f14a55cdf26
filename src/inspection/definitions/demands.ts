// Finds demands in sentences of classified words: a demand is a sequence of classes, each in a bounded distance of
// the one before, so that it is met in whatever words it is made. rules.ts lists what is looked for. The types of
// what is scanned and what is found are here as well.

import type { PinnedKind } from '../../pins/digest.js';
import type { JsonObject } from '../../protocol/jsonrpc.js';
import { CLASS, learnBases } from './lexicon.js';
import type { Sentence, Token } from './sentences.js';

/** How grave a finding is: withheld from approval, to be looked at, or for information. */
type Tier = 'block' | 'review' | 'note';

type FindingKind =
  | 'order-to-model'
  | 'secrecy'
  | 'sensitive-read'
  | 'exfiltration'
  | 'other-tool'
  | 'authority'
  | 'solicitation'
  | 'context-parameter'
  | 'hidden-text'
  /** It was not read, or not whole. */
  | 'too-large-to-scan'
  | 'look-alike-name'
  | 'false-annotation'
  | 'excess-scope'
  | 'shadowing';

/** What one rule found: the words from `start` to `end` of the reading. */
export type Match = {
  readonly kind: FindingKind;
  readonly tier: Tier;
  readonly reason: string;
  readonly start: number;
  readonly end: number;
};

/** A mask of classes, of which the word has one, or a condition on the word. */
export type Step = number | Condition;

/** A condition on a word. With `bases`, only these or a word of one of the classes `mask` can meet it. */
type Condition = {
  (token: Token): boolean;
  readonly bases?: readonly string[];
  readonly mask?: number;
};

export type Demand = {
  readonly kind: FindingKind;
  readonly tier: Tier;
  /** What a reviewer is told. */
  readonly reason: string;
  /** Classes in order, each at most `gap` words after the one before. */
  readonly steps: readonly Step[];
  readonly gap?: number;
  /** Masks of which the sentence must have one class each. */
  readonly needs?: readonly number[];
  /** Classes with which the sentence demands nothing. */
  readonly unless?: number;
  /** A further condition on the sentence; `first` is the position of the word of the first step. */
  readonly when?: (sentence: Sentence, first: number) => boolean;
};

type Options = Pick<Demand, 'gap' | 'needs' | 'unless' | 'when'>;

/** Makes the rules of one kind and tier that tell a reviewer the same. */
export function demands(
  kind: Demand['kind'],
  tier: Demand['tier'],
  reason: string,
  ...list: readonly (readonly [readonly Step[], Options?])[]
): readonly Demand[] {
  return list.map(([steps, options]) => ({ kind, tier, reason, steps, ...options }));
}

const DEFAULT_GAP = 6;

/** A step that one of these words takes, in any inflection. */
export function is(bases: string): Condition {
  return either(0, bases);
}

/** A step that a word of a class takes, or one of these words. */
export function either(mask: number, bases: string): Condition {
  const wanted = bases.split(' ');
  learnBases(wanted);
  const accepted = new Set(wanted);
  const isMet = (token: Token): boolean => (token.mask & mask) !== 0 || accepted.has(token.base);
  return Object.assign(isMet, { bases: wanted, mask });
}

/** A condition that the sentence has one of these words. */
export function has(list: string): (sentence: Sentence) => boolean {
  const wanted = list.split(' ');
  learnBases(wanted);
  return ({ bases }) => wanted.some((base) => bases.has(base));
}

/** A denial of the verb, rather than of a thing: `nothing` may be its subject. */
export const isDenial: Step = ({ base, mask }) => (mask & CLASS.negation) !== 0 && !/^(?:nothing|none|no)$/.test(base);
/** Whether the verb is denied: `does not read`. */
export function isDenied({ tokens }: Sentence, at: number): boolean {
  return tokens.slice(Math.max(0, at - 2), at).some(({ mask }) => (mask & CLASS.negation) !== 0);
}

export function beginsWithNegation({ tokens }: Sentence): boolean {
  return tokens.slice(0, 2).some(({ mask }) => (mask & CLASS.negation) !== 0);
}

/** Whether it lists what something is for: `looking for configuration files`. */
export function beginsWithGerund({ tokens: [first] }: Sentence): boolean {
  return first !== undefined && !first.isBase && first.end - first.start > first.base.length + 1;
}

/** Whether another subject or verb follows the word: `private to the user and not shared`. */
export function isJoined({ tokens }: Sentence, at: number): boolean {
  return /^(?:and|or|but)$/.test(tokens[at + 1]?.base ?? '');
}

const FRAME_NEAR = CLASS.call | CLASS.tool | CLASS.name;
const isStepOfWork = is(
  'return proceed complete finish respond answer start process continue generate perform provide',
);

/** Whether what is not to be asked is a question of its own, rather than whether to go on: `which version to use`. */
export function isQuestion({ tokens, bases }: Sentence, from: number): boolean {
  if (CONSENTS.some((base) => bases.has(base))) return false;
  const asked = tokens.findIndex((token, at) => at > from && (token.mask & CLASS.human) !== 0);
  return /^(?:to|for|which|what|about|whether|how)$/.test(tokens[asked + 1]?.base ?? '');
}

const CONSENTS = ['confirm', 'confirmation', 'permission', 'consent', 'approval', 'approve'];

/** Whether the sentence says when it applies: before, after, whenever or for every call of a tool. */
export function isFramed({ tokens }: Sentence): boolean {
  return tokens.some(({ mask }, at) => {
    if ((mask & (CLASS.order | CLASS.every)) === 0) return false;
    const near = tokens.slice(at + 1, at + 7);
    return near.some((token) => (token.mask & FRAME_NEAR) !== 0 || isStepOfWork(token));
  });
}

const isLead = is('also then and now next finally first please always automatically additionally');
const ACTION = CLASS.read | CLASS.carry | CLASS.execute | CLASS.call;

/** Whether the sentence orders something: it obliges, says when it applies, or is a later imperative. */
export function isOrder(sentence: Sentence): boolean {
  if ((sentence.mask & CLASS.must) !== 0 || isFramed(sentence)) return true;
  const [first, second] = sentence.tokens;
  const verb = first !== undefined && isLead(first) ? second : first;
  return sentence.index > 0 && verb !== undefined && (verb.mask & ACTION) !== 0 && verb.isBase === true;
}

/** After these a verb says what is done, or what may be done. */
const NO_IMPERATIVE: ReadonlySet<string> = new Set(
  'to is are be been was were can could may might will would it they which that'.split(' '),
);

/** Whether the word is a verb in the imperative, in a sentence after the one that says what the tool does. */
export function isImperative({ tokens, index }: Sentence, at: number): boolean {
  return index > 0 && tokens[at]?.isBase === true && !NO_IMPERATIVE.has(tokens[at - 1]?.base ?? '');
}

const isLeadIn = is(
  'and then also now first finally please kindly must should shall you always just simply immediately quietly silently',
);

/**
 * Whether the word is a verb that commands: at the beginning of a clause in a sentence after the one that says what the
 * tool does. An option that is described does not command: `force: skip the check`, `set it to skip the check`.
 */
export function isCommanded(sentence: Sentence, at: number): boolean {
  const token = sentence.tokens[at];
  const before = sentence.tokens[at - 1];
  if (token === undefined || sentence.index === 0 || !token.isBase || isLabelled(sentence)) {
    return false;
  }
  return before === undefined || isLeadIn(before) || token.start - before.end > 1;
}

const LEADS = CLASS.must | CLASS.order | CLASS.negation | CLASS.model | CLASS.every;

/** Whether it holds under a condition only: `do not show it unless the user asks`. */
export function isLimited({ tokens }: Sentence, by: string): boolean {
  return by.split(' ').includes(tokens.at(-1)?.condition ?? '');
}

/** Whether the one who is told to do it stands before the verb: `you must`, `the model has to`. */
export function isObliged({ tokens }: Sentence, at: number): boolean {
  const before = tokens.slice(Math.max(0, at - 3), at);
  return before.some(({ mask }) => (mask & (CLASS.must | CLASS.model)) !== 0);
}

/** Whether the sentence begins with a name that it explains: `force: do not ask`. */
export function isLabelled({ tokens: [first, second] }: Sentence): boolean {
  if (first === undefined || second === undefined || isLead(first)) return false;
  return (first.mask & LEADS) === 0 && second.start - first.end > 1;
}

/** Demands by what one of their steps takes, so that of a long list only those are tried that a sentence may meet. */
type Index = {
  readonly byBase: ReadonlyMap<string, readonly number[]>;
  /** By the number of the bit of a class. */
  readonly byClass: ReadonlyMap<number, readonly number[]>;
  readonly always: readonly number[];
};

const indexes = new WeakMap<readonly Demand[], Index>();

function indexOf(list: readonly Demand[]): Index {
  const known = indexes.get(list);
  if (known !== undefined) return known;
  const byBase = new Map<string, number[]>();
  const byClass = new Map<number, number[]>();
  const always: number[] = [];
  for (const [at, demand] of list.entries()) {
    const key = keyOf(demand);
    if (key === undefined) always.push(at);
    for (const base of key?.bases ?? []) addTo(byBase, base, at);
    for (const bit of bitsOf(key?.mask ?? 0)) addTo(byClass, bit, at);
  }
  const index = { byBase, byClass, always };
  indexes.set(list, index);
  return index;
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

type Key = { readonly bases: readonly string[]; readonly mask: number };

/**
 * What a sentence must have to meet the demand, of all that it must have the narrowest; `undefined` if that is not
 * known.
 */
function keyOf({ steps, needs = [] }: Demand): Key | undefined {
  const keys = [...steps, ...needs].flatMap((step): Key[] => {
    if (typeof step === 'number') return [{ bases: [], mask: step }];
    return step.bases === undefined ? [] : [{ bases: step.bases, mask: step.mask ?? 0 }];
  });
  // A class stands for many words.
  const widthOf = ({ bases, mask }: Key): number => bases.length + CLASS_WIDTH * bitsOf(mask).length;
  return keys.reduce<Key | undefined>(
    (best, key) => (best === undefined || widthOf(key) < widthOf(best) ? key : best),
    undefined,
  );
}

const CLASS_WIDTH = 20;

/** The demands that a sentence may meet, in the order of the list. */
function candidatesFor({ mask, bases }: Sentence, index: Index): Iterable<number> {
  let found: Set<number> | undefined;
  const add = (demanded: readonly number[]): void => {
    found ??= new Set(index.always);
    for (const at of demanded) found.add(at);
  };
  for (const base of bases) {
    const demanded = index.byBase.get(base);
    if (demanded !== undefined) add(demanded);
  }
  for (let rest = mask; rest !== 0; rest &= rest - 1) {
    const demanded = index.byClass.get(lowestBit(rest));
    if (demanded !== undefined) add(demanded);
  }
  return found === undefined ? index.always : [...found].sort((one, other) => one - other);
}

/** What the demands find in a sentence, at most one match each. */
export function findAll(list: readonly Demand[], sentence: Sentence): readonly Match[] {
  const found: Match[] = [];
  if (sentence.mask === 0 && sentence.tokens.length === 1) return found;
  for (const at of candidatesFor(sentence, indexOf(list))) {
    const demand = list[at];
    const match = demand === undefined ? undefined : findDemand(demand, sentence);
    if (match !== undefined) found.push(match);
  }
  return found;
}

/** The first match of a demand in a sentence. */
function findDemand(demand: Demand, sentence: Sentence): Match | undefined {
  if (!mayMatch(demand, sentence)) return undefined;
  const span = findSteps(demand.steps, demand.gap, sentence.tokens);
  if (span === undefined || demand.when?.(sentence, span.first) === false) return undefined;
  const { kind, tier, reason } = demand;
  return { kind, tier, reason, start: span.start, end: span.end };
}

/** Whether the steps stand in a sentence in their order, each at most `gap` words after the one before. */
export function occurs(steps: readonly Step[], gap: number, sentence: Sentence): boolean {
  if (steps.length > sentence.tokens.length) return false;
  if (!steps.every((step) => mayTake(step, sentence))) return false;
  return findSteps(steps, gap, sentence.tokens) !== undefined;
}

function mayMatch({ steps, needs = [], unless = 0 }: Demand, sentence: Sentence): boolean {
  const { mask, tokens } = sentence;
  if (steps.length > tokens.length || (mask & unless) !== 0) return false;
  if (needs.some((need) => (mask & need) === 0)) return false;
  return steps.every((step) => mayTake(step, sentence));
}

function mayTake(step: Step, { mask, bases }: Sentence): boolean {
  if (typeof step === 'number') return (mask & step) !== 0;
  const { bases: wanted, mask: classes = 0 } = step;
  return (mask & classes) !== 0 || wanted === undefined || wanted.some((base) => bases.has(base));
}

type Span = { readonly start: number; readonly end: number; readonly first: number };
/** How far the steps have come: the word that took a step last, and the one that took the first. */
type Reached = { readonly at: number; readonly first: number };

/** Reads each word once for each step, and keeps of each step the word nearest to the next. */
function findSteps(steps: readonly Step[], gap: number | undefined, tokens: readonly Token[]): Span | undefined {
  const reached: (Reached | undefined)[] = [];
  for (const [at, token] of tokens.entries()) {
    advance(steps, gap, token, at, reached);
    const done = reached[steps.length - 1];
    if (done !== undefined) {
      return { start: tokens[done.first]?.start ?? 0, end: token.end, first: done.first };
    }
  }
  return undefined;
}

function advance(
  steps: readonly Step[],
  gap = DEFAULT_GAP,
  token: Token,
  at: number,
  reached: (Reached | undefined)[],
): void {
  for (let step = steps.length - 1; step >= 0; step--) {
    if (!matches(steps[step], token)) continue;
    const before = step === 0 ? { at, first: at } : reached[step - 1];
    if (before === undefined || at - before.at > gap) continue;
    reached[step] = { at, first: before.first };
  }
}

function matches(step: Step | undefined, token: Token): boolean {
  if (step === undefined) return false;
  return typeof step === 'number' ? (token.mask & step) !== 0 : step(token);
}

/** A definition as the server listed it. `name` is what the lock file calls it. */
export type ScannedDefinition = {
  readonly kind: PinnedKind;
  readonly name: string;
  readonly definition: JsonObject | string;
  /** Of the whole definition, where it is known (pins/digest.ts). */
  readonly digest?: string;
};

/** What a finding is about: a definition, or an upstream with several of its definitions. */
export type FoundItem = { readonly kind: PinnedKind | 'upstream'; readonly name: string };

export type DefinitionFinding = {
  /** Names the finding in a command. Another text at its place makes another finding. */
  readonly id: string;
  readonly kind: FindingKind;
  readonly tier: Tier;
  readonly item: FoundItem;
  /** Where it is about an upstream, which of its definitions. */
  readonly covers?: readonly FoundItem[];
  /** JSON pointer to the string in the definition. */
  readonly pointer: string;
  /** The words that were found, with invisible characters visible, at most 200 characters. */
  readonly evidence: string;
  readonly reason: string;
};

/** A finding before it is named. */
export type UnnamedFinding = Omit<DefinitionFinding, 'id'>;

/** Whether a finding is about this definition, by itself or together with others of its upstream. */
export function isAbout({ item, covers = [] }: DefinitionFinding, pin: FoundItem): boolean {
  return [item, ...covers].some(({ kind, name }) => kind === pin.kind && name === pin.name);
}
