// Finds definitions that stand in for those of another upstream: names spelt alike, copies under the same name, and
// descriptions that say what is to be done with another upstream's tool. A copy is nearly the same by the words of its
// description and by its parameters; what many servers share by chance (a `query`, a few words) makes none. Also finds
// the names of an aggregate's backends that look alike. Pure, and bounded for hostile input: each definition is compared
// with few others. docs/reference/scan.md; docs/reference/attacks.md case 60.

import { digestListed, NO_DIGEST, type PinnedKind, sha256Hex } from '../../pins/digest.js';
import { isObject, type Json, type JsonObject } from '../../protocol/jsonrpc.js';
import { escapeForTerminal, makeVisible } from '../../text/escaping.js';
import { groupBy } from '../../text/grouping.js';
import { foldText } from '../detectors/decoded-text.js';
import { confusableForm } from '../detectors/unicode.js';
import type { DefinitionFinding } from './finding.js';
import { CLASS } from './lexicon.js';
import { purposesOf } from './purposes.js';
import type { ScannedDefinition } from './scan.js';
import { findDemands, findPraise } from './sentence-rules.js';
import { type Sentence, sentencesOf, type Token } from './sentences.js';
import { splitName } from './splitting.js';
import { textsOf } from './texts.js';

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

/** What the gateway file says of upstreams that are compared, as plain data. */
export type Deployment = {
  readonly upstreams: readonly {
    readonly name: string;
    /** Where it is reached, for people. */
    readonly host?: string | undefined;
    /** Another upstream that the operator declares to be the same server. */
    readonly sameAs?: string | undefined;
    /** Whose callers it serves. Absent: not known. */
    readonly issuers?: readonly string[] | undefined;
  }[];
  /** The backends of each aggregate, whose definitions one caller may see in one list. */
  readonly aggregates: readonly (readonly string[])[];
};

const ALONE: Deployment = { upstreams: [], aggregates: [] };

/** Two definitions, one of which passes for the other, gives orders about it or has itself chosen in its place. */
export type Shadowing = {
  /**
   * Both look alike, the first gives orders about the second or has itself chosen for its purpose, the first upstream is
   * the second once more, or both upstreams have names in common.
   */
  readonly how: 'alike' | 'order' | 'purpose' | 'same' | 'names';
  readonly tier: DefinitionFinding['tier'];
  readonly items: readonly [UpstreamItem, UpstreamItem];
  /** Where it is about an upstream, its definitions that are the same as those of the other or have their names. */
  readonly covers?: readonly Cover[];
  /** JSON pointer into the first. */
  readonly pointer: string;
  readonly evidence: string;
  readonly reason: string;
};

type Cover = UpstreamItem & { readonly digest: string };

type Entry = UpstreamItem & {
  readonly definition: ScannedDefinition['definition'];
  /** Of equal definitions only, whatever their order of members. */
  readonly digest: string;
  readonly simple: string;
  /** The forms in which names that look alike are equal. */
  readonly forms: readonly string[];
  /** Numbers that are equal where the upstream, the name without case and separators, and digest and name are. */
  readonly at: number;
  readonly spelling: number;
  readonly content: number;
  readonly purposes: readonly string[];
  outline?: Outline;
  cover?: Cover;
};

/** With how many of the definitions that share a form each is compared; beyond that, the form itself is found. */
const MAX_ALIKE = 12;
/** How many definitions that share a form are looked through for those. */
const MAX_VISITED = 1_000;
const MAX_EVIDENCE = 200;
const MAX_NAME = 512;
/** How many orders about others are reported of one definition. */
const MAX_MENTIONS = 8;
/** Shorter identifiers are words of the language. */
const MIN_MENTIONED = 5;

/**
 * The definitions of many upstreams, found by the forms of their names, so that those of one upstream are compared with
 * all others in a time that depends on its own.
 */
export type ShadowingIndex = {
  /** Adds the definitions of an upstream, in place of those that it had, and returns those that are compared. */
  set(upstream: UpstreamDefinitions): readonly Entry[];
  /** What has one of the forms, in the order in which the upstreams were added. */
  readonly sharing: (form: string) => Group;
  /** What has a form of one and also its name without case and separators, in that order. */
  readonly namesakes: (entry: Entry) => readonly Group[];
  readonly identical: (digest: string) => Group;
  /** The tools with exactly this name that a text may mention. */
  readonly mentioned: (name: string) => readonly Entry[];
  /** The tools that are for this (purposes.ts). */
  readonly serving: (purpose: string) => readonly Entry[];
  /** How many definitions an upstream has. */
  readonly size: (upstream: string) => number;
};

/** Entries, and their numbers beside them: of millions of pairs each object would be fetched from memory. */
type Group = {
  readonly entries: readonly Entry[];
  readonly ats: readonly number[];
  readonly contents: readonly number[];
};

