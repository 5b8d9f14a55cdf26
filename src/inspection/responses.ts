// Inspects one message of an upstream before it is forwarded to the client: unchanged to the byte, changed in
// single strings, or withheld. What an edit leaves is inspected again by the same definitions until nothing more is
// found, and an error withholds. Nothing leaves unless the prefilter or the sanitizer has read it as it leaves.

import { channel } from 'node:diagnostics_channel';
import type { CompiledSchema } from '../policy/definitions.js';
import type { Finding } from '../policy/record.js';
import { keepExactNumbers } from '../protocol/json/exact-numbers.js';
import { applyEdits, MAX_JSON_DEPTH, readJsonText, setMember, spanOf } from '../protocol/json/json.js';
import { isObject, type Json, type JsonObject } from '../protocol/jsonrpc.js';
import { LIST_MEMBERS } from '../protocol/methods.js';
import { mayHoldPayload } from './binary-content.js';
import { scriptSchemeColon } from './detectors/targets.js';
import { type SanitizeText, sanitizeText } from './detectors/text-sanitizer.js';
import { isExposedIn, type SentCredentials } from './detectors/upstream-credentials.js';
import { exemptIn, isFreeForm, valueAt } from './exempt-members.js';
import { createFindingLog, type FindingLog, type Profile, publicFindings } from './findings.js';
import { ICONS } from './icons.js';
import { headOf, SECRET_SEPARATORS, tailOf } from './joined-text.js';
import { withJoinedLists } from './listed-texts.js';
import { ADDRESSES, joinedTextsOf } from './message-map.js';
import { sanitizeMessage } from './message-sanitizer.js';
import { isSurelyClean, isSurelyCleanJson } from './prefilter/prefilter.js';
import type { MarkKeys } from './redaction-marks.js';
import { replaceInadmissible } from './schema-replacements.js';
import { type PlannedFields, redactFields } from './sensitive-fields.js';

/** Bounds of one inspection. A message beyond any of them is withheld. */
type InspectionCaps = {
  readonly maxDepth: number;
  readonly maxStrings: number;
  /** Characters given to detectors, media excluded. Bounds how long a message blocks the event loop. */
  readonly maxWork: number;
};

export const INSPECTION_CAPS: InspectionCaps = {
  maxDepth: MAX_JSON_DEPTH,
  maxStrings: 200_000,
  maxWork: 4 * 1024 * 1024,
};

const NO_FINDINGS: readonly Finding[] = Object.freeze([]);

export type InspectionInput = {
  /** The message as text, and the same text parsed strictly. */
  readonly text: string;
  readonly value: Json;
  readonly profile: Profile;
  /** The approved outputSchema of the called tool. */
  readonly output?: CompiledSchema | undefined;
  /** The end of the text sent so far in response to a request, unredacted: a secret may span messages. */
  readonly previousTail?: string | undefined;
  readonly caps?: InspectionCaps | undefined;
  /** Members that were reviewed byte for byte and pass unchanged, such as `/result/tools`. */
  readonly approved?: readonly string[] | undefined;
  /** The method of the request, where the message is a response. */
  readonly requestMethod?: string | undefined;
  /** Credentials shown to the upstream. They are removed from every member, whatever the profile. */
  readonly own?: SentCredentials | undefined;
  /** What tags the marks that stand in place of redacted content. */
  readonly marks?: MarkKeys | undefined;
  /** The sensitive fields of the called tool. They are redacted before anything else is looked for. */
  readonly sensitive?: PlannedFields | undefined;
};

/** `overloaded` means that too many long texts are already waiting; inspection itself never returns it. */
export type WithholdReason = 'result-content' | 'result-invalid' | 'result-too-large' | 'internal' | 'overloaded';

export type InspectionOutcome =
  /** The received bytes may be forwarded. Findings, if any, are flags. */
  | {
      readonly kind: 'clean';
      readonly findings: readonly Finding[];
      readonly previousTail: string;
    }
  | {
      readonly kind: 'changed';
      readonly text: string;
      readonly value: Json;
      readonly findings: readonly Finding[];
      readonly previousTail: string;
    }
  | {
      readonly kind: 'withhold';
      readonly reason: WithholdReason;
      readonly findings: readonly Finding[];
    };

/** The input of full inspection, without the schema: compiled code cannot be sent to another thread. */
export type FullInspectionInput = Omit<InspectionInput, 'output'>;

/** The outcome of full inspection as plain data; a changed text is not parsed yet. */
export type FullInspectionOutcome =
  | Exclude<InspectionOutcome, { readonly kind: 'changed' }>
  | Omit<Extract<InspectionOutcome, { readonly kind: 'changed' }>, 'value'>;

