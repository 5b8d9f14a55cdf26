// Durations, sizes and rates as written in configuration files: `30s`, `1MiB`, `60/min`.
// Accepts one spelling of each; for similar spellings the right one is suggested. docs/contract.md §3: a
// number without a unit is an error and never interpreted.

/** Regular expressions, shared with the published JSON Schemas. */
export const DURATION_PATTERN = '^[1-9][0-9]{0,8}(ms|s|m|h|d)$';
export const SIZE_PATTERN = '^[1-9][0-9]{0,8}(B|KiB|MiB|GiB)$';
export const RATE_PATTERN = '^[1-9][0-9]{0,8}/(s|min|h|d)$';

/** Platform timers overflow beyond 2^31-1 ms; 24 days stay below that. */
export const MAX_DURATION_MS = 24 * 24 * 60 * 60 * 1000;
/** Larger bodies could not be held as one string. */
export const MAX_SIZE_BYTES = 256 * 1024 * 1024;

const DURATION_UNITS: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);
const SIZE_UNITS: ReadonlyMap<string, number> = new Map([
  ['B', 1],
  ['KiB', 1024],
  ['MiB', 1024 ** 2],
  ['GiB', 1024 ** 3],
]);
const RATE_UNITS: ReadonlyMap<string, number> = new Map([
  ['s', 1000],
  ['min', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);

/** Milliseconds of a duration such as `30s`; `undefined` if the text is not a duration or too long a one. */
export function readDurationMs(text: string): number | undefined {
  return readQuantity(text, DURATION_PATTERN, DURATION_UNITS, MAX_DURATION_MS);
}

/**
 * Milliseconds of a duration that was checked before.
 *
 * @throws Error if it was not.
 */
export function requireDurationMs(text: string): number {
  const ms = readDurationMs(text);
  if (ms === undefined) throw new Error('a duration was not checked before use');
  return ms;
}

/** Bytes of a size such as `1MiB`; `undefined` if the text is not a size or too large a one. */
export function readSizeBytes(text: string): number | undefined {
  return readQuantity(text, SIZE_PATTERN, SIZE_UNITS, MAX_SIZE_BYTES);
}

/** A rate such as `60/min` as a count per window, or `undefined` if the text is not a rate. */
export function readRate(text: string): { count: number; windowMs: number } | undefined {
  if (!new RegExp(RATE_PATTERN).test(text)) return undefined;
  const [count = '', unit = ''] = text.split('/');
  const windowMs = RATE_UNITS.get(unit);
  return windowMs === undefined ? undefined : { count: Number(count), windowMs };
}

function readQuantity(
  text: string,
  pattern: string,
  units: ReadonlyMap<string, number>,
  max: number,
): number | undefined {
  if (!new RegExp(pattern).test(text)) return undefined;
  const unit = text.replace(/^[0-9]+/, '');
  const factor = units.get(unit);
  if (factor === undefined) return undefined;
  const quantity = Number.parseInt(text, 10) * factor;
  return quantity <= max ? quantity : undefined;
}

const UNIT_ALIASES: readonly (readonly [RegExp, string])[] = [
  [/^(ms|msec|millis|milliseconds?)$/i, 'ms'],
  [/^(s|sec|secs|seconds?)$/i, 's'],
  [/^(m|min|mins|minutes?)$/i, 'm'],
  [/^(h|hr|hrs|hours?)$/i, 'h'],
  [/^(d|days?)$/i, 'd'],
];
const SIZE_ALIASES: readonly (readonly [RegExp, string])[] = [
  [/^(b|bytes?)$/i, 'B'],
  [/^(k|kb|ki|kib)$/i, 'KiB'],
  [/^(m|mb|mi|mib)$/i, 'MiB'],
  [/^(g|gb|gi|gib)$/i, 'GiB'],
];

/** The correct spelling for a misspelled duration, size or rate, if it can be recognized. */
export function suggestQuantity(
  kind: 'duration' | 'size' | 'rate',
  written: unknown,
): string | undefined {
  const parts = /^([1-9][0-9]{0,8})(?:\s*(?:\/|per)?\s*([A-Za-z]{1,12}))?$/.exec(String(written));
  const count = parts?.[1];
  if (count === undefined) return undefined;
  const unitText = parts?.[2];
  const aliases = kind === 'size' ? SIZE_ALIASES : UNIT_ALIASES;
  const unit = unitText === undefined ? FALLBACK_UNITS[kind] : unitOf(unitText, aliases);
  if (unit === undefined) return undefined;
  if (kind !== 'rate') return `${count}${unit}`;
  return unit === 'ms' ? undefined : `${count}/${unit === 'm' ? 'min' : unit}`;
}

const FALLBACK_UNITS = { duration: 's', size: 'B', rate: 'm' } as const;

function unitOf(text: string, aliases: readonly (readonly [RegExp, string])[]): string | undefined {
  return aliases.find(([pattern]) => pattern.test(text))?.[1];
}
