// Counts with nouns, for people: `1 error`, `2 errors`.

/** The count and its noun, which takes an `s` unless the count is one. */
export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