export function createShadowingIndex(upstreams: readonly UpstreamDefinitions[] = []): ShadowingIndex {
  const byUpstream = new Map<string, readonly Entry[]>();
  const [byForm, bySpelling, byDigest] = [createGroups(), createGroups(), createGroups()];
  const [byName, byPurpose] = [createGroups(), createGroups()];
  /** Where an entry is found. */
  function placesOf(entry: Entry): readonly (readonly [Groups, string])[] {
    const { forms, purposes, digest, name } = entry;
    return [
      ...forms.map((form) => [byForm, form] as const),
      ...forms.map((form) => [bySpelling, spellingOf(form, entry)] as const),
      ...purposes.map((purpose) => [byPurpose, purpose] as const),
      ...(digest === NO_DIGEST ? [] : [[byDigest, digest] as const]),
      ...(isMentionable(entry) ? [[byName, name] as const] : []),
    ];
  }
  const spellingOf = (form: string, { spelling }: Entry): string => `${spelling} ${form}`;
  // Millions of pairs are compared, for which texts take too long.
  const [upstreamNumbers, spellings, contents] = [createNumbers(), createNumbers(), createNumbers()];
  function set({ upstream, definitions }: UpstreamDefinitions): readonly Entry[] {
    for (const entry of byUpstream.get(upstream) ?? [])
      for (const [groups, key] of placesOf(entry)) groups.remove(key, entry.at);
    const at = upstreamNumbers.of(upstream);
    const named = definitions.filter(({ kind }) => kind !== 'instructions');
    const entries = named.map(({ kind, name, definition, digest: known }): Entry => {
      const digest = known ?? digestListed(kind, definition, true);
      const simple = simpleForm(name);
      return {
        ...{ upstream, kind, name, definition, digest, simple, at },
        spelling: spellings.of(simple),
        content: digest === NO_DIGEST ? contents.next() : contents.of(`${digest} ${name}`),
        forms: lookForms(kind, name),
        purposes: purposesOf({ kind, name, definition }),
      };
    });
    byUpstream.set(upstream, entries);
    for (const entry of entries) for (const [groups, key] of placesOf(entry)) groups.add(key, entry);
    return entries;
  }
  for (const one of upstreams) set(one);
  return {
    set,
    sharing: byForm.of,
    namesakes: (entry) => entry.forms.map((form) => bySpelling.of(spellingOf(form, entry))),
    identical: byDigest.of,
    mentioned: (name) => byName.of(name).entries,
    serving: (purpose) => byPurpose.of(purpose).entries,
    size: (upstream) => byUpstream.get(upstream)?.length ?? 0,
  };
}

type Groups = ReturnType<typeof createGroups>;

const EMPTY: Group = { entries: [], ats: [], contents: [] };

/** Entries by what they have in common. */
function createGroups() {
  const groups = new Map<string, { entries: Entry[]; ats: number[]; contents: number[] }>();
  function add(key: string, entry: Entry): void {
    const known = groups.get(key) ?? { entries: [], ats: [], contents: [] };
    groups.set(key, known);
    known.entries.push(entry);
    known.ats.push(entry.at);
    known.contents.push(entry.content);
  }
  return {
    add,
    of: (key: string): Group => groups.get(key) ?? EMPTY,
    /** Removes the entries of one upstream. */
    remove(key: string, at: number): void {
      const left = groups.get(key)?.entries.filter((entry) => entry.at !== at) ?? [];
      groups.delete(key);
      for (const entry of left) add(key, entry);
    },
  };
}

/** Numbers texts. */
function createNumbers(): { readonly of: (text: string) => number; readonly next: () => number } {
  const known = new Map<string, number>();
  let count = 0;
  const next = (): number => count++;
  return {
    next,
    of(text) {
      const number = known.get(text) ?? next();
      known.set(text, number);
      return number;
    },
  };
}

/** The name of a tool that is no ordinary word. */
function isMentionable({ kind, name }: Entry): boolean {
  return kind === 'tool' && name.length >= MIN_MENTIONED && IS_JOINED.test(name);
}

/** Which upstreams are declared to be one server, and which one caller may see in one list. */
type Relations = {
  readonly areDeclared: (one: string, other: string) => boolean;
  readonly areTogether: (one: string, other: string) => boolean;
  /** Whether one caller may have the names of both, without a prefix. */
  readonly haveCallers: (one: string, other: string) => boolean;
  /** The name of an upstream and where it is reached. */
  readonly place: (upstream: string) => string;
  readonly sameAs: (upstream: string) => string | undefined;
  /** The position in the file. */
  readonly rank: (upstream: string) => number;
};

function relationsOf({ upstreams, aggregates }: Deployment): Relations {
  const known = new Map(upstreams.map((one, rank) => [one.name, { ...one, rank }]));
  // Two upstreams that are declared to be the same as a third are the same as each other.
  const groups = new Map<string, string>();
  const groupOf = (name: string): string => {
    let group = name;
    for (let next = groups.get(group); next !== undefined; next = groups.get(group)) group = next;
    return group;
  };
  for (const { name, sameAs } of upstreams) {
    if (sameAs === undefined || groupOf(name) === groupOf(sameAs)) continue;
    groups.set(groupOf(name), groupOf(sameAs));
  }
  const sets = aggregates.map((backends) => new Set(backends));
  const areTogether: Relations['areTogether'] = (one, other) =>
    one === other || sets.some((backends) => backends.has(one) && backends.has(other));
  return {
    areDeclared: (one, other) => groupOf(one) === groupOf(other),
    areTogether,
    haveCallers(one, other) {
      // No prefix of an endpoint begins with another, so that no two of its names are equal.
      if (areTogether(one, other)) return false;
      const [ours, theirs] = [known.get(one)?.issuers, known.get(other)?.issuers];
      return ours === undefined || (theirs?.some((issuer) => ours.includes(issuer)) ?? true);
    },
    place(upstream) {
      const host = known.get(upstream)?.host;
      return host === undefined ? upstream : `${upstream} (${host})`;
    },
    sameAs: (upstream) => known.get(upstream)?.sameAs,
    rank: (upstream) => known.get(upstream)?.rank ?? known.size,
  };
}

