// Finds definitions that stand in for those of another upstream: names spelt alike, copies under the same name, and
// descriptions that say what is to be done with another upstream's tool. A copy is nearly the same by the words of its
// description and by its parameters; what many servers share by chance (a `query`, a few words) makes none. Also finds
// the names of an aggregate's backends that look alike. Pure, and bounded for hostile input: each definition is compared
// with few others. docs/contract.md §5; docs/reference/attacks.md case 60.

import { type PinnedKind, sha256Hex } from '../../pins/digest.js';
import { isObject, type Json, type JsonObject } from '../../protocol/jsonrpc.js';
import { escapeForTerminal, makeVisible } from '../../text/escaping.js';
import { groupBy } from '../../text/grouping.js';
import { foldText } from '../detectors/decoded-text.js';
import { confusableForm } from '../detectors/unicode.js';
import type { DefinitionFinding } from './demands.js';
import { CLASS } from './lexicon.js';
import { type ScannedDefinition, textsOf } from './scan.js';
import { type Sentence, sentencesOf } from './sentences.js';

/** The definitions of one upstream, approved and pending. */
export type UpstreamDefinitions = {
  readonly upstream: string;
  readonly definitions: readonly ScannedDefinition[];
};

export type UpstreamItem = {
  readonly upstream: string;
  readonly kind: PinnedKind;
  readonly name: string;
};

/** Two definitions, one of which passes for the other or gives orders about it. */
export type Shadowing = {
  /** Both look alike, or the first gives orders about the second. */
  readonly how: 'alike' | 'order';
  readonly items: readonly [UpstreamItem, UpstreamItem];
  /** JSON pointer into the first. */
  readonly pointer: string;
  readonly evidence: string;
  readonly reason: string;
};

type FoundShadowing = {
  readonly findings: readonly Shadowing[];
  /** Names that several upstreams share without passing for one another. */
  readonly collisions: readonly (readonly UpstreamItem[])[];
};

type Entry = UpstreamItem & {
  readonly definition: ScannedDefinition['definition'];
  readonly simple: string;
  outline?: Outline;
};

/** With how many of the definitions that share a form each is compared; beyond that, the form itself is found. */
const MAX_ALIKE = 12;
const MAX_EVIDENCE = 200;
const MAX_NAME = 512;
/** How many orders about others are reported of one definition. */
const MAX_MENTIONS = 8;
/** Shorter identifiers are words of the language. */
const MIN_MENTIONED = 5;

/** Compares the definitions of all upstreams with one another. Orders are looked for in those that are asked about. */
export function findShadowing(
  upstreams: readonly UpstreamDefinitions[],
  isAsked: (item: UpstreamItem) => boolean = () => true,
): FoundShadowing {
  const entries = upstreams.flatMap(({ upstream, definitions }) =>
    definitions
      .filter(({ kind }) => kind !== 'instructions')
      .map(({ kind, name, definition }): Entry => {
        return { upstream, kind, name, definition, simple: simpleForm(name) };
      }),
  );
  const groups = groupsOf(entries);
  const collisions: UpstreamItem[][] = [];
  for (const group of groups) {
    const shared = new Map(group.map((entry) => [`${entry.upstream} ${entry.name}`, entry]));
    const names = new Set(group.map(({ upstream }) => upstream));
    if (names.size > 1) collisions.push([...shared.values()].map(itemOf));
  }
  const findings = groups.flatMap(compareGroup).concat(mentionsIn(upstreams, entries, isAsked));
  const found = new Set(findings.flatMap(({ items }) => items.map(keyOf)));
  const mere = collisions.filter((items) => !items.some((item) => found.has(keyOf(item))));
  return { findings: withoutRepetitions(findings), collisions: mere };
}

function itemOf({ upstream, kind, name }: UpstreamItem): UpstreamItem {
  return { upstream, kind, name };
}

function keyOf({ upstream, kind, name }: UpstreamItem): string {
  return JSON.stringify([upstream, kind, name]);
}

function withoutRepetitions(findings: readonly Shadowing[]): readonly Shadowing[] {
  const named = new Map<string, Shadowing>();
  for (const finding of findings) {
    const key = JSON.stringify([finding.items.map(keyOf).sort(), finding.reason]);
    if (!named.has(key)) named.set(key, finding);
  }
  return [...named.values()];
}

/** The name without case and separators, as two teams may write the same words. */
function simpleForm(name: string): string {
  return name
    .slice(0, MAX_NAME)
    .toLowerCase()
    .replace(/[ _\-./]/g, '');
}

/** The forms in which names that look alike are equal: `rn` passes for `m`, and a capital i for an l. */
function lookForms({ kind, name }: Entry): readonly string[] {
  const short = name.slice(0, MAX_NAME);
  const forms = [short, short.replace(/[I|]/g, 'l')].map((one) =>
    confusableForm(one).replaceAll('rn', 'm').replaceAll('vv', 'w'),
  );
  return [...new Set(forms)].map((form) => `${kind} ${form}`);
}

