// How `pin diff` and `pin verify` show what differs: as text and JSON, each difference with its classes and field by
// field, and as SARIF 2.1.0, for the checks of pull requests, with a result for each field at its line of the lock
// file, for each finding of the scan, and for a lock file that is not signed as it must be. Text from upstreams is
// escaped; what cannot be seen is made visible. docs/reference/definitions.md#drift.

import { nameFile, type SarifResult, sarifLog } from '../../config/diagnostics.js';
import type { DefinitionFinding } from '../../inspection/definitions/scan.js';
import { type PinDigest, pinOf, type TrustedPin } from '../../pins/approval.js';
import type { Change } from '../../pins/comparison.js';
import {
  changedLines,
  diffDefinitions,
  differingFields,
  type FieldDifference,
  fieldLines,
  printDiffLine,
} from '../../pins/diff.js';
import { sha256Hex } from '../../pins/digest.js';
import { type Lock, type PinVersion, readLockSource, SECTIONS, versionsOf } from '../../pins/lock.js';
import type { DriftKind, ItemDifference } from '../../pins/lock-differences.js';
import type { ReviewRow } from '../../pins/review-table.js';
import type { SignatureCheck } from '../../pins/signature.js';
import type { PinKind } from '../../policy/definitions.js';
import type { Json, JsonObject } from '../../protocol/jsonrpc.js';
import { escapeForTerminal, toVisibleJson } from '../../text/escaping.js';
import type { Position, YamlPath } from '../../text/yaml.js';
import { digestText, pinLabel } from './lock-files.js';

/** Unchanged lines printed around a changed one. */
const CONTEXT_LINES = 2;

export type UpstreamDifferences = {
  readonly upstream: string;
  /** Path of the lock file, what it holds, and its text. */
  readonly file: string;
  readonly lock: Lock | undefined;
  readonly text: string;
  readonly differences: readonly ItemDifference[];
  /** What is trusted because the first listing had it. Nobody approved it, and it does not count as a difference. */
  readonly firstUse: readonly FirstUseItem[];
  /** Approved forms that are not offered. They stay approved and do not count as differences. */
  readonly notOffered: readonly PinDigest[];
  /** Definitions of the lock file that nobody has approved yet. */
  readonly pending: readonly PinDigest[];
  /** What the scan found in what nobody has approved. */
  readonly findings: readonly DefinitionFinding[];
  /** What is to be read, with its digest, in the order in which to read it. */
  readonly review: readonly ReviewRow[];
  /** Whether the lock file is signed as it must be; `undefined` if it need not be. */
  readonly signatures: SignatureCheck | undefined;
};

/**
 * `isRecorded`: the gateway recorded that it trusts this. Otherwise it is only what a gateway without a record would
 * trust.
 */
export type FirstUseItem = TrustedPin & { readonly isRecorded: boolean };

/** The fields of a difference; none if one side does not exist or its content is not known. */
function fieldsOf(difference: ItemDifference): readonly FieldDifference[] {
  const { kind, beforeDefinition, afterDefinition, changes } = difference;
  return differingFields(pinKindOf(kind), beforeDefinition, afterDefinition, changes);
}

/** The kind of what has a definition with members; `undefined` for texts and for the identity of a server. */
function pinKindOf(kind: DriftKind): PinKind | undefined {
  return kind === 'instructions' || kind === 'server' ? undefined : kind;
}

/** One line per difference: upstream, kind, name, classes and both digests. */
function differenceLine(upstream: string, difference: ItemDifference): string {
  const { kind, name, changes, before, after } = difference;
  const what = `${upstream} ${pinLabel({ kind, name })}`;
  return `${what}: ${changes.join(', ')} (${digestText(before)} -> ${digestText(after)})`;
}

/** The difference with its fields indented below it. */
export function differenceText(upstream: string, difference: ItemDifference, isPending: boolean): string {
  const line = `${differenceLine(upstream, difference)}${isPending ? ', pending' : ''}\n`;
  const { beforeDefinition, afterDefinition } = difference;
  return line + contentText(fieldsOf(difference), beforeDefinition, afterDefinition);
}

/** One line for what was or would be trusted, with its content if it is shown for review. */
export function firstUseText(upstream: string, item: FirstUseItem, withContent: boolean): string {
  const line = `${upstream} ${pinLabel(item)}: ${firstUseMeaning(item)} (${digestText(item.digest)})\n`;
  return withContent ? line + contentText([], undefined, item.definition) : line;
}

/** One line for an approved form that is not offered. */
export function notOfferedText(upstream: string, pin: PinDigest): string {
  return `${upstream} ${pinLabel(pin)}: ${NOT_OFFERED} (${digestText(pin.digest)})\n`;
}

const NOT_OFFERED = 'a form that is approved, and not offered here';

