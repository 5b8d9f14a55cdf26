// The digest of a definition: what an approval names and a listing is compared by.
// Hashes the whole definition, as the upstream wrote it, nothing left out and nothing cleaned.
// Contract §5; SHA-256 over a domain line and the RFC 8785 form.

import { createHash } from 'node:crypto';
import type { PinKind } from '../policy/definition.js';
import { type CanonicalizationError, canonicalForm } from './canonical.js';

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

export type Digest =
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
