// Sanitizes one string: strips invisible characters, redacts secrets and personal data, neutralizes active
// content and reports cues of injected instructions, as the profile requires. By default a cue is flagged and never
// removed: it is evidence, not proof. Never decides about the message. The measured rates are in
// docs/reference/detectors.md.

import type { InspectionProfile, PiiKind } from '../../config/settings.js';
import type { Span } from '../../text/span.js';
import { cuesIn, formatsIn } from '../prefilter/anchors.js';
import { isSurelyClean } from '../prefilter/prefilter.js';
import { type MarkKeys, redactionMark } from '../redaction-marks.js';
import { findActiveContent, neutralize, type TextFormat } from './active-content.js';
import {
  decodeEscapes,
  findEncodedRuns,
  foldText,
  mayHoldTerminalSequence,
  type NormalizedText,
  originalSpan,
  readForms,
} from './decoded-text.js';
import { dropMarks, dropMarkup } from './dropped-markup.js';
import type { Hit } from './hit.js';
import { STRUCTURES } from './injection-phrases.js';
import { findAddressUsers, isLinkKind } from './links.js';
import { findMarkdownCode } from './markdown-code.js';
import { findPersonal, findSsns, isCardName, isCardNumber, isSsnName } from './pii.js';
import { findFormed, findSecrets, isSecretNumber, mayNameSecret } from './secrets.js';
import {
  countOddLineEnds,
  hiddenText,
  REVERSED,
  skeletonOf,
  stripInvisible,
  stripTerminalSequences,
} from './unicode.js';
import { findSentCredentials, isExposedIn, OWN_CREDENTIAL, type SentCredentials } from './upstream-credentials.js';

const MIN_DIGITS = 8;

/**
 * The kind of secret or personal data in a JSON number, such as a card number without quotes, by its digits and
 * the member name before it; undefined for any other number. Without a name that says so, a number is not a card.
 */
export function numberKind(literal: string, name: string | undefined, wantedKinds: WantedKinds): string | undefined {
  if (findSentCredentials(literal, wantedKinds.own).length > 0) return OWN_CREDENTIAL;
  const digits = digitsOf(literal);
  if (digits === undefined || digits.length < MIN_DIGITS) return undefined;
  if (wantedKinds.pii.includes('card') && isCardName(name ?? '') && isCardNumber(digits)) {
    return 'card';
  }
  if (wantedKinds.pii.includes('ssn') && findSsns(digits, name).length > 0) return 'ssn';
  return wantedKinds.secrets !== false && isSecretNumber(digits, name) ? 'secret' : undefined;
}

/** The digits of an integer, also where it is written with a decimal point or an exponent. */
function digitsOf(literal: string): string | undefined {
  if (/^-?\d+$/.test(literal)) return literal.replace('-', '');
  const value = Math.abs(Number(literal));
  return Number.isInteger(value) && value < 1e19 ? BigInt(value).toString() : undefined;
}

/** Layers of escapes, percent triplets and character references, and of base64 and hex, that are decoded. */
export const DECODING_DEPTH = 2;

/** What to look for. */
export type WantedKinds = {
  /** `formed`: those alone that their form shows, whatever name stands before them. */
  readonly secrets: boolean | 'formed';
  readonly pii: readonly PiiKind[];
  /** Whether user names in addresses are looked for. Signed links are found with the secrets. */
  readonly links?: boolean | undefined;
  /** The gateway's own credentials, which are looked for in addition to everything else. */
  readonly own?: SentCredentials | undefined;
};

/**
 * Finds secrets and personal data as written, decoded, and inside encoded runs. Returns spans of the original
 * text in ascending order without overlaps; an encoded run with a finding is one span. `name` is the member name
 * before it.
 */
export function findSensitive(text: string, wantedKinds: WantedKinds, name?: string): readonly Hit[] {
  const hits: Hit[] = [];
  for (const normalized of readForms(text)) {
    for (const { view, wanted } of shownForms(normalized, wantedKinds)) {
      for (const { kind, start, end } of findPlain(view.text, wanted, name))
        hits.push({ kind, ...originalSpan(view, start, end) });
    }
    for (const run of findEncodedRuns(normalized.text)) {
      const kind = kindWithin(run.decoded, wantedKinds, DECODING_DEPTH - 1);
      if (kind !== undefined) hits.push({ kind, ...originalSpan(normalized, run.start, run.end) });
    }
  }
  return hits.length < 2 ? hits : mergeHits(hits);
}

/**
 * A form and what renderers of HTML and Markdown show of it, with what is looked for in each. Marks and tags around a
 * part of a word may also be those of code or of a row of numbers, so that without these only what has a form of its own
 * is found.
 */
