// The pinned names of a kind, for thousands of globs over thousands of names: a glob is compared only with the names that
// begin or end as it does.

import { matchesPattern, type Pattern } from '../patterns.js';

export class PinnedNames implements Iterable<string> {
  readonly #names: ReadonlySet<string>;
  #byStart: readonly string[] | undefined;
  /** Reversed and sorted, so that names with the same end are adjacent. */
  #byEnd: readonly string[] | undefined;

  constructor(names: Iterable<string>) {
    this.#names = new Set(names);
  }

  [Symbol.iterator](): Iterator<string> {
    return this.#names.values();
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** The names that match, found one by one as they are read. */
  *matching(pattern: Pattern): Iterable<string> {
    const { kind, text } = pattern;
    if (kind === 'exact') {
      if (this.#names.has(text)) yield text;
      return;
    }
    // The text between stars is compared first, because this is cheapest.
    const literal = text.startsWith('re:') ? '' : longest(text.split('*'));
    for (const name of this.#candidates(text))
      if (name.includes(literal) && matchesPattern(pattern, name)) yield name;
  }

  #candidates(glob: string): Iterable<string> {
    if (glob.startsWith('re:')) return this.#names;
    const start = glob.slice(0, glob.indexOf('*'));
    const end = glob.slice(glob.lastIndexOf('*') + 1);
    if (start === '' && end === '') return this.#names;
    if (start.length >= end.length) {
      this.#byStart ??= [...this.#names].sort();
      return startingWith(this.#byStart, start);
    }
    this.#byEnd ??= [...this.#names].map(backwards).sort();
    return startingWith(this.#byEnd, backwards(end)).map(backwards);
  }
}

function longest(texts: readonly string[]): string {
  return texts.reduce((found, text) => (text.length > found.length ? text : found), '');
}

function backwards(text: string): string {
  return text.split('').reverse().join('');
}

/** The texts of a sorted list that begin with `start`. */
function startingWith(sorted: readonly string[], start: string): readonly string[] {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? '') < start) low = middle + 1;
    else high = middle;
  }
  let end = low;
  while (sorted[end]?.startsWith(start) === true) end += 1;
  return sorted.slice(low, end);
}