/** Compares the definitions of all upstreams with one another. */
export function findShadowing(
  upstreams: readonly UpstreamDefinitions[],
  deployment: Deployment = ALONE,
  exceptions: readonly ShadowingException[] = [],
): readonly Shadowing[] {
  const relations = relationsOf(deployment);
  const index = createShadowingIndex();
  const comparison = { index, relations, exceptions, isAsked: () => true };
  const findings = upstreams.flatMap((own) => likenesses(own.upstream, index.set(own), comparison));
  // What one orders of another may stand in either of them.
  const orders = upstreams.flatMap((own) => [...mentionsIn(own, comparison), ...choicesIn(own, comparison)]);
  return withoutRepetitions([...findings, ...withoutExceptions(orders, exceptions)]);
}

function itemOf({ upstream, kind, name }: UpstreamItem): UpstreamItem {
  return { upstream, kind, name };
}

function itemKeyOf({ upstream, kind, name }: UpstreamItem): string {
  return JSON.stringify([upstream, kind, name]);
}

function withoutRepetitions(findings: readonly Shadowing[]): readonly Shadowing[] {
  const named = new Map<string, Shadowing>();
  for (const finding of findings) {
    const key = JSON.stringify([finding.items.map(itemKeyOf).sort(), finding.reason]);
    if (!named.has(key)) named.set(key, finding);
  }
  return [...named.values()];
}

type Comparison = {
  readonly index: ShadowingIndex;
  readonly relations: Relations;
  readonly isAsked: (item: UpstreamItem) => boolean;
};

/** Compares the definitions of one upstream with those in the index, and their spellings with each other. */
function likenesses(
  upstream: string,
  entries: readonly Entry[],
  comparison: Comparison & { readonly exceptions: readonly ShadowingException[] },
): readonly Shadowing[] {
  const { index, relations, isAsked, exceptions } = comparison;
  const own = new Map<string, Entry[]>();
  const findings: Shadowing[] = [];
  for (const entry of entries) {
    const isAskedNow = isAsked(entry);
    for (const form of entry.forms) {
      const before = own.get(form) ?? [];
      own.set(form, [...before.slice(-MAX_ALIKE), entry]);
      // Of two names within one server either may be the one that is asked about.
      const spelt = before.filter((other) => isAskedNow || isAsked(other));
      const others = isAskedNow ? differentOf(entry, index.sharing(form), index.identical(entry.digest)) : [];
      findings.push(...compareAll(entry, [...spelt, ...others], relations));
    }
  }
  // All of an upstream tell whether it is a twin, whichever of them are asked about.
  const servers = sameServers(upstream, entries, { index, relations, exceptions });
  const names = sharedNames(upstream, entries, servers, comparison);
  const about = [...servers, ...names].filter(({ items: [item], covers = [item] }) => covers.some(isAsked));
  return withoutExceptions([...findings, ...about], exceptions);
}

/**
 * The names that an upstream has in common with each of the others whose callers it serves: a client that reaches both
 * may call the one for the other. What is identical at a second deployment of the same server is found already.
 */
function sharedNames(
  upstream: string,
  own: readonly Entry[],
  servers: readonly Shadowing[],
  { index, relations, exceptions }: SameInput,
): readonly Shadowing[] {
  const found = new Set(servers.flatMap(({ covers = [] }) => covers.map(({ digest }) => digest)));
  const isApart = (other: string): boolean =>
    other === upstream || relations.areDeclared(upstream, other) || !relations.haveCallers(upstream, other);
  const byOther = new Map<number, SharedNames>();
  for (const entry of own)
    for (const namesakes of index.namesakes(entry))
      addShared(byOther, entry, namesakes, (at) => {
        if (found.has(entry.digest) && namesakes.contents[at] === entry.content) return true;
        const other = exceptions.length === 0 ? undefined : namesakes.entries[at];
        return other !== undefined && isExcepted([entry, other], exceptions);
      });
  return [...byOther.values()].flatMap((shared) =>
    isApart(shared.other.upstream) ? [] : namesFinding(upstream, shared, relations),
  );
}

/** The own definitions whose names an upstream has too, and its definition that has the first of them. */
type SharedNames = { readonly entries: Entry[]; other: Entry };