function* shownForms(
  form: NormalizedText,
  wanted: WantedKinds,
): Generator<{ readonly view: NormalizedText; readonly wanted: WantedKinds }> {
  yield { view: form, wanted };
  const bare = dropMarkup(form, 'empty');
  if (bare !== form) yield { view: bare, wanted };
  // The prefilter looks for no marks.
  const shown = dropMarkup(isSurelyClean(form.text) ? bare : dropMarks(bare), 'any');
  if (shown !== bare) yield { view: shown, wanted: formedKindsOf(wanted) };
}

function findPlain(text: string, wantedKinds: WantedKinds, name: string | undefined): readonly Hit[] {
  const { links, own, pii } = wantedKinds;
  // A spread of hundreds of thousands of hits would be too many arguments.
  return secretsIn(text, wantedKinds.secrets, name).concat(
    links === true ? findAddressUsers(text) : [],
    own === undefined ? [] : findSentCredentials(text, own),
    pii.length === 0 ? [] : findPersonal(text, pii, name),
  );
}

function secretsIn(text: string, wanted: WantedKinds['secrets'], name: string | undefined): Hit[] {
  if (wanted === false) return [];
  const formats = formatsIn(text);
  return wanted === 'formed' ? [...findFormed(text, formats)] : findSecrets(text, name, formats);
}

function kindIn(form: NormalizedText, wantedKinds: WantedKinds): string | undefined {
  for (const { view, wanted } of shownForms(form, wantedKinds)) {
    const [hit] = findPlain(view.text, wanted, undefined);
    if (hit !== undefined) return hit.kind;
  }
  return undefined;
}

function kindWithin(text: string, wantedKinds: WantedKinds, depth: number): string | undefined {
  for (const normalized of readForms(text)) {
    const shown = kindIn(normalized, wantedKinds);
    if (shown !== undefined) return shown;
    if (depth === 0) continue;
    for (const run of findEncodedRuns(normalized.text)) {
      const kind = kindWithin(run.decoded, wantedKinds, depth - 1);
      if (kind !== undefined) return kind;
    }
  }
  return undefined;
}

/**
 * Sorts hits and joins overlapping ones, keeping the kind of the first, or of the longest at the same start. A link is
 * no longer one where a secret is in it.
 */
function mergeHits(hits: readonly Hit[]): readonly Hit[] {
  const merged = mergeAlike(hits.filter(({ kind }) => !isLinkKind(kind)));
  const links = hits.filter(({ kind }) => isLinkKind(kind));
  if (links.length === 0) return merged;
  let next = 0;
  const apart = mergeAlike(links).filter(({ start, end }) => {
    while ((merged[next]?.end ?? end) <= start) next++;
    return (merged[next]?.start ?? end) >= end;
  });
  return merged.concat(apart).sort((one, other) => one.start - other.start);
}

function mergeAlike(hits: Hit[]): Hit[] {
  hits.sort((one, other) => one.start - other.start || other.end - one.end);
  const merged: Hit[] = [];
  for (const hit of hits) {
    const last = merged.at(-1);
    if (last === undefined || hit.start >= last.end) merged.push(hit);
    else if (hit.end > last.end) merged[merged.length - 1] = { ...last, end: hit.end };
  }
  return merged;
}

/** Blank lines that push text out of sight. */
const PUSHED = /(?:\n[ \t]{0,40}){24}[ \t]{0,40}\S/;

/**
 * The kinds of cues of injected instructions in a text, sorted and without duplicates; also those in full-width
 * letters, look-alikes, invisible and reversed characters, base64 and hex. A cue is evidence, not proof.
 */
export function findInjectionCues(text: string): readonly string[] {
  const kinds = new Set<string>();
  addCues(text, DECODING_DEPTH, kinds);
  return [...kinds].sort();
}

function addCues(text: string, depth: number, kinds: Set<string>): void {
  const hidden = hiddenText(text);
  if (hidden !== '') {
    kinds.add('hidden-characters');
    addPlainCues(hidden, kinds);
  }
  if (PUSHED.test(text)) kinds.add('pushed-text');
  for (const match of text.matchAll(REVERSED)) {
    addPlainCues([...(match[1] ?? '')].reverse().join(''), kinds);
  }
  const folded = foldText(text);
  const decoded = decodeEscapes(folded);
  addShownCues(folded, kinds);
  if (decoded !== folded) addShownCues(decoded, kinds);
  if (depth === 0) return;
  for (const run of findEncodedRuns(decoded.text)) addCues(run.decoded, depth - 1, kinds);
}

const MARKUP = /<[^<>]{1,256}>/g;