function groupsOf(entries: readonly Entry[]): readonly (readonly Entry[])[] {
  const forms = entries.flatMap((entry) => lookForms(entry).map((form) => ({ form, entry })));
  return [...groupBy(forms, ({ form }) => form).values()]
    .filter(({ length }) => length > 1)
    .map((group) => group.map(({ entry }) => entry));
}

function compareGroup(group: readonly Entry[]): readonly Shadowing[] {
  return group.flatMap((entry, at) => {
    const earlier = group.slice(Math.max(0, at - MAX_ALIKE), at);
    const findings = earlier.flatMap((other) => compare(entry, other) ?? []);
    const [first] = group;
    if (at <= MAX_ALIKE || findings.length > 0 || first === undefined) return findings;
    return [
      found(
        'alike',
        entry,
        first,
        '/name',
        entry.name,
        'More names are spelt like it than can be compared.',
      ),
    ];
  });
}

function compare(entry: Entry, other: Entry): Shadowing | undefined {
  if (entry.name !== other.name && entry.simple !== other.simple) {
    return found(
      'alike',
      entry,
      other,
      '/name',
      entry.name,
      'Its name is spelt with look-alikes of another name.',
    );
  }
  if (entry.upstream === other.upstream) return undefined;
  entry.outline ??= outlineOf(entry.definition);
  other.outline ??= outlineOf(other.definition);
  if (!isNearlyEqual(entry.outline, other.outline)) return undefined;
  const { description } = entry.outline;
  return found(
    'alike',
    entry,
    other,
    '/description',
    description,
    'It is nearly a copy of a definition of another upstream.',
  );
}

function found(
  how: Shadowing['how'],
  entry: UpstreamItem,
  other: UpstreamItem,
  pointer: string,
  evidence: string,
  reason: string,
): Shadowing {
  const shown = makeVisible(evidence.slice(0, MAX_EVIDENCE)).slice(0, MAX_EVIDENCE);
  return { how, items: [itemOf(entry), itemOf(other)], pointer, evidence: shown, reason };
}

const IDENTIFIER = /[A-Za-z0-9](?:[A-Za-z0-9_-]{0,126}[A-Za-z0-9])?/g;
/** Two words joined as in a name, so that no ordinary word passes for one. */
const IS_JOINED = /[A-Za-z0-9][_-][A-Za-z0-9]|[a-z][A-Z]/;

/** Descriptions that give orders about a tool which another upstream alone has. */
function mentionsIn(
  upstreams: readonly UpstreamDefinitions[],
  entries: readonly Entry[],
  isAsked: (item: UpstreamItem) => boolean,
): readonly Shadowing[] {
  const named = new Map<string, Entry>();
  for (const entry of entries) {
    if (entry.name.length < MIN_MENTIONED || entry.kind !== 'tool') continue;
    if (IS_JOINED.test(entry.name) && !named.has(entry.name)) named.set(entry.name, entry);
  }
  return upstreams.flatMap(({ upstream, definitions }) => {
    const own = new Set(definitions.map(({ name }) => simpleForm(name)));
    const others = (word: string): Entry | undefined => {
      const other = named.get(word) ?? named.get(word.slice(word.lastIndexOf('__') + 2));
      return other === undefined || own.has(other.simple) ? undefined : other;
    };
    return definitions.flatMap((scanned) =>
      isAsked({ upstream, ...scanned })
        ? mentionsOf(upstream, scanned, others).slice(0, MAX_MENTIONS)
        : [],
    );
  });
}

function mentionsOf(
  upstream: string,
  scanned: ScannedDefinition,
  others: (word: string) => Entry | undefined,
): readonly Shadowing[] {
  const texts = textsOf(scanned.definition) ?? [];
  // What is a value or a name of the definition itself is its own.
  const values = new Set(texts.map(({ value }) => value));
  return texts.flatMap(({ pointer, value, isProse }) => {
    if (!isProse) return [];
    const text = foldText(value).text;
    const mentioned = new Map<string, Entry>();
    for (const [word] of text.matchAll(IDENTIFIER)) {
      const other = others(word);
      if (other !== undefined && !values.has(word)) mentioned.set(word.toLowerCase(), other);
    }
    if (mentioned.size === 0) return [];
    const own = { name: scanned.name, parameters: new Set<string>() };
    return sentencesOf(text, own).flatMap((sentence) => {
      const at = sentence.tokens.findIndex(({ base }) => mentioned.has(base));
      const other = mentioned.get(sentence.tokens[at]?.base ?? '');
      if (other === undefined || !isOrderAbout(sentence, at)) return [];
      const evidence = text.slice(sentence.tokens[0]?.start ?? 0, sentence.tokens.at(-1)?.end);
      const item = { upstream, kind: scanned.kind, name: scanned.name };
      return [
        found(
          'order',
          item,
          other,
          pointer,
          evidence,
          `It gives orders about ${JSON.stringify(makeVisible(other.name))} of another upstream.`,
        ),
      ];
    });
  });
}

