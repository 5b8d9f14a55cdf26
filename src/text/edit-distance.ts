// Suggests what a mistyped word probably meant: the nearest of the valid words. Pure. For words of bounded length
// that operators write in configuration, lock files and commands; never runs on traffic.

const MAX_SUGGESTION_LENGTH = 64;

/**
 * The nearest candidate, or undefined where none is near: at most a third of the letters may differ, but one
 * always may. Case-insensitive.
 */
export function nearestCandidate(text: string, candidates: Iterable<string>): string | undefined {
  if (text.length === 0 || text.length > MAX_SUGGESTION_LENGTH) return undefined;
  const folded = text.toLowerCase();
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(text.length / 3)) + 1;
  for (const candidate of candidates) {
    if (candidate === text || candidate.length > MAX_SUGGESTION_LENGTH) continue;
    const distance = editDistance(folded, candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Edit distance with insertions, deletions, substitutions and swaps of neighbours (optimal string alignment). */
export function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const isSame = from[row - 1] === to[column - 1];
      let cost = Math.min(
        at(last, column) + 1,
        at(current, column - 1) + 1,
        at(last, column - 1) + (isSame ? 0 : 1),
      );
      if (isSwap(from, to, row, column)) cost = Math.min(cost, at(beforeLast, column - 2) + 1);
      current.push(cost);
    }
    beforeLast = last;
    last = current;
  }
  return at(last, to.length);
}

function isSwap(from: string, to: string, row: number, column: number): boolean {
  if (row < 2 || column < 2) return false;
  return from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}

const MAX_LENGTH = 40;
const MAX_EDITS = 2;

/** The nearest key within two edits, ignoring case. */
export function nearestKey(key: string, keys: readonly string[]): string | undefined {
  if (key.length > MAX_LENGTH) return undefined;
  let best: string | undefined;
  let fewest = MAX_EDITS + 1;
  for (const candidate of keys) {
    const edits = editsBetween(key.toLowerCase(), candidate.toLowerCase());
    if (edits >= fewest) continue;
    best = candidate;
    fewest = edits;
  }
  return best;
}

function editsBetween(from: string, to: string): number {
  let last = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const changed = (last[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1);
      const shifted = Math.min(last[column] ?? 0, current[column - 1] ?? 0) + 1;
      current.push(Math.min(changed, shifted));
    }
    last = current;
  }
  return last[to.length] ?? 0;
}

/** Names with a greater distance are not suggested. */
const MAX_DISTANCE = 3;

/** The nearest of the known names, or undefined where none is near. */
export function suggestName(written: string, known: Iterable<string>): string | undefined {
  let nearest: string | undefined;
  let least = Math.min(MAX_DISTANCE, Math.max(1, Math.floor(written.length / 2))) + 1;
  for (const name of known) {
    if (Math.abs(name.length - written.length) >= least) continue;
    const distance = levenshteinDistance(written.toLowerCase(), name.toLowerCase());
    if (distance < least) {
      least = distance;
      nearest = name;
    }
  }
  return nearest;
}

function levenshteinDistance(from: string, to: string): number {
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
