// The table that opens a review: one row for each definition that nobody has approved yet, in the order in which a person
// should read them, with what its definition lacks. Pure; commands print it, and the console draws the same rows.
// docs/guides/reviewing-drift.md.

import { effectOf, propertiesOf, type ToolEffect } from '../policy/tool-effect.js';
import { isObject, type Json, type JsonObject } from '../protocol/jsonrpc.js';
import { countOf } from '../text/wording.js';
import type { DriftKind } from './lock-differences.js';

/** What the scan found in a definition, by tier. */
type FindingCounts = { readonly block: number; readonly review: number; readonly note: number };

export type ReviewRow = {
  readonly kind: DriftKind;
  /** Text of the upstream. */
  readonly name: string;
  readonly digest: string;
  /** The name by which clients know it, where that is another. */
  readonly shownAs?: string;
  /** Only tools have one. */
  readonly effect?: ToolEffect;
  readonly because?: string;
  readonly contradiction?: string;
  /** Parameters that take any text. */
  readonly freeText: number;
  readonly findings: FindingCounts;
  /** Characters of the definition. */
  readonly size: number;
  /** A form of it was approved before. */
  readonly isChanged: boolean;
  /** How it differs from that form. */
  readonly changes: readonly string[];
  /** What it lacks, and what is unusual about it. */
  readonly notes: readonly string[];
};

export type ReviewSubject = Pick<ReviewRow, 'kind' | 'name' | 'digest' | 'isChanged' | 'changes'> & {
  readonly shownAs?: string | undefined;
  readonly definition: JsonObject | string;
  readonly findings: readonly { readonly tier: keyof FindingCounts }[];
};

/** What a table says of one definition. */
export function reviewRow({ definition, shownAs, findings, ...subject }: ReviewSubject): ReviewRow {
  const { kind, name } = subject;
  const count = (tier: keyof FindingCounts): number => findings.filter((one) => one.tier === tier).length;
  const isTool = kind === 'tool' && typeof definition !== 'string';
  return {
    ...subject,
    ...(shownAs === undefined || shownAs === name ? {} : { shownAs }),
    ...(isTool ? effectOf(name, definition) : {}),
    freeText: typeof definition === 'string' ? 0 : countFreeText(kind, definition),
    findings: { block: count('block'), review: count('review'), note: count('note') },
    size: typeof definition === 'string' ? definition.length : JSON.stringify(definition).length,
    notes: isTool ? notesOf(definition) : [],
  };
}

/** What each row says, in the order of the columns. */
export function cellsOf(row: ReviewRow): readonly string[] {
  const { kind, effect, freeText, size, isChanged } = row;
  const text = freeText === 0 ? '-' : String(freeText);
  return [effect ?? kind, text, findingsIn(row), sizeText(size), isChanged ? 'changed' : 'new'];
}

function findingsIn({ findings: { block, review } }: ReviewRow): string {
  if (block > 0) return `${block} block`;
  return review > 0 ? `${review} review` : '-';
}

function sizeText(characters: number): string {
  return characters < 1_000 ? String(characters) : `${(characters / 1_000).toFixed(1)}k`;
}

/** Findings first, then what changed since its approval, then what writes, then what takes most free text. */
export function sortForReview<Row extends ReviewRow>(rows: readonly Row[]): readonly Row[] {
  return [...rows].sort((one, other) => {
    const [ranks, others] = [ranksOf(one), ranksOf(other)];
    const at = ranks.findIndex((rank, index) => rank !== others[index]);
    if (at >= 0) return (others[at] ?? 0) - (ranks[at] ?? 0);
    return one.name < other.name ? -1 : Number(one.name > other.name);
  });
}

const EFFECT_RANKS: Readonly<Record<ToolEffect, number>> = { writes: 2, unclear: 1, reads: 0 };

function ranksOf({ findings, isChanged, contradiction, effect = 'reads', freeText }: ReviewRow): readonly number[] {
  const { block, review } = findings;
  return [block, review, Number(contradiction !== undefined), Number(isChanged), EFFECT_RANKS[effect], freeText];
}

/** More parameters than a reviewer keeps in mind. */
const MANY_PARAMETERS = 10;

function notesOf(definition: JsonObject): readonly string[] {
  const parameters = Object.values(propertiesOf(definition['inputSchema']));
  const undescribed = parameters.filter((one) => !isObject(one) || !isText(one['description'])).length;
  const missing = ['title', 'description', 'outputSchema'].filter((member) => !isGiven(definition, member));
  return [
    ...missing.map((member) => `no ${member}`),
    ...(undescribed > 0 ? [`${countOf(undescribed, 'parameter')} without a description`] : []),
    ...(parameters.length > MANY_PARAMETERS ? [`${parameters.length} parameters`] : []),
  ];
}

/** The title of a tool may also be among its annotations. */
function isGiven(definition: JsonObject, member: string): boolean {
  const { annotations } = definition;
  if (member === 'outputSchema') return definition[member] !== undefined;
  return isText(definition[member]) || (member === 'title' && isObject(annotations) && isText(annotations['title']));
}

function isText(value: Json | undefined): boolean {
  return typeof value === 'string' && value.trim() !== '';
}

/** Counts at most this many, and looks no deeper: a hostile schema may have any size. */
const MAX_COUNTED = 999;
const MAX_DEPTH = 8;

function countFreeText(kind: DriftKind, definition: JsonObject): number {
  if (kind === 'prompt') return Array.isArray(definition['arguments']) ? definition['arguments'].length : 0;
  return kind === 'tool' ? Math.min(MAX_COUNTED, freeTextIn(definition['inputSchema'], 0)) : 0;
}

function freeTextIn(schema: Json | undefined, depth: number): number {
  if (depth >= MAX_DEPTH) return 0;
  const members = Object.values(propertiesOf(schema)).slice(0, MAX_COUNTED);
  return members.reduce((count: number, member) => count + freeTextOf(member, depth), 0);
}

function freeTextOf(member: Json | undefined, depth: number): number {
  if (!isObject(member)) return member === true ? 1 : 0;
  const items = isObject(member['items']) ? freeTextOf(member['items'], depth + 1) : 0;
  return (takesAnyText(member) ? 1 : 0) + freeTextIn(member, depth + 1) + items;
}

/** Members of a schema that leave only some texts. */
const BOUNDS = ['enum', 'const', 'pattern', 'format'];

function takesAnyText(schema: JsonObject): boolean {
  if (BOUNDS.some((key) => schema[key] !== undefined)) return false;
  const { type } = schema;
  const isTextual = type === 'string' || (Array.isArray(type) && type.includes('string'));
  const isOpen =
    type === undefined &&
    ['properties', 'items', '$ref', 'anyOf', 'oneOf', 'allOf'].every((key) => schema[key] === undefined);
  const branches = [schema['anyOf'], schema['oneOf']].flatMap((one) => (Array.isArray(one) ? one : []));
  return isTextual || isOpen || branches.some((one) => isObject(one) && one['type'] === 'string' && takesAnyText(one));
}