const NEAR = 8;
const { call, carry, change, disparage, every, must, negation, order, other, override } = CLASS;

/** Whether the words around a name say what is to be done with it, or that it must not be used. */
function isOrderAbout({ tokens }: Sentence, at: number): boolean {
  const near = tokens.slice(Math.max(0, at - NEAR), at + NEAR);
  const has = (mask: number): boolean =>
    near.some((token) => (token.mask & mask) !== 0 && (token.mask & call) === 0);
  const isCalled = near.some(({ mask }) => (mask & call) !== 0);
  if (has(disparage | override) || has(must)) return true;
  if (has(negation | other) && isCalled) return true;
  return has(every | order) && has(change | carry);
}

/** That two definitions may stand side by side, who answers for it, and until when. */
export type ShadowingException = {
  /** `upstream/name` of both. */
  readonly items: readonly string[];
  readonly owner: string;
  /** The last day on which it holds, as in RFC 3339. */
  readonly until: string;
};

/** The findings that no exception allows on the given day. */
export function withoutExceptions(
  findings: readonly Shadowing[],
  exceptions: readonly ShadowingException[],
  today: string,
): readonly Shadowing[] {
  const allowed = exceptions.filter(({ until }) => until >= today);
  return findings.filter(({ items }) => {
    const names = items.map(({ upstream, name }) => `${upstream}/${name}`);
    return !allowed.some((exception) => names.every((name) => exception.items.includes(name)));
  });
}

/** The definitions of one upstream beside those of the others, and what is allowed. */
type ShadowingInput = {
  readonly own: UpstreamDefinitions;
  /** Those of `own` that are asked about. */
  readonly asked: readonly Pick<UpstreamItem, 'kind' | 'name'>[];
  readonly others: readonly UpstreamDefinitions[];
  readonly exceptions: readonly ShadowingException[];
  /** As in RFC 3339, in UTC. */
  readonly today: string;
};

const ID_DIGITS = 8;

/** Which of the definitions pass for those of other upstreams, or give orders about them. */
export function findShadowingOf(given: ShadowingInput): readonly DefinitionFinding[] {
  const { own, others, exceptions, today } = given;
  const { upstream } = own;
  const asked = new Set(given.asked.map(({ kind, name }) => keyOf({ upstream, kind, name })));
  if (asked.size === 0) return [];
  const isAsked = (item: UpstreamItem): boolean => asked.has(keyOf(item));
  const { findings } = findShadowing([...others, own], isAsked);
  return withoutExceptions(findings, exceptions, today).flatMap((finding) => {
    const [first, second] = finding.items;
    const passing = [{ ...finding, item: first, other: second }];
    // Of two that look alike either may be the one that passes for the other.
    if (finding.how === 'alike')
      passing.push({
        ...finding,
        item: second,
        other: first,
        evidence: evidenceIn(finding, second),
      });
    return passing.filter(({ item }) => isAsked(item)).map(toFinding);
  });
}

function evidenceIn({ pointer, evidence }: Shadowing, { name }: UpstreamItem): string {
  return pointer === '/name' ? makeVisible(name).slice(0, MAX_EVIDENCE) : evidence;
}

function toFinding({
  item,
  other,
  pointer,
  evidence,
  reason: what,
}: Shadowing & { readonly item: UpstreamItem; readonly other: UpstreamItem }): DefinitionFinding {
  const { kind, name } = item;
  const reason = `${what} The other is ${JSON.stringify(escapeForTerminal(`${other.upstream}/${other.name}`))}.`;
  const id = `shadowing-${sha256Hex(JSON.stringify([item, other, reason, evidence])).slice(0, ID_DIGITS)}`;
  return { id, kind: 'shadowing', tier: 'block', item: { kind, name }, pointer, evidence, reason };
}

/** What of a definition is compared. */
type Outline = {
  readonly description: string;
  /** Its letters and digits, folded. */
  readonly plain: string;
  readonly terms: ReadonlySet<string>;
  /** Name and type of each parameter, also of nested ones. */
  readonly parameters: ReadonlySet<string>;
  /** The schema as it is written. */
  readonly schema: string;
};

const MAX_TEXT = 4_096;
const MAX_PARAMETERS = 256;
const MAX_DEPTH = 6;
const COMMON_TERMS: ReadonlySet<string> = new Set(
  'the and for with that this from are its you your can use used using will which when into optional not all any has have may one only more than then also other every retrieve show present existing given specific'.split(
    ' ',
  ),
);

