// Which of a few words a mistyped one was meant to be. For words that people write in lock files and
// on the command line; never runs on traffic.

const MAX_LENGTH = 40;
const MAX_EDITS = 2;

/** The nearest of the words, at most two edits away; letter case does not count. */
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
