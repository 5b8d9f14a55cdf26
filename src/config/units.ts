// Durations, sizes and rates as written in configuration files: `30s`, `1MiB`, `60/min`.
// Accepts one spelling of each; for similar spellings the right one is suggested. docs/contract.md §3: a
// number without a unit is an error and never interpreted.

/** The name of a unit, how many of the smallest unit it has, and other spellings of it. */
type Unit = readonly [name: string, factor: number, spellings: RegExp];

const TIMES: readonly Unit[] = [
  ['ms', 1, /^(ms|msec|millis|milliseconds?)$/i],
  ['s', 1000, /^(s|sec|secs|seconds?)$/i],
  ['m', 60_000, /^(m|min|mins|minutes?)$/i],
  ['h', 3_600_000, /^(h|hr|hrs|hours?)$/i],
  ['d', 86_400_000, /^(d|days?)$/i],
];
const SIZES: readonly Unit[] = [
  ['B', 1, /^(b|bytes?)$/i],
  ['KiB', 1024, /^(k|kb|ki|kib)$/i],
  ['MiB', 1024 ** 2, /^(m|mb|mi|mib)$/i],
  ['GiB', 1024 ** 3, /^(g|gb|gi|gib)$/i],
];
const WINDOWS = TIMES.slice(1).map(
  ([name, ...rest]): Unit => [name === 'm' ? 'min' : name, ...rest],
);

function patternOf(units: readonly Unit[], separator = ''): string {
  return `^[1-9][0-9]{0,8}${separator}(${units.map(([name]) => name).join('|')})$`;
}

/** Regular expressions, shared with the published JSON Schemas. */
export const DURATION_PATTERN = patternOf(TIMES);
export const SIZE_PATTERN = patternOf(SIZES);
export const RATE_PATTERN = patternOf(WINDOWS, '/');

/** Platform timers overflow beyond 2^31-1 ms; 24 days stay below that. */
export const MAX_DURATION_MS = 24 * 24 * 60 * 60 * 1000;
/** Larger bodies could not be held as one string. */
export const MAX_SIZE_BYTES = 256 * 1024 * 1024;

/** Milliseconds of a duration such as `30s`; `undefined` if the text is not a duration or too long a one. */
export function readDurationMs(text: string): number | undefined {
  return readQuantity(text, DURATION_PATTERN, TIMES, MAX_DURATION_MS);
}

/** Bytes of a size such as `1MiB`; `undefined` if the text is not a size or too large a one. */
export function readSizeBytes(text: string): number | undefined {
  return readQuantity(text, SIZE_PATTERN, SIZES, MAX_SIZE_BYTES);
}

/** A rate such as `60/min` as a count per window, or `undefined` if the text is not a rate. */
export function readRate(text: string): { count: number; windowMs: number } | undefined {
  if (!new RegExp(RATE_PATTERN).test(text)) return undefined;
  const [count, name] = text.split('/');
  const [, windowMs = 0] = WINDOWS.find((unit) => unit[0] === name) ?? [];
  return { count: Number(count), windowMs };
}

function readQuantity(
  text: string,
  pattern: string,
  units: readonly Unit[],
  max: number,
): number | undefined {
  if (!new RegExp(pattern).test(text)) return undefined;
  const name = text.replace(/^[0-9]+/, '');
  const [, factor = 0] = units.find((unit) => unit[0] === name) ?? [];
  const quantity = Number.parseInt(text, 10) * factor;
  return quantity <= max ? quantity : undefined;
}

/** A reader for text that was checked before: it throws an error where that is not so. */
function requiring<Value>(read: (text: string) => Value | undefined): (text: string) => Value {
  return (text) => {
    const value = read(text);
    if (value === undefined) throw new Error('a quantity was not checked before use');
    return value;
  };
}

export const requireDurationMs = requiring(readDurationMs);
export const requireSizeBytes = requiring(readSizeBytes);
export const requireRate = requiring(readRate);

const UNITS = { duration: TIMES, size: SIZES, rate: WINDOWS };
const DEFAULT_UNITS = { duration: 's', size: 'B', rate: 'min' };

/** The correct spelling for a misspelled duration, size or rate, if it can be recognized. */
export function suggestQuantity(kind: keyof typeof UNITS, written: unknown): string | undefined {
  // A map has no text of its own, and may have a member in the place of `toString`.
  if (typeof written !== 'string' && typeof written !== 'number') return undefined;
  const parts = /^([1-9][0-9]{0,8})(?:\s*(?:\/|per)?\s*([A-Za-z]{1,12}))?$/.exec(String(written));
  if (parts === null) return undefined;
  const [, count, spelling] = parts;
  const unit =
    spelling === undefined
      ? DEFAULT_UNITS[kind]
      : UNITS[kind].find(([, , spellings]) => spellings.test(spelling))?.[0];
  const meant = `${count}${kind === 'rate' ? '/' : ''}${unit}`;
  // What is written like this is wrong for another reason, such as its size.
  return unit === undefined || meant === String(written) ? undefined : meant;
}
