// Classifies the difference between two definitions, so that a reviewer knows what to look at first. It
// decides nothing: any difference hides the definition, whatever its class. Pure.
// docs/contract.md §5 (classes of a drift).

import type { PinKind } from '../policy/definitions.js';
import { isObject, type Json, type JsonObject, ownMember } from '../protocol/jsonrpc.js';
import { unseenCharacters } from '../text/escaping.js';
import {
  compareSchemas,
  DESCRIPTIVE,
  DIALECT,
  normalizeSchema,
  sortMembers,
} from './schema-comparison.js';

/** Phrases of instructions to a model, in lower case with single spaces. */
const INSTRUCTION_PHRASES = [
  'ignore previous',
  'ignore all previous',
  'ignore the above',
  'disregard',
  'forget your',
  'system prompt',
  'you must',
  'you should always',
  'always call',
  'always use',
  'before using',
  'before calling',
  'before any other',
  'first call',
  'first read',
  'do not tell',
  "don't tell",
  'do not mention',
  "don't mention",
  'do not inform',
  'without asking',
  'without telling',
  'without informing',
  'secretly',
  'silently',
  'instead of',
  'side note',
  'important:',
  '<important',
  '<system',
  '<instructions',
  '[system',
  'assistant:',
  'api key',
  'password',
  'private key',
  'credentials',
  '.ssh',
  '.env',
  'id_rsa',
  'base64',
] as const;

const URL_PATTERN =
  /(?:https?:\/\/|www\.|javascript:|data:|file:\/\/|mailto:)[^\s"'<>)\]}]{1,200}/g;
const ENCODED_RUN = /[A-Za-z0-9+/]{80,4000}/g;
const SPACE_RUN = /\s+/g;

/**
 * The cues of every string and key of a value, each once. A cue is content that addresses a model or leads out
 * of a text: instructions, hidden characters, URLs. Cues only label a difference, so a missed one costs a
 * label. Linear time: literal search over case-folded text, and two patterns without nested repetition.
 */
export function findCues(value: Json): ReadonlySet<string> {
  const cues = new Set<string>();
  const open: Json[] = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    // The address of the usual dialect leads nowhere.
    if (typeof next === 'string' && next !== DIALECT) addCues(next, cues);
    if (typeof next !== 'object' || next === null) continue;
    for (const [key, child] of Object.entries(next)) {
      addCues(key, cues);
      open.push(child);
    }
  }
  return cues;
}

function addCues(text: string, cues: Set<string>): void {
  for (const character of unseenCharacters(text)) {
    cues.add(`unseen:${(character.codePointAt(0) ?? 0).toString(16)}`);
  }
  const folded = text.normalize('NFKC').toLowerCase().replace(SPACE_RUN, ' ');
  for (const phrase of INSTRUCTION_PHRASES)
    if (folded.includes(phrase)) cues.add(`order:${phrase}`);
  for (const [address] of folded.matchAll(URL_PATTERN)) cues.add(`address:${address}`);
  for (const [run] of text.matchAll(ENCODED_RUN)) cues.add(`encoded:${run.slice(0, 40)}`);
}

/** The classes of a difference, in the order in which a reviewer should look at them. */
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
  // Only the digest is known: the definition was recorded from a page without its content.
  'unclassified',
] as const;

export type Change = (typeof CHANGES)[number];

/** Members of a definition that are shown to a person or a model. */
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

/** The classes of the difference, most serious first; empty if the definitions are equal. */
export function compareDefinitions(
  kind: PinKind,
  before: JsonObject,
  after: JsonObject,
): readonly Change[] {
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
export function compareTexts(before: string, after: string): readonly Change[] {
  if (before === after) return [];
  if (normalizeText(before) === normalizeText(after)) return ['notation-only'];
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
    typeof part === 'string' ? normalizeText(part) : part,
  );
}

/** The descriptive texts of a schema in their places, without what it accepts. */
function schemaDescriptions(schema: Json | undefined): string {
  return JSON.stringify(onlyDescriptive(normalizeSchema(schema ?? null, true), false)) ?? '';
}

/** Keeps the places by nesting: a path beside each text would be as long as the names that lead there. */
function onlyDescriptive(value: Json, areNames: boolean): Json | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const kept: [string, Json][] = [];
  for (const [key, child] of Object.entries(value)) {
    const isText = !areNames && DESCRIPTIVE.has(key);
    const inner = isText
      ? descriptiveForm(child)
      : onlyDescriptive(child, !areNames && (key === 'properties' || key === '$defs'));
    if (inner !== undefined) kept.push([key, inner]);
  }
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}

/** Compares all other members: annotations, `_meta`, icons, execution, and those of later revisions. */
function hasOtherDifference(kind: PinKind, before: JsonObject, after: JsonObject): boolean {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  for (const name of names) {
    if (DESCRIPTIVE_MEMBERS.includes(name) || (kind === 'tool' && SCHEMAS.has(name))) continue;
    if (descriptiveForm(ownMember(before, name)) !== descriptiveForm(ownMember(after, name)))
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

/** Normalizes white space and Unicode composition, which count as notation. */
function normalizeText(text: string): string {
  return text.normalize('NFC').replace(/\s+/g, ' ').trim();
}