/** All others of one entry are added before those of the next. */
function addShared(
  byOther: Map<number, SharedNames>,
  entry: Entry,
  { entries, ats }: Group,
  isLeftOut: (at: number) => boolean,
): void {
  for (let at = Math.max(0, ats.length - MAX_VISITED); at < ats.length; at += 1) {
    if (isLeftOut(at)) continue;
    const upstream = ats[at] ?? -1;
    const shared = byOther.get(upstream);
    const other = entries[at];
    if (other === undefined) continue;
    if (shared === undefined) byOther.set(upstream, { entries: [entry], other });
    else if (shared.entries[shared.entries.length - 1] !== entry) shared.entries.push(entry);
    // Of several that have the first name the last one is shown.
    else if (shared.entries.length === 1) shared.other = other;
  }
}

function namesFinding(upstream: string, { entries, other }: SharedNames, { place }: Relations): readonly Shadowing[] {
  const [first] = entries;
  if (first === undefined) return [];
  const names = entries.map(({ name }) => name);
  const what = names.length === 1 ? '1 name' : `${names.length} names`;
  const reason = `${place(upstream)} and ${place(other.upstream)} have ${what} in common, so that a client of both may call the one for the other. An endpoint with prefixes keeps them apart.`;
  const covers = entries.map(coverOf);
  return [{ ...found('names', 'review', [first, other], '', listOf(names), reason), covers }];
}

/** What a finding about an upstream says of a definition; the same object in all of them. */
function coverOf(entry: Entry): Cover {
  entry.cover ??= { ...itemOf(entry), digest: entry.digest };
  return entry.cover;
}

function listOf(names: readonly string[]): string {
  const listed = names.slice(0, MAX_NAMES).join(', ');
  return names.length > MAX_NAMES ? `${listed} and ${names.length - MAX_NAMES} more` : listed;
}

/** An own definition and an identical one of another upstream. */
type Same = { readonly entry: Entry; readonly other: Entry };

/**
 * The different definitions of others that share a form with one, those that were added last, and no more than tell
 * whether they are too many. What several upstreams have in common is compared once.
 */
function differentOf(entry: Entry, { entries, ats, contents }: Group, identical: Group): readonly Entry[] {
  let having: ReadonlySet<number> | undefined;
  const hasTwinAt = (at: number): boolean => {
    having ??= new Set(identical.ats);
    return having.has(at);
  };
  const forms = new Map<number, Entry>();
  const end = Math.max(0, entries.length - MAX_VISITED);
  for (let at = entries.length - 1; at >= end && forms.size <= MAX_ALIKE; at -= 1) {
    if (ats[at] === entry.at || contents[at] === entry.content) continue;
    const other = entries[at];
    // Of an upstream that has two forms of a definition for a while, the identical one counts.
    if (other === undefined || (other.name === entry.name && hasTwinAt(other.at))) continue;
    if (!forms.has(other.content)) forms.set(other.content, other);
  }
  return [...forms.values()];
}

function compareAll(entry: Entry, others: readonly Entry[], relations: Relations): readonly Shadowing[] {
  const findings = others.slice(-MAX_ALIKE).flatMap((other) => compare(entry, other, relations) ?? []);
  const [first] = others;
  if (others.length <= MAX_ALIKE || findings.length > 0 || first === undefined) return findings;
  const reason = 'More names are spelt like it than can be compared.';
  const isTogether = others.some(({ upstream }) => relations.areTogether(entry.upstream, upstream));
  const tier = isTogether ? 'block' : 'review';
  return [found('alike', tier, [entry, first], '/name', entry.name, reason)];
}

type SameInput = Pick<Comparison, 'index' | 'relations'> & {
  readonly exceptions: readonly ShadowingException[];
};

/**
 * What identical definitions mean. Of a declared twin they are one note. Where most of an upstream is the same as
 * another, that is one finding about the upstream, which its operator decides; else each is one by itself.
 */
function sameServers(
  upstream: string,
  entries: readonly Entry[],
  { index, relations, exceptions }: SameInput,
): readonly Shadowing[] {
  const twins = twinsByUpstream(entries, index);
  if (twins.size === 0) return [];
  const { areDeclared, areTogether } = relations;
  const declared = [...twins.values()].filter(([{ other }]) => areDeclared(upstream, other.upstream));
  // What a declared twin has too is what the operator spoke of, whoever else has it.
  const isDeclared = new Set(declared.flat().map(({ entry }) => entry.digest));
  const isOpen = (entry: Entry, other: Entry): boolean =>
    !isDeclared.has(entry.digest) && !isExcepted([entry, other], exceptions);
  const isEachOpen = isDeclared.size === 0 && exceptions.length === 0;
  const undeclared = isEachOpen ? twins : twinsByUpstream(entries, index, isOpen);
  const identical: SameAs[] = [];
  const single: Shadowing[] = [];
  for (const pairs of undeclared.values()) {
    const other = pairs[0].other.upstream;
    const [count, sizes] = [pairs.length, [index.size(upstream), index.size(other)]];
    const isTogether = areTogether(upstream, other);
    // Beside each other in one list, a server that copies a part of another must not pass for a second deployment.
    const all = isTogether ? Math.max(...sizes) : Math.min(...sizes);
    if (count * 2 > all) identical.push(pairs);
    else single.push(...pairs.flatMap((pair) => compare(pair.entry, pair.other, relations) ?? []));
  }
  const copies = oneOfEach(identical, entries.length);
  const isFound = copies.some(({ entry, other }) => compare(entry, other, relations) !== undefined);
  const declaredOwn = new Map(
    entries.flatMap((entry) => (isDeclared.has(entry.digest) ? [[entry.digest, entry]] : [])),
  );
  return [
    ...sameServer(upstream, declared, [...declaredOwn.values()], relations),
    ...(isFound
      ? sameServer(
          upstream,
          identical,
          copies.map(({ entry }) => entry),
          relations,
        )
      : []),
    ...single,
  ];
}

