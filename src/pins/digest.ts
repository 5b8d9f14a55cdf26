// The digest of a definition, which approvals name and listings are compared by: SHA-256 over a domain
// line and the RFC 8785 form. It covers the complete definition as the upstream wrote it; nothing is left
// out, cleaned or repaired. docs/reference/lock-files.md; RFC 8785 (JSON Canonicalization Scheme), §3.2; its input is
// I-JSON (RFC 7493 §2).

import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { PinKind } from '../policy/definitions.js';
import { runInTurns, type Turns } from '../protocol/json/incremental.js';
import type { JsonObject } from '../protocol/jsonrpc.js';
import { MAX_ITEM_DEPTH } from '../protocol/odd-items.js';

/** Canonicalization recurses, so a value nested deeper than this has no canonical form. */
export const MAX_DEFINITION_DEPTH = MAX_ITEM_DEPTH;

/** Values that a definition may hold: its canonical form is computed synchronously and blocks the event loop. */
export const MAX_DEFINITION_VALUES = 20_000;

/** The levels above all its values together: each level indents every line of a lock file below it. */
const MAX_DEFINITION_LEVELS = 64 * MAX_DEFINITION_VALUES;

/** Why a value has no canonical form. */
type CanonicalizationError = 'not-json' | 'too-deep' | 'too-many-values' | 'lone-surrogate' | 'inexact-number';

type CanonicalForm =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly why: CanonicalizationError };

/** With the `u` flag, a surrogate matches only if it is unpaired. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/**
 * The RFC 8785 form of a value that strict JSON reading returned: equal for every spelling of the same JSON
 * and different for any other.
 * @param isExact false if a number literal of the source is not exactly representable as a double: two such
 * literals would have the same form.
 */
export function canonicalForm(value: unknown, isExact = true): CanonicalForm {
  if (!isExact) return { ok: false, why: 'inexact-number' };
  const why = findError(value);
  if (why !== undefined) return { ok: false, why };
  const text = canonicalize(value);
  return text === undefined ? { ok: false, why: 'not-json' } : { ok: true, text };
}

type PendingValue = { readonly value: unknown; readonly depth: number };

function findError(root: unknown): CanonicalizationError | undefined {
  const open: PendingValue[] = [{ value: root, depth: 0 }];
  let values = 1;
  let levels = 0;
  for (let visit = open.pop(); visit !== undefined; visit = open.pop()) {
    const { value, depth } = visit;
    const isScalar = typeof value !== 'object' || value === null;
    const error = isScalar ? scalarError(value) : objectError(value, depth);
    if (error !== undefined) return error;
    if (isScalar) continue;
    const children: unknown[] = Object.values(value);
    values += children.length;
    levels += (depth + 1) * children.length;
    const excess = excessOf(values, levels);
    if (excess !== undefined) return excess;
    for (const child of children) open.push({ value: child, depth: depth + 1 });
  }
  return undefined;
}

function excessOf(values: number, levels: number): CanonicalizationError | undefined {
  if (values > MAX_DEFINITION_VALUES) return 'too-many-values';
  return levels > MAX_DEFINITION_LEVELS ? 'too-deep' : undefined;
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

/** What can be pinned: definitions, and the instructions that a server gives to a model. */
export type PinnedKind = PinKind | 'instructions';

const DOMAINS: { readonly [kind in PinnedKind]: string } = {
  tool: 'sallyport.tool/1\n',
  prompt: 'sallyport.prompt/1\n',
  template: 'sallyport.resource-template/1\n',
  resource: 'sallyport.resource/1\n',
  instructions: 'sallyport.instructions/1\n',
};

/**
 * Stands for the digest of a definition that has none (a number that a double cannot hold, a lone
 * surrogate, too much nesting or too many values). It is not a SHA-256, so it equals no pin.
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

type CachedDigest = {
  readonly kind: PinnedKind;
  readonly isExact: boolean;
  readonly digest: string;
};

const digestCache = new WeakMap<JsonObject, CachedDigest>();

/**
 * As {@link digestListed}, cached for the lifetime of the definition object, which must not be modified
 * after it was read. Allows the digests of a long listing to be computed beforehand, and the content of what has none.
 */
export function digestOnce(kind: PinnedKind, definition: JsonObject, isExact: boolean): string {
  const known = digestCache.get(definition);
  if (known?.kind === kind && known.isExact === isExact) return known.digest;
  const digest = digestListed(kind, definition, isExact);
  if (digest === NO_DIGEST) contentOf(definition);
  digestCache.set(definition, { kind, isExact, digest });
  return digest;
}

/** Computes the digests of a long list in turns, so that they are known when they are asked for. */
export function digestInTurns(
  turns: Turns,
  kind: PinnedKind,
  items: Iterable<{ readonly definition: JsonObject; readonly isExact: boolean }>,
): Promise<void> {
  return runInTurns(turns, items, ({ definition, isExact }) => void digestOnce(kind, definition, isExact));
}

type Content = { readonly hash: string; readonly chars: number };

const contentCache = new WeakMap<JsonObject, Content>();

/** SHA-256 of a definition as it was parsed, whether or not it has a digest, and its length. Cached like the digest. */
export function contentOf(definition: JsonObject | string): Content {
  if (typeof definition === 'string') return { hash: sha256Hex(definition), chars: definition.length };
  const known = contentCache.get(definition);
  if (known !== undefined) return known;
  const text = JSON.stringify(definition);
  const content = { hash: sha256Hex(text), chars: text.length };
  contentCache.set(definition, content);
  return content;
}

/**
 * What tells one form of a definition from another: its digest or, if it has none, its content, because what the scan
 * finds in it and the schema that it states depend on that.
 */
export function formOf(seen: {
  readonly digest: string;
  readonly definition: JsonObject | string | undefined;
}): string {
  const { digest, definition } = seen;
  return digest === NO_DIGEST && definition !== undefined ? `${NO_DIGEST} ${contentOf(definition).hash}` : digest;
}

/** Lower-case hex SHA-256 of a text in UTF-8. */
export function sha256Hex(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}