/**
 * The members of `_meta` that carry the findings shown to the caller, and the places that are tagged
 * (docs/reference/responses.md).
 */
export const FINDINGS_MEMBER = 'dev.sallyport/findings';
const TAINT_MEMBER = 'dev.sallyport/taint';

/** Inspects one message towards the client. Never throws: an error in an inspector withholds with `internal`. */
export function inspectMessage(input: InspectionInput, sanitize: SanitizeText = sanitizeText): InspectionOutcome {
  return inspectWithPrefilter(input) ?? completeInspection(input, inspectFully(input, sanitize));
}

/** The outcome of a message that violates its schema or needs no full inspection; otherwise undefined. */
export function inspectWithPrefilter(input: InspectionInput): InspectionOutcome | undefined {
  return checkOutput(input) ?? passIfClean(input);
}

/** The outcome of a message that violates its schema; otherwise undefined. */
export function checkOutput(
  input: Pick<InspectionInput, 'value' | 'text' | 'output'>,
): (InspectionOutcome & FullInspectionOutcome) | undefined {
  if (input.output === undefined) return undefined;
  try {
    return satisfiesSchema(input.value, input.text, input.output) ? undefined : withheld('result-invalid');
  } catch {
    return withheld('internal');
  }
}

/** Full inspection of a message, which may take long. Never throws. */
export function inspectFully(input: FullInspectionInput, sanitize: SanitizeText = sanitizeText): FullInspectionOutcome {
  if (input.sensitive !== undefined) return inspectRedacted(input, input.sensitive, sanitize);
  const log = createFindingLog('to-client', input.own);
  try {
    return inspect(input, sanitize, log);
  } catch {
    return withhold('internal', log);
  }
}

/** Redacts the sensitive fields, inspects what is left, and tags. */
function inspectRedacted(
  input: FullInspectionInput,
  planned: PlannedFields,
  sanitize: SanitizeText,
): FullInspectionOutcome {
  try {
    const redacted = redactFields(input.text, planned, input.caps ?? INSPECTION_CAPS);
    if (redacted === 'too-large') return withheld('result-too-large');
    const { text, tagged } = redacted;
    const value: Json = text === input.text ? input.value : JSON.parse(text);
    const rest = { ...input, text, value, sensitive: undefined };
    const outcome = passIfClean(rest) ?? inspectFully(rest, sanitize);
    const findings = [...redacted.findings, ...outcome.findings];
    if (outcome.kind === 'withhold') return { ...outcome, findings };
    const inspected = outcome.kind === 'changed' ? outcome.text : text;
    const shown = findings.length === 0 ? inspected : withFindings(inspected, findings);
    const taint: Json = { pointers: tagged, labels: planned.labels };
    const changed = tagged.length === 0 ? shown : withMeta(shown, TAINT_MEMBER, taint);
    // A result whose `_meta` is no object cannot be tagged.
    if (tagged.length > 0 && changed === shown) return { ...withheld('result-invalid'), findings };
    if (changed === input.text) return { ...outcome, findings };
    return { kind: 'changed', text: changed, findings, previousTail: outcome.previousTail };
  } catch {
    return withheld('internal');
  }
}

/** Completes the outcome of full inspection. A changed message must still satisfy its schema. */
export function completeInspection(
  { output, value: original }: Pick<InspectionInput, 'output' | 'value'>,
  outcome: FullInspectionOutcome,
  /** The parsed value of the changed text, where it is already available. */
  changed?: Json,
): InspectionOutcome {
  if (DISAGREEMENTS.hasSubscribers) publishDisagreements(outcome.findings);
  if (outcome.kind !== 'changed') return outcome;
  const { findings } = outcome;
  try {
    const value: Json = changed ?? JSON.parse(outcome.text);
    if (satisfiesSchema(value, outcome.text, output)) return { ...outcome, value };
    const text = output === undefined ? undefined : replaceInadmissible(original, outcome.text, output);
    const replaced: Json = text === undefined ? null : JSON.parse(text);
    return text !== undefined && satisfiesSchema(replaced, text, output)
      ? { ...outcome, text, value: replaced }
      : { kind: 'withhold', reason: 'result-invalid', findings };
  } catch {
    return { kind: 'withhold', reason: 'internal', findings };
  }
}

/** The detectors that found something only in what an edit left, as `recheck:` and their names. */
export const DISAGREEMENTS = channel('sallyport:inspection.disagreement');
const RECHECK = 'recheck:';

function publishDisagreements(findings: readonly Finding[]): void {
  const detectors = findings.map(({ detector }) => detector);
  const own = detectors.filter((detector) => detector.startsWith(RECHECK));
  if (own.length > 0) DISAGREEMENTS.publish(own);
}

