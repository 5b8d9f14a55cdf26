// The digest of a definition: what an approval names and a listing is compared by.
// Hashes the whole definition, as the upstream wrote it, nothing left out and nothing cleaned.
// docs/contract.md §5; SHA-256 over a domain line and the RFC 8785 form.

import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { PinKind } from '../policy/definitions.js';

// The canonical form of a definition: equal for every spelling of the same JSON, different for any
// other. Refuses first what has no such form; never repairs. Pure: the hash is taken in digest.ts.
// RFC 8785 (JSON Canonicalization Scheme), §3.2; its input is I-JSON (RFC 7493 §2).

/** Nesting past this has no form: canonicalization recurses. */
export const MAX_DEFINITION_DEPTH = 64;

/** Values that a definition may hold. Its form is made in one piece, and nobody else is served meanwhile. */
export const MAX_DEFINITION_VALUES = 20_000;

/** Why a value has no canonical form. */
type CanonicalizationError =
  | 'not-json'
  | 'too-deep'
  | 'too-many-values'
  | 'lone-surrogate'
  | 'inexact-number';

type CanonicalForm =
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

/** What can be pinned: definitions, and the instructions that a server gives a model. */
export type PinnedKind = PinKind | 'instructions';

const DOMAINS: { readonly [kind in PinnedKind]: string } = {
  tool: 'sallyport.tool/1\n',
  prompt: 'sallyport.prompt/1\n',
  template: 'sallyport.resource-template/1\n',
  resource: 'sallyport.resource/1\n',
  instructions: 'sallyport.instructions/1\n',
};

/**
 * Stands for a definition that has no digest (a number that a double cannot hold, a lone surrogate,
 * nesting or values past the cap). It is no SHA-256, so it equals no pin.
 */
export const NO_DIGEST = 'no-digest';

type Digest =
  | { readonly ok: true; readonly digest: string }
  | { readonly ok: false; readonly why: CanonicalizationError };

/**
 * The lower-case hex SHA-256 of a definition, or why it has none.
 * @param isExact as for `canonicalForm`.
 */
export function digestDefinition(kind: PinnedKind, definition: unknown, isExact = true): Digest {
  const form = canonicalForm(definition, isExact);
  if (!form.ok) return form;
  return { ok: true, digest: sha256Hex(DOMAINS[kind] + form.text) };
}

/** The digest by which a listed item is compared; `NO_DIGEST` equals no pin. */
export function digestListed(kind: PinnedKind, definition: unknown, isExact: boolean): string {
  const digest = digestDefinition(kind, definition, isExact);
  return digest.ok ? digest.digest : NO_DIGEST;
}

type Taken = { readonly kind: PinnedKind; readonly isExact: boolean; readonly digest: string };

const taken = new WeakMap<object, Taken>();

/**
 * As {@link digestListed}, and kept as long as the definition, which nobody changes once it was read: what
 * takes long of a long listing can be done beforehand.
 */
export function digestOnce(kind: PinnedKind, definition: object, isExact: boolean): string {
  const known = taken.get(definition);
  if (known?.kind === kind && known.isExact === isExact) return known.digest;
  const digest = digestListed(kind, definition, isExact);
  taken.set(definition, { kind, isExact, digest });
  return digest;
}

/** Lower-case hex SHA-256 of a text in UTF-8. */
export function sha256Hex(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}
