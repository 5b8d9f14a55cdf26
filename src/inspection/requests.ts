// Inspects the content of a request before it is forwarded: no secret where the profile blocks secrets, and never
// the caller's own token in any encoding, and no mark of a redaction where it would overwrite what was redacted. It
// changes nothing; it clears or refuses.
// Source: MCP authorization (token passthrough is forbidden); docs/reference/detectors.md, inspection profiles.

import type { Finding } from '../policy/record.js';
import { isObject, type Json } from '../protocol/jsonrpc.js';
import { findEncodedRuns, readForms } from './detectors/decoded-text.js';
import { isLinkKind } from './detectors/links.js';
import { isSecretNumber, mayNameSecret } from './detectors/secrets.js';
import { detectorOf, findSensitive } from './detectors/text-sanitizer.js';
import { nearestName } from './exempt-members.js';
import { createFindingLog, type FindingLog, type Profile } from './findings.js';
import { isSurelyClean, isSurelyCleanJson } from './prefilter/prefilter.js';
import { countMarks, MARK_START, type MarkKeys } from './redaction-marks.js';

export type GuardInput = {
  /** What is inspected for secrets: the params of the request. */
  readonly value: Json;
  /** The whole decoded body, because the token may occur anywhere in it. */
  readonly text: string;
  readonly profile: Profile;
  readonly presentedToken?: string | undefined;
  /** What the marks of this gateway are recognized by; absent: none is looked for. */
  readonly marks?: MarkKeys | undefined;
};

export type GuardOutcome =
  | { readonly kind: 'clear'; readonly findings: readonly Finding[] }
  | {
      readonly kind: 'refuse';
      /** Inspection never returns `internal` or `overloaded`; they mean that nothing was inspected. */
      readonly reason: 'arguments-content' | 'arguments-redacted' | 'internal' | 'overloaded';
      readonly findings: readonly Finding[];
    };

type Steps = readonly (string | number)[];
type Guard = {
  readonly log: FindingLog;
  readonly rules: Profile['request'];
  readonly marks: MarkKeys | undefined;
  refusal: 'arguments-content' | 'arguments-redacted' | undefined;
};

/** Inspects the content of a request. An error in a detector is a refusal. */
export function guardArguments(input: GuardInput): GuardOutcome {
  return guardClean(input) ?? guardFully(input);
}

/** The outcome where the prefilter suffices, or undefined where the body needs full inspection. Never throws. */
export function guardClean(input: GuardInput): GuardOutcome | undefined {
  try {
    if (!isSurelyCleanJson(input.text) || mayHoldMarks(input)) return undefined;
    const needle = needleOf(input);
    if (needle === undefined || !input.text.includes(needle)) return CLEAR;
    return refuseToken(createFindingLog('to-upstream'));
  } catch {
    return refuseAfterError(createFindingLog('to-upstream'));
  }
}

/** Full inspection of a request, which may take long. Never throws. */
export function guardFully(input: GuardInput): GuardOutcome {
  const log = createFindingLog('to-upstream');
  try {
    if (containsToken(input)) return refuseToken(log);
    const rules = input.profile.request;
    const marks = rules.marks === 'off' ? undefined : input.marks;
    if (rules.secrets === 'off' && rules.links === 'off' && marks === undefined) return CLEAR;
    const guard: Guard = { log, rules, marks, refusal: undefined };
    search(input.value, [], guard);
    const findings = log.list();
    if (guard.refusal !== undefined) return { kind: 'refuse', reason: guard.refusal, findings };
    return { kind: 'clear', findings };
  } catch {
    return refuseAfterError(log);
  }
}

const CLEAR: GuardOutcome = { kind: 'clear', findings: Object.freeze([]) };

function refuseToken(log: FindingLog): GuardOutcome {
  log.add([], { detector: 'presented-token', action: 'block', count: 1 });
  return { kind: 'refuse', reason: 'arguments-content', findings: log.list() };
}

function refuseAfterError(log: FindingLog): GuardOutcome {
  log.add([], { detector: 'guard-fault', action: 'block', count: 1 });
  return { kind: 'refuse', reason: 'arguments-content', findings: log.list() };
}

/** Shorter strings are not bearer tokens and would match by chance. */
const MIN_TOKEN_CHARS = 16;