/** The outcome of a message that was withheld without full inspection. */
export function withheld(reason: WithholdReason): InspectionOutcome & FullInspectionOutcome {
  return { kind: 'withhold', reason, findings: NO_FINDINGS };
}

/** Whether a carriage return may stand alone in a string of a JSON text, which is flagged. */
function mayHoldLoneReturn(json: string): boolean {
  return json.includes('\\r') && /\\r(?!\\n)/.test(json);
}

/** The outcome of a message that needs no full inspection; otherwise undefined. Never throws. */
export function passIfClean(input: FullInspectionInput): (InspectionOutcome & FullInspectionOutcome) | undefined {
  const { own } = input;
  if (input.sensitive !== undefined) return undefined;
  try {
    if (!isSurelyCleanJson(input.text) || isExposedIn(input.text, own)) return undefined;
    if (mayHoldLoneReturn(input.text)) return undefined;
    // The items of a list have already lost their odd icons (result-filters.ts).
    if (needsStructuralInspection(input.value, undefined, LIST_MEMBERS.get(input.requestMethod ?? '')))
      return undefined;
    const tail = input.previousTail ?? '';
    const { groups, continued } = joinedTextsOf(input.value);
    const isClean = (text: string): boolean => isSurelyClean(text) && !isExposedIn(text, own);
    if (!areJoinedClean(groups, tail, isClean)) return undefined;
    if (!withJoinedLists(input.text).every((text) => isSurelyCleanJson(text) && !isExposedIn(text, own)))
      return undefined;
    return { kind: 'clean', findings: NO_FINDINGS, previousTail: nextTail(tail, continued) };
  } catch {
    return withheld('internal');
  }
}

function inspect(input: FullInspectionInput, sanitize: SanitizeText, log: FindingLog): FullInspectionOutcome {
  const { text, own, marks } = input;
  const { result } = input.profile;
  const tail = input.previousTail ?? '';
  const settings = {
    rules: own === undefined && marks === undefined ? result : { ...result, own, marks },
    caps: input.caps ?? INSPECTION_CAPS,
    sanitize,
    approved: new Set(input.approved),
    tail,
  };
  const exempt = exemptIn(input.value, input.requestMethod);
  const pass = sanitizeMessage({ ...settings, text, value: input.value, exempt, log });
  if (pass.kind === 'too-large') return withhold('result-too-large', log);
  if (pass.isBlocked) return withhold('result-content', log);
  const edited = inspectAgain(applyEdits(text, pass.edits), text, {
    log,
    inspectEdited: (again, value, againLog) =>
      sanitizeMessage({
        ...settings,
        text: again,
        value,
        exempt: exemptIn(value, input.requestMethod),
        log: againLog,
      }),
  });
  if ('reason' in edited) return withhold(edited.reason, log);
  const previousTail = nextTail(tail, pass.readerTexts);
  const findings = log.list();
  const changed = findings.length === 0 ? edited.text : withFindings(edited.text, findings);
  if (changed === text) return { kind: 'clean', findings, previousTail };
  return { kind: 'changed', text: changed, findings, previousTail };
}

/** How often what leaves is inspected again and edited at what only that inspection finds. */
const MAX_CHECKS = 6;

type Check = {
  readonly log: FindingLog;
  readonly inspectEdited: (text: string, value: Json, log: FindingLog) => ReturnType<typeof sanitizeMessage>;
};

/**
 * Inspects what an edit leaves, because an edit may bring together what was apart. What only this finds is edited too
 * and recorded as `recheck:` and the detector. After the last round a text is withheld that is still not inert or still
 * has something that a rule removes.
 */
function inspectAgain(
  edited: string,
  original: string,
  { log, inspectEdited }: Check,
): { readonly text: string } | { readonly reason: WithholdReason } {
  let before = original;
  let text = edited;
  for (let round = 0; text !== before; round++) {
    const reading = readJsonText(text);
    if (!reading.ok) return { reason: 'internal' };
    let isHarmless = true;
    const pass = inspectEdited(text, reading.value, {
      list: log.list,
      add(steps, note) {
        // A flag was recorded when the original was read.
        if (note.action === 'flag') return;
        isHarmless &&= note.action === 'strip';
        log.add(steps, { ...note, detector: `${RECHECK}${note.detector}` });
      },
    });
    if (pass.kind === 'too-large') return { reason: 'result-too-large' };
    if (pass.isBlocked) return { reason: 'result-content' };
    if (round === MAX_CHECKS) return isHarmless ? { text } : { reason: 'result-content' };
    before = text;
    text = applyEdits(text, pass.edits);
  }
  return { text };
}

