// How far a schema reaches at one place of a value: which schemas are applied in place, through local
// references and combinations. Refuses loops that never advance and trees that multiply.
// Source: JSON Schema 2020-12 core §7.1 and §10.2; MCP, JSON Schema usage (bounded complexity).

import type { Schema, SchemaCopy, SchemaNode } from './schema-copy.js';

/** Most schemas that may be applied at one place, each counted as often as it is reached. */
export const MAX_APPLIED_IN_PLACE = 5000;

const IN_PLACE_LISTS = ['allOf', 'anyOf', 'oneOf'] as const;
const IN_PLACE_SCHEMAS = ['not', 'if', 'then', 'else'] as const;
const IN_PLACE_MAPS = ['dependentSchemas', 'dependencies'] as const;

/** True for a schema that is an object, not `true`, `false` or a list of names. */
export function isNode(value: unknown): value is SchemaNode {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The schema that a local reference points to, or undefined. RFC 6901 §6, in a URI fragment. */
export function resolveReference(root: Schema, ref: string): Schema | undefined {
  let at: unknown = root;
  for (const segment of ref.split('/').slice(1)) {
    const key = decodeSegment(segment);
    if (key === undefined || typeof at !== 'object' || at === null) return undefined;
    if (!Object.hasOwn(at, key)) return undefined;
    at = (at as { readonly [key: string]: unknown })[key];
  }
  return typeof at === 'boolean' || isNode(at) ? at : undefined;
}

/** The schemas applied in place by one schema, references resolved. `not` is left out on request. */
export function appliedInPlace(
  root: Schema,
  node: SchemaNode,
  positive: boolean,
): readonly Schema[] {
  const applied: Schema[] = [];
  const ref = node['$ref'];
  const target = typeof ref === 'string' ? resolveReference(root, ref) : undefined;
  if (target !== undefined) applied.push(target);
  for (const keyword of IN_PLACE_LISTS) {
    const list = node[keyword];
    if (Array.isArray(list)) applied.push(...(list as readonly Schema[]));
  }
  for (const keyword of IN_PLACE_SCHEMAS) {
    if (!(positive && keyword === 'not')) applied.push(...[node[keyword]].filter(isSchema));
  }
  for (const keyword of IN_PLACE_MAPS) {
    const map = node[keyword];
    if (isNode(map)) applied.push(...Object.values(map).filter(isSchema));
  }
  return applied;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === 'boolean' || isNode(value);
}

/** Why the schema's reach is not bounded, or undefined. */
export function findUnboundedReach(copy: SchemaCopy): string | undefined {
  const counted = new Map<SchemaNode, number>();
  const open = new Set<SchemaNode>();
  // Infinity stands for a loop; it survives every sum.
  const count = (node: SchemaNode): number => {
    const known = counted.get(node);
    if (known !== undefined) return known;
    if (open.has(node)) return Number.POSITIVE_INFINITY;
    open.add(node);
    let total = 1;
    for (const applied of appliedInPlace(copy.root, node, false)) {
      total += isNode(applied) ? count(applied) : 1;
    }
    open.delete(node);
    counted.set(node, total);
    return total;
  };
  for (const node of copy.nodes) {
    const ref = node['$ref'];
    if (typeof ref === 'string' && resolveReference(copy.root, ref) === undefined) {
      return 'a reference of the schema points to nothing';
    }
  }
  for (const node of copy.nodes) {
    const total = count(node);
    if (total === Number.POSITIVE_INFINITY) return 'the schema refers to itself without end';
    if (total > MAX_APPLIED_IN_PLACE)
      return 'the combinations of the schema multiply past all bounds';
  }
  return undefined;
}

function decodeSegment(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment).replaceAll('~1', '/').replaceAll('~0', '~');
  } catch {
    return undefined;
  }
}