/** The part of the token to search for. The signature of a JWT is left out, because it can be respelled. */
function needleOf({ presentedToken: token }: Pick<GuardInput, 'presentedToken'>): string | undefined {
  if (token === undefined || token.length < MIN_TOKEN_CHARS) return undefined;
  const dot = token.lastIndexOf('.');
  return dot >= MIN_TOKEN_CHARS ? token.slice(0, dot) : token;
}

/** Whether the caller's token occurs in texts: as sent, escaped, encoded, or spread over several. */
export function containsPresentedToken(texts: readonly string[], presentedToken: string | undefined): boolean {
  const needle = needleOf({ presentedToken });
  if (needle === undefined) return false;
  const isHeld = (text: string): boolean => text.length >= MIN_TOKEN_CHARS && containsDecoded(text, needle, 2);
  return texts.join('').includes(needle) || texts.some(isHeld);
}

/** Whether the token occurs in the body: as sent, escaped or encoded. */
function containsToken(input: GuardInput): boolean {
  const needle = needleOf(input);
  if (needle === undefined) return false;
  return input.text.includes(needle) || stringsContain(input.value, needle);
}

function stringsContain(value: Json, needle: string): boolean {
  if (typeof value === 'string') return containsDecoded(value, needle, 2);
  if (Array.isArray(value)) {
    return value.some((one: Json) => stringsContain(one, needle)) || joined(value).includes(needle);
  }
  if (!isObject(value)) return false;
  for (const [name, one] of Object.entries(value)) {
    if (containsDecoded(name, needle, 1) || stringsContain(one, needle)) return true;
  }
  return joined(Object.values(value)).includes(needle);
}

function joined(values: readonly Json[]): string {
  return values.filter((one) => typeof one === 'string').join('');
}

function containsDecoded(text: string, needle: string, depth: number): boolean {
  for (const normalized of readForms(text)) {
    if (normalized.text.includes(needle)) return true;
    if (depth === 0) continue;
    for (const run of findEncodedRuns(normalized.text)) {
      if (containsDecoded(run.decoded, needle, depth - 1)) return true;
    }
  }
  return false;
}

const WANTED = { secrets: true, pii: [], links: true } as const;

function search(value: Json, steps: Steps, guard: Guard): void {
  if (typeof value === 'string') searchText(value, steps, guard);
  else if (typeof value === 'number') searchNumber(value, steps, guard);
  else if (Array.isArray(value)) {
    for (const [index, one] of value.entries()) search(one, [...steps, index], guard);
  } else if (isObject(value)) {
    for (const [name, one] of Object.entries(value)) {
      searchText(name, [...steps, name], guard);
      search(one, [...steps, name], guard);
    }
  }
}

function searchText(text: string, steps: Steps, guard: Guard): void {
  searchMarks(text, steps, guard);
  const name = nearestName(steps);
  if (isSurelyClean(text) && (name === undefined || !mayNameSecret(name))) return;
  for (const { kind } of findSensitive(text, WANTED, name)) noteFound(guard, steps, kind);
}

function searchNumber(value: number, steps: Steps, guard: Guard): void {
  if (isSecretNumber(String(value), nearestName(steps))) noteFound(guard, steps, 'secret');
}

function noteFound(guard: Guard, steps: Steps, kind: string): void {
  const { links = 'flag', secrets } = guard.rules;
  const action = isLinkKind(kind) ? links : secrets;
  if (action === 'off') return;
  guard.log.add(steps, { detector: detectorOf(kind), action, count: 1 });
  if (action === 'block') guard.refusal = 'arguments-content';
}

function mayHoldMarks({ text, marks, profile }: GuardInput): boolean {
  return marks !== undefined && profile.request.marks !== 'off' && text.includes(MARK_START);
}

/** A mark says that what stands here was altered on its way to the client, and would now overwrite the original. */
function searchMarks(text: string, steps: Steps, guard: Guard): void {
  const count = guard.marks === undefined ? 0 : countMarks(text, guard.marks);
  if (count === 0) return;
  const action = guard.rules.marks === 'block' ? 'block' : 'flag';
  guard.log.add(steps, { detector: 'redaction-mark', action, count });
  if (action === 'block') guard.refusal ??= 'arguments-redacted';
}