/** The own definitions that others have too, by the numbers of those. */
function twinsByUpstream(
  own: readonly Entry[],
  index: ShadowingIndex,
  isMeant: (entry: Entry, other: Entry) => boolean = () => true,
): ReadonlyMap<number, SameAs> {
  const found = new Map<number, [Same, ...Same[]]>();
  for (const entry of own) {
    const { entries, ats } = index.identical(entry.digest);
    for (const [position, at] of ats.entries()) {
      const other = entries[position];
      if (at === entry.at || other === undefined || !isMeant(entry, other)) continue;
      const known = found.get(at);
      if (known === undefined) found.set(at, [{ entry, other }]);
      else known.push({ entry, other });
    }
  }
  return found;
}

/** The pairs of one upstream with another. */
type SameAs = readonly [Same, ...Same[]];

/** The first pair of each own definition, of which there are at most so many. */
function oneOfEach(all: readonly (readonly Same[])[], count: number): readonly Same[] {
  const found = new Map<string, Same>();
  for (const pairs of all) {
    if (found.size === count) break;
    for (const pair of pairs) if (!found.has(pair.entry.digest)) found.set(pair.entry.digest, pair);
  }
  return [...found.values()];
}

/** One finding about an upstream and the one that it has most in common with. */
function sameServer(
  upstream: string,
  all: readonly SameAs[],
  own: readonly Entry[],
  { areDeclared, place, sameAs, rank }: Relations,
): readonly Shadowing[] {
  const counted = [...all].sort(
    (one, other) => other.length - one.length || rank(one[0].other.upstream) - rank(other[0].other.upstream),
  );
  const [shared] = counted;
  if (shared === undefined) return [];
  const [first] = shared;
  const other = first.other.upstream;
  const covers = own.map(coverOf);
  const evidence = listOf(covers.map(({ name }) => name));
  const more = counted.length > 1 ? ` and ${counted.length - 1} more` : '';
  const what = covers.length === 1 ? '1 definition is' : `${covers.length} definitions are`;
  const isDeclared = areDeclared(upstream, other);
  // An upstream names one other.
  const [adding, named] = sameAs(upstream) === undefined ? [upstream, other] : [other, upstream];
  const reason = isDeclared
    ? `The gateway file declares ${place(upstream)} to be the same server as ${place(other)}${more}: ${what} the same.`
    : `${place(upstream)} seems to be a second deployment of ${place(other)}${more}: ${what} the same. If both are yours to trust, add to upstreams.${adding} of the gateway file: sameAs: ${named}`;
  const tier = isDeclared ? 'note' : 'review';
  return [{ ...found('same', tier, [first.entry, first.other], '', evidence, reason), covers }];
}

/** How many names a finding about an upstream quotes. */
const MAX_NAMES = 12;

/** The name without case and separators, as two teams may write the same words. */
function simpleForm(name: string): string {
  return name
    .slice(0, MAX_NAME)
    .toLowerCase()
    .replace(/[ _\-./]/g, '');
}

/** The forms in which names that look alike are equal: `rn` passes for `m`, and a capital i for an l. */
function lookForms(kind: PinnedKind, name: string): readonly string[] {
  const short = name.slice(0, MAX_NAME);
  const forms = [short, short.replace(/[I|]/g, 'l')].map((one) =>
    confusableForm(one).replaceAll('rn', 'm').replaceAll('vv', 'w'),
  );
  return [...new Set(forms)].map((form) => `${kind} ${form}`);
}

/** Definitions that one caller may see in one list block each other; elsewhere a person decides. */
function compare(entry: Entry, other: Entry, { areTogether }: Pick<Relations, 'areTogether'>): Shadowing | undefined {
  const tier = areTogether(entry.upstream, other.upstream) ? 'block' : 'review';
  if (entry.name !== other.name && entry.simple !== other.simple) {
    const reason = 'Its name is spelt with look-alikes of another name.';
    return found('alike', tier, [entry, other], '/name', entry.name, reason);
  }
  if (entry.upstream === other.upstream) return undefined;
  entry.outline ??= outlineOf(entry.definition);
  other.outline ??= outlineOf(other.definition);
  if (!isNearlyEqual(entry.outline, other.outline)) return undefined;
  const { description } = entry.outline;
  const reason = 'It is nearly a copy of a definition of another upstream.';
  return found('alike', tier, [entry, other], '/description', description, reason);
}

function found(
  how: Shadowing['how'],
  tier: Shadowing['tier'],
  [entry, other]: readonly [UpstreamItem, UpstreamItem],
  pointer: string,
  evidence: string,
  reason: string,
): Shadowing {
  const shown = makeVisible(evidence.slice(0, MAX_EVIDENCE)).slice(0, MAX_EVIDENCE);
  return { how, tier, items: [itemOf(entry), itemOf(other)], pointer, evidence: shown, reason };
}

