// The first pass over one string: strips what is invisible, removes secrets and personal data, makes active
// content inert, and notes cues of injection, as the profile says. Never decides about the message.

import type { InspectionProfile, PiiKind } from '../../config/settings.js';
import { formatsIn } from '../prefilter/anchors.js';
import { isSurelyClean } from '../prefilter/prefilter.js';
import { findActiveContent, type Kept, neutralize, type Reading } from './active-content.js';
import { findEncodedRuns } from './encoded-runs.js';
import { findCode } from './markdown-code.js';
import { decodeView, foldView, originalSpan, type View } from './normalized-text.js';
import { findPersonal, findSsns, isCardNumber, isSsnName } from './pii.js';
import { findInjectionCues } from './prompt-injection.js';
import { findSecrets, type Hit, isSecretName, isSecretNumber } from './secrets.js';
import { stripInvisible, stripTerminalSequences } from './unicode.js';
import {
  findOwn,
  isExposedIn,
  OWN_CREDENTIAL,
  type OwnCredentials,
} from './upstream-credentials.js';

// Whether a JSON number is a card, a social security number or a secret: what was a string before someone
// forgot the quotes. Judged by its digits and the member name that it stands behind.

const MIN_DIGITS = 8;

/** The kind of a number literal that is to be removed; undefined for every other number. */
export function numberKind(
  literal: string,
  name: string | undefined,
  wanted: Wanted,
): string | undefined {
  if (findOwn(literal, wanted.own).length > 0) return OWN_CREDENTIAL;
  const digits = digitsOf(literal);
  if (digits === undefined || digits.length < MIN_DIGITS) return undefined;
  if (wanted.pii.includes('card') && isCardNumber(digits)) return 'card';
  if (wanted.pii.includes('ssn') && findSsns(digits, name).length > 0) return 'ssn';
  return wanted.secrets && isSecretNumber(digits, name) ? 'secret' : undefined;
}

/** The digits of a whole number, also where it is written with a point or an exponent. */
function digitsOf(literal: string): string | undefined {
  if (/^-?\d+$/.test(literal)) return literal.replace('-', '');
  const value = Math.abs(Number(literal));
  return Number.isInteger(value) && value < 1e19 ? BigInt(value).toString() : undefined;
}

// Finds what is to be removed from one text: secrets and personal data as written, as a reader takes them,
// and inside encoded runs, to a stated depth. Answers spans of the text as written; changes nothing.

/** Layers of escapes, percent triplets and references, and of base64 and hex, that are read. */
export const DECODING_DEPTH = 2;

/** What is looked for. */
export type Wanted = {
  readonly secrets: boolean;
  readonly pii: readonly PiiKind[];
  /** Credentials of the gateway itself, whatever else is looked for. */
  readonly own?: OwnCredentials | undefined;
};

/**
 * Spans to be removed, ascending, not overlapping. `name` is the member name that the text stands behind.
 * An encoded run that hides something is one span.
 */
export function findSensitive(text: string, wanted: Wanted, name?: string): readonly Hit[] {
  const hits: Hit[] = [];
  for (const view of viewsOf(text)) {
    for (const hit of findPlain(view.text, wanted, name)) {
      hits.push({ kind: hit.kind, ...originalSpan(view, hit.start, hit.end) });
    }
    for (const run of findEncodedRuns(view.text)) {
      const kind = kindWithin(run.decoded, wanted, DECODING_DEPTH - 1);
      if (kind !== undefined) hits.push({ kind, ...originalSpan(view, run.start, run.end) });
    }
  }
  return hits.length < 2 ? hits : mergeHits(hits);
}

/** The text folded, then with its escapes read once and again; views that add nothing are left out. */
function viewsOf(text: string): readonly View[] {
  const views: View[] = [foldView(text)];
  for (let depth = 0; depth < DECODING_DEPTH; depth++) {
    const last = views.at(-1);
    if (last === undefined) break;
    const next = decodeView(last);
    if (next === last) break;
    views.push(next);
  }
  return views;
}

function findPlain(text: string, wanted: Wanted, name: string | undefined): readonly Hit[] {
  const secrets = wanted.secrets ? findSecrets(text, name, formatsIn(text)) : [];
  if (wanted.own !== undefined) secrets.push(...findOwn(text, wanted.own));
  if (wanted.pii.length === 0) return secrets;
  return secrets.concat(findPersonal(text, wanted.pii, name));
}

function kindWithin(text: string, wanted: Wanted, depth: number): string | undefined {
  for (const view of viewsOf(text)) {
    const [hit] = findPlain(view.text, wanted, undefined);
    if (hit !== undefined) return hit.kind;
    if (depth === 0) continue;
    for (const run of findEncodedRuns(view.text)) {
      const kind = kindWithin(run.decoded, wanted, depth - 1);
      if (kind !== undefined) return kind;
    }
  }
  return undefined;
}

/** Ascending and joined where they overlap; the kind of the first, of equals the longest. */
function mergeHits(hits: Hit[]): readonly Hit[] {
  hits.sort((one, other) => one.start - other.start || other.end - one.end);
  const merged: Hit[] = [];
  for (const hit of hits) {
    const last = merged.at(-1);
    if (last === undefined || hit.start >= last.end) merged.push(hit);
    else if (hit.end > last.end) merged[merged.length - 1] = { ...last, end: hit.end };
  }
  return merged;
}

/** What one string showed. `isBlocked`: something of a kind that withholds the whole message. */
type Sanitized = {
  readonly text: string;
  readonly notes: readonly Note[];
  readonly isBlocked: boolean;
};

