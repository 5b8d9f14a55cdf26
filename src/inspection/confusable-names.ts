// Names that a person or a model would take for one another: equal once case, look-alike letters, marks,
// what cannot be seen and what separates words are left out. Finds them across the members of an endpoint;
// what becomes of them is decided elsewhere.
// Source: UTS #39 §4 (confusable detection); docs/reference/attacks.md case 60.

import { foldName } from '../text/case-folding.js';
import { skeletonOf } from './detectors/unicode.js';

const NO_LETTER = /[^\p{L}\p{N}]/gu;
const DIGITS: ReadonlyMap<string, string> = new Map([
  ['0', 'o'],
  ['1', 'l'],
]);

/** What a name looks like; two that look alike have one look. A name of signs alone is its own. */
export function confusableForm(name: string): string {
  const letters = skeletonOf(name.normalize('NFKD')).replace(NO_LETTER, '');
  if (letters === '') return name;
  // Capitals look like other letters than small ones do, so both are read.
  const folded = foldName(skeletonOf(foldName(letters)));
  return folded.replace(/[01]/g, (digit) => DIGITS.get(digit) ?? digit);
}

/** The names of one member of an endpoint, and what stands before them there. */
export type BackendNames = { readonly prefix: string; readonly names: Iterable<string> };

/** A name as its member has it, and the member's place in the list that was asked about. */
export type NameOf = { readonly backend: number; readonly name: string };

/**
 * The groups of names that look alike and belong to several members. Names of one member are its own affair:
 * its definitions were reviewed together.
 */
export function findConfusableNames(
  backends: readonly BackendNames[],
): readonly (readonly NameOf[])[] {
  const byConfusableForm = new Map<string, NameOf[]>();
  for (const [backend, { prefix, names }] of backends.entries()) {
    for (const name of names) {
      const form = confusableForm(prefix + name);
      const same = byConfusableForm.get(form);
      if (same === undefined) byConfusableForm.set(form, [{ backend, name }]);
      else same.push({ backend, name });
    }
  }
  return [...byConfusableForm.values()].filter((same) =>
    same.some(({ backend }) => backend !== same[0]?.backend),
  );
}
