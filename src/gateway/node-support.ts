// Until when each line of Node gets security fixes, so that a gateway on an older one says so at its start. A line that
// is not listed is newer than this list.
// Source: the release schedule of Node.js.

const END_OF_LIFE: Readonly<Record<string, string>> = {
  '20': '2026-04-30',
  '21': '2024-06-01',
  '22': '2027-04-30',
  '23': '2025-06-01',
  '24': '2028-04-30',
  '25': '2026-06-01',
  '26': '2029-04-30',
};

/** The line that the image has, and that the guides recommend. */
export const RECOMMENDED_NODE = 24;

/** The day from which this version of Node (`v20.20.2`) gets no security fixes, if that day has passed. */
export function endOfLife(node: string, nowMs: number): string | undefined {
  const [, line = ''] = /^v?(\d+)\./.exec(node) ?? [];
  const day = END_OF_LIFE[line];
  return day !== undefined && nowMs >= Date.parse(day) ? day : undefined;
}
