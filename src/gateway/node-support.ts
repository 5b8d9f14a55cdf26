// Until when each line of Node gets security fixes, so that a gateway on an older one says so at its start. A line that
// is not listed is newer than this list.
// Source: the release schedule of Node.js.

const END_OF_LIFE: ReadonlyMap<number, number> = new Map([
  [20, Date.UTC(2026, 3, 30)],
  [21, Date.UTC(2024, 5, 1)],
  [22, Date.UTC(2027, 3, 30)],
  [23, Date.UTC(2025, 5, 1)],
  [24, Date.UTC(2028, 3, 30)],
  [25, Date.UTC(2026, 5, 1)],
  [26, Date.UTC(2029, 3, 30)],
]);

/** The line that the image has, and that the guides recommend. */
export const RECOMMENDED_NODE = 24;

/** The day from which this version of Node (`v20.20.2`) gets no security fixes, if that day has passed. */
export function endOfLife(node: string, nowMs: number): string | undefined {
  const endMs = END_OF_LIFE.get(Number.parseInt(node.replace('v', ''), 10));
  if (endMs === undefined || nowMs < endMs) return undefined;
  return new Date(endMs).toISOString().slice(0, 'yyyy-mm-dd'.length);
}
