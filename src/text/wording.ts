// How messages to people are worded: what a mistyped word probably meant, counts with nouns (`1 error`, `2 errors`),
// and why a file or folder could not be read, without the message of the error, which names paths and calls. For words
// of bounded length that operators write in configuration, lock files and commands; never runs on traffic.

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
    if (Math.abs(candidate.length - text.length) >= bestDistance) continue;
    const distance = editDistance(folded, candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** Comparisons of one run. Of thousands of unknown names, suggestions for the first ones are enough. */
const MAX_COMPARISONS = 20_000;

/**
 * `nearestCandidate` for a run that may have thousands of unknown names among thousands of known ones, such as after an
 * upstream has renamed all its tools: after so many comparisons nothing is suggested any more.
 */
export function createSuggester(): typeof nearestCandidate {
  let left = MAX_COMPARISONS;
  return (text, candidates) => {
    const listed: string[] = [];
    if (left <= 0) return undefined;
    for (const candidate of candidates) {
      left -= 1;
      if (left < 0) return undefined;
      listed.push(candidate);
    }
    return nearestCandidate(text, listed);
  };
}

/** Edit distance with insertions, deletions, substitutions and swaps of neighbours (optimal string alignment). */
function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const isSame = from[row - 1] === to[column - 1];
      let cost = Math.min(at(last, column) + 1, at(current, column - 1) + 1, at(last, column - 1) + (isSame ? 0 : 1));
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

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
] as const;

/** A time as configuration writes it, in the largest unit of which it is a whole number: `10m`, `90s`. */
export function durationText(ms: number): string {
  const [name, factor] = UNITS.find(([, one]) => ms % one === 0 && ms >= one) ?? ['ms', 1];
  return `${ms / factor}${name}`;
}

const LONG_UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
] as const;
/** Of more than so many, the next larger unit says enough. */
const MAX_OF_UNIT = 120;

/** A time in words, rounded: `90 seconds`, `2 hours`; below a second in milliseconds. */
export function fullDurationText(ms: number): string {
  const [unit, factor] =
    LONG_UNITS.find(([, one]) => ms % one === 0 && ms >= one && ms / one <= MAX_OF_UNIT) ??
    LONG_UNITS.find(([, one]) => ms >= 2 * one) ??
    (ms >= 1000 ? LONG_UNITS[3] : (['millisecond', 1] as const));
  return countOf(Math.round(ms / factor), unit);
}

const SIZE_UNITS = [
  ['GiB', 1024 ** 3],
  ['MiB', 1024 ** 2],
  ['KiB', 1024],
] as const;

/** A size in the largest unit of which it is at least one: `1.50 GiB`, `12.00 MiB`, `900 B`. */
export function sizeText(bytes: number): string {
  const unit = SIZE_UNITS.find(([, factor]) => bytes >= factor);
  return unit === undefined ? `${Math.round(bytes)} B` : `${(bytes / unit[1]).toFixed(2)} ${unit[0]}`;
}

/** The count and its noun, which takes an `s` unless the count is one. */
export function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

const READ_ERRORS: ReadonlyMap<unknown, string> = new Map([
  ['ENOENT', 'does not exist'],
  ['ENOTDIR', 'does not exist: a part of its path is no folder'],
  ['EACCES', 'cannot be read: permission denied'],
  ['EPERM', 'cannot be read: permission denied'],
  ['EISDIR', 'is a folder'],
  ['ELOOP', 'cannot be read: a symbolic link leads back to itself'],
  ['ENAMETOOLONG', 'cannot be read: its name is too long'],
]);

/** The first of a list, and how many others there are. */
export function firstOf(all: readonly string[], max: number, separator = ', '): string {
  const rest = all.length - max;
  return `${all.slice(0, max).join(separator)}${rest > 0 ? ` and ${rest} more` : ''}`;
}

/** The `code` of an error, such as `ENOENT`; `undefined` if it has none. */
export function systemErrorCode(error: unknown): string | undefined {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' ? code : undefined;
}

/** The code of an error, or the name of its class; never its message, which may quote input. */
export function errorCode(error: unknown): string {
  return systemErrorCode(error) ?? (error instanceof Error ? error.name : 'unknown');
}

/** The predicate of a sentence about the file: `does not exist`, `cannot be read: permission denied`. */
export function describeReadError(error: unknown): string {
  return READ_ERRORS.get(systemErrorCode(error)) ?? 'cannot be read';
}

/** Columns of a terminal that every table fits. */
export const TERMINAL_WIDTH = 80;

/** Words in lines of at most 80 columns, those after the first indented further; a word that is longer is divided. */
export function wrapText(text: string, indent = '  '): readonly string[] {
  const lines: string[] = [];
  let current = indent;
  const longest = TERMINAL_WIDTH - 2 * Math.max(2, indent.length);
  for (const word of text.split(' ').flatMap((one) => one.match(new RegExp(`.{1,${longest}}`, 'gu')) ?? [])) {
    if (current.length > indent.length && current.length + 1 + word.length > TERMINAL_WIDTH) {
      lines.push(current);
      current = indent + indent;
    }
    current += current.trim() === '' ? word : ` ${word}`;
  }
  return [...lines, current];
}