function outlineOf(definition: JsonObject | string): Outline {
  const text = typeof definition === 'string' ? definition : definition['description'];
  const description = typeof text === 'string' ? text.slice(0, MAX_TEXT) : '';
  const plain = foldText(description)
    .text.toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
  const parameters = new Set<string>();
  const input = typeof definition === 'string' ? undefined : definition['inputSchema'];
  collectParameters(input, '', MAX_DEPTH, parameters);
  const schema = parameters.size === 0 ? '' : JSON.stringify(input);
  return { description, plain, terms: termsOf(plain), parameters, schema };
}

function termsOf(plain: string): ReadonlySet<string> {
  const terms = plain.split(' ').filter(({ length }) => length >= 3 && length <= 40);
  return new Set(terms.filter((term) => !COMMON_TERMS.has(term)).map(stemOf));
}

function stemOf(word: string): string {
  return word.replace(/(?:ies|ing|ed|es|s|e|y)$/, '');
}

function collectParameters(
  schema: Json | undefined,
  path: string,
  depth: number,
  found: Set<string>,
): void {
  if (!isObject(schema) || depth === 0) return;
  const properties = schema['properties'];
  if (isObject(properties)) {
    for (const [name, member] of Object.entries(properties)) {
      if (found.size >= MAX_PARAMETERS) return;
      const type = isObject(member) ? JSON.stringify(member['type'] ?? null) : '';
      found.add(`${path}${name.toLowerCase()} ${type}`);
      collectParameters(member, `${path}${name.toLowerCase()}.`, depth - 1, found);
    }
  }
  collectParameters(schema['items'], path, depth - 1, found);
}

/** The share of common members: of both together, and of the smaller one. */
function overlap(one: ReadonlySet<string>, other: ReadonlySet<string>) {
  const [small, large] = one.size <= other.size ? [one, other] : [other, one];
  let common = 0;
  for (const member of small) if (large.has(member)) common++;
  const total = one.size + other.size - common;
  return {
    ofBoth: total === 0 ? 0 : common / total,
    ofSmaller: small.size === 0 ? 0 : common / small.size,
  };
}

/** Fewer words or parameters are shared by chance. */
const MIN_TERMS = 4;
const MIN_PARAMETERS = 3;
/** Shorter schemas, such as one `id` without a description, are written by many. */
const MIN_SCHEMA = 90;

/** Whether one of two definitions with the same name is nearly a copy of the other. */
function isNearlyEqual(one: Outline, other: Outline): boolean {
  const terms = overlap(one.terms, other.terms);
  const hasTerms = Math.min(one.terms.size, other.terms.size) >= MIN_TERMS;
  if (hasTerms && (terms.ofBoth >= 0.7 || isContained(one, other))) return true;
  const parameters = overlap(one.parameters, other.parameters);
  const count = Math.min(one.parameters.size, other.parameters.size);
  if (count >= MIN_PARAMETERS && parameters.ofBoth >= 0.9) return true;
  if (one.schema === other.schema && one.schema.length >= MIN_SCHEMA) return true;
  if (parameters.ofBoth === 1 || one.parameters.size + other.parameters.size === 0) {
    return terms.ofBoth >= SAME_PARAMETERS || isContained(one, other);
  }
  return parameters.ofBoth >= 0.6 && terms.ofBoth >= 0.4;
}

/** How much descriptions have in common, at least, where the parameters are the same. */
const SAME_PARAMETERS = 0.3;

/** Whether one description stands in the other, with something added. */
function isContained({ plain: one }: Outline, { plain: other }: Outline): boolean {
  const [short, long] = one.length <= other.length ? [one, other] : [other, one];
  return short !== '' && long.includes(short);
}

/** The names of one backend and the prefix that they have in the aggregate. */
type BackendNames = { readonly prefix: string; readonly names: Iterable<string> };

/** A name as its backend spells it, and the backend's index in the list that was passed in. */
export type BackendName = { readonly backend: number; readonly name: string };

/**
 * The groups of names that look alike and belong to several backends. Names within one backend are not compared:
 * its definitions were reviewed together.
 */
export function findConfusableNames(
  backends: readonly BackendNames[],
): readonly (readonly BackendName[])[] {
  const all = backends.flatMap(({ names }, backend) =>
    Array.from(names, (name) => ({ backend, name })),
  );
  const byConfusableForm = groupBy(all, ({ backend, name }) =>
    confusableForm((backends[backend]?.prefix ?? '') + name),
  );
  return [...byConfusableForm.values()].filter(([first, ...others]) =>
    others.some(({ backend }) => backend !== first.backend),
  );
}
