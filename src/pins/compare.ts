// Names the difference between two definitions: what a reviewer should look at first.
// Never decides: any difference at all hides the definition, whatever its name. Pure.
// Contract §5 (classes of a drift).

import { isObject, type Json, type JsonObject } from '../mcp/message.js';
import type { PinKind } from '../policy/definition.js';
import { findCues } from './cues.js';
import { compareSchemas, memberOf, normalizeSchema, sortMembers } from './schema-change.js';

/** The classes of a difference, the one to look at first standing first. */
export const CHANGES = [
  'new-cue',
  'input-widened',
  'description',
  'output',
  'annotations',
  'server',
  'input-narrowed',
  'new-tool',
  'removed',
  'notation-only',
  'server-version',
  // Only its digest is known: a page that a client asked for was noted without its definitions.
  'unclassified',
] as const;

export type Change = (typeof CHANGES)[number];

/** Members of a definition that a reader or a model is told. */
const DESCRIPTIVE_MEMBERS = [
  'title',
  'description',
  'arguments',
  'mimeType',
  'name',
  'uriTemplate',
  'contents',
];
const SCHEMAS = new Set(['inputSchema', 'outputSchema']);

/**
 * The classes of the difference, the gravest first; empty when the definitions are equal.
 * `undefined` stands for a definition that is not there.
 */
export function compareDefinitions(
  kind: PinKind,
  before: JsonObject | undefined,
  after: JsonObject | undefined,
): readonly Change[] {
  if (before === undefined) return after === undefined ? [] : ['new-tool'];
  if (after === undefined) return ['removed'];
  if (JSON.stringify(sortMembers(before)) === JSON.stringify(sortMembers(after))) return [];
  const found = new Set<Change>();
  if (hasNewCue(before, after)) found.add('new-cue');
  if (hasDescriptiveDifference(before, after)) found.add('description');
  if (hasOtherDifference(kind, before, after)) found.add('annotations');
  if (kind === 'tool') addSchemaChanges(before, after, found);
  if (found.size === 0) found.add('notation-only');
  return CHANGES.filter((change) => found.has(change));
}

/** The same for the instructions of a server. */
export function compareTexts(
  before: string | undefined,
  after: string | undefined,
): readonly Change[] {
  if (before === after) return [];
  if (before === undefined) return ['new-tool'];
  if (after === undefined) return ['removed'];
  if (spaceless(before) === spaceless(after)) return ['notation-only'];
  return hasNewCue(before, after) ? ['new-cue', 'description'] : ['description'];
}

function hasNewCue(before: Json, after: Json): boolean {
  const known = findCues(before);
  for (const cue of findCues(after)) if (!known.has(cue)) return true;
  return false;
}

function hasDescriptiveDifference(before: JsonObject, after: JsonObject): boolean {
  if (
    DESCRIPTIVE_MEMBERS.some(
      (name) => descriptiveForm(before[name]) !== descriptiveForm(after[name]),
    )
  )
    return true;
  return schemaDescriptions(before['inputSchema']) !== schemaDescriptions(after['inputSchema']);
}

function descriptiveForm(value: Json | undefined): string {
  if (value === undefined) return '';
  return JSON.stringify(sortMembers(value), (_, part: unknown) =>
    typeof part === 'string' ? spaceless(part) : part,
  );
}

/** What the schema tells, apart from what it accepts: what is told in it, in the order of its places. */
function schemaDescriptions(schema: Json | undefined): string {
  const descriptions: string[] = [];
  collectDescriptions(normalizeSchema(schema ?? null, true), '', descriptions);
  return descriptions.join('\n');
}

const DESCRIPTIVE_KEYWORDS = new Set(['title', 'description', '$comment', 'default', 'examples']);

function collectDescriptions(value: Json, path: string, descriptions: string[]): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, child] of Object.entries(value)) {
    const isName = path.endsWith('/properties') || path.endsWith('/$defs');
    if (!isName && DESCRIPTIVE_KEYWORDS.has(key))
      descriptions.push(`${path}/${key} ${descriptiveForm(child)}`);
    else collectDescriptions(child, `${path}/${key}`, descriptions);
  }
}

/** Every other member: annotations, `_meta`, icons, execution, and whatever a later revision adds. */
function hasOtherDifference(kind: PinKind, before: JsonObject, after: JsonObject): boolean {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  for (const name of names) {
    if (DESCRIPTIVE_MEMBERS.includes(name) || (kind === 'tool' && SCHEMAS.has(name))) continue;
    if (descriptiveForm(memberOf(before, name)) !== descriptiveForm(memberOf(after, name)))
      return true;
  }
  return false;
}

function addSchemaChanges(before: JsonObject, after: JsonObject, found: Set<Change>): void {
  const input = compareSchemas(before['inputSchema'], after['inputSchema']);
  if (input.isWidened) found.add('input-widened');
  if (input.isNarrowed) found.add('input-narrowed');
  if (outputForm(before) !== outputForm(after)) found.add('output');
}

function outputForm(definition: JsonObject): string {
  const schema = definition['outputSchema'];
  if (schema === undefined) return '';
  return isObject(schema)
    ? descriptiveForm(normalizeSchema(schema, true))
    : descriptiveForm(schema);
}

/** Spacing and composed letters are notation. */
function spaceless(text: string): string {
  return text.normalize('NFC').replace(/\s+/g, ' ').trim();
}