/** Cues in a form, in what a renderer of HTML shows of it, and between its tags. */
function addShownCues(form: NormalizedText, kinds: Set<string>): void {
  const spaced = form.text.replace(MARKUP, ' ');
  const shown = dropMarkup(form, 'any').text.replace(MARKUP, ' ');
  for (const text of new Set([form.text, spaced, shown])) addPlainCues(text, kinds);
}

function addPlainCues(text: string, kinds: Set<string>): void {
  const lower = skeletonOf(text).toLowerCase();
  for (const { class: kind, pattern } of STRUCTURES) if (pattern.test(lower)) kinds.add(kind);
  const cues = cuesIn(lower);
  if (cues.length === 0) return;
  const normalized = lower.replace(/[^a-z0-9]+/g, ' ');
  for (const { class: kind, phrase } of cues) if (phrase.test(normalized)) kinds.add(kind);
}

/** The result for one string. A note of the action `withhold` withholds the whole message. */
type Sanitized = { readonly text: string; readonly notes: readonly NoteFinding[] };

/** A detector and the action taken; never the content found. */
export type NoteFinding = {
  readonly detector: string;
  readonly action: 'redact' | 'neutralize' | 'strip' | 'withhold' | 'flag';
  readonly count: number;
};

/** The profile's rules for results, and the gateway's own credentials, which every profile removes. */
export type ResultRules = InspectionProfile['result'] & {
  readonly own?: SentCredentials | undefined;
  /** What tags the marks; absent: they have no tag. */
  readonly marks?: MarkKeys | undefined;
};

const PERSONAL_KINDS: ReadonlySet<string> = new Set(['card', 'iban', 'ssn']);

/** What the rules look for, whatever their actions are. */
export function wantedKindsOf(rules: ResultRules): WantedKinds {
  return {
    secrets: rules.secrets !== 'off',
    pii: rules.pii.action === 'off' ? [] : rules.pii.kinds,
    links: rules.links !== 'off',
    own: rules.own,
  };
}

/**
 * What is looked for across the values of a list or a structure: nobody shows them as one number, and a name in one
 * does not belong to the value in the next.
 */
export function formedKindsOf(wanted: WantedKinds): WantedKinds {
  return { ...wanted, pii: [], secrets: wanted.secrets === false ? false : 'formed' };
}

/** The member name before a string, and how the string may be rendered. */
type LeafContext = { readonly name: string | undefined; readonly reading: TextFormat };

/** The type of `sanitizeText`, for tests that replace it (responses.ts). */
export type SanitizeText = (text: string, rules: ResultRules, context: LeafContext) => Sanitized;

/** Sanitizes one string. Linear; a surely clean string is scanned only once. */
export function sanitizeText(text: string, rules: ResultRules, context: LeafContext): Sanitized {
  const { name } = context;
  const isNamed = name !== undefined && (mayNameSecret(name) || isSsnName(name));
  const lineEnds = rules.invisible === 'off' ? 0 : countOddLineEnds(text);
  const notes: NoteFinding[] = lineEnds === 0 ? [] : [{ detector: 'invisible', action: 'flag', count: lineEnds }];
  if (!isNamed && isSurelyClean(text) && !isExposedIn(text, rules.own)) return { text, notes };
  const edits: NoteFinding[] = [];
  const seen = stripInvisibleText(redactAcrossSequences(text, rules, edits, name), rules, edits);
  const redacted = redactText(seen, rules, edits, name);
  const inert = applyActiveContentRule(redacted, rules, context.reading, edits);
  return { text: inert, notes: [...notes, ...cueNotes(text, inert, rules), ...edits] };
}

/** What a removed terminal sequence would take a part of is redacted before: a model could complete the rest. */
function redactAcrossSequences(
  text: string,
  rules: ResultRules,
  edits: NoteFinding[],
  name: string | undefined,
): string {
  if (!mayHoldTerminalSequence(text)) return text;
  const notes: NoteFinding[] = [];
  const kept = redactText(text, rules, notes, name);
  // Flags are recorded for what is left.
  edits.push(...notes.filter(({ action }) => action !== 'flag'));
  return kept;
}

/** Cues in a text and in what edits leave of it: what stood before a word and hid it may have been redacted. */
function cueNotes(text: string, edited: string, { injection }: ResultRules): NoteFinding[] {
  if (injection === 'off') return [];
  const cues = new Set(findInjectionCues(text));
  if (edited !== text) for (const kind of findInjectionCues(edited)) cues.add(kind);
  const action = flagOr(injection);
  return [...cues].sort().map((kind) => ({ detector: `injection:${kind}`, action, count: 1 }));
}

function flagOr(rule: string): 'flag' | 'withhold' {
  return rule === 'block' ? 'withhold' : 'flag';
}