function firstUseMeaning({ isRecorded, at }: FirstUseItem): string {
  if (!isRecorded) return 'not in the lock file; trusted if it was in the first listing of the gateway';
  return `trusted on first use${at === undefined ? '' : ` on ${at}`}, not reviewed`;
}

type Definition = JsonObject | string;

/** A pending definition of the lock file, compared with the approved one. */
export function pendingText(
  upstream: string,
  pin: PinDigest,
  before: PinVersion<Definition> | undefined,
  after: PinVersion<Definition>,
): string {
  const digests = `(${digestText(before?.sha256)} -> ${digestText(after.sha256)})`;
  const line = `${upstream} ${pinLabel(pin)}: pending ${digests}\n`;
  const [one, other] = [before?.definition, after.definition];
  return line + contentText(differingFields(pinKindOf(pin.kind), one, other, []), one, other);
}

/** The fields, or the whole of a definition that one side does not have. */
function contentText(
  fields: readonly FieldDifference[],
  before: Definition | undefined,
  after: Definition | undefined,
): string {
  if (fields.length > 0) return fields.map(fieldText).join('');
  return changedLines(diffDefinitions(before, after), CONTEXT_LINES)
    .map((line) => `  ${printDiffLine(line)}\n`)
    .join('');
}

function fieldText(field: FieldDifference): string {
  const { pointer, changes } = field;
  const at = pointer === '' ? 'the text' : escapeForTerminal(pointer);
  const lines = changedLines(fieldLines(field), CONTEXT_LINES);
  const shown = lines.map((line) => `    ${printDiffLine(line)}\n`).join('');
  return `  ${at}: ${changes.join(', ')}\n${shown}`;
}

/** All differences as one JSON document, in which every character can be seen. */
export function differencesJson(found: readonly UpstreamDifferences[], withLines: boolean): string {
  const upstreams = found.map(({ upstream, differences, pending, notOffered, firstUse, ...one }) => ({
    upstream,
    pending,
    notOffered,
    firstUse: firstUse.map(({ definition: _, ...item }) => item),
    findings: one.findings,
    review: one.review,
    signatures: one.signatures ?? null,
    differences: differences.map((difference) => ({
      kind: difference.kind,
      name: difference.name,
      change: difference.change,
      changes: difference.changes,
      before: difference.before ?? null,
      after: difference.after ?? null,
      fields: fieldsOf(difference).map(({ path: _, ...field }) => field),
      ...(withLines
        ? {
            lines: changedLines(
              diffDefinitions(difference.beforeDefinition, difference.afterDefinition),
              CONTEXT_LINES,
            ),
          }
        : {}),
    })),
  }));
  return `${toVisibleJson({ upstreams })}\n`;
}

const DESCRIPTIONS: { readonly [change in Change]: string } = {
  'new-cue': 'The definition addresses a model, hides characters or leads elsewhere as it did not before.',
  'input-widened': 'The input schema may accept something that it refused before.',
  description: 'A text that people or models read has changed.',
  output: 'The output schema has changed.',
  annotations: 'Annotations or another member of the definition have changed.',
  server: 'The server states another name.',
  'input-narrowed': 'The input schema refuses something that it accepted before.',
  'new-tool': 'A definition that is not in the lock file is offered.',
  removed: 'A pinned definition is not offered any more.',
  'notation-only': 'Only order, spacing or dialect have changed.',
  'server-version': 'The server states another version, which is no drift.',
  unclassified: 'The definition has changed; its content is not known.',
};

const LEVELS: { readonly [change in Change]?: SarifResult['level'] } = {
  'notation-only': 'warning',
  'server-version': 'note',
};

/** Values are cut in messages; the report has them whole as properties. */
const MAX_SHOWN = 400;
const START: Position = { line: 1, column: 1 };

/** Everything that was found. Files below `folder` are named relative to it. */
export function differencesSarif(found: readonly UpstreamDifferences[], folder: string): string {
  const results = found.flatMap((one) => resultsOf(one, folder));
  return `${toVisibleJson(sarifLog(results, DESCRIPTIONS))}\n`;
}

