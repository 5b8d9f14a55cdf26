// Finds names that a person or a model would confuse: equal once case, look-alike letters, combining marks,
// invisible characters and separators are ignored. Compares the names of an aggregate's backends; what is done
// about a match is decided elsewhere.
// Source: UTS #39 §4 (confusable detection); docs/reference/attacks.md case 60.

import { foldName } from '../text/case-folding.js';
import { groupBy } from '../text/grouping.js';
import { skeletonOf } from './detectors/unicode.js';

const NO_LETTER = /[^\p{L}\p{N}]/gu;
const DIGITS: ReadonlyMap<string, string> = new Map([
  ['0', 'o'],
  ['1', 'l'],
]);

/** The form in which names that look alike are equal. A name without letters and digits is returned unchanged. */
export function confusableForm(name: string): string {
  const letters = skeletonOf(name.normalize('NFKD')).replace(NO_LETTER, '');
  if (letters === '') return name;
  // Capital letters resemble other letters than small ones do, so the skeleton is taken before and after folding.
  const folded = foldName(skeletonOf(foldName(letters)));
  return folded.replace(/[01]/g, (digit) => DIGITS.get(digit) ?? digit);
}

/** The names of one backend and the prefix that they have in the aggregate. */
export type BackendNames = { readonly prefix: string; readonly names: Iterable<string> };

/** A name as its backend spells it, and the backend's index in the list that was passed in. */
export type BackendName = { readonly backend: number; readonly name: string };

/**
 * The groups of names that look alike and belong to several backends. Names within one backend are not compared:
 * its definitions were reviewed together.
 */
export function findConfusableNames(
  backends: readonly BackendNames[],
): readonly (readonly BackendName[])[] {
  const all = backends.flatMap(({ names }, backend) =>
    Array.from(names, (name) => ({ backend, name })),
  );
  const byConfusableForm = groupBy(all, ({ backend, name }) =>
    confusableForm((backends[backend]?.prefix ?? '') + name),
  );
  return [...byConfusableForm.values()].filter(([first, ...others]) =>
    others.some(({ backend }) => backend !== first.backend),
  );
}