const IDENTIFIER = /[A-Za-z0-9](?:[A-Za-z0-9_-]{0,126}[A-Za-z0-9])?/g;
/** Two words joined as in a name, so that no ordinary word passes for one. */
const IS_JOINED = /[A-Za-z0-9][_-][A-Za-z0-9]|[a-z][A-Z]/;

/** Descriptions that give orders about a tool of another upstream, or against one whose name is also an own one. */
function mentionsIn(
  { upstream, definitions }: UpstreamDefinitions,
  { index, relations, isAsked }: Comparison,
): readonly Shadowing[] {
  const own = new Set(definitions.map(({ name }) => simpleForm(name)));
  const others = (word: string): Entry | undefined => {
    const named = index.mentioned(word);
    const found = named.length > 0 ? named : index.mentioned(word.slice(word.lastIndexOf('__') + 2));
    const isOther = (entry: Entry): boolean => entry.upstream !== upstream;
    const isTogether = (entry: Entry): boolean => relations.areTogether(upstream, entry.upstream);
    return found.find((entry) => isOther(entry) && isTogether(entry)) ?? found.find(isOther);
  };
  return definitions.flatMap((scanned) =>
    isAsked({ upstream, ...scanned })
      ? mentionsOf(upstream, scanned, { others, own, relations }).slice(0, MAX_MENTIONS)
      : [],
  );
}

function mentionsOf(
  upstream: string,
  scanned: ScannedDefinition,
  {
    others,
    own,
    relations: { areTogether },
  }: {
    readonly others: (word: string) => Entry | undefined;
    readonly own: ReadonlySet<string>;
    readonly relations: Relations;
  },
): readonly Shadowing[] {
  const texts = textsOf(scanned.definition);
  // The scan of the definition names what is not read.
  if (typeof texts === 'string') return [];
  // What is a value or a name of the definition itself is its own.
  const values = new Set(texts.map(({ value }) => value));
  return texts.flatMap(({ pointer, value, isName }) => {
    if (isName) return [];
    const text = foldText(value).text;
    const mentioned = new Map<string, Entry>();
    for (const [word] of text.matchAll(IDENTIFIER)) {
      const other = others(word);
      if (other !== undefined && !values.has(word)) mentioned.set(word.toLowerCase(), other);
    }
    if (mentioned.size === 0) return [];
    const names = { name: scanned.name, parameters: new Set<string>() };
    return sentencesOf(text, names).flatMap((sentence) => {
      const at = sentence.tokens.findIndex(({ base }) => mentioned.has(base));
      const other = mentioned.get(sentence.tokens[at]?.base ?? '');
      const isOwnToo = other !== undefined && own.has(other.simple);
      if (other === undefined || !isDirectedAt(sentence, at, isOwnToo)) return [];
      const evidence = text.slice(sentence.tokens[0]?.start ?? 0, sentence.tokens.at(-1)?.end);
      const item = { upstream, kind: scanned.kind, name: scanned.name };
      const tier = areTogether(upstream, other.upstream) && !isOwnToo ? 'block' : 'review';
      const reason = `It gives orders about ${JSON.stringify(makeVisible(other.name))} of another upstream.`;
      return [found('order', tier, [item, other], pointer, evidence, reason)];
    });
  });
}

const NEAR = 8;
const { call, carry, change, disparage, every, must, negation, order, other, override } = CLASS;

/** Whether the words around a name say what is to be done with it, or that it must not be used. */
function isOrderAbout({ tokens }: Sentence, at: number): boolean {
  const near = tokens.slice(Math.max(0, at - NEAR), at + NEAR);
  const has = (mask: number): boolean => near.some((token) => (token.mask & mask) !== 0 && (token.mask & call) === 0);
  const isCalled = near.some(({ mask }) => (mask & call) !== 0);
  if (has(disparage | override) || has(must)) return true;
  if (has(negation | other) && isCalled) return true;
  return has(every | order) && has(change | carry);
}

/** Of a name that the server also has itself only what is said against it counts. */
function isDirectedAt(sentence: Sentence, at: number, isOwnToo: boolean): boolean {
  return isAgainst(sentence, at) || (!isOwnToo && isOrderAbout(sentence, at));
}

const IS_INSTEAD_OF = /^(?:instead|rather|avoid|stop|cease)$/;
const IS_OVER = /^(?:deprecated|replaced?|superseded?|obsolete|retired?)$/;
const IS_BY = /^(?:with|via|through|by|using)$/;

/** Whether the words around a name say that it must not be used, or that another takes its place. */
function isAgainst({ tokens }: Sentence, at: number): boolean {
  const before = tokens.slice(Math.max(0, at - 4), at);
  const after = tokens.slice(at + 1, at + 4);
  const isRefused = ({ mask, isDenied }: Token): boolean => isDenied === true && (mask & call) !== 0;
  return (
    before.some((token) => IS_INSTEAD_OF.test(token.base) || isRefused(token)) ||
    after.some((token) => IS_OVER.test(token.base) || (token.mask & disparage) !== 0) ||
    isRefusedBehind(tokens, at) ||
    isPassedBy(tokens, at)
  );
}

