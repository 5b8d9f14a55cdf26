// Says whether two definitions of one name are nearly the same: by the words of their descriptions and by the
// parameters that they take. What many servers share by chance (a `query`, a few words) makes no copy.

import type { Json, JsonObject } from '../../protocol/jsonrpc.js';
import { foldText } from '../detectors/normalized-text.js';

/** What of a definition is compared. */
export type Outline = {
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

export function outlineOf(definition: JsonObject | string): Outline {
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

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function collectParameters(
  schema: Json | undefined,
  path: string,
  depth: number,
  found: Set<string>,
): void {
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
export function isNearlyEqual(one: Outline, other: Outline): boolean {
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
