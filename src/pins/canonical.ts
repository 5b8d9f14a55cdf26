// The canonical form of a definition: equal for every spelling of the same JSON, different for any
// other. Refuses first what has no such form; never repairs. Pure: the hash is taken in digest.ts.
// RFC 8785 (JSON Canonicalization Scheme), §3.2; its input is I-JSON (RFC 7493 §2).

import canonicalize from 'canonicalize';

/** Nesting past this has no form: canonicalization recurses. */
export const MAX_DEFINITION_DEPTH = 64;

/** Values that a definition may hold. Its form is made in one piece, and nobody else is served meanwhile. */
export const MAX_DEFINITION_VALUES = 20_000;

/** Why a value has no canonical form. */
export type CanonicalizationError =
  | 'not-json'
  | 'too-deep'
  | 'too-many-values'
  | 'lone-surrogate'
  | 'inexact-number';

export type CanonicalForm =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly why: CanonicalizationError };

/** With the `u` flag a surrogate matches only where it stands alone. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * The RFC 8785 form of a value that strict JSON reading returned.
 * @param isExact false where a number literal of the source changed on the way through a double: two
 * such literals would share one form.
 */
export function canonicalForm(value: unknown, isExact = true): CanonicalForm {
  if (!isExact) return { ok: false, why: 'inexact-number' };
  const why = findError(value);
  if (why !== undefined) return { ok: false, why };
  const text = canonicalize(value);
  return text === undefined ? { ok: false, why: 'not-json' } : { ok: true, text };
}

type Visit = { readonly value: unknown; readonly depth: number };

function findError(root: unknown): CanonicalizationError | undefined {
  const open: Visit[] = [{ value: root, depth: 0 }];
  let values = 1;
  for (let visit = open.pop(); visit !== undefined; visit = open.pop()) {
    const { value, depth } = visit;
    const isScalar = typeof value !== 'object' || value === null;
    const error = isScalar ? scalarError(value) : objectError(value, depth);
    if (error !== undefined) return error;
    if (isScalar) continue;
    const children: unknown[] = Object.values(value);
    values += children.length;
    if (values > MAX_DEFINITION_VALUES) return 'too-many-values';
    for (const child of children) open.push({ value: child, depth: depth + 1 });
  }
  return undefined;
}

function objectError(value: object, depth: number): CanonicalizationError | undefined {
  if (depth >= MAX_DEFINITION_DEPTH) return 'too-deep';
  return !Array.isArray(value) && hasLoneKey(value) ? 'lone-surrogate' : undefined;
}

function hasLoneKey(object: object): boolean {
  return Object.keys(object).some((key) => LONE_SURROGATE.test(key));
}

function scalarError(value: unknown): CanonicalizationError | undefined {
  switch (typeof value) {
    case 'string':
      return LONE_SURROGATE.test(value) ? 'lone-surrogate' : undefined;
    case 'number':
      return Number.isFinite(value) ? undefined : 'inexact-number';
    case 'boolean':
    case 'object':
      return undefined;
    case 'undefined':
    case 'bigint':
    case 'symbol':
    case 'function':
      return 'not-json';
  }
}
