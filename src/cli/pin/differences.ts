// How `pin diff` and `pin verify` show what differs, as text and as JSON: each difference with its classes and field by
// field. Text from upstreams is escaped; what cannot be seen is made visible. docs/contract.md §5.

import type { DefinitionFinding } from '../../inspection/definitions/scan.js';
import type { PinDigest } from '../../pins/approval.js';
import { changedLines, diffDefinitions, printDiffLine } from '../../pins/diff.js';
import type { DriftKind, ItemDifference } from '../../pins/drift.js';
import { differingFields, type FieldDifference, fieldLines } from '../../pins/fields.js';
import type { TrustedPin } from '../../pins/first-use.js';
import type { Lock, PinVersion } from '../../pins/lock.js';
import type { SignatureCheck } from '../../pins/signature.js';
import type { PinKind } from '../../policy/definitions.js';
import type { JsonObject } from '../../protocol/jsonrpc.js';
import { escapeForTerminal, toVisibleJson } from '../../text/escaping.js';
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
  /** Whether the lock file is signed as it must be; `undefined` if it need not be. */
  readonly signatures: SignatureCheck | undefined;
};

/** `isRecorded`: the gateway recorded that it trusts this. Otherwise it is only what a gateway without a record would trust. */
export type FirstUseItem = TrustedPin & { readonly isRecorded: boolean };

/** The fields of a difference; none if one side does not exist or its content is not known. */
export function fieldsOf(difference: ItemDifference): readonly FieldDifference[] {
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
export function differenceText(
  upstream: string,
  difference: ItemDifference,
  isPending: boolean,
): string {
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

export const NOT_OFFERED = 'a form that is approved, and not offered here';

export function firstUseMeaning({ isRecorded, at }: FirstUseItem): string {
  if (!isRecorded)
    return 'not in the lock file; trusted if it was in the first listing of the gateway';
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
  const upstreams = found.map(
    ({ upstream, differences, pending, notOffered, firstUse, ...one }) => ({
      upstream,
      pending,
      notOffered,
      firstUse: firstUse.map(({ definition: _, ...item }) => item),
      findings: one.findings,
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
    }),
  );
  return `${toVisibleJson({ upstreams })}\n`;
}