function stripInvisibleText(text: string, rules: ResultRules, notes: NoteFinding[]): string {
  const withoutSequences = stripTerminalSequences(text);
  if (withoutSequences.count > 0) {
    const action = terminalAction(rules);
    notes.push({ detector: 'terminal-escape', action, count: withoutSequences.count });
  }
  const seen = rules.kind === 'code' ? text : withoutSequences.text;
  if (rules.invisible === 'off') return seen;
  const stripped = stripInvisible(withoutSequences.text);
  const isStripped = rules.invisible === 'strip';
  if (isStripped && stripped.unusual > 0) {
    notes.push({ detector: 'invisible', action: 'flag', count: stripped.unusual });
  }
  const count = isStripped ? stripped.count : stripped.count + stripped.unusual;
  if (count === 0) return seen;
  const action = isStripped ? 'strip' : flagOr(rules.invisible);
  notes.push({ detector: 'invisible', action, count });
  return isStripped ? stripped.text : seen;
}

function terminalAction({ activeContent, kind }: ResultRules): 'withhold' | 'flag' | 'strip' {
  if (activeContent === 'block') return 'withhold';
  return kind === 'code' ? 'flag' : 'strip';
}

/** A removal may reveal something that the next round finds. The recheck inspects what remains. */
const MAX_ROUNDS = 8;

/** Redacts what the rules name and appends notes about it. */
export function redactText(text: string, rules: ResultRules, notes: NoteFinding[], name: string | undefined): string {
  const wantedKinds = wantedKindsOf(rules);
  let kept = text;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const hits = findSensitive(kept, wantedKinds, name);
    // Flags apply to the original text, not to what a removal made of it.
    const redacted = redactHits(kept, hits, rules, { notes, isFirst: round === 0 });
    if (redacted === kept) break;
    kept = redacted;
  }
  return kept;
}

function redactHits(
  text: string,
  hits: readonly Hit[],
  rules: ResultRules,
  log: { readonly notes: NoteFinding[]; readonly isFirst: boolean },
): string {
  let kept = '';
  let at = 0;
  for (const hit of hits) {
    const action = actionFor(hit, rules);
    if (log.isFirst || action !== 'flag') {
      log.notes.push({ detector: detectorOf(hit.kind), action, count: 1 });
    }
    if (action === 'flag') continue;
    kept += text.slice(at, hit.start) + redactionMark(hit.kind, rules.marks);
    at = hit.end;
  }
  return kept + text.slice(at);
}

function ruleFor(kind: string, rules: ResultRules): ResultRules['secrets'] {
  if (isLinkKind(kind)) return rules.links ?? 'flag';
  return PERSONAL_KINDS.has(kind) ? rules.pii.action : rules.secrets;
}

/** The action of the rules for a hit. */
export function actionFor(hit: Hit, rules: ResultRules): 'redact' | 'withhold' | 'flag' {
  const rule = ruleFor(hit.kind, rules);
  if (hit.kind === OWN_CREDENTIAL) return rule === 'block' ? 'withhold' : 'redact';
  if (rule === 'block') return 'withhold';
  return rule === 'redact' ? 'redact' : 'flag';
}

/** The name of a detector in findings and metrics. */
export function detectorOf(kind: string): string {
  if (isLinkKind(kind)) return `link:${kind}`;
  return PERSONAL_KINDS.has(kind) ? `pii:${kind}` : `secret:${kind}`;
}

function applyActiveContentRule(text: string, rules: ResultRules, reading: TextFormat, notes: NoteFinding[]): string {
  const { activeContent } = rules;
  if (activeContent === 'off') return text;
  const findCode = codeFinderFor(reading, rules.kind);
  const isChanged = activeContent === 'neutralize';
  const read = isChanged ? neutralize(text, findCode) : { ...findActiveContent(text, findCode(text)), text };
  const action = isChanged ? 'neutralize' : flagOr(activeContent);
  for (const { kind } of read.found) notes.push({ detector: `active:${kind}`, action, count: 1 });
  // What a reader does not see stays: its cues were looked for with those of the text around it.
  const { comments, hiddenElements } = read;
  if (comments > 0) notes.push({ detector: 'hidden:comment', action: 'flag', count: comments });
  if (hiddenElements > 0) {
    notes.push({ detector: 'hidden:element', action: 'flag', count: hiddenElements });
  }
  return read.text;
}

/**
 * Only Markdown has code; how a client renders a string of structured content is unknown, and what is shown whole as
 * markup has none that it may rely on.
 */
function codeFinderFor(reading: TextFormat, kind: ResultRules['kind']): (text: string) => readonly Span[] {
  return reading === 'markdown' && kind !== 'markup' ? findMarkdownCode : () => [];
}