function withhold(reason: WithholdReason, log: FindingLog): InspectionOutcome & FullInspectionOutcome {
  return { kind: 'withhold', reason, findings: log.list() };
}

/** Every number that a double may not hold is as long, or has an exponent. */
const LONG_NUMBER = /[-+.\dEe]{16}|\d[Ee][-+\d]/;

/** Whether structured content is present and valid where a schema was approved (MCP, tools, outputSchema). */
function satisfiesSchema(value: Json, text: string, output: CompiledSchema | undefined): boolean {
  if (output === undefined) return true;
  const result = valueAt(value, ['result']);
  if (!isObject(result) || result['isError'] === true) return true;
  const structured = result['structuredContent'];
  if (structured === undefined) return false;
  // Numbers are compared as they are written.
  const span = LONG_NUMBER.test(text) ? spanOf(text, ['result', 'structuredContent']) : undefined;
  if (span !== undefined) keepExactNumbers(text, span, structured);
  return output.check(structured).length === 0;
}

/** Whether each group of texts, joined as a host may join them, needs no full inspection. */
function areJoinedClean(
  groups: ReadonlyMap<string, readonly string[]>,
  tail: string,
  isClean: (text: string) => boolean,
): boolean {
  for (const group of groups.values()) {
    // An empty text is no boundary: what stands before it is continued by what stands behind it.
    const texts = group.length === 1 ? group : group.filter((text) => text !== '');
    if (tail !== '' && !areCleanTogether([tail, ...startOf(texts)], isClean)) return false;
    if (texts.length > 1 && !areCleanTogether(texts, isClean)) return false;
  }
  return true;
}

function areCleanTogether(texts: readonly string[], isClean: (text: string) => boolean): boolean {
  return SECRET_SEPARATORS.every((separator) => isClean(texts.join(separator)));
}

/** What is read behind the end of an earlier message. A single text may be long, and was read by itself. */
function startOf(texts: readonly string[]): readonly string[] {
  const [only = ''] = texts;
  return texts.length > 1 ? texts : [headOf(only)];
}

/** Whether a message holds something that the prefilter cannot assess from its text: encoded bytes or icons. */
function needsStructuralInspection(value: Json, parentName?: string, listed?: string): boolean {
  if (Array.isArray(value)) return value.some((one: Json) => needsStructuralInspection(one, parentName, listed));
  return isObject(value) && hasUnprefilteredMember(value, parentName, listed);
}

function hasUnprefilteredMember(value: JsonObject, parentName?: string, listed?: string): boolean {
  for (const name in value) {
    const member = value[name];
    if (name === ICONS) return true;
    if (typeof member === 'string' && needsReading(value, name, member)) return true;
    if (typeof member !== 'object' || isSkippedMember(name, parentName, listed)) continue;
    if (needsStructuralInspection(member, name, listed)) return true;
  }
  return false;
}

/** Encoded bytes, texts that are read as XML, and addresses that are scripts. */
function needsReading(holder: JsonObject, name: string, text: string): boolean {
  if (mayHoldPayload(holder, name) || (name === 'mimeType' && /svg/i.test(text))) return true;
  return ADDRESSES.has(name) && scriptSchemeColon(text) !== undefined;
}

function isSkippedMember(name: string, parentName: string | undefined, listed?: string): boolean {
  return isFreeForm(name, parentName) || (parentName === 'result' && name === listed);
}

function nextTail(tail: string, texts: readonly string[]): string {
  let joined = tail;
  for (const text of texts) joined = tailOf(joined + tailOf(text));
  return joined;
}

/** Adds the findings to `_meta` of a result. Errors and notifications have no member for them. */
function withFindings(text: string, findings: readonly Finding[]): string {
  return withMeta(text, FINDINGS_MEMBER, publicFindings(findings));
}

/** Adds findings of something that was done before the inspection to those in `_meta` of an inspected result. */
export function withFurtherFindings(text: string, findings: readonly Finding[]): string {
  const shown = valueAt(JSON.parse(text) as Json, ['result', '_meta', FINDINGS_MEMBER]);
  const further = publicFindings(findings);
  const all = Array.isArray(shown) && Array.isArray(further) ? [...further, ...shown] : further;
  return withMeta(text, FINDINGS_MEMBER, all);
}

function withMeta(text: string, member: string, content: Json): string {
  const value: Json = JSON.parse(text);
  const result = valueAt(value, ['result']);
  if (!isObject(result)) return text;
  if (result['_meta'] === undefined) return setMember(text, ['result'], '_meta', { [member]: content });
  if (!isObject(result['_meta'])) return text;
  return setMember(text, ['result', '_meta'], member, content);
}