/** A detector and what was done; never what was found. */
export type Note = {
  readonly detector: string;
  readonly action: 'redact' | 'neutralize' | 'strip' | 'withhold' | 'flag';
  readonly count: number;
};

/** What the profile says of results, and the gateway's own credentials, which no profile lets pass. */
export type ResultRules = InspectionProfile['result'] & {
  readonly own?: OwnCredentials | undefined;
};

const PERSONAL_KINDS: ReadonlySet<string> = new Set(['card', 'iban', 'ssn']);

/** What the rules look for in a text: secrets and kinds of personal data, whatever is done with them. */
export function wantedBy(rules: ResultRules): Wanted {
  return {
    secrets: rules.secrets !== 'off',
    pii: rules.pii.action === 'off' ? [] : rules.pii.kinds,
    own: rules.own,
  };
}

/** What stands where something of a kind was removed (docs/contract.md §6). */
export function placeholder(kind: string): string {
  return `[redacted:${kind}]`;
}

/** Where a string stands: the member name before it, and how it may be rendered. */
type LeafContext = { readonly name: string | undefined; readonly reading: Reading };

/** The first pass, as inspect.ts takes it. */
export type SanitizeText = (text: string, rules: ResultRules, context: LeafContext) => Sanitized;

const NOTHING: readonly Note[] = [];

/** Runs the first pass over one string. Linear; a string that is surely clean is only looked at once. */
export function sanitizeText(text: string, rules: ResultRules, context: LeafContext): Sanitized {
  const { name } = context;
  const isNamed = name !== undefined && (isSecretName(name) || isSsnName(name));
  if (!isNamed && isSurelyClean(text) && !isExposedIn(text, rules.own))
    return { text, notes: NOTHING, isBlocked: false };
  const notes: Note[] = [];
  const cues = rules.injection === 'off' ? [] : findInjectionCues(text);
  for (const kind of cues) {
    notes.push({
      detector: `injection:${kind}`,
      action: flagOr(rules.injection === 'block' ? 'block' : 'flag'),
      count: 1,
    });
  }
  const seen = stripUnseen(text, rules, notes);
  const redacted = redactText(seen, rules, notes, name);
  const inert = calm(redacted, rules, context.reading, notes);
  return { text: inert, notes, isBlocked: notes.some((note) => note.action === 'withhold') };
}

function flagOr(rule: 'flag' | 'block'): 'flag' | 'withhold' {
  return rule === 'block' ? 'withhold' : 'flag';
}

function stripUnseen(text: string, rules: ResultRules, notes: Note[]): string {
  const calmed = stripTerminalSequences(text);
  if (calmed.count > 0) {
    const action = rules.activeContent === 'block' ? 'withhold' : 'strip';
    notes.push({ detector: 'terminal-escape', action, count: calmed.count });
  }
  if (rules.invisible === 'off') return calmed.text;
  const stripped = stripInvisible(calmed.text);
  if (stripped.count === 0) return calmed.text;
  const isStripped = rules.invisible === 'strip';
  notes.push({
    detector: 'invisible',
    action: isStripped ? 'strip' : flagOr(rules.invisible === 'block' ? 'block' : 'flag'),
    count: stripped.count,
  });
  return isStripped ? stripped.text : calmed.text;
}

/** What one removal brings to light, the next round finds; the second check judges what is left. */
const MAX_ROUNDS = 8;

/** Removes what the rules name; notes what it was. */
export function redactText(
  text: string,
  rules: ResultRules,
  notes: Note[],
  name: string | undefined,
): string {
  const wanted = wantedBy(rules);
  let kept = text;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const hits = findSensitive(kept, wanted, name);
    // Flags are for what was written, not for what a removal made of it.
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
  log: { readonly notes: Note[]; readonly isFirst: boolean },
): string {
  let kept = '';
  let at = 0;
  for (const hit of hits) {
    const action = actionFor(hit, rules);
    if (log.isFirst || action !== 'flag') {
      log.notes.push({ detector: detectorOf(hit.kind), action, count: 1 });
    }
    if (action === 'flag') continue;
    kept += text.slice(at, hit.start) + placeholder(hit.kind);
    at = hit.end;
  }
  return kept + text.slice(at);
}

/** What the rules say about a hit. */
export function actionFor(hit: Hit, rules: ResultRules): 'redact' | 'withhold' | 'flag' {
  const rule = PERSONAL_KINDS.has(hit.kind) ? rules.pii.action : rules.secrets;
  if (hit.kind === OWN_CREDENTIAL) return rule === 'block' ? 'withhold' : 'redact';
  if (rule === 'block') return 'withhold';
  return rule === 'redact' ? 'redact' : 'flag';
}

/** The name of a detector in findings and metrics. */
export function detectorOf(kind: string): string {
  return PERSONAL_KINDS.has(kind) ? `pii:${kind}` : `secret:${kind}`;
}

function calm(text: string, rules: ResultRules, reading: Reading, notes: Note[]): string {
  const { activeContent } = rules;
  if (activeContent === 'off') return text;
  if (activeContent === 'neutralize') {
    const inert = neutralize(text, reading, keptBy(reading));
    for (const { kind } of inert.found) {
      notes.push({ detector: `active:${kind}`, action: 'neutralize', count: 1 });
    }
    return inert.text;
  }
  for (const { kind } of findActiveContent(text, reading, keptBy(reading)(text))) {
    notes.push({ detector: `active:${kind}`, action: flagOr(activeContent), count: 1 });
  }
  return text;
}

/** Only Markdown has code: nobody knows how a string of structured content is rendered. */
function keptBy(reading: Reading): (text: string) => readonly Kept[] {
  return reading === 'markdown' ? findCode : () => [];
}