/** Whether the words behind a name refuse it: `must not be used`. */
function isRefusedBehind(tokens: readonly Token[], at: number): boolean {
  const denied = tokens.slice(at + 1, at + 4).findIndex(({ mask }) => (mask & negation) !== 0);
  const called = tokens.slice(at + denied + 2, at + denied + 5);
  return denied >= 0 && called.some(({ base, mask }) => base === 'used' || (mask & call) !== 0);
}

/** Whether another is to be called instead, or nothing is to be given to it. */
function isPassedBy(tokens: readonly Token[], at: number): boolean {
  const called = tokens.findIndex(({ mask }, index) => index > at && (mask & call) !== 0);
  const isInstead = called > 0 && tokens.slice(called + 1).some(({ base }) => base === 'instead');
  if (isInstead || !IS_BY.test(tokens[at - 1]?.base ?? '')) return isInstead;
  return tokens.slice(Math.max(0, at - 6), at).some(({ isDenied }) => isDenied === true);
}

/** What a name has more than that of a tool that it outdoes. */
const MERIT =
  /(?<![a-z])(?:enhanced|improved|better|best|pro|plus|premium|ultimate|super|advanced|secured?|safer?|trusted|preferred|official|new|next|faster|smart|v\d{1,2})(?![a-z])/;

/** Tools that have themselves chosen in place of one of another upstream. */
function choicesIn(
  { upstream, definitions }: UpstreamDefinitions,
  { index, relations, isAsked }: Comparison,
): readonly Shadowing[] {
  const isRival = (other: Entry): boolean =>
    other.upstream !== upstream &&
    !relations.areDeclared(upstream, other.upstream) &&
    (relations.areTogether(upstream, other.upstream) || relations.haveCallers(upstream, other.upstream));
  return definitions.flatMap((scanned) => {
    const item = { upstream, kind: scanned.kind, name: scanned.name };
    if (scanned.kind !== 'tool' || !isAsked(item)) return [];
    const outdone = outdoneBy(scanned, index).find(isRival);
    if (outdone !== undefined) {
      const reason = 'Its name is that of a tool of another upstream with praise added.';
      return [found('purpose', 'review', [item, outdone], '/name', scanned.name, reason)];
    }
    const rivals = rivalsOf(scanned, index, isRival);
    const evidence = rivals.next().done === true ? undefined : choiceOf(scanned);
    const rival = evidence === undefined ? undefined : rivalOf(scanned, index, isRival);
    if (rival === undefined || evidence === undefined) return [];
    const reason = 'It has itself chosen for what a tool of another upstream is for.';
    return [found('purpose', 'review', [item, rival], '/description', evidence, reason)];
  });
}

/** The tools whose name is this one without its praise: `store_note` for `store_note_enhanced`. */
function outdoneBy({ name }: ScannedDefinition, index: ShadowingIndex): readonly Entry[] {
  const spelt = splitName(name);
  const rest = spelt.replace(MERIT, ' ').replace(/ +/g, ' ').trim();
  if (rest === spelt || rest.length < MIN_MENTIONED) return [];
  const simple = simpleForm(rest);
  const written = [rest.replaceAll(' ', '_'), rest.replaceAll(' ', '-'), simple];
  return written
    .flatMap((one) => lookForms('tool', one))
    .flatMap((form) => index.sharing(form).entries)
    .filter((other) => other.simple === simple);
}

/** The sentence by which a tool has itself chosen. */
function choiceOf({ name, definition }: ScannedDefinition): string | undefined {
  if (!isObject(definition)) return undefined;
  const { title, description } = definition;
  for (const text of [description, title]) {
    if (typeof text !== 'string') continue;
    const read = foldText(text.slice(0, MAX_TEXT)).text;
    const sentence = sentencesOf(read, { name, parameters: new Set() }).find(isChoice);
    if (sentence === undefined) continue;
    return read.slice(sentence.tokens[0]?.start ?? 0, sentence.tokens.at(-1)?.end);
  }
  return undefined;
}

function isChoice(sentence: Sentence): boolean {
  if (findPraise(sentence).length > 0) return true;
  return findDemands(sentence).some(({ kind, tier }) => kind === 'other-tool' && tier === 'review');
}

/** The tools of other upstreams that have a purpose in common with one, once for each that they have. */
function* rivalsOf(
  scanned: ScannedDefinition,
  index: ShadowingIndex,
  isRival: (other: Entry) => boolean,
): Generator<Entry> {
  for (const purpose of purposesOf(scanned))
    for (const other of index.serving(purpose).slice(-MAX_VISITED)) if (isRival(other)) yield other;
}

/** The tool of another upstream that has most purposes in common with one. */
function rivalOf(
  scanned: ScannedDefinition,
  index: ShadowingIndex,
  isRival: (other: Entry) => boolean,
): Entry | undefined {
  const counts = new Map<Entry, number>();
  for (const other of rivalsOf(scanned, index, isRival)) counts.set(other, (counts.get(other) ?? 0) + 1);
  const [rival] = [...counts].sort(([, one], [, other]) => other - one);
  return rival?.[0];
}