function resultsOf(found: UpstreamDifferences, folder: string): readonly SarifResult[] {
  const { upstream, differences, notOffered, firstUse, findings, signatures } = found;
  const file = nameFile(found.file, folder);
  const locate = locator(found);
  const unsigned: readonly SarifResult[] =
    signatures?.ok === false
      ? [
          {
            file,
            ...START,
            rule: 'signature',
            level: 'error',
            text: `The lock file ${signatures.why}.`,
          },
        ]
      : [];
  return [
    ...unsigned,
    ...differences.flatMap((difference) => {
      const fields = fieldsOf(difference);
      const at = { upstream, file, difference };
      if (fields.length > 0) return fields.map((field) => fieldResult(at, field, locate));
      return [itemResult(at, locate)];
    }),
    ...notOffered.map((pin): SarifResult => {
      const { kind, name, digest } = pin;
      return {
        ...{ file, ...locate(pin, digest, []), rule: 'not-offered', level: 'note' },
        text: `${upstream} ${pinLabel(pin)}: ${NOT_OFFERED} (${digestText(digest)})`,
        fingerprint: sha256Hex(JSON.stringify([upstream, kind, name, digest, 'not-offered'])),
        properties: { upstream, kind, name, digest },
      };
    }),
    ...firstUse.map((item): SarifResult => {
      const { kind, name, digest } = item;
      return {
        ...{ file, ...locate(item, digest, []), rule: 'first-use', level: 'note' },
        text: `${upstream} ${pinLabel(item)}: ${firstUseMeaning(item)} (${digestText(digest)})`,
        fingerprint: sha256Hex(JSON.stringify([upstream, kind, name, digest])),
        properties: { upstream, kind, name, digest },
      };
    }),
    ...findings
      .filter(({ tier }) => tier !== 'note')
      .map((finding) => ({
        file,
        ...placeOf(finding, locate),
        ...findingResult(finding),
      })),
  ];
}

type At = {
  readonly upstream: string;
  readonly file: string;
  readonly difference: ItemDifference;
};
type Locate = (
  item: { readonly kind: DriftKind; readonly name: string },
  digest: string | undefined,
  path: YamlPath,
) => Position;

/** Finds a value of a definition in the lock file, else the entry that it belongs to, else the start of the file. */
function locator({ file, text, lock }: UpstreamDifferences): Locate {
  const source = text === '' ? undefined : readLockSource(file, text);
  if (source?.value === undefined || lock === undefined) return () => START;
  return ({ kind, name }, digest, path) => {
    const pin = kind === 'server' ? undefined : pinOf(lock, { kind, name });
    const index = versionsOf(pin).findIndex(({ sha256 }) => sha256 === digest);
    const variant = index > 0 ? ['variants', index - 1] : [];
    const { line, column } = source.diagnosticAt([...entryOf(kind, name), ...variant, ...path], '');
    return { line, column };
  };
}

function entryOf(kind: DriftKind, name: string): YamlPath {
  return kind === 'server' || kind === 'instructions' ? [kind] : [SECTIONS[kind], name];
}

function pathOf(kind: DriftKind, path: YamlPath): YamlPath {
  if (kind === 'server') return path;
  return kind === 'instructions' ? ['text'] : ['definition', ...path];
}

function fieldResult({ upstream, file, difference }: At, field: FieldDifference, locate: Locate) {
  const { kind, name, before, after } = difference;
  const { pointer, changes, path, ...values } = field;
  const [rule = difference.change] = changes;
  const where = `${upstream} ${kind} ${escapeForTerminal(name)} ${escapeForTerminal(pointer)}`;
  const shown = `${shownValue(values.before)} -> ${shownValue(values.after)}`;
  const position = locate(difference, before, pathOf(kind, path));
  return {
    ...{ file, ...position, rule, level: LEVELS[rule] ?? 'error' },
    text: `${where.trimEnd()}: ${changes.join(', ')}: ${shown}`,
    fingerprint: sha256Hex(JSON.stringify([upstream, kind, name, pointer, before, after])),
    properties: { upstream, kind, name, pointer, changes, digests: { before, after }, ...values },
  } satisfies SarifResult;
}

function shownValue(value: Json | undefined): string {
  if (value === undefined) return 'absent';
  const text = escapeForTerminal(JSON.stringify(value));
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)} (cut)` : text;
}

function itemResult({ upstream, file, difference }: At, locate: Locate): SarifResult {
  const { kind, name, change, changes, before, after } = difference;
  const what = `${upstream} ${kind} ${escapeForTerminal(name)}: ${changes.join(', ')}`;
  return {
    ...{ file, ...locate(difference, before, []), rule: change, level: LEVELS[change] ?? 'error' },
    text: `${what} (${digestText(before)} -> ${digestText(after)})`,
    fingerprint: sha256Hex(JSON.stringify([upstream, kind, name, '', before, after])),
    properties: { upstream, kind, name, changes, digests: { before, after } },
  };
}

/** Its entry in the lock file; a finding about the whole upstream has none. */
function placeOf({ item: { kind, name } }: DefinitionFinding, locate: Locate): Position {
  return kind === 'upstream' ? START : locate({ kind, name }, undefined, []);
}

function findingResult({ id, kind, tier, item, pointer, evidence, reason }: DefinitionFinding) {
  const where = `${item.kind} ${escapeForTerminal(item.name)} ${escapeForTerminal(pointer)}`;
  const level = tier === 'block' ? ('error' as const) : ('warning' as const);
  return {
    ...{ rule: `scan-${kind}`, level, fingerprint: sha256Hex(id) },
    text: `${where.trimEnd()}: ${escapeForTerminal(evidence)}: ${reason}`,
    properties: { finding: id, tier, pointer },
  };
}
