// What was perhaps meant: the nearest known name by edit distance. Decides nothing.

/** Names further apart than this are not suggested. */
const MAX_DISTANCE = 3;

/** The nearest of the known names, or undefined where none is near. */
export function suggestName(written: string, known: Iterable<string>): string | undefined {
  let nearest: string | undefined;
  let least = Math.min(MAX_DISTANCE, Math.max(1, Math.floor(written.length / 2))) + 1;
  for (const name of known) {
    if (Math.abs(name.length - written.length) >= least) continue;
    const distance = editDistance(written.toLowerCase(), name.toLowerCase());
    if (distance < least) {
      least = distance;
      nearest = name;
    }
  }
  return nearest;
}

/** Levenshtein distance. */
function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const replaced = (previous[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1);
      const grown = Math.min(previous[column] ?? 0, current[column - 1] ?? 0) + 1;
      current.push(Math.min(replaced, grown));
    }
    previous = current;
  }
  return previous[to.length] ?? 0;
}