/** That two definitions may stand side by side, who answers for it, and until when. */
export type ShadowingException = {
  /** `upstream/name` of both. */
  readonly items: readonly string[];
  readonly owner: string;
  /** The last day on which it holds, as in RFC 3339. */
  readonly until: string;
};

/** The exceptions that hold on the given day, as in RFC 3339. */
export function exceptionsOn(exceptions: readonly ShadowingException[], today: string): readonly ShadowingException[] {
  return exceptions.filter(({ until }) => until >= today);
}

function isExcepted(items: readonly UpstreamItem[], exceptions: readonly ShadowingException[]): boolean {
  if (exceptions.length === 0) return false;
  const names = items.map(({ upstream, name }) => `${upstream}/${name}`);
  return exceptions.some((exception) => names.every((name) => exception.items.includes(name)));
}

/** The findings that no exception allows. What an upstream has in common with another is looked at by definition. */
function withoutExceptions(
  findings: readonly Shadowing[],
  exceptions: readonly ShadowingException[],
): readonly Shadowing[] {
  return findings.filter(({ covers, items }) => covers !== undefined || !isExcepted(items, exceptions));
}

/** The definitions of one upstream beside those of the others, and what is allowed. Plain data. */
export type ShadowingInput = {
  readonly own: UpstreamDefinitions;
  /** Those of `own` that are asked about. */
  readonly asked: readonly Pick<UpstreamItem, 'kind' | 'name'>[];
  readonly exceptions: readonly ShadowingException[];
  /** As in RFC 3339, in UTC. */
  readonly today: string;
  readonly deployment: Deployment;
};

const ID_DIGITS = 8;

/** Which of the definitions pass for those of other upstreams, or give orders about them. */
export function findShadowingOf(
  given: ShadowingInput & { readonly others: readonly UpstreamDefinitions[] },
): readonly DefinitionFinding[] {
  return findShadowingIn(createShadowingIndex(given.others), given);
}

/** As {@link findShadowingOf}. The index holds the other upstreams, and then also the own one. */
export function findShadowingIn(index: ShadowingIndex, given: ShadowingInput): readonly DefinitionFinding[] {
  const { own, deployment, today } = given;
  const { upstream } = own;
  const asked = new Set(given.asked.map(({ kind, name }) => itemKeyOf({ upstream, kind, name })));
  if (asked.size === 0) return [];
  const isAsked = (item: UpstreamItem): boolean => asked.has(itemKeyOf(item));
  const exceptions = exceptionsOn(given.exceptions, today);
  const comparison = { index, relations: relationsOf(deployment), isAsked, exceptions };
  const findings = [
    ...likenesses(upstream, index.set(own), comparison),
    ...withoutExceptions(mentionsIn(own, comparison), exceptions),
    ...withoutExceptions(choicesIn(own, comparison), exceptions),
  ];
  return withoutRepetitions(findings).flatMap((finding) => {
    if (finding.covers !== undefined) return [toUpstreamFinding(finding)];
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
  tier,
  pointer,
  evidence,
  reason: what,
}: Shadowing & { readonly item: UpstreamItem; readonly other: UpstreamItem }): DefinitionFinding {
  const { kind, name } = item;
  const reason = `${what} The other is ${JSON.stringify(escapeForTerminal(`${other.upstream}/${other.name}`))}.`;
  const id = `shadowing-${shortHash([item, other, reason, evidence])}`;
  return { id, kind: 'shadowing', tier, item: { kind, name }, pointer, evidence, reason };
}

/** A finding about the whole upstream. Its id holds for exactly these definitions. */
function toUpstreamFinding(finding: Shadowing): DefinitionFinding {
  const { how, tier, items, covers = [], evidence, reason } = finding;
  const [{ upstream }] = items;
  // An equal name stays one when either definition changes.
  const subjects = covers.map(({ kind, name, digest }) => (how === 'names' ? `${kind} ${name}` : digest));
  const id = (how === 'names' ? SAME_NAMES : SAME_SERVER) + shortHash([upstream, subjects, reason]);
  const item = { kind: 'upstream', name: upstream } as const;
  const covered = covers.map(({ kind, name }) => ({ kind, name }));
  return { id, kind: 'shadowing', tier, item, covers: covered, pointer: '', evidence, reason };
}

const SAME_SERVER = 'same-server-';
const SAME_NAMES = 'same-names-';

/** Whether an id is that of a finding about a whole upstream, which may be accepted for all of its definitions. */
export function isAboutUpstream(id: string): boolean {
  return id.startsWith(SAME_SERVER) || id.startsWith(SAME_NAMES);
}

function shortHash(value: Json): string {
  return sha256Hex(JSON.stringify(value)).slice(0, ID_DIGITS);
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

function collectParameters(schema: Json | undefined, path: string, depth: number, found: Set<string>): void {
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
export function findConfusableNames(backends: readonly BackendNames[]): readonly (readonly BackendName[])[] {
  const all = backends.flatMap(({ names }, backend) => Array.from(names, (name) => ({ backend, name })));
  const byConfusableForm = groupBy(all, ({ backend, name }) =>
    confusableForm((backends[backend]?.prefix ?? '') + name),
  );
  return [...byConfusableForm.values()].filter(([first, ...others]) =>
    others.some(({ backend }) => backend !== first.backend),
  );
}
